/* planner.h: installs the planner hooks (paths for imported tables). */
#ifndef GPUVM_PLANNER_PLANNER_H
#define GPUVM_PLANNER_PLANNER_H

namespace gpuvm {

/* Called once from _PG_init, also without preloading. */
void		planner_install(void);

}  // namespace gpuvm

#endif
