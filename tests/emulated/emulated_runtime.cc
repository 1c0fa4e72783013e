/*
 * emulated_runtime.cc: the runtime API of a machine with one device whose memory
 * is the host's. Each allocation of device memory is one of its own, filled with
 * a pattern.
 */
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "cuda_runtime.h"
#include "emulated_block.h"

/* What is queued in a stream: something to do, or to wait for an event's n'th record. */
struct EventState
{
	std::chrono::steady_clock::time_point at;
	uint64_t	queued = 0, recorded = 0;
};

struct Queued
{
	std::function<void()> run;
	std::shared_ptr<EventState> event;
	uint64_t	record;
};

struct gpuvm_emulated_stream
{
	unsigned	flags;
	std::deque<Queued> work;
};

struct gpuvm_emulated_event
{
	bool		timed;
	std::shared_ptr<EventState> state;
};

struct gpuvm_emulated_pool
{
};

namespace gpuvm_emulated {

namespace {

/* An H200's multiprocessor, but only two of them: an emulated grid takes its time. */
constexpr int MULTIPROCESSORS = 2;
constexpr int BLOCKS_PER_SM = 2;
constexpr int SHARED_DEFAULT = 48 << 10;
constexpr int SHARED_OPTIN = 227 << 10;
constexpr int SHARED_PER_SM = 228 << 10;
constexpr int SHARED_RESERVED = 1 << 10;
constexpr size_t ALIGNMENT = 512;
/* Of an allocation of device memory so much is filled: what the library reserves at its start is larger, and to touch it takes longer than most jobs. */
constexpr size_t FILLED = size_t{32} << 20;

uint64_t
setting(const char *name, uint64_t otherwise)
{
	const char *v = getenv(name);

	return v != nullptr && *v != 0 ? strtoull(v, nullptr, 10) : otherwise;
}

struct Device
{
	std::mutex	mutex;
	size_t		memory = setting("GPUVM_EMULATED_MEMORY", size_t{1} << 30);
	size_t		limit = SIZE_MAX;
	size_t		used = 0;
	std::map<void *, size_t> allocations;		/* of the device */
	std::map<char *, size_t> host;				/* registered, or allocated as such */
	std::map<const void *, int> dynamic_shared;	/* that a kernel was allowed */
	uint64_t	fail_launch = setting("GPUVM_EMULATED_FAIL_LAUNCH", 0);
	uint64_t	seed = setting("GPUVM_EMULATED_SEED", 0);
	uint64_t	launches = 0;
	cudaError_t sticky = cudaSuccess;
	gpuvm_emulated_pool pool;
};

Device &
device()
{
	static Device *d = new Device;	/* threads may outlive main() */

	return *d;
}

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t
result(cudaError_t rc)
{
	if (device().sticky != cudaSuccess)
		rc = device().sticky;
	if (rc != cudaSuccess)
		last_error = rc;
	return rc;
}

cudaError_t
free_device(void *p)
{
	Device	   &d = device();
	std::lock_guard<std::mutex> guard(d.mutex);
	auto		it = d.allocations.find(p);

	if (p == nullptr)
		return result(cudaSuccess);
	if (it == d.allocations.end())
		return result(cudaErrorInvalidValue);
	d.used -= it->second;
	d.allocations.erase(it);
	free(p);
	return result(cudaSuccess);
}

/* The registered range that holds p, or end(). */
std::map<char *, size_t>::iterator
host_range(Device &d, void *p)
{
	auto		it = d.host.upper_bound(static_cast<char *>(p));

	if (it == d.host.begin())
		return d.host.end();
	--it;
	return static_cast<char *>(p) < it->first + it->second ? it : d.host.end();
}

bool
is_pinned(Device &d, const void *p)
{
	return host_range(d, const_cast<void *>(p)) != d.host.end();
}

/* -- streams: see GPUVM_EMULATED_DEFER ------------------------------------------------ */

struct Streams
{
	std::mutex	mutex;			/* also held while something runs */
	std::set<cudaStream_t> all;
	uint64_t	random = setting("GPUVM_EMULATED_DEFER", 0);
	const bool	deferred = random != 0;

	uint32_t	pick(size_t n)
	{
		random = random * 6364136223846793005 + 1442695040888963407;
		return static_cast<uint32_t>((random >> 33) % n);
	}
};

Streams &
streams()
{
	static Streams *s = new Streams;

	return *s;
}

/* Under the mutex: the next of some stream that has something and may go on; false: there is none. */
bool
step()
{
	Streams    &s = streams();
	std::vector<cudaStream_t> able;

	for (cudaStream_t stream : s.all)
		if (!stream->work.empty() && (!stream->work.front().event || stream->work.front().event->recorded >= stream->work.front().record))
			able.push_back(stream);
	if (able.empty())
		return false;

	cudaStream_t stream = able[s.pick(able.size())];
	Queued		next = std::move(stream->work.front());

	stream->work.pop_front();
	if (next.run)
		next.run();
	return true;
}

void
enqueue(cudaStream_t stream, std::function<void()> run)
{
	Streams    &s = streams();

	if (!s.deferred || stream == nullptr)
	{
		run();
		return;
	}

	std::lock_guard<std::mutex> guard(s.mutex);

	stream->work.push_back(Queued{std::move(run), nullptr, 0});
}

/* Until `done`, or until nothing is left. */
template <typename F>
void
work_until(F done)
{
	Streams    &s = streams();

	if (!s.deferred)
		return;

	std::lock_guard<std::mutex> guard(s.mutex);

	while (!done())
		if (!step())
			fail("streams wait for each other, or for an event that nobody records");
}

void
work_all()
{
	work_until([]
	{
		for (cudaStream_t stream : streams().all)
			if (!stream->work.empty())
				return false;
		return true;
	});
}

}  // namespace

static cudaError_t
try_malloc(void **p, size_t bytes)
{
	Device	   &d = device();
	std::lock_guard<std::mutex> guard(d.mutex);

	*p = nullptr;
	if (d.sticky != cudaSuccess || bytes == 0)
		return result(cudaSuccess);
	if (bytes > d.memory || d.used > d.memory - bytes || bytes > d.limit || d.used > d.limit - bytes ||
		posix_memalign(p, ALIGNMENT, bytes) != 0)
	{
		*p = nullptr;
		return result(cudaErrorMemoryAllocation);
	}
	memset(*p, 0xb6, bytes < FILLED ? bytes : FILLED);
	d.allocations[*p] = bytes;
	d.used += bytes;
	return result(cudaSuccess);
}

/* A pool gives out what is yet to be freed, too. */
cudaError_t
device_malloc(void **p, size_t bytes)
{
	cudaError_t rc = try_malloc(p, bytes);

	if (rc != cudaErrorMemoryAllocation || !streams().deferred)
		return rc;
	work_all();
	return try_malloc(p, bytes);
}

cudaError_t
host_malloc(void **p, size_t bytes)
{
	Device	   &d = device();
	std::lock_guard<std::mutex> guard(d.mutex);

	*p = nullptr;
	if (posix_memalign(p, 4096, bytes) != 0)
		return result(cudaErrorMemoryAllocation);
	memset(*p, 0xc7, bytes);
	d.host[static_cast<char *>(*p)] = bytes;
	return result(cudaSuccess);
}

cudaError_t
host_device_pointer(void **device_pointer, void *host)
{
	Device	   &d = device();
	std::lock_guard<std::mutex> guard(d.mutex);

	*device_pointer = nullptr;
	if (host_range(d, host) == d.host.end())
		return result(cudaErrorInvalidValue);
	*device_pointer = host;
	return result(cudaSuccess);
}

cudaError_t
set_function_attribute(const void *function, cudaFuncAttribute attribute, int value)
{
	Device	   &d = device();
	std::lock_guard<std::mutex> guard(d.mutex);

	if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize)
	{
		if (value < 0 || value > SHARED_OPTIN)
			return result(cudaErrorInvalidValue);
		d.dynamic_shared[function] = value;
	}
	return result(cudaSuccess);
}

cudaError_t
function_attributes(cudaFuncAttributes *attributes, const void *function)
{
	Device	   &d = device();
	std::lock_guard<std::mutex> guard(d.mutex);
	auto		it = d.dynamic_shared.find(function);

	*attributes = cudaFuncAttributes{};
	attributes->maxThreadsPerBlock = 1024;
	attributes->numRegs = 40;
	attributes->maxDynamicSharedSizeBytes = it == d.dynamic_shared.end() ? SHARED_DEFAULT : it->second;
	return result(cudaSuccess);
}

cudaError_t
occupancy(int *blocks, const void *, int threads, size_t shared_bytes)
{
	*blocks = 0;
	if (threads < 1 || threads > 1024)
		return result(cudaErrorInvalidValue);
	for (int n = 1; n <= BLOCKS_PER_SM; n++)
		if (n * (shared_bytes + SHARED_RESERVED) <= SHARED_PER_SM)
			*blocks = n;
	return result(cudaSuccess);
}

cudaError_t
run_grid(const void *function, uint32_t blocks, uint32_t threads, uint32_t shared_bytes, void (*thread) (void *),
		 std::shared_ptr<void> data, cudaStream_t stream)
{
	Device	   &d = device();
	GridLaunch	launch = {blocks, threads, shared_bytes, 0, false, thread, data.get()};

	{
		std::lock_guard<std::mutex> guard(d.mutex);
		auto		it = d.dynamic_shared.find(function);
		int			allowed = it == d.dynamic_shared.end() ? SHARED_DEFAULT : it->second;

		if (d.fail_launch != 0 && --d.fail_launch == 0)
			d.sticky = cudaErrorIllegalAddress;
		if (d.sticky != cudaSuccess)
			return result(d.sticky);
		if (blocks == 0 || threads == 0 || threads > 1024)
			return result(cudaErrorInvalidConfiguration);
		if (shared_bytes > static_cast<uint32_t>(allowed))
			return result(cudaErrorInvalidValue);
		launch.seed = d.seed;
		/* What a later block mends of an earlier one's shows in every other launch. */
		launch.backwards = d.launches++ % 2 == 1;
	}
	enqueue(stream, [launch, data]
	{
		if (device().sticky == cudaSuccess)
			run_blocks(launch);
	});
	return result(cudaSuccess);
}

cudaError_t
run_queued(cudaStream_t stream, std::function<void()> run)
{
	if (device().sticky == cudaSuccess)
		enqueue(stream, [run]
		{
			if (device().sticky == cudaSuccess)
				run();
		});
	return result(cudaSuccess);
}

size_t
allocated_bytes()
{
	std::lock_guard<std::mutex> guard(device().mutex);

	return device().used;
}

void
limit_memory(size_t bytes)
{
	std::lock_guard<std::mutex> guard(device().mutex);

	device().limit = bytes;
}

void
fail_launch(uint64_t n)
{
	std::lock_guard<std::mutex> guard(device().mutex);

	device().fail_launch = n;
	if (n == 0)
		device().sticky = last_error = cudaSuccess;
}

void
set_seed(uint64_t seed)
{
	std::lock_guard<std::mutex> guard(device().mutex);

	device().seed = seed;
}

}  // namespace gpuvm_emulated

using namespace gpuvm_emulated;

/* -- devices and errors ------------------------------------------------------------- */

cudaError_t
cudaGetDeviceCount(int *count)
{
	*count = 1;
	return result(cudaSuccess);
}

cudaError_t
cudaGetDevice(int *number)
{
	*number = 0;
	return result(cudaSuccess);
}

cudaError_t cudaSetDevice(int number) { return result(number == 0 ? cudaSuccess : cudaErrorInvalidDevice); }
cudaError_t cudaSetDeviceFlags(unsigned) { return result(cudaSuccess); }
cudaError_t cudaInitDevice(int number, unsigned, unsigned) { return cudaSetDevice(number); }
cudaError_t cudaDeviceReset() { return result(cudaSuccess); }

cudaError_t
cudaDeviceSynchronize()
{
	work_all();
	return result(cudaSuccess);
}


cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return result(cudaSuccess); }

cudaError_t
cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int number)
{
	if (number != 0)
		return result(cudaErrorInvalidDevice);
	switch (attribute)
	{
		case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
		case cudaDevAttrMaxSharedMemoryPerBlock: *value = SHARED_DEFAULT; break;
		case cudaDevAttrClockRate: *value = 1000000; break;
		case cudaDevAttrMultiProcessorCount: *value = MULTIPROCESSORS; break;
		case cudaDevAttrCanMapHostMemory: *value = 1; break;
		case cudaDevAttrMemoryClockRate: *value = 1000000; break;
		case cudaDevAttrGlobalMemoryBusWidth: *value = 64; break;
		case cudaDevAttrL2CacheSize: *value = 4 << 20; break;
		case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
		case cudaDevAttrUnifiedAddressing: *value = 1; break;
		case cudaDevAttrComputeCapabilityMajor: *value = 7; break;
		case cudaDevAttrComputeCapabilityMinor: *value = 5; break;
		case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = SHARED_PER_SM; break;
		case cudaDevAttrCanUseHostPointerForRegisteredMem: *value = 1; break;
		case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = SHARED_OPTIN; break;
		case cudaDevAttrReservedSharedMemoryPerBlock: *value = SHARED_RESERVED; break;
		case cudaDevAttrMemoryPoolsSupported: *value = 1; break;
		default: return result(cudaErrorInvalidValue);
	}
	return result(cudaSuccess);
}

cudaError_t
cudaGetDeviceProperties(cudaDeviceProp *p, int number)
{
	if (number != 0)
		return result(cudaErrorInvalidDevice);
	*p = cudaDeviceProp{};
	snprintf(p->name, sizeof(p->name), "emulated device");
	p->totalGlobalMem = device().memory;
	p->sharedMemPerBlock = SHARED_DEFAULT;
	p->sharedMemPerBlockOptin = SHARED_OPTIN;
	p->sharedMemPerMultiprocessor = SHARED_PER_SM;
	p->major = 7;
	p->minor = 5;
	p->multiProcessorCount = MULTIPROCESSORS;
	p->warpSize = 32;
	p->maxThreadsPerBlock = 1024;
	p->maxThreadsPerMultiProcessor = 2048;
	p->l2CacheSize = 4 << 20;
	p->memoryBusWidth = 64;
	p->memoryClockRate = 1000000;
	p->clockRate = 1000000;
	p->canMapHostMemory = 1;
	p->unifiedAddressing = 1;
	p->asyncEngineCount = 1;
	return result(cudaSuccess);
}

cudaError_t
cudaDeviceGetPCIBusId(char *id, int size, int)
{
	snprintf(id, static_cast<size_t>(size), "0000:00:00.0");
	return result(cudaSuccess);
}

cudaError_t
cudaDriverGetVersion(int *version)
{
	*version = 12000;
	return result(cudaSuccess);
}

cudaError_t
cudaRuntimeGetVersion(int *version)
{
	*version = 12000;
	return result(cudaSuccess);
}

cudaError_t
cudaGetLastError()
{
	cudaError_t rc = cudaPeekAtLastError();

	last_error = cudaSuccess;
	return rc;
}

cudaError_t cudaPeekAtLastError() { return device().sticky != cudaSuccess ? device().sticky : last_error; }

const char *
cudaGetErrorName(cudaError_t error)
{
	switch (error)
	{
		case cudaSuccess: return "cudaSuccess";
		case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
		case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
		case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
		case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
		default: return "another CUDA error";
	}
}

const char *
cudaGetErrorString(cudaError_t error)
{
	switch (error)
	{
		case cudaSuccess: return "no error";
		case cudaErrorInvalidValue: return "invalid argument";
		case cudaErrorMemoryAllocation: return "out of memory";
		case cudaErrorInvalidConfiguration: return "invalid configuration argument";
		case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
		default: return "another CUDA error";
	}
}

/* -- memory ---------------------------------------------------------------------------- */

cudaError_t
cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
	Device	   &d = device();
	std::lock_guard<std::mutex> guard(d.mutex);

	*total_bytes = d.memory;
	*free_bytes = d.memory - d.used;
	return result(cudaSuccess);
}

cudaError_t
cudaFree(void *p)
{
	work_all();
	return free_device(p);
}

cudaError_t
cudaFreeAsync(void *p, cudaStream_t stream)
{
	enqueue(stream, [p] { (void) free_device(p); });
	return result(cudaSuccess);
}

cudaError_t
cudaFreeHost(void *p)
{
	Device	   &d = device();

	work_all();

	std::lock_guard<std::mutex> guard(d.mutex);

	if (p == nullptr)
		return result(cudaSuccess);
	if (d.host.erase(static_cast<char *>(p)) == 0)
		return result(cudaErrorInvalidValue);
	free(p);
	return result(cudaSuccess);
}

/* Would the driver get the page to write to it? */
static bool
is_writable(char *at)
{
	const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
	char	   *page = at - reinterpret_cast<uintptr_t>(at) % size;

	/* where the kernel does not know the question it knows neither */
	return madvise(page, size, MADV_POPULATE_WRITE) == 0 || madvise(page, size, MADV_POPULATE_READ) != 0;
}

cudaError_t
cudaHostRegister(void *p, size_t bytes, unsigned)
{
	Device	   &d = device();
	std::lock_guard<std::mutex> guard(d.mutex);
	char	   *from = static_cast<char *>(p);
	auto		next = d.host.lower_bound(from);

	if (p == nullptr || bytes == 0 || !is_writable(from) || !is_writable(from + bytes - 1))
		return result(cudaErrorInvalidValue);
	if (host_range(d, p) != d.host.end() || (next != d.host.end() && next->first < from + bytes))
		return result(cudaErrorHostMemoryAlreadyRegistered);
	d.host[from] = bytes;
	return result(cudaSuccess);
}

cudaError_t
cudaHostUnregister(void *p)
{
	Device	   &d = device();
	std::lock_guard<std::mutex> guard(d.mutex);

	return result(d.host.erase(static_cast<char *>(p)) != 0 ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}

/* As CUDA does, refuses a copy that leaves the range that was registered as one. */
static cudaError_t
check_copy(void *to, const void *from, size_t bytes)
{
	Device	   &d = device();

	if (d.sticky != cudaSuccess || bytes == 0)
		return result(cudaSuccess);
	for (char *end : {static_cast<char *>(to), static_cast<char *>(const_cast<void *>(from))})
	{
		std::lock_guard<std::mutex> guard(d.mutex);
		auto		range = host_range(d, end);

		if (range != d.host.end() && end + bytes > range->first + range->second)
			return result(cudaErrorInvalidValue);
	}
	return result(cudaSuccess);
}

cudaError_t
cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
	cudaError_t rc = check_copy(to, from, bytes);

	work_all();
	if (rc == cudaSuccess && bytes != 0)
		memmove(to, from, bytes);
	return rc;
}

/* What is not pinned is copied elsewhere at once. */
cudaError_t
cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
	cudaError_t rc = check_copy(to, from, bytes);
	bool		pinned;

	if (rc != cudaSuccess || bytes == 0)
		return rc;
	{
		Device	   &d = device();
		std::lock_guard<std::mutex> guard(d.mutex);

		pinned = kind != cudaMemcpyHostToDevice || is_pinned(d, from);
	}
	if (pinned)
		enqueue(stream, [=]
		{
			Device	   &d = device();
			std::unique_lock<std::mutex> guard(d.mutex);

			if (kind == cudaMemcpyHostToDevice && !is_pinned(d, from))
				fail("memory was unpinned before it was copied");
			guard.unlock();
			if (d.sticky == cudaSuccess)
				memmove(to, from, bytes);
		});
	else
	{
		std::vector<char> staged(static_cast<const char *>(from), static_cast<const char *>(from) + bytes);

		enqueue(stream, [to, staged] { memcpy(to, staged.data(), staged.size()); });
	}
	return rc;
}

cudaError_t
cudaMemset(void *to, int value, size_t bytes)
{
	if (device().sticky == cudaSuccess && bytes != 0)
		memset(to, value, bytes);
	return result(cudaSuccess);
}

cudaError_t
cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
	enqueue(stream, [=] { (void) cudaMemset(to, value, bytes); });
	return result(cudaSuccess);
}

cudaError_t
cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int)
{
	*pool = &device().pool;
	return result(cudaSuccess);
}

/* Nothing is kept in reserve. */
cudaError_t
cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute, void *value)
{
	uint64_t	bytes = attribute == cudaMemPoolAttrReleaseThreshold ? UINT64_MAX : allocated_bytes();

	memcpy(value, &bytes, sizeof(bytes));
	return result(cudaSuccess);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *) { return result(cudaSuccess); }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return result(cudaSuccess); }

/* -- streams and events ------------------------------------------------------------------ */

cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	Streams    &s = streams();
	std::lock_guard<std::mutex> guard(s.mutex);

	*stream = new gpuvm_emulated_stream{flags, {}};
	s.all.insert(*stream);
	return result(cudaSuccess);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t
cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int)
{
	return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t
cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	*least = *greatest = 0;
	return result(cudaSuccess);
}

cudaError_t
cudaStreamDestroy(cudaStream_t stream)
{
	Streams    &s = streams();

	(void) cudaStreamSynchronize(stream);

	std::lock_guard<std::mutex> guard(s.mutex);

	s.all.erase(stream);
	delete stream;
	return result(cudaSuccess);
}

cudaError_t
cudaStreamQuery(cudaStream_t stream)
{
	Streams    &s = streams();
	std::lock_guard<std::mutex> guard(s.mutex);

	(void) step();
	return result(stream == nullptr || stream->work.empty() ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t
cudaStreamSynchronize(cudaStream_t stream)
{
	if (stream == nullptr)
		work_all();
	else
		work_until([stream] { return stream->work.empty(); });
	return result(cudaSuccess);
}

cudaError_t
cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
	Streams    &s = streams();
	std::lock_guard<std::mutex> guard(s.mutex);

	if (s.deferred && stream != nullptr)
		stream->work.push_back(Queued{nullptr, event->state, event->state->queued});
	return result(cudaSuccess);
}

cudaError_t
cudaLaunchHostFunc(cudaStream_t stream, void (*function) (void *), void *data)
{
	if (device().sticky == cudaSuccess)
		enqueue(stream, [=] { function(data); });
	return result(cudaSuccess);
}

cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	*event = new gpuvm_emulated_event{(flags & cudaEventDisableTiming) == 0, std::make_shared<EventState>()};
	return result(cudaSuccess);
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t
cudaEventDestroy(cudaEvent_t event)
{
	delete event;
	return result(cudaSuccess);
}

cudaError_t
cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	std::shared_ptr<EventState> state = event->state;

	{
		std::lock_guard<std::mutex> guard(streams().mutex);

		state->queued++;
	}
	enqueue(stream, [state]
	{
		state->at = std::chrono::steady_clock::now();
		state->recorded++;
	});
	return result(cudaSuccess);
}

cudaError_t
cudaEventQuery(cudaEvent_t event)
{
	Streams    &s = streams();
	std::lock_guard<std::mutex> guard(s.mutex);

	if (event->state->recorded < event->state->queued && !step())
		fail("streams wait for each other, or for an event that nobody records");
	return result(event->state->recorded >= event->state->queued ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t
cudaEventSynchronize(cudaEvent_t event)
{
	work_until([event] { return event->state->recorded >= event->state->queued; });
	return result(cudaSuccess);
}

cudaError_t
cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
	std::lock_guard<std::mutex> guard(streams().mutex);

	if (!from->timed || !to->timed || !from->state->recorded || !to->state->recorded)
		return result(cudaErrorInvalidResourceHandle);
	if (from->state->recorded < from->state->queued || to->state->recorded < to->state->queued)
		return result(cudaErrorNotReady);
	*ms = std::chrono::duration<float, std::milli>(to->state->at - from->state->at).count();
	return result(cudaSuccess);
}
