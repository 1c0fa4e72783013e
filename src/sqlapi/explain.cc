/*
 * explain.cc: gpuvm.disassemble() and gpuvm.why_not().
 *
 * Both plan the given statement as it stands, without running it: disassemble
 * with gpuvm.force, to show the program that a cost rule might pass over,
 * why_not without, to tell of the cost rule too.
 */
#include "pg/pg.h"

extern "C" {
#include "funcapi.h"
#include "nodes/plannodes.h"
#include "parser/analyze.h"
#include "parser/parsetree.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
}

#include "pg/compat.h"
#include "pg/settings.h"
#include "pg/shmem.h"
#include "planner/reasons.h"
#include "planner/scan_plan.h"
#include "planner/whole.h"
#include "store/registry.h"

namespace gpuvm {

/* Plans a single optimizable statement. */
static PlannedStmt *
plan_statement(const char *text)
{
	List	   *parsed = pg_parse_query(text);
	List	   *queries;
	PlannedStmt *stmt;
	bool		pushed = false;

	if (list_length(parsed) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("expected a single statement, found %d", list_length(parsed))));
	if (!ActiveSnapshotSet())
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		pushed = true;
	}
	queries = pg_analyze_and_rewrite_fixedparams(linitial_node(RawStmt, parsed), text, nullptr, 0, nullptr);
	if (list_length(queries) != 1 || linitial_node(Query, queries)->commandType == CMD_UTILITY)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("only SELECT, INSERT, UPDATE, DELETE and MERGE have a plan"),
				 errhint("Give the statement itself, without EXPLAIN or CREATE TABLE AS.")));
	stmt = pg_plan_query(linitial_node(Query, queries), text, CURSOR_OPT_PARALLEL_OK, nullptr);
	/* who may not read what the statement reads is not to see what its plan tells of it */
	compat_check_permissions(stmt);
	if (pushed)
		PopActiveSnapshot();
	return stmt;
}

/* Calls fn for every node of the statement's plans, ours without their alternatives. */
typedef void (*PlanVisitor) (Plan *plan, PlannedStmt *stmt, void *context);

static void
visit(Plan *plan, PlannedStmt *stmt, PlanVisitor fn, void *context)
{
	List	   *children = NIL;
	ListCell   *lc;

	if (plan == nullptr)
		return;
	check_stack_depth();
	fn(plan, stmt, context);
	/* not the alternative */
	if (is_gpuvm_scan(plan))
		children = list_copy_tail(((CustomScan *) plan)->custom_plans, 1);
	else if (IsA(plan, Append))
		children = ((Append *) plan)->appendplans;
	else if (IsA(plan, MergeAppend))
		children = ((MergeAppend *) plan)->mergeplans;
	else if (IsA(plan, CustomScan))
		children = ((CustomScan *) plan)->custom_plans;
	else if (IsA(plan, SubqueryScan))
		children = list_make1(((SubqueryScan *) plan)->subplan);
	foreach(lc, children)
		visit(static_cast<Plan *>(lfirst(lc)), stmt, fn, context);
	visit(plan->lefttree, stmt, fn, context);
	visit(plan->righttree, stmt, fn, context);
}

static void
visit_statement(PlannedStmt *stmt, PlanVisitor fn, void *context)
{
	ListCell   *lc;

	visit(stmt->planTree, stmt, fn, context);
	foreach(lc, runs_subplans(stmt) ? stmt->subplans : NIL)
		visit(static_cast<Plan *>(lfirst(lc)), stmt, fn, context);
}

/* -- disassemble ------------------------------------------------------------------ */

static void
put_program(const Program *program, ReturnSetInfo *rsinfo)
{
	for (int i = 0; i < program->nops; i++)
	{
		Datum		values[7];
		bool		nulls[7] = {};
		DisassembledOp op;

		disassemble_op(program, i, &op);
		values[0] = Int32GetDatum(op.address);
		values[1] = CStringGetTextDatum(op.opcode);
		values[2] = Int64GetDatum(op.p1);
		values[3] = Int64GetDatum(op.p2);
		values[4] = Int64GetDatum(op.p3);
		values[5] = CStringGetTextDatum(op.p4);
		values[6] = CStringGetTextDatum(op.comment);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
}

/* All programs of a node, each from address 0 on. */
static void
put_programs(Plan *plan, PlannedStmt *stmt, void *context)
{
	ReturnSetInfo *rsinfo = static_cast<ReturnSetInfo *>(context);
	ScanPlan   *sp;

	if (!is_gpuvm_scan(plan))
		return;
	sp = scan_plan_from_list(((CustomScan *) plan)->custom_private);
	for (int i = 0; i < program_count(sp); i++)
	{
		put_program(sp->parts[i].program, rsinfo);
		if (second_program(&sp->parts[i]) != nullptr)
			put_program(second_program(&sp->parts[i]), rsinfo);
	}
}

/* -- why_not ------------------------------------------------------------------------- */

static void
put_reason(ReturnSetInfo *rsinfo, const char *node, const char *reason, const char *hint)
{
	Datum		values[3];
	bool		nulls[3] = {};

	values[0] = CStringGetTextDatum(node);
	values[1] = CStringGetTextDatum(reason);
	nulls[2] = hint == nullptr || hint[0] == '\0';
	values[2] = nulls[2] ? (Datum) 0 : CStringGetTextDatum(hint);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* Plan nodes that PostgreSQL runs above scans that gpuvm could have fed, and scans passed over for their cost. */
static void
put_node_reason(Plan *plan, PlannedStmt *stmt, void *context)
{
	ReturnSetInfo *rsinfo = static_cast<ReturnSetInfo *>(context);

	switch (nodeTag(plan))
	{
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
			for (int i = 0; i < reasons_count(); i++)
			{
				if (strncmp(reasons_get(i)->node, "Join", 4) == 0)
					return;
			}
			if (!setting_enabled)
				put_reason(rsinfo, "Join", "gpuvm.enabled is off", "SET gpuvm.enabled = on;");
			else
				put_reason(rsinfo, "Join", "PostgreSQL's own plan is estimated to be faster", "SET gpuvm.force = on;");
			break;
		case T_Sort:
		case T_IncrementalSort:
			put_reason(rsinfo, "Sort", "sorting is run by PostgreSQL", nullptr);
			break;
		case T_WindowAgg:
			put_reason(rsinfo, "WindowAgg", "window functions are run by PostgreSQL", nullptr);
			break;
		case T_SeqScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
			{
				RangeTblEntry *rte = rt_fetch(((Scan *) plan)->scanrelid, stmt->rtable);

				if (rte->rtekind != RTE_RELATION || !registry_known(rte->relid))
					break;
				for (int i = 0; i < reasons_count(); i++)
				{
					if (reasons_get(i)->relid == rte->relid && strncmp(reasons_get(i)->node, "Scan", 4) == 0)
						return;
				}
				if (!setting_enabled)
					put_reason(rsinfo, psprintf("Scan on %s", rte->eref->aliasname), "gpuvm.enabled is off", "SET gpuvm.enabled = on;");
				else
					put_reason(rsinfo, psprintf("Scan on %s", rte->eref->aliasname), "PostgreSQL's own plan is estimated to be faster",
							   "SET gpuvm.force = on;");
				break;
			}
		default:
			break;
	}
}

}  // namespace gpuvm

using namespace gpuvm;

extern "C" {

PG_FUNCTION_INFO_V1(gpuvm_disassemble);
PG_FUNCTION_INFO_V1(gpuvm_why_not);

PGDLLEXPORT Datum
gpuvm_disassemble(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	char	   *query = text_to_cstring(PG_GETARG_TEXT_PP(0));
	int			level;
	PlannedStmt *stmt;

	require_preload();
	InitMaterializedSRF(fcinfo, 0);
	level = NewGUCNestLevel();
	(void) set_config_option("gpuvm.force", "on", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	stmt = plan_statement(query);
	AtEOXact_GUC(true, level);
	visit_statement(stmt, put_programs, rsinfo);
	return (Datum) 0;
}

PGDLLEXPORT Datum
gpuvm_why_not(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	char	   *query = text_to_cstring(PG_GETARG_TEXT_PP(0));
	PlannedStmt *stmt = nullptr;

	require_preload();
	InitMaterializedSRF(fcinfo, 0);
	reasons_reset();
	reasons_wanted = true;
	PG_TRY();
	{
		stmt = plan_statement(query);
	}
	PG_FINALLY();
	{
		reasons_wanted = false;
	}
	PG_END_TRY();
	for (int i = 0; i < reasons_count(); i++)
		put_reason(rsinfo, reasons_get(i)->node, reasons_get(i)->reason, reasons_get(i)->hint);
	visit_statement(stmt, put_node_reason, rsinfo);
	return (Datum) 0;
}

}
