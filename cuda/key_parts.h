/*
 * key_parts.h: which of a side's rows a join is to see: those of a pass, and those that may have a partner.
 *
 * The keys' hash space is cut into parts, of which a pass takes some, so that equal keys meet in one. A row with a null key is in part 0.
 *
 * Asynchronous, no allocation, outcomes: as row_set.h says.
 */
#ifndef GPUVM_CUDA_KEY_PARTS_H
#define GPUVM_CUDA_KEY_PARTS_H

#include "join_table.h"
#include "key_filter.h"

namespace gpuvm {
namespace cuda {

constexpr uint32_t KEY_PARTS = 256;

/* Parts [first, end). */
struct PartRange
{
	uint32_t	first, end;
};

constexpr uint32_t MAX_ROW_TESTS = 8;

/* What rows have to be: in these parts by their first `nkeys` results, and of values that there are. A null is none of them. */
struct RowTests
{
	PartRange	parts = {0, KEY_PARTS};
	uint32_t	nkeys = 0;
	uint32_t	ntests = 0;
	struct
	{
		uint32_t	result;		/* of an integer type */
		KeyBits		side;
	}			test[MAX_ROW_TESTS];

	bool		any() const { return ntests != 0 || parts.first != 0 || parts.end != KEY_PARTS; }
};

/* Adds the rows of each part to parts[KEY_PARTS]: of what launch_slice() left of `npads` pads, whose first results are the keys. */
cudaError_t count_parts(const DeviceProgram &program, const RowStaging &staging, uint64_t npads, uint32_t nkeys, uint32_t *parts, cudaStream_t stream);

/* Drops other rows from there; those that are left keep their order. */
cudaError_t keep_rows(const DeviceProgram &program, const RowStaging &staging, uint64_t npads, const RowTests &tests, cudaStream_t stream);

/* Sets the bits of a result's values, of an integer type, for rows that are there; nulls and values elsewhere than [lo, lo + n) have none. */
cudaError_t add_key_bits(const DeviceProgram &program, const RowStaging &staging, uint64_t npads, uint32_t result, int64_t lo, uint64_t n, uint32_t *bits,
						 cudaStream_t stream);

/* The bits of rows that are in these parts. */
cudaError_t mark_parts(const JoinKeys &keys, uint32_t nrows, PartRange range, uint32_t *bits, cudaStream_t stream);

}  // namespace cuda
}  // namespace gpuvm

#endif
