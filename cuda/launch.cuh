/* launch.cuh: one instance of the kernel a translation unit, so that they compile in parallel. */
#ifndef GPUVM_CUDA_LAUNCH_CUH
#define GPUVM_CUDA_LAUNCH_CUH

#include "interpreter.cuh"
#include "launch.h"

/*
 * Six blocks an SM: 40 registers. What hides latency is resident warps, so a
 * form that needs more registers loses.
 */
#define GPUVM_INSTANTIATE_INTERPRETER(R) \
	namespace gpuvm { namespace cuda { \
	const void *interpreter_##R() { return reinterpret_cast<const void *>(&interpret<R, 6>); } \
	} }

#endif
