/*
 * tablet_catalog.cc: the side tables of tablet tables.
 *
 * What persist says decides where new tablets go; what was written is found in either pair. On a standby, as after a crash, the unlogged pair is empty.
 */
#include "store/tablets.h"

#include "store/file.h"
#include "store/tablet_side.h"

#include <initializer_list>

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

/* The rows of a dead set: their numbers, or a bit for each of the tablet's. */
enum DeadForm : uint32
{
	DEAD_NUMBERS,
	DEAD_BITS,
};

bool
is_tablet_table(Relation rel)
{
	ListCell   *lc;

	if (!is_file_table(rel))
		return false;
	foreach(lc, GetForeignTable(RelationGetRelid(rel))->options)
	{
		if (strcmp(lfirst_node(DefElem, lc)->defname, "filename") == 0)
			return false;
	}
	return true;
}

bool
tablets_persist(Relation rel)
{
	ListCell   *lc;

	foreach(lc, GetForeignTable(RelationGetRelid(rel))->options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		if (strcmp(def->defname, "persist") == 0)
			return defGetBoolean(def);
	}
	return true;
}

/* -- lists --------------------------------------------------------------------------- */

static bool
has_pair(bool logged)
{
	return logged || !RecoveryInProgress();
}

static int
compare_stored(const void *a, const void *b)
{
	int64		x = static_cast<const StoredTablet *>(a)->id;
	int64		y = static_cast<const StoredTablet *>(b)->id;

	return x < y ? -1 : x > y;
}

static int
compare_dead(const void *a, const void *b)
{
	const DeadSet *x = static_cast<const DeadSet *>(a);
	const DeadSet *y = static_cast<const DeadSet *>(b);

	if (x->tablet != y->tablet)
		return x->tablet < y->tablet ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

int
first_dead(const TabletList *list, int64 tablet)
{
	int			lo = 0;
	int			hi = list->ndead;

	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;

		if (list->dead[mid].tablet < tablet)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void
list_pair(TabletList *list, Oid relid, bool logged, Snapshot snapshot)
{
	SideScan	s = begin_side(Side::Rows, logged, relid, NULL, snapshot);
	HeapTuple	tuple;

	while ((tuple = next_of_side(&s)) != NULL)
	{
		StoredTablet *t;

		if ((list->ntablets & (list->ntablets - 1)) == 0)
			list->tablets = static_cast<StoredTablet *>(
				list->tablets == NULL ? palloc(sizeof(StoredTablet))
				: repalloc_huge(list->tablets, sizeof(StoredTablet) * list->ntablets * 2));
		t = &list->tablets[list->ntablets++];
		t->id = DatumGetInt64(side_value(&s, tuple, SIDE_TABLET));
		t->nrows = static_cast<uint32>(DatumGetInt32(side_value(&s, tuple, SIDE_NROWS)));
		t->logged = logged;
		t->tid = tuple->t_self;
		t->chunked = side_is_null(&s, tuple, SIDE_BYTES);
		t->size = static_cast<Size>(DatumGetInt32(side_value(&s, tuple, ROWS_SIZE)));
		t->image_size = static_cast<Size>(DatumGetInt32(side_value(&s, tuple, ROWS_IMAGE_SIZE)));
		list->rows += t->nrows;
		list->size += t->image_size;
	}
	end_side(&s);
	s = begin_side(Side::Dead, logged, relid, NULL, snapshot);
	while ((tuple = next_of_side(&s)) != NULL)
	{
		DeadSet    *d;

		if ((list->ndead & (list->ndead - 1)) == 0)
			list->dead = static_cast<DeadSet *>(
				list->dead == NULL ? palloc(sizeof(DeadSet)) : repalloc_huge(list->dead, sizeof(DeadSet) * list->ndead * 2));
		d = &list->dead[list->ndead++];
		d->tablet = DatumGetInt64(side_value(&s, tuple, SIDE_TABLET));
		d->id = DatumGetInt64(side_value(&s, tuple, DEAD_ID));
		d->nrows = static_cast<uint32>(DatumGetInt32(side_value(&s, tuple, SIDE_NROWS)));
		d->tid = tuple->t_self;
		d->logged = logged;
		list->rows -= d->nrows;
	}
	end_side(&s);
}

TabletList
list_tablets(Relation rel, Snapshot snapshot)
{
	TabletList	list = {};

	if (RecoveryInProgress() && !tablets_persist(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary or unlogged relations during recovery")));
	store_pending(RelationGetRelid(rel), snapshot);
	for (bool logged : BOTH)
		if (has_pair(logged))
			list_pair(&list, RelationGetRelid(rel), logged, snapshot);
	if (list.ntablets > 1)
		qsort(list.tablets, list.ntablets, sizeof(StoredTablet), compare_stored);
	/* qsort() sees at once where they are in order already */
	if (list.ndead > 1)
		qsort(list.dead, list.ndead, sizeof(DeadSet), compare_dead);
	return list;
}

bytea *
stored_image(const StoredTablet *tablet, Snapshot snapshot)
{
	if (tablet->chunked)
		return read_chunks(tablet->id, tablet->logged, tablet->image_size);
	return side_bytes(Side::Rows, tablet->logged, &tablet->tid, snapshot);
}

/* -- dead sets ------------------------------------------------------------------------- */

static void
add_rows_of(const bytea *bytes, bits8 *bits)
{
	const uint32 *form = reinterpret_cast<const uint32 *>(VARDATA(bytes));
	Size		size = VARSIZE(bytes) - VARHDRSZ - sizeof(uint32);

	if (*form == DEAD_BITS)
	{
		const bits8 *from = reinterpret_cast<const bits8 *>(form + 1);

		for (Size i = 0; i < size; i++)
			bits[i] |= from[i];
		return;
	}
	for (Size i = 1; i <= size / sizeof(uint32); i++)
		bits[form[i] / 8] |= 1 << form[i] % 8;
}

void
add_dead_rows(const DeadSet *set, Snapshot snapshot, bits8 *bits)
{
	bytea	   *bytes = side_bytes(Side::Dead, set->logged, &set->tid, snapshot);

	add_rows_of(bytes, bits);
	pfree(bytes);
}

void
store_tablet(Oid relid, bool logged, uint32 nrows, Size size, bytea *image, CommandId cid, BulkInsertState *bulk)
{
	const int64 id = next_id();
	Datum		values[] = {ObjectIdGetDatum(relid), Int64GetDatum(id), Int32GetDatum(static_cast<int32>(nrows)),
							PointerGetDatum(image), Int32GetDatum(static_cast<int32>(VARSIZE(image))),
							Int32GetDatum(static_cast<int32>(size))};
	bool		nulls[ROWS_SIZE] = {};

	nulls[SIDE_BYTES - 1] = !image_is_inline(image);
	if (nulls[SIDE_BYTES - 1])
		store_chunks(id, logged, image, cid, bulk);
	insert_into_side(Side::Rows, logged, values, nulls, cid);
}

void
store_dead(Oid relid, const StoredTablet *tablet, const bits8 *bits, uint32 count, CommandId cid)
{
	Size		nbits = (tablet->nrows + 7) / 8;
	bool		numbers = count * sizeof(uint32) < nbits;
	Size		size = VARHDRSZ + sizeof(uint32) + (numbers ? count * sizeof(uint32) : nbits);
	bytea	   *bytes = static_cast<bytea *>(palloc(size));
	uint32	   *form = reinterpret_cast<uint32 *>(VARDATA(bytes));
	Datum		values[] = {ObjectIdGetDatum(relid), Int64GetDatum(tablet->id), Int32GetDatum(static_cast<int32>(count)),
							PointerGetDatum(bytes), Int64GetDatum(next_id())};
	bool		nulls[DEAD_ID] = {};

	SET_VARSIZE(bytes, size);
	*form = numbers ? DEAD_NUMBERS : DEAD_BITS;
	if (!numbers)
		memcpy(form + 1, bits, nbits);
	else
	{
		for (uint32 row = 0; row < tablet->nrows; row++)
			if (bits[row / 8] >> row % 8 & 1)
				*++form = row;
	}
	insert_into_side(Side::Dead, tablet->logged, values, nulls, cid);
	pfree(bytes);
}

/* -- two writers ------------------------------------------------------------------------- */

[[noreturn]] static void
raise_concurrent(const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not serialize access due to concurrent %s", what),
			 errdetail("Rows of tablet tables are not looked at again when another transaction has changed them."),
			 errhint("The transaction might succeed if retried.")));
	pg_unreachable();
}

void
lock_tablet(const StoredTablet *tablet, CommandId cid)
{
	Relation	side = open_side(Side::Rows, tablet->logged, RowExclusiveLock);
	HeapTupleData tuple = {};
	TM_FailureData failure;
	Buffer		buffer;
	TM_Result	result;

	tuple.t_self = tablet->tid;
	result = heap_lock_tuple(side, &tuple, cid, LockTupleNoKeyExclusive, LockWaitBlock, false, &buffer, &failure);
	ReleaseBuffer(buffer);
	table_close(side, NoLock);
	if (result != TM_Ok)
		raise_concurrent("delete");
}

void
check_not_dead(Oid relid, const StoredTablet *tablet, const bits8 *bits)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	Size		nbits = (tablet->nrows + 7) / 8;
	bits8	   *others = static_cast<bits8 *>(palloc(nbits));
	SideScan	s = begin_side(Side::Dead, tablet->logged, relid, &tablet->id, snapshot);
	HeapTuple	tuple;

	while ((tuple = next_of_side(&s)) != NULL)
	{
		bytea	   *bytes = DatumGetByteaPCopy(side_value(&s, tuple, SIDE_BYTES));

		memset(others, 0, nbits);
		add_rows_of(bytes, others);
		pfree(bytes);
		for (Size i = 0; i < nbits; i++)
		{
			/* the statement would not have read it, had its snapshot seen that */
			if ((others[i] & bits[i]) == 0)
				continue;
			if (!TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data)))
				raise_concurrent("update");
			ereport(ERROR,
					(errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
					 errmsg("a row to be changed was already modified by an operation triggered by the current command"),
					 errhint("Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows.")));
		}
	}
	end_side(&s);
	UnregisterSnapshot(snapshot);
	pfree(others);
}

void
remove_tablets(Oid relid)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());

	for (bool logged : BOTH)
	{
		for (Side side : {Side::Rows, Side::Dead})
		{
			SideScan	s;
			HeapTuple	tuple;

			/* DROP EXTENSION may have taken it already */
			if (!OidIsValid(side_oid(side_name(side, logged))))
				continue;
			s = begin_side(side, logged, relid, NULL, snapshot);
			LockRelationOid(RelationGetRelid(s.side), RowExclusiveLock);
			while ((tuple = next_of_side(&s)) != NULL)
			{
				if (side == Side::Rows && side_is_null(&s, tuple, SIDE_BYTES))
					delete_chunks(DatumGetInt64(side_value(&s, tuple, SIDE_TABLET)), logged);
				simple_heap_delete(s.side, &tuple->t_self);
			}
			end_side(&s);
		}
	}
	UnregisterSnapshot(snapshot);
}

void
delete_tablets(const TabletList *list)
{
	for (int i = 0; i < list->ntablets; i++)
	{
		StoredTablet *tablet = &list->tablets[i];
		Relation	rows = open_side(Side::Rows, tablet->logged, RowExclusiveLock);
		Relation	dead = open_side(Side::Dead, tablet->logged, RowExclusiveLock);

		CHECK_FOR_INTERRUPTS();
		if (tablet->chunked)
			delete_chunks(tablet->id, tablet->logged);
		simple_heap_delete(rows, &tablet->tid);
		for (int d = first_dead(list, tablet->id); d < list->ndead && list->dead[d].tablet == tablet->id; d++)
			simple_heap_delete(dead, &list->dead[d].tid);
		table_close(dead, NoLock);
		table_close(rows, NoLock);
	}
}

bool
lock_side_tables_if_free(void)
{
	for (bool logged : BOTH)
		for (Side side : SIDES)
			if (!ConditionalLockRelationOid(side_oid(side_name(side, logged)), RowExclusiveLock))
				return false;
	return true;
}

List *
stored_relations(Snapshot snapshot)
{
	List	   *relations = NIL;

	for (bool logged : BOTH)
	{
		Oid			relid = InvalidOid;

		while (has_pair(logged) && OidIsValid(relid = next_relation_of_side(logged, relid, snapshot)))
			relations = lappend_oid(relations, relid);
	}
	list_sort(relations, list_oid_cmp);
	list_deduplicate_oid(relations);
	return relations;
}

}  // namespace gpuvm
