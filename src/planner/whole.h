/*
 * whole.h: plans for whole statements (gpuvm.whole_query).
 *
 * The algebra of the statement becomes stages, programs each of which reads tables and what other stages gave, and the last of
 * which gives the statement's rows. They are one path beside PostgreSQL's for the whole statement, with the cheapest of these
 * as its alternative: whatever stands in the way of any stage leads there, before the first row.
 */
#ifndef GPUVM_PLANNER_WHOLE_H
#define GPUVM_PLANNER_WHOLE_H

#include "pg/pg.h"

extern "C" {
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
}

namespace gpuvm {

struct GpuvmRel;

/* The statement's algebra; NULL: it has none, or needs none. To be called before the query is planned. */
GpuvmRel   *whole_algebra(const Query *query);

/* Adds the path to the outermost level's final ones. `input`: what LIMIT, if there is one, is above; `sorts`: the last stage may sort. */
void		add_whole_path(PlannerInfo *root, const GpuvmRel *statement, RelOptInfo *input, RelOptInfo *final_rel, const FinalPathExtraData *extra, bool sorts);

/* Is it a plan of stages, below Sort and Limit? */
bool		is_whole_plan(const PlannedStmt *stmt);

}  // namespace gpuvm

#endif
