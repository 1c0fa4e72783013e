/* stage.cc: see stage.h. */
#include "stage.h"

#include <algorithm>

#include "failure.h"
#include "vm/value_range.h"

namespace gpuvm {
namespace cuda {

/* No tablet of the arena has it, so nothing of the groups is looked for among the columns that are kept. */
constexpr uint64_t NO_SERIAL = UINT64_MAX;

Stage::Stage(const DeviceJobRequest &request) : first_(request), second_(request), types_(request.program->nresults)
{
	const Program *program = request.program;
	/* A join's rows are many, and what is known of its registers is known elsewhere. */
	const bool	known = request.nothers == 0;
	std::vector<ValueRange> columns, regs(PROGRAM_MAX_REGS), results(program->nresults);
	std::vector<uint32_t> errors(PROGRAM_MAX_OPS);

	first_.count_groups = false;
	first_.row_limit = 0;
	first_.order = nullptr;
	first_.norder = 0;
	if (known)
	{
		for (uint32_t c = 0; c < request.ncolumns; c++)
			columns.push_back(column_range(request.columns[c]));
		analyze_ranges(program, request.params, columns.data(), regs.data(), errors.data(), request.maps);
	}
	group_ranges(program, known ? regs.data() : nullptr, known ? request.total_rows : UINT64_MAX, results.data());
	stage_column_types(program, types_.data());
	for (size_t c = 0; c < types_.size(); c++)
	{
		columns_.push_back(range_summary(results[c], types_[c], false));
		columns_[c].max_width = static_cast<uint8_t>(type_natural_width(types_[c]));
		if (columns_[c].flags & CHUNK_HAS_NULLS)
			nullable_[c / 8] |= static_cast<uint8_t>(1 << c % 8);
	}
	second_.program = request.stage;
	second_.stage = nullptr;
	second_.of_stage = true;
	second_.columns = columns_.data();
	second_.ncolumns = static_cast<uint32_t>(columns_.size());
	second_.tablets = &tablet_;
	second_.ntablets = 0;
	/* without keys there is a group even of no rows */
	second_.total_rows = known ? std::clamp<uint64_t>(request.total_rows, 1, ROW_SET_MAX_ROWS) : ROW_SET_MAX_ROWS;
	second_.others = nullptr;
	second_.nothers = 0;
}

/* Every job that knew the memory has drained its lane. */
Stage::~Stage()
{
	if (memory_ != nullptr)
		device_->free_working(memory_, bytes(ngroups_));
}

uint64_t
Stage::bytes(uint64_t ngroups) const
{
	return row_set_bytes(types_.data(), nullable_, static_cast<uint32_t>(types_.size()), ngroups);
}

const RowSet &
Stage::take(CudaDevice *device, uint64_t ngroups, char *memory)
{
	device_ = device;
	memory_ = memory;
	ngroups_ = ngroups;
	there_ = true;
	rows_ = row_set(types_.data(), nullable_, static_cast<uint32_t>(types_.size()), ngroups, memory);
	describe();
	return rows_;
}

void
Stage::describe()
{
	header_.assign((sizeof(TabletHeader) + types_.size() * sizeof(ColumnChunk)) / sizeof(uint64_t), 0);

	TabletHeader *header = reinterpret_cast<TabletHeader *>(header_.data());

	header->ncols = static_cast<uint16_t>(types_.size());
	header->nrows = static_cast<uint32_t>(ngroups_);
	header->padded_rows = rows_.capacity;
	header->serial = NO_SERIAL;
	for (size_t c = 0; c < types_.size(); c++)
	{
		ColumnChunk &chunk = tablet_chunks(header)[c];

		chunk.type = types_[c];
		chunk.width = static_cast<uint8_t>(type_natural_width(types_[c]));
		chunk.data_bytes = static_cast<uint64_t>(rows_.capacity) * chunk.width;
		chunk.nulls = rows_.column[c].nulls != nullptr ? sizeof(TabletHeader) : 0;	/* only whether there are any is asked */
	}
	tablet_.tablet = header;
	second_.ntablets = 1;
}

void
Stage::list(Work *work) const
{
	list_work(second_, work);
	for (WorkTablet &tablet : work->tablets)
		tablet.there = &rows_;
}

}  // namespace cuda
}  // namespace gpuvm
