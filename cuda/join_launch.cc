/* join_launch.cc: launches of a join's programs over row sets and over tiles of pairs. See join.h. */
#include "join.h"

#include <algorithm>
#include <cstring>

#include "failure.h"

namespace gpuvm {
namespace cuda {

/* Where pairs have the column from. */
GatherColumn
JoinJob::source_of(const Level &level, const StageColumnSource &column, Absent absent) const
{
	GatherColumn c = {};
	const bool	nothing = absent == (column.carried ? Absent::Outer : Absent::Inner);

	if (!nothing)
		c.from = column.carried ? level.in.column[column.index] : level.side.column[column.index];
	/* A side without rows has no columns. */
	c.from.type = column_type(level, column);
	c.by = nothing ? GatherBy::Nothing : column.carried ? GatherBy::Outer : GatherBy::Inner;
	return c;
}

/* The stage's columns, for these pairs. Those of rows that are taken as they are need no copy. */
void
JoinJob::gather_columns(const Level &level, const PairStage &stage, const uint32_t *outer, const uint32_t *inner, uint32_t n, Absent absent)
{
	GatherColumn list[MAX_COLUMNS];
	uint32_t	nlist = 0;
	Carver		carver(columns_);

	for (size_t i = 0; i < stage.columns.size(); i++)
	{
		GatherColumn c = source_of(level, stage.columns[i], absent);
		const bool	nulls = c.by == GatherBy::Nothing || c.from.nulls != nullptr || (c.by == GatherBy::Inner && keeps_rows(level));

		if (c.by == GatherBy::Outer && outer == nullptr)
		{
			gathered_[i] = c.from;
			continue;
		}
		gathered_[i].type = c.from.type;
		gathered_[i].values = carver.take(static_cast<uint64_t>(batch_) * static_cast<uint64_t>(type_natural_width(c.from.type)));
		gathered_[i].nulls = nulls ? reinterpret_cast<uint32_t *>(carver.take(bitmap_bytes(batch_))) : nullptr;
		c.to = gathered_[i];
		list[nlist++] = c;
	}
	if (nlist > 0)
		check(gather_rows(list, nlist, outer, inner, n, lane_->stream), "gathering columns");
}

/* Describes the row set that the next launch reads. */
void
JoinJob::upload(uint32_t nrows, const std::vector<DeviceChunk> &chunks)
{
	const DeviceTablet tablet = {nrows, 0, 0};
	const size_t from = static_cast<size_t>(reinterpret_cast<char *>(chunks_) - reinterpret_cast<char *>(tablet_));
	std::vector<char> bytes(from + chunks.size() * sizeof(DeviceChunk));

	memcpy(bytes.data(), &tablet, sizeof(tablet));
	if (!chunks.empty())
		memcpy(bytes.data() + from, chunks.data(), chunks.size() * sizeof(DeviceChunk));
	check(cudaMemcpyAsync(tablet_, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, lane_->stream), "describing a row set");
}

/* `to`: where its rows go, of so many pads or tiles of pairs; nullptr: it has none. */
void
JoinJob::launch(const DeviceProgram &program, SliceArgs args, uint64_t row_pads, const RowSet *to)
{
	RowStaging	staging;
	LaunchShape shape;

	if (to != nullptr)
	{
		staging = takes_rows_straight(program) ? straight_to(program, row_pads, *to, staging_) : row_staging(program, row_pads, staging_);
		args.rows = &staging;
	}
	args.abort = lane_->abort;
	if (program.nlong_aux != 0)
		check(send_long_lists(program, lane_->scratch, lane_->stream), "sending lists");
	check(choose_shape(program, args.npads, &shape, args.groups != nullptr ? args.groups->shared_bytes : 0, args.inner_rows),
		  "fitting the program to the device");
	check(launch_slice(program, shape, lane_->scratch, args, lane_->stream), "launching the interpreter");
	figures_->slices++;
	if (to == nullptr)
		return;
	if (staging.to == nullptr)
		check(append_rows(program, staging, row_pads, *to, temp_, nullptr, lane_->stream), "collecting rows");
}

/* Over the gathered columns. */
void
JoinJob::launch_pairs(const PairStage &stage, uint32_t n, uint32_t *marks, const RowSet *to)
{
	const DeviceProgram &program = *stage.program;
	const uint32_t npads = (n + TABLET_PAD_ROWS - 1) / TABLET_PAD_ROWS;
	std::vector<DeviceChunk> chunks;
	SliceArgs	args = {DeviceTable{tablet_, chunks_, pads_, npads, 0}, 0, npads, nullptr, nullptr, to != nullptr || marks != nullptr ? nullptr : groups_};

	for (int c = 0; c < program.ncolumns; c++)
		chunks.push_back(row_set_chunk(gathered_[program.columns[c].table_column]));
	upload(n, chunks);
	args.marks = marks;
	launch(program, args, npads, to);
}

/* Over the first `outer_rows` rows that came in, each with inner rows [first, first + n). `list`: where a stage lists its pairs. */
void
JoinJob::launch_grid(const Level &level, const PairStage &stage, uint32_t outer_rows, uint32_t first, uint32_t n, uint32_t *marks, const RowSet *to,
					 RowSetState *list)
{
	const DeviceProgram &program = *stage.program;
	const uint32_t npads = (outer_rows + TABLET_PAD_ROWS - 1) / TABLET_PAD_ROWS;
	std::vector<DeviceChunk> chunks;
	SliceArgs	args = {DeviceTable{tablet_, chunks_, pads_, npads, 0}, 0, npads, nullptr, nullptr, to != nullptr || marks != nullptr || list != nullptr ? nullptr : groups_};

	for (int c = 0; c < program.ncolumns; c++)
		chunks.push_back(row_set_chunk(level.in.column[stage.columns[program.columns[c].table_column].index]));
	upload(outer_rows, chunks);
	args.inner_columns = level.inner_columns;
	args.inner_first = first;
	args.inner_rows = n;
	args.marks = marks;
	if (list != nullptr)
		args.list = PairList{outer_[0], inner_[0], list, batch_};
	launch(program, args, static_cast<uint64_t>(npads) * n, to);
}

}  // namespace cuda
}  // namespace gpuvm
