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

/* Is the tree groups without keys, perhaps a Shared's, below Projects? It has one row then. */
bool		rel_is_one_group(const List *definitions, const GpuvmRel *rel);

/* CASE WHEN condition THEN result; of such arms, ELSE NULL where there is nothing else. */
CaseWhen   *rel_when(Node *condition, Node *result);
Node	   *rel_case(List *arms, Node *otherwise);

/* expr IS [NOT] NULL. */
Node	   *rel_null_test(Node *expr, NullTestType type);

/* True, but an error is flagged where the condition holds. */
Node	   *rel_raise_if(Node *condition);

/* A condition on the row of a Bound that flags an error if it stands for several; NULL: it cannot. */
Node	   *rel_check_of_bound(const GpuvmRel *bound);

}  // namespace gpuvm

#endif
