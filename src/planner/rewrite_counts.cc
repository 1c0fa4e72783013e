/*
 * rewrite_counts.cc: EXISTS and IN that PostgreSQL makes no join of, as they are arms of OR or values: (SELECT 0 < count(*) ...) says
 * the same, and becomes a join with groups as other correlated aggregates do (rewrite_scalar.cc).
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_aggregate.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"
}

#include "planner/rewrite.h"

namespace gpuvm {

bool
is_joined_by_planner(const Node *condition)
{
	const SubLink *sublink = (const SubLink *) (is_notclause(condition) ? (Node *) get_notclausearg(condition) : condition);

	return IsA(sublink, SubLink) &&
		(sublink->subLinkType == EXISTS_SUBLINK || (sublink->subLinkType == ANY_SUBLINK && (const Node *) sublink == condition));
}

List *
members_in(Node *condition)
{
	List	   *found = NIL;
	ListCell   *lc;

	if (IsA(condition, SubLink) && ((SubLink *) condition)->subLinkType == ANY_SUBLINK)
		return list_make1(condition);
	if (!is_andclause(condition) && !is_orclause(condition))
		return NIL;
	foreach(lc, ((BoolExpr *) condition)->args)
		found = list_concat(found, members_in(static_cast<Node *>(lfirst(lc))));
	return found;
}

/* Rows that a condition more is asked of, and nothing else. */
static bool
is_plain(const Query *body)
{
	return body->commandType == CMD_SELECT && !body->hasAggs && !body->hasWindowFuncs && !body->hasTargetSRFs && body->groupClause == NIL &&
		body->groupingSets == NIL && body->havingQual == nullptr && body->distinctClause == NIL && body->limitCount == nullptr &&
		body->limitOffset == nullptr && body->setOperations == nullptr && body->rowMarks == NIL;
}

/* The subquery, now of one value. */
static SubLink *
counting(Query *body)
{
	Aggref	   *count = makeNode(Aggref);
	Const	   *none = makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(0), false, FLOAT8PASSBYVAL);
	SubLink    *sublink = makeNode(SubLink);

	count->aggfnoid = F_COUNT_;
	count->aggtype = INT8OID;
	count->aggstar = true;
	count->aggkind = AGGKIND_NORMAL;
	count->aggno = count->aggtransno = -1;
	count->location = -1;
	body->hasAggs = true;
	body->sortClause = NIL;
	body->targetList = list_make1(makeTargetEntry(make_opclause(Int8LessOperator, BOOLOID, false, (Expr *) none, (Expr *) count, InvalidOid, InvalidOid),
												  1, pstrdup("exists"), false));
	sublink->subLinkType = EXPR_SUBLINK;
	sublink->subselect = (Node *) body;
	sublink->location = -1;
	return sublink;
}

SubLink *
exists_count(const SubLink *exists)
{
	return !is_plain((const Query *) exists->subselect) ? nullptr : counting(static_cast<Query *>(copyObjectImpl(exists->subselect)));
}

Node *
with_columns(Node *node, void *context)
{
	if (node == nullptr)
		return nullptr;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_SUBLINK)
	{
		const TargetEntry *entry = get_tle_by_resno(static_cast<List *>(context), ((Param *) node)->paramid);

		return static_cast<Node *>(copyObjectImpl(entry->expr));
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(with_columns), context);
}

SubLink *
member_count(const SubLink *member)
{
	Query	   *body = (Query *) member->subselect;
	Node	   *test;
	List	   *quals;

	if (!is_plain(body) || checkExprHasSubLink(member->testexpr) || contain_volatile_functions((Node *) body->targetList))
		return nullptr;
	body = static_cast<Query *>(copyObjectImpl(body));
	test = static_cast<Node *>(copyObjectImpl(member->testexpr));
	IncrementVarSublevelsUp(test, 1, 0);
	quals = list_concat(conjuncts(body->jointree->quals), conjuncts(with_columns(test, body->targetList)));
	body->jointree->quals = (Node *) make_ands_explicit(quals);
	return counting(body);
}

}  // namespace gpuvm
