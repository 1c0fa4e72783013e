/* reduce_outer.cc: outer joins that a condition above makes inner ones. */
#include "pg/pg.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
}

#include "plan/facts.h"
#include "plan/normalise.h"

namespace gpuvm {

/* Rejected: rows that are null in one of these columns do not matter. */
static void reduce(GpuvmRel **cell, const Bitmapset *rejected);

static void
reduce_join(GpuvmRel *rel, const Bitmapset *rejected)
{
	const Bitmapset *by_quals = rel_rejected_nulls((Node *) rel->quals);
	const Bitmapset *left = rejected;
	const Bitmapset *right = by_quals;
	bool		keeps_left;
	bool		keeps_right;

	switch (static_cast<RelJoin>(rel->join))
	{
		case RELJOIN_FULL:
			keeps_left = !bms_overlap(rejected, rel_visible(rel_input(rel, 1)));
			keeps_right = !bms_overlap(rejected, rel_visible(rel_input(rel)));
			if (keeps_left && keeps_right)
			{
				left = right = nullptr;
				break;
			}
			rel->join = keeps_left || keeps_right ? RELJOIN_LEFT : RELJOIN_INNER;
			if (keeps_right)
				rel->inputs = list_make2(lsecond(rel->inputs), linitial(rel->inputs));
			reduce_join(rel, rejected);
			return;
		case RELJOIN_LEFT:
			if (bms_overlap(rejected, rel_visible(rel_input(rel, 1))))
			{
				rel->join = RELJOIN_INNER;
				reduce_join(rel, rejected);
				return;
			}
			break;
		case RELJOIN_INNER:
			left = right = bms_union(rejected, by_quals);
			break;
		case RELJOIN_SEMI:
			left = bms_union(rejected, by_quals);
			break;
		case RELJOIN_ANTI:
			break;
		case RELJOIN_MARK:
		case RELJOIN_SINGLE:
			right = nullptr;
			break;
	}
	reduce(rel_input_cell(rel), left);
	reduce(rel_input_cell(rel, 1), right);
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
reduce(GpuvmRel **cell, const Bitmapset *rejected)
{
	GpuvmRel   *rel = *cell;

	check_stack_depth();
	switch (static_cast<RelOp>(rel->op))
	{
		case REL_FILTER:
			reduce(rel_input_cell(rel), bms_union(rejected, rel_rejected_nulls((Node *) rel->quals)));
			break;
		case REL_PROJECT:
			reduce(rel_input_cell(rel), below_project(rel, rejected));
			break;
		case REL_JOIN:
			reduce_join(rel, rejected);
			break;
		case REL_GROUP:
			reduce(rel_input_cell(rel), below_group(rel, rejected));
			break;
		case REL_SORT:
			reduce(rel_input_cell(rel), rel->count == nullptr && rel->offset == nullptr ? rejected : nullptr);
			break;
		case REL_UNION:
			for (int i = 0; i < list_length(rel->inputs); i++)
				reduce(rel_input_cell(rel, i), below_arm(rel, i, rejected));
			break;
		default:
			/* of a Window's rows all count */
			for (int i = 0; i < list_length(rel->inputs); i++)
				reduce(rel_input_cell(rel, i), nullptr);
			break;
	}
}

void
reduce_outer_joins(GpuvmRel **cell, GpuvmRel *)
{
	reduce(cell, nullptr);
}

}  // namespace gpuvm
