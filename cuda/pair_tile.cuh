/*
 * pair_tile.cuh: the loop of a grid that does nothing but compare values of the
 * outer row with values of the inner row, and count, add up, mark or list what is left:
 * eight inner rows at a time, in hardware registers.
 *
 * A lane has sixteen rows, in four groups, and for each group a word of pairs: byte i
 * is row i of the group, bit j of it the inner row. Which rows group g is depends on the
 * lane, so that eight lanes do not meet in the same banks (as Order in machine.cuh, but
 * alike for all widths): rows 4 * group_row(m, g) and behind.
 */
#ifndef GPUVM_CUDA_PAIR_TILE_CUH
#define GPUVM_CUDA_PAIR_TILE_CUH

#include "aggregates.cuh"
#include "grid.cuh"

namespace gpuvm {
namespace cuda {

constexpr int PAIR_ROWS = 16;		/* a lane */
constexpr int PAIR_GROUPS = PAIR_ROWS / 4;
constexpr int PAIR_INNER = 8;		/* inner rows at a time */

using PairMachine = Machine<PAIR_ROWS>;

GPUVM_D uint32_t
group_row(const PairMachine &m, int g)
{
	return static_cast<uint32_t>(g) ^ (m.lane >> 1 & 3);
}

/* A group's bits of a mask, spread: byte i is 0 or 1. */
GPUVM_D uint32_t
spread_group(const PairMachine &m, uint32_t mask, int g)
{
	return (mask >> (4 * group_row(m, g)) & 15) * 0x00204081u & 0x01010101u;
}

/* The reverse: bit i is set if byte i is not 0. */
GPUVM_D uint32_t
gather_group(uint32_t pairs)
{
	pairs |= pairs >> 4;
	pairs |= pairs >> 2;
	pairs |= pairs >> 1;
	return (pairs & 0x01010101u) * 0x01020408u >> 24;
}

template <typename V>
GPUVM_D void
load_group(const PairMachine &m, const OpView &op, int g, V (&x)[4])
{
	load4(place_of<V>(m, op.a()) + group_row(m, g) * (4 * sizeof(V)), 0, 0, x);
}

/* Values of the inner rows at hand: `row` is the first, counted from what is in the region. */
template <typename V>
GPUVM_D void
load_inner(const PairMachine &m, const OpView &op, uint32_t row, V (&y)[PAIR_INNER])
{
	const char *from = shared_memory + m.region + op.b() + row * 8;

#pragma unroll
	for (int j = 0; j < PAIR_INNER; j += 2)
	{
		longlong2	two = *reinterpret_cast<const longlong2 *>(from + j * 8);

		y[j] = static_cast<V>(two.x);
		y[j + 1] = static_cast<V>(two.y);
	}
}

/* Their null bits. */
GPUVM_D uint32_t
inner_nulls(const PairMachine &m, const OpView &op, uint32_t row)
{
	return op.b_null() == OPERAND_NONE ? 0
		: *reinterpret_cast<const uint32_t *>(shared_memory + m.region + op.b_null()) >> row & ((1u << PAIR_INNER) - 1);
}

/* Pairs of group g with a null on either side. */
GPUVM_D uint32_t
null_pairs(const PairMachine &m, uint32_t outer_nulls, uint32_t inner, int g)
{
	return spread_group(m, outer_nulls, g) * 0xffu | inner * 0x01010101u;
}

/* An integer that has the place of the value in PostgreSQL's order: of floats, all NaNs are alike and above, -0 is 0. */
template <Type T>
GPUVM_D auto
order_key(sem::reg_t<T> v)
{
	if constexpr (T == Type::F32)
	{
		const int32_t bits = __float_as_int(v + 0.0f);

		return v != v ? INT32_MAX : bits ^ (bits >> 31 & INT32_MAX);
	}
	else if constexpr (T == Type::F64)
	{
		const int64_t bits = static_cast<int64_t>(double_bits(v + 0.0));

		return v != v ? INT64_MAX : bits ^ (bits >> 63 & INT64_MAX);
	}
	else
		return v;
}

/* The bits of an inner value, or of an outer one, as the type's value. */
template <Type T, typename K>
GPUVM_D sem::reg_t<T>
value_of_bits(K bits)
{
	sem::reg_t<T> v;

	static_assert(sizeof(v) == sizeof(bits), "registers are as wide as their bits");
	memcpy(&v, &bits, sizeof(v));
	return v;
}

enum class Comparison
{
	Less,
	Near,						/* Less of integers: the sign of the difference, which fits 32 bits */
	Equal,
};

/* Takes the pairs for which the comparison holds from `live`: they die. */
template <Type T, Comparison C>
GPUVM_D void
compare_pairs(const PairMachine &m, const OpView &op, uint32_t row, uint32_t (&live)[PAIR_GROUPS])
{
	using V = std::conditional_t<sizeof(sem::reg_t<T>) == 4, int32_t, int64_t>;
	using K = std::conditional_t<C == Comparison::Near, int32_t, V>;
	const K		swap = op.flags() & DOP_SWAPPED ? -1 : 0;	/* b < a is ~a < ~b */
	const uint32_t negate = op.flags() & DOP_NEGATED ? ~0u : 0;
	const uint32_t outer_nulls = mask_read(m, op.a_null()), inner = inner_nulls(m, op, row);
	K			y[PAIR_INNER];

	load_inner(m, op, row, y);
#pragma unroll
	for (int j = 0; j < PAIR_INNER; j++)
		y[j] = (C == Comparison::Near ? y[j] : static_cast<K>(order_key<T>(value_of_bits<T>(static_cast<V>(y[j]))))) ^ swap;
#pragma unroll
	for (int g = 0; g < PAIR_GROUPS; g++)
	{
		V			x[4];
		uint32_t	holds = 0;

		load_group(m, op, g, x);
		/* Bits come in from below, the last pair's first: one shift each. */
#pragma unroll
		for (int i = 3; i >= 0; i--)
		{
			const K		key = static_cast<K>(C == Comparison::Near ? x[i] : order_key<T>(value_of_bits<T>(x[i]))) ^ swap;

#pragma unroll
			for (int j = PAIR_INNER - 1; j >= 0; j--)
				if constexpr (C == Comparison::Near)
					holds = holds << 1 | static_cast<uint32_t>(static_cast<uint32_t>(key) - static_cast<uint32_t>(y[j])) >> 31;
				else if (C == Comparison::Equal ? key == y[j] : key < y[j])
					holds |= 1u << (8 * i + j);
		}
		holds ^= negate;
		if (op.a_null() != OPERAND_NONE || op.b_null() != OPERAND_NONE)
		{
			const uint32_t nulls = null_pairs(m, outer_nulls, inner, g);

			holds = op.flags() & DOP_JUMP_IF_NULL ? holds | nulls : holds & ~nulls;
		}
		live[g] &= ~holds;
	}
}

/* Those of the live pairs whose operand is not null. */
GPUVM_D void
active_pairs(const PairMachine &m, const OpView &op, uint32_t row, const uint32_t (&live)[PAIR_GROUPS], uint32_t (&active)[PAIR_GROUPS])
{
	const uint32_t outer_nulls = mask_read(m, op.a_null()), inner = inner_nulls(m, op, row);

#pragma unroll
	for (int g = 0; g < PAIR_GROUPS; g++)
		active[g] = live[g] & ~null_pairs(m, outer_nulls, inner, g);
}

GPUVM_D void
count_pairs(const PairMachine &m, const OpView &op, uint32_t row, const uint32_t (&live)[PAIR_GROUPS])
{
	uint32_t	active[PAIR_GROUPS], n = 0;

	active_pairs(m, op, row, live, active);
#pragma unroll
	for (int g = 0; g < PAIR_GROUPS; g++)
		n += __popc(active[g]);
	*Accumulator<PAIR_ROWS>(m, op.column()).word += n;
}

/* sum += value * n, in 128 bits if they are wanted. */
template <typename V>
GPUVM_D void
add_times(Sum128 &sum, V value, uint32_t n, bool wide)
{
	const int64_t v = value;
	const uint64_t product = static_cast<uint64_t>(v) * n, before = sum.lo;

	sum.lo += product;
	if (sizeof(V) == 8 && wide)
		sum.hi += __mul64hi(v, static_cast<int64_t>(n)) + (sum.lo < before ? 1 : 0);
}

/* Sum of an integer of the outer row (INNER: of the inner row): each value as often as it has pairs. */
template <Type T, bool INNER>
GPUVM_D void
sum_pairs(const PairMachine &m, const OpView &op, uint32_t row, const uint32_t (&live)[PAIR_GROUPS])
{
	using V = sem::reg_t<T>;
	const bool	wide = op.flags() & DOP_WIDE;
	uint32_t	active[PAIR_GROUPS], any = 0;
	Sum128		sum;

	active_pairs(m, op, row, live, active);
#pragma unroll
	for (int g = 0; g < PAIR_GROUPS; g++)
		any |= active[g];
	if constexpr (INNER)
	{
		V			y[PAIR_INNER];

		load_inner(m, op, row, y);
#pragma unroll
		for (int j = 0; j < PAIR_INNER; j++)
		{
			uint32_t	n = 0;

#pragma unroll
			for (int g = 0; g < PAIR_GROUPS; g++)
				n += __popc(active[g] & 0x01010101u << j);
			add_times(sum, y[j], n, wide);
		}
	}
	else
#pragma unroll
		for (int g = 0; g < PAIR_GROUPS; g++)
		{
			V			x[4];

			load_group(m, op, g, x);
#pragma unroll
			for (int i = 0; i < 4; i++)
				add_times(sum, x[i], __popc(active[g] & 0xffu << (8 * i)), wide);
		}
	/* What so many values of 32 bits add up to needs no more than 64. */
	if (sizeof(V) == 4)
		sum.hi = static_cast<int64_t>(sum.lo) >> 63;
	Accumulator<PAIR_ROWS>(m, op.column()).add(any, wide, sum.lo, sum.hi);
}

GPUVM_D void
mark_pairs(const PairMachine &m, const OpView &op, const uint32_t (&live)[PAIR_GROUPS])
{
	uint32_t	bits = 0;

#pragma unroll
	for (int g = 0; g < PAIR_GROUPS; g++)
		bits |= gather_group(live[g]) << (4 * group_row(m, g));
	mask_write(m, op.dst(), mask_read(m, op.dst()) | bits);
}

/* The warp's live pairs, if there is room for all of them. */
GPUVM_D void
list_pairs(const PairMachine &m, const LaunchArgs &args, uint32_t row, const uint32_t (&live)[PAIR_GROUPS])
{
	const PairList &list = args.list;
	const uint32_t outer = static_cast<uint32_t>(row_of_table(m, args)) + m.staged_lane * PAIR_ROWS, inner = args.grid.first_row + row;
	uint32_t	n = 0, at = 0;

#pragma unroll
	for (int g = 0; g < PAIR_GROUPS; g++)
		n += __popc(live[g]);

	uint32_t	end = n;

	for (int step = 1; step < 32; step *= 2)
	{
		const uint32_t before = __shfl_up_sync(~0u, end, step);

		end += m.lane >= static_cast<uint32_t>(step) ? before : 0;
	}

	const uint32_t all = __shfl_sync(~0u, end, 31);

	if (m.lane == 0 && all != 0)
		at = atomicAdd(&list.state->nrows, all);
	at = __shfl_sync(~0u, at, 0);
	if (uint64_t{at} + all > list.room)
	{
		list.state->full = 1;
		return;
	}
	at += end - n;
#pragma unroll
	for (int g = 0; g < PAIR_GROUPS; g++)
#pragma unroll 1
		for (uint32_t bits = live[g]; bits != 0; bits &= bits - 1, at++)
		{
			const uint32_t bit = static_cast<uint32_t>(__ffs(static_cast<int>(bits))) - 1;

			list.outer[at] = outer + 4 * group_row(m, g) + bit / PAIR_INNER;
			list.inner[at] = inner + bit % PAIR_INNER;
		}
}

/* A value of the inner rows alone, for those that are in the region: each lane's row. */
GPUVM_D void
sum_inner(const PairMachine &m, const OpView &op)
{
	char	   *to = shared_memory + m.region + op.dst();
	const char *a = shared_memory + m.region + op.a(), *b = op.b() == OPERAND_NONE ? nullptr : shared_memory + m.region + op.b();

	reinterpret_cast<uint64_t *>(to)[m.lane] = reinterpret_cast<const uint64_t *>(a)[m.lane] * static_cast<uint64_t>(op.imm_a()) +
		(b ? reinterpret_cast<const uint64_t *>(b)[m.lane] : 0);
	if (m.lane == 0)
		*reinterpret_cast<uint32_t *>(to + GRID_BLOCK * 8) = *reinterpret_cast<const uint32_t *>(a + GRID_BLOCK * 8) |
			(b ? *reinterpret_cast<const uint32_t *>(b + GRID_BLOCK * 8) : 0);
}

/* The tile's live rows with each of the unit's inner rows. */
GPUVM_D void
run_pair_loop(const PairMachine &m, const DeviceProgram &p, const LaunchArgs &args)
{
	const uint32_t end = grid_state(m, p)->end;
	uint32_t	begin = p.grid.loop_begin;

#pragma unroll 1
	for (uint32_t row = grid_state(m, p)->first, at = 0; row < end; row += PAIR_INNER, at = (at + PAIR_INNER) % GRID_BLOCK)
	{
		const uint32_t inner = end - row >= PAIR_INNER ? (1u << PAIR_INNER) - 1 : (1u << (end - row)) - 1;
		uint32_t	live[PAIR_GROUPS], rows = m.live;

		if (at == 0)
		{
			__syncwarp();
			load_inner_rows(m, p, args, row);
#pragma unroll 1
			for (begin = p.grid.loop_begin; OpView(begin).code() == CODE_INNER_SUM; begin++)
				sum_inner(m, OpView(begin));
			__syncwarp();
		}
		if (p.mark == MarkKind::Rows)
		{
			rows &= ~mask_read(m, p.grid.marked);
			if (!__any_sync(~0u, rows != 0))
				return;
		}
#pragma unroll
		for (int g = 0; g < PAIR_GROUPS; g++)
			live[g] = spread_group(m, rows, g) * inner;

#pragma unroll 1
		for (uint32_t pc = begin;; pc++)
		{
			OpView		op(pc);
			bool		compares = true;

			switch (op.code())
			{
				case CODE_PAIR_LESS_NEAR_I32: compare_pairs<Type::I32, Comparison::Near>(m, op, at, live); break;
				case CODE_PAIR_LESS_NEAR_I64: compare_pairs<Type::I64, Comparison::Near>(m, op, at, live); break;
				case CODE_PAIR_LESS_I32: compare_pairs<Type::I32, Comparison::Less>(m, op, at, live); break;
				case CODE_PAIR_LESS_I64: compare_pairs<Type::I64, Comparison::Less>(m, op, at, live); break;
				case CODE_PAIR_LESS_F32: compare_pairs<Type::F32, Comparison::Less>(m, op, at, live); break;
				case CODE_PAIR_LESS_F64: compare_pairs<Type::F64, Comparison::Less>(m, op, at, live); break;
				case CODE_PAIR_EQUAL_I32: compare_pairs<Type::I32, Comparison::Equal>(m, op, at, live); break;
				case CODE_PAIR_EQUAL_I64: compare_pairs<Type::I64, Comparison::Equal>(m, op, at, live); break;
				case CODE_PAIR_EQUAL_F32: compare_pairs<Type::F32, Comparison::Equal>(m, op, at, live); break;
				case CODE_PAIR_EQUAL_F64: compare_pairs<Type::F64, Comparison::Equal>(m, op, at, live); break;
				default:
					compares = false;
					switch (op.code())
					{
						case CODE_END: break;
						case CODE_PAIR_COUNT: count_pairs(m, op, at, live); break;
						case CODE_PAIR_SUM_I32: sum_pairs<Type::I32, false>(m, op, at, live); break;
						case CODE_PAIR_SUM_I64: sum_pairs<Type::I64, false>(m, op, at, live); break;
						case CODE_PAIR_SUM_INNER_I32: sum_pairs<Type::I32, true>(m, op, at, live); break;
						case CODE_PAIR_SUM_INNER_I64: sum_pairs<Type::I64, true>(m, op, at, live); break;
						case CODE_MARK:
							if (p.mark == MarkKind::Listed)
								list_pairs(m, args, row, live);
							else
								mark_pairs(m, op, live);
							break;
						default: __builtin_unreachable();
					}
			}
			if (op.code() == CODE_END)
				break;
			if (compares && !__any_sync(~0u, (live[0] | live[1] | live[2] | live[3]) != 0))
				break;
		}
	}
}

}  // namespace cuda
}  // namespace gpuvm

#endif
