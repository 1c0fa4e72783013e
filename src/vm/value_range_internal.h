/*
 * value_range_internal.h: what the parts of the range analysis share. Each computes the range of an
 * opcode's result from those of its operands, and gives the errors that this may raise.
 */
#ifndef GPUVM_VM_VALUE_RANGE_INTERNAL_H
#define GPUVM_VM_VALUE_RANGE_INTERNAL_H

#include <algorithm>
#include <limits>

#include "vm/code_map.h"
#include "vm/float_sum.h"
#include "vm/semantics.h"
#include "vm/value_range.h"

namespace gpuvm {
namespace ranges {

constexpr double INFINITE = std::numeric_limits<double>::infinity();

inline int64_t
type_min(Type t)
{
	return t == Type::I16 ? INT16_MIN : t == Type::I32 ? INT32_MIN : t == Type::Bool ? 0 : INT64_MIN;
}

inline int64_t
type_max(Type t)
{
	return t == Type::I16 ? INT16_MAX : t == Type::I32 ? INT32_MAX : t == Type::Bool ? 1 : INT64_MAX;
}

inline int
type_exp_lo(Type t)
{
	return t == Type::F32 ? -149 : -1074;
}

inline int
type_exp_hi(Type t)
{
	return t == Type::F32 ? 128 : 1024;
}

inline ValueRange
null_range(Type t)
{
	ValueRange	r = full_range(t);

	r.may_value = r.may_true = r.may_false = r.may_nan = r.may_inf = false;
	r.lo = r.hi = 0;
	r.flo = r.fhi = 0;
	r.exp_lo = r.exp_hi = type_exp_lo(t);
	return r;
}

/* Brings exponents into what the type has. */
inline void
clamp_exps(ValueRange *r)
{
	r->exp_lo = std::clamp(r->exp_lo, type_exp_lo(r->type), type_exp_hi(r->type));
	r->exp_hi = std::clamp(r->exp_hi, r->exp_lo, type_exp_hi(r->type));
}

inline ValueRange
float_constant(Type t, double v)
{
	ValueRange	r = full_range(t);

	r.may_null = false;
	r.may_nan = v != v;
	r.may_inf = v == INFINITE || v == -INFINITE;
	r.flo = r.fhi = r.may_nan || r.may_inf ? 0 : v;
	r.exp_lo = r.exp_hi = type_exp_lo(t);
	if (r.flo != 0)
	{
		int			e;
		int64_t		m = float_sum_split(v, &e);

		r.exp_lo = e + __builtin_ctzll(static_cast<uint64_t>(m));
		r.exp_hi = float_sum_exp(v) - 2048;
		clamp_exps(&r);
	}
	return r;
}

inline ValueRange
int_constant(Type t, int64_t v)
{
	ValueRange	r = full_range(t);

	r.may_null = false;
	r.lo = r.hi = v;
	r.may_true = v != 0;
	r.may_false = v == 0;
	return r;
}


/* [lo, hi] computed exactly: clamped to the type, with the error if that cut something off. */
inline uint32_t
set_interval(ValueRange *r, int128 lo, int128 hi, uint32_t error)
{
	const int128 least = type_min(r->type), most = type_max(r->type);
	const bool	cut = lo < least || hi > most;

	r->lo = static_cast<int64_t>(std::clamp(lo, least, most));
	r->hi = static_cast<int64_t>(std::clamp(hi, least, most));
	return cut ? error : 0;
}

/* value_range_dates.cc */
uint32_t timestamp_sum(Opcode opcode, const ValueRange &a, const ValueRange &b, ValueRange *r);
uint32_t field_range(const Op &op, const ValueRange &a, ValueRange *r);
uint32_t zone_range(const CodeMap *map, const ValueRange &a, ValueRange *r);	/* no map: any */
uint32_t date_cast_range(Opcode opcode, const ValueRange &a, ValueRange *r);

/* value_range_arithmetic.cc */
uint32_t int_arithmetic(const Op &op, const ValueRange &a, const ValueRange &b, ValueRange *r);
uint32_t float_arithmetic(const Op &op, const ValueRange &a, const ValueRange &b, ValueRange *r);
uint32_t float_function(Opcode opcode, const ValueRange &a, ValueRange *r);
uint32_t cast_range(Type from, const ValueRange &a, ValueRange *r);

/* value_range_maps.cc */
void unite(ValueRange *r, const ValueRange &a, const ValueRange &b);	/* not r->may_null */
ValueRange lookup_range(const Op &op, const CodeMap &map, const ValueRange &code);

}  // namespace ranges
}  // namespace gpuvm

#endif
