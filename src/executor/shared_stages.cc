/*
 * shared_stages.cc: stages of a statement whose rows several of its programs read.
 *
 * They belong to the last stage's scan, which outlives all of its readers. The first reader has one run; it is open
 * until every reader has had the rows and let them go. A reader has a source of its own, whose rows are this one's.
 */
#include "pg/pg.h"

extern "C" {
#include "utils/memutils.h"
}

#include <cstring>

#include "executor/scan_state.h"

namespace gpuvm {

/* -- the scans of a statement ---------------------------------------------------------------- */

/* Calls the function for each program of the plan; between them there is nothing but UNION ALL. */
static void
each_stage(PlanState *ps, SharedStages *shared, void (*visit) (GpuvmScanState *scan, SharedStages *shared))
{
	check_stack_depth();
	if (is_gpuvm_scan(ps->plan))
	{
		GpuvmScanState *scan = reinterpret_cast<GpuvmScanState *>(ps);

		visit(scan, shared);
		for (int i = 0; i < scan->nchildren; i++)
			each_stage(scan->children[i].state, shared, visit);
	}
	else if (IsA(ps, AppendState))
	{
		for (int i = 0; i < reinterpret_cast<AppendState *>(ps)->as_nplans; i++)
			each_stage(reinterpret_cast<AppendState *>(ps)->appendplans[i], shared, visit);
	}
}

static void
take_in(GpuvmScanState *scan, SharedStages *shared)
{
	scan->shared = shared;
	scan->space = &shared->owner->own_space;
	for (int i = 0; i < scan->plan->ncursors; i++)
	{
		const int	child = scan->plan->cursors[i].child;
		SharedStage *stage = child < 0 ? &shared->stages[-child - 1] : nullptr;

		if (stage == nullptr)
			continue;
		stage->nreaders++;
		stage->stays = stage->stays && can_read_set(scan, i);
	}
}

/* For EXPLAIN: of UNION ALL its arms. */
static void
number_stage(PlanState *ps, int number)
{
	if (is_gpuvm_scan(ps->plan))
		reinterpret_cast<GpuvmScanState *>(ps)->shared_stage = number;
	for (int i = 0; IsA(ps, AppendState) && i < reinterpret_cast<AppendState *>(ps)->as_nplans; i++)
		number_stage(reinterpret_cast<AppendState *>(ps)->appendplans[i], number);
}

void
shared_begin(GpuvmScanState *state, const List *plans, int eflags)
{
	const int	nshared = state->plan->nshared;
	SharedStages *shared = static_cast<SharedStages *>(palloc0(sizeof(SharedStages)));

	shared->owner = state;
	shared->nstages = nshared;
	shared->stages = static_cast<SharedStage *>(palloc0(sizeof(SharedStage) * Max(nshared, 1)));
	for (int i = 0; i < nshared; i++)
	{
		SharedStage *stage = &shared->stages[i];
		Plan	   *plan = static_cast<Plan *>(list_nth(plans, list_length(plans) - nshared + i));

		stage->child.state = ExecInitNode(plan, state->css.ss.ps.state, eflags);
		stage->context = AllocSetContextCreate(CurrentMemoryContext, "gpuvm shared stage", ALLOCSET_DEFAULT_SIZES);
		stage->stays = true;
	}
	each_stage(&state->css.ss.ps, shared, take_in);
	for (int i = 0; i < nshared; i++)
	{
		each_stage(shared->stages[i].child.state, shared, take_in);
		number_stage(shared->stages[i].child.state, i + 1);
	}
}

void
shared_end(GpuvmScanState *state)
{
	for (int i = 0; i < state->plan->nshared; i++)
		ExecEndNode(state->shared->stages[i].child.state);
}

/* -- their rows ------------------------------------------------------------------------------- */

static void
close_stage(SharedStage *stage)
{
	ScanSource *source = stage->source;

	stage->source = nullptr;
	stage->users = 0;
	stage->opening++;
	if (source != nullptr)
		source_close(source);
}

void
shared_close(GpuvmScanState *state)
{
	for (int i = 0; state->shared != nullptr && state->shared->owner == state && i < state->plan->nshared; i++)
		close_stage(&state->shared->stages[i]);
}

/* Runs the stage. The scan that asks has its columns in the same form as all readers have. */
static bool
open_stage(SharedStages *shared, SharedStage *stage, const PlanCursor *from, int *reason, const char **detail)
{
	MemoryContext old = MemoryContextSwitchTo(stage->context);
	ScanSource *source = static_cast<ScanSource *>(palloc0(sizeof(ScanSource)));
	bool		opened;

	source->context = stage->context;
	source->derived = from;
	opened = derived_read(shared->owner, source, &stage->child, stage->stays, reason, detail);
	MemoryContextSwitchTo(old);
	if (!opened)
	{
		if (*detail != nullptr)
			*detail = pstrdup(*detail);
		source_close(source);
		return false;
	}
	stage->source = source;
	stage->left = stage->nreaders;
	return true;
}

/* Its set has gone with gpuvmd, or it depends on a parameter that has changed. */
static bool
is_out_of_date(const SharedStage *stage)
{
	const ScanSource *source = stage->source;

	return stage->child.state->chgParam != nullptr || (source->set != 0 && !engine_has_set(source->set_session, source->set));
}

bool
shared_open(GpuvmScanState *state, ScanSource *source, int *reason, const char **detail)
{
	const PlanCursor *from = &state->plan->cursors[source->cursor];
	SharedStage *stage = &state->shared->stages[-from->child - 1];
	const ScanSource *rows;
	const ScanSource mine = *source;

	if (stage->source != nullptr && is_out_of_date(stage))
		close_stage(stage);
	if (stage->source == nullptr && !open_stage(state->shared, stage, from, reason, detail))
		return false;
	rows = stage->source;
	*source = *rows;
	source->context = mine.context;
	source->cursor = mine.cursor;
	source->leaves = mine.leaves;
	source->derived = from;
	/* each job numbers them anew */
	if (rows->ntablets > 0)
	{
		source->tablets = static_cast<ScanTablet *>(palloc(sizeof(ScanTablet) * rows->ntablets));
		memcpy(source->tablets, rows->tablets, sizeof(ScanTablet) * rows->ntablets);
	}
	source->of = stage;
	source->opening = stage->opening;
	stage->users++;
	stage->left--;
	return true;
}

bool
shared_is_open(const ScanSource *source)
{
	return source->of->source != nullptr && source->opening == source->of->opening;
}

void
shared_let_go(ScanSource *source)
{
	SharedStage *stage = source->of;

	source->of = nullptr;
	source->set = 0;
	source->nrows = 0;
	if (stage->source == nullptr || source->opening != stage->opening)
		return;
	stage->users--;
	/* whoever wants them again has them computed again; all but sets may be pointed to by what readers give */
	if (stage->users == 0 && stage->left <= 0 && stage->source->set != 0)
		close_stage(stage);
}

}  // namespace gpuvm
