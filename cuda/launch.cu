#include "launch.h"

#include <algorithm>

namespace gpuvm {
namespace cuda {

namespace {

const void *
kernel_of(const DeviceProgram &program)
{
	OpSet		set = program.op_set;

	return program.rows_per_lane == 4 ? interpreter_4(set) : program.rows_per_lane == 8 ? interpreter_8(set) : interpreter_16(set);
}

cudaError_t
multiprocessors(int *count)
{
	int			device;
	cudaError_t rc = cudaGetDevice(&device);

	return rc != cudaSuccess ? rc : cudaDeviceGetAttribute(count, cudaDevAttrMultiProcessorCount, device);
}

/* Resident blocks an SM; the hardware's limit is 32. */
constexpr int MAX_BLOCKS_PER_SM = 8;

}  // namespace

cudaError_t
create_scratch(LaunchScratch *scratch)
{
	int			sms;
	cudaError_t rc = multiprocessors(&sms);

	*scratch = LaunchScratch{};
	if (rc != cudaSuccess)
		return rc;
	scratch->max_blocks = static_cast<uint32_t>(sms * MAX_BLOCKS_PER_SM);
	rc = cudaMalloc(&scratch->state, sizeof(LaunchState));
	if (rc == cudaSuccess)
		rc = cudaMalloc(&scratch->partials, sizeof(Partial) * MAX_AGGS * scratch->max_blocks);
	return rc;
}

void
destroy_scratch(LaunchScratch *scratch)
{
	cudaFree(scratch->state);
	cudaFree(scratch->partials);
	*scratch = LaunchScratch{};
}

cudaError_t
choose_shape(const DeviceProgram &program, const DeviceTable &table, LaunchShape *shape)
{
	int			sms, per_sm, limit = 0;
	cudaError_t rc = multiprocessors(&sms);

	*shape = LaunchShape{kernel_of(program), 0, 0, program_bytes(program.nops, program.naux) + program.region_bytes * BLOCK_WARPS, 0};
	if (rc == cudaSuccess)
		rc = cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
	/* Leaves room for the kernel's own static variables. */
	if (rc == cudaSuccess && shape->shared_bytes + 1024 > static_cast<uint32_t>(limit))
		return cudaErrorInvalidConfiguration;
	if (rc == cudaSuccess)
		rc = cudaFuncSetAttribute(shape->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
								  static_cast<int>(shape->shared_bytes));
	if (rc == cudaSuccess)
		rc = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, shape->kernel, BLOCK_THREADS, shape->shared_bytes);
	if (rc != cudaSuccess)
		return rc;
	if (per_sm == 0)
		return cudaErrorInvalidConfiguration;
	per_sm = std::min({per_sm, MAX_BLOCKS_PER_SM, static_cast<int>(program.max_blocks)});

	/* Units as long as every warp still gets several: finding a unit's tablet costs a chain of loads. */
	uint64_t	rows = static_cast<uint64_t>(table.npads) * TABLET_PAD_ROWS;
	uint64_t	warps = static_cast<uint64_t>(sms) * per_sm * BLOCK_WARPS;
	uint32_t	unit_rows = TABLET_PAD_ROWS;

	while (unit_rows > 32u * program.rows_per_lane * program.stage_tiles && rows / unit_rows < warps * 8)
		unit_rows /= 2;

	uint64_t	useful = (rows / unit_rows + BLOCK_WARPS - 1) / BLOCK_WARPS;

	shape->unit_rows = unit_rows;
	shape->blocks_per_sm = static_cast<uint32_t>(per_sm);
	shape->blocks = static_cast<uint32_t>(std::max<uint64_t>(1, std::min<uint64_t>(useful, static_cast<uint64_t>(sms) * per_sm)));
	return cudaSuccess;
}

cudaError_t
launch(const DeviceProgram &program, const DeviceTable &table, const LaunchShape &shape, const LaunchScratch &scratch,
	   cudaStream_t stream)
{
	DeviceTable t = table;
	LaunchState *state = scratch.state;
	Partial    *partials = scratch.partials;
	t.unit_rows = shape.unit_rows;

	void	   *args[] = {const_cast<DeviceProgram *>(&program), &t, &state, &partials};
	cudaError_t rc = cudaMemsetAsync(state, 0, sizeof(LaunchState), stream);

	if (rc != cudaSuccess)
		return rc;
	return cudaLaunchKernel(shape.kernel, dim3(shape.blocks), dim3(BLOCK_THREADS), args, shape.shared_bytes, stream);
}

}  // namespace cuda
}  // namespace gpuvm
