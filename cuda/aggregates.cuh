/*
 * aggregates.cuh: AggStep without keys: every lane has its own accumulator.
 */
#ifndef GPUVM_CUDA_AGGREGATES_CUH
#define GPUVM_CUDA_AGGREGATES_CUH

#include "arithmetic.cuh"
#include "vm/float_sum.h"

namespace gpuvm {
namespace cuda {

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
	uint32_t	special = 0, not_neg_zero = 0;
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
			/* -0 is what changes no sum, not even one of -0 alone. */
			double		v = taken >> (4 * k + i) & 1 ? static_cast<double>(x[i]) : -0.0;
			uint64_t	bits = double_bits(v);

			not_neg_zero |= (static_cast<uint32_t>(bits >> 32) ^ 0x80000000) | static_cast<uint32_t>(bits);
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
	special |= not_neg_zero ? static_cast<uint32_t>(SUM_NOT_NEG_ZERO) : 0;
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

/* lo: bits that some row set or, of BitAnd, cleared; of BitXor those that an odd number of rows turned. */
template <Type T, int R>
GPUVM_D void
op_agg_bits(Machine<R> &m, const OpView &op, uint32_t active)
{
	using V = reg_t<T>;
	Operand<V, R> a = operand_a<V>(m, op);
	Accumulator<R> acc(m, op.column());
	const AggFn fn = static_cast<AggFn>(op.aux());
	V			bits = 0;

#pragma unroll 1
	for (int k = 0; k < R / 4; k++)
	{
		V			x[4];

		a.get(k, 0, x);
#pragma unroll
		for (int i = 0; i < 4; i++)
		{
			const V		v = active >> (4 * k + i) & 1 ? fn == AggFn::BitAnd ? ~x[i] : x[i] : 0;

			bits = fn == AggFn::BitXor ? bits ^ v : bits | v;
		}
	}
	if (fn == AggFn::BitXor)
		*acc.lo ^= static_cast<uint64_t>(static_cast<int64_t>(bits));
	else
		*acc.lo |= static_cast<uint64_t>(static_cast<int64_t>(bits));
	if (active)
		*acc.word |= SUM_SEEN;
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
		if constexpr (!type_is_float(T))
			if (agg_is_bits(fn))
			{
				op_agg_bits<T>(m, op, active);
				return;
			}
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
template <Type T, bool CHECKED, bool CODED, int R>
GPUVM_D void
mulsum_loop(Machine<R> &m, const OpView &op, uint32_t active)
{
	using V = reg_t<T>;
	auto		a = source_a<CODED, V>(m, op);
	auto		b = source_b<CODED, V>(m, op);
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

template <Type T, bool CODED = false, int R>
GPUVM_D void
op_mulsum(Machine<R> &m, const OpView &op)
{
	uint32_t	checked_on = m.live & ~either_null(m, op);

	/* A filtered aggregate has no fused form: the product's errors count on rows that the filter drops. */
	if (op.flags() & DOP_CHECKED)
		mulsum_loop<T, true, CODED>(m, op, checked_on);
	else
		mulsum_loop<T, false, CODED>(m, op, checked_on);
}

}  // namespace cuda
}  // namespace gpuvm

#endif
