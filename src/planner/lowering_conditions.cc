/* lowering_conditions.cc: which conditions no program can evaluate: PostgreSQL does (lowering_above.cc). */
#include "pg/pg.h"

extern "C" {
#include "optimizer/optimizer.h"
}

#include "planner/lowering.h"

namespace gpuvm {

/* The items that have the condition's columns, joined by it; NULL: they are joins themselves, or have none. */
static Piece *
piece_with(Lowering *l, const JoinBlock *block, Node *condition)
{
	const Relids relids = pull_varnos(l->root, condition);
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
			piece = append_cursor(l, piece, item, JoinKind::Inner, left == 0 ? list_make1(condition) : NIL);
			continue;
		}
		piece = static_cast<Piece *>(palloc(sizeof(Piece)));
		*piece = *item;
		if (left == 0)
		{
			ShapeCursor *c = &piece->shape.cursors[item->shape.ncursors - 1];
			List	  **where = item->shape.ncursors > 1 ? &c->filters : &c->quals;

			*where = lappend(list_copy(*where), condition);
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
	Piece	   *piece = columns == NIL ? nullptr : piece_with(l, block, condition);
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

		if (reason == nullptr)
		{
			rest = lappend(rest, condition);
			continue;
		}
		block->held = lappend(block->held, condition);
		l->held_reason = reason;
		l->held_node = "Filter";
	}
	block->conditions = rest;
	return true;
}

}  // namespace gpuvm
