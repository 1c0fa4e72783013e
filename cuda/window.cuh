/* window.cuh: rows of a window, for its kernels (window_kernels.h). */
#ifndef GPUVM_CUDA_WINDOW_CUH
#define GPUVM_CUDA_WINDOW_CUH

#include <algorithm>

#include "kernel_launch.h"
#include "machine.cuh"
#include "window_kernels.h"

namespace gpuvm {
namespace cuda {

constexpr uint32_t WINDOW_THREADS = 256;
constexpr uint32_t WINDOW_BLOCKS_WANTED = 2048;

/* Blocks for so many threads, of which each may take more than one row. */
inline uint32_t
window_blocks_for(uint64_t threads)
{
	return static_cast<uint32_t>(std::min<uint64_t>((threads + WINDOW_THREADS - 1) / WINDOW_THREADS, WINDOW_BLOCKS_WANTED));
}

template <typename T>
GPUVM_HD const T &
row_value(const RowColumn &column, uint64_t row)
{
	return reinterpret_cast<const T *>(column.values)[row];
}

GPUVM_HD bool
row_null(const RowColumn &column, uint64_t row)
{
	return column.nulls != nullptr && (column.nulls[row / 32] >> (row % 32) & 1) != 0;
}

GPUVM_HD uint32_t
window_popc(uint32_t bits)
{
#ifdef __CUDA_ARCH__
	return static_cast<uint32_t>(__popc(bits));
#else
	return static_cast<uint32_t>(__builtin_popcount(bits));
#endif
}

/* Bits set in rows [0, row). */
GPUVM_HD uint32_t
bits_before(const WindowBits &bits, uint32_t row)
{
	return bits.before[row / 32] + window_popc(bits.bits[row / 32] & ((1u << row % 32) - 1));
}

/* The number of the partition, or the group of peers, that the row is of. */
GPUVM_HD uint32_t
number_of(const WindowStarts &starts, uint32_t row)
{
	return bits_before(starts.bits, row) + (starts.bits.bits[row / 32] >> row % 32 & 1) - 1;
}

/* Where that number ends, of n rows. */
GPUVM_HD uint32_t
end_of(const WindowStarts &starts, uint32_t number, uint32_t n)
{
	return number + 1 < bits_before(starts.bits, n) ? starts.rows[number + 1] : n;
}

GPUVM_HD bool
row_counts(const WindowArgumentColumns &argument, uint32_t row)
{
	return (argument.column.values == nullptr || !row_null(argument.column, row)) &&
		(argument.filter.values == nullptr || (!row_null(argument.filter, row) && row_value<uint8_t>(argument.filter, row) != 0));
}

/* A bit for each row of n, and one word more at least: `set` is asked by whole warps. */
template <typename Set>
GPUVM_D void
write_bits(uint32_t n, uint32_t *bits, Set set)
{
	const uint32_t end = (n / 32 + 1) * 32;

	for (uint32_t row = blockIdx.x * WINDOW_THREADS + threadIdx.x; row < end; row += gridDim.x * WINDOW_THREADS)
	{
		const uint32_t word = __ballot_sync(~0u, row < n && set(row));

		if (threadIdx.x % 32 == 0)
			bits[row / 32] = word;
	}
}

/* By whole warps. */
GPUVM_D void
add_errors(uint32_t mine, uint32_t *errors)
{
	for (int by = 16; by > 0; by /= 2)
		mine |= __shfl_xor_sync(~0u, mine, by);
	if (threadIdx.x % 32 == 0 && mine != 0)
		atomicOr(errors, mine);
}

}  // namespace cuda
}  // namespace gpuvm

#endif
