/* aggregation.h: what paths that aggregate are made of (groups.cc), over relations and over other groups (group_stage.cc). */
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

/* False, with the reason. */
bool		aggregation_refuse(Aggregation *a, const char *reason, const char *hint = nullptr);

/* Are two values of it the same group for the machine when the operator says that they are equal? */
bool		can_be_key(Node *key, Oid eqop, const char **reason);

/* The aggregates in the expressions, into a->raw. */
void		collect_aggregates(Aggregation *a, List *exprs);

/* Sorts them into plain ones and those of each DISTINCT argument. */
bool		sort_aggregates(Aggregation *a);

/* The output and HAVING over raw columns. */
bool		plan_output(Aggregation *a, List *exprs, List *having);

/* Everything but the path itself: the target's expressions over groups by the clauses, whose expressions `tlist` has. False with a reason. */
bool		plan_groups(Aggregation *a, PathTarget *target, List *tlist, List *clause, List *having);

/* The types of the raw columns. */
void		plan_raw_types(Aggregation *a);

/* What the aggregates with these numbers are made of, and how they are ended, behind nkeys result columns. */
bool		plan_finals(Aggregation *a, List *numbers, bool distinct, int nkeys, VmAggregate *aggs, int *naggs, PlanPart *part);

/*
 * group_filter.cc: gives the plan, of which all but its maps' last form is there, a program for what it can ask of HAVING. `ngroups`: that
 * HAVING is expected to see.
 */
void		plan_group_filter(const ScanShape *shape, List *having, double ngroups, ScanPlan *plan);

/* Our path among those of a subquery, if it aggregates by one program. */
CustomPath *groups_path_of(RelOptInfo *rel);

}  // namespace gpuvm

#endif
