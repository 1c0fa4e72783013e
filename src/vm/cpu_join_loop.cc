/* cpu_join_loop.cc: what takes vectors of lanes as they are: the nested loop, an inner row at a time, and counting. */
#include <algorithm>
#include <cstring>

#include "vm/cpu_join_job.h"

namespace gpuvm::cpu_join {

namespace {

bool
any_bit(const uint64_t *live)
{
	uint64_t	any = 0;

	for (int i = 0; i < CPU_WORDS; i++)
		any |= live[i];
	return any != 0;
}

}  // namespace

/* The vectors of lanes as they are. */
void
JoinProgram::point_at_lanes(const Stage &stage, const Batch &in, WorkerState &w) const
{
	for (BoundColumn &bound : w.columns)
	{
		const Stage::Column &column = stage.columns[bound.chunk - stage.chunks.data()];

		bound.data = in.values(column.index);
		bound.nulls = bound.chunk->null_count > 0 ? in.nulls(column.index) : nullptr;
	}
}

/* A row's values, as constants. */
void
JoinProgram::set_row(const Level &level, const Stage &stage, WorkerState &w, uint32_t row) const
{
	for (const ScalarColumn &scalar : stage.program->scalars)
	{
		const JoinColumn &column = level.side.built->columns[stage.columns[scalar.number].index];

		stage.program->set_scalar(w, scalar, column.values + size_t(row) * type_width(column.type),
								  column.nulls && bit_get(column.nulls, row));
	}
}

/*
 * For every vector of lanes and every row. Inner: runs the tail, as long as there is
 * room for what it leaves. Otherwise: the condition; Left and Full collect what matches.
 */
Progress
JoinProgram::loop_rows(JoinState &s, size_t number) const
{
	const Level &level = *levels_[number];
	const std::vector<JoinRun> &runs = level.side.built->runs;
	const bool	inner = level.split->kind == JoinKind::Inner;
	const bool	full = level.split->kind == JoinKind::Full;
	const bool	once = level.split->kind == JoinKind::Semi || level.split->kind == JoinKind::Anti;
	LevelState &l = *s.levels[number];
	const Stage &stage = inner ? level.tail : level.condition;
	WorkerState &w = inner ? *l.tail : *l.condition;

	point_at_lanes(stage, l.in, w);
	l.npairs = 0;
	for (; l.vector < l.in.rows; l.vector += VECTOR, l.run = 0)
	{
		const uint32_t n = std::min(VECTOR, l.in.rows - l.vector);
		uint64_t	lanes[CPU_WORDS];

		lanes_below(lanes, n);
		for (; l.run < runs.size(); l.run++, l.at = 0)
			for (; l.at < runs[l.run].n; l.at++)
			{
				const uint32_t row = static_cast<uint32_t>(runs[l.run].at + l.at);

				if (inner)
				{
					if (!has_room(s, number))
						return Progress::Full;
					if (s.stopped())
						return Progress::Stopped;
					set_row(level, stage, w, row);
					memcpy(w.live, lanes, sizeof(lanes));
					run_tail(s, number, l.vector, n);
					s.pairs += n;
					continue;
				}
				if (l.npairs > 0 && l.npairs + n > VECTOR)
					return Progress::Ready;
				if (s.stopped())
					return Progress::Stopped;

				uint64_t   *matched = l.matched + l.vector / 64;
				uint64_t	some = 0;

				for (int i = 0; i < CPU_WORDS; i++)
					some |= w.live[i] = lanes[i] & ~(once ? matched[i] : 0);
				if (some == 0)
				{
					/* all have what they wanted */
					l.run = static_cast<uint32_t>(runs.size()) - 1;
					l.at = runs[l.run].n - 1;
					continue;
				}
				set_row(level, stage, w, row);
				s.pairs += bit_count(w.live, CPU_WORDS);
				stage.program->run_vector(w, l.vector);
				if (full && any_bit(w.live))
					mark_row(level, row);
				for (int i = 0; i < CPU_WORDS; i++)
				{
					matched[i] |= w.live[i];
					if (once)
						continue;
					for (uint64_t m = w.live[i]; m != 0; m &= m - 1)
					{
						l.lanes[l.npairs] = l.vector + 64 * i + static_cast<uint32_t>(__builtin_ctzll(m));
						l.rows[l.npairs++] = row;
					}
				}
			}
	}
	return l.npairs > 0 ? Progress::Ready : Progress::Exhausted;
}

/* For every vector of lanes: the tail once, a lane weighing as much as it has rows. */
Progress
JoinProgram::count_rows(JoinState &s, size_t number) const
{
	const Level &level = *levels_[number];
	LevelState &l = *s.levels[number];
	WorkerState &w = *l.tail;

	point_at_lanes(level.tail, l.in, w);
	for (; l.vector < l.in.rows; l.vector += VECTOR)
	{
		const uint32_t n = std::min(VECTOR, l.in.rows - l.vector);
		uint64_t	pairs = 0;

		if (s.stopped())
			return Progress::Stopped;
		memset(w.live, 0, sizeof(w.live));
		for (uint32_t i = 0; i < n; i++)
		{
			const uint64_t rows = l.count[l.vector + i];

			pairs += rows;
			w.live[i / 64] |= static_cast<uint64_t>(rows > 0) << i % 64;
		}
		s.pairs += pairs;
		w.weights = l.count + l.vector;
		if (pairs > 0)
			run_tail(s, number, l.vector, n);
		w.weights = nullptr;
	}
	return Progress::Exhausted;
}

}  // namespace gpuvm::cpu_join
