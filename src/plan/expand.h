/* expand.h: algebra in which what no program does is joins and groups, to be run in stages. */
#ifndef GPUVM_PLAN_EXPAND_H
#define GPUVM_PLAN_EXPAND_H

#include "plan/rel.h"

namespace gpuvm {

/*
 * Changes a normalised statement. A Bound of rows whose number is not known has that as a second column
 * afterwards. What cannot be expanded stays as it is.
 */
void		rel_expand(GpuvmRel *statement);

/* The groups without keys below Projects that the tree is; NULL: it is anything else. */
const GpuvmRel *rel_one_group(const GpuvmRel *rel);

/* A condition on the row of a Bound that flags an error if it stands for several; NULL: it cannot. */
Node	   *rel_check_of_bound(const GpuvmRel *bound);

}  // namespace gpuvm

#endif
