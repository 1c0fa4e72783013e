/*
 * columns.cuh: staged columns: values widened into registers, and comparisons
 * with constants made on the codes as the tablet stores them.
 */
#ifndef GPUVM_CUDA_COLUMNS_CUH
#define GPUVM_CUDA_COLUMNS_CUH

#include "scalars.cuh"

namespace gpuvm {
namespace cuda {

template <int W, typename V, int R>
GPUVM_D void
widen(Machine<R> &m, const OpView &op, int64_t base, bool is_signed)
{
	char	   *to = place_of<V>(m, op.dst());

	if constexpr (W < 4)
	{
		Codes<R, W> codes(m, op.a());
		uint32_t	flip = is_signed ? 1u << (W * 8 - 1) : 0;

#pragma unroll
		for (int k = 0; k < R / 4; k++)
		{
			V			r[4];

#pragma unroll
			for (int i = 0; i < 4; i++)
				r[i] = static_cast<V>(base) + static_cast<V>(static_cast<int32_t>((codes.get(4 * k + i) ^ flip) - flip));
			store4(to, k, 0, r);
		}
	}
	else
	{
		using S = std::conditional_t<W == 4, uint32_t, uint64_t>;
		const char *from = staged_place_of<S>(m, op.a());

#pragma unroll 1
		for (int k = 0; k < R / 4; k++)
		{
			S			x[4];
			V			r[4];

			load4(from, k, 0, x);
#pragma unroll
			for (int i = 0; i < 4; i++)
				r[i] = static_cast<V>(static_cast<std::make_unsigned_t<V>>(base) + x[i]);
			store4(to, k, 0, r);
		}
	}
}

template <typename V, int R>
GPUVM_D void
fill(Machine<R> &m, const OpView &op, V v)
{
	char	   *to = place_of<V>(m, op.dst());
	V			r[4] = {v, v, v, v};

#pragma unroll 1
	for (int k = 0; k < R / 4; k++)
		store4(to, k, 0, r);
}

/* A column that some tablet does not store as registers hold it. */
template <Type T, int R>
GPUVM_D void
op_column(Machine<R> &m, const OpView &op)
{
	const StageColumn *col = stage_column(m, op.column());
	int64_t		base = col->base;
	uint32_t	width = col->width;

	if constexpr (T == Type::Bool)
	{
		uint32_t	bits = 0;

		if (width == 0)
			bits = base ? all_rows<R> : 0;
		else
		{
			Codes<R, 1> codes(m, op.a());

#pragma unroll
			for (int i = 0; i < R; i++)
				bits |= (codes.get(i) & 1) << i;	/* what lies under a null may be anything */
		}
		mask_write(m, op.dst(), bits & ~mask_read(m, op.a_null()));
	}
	else if constexpr (type_is_float(T))
	{
		using S = std::conditional_t<T == Type::F32, int32_t, int64_t>;

		if (width != 0)
			widen<sizeof(S), S>(m, op, 0, false);
		else
			fill(m, op, static_cast<S>(base));
	}
	else
	{
		using V = reg_t<T>;

		if (width == 1)
			widen<1, V>(m, op, base, false);
		else if (width == 2)
			widen<2, V>(m, op, base, T == Type::I16);
		else if (width == 4)
			widen<4, V>(m, op, base, false);
		else if (width == 0)
			fill(m, op, static_cast<V>(base));
		else if constexpr (sizeof(V) == 8)
			widen<8, V>(m, op, 0, false);
		else
			__builtin_unreachable();
	}
}

/*
 * Rows of a staged column of 1-byte codes from lo to before end. Four codes are
 * compared where they lie in their word: with their top bits set no difference
 * borrows from the next, and the top bits then decide. A dot product with powers
 * of two gathers them.
 */
template <int R>
GPUVM_D uint32_t
bytes_in_range(const Machine<R> &m, uint32_t operand, uint32_t lo, uint32_t end, uint32_t end_low)
{
	constexpr uint32_t top = 0x80808080u;
	Codes<R, 1> codes(m, operand);
	uint32_t	lo_low = lo & ~top, bits = 0;

#pragma unroll
	for (int i = 0; i < codes.WORDS; i += 2)
	{
		uint32_t	gathered = 0;	/* eight rows: bits 7 to 14 */

#pragma unroll
		for (int j = i; j < i + 2 && j < codes.WORDS; j++)
		{
			uint32_t	w = codes.word[j];
			uint32_t	from_lo = (w | top) - lo_low, from_end = (w | top) - end_low;
			uint32_t	not_below = (w & ~lo) | (~(w ^ lo) & from_lo);
			uint32_t	not_before_end = (w & ~end) | (~(w ^ end) & from_end);

			gathered = __dp4a(not_below & ~not_before_end & top, j == i ? 0x08040201u : 0x80402010u, gathered);
		}
		bits |= gathered >> 7 << (i * 4);
	}
	return bits;
}

/* The same of 2-byte codes, compared in the top half of a word. */
template <int R>
GPUVM_D uint32_t
halves_in_range(const Machine<R> &m, uint32_t operand, uint32_t lo, uint32_t span)
{
	Codes<R, 2> codes(m, operand);
	uint32_t	bits = 0;

#pragma unroll
	for (int i = 0; i < R; i++)
		if (codes.top(i) - lo <= span)
			bits |= 1u << i;
	return bits;
}

/* Rows of a staged column of 4 or 8-byte codes from lo to lo + span. */
template <typename S, int R>
GPUVM_D uint32_t
codes_in_range(const Machine<R> &m, uint32_t operand, S lo, S span)
{
	constexpr int G = group_of<S, R>;
	const char *from = staged_place_of<S>(m, operand);
	Order<S, R> order(m);
	uint32_t	bits = 0;

#pragma unroll 1
	for (int k = 0; k < R / 4; k += G)
	{
		uint32_t	some = 0;

#pragma unroll
		for (int g = 0; g < G; g++)
		{
			S			x[4];

			load4(from, k + g, order.x, x);
#pragma unroll
			for (int i = 0; i < 4; i++)
				if (x[i] - lo <= span)
					some |= 1u << (4 * g + i);
		}
		bits |= some << (4 * k);
	}
	return order.turn(bits);
}

/* Rows of a staged float column within [imm_a, imm_b]: none if imm_a > imm_b. */
template <typename V, int R>
GPUVM_D uint32_t
floats_in_range(const Machine<R> &m, const OpView &op)
{
	const StageColumn *col = stage_column(m, op.column());
	V			lo = from_imm<V>(op.imm_a()), hi = from_imm<V>(op.imm_b());
	uint32_t	bits = 0;

	if (col->width == 0)
	{
		V			v = from_imm<V>(col->base);

		return v >= lo && v <= hi ? all_rows<R> : 0;
	}

	constexpr int G = group_of<V, R>;
	const char *from = staged_place_of<V>(m, op.a());
	Order<V, R> order(m);

#pragma unroll 1
	for (int k = 0; k < R / 4; k += G)
	{
		uint32_t	some = 0;

#pragma unroll
		for (int g = 0; g < G; g++)
		{
			V			x[4];

			load4(from, k + g, order.x, x);
#pragma unroll
			for (int i = 0; i < 4; i++)
				if (x[i] >= lo && x[i] <= hi)
					some |= 1u << (4 * g + i);
		}
		bits |= some << (4 * k);
	}
	return order.turn(bits);
}

/* Made once a unit: see FilterRange. Lowering made sure that imm_a <= imm_b. */
GPUVM_D FilterRange
filter_range(const DeviceOp &op, int64_t base, uint32_t width)
{
	uint64_t	first = static_cast<uint64_t>(op.imm_a), last = static_cast<uint64_t>(op.imm_b);
	FilterRange r = {width, 0, 0, 0, 0, 0};

	/* Values of natural width are their own codes. */
	if (width != op.aux)
	{
		uint64_t	max_code = width == 0 ? 0 : (1ull << (width * 8)) - 1;

		first = op.imm_a <= base ? 0 : first - static_cast<uint64_t>(base);
		last = min(last - static_cast<uint64_t>(base), max_code);
		if (op.imm_b < base || first > max_code)
			r.width = FilterRange::NO_ROW;
	}

	if (width == 1)
	{
		constexpr uint32_t repeat = 0x01010101, top = 0x80808080;

		r.lo = static_cast<uint32_t>(first) * repeat;
		r.end = last == 255 ? ~0u : static_cast<uint32_t>(last + 1) * repeat;
		r.end_low = last == 255 ? top : r.end & ~top;
	}
	else
	{
		uint32_t	shift = width == 2 ? 16 : 0;

		r.lo = static_cast<uint32_t>(first) << shift;
		r.end = static_cast<uint32_t>(last - first) << shift | ((1u << shift) - 1);
	}
	r.wide_lo = first;
	r.wide_span = last - first;
	return r;
}

/* Rows of a staged integer column within its FilterRange. WIDE: an I64 column. */
template <bool WIDE, int R>
GPUVM_D uint32_t
ints_in_range(const Machine<R> &m, const OpView &op)
{
	const char *at = shared_memory + m.region + op.b();
	uint4		range = *reinterpret_cast<const uint4 *>(at);

	if (range.x == 4)
		return codes_in_range<uint32_t>(m, op.a(), range.y, range.z);
	if (range.x == 1)
		return bytes_in_range(m, op.a(), range.y, range.z, range.w);
	if (range.x == 2)
		return halves_in_range(m, op.a(), range.y, range.z);
	if constexpr (WIDE)
		if (range.x == 8)
		{
			ulonglong2	wide = *reinterpret_cast<const ulonglong2 *>(at + 16);

			return codes_in_range<uint64_t>(m, op.a(), wide.x, wide.y);
		}
	return range.x == FilterRange::ALL_ROWS ? all_rows<R> : 0;
}

}  // namespace cuda
}  // namespace gpuvm

#endif
