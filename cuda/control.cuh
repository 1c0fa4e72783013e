/*
 * control.cuh: comparisons, lanes that leave, truth values, and values chosen lane
 * by lane.
 */
#ifndef GPUVM_CUDA_CONTROL_CUH
#define GPUVM_CUDA_CONTROL_CUH

#include "scalars.cuh"

namespace gpuvm {
namespace cuda {

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

template <Opcode O, Type T, bool CODED = false, int R>
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
		auto		a = source_a<CODED, V>(m, op);
		auto		b = source_b<CODED, V>(m, op);
		Order<V, R> order(m);
		uint32_t	bits = 0;
		constexpr int G = CODED ? 1 : group_of<V, R>;

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
op_in(Machine<R> &m, const OpView &op)
{
	using V = reg_t<T>;
	Operand<V, R> a = operand_a<V>(m, op);
	uint32_t	nulls = mask_read(m, op.a_null()), bits = 0;
	const char *lists = op.flags() & DOP_LONG_LIST ? reinterpret_cast<const char *>(region_header(m)->args->long_aux) : shared_memory;
	const int64_t *values = reinterpret_cast<const int64_t *>(lists + op.imm_b());
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
	{
		using V = std::conditional_t<sizeof(reg_t<T>) == 4, uint32_t, uint64_t>;
		Operand<V, R> a = operand_a<V>(m, op);
		char	   *to = place_of<V>(m, op.dst());

#pragma unroll 1
		for (int k = 0; k < R / 4; k++)
		{
			V			x[4];

			a.get(k, 0, x);
			store4(to, k, 0, x);
		}
	}
}

}  // namespace cuda
}  // namespace gpuvm

#endif
