/* from.cc: FROM and WHERE. */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/prep.h"
}

#include "pg/compat.h"
#include "plan/translation.h"

namespace gpuvm {

static GpuvmRel *from_item(Level *level, Node *item);

void
add_filter(Level *level, GpuvmRel **site, Node *condition)
{
	GpuvmRel   *top = *site;
	List	   *quals;

	if (refused(level))
		return;
	condition = eval_const_expressions(nullptr, condition);
	if (IsA(condition, Const) && !((Const *) condition)->constisnull && DatumGetBool(((Const *) condition)->constvalue))
		return;
	quals = make_ands_implicit(canonicalize_qual((Expr *) condition, false));
	if ((top->op != REL_FILTER || top->barrier) && !(top->op == REL_JOIN && top->join == RELJOIN_INNER))
		top = *site = rel_make(REL_FILTER, list_make1(top));
	top->quals = list_concat(top->quals, quals);
}

/* A condition, or its negation: each part of a conjunction by itself, so that SubLinks are seen. */
static void
add_condition(Level *level, GpuvmRel **site, Node *qual, bool negated)
{
	ListCell   *lc;

	check_stack_depth();
	if (refused(level) || qual == nullptr)
		return;
	if (IsA(qual, List) || is_andclause(qual) || is_orclause(qual))
	{
		List	   *parts = IsA(qual, List) ? (List *) qual : ((BoolExpr *) qual)->args;

		if (is_orclause(qual) == negated)
		{
			foreach(lc, parts)
				add_condition(level, site, static_cast<Node *>(lfirst(lc)), negated);
			return;
		}
	}
	if (is_notclause(qual))
	{
		add_condition(level, site, (Node *) get_notclausearg((Expr *) qual), !negated);
		return;
	}
	if (IsA(qual, SubLink))
	{
		level->site = site;
		if (add_sublink(level, (SubLink *) qual, negated))
			return;
	}
	qual = translate_expr_at(level, site, qual);
	add_filter(level, site, negated ? (Node *) makeBoolExpr(NOT_EXPR, list_make1(qual), -1) : qual);
}

static bool
has_sublink(Node *node)
{
	return checkExprHasSubLink(node);
}

/* Conditions without subqueries first: what is below a join is less. */
static void
add_conditions_if(Level *level, GpuvmRel **site, Node *quals, bool sublinks)
{
	ListCell   *lc;

	if (quals == nullptr || refused(level))
		return;
	if (IsA(quals, List) || is_andclause(quals))
	{
		foreach(lc, IsA(quals, List) ? (List *) quals : ((BoolExpr *) quals)->args)
			add_conditions_if(level, site, static_cast<Node *>(lfirst(lc)), sublinks);
	}
	else if (has_sublink(quals) == sublinks)
		add_condition(level, site, quals, false);
}

void
add_conditions(Level *level, GpuvmRel **site, Node *quals)
{
	add_conditions_if(level, site, quals, false);
	add_conditions_if(level, site, quals, true);
}

GpuvmRel *
translate_subquery(Level *level, const Query *query, List **columns)
{
	Level	   *sub = make_level(level->t, level, query);
	GpuvmRel   *rel = translate_level(sub, false);

	*columns = sub->outputs;
	return rel;
}

static GpuvmRel *
joined(RelJoin kind, GpuvmRel *left, GpuvmRel *right)
{
	GpuvmRel   *join = rel_make(REL_JOIN, list_make2(left, right));

	join->join = kind;
	return join;
}

/*
 * ON: conditions with subqueries may only be put into the right input, where the left one's columns are seen,
 * too. So they are conditions of its rows.
 */
static GpuvmRel *
left_join(Level *level, GpuvmRel *left, GpuvmRel *right, Node *quals)
{
	GpuvmRel   *join;
	GpuvmRel   *condition = rel_make(REL_FILTER, list_make1(right));

	add_conditions_if(level, &condition, quals, false);
	right = rel_input(condition);
	/* of an inner join, or below a filter, they would have become its own */
	join = joined(RELJOIN_LEFT, left, right);
	join->quals = condition->quals;
	add_conditions_if(level, (GpuvmRel **) &list_nth_cell(join->inputs, 1)->ptr_value, quals, true);
	return join;
}

static GpuvmRel *
join_item(Level *level, JoinExpr *expr)
{
	GpuvmRel   *left = from_item(level, expr->larg);
	GpuvmRel   *right = refused(level) ? nullptr : from_item(level, expr->rarg);
	GpuvmRel   *join;

	if (refused(level))
		return nullptr;
	switch (expr->jointype)
	{
		case JOIN_INNER:
			join = joined(RELJOIN_INNER, left, right);
			add_conditions(level, &join, expr->quals);
			return join;
		case JOIN_LEFT:
			return left_join(level, left, right, expr->quals);
		case JOIN_RIGHT:
			return left_join(level, right, left, expr->quals);
		case JOIN_FULL:
			if (has_sublink(expr->quals))
				refuse(level->t, REFUSED_SUBQUERY_PLACE);
			else
			{
				GpuvmRel   *condition = rel_make(REL_FILTER);

				add_conditions(level, &condition, expr->quals);
				join = joined(RELJOIN_FULL, left, right);
				join->quals = condition->quals;
				return join;
			}
			return nullptr;
		default:
			elog(ERROR, "unrecognized join type: %d", static_cast<int>(expr->jointype));
	}
}

static GpuvmRel *
from_list(Level *level, List *items)
{
	GpuvmRel   *rel = nullptr;
	ListCell   *lc;

	foreach(lc, items)
	{
		GpuvmRel   *item = from_item(level, static_cast<Node *>(lfirst(lc)));

		if (refused(level))
			return nullptr;
		rel = rel == nullptr ? item : joined(RELJOIN_INNER, rel, item);
	}
	if (rel == nullptr)
	{
		rel = rel_make(REL_VALUES);
		rel->rows = list_make1(NIL);
	}
	return rel;
}

static GpuvmRel *
from_item(Level *level, Node *item)
{
	GpuvmRel   *rel;

	check_stack_depth();
	if (IsA(item, RangeTblRef))
		return translate_relation(level, ((RangeTblRef *) item)->rtindex);
	if (IsA(item, JoinExpr))
		return join_item(level, (JoinExpr *) item);
	rel = from_list(level, castNode(FromExpr, item)->fromlist);
	if (!refused(level))
		add_conditions(level, &rel, castNode(FromExpr, item)->quals);
	return rel;
}

GpuvmRel *
translate_from(Level *level)
{
	return from_item(level, (Node *) level->query->jointree);
}

}  // namespace gpuvm
