/* stage_paths.h: programs whose rows other programs read, as paths (lowering.h). */
#ifndef GPUVM_PLANNER_STAGE_PATHS_H
#define GPUVM_PLANNER_STAGE_PATHS_H

#include "planner/paths.h"
#include "planner/scan_plan.h"

namespace gpuvm {

/* Of the plan, whose programs are there; the expressions are its columns. It has no alternative: whoever reads its rows has. */
Path	   *make_stage_path(PlannerInfo *root, const ScanShape *shape, ScanPlan *plan, List *exprs, double rows);

/* The rows of a plan of PostgreSQL's own, under these names; the expressions say of which types they are. */
Path	   *make_external_path(PlannedStmt *stmt, List *exprs, List *names);

/* The rows of all of them. */
Path	   *append_stages(List *paths, double rows);

/* Gives the columns of a set operation, which are of no relation, one for EXPLAIN to name them by. The scan's output is its tuple as it is. */
void		name_columns(PlannerInfo *root, CustomScan *scan);

/* Is it one of these? */
bool		is_stage_path(const Path *path);

/* A column of a child's rows as one of a table: its place there. */
uint32		describe_child_column(ImportedTable *table, const ChildColumn &column);

/* What running the shape's children costs, and making tablets of their rows. */
double		children_cost(const ScanShape *shape);

/* Their paths, in the order of the cursors. */
List	   *child_paths(const ScanShape *shape);

}  // namespace gpuvm

#endif
