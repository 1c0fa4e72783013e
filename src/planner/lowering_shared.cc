/* lowering_shared.cc: what is defined once and read several times: one stage, whose rows all readers have. */
#include "pg/pg.h"

extern "C" {
#include "nodes/pg_list.h"
}

#include "planner/lowering.h"
#include "planner/lowering_values.h"
#include "planner/stage_paths.h"

namespace gpuvm {

/* A definition that is read several times. */
struct SharedRows
{
	int			id;
	List	   *numbers;		/* of its columns */
	Stage		stage;
	List	   *values;			/* theirs, over the stage's columns as those of this relation */
	int			relid;
	bool		apart;			/* each reader computes it: its values cannot be handed on */
};

static int
count_sets(const GpuvmRel *rel, int id)
{
	int			n = rel->op == REL_SET && rel->id == id;
	ListCell   *lc;

	check_stack_depth();
	foreach(lc, rel->inputs)
		n += count_sets(static_cast<const GpuvmRel *>(lfirst(lc)), id);
	return n;
}

static int
count_readers(const Lowering *l, int id)
{
	int			n = count_sets(rel_input(l->statement), id);
	ListCell   *lc;

	foreach(lc, l->statement->definitions)
		n += count_sets(static_cast<const GpuvmRel *>(lfirst(lc)), id);
	return n;
}

/* Is it more than conditions on one table's rows? Programs read these as fast from its tablets, and leave out what they need not look at. */
static bool
is_worth_keeping(const GpuvmRel *rel)
{
	while (rel->op == REL_PROJECT || rel->op == REL_FILTER)
		rel = rel_input(rel);
	return rel->op != REL_SCAN && rel->op != REL_SET;
}

/* What the columns of a stage are made of. */
static const List *
exprs_of_stage(const Lowering *l, int relid)
{
	ListCell   *lc;

	foreach(lc, l->stages)
	{
		const StageColumns *columns = static_cast<const StageColumns *>(lfirst(lc));

		if (columns->relid == relid)
			return columns->exprs;
	}
	return NIL;
}

static SharedRows *
find_rows(const Lowering *l, int id)
{
	ListCell   *lc;

	foreach(lc, l->definitions)
	{
		SharedRows *rows = static_cast<SharedRows *>(lfirst(lc));

		if (rows->id == id)
			return rows;
	}
	return nullptr;
}

/* Are the piece's rows those of a stage, as they are? */
static bool
is_stage(const Piece *piece)
{
	const ShapeCursor *c = &piece->shape.cursors[0];

	return piece->shape.ncursors == 1 && c->target.child != nullptr && is_stage_path(c->target.child) && c->quals == NIL && c->filters == NIL;
}

static bool
make_stage(Lowering *l, const GpuvmRel *rel, SharedRows *rows)
{
	const Piece *piece = lower_apart(l, rel);

	if (piece == nullptr)
		return false;
	rows->values = values_of_numbers(l, rows->numbers);
	if (l->reason != nullptr)
		return false;
	if (is_stage(piece))
	{
		const ScanTarget *target = &piece->shape.cursors[0].target;

		rows->relid = bms_singleton_member(piece->shape.cursors[0].relids);
		rows->stage.path = target->child;
		rows->stage.columns = target->columns;
		rows->stage.names = target->names;
		rows->stage.shown = target->shown;
		rows->stage.exprs = exprs_of_stage(l, rows->relid);
		rows->stage.rows = piece->shape.rows;
		rows->stage.shared = target->shared;
		return true;
	}
	if (!stage_of_rows(l, piece, rows->values, true, &rows->stage))
		return false;
	rows->relid = 0;
	rows->values = rows->stage.values;
	return true;
}

/* Makes the stage. Where that is refused each reader may still do without. */
static SharedRows *
make_rows(Lowering *l, const GpuvmRel *definition)
{
	SharedRows *rows = static_cast<SharedRows *>(palloc0(sizeof(SharedRows)));
	JoinBlock  *outer = l->block;
	ListCell   *lc;

	rows->id = definition->id;
	foreach(lc, rel_input(definition)->columns)
		rows->numbers = lappend_int(rows->numbers, lfirst_node(TargetEntry, lc)->resno);
	l->block = nullptr;
	rows->apart = !make_stage(l, rel_input(definition), rows);
	/* it may be another one's rows */
	if (!rows->apart && rows->stage.shared == 0)
	{
		l->shared = lappend(l->shared, rows->stage.path);
		rows->stage.shared = list_length(l->shared);
	}
	l->reason = nullptr;
	l->block = outer;
	l->definitions = lappend(l->definitions, rows);
	return rows;
}

Piece *
lower_shared(Lowering *l, const GpuvmRel *definition)
{
	SharedRows *rows = find_rows(l, definition->id);
	const List *values;
	Piece	   *piece;
	ListCell   *lc;

	if (l->reason != nullptr)
		return nullptr;
	if (rows == nullptr && is_worth_keeping(rel_input(definition)) && count_readers(l, definition->id) > 1)
		rows = make_rows(l, definition);
	if (rows == nullptr || rows->apart)
		return lower_apart(l, rel_input(definition));
	piece = piece_of_stage(l, &rows->stage);
	values = move_values(rows->values, rows->relid, bms_singleton_member(piece->shape.cursors[0].relids));
	foreach(lc, rows->numbers)
		l->values[lfirst_int(lc)] = static_cast<Node *>(list_nth(values, foreach_current_index(lc)));
	return piece;
}

}  // namespace gpuvm
