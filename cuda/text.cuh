/*
 * text.cuh: TextMatch and TextPart. Matching, a lane takes every 32nd row of the tile, not its own: the images of
 * neighbouring rows lie side by side. Codes and images are not staged, but read where they lie.
 */
#ifndef GPUVM_CUDA_TEXT_CUH
#define GPUVM_CUDA_TEXT_CUH

#include "scalars.cuh"
#include "vm/text_part.h"

namespace gpuvm {
namespace cuda {

/* Place of a row's image among the column's. */
GPUVM_D uint32_t
image_place(const StageColumn &codes, uint32_t row)
{
	switch (codes.width)
	{
		case 0: return 0;
		case 1: return global_memory(reinterpret_cast<const uint8_t *>(codes.next_data))[row];
		case 2: return global_memory(reinterpret_cast<const uint16_t *>(codes.next_data))[row];
		default: return global_memory(reinterpret_cast<const uint32_t *>(codes.next_data))[row];
	}
}

/* Out of line for the same reason as execute_rare(). */
template <int R>
__device__ __noinline__ void
execute_text_match(uint32_t pc, uint32_t region, uint32_t staged_lane, uint32_t live)
{
	OpView		op(pc);
	Machine<R>	m = {region, threadIdx.x % 32, staged_lane, live};
	const RegionHeader *header = region_header(m);
	const StageColumn codes = *stage_column(m, op.column()), images = *stage_column(m, op.count());
	const unsigned char *bytes = global_memory(reinterpret_cast<const unsigned char *>(images.next_data));
	const TextPattern *pattern = global_memory(reinterpret_cast<const TextPattern *>(header->args->patterns[op.imm_a()]));
	const uint32_t tile_row = header->first_row + staged_lane / 32 * (32 * R);
	uint32_t	truths = 0, nulls = 0;

#pragma unroll 1
	for (uint32_t i = 0; i < R; i++)
	{
		const uint32_t row = i * 32 + m.lane, table_row = tile_row + row;
		bool		null = pattern->kind == TextMatchKind::Null, matches = false;

		if (__shfl_sync(~0u, live, row / R) >> row % R & 1)
		{
			TextValue	value;

			null |= codes.next_nulls != 0 && global_memory(reinterpret_cast<const uint8_t *>(codes.next_nulls))[table_row / 8] >> table_row % 8 & 1;
			if (!null)
			{
				const uint64_t place = image_place(codes, table_row), nbytes = static_cast<uint64_t>(images.base);

				matches = place < nbytes && text_value(bytes + place, nbytes - place, pattern->attlen, &value) &&
					text_matches(pattern, value.bytes, value.len);
			}
		}

		const uint32_t true_rows = __ballot_sync(~0u, matches), null_rows = __ballot_sync(~0u, null);

		if (i == m.lane * R / 32)
		{
			truths = true_rows >> m.lane * R % 32 & all_rows<R>;
			nulls = null_rows >> m.lane * R % 32 & all_rows<R>;
		}
	}
	mask_write(m, op.dst(), truths);
	mask_write(m, op.dst_null(), nulls);
}

/* Of its own rows: what is packed lies at a value's begin mostly. */
template <int R>
GPUVM_D void
execute_text_part(Machine<R> &m, const OpView &op)
{
	const RegionHeader *header = region_header(m);
	const StageColumn codes = *stage_column(m, op.column()), images = *stage_column(m, op.count());
	const unsigned char *bytes = global_memory(reinterpret_cast<const unsigned char *>(images.next_data));
	const TextPart part = text_part_of(op.imm_a());
	const uint32_t first = header->first_row + m.staged_lane * R;
	const uint64_t nbytes = static_cast<uint64_t>(images.base);
	int64_t    *to = reinterpret_cast<int64_t *>(place_of<int64_t>(m, op.dst()));
	uint32_t	nulls = 0, errors = 0;

#pragma unroll 1
	for (uint32_t i = 0; i < R; i++)
	{
		const uint32_t row = first + i;
		TextValue	value;

		if (!(m.live >> i & 1))
			continue;
		if (codes.next_nulls != 0 && global_memory(reinterpret_cast<const uint8_t *>(codes.next_nulls))[row / 8] >> row % 8 & 1)
		{
			nulls |= 1u << i;
			continue;
		}

		const uint64_t place = image_place(codes, row);

		to[i] = place < nbytes && text_value(bytes + place, nbytes - place, -1, &value) ? text_part(part, value.bytes, value.len, &errors) : 0;
	}
	mask_write(m, op.dst_null(), nulls);
	raise(m, errors);
}

}  // namespace cuda
}  // namespace gpuvm

#endif
