/* row_results.h: from a row set to the backend's result buffers. */
#ifndef GPUVM_CUDA_ROW_RESULTS_H
#define GPUVM_CUDA_ROW_RESULTS_H

#include "row_set.h"

namespace gpuvm {
namespace cuda {

/* A column of what leaves: row i is that of row list[i], or row i. */
struct EmittedColumn
{
	RowColumn	from;
	const uint32_t *list;		/* device, or nullptr */
};

/* How many rows there are is known when the stream gets there: none if `rows` is full. The host is told, with the errors of both. */
struct RowsAhead
{
	const RowSetState *rows;	/* nullptr: it is known */
	const uint32_t *errors;
	RowSetState *told;			/* mapped */
};

/* Writes rows [first, first + n) to a result area (mapped host memory; result_layout() of the columns' types and `capacity`). Asynchronous. */
cudaError_t emit_columns(const EmittedColumn *columns, uint32_t ncolumns, uint32_t first, uint32_t n, char *area, uint32_t capacity,
						 cudaStream_t stream, const RowsAhead &ahead = {});

/* The same of a row set or, with `order`, of this list of its rows. */
cudaError_t emit_row_set(const RowSet &rows, const uint32_t *order, uint32_t first, uint32_t n, char *area, uint32_t capacity, cudaStream_t stream);

}  // namespace cuda
}  // namespace gpuvm

#endif
