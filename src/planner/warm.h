/* warm.h: what PostgreSQL's plans cost where the pages that they read are in memory. */
#ifndef GPUVM_PLANNER_WARM_H
#define GPUVM_PLANNER_WARM_H

#include "pg/pg.h"

extern "C" {
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
}

namespace gpuvm {

/* Of a path without ours below. */
Cost		warm_cost(const Path *path);

/* What the path or plan of a program, by its list, is charged too much for blocks that it reads from the heap. */
Cost		saved_by_delta(const List *plan);

/* What it costs beyond that for rows of joins that PostgreSQL does not expect (rows_missed). */
Cost		missed_cost(const Path *path);

/* The part of what the plan costs that is left of it then. */
double		warm_share(const PlannedStmt *stmt);

}  // namespace gpuvm

#endif
