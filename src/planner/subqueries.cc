/* subqueries.cc: which subqueries that depend on no row may raise an error (executor/subqueries.cc). */
#include "pg/pg.h"

extern "C" {
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
}

#include "planner/paths.h"
#include "planner/quiet.h"
#include "planner/scan_plan.h"

namespace gpuvm {

static bool
param_walker(Node *node, void *context)
{
	List	  **params = static_cast<List **>(context);

	if (node == nullptr)
		return false;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
		*params = list_append_unique_int(*params, ((Param *) node)->paramid);
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(param_walker), context);
}

/* The subquery that gives the parameter, and the level that it stands in; NULL: it is of no subquery. */
static const SubPlan *
subplan_of(PlannerInfo *root, int param, PlannerInfo **level)
{
	ListCell   *lc;

	for (*level = root; *level != nullptr; *level = (*level)->parent_root)
	{
		foreach(lc, (*level)->init_plans)
		{
			const SubPlan *subplan = lfirst_node(SubPlan, lc);

			if (list_member_int(subplan->setParam, param))
				return subplan;
		}
	}
	return nullptr;
}

static bool is_quiet_subquery(PlannerInfo *root, const SubPlan *subplan, const PlannerInfo *level);

/* May none of the subqueries raise that the query reads, its own and those of levels around it? */
static bool
reads_quiet(PlannerInfo *subroot)
{
	const Query *query = subroot->parse;
	List	   *params = NIL;
	ListCell   *lc;

	param_walker((Node *) query->jointree, &params);
	param_walker((Node *) query->targetList, &params);
	param_walker(query->havingQual, &params);
	foreach(lc, params)
	{
		PlannerInfo *level;
		const SubPlan *subplan = subplan_of(subroot, lfirst_int(lc), &level);

		if (subplan != nullptr && !is_quiet_subquery(subroot, subplan, level))
			return false;
	}
	return true;
}

/* Its value is one, and none of what it computes raises an error. */
static bool
find_quiet(PlannerInfo *root, const SubPlan *subplan, const PlannerInfo *level)
{
	PlannerInfo *subroot = static_cast<PlannerInfo *>(list_nth(root->glob->subroots, subplan->plan_id - 1));
	Query	   *query = subroot->parse;
	const bool	value = subplan->subLinkType == EXPR_SUBLINK;

	if (subplan->subLinkType == CTE_SUBLINK)
		return true;
	if (value && (!query->hasAggs || query->groupClause != NIL || query->groupingSets != NIL))
		return false;
	return (value || subplan->subLinkType == EXISTS_SUBLINK) && is_quiet_planned_query(query, value, level->parse) &&
		reads_quiet(subroot);
}

/* Found out once: subqueries may be nested. */
static bool
is_quiet_subquery(PlannerInfo *root, const SubPlan *subplan, const PlannerInfo *level)
{
	SubqueryNotes *notes = subquery_notes();
	MemoryContext before;
	bool		quiet;

	check_stack_depth();
	if (notes != nullptr && bms_is_member(subplan->plan_id, notes->asked))
		return bms_is_member(subplan->plan_id, notes->quiet);
	quiet = find_quiet(root, subplan, level);
	if (notes == nullptr)
		return quiet;
	before = MemoryContextSwitchTo(notes->context);
	notes->asked = bms_add_member(notes->asked, subplan->plan_id);
	if (quiet)
		notes->quiet = bms_add_member(notes->quiet, subplan->plan_id);
	MemoryContextSwitchTo(before);
	return quiet;
}

/* Does it read a CTE of a level around it? */
static bool
outer_cte_walker(Node *node, void *context)
{
	int		   *depth = static_cast<int *>(context);
	bool		found;

	if (node == nullptr)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		const RangeTblEntry *rte = (const RangeTblEntry *) node;

		return rte->rtekind == RTE_CTE && static_cast<int>(rte->ctelevelsup) >= *depth;
	}
	if (!IsA(node, Query))
		return expression_tree_walker(node, reinterpret_cast<bool (*)()>(outer_cte_walker), context);
	++*depth;
	found = query_tree_walker((Query *) node, reinterpret_cast<bool (*)()>(outer_cte_walker), context,
							  QTW_EXAMINE_RTES_BEFORE);
	--*depth;
	return found;
}

/* May one of the CTEs that the subquery can see give other rows when it is computed once more? */
static bool
sees_volatile_cte(const PlannerInfo *level)
{
	for (; level != nullptr; level = level->parent_root)
	{
		if (contain_volatile_functions((Node *) level->parse->cteList))
			return true;
	}
	return false;
}

/* Evaluated apart it computes anew the CTEs that it reads, and what volatile functions do is seen though no row asks for it. */
static bool
is_late(PlannerInfo *root, const SubPlan *subplan, const PlannerInfo *level)
{
	Node	   *query = (Node *) static_cast<PlannerInfo *>(list_nth(root->glob->subroots, subplan->plan_id - 1))->parse;
	int			depth = 0;

	return contain_volatile_functions(query) || (outer_cte_walker(query, &depth) && sees_volatile_cte(level));
}

void
find_loud_subqueries(PlannerInfo *root, ScanPlan *plan)
{
	List	   *params = NIL;
	ListCell   *lc;

	plan->loud_subqueries = plan->late_subqueries = NIL;
	param_walker((Node *) plan->params, &params);
	for (int i = 0; i < plan->nmaps; i++)
		param_walker((Node *) plan->maps[i].expr, &params);
	for (int i = 0; i < plan->npatterns; i++)
		param_walker((Node *) plan->patterns[i].expr, &params);
	foreach(lc, params)
	{
		PlannerInfo *level;
		const SubPlan *subplan = subplan_of(root, lfirst_int(lc), &level);

		if (subplan == nullptr || is_quiet_subquery(root, subplan, level))
			continue;
		if (is_late(root, subplan, level))
			plan->late_subqueries = lappend_int(plan->late_subqueries, lfirst_int(lc));
		else
			plan->loud_subqueries = lappend_int(plan->loud_subqueries, lfirst_int(lc));
	}
}

}  // namespace gpuvm
