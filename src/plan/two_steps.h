/* two_steps.h: aggregates of rows made of those of finer groups of the same rows. */
#ifndef GPUVM_PLAN_TWO_STEPS_H
#define GPUVM_PLAN_TWO_STEPS_H

#include "pg/pg.h"

extern "C" {
#include "nodes/primnodes.h"
}

namespace gpuvm {

/* Are values of the expression that are equal the same, whichever of them comes out? */
bool		is_exact(Node *value);

/* What makes the aggregate of those of finer groups; InvalidOid: nothing does, exactly. */
Oid			combining_aggregate(const Aggref *agg);
/* That aggregate, over what the finer groups have. */
Expr	   *combined_aggregate(const Aggref *agg, Expr *finer);

/* Where the aggregates of each step are put, and what stands for them in expressions. */
struct TwoSteps
{
	virtual Expr *finer(Aggref *agg) = 0;
	virtual Expr *coarser(Aggref *agg) = 0;
};

/* Is it made in two steps? Averages and counts are, too, of sums and counts. */
bool		has_two_steps(const Aggref *agg);
/* The aggregate as an expression over the coarser groups'. */
Expr	   *in_two_steps(TwoSteps *steps, const Aggref *agg);

}  // namespace gpuvm

#endif
