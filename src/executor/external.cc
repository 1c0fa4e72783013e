/*
 * external.cc: the rows of a table that is not imported, or of no table, for the stages of a statement
 * (planner/lowering_external.cc).
 *
 * PostgreSQL runs a plan of its own for them, in the snapshot of the statement, whose range table it does not share.
 * Whoever reads the rows takes them as that plan gives them.
 */
#include "pg/pg.h"

extern "C" {
#include "commands/explain.h"
#include "executor/executor.h"
#include "nodes/extensible.h"
#include "parser/parsetree.h"
#include "tcop/dest.h"
#include "utils/lsyscache.h"
}

#include "executor/scan_state.h"
#include "pg/compat.h"
#include "planner/scan_plan.h"

namespace gpuvm {

struct ExternalState
{
	CustomScanState css;		/* must be first */
	QueryDesc  *query;
	bool		explained;		/* only: it does not run */
};

static PlannedStmt *
statement_of(const CustomScanState *node)
{
	return linitial_node(PlannedStmt, ((const CustomScan *) node->ss.ps.plan)->custom_private);
}

static void
begin_external(CustomScanState *node, EState *estate, int eflags)
{
	ExternalState *state = reinterpret_cast<ExternalState *>(node);

	state->explained = (eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0;
	state->query = CreateQueryDesc(statement_of(node), estate->es_sourceText, estate->es_snapshot,
								   estate->es_crosscheck_snapshot, None_Receiver, estate->es_param_list_info,
								   estate->es_queryEnv, 0);
	standard_ExecutorStart(state->query, eflags & EXEC_FLAG_EXPLAIN_ONLY);
}

static TupleTableSlot *
exec_external(CustomScanState *node)
{
	PlanState  *rows = reinterpret_cast<ExternalState *>(node)->query->planstate;
	MemoryContext mine = MemoryContextSwitchTo(rows->state->es_query_cxt);
	TupleTableSlot *slot = ExecProcNode(rows);

	MemoryContextSwitchTo(mine);
	return slot;
}

static void
end_external(CustomScanState *node)
{
	ExternalState *state = reinterpret_cast<ExternalState *>(node);

	if (!state->explained)
		standard_ExecutorFinish(state->query);
	standard_ExecutorEnd(state->query);
	FreeQueryDesc(state->query);
}

static void
rescan_external(CustomScanState *node)
{
	ExecReScan(reinterpret_cast<ExternalState *>(node)->query->planstate);
}

static void
explain_external(CustomScanState *node, List *, ExplainState *es)
{
	const RangeTblEntry *rte = linitial_node(RangeTblEntry, statement_of(node)->rtable);

	ExplainPropertyText("Relation", rte->rtekind == RTE_RELATION ? get_rel_name(rte->relid) : rte->eref->aliasname, es);
}

static const CustomExecMethods exec_methods = {
	"PostgreSQL", begin_external, exec_external, end_external, rescan_external,
	nullptr, nullptr,			/* no mark and restore */
	nullptr, nullptr, nullptr, nullptr,	/* not in parallel workers */
	nullptr,
	explain_external,
};

static Node *
create_external_state(CustomScan *)
{
	ExternalState *state = static_cast<ExternalState *>(palloc0(sizeof(ExternalState)));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	return reinterpret_cast<Node *>(state);
}

static const CustomScanMethods external_methods = {"PostgreSQL", create_external_state};

void
external_install()
{
	gpuvm_external_methods = &external_methods;
	if (GetCustomScanMethods(external_methods.CustomName, true) == nullptr)
		RegisterCustomScanMethods(&external_methods);
}

}  // namespace gpuvm
