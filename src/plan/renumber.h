/* renumber.h: other numbers for columns. */
#ifndef GPUVM_PLAN_RENUMBER_H
#define GPUVM_PLAN_RENUMBER_H

#include "plan/rel.h"

namespace gpuvm {


/* `numbers` has, by a column's number, the one that it gets; 0: it keeps its own. */
inline int
renumbered(const int *numbers, int number)
{
	return numbers[number] != 0 ? numbers[number] : number;
}

/* A copy of the expression, or list. */
Node	   *renumber_expr(const Node *expr, const int *numbers);
/* Everything that refers to the columns, in the tree but not in what is listed. */
void		renumber_rel(GpuvmRel *rel, const int *numbers, const List *except);

}  // namespace gpuvm

#endif
