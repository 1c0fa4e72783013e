/* subtransaction.cc: work whose errors are not the statement's. */
#include "pg/pg.h"

extern "C" {
#include "access/xact.h"
#include "utils/resowner.h"
}

#include "pg/subtransaction.h"

namespace gpuvm {

static bool
ends_statement(int sqlstate)
{
	return sqlstate == ERRCODE_QUERY_CANCELED || ERRCODE_TO_CATEGORY(sqlstate) == ERRCODE_OPERATOR_INTERVENTION;
}

ErrorData *
in_subtransaction(void (*work) (void *), void *argument)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		work(argument);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		/* in any case: who catches the error further up ends a subtransaction of its own */
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	if (error != NULL && ends_statement(error->sqlerrcode))
		ReThrowError(error);
	return error;
}

}  // namespace gpuvm
