/* order_keys.h: what order.cc and order_keys.cc share. */
#ifndef GPUVM_PLANNER_ORDER_KEYS_H
#define GPUVM_PLANNER_ORDER_KEYS_H

#include "planner/paths.h"

namespace gpuvm {

/* A sorted path in the making. */
struct Sorting
{
	PlannerInfo *root;
	RelOptInfo *rel;			/* whose path it is */
	const CustomPath *from;		/* the same path, not sorted */
	ScanPlan   *plan;
	List	   *pathkeys;
	List	   *hidden;			/* what rows are sorted by and is no column of them, */
	List	   *collations;		/* under these */
	const char *reason;
};

/* Notes the reason, and returns false. */
bool		refuse_order(Sorting *s, const char *reason);

/* Keys that are no columns of the rows: the path anew, with these as columns that are not shown. False, and a reason noted, if that is not possible. */
bool		add_hidden(Sorting *s);

/* Fills the plan's order, and adds the maps that it needs. False with a reason. */
bool		add_keys(Sorting *s);

/* One more key: a result column of this type, by its default order. `target`: as PlanOrderKey has it. False with a reason. */
bool		add_column_key(Sorting *s, int column, Oid type, Oid collation, int flags, int target);

/* The map of ranks for a result column of codes; -1 with a reason. */
int			ranks_of_column(Sorting *s, int column, Oid collation);

}  // namespace gpuvm

#endif
