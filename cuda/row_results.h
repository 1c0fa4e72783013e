/* row_results.h: from a row set to the backend's result buffers. */
#ifndef GPUVM_CUDA_ROW_RESULTS_H
#define GPUVM_CUDA_ROW_RESULTS_H

#include "row_set.h"

namespace gpuvm {
namespace cuda {

/*
 * Writes rows [first, first + n) to a result area (mapped host memory; result_layout() of the columns'
 * types and `capacity`): those of the row set or, with `order`, of this list of them. Asynchronous.
 */
cudaError_t emit_row_set(const RowSet &rows, const uint32_t *order, uint32_t first, uint32_t n, char *area, uint32_t capacity, cudaStream_t stream);

}  // namespace cuda
}  // namespace gpuvm

#endif
