/*
 * derived.cc: a cursor that reads no imported table but the rows of another plan, a child of the
 * scan: PostgreSQL runs it to its end, and the rows become tablets for this execution, as a delta's do.
 */
#include "pg/pg.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
}

#include "executor/scan_state.h"
#include "executor/set_arms.h"
#include "pg/shmem.h"
#include "pg/startup.h"
#include "tablet/build.h"
#include "tablet/dictionary.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

/* What dictionaries of these columns begin with: nothing. */
const Dictionary *
empty_dictionary(void)
{
	return dictionary_begin(static_cast<char *>(palloc0(dictionary_size(0, 0))), 0, 0);
}

/* A column more of the values of an attribute of the child's rows. */
static ColumnSummary *
add_column(ScanSource *source, AttrNumber attnum, AttrNumber of_child, Type type)
{
	ColumnSummary *column = &source->columns[source->ncolumns];

	source->attnums[source->ncolumns++] = attnum;
	column->type = type;
	column->attnum = of_child;
	column->scale = -1;
	return column;
}

static void
prepare_columns(ScanSource *source, const PlanCursor *from)
{
	int			most = 2 * list_length(from->columns);
	ListCell   *lc;

	source->columns = static_cast<ColumnSummary *>(palloc0(sizeof(ColumnSummary) * Max(most, 1)));
	source->attnums = static_cast<AttrNumber *>(palloc(sizeof(AttrNumber) * Max(most, 1)));
	source->locals = static_cast<LocalDictionary **>(palloc0(sizeof(LocalDictionary *) * Max(most, 1)));
	foreach(lc, from->columns)
	{
		int			i = foreach_current_index(lc);
		const ChildColumn column = child_column(lfirst_node(List, lc));
		ColumnSummary *summary = add_column(source, column.attnum, i + 1, column.type);

		summary->scale = column.form == ValueForm::Numeric ? column.scale : -1;
		summary->flags = column.form == ValueForm::Variable ? COLUMN_VARIABLE : column.wide ? COLUMN_WIDE : 0;
		if (column.form == ValueForm::Dictionary)
			source->locals[i] = local_dictionary(empty_dictionary());
	}
	/* high halves are behind all others (tablet/wide_halves.h) */
	foreach(lc, from->columns)
	{
		int			i = foreach_current_index(lc);
		const ChildColumn column = child_column(lfirst_node(List, lc));

		if (column.wide)
			add_column(source, high_half(column.attnum), high_half(i + 1), Type::I64);
	}
}

/* All rows of the child; NULL where they do not fit, and *unfit as delta_read() has it. */
static Delta *
read_child(PlanState *child, const ScanSource *source, AttrNumber *unfit)
{
	MemoryContext query = child->state->es_query_cxt;
	MemoryContext mine = CurrentMemoryContext;
	DeltaRequest request = {};
	bool	   *wanted = static_cast<bool *>(palloc(sizeof(bool) * Max(source->ncolumns, 1)));
	DeltaReader *reader;
	bool		fits = true;

	memset(wanted, true, source->ncolumns);
	request.nblocks = MaxBlockNumber;
	request.columns = source->columns;
	request.ncols = source->ncolumns;
	request.wanted = wanted;
	request.dictionaries = source->locals;
	request.max_bytes = run_memory_limit();
	reader = delta_begin(ExecGetResultType(child), request);
	while (fits)
	{
		TupleTableSlot *slot;

		CHECK_FOR_INTERRUPTS();
		/* what nodes make of their first row lives as long as they do */
		MemoryContextSwitchTo(query);
		slot = ExecProcNode(child);
		MemoryContextSwitchTo(mine);
		if (TupIsNull(slot))
			break;
		slot_getallattrs(slot);
		fits = delta_add(reader, slot->tts_values, slot->tts_isnull, unfit);
	}
	return delta_end(reader, fits, unfit);
}

static void
list_rows(ScanSource *source, const Delta *rows)
{
	ScanTablet *to;

	source->ntablets = rows->ntablets;
	to = source->tablets = static_cast<ScanTablet *>(palloc0(sizeof(ScanTablet) * Max(source->ntablets, 1)));
	for (const DeltaTablet *t = rows->first; t != nullptr; t = t->next, to++)
		to->header = t->tablet;
	delta_summarize(rows, source->columns, source->ncolumns, true);
	source->nrows = rows->nrows;
	source->delta_bytes = rows->tablet_bytes;
}

/* A child that is a scan of ours; NULL: it is none. */
static GpuvmScanState *
scan_of_ours(PlanState *child)
{
	return is_gpuvm_scan(child->plan) ? reinterpret_cast<GpuvmScanState *>(child) : nullptr;
}

/* The scan below the child that feeds this one, and gave way; NULL: none did. */
static const GpuvmScanState *
scan_that_gave_way(PlanState *child)
{
	const GpuvmScanState *ours = scan_of_ours(child);
	const GpuvmScanState *found = nullptr;

	if (ours != nullptr)
		return ours->feeds && ours->gave_way ? ours : nullptr;
	for (int i = 0; IsA(child, AppendState) && found == nullptr && i < reinterpret_cast<AppendState *>(child)->as_nplans; i++)
		found = scan_that_gave_way(reinterpret_cast<AppendState *>(child)->appendplans[i]);
	return found;
}

static void
rescan_child(PlanState *child)
{
	MemoryContext mine = MemoryContextSwitchTo(child->state->es_query_cxt);

	ExecReScan(child);
	MemoryContextSwitchTo(mine);
}

bool
derived_read(GpuvmScanState *state, ScanSource *source, DerivedChild *child, bool stays, int *reason, const char **detail)
{
	const PlanCursor *from = source->derived;
	const GpuvmScanState *fed = scan_of_ours(child->state);
	AttrNumber	unfit = 0;
	Delta	   *rows;

	source->desc = ExecGetResultType(child->state);
	/* what is read now would be for nothing */
	if (arena_header()->engine_pid.load() == 0)
	{
		*reason = FALLBACK_ENGINE_AWAY;
		*detail = "gpuvmd is not running";
		return false;
	}
	prepare_columns(source, from);
	/* with changed parameters its first row is a new one anyway */
	if (child->read && child->state->chgParam == nullptr)
		rescan_child(child->state);
	child->read = true;
	switch (stays ? derived_set(state, source, child->state) : SET_NOT_TRIED)
	{
		case SET_DONE:
			return true;
		case SET_FAILED:
			rescan_child(child->state);
			break;
		case SET_GAVE_WAY:
			if (fed == nullptr)
			{
				rescan_child(child->state);
				break;
			}
			*reason = fed->figures.fallback;
			*detail = fed->figures.fallback_detail;
			return false;
		case SET_NOT_TRIED:
			break;
	}
	rows = read_child(child->state, source, &unfit);
	fed = scan_that_gave_way(child->state);
	if (fed != nullptr)
	{
		*reason = fed->figures.fallback;
		*detail = fed->figures.fallback_detail;
		return false;
	}
	if (rows != nullptr)
	{
		list_rows(source, rows);
		return true;
	}
	*reason = unfit != 0 ? FALLBACK_VALUE : FALLBACK_MEMORY;
	*detail = unfit != 0 ? psprintf("column \"%s\" of \"%s\"", strVal(list_nth(from->names, source->attnums[unfit - 1] - 1)), from->alias)
		: psprintf("the rows of \"%s\" take more than work_mem, and a quarter of gpuvm.memory", from->alias);
	return false;
}

bool
derived_open(GpuvmScanState *state, ScanSource *source, int *reason, const char **detail)
{
	const PlanCursor *from = source->derived = &state->plan->cursors[source->cursor];

	if (from->child < 0)
		return shared_open(state, source, reason, detail);
	return derived_read(state, source, &state->children[from->child - 1], can_read_set(state, source->cursor), reason, detail);
}

/* Is there anything in the plan that it shares with another, and that begins when the plan's state is made? */
static bool
shares_state(const Plan *plan)
{
	const List *below = NIL;
	ListCell   *lc;

	if (plan == nullptr)
		return false;
	if (plan->initPlan != NIL || IsA(plan, CteScan) || IsA(plan, WorkTableScan))
		return true;
	check_stack_depth();
	if (IsA(plan, Append))
		below = ((const Append *) plan)->appendplans;
	else if (IsA(plan, MergeAppend))
		below = ((const MergeAppend *) plan)->mergeplans;
	else if (IsA(plan, CustomScan))
		below = ((const CustomScan *) plan)->custom_plans;
	foreach(lc, below)
	{
		if (shares_state(static_cast<const Plan *>(lfirst(lc))))
			return true;
	}
	return shares_state(plan->lefttree) || shares_state(plan->righttree) ||
		(IsA(plan, SubqueryScan) && shares_state(((const SubqueryScan *) plan)->subplan));
}

bool
can_be_sketched(const CustomScan *scan)
{
	return !shares_state(static_cast<const Plan *>(linitial(scan->custom_plans)));
}

/* -- the children -------------------------------------------------------------------------- */

void
derived_begin(GpuvmScanState *state, List *plans, int eflags)
{
	ListCell   *lc;

	state->nchildren = list_length(plans) - 1 - state->plan->nshared;
	state->children = static_cast<DerivedChild *>(palloc0(sizeof(DerivedChild) * Max(state->nchildren, 1)));
	for_each_from(lc, plans, 1)
	{
		if (foreach_current_index(lc) > state->nchildren)
			break;
		state->children[foreach_current_index(lc) - 1].state =
			ExecInitNode(static_cast<Plan *>(lfirst(lc)), state->css.ss.ps.state, eflags);
	}
}

List *
derived_states(const GpuvmScanState *state, PlanState *alternative)
{
	List	   *states = alternative != nullptr ? list_make1(alternative) : NIL;

	for (int i = 0; i < state->nchildren; i++)
		states = lappend(states, state->children[i].state);
	for (int i = 0; i < state->plan->nshared; i++)
		states = lappend(states, state->shared->stages[i].child.state);
	return states;
}

void
derived_end(GpuvmScanState *state)
{
	for (int i = 0; i < state->nchildren; i++)
		ExecEndNode(state->children[i].state);
}

static PlanState *
shared_state(const GpuvmScanState *state, const PlanCursor *cursor)
{
	return state->shared->stages[-cursor->child - 1].child.state;
}

void
derived_rescan(GpuvmScanState *state, Bitmapset *changed)
{
	for (int i = 0; changed != nullptr && i < state->plan->nshared; i++)
		UpdateChangedParamSet(state->shared->stages[i].child.state, changed);
	for (int i = 0; i < state->plan->ncursors; i++)
	{
		const PlanCursor *cursor = &state->plan->cursors[i];
		PlanState  *child;

		if (cursor->child == 0)
			continue;
		child = cursor->child < 0 ? shared_state(state, cursor) : state->children[cursor->child - 1].state;
		if (changed != nullptr)
			UpdateChangedParamSet(child, changed);
		if (child->chgParam == nullptr || state->sources[i] == nullptr)
			continue;
		source_close(state->sources[i]);
		state->sources[i] = nullptr;
	}
}

}  // namespace gpuvm
