/*
 * partitions.cu: from the records of rows to the group table; see groups.h.
 *
 * A block gathers a partition. Its warps take the regions that the interpreter's
 * blocks filled in turn, four records a lane at a time, so that their loads are
 * on their way together. A group has its slot by number.
 */
#include "groups.h"

#include "groups.cuh"
#include "kernel_launch.h"

namespace gpuvm {
namespace cuda {

namespace {

constexpr uint32_t THREADS = 512;
constexpr int BATCH = 4;	/* records of a lane */

/* Room for the kernel's own static variables. */
constexpr uint32_t STATIC_SHARED_BYTES = 1024;

/* What records have for one cell, to their targets. */
GPUVM_D void
add_parts(const CellBase &base, const GroupCell &cell, const uint32_t (&targets)[BATCH], const uint32_t *const (&records)[BATCH], uint32_t word)
{
	const bool	low = cell.part == CellPart::Low;
	auto		each = [&](auto f)
	{
#pragma unroll
		for (int i = 0; i < BATCH; i++)
			if (targets[i] != TARGET_NONE)
				f(targets[i], records[i] + word);
	};
	auto		whole = [](const uint32_t *at) { return at[0] | static_cast<uint64_t>(at[1]) << 32; };
	auto		place = [&](int w) { return CellPlace{static_cast<uint16_t>(cell.place.at + 8 * w), static_cast<uint16_t>(cell.place.plane + 2 * w)}; };

	if (cell.part == CellPart::One)
	{
		each([&](uint32_t target, const uint32_t *) { count_rows(base, cell.kind, target, cell.place, 1); });
		return;
	}
	switch (cell.kind)
	{
		case CellKind::Add32:
			each([&](uint32_t target, const uint32_t *at) { add32(base, target, cell.place, at[0]); });
			break;
		case CellKind::Add64:
			each([&](uint32_t target, const uint32_t *at) { add64(base, target, cell.place, low ? at[0] : whole(at)); });
			break;
		case CellKind::Wide:
			for (int w = 0; w < 2; w++)
				each([&](uint32_t target, const uint32_t *at) { add64(base, target, place(w), at[w]); });
			break;
		case CellKind::Limbs:
			for (int w = 0; w < cell.limbs; w++)
				each([&](uint32_t target, const uint32_t *at) { add64(base, target, place(w), whole(at + 2 * w)); });
			break;
		case CellKind::Max32:
			each([&](uint32_t target, const uint32_t *at) { max32(base, target, cell.place, at[0]); });
			break;
		case CellKind::Or32:
			each([&](uint32_t target, const uint32_t *at) { or32(base, target, cell.place, at[0]); });
			break;
		case CellKind::Xor32:
			each([&](uint32_t target, const uint32_t *at) { xor32(base, target, cell.place, at[0]); });
			break;
		default:
			__builtin_unreachable();	/* a mark is always 1, and no record has a Max64 */
	}
}

/* The lane's records from `first` on, 32 apart, of the n from `records` on. */
GPUVM_D void
add_records(const GroupLayout &g, const GroupArea *area, const uint32_t *records, uint32_t first, uint32_t n)
{
	const CellBase base(area);
	const uint32_t words = area->table.record_words;
	const uint32_t *at[BATCH];
	uint32_t	targets[BATCH];

#pragma unroll
	for (int i = 0; i < BATCH; i++)
	{
		const uint32_t r = first + 32 * static_cast<uint32_t>(i);

		at[i] = records + static_cast<uint64_t>(r) * words;
		targets[i] = r >= n ? TARGET_NONE : TARGET_SHARED | at[i][0] >> area->table.partition_bits;
	}

	uint32_t	word = 1;

	for (int c = 0; c < g.ncells; c++)
	{
		const GroupCell cell = g.cells[c];

		add_parts(base, cell, targets, at, word);
		word += record_words_of(cell);
	}
}

__global__ void __launch_bounds__(THREADS, 2)
gather(const __grid_constant__ GroupLayout g, const __grid_constant__ GroupTable table, const LaunchState *state, const uint32_t *abort)
{
	GroupArea  *area = shared_at<GroupArea>(0);
	const uint32_t partition = blockIdx.x, lane = threadIdx.x % 32;
	const uint32_t planes_at = static_cast<uint32_t>(sizeof(GroupArea)), words = g.planes * table.gather_slots;

	if (threadIdx.x == 0)
	{
		area->table = table;
		area->planes_at = planes_at;
		area->plane_bytes = table.gather_slots * 4;
		area->overflow = table.header->overflow | state->errors | (abort != nullptr ? *abort : 0);
	}
	/* Slots come in fours. */
	for (uint32_t i = threadIdx.x; i < words / 4; i += blockDim.x)
		shared_at<uint4>(planes_at)[i] = uint4{0, 0, 0, 0};
	__syncthreads();
	/* Nobody is going to look at the table; and what an operation that failed left is no value of its range, and may have spoilt a record's key. */
	if (area->overflow)
		return;

	for (uint32_t writer = threadIdx.x / 32; writer < table.writers; writer += THREADS / 32)
	{
		const uint32_t region = partition * table.writers + writer, n = table.counts[region];
		const uint32_t *records = table.records + static_cast<uint64_t>(region) * table.region_records * table.record_words;

#pragma unroll 1
		for (uint32_t first = lane; first < n; first += 32 * BATCH)
			add_records(g, area, records, first, n);
	}
	__syncthreads();
	for (uint32_t slot = threadIdx.x; slot < table.gather_slots; slot += blockDim.x)
	{
		const uint64_t row = static_cast<uint64_t>(slot) << table.partition_bits | partition;

		if (row < table.entries)
			take_slot(g, area, slot, 1, table.rows + row * table.row_bytes);
	}
}

}  // namespace

cudaError_t
gather_partitions(const DeviceProgram &program, const GroupTable &table, const LaunchState *state, const uint32_t *abort, cudaStream_t stream)
{
	int			device, block;
	cudaError_t rc = cudaGetDevice(&device);

	if (rc == cudaSuccess)
		rc = cudaDeviceGetAttribute(&block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
	/* The most that any table may have: launches of another thread must not find it lowered. */
	if (rc == cudaSuccess)
		rc = cudaFuncSetAttribute(gather, cudaFuncAttributeMaxDynamicSharedMemorySize, block - static_cast<int>(STATIC_SHARED_BYTES));
	if (rc != cudaSuccess)
		return rc;
	return launch_kernel(gather, 1u << table.partition_bits, THREADS, table.gather_bytes, stream, program.groups, table, state, abort);
}

}  // namespace cuda
}  // namespace gpuvm
