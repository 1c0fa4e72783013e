/*
 * flagged.cc: which programs have flagged, in this session, what need not be an error in PostgreSQL: a quotient without room for its decimals,
 * a sum of more than 64 bits. The same statement mostly meets the same rows again, and would be executed twice each time: the planner counts both in, and a
 * plan that is kept leaves it to PostgreSQL's. Only time depends on it, so what tables have now is not compared: after some plans, or executions, a program is
 * tried again.
 */
#include "pg/pg.h"

#include "planner/flagged.h"

namespace gpuvm {

constexpr int REMEMBERED = 64;
constexpr int USES_BETWEEN = 50;

struct FlaggedProgram
{
	Oid			relid;			/* of the first cursor; 0: a plan's rows */
	uint64		hash;			/* of the first part's program, which has the statement's constants */
	int			uses;			/* plans and executions before it is tried again */
};

static FlaggedProgram flagged[REMEMBERED];
static uint32 next;

static FlaggedProgram *
find(const ScanPlan *plan)
{
	for (FlaggedProgram &f : flagged)
	{
		if (f.uses > 0 && f.relid == plan->cursors[0].relid && f.hash == plan->parts[0].program->hash)
			return &f;
	}
	return nullptr;
}

void
plan_flagged(const ScanPlan *plan)
{
	FlaggedProgram *f = find(plan);

	if (plan->soft_errors)
		*(f != nullptr ? f : &flagged[next++ % REMEMBERED]) = FlaggedProgram{plan->cursors[0].relid, plan->parts[0].program->hash, USES_BETWEEN};
}

bool
plan_will_flag(const ScanPlan *plan)
{
	FlaggedProgram *f = plan->soft_errors ? find(plan) : nullptr;

	return f != nullptr && --f->uses >= 0;
}

}  // namespace gpuvm
