/* device.cc: see device.h. */
#include "device.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "failure.h"

namespace gpuvm {
namespace cuda {

constexpr uint64_t TABLE_ROOM = 1 << 20;	/* 500 M rows of a few columns; more is made when needed */
constexpr uint64_t POOL_AT_START = 1ull << 30;
constexpr int64_t HANG_NS = 10'000'000'000;
constexpr std::chrono::milliseconds LANE_LOOK_INTERVAL(1);
constexpr std::chrono::milliseconds ROW_JOIN_LOOK_INTERVAL(10);
/* A client that takes rows does so sooner, also where all processors are busy. */
constexpr std::chrono::milliseconds CLIENT_PATIENCE(100);

int64_t
now_ns()
{
	return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

CudaDevice::CudaDevice(uint32_t index, int ordinal, const DeviceOptions &options)
	: index_(index), ordinal_(ordinal), status_(&options.header->devices[index]), index_limit_(&options.header->index_limit), log_(options.log), memory_limit_(options.memory_limit)
{
	/* What the gpuvmd before this one had and did when it ended. */
	status_->memory_cached.store(0);
	status_->memory_indexes.store(0);
	status_->memory_working.store(0);
	status_->jobs_running.store(0);
	snprintf(status_->sentence, sizeof(status_->sentence), "starting");
	status_->state.store(static_cast<uint32_t>(DeviceState::Starting), std::memory_order_release);
}

CudaDevice::~CudaDevice()
{
	if (lanes_.empty() && keeping_ == nullptr)
		return;					/* it never came up: no context to make now */
	(void) cudaSetDevice(ordinal_);
	for (std::unique_ptr<Lane> &lane : lanes_)
		close_lane(lane.get());
	if (keeping_ != nullptr)
		(void) cudaStreamDestroy(keeping_);
}

void
CudaDevice::use() const
{
	check(cudaSetDevice(ordinal_), "choosing the device");
}

/* ---- start --------------------------------------------------------------------- */

void
CudaDevice::start()
{
	cudaDeviceProp properties;
	const char *refusal = nullptr;
	char		sentence[sizeof(status_->sentence)];

	try
	{
		int			pools = 0, maps = 0, unified = 0;

		check(cudaGetDeviceProperties(&properties, ordinal_), "asking for the device's properties");
		snprintf(status_->name, sizeof(status_->name), "%.63s", properties.name);
		status_->compute_major = static_cast<uint32_t>(properties.major);
		status_->compute_minor = static_cast<uint32_t>(properties.minor);
		status_->multiprocessors = static_cast<uint32_t>(properties.multiProcessorCount);
		status_->memory_total.store(properties.totalGlobalMem);
		check(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, ordinal_), "asking for memory pools");
		check(cudaDeviceGetAttribute(&maps, cudaDevAttrCanMapHostMemory, ordinal_), "asking for mapped memory");
		check(cudaDeviceGetAttribute(&unified, cudaDevAttrUnifiedAddressing, ordinal_), "asking for unified addresses");
		if (properties.major * 10 + properties.minor < 75)
			refusal = "its compute capability is below 7.5";
		else if (!pools || !maps || !unified)
			refusal = "it lacks memory pools, mapped memory or unified addresses";
		else
		{
			use();
			/* A wish: else kernels with more local memory than others make the device stop for them. */
			(void) cudaSetDeviceFlags(cudaDeviceScheduleSpin | cudaDeviceMapHost | cudaDeviceLmemResizeToMax);
			(void) cudaGetLastError();
			check(cudaFree(nullptr), "making the context");
			choose_limit(memory_limit_);
			check(cudaStreamCreateWithFlags(&keeping_, cudaStreamNonBlocking), "making a stream");
			residency_->expect(std::min(POOL_AT_START, residency_->limit() / 4), pool_, keeping_);
			for (int i = 0; i < LANES + SMALL_LANES; i++)
			{
				lanes_.push_back(std::make_unique<Lane>());
				open_lane(lanes_.back().get(), i >= LANES);
				free_.push_back(lanes_.back().get());
			}
			check(cudaDeviceSynchronize(), "starting");
		}
		if (refusal)
			snprintf(sentence, sizeof(sentence), "not used: %s", refusal);
		else
			snprintf(sentence, sizeof(sentence), "ready");
	}
	catch (const CudaFailure &failure)
	{
		(void) cudaGetLastError();
		refusal = "failure";
		snprintf(sentence, sizeof(sentence), "not used: %s failed: %s", failure.doing, cudaGetErrorString(failure.error));
	}
	memcpy(status_->sentence, sentence, sizeof(sentence));
	status_->state.store(static_cast<uint32_t>(refusal ? DeviceState::Unusable : DeviceState::Ready), std::memory_order_release);

	char		line[400];

	snprintf(line, sizeof(line), "device %u (%s): %s", index_, status_->name, sentence);
	log_(line);
}

/* Left to choose, other users of the device, and contexts, keep a fifth of what is free. */
void
CudaDevice::choose_limit(uint64_t wanted)
{
	size_t		free_bytes, total_bytes;
	uint64_t	keep = UINT64_MAX;
	uint64_t	limit;

	check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for free memory");
	limit = wanted != 0 ? std::min<uint64_t>(wanted, free_bytes / 20 * 19) : free_bytes / 5 * 4;
	check(cudaDeviceGetDefaultMemPool(&pool_, ordinal_), "finding the memory pool");
	check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep), "setting up the memory pool");
	residency_ = std::make_unique<Residency>(limit, status_);
	status_->memory_limit.store(limit);
}

void
CudaDevice::open_lane(Lane *lane, bool small)
{
	int			least = 0, greatest = 0;

	lane->small = small;
	check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
	check(cudaStreamCreateWithPriority(&lane->stream, cudaStreamNonBlocking, small ? greatest : least), "making a stream");
	check(cudaStreamCreateWithPriority(&lane->copies, cudaStreamNonBlocking, small ? greatest : least), "making a stream");
	check(cudaStreamCreateWithPriority(&lane->side, cudaStreamNonBlocking, greatest), "making a stream");
	check(create_scratch(&lane->scratch), "making scratch memory");
	check(cudaMalloc(&lane->abort, sizeof(uint32_t)), "making an abort word");
	check(cudaMemset(lane->abort, 0, sizeof(uint32_t)), "making an abort word");
	check(cudaHostAlloc(&lane->outcomes, sizeof(LaneOutcomes), cudaHostAllocPortable | cudaHostAllocMapped), "making pinned memory");
	memset(static_cast<void *>(lane->outcomes), 0, sizeof(LaneOutcomes));
	lane->outcomes->one = 1;
	check(cudaHostGetDevicePointer(&lane->outcomes_at, lane->outcomes, 0), "mapping memory");
	make_table_room(lane, TABLE_ROOM);
	for (SliceEvents &events : lane->slices)
	{
		check(cudaEventCreate(&events.begin), "making an event");
		check(cudaEventCreate(&events.kernels), "making an event");
		check(cudaEventCreate(&events.end), "making an event");
	}
	check(cudaEventCreateWithFlags(&lane->copied, cudaEventDisableTiming), "making an event");

	/* What a stream does for the first time takes long: not in the first query. */
	check(reset_state(lane->scratch, lane->stream), "trying the streams");
	check(cudaMemcpyAsync(&lane->outcomes->state, lane->scratch.state, sizeof(LaunchState), cudaMemcpyDeviceToHost, lane->stream), "trying the streams");
	for (cudaStream_t stream : {lane->stream, lane->copies, lane->side})
		check(cudaMemcpyAsync(lane->abort, &lane->outcomes->zero, sizeof(uint32_t), cudaMemcpyHostToDevice, stream), "trying the streams");
}

/* Whatever part of it was opened. */
void
CudaDevice::close_lane(Lane *lane)
{
	for (SliceEvents &events : lane->slices)
		for (cudaEvent_t event : {events.begin, events.kernels, events.end})
			if (event != nullptr)
				(void) cudaEventDestroy(event);
	if (lane->copied != nullptr)
		(void) cudaEventDestroy(lane->copied);
	destroy_scratch(&lane->scratch);
	(void) cudaFree(lane->abort);
	(void) cudaFree(lane->table);
	(void) cudaFreeHost(lane->table_copy);
	(void) cudaFreeHost(lane->outcomes);
	for (cudaStream_t stream : {lane->stream, lane->copies, lane->side})
		if (stream != nullptr)
			(void) cudaStreamDestroy(stream);
}

void
CudaDevice::make_table_room(Lane *lane, uint64_t bytes)
{
	if (bytes <= lane->table_room)
		return;
	bytes = std::max(bytes, lane->table_room * 2);

	void	   *table = nullptr;
	char	   *copy = nullptr;

	check(cudaHostAlloc(&copy, bytes, cudaHostAllocPortable), "making pinned memory");

	cudaError_t rc = cudaMallocAsync(&table, bytes, lane->stream);

	if (rc != cudaSuccess)
	{
		(void) cudaFreeHost(copy);
		check(rc, "making room for a table's description");
	}
	if (lane->table != nullptr)
		(void) cudaFreeAsync(lane->table, lane->stream);
	(void) cudaFreeHost(lane->table_copy);
	lane->table = static_cast<char *>(table);
	lane->table_copy = copy;
	lane->table_room = bytes;
	lane->table_bytes = 0;
}

/* ---- lanes --------------------------------------------------------------------- */

/* Under the mutex. Small jobs prefer their own lane: large ones then find the others. */
Lane *
CudaDevice::free_lane(bool small)
{
	auto		at = free_.rend();

	for (auto i = free_.rbegin(); i != free_.rend(); ++i)
		if ((*i)->small == small)
		{
			at = i;
			break;
		}
	if (at == free_.rend() && small)
		at = free_.rbegin();
	if (at == free_.rend())
		return nullptr;

	Lane	   *lane = *at;

	free_.erase(std::next(at).base());
	return lane;
}

Lane *
CudaDevice::take_lane(bool small, DeviceJobIo *io)
{
	std::unique_lock<std::mutex> lock(mutex_);
	Lane	   *lane;

	while ((lane = free_lane(small)) == nullptr)
	{
		lane_is_free_.wait_for(lock, LANE_LOOK_INTERVAL);
		lock.unlock();
		if (io->stopped())
			throw Stopped();
		lock.lock();
	}
	return lane;
}

void
CudaDevice::give_lane(Lane *lane)
{
	{
		std::lock_guard<std::mutex> lock(mutex_);

		free_.push_back(lane);
	}
	lane_is_free_.notify_all();
}

bool
CudaDevice::enter_row_join(DeviceJobIo *io)
{
	std::unique_lock<std::mutex> lock(mutex_);

	while (row_joins_ >= LANES / 2)
	{
		if (row_joins_waiting_ == row_joins_ && std::chrono::steady_clock::now() - row_join_moved_ > CLIENT_PATIENCE)
			return false;
		row_join_left_.wait_for(lock, ROW_JOIN_LOOK_INTERVAL);
		lock.unlock();
		if (io->stopped())
			throw Stopped();
		lock.lock();
	}
	row_joins_++;
	return true;
}

void
CudaDevice::leave_row_join()
{
	{
		std::lock_guard<std::mutex> lock(mutex_);

		row_joins_--;
		row_join_moved_ = std::chrono::steady_clock::now();
	}
	row_join_left_.notify_one();
}

void
CudaDevice::row_join_waits(bool waits)
{
	std::lock_guard<std::mutex> lock(mutex_);

	row_joins_waiting_ += waits ? 1 : -1;
	row_join_moved_ = std::chrono::steady_clock::now();
}

void
CudaDevice::fetch(void *to, const void *from, uint64_t bytes)
{
	check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, keeping_), "fetching a result set");
	check(cudaStreamSynchronize(keeping_), "fetching a result set");
}

void
CudaDevice::prepare(uint64_t bytes)
{
	use();
	residency_->expect(bytes, pool_, keeping_);
}

void
CudaDevice::tidy_indexes()
{
	if (status_->memory_indexes.load(std::memory_order_relaxed) == 0)
		return;
	use();
	residency_->forget_indexes(!keeps_indexes(), keeping_);
}

bool
CudaDevice::hangs(int64_t now) const
{
	for (const std::unique_ptr<Lane> &lane : lanes_)
	{
		int64_t		since = lane->waiting_since.load(std::memory_order_relaxed);

		if (since != 0 && now - since > HANG_NS)
			return true;
	}
	return false;
}

}  // namespace cuda
}  // namespace gpuvm
