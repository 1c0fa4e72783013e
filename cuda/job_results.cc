/* job_results.cc: how what the launches left becomes result rows in the backend's buffers. See job.h. */
#include "job.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "cost.h"
#include "failure.h"

namespace gpuvm {
namespace cuda {

/* ---- buffers ------------------------------------------------------------------- */

/* A claimed buffer; -1 when the job is to stop. */
int
DeviceJob::claim_or_wait()
{
	for (;;)
	{
		int			buffer = stopped() ? -1 : io_->claim_buffer();

		if (buffer >= 0 || stopped_)
			return buffer;
		if (row_join_)
			device_->row_join_waits(true);
		stopped_ = !io_->wait_for_buffer();
		if (row_join_)
			device_->row_join_waits(false);
		if (stopped_)
			return -1;
	}
}

/*
 * Sees to it that up to `most` buffers are spare, waiting for one if nothing is in
 * flight. Returns how many are; 0 also when the job is to stop.
 */
size_t
DeviceJob::gather(size_t most)
{
	int			buffer;

	while (spare_.size() < most && (buffer = io_->claim_buffer()) >= 0)
		spare_.push_back(buffer);
	if (spare_.empty() && flights_.empty() && (buffer = claim_or_wait()) >= 0)
		spare_.push_back(buffer);
	return std::min(most, spare_.size());
}

void
DeviceJob::give_buffers(Flight *flight, size_t n)
{
	for (; n > 0; n--)
	{
		flight->buffers.push_back(spare_.back());
		spare_.pop_back();
	}
}

void
DeviceJob::unclaim_all(std::vector<int> *buffers)
{
	for (int buffer : *buffers)
		io_->unclaim(buffer);
	buffers->clear();
}

void
DeviceJob::publish(int buffer, uint32_t unit, uint32_t nrows, uint32_t errors)
{
	publish_part(buffer, unit, 0, true, nrows, errors);
}

void
DeviceJob::publish_part(int buffer, uint32_t unit, uint32_t part, bool last, uint32_t nrows, uint32_t errors)
{
	published_ = true;
	io_->publish_part(buffer, unit, part, last, nrows, errors);
	figures_->rows_out += nrows;
	figures_->bytes_moved += nrows * (result_bytes_ + result_types_.size() / 8);
}

/* The device writes to the result areas where they lie. */
void
DeviceJob::map_areas()
{
	const uint64_t bytes = result_layout(result_types_.data(), static_cast<int>(result_types_.size()), request_.capacity, nullptr);

	for (uint32_t i = 0; i < request_.nbuffers; i++)
	{
		if (!pins_.map(device_->index(), request_.areas[i], std::max<uint64_t>(bytes, 1)))
			throw Refusal{"the result buffers cannot be pinned now"};
		areas_.push_back(reinterpret_cast<char *>(pins_.address(device_->index(), request_.areas[i])));
	}
}

/* ---- aggregates --------------------------------------------------------- */

/* count_groups: one row, its only column the number of groups. */
void
DeviceJob::publish_count(uint64_t ngroups)
{
	const int	buffer = claim_or_wait();
	ResultColumnLayout at;

	if (buffer < 0)
		return;
	(void) result_layout(result_types_.data(), 1, request_.capacity, &at);
	memset(request_.areas[buffer] + at.nulls, 0, RESULT_PAD_ROWS / 8);
	memcpy(request_.areas[buffer] + at.values, &ngroups, sizeof(ngroups));
	publish(buffer, 0, 1, 0);
}

void
DeviceJob::run_aggregates(const DeviceProgram &program, bool nothing)
{
	LaunchState *state = &lane_->outcomes->state;

	if (nothing)
		*state = LaunchState{};
	else
	{
		check(reset_state(lane_->scratch, lane_->stream), "starting the job");
		run_all(nullptr, [&] {
			check(cudaMemcpyAsync(state, lane_->scratch.state, sizeof(LaunchState), cudaMemcpyDeviceToHost, lane_->stream), "fetching the result");
		});
	}
	if (stopped())
		return;
	if (set_ != nullptr)
	{
		store_aggregates(program, *state);
		return;
	}
	if (request_.count_groups)
	{
		/* Of the row only its errors matter. */
		std::vector<Type> types(request_.program->nresults);

		program_result_types(request_.program, types.data());

		const uint64_t bytes = result_layout(types.data(), static_cast<int>(types.size()), RESULT_PAD_ROWS, nullptr);
		std::vector<uint64_t> area(bytes / 8 + 1);

		figures_->errors = emit_aggregates(program, *state, rows_taken_, reinterpret_cast<char *>(area.data()), RESULT_PAD_ROWS);
		if (figures_->errors == 0)
			publish_count(1);
		return;
	}

	const int	buffer = claim_or_wait();

	if (buffer < 0)
		return;
	spare_.push_back(buffer);
	figures_->errors = emit_aggregates(program, *state, rows_taken_, request_.areas[buffer], request_.capacity);
	if (figures_->errors != 0)
		return;
	spare_.pop_back();
	publish(buffer, 0, 1, 0);
}

/* ---- groups ---------------------------------------------------------------------- */

void
DeviceJob::run_groups(const DeviceProgram &program, uint64_t rows, uint64_t missing_bytes, bool nothing)
{
	if (nothing && request_.program->nkeys > 0)
	{
		if (request_.count_groups)
			publish_count(0);
		return;
	}
	if (!request_.count_groups && set_ == nullptr)
		map_areas();

	const size_t lasting = working_.size();

	for (int attempt = 0; !try_groups(program, rows, missing_bytes, attempt); attempt++)
	{
		/* Nothing was published: it begins anew with a larger table. */
		free_working(lasting);
		begin_again();
	}
}

bool
DeviceJob::try_groups(const DeviceProgram &program, uint64_t rows, uint64_t missing_bytes, int attempt)
{
	GroupOutcome *outcome = &lane_->outcomes->groups;
	GroupPlan	plan;
	const uint64_t available = device_->residency()->available();
	/* The columns are to find room, too, unless that leaves next to nothing. */
	const uint64_t most = std::max(available / 2, available - std::min(available, missing_bytes));
	const char *reason = plan_groups(program, rows, most, attempt, &plan);

	if (reason == GROUPS_NO_MEMORY)
		throw no_room("groups", "over ", most);
	if (reason != nullptr)
		throw Refusal{reason};

	most_slice_rows_ = plan.max_slice_rows == 0 ? UINT64_MAX : plan.max_slice_rows;

	const GroupTable table = group_table(program, plan, allocate(plan.table_bytes));
	GroupTable	listed = table;

	if (request_.count_groups)
		listed.list = nullptr;	/* nobody will ask which */

	check(reset_groups(program, table, lane_->stream), "emptying the group table");
	check(reset_state(lane_->scratch, lane_->stream), "starting the job");
	run_all(&table, [&] {
		check(finish_groups(program, listed, lane_->scratch.state, &lane_->outcomes_at->groups, lane_->stream), "listing the groups");
	});
	if (stopped())
		return true;
	if (outcome->overflow)
		return false;
	figures_->errors = outcome->errors;
	if (figures_->errors != 0)
		return true;
	if (request_.count_groups)
		publish_count(outcome->ngroups);
	else if (request_.norder > 0)
		sort_groups(program, table, outcome->ngroups);
	else if (set_ != nullptr)
		store_rows(group_rows(program, table, outcome->ngroups), nullptr, static_cast<uint32_t>(outcome->ngroups));
	else
		emit_groups(program, table, outcome->ngroups);
	return true;
}

/* ---- results that stay ------------------------------------------------------------- */

/* As the results; where they are enqueued, the stream has not got yet. */
RowSet
DeviceJob::group_rows(const DeviceProgram &program, const GroupTable &table, uint64_t ngroups)
{
	const uint32_t ncolumns = static_cast<uint32_t>(result_types_.size());
	uint8_t		nullable[PROGRAM_MAX_COLUMNS / 8];

	if (ngroups > ROW_SET_MAX_ROWS)
		throw Refusal{"there are too many groups for the device"};
	memset(nullable, 0xff, sizeof(nullable));

	const RowSet rows = row_set(result_types_.data(), nullable, ncolumns, ngroups,
								allocate(row_set_bytes(result_types_.data(), nullable, ncolumns, ngroups)));

	begin_flight(*open_flight(0, 0));
	check(::gpuvm::cuda::store_groups(program, table, static_cast<uint32_t>(ngroups), rows, lane_->stream), "storing groups");
	close_flight();
	return rows;
}

/* Memory for a part of the set. */
char *
DeviceJob::allocate_part(uint64_t bytes)
{
	const uint64_t held = set_->bytes(), granted = request_.sink_limit;

	if (bytes > granted - std::min(granted, held))
	{
		char		why[128];

		snprintf(why, sizeof(why), "a result set has %" PRIu64 " kB and needs %" PRIu64 " kB more; %" PRIu64 " kB are left for it", held >> 10,
				 (bytes + 1023) >> 10, granted >> 10);
		figures_->set_short = held + bytes;
		throw Refusal{why};
	}
	return allocate(bytes);
}

void
DeviceJob::store_rows(const RowSet &rows, const uint32_t *order, uint32_t nrows)
{
	while (nrows == 0 && !flights_.empty())
		(void) land();
	if (nrows == 0)
		return;

	const uint64_t bytes = set_->part_bytes(rows, nrows), facts_bytes = std::max(set_->ncolumns(), 1u) * sizeof(SetColumnFacts);
	char	   *memory = allocate_part(bytes);
	const RowSet part = set_->part(rows, nrows, memory);
	SetColumnFacts *facts = reinterpret_cast<SetColumnFacts *>(allocate(facts_bytes));

	begin_flight(*open_flight(0, 0));
	check(store_set_columns(rows, set_->sources(), order, nrows, part, facts, lane_->stream), "storing a result set");
	check(cudaMemcpyAsync(lane_->outcomes->set_columns, facts, set_->ncolumns() * sizeof(SetColumnFacts), cudaMemcpyDeviceToHost, lane_->stream),
		  "storing a result set");
	close_flight();
	while (!flights_.empty())
		(void) land();
	release(reinterpret_cast<char *>(facts));
	if (stopped())
		return;
	figures_->rows_out += nrows;
	if (!set_->take(part, nrows, memory, bytes, lane_->outcomes->set_columns))
	{
		figures_->errors |= ERR_INT_OVERFLOW;
		return;
	}
	/* the memory is the set's */
	working_.erase(std::find_if(working_.begin(), working_.end(), [&](const Working &of) { return of.memory == memory; }));
}

/* The one group of a program without keys. */
void
DeviceJob::store_aggregates(const DeviceProgram &program, const LaunchState &state)
{
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];
	const uint64_t bytes = result_layout(program.result_type, program.nresults, RESULT_PAD_ROWS, layout);
	std::vector<uint64_t> area(bytes / 8 + 1);
	char	   *from = reinterpret_cast<char *>(area.data());

	figures_->errors = emit_aggregates(program, state, rows_taken_, from, RESULT_PAD_ROWS);
	if (figures_->errors != 0)
		return;

	const uint32_t ncolumns = static_cast<uint32_t>(result_types_.size());
	uint8_t		nullable[PROGRAM_MAX_COLUMNS / 8];

	memset(nullable, 0xff, sizeof(nullable));

	const RowSet rows = row_set(result_types_.data(), nullable, ncolumns, 1, allocate(row_set_bytes(result_types_.data(), nullable, ncolumns, 1)));

	begin_flight(*open_flight(0, 0));
	for (uint32_t c = 0; c < rows.ncolumns; c++)
	{
		const RowColumn &to = rows.column[c];

		check(cudaMemcpyAsync(to.values, from + layout[c].values, static_cast<size_t>(type_natural_width(to.type)), cudaMemcpyHostToDevice,
							  lane_->stream), "storing a group");
		check(cudaMemcpyAsync(to.nulls, from + layout[c].nulls, RESULT_PAD_ROWS / 8, cudaMemcpyHostToDevice, lane_->stream), "storing a group");
	}
	close_flight();
	store_rows(rows, nullptr, 1);
}

/* ---- rows that leave ------------------------------------------------------------------ */

/* Rows from a number on, so many, are written to a buffer's area by `emit`: units of a buffer each. */
void
DeviceJob::emit_in_order(uint64_t nrows, const std::function<void(uint64_t, uint32_t, char *)> &emit)
{
	const size_t most = std::max(1u, (request_.nbuffers + 1) / 2);
	uint64_t	next = 0;
	uint32_t	sequence = 0;

	while (!flights_.empty() || (next < nrows && !stopped()))
	{
		size_t		n = 0;

		if (flights_.size() < IN_FLIGHT && next < nrows && !stopped_)
			n = gather(std::min<uint64_t>(most, (nrows - next + request_.capacity - 1) / request_.capacity));
		if (n == 0 && flights_.empty())
			break;
		if (n == 0)
		{
			const Flight flight = land();
			uint64_t	from = flight.first_item;

			for (int buffer : flight.buffers)
			{
				const uint32_t rows = static_cast<uint32_t>(std::min<uint64_t>(request_.capacity, nrows - from));

				if (stopped_)
					io_->unclaim(buffer);
				else
					publish(buffer, sequence++, rows, 0);
				from += rows;
			}
			continue;
		}

		Flight	   *flight = open_flight(0, 0);

		flight->first_item = next;
		give_buffers(flight, n);
		begin_flight(*flight);
		for (int buffer : flight->buffers)
		{
			const uint32_t rows = static_cast<uint32_t>(std::min<uint64_t>(request_.capacity, nrows - next));

			emit(next, rows, areas_[static_cast<size_t>(buffer)]);
			next += rows;
		}
		close_flight();
	}
}

void
DeviceJob::emit_groups(const DeviceProgram &program, const GroupTable &table, uint64_t ngroups)
{
	emit_in_order(ngroups, [&](uint64_t first, uint32_t n, char *area) {
		check(::gpuvm::cuda::emit_groups(program, table, first, n, area, request_.capacity, lane_->stream), "emitting groups");
	});
}

}  // namespace cuda
}  // namespace gpuvm
