/*
 * lowering_conditions.cc: which conditions no program can evaluate: PostgreSQL does (lowering_above.cc), where what a
 * program computes in floats does not tell (float_filter.h).
 */
#include "pg/pg.h"

extern "C" {
#include "optimizer/optimizer.h"
}

#include "compiler/made_exprs.h"
#include "planner/float_filter.h"
#include "planner/lowering.h"

namespace gpuvm {

/* Each takes a program, or two, to try. */
constexpr int MOST_FILTERS = 16;

/* The items that have these columns, joined by the conditions; NULL: they are joins themselves, or have none. */
static Piece *
piece_with(Lowering *l, const JoinBlock *block, const Relids relids, List *conditions)
{
	Piece	   *piece = nullptr;
	int			left = 0;
	ListCell   *lc;

	foreach(lc, block->items)
		left += bms_overlap(relids_of(static_cast<const Piece *>(lfirst(lc))), relids);
	foreach(lc, block->items)
	{
		const Piece *item = static_cast<const Piece *>(lfirst(lc));

		if (!bms_overlap(relids_of(item), relids))
			continue;
		left--;
		if (piece != nullptr && (item->shape.ncursors > 1 || piece->shape.ncursors == PROGRAM_MAX_CURSORS))
			return nullptr;
		if (piece != nullptr)
		{
			piece = append_cursor(l, piece, item, JoinKind::Inner, left == 0 ? conditions : NIL);
			continue;
		}
		piece = static_cast<Piece *>(palloc(sizeof(Piece)));
		*piece = *item;
		if (left == 0)
		{
			ShapeCursor *c = &piece->shape.cursors[item->shape.ncursors - 1];
			List	  **where = item->shape.ncursors > 1 ? &c->filters : &c->quals;

			*where = list_concat_copy(*where, conditions);
		}
	}
	return piece;
}

/* NULL, or why no program evaluates it. */
static const char *
refusal(Lowering *l, const JoinBlock *block, Node *condition)
{
	const char *before = l->reason;
	const char *reason = nullptr;
	List	   *columns = pull_var_clause(condition, 0);
	Piece	   *piece = columns == NIL ? nullptr : piece_with(l, block, pull_varnos(l->root, condition), list_make1(condition));
	ScanPlan   *plan = static_cast<ScanPlan *>(palloc0(sizeof(ScanPlan)));

	l->reason = nullptr;
	if (piece != nullptr && !plan_of_rows(l, piece, list_make1(linitial(columns)), NIL, plan))
		reason = l->reason;
	l->reason = before;
	return reason;
}

/* The item's own conditions, which its rows have passed when something is computed of them; the held ones are not asked yet. */
static List *
ask_own_conditions(Lowering *l, JoinBlock *block, Piece *item)
{
	List	   *own = NIL;
	List	   *held = NIL;
	ListCell   *lc;

	foreach(lc, block->conditions)
	{
		Node	   *condition = static_cast<Node *>(lfirst(lc));
		const Relids relids = pull_varnos(l->root, condition);

		if (bms_is_empty(relids) || !bms_is_subset(relids, relids_of(item)))
			continue;
		if (only_computes(condition) && refusal(l, block, condition) != nullptr)
			held = lappend(held, condition);
		else
			own = lappend(own, condition);
	}
	block->conditions = list_difference_ptr(block->conditions, list_concat_copy(own, held));
	filter_piece(l, item, own);
	return held;
}

static bool
compute_sides_of_items(Lowering *l, JoinBlock *block, const GpuvmRel *rel)
{
	ListCell   *lc;

	foreach(lc, block->items)
	{
		Piece	   *item = static_cast<Piece *>(lfirst(lc));
		const List *sides = unknown_sides(l, item, block->conditions);
		List	   *held;

		if (sides == NIL)
			continue;
		held = ask_own_conditions(l, block, item);
		lfirst(lc) = compute_sides(l, item, rel, sides, held, &block->conditions);
		if (lfirst(lc) == nullptr)
			return false;
	}
	return true;
}

bool
hold_conditions(Lowering *l, JoinBlock *block, const GpuvmRel *rel)
{
	List	   *rest = NIL;
	ListCell   *lc;

	if (!compute_sides_of_items(l, block, rel))
		return false;
	foreach(lc, block->conditions)
	{
		Node	   *condition = static_cast<Node *>(lfirst(lc));
		const char *reason = !only_computes(condition) ? nullptr : refusal(l, block, condition);
		FloatFilter filter;

		if (reason == nullptr)
		{
			rest = lappend(rest, condition);
			continue;
		}
		if (list_length(block->held) < MOST_FILTERS &&
			float_filter(l, piece_with(l, block, pull_varnos(l->root, condition), NIL), condition, &filter))
		{
			if (filter.drops)
				rest = lappend(rest, float_condition((Expr *) filter.known));
			/* of groups of the rows the filter's value would be a key */
			if (rel != l->grouped)
				condition = where_unknown(l, &filter, condition);
		}
		block->held = lappend(block->held, condition);
		l->held_reason = reason;
		l->held_node = "Filter";
	}
	block->conditions = rest;
	return true;
}

}  // namespace gpuvm
