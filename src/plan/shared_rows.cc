/*
 * shared_rows.cc: what no reader of a Shared wants is not made.
 *
 * A Shared of a UNION ALL, of which each reader's conditions leave arms out, becomes one of each arm. The rows of a Shared
 * are those that one reader at least may want, as far as that can be told before they are grouped.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
}

#include "plan/normalise.h"

namespace gpuvm {

/* A Set, and what stands directly above it. */
struct Reader
{
	GpuvmRel  **cell;			/* of the Set, */
	GpuvmRel  **top;			/* of the first Filter above, or of the Set */
	List	   *quals;			/* of these Filters, in the Shared's columns; those that read no others */
};

static Reader *
reader_of(GpuvmRel **cell, GpuvmRel **top, const List *quals)
{
	Reader	   *reader = static_cast<Reader *>(palloc0(sizeof(Reader)));
	const Bitmapset *own = rel_numbers(*cell);
	ListCell   *lc;

	reader->cell = cell;
	reader->top = top;
	foreach(lc, quals)
	{
		Node	   *qual = static_cast<Node *>(lfirst(lc));
		const Bitmapset *read = rel_columns_in(qual);

		if (!bms_is_empty(read) && bms_is_subset(read, own) && !rel_reads_bound(qual))
			reader->quals = lappend(reader->quals, rel_substitute(qual, (*cell)->columns));
	}
	return reader;
}

static List *
find_readers(GpuvmRel **cell, int id, GpuvmRel **top, List *quals, List *readers)
{
	GpuvmRel   *rel = *cell;

	check_stack_depth();
	if (rel->op == REL_SET && rel->id == id)
		return lappend(readers, reader_of(cell, top, quals));
	for (int i = 0; i < list_length(rel->inputs); i++)
	{
		GpuvmRel  **input = rel_input_cell(rel, i);

		readers = rel->op == REL_FILTER ? find_readers(input, id, top, list_concat_copy(quals, rel->quals), readers)
			: find_readers(input, id, input, NIL, readers);
	}
	return readers;
}

static List *
readers_of(GpuvmRel *statement, int id)
{
	List	   *readers = NIL;
	ListCell   *lc;

	foreach(lc, statement->definitions)
	{
		GpuvmRel  **cell = rel_input_cell(static_cast<GpuvmRel *>(lfirst(lc)));

		readers = find_readers(cell, id, cell, NIL, readers);
	}
	return find_readers(rel_input_cell(statement), id, rel_input_cell(statement), NIL, readers);
}

/* -- arms ------------------------------------------------------------------------------------ */

/* The arms that have rows for the reader, for all that is known; one at least. */
static Bitmapset *
arms_of_reader(const GpuvmRel *unions, const Reader *reader)
{
	Bitmapset  *arms = nullptr;

	for (int i = 0; i < list_length(unions->inputs); i++)
	{
		if (!rel_arm_is_empty(unions, i, reader->quals))
			arms = bms_add_member(arms, i);
	}
	return arms != nullptr ? arms : bms_make_singleton(0);
}

/* A Shared of each arm that is read. */
static GpuvmRel **
share_arms(GpuvmRel *statement, const GpuvmRel *shared, const Bitmapset *read)
{
	const GpuvmRel *unions = rel_input(shared);
	GpuvmRel  **arms = static_cast<GpuvmRel **>(palloc0(sizeof(GpuvmRel *) * list_length(unions->inputs)));
	int			at = 0;

	while (list_nth(statement->definitions, at) != shared)
		at++;
	for (int i = list_length(unions->inputs) - 1; i >= 0; i--)
	{
		if (!bms_is_member(i, read))
			continue;
		arms[i] = rel_share(rel_input(unions, i), statement->definitions);
		statement->definitions = list_insert_nth(statement->definitions, at, arms[i]);
	}
	statement->definitions = list_delete_ptr(statement->definitions, const_cast<GpuvmRel *>(shared));
	return arms;
}

/* The rows of one arm: columns of the Set, of the Union's that they were. */
static GpuvmRel *
read_arm(const GpuvmRel *set, const GpuvmRel *unions, const GpuvmRel *shared, int arm)
{
	GpuvmRel   *read = static_cast<GpuvmRel *>(copyObjectImpl(set));
	ListCell   *lc;

	read->id = shared->id;
	foreach(lc, read->columns)
	{
		Var		   *var = (Var *) lfirst_node(TargetEntry, lc)->expr;

		var->varattno = rel_arm_column(unions, arm, rel_find(unions, var->varattno));
	}
	return read;
}

/* The rows of several arms, under the Set's numbers. */
static GpuvmRel *
read_arms(GpuvmRel *statement, const GpuvmRel *set, const GpuvmRel *unions, GpuvmRel **shared, const Bitmapset *arms)
{
	GpuvmRel   *read = rel_make(REL_UNION);
	int			arm = -1;
	ListCell   *lc;

	foreach(lc, set->columns)
	{
		TargetEntry *column = static_cast<TargetEntry *>(copyObjectImpl(lfirst(lc)));
		Var		   *var = (Var *) column->expr;

		var->varno = IR_OWN;
		var->varattno = foreach_current_index(lc) + 1;
		read->columns = lappend(read->columns, column);
	}
	while ((arm = bms_next_member(arms, arm)) >= 0)
	{
		GpuvmRel   *input = read_arm(set, unions, shared[arm], arm);
		List	   *numbers = NIL;

		foreach(lc, input->columns)
		{
			lfirst_node(TargetEntry, lc)->resno = rel_next_number(statement);
			numbers = lappend_int(numbers, lfirst_node(TargetEntry, lc)->resno);
		}
		read->inputs = lappend(read->inputs, input);
		read->arms = lappend(read->arms, numbers);
	}
	return read;
}

/* Takes out conditions that all rows of the arm pass. */
static void
drop_passed(const Reader *reader, const GpuvmRel *unions, int arm)
{
	for (GpuvmRel *filter = *reader->top; filter != *reader->cell; filter = rel_input(filter))
	{
		List	   *left = NIL;
		ListCell   *lc;

		foreach(lc, filter->quals)
		{
			Node	   *qual = static_cast<Node *>(lfirst(lc));

			if (!bms_is_subset(rel_columns_in(qual), rel_numbers(*reader->cell)) ||
				rel_arm_verdict(unions, arm, rel_substitute(qual, (*reader->cell)->columns)) != VERDICT_ALL)
				left = lappend(left, qual);
		}
		filter->quals = left;
	}
}

/* A Shared of a UNION ALL of which nobody reads all arms: one of each. */
static void
split_union(GpuvmRel *statement, const GpuvmRel *shared)
{
	const GpuvmRel *unions = rel_input(shared);
	const List *readers = unions->op == REL_UNION ? readers_of(statement, shared->id) : NIL;
	List	   *wanted = NIL;
	Bitmapset  *read = nullptr;
	GpuvmRel  **arms;
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, readers)
	{
		Bitmapset  *of_reader = arms_of_reader(unions, static_cast<const Reader *>(lfirst(lc)));

		if (bms_num_members(of_reader) == list_length(unions->inputs))
			return;
		wanted = lappend(wanted, of_reader);
		read = bms_add_members(read, of_reader);
	}
	if (readers == NIL)
		return;
	arms = share_arms(statement, shared, read);
	forboth(lc, readers, lc2, wanted)
	{
		const Reader *reader = static_cast<const Reader *>(lfirst(lc));
		const Bitmapset *of_reader = static_cast<const Bitmapset *>(lfirst(lc2));

		if (bms_membership(of_reader) == BMS_MULTIPLE)
		{
			*reader->cell = read_arms(statement, *reader->cell, unions, arms, of_reader);
			push_down(reader->top, statement);
		}
		else
		{
			const int	arm = bms_singleton_member(of_reader);

			drop_passed(reader, unions, arm);
			*reader->cell = read_arm(*reader->cell, unions, arms[arm], arm);
		}
	}
}

/* -- rows ------------------------------------------------------------------------------------ */

/* What one reader at least wants of the Shared's rows, and can be asked below its groups. */
static void
narrow(GpuvmRel *statement, GpuvmRel *shared)
{
	const Bitmapset *early = rel_early_columns(rel_input(shared));
	const List *readers = readers_of(statement, shared->id);
	List	   *alternatives = NIL;
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, readers)
	{
		List	   *wanted = NIL;

		foreach(lc2, static_cast<const Reader *>(lfirst(lc))->quals)
		{
			if (bms_is_subset(rel_columns_in(static_cast<Node *>(lfirst(lc2))), early))
				wanted = lappend(wanted, lfirst(lc2));
		}
		if (wanted == NIL)
			return;
		alternatives = list_append_unique(alternatives, wanted);
	}
	if (list_length(alternatives) == 1)
		push_conditions(rel_input_cell(shared), static_cast<List *>(copyObjectImpl(linitial(alternatives))));
	else if (alternatives != NIL)
	{
		List	   *args = NIL;
		Node	   *any;

		foreach(lc, alternatives)
			args = lappend(args, make_ands_explicit(static_cast<List *>(copyObjectImpl(lfirst(lc)))));
		any = (Node *) makeBoolExpr(OR_EXPR, args, -1);
		if (rel_is_small(any))
			push_conditions(rel_input_cell(shared), list_make1(any));
	}
}

void
narrow_shared(GpuvmRel *statement)
{
	const List *definitions = list_copy(statement->definitions);

	/* readers come behind what they read */
	for (int i = list_length(definitions) - 1; i >= 0; i--)
	{
		GpuvmRel   *definition = static_cast<GpuvmRel *>(list_nth(definitions, i));

		if (definition->op == REL_SHARED)
			split_union(statement, definition);
	}
	for (int i = list_length(statement->definitions) - 1; i >= 0; i--)
	{
		GpuvmRel   *definition = static_cast<GpuvmRel *>(list_nth(statement->definitions, i));

		if (definition->op == REL_SHARED)
			narrow(statement, definition);
	}
}

}  // namespace gpuvm
