/*
 * rewrite_not_in.cc: x NOT IN (SELECT y ...) keeps the rows that NOT EXISTS (SELECT ... WHERE y = x) keeps, where
 * neither x nor y is null. That PostgreSQL makes an antijoin of; of NOT IN it does not. Where there may be nulls, counts say beside it whether there are.
 */
#include "pg/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_node.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
}

#include "compiler/compile.h"
#include "planner/rewrite.h"

namespace gpuvm {

/* Is there a condition that no row meets in which the column (or, as 0, all of the relation) is null? */
static bool
rules_out_null(List *conditions, int varno, AttrNumber attnum)
{
	ListCell   *lc;

	foreach(lc, conditions)
	{
		Node	   *condition = static_cast<Node *>(lfirst(lc));
		List	   *args = NIL;
		ListCell   *arg;

		if (IsA(condition, NullTest) && ((NullTest *) condition)->nulltesttype == IS_NOT_NULL && !((NullTest *) condition)->argisrow)
			args = list_make1(((NullTest *) condition)->arg);
		else if (IsA(condition, OpExpr) && op_strict(((OpExpr *) condition)->opno))
			args = ((OpExpr *) condition)->args;
		else if (IsA(condition, ScalarArrayOpExpr) && ((ScalarArrayOpExpr *) condition)->useOr && op_strict(((ScalarArrayOpExpr *) condition)->opno))
			args = list_make1(linitial(((ScalarArrayOpExpr *) condition)->args));
		foreach(arg, args)
		{
			const Node *node = static_cast<const Node *>(lfirst(arg));

			while (IsA(node, RelabelType))
				node = (const Node *) ((const RelabelType *) node)->arg;
			if (IsA(node, Var) && static_cast<int>(((const Var *) node)->varno) == varno && ((const Var *) node)->varlevelsup == 0 &&
				(attnum == 0 || ((const Var *) node)->varattno == attnum))
				return true;
		}
	}
	return false;
}

static bool
is_column_not_null(Query *query, List *conditions, const Var *var)
{
	RangeTblEntry *rte;
	bool		nulled = false;
	TargetEntry *entry;

	if (var->varlevelsup != 0)
		return false;
	if (var->varattno != 0 && rules_out_null(conditions, var->varno, var->varattno))
		return true;
	rte = rt_fetch(var->varno, query->rtable);
	if (!finds_relation((Node *) query->jointree, var->varno, &nulled) ||
		(nulled && !rules_out_null(conditions, var->varno, 0)))
		return false;
	if (rte->rtekind == RTE_RELATION)
		return declared_not_null(rte->relid, var->varattno, rte->inh);
	if (rte->rtekind != RTE_SUBQUERY || rte->subquery->setOperations != nullptr || var->varattno <= 0)
		return false;
	entry = get_tle_by_resno(rte->subquery->targetList, var->varattno);
	return entry != nullptr && is_not_null(rte->subquery, conditions_of(rte->subquery), (Node *) entry->expr);
}

bool
is_not_null(Query *query, List *conditions, Node *node)
{
	ListCell   *lc;

	/* what a grouping set leaves out is null, whatever it is */
	if (query->groupingSets != NIL && !IsA(node, Aggref))
		return false;
	switch (nodeTag(node))
	{
		case T_Const:
			return !((Const *) node)->constisnull;
		case T_Var:
			return is_column_not_null(query, conditions, (Var *) node);
		case T_RelabelType:
			return is_not_null(query, conditions, (Node *) ((RelabelType *) node)->arg);
		case T_FuncExpr:
			{
				const FuncExpr *func = (const FuncExpr *) node;

				/* a cast between numbers, say */
				return func->funcformat != COERCE_EXPLICIT_CALL && func->funcid < FirstNormalObjectId && func_strict(func->funcid) &&
					list_length(func->args) == 1 && is_quiet_function(func->funcid, func->args, func->inputcollid) &&
					is_not_null(query, conditions, static_cast<Node *>(linitial(func->args)));
			}
		case T_Aggref:
			return ((Aggref *) node)->aggfnoid == F_COUNT_ || ((Aggref *) node)->aggfnoid == F_COUNT_ANY;
		case T_CoalesceExpr:
			foreach(lc, ((CoalesceExpr *) node)->args)
			{
				if (is_not_null(query, conditions, static_cast<Node *>(lfirst(lc))))
					return true;
			}
			return false;
		default:
			return false;
	}
}

/* The test's side that is the subquery's column, behind casts. */
static const Param *
column_of_side(Node *node)
{
	for (;;)
	{
		if (IsA(node, RelabelType))
			node = (Node *) ((RelabelType *) node)->arg;
		else if (IsA(node, FuncExpr) && ((FuncExpr *) node)->funcformat != COERCE_EXPLICIT_CALL && ((FuncExpr *) node)->funcid < FirstNormalObjectId &&
				 func_strict(((FuncExpr *) node)->funcid) && list_length(((FuncExpr *) node)->args) == 1)
			node = static_cast<Node *>(linitial(((FuncExpr *) node)->args));
		else
			return IsA(node, Param) && ((Param *) node)->paramkind == PARAM_SUBLINK ? (const Param *) node : nullptr;
	}
}

/* Is one comparison no error, and null only where a side is, whatever rows it meets? And which side can be? */
static bool
is_sure_test(const RewriteLevel *level, Query *body, const OpExpr *test, bool *outer_null, bool *inner_null)
{
	const Param *column;
	TargetEntry *entry;

	if (!IsA(test, OpExpr) || list_length(test->args) != 2 || !op_strict(test->opno) || test->opno >= FirstNormalObjectId ||
		!op_mergejoinable(test->opno, exprType(static_cast<Node *>(linitial(test->args)))) || !is_quiet((Node *) test))
		return false;
	column = column_of_side(static_cast<Node *>(lsecond(test->args)));
	entry = column != nullptr ? get_tle_by_resno(body->targetList, column->paramid) : nullptr;
	if (entry == nullptr || entry->resjunk)
		return false;
	*outer_null = !is_not_null(level->query, level->conditions, static_cast<Node *>(linitial(test->args)));
	*inner_null = !is_not_null(body, conditions_of(body), (Node *) entry->expr);
	return true;
}

static Node *
count_of(Expr *counted)
{
	Aggref	   *count = makeNode(Aggref);

	count->aggfnoid = counted == nullptr ? F_COUNT_ : F_COUNT_ANY;
	count->aggtype = INT8OID;
	count->aggstar = counted == nullptr;
	count->aggargtypes = counted == nullptr ? NIL : list_make1_oid(exprType((Node *) counted));
	count->args = counted == nullptr ? NIL : list_make1(makeTargetEntry(counted, 1, nullptr, false));
	count->aggkind = AGGKIND_NORMAL;
	count->aggno = count->aggtransno = -1;
	count->location = -1;
	return (Node *) count;
}

/* (SELECT fewer < count(*) FROM (the subquery)), of all of its rows: once for the statement. */
static Expr *
has_more(Query *body, Node *fewer)
{
	Query	   *query = makeNode(Query);
	SubLink    *sublink = makeNode(SubLink);
	ParseState *pstate = make_parsestate(nullptr);
	RangeTblRef *ref = makeNode(RangeTblRef);

	body = static_cast<Query *>(copyObjectImpl(body));
	IncrementVarSublevelsUp((Node *) body, 1, 1);
	addRangeTableEntryForSubquery(pstate, body, makeAlias("not_in_subquery", NIL), false, false);
	ref->rtindex = 1;
	query->commandType = CMD_SELECT;
	query->canSetTag = true;
	query->hasAggs = true;
	query->rtable = pstate->p_rtable;
	query->jointree = makeFromExpr(list_make1(ref), nullptr);
	query->targetList = list_make1(makeTargetEntry(make_opclause(Int8LessOperator, BOOLOID, false, (Expr *) fewer, (Expr *) count_of(nullptr), InvalidOid, InvalidOid),
												   1, pstrdup("has_more"), false));
	sublink->subLinkType = EXPR_SUBLINK;
	sublink->subselect = (Node *) query;
	sublink->location = -1;
	return (Expr *) sublink;
}

/*
 * What NOT IN asks beside NOT EXISTS where there may be nulls: a null on either side is unknown, unless the subquery has no row.
 *	(NOT (SELECT count(y) < count(*) FROM it) AND x IS NOT NULL) OR NOT (SELECT 0 < count(*) FROM it)
 */
static Node *
no_nulls(Query *body, const OpExpr *test, bool outer_null, bool inner_null)
{
	const Param *column = column_of_side(static_cast<Node *>(lsecond(test->args)));
	Var		   *var = makeVar(1, column->paramid, column->paramtype, column->paramtypmod, column->paramcollid, 0);
	Node	   *known = inner_null ? (Node *) make_notclause(has_more(body, count_of((Expr *) var))) : nullptr;
	Const	   *none = makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(0), false, FLOAT8PASSBYVAL);
	NullTest   *there;

	/* no row has none that is null */
	if (!outer_null)
		return known;
	there = makeNode(NullTest);
	there->arg = static_cast<Expr *>(copyObjectImpl(linitial(test->args)));
	there->nulltesttype = IS_NOT_NULL;
	there->location = -1;
	known = known == nullptr ? (Node *) there : (Node *) make_andclause(list_make2(known, there));
	return (Node *) make_orclause(list_make2(known, make_notclause(has_more(body, (Node *) none))));
}

/* The subquery's columns, now of a relation. */
static Node *
replace_columns(Node *node, void *context)
{
	if (node == nullptr)
		return nullptr;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_SUBLINK)
	{
		const Param *param = (const Param *) node;

		return (Node *) makeVar(1, param->paramid, param->paramtype, param->paramtypmod, param->paramcollid, 0);
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(replace_columns), context);
}

/* The subquery that the condition says a value is not in, as x = ANY (it): of NOT (that), or of x <> ALL (it). */
static SubLink *
excluding_subquery(Node *condition)
{
	SubLink    *sublink = (SubLink *) (is_notclause(condition) ? (Node *) get_notclausearg(condition) : condition);
	const OpExpr *test;
	OpExpr	   *negated;

	if (!IsA(sublink, SubLink) || ((Node *) sublink != condition) != (sublink->subLinkType == ANY_SUBLINK))
		return nullptr;
	if (sublink->subLinkType != ALL_SUBLINK)
		return sublink->subLinkType == ANY_SUBLINK ? sublink : nullptr;
	test = (const OpExpr *) sublink->testexpr;
	if (!IsA(test, OpExpr) || !OidIsValid(get_negator(test->opno)))
		return nullptr;
	negated = static_cast<OpExpr *>(copyObjectImpl(test));
	negated->opno = get_negator(test->opno);
	negated->opfuncid = InvalidOid;
	sublink = static_cast<SubLink *>(copyObjectImpl(sublink));
	sublink->subLinkType = ANY_SUBLINK;
	sublink->testexpr = (Node *) negated;
	return sublink;
}

Node *
rewrite_not_in(const RewriteLevel *level, Node *condition)
{
	SubLink    *member = excluding_subquery(condition);
	Query	   *body;
	Query	   *query;
	List	   *tests;
	Node	   *known = nullptr;
	LevelsRead	read;
	ParseState *pstate;
	SubLink    *exists;
	RangeTblRef *ref;
	ListCell   *lc;

	if (member == nullptr)
		return nullptr;
	body = (Query *) member->subselect;
	read = levels_read_by(body);
	tests = conjuncts(member->testexpr);
	if (read.outer || read.further || checkExprHasSubLink(member->testexpr) || !is_quiet_query(body, true, level->query))
		return nullptr;
	foreach(lc, tests)
	{
		const OpExpr *test = static_cast<const OpExpr *>(lfirst(lc));
		bool		outer_null;
		bool		inner_null;

		if (!is_sure_test(level, body, test, &outer_null, &inner_null))
			return nullptr;
		if (!outer_null && !inner_null)
			continue;
		/* of several columns one that differs tells enough, whatever the others are */
		if (list_length(tests) > 1)
			return nullptr;
		known = no_nulls(body, test, outer_null, inner_null);
	}

	/* NOT EXISTS (SELECT FROM (the subquery) WHERE its columns = the others) */
	query = makeNode(Query);
	query->commandType = CMD_SELECT;
	query->canSetTag = true;
	/* it stands a level deeper than before, as seen from CTEs that it reads */
	body = static_cast<Query *>(copyObjectImpl(body));
	make_distinct_member(body, tests);
	IncrementVarSublevelsUp((Node *) body, 1, 1);
	pstate = make_parsestate(nullptr);
	addRangeTableEntryForSubquery(pstate, body, makeAlias("not_in_subquery", NIL), false, false);
	query->rtable = pstate->p_rtable;
	tests = static_cast<List *>(copyObjectImpl(tests));
	IncrementVarSublevelsUp((Node *) tests, 1, 0);
	ref = makeNode(RangeTblRef);
	ref->rtindex = 1;
	query->jointree = makeFromExpr(list_make1(ref), replace_columns((Node *) make_ands_explicit(tests), nullptr));
	exists = makeNode(SubLink);
	exists->subLinkType = EXISTS_SUBLINK;
	exists->subselect = (Node *) query;
	exists->location = -1;
	condition = (Node *) make_notclause((Expr *) exists);
	return known == nullptr ? condition : (Node *) make_andclause(list_make2(condition, known));
}

}  // namespace gpuvm
