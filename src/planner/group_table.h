/* group_table.h: a program's groups as the table of another one (engine/abi.h, Stages): its columns are the raw columns of the plan, by their numbers from 1. */
#ifndef GPUVM_PLANNER_GROUP_TABLE_H
#define GPUVM_PLANNER_GROUP_TABLE_H

#include "compiler/compile.h"
#include "pg/pg.h"
#include "planner/scan_plan.h"
#include "store/registry.h"

namespace gpuvm {

/* The groups as a table. */
struct GroupTable
{
	ScanPlan   *plan;			/* of one part */
	List	   *target;			/* of a subquery: its own expressions, of which plan->exprs are the same over raw columns, */
	List	   *tlist;			/* and its output */
	Index		varno;			/* of Vars that are its columns: of the subquery in the query above it, or 1 */
	ImportedTable table;
	int			columns[PROGRAM_MAX_COLUMNS];	/* the result column of each raw column; -1: no stage can read it */
	bool		missing;		/* group_stage.cc: one of these was asked for */
};

/* Fills table and columns from the plan. */
void		describe_groups(GroupTable *groups);

/* As a cursor of the other program. */
void		group_cursor(const GroupTable *groups, CompileCursor *cursor);

/* A dictionary's entries are a relation's: what is made of them belongs into the program of the groups, `before`. Has the other one none? */
bool		asks_no_dictionary(const CompiledProgram *before, const CompiledProgram *program);

}  // namespace gpuvm

#endif
