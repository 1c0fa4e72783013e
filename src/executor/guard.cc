/*
 * guard.cc: errors of data that nobody is to see.
 *
 * That needs no subtransaction (which could not be begun while parallel workers run),
 * since only built-in functions take part that compute and hold nothing (compiler/maps.cc,
 * compiler/folding.cc); what they look up in the catalogs belongs to a resource owner of its own.
 */
#include "pg/pg.h"

extern "C" {
#include "utils/memutils.h"
#include "utils/resowner.h"
}

#include "executor/maps.h"

namespace gpuvm {

/* Is it the data's fault, or the expression's? All else, a cancel for one, goes on. */
static bool
is_of_data(int sqlstate)
{
	int			category = ERRCODE_TO_CATEGORY(sqlstate);

	return category == ERRCODE_DATA_EXCEPTION || category == ERRCODE_FEATURE_NOT_SUPPORTED || category == ERRCODE_CARDINALITY_VIOLATION ||
		category == ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION || category == ERRCODE_PROGRAM_LIMIT_EXCEEDED;
}

bool
guarded(void (*work) (void *), void *argument, int *sqlstate)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner outer = CurrentResourceOwner;
	ResourceOwner owner = ResourceOwnerCreate(outer, "gpuvm map");
	volatile bool done = false;

	CurrentResourceOwner = owner;
	PG_TRY();
	{
		work(argument);
		done = true;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = outer;
		*sqlstate = geterrcode();
		if (!is_of_data(*sqlstate))
			PG_RE_THROW();
		FlushErrorState();
	}
	PG_END_TRY();
	CurrentResourceOwner = outer;
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_BEFORE_LOCKS, done, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_LOCKS, done, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_AFTER_LOCKS, done, false);
	ResourceOwnerDelete(owner);
	return done;
}

}  // namespace gpuvm
