/* paths.h: the kinds of path, made by the hooks in planner.cc. */
#ifndef GPUVM_PLANNER_PATHS_H
#define GPUVM_PLANNER_PATHS_H

#include "pg/pg.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpuvm {

struct ImportedTable;

/* The imported table behind a base relation that a program may scan; false (and a reason noted) otherwise. */
bool		usable_relation(PlannerInfo *root, RelOptInfo *rel, ImportedTable *table);

/* Adds a path that filters the relation, if all of its quals compile. */
void		add_rows_path(PlannerInfo *root, RelOptInfo *rel, const ImportedTable *table);

/* Adds a path that filters and aggregates it, if everything compiles. */
void		add_groups_path(PlannerInfo *root, RelOptInfo *rel, const ImportedTable *table,
							RelOptInfo *grouped_rel, GroupPathExtraData *extra);

/* Adds a path for SELECT count(*) FROM (an aggregation by a path of ours): it asks for the number of groups alone. */
void		add_group_count_path(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *grouped_rel, GroupPathExtraData *extra);

}  // namespace gpuvm

#endif
