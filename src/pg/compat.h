/* compat.h: what differs between PostgreSQL 14 and 18, in one place. */
#ifndef GPUVM_PG_COMPAT_H
#define GPUVM_PG_COMPAT_H

#include "pg/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "access/toast_internals.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "nodes/primnodes.h"
#include "rewrite/rewriteManip.h"
#include "storage/latch.h"
#if PG_VERSION_NUM >= 180000
#include "storage/waiteventset.h"
#endif
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"
#include "utils/snapshot.h"
#include "utils/syscache.h"
}

namespace gpuvm {

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

}  // namespace gpuvm

#endif
