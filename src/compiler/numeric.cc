/*
 * numeric.cc: numerics as integers times 10^-scale.
 *
 * Every register has one scale, known when the program is made. It is what
 * PostgreSQL shows, too, but for a CASE whose arms differ: that is computed at the
 * greatest of their scales, and what is shown is known of each row alone. What does not
 * fit 64 bits is flagged, and PostgreSQL answers; no error of a numeric becomes a user's.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/cash.h"
#include "utils/fmgroids.h"
#include "utils/numeric.h"
#include "utils/pg_locale.h"
}

#include <climits>
#include <cmath>

#include "compiler/emit.h"
#include "pg/numeric_scaled.h"
#include "store/registry.h"

namespace gpuvm {

/* A float8 has every integer below it, and so the quotient by a power of ten is rounded once, as the text is that PostgreSQL reads. */
constexpr int64_t FLOAT8_EXACT = (int64_t{1} << 53) + 1;

/* More than any number of a program. */
constexpr double BEYOND_HALVES = 1e40;

/* -- scales ------------------------------------------------------------------------- */

constexpr NumericScale ANY_SCALE = {-1, false};

static int
const_scale(const Const *con)
{
	return con->constisnull ? -1 : numeric_display_scale(reinterpret_cast<char *>(PG_DETOAST_DATUM(con->constvalue)));
}

/* 64 bits hold 0.5, but not all decimals of 0.50000000000000000000, as quotients of constants are shown: at the least scale, then. */
static NumericScale
scale_of_const(const Const *con)
{
	const int	scale = const_scale(con);
	int64		v;

	if (scale < 0 || (scale <= SCALED_MAX_SCALE && numeric_at_scale(con->constvalue, scale, &v)))
		return NumericScale{scale, false};
	for (int least = 0; least <= SCALED_MAX_SCALE; least++)
	{
		if (numeric_at_scale(con->constvalue, least, &v))
			return NumericScale{least, true, true};
	}
	return NumericScale{scale, false};
}

/* round(x), round(x, n): n; INT_MIN if it is no constant. */
int
round_digits(List *args)
{
	const Const *con;

	if (list_length(args) < 2)
		return 0;
	con = static_cast<const Const *>(lsecond(args));
	return IsA(con, Const) && !con->constisnull ? DatumGetInt32(con->constvalue) : INT_MIN;
}

int
typmod_scale(List *args, int *precision)
{
	const Const *con = static_cast<const Const *>(lsecond(args));
	int32		typmod;
	int			scale;

	if (!IsA(con, Const) || con->constisnull)
		return -1;
	typmod = DatumGetInt32(con->constvalue);
	if (typmod < static_cast<int32>(VARHDRSZ))
		return -1;
	*precision = ((typmod - VARHDRSZ) >> 16) & 0xffff;
	scale = (((typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024;
	return scale < 0 || scale > SCALED_MAX_SCALE ? -1 : scale;
}

NumericScale
common_scale(const NumericScale &a, const NumericScale &b)
{
	if (a.scale < 0)
		return b;
	if (b.scale < 0)
		return a;
	return NumericScale{Max(a.scale, b.scale), a.mixed || b.mixed || a.scale != b.scale, a.longer || b.longer};
}

/* Has a sum of both the decimals of the first in any case? */
static bool
shows_greatest(const NumericScale &a, const NumericScale &b)
{
	return !a.mixed && !b.longer && (a.scale >= b.scale || !b.mixed);
}

static NumericScale
scale_of_list(const CompileInput *input, List *args)
{
	NumericScale all = ANY_SCALE;
	ListCell   *lc;

	foreach(lc, args)
		all = common_scale(all, numeric_scale(input, static_cast<const Expr *>(lfirst(lc))));
	return all;
}

static NumericScale
scale_of_column(const CompileInput *input, const Var *var)
{
	for (int i = 0; i < input->ncursors; i++)
	{
		const CompileCursor *cursor = &input->cursors[i];
		AttrNumber	attnum;

		if (is_column_of(cursor, var, &attnum))
		{
			int			place = column_place(cursor, attnum);

			return place < 0 ? ANY_SCALE : NumericScale{cursor->table->scales[place], false};
		}
	}
	return ANY_SCALE;
}

bool
is_shown_apart(const CompileInput *input, Oid function, List *args)
{
	const Var  *number = static_cast<const Var *>(linitial(args));
	const Var  *scale = list_length(args) < 2 ? nullptr : static_cast<const Var *>(lsecond(args));

	if (function != F_ROUND_NUMERIC_INT4 || !IsA(number, Var) || !IsA(scale, Var))
		return false;
	for (int i = 0; i < input->ncursors; i++)
	{
		const CompileCursor *cursor = &input->cursors[i];
		AttrNumber	of;
		AttrNumber	by;

		if (is_column_of(cursor, number, &of) && is_column_of(cursor, scale, &by))
			return list_member(cursor->shown, list_make2_int(of, by));
	}
	return false;
}

static NumericScale
scale_of_call(const CompileInput *input, Oid function, List *args)
{
	const FnEntry *fn = lookup_function(function);
	NumericScale a;
	NumericScale b;
	int			precision;
	int			n;

	if (fn == nullptr)
		return ANY_SCALE;
	switch (fn->kind)
	{
		case FnKind::Same:
		case FnKind::NumericUnary:
			return numeric_scale(input, static_cast<const Expr *>(linitial(args)));
		case FnKind::NumericBinary:
			a = numeric_scale(input, static_cast<const Expr *>(linitial(args)));
			b = numeric_scale(input, static_cast<const Expr *>(lsecond(args)));
			if (fn->opcode == Opcode::Div)
				return known_at_start(static_cast<const Expr *>(linitial(args))) && known_at_start(static_cast<const Expr *>(lsecond(args))) ? ANY_SCALE
					: NumericScale{quotient_scale(input, args), true};
			if (fn->opcode == Opcode::Mul)
				return NumericScale{Max(a.scale, 0) + Max(b.scale, 0), a.mixed || b.mixed, a.longer || b.longer};
			return NumericScale{Max(a.scale, b.scale), !shows_greatest(a, b) && !shows_greatest(b, a), a.longer || b.longer};
		case FnKind::NumericRound:
			if (is_shown_apart(input, function, args))
				return NumericScale{numeric_scale(input, static_cast<const Expr *>(linitial(args))).scale, true, true};
			n = round_digits(args);
			return n > SCALED_MAX_SCALE ? ANY_SCALE : NumericScale{Max(n, 0), false};
		case FnKind::NumericCeil:
		case FnKind::NumericSign:
		case FnKind::NumericFromInt:
		case FnKind::NumericDiv:
			return NumericScale{0, false};
		case FnKind::NumericFromMoney:
			return NumericScale{money_scale(), false};
		case FnKind::NumericTypmod:
			n = typmod_scale(args, &precision);
			return n >= 0 ? NumericScale{n, false} : numeric_scale(input, static_cast<const Expr *>(linitial(args)));
		case FnKind::Extract:
		case FnKind::ExtractDate:
		case FnKind::ExtractTime:
		case FnKind::ExtractZoned:
		case FnKind::ExtractInterval:
			return NumericScale{extract_scale(fn, args), false};
		default:
			return ANY_SCALE;
	}
}

static NumericScale
find_scale(const CompileInput *input, const Expr *expr)
{
	NumericScale all = ANY_SCALE;
	ListCell   *lc;

	switch (nodeTag(expr))
	{
		case T_Var:
			return scale_of_column(input, (const Var *) expr);
		case T_Const:
			return scale_of_const((const Const *) expr);
		case T_PlaceHolderVar:
			return numeric_scale(input, ((const PlaceHolderVar *) expr)->phexpr);
		case T_RelabelType:
			return numeric_scale(input, ((const RelabelType *) expr)->arg);
		case T_FuncExpr:
			return scale_of_call(input, ((const FuncExpr *) expr)->funcid, ((const FuncExpr *) expr)->args);
		case T_OpExpr:
			return scale_of_call(input, ((const OpExpr *) expr)->opfuncid, ((const OpExpr *) expr)->args);
		case T_CaseExpr:
			foreach(lc, ((const CaseExpr *) expr)->args)
				all = common_scale(all, numeric_scale(input, static_cast<const CaseWhen *>(lfirst(lc))->result));
			if (((const CaseExpr *) expr)->defresult != nullptr)
				all = common_scale(all, numeric_scale(input, ((const CaseExpr *) expr)->defresult));
			return all;
		case T_CoalesceExpr:
			return scale_of_list(input, ((const CoalesceExpr *) expr)->args);
		case T_MinMaxExpr:
			return scale_of_list(input, ((const MinMaxExpr *) expr)->args);
		case T_NullIfExpr:
			return numeric_scale(input, static_cast<const Expr *>(linitial(((const NullIfExpr *) expr)->args)));
		default:
			return ANY_SCALE;
	}
}

NumericScale
numeric_scale(const CompileInput *input, const Expr *expr)
{
	return find_fact<NumericScale>(Fact::NumericScale, input, expr, [&]() { return find_scale(input, expr); });
}

bool
differs_in_scale(const CompileInput *input, const Expr *expr)
{
	return exprType(reinterpret_cast<const Node *>(expr)) == NUMERICOID && numeric_scale(input, expr).mixed;
}

int
shown_scale(Compiler *c, int reg, int scale)
{
	return c->info[reg].shown >= 0 ? c->info[reg].shown : int_value(c, Type::I32, scale);
}

int
rescale(Compiler *c, int reg, int scale)
{
	RegisterInfo info;
	int64_t		constant;
	int64_t		product;
	int			by;
	int			factor;

	if (reg < 0 || c->info[reg].scale == scale)
		return reg;
	info = c->info[reg];
	by = scale - info.scale;
	info.scale = static_cast<int16>(scale);
	if (is_null_value(c, reg))
		return null_value(c, Type::I64, numeric_info(scale));
	if (by < 0 || scale > SCALED_MAX_SCALE)
		return refuse(c, "a numeric has more than %d decimals", SCALED_MAX_SCALE);
	if (is_int_value(c, reg, &constant) && !__builtin_mul_overflow(constant, scaled_pow10[by], &product))
		return int_value(c, Type::I64, product, info);
	factor = int_value(c, Type::I64, scaled_pow10[by]);
	return factor < 0 ? -1 : value(c, Opcode::Mul, Type::I64, reg, factor, 0, 0, info);
}

/* -- constants and comparisons --------------------------------------------------------- */

int
compile_numeric_const(Compiler *c, const Const *con)
{
	const NumericScale form = scale_of_const(con);
	const int	scale = form.scale;
	int64		v;

	if (con->constisnull)
		return null_value(c, Type::I64, numeric_info(0));
	if (scale < 0 || scale > SCALED_MAX_SCALE || (form.mixed && c->scale_use != ScaleUse::None) || !numeric_at_scale(con->constvalue, scale, &v))
		return refuse(c, "the numeric %s does not fit 64 bits",
					  DatumGetCString(DirectFunctionCall1(numeric_out, con->constvalue)));
	return int_value(c, Type::I64, v, numeric_info(scale));
}

bool
scaled_bound(Datum bound, int scale, bool up, Datum *out)
{
	/* times a power of ten PostgreSQL might not hold it either */
	if (!(std::fabs(DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, bound))) < BEYOND_HALVES))
		return false;
	for (int rest = scale; rest > 0; rest -= SCALED_MAX_SCALE)
		bound = DirectFunctionCall2(numeric_mul, bound, scaled_to_numeric(scaled_pow10[Min(rest, SCALED_MAX_SCALE)], 0));
	*out = DirectFunctionCall1(up ? numeric_ceil : numeric_floor, bound);
	return true;
}

static bool
rounded_bound(Datum bound, int scale, bool up, int64 *out)
{
	return scaled_bound(bound, scale, up, &bound) && numeric_at_scale(bound, 0, out);
}

/*
 * The same of a value that is known when execution starts: int8(ceil(value * 10^scale)), which PostgreSQL evaluates. Where
 * it does not fit, or is no number, that raises, and PostgreSQL's own plan runs.
 */
static int
compile_parameter_bound(Compiler *c, const Expr *expr, int scale, bool up)
{
	Const	   *factor = makeConst(NUMERICOID, -1, InvalidOid, -1, scaled_to_numeric(scaled_pow10[scale], 0), false, false);
	List	   *product = list_make2(const_cast<Expr *>(expr), factor);
	Expr	   *bound;

	bound = reinterpret_cast<Expr *>(makeFuncExpr(F_NUMERIC_MUL, NUMERICOID, product, InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL));
	bound = reinterpret_cast<Expr *>(makeFuncExpr(up ? F_CEIL_NUMERIC : F_FLOOR_NUMERIC, NUMERICOID, list_make1(bound), InvalidOid,
												  InvalidOid, COERCE_EXPLICIT_CALL));
	bound = reinterpret_cast<Expr *>(makeFuncExpr(F_INT8_NUMERIC, INT8OID, list_make1(bound), InvalidOid, InvalidOid,
												  COERCE_EXPLICIT_CALL));
	return compile_param(c, bound, numeric_info(scale));
}

static bool
is_parameter(const Expr *expr)
{
	return !IsA(expr, Const) && known_at_start(expr);
}

bool
is_parameter_equality(const FnEntry *fn, List *args)
{
	return fn->form == ValueForm::Numeric && (fn->opcode == Opcode::Eq || fn->opcode == Opcode::Ne) &&
		(is_parameter(static_cast<const Expr *>(linitial(args))) || is_parameter(static_cast<const Expr *>(lsecond(args))));
}

/* What equals the parameter lies between it rounded up and rounded down. */
int
compile_parameter_equality(Compiler *c, const FnEntry *fn, List *args)
{
	const Expr *a = static_cast<const Expr *>(linitial(args));
	const Expr *b = static_cast<const Expr *>(lsecond(args));
	bool		first = is_parameter(b);
	int			reg = compile_value(c, first ? a : b);
	int			scale = reg < 0 ? 0 : c->info[reg].scale;
	int			lo = reg < 0 ? -1 : compile_parameter_bound(c, first ? b : a, scale, true);
	int			hi = lo < 0 ? -1 : compile_parameter_bound(c, first ? b : a, scale, false);

	lo = hi < 0 ? -1 : value(c, Opcode::Ge, Type::I64, reg, lo);
	hi = lo < 0 ? -1 : value(c, Opcode::Le, Type::I64, reg, hi);
	reg = hi < 0 ? -1 : value(c, Opcode::And, Type::Bool, lo, hi);
	return fn->opcode == Opcode::Ne ? compile_not(c, reg) : reg;
}

/* What is compared with a numeric of the scale; `op` has it on its right. A constant is expressed in that scale if it can be. */
static int
compile_other(Compiler *c, const Expr *expr, int scale, Opcode op)
{
	const Const *con = (const Const *) expr;
	bool		ordered = op != Opcode::Eq && op != Opcode::Ne;
	int64		v;

	if (IsA(expr, Const) && !con->constisnull && !numeric_is_nan(DatumGetNumeric(con->constvalue)) &&
		!numeric_is_inf(DatumGetNumeric(con->constvalue)) &&
		(numeric_at_scale(con->constvalue, scale, &v) || (ordered && rounded_bound(con->constvalue, scale, rounds_up(op), &v))))
		return int_value(c, Type::I64, v, numeric_info(scale));
	if (ordered && is_parameter(expr))
		return compile_parameter_bound(c, expr, scale, rounds_up(op));
	return compile_value(c, expr);
}

bool
compile_numeric_operands(Compiler *c, Opcode op, List *args, int *ra, int *rb)
{
	const Expr *a = static_cast<const Expr *>(linitial(args));
	const Expr *b = static_cast<const Expr *>(lsecond(args));
	bool		first = !IsA(a, Const) && !is_parameter(a);
	int			one = compile_value(c, first ? a : b);
	int			other = one < 0 ? -1 : compile_other(c, first ? b : a, c->info[one].scale, first ? op : commuted(op));
	int			scale;

	if (other < 0)
		return false;
	scale = Max(c->info[one].scale, c->info[other].scale);
	one = rescale(c, one, scale);
	other = rescale(c, other, scale);
	*ra = first ? one : other;
	*rb = first ? other : one;
	return one >= 0 && other >= 0;
}

/* -- arithmetic --------------------------------------------------------------------------- */

static int
compile_binary(Compiler *c, const FnEntry *fn, List *args)
{
	const bool	product = fn->opcode == Opcode::Mul;
	const Expr *a = static_cast<const Expr *>(linitial(args));
	const Expr *b = static_cast<const Expr *>(lsecond(args));
	/* a sum has all decimals of the one that has most of them in every row */
	const bool	shows_a = !product && shows_greatest(numeric_scale(c->input, a), numeric_scale(c->input, b));
	const bool	shows_b = !product && !shows_a && shows_greatest(numeric_scale(c->input, b), numeric_scale(c->input, a));
	int			ra = shows_b ? compile_value(c, a) : compile_expr(c, a);
	int			rb = ra < 0 ? -1 : shows_a ? compile_value(c, b) : compile_expr(c, b);
	int			scale;
	int			shown = -1;

	/* of values that are known when execution starts, as part of more than that; all others are in halves */
	if (fn->opcode == Opcode::Div)
		return refuse(c, "the display scale of a quotient depends on its operands");
	if (rb < 0)
		return -1;
	scale = product ? c->info[ra].scale + c->info[rb].scale : Max(c->info[ra].scale, c->info[rb].scale);
	if (scale > SCALED_MAX_SCALE)
		return refuse(c, "a numeric has more than %d decimals", SCALED_MAX_SCALE);
	if (!shows_a && !shows_b && (c->info[ra].shown >= 0 || c->info[rb].shown >= 0))
	{
		int			sa = shown_scale(c, ra, c->info[ra].scale);
		int			sb = shown_scale(c, rb, c->info[rb].scale);

		shown = sa < 0 || sb < 0 ? -1 : value(c, product ? Opcode::Add : Opcode::Greatest, Type::I32, sa, sb);
		if (shown < 0)
			return -1;
	}
	if (!product)
	{
		ra = rescale(c, ra, scale);
		rb = rescale(c, rb, scale);
	}
	return ra < 0 || rb < 0 ? -1 : value(c, fn->opcode, Type::I64, ra, rb, 0, 0, numeric_info(scale, shown));
}

/* The number at `digits` decimals, which may be less than none; the opcode divides. */
static int
round_to(Compiler *c, int reg, int digits, Opcode divide)
{
	int			drop = c->info[reg].scale - digits;
	int			factor;

	if (drop <= 0)
		return rescale(c, reg, digits);
	if (drop > SCALED_MAX_SCALE)
		return refuse(c, "a number is rounded by more than %d digits", SCALED_MAX_SCALE);
	factor = int_value(c, Type::I64, scaled_pow10[drop]);
	reg = factor < 0 ? -1 : value(c, divide, Type::I64, reg, factor, 0, 0, numeric_info(Max(digits, 0)));
	if (reg < 0 || digits >= 0)
		return reg;
	factor = int_value(c, Type::I64, scaled_pow10[-digits]);
	return factor < 0 ? -1 : value(c, Opcode::Mul, Type::I64, reg, factor, 0, 0, numeric_info(0));
}

/* 1, 0, -1: by two comparisons, so that null stays null. */
static int
compile_sign(Compiler *c, int reg)
{
	int			zero = int_value(c, Type::I64, 0);
	int			above = zero < 0 ? -1 : convert(c, convert(c, value(c, Opcode::Gt, Type::I64, reg, zero), Type::I32), Type::I64);
	int			below = zero < 0 ? -1 : convert(c, convert(c, value(c, Opcode::Lt, Type::I64, reg, zero), Type::I32), Type::I64);

	return above < 0 || below < 0 ? -1 : value(c, Opcode::Sub, Type::I64, above, below, 0, 0, numeric_info(0));
}

int
numeric_to_float(Compiler *c, int reg)
{
	int			scale = reg < 0 ? 0 : c->info[reg].scale;
	int			bound;
	int			factor;

	if (reg < 0)
		return -1;
	if (scale > SCALED_MAX_SCALE)
		return refuse(c, "a numeric has more than %d decimals", SCALED_MAX_SCALE);
	if (scale == 0)
		return convert(c, reg, Type::F64);
	bound = int_value(c, Type::I64, FLOAT8_EXACT);
	reg = bound < 0 ? -1 : convert(c, value(c, Opcode::Bound, Type::I64, reg, bound), Type::F64);
	factor = float_value(c, Type::F64, static_cast<double>(scaled_pow10[scale]));
	return reg < 0 || factor < 0 ? -1 : value(c, Opcode::Div, Type::F64, reg, factor);
}

/* The n of a divisor 10^n; -1: it is none. */
static int
power_of_ten(const Expr *expr)
{
	const Const *con = (const Const *) expr;
	int64_t		v;

	if (!IsA(expr, Const) || con->constisnull || !numeric_at_scale(con->constvalue, 0, &v))
		return -1;
	for (int n = 0; n <= SCALED_MAX_SCALE; n++)
	{
		if (scaled_pow10[n] == v)
			return n;
	}
	return -1;
}

/* (x / 1000.0)::float8: of what a float8 holds exactly PostgreSQL's quotient has all decimals, so that it is the same number with more of them. */
static int
compile_shifted_to_float(Compiler *c, const Expr *dividend, int by)
{
	int			reg = compile_value(c, dividend);

	return reg < 0 ? -1 : numeric_to_float(c, value(c, Opcode::Copy, Type::I64, reg, 0, 0, 0, numeric_info(c->info[reg].scale + by)));
}

/* numeric(p, s): rounded, and less than 10^(p - s). */
static int
compile_typmod(Compiler *c, int reg, List *args)
{
	int			precision;
	int			scale = typmod_scale(args, &precision);
	int			bound;

	if (scale < 0)
		return refuse(c, "a numeric's precision and scale are of a kind that is not supported");
	reg = round_to(c, reg, scale, Opcode::DivRound);
	if (reg < 0 || precision > SCALED_MAX_SCALE)
		return reg;
	bound = int_value(c, Type::I64, scaled_pow10[precision]);
	return bound < 0 ? -1 : value(c, Opcode::Bound, Type::I64, reg, bound, 0, 0, numeric_info(scale));
}

/* cash.c has it so */
int
money_scale()
{
	const int	digits = PGLC_localeconv()->frac_digits;

	return digits < 0 || digits > 10 ? 2 : digits;
}

/* lc_monetary may be another one when a prepared statement is executed: then all is flagged. */
static int
compile_money(Compiler *c, int reg)
{
	const int	scale = money_scale();
	Const	   *zero = makeConst(CASHOID, -1, InvalidOid, sizeof(Cash), Int64GetDatum(0), false, FLOAT8PASSBYVAL);
	Expr	   *shown = reinterpret_cast<Expr *>(makeFuncExpr(F_NUMERIC_MONEY, NUMERICOID, list_make1(zero), InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL));
	int			now;

	shown = reinterpret_cast<Expr *>(makeFuncExpr(F_SCALE, INT4OID, list_make1(shown), InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL));
	now = convert(c, compile_param(c, shown), Type::I64);
	now = with_constant64(c, Opcode::Bound, with_constant64(c, Opcode::Sub, now, scale), 1);
	c->soft_errors = true;
	return now < 0 ? -1 : value(c, Opcode::Add, Type::I64, reg, now, 0, 0, numeric_info(scale));
}

/* div() */
static int
compile_div(Compiler *c, List *args)
{
	int			a = compile_value(c, static_cast<const Expr *>(linitial(args)));
	int			b = a < 0 ? -1 : compile_value(c, static_cast<const Expr *>(lsecond(args)));
	const int	scale = b < 0 ? 0 : Max(c->info[a].scale, c->info[b].scale);

	a = rescale(c, a, scale);
	b = rescale(c, b, scale);
	return a < 0 || b < 0 ? -1 : value(c, Opcode::Div, Type::I64, a, b, 0, 0, numeric_info(0));
}

/* Its own display scale is in the other column. */
static int
compile_shown_apart(Compiler *c, List *args)
{
	int			reg;
	int			shown;

	if (c->scale_use == ScaleUse::One)
		return refuse(c, "the display scale of a numeric differs from row to row");
	reg = compile_value(c, static_cast<const Expr *>(linitial(args)));
	if (reg < 0 || c->scale_use == ScaleUse::None)
		return reg;
	shown = convert(c, compile_expr(c, static_cast<const Expr *>(lsecond(args))), Type::I32);
	return shown < 0 ? -1 : value(c, Opcode::Copy, Type::I64, reg, 0, 0, 0, numeric_info(c->info[reg].scale, shown));
}

/* scale(): null of null. */
static int
compile_scale(Compiler *c, const Expr *arg)
{
	const ScaleUse outer = c->scale_use;
	const bool	wide = is_wide(c->input, arg);
	WideValue	halves;
	int			reg;
	int			scale;
	int			null;

	c->scale_use = ScaleUse::Each;
	reg = !wide ? compile_expr(c, arg) : compile_wide(c, arg, &halves) && !halves.special ? halves.low : -1;
	c->scale_use = outer;
	if (reg < 0)
		return wide ? refuse(c, "scale() of a number of more than 64 bits that may be NaN") : -1;
	scale = !wide ? shown_scale(c, reg, c->info[reg].scale) : halves.shown >= 0 ? halves.shown : int_value(c, Type::I32, halves.scale);
	null = convert(c, with_constant64(c, Opcode::BitAnd, reg, 0), Type::I32);
	return scale < 0 || null < 0 ? -1 : value(c, Opcode::BitOr, Type::I32, scale, null);
}

int
compile_numeric_call(Compiler *c, const FnEntry *fn, List *args)
{
	const Expr *arg = static_cast<const Expr *>(linitial(args));
	List	   *operands;
	int			reg;
	int			digits;

	if (fn->kind == FnKind::NumericBinary)
		return compile_binary(c, fn, args);
	if (fn->kind == FnKind::NumericBucket)
		return compile_numeric_bucket(c, args);
	if (fn->kind == FnKind::FloatBucket)
		return compile_float_bucket(c, args);
	if (fn->kind == FnKind::NumericToFloat && is_quotient(arg) && called(arg, &operands) != InvalidOid && power_of_ten(static_cast<const Expr *>(lsecond(operands))) >= 0 &&
		!is_wide(c->input, static_cast<const Expr *>(linitial(operands))))
		return compile_shifted_to_float(c, static_cast<const Expr *>(linitial(operands)), power_of_ten(static_cast<const Expr *>(lsecond(operands))));
	if (fn->kind == FnKind::NumericToFloat && is_wide(c->input, arg))
		return compile_wide_to_float(c, arg);
	if (fn->kind == FnKind::NumericToInt && is_wide(c->input, arg))
		return compile_wide_to_int(c, arg, fn->operand);
	if (fn->kind == FnKind::NumericDiv)
		return compile_div(c, args);
	if (fn->kind == FnKind::NumericScale)
		return compile_scale(c, arg);
	if (is_shown_apart(c->input, fn->function, args))
		return compile_shown_apart(c, args);
	/* the others make a scale of their own */
	reg = fn->kind == FnKind::NumericUnary ? compile_expr(c, arg) : compile_value(c, arg);
	if (reg < 0)
		return -1;
	switch (fn->kind)
	{
		case FnKind::NumericUnary:
			return value(c, fn->opcode, Type::I64, reg, 0, 0, 0, c->info[reg]);
		case FnKind::NumericRound:
			digits = round_digits(args);
			if (digits == INT_MIN)
				return refuse(c, "the number of digits to round to is not a constant");
			if (digits < -SCALED_MAX_SCALE || digits > SCALED_MAX_SCALE)
				return refuse(c, "a number is rounded to more than %d digits", SCALED_MAX_SCALE);
			return round_to(c, reg, digits, fn->opcode);
		case FnKind::NumericCeil:
			reg = value(c, Opcode::Neg, Type::I64, reg, 0, 0, 0, c->info[reg]);
			reg = reg < 0 ? -1 : round_to(c, reg, 0, fn->opcode);
			return reg < 0 ? -1 : value(c, Opcode::Neg, Type::I64, reg, 0, 0, 0, numeric_info(0));
		case FnKind::NumericSign:
			return compile_sign(c, reg);
		case FnKind::NumericFromInt:
			if (c->b->reg_type[reg] == Type::I64)
				return value(c, Opcode::Copy, Type::I64, reg, 0, 0, 0, numeric_info(0));
			return value(c, Opcode::Cast, Type::I64, reg, 0, 0, static_cast<uint8_t>(c->b->reg_type[reg]), numeric_info(0));
		case FnKind::NumericFromMoney:
			return compile_money(c, reg);
		case FnKind::NumericToInt:
			reg = round_to(c, reg, 0, Opcode::DivRound);
			if (reg < 0 || fn->operand != Type::I64)
				return convert(c, reg, fn->operand);
			return value(c, Opcode::Copy, Type::I64, reg);
		case FnKind::NumericToFloat:
			return numeric_to_float(c, reg);
		default:				/* NumericTypmod */
			return compile_typmod(c, reg, args);
	}
}

}  // namespace gpuvm
