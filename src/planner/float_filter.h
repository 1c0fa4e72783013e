/*
 * float_filter.h: conditions that no program evaluates, as conditions in floats that most rows pass or fail for sure.
 *
 * A numeric expression is computed in float8 with a bound of its error. A comparison whose sides differ by more than the
 * error is decided; what is left, as nulls and what PostgreSQL would raise an error for, is unknown, and PostgreSQL's.
 */
#ifndef GPUVM_PLANNER_FLOAT_FILTER_H
#define GPUVM_PLANNER_FLOAT_FILTER_H

#include "planner/lowering.h"

namespace gpuvm {

struct FloatFilter
{
	Node	   *known;			/* true or false: so is the condition. Null: unknown */
	bool		drops;			/* may it be false? */
};

/* False: there is none that a program evaluates over the piece's rows. */
bool		float_filter(Lowering *l, const Piece *piece, Node *condition, FloatFilter *filter);

/* The condition for PostgreSQL, which evaluates it of rows that the filter does not know: it is a column of theirs. */
Node	   *where_unknown(Lowering *l, const FloatFilter *filter, Node *condition);

/* Such conditions as they were, and those that are asked of every row. */
List	   *without_filters(const List *conditions);
List	   *unfiltered(const List *conditions);

}  // namespace gpuvm

#endif
