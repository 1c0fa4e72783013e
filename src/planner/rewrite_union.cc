/*
 * rewrite_union.cc: a UNION b ORDER BY ... as SELECT DISTINCT ... FROM (a UNION ALL b) ORDER BY ..., with each arm's different rows in
 * that order: PostgreSQL merges what programs have sorted, leaves out what comes twice, and LIMIT stops it early.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
}

#include "planner/rewrite.h"
#include "planner/setops.h"

namespace gpuvm {

bool
is_rewritable_union(const Query *query)
{
	const SetOperationStmt *set = (const SetOperationStmt *) query->setOperations;

	return set != nullptr && IsA(set, SetOperationStmt) && set->op == SETOP_UNION && !set->all && query->sortClause != NIL;
}

/* Are the arms below the node those of one UNION, of the columns' own types, and do equal values of theirs look the same? Collects their numbers. */
static bool
collect_arms(Query *query, const Node *node, const SetOperationStmt *top, List **arms)
{
	const SetOperationStmt *set = (const SetOperationStmt *) node;
	const RangeTblEntry *rte;
	Query	   *first;
	ListCell   *lc;

	if (IsA(node, SetOperationStmt))
		return set->op == SETOP_UNION && equal(set->colTypes, top->colTypes) && equal(set->colCollations, top->colCollations) &&
			collect_arms(query, set->larg, top, arms) && collect_arms(query, set->rarg, top, arms);
	rte = rt_fetch(((const RangeTblRef *) node)->rtindex, query->rtable);
	first = *arms != NIL ? rt_fetch(linitial_int(*arms), query->rtable)->subquery : rte->subquery;
	if (rte->securityQuals != NIL || rte->security_barrier)
		return false;
	foreach(lc, rte->subquery->targetList)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, lc);

		if (entry->resjunk)
			continue;
		if (exprType((Node *) entry->expr) != list_nth_oid(top->colTypes, foreach_current_index(lc)) ||
			exprCollation((Node *) entry->expr) != list_nth_oid(top->colCollations, foreach_current_index(lc)) ||
			!are_exact((Node *) get_tle_by_resno(first->targetList, entry->resno)->expr, (Node *) entry->expr))
			return false;
	}
	*arms = lappend_int(*arms, ((const RangeTblRef *) node)->rtindex);
	return true;
}

static Node *
union_all(Node *node)
{
	SetOperationStmt *set = (SetOperationStmt *) node;

	if (IsA(node, SetOperationStmt))
	{
		set->all = true;
		set->groupClauses = NIL;
		union_all(set->larg);
		union_all(set->rarg);
	}
	return node;
}

/* The arm's different rows, by the columns as the whole is sorted. */
static void
sort_arm(Query *arm, const Query *query)
{
	ListCell   *lc;

	foreach(lc, query->distinctClause)
	{
		const SortGroupClause *by = lfirst_node(SortGroupClause, lc);
		TargetEntry *entry = get_tle_by_resno(arm->targetList, get_sortgroupclause_tle(const_cast<SortGroupClause *>(by), query->targetList)->resno);
		SortGroupClause *clause = static_cast<SortGroupClause *>(copyObjectImpl(by));

		entry->ressortgroupref = clause->tleSortGroupRef = foreach_current_index(lc) + 1;
		arm->sortClause = lappend(arm->sortClause, clause);
	}
	arm->distinctClause = static_cast<List *>(copyObjectImpl(arm->sortClause));
}

bool
rewrite_union(Query *query)
{
	const SetOperationStmt *top = (const SetOperationStmt *) query->setOperations;
	Query	   *inner;
	List	   *arms = NIL;
	bool		any = false;
	ListCell   *lc;

	if (!is_rewritable_union(query) || query->rowMarks != NIL || contain_volatile_functions((Node *) query) ||
		!collect_arms(query, query->setOperations, top, &arms))
		return false;
	foreach(lc, query->targetList)
	{
		if (lfirst_node(TargetEntry, lc)->resjunk || !IsA(lfirst_node(TargetEntry, lc)->expr, Var))
			return false;
	}
	foreach(lc, arms)
		any |= can_be_distinct_arm(rt_fetch(lfirst_int(lc), query->rtable)->subquery, top);
	if (!any)
		return false;

	add_distinct(query);
	foreach(lc, arms)
	{
		Query	   *arm = rt_fetch(lfirst_int(lc), query->rtable)->subquery;

		if (can_be_distinct_arm(arm, top))
			sort_arm(arm, query);
		/* it stands a level deeper than before, as seen from CTEs that it reads */
		IncrementVarSublevelsUp((Node *) arm, 1, 1);
	}
	inner = makeNode(Query);
	inner->jointree = makeFromExpr(NIL, nullptr);
	inner->setOperations = union_all(query->setOperations);
	inner->targetList = static_cast<List *>(copyObjectImpl(query->targetList));
	foreach(lc, inner->targetList)
		lfirst_node(TargetEntry, lc)->ressortgroupref = 0;
	foreach(lc, query->targetList)
		((Var *) lfirst_node(TargetEntry, lc)->expr)->varno = 1;
	read_subquery(query, inner, "set_operation");
	query->setOperations = nullptr;
	return true;
}

}  // namespace gpuvm
