/* loops.h: what PostgreSQL's paths would cost if more rows came than it expects. */
#ifndef GPUVM_PLANNER_LOOPS_H
#define GPUVM_PLANNER_LOOPS_H

#include "pg/pg.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpuvm {

struct Expected
{
	Cost		cost;			/* with what PostgreSQL does not charge for, and its statement's CTEs */
	Cost		most;			/* if so many rows come as may */
};

Expected	expected_of(PlannerInfo *root, const Path *path);

}  // namespace gpuvm

#endif
