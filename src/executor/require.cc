/*
 * require.cc: gpuvm.require, checked when a statement starts (rule 19).
 *
 * Every scan of a table known to gpuvm must be one of ours; that it then really
 * runs there is checked when it starts and whenever it falls back (run.cc). What
 * ModifyTable does with the rows found, in indexes and for foreign keys, is no scan of a plan.
 */
#include "pg/pg.h"

extern "C" {
#include "executor/executor.h"
#include "nodes/plannodes.h"
#include "parser/parsetree.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
}

#include "executor/scan_state.h"
#include "pg/settings.h"
#include "planner/reasons.h"
#include "planner/whole.h"
#include "store/file.h"

namespace gpuvm {

static ExecutorStart_hook_type next_executor_start;

bool
require_holds(void)
{
	return setting_require != REQUIRE_ANY && DatumGetInt32(DirectFunctionCall1(pg_trigger_depth, (Datum) 0)) == 0;
}

static void
complain(Oid relid)
{
	const char *why = nullptr;

	for (int i = 0; i < reasons_count() && why == nullptr; i++)
	{
		if (reasons_get(i)->relid == relid)
			why = psprintf("%s: %s", reasons_get(i)->node, reasons_get(i)->reason);
	}
	require_violation(psprintf("Table \"%s\" would be read by PostgreSQL", get_rel_name(relid)),
					  !setting_enabled ? "gpuvm.enabled is off" : why != nullptr ? why : "another plan is cheaper (see gpuvm.force)");
}

static void
check_plan(Plan *plan, List *rtable)
{
	ListCell   *lc;

	if (plan == nullptr)
		return;
	check_stack_depth();
	if (is_gpuvm_scan(plan))
	{
		/* behind the alternative: plans whose rows it reads */
		for_each_from(lc, ((CustomScan *) plan)->custom_plans, 1)
			check_plan(static_cast<Plan *>(lfirst(lc)), rtable);
		return;
	}
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
			{
				RangeTblEntry *rte = rt_fetch(((Scan *) plan)->scanrelid, rtable);

				if (rte->rtekind == RTE_RELATION && registry_known(rte->relid))
					complain(rte->relid);
				break;
			}
		case T_ForeignScan:
			{
				Index		scanned = ((Scan *) plan)->scanrelid;

				if (scanned > 0 && is_file_relation(rt_fetch(scanned, rtable)->relid))
					complain(rt_fetch(scanned, rtable)->relid);
				break;
			}
		case T_Append:
			foreach(lc, ((Append *) plan)->appendplans)
				check_plan(static_cast<Plan *>(lfirst(lc)), rtable);
			break;
		case T_MergeAppend:
			foreach(lc, ((MergeAppend *) plan)->mergeplans)
				check_plan(static_cast<Plan *>(lfirst(lc)), rtable);
			break;
		case T_SubqueryScan:
			check_plan(((SubqueryScan *) plan)->subplan, rtable);
			break;
		case T_CustomScan:
			foreach(lc, ((CustomScan *) plan)->custom_plans)
				check_plan(static_cast<Plan *>(lfirst(lc)), rtable);
			break;
		default:
			break;
	}
	check_plan(plan->lefttree, rtable);
	check_plan(plan->righttree, rtable);
}

static void
gpuvm_executor_start(QueryDesc *query, int eflags)
{
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0 && !IsParallelWorker() && registry_any() && require_holds())
	{
		PlannedStmt *stmt = query->plannedstmt;
		ListCell   *lc;

		check_plan(stmt->planTree, stmt->rtable);
		foreach(lc, runs_subplans(stmt) ? stmt->subplans : NIL)
			check_plan(static_cast<Plan *>(lfirst(lc)), stmt->rtable);
	}
	if (next_executor_start != nullptr)
		next_executor_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
}

void
require_install(void)
{
	next_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = gpuvm_executor_start;
}

}  // namespace gpuvm
