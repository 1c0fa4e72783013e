/*
 * groups.cuh: AggStep with keys: updates of cells, in the block's shared table
 * or in the global one, as each row's target says.
 *
 * 64-bit additions to shared memory are two of 32 bits, for the hardware has no
 * other: the low half says by what it returns whether there is a carry. Sums of
 * integers are of value - bias, which is not negative, so that the high half is
 * rarely touched. Maxima and flags are read first: most rows change nothing.
 */
#ifndef GPUVM_CUDA_GROUPS_CUH
#define GPUVM_CUDA_GROUPS_CUH

#include "group_keys.cuh"
#include "vm/float_sum.h"

namespace gpuvm {
namespace cuda {

/* -- updates of a cell -------------------------------------------------------------- */

/* Where the cells are: what every update needs, in registers. */
struct CellBase
{
	char	   *rows;
	uint32_t	row_bytes;
	uint32_t	planes_at;
	uint32_t	plane_bytes;

	GPUVM_D explicit CellBase(const GroupArea *area)
		: rows(area->table.rows), row_bytes(area->table.row_bytes), planes_at(area->planes_at), plane_bytes(area->plane_bytes) {}

	template <typename W>
	GPUVM_D W *global(uint32_t target, CellPlace c) const
	{
		return reinterpret_cast<W *>(global_memory(rows + static_cast<uint64_t>(target) * row_bytes + c.at));
	}
	/* Shifting drops TARGET_SHARED. */
	GPUVM_D uint32_t *word(uint32_t target, uint32_t plane) const
	{
		return shared_at<uint32_t>(planes_at + plane * plane_bytes + (target << 2));
	}
	GPUVM_D unsigned long long *whole(uint32_t target, uint32_t plane) const
	{
		return shared_at<unsigned long long>(planes_at + plane * plane_bytes + (target << 3));
	}
};

GPUVM_D void
shared_add64(const CellBase &base, uint32_t target, uint32_t plane, uint64_t v)
{
	uint32_t	low = static_cast<uint32_t>(v), high = static_cast<uint32_t>(v >> 32);

	high += atomicAdd(base.word(target, plane), low) + low < low ? 1 : 0;
	if (high)
		atomicAdd(base.word(target, plane + 1), high);
}

GPUVM_D void
add32(const CellBase &base, uint32_t target, CellPlace c, uint32_t v)
{
	if (target & TARGET_SHARED)
		atomicAdd(base.word(target, c.plane), v);
	else
		atomicAdd(base.global<uint32_t>(target, c), v);
}

GPUVM_D void
add64(const CellBase &base, uint32_t target, CellPlace c, uint64_t v)
{
	if (target & TARGET_SHARED)
		shared_add64(base, target, c.plane, v);
	else
		atomicAdd(base.global<unsigned long long>(target, c), static_cast<unsigned long long>(v));
}

GPUVM_D void
or32(const CellBase &base, uint32_t target, CellPlace c, uint32_t bits)
{
	uint32_t   *shared = base.word(target, c.plane);
	uint32_t   *global = base.global<uint32_t>(target & ~TARGET_SHARED, c);

	if (target & TARGET_SHARED)
	{
		if ((*static_cast<volatile uint32_t *>(shared) & bits) != bits)
			atomicOr(shared, bits);
	}
	else if ((*global & bits) != bits)
		atomicOr(global, bits);
}

GPUVM_D void
xor32(const CellBase &base, uint32_t target, CellPlace c, uint32_t bits)
{
	if (bits == 0)
		return;
	if (target & TARGET_SHARED)
		atomicXor(base.word(target, c.plane), bits);
	else
		atomicXor(base.global<uint32_t>(target, c), bits);
}

GPUVM_D void
max32(const CellBase &base, uint32_t target, CellPlace c, uint32_t v)
{
	if (target & TARGET_SHARED)
	{
		uint32_t   *at = base.word(target, c.plane);

		if (*static_cast<volatile uint32_t *>(at) < v)
			atomicMax(at, v);
	}
	else
	{
		uint32_t   *at = base.global<uint32_t>(target, c);

		if (*at < v)
			atomicMax(at, v);
	}
}

GPUVM_D void
max64(const CellBase &base, uint32_t target, CellPlace c, unsigned long long v)
{
	if (target & TARGET_SHARED)
	{
		unsigned long long *at = base.whole(target, c.plane);

		if (*static_cast<volatile unsigned long long *>(at) < v)
			atomicMax(at, v);
	}
	else
	{
		unsigned long long *at = base.global<unsigned long long>(target, c);

		if (*at < v)
			atomicMax(at, v);
	}
}

/* Is it a row's own slot? Behind the tagged ones. */
GPUVM_D bool
is_record(uint32_t target)
{
	return target >= (TARGET_SHARED | RECORD_GROUP);
}

/* -- rows of a tile ------------------------------------------------------------------- */

GPUVM_D CellPlace
place_of_cell(uint64_t imm, int i)
{
	return CellPlace{static_cast<uint16_t>(imm >> (32 * i)), static_cast<uint16_t>(imm >> (32 * i + 16))};
}

/* Lanes that the step takes. */
template <int R>
GPUVM_D uint32_t
taken_rows(const Machine<R> &m, const OpView &op)
{
	uint32_t	active = m.live & ~mask_read(m, op.a_null());

	return op.c() != OPERAND_NONE ? active & mask_read(m, op.c()) : active;
}

/* f(target, value) for every row that is taken. */
template <typename V, int R, typename F>
GPUVM_D void
each_row(const Machine<R> &m, const OpView &op, uint32_t taken, F f)
{
	const char *targets = place_of<uint32_t>(m, op.b());
	const char *values = place_of<V>(m, op.a());
	Chunks<R>	chunks(m);

#pragma unroll 1
	for (int k = 0; k < R / 4; k++)
	{
		int			at = chunks.chunk(k);
		uint32_t	bits = taken >> (4 * at);
		uint32_t	t[4];
		V			v[4];

		load4(targets, at, 0, t);
		load4(values, at, 0, v);
#pragma unroll
		for (int i = 0; i < 4; i++)
			if (bits >> i & 1)
				f(t[i], v[i]);
	}
}

/*
 * Are four rows taken that have one target? Then they are one update: tables are
 * often in the keys' order, and atomics to one address wait for each other.
 */
GPUVM_D bool
are_alike(uint32_t bits, const uint32_t (&t)[4])
{
	return (bits & 15) == 15 && t[0] == t[1] && t[1] == t[2] && t[2] == t[3];
}

/* f(target, n) for runs of n rows that are taken. */
template <int R, typename F>
GPUVM_D void
each_target(const Machine<R> &m, const OpView &op, uint32_t taken, F f)
{
	const char *targets = place_of<uint32_t>(m, op.b());
	Chunks<R>	chunks(m);

#pragma unroll 1
	for (int k = 0; k < R / 4; k++)
	{
		int			at = chunks.chunk(k);
		uint32_t	bits = taken >> (4 * at);
		uint32_t	t[4];

		load4(targets, at, 0, t);
		if (are_alike(bits, t))
		{
			f(t[0], 4);
			continue;
		}
#pragma unroll
		for (int i = 0; i < 4; i++)
			if (bits >> i & 1)
				f(t[i], 1);
	}
}

/* -- counts and sums of integers --------------------------------------------------------- */

/* n rows more, to a counter or a mark. */
GPUVM_D void
count_rows(const CellBase &base, CellKind kind, uint32_t target, CellPlace place, uint32_t n)
{
	if (kind == CellKind::Add32)
		add32(base, target, place, n);
	else if (kind == CellKind::Add64)
		add64(base, target, place, n);
	else if (target & TARGET_SHARED)
		*base.word(target, place.plane) = 1;
	else
		*base.global<uint32_t>(target, place) = 1;
}

/*
 * The bits of the rows' groups. They are read first, four at once: additions to one word wait for each other, and in a
 * group with many rows all but the first find it set. A stale line of the L1 cache costs an atomic for nothing.
 */
template <int R>
GPUVM_D void
mark_bits(const Machine<R> &m, const OpView &op, const GroupArea *area, uint32_t taken)
{
	const char *targets = place_of<uint32_t>(m, op.b());
	uint32_t   *words = reinterpret_cast<uint32_t *>(global_memory(area->table.rows));
	Chunks<R>	chunks(m);

#pragma unroll 1
	for (int k = 0; k < R / 4; k++)
	{
		const int	at = chunks.chunk(k);
		const uint32_t bits = taken >> (4 * at) & 15;
		uint32_t	t[4], seen[4];

		load4(targets, at, 0, t);
#pragma unroll
		for (int i = 0; i < 4; i++)
			seen[i] = bits >> i & 1 ? words[t[i] / 32] : ~0u;
#pragma unroll
		for (int i = 0; i < 4; i++)
			if (!(seen[i] >> t[i] % 32 & 1))
				atomicOr(words + t[i] / 32, 1u << t[i] % 32);
	}
}

/* Also the mark that a group is there. */
template <int R>
GPUVM_D void
op_group_count(const Machine<R> &m, const OpView &op, const GroupArea *area)
{
	const CellBase base(area);
	const CellPlace place = place_of_cell(static_cast<uint64_t>(op.imm_b()), 0);
	const CellKind kind = static_cast<CellKind>(op.column());
	const uint32_t taken = taken_rows(m, op);

	/* The keys themselves tell which rows of a hashed table are taken. */
	if (kind == CellKind::Mark && area->table.kind == GroupTableKind::Hashed)
		return;
	if (kind == CellKind::Mark && area->table.kind == GroupTableKind::Bits)
	{
		mark_bits(m, op, area, taken);
		return;
	}
	/* That a record is there says that it counts. */
	if (area->table.partition_bits && op.flags() & DOP_STORES)
	{
		each_target(m, op, taken, [=](uint32_t target, uint32_t n) {
			if (!is_record(target))
				count_rows(base, kind, target, place, n);
		});
		return;
	}
	if (kind == CellKind::Add32 && area->table.shared_all)
		each_target(m, op, taken, [=](uint32_t target, uint32_t n) { atomicAdd(base.word(target, place.plane), n); });
	else if (kind == CellKind::Add32)
		each_target(m, op, taken, [=](uint32_t target, uint32_t n) { add32(base, target, place, n); });
	else
		each_target(m, op, taken, [=](uint32_t target, uint32_t n) { count_rows(base, kind, target, place, n); });
}

/* The atomics of four rows are on their way together. `shared`: all groups are in shared memory. */
GPUVM_D void
sum_rows(const CellBase &base, CellPlace place, bool wide, bool shared, uint32_t bits, const uint32_t (&t)[4], const uint64_t (&v)[4])
{
	uint32_t	before[4] = {0, 0, 0, 0};

#pragma unroll
	for (int i = 0; i < 4; i++)
		if (bits >> i & 1)
		{
			if (shared || t[i] & TARGET_SHARED)
				before[i] = atomicAdd(base.word(t[i], place.plane), static_cast<uint32_t>(v[i]));
			else
			{
				if (wide)
					atomicAdd(base.global<unsigned long long>(t[i], place), static_cast<unsigned long long>(v[i]));
				else
					atomicAdd(base.global<uint32_t>(t[i], place), static_cast<uint32_t>(v[i]));
				bits &= ~(1u << i);
			}
		}
	if (!wide)
		return;
#pragma unroll
	for (int i = 0; i < 4; i++)
	{
		uint32_t	high = static_cast<uint32_t>((v[i] + before[i]) >> 32);

		/* Adding what is not negative to 32 bits carries no further. */
		if ((bits >> i & 1) && high != 0)
			atomicAdd(base.word(t[i], place.plane + 1u), high);
	}
}

/* Values of 64 bits. */
template <int R>
struct WholeValues
{
	const char *at;

	GPUVM_D void get(int chunk, int64_t (&v)[4]) const { load4(at, chunk, 0, v); }
};

/* Values of 32 bits, of slots or of a staged column as it is stored. */
template <int R>
struct CodedValues
{
	CodedOperand<R> from;

	GPUVM_D void get(int chunk, int64_t (&v)[4]) const
	{
		int32_t		x[4];

		from.get(chunk, 0, x);
#pragma unroll
		for (int i = 0; i < 4; i++)
			v[i] = x[i];
	}
};

/* Products of two such. */
template <int R>
struct Products
{
	CodedOperand<R> left, right;

	GPUVM_D void get(int chunk, int64_t (&v)[4]) const
	{
		int32_t		x[4], y[4];

		left.get(chunk, 0, x);
		right.get(chunk, 0, y);
#pragma unroll
		for (int i = 0; i < 4; i++)
			v[i] = static_cast<int64_t>(x[i]) * y[i];
	}
};

template <typename V, int R>
GPUVM_D void
sum_values(const Machine<R> &m, const OpView &op, const GroupArea *area, const V &values)
{
	const CellBase base(area);
	const CellPlace place = place_of_cell(static_cast<uint64_t>(op.imm_b()), 0);
	const CellKind kind = static_cast<CellKind>(op.column());
	const uint64_t bias = static_cast<uint64_t>(op.imm_a());
	const uint32_t taken = taken_rows(m, op);
	const bool	shared = area->table.shared_all;
	const char *targets = place_of<uint32_t>(m, op.b());
	Chunks<R>	chunks(m);

#pragma unroll 1
	for (int k = 0; k < R / 4; k++)
	{
		int			at = chunks.chunk(k);
		uint32_t	bits = taken >> (4 * at) & 15;
		uint32_t	t[4];
		int64_t		x[4];
		uint64_t	v[4];

		load4(targets, at, 0, t);
		values.get(at, x);
#pragma unroll
		for (int i = 0; i < 4; i++)
			v[i] = static_cast<uint64_t>(x[i]) - bias;
		if (kind == CellKind::Wide)
		{
			const CellPlace high = {static_cast<uint16_t>(place.at + 8), static_cast<uint16_t>(place.plane + 2)};

#pragma unroll
			for (int i = 0; i < 4; i++)
				if (bits >> i & 1)
				{
					add64(base, t[i], place, v[i] & 0xffffffff);
					add64(base, t[i], high, v[i] >> 32);
				}
			continue;
		}
		if (are_alike(bits, t))
		{
			v[0] += v[1] + v[2] + v[3];
			bits = 1;
		}
		sum_rows(base, place, kind == CellKind::Add64, shared, bits, t, v);
	}
}

template <int R>
GPUVM_D void
op_group_sum(const Machine<R> &m, const OpView &op, const GroupArea *area)
{
	if (static_cast<Type>(op.aux()) == Type::I64)
	{
		sum_values(m, op, area, WholeValues<R>{place_of<int64_t>(m, op.a())});
		return;
	}

	const CodedOperand<R> a(m, op.a(), op.count(), false, 0);

	if (op.flags() & DOP_PRODUCT)
		sum_values(m, op, area, Products<R>{a, CodedOperand<R>(m, op.dst(), op.c_null(), false, 0)});
	else
		sum_values(m, op, area, CodedValues<R>{a});
}

/* -- extremes and truth values -------------------------------------------------------------- */

/* Of a float: an integer in the same order, 0 for none; zeroes are -1 and 0 before the shift. */
GPUVM_D uint32_t
ordered_bits(float v)
{
	uint32_t	b = v != v ? 0x7fc00000 : static_cast<uint32_t>(__float_as_int(v));

	return static_cast<int32_t>(b) < 0 ? ~b : b | 0x80000000;
}

GPUVM_D uint64_t
ordered_bits(double v)
{
	uint64_t	b = v != v ? 0x7ff8000000000000 : static_cast<uint64_t>(__double_as_longlong(v));

	return static_cast<int64_t>(b) < 0 ? ~b : b | 1ull << 63;
}

/* Codes of which the greatest wins: of a minimum turned round. */
template <typename V, int R>
GPUVM_D void
extreme(const Machine<R> &m, const OpView &op, const GroupArea *area)
{
	const CellBase base(area);
	const CellPlace place = place_of_cell(static_cast<uint64_t>(op.imm_b()), 0);
	const CellPlace zeroes = place_of_cell(static_cast<uint64_t>(op.imm_b()), 1);
	const CellKind kind = static_cast<CellKind>(op.column());
	const uint64_t bias = static_cast<uint64_t>(op.imm_a());
	const bool	least = op.flags() & DOP_NEGATED;

	each_row<V>(m, op, taken_rows(m, op), [=](uint32_t target, V v) {
		if constexpr (std::is_floating_point<V>::value)
		{
			auto		code = ordered_bits(v);

			code = least ? ~code : code;
			if constexpr (sizeof(V) == 4)
				max32(base, target, place, code);
			else
				max64(base, target, place, code);
			if (v == 0)
				or32(base, target, zeroes, 1 / v < 0 ? SUM_NEG_ZERO : SUM_POS_ZERO);
		}
		else
		{
			uint64_t	code = static_cast<uint64_t>(static_cast<int64_t>(v)) - bias;

			code = least ? 0 - code : code;
			if (kind == CellKind::Max32)
				max32(base, target, place, static_cast<uint32_t>(code));
			else
				max64(base, target, place, code);
		}
	});
}

/* Cells say whether true (bit 0) and false (bit 1) were seen. */
template <int R>
GPUVM_D void
op_group_bool(const Machine<R> &m, const OpView &op, const GroupArea *area)
{
	const CellBase base(area);
	const CellPlace place = place_of_cell(static_cast<uint64_t>(op.imm_b()), 0);
	const uint32_t *targets = reinterpret_cast<const uint32_t *>(place_of<uint32_t>(m, op.b()));
	uint32_t	taken = taken_rows(m, op), truths = mask_read(m, op.a());

#pragma unroll 1
	for (int row = 0; row < R; row++)
		if (taken >> row & 1)
			or32(base, targets[row], place, truths >> row & 1 ? 1 : 2);
}

/* Bits that rows set, clear or turn: a cell, or of 64 bits two. */
template <typename V, int R>
GPUVM_D void
op_group_bits(const Machine<R> &m, const OpView &op, const GroupArea *area)
{
	const CellBase base(area);
	const CellPlace low = place_of_cell(static_cast<uint64_t>(op.imm_b()), 0);
	const CellPlace high = place_of_cell(static_cast<uint64_t>(op.imm_b()), 1);
	const bool	turns = static_cast<CellKind>(op.column()) == CellKind::Xor32;
	const V		clears = op.flags() & DOP_NEGATED ? static_cast<V>(~0ull) : 0;
	auto		update = [=](uint32_t target, CellPlace place, uint32_t bits) {
		if (turns)
			xor32(base, target, place, bits);
		else
			or32(base, target, place, bits);
	};

	each_row<V>(m, op, taken_rows(m, op), [=](uint32_t target, V v) {
		v ^= clears;
		update(target, low, static_cast<uint32_t>(v));
		if constexpr (sizeof(V) == 8)
			update(target, high, static_cast<uint32_t>(v >> 32));
	});
}

/* -- sums of floats ----------------------------------------------------------------------------- */

/* v to the limbs of a sum: at most three of them. Exact: lowering made the window from the values' exponents. */
GPUVM_D void
add_limbs(const CellBase &base, uint32_t target, CellPlace place, int first, uint32_t limbs, double v)
{
	int			exponent;
	int64_t		m = float_sum_split(v, &exponent);
	uint64_t	magnitude = static_cast<uint64_t>(m < 0 ? -m : m);
	int			at = exponent - FLOAT_SUM_GRID - first * 32;

	if (m == 0)
		return;
	/* What lies below the first limb are zero bits. */
	if (at < 0)
	{
		magnitude = at > -64 ? magnitude >> -at : 0;
		at = 0;
	}

	uint32_t	limb = static_cast<uint32_t>(at) / 32, shift = static_cast<uint32_t>(at) % 32;
	uint64_t	low = magnitude << shift, high = shift ? magnitude >> (64 - shift) : 0;

#pragma unroll 1
	for (int i = 0; i < 3 && limb < limbs; i++, limb++)
	{
		uint64_t	piece = low & 0xffffffff;

		if (piece)
			add64(base, target, CellPlace{static_cast<uint16_t>(place.at + 8 * limb), static_cast<uint16_t>(place.plane + 2 * limb)},
				  m < 0 ? 0 - piece : piece);
		low = low >> 32 | high << 32;
		high >>= 32;
	}
}

template <typename V, int R>
GPUVM_D void
sum_floats_grouped(const Machine<R> &m, const OpView &op, const GroupArea *area)
{
	const CellBase base(area);
	const CellPlace place = place_of_cell(static_cast<uint64_t>(op.imm_b()), 0);
	const CellPlace flags = place_of_cell(static_cast<uint64_t>(op.imm_b()), 1);
	const CellKind kind = static_cast<CellKind>(op.column());
	/* imm_a: of limbs the first one's number and a cell, else what makes whole numbers of the values. */
	const CellPlace max_exp = kind == CellKind::Limbs ? place_of_cell(static_cast<uint64_t>(op.imm_a()), 1) : CellPlace{CELL_NONE, 0};
	const int	first = static_cast<int16_t>(op.imm_a());
	const uint32_t limbs = op.count();
	const bool	tell_zeroes = op.flags() & DOP_STORES;
	const double scale = from_imm<double>(op.imm_a());

	each_row<V>(m, op, taken_rows(m, op), [=](uint32_t target, V value) {
		double		v = static_cast<double>(value);

		if (v - v != 0)
		{
			or32(base, target, flags, FLOAT_SUM_NOT_NEG_ZERO | (v != v ? FLOAT_SUM_NAN : v > 0 ? FLOAT_SUM_POS_INF : FLOAT_SUM_NEG_INF));
			return;
		}
		if (tell_zeroes && double_bits(v) != 1ull << 63)
			or32(base, target, flags, FLOAT_SUM_NOT_NEG_ZERO);
		if (max_exp.at != CELL_NONE)
			max32(base, target, max_exp, static_cast<uint32_t>(float_sum_exp(v)));
		if (kind == CellKind::Add64)
			add64(base, target, place, static_cast<uint64_t>(__double2ll_rn(v * scale)));
		else
			add_limbs(base, target, place, first, limbs, v);
	});
}

/* -- dispatch ------------------------------------------------------------------------------------- */

/* The operations CODE_GROUP_*. Arguments and result travel in registers. */
template <int R>
__device__ __noinline__ Lanes
execute_group(uint32_t pc, uint32_t region, uint32_t staged_lane, uint32_t live)
{
	OpView		op(pc);
	Machine<R>	m = {region, threadIdx.x % 32, staged_lane, live};
	GroupArea  *area = shared_at<GroupArea>(op.word(7));
	Type		type = static_cast<Type>(op.aux());
	bool		any_live = true;

	switch (op.code())
	{
		case CODE_GROUP_KEY:
			op_group_key(m, op, area);
			break;
		case CODE_GROUP_FIND:
			any_live = op_group_find(m, op, area);
			break;
		case CODE_GROUP_COUNT:
			op_group_count(m, op, area);
			break;
		case CODE_GROUP_SUM:
			op_group_sum(m, op, area);
			break;
		case CODE_GROUP_EXTREME:
			if (type == Type::I64)
				extreme<int64_t>(m, op, area);
			else if (type == Type::F32)
				extreme<float>(m, op, area);
			else if (type == Type::F64)
				extreme<double>(m, op, area);
			else
				extreme<int32_t>(m, op, area);
			break;
		case CODE_GROUP_BOOL:
			op_group_bool(m, op, area);
			break;
		case CODE_GROUP_BITS:
			if (type == Type::I64)
				op_group_bits<uint64_t>(m, op, area);
			else
				op_group_bits<uint32_t>(m, op, area);
			break;
		case CODE_GROUP_FLOAT_SUM:
			if (type == Type::F32)
				sum_floats_grouped<float>(m, op, area);
			else
				sum_floats_grouped<double>(m, op, area);
			break;
		default:
			__builtin_unreachable();
	}
	return Lanes{m.live, any_live};
}

}  // namespace cuda
}  // namespace gpuvm

#endif
