/*
 * launch.h: binds a lowered program to the device: picks the kernel, sizes its
 * grid, starts it, and reads its outcome back.
 */
#ifndef GPUVM_CUDA_LAUNCH_H
#define GPUVM_CUDA_LAUNCH_H

#include <cuda_runtime.h>

#include "device_program.h"

namespace gpuvm {
namespace cuda {

/* The kernels for 4, 8 and 16 rows a lane. */
const void *interpreter_4(OpSet set);
const void *interpreter_8(OpSet set);
const void *interpreter_16(OpSet set);

/* Scratch of one stream, allocated once. */
struct LaunchScratch
{
	LaunchState *state;			/* device */
	Partial    *partials;		/* device: max_blocks * MAX_AGGS */
	uint32_t	max_blocks;
};

struct LaunchShape
{
	const void *kernel;
	uint32_t	blocks;			/* of the grid */
	uint32_t	blocks_per_sm;
	uint32_t	shared_bytes;	/* a block */
	uint32_t	unit_rows;
};

cudaError_t create_scratch(LaunchScratch *scratch);
void		destroy_scratch(LaunchScratch *scratch);

/* Grid and shared memory for the program; cudaErrorInvalidConfiguration if a block does not fit. */
cudaError_t choose_shape(const DeviceProgram &program, const DeviceTable &table, LaunchShape *shape);

/* Asynchronous; the outcome is in scratch.state when the stream gets there. */
cudaError_t launch(const DeviceProgram &program, const DeviceTable &table, const LaunchShape &shape,
				   const LaunchScratch &scratch, cudaStream_t stream);

}  // namespace cuda
}  // namespace gpuvm

#endif
