/* shadow.cc: translating statements for the counts alone. */
#include "pg/pg.h"

extern "C" {
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "nodes/nodeFuncs.h"
#include "portability/instr_time.h"
#include "utils/guc.h"
#include "utils/memutils.h"
}

#include "pg/compat.h"
#include "pg/settings.h"
#include "pg/stats.h"
#include "pg/subtransaction.h"
#include "plan/expand.h"
#include "plan/normalise.h"
#include "plan/passes.h"
#include "plan/shadow.h"
#include "plan/translate.h"
#include "store/registry.h"

namespace gpuvm {

static_assert(REFUSED_COUNT_ <= TRANSLATION_OUTCOMES, "each outcome has a counter");

static bool
tables_walker(Node *node, void *context)
{
	TablesRead *tables = static_cast<TablesRead *>(context);

	if (node == nullptr)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		const RangeTblEntry *rte = (RangeTblEntry *) node;

		if (rte->rtekind != RTE_RELATION)
			return false;
		tables->number++;
		tables->imported |= rte->relkind == RELKIND_PARTITIONED_TABLE || registry_known(rte->relid);
		return false;
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, reinterpret_cast<bool (*)()>(tables_walker), context, QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(tables_walker), context);
}

TablesRead
tables_read(const Query *query)
{
	TablesRead	tables = {};

	tables_walker((Node *) const_cast<Query *>(query), &tables);
	return tables;
}

struct ShadowWork
{
	const Query *query;
	GpuvmRel   *statement;
	Refusal		refusal;
	const char *problem;
	double		seconds;		/* without those that look for faults */
	bool		to_run;			/* in stages */
};

static double
seconds_since(const instr_time *start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, *start);
	return INSTR_TIME_GET_DOUBLE(now);
}

static void
translate_in_shadow(void *argument)
{
	ShadowWork *work = static_cast<ShadowWork *>(argument);
	instr_time	start;

	INSTR_TIME_SET_CURRENT(start);
	work->statement = translate_statement(work->query, &work->refusal);
	work->seconds = seconds_since(&start);
	if (work->statement == nullptr)
		return;
	work->problem = rel_check(work->statement);
	if (work->problem != nullptr)
		return;
	INSTR_TIME_SET_CURRENT(start);
	if (setting_normalise)
		rel_normalise(work->statement);
	else
		prune_columns(work->statement);
	work->seconds += seconds_since(&start);
	work->problem = rel_check(work->statement);
	if (work->problem == nullptr && work->to_run)
		rel_expand(work->statement);
}

/* What folding constants has to say is said when the statement is planned. */
static void
without_messages(ShadowWork *work)
{
	const int	client = client_min_messages;
	const int	log = log_min_messages;

	client_min_messages = log_min_messages = ERROR;
	PG_TRY();
	{
		if (in_subtransaction(translate_in_shadow, work) != nullptr)
			work->refusal = REFUSED_ERROR;
	}
	PG_FINALLY();
	{
		client_min_messages = client;
		log_min_messages = log;
	}
	PG_END_TRY();
}

GpuvmRel *
translate_quietly(const Query *query)
{
	ShadowWork	work = {query, nullptr, REFUSED_NOT, nullptr, 0, true};

	/* subtransactions are not for parallel mode */
	if (IsInParallelMode())
		return nullptr;
	without_messages(&work);
	return work.refusal == REFUSED_NOT && work.problem == nullptr ? work.statement : nullptr;
}

void
shadow_statement(const Query *query)
{
	ShadowWork	work = {query, nullptr, REFUSED_NOT, nullptr, 0, false};
	MemoryContext context;
	MemoryContext outer;

	/* subtransactions are not for parallel mode */
	if (IsInParallelMode())
		return;
	context = AllocSetContextCreate(CurrentMemoryContext, "gpuvm algebra", ALLOCSET_DEFAULT_SIZES);
	outer = MemoryContextSwitchTo(context);
	without_messages(&work);
	MemoryContextSwitchTo(outer);
	if (work.problem != nullptr)
		work.refusal = REFUSED_CHECK;
	stats_count_translation(work.refusal, static_cast<uint64>(work.seconds * 1e9));
#ifdef USE_ASSERT_CHECKING
	if (work.problem != nullptr)
		elog(WARNING, "inconsistent algebra: %s", work.problem);
#endif
	MemoryContextDelete(context);
}

}  // namespace gpuvm
