/* loops.h: what nested loops would cost if more rows came than PostgreSQL expects. */
#ifndef GPUVM_PLANNER_LOOPS_H
#define GPUVM_PLANNER_LOOPS_H

#include "pg/pg.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpuvm {

/* Of the loops in the path, our own programs' aside, which have none. */
Cost		cost_of_loops(const PlannerInfo *root, const Path *path);

}  // namespace gpuvm

#endif
