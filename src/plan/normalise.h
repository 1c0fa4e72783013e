/* normalise.h: rules that make the same rows another way. */
#ifndef GPUVM_PLAN_NORMALISE_H
#define GPUVM_PLAN_NORMALISE_H

#include "plan/rel.h"

namespace gpuvm {

/* All of those below, in this order, and the columns pruned. */
void		rel_normalise(GpuvmRel *statement);

/* Conditions of a dependent join's right input become the join's, also through groups, whose keys they become. */
void		unnest(GpuvmRel **cell, GpuvmRel *statement);
/* Outer joins whose rows with nulls a condition above takes out. */
void		reduce_outer_joins(GpuvmRel **cell, GpuvmRel *statement);
/* Each condition to where all of its columns are, with those that follow from equalities. */
void		push_down(GpuvmRel **cell, GpuvmRel *statement);

/* Definitions make only what one of their readers may want; some become several. */
void		narrow_shared(GpuvmRel *statement);

/* Rows of a UNION ALL, or groups, that a join with a small table takes out, taken out in its arms, or before they are grouped. */
void		reduce_by_semijoins(GpuvmRel **cell, GpuvmRel *statement);
/* INTERSECT and EXCEPT as groups of all arms' rows. */
void		group_setops(GpuvmRel **cell, GpuvmRel *statement);
/* Groups of several sets of keys as groups of groups; definitions may be added. Columns must have been pruned. */
void		split_grouping_sets(GpuvmRel *statement);

/* Groups that count different values of a column as groups of groups; NULL: they do not, or cannot be. The columns are the same. */
GpuvmRel   *split_distinct(GpuvmRel *statement, const GpuvmRel *group);

/* A join that raises if a row meets more than one, where a row cannot. */
void		relax_single_joins(GpuvmRel **cell, GpuvmRel *statement);

/* -- what they share ----------------------------------------------------------------- */

inline GpuvmRel **
rel_input_cell(GpuvmRel *rel, int n = 0)
{
	return reinterpret_cast<GpuvmRel **>(&list_nth_cell(rel->inputs, n)->ptr_value);
}

/* The expression with columns replaced by what the entries with their numbers are made of. */
Node	   *rel_substitute(Node *expr, const List *columns);
/* Does it read the value of a definition's row? */
bool		rel_reads_bound(const Node *expr);
/* Is it so little that it may be computed twice? */
bool		rel_is_small(Node *expr);
/* Conditions to where all of their columns are, in this tree. */
void		push_conditions(GpuvmRel **cell, List *conditions);
/* The columns of a tree on which conditions go below its first groups and windows, or as far as its leaves. */
Bitmapset  *rel_early_columns(const GpuvmRel *rel);
enum RelVerdict
{
	VERDICT_UNKNOWN,
	VERDICT_ALL,
	VERDICT_NONE,
};

/* Which rows of a Union's arm pass a condition, as far as it is one on constants there? */
RelVerdict	rel_arm_verdict(const GpuvmRel *rel, int arm, Node *condition);
/* Do none pass all of these? */
bool		rel_arm_is_empty(const GpuvmRel *rel, int arm, const List *conditions);
/* All columns of the rows that come out of a tree, whether they are pruned or not. */
Bitmapset  *rel_visible(const GpuvmRel *rel);
bool		rel_hides_right(const GpuvmRel *join);

}  // namespace gpuvm

#endif
