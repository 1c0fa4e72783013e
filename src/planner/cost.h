/* cost.h: what a program costs, in the planner's units. */
#ifndef GPUVM_PLANNER_COST_H
#define GPUVM_PLANNER_COST_H

#include "pg/pg.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpuvm {

struct Program;

/* A microsecond in the planner's units. */
double		cost_of_us(void);

/* Sets path->startup_cost, total_cost for a program over `rows_in` that hands out `rows_out`. */
void		cost_program(Path *path, const Program *program, double rows_in, double rows_out);

}  // namespace gpuvm

#endif
