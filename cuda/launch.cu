/* launch.cu: see launch.h. */
#include "launch.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <tuple>

#include "kernel_launch.h"

namespace gpuvm {
namespace cuda {

namespace {

/* Resident blocks an SM; the hardware's limit is 32. */
constexpr int MAX_BLOCKS_PER_SM = 8;

/* Inner rows that a warp takes at a time: a millisecond or two at most. */
constexpr uint64_t MAX_UNIT_INNER = 1024, MIN_UNIT_INNER = 8, UNITS_A_WARP = 4;

/* Room for the kernel's own static variables. */
constexpr uint32_t STATIC_SHARED_BYTES = 1024;

struct DeviceFacts
{
	int			sms = 0;
	int			block_shared = 0;	/* bytes that a block may have */
};

/* What the driver said, by device. */
struct ShapeCache
{
	std::mutex	mutex;
	std::map<int, DeviceFacts> devices;
	std::map<std::tuple<int, InterpretFn, uint32_t, uint32_t>, int> resident;	/* blocks an SM: by device, kernel, threads, shared bytes */
};

ShapeCache &
cache()
{
	static ShapeCache c;

	return c;
}

InterpretFn
kernel_of(const DeviceProgram &program)
{
	OpSet		set = program.op_set;

	if (program.grid.pairs)
		return pairs_interpreter(set);
	if (program.grid.loop_begin != 0)
		return program.rows_per_lane == 8 ? grid_interpreter_8(set) : grid_interpreter_16(set);
	return program.rows_per_lane == 4 ? interpreter_4(set) : program.rows_per_lane == 8 ? interpreter_8(set) : interpreter_16(set);
}

/* Under the cache's lock. */
cudaError_t
device_facts(int device, DeviceFacts *facts)
{
	auto		at = cache().devices.find(device);

	if (at != cache().devices.end())
	{
		*facts = at->second;
		return cudaSuccess;
	}

	cudaError_t rc = cudaDeviceGetAttribute(&facts->sms, cudaDevAttrMultiProcessorCount, device);

	if (rc == cudaSuccess)
		rc = cudaDeviceGetAttribute(&facts->block_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
	if (rc == cudaSuccess)
		cache().devices[device] = *facts;
	return rc;
}

cudaError_t
resident_blocks(int device, const DeviceFacts &facts, const LaunchShape &shape, int *per_sm)
{
	auto		key = std::make_tuple(device, shape.kernel, shape.threads, shape.shared_bytes);
	auto		at = cache().resident.find(key);

	if (at != cache().resident.end())
	{
		*per_sm = at->second;
		return cudaSuccess;
	}

	/* The most that any program may ask for: launches of another thread must not find it lowered. */
	cudaError_t rc = cudaFuncSetAttribute(shape.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
										  facts.block_shared - static_cast<int>(STATIC_SHARED_BYTES));

	if (rc == cudaSuccess)
		rc = cudaOccupancyMaxActiveBlocksPerMultiprocessor(per_sm, shape.kernel, static_cast<int>(shape.threads), shape.shared_bytes);
	if (rc == cudaSuccess)
		cache().resident[key] = *per_sm;
	return rc;
}

}  // namespace

cudaError_t
create_scratch(LaunchScratch *scratch)
{
	DeviceFacts facts;
	int			device;
	cudaError_t rc = cudaGetDevice(&device);

	*scratch = LaunchScratch{};
	if (rc == cudaSuccess)
	{
		std::lock_guard<std::mutex> lock(cache().mutex);

		rc = device_facts(device, &facts);
	}
	if (rc != cudaSuccess)
		return rc;
	scratch->max_blocks = static_cast<uint32_t>(facts.sms * MAX_BLOCKS_PER_SM);
	rc = cudaMalloc(&scratch->state, sizeof(LaunchState));
	if (rc == cudaSuccess)
		rc = cudaMalloc(&scratch->partials, sizeof(Partial) * MAX_AGGS * scratch->max_blocks);
	if (rc == cudaSuccess)
		rc = cudaMalloc(&scratch->long_aux, sizeof(int64_t) * PROGRAM_MAX_AUX);
	return rc;
}

void
destroy_scratch(LaunchScratch *scratch)
{
	cudaFree(scratch->state);
	cudaFree(scratch->partials);
	cudaFree(scratch->long_aux);
	*scratch = LaunchScratch{};
}

cudaError_t
choose_shape(const DeviceProgram &program, uint64_t npads, LaunchShape *shape, uint32_t group_bytes,
			 uint64_t inner_rows)
{
	std::lock_guard<std::mutex> lock(cache().mutex);
	DeviceFacts facts;
	int			device, per_sm;
	uint32_t	block_bytes = program_bytes(program.nops, program.naux) + group_bytes, warps = BLOCK_WARPS;
	cudaError_t rc = cudaGetDevice(&device);

	if (rc == cudaSuccess)
		rc = device_facts(device, &facts);
	if (rc != cudaSuccess)
		return rc;

	uint32_t	limit = static_cast<uint32_t>(facts.block_shared) - STATIC_SHARED_BYTES;

	while (warps > 1 && block_bytes + program.region_bytes * warps > limit)
		warps /= 2;
	*shape = LaunchShape{kernel_of(program), 0, 0, warps * 32, block_bytes + program.region_bytes * warps, 0, 1};
	if (shape->shared_bytes > limit)
		return cudaErrorInvalidConfiguration;
	rc = resident_blocks(device, facts, *shape, &per_sm);
	if (rc != cudaSuccess)
		return rc;
	if (per_sm == 0)
		return cudaErrorInvalidConfiguration;
	per_sm = std::min({per_sm, MAX_BLOCKS_PER_SM, static_cast<int>(program.max_blocks)});

	/* Units as long as every warp still gets several: finding a unit's tablet costs a chain of loads. */
	uint64_t	rows = npads * TABLET_PAD_ROWS;
	uint64_t	all_warps = static_cast<uint64_t>(facts.sms) * per_sm * warps;
	uint32_t	unit_rows = TABLET_PAD_ROWS;

	while (unit_rows > 32u * program.rows_per_lane * program.stage_tiles && rows / unit_rows < all_warps * 8)
		unit_rows /= 2;

	/* A grid's unit is a tile and so many inner rows that every warp gets the same few: there is much to do in each. */
	uint64_t	units = rows / unit_rows;
	uint32_t	unit_inner = 1;

	if (program.grid.loop_begin != 0)
	{
		const uint64_t most = program.grid.pairs ? MAX_UNIT_INNER : MAX_UNIT_INNER / 4;

		unit_rows = 32u * program.rows_per_lane;

		const uint64_t share = (rows / unit_rows * inner_rows + all_warps * UNITS_A_WARP - 1) / (all_warps * UNITS_A_WARP);

		unit_inner = static_cast<uint32_t>(std::min(most, share > GRID_BLOCK ? (share + GRID_BLOCK - 1) / GRID_BLOCK * GRID_BLOCK : std::max(share, MIN_UNIT_INNER)));
		units = rows / unit_rows * ((inner_rows + unit_inner - 1) / unit_inner);
	}

	uint64_t	useful = (units + warps - 1) / warps;

	shape->unit_rows = unit_rows;
	shape->unit_inner = unit_inner;
	shape->blocks_per_sm = static_cast<uint32_t>(per_sm);
	shape->blocks = static_cast<uint32_t>(std::max<uint64_t>(1, std::min<uint64_t>(useful, static_cast<uint64_t>(facts.sms) * per_sm)));
	return cudaSuccess;
}

cudaError_t
reset_state(const LaunchScratch &scratch, cudaStream_t stream)
{
	return cudaMemsetAsync(scratch.state, 0, sizeof(LaunchState), stream);
}

cudaError_t
send_long_lists(const DeviceProgram &program, const LaunchScratch &scratch, cudaStream_t stream)
{
	if (program.nlong_aux == 0)
		return cudaSuccess;
	return cudaMemcpyAsync(scratch.long_aux, program.long_aux, program.nlong_aux * sizeof(int64_t), cudaMemcpyHostToDevice, stream);
}

cudaError_t
launch_slice(const DeviceProgram &program, const LaunchShape &shape, const LaunchScratch &scratch, const SliceArgs &slice,
			 cudaStream_t stream)
{
	LaunchArgs	args = {slice.table, slice.first_pad, slice.npads, slice.abort, scratch.state, scratch.partials,
		scratch.long_aux, {}, {}, {slice.inner_columns, slice.inner_first, slice.inner_rows, shape.unit_inner}, slice.marks, slice.list, {}, scratch.patterns, scratch.text_keys};
	uint64_t	units = static_cast<uint64_t>(slice.npads) * (TABLET_PAD_ROWS / shape.unit_rows);
	uint32_t	warps = shape.threads / 32;

	std::copy(std::begin(scratch.maps), std::end(scratch.maps), std::begin(args.maps));
	if (program.grid.loop_begin != 0)
	{
		const uint64_t virtual_pads = static_cast<uint64_t>(slice.npads) * slice.inner_rows;

		units *= (static_cast<uint64_t>(slice.inner_rows) + shape.unit_inner - 1) / shape.unit_inner;
		if (units > INT32_MAX || virtual_pads > (program.grid.virtual_pads ? MAX_VIRTUAL_PADS : MAX_SLICE_PAIRS / TABLET_PAD_ROWS))
			return cudaErrorInvalidValue;
	}

	uint64_t	useful = std::max<uint64_t>(1, (units + warps - 1) / warps);

	args.table.unit_rows = shape.unit_rows;
	if (slice.rows)
	{
		cudaError_t rc = slice.rows->to == nullptr ? reset_row_staging(*slice.rows, stream) : cudaSuccess;

		if (rc != cudaSuccess)
			return rc;
		args.rows = *slice.rows;
	}

	uint32_t	blocks = static_cast<uint32_t>(std::min<uint64_t>(useful, shape.blocks));

	if (slice.groups)
		args.groups = *slice.groups;
	if (args.groups.partition_bits != 0)
	{
		blocks = std::min(blocks, args.groups.most_writers);
		args.groups.writers = blocks;
		args.groups.region_records = static_cast<uint32_t>((args.groups.buffer_records >> args.groups.partition_bits) / blocks);
	}

	cudaError_t rc = launch_kernel(shape.kernel, blocks, shape.threads, shape.shared_bytes, stream, program, args);

	if (rc == cudaSuccess && args.groups.partition_bits != 0)
		rc = gather_partitions(program, args.groups, args.state, args.abort, stream);
	return rc;
}

}  // namespace cuda
}  // namespace gpuvm
