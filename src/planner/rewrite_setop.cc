/*
 * rewrite_setop.cc: the different rows of a that are (INTERSECT) or are not (EXCEPT) in b are SELECT DISTINCT ... FROM a WHERE [NOT]
 * EXISTS (SELECT FROM b WHERE its columns = those): a join that a program makes, and its groups. Nulls are equal to a set operation,
 * but not to a join: where both of two columns may have some, rows of a with a null there, mostly few, are left to a set operation of their own.
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

/* Is there an EXCEPT among these? */
bool
is_except(const Node *node)
{
	const SetOperationStmt *set = (const SetOperationStmt *) node;

	return IsA(node, SetOperationStmt) && (set->op == SETOP_EXCEPT || is_except(set->larg));
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

/*
 * Column by column, the other arm's and the first one's, as seen from the subquery; NIL if a join has no such equality. `*nulls`: the numbers
 * of those columns that may be null in both.
 */
static List *
equalities(const SetOperationStmt *set, Query *first, int first_rtindex, Query *other, List **nulls)
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

		/* which arm's values come out PostgreSQL chooses by their sizes */
		if (set->op == SETOP_INTERSECT && !are_exact(column, column_of(other, number)))
			return NIL;
		if (!op_hashjoinable(eqop, type) || !op_mergejoinable(eqop, type) || !op_strict(eqop))
			return NIL;
		if (!is_not_null(first, conditions_of(first), column) && !is_not_null(other, conditions_of(other), column_of(other, number)))
			*nulls = lappend_int(*nulls, number);
		op = (OpExpr *) make_opclause(eqop, BOOLOID, false, (Expr *) makeVar(1, number, type, -1, collation, 0),
									  (Expr *) makeVar(first_rtindex, number, type, -1, collation, 1), InvalidOid, collation);
		if (!is_quiet((Node *) op))
			return NIL;
		found = lappend(found, op);
	}
	return found;
}

static RangeTblRef *
reference(int rtindex)
{
	RangeTblRef *ref = makeNode(RangeTblRef);

	ref->rtindex = rtindex;
	return ref;
}

static RangeTblEntry *
relation_of(Query *subquery)
{
	ParseState *pstate = make_parsestate(nullptr);

	addRangeTableEntryForSubquery(pstate, subquery, makeAlias("set_operation", NIL), false, false);
	return linitial_node(RangeTblEntry, pstate->p_rtable);
}

/* SELECT columns FROM (the arm) WHERE ...: the arm stands a level deeper than before, as seen from CTEs that it reads. */
static Query *
select_from(Query *arm, List *columns, Node *quals)
{
	Query	   *query = makeNode(Query);

	IncrementVarSublevelsUp((Node *) arm, 1, 1);
	query->commandType = CMD_SELECT;
	query->canSetTag = true;
	query->rtable = list_make1(relation_of(arm));
	query->targetList = columns;
	query->jointree = makeFromExpr(list_make1(reference(1)), quals);
	return query;
}

/* The columns of what is the first relation. */
static List *
columns_of(const Query *arm)
{
	List	   *columns = NIL;
	ListCell   *lc;

	foreach(lc, arm->targetList)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, lc);
		Node	   *expr = (Node *) entry->expr;

		if (!entry->resjunk)
			columns = lappend(columns, makeTargetEntry((Expr *) makeVar(1, entry->resno, exprType(expr), exprTypmod(expr), exprCollation(expr), 0),
													   entry->resno, entry->resname, false));
	}
	return columns;
}

/* The arm's rows with a null in one of the columns, or those with none. */
static Query *
by_nulls(Query *arm, const List *numbers, bool with)
{
	List	   *columns = columns_of(arm);
	List	   *tests = NIL;
	ListCell   *lc;

	foreach(lc, numbers)
	{
		NullTest   *test = makeNode(NullTest);

		test->arg = static_cast<Expr *>(copyObjectImpl(list_nth_node(TargetEntry, columns, lfirst_int(lc) - 1)->expr));
		test->nulltesttype = with ? IS_NULL : IS_NOT_NULL;
		test->location = -1;
		tests = lappend(tests, test);
	}
	return select_from(arm, columns, list_length(tests) == 1 ? static_cast<Node *>(linitial(tests)) : (Node *) makeBoolExpr(with ? OR_EXPR : AND_EXPR, tests, -1));
}

static SetOperationStmt *
set_of(const SetOperationStmt *like, SetOperation op, bool all, Node *larg, Node *rarg)
{
	SetOperationStmt *set = static_cast<SetOperationStmt *>(copyObjectImpl(like));

	set->op = op;
	set->all = all;
	set->larg = larg;
	set->rarg = rarg;
	if (all)
		set->groupClauses = NIL;
	return set;
}

/* a's rows without a null in these columns, as a join with b, UNION ALL those with one, as before, of those of b. */
static bool
set_nulls_apart(Query *query, const SetOperationStmt *set, const List *numbers)
{
	const Query *first = rt_fetch(((const RangeTblRef *) set->larg)->rtindex, query->rtable)->subquery;
	const Query *other = rt_fetch(((const RangeTblRef *) set->rarg)->rtindex, query->rtable)->subquery;
	Query	   *arms[2] = {static_cast<Query *>(copyObjectImpl(first)), static_cast<Query *>(copyObjectImpl(other))};
	Query	   *joined = makeNode(Query);
	ListCell   *lc;

	IncrementVarSublevelsUp((Node *) arms[0], 1, 1);
	IncrementVarSublevelsUp((Node *) arms[1], 1, 1);
	joined->commandType = CMD_SELECT;
	joined->canSetTag = true;
	joined->targetList = columns_of(first);
	joined->rtable = list_make2(relation_of(by_nulls(arms[0], numbers, false)), relation_of(arms[1]));
	joined->jointree = makeFromExpr(NIL, nullptr);
	joined->setOperations = (Node *) set_of(set, set->op, false, (Node *) reference(1), (Node *) reference(2));
	if (!rewrite_setop(joined))
		return false;
	query->rtable = list_make3(relation_of(joined), relation_of(by_nulls(static_cast<Query *>(copyObjectImpl(first)), numbers, true)),
							   relation_of(by_nulls(static_cast<Query *>(copyObjectImpl(other)), numbers, true)));
	query->setOperations = (Node *) set_of(set, SETOP_UNION, true, (Node *) reference(1),
										   (Node *) set_of(set, set->op, false, (Node *) reference(2), (Node *) reference(3)));
	foreach(lc, query->targetList)
		((Var *) lfirst_node(TargetEntry, lc)->expr)->varno = 1;
	return true;
}

/* [NOT] EXISTS (SELECT FROM (the arm) WHERE ...) */
static Node *
membership(const SetOperationStmt *set, Query *arm, List *quals)
{
	Query	   *query = select_from(arm, NIL, (Node *) make_ands_explicit(quals));
	SubLink    *exists = makeNode(SubLink);

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

/* What says nothing of the rows that come out: that each comes once, and in which order. */
static void
simplify_arm(Query *arm)
{
	arm->distinctClause = NIL;
	arm->sortClause = NIL;
}

bool
rewrite_setop(Query *query)
{
	List	   *sets = NIL;
	List	   *conditions = NIL;
	List	   *nulls = NIL;
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
	simplify_arm(first->subquery);
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
		simplify_arm(other->subquery);
		quals = equalities(set, first->subquery, first_rtindex, other->subquery, &nulls);
		if (quals == NIL)
			return false;
		if (nulls != NIL)
			return list_length(sets) == 1 && set_nulls_apart(query, set, nulls);
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
