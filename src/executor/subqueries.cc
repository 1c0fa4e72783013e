/*
 * subqueries.cc: subqueries that depend on no row and may raise an error.
 *
 * A program gets the values of such subqueries before it starts, where PostgreSQL evaluates them when the first row asks for them, if
 * any does. One that may raise is evaluated by an executor of its own, in a subtransaction: if it does raise, both are thrown away and
 * PostgreSQL's own plan runs, which raises the error if it comes to it.
 */
#include "pg/pg.h"

extern "C" {
#include "access/xact.h"
#include "executor/executor.h"
#include "tcop/dest.h"
#include "utils/datum.h"
#include "utils/errcodes.h"
#include "utils/snapmgr.h"
}

#include "executor/scan_state.h"
#include "pg/compat.h"
#include "pg/subtransaction.h"

namespace gpuvm {

/* What the executor hands the subquery's rows to. */
struct Value
{
	DestReceiver receiver;
	MemoryContext context;
	bool		exists;			/* it matters only whether there is a row */
	int			nrows;
	Datum		value;
	bool		isnull;
};

struct Evaluation
{
	EState	   *estate;
	PlannedStmt *stmt;
	Value		value;
};

/* A second row is enough to know that there are too many. */
static bool
receive_row(TupleTableSlot *slot, DestReceiver *self)
{
	Value	   *to = reinterpret_cast<Value *>(self);
	Form_pg_attribute attribute;
	Datum		value;
	MemoryContext before;

	if (to->nrows++ > 0 || to->exists)
		return false;
	attribute = TupleDescAttr(slot->tts_tupleDescriptor, 0);
	value = slot_getattr(slot, 1, &to->isnull);
	if (to->isnull)
		return true;
	before = MemoryContextSwitchTo(to->context);
	to->value = datumCopy(value, attribute->attbyval, attribute->attlen);
	MemoryContextSwitchTo(before);
	return true;
}

static void
start_receiving(DestReceiver *, int, TupleDesc)
{
}

static void
end_receiving(DestReceiver *)
{
}

/* Not through the hooks: what they watch over is the statement. */
static void
evaluate(void *argument)
{
	Evaluation *e = static_cast<Evaluation *>(argument);
	const EState *of = e->estate;
	QueryDesc  *query = CreateQueryDesc(e->stmt, of->es_sourceText, of->es_snapshot, InvalidSnapshot,
										&e->value.receiver, of->es_param_list_info, of->es_queryEnv, 0);
	int			param = -1;

	PushActiveSnapshot(e->estate->es_snapshot);
	standard_ExecutorStart(query, 0);
	while ((param = bms_next_member(e->stmt->planTree->extParam, param)) >= 0)
		query->estate->es_param_exec_vals[param] = e->estate->es_param_exec_vals[param];
	compat_executor_run(query);
	standard_ExecutorFinish(query);
	standard_ExecutorEnd(query);
	FreeQueryDesc(query);
	PopActiveSnapshot();
}

/* The subquery's plan as a statement of its own. */
static PlannedStmt *
subquery_statement(const EState *estate, const SubPlan *subplan)
{
	PlannedStmt *stmt = makeNode(PlannedStmt);

	*stmt = *estate->es_plannedstmt;
	stmt->commandType = CMD_SELECT;
	stmt->hasReturning = false;
	stmt->canSetTag = true;
	stmt->resultRelations = NIL;
	stmt->rowMarks = NIL;
	stmt->planTree = static_cast<Plan *>(list_nth(stmt->subplans, subplan->plan_id - 1));
	return stmt;
}

/* NULL, or why the subquery is not evaluated here. */
static const char *
evaluate_subquery(EState *estate, ParamExecData *param)
{
	const SubPlan *subplan = static_cast<SubPlanState *>(param->execPlan)->subplan;
	const bool	exists = subplan->subLinkType == EXISTS_SUBLINK;
	Evaluation	e = {estate, nullptr, {}};
	ErrorData  *error;
	int			sqlstate;
	int			other = -1;

	if ((subplan->subLinkType != EXPR_SUBLINK && !exists) || list_length(subplan->setParam) != 1 || IsInParallelMode() ||
		estate->es_plannedstmt->hasModifyingCTE)
		return "a subquery may raise an error";
	e.stmt = subquery_statement(estate, subplan);
	/* what it depends on has to be known: columns of a row outside are, other subqueries may not be yet */
	while ((other = bms_next_member(e.stmt->planTree->extParam, other)) >= 0)
	{
		if (estate->es_param_exec_vals[other].execPlan != nullptr)
			return "a subquery that reads another one may raise an error";
	}
	e.value.receiver = {receive_row, start_receiving, end_receiving, end_receiving, DestNone};
	e.value.context = estate->es_query_cxt;
	e.value.exists = exists;
	e.value.isnull = true;
	error = in_subtransaction(evaluate, &e);
	sqlstate = error != nullptr ? error->sqlerrcode : e.value.nrows > 1 ? ERRCODE_CARDINALITY_VIOLATION : 0;
	if (sqlstate != 0)
		return psprintf("a subquery raises SQLSTATE %s", unpack_sql_state(sqlstate));
	param->value = exists ? BoolGetDatum(e.value.nrows > 0) : e.value.value;
	param->isnull = !exists && e.value.isnull;
	param->execPlan = nullptr;
	return nullptr;
}

const char *
subqueries_evaluate(GpuvmScanState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	const char *reason = nullptr;
	ListCell   *lc;

	foreach(lc, state->plan->late_subqueries)
	{
		if (estate->es_param_exec_vals[lfirst_int(lc)].execPlan != nullptr)
			return "a subquery that calls a volatile function waits for a row that asks for it";
	}
	foreach(lc, state->plan->loud_subqueries)
	{
		ParamExecData *param = &estate->es_param_exec_vals[lfirst_int(lc)];

		if (reason == nullptr && param->execPlan != nullptr)
			reason = evaluate_subquery(estate, param);
	}
	return reason;
}

}  // namespace gpuvm
