/*
 * internal.h: what the files of src/store share, and src/sqlapi calls.
 */
#ifndef GPUVM_STORE_INTERNAL_H
#define GPUVM_STORE_INTERNAL_H

#include "pg/value_form.h"
#include "store/file_ranges.h"
#include "store/quota.h"
#include "store/registry.h"

extern "C" {
#include "access/xlogdefs.h"
#include "port/atomics.h"
#include "storage/bufpage.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "utils/acl.h"
#include "utils/timestamp.h"
}

namespace gpuvm {

/* -- PostgreSQL 16 renamed these ------------------------------------------ */

#if PG_VERSION_NUM >= 160000
typedef RelFileLocator FileNode;
#define RelationFileNode(rel) ((rel)->rd_locator)
#define FileNodeEquals(a, b) RelFileLocatorEquals(a, b)
#define RelationInThisTransaction(rel) \
	((rel)->rd_createSubid != InvalidSubTransactionId || \
	 (rel)->rd_newRelfilelocatorSubid != InvalidSubTransactionId || \
	 (rel)->rd_firstRelfilelocatorSubid != InvalidSubTransactionId)
#define RelationOwnedBy(relid, role) object_ownercheck(RelationRelationId, relid, role)
#define DatabaseOwnedBy(database, role) object_ownercheck(DatabaseRelationId, database, role)
#else
typedef RelFileNode FileNode;
#define RelationFileNode(rel) ((rel)->rd_node)
#define FileNodeEquals(a, b) RelFileNodeEquals(a, b)
#define RelationInThisTransaction(rel) \
	((rel)->rd_createSubid != InvalidSubTransactionId || \
	 (rel)->rd_newRelfilenodeSubid != InvalidSubTransactionId || \
	 (rel)->rd_firstRelfilenodeSubid != InvalidSubTransactionId)
#define RelationOwnedBy(relid, role) pg_class_ownercheck(relid, role)
#define DatabaseOwnedBy(database, role) pg_database_ownercheck(database, role)
#endif

/* Kind of the store's advisory locks, (database, relation, 0: re-stamp, 1: refresh); those of pg_advisory_lock() are 1 and 2. */
constexpr uint16 STORE_LOCK = 0x4750;

/* Takes a lock for this transaction if nobody else has it; false also when the lock table is full. */
inline bool
lock_if_free(const LOCKTAG *tag)
{
#if PG_VERSION_NUM >= 180000
	return LockAcquireExtended(tag, ExclusiveLock, false, true, false, NULL, false) != LOCKACQUIRE_NOT_AVAIL;
#else
	return LockAcquireExtended(tag, ExclusiveLock, false, true, false, NULL) != LOCKACQUIRE_NOT_AVAIL;
#endif
}

/* -- signature.cc: what must be equal for tablets to be this table's (rule 2) -- */

struct Signature
{
	char	   *data;
	Size		len;
};

/* Of every column; palloc'd in the current context. */
Signature	make_signature(TupleDesc desc);

/* Has the signature's column of that number the type and collation of the attribute? */
bool		signature_has(const char *data, Size len, AttrNumber attnum, Form_pg_attribute att);

/* -- shared.cc: the store's shared memory ----------------------------------- */

struct RegistryShared;
struct ProgressShared;
RegistryShared *registry_shared(void);
ProgressShared *progress_shared(void);	/* both NULL without preloading */
Size		registry_shared_size(void);
Size		progress_shared_size(void);
void		registry_init(RegistryShared *shared);
void		progress_init(ProgressShared *shared);
void		registry_hash_startup(void);
Size		registry_hash_size(void);
LWLock	   *registry_lock(void);
LWLock	   *progress_lock(void);

/* Of the builders of dictionaries: each has one of a few. */
constexpr uint32 DICTIONARY_LOCKS = 32;
LWLock	   *dictionary_lock(uint32 which);

/* -- registry.cc, registry_commit.cc, registry_pin.cc ---------------------------- */

void		registry_install(void);

/*
 * Makes `version` (arena offset, complete) the relation's version when the
 * top-level transaction commits, and frees it when the transaction or this
 * subtransaction aborts. at_once: of a file, which is no transaction's. Raises if
 * there is no room; the version is then still the caller's.
 */
void		registry_publish(Relation rel, uint64 version, bool all_columns, bool at_once);

/*
 * Makes `version` (arena offset, complete, its tablets held) the relation's
 * current one at once, and `pin` a pin of it. It must have been made from the
 * pinned version, for the same file and columns. Not done if another version has
 * become current meanwhile: then `version` is freed. same_tablets: only its
 * stamps are new, and any other newer version is as good; if not, it also
 * replaces one that was re-stamped meanwhile. Never raises.
 */
bool		registry_replace(VersionPin *pin, uint64 version, bool same_tablets);

/* Moves the pin to the current version if that is another one with the same tablets. */
bool		registry_newer(VersionPin *pin);

/* Forgets the relation's version when the top-level transaction commits. relid InvalidOid: all of the database. */
void		registry_release(Oid database, Oid relid);

/* Entries of this database whose relation is gone (dropped while this server was a standby, say) are released. */
void		registry_sweep(void);

/* One published table of this database, as the views and refresh see it. */
struct RegistryRow
{
	Oid			relid;
	bool		all_columns;	/* imported without a list of columns */
};

/* palloc'd array of this database's published tables. */
RegistryRow *registry_list(int *count);

/* Will this transaction publish a version of the relation? */
bool		registry_pending(Oid relid);

/*
 * The dictionary of a column that is of the attribute's type, in the version that this transaction is going
 * to publish, else in the current one; held (dictionary_hold) for the caller. 0: there is none, or (*damaged, else
 * as it was) what says where it is does not match its checksum.
 */
uint64		registry_hold_dictionary(Oid relid, AttrNumber attnum, Form_pg_attribute att, bool *damaged);

/* The databases that have published tables, up to `max`; returns how many. */
int			registry_databases(Oid *databases, int max);

/* Pins the relation's version whatever its state now; NULL when there is none. For the views. */
VersionPin *registry_pin_any(Oid relid);

struct PinnedVersion
{
	Oid			database;
	Oid			relid;
	VersionPin *pin;
	bool		current;		/* the table's next one will replace it */
};

/* Every version of every database: current, replaced and still read, or to be published by a transaction that is open. palloc'd. */
PinnedVersion *registry_pin_all(int *count);
void		registry_unpin_all(PinnedVersion *all, int count);

/* Plans that read the relation are made anew: tablets serve much of it that they did not. */
void		registry_outdate_plans(Relation rel);

/* Was this version made for the relation as it is now? */
bool		pin_matches(VersionPin *pin, Relation rel);

/* Of the file that it is in now, at least? */
bool		pin_is_of_file(VersionPin *pin, Relation rel);

/* Are the version's blob and the headers of its dictionaries as they were? By these memory is found and freed. */
bool		pin_is_sealed(VersionPin *pin);

/* Before an import or refresh looks at the current version, if there is one: raises if it is not sealed, as then nothing can replace it safely. */
void		registry_check(Relation rel);
bool		pin_all_columns(VersionPin *pin);

/* When the whole table was last looked through, by import or refresh. */
TimestampTz pin_refreshed(VersionPin *pin);
void		pin_mark_refreshed(VersionPin *pin);

/* -- visibility.cc -------------------------------------------------------------- */

constexpr BlockNumber VM_BLOCKS_PER_PAGE = (BLCKSZ - MAXALIGN(SizeOfPageHeaderData)) * 4;
constexpr uint32 VM_BLOCKS_PER_WORD = 32;
constexpr uint32 VM_WORDS_PER_PAGE = VM_BLOCKS_PER_PAGE / VM_BLOCKS_PER_WORD;
static_assert(VM_BLOCKS_PER_PAGE % VM_BLOCKS_PER_WORD == 0, "a map page is whole words");

inline uint32
vm_pages(BlockNumber nblocks)
{
	return nblocks / VM_BLOCKS_PER_PAGE + (nblocks % VM_BLOCKS_PER_PAGE != 0);
}

/* The all-visible bits of a word of the map. */
constexpr uint64 VM_WORD_VISIBLE = 0x5555555555555555ull;

inline uint64
vm_word_bit(BlockNumber block)
{
	return uint64{1} << (block % VM_BLOCKS_PER_WORD * 2);
}

/* The blocks of a word of `served` that were read in vain, at the places of their all-visible bits. */
inline uint64
vm_word_unfit(uint64 served)
{
	return served >> 1 & VM_WORD_VISIBLE;
}

/* The all-visible bits of the first n blocks of a word. */
inline uint64
vm_word_mask(uint32 n)
{
	return n >= VM_BLOCKS_PER_WORD ? VM_WORD_VISIBLE : VM_WORD_VISIBLE & ((uint64{1} << (n * 2)) - 1);
}

/* Bytes of TableVersion.served for so many blocks. */
inline uint64
served_size(BlockNumber nblocks)
{
	return uint64{vm_pages(nblocks)} * VM_WORDS_PER_PAGE * sizeof(uint64);
}

/* The word of `served` that has the block; pages follow each other without gaps. */
inline uint64
vm_word_of(BlockNumber block)
{
	return block / VM_BLOCKS_PER_WORD;
}

/*
 * Reads visibility map page `map_block` under its share lock: its LSN, and if
 * `words` is not NULL its all-visible bits into words[VM_WORDS_PER_PAGE]. A page
 * that does not exist has LSN 0 and no bit set.
 */
XLogRecPtr	read_vm_page(Relation rel, BlockNumber map_block, uint64 *words);

/* How many of the first `nblocks` blocks of a map page have their bit set. */
BlockNumber vm_count(const uint64 *words, uint32 nblocks);

/* How a version stands now, from the map alone. */
struct VersionState
{
	BlockNumber nblocks;		/* of the relation, now */
	BlockNumber served;			/* of those: a query takes them from the tablets without a look at their page */
	BlockNumber moved;			/* of those: on a map page whose LSN has moved, so to be re-stamped or read again */
	BlockNumber refreshable;	/* of those: not served, but all-visible: what refresh_relation has to do */
};
void		version_state(Relation rel, const TableVersion *version, VersionState *state);

/* Is every block served, and was no block left out or added? *blocks: how many are not. */
bool		version_unchanged(Relation rel, const TableVersion *version, BlockNumber *blocks);

/* -- wal_blocks.cc ------------------------------------------------------------------- */

/* A block that a record names, and the record's end. */
struct LoggedBlock
{
	XLogRecPtr	lsn;
	BlockNumber block;
};

/* What was logged of a relation from one LSN to another. */
struct WalBlocks
{
	XLogRecPtr	from;
	XLogRecPtr	to;				/* before `from` if nothing is known */
	LoggedBlock *blocks;
	uint32		nblocks;
};

/* Reads what was logged since the oldest stamp that has moved, as far as that is less work than looking at the blocks. */
void		wal_blocks_read(Relation rel, const TableVersion *version, WalBlocks *found);

/* Takes the bits of blocks named since `stamp` out of a map page's, whose first block is `first`; false if not all up to `lsn` is known. */
bool		wal_blocks_unnamed(const WalBlocks *found, XLogRecPtr stamp, XLogRecPtr lsn, BlockNumber first, uint64 *words);

/* -- restamp.cc --------------------------------------------------------------------- */

/*
 * Looks at the heap pages of a map page whose LSN has moved: which blocks below
 * `nblocks` (the relation's, read under the lock that the caller holds) are as
 * the version's tablets have them? `lsn` and `words`: the map page's LSN and bits,
 * read together, before; left with the bits of the blocks that are. Served blocks
 * that `logged` does not name are, without a look. Returns how many pages were
 * looked at.
 */
BlockNumber restamp_page(Relation rel, const TableVersion *version, BlockNumber map_block, BlockNumber nblocks,
						 const WalBlocks *logged, XLogRecPtr lsn, uint64 *words);

/* A map page's new stamp and bits. */
struct RestampedPage
{
	RestampedPage *next;
	BlockNumber map_block;
	XLogRecPtr	lsn;
	uint64		words[VM_WORDS_PER_PAGE];
};

/* Publishes a version that differs from the pinned one in these pages, if there is memory for it. Never raises. */
bool		restamp_publish(VersionPin *pin, const RestampedPage *pages);

/*
 * One session re-stamps a relation, others wait for what it finds: true if this
 * one has the lock (restamp_unlock), false after a while in vain. Who waited looks
 * for a newer version first.
 */
bool		restamp_lock(Relation rel);
void		restamp_unlock(Relation rel);

/* -- progress.cc ------------------------------------------------------------------ */

enum ImportPhase
{
	IMPORT_VACUUMING,
	IMPORT_COPYING,
	IMPORT_PUBLISHING,
};

struct ProgressRow
{
	int			pid;
	Oid			relid;
	ImportPhase phase;
	uint64		blocks_total;
	uint64		blocks_done;
	uint64		rows;
};

/* A slot for this backend's import; -1 when all are taken (the import then shows no progress). */
int			progress_begin(Oid relid, BlockNumber blocks_total);
void		progress_phase(int slot, ImportPhase phase);
void		progress_copying(int slot, BlockNumber blocks_total);
void		progress_add(int slot, uint64 blocks, uint64 rows);
void		progress_end(void);
bool		progress_vacuumed(int slot);
void		progress_set_vacuumed(int slot);

/* palloc'd array of this database's imports. */
ProgressRow *progress_list(int *count);

/* -- vacuum.cc ---------------------------------------------------------------------- */

/*
 * Has a background worker vacuum the relation (rule 5) and waits for it. NULL, or
 * why that was not possible.
 */
const char *vacuum_relation(Relation rel, int progress_slot);

/* -- mark_visible.cc ---------------------------------------------------------------- */

enum class HorizonHolder
{
	Nobody,
	Process,
	Prepared,
	Slot,
};

/* What precedes `xid` has ended for everybody who may read this database's tables; who holds it back. */
struct Horizon
{
	TransactionId xid;
	HorizonHolder holder;
	int			pid;
};

/* Of all processes but this one. */
Horizon		horizon_of_others(void);

/* The one of this session's snapshots that sees least; nullptr where that is not known, or there is none. */
Snapshot	oldest_own_snapshot(void);

/* Marks blocks all-visible that VACUUM has left because of this session's snapshots alone. */
void		mark_visible(Relation rel);

/* -- columns.cc ----------------------------------------------------------------------- */

/* Why a column of an import is given up. The first reason stays. */
enum ColumnFailure : uint32
{
	COLUMN_FITS,
	COLUMN_NOT_FINITE,			/* numeric: NaN, infinity */
	COLUMN_OTHER_SCALE,			/* numeric: values of different display scales */
	COLUMN_TOO_LONG,			/* numeric: more digits than an int64, or of a wide column two halves, have */
	COLUMN_TOO_MANY_VALUES,		/* dictionary */
	COLUMN_TOO_LARGE,			/* variable: a value of more than VARIABLE_MAX_IMAGE bytes */
	COLUMN_NO_ROOM,				/* variable: all values would take too much memory */
	COLUMN_LEFT_OUT_BEFORE,		/* of the version that is refreshed */
};

constexpr uint32 NO_SCALE = PG_UINT32_MAX;

/* A column in the making. */
struct CopyColumn
{
	int16		attnum;
	Type		type;
	ValueForm	form;
	pg_atomic_uint32 failure;	/* ColumnFailure: its values are nulls from then on */
	pg_atomic_uint32 scale;		/* numeric: of all values; NO_SCALE until the first one is met */
	uint64		builder;		/* dictionary: arena offset of the DictionaryBuilder, else 0 */
	bool		wide;			/* numeric: of more than 64 bits; this column has the low halves (tablet/wide_halves.h) */
	int16		half;			/* where the column's other half is among the columns; -1: it is not in halves */
	bool		may_vary;		/* what does not fit its form is stored as it is: another attempt makes the column variable */
	bool		alone;			/* its dictionary goes on from no other leaf's */
	ColumnFailure unfit;		/* strict: why a value that was met does not fit */
	pg_atomic_uint64 image_bytes;	/* variable: of the images in all tablets made, or being made */
};

struct VersionColumn;

/* One import's work, shared by the processes that take part. */
struct CopyJob
{
	Oid			relid;
	int			progress_slot;
	BlockNumber nblocks;
	BlockNumber slice_blocks;
	uint32		nslices;
	uint32		tablet_rows;
	uint32		max_tablets;
	uint32		ncols;
	uint64		manifest;		/* arena offset of uint64[max_tablets]: the tablets made so far */
	uint64		served;			/* arena offset of TableVersion.served in the making */
	bool		detoasts;		/* a column's values may be in the TOAST table (store/dictionary.h: detoast_begin) */
	bool		strict;			/* refresh: a block with a value that fits no column's form is not copied; no column fails */
	uint64		image_limit;	/* variable columns, together */
	pg_atomic_uint64 image_bytes;
	Quota		quota;			/* the one that leaves least, */
	pg_atomic_uint64 tablet_bytes;	/* and what is taken of it */
	pg_atomic_uint32 again;		/* a column cannot be copied as it was to be: all ends, to begin anew (revise_columns) */
	pg_atomic_uint32 next_slice;
	pg_atomic_uint32 ntablets;	/* entries of the manifest in use */
	pg_atomic_uint64 nrows;
	pg_atomic_uint64 served_blocks;
	VersionColumn *sealed;		/* the leader's, when all is copied: the version's columns, with dictionaries */
	FileRanges	ranges;			/* of a file that several processes read */
	CopyColumn	columns[FLEXIBLE_ARRAY_MEMBER];
};

inline Size
copy_job_size(int ncols)
{
	return offsetof(CopyJob, columns) + sizeof(CopyColumn) * Max(ncols, 1);
}

/* Can tablets store the column's type? */
bool		is_importable(Form_pg_attribute att);

/* Of the attribute, nothing known of its values. May read the catalogs. */
void		init_copy_column(CopyColumn *column, Form_pg_attribute att);

/* Why a numeric, as it lies in a tuple, is not one of this scale, of a column whose scale is `most` at most. */
ColumnFailure numeric_misfit(const char *packed, int scale, int most);

/* The first reason counts. */
void		fail_copy_column(CopyColumn *column, ColumnFailure failure);

inline bool
copy_column_failed(const CopyColumn *column)
{
	return pg_atomic_read_u32(const_cast<pg_atomic_uint32 *>(&column->failure)) != COLUMN_FITS;
}

/* Makes the column a variable one. */
void		vary_column(CopyColumn *column);

/* Puts the high halves of wide columns behind all `ncols`, of which none has them yet. How many columns there are then: up to twice as many. */
int			add_high_halves(CopyColumn *columns, int ncols);

/* Before an import copies: columns are variable that are known not to fit their form, as far as `limit` bytes allow. */
void		choose_forms(Relation rel, CopyColumn *columns, int ncols, uint64 limit);

/*
 * A column of the job has failed: its values are lost, or, where it may be another
 * one in the next attempt, the job is to end. Any process.
 */
void		fail_job_column(CopyJob *job, CopyColumn *column, ColumnFailure failure);

/* Memory is short: the variable column that takes most of it fails. False if there is none. */
bool		shed_column(CopyJob *job);

/* Has a column failed so that everything is to be copied again? */
inline bool
copy_again(const CopyJob *job)
{
	return pg_atomic_read_u32(const_cast<pg_atomic_uint32 *>(&job->again)) != 0;
}

/* The columns for the next attempt, of what the last one has found: how many there are. `ncols` are attributes. */
int			revise_columns(Relation rel, const CopyJob *job, CopyColumn *columns, int ncols);

/* After manifest_begin: a builder for each column that needs one, unless the statistics say that it will be in vain. */
void		init_dictionaries(CopyJob *job, Relation rel);

/* When memory is too short for all dictionaries: the column with the largest one fails, or is to be copied in another form. False: there is none. */
bool		shed_dictionary(CopyJob *job);

/* A NOTICE of the columns whose type can be stored, but not the values. */
void		report_failed_columns(Relation rel, const CopyJob *job);

/* Tablets that were made before a column failed have values of it. Where memory is short they keep them. */
void		strip_failed_columns(CopyJob *job);

/* -- copy.cc -------------------------------------------------------------------------- */

/* Rows that a tablet of these columns gets, by gpuvm.tablet_size. */
uint32		tablet_rows_for(const CopyColumn *columns, int ncols);

/* Upper limit of the tablets that one slice can make. */
uint64		max_tablets_of_slice(BlockNumber blocks, uint32 tablet_rows);

/* Upper limit of those that end because their images are many, in all slices. */
uint64		max_image_tablets(const CopyColumn *columns, int ncols);

/* Copies slices until there are none left. */
void		copy_slices(Relation rel, CopyJob *job);

/* -- successor.cc ----------------------------------------------------------------------- */

/*
 * A job for more tablets of a version's columns, in the forms that it has, of which the caller says how many there will be. It is
 * strict: no column fails.
 */
CopyJob    *successor_job(Relation rel, const TableVersion *version);

/* After manifest_begin: builders that go on from the version's dictionaries. False when memory is short. */
bool		successor_dictionaries(Relation rel, const TableVersion *version, CopyJob *job);
/* Are the dictionaries that they go on from what they were? Otherwise what is wrong with them would be sealed anew, or lead astray. */
bool		bases_are_sealed(const CopyJob *job);
bool		has_dictionaries(const TableVersion *version);

/* Has a dictionary become too large? */
bool		has_outgrown(const CopyJob *job);

/* Do values that a refresh met not fit, but would if a column had halves? */
bool		wants_halves(Relation rel, const CopyJob *job);

/* A NOTICE of the other columns with such values. */
void		report_unfit_columns(Relation rel, const CopyJob *job);

/* -- version.cc ------------------------------------------------------------------------- */

/* Takes a reference to each of a new version's tablets; who shares tablets with another version has that one pinned. */
void		hold_tablets(const TableVersion *version);

/* Frees a version, and the tablets that no other one holds. */
void		free_version(uint64 version);

/*
 * Memory in the arena for the offsets of tablets, zeroed, and for `more` bytes
 * behind them; 0 when it is short. What it lists is freed if the transaction, or
 * its subtransaction, aborts before manifest_end.
 */
uint64		manifest_begin(uint32 max_tablets, uint64 more);
void		manifest_end(void);

/* The builders (store/dictionary.h) are the manifest's, too. */
void		manifest_builders(uint64 builders, uint32 ncolumns);
/* Frees what the manifest lists, and the manifest: for another attempt. */
void		manifest_abandon(void);
/* Frees what an import or refresh that did not end had allocated; from the callbacks at abort. */
void		import_abandon(void);

[[noreturn]] void raise_memory_short(void);

struct VersionColumn
{
	int16		attnum;
	Type		type;
	bool		left_out;
	bool		variable;
	bool		wide;			/* low halves */
	int16		scale;			/* numerics, else -1 */
	uint64		dictionary;		/* arena offset, 0: none */
};

/* columns.cc: what the copied column is in a version; its dictionary is not sealed yet. */
VersionColumn version_column_of(CopyColumn *column);

struct VersionParts
{
	uint32		ncols;
	const VersionColumn *columns;
	BlockNumber nblocks;
	const uint64 *stamps;
	const uint64 *served;
	const uint64 *tablets;		/* arena offsets, in the order of their blocks */
	uint32		ntablets;
	Signature	signature;
	const struct FileOrigin *origin;	/* of a file's rows, else NULL */
	const MaskedRows *masked;	/* rows of the tablets that are not the version's: blocks that are not served apart */
	uint32		nmasked;
};

/*
 * The columns' dictionaries, of what their builders have got: the manifest's until
 * manifest_end. False when memory is short.
 */
bool		manifest_seal(VersionColumn *columns);

/* Makes the blob, which holds its tablets and dictionaries; its arena offset, or 0 when memory is short. It is the manifest's until manifest_end. */
uint64		make_version(const VersionParts *parts);

/* -- import.cc ------------------------------------------------------------------------- */

/* Attribute numbers of the columns that can be imported, ascending; palloc'd. A NOTICE names the others. */
int16	   *importable_columns(Relation rel, int *count);

/*
 * Imports the columns (ascending, all of importable types), to be published at
 * commit. Returns the rows imported.
 */
uint64		import_relation(Relation rel, const int16 *attnums, int ncols, bool all_columns, bool vacuum);

/* The parallel workers that an import may have, of those that its size is worth. */
int			copy_workers(uint32 most);

/* Steps of it, for those who copy a file instead (import_file.cc): so many blocks at most, and with workers its ranges. */
CopyJob    *copy_blocks(Relation rel, const CopyColumn *attributes, int ncols, BlockNumber nblocks, int workers, const FileRanges *ranges, int progress_slot);
void		sort_tablets(CopyJob *job);
uint64		version_of(CopyJob *job, const uint64 *stamps, const Signature &signature, const FileOrigin *origin);

/* -- import_file.cc ---------------------------------------------------------------------- */

/* As import_relation, of a file table; seen by all at once. quiet: no NOTICE of what could not be stored. */
uint64		import_file(Relation rel, const int16 *attnums, int ncols, bool all_columns, bool quiet);

/* The file's rows, by blocks that are made up, until its end, or those of its ranges until there are none left. */
void		copy_file_rows(Relation rel, CopyJob *job);

/* -- tablet_load.cc ---------------------------------------------------------------------- */

/* As import_file, of a table without a file, from the version that was loaded last. False: the table is to be loaded anew. */
bool		load_changes(Relation rel, uint64 *nrows);

/* The stored rows that the active snapshot sees, and the job wants columns of. */
void		copy_stored_table(Relation rel, CopyJob *job);

}  // namespace gpuvm

#endif
