/* prune.cc: which columns each node gives. */
#include "pg/pg.h"

extern "C" {
#include "nodes/nodeFuncs.h"
}

#include "plan/passes.h"

namespace gpuvm {

struct Pruning
{
	Bitmapset  *shared;			/* columns of Shareds that Sets read */
	Bitmapset  *ids;			/* definitions that are read */
};

struct Reads
{
	Bitmapset  *numbers;
	Bitmapset  *params;
};

static Bitmapset *prune(GpuvmRel **cell, const Bitmapset *needed, Pruning *pruning);

static bool
reads_walker(Node *node, Reads *reads)
{
	if (node == nullptr)
		return false;
	if (rel_column_of(node) != 0)
		reads->numbers = bms_add_member(reads->numbers, rel_column_of(node));
	else if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
		reads->params = bms_add_member(reads->params, ((Param *) node)->paramid);
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(reads_walker), reads);
}

static void
add_reads(Node **expr, void *context)
{
	(void) reads_walker(*expr, static_cast<Reads *>(context));
}

static Bitmapset *
add_keys(Bitmapset *numbers, const List *keys)
{
	ListCell   *lc;

	foreach(lc, keys)
		numbers = bms_add_member(numbers, lfirst_node(SortGroupClause, lc)->tleSortGroupRef);
	return numbers;
}

/* All columns that the node itself refers to. */
static Bitmapset *
reads_of(GpuvmRel *rel, Pruning *pruning)
{
	Reads		reads = {};
	ListCell   *lc;

	rel_each_expression(rel, add_reads, &reads);
	pruning->ids = bms_join(pruning->ids, reads.params);
	reads.numbers = add_keys(reads.numbers, rel->keys);
	foreach(lc, rel->windows)
	{
		reads.numbers = add_keys(reads.numbers, lfirst_node(WindowClause, lc)->partitionClause);
		reads.numbers = add_keys(reads.numbers, lfirst_node(WindowClause, lc)->orderClause);
	}
	return reads.numbers;
}

/* Of the columns those that the node makes, and somebody needs. */
static List *
made_columns(const GpuvmRel *rel, const Bitmapset *needed)
{
	List	   *made = NIL;
	ListCell   *lc;

	foreach(lc, rel->columns)
	{
		TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (!rel_hands_on(column) && bms_is_member(column->resno, needed))
			made = lappend(made, column);
	}
	return made;
}

static List *
handed_on(const GpuvmRel *input, const Bitmapset *needed, List *columns)
{
	ListCell   *lc;

	foreach(lc, input->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (bms_is_member(column->resno, needed))
			columns = lappend(columns, rel_hand_on(column));
	}
	return columns;
}

static GpuvmRel **
input_cell(GpuvmRel *rel, int n = 0)
{
	return reinterpret_cast<GpuvmRel **>(&list_nth_cell(rel->inputs, n)->ptr_value);
}

/* Filter, Project, Window, Sort: all rows' columns, and some that are made. */
static Bitmapset *
prune_plain(GpuvmRel **cell, const Bitmapset *needed, Pruning *pruning)
{
	GpuvmRel   *rel = *cell;
	List	   *made = rel->columns = made_columns(rel, needed);
	Bitmapset  *reads;
	Bitmapset  *below;

	if ((made == NIL && (rel->op == REL_PROJECT || rel->op == REL_WINDOW)) ||
		(rel->op == REL_FILTER && rel->quals == NIL && !rel->barrier))
	{
		*cell = rel_input(rel);
		return prune(cell, needed, pruning);
	}
	if (rel->op == REL_WINDOW)
	{
		Bitmapset  *refs = nullptr;
		List	   *windows = NIL;
		ListCell   *lc;

		foreach(lc, made)
			refs = bms_add_member(refs, ((WindowFunc *) lfirst_node(TargetEntry, lc)->expr)->winref);
		foreach(lc, rel->windows)
		{
			if (bms_is_member(lfirst_node(WindowClause, lc)->winref, refs))
				windows = lappend(windows, lfirst(lc));
		}
		rel->windows = windows;
	}
	reads = reads_of(rel, pruning);
	below = bms_union(needed, reads);
	reads = bms_join(reads, prune(input_cell(rel), below, pruning));
	bms_free(below);
	rel->columns = handed_on(rel_input(rel), needed, NIL);
	rel->columns = list_concat(rel->columns, made);
	return reads;
}

static Bitmapset *
prune_join(GpuvmRel **cell, const Bitmapset *needed, Pruning *pruning)
{
	GpuvmRel   *rel = *cell;
	List	   *made = rel->columns = made_columns(rel, needed);
	Bitmapset  *reads;
	Bitmapset  *below;

	if (rel->join == RELJOIN_MARK && made == NIL)
	{
		*cell = rel_input(rel);
		return prune(cell, needed, pruning);
	}
	reads = reads_of(rel, pruning);
	below = bms_union(needed, reads);
	reads = bms_join(reads, prune(input_cell(rel, 1), below, pruning));
	/* of a value that nobody reads it does not matter how many there are */
	if (rel->join == RELJOIN_SINGLE && !bms_overlap(rel_numbers(rel_input(rel, 1)), needed))
	{
		*cell = rel_input(rel);
		return prune(cell, needed, pruning);
	}
	below = bms_add_members(below, reads);
	reads = bms_join(reads, prune(input_cell(rel), below, pruning));
	bms_free(below);
	rel->columns = handed_on(rel_input(rel), needed, NIL);
	if (rel->join != RELJOIN_SEMI && rel->join != RELJOIN_ANTI && rel->join != RELJOIN_MARK)
		rel->columns = handed_on(rel_input(rel, 1), needed, rel->columns);
	rel->columns = list_concat(rel->columns, made);
	return reads;
}

static Bitmapset *
prune_group(GpuvmRel *rel, const Bitmapset *needed, Pruning *pruning)
{
	List	   *made = rel->columns = made_columns(rel, needed);
	Bitmapset  *keys = add_keys(nullptr, rel->keys);
	Bitmapset  *reads = reads_of(rel, pruning);
	Bitmapset  *below = bms_copy(reads);

	reads = bms_join(reads, prune(input_cell(rel), below, pruning));
	bms_free(below);
	keys = bms_int_members(keys, needed);
	rel->columns = list_concat(handed_on(rel_input(rel), keys, NIL), made);
	return reads;
}

/* The arms' columns follow. */
static Bitmapset *
prune_arms(GpuvmRel *rel, const Bitmapset *needed, Pruning *pruning)
{
	List	   *columns = NIL;
	List	   *positions = NIL;
	Bitmapset  *reads = nullptr;
	ListCell   *lc;
	ListCell   *lc2;
	int			n = 0;

	foreach(lc, rel->columns)
	{
		TargetEntry *column = lfirst_node(TargetEntry, lc);

		/* different rows are so by all columns */
		if (rel->op == REL_UNION && !bms_is_member(column->resno, needed))
			continue;
		positions = lappend_int(positions, ((Var *) column->expr)->varattno - 1);
		((Var *) column->expr)->varattno = ++n;
		columns = lappend(columns, column);
	}
	rel->columns = columns;
	n = 0;
	foreach(lc, rel->arms)
	{
		List	   *numbers = NIL;
		Bitmapset  *below = nullptr;

		foreach(lc2, positions)
		{
			numbers = lappend_int(numbers, list_nth_int(lfirst_node(List, lc), lfirst_int(lc2)));
			below = bms_add_member(below, llast_int(numbers));
		}
		lfirst(lc) = numbers;
		reads = bms_join(reads, prune(input_cell(rel, n++), below, pruning));
		bms_free(below);
	}
	return reads;
}

/* All columns that something in it refers to: those of the left input of a join above are among them. */
static Bitmapset *
prune(GpuvmRel **cell, const Bitmapset *needed, Pruning *pruning)
{
	GpuvmRel   *rel = *cell;
	Bitmapset  *reads;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	switch (static_cast<RelOp>(rel->op))
	{
		case REL_SCAN:
		case REL_VALUES:
		case REL_EXTERNAL:
			rel->columns = made_columns(rel, needed);
			return reads_of(rel, pruning);
		case REL_SET:
			rel->columns = made_columns(rel, needed);
			reads = reads_of(rel, pruning);
			pruning->shared = bms_join(pruning->shared, reads);
			pruning->ids = bms_add_member(pruning->ids, rel->id);
			return nullptr;
		case REL_FILTER:
		case REL_PROJECT:
		case REL_WINDOW:
		case REL_SORT:
			return prune_plain(cell, needed, pruning);
		case REL_JOIN:
			return prune_join(cell, needed, pruning);
		case REL_GROUP:
			return prune_group(rel, needed, pruning);
		case REL_UNION:
		case REL_SETOP:
			return prune_arms(rel, needed, pruning);
		case REL_STATEMENT:
		case REL_SHARED:
		case REL_BOUND:
			break;
	}
	elog(ERROR, "node of the algebra in a wrong place: %d", rel->op);
}

void
prune_columns(GpuvmRel *statement)
{
	Pruning		pruning = {};

	(void) prune(input_cell(statement), rel_numbers(statement), &pruning);
	for (int i = list_length(statement->definitions) - 1; i >= 0; i--)
	{
		GpuvmRel   *definition = static_cast<GpuvmRel *>(list_nth(statement->definitions, i));
		Bitmapset  *needed = definition->op == REL_BOUND ? rel_numbers(definition) : pruning.shared;

		if (!bms_is_member(definition->id, pruning.ids))
		{
			statement->definitions = list_delete_nth_cell(statement->definitions, i);
			continue;
		}
		(void) prune(input_cell(definition), bms_copy(needed), &pruning);
		if (definition->op == REL_SHARED)
			definition->columns = handed_on(rel_input(definition), pruning.shared, NIL);
	}
}

}  // namespace gpuvm
