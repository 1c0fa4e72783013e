/*
 * lowering_rows.cc: how many rows come of joins and groups.
 *
 * Statistics are of tables: what a stage hands on is traced to the columns that it was made of. How many different keys of several
 * columns there are PostgreSQL takes from each column alone; here there are no more of them than the relation has rows.
 */
#include "pg/pg.h"

extern "C" {
#include "optimizer/optimizer.h"
#include "utils/selfuncs.h"
}

#include <cmath>

#include "planner/join_search.h"
#include "planner/lowering.h"

namespace gpuvm {

double
tuples_of(const Lowering *l, int relid)
{
	return Max(l->root->simple_rel_array[relid]->tuples, 1);
}

/* What a stage's column is made of; NULL: an aggregate, or nothing is known. */
static Node *
traced(const Lowering *l, const Var *var)
{
	Node	   *expr = static_cast<Node *>(linitial(for_estimates(l, list_make1(const_cast<Var *>(var)))));
	ListCell   *lc;

	foreach(lc, l->stages)
	{
		if (IsA(expr, Var) && static_cast<const StageColumns *>(lfirst(lc))->relid == static_cast<int>(((const Var *) expr)->varno))
			return nullptr;
	}
	return expr;
}

static double
distinct_of_column(Lowering *l, const Var *var)
{
	Node	   *expr = traced(l, var);
	VariableStatData statistics;
	bool		guessed;
	double		distinct;

	if (expr == nullptr)
		return tuples_of(l, var->varno);
	if (!IsA(expr, Var))
		return distinct_values(l, expr);
	examine_variable(l->root, expr, 0, &statistics);
	distinct = get_variable_numdistinct(&statistics, &guessed);
	ReleaseVariableStats(statistics);
	return Max(distinct, 1);
}

double
distinct_values(Lowering *l, const Node *expr)
{
	double		distinct = 1;
	double		rows = 1;
	Relids		relids = nullptr;
	ListCell   *lc;

	check_stack_depth();
	foreach(lc, pull_var_clause(const_cast<Node *>(expr), PVC_RECURSE_AGGREGATES | PVC_RECURSE_PLACEHOLDERS))
	{
		const Var  *var = static_cast<const Var *>(lfirst(lc));

		distinct *= distinct_of_column(l, var);
		if (!bms_is_member(var->varno, relids))
			rows *= tuples_of(l, var->varno);
		relids = bms_add_member(relids, var->varno);
	}
	return Min(distinct, rows);
}

/* -- joins ---------------------------------------------------------------------------------- */

/* Keys of one side. */
struct Side
{
	double		distinct;
	double		tuples;			/* of its relations */
};

static Side
side_of(Lowering *l, const List *exprs)
{
	Side		side = {1, 1};
	Relids		relids = nullptr;
	int			relid = -1;
	ListCell   *lc;

	foreach(lc, exprs)
	{
		side.distinct *= distinct_values(l, static_cast<const Node *>(lfirst(lc)));
		relids = bms_add_members(relids, pull_varnos(l->root, static_cast<Node *>(lfirst(lc))));
	}
	while ((relid = bms_next_member(relids, relid)) >= 0)
		side.tuples *= tuples_of(l, relid);
	return side;
}

static void
split_sides(Lowering *l, const List *keys, const Relids inner, List **outer_exprs, List **inner_exprs)
{
	ListCell   *lc;

	*outer_exprs = *inner_exprs = NIL;
	foreach(lc, keys)
	{
		const List *args = static_cast<const OpExpr *>(lfirst(lc))->args;
		Node	   *a = static_cast<Node *>(linitial(args));
		Node	   *b = static_cast<Node *>(lsecond(args));
		const bool	inner_first = bms_is_subset(pull_varnos(l->root, a), inner);

		*inner_exprs = lappend(*inner_exprs, inner_first ? a : b);
		*outer_exprs = lappend(*outer_exprs, inner_first ? b : a);
	}
}

double
key_selectivity(Lowering *l, List *keys, const Relids inner)
{
	List	   *outer_exprs;
	List	   *inner_exprs;
	double		product = 1;
	ListCell   *lc;
	ListCell   *lc2;

	split_sides(l, keys, inner, &outer_exprs, &inner_exprs);
	forboth(lc, outer_exprs, lc2, inner_exprs)
		product /= Max(distinct_values(l, static_cast<Node *>(lfirst(lc))), distinct_values(l, static_cast<Node *>(lfirst(lc2))));

	const Side	a = side_of(l, outer_exprs);
	const Side	b = side_of(l, inner_exprs);

	return keys_selectivity(product, a.distinct, a.tuples, b.distinct, b.tuples);
}

double
condition_selectivity(Lowering *l, List *conditions)
{
	SpecialJoinInfo *info = makeNode(SpecialJoinInfo);

	info->jointype = JOIN_INNER;
	return conditions == NIL ? 1 : clauselist_selectivity(l->root, for_estimates(l, conditions), 0, JOIN_INNER, info);
}

/* Of so many different values in all of a relation's rows, how many are in some of them? */
static double
distinct_left(double distinct, double tuples, double rows)
{
	if (rows >= tuples || distinct <= 1)
		return distinct;
	return Min(distinct * (1 - std::pow(1 - rows / tuples, tuples / distinct)), rows);
}

double
met_share(Lowering *l, List *keys, const Relids inner, double inner_rows)
{
	List	   *outer_exprs;
	List	   *inner_exprs;
	double		left;

	split_sides(l, keys, inner, &outer_exprs, &inner_exprs);

	const Side	a = side_of(l, outer_exprs);
	const Side	b = side_of(l, inner_exprs);

	left = Min(distinct_left(Min(b.distinct, b.tuples), b.tuples, inner_rows), Max(inner_rows, 1));
	return Min(left / Max(Min(a.distinct, a.tuples), 1), 1);
}

/* -- groups ------------------------------------------------------------------------------------ */

double
group_rows(Lowering *l, const List *keys, double rows)
{
	List	   *of_tables = NIL;
	double		others = 1;
	ListCell   *lc;

	if (keys == NIL)
		return 1;
	foreach(lc, keys)
	{
		Node	   *key = static_cast<Node *>(lfirst(lc));
		bool		known = true;
		ListCell   *lc2;

		foreach(lc2, pull_var_clause(key, PVC_RECURSE_PLACEHOLDERS))
			known = known && traced(l, static_cast<const Var *>(lfirst(lc2))) != nullptr;
		if (known)
			of_tables = lappend(of_tables, key);
		else
			others *= distinct_values(l, key);
	}
	if (of_tables != NIL)
		others *= estimate_num_groups(l->root, for_estimates(l, of_tables), rows, nullptr, nullptr);
	return Max(Min(others, rows), 1);
}

}  // namespace gpuvm
