/* launch.cuh: one instance of the kernel a translation unit, so that they compile in parallel. */
#ifndef GPUVM_CUDA_LAUNCH_CUH
#define GPUVM_CUDA_LAUNCH_CUH

#include "interpreter.cuh"
#include "launch.h"

/*
 * Blocks an SM, which is registers: 40 for six, 48 for five. Resident warps hide
 * what the loop waits for, but spilling what every operation needs costs more, and
 * 8-byte columns leave shared memory for five blocks only.
 */
constexpr int
interpreter_blocks(gpuvm::cuda::OpSet set)
{
	return set == gpuvm::cuda::OpSet::Narrow ? 6 : 5;
}

#define GPUVM_INSTANTIATE_INTERPRETER(R) \
	namespace gpuvm { namespace cuda { \
	InterpretFn \
	interpreter_##R(OpSet set) \
	{ \
		return set == OpSet::Narrow ? interpret<OpSet::Narrow, R, interpreter_blocks(OpSet::Narrow)> \
			: set == OpSet::Wide ? interpret<OpSet::Wide, R, interpreter_blocks(OpSet::Wide)> \
			: interpret<OpSet::All, R, interpreter_blocks(OpSet::All)>; \
	} \
	} }

/* The same for programs over pairs. */
#define GPUVM_INSTANTIATE_GRID_INTERPRETER(R) \
	namespace gpuvm { namespace cuda { \
	InterpretFn \
	grid_interpreter_##R(OpSet set) \
	{ \
		return set != OpSet::All ? interpret<OpSet::Wide, R, interpreter_blocks(OpSet::Wide), GridForm::Rows> \
			: interpret<OpSet::All, R, interpreter_blocks(OpSet::All), GridForm::Rows>; \
	} \
	} }

#endif
