/*
 * custom_scan.cc: the custom scan's executor methods.
 *
 * The scan tuple is the alternative plan's target list, as a virtual slot;
 * whatever the planner put above it is projected by PostgreSQL. See
 * scan_state.h for how a scan decides who answers.
 */
#include "pg/pg.h"

extern "C" {
#include "access/relscan.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"
}

#include "executor/custom_scan.h"
#include "executor/scan_state.h"
#include "pg/numeric_scaled.h"
#include "pg/settings.h"
#include "planner/paths.h"

namespace gpuvm {

static void begin_scan(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *exec_scan(CustomScanState *node);
static void end_scan(CustomScanState *node);
static void rescan(CustomScanState *node);
static void shutdown_scan(CustomScanState *node);

static const CustomExecMethods exec_methods = {
	"GpuVM", begin_scan, exec_scan, end_scan, rescan,
	nullptr, nullptr,			/* no mark and restore */
	nullptr, nullptr, nullptr, nullptr,	/* not in parallel workers */
	shutdown_scan,
	explain_scan,
};

static Node *
create_scan_state(CustomScan *cscan)
{
	GpuvmScanState *state = static_cast<GpuvmScanState *>(palloc0(sizeof(GpuvmScanState)));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	state->plan = scan_plan_from_list(cscan->custom_private);
	state->buffer = -1;
	state->figures.fallback = -1;
	/* whoever reads a stage's rows has the alternative for both */
	state->feeds = state->plan->stage;
	state->space = &state->own_space;
	return reinterpret_cast<Node *>(state);
}

static const CustomScanMethods scan_methods = {"GpuVM", create_scan_state};

/*
 * A join's columns come as its alternative has them. Where the target list only has some of
 * them in another order, rows are decoded in this one into the result slot, and nothing is
 * projected. (A scan's rows stay in the scan slot: WHERE CURRENT OF looks there.)
 */
static void
find_order(GpuvmScanState *state)
{
	PlanState  *ps = &state->css.ss.ps;
	int		   *order;
	ListCell   *lc;

	if (ps->ps_ProjInfo == nullptr || computes_output(state->plan) || state->plan->kind != SCAN_ROWS || state->plan->ncursors == 1)
		return;
	order = static_cast<int *>(palloc(sizeof(int) * Max(list_length(ps->plan->targetlist), 1)));
	foreach(lc, ps->plan->targetlist)
	{
		const Var  *var = reinterpret_cast<Var *>(lfirst_node(TargetEntry, lc)->expr);

		if (!IsA(var, Var) || var->varno != INDEX_VAR || var->varattno < 1 || var->varattno > state->nvalues)
			return;
		order[foreach_current_index(lc)] = var->varattno - 1;
	}
	state->order = order;
	state->nvalues = list_length(ps->plan->targetlist);
	state->row_slot = ps->ps_ResultTupleSlot;
}

bool
collect_param_execs(Node *node, void *found)
{
	Bitmapset **execs = static_cast<Bitmapset **>(found);

	if (node == nullptr)
		return false;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
		*execs = bms_add_member(*execs, ((Param *) node)->paramid);
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(collect_param_execs), found);
}

void
describe_parts(GpuvmScanState *state)
{
	const ScanPlan *plan = state->plan;

	for (int i = 0; i < program_count(plan); i++)
	{
		ScanPart   *part = &state->parts[i];
		const Program *second = run_second_program(state, &plan->parts[i]);
		const Program *last = second != nullptr ? second : plan->parts[i].program;

		part->plan = &plan->parts[i];
		part->ncols = part->plan->count_groups ? 1 : last->nresults;
		if (part->plan->count_groups)
			part->types[0] = Type::I64;
		else
			program_result_types(last, part->types);
	}
}

static void
begin_scan(CustomScanState *node, EState *estate, int eflags)
{
	GpuvmScanState *state = reinterpret_cast<GpuvmScanState *>(node);
	CustomScan *cscan = castNode(CustomScan, node->ss.ps.plan);

	/*
	 * Always: function privileges are checked here, and any execution may need it
	 * (rule 20). But a hash aggregate makes its table here, as large as the groups
	 * are expected to be many (5 million: 90 ms): so a sketch of it has to do
	 * until it is needed.
	 */
	state->eflags = eflags;
	state->sketched = state->plan->kind != SCAN_ROWS && (eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0 && can_be_sketched(cscan);
	state->alternative = ExecInitNode(static_cast<Plan *>(linitial(cscan->custom_plans)), estate,
									  state->sketched ? eflags | EXEC_FLAG_EXPLAIN_ONLY : eflags);
	derived_begin(state, cscan->custom_plans, eflags);
	if (state->plan->whole)
		shared_begin(state, cscan->custom_plans, eflags);
	node->custom_ps = derived_states(state, state->alternative);

	state->group_context = AllocSetContextCreate(estate->es_query_cxt, "gpuvm scan", ALLOCSET_DEFAULT_SIZES);
	state->parts = state->part = static_cast<ScanPart *>(palloc0(sizeof(ScanPart) * program_count(state->plan)));
	describe_parts(state);
	if (state->plan->kind == SCAN_ROWS)
		state->nvalues = gives_positions(state->plan) && state->plan->hidden == NIL && !state->plan->stage ? list_length(state->plan->attnums) : Min(state->part->ncols, list_length(cscan->custom_scan_tlist));
	state->row_slot = node->ss.ss_ScanTupleSlot;
	if (computes_output(state->plan))
		output_begin(state);
	find_order(state);
	fetch_begin(state);
	state->own_values = state->row_slot->tts_values;
	state->own_nulls = state->row_slot->tts_isnull;
	state->param_states = ExecInitExprList(state->plan->params, &node->ss.ps);
	collect_param_execs(reinterpret_cast<Node *>(state->plan->params), &state->param_execs);
	windows_begin(state);
	maps_begin(state);
	patterns_begin(state);
	if (state->plan->kind != SCAN_ROWS)
		groups_begin(state);
}

/* The row slot may point into a batch (decode.cc): whoever writes to it takes its own arrays back first. */
static void
use_own_arrays(GpuvmScanState *state)
{
	state->row_slot->tts_values = state->own_values;
	state->row_slot->tts_isnull = state->own_nulls;
}

/*
 * Where the alternative's current row is, for WHERE CURRENT OF (rule 20): what
 * a scan projects has no ctid, the slot that it projects from has.
 */
static ItemPointer
alternative_tid(PlanState *alternative, TupleTableSlot *row)
{
	switch (nodeTag(alternative))
	{
		case T_SeqScanState:
		case T_IndexScanState:
		case T_BitmapHeapScanState:
		case T_TidScanState:
		case T_TidRangeScanState:
			return &((ScanState *) alternative)->ss_ScanTupleSlot->tts_tid;
		case T_IndexOnlyScanState:
			return &((IndexOnlyScanState *) alternative)->ioss_ScanDesc->xs_heaptid;
		case T_ResultState:
			/* a condition without columns, above the scan */
			return outerPlanState(alternative) == nullptr ? &row->tts_tid : alternative_tid(outerPlanState(alternative), row);
		default:
			return &row->tts_tid;
	}
}

/* Makes the alternative one that can be executed. */
static void
finish_alternative(GpuvmScanState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	CustomScan *cscan = castNode(CustomScan, state->css.ss.ps.plan);
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	PlanState  *sketch = state->alternative;

	state->alternative = ExecInitNode(static_cast<Plan *>(linitial(cscan->custom_plans)), estate, state->eflags);
	state->css.custom_ps = derived_states(state, state->alternative);
	state->sketched = false;
	ExecEndNode(sketch);
	MemoryContextSwitchTo(old);
}

/*
 * Something of a program that flagged an error was PostgreSQL's to evaluate, and nothing was raised up to where rows were asked
 * for (rule 19): gpuvm.require does not have that.
 */
static void
require_unflagged(const GpuvmScanState *state)
{
	if (state->flagged && require_holds())
		require_fallback_violation(FALLBACK_ERROR_FLAG, state->figures.fallback_detail);
}

/* The alternative's row in our virtual slot, which parents and projections were compiled for. */
static TupleTableSlot *
alternative_row(GpuvmScanState *state)
{
	TupleTableSlot *from;
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;
	int			n;

	if (state->sketched)
		finish_alternative(state);
	from = ExecProcNode(state->alternative);
	use_own_arrays(state);
	ExecClearTuple(slot);
	/* Of what is sorted it is known at the first row; where rows may be asked for again, nobody says that no more are wanted. */
	if (TupIsNull(from) || state->plan->norder > 0 || (state->css.ss.ps.state->es_top_eflags & EXEC_FLAG_BACKWARD) != 0)
		require_unflagged(state);
	if (TupIsNull(from))
		return slot;
	slot_getallattrs(from);
	n = Min(from->tts_tupleDescriptor->natts, slot->tts_tupleDescriptor->natts);
	memcpy(slot->tts_values, from->tts_values, n * sizeof(Datum));
	memcpy(slot->tts_isnull, from->tts_isnull, n * sizeof(bool));
	for (int i = n; i < slot->tts_tupleDescriptor->natts; i++)
		slot->tts_isnull[i] = true;
	slot->tts_tid = *alternative_tid(state->alternative, from);
	slot->tts_tableOid = state->plan->ncursors == 1 ? state->plan->cursors[0].relid : InvalidOid;
	return ExecStoreVirtualTuple(slot);
}

static TupleTableSlot *
vm_row(GpuvmScanState *state)
{
	TupleTableSlot *slot = state->row_slot;

	use_own_arrays(state);
	ExecClearTuple(slot);
	if (!run_next_row(state, slot))
	{
		if (state->mode == MODE_VM)
		{
			run_end(state);
			state->mode = MODE_END;
			require_unflagged(state);
		}
		return slot;
	}
	slot->tts_tableOid = state->row_relid;
	return ExecStoreVirtualTuple(slot);
}

/* What is computed of the next row that the program gives: the statement's, or what another stage reads. */
static TupleTableSlot *
computed_row(GpuvmScanState *state)
{
	for (;;)
	{
		TupleTableSlot *raw = vm_row(state);
		TupleTableSlot *output = nullptr;

		if (TupIsNull(raw))
			break;
		ResetExprContext(state->css.ss.ps.ps_ExprContext);
		/* conditions of the statement's rows have been asked (filter_held_rows) */
		if (!raw_output(state, raw, state->computes ? state->having : nullptr, &output))
			break;
		if (output != nullptr)
			return output;
		CHECK_FOR_INTERRUPTS();
	}
	return ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
}

static TupleTableSlot *
exec_scan(CustomScanState *node)
{
	GpuvmScanState *state = reinterpret_cast<GpuvmScanState *>(node);
	ProjectionInfo *project = node->ss.ps.ps_ProjInfo;
	TupleTableSlot *slot;

	/* The common case, as short as it can be: the next of the decoded rows. */
	if (state->batch_row < state->batch_rows && state->held == nullptr && (project == nullptr || state->order != nullptr) && !computes_output(state->plan))
	{
		slot = state->row_slot;
		decode_next(state, slot);
		slot->tts_flags &= ~TTS_FLAG_EMPTY;
		slot->tts_nvalid = slot->tts_tupleDescriptor->natts;
		return slot;
	}

	CHECK_FOR_INTERRUPTS();
	if (state->mode == MODE_START)
	{
		state->mode = run_start(state);
		if (state->mode == MODE_VM && state->plan->kind != SCAN_ROWS)
			run_collect_groups(state);
	}
	if (project != nullptr)
		ResetExprContext(node->ss.ps.ps_ExprContext);

	slot = nullptr;
	if (state->mode == MODE_VM)
		slot = state->plan->kind != SCAN_ROWS ? groups_next(state) : computes_output(state->plan) ? computed_row(state) : vm_row(state);
	/* Not else: the VM may have given way before its first row. */
	if (state->mode == MODE_ALTERNATIVE)
		slot = alternative_row(state);
	if (TupIsNull(slot))
		return project != nullptr ? ExecClearTuple(node->ss.ps.ps_ResultTupleSlot) : ExecClearTuple(node->ss.ss_ScanTupleSlot);
	if (project == nullptr || slot == node->ss.ps.ps_ResultTupleSlot)
		return slot;
	node->ss.ps.ps_ExprContext->ecxt_scantuple = slot;
	return ExecProject(project);
}

static void
end_scan(CustomScanState *node)
{
	GpuvmScanState *state = reinterpret_cast<GpuvmScanState *>(node);

	use_own_arrays(state);
	run_stop(state);
	derived_end(state);
	shared_end(state);
	ExecEndNode(state->alternative);
}

/* No more rows are asked for, or (of a cursor) not now: LIMIT and EXISTS do not ask for the one after the last. */
static void
shutdown_scan(CustomScanState *node)
{
	require_unflagged(reinterpret_cast<const GpuvmScanState *>(node));
}

static void
rescan(CustomScanState *node)
{
	GpuvmScanState *state = reinterpret_cast<GpuvmScanState *>(node);

	require_unflagged(state);
	run_end(state);
	state->mode = MODE_START;
	state->flagged = false;
	derived_rescan(state, node->ss.ps.chgParam);
	if (state->sketched)
		return;
	if (node->ss.ps.chgParam != nullptr && state->alternative != nullptr)
		UpdateChangedParamSet(state->alternative, node->ss.ps.chgParam);
	if (state->alternative == nullptr)
		return;
	/* With changed parameters its next ExecProcNode rescans it. */
	if (state->alternative->chgParam == nullptr)
		ExecReScan(state->alternative);
}

void
executor_install(void)
{
	gpuvm_scan_methods = &scan_methods;
	map_cached = map_is_cached;
	map_failure = cached_failure;
	if (GetCustomScanMethods(scan_methods.CustomName, true) == nullptr)
		RegisterCustomScanMethods(&scan_methods);
	external_install();
	require_install();
}

}  // namespace gpuvm
