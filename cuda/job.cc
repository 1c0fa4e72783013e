/* job.cc: slices, waiting and stopping. Where results go is in job_results.cc. See job.h. */
#include "job.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "cost.h"
#include "failure.h"

namespace gpuvm {
namespace cuda {

constexpr double FIRST_SLICE_NS = 2e6;	/* its time is a guess */
constexpr double ADAPT_NS = 2e5;		/* shorter ones say more about launching than about the program */
constexpr uint64_t COPY_SLICE_BYTES = 32ull << 20;	/* to be copied for one slice: its kernel waits for all of them */
constexpr uint64_t SERIAL_PART_BYTES = 256ull << 20;	/* a few ms: nothing ends copies that were started */
constexpr int64_t LOOK_INTERVAL_NS = 500'000;
constexpr int64_t SPIN_NS = 200'000;
constexpr int64_t YIELD_NS = 2'000'000;
constexpr uint64_t SMALL_BYTES = 256ull << 20;
constexpr std::chrono::seconds MEMORY_PATIENCE(2);

DeviceJob::DeviceJob(CudaDevice *device, PinnedArena *arena, const DeviceJobRequest &request, const DeviceProgram &program,
					 const Work &work, DeviceJobIo *io, DeviceJobFigures *figures)
	: device_(device), request_(request), program_(program), work_(work), io_(io), figures_(figures),
	  result_types_(request.program->nresults), hold_(device), feed_(device, arena, program, work)
{
	program_result_types(request.program, result_types_.data());
	if (request.count_groups)
		result_types_.assign(1, Type::I64);
	for (Type type : result_types_)
		result_bytes_ += type_width(type);
	spare_.reserve(request.nbuffers);
}

/* Whatever happened, the device is done with the job before anything of it is freed. */
DeviceJob::~DeviceJob()
{
	if (lane_ == nullptr)
		return;
	drain();
	free_working(0);
	for (Flight &flight : flights_)
		unclaim_all(&flight.buffers);
	unclaim_all(&spare_);
	lane_->waiting_since.store(0, std::memory_order_relaxed);
}

bool
DeviceJob::is_small() const
{
	return feed_.all_placed() && feed_.bytes() <= SMALL_BYTES;
}

void
DeviceJob::run()
{
	device_->use();
	feed_.begin(request_.transfer);
	figures_->device = device_->index();
	figures_->transfer = feed_.transfer();
	hold_.take(is_small(), io_);
	lane_ = hold_.get();
	feed_.use_lane(lane_);
	check(send_long_lists(program_, lane_->scratch, lane_->stream), "sending lists");
	if (work_.dead_pads != 0)
		feed_.use_dead_bits(allocate(work_.dead_pads * DEAD_PAD_BYTES));

	if (!request_.program->grouped)
		run_rows();
	else if (uses_group_table(program_))
		run_groups();
	else
		run_aggregates();
	figures_->bytes_moved += feed_.copied_bytes();
}

/* ---- slices -------------------------------------------------------------------- */

/* One pad of the tablet, if all goes as expected. */
double
DeviceJob::pad_ns(uint32_t tablet) const
{
	const TableFeed::Load load = feed_.load(tablet);
	const double pads = work_.tablets[tablet].tablet->padded_rows / TABLET_PAD_ROWS;

	return kernel_ns(program_, TABLET_PAD_ROWS, static_cast<double>(load.local) / pads, static_cast<double>(load.mapped) / pads,
					 uses_group_table(program_));
}

double
DeviceJob::expected_ns(uint32_t first, uint32_t npads) const
{
	double		ns = 0;

	for (uint32_t at = first; at < first + npads;)
	{
		const WorkTablet &tablet = work_.tablets[work_.pads[at].tablet];
		const uint32_t end = std::min(first + npads, tablet.first_pad + tablet.npads);

		ns += (end - at) * pad_ns(work_.pads[at].tablet);
		at = end;
	}
	return ns;
}

/* How many pads from `first` on make a slice. */
uint32_t
DeviceJob::slice_pads(uint32_t first) const
{
	double		left = (started_ ? SLICE_NS : FIRST_SLICE_NS) / pace_;
	uint64_t	copies = 0;
	uint32_t	n = 0;

	for (uint32_t t = work_.pads[first].tablet; t < work_.tablets.size(); t++)
	{
		const WorkTablet &tablet = work_.tablets[t];
		const uint32_t pads = tablet.first_pad + tablet.npads - (first + n);
		const double ns = pad_ns(t);

		copies += feed_.load(t).copies;
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
	return std::max(std::min(n, most_slice_pads_), 1u);
}

/* Listed before anything is launched, so that what it has is given back should that fail. */
DeviceJob::Flight *
DeviceJob::open_flight(uint32_t first_pad, uint32_t npads)
{
	const int	slot = flights_.empty() ? 0 : (flights_.back().slot + 1) % IN_FLIGHT;

	flights_.push_back(Flight{slot, first_pad, npads, false, 0, 0, {}});
	flights_.back().buffers.reserve(request_.nbuffers);
	return &flights_.back();
}

/* Everything of it is enqueued. */
void
DeviceJob::close_flight()
{
	check(cudaEventRecord(lane_->slices[flights_.back().slot].end, lane_->stream), "recording an event");
}

/* Serial: in parts, between which the job may be stopped. */
void
DeviceJob::copy_all()
{
	while (!stopped() && feed_.copy_some(SERIAL_PART_BYTES))
		wait_for(lane_->copied);
	if (stopped())
		throw Stopped();
}

void
DeviceJob::launch(Flight *flight, const RowStaging *rows, const GroupTable *groups)
{
	const SliceEvents &events = lane_->slices[flight->slot];

	flight->expected_ns = expected_ns(flight->first_pad, flight->npads);
	check(cudaEventRecord(events.begin, lane_->stream), "recording an event");
	if (feed_.transfer() == Transfer::Serial && !feed_.all_placed())
		copy_all();
	feed_.bring(flight->first_pad, flight->npads, &flight->waits);
	if (flight->waits)
		check(cudaEventRecord(events.kernels, lane_->stream), "recording an event");
	check(launch_slice(program_, shape_, lane_->scratch,
					   SliceArgs{feed_.table(), flight->first_pad, flight->npads, lane_->abort, rows, groups}, lane_->stream),
		  "launching the interpreter");
	started_ = true;
}

/* Figures of a slice that has ended, and what its time says of the next. */
void
DeviceJob::count(const Flight &flight)
{
	const SliceEvents &events = lane_->slices[flight.slot];
	float		all = 0, kernels = 0;

	check(cudaEventElapsedTime(&all, events.begin, events.end), "measuring a slice");
	figures_->device_ns += static_cast<uint64_t>(all * 1e6);
	if (flight.npads == 0 || stopped_)
		return;
	if (flight.waits)
		check(cudaEventElapsedTime(&kernels, events.kernels, events.end), "measuring a slice");
	else
		kernels = all;
	if (std::max(kernels * 1e6, flight.expected_ns) >= ADAPT_NS)
	{
		const double pace = std::clamp(kernels * 1e6 / flight.expected_ns, 0.02, 1e5);

		pace_ = pace > pace_ ? pace : (pace + pace_) / 2;
	}
	figures_->slices++;
	for (uint32_t at = flight.first_pad; at < flight.first_pad + flight.npads;)
	{
		const uint32_t t = work_.pads[at].tablet;
		const WorkTablet &tablet = work_.tablets[t];
		const uint32_t end = std::min(flight.first_pad + flight.npads, tablet.first_pad + tablet.npads);
		const TableFeed::Load load = feed_.load(t);
		const uint32_t pads = tablet.tablet->padded_rows / TABLET_PAD_ROWS;

		figures_->rows_in += rows_of_pads(work_, tablet, at, end);
		figures_->bytes_read += (load.local + load.mapped) * (end - at) / pads;
		figures_->bytes_moved += load.mapped * (end - at) / pads;
		figures_->tablets_scanned = t + 1;
		at = end;
	}
	feed_.retire(flight.first_pad + flight.npads);
}

DeviceJob::Flight
DeviceJob::land()
{
	wait_for(lane_->slices[flights_.front().slot].end);
	count(flights_.front());

	Flight		flight = std::move(flights_.front());

	flights_.pop_front();
	return flight;
}

void
DeviceJob::run_slices(const GroupTable *groups, const std::function<void()> &behind)
{
	const uint32_t npads = static_cast<uint32_t>(work_.pads.size());
	uint32_t	next = 0;

	if (npads == 0)
	{
		const Flight *flight = open_flight(0, 0);

		check(cudaEventRecord(lane_->slices[flight->slot].begin, lane_->stream), "recording an event");
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

		const uint32_t pads = slice_pads(next);

		launch(open_flight(next, pads), nullptr, groups);
		next += pads;
		if (next == npads)
			behind();
		close_flight();
	}
}

/* ---- waiting and stopping -------------------------------------------------------- */

bool
DeviceJob::stopped()
{
	stopped_ = stopped_ || io_->stopped();
	if (stopped_ && !aborting_ && !flights_.empty())
	{
		aborting_ = true;
		check(cudaMemcpyAsync(lane_->abort, &lane_->outcomes->one, sizeof(uint32_t), cudaMemcpyHostToDevice, lane_->side), "aborting");
	}
	return stopped_;
}

void
DeviceJob::wait_for(cudaEvent_t event)
{
	const int64_t start = now_ns();
	int64_t		next_look = start + LOOK_INTERVAL_NS;
	bool		asked = false;
	cudaError_t rc;

	lane_->waiting_since.store(start, std::memory_order_relaxed);
	while ((rc = cudaEventQuery(event)) == cudaErrorNotReady)
	{
		const int64_t now = now_ns();

		asked = true;
		if (now >= next_look)
		{
			next_look = now + LOOK_INTERVAL_NS;
			(void) stopped();
		}
		if (now - start < SPIN_NS)
		{
#if defined(__x86_64__)
			for (int i = 0; i < 8; i++)
				_mm_pause();
#endif
		}
		else if (now - start < YIELD_NS)
			(void) sched_yield();
		else
			std::this_thread::sleep_for(std::chrono::microseconds(20));
	}
	lane_->waiting_since.store(0, std::memory_order_relaxed);
	check(rc, "running");
	if (asked)
		(void) cudaGetLastError();	/* "not ready" is not for later calls to find */
}

/* Ends with nothing of the job on the device, and the abort word as the next job wants it. */
void
DeviceJob::drain()
{
	if (flights_.empty() && !aborting_ && !stopped_ && std::uncaught_exceptions() == 0)
		return;					/* its last event came after everything else */
	if (!flights_.empty() && !aborting_)
		(void) cudaMemcpyAsync(lane_->abort, &lane_->outcomes->one, sizeof(uint32_t), cudaMemcpyHostToDevice, lane_->side);
	lane_->waiting_since.store(now_ns(), std::memory_order_relaxed);
	(void) cudaStreamSynchronize(lane_->side);
	(void) cudaStreamSynchronize(lane_->copies);
	(void) cudaStreamSynchronize(lane_->stream);
	(void) cudaMemcpyAsync(lane_->abort, &lane_->outcomes->zero, sizeof(uint32_t), cudaMemcpyHostToDevice, lane_->stream);
}

/* ---- memory and buffers ---------------------------------------------------------- */

/* nullptr: there is no room for it now. */
char *
DeviceJob::try_allocate(uint64_t bytes)
{
	working_.push_back(Working{nullptr, bytes});

	char	   *memory = device_->residency()->allocate(bytes, lane_->stream);

	if (memory == nullptr)
		working_.pop_back();
	else
		working_.back().memory = memory;
	return memory;
}

/* Waits for other jobs, which may have it. */
char *
DeviceJob::allocate(uint64_t bytes)
{
	const auto	give_up = std::chrono::steady_clock::now() + MEMORY_PATIENCE;
	char	   *memory;

	while ((memory = try_allocate(bytes)) == nullptr)
	{
		if (stopped())
			throw Stopped();
		if (bytes > device_->residency()->limit() || device_->status()->jobs_running.load() <= 1 ||
			std::chrono::steady_clock::now() > give_up)
			throw Refusal{"the device has not enough memory for the job"};
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
	}
	return memory;
}

/* All but the first `kept`. */
void
DeviceJob::free_working(size_t kept)
{
	for (size_t i = kept; i < working_.size(); i++)
		if (working_[i].memory != nullptr)
			device_->residency()->free(working_[i].memory, working_[i].bytes, lane_->stream);
	working_.resize(kept);
}

}  // namespace cuda
}  // namespace gpuvm
