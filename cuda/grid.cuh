/*
 * grid.cuh: grids, which are programs over pairs: a warp's copy of the loop, and the
 * inner row's values in it. See GridPlan for what the parts are.
 *
 * The loop's operations are written by lanes between two rows of the inner side and
 * read by all during one, so __syncwarp stands before and behind.
 */
#ifndef GPUVM_CUDA_GRID_CUH
#define GPUVM_CUDA_GRID_CUH

#include "rows.cuh"

namespace gpuvm {
namespace cuda {

template <int R>
GPUVM_D GridState *
grid_state(const Machine<R> &m, const DeviceProgram &p)
{
	return reinterpret_cast<GridState *>(shared_memory + m.region + p.grid.state_at);
}

/* The warp's copy of the loop, as a number of an operation in shared memory. */
template <int R>
GPUVM_D uint32_t
loop_pc(const Machine<R> &m, const DeviceProgram &p)
{
	constexpr uint32_t size = sizeof(DeviceOp);

	return (m.region + p.grid.loop_at + size - 1) / size;
}

/* Units of a launch, but for the inner rows. */
GPUVM_D uint32_t
outer_units(const LaunchArgs &args)
{
	return args.npads * (TABLET_PAD_ROWS / args.table.unit_rows);
}

GPUVM_D uint32_t
inner_blocks(const GridArgs &grid)
{
	return (grid.nrows + grid.unit_inner - 1) / grid.unit_inner;
}

/* Once a launch, when the block has its operations: the warp's own of the loop, and the patches. */
template <int R>
GPUVM_D void
copy_loop(const Machine<R> &m, const DeviceProgram &p)
{
	constexpr uint32_t op_words = sizeof(DeviceOp) / 4, skip_word = offsetof(DeviceOp, skip) / 4;
	const uint32_t begin = p.grid.loop_begin, pc = loop_pc(m, p);
	const uint32_t *from = reinterpret_cast<const uint32_t *>(shared_memory) + begin * op_words;
	uint32_t   *to = reinterpret_cast<uint32_t *>(shared_memory) + pc * op_words;
	uint32_t   *patches = reinterpret_cast<uint32_t *>(shared_memory + m.region + p.grid.patches_at);

	for (uint32_t i = m.lane; i < (p.nops - begin) * op_words; i += 32)
		to[i] = from[i] + (i % op_words == skip_word ? (pc - begin) << 16 : 0);
	for (uint32_t i = m.lane; i < p.grid.npatches; i += 32)
		patches[i] = reinterpret_cast<const uint32_t *>(p.grid.patches)[i];
	__syncwarp();
}

/* Behind begin_unit(): the unit's inner rows. */
template <int R>
GPUVM_D void
begin_inner_rows(const Machine<R> &m, const DeviceProgram &p, const LaunchArgs &args, uint32_t block)
{
	if (m.lane == 0)
	{
		const uint32_t first = block * args.grid.unit_inner;

		*grid_state(m, p) = GridState{first, min(first + args.grid.unit_inner, args.grid.nrows), region_header(m)->slice_row, 0};
	}
	__syncwarp();
}

template <int R>
GPUVM_D uint32_t
first_virtual_pad(const Machine<R> &m, const LaunchArgs &args)
{
	const uint32_t unit = region_header(m)->unit, outer = outer_units(args);

	return unit / outer * args.grid.unit_inner * args.npads + unit % outer / (TABLET_PAD_ROWS / args.table.unit_rows);
}

/* Values and null bits of inner rows [row, row + GRID_BLOCK), as far as the unit has them. */
template <int R>
GPUVM_D void
load_inner_rows(const Machine<R> &m, const DeviceProgram &p, const LaunchArgs &args, uint32_t row)
{
	const bool	there = row + m.lane < grid_state(m, p)->end;
	const uint64_t at = static_cast<uint64_t>(args.grid.first_row) + row + (there ? m.lane : 0);

#pragma unroll 1
	for (uint32_t i = 0; i < p.grid.nuniforms; i++)
	{
		const UniformPlan plan = p.grid.uniforms[i];
		const DeviceChunk chunk = args.grid.columns[i];
		const StageColumn col = {chunk.base, chunk.width, 0, 0, 0};
		char	   *to = shared_memory + m.region + plan.values;
		const bool	null = there && chunk.nulls != 0 && reinterpret_cast<const uint8_t *>(chunk.nulls)[at / 8] >> at % 8 & 1;
		const uint32_t nulls = __ballot_sync(~0u, null);

		reinterpret_cast<int64_t *>(to)[m.lane] = decode_code<int64_t>(&col, reinterpret_cast<const char *>(chunk.data) + at * chunk.width,
																	   static_cast<uint32_t>(type_natural_width(plan.type)));
		if (m.lane == 0)
			*reinterpret_cast<uint32_t *>(to + GRID_BLOCK * 8) = nulls;
	}
}

/* Puts inner row `row` where the loop reads it. */
template <int R>
GPUVM_D void
set_inner_row(const Machine<R> &m, const DeviceProgram &p, const LaunchArgs &args, uint32_t row)
{
	const uint32_t j = (row - grid_state(m, p)->first) % GRID_BLOCK;

	__syncwarp();
	if (j == 0)
	{
		load_inner_rows(m, p, args, row);
		__syncwarp();
	}
#pragma unroll 1
	for (uint32_t i = m.lane; i < p.grid.npatches; i += 32)
	{
		const uint32_t patch = reinterpret_cast<const uint32_t *>(shared_memory + m.region + p.grid.patches_at)[i];

		*reinterpret_cast<int64_t *>(shared_memory + loop_pc(m, p) * sizeof(DeviceOp) + (patch & 0xffff)) =
			*reinterpret_cast<const int64_t *>(shared_memory + m.region + (patch >> 16) + j * 8);
	}
	if (p.grid.masks)
#pragma unroll 1
		for (uint32_t i = 0; i < p.grid.nuniforms; i++)
		{
			const UniformPlan plan = p.grid.uniforms[i];
			const char *from = shared_memory + m.region + plan.values;
			const bool	null = *reinterpret_cast<const uint32_t *>(from + GRID_BLOCK * 8) >> j & 1;

			mask_write(m, plan.null_mask, null ? all_rows<R> : 0);
			mask_write(m, plan.truth_mask, !null && reinterpret_cast<const int64_t *>(from)[j] != 0 ? all_rows<R> : 0);
		}
	if (p.grid.virtual_pads && m.lane == 0)
		region_header(m)->slice_row = grid_state(m, p)->slice_row + row * args.npads * TABLET_PAD_ROWS;
	__syncwarp();
}

}  // namespace cuda
}  // namespace gpuvm

#endif
