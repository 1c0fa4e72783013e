/*
 * tablets.h: tablet tables, foreign tables of gpuvm_fdw without a file.
 *
 * Their truth lies in side tables, which are ordinary heaps: a row for each tablet that a statement has added, and one for
 * each set of rows of a tablet that a statement has deleted. So which rows there are is a matter of the snapshot alone, and
 * rollback, two-phase commit, recovery and standbys are the heap's. A tablet's number is never used again, and what was
 * written is never changed: the numbers that a snapshot sees say what it sees of the table.
 */
#ifndef GPUVM_STORE_TABLETS_H
#define GPUVM_STORE_TABLETS_H

#include "pg/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
}

struct BulkInsertStateData;

namespace gpuvm {

/* Is this table of gpuvm_fdw one without a file? */
bool		is_tablet_table(Relation rel);

/* Are new rows of it logged? */
bool		tablets_persist(Relation rel);

/*
 * A block of a tablet in memory has some of a stored tablet's rows: its number, which lies in the place of a page's LSN, says which
 * ones, and line pointers say which of those, counted from 1.
 */
constexpr uint32 KEY_ROWS = MaxHeapTuplesPerPage;
constexpr int KEY_BITS = 8;
constexpr uint32 KEYS_PER_TABLET = 1 << KEY_BITS;

inline uint64
stored_key(int64 tablet, uint32 row)
{
	return static_cast<uint64>(tablet) << KEY_BITS | row / KEY_ROWS;
}

inline int64
key_tablet(uint64 key)
{
	return static_cast<int64>(key >> KEY_BITS);
}

inline uint32
key_first_row(uint64 key)
{
	return static_cast<uint32>(key % KEYS_PER_TABLET) * KEY_ROWS;
}

/* A stored row's identity: the tablet's number, its lower half, and the row's, from 0 here and from 1 there. */
inline ItemPointerData
stored_ctid(int64 tablet, uint32 row)
{
	ItemPointerData ctid;

	ItemPointerSet(&ctid, static_cast<BlockNumber>(tablet), static_cast<OffsetNumber>(row + 1));
	return ctid;
}

/*
 * Whoever changes a table of fewer rows reads it row by row: as long as that takes at least to bring it up to date in memory, as the next
 * such statement would have to.
 */
constexpr uint64 ROWS_TO_LOAD = 32768;

/* -- tablet_catalog.cc: the side tables ---------------------------------------------- */

struct StoredTablet
{
	int64		id;
	uint32		nrows;
	bool		logged;			/* in which pair of side tables it is */
	ItemPointerData tid;		/* of its row there */
	bool		chunked;		/* its image is not in that row */
	Size		size;			/* bytes of its values, */
	Size		image_size;		/* and as they are stored */
};

/* Rows of a tablet that one statement has deleted. */
struct DeadSet
{
	int64		tablet;
	int64		id;
	uint32		nrows;
	ItemPointerData tid;
	bool		logged;
};

struct TabletList
{
	StoredTablet *tablets;
	int			ntablets;
	DeadSet    *dead;
	int			ndead;
	uint64		rows;			/* that are alive */
	uint64		size;			/* bytes, as they are stored */
};

/* What the snapshot sees of the table, both in the order of tablets; palloc'd. */
TabletList	list_tablets(Relation rel, Snapshot snapshot);

/* The first of the dead sets, which are in the order of tablets, that is of this tablet or a later one. */
int			first_dead(const TabletList *list, int64 tablet);

/* Its image, palloc'd, as image_start() takes it. */
bytea	   *stored_image(const StoredTablet *tablet, Snapshot snapshot);

/* ORs the dead set's rows into `bits`, which has as many as the tablet has rows. */
void		add_dead_rows(const DeadSet *set, Snapshot snapshot, bits8 *bits);

/*
 * Writes a row as of a command of this transaction. *bulk is the buffers that one writer of many images goes through: NULL at first,
 * then allocated in the current memory context, which is all that it needs freed.
 */
void		store_tablet(Oid relid, bool logged, uint32 nrows, Size size, bytea *image, CommandId cid, BulkInsertStateData **bulk);
void		store_dead(Oid relid, const StoredTablet *tablet, const bits8 *bits, uint32 count, CommandId cid);

/* Locks the tablet against other transactions that delete rows of it; raises 40001 where it is gone. */
void		lock_tablet(const StoredTablet *tablet, CommandId cid);

/* Raises if one of these rows was deleted by somebody whom the statement's snapshot does not see. The tablet is locked. */
void		check_not_dead(Oid relid, const StoredTablet *tablet, const bits8 *bits);

/* Deletes all rows of the side tables that are this relation's, which nobody else can use now. */
void		remove_tablets(Oid relid);

/* The same of these tablets and their dead sets. */
void		delete_tablets(const TabletList *list);

/* Locks the side tables for writing; false: they are locked, and some of them may be now. */
bool		lock_side_tables_if_free(void);

/* The relations that have tablets: OIDs, ascending. */
List	   *stored_relations(Snapshot snapshot);

/* -- tablet_read.cc: rows -------------------------------------------------------------- */

struct TabletReader;

/* wanted: as for image_reader(). The snapshot is registered, or active, as long as the reader is used. */
TabletReader *tablets_open(Relation rel, Snapshot snapshot, const Bitmapset *wanted);

/* The same, of some of the tablets only: `list` has them, and the dead sets in the order of tablets. */
TabletReader *tablets_open_list(Relation rel, Snapshot snapshot, const Bitmapset *wanted, const TabletList &list);

/* False at the end. Values are good until the next call. */
bool		tablets_next(TabletReader *reader, Datum *values, bool *nulls);

/* The last row's identity. */
ItemPointerData tablets_ctid(const TabletReader *reader);

/* The last row's tablet, and its number there, from 0. */
const StoredTablet *tablets_at(const TabletReader *reader, uint32 *row);
void		tablets_rewind(TabletReader *reader);
void		tablets_close(TabletReader *reader);

/* -- tablet_compact.cc: fewer tablets -------------------------------------------------- */

/* Replaces small tablets, and those with deleted rows; waits for writers, and locks them out until the transaction ends. Returns the rows written. */
uint64		compact_table(Relation rel);

/* For a worker, outside of a transaction: as far as it is worthwhile and nobody uses the table. False: somebody does. */
bool		compact_in_background(Oid relid);

/* What may be worth it: OIDs in `context`, ascending. */
List	   *tables_to_compact(MemoryContext context);

/* -- tablet_write.cc: changes ------------------------------------------------------------ */

struct TabletWriter;

/*
 * Changes of one statement, which reads by `snapshot` and writes as command `cid`. Rows are collected, and stored when there are
 * many, when somebody reads the table who must see them, and at the end. Parts of a statement share a writer.
 */
TabletWriter *writer_open(Relation rel, EState *estate, Snapshot snapshot, CommandId cid);
void		writer_add(TabletWriter *writer, TupleTableSlot *slot);

/* False if this statement has deleted the row before. */
bool		writer_delete(TabletWriter *writer, ItemPointer ctid);
void		writer_close(TabletWriter *writer);

/* Stores what is collected of the table and visible to the snapshot. */
void		store_pending(Oid relid, Snapshot snapshot);

/* DROP takes the rows along, and the end of a statement comes before its AFTER triggers. */
void		tablets_install(void);

}  // namespace gpuvm

#endif
