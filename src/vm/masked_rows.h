/*
 * masked_rows.h: rows of a tablet that a job must not see, as ranges.
 *
 * The backend names what may have changed since the tablets were made; those
 * rows come from elsewhere or not at all. A masked row is dead from the start:
 * it raises no error, founds no group, is not counted, and leaves nowhere.
 */
#ifndef GPUVM_VM_MASKED_ROWS_H
#define GPUVM_VM_MASKED_ROWS_H

#include <algorithm>
#include <cstdint>

namespace gpuvm {

/* Rows [first, end) of a tablet. A list of them is ascending by tablet and row, and disjoint. */
struct MaskedRows
{
	uint32_t	tablet;			/* number in the job */
	uint32_t	first;
	uint32_t	end;
};

/* The first of a tablet's ranges that ends behind the row; masked + n when there is none. */
inline const MaskedRows *
masked_from(const MaskedRows *masked, uint32_t n, uint32_t row)
{
	return std::partition_point(masked, masked + n, [row](const MaskedRows &range) { return range.end <= row; });
}

/* How many of the rows [first, end) are masked. */
inline uint32_t
masked_count(const MaskedRows *masked, uint32_t n, uint32_t first, uint32_t end)
{
	uint32_t	rows = 0;

	for (const MaskedRows *at = masked_from(masked, n, first); at < masked + n && at->first < end; at++)
		rows += std::min(at->end, end) - std::max(at->first, first);
	return rows;
}

}  // namespace gpuvm

#endif
