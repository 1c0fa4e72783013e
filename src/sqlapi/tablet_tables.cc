/* tablet_tables.cc: gpuvm.compact(), and what is behind gpuvm.tablet_tables. */
#include "pg/compat.h"
#include "pg/privileges.h"
#include "pg/shmem.h"
#include "sqlapi/tables.h"
#include "store/tablets.h"

extern "C" {
#include "access/relation.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"
}

namespace gpuvm {

static bool
is_tablet_relation(Relation rel)
{
	return rel->rd_rel->relkind == RELKIND_FOREIGN_TABLE && is_tablet_table(rel);
}

/* Those of its partitions that are tablet tables. */
static uint64
compact_partitions(Relation parent)
{
	uint64		rows = 0;
	ListCell   *lc;

	foreach(lc, find_all_inheritors(RelationGetRelid(parent), AccessShareLock, NULL))
	{
		Relation	child = try_relation_open(lfirst_oid(lc), NoLock);

		if (child == NULL)
			continue;
		if (is_tablet_relation(child))
			rows += compact_table(child);
		relation_close(child, NoLock);
	}
	return rows;
}

}  // namespace gpuvm

using namespace gpuvm;

extern "C" {
PG_FUNCTION_INFO_V1(gpuvm_compact);
PG_FUNCTION_INFO_V1(gpuvm_list_tablet_tables);

PGDLLEXPORT Datum
gpuvm_compact(PG_FUNCTION_ARGS)
{
	Relation	rel;
	uint64		rows;

	require_preload();
	PreventCommandIfReadOnly("gpuvm.compact()");
	PreventCommandDuringRecovery("gpuvm.compact()");
	rel = open_owned(PG_GETARG_OID(0));
	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		rows = compact_partitions(rel);
	else if (is_tablet_relation(rel))
		rows = compact_table(rel);
	else
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a tablet table", RelationGetRelationName(rel)),
				 errdetail("Tablet tables are foreign tables of gpuvm_fdw without the option \"filename\".")));
	relation_close(rel, NoLock);
	PG_RETURN_INT64(static_cast<int64>(rows));
}

PGDLLEXPORT Datum
gpuvm_list_tablet_tables(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
	ListCell   *lc;

	require_preload();
	InitMaterializedSRF(fcinfo, 0);
	foreach(lc, stored_relations(GetActiveSnapshot()))
	{
		Oid			relid = lfirst_oid(lc);
		Relation	rel = open_readable(relid);

		/* on a standby the rows of the others are not there */
		if (rel != NULL && is_tablet_relation(rel) && (tablets_persist(rel) || !RecoveryInProgress()))
		{
			TabletList	list = list_tablets(rel, GetActiveSnapshot());
			uint64		dead = 0;
			bool		nulls[6] = {};

			for (int i = 0; i < list.ndead; i++)
				dead += list.dead[i].nrows;

			Datum		values[] = {ObjectIdGetDatum(relid), Int64GetDatum(list.ntablets), Int64GetDatum(static_cast<int64>(list.rows)),
									Int64GetDatum(static_cast<int64>(dead)), Int64GetDatum(list.ndead), Int64GetDatum(static_cast<int64>(list.size))};

			nulls[5] = !may_see_all_rows(relid);

			tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
		}
		if (rel != NULL)
			relation_close(rel, AccessShareLock);
	}
	return (Datum) 0;
}
}
