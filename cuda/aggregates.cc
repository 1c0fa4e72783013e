/* aggregates.cc: the result row of a program without keys, from what its launches gathered. */
#include <cstring>

#include "groups.h"
#include "vm/float_sum.h"
#include "vm/semantics.h"

namespace gpuvm {
namespace cuda {

namespace {

double
float_of(uint64_t bits, Type type)
{
	float		f;
	uint32_t	low = static_cast<uint32_t>(bits);

	if (type == Type::F64)
		return bits_double(bits);
	memcpy(&f, &low, sizeof(f));
	return f;
}

/* Fixed point, and what its lanes noted, rounded once. */
uint64_t
float_sum_bits(const Partial &r, int scale, int rest)
{
	FloatSumInfo info = {};
	int64_t		limbs[FLOAT_SUM_LIMBS] = {};

	info.flags = static_cast<uint8_t>(FLOAT_SUM_SEEN | (r.count & SUM_NAN ? FLOAT_SUM_NAN : 0) | (r.count & SUM_POS_INF ? FLOAT_SUM_POS_INF : 0) |
		(r.count & SUM_NEG_INF ? FLOAT_SUM_NEG_INF : 0) | (r.count & SUM_NOT_NEG_ZERO ? FLOAT_SUM_NOT_NEG_ZERO : 0));
	float_fixed_limbs(static_cast<int128>(static_cast<uint128>(static_cast<uint64_t>(r.hi)) << 64 | r.lo), scale, limbs);
	return double_bits(float_sum_rest(info, limbs, FloatSumWindow{0, FLOAT_SUM_LIMBS}, rest));
}

/* The aggregate's value as result columns hold it; returns its ErrorBits. */
uint32_t
final_value(const DeviceProgram &p, int agg, int rest, const Partial &r, uint64_t (&value)[2], bool *null)
{
	AggFn		fn = p.agg_fn[agg];
	Type		type = p.agg_type[agg];
	bool		is_float = type_is_float(type);

	value[0] = value[1] = 0;
	*null = fn != AggFn::Count && fn != AggFn::CountStar && !(r.count & SUM_SEEN);
	if (*null)
		return 0;
	switch (fn)
	{
		case AggFn::CountStar:
		case AggFn::Count:
			value[0] = r.count;
			return 0;
		case AggFn::Sum:
			value[0] = is_float ? float_sum_bits(r, p.agg_scale[agg], rest) : r.lo;
			value[1] = is_float ? 0 : static_cast<uint64_t>(r.hi);
			return 0;
		case AggFn::Min:
		case AggFn::Max:
			value[0] = r.lo;
			if (is_float)
			{
				double		v = float_of(r.lo, type);

				if (sem::is_nan(v))
					value[0] = type == Type::F32 ? 0x7fc00000 : 0x7ff8000000000000;
				if (v == 0 && (r.count & SUM_NEG_ZERO) && (r.count & SUM_POS_ZERO))
					return ERR_AMBIGUOUS_ZERO;
			}
			return 0;
		case AggFn::BitAnd:
			value[0] = ~r.lo;
			return 0;
		case AggFn::BitOr:
		case AggFn::BitXor:
			value[0] = r.lo;
			return 0;
		default:
			/* lo: was any row false (BoolAnd), true (BoolOr)? */
			value[0] = fn == AggFn::BoolAnd ? r.lo == 0 : r.lo != 0;
			return 0;
	}
}

}  // namespace

uint32_t
emit_aggregates(const DeviceProgram &program, const LaunchState &state, uint64_t rows_taken, char *area, uint32_t capacity)
{
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];
	uint32_t	errors = state.errors;

	/* Accumulators were sized for the rows announced. */
	if (rows_taken > program.total_rows)
		errors |= ERR_INT_OVERFLOW;
	result_layout(program.result_type, program.nresults, capacity, layout);
	for (int c = 0; c < program.nresults; c++)
	{
		int			agg = program.groups.sources[c] & ~GROUP_SOURCE_AGG;
		uint64_t	value[2];
		bool		null;

		errors |= final_value(program, agg, program.groups.rests[c], state.result[agg], value, &null);
		memcpy(area + layout[c].values, value, static_cast<size_t>(type_width(program.result_type[c])));
		memset(area + layout[c].nulls, 0, capacity / 8);
		area[layout[c].nulls] = null ? 1 : 0;
	}
	/* Aggregates that no result column shows may fail as well. */
	for (int i = 0; i < program.naggs; i++)
	{
		uint64_t	value[2];
		bool		null;

		errors |= final_value(program, i, 0, state.result[i], value, &null);
	}
	return errors;
}

}  // namespace cuda
}  // namespace gpuvm
