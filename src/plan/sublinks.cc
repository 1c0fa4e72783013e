/*
 * sublinks.cc: SubLinks as joins. What refers to nothing outside of it and gives
 * one value is computed before, and bound as a parameter.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
}

#include "pg/compat.h"
#include "plan/translation.h"

namespace gpuvm {

/* A level for the subquery, translated; null if refused. */
static GpuvmRel *
sublink_rows(Level *level, const SubLink *sublink, Level **sub)
{
	const bool	volatile_allowed = level->t->volatile_allowed;
	GpuvmRel   *rel;

	if (level->closed || level->site == nullptr)
	{
		refuse(level->t, REFUSED_SUBQUERY_PLACE);
		return nullptr;
	}
	level->t->volatile_allowed = false;
	*sub = make_level(level->t, level, castNode(Query, sublink->subselect));
	rel = translate_level(*sub, sublink->subLinkType == EXISTS_SUBLINK);
	level->t->volatile_allowed = volatile_allowed;
	return rel;
}

/* The value of the one row. */
static Node *
bound(Level *level, GpuvmRel *rel, TargetEntry *column)
{
	Param	   *param = makeNode(Param);
	const Node *value = (const Node *) column->expr;
	GpuvmRel   *definition = rel_make(REL_BOUND, list_make1(rel), list_make1(rel_hand_on(column)));

	definition->id = ++level->t->ids;
	level->t->definitions = lappend(level->t->definitions, definition);
	param->paramkind = PARAM_EXEC;
	param->paramid = definition->id;
	param->paramtype = exprType(value);
	param->paramtypmod = exprTypmod(value);
	param->paramcollid = exprCollation(value);
	param->location = -1;
	return (Node *) param;
}

/* EXISTS that refers to nothing outside: is there a first row? */
static Node *
bound_exists(Level *level, GpuvmRel *rel)
{
	NullTest   *test = makeNode(NullTest);
	TargetEntry *column;
	GpuvmRel   *first = rel_make(REL_SORT, list_make1(rel));

	first->count = rel_bigint(1);
	column = column_of_value(level, &first, makeBoolConst(true, false), "exists", true);
	test->arg = (Expr *) bound(level, first, column);
	test->nulltesttype = IS_NOT_NULL;
	test->location = -1;
	return (Node *) test;
}

static GpuvmRel *
put_join(Level *level, RelJoin kind, GpuvmRel *right)
{
	GpuvmRel   *join = rel_make(REL_JOIN, list_make2(*level->site, right));

	join->join = kind;
	*level->site = join;
	return join;
}

/* The test of ANY or ALL, over the columns of both sides. */
static Node *
translate_test(Level *level, const SubLink *sublink, const Level *sub)
{
	List	   *outer = level->sublink_columns;
	const bool	volatile_allowed = level->t->volatile_allowed;
	Node	   *test;

	level->sublink_columns = sub->outputs;
	level->t->volatile_allowed = false;
	test = translate_expr(level, sublink->testexpr);
	level->t->volatile_allowed = volatile_allowed;
	level->sublink_columns = outer;
	return test;
}

static Node *
is_test(Node *test, BoolTestType type)
{
	BooleanTest *result = makeNode(BooleanTest);

	result->arg = (Expr *) test;
	result->booltesttype = type;
	result->location = -1;
	return (Node *) result;
}

bool
add_sublink(Level *level, SubLink *sublink, bool negated)
{
	Level	   *sub;
	GpuvmRel   *rel;
	GpuvmRel   *join;
	Node	   *test;

	if (sublink->subLinkType != EXISTS_SUBLINK && sublink->subLinkType != ANY_SUBLINK &&
		sublink->subLinkType != ALL_SUBLINK)
		return false;
	rel = sublink_rows(level, sublink, &sub);
	if (rel == nullptr)
		return true;
	if (sublink->subLinkType == EXISTS_SUBLINK)
	{
		if (sub->correlated)
			(void) put_join(level, negated ? RELJOIN_ANTI : RELJOIN_SEMI, rel);
		else
		{
			test = bound_exists(level, rel);
			if (negated)
				((NullTest *) test)->nulltesttype = IS_NULL;
			add_filter(level, level->site, test);
		}
		return true;
	}
	/* subqueries of the test itself are below the join */
	test = translate_test(level, sublink, sub);
	if (refused(level))
		return true;
	if (sublink->subLinkType == ANY_SUBLINK)
	{
		join = put_join(level, negated ? RELJOIN_ANTI : RELJOIN_SEMI, rel);
		test = negated ? is_test(test, IS_NOT_FALSE) : test;
	}
	else
	{
		join = put_join(level, negated ? RELJOIN_SEMI : RELJOIN_ANTI, rel);
		test = negated ? (Node *) makeBoolExpr(NOT_EXPR, list_make1(test), -1) : is_test(test, IS_NOT_TRUE);
	}
	join->quals = make_ands_implicit((Expr *) eval_const_expressions(nullptr, test));
	return true;
}

/* ANY, ALL and EXISTS whose value is computed with. */
static Node *
put_mark(Level *level, const SubLink *sublink, GpuvmRel *rel, const Level *sub)
{
	const bool	all = sublink->subLinkType == ALL_SUBLINK;
	Node *test =
		sublink->subLinkType == EXISTS_SUBLINK ? makeBoolConst(true, false) : translate_test(level, sublink, sub);
	GpuvmRel   *join;
	TargetEntry *mark;

	if (refused(level))
		return test;
	/* true of all is false of none */
	if (all)
		test = eval_const_expressions(nullptr, (Node *) makeBoolExpr(NOT_EXPR, list_make1(test), -1));
	join = put_join(level, RELJOIN_MARK, rel);
	mark = make_column(level->t, test, "mark");
	join->columns = list_make1(mark);
	return all ? (Node *) makeBoolExpr(NOT_EXPR, list_make1(rel_var(mark)), -1) : (Node *) rel_var(mark);
}

Node *
translate_sublink(Level *level, SubLink *sublink)
{
	Level	   *sub;
	GpuvmRel   *rel;

	if (sublink->subLinkType == ARRAY_SUBLINK || sublink->subLinkType == MULTIEXPR_SUBLINK)
	{
		refuse(level->t, sublink->subLinkType == ARRAY_SUBLINK ? REFUSED_ARRAY_SUBQUERY : REFUSED_COMMAND);
		return (Node *) sublink;
	}
	rel = sublink_rows(level, sublink, &sub);
	if (rel == nullptr)
		return (Node *) sublink;
	switch (sublink->subLinkType)
	{
		case EXISTS_SUBLINK:
			return sub->correlated ? put_mark(level, sublink, rel, sub) : bound_exists(level, rel);
		case ANY_SUBLINK:
		case ALL_SUBLINK:
			return put_mark(level, sublink, rel, sub);
		case EXPR_SUBLINK:
			if (!sub->correlated)
				return bound(level, rel, linitial_node(TargetEntry, sub->outputs));
			(void) put_join(level, RELJOIN_SINGLE, rel);
			return (Node *) rel_var(linitial_node(TargetEntry, sub->outputs));
		case ROWCOMPARE_SUBLINK:
			{
				Node	   *test = translate_test(level, sublink, sub);

				/* of no row it is null, as it is of columns that are */
				if (!refused(level) && contain_nonstrict_functions(sublink->testexpr) &&
					!IsA(sublink->testexpr, RowCompareExpr) && !is_andclause(sublink->testexpr))
					refuse(level->t, REFUSED_SUBQUERY_PLACE);
				(void) put_join(level, RELJOIN_SINGLE, rel);
				return test;
			}
		default:
			elog(ERROR, "unrecognized subquery type: %d", static_cast<int>(sublink->subLinkType));
	}
}

}  // namespace gpuvm
