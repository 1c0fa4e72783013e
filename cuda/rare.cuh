/*
 * rare.cuh: operations that are long and rare, on 64-bit values a row at a time, and Lookup: out of
 * line, and apart from the other generic ones, so that what they need of the hardware's registers is
 * nobody else's concern. (Called from within execute_generic() they made that spill.)
 */
#ifndef GPUVM_CUDA_RARE_CUH
#define GPUVM_CUDA_RARE_CUH

#include "arithmetic.cuh"
#include "lookup.cuh"
#include "text.cuh"
#include "text_key.cuh"

namespace gpuvm {
namespace cuda {

/* They are neighbours in opcodes.def. */
constexpr Opcode FIRST_RARE = Opcode::TextMatch, LAST_RARE = Opcode::ZoneShift;

GPUVM_HD constexpr bool
is_rare(Opcode o)
{
	return o >= FIRST_RARE && o <= LAST_RARE;
}

GPUVM_HD constexpr bool
is_rare_code(uint32_t code)
{
	return code >= generic_code(FIRST_RARE, Type::None) && code < generic_code(LAST_RARE, Type::None) + 16u;
}

/* r = f(a, b, &errors) for every row; a and r are of type A, of 64 bits, b is of type B. */
template <typename A, typename B, int R, typename F>
GPUVM_D void
each_of(Machine<R> &m, const OpView &op, F f)
{
	const Operand<A, R> a = operand_a<A>(m, op);
	const Operand<B, R> b = operand_b<B>(m, op);
	A		   *to = reinterpret_cast<A *>(place_of<A>(m, op.dst()));
	const uint32_t nulls = either_null(m, op), active = m.live & ~nulls;
	const int	turn = static_cast<int>(Order<A, R>(m).x / sizeof(A));
	uint32_t	errors = 0;

	mask_write(m, op.dst_null(), nulls);
#pragma unroll 1
	for (int i = 0; i < R; i++)
	{
		const int	row = i ^ turn;
		uint32_t	e = 0;

		to[row] = f(a.get_one(row, 0), b.get_one(row, 0), &e);
		errors |= active >> row & 1 ? e : 0;
	}
	if (op.flags() & DOP_CHECKED)
		raise(m, errors);
}

template <typename B, int R, typename F>
GPUVM_D void
each_value(Machine<R> &m, const OpView &op, F f)
{
	each_of<int64_t, B>(m, op, f);
}

template <int R, typename F>
GPUVM_D void
each_float(Machine<R> &m, const OpView &op, F f)
{
	each_of<double, double>(m, op, f);
}

/* The part of a zone table that lowering has left. */
template <int R>
GPUVM_D ZoneTable
zone_table(const Machine<R> &m, const OpView &op)
{
	const DeviceMap map = region_header(m)->args->maps[op.column()];
	const int64_t *from = global_memory(reinterpret_cast<const int64_t *>(map.values)) + (op.imm_b() >> 32);

	return ZoneTable{from, from + map.nentries / 2, static_cast<uint32_t>(op.imm_b())};
}

template <int R>
__device__ __noinline__ void
execute_rare(uint32_t pc, uint32_t region, uint32_t staged_lane, uint32_t live)
{
	OpView		op(pc);
	Machine<R>	m = {region, threadIdx.x % 32, staged_lane, live};
	const DateField field = static_cast<DateField>(op.aux());

#define GPUVM_RARE_FLOAT(name) \
		case generic_code(Opcode::name, Type::F64): \
			each_float(m, op, [](double a, double, uint32_t *e) { return sem::name<Type::F64>(a, e); }); \
			break;
#define GPUVM_RARE(name, B, call) \
		case generic_code(Opcode::name, Type::I64): \
			each_value<B>(m, op, [=](int64_t a, B b, uint32_t *e) { (void) b; return sem::call; }); \
			break;
	switch (op.code())
	{
		case generic_code(Opcode::Lookup, Type::Bool):
		case generic_code(Opcode::Lookup, Type::I32):
		case generic_code(Opcode::Lookup, Type::I64):
			op_lookup(m, op);
			break;
		case generic_code(Opcode::TextMatch, Type::Bool):
			execute_text_match<R>(pc, region, staged_lane, live);
			break;
		case generic_code(Opcode::TextPart, Type::I64):
			execute_text_part(m, op);
			break;
		case generic_code(Opcode::TextKey, Type::I64):
			execute_text_key<R>(pc, region, staged_lane, live);
			break;
		case generic_code(Opcode::TextCompare, Type::I64):
			execute_text_compare(m, op);
			break;
		GPUVM_RARE(DatePart, int64_t, DatePart(a, field, e))
		GPUVM_RARE(DateTrunc, int64_t, DateTrunc(a, field, e))
		GPUVM_RARE(TimestampAddMonths, int32_t, TimestampAddMonths(a, b, e))
		GPUVM_RARE(TimestampAddDays, int32_t, TimestampAddDays(a, b, e))
		GPUVM_RARE(TimestampAddMicros, int64_t, TimestampAddMicros(a, b, e))
		GPUVM_RARE(TimeAddMicros, int64_t, TimeAddMicros(a, b, e))
		GPUVM_RARE_FLOAT(Sqrt)
		GPUVM_RARE_FLOAT(Ceil)
		GPUVM_RARE_FLOAT(Floor)
		GPUVM_RARE_FLOAT(Trunc)
		GPUVM_RARE_FLOAT(Round)
		GPUVM_RARE_FLOAT(Sign)
		case generic_code(Opcode::MulRest, Type::F64):
			each_float(m, op, [](double a, double b, uint32_t *e) { return sem::MulRest<Type::F64>(a, b, e); });
			break;
		case generic_code(Opcode::ZoneShift, Type::I64):
		{
			const ZoneTable table = zone_table(m, op);

			each_value<int64_t>(m, op, [=](int64_t a, int64_t, uint32_t *e) { return sem::ZoneShift(a, table, e); });
			break;
		}
		GPUVM_RARE(DivRound, int64_t, DivRound(a, b, e))
		GPUVM_RARE(DivFloor, int64_t, DivFloor(a, b, e))
		GPUVM_RARE(Bound, int64_t, Bound(a, b, e))
		GPUVM_RARE(NumericLead, int64_t, NumericLead(a, b, e))
		GPUVM_RARE(NextDecimals, int64_t, NextDecimals(a, b, e))
		GPUVM_RARE(NextRest, int64_t, NextRest(a, b, e))
		GPUVM_RARE(RoundDecimals, int64_t, RoundDecimals(a, b, e))
		GPUVM_RARE(DecimalsHigh, int64_t, DecimalsHigh(a, b, e))
		GPUVM_RARE(DecimalsLow, int64_t, DecimalsLow(a, b, e))
		default:
			__builtin_unreachable();
	}
#undef GPUVM_RARE
#undef GPUVM_RARE_FLOAT
}

}  // namespace cuda
}  // namespace gpuvm

#endif
