/*
 * key_parts.h: joins in passes: parts of the keys' hash space, of which a pass takes some, so that equal keys meet in one. A row with a
 * null key is in part 0.
 *
 * Asynchronous, no allocation, outcomes: as row_set.h says.
 */
#ifndef GPUVM_CUDA_KEY_PARTS_H
#define GPUVM_CUDA_KEY_PARTS_H

#include "join_table.h"

namespace gpuvm {
namespace cuda {

constexpr uint32_t KEY_PARTS = 256;

/* Parts [first, end). */
struct PartRange
{
	uint32_t	first, end;
};

/* Adds the rows of each part to parts[KEY_PARTS]: of what launch_slice() left of `npads` pads, whose first results are the keys. */
cudaError_t count_parts(const DeviceProgram &program, const RowStaging &staging, uint64_t npads, uint32_t nkeys, uint32_t *parts, cudaStream_t stream);

/* Drops the rows of other parts from there; the others keep their order. */
cudaError_t keep_parts(const DeviceProgram &program, const RowStaging &staging, uint64_t npads, uint32_t nkeys, PartRange range, cudaStream_t stream);

/* The bits of rows that are in these parts. */
cudaError_t mark_parts(const JoinKeys &keys, uint32_t nrows, PartRange range, uint32_t *bits, cudaStream_t stream);

}  // namespace cuda
}  // namespace gpuvm

#endif
