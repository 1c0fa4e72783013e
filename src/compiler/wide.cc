/*
 * wide.cc: numerics of more than 64 bits, in two registers (tablet/wide_halves.h).
 *
 * All of it is arithmetic of 64 bits, which both virtual machines have: low halves are added and carry into the
 * high ones, and where these overflow, PostgreSQL answers. What is neither here nor in the other wide_*.cc refuses a column of such numbers.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/numeric.h"
}

#include <climits>
#include <cmath>
#include <utility>

#include "compiler/emit.h"
#include "pg/numeric_scaled.h"
#include "store/registry.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

/* A low half is multiplied by parts of so many bits, and so is a factor. */
constexpr int PART_BITS = WIDE_LOW_BITS / 2;

/* -- which expressions ----------------------------------------------------------------------- */

const ImportedTable *
table_of(const CompileInput *input, const Var *var, int *place)
{
	for (int i = 0; i < input->ncursors; i++)
	{
		const CompileCursor *cursor = &input->cursors[i];
		AttrNumber	attnum;

		if (is_column_of(cursor, var, &attnum))
		{
			*place = attnum <= 0 ? -1 : column_place(cursor, attnum);
			return *place < 0 ? nullptr : cursor->table;
		}
	}
	return nullptr;
}

static bool
is_wide_column(const CompileInput *input, const Var *var)
{
	int			place;
	const ImportedTable *table = table_of(input, var, &place);

	return table != nullptr && table->wide[place];
}

bool
is_special_column(const CompileInput *input, const Var *var)
{
	int			place;
	const ImportedTable *table = table_of(input, var, &place);

	return table != nullptr && table->special[place];
}

/* The entry of a call that keeps numbers wide, and its arguments; NULL: it is none. */
static const FnEntry *
wide_call(const Expr *expr, List **args)
{
	const FnEntry *fn = called_function(expr, args);

	if (fn == nullptr || (fn->kind == FnKind::Same ? fn->function != F_NUMERIC_UPLUS
						  : fn->kind == FnKind::NumericBinary ? fn->opcode == Opcode::Remainder
						  : fn->kind != FnKind::NumericUnary && fn->kind != FnKind::NumericRound && fn->kind != FnKind::NumericCeil &&
						  fn->kind != FnKind::NumericSign && fn->kind != FnKind::NumericTypmod))
		return nullptr;
	return fn;
}

static bool
find_wide(const CompileInput *input, const Expr *expr)
{
	List	   *args;
	ListCell   *lc;

	if (IsA(expr, Var))
		return is_wide_column(input, (const Var *) expr);
	if (IsA(expr, RelabelType))
		return is_wide(input, ((const RelabelType *) expr)->arg);
	if (has_wide_arms(input, expr))
		return true;
	if (wide_call(expr, &args) == nullptr)
		return false;
	if (is_quotient(expr))
		return true;
	foreach(lc, args)
	{
		if (is_wide(input, static_cast<const Expr *>(lfirst(lc))))
			return true;
	}
	return false;
}

bool
is_wide(const CompileInput *input, const Expr *expr)
{
	return find_fact<bool>(Fact::IsWide, input, expr, [&]() { return find_wide(input, expr); });
}

bool
meets_wide(const CompileInput *input, const FnEntry *fn, List *args)
{
	return fn != nullptr && is_comparison(fn) && fn->form == ValueForm::Numeric &&
		(is_wide(input, static_cast<const Expr *>(linitial(args))) || is_wide(input, static_cast<const Expr *>(lsecond(args))) ||
		 is_special_const(linitial(args)) || is_special_const(lsecond(args)));
}

int
refuse_wide(Compiler *c, int cursor, AttrNumber attnum)
{
	return refuse(c, "column \"%s\" has numbers of more than 64 bits, NaN or infinities: functions other than arithmetic, rounding and comparisons do not take it",
				  cursor_column_name(&c->input->cursors[cursor], attnum));
}

/* -- arithmetic of halves ---------------------------------------------------------------------- */

int
binary64(Compiler *c, Opcode op, int a, int b)
{
	return a < 0 || b < 0 ? -1 : value(c, op, Type::I64, a, b);
}

int
with_constant64(Compiler *c, Opcode op, int a, int64_t constant)
{
	const bool	shift = op == Opcode::ShiftLeft || op == Opcode::ShiftRight;

	return a < 0 ? -1 : binary64(c, op, a, int_value(c, shift ? Type::I32 : Type::I64, constant));
}

int
select64(Compiler *c, int cond, int then, int otherwise)
{
	return cond < 0 || then < 0 || otherwise < 0 ? -1 : value(c, Opcode::Select, Type::I64, then, otherwise, cond);
}

/* What the low half has above 62 bits goes to the high half, rounded down. */
bool
normalize_wide(Compiler *c, int high, int low, int scale, WideValue *out)
{
	out->high = binary64(c, Opcode::Add, high, with_constant64(c, Opcode::ShiftRight, low, WIDE_LOW_BITS));
	out->high = with_constant64(c, Opcode::Bound, out->high, WIDE_HIGH_LIMIT);
	out->low = with_constant64(c, Opcode::BitAnd, low, WIDE_LOW_MASK);
	out->scale = scale;
	out->special = false;
	/* PostgreSQL's numbers do not overflow */
	c->soft_errors = true;
	return out->high >= 0 && out->low >= 0;
}

/* Times a factor of less than 2^31 in magnitude: the parts' products have 62 bits. */
static bool
times(Compiler *c, const WideValue &a, int factor, int scale, WideValue *out)
{
	int			lower = binary64(c, Opcode::Mul, with_constant64(c, Opcode::BitAnd, a.low, (int64_t{1} << PART_BITS) - 1), factor);
	int			upper = binary64(c, Opcode::Mul, with_constant64(c, Opcode::ShiftRight, a.low, PART_BITS), factor);
	int			low = binary64(c, Opcode::Add, lower,
							 with_constant64(c, Opcode::ShiftLeft, with_constant64(c, Opcode::BitAnd, upper, (int64_t{1} << PART_BITS) - 1), PART_BITS));
	int			high = binary64(c, Opcode::Add, binary64(c, Opcode::Mul, a.high, factor), with_constant64(c, Opcode::ShiftRight, upper, PART_BITS));

	return low >= 0 && high >= 0 && normalize_wide(c, high, low, scale, out);
}

bool
rescale_wide(Compiler *c, WideValue *a, int scale)
{
	int			special;

	if (a->scale < 0)
		a->scale = scale;
	if (a->scale >= scale)
		return true;
	if (scale > SCALED_MAX_WIDE_SCALE)
	{
		refuse(c, "a numeric has more than %d decimals", SCALED_MAX_WIDE_SCALE);
		return false;
	}
	special = take_special(c, a);
	while (a->scale < scale)
	{
		int			by = Min(scale - a->scale, WIDE_PART_DECIMALS);
		int			factor = int_value(c, Type::I64, scaled_pow10[by]);

		if (factor < 0 || !times(c, *a, factor, a->scale + by, a))
			return false;
	}
	return put_special(c, a, special);
}

/* -- values --------------------------------------------------------------------------------------- */

bool
wide_constant(Compiler *c, int128 v, int scale, WideValue *out)
{
	out->high = int_value(c, Type::I64, wide_high(v));
	out->low = int_value(c, Type::I64, wide_low(v));
	out->scale = scale;
	out->special = false;
	return out->high >= 0 && out->low >= 0;
}

static bool
compile_wide_const(Compiler *c, const Const *con, WideValue *out)
{
	int			scale = con->constisnull ? 0 : numeric_display_scale(reinterpret_cast<char *>(PG_DETOAST_DATUM(con->constvalue)));
	WideSpecial which;
	int128		v;

	if (con->constisnull)
	{
		*out = WideValue{null_value(c, Type::I64), null_value(c, Type::I64), -1};
		return out->high >= 0 && out->low >= 0;
	}
	if (numeric_special(con->constvalue, &which))
	{
		*out = WideValue{int_value(c, Type::I64, wide_special(which)), int_value(c, Type::I64, 0), -1, true};
		return out->high >= 0 && out->low >= 0;
	}
	if (scale < 0 || scale > SCALED_MAX_WIDE_SCALE || !numeric_at_wide_scale(con->constvalue, scale, &v))
	{
		refuse(c, "the numeric %s does not fit 125 bits", DatumGetCString(DirectFunctionCall1(numeric_out, con->constvalue)));
		return false;
	}
	return wide_constant(c, v, scale, out);
}

bool
widen_narrow(Compiler *c, int reg, WideValue *out)
{
	if (reg < 0)
		return false;
	*out = WideValue{with_constant64(c, Opcode::ShiftRight, reg, WIDE_LOW_BITS), with_constant64(c, Opcode::BitAnd, reg, WIDE_LOW_MASK),
		c->info[reg].scale, false, c->info[reg].shown};
	return out->high >= 0 && out->low >= 0;
}

bool
has_wide_squares(const CompileInput *input, const Expr *expr)
{
	const NumericScale scale = numeric_scale(input, expr);
	const double greatest = greatest_value(input, expr) * std::pow(10.0, Max(scale.scale, 0));

	return !scale.mixed && !std::isinf(greatest) && greatest * greatest > static_cast<double>(PG_INT64_MAX);
}

/* Times a factor of up to 62 bits: by two parts of it. */
static bool
times_long(Compiler *c, const WideValue &a, int factor, int scale, WideValue *out)
{
	WideValue	lower;
	WideValue	upper;
	int			unit = int_value(c, Type::I64, int64_t{1} << PART_BITS);

	factor = with_constant64(c, Opcode::Bound, factor, WIDE_HIGH_LIMIT);
	if (factor < 0 || unit < 0 ||
		!times(c, a, with_constant64(c, Opcode::BitAnd, factor, (int64_t{1} << PART_BITS) - 1), scale, &lower) ||
		!times(c, a, with_constant64(c, Opcode::ShiftRight, factor, PART_BITS), scale, &upper) || !times(c, upper, unit, scale, &upper))
		return false;
	return normalize_wide(c, binary64(c, Opcode::Add, lower.high, upper.high), binary64(c, Opcode::Add, lower.low, upper.low), scale, out);
}

/* Is a column of such numbers in it, other than for the sake of NaN or infinities? Or a quotient, rounded or not? */
static bool
reads_long_walker(Node *node, void *input)
{
	const CompileInput *in = static_cast<const CompileInput *>(input);

	if (node == nullptr)
		return false;
	if (IsA(node, Var))
		return is_wide_column(in, (const Var *) node) && !is_special_column(in, (const Var *) node);
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(reads_long_walker), input);
}

/*
 * Of two numbers in halves one has to fit 64 bits. So has one that is in halves for the sake of NaN or infinities, or as a quotient
 * was rounded, as a rule.
 */
bool
is_factor(const CompileInput *input, const Expr *expr)
{
	return !is_wide(input, expr) || (numeric_scale(input, expr).scale <= SCALED_MAX_SCALE &&
									 !reads_long_walker(reinterpret_cast<Node *>(const_cast<Expr *>(expr)), const_cast<CompileInput *>(input)));
}

bool
compile_factor(Compiler *c, const Expr *expr, WideFactor *out)
{
	WideValue	wide;

	out->special = NO_SPECIALS;
	if (!is_wide(c->input, expr))
	{
		out->reg = compile_expr(c, expr);
		out->shown = out->reg < 0 ? -1 : c->info[out->reg].shown;
	}
	else
	{
		if (!compile_wide(c, expr, &wide))
			return false;
		out->special = take_special(c, &wide);
		out->reg = out->special == -1 ? -1 : narrow_wide(c, wide);
		out->shown = wide.shown;
	}
	out->scale = out->reg < 0 ? -1 : c->info[out->reg].scale;
	return out->reg >= 0;
}

/* What is shown of a result, of the decimals of both: -1 where all of both have one display scale. */
static bool
combine_shown(Compiler *c, Opcode op, int a, int scale_a, int b, int scale_b, int *out)
{
	*out = -1;
	if (a < 0 && b < 0)
		return true;
	a = a >= 0 ? a : int_value(c, Type::I32, scale_a);
	b = b >= 0 ? b : int_value(c, Type::I32, scale_b);
	*out = a < 0 || b < 0 ? -1 : value(c, op, Type::I32, a, b);
	return *out >= 0;
}

static bool
compile_product(Compiler *c, List *args, WideValue *out)
{
	const Expr *a = static_cast<const Expr *>(linitial(args));
	const Expr *b = static_cast<const Expr *>(lsecond(args));
	WideValue	wide;
	WideFactor	factor;
	int			of_wide;
	int			shown;
	bool		small;

	if (!is_factor(c->input, b) || !is_wide(c->input, a))
		std::swap(a, b);
	if (!is_factor(c->input, b))
	{
		refuse(c, "numbers of more than 64 bits are multiplied with each other");
		return false;
	}
	if (!compile_wide(c, a, &wide) || !compile_factor(c, b, &factor))
		return false;
	out->scale = wide.scale + factor.scale;
	if (out->scale > SCALED_MAX_RESULT_SCALE)
	{
		refuse(c, "a numeric has more than %d decimals", SCALED_MAX_RESULT_SCALE);
		return false;
	}
	of_wide = take_special(c, &wide);
	if (of_wide == -1 || !combine_shown(c, Opcode::Add, wide.shown, wide.scale, factor.shown, factor.scale, &shown))
		return false;
	/* less than 2^31 also where it is rounded here */
	small = greatest_value(c->input, b) * std::pow(10.0, factor.scale) < 2e9;
	if (small)
		factor.reg = with_constant64(c, Opcode::Bound, factor.reg, int64_t{1} << PART_BITS);
	if (factor.reg < 0 || !(small ? times(c, wide, factor.reg, out->scale, out) : times_long(c, wide, factor.reg, out->scale, out)))
		return false;
	out->shown = shown;
	return put_special(c, out, product_specials(c, wide, of_wide, factor.reg, factor.special));
}

static bool
compile_sum(Compiler *c, Opcode op, List *args, WideValue *out)
{
	WideValue	a;
	WideValue	b;
	int			of_a;
	int			of_b;
	int			shown;

	if (!compile_wide(c, static_cast<const Expr *>(linitial(args)), &a) || !compile_wide(c, static_cast<const Expr *>(lsecond(args)), &b) ||
		!combine_shown(c, Opcode::Greatest, a.shown, a.scale, b.shown, b.scale, &shown) ||
		!rescale_wide(c, &a, Max(a.scale, b.scale)) || !rescale_wide(c, &b, Max(a.scale, b.scale)))
		return false;
	of_a = take_special(c, &a);
	of_b = take_special(c, &b);
	if (of_a == -1 || of_b == -1)
		return false;
	if (!normalize_wide(c, binary64(c, op, a.high, b.high), binary64(c, op, a.low, b.low), a.scale, out))
		return false;
	out->shown = shown;
	return put_special(c, out, sum_special(c, of_a, op == Opcode::Sub ? negative_special(c, of_b) : of_b));
}

/* -x, abs(x) */
static bool
compile_unary(Compiler *c, Opcode op, const Expr *arg, WideValue *out)
{
	WideValue	a;
	int			special = compile_wide(c, arg, &a) ? take_special(c, &a) : -1;
	int			high;
	int			low;

	if (special == -1)
		return false;
	high = value(c, Opcode::Neg, Type::I64, a.high);
	low = high < 0 ? -1 : value(c, Opcode::Neg, Type::I64, a.low);
	if (low < 0 || !normalize_wide(c, high, low, a.scale, out))
		return false;
	out->shown = a.shown;
	if (op == Opcode::Neg)
		return put_special(c, out, negative_special(c, special));
	low = with_constant64(c, Opcode::Lt, a.high, 0);
	out->high = select64(c, low, out->high, a.high);
	out->low = select64(c, low, out->low, a.low);
	return out->high >= 0 && out->low >= 0 && put_special(c, out, absolute_special(c, special));
}

static bool
compile_rounded(Compiler *c, const FnEntry *fn, List *args, WideValue *out)
{
	const int	digits = round_digits(args);

	if (is_shown_apart(c->input, fn->function, args))
	{
		if (c->scale_use == ScaleUse::One)
			return refuse(c, "the display scale of a numeric differs from row to row") >= 0;
		if (!compile_wide_value(c, static_cast<const Expr *>(linitial(args)), out))
			return false;
		out->shown = c->scale_use == ScaleUse::None ? -1 : convert(c, compile_expr(c, static_cast<const Expr *>(lsecond(args))), Type::I32);
		return c->scale_use == ScaleUse::None || out->shown >= 0;
	}
	if (digits < -SCALED_MAX_SCALE || digits > SCALED_MAX_WIDE_SCALE)
	{
		refuse(c, digits == INT_MIN ? "the number of digits to round to is not a constant" : "a number is rounded to more than %d digits", SCALED_MAX_SCALE);
		return false;
	}
	return compile_wide_value(c, static_cast<const Expr *>(linitial(args)), out) &&
		round_wide(c, out, digits, fn->kind == FnKind::NumericCeil ? WideRounding::Up : fn->opcode == Opcode::Div ? WideRounding::ToZero
				   : fn->opcode == Opcode::DivFloor ? WideRounding::Down : WideRounding::Nearest);
}

bool
compile_wide(Compiler *c, const Expr *expr, WideValue *out)
{
	const FnEntry *fn;
	List	   *args;

	check_stack_depth();
	if (IsA(expr, Const))
		return compile_wide_const(c, (const Const *) expr, out);
	/* of one display scale, where that is shown (ScaleUse) */
	if (!is_wide(c->input, expr))
		return widen_narrow(c, compile_expr(c, expr), out);
	if (IsA(expr, Var))
		return load_wide(c, (const Var *) expr, out);
	if (IsA(expr, RelabelType))
		return compile_wide(c, ((const RelabelType *) expr)->arg, out);
	if (has_wide_arms(c->input, expr))
		return compile_wide_arms(c, expr, out);
	fn = wide_call(expr, &args);
	if (fn->kind == FnKind::Same)
		return compile_wide(c, static_cast<const Expr *>(linitial(args)), out);
	switch (fn->kind)
	{
		case FnKind::NumericUnary:
			return compile_unary(c, fn->opcode, static_cast<const Expr *>(linitial(args)), out);
		case FnKind::NumericBinary:
			return fn->opcode == Opcode::Div ? compile_quotient(c, args, out)
				: fn->opcode == Opcode::Mul ? compile_product(c, args, out) : compile_sum(c, fn->opcode, args, out);
		/* the others make a scale of their own */
		case FnKind::NumericSign:
			return compile_wide_sign(c, static_cast<const Expr *>(linitial(args)), out);
		case FnKind::NumericTypmod:
			return compile_wide_typmod(c, args, out);
		default:
			return compile_rounded(c, fn, args, out);
	}
}

}  // namespace gpuvm
