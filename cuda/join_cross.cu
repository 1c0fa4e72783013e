/* join_cross.cu: see join_cross.h. */
#include "join_cross.h"

#include "kernel_launch.h"
#include "machine.cuh"

namespace gpuvm {
namespace cuda {

namespace {

constexpr uint32_t THREADS = 256;

__global__ void __launch_bounds__(THREADS)
cross(uint64_t first, uint32_t n, uint32_t outer_rows, uint32_t *outer, uint32_t *inner)
{
	const uint32_t i = blockIdx.x * THREADS + threadIdx.x;

	if (i >= n)
		return;
	outer[i] = static_cast<uint32_t>((first + i) % outer_rows);
	inner[i] = static_cast<uint32_t>((first + i) / outer_rows);
}

}  // namespace

cudaError_t
cross_pairs(uint64_t first, uint32_t n, uint32_t outer_rows, uint32_t *outer, uint32_t *inner, cudaStream_t stream)
{
	return launch_kernel(cross, (n + THREADS - 1) / THREADS, THREADS, 0, stream, first, n, outer_rows, outer, inner);
}

}  // namespace cuda
}  // namespace gpuvm
