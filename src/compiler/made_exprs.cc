/* made_exprs.cc: see made_exprs.h. */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/bitmapset.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
}

#include "compiler/made_exprs.h"

namespace gpuvm {

/* PostgreSQL's cast, which takes no variadic arguments: nothing else looks like it, and PostgreSQL evaluates it as the cast. */
Expr *
approximation(Expr *number)
{
	FuncExpr   *expr = makeFuncExpr(F_FLOAT8_NUMERIC, FLOAT8OID, list_make1(number), InvalidOid, InvalidOid,
									COERCE_EXPLICIT_CALL);

	expr->funcvariadic = true;
	expr->location = LOCATION_QUIET;
	return (Expr *) expr;
}

bool
is_approximation(const Expr *expr)
{
	return IsA(expr, FuncExpr) && ((const FuncExpr *) expr)->funcid == F_FLOAT8_NUMERIC && ((const FuncExpr *) expr)->funcvariadic;
}

/* This function, which takes one argument in queries, does nothing but to raise an error. */
Expr *
half_of(Expr *number, bool high)
{
	return (Expr *) makeFuncExpr(F_TRIGGER_IN, INT8OID, list_make2(number, makeBoolConst(high, false)), InvalidOid,
								 InvalidOid, COERCE_EXPLICIT_CALL);
}

int
which_half(const Expr *expr)
{
	const FuncExpr *call = (const FuncExpr *) expr;

	if (!IsA(expr, FuncExpr) || call->funcid != F_TRIGGER_IN || list_length(call->args) != 2)
		return 0;
	return DatumGetBool(static_cast<const Const *>(lsecond(call->args))->constvalue) ? 1 : -1;
}

/* A cast to its own type does nothing. The number is where it stands in the query's text, which an expression that is made does not. */
Expr *
shared_expr(Expr *expr, int number)
{
	Node	   *node = (Node *) expr;
	RelabelType *shared = makeRelabelType(expr, exprType(node), exprTypmod(node), exprCollation(node), COERCE_IMPLICIT_CAST);

	shared->location = -1 - number;
	return (Expr *) shared;
}

int
shared_number(const Expr *expr)
{
	return IsA(expr, RelabelType) && ((const RelabelType *) expr)->location < -1 ? -1 - ((const RelabelType *) expr)->location : 0;
}

bool
is_shared_again(const Expr *expr)
{
	return shared_number(expr) != 0 && IsA(((const RelabelType *) expr)->arg, CaseTestExpr);
}

/* In the order in which programs compute expressions. */
static Node *
shared_once_mutator(Node *node, void *context)
{
	Bitmapset **seen = static_cast<Bitmapset **>(context);
	const int	number = node == nullptr ? 0 : shared_number((const Expr *) node);
	CaseTestExpr *again;

	if (node == nullptr)
		return nullptr;
	if (number == 0 || !bms_is_member(number, *seen))
	{
		if (number != 0)
			*seen = bms_add_member(*seen, number);
		return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(shared_once_mutator), context);
	}
	again = makeNode(CaseTestExpr);
	again->typeId = exprType(node);
	again->typeMod = exprTypmod(node);
	again->collation = exprCollation(node);
	return (Node *) shared_expr((Expr *) again, number);
}

Node *
shared_once(Node *expr)
{
	Bitmapset  *seen = nullptr;

	return shared_once_mutator(expr, &seen);
}

Expr *
float_condition(Expr *known)
{
	BooleanTest *test = makeNode(BooleanTest);

	test->arg = known;
	test->booltesttype = IS_NOT_FALSE;
	test->location = -1;
	return (Expr *) test;
}

bool
is_float_condition(const Node *condition)
{
	const BooleanTest *test = (const BooleanTest *) condition;

	return IsA(condition, BooleanTest) && test->booltesttype == IS_NOT_FALSE && shared_number(test->arg) != 0;
}

}  // namespace gpuvm
