/* join_loops.cc: levels that are nested loops. See join.h. */
#include "join.h"

#include <algorithm>

#include "failure.h"
#include "join_cross.h"

namespace gpuvm {
namespace cuda {

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
	count_pairs(number, static_cast<uint64_t>(n) * level.side_rows);
	if (level.plan->grid_lists)
		cross_listed(number, n);
	else if (!level.plan->grid_condition && !level.plan->grid_tail)
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
		launch_grid(level, level.plan->condition, n, first, m, level.matched, nullptr);
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
		launch_grid(level, level.plan->condition, n, first, m, level.pair_bits, nullptr);
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

/* A limit of rows may be reached soon: each launch is twice as long as the one before. */
uint32_t
JoinJob::limited_step(uint32_t most, uint32_t npads)
{
	if (row_limit_ == 0)
		return most;

	const uint32_t pads = limited_pads_;

	limited_pads_ = std::min(limited_pads_ * 2, 1u << 20);
	return std::min(most, std::max(pads / npads, 1u));
}

/*
 * Every pair goes through the comparisons that the tail begins with; those that pass are listed, in as much room as a batch has. What finds no room is
 * looked for again, with fewer inner rows. If results are columns, the first pairs leave before it is known how many there are.
 */
void
JoinJob::cross_listed(size_t number, uint32_t n)
{
	Level	   &level = levels_[number];
	const uint32_t npads = static_cast<uint32_t>(align_up(n, TABLET_PAD_ROWS) / TABLET_PAD_ROWS);
	const bool	may_leave = number + 1 == levels_.size() && !level.plan->tail.handed_on.empty();

	for (uint32_t first = 0, m, most = UINT32_MAX; first < level.side_rows; first += m)
	{
		m = std::min({limited_step(grid_step(level, n), npads), most, level.side_rows - first});
		start();
		check(cudaMemsetAsync(listed_, 0, sizeof(RowSetState), lane_->stream), "listing pairs");
		launch_grid(level, level.plan->listing, n, first, m, nullptr, nullptr, listed_);

		const size_t ahead = !may_leave || out_rows_ != 0 ? 0 : emit_ahead(listed_rows(level), std::min<uint64_t>(batch_, static_cast<uint64_t>(n) * m), listed_);

		if (ahead == 0)
			fetch_state(listed_);
		level.pair_ns = sync() / (static_cast<double>(align_up(n, TABLET_PAD_ROWS)) * m);

		const RowSetState listed = outcomes_->rows;

		if (listed.errors != 0)
			throw RowErrors{listed.errors};
		/* As many as are likely to find room; a row's pairs always do. */
		most = static_cast<uint32_t>(std::clamp(0.8 * batch_ / std::max(listed.nrows, 1u) * m, 1.0, listed.full != 0 ? std::max(m / 2.0, 1.0) : 1e9));
		if (listed.full != 0)
			m = 0;
		else if (may_leave && out_rows_ == 0)
			leave_listed(number, listed.nrows, ahead);
		else
			run_tail(number, outer_[0], inner_[0], listed.nrows, Absent::Neither);
	}
}

std::vector<EmittedColumn>
JoinJob::listed_rows(const Level &level) const
{
	const PairStage &tail = level.plan->tail;
	std::vector<EmittedColumn> columns;

	for (int i : tail.handed_on)
	{
		const StageColumnSource &column = tail.columns[static_cast<size_t>(i)];

		columns.push_back(EmittedColumn{source_of(level, column, Absent::Neither).from, column.carried ? outer_[0] : inner_[0]});
	}
	return columns;
}

/* Listed pairs that are rows which leave, while none has gathered: those beyond the buffers ahead do. */
void
JoinJob::leave_listed(size_t number, uint32_t rows, size_t ahead)
{
	const Level &level = levels_[number];
	const PairStage &tail = level.plan->tail;
	const uint32_t from = hand_over(ahead, 0, rows, false), left = rows - from;
	GatherColumn list[PROGRAM_MAX_COLUMNS];

	if (left == 0)
		return;
	for (uint32_t i = 0; i < out_.ncolumns; i++)
	{
		list[i] = source_of(level, tail.columns[static_cast<size_t>(tail.handed_on[i])], Absent::Neither);
		list[i].to = out_.column[i];
	}
	start();
	check(gather_rows(list, out_.ncolumns, outer_[0] + from, inner_[0] + from, left, lane_->stream), "gathering columns");
	check(cudaMemcpyAsync(&out_.state->nrows, &left, sizeof(left), cudaMemcpyHostToDevice, lane_->stream), "gathering columns");
	gathered(left, 0);
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
			m = limited_step(std::min(m, std::max(batch_ / TABLET_PAD_ROWS / npads, 1u)), npads);
		const RowSet *to = prepare_tail(number, m * npads * TABLET_PAD_ROWS);

		launch_grid(level, level.plan->tail, n, first, m, nullptr, to);
		end_tail(number, static_cast<uint64_t>(n) * m);
		if (!rows && first + m < level.side_rows)
			level.pair_ns = sync() / (static_cast<double>(align_up(n, TABLET_PAD_ROWS)) * m);
	}
}

}  // namespace cuda
}  // namespace gpuvm
