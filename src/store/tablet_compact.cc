/*
 * tablet_compact.cc: small stored tablets become one, and deleted rows go.
 *
 * What is done is a DELETE of side rows and an INSERT of others in one transaction, so every snapshot sees the old tablets or the
 * new ones, and recovery, standbys and prepared transactions are the heap's matter. Nobody else may have changed rows that the
 * newest snapshot does not see, or change some of the old tablets: the table is locked against writers. One whose snapshot is older
 * finds the old tablet gone, which is 40001. So the background worker gives way to whoever has the table locked in whatever way, waits
 * for no lock, and lets go of its own after some megabytes.
 */
#include "store/internal.h"

#include "pg/settings.h"
#include "store/catalog.h"
#include "store/refresher.h"
#include "store/tablet_image.h"
#include "store/tablets.h"

extern "C" {
#include "access/relation.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "commands/tablecmds.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
}

namespace gpuvm {

/* What the worker does not find worth its while: fewer small tablets, or deleted rows in less than this part and fewer sets. */
constexpr int FEW_TABLETS = 8;
constexpr uint32 DEAD_PART = 4;
constexpr uint32 MANY_SETS = 32;

/*
 * A small tablet that is larger than so many times all smaller ones together waits for more of them. So what becomes of a row's tablet
 * is a quarter larger at least, and each row is copied as often as the logarithm of the rows says, however often the worker comes.
 */
constexpr double LARGER_THAN_REST = 4;

/* Of images, in one transaction of the worker. */
constexpr double BYTES_AT_ONCE = 4.0 * IMAGE_ENOUGH;

/* A worker looks whether somebody waits after so many rows. */
constexpr uint64 LOOK_ROWS = 1024;

/* -- which ------------------------------------------------------------------------------ */

struct Wear
{
	uint32		dead;			/* rows */
	uint32		sets;
};

static Wear
wear_of(const TabletList *list, const StoredTablet *tablet)
{
	Wear		wear = {};

	for (int d = first_dead(list, tablet->id); d < list->ndead && list->dead[d].tablet == tablet->id; d++)
	{
		wear.dead += list->dead[d].nrows;
		wear.sets++;
	}
	return wear;
}

static double
live_size(const StoredTablet *tablet, const Wear &wear)
{
	return static_cast<double>(tablet->size) * (tablet->nrows - wear.dead) / Max(tablet->nrows, 1);
}

static bool
is_worn(const StoredTablet *tablet, const Wear &wear, bool thorough)
{
	return wear.dead > 0 && (thorough || wear.dead >= tablet->nrows / DEAD_PART || wear.sets >= MANY_SETS);
}

static bool
is_small(const StoredTablet *tablet, const Wear &wear)
{
	return tablet->nrows - wear.dead <= IMAGE_MAX_ROWS / 2 && live_size(tablet, wear) <= IMAGE_ENOUGH / 2;
}

/* A tablet that may be replaced. */
struct Candidate
{
	int			at;				/* in the list */
	double		bytes;			/* that are alive */
};

static int
compare_bytes(const void *a, const void *b)
{
	double		x = static_cast<const Candidate *>(a)->bytes;
	double		y = static_cast<const Candidate *>(b)->bytes;

	return x < y ? -1 : x > y;
}

/* How many of the small ones, the smallest first, are worth being put together with `bytes` of others. */
static int
count_together(const Candidate *small, int nsmall, double bytes)
{
	int			count = 0;

	for (int i = 0; i < nsmall; i++)
	{
		if (small[i].bytes <= LARGER_THAN_REST * bytes)
			count = i + 1;
		bytes += small[i].bytes;
	}
	return count;
}

/* Those of one pair of side tables that are to be replaced, with all dead sets. thorough: as far as there is anything to gain. */
static TabletList
choose_tablets(const TabletList *list, bool logged, bool thorough)
{
	TabletList	chosen = *list;
	Candidate  *small = static_cast<Candidate *>(palloc_extended(sizeof(Candidate) * Max(list->ntablets, 1), MCXT_ALLOC_HUGE));
	bool	   *replaced = static_cast<bool *>(palloc_extended(Max(list->ntablets, 1), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
	int			nworn = 0;
	int			nsmall = 0;
	double		bytes = 0;

	for (int i = 0; i < list->ntablets; i++)
	{
		const StoredTablet *tablet = &list->tablets[i];
		Wear		wear = wear_of(list, tablet);

		if (tablet->logged != logged)
			continue;
		if (is_worn(tablet, wear, thorough))
		{
			replaced[i] = thorough || bytes < BYTES_AT_ONCE;
			bytes += live_size(tablet, wear);
			nworn++;
		}
		else if (is_small(tablet, wear))
			small[nsmall++] = Candidate{i, live_size(tablet, wear)};
	}
	qsort(small, nsmall, sizeof(Candidate), compare_bytes);
	if (!thorough)
		nsmall = count_together(small, nsmall, bytes);
	if (nworn + nsmall < (thorough ? 2 : FEW_TABLETS))
		nsmall = 0;
	for (int i = 0; i < nsmall && (thorough || bytes < BYTES_AT_ONCE); i++)
	{
		replaced[small[i].at] = true;
		bytes += small[i].bytes;
	}
	chosen.tablets = static_cast<StoredTablet *>(palloc_extended(sizeof(StoredTablet) * Max(list->ntablets, 1), MCXT_ALLOC_HUGE));
	chosen.ntablets = 0;
	for (int i = 0; i < list->ntablets; i++)
		if (replaced[i])
			chosen.tablets[chosen.ntablets++] = list->tablets[i];
	return chosen;
}

/* -- how ---------------------------------------------------------------------------------- */

static void
store_image(Relation rel, bool logged, ImageBuilder *builder, BulkInsertStateData **bulk)
{
	uint32		nrows = image_rows(builder);
	Size		size = image_values_size(builder);

	if (nrows > 0)
		store_tablet(RelationGetRelid(rel), logged, nrows, size, image_take(builder), GetCurrentCommandId(true), bulk);
}

/*
 * The rows of these tablets into new ones; how many. A worker, who is not thorough, looks for waiters before it writes, too: where a
 * table is written to all the time it would write megabytes at each visit, all for nothing.
 */
static uint64
copy_rows(Relation rel, Snapshot snapshot, bool logged, bool thorough, const TabletList &list)
{
	int			natts = RelationGetDescr(rel)->natts;
	Datum	   *values = static_cast<Datum *>(palloc(sizeof(Datum) * Max(natts, 1)));
	bool	   *nulls = static_cast<bool *>(palloc(sizeof(bool) * Max(natts, 1)));
	ImageBuilder *builder = image_builder(RelationGetDescr(rel));
	TabletReader *reader = tablets_open_list(rel, snapshot, NULL, list);
	BulkInsertStateData *bulk = NULL;
	uint64		rows = 0;

	while (tablets_next(reader, values, nulls))
	{
		bool		full;

		image_add(builder, values, nulls);
		full = image_is_full(builder);
		if ((full || rows % LOOK_ROWS == 0) && !thorough)
			worker_gives_way(rel, ShareRowExclusiveLock);
		if (full)
			store_image(rel, logged, builder, &bulk);
		rows++;
	}
	store_image(rel, logged, builder, &bulk);
	tablets_close(reader);
	return rows;
}

/* True if something was done. */
static bool
compact_pair(Relation rel, bool logged, bool thorough, uint64 *rows)
{
	Snapshot	snapshot = GetActiveSnapshot();
	TabletList	list = list_tablets(rel, snapshot);
	TabletList	chosen = choose_tablets(&list, logged, thorough);

	if (chosen.ntablets == 0)
		return false;
	*rows += copy_rows(rel, snapshot, logged, thorough, chosen);
	delete_tablets(&chosen);
	CommandCounterIncrement();
	return true;
}

/* With the table locked, by a snapshot that sees all that was committed. */
static bool
compact_locked(Relation rel, bool thorough, uint64 *rows)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuvm compaction", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	bool		changed = false;

	for (bool logged : {true, false})
	{
		PushActiveSnapshot(GetLatestSnapshot());
		changed = compact_pair(rel, logged, thorough, rows) || changed;
		PopActiveSnapshot();
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return changed;
}

uint64
compact_table(Relation rel)
{
	uint64		rows = 0;

	/* what others have committed since the transaction's snapshot must not be seen by it, and must not be lost */
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot compact table \"%s\" in a transaction of isolation level REPEATABLE READ or SERIALIZABLE", RelationGetRelationName(rel))));
	LockRelation(rel, ShareRowExclusiveLock);
	CheckTableNotInUse(rel, "compact");
	(void) compact_locked(rel, true, &rows);
	return rows;
}

/* -- in the background ---------------------------------------------------------------------- */

static bool
is_worthwhile(Relation rel)
{
	TabletList	list;
	bool		found = false;

	PushActiveSnapshot(GetTransactionSnapshot());
	list = list_tablets(rel, GetActiveSnapshot());
	for (bool logged : {true, false})
		found = found || choose_tablets(&list, logged, false).ntablets > 0;
	PopActiveSnapshot();
	return found;
}

/* Does nobody else have the table, and could it be locked? Who reads it under an older snapshot may want to change it later. */
static bool
lock_if_unused(Relation rel)
{
	LOCKTAG		tag;
	VirtualTransactionId *holders;
	int			count;

	if (!ConditionalLockRelation(rel, ShareRowExclusiveLock) || !lock_side_tables_if_free())
		return false;
	SET_LOCKTAG_RELATION(tag, rel->rd_lockInfo.lockRelId.dbId, rel->rd_lockInfo.lockRelId.relId);
	holders = GetLockConflicts(&tag, AccessExclusiveLock, &count);
	pfree(holders);
	return count == 0;
}

enum class Step { Nothing, Done, GivesWay };

/* With the table open. */
static Step
compact_once(Relation rel)
{
	uint64		rows = 0;

	if (!is_tablet_table(rel) || !is_worthwhile(rel))
		return Step::Nothing;
	if (!lock_if_unused(rel))
		return Step::GivesWay;
	if (!compact_locked(rel, false, &rows))
		return Step::Nothing;
	/* who waits may have a snapshot already: EXECUTE takes it before the lock */
	worker_gives_way(rel, ShareRowExclusiveLock);
	ereport(DEBUG1,
			(errmsg_internal("gpuvm compacted %llu rows of table \"%s\"", static_cast<unsigned long long>(rows), RelationGetRelationName(rel))));
	return Step::Done;
}

bool
compact_in_background(Oid relid)
{
	Step		step;

	do
	{
		Relation	rel = NULL;

		CHECK_FOR_INTERRUPTS();
		StartTransactionCommand();
		step = ConditionalLockRelationOid(relid, AccessShareLock) ? Step::Nothing : Step::GivesWay;
		if (step == Step::Nothing && (rel = try_relation_open(relid, NoLock)) != NULL)
		{
			step = compact_once(rel);
			relation_close(rel, NoLock);
		}
		if (step == Step::GivesWay)
			AbortCurrentTransaction();
		else
			CommitTransactionCommand();
	} while (step == Step::Done);
	return step == Step::Nothing;
}

List *
tables_to_compact(MemoryContext context)
{
	List	   *tables = NIL;

	if (!setting_refresh || !setting_compact || RecoveryInProgress())
		return NIL;
	StartTransactionCommand();
	if (catalog_exists())
	{
		List	   *relations;
		MemoryContext old;

		PushActiveSnapshot(GetTransactionSnapshot());
		relations = stored_relations(GetActiveSnapshot());
		PopActiveSnapshot();
		old = MemoryContextSwitchTo(context);
		tables = list_copy(relations);
		MemoryContextSwitchTo(old);
	}
	CommitTransactionCommand();
	return tables;
}

}  // namespace gpuvm
