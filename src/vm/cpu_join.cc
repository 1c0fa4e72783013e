/* cpu_join.cc: a worker's state, and units' ways through the levels. */
#include <algorithm>
#include <cstring>

#include "vm/cpu_join_job.h"

namespace gpuvm {

namespace cpu_join {

void
lanes_below(uint64_t *live, uint32_t n)
{
	for (uint32_t w = 0; w < CPU_WORDS; w++)
		live[w] = n <= 64 * w ? 0 : low_bits(std::min(n - 64 * w, 64u));
}

/* ---- a worker's state ---------------------------------------------------------------------- */

void
JoinProgram::make_batch(Batch *batch, const std::vector<int> &items) const
{
	for (int item : items)
		batch->types.push_back(split_.items[item].type);
	batch->layout.resize(items.size() + 1);

	const uint64_t bytes = result_layout(batch->types.data(), static_cast<int>(items.size()), BATCH_ROWS, batch->layout.data()) + 64;

	batch->memory.reset(static_cast<char *>(aligned_alloc(64, bytes)));
	if (!batch->memory)
		throw std::bad_alloc();
	memset(batch->memory.get(), 0, bytes);
}

/* Vectors to gather into, one for each column, from *at on. */
void
JoinProgram::make_vectors(const Stage &stage, std::vector<char *> *values, std::vector<uint64_t *> *nulls, char **at) const
{
	for (size_t i = 0; i < stage.columns.size(); i++)
	{
		values->push_back(*at);
		nulls->push_back(reinterpret_cast<uint64_t *>(*at + VECTOR * 8));
		*at += VECTOR * 8 + VECTOR / 8;
	}
}

std::unique_ptr<CpuState>
JoinProgram::new_state() const
{
	auto		state = std::make_unique<JoinState>();

	state->first = std::make_unique<WorkerState>(*first_);
	if (!filters_.empty())
		state->filter = std::make_unique<RowFilter>(filters_);
	for (const std::unique_ptr<Level> &level : levels_)
	{
		auto		l = std::make_unique<LevelState>();
		const size_t bytes = (level->condition.columns.size() + level->tail.columns.size()) * (VECTOR * 8 + VECTOR / 8) + 64;

		make_batch(&l->in, level->split->carried);
		l->memory.reset(static_cast<char *>(aligned_alloc(64, bytes)));
		if (!l->memory)
			throw std::bad_alloc();
		memset(l->memory.get(), 0, bytes);

		char	   *at = l->memory.get();

		if (level->condition.program)
		{
			l->condition = std::make_unique<WorkerState>(*level->condition.program);
			level->condition.program->bind_vectors(*l->condition, level->condition.chunks.data());
			make_vectors(level->condition, &l->condition_values, &l->condition_nulls, &at);
		}
		l->tail = std::make_unique<WorkerState>(*level->tail.program);
		level->tail.program->bind_vectors(*l->tail, level->tail.chunks.data());
		make_vectors(level->tail, &l->tail_values, &l->tail_nulls, &at);
		state->levels.push_back(std::move(l));
	}
	return state;
}

/* ---- units ------------------------------------------------------------------------------------------ */

/* Is there room for a vector that the level's tail leaves whole? */
bool
JoinProgram::has_room(const JoinState &s, size_t level) const
{
	if (level + 1 < levels_.size())
		return s.levels[level + 1]->in.rows < VECTOR;
	return grouped() || s.emitted + VECTOR <= s.capacity;
}

/* Runs the tail over the lanes of its `live`, and puts what is left to where it goes. */
void
JoinProgram::run_tail(JoinState &s, size_t level, uint32_t row, uint32_t n) const
{
	LevelState &l = *s.levels[level];
	WorkerState &w = *l.tail;

	if (level + 1 < levels_.size())
	{
		Batch	   &to = s.levels[level + 1]->in;

		w.area = to.memory.get();
		w.layout = to.layout.data();
		w.emitted = to.rows;
		levels_[level]->tail.program->run_vector(w, row);
		to.rows = w.emitted;
	}
	else if (grouped())
	{
		w.rows_taken += n;
		levels_[level]->tail.program->run_vector(w, row);
	}
	else
	{
		ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];

		result_layout(result_types_.data(), static_cast<int>(result_types_.size()), s.capacity, layout);
		w.area = s.area;
		w.layout = layout;
		w.emitted = s.emitted;
		levels_[level]->tail.program->run_vector(w, row);
		s.emitted = w.emitted;
		w.layout = nullptr;
	}
}

/* The level's next pairs go through its tail. Ready: they did. */
Progress
JoinProgram::advance_level(JoinState &s, size_t number) const
{
	const Level &level = *levels_[number];
	const JoinKind kind = level.split->kind;
	LevelState &l = *s.levels[number];

	if (l.step == Step::Pairs && (level.factor || (level.loop && kind == JoinKind::Inner)))
	{
		const Progress progress = level.factor ? count_rows(s, number) : loop_rows(s, number);

		if (progress == Progress::Exhausted)
			l.step = Step::Done;
		return progress;
	}
	if (l.step == Step::Pairs && level.split->sought && l.lane >= l.in.rows && !l.more)
	{
		l.step = kind == JoinKind::Inner ? Step::Done : Step::Unmatched;
		l.lane = 0;
	}
	if (l.step == Step::Done)
		return Progress::Exhausted;
	if (!has_room(s, number))
		return Progress::Full;
	while (l.step != Step::Done)
	{
		if (s.stopped())
			return Progress::Stopped;
		if (l.step == Step::Pairs && level.loop)
		{
			const Progress progress = loop_rows(s, number);

			if (progress == Progress::Stopped)
				return progress;
			if (progress == Progress::Exhausted)
			{
				l.step = Step::Unmatched;
				l.lane = 0;
				continue;
			}
		}
		else if (l.step == Step::Pairs)
		{
			if (!(level.split->sought ? sought_pairs(level, l) : cross_pairs(level, l)))
			{
				l.step = kind == JoinKind::Inner ? Step::Done : Step::Unmatched;
				l.lane = 0;
				continue;
			}
			s.pairs += l.npairs;
			if (kind != JoinKind::Inner)
				take_condition(s, number);
			if (l.npairs == 0 || kind == JoinKind::Semi || kind == JoinKind::Anti)
				continue;
		}
		else if (!(l.step == Step::Rest ? unmatched_rows(level, l) : unmatched_lanes(level, l)))
		{
			l.step = Step::Done;
			continue;
		}
		gather(level, level.tail, l, *l.tail, l.tail_values, l.tail_nulls);
		lanes_below(l.tail->live, l.npairs);
		run_tail(s, number, 0, l.npairs);
		return Progress::Ready;
	}
	return Progress::Exhausted;
}

/* Goes on with the unit: Exhausted at its end, Full where the area is. */
Progress
JoinProgram::advance(JoinState &s) const
{
	const int	nlevels = static_cast<int>(levels_.size());
	auto		enter = [&](int number) {
		s.current = number + 1;
		begin_level(s, number);
	};

	for (;;)
	{
		if (s.current == 0)
		{
			Batch	   &in = s.levels[0]->in;
			WorkerState &w = *s.first;

			while (in.rows < VECTOR && s.row < s.last)
			{
				const uint32_t end = std::min(s.last, s.row + VECTOR);

				w.area = in.memory.get();
				w.layout = in.layout.data();
				w.emitted = in.rows;
				first_->run_bound(w, s.row, end, s.masked, s.nmasked, s.filter.get());
				in.rows = w.emitted;
				s.row = end;
			}
			if (in.rows == 0)
			{
				/* what a full join leaves passes the levels behind it before theirs is looked at */
				while (s.rest < rest_levels() && levels_[s.rest]->split->kind != JoinKind::Full)
					s.rest++;
				if (s.rest >= rest_levels())
					return Progress::Exhausted;

				const bool	all = s.rest_run == ALL_RUNS;
				LevelState &l = *s.levels[s.rest];

				l.step = Step::Rest;
				l.run = all ? 0 : s.rest_run;
				l.run_end = all ? static_cast<uint32_t>(levels_[s.rest]->side.built->runs.size()) : s.rest_run + 1;
				l.at = 0;
				s.rest++;
				s.current = static_cast<int>(s.rest);
				continue;
			}
			if (s.stopped())
				return Progress::Stopped;
			enter(0);
			continue;
		}

		const int	number = s.current - 1;
		const Progress progress = advance_level(s, number);
		Batch	   *next = number + 1 < nlevels ? &s.levels[number + 1]->in : nullptr;

		switch (progress)
		{
			case Progress::Stopped:
				return progress;
			case Progress::Full:
				if (!next)
					return progress;
				enter(number + 1);
				break;
			case Progress::Ready:
				if (next && next->rows >= VECTOR)
					enter(number + 1);
				break;
			case Progress::Exhausted:
				if (next && next->rows > 0)
				{
					enter(number + 1);
					break;
				}

				/* back to the level before, with an empty batch */
				Batch	   &in = s.levels[number]->in;

				for (size_t c = 0; c < in.types.size(); c++)
					memset(in.nulls(static_cast<int>(c)), 0, BATCH_ROWS / 8);
				in.rows = 0;
				s.current = number;
				break;
		}
		if (!grouped() && errors_of(s) != 0)
			return Progress::Exhausted;
	}
}

uint32_t
JoinProgram::errors_of(const JoinState &s) const
{
	uint32_t	errors = s.first->errors;

	for (const std::unique_ptr<LevelState> &l : s.levels)
		errors |= l->tail->errors | (l->condition ? l->condition->errors : 0);
	return errors;
}

void
JoinProgram::begin_unit(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
						const MaskedRows *masked, uint32_t nmasked) const
{
	JoinState  &s = of(state);

	empty_batches(s);
	s.rest = SIZE_MAX;
	s.tablet = tablet;
	s.row = first;
	s.last = std::min(last, tablet->nrows);
	s.masked = masked;
	s.nmasked = nmasked;
	if (is_other_pass(tablet))
		s.row = s.last;
	else if (!first_->bind(*s.first, tablet))
	{
		s.first->errors |= ERR_INT_OVERFLOW;
		s.row = s.last;
	}
	else if (s.filter)
		s.filter->bind(s.first->columns, !grouped());
}

/* The runs of a full join; where there are several, one's rest has to pass the others first. */
uint32_t
JoinProgram::rest_parts() const
{
	uint32_t	full = 0, runs = 0;

	for (size_t i = 0; i < rest_levels(); i++)
		if (levels_[i]->split->kind == JoinKind::Full)
		{
			full++;
			runs += static_cast<uint32_t>(levels_[i]->side.built->runs.size());
		}
	return full > 1 ? std::min(runs, 1u) : runs;
}

void
JoinProgram::begin_rest(CpuState *state) const
{
	JoinState  &s = of(state);

	empty_batches(s);
	s.row = s.last = 0;
	s.rest = 0;
	s.rest_run = ALL_RUNS;
	for (std::unique_ptr<LevelState> &l : s.levels)
		l->step = Step::Done;
}

void
JoinProgram::run_rest_groups(CpuState *state, uint32_t part) const
{
	JoinState  &s = of(state);

	begin_rest(state);
	if (std::count_if(levels_.begin(), levels_.begin() + static_cast<long>(rest_levels()),
					  [](const auto &level) { return level->split->kind == JoinKind::Full; }) == 1)
		s.rest_run = part;
	advance(s);
	s.levels.back()->tail->errors |= errors_of(s);
}

/* At a unit's beginning. */
void
JoinProgram::empty_batches(JoinState &s) const
{
	s.current = 0;
	for (std::unique_ptr<LevelState> &l : s.levels)
	{
		/* of a unit that was not run to its end */
		if (l->in.rows > 0)
			for (size_t c = 0; c < l->in.types.size(); c++)
				memset(l->in.nulls(static_cast<int>(c)), 0, BATCH_ROWS / 8);
		l->in.rows = 0;
		if (!grouped())
		{
			l->tail->errors = 0;
			if (l->condition)
				l->condition->errors = 0;
		}
	}
	if (!grouped())
		s.first->errors = 0;
}

JoinPart
JoinProgram::run_part(CpuState *state, char *area, uint32_t capacity) const
{
	JoinState  &s = of(state);
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];
	const int	ncols = static_cast<int>(result_types_.size());

	result_layout(result_types_.data(), ncols, capacity, layout);
	for (int c = 0; c < ncols; c++)
		memset(area + layout[c].nulls, 0, capacity / 8);
	s.area = area;
	s.capacity = capacity;
	s.emitted = 0;

	const Progress progress = advance(s);
	const uint32_t errors = errors_of(s);

	s.area = nullptr;
	return JoinPart{errors ? 0 : s.emitted, errors, progress != Progress::Full || errors != 0};
}

CpuUnitOutcome
JoinProgram::run_rows(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
					  char *area, uint32_t capacity, const MaskedRows *masked, uint32_t nmasked) const
{
	begin_unit(state, tablet, first, last, masked, nmasked);

	const JoinPart part = run_part(state, area, capacity);

	/* units that may not fit are for run_part() */
	return CpuUnitOutcome{part.rows, part.done ? part.errors : ERR_INT_OVERFLOW};
}

void
JoinProgram::run_groups(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
						const MaskedRows *masked, uint32_t nmasked) const
{
	JoinState  &s = of(state);

	begin_unit(state, tablet, first, last, masked, nmasked);
	advance(s);
	s.levels.back()->tail->errors |= errors_of(s);
}

void
JoinProgram::merge(CpuState *into, CpuState *from) const
{
	end()->merge(end_state(into), end_state(from));
}

void
JoinProgram::set_stop(CpuState *state, JoinStop *stop) const
{
	of(state).stop = stop;
	end()->set_stop(end_state(state), stop);
}

uint32_t
JoinProgram::begin_merge(CpuState *const *states, uint32_t n) const
{
	std::vector<CpuState *> ends;

	for (uint32_t i = 0; i < n; i++)
		ends.push_back(end_state(states[i]));
	return end()->begin_merge(ends.data(), n);
}

void
JoinProgram::merge_part(CpuState *const *states, uint32_t n, uint32_t part) const
{
	std::vector<CpuState *> ends;

	for (uint32_t i = 0; i < n; i++)
		ends.push_back(end_state(states[i]));
	end()->merge_part(ends.data(), n, part);
}

}  // namespace cpu_join

std::unique_ptr<CpuJoin>
CpuJoin::create(const Program *program, const ParamValue *params, uint32_t nparams, const JoinCursor *cursors,
				const CodeMap *maps, const TextPattern *const *patterns, JoinIndexes *indexes, TextKeys *text_keys,
				bool may_pass, uint32_t shortages)
{
	return std::make_unique<cpu_join::JoinProgram>(program, params, nparams, cursors, maps, patterns, indexes, text_keys,
												   may_pass, shortages);
}

}  // namespace gpuvm
