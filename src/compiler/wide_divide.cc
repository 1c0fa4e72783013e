/*
 * wide_divide.cc: quotients of numerics.
 *
 * Both operands have 64 bits, the quotient is in halves. PostgreSQL rounds it to as many decimals as the operands of each row say (vm/quotient.h),
 * and shows these; here all of a column's are at one scale, and what is shown is known of each row alone (ScaleUse). That scale is what the
 * greatest values of the operands lead to, as plans know of them; rows that need more decimals, or do not fit, are flagged.
 * What is only summed up needs no one number for a quotient: its integer part and its decimals are summed each by themselves (QuotientLimbs).
 */
#include "pg/pg.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "compiler/emit.h"
#include "pg/numeric_scaled.h"
#include "tablet/wide_halves.h"
#include "vm/quotient.h"

namespace gpuvm {

/* select_div_scale: NUMERIC_MIN_SIG_DIGITS, and DEC_DIGITS of a digit of base 10000. */
constexpr int MIN_DIGITS = 16;
constexpr int DIGIT_SHIFT = 2;

/*
 * Scales that quotients are computed at are multiples of four. So all that PostgreSQL rounds to are among the last 17 decimals, where the
 * integer before these, of scale (scale - 17), has 64 bits: with each digit of base 10000 that a quotient has more it shows four decimals less.
 */
constexpr int LEAST_SCALE = 20;
constexpr int MOST_SCALE = 32;

constexpr double MOST_INTEGER = 9e18;

/* What values are taken to be at most where nothing is known of them: that leaves room on both sides of the point. */
constexpr double USUAL_GREATEST = 1e9;

bool
is_quotient(const Expr *expr)
{
	const FnEntry *fn = IsA(expr, OpExpr) ? lookup_function(((const OpExpr *) expr)->opfuncid)
		: IsA(expr, FuncExpr) ? lookup_function(((const FuncExpr *) expr)->funcid) : nullptr;

	return fn != nullptr && fn->kind == FnKind::NumericBinary && fn->opcode == Opcode::Div && !known_at_start(expr);
}

static double
usual_greatest(const CompileInput *input, const Expr *expr, int scale)
{
	const double greatest = greatest_value(input, expr);

	return greatest * std::pow(10.0, scale) < MOST_INTEGER ? greatest : USUAL_GREATEST;
}

static int64_t
greatest_lead(double greatest, int scale)
{
	const double scaled = std::ceil(greatest * std::pow(10.0, scale));
	uint32_t	ignored = 0;

	return sem::NumericLead(scaled < MOST_INTEGER ? static_cast<int64_t>(scaled) : PG_INT64_MAX, scale, &ignored);
}

/* How many decimals a quotient of the smallest number, and of zero, by the greatest one shows. */
static int
needed_decimals(const CompileInput *input, const Expr *a, const Expr *b)
{
	const int	scale_a = std::clamp(numeric_scale(input, a).scale, 0, SCALED_MAX_SCALE);
	const int	scale_b = std::clamp(numeric_scale(input, b).scale, 0, SCALED_MAX_SCALE);
	uint32_t	ignored = 0;
	const int64_t least = std::min<int64_t>(sem::NumericLead(1, scale_a, &ignored), 0) - greatest_lead(usual_greatest(input, b, scale_b), scale_b) - 1;

	return std::max({MIN_DIGITS - static_cast<int>(least >> sem::LEAD_BITS) * (1 << DIGIT_SHIFT), scale_a, scale_b});
}

int
quotient_scale(const CompileInput *input, List *args)
{
	const Expr *a = static_cast<const Expr *>(linitial(args));
	const Expr *b = static_cast<const Expr *>(lsecond(args));
	const int	scale_a = std::clamp(numeric_scale(input, a).scale, 0, SCALED_MAX_SCALE);
	const double most_b = usual_greatest(input, b, std::clamp(numeric_scale(input, b).scale, 0, SCALED_MAX_SCALE));
	double		most;
	int			room;

	/* the greatest number by one, or by the constant: divisors below one are taken to be rare where that leaves no room */
	most = std::min(usual_greatest(input, a, scale_a), MOST_INTEGER / std::pow(10.0, scale_a));
	if (IsA(b, Const) && most_b > 0)
		most = std::min(most / most_b, std::numeric_limits<double>::max());
	room = sem::ROUNDED_DECIMALS + static_cast<int>(std::floor(std::log10(MOST_INTEGER / std::max(most, 1.0))));
	return std::clamp(std::min((needed_decimals(input, a, b) + 3) / 4, room / 4) * 4, LEAST_SCALE, MOST_SCALE);
}

/* Does the dividend at this scale, and so any quotient's integer part, fit 64 bits, as plans know of it? */
static bool
fits_at(const CompileInput *input, const Expr *dividend, int scale)
{
	return std::min(greatest_value(input, dividend), MOST_INTEGER) * std::pow(10.0, scale) < MOST_INTEGER;
}

int
quotient_limbs(const CompileInput *input, List *args)
{
	const Expr *a = static_cast<const Expr *>(linitial(args));
	const Expr *b = static_cast<const Expr *>(lsecond(args));
	const int	scale_a = std::clamp(numeric_scale(input, a).scale, 0, SCALED_MAX_SCALE);
	const int	scale_b = std::clamp(numeric_scale(input, b).scale, 0, SCALED_MAX_SCALE);
	const int	scale = quotient_scale(input, args);
	const bool	known = greatest_value(input, b) * std::pow(10.0, scale_b) < MOST_INTEGER;

	return known && needed_decimals(input, a, b) <= scale && fits_at(input, a, std::max(scale_a, scale_b) + scale - sem::ROUNDED_DECIMALS) ? 2 : MAX_QUOTIENT_LIMBS;
}

/*
 * numeric_div's rules of what is no number: NaN where one is NaN, or both are infinite; an infinity by a number is one, of the product of both
 * signs; a number by an infinity is 0, and shows no decimals. Returns what the quotients are (take_special()), and makes both operands numbers,
 * that divide by zero only where PostgreSQL does. *infinite: the register that says whether the divisor is no number; -1: it always is one.
 */
static int
quotient_specials(Compiler *c, WideFactor *a, WideFactor *b, int *infinite)
{
	int			special = a->special == NO_SPECIALS ? NO_SPECIALS : product_special(c, a->special, b->reg);
	int			one = int_value(c, Type::I64, 1);
	int			zero = int_value(c, Type::I64, 0);
	int			nan;

	*infinite = -1;
	/* what is no number is 0 in their place; null stays null */
	if (a->special != NO_SPECIALS)
	{
		nan = with_constant64(c, Opcode::Eq, a->special, WIDE_NAN);
		b->reg = binary64(c, Opcode::BitOr, b->reg, select64(c, nan, one, zero));
	}
	if (b->special == NO_SPECIALS)
		return special;
	nan = with_constant64(c, Opcode::BitAnd, b->special, WIDE_NAN);
	if (a->special != NO_SPECIALS)
		nan = binary64(c, Opcode::BitOr, nan, a->special);
	nan = select64(c, with_constant64(c, Opcode::Ne, nan, 0), int_value(c, Type::I64, WIDE_NAN), zero);
	*infinite = with_constant64(c, Opcode::Ne, b->special, 0);
	b->reg = binary64(c, Opcode::BitOr, b->reg, select64(c, *infinite, one, zero));
	a->reg = binary64(c, Opcode::Mul, a->reg, select64(c, *infinite, zero, one));
	return select64(c, *infinite, nan, special == NO_SPECIALS ? zero : special);
}

/* The display scales less `below`. */
static int
quotient_scales(Compiler *c, const WideFactor &a, const WideFactor &b, int below)
{
	int			lead_a = binary64(c, Opcode::NumericLead, a.reg, int_value(c, Type::I64, a.scale));
	int			lead_b = binary64(c, Opcode::NumericLead, b.reg, int_value(c, Type::I64, b.scale));
	int			scales;
	int64_t		constant;
	uint32_t	ignored = 0;

	/* one more in any case, so that equal first digits are as a smaller one by a larger one */
	lead_b = b.reg >= 0 && is_int_value(c, b.reg, &constant) ? int_value(c, Type::I64, sem::NumericLead(constant, b.scale, &ignored) + 1)
		: with_constant64(c, Opcode::Add, lead_b, 1);
	scales = with_constant64(c, Opcode::ShiftRight, binary64(c, Opcode::Sub, lead_a, lead_b), sem::LEAD_BITS);
	scales = binary64(c, Opcode::Sub, int_value(c, Type::I64, MIN_DIGITS - below), with_constant64(c, Opcode::ShiftLeft, scales, DIGIT_SHIFT));
	for (const WideFactor *f : {&a, &b})
	{
		if (f->shown >= 0)
			scales = binary64(c, Opcode::Greatest, scales, with_constant64(c, Opcode::Sub, convert(c, f->shown, Type::I64), below));
		else if (f->scale > below)
			scales = binary64(c, Opcode::Greatest, scales, int_value(c, Type::I64, f->scale - below));
	}
	return scales;
}

/* The quotient's integer part of scale `scale`, and 18 decimals behind it; of operands of one scale. */
static bool
divide(Compiler *c, int a, int b, int scale, bool fits, int *whole, int *decimals)
{
	const int	behind = sem::QUOTIENT_DECIMALS - scale;
	int			rest;
	int			next;
	int			upper;

	if (fits)
		a = with_constant64(c, Opcode::Mul, a, scaled_pow10[scale]);
	*whole = binary64(c, Opcode::Div, a, b);
	rest = binary64(c, Opcode::Remainder, a, b);
	*decimals = binary64(c, Opcode::NextDecimals, rest, b);
	if (fits)
		return *whole >= 0 && *decimals >= 0;

	/* the first of the decimals go to the integer part, and as many come from the next ones */
	next = binary64(c, Opcode::NextDecimals, binary64(c, Opcode::NextRest, rest, b), b);
	upper = with_constant64(c, Opcode::Div, *decimals, scaled_pow10[behind]);
	*whole = binary64(c, Opcode::Add, with_constant64(c, Opcode::Mul, *whole, scaled_pow10[scale]), upper);
	*decimals = binary64(c, Opcode::Sub, *decimals, with_constant64(c, Opcode::Mul, upper, scaled_pow10[behind]));
	*decimals = binary64(c, Opcode::Add, with_constant64(c, Opcode::Mul, *decimals, scaled_pow10[scale]),
						 with_constant64(c, Opcode::Div, next, scaled_pow10[behind]));
	return *whole >= 0 && *decimals >= 0;
}

static bool
compile_operand(Compiler *c, const Expr *expr, WideFactor *out)
{
	const ScaleUse outer = c->scale_use;
	bool		done;

	if (!is_factor(c->input, expr))
	{
		refuse(c, "a quotient, or numbers of more than 64 bits, are divided or divided by");
		return false;
	}
	/* what it shows says how the quotient is rounded */
	c->scale_use = ScaleUse::Each;
	done = compile_factor(c, expr, out);
	c->scale_use = outer;
	return done;
}

/* Both operands, at one scale, and what PostgreSQL's rules say of each row's quotient. */
struct Division
{
	int			a;
	int			b;
	int			scale;
	int			special;		/* take_special() */
	int			decimals;		/* how many are computed, less `below`: none of zero, however many it shows; */
	int			shown;			/* and how many are shown */
};

static bool
prepare_division(Compiler *c, List *args, int below, int limit, Division *out)
{
	WideFactor	a;
	WideFactor	b;
	int			infinite;
	int			scales;

	if (!compile_operand(c, static_cast<const Expr *>(linitial(args)), &a) || !compile_operand(c, static_cast<const Expr *>(lsecond(args)), &b))
		return false;
	out->special = quotient_specials(c, &a, &b, &infinite);
	scales = quotient_scales(c, a, b, below);
	out->decimals = select64(c, with_constant64(c, Opcode::Eq, a.reg, 0), int_value(c, Type::I64, 0), scales);
	out->decimals = with_constant64(c, Opcode::Bound, out->decimals, limit);
	out->shown = below == 0 ? scales : with_constant64(c, Opcode::Add, scales, below);
	if (infinite >= 0)
		out->shown = select64(c, infinite, int_value(c, Type::I64, 0), out->shown);

	out->scale = Max(a.scale, b.scale);
	for (WideFactor *f : {&a, &b})
	{
		int64_t		constant;

		if (f->reg >= 0 && is_int_value(c, f->reg, &constant))
			f->reg = rescale(c, f->reg, out->scale);
		else if (f->scale < out->scale)
			f->reg = with_constant64(c, Opcode::Mul, f->reg, scaled_pow10[out->scale - f->scale]);
	}
	out->a = a.reg;
	out->b = b.reg;
	/* decimals that are not computed, integers of more than 64 bits */
	c->soft_errors = true;
	return a.reg >= 0 && b.reg >= 0 && out->decimals >= 0 && out->shown >= 0 && out->special != -1;
}

bool
compile_quotient(Compiler *c, List *args, WideValue *out)
{
	const int	below = quotient_scale(c->input, args) - sem::ROUNDED_DECIMALS;
	Division	d;
	int			whole;
	int			decimals;

	if (c->scale_use == ScaleUse::One)
	{
		refuse(c, "the display scale of a quotient depends on its operands");
		return false;
	}
	if (!prepare_division(c, args, below, sem::ROUNDED_DECIMALS + 1, &d) ||
		!divide(c, d.a, d.b, below, fits_at(c->input, static_cast<const Expr *>(linitial(args)), d.scale + below), &whole, &decimals))
		return false;
	decimals = binary64(c, Opcode::RoundDecimals, decimals, d.decimals);
	out->high = binary64(c, Opcode::DecimalsHigh, whole, decimals);
	out->low = binary64(c, Opcode::DecimalsLow, whole, decimals);
	out->scale = below + sem::ROUNDED_DECIMALS;
	out->special = false;
	out->shown = c->scale_use == ScaleUse::Each ? convert(c, d.shown, Type::I32) : -1;
	return out->high >= 0 && out->low >= 0 && (c->scale_use != ScaleUse::Each || out->shown >= 0) && put_special(c, out, d.special);
}

/* The integer part, and decimals in two more limbs: those up to the last that is shown, which is rounded as the next one says. */
static bool
divide_long(Compiler *c, const Division &d, QuotientLimbs *out)
{
	int			rest = binary64(c, Opcode::Remainder, d.a, d.b);
	int			first = binary64(c, Opcode::NextDecimals, rest, d.b);
	int			next = binary64(c, Opcode::NextDecimals, binary64(c, Opcode::NextRest, rest, d.b), d.b);
	int			rounded = with_constant64(c, Opcode::Mul, binary64(c, Opcode::RoundDecimals, first, d.decimals), 10);
	int			behind = with_constant64(c, Opcode::Sub, d.decimals, sem::QUOTIENT_DECIMALS);
	int			longer = with_constant64(c, Opcode::Ge, behind, 0);

	if (next < 0 || rounded < 0 || longer < 0)
		return false;
	out->reg[0] = value(c, Opcode::Div, Type::I64, d.a, d.b, 0, 0, numeric_info(0));
	out->reg[1] = value(c, Opcode::Select, Type::I64, first, rounded, longer, 0, numeric_info(sem::QUOTIENT_DECIMALS));
	/* 0 of fewer decimals than none */
	out->reg[2] = value(c, Opcode::RoundDecimals, Type::I64, next, behind, 0, 0, numeric_info(sem::QUOTIENT_DECIMALS + sem::ROUNDED_DECIMALS));
	return out->reg[0] >= 0 && out->reg[1] >= 0 && out->reg[2] >= 0;
}

/* The integer part has so many decimals and fits; the next 17 are in one limb. */
static bool
divide_short(Compiler *c, const Division &d, int below, QuotientLimbs *out)
{
	int			a = with_constant64(c, Opcode::Mul, d.a, scaled_pow10[below]);
	int			decimals = binary64(c, Opcode::NextDecimals, binary64(c, Opcode::Remainder, a, d.b), d.b);

	if (decimals < 0)
		return false;
	out->reg[0] = value(c, Opcode::Div, Type::I64, a, d.b, 0, 0, numeric_info(below));
	out->reg[1] = value(c, Opcode::RoundDecimals, Type::I64, decimals, d.decimals, 0, 0, numeric_info(below + sem::ROUNDED_DECIMALS));
	return out->reg[0] >= 0 && out->reg[1] >= 0;
}

/* `value` is null where `by` is. */
static int
null_like(Compiler *c, int value, int by)
{
	return binary64(c, Opcode::BitOr, value, with_constant64(c, Opcode::BitAnd, by, 0));
}

bool
compile_quotient_limbs(Compiler *c, List *args, QuotientLimbs *out)
{
	const bool	both = quotient_limbs(c->input, args) == 2;
	const int	below = both ? quotient_scale(c->input, args) - sem::ROUNDED_DECIMALS : 0;
	Division	d;

	if (!prepare_division(c, args, below, both ? sem::ROUNDED_DECIMALS + 1 : 2 * sem::QUOTIENT_DECIMALS, &d) ||
		!(both ? divide_short(c, d, below, out) : divide_long(c, d, out)))
		return false;
	/* null by null has neither, though a divisor that is no number says what is shown */
	out->special = d.special == NO_SPECIALS ? d.special : null_like(c, d.special, out->reg[0]);
	out->shown = d.special == NO_SPECIALS ? d.shown : null_like(c, d.shown, out->reg[0]);
	return out->special != -1 && out->shown >= 0;
}

}  // namespace gpuvm
