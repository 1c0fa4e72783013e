/*
 * filter_memory.cc: which group filters have flagged an error in this session. Sums of more than 64 bits mostly stay so, and each execution
 * would run its first program twice. Only time depends on it: without the filter PostgreSQL evaluates HAVING.
 */
#include "pg/pg.h"

#include "executor/scan_state.h"

namespace gpuvm {

constexpr int REMEMBERED = 64;

struct FailedFilter
{
	Oid			relid;			/* of the first cursor; 0: a plan's rows */
	uint64		program;
	uint64		filter;
};

static FailedFilter failed[REMEMBERED];
static uint32 next;

static FailedFilter
filter_of(const GpuvmScanState *state)
{
	const PlanPart *part = state->part->plan;

	return FailedFilter{state->plan->cursors[0].relid, part->program->hash, part->group_filter->hash};
}

bool
filter_has_failed(const GpuvmScanState *state)
{
	const FailedFilter mine = filter_of(state);

	for (const FailedFilter &f : failed)
	{
		if (f.relid == mine.relid && f.program == mine.program && f.filter == mine.filter)
			return true;
	}
	return false;
}

void
filter_failed(const GpuvmScanState *state)
{
	failed[next++ % REMEMBERED] = filter_of(state);
}

}  // namespace gpuvm
