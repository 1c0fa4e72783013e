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
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
}

namespace gpuvm {

/* Is this table of gpuvm_fdw one without a file? */
bool		is_tablet_table(Relation rel);

/* Are new rows of it logged? */
bool		tablets_persist(Relation rel);

/* -- tablet_catalog.cc: the side tables ---------------------------------------------- */

struct StoredTablet
{
	int64		id;
	uint32		nrows;
	bool		logged;			/* in which pair of side tables it is */
	ItemPointerData tid;		/* of its row there */
	Size		size;
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
	StoredTablet *tablets;		/* ascending numbers */
	int			ntablets;
	DeadSet    *dead;
	int			ndead;
	uint64		rows;			/* that are alive */
	uint64		size;			/* bytes */
};

/* What the snapshot sees of the table; palloc'd. */
TabletList	list_tablets(Relation rel, Snapshot snapshot);

/* Its image, palloc'd, as image_start() takes it. */
bytea	   *stored_image(const StoredTablet *tablet, Snapshot snapshot);

/* ORs the dead set's rows into `bits`, which has as many as the tablet has rows. */
void		add_dead_rows(const DeadSet *set, Snapshot snapshot, bits8 *bits);

/* Writes a row as of a command of this transaction. */
void		store_tablet(Oid relid, bool logged, uint32 nrows, bytea *image, CommandId cid);
void		store_dead(Oid relid, const StoredTablet *tablet, const bits8 *bits, uint32 count, CommandId cid);

/* Locks the tablet against other transactions that delete rows of it; raises 40001 where it is gone. */
void		lock_tablet(const StoredTablet *tablet, CommandId cid);

/* Raises if one of these rows was deleted by somebody whom the statement's snapshot does not see. The tablet is locked. */
void		check_not_dead(Oid relid, const StoredTablet *tablet, const bits8 *bits);

/* Deletes all rows of the side tables that are this relation's, which nobody else can use now. */
void		remove_tablets(Oid relid);

/* -- tablet_read.cc: rows -------------------------------------------------------------- */

struct TabletReader;

/* wanted: as for image_reader(). The snapshot is registered, or active, as long as the reader is used. */
TabletReader *tablets_open(Relation rel, Snapshot snapshot, const Bitmapset *wanted);

/* False at the end. Values are good until the next call. */
bool		tablets_next(TabletReader *reader, Datum *values, bool *nulls);

/* The last row's identity, as a ctid: the tablet's number, its lower half, and the row's, from 1. */
ItemPointerData tablets_ctid(const TabletReader *reader);
void		tablets_rewind(TabletReader *reader);
void		tablets_close(TabletReader *reader);

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
