/*
 * float_bounds.h: numerics in float8, with a bound of the error: what float_filter.cc compares.
 *
 * Bounds are of PostgreSQL's result, which is rounded, too. They follow from what numeric.c does: quotients have 17 digits
 * that are right (select_div_scale), roots 15. Exponents are bounded, so that no float overflows or underflows.
 */
#ifndef GPUVM_PLANNER_FLOAT_BOUNDS_H
#define GPUVM_PLANNER_FLOAT_BOUNDS_H

#include "compiler/emit.h"
#include "planner/lowering.h"

namespace gpuvm {

/* Of one float8 operation. */
constexpr double ROUNDING = 2.3e-16;
/* Bounds are computed in float8, too. */
constexpr double SLACK = 1.01;
/* What is not less is no number, but NaN or infinite. */
constexpr double LARGEST_FLOAT = 1e300;

/* |exact - value| <= relative * |value| + absolute. */
struct Approximate
{
	Expr	   *value;			/* float8; null where the exact one is, or where nothing is known */
	double		relative;
	Expr	   *absolute;		/* float8, of what has a value; NULL: 0 */
	int			most;			/* decimal exponents of values that are not 0 */
	int			least;
};

/* A condition of three values, of which null says nothing if it is not exact. */
struct Known
{
	Expr	   *condition;
	bool		exact;
	bool		drops;			/* may it be false? */
};

struct FilterContext
{
	Lowering   *l;
	const Piece *piece;
	CompileInput input;
	List	   *exprs;			/* what was approximated, */
	List	   *found;			/* and how: Approximates; NULL: it cannot be */
};

/* False: it cannot be, or programs do not know how. */
bool		approximate(FilterContext *f, Expr *expr, Approximate *a);

/* float_filter.cc: what is known of a condition of a CASE. */
bool		know(FilterContext *f, Expr *condition, Known *known);

/* Float8 expressions; NULL as an argument of sums and products is 0. */
Expr	   *float_constant(double v);
Expr	   *float_call(Oid function, Expr *a, Expr *b);
Expr	   *float_magnitude(Expr *a);
Expr	   *float_sum(Expr *a, Expr *b);
Expr	   *float_times(Expr *a, double factor);
Expr	   *float_greater(Expr *a, Expr *b);
Expr	   *null_if_not(Expr *condition, Expr *value);
/* A number for an expression that stands several times (made_exprs.h). */
Expr	   *shared(FilterContext *f, Expr *expr);
Expr	   *error_of(const Approximate &a, double rounding);

}  // namespace gpuvm

#endif
