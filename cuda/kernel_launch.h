/*
 * kernel_launch.h: starts a kernel. All launches go through here, so that tests
 * can compile the kernels for the host (tests/emulated).
 */
#ifndef GPUVM_CUDA_KERNEL_LAUNCH_H
#define GPUVM_CUDA_KERNEL_LAUNCH_H

#include <cstdint>

#include <cuda_runtime.h>

namespace gpuvm {
namespace cuda {

constexpr uint32_t BATCH_COLUMNS = 64;		/* of a launch: kernel parameters have 4 KB */

#ifdef GPUVM_EMULATED
using gpuvm_emulated::launch_kernel;
#else
/* Asynchronous on the stream. */
template <typename... Params, typename... Args>
cudaError_t
launch_kernel(void (*kernel) (Params...), uint32_t blocks, uint32_t threads, uint32_t shared_bytes, cudaStream_t stream, const Args &... args)
{
	cudaLaunchConfig_t config = {};

	config.gridDim = dim3(blocks);
	config.blockDim = dim3(threads);
	config.dynamicSmemBytes = shared_bytes;
	config.stream = stream;
	return cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...);
}
#endif

}  // namespace cuda
}  // namespace gpuvm

#endif
