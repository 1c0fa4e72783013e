/* float_bounds.cc: see float_bounds.h. */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
}

#include <cmath>

#include "compiler/made_exprs.h"
#include "plan/expand.h"
#include "planner/float_bounds.h"

namespace gpuvm {

/* Of a conversion to float8, which takes some operations. */
constexpr double CONVERSION = 2e-15;
/* Of numeric's sqrt(). */
constexpr double ROOT_ROUNDING = 1e-14;
/* Of numeric's division: half of the 17th digit. */
constexpr double QUOTIENT_ROUNDING = 1e-16;
/* What is divided by and of what roots are taken is known so well, or not at all. */
constexpr double CERTAIN = 1e-9;
/* Roots of less have less than this relative error where they have as many decimals as what they are taken of. */
constexpr double LARGEST_SQUARE = 1e16;
constexpr double ROOT_DECIMALS = 1e-8;
/* Exponents, so that products of values with errors neither overflow nor underflow. */
constexpr int MOST_DIGITS = 140;
/* Of numbers of 64 bits, and of more (tablet/wide_halves.h). */
constexpr int NARROW_DIGITS = 19;
constexpr int WIDE_DIGITS = 40;
/* Digits that a difference may lose. */
constexpr int FLOAT_DIGITS = 17;
/* Times its scale, a numeric's, is an int4. */
constexpr int MOST_TIMES = 1000;

/* -- float8 ------------------------------------------------------------------------------------- */

/* Exponents are known, and roots and quotients taken only where there are some. */
static Expr *
call(Oid function, Oid type, List *args)
{
	FuncExpr   *expr = makeFuncExpr(function, type, args, InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);

	expr->location = LOCATION_QUIET;
	return (Expr *) expr;
}

Expr *
float_call(Oid function, Expr *a, Expr *b)
{
	return call(function, FLOAT8OID, b == nullptr ? list_make1(a) : list_make2(a, b));
}

Expr *
float_constant(double v)
{
	return (Expr *) makeConst(FLOAT8OID, -1, InvalidOid, sizeof(float8), Float8GetDatum(v), false, FLOAT8PASSBYVAL);
}

static Expr *
unknown_float()
{
	return (Expr *) makeNullConst(FLOAT8OID, -1, InvalidOid);
}

Expr *
float_magnitude(Expr *a)
{
	return float_call(F_ABS_FLOAT8, a, nullptr);
}

Expr *
float_greater(Expr *a, Expr *b)
{
	return call(F_FLOAT8GT, BOOLOID, list_make2(a, b));
}

Expr *
float_times(Expr *a, double factor)
{
	return a == nullptr || factor == 1 ? a : float_call(F_FLOAT8MUL, a, float_constant(factor));
}

Expr *
float_sum(Expr *a, Expr *b)
{
	return a == nullptr ? b : b == nullptr ? a : float_call(F_FLOAT8PL, a, b);
}

static Expr *
product(Expr *a, Expr *b)
{
	return a == nullptr || b == nullptr ? nullptr : float_call(F_FLOAT8MUL, a, b);
}

static Expr *
choice(Expr *condition, Expr *value, Expr *otherwise)
{
	return (Expr *) rel_case(list_make1(rel_when((Node *) condition, (Node *) value)), (Node *) otherwise);
}

Expr *
null_if_not(Expr *condition, Expr *value)
{
	return choice(condition, value, nullptr);
}

Expr *
shared(FilterContext *f, Expr *expr)
{
	return IsA(expr, Const) || shared_number(expr) != 0 ? expr : shared_expr(expr, ++f->l->root->glob->lastPHId);
}

Expr *
error_of(const Approximate &a, double rounding)
{
	const double relative = a.relative + rounding;

	return float_sum(relative == 0 ? nullptr : float_times(float_magnitude(a.value), relative), a.absolute);
}

/* |value| is known to be no 0, and to be so well known. */
static Expr *
is_certain(const Approximate &a)
{
	return float_greater(float_magnitude(a.value),
						 a.absolute == nullptr ? float_constant(0) : float_times(a.absolute, 1 / CERTAIN));
}

/* -- leaves --------------------------------------------------------------------------------------- */

static void
leaf(Expr *value, double relative, int most, int least, Approximate *a)
{
	*a = Approximate{value, relative, nullptr, most, least};
}

/* Numbers that floats do not have are left. */
static bool
approximate_const(const Const *con, Approximate *a)
{
	const Datum zero = DirectFunctionCall1(int4_numeric, Int32GetDatum(0));
	double		v;

	if (con->constisnull)
	{
		leaf(unknown_float(), 0, 0, 0, a);
		return true;
	}
	v = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, con->constvalue));
	if (!std::isfinite(v) || (v == 0 && !DatumGetBool(DirectFunctionCall2(numeric_eq, con->constvalue, zero))))
		return false;
	leaf(float_constant(v), CONVERSION, v == 0 ? 0 : static_cast<int>(std::ceil(std::log10(std::fabs(v)))),
		 v == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::fabs(v)))), a);
	return true;
}

static void
approximate_column(FilterContext *f, Expr *column, Approximate *a)
{
	const int	scale = numeric_scale(&f->input, column).scale;
	const int	digits = is_wide(&f->input, column) ? WIDE_DIGITS : NARROW_DIGITS;

	leaf(approximation(column), CONVERSION, scale < 0 ? WIDE_DIGITS : digits - scale, scale < 0 ? -WIDE_DIGITS : -scale,
		 a);
}

static bool
approximate_integer(Oid function, List *args, int digits, Approximate *a)
{
	if (can_raise(static_cast<Expr *>(linitial(args))))
		return false;
	leaf(call(function, FLOAT8OID, args), CONVERSION, digits, 0, a);
	return true;
}

/* -- arithmetic ----------------------------------------------------------------------------------- */

static void
multiply(FilterContext *f, Approximate x, Approximate y, Approximate *a)
{
	if (y.absolute != nullptr)
		x.value = shared(f, x.value);
	if (x.absolute != nullptr)
		y.value = shared(f, y.value);
	if (x.absolute != nullptr && y.absolute != nullptr)
		x.absolute = shared(f, x.absolute);
	a->value = float_call(F_FLOAT8MUL, x.value, y.value);
	a->relative = (x.relative + y.relative) * SLACK + ROUNDING;
	a->absolute = y.absolute == nullptr ? nullptr
		: product(float_sum(float_magnitude(x.value), x.absolute), y.absolute);
	if (x.absolute != nullptr)
		a->absolute = float_sum(a->absolute, product(float_magnitude(y.value), x.absolute));
	a->absolute = float_times(a->absolute, SLACK);
	a->most = x.most + y.most;
	a->least = x.least + y.least;
}

/* Unknown where it may be divided by 0. */
static void
divide(FilterContext *f, Approximate x, Approximate y, Approximate *a)
{
	Expr	   *sure;
	Expr	   *divisor;

	y.value = shared(f, y.value);
	sure = shared(f, is_certain(y));
	divisor = shared(f, choice(sure, y.value, float_constant(1)));
	a->value = null_if_not(sure, float_call(F_FLOAT8DIV, x.value, divisor));
	a->relative = (x.relative + y.relative + (y.absolute == nullptr ? 0 : CERTAIN)) * SLACK + ROUNDING + QUOTIENT_ROUNDING;
	a->absolute = nullptr;
	if (x.absolute != nullptr)
	{
		Expr	   *absolute = float_call(F_FLOAT8DIV, x.absolute, float_magnitude(divisor));

		a->absolute = null_if_not(sure, float_times(absolute, SLACK));
	}
	a->most = x.most - y.least;
	a->least = x.least - y.most;
}

static void
add(FilterContext *f, Oid function, Approximate x, Approximate y, Approximate *a)
{
	x.value = shared(f, x.value);
	y.value = shared(f, y.value);
	a->value = float_call(function, x.value, y.value);
	a->relative = 0;
	a->absolute = float_times(float_sum(error_of(x, ROUNDING), error_of(y, ROUNDING)), SLACK);
	a->most = Max(x.most, y.most) + 1;
	a->least = Min(x.least, y.least) - FLOAT_DIGITS;
}

/* Unknown where it may be that of a negative number, and of more than `most`. */
static void
take_root(FilterContext *f, Approximate x, double most, Approximate *a)
{
	Expr	   *sure;

	x.value = shared(f, x.value);
	sure = makeBoolExpr(AND_EXPR,
						list_make3(is_certain(x), float_greater(x.value, float_constant(0)),
								   float_greater(float_constant(most), x.value)),
						-1);
	sure = shared(f, sure);
	a->value = null_if_not(sure, float_call(F_SQRT_FLOAT8, choice(sure, x.value, float_constant(1)), nullptr));
	a->relative = x.relative + CERTAIN + ROUNDING + ROOT_ROUNDING;
	a->absolute = nullptr;
	a->most = x.most / 2 + 1;
	a->least = x.least / 2 - 1;
}

/* -- rounding -------------------------------------------------------------------------------------- */

static bool
is_int4(const void *node, int *v)
{
	const Const *con = (const Const *) node;

	if (!IsA(con, Const) || con->consttype != INT4OID || con->constisnull)
		return false;
	*v = DatumGetInt32(con->constvalue);
	return true;
}

/*
 * What rounding to so many digits changes at most: a constant, or what is computed of the number's own scale, which is
 * neither negative nor, where there is a number, null.
 */
static bool
rounding_error(const Expr *number, const Expr *digits, double *error)
{
	List	   *args;
	Expr	   *first;
	int			n;

	if (is_int4(digits, &n))
	{
		*error = std::pow(10.0, -n);
		return n >= -MOST_DIGITS / 2 && n <= MOST_DIGITS / 2;
	}
	switch (called(digits, &args))
	{
		case F_SCALE:
			*error = 1;
			return equal(linitial(args), number);
		case F_INT4PL:
			first = static_cast<Expr *>(linitial(args));
			if (!is_int4(lsecond(args), &n) || n < 0 || n > MOST_DIGITS / 2 || !rounding_error(number, first, error))
				return false;
			*error *= std::pow(10.0, -n);
			return true;
		case F_INT4MUL:
			first = static_cast<Expr *>(linitial(args));
			return is_int4(lsecond(args), &n) && n >= 1 && n <= MOST_TIMES && called(first, &args) == F_SCALE &&
				rounding_error(number, first, error);
		default:
			return false;
	}
}

/*
 * sqrt(round(x / y, n)) with as many decimals as the quotient, as standard deviations are, which has 16 significant
 * digits: the rounded quotient.
 */
static Expr *
square_of_root(Expr *root, Expr *digits)
{
	List	   *args;
	List	   *rounded;
	List	   *of;
	Expr	   *square;
	const Oid	function = called(root, &args);

	if (function != F_SQRT_NUMERIC && function != F_NUMERIC_SQRT)
		return nullptr;
	square = static_cast<Expr *>(linitial(args));
	if (called(square, &rounded) != F_ROUND_NUMERIC_INT4 || called(digits, &of) != F_SCALE ||
		!equal(linitial(rounded), linitial(of)) || called(static_cast<Expr *>(linitial(of)), &args) != F_NUMERIC_DIV)
		return nullptr;
	return square;
}

static bool
round_off(FilterContext *f, Oid function, List *args, Approximate *a)
{
	Expr	   *number = static_cast<Expr *>(linitial(args));
	Expr	   *square = list_length(args) < 2 ? nullptr : square_of_root(number, static_cast<Expr *>(lsecond(args)));
	double		error = 1;

	if (square != nullptr && approximate(f, square, a))
	{
		take_root(f, *a, LARGEST_SQUARE, a);
		a->relative += ROOT_DECIMALS;
		return true;
	}
	if (!approximate(f, number, a))
		return false;
	if (is_shown_apart(&f->input, function, args))
		return true;
	if (list_length(args) > 1 && !rounding_error(number, static_cast<Expr *>(lsecond(args)), &error))
		return false;
	a->absolute = float_sum(a->absolute, float_constant(error));
	return true;
}

/* -- choices ---------------------------------------------------------------------------------------- */

static Expr *
or_zero(Expr *absolute)
{
	return absolute == nullptr ? float_constant(0) : absolute;
}

/* The first arm whose condition is true; where one is unknown, so is the value. */
static bool
approximate_case(FilterContext *f, const CaseExpr *expr, Approximate *a)
{
	List	   *values = NIL;
	List	   *absolutes = NIL;
	bool		any;
	Approximate last;
	ListCell   *lc;

	if (expr->arg != nullptr)
		expr = searched_case(expr);
	if (!approximate(f, expr->defresult, &last))
		return false;
	*a = last;
	any = last.absolute != nullptr;
	foreach(lc, expr->args)
	{
		const CaseWhen *when = lfirst_node(CaseWhen, lc);
		Approximate result;
		Known		known;
		Node	   *condition;

		if (!know(f, when->expr, &known) || !approximate(f, when->result, &result))
			return false;
		condition = (Node *) shared(f, known.condition);
		values = lappend(values, rel_when(condition, (Node *) result.value));
		absolutes = lappend(absolutes, rel_when(condition, (Node *) or_zero(result.absolute)));
		if (!known.exact)
		{
			Node	   *lost = rel_null_test(condition, IS_NULL);

			values = lappend(values, rel_when(lost, (Node *) unknown_float()));
			absolutes = lappend(absolutes, rel_when(lost, (Node *) unknown_float()));
		}
		any = any || result.absolute != nullptr;
		a->relative = Max(a->relative, result.relative);
		a->most = Max(a->most, result.most);
		a->least = Min(a->least, result.least);
	}
	a->value = (Expr *) rel_case(values, (Node *) last.value);
	if (any)
		a->absolute = (Expr *) rel_case(absolutes, (Node *) or_zero(last.absolute));
	return true;
}

/* Null where the arguments are equal, or may be. */
static bool
approximate_nullif(FilterContext *f, const NullIfExpr *expr, Approximate *a)
{
	OpExpr	   *equal = makeNode(OpExpr);
	Known		known;

	*equal = *expr;
	equal->xpr.type = T_OpExpr;
	equal->opresulttype = BOOLOID;
	if (!know(f, (Expr *) equal, &known) || !approximate(f, static_cast<Expr *>(linitial(expr->args)), a))
		return false;
	a->value = null_if_not(makeBoolExpr(NOT_EXPR, list_make1(known.condition), -1), a->value);
	return true;
}

/* -- expressions ------------------------------------------------------------------------------------- */

static bool
approximate_call(FilterContext *f, const Expr *expr, Approximate *a)
{
	List	   *args;
	const Oid	function = called(expr, &args);
	Approximate x;
	Approximate y;

	switch (function)
	{
		case F_NUMERIC_INT2:
			return approximate_integer(F_FLOAT8_INT2, args, 5, a);
		case F_NUMERIC_INT4:
			return approximate_integer(F_FLOAT8_INT4, args, 10, a);
		case F_NUMERIC_INT8:
			return approximate_integer(F_FLOAT8_INT8, args, 19, a);
		case F_ROUND_NUMERIC:
		case F_ROUND_NUMERIC_INT4:
		case F_TRUNC_NUMERIC:
		case F_TRUNC_NUMERIC_INT4:
		case F_CEIL_NUMERIC:
		case F_CEILING_NUMERIC:
		case F_FLOOR_NUMERIC:
			return round_off(f, function, args, a);
		case F_NUMERIC_UPLUS:
		case F_NUMERIC_UMINUS:
		case F_NUMERIC_ABS:
		case F_ABS_NUMERIC:
		case F_SQRT_NUMERIC:
		case F_NUMERIC_SQRT:
			if (!approximate(f, static_cast<Expr *>(linitial(args)), &x))
				return false;
			if (function == F_SQRT_NUMERIC || function == F_NUMERIC_SQRT)
			{
				take_root(f, x, LARGEST_FLOAT, a);
				return true;
			}
			*a = x;
			if (function == F_NUMERIC_UMINUS)
				a->value = float_call(F_FLOAT8UM, x.value, nullptr);
			else if (function != F_NUMERIC_UPLUS)
				a->value = float_magnitude(x.value);
			return true;
		case F_NUMERIC_ADD:
		case F_NUMERIC_SUB:
		case F_NUMERIC_MUL:
		case F_NUMERIC_DIV:
			if (!approximate(f, static_cast<Expr *>(linitial(args)), &x) ||
				!approximate(f, static_cast<Expr *>(lsecond(args)), &y))
				return false;
			if (function == F_NUMERIC_MUL)
				multiply(f, x, y, a);
			else if (function == F_NUMERIC_DIV)
				divide(f, x, y, a);
			else
				add(f, function == F_NUMERIC_ADD ? F_FLOAT8PL : F_FLOAT8MI, x, y, a);
			return true;
		default:
			return false;
	}
}

static bool
find_approximation(FilterContext *f, Expr *expr, Approximate *a)
{
	bool		known;

	switch (nodeTag(expr))
	{
		case T_Const:
			known = approximate_const((const Const *) expr, a);
			break;
		case T_Var:
			approximate_column(f, expr, a);
			return true;
		case T_CaseExpr:
			known = approximate_case(f, (const CaseExpr *) expr, a);
			break;
		case T_NullIfExpr:
			known = approximate_nullif(f, (const NullIfExpr *) expr, a);
			break;
		case T_FuncExpr:
		case T_OpExpr:
			known = approximate_call(f, expr, a);
			break;
		default:
			return false;
	}
	return known && a->most <= MOST_DIGITS && a->least >= -MOST_DIGITS;
}

/* Once for each: parts stand several times in what is made of them. */
bool
approximate(FilterContext *f, Expr *expr, Approximate *a)
{
	Approximate *found = nullptr;
	ListCell   *lc;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (exprType((Node *) expr) != NUMERICOID)
		return false;
	foreach(lc, f->exprs)
	{
		if (lfirst(lc) != expr)
			continue;
		found = static_cast<Approximate *>(list_nth(f->found, foreach_current_index(lc)));
		if (found != nullptr)
			*a = *found;
		return found != nullptr;
	}
	if (find_approximation(f, expr, a))
	{
		a->value = shared(f, a->value);
		found = static_cast<Approximate *>(palloc(sizeof(Approximate)));
		*found = *a;
	}
	f->exprs = lappend(f->exprs, expr);
	f->found = lappend(f->found, found);
	return found != nullptr;
}

}  // namespace gpuvm
