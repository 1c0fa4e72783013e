/* value_range_arithmetic.cc: ranges of arithmetic, of functions of floats, and of casts between numbers. */
#include "vm/value_range_internal.h"

#include <cmath>

#include "core/bits.h"

namespace gpuvm {
namespace ranges {

/* NumericLead of the values; it grows with the magnitude, but for 0. */
static uint32_t
lead_range(const ValueRange &a, const ValueRange &scale, ValueRange *r)
{
	constexpr int MOST_WEIGHT = 5;
	const bool	zero = a.lo <= 0 && a.hi >= 0;
	uint32_t	ignored = 0;
	int64_t		least;
	int64_t		greatest;

	if (scale.lo != scale.hi)
		return set_interval(r, -MOST_WEIGHT * (1 << sem::LEAD_BITS), MOST_WEIGHT * (1 << sem::LEAD_BITS), 0);
	least = sem::NumericLead(zero ? 1 : a.lo > 0 ? a.lo : a.hi, scale.lo, &ignored);
	greatest = sem::NumericLead(sem::magnitude_of(a.lo) > sem::magnitude_of(a.hi) ? a.lo : a.hi, scale.lo, &ignored);
	return set_interval(r, zero ? std::min<int64_t>(least, 0) : least, zero ? std::max<int64_t>(greatest, 0) : greatest, 0);
}

uint32_t
int_arithmetic(const Op &op, const ValueRange &a, const ValueRange &b, ValueRange *r)
{
	const int128 al = a.lo, ah = a.hi, bl = b.lo, bh = b.hi;

	switch (op.opcode)
	{
		case Opcode::Add:
			return set_interval(r, al + bl, ah + bh, ERR_INT_OVERFLOW);
		case Opcode::Sub:
			return set_interval(r, al - bh, ah - bl, ERR_INT_OVERFLOW);
		case Opcode::Mul:
			{
				int128		p[4] = {al * bl, al * bh, ah * bl, ah * bh};

				return set_interval(r, *std::min_element(p, p + 4), *std::max_element(p, p + 4), ERR_INT_OVERFLOW);
			}
		case Opcode::Div:
			{
				int128		m = std::max(ah < 0 ? -ah : ah, al < 0 ? -al : al);
				uint32_t	zero = bl <= 0 && bh >= 0 ? uint32_t(ERR_DIVISION_BY_ZERO) : 0;
				uint32_t	over = set_interval(r, al >= 0 && bl >= 0 ? int128(0) : -m, m, ERR_INT_OVERFLOW);

				return zero | (bl <= -1 && bh >= -1 ? over : 0);
			}
		case Opcode::Remainder:
			{
				int128		m = std::max(bh < 0 ? -bh : bh, bl < 0 ? -bl : bl) - 1;

				m = std::max<int128>(m, 0);
				set_interval(r, al < 0 ? -m : int128(0), ah > 0 ? m : int128(0), 0);
				return bl <= 0 && bh >= 0 ? uint32_t(ERR_DIVISION_BY_ZERO) : 0;
			}
		case Opcode::BitAnd:
			if (al >= 0 || bl >= 0)
				set_interval(r, 0, al < 0 ? bh : bl < 0 ? ah : std::min(ah, bh), 0);
			return 0;
		case Opcode::ShiftRight:
			if (bl == bh && bl >= 0 && bl < (op.type == Type::I64 ? 64 : 32))
				set_interval(r, al >> static_cast<int>(bl), ah >> static_cast<int>(bl), 0);
			else
				set_interval(r, std::min<int128>(al, 0), std::max<int128>(ah, 0), 0);
			return 0;
		case Opcode::DivRound:
		case Opcode::DivFloor:
			{
				const int128 m = std::max(ah < 0 ? -ah : ah, al < 0 ? -al : al);
				uint32_t	ignored = 0;

				if (bl == bh && bl > 0)
				{
					auto		divide = [&](int64_t v) {
						return op.opcode == Opcode::DivRound ? sem::DivRound(v, b.lo, &ignored) : sem::DivFloor(v, b.lo, &ignored);
					};

					return set_interval(r, divide(a.lo), divide(a.hi), 0);
				}
				set_interval(r, al >= 0 && bl >= 0 ? int128(0) : -m, m, 0);
				return (bl <= 0 && bh >= 0 ? uint32_t(ERR_DIVISION_BY_ZERO) : 0)
					| (a.lo == INT64_MIN && bl <= -1 && bh >= -1 ? uint32_t(ERR_INT_OVERFLOW) : 0);
			}
		case Opcode::Bound:
			{
				const int128 m = bh > 0 ? bh - 1 : 0;

				set_interval(r, std::clamp(al, -m, m), std::clamp(ah, -m, m), 0);
				return bl > 0 && al > -bl && ah < bl ? 0 : uint32_t(ERR_CAST_RANGE);
			}
		case Opcode::NumericLead:
			return lead_range(a, b, r);
		case Opcode::NextDecimals:
			return set_interval(r, al >= 0 && bl >= 0 ? 0 : 1 - sem::QUOTIENT_UNIT, sem::QUOTIENT_UNIT - 1, 0);
		case Opcode::NextRest:
			{
				const int128 m = std::max<int128>(std::max(bh < 0 ? -bh : bh, bl < 0 ? -bl : bl) - 1, 0);

				return set_interval(r, al < 0 ? -m : int128(0), ah > 0 ? m : int128(0), 0);
			}
		case Opcode::RoundDecimals:
			return set_interval(r, al < 0 ? -sem::ROUNDED_UNIT : int64_t{0}, ah > 0 ? sem::ROUNDED_UNIT : int64_t{0}, 0);
		case Opcode::DecimalsHigh:
			{
				uint32_t	ignored = 0;

				return set_interval(r, sem::DecimalsHigh(a.lo, b.lo, &ignored), sem::DecimalsHigh(a.hi, b.hi, &ignored), 0);
			}
		case Opcode::DecimalsLow:
			return set_interval(r, 0, WIDE_LOW_MASK, 0);
		case Opcode::TimeAddMicros:
			return set_interval(r, 0, sem::US_PER_DAY - 1, 0);
		case Opcode::DateAdd:
		case Opcode::DateSub:
			{
				const int128 lo = op.opcode == Opcode::DateAdd ? al + bl : al - bh, hi = op.opcode == Opcode::DateAdd ? ah + bh : ah - bl;

				if (a.lo == sem::DATE_NOBEGIN || a.hi == sem::DATE_NOEND || lo < sem::DATE_MIN || hi >= sem::DATE_LIMIT)
					return ERR_DATETIME_RANGE;
				return set_interval(r, lo, hi, 0);
			}
		case Opcode::DateDiff:
			if (a.lo == sem::DATE_NOBEGIN || a.hi == sem::DATE_NOEND || b.lo == sem::DATE_NOBEGIN || b.hi == sem::DATE_NOEND
				|| al - bh < INT32_MIN || ah - bl > INT32_MAX)
				return ERR_DATETIME_RANGE;
			return set_interval(r, al - bh, ah - bl, 0);
		case Opcode::TimestampAddMonths:
		case Opcode::TimestampAddDays:
		case Opcode::TimestampAddMicros:
			return timestamp_sum(op.opcode, a, b, r);
		default:
			return opcode_info[static_cast<int>(op.opcode)].errors;
	}
}

uint32_t
float_arithmetic(const Op &op, const ValueRange &a, const ValueRange &b, ValueRange *r)
{
	uint32_t	errors = 0;

	r->may_nan = true;
	r->may_inf = a.may_inf || b.may_inf;
	if (is_library_function(op.opcode))
	{
		r->may_inf = true;
		return opcode_info[static_cast<int>(op.opcode)].errors;
	}
	if (op.opcode == Opcode::Div)
		return opcode_info[static_cast<int>(op.opcode)].errors & ~static_cast<uint32_t>(ERR_INT_OVERFLOW);
	if (!a.may_inf && !b.may_inf)
		r->may_nan = a.may_nan || b.may_nan;
	if (op.opcode == Opcode::MulRest)
	{
		r->exp_hi = std::max(a.exp_hi + b.exp_hi - 52, type_exp_lo(r->type));
		r->exp_lo = a.exp_lo + b.exp_lo;
		/* infinity times 0, or less infinity */
		r->may_nan = r->may_nan || r->may_inf || r->exp_hi + 52 >= type_exp_hi(r->type);
		r->may_inf = false;
		clamp_exps(r);
		return 0;
	}
	if (op.opcode == Opcode::Mul)
	{
		r->exp_hi = a.exp_hi + b.exp_hi;
		r->exp_lo = a.exp_lo + b.exp_lo;
		if (r->exp_lo < type_exp_lo(r->type))
			errors |= ERR_FLOAT_UNDERFLOW;
	}
	else
	{
		r->exp_hi = std::max(a.exp_hi, b.exp_hi) + 1;
		r->exp_lo = std::min(a.exp_lo, b.exp_lo);
	}
	/* at most 2^exp_hi, a power of two: rounding does not pass it */
	if (r->exp_hi >= type_exp_hi(r->type))
		errors |= ERR_FLOAT_OVERFLOW;
	clamp_exps(r);
	return errors;
}

/* Roots and whole numbers. */
uint32_t
float_function(Opcode opcode, const ValueRange &a, ValueRange *r)
{
	if (is_library_function(opcode))
		return opcode_info[static_cast<int>(opcode)].errors;
	r->may_nan = a.may_nan && opcode != Opcode::Sign;
	r->may_inf = a.may_inf && opcode != Opcode::Sign;
	if (opcode == Opcode::Sqrt)
	{
		/* a multiple of no power that the operand's tells */
		r->exp_hi = std::max(a.exp_hi, 0) / 2 + 1;
		return ERR_FLOAT_DOMAIN;
	}
	r->exp_lo = std::max(a.exp_lo, 0);
	r->exp_hi = opcode == Opcode::Sign ? 0 : std::max(a.exp_hi, 0);
	r->exp_lo = std::min(r->exp_lo, r->exp_hi);
	return 0;
}

uint32_t
cast_range(Type from, const ValueRange &a, ValueRange *r)
{
	const Type	to = r->type;
	uint32_t	errors = 0;

	r->may_nan = r->may_inf = false;
	if (to == from)
	{
		*r = a;
		return 0;
	}
	if (to == Type::Bool)
	{
		r->may_true = r->may_false = true;
		return 0;
	}
	if (type_is_float(from) && type_is_float(to))
	{
		r->may_nan = a.may_nan;
		r->may_inf = a.may_inf;
		r->exp_lo = a.exp_lo;
		r->exp_hi = a.exp_hi;
		r->flo = a.flo;
		r->fhi = a.fhi;
		if (to == Type::F32)
		{
			if (a.exp_hi >= 128)
				errors |= ERR_FLOAT_OVERFLOW;
			if (a.exp_lo < -149)
				errors |= ERR_FLOAT_UNDERFLOW;
			r->flo = -INFINITE;
			r->fhi = INFINITE;
		}
		clamp_exps(r);
	}
	else if (type_is_float(to))
	{
		const int128 lo = from == Type::Bool ? 0 : a.lo, hi = from == Type::Bool ? 1 : a.hi;
		const uint128 m = static_cast<uint128>(std::max(lo < 0 ? -lo : lo, hi < 0 ? -hi : hi));

		r->exp_lo = 0;
		r->exp_hi = m >> 63 ? 64 : ceil_log2(static_cast<uint64_t>(m));
		clamp_exps(r);
	}
	else if (type_is_float(from))
		errors = ERR_CAST_RANGE;
	else if (from == Type::Bool)
		set_interval(r, 0, 1, 0);
	else
		errors = set_interval(r, a.lo, a.hi, ERR_CAST_RANGE);
	return errors;
}

}  // namespace ranges

}  // namespace gpuvm
