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
side_name(Side side, bool logged)
{
	switch (side)
	{
		case Side::Rows:
			return logged ? "tablet_rows" : "tablet_rows_unlogged";
		case Side::Dead:
			return logged ? "tablet_dead" : "tablet_dead_unlogged";
		case Side::Chunks:
			return logged ? "tablet_chunks" : "tablet_chunks_unlogged";
	}
	pg_unreachable();
}

Relation
open_side(Side side, bool logged, LOCKMODE lockmode)
{
	const char *name = side_name(side, logged);
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

	if (index->rd_index->indnkeyatts != 2 || index->rd_index->indkey.values[0] != 1 || index->rd_index->indkey.values[1] != 2)
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

static SideScan
begin_scan(Side side, bool logged, Snapshot snapshot, int nkeys, ScanKey keys)
{
	SideScan	s;

	s.side = open_side(side, logged, AccessShareLock);
	s.index = open_index(s.side);
	s.scan = systable_beginscan_ordered(s.side, s.index, snapshot, nkeys, keys);
	return s;
}

SideScan
begin_side(Side side, bool logged, Oid relid, const int64 *tablet, Snapshot snapshot)
{
	ScanKeyData keys[2];

	ScanKeyInit(&keys[0], SIDE_RELATION, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	if (tablet != NULL)
		ScanKeyInit(&keys[1], SIDE_TABLET, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(*tablet));
	return begin_scan(side, logged, snapshot, tablet != NULL ? 2 : 1, keys);
}

SideScan
begin_chunks(bool logged, int64 tablet, Snapshot snapshot)
{
	ScanKeyData key;

	ScanKeyInit(&key, CHUNK_TABLET, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(tablet));
	return begin_scan(Side::Chunks, logged, snapshot, 1, &key);
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

bool
side_is_null(SideScan *s, HeapTuple tuple, int column)
{
	return heap_attisnull(tuple, column, RelationGetDescr(s->side));
}

Oid
next_relation_of_side(bool logged, Oid relid, Snapshot snapshot)
{
	SideScan	s;
	ScanKeyData key;
	HeapTuple	tuple;
	Oid			found = InvalidOid;

	ScanKeyInit(&key, SIDE_RELATION, BTGreaterStrategyNumber, F_OIDGT, ObjectIdGetDatum(relid));
	s = begin_scan(Side::Rows, logged, snapshot, 1, &key);
	tuple = next_of_side(&s);
	if (tuple != NULL)
		found = DatumGetObjectId(side_value(&s, tuple, SIDE_RELATION));
	end_side(&s);
	return found;
}

SideInsert
begin_insert(Side side, bool logged)
{
	SideInsert	s = {open_side(side, logged, RowExclusiveLock), NIL, NIL};
	List	   *indexes = RelationGetIndexList(s.side);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = open_one_index(s.side, lfirst_oid(lc), RowExclusiveLock);

		s.indexes = lappend(s.indexes, index);
		s.infos = lappend(s.infos, BuildIndexInfo(index));
	}
	list_free(indexes);
	return s;
}

void
insert_side_row(SideInsert *s, Datum *values, bool *nulls, CommandId cid, BulkInsertState bulk)
{
	HeapTuple	tuple = heap_form_tuple(RelationGetDescr(s->side), values, nulls);
	ListCell   *index;
	ListCell   *info;

	/* elsewhere the relation's OID would be another's: no logical replication */
	heap_insert(s->side, tuple, cid, HEAP_INSERT_NO_LOGICAL, bulk);
	forboth(index, s->indexes, info, s->infos)
	{
		if (lfirst_node(IndexInfo, info)->ii_ReadyForInserts)
			(void) index_insert(static_cast<Relation>(lfirst(index)), values, nulls, &tuple->t_self, s->side, UNIQUE_CHECK_NO, false,
								lfirst_node(IndexInfo, info));
	}
	heap_freetuple(tuple);
}

void
end_insert(SideInsert *s)
{
	ListCell   *lc;

	foreach(lc, s->indexes)
		index_close(static_cast<Relation>(lfirst(lc)), NoLock);
	list_free(s->indexes);
	list_free_deep(s->infos);
	table_close(s->side, NoLock);
}

void
insert_into_side(Side side, bool logged, Datum *values, bool *nulls, CommandId cid)
{
	SideInsert	s = begin_insert(side, logged);

	insert_side_row(&s, values, nulls, cid, NULL);
	end_insert(&s);
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
side_bytes(Side which, bool logged, const ItemPointerData *tid, Snapshot snapshot)
{
	Relation	side = open_side(which, logged, AccessShareLock);
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
