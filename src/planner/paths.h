/* paths.h: the kinds of path, made by the hooks in planner.cc. */
#ifndef GPUVM_PLANNER_PATHS_H
#define GPUVM_PLANNER_PATHS_H

#include "pg/pg.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpuvm {

struct ImportedTable;

/* What a program may scan in place of a relation. */
struct ScanTarget
{
	ImportedTable *table;		/* attribute numbers are the relation's */
	List	   *leaves;			/* OIDs of the live leaves, if it is partitioned; else NIL */
	double		pages;			/* now, and the rows in them: what the tablets do not have is read from the heap */
	double		tuples;
};

/*
 * The imported table behind a base relation, or the leaves of a partitioned one
 * as if they were one table; false (and a reason noted) where no program may scan it.
 */
bool		usable_relation(PlannerInfo *root, RelOptInfo *rel, ScanTarget *target);

/* partitions.cc: the leaves, if all are imported with the same columns. */
bool		describe_leaves(PlannerInfo *root, RelOptInfo *rel, ScanTarget *target, const char **reason, const char **hint);

/*
 * partitions.cc: a relation that got a path of ours is no partitioned one until
 * show_partitions, at the end of its query level. A planner within the planner
 * (for a function that is evaluated) begins with nothing hidden.
 */
struct HiddenScheme;
void		hide_partitions(PlannerInfo *root, RelOptInfo *rel);
void		show_partitions(void);
HiddenScheme *begin_hiding(void);
void		end_hiding(HiddenScheme *outer);

/* Adds a path that filters the relation, if all of its quals compile; did it? */
bool		add_rows_path(PlannerInfo *root, RelOptInfo *rel, const ScanTarget *target);

/* Adds a path that filters and aggregates it, if everything compiles. */
void		add_groups_path(PlannerInfo *root, RelOptInfo *rel, const ScanTarget *target,
							RelOptInfo *grouped_rel, GroupPathExtraData *extra);

/* Adds a path for SELECT count(*) FROM (an aggregation by a path of ours): it asks for the number of groups alone. */
void		add_group_count_path(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *grouped_rel, GroupPathExtraData *extra);

}  // namespace gpuvm

#endif
