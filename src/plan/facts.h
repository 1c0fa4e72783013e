/* facts.h: what is known of the rows of a node. */
#ifndef GPUVM_PLAN_FACTS_H
#define GPUVM_PLAN_FACTS_H

#include "plan/rel.h"

namespace gpuvm {

/* Derived from below, once; a pass that changes a tree forgets them. */
struct RelFacts
{
	Bitmapset  *outer;			/* columns that are read in it, but not there */
	Bitmapset  *not_null;
	/* Bitmapsets: columns in which no two rows are the same; an empty one (null) where there is at most one row */
	List	   *unique;
	List	   *order;			/* SortGroupClauses */
	bool		hides_rows;		/* a policy or security barrier does */
};

const RelFacts *rel_facts(const GpuvmRel *rel);
void		rel_forget_facts(GpuvmRel *rel);

/* Does the right input of a join refer to the left one? */
bool		rel_is_dependent(const GpuvmRel *join);
/* Does a row of a join's left input meet one of the right input at most? */
bool		rel_meets_at_most_one(const GpuvmRel *join);
/* The columns of which a null makes the condition false or null. */
Bitmapset  *rel_rejected_nulls(Node *condition);

}  // namespace gpuvm

#endif
