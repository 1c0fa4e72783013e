/*
 * registry.cc: the shared table of imported tables: its entries and slots, and what is read of it.
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
 */
#include "store/registry_table.h"

#include <algorithm>

#include "pg/shmem.h"
#include "store/checksum.h"
#include "store/dictionary.h"

extern "C" {
#include "access/xact.h"
#include "pgstat.h"
#include "storage/shmem.h"
#include "storage/sinval.h"
}

namespace gpuvm {

HTAB	   *registry_entries = NULL;

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
	registry_entries = ShmemInitHash("gpuvm registry entries", REGISTRY_MAX_TABLES, REGISTRY_MAX_TABLES,
							&control, HASH_ELEM | HASH_BLOBS);
}

RegistryEntry *
find_entry(Oid database, Oid relid)
{
	RegistryKey key = {database, relid};

	return static_cast<RegistryEntry *>(hash_search(registry_entries, &key, HASH_FIND, NULL));
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
registry_count_use(Relation rel, uint64 nrows)
{
	RegistryEntry *entry;

	LWLockAcquire(registry_lock(), LW_SHARED);
	entry = find_entry(MyDatabaseId, RelationGetRelid(rel));
	if (entry != NULL)
	{
		pg_atomic_fetch_add_u64(&entry->uses, 1);
		pg_atomic_write_u64(&entry->last_use, static_cast<uint64>(GetCurrentStatementStartTimestamp()));
	}
	LWLockRelease(registry_lock());
	pgstat_count_heap_scan(rel);
	/* this one, too, adds to the rows that scans of the relation returned */
	pgstat_count_index_tuples(rel, static_cast<PgStat_Counter>(nrows));
}

void
registry_uses(Oid relid, uint64 *uses, int64 *last)
{
	RegistryEntry *entry;

	LWLockAcquire(registry_lock(), LW_SHARED);
	entry = find_entry(MyDatabaseId, relid);
	*uses = entry == NULL ? 0 : pg_atomic_read_u64(&entry->uses);
	*last = entry == NULL ? 0 : static_cast<int64>(pg_atomic_read_u64(&entry->last_use));
	LWLockRelease(registry_lock());
}

void
remove_entry_if_unused(RegistryEntry *entry)
{
	if (entry->slot == NO_SLOT && entry->promises == 0)
		hash_search(registry_entries, &entry->key, HASH_REMOVE, NULL);
}

int
take_slot(const RegistryKey &key, uint64 version, uint64 family, const FileNode &file_node, bool all_columns, uint64 refreshed)
{
	int			slot = registry_shared()->first_free;
	VersionSlot *s;

	if (slot == NO_SLOT)
		return NO_SLOT;
	s = version_slot(slot);
	registry_shared()->first_free = s->next_free;
	pg_atomic_write_u32(&s->refs, 1);
	s->key = key;
	s->version = version;
	s->family = family;
	s->file_node = file_node;
	s->all_columns = all_columns;
	pg_atomic_write_u64(&s->refreshed, refreshed);
	return slot;
}

void
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

void
drop_dictionaries(const uint64 *drop, int ndrop)
{
	for (int i = 0; i < ndrop; i++)
		dictionary_drop(drop[i]);
}

void
invalidate_plans(const RegistryKey &key)
{
	SharedInvalidationMessage message;

	memset(&message, 0, sizeof(message));
	message.rc.id = SHAREDINVALRELCACHE_ID;
	message.rc.dbId = key.database;
	message.rc.relId = key.relid;
	SendSharedInvalidMessages(&message, 1);
}

void
registry_outdate_plans(Relation rel)
{
	invalidate_plans({MyDatabaseId, RelationGetRelid(rel)});
}

/* -- reading --------------------------------------------------------------- */

int
imported_column(const ImportedTable *table, AttrNumber attnum)
{
	for (uint32 i = 0; i < table->ncols; i++)
	{
		if (table->attnums[i] == attnum)
			return static_cast<int>(i);
	}
	return -1;
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
		table->delta = DeltaSize{};
		/* columns of high halves are behind all others */
		for (uint32 i = 0; i < version->ncols && !is_high_half(columns[i].attnum); i++, table->ncols++)
		{
			table->attnums[i] = columns[i].attnum;
			table->types[i] = static_cast<uint8>(columns[i].flags & COLUMN_LEFT_OUT ? Type::None : columns[i].type);
			table->scales[i] = columns[i].scale;
			table->widths[i] = version->ntablets > 0 ? columns[i].max_width : type_natural_width(columns[i].type);
			table->greatest[i] = columns[i].min < -PG_INT64_MAX ? PG_INT64_MAX : Max(Max(columns[i].max, -columns[i].min), 0);
			table->variable[i] = (columns[i].flags & COLUMN_VARIABLE) != 0;
			table->wide[i] = (columns[i].flags & COLUMN_WIDE) != 0;
			table->special[i] = table->wide[i] && has_specials(columns[version_column(version, high_half(columns[i].attnum))]);
			if (table->wide[i])
			{
				table->greatest[i] = PG_INT64_MAX;
				table->widths[i] += type_natural_width(Type::I64);
			}
			table->entries[i] = columns[i].dictionary == 0 ? 0 : Max(arena_at<Dictionary>(columns[i].dictionary)->nentries, 1);
			table->families[i] = columns[i].dictionary == 0 || arena_at<Dictionary>(columns[i].dictionary)->nentries == 0 ? 0
				: arena_at<Dictionary>(columns[i].dictionary)->family;
		}
	}
	LWLockRelease(registry_lock());
	return found;
}

uint64
registry_hold_dictionary(Oid relid, AttrNumber attnum, Form_pg_attribute att, bool *damaged)
{
	int			slot = pending_slot(relid);
	RegistryEntry *entry;
	uint64		dictionary = 0;

	LWLockAcquire(registry_lock(), LW_SHARED);
	entry = find_entry(MyDatabaseId, relid);
	if (slot == NO_SLOT && entry != NULL)
		slot = entry->slot;
	if (slot != NO_SLOT && !version_is_sealed(version_slot(slot)->version))
		*damaged = true;
	else if (slot != NO_SLOT)
	{
		const TableVersion *version = arena_at<TableVersion>(version_slot(slot)->version);
		int			column = version_column(version, attnum);

		if (column >= 0 && signature_has(version_at<char>(version, version->signature), version->signature_len, attnum, att))
			dictionary = version_at<ColumnSummary>(version, version->columns)[column].dictionary;
		if (dictionary != 0 && !dictionary_header_is_sealed(dictionary))
		{
			*damaged = true;
			dictionary = 0;
		}
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
	hash_seq_init(&scan, registry_entries);
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
	hash_seq_init(&scan, registry_entries);
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

}  // namespace gpuvm
