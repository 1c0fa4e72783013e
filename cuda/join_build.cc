/* join_build.cc: a join's inner sides: their rows and tables. See join.h. */
#include "join.h"

#include <algorithm>

#include "cost.h"
#include "failure.h"

namespace gpuvm {
namespace cuda {

constexpr uint64_t STAGING_BYTES = 256ull << 20;	/* of a slice of inner rows */
constexpr uint64_t SERIAL_PART_BYTES = 256ull << 20;

void
JoinJob::build()
{
	for (size_t i = 0; i < levels_.size(); i++)
	{
		const JoinLevel &split = *levels_[i].plan->split;
		const size_t rows_at = working_.size();

		/* It may have come since: another job's, or that of a level before. */
		steps_.has_side(find_index(&levels_[i]));
		if (levels_[i].index != nullptr)
			take_index(i);
		else
		{
			build_rows(i);
			if (split.sought)
				build_table(&levels_[i]);
			keep_index(i, rows_at);
		}
		if (split.kind == JoinKind::Full && levels_[i].side_rows > 0)
		{
			/* Rows without a partner come out whatever is before. */
			empty_ = false;
			levels_[i].partnered = reinterpret_cast<uint32_t *>(allocate(bitmap_bytes(levels_[i].side_rows)));
			levels_[i].partnered_scan = allocate(bit_scan_bytes(levels_[i].side_rows));
		}
		if (levels_[i].side_rows == 0 && (split.kind == JoinKind::Inner || split.kind == JoinKind::Semi))
			empty_ = true;
	}
}

/* ---- indexes -------------------------------------------------------------------- */

bool
JoinJob::find_index(Level *level)
{
	if (level->key.empty() || level->index != nullptr)
		return level->index != nullptr;
	level->index = device_->residency()->find_index(level->key);
	if (level->index != nullptr)
		indexes_.pinned.push_back(level->index);
	return level->index != nullptr;
}

/* It counts as if it had been built. */
void
JoinJob::take_index(size_t number)
{
	Level	   &level = levels_[number];
	const JoinIndex &index = level.index->content;

	level.side = index.side;
	level.side_rows = index.nrows;
	level.table = index.table;
	level.facts = index.facts;
	figures_->build_rows += index.nrows;
	figures_->indexes_used |= 1u << (number + 1);
	figures_->index_bytes += index.bytes();
	count_build(index.bytes());
}

/* What was built, in working memory from `rows_at` on, is there for others if they may have it. The device is done with it. */
void
JoinJob::keep_index(size_t number, size_t rows_at)
{
	Level	   &level = levels_[number];
	JoinIndex	index = {};

	if (level.key.empty() || level.side_rows == 0)
		return;
	for (size_t i = rows_at; i < working_.size(); i++)
		index.pieces[i - rows_at] = JoinIndex::Piece{working_[i].memory, working_[i].bytes};
	index.side = level.side;
	index.nrows = level.side_rows;
	index.table = level.table;
	index.facts = level.facts;
	level.index = device_->residency()->keep_index(level.key, index, index_tablets(cursors_[number + 1]), lane_->stream);
	if (level.index == nullptr)
		return;					/* another job was faster */
	indexes_.pinned.push_back(level.index);
	working_.resize(rows_at);
	figures_->indexes_made |= 1u << (number + 1);
	figures_->index_bytes += index.bytes();
}

void
JoinJob::count_build(uint64_t bytes)
{
	figures_->build_bytes += bytes;
	if (request_.build_limit != 0 && figures_->build_bytes > request_.build_limit)
		throw Refusal{"an inner side of the join takes more memory than it may"};
}

/* A slice of at most so many pads from the next one on can be launched. Returns how many it has. */
uint32_t
JoinJob::bring_source(Source *source, uint32_t most_pads)
{
	TableFeed  *feed = source->feed.get();
	const uint32_t first = source->next_pad;
	const uint32_t n = std::min(slice_pads(source->program, source->work, *feed, first, SLICE_NS), most_pads);
	bool		waits;

	while (feed->transfer() == Transfer::Serial && !feed->all_placed() && feed->copy_some(SERIAL_PART_BYTES))
	{
		wait_for(lane_->copied);
		if (stopped())
			throw Stopped();
	}
	feed->bring(first, n, &waits);
	return n;
}

/* Enqueues a slice that was brought. */
void
JoinJob::launch_source(Source *source, uint32_t npads, const RowStaging &staging, DeviceJobFigures *figures)
{
	TableFeed  *feed = source->feed.get();
	const uint32_t first = source->next_pad;
	LaunchShape shape;

	if (source->program.nlong_aux != 0)
		check(send_long_lists(source->program, lane_->scratch, lane_->stream), "sending lists");
	check(choose_shape(source->program, npads, &shape), "fitting the program to the device");
	check(launch_slice(source->program, shape, lane_->scratch, SliceArgs{feed->table(), first, npads, lane_->abort, &staging, nullptr},
					   lane_->stream), "launching the interpreter");
	count_work(source->work, *feed, first, npads, figures);
	figures_->slices++;
	source->next_pad += npads;
}

void
JoinJob::build_rows(size_t number)
{
	Level	   &level = levels_[number];
	Source	   *source = sources_[number + 1].get();
	const DeviceProgram &program = source->program;
	const uint32_t npads = static_cast<uint32_t>(source->work.pads.size());
	DeviceJobFigures read = {};

	if (npads == 0)
		return;
	if (source->work.rows > ROW_SET_MAX_ROWS)
		throw Refusal{"an inner side of the join has too many rows for the device"};

	const uint64_t bytes = row_set_bytes(program, source->work.rows);

	count_build(bytes);
	level.side = row_set(program, source->work.rows, allocate(bytes));

	const size_t kept = working_.size();
	const uint64_t pad_bytes = row_staging_bytes(program, 64) / 64;
	const uint32_t most = static_cast<uint32_t>(std::min<uint64_t>(npads, std::max<uint64_t>(STAGING_BYTES / pad_bytes, 1)));
	Carver		size;

	size.take(row_staging_bytes(program, most));
	size.take(append_temp_bytes(program, most));

	Carver		carver(allocate(size.taken()));
	const RowStaging staging = row_staging(program, most, carver.take(row_staging_bytes(program, most)));
	char	   *temp = carver.take(append_temp_bytes(program, most));

	start();
	check(reset_rows(level.side, lane_->stream), "emptying a row set");
	while (source->next_pad < npads)
	{
		source->feed->retire(source->next_pad);
		start();

		const uint32_t n = bring_source(source, most);

		launch_source(source, n, staging, &read);
		check(append_rows(program, staging, n, level.side, temp, &outcomes_->rows, lane_->stream), "collecting rows");
		(void) sync();
		(void) appended();
	}
	level.side_rows = appended();
	figures_->build_rows += level.side_rows;
	figures_->bytes_read += read.bytes_read;
	figures_->bytes_moved += read.bytes_moved;
	free_working(kept);
}

void
JoinJob::build_table(Level *level)
{
	JoinKeys	keys = {};
	JoinTablePlan plan;
	const size_t before = working_.size();

	keys.nkeys = static_cast<uint32_t>(level->plan->split->key_types.size());
	if (keys.nkeys > JOIN_MAX_KEYS)
		throw Refusal{"a join has too many keys for the device"};
	if (level->side_rows == 0)
		return;
	std::copy(level->side.column, level->side.column + keys.nkeys, keys.key);
	start();
	check(measure_keys(keys, level->side_rows, facts_, &outcomes_->keys, lane_->stream), "measuring keys");
	(void) sync();
	level->facts = outcomes_->keys;
	plan_join_table(keys, level->side_rows, level->facts, level->plan->split->range != 0, &plan);
	for (;;)
	{
		char	   *table = plan.table_bytes != 0 ? allocate(plan.table_bytes) : nullptr;
		const size_t kept = working_.size();
		char	   *temp = plan.temp_bytes != 0 ? allocate(plan.temp_bytes) : nullptr;

		start();
		check(build_join_table(plan, keys, table, temp, &level->table, table_words_, &outcomes_->table, lane_->stream), "building a table");
		(void) sync();
		switch (finish_join_table(outcomes_->table, &plan, &level->table))
		{
			case JoinTableEnd::Done:
				free_working(kept);
				count_build(plan.table_bytes);
				return;
			case JoinTableEnd::Again:
				free_working(before);
				break;
			case JoinTableEnd::Collision:
				throw Refusal{"two keys of the join have one hash"};
		}
	}
}

}  // namespace cuda
}  // namespace gpuvm
