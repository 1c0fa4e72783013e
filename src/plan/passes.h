/* passes.h: what is done with a whole tree of the algebra. */
#ifndef GPUVM_PLAN_PASSES_H
#define GPUVM_PLAN_PASSES_H

#include "plan/rel.h"

namespace gpuvm {

/*
 * Leaves to each node the columns that something above reads, and fills in those that it hands on. Nodes and
 * definitions that are left with nothing to do go. To be called when a pass has changed what is read where.
 */
void		prune_columns(GpuvmRel *statement);

/* What is wrong with a Statement: null if nothing is. */
const char *rel_check(const GpuvmRel *statement);

/* A Statement as lines of text, one for each node, indented. */
List	   *rel_print(const GpuvmRel *statement);
/* A query that means the same, for tests: an error if there is none. */
const char *rel_sql(const GpuvmRel *statement);

}  // namespace gpuvm

#endif
