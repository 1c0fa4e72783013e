/* job.cc: waiting, stopping and memory. Where results go is in job_results.cc. See job.h. */
#include "job.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "failure.h"
#include "maps.h"

namespace gpuvm {
namespace cuda {

constexpr int64_t LOOK_INTERVAL_NS = 500'000;
constexpr int64_t SPIN_NS = 200'000;
constexpr int64_t YIELD_NS = 2'000'000;
/* Where more jobs wait, the device has work when one of them is late, and the processors may have some, too. */
constexpr int MOST_AWAKE = 2;
constexpr int64_t CROWDED_SPIN_NS = 25'000;

DeviceJob::DeviceJob(CudaDevice *device, PinnedArena *arena, const DeviceJobRequest &request, DeviceJobIo *io, DeviceJobFigures *figures)
	: device_(device), arena_(arena), request_(request), io_(io), figures_(figures), hold_(device), pins_(arena)
{
	if (request.program == nullptr)
		return;
	text_key_columns_ = text_key_columns(request);
	result_types_.resize(request.program->nresults);
	program_result_types(request.program, result_types_.data());
	if (request.count_groups)
		result_types_.assign(1, Type::I64);
	for (Type type : result_types_)
		result_bytes_ += type_width(type);
	spare_.reserve(request.nbuffers);
}

/* Who derives has drained the device before anything of its own was freed. */
DeviceJob::~DeviceJob()
{
	if (lane_ == nullptr)
		return;
	free_working(0);
	for (Flight &flight : flights_)
		unclaim_all(&flight.buffers);
	unclaim_all(&spare_);
	lane_->waiting_since.store(0, std::memory_order_relaxed);
}

/* Takes a lane; the device is in use(). */
void
DeviceJob::begin(bool small)
{
	figures_->device = device_->index();
	hold_.take(small && text_key_columns_.empty(), io_);
	lane_ = hold_.get();
}

/* ---- flights ---------------------------------------------------------------------- */

/* Listed before anything is launched, so that what it has is given back should that fail. */
DeviceJob::Flight *
DeviceJob::open_flight(uint32_t first_pad, uint32_t npads)
{
	const int	slot = flights_.empty() ? 0 : (flights_.back().slot + 1) % IN_FLIGHT;

	flights_.push_back(Flight{slot, first_pad, npads, false, 0, 0, {}});
	flights_.back().buffers.reserve(request_.nbuffers);
	return &flights_.back();
}

void
DeviceJob::begin_flight(const Flight &flight)
{
	check(cudaEventRecord(lane_->slices[flight.slot].begin, lane_->stream), "recording an event");
}

/* Everything of it is enqueued. */
void
DeviceJob::close_flight()
{
	check(cudaEventRecord(lane_->slices[flights_.back().slot].end, lane_->stream), "recording an event");
}

/* Figures of a flight that has ended. */
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
	count_pads(flight, kernels * 1e6);
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

/* ---- waiting and stopping -------------------------------------------------------- */

bool
DeviceJob::stopped()
{
	stopped_ = stopped_ || io_->stopped();
	if (stopped_ && !aborting_ && (busy_ || !flights_.empty()))
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
	const Waiting waiting(device_->waiting());

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
		const bool	crowded = device_->waiting()->load(std::memory_order_relaxed) > MOST_AWAKE;

		if (now - start < (crowded ? CROWDED_SPIN_NS : SPIN_NS))
		{
#if defined(__x86_64__)
			for (int i = 0; i < 8; i++)
				_mm_pause();
#endif
		}
		else if (now - start < YIELD_NS && !crowded)
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
	if (lane_ == nullptr || (flights_.empty() && !busy_ && !aborting_ && !stopped_ && !given_up_ && std::uncaught_exceptions() == 0))
		return;					/* its last event came after everything else */
	if ((busy_ || !flights_.empty()) && !aborting_)
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

/* What jobs and sets have of the device's memory, and the columns and indexes that jobs read, is not to be had by evicting. */
Refusal
DeviceJob::no_room(const char *what, const char *least, uint64_t bytes) const
{
	const Residency::Held held = device_->residency()->held();
	char		why[128];

	snprintf(why, sizeof(why), "the device has not enough memory for the %s: %s%" PRIu64 " bytes, of %" PRIu64 "; %" PRIu64 " in use, %" PRIu64 " pinned",
			 what, least, bytes, device_->residency()->limit(), held.working, held.pinned);
	return Refusal(why, true);
}

/* Waits for other jobs, which may have it. */
char *
DeviceJob::allocate(uint64_t bytes)
{
	char	   *memory;

	while ((memory = try_allocate(bytes)) == nullptr)
	{
		if (stopped())
			throw Stopped();
		if (bytes > device_->residency()->limit() || device_->status()->jobs_running.load() <= 1 ||
			patience_ <= std::chrono::nanoseconds::zero())
			throw no_room("job", "", bytes);

		const auto	since = std::chrono::steady_clock::now();

		std::this_thread::sleep_for(std::chrono::milliseconds(1));
		patience_ -= std::chrono::steady_clock::now() - since;
	}
	return memory;
}

void
DeviceJob::send_maps()
{
	const uint32_t n = request_.program->nmaps;
	const uint64_t bytes = map_bytes(request_.maps, n);

	send_patterns();
	send_text_keys();
	if (n == 0)
		return;
	if (bytes > MAX_MAP_BYTES)
		throw Refusal{"the query's tables of dictionary entries are too large for the device"};

	char	   *to = allocate(bytes);

	maps_.resize(bytes);
	pack_maps(request_.maps, n, maps_.data(), reinterpret_cast<uint64_t>(to), lane_->scratch.maps);
	check(cudaMemcpyAsync(to, maps_.data(), bytes, cudaMemcpyHostToDevice, lane_->stream), "sending maps");
	figures_->bytes_moved += bytes;
}

void
DeviceJob::send_patterns()
{
	const uint32_t n = request_.program->npatterns;
	const uint64_t bytes = pattern_bytes(request_.patterns, n);

	if (n == 0)
		return;

	char	   *to = allocate(bytes);

	patterns_.resize(bytes);
	pack_patterns(request_.patterns, n, patterns_.data(), reinterpret_cast<uint64_t>(to));
	lane_->scratch.patterns = reinterpret_cast<const uint64_t *>(to);
	check(cudaMemcpyAsync(to, patterns_.data(), bytes, cudaMemcpyHostToDevice, lane_->stream), "sending patterns");
	figures_->bytes_moved += bytes;
}

/* In parts, between which the job may be stopped. */
void
DeviceJob::send_text_keys()
{
	constexpr uint64_t part_bytes = 256ull << 20;

	if (text_key_columns_.empty())
		return;
	text_keys_ = std::make_unique<TextKeyFeed>(device_, arena_, request_, text_key_columns_, lane_);
	while (!stopped() && text_keys_->copy_some(part_bytes))
		wait_for(lane_->copied);
	if (stopped())
		throw Stopped();
	text_keys_->bring();
	text_key_images_ = text_keys_->images();

	const uint64_t image_bytes = align_up(text_key_images_.size() * sizeof(TextKeyImages), 256), slots = text_keys_->slots();
	char	   *to = allocate(image_bytes + slots * sizeof(uint64_t));

	lane_->scratch.text_keys = TextKeyTable{reinterpret_cast<const TextKeyImages *>(to), reinterpret_cast<unsigned long long *>(to + image_bytes),
		slots - 1, text_hash_mask, static_cast<uint32_t>(text_key_images_.size()), 0};
	check(cudaMemcpyAsync(to, text_key_images_.data(), text_key_images_.size() * sizeof(TextKeyImages), cudaMemcpyHostToDevice, lane_->stream),
		  "sending the places of texts");
	check(cudaMemsetAsync(to + image_bytes, 0, slots * sizeof(uint64_t), lane_->stream), "emptying the table of texts");
	figures_->bytes_read += text_keys_->bytes();
	figures_->bytes_moved += text_keys_->copied_bytes();
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

/* One that was allocated; nullptr is none. */
void
DeviceJob::release(const char *memory)
{
	for (size_t i = 0; memory != nullptr && i < working_.size(); i++)
		if (working_[i].memory == memory)
		{
			device_->residency()->free(working_[i].memory, working_[i].bytes, lane_->stream);
			working_.erase(working_.begin() + static_cast<long>(i));
			return;
		}
}

}  // namespace cuda
}  // namespace gpuvm
