/*
 * sort.h: rows of a row set in an order (engine/abi.h, vm/sort_key.h).
 *
 * Three steps, between which the host looks: how the keys range, for which it packs them; where few rows are
 * wanted, how many rows each value of the first word's leading bits has, so that only rows up to the value that
 * has the last one wanted are sorted; then words of the rows, from the last to the first, are sorted by CUB.
 * All functions are asynchronous on the stream, and none allocates device memory.
 */
#ifndef GPUVM_CUDA_SORT_H
#define GPUVM_CUDA_SORT_H

#include "row_set.h"
#include "vm/sort_key.h"

namespace gpuvm {
namespace cuda {

constexpr int SORT_LEADING_BITS = 12;
constexpr uint32_t SORT_LEADS = 1u << SORT_LEADING_BITS;

/* Written by the device. */
struct SortFacts
{
	uint64_t	lo[SORT_MAX_KEYS];	/* sort_bits() of the keys' values; of I128's lower halves as I64 */
	uint64_t	hi[SORT_MAX_KEYS];	/* below lo: there is none */
	uint64_t	upper_lo[SORT_MAX_KEYS];	/* the upper halves of I128's sort_bits() */
	uint64_t	upper_hi[SORT_MAX_KEYS];
	uint32_t	wide[SORT_MAX_KEYS];	/* an I128 that is no I64 */
	uint32_t	nulls[SORT_MAX_KEYS];
	uint32_t	picked;
	uint32_t	leads[SORT_LEADS];	/* rows by the leading bits of their first word */
};

/* The keys' ranges among the first n rows; `counted`: as many as the row set's state has then, n at most. `facts`: device memory. */
cudaError_t find_sort_ranges(const RowSet &rows, uint32_t n, bool counted, const SortKeys &keys, SortFacts *facts, cudaStream_t stream);

/* How many rows have which leading bits, the keys packed. */
cudaError_t count_sort_leads(const RowSet &rows, uint32_t n, const SortKeys &keys, SortFacts *facts, cudaStream_t stream);

/* Device memory for sorting so many rows; 0: CUB does not say. */
uint64_t	sort_rows_bytes(const SortKeys &keys, uint32_t n);

/*
 * Sorts `n` of the row set's first `nrows` rows: all, or, of fewer, those whose leading bits are at most `lead`,
 * which are n as count_sort_leads() has it. *order: their numbers, in the memory; *words: their first words.
 */
cudaError_t sort_rows(const RowSet &rows, uint32_t nrows, const SortKeys &keys, uint32_t n, uint32_t lead, SortFacts *facts, char *memory,
					  const uint32_t **order, const uint64_t **words, cudaStream_t stream);

}  // namespace cuda
}  // namespace gpuvm

#endif
