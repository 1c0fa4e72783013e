/*
 * registry.h: which tables are imported, cluster-wide.
 *
 * A shared hash table from (database, relation) to the current TableVersion
 * with the file node and the column signature that it was made for. A version
 * is immutable; import replaces the pointer, release and a replaced version
 * are freed when the last pin goes. Pins are dropped by the caller or by
 * transaction and process end.
 */
#ifndef GPUVM_STORE_REGISTRY_H
#define GPUVM_STORE_REGISTRY_H

#include "pg/pg.h"
#include "tablet/format.h"
#include "vm/masked_rows.h"

extern "C" {
#include "utils/rel.h"
#include "utils/snapshot.h"
}

namespace gpuvm {

/* Is any table of any database imported? One shared load: what a query on other tables pays. */
bool		registry_any(void);

/* Is this relation of this database imported (published, whatever its state now)? */
bool		registry_known(Oid relid);

struct VersionPin;

/* A program reads the relation, which is open: that is counted in gpuvm.tables, and as a sequential scan of all rows of its tablets in pg_stat_all_tables. */
void		registry_count_use(Relation rel, uint64 nrows);
/* How many programs have read it since it was imported, and when the last one's statement began; 0: none has. */
void		registry_uses(Oid relid, uint64 *uses, int64 *last);

/*
 * Pins the relation's current version if its file node and signature equal the
 * relation's, which the caller has open and locked. NULL with *reason (a
 * FallbackReason from pg/stats.h) otherwise.
 */
VersionPin *registry_pin(Relation rel, int *reason);
void		registry_unpin(VersionPin *pin);
const TableVersion *pin_version(VersionPin *pin);
uint64		pin_offset(VersionPin *pin);	/* arena offset of the TableVersion */

/* Column index in the version for an attribute number, or -1 when it was left out. */
int			version_column(const TableVersion *version, AttrNumber attnum);

/* Have its tablets all columns that the table has? */
bool		version_has_all_columns(const TableVersion *version, TupleDesc desc);

/* -- what a version may answer ------------------------------------------------ */

struct BlockRun
{
	BlockNumber first;
	BlockNumber count;
};

struct ServedCheck
{
	BlockNumber nblocks;		/* of the relation, now */
	BlockNumber unserved;		/* blocks below nblocks that are to be read from the heap */
	uint32		nruns;
	BlockRun   *runs;			/* palloc'd: the unserved blocks below nblocks, ascending, maximal */
	BlockNumber masked;			/* blocks of the version that must not answer from the tablets: unserved, or at or past nblocks; 1 where rows are masked by themselves */
	BlockNumber restamped;		/* blocks whose page was looked at because a map page's LSN had moved */
	uint64		check_ns;		/* all of it, re-stamping included */
};

/*
 * The order of rule 7, from the snapshot on: PredicateLockRelation, the map's
 * LSNs and bits, the number of blocks. The caller has the relation locked and
 * `*pin` from registry_pin. False with *reason if no snapshot of this kind can
 * be served. Otherwise *check tells which blocks are not: their rows are masked
 * out of the tablets (version_masked_rows), and the blocks read from the heap
 * under this snapshot. *pin may have become a pin of a newer version with the
 * same tablets.
 */
bool		version_check(Relation rel, Snapshot snapshot, VersionPin **pin, int *reason, ServedCheck *check);

/* The rows of the version's tablets, in order, that `check` masks; *ranges is palloc'd, or NULL when there are none. */
uint32		version_masked_rows(const TableVersion *version, const ServedCheck *check, MaskedRows **ranges);

/* -- refresh -------------------------------------------------------------------- */

struct RefreshOutcome
{
	BlockNumber blocks;			/* of the relation */
	BlockNumber restamped;		/* blocks whose page was looked at because a map page's LSN had moved */
	BlockNumber reread;			/* blocks copied from the heap */
	BlockNumber left;			/* blocks that queries read from the heap from here on */
	uint64		nrows;			/* rows copied from the heap */
	bool		changed;		/* a new version was published */
};

/*
 * Brings the relation's version up to date, for everybody and at once, whatever
 * becomes of this transaction: re-stamps, copies blocks that have changed or been
 * added and that are all-visible. The relation is open and locked (AccessShareLock
 * suffices). False if there is no version, or none that matches the relation, or a
 * dictionary of it has become too large: then it must be imported anew.
 */
bool		refresh_relation(Relation rel, RefreshOutcome *outcome);

/* ctids of rows of a tablet; *block_hint (0 at first) makes it quick for rows in order. */
void		tablet_row_ctids(const TabletHeader *tablet, const uint32 *rows, uint32 n, uint32 *block_hint, ItemPointerData *ctids);

constexpr uint64 FAMILIES_DIFFER = ~uint64{0};

/* What a query is expected to read of a relation from the heap, since tablets do not serve it. */
struct DeltaSize
{
	double		rows;
	double		io;				/* what PostgreSQL charges for reading their blocks */
	double		masked;			/* rows of the tablets that are out of date */
};

/* What the planner needs to know of an imported table, from one look under the lock. */
struct ImportedTable
{
	uint64		nrows;
	uint64		bytes;
	uint32		nblocks;		/* when the version was made, */
	uint32		served_blocks;	/* and how many of those the tablets have */
	uint32		ntablets;
	uint32		ncols;
	int16		attnums[VERSION_MAX_COLS];
	uint8		types[VERSION_MAX_COLS];	/* Type; None: left out of the tablets */
	int16		scales[VERSION_MAX_COLS];	/* of numerics, else -1 */
	uint32		entries[VERSION_MAX_COLS];	/* of the column's dictionary, at least 1; 0: it has none */
	uint8		widths[VERSION_MAX_COLS];	/* bytes of a value in the tablets, at most; of one that is variable, of the reference to it */
	uint64		families[VERSION_MAX_COLS];	/* of the dictionary; 0: it has no entries. Of leaves: FAMILIES_DIFFER if theirs do */
	int64		greatest[VERSION_MAX_COLS];	/* of integers, and numerics that are not wide: no value of the tablets has a larger absolute value; PG_INT64_MAX: that is not known */
	bool		of_file;		/* or one of the leaves is: rows cannot be fetched by their ctids */
	bool		wide[VERSION_MAX_COLS];	/* numerics of more than 64 bits: the column has the low halves, high_half() of its number the high ones */
	bool		special[VERSION_MAX_COLS];	/* of these: some are NaN or infinities */
	bool		variable[VERSION_MAX_COLS];	/* the column is of references to its values (type I64): ValueForm::Variable */
	DeltaSize	delta;			/* nothing, until registry_expect_delta() was asked */
};

/* The column's number among the imported ones; -1: it is none. */
int			imported_column(const ImportedTable *table, AttrNumber attnum);

/* False when the relation is not imported. For planning only: the answer may be stale by execution. */
bool		registry_describe(Oid relid, ImportedTable *table);

/*
 * What a query would have to read of the relation, which is imported and locked, by the visibility map alone: what VACUUM has
 * set the bits of is taken to be served until a query has looked at it. It has so many blocks and rows, as PostgreSQL estimates it:
 * to ask the file again would take longer than all else. For planning only.
 */
DeltaSize	registry_expect_delta(Oid relid, BlockNumber pages, double tuples);

}  // namespace gpuvm

#endif
