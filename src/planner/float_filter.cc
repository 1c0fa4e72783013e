/* float_filter.cc: see float_filter.h. */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
}

#include <cmath>

#include "compiler/made_exprs.h"
#include "plan/expand.h"
#include "planner/float_bounds.h"
#include "planner/float_filter.h"

namespace gpuvm {

/* Of a condition in floats. */
constexpr int MOST_NODES = 1000;

/* -- comparisons ---------------------------------------------------------------------------------- */

static Node *
truth(bool v)
{
	return makeBoolConst(v, false);
}

/* By more than the error, and by no more than numbers can: infinities and NaN are unknown. */
static Expr *
exceeds(Expr *difference, Expr *error)
{
	return makeBoolExpr(AND_EXPR, list_make2(float_greater(difference, error),
											 float_greater(float_constant(LARGEST_FLOAT), difference)), -1);
}

/* What the comparison is where the first number is less, equal and greater; false: it is none of numerics. */
static bool
outcomes(Oid function, bool *less, bool *equal, bool *greater)
{
	*less = function == F_NUMERIC_LT || function == F_NUMERIC_LE || function == F_NUMERIC_NE;
	*equal = function == F_NUMERIC_EQ || function == F_NUMERIC_LE || function == F_NUMERIC_GE;
	*greater = function == F_NUMERIC_GT || function == F_NUMERIC_GE || function == F_NUMERIC_NE;
	return *less || *equal || *greater;
}

static bool
know_comparison(FilterContext *f, const OpExpr *op, Known *known)
{
	List	   *args;
	bool		if_less;
	bool		if_equal;
	bool		if_greater;
	Approximate x;
	Approximate y;
	List	   *arms;

	if (!outcomes(called((const Expr *) op, &args), &if_less, &if_equal, &if_greater) ||
		!approximate(f, static_cast<Expr *>(linitial(args)), &x) || !approximate(f, static_cast<Expr *>(lsecond(args)), &y))
		return false;
	if (IsA(y.value, Const) && !((const Const *) y.value)->constisnull && x.absolute == nullptr)
	{
		const double limit = DatumGetFloat8(((const Const *) y.value)->constvalue);
		const double error = 2 * (x.relative + y.relative) * std::fabs(limit);
		Expr	   *less = float_greater(float_constant(limit - error), x.value);
		Expr	   *more = exceeds(x.value, float_constant(limit + error));

		arms = list_make2(rel_when((Node *) more, truth(if_greater)), rel_when((Node *) less, truth(if_less)));
		/* 0 has no error */
		if (limit == 0)
		{
			FuncExpr   *zero = makeFuncExpr(F_FLOAT8EQ, BOOLOID, list_make2(x.value, float_constant(0)), InvalidOid,
											InvalidOid, COERCE_EXPLICIT_CALL);

			arms = lappend(arms, rel_when((Node *) zero, truth(if_equal)));
		}
	}
	else
	{
		Expr	   *error = shared(f, float_times(float_sum(error_of(x, ROUNDING), error_of(y, ROUNDING)), SLACK));
		Expr	   *less = exceeds(float_call(F_FLOAT8MI, y.value, x.value), error);
		Expr	   *more = exceeds(float_call(F_FLOAT8MI, x.value, y.value), error);

		arms = list_make2(rel_when((Node *) more, truth(if_greater)), rel_when((Node *) less, truth(if_less)));
	}
	*known = Known{(Expr *) rel_case(arms, nullptr), false, true};
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

/* -- other conditions ------------------------------------------------------------------------------- */

/* What is computed is a number, so nothing was raised for it, and the condition is this. */
static bool
know_value(FilterContext *f, const NullTest *test, bool condition, Known *known)
{
	Approximate a;

	if (!approximate(f, test->arg, &a))
		return false;
	*known = Known{null_if_not(float_greater(float_constant(LARGEST_FLOAT), float_magnitude(a.value)),
							   (Expr *) truth(condition)),
				   false, !condition};
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

/* PostgreSQL goes from left to right: what is unknown may be an error, which another arm does not prevent. */
static bool
know_bool(FilterContext *f, const BoolExpr *expr, Known *known)
{
	const NullTest *check = check_of_value(expr);
	ListCell   *lc;

	if (check != nullptr)
		return know_value(f, check, true, known);
	if (!know(f, static_cast<Expr *>(linitial(expr->args)), known))
		return false;
	if (expr->boolop == NOT_EXPR)
		known->condition = makeBoolExpr(NOT_EXPR, list_make1(known->condition), -1);
	for_each_from(lc, expr->args, 1)
	{
		Known		next;
		Expr	   *both;

		if (!know(f, static_cast<Expr *>(lfirst(lc)), &next))
			return false;
		known->condition = shared(f, known->condition);
		both = makeBoolExpr(expr->boolop, list_make2(known->condition, next.condition), -1);
		if (!known->exact)
		{
			Node	   *lost = rel_null_test((Node *) known->condition, IS_NULL);

			both = (Expr *) rel_case(list_make1(rel_when(lost, makeBoolConst(false, true))), (Node *) both);
		}
		*known = Known{both, known->exact && next.exact, true};
	}
	known->drops = true;
	return true;
}

/* In floats rather than exactly where numbers are computed: large ones would be flagged. */
bool
know(FilterContext *f, Expr *condition, Known *known)
{
	const char *reason = f->l->held_reason;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (IsA(condition, BoolExpr))
		return know_bool(f, (const BoolExpr *) condition, known);
	if (IsA(condition, OpExpr) && is_arithmetic((Node *) condition, nullptr) &&
		know_comparison(f, (const OpExpr *) condition, known))
		return true;
	if (!can_raise(condition) && is_computed(f->l, f->piece, (Node *) condition))
	{
		*known = Known{condition, true, true};
		return true;
	}
	f->l->held_reason = reason;
	if (IsA(condition, OpExpr))
		return know_comparison(f, (const OpExpr *) condition, known);
	return IsA(condition, NullTest) &&
		know_value(f, (const NullTest *) condition, ((const NullTest *) condition)->nulltesttype == IS_NOT_NULL, known);
}

bool
float_filter(Lowering *l, const Piece *piece, Node *condition, FloatFilter *filter)
{
	const char *reason = l->held_reason;
	FilterContext f = {l, piece, {}, NIL, NIL};
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
