/* join_rows.cc: rows that leave a join. See join.h. */
#include "join.h"

#include <algorithm>

#include "failure.h"

namespace gpuvm {
namespace cuda {

constexpr uint32_t BUFFERS_AHEAD = 2;	/* that are written before it is known how many rows there are */

/*
 * Rows that leave sorted stay until all are there. Of those that there are the first are kept, where that leaves room for
 * many; else the row set grows. `rows`: that are to find room.
 */
void
JoinJob::make_room(uint32_t rows)
{
	(void) sync();
	if (request_.row_limit != 0 && request_.row_limit <= out_.capacity / 4)
		keep_first(static_cast<uint32_t>(request_.row_limit));
	if (out_rows_ + static_cast<uint64_t>(rows) <= out_.capacity)
		return;

	const uint64_t capacity = std::min<uint64_t>(2 * static_cast<uint64_t>(out_.capacity), ROW_SET_MAX_ROWS / TABLET_PAD_ROWS * TABLET_PAD_ROWS);

	if (out_rows_ + static_cast<uint64_t>(rows) > capacity)
		throw Refusal{"the device does not sort so many rows"};

	char	   *memory = allocate(row_set_bytes(plan_->end(), capacity));
	const RowSet larger = row_set(plan_->end(), capacity, memory);

	start();
	check(reset_rows(larger, lane_->stream), "emptying a row set");
	check(move_rows(out_, out_rows_, larger, lane_->stream), "moving rows");
	release(out_memory_);
	out_memory_ = memory;
	out_ = larger;
}

/* So many of the rows that are to leave, in the order; the others go. */
void
JoinJob::keep_first(uint32_t n)
{
	const size_t lasting = working_.size();
	GatherColumn columns[PROGRAM_MAX_COLUMNS];

	take_step([&] { look_at_keys(out_, out_rows_, false); });

	const uint32_t *order = stopped() ? nullptr : sort_first(out_, out_rows_, n);

	if (order == nullptr)
		throw Stopped();

	const RowSet first = row_set(plan_->end(), n, allocate(row_set_bytes(plan_->end(), n)));

	for (uint32_t c = 0; c < out_.ncolumns; c++)
		columns[c] = GatherColumn{out_.column[c], first.column[c], GatherBy::Outer};
	(void) land();
	start();
	check(reset_rows(first, lane_->stream), "emptying a row set");
	check(gather_rows(columns, out_.ncolumns, order, nullptr, n, lane_->stream), "keeping the first rows");
	check(cudaMemcpyAsync(&first.state->nrows, &n, sizeof(n), cudaMemcpyHostToDevice, lane_->stream), "keeping the first rows");
	check(reset_rows(out_, lane_->stream), "emptying a row set");
	check(move_rows(first, n, out_, lane_->stream), "keeping the first rows");
	out_rows_ = n;
	(void) sync();
	free_working(lasting);
}

/*
 * Nothing has been handed out, so somebody waits for rows: before it is known how many there are, `most` at most, the first ones are
 * written to result buffers. Returns how many buffers.
 */
size_t
JoinJob::emit_ahead(const std::vector<EmittedColumn> &columns, uint64_t most, const RowSetState *state)
{
	if (part_ != 0 || gathers_all() || columns.empty())
		return 0;
	return emit_rows_out(columns, 0, static_cast<uint32_t>(std::min(request_.capacity * uint64_t{BUFFERS_AHEAD}, most)),
						 RowsAhead{state, &lane_->scratch.state->errors, &lane_->outcomes_at->join.rows});
}

/* Rows [from, end) are written to as many buffers as there are. */
size_t
JoinJob::emit_rows_out(const std::vector<EmittedColumn> &columns, uint32_t from, uint32_t end, const RowsAhead &ahead)
{
	const uint32_t wanted = (end - from + request_.capacity - 1) / request_.capacity;
	const size_t n = gather(std::min(wanted, std::max(1u, (request_.nbuffers + 1) / 2)));

	if (n == 0)
		throw Stopped();
	start();
	for (size_t i = 0; i < n; i++, from += request_.capacity)
		check(emit_columns(columns.data(), static_cast<uint32_t>(columns.size()), from, std::min(request_.capacity, end - from),
						   areas_[static_cast<size_t>(spare_[i])], request_.capacity, lane_->stream, ahead), "emitting rows");
	return n;
}

/* The first spare buffers, `n` at most, have rows [from, end). `last`: nothing will come behind these. Returns the row behind those that were handed over. */
uint32_t
JoinJob::hand_over(size_t n, uint32_t from, uint32_t end, bool last)
{
	for (; n > 0 && from < end; n--)
	{
		const int	buffer = spare_.front();
		const uint32_t rows = std::min(request_.capacity, end - from);

		if (stopped())
			throw Stopped();
		spare_.erase(spare_.begin());
		from += rows;
		publish_part(buffer, 0, part_++, last && from == end, rows, 0);
	}
	return from;
}

std::vector<EmittedColumn>
JoinJob::gathered_rows() const
{
	std::vector<EmittedColumn> columns;

	for (uint32_t c = 0; c < out_.ncolumns; c++)
		columns.push_back(EmittedColumn{out_.column[c], nullptr});
	return columns;
}

/* Hands over what has gathered, but for rows before `from`, which were; `end`: nothing will come behind it. Or a set takes it. */
void
JoinJob::flush(uint32_t from, bool end)
{
	if (set_ != nullptr)
	{
		(void) sync();
		store_rows(out_, nullptr, out_rows_);
		if (stopped())
			throw Stopped();
		if (figures_->errors != 0)
			throw RowErrors{figures_->errors};
		from = out_rows_;
	}
	while (from < out_rows_)
	{
		const size_t n = emit_rows_out(gathered_rows(), from, out_rows_, {});

		(void) sync();
		from = hand_over(n, from, out_rows_, end);
	}
	out_rows_ = 0;
	if (end)
		return;
	start();
	check(reset_rows(out_, lane_->stream), "emptying a row set");
}

void
JoinJob::end_rows()
{
	if (request_.norder > 0)
	{
		(void) sync();
		if (out_rows_ == 0)
			return;
		take_step([&] { look_at_keys(out_, out_rows_, false); });
		if (!stopped())
			sort_out(out_, out_rows_);
		return;
	}
	if (out_rows_ != 0 || set_ != nullptr)
	{
		flush(0, true);
		return;
	}
	(void) sync();
	/* All was handed over before it was known to be all. */
	if (part_ == 0 || gather(1) == 0)
		return;

	const int	buffer = spare_.back();

	spare_.pop_back();
	publish_part(buffer, 0, part_, true, 0, 0);
}

}  // namespace cuda
}  // namespace gpuvm
