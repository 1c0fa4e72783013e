/* launch.cuh: one instance of the kernel a translation unit, so that they compile in parallel. */
#ifndef GPUVM_CUDA_LAUNCH_CUH
#define GPUVM_CUDA_LAUNCH_CUH

#include "interpreter.cuh"
#include "launch.h"

/* Six blocks an SM: 40 registers. Resident warps hide what the loop waits for. */
constexpr int INTERPRETER_BLOCKS = 6;

#define GPUVM_INSTANTIATE_INTERPRETER(R) \
	namespace gpuvm { namespace cuda { \
	const void * \
	interpreter_##R(OpSet set) \
	{ \
		return set == OpSet::Narrow ? reinterpret_cast<const void *>(&interpret<OpSet::Narrow, R, INTERPRETER_BLOCKS>) \
			: set == OpSet::Wide ? reinterpret_cast<const void *>(&interpret<OpSet::Wide, R, INTERPRETER_BLOCKS>) \
			: reinterpret_cast<const void *>(&interpret<OpSet::All, R, INTERPRETER_BLOCKS>); \
	} \
	} }

#endif
