/* cpu_join_pairs.cc: which pairs a level's lanes make, gathered; what of them matches, and what is left over. */
#include <algorithm>
#include <cstring>

#include "vm/cpu_join_job.h"

namespace gpuvm::cpu_join {

namespace {

constexpr uint32_t FIRST_ROUND = 4;	/* rows that a lane which needs one match tries first; */
constexpr uint32_t NEXT_ROUND = 4;	/* the next round ends so many times as far */

template <typename V>
void
gather_values(const char *from, const uint32_t *index, uint32_t n, char *to)
{
	const V    *v = reinterpret_cast<const V *>(from);
	V		   *d = reinterpret_cast<V *>(to);

	for (uint32_t i = 0; i < n; i++)
		d[i] = v[index[i]];
}

void
gather_column(int width, const char *from, const uint32_t *index, uint32_t n, char *to)
{
	switch (width)
	{
		case 1: gather_values<uint8_t>(from, index, n, to); break;
		case 4: gather_values<uint32_t>(from, index, n, to); break;
		default: gather_values<uint64_t>(from, index, n, to); break;
	}
}

}  // namespace

/* Its batch is complete. */
void
JoinProgram::begin_level(JoinState &s, size_t number) const
{
	const Level &level = *levels_[number];
	LevelState &l = *s.levels[number];

	l.step = Step::Pairs;
	l.lane = l.at = l.run = l.vector = l.npairs = 0;
	memset(l.matched, 0, sizeof(l.matched));

	const bool	once = level.split->kind == JoinKind::Semi || level.split->kind == JoinKind::Anti;

	l.round = 0;
	l.round_end = once ? FIRST_ROUND : UINT32_MAX;
	l.more = false;
	if (!level.split->sought)
	{
		if (level.factor)
			std::fill_n(l.count, l.in.rows, static_cast<uint32_t>(level.side.built->rows));
		if (!level.condition.program && once)
		{
			/* any row will do */
			if (level.side.built->rows > 0)
				memset(l.matched, 0xff, sizeof(l.matched));
			l.step = Step::Unmatched;
		}
		return;
	}

	std::vector<JoinColumn> keys;

	for (int place : level.split->probe)
		keys.push_back(JoinColumn{l.in.types[place], l.in.values(place),
								  level.carried[place].null_count > 0 ? l.in.nulls(place) : nullptr});
	if (is_parted_by_key(level))
		drop_lanes(level, l, keys.data(), keys.size());
	if (const int32_t range = level.split->range)
		level.side.built->table.probe_range(range & RANGE_LO ? &keys.front() : nullptr, range & RANGE_HI ? &keys.back() : nullptr,
									 range & RANGE_LO_STRICT, range & RANGE_HI_STRICT, l.in.rows, l.first, l.count);
	else
		level.side.built->table.probe(keys.data(), l.in.rows, &l.missing, l.first, l.count);
	if (!level.side.built->table.exact())
		return;

	/* what only has to exist is known */
	if (!level.condition.program && once)
	{
		for (uint32_t i = 0; i < l.in.rows; i++)
			if (l.count[i] > 0)
				bit_set(l.matched, i);
		l.step = Step::Unmatched;
	}
}

/*
 * Fills lanes and rows from what the lanes found; false: there was nothing left. Lanes
 * that need one match try a few rows each, and more only where none of these was one.
 */
bool
JoinProgram::sought_pairs(const Level &level, LevelState &l) const
{
	const JoinTable &table = level.side.built->table;
	const JoinOrder order = table.order();
	const bool	once = level.split->kind == JoinKind::Semi || level.split->kind == JoinKind::Anti;
	uint32_t	n = 0;

	if (table.max_matches() <= 1 && table.exact())
	{
		/* one row or none a lane */
		const uint32_t end = std::min(l.in.rows, l.lane + VECTOR);

		for (uint32_t lane = l.lane; lane < end; lane++)
		{
			l.lanes[n] = lane;
			l.rows[n] = l.first[lane];
			n += l.count[lane];
		}
		l.lane = end;
		if (order)
			for (uint32_t i = 0; i < n; i++)
				l.rows[i] = order[l.rows[i]];
		l.npairs = n;
		return n > 0 || end < l.in.rows;
	}

	std::vector<JoinColumn> keys;

	if (!table.exact())
		for (int place : level.split->probe)
			keys.push_back(JoinColumn{l.in.types[place], l.in.values(place), nullptr});
	for (;;)
	{
		if (l.lane >= l.in.rows)
		{
			/* a round ends with its pairs: they may be matches */
			if (n > 0 || !l.more)
				break;
			l.round = l.round_end;
			l.round_end = l.round > UINT32_MAX / NEXT_ROUND ? UINT32_MAX : l.round * NEXT_ROUND;
			l.more = false;
			l.lane = 0;
			l.at = l.round;
		}

		const bool	done = once && bit_get(l.matched, l.lane);
		const uint32_t end = done ? 0 : std::min(l.count[l.lane], l.round_end);

		if (keys.empty() && l.at < end)
		{
			const uint32_t take = std::min(end - l.at, VECTOR - n);
			const uint32_t at = l.first[l.lane] + l.at;

			for (uint32_t i = 0; i < take; i++)
			{
				l.lanes[n + i] = l.lane;
				l.rows[n + i] = order ? order[at + i] : at + i;
			}
			n += take;
			l.at += take;
		}
		for (; l.at < end && n < VECTOR; l.at++)
		{
			const uint32_t row = order ? order[l.first[l.lane] + l.at] : l.first[l.lane] + l.at;

			l.lanes[n] = l.lane;
			l.rows[n] = row;
			n += table.same_keys(row, keys.data(), l.lane);
		}
		if (l.at < end)
			break;
		l.more = l.more || (!done && end < l.count[l.lane]);
		l.lane++;
		l.at = l.round;
	}
	l.npairs = n;
	return n > 0;
}

/* The same, of every row. */
bool
JoinProgram::cross_pairs(const Level &level, LevelState &l) const
{
	const std::vector<JoinRun> &runs = level.side.built->runs;
	const bool	once = level.split->kind == JoinKind::Semi || level.split->kind == JoinKind::Anti;
	uint32_t	n = 0;

	for (; l.lane < l.in.rows && n < VECTOR; l.lane++, l.run = l.at = 0)
	{
		if (once && bit_get(l.matched, l.lane))
			continue;
		for (; l.run < runs.size() && n < VECTOR; l.run++, l.at = 0)
		{
			const JoinRun &run = runs[l.run];
			const uint32_t take = std::min(run.n - l.at, VECTOR - n);

			for (uint32_t i = 0; i < take; i++)
			{
				l.lanes[n] = l.lane;
				l.rows[n++] = static_cast<uint32_t>(run.at + l.at + i);
			}
			l.at += take;
			if (l.at < run.n)
				break;
		}
		if (l.run < runs.size())
			break;
	}
	l.npairs = n;
	return n > 0;
}

bool
JoinProgram::unmatched_lanes(const Level &level, LevelState &l) const
{
	const bool	want = level.split->kind == JoinKind::Semi;
	uint32_t	n = 0;

	for (; l.lane < l.in.rows && n < VECTOR; l.lane++)
	{
		l.lanes[n] = l.lane;
		l.rows[n] = NO_ROW;
		n += bit_get(l.matched, l.lane) == want;
	}
	l.npairs = n;
	return n > 0;
}

/* Some lane has matched the row. */
void
JoinProgram::mark_row(const Level &level, uint32_t row)
{
	uint64_t   *word = level.side.matched.as<uint64_t>() + row / 64;
	const uint64_t bit = uint64_t(1) << row % 64;

	if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
		__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
}

/* Rows that no lane has matched. */
bool
JoinProgram::unmatched_rows(const Level &level, LevelState &l) const
{
	const std::vector<JoinRun> &runs = level.side.built->runs;
	const uint64_t *matched = level.side.matched.as<uint64_t>();
	uint32_t	n = 0;

	for (; l.run < l.run_end; l.run++, l.at = 0)
	{
		for (; l.at < runs[l.run].n && n < VECTOR; l.at++)
		{
			const uint64_t row = runs[l.run].at + l.at;

			if (row % 64 == 0 && matched[row / 64] == UINT64_MAX)
			{
				l.at += 63;
				continue;
			}
			l.lanes[n] = NO_ROW;
			l.rows[n] = static_cast<uint32_t>(row);
			n += !bit_get(matched, row);
		}
		if (l.at < runs[l.run].n)
			break;
	}
	l.npairs = n;
	return n > 0;
}

/* Copies the pairs' values to the stage's vectors. */
void
JoinProgram::gather(const Level &level, const Stage &stage, LevelState &l, WorkerState &w,
					const std::vector<char *> &values, const std::vector<uint64_t *> &nulls) const
{
	const uint32_t n = l.npairs;
	const bool	no_rows = n > 0 && l.rows[0] == NO_ROW;	/* all or none */
	const bool	no_lanes = n > 0 && l.lanes[0] == NO_ROW;
	const bool	in_place = n > 0 && l.lanes[0] % VECTOR == 0 && l.lanes[n - 1] - l.lanes[0] == n - 1
		&& level.split->sought && level.side.built->table.max_matches() <= 1;

	for (BoundColumn &bound : w.columns)
	{
		const int	number = static_cast<int>(bound.chunk - stage.chunks.data());
		const Stage::Column &column = stage.columns[number];
		const int	width = type_width(bound.chunk->type);
		const uint64_t *from_nulls = nullptr;
		const uint32_t *index = column.carried ? l.lanes : l.rows;

		bound.nulls = nullptr;
		if (column.carried ? no_lanes : no_rows)
		{
			memset(values[number], 0, VECTOR * width);
			memset(nulls[number], 0xff, VECTOR / 8);
			bound.nulls = nulls[number];
		}
		else if (column.carried)
		{
			const bool	nullable = level.carried[column.index].null_count > 0;

			if (in_place)
			{
				bound.data = l.in.values(column.index) + size_t(l.lanes[0]) * width;
				bound.nulls = nullable ? l.in.nulls(column.index) + l.lanes[0] / 64 : nullptr;
				continue;
			}
			gather_column(width, l.in.values(column.index), index, n, values[number]);
			from_nulls = nullable ? l.in.nulls(column.index) : nullptr;
		}
		else
		{
			gather_column(width, level.side.built->columns[column.index].values, index, n, values[number]);
			from_nulls = level.side.built->columns[column.index].nulls;
		}
		bound.data = values[number];
		if (from_nulls)
		{
			memset(nulls[number], 0, VECTOR / 8);
			for (uint32_t i = 0; i < n; i++)
				nulls[number][i / 64] |= static_cast<uint64_t>(bit_get(from_nulls, index[i])) << i % 64;
			bound.nulls = nulls[number];
		}
	}
}

/* Runs the condition over the pairs, and leaves those that match. */
void
JoinProgram::take_condition(JoinState &s, size_t number) const
{
	const Level &level = *levels_[number];
	LevelState &l = *s.levels[number];
	uint32_t	n = 0;

	if (level.condition.program)
	{
		WorkerState &w = *l.condition;

		gather(level, level.condition, l, w, l.condition_values, l.condition_nulls);
		lanes_below(w.live, l.npairs);
		level.condition.program->run_vector(w, 0);
		for (uint32_t i = 0; i < l.npairs; i++)
		{
			if (!bit_get(w.live, i))
				continue;
			l.lanes[n] = l.lanes[i];
			l.rows[n++] = l.rows[i];
		}
		l.npairs = n;
	}
	for (uint32_t i = 0; i < l.npairs; i++)
		bit_set(l.matched, l.lanes[i]);
	if (level.split->kind == JoinKind::Full)
		for (uint32_t i = 0; i < l.npairs; i++)
			mark_row(level, l.rows[i]);
}

}  // namespace gpuvm::cpu_join
