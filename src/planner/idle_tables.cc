/*
 * idle_tables.cc: hash tables of a plan that hardly ever runs. PostgreSQL's own plan beside the stages of a statement
 * has the statement's subqueries, which are initialised with it; and HashAggregate makes its tables when it is
 * initialised, for as many groups as are expected: 100 MB of zeroes for each execution. Small ones grow if they are used.
 */
#include "pg/pg.h"

extern "C" {
#include "miscadmin.h"
#include "nodes/plannodes.h"
}

#include "planner/idle_tables.h"
#include "planner/whole.h"

namespace gpuvm {

constexpr long IDLE_GROUPS = 1024;

static void shrink_list(List *plans);

static void
shrink_plan(Plan *plan)
{
	if (plan == nullptr)
		return;
	check_stack_depth();
	switch (nodeTag(plan))
	{
		case T_Agg:
			((Agg *) plan)->numGroups = Min(((Agg *) plan)->numGroups, IDLE_GROUPS);
			shrink_list(((Agg *) plan)->chain);
			break;
		case T_SetOp:
			((SetOp *) plan)->numGroups = Min(((SetOp *) plan)->numGroups, IDLE_GROUPS);
			break;
		case T_Append:
			shrink_list(((Append *) plan)->appendplans);
			break;
		case T_MergeAppend:
			shrink_list(((MergeAppend *) plan)->mergeplans);
			break;
		case T_SubqueryScan:
			shrink_plan(((SubqueryScan *) plan)->subplan);
			break;
		default:
			break;
	}
	shrink_plan(plan->lefttree);
	shrink_plan(plan->righttree);
}

static void
shrink_list(List *plans)
{
	ListCell   *lc;

	foreach(lc, plans)
		shrink_plan(static_cast<Plan *>(lfirst(lc)));
}

void
shrink_idle_tables(PlannedStmt *stmt)
{
	shrink_plan(alternative_of_stages(stmt));
	if (!runs_subplans(stmt))
		shrink_list(stmt->subplans);
}

}  // namespace gpuvm
