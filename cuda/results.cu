/*
 * results.cu: the second step of result rows: from a slice's segments to whole
 * columns in result areas (see launch.h).
 *
 * Several blocks work on a unit. Each sums up the counts of the unit's segments,
 * so that it knows every segment's first row, and takes a part of the rows: a
 * warp finds the segments of 32 consecutive rows and writes them side by side.
 * The block that finishes last tells the unit's outcome.
 */
#include "launch.h"

#include <algorithm>

#include "kernel_launch.h"
#include "machine.cuh"
#include "staged_columns.h"

namespace gpuvm {
namespace cuda {

namespace {

constexpr uint32_t COMPACT_THREADS = 256;
constexpr uint32_t COMPACT_WARPS = COMPACT_THREADS / 32;
constexpr uint32_t MAX_UNIT_PADS = TABLET_MAX_ROWS / TABLET_PAD_ROWS;
constexpr uint32_t BLOCKS_WANTED = 512;		/* several an SM */

/* Kernel parameters: units that one launch compacts. */
struct UnitBatch
{
	RowSliceUnit units[64];
};

struct CompactColumn
{
	uint64_t	values;			/* in the area */
	uint64_t	nulls;
	StagedColumn from;
};

struct CompactColumns
{
	uint32_t	n;
	CompactColumn column[PROGRAM_MAX_COLUMNS];
};

/* Rows before each of the unit's segments, and in all: the block's dynamic shared memory. */
GPUVM_D uint32_t *
rows_before()
{
	return reinterpret_cast<uint32_t *>(shared_memory);
}

__device__ void
sum_counts(const uint32_t *counts, uint32_t n)
{
	__shared__ uint32_t warp_sums[COMPACT_WARPS];
	uint32_t	lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	uint32_t	share = (n + COMPACT_THREADS - 1) / COMPACT_THREADS;
	uint32_t	first = min(threadIdx.x * share, n), last = min(first + share, n);
	uint32_t	mine = 0;

	for (uint32_t i = first; i < last; i++)
		mine += counts[i];

	uint32_t	end = mine;

	for (int step = 1; step < 32; step *= 2)
	{
		uint32_t	before = __shfl_up_sync(~0u, end, step);

		end += lane >= static_cast<uint32_t>(step) ? before : 0;
	}
	if (lane == 31)
		warp_sums[warp] = end;
	__syncthreads();

	uint32_t	at = end - mine;

	for (uint32_t w = 0; w < warp; w++)
		at += warp_sums[w];
	for (uint32_t i = first; i < last; i++)
	{
		rows_before()[i] = at;
		at += counts[i];
	}
	if (threadIdx.x == COMPACT_THREADS - 1)
		rows_before()[n] = at;
	__syncthreads();
}

/* Where row `row` of the unit is in the staging area. */
__device__ uint64_t
staged_row(const RowStaging &staging, uint32_t first_segment, uint32_t nsegments, uint32_t row)
{
	uint32_t	from = 0, to = nsegments;	/* the last segment that begins at the row or before it */

	while (to - from > 1)
	{
		uint32_t	middle = (from + to) / 2;

		if (rows_before()[middle] <= row)
			from = middle;
		else
			to = middle;
	}
	return static_cast<uint64_t>(first_segment + from) * staging.segment_rows + (row - rows_before()[from]);
}

template <typename V>
__device__ void
move_value(const char *from, char *to, uint64_t staged, uint32_t row)
{
	reinterpret_cast<V *>(to)[row] = reinterpret_cast<const V *>(from)[staged];
}

__global__ void __launch_bounds__(COMPACT_THREADS)
compact(const __grid_constant__ UnitBatch batch, const __grid_constant__ CompactColumns columns, const RowStaging staging,
		uint32_t slice_first_pad, uint32_t blocks_per_unit, uint32_t capacity, UnitOutcome *outcomes)
{
	__shared__ uint32_t unit_errors;
	const RowSliceUnit &unit = batch.units[blockIdx.x / blocks_per_unit];
	uint32_t	part = blockIdx.x % blocks_per_unit;
	uint32_t	lane = threadIdx.x % 32, warp = part * COMPACT_WARPS + threadIdx.x / 32, warps = blocks_per_unit * COMPACT_WARPS;
	uint32_t	first_pad = unit.first_pad - slice_first_pad;
	uint32_t	pad_segments = TABLET_PAD_ROWS / staging.segment_rows;
	uint32_t	first_segment = first_pad * pad_segments, nsegments = unit.npads * pad_segments;
	uint64_t	rows_staged = static_cast<uint64_t>(staging.nsegments) * staging.segment_rows;

	if (threadIdx.x == 0)
		unit_errors = 0;
	sum_counts(staging.counts + first_segment, nsegments);
	for (uint32_t i = threadIdx.x; i < unit.npads; i += COMPACT_THREADS)
		if (staging.errors[first_pad + i] != 0)
			atomicOr(&unit_errors, staging.errors[first_pad + i]);
	__syncthreads();

	uint32_t	rows = min(rows_before()[nsegments], capacity);

	if (unit_errors == 0)
	{
		for (uint32_t first = warp * 32; first < rows; first += warps * 32)
		{
			uint32_t	row = first + lane;

			if (row >= rows)
				break;

			uint64_t	staged = staged_row(staging, first_segment, nsegments, row);

			for (uint32_t c = 0; c < columns.n; c++)
			{
				const CompactColumn &column = columns.column[c];
				const char *from = staging.values + column.from.before * rows_staged;
				char	   *to = unit.area + column.values;

				if (column.from.width == 4)
					move_value<uint32_t>(from, to, staged, row);
				else if (column.from.width == 8)
					move_value<uint64_t>(from, to, staged, row);
				else
					move_value<uint8_t>(from, to, staged, row);
			}
		}

		/* Null bits, 1,024 rows a warp, to whole words of 64 rows. */
		uint32_t	chunks = (rows + 1023) / 1024;

		for (uint32_t i = warp; i < chunks * columns.n; i += warps)
		{
			const CompactColumn &column = columns.column[i / chunks];
			const uint32_t *from = reinterpret_cast<const uint32_t *>(staging.nulls + column.from.nullable_before * (rows_staged / 8));
			uint32_t	first = i % chunks * 1024, mine = 0;

			if (column.from.nullable)
				for (uint32_t j = 0; j < 32 && first + j * 32 < rows; j++)
				{
					uint32_t	row = first + j * 32 + lane;
					bool		null = false;

					if (row < rows)
					{
						uint64_t	staged = staged_row(staging, first_segment, nsegments, row);

						null = from[staged / 32] >> (staged % 32) & 1;
					}

					uint32_t	word = __ballot_sync(~0u, null);

					if (lane == j)
						mine = word;
				}
			if (first + lane * 32 < (rows + 63) / 64 * 64)
				reinterpret_cast<uint32_t *>(unit.area + column.nulls)[first / 32 + lane] = mine;
		}
	}
	__threadfence_system();
	__syncthreads();
	if (threadIdx.x == 0 && atomicAdd(&staging.blocks_done[first_pad], 1) == blocks_per_unit - 1)
	{
		staging.blocks_done[first_pad] = 0;
		outcomes[blockIdx.x / blocks_per_unit] = UnitOutcome{rows, unit_errors};
		__threadfence_system();
	}
}

/* The staging area's parts, in order: counts, errors and blocks_done, which a slice begins with as zeroes, then values and null bits. */
struct StagingBytes
{
	uint64_t	counts, errors, blocks_done, values, nulls;

	StagingBytes(const DeviceProgram &program, uint64_t npads)
	{
		uint64_t	rows = npads * TABLET_PAD_ROWS, row_bytes = 0, nullable = 0;

		for (int i = 0; i < program.nresults; i++)
		{
			row_bytes += static_cast<uint64_t>(type_width(program.result_type[i]));
			nullable += program.result_nullable[i / 8] >> i % 8 & 1;
		}
		counts = align_up(rows / (32 * program.rows_per_lane) * sizeof(uint32_t), 256);
		errors = align_up(npads * sizeof(uint32_t), 256);
		blocks_done = errors;
		values = rows * row_bytes;
		nulls = rows / 8 * nullable;
	}
	uint64_t zeroed() const { return counts + errors + blocks_done; }
};

}  // namespace

uint64_t
row_staging_bytes(const DeviceProgram &program, uint64_t npads)
{
	StagingBytes bytes(program, npads);

	return bytes.zeroed() + bytes.values + bytes.nulls;
}

RowStaging
row_staging(const DeviceProgram &program, uint64_t npads, char *memory)
{
	StagingBytes bytes(program, npads);
	RowStaging	r = {};

	r.counts = reinterpret_cast<uint32_t *>(memory);
	r.errors = reinterpret_cast<uint32_t *>(memory + bytes.counts);
	r.blocks_done = reinterpret_cast<uint32_t *>(memory + bytes.counts + bytes.errors);
	r.values = memory + bytes.zeroed();
	r.nulls = r.values + bytes.values;
	r.segment_rows = 32u * program.rows_per_lane;
	r.nsegments = static_cast<uint32_t>(npads * (TABLET_PAD_ROWS / r.segment_rows));
	r.rows = static_cast<uint64_t>(r.nsegments) * r.segment_rows;
	return r;
}

cudaError_t
reset_row_staging(const RowStaging &staging, cudaStream_t stream)
{
	return cudaMemsetAsync(staging.counts, 0, static_cast<size_t>(staging.values - reinterpret_cast<char *>(staging.counts)), stream);
}

cudaError_t
compact_rows(const DeviceProgram &program, const RowStaging &staging, uint32_t slice_first_pad, const RowSliceUnit *units,
			 uint32_t nunits, uint32_t capacity, UnitOutcome *outcomes, cudaStream_t stream)
{
	constexpr uint32_t batch_units = sizeof(UnitBatch::units) / sizeof(RowSliceUnit);
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];
	StagedColumn staged[PROGRAM_MAX_COLUMNS];
	CompactColumns columns = {};

	result_layout(program.result_type, program.nresults, capacity, layout);
	staged_columns(program, staged);
	columns.n = program.nresults;
	for (int i = 0; i < program.nresults; i++)
		columns.column[i] = CompactColumn{layout[i].values, layout[i].nulls, staged[i]};
	for (uint32_t first = 0; first < nunits; first += batch_units)
	{
		UnitBatch	batch = {};
		uint32_t	n = std::min(nunits - first, batch_units), pads = 1;

		for (uint32_t i = 0; i < n; i++)
		{
			batch.units[i] = units[first + i];
			pads = std::max(pads, batch.units[i].npads);
		}
		if (pads > MAX_UNIT_PADS)
			return cudaErrorInvalidValue;

		uint32_t	blocks_per_unit = std::min(std::max(BLOCKS_WANTED / n, 1u), pads);
		uint32_t	shared = (pads * (TABLET_PAD_ROWS / staging.segment_rows) + 1) * static_cast<uint32_t>(sizeof(uint32_t));
		cudaError_t rc = launch_kernel(&compact, n * blocks_per_unit, COMPACT_THREADS, shared, stream, batch, columns, staging,
									   slice_first_pad, blocks_per_unit, capacity, outcomes + first);

		if (rc != cudaSuccess)
			return rc;
	}
	return cudaSuccess;
}

}  // namespace cuda
}  // namespace gpuvm
