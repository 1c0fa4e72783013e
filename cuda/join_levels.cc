/* join_levels.cc: what becomes of rows that come into a level. See join.h. */
#include "join.h"

#include <algorithm>

#include "failure.h"
#include "join_cross.h"

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
	if (n == 0)
		return;
	if (levels_[number].plan->split->sought)
		seek(number, n);
	else
		cross(number, n);
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
		figures_->pairs += outcome.matched;
		run_marked(number, found.matched_bits, n, split.kind == JoinKind::Semi);
		return;
	}
	if (mode == ProbeMode::Count)
	{
		figures_->pairs += outcome.npairs;
		take_rows(outcome.npairs);
		counted_ += outcome.npairs;
		return;
	}
	figures_->pairs += outcome.npairs - (mode == ProbeMode::Kept ? n - outcome.matched : 0);
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

	figures_->pairs += n;
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
	launch_pairs(stage, n, bits_, false);
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

/* ---- nested loops ------------------------------------------------------------------------ */

void
JoinJob::cross(size_t number, uint32_t n)
{
	const Level &level = levels_[number];
	const JoinLevel &split = *level.plan->split;

	if (level.side_rows == 0 || (!split.condition.present() && (split.kind == JoinKind::Semi || split.kind == JoinKind::Anti)))
	{
		/* There is no row, or any row will do. */
		if (level.side_rows == 0 ? keeps_rows(level) || split.kind == JoinKind::Anti : split.kind == JoinKind::Semi)
			run_tail(number, nullptr, nullptr, n, Absent::Inner);
		return;
	}
	figures_->pairs += static_cast<uint64_t>(n) * level.side_rows;
	if (!level.plan->grid_condition && !level.plan->grid_tail)
		cross_lists(number, n);
	else if (!split.condition.present())
		cross_tail(number, n);
	else if (keeps_rows(level))
		cross_left(number, n);
	else
		cross_some(number, n);
}

/* Inner rows that a launch takes, so that it ends soon. */
uint32_t
JoinJob::grid_step(const Level &level, uint32_t outer_rows) const
{
	const double pairs = level.pair_ns > 0 ? join_sizes.step_ns / level.pair_ns : static_cast<double>(join_sizes.grid_pairs);
	const double most = std::min(pairs, static_cast<double>(std::min(MAX_SLICE_PAIRS, most_slice_rows_)));

	return static_cast<uint32_t>(std::clamp(most / static_cast<double>(align_up(outer_rows, TABLET_PAD_ROWS)), 1.0, 1e9));
}

/* Semi, Anti: rows that some row matches. */
void
JoinJob::cross_some(size_t number, uint32_t n)
{
	Level	   &level = levels_[number];

	start();
	check(cudaMemsetAsync(level.matched, 0, bitmap_bytes(n), lane_->stream), "marking rows");
	for (uint32_t first = 0, m; first < level.side_rows; first += m)
	{
		m = std::min(grid_step(level, n), level.side_rows - first);
		start();
		launch_grid(level, level.plan->condition, n, first, m, level.matched, false);
		fetch_errors();
		level.pair_ns = sync() / (static_cast<double>(align_up(n, TABLET_PAD_ROWS)) * m);
	}
	run_marked(number, level.matched, n, level.plan->split->kind == JoinKind::Semi);
}

/* Left with a condition: the pairs that match, then rows without one. */
void
JoinJob::cross_left(size_t number, uint32_t n)
{
	Level	   &level = levels_[number];
	const uint32_t padded = static_cast<uint32_t>(align_up(n, TABLET_PAD_ROWS));
	BitScan		scan;

	start();
	check(cudaMemsetAsync(level.matched, 0, bitmap_bytes(n), lane_->stream), "marking rows");
	for (uint32_t first = 0, m; first < level.side_rows; first += m)
	{
		m = std::min({grid_step(level, n), level.side_rows - first, std::max(bit_pairs_ / padded, 1u)});
		start();
		check(cudaMemsetAsync(level.pair_bits, 0, bitmap_bytes(static_cast<uint64_t>(m) * padded), lane_->stream), "marking pairs");
		launch_grid(level, level.plan->condition, n, first, m, level.pair_bits, false);
		check(scan_bits(level.pair_bits, m * padded, true, level.pair_scan, &scan, &outcomes_->total, lane_->stream), "selecting pairs");
		fetch_errors();
		(void) sync();

		const uint32_t left = outcomes_->total;

		for (uint32_t at = 0; at < left; at += batch_)
		{
			const uint32_t pairs = std::min(batch_, left - at);

			start();
			check(emit_grid_pairs(scan, at, pairs, padded, 0, first, outer_[0], inner_[0], lane_->stream), "selecting pairs");
			check(mark_rows(nullptr, outer_[0], pairs, level.matched, lane_->stream), "marking rows");
			mark_partners(level, inner_[0], pairs);
			run_tail(number, outer_[0], inner_[0], pairs, Absent::Neither);
			(void) sync();
		}
	}
	run_marked(number, level.matched, n, false);
}

/* Pair by pair. */
void
JoinJob::cross_lists(size_t number, uint32_t n)
{
	Level	   &level = levels_[number];
	const bool	marks = level.plan->condition.present();
	const uint64_t pairs = static_cast<uint64_t>(n) * level.side_rows;

	start();
	if (marks)
		check(cudaMemsetAsync(level.matched, 0, bitmap_bytes(n), lane_->stream), "marking rows");
	for (uint64_t at = 0; at < pairs; at += batch_)
	{
		const uint32_t m = static_cast<uint32_t>(std::min<uint64_t>(batch_, pairs - at));

		if (at != 0)
			(void) sync();
		start();
		check(cross_pairs(at, m, n, outer_[0], inner_[0], lane_->stream), "making pairs");
		run_pairs(number, m);
	}
	if (marks)
		run_marked(number, level.matched, n, level.plan->split->kind == JoinKind::Semi);
}

/* Every pair goes through the tail. */
void
JoinJob::cross_tail(size_t number, uint32_t n)
{
	Level	   &level = levels_[number];
	const uint32_t npads = static_cast<uint32_t>(align_up(n, TABLET_PAD_ROWS) / TABLET_PAD_ROWS);
	const bool	rows = !ends_in_groups(number);

	for (uint32_t first = 0, m; first < level.side_rows; first += m)
	{
		m = std::min(grid_step(level, n), level.side_rows - first);
		if (rows)
			m = std::min(m, std::max(batch_ / TABLET_PAD_ROWS / npads, 1u));
		/* A limit may be reached soon: each launch is twice as long as the one before. */
		if (rows && row_limit_ != 0)
		{
			m = std::min(m, std::max(limited_pads_ / npads, 1u));
			limited_pads_ = std::min(limited_pads_ * 2, 1u << 20);
		}
		prepare_tail(number, m * npads * TABLET_PAD_ROWS);
		start();
		launch_grid(level, level.plan->tail, n, first, m, nullptr, rows);
		end_tail(number, static_cast<uint64_t>(m) * npads, static_cast<uint64_t>(n) * m);
		if (!rows && first + m < level.side_rows)
			level.pair_ns = sync() / (static_cast<double>(align_up(n, TABLET_PAD_ROWS)) * m);
	}
}

/* ---- tails ---------------------------------------------------------------------------------- */

/* Room for so many rows that may leave. */
void
JoinJob::prepare_tail(size_t number, uint32_t rows)
{
	if (number + 1 == levels_.size() && !request_.program->grouped && out_rows_ + static_cast<uint64_t>(rows) > out_.capacity)
		request_.norder > 0 ? make_room(rows) : flush();
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
	prepare_tail(number, n);
	start();
	gather_columns(level, level.plan->tail, outer, inner, n, absent);
	launch_pairs(level.plan->tail, n, nullptr, !ends_in_groups(number));
	end_tail(number, (n + TABLET_PAD_ROWS - 1) / TABLET_PAD_ROWS, n);
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

/* What a launch of a tail has left of so many pairs goes where it belongs. */
void
JoinJob::end_tail(size_t number, uint64_t npads, uint64_t pairs)
{
	const DeviceProgram &program = *levels_[number].plan->tail.program;
	const RowStaging staging = row_staging(program, npads, staging_);

	if (ends_in_groups(number))
	{
		take_rows(pairs);
		return;
	}
	if (number + 1 < levels_.size())
	{
		check(reset_rows(levels_[number + 1].in, lane_->stream), "emptying a row set");
		check(append_rows(program, staging, npads, levels_[number + 1].in, temp_, &outcomes_->rows, lane_->stream), "collecting rows");
		fetch_errors();
		(void) sync();
		run_level(number + 1, appended());
		return;
	}
	check(append_rows(program, staging, npads, out_, temp_, &outcomes_->rows, lane_->stream), "collecting rows");
	fetch_errors();
	(void) sync();
	out_rows_ = appended();
	if (request_.norder == 0 && (out_rows_ >= request_.capacity || (row_limit_ != 0 && out_rows_ >= row_limit_)))
		flush();
}

}  // namespace cuda
}  // namespace gpuvm
