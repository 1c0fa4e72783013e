/*
 * dead_rows.h: rows of tablets that a job must not see, as the interpreter reads
 * them: a bitmap for each tablet that has any (1 = dead), of all its pads, which a
 * stage brings in like a column's null bits.
 *
 * The host only lists the ranges. The bitmaps lie one behind the other, and rows of
 * the ranges are numbered through them, so that one small kernel makes them all.
 */
#ifndef GPUVM_CUDA_DEAD_ROWS_H
#define GPUVM_CUDA_DEAD_ROWS_H

#include <cuda_runtime.h>

#include "core/types.h"
#include "tablet/format.h"

namespace gpuvm {
namespace cuda {

constexpr uint64_t DEAD_PAD_BYTES = TABLET_PAD_ROWS / 8;

/* Rows [first, end) of the bitmaps. A list of them is ascending and disjoint. */
struct DeadRange
{
	uint64_t	first, end;
};

/* Makes the bitmaps of so many pads; all of it is device memory, `bits` aligned to 16 bytes. */
cudaError_t fill_dead_rows(char *bits, uint32_t npads, const DeadRange *ranges, uint32_t nranges, cudaStream_t stream);

}  // namespace cuda
}  // namespace gpuvm

#endif
