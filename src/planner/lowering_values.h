/*
 * lowering_values.h: values of stages (lowering_values.cc). A column of a stage is one value of its program's: plain, or a numeric of one scale.
 * What is computed of several, an average of a sum and a count, or is shown with a display scale of its own, the greatest of what was summed,
 * is an expression over such columns wherever it is read: in PostgreSQL's own functions, so that its digits are PostgreSQL's.
 */
#ifndef GPUVM_PLANNER_LOWERING_VALUES_H
#define GPUVM_PLANNER_LOWERING_VALUES_H

#include "compiler/compile.h"
#include "pg/pg.h"

namespace gpuvm {

/* -- groups -- */

struct GroupValues
{
	const List *keys;
	const CompileInput *input;
	List	   *shown;			/* lists of an aggregate and the one that has the display scale of its result, by round() */
};

/* The expression over groups, with aggregates that are one value each, as far as they can be made of such. */
Node	   *split_aggregates(GroupValues *groups, Node *expr);

/* What expressions over groups read: keys, aggregates, and columns that depend on the keys. */
List	   *raw_values(const List *exprs, const List *keys);

/* Which of these have the display scales of which (CompileCursor.shown). */
List	   *shown_of_groups(const GroupValues *groups, const List *raw);

/* -- rows -- */

/* The values of a stage of rows: expressions over its columns, which are those of relation 0. */
struct RowValues
{
	List	   *columns;		/* what they are of its input */
	List	   *values;
	List	   *shown;			/* as CompileCursor has it */
};

/* As a column. */
void		add_whole(RowValues *rows, Node *expr);
/* The columns that it is computed of, in their order; those numerics for which there is a scale get that, and keep what they show. */
void		add_parts(RowValues *rows, const CompileInput *input, Node *expr, const List *scales);
/* The number at this scale, and its display scale. */
void		add_with_scale(RowValues *rows, Node *expr, int scale);
/* A null of this scale. */
void		add_at_scale(RowValues *rows, Node *expr, int scale);
/* As suits it; `apart`: what it is computed of may be handed on in its place. */
void		add_value(RowValues *rows, const CompileInput *input, Node *expr, bool apart);

/* The number that compares as this one does, as a program computes it: what it is shown with is left out. */
Node	   *without_display_scale(const CompileInput *input, Node *number);

/* Is it a value of one column? */
bool		has_one_scale(const CompileInput *input, Node *expr);

/* The values with the columns of this relation. */
List	   *values_of_relation(List *values, int relid);
/* The values with one relation's columns in the place of another's. */
List	   *move_values(List *values, int from, int to);

/* As grouping sets have in place of keys that are not theirs. */
bool		is_null(const Node *expr);

/* Is it null where an outer join has no row, though it is computed above that join? */
bool		null_without_row(Node *expr);

}  // namespace gpuvm

#endif
