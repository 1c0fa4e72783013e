/*
 * plan_windows.h: the window functions that gpuvmd computes over the rows of a stage (vm/window.h), as a plan has them.
 *
 * The stage's rows become a result set, sorted by ScanPlan.order, to which each of ScanPlan.windows appends the columns
 * of its functions. Its keys are the first of the order: those of the partition, then those of the order. Columns are
 * result columns of the stage's program, all of which the set has, in their order.
 */
#ifndef GPUVM_PLANNER_PLAN_WINDOWS_H
#define GPUVM_PLANNER_PLAN_WINDOWS_H

#include "pg/pg.h"
#include "vm/window.h"

extern "C" {
#include "nodes/pg_list.h"
}

namespace gpuvm {

struct ScanPlan;

struct PlanWindow
{
	int			npartition;
	int			norder;
	FrameMode	mode;
	FrameBound	start;
	FrameBound	end;
	RangeUnit	unit;
	bool		zone;			/* timestamps are with a time zone */
	int			scale;			/* of a RANGE over numerics; -1: it is over none */
	int			start_value;	/* the bounds' offsets: numbers of ScanPlan.window_values, or -1 */
	int			end_value;
	List	   *functions;		/* PlanWindowFunction, each an int list */
};

struct PlanWindowFunction
{
	WindowFn	fn;
	Type		type;			/* of the result */
	int			column;			/* the argument; -1: none */
	int			filter;			/* FILTER; -1: none */
	int			map;			/* min, max: the ranks of codes; -1: values are compared as they are */
	int			number;			/* numbers of ScanPlan.window_values: how many rows, buckets; -1: one */
	int			instead;		/* lag, lead: where there is no row; -1: null */
	int			scale;			/* of that, if it is a numeric; else -1 */
	Oid			function;		/* PostgreSQL's */
};

/* As elements of ScanPlan.windows, and of PlanWindow.functions. */
List	   *plan_window_to_list(const PlanWindow &window);
PlanWindow	plan_window(List *list);
List	   *plan_window_function_to_list(const PlanWindowFunction &function);
PlanWindowFunction plan_window_function(const List *list);

/* How many columns the functions append; and the program's that are handed on. */
int			plan_window_columns(const ScanPlan *plan);
int			plan_program_columns(const ScanPlan *plan);

/* For EXPLAIN: a text for each function, with the names of the stage's columns. */
List	   *plan_window_texts(const ScanPlan *plan);

}  // namespace gpuvm

#endif
