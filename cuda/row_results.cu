/* row_results.cu: see row_results.h. */
#include "row_results.h"

#include <algorithm>

#include "kernel_launch.h"
#include "machine.cuh"
#include "vm/result_layout.h"

namespace gpuvm {
namespace cuda {

namespace {

constexpr uint32_t THREADS = 256;
constexpr uint32_t BLOCKS_WANTED = 512;
constexpr uint32_t BATCH = 64;

struct EmitColumn
{
	const char *from;
	const uint32_t *nulls;		/* or nullptr */
	const uint32_t *list;		/* or nullptr */
	char	   *to;
	uint32_t   *to_nulls;
	uint8_t		width;			/* as it lies there */
};

/* Kernel parameters: columns that one launch writes. */
struct EmitColumns
{
	EmitColumn	column[BATCH];
};

/* So many blocks a column, which share its rows. */
__global__ void __launch_bounds__(THREADS)
emit(const __grid_constant__ EmitColumns columns, uint32_t first_row, uint32_t n, const RowsAhead ahead, uint32_t blocks_a_column)
{
	const EmitColumn &c = columns.column[blockIdx.x / blocks_a_column];
	const uint32_t first = blockIdx.x % blocks_a_column * THREADS + threadIdx.x, step = blocks_a_column * THREADS;

	if (ahead.rows != nullptr)
	{
		RowSetState state = *ahead.rows;

		n = state.full != 0 ? 0 : min(n, state.nrows - min(state.nrows, first_row));
		if (blockIdx.x == 0 && threadIdx.x == 0)
		{
			state.errors |= *ahead.errors;
			*ahead.told = state;
		}
	}
	/* whole words of 64 rows, without bits behind the last row; warps stay together */
	for (uint32_t i = first; i < (n + 63) / 64 * 64; i += step)
	{
		const bool	live = i < n;
		const uint32_t row = !live ? 0 : c.list != nullptr ? c.list[first_row + i] : first_row + i;
		const bool	null = live && c.nulls != nullptr && (c.nulls[row / 32] >> (row % 32) & 1) != 0;
		const uint32_t bits = __ballot_sync(~0u, null);

		if (i % 32 == 0)
			c.to_nulls[i / 32] = bits;
		if (!live)
			continue;
		if (c.width == 2)
			reinterpret_cast<int32_t *>(c.to)[i] = reinterpret_cast<const int16_t *>(c.from)[row];
		else if (c.width == 4)
			reinterpret_cast<uint32_t *>(c.to)[i] = reinterpret_cast<const uint32_t *>(c.from)[row];
		else if (c.width == 16)
			reinterpret_cast<int128 *>(c.to)[i] = reinterpret_cast<const int128 *>(c.from)[row];
		else if (c.width == 8)
			reinterpret_cast<uint64_t *>(c.to)[i] = reinterpret_cast<const uint64_t *>(c.from)[row];
		else
			c.to[i] = c.from[row];
	}
}

}  // namespace

cudaError_t
emit_columns(const EmittedColumn *emitted, uint32_t nemitted, uint32_t first, uint32_t n, char *area, uint32_t capacity, cudaStream_t stream,
			 const RowsAhead &ahead)
{
	Type		types[PROGRAM_MAX_COLUMNS];
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];

	for (uint32_t c = 0; c < nemitted; c++)
		types[c] = emitted[c].from.type;
	result_layout(types, static_cast<int>(nemitted), capacity, layout);
	for (uint32_t from = 0; from < nemitted && n > 0; from += BATCH)
	{
		const uint32_t ncolumns = std::min(nemitted - from, BATCH);
		const uint32_t blocks = std::min((n + THREADS - 1) / THREADS, std::max(1u, BLOCKS_WANTED / ncolumns));
		EmitColumns columns = {};

		for (uint32_t c = 0; c < ncolumns; c++)
		{
			const auto &[column, list] = emitted[from + c];

			columns.column[c] = EmitColumn{column.values, column.nulls, list, area + layout[from + c].values,
				reinterpret_cast<uint32_t *>(area + layout[from + c].nulls), static_cast<uint8_t>(type_natural_width(column.type))};
		}

		cudaError_t rc = launch_kernel(emit, blocks * ncolumns, THREADS, 0, stream, columns, first, n, ahead, blocks);

		if (rc != cudaSuccess)
			return rc;
	}
	return cudaSuccess;
}

cudaError_t
emit_row_set(const RowSet &rows, const uint32_t *order, uint32_t first, uint32_t n, char *area, uint32_t capacity, cudaStream_t stream)
{
	EmittedColumn columns[PROGRAM_MAX_COLUMNS];

	for (uint32_t c = 0; c < rows.ncolumns; c++)
		columns[c] = EmittedColumn{rows.column[c], order};
	return emit_columns(columns, rows.ncolumns, first, n, area, capacity, stream);
}

}  // namespace cuda
}  // namespace gpuvm
