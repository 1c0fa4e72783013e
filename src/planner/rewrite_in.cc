/*
 * rewrite_in.cc: x IN (SELECT y FROM a join) asks for each value of y once. PostgreSQL pulls the join up, where it is the inner side
 * of another join, which no program has. With DISTINCT it stays a relation of its own, whose rows a program makes and another reads.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_oper.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
}

#include "planner/rewrite.h"

namespace gpuvm {

/* Leaves of the join tree, and subqueries in its conditions that PostgreSQL makes joins of. */
static int
count_joined(Node *jointree)
{
	Node	   *quals = IsA(jointree, FromExpr) ? ((FromExpr *) jointree)->quals : nullptr;
	int			n = 0;
	ListCell   *lc;

	if (IsA(jointree, RangeTblRef))
		return 1;
	if (IsA(jointree, JoinExpr))
		return count_joined(((JoinExpr *) jointree)->larg) + count_joined(((JoinExpr *) jointree)->rarg);
	foreach(lc, ((FromExpr *) jointree)->fromlist)
		n += count_joined(static_cast<Node *>(lfirst(lc)));
	foreach(lc, conjuncts(quals))
	{
		Node	   *condition = static_cast<Node *>(lfirst(lc));

		if (is_notclause(condition))
			condition = (Node *) get_notclausearg(condition);
		if (IsA(condition, SubLink) && (((SubLink *) condition)->subLinkType == ANY_SUBLINK || ((SubLink *) condition)->subLinkType == EXISTS_SUBLINK))
			n++;
	}
	return n;
}

bool
is_plain_query(Query *body)
{
	ListCell   *lc;

	if (body->commandType != CMD_SELECT || body->hasAggs || body->hasWindowFuncs || body->hasTargetSRFs ||
		body->hasRowSecurity || body->groupClause != NIL || body->groupingSets != NIL || body->havingQual != nullptr || body->distinctClause != NIL ||
		body->sortClause != NIL || body->limitCount != nullptr || body->limitOffset != nullptr || body->setOperations != nullptr ||
		body->rowMarks != NIL || contain_volatile_functions((Node *) body->targetList))
		return false;
	foreach(lc, body->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->securityQuals != NIL || rte->security_barrier)
			return false;
	}
	return true;
}

bool
is_plain_join(Query *body)
{
	return is_plain_query(body) && count_joined((Node *) body->jointree) > 1;
}

/* Is the value compared with the subquery's column, so that values of one group are all equal to it, or none is? */
static bool
is_member_test(Query *body, Node *test)
{
	Node	   *column;
	TargetEntry *entry;

	if (!IsA(test, OpExpr) || list_length(((OpExpr *) test)->args) != 2)
		return false;
	column = static_cast<Node *>(lsecond(((OpExpr *) test)->args));
	while (IsA(column, RelabelType))
		column = (Node *) ((RelabelType *) column)->arg;
	if (!IsA(column, Param) || ((Param *) column)->paramkind != PARAM_SUBLINK)
		return false;
	entry = get_tle_by_resno(body->targetList, ((Param *) column)->paramid);
	return entry != nullptr && !entry->resjunk && is_group_equality((OpExpr *) test, (Node *) entry->expr);
}

bool
make_distinct_member(Query *body, List *tests)
{
	LevelsRead	read = levels_read_by(body);
	List	   *distinct = NIL;
	ListCell   *lc;

	if (read.outer || read.further || list_length(tests) != list_length(body->targetList) || !is_plain_join(body))
		return false;
	foreach(lc, tests)
	{
		if (!is_member_test(body, static_cast<Node *>(lfirst(lc))))
			return false;
	}
	foreach(lc, body->targetList)
		distinct = lappend(distinct, group_by(lfirst_node(TargetEntry, lc), foreach_current_index(lc) + 1));
	body->distinctClause = distinct;
	return true;
}

bool
rewrite_in(const Query *query, Node *condition)
{
	SubLink    *member = (SubLink *) condition;

	/* a relation of its own is computed though nothing may ask for it */
	return IsA(member, SubLink) && member->subLinkType == ANY_SUBLINK && is_quiet_query((Query *) member->subselect, true, query) &&
		make_distinct_member((Query *) member->subselect, conjuncts(member->testexpr));
}

}  // namespace gpuvm
