/*
 * guard.cc: errors of data that nobody is to see.
 *
 * That needs no subtransaction (which could not be begun while parallel workers run),
 * since only built-in functions take part that compute and hold nothing (compiler/maps.cc,
 * compiler/folding.cc); what they look up in the catalogs belongs to a resource owner of its own.
 */
#include "pg/pg.h"

extern "C" {
#include "executor/executor.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
}

#include "executor/maps.h"

namespace gpuvm {

/*
 * May it have to do with the data, or the expression? A value that is too large for an allocation is
 * an internal error, and text search files are a configuration's. What is not: a cancel, a shutdown, a broken disk.
 */
static bool
is_of_data(int sqlstate)
{
	int			category = ERRCODE_TO_CATEGORY(sqlstate);

	return category != ERRCODE_OPERATOR_INTERVENTION && category != ERRCODE_TRANSACTION_ROLLBACK && category != ERRCODE_SYSTEM_ERROR &&
		sqlstate != ERRCODE_DATA_CORRUPTED && sqlstate != ERRCODE_INDEX_CORRUPTED;
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

/* -- expressions without columns ------------------------------------------------------ */

struct Evaluation
{
	ExprState  *expr;
	ExprContext *econtext;
	Datum		value;
	bool		isnull;
};

static void
evaluate(void *argument)
{
	Evaluation *e = static_cast<Evaluation *>(argument);

	e->value = ExecEvalExprSwitchContext(e->expr, e->econtext, &e->isnull);
}

/* A variable of PL/pgSQL may be a field of a record that has none yet; a subquery raises its own errors. */
static bool
may_raise(const Node *expr, const ExprContext *econtext)
{
	if (IsA(expr, Param))
		return ((const Param *) expr)->paramkind == PARAM_EXTERN && econtext->ecxt_param_list_info != nullptr &&
			econtext->ecxt_param_list_info->paramFetch != nullptr;
	return !IsA(expr, SQLValueFunction) && !IsA(expr, Const);
}

bool
evaluate_leaf(const Node *expr, ExprState *state, ExprContext *econtext, Datum *value, bool *isnull, int *sqlstate)
{
	Evaluation	e = {state, econtext, (Datum) 0, true};

	if (!may_raise(expr, econtext))
		evaluate(&e);
	else if (!guarded(evaluate, &e, sqlstate))
		return false;
	*value = e.value;
	*isnull = e.isnull;
	return true;
}

}  // namespace gpuvm
