/* compat.h: what differs between PostgreSQL 14 and 18, in one place. */
#ifndef GPUVM_PG_COMPAT_H
#define GPUVM_PG_COMPAT_H

#include "pg/pg.h"

extern "C" {
#include "access/toast_internals.h"
#include "nodes/parsenodes.h"
#include "nodes/primnodes.h"
#include "rewrite/rewriteManip.h"
#include "storage/latch.h"
#if PG_VERSION_NUM >= 180000
#include "storage/waiteventset.h"
#endif
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapshot.h"
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

}  // namespace gpuvm

#endif
