/*
 * band.cc: bounds out of conditions on a difference of two columns: |a.x - b.x| < d says between what b.x lies.
 *
 * PostgreSQL raises an error for a pair whose difference its type does not hold; a range never sees that pair. So
 * the differences are noted, and such a plan runs only if the columns' smallest and largest values say that none is
 * too large (source_differences_fit() in executor/source_columns.cc). The bounds themselves are computed in int8, which holds them all.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

#include "compiler/compile.h"
#include "planner/band.h"

namespace gpuvm {

static bool
is_small_int(Oid type)
{
	return type == INT2OID || type == INT4OID;
}

/* The difference of two columns as int2 or int4, one of them of the relation; below abs() if *absolute. */
static OpExpr *
difference_of(Node *node, Relids relids, bool *absolute)
{
	OpExpr	   *op;
	int			mine = 0;
	ListCell   *lc;

	*absolute = IsA(node, FuncExpr) && (((FuncExpr *) node)->funcid == F_ABS_INT2 || ((FuncExpr *) node)->funcid == F_ABS_INT4);
	if (*absolute)
		node = static_cast<Node *>(linitial(((FuncExpr *) node)->args));
	/* @ is the operator of abs() */
	else if (IsA(node, OpExpr) && list_length(((OpExpr *) node)->args) == 1)
	{
		Oid			function = get_opcode(((OpExpr *) node)->opno);

		*absolute = function == F_INT2ABS || function == F_INT4ABS;
		node = static_cast<Node *>(linitial(((OpExpr *) node)->args));
		if (!*absolute)
			return nullptr;
	}
	if (!IsA(node, OpExpr) || list_length(((OpExpr *) node)->args) != 2)
		return nullptr;
	op = (OpExpr *) node;
	switch (get_opcode(op->opno))
	{
		case F_INT2MI:
		case F_INT4MI:
		case F_INT24MI:
		case F_INT42MI:
			break;
		default:
			return nullptr;
	}
	foreach(lc, op->args)
	{
		const Var  *var = static_cast<const Var *>(lfirst(lc));

		if (!IsA(var, Var) || var->varattno <= 0 || var->varlevelsup != 0)
			return nullptr;
		mine += bms_is_member(var->varno, relids);
	}
	return mine == 1 ? op : nullptr;
}

static Oid
int8_operator(const char *name)
{
	return OpernameGetOprid(list_make2(makeString(pstrdup("pg_catalog")), makeString(pstrdup(name))), INT8OID, INT8OID);
}

static Expr *
as_int8(Expr *expr)
{
	Oid			type = exprType((Node *) expr);

	return (Expr *) makeFuncExpr(type == INT2OID ? F_INT8_INT2 : F_INT8_INT4, INT8OID, list_make1(expr), InvalidOid, InvalidOid, COERCE_IMPLICIT_CAST);
}

static Expr *
operation(const char *name, Oid result, Expr *left, Expr *right)
{
	OpExpr	   *op = (OpExpr *) make_opclause(int8_operator(name), result, false, left, right, InvalidOid, InvalidOid);

	set_opfuncid(op);
	return (Expr *) op;
}

/* mine OP other SIGN limit */
static Expr *
bound(Expr *mine, const char *op, Expr *other, const char *sign, Expr *limit)
{
	return operation(op, BOOLOID, as_int8(mine), operation(sign, INT8OID, as_int8(other), as_int8(limit)));
}

/* NIL, or one or two clauses that say the same as the condition if no difference is too large for its type. */
static List *
difference_bounds(PlannerInfo *root, Expr *clause, Relids relids, OpExpr **difference)
{
	OpExpr	   *op = (OpExpr *) clause;
	bool		absolute = false;
	bool		commuted = false;
	bool		less;
	char	   *name;
	Expr	   *limit;
	Expr	   *first;
	Expr	   *second;
	bool		mine_first;
	const char *below;
	const char *above;

	if (!IsA(clause, OpExpr) || list_length(op->args) != 2)
		return NIL;
	*difference = difference_of(static_cast<Node *>(linitial(op->args)), relids, &absolute);
	if (*difference == nullptr)
	{
		*difference = difference_of(static_cast<Node *>(lsecond(op->args)), relids, &absolute);
		commuted = true;
	}
	if (*difference == nullptr)
		return NIL;
	limit = static_cast<Expr *>(commuted ? linitial(op->args) : lsecond(op->args));
	if (!is_small_int(exprType((Node *) limit)) || bms_overlap(relids, pull_varnos(root, (Node *) limit)) ||
		can_raise(limit) || contain_volatile_functions((Node *) limit))
		return NIL;
	name = get_opname(op->opno);
	if (get_func_namespace(get_opcode(op->opno)) != PG_CATALOG_NAMESPACE || name == nullptr ||
		(strcmp(name, "<") != 0 && strcmp(name, "<=") != 0 && strcmp(name, ">") != 0 && strcmp(name, ">=") != 0))
		return NIL;
	less = (name[0] == '<') != commuted;
	if (absolute && !less)
		return NIL;
	below = name[1] == '=' ? "<=" : "<";
	above = name[1] == '=' ? ">=" : ">";
	first = static_cast<Expr *>(linitial((*difference)->args));
	second = static_cast<Expr *>(lsecond((*difference)->args));
	mine_first = bms_is_member(((Var *) first)->varno, relids);
	if (absolute)
	{
		Expr	   *mine = mine_first ? first : second;
		Expr	   *other = mine_first ? second : first;

		return list_make2(bound(mine, above, other, "-", limit), bound(mine, below, other, "+", limit));
	}
	/* first - second < limit: first < second + limit, and second > first - limit */
	if (mine_first)
		return list_make1(bound(first, less ? below : above, second, "+", limit));
	return list_make1(bound(second, less ? above : below, first, "-", limit));
}

void
split_difference_range(PlannerInfo *root, List *conditions, Relids relids, List **range, List **rest, List **differences)
{
	List	   *clauses = NIL;
	List	   *bounds = NIL;
	List	   *of = NIL;			/* OpExprs */
	ListCell   *lc;
	ListCell   *lc2;
	ListCell   *lc3;

	foreach(lc, conditions)
	{
		OpExpr	   *difference = nullptr;
		List	   *made = difference_bounds(root, static_cast<Expr *>(lfirst(lc)), relids, &difference);

		bounds = lappend(bounds, made);
		of = lappend(of, difference);
		clauses = made != NIL ? list_concat(clauses, made) : lappend(clauses, lfirst(lc));
	}
	split_range(clauses, relids, range, rest);
	*rest = *differences = NIL;
	forthree(lc, conditions, lc2, bounds, lc3, of)
	{
		List	   *made = static_cast<List *>(lfirst(lc2));

		if (made == NIL)
		{
			if (!list_member_ptr(*range, lfirst(lc)))
				*rest = lappend(*rest, lfirst(lc));
			continue;
		}
		/* what only one bound of two says is a condition still */
		if (list_difference_ptr(made, *range) != NIL)
			*rest = lappend(*rest, lfirst(lc));
		if (list_length(list_difference_ptr(made, *range)) < list_length(made))
			*differences = lappend(*differences, lfirst(lc3));
	}
}

}  // namespace gpuvm
