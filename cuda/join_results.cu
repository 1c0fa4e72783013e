/* join_results.cu: see join_results.h. */
#include "join_results.h"

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
	const char *from;			/* the first row's value */
	const uint32_t *nulls;		/* the first row's word, or nullptr */
	char	   *to;
	uint32_t   *to_nulls;
	uint8_t		width;			/* in the row set */
};

/* Kernel parameters: columns that one launch writes. */
struct EmitColumns
{
	EmitColumn	column[BATCH];
};

/* So many blocks a column, which share its rows. */
__global__ void __launch_bounds__(THREADS)
emit(const __grid_constant__ EmitColumns columns, uint32_t n, uint32_t blocks_a_column)
{
	const EmitColumn &c = columns.column[blockIdx.x / blocks_a_column];
	const uint32_t first = blockIdx.x % blocks_a_column * THREADS + threadIdx.x, step = blocks_a_column * THREADS;

	for (uint32_t i = first; i < n; i += step)
	{
		if (c.width == 2)
			reinterpret_cast<int32_t *>(c.to)[i] = reinterpret_cast<const int16_t *>(c.from)[i];
		else if (c.width == 4)
			reinterpret_cast<uint32_t *>(c.to)[i] = reinterpret_cast<const uint32_t *>(c.from)[i];
		else if (c.width == 8)
			reinterpret_cast<uint64_t *>(c.to)[i] = reinterpret_cast<const uint64_t *>(c.from)[i];
		else
			c.to[i] = c.from[i];
	}
	/* Whole words of 64 rows, without bits behind the last row. */
	for (uint32_t word = first; word < (n + 63) / 64 * 2; word += step)
	{
		const uint32_t rows = word * 32 >= n ? 0 : min(n - word * 32, 32u);
		const uint32_t mask = rows == 32 ? ~0u : (1u << rows) - 1;

		c.to_nulls[word] = c.nulls != nullptr && rows > 0 ? c.nulls[word] & mask : 0;
	}
}

}  // namespace

cudaError_t
emit_row_set(const RowSet &rows, uint32_t first, uint32_t n, char *area, uint32_t capacity, cudaStream_t stream)
{
	Type		types[PROGRAM_MAX_COLUMNS];
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];

	for (uint32_t c = 0; c < rows.ncolumns; c++)
		types[c] = rows.column[c].type;
	result_layout(types, static_cast<int>(rows.ncolumns), capacity, layout);
	for (uint32_t from = 0; from < rows.ncolumns && n > 0; from += BATCH)
	{
		const uint32_t ncolumns = std::min(rows.ncolumns - from, BATCH);
		const uint32_t blocks = std::min((n + THREADS - 1) / THREADS, std::max(1u, BLOCKS_WANTED / ncolumns));
		EmitColumns columns = {};

		for (uint32_t c = 0; c < ncolumns; c++)
		{
			const RowColumn &column = rows.column[from + c];
			const uint32_t width = static_cast<uint32_t>(type_natural_width(column.type));

			columns.column[c] = EmitColumn{column.values + static_cast<size_t>(first) * width,
				column.nulls != nullptr ? column.nulls + first / 32 : nullptr, area + layout[from + c].values,
				reinterpret_cast<uint32_t *>(area + layout[from + c].nulls), static_cast<uint8_t>(width)};
		}

		cudaError_t rc = launch_kernel(emit, blocks * ncolumns, THREADS, 0, stream, columns, n, blocks);

		if (rc != cudaSuccess)
			return rc;
	}
	return cudaSuccess;
}

}  // namespace cuda
}  // namespace gpuvm
