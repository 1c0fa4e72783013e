/* finalize.h: from the VM's result values to PostgreSQL's. */
#ifndef GPUVM_EXECUTOR_FINALIZE_H
#define GPUVM_EXECUTOR_FINALIZE_H

#include "compiler/compile.h"
#include "pg/pg.h"

namespace gpuvm {

/* One result column of a result buffer, as a view. */
struct ColumnView
{
	Type		type;
	const uint64 *nulls;
	const char *values;
};

inline bool
view_is_null(const ColumnView &v, uint32 row)
{
	return (v.nulls[row / 64] >> (row % 64)) & 1;
}

/* A non-null numeric of more than 64 bits, of its halves (tablet/wide_halves.h). */
Datum		wide_datum(const ColumnView &low, const ColumnView &high, uint32 row, int scale);

/* The numeric with so many decimals, of which none is lost. */
Datum		shown_datum(Datum numeric, int scale);

/* Do all rows show the aggregate's value alike? Of any but FinalKind::ShownExtreme: yes. */
bool		shows_one_scale(const List *final, const ColumnView *views, uint32 row);

/* A non-null value of a PostgreSQL type whose VM type is the view's. */
Datum		view_datum(const ColumnView &view, uint32 row);

/* A difference of times as interval; `days`: whole ones are days. Lives in the current context. */
Datum		span_datum(int64 micros, bool days);

/*
 * The value of an aggregate from those of its parts. `final`: FinalKind, extra
 * (AggregatePlan), the result column of each part; views and outputs are of all result
 * columns. Numeric results are palloc'd in the current context and formed by
 * PostgreSQL's own numeric functions (rule 17). Direct of codes and maps is the caller's.
 */
Datum		finalize_aggregate(const List *final, const ColumnView *views, const OutputForm *outputs, uint32 row, bool *isnull);

/* -- float_statistics.cc ------------------------------------------------------------------- */

/* What PostgreSQL's final function gives of so many rows; `sums` in the order of plan_aggregate(). */
Datum		float_statistic(Oid final, int64 count, const double *sums, bool *isnull);

}  // namespace gpuvm

#endif
