/*
 * emulated_runtime.h: the part of the CUDA runtime API that gpuvm uses, of a
 * machine with one small device, and the launch of kernels. Every call has done
 * its work when it returns, or it is queued and done later, streams in any order that
 * they and their events allow: when somebody asks or waits for an event or a stream.
 *
 * Settings of the environment: GPUVM_EMULATED_MEMORY (the device's bytes),
 * GPUVM_EMULATED_FAIL_LAUNCH (which launch fails, from 1 on), GPUVM_EMULATED_SEED,
 * GPUVM_EMULATED_DEFER (work is queued; a seed of its order).
 */
#ifndef GPUVM_EMULATED_RUNTIME_H
#define GPUVM_EMULATED_RUNTIME_H

#include <functional>
#include <memory>
#include <tuple>

#include "emulated_language.h"

enum cudaError_t
{
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorMemoryAllocation = 2,
	cudaErrorInitializationError = 3,
	cudaErrorInvalidConfiguration = 9,
	cudaErrorInsufficientDriver = 35,
	cudaErrorNoDevice = 100,
	cudaErrorInvalidDevice = 101,
	cudaErrorInvalidResourceHandle = 400,
	cudaErrorNotReady = 600,
	cudaErrorIllegalAddress = 700,
	cudaErrorHostMemoryAlreadyRegistered = 712,
	cudaErrorHostMemoryNotRegistered = 713,
	cudaErrorLaunchFailure = 719,
	cudaErrorNotSupported = 801,
	cudaErrorUnknown = 999,
};

enum cudaMemcpyKind
{
	cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault,
};

enum cudaDeviceAttr
{
	cudaDevAttrMaxThreadsPerBlock = 1,
	cudaDevAttrMaxSharedMemoryPerBlock = 8,
	cudaDevAttrClockRate = 13,
	cudaDevAttrMultiProcessorCount = 16,
	cudaDevAttrCanMapHostMemory = 19,
	cudaDevAttrMemoryClockRate = 36,
	cudaDevAttrGlobalMemoryBusWidth = 37,
	cudaDevAttrL2CacheSize = 38,
	cudaDevAttrMaxThreadsPerMultiProcessor = 39,
	cudaDevAttrUnifiedAddressing = 41,
	cudaDevAttrComputeCapabilityMajor = 75,
	cudaDevAttrComputeCapabilityMinor = 76,
	cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
	cudaDevAttrCanUseHostPointerForRegisteredMem = 91,
	cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
	cudaDevAttrReservedSharedMemoryPerBlock = 111,
	cudaDevAttrMemoryPoolsSupported = 115,
};

struct cudaDeviceProp
{
	char		name[256];
	size_t		totalGlobalMem;
	size_t		sharedMemPerBlock;
	size_t		sharedMemPerBlockOptin;
	size_t		sharedMemPerMultiprocessor;
	int			major, minor;
	int			multiProcessorCount;
	int			warpSize;
	int			maxThreadsPerBlock;
	int			maxThreadsPerMultiProcessor;
	int			l2CacheSize;
	int			memoryBusWidth;
	int			memoryClockRate;
	int			clockRate;
	int			canMapHostMemory;
	int			unifiedAddressing;
	int			integrated;
	int			asyncEngineCount;
	int			pciDomainID, pciBusID, pciDeviceID;
	struct { char bytes[16]; } uuid;
};

struct cudaFuncAttributes
{
	size_t		sharedSizeBytes;
	size_t		localSizeBytes;
	int			maxThreadsPerBlock;
	int			numRegs;
	int			binaryVersion;
	int			maxDynamicSharedSizeBytes;
};

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout = 9 };
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4, cudaMemPoolAttrReservedMemCurrent = 5, cudaMemPoolAttrUsedMemCurrent = 7 };
enum cudaLimit { cudaLimitStackSize = 0, cudaLimitPrintfFifoSize = 1, cudaLimitMallocHeapSize = 2 };

constexpr unsigned cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2, cudaHostAllocWriteCombined = 4;
constexpr unsigned cudaHostRegisterDefault = 0, cudaHostRegisterPortable = 1, cudaHostRegisterMapped = 2, cudaHostRegisterReadOnly = 8;
constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1;
constexpr unsigned cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2;
constexpr unsigned cudaDeviceScheduleAuto = 0, cudaDeviceScheduleSpin = 1, cudaDeviceScheduleYield = 2, cudaDeviceScheduleBlockingSync = 4,
	cudaDeviceMapHost = 8, cudaDeviceLmemResizeToMax = 16;

typedef struct gpuvm_emulated_stream *cudaStream_t;
typedef struct gpuvm_emulated_event *cudaEvent_t;
typedef struct gpuvm_emulated_pool *cudaMemPool_t;

#define GPUVM_API extern "C" cudaError_t

GPUVM_API	cudaGetDeviceCount(int *count);
GPUVM_API	cudaGetDevice(int *device);
GPUVM_API	cudaSetDevice(int device);
GPUVM_API	cudaSetDeviceFlags(unsigned flags);
GPUVM_API	cudaInitDevice(int device, unsigned device_flags, unsigned flags);
GPUVM_API	cudaDeviceReset();
GPUVM_API	cudaDeviceSynchronize();
GPUVM_API	cudaDeviceSetLimit(cudaLimit limit, size_t value);
GPUVM_API	cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
GPUVM_API	cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
GPUVM_API	cudaDeviceGetPCIBusId(char *id, int size, int device);
GPUVM_API	cudaDriverGetVersion(int *version);
GPUVM_API	cudaRuntimeGetVersion(int *version);
GPUVM_API	cudaGetLastError();
GPUVM_API	cudaPeekAtLastError();
extern "C" const char *cudaGetErrorString(cudaError_t error);
extern "C" const char *cudaGetErrorName(cudaError_t error);

GPUVM_API	cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
GPUVM_API	cudaFree(void *p);
GPUVM_API	cudaFreeAsync(void *p, cudaStream_t stream);
GPUVM_API	cudaFreeHost(void *p);
GPUVM_API	cudaHostRegister(void *p, size_t bytes, unsigned flags);
GPUVM_API	cudaHostUnregister(void *p);
GPUVM_API	cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
GPUVM_API	cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream = nullptr);
GPUVM_API	cudaMemset(void *to, int value, size_t bytes);
GPUVM_API	cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream = nullptr);
GPUVM_API	cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
GPUVM_API	cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value);
GPUVM_API	cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value);
GPUVM_API	cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);

GPUVM_API	cudaStreamCreate(cudaStream_t *stream);
GPUVM_API	cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
GPUVM_API	cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
GPUVM_API	cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
GPUVM_API	cudaStreamDestroy(cudaStream_t stream);
GPUVM_API	cudaStreamQuery(cudaStream_t stream);
GPUVM_API	cudaStreamSynchronize(cudaStream_t stream);
GPUVM_API	cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
GPUVM_API	cudaLaunchHostFunc(cudaStream_t stream, void (*function) (void *), void *data);
GPUVM_API	cudaEventCreate(cudaEvent_t *event);
GPUVM_API	cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
GPUVM_API	cudaEventDestroy(cudaEvent_t event);
GPUVM_API	cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
GPUVM_API	cudaEventQuery(cudaEvent_t event);
GPUVM_API	cudaEventSynchronize(cudaEvent_t event);
GPUVM_API	cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);

#undef GPUVM_API

namespace gpuvm_emulated {

cudaError_t device_malloc(void **p, size_t bytes);
cudaError_t host_malloc(void **p, size_t bytes);
cudaError_t host_device_pointer(void **device, void *host);
cudaError_t set_function_attribute(const void *function, cudaFuncAttribute attribute, int value);
cudaError_t function_attributes(cudaFuncAttributes *attributes, const void *function);
cudaError_t occupancy(int *blocks, const void *function, int threads, size_t shared_bytes);

/* Calls `thread(data)` as each thread of each block. */
cudaError_t run_grid(const void *function, uint32_t blocks, uint32_t threads, uint32_t shared_bytes, void (*thread) (void *),
					 std::shared_ptr<void> data, cudaStream_t stream);

/* What is no kernel, but is queued like one. */
cudaError_t run_queued(cudaStream_t stream, std::function<void()> run);

/* For tests: the number of bytes of device memory that are allocated; every allocation beyond `bytes` fails. */
size_t		allocated_bytes();
void		limit_memory(size_t bytes);
/* The n'th launch from now on fails, with an error that stays; 0: none does, and the error is forgotten. */
void		fail_launch(uint64_t n);
/* The order of lanes, warps and blocks from now on. */
void		set_seed(uint64_t seed);

/* kernel_launch.h's. */
template <typename... Params, typename... Args>
cudaError_t
launch_kernel(void (*kernel) (Params...), uint32_t blocks, uint32_t threads, uint32_t shared_bytes, cudaStream_t stream, const Args &... args)
{
	struct Call
	{
		void		(*kernel) (Params...);
		std::tuple<Params...> args;
	};

	return run_grid(reinterpret_cast<const void *>(kernel), blocks, threads, shared_bytes,
					[](void *p) { std::apply(static_cast<Call *>(p)->kernel, static_cast<Call *>(p)->args); },
					std::shared_ptr<Call>(new Call{kernel, std::tuple<Params...>(static_cast<Params>(args)...)}), stream);
}

}  // namespace gpuvm_emulated

/* The toolkit's header has these as templates too. */
template <typename T>
cudaError_t
cudaMalloc(T **p, size_t bytes)
{
	return gpuvm_emulated::device_malloc(reinterpret_cast<void **>(p), bytes);
}

template <typename T>
cudaError_t
cudaMallocAsync(T **p, size_t bytes, cudaStream_t)
{
	return gpuvm_emulated::device_malloc(reinterpret_cast<void **>(p), bytes);
}

template <typename T>
cudaError_t
cudaHostAlloc(T **p, size_t bytes, unsigned)
{
	return gpuvm_emulated::host_malloc(reinterpret_cast<void **>(p), bytes);
}

template <typename T>
cudaError_t
cudaMallocHost(T **p, size_t bytes, unsigned = 0)
{
	return gpuvm_emulated::host_malloc(reinterpret_cast<void **>(p), bytes);
}

template <typename T>
cudaError_t
cudaHostGetDevicePointer(T **device, void *host, unsigned)
{
	return gpuvm_emulated::host_device_pointer(reinterpret_cast<void **>(device), host);
}

template <typename F>
cudaError_t
cudaFuncSetAttribute(F function, cudaFuncAttribute attribute, int value)
{
	return gpuvm_emulated::set_function_attribute(reinterpret_cast<const void *>(function), attribute, value);
}

template <typename F>
cudaError_t
cudaFuncGetAttributes(cudaFuncAttributes *attributes, F function)
{
	return gpuvm_emulated::function_attributes(attributes, reinterpret_cast<const void *>(function));
}

template <typename F>
cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F function, int threads, size_t shared_bytes)
{
	return gpuvm_emulated::occupancy(blocks, reinterpret_cast<const void *>(function), threads, shared_bytes);
}

#endif
