/* whole_plan.cc: what programs do in the plan of a statement. */
#include "pg/pg.h"

extern "C" {
#include "miscadmin.h"
#include "nodes/plannodes.h"
}

#include "planner/lowering.h"
#include "planner/scan_plan.h"
#include "planner/whole.h"

namespace gpuvm {

/* Is a scan of ours in the plan? */
static bool
has_gpuvm_scan(const Plan *plan)
{
	List	   *below = NIL;
	ListCell   *lc;

	if (plan == nullptr)
		return false;
	check_stack_depth();
	if (is_gpuvm_scan(plan))
		return true;
	switch (nodeTag(plan))
	{
		case T_Append: below = ((const Append *) plan)->appendplans; break;
		case T_MergeAppend: below = ((const MergeAppend *) plan)->mergeplans; break;
		case T_CustomScan: below = ((const CustomScan *) plan)->custom_plans; break;
		case T_SubqueryScan: below = list_make1(((const SubqueryScan *) plan)->subplan); break;
		default: break;
	}
	foreach(lc, below)
	{
		if (has_gpuvm_scan(static_cast<const Plan *>(lfirst(lc))))
			return true;
	}
	return has_gpuvm_scan(plan->lefttree) || has_gpuvm_scan(plan->righttree);
}

bool
has_gpuvm_scan(const PlannedStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->subplans)
	{
		if (has_gpuvm_scan(static_cast<const Plan *>(lfirst(lc))))
			return true;
	}
	return has_gpuvm_scan(stmt->planTree);
}

/* What gives the statement's rows, be they inserted. */
static const Plan *
rows_of(const PlannedStmt *stmt)
{
	const Plan *plan = stmt->planTree;

	if (!IsA(plan, ModifyTable))
		return plan;
	return IsA(plan->lefttree, SubqueryScan) ? ((const SubqueryScan *) plan->lefttree)->subplan : plan->lefttree;
}

/* What stands below Sort, Limit and the output. */
static const Plan *
body_of(const PlannedStmt *stmt)
{
	const Plan *plan = rows_of(stmt);

	while (IsA(plan, Limit) || IsA(plan, Sort) || IsA(plan, IncrementalSort) || IsA(plan, Material) ||
		   (IsA(plan, Result) && plan->lefttree != nullptr))
		plan = plan->lefttree;
	return plan;
}

bool
is_whole_plan(const PlannedStmt *stmt)
{
	const Plan *plan = body_of(stmt);

	return is_gpuvm_scan(plan) && scan_plan_from_list(((const CustomScan *) plan)->custom_private)->whole;
}

Plan *
alternative_of_stages(const PlannedStmt *stmt)
{
	return static_cast<Plan *>(linitial(((const CustomScan *) body_of(stmt))->custom_plans));
}

/* Stages have subqueries among them; LIMIT may read one. */
bool
runs_subplans(const PlannedStmt *stmt)
{
	const Plan *plan = rows_of(stmt);

	if (!is_whole_plan(stmt))
		return true;
	return IsA(plan, Limit) && (has_bound_value(((const Limit *) plan)->limitOffset, nullptr) ||
								has_bound_value(((const Limit *) plan)->limitCount, nullptr));
}

/* The same of a plan. */
static bool
plans_tables_alone(const List *plans)
{
	ListCell   *lc;

	for_each_from(lc, plans, 1)
	{
		switch (nodeTag(lfirst(lc)))
		{
			case T_SeqScan:
			case T_IndexScan:
			case T_IndexOnlyScan:
			case T_BitmapHeapScan:
				break;
			default:
				return false;
		}
	}
	return true;
}

bool
is_one_program(const PlannedStmt *stmt)
{
	const Plan *plan = body_of(stmt);

	return is_gpuvm_scan(plan) && plans_tables_alone(((const CustomScan *) plan)->custom_plans);
}

}  // namespace gpuvm
