/* derived.h: what derived.cc and derived_scale.cc share. */
#ifndef GPUVM_PLANNER_DERIVED_H
#define GPUVM_PLANNER_DERIVED_H

#include "pg/pg.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpuvm {

/* What is known of the numerics of a column. */
struct DecimalScale
{
	int			scale;			/* no value has more decimals; -1: nothing is known */
	bool		exact;			/* all are shown with just so many */
	double		most;			/* none is larger; infinite: that is not known */
	bool		wide;			/* they may take more than 64 bits, */
	bool		large = false;	/* and some of the column that they are made of do, being that long */
};

/* Of a column of one of the query's relations. */
DecimalScale decimal_scale(PlannerInfo *root, const Var *var);

/* The number among the statement's subplans, from 1, of the CTE that the relation reads; 0: there is none, or it is recursive. */
int			cte_plan_number(PlannerInfo *root, const RangeTblEntry *rte);

/* Is it, in the end, a column of an imported table that has too many, or too large, values for a dictionary? */
bool		is_stored_by_value(PlannerInfo *root, const Var *var);

}  // namespace gpuvm

#endif
