/*
 * registry.cc: the shared table of imported tables.
 *
 * A hash entry (database, relation) holds the number of a version slot. A slot
 * holds the arena offset of a TableVersion, what it was made for, and a count of
 * references: one of the entry while the version is current, one of the
 * importing transaction until it ends, one of every pin. Whoever takes the count
 * to zero frees the version; the count leaves zero only when the slot is made,
 * so nobody can find a version that is being freed.
 *
 * An import's version becomes current when its transaction commits. One that was
 * re-stamped or refreshed from the current version says the same of the same
 * table, only more, and replaces it at once (registry_replace).
 *
 * An entry is made (without a version) when a transaction has something to
 * publish, because the commit callback may not fail: there it only swaps slot
 * numbers. `promises` counts such transactions; an entry without version and
 * promises is removed.
 *
 * Lock order: registry lock, then (never together, but in this order if it came
 * to that) the arena's. Nothing raises while the registry lock is held.
 *
 * Pins belong to the ResourceOwner that was current when they were made, like
 * buffer pins: they end with it at the latest, so an error cannot leak one.
 */
#include "store/internal.h"

#include <algorithm>

#include "pg/shmem.h"
#include "pg/stats.h"
#include "store/dictionary.h"
#include "store/file.h"
#include "store/family.h"
#include "store/refresher.h"
#include "tablet/wide_halves.h"

extern "C" {
#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "storage/shmem.h"
#include "storage/sinval.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/syscache.h"
}

namespace gpuvm {

constexpr int REGISTRY_MAX_TABLES = 4096;
constexpr int REGISTRY_MAX_VERSIONS = 2 * REGISTRY_MAX_TABLES;
constexpr int NO_SLOT = -1;

struct RegistryKey
{
	Oid			database;
	Oid			relid;
};

struct RegistryEntry
{
	RegistryKey key;
	int			slot;			/* NO_SLOT until the first publication */
	int			promises;		/* transactions that will publish at commit */
};

struct VersionSlot
{
	pg_atomic_uint32 refs;
	int			next_free;
	uint64		version;		/* arena offset */
	uint64		family;			/* equal for versions with the same tablets: one was re-stamped from the other */
	pg_atomic_uint64 refreshed;	/* TimestampTz: when the table was last looked through */
	FileNode	file_node;
	bool		all_columns;
};

struct RegistryShared
{
	pg_atomic_uint32 published;	/* entries with a version */
	int			first_free;
	VersionSlot slots[REGISTRY_MAX_VERSIONS];
};

struct VersionPin
{
	VersionPin *next;
	ResourceOwner owner;
	Oid			relid;
	int			slot;
};

/* What this transaction does to the registry at commit, in order. */
struct PendingOp
{
	PendingOp  *next;
	SubTransactionId subid;
	RegistryKey key;
	int			slot;			/* to publish; NO_SLOT: release */
};

static HTAB *entries = NULL;
static VersionPin *pins = NULL;
static PendingOp *pending_first = NULL;
static PendingOp **pending_last = &pending_first;
static object_access_hook_type previous_object_access_hook = NULL;

Size
registry_shared_size(void)
{
	return MAXALIGN(sizeof(RegistryShared));
}

Size
registry_hash_size(void)
{
	return hash_estimate_size(REGISTRY_MAX_TABLES, sizeof(RegistryEntry));
}

void
registry_init(RegistryShared *shared)
{
	memset(static_cast<void *>(shared), 0, sizeof(*shared));
	pg_atomic_init_u32(&shared->published, 0);
	for (int i = 0; i < REGISTRY_MAX_VERSIONS; i++)
	{
		pg_atomic_init_u32(&shared->slots[i].refs, 0);
		pg_atomic_init_u64(&shared->slots[i].refreshed, 0);
		shared->slots[i].next_free = i + 1 < REGISTRY_MAX_VERSIONS ? i + 1 : NO_SLOT;
	}
}

void
registry_hash_startup(void)
{
	HASHCTL		control;

	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(RegistryKey);
	control.entrysize = sizeof(RegistryEntry);
	entries = ShmemInitHash("gpuvm registry entries", REGISTRY_MAX_TABLES, REGISTRY_MAX_TABLES,
							&control, HASH_ELEM | HASH_BLOBS);
}

static VersionSlot *
version_slot(int slot)
{
	return &registry_shared()->slots[slot];
}

static RegistryEntry *
find_entry(Oid database, Oid relid)
{
	RegistryKey key = {database, relid};

	return static_cast<RegistryEntry *>(hash_search(entries, &key, HASH_FIND, NULL));
}

bool
registry_any(void)
{
	return registry_shared() != NULL && pg_atomic_read_u32(&registry_shared()->published) > 0;
}

bool
registry_known(Oid relid)
{
	RegistryEntry *entry;
	bool		known;

	if (!registry_any())
		return false;
	LWLockAcquire(registry_lock(), LW_SHARED);
	entry = find_entry(MyDatabaseId, relid);
	known = entry != NULL && entry->slot != NO_SLOT;
	LWLockRelease(registry_lock());
	return known;
}

void
free_version(uint64 offset)
{
	const TableVersion *version = arena_at<TableVersion>(offset);
	const uint64_t *tablets = version_at<uint64_t>(version, version->tablets);
	const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);

	for (uint32 i = 0; i < version->ntablets; i++)
		if (__atomic_sub_fetch(&arena_at<TabletHeader>(tablets[i])->refs, 1, __ATOMIC_ACQ_REL) == 0)
			arena_free(tablets[i]);
	for (uint32 i = 0; i < version->ncols; i++)
		dictionary_drop(columns[i].dictionary);
	arena_free(offset);
}

void
hold_tablets(const TableVersion *version)
{
	const uint64_t *tablets = version_at<uint64_t>(version, version->tablets);
	const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);

	for (uint32 i = 0; i < version->ntablets; i++)
		__atomic_add_fetch(&arena_at<TabletHeader>(tablets[i])->refs, 1, __ATOMIC_ACQ_REL);
	for (uint32 i = 0; i < version->ncols; i++)
		dictionary_hold(columns[i].dictionary);
}

/* A slot for the version, with one reference; NO_SLOT if all are taken. Under the registry lock, exclusively. */
static int
take_slot(uint64 version, uint64 family, const FileNode &file_node, bool all_columns, uint64 refreshed)
{
	int			slot = registry_shared()->first_free;
	VersionSlot *s;

	if (slot == NO_SLOT)
		return NO_SLOT;
	s = version_slot(slot);
	registry_shared()->first_free = s->next_free;
	pg_atomic_write_u32(&s->refs, 1);
	s->version = version;
	s->family = family;
	s->file_node = file_node;
	s->all_columns = all_columns;
	pg_atomic_write_u64(&s->refreshed, refreshed);
	return slot;
}

/* Drops a reference to a slot; the registry lock must not be held. */
static void
slot_unref(int slot)
{
	VersionSlot *s = version_slot(slot);

	if (pg_atomic_sub_fetch_u32(&s->refs, 1) > 0)
		return;
	free_version(s->version);
	LWLockAcquire(registry_lock(), LW_EXCLUSIVE);
	s->version = 0;
	s->next_free = registry_shared()->first_free;
	registry_shared()->first_free = slot;
	LWLockRelease(registry_lock());
}

/* -- pins ------------------------------------------------------------------- */

/* Pins the current version; the caller checks what it was made for. */
VersionPin *
registry_pin_any(Oid relid)
{
	VersionPin *pin;
	RegistryEntry *entry;

	if (!registry_any())
		return NULL;
	pin = static_cast<VersionPin *>(MemoryContextAlloc(TopMemoryContext, sizeof(VersionPin)));
	pin->slot = NO_SLOT;
	pin->owner = CurrentResourceOwner;
	pin->relid = relid;

	LWLockAcquire(registry_lock(), LW_SHARED);
	entry = find_entry(MyDatabaseId, relid);
	if (entry != NULL && entry->slot != NO_SLOT)
	{
		/* not zero: the entry's own reference goes only under the exclusive lock */
		pin->slot = entry->slot;
		pg_atomic_fetch_add_u32(&version_slot(pin->slot)->refs, 1);
	}
	LWLockRelease(registry_lock());

	if (pin->slot == NO_SLOT)
	{
		pfree(pin);
		return NULL;
	}
	pin->next = pins;
	pins = pin;
	return pin;
}

bool
pin_matches(VersionPin *pin, Relation rel)
{
	VersionSlot *s = version_slot(pin->slot);
	const TableVersion *version = pin_version(pin);
	Signature	signature;
	bool		equal;

	if (RelationInThisTransaction(rel) || !FileNodeEquals(s->file_node, RelationFileNode(rel)))
		return false;
	signature = make_signature(RelationGetDescr(rel));
	equal = signature.len == version->signature_len &&
		memcmp(signature.data, version_at<char>(version, version->signature), signature.len) == 0;
	pfree(signature.data);
	return equal;
}

VersionPin *
registry_pin(Relation rel, int *reason)
{
	VersionPin *pin = registry_pin_any(RelationGetRelid(rel));

	if (pin == NULL)
	{
		*reason = FALLBACK_NO_TABLETS;
		return NULL;
	}
	if (!pin_matches(pin, rel))
	{
		registry_unpin(pin);
		refresher_mark();
		*reason = FALLBACK_SCHEMA_CHANGED;
		return NULL;
	}
	return pin;
}

void
registry_unpin(VersionPin *pin)
{
	VersionPin **link = &pins;
	int			slot = pin->slot;

	while (*link != pin)
		link = &(*link)->next;
	*link = pin->next;
	pfree(pin);
	slot_unref(slot);
}

const TableVersion *
pin_version(VersionPin *pin)
{
	return arena_at<TableVersion>(pin_offset(pin));
}

uint64
pin_offset(VersionPin *pin)
{
	return version_slot(pin->slot)->version;
}

TimestampTz
pin_refreshed(VersionPin *pin)
{
	return static_cast<TimestampTz>(pg_atomic_read_u64(&version_slot(pin->slot)->refreshed));
}

void
pin_mark_refreshed(VersionPin *pin)
{
	pg_atomic_write_u64(&version_slot(pin->slot)->refreshed, static_cast<uint64>(GetCurrentTimestamp()));
}

bool
pin_all_columns(VersionPin *pin)
{
	return version_slot(pin->slot)->all_columns;
}

/* Is the pinned version the entry's, or (of_family) the entry's one with the same tablets? */
static bool
is_current(const VersionPin *pin, const RegistryEntry *entry, bool of_family)
{
	if (entry == NULL || entry->slot == NO_SLOT)
		return false;
	return entry->slot == pin->slot ||
		(of_family && version_slot(entry->slot)->family == version_slot(pin->slot)->family);
}

bool
registry_newer(VersionPin *pin)
{
	RegistryEntry *entry;
	int			old = pin->slot;

	LWLockAcquire(registry_lock(), LW_SHARED);
	entry = find_entry(MyDatabaseId, pin->relid);
	if (is_current(pin, entry, true) && entry->slot != pin->slot)
	{
		pin->slot = entry->slot;
		pg_atomic_fetch_add_u32(&version_slot(pin->slot)->refs, 1);
	}
	LWLockRelease(registry_lock());
	if (pin->slot == old)
		return false;
	slot_unref(old);
	return true;
}

static void
drop_dictionaries(const uint64 *drop, int ndrop)
{
	for (int i = 0; i < ndrop; i++)
		dictionary_drop(drop[i]);
}

/*
 * Plans depend on what is imported. Sent by hand, for invalidations of a
 * transaction are logged when it commits, which a standby cannot do.
 */
static void
invalidate_plans(const RegistryKey &key)
{
	SharedInvalidationMessage message;

	memset(&message, 0, sizeof(message));
	message.rc.id = SHAREDINVALRELCACHE_ID;
	message.rc.dbId = key.database;
	message.rc.relId = key.relid;
	SendSharedInvalidMessages(&message, 1);
}

static bool
has_specials(const ColumnSummary &high)
{
	return has_wide_specials(high.min, high.max);
}

/* Has a column NaN or infinities now that had none? Plans were made for numbers alone. */
static bool
gains_specials(const TableVersion *from, const TableVersion *to)
{
	const ColumnSummary *before = version_at<ColumnSummary>(from, from->columns);
	const ColumnSummary *after = version_at<ColumnSummary>(to, to->columns);

	for (uint32 i = 0; i < to->ncols; i++)
		if (is_high_half(after[i].attnum) && has_specials(after[i]) && !has_specials(before[i]))
			return true;
	return false;
}

bool
registry_replace(VersionPin *pin, uint64 version, bool same_tablets)
{
	VersionSlot *s = version_slot(pin->slot);
	RegistryEntry *entry;
	int			slot = NO_SLOT;
	int			pinned = pin->slot;
	int			replaced = NO_SLOT;
	uint64		drop[VERSION_MAX_COLS];
	int			ndrop = 0;
	const bool	outdates_plans = !same_tablets && gains_specials(pin_version(pin), arena_at<TableVersion>(version));

	LWLockAcquire(registry_lock(), LW_EXCLUSIVE);
	entry = find_entry(MyDatabaseId, pin->relid);
	if (is_current(pin, entry, !same_tablets))
		slot = take_slot(version, same_tablets ? s->family : arena_next_serial(), s->file_node, s->all_columns,
						 pg_atomic_read_u64(&s->refreshed));
	if (slot != NO_SLOT)
	{
		ndrop = families_publish(arena_at<TableVersion>(version), drop);
		replaced = entry->slot;
		entry->slot = slot;
		pin->slot = slot;
		pg_atomic_fetch_add_u32(&version_slot(slot)->refs, 1);
	}
	LWLockRelease(registry_lock());

	if (slot == NO_SLOT)
	{
		free_version(version);
		return false;
	}
	drop_dictionaries(drop, ndrop);
	slot_unref(replaced);
	slot_unref(pinned);
	if (outdates_plans)
		invalidate_plans({MyDatabaseId, pin->relid});
	return true;
}

/*
 * After the transaction callbacks, which end jobs in flight: from here on gpuvmd
 * reads no version on behalf of this owner.
 */
static void
release_pins_of_owner(ResourceReleasePhase phase, bool, bool, void *)
{
	VersionPin *pin = pins;

	if (phase != RESOURCE_RELEASE_AFTER_LOCKS)
		return;
	while (pin != NULL)
	{
		VersionPin *next = pin->next;

		if (pin->owner == CurrentResourceOwner)
			registry_unpin(pin);
		pin = next;
	}
}

/* -- reading --------------------------------------------------------------- */

int
version_column(const TableVersion *version, AttrNumber attnum)
{
	const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);

	for (uint32 i = 0; i < version->ncols; i++)
		if (columns[i].attnum == attnum)
			return columns[i].flags & COLUMN_LEFT_OUT ? -1 : static_cast<int>(i);
	return -1;
}

bool
version_has_all_columns(const TableVersion *version, TupleDesc desc)
{
	for (int i = 0; i < desc->natts; i++)
		if (!TupleDescAttr(desc, i)->attisdropped && version_column(version, i + 1) < 0)
			return false;
	return true;
}

bool
registry_describe(Oid relid, ImportedTable *table)
{
	RegistryEntry *entry;
	bool		found = false;

	if (!registry_any())
		return false;
	LWLockAcquire(registry_lock(), LW_SHARED);
	entry = find_entry(MyDatabaseId, relid);
	if (entry != NULL && entry->slot != NO_SLOT)
	{
		const TableVersion *version = arena_at<TableVersion>(version_slot(entry->slot)->version);
		const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);

		found = true;
		table->nrows = version->nrows;
		table->bytes = version->bytes;
		table->nblocks = version->nblocks;
		table->served_blocks = version->served_blocks;
		table->ntablets = version->ntablets;
		table->ncols = 0;
		table->of_file = version->origin != 0;
		/* columns of high halves are behind all others */
		for (uint32 i = 0; i < version->ncols && !is_high_half(columns[i].attnum); i++, table->ncols++)
		{
			table->attnums[i] = columns[i].attnum;
			table->types[i] = static_cast<uint8>(columns[i].flags & COLUMN_LEFT_OUT ? Type::None : columns[i].type);
			table->scales[i] = columns[i].scale;
			table->greatest[i] = columns[i].min < -PG_INT64_MAX ? PG_INT64_MAX : Max(Max(columns[i].max, -columns[i].min), 0);
			table->variable[i] = (columns[i].flags & COLUMN_VARIABLE) != 0;
			table->wide[i] = (columns[i].flags & COLUMN_WIDE) != 0;
			table->any_scale[i] = false;
			table->special[i] = table->wide[i] && has_specials(columns[version_column(version, high_half(columns[i].attnum))]);
			if (table->wide[i])
				table->greatest[i] = PG_INT64_MAX;
			table->entries[i] = columns[i].dictionary == 0 ? 0 : Max(arena_at<Dictionary>(columns[i].dictionary)->nentries, 1);
			table->families[i] = columns[i].dictionary == 0 || arena_at<Dictionary>(columns[i].dictionary)->nentries == 0 ? 0
				: arena_at<Dictionary>(columns[i].dictionary)->family;
		}
	}
	LWLockRelease(registry_lock());
	return found;
}

/* The slot that this transaction is going to publish; NO_SLOT if none. */
static int
pending_slot(Oid relid)
{
	int			slot = NO_SLOT;

	for (const PendingOp *op = pending_first; op != NULL; op = op->next)
		if (op->key.database == MyDatabaseId && op->key.relid == relid)
			slot = op->slot;
	return slot;
}

bool
registry_pending(Oid relid)
{
	return pending_slot(relid) != NO_SLOT;
}

uint64
registry_hold_dictionary(Oid relid, AttrNumber attnum, Form_pg_attribute att)
{
	int			slot = pending_slot(relid);
	RegistryEntry *entry;
	uint64		dictionary = 0;

	LWLockAcquire(registry_lock(), LW_SHARED);
	entry = find_entry(MyDatabaseId, relid);
	if (slot == NO_SLOT && entry != NULL)
		slot = entry->slot;
	if (slot != NO_SLOT)
	{
		const TableVersion *version = arena_at<TableVersion>(version_slot(slot)->version);
		int			column = version_column(version, attnum);

		if (column >= 0 && signature_has(version_at<char>(version, version->signature), version->signature_len, attnum, att))
			dictionary = version_at<ColumnSummary>(version, version->columns)[column].dictionary;
		dictionary_hold(dictionary);
	}
	LWLockRelease(registry_lock());
	return dictionary;
}

RegistryRow *
registry_list(int *count)
{
	RegistryRow *rows = static_cast<RegistryRow *>(palloc(REGISTRY_MAX_TABLES * sizeof(RegistryRow)));
	HASH_SEQ_STATUS scan;
	RegistryEntry *entry;

	*count = 0;
	if (!registry_any())
		return rows;
	LWLockAcquire(registry_lock(), LW_SHARED);
	hash_seq_init(&scan, entries);
	while ((entry = static_cast<RegistryEntry *>(hash_seq_search(&scan))) != NULL)
	{
		if (entry->key.database != MyDatabaseId || entry->slot == NO_SLOT || *count == REGISTRY_MAX_TABLES)
			continue;
		rows[*count].relid = entry->key.relid;
		rows[*count].all_columns = version_slot(entry->slot)->all_columns;
		(*count)++;
	}
	LWLockRelease(registry_lock());
	return rows;
}

int
registry_databases(Oid *databases, int max)
{
	HASH_SEQ_STATUS scan;
	RegistryEntry *entry;
	int			count = 0;

	if (!registry_any())
		return 0;
	LWLockAcquire(registry_lock(), LW_SHARED);
	hash_seq_init(&scan, entries);
	while ((entry = static_cast<RegistryEntry *>(hash_seq_search(&scan))) != NULL)
	{
		if (entry->slot == NO_SLOT || count == max ||
			std::find(databases, databases + count, entry->key.database) != databases + count)
			continue;
		databases[count++] = entry->key.database;
	}
	LWLockRelease(registry_lock());
	return count;
}

void
tablet_row_ctids(const TabletHeader *tablet, const uint32 *rows, uint32 n, uint32 *block_hint, ItemPointerData *ctids)
{
	const uint32_t *block_rows = tablet_at<uint32_t>(tablet, tablet->block_rows);
	const uint32_t *block_lps = tablet_at<uint32_t>(tablet, tablet->block_lps);
	const uint16_t *lps = tablet_at<uint16_t>(tablet, tablet->lps);
	uint32		block = *block_hint;

	for (uint32 i = 0; i < n; i++)
	{
		uint32		row = rows[i];

		if (row < block_rows[block] || row >= block_rows[block + 1])
			block = std::upper_bound(block_rows, block_rows + tablet->nblocks, row) - block_rows - 1;

		uint32		in_block = row - block_rows[block];

		ItemPointerSet(&ctids[i], tablet->first_block + block,
					   block_lps[block] == LPS_DENSE ? in_block + 1 : lps[block_lps[block] + in_block]);
	}
	*block_hint = block;
}

/* -- changes, at commit ------------------------------------------------------ */

static void
remove_entry_if_unused(RegistryEntry *entry)
{
	if (entry->slot == NO_SLOT && entry->promises == 0)
		hash_search(entries, &entry->key, HASH_REMOVE, NULL);
}

static PendingOp *
make_pending(Oid database, Oid relid)
{
	PendingOp  *op = static_cast<PendingOp *>(MemoryContextAllocZero(TopMemoryContext, sizeof(PendingOp)));

	op->subid = GetCurrentSubTransactionId();
	op->key.database = database;
	op->key.relid = relid;
	op->slot = NO_SLOT;
	return op;
}

static void
append_pending(PendingOp *op)
{
	*pending_last = op;
	pending_last = &op->next;
}

static void publish_now(const PendingOp *op);

void
registry_publish(Relation rel, uint64 version, bool all_columns, bool at_once)
{
	PendingOp  *op = make_pending(MyDatabaseId, RelationGetRelid(rel));
	uint64		now = static_cast<uint64>(GetCurrentTimestamp());
	RegistryEntry *entry;
	bool		found;

	LWLockAcquire(registry_lock(), LW_EXCLUSIVE);
	entry = static_cast<RegistryEntry *>(hash_search(entries, &op->key, HASH_ENTER_NULL, &found));
	if (entry != NULL && !found)
	{
		entry->slot = NO_SLOT;
		entry->promises = 0;
	}
	if (entry != NULL)
		op->slot = take_slot(version, arena_next_serial(), RelationFileNode(rel), all_columns, now);
	if (op->slot != NO_SLOT)
		entry->promises++;
	else if (entry != NULL)
		remove_entry_if_unused(entry);
	LWLockRelease(registry_lock());

	if (op->slot == NO_SLOT)
	{
		pfree(op);
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many tables are imported"),
				 errdetail("At most %d tables can be imported at a time.", REGISTRY_MAX_TABLES),
				 errhint("Release tables with gpuvm.release().")));
	}
	if (!at_once)
	{
		append_pending(op);
		return;
	}
	publish_now(op);
	pfree(op);
}

void
registry_release(Oid database, Oid relid)
{
	append_pending(make_pending(database, relid));
}

void
registry_sweep(void)
{
	int			count;
	RegistryRow *rows = registry_list(&count);

	/* only now, or a table made and imported a moment ago may look gone */
	AcceptInvalidationMessages();
	for (int i = 0; i < count; i++)
		if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(rows[i].relid)))
			registry_release(MyDatabaseId, rows[i].relid);
	pfree(rows);
}

static void
publish_now(const PendingOp *op)
{
	RegistryEntry *entry;
	int			replaced;
	uint64		drop[VERSION_MAX_COLS];
	int			ndrop;

	LWLockAcquire(registry_lock(), LW_EXCLUSIVE);
	ndrop = families_publish(arena_at<TableVersion>(version_slot(op->slot)->version), drop);
	entry = find_entry(op->key.database, op->key.relid);
	replaced = entry->slot;
	entry->slot = op->slot;		/* with the transaction's reference */
	entry->promises--;
	if (replaced == NO_SLOT)
		pg_atomic_fetch_add_u32(&registry_shared()->published, 1);
	LWLockRelease(registry_lock());
	drop_dictionaries(drop, ndrop);
	if (replaced != NO_SLOT)
		slot_unref(replaced);
	invalidate_plans(op->key);
}

/* Drops the entry's reference; false when there was none. */
static bool
release_now(Oid database, Oid relid)
{
	RegistryEntry *entry;
	int			released = NO_SLOT;

	LWLockAcquire(registry_lock(), LW_EXCLUSIVE);
	entry = find_entry(database, relid);
	if (entry != NULL && entry->slot != NO_SLOT)
	{
		released = entry->slot;
		entry->slot = NO_SLOT;
		pg_atomic_fetch_sub_u32(&registry_shared()->published, 1);
		remove_entry_if_unused(entry);
	}
	LWLockRelease(registry_lock());
	if (released == NO_SLOT)
		return false;
	slot_unref(released);
	invalidate_plans({database, relid});
	return true;
}

static void
release_database_now(Oid database)
{
	for (;;)
	{
		HASH_SEQ_STATUS scan;
		RegistryEntry *entry;
		Oid			relid = InvalidOid;

		LWLockAcquire(registry_lock(), LW_SHARED);
		hash_seq_init(&scan, entries);
		while ((entry = static_cast<RegistryEntry *>(hash_seq_search(&scan))) != NULL)
			if (entry->key.database == database && entry->slot != NO_SLOT)
			{
				relid = entry->key.relid;
				hash_seq_term(&scan);
				break;
			}
		LWLockRelease(registry_lock());
		if (!OidIsValid(relid))
			return;
		release_now(database, relid);
	}
}

static void
discard(const PendingOp *op)
{
	RegistryEntry *entry;

	if (op->slot == NO_SLOT)
		return;
	LWLockAcquire(registry_lock(), LW_EXCLUSIVE);
	entry = find_entry(op->key.database, op->key.relid);
	entry->promises--;
	remove_entry_if_unused(entry);
	LWLockRelease(registry_lock());
	slot_unref(op->slot);
}

static void
end_pending(bool commit)
{
	while (pending_first != NULL)
	{
		PendingOp  *op = pending_first;

		pending_first = op->next;
		if (!commit)
			discard(op);
		else if (op->slot != NO_SLOT)
			publish_now(op);
		else if (OidIsValid(op->key.relid))
			release_now(op->key.database, op->key.relid);
		else
			release_database_now(op->key.database);
		pfree(op);
	}
	pending_last = &pending_first;
}

static void
registry_xact_callback(XactEvent event, void *)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
			end_pending(true);
			break;
		case XACT_EVENT_ABORT:
			import_abandon();
			end_pending(false);
			break;
		case XACT_EVENT_PRE_PREPARE:
			for (PendingOp *op = pending_first; op != NULL; op = op->next)
			{
				if (op->slot != NO_SLOT)
					ereport(ERROR,
							(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							 errmsg("cannot PREPARE a transaction that has imported tables")));
			}
			/* To release early (a dropped table's tablets, say) costs a fallback at worst. */
			end_pending(true);
			break;
		default:
			break;
	}
}

static void
registry_subxact_callback(SubXactEvent event, SubTransactionId subid, SubTransactionId parent, void *)
{
	PendingOp **link = &pending_first;

	if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
		return;
	if (event == SUBXACT_EVENT_ABORT_SUB)
		import_abandon();
	while (*link != NULL)
	{
		PendingOp  *op = *link;

		if (op->subid == subid && event == SUBXACT_EVENT_ABORT_SUB)
		{
			*link = op->next;
			discard(op);
			pfree(op);
			continue;
		}
		if (op->subid == subid)
			op->subid = parent;
		link = &op->next;
	}
	pending_last = link;
}

/* DROP TABLE and DROP DATABASE free the tablets at commit; that they are not used is up to the file node. */
static void
registry_object_access(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id, void *arg)
{
	if (previous_object_access_hook)
		previous_object_access_hook(access, class_id, object_id, sub_id, arg);
	if (access != OAT_DROP || sub_id != 0 || !registry_any())
		return;
	if (class_id == RelationRelationId && registry_known(object_id))
		registry_release(MyDatabaseId, object_id);
	else if (class_id == DatabaseRelationId)
		registry_release(object_id, InvalidOid);
}

void
registry_install(void)
{
	RegisterXactCallback(registry_xact_callback, NULL);
	RegisterSubXactCallback(registry_subxact_callback, NULL);
	RegisterResourceReleaseCallback(release_pins_of_owner, NULL);
	previous_object_access_hook = object_access_hook;
	object_access_hook = registry_object_access;
}

}  // namespace gpuvm
