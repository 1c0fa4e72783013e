/*
 * wide.cc: numerics of more than 64 bits, in two registers (tablet/wide_halves.h).
 *
 * All of it is arithmetic of 64 bits, which both virtual machines have: low halves are added and carry into the
 * high ones, and where these overflow, PostgreSQL answers. What is not here refuses a column of such numbers.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/numeric.h"
}

#include <utility>

#include "compiler/emit.h"
#include "pg/numeric_scaled.h"
#include "store/registry.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

/* A low half is multiplied by parts of so many bits, and so is a factor. */
constexpr int PART_BITS = WIDE_LOW_BITS / 2;
constexpr int PART_DECIMALS = 9;

/* -- which expressions ----------------------------------------------------------------------- */

static bool
is_wide_column(const CompileInput *input, const Var *var)
{
	for (int i = 0; i < input->ncursors; i++)
	{
		const CompileCursor *cursor = &input->cursors[i];
		AttrNumber	attnum;

		if (is_column_of(cursor, var, &attnum))
		{
			int			place = attnum <= 0 ? -1 : column_place(cursor, attnum);

			return place >= 0 && cursor->table->wide[place];
		}
	}
	return false;
}

/* The entry of a call that keeps numbers wide, and its arguments; NULL: it is none. */
static const FnEntry *
wide_call(const Expr *expr, List **args)
{
	const FnEntry *fn;

	if (IsA(expr, OpExpr))
	{
		fn = lookup_function(((const OpExpr *) expr)->opfuncid);
		*args = ((const OpExpr *) expr)->args;
	}
	else if (IsA(expr, FuncExpr))
	{
		fn = lookup_function(((const FuncExpr *) expr)->funcid);
		*args = ((const FuncExpr *) expr)->args;
	}
	else
		return nullptr;
	if (fn == nullptr || (fn->kind == FnKind::Same ? fn->function != F_NUMERIC_UPLUS
						  : fn->kind == FnKind::NumericBinary ? fn->opcode == Opcode::Remainder
						  : fn->kind != FnKind::NumericUnary || fn->opcode != Opcode::Neg))
		return nullptr;
	return fn;
}

bool
is_wide(const CompileInput *input, const Expr *expr)
{
	List	   *args;
	ListCell   *lc;

	if (IsA(expr, Var))
		return is_wide_column(input, (const Var *) expr);
	if (IsA(expr, RelabelType))
		return is_wide(input, ((const RelabelType *) expr)->arg);
	if (wide_call(expr, &args) == nullptr)
		return false;
	foreach(lc, args)
	{
		if (is_wide(input, static_cast<const Expr *>(lfirst(lc))))
			return true;
	}
	return false;
}

bool
meets_wide(const CompileInput *input, const FnEntry *fn, List *args)
{
	return fn != nullptr && is_comparison(fn) && fn->form == ValueForm::Numeric &&
		(is_wide(input, static_cast<const Expr *>(linitial(args))) || is_wide(input, static_cast<const Expr *>(lsecond(args))));
}

int
refuse_wide(Compiler *c, int cursor, AttrNumber attnum)
{
	return refuse(c, "column \"%s\" has numbers of more than 64 bits: they can be read, tested for null, compared, added, subtracted, multiplied by small numbers, counted, summed, averaged, taken the least and greatest of, grouped by, joined by = and sorted",
				  cursor_column_name(&c->input->cursors[cursor], attnum));
}

/* -- arithmetic of halves ---------------------------------------------------------------------- */

static int
binary(Compiler *c, Opcode op, int a, int b)
{
	return a < 0 || b < 0 ? -1 : value(c, op, Type::I64, a, b);
}

static int
with_constant(Compiler *c, Opcode op, int a, int64_t constant)
{
	const bool	shift = op == Opcode::ShiftLeft || op == Opcode::ShiftRight;

	return a < 0 ? -1 : binary(c, op, a, int_value(c, shift ? Type::I32 : Type::I64, constant));
}

/* high * 2^62 + low, of any low: what it has above 62 bits goes to the high half, rounded down. */
static bool
normalize(Compiler *c, int high, int low, int scale, WideValue *out)
{
	out->high = binary(c, Opcode::Add, high, with_constant(c, Opcode::ShiftRight, low, WIDE_LOW_BITS));
	out->low = with_constant(c, Opcode::BitAnd, low, WIDE_LOW_MASK);
	out->scale = scale;
	/* PostgreSQL's numbers do not overflow */
	c->soft_errors = true;
	return out->high >= 0 && out->low >= 0;
}

/* Times a factor of less than 2^31 in magnitude: the parts' products have 62 bits. */
static bool
times(Compiler *c, const WideValue &a, int factor, int scale, WideValue *out)
{
	int			lower = binary(c, Opcode::Mul, with_constant(c, Opcode::BitAnd, a.low, (int64_t{1} << PART_BITS) - 1), factor);
	int			upper = binary(c, Opcode::Mul, with_constant(c, Opcode::ShiftRight, a.low, PART_BITS), factor);
	int			low = binary(c, Opcode::Add, lower,
							 with_constant(c, Opcode::ShiftLeft, with_constant(c, Opcode::BitAnd, upper, (int64_t{1} << PART_BITS) - 1), PART_BITS));
	int			high = binary(c, Opcode::Add, binary(c, Opcode::Mul, a.high, factor), with_constant(c, Opcode::ShiftRight, upper, PART_BITS));

	return low >= 0 && high >= 0 && normalize(c, high, low, scale, out);
}

/* The same number at a scale that is no less. */
static bool
rescale_wide(Compiler *c, WideValue *a, int scale)
{
	if (scale > SCALED_MAX_WIDE_SCALE)
	{
		refuse(c, "a numeric has more than %d decimals", SCALED_MAX_WIDE_SCALE);
		return false;
	}
	while (a->scale < scale)
	{
		int			by = Min(scale - a->scale, PART_DECIMALS);
		int			factor = int_value(c, Type::I64, scaled_pow10[by]);

		if (factor < 0 || !times(c, *a, factor, a->scale + by, a))
			return false;
	}
	return true;
}

/* -- values --------------------------------------------------------------------------------------- */

static bool
wide_constant(Compiler *c, int128 v, int scale, WideValue *out)
{
	out->high = int_value(c, Type::I64, wide_high(v));
	out->low = int_value(c, Type::I64, wide_low(v));
	out->scale = scale;
	return out->high >= 0 && out->low >= 0;
}

static bool
compile_wide_const(Compiler *c, const Const *con, WideValue *out)
{
	int			scale = con->constisnull ? 0 : numeric_display_scale(reinterpret_cast<char *>(PG_DETOAST_DATUM(con->constvalue)));
	int128		v;

	if (con->constisnull)
	{
		out->high = out->low = null_value(c, Type::I64);
		out->scale = 0;
		return out->high >= 0;
	}
	if (scale < 0 || scale > SCALED_MAX_WIDE_SCALE || !numeric_at_wide_scale(con->constvalue, scale, &v))
	{
		refuse(c, "the numeric %s does not fit 126 bits", DatumGetCString(DirectFunctionCall1(numeric_out, con->constvalue)));
		return false;
	}
	return wide_constant(c, v, scale, out);
}

/* What is not wide itself: of one display scale, where that is shown (ScaleUse). */
static bool
widened(Compiler *c, const Expr *expr, WideValue *out)
{
	int			reg = compile_expr(c, expr);

	if (reg < 0)
		return false;
	out->high = with_constant(c, Opcode::ShiftRight, reg, WIDE_LOW_BITS);
	out->low = with_constant(c, Opcode::BitAnd, reg, WIDE_LOW_MASK);
	out->scale = c->info[reg].scale;
	return out->high >= 0 && out->low >= 0;
}

static bool
compile_product(Compiler *c, List *args, WideValue *out)
{
	const Expr *a = static_cast<const Expr *>(linitial(args));
	const Expr *b = static_cast<const Expr *>(lsecond(args));
	WideValue	wide;
	int			factor;

	if (is_wide(c->input, a) && is_wide(c->input, b))
	{
		refuse(c, "numbers of more than 64 bits are multiplied with each other");
		return false;
	}
	if (!compile_wide(c, is_wide(c->input, a) ? a : b, &wide))
		return false;
	factor = compile_expr(c, is_wide(c->input, a) ? b : a);
	if (factor < 0)
		return false;
	out->scale = wide.scale + c->info[factor].scale;
	if (out->scale > SCALED_MAX_RESULT_SCALE)
	{
		refuse(c, "a numeric has more than %d decimals", SCALED_MAX_RESULT_SCALE);
		return false;
	}
	factor = with_constant(c, Opcode::Bound, factor, int64_t{1} << PART_BITS);
	return factor >= 0 && times(c, wide, factor, out->scale, out);
}

static bool
compile_sum(Compiler *c, Opcode op, List *args, WideValue *out)
{
	WideValue	a;
	WideValue	b;

	if (!compile_wide(c, static_cast<const Expr *>(linitial(args)), &a) || !compile_wide(c, static_cast<const Expr *>(lsecond(args)), &b) ||
		!rescale_wide(c, &a, Max(a.scale, b.scale)) || !rescale_wide(c, &b, Max(a.scale, b.scale)))
		return false;
	return normalize(c, binary(c, op, a.high, b.high), binary(c, op, a.low, b.low), a.scale, out);
}

static bool
compile_negative(Compiler *c, const Expr *arg, WideValue *out)
{
	WideValue	a;

	if (!compile_wide(c, arg, &a))
		return false;
	a.high = value(c, Opcode::Neg, Type::I64, a.high);
	a.low = a.high < 0 ? -1 : value(c, Opcode::Neg, Type::I64, a.low);
	return a.low >= 0 && normalize(c, a.high, a.low, a.scale, out);
}

bool
compile_wide(Compiler *c, const Expr *expr, WideValue *out)
{
	const FnEntry *fn;
	List	   *args;

	check_stack_depth();
	if (IsA(expr, Const))
		return compile_wide_const(c, (const Const *) expr, out);
	if (!is_wide(c->input, expr))
		return widened(c, expr, out);
	if (IsA(expr, Var))
		return load_wide(c, (const Var *) expr, out);
	if (IsA(expr, RelabelType))
		return compile_wide(c, ((const RelabelType *) expr)->arg, out);
	fn = wide_call(expr, &args);
	if (fn->kind == FnKind::Same)
		return compile_wide(c, static_cast<const Expr *>(linitial(args)), out);
	if (fn->kind == FnKind::NumericUnary)
		return compile_negative(c, static_cast<const Expr *>(linitial(args)), out);
	return fn->opcode == Opcode::Mul ? compile_product(c, args, out) : compile_sum(c, fn->opcode, args, out);
}

/* -- comparisons ------------------------------------------------------------------------------------ */

/* A side of one: how many decimals are shown does not matter. */
static bool
wide_side(Compiler *c, const Expr *expr, WideValue *out)
{
	ScaleUse	outer = c->scale_use;
	bool		done;

	c->scale_use = ScaleUse::None;
	done = compile_wide(c, expr, out);
	c->scale_use = outer;
	return done;
}

int
compare_wide(Compiler *c, Opcode op, const WideValue &a, const WideValue &b)
{
	const bool	less = op == Opcode::Lt || op == Opcode::Le;
	int			high;
	int			low;

	if (op == Opcode::Eq || op == Opcode::Ne)
	{
		high = value(c, op, Type::I64, a.high, b.high);
		low = high < 0 ? -1 : value(c, op, Type::I64, a.low, b.low);
		return low < 0 ? -1 : value(c, op == Opcode::Eq ? Opcode::And : Opcode::Or, Type::Bool, high, low);
	}
	high = value(c, Opcode::Eq, Type::I64, a.high, b.high);
	low = high < 0 ? -1 : value(c, op, Type::I64, a.low, b.low);
	low = low < 0 ? -1 : value(c, Opcode::And, Type::Bool, high, low);
	high = low < 0 ? -1 : value(c, less ? Opcode::Lt : Opcode::Gt, Type::I64, a.high, b.high);
	return high < 0 ? -1 : value(c, Opcode::Or, Type::Bool, high, low);
}

static Expr *
call(Oid function, Oid type, List *args)
{
	return reinterpret_cast<Expr *>(makeFuncExpr(function, type, args, InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL));
}

static Expr *
numeric_const(int64_t v)
{
	return reinterpret_cast<Expr *>(makeConst(NUMERICOID, -1, InvalidOid, -1, scaled_to_numeric(v, 0), false, false));
}

/*
 * A value that is known when execution starts, times 10^scale, rounded up or down, in halves, which PostgreSQL computes: div() and mod()
 * round towards zero. Where it does not fit, or is no number, that raises, and PostgreSQL's own plan runs.
 */
static bool
parameter_bound(Compiler *c, const Expr *expr, int scale, bool up, WideValue *out)
{
	Expr	   *bound = const_cast<Expr *>(expr);
	Expr	   *low;
	Expr	   *high;

	for (int rest = scale; rest > 0; rest -= SCALED_MAX_SCALE)
		bound = call(F_NUMERIC_MUL, NUMERICOID, list_make2(bound, numeric_const(scaled_pow10[Min(rest, SCALED_MAX_SCALE)])));
	bound = call(up ? F_CEIL_NUMERIC : F_FLOOR_NUMERIC, NUMERICOID, list_make1(bound));
	low = call(F_MOD_NUMERIC_NUMERIC, NUMERICOID, list_make2(bound, numeric_const(WIDE_LOW_MASK + 1)));
	low = call(F_NUMERIC_ADD, NUMERICOID, list_make2(low, numeric_const(WIDE_LOW_MASK + 1)));
	low = call(F_MOD_NUMERIC_NUMERIC, NUMERICOID, list_make2(low, numeric_const(WIDE_LOW_MASK + 1)));
	high = call(F_DIV, NUMERICOID, list_make2(call(F_NUMERIC_SUB, NUMERICOID, list_make2(bound, low)), numeric_const(WIDE_LOW_MASK + 1)));
	out->low = compile_param(c, call(F_INT8_NUMERIC, INT8OID, list_make1(low)));
	out->high = out->low < 0 ? -1 : compile_param(c, call(F_INT8_NUMERIC, INT8OID, list_make1(high)));
	out->scale = scale;
	return out->high >= 0;
}

/* Of a constant that has more decimals than the values, the bound at theirs that these are on the same side of. */
static bool
constant_bound(Compiler *c, const Const *con, int scale, bool up, WideValue *out)
{
	Datum		bound = con->constvalue;
	int128		v;

	for (int rest = scale; rest > 0; rest -= SCALED_MAX_SCALE)
		bound = DirectFunctionCall2(numeric_mul, bound, scaled_to_numeric(scaled_pow10[Min(rest, SCALED_MAX_SCALE)], 0));
	bound = DirectFunctionCall1(up ? numeric_ceil : numeric_floor, bound);
	return numeric_at_wide_scale(bound, 0, &v) && wide_constant(c, v, scale, out);
}

static bool
is_finite_const(const Expr *expr)
{
	const Const *con = (const Const *) expr;

	return IsA(expr, Const) && !con->constisnull && !numeric_is_nan(DatumGetNumeric(con->constvalue)) && !numeric_is_inf(DatumGetNumeric(con->constvalue));
}

int
compile_wide_comparison(Compiler *c, Opcode op, List *args)
{
	const Expr *one = static_cast<const Expr *>(linitial(args));
	const Expr *other = static_cast<const Expr *>(lsecond(args));
	const bool	equality = op == Opcode::Eq || op == Opcode::Ne;
	WideValue	a;
	WideValue	b;

	if (!is_wide(c->input, one))
	{
		std::swap(one, other);
		op = commuted(op);
	}
	if (!wide_side(c, one, &a))
		return -1;
	if (!IsA(other, Const) && known_at_start(other))
	{
		int			lower;
		int			upper;

		if (!equality)
			return parameter_bound(c, other, a.scale, rounds_up(op), &b) ? compare_wide(c, op, a, b) : -1;
		/* what equals it lies between it rounded up and rounded down */
		lower = parameter_bound(c, other, a.scale, true, &b) ? compare_wide(c, Opcode::Ge, a, b) : -1;
		upper = lower >= 0 && parameter_bound(c, other, a.scale, false, &b) ? compare_wide(c, Opcode::Le, a, b) : -1;
		upper = upper < 0 ? -1 : value(c, Opcode::And, Type::Bool, lower, upper);
		return op == Opcode::Ne ? compile_not(c, upper) : upper;
	}
	if (!equality && is_finite_const(other) && constant_bound(c, (const Const *) other, a.scale, rounds_up(op), &b))
		return compare_wide(c, op, a, b);
	if (!wide_side(c, other, &b) || !rescale_wide(c, &a, Max(a.scale, b.scale)) || !rescale_wide(c, &b, Max(a.scale, b.scale)))
		return -1;
	return compare_wide(c, op, a, b);
}

int
compile_wide_distinct(Compiler *c, List *args)
{
	WideValue	a;
	WideValue	b;
	int			high;
	int			low;

	if (!wide_side(c, static_cast<const Expr *>(linitial(args)), &a) || !wide_side(c, static_cast<const Expr *>(lsecond(args)), &b) ||
		!rescale_wide(c, &a, Max(a.scale, b.scale)) || !rescale_wide(c, &b, Max(a.scale, b.scale)))
		return -1;
	high = value(c, Opcode::IsDistinct, Type::I64, a.high, b.high);
	low = high < 0 ? -1 : value(c, Opcode::IsDistinct, Type::I64, a.low, b.low);
	return low < 0 ? -1 : value(c, Opcode::Or, Type::Bool, high, low);
}

bool
compile_wide_key(Compiler *c, const Expr *expr, int scale, WideValue *out)
{
	if (!wide_side(c, expr, out) || !rescale_wide(c, out, scale))
		return false;
	if (out->scale != scale)
		refuse(c, "the sides of a join's key have other decimals than expected");
	return out->scale == scale;
}

}  // namespace gpuvm
