/* cpu_stage.cc: see cpu_stage.h. */
#include "vm/cpu_stage.h"

#include <algorithm>
#include <cstring>

#include "tablet/build.h"

namespace gpuvm {

constexpr uint32_t STAGE_TABLET_ROWS = 64 * 1024;
constexpr uint64_t HUGE_BYTES = 4 << 20;	/* from so many on */

/* Behind the header and the chunks the columns lie as result_layout() has them, so that groups are emitted where they stay. */
static uint64_t
columns_at(size_t ncols)
{
	return sizeof(TabletHeader) + ncols * sizeof(ColumnChunk);
}

StageTable::StageTable(const Program *program, const CpuJob *job, const CpuState *state)
	: job_(job), state_(state), results_(program->nresults), types_(program->nresults), nrows_(job->ngroups(state))
{
	program_result_types(program, results_.data());
	stage_column_types(program, types_.data());
	ntablets_ = static_cast<uint32_t>((nrows_ + STAGE_TABLET_ROWS - 1) / STAGE_TABLET_ROWS);

	const uint32_t most = static_cast<uint32_t>(align_up(std::min<uint64_t>(nrows_, STAGE_TABLET_ROWS), TABLET_PAD_ROWS));

	stride_ = columns_at(types_.size()) + result_layout(results_.data(), static_cast<int>(results_.size()), most, nullptr);
	if (ntablets_ > 0)
		memory_ = Pages(ntablets_ * stride_, ntablets_ * stride_ >= HUGE_BYTES);
}

/* int2 is wider in results than in tablets. */
static void
compact_int2(char *values, uint32_t nrows, uint32_t padded_rows)
{
	for (uint32_t i = 0; i < nrows; i++)
		memcpy(values + i * sizeof(int16_t), values + i * sizeof(int32_t), sizeof(int16_t));
	memset(values + nrows * sizeof(int16_t), 0, (padded_rows - nrows) * sizeof(int16_t));
}

/* Sums are narrower as columns; false where one does not fit. Under a null there is 0. */
static bool
compact_sums(char *values, uint32_t nrows, uint32_t padded_rows)
{
	bool		fit = true;

	for (uint32_t i = 0; i < nrows; i++)
	{
		int128		sum;

		memcpy(&sum, values + i * sizeof(sum), sizeof(sum));

		const int64_t narrow = static_cast<int64_t>(sum);

		fit = fit && narrow == sum;
		memcpy(values + i * sizeof(narrow), &narrow, sizeof(narrow));
	}
	memset(values + nrows * sizeof(int64_t), 0, (padded_rows - nrows) * sizeof(int64_t));
	return fit;
}

/* What lies under a null is within the column's range, as in any tablet. */
static void
fill_nulls(const ColumnChunk &chunk, const uint64_t *nulls, uint32_t nrows, char *values)
{
	const int64_t fill = type_is_float(chunk.type) ? 0 : chunk.min;

	for (uint32_t word = 0; word < (nrows + 63) / 64; word++)
		for (uint64_t left = nulls[word]; left != 0; left &= left - 1)
			memcpy(values + (word * uint64_t(64) + static_cast<uint32_t>(__builtin_ctzll(left))) * chunk.width, &fill, chunk.width);
}

void
StageTable::make(uint32_t i)
{
	const uint64_t first = uint64_t(i) * STAGE_TABLET_ROWS;
	const uint32_t nrows = static_cast<uint32_t>(std::min<uint64_t>(nrows_ - first, STAGE_TABLET_ROWS));
	const uint32_t padded = static_cast<uint32_t>(align_up(nrows, TABLET_PAD_ROWS));
	const uint64_t area = columns_at(types_.size());
	TabletHeader *to = at(i);
	char	   *base = reinterpret_cast<char *>(to);
	ColumnChunk *chunks = tablet_chunks(to);
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];
	std::vector<StagedColumn> columns;

	result_layout(results_.data(), static_cast<int>(results_.size()), padded, layout);
	job_->emit_groups(state_, first, base + area, padded);
	for (size_t c = 0; c < types_.size(); c++)
	{
		char	   *values = base + area + layout[c].values;

		if (types_[c] == Type::I16)
			compact_int2(values, nrows, padded);
		if (results_[c] == Type::I128 && !compact_sums(values, nrows, padded))
			overflows_[c].store(true);
		columns.push_back(StagedColumn{types_[c], static_cast<int16_t>(c + 1), values,
									   reinterpret_cast<uint64_t *>(base + area + layout[c].nulls)});
	}

	/* The statistics are a tablet's, the places those that the columns have. */
	const StagedTablet staged = {nrows, static_cast<uint32_t>(columns.size()), columns.data(), 0, 0, nullptr, nullptr, nullptr, nullptr, 0};

	plan_tablet(staged, to, chunks);
	to->size = stride_;
	for (size_t c = 0; c < types_.size(); c++)
	{
		ColumnChunk &chunk = chunks[c];

		chunk.width = static_cast<uint8_t>(type_natural_width(chunk.type));
		chunk.base = 0;
		chunk.data = area + layout[c].values;
		chunk.data_bytes = uint64_t(padded) * chunk.width;
		chunk.nulls = 0;
		if (chunk.null_count == 0)
			continue;
		chunk.nulls = area + layout[c].nulls;
		fill_nulls(chunk, reinterpret_cast<uint64_t *>(base + chunk.nulls), nrows, base + chunk.data);
	}
}

std::vector<ColumnSummary>
StageTable::summaries() const
{
	std::vector<ColumnSummary> columns(types_.size());

	for (size_t c = 0; c < types_.size(); c++)
	{
		columns[c].type = types_[c];
		columns[c].scale = -1;
		for (uint32_t i = 0; i < ntablets_; i++)
			summarize_chunk(&columns[c], tablet_chunks(at(i))[c], i == 0);
	}
	return columns;
}

}  // namespace gpuvm
