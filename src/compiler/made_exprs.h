/*
 * made_exprs.h: expressions that planners make for programs alone, in PostgreSQL's nodes, by which its walkers and mutators take
 * them. They do not come out of any query.
 */
#ifndef GPUVM_COMPILER_MADE_EXPRS_H
#define GPUVM_COMPILER_MADE_EXPRS_H

#include "pg/pg.h"

extern "C" {
#include "nodes/primnodes.h"
}

namespace gpuvm {

/*
 * numeric as float8 with a few units in the last place of error, and with none of its own: no value is flagged, and NaN stands
 * for infinities, too. PostgreSQL, where it evaluates it, rounds exactly. For bounds on values, never for results.
 */
Expr	   *approximation(Expr *number);
bool		is_approximation(const Expr *expr);

/* The high or the low half (tablet/wide_halves.h) of a numeric, a bigint: both together have its order. PostgreSQL cannot evaluate it. */
Expr	   *half_of(Expr *number, bool high);
/* 0: it is none; else 1 of the high one, -1. */
int			which_half(const Expr *expr);

/* Of a call that is made of values for which it cannot raise an error. */
constexpr int LOCATION_QUIET = -2;

/* The expression, which stands several times in another one under this number, from 1, of its own: it is computed once. */
Expr	   *shared_expr(Expr *expr, int number);
/* 0: it is none. */
int			shared_number(const Expr *expr);
/* The same where it stands first; where it stands again, nothing but its number, so that it is no larger than what it is made of. */
Node	   *shared_once(Node *expr);
/* Does it stand there again? */
bool		is_shared_again(const Expr *expr);

/* A condition that leaves out rows for which another one is known to be false, of what is computed in floats (planner/float_filter.h). */
Expr	   *float_condition(Expr *known);
bool		is_float_condition(const Node *condition);

}  // namespace gpuvm

#endif
