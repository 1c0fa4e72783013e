/* join_cross.h: pairs of every outer and every inner row, as lists. */
#ifndef GPUVM_CUDA_JOIN_CROSS_H
#define GPUVM_CUDA_JOIN_CROSS_H

#include <cuda_runtime.h>

#include <cstdint>

namespace gpuvm {
namespace cuda {

/* Pairs [first, first + n): pair i is of outer row i % outer_rows and inner row i / outer_rows. Asynchronous. */
cudaError_t cross_pairs(uint64_t first, uint32_t n, uint32_t outer_rows, uint32_t *outer, uint32_t *inner, cudaStream_t stream);

}  // namespace cuda
}  // namespace gpuvm

#endif
