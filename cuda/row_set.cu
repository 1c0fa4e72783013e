/* row_set.cu: see row_set.h. */
#include "row_set.h"

#include <algorithm>

#include "kernel_launch.h"
#include "launch.h"
#include "scan.cuh"
#include "staged_columns.h"
#include "vm/result_layout.h"

namespace gpuvm {
namespace cuda {

namespace {

constexpr uint32_t THREADS = 256;
constexpr uint32_t WARPS = THREADS / 32;
constexpr uint32_t LANE_ROWS = 4;			/* on the way at a time */
constexpr uint32_t WARPS_WANTED = 8192;		/* all that a large GPU runs at a time */

struct AppendColumn
{
	char	   *values;
	uint32_t   *nulls;
	StagedColumn from;
	uint8_t		to_width;
};

struct AppendColumns
{
	uint32_t	n;
	bool		last;			/* there is no further launch: the rows count */
	AppendColumn column[BATCH_COLUMNS];
};

struct Counts
{
	using Value = uint32_t;
	const uint32_t *counts;

	GPUVM_HD Value operator()(uint32_t i) const { return counts[i]; }
};

template <typename From, typename To>
GPUVM_D void
move_values(const char *from, char *to, const uint64_t (&staged)[LANE_ROWS], uint32_t row, uint32_t left)
{
	From		v[LANE_ROWS];

#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
		if (k * 32 < left)
			v[k] = reinterpret_cast<const From *>(from)[staged[k]];
#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
		if (k * 32 < left)
			reinterpret_cast<To *>(to)[row + k * 32] = static_cast<To>(v[k]);
}

/*
 * A warp takes `share` segments, a power of two up to 32: as many as leave every warp
 * something to do, for where segments are almost empty it is better that lanes meet rows of several.
 */
__global__ void __launch_bounds__(THREADS)
append(const __grid_constant__ AppendColumns columns, const RowStaging staging, const uint32_t *before, uint32_t nsegments, uint32_t npads,
	   uint32_t share, uint32_t capacity, RowSetState *state)
{
	const uint32_t lane = threadIdx.x % 32, group = blockIdx.x * WARPS + threadIdx.x / 32, first_segment = group * share;
	const uint32_t slice_rows = before[nsegments - 1] + staging.counts[nsegments - 1], had = state->nrows;
	const uint64_t end = static_cast<uint64_t>(had) + slice_rows, rows_staged = static_cast<uint64_t>(staging.nsegments) * staging.segment_rows;
	const bool	full = state->full != 0 || end > capacity;

	if (first_segment < nsegments && !full)
	{
		const uint32_t n = min(share, nsegments - first_segment), mine = first_segment + min(lane, n - 1);
		const uint32_t begin = before[first_segment], last = first_segment + n - 1;
		const uint32_t start = lane < n ? before[mine] - begin : ~0u;
		const uint32_t rows = before[last] + staging.counts[last] - begin;

		for (uint32_t first = 0; first < rows; first += 32 * LANE_ROWS)
		{
			const uint32_t left = first + lane < rows ? rows - first - lane : 0;
			uint64_t	staged[LANE_ROWS];

#pragma unroll
			for (uint32_t k = 0; k < LANE_ROWS; k++)
			{
				const uint32_t row = first + k * 32 + lane;
				uint32_t	segment = 0;	/* the last that begins at the row or before it */

				for (uint32_t step = share / 2; step > 0; step /= 2)
					if (__shfl_sync(~0u, start, static_cast<int>(segment + step)) <= row)
						segment += step;
				staged[k] = static_cast<uint64_t>(first_segment + segment) * staging.segment_rows
					+ (row - __shfl_sync(~0u, start, static_cast<int>(segment)));
			}
			for (uint32_t c = 0; c < columns.n; c++)
			{
				const AppendColumn &column = columns.column[c];
				const char *from = staging.values + column.from.before * rows_staged;
				const uint32_t row = had + begin + first + lane;

				if (column.from.width == 8)
					move_values<uint64_t, uint64_t>(from, column.values, staged, row, left);
				else if (column.from.width == 1)
					move_values<uint8_t, uint8_t>(from, column.values, staged, row, left);
				else if (column.to_width == 2)
					move_values<uint32_t, uint16_t>(from, column.values, staged, row, left);
				else
					move_values<uint32_t, uint32_t>(from, column.values, staged, row, left);
				if (!column.from.nullable)
					continue;

				const uint32_t *nulls = reinterpret_cast<const uint32_t *>(staging.nulls + column.from.nullable_before * (rows_staged / 8));

#pragma unroll
				for (uint32_t k = 0; k < LANE_ROWS; k++)
				{
					const bool	null = k * 32 < left && (nulls[staged[k] / 32] >> (staged[k] % 32) & 1) != 0;
					const uint32_t bits = __ballot_sync(~0u, null), to = row - lane + k * 32;

					if (lane == 0 && bits << (to % 32) != 0)
						atomicOr(&column.nulls[to / 32], bits << (to % 32));
					if (lane == 1 && to % 32 != 0 && bits >> (32 - to % 32) != 0)
						atomicOr(&column.nulls[to / 32 + 1], bits >> (32 - to % 32));
				}
			}
		}
	}
	if (columns.last)
		for (uint32_t pad = blockIdx.x * THREADS + threadIdx.x; pad < npads; pad += gridDim.x * THREADS)
			if (staging.errors[pad] != 0)
				atomicOr(&state->errors, staging.errors[pad]);
	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0 && atomicAdd(&state->blocks_done, 1) == gridDim.x - 1)
	{
		state->blocks_done = 0;
		if (columns.last)
		{
			state->wanted += slice_rows;
			state->full = full;
			state->nrows = full ? had : static_cast<uint32_t>(end);
		}
	}
}

/* A row set's memory: the state, null bits of all nullable columns, values. */
struct RowSetBytes
{
	uint64_t	state, bitmap, bitmaps, all;

	RowSetBytes(const Type *types, const uint8_t *nullable, uint32_t ncolumns, uint64_t capacity)
	{
		state = align_up(sizeof(RowSetState), 256);
		bitmap = align_up(capacity / 8, 256);
		bitmaps = 0;
		all = state;
		for (uint32_t i = 0; i < ncolumns; i++)
		{
			bitmaps += nullable[i / 8] >> i % 8 & 1 ? bitmap : 0;
			all += capacity * static_cast<uint64_t>(type_natural_width(types[i]));
		}
		all += bitmaps;
	}
};

uint32_t
segments_of(const RowStaging &staging, uint64_t npads)
{
	return static_cast<uint32_t>(npads * (TABLET_PAD_ROWS / staging.segment_rows));
}

cudaError_t
copy_bytes(void *to, const void *from, uint64_t bytes, cudaStream_t stream)
{
	return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}

}  // namespace

uint64_t
row_set_bytes(const Type *types, const uint8_t *nullable, uint32_t ncolumns, uint64_t capacity)
{
	return RowSetBytes(types, nullable, ncolumns, align_up(capacity, TABLET_PAD_ROWS)).all;
}

RowSet
row_set(const Type *types, const uint8_t *nullable, uint32_t ncolumns, uint64_t capacity, char *memory)
{
	capacity = align_up(capacity, TABLET_PAD_ROWS);

	const RowSetBytes bytes(types, nullable, ncolumns, capacity);
	RowSet		rows = {};
	char	   *nulls = memory + bytes.state, *values = nulls + bytes.bitmaps;

	rows.state = reinterpret_cast<RowSetState *>(memory);
	rows.ncolumns = ncolumns;
	rows.capacity = static_cast<uint32_t>(capacity);
	for (uint32_t i = 0; i < ncolumns; i++)
	{
		rows.column[i] = RowColumn{values, nullptr, types[i]};
		values += capacity * static_cast<uint64_t>(type_natural_width(types[i]));
		if (nullable[i / 8] >> i % 8 & 1)
		{
			rows.column[i].nulls = reinterpret_cast<uint32_t *>(nulls);
			nulls += bytes.bitmap;
		}
	}
	return rows;
}

uint64_t
row_set_bytes(const DeviceProgram &program, uint64_t capacity)
{
	return row_set_bytes(program.result_type, program.result_nullable, program.nresults, capacity);
}

RowSet
row_set(const DeviceProgram &program, uint64_t capacity, char *memory)
{
	return row_set(program.result_type, program.result_nullable, program.nresults, capacity, memory);
}

cudaError_t
reset_rows(const RowSet &rows, cudaStream_t stream)
{
	uint64_t	bytes = align_up(sizeof(RowSetState), 256);

	for (uint32_t i = 0; i < rows.ncolumns; i++)
		bytes += rows.column[i].nulls != nullptr ? align_up(rows.capacity / 8, 256) : 0;
	return cudaMemsetAsync(rows.state, 0, bytes, stream);
}

uint64_t
append_temp_bytes(const DeviceProgram &program, uint64_t npads)
{
	const uint32_t n = static_cast<uint32_t>(npads * (TABLET_PAD_ROWS / (32u * program.rows_per_lane)));

	return align_up(n * sizeof(uint32_t), 256) + exclusive_sum_bytes<Counts>(n);
}

cudaError_t
append_rows(const DeviceProgram &program, const RowStaging &staging, uint64_t npads, const RowSet &rows, char *temp, RowSetState *outcome,
			cudaStream_t stream)
{
	if (npads == 0)
		return outcome == nullptr ? cudaSuccess : copy_bytes(outcome, rows.state, sizeof(RowSetState), stream);

	const uint32_t nsegments = segments_of(staging, npads);
	uint32_t   *before = reinterpret_cast<uint32_t *>(temp);
	char	   *sum_temp = temp + align_up(nsegments * sizeof(uint32_t), 256);
	uint64_t	sum_bytes = exclusive_sum_bytes<Counts>(nsegments);
	StagedColumn staged[PROGRAM_MAX_COLUMNS];
	uint32_t	share = 1, done = 0;
	cudaError_t rc = cudaSuccess;

	if (rows.ncolumns != program.nresults || nsegments > staging.nsegments)
		return cudaErrorInvalidValue;
	while (share < 32 && nsegments / (2 * share) >= WARPS_WANTED)
		share *= 2;
	staged_columns(program, staged);
	rc = exclusive_sum(sum_temp, &sum_bytes, Counts{staging.counts}, before, nsegments, stream);
	do
	{
		AppendColumns columns = {};

		columns.n = std::min(rows.ncolumns - done, BATCH_COLUMNS);
		for (uint32_t i = 0; i < columns.n; i++)
		{
			const RowColumn &to = rows.column[done + i];

			columns.column[i] = AppendColumn{to.values, to.nulls, staged[done + i], static_cast<uint8_t>(type_natural_width(to.type))};
		}
		done += columns.n;
		columns.last = done == rows.ncolumns;
		if (rc == cudaSuccess)
			rc = launch_kernel(&append, (nsegments + share * WARPS - 1) / (share * WARPS), THREADS, 0, stream, columns, staging, before, nsegments,
							   static_cast<uint32_t>(npads), share, rows.capacity, rows.state);
	}
	while (done < rows.ncolumns);
	if (rc == cudaSuccess && outcome != nullptr)
		rc = copy_bytes(outcome, rows.state, sizeof(RowSetState), stream);
	return rc;
}

bool
takes_rows_straight(const DeviceProgram &program)
{
	for (int i = 0; i < program.nresults; i++)
		if (type_width(program.result_type[i]) != type_natural_width(program.result_type[i]))
			return false;
	return true;
}

uint64_t
straight_bytes(const DeviceProgram &program, uint64_t npads)
{
	return align_up(npads * (TABLET_PAD_ROWS / (32u * program.rows_per_lane)) * sizeof(uint32_t), 256);
}

RowStaging
straight_to(const DeviceProgram &program, uint64_t npads, const RowSet &rows, char *memory)
{
	RowStaging	staging = row_staging(program, npads, memory);

	staging.values = rows.ncolumns > 0 ? rows.column[0].values : nullptr;
	staging.nulls = nullptr;
	for (uint32_t i = rows.ncolumns; i-- > 0;)
		if (rows.column[i].nulls != nullptr)
			staging.nulls = reinterpret_cast<char *>(rows.column[i].nulls);
	staging.rows = rows.capacity;
	staging.errors = nullptr;
	staging.to = rows.state;
	return staging;
}

cudaError_t
move_rows(const RowSet &from, uint32_t nrows, const RowSet &to, cudaStream_t stream)
{
	if (nrows > to.capacity || from.ncolumns != to.ncolumns)
		return cudaErrorInvalidValue;

	cudaError_t rc = copy_bytes(to.state, from.state, offsetof(RowSetState, full), stream);

	/* wanted, whose other bytes are zeroes */
	if (rc == cudaSuccess)
		rc = copy_bytes(&to.state->wanted, &from.state->nrows, sizeof(from.state->nrows), stream);
	for (uint32_t i = 0; i < from.ncolumns && nrows > 0 && rc == cudaSuccess; i++)
	{
		const RowColumn &a = from.column[i], &b = to.column[i];

		rc = copy_bytes(b.values, a.values, nrows * static_cast<uint64_t>(type_natural_width(a.type)), stream);
		if (rc == cudaSuccess && a.nulls != nullptr)
			rc = copy_bytes(b.nulls, a.nulls, (nrows + 31) / 32 * sizeof(uint32_t), stream);
	}
	return rc;
}

}  // namespace cuda
}  // namespace gpuvm
