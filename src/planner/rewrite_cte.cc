/*
 * rewrite_cte.cc: a CTE that is read several times is one plan, whose rows PostgreSQL keeps. Written as that many subqueries, each is
 * part of what reads it: groups that are aggregated never leave their program. Only where each time gives the same rows.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

#include "pg/value_form.h"
#include "plan/two_steps.h"
#include "planner/rewrite.h"

namespace gpuvm {

bool
are_exact(Node *a, Node *b)
{
	Oid			type = getBaseType(exprType(a));

	return is_exact(a) && is_exact(b) && (exprTypmod(a) == exprTypmod(b) || (type != NUMERICOID && type != BPCHAROID));
}

static bool
inexact_walker(Node *node, void *context)
{
	if (node == nullptr)
		return false;
	if (IsA(node, Aggref))
	{
		const Aggref *agg = (const Aggref *) node;
		ListCell   *lc;

		switch (agg->aggfnoid)
		{
			case F_COUNT_:
			case F_COUNT_ANY:
			case F_SUM_INT2:
			case F_SUM_INT4:
			case F_SUM_INT8:
			case F_SUM_NUMERIC:
			case F_AVG_INT2:
			case F_AVG_INT4:
			case F_AVG_INT8:
			case F_AVG_NUMERIC:
				return false;
			default:
				break;
		}
		foreach(lc, agg->args)
		{
			if (!is_exact((Node *) lfirst_node(TargetEntry, lc)->expr))
				return true;
		}
		return false;
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(inexact_walker), context);
}

/* Does the query, which is quiet, give the very same rows each time, whatever its plan is? */
static bool
is_repeatable(Query *query)
{
	ListCell   *lc;

	if (query->hasSubLinks || inexact_walker((Node *) query->targetList, nullptr) || inexact_walker(query->havingQual, nullptr))
		return false;
	foreach(lc, list_concat_copy(query->groupClause, query->distinctClause))
	{
		if (!is_exact(get_sortgroupclause_expr(lfirst_node(SortGroupClause, lc), query->targetList)))
			return false;
	}
	foreach(lc, query->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind == RTE_SUBQUERY && !is_repeatable(rte->subquery))
			return false;
	}
	return true;
}

bool
is_inlinable_cte(const CommonTableExpr *cte)
{
	return cte->ctematerialized == CTEMaterializeDefault && cte->cterefcount > 1 && !cte->cterecursive && IsA(cte->ctequery, Query);
}

bool
rewrite_ctes(Query *query)
{
	bool		any = false;
	ListCell   *lc;

	foreach(lc, query->cteList)
	{
		CommonTableExpr *cte = lfirst_node(CommonTableExpr, lc);

		if (!is_inlinable_cte(cte) || !is_quiet_query((Query *) cte->ctequery, true, nullptr) || !is_repeatable((Query *) cte->ctequery))
			continue;
		cte->ctematerialized = CTEMaterializeNever;
		any = true;
	}
	return any;
}

}  // namespace gpuvm
