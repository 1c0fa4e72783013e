/* compat.h: what differs between PostgreSQL 14 and 18, in one place. */
#ifndef GPUVM_PG_COMPAT_H
#define GPUVM_PG_COMPAT_H

#include "pg/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/toast_internals.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "nodes/pathnodes.h"
#include "nodes/primnodes.h"
#include "optimizer/optimizer.h"
#include "parser/parse_relation.h"
#include "rewrite/rewriteManip.h"
#include "storage/latch.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "funcapi.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#include "storage/waiteventset.h"
#endif
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"
#include "utils/ruleutils.h"
#include "utils/sampling.h"
#include "utils/snapshot.h"
#include "utils/syscache.h"
#include "utils/wait_event.h"
}

/* PostgreSQL 18 has another reverse(), of bytea. */
#if PG_VERSION_NUM >= 180000
#define F_REVERSE F_REVERSE_TEXT
#endif

/* PostgreSQL 14 takes for granted that custom plans project, and has one function of two names less. No process of it but those without a database counts in others. */
#if PG_VERSION_NUM < 150000
#define CUSTOMPATH_SUPPORT_PROJECTION 0
#define PROC_AFFECTS_ALL_HORIZONS 0
#define pg_analyze_and_rewrite_fixedparams pg_analyze_and_rewrite

/* The function's rows, all at once, are put into a new tuplestore. */
inline void
InitMaterializedSRF(FunctionCallInfo fcinfo, bits32)
{
	ReturnSetInfo *rsinfo = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
	TupleDesc	desc;
	MemoryContext old;

	if (rsinfo == nullptr || !IsA(rsinfo, ReturnSetInfo))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("set-valued function called in context that cannot accept a set")));
	if (!(rsinfo->allowedModes & SFRM_Materialize))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("materialize mode required, but it is not allowed in this context")));
	old = MemoryContextSwitchTo(rsinfo->econtext->ecxt_per_query_memory);
	if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	rsinfo->returnMode = SFRM_Materialize;
	rsinfo->setResult = tuplestore_begin_heap((rsinfo->allowedModes & SFRM_Materialize_Random) != 0, false, work_mem);
	rsinfo->setDesc = desc;
	MemoryContextSwitchTo(old);
}
#endif

namespace gpuvm {

/* What a nested loop has of every join. */
inline const JoinPath *
compat_join_path(const NestPath *path)
{
#if PG_VERSION_NUM >= 150000
	return &path->jpath;
#else
	return path;
#endif
}

/* A random number of the sampler's, from 0 to 1. */
inline double
compat_sampler_fract(ReservoirStateData *sampler)
{
#if PG_VERSION_NUM >= 150000
	return sampler_random_fract(&sampler->randstate);
#else
	return sampler_random_fract(sampler->randstate);
#endif
}

/* A set that lives as long as the process: PostgreSQL 17 ties sets to a ResourceOwner unless given none. */
inline WaitEventSet *
compat_create_wait_event_set(int nevents)
{
#if PG_VERSION_NUM >= 170000
	return CreateWaitEventSet(NULL, nevents);
#else
	return CreateWaitEventSet(TopMemoryContext, nevents);
#endif
}

/* What pg_stat_activity calls a wait: a name of our own since PostgreSQL 17, before that Extension. */
#if PG_VERSION_NUM >= 170000
#define compat_wait_event(name) \
	([]() -> uint32 { static uint32 event = 0; return event != 0 ? event : (event = WaitEventExtensionNew(name)); }())
#else
#define compat_wait_event(name) static_cast<uint32>(PG_WAIT_EXTENSION)
#endif

/* From here on "gpuvm.x = y" for an unknown x is refused. */
inline void
compat_reserve_setting_prefix(const char *prefix)
{
#if PG_VERSION_NUM >= 150000
	MarkGUCPrefixReserved(prefix);
#else
	EmitWarningsOnPlaceholders(prefix);
#endif
}

/* Above the outer join with this number its columns may be null: since PostgreSQL 16 they say so. */
inline void
compat_set_nulled(Var *var, int join_rtindex)
{
#if PG_VERSION_NUM >= 160000
	var->varnullingrels = bms_make_singleton(join_rtindex);
#else
	(void) var;
	(void) join_rtindex;
#endif
}

/* The query with the target list's expressions in the place of the relation's columns. */
inline Node *
compat_replace_vars(Node *query, int varno, RangeTblEntry *rte, List *targets)
{
#if PG_VERSION_NUM >= 180000
	return ReplaceVarsFromTargetList(query, varno, 0, rte, targets, 0, REPLACEVARS_REPORT_ERROR, 0, nullptr);
#else
	return ReplaceVarsFromTargetList(query, varno, 0, rte, targets, REPLACEVARS_REPORT_ERROR, 0, nullptr);
#endif
}

/* A copy of the relation as the only one of another query, with the permissions that it needs. */
inline RangeTblEntry *
compat_copy_relation(const Query *from, const RangeTblEntry *rte, Query *to)
{
	RangeTblEntry *copy = static_cast<RangeTblEntry *>(copyObjectImpl(rte));

#if PG_VERSION_NUM >= 160000
	if (rte->perminfoindex > 0)
	{
		to->rteperminfos = lappend(to->rteperminfos, copyObjectImpl(list_nth(from->rteperminfos, rte->perminfoindex - 1)));
		copy->perminfoindex = list_length(to->rteperminfos);
	}
#else
	(void) from;
#endif
	to->rtable = lappend(to->rtable, copy);
	return copy;
}

/* Whether its privileges are checked when the statement is run: not those of partitions, children and subqueries. */
inline bool
compat_has_permissions(const RangeTblEntry *rte)
{
#if PG_VERSION_NUM >= 160000
	return rte->perminfoindex != 0;
#else
	return rte->requiredPerms != 0;
#endif
}

/* The same of one whose query is not at hand. */
inline RangeTblEntry *
compat_own_relation(const RangeTblEntry *rte, Query *to)
{
	RangeTblEntry *copy = static_cast<RangeTblEntry *>(copyObjectImpl(rte));

#if PG_VERSION_NUM >= 160000
	copy->perminfoindex = 0;
	addRTEPermissionInfo(&to->rteperminfos, copy);
#else
	(void) to;
#endif
	return copy;
}

/* As for a TOAST table: who sees the row that refers to some has them all. A snapshot that sees it is registered, or active. */
inline void
compat_init_toast_snapshot(SnapshotData *snapshot)
{
#if PG_VERSION_NUM >= 170000
	memset(snapshot, 0, sizeof(*snapshot));
	snapshot->snapshot_type = SNAPSHOT_TOAST;
#else
	init_toast_snapshot(snapshot);
#endif
}

/*
 * Who compares under a collation, and by which locale, palloc'd; of the default one, the database's. False: the locale
 * alone does not say how.
 */
inline bool
compat_collation(Oid collation, char *provider, const char **locale)
{
	bool		database = collation == DEFAULT_COLLATION_OID;
	HeapTuple	tuple = database ? SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId)) : SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	bool		plain = true;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for collation %u", collation);
#if PG_VERSION_NUM < 150000
	*provider = database ? COLLPROVIDER_LIBC : ((Form_pg_collation) GETSTRUCT(tuple))->collprovider;
	*locale = pstrdup(database ? NameStr(((Form_pg_database) GETSTRUCT(tuple))->datcollate) : NameStr(((Form_pg_collation) GETSTRUCT(tuple))->collcollate));
#else
	AttrNumber	attnum;
	Datum		value;
	bool		null;

	*provider = database ? ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider : ((Form_pg_collation) GETSTRUCT(tuple))->collprovider;
	attnum = database ? Anum_pg_database_datcollate : Anum_pg_collation_collcollate;
#if PG_VERSION_NUM >= 170000
	if (*provider != COLLPROVIDER_LIBC)
		attnum = database ? Anum_pg_database_datlocale : Anum_pg_collation_colllocale;
#else
	if (*provider != COLLPROVIDER_LIBC)
		attnum = database ? Anum_pg_database_daticulocale : Anum_pg_collation_colliculocale;
#endif
	value = SysCacheGetAttr(database ? DATABASEOID : COLLOID, tuple, attnum, &null);
	*locale = null ? "" : TextDatumGetCString(value);
#if PG_VERSION_NUM >= 160000
	(void) SysCacheGetAttr(database ? DATABASEOID : COLLOID, tuple, database ? Anum_pg_database_daticurules : Anum_pg_collation_collicurules, &null);
	plain = null;
#endif
#endif
	ReleaseSysCache(tuple);
	return plain;
}

/* Is it the process of a background worker, which a leader may wait for? */
inline bool
compat_is_background_worker(void)
{
	return MyBackendType == B_BG_WORKER;
}

/* Of a join's relations those that are ones: from PostgreSQL 16 on its outer joins have numbers among them. */
inline Relids
compat_relations(const PlannerInfo *root, Relids relids)
{
#if PG_VERSION_NUM >= 160000
	return bms_difference(relids, root->outer_join_rels);
#else
	(void) root;
	return relids;
#endif
}

/*
 * What is grouped by, or made distinct, without keys that depend on others: up to PostgreSQL 15 the planner takes these
 * out of the query itself. Where none is left it is still not an aggregation without keys, which has a row of no rows.
 */
inline List *
compat_group_clause(const PlannerInfo *root, bool distinct = false)
{
	List	   *clause = distinct ? root->parse->distinctClause : root->parse->groupClause;

#if PG_VERSION_NUM >= 160000
	List	   *needed = distinct ? root->processed_distinctClause : root->processed_groupClause;

	if (needed != NIL)
		return needed;
#endif
	return clause;
}

/* The key of a group that PostgreSQL 18 refers to; any other expression as it is. */
inline Node *
compat_group_key(const Query *query, Node *expr)
{
#if PG_VERSION_NUM >= 180000
	const Var  *var = (const Var *) expr;

	if (query->hasGroupRTE && IsA(expr, Var) && var->varlevelsup == 0)
	{
		const RangeTblEntry *rte = list_nth_node(RangeTblEntry, query->rtable, var->varno - 1);

		if (rte->rtekind == RTE_GROUP)
			return static_cast<Node *>(list_nth(rte->groupexprs, var->varattno - 1));
	}
#else
	(void) query;
#endif
	return expr;
}

/* Raises an error unless the user may read what the statement reads. */
inline void
compat_check_permissions(PlannedStmt *stmt)
{
#if PG_VERSION_NUM >= 160000
	ExecCheckPermissions(stmt->rtable, stmt->permInfos, true);
#else
	ExecCheckRTPerms(stmt->rtable, true);
#endif
}

/* How many relations EXPLAIN's query has. */
inline int
compat_explained_relations(const ExplainState *es)
{
#if PG_VERSION_NUM >= 180000
	return es->rtable_size;
#else
	return list_length(es->rtable);
#endif
}

/* Names for expressions with parameters, whose maker PostgreSQL 17 looks for among the plan node's subplans, and takes for granted that there is a node. */
inline List *
compat_deparse_context(List *context, Plan *plan)
{
#if PG_VERSION_NUM >= 170000
	return set_deparse_context_plan(context, plan, NIL);
#else
	(void) plan;
	return context;
#endif
}

/* Does the key sort the largest first? PostgreSQL 18 says so without a btree's numbers. */
inline bool
compat_is_descending(const PathKey *key)
{
#if PG_VERSION_NUM >= 180000
	return key->pk_cmptype == COMPARE_GT;
#else
	return key->pk_strategy == BTGreaterStrategyNumber;
#endif
}

/* Is a comparison of rows < or <=, not > or >=? */
inline bool
compat_is_less(const RowCompareExpr *expr)
{
#if PG_VERSION_NUM >= 180000
	return expr->cmptype == COMPARE_LT || expr->cmptype == COMPARE_LE;
#else
	return expr->rctype == ROWCOMPARE_LT || expr->rctype == ROWCOMPARE_LE;
#endif
}

/* For whoever includes utils/datetime.h, whose short macros are not for all: what a name in small letters is as an abbreviation. */
#ifdef DATETIME_H
inline int
compat_decode_timezone_abbrev(char *name, int *offset, pg_tz **zone)
{
#if PG_VERSION_NUM >= 160000
	DateTimeErrorExtra extra;
	int			type = UNKNOWN_FIELD;

	return DecodeTimezoneAbbrev(0, name, &type, offset, zone, &extra) == 0 ? type : UNKNOWN_FIELD;
#else
	return DecodeTimezoneAbbrev(0, name, offset, zone);
#endif
}
#endif

/* For whoever includes storage/standby.h: are rows kept longer than anybody here needs them, for standbys' sake? */
#ifdef STANDBY_H
inline bool
compat_defers_cleanup(void)
{
#if PG_VERSION_NUM >= 160000
	return false;
#else
	return vacuum_defer_cleanup_age > 0;
#endif
}
#endif

/* Do lower() and upper() under the collation look at each character by itself? ICU's do not, and newer versions' own. */
inline bool
compat_case_by_character(Oid collation)
{
#if PG_VERSION_NUM >= 180000
	const pg_locale_t locale = pg_newlocale_from_collation(collation);

	return locale->ctype_is_c || locale->provider == COLLPROVIDER_LIBC;
#else
	if (lc_ctype_is_c(collation))
		return true;

	const pg_locale_t locale = pg_newlocale_from_collation(collation);

	return locale == nullptr || locale->provider == COLLPROVIDER_LIBC;
#endif
}

/* To the end, once, without the hooks. */
inline void
compat_executor_run(QueryDesc *query)
{
#if PG_VERSION_NUM >= 180000
	standard_ExecutorRun(query, ForwardScanDirection, 0);
#else
	standard_ExecutorRun(query, ForwardScanDirection, 0, true);
#endif
}

}  // namespace gpuvm

#endif
