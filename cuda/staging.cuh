/*
 * staging.cuh: how a unit's columns come into a warp's region of shared memory.
 *
 * From compute capability 9.0 on by bulk copies: lane 0 arms the warp's mbarrier
 * with the bytes to come, lane i starts the copies of columns i, i + 32, ..., and
 * all lanes wait for the barrier's phase. Before that by plain loads and stores
 * of all lanes, and a __syncwarp.
 *
 * Lanes then read what other lanes brought, and may write over staged columns;
 * the __syncwarp and, after writes, the proxy fence order those accesses before
 * the next copies. One stage is enough: other warps compute while this one waits.
 */
#ifndef GPUVM_CUDA_STAGING_CUH
#define GPUVM_CUDA_STAGING_CUH

#include "columns.cuh"

#if defined(GPUVM_EMULATED) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900)
#define GPUVM_PLAIN_COPIES
#endif

namespace gpuvm {
namespace cuda {

#ifdef GPUVM_PLAIN_COPIES

GPUVM_D void init_copies(RegionHeader *) {}
GPUVM_D void expect_copies(RegionHeader *, uint32_t, uint32_t) {}
GPUVM_D void order_writes_before_copies() {}
GPUVM_D void await_copies(RegionHeader *) {}

#else

GPUVM_D uint32_t
shared_address(const void *p)
{
	return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

GPUVM_D void
init_copies(RegionHeader *header)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared_address(&header->barrier)) : "memory");
	asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	header->parity = 0;
}

/* The lanes' bytes of a stage, in all. */
GPUVM_D void
expect_copies(RegionHeader *header, uint32_t lane, uint32_t bytes)
{
	bytes = __reduce_add_sync(~0u, bytes);
	if (lane == 0)
		header->stage_bytes = bytes;
}

GPUVM_D void
order_writes_before_copies()
{
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

GPUVM_D void
bulk_copy(void *to, uint64_t from, uint32_t bytes, uint64_t *barrier)
{
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
				 :: "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(barrier)) : "memory");
}

GPUVM_D void
await_copies(RegionHeader *header)
{
	asm volatile("{\n"
				 ".reg .pred done;\n"
				 "wait_%=:\n"
				 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
				 "@!done bra wait_%=;\n"
				 "}" :: "r"(shared_address(&header->barrier)), "r"(header->parity) : "memory");
}

#endif

/* Points the columns at the unit's first tile, those that are not staged at their tablet. */
template <int R>
GPUVM_D void
bind_columns(const Machine<R> &m, const DeviceProgram &p, const DeviceChunk *chunks, uint32_t first_row)
{
	uint32_t	bytes = 0;

#pragma unroll 1
	for (uint32_t c = m.lane; c < p.ncolumns; c += 32)
	{
		DeviceChunk chunk = chunks[c];
		uint32_t	nulls_at = p.columns[c].nulls;

		if (c >= p.nstaged)
		{
			*stage_column(m, c) = StageColumn{chunk.base, chunk.width, 0, chunk.data, chunk.nulls};
			continue;
		}
		if (nulls_at == OPERAND_NONE)
			chunk.nulls = 0;
		else if (chunk.nulls == 0)
			for (uint32_t i = 0; i < R / 4 * p.stage_tiles; i++)
				reinterpret_cast<uint4 *>(shared_memory + m.region + nulls_at)[i] = uint4{0, 0, 0, 0};
		bytes += (chunk.width * (32 * R) + (chunk.nulls != 0 ? 4 * R : 0)) * p.stage_tiles;
		*stage_column(m, c) = StageColumn{chunk.base, chunk.width, 0, chunk.data + static_cast<uint64_t>(first_row) * chunk.width,
			chunk.nulls != 0 ? chunk.nulls + first_row / 8 : 0};
	}
	expect_copies(region_header(m), m.lane, bytes);
	__syncwarp();
}

#ifdef GPUVM_PLAIN_COPIES

GPUVM_D void
copy_by_warp(char *to, uint64_t from, uint32_t bytes, uint32_t lane)
{
#pragma unroll 4
	for (uint32_t i = lane * 16; i < bytes; i += 512)
		*reinterpret_cast<uint4 *>(to + i) = *reinterpret_cast<const uint4 *>(from + i);
}

template <int R>
GPUVM_D void
fill_stage(const Machine<R> &m, const DeviceProgram &p)
{
	__syncwarp();
	for (uint32_t c = 0; c < p.nstaged; c++)
	{
		const StageColumn *col = stage_column(m, c);
		uint32_t	bytes = col->width * (32 * R) * p.stage_tiles;

		copy_by_warp(shared_memory + m.region + p.columns[c].data, col->next_data, bytes, m.lane);
		if (col->next_nulls != 0)
			copy_by_warp(shared_memory + m.region + p.columns[c].nulls, col->next_nulls, 4 * R * p.stage_tiles, m.lane);
	}
	__syncwarp();
#pragma unroll 1
	for (uint32_t c = m.lane; c < p.nstaged; c += 32)
	{
		StageColumn *col = stage_column(m, c);

		col->next_data += col->width * (32 * R) * p.stage_tiles;
		col->next_nulls += col->next_nulls != 0 ? 4 * R * p.stage_tiles : 0;
	}
}

#else

/* Starts the copies of the next stage. All lanes are done with the stage before. */
template <int R>
GPUVM_D void
fill_stage(const Machine<R> &m, const DeviceProgram &p)
{
	RegionHeader *header = region_header(m);

	/* Orders the lanes' own writes to the stage before the copies'. */
	if (p.writes_stage)
		order_writes_before_copies();
	if (m.lane == 0)
		asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
					 :: "r"(shared_address(&header->barrier)), "r"(header->stage_bytes) : "memory");
	__syncwarp();
#pragma unroll 1
	for (uint32_t c = m.lane; c < p.nstaged; c += 32)
	{
		StageColumn *col = stage_column(m, c);
		StagePlan	plan = p.columns[c];
		uint32_t	bytes = col->width * (32 * R) * p.stage_tiles, null_bytes = 4 * R * p.stage_tiles;
		uint64_t	data = col->next_data, nulls = col->next_nulls;

		if (bytes != 0)
			bulk_copy(shared_memory + m.region + plan.data, data, bytes, &header->barrier);
		if (nulls != 0)
			bulk_copy(shared_memory + m.region + plan.nulls, nulls, null_bytes, &header->barrier);
		col->next_data = data + bytes;
		col->next_nulls = nulls != 0 ? nulls + null_bytes : 0;
	}
	__syncwarp();
}

#endif

}  // namespace cuda
}  // namespace gpuvm

#endif
