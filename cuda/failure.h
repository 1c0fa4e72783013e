/* failure.h: what ends a job before its end. Thrown by the job runtime, caught in job.cc; nothing else crosses it. */
#ifndef GPUVM_CUDA_FAILURE_H
#define GPUVM_CUDA_FAILURE_H

#include <cuda_runtime.h>

#include <string>

namespace gpuvm {
namespace cuda {

/* A CUDA call failed while `doing` that. */
struct CudaFailure
{
	cudaError_t error;
	const char *doing;
};

/* The device cannot run the job, for a reason that is no CUDA error. */
struct Refusal
{
	explicit Refusal(const std::string &w, bool m = false) : why(w), memory(m) {}

	std::string why;
	bool		memory;			/* was short: for the log, too */
};

/* The job is to stop, and what waited has nothing to clean up. */
struct Stopped {};

inline void
check(cudaError_t rc, const char *doing)
{
	if (rc != cudaSuccess)
		throw CudaFailure{rc, doing};
}

/*
 * Does the context go on after this error? It does when the call was refused;
 * an error that came out of running code ends the context.
 */
inline bool
survivable(cudaError_t rc)
{
	size_t		free_bytes, total_bytes;

	(void) cudaGetLastError();
	return rc == cudaErrorMemoryAllocation || rc == cudaErrorInvalidConfiguration || rc == cudaErrorNotSupported ||
		cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess;
}

}  // namespace cuda
}  // namespace gpuvm

#endif
