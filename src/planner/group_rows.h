/* group_rows.h: our path of groups beside those of PostgreSQL's that look at each row. */
#ifndef GPUVM_PLANNER_GROUP_ROWS_H
#define GPUVM_PLANNER_GROUP_ROWS_H

#include "pg/pg.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpuvm {

/* A function that looks for a regular expression, and gives more than whether it is there? */
bool		is_regexp(Oid function);

/* What evaluating the expression takes that PostgreSQL does not charge for. */
Cost		uncharged_of_functions(Node *expr);
/* The same of sorts for aggregates with DISTINCT among these expressions. */
Cost		uncharged_of_distinct(const List *exprs, double rows, double groups);

/*
 * Before our path of groups by, and of, these expressions is offered: leaves out what costs no less in truth, though less as PostgreSQL charges it, and
 * has ours cost no more than what is left if that is so in truth. `input`: what the groups are of.
 */
void		settle_groups(RelOptInfo *grouped_rel, const RelOptInfo *input, List *exprs, Path *ours);

}  // namespace gpuvm

#endif
