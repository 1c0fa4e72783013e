/*
 * unnest.cc: dependent joins without what depends.
 *
 * A condition of the right input that refers to the left one becomes one of the join. On its way up it passes
 * Filters, Projects and inner joins as it is. Groups and windows it passes if it is an equality: what it says of
 * the rows' own columns becomes one more key. Where the groups have no keys, there is a row for no rows, too:
 * then the join is a left one, above which counts that are null are 0. The first rows in an order, LIMIT, are those of
 * each key, by their numbers. What is of two levels further out alone is joined there first.
 */
#include "pg/pg.h"

extern "C" {
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_oper.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

#include "plan/facts.h"
#include "plan/normalise.h"

namespace gpuvm {

/* Operators of bigints. */
constexpr Oid INT8_EQUAL = 410;
constexpr Oid INT8_GREATER = 413;
constexpr Oid INT8_LESS_EQUAL = 414;

struct Unnesting
{
	const Bitmapset *left;		/* columns of the join's left input */
	GpuvmRel   *statement;
	List	   *lifted;			/* conditions */
};

/* -- what is read of the left input ------------------------------------------------------ */

static bool
reads(const Node *expr, const Bitmapset *columns)
{
	return bms_overlap(rel_columns_in(expr), columns);
}

struct Search
{
	const Bitmapset *columns;
	bool		found;
};

static void
search_expression(Node **expr, void *context)
{
	Search	   *search = static_cast<Search *>(context);

	search->found = search->found || reads(*expr, search->columns);
}

static bool
node_reads(const GpuvmRel *rel, const Bitmapset *columns)
{
	Search		search = {columns, false};

	rel_each_expression(const_cast<GpuvmRel *>(rel), search_expression, &search);
	return search.found;
}

static bool
tree_reads(const GpuvmRel *rel, const Bitmapset *columns)
{
	ListCell   *lc;

	check_stack_depth();
	if (node_reads(rel, columns))
		return true;
	foreach(lc, rel->inputs)
	{
		if (tree_reads(static_cast<const GpuvmRel *>(lfirst(lc)), columns))
			return true;
	}
	return false;
}

/* -- may it be lifted? ---------------------------------------------------------------------- */

/*
 * An equality of the rows' own columns and others, such that groups by the former are not coarser or finer than it:
 * the side with the former, or null.
 */
static Node *
own_side(const Node *condition, const Bitmapset *left)
{
	const OpExpr *op = (const OpExpr *) condition;
	ListCell   *lc;

	if (!IsA(condition, OpExpr) || list_length(op->args) != 2)
		return nullptr;
	for (int side = 0; side < 2; side++)
	{
		Node	   *own = static_cast<Node *>(list_nth(op->args, side));
		Node	   *other = static_cast<Node *>(list_nth(op->args, 1 - side));
		Oid			eqop;
		Oid			sortop;
		bool		hashable;

		/* two local times may be one instant: then two groups meet a row */
		if ((exprType(own) == TIMESTAMPTZOID) != (exprType(other) == TIMESTAMPTZOID))
			continue;
		if (reads(own, left) || !bms_is_subset(rel_columns_in(other), left) || bms_is_empty(rel_columns_in(own)) ||
			!op_mergejoinable(op->opno, exprType(static_cast<Node *>(linitial(op->args)))) ||
			exprCollation(own) != op->inputcollid)
			continue;
		get_sort_group_operators(exprType(own), true, false, false, &sortop, &eqop, nullptr, &hashable);
		foreach(lc, get_mergejoin_opfamilies(op->opno))
		{
			if (OidIsValid(eqop) && op_in_opfamily(eqop, lfirst_oid(lc)))
				return own;
		}
	}
	return nullptr;
}

static bool
is_number_of_rows(const Node *node)
{
	return IsA(node, Const) && DatumGetInt64(((const Const *) node)->constvalue) >= 0;
}

/* LIMIT, or OFFSET and LIMIT, of so many rows in some order. */
static bool
takes_first_rows(const GpuvmRel *sort)
{
	return sort->keys != NIL && !sort->ties && sort->count != nullptr && is_number_of_rows(sort->count) &&
		(sort->offset == nullptr || is_number_of_rows(sort->offset));
}

/* Keys: only conditions that can become some. */
static bool
may_lift(const GpuvmRel *rel, const Bitmapset *left, bool keys)
{
	ListCell   *lc;

	if (!tree_reads(rel, left))
		return true;
	switch (static_cast<RelOp>(rel->op))
	{
		case REL_FILTER:
			if (rel->barrier)
				return false;
			foreach(lc, keys ? rel->quals : NIL)
			{
				if (reads(static_cast<Node *>(lfirst(lc)), left) &&
					own_side(static_cast<Node *>(lfirst(lc)), left) == nullptr)
					return false;
			}
			return may_lift(rel_input(rel), left, keys);
		case REL_PROJECT:
			return !node_reads(rel, left) && may_lift(rel_input(rel), left, keys);
		case REL_SORT:
			if (rel->count == nullptr && rel->offset == nullptr)
				return may_lift(rel_input(rel), left, keys);
			return takes_first_rows(rel) && may_lift(rel_input(rel), left, true);
		case REL_GROUP:
			return rel->keys != NIL && rel->sets == NIL && !node_reads(rel, left) &&
				   may_lift(rel_input(rel), left, true);
		case REL_WINDOW:
			return !node_reads(rel, left) && may_lift(rel_input(rel), left, true);
		case REL_JOIN:
			if (rel->join == RELJOIN_INNER)
			{
				foreach(lc, keys ? rel->quals : NIL)
				{
					if (reads(static_cast<Node *>(lfirst(lc)), left) &&
						own_side(static_cast<Node *>(lfirst(lc)), left) == nullptr)
						return false;
				}
				return may_lift(rel_input(rel), left, keys) && may_lift(rel_input(rel, 1), left, keys);
			}
			return rel->join != RELJOIN_FULL && !node_reads(rel, left) && !tree_reads(rel_input(rel, 1), left) &&
				may_lift(rel_input(rel), left, keys);
		default:
			return false;
	}
}

/* -- lifting ----------------------------------------------------------------------------------- */

static TargetEntry *
new_column(const Unnesting *unnesting, Node *expr, const char *name)
{
	return makeTargetEntry((Expr *) expr, rel_next_number(unnesting->statement), pstrdup(name), false);
}

static List *
lift_quals(Unnesting *unnesting, List *quals)
{
	List	   *staying = NIL;
	ListCell   *lc;

	foreach(lc, quals)
	{
		if (reads(static_cast<Node *>(lfirst(lc)), unnesting->left))
			unnesting->lifted = lappend(unnesting->lifted, lfirst(lc));
		else
			staying = lappend(staying, lfirst(lc));
	}
	return staying;
}

/* The conditions lifted from the node's input as keys: each speaks of a column of it then. */
static List *
lifted_keys(Unnesting *unnesting, GpuvmRel *rel, int first)
{
	GpuvmRel   *project = nullptr;
	List	   *keys = NIL;

	for (int i = first; i < list_length(unnesting->lifted); i++)
	{
		OpExpr	   *op = static_cast<OpExpr *>(copyObjectImpl(list_nth(unnesting->lifted, i)));
		Node	   *own = own_side((Node *) op, unnesting->left);
		SortGroupClause *key = makeNode(SortGroupClause);
		int			number = rel_column_of(own);

		if (number == 0)
		{
			TargetEntry *column = new_column(unnesting, own, "key");

			if (project == nullptr)
				project = rel_make(REL_PROJECT, rel->inputs);
			project->columns = lappend(project->columns, column);
			lfirst(list_nth_cell(op->args, equal(linitial(op->args), own) ? 0 : 1)) = rel_var(column);
			number = column->resno;
			rel->inputs = list_make1(project);
		}
		lfirst(list_nth_cell(unnesting->lifted, i)) = op;
		get_sort_group_operators(exprType(own), true, false, false, &key->sortop, &key->eqop, nullptr, &key->hashable);
		key->tleSortGroupRef = number;
		keys = lappend(keys, key);
	}
	return keys;
}

/* Keys that are there already stay once. */
static List *
with_keys(List *keys, const List *more)
{
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, more)
	{
		bool		there = false;

		foreach(lc2, keys)
			there = there || lfirst_node(SortGroupClause, lc2)->tleSortGroupRef ==
								 lfirst_node(SortGroupClause, lc)->tleSortGroupRef;
		if (!there)
			keys = lappend(keys, copyObjectImpl(lfirst(lc)));
	}
	return keys;
}

static void
add_comparison(GpuvmRel *filter, Oid op, const TargetEntry *number, int64 value)
{
	Expr	   *comparison = make_opclause(op, BOOLOID, false, (Expr *) rel_var(number), (Expr *) rel_bigint(value),
										   InvalidOid, InvalidOid);

	set_opfuncid((OpExpr *) comparison);
	filter->quals = lappend(filter->quals, comparison);
}

/* The first rows of all, by the sort's input with keys, as the first of each key. */
static void
number_first_rows(Unnesting *unnesting, GpuvmRel *sort, List *keys)
{
	const int64 offset = sort->offset == nullptr ? 0 : DatumGetInt64(((const Const *) sort->offset)->constvalue);
	const int64 count = DatumGetInt64(((const Const *) sort->count)->constvalue);
	WindowFunc *row_number;
	GpuvmRel   *window = rel_number_rows(rel_input(sort), keys, sort->keys, &row_number);
	GpuvmRel   *filter = rel_make(REL_FILTER, list_make1(window));
	TargetEntry *number = new_column(unnesting, (Node *) row_number, "row_number");

	window->columns = list_make1(number);
	if (count == 1 && offset == 0)
		add_comparison(filter, INT8_EQUAL, number, 1);
	else
	{
		add_comparison(filter, INT8_GREATER, number, offset);
		add_comparison(filter, INT8_LESS_EQUAL, number, count > PG_INT64_MAX - offset ? PG_INT64_MAX : offset + count);
	}
	*sort = *filter;
}

static void
lift(GpuvmRel *rel, Unnesting *unnesting)
{
	const int	first = list_length(unnesting->lifted);
	const List *keys;
	ListCell   *lc;

	if (!tree_reads(rel, unnesting->left))
		return;
	switch (static_cast<RelOp>(rel->op))
	{
		case REL_FILTER:
			rel->quals = lift_quals(unnesting, rel->quals);
			lift(rel_input(rel), unnesting);
			break;
		case REL_JOIN:
			if (rel->join == RELJOIN_INNER)
			{
				rel->quals = lift_quals(unnesting, rel->quals);
				lift(rel_input(rel, 1), unnesting);
			}
			lift(rel_input(rel), unnesting);
			break;
		case REL_GROUP:
			lift(rel_input(rel), unnesting);
			keys = lifted_keys(unnesting, rel, first);
			rel->keys = with_keys(rel->keys, keys);
			break;
		case REL_WINDOW:
			lift(rel_input(rel), unnesting);
			keys = lifted_keys(unnesting, rel, first);
			foreach(lc, rel->windows)
				lfirst_node(WindowClause, lc)->partitionClause =
					with_keys(lfirst_node(WindowClause, lc)->partitionClause, keys);
			break;
		case REL_SORT:
			lift(rel_input(rel), unnesting);
			if (rel->count != nullptr)
				number_first_rows(unnesting, rel, lifted_keys(unnesting, rel, first));
			break;
		default:
			lift(rel_input(rel), unnesting);
			break;
	}
}

/* -- groups without keys ------------------------------------------------------------------------- */

/* What is it of no rows? True for 0, false for null; `known` tells whether it is one of these. */
static bool
is_count(const Aggref *aggregate, bool *known)
{
	*known = aggregate->aggkind == AGGKIND_NORMAL && aggregate->aggfnoid < FirstNormalObjectId;
	return aggregate->aggfnoid == F_COUNT_ || aggregate->aggfnoid == F_COUNT_ANY || aggregate->aggfnoid == F_REGR_COUNT;
}

/* The groups without keys below Projects, if what a row of no rows would be can be computed above. */
static GpuvmRel *
lone_group(GpuvmRel *rel, const Bitmapset *left)
{
	ListCell   *lc;

	while (rel->op == REL_PROJECT)
		rel = rel_input(rel);
	if (rel->op != REL_GROUP || rel->keys != NIL || rel->sets != NIL || node_reads(rel, left) ||
		!may_lift(rel_input(rel), left, true))
		return nullptr;
	foreach(lc, rel->columns)
	{
		const Node *expr = (const Node *) lfirst_node(TargetEntry, lc)->expr;
		bool		known;

		if (!IsA(expr, Aggref))
			return nullptr;
		(void) is_count((const Aggref *) expr, &known);
		if (!known)
			return nullptr;
	}
	return rel;
}

/* The Projects above the groups, above the join. */
static GpuvmRel *
projects_above(GpuvmRel *top, const GpuvmRel *group, GpuvmRel *join)
{
	GpuvmRel   *project;

	if (top == group)
		return join;
	project = rel_make(REL_PROJECT, list_make1(projects_above(rel_input(top), group, join)));
	project->columns = top->columns;
	return project;
}

static Node *
or_zero(const TargetEntry *count, const Aggref *aggregate)
{
	CoalesceExpr *expr = makeNode(CoalesceExpr);

	expr->coalescetype = aggregate->aggtype;
	expr->args = list_make2(rel_var(count), rel_bigint(0));
	expr->location = -1;
	return (Node *) expr;
}

static void
unnest_group(GpuvmRel **cell, GpuvmRel *group, Unnesting *unnesting)
{
	GpuvmRel   *join = *cell;
	GpuvmRel   *counts = rel_make(REL_PROJECT, list_make1(join));
	GpuvmRel   *top = rel_input(join, 1);
	List	   *quals = join->quals;
	ListCell   *lc;

	lift(rel_input(group), unnesting);
	group->keys = lifted_keys(unnesting, group, 0);
	join->inputs = list_make2(linitial(join->inputs), group);
	join->join = RELJOIN_LEFT;
	join->quals = unnesting->lifted;
	*cell = projects_above(top, group, counts);
	if (quals != NIL)
	{
		*cell = rel_make(REL_FILTER, list_make1(*cell));
		(*cell)->quals = quals;
	}
	foreach(lc, group->columns)
	{
		TargetEntry *column = lfirst_node(TargetEntry, lc);
		const Aggref *aggregate = (const Aggref *) column->expr;
		bool		known;

		if (is_count(aggregate, &known))
		{
			TargetEntry *count = new_column(unnesting, (Node *) aggregate, column->resname);

			counts->columns = lappend(counts->columns, makeTargetEntry((Expr *) or_zero(count, aggregate),
																	   column->resno, column->resname, false));
			lfirst(lc) = count;
		}
	}
}

/* -- joins ------------------------------------------------------------------------------------------- */

/* A mark's rows are those for which the conditions hold: of others it is not unknown what the test says. */
static void
add_to_mark(GpuvmRel *join, List *conditions)
{
	TargetEntry *mark = rel_mark(join);
	List	   *args = NIL;
	ListCell   *lc;

	foreach(lc, conditions)
	{
		BooleanTest *test = makeNode(BooleanTest);

		test->arg = static_cast<Expr *>(lfirst(lc));
		test->booltesttype = IS_TRUE;
		test->location = -1;
		args = lappend(args, test);
	}
	mark->expr =
		(Expr *) eval_const_expressions(nullptr, (Node *) makeBoolExpr(AND_EXPR, lappend(args, mark->expr), -1));
}

static void unnest_join(GpuvmRel **cell, GpuvmRel *statement);

/* Adds what comes out of the node of an input of which it makes nulls. */
static const Bitmapset *
add_made_null(const Bitmapset *columns, const GpuvmRel *rel, int input)
{
	if (rel->op != REL_JOIN || (rel->join != RELJOIN_FULL && (input == 0 || (rel->join != RELJOIN_LEFT && rel->join != RELJOIN_SINGLE))))
		return columns;
	return bms_union(columns, rel_numbers(rel));
}

/*
 * Values that a join further in has for each of its rows, and that depend on the left input alone, are computed for its
 * rows. Not where they are read above an outer join between (made_null), which would make them null no more.
 */
static void
hoist(GpuvmRel **cell, GpuvmRel *join, Unnesting *unnesting, const Bitmapset *made_null)
{
	GpuvmRel   *rel = *cell;

	check_stack_depth();
	for (int i = 0; i < list_length(rel->inputs); i++)
		hoist(rel_input_cell(rel, i), join, unnesting, add_made_null(made_null, rel, i));
	if (rel->op != REL_JOIN || rel->join != RELJOIN_SINGLE || rel->quals != NIL ||
		!tree_reads(rel_input(rel, 1), unnesting->left) || tree_reads(rel_input(rel, 1), rel_visible(rel_input(rel))) ||
		bms_overlap(rel_visible(rel_input(rel, 1)), made_null))
		return;
	*cell = rel_input(rel);
	linitial(rel->inputs) = linitial(join->inputs);
	linitial(join->inputs) = rel;
	unnest_join(rel_input_cell(join), unnesting->statement);
	unnesting->left = rel_visible(rel_input(join));
}

static void
unnest_join(GpuvmRel **cell, GpuvmRel *statement)
{
	GpuvmRel   *join = *cell;
	Unnesting	unnesting = {rel_visible(rel_input(join)), statement, NIL};
	GpuvmRel   *group;

	if (join->join == RELJOIN_FULL || !tree_reads(rel_input(join, 1), unnesting.left))
		return;
	hoist(rel_input_cell(join, 1), join, &unnesting, add_made_null(nullptr, join, 1));
	if (may_lift(rel_input(join, 1), unnesting.left, false))
	{
		lift(rel_input(join, 1), &unnesting);
		if (join->join == RELJOIN_MARK)
			add_to_mark(join, unnesting.lifted);
		else
			join->quals = list_concat(join->quals, unnesting.lifted);
		return;
	}
	group = lone_group(rel_input(join, 1), unnesting.left);
	if (group != nullptr && (join->join == RELJOIN_SINGLE || join->join == RELJOIN_INNER ||
							 (join->join == RELJOIN_LEFT && join->quals == NIL)))
		unnest_group(cell, group, &unnesting);
}

void
unnest(GpuvmRel **cell, GpuvmRel *statement)
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	for (int i = 0; i < list_length((*cell)->inputs); i++)
		unnest(rel_input_cell(*cell, i), statement);
	if ((*cell)->op == REL_JOIN)
		unnest_join(cell, statement);
}

}  // namespace gpuvm
