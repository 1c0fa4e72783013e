/* join_build.cc: a join's inner sides: their rows and tables. See join.h. */
#include "join.h"

#include <algorithm>
#include <numeric>

#include "cost.h"
#include "failure.h"

namespace gpuvm {
namespace cuda {

/*
 * All sides at once, as far as they do not wait for each other: their rows, one look at how many these are and at their keys;
 * their tables, one look at what became of them.
 */
void
JoinJob::build()
{
	std::vector<size_t> left(levels_.size());

	std::iota(left.begin(), left.end(), size_t{0});
	while (!left.empty())
	{
		std::vector<size_t> now, later;

		for (size_t i : left)
		{
			if (way_.reduces && !now.empty())
			{
				later.push_back(i);	/* the columns of one side at a time */
				continue;
			}
			/* It may have come since: another job's, or that of a level before. */
			if (find_index(&levels_[i]))
				take_index(i);
			else if (!levels_[i].key.empty() &&
					 std::any_of(now.begin(), now.end(), [&](size_t other) { return levels_[other].key == levels_[i].key; }))
			{
				later.push_back(i);
				continue;
			}
			else
				now.push_back(i);
			steps_.has_side(levels_[i].index != nullptr);
		}
		build_rows(now);
		build_tables(now);
		for (size_t i : now)
			keep_index(i);
		left = std::move(later);
	}
	for (size_t i = 0; i < levels_.size(); i++)
	{
		Level	   &level = levels_[i];
		const JoinKind kind = level.plan->split->kind;
		const uint32_t rows = i == split_ ? pass_list_[0].rows : level.side_rows;

		if (kind == JoinKind::Full && rows > 0)
		{
			/* Rows without a partner come out whatever is before. */
			empty_ = false;
			level.partnered = reinterpret_cast<uint32_t *>(allocate(bitmap_bytes(rows)));
			level.partnered_scan = allocate(bit_scan_bytes(rows));
		}
		if (rows == 0 && (kind == JoinKind::Inner || kind == JoinKind::Semi) && empties(i))
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

/* What was built is there for others if they may have it. The device is done with it. */
void
JoinJob::keep_index(size_t number)
{
	Level	   &level = levels_[number];
	JoinIndex	index = {};

	if (level.key.empty() || level.side_rows == 0)
		return;
	for (const Working &of : working_)
		if (of.memory == level.rows_memory || of.memory == level.table_memory)
			index.pieces[of.memory == level.table_memory] = JoinIndex::Piece{of.memory, of.bytes};
	index.side = level.side;
	index.nrows = level.side_rows;
	index.table = level.table;
	index.facts = level.facts;
	level.index = device_->residency()->keep_index(level.key, index, index_tablets(cursors_[number + 1]), lane_->stream);
	if (level.index == nullptr)
		return;					/* another job was faster */
	indexes_.pinned.push_back(level.index);
	working_.erase(std::remove_if(working_.begin(), working_.end(),
								  [&](const Working &of) { return of.memory == level.rows_memory || of.memory == level.table_memory; }),
				   working_.end());
	figures_->indexes_made |= 1u << (number + 1);
	figures_->index_bytes += index.bytes();
}

void
JoinJob::count_build(uint64_t bytes)
{
	build_bytes_ += bytes;
	figures_->build_bytes = std::max(figures_->build_bytes, build_bytes_);
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

/* The next slice's rows, of at most so many pads, less those that fail the tests: how many pads. The device is done with those before. */
uint32_t
JoinJob::stage_slice(Source *source, const RowTests &tests, uint32_t most, const RowStaging &staging, DeviceJobFigures *figures)
{
	source->feed->retire(source->next_pad);
	start();

	const uint32_t n = bring_source(source, most);

	launch_source(source, n, staging, figures);
	if (tests.any())
		check(keep_rows(source->program, staging, n, tests, lane_->stream), "leaving out rows");
	return n;
}

/* Behind the rows of a set, slice by slice, of which the last is not waited for. */
void
JoinJob::append_source(Source *source, const RowTests &tests, const RowSet &to, uint32_t most, char *staging_memory, RowSetState *outcome)
{
	const DeviceProgram &program = source->program;
	const uint32_t npads = static_cast<uint32_t>(source->work.pads.size());
	Carver		carver(staging_memory);
	const RowStaging staging = row_staging(program, most, carver.take(row_staging_bytes(program, most)));
	char	   *temp = carver.take(append_temp_bytes(program, most));
	DeviceJobFigures read = {};

	start();
	check(reset_rows(to, lane_->stream), "emptying a row set");
	while (source->next_pad < npads)
	{
		const uint32_t n = stage_slice(source, tests, most, staging, &read);

		check(append_rows(program, staging, n, to, temp, outcome, lane_->stream), "collecting rows");
		if (source->next_pad == npads)
			break;
		(void) sync();
		(void) appended(*outcome);
	}
	figures_->bytes_read += read.bytes_read;
	figures_->bytes_moved += read.bytes_moved;
}

void
JoinJob::enqueue_rows(size_t number, uint32_t most, char *staging_memory)
{
	Level	   &level = levels_[number];
	JoinOutcomes::Side *outcome = &outcomes_->sides[number];

	append_source(sources_[number + 1].get(), tests_of(number + 1), level.side, most, staging_memory, &outcome->rows);
	if (!level.plan->split->sought)
		return;

	const JoinKeys keys = keys_of(level);

	check(measure_keys(keys, static_cast<uint32_t>(level.most_rows), facts_ + number, &outcome->keys, lane_->stream, &level.side.state->nrows),
		  "measuring keys");
}

/* Staging for slices, at most an eighth of what is free: how many pads a slice has; and its bytes are taken of `size`. */
uint32_t
JoinJob::staged_pads(const Source &source, Carver *size) const
{
	const DeviceProgram &program = source.program;
	const uint64_t pad_bytes = row_staging_bytes(program, 64) / 64, bytes = std::min(STAGING_BYTES, device_->residency()->available() / 8);
	const uint32_t most = static_cast<uint32_t>(std::min<uint64_t>(source.work.pads.size(), std::max<uint64_t>(bytes / pad_bytes, 1)));

	size->take(row_staging_bytes(program, most));
	size->take(append_temp_bytes(program, most));
	return most;
}

/* ---- how many rows there are ------------------------------------------------------ */

/*
 * A row set has room for all rows that are read, of which a filter may leave few. Where that is much of what is free, they
 * are counted first, by a program that reads the filter's columns alone.
 */
void
JoinJob::choose_counted()
{
	const uint64_t available = device_->residency()->available();

	for (size_t i = 0; i < levels_.size(); i++)
	{
		const Source *source = sources_[i + 1].get();
		const uint64_t bytes = source == nullptr ? 0 : row_set_bytes(source->program, source->work.rows);

		if (bytes == 0 || bytes < join_sizes.count_bytes || source->work.rows > ROW_SET_MAX_ROWS ||
			bytes < available / join_sizes.count_share)
			continue;
		if (const DeviceProgram *counts = plan_->count_program(i))
			counters_[i] = std::make_unique<Source>(device_, arena_, cursors_[i + 1], plan_->levels()[i].count_source(), *counts);
	}
}

/* ---- passes ---------------------------------------------------------------------- */

/*
 * So many bytes, which stay for later passes: a pass is not to find no room when cursor 0 has been read. They are not among what groups free that
 * begin again. The device is done with what was there.
 */
char *
JoinJob::pass_memory(Working *piece, uint64_t bytes)
{
	if (piece->bytes < bytes)
	{
		drop_pass_memory(piece);
		(void) allocate(bytes);
		*piece = working_.back();
		working_.pop_back();
	}
	return piece->memory;
}

void
JoinJob::drop_pass_memory(Working *piece)
{
	if (piece->memory != nullptr)
		device_->residency()->free(piece->memory, piece->bytes, lane_->stream);
	*piece = Working{};
}

/* The split level's rows and table of another pass, in place of those that it has. */
void
JoinJob::build_pass(uint32_t pass)
{
	Level	   &level = levels_[split_];

	steps_.enter(JoinStep::Build);
	(void) sync();
	pass_ = pass;
	level.table = JoinTable{};
	level.facts = KeyFacts{};
	level.side_rows = 0;
	if (pass_list_[pass].rows == 0)
		return;
	(void) open_source(split_ + 1);
	level.most_rows = pass_list_[pass].rows;
	enqueue_rows(split_, pass_pads_, pass_space_.memory);
	(void) sync();
	close_source(split_ + 1);
	level.side_rows = appended(outcomes_->sides[split_].rows);
	level.facts = outcomes_->sides[split_].keys;
	build_tables({split_});
}

/* Of a row set without columns only the state is in memory. */
void
JoinJob::count_rows(const std::vector<size_t> &numbers)
{
	const size_t lasting = working_.size();
	std::vector<uint32_t> most(levels_.size());
	uint64_t	staging_bytes = 0;

	for (size_t i : numbers)
		if (counters_[i] != nullptr)
		{
			Carver		size;

			most[i] = staged_pads(*counters_[i], &size);
			staging_bytes = std::max(staging_bytes, size.taken());
		}
	if (staging_bytes == 0)
		return;

	char	   *staging = allocate(staging_bytes);

	for (size_t i : numbers)
	{
		Source	   *source = counters_[i].get();

		if (source == nullptr)
			continue;

		const uint64_t capacity = std::min<uint64_t>(source->work.rows, ROW_SET_MAX_ROWS);

		append_source(source, RowTests(), row_set(source->program, capacity, allocate(row_set_bytes(source->program, capacity))),
					  most[i], staging, &outcomes_->sides[i].rows);
	}
	(void) sync();
	for (size_t i : numbers)
		if (counters_[i] != nullptr)
		{
			levels_[i].most_rows = appended(outcomes_->sides[i].rows);
			end_source(&counters_[i]);
			steps_.counted();
		}
	free_working(lasting);
}

/* One piece of staging memory serves them one after the other. */
void
JoinJob::build_rows(const std::vector<size_t> &numbers)
{
	std::vector<uint32_t> most(levels_.size());
	uint64_t	staging_bytes = 0;

	for (size_t i : numbers)
	{
		if (way_.reduces)
			(void) open_source(i + 1);
		else
			levels_[i].most_rows = sources_[i + 1]->work.rows;
	}
	count_rows(numbers);
	for (size_t i : numbers)
	{
		const Source &source = *sources_[i + 1];

		if (i == split_)
			levels_[i].most_rows = pass_list_[0].rows;
		if (levels_[i].most_rows == 0)
			continue;
		if (levels_[i].most_rows > ROW_SET_MAX_ROWS)
			throw Refusal{"an inner side of the join has too many rows for the device"};

		Carver		size;

		most[i] = staged_pads(source, &size);
		staging_bytes = std::max(staging_bytes, size.taken());
		if (i == split_)
			pass_pads_ = most[i];

		const uint64_t bytes = row_set_bytes(source.program, levels_[i].most_rows);

		count_build(bytes);
		levels_[i].rows_memory = allocate(bytes);
		levels_[i].side = row_set(source.program, levels_[i].most_rows, levels_[i].rows_memory);
	}
	if (staging_bytes != 0)
	{
		const bool	splits = std::find(numbers.begin(), numbers.end(), split_) != numbers.end();
		char	   *staging = splits ? pass_memory(&pass_space_, staging_bytes) : allocate(staging_bytes);

		for (size_t i : numbers)
			if (most[i] != 0)
				enqueue_rows(i, most[i], staging);
		(void) sync();
		release(staging);
	}
	for (size_t i : numbers)
	{
		if (most[i] != 0)
		{
			levels_[i].side_rows = appended(outcomes_->sides[i].rows);
			levels_[i].facts = levels_[i].plan->split->sought ? outcomes_->sides[i].keys : KeyFacts{};
			figures_->build_rows += i == split_ ? 0 : levels_[i].side_rows;
		}
		if (i == split_)
			close_source(i + 1);
		else
			end_source(&sources_[i + 1]);
	}
}

JoinKeys
JoinJob::keys_of(const Level &level) const
{
	JoinKeys	keys = {};

	keys.nkeys = static_cast<uint32_t>(level.plan->split->key_types.size());
	if (keys.nkeys > JOIN_MAX_KEYS)
		throw Refusal{"a join has too many keys for the device"};
	std::copy(level.side.column, level.side.column + keys.nkeys, keys.key);
	return keys;
}

void
JoinJob::enqueue_table(BuildingTable *building)
{
	const size_t number = building->number;
	Level	   &level = levels_[number];
	const JoinTablePlan &plan = building->plan;

	if (number == split_)
	{
		build_bytes_ -= pass_table_.bytes;
		level.table_memory = pass_memory(&pass_table_, plan.table_bytes);
		count_build(pass_table_.bytes);
		building->temp = pass_memory(&pass_space_, plan.temp_bytes);
	}
	else
	{
		level.table_memory = plan.table_bytes != 0 ? allocate(plan.table_bytes) : nullptr;
		building->temp = plan.temp_bytes != 0 ? allocate(plan.temp_bytes) : nullptr;
	}
	start();
	check(build_join_table(plan, keys_of(level), level.table_memory, building->temp, &level.table, table_words_ + number,
						   &outcomes_->sides[number].table, lane_->stream), "building a table");
}

/* Some have to be built once more: those alone remain. */
void
JoinJob::finish_tables(std::vector<BuildingTable> *building)
{
	std::vector<BuildingTable> again;

	(void) sync();
	for (BuildingTable &of : *building)
	{
		Level	   &level = levels_[of.number];

		release(of.temp);
		switch (finish_join_table(outcomes_->sides[of.number].table, &of.plan, &level.table))
		{
			case JoinTableEnd::Done:
				count_build(of.number != split_ ? of.plan.table_bytes : 0);
				break;
			case JoinTableEnd::Again:
				release(level.table_memory);
				enqueue_table(&of);
				again.push_back(of);
				break;
			case JoinTableEnd::Collision:
				throw Refusal{"two keys of the join have one hash"};
		}
	}
	*building = std::move(again);
}

/* Together, as long as their temporary memory is little. */
void
JoinJob::build_tables(const std::vector<size_t> &numbers)
{
	std::vector<BuildingTable> building;
	uint64_t	temp_bytes = 0;

	for (size_t i : numbers)
	{
		const Level &level = levels_[i];
		BuildingTable table = {i, {}, nullptr};

		if (!level.plan->split->sought || level.side_rows == 0)
			continue;
		plan_join_table(keys_of(level), level.side_rows, level.facts, level.plan->split->range != 0, &table.plan);
		temp_bytes += table.plan.temp_bytes;
		if (temp_bytes > STAGING_BYTES)
			while (!building.empty())
			{
				finish_tables(&building);
				temp_bytes = table.plan.temp_bytes;
			}
		enqueue_table(&table);
		building.push_back(table);
	}
	while (!building.empty())
		finish_tables(&building);
}

}  // namespace cuda
}  // namespace gpuvm
