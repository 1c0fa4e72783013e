/* cpu_sort_keys.h: keys of many rows, a column at a time. Private to cpu_sort*.cc. */
#ifndef GPUVM_VM_CPU_SORT_KEYS_H
#define GPUVM_VM_CPU_SORT_KEYS_H

#include "vm/sort_key.h"

namespace gpuvm::cpu_sort {

/* The range becomes one that these values of the key's column, from row 0 of an area on, are in, too. */
void		widen_range(const SortKey &key, const char *values, const uint64_t *nulls, uint32_t n, SortRange *range);

/*
 * Adds the key of rows [first, first + n) to their words, nwords a row, but only to the first so many of them.
 * `first` is a multiple of 64, n at most CPU_VECTOR_ROWS, for which there is scratch.
 */
void		put_keys(const SortKey &key, const char *values, const uint64_t *nulls, uint32_t first, uint32_t n,
					 uint64_t *words, uint32_t nwords, uint64_t *scratch);

}  // namespace gpuvm::cpu_sort

#endif
