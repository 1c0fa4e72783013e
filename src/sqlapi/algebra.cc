/* algebra.cc: gpuvm.algebra() and gpuvm.translations. */
#include "pg/pg.h"

extern "C" {
#include "funcapi.h"
#include "nodes/nodes.h"
#include "parser/analyze.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
}

#include "pg/compat.h"
#include "pg/shmem.h"
#include "pg/stats.h"
#include "plan/normalise.h"
#include "plan/passes.h"
#include "plan/translate.h"

namespace gpuvm {

/* Who may not read what the statement reads is not to see what it consists of. */
static void
check_permissions(const Query *query, const char *text)
{
	compat_check_permissions(
		pg_plan_query(static_cast<Query *>(copyObjectImpl(query)), text, CURSOR_OPT_PARALLEL_OK, nullptr));
}

/* Is the tree consistent, and as a cached plan would have it? */
static void
check_algebra(const GpuvmRel *statement)
{
	const char *problem = rel_check(statement);

	if (problem == nullptr && !equal(stringToNode(nodeToString(copyObjectImpl(statement))), statement))
		problem = "it is another one when written and read";
	if (problem != nullptr)
		elog(ERROR, "inconsistent algebra: %s", problem);
}

static GpuvmRel *
translate_text(const char *text)
{
	List	   *parsed = pg_parse_query(text);
	List	   *queries;
	Query	   *query;
	GpuvmRel   *statement;
	Refusal		refusal;

	if (list_length(parsed) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("expected a single statement, found %d", list_length(parsed))));
	queries = pg_analyze_and_rewrite_fixedparams(linitial_node(RawStmt, parsed), text, nullptr, 0, nullptr);
	query = list_length(queries) == 1 ? linitial_node(Query, queries) : nullptr;
	if (query != nullptr && query->commandType != CMD_UTILITY)
		check_permissions(query, text);
	statement = query != nullptr ? translate_statement(query, &refusal) : nullptr;
	if (query == nullptr)
		refusal = REFUSED_COMMAND;
	if (statement == nullptr)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("the statement has no algebra: %s", refusal_text(refusal))));
	check_algebra(statement);
	return statement;
}

}  // namespace gpuvm

using namespace gpuvm;

extern "C" {
PG_FUNCTION_INFO_V1(gpuvm_algebra);
PG_FUNCTION_INFO_V1(gpuvm_list_translations);

PGDLLEXPORT Datum
gpuvm_algebra(PG_FUNCTION_ARGS)
{
	FuncCallContext *calls;
	const List *lines;
	Datum		line;

	if (SRF_IS_FIRSTCALL())
	{
		MemoryContext outer;
		bool		pushed = !ActiveSnapshotSet();
		GpuvmRel   *statement;

		require_preload();
		calls = SRF_FIRSTCALL_INIT();
		outer = MemoryContextSwitchTo(calls->multi_call_memory_ctx);
		if (pushed)
			PushActiveSnapshot(GetTransactionSnapshot());
		statement = translate_text(text_to_cstring(PG_GETARG_TEXT_PP(0)));
		if (PG_GETARG_BOOL(2))
		{
			rel_normalise(statement);
			check_algebra(statement);
		}
		calls->user_fctx =
			PG_GETARG_BOOL(1) ? list_make1(const_cast<char *>(rel_sql(statement))) : rel_print(statement);
		if (pushed)
			PopActiveSnapshot();
		MemoryContextSwitchTo(outer);
	}
	calls = SRF_PERCALL_SETUP();
	lines = static_cast<const List *>(calls->user_fctx);
	if (calls->call_cntr >= static_cast<uint64>(list_length(lines)))
		SRF_RETURN_DONE(calls);
	line = CStringGetTextDatum(static_cast<const char *>(list_nth(lines, static_cast<int>(calls->call_cntr))));
	SRF_RETURN_NEXT(calls, line);
}

PGDLLEXPORT Datum
gpuvm_list_translations(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	require_preload();
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < REFUSED_COUNT_; i++)
	{
		Datum		values[3];
		bool		nulls[3] = {};
		uint64		statements,
					ns;

		stats_translations(i, &statements, &ns);
		values[0] = CStringGetTextDatum(refusal_text(static_cast<Refusal>(i)));
		values[1] = Int64GetDatum(static_cast<int64>(statements));
		values[2] = Float8GetDatum(static_cast<double>(ns) / 1e6);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
}
