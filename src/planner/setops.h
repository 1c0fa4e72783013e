/* setops.h: UNION, INTERSECT and EXCEPT over rows of ours. */
#ifndef GPUVM_PLANNER_SETOPS_H
#define GPUVM_PLANNER_SETOPS_H

#include "pg/pg.h"

extern "C" {
#include "nodes/parsenodes.h"
#include "nodes/pathnodes.h"
}

namespace gpuvm {

/* Before the query is planned: arms whose duplicates do not matter get a DISTINCT, at all query levels. */
void		make_arms_distinct(Query *parse);

/* When such an arm has its paths of different rows: where none is worth it, those of all rows take their place. */
void		choose_arm_paths(PlannerInfo *root, RelOptInfo *all_rel, RelOptInfo *distinct_rel);

/* Can the arm be a DISTINCT: rows of imported tables, with the columns that the set operation compares? */
bool		can_be_distinct_arm(Query *arm, const SetOperationStmt *set);

}  // namespace gpuvm

#endif
