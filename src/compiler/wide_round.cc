/*
 * wide_round.cc: numerics in two registers (tablet/wide_halves.h) with fewer decimals: round, trunc, ceil, floor, and as integers and floats.
 *
 * Rounding adds a constant, which depends on the sign, and divides, rounding down: by parts of 31 bits, as one does on paper, and
 * by at most nine decimals at a time, which gives the same as all at once.
 */
#include "pg/pg.h"

#include <cmath>
#include <initializer_list>

#include "compiler/emit.h"
#include "pg/numeric_scaled.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

constexpr int WIDE_PART_BITS = WIDE_LOW_BITS / 2;
constexpr int64_t WIDE_PART_MASK = (int64_t{1} << WIDE_PART_BITS) - 1;
constexpr int MAX_DROP = 36;

/* a quotient, rounded down, and what is left with the next part behind it */
static int
quotient(Compiler *c, int part, int divisor, int next, int *rest)
{
	int			q = binary64(c, Opcode::DivFloor, part, divisor);
	int			left = binary64(c, Opcode::Sub, part, binary64(c, Opcode::Mul, q, divisor));

	*rest = next < 0 ? left : binary64(c, Opcode::Add, with_constant64(c, Opcode::ShiftLeft, left, WIDE_PART_BITS), next);
	return q;
}

static bool
divide(Compiler *c, WideValue *a, int64_t by)
{
	int			divisor = int_value(c, Type::I64, by);
	int			rest;
	int			upper;
	int			lower;

	a->high = quotient(c, a->high, divisor, with_constant64(c, Opcode::ShiftRight, a->low, WIDE_PART_BITS), &rest);
	upper = quotient(c, rest, divisor, with_constant64(c, Opcode::BitAnd, a->low, WIDE_PART_MASK), &rest);
	lower = binary64(c, Opcode::DivFloor, rest, divisor);
	a->low = binary64(c, Opcode::Add, with_constant64(c, Opcode::ShiftLeft, upper, WIDE_PART_BITS), lower);
	return a->high >= 0 && a->low >= 0;
}

static int128
power_of_ten(int exponent)
{
	int128		power = 1;

	for (; exponent > 0; exponent--)
		power *= 10;
	return power;
}

/* What is added before the division that drops so many decimals, of numbers that are negative, or not. */
static int128
rounding(WideRounding how, int drop, bool negative)
{
	const int128 unit = power_of_ten(drop);

	switch (how)
	{
		case WideRounding::Nearest: return negative ? unit / 2 - 1 : unit / 2;
		case WideRounding::ToZero: return negative ? unit - 1 : 0;
		case WideRounding::Up: return unit - 1;
		default: return 0;
	}
}

bool
round_wide(Compiler *c, WideValue *a, int digits, WideRounding how)
{
	const int	drop = a->scale - digits;
	int128		below;
	int128		above;
	int			special;
	int			negative;
	WideValue	added;

	if (drop <= 0)
		return rescale_wide(c, a, digits);
	if (drop > MAX_DROP)
	{
		refuse(c, "a number is rounded by more than %d digits", MAX_DROP);
		return false;
	}
	special = take_special(c, a);
	if (special == -1)
		return false;
	below = rounding(how, drop, true);
	above = rounding(how, drop, false);
	negative = with_constant64(c, Opcode::Lt, a->high, 0);
	added.high = select64(c, negative, int_value(c, Type::I64, wide_high(below)), int_value(c, Type::I64, wide_high(above)));
	added.low = select64(c, negative, int_value(c, Type::I64, wide_low(below)), int_value(c, Type::I64, wide_low(above)));
	if (!normalize_wide(c, binary64(c, Opcode::Add, a->high, added.high), binary64(c, Opcode::Add, a->low, added.low), a->scale, a))
		return false;
	for (int rest = drop; rest > 0; rest -= WIDE_PART_DECIMALS)
	{
		if (!divide(c, a, scaled_pow10[Min(rest, WIDE_PART_DECIMALS)]))
			return false;
	}
	/* tens, hundreds: back to ones */
	a->scale = 0;
	if (digits < 0 && !rescale_wide(c, a, -digits))
		return false;
	a->scale = Max(digits, 0);
	return put_special(c, a, special);
}

bool
compile_wide_sign(Compiler *c, const Expr *expr, WideValue *out)
{
	WideValue	a;
	int			special;
	int			any;
	int			sign;

	if (!compile_wide_value(c, expr, &a))
		return false;
	/* of codes, too, which are on the side of 0 that infinities are */
	any = binary64(c, Opcode::BitOr, a.high, a.low);
	special = take_special(c, &a);
	if (special == -1 || any < 0)
		return false;
	sign = convert(c, convert(c, with_constant64(c, Opcode::Lt, any, 0), Type::I32), Type::I64);
	any = convert(c, convert(c, with_constant64(c, Opcode::Gt, any, 0), Type::I32), Type::I64);
	sign = sign < 0 || any < 0 ? -1 : value(c, Opcode::Sub, Type::I64, any, sign, 0, 0, numeric_info(0));
	return widen_narrow(c, sign, out) && put_special(c, out, special < 0 ? special : with_constant64(c, Opcode::BitAnd, special, WIDE_NAN));
}

/* Flagged where the number is not less than 10^precision. */
static bool
bound_wide(Compiler *c, WideValue *a, int precision)
{
	WideValue	limit;
	int			above;
	int			below;

	if (!wide_constant(c, power_of_ten(precision), a->scale, &limit))
		return false;
	above = compare_wide(c, Opcode::Ge, *a, limit);
	if (above < 0 || !wide_constant(c, -power_of_ten(precision), a->scale, &limit))
		return false;
	below = compare_wide(c, Opcode::Le, *a, limit);
	above = below < 0 ? -1 : value(c, Opcode::Or, Type::Bool, above, below);
	above = with_constant64(c, Opcode::Bound, convert(c, convert(c, above, Type::I32), Type::I64), 1);
	a->high = binary64(c, Opcode::Add, a->high, above);
	return a->high >= 0;
}

/* numeric(p, s): rounded, and less than 10^p then, which halves of 125 bits are where p is 38. An infinity raises. */
bool
compile_wide_typmod(Compiler *c, List *args, WideValue *out)
{
	int			precision = 0;
	int			scale = typmod_scale(args, &precision);
	int			special;

	if (scale < 0)
	{
		refuse(c, "a numeric's precision and scale are of a kind that is not supported");
		return false;
	}
	if (!compile_wide_value(c, static_cast<const Expr *>(linitial(args)), out) || !round_wide(c, out, scale, WideRounding::Nearest))
		return false;
	special = take_special(c, out);
	if (special == -1)
		return false;
	if (special != NO_SPECIALS)
		special = binary64(c, Opcode::BitOr, with_constant64(c, Opcode::BitAnd, special, WIDE_NAN),
						   with_constant64(c, Opcode::Bound, with_constant64(c, Opcode::BitAnd, special, WIDE_INFINITY | WIDE_MINUS_INFINITY), 1));
	if (precision <= SCALED_MAX_SCALE)
	{
		int			reg = narrow_wide(c, *out);

		reg = reg < 0 ? -1 : value(c, Opcode::Bound, Type::I64, reg, int_value(c, Type::I64, scaled_pow10[precision]), 0, 0, numeric_info(scale));
		if (!widen_narrow(c, reg, out))
			return false;
	}
	else if (precision < SCALED_MAX_WIDE_SCALE + 2 && !bound_wide(c, out, precision))
		return false;
	return put_special(c, out, special);
}

int
narrow_wide(Compiler *c, const WideValue &a)
{
	int			high = with_constant64(c, Opcode::Mul, with_constant64(c, Opcode::Bound, a.high, 2), WIDE_HIGH_LIMIT);
	int			reg = high < 0 ? -1 : value(c, Opcode::Add, Type::I64, high, a.low, 0, 0, numeric_info(a.scale));

	c->soft_errors = true;
	return reg;
}

int
compile_wide_to_int(Compiler *c, const Expr *expr, Type to)
{
	WideValue	a;
	int			reg;

	/* what is no number is too large as a code, and PostgreSQL raises */
	reg = compile_wide_value(c, expr, &a) && round_wide(c, &a, 0, WideRounding::Nearest) ? narrow_wide(c, a) : -1;
	return reg < 0 || to != Type::I64 ? convert(c, reg, to) : value(c, Opcode::Copy, Type::I64, reg);
}

int
compile_wide_to_float(Compiler *c, const Expr *expr)
{
	WideValue	a;
	int			special = compile_wide_value(c, expr, &a) ? take_special(c, &a) : -1;
	int			reg;

	if (special == -1)
		return -1;
	if (special == NO_SPECIALS)
		return refuse(c, "numbers of more than 64 bits are not cast to floats");
	reg = numeric_to_float(c, narrow_wide(c, a));
	for (WideSpecial which : {WIDE_NAN, WIDE_MINUS_INFINITY, WIDE_INFINITY})
	{
		int			is = reg < 0 ? -1 : with_constant64(c, Opcode::Eq, special, which);
		int			as = is < 0 ? -1 : float_value(c, Type::F64, which == WIDE_NAN ? NAN : which == WIDE_INFINITY ? INFINITY : -INFINITY);

		reg = as < 0 ? -1 : value(c, Opcode::Select, Type::F64, as, reg, is);
	}
	return reg;
}

int
compile_half(Compiler *c, const Expr *number, bool high)
{
	WideValue	a;

	if (!compile_wide_value(c, number, &a))
		return -1;
	if (a.special)
		return refuse(c, "NaN and infinities are not sorted by their halves");
	return a.high < 0 || a.low < 0 ? -1 : value(c, Opcode::Copy, Type::I64, high ? a.high : a.low);
}

/* Both halves add up to it, but where the high one only says that the number is negative: it would take away all of the low one. */
static int
wide_to_approximation(Compiler *c, const WideValue &a)
{
	const double unit = static_cast<double>(int64_t{1} << WIDE_LOW_BITS);
	const int	sign = with_constant64(c, Opcode::ShiftRight, a.high, 63);
	const int	small = binary64(c, Opcode::Eq, a.high, sign);
	const int	narrow = binary64(c, Opcode::BitOr, with_constant64(c, Opcode::ShiftLeft, sign, WIDE_LOW_BITS), a.low);
	const int	high = convert(c, a.high, Type::F64);
	const int	low = convert(c, a.low, Type::F64);
	const int	factor = float_value(c, Type::F64, unit);
	const int	shifted = high < 0 || factor < 0 ? -1 : value(c, Opcode::Mul, Type::F64, high, factor);
	const int	sum = shifted < 0 || low < 0 ? -1 : value(c, Opcode::Add, Type::F64, shifted, low);
	const int	exact = convert(c, narrow, Type::F64);

	return small < 0 || sum < 0 || exact < 0 ? -1 : value(c, Opcode::Select, Type::F64, exact, sum, small);
}

int
compile_approximation(Compiler *c, const Expr *number)
{
	WideValue	a;
	int			special = NO_SPECIALS;
	int			reg;
	int			scale;
	int			nan;

	if (is_wide(c->input, number))
	{
		if (!compile_wide_value(c, number, &a))
			return -1;
		special = take_special(c, &a);
		reg = special == -1 ? -1 : wide_to_approximation(c, a);
		scale = a.scale;
	}
	else
	{
		reg = compile_value(c, number);
		scale = reg < 0 ? 0 : c->info[reg].scale;
		reg = convert(c, reg, Type::F64);
	}
	if (reg >= 0 && scale > 0)
		reg = value(c, Opcode::Div, Type::F64, reg, float_value(c, Type::F64, std::pow(10.0, scale)));
	if (special == NO_SPECIALS || reg < 0)
		return reg;
	nan = float_value(c, Type::F64, NAN);
	special = with_constant64(c, Opcode::Ne, special, 0);
	return special < 0 || nan < 0 ? -1 : value(c, Opcode::Select, Type::F64, nan, reg, special);
}

}  // namespace gpuvm
