/*
 * rows.cuh: Result: a tile's live rows go into its segment of the staging area
 * (RowStaging), in order and side by side. A tile without any costs nothing: the
 * counts were 0 before the launch.
 */
#ifndef GPUVM_CUDA_ROWS_CUH
#define GPUVM_CUDA_ROWS_CUH

#include "row_set.h"
#include "scalars.cuh"

namespace gpuvm {
namespace cuda {

/* Segment of the tile at hand. */
template <int R>
GPUVM_D uint32_t
segment_of(const Machine<R> &m)
{
	const RegionHeader *header = region_header(m);

	return (header->slice_row + header->first_row) / (32 * R) + m.staged_lane / 32;
}

/* Places of `n` rows in the row set, behind those that it has. */
GPUVM_D void
take_places(RegionHeader *header, const RowStaging &staging, uint32_t n, uint32_t *begin)
{
	const uint32_t at = atomicAdd(&staging.to->nrows, n);

	*begin = at;
	if (uint64_t{at} + n <= staging.rows)
		return;
	header->emitted = 0;
	staging.to->full = 1;
}

/* Lists the live rows of the tile by number. */
template <int R>
GPUVM_D void
op_list_rows(Machine<R> &m, const OpView &op)
{
	RegionHeader *header = region_header(m);
	uint16_t   *list = reinterpret_cast<uint16_t *>(shared_memory + m.region + op.dst());
	uint32_t	mine = __popc(m.live), end = mine;

	for (int step = 1; step < 32; step *= 2)
	{
		uint32_t	before = __shfl_up_sync(~0u, end, step);

		end += m.lane >= static_cast<uint32_t>(step) ? before : 0;
	}
	list += end - mine;
#pragma unroll 1
	for (uint32_t bits = m.live; bits != 0; bits &= bits - 1)
		*list++ = static_cast<uint16_t>(m.lane * R + __ffs(bits) - 1);
	if (m.lane == 31)
	{
		const RowStaging &staging = header->args->rows;

		header->emitted = end;
		if (staging.to == nullptr)
			staging.counts[segment_of(m)] = end;
		else
			take_places(header, staging, end, &staging.counts[segment_of(m)]);
	}
	__syncwarp();
}

/* Word and shift of the lane's bits in a bitmap over rows of which the tile's first is `first`. */
template <int R>
GPUVM_D uint32_t *
marks_of(const Machine<R> &m, uint32_t *marks, uint64_t first, uint32_t *shift)
{
	const uint64_t row = first + m.staged_lane * R;

	*shift = static_cast<uint32_t>(row % 32);
	return marks + row / 32;
}

/* Number of the first row of the tile's stage among those that Rows of MarkKind counts. */
template <int R>
GPUVM_D uint64_t
row_of_table(const Machine<R> &m, const LaunchArgs &args)
{
	const RegionHeader *header = region_header(m);

	return static_cast<uint64_t>(args.first_pad) * TABLET_PAD_ROWS + (header->slice_row + header->first_row);
}

/* MarkKind::Rows: the lane's rows that are marked so far. Others may mark more. */
template <int R>
GPUVM_D uint32_t
marked_rows(const Machine<R> &m, const LaunchArgs &args)
{
	uint32_t	shift;
	const volatile uint32_t *word = marks_of(m, args.marks, row_of_table(m, args), &shift);

	return *word >> shift & all_rows<R>;
}

template <int R>
GPUVM_D void
mark_rows(const Machine<R> &m, const LaunchArgs &args, uint32_t bits)
{
	uint32_t	shift;
	uint32_t   *word = marks_of(m, args.marks, row_of_table(m, args), &shift);

	if (bits)
		atomicOr(word, bits << shift);
}

/* Result: of a program that marks, or of rows. A grid's pairs lie within the slice. */
template <int R>
GPUVM_D void
op_result(Machine<R> &m, const OpView &op)
{
	const RegionHeader *header = region_header(m);

	if (!(op.flags() & DOP_STORES))
		op_list_rows(m, op);
	else if (header->args->grid.nrows == 0)
		mark_rows(m, *header->args, m.live);
	else
	{
		uint32_t	shift;
		uint32_t   *word = marks_of(m, header->args->marks, uint32_t{header->slice_row + header->first_row}, &shift);

		if (m.live)
			atomicOr(word, m.live << shift);
	}
}

/* Bit of row `row` of the tile in a mask; tile_row: of the tile's first row in the stage. */
template <int R>
GPUVM_D uint32_t
mask_bit(const Machine<R> &m, uint32_t operand, uint32_t row, uint32_t tile_row)
{
	const uint8_t *at = reinterpret_cast<const uint8_t *>(shared_memory + m.region + (operand & 0x7fff));

	if (operand & OPERAND_STAGED)
		row += tile_row;
	else if (R == 4)			/* a slot's masks of 4 bits take a byte each */
		return at[row / 4] >> row % 4 & 1;
	return at[row / 8] >> row % 8 & 1;
}

/* The code at `at` of a column, as a value. */
template <typename V>
GPUVM_D V
decode_code(const StageColumn *col, const char *at, uint32_t natural_width)
{
	int64_t		code = 0;

	switch (col->width)
	{
		case 0: break;
		case 1: code = *reinterpret_cast<const uint8_t *>(at); break;
		case 2: code = *reinterpret_cast<const uint16_t *>(at); break;
		case 4: code = *reinterpret_cast<const uint32_t *>(at); break;
		default: code = *reinterpret_cast<const int64_t *>(at); break;
	}
	/* What fills the register's width needs no sign; int2 does. */
	if (natural_width == 2 && col->width == 2)
		code = static_cast<int16_t>(code);
	return static_cast<V>(static_cast<uint64_t>(code) + static_cast<uint64_t>(col->base));
}

/* The position of a row of the tablet at hand. Rare: so its tablet is looked up here rather than kept. */
template <int R>
GPUVM_D int64_t
position_of(Machine<R> &m, uint32_t table_row)
{
	const RegionHeader *header = region_header(m);
	const LaunchArgs &args = *header->args;
	const DevicePad pad = args.table.pads[args.first_pad + (header->slice_row + header->first_row) / TABLET_PAD_ROWS];

	return row_position(args.table.tablets[pad.tablet].place, table_row);
}

/* Rowid of type I64, where something else than Result reads it. */
template <int R>
GPUVM_D void
op_position(Machine<R> &m, const OpView &op)
{
	const int64_t first = position_of(m, region_header(m)->first_row + m.staged_lane * R);
	int64_t    *to = reinterpret_cast<int64_t *>(place_of<int64_t>(m, op.dst()));

	for (int i = 0; i < R; i++)
		to[i] = first + i;
}

/* Bits from bit `shift` of a word on, which may go on in the next one; others set theirs beside them. */
GPUVM_D void
or_bits(uint32_t *to, uint32_t shift, uint32_t bits)
{
	if (bits << shift != 0)
		atomicOr(to, bits << shift);
	if (shift != 0 && bits >> (32 - shift) != 0)
		atomicOr(to + 1, bits >> (32 - shift));
}

/* Gathers a result column of the listed rows. V: as wide as its type. */
template <typename V, int R>
GPUVM_D void
op_result_column(Machine<R> &m, const OpView &op)
{
	const RegionHeader *header = region_header(m);
	const RowStaging &staging = header->args->rows;
	const uint16_t *list = reinterpret_cast<const uint16_t *>(shared_memory + m.region + op.c());
	uint32_t	n = header->emitted, tile_row = m.staged_lane / 32 * (32 * R);
	uint64_t	first = staging.to != nullptr ? staging.counts[segment_of(m)] : static_cast<uint64_t>(segment_of(m)) * (32 * R);
	V		   *to = reinterpret_cast<V *>(staging.values + op.imm_b() * staging.rows) + first;
	uint32_t   *nulls_to = reinterpret_cast<uint32_t *>(staging.nulls + op.b() * (staging.rows / 8)) + first / 32;
	ResultForm	form = static_cast<ResultForm>(op.aux());
	const StageColumn *col = stage_column(m, op.column());	/* Codes and Late only */

#pragma unroll 1
	for (uint32_t i = m.lane; i < (n + 31) / 32 * 32; i += 32)
	{
		uint32_t	row = i < n ? list[i] : list[0];
		uint64_t	table_row = header->first_row + tile_row + row;
		V			v;

		switch (form)
		{
			case ResultForm::Values: v = *reinterpret_cast<const V *>(shared_memory + m.region + op.a() + row * sizeof(V)); break;
			case ResultForm::Mask: v = static_cast<V>(mask_bit(m, op.a(), row, tile_row)); break;
			case ResultForm::Codes:
				v = decode_code<V>(col, shared_memory + m.region + op.a() + (tile_row + row) * col->width, op.count());
				break;
			case ResultForm::Late:
				v = decode_code<V>(col, reinterpret_cast<const char *>(col->next_data) + table_row * col->width, op.count());
				break;
			case ResultForm::Constant: v = static_cast<V>(op.imm_a()); break;
			case ResultForm::Position: v = static_cast<V>(position_of(m, static_cast<uint32_t>(table_row))); break;
			default: v = static_cast<V>(table_row); break;
		}
		if (i < n)
			to[i] = v;
		if (op.a_null() != OPERAND_NONE)
		{
			bool		null = form != ResultForm::Late ? mask_bit(m, op.a_null(), row, tile_row) != 0
				: col->next_nulls != 0 && reinterpret_cast<const uint8_t *>(col->next_nulls)[table_row / 8] >> table_row % 8 & 1;
			uint32_t	word = __ballot_sync(~0u, i < n && null);

			if (m.lane == 0)
			{
				if (staging.to == nullptr)
					nulls_to[i / 32] = word;
				else if (word != 0)
					or_bits(nulls_to + i / 32, static_cast<uint32_t>(first % 32), word);
			}
		}
	}
	/* The next tile overwrites what other lanes' gathers read. */
	__syncwarp();
}

}  // namespace cuda
}  // namespace gpuvm

#endif
