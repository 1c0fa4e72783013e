/*
 * memory.cc: gpuvm.memory: whose the shared memory is. The rows' `bytes` add up to the
 * setting; `engine_bytes` is what gpuvmd has beside it.
 *
 * Versions are pinned while they are counted, so what they take is there when the arena
 * is asked, and what is left of `tables` is of imports that are running.
 */
#include "pg/pg.h"

#include "engine/abi.h"
#include "pg/compat.h"
#include "pg/privileges.h"
#include "pg/shmem.h"
#include "pg/startup.h"
#include "store/internal.h"

extern "C" {
#include "commands/dbcommands.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
}

namespace gpuvm {

/* What a row has nothing of is null. */
struct MemoryRow
{
	const char *kind;
	Oid			database;
	Oid			role;
	uint64		bytes;
	const Quota *quota;
	const Quota *database_quota;
	uint64		engine_bytes;
};

static void
put_row(FunctionCallInfo fcinfo, const MemoryRow &row)
{
	ReturnSetInfo *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
	const char *database = OidIsValid(row.database) ? get_database_name(row.database) : NULL;
	const char *role = OidIsValid(row.role) ? GetUserNameFromId(row.role, true) : NULL;
	Datum		values[7] = {};
	bool		nulls[7] = {false, database == NULL, role == NULL, false,
		row.quota == NULL, row.database_quota == NULL, row.engine_bytes == 0};

	values[0] = CStringGetTextDatum(row.kind);
	if (database != NULL)
		values[1] = DirectFunctionCall1(namein, CStringGetDatum(database));
	if (role != NULL)
		values[2] = DirectFunctionCall1(namein, CStringGetDatum(role));
	values[3] = Int64GetDatum(static_cast<int64>(row.bytes));
	if (row.quota != NULL)
		values[4] = Int64GetDatum(static_cast<int64>(row.quota->bytes));
	if (row.database_quota != NULL)
		values[5] = Int64GetDatum(static_cast<int64>(row.database_quota->bytes));
	values[6] = Int64GetDatum(static_cast<int64>(row.engine_bytes));
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* -- tables, by whose they are ------------------------------------------------------ */

/* Of another database the owners are not known: InvalidOid. */
static MemoryRow *
row_of(List **rows, Oid database, Oid role)
{
	ListCell   *lc;
	MemoryRow  *row;

	foreach(lc, *rows)
	{
		row = static_cast<MemoryRow *>(lfirst(lc));
		if (row->database == database && row->role == role)
			return row;
	}
	row = static_cast<MemoryRow *>(palloc0(sizeof(MemoryRow)));
	row->kind = "tables";
	row->database = database;
	row->role = role;
	*rows = lappend(*rows, row);
	return row;
}

static void
add_quotas(List **rows)
{
	const Quota *all_roles = NULL;
	ListCell   *lc;

	foreach(lc, list_quotas())
	{
		const Quota *quota = static_cast<Quota *>(lfirst(lc));

		if (OidIsValid(quota->role))
			row_of(rows, MyDatabaseId, quota->role)->quota = quota;
		else
			all_roles = quota;
	}
	foreach(lc, *rows)
	{
		MemoryRow  *row = static_cast<MemoryRow *>(lfirst(lc));

		if (row->database == MyDatabaseId)
			row->database_quota = all_roles;
	}
}

/* MemoryRow; *use as of when all of them were in memory. */
static List *
list_owners(ArenaUse *use)
{
	List	   *rows = NIL;
	HTAB	   *counted = counted_begin();
	int			count;
	PinnedVersion *versions = registry_pin_all(&count);

	for (int i = 0; i < count; i++)
	{
		Oid			database = versions[i].database;
		Oid			owner = database == MyDatabaseId ? owner_of(versions[i].relid) : InvalidOid;

		row_of(&rows, database, owner)->bytes += count_version(counted, pin_offset(versions[i].pin));
	}
	arena_use(use);
	registry_unpin_all(versions, count);
	add_quotas(&rows);
	return rows;
}

static bool
may_see_row(const MemoryRow *row)
{
	return may_see_all_stats() ||
		(row->database == MyDatabaseId && OidIsValid(row->role) && has_privs_of_role(GetUserId(), row->role));
}

static void
put_rest(FunctionCallInfo fcinfo, const ArenaUse &use, uint64 listed)
{
	const ArenaHeader *header = arena_header();
	const bool	running = header->engine_pid.load() != 0;
	const MemoryRow rows[] = {
		{"imports", InvalidOid, InvalidOid, use.tables - listed, NULL, NULL, 0},
		{"results", InvalidOid, InvalidOid, use.jobs, NULL, NULL, running ? header->result_bytes.load() : 0},
		{"spare", InvalidOid, InvalidOid, use.spare, NULL, NULL, 0},
		{"join indexes", InvalidOid, InvalidOid, 0, NULL, NULL, running ? header->index_bytes.load() : 0},
		{"header", InvalidOid, InvalidOid, use.header, NULL, NULL, 0},
		{"reserve", InvalidOid, InvalidOid, use.reserve, NULL, NULL, 0},
		{"free", InvalidOid, InvalidOid, use.free, NULL, NULL, 0},
	};

	for (const MemoryRow &row : rows)
		put_row(fcinfo, row);
}

}  // namespace gpuvm

using namespace gpuvm;

extern "C" {
PG_FUNCTION_INFO_V1(gpuvm_list_memory);

PGDLLEXPORT Datum
gpuvm_list_memory(PG_FUNCTION_ARGS)
{
	ArenaUse	use;
	uint64		listed = 0;
	List	   *rows;
	ListCell   *lc;

	require_preload();
	InitMaterializedSRF(fcinfo, 0);
	rows = list_owners(&use);
	foreach(lc, rows)
	{
		const MemoryRow *row = static_cast<MemoryRow *>(lfirst(lc));

		listed += row->bytes;
		if (may_see_row(row))
			put_row(fcinfo, *row);
	}
	if (may_see_all_stats())
		put_rest(fcinfo, use, listed);
	return (Datum) 0;
}
}
