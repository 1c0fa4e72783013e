/*
 * operations.cuh: what each opcode does to a tile. Scalar rules come from
 * vm/semantics.h; here are only operands, masks and the fused forms.
 *
 * A mask of a null never has its value bit set (value & null = 0).
 */
#ifndef GPUVM_CUDA_OPERATIONS_CUH
#define GPUVM_CUDA_OPERATIONS_CUH

#include "machine.cuh"

namespace gpuvm {
namespace cuda {

using sem::reg_t;

/* -- the opcode table at compile time ------------------------------------------- */

GPUVM_HD constexpr OpForm
form_of(Opcode o)
{
	constexpr OpForm forms[] = {
#define GPUVM_OPCODE(name, form, types, errors, synopsis) OpForm::form,
#include "vm/opcodes.def"
#undef GPUVM_OPCODE
	};
	return forms[static_cast<int>(o)];
}

GPUVM_HD constexpr uint32_t
errors_of(Opcode o)
{
	constexpr uint32_t errors[] = {
#define GPUVM_OPCODE(name, form, types, errors, synopsis) errors,
#include "vm/opcodes.def"
#undef GPUVM_OPCODE
	};
	return errors[static_cast<int>(o)];
}

GPUVM_HD constexpr bool
accepts(const char *types, Type t)
{
	char		letter = t == Type::Bool ? 'B' : t == Type::I16 ? 'S' : t == Type::I32 ? 'I' : t == Type::I64 ? 'L'
		: t == Type::F32 ? 'F' : t == Type::F64 ? 'D' : t == Type::RowId ? 'R' : '-';

	for (; *types; types++)
		if (*types == letter)
			return true;
	return false;
}

/* The scalar function of an elementwise opcode. */
template <Opcode O, Type T, typename A>
GPUVM_D auto
apply1(A a, uint32_t *err)
{
	if constexpr (O == Opcode::DateToTimestamp) return sem::DateToTimestamp(a, err);
	else if constexpr (O == Opcode::DateToTimestampSat) return sem::DateToTimestampSat(a, err);
	else if constexpr (O == Opcode::TimestampToDate) return sem::TimestampToDate(a, err);
	else if constexpr (O == Opcode::Neg) return sem::Neg<T>(a, err);
	else if constexpr (O == Opcode::Abs) return sem::Abs<T>(a, err);
	else
	{
		static_assert(O == Opcode::BitNot, "a UNARY opcode has a function in semantics.h");
		return sem::BitNot<T>(a, err);
	}
}

template <Opcode O, Type T, typename A, typename B>
GPUVM_D auto
apply2(A a, B b, uint32_t *err)
{
	if constexpr (O == Opcode::Add) return sem::Add<T>(a, b, err);
	else if constexpr (O == Opcode::Sub) return sem::Sub<T>(a, b, err);
	else if constexpr (O == Opcode::Mul) return sem::Mul<T>(a, b, err);
	else if constexpr (O == Opcode::Div) return sem::Div<T>(a, b, err);
	else if constexpr (O == Opcode::Remainder) return sem::Remainder<T>(a, b, err);
	else if constexpr (O == Opcode::BitAnd) return sem::BitAnd<T>(a, b, err);
	else if constexpr (O == Opcode::BitOr) return sem::BitOr<T>(a, b, err);
	else if constexpr (O == Opcode::BitXor) return sem::BitXor<T>(a, b, err);
	else if constexpr (O == Opcode::ShiftLeft) return sem::ShiftLeft<T>(a, b, err);
	else if constexpr (O == Opcode::ShiftRight) return sem::ShiftRight<T>(a, b, err);
	else if constexpr (O == Opcode::DateAdd) return sem::DateAdd<T>(a, b, err);
	else if constexpr (O == Opcode::DateSub) return sem::DateSub<T>(a, b, err);
	else
	{
		static_assert(O == Opcode::DateDiff, "a BINARY or SHIFT opcode has a function in semantics.h");
		return sem::DateDiff<T>(a, b, err);
	}
}

template <Opcode O, Type T, typename V>
GPUVM_D bool
compare(V a, V b)
{
	if constexpr (O == Opcode::Eq) return sem::Eq<T>(a, b);
	else if constexpr (O == Opcode::Ne) return sem::Ne<T>(a, b);
	else if constexpr (O == Opcode::Lt) return sem::Lt<T>(a, b);
	else if constexpr (O == Opcode::Le) return sem::Le<T>(a, b);
	else if constexpr (O == Opcode::Gt) return sem::Gt<T>(a, b);
	else
	{
		static_assert(O == Opcode::Ge, "a COMPARE opcode has a function in semantics.h");
		return sem::Ge<T>(a, b);
	}
}

/*
 * The same for a row whose errors are looked for only if `doubt` says so after
 * some rows: it may raise doubt without cause, never miss an error. Integer
 * sums and 64-bit products raise it in the sign bit, the others in any bit.
 */
template <Opcode O, Type T, typename A, typename B>
GPUVM_D auto
apply2_in_doubt(A a, B b, uint32_t *doubt)
{
	constexpr bool add = O == Opcode::Add, sub = O == Opcode::Sub;

	if constexpr ((add || sub) && (T == Type::I32 || T == Type::I64))
	{
		uint32_t	ignored = 0;
		A			r = apply2<O, T>(a, b, &ignored);
		A			over = (add ? a ^ r : a ^ b) & (add ? b ^ r : a ^ r);

		*doubt |= static_cast<uint32_t>(static_cast<std::make_unsigned_t<A>>(over) >> (sizeof(A) * 8 - 32));
		return r;
	}
	else if constexpr (O == Opcode::Mul && T == Type::I64)
	{
		/* Two conversions and the product round by less than 2^-22: 2^63 times (1 - 2^-20) is safely below an overflow. */
		float		size = fabsf(static_cast<float>(a)) * fabsf(static_cast<float>(b));

		*doubt |= static_cast<uint32_t>(__float_as_int(0x1.ffffep62f) - __float_as_int(size));
		return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
	}
	else
		return apply2<O, T>(a, b, doubt);
}

template <Opcode O, Type T>
GPUVM_D bool
doubtful(uint32_t doubt)
{
	constexpr bool by_sign = ((O == Opcode::Add || O == Opcode::Sub) && (T == Type::I32 || T == Type::I64)) ||
		(O == Opcode::Mul && T == Type::I64);

	return by_sign ? static_cast<int32_t>(doubt) < 0 : doubt != 0;
}

/* Rows 4k .. 4k + 3 whose bit of `active` is set keep their errors. */
GPUVM_D uint32_t
live_errors(const uint32_t (&e)[4], uint32_t active, int k)
{
	uint32_t	err = 0;

#pragma unroll
	for (int i = 0; i < 4; i++)
		err |= active >> (4 * k + i) & 1 ? e[i] : 0;
	return err;
}

/* Vectors of four rows whose loads are issued together: hides shared memory's latency without spilling. */
template <typename V, int R> constexpr int group_of = sizeof(V) == 4 && R == 8 ? 2 : 1;

/* -- elementwise arithmetic ------------------------------------------------------ */

template <Opcode O, Type T, bool CHECKED, typename A, typename D, int R>
GPUVM_D void
unary_loop(Machine<R> &m, const OpView &op, uint32_t nulls)
{
	Operand<A, R> a = operand_a<A>(m, op);
	char	   *to = place_of<D>(m, op.dst());
	uint32_t	active = m.live & ~nulls;

#pragma unroll 1
	for (int k = 0; k < R / 4; k++)
	{
		A			x[4];
		D			r[4];
		uint32_t	e[4] = {0, 0, 0, 0};

		a.get(k, 0, x);
#pragma unroll
		for (int i = 0; i < 4; i++)
			r[i] = apply1<O, T>(x[i], &e[i]);
		store4(to, k, 0, r);
		if constexpr (CHECKED)
			raise(m, live_errors(e, active, k));
	}
}

/* The null mask of a strict operation with two operands. */
template <int R>
GPUVM_D uint32_t
either_null(const Machine<R> &m, const OpView &op)
{
	return mask_read(m, op.a_null()) | mask_read(m, op.b_null());
}

/*
 * What visits [first, end) of the lane raise, where `active` (by visit) is set.
 * Reads the operands again, one at a time: few registers for a rare path.
 */
template <Opcode O, Type T, typename V, typename B, int R>
GPUVM_D uint32_t
exact_errors(const Operand<V, R> &a, const Operand<B, R> &b, uint32_t x, uint32_t active, int first, int end)
{
	uint32_t	err = 0;

#pragma unroll 1
	for (int j = first; j < end; j++)
		if (active >> j & 1)
			apply2<O, T>(a.get_one(j, x), b.get_one(j, x), &err);
	return err;
}

template <Opcode O, Type T, bool CHECKED, typename B, int R>
GPUVM_D void
binary_loop(Machine<R> &m, const OpView &op)
{
	using V = reg_t<T>;
	constexpr int G = group_of<V, R>;
	constexpr bool same_width = sizeof(B) == sizeof(V);
	Operand<V, R> a = operand_a<V>(m, op);
	Operand<B, R> b = operand_b<B>(m, op);
	char	   *to = place_of<V>(m, op.dst());
	Order<V, R> order(m);
	uint32_t	order_x = same_width ? order.x : 0;

#pragma unroll 1
	for (int k = 0; k < R / 4; k += G)
	{
		V			x[G][4];
		B			y[G][4];
		uint32_t	doubt = 0;

#pragma unroll
		for (int g = 0; g < G; g++)
		{
			a.get(k + g, order_x, x[g]);
			b.get(k + g, order_x, y[g]);
		}
#pragma unroll
		for (int g = 0; g < G; g++)
#pragma unroll
			for (int i = 0; i < 4; i++)
				x[g][i] = CHECKED ? apply2_in_doubt<O, T>(x[g][i], y[g][i], &doubt) : apply2<O, T>(x[g][i], y[g][i], &doubt);
		/* Before the result may take an operand's place. */
		if constexpr (CHECKED)
			if (doubtful<O, T>(doubt))
			{
				uint32_t	active = m.live & ~either_null(m, op);

				raise(m, exact_errors<O, T>(a, b, order_x, same_width ? order.turn(active) : active, 4 * k, 4 * (k + G)));
			}
#pragma unroll
		for (int g = 0; g < G; g++)
			store4(to, k + g, order_x, x[g]);
	}
}

template <Opcode O, Type T, int R>
GPUVM_D void
op_unary(Machine<R> &m, const OpView &op)
{
	using A = std::conditional_t<form_of(O) == OpForm::UNARY_IL, int32_t,
		  std::conditional_t<form_of(O) == OpForm::UNARY_LI, int64_t, reg_t<T>>>;
	uint32_t	nulls = mask_read(m, op.a_null());

	mask_write(m, op.dst_null(), nulls);
	if (errors_of(O) != 0 && (op.flags() & DOP_CHECKED))
		unary_loop<O, T, errors_of(O) != 0, A, reg_t<T>>(m, op, nulls);
	else
		unary_loop<O, T, false, A, reg_t<T>>(m, op, nulls);
}

template <Opcode O, Type T, int R>
GPUVM_D void
op_binary(Machine<R> &m, const OpView &op)
{
	using B = std::conditional_t<form_of(O) == OpForm::SHIFT, int32_t, reg_t<T>>;

	if (op.dst_null() != OPERAND_NONE)
		mask_write(m, op.dst_null(), either_null(m, op));
	if (errors_of(O) != 0 && (op.flags() & DOP_CHECKED))
		binary_loop<O, T, errors_of(O) != 0, B>(m, op);
	else
		binary_loop<O, T, false, B>(m, op);
}

template <Type T, Type From, int R>
GPUVM_D void
cast_loop(Machine<R> &m, const OpView &op, uint32_t nulls)
{
	Operand<reg_t<From>, R> a = operand_a<reg_t<From>>(m, op);
	char	   *to = place_of<reg_t<T>>(m, op.dst());
	uint32_t	active = m.live & ~nulls;

#pragma unroll 1
	for (int k = 0; k < R / 4; k++)
	{
		reg_t<From> x[4];
		reg_t<T>	r[4];
		uint32_t	e[4] = {0, 0, 0, 0};

		a.get(k, 0, x);
#pragma unroll
		for (int i = 0; i < 4; i++)
			r[i] = sem::Cast<T, From>(x[i], &e[i]);
		store4(to, k, 0, r);
		raise(m, live_errors(e, active, k));
	}
}

/* The truth mask of x <> 0, and 0 or 1 from a truth mask. */
template <Type From, int R>
GPUVM_D uint32_t
nonzero_mask(Machine<R> &m, const OpView &op)
{
	Operand<reg_t<From>, R> a = operand_a<reg_t<From>>(m, op);
	uint32_t	bits = 0, ignored = 0;

#pragma unroll 1
	for (int k = 0; k < R / 4; k++)
	{
		reg_t<From> x[4];

		a.get(k, 0, x);
#pragma unroll
		for (int i = 0; i < 4; i++)
			bits |= static_cast<uint32_t>(sem::Cast<Type::Bool, From>(x[i], &ignored)) << (4 * k + i);
	}
	return bits;
}

template <Type T, int R>
GPUVM_D void
op_cast(Machine<R> &m, const OpView &op)
{
	uint32_t	nulls = mask_read(m, op.a_null());

	mask_write(m, op.dst_null(), nulls);
	if constexpr (T == Type::Bool)
	{
		uint32_t	bits;

		switch (static_cast<Type>(op.aux()))
		{
			case Type::Bool: bits = mask_read(m, op.a()); break;
			case Type::I16: bits = nonzero_mask<Type::I16>(m, op); break;
			case Type::I32: bits = nonzero_mask<Type::I32>(m, op); break;
			case Type::I64: bits = nonzero_mask<Type::I64>(m, op); break;
			case Type::F32: bits = nonzero_mask<Type::F32>(m, op); break;
			case Type::F64: bits = nonzero_mask<Type::F64>(m, op); break;
			default: __builtin_unreachable();
		}
		mask_write(m, op.dst(), bits & ~nulls);
	}
	else
	{
		switch (static_cast<Type>(op.aux()))
		{
			case Type::Bool:
			{
				uint32_t	bits = mask_read(m, op.a());
				char	   *to = place_of<reg_t<T>>(m, op.dst());

#pragma unroll 1
				for (int k = 0; k < R / 4; k++)
				{
					reg_t<T>	r[4];

#pragma unroll
					for (int i = 0; i < 4; i++)
						r[i] = static_cast<reg_t<T>>(bits >> (4 * k + i) & 1);
					store4(to, k, 0, r);
				}
				break;
			}
			case Type::I16: cast_loop<T, Type::I16>(m, op, nulls); break;
			case Type::I32: cast_loop<T, Type::I32>(m, op, nulls); break;
			case Type::I64: cast_loop<T, Type::I64>(m, op, nulls); break;
			case Type::F32: cast_loop<T, Type::F32>(m, op, nulls); break;
			case Type::F64: cast_loop<T, Type::F64>(m, op, nulls); break;
			default: __builtin_unreachable();
		}
	}
}

/* -- columns ------------------------------------------------------------------------ */

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
				bits |= codes.get(i) << i;
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

/* -- comparisons and control ---------------------------------------------------------- */

/* The end of every comparison and branch: stores the truth value, or moves lanes; returns whether any is live. */
template <int R>
GPUVM_D bool
branch(Machine<R> &m, const OpView &op, uint32_t bits, uint32_t nulls)
{
	bits &= ~nulls;
	if (op.flags() & DOP_STORES)
	{
		mask_write(m, op.dst(), bits);
		mask_write(m, op.dst_null(), nulls);
		return true;
	}
	if (op.flags() & DOP_JUMP_IF_NULL)
		bits |= nulls;
	bits &= m.live;
	if (op.pending() != OPERAND_NONE)
		mask_write(m, op.pending(), mask_read(m, op.pending()) | bits);
	m.live ^= bits;
	return __any_sync(~0u, m.live != 0);
}

template <Opcode O, Type T, int R>
GPUVM_D uint32_t
compare_mask(Machine<R> &m, const OpView &op)
{
	if constexpr (T == Type::Bool)
	{
		uint32_t	a = mask_read(m, op.a()), b = mask_read(m, op.b());

		if constexpr (O == Opcode::Eq) return ~(a ^ b) & all_rows<R>;
		else if constexpr (O == Opcode::Ne) return a ^ b;
		else if constexpr (O == Opcode::Lt) return ~a & b;
		else if constexpr (O == Opcode::Le) return (~a | b) & all_rows<R>;
		else if constexpr (O == Opcode::Gt) return a & ~b;
		else return (a | ~b) & all_rows<R>;
	}
	else
	{
		using V = reg_t<T>;
		Operand<V, R> a = operand_a<V>(m, op);
		Operand<V, R> b = operand_b<V>(m, op);
		Order<V, R> order(m);
		uint32_t	bits = 0;
		constexpr int G = group_of<V, R>;

#pragma unroll 1
		for (int k = 0; k < R / 4; k += G)
		{
			uint32_t	some = 0;

#pragma unroll
			for (int g = 0; g < G; g++)
			{
				V			x[4], y[4];

				a.get(k + g, order.x, x);
				b.get(k + g, order.x, y);
#pragma unroll
				for (int i = 0; i < 4; i++)
					if (compare<O, T>(x[i], y[i]))
						some |= 1u << (4 * g + i);
			}
			bits |= some << (4 * k);
		}
		return order.turn(bits);
	}
}

/* -- truth values ------------------------------------------------------------------------ */

template <Opcode O, int R>
GPUVM_D void
op_logic(Machine<R> &m, const OpView &op)
{
	uint32_t	a = mask_read(m, op.a()), an = mask_read(m, op.a_null());

	if constexpr (O == Opcode::And || O == Opcode::Or)
	{
		uint32_t	b = mask_read(m, op.b()), bn = mask_read(m, op.b_null());

		if constexpr (O == Opcode::And)
		{
			mask_write(m, op.dst(), a & b);
			mask_write(m, op.dst_null(), (an | bn) & (a | an) & (b | bn));
		}
		else
		{
			mask_write(m, op.dst(), a | b);
			mask_write(m, op.dst_null(), (an | bn) & ~(a | b));
		}
	}
	else if constexpr (O == Opcode::Not)
	{
		mask_write(m, op.dst(), ~(a | an) & all_rows<R>);
		mask_write(m, op.dst_null(), an);
	}
	else if constexpr (O == Opcode::IsTrue)
		mask_write(m, op.dst(), a);
	else
	{
		static_assert(O == Opcode::IsFalse, "a LOGIC opcode is one of these");
		mask_write(m, op.dst(), ~(a | an) & all_rows<R>);
	}
}

template <Type T, int R>
GPUVM_D void
op_distinct(Machine<R> &m, const OpView &op)
{
	uint32_t	an = mask_read(m, op.a_null()), bn = mask_read(m, op.b_null());
	uint32_t	ne = compare_mask<Opcode::Ne, T>(m, op);

	mask_write(m, op.dst(), (an ^ bn) | (ne & ~an & ~bn));
}

template <Type T, int R>
GPUVM_D void
op_in(Machine<R> &m, const OpView &op, const int64_t *values)
{
	using V = reg_t<T>;
	Operand<V, R> a = operand_a<V>(m, op);
	uint32_t	nulls = mask_read(m, op.a_null()), bits = 0;
	int			n = op.count();

#pragma unroll 1
	for (int k = 0; k < R / 4; k++)
	{
		V			x[4];

		a.get(k, 0, x);
#pragma unroll 1
		for (int i = 0; i < 4; i++)
		{
			V			v = i == 0 ? x[0] : i == 1 ? x[1] : i == 2 ? x[2] : x[3];
			int			at = 0;

			for (int step = n; step > 0;)
			{
				int			half = step / 2;

				if (values[at + half] < v)
				{
					at += half + 1;
					step -= half + 1;
				}
				else
					step = half;
			}
			if (at < n && values[at] == v)
				bits |= 1u << (4 * k + i);
		}
	}
	bits &= ~nulls;
	mask_write(m, op.dst(), bits);
	mask_write(m, op.dst_null(), op.aux() & IN_HAS_NULL ? ~bits & all_rows<R> : nulls);
}

/* -- values chosen lane by lane ------------------------------------------------------------- */

/* r = bit of `second` ? b : a */
template <Type T, int R>
GPUVM_D void
blend(Machine<R> &m, const OpView &op, uint32_t second)
{
	if constexpr (T == Type::Bool)
		mask_write(m, op.dst(), (mask_read(m, op.a()) & ~second) | (mask_read(m, op.b()) & second));
	else
	{
		using V = std::conditional_t<sizeof(reg_t<T>) == 4, uint32_t, uint64_t>;
		Operand<V, R> a = operand_a<V>(m, op);
		Operand<V, R> b = operand_b<V>(m, op);
		char	   *to = place_of<V>(m, op.dst());

#pragma unroll 1
		for (int k = 0; k < R / 4; k++)
		{
			V			x[4], y[4];

			a.get(k, 0, x);
			b.get(k, 0, y);
#pragma unroll
			for (int i = 0; i < 4; i++)
				x[i] = second >> (4 * k + i) & 1 ? y[i] : x[i];
			store4(to, k, 0, x);
		}
	}
}

template <Opcode O, Type T, int R>
GPUVM_D void
op_pick(Machine<R> &m, const OpView &op)
{
	uint32_t	an = mask_read(m, op.a_null()), bn = mask_read(m, op.b_null());
	uint32_t	second, nulls;

	if constexpr (O == Opcode::Select)
	{
		second = ~mask_read(m, op.c()) & all_rows<R>;
		nulls = (an & ~second) | (bn & second);
	}
	else if constexpr (O == Opcode::Coalesce)
	{
		second = an;
		nulls = an & bn;
	}
	else if constexpr (O == Opcode::NullIf)
	{
		second = 0;
		nulls = an | (compare_mask<Opcode::Eq, T>(m, op) & ~bn);
	}
	else
	{
		/* ExecEvalMinMax: the later value only if it is better; nulls are ignored. */
		constexpr Opcode better = O == Opcode::Greatest ? Opcode::Lt : Opcode::Gt;

		static_assert(O == Opcode::Greatest || O == Opcode::Least, "a PICK opcode is one of these");
		second = an | (compare_mask<better, T>(m, op) & ~bn);
		nulls = an & bn;
	}
	blend<T>(m, op, second);
	if constexpr (T == Type::Bool)
		mask_write(m, op.dst(), mask_read(m, op.dst()) & ~nulls);
	mask_write(m, op.dst_null(), nulls);
}

/* The value again, for a register that lives elsewhere; nulls with it. */
template <Type T, int R>
GPUVM_D void
op_copy(Machine<R> &m, const OpView &op)
{
	mask_write(m, op.dst_null(), mask_read(m, op.a_null()));
	if constexpr (T == Type::Bool)
		mask_write(m, op.dst(), mask_read(m, op.a()));
	else
		blend<T>(m, op, 0);
}

/* -- aggregates: every lane has its own accumulator ------------------------------------------- */

template <int R>
struct Accumulator
{
	uint32_t   *word;
	uint64_t   *lo;
	int64_t    *hi;

	GPUVM_D Accumulator(const Machine<R> &m, uint32_t slot)
	{
		char	   *at = shared_memory + m.region + slot;

		word = reinterpret_cast<uint32_t *>(at) + m.lane;
		lo = reinterpret_cast<uint64_t *>(at + 128) + m.lane;
		hi = reinterpret_cast<int64_t *>(at + 384) + m.lane;
	}
	GPUVM_D void add(uint32_t active, bool wide, uint64_t sum_lo, int64_t sum_hi)
	{
		uint64_t	before = *lo;

		*lo = before + sum_lo;
		if (wide)
			*hi += sum_hi + (before + sum_lo < before ? 1 : 0);
		if (active)
			*word |= SUM_SEEN;
	}
};

struct Sum128
{
	uint64_t	lo = 0;
	int64_t		hi = 0;

	GPUVM_D void add(int64_t v)
	{
		uint64_t	before = lo;

		lo += static_cast<uint64_t>(v);
		hi += (v >> 63) + (lo < before ? 1 : 0);
	}
};

template <Type T, int R>
GPUVM_D void
sum_ints(Machine<R> &m, const OpView &op, uint32_t active)
{
	using V = reg_t<T>;
	Operand<V, R> a = operand_a<V>(m, op);
	bool		wide = op.flags() & DOP_WIDE;
	Order<V, R> order(m);
	uint32_t	taken = order.turn(active);
	Sum128		sum;

#pragma unroll (sizeof(V) == 4 ? 2 : 1)
	for (int k = 0; k < R / 4; k++)
	{
		V			x[4];

		a.get(k, order.x, x);
#pragma unroll
		for (int i = 0; i < 4; i++)
		{
			V			v = taken >> (4 * k + i) & 1 ? x[i] : 0;

			if (sizeof(V) == 8 && wide)
				sum.add(v);
			else
				sum.lo += static_cast<uint64_t>(static_cast<int64_t>(v));
		}
	}
	if (sizeof(V) == 4)
		sum.hi = static_cast<int64_t>(sum.lo) >> 63;
	Accumulator<R>(m, op.column()).add(active, wide, sum.lo, sum.hi);
}

/* Fixed point in units of 2^agg_scale, chosen by lowering so that every value is a whole number of them. */
template <Type T, int R>
GPUVM_D void
sum_floats(Machine<R> &m, const OpView &op, uint32_t active)
{
	using V = reg_t<T>;
	Operand<V, R> a = operand_a<V>(m, op);
	bool		wide = op.flags() & DOP_WIDE;
	double		scale = from_imm<double>(op.imm_b());
	uint32_t	special = 0;
	Order<V, R> order(m);
	uint32_t	taken = order.turn(active);
	Sum128		sum;

#pragma unroll 1
	for (int k = 0; k < R / 4; k++)
	{
		V			x[4];

		a.get(k, order.x, x);
#pragma unroll
		for (int i = 0; i < 4; i++)
		{
			double		v = taken >> (4 * k + i) & 1 ? static_cast<double>(x[i]) : 0.0;

			if (v - v != 0)
			{
				special |= sem::is_nan(v) ? SUM_NAN : v > 0 ? SUM_POS_INF : SUM_NEG_INF;
				v = 0;
			}
			v *= scale;
			if (wide)
			{
				/* The magnitude splits without rounding; a negative value's two's complement would not. */
				double		magnitude = fabs(v);
				int64_t		high = __double2ll_rd(magnitude * 0x1p-64);
				uint64_t	low = __double2ull_rz(magnitude - static_cast<double>(high) * 0x1p64);

				if (v < 0)
				{
					low = 0 - low;
					high = ~high + (low == 0 ? 1 : 0);
				}
				sum.lo += low;
				sum.hi += high + (sum.lo < low ? 1 : 0);
			}
			else
				sum.lo += static_cast<uint64_t>(__double2ll_rn(v));
		}
	}

	Accumulator<R> acc(m, op.column());

	acc.add(active, wide, sum.lo, sum.hi);
	if (special)
		*acc.word |= special;
}

template <Type T, int R>
GPUVM_D void
min_max(Machine<R> &m, const OpView &op, uint32_t active)
{
	using V = reg_t<T>;
	Operand<V, R> a = operand_a<V>(m, op);
	Accumulator<R> acc(m, op.column());
	uint32_t	word = *acc.word;
	V			best = from_imm<V>(static_cast<int64_t>(*acc.lo));
	bool		is_max = static_cast<AggFn>(op.aux()) == AggFn::Max;

#pragma unroll 1
	for (int k = 0; k < R / 4; k++)
	{
		V			x[4];

		a.get(k, 0, x);
#pragma unroll
		for (int i = 0; i < 4; i++)
			if (active >> (4 * k + i) & 1)
			{
				if (!(word & SUM_SEEN) || (is_max ? sem::Lt<T>(best, x[i]) : sem::Lt<T>(x[i], best)))
					best = x[i];
				word |= SUM_SEEN;
				if constexpr (type_is_float(T))
					if (x[i] == 0)
						word |= 1 / x[i] < 0 ? SUM_NEG_ZERO : SUM_POS_ZERO;
			}
	}

	int64_t		bits = 0;

	if constexpr (type_is_float(T))
		memcpy(&bits, &best, sizeof(best));
	else
		bits = best;
	*acc.lo = static_cast<uint64_t>(bits);
	*acc.word = word;
}

template <Type T, int R>
GPUVM_D void
op_agg(Machine<R> &m, const OpView &op)
{
	AggFn		fn = static_cast<AggFn>(op.aux());
	uint32_t	active = m.live & ~mask_read(m, op.a_null());

	if (op.c() != OPERAND_NONE)
		active &= mask_read(m, op.c());
	if (fn == AggFn::Count || fn == AggFn::CountStar)
	{
		*Accumulator<R>(m, op.column()).word += __popc(active);
		return;
	}
	if constexpr (T == Type::Bool)
	{
		/* lo: whether any row was true (BoolOr, Max) or false (BoolAnd, Min) */
		uint32_t	a = mask_read(m, op.a());
		bool		any = fn == AggFn::BoolOr || fn == AggFn::Max;
		Accumulator<R> acc(m, op.column());

		if (active & (any ? a : ~a))
			*acc.lo = 1;
		if (active)
			*acc.word |= SUM_SEEN;
	}
	else if constexpr (T != Type::None)
	{
		if (fn != AggFn::Sum)
			min_max<T>(m, op, active);
		else if constexpr (type_is_float(T))
			sum_floats<T>(m, op, active);
		else
			sum_ints<T>(m, op, active);
	}
}

/* AggStep Sum without a filter. */
template <Type T, int R>
GPUVM_D void
op_sum(Machine<R> &m, const OpView &op)
{
	uint32_t	active = m.live & ~mask_read(m, op.a_null());

	if constexpr (type_is_float(T))
		sum_floats<T>(m, op, active);
	else
		sum_ints<T>(m, op, active);
}

/* sum(a * b): the product stays in hardware registers. */
template <Type T, bool CHECKED, int R>
GPUVM_D void
mulsum_loop(Machine<R> &m, const OpView &op, uint32_t active)
{
	using V = reg_t<T>;
	Operand<V, R> a = operand_a<V>(m, op);
	Operand<V, R> b = operand_b<V>(m, op);
	bool		wide = op.flags() & DOP_WIDE;
	Order<V, R> order(m);
	uint32_t	taken = order.turn(active);
	Sum128		sum;

	uint32_t	doubt = 0;

#pragma unroll (sizeof(V) == 4 && R <= 8 ? 2 : 1)
	for (int k = 0; k < R / 4; k++)
	{
		V			x[4], y[4];

		a.get(k, order.x, x);
		b.get(k, order.x, y);
#pragma unroll
		for (int i = 0; i < 4; i++)
		{
			V			r = CHECKED ? apply2_in_doubt<Opcode::Mul, T>(x[i], y[i], &doubt) : sem::Mul<T>(x[i], y[i], &doubt);

			r = taken >> (4 * k + i) & 1 ? r : 0;
			if (sizeof(V) == 8 && wide)
				sum.add(r);
			else
				sum.lo += static_cast<uint64_t>(static_cast<int64_t>(r));
		}
	}
	if constexpr (CHECKED)
		if (doubtful<Opcode::Mul, T>(doubt))
			raise(m, exact_errors<Opcode::Mul, T>(a, b, order.x, taken, 0, R));
	if (sizeof(V) == 4)
		sum.hi = static_cast<int64_t>(sum.lo) >> 63;
	Accumulator<R>(m, op.column()).add(active, wide, sum.lo, sum.hi);
}

template <Type T, int R>
GPUVM_D void
op_mulsum(Machine<R> &m, const OpView &op)
{
	uint32_t	checked_on = m.live & ~either_null(m, op);

	/* A filtered aggregate has no fused form: the product's errors count on rows that the filter drops. */
	if (op.flags() & DOP_CHECKED)
		mulsum_loop<T, true>(m, op, checked_on);
	else
		mulsum_loop<T, false>(m, op, checked_on);
}

}  // namespace cuda
}  // namespace gpuvm

#endif
