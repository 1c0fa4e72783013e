/*
 * quota.cc: see quota.h.
 *
 * Two imports that run at the same time see each other's versions from when they are
 * promised (registry_publish), and are checked after that: so together they do not
 * exceed a quota, though both may fail by it.
 */
#include "store/quota.h"

#include "pg/privileges.h"
#include "pg/shmem.h"
#include "store/catalog.h"
#include "store/internal.h"
#include "tablet/dictionary.h"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
}

namespace gpuvm {

constexpr int COL_ROLE = 1;
constexpr int COL_BYTES = 2;
constexpr int NCOLUMNS = 2;

/* -- the table ----------------------------------------------------------------- */

List *
list_quotas(void)
{
	Oid			relid = extension_table("quotas");
	Relation	table = OidIsValid(relid) ? try_relation_open(relid, AccessShareLock) : NULL;
	List	   *quotas = NIL;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (table == NULL)
		return NIL;
	if (RelationGetNumberOfAttributes(table) != NCOLUMNS)
		elog(ERROR, "unexpected definition of table gpuvm.quotas");
	scan = systable_beginscan(table, InvalidOid, false, NULL, 0, NULL);
	while ((tuple = systable_getnext(scan)) != NULL)
	{
		Quota	   *quota = static_cast<Quota *>(palloc0(sizeof(Quota)));
		bool		isnull;
		Datum		role = heap_getattr(tuple, COL_ROLE, RelationGetDescr(table), &isnull);

		quota->holds = true;
		quota->role = isnull ? InvalidOid : DatumGetObjectId(role);
		quota->bytes = static_cast<uint64>(DatumGetInt64(heap_getattr(tuple, COL_BYTES, RelationGetDescr(table), &isnull)));
		quotas = lappend(quotas, quota);
	}
	systable_endscan(scan);
	table_close(table, AccessShareLock);
	return quotas;
}

/* -- what is used ---------------------------------------------------------------- */

HTAB *
counted_begin(void)
{
	HASHCTL		control = {};

	control.keysize = sizeof(uint64);
	control.entrysize = sizeof(uint64);
	control.hcxt = CurrentMemoryContext;
	return hash_create("gpuvm allocations counted", 1024, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Calls visit(offset) for each allocation of the version; a block of dictionaries comes once, for its first column. */
template <typename Visit>
static void
for_each_allocation(uint64 offset, Visit visit)
{
	const TableVersion *version = arena_at<TableVersion>(offset);
	const uint64_t *tablets = version_at<uint64_t>(version, version->tablets);
	const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);
	auto		block_of = [columns](uint32 i)
	{
		return columns[i].dictionary == 0 ? 0 : arena_at<Dictionary>(columns[i].dictionary)->block;
	};

	visit(offset);
	for (uint32 i = 0; i < version->ntablets; i++)
		visit(tablets[i]);
	for (uint32 i = 0; i < version->ncols; i++)
	{
		uint64		block = block_of(i);
		bool		first = block != 0;

		for (uint32 j = 0; j < i && first; j++)
			first = block_of(j) != block;
		if (first)
			visit(block);
	}
}

uint64
count_version(HTAB *counted, uint64 version)
{
	uint64		bytes = 0;

	for_each_allocation(version, [&](uint64 offset)
	{
		bool		found;

		(void) hash_search(counted, &offset, HASH_ENTER, &found);
		if (!found)
			bytes += arena_allocated(offset);
	});
	return bytes;
}

Oid
owner_of(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			owner = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		owner = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relowner;
		ReleaseSysCache(tuple);
	}
	return owner;
}

/* -- the table's quotas ------------------------------------------------------------ */

void
quotas_of(Relation rel, TableQuotas *quotas)
{
	ListCell   *lc;
	bool		any = false;

	memset(static_cast<void *>(quotas), 0, sizeof(*quotas));
	foreach(lc, list_quotas())
	{
		const Quota *quota = static_cast<Quota *>(lfirst(lc));
		int			i = OidIsValid(quota->role) ? 0 : 1;

		if (i == 0 && quota->role != rel->rd_rel->relowner)
			continue;
		quotas->quotas[i] = *quota;
		quotas->counted[i] = counted_begin();
		any = true;
	}
	if (any)
	{
		int			count;
		PinnedVersion *versions = registry_pin_all(&count);

		for (int v = 0; v < count; v++)
		{
			if (versions[v].database != MyDatabaseId || (versions[v].relid == RelationGetRelid(rel) && versions[v].current))
				continue;
			for (int i = 0; i < 2; i++)
			{
				Quota	   *quota = &quotas->quotas[i];

				if (quota->holds && (!OidIsValid(quota->role) || owner_of(versions[v].relid) == quota->role))
					quota->used += count_version(quotas->counted[i], pin_offset(versions[v].pin));
			}
		}
		registry_unpin_all(versions, count);
	}
	InvalidateCatalogSnapshotConditionally();
}

Quota
tightest_quota(Relation rel)
{
	TableQuotas quotas;
	Quota	   *tightest = &quotas.quotas[0];

	quotas_of(rel, &quotas);
	if (quotas.quotas[1].holds && (!tightest->holds || quota_left(&quotas.quotas[1]) < quota_left(tightest)))
		tightest = &quotas.quotas[1];
	return *tightest;
}

const Quota *
exceeded_quota(const TableQuotas *quotas, uint64 version, uint64 *bytes)
{
	for (int i = 0; i < 2; i++)
	{
		const Quota *quota = &quotas->quotas[i];

		if (!quota->holds)
			continue;
		*bytes = 0;
		for_each_allocation(version, [&](uint64 offset)
		{
			if (hash_search(quotas->counted[i], &offset, HASH_FIND, NULL) == NULL)
				*bytes += arena_allocated(offset);
		});
		if (*bytes > quota_left(quota))
			return quota;
	}
	return NULL;
}

void
raise_quota_exceeded(Relation rel, const Quota *quota, uint64 bytes, bool at_least)
{
	const char *others = "the quota is";

	if (OidIsValid(quota->role) || may_see_all_stats())
		others = psprintf("others have %llu bytes of the quota of", static_cast<unsigned long long>(quota->used));
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 OidIsValid(quota->role)
			 ? errmsg("quota of role \"%s\" for imported tables is exceeded", GetUserNameFromId(quota->role, true))
			 : errmsg("quota of database \"%s\" for imported tables is exceeded", get_database_name(MyDatabaseId)),
			 errdetail("Table \"%s\" takes %s%llu bytes; %s %llu.", RelationGetRelationName(rel), at_least ? "at least " : "",
					   static_cast<unsigned long long>(bytes), others, static_cast<unsigned long long>(quota->bytes)),
			 errhint("Release tables with gpuvm.release(), import fewer columns, "
					 "or have the quota in table gpuvm.quotas raised.")));
	pg_unreachable();
}

void
quota_check_growth(Relation rel, const TableQuotas *quotas, const TableVersion *before, uint64 version)
{
	uint64		bytes;
	const Quota *quota = arena_at<TableVersion>(version)->bytes > before->bytes ? exceeded_quota(quotas, version, &bytes) : NULL;

	if (quota == NULL)
		return;
	free_version(version);
	raise_quota_exceeded(rel, quota, bytes, false);
}

void
quota_check(Relation rel, uint64 version)
{
	TableQuotas quotas;
	uint64		bytes;
	const Quota *quota;

	quotas_of(rel, &quotas);
	quota = exceeded_quota(&quotas, version, &bytes);
	if (quota != NULL)
		raise_quota_exceeded(rel, quota, bytes, false);
}

}  // namespace gpuvm
