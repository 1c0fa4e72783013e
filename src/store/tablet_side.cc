/*
 * tablet_side.cc: one side table.
 *
 * They are read and written below SQL, without looking at privileges, which users have none of.
 */
#include "store/tablet_side.h"

#include "store/internal.h"

extern "C" {
#include "access/detoast.h"
#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/skey.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "storage/bufmgr.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/fmgrprotos.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
}

namespace gpuvm {

Oid
side_oid(const char *name)
{
	Oid			schema = get_namespace_oid("gpuvm", true);

	return OidIsValid(schema) ? get_relname_relid(name, schema) : InvalidOid;
}

const char *
side_name(bool dead, bool logged)
{
	if (dead)
		return logged ? "tablet_dead" : "tablet_dead_unlogged";
	return logged ? "tablet_rows" : "tablet_rows_unlogged";
}

Relation
open_side(bool dead, bool logged, LOCKMODE lockmode)
{
	const char *name = side_name(dead, logged);
	Oid			relid = side_oid(name);

	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table gpuvm.%s does not exist", name),
				 errhint("Extension gpuvm is older than its library, or not there.")));
	return table_open(relid, lockmode);
}

static Relation
open_one_index(Relation side, Oid relid, LOCKMODE lockmode)
{
	Relation	index = index_open(relid, lockmode);

	if (index->rd_index->indnkeyatts != 2 || index->rd_index->indkey.values[0] != SIDE_RELATION ||
		index->rd_index->indkey.values[1] != SIDE_TABLET)
		elog(ERROR, "unexpected definition of table gpuvm.%s", RelationGetRelationName(side));
	return index;
}

/* One that is complete. REINDEX CONCURRENTLY has others beside it for a while, or leaves one when it fails. */
static Relation
open_index(Relation side)
{
	List	   *indexes = RelationGetIndexList(side);
	Relation	index = NULL;
	ListCell   *lc;

	foreach(lc, indexes)
	{
		index = open_one_index(side, lfirst_oid(lc), AccessShareLock);
		if (index->rd_index->indisvalid)
			break;
		index_close(index, NoLock);
		index = NULL;
	}
	if (index == NULL)
		elog(ERROR, "table gpuvm.%s has no index", RelationGetRelationName(side));
	list_free(indexes);
	return index;
}

static void
insert_into_indexes(Relation side, HeapTuple tuple, Datum *values, bool *nulls)
{
	List	   *indexes = RelationGetIndexList(side);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = open_one_index(side, lfirst_oid(lc), RowExclusiveLock);

		if (index->rd_index->indisready)
			(void) index_insert(index, values, nulls, &tuple->t_self, side, UNIQUE_CHECK_NO, false, BuildIndexInfo(index));
		index_close(index, NoLock);
	}
	list_free(indexes);
}

SideScan
begin_side(bool dead, bool logged, Oid relid, const int64 *tablet, Snapshot snapshot)
{
	SideScan	s;
	ScanKeyData keys[2];

	s.side = open_side(dead, logged, AccessShareLock);
	s.index = open_index(s.side);
	ScanKeyInit(&keys[0], SIDE_RELATION, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	if (tablet != NULL)
		ScanKeyInit(&keys[1], SIDE_TABLET, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(*tablet));
	s.scan = systable_beginscan_ordered(s.side, s.index, snapshot, tablet != NULL ? 2 : 1, keys);
	return s;
}

HeapTuple
next_of_side(SideScan *s)
{
	return systable_getnext_ordered(s->scan, ForwardScanDirection);
}

void
end_side(SideScan *s)
{
	systable_endscan_ordered(s->scan);
	index_close(s->index, NoLock);
	table_close(s->side, NoLock);
}

Datum
side_value(SideScan *s, HeapTuple tuple, int column)
{
	bool		isnull;

	return heap_getattr(tuple, column, RelationGetDescr(s->side), &isnull);
}

Oid
next_relation_of_side(bool logged, Oid relid, Snapshot snapshot)
{
	SideScan	s;
	ScanKeyData key;
	HeapTuple	tuple;
	Oid			found = InvalidOid;

	s.side = open_side(false, logged, AccessShareLock);
	s.index = open_index(s.side);
	ScanKeyInit(&key, SIDE_RELATION, BTGreaterStrategyNumber, F_OIDGT, ObjectIdGetDatum(relid));
	s.scan = systable_beginscan_ordered(s.side, s.index, snapshot, 1, &key);
	tuple = next_of_side(&s);
	if (tuple != NULL)
		found = DatumGetObjectId(side_value(&s, tuple, SIDE_RELATION));
	end_side(&s);
	return found;
}

void
insert_into_side(bool dead, bool logged, Datum *values, CommandId cid)
{
	Relation	side = open_side(dead, logged, RowExclusiveLock);
	bool		nulls[DEAD_ID] = {};
	HeapTuple	tuple = heap_form_tuple(RelationGetDescr(side), values, nulls);

	/* elsewhere the relation's OID would be another's: no logical replication */
	heap_insert(side, tuple, cid, HEAP_INSERT_NO_LOGICAL, NULL);
	insert_into_indexes(side, tuple, values, nulls);
	heap_freetuple(tuple);
	table_close(side, NoLock);
}

/*
 * nextval() would make this the sequence that the user's lastval() asks; setval() does not. Numbers are given under a lock of
 * the store's, and as with nextval() whatever becomes of the transaction.
 */
int64
next_id(void)
{
	const Oid	ids = side_oid("tablet_ids");
	LOCKTAG		tag;
	Oid			user;
	int			context;
	int64		id = 1;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, ids, 3, STORE_LOCK);
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID, context | SECURITY_LOCAL_USERID_CHANGE);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);

	LOCAL_FCINFO(last, 1);

	InitFunctionCallInfoData(*last, NULL, 1, InvalidOid, NULL, NULL);
	last->args[0] = NullableDatum{ObjectIdGetDatum(ids), false};

	const Datum value = pg_sequence_last_value(last);

	if (!last->isnull)
		id = DatumGetInt64(value) + 1;
	(void) DirectFunctionCall2(setval_oid, ObjectIdGetDatum(ids), Int64GetDatum(id));
	LockRelease(&tag, ExclusiveLock, false);
	SetUserIdAndSecContext(user, context);
	return id;
}

bytea *
side_bytes(bool dead, bool logged, const ItemPointerData *tid, Snapshot snapshot)
{
	Relation	side = open_side(dead, logged, AccessShareLock);
	TupleTableSlot *slot = table_slot_create(side, NULL);
	ItemPointerData at = *tid;
	bytea	   *bytes;
	bool		isnull;

	if (!table_tuple_fetch_row_version(side, &at, snapshot, slot))
		elog(ERROR, "row (%u,%u) of table gpuvm.%s has gone", ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid),
			 RelationGetRelationName(side));
	bytes = DatumGetByteaPCopy(slot_getattr(slot, SIDE_BYTES, &isnull));
	ExecDropSingleTupleTableSlot(slot);
	table_close(side, NoLock);
	return bytes;
}

}  // namespace gpuvm
