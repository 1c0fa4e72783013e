/* window_functions.h: PostgreSQL's window functions and frames as gpuvmd's (vm/window.h), for lowering_windows.cc. */
#ifndef GPUVM_PLANNER_WINDOW_FUNCTIONS_H
#define GPUVM_PLANNER_WINDOW_FUNCTIONS_H

#include "planner/lowering.h"
#include "planner/order_keys.h"
#include "planner/plan_windows.h"

namespace gpuvm {

/* A column of the algebra, and those of the stage that it is made of. */
struct WindowResult
{
	int			number;
	int			columns[2];		/* from 1; the second of an average, its count; else 0 */
};

/* A stage of rows that gets window functions. */
struct WindowStage
{
	Lowering   *l;
	List	   *exprs;			/* columns of the program, over the leaves */
	Stage		stage;
	ScanPlan   *plan;
	bool		ordered;		/* the rows come in an order of their own */
	Sorting		sorting;		/* has the reason, too */
	List	   *clauses;		/* WindowClauses that are done */
	List	   *results;		/* of the columns behind the program's: WindowFuncs of their types */
	List	   *made;			/* WindowResults */
};

Node	   *without_relabel(Node *expr);

/* The number, from 0, of the equal one; -1: there is none. */
int			list_position(const List *exprs, const Node *expr);

/* What the function reads of each row: its argument, and FILTER. The WindowFunc is over the leaves. */
List	   *window_columns(const WindowFunc *function);

/* The clause's frame. False, with a reason in `sorting`. */
bool		window_frame(WindowStage *w, const WindowClause *clause, const List *order, PlanWindow *window);

/* Adds what the column of the algebra, a WindowFunc, is computed of. False, with a reason in `sorting`. */
bool		window_function(WindowStage *w, PlanWindow *window, const TargetEntry *column);

/* Its value, over the relation that the stage is. */
Node	   *window_value(const WindowStage *w, const TargetEntry *column, int relid);

}  // namespace gpuvm

#endif
