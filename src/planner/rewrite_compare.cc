/*
 * rewrite_compare.cc: x > ALL (SELECT y FROM u WHERE u.k = t.k) is computed for every row of t, and so are ANY and NOT IN that depend on the row.
 * As conditions they are NOT EXISTS (SELECT FROM u WHERE u.k = t.k AND (x > y) IS NOT TRUE) and its like: joins.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteManip.h"
}

#include "planner/rewrite.h"

namespace gpuvm {

static Node *
boolean_test(Node *node, BoolTestType type)
{
	BooleanTest *test = makeNode(BooleanTest);

	test->arg = (Expr *) node;
	test->booltesttype = type;
	test->location = -1;
	return (Node *) test;
}

Node *
rewrite_comparison(const RewriteLevel *level, Node *condition)
{
	const bool	negated = is_notclause(condition);
	SubLink    *sublink = (SubLink *) (negated ? (Node *) get_notclausearg(condition) : condition);
	Query	   *body;
	SubLink    *exists;
	Node	   *test;
	LevelsRead	read;

	if (!IsA(sublink, SubLink) || (sublink->subLinkType != ANY_SUBLINK && (negated || sublink->subLinkType != ALL_SUBLINK)))
		return nullptr;
	body = (Query *) sublink->subselect;
	read = levels_read_by(body);
	/* what depends on no row PostgreSQL computes once */
	if (!read.outer || read.further || body->hasSubLinks || !is_plain_query(body) || !is_quiet_query(body, true, level->query) ||
		checkExprHasSubLink(sublink->testexpr) || reads_loud(level->query, sublink->testexpr))
		return nullptr;
	body = static_cast<Query *>(copyObjectImpl(body));
	test = static_cast<Node *>(copyObjectImpl(sublink->testexpr));
	IncrementVarSublevelsUp(test, 1, 0);
	test = with_columns(test, body->targetList);
	if (!is_quiet(test))
		return nullptr;
	if (sublink->subLinkType == ALL_SUBLINK)
		test = boolean_test(test, IS_NOT_TRUE);
	else if (negated)
		test = boolean_test(test, IS_NOT_FALSE);
	body->jointree->quals = make_and_qual(body->jointree->quals, test);
	body->targetList = NIL;
	exists = makeNode(SubLink);
	exists->subLinkType = EXISTS_SUBLINK;
	exists->subselect = (Node *) body;
	exists->location = -1;
	return negated || sublink->subLinkType == ALL_SUBLINK ? (Node *) make_notclause((Expr *) exists) : (Node *) exists;
}

}  // namespace gpuvm
