/*
 * arithmetic.cuh: elementwise operations on a tile: operands, null masks, checks.
 *
 * A mask of a null never has its value bit set (value & null = 0): so everywhere.
 */
#ifndef GPUVM_CUDA_ARITHMETIC_CUH
#define GPUVM_CUDA_ARITHMETIC_CUH

#include "scalars.cuh"

namespace gpuvm {
namespace cuda {

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
template <Opcode O, Type T, typename A, typename B>
GPUVM_D uint32_t
exact_errors(const A &a, const B &b, uint32_t x, uint32_t active, int first, int end)
{
	uint32_t	err = 0;

#pragma unroll 1
	for (int j = first; j < end; j++)
		if (active >> j & 1)
			apply2<O, T>(a.get_one(j, x), b.get_one(j, x), &err);
	return err;
}

template <Opcode O, Type T, bool CHECKED, bool CODED, typename B, int R>
GPUVM_D void
binary_loop(Machine<R> &m, const OpView &op)
{
	using V = reg_t<T>;
	constexpr int G = CODED ? 1 : group_of<V, R>;
	constexpr bool same_width = sizeof(B) == sizeof(V);
	auto		a = source_a<CODED, V>(m, op);
	auto		b = source_b<CODED, B>(m, op);
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

template <Opcode O, Type T, bool CODED = false, int R>
GPUVM_D void
op_binary(Machine<R> &m, const OpView &op)
{
	using B = std::conditional_t<form_of(O) == OpForm::SHIFT, int32_t, reg_t<T>>;

	if (op.dst_null() != OPERAND_NONE)
		mask_write(m, op.dst_null(), either_null(m, op));
	if (errors_of(O) != 0 && (op.flags() & DOP_CHECKED))
		binary_loop<O, T, errors_of(O) != 0, CODED, B>(m, op);
	else
		binary_loop<O, T, false, CODED, B>(m, op);
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

}  // namespace cuda
}  // namespace gpuvm

#endif
