/* band.h: ranges out of conditions on a difference of two columns. */
#ifndef GPUVM_PLANNER_BAND_H
#define GPUVM_PLANNER_BAND_H

#include "pg/pg.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpuvm {

/*
 * split_range (compiler/compile.h), but conditions such as abs(a.x - b.x) < d count, too, as bounds of the relation's
 * column. *differences: the OpExprs a.x - b.x which must not overflow for any pair of rows, or the range does not
 * say what the conditions say.
 */
void		split_difference_range(PlannerInfo *root, List *conditions, Relids relids, List **range, List **rest, List **differences);

}  // namespace gpuvm

#endif
