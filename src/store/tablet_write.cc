/*
 * tablet_write.cc: what a statement does to a tablet table.
 *
 * Its rows, and the rows that it deletes, are collected and written as of the statement's own command, whenever that happens.
 * So a later command sees them if they are written before it reads, and the statement itself never does.
 */
#include "store/tablet_image.h"
#include "store/tablets.h"

#include "pg/shmem.h"
#include "store/catalog.h"
#include "store/refresher.h"

extern "C" {
#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

namespace gpuvm {

/* A tablet in which the statement has deleted rows. */
struct Target
{
	uint32		number;			/* lower half of the tablet's: hash key */
	StoredTablet tablet;
	bits8	   *dead;			/* by this statement; NULL: none yet */
	bits8	   *written;		/* those of them that are stored; NULL: none */
	uint32		pending;		/* that are not */
};

struct TabletWriter
{
	TabletWriter *next;
	int			users;			/* parts of the statement that change the table */
	Oid			relid;
	Relation	rel;
	bool		logged;
	EState	   *estate;
	Snapshot	snapshot;
	CommandId	cid;
	SubTransactionId subid;
	ImageBuilder *builder;
	BulkInsertStateData *bulk;	/* as store_tablet() has it */
	HTAB	   *targets;		/* by number: tablets that the snapshot sees; NULL until a row is deleted */
	uint64		pending;		/* deleted rows that are not stored */
	MemoryContext context;
	MemoryContextCallback at_end;
};

static TabletWriter *writers = NULL;
static ExecutorFinish_hook_type next_executor_finish = NULL;
static object_access_hook_type next_object_access = NULL;

/* Also when the statement fails. */
static void
forget_writer(void *arg)
{
	TabletWriter **link = &writers;

	while (*link != arg)
		link = &(*link)->next;
	*link = (*link)->next;
}

TabletWriter *
writer_open(Relation rel, EState *estate, Snapshot snapshot, CommandId cid)
{
	MemoryContext context;
	MemoryContext old;
	TabletWriter *w;

	for (w = writers; w != NULL; w = w->next)
	{
		if (w->estate == estate && w->relid == RelationGetRelid(rel))
		{
			w->users++;
			return w;
		}
	}
	context = AllocSetContextCreate(estate->es_query_cxt, "gpuvm tablet writer", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	w = static_cast<TabletWriter *>(palloc0(sizeof(TabletWriter)));
	/* without it a DROP would leave rows behind */
	require_preload();
	w->users = 1;
	w->relid = RelationGetRelid(rel);
	w->rel = rel;
	w->logged = tablets_persist(rel);
	w->estate = estate;
	w->snapshot = snapshot;
	w->cid = cid;
	w->subid = GetCurrentSubTransactionId();
	w->context = context;
	w->builder = image_builder(RelationGetDescr(rel));
	w->next = writers;
	writers = w;
	w->at_end.func = forget_writer;
	w->at_end.arg = w;
	MemoryContextRegisterResetCallback(context, &w->at_end);
	MemoryContextSwitchTo(old);
	return w;
}

/* -- storing ----------------------------------------------------------------------- */

static void
store_rows(TabletWriter *w)
{
	uint32		nrows = image_rows(w->builder);
	Size		size = image_values_size(w->builder);

	if (nrows > 0)
		store_tablet(w->relid, w->logged, nrows, size, image_take(w->builder), w->cid, &w->bulk);
}

static int
compare_targets(const void *a, const void *b)
{
	int64		x = (*static_cast<Target *const *>(a))->tablet.id;
	int64		y = (*static_cast<Target *const *>(b))->tablet.id;

	return x < y ? -1 : x > y;
}

static void
store_dead_of(TabletWriter *w, Target *t)
{
	Size		nbits = (t->tablet.nrows + 7) / 8;
	bits8	   *fresh = static_cast<bits8 *>(palloc(nbits));

	if (t->written == NULL)
		t->written = static_cast<bits8 *>(MemoryContextAllocZero(w->context, nbits));
	for (Size i = 0; i < nbits; i++)
		fresh[i] = t->dead[i] & ~t->written[i];
	lock_tablet(&t->tablet, w->cid);
	check_not_dead(w->relid, &t->tablet, fresh);
	store_dead(w->relid, &t->tablet, fresh, t->pending, w->cid);
	memcpy(t->written, t->dead, nbits);
	t->pending = 0;
	pfree(fresh);
}

/* In the order of tablets, so that writers do not wait for each other in a circle. */
static void
store_deletions(TabletWriter *w)
{
	HASH_SEQ_STATUS scan;
	Target	  **sorted;
	Target	   *t;
	int			count = 0;

	if (w->pending == 0)
		return;
	sorted = static_cast<Target **>(palloc_extended(sizeof(Target *) * hash_get_num_entries(w->targets), MCXT_ALLOC_HUGE));
	hash_seq_init(&scan, w->targets);
	while ((t = static_cast<Target *>(hash_seq_search(&scan))) != NULL)
	{
		if (t->pending > 0)
			sorted[count++] = t;
	}
	qsort(sorted, count, sizeof(Target *), compare_targets);
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		store_dead_of(w, sorted[i]);
	}
	w->pending = 0;
	pfree(sorted);
}

static void
store_all(TabletWriter *w)
{
	MemoryContext old = MemoryContextSwitchTo(w->context);

	store_deletions(w);
	store_rows(w);
	MemoryContextSwitchTo(old);
}

void
store_pending(Oid relid, Snapshot snapshot)
{
	for (TabletWriter *w = writers; w != NULL; w = w->next)
	{
		if (w->relid != relid || w->cid >= snapshot->curcid || (image_rows(w->builder) == 0 && w->pending == 0))
			continue;
		/* what is written here would go with this subtransaction */
		if (w->subid != GetCurrentSubTransactionId())
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot read table \"%s\" in a subtransaction of a statement that changes it", RelationGetRelationName(w->rel)),
					 errhint("Read it outside of the block with the EXCEPTION clause.")));
		store_all(w);
	}
}

/* -- rows ----------------------------------------------------------------------------- */

void
writer_add(TabletWriter *w, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(w->context);

	slot_getallattrs(slot);
	image_add(w->builder, slot->tts_values, slot->tts_isnull);
	if (image_is_full(w->builder))
		store_rows(w);
	MemoryContextSwitchTo(old);
}

static void
find_targets(TabletWriter *w)
{
	HASHCTL		control = {};
	TabletList	list = list_tablets(w->rel, w->snapshot);

	control.keysize = sizeof(uint32);
	control.entrysize = sizeof(Target);
	control.hcxt = w->context;
	w->targets = hash_create("gpuvm tablets", Max(list.ntablets, 16), &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	for (int i = 0; i < list.ntablets; i++)
	{
		uint32		number = static_cast<uint32>(list.tablets[i].id);
		bool		found;
		Target	   *t = static_cast<Target *>(hash_search(w->targets, &number, HASH_ENTER, &found));

		/* four billion tablets later */
		if (found)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("rows of table \"%s\" can no longer be told apart by their ctid", RelationGetRelationName(w->rel)),
					 errhint("Copy the rows into a new table.")));
		t->tablet = list.tablets[i];
		t->dead = t->written = NULL;
		t->pending = 0;
	}
}

bool
writer_delete(TabletWriter *w, ItemPointer ctid)
{
	MemoryContext old = MemoryContextSwitchTo(w->context);
	uint32		number = ItemPointerGetBlockNumberNoCheck(ctid);
	uint32		row = ItemPointerGetOffsetNumberNoCheck(ctid) - 1u;
	Target	   *t;
	bool		fresh;

	if (w->targets == NULL)
		find_targets(w);
	t = static_cast<Target *>(hash_search(w->targets, &number, HASH_FIND, NULL));
	if (t == NULL || row >= t->tablet.nrows)
		elog(ERROR, "table \"%s\" has no row (%u,%u)", RelationGetRelationName(w->rel), number, row + 1);
	if (t->dead == NULL)
		t->dead = static_cast<bits8 *>(palloc0((t->tablet.nrows + 7) / 8));
	fresh = (t->dead[row / 8] >> row % 8 & 1) == 0;
	if (fresh)
	{
		t->dead[row / 8] |= 1 << row % 8;
		t->pending++;
		w->pending++;
	}
	MemoryContextSwitchTo(old);
	return fresh;
}

void
writer_close(TabletWriter *w)
{
	/* there may be something to compact */
	refresher_mark_at_commit();
	store_all(w);
	if (--w->users == 0)
		MemoryContextDelete(w->context);
}

/* -- hooks ------------------------------------------------------------------------------ */

/* AFTER triggers may read in subtransactions, which is too late to store what was collected. */
static void
tablets_executor_finish(QueryDesc *query)
{
	for (TabletWriter *w = writers; w != NULL; w = w->next)
	{
		if (w->estate == query->estate)
			store_all(w);
	}
	if (next_executor_finish != NULL)
		next_executor_finish(query);
	else
		standard_ExecutorFinish(query);
}

static void
tablets_object_access(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id, void *arg)
{
	if (next_object_access != NULL)
		next_object_access(access, class_id, object_id, sub_id, arg);
	if (access == OAT_DROP && class_id == RelationRelationId && sub_id == 0 && !IsBinaryUpgrade &&
		get_rel_relkind(object_id) == RELKIND_FOREIGN_TABLE && catalog_exists())
		remove_tablets(object_id);
}

void
tablets_install(void)
{
	next_executor_finish = ExecutorFinish_hook;
	ExecutorFinish_hook = tablets_executor_finish;
	next_object_access = object_access_hook;
	object_access_hook = tablets_object_access;
}

}  // namespace gpuvm
