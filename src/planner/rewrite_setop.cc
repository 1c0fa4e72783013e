/*
 * rewrite_setop.cc: the different rows of a that are (INTERSECT) or are not (EXCEPT) in b are SELECT DISTINCT ... FROM a WHERE [NOT]
 * EXISTS (SELECT FROM b WHERE its columns = those): a join that a program makes, and its groups. Nulls are equal to a set operation,
 * but not to a join: of two columns one must have none.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_node.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
}

#include "planner/rewrite.h"

namespace gpuvm {

bool
is_rewritable_setop(const Node *node)
{
	const SetOperationStmt *set = (const SetOperationStmt *) node;

	while (IsA(set, SetOperationStmt))
	{
		if (set->all || set->op == SETOP_UNION || !IsA(set->rarg, RangeTblRef))
			return false;
		set = (const SetOperationStmt *) set->larg;
	}
	return set != (const SetOperationStmt *) node;
}

/* Can the arm be a relation of a join? */
static bool
is_plain_arm(Query *query, RangeTblEntry *rte, const SetOperationStmt *set)
{
	LevelsRead	read = levels_read_by(rte->subquery);
	ListCell   *lc;

	if (rte->securityQuals != NIL || rte->security_barrier || read.outer || read.further || !is_quiet_query(rte->subquery, true, query))
		return false;
	foreach(lc, rte->subquery->targetList)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, lc);

		if (entry->resjunk)
			continue;
		if (exprType((Node *) entry->expr) != list_nth_oid(set->colTypes, foreach_current_index(lc)) ||
			exprCollation((Node *) entry->expr) != list_nth_oid(set->colCollations, foreach_current_index(lc)))
			return false;
	}
	return true;
}

static Node *
column_of(Query *arm, int number)
{
	return (Node *) get_tle_by_resno(arm->targetList, number)->expr;
}

/* Column by column, the other arm's and the first one's, as seen from the subquery; NIL if a join would find other rows equal. */
static List *
equalities(const SetOperationStmt *set, Query *first, int first_rtindex, Query *other)
{
	List	   *found = NIL;
	ListCell   *lc;

	foreach(lc, set->groupClauses)
	{
		int			number = foreach_current_index(lc) + 1;
		Oid			eqop = lfirst_node(SortGroupClause, lc)->eqop;
		Node	   *column = column_of(first, number);
		Oid			type = exprType(column);
		Oid			collation = exprCollation(column);
		OpExpr	   *op;

		if (!op_hashjoinable(eqop, type) || !op_mergejoinable(eqop, type) || !op_strict(eqop) ||
			(!is_not_null(first, conditions_of(first), column) && !is_not_null(other, conditions_of(other), column_of(other, number))))
			return NIL;
		op = (OpExpr *) make_opclause(eqop, BOOLOID, false, (Expr *) makeVar(1, number, type, -1, collation, 0),
									  (Expr *) makeVar(first_rtindex, number, type, -1, collation, 1), InvalidOid, collation);
		if (!is_quiet((Node *) op))
			return NIL;
		found = lappend(found, op);
	}
	return found;
}

/* [NOT] EXISTS (SELECT FROM (the arm) WHERE ...) */
static Node *
membership(const SetOperationStmt *set, Query *arm, List *quals)
{
	Query	   *query = makeNode(Query);
	ParseState *pstate = make_parsestate(nullptr);
	RangeTblRef *ref = makeNode(RangeTblRef);
	SubLink    *exists = makeNode(SubLink);

	/* it stands a level deeper than before, as seen from CTEs that it reads */
	IncrementVarSublevelsUp((Node *) arm, 1, 1);
	addRangeTableEntryForSubquery(pstate, arm, makeAlias("set_operation", NIL), false, false);
	query->commandType = CMD_SELECT;
	query->canSetTag = true;
	query->rtable = pstate->p_rtable;
	ref->rtindex = 1;
	query->jointree = makeFromExpr(list_make1(ref), (Node *) make_ands_explicit(quals));
	exists->subLinkType = EXISTS_SUBLINK;
	exists->subselect = (Node *) query;
	exists->location = -1;
	return set->op == SETOP_INTERSECT ? (Node *) exists : (Node *) make_notclause((Expr *) exists);
}

void
add_distinct(Query *query)
{
	Index		ref = 0;
	ListCell   *lc;

	query->distinctClause = static_cast<List *>(copyObjectImpl(query->sortClause));
	foreach(lc, query->targetList)
		ref = Max(ref, lfirst_node(TargetEntry, lc)->ressortgroupref);
	foreach(lc, query->targetList)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);

		if (entry->ressortgroupref == 0)
			query->distinctClause = lappend(query->distinctClause, group_by(entry, ++ref));
	}
}

bool
rewrite_setop(Query *query)
{
	List	   *sets = NIL;
	List	   *conditions = NIL;
	Node	   *node = query->setOperations;
	int			first_rtindex;
	RangeTblEntry *first;
	ListCell   *lc;

	if (!is_rewritable_setop(node) || query->rowMarks != NIL || query->targetList == NIL)
		return false;
	for (; IsA(node, SetOperationStmt); node = ((SetOperationStmt *) node)->larg)
		sets = lcons(node, sets);
	first_rtindex = ((RangeTblRef *) node)->rtindex;
	first = rt_fetch(first_rtindex, query->rtable);
	if (!is_plain_arm(query, first, linitial_node(SetOperationStmt, sets)))
		return false;
	foreach(lc, query->targetList)
	{
		/* ORDER BY sorts by columns of the result alone */
		if (lfirst_node(TargetEntry, lc)->resjunk || !IsA(lfirst_node(TargetEntry, lc)->expr, Var))
			return false;
	}
	foreach(lc, sets)
	{
		const SetOperationStmt *set = lfirst_node(SetOperationStmt, lc);
		RangeTblEntry *other = rt_fetch(((RangeTblRef *) set->rarg)->rtindex, query->rtable);
		List	   *quals;

		if (!is_plain_arm(query, other, set) || !equal(set->colTypes, linitial_node(SetOperationStmt, sets)->colTypes) ||
			!equal(set->colCollations, linitial_node(SetOperationStmt, sets)->colCollations))
			return false;
		quals = equalities(set, first->subquery, first_rtindex, other->subquery);
		if (quals == NIL)
			return false;
		conditions = lappend(conditions, quals);
	}

	foreach(lc, sets)
	{
		const SetOperationStmt *set = lfirst_node(SetOperationStmt, lc);
		RangeTblEntry *other = rt_fetch(((RangeTblRef *) set->rarg)->rtindex, query->rtable);
		Query	   *arm = other->subquery;

		/* nothing of the range table is renumbered */
		other->rtekind = RTE_RESULT;
		other->subquery = nullptr;
		lfirst(list_nth_cell(conditions, foreach_current_index(lc))) =
			membership(set, arm, static_cast<List *>(list_nth(conditions, foreach_current_index(lc))));
	}
	query->setOperations = nullptr;
	query->jointree = makeFromExpr(list_make1(node), (Node *) make_ands_explicit(conditions));
	query->hasSubLinks = true;
	add_distinct(query);
	return true;
}

}  // namespace gpuvm
