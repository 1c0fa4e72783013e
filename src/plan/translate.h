/* translate.h: from a Query, as it is before planning, to the algebra. */
#ifndef GPUVM_PLAN_TRANSLATE_H
#define GPUVM_PLAN_TRANSLATE_H

#include "plan/refusals.h"
#include "plan/rel.h"

namespace gpuvm {

/* A Statement, or null and the reason. The query is only read, and nothing of it is shared. */
GpuvmRel   *translate_statement(const Query *query, Refusal *refusal);

/* Does a query, or an expression of a level, refer to levels around it? `ctes`: the next one's CTEs are there. */
bool		refers_outside(Node *node, bool ctes);

}  // namespace gpuvm

#endif
