/* table_rows.cu: see table_rows.h. */
#include "table_rows.h"

#include <algorithm>

#include "kernel_launch.h"
#include "machine.cuh"
#include "row_blocks.h"
#include "vm/code_range.h"

namespace gpuvm {
namespace cuda {

namespace {

struct FetchColumn
{
	char	   *values;
	uint32_t   *nulls;
	TableColumn from;
	uint32_t	width;
};

struct FetchColumns
{
	uint32_t	n;
	FetchColumn column[BATCH_COLUMNS];
};

/* A column's codes of the lane's rows. All loads are on the way together: no branch is between them. */
GPUVM_D void
load_values(const DeviceChunk *const (&chunks)[LANE_ROWS], const TableColumn &from, const uint32_t (&rows)[LANE_ROWS], uint64_t (&v)[LANE_ROWS])
{
	uint64_t	at[LANE_ROWS], base[LANE_ROWS];
	uint32_t	width[LANE_ROWS], low[LANE_ROWS], high[LANE_ROWS];

#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
	{
		const DeviceChunk &chunk = chunks[k][from.column];

		width[k] = chunk.width;
		base[k] = static_cast<uint64_t>(chunk.base);
		at[k] = chunk.data + static_cast<uint64_t>(rows[k]) * chunk.width;
	}
#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
	{
		/* the word that the code lies in, or begins with */
		const uint32_t *word = reinterpret_cast<const uint32_t *>(at[k] & ~uint64_t{3});

		low[k] = width[k] != 0 ? word[0] : 0;
		high[k] = width[k] == 8 ? word[1] : 0;
	}
#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
	{
		const uint32_t code = low[k] >> 8 * (at[k] & 3) & (width[k] == 1 ? 0xff : width[k] == 2 ? 0xffff : ~0u);
		const bool	sign = codes_have_sign(from.type, width[k]);
		const uint64_t extended = !sign ? code : static_cast<uint64_t>(int64_t{width[k] == 2 ? static_cast<int16_t>(code) : static_cast<int32_t>(code)});

		v[k] = (extended | static_cast<uint64_t>(high[k]) << 32) + base[k];
	}
}

template <typename V>
GPUVM_D void
store(char *values, uint32_t first, uint32_t n, const uint64_t (&v)[LANE_ROWS])
{
#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
		if (first + k * THREADS < n)
			__stcs(reinterpret_cast<V *>(values) + first + k * THREADS, static_cast<V>(v[k]));
}

__global__ void __launch_bounds__(THREADS)
fetch(const __grid_constant__ FetchColumns columns, const DeviceTable table, uint32_t ncolumns, uint32_t first_pad, const uint32_t *rows, uint32_t n)
{
	const uint32_t first = blockIdx.x * BLOCK_ROWS + threadIdx.x;
	const DeviceChunk *chunks[LANE_ROWS];
	uint32_t	at[LANE_ROWS];

#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
	{
		const uint32_t i = first + k * THREADS, one = i < n ? i : n - 1, row = rows != nullptr ? rows[one] : one;
		const DevicePad pad = table.pads[first_pad + row / TABLET_PAD_ROWS];

		chunks[k] = table.chunks + static_cast<uint64_t>(pad.tablet) * ncolumns;
		at[k] = pad.row + row % TABLET_PAD_ROWS;
	}
	for (uint32_t c = 0; c < columns.n; c++)
	{
		const FetchColumn &column = columns.column[c];
		uint64_t	v[LANE_ROWS];

		load_values(chunks, column.from, at, v);
		if (column.width == 4)
			store<uint32_t>(column.values, first, n, v);
		else if (column.width == 8)
			store<uint64_t>(column.values, first, n, v);
		else if (column.width == 2)
			store<uint16_t>(column.values, first, n, v);
		else
			store<uint8_t>(column.values, first, n, v);
		if (column.nulls == nullptr)
			continue;
#pragma unroll
		for (uint32_t k = 0; k < LANE_ROWS; k++)
		{
			const uint32_t *nulls = reinterpret_cast<const uint32_t *>(chunks[k][column.from.column].nulls), i = first + k * THREADS;
			const uint32_t word = __ballot_sync(~0u, nulls != nullptr && (nulls[at[k] / 32] >> at[k] % 32 & 1) != 0);

			if (i % 32 == 0 && i < n)
				column.nulls[i / 32] = word;
		}
	}
}

}  // namespace

cudaError_t
fetch_rows(const DeviceTable &table, uint32_t ncolumns, uint32_t first_pad, const TableColumn *columns, const uint32_t *rows, uint32_t nrows,
		   const RowSet &to, cudaStream_t stream)
{
	if (nrows > to.capacity)
		return cudaErrorInvalidValue;
	for (uint32_t done = 0; done < to.ncolumns && nrows > 0; done += BATCH_COLUMNS)
	{
		FetchColumns batch = {};

		batch.n = std::min(to.ncolumns - done, BATCH_COLUMNS);
		for (uint32_t i = 0; i < batch.n; i++)
		{
			const RowColumn &column = to.column[done + i];

			batch.column[i] = FetchColumn{column.values, column.nulls, columns[done + i], static_cast<uint32_t>(type_natural_width(column.type))};
		}

		cudaError_t rc = launch_kernel(&fetch, blocks_of(nrows), THREADS, 0, stream, batch, table, ncolumns, first_pad, rows, nrows);

		if (rc != cudaSuccess)
			return rc;
	}
	return cudaSuccess;
}

}  // namespace cuda
}  // namespace gpuvm
