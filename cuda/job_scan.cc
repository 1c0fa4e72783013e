/* job_scan.cc: see job_scan.h. */
#include "job_scan.h"

#include <algorithm>

#include "cost.h"
#include "failure.h"

namespace gpuvm {
namespace cuda {

constexpr double FIRST_SLICE_NS = 2e6;	/* its time is a guess */
constexpr double ADAPT_NS = 2e5;		/* shorter ones say more about launching than about the program */
constexpr uint64_t COPY_SLICE_BYTES = 32ull << 20;	/* to be copied for one slice: its kernel waits for all of them */
constexpr uint32_t MOST_SORT_PADS = (64u << 20) / TABLET_PAD_ROWS;	/* of a slice whose rows are to be sorted */
constexpr uint32_t PART_SLICES = 4;	/* of the largest size, that rows are collected of for a part of a set */

ScanSizes	scan_sizes;

double
Pace::slice_ns() const
{
	return (started_ ? SLICE_NS : FIRST_SLICE_NS) / pace_;
}

void
Pace::learn(double expected_ns, double measured_ns)
{
	if (std::max(measured_ns, expected_ns) < ADAPT_NS)
		return;

	const double pace = std::clamp(measured_ns / expected_ns, 0.02, 1e5);

	pace_ = pace > pace_ ? pace : (pace + pace_) / 2;
}

/* One pad of the tablet, if all goes as expected. */
double
pad_ns(const DeviceProgram &program, const Work &work, const TableFeed &feed, uint32_t tablet)
{
	const TableFeed::Load load = feed.load(tablet);
	const double pads = work.tablets[tablet].tablet->padded_rows / TABLET_PAD_ROWS;

	return kernel_ns(program, TABLET_PAD_ROWS, static_cast<double>(load.local) / pads, static_cast<double>(load.mapped) / pads,
					 uses_group_table(program));
}

double
pads_ns(const DeviceProgram &program, const Work &work, const TableFeed &feed, uint32_t first, uint32_t npads)
{
	double		ns = 0;

	for (uint32_t at = first; at < first + npads;)
	{
		const WorkTablet &tablet = work.tablets[work.pads[at].tablet];
		const uint32_t end = std::min(first + npads, tablet.first_pad + tablet.npads);

		ns += (end - at) * pad_ns(program, work, feed, work.pads[at].tablet);
		at = end;
	}
	return ns;
}

uint32_t
slice_pads(const DeviceProgram &program, const Work &work, const TableFeed &feed, uint32_t first, double left)
{
	uint64_t	copies = 0;
	uint32_t	n = 0;

	for (uint32_t t = work.pads[first].tablet; t < work.tablets.size(); t++)
	{
		const WorkTablet &tablet = work.tablets[t];
		const uint32_t pads = tablet.first_pad + tablet.npads - (first + n);
		const double ns = pad_ns(program, work, feed, t);

		copies += feed.load(t).copies;
		if (n > 0 && copies > COPY_SLICE_BYTES)
			break;
		if (left < pads * ns)
		{
			n += static_cast<uint32_t>(left / ns);
			break;
		}
		n += pads;
		left -= pads * ns;
	}
	return std::max(n, 1u);
}

void
count_work(const Work &work, const TableFeed &feed, uint32_t first, uint32_t npads, DeviceJobFigures *figures)
{
	for (uint32_t at = first; at < first + npads;)
	{
		const uint32_t t = work.pads[at].tablet;
		const WorkTablet &tablet = work.tablets[t];
		const uint32_t end = std::min(first + npads, tablet.first_pad + tablet.npads);
		const TableFeed::Load load = feed.load(t);
		const uint32_t pads = tablet.tablet->padded_rows / TABLET_PAD_ROWS;

		figures->rows_in += rows_of_pads(work, tablet, at, end);
		figures->bytes_read += (load.local + load.mapped) * (end - at) / pads;
		figures->bytes_moved += load.mapped * (end - at) / pads;
		figures->tablets_scanned = t + 1;
		at = end;
	}
}

ScanJob::ScanJob(CudaDevice *device, PinnedArena *arena, const DeviceJobRequest &request, const DeviceProgram &program,
				 const Work &work, DeviceJobIo *io, DeviceJobFigures *figures)
	: DeviceJob(device, arena, request, io, figures), program_(program), work_(work), feed_(device, arena, program, work)
{
}

/* Whatever happened, the device is done with the job before anything of it is freed. */
ScanJob::~ScanJob()
{
	drain();
}

void
ScanJob::run()
{
	const bool	nothing = work_.pads.empty();

	device_->use();
	feed_.begin(request_.transfer);
	figures_->transfer = feed_.transfer();
	begin(feed_.all_placed() && feed_.bytes() <= SMALL_BYTES);
	feed_.use_lane(lane_);
	check(send_long_lists(program_, lane_->scratch, lane_->stream), "sending lists");
	if (!nothing)
		send_maps();
	if (work_.dead_pads != 0)
		feed_.use_dead_bits(allocate(work_.dead_pads * DEAD_PAD_BYTES));

	rows_taken_ = work_.rows;
	if (!leaves_by_units(request_) && !request_.program->grouped)
		collect_rows();
	else if (!request_.program->grouped)
		run_rows();
	else if (uses_group_table(program_))
		run_groups(program_, work_.rows, feed_.missing_bytes(), nothing);
	else
		run_aggregates(program_, nothing);
	figures_->bytes_moved += feed_.copied_bytes();
}

TopBound
ScanJob::run_sample()
{
	TopBound	bound;

	bound_ = &bound;
	run();
	return bound;
}

/* ---- slices -------------------------------------------------------------------- */

uint32_t
ScanJob::next_slice(uint32_t first) const
{
	const uint32_t most = static_cast<uint32_t>(std::min<uint64_t>(most_slice_rows_ / TABLET_PAD_ROWS, UINT32_MAX));

	return std::max(std::min(slice_pads(program_, work_, feed_, first, pace_.slice_ns()), most), 1u);
}

/* Serial: in parts, between which the job may be stopped. */
void
ScanJob::copy_all()
{
	while (!stopped() && feed_.copy_some(SERIAL_PART_BYTES))
		wait_for(lane_->copied);
	if (stopped())
		throw Stopped();
}

void
ScanJob::launch(Flight *flight, const RowStaging *rows, const GroupTable *groups)
{
	flight->expected_ns = pads_ns(program_, work_, feed_, flight->first_pad, flight->npads);
	begin_flight(*flight);
	if (feed_.transfer() == Transfer::Serial && !feed_.all_placed())
		copy_all();
	feed_.bring(flight->first_pad, flight->npads, &flight->waits);
	if (flight->waits)
		check(cudaEventRecord(lane_->slices[flight->slot].kernels, lane_->stream), "recording an event");
	check(launch_slice(program_, shape_, lane_->scratch,
					   SliceArgs{feed_.table(), flight->first_pad, flight->npads, lane_->abort, rows, groups}, lane_->stream),
		  "launching the interpreter");
	pace_.begin();
}

void
ScanJob::count_pads(const Flight &flight, double ns)
{
	pace_.learn(flight.expected_ns, ns);
	figures_->slices++;
	count_work(work_, feed_, flight.first_pad, flight.npads, figures_);
	feed_.retire(flight.first_pad + flight.npads);
}

void
ScanJob::run_all(const GroupTable *groups, const std::function<void()> &behind)
{
	const uint32_t npads = static_cast<uint32_t>(work_.pads.size());
	uint32_t	next = 0;

	check(choose_shape(program_, npads, &shape_, groups != nullptr ? groups->shared_bytes : 0), "fitting the program to the device");
	if (npads == 0)
	{
		begin_flight(*open_flight(0, 0));
		behind();
		close_flight();
	}
	while (!flights_.empty() || (next < npads && !stopped()))
	{
		if (flights_.size() == IN_FLIGHT || next == npads || stopped_)
		{
			land();
			continue;
		}

		const uint32_t pads = next_slice(next);

		launch(open_flight(next, pads), nullptr, groups);
		next += pads;
		if (next == npads)
			behind();
		close_flight();
	}
}

void
ScanJob::begin_again()
{
	feed_.restart();
	figures_->rows_in = figures_->bytes_read = 0;
	figures_->tablets_scanned = 0;
}

/* ---- rows -------------------------------------------------------------------------- */

void
ScanJob::run_rows()
{
	if (work_.units.empty())
		return;
	map_areas();

	/* A slice's most units: half of the buffers, no more than a slice's time, and what there is staging memory for. */
	const uint32_t unit_pads = request_.unit_rows / TABLET_PAD_ROWS;
	const uint32_t time_pads = std::max(1u, static_cast<uint32_t>(SLICE_NS / pad_ns(program_, work_, feed_, 0)));
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
								 std::max<size_t>(1, next_slice(work_.units[next].first_pad) / unit_pads)}));
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

/* Memory for slices of at most so many pads, fewer where there is no room, and what append_rows() needs for one. */
RowStaging
ScanJob::make_staging(uint32_t *most, char **temp)
{
	char	   *memory = nullptr;

	for (;; *most = (*most + 1) / 2)
	{
		const uint64_t staging_bytes = align_up(row_staging_bytes(program_, *most), 256), bytes = staging_bytes + append_temp_bytes(program_, *most);

		check(choose_shape(program_, *most, &shape_), "fitting the program to the device");
		memory = *most > 1 ? try_allocate(bytes) : allocate(bytes);
		if (memory == nullptr)
			continue;
		*temp = memory + staging_bytes;
		return row_staging(program_, *most, memory);
	}
}

/*
 * All rows are collected; then they leave, or a bound is made of them, or a set. So it is with rows of a set, too, of which few may be left: slices need not be
 * as small as buffers are then, nor wait for somebody to take a few rows of each. A set takes what has been collected whenever another slice
 * might find no room, unless it is to be sorted.
 */
void
ScanJob::collect_rows()
{
	const bool	parts = set_ != nullptr && request_.norder == 0;
	const uint32_t npads = static_cast<uint32_t>(work_.pads.size());
	uint32_t	most = std::min(npads, parts ? scan_sizes.most_part_pads : MOST_SORT_PADS), next = 0, in_flight = 0;
	char	   *temp;

	if (npads == 0)
		return;
	if (work_.rows > ROW_SET_MAX_ROWS && !parts)
		throw Refusal{"the device does not collect so many rows"};
	if (bound_ == nullptr && set_ == nullptr)
		map_areas();

	const RowStaging staging = make_staging(&most, &temp);
	const uint64_t part_rows = uint64_t{PART_SLICES} * most * TABLET_PAD_ROWS, capacity = parts ? std::min(work_.rows, part_rows) : work_.rows;
	const RowSet rows = row_set(program_, capacity, allocate(row_set_bytes(program_, capacity)));

	collected_ = RowSetState{};
	check(reset_rows(rows, lane_->stream), "emptying a row set");
	while (!flights_.empty() || (next < npads && !stopped()))
	{
		const bool	may_launch = flights_.size() < IN_FLIGHT && next < npads && !stopped_;
		const uint32_t pads = may_launch ? std::min({next_slice(next), most, npads - next}) : 0;
		const bool	room = capacity == work_.rows || collected_.nrows + (uint64_t{in_flight} + pads) * TABLET_PAD_ROWS <= capacity;

		if (!flights_.empty() && (pads == 0 || !room))
		{
			const Flight flight = land();

			in_flight -= flight.npads;
			collected_ = lane_->outcomes->rows[flight.slot];
			continue;
		}
		if (!room)
		{
			if (!store_collected(rows))
				return;
			continue;
		}

		Flight	   *flight = open_flight(next, pads);

		launch(flight, &staging, nullptr);
		next += pads;
		in_flight += pads;
		check(append_rows(program_, staging, pads, rows, temp, &lane_->outcomes_at->rows[flight->slot], lane_->stream), "collecting rows");
		if (next == npads && request_.norder > 0)
			look_at_keys(rows, static_cast<uint32_t>(work_.rows), true);
		close_flight();
	}
	if (stopped())
		return;
	figures_->errors = collected_.errors;
	if (figures_->errors != 0)
		return;
	if (bound_ != nullptr)
		*bound_ = find_bound(rows, collected_.nrows, static_cast<uint32_t>(request_.row_limit));
	else
		sort_out(rows, collected_.nrows);
}

/* Nothing is in flight. What there is becomes a part of the set; false: there is no point in going on. */
bool
ScanJob::store_collected(const RowSet &rows)
{
	figures_->errors = collected_.errors;
	if (figures_->errors != 0)
		return false;
	store_rows(rows, nullptr, collected_.nrows);
	if (stopped() || figures_->errors != 0)
		return false;
	collected_ = RowSetState{};
	check(reset_rows(rows, lane_->stream), "emptying a row set");
	return true;
}

void
ScanJob::launch_rows(Flight *flight, const RowStaging &staging)
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
ScanJob::publish_rows(const Flight &flight)
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
