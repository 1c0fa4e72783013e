/*
 * wide_divide.cc: quotients of numerics.
 *
 * Both operands have 64 bits, the quotient is in halves. PostgreSQL rounds it to as many decimals as the operands of each row say (vm/quotient.h),
 * and shows these; here all of a column's are at one scale, and what is shown is known of each row alone (ScaleUse). That scale is what the
 * greatest values of the operands lead to, as plans know of them; rows that need more decimals, or do not fit, are flagged.
 */
#include "pg/pg.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

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

int
quotient_scale(const CompileInput *input, List *args)
{
	const Expr *a = static_cast<const Expr *>(linitial(args));
	const Expr *b = static_cast<const Expr *>(lsecond(args));
	const int	scale_a = std::clamp(numeric_scale(input, a).scale, 0, SCALED_MAX_SCALE);
	const int	scale_b = std::clamp(numeric_scale(input, b).scale, 0, SCALED_MAX_SCALE);
	const double most_b = usual_greatest(input, b, scale_b);
	uint32_t	ignored = 0;
	double		most;
	int			least_weight;
	int			needed;
	int			room;

	/* the smallest number, and zero, by the greatest one */
	least_weight = static_cast<int>((std::min<int64_t>(sem::NumericLead(1, scale_a, &ignored), 0) - greatest_lead(most_b, scale_b) - 1) >> sem::LEAD_BITS);
	needed = std::max({MIN_DIGITS - least_weight * (1 << DIGIT_SHIFT), scale_a, scale_b});
	/* the greatest number by one, or by the constant: divisors below one are taken to be rare where that leaves no room */
	most = std::min(usual_greatest(input, a, scale_a), MOST_INTEGER / std::pow(10.0, scale_a));
	if (IsA(b, Const) && most_b > 0)
		most /= most_b;
	room = sem::ROUNDED_DECIMALS + static_cast<int>(std::floor(std::log10(MOST_INTEGER / std::max(most, 1.0))));
	return std::clamp(std::min((needed + 3) / 4, room / 4) * 4, LEAST_SCALE, MOST_SCALE);
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

bool
compile_quotient(Compiler *c, List *args, WideValue *out)
{
	const int	below = quotient_scale(c->input, args) - sem::ROUNDED_DECIMALS;
	WideFactor	a;
	WideFactor	b;
	int			special;
	int			infinite;
	int			scales;
	int			shown;
	int			common;
	int			whole;
	int			decimals;

	if (c->scale_use == ScaleUse::One)
	{
		refuse(c, "the display scale of a quotient depends on its operands");
		return false;
	}
	if (!compile_operand(c, static_cast<const Expr *>(linitial(args)), &a) || !compile_operand(c, static_cast<const Expr *>(lsecond(args)), &b))
		return false;
	special = quotient_specials(c, &a, &b, &infinite);
	scales = quotient_scales(c, a, b, below);
	/* zero needs no decimals, however many it shows */
	decimals = select64(c, with_constant64(c, Opcode::Eq, a.reg, 0), int_value(c, Type::I64, 0), scales);
	decimals = with_constant64(c, Opcode::Bound, decimals, sem::ROUNDED_DECIMALS + 1);
	shown = c->scale_use == ScaleUse::Each ? with_constant64(c, Opcode::Add, scales, below) : scales;
	if (infinite >= 0)
		shown = select64(c, infinite, int_value(c, Type::I64, 0), shown);

	common = Max(a.scale, b.scale);
	for (WideFactor *f : {&a, &b})
	{
		int64_t		constant;

		if (f->reg >= 0 && is_int_value(c, f->reg, &constant))
			f->reg = rescale(c, f->reg, common);
		else if (f->scale < common)
			f->reg = with_constant64(c, Opcode::Mul, f->reg, scaled_pow10[common - f->scale]);
	}
	if (!divide(c, a.reg, b.reg, below, std::min(greatest_value(c->input, static_cast<const Expr *>(linitial(args))), MOST_INTEGER) * std::pow(10.0, common + below) < MOST_INTEGER,
				&whole, &scales))
		return false;
	decimals = binary64(c, Opcode::RoundDecimals, scales, decimals);
	out->high = binary64(c, Opcode::DecimalsHigh, whole, decimals);
	out->low = binary64(c, Opcode::DecimalsLow, whole, decimals);
	out->scale = below + sem::ROUNDED_DECIMALS;
	out->special = false;
	out->shown = c->scale_use == ScaleUse::Each ? convert(c, shown, Type::I32) : -1;
	/* decimals that are not computed, integers of more than 64 bits */
	c->soft_errors = true;
	return out->high >= 0 && out->low >= 0 && (c->scale_use != ScaleUse::Each || out->shown >= 0) && put_special(c, out, special);
}

}  // namespace gpuvm
