/*
 * cpu_join_passes.cc: inner sides that do not fit memory. Their rows are counted before memory is taken for them, so that what a
 * condition leaves out takes none. Where they still do not fit, one level's rows are built and met in several passes, and all
 * rows of cursor 0 go through the levels in each.
 *
 * How much a table takes is known when it is there. So first only rows count, of which there is a bound; if the job then finds no
 * memory, or the sides come to more than they may, they are counted, with as much for their tables as any may take. A job that
 * finds none again, as its groups grow beside them, is left half as much for them each time.
 *
 * A pass has the rows whose keys' hashes lie in its share, and the lanes whose do: what is equal meets in one pass, and
 * a lane or a row is in one pass only, so every kind of join is what it is without passes. Of an inner join without such
 * keys, or with one key of too many rows, a pass has a stretch of rows and all lanes: each pair is still in one pass.
 */
#include <algorithm>
#include <cstring>

#include "vm/cpu_join_job.h"
#include "vm/join_keys.h"
#include "vm/memory_budget.h"

namespace gpuvm::cpu_join {

uint64_t	join_room = 0;

namespace {

constexpr uint32_t STEP_ROWS = 4 * VECTOR;	/* that are looked at before some of them are kept */
constexpr uint64_t TABLE_BYTES = 40;	/* a row, of compact ones at most, but for a few small tables */
constexpr uint32_t MOST_PASSES = 32;	/* each reads cursor 0, which PostgreSQL's plan reads once */

/* Low bits of the hash: slots and groups are found by the first ones. */
uint32_t
bin_of(uint64_t word)
{
	return static_cast<uint32_t>(mix(word)) % JOIN_BINS;
}

void
copy_values(const JoinColumn &from, const uint16_t *rows, uint32_t n, char *to)
{
	const auto copy = [&](auto zero)
	{
		using V = decltype(zero);
		const V    *values = reinterpret_cast<const V *>(from.values);

		for (uint32_t i = 0; i < n; i++)
			reinterpret_cast<V *>(to)[i] = values[rows[i]];
	};

	switch (type_width(from.type))
	{
		case 1: copy(uint8_t{}); break;
		case 4: copy(uint32_t{}); break;
		default: copy(uint64_t{}); break;
	}
}

}  // namespace

/* Memory that there is for the inner sides which are to be built, if they want so much. */
uint64_t
JoinProgram::memory_for(uint64_t wanted) const
{
	JobMemory  *const job = JobMemory::current();

	if (join_room != 0)
		return join_room;
	return job == nullptr ? UINT64_MAX : job->budget()->most(job, wanted);
}

uint64_t
JoinProgram::bytes_of_rows(const Level &level, uint64_t rows)
{
	return rows * (level.side.bytes_a_row + (level.split->sought ? TABLE_BYTES : 0));
}

/* Are the sides to be counted before anything is taken for them, as they would not fit if no row is left out? */
bool
JoinProgram::counts_first() const
{
	const bool	tables = may_pass_ && (shortages_ > 0 || join_room != 0);
	uint64_t	bytes = 0;

	for (const std::unique_ptr<Level> &level : levels_)
		if (level->side.building)
		{
			const uint64_t rows = level->side.building->reserved;

			bytes += tables ? bytes_of_rows(*level, rows) : rows * level->side.bytes_a_row;
		}
	return bytes > (tables ? room(bytes) : memory_for(bytes));
}

/* What counted sides may take. */
uint64_t
JoinProgram::room(uint64_t wanted) const
{
	const uint64_t memory = memory_for(wanted);
	/* the rest is for threads, groups and rows */
	uint64_t	bytes = join_room != 0 ? memory : memory / 4 * 3 >> (shortages_ > 0 ? shortages_ - 1 : 0);

	if (limit_ > 0)
	{
		uint64_t	found = 0;

		for (const std::unique_ptr<Level> &level : levels_)
			found += level->side.building ? 0 : level->side.bytes();
		bytes = std::min(bytes, limit_ - std::min(limit_, found));
	}
	return bytes;
}

/* All tasks, to be counted. */
void
JoinProgram::begin_counting()
{
	row_tasks_.clear();
	for (size_t i = 0; i < levels_.size(); i++)
	{
		const Level &level = *levels_[i];

		if (has_bins(level))
			levels_[i]->side.bins.assign(level.side.tasks.size() * JOIN_BINS, 0);
		for (size_t t = 0; t < level.side.tasks.size(); t++)
			row_tasks_.emplace_back(i, t);
	}
	phase_ = Phase::Count;
}

/* Gives back a level's rows. */
void
JoinProgram::drop_rows(BuildSide *side)
{
	/* before others are made */
	side->building = nullptr;
	side->built = nullptr;
	side->matched = Pages();
	side->matched_bytes = 0;
	side->built = side->building = std::make_shared<InnerRows>();
}

/* The sides have come to more than they may: begins again, if that may help; without indexes, so that no outcome depends on what ran before. */
bool
JoinProgram::count_instead()
{
	if (!may_pass_ || counted_)
		return false;
	refusal_ = nullptr;
	for (size_t i = 0; i < levels_.size(); i++)
	{
		BuildSide  &side = levels_[i]->side;
		const bool	found = !side.building;

		drop_rows(&side);
		if (!found)
			continue;
		side.key.clear();
		list_tasks(i);
	}
	if (refusal_)
		return false;
	empty_ = false;
	figures_.indexes_used = 0;
	figures_.index_bytes = 0;
	figures_.build_rows = 0;
	figures_.build_bytes = 0;
	rows_bytes_ = 0;
	table_ = 0;
	begin_counting();
	return true;
}

uint64_t
JoinProgram::rows_counted(const Level &level)
{
	uint64_t	rows = 0;

	for (const BuildSide::Task &task : level.side.tasks)
		rows += task.total;
	return rows;
}

bool
JoinProgram::has_bins(const Level &level)
{
	return level.split->sought && level.split->range == 0;
}

/* Runs a task's rows and calls f(number of rows, columns, valid rows, bins), some rows at a time. */
template <typename F>
void
JoinProgram::each_step(const Level &level, BuildSide::Task &task, F f) const
{
	const BuildSide &side = level.side;
	const JoinTablet &tablet = cursors_[level.split - split_.levels.data() + 1].tablets[task.tablet];
	const std::vector<Type> &types = side.program->result_types;
	const std::unique_ptr<CpuState> state = side.program->new_state();
	WorkerState &s = static_cast<WorkerState &>(*state);
	std::vector<ResultColumnLayout> layout(types.size() + 1);
	std::vector<JoinColumn> columns;
	const Pages area = Pages::of_heap(result_layout(types.data(), static_cast<int>(types.size()), STEP_ROWS + VECTOR, layout.data()) + 64);
	const size_t nkeys = has_bins(level) ? level.split->key_types.size() : 0;
	uint64_t	words[VECTOR], valid[STEP_ROWS / 64];
	uint8_t		bins[STEP_ROWS];

	for (size_t c = 0; c < types.size(); c++)
		columns.push_back(JoinColumn{types[c], area.as<char>() + layout[c].values,
									 side.ranges[c].may_null ? reinterpret_cast<const uint64_t *>(area.as<char>() + layout[c].nulls) : nullptr});

	const bool	packed = join_keys_packed(columns.data(), nkeys);

	s.area = area.as<char>();
	s.layout = layout.data();
	task.errors = 0;
	if (!side.program->bind(s, tablet.tablet))
	{
		task.errors = ERR_INT_OVERFLOW;
		return;
	}
	for (uint32_t row = task.first; row < task.last; row += STEP_ROWS)
	{
		for (size_t c = 0; c < types.size(); c++)
			memset(area.as<char>() + layout[c].nulls, 0, (STEP_ROWS + VECTOR) / 8);
		s.emitted = 0;
		side.program->run_bound(s, row, std::min(task.last, row + STEP_ROWS), tablet.masked, tablet.nmasked);
		for (uint32_t at = 0; nkeys > 0 && at < s.emitted; at += VECTOR)
		{
			const uint32_t n = std::min(VECTOR, s.emitted - at);

			join_words(columns.data(), nkeys, packed, at, n, words, valid + at / 64);
			for (uint32_t i = 0; i < n; i++)
				bins[at + i] = static_cast<uint8_t>(bit_get(valid + at / 64, i) ? bin_of(words[i]) : 0);
		}
		if (s.emitted > 0)
			f(s.emitted, columns, valid, bins);
	}
	task.errors = s.errors;
}

/* How many rows there will be; of a level with keys, in each share of their hashes. */
void
JoinProgram::count_rows_of(Level &level, size_t number)
{
	BuildSide  &side = level.side;
	BuildSide::Task &task = side.tasks[number];
	uint32_t   *counts = has_bins(level) ? &side.bins[number * JOIN_BINS] : nullptr;
	const bool	nulls = level.split->kind == JoinKind::Full;

	task.total = 0;
	each_step(level, task, [&](uint32_t n, const std::vector<JoinColumn> &, const uint64_t *valid, const uint8_t *bins)
	{
		task.total += n;
		for (uint32_t i = 0; counts != nullptr && i < n; i++)
			counts[bins[i]] += nulls || bit_get(valid, i);
	});
}

/* The pass's rows of a task. Those whose keys are null are something to a full join only. */
void
JoinProgram::build_counted(Level &level, BuildSide::Task &task)
{
	const InnerRows &to = *level.side.building;
	const bool	parted = is_parted(level) && by_hash_;
	const bool	nulls = level.split->kind == JoinKind::Full;
	const uint32_t first = pass_first(), end = pass_end();
	uint64_t	at = task.at;

	task.n = 0;
	each_step(level, task, [&](uint32_t n, const std::vector<JoinColumn> &columns, const uint64_t *valid, const uint8_t *bins)
	{
		uint16_t	rows[STEP_ROWS];
		uint32_t	kept = 0;

		for (uint32_t i = 0; i < n; i++)
		{
			rows[kept] = static_cast<uint16_t>(i);
			kept += !parted || (bins[i] >= first && bins[i] < end && (nulls || bit_get(valid, i)));
		}
		for (size_t c = 0; c < columns.size(); c++)
		{
			const JoinColumn &column = to.columns[c];

			copy_values(columns[c], rows, kept, const_cast<char *>(column.values) + at * type_width(column.type));
			for (uint32_t i = 0; column.nulls != nullptr && i < kept; i++)
				if (bit_get(columns[c].nulls, rows[i]))
					bit_set(const_cast<uint64_t *>(column.nulls), at + i);
		}
		at += kept;
		task.n += kept;
	});
}

/* Rows of the side that are built in this pass, by task. */
uint32_t
JoinProgram::rows_in_pass(const Level &level, size_t number) const
{
	const BuildSide &side = level.side;

	if (!is_parted(level))
		return side.tasks[number].total;
	if (!by_hash_)
		return number >= pass_first() && number < pass_end() ? side.tasks[number].total : 0;

	uint32_t	rows = 0;

	for (uint32_t bin = pass_first(); bin < pass_end(); bin++)
		rows += side.bins[number * JOIN_BINS + bin];
	return rows;
}

/* Where they will lie: one task's behind another's, but none shares a word of nulls. */
void
JoinProgram::place_counted(size_t number)
{
	BuildSide  &side = levels_[number]->side;
	const bool	nullable = side.nullable();
	uint64_t	at = 0;

	for (size_t i = 0; i < side.tasks.size(); i++)
	{
		const uint32_t rows = rows_in_pass(*levels_[number], i);

		side.tasks[i].at = at;
		side.tasks[i].n = 0;
		at += nullable ? align_up(rows, 64) : rows;
		if (rows > 0)
			row_tasks_.emplace_back(number, i);
	}
	side.building->reserved = at;
	take_pages(number);
}

/* Parts counts into passes of at most so many each; empty: one of them has more. */
std::vector<uint32_t>
JoinProgram::part(const std::vector<uint64_t> &counts, uint64_t most)
{
	std::vector<uint32_t> ends;
	uint64_t	rows = 0;

	for (size_t i = 0; i < counts.size(); i++)
	{
		if (counts[i] > most)
			return {};
		if (rows + counts[i] > most)
		{
			ends.push_back(static_cast<uint32_t>(i));
			rows = 0;
		}
		rows += counts[i];
	}
	ends.push_back(static_cast<uint32_t>(counts.size()));
	return ends;
}

/* All rows are counted: chooses the level that is built in passes, if there has to be one. */
void
JoinProgram::plan_passes()
{
	std::vector<size_t> order;
	uint64_t	all = 0;

	for (size_t i = 0; i < levels_.size(); i++)
	{
		const Level &level = *levels_[i];

		if (!level.side.building)
			continue;
		for (const BuildSide::Task &task : level.side.tasks)
			build_errors_ |= task.errors;
		all += bytes_of_rows(level, rows_counted(level));
		if (has_bins(level) || level.split->kind == JoinKind::Inner)
			order.push_back(i);
	}

	const uint64_t most = room(all);

	if (!may_pass_ || all <= most)
		return;
	std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b)
	{
		return bytes_of_rows(*levels_[a], rows_counted(*levels_[a])) > bytes_of_rows(*levels_[b], rows_counted(*levels_[b]));
	});
	for (size_t i : order)
	{
		const Level &level = *levels_[i];
		const uint64_t others = all - bytes_of_rows(level, rows_counted(level));
		const uint64_t rows = others < most ? (most - others) / std::max<uint64_t>(bytes_of_rows(level, 1), 1) : 0;
		std::vector<uint64_t> counts(JOIN_BINS);

		for (size_t at = 0; at < level.side.bins.size(); at++)
			counts[at % JOIN_BINS] += level.side.bins[at];
		by_hash_ = has_bins(level);
		pass_ends_ = by_hash_ ? part(counts, rows) : std::vector<uint32_t>();
		if (pass_ends_.empty() && level.split->kind == JoinKind::Inner)
		{
			by_hash_ = false;
			counts.clear();
			for (const BuildSide::Task &task : level.side.tasks)
				counts.push_back(task.total);
			pass_ends_ = part(counts, rows);
		}
		if (pass_ends_.empty() || (pass_ends_.size() > MOST_PASSES && join_room == 0))
		{
			pass_ends_.clear();
			continue;
		}
		parted_ = i;
		levels_[i]->side.key.clear();	/* it is no index */
		figures_.passes = static_cast<uint32_t>(pass_ends_.size());
		return;
	}
}

/* What is counted is built from here on. False: there will be none. */
bool
JoinProgram::begin_counted()
{
	counted_ = true;
	plan_passes();
	if (build_errors_ != 0)
		return false;
	row_tasks_.clear();
	for (size_t i = 0; i < levels_.size(); i++)
		if (levels_[i]->side.building)
			place_counted(i);
	return true;
}

bool
JoinProgram::next_pass()
{
	if (parted_ == NO_LEVEL || refusal_ || pass_ + 1 >= pass_ends_.size())
		return false;

	BuildSide  &side = levels_[parted_]->side;

	pass_++;
	drop_rows(&side);
	row_tasks_.clear();
	place_counted(parted_);
	rows_bytes_ = 0;
	table_ = 0;
	phase_ = Phase::NextPass;
	return true;
}

/* Takes away the lanes on their way into the level that are another pass's. */
void
JoinProgram::drop_lanes(LevelState &l, const JoinColumn *keys, size_t nkeys) const
{
	const bool	packed = join_keys_packed(keys, nkeys);
	const uint32_t first = pass_first(), end = pass_end();
	uint16_t	kept[BATCH_ROWS];
	uint32_t	n = 0;
	uint64_t	words[VECTOR], valid[VECTOR / 64];

	for (uint32_t at = 0; at < l.in.rows; at += VECTOR)
	{
		const uint32_t rows = std::min(VECTOR, l.in.rows - at);

		join_words(keys, nkeys, packed, at, rows, words, valid);
		for (uint32_t i = 0; i < rows; i++)
		{
			const uint32_t bin = bit_get(valid, i) ? bin_of(words[i]) : 0;

			kept[n] = static_cast<uint16_t>(at + i);
			n += bin >= first && bin < end;
		}
	}
	if (n == l.in.rows)
		return;
	for (size_t c = 0; c < l.in.types.size(); c++)
	{
		const int	column = static_cast<int>(c);
		uint64_t	nulls[BATCH_ROWS / 64] = {};

		/* rows ascend, so none is read behind where it is written */
		copy_values(JoinColumn{l.in.types[c], l.in.values(column), nullptr}, kept, n, l.in.values(column));
		for (uint32_t i = 0; i < n; i++)
			if (bit_get(l.in.nulls(column), kept[i]))
				bit_set(nulls, i);
		memcpy(l.in.nulls(column), nulls, sizeof(nulls));
	}
	l.in.rows = n;
}

}  // namespace gpuvm::cpu_join
