/*
 * semijoins.cc: what a join leaves of a UNION ALL, or of groups, left in its arms, or before there are groups, already.
 *
 * All rows of the arms become a set before anything is joined to them: of ten years' sales those of a week. So do all groups: of two hundred thousand
 * parts' averages those of the few that are asked for. Where a column of the Union, or a key of the groups, is to be equal to one of a table with a
 * condition of its own, each arm, or what is grouped, is joined with the same rows of that table, by a semijoin, where the column comes
 * from. The join above stays as it is.
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
	int			inner;			/* which of its arguments is the small table's, or equal to one of its columns */
	const GpuvmRel *small;		/* a Filter of a Scan */
	int			number;			/* of its column */
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

static bool
compares_columns(const Node *condition)
{
	const OpExpr *op = (const OpExpr *) condition;

	return IsA(condition, OpExpr) && list_length(op->args) == 2 &&
		rel_column_of(static_cast<Node *>(linitial(op->args))) != 0 &&
		rel_column_of(static_cast<Node *>(lsecond(op->args))) != 0 &&
		op_hashjoinable(op->opno, exprType(static_cast<Node *>(linitial(op->args))));
}

/* Does the condition say that the column equals another one, as the equality does? That; 0: it does not. */
static int
equal_column(const Node *condition, int number, const Equality *e)
{
	const OpExpr *op = (const OpExpr *) condition;

	if (!compares_columns(condition) || op->opno != e->op->opno || op->inputcollid != e->op->inputcollid)
		return 0;
	for (int i = 0; i < 2; i++)
	{
		const Node *one = static_cast<Node *>(list_nth(op->args, i)), *other = static_cast<Node *>(list_nth(op->args, 1 - i));

		if (rel_column_of(one) == number && exprType(one) == exprType(other))
			return rel_column_of(other);
	}
	return 0;
}

/* Of the tables that are joined one with a condition that the column comes from, or that has a column which is equal to it. */
static bool
find_small(const GpuvmRel *rel, int number, Equality *e)
{
	ListCell   *lc;

	check_stack_depth();
	if (is_small_table(rel, number))
	{
		e->small = rel;
		e->number = number;
		return true;
	}
	if (rel->op != REL_JOIN)
		return false;
	for (int i = 0; i < kept_sides(rel); i++)
	{
		if (bms_is_member(number, rel_visible(rel_input(rel, i))) && find_small(rel_input(rel, i), number, e))
			return true;
	}
	/* or one that it has a partner in */
	foreach(lc, rel->join == RELJOIN_INNER || rel->join == RELJOIN_SEMI ? rel->quals : NIL)
	{
		const int	other = equal_column(static_cast<const Node *>(lfirst(lc)), number, e);

		for (int i = 0; other != 0 && i < 2; i++)
		{
			if (bms_is_member(other, rel_visible(rel_input(rel, i))) && !bms_is_member(number, rel_visible(rel_input(rel, i))) &&
				find_small(rel_input(rel, i), other, e))
				return true;
		}
	}
	return false;
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

/* -- the arms, and what is grouped ------------------------------------------------------------ */

/* What is above a scan, and takes all of its rows: the dearest of it. */
enum class Below
{
	Joins,						/* nothing */
	Groups,						/* or windows */
	Union,
};

static void
join_with_small(GpuvmRel **cell, int number, const Equality *e, Below below)
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
	/* what is read once more is to be less than what stays away; a subquery's value is computed once more, too */
	if (rows_of_scan(scan) <= rows_of_scan(rel_input(e->small)) || (below == Below::Groups && rel_reads_bound((const Node *) e->small->quals)))
		return;
	join = rel_make(REL_JOIN, list_make2(*cell, copy_of_small(e, numbers)));
	join->join = RELJOIN_SEMI;
	/* rows of a set are dear; groups may be cheaper than a join that leaves most of them */
	join->reduces = below == Below::Groups;
	*small = (Node *) rel_var(rel_find(rel_input(rel_input(join, 1)), numbers[e->number]));
	*wide = (Node *) rel_var(column);
	join->quals = list_make1(op);
	*cell = join;
}

/* Does the equality hold for all rows of a group, or partition, or for none? They have equal values of this column, and so as the equality has it. */
static bool
is_common(const List *clauses, const GpuvmRel *rel, int number, const Equality *e)
{
	const Oid	collation = exprInputCollation((const Node *) e->op);
	ListCell   *lc;

	if (OidIsValid(collation) && !get_collation_isdeterministic(collation))
		return false;
	foreach(lc, clauses)
	{
		const SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		const TargetEntry *column = rel_find(rel, number);

		if (static_cast<int>(clause->tleSortGroupRef) != number || !equality_ops_are_compatible(clause->eqop, e->op->opno))
			continue;
		return column == nullptr || !OidIsValid(exprCollation((const Node *) column->expr)) ||
			get_collation_isdeterministic(exprCollation((const Node *) column->expr));
	}
	return false;
}

static bool
is_common_to_windows(const GpuvmRel *rel, int number, const Equality *e)
{
	ListCell   *lc;

	foreach(lc, rel->windows)
	{
		if (!is_common(lfirst_node(WindowClause, lc)->partitionClause, rel, number, e))
			return false;
	}
	return true;
}

/* To the scans that the column comes from, in a Union's arms or below groups, where nothing is between that changes rows or values. */
static void
reduce(GpuvmRel **cell, int number, const Equality *e, Below below)
{
	GpuvmRel   *rel = *cell;
	const TargetEntry *column;

	check_stack_depth();
	switch (static_cast<RelOp>(rel->op))
	{
		case REL_SCAN:
			if (below != Below::Joins)
				join_with_small(cell, number, e, below);
			break;
		case REL_FILTER:
			if (below != Below::Joins && !rel->barrier && rel_input(rel)->op == REL_SCAN)
				join_with_small(cell, number, e, below);
			else if (!rel->barrier)
				reduce(rel_input_cell(rel), number, e, below);
			break;
		case REL_PROJECT:
			column = rel_find(rel, number);
			number = column == nullptr ? number : rel_column_of((const Node *) column->expr);
			if (number != 0)
				reduce(rel_input_cell(rel), number, e, below);
			break;
		case REL_JOIN:
			for (int i = 0; i < kept_sides(rel); i++)
			{
				if (bms_is_member(number, rel_visible(rel_input(rel, i))))
				{
					reduce(rel_input_cell(rel, i), number, e, below);
					break;
				}
			}
			break;
		case REL_GROUP:
			if (rel->sets == NIL && is_common(rel->keys, rel, number, e))
				reduce(rel_input_cell(rel), number, e, Max(below, Below::Groups));
			break;
		case REL_WINDOW:
			if (is_common_to_windows(rel, number, e))
				reduce(rel_input_cell(rel), number, e, Max(below, Below::Groups));
			break;
		case REL_SORT:
			if (rel->offset == nullptr && rel->count == nullptr)
				reduce(rel_input_cell(rel), number, e, below);
			break;
		case REL_UNION:
			column = rel_find(rel, number);
			for (int i = 0; column != nullptr && i < list_length(rel->inputs); i++)
				reduce(rel_input_cell(rel, i), rel_arm_column(rel, i, column), e, Below::Union);
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
			Equality	e = {statement, op, inner, nullptr, 0};

			if (!drops_unmatched(join, 1 - side) || !bms_is_member(number, rel_visible(narrow)) || !bms_is_member(other, rel_visible(*wide)))
				continue;
			if (find_small(narrow, number, &e))
				reduce(wide, other, &e, Below::Joins);
		}
	}
}

void
reduce_by_semijoins(GpuvmRel **cell, GpuvmRel *statement)
{
	GpuvmRel   *rel = *cell;
	ListCell   *lc;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	for (int i = 0; i < list_length(rel->inputs); i++)
		reduce_by_semijoins(rel_input_cell(rel, i), statement);
	foreach(lc, rel->op == REL_JOIN ? rel->quals : NIL)
	{
		if (compares_columns(static_cast<const Node *>(lfirst(lc))))
			reduce_by(rel, lfirst_node(OpExpr, lc), statement);
	}
}

}  // namespace gpuvm
