/* reduce_outer.cc: outer joins that a condition above makes inner ones, or antijoins. */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
}

#include "plan/facts.h"
#include "plan/normalise.h"
#include "plan/renumber.h"

namespace gpuvm {

struct Reduction
{
	GpuvmRel   *statement;
	Bitmapset  *always_null;	/* columns that antijoins have left nothing but nulls of */
};

/* Which rows matter: those that are null in none of the first columns, and in all of the others. */
struct Wanted
{
	const Bitmapset *rejected;
	const Bitmapset *nulls;
};

static void reduce(GpuvmRel **cell, const Wanted &wanted, Reduction *r);

/* -- antijoins -------------------------------------------------------------------------------- */

/* The column that the condition wants to be null; 0: it is another one. */
static int
column_wanted_null(const Node *condition)
{
	const NullTest *test = (const NullTest *) condition;

	return IsA(test, NullTest) && test->nulltesttype == IS_NULL && !test->argisrow ? rel_column_of((const Node *) test->arg) : 0;
}

static Bitmapset *
columns_wanted_null(const List *conditions)
{
	Bitmapset  *numbers = nullptr;
	ListCell   *lc;

	foreach(lc, conditions)
	{
		const int	number = column_wanted_null(static_cast<const Node *>(lfirst(lc)));

		if (number != 0)
			numbers = bms_add_member(numbers, number);
	}
	return numbers;
}

/* The conditions but for those that are true of all rows by now. */
static List *
still_asked(List *conditions, const Reduction *r)
{
	List	   *asked = NIL;
	ListCell   *lc;

	foreach(lc, conditions)
	{
		if (!bms_is_member(column_wanted_null(static_cast<const Node *>(lfirst(lc))), r->always_null))
			asked = lappend(asked, lfirst(lc));
	}
	return asked;
}

/* Are only rows wanted that have no partner? A partner has no null in one of these columns. */
static bool
wants_no_partner(const GpuvmRel *join, const Bitmapset *nulls)
{
	const GpuvmRel *right = rel_input(join, 1);
	Bitmapset  *not_null = bms_union(rel_rejected_nulls((Node *) join->quals), rel_facts(right)->not_null);

	return bms_overlap(bms_int_members(not_null, rel_visible(right)), nulls) && !rel_is_dependent(join);
}

/* A left join of which only such rows are wanted: what is read of the right side above becomes columns of their own, that are null. */
static void
make_antijoin(GpuvmRel **cell, Reduction *r)
{
	GpuvmRel   *join = *cell;
	const Bitmapset *right = rel_visible(rel_input(join, 1));
	int		   *numbers = static_cast<int *>(palloc0(sizeof(int) * (r->statement->last_number + list_length(join->columns) + 1)));
	GpuvmRel   *project = rel_make(REL_PROJECT, list_make1(join));
	List	   *left = NIL;
	ListCell   *lc;

	foreach(lc, join->columns)
	{
		TargetEntry *column = lfirst_node(TargetEntry, lc);
		const Node *expr = (const Node *) column->expr;
		Const	   *null;

		if (!bms_is_member(column->resno, right))
		{
			left = lappend(left, column);
			project->columns = lappend(project->columns, rel_hand_on(column));
			continue;
		}
		null = makeNullConst(exprType(expr), exprTypmod(expr), exprCollation(expr));
		numbers[column->resno] = rel_next_number(r->statement);
		r->always_null = bms_add_member(r->always_null, numbers[column->resno]);
		project->columns = lappend(project->columns, makeTargetEntry((Expr *) null, numbers[column->resno], column->resname, false));
	}
	join->join = RELJOIN_ANTI;
	join->columns = left;
	renumber_rel(r->statement, numbers, list_make1(join));
	*cell = project;
}

/* -- nodes -------------------------------------------------------------------------------------- */

static void
reduce_join(GpuvmRel **cell, const Wanted &wanted, Reduction *r)
{
	GpuvmRel   *rel = *cell;
	const Bitmapset *by_quals = rel_rejected_nulls((Node *) rel->quals);
	const Bitmapset *rejected = wanted.rejected;
	Wanted		left = wanted;
	Wanted		right = {by_quals, nullptr};
	bool		keeps_left;
	bool		keeps_right;

	switch (static_cast<RelJoin>(rel->join))
	{
		case RELJOIN_FULL:
			keeps_left = !bms_overlap(rejected, rel_visible(rel_input(rel, 1)));
			keeps_right = !bms_overlap(rejected, rel_visible(rel_input(rel)));
			if (keeps_left && keeps_right)
			{
				left = right = Wanted{};
				break;
			}
			rel->join = keeps_left || keeps_right ? RELJOIN_LEFT : RELJOIN_INNER;
			if (keeps_right)
				rel->inputs = list_make2(lsecond(rel->inputs), linitial(rel->inputs));
			reduce_join(cell, wanted, r);
			return;
		case RELJOIN_LEFT:
			if (bms_overlap(rejected, rel_visible(rel_input(rel, 1))))
			{
				rel->join = RELJOIN_INNER;
				reduce_join(cell, wanted, r);
				return;
			}
			if (wants_no_partner(rel, wanted.nulls))
				make_antijoin(cell, r);
			break;
		case RELJOIN_INNER:
			left = right = Wanted{bms_union(rejected, by_quals), bms_union(wanted.nulls, columns_wanted_null(rel->quals))};
			break;
		case RELJOIN_SEMI:
			left.rejected = bms_union(rejected, by_quals);
			break;
		case RELJOIN_ANTI:
			break;
		case RELJOIN_MARK:
		case RELJOIN_SINGLE:
			right = Wanted{};
			break;
	}
	reduce(rel_input_cell(rel), left, r);
	reduce(rel_input_cell(rel, 1), right, r);
	rel->quals = still_asked(rel->quals, r);
}

/* Columns that are made of others are null where those are, if they are strict. */
static const Bitmapset *
below_project(const GpuvmRel *rel, const Bitmapset *rejected)
{
	ListCell   *lc;

	foreach(lc, rel->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (!rel_hands_on(column) && bms_is_member(column->resno, rejected) &&
			!contain_nonstrict_functions((Node *) column->expr) && !contain_volatile_functions((Node *) column->expr))
			rejected = bms_union(rejected, rel_columns_in((Node *) column->expr));
	}
	return rejected;
}

/* Keys that all sets have. */
static const Bitmapset *
below_group(const GpuvmRel *rel, const Bitmapset *rejected)
{
	Bitmapset  *keys = nullptr;
	ListCell   *lc;

	if (rel->sets != NIL)
		return nullptr;
	foreach(lc, rel->keys)
		keys = bms_add_member(keys, lfirst_node(SortGroupClause, lc)->tleSortGroupRef);
	return bms_int_members(keys, rejected);
}

static const Bitmapset *
below_arm(const GpuvmRel *rel, int arm, const Bitmapset *rejected)
{
	Bitmapset  *numbers = nullptr;
	ListCell   *lc;

	foreach(lc, rel->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (bms_is_member(column->resno, rejected))
			numbers = bms_add_member(numbers, rel_arm_column(rel, arm, column));
	}
	return numbers;
}

static void
reduce(GpuvmRel **cell, const Wanted &wanted, Reduction *r)
{
	GpuvmRel   *rel = *cell;

	check_stack_depth();
	switch (static_cast<RelOp>(rel->op))
	{
		case REL_FILTER:
			reduce(rel_input_cell(rel), Wanted{bms_union(wanted.rejected, rel_rejected_nulls((Node *) rel->quals)),
				   bms_union(wanted.nulls, columns_wanted_null(rel->quals))}, r);
			rel->quals = still_asked(rel->quals, r);
			break;
		case REL_PROJECT:
			reduce(rel_input_cell(rel), Wanted{below_project(rel, wanted.rejected), wanted.nulls}, r);
			break;
		case REL_JOIN:
			reduce_join(cell, wanted, r);
			break;
		case REL_GROUP:
			reduce(rel_input_cell(rel), Wanted{below_group(rel, wanted.rejected), below_group(rel, wanted.nulls)}, r);
			break;
		case REL_SORT:
			reduce(rel_input_cell(rel), rel->count == nullptr && rel->offset == nullptr ? wanted : Wanted{}, r);
			break;
		case REL_UNION:
			for (int i = 0; i < list_length(rel->inputs); i++)
				reduce(rel_input_cell(rel, i), Wanted{below_arm(rel, i, wanted.rejected), below_arm(rel, i, wanted.nulls)}, r);
			break;
		default:
			/* of a Window's rows all count */
			for (int i = 0; i < list_length(rel->inputs); i++)
				reduce(rel_input_cell(rel, i), Wanted{}, r);
			break;
	}
}

void
reduce_outer_joins(GpuvmRel **cell, GpuvmRel *statement)
{
	Reduction	r = {statement, nullptr};

	reduce(cell, Wanted{}, &r);
}

}  // namespace gpuvm
