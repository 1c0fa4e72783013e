/*
 * cpu_join_passes.cc: inner sides that do not fit memory. Their rows are counted before memory is taken for them, so that what a
 * condition leaves out takes none. Where they still do not fit, one level's rows are built and met in several passes, and all
 * rows of cursor 0 go through the levels in each.
 *
 * How much a table takes is known when it is there. So first only rows count, of which there is a bound; if the job then finds no
 * memory, they are counted, with as much for their tables as they mostly take. A job that finds none again, as its groups grow
 * beside them or many keys are equal, is left half as much for them each time.
 *
 * A pass has the rows whose keys lie in its share, and the lanes whose do: what is equal meets in one pass, and a lane or a
 * row is in one pass only, so every kind of join is what it is without passes. One integer key is shared out by its values: a
 * pass leaves out what lies in other ranges before it reads more of it, and close values are still slots. Other keys are by their
 * hashes, as are integers of which a few ranges have most. Of an inner join without such keys, or with one key of too many
 * rows, a pass has a stretch of rows and all lanes: each pair is still in one pass.
 */
#include <algorithm>
#include <cstring>
#include <numeric>

#include "vm/cpu_join_job.h"
#include "vm/join_filter.h"
#include "vm/join_keys.h"
#include "vm/memory_budget.h"

namespace gpuvm::cpu_join {

uint64_t	join_room = 0;

namespace {

constexpr uint32_t STEP_ROWS = 4 * VECTOR;	/* that are looked at before some of them are kept */
constexpr uint64_t TABLE_BYTES = 30;	/* a row, of compact ones at most, but for a few small tables; */
constexpr uint64_t SLOT_BYTES = 4, EQUAL_BYTES = 12;	/* where keys are slots: a value; and a row, if some have the same key */
constexpr uint32_t MOST_PASSES = 32;	/* each reads cursor 0, which PostgreSQL's plan reads once */

/* Low bits of the hash: slots and groups are found by the first ones. */
uint32_t
hash_bin(uint64_t word)
{
	return static_cast<uint32_t>(mix(word)) % JOIN_BINS;
}

/* Rows without a key meet nothing, so any pass will do: of a full join's, by their number. */
uint32_t
null_bin(uint32_t row)
{
	return row % JOIN_BINS;
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
	return join_room != 0 ? memory : memory / 4 * 3 >> (shortages_ > 0 ? shortages_ - 1 : 0);
}

/* All tasks, to be counted. */
void
JoinProgram::begin_counting()
{
	row_tasks_.clear();
	for (size_t i = 0; i < levels_.size(); i++)
	{
		Level	   &level = *levels_[i];

		if (has_bins(level))
			choose_bins(level);
		for (size_t t = 0; t < level.side.tasks.size(); t++)
			row_tasks_.emplace_back(i, t);
	}
	phase_ = Phase::Count;
}

/* What a level's rows are counted by. */
void
JoinProgram::choose_bins(Level &level)
{
	const ValueRange &range = level.side.ranges[0];
	const uint64_t last = static_cast<uint64_t>(range.hi) - static_cast<uint64_t>(range.lo);

	level.side.bins.assign(bin_place(level.side.tasks.size(), Parting::Hash), 0);
	level.side.values = ValueBins();
	if (level.split->key_types.size() != 1 || !type_is_int(level.split->key_types[0]) || !range.may_value || range.lo > range.hi)
		return;
	level.side.values = ValueBins{true, static_cast<uint64_t>(range.lo), 0};
	while (last >> level.side.values.shift >= JOIN_BINS)
		level.side.values.shift++;
}

uint32_t
JoinProgram::bin_of(const Level &level, uint64_t word) const
{
	return by_ == Parting::Value ? level.side.values.of(word) : hash_bin(word);
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

/* Runs a task's rows and calls f(number of rows, columns, keys' words, valid rows), some rows at a time. */
template <typename F>
void
JoinProgram::each_step(const Level &level, BuildSide::Task &task, RowFilter *filter, F f) const
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
	uint64_t	words[STEP_ROWS], valid[STEP_ROWS / 64];

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
	if (filter)
		filter->bind(s.columns, true);
	for (uint32_t row = task.first; row < task.last; row += STEP_ROWS)
	{
		for (size_t c = 0; c < types.size(); c++)
			memset(area.as<char>() + layout[c].nulls, 0, (STEP_ROWS + VECTOR) / 8);
		s.emitted = 0;
		side.program->run_bound(s, row, std::min(task.last, row + STEP_ROWS), tablet.masked, tablet.nmasked, filter);
		for (uint32_t at = 0; nkeys > 0 && at < s.emitted; at += VECTOR)
			join_words(columns.data(), nkeys, packed, at, std::min(VECTOR, s.emitted - at), words + at, valid + at / 64);
		if (s.emitted > 0)
			f(s.emitted, columns, words, valid);
	}
	task.errors = s.errors;
}

/* How many rows there will be; of a level with keys, in each share of them. */
void
JoinProgram::count_rows_of(Level &level, size_t number)
{
	BuildSide  &side = level.side;
	BuildSide::Task &task = side.tasks[number];
	const ValueBins values = side.values;
	const bool	nulls = level.split->kind == JoinKind::Full;
	uint32_t   *by_hash = has_bins(level) ? &side.bins[bin_place(number, Parting::Hash)] : nullptr;
	uint32_t   *by_value = values.any ? &side.bins[bin_place(number, Parting::Value)] : nullptr;

	task.total = 0;
	each_step(level, task, nullptr, [&](uint32_t n, const std::vector<JoinColumn> &, const uint64_t *words, const uint64_t *valid)
	{
		for (uint32_t i = 0; by_hash != nullptr && i < n; i++)
		{
			const bool	is_valid = bit_get(valid, i);

			if (!is_valid && !nulls)
				continue;
			by_hash[is_valid ? hash_bin(words[i]) : null_bin(task.total + i)]++;
			if (by_value != nullptr)
				by_value[is_valid ? values.of(words[i]) : null_bin(task.total + i)]++;
		}
		task.total += n;
	});
}

/* The pass's rows of a task. Those whose keys are null are something to a full join only. */
void
JoinProgram::build_counted(Level &level, BuildSide::Task &task)
{
	const InnerRows &to = *level.side.building;
	const bool	parted = is_parted_by_key(level);
	const bool	nulls = level.split->kind == JoinKind::Full;
	const uint32_t first = pass_first(), end = pass_end();
	const std::vector<KeyFilter> filters = parted && !nulls ? pass_filters(level) : std::vector<KeyFilter>();
	RowFilter	filter(filters);
	uint64_t	at = task.at;
	uint32_t	seen = 0;

	task.n = 0;
	each_step(level, task, filters.empty() ? nullptr : &filter,
			  [&](uint32_t n, const std::vector<JoinColumn> &columns, const uint64_t *words, const uint64_t *valid)
	{
		uint16_t	rows[STEP_ROWS];
		uint32_t	kept = 0;

		for (uint32_t i = 0; i < n; i++)
		{
			const bool	is_valid = !parted || bit_get(valid, i);
			const uint32_t bin = !parted ? 0 : is_valid ? bin_of(level, words[i]) : null_bin(seen + i);

			rows[kept] = static_cast<uint16_t>(i);
			kept += !parted || (bin >= first && bin < end && (nulls || is_valid));
		}
		seen += n;
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
	if (by_ == Parting::Tasks)
		return number >= pass_first() && number < pass_end() ? side.tasks[number].total : 0;

	uint32_t	rows = 0;

	for (uint32_t bin = pass_first(); bin < pass_end(); bin++)
		rows += side.bins[bin_place(number, by_) + bin];
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

/* What a level's parts take, with their tables, as counted. */
std::vector<uint64_t>
JoinProgram::bytes_of_parts(const Level &level, Parting by) const
{
	const BuildSide &side = level.side;
	std::vector<uint64_t> rows(by == Parting::Tasks ? side.tasks.size() : JOIN_BINS), bytes;
	bool		equal = shortages_ > 1;	/* what was tried before was too little */

	if (by == Parting::Tasks)
		for (size_t t = 0; t < side.tasks.size(); t++)
			rows[t] = side.tasks[t].total;
	else
		for (size_t t = 0; t < side.tasks.size(); t++)
			for (uint32_t bin = 0; bin < JOIN_BINS; bin++)
				rows[bin] += side.bins[bin_place(t, by) + bin];
	for (uint64_t n : rows)
		equal = equal || n > side.values.width();
	for (uint64_t n : rows)
	{
		uint64_t	most = bytes_of_rows(level, n);

		if (by == Parting::Value)
			most = std::min(most, n * side.bytes_a_row + side.values.width() * SLOT_BYTES + (equal ? n * EQUAL_BYTES : 0));
		bytes.push_back(most);
	}
	return bytes;
}

uint64_t
JoinProgram::bytes_counted(const Level &level) const
{
	const std::vector<uint64_t> bytes = bytes_of_parts(level, level.side.values.any ? Parting::Value : Parting::Tasks);

	return std::accumulate(bytes.begin(), bytes.end(), uint64_t(0));
}

/* Parts into passes that take so much each; empty: one of them takes more. */
std::vector<uint32_t>
JoinProgram::part(const std::vector<uint64_t> &bytes, uint64_t most)
{
	std::vector<uint32_t> ends;
	uint64_t	taken = 0;

	for (size_t i = 0; i < bytes.size(); i++)
	{
		if (bytes[i] > most)
			return {};
		if (taken + bytes[i] > most)
		{
			ends.push_back(static_cast<uint32_t>(i));
			taken = 0;
		}
		taken += bytes[i];
	}
	ends.push_back(static_cast<uint32_t>(bytes.size()));
	return ends;
}

/* Is the level built in passes that take so much each? */
bool
JoinProgram::try_parts(size_t number, uint64_t most)
{
	const Level &level = *levels_[number];

	for (Parting by : {Parting::Value, Parting::Hash, Parting::Tasks})
	{
		if (by == Parting::Value ? !level.side.values.any : by == Parting::Hash ? !has_bins(level) : level.split->kind != JoinKind::Inner)
			continue;
		pass_ends_ = part(bytes_of_parts(level, by), most);
		if (pass_ends_.empty() || (pass_ends_.size() > MOST_PASSES && join_room == 0))
			continue;
		parted_ = number;
		by_ = by;
		/* a full join before it is to know all lanes in the first pass */
		if (by == Parting::Value && std::none_of(split_.levels.begin(), split_.levels.begin() + static_cast<long>(number),
												 [](const JoinLevel &before) { return before.kind == JoinKind::Full; }))
			parted_column_ = key_column(split_, number);
		levels_[number]->side.key.clear();	/* it is no index */
		figures_.passes = static_cast<uint32_t>(pass_ends_.size());
		return true;
	}
	pass_ends_.clear();
	return false;
}

/* All rows are counted: chooses the level that is built in passes, if there has to be one. */
void
JoinProgram::plan_passes()
{
	std::vector<std::pair<uint64_t, size_t>> order;	/* what takes most first */
	uint64_t	all = 0;

	for (size_t i = 0; i < levels_.size(); i++)
	{
		const Level &level = *levels_[i];

		if (!level.side.building)
			continue;
		for (const BuildSide::Task &task : level.side.tasks)
			build_errors_ |= task.errors;
		order.emplace_back(bytes_counted(level), i);
		all += order.back().first;
	}

	const uint64_t most = room(all);

	/* what is expected to fit is tried, but not twice */
	if (!may_pass_ || all <= (shortages_ == 0 ? memory_for(all) : most))
		return;
	std::stable_sort(order.begin(), order.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
	for (const auto &[bytes, i] : order)
		if (all - bytes < most && try_parts(i, most - (all - bytes)))
			return;
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
	if (parted_ == NO_LEVEL || pass_ + 1 >= pass_ends_.size())
		return false;

	BuildSide  &side = levels_[parted_]->side;

	pass_++;
	drop_rows(&side);
	row_tasks_.clear();
	place_counted(parted_);
	table_ = 0;
	phase_ = Phase::NextPass;
	if (pass_filter_ != NO_FILTER)
		filters_[pass_filter_] = pass_filter(filters_[pass_filter_].column);
	return true;
}

/* The pass's values, of a column among those that a program uses. */
KeyFilter
JoinProgram::pass_filter(size_t column) const
{
	const ValueBins &values = levels_[parted_]->side.values;

	return KeyFilter{column, static_cast<int64_t>(values.lo + pass_first() * values.width()), (pass_end() - pass_first()) * values.width(), nullptr, Pages()};
}

/* What leaves out the other passes' rows of the parted level, if that is seen before they are run; they have been run when they were counted. */
std::vector<KeyFilter>
JoinProgram::pass_filters(const Level &level) const
{
	const CpuProgram &program = *level.side.program;
	const size_t column = by_ == Parting::Value ? used_column(program, result_column(program.program, 0)) : NOT_USED;
	std::vector<KeyFilter> filters;

	if (column != NOT_USED)
		filters.push_back(pass_filter(column));
	return filters;
}

/* Are all rows of a tablet of cursor 0 other passes'? A null, and what no row has, is in a pass too. */
bool
JoinProgram::is_other_pass(const TabletHeader *tablet) const
{
	if (parted_column_ < 0 || static_cast<uint32_t>(parted_column_) >= tablet->ncols)
		return false;

	const ValueRange range = column_range(tablet_chunks(tablet)[parted_column_]);
	const ValueBins &values = levels_[parted_]->side.values;
	const uint32_t first = pass_first(), end = pass_end();
	const int64_t lo = static_cast<int64_t>(values.lo);

	if (!type_is_int(range.type) || (range.may_null && first == 0) || (range.may_value && range.lo < lo && end == JOIN_BINS))
		return false;
	return !range.may_value || range.hi < lo || values.of(static_cast<uint64_t>(std::max(range.lo, lo))) >= end
		|| values.of(static_cast<uint64_t>(range.hi)) < first;
}

/* Takes away the lanes on their way into the level that are another pass's. */
void
JoinProgram::drop_lanes(const Level &level, LevelState &l, const JoinColumn *keys, size_t nkeys) const
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
			const uint32_t bin = bit_get(valid, i) ? bin_of(level, words[i]) : 0;

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
