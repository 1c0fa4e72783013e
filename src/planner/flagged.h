/* flagged.h: plans whose programs flag what is no error in PostgreSQL. */
#ifndef GPUVM_PLANNER_FLAGGED_H
#define GPUVM_PLANNER_FLAGGED_H

#include "planner/scan_plan.h"

namespace gpuvm {

/* An execution gave way to PostgreSQL's plan because of a flag. */
void		plan_flagged(const ScanPlan *plan);

/* Has one of such a plan, in this session, so that the next one is expected to? */
bool		plan_will_flag(const ScanPlan *plan);

}  // namespace gpuvm

#endif
