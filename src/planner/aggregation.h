/* aggregation.h: what programs that aggregate are made of, for paths and for stages (groups.cc). */
#ifndef GPUVM_PLANNER_AGGREGATION_H
#define GPUVM_PLANNER_AGGREGATION_H

#include "compiler/compile.h"
#include "pg/pg.h"
#include "planner/scan_plan.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpuvm {

struct ScanShape;

/* Of what raw columns are. */
struct RawContext
{
	List	   *keys;
	List	   *aggs;			/* and columns that depend on the keys, so that any row of a group has them */
	List	   *groupings;
	bool		failed;			/* a column is left that is none of these */
};

/* Aggregates of the DISTINCT values of one argument. */
struct DistinctValues
{
	Expr	   *arg;
	Expr	   *filter;
	List	   *aggs;			/* their numbers in RawContext.aggs */
};

/* A path in the making. */
struct Aggregation
{
	PlannerInfo *root;
	RelOptInfo *rel;
	const ScanShape *shape;
	RawContext	raw;
	List	   *plain;			/* the numbers of aggregates whose values need not be different */
	DistinctValues *distinct;
	int			ndistinct;
	ScanPlan	plan;
	CompileInput input;
	const char *reason;
	const char *hint;
};

/* Everything but the path itself: the target's expressions over groups by the clauses, whose expressions `tlist` has. False with a reason. */
bool		plan_groups(Aggregation *a, PathTarget *target, List *tlist, List *clause, List *having);

/*
 * group_filter.cc: gives the plan, of which all but its maps' last form is there, a program for what it can ask of HAVING. `ngroups`: that
 * HAVING is expected to see.
 */
void		plan_group_filter(const ScanShape *shape, List *having, double ngroups, ScanPlan *plan);

}  // namespace gpuvm

#endif
