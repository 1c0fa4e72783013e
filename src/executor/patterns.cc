/*
 * patterns.cc: what a program compares values of variable length with: the other
 * sides of the comparisons, evaluated when execution starts (compiler/text_match.h).
 */
#include "pg/pg.h"

extern "C" {
#include "executor/executor.h"
#include "executor/nodeSubplan.h"
}

#include "executor/scan_state.h"
#include "pg/shmem.h"

namespace gpuvm {

constexpr uint64 PATTERN_ALIGN = 8;

void
patterns_begin(GpuvmScanState *state)
{
	const ScanPlan *plan = state->plan;
	List	   *exprs = NIL;

	for (int i = 0; i < plan->npatterns; i++)
		exprs = lappend(exprs, plan->patterns[i].expr);
	state->pattern_states = ExecInitExprList(exprs, &state->css.ss.ps);
	collect_param_execs(reinterpret_cast<Node *>(exprs), &state->param_execs);
}

bool
patterns_build(GpuvmScanState *state, int *reason, const char **detail)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	TextPattern *built;
	ListCell   *lc;

	if (state->pattern_states == NIL)
		return true;
	ResetExprContext(econtext);
	/* subqueries raise what they raise */
	if (state->param_execs != nullptr)
		ExecSetParamPlanMulti(state->param_execs, econtext);
	built = static_cast<TextPattern *>(palloc(TEXT_AUTOMATON_MAX));
	foreach(lc, state->pattern_states)
	{
		int			i = foreach_current_index(lc);
		const PlanPattern *pattern = &state->plan->patterns[i];
		const char *failure;
		Datum		value;
		bool		isnull;
		int			sqlstate = 0;

		if (!evaluate_leaf(reinterpret_cast<Node *>(pattern->expr), static_cast<ExprState *>(lfirst(lc)), econtext, &value, &isnull, &sqlstate))
			failure = psprintf("an expression without columns raises SQLSTATE %s", unpack_sql_state(sqlstate));
		else
			failure = build_pattern(pattern, value, isnull, built);
		if (failure != nullptr)
		{
			*reason = FALLBACK_ERROR_FLAG;
			*detail = failure;
			return false;
		}
		state->patterns[i] = static_cast<TextPattern *>(MemoryContextAlloc(state->group_context, built->size));
		memcpy(state->patterns[i], built, built->size);
	}
	pfree(built);
	ResetExprContext(econtext);
	return true;
}

/* -- into the arena ------------------------------------------------------------------ */

uint64
patterns_bytes(const GpuvmScanState *state)
{
	uint64		bytes = sizeof(uint64) * state->plan->npatterns;

	for (int i = 0; i < state->plan->npatterns; i++)
		bytes += align_up(state->patterns[i]->size, PATTERN_ALIGN);
	return align_up(bytes, 64);
}

void
patterns_to_job(const GpuvmScanState *state, uint64 at, Job *job)
{
	uint64	   *offsets = arena_at<uint64>(at);

	job->patterns = state->plan->npatterns > 0 ? at : 0;
	job->npatterns = state->plan->npatterns;
	at += sizeof(uint64) * state->plan->npatterns;
	for (int i = 0; i < state->plan->npatterns; i++)
	{
		offsets[i] = at;
		memcpy(arena_at<char>(at), state->patterns[i], state->patterns[i]->size);
		at += align_up(state->patterns[i]->size, PATTERN_ALIGN);
	}
}

}  // namespace gpuvm
