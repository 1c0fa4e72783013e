/*
 * semijoins.cc: what a join leaves of a UNION ALL, left in its arms already.
 *
 * All rows of the arms become a set before anything is joined to them: of ten years' sales those of a week. Where a
 * column of the Union is to be equal to one of a table with a condition of its own, each arm is joined with the same
 * rows of that table, by a semijoin, where its column comes from. The join above stays as it is.
 */
#include "pg/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

#include "plan/normalise.h"
#include "plan/renumber.h"

namespace gpuvm {

/* column = column that a semijoin may be made of. */
struct Equality
{
	GpuvmRel   *statement;
	const OpExpr *op;
	int			inner;			/* which of its arguments is the small table's */
	const GpuvmRel *small;		/* a Filter of a Scan */
};

/* As VACUUM or ANALYZE saw them; -1: nobody has. */
static double
rows_of_scan(const GpuvmRel *scan)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(scan->rte->relid));
	double		rows = -1;

	if (HeapTupleIsValid(tuple))
	{
		rows = ((Form_pg_class) GETSTRUCT(tuple))->reltuples;
		ReleaseSysCache(tuple);
	}
	return rows;
}

/* Inputs of a join of which it makes no rows that they do not have: none, the left, or both. */
static int
kept_sides(const GpuvmRel *join)
{
	return join->join == RELJOIN_FULL ? 0 : join->join == RELJOIN_INNER ? 2 : 1;
}

/* -- the small table ---------------------------------------------------------------------- */

static bool
says_not_null(const Node *condition)
{
	return IsA(condition, NullTest) && ((const NullTest *) condition)->nulltesttype == IS_NOT_NULL;
}

static bool
is_small_table(const GpuvmRel *rel, int number)
{
	const GpuvmRel *scan;
	ListCell   *lc;

	if (rel->op != REL_FILTER || rel->barrier || rel_input(rel)->op != REL_SCAN)
		return false;
	scan = rel_input(rel);
	if (rel_find(scan, number) == nullptr || !bms_is_subset(rel_columns_in((const Node *) rel->quals), rel_numbers(scan)))
		return false;
	foreach(lc, rel->quals)
	{
		if (!says_not_null(static_cast<const Node *>(lfirst(lc))))
			return rel_is_small((Node *) rel->quals);
	}
	return false;
}

/* Of the tables that are joined the one that the column comes from, if it has a condition. */
static const GpuvmRel *
small_table(const GpuvmRel *rel, int number)
{
	check_stack_depth();
	if (is_small_table(rel, number))
		return rel;
	for (int i = 0; rel->op == REL_JOIN && i < kept_sides(rel); i++)
	{
		if (bms_is_member(number, rel_visible(rel_input(rel, i))))
			return small_table(rel_input(rel, i), number);
	}
	return nullptr;
}

static GpuvmRel *
copy_of_small(const Equality *e, int *numbers)
{
	GpuvmRel   *filter = static_cast<GpuvmRel *>(copyObjectImpl(e->small));
	ListCell   *lc;

	foreach(lc, rel_input(filter)->columns)
	{
		TargetEntry *column = lfirst_node(TargetEntry, lc);
		const int	number = rel_next_number(e->statement);

		numbers[column->resno] = number;
		column->resno = number;
	}
	filter->columns = NIL;
	filter->quals = (List *) renumber_expr((Node *) filter->quals, numbers);
	return filter;
}

/* -- the arms ----------------------------------------------------------------------------- */

static void
join_with_small(GpuvmRel **cell, int number, const Equality *e)
{
	int		   *numbers = static_cast<int *>(palloc0(sizeof(int) * (e->statement->last_number + 1)));
	const GpuvmRel *scan = (*cell)->op == REL_FILTER ? rel_input(*cell) : *cell;
	const TargetEntry *column = rel_find(scan, number);
	OpExpr	   *op = static_cast<OpExpr *>(copyObjectImpl(e->op));
	Node	  **small = reinterpret_cast<Node **>(&list_nth_cell(op->args, e->inner)->ptr_value);
	Node	  **wide = reinterpret_cast<Node **>(&list_nth_cell(op->args, 1 - e->inner)->ptr_value);
	GpuvmRel   *join;

	if (column == nullptr || exprType((const Node *) column->expr) != exprType(*wide))
		return;
	/* what is read once more is to be less than what stays away */
	if (rows_of_scan(scan) <= rows_of_scan(rel_input(e->small)))
		return;
	join = rel_make(REL_JOIN, list_make2(*cell, copy_of_small(e, numbers)));
	join->join = RELJOIN_SEMI;
	*small = renumber_expr(*small, numbers);
	*wide = (Node *) rel_var(column);
	join->quals = list_make1(op);
	*cell = join;
}

/* To the scans that the column comes from, in a Union's arms, where nothing is between that changes rows or values. */
static void
reduce(GpuvmRel **cell, int number, const Equality *e, bool in_arm)
{
	GpuvmRel   *rel = *cell;
	const TargetEntry *column;

	check_stack_depth();
	switch (static_cast<RelOp>(rel->op))
	{
		case REL_SCAN:
			if (in_arm)
				join_with_small(cell, number, e);
			break;
		case REL_FILTER:
			if (in_arm && !rel->barrier && rel_input(rel)->op == REL_SCAN)
				join_with_small(cell, number, e);
			else if (!rel->barrier)
				reduce(rel_input_cell(rel), number, e, in_arm);
			break;
		case REL_PROJECT:
			column = rel_find(rel, number);
			number = column == nullptr ? number : rel_column_of((const Node *) column->expr);
			if (number != 0)
				reduce(rel_input_cell(rel), number, e, in_arm);
			break;
		case REL_JOIN:
			for (int i = 0; i < kept_sides(rel); i++)
			{
				if (bms_is_member(number, rel_visible(rel_input(rel, i))))
				{
					reduce(rel_input_cell(rel, i), number, e, in_arm);
					break;
				}
			}
			break;
		case REL_UNION:
			column = rel_find(rel, number);
			for (int i = 0; column != nullptr && i < list_length(rel->inputs); i++)
				reduce(rel_input_cell(rel, i), rel_arm_column(rel, i, column), e, true);
			break;
		default:
			break;
	}
}

/* -- joins --------------------------------------------------------------------------------- */

/* Does nothing come of the input's rows for which the join's conditions are true of no row of the other one? */
static bool
drops_unmatched(const GpuvmRel *join, int side)
{
	switch (static_cast<RelJoin>(join->join))
	{
		case RELJOIN_INNER:
		case RELJOIN_SEMI: return true;
		case RELJOIN_LEFT:
		case RELJOIN_SINGLE:
		case RELJOIN_ANTI: return side == 1;
		/* a null on the right makes a mark null */
		case RELJOIN_MARK:
		case RELJOIN_FULL: return false;
	}
	return false;
}

static void
reduce_by(GpuvmRel *join, const OpExpr *op, GpuvmRel *statement)
{
	for (int inner = 0; inner < 2; inner++)
	{
		const int	number = rel_column_of(static_cast<Node *>(list_nth(op->args, inner)));
		const int	other = rel_column_of(static_cast<Node *>(list_nth(op->args, 1 - inner)));

		for (int side = 0; side < 2; side++)
		{
			GpuvmRel  **wide = rel_input_cell(join, 1 - side);
			const GpuvmRel *narrow = rel_input(join, side);
			Equality	e = {statement, op, inner, nullptr};

			if (!drops_unmatched(join, 1 - side) || !bms_is_member(number, rel_visible(narrow)) || !bms_is_member(other, rel_visible(*wide)))
				continue;
			e.small = small_table(narrow, number);
			if (e.small != nullptr)
				reduce(wide, other, &e, false);
		}
	}
}

static bool
compares_columns(const Node *condition)
{
	const OpExpr *op = (const OpExpr *) condition;

	return IsA(condition, OpExpr) && list_length(op->args) == 2 &&
		rel_column_of(static_cast<Node *>(linitial(op->args))) != 0 &&
		rel_column_of(static_cast<Node *>(lsecond(op->args))) != 0 &&
		op_hashjoinable(op->opno, exprType(static_cast<Node *>(linitial(op->args))));
}

void
reduce_unions(GpuvmRel **cell, GpuvmRel *statement)
{
	GpuvmRel   *rel = *cell;
	ListCell   *lc;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	for (int i = 0; i < list_length(rel->inputs); i++)
		reduce_unions(rel_input_cell(rel, i), statement);
	foreach(lc, rel->op == REL_JOIN ? rel->quals : NIL)
	{
		if (compares_columns(static_cast<const Node *>(lfirst(lc))))
			reduce_by(rel, lfirst_node(OpExpr, lc), statement);
	}
}

}  // namespace gpuvm
