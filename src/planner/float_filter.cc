/* float_filter.cc: see float_filter.h. */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/numeric.h"
}

#include <cmath>

#include "compiler/emit.h"
#include "compiler/made_exprs.h"
#include "plan/expand.h"
#include "planner/float_filter.h"
#include "planner/lowering_values.h"

namespace gpuvm {

/* Of one float8 operation, and of a conversion to float8, which takes some. */
constexpr double ROUNDING = 2.3e-16;
constexpr double CONVERSION = 2e-15;
/* Of numeric's sqrt(), which has at least 15 significant digits. */
constexpr double ROOT_ROUNDING = 1e-14;
/* Of numeric's division: half of the 17th digit (select_div_scale). */
constexpr double QUOTIENT_ROUNDING = 1e-16;
/* What is divided by and of what roots are taken is known so well, or not at all. */
constexpr double CERTAIN = 1e-9;
/* Roots of less have less than this relative error where they have as many decimals as what they are taken of. */
constexpr double LARGEST_SQUARE = 1e16;
constexpr double ROOT_DECIMALS = 1e-8;
/* Bounds are computed in float8, too. */
constexpr double SLACK = 1.01;
/* Decimal exponents of values, so that products of values with errors neither overflow nor underflow. */
constexpr int MOST_DIGITS = 140;
/* Of numbers of 64 bits, and of more (tablet/wide_halves.h). */
constexpr int NARROW_DIGITS = 19;
constexpr int WIDE_DIGITS = 40;
constexpr double LARGEST = 1e300;
/* Of a condition in floats. */
constexpr int MOST_NODES = 1000;

/* |exact - value| <= relative * |value| + absolute. */
struct Approximate
{
	Expr	   *value;			/* float8; null where the exact one is, or where nothing is known */
	double		relative;
	Expr	   *absolute;		/* float8; NULL: 0 */
	int			most;			/* decimal exponents of values that are not 0 */
	int			least;
};

/* A condition of three values, of which null says nothing if it is not exact. */
struct Known
{
	Expr	   *condition;
	bool		exact;
	bool		drops;
};

struct FilterContext
{
	Lowering   *l;
	const Piece *piece;
	CompileInput input;
};

static bool approximate(FilterContext *f, Expr *expr, Approximate *a);
static bool know(FilterContext *f, Expr *condition, Known *known);

/* -- float8 ------------------------------------------------------------------------------------- */

/* Exponents are known, and roots and quotients taken only where there are some. */
static Expr *
call(Oid function, Oid type, List *args)
{
	FuncExpr   *expr = makeFuncExpr(function, type, args, InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);

	expr->location = LOCATION_QUIET;
	return (Expr *) expr;
}

static Expr *
in_floats(Oid function, Expr *a, Expr *b)
{
	return call(function, FLOAT8OID, list_make2(a, b));
}

static Expr *
constant(double v)
{
	return (Expr *) makeConst(FLOAT8OID, -1, InvalidOid, sizeof(float8), Float8GetDatum(v), false, FLOAT8PASSBYVAL);
}

static Expr *
unknown(Oid type)
{
	return (Expr *) makeNullConst(type, -1, InvalidOid);
}

static Expr *
magnitude(Expr *a)
{
	return call(F_ABS_FLOAT8, FLOAT8OID, list_make1(a));
}

static Expr *
greater(Expr *a, Expr *b)
{
	return call(F_FLOAT8GT, BOOLOID, list_make2(a, b));
}

static Expr *
times(Expr *a, double factor)
{
	return a == nullptr || factor == 1 ? a : in_floats(F_FLOAT8MUL, a, constant(factor));
}

/* NULL is 0. */
static Expr *
sum(Expr *a, Expr *b)
{
	return a == nullptr ? b : b == nullptr ? a : in_floats(F_FLOAT8PL, a, b);
}

static Expr *
product(Expr *a, Expr *b)
{
	return a == nullptr || b == nullptr ? nullptr : in_floats(F_FLOAT8MUL, a, b);
}

static CaseWhen *
arm(Expr *condition, Expr *result)
{
	CaseWhen   *when = makeNode(CaseWhen);

	when->expr = condition;
	when->result = result;
	when->location = -1;
	return when;
}

static Expr *
choice(Oid type, List *arms, Expr *otherwise)
{
	CaseExpr   *expr = makeNode(CaseExpr);

	expr->casetype = type;
	expr->args = arms;
	expr->defresult = otherwise == nullptr ? unknown(type) : otherwise;
	expr->location = -1;
	return (Expr *) expr;
}

static Expr *
if_true(Expr *condition, Expr *value)
{
	return choice(exprType((Node *) value), list_make1(arm(condition, value)), nullptr);
}

static Expr *
if_true_else_1(Expr *condition, Expr *value)
{
	return choice(FLOAT8OID, list_make1(arm(condition, value)), constant(1));
}

static Expr *
error_of(const Approximate &a, double rounding)
{
	const double relative = a.relative + rounding;

	return sum(relative == 0 ? nullptr : times(magnitude(a.value), relative), a.absolute);
}

/* |value| is known to be no 0, and to be so well known. */
static Expr *
is_certain(const Approximate &a)
{
	return greater(magnitude(a.value), a.absolute == nullptr ? constant(0) : times(a.absolute, 1 / CERTAIN));
}

static Expr *
shared(FilterContext *f, Expr *expr)
{
	return IsA(expr, Const) || shared_number(expr) != 0 ? expr : shared_expr(expr, ++f->l->root->glob->lastPHId);
}

/* -- values --------------------------------------------------------------------------------------- */

static void
leaf(Expr *value, double relative, int most, int least, Approximate *a)
{
	*a = Approximate{value, relative, nullptr, most, least};
}

static bool
approximate_const(const Const *con, Approximate *a)
{
	double		v;

	if (con->constisnull)
	{
		leaf(unknown(FLOAT8OID), 0, 0, 0, a);
		return true;
	}
	v = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, con->constvalue));
	if (!std::isfinite(v))
		return false;
	leaf(constant(v), CONVERSION, v == 0 ? 0 : static_cast<int>(std::ceil(std::log10(std::fabs(v)))),
		 v == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::fabs(v)))), a);
	return true;
}

static void
approximate_column(FilterContext *f, Expr *column, Approximate *a)
{
	const int	scale = numeric_scale(&f->input, column).scale;
	const int	digits = is_wide(&f->input, column) ? WIDE_DIGITS : NARROW_DIGITS;

	leaf(approximation(column), CONVERSION, scale < 0 ? WIDE_DIGITS : digits - scale, scale < 0 ? -WIDE_DIGITS : -scale, a);
}

static void
multiply(FilterContext *f, Approximate x, Approximate y, Approximate *a)
{
	if (y.absolute != nullptr)
		x.value = shared(f, x.value);
	if (x.absolute != nullptr)
		y.value = shared(f, y.value);
	a->value = in_floats(F_FLOAT8MUL, x.value, y.value);
	a->relative = (x.relative + y.relative) * SLACK + ROUNDING;
	a->absolute = times(sum(product(sum(magnitude(x.value), x.absolute), y.absolute), product(magnitude(y.value), x.absolute)), SLACK);
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
	divisor = shared(f, if_true_else_1(sure, y.value));
	a->value = if_true(sure, in_floats(F_FLOAT8DIV, x.value, divisor));
	a->relative = (x.relative + y.relative + (y.absolute == nullptr ? 0 : CERTAIN)) * SLACK + ROUNDING + QUOTIENT_ROUNDING;
	a->absolute = x.absolute == nullptr ? nullptr : if_true(sure, times(in_floats(F_FLOAT8DIV, x.absolute, magnitude(divisor)), SLACK));
	a->most = x.most - y.least;
	a->least = x.least - y.most;
}

static void
add(Oid function, FilterContext *f, Approximate x, Approximate y, Approximate *a)
{
	x.value = shared(f, x.value);
	y.value = shared(f, y.value);
	a->value = in_floats(function, x.value, y.value);
	a->relative = 0;
	a->absolute = times(sum(error_of(x, ROUNDING), error_of(y, ROUNDING)), SLACK);
	a->most = Max(x.most, y.most) + 1;
	a->least = Min(x.least, y.least) - 17;
}

/* Unknown where it may be that of a negative number, and of more than `most`. */
static void
take_root(FilterContext *f, Approximate x, double most, Approximate *a)
{
	Expr	   *sure;

	x.value = shared(f, x.value);
	sure = makeBoolExpr(AND_EXPR, list_make3(is_certain(x), greater(x.value, constant(0)), greater(constant(most), x.value)), -1);
	sure = shared(f, sure);
	a->value = if_true(sure, call(F_SQRT_FLOAT8, FLOAT8OID, list_make1(if_true_else_1(sure, x.value))));
	a->relative = x.relative + CERTAIN + ROUNDING + ROOT_ROUNDING;
	a->absolute = nullptr;
	a->most = x.most / 2 + 1;
	a->least = x.least / 2 - 1;
}

static bool
is_int4(const void *node, int *v)
{
	const Const *con = (const Const *) node;

	if (!IsA(con, Const) || con->consttype != INT4OID || con->constisnull)
		return false;
	*v = DatumGetInt32(con->constvalue);
	return true;
}

/* What rounding to so many digits changes at most: scales are not negative. */
static bool
rounding_error(const Expr *digits, double *error)
{
	List	   *args;
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
			return true;
		case F_INT4PL:
			if (!is_int4(lsecond(args), &n) || n < 0 || n > MOST_DIGITS / 2 || !rounding_error(static_cast<Expr *>(linitial(args)), error))
				return false;
			*error *= std::pow(10.0, -n);
			return true;
		case F_INT4MUL:
			return is_int4(lsecond(args), &n) && n >= 1 && rounding_error(static_cast<Expr *>(linitial(args)), error);
		default:
			return false;
	}
}

/* sqrt(round(x / y, n)) with as many decimals as the quotient, as standard deviations are: 16 significant ones. Gives the rounded quotient. */
static Expr *
square_of_root(Expr *rounded, Expr *digits)
{
	List	   *args;
	List	   *quotient;
	Expr	   *square;
	Oid			function = called(rounded, &args);

	if (function != F_SQRT_NUMERIC && function != F_NUMERIC_SQRT)
		return nullptr;
	square = static_cast<Expr *>(linitial(args));
	if (called(square, &quotient) != F_ROUND_NUMERIC_INT4 || called(digits, &args) != F_SCALE || !equal(linitial(quotient), linitial(args)) ||
		called(static_cast<Expr *>(linitial(args)), &args) != F_NUMERIC_DIV)
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
	if (list_length(args) > 1 && !rounding_error(static_cast<Expr *>(lsecond(args)), &error))
		return false;
	a->absolute = sum(a->absolute, constant(error));
	return true;
}

/* The first arm whose condition is true; where one is unknown, so is the value. */
static bool
approximate_case(FilterContext *f, const CaseExpr *expr, Approximate *a)
{
	List	   *values = NIL;
	List	   *absolutes = NIL;
	bool		any = false;
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

		if (!know(f, when->expr, &known) || !approximate(f, when->result, &result))
			return false;
		known.condition = shared(f, known.condition);
		values = lappend(values, arm(known.condition, result.value));
		absolutes = lappend(absolutes, arm(known.condition, result.absolute == nullptr ? constant(0) : result.absolute));
		if (!known.exact)
		{
			Expr	   *lost = (Expr *) rel_null_test((Node *) known.condition, IS_NULL);

			values = lappend(values, arm(lost, unknown(FLOAT8OID)));
			absolutes = lappend(absolutes, arm(lost, unknown(FLOAT8OID)));
		}
		any = any || result.absolute != nullptr;
		a->relative = Max(a->relative, result.relative);
		a->most = Max(a->most, result.most);
		a->least = Min(a->least, result.least);
	}
	a->value = choice(FLOAT8OID, values, last.value);
	if (any)
		a->absolute = choice(FLOAT8OID, absolutes, last.absolute == nullptr ? constant(0) : last.absolute);
	return true;
}

/* Null where the arguments are equal, or may be. */
static bool
approximate_nullif(FilterContext *f, const NullIfExpr *expr, Approximate *a)
{
	OpExpr	   *equal = static_cast<OpExpr *>(copyObjectImpl(expr));
	Known		known;

	equal->xpr.type = T_OpExpr;
	equal->opresulttype = BOOLOID;
	if (!know(f, (Expr *) equal, &known) || !approximate(f, static_cast<Expr *>(linitial(expr->args)), a))
		return false;
	known.condition = makeBoolExpr(NOT_EXPR, list_make1(known.condition), -1);
	a->value = if_true(known.condition, a->value);
	return true;
}

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
			if (can_raise(static_cast<Expr *>(linitial(args))))
				return false;
			leaf(call(F_FLOAT8_INT2, FLOAT8OID, args), CONVERSION, 5, 0, a);
			return true;
		case F_NUMERIC_INT4:
			if (can_raise(static_cast<Expr *>(linitial(args))))
				return false;
			leaf(call(F_FLOAT8_INT4, FLOAT8OID, args), CONVERSION, 10, 0, a);
			return true;
		case F_NUMERIC_INT8:
			if (can_raise(static_cast<Expr *>(linitial(args))))
				return false;
			leaf(call(F_FLOAT8_INT8, FLOAT8OID, args), CONVERSION, 19, 0, a);
			return true;
		case F_ROUND_NUMERIC:
		case F_ROUND_NUMERIC_INT4:
		case F_TRUNC_NUMERIC:
		case F_TRUNC_NUMERIC_INT4:
		case F_CEIL_NUMERIC:
		case F_CEILING_NUMERIC:
		case F_FLOOR_NUMERIC:
			return round_off(f, function, args, a);
		case F_NUMERIC_UPLUS:
			return approximate(f, static_cast<Expr *>(linitial(args)), a);
		case F_NUMERIC_UMINUS:
		case F_NUMERIC_ABS:
		case F_ABS_NUMERIC:
		case F_SQRT_NUMERIC:
		case F_NUMERIC_SQRT:
			if (!approximate(f, static_cast<Expr *>(linitial(args)), &x))
				return false;
			if (function == F_SQRT_NUMERIC || function == F_NUMERIC_SQRT)
			{
				take_root(f, x, LARGEST, a);
				return true;
			}
			*a = x;
			a->value = function == F_NUMERIC_UMINUS ? call(F_FLOAT8UM, FLOAT8OID, list_make1(x.value)) : magnitude(x.value);
			return true;
		case F_NUMERIC_ADD:
		case F_NUMERIC_SUB:
		case F_NUMERIC_MUL:
		case F_NUMERIC_DIV:
			if (!approximate(f, static_cast<Expr *>(linitial(args)), &x) || !approximate(f, static_cast<Expr *>(lsecond(args)), &y))
				return false;
			if (function == F_NUMERIC_MUL)
				multiply(f, x, y, a);
			else if (function == F_NUMERIC_DIV)
				divide(f, x, y, a);
			else
				add(function == F_NUMERIC_ADD ? F_FLOAT8PL : F_FLOAT8MI, f, x, y, a);
			return true;
		default:
			return false;
	}
}

static bool
approximate(FilterContext *f, Expr *expr, Approximate *a)
{
	bool		known;

	check_stack_depth();
	if (exprType((Node *) expr) != NUMERICOID)
		return false;
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

/* -- conditions --------------------------------------------------------------------------------- */

static Expr *
truth(bool v)
{
	return (Expr *) makeBoolConst(v, false);
}

static void
inexact(Expr *condition, bool drops, Known *known)
{
	*known = Known{condition, false, drops};
}

/* By more than the error, and by no more than numbers can: infinities and NaN are unknown. */
static Expr *
exceeds(Expr *difference, Expr *error)
{
	return makeBoolExpr(AND_EXPR, list_make2(greater(difference, error), greater(constant(LARGEST), difference)), -1);
}

static bool
know_comparison(FilterContext *f, const OpExpr *op, Known *known)
{
	List	   *args;
	bool		if_less = false;
	bool		if_equal = false;
	bool		if_greater = false;
	Approximate x;
	Approximate y;
	Expr	   *less;
	Expr	   *more;
	List	   *arms;

	switch (called((const Expr *) op, &args))
	{
		case F_NUMERIC_EQ: if_equal = true; break;
		case F_NUMERIC_NE: if_less = if_greater = true; break;
		case F_NUMERIC_LT: if_less = true; break;
		case F_NUMERIC_LE: if_less = if_equal = true; break;
		case F_NUMERIC_GT: if_greater = true; break;
		case F_NUMERIC_GE: if_greater = if_equal = true; break;
		default: return false;
	}
	if (!approximate(f, static_cast<Expr *>(linitial(args)), &x) || !approximate(f, static_cast<Expr *>(lsecond(args)), &y))
		return false;
	x.value = shared(f, x.value);
	if (IsA(y.value, Const) && x.absolute == nullptr)
	{
		const double limit = DatumGetFloat8(((const Const *) y.value)->constvalue);
		const double error = 2 * (x.relative + y.relative) * std::fabs(limit);

		less = greater(constant(limit - error), x.value);
		more = exceeds(x.value, constant(limit + error));
		arms = list_make2(arm(more, truth(if_greater)), arm(less, truth(if_less)));
		/* 0 has no error */
		if (limit == 0)
			arms = lappend(arms, arm(call(F_FLOAT8EQ, BOOLOID, list_make2(x.value, constant(0))), truth(if_equal)));
	}
	else
	{
		Expr	   *error;

		y.value = shared(f, y.value);
		error = shared(f, times(sum(error_of(x, ROUNDING), error_of(y, ROUNDING)), SLACK));
		less = exceeds(in_floats(F_FLOAT8MI, y.value, x.value), error);
		more = exceeds(in_floats(F_FLOAT8MI, x.value, y.value), error);
		arms = list_make2(arm(more, truth(if_greater)), arm(less, truth(if_less)));
	}
	inexact(choice(BOOLOID, arms, nullptr), true, known);
	return true;
}

/* Is it computed of more than columns? */
static bool
is_arithmetic(Node *node, void *)
{
	List	   *args;

	if (node == nullptr)
		return false;
	switch (IsA(node, FuncExpr) || IsA(node, OpExpr) ? called((Expr *) node, &args) : InvalidOid)
	{
		case F_NUMERIC_ADD:
		case F_NUMERIC_SUB:
		case F_NUMERIC_MUL:
		case F_NUMERIC_DIV:
			return true;
		default:
			return expression_tree_walker(node, reinterpret_cast<bool (*)()>(is_arithmetic), nullptr);
	}
}

/* What is computed is not null, so nothing was raised for it. */
static bool
know_value(FilterContext *f, const NullTest *test, bool is_null, bool is_not_null, Known *known)
{
	Approximate a;

	if (!approximate(f, test->arg, &a))
		return false;
	inexact(if_true((Expr *) rel_null_test((Node *) a.value, IS_NOT_NULL), truth(test->nulltesttype == IS_NULL ? is_null : is_not_null)),
			!is_not_null, known);
	return true;
}

/* x IS NULL OR x IS NOT NULL asks only whether x raises an error. */
static const NullTest *
check_of_value(const BoolExpr *expr)
{
	const NullTest *first = static_cast<const NullTest *>(linitial(expr->args));
	const NullTest *second = static_cast<const NullTest *>(llast(expr->args));

	return expr->boolop == OR_EXPR && list_length(expr->args) == 2 && IsA(first, NullTest) && IsA(second, NullTest) &&
		first->nulltesttype != second->nulltesttype && equal(first->arg, second->arg) ? first : nullptr;
}

/* Unknown where the one before is. */
static Expr *
in_order(const Known &before, Expr *condition)
{
	if (before.exact)
		return condition;
	return choice(BOOLOID, list_make1(arm((Expr *) rel_null_test((Node *) before.condition, IS_NULL), unknown(BOOLOID))), condition);
}

/* PostgreSQL goes from left to right: what is unknown may be an error, which another arm does not prevent. */
static bool
know_bool(FilterContext *f, const BoolExpr *expr, Known *known)
{
	const NullTest *check = check_of_value(expr);
	ListCell   *lc;

	if (check != nullptr)
		return know_value(f, check, true, true, known);
	foreach(lc, expr->args)
	{
		const Known before = *known;

		if (!know(f, static_cast<Expr *>(lfirst(lc)), known))
			return false;
		if (expr->boolop == NOT_EXPR)
			known->condition = makeBoolExpr(NOT_EXPR, list_make1(known->condition), -1);
		else if (foreach_current_index(lc) > 0)
			known->condition = in_order(before, makeBoolExpr(expr->boolop, list_make2(before.condition, known->condition), -1));
		known->condition = shared(f, known->condition);
		known->exact = known->exact && (foreach_current_index(lc) == 0 || before.exact);
	}
	known->drops = true;
	return true;
}

/* In floats rather than exactly where numbers are computed: large ones would be flagged. */
static bool
know(FilterContext *f, Expr *condition, Known *known)
{
	const char *reason = f->l->held_reason;

	check_stack_depth();
	if (IsA(condition, BoolExpr))
		return know_bool(f, (const BoolExpr *) condition, known);
	if (IsA(condition, OpExpr) && is_arithmetic((Node *) condition, nullptr) && know_comparison(f, (const OpExpr *) condition, known))
		return true;
	if (!can_raise(condition) && is_computed(f->l, f->piece, (Node *) condition))
	{
		*known = Known{condition, true, true};
		return true;
	}
	f->l->held_reason = reason;
	if (IsA(condition, OpExpr))
		return know_comparison(f, (const OpExpr *) condition, known);
	return IsA(condition, NullTest) && know_value(f, (const NullTest *) condition, false, true, known);
}

bool
float_filter(Lowering *l, const Piece *piece, Node *condition, FloatFilter *filter)
{
	const char *reason = l->held_reason;
	FilterContext f = {l, piece, {}};
	Known		known;

	if (piece == nullptr || !l->may_filter)
		return false;
	fill_input(l->root, &piece->shape, &f.input);
	if (!know(&f, (Expr *) condition, &known) || known.exact)
		return false;
	*filter = FloatFilter{shared_once((Node *) shared(&f, known.condition)), known.drops};
	if (is_larger_than(filter->known, MOST_NODES) || !is_computed(l, piece, filter->known))
	{
		l->held_reason = reason;
		return false;
	}
	l->filters = true;
	return true;
}

/* -- for PostgreSQL ----------------------------------------------------------------------------------- */

Node *
where_unknown(Lowering *l, const FloatFilter *filter, Node *condition)
{
	PlaceHolderVar *known = makeNode(PlaceHolderVar);

	known->phexpr = (Expr *) filter->known;
	known->phid = ++l->root->glob->lastPHId;
	return (Node *) makeBoolExpr(OR_EXPR, list_make2(known, condition), -1);
}

static bool
is_filtered(const void *condition)
{
	const BoolExpr *expr = static_cast<const BoolExpr *>(condition);

	return IsA(expr, BoolExpr) && expr->boolop == OR_EXPR && IsA(linitial(expr->args), PlaceHolderVar);
}

List *
without_filters(const List *conditions)
{
	List	   *exact = NIL;
	ListCell   *lc;

	foreach(lc, conditions)
		exact = lappend(exact, is_filtered(lfirst(lc)) ? lsecond(((BoolExpr *) lfirst(lc))->args) : lfirst(lc));
	return exact;
}

List *
unfiltered(const List *conditions)
{
	List	   *rest = NIL;
	ListCell   *lc;

	foreach(lc, conditions)
	{
		if (!is_filtered(lfirst(lc)))
			rest = lappend(rest, lfirst(lc));
	}
	return rest;
}

}  // namespace gpuvm
