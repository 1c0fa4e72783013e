/*
 * rewrite_exists.cc: EXISTS (SELECT FROM a join WHERE its keys = the outer level's) asks for each key once. What the join
 * multiplies need not be kept as rows: they become groups by the keys, and the other join finds one row for each.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_node.h"
#include "parser/parse_relation.h"
#include "rewrite/rewriteManip.h"
}

#include "planner/rewrite.h"

namespace gpuvm {

/* The join's different keys, a level deeper than it was. */
static Query *
distinct_keys(Query *body, const Correlation *by)
{
	ListCell   *lc;

	body = static_cast<Query *>(copyObjectImpl(body));
	body->jointree->quals = by->stays == NIL ? nullptr : (Node *) make_ands_explicit(static_cast<List *>(copyObjectImpl(by->stays)));
	body->targetList = NIL;
	foreach(lc, by->inner)
	{
		int			n = foreach_current_index(lc) + 1;
		TargetEntry *entry = makeTargetEntry((Expr *) copyObjectImpl(lfirst(lc)), n, psprintf("key%d", n), false);

		body->targetList = lappend(body->targetList, entry);
		body->distinctClause = lappend(body->distinctClause, group_by(entry, n));
	}
	IncrementVarSublevelsUp((Node *) body, 1, 1);
	return body;
}

Node *
rewrite_exists(const RewriteLevel *level, Node *condition)
{
	SubLink    *exists = (SubLink *) (is_notclause(condition) ? (Node *) get_notclausearg(condition) : condition);
	Query	   *body;
	Query	   *query;
	Correlation by;
	ParseState *pstate;
	List	   *equalities = NIL;
	RangeTblRef *ref;
	ListCell   *lc;

	if (!IsA(exists, SubLink) || exists->subLinkType != EXISTS_SUBLINK)
		return nullptr;
	body = (Query *) exists->subselect;
	/* a relation of its own is computed though nothing may ask for it */
	if (!is_plain_join(body) || !is_quiet_query(body, false, level->query) || !split_correlation(level, body, &by))
		return nullptr;
	foreach(lc, by.equal)
	{
		OpExpr	   *op = static_cast<OpExpr *>(copyObjectImpl(lfirst(lc)));
		Node	   *key = static_cast<Node *>(list_nth(by.inner, foreach_current_index(lc)));
		Var		   *var = makeVar(1, foreach_current_index(lc) + 1, exprType(key), exprTypmod(key), exprCollation(key), 0);

		lfirst(equal(linitial(op->args), key) ? list_head(op->args) : list_second_cell(op->args)) = var;
		equalities = lappend(equalities, op);
	}
	query = makeNode(Query);
	query->commandType = CMD_SELECT;
	query->canSetTag = true;
	pstate = make_parsestate(nullptr);
	addRangeTableEntryForSubquery(pstate, distinct_keys(body, &by), makeAlias("exists_subquery", NIL), false, false);
	query->rtable = pstate->p_rtable;
	ref = makeNode(RangeTblRef);
	ref->rtindex = 1;
	query->jointree = makeFromExpr(list_make1(ref), (Node *) make_ands_explicit(equalities));
	exists = static_cast<SubLink *>(copyObjectImpl(exists));
	exists->subselect = (Node *) query;
	return is_notclause(condition) ? (Node *) make_notclause((Expr *) exists) : (Node *) exists;
}

}  // namespace gpuvm
