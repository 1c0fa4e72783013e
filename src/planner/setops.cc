/*
 * setops.cc: arms of set operations without duplicates.
 *
 * UNION, INTERSECT and EXCEPT (without ALL) hash or sort all rows of their arms in PostgreSQL. Whether a row comes once or
 * often makes no difference to them, so an arm may be a DISTINCT, which a program makes as groups: then only different
 * rows are handed out. It stays one only where statistics say that it is worth it.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_oper.h"
#include "parser/parsetree.h"
}

#include <limits>

#include "pg/settings.h"
#include "planner/cost.h"
#include "planner/paths.h"
#include "planner/setops.h"
#include "store/registry.h"

namespace gpuvm {

/* What PostgreSQL takes for a row that comes out of an arm, in microseconds: to pass it on, hash it, and compare it. */
constexpr double ROW_US = 0.25;

/* Groups by the entry, under this number. */
static SortGroupClause *
group_by(TargetEntry *entry, Index ref)
{
	SortGroupClause *group = makeNode(SortGroupClause);

	entry->ressortgroupref = group->tleSortGroupRef = ref;
	get_sort_group_operators(exprType((Node *) entry->expr), false, false, false, &group->sortop, &group->eqop, nullptr,
							 &group->hashable);
	return group;
}

/* And what a group takes to be handed out more than a row does. */
constexpr double GROUP_US = 0.1;

/* -- which arms ---------------------------------------------------------------------------- */

/* An arm of the set operation, or one below it: do its duplicates not matter, as little as those of the operation's result? */
static bool
ignores_duplicates(const SetOperationStmt *set, const Node *arm, bool ignored)
{
	if (!set->all)
		ignored = true;
	else if (set->op == SETOP_EXCEPT)
		ignored = false;
	/* values that one type, or collation, finds equal another may not */
	if (IsA(arm, SetOperationStmt))
		ignored = ignored && equal(((const SetOperationStmt *) arm)->colTypes, set->colTypes) &&
			equal(((const SetOperationStmt *) arm)->colCollations, set->colCollations);
	return ignored;
}

bool
can_be_distinct_arm(Query *arm, const SetOperationStmt *set)
{
	ListCell   *lc;

	if (arm->commandType != CMD_SELECT || arm->hasAggs || arm->hasWindowFuncs || arm->hasTargetSRFs || arm->groupClause != NIL ||
		arm->groupingSets != NIL || arm->havingQual != nullptr || arm->distinctClause != NIL || arm->sortClause != NIL || arm->limitCount != nullptr ||
		arm->limitOffset != nullptr || arm->rowMarks != NIL || arm->setOperations != nullptr || arm->targetList == NIL ||
		list_length(arm->targetList) != list_length(set->colTypes) || !may_read_imported(arm->rtable, false) ||
		contain_volatile_functions((Node *) arm->targetList))
		return false;
	foreach(lc, arm->targetList)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, lc);
		Oid			type = exprType((Node *) entry->expr);
		Oid			eqop;
		bool		hashable;

		if (entry->resjunk || type != list_nth_oid(set->colTypes, foreach_current_index(lc)) ||
			exprCollation((Node *) entry->expr) != list_nth_oid(set->colCollations, foreach_current_index(lc)))
			return false;
		get_sort_group_operators(type, false, false, false, nullptr, &eqop, nullptr, &hashable);
		if (!OidIsValid(eqop) || !hashable)
			return false;
	}
	return true;
}

static void
mark_arms(Query *query, Node *node, const SetOperationStmt *above, bool ignored)
{
	if (IsA(node, SetOperationStmt))
	{
		SetOperationStmt *set = (SetOperationStmt *) node;

		mark_arms(query, set->larg, set, ignores_duplicates(set, set->larg, ignored));
		mark_arms(query, set->rarg, set, ignores_duplicates(set, set->rarg, ignored));
	}
	else if (ignored)
	{
		Query	   *arm = rt_fetch(((RangeTblRef *) node)->rtindex, query->rtable)->subquery;
		ListCell   *lc;

		if (!can_be_distinct_arm(arm, above))
			return;
		foreach(lc, arm->targetList)
			arm->distinctClause = lappend(arm->distinctClause, group_by(lfirst_node(TargetEntry, lc), foreach_current_index(lc) + 1));
	}
}

/* Walks expressions only where a level has subqueries in them. */
static bool
arms_walker(Node *node, void *context)
{
	Query	   *query = (Query *) node;
	ListCell   *lc;

	if (node == nullptr || IsA(node, RangeTblEntry))
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, reinterpret_cast<bool (*)()>(arms_walker), context);
	if (query->setOperations != nullptr)
		mark_arms(query, query->setOperations, nullptr, false);
	foreach(lc, query->cteList)
	{
		CommonTableExpr *cte = lfirst_node(CommonTableExpr, lc);

		/* what is recursive is computed over and over */
		if (!cte->cterecursive)
			arms_walker(cte->ctequery, context);
	}
	if (query->hasSubLinks)
		return query_tree_walker(query, reinterpret_cast<bool (*)()>(arms_walker), context, QTW_IGNORE_CTE_SUBQUERIES | QTW_EXAMINE_RTES_BEFORE);
	return range_table_walker(query->rtable, reinterpret_cast<bool (*)()>(arms_walker), context, QTW_EXAMINE_RTES_BEFORE);
}

void
make_arms_distinct(Query *parse)
{
	arms_walker((Node *) parse, nullptr);
}

/* -- which paths ------------------------------------------------------------------------------ */

/* Is the query an arm of these set operations, and do its duplicates not matter? */
static bool
is_distinct_arm(PlannerInfo *root, const Node *node, const Query *arm, bool ignored)
{
	const SetOperationStmt *set = (const SetOperationStmt *) node;

	if (IsA(node, RangeTblRef))
		return ignored && planner_rt_fetch(((const RangeTblRef *) node)->rtindex, root)->subquery == arm;
	return is_distinct_arm(root, set->larg, arm, ignores_duplicates(set, set->larg, ignored)) ||
		is_distinct_arm(root, set->rarg, arm, ignores_duplicates(set, set->rarg, ignored));
}

static double
cost_above(const Path *path, double row_us)
{
	return path->total_cost + path->rows * row_us * cost_of_us();
}

/* The least that the rows take to get out and through the set operation. */
static double
least_cost_above(const RelOptInfo *rel)
{
	double		least = std::numeric_limits<double>::infinity();
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		const Path *path = static_cast<const Path *>(lfirst(lc));

		if (path->param_info == nullptr)
			least = Min(least, cost_above(path, ROW_US));
	}
	return least;
}

void
choose_arm_paths(PlannerInfo *root, RelOptInfo *all_rel, RelOptInfo *distinct_rel)
{
	const PlannerInfo *parent = root->parent_root;
	List	   *ours = NIL;
	ListCell   *lc;

	if (parent == nullptr || parent->parse->setOperations == nullptr || parent->hasRecursion || root->parse->hasDistinctOn || root->parse->sortClause != NIL ||
		root->parse->limitCount != nullptr || root->parse->limitOffset != nullptr ||
		!is_distinct_arm(root->parent_root, parent->parse->setOperations, root->parse, false))
		return;
	/* what PostgreSQL hashes here it would hash again */
	foreach(lc, distinct_rel->pathlist)
	{
		const Path *path = static_cast<const Path *>(lfirst(lc));

		if (is_gpuvm_path(path) && (setting_force || cost_above(path, ROW_US + GROUP_US) <= least_cost_above(all_rel)))
			ours = lappend(ours, lfirst(lc));
	}
	distinct_rel->pathlist = ours != NIL ? ours : list_copy(all_rel->pathlist);
	distinct_rel->partial_pathlist = ours != NIL ? NIL : list_copy(all_rel->partial_pathlist);
	/* the planner of the set operation takes the rows of a DISTINCT for different */
	if (ours == NIL)
		root->parse->distinctClause = NIL;
}

}  // namespace gpuvm
