/* job_results.cc: how what the slices left becomes result rows in the backend's buffers. See job.h. */
#include "job.h"

#include <algorithm>
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
		if (!io_->wait_for_buffer())
		{
			stopped_ = true;
			return -1;
		}
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
	published_ = true;
	io_->publish(buffer, unit, nrows, errors);
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
		if (!feed_.pins()->map(device_->index(), request_.areas[i], std::max<uint64_t>(bytes, 1)))
			throw Refusal{"the result buffers cannot be pinned now"};
		areas_.push_back(reinterpret_cast<char *>(feed_.pins()->address(device_->index(), request_.areas[i])));
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
DeviceJob::run_aggregates()
{
	LaunchState *state = &lane_->outcomes->state;

	if (work_.pads.empty())
		*state = LaunchState{};
	else
	{
		check(choose_shape(program_, work_.pads.size(), &shape_), "fitting the program to the device");
		check(reset_state(lane_->scratch, lane_->stream), "starting the job");
		run_slices(nullptr, [&] {
			check(cudaMemcpyAsync(state, lane_->scratch.state, sizeof(LaunchState), cudaMemcpyDeviceToHost, lane_->stream), "fetching the result");
		});
	}
	if (stopped())
		return;
	if (request_.count_groups)
	{
		/* Of the row only its errors matter. */
		std::vector<Type> types(request_.program->nresults);

		program_result_types(request_.program, types.data());

		const uint64_t bytes = result_layout(types.data(), static_cast<int>(types.size()), RESULT_PAD_ROWS, nullptr);
		std::vector<uint64_t> area(bytes / 8 + 1);

		figures_->errors = emit_aggregates(program_, *state, work_.rows, reinterpret_cast<char *>(area.data()), RESULT_PAD_ROWS);
		if (figures_->errors == 0)
			publish_count(1);
		return;
	}

	const int	buffer = claim_or_wait();

	if (buffer < 0)
		return;
	spare_.push_back(buffer);
	figures_->errors = emit_aggregates(program_, *state, work_.rows, request_.areas[buffer], request_.capacity);
	if (figures_->errors != 0)
		return;
	spare_.pop_back();
	publish(buffer, 0, 1, 0);
}

/* ---- groups ---------------------------------------------------------------------- */

void
DeviceJob::run_groups()
{
	if (work_.pads.empty() && request_.program->nkeys > 0)
	{
		if (request_.count_groups)
			publish_count(0);
		return;
	}
	if (!request_.count_groups)
		map_areas();

	const size_t lasting = working_.size();

	for (int attempt = 0; !try_groups(attempt); attempt++)
	{
		/* Nothing was published: it begins anew with a larger table. */
		free_working(lasting);
		feed_.restart();
		figures_->rows_in = figures_->bytes_read = 0;
		figures_->tablets_scanned = 0;
	}
}

bool
DeviceJob::try_groups(int attempt)
{
	GroupOutcome *outcome = &lane_->outcomes->groups;
	GroupPlan	plan;
	const uint64_t available = device_->residency()->available();
	const uint64_t missing = feed_.missing_bytes();
	/* The columns are to find room, too, unless that leaves next to nothing. */
	const char *reason = plan_groups(program_, work_.rows, std::max(available / 2, available - std::min(available, missing)), attempt, &plan);

	if (reason != nullptr)
		throw Refusal{reason};

	most_slice_pads_ = plan.max_slice_rows == 0 ? UINT32_MAX : static_cast<uint32_t>(plan.max_slice_rows / TABLET_PAD_ROWS);

	const GroupTable table = group_table(program_, plan, allocate(plan.table_bytes));

	check(choose_shape(program_, work_.pads.size(), &shape_, table.shared_bytes), "fitting the program to the device");
	check(reset_groups(program_, table, lane_->stream), "emptying the group table");
	check(reset_state(lane_->scratch, lane_->stream), "starting the job");
	run_slices(&table, [&] {
		check(finish_groups(program_, table, lane_->scratch.state, &lane_->outcomes_at->groups, lane_->stream), "listing the groups");
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
	else
		emit_groups(table, outcome->ngroups);
	return true;
}

void
DeviceJob::emit_groups(const GroupTable &table, uint64_t ngroups)
{
	const size_t most = std::max(1u, (request_.nbuffers + 1) / 2);
	uint64_t	next = 0;
	uint32_t	sequence = 0;

	while (!flights_.empty() || (next < ngroups && !stopped()))
	{
		size_t		n = 0;

		if (flights_.size() < IN_FLIGHT && next < ngroups && !stopped_)
			n = gather(std::min<uint64_t>(most, (ngroups - next + request_.capacity - 1) / request_.capacity));
		if (n == 0 && flights_.empty())
			break;
		if (n == 0)
		{
			const Flight flight = land();
			uint64_t	from = flight.first_item;

			for (int buffer : flight.buffers)
			{
				const uint32_t rows = static_cast<uint32_t>(std::min<uint64_t>(request_.capacity, ngroups - from));

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
		check(cudaEventRecord(lane_->slices[flight->slot].begin, lane_->stream), "recording an event");
		for (int buffer : flight->buffers)
		{
			const uint32_t rows = static_cast<uint32_t>(std::min<uint64_t>(request_.capacity, ngroups - next));

			check(::gpuvm::cuda::emit_groups(program_, table, next, rows, areas_[static_cast<size_t>(buffer)], request_.capacity, lane_->stream),
				  "emitting groups");
			next += rows;
		}
		close_flight();
	}
}

/* ---- rows -------------------------------------------------------------------------- */

void
DeviceJob::run_rows()
{
	if (work_.units.empty())
		return;
	map_areas();

	/* A slice's most units: half of the buffers, no more than a slice's time, and what there is staging memory for. */
	const uint32_t unit_pads = request_.unit_rows / TABLET_PAD_ROWS;
	const uint32_t time_pads = std::max(1u, static_cast<uint32_t>(SLICE_NS / pad_ns(0)));
	size_t		most = std::max(1u, std::min((request_.nbuffers + 1) / 2, time_pads / unit_pads));
	RowStaging	staging[IN_FLIGHT];

	for (;; most = (most + 1) / 2)
	{
		const uint64_t pads = std::min<uint64_t>(most * unit_pads, work_.pads.size());

		check(choose_shape(program_, pads, &shape_), "fitting the program to the device");

		const uint64_t bytes = align_up(row_staging_bytes(program_, pads), 256);
		char	   *memory = most > 1 ? try_allocate(bytes * IN_FLIGHT) : allocate(bytes * IN_FLIGHT);

		if (memory == nullptr)
			continue;
		for (int i = 0; i < IN_FLIGHT; i++)
			staging[i] = row_staging(program_, pads, memory + bytes * static_cast<uint64_t>(i));
		break;
	}

	size_t		next = 0;

	while (!flights_.empty() || (next < work_.units.size() && !stopped()))
	{
		size_t		n = 0;

		if (flights_.size() < IN_FLIGHT && next < work_.units.size() && !stopped_)
			n = gather(std::min({most, work_.units.size() - next,
								 std::max<size_t>(1, slice_pads(work_.units[next].first_pad) / unit_pads)}));
		if (n == 0 && flights_.empty())
			break;
		if (n == 0)
		{
			publish_rows(land());
			continue;
		}

		const WorkUnit &first = work_.units[next], &last = work_.units[next + n - 1];
		Flight	   *flight = open_flight(first.first_pad, last.first_pad + last.npads - first.first_pad);

		flight->first_item = next;
		give_buffers(flight, n);
		next += n;
		launch_rows(flight, staging[flight->slot]);
	}
}

void
DeviceJob::launch_rows(Flight *flight, const RowStaging &staging)
{
	RowSliceUnit units[JOB_MAX_BUFFERS];
	const uint32_t n = static_cast<uint32_t>(flight->buffers.size());

	for (uint32_t i = 0; i < n; i++)
	{
		const WorkUnit &unit = work_.units[flight->first_item + i];

		units[i] = RowSliceUnit{areas_[static_cast<size_t>(flight->buffers[i])], unit.first_pad, unit.npads};
	}
	launch(flight, &staging, nullptr);
	check(compact_rows(program_, staging, flight->first_pad, units, n, request_.capacity, lane_->outcomes_at->units[flight->slot],
					   lane_->stream), "emitting rows");
	close_flight();
}

/* In order; a stopped job's rows stay, as do those beyond the limit. */
void
DeviceJob::publish_rows(const Flight &flight)
{
	for (size_t i = 0; i < flight.buffers.size(); i++)
	{
		const UnitOutcome outcome = lane_->outcomes->units[flight.slot][i];
		const int	buffer = flight.buffers[i];

		if (stopped_ || stopped())
			io_->unclaim(buffer);
		else if (outcome.rows == 0 && outcome.errors == 0)
			spare_.push_back(buffer);
		else
			publish(buffer, work_.units[flight.first_item + i].number, outcome.errors ? 0 : outcome.rows, outcome.errors);
	}
}

}  // namespace cuda
}  // namespace gpuvm
