/* quiet.h: what never raises an error, whatever rows it meets. */
#ifndef GPUVM_PLANNER_QUIET_H
#define GPUVM_PLANNER_QUIET_H

#include "pg/pg.h"

extern "C" {
#include "nodes/parsenodes.h"
}

namespace gpuvm {

bool		is_quiet(Node *node);

/*
 * Also whether it gives the same rows each time it runs: of a query that the planner has prepared, but for the subqueries
 * that its parameters stand for. `outer`: the level around, of which it may read CTEs, or NULL.
 */
bool		is_quiet_planned_query(Query *query, bool with_target, const Query *outer);

}  // namespace gpuvm

#endif
