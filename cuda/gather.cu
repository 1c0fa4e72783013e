/* gather.cu: columns of pairs, and which rows have one. See pairs.h. */
#include "pairs.h"

#include <algorithm>

#include "kernel_launch.h"
#include "machine.cuh"
#include "row_blocks.h"

namespace gpuvm {
namespace cuda {

namespace {

struct MoveColumn
{
	const char *values;
	const uint32_t *nulls;
	char	   *to_values;
	uint32_t   *to_nulls;
	uint32_t	width;
	GatherBy	by;
};

struct MoveColumns
{
	uint32_t	n;
	MoveColumn	column[BATCH_COLUMNS];
};

template <typename V>
GPUVM_D void
move_values(const MoveColumn &column, const uint32_t (&index)[LANE_ROWS], uint32_t first, uint32_t n)
{
	V			v[LANE_ROWS];

#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
		v[k] = index[k] != NO_ROW ? reinterpret_cast<const V *>(column.values)[index[k]] : V();
#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
		if (first + k * THREADS < n)
			__stcs(reinterpret_cast<V *>(column.to_values) + first + k * THREADS, v[k]);
}

/* `index`: NO_ROW behind the last row. */
GPUVM_D void
move_column(const MoveColumn &column, const uint32_t (&index)[LANE_ROWS], uint32_t first, uint32_t n)
{
	if (column.width == 4)
		move_values<uint32_t>(column, index, first, n);
	else if (column.width == 8)
		move_values<uint64_t>(column, index, first, n);
	else if (column.width == 2)
		move_values<uint16_t>(column, index, first, n);
	else
		move_values<uint8_t>(column, index, first, n);
	if (column.to_nulls == nullptr)
		return;
#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
	{
		const uint32_t row = first + k * THREADS;
		bool		null = row < n && index[k] == NO_ROW;	/* behind the last row are no bits: rows that come there set theirs */

		if (index[k] != NO_ROW && column.nulls != nullptr)
			null = (column.nulls[index[k] / 32] >> (index[k] % 32) & 1) != 0;

		const uint32_t word = __ballot_sync(~0u, null);

		if (row % 32 == 0 && row < n)
			column.to_nulls[row / 32] = word;
	}
}

__global__ void __launch_bounds__(THREADS)
gather(const __grid_constant__ MoveColumns columns, const uint32_t *outer, const uint32_t *inner, uint32_t n)
{
	const uint32_t first = blockIdx.x * BLOCK_ROWS + threadIdx.x;
	uint32_t	by_outer[LANE_ROWS], by_inner[LANE_ROWS];

#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
	{
		const uint32_t row = first + k * THREADS;

		by_outer[k] = row >= n ? NO_ROW : outer != nullptr ? outer[row] : row;
		by_inner[k] = row >= n ? NO_ROW : inner != nullptr ? inner[row] : row;
	}
	for (uint32_t c = 0; c < columns.n; c++)
	{
		const MoveColumn &column = columns.column[c];
		uint32_t	index[LANE_ROWS];

#pragma unroll
		for (uint32_t k = 0; k < LANE_ROWS; k++)
			index[k] = column.by == GatherBy::Outer ? by_outer[k] : column.by == GatherBy::Inner ? by_inner[k] : NO_ROW;
		move_column(column, index, first, n);
	}
}

/* Neighbours often mark the same word, or one that is marked: an atomic is the exception. */
__global__ void __launch_bounds__(THREADS)
mark(const uint32_t *live, const uint32_t *rows, uint32_t n, uint32_t *marked)
{
	const uint32_t first = blockIdx.x * BLOCK_ROWS + threadIdx.x;

#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
	{
		const uint32_t i = first + k * THREADS;

		if (i >= n || (live != nullptr && (live[i / 32] >> (i % 32) & 1) == 0))
			continue;

		const uint32_t row = rows[i];

		if (row != NO_ROW && (*static_cast<volatile uint32_t *>(&marked[row / 32]) >> (row % 32) & 1) == 0)
			atomicOr(&marked[row / 32], 1u << (row % 32));
	}
}

}  // namespace

cudaError_t
gather_rows(const GatherColumn *columns, uint32_t ncolumns, const uint32_t *outer, const uint32_t *inner, uint32_t n, cudaStream_t stream)
{
	for (uint32_t done = 0; done < ncolumns && n > 0; done += BATCH_COLUMNS)
	{
		MoveColumns batch = {};

		batch.n = std::min(ncolumns - done, BATCH_COLUMNS);
		for (uint32_t i = 0; i < batch.n; i++)
		{
			const GatherColumn &c = columns[done + i];

			batch.column[i] = MoveColumn{c.from.values, c.from.nulls, c.to.values, c.to.nulls, static_cast<uint32_t>(type_natural_width(c.to.type)), c.by};
		}

		cudaError_t rc = launch_kernel(&gather, blocks_of(n), THREADS, 0, stream, batch, outer, inner, n);

		if (rc != cudaSuccess)
			return rc;
	}
	return cudaSuccess;
}

cudaError_t
mark_rows(const uint32_t *live, const uint32_t *rows, uint32_t n, uint32_t *marked, cudaStream_t stream)
{
	if (n == 0)
		return cudaSuccess;
	return launch_kernel(&mark, blocks_of(n), THREADS, 0, stream, live, rows, n, marked);
}

}  // namespace cuda
}  // namespace gpuvm
