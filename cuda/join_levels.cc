/* join_levels.cc: what becomes of rows that come into a level. See join.h. */
#include "join.h"

#include <algorithm>

#include "failure.h"

namespace gpuvm {
namespace cuda {


/* Do rows that come in go on without a partner, too? */
bool
JoinJob::keeps_rows(const Level &level)
{
	return level.plan->split->kind == JoinKind::Left || level.plan->split->kind == JoinKind::Full;
}

/* Full joins: these inner rows are in a pair; NO_ROW is none. */
void
JoinJob::mark_partners(const Level &level, const uint32_t *inner, uint32_t n)
{
	if (level.partnered != nullptr)
		check(mark_rows(nullptr, inner, n, level.partnered, lane_->stream), "marking rows");
}

ProbeMode
JoinJob::probe_mode(const Level &level)
{
	const JoinLevel &split = *level.plan->split;

	return split.condition.present() || split.kind == JoinKind::Inner ? ProbeMode::Pairs
		: keeps_rows(level) ? ProbeMode::Kept : ProbeMode::Bits;
}

/* count(*) of what is sought: one pair stands for all, its counts times their number. */
bool
JoinJob::only_counts(size_t number) const
{
	const PlannedLevel &level = *levels_[number].plan;
	const DeviceProgram &end = plan_->end();

	return ends_in_groups(number) && request_.program->nkeys == 0 && !uses_group_table(end) && level.split->kind == JoinKind::Inner &&
		!level.condition.present() && level.tail.columns.empty() &&
		std::all_of(end.agg_fn, end.agg_fn + end.naggs, [](AggFn fn) { return fn == AggFn::CountStar; });
}

Type
JoinJob::column_type(const Level &level, const StageColumnSource &column)
{
	const DeviceProgram &build = *level.plan->build;

	return column.carried ? level.plan->carried_types[static_cast<size_t>(column.index)] : build.result_type[column.index];
}

void
JoinJob::run_level(size_t number, uint32_t n)
{
	const JoinLevel &split = *levels_[number].plan->split;

	if (n != 0 && number == split_)
		n = admit(number, n);
	if (n == 0 || (levels_[number].side_rows == 0 && (split.kind == JoinKind::Inner || split.kind == JoinKind::Semi)))
		return;
	if (split.sought)
		seek(number, n);
	else
		cross(number, n);
}

/*
 * Rows that this pass is to see. What comes out only with a partner finds none among other parts' keys, and need not be
 * looked at; of the rest each row is to come out once.
 */
uint32_t
JoinJob::admit(size_t number, uint32_t n)
{
	Level	   &level = levels_[number];
	const JoinLevel &split = *level.plan->split;
	GatherColumn list[PROGRAM_MAX_COLUMNS];
	JoinKeys	keys = {};
	BitScan		scan;

	if (split.kind == JoinKind::Inner || split.kind == JoinKind::Semi)
		return n;
	keys.nkeys = static_cast<uint32_t>(split.probe.size());
	for (size_t k = 0; k < split.probe.size(); k++)
		keys.key[k] = level.in.column[split.probe[k]];
	start();
	check(mark_parts(keys, n, pass_list_[pass_].parts, level.matched, lane_->stream), "marking a pass");
	check(scan_bits(level.matched, n, true, level.scan, &scan, &outcomes_->total, lane_->stream), "selecting rows");
	check(emit_rows(scan, 0, n, outer_[0], lane_->stream), "selecting rows");
	(void) sync();

	const uint32_t left = outcomes_->total;

	if (left == n || left == 0)
		return left;
	for (uint32_t c = 0; c < level.in.ncolumns; c++)
		list[c] = GatherColumn{level.in.column[c], level.spare.column[c], GatherBy::Outer};
	start();
	check(gather_rows(list, level.in.ncolumns, outer_[0], nullptr, left, lane_->stream), "gathering columns");
	std::swap(level.in, level.spare);
	return left;
}

/* ---- keys -------------------------------------------------------------------------------- */

/* Looks up the rows that have come in. */
cudaError_t
JoinJob::probe_level(const Level &level, ProbeMode mode, uint32_t n, Probe *found)
{
	const JoinLevel &split = *level.plan->split;
	const RowColumn none = {nullptr, nullptr, split.key_types[0]};
	JoinKeys	keys = {};
	size_t		next = 0;

	if (split.range != 0)
	{
		KeyRange	range = {none, none, (split.range & RANGE_LO_STRICT) != 0, (split.range & RANGE_HI_STRICT) != 0};

		if (split.range & RANGE_LO)
			range.lo = level.in.column[split.probe[next++]];
		if (split.range & RANGE_HI)
			range.hi = level.in.column[split.probe[next++]];
		return probe_range(level.table, mode, range, n, level.probe, found, &outcomes_->probe, lane_->stream);
	}
	keys.nkeys = static_cast<uint32_t>(split.probe.size());
	for (; next < split.probe.size(); next++)
		keys.key[next] = level.in.column[split.probe[next]];
	return probe(level.table, mode, keys, n, level.probe, found, &outcomes_->probe, lane_->stream);
}

void
JoinJob::seek(size_t number, uint32_t n)
{
	Level	   &level = levels_[number];
	const JoinLevel &split = *level.plan->split;
	const bool	marks = split.condition.present();
	const ProbeMode mode = only_counts(number) ? ProbeMode::Count : probe_mode(level);
	Probe		found;

	if (running_picked_ && level.filtered && split.kind == JoinKind::Inner && !marks && finds_one(level))
	{
		seek_all(number, n);
		return;
	}
	start();
	check(probe_level(level, mode, n, &found), "probing a table");
	if (marks)
		check(cudaMemsetAsync(level.matched, 0, bitmap_bytes(n), lane_->stream), "probing a table");
	(void) sync();

	const ProbeOutcome outcome = outcomes_->probe;

	if (mode == ProbeMode::Bits)
	{
		count_pairs(number, outcome.matched);
		run_marked(number, found.matched_bits, n, split.kind == JoinKind::Semi);
		return;
	}
	if (mode == ProbeMode::Count)
	{
		count_pairs(number, outcome.npairs);
		take_rows(outcome.npairs);
		counted_ += outcome.npairs;
		return;
	}
	count_pairs(number, outcome.npairs - (mode == ProbeMode::Kept ? n - outcome.matched : 0));
	/* Every row has its one partner: the rows are as they came, and the partners as they were found. */
	if (!marks && finds_one(level) && outcome.npairs == n)
	{
		mark_partners(level, found.first, n);
		run_tail(number, nullptr, found.first, n, Absent::Neither);
		return;
	}
	for (uint64_t at = 0; at < outcome.npairs; at += batch_)
	{
		const uint32_t m = static_cast<uint32_t>(std::min<uint64_t>(batch_, outcome.npairs - at));

		if (at != 0)
			(void) sync();
		start();
		check(expand_pairs(level.table, found, at, m, outer_[0], inner_[0], lane_->stream), "making pairs");
		run_pairs(number, m);
	}
	if (marks)
		run_marked(number, level.matched, n, split.kind == JoinKind::Semi);
}

/* Rows that have one partner each, as is known: so nothing is waited for, and nothing looked up if only that matters. */
void
JoinJob::seek_all(size_t number, uint32_t n)
{
	const Level &level = levels_[number];
	const std::vector<StageColumnSource> &columns = level.plan->tail.columns;
	Probe		found = {};

	count_pairs(number, n);
	if (only_counts(number))
	{
		take_rows(n);
		counted_ += n;
		return;
	}
	start();
	if (std::any_of(columns.begin(), columns.end(), [](const StageColumnSource &column) { return !column.carried; }))
		check(probe_level(level, ProbeMode::Pairs, n, &found), "probing a table");
	run_tail(number, nullptr, found.first, n, Absent::Neither);
}

/*
 * The condition, over the first lists of pairs: marks the rows that have a match. Left: the pairs that
 * match are the second lists; returns how many.
 */
uint32_t
JoinJob::filter_pairs(Level *level, uint32_t n)
{
	const PairStage &stage = level->plan->condition;
	BitScan		scan;

	gather_columns(*level, stage, outer_[0], inner_[0], n, Absent::Neither);
	check(cudaMemsetAsync(bits_, 0, bitmap_bytes(n), lane_->stream), "marking pairs");
	launch_pairs(stage, n, bits_, nullptr);
	check(mark_rows(bits_, outer_[0], n, level->matched, lane_->stream), "marking rows");
	fetch_errors();
	if (!keeps_rows(*level))
	{
		(void) sync();
		return 0;
	}
	check(scan_bits(bits_, n, true, bits_scan_, &scan, &outcomes_->total, lane_->stream), "selecting pairs");
	check(emit_pairs(scan, 0, n, outer_[0], inner_[0], outer_[1], inner_[1], lane_->stream), "selecting pairs");
	(void) sync();
	return outcomes_->total;
}

/* The first lists of pairs: those that pass the condition go on. */
void
JoinJob::run_pairs(size_t number, uint32_t n)
{
	Level	   &level = levels_[number];
	const int	lists = level.plan->condition.present() ? 1 : 0;

	if (lists == 1)
		n = filter_pairs(&level, n);
	if (n == 0)
		return;
	mark_partners(level, inner_[lists], n);
	run_tail(number, outer_[lists], inner_[lists], n, Absent::Neither);
}

/* Rows that have a bit, or those that have none, go on: once, without a partner. */
void
JoinJob::run_marked(size_t number, const uint32_t *bits, uint32_t n, bool want)
{
	BitScan		scan;

	start();
	check(scan_bits(bits, n, want, levels_[number].scan, &scan, &outcomes_->total, lane_->stream), "selecting rows");
	check(emit_rows(scan, 0, n, outer_[0], lane_->stream), "selecting rows");
	fetch_errors();
	(void) sync();

	const uint32_t left = outcomes_->total;

	run_tail(number, left == n ? nullptr : outer_[0], nullptr, left, Absent::Inner);
}

/* ---- tails ---------------------------------------------------------------------------------- */

/* Where a tail's rows go, of which there may be so many: there is room. nullptr: into groups. */
const RowSet *
JoinJob::prepare_tail(size_t number, uint32_t rows)
{
	const bool	last = number + 1 == levels_.size();

	if (last && !request_.program->grouped && out_rows_ + static_cast<uint64_t>(rows) > out_.capacity)
		request_.norder > 0 ? make_room(rows) : flush();
	start();
	if (last)
		return request_.program->grouped ? nullptr : &out_;
	check(reset_rows(levels_[number + 1].in, lane_->stream), "emptying a row set");
	return &levels_[number + 1].in;
}

/* Over lists of pairs; nullptr: rows 0 .. n - 1. */
void
JoinJob::run_tail(size_t number, const uint32_t *outer, const uint32_t *inner, uint32_t n, Absent absent)
{
	const Level &level = levels_[number];

	if (n == 0)
		return;
	if (level.plan->tail.plain && number + 1 < levels_.size())
	{
		hand_on(number, outer, inner, n, absent);
		return;
	}

	const RowSet *to = prepare_tail(number, n);

	gather_columns(level, level.plan->tail, outer, inner, n, absent);
	launch_pairs(level.plan->tail, n, nullptr, to);
	end_tail(number, n);
}

/* A tail that only hands on columns: they go to the next level's rows, and how many these are is known. */
void
JoinJob::hand_on(size_t number, const uint32_t *outer, const uint32_t *inner, uint32_t n, Absent absent)
{
	const Level &level = levels_[number];
	const PairStage &tail = level.plan->tail;
	const RowSet &to = levels_[number + 1].in;
	GatherColumn list[PROGRAM_MAX_COLUMNS];

	for (uint32_t i = 0; i < to.ncolumns; i++)
	{
		list[i] = source_of(level, tail.columns[static_cast<size_t>(tail.handed_on[i])], absent);
		list[i].to = to.column[i];
	}
	start();
	check(gather_rows(list, to.ncolumns, outer, inner, n, lane_->stream), "gathering columns");
	run_level(number + 1, n);
}

/* Groups and sums are for so many rows at most. */
void
JoinJob::take_rows(uint64_t pairs)
{
	rows_taken_ += pairs;
	if (rows_taken_ > plan_->pairs_bound())
		throw Refusal{"more pairs than the device can sum"};
}

/* A tail's launch over so many pairs: groups have what it left; rows go on. */
void
JoinJob::end_tail(size_t number, uint64_t pairs)
{
	const bool	last = number + 1 == levels_.size();

	if (ends_in_groups(number))
	{
		take_rows(pairs);
		return;
	}

	const RowSet &to = last ? out_ : levels_[number + 1].in;
	const size_t ahead = last ? emit_ahead(gathered_rows(), std::min<uint64_t>(out_rows_ + pairs, out_.capacity), out_.state) : 0;

	if (ahead == 0)
		fetch_state(to.state);
	(void) sync();
	if (last)
		gathered(appended(), ahead);
	else
		run_level(number + 1, appended());
}

/* So many rows have gathered, of which the first are in buffers ahead. */
void
JoinJob::gathered(uint32_t rows, size_t ahead)
{
	out_rows_ = rows;
	if (ahead != 0 && rows != 0)
		flush(hand_over(ahead, 0, rows, false));
	else if (!gathers_all() && (out_rows_ >= request_.capacity || (row_limit_ != 0 && out_rows_ >= row_limit_)))
		flush();
}

/* How many rows a launch has left, and its errors, for the next sync(). */
void
JoinJob::fetch_state(const RowSetState *state)
{
	check(cudaMemcpyAsync(&outcomes_->rows, state, sizeof(RowSetState), cudaMemcpyDeviceToHost, lane_->stream), "collecting rows");
	fetch_errors();
}

}  // namespace cuda
}  // namespace gpuvm
