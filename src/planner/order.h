/* order.h: paths of ours whose rows come out in the order that the query asks for. */
#ifndef GPUVM_PLANNER_ORDER_H
#define GPUVM_PLANNER_ORDER_H

#include "pg/pg.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpuvm {

/* Beside our path for the relation's (or the last join's) rows, the same one sorted by what the query level wants first: true if there is one now. */
bool		add_sorted_rows(PlannerInfo *root, RelOptInfo *rel);

/* What both look for, if it is of this relation: noted when it is offered. With NULL all is forgotten, as the planner's memory is. */
void		remember_path(const RelOptInfo *rel, const CustomPath *path);

/* The same for our path of groups, or of DISTINCT rows; `rel` is what they are of. */
void		add_sorted_groups(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *grouped_rel, bool distinct);

/*
 * Are the first rows in order all that may come out? PostgreSQL computes the output of all rows before it sorts them,
 * and meets its errors.
 */
bool		gives_first_rows(const PlannerInfo *root);

/*
 * The path of a whole statement (whole.h) in the statement's order; `input` has what PostgreSQL would sort. NULL, and a
 * reason, if its last stage cannot sort.
 */
CustomPath *sorted_statement(PlannerInfo *root, RelOptInfo *input, const CustomPath *from, const char **reason);

}  // namespace gpuvm

#endif
