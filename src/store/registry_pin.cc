/*
 * registry_pin.cc: pins of versions, and what replaces a pinned version at once.
 *
 * Pins belong to the ResourceOwner that was current when they were made, like
 * buffer pins: they end with it at the latest, so an error cannot leak one.
 */
#include "store/registry_table.h"

#include "pg/shmem.h"
#include "pg/stats.h"
#include "store/checksum.h"
#include "store/family.h"
#include "store/refresher.h"

extern "C" {
#include "utils/memutils.h"
#include "utils/timestamp.h"
}

namespace gpuvm {

struct VersionPin
{
	VersionPin *next;
	ResourceOwner owner;
	Oid			relid;
	int			slot;
};

static VersionPin *pins = NULL;

static VersionPin *
new_pin(Oid relid)
{
	VersionPin *pin = static_cast<VersionPin *>(MemoryContextAlloc(TopMemoryContext, sizeof(VersionPin)));

	pin->slot = NO_SLOT;
	pin->owner = CurrentResourceOwner;
	pin->relid = relid;
	return pin;
}

/* Pins the current version; the caller checks what it was made for. */
VersionPin *
registry_pin_any(Oid relid)
{
	VersionPin *pin;
	RegistryEntry *entry;

	if (!registry_any())
		return NULL;
	pin = new_pin(relid);
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

/* A version that nobody has any more is not to be had. Under the registry lock. */
static bool
ref_if_used(VersionSlot *slot)
{
	uint32		refs = pg_atomic_read_u32(&slot->refs);

	while (refs > 0)
		if (pg_atomic_compare_exchange_u32(&slot->refs, &refs, refs + 1))
			return true;
	return false;
}

PinnedVersion *
registry_pin_all(int *count)
{
	PinnedVersion *all = static_cast<PinnedVersion *>(palloc(REGISTRY_MAX_VERSIONS * sizeof(PinnedVersion)));

	*count = 0;
	for (int i = 0; registry_shared() != NULL && i < REGISTRY_MAX_VERSIONS; i++)
	{
		VersionSlot *s = version_slot(i);
		RegistryKey key = {};
		bool		current = false;
		VersionPin *pin;

		if (pg_atomic_read_u32(&s->refs) == 0)
			continue;
		pin = new_pin(InvalidOid);
		LWLockAcquire(registry_lock(), LW_SHARED);
		if (ref_if_used(s))
		{
			const RegistryEntry *entry = find_entry(s->key.database, s->key.relid);

			pin->slot = i;
			key = s->key;
			current = entry != NULL && entry->slot == i;
		}
		LWLockRelease(registry_lock());
		if (pin->slot == NO_SLOT)
		{
			pfree(pin);
			continue;
		}
		pin->relid = key.relid;
		pin->next = pins;
		pins = pin;
		all[(*count)++] = PinnedVersion{key.database, key.relid, pin, current};
	}
	return all;
}

void
registry_unpin_all(PinnedVersion *all, int count)
{
	/* the last one is the first of the list */
	for (int i = count - 1; i >= 0; i--)
		registry_unpin(all[i].pin);
	pfree(all);
}

bool
pin_is_of_file(VersionPin *pin, Relation rel)
{
	return !RelationInThisTransaction(rel) && FileNodeEquals(version_slot(pin->slot)->file_node, RelationFileNode(rel));
}

bool
pin_matches(VersionPin *pin, Relation rel)
{
	const TableVersion *version = pin_version(pin);
	Signature	signature;
	bool		equal;

	if (!pin_is_of_file(pin, rel))
		return false;
	signature = make_signature(RelationGetDescr(rel));
	equal = signature.len == version->signature_len &&
		memcmp(signature.data, version_at<char>(version, version->signature), signature.len) == 0;
	pfree(signature.data);
	return equal;
}

bool
pin_is_sealed(VersionPin *pin)
{
	const TableVersion *version = pin_version(pin);
	const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);

	if (!version_is_sealed(pin_offset(pin)))
		return false;
	for (uint32 i = 0; i < version->ncols; i++)
		if (columns[i].dictionary != 0 && !dictionary_header_is_sealed(columns[i].dictionary))
			return false;
	return true;
}

void
registry_check(Relation rel)
{
	VersionPin *pin = registry_pin_any(RelationGetRelid(rel));
	bool		sound;

	if (pin == NULL)
		return;
	sound = pin_is_sealed(pin);
	registry_unpin(pin);
	if (!sound)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("what says where tablets of table \"%s\" are does not match its checksum", RelationGetRelationName(rel)),
				 errhint("gpuvm.release() and then gpuvm.import() of it, or of the partitioned table that it belongs to, copy it anew.")));
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
		slot = take_slot(entry->key, version, same_tablets ? s->family : arena_next_serial(), s->file_node, s->all_columns,
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
void
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

}  // namespace gpuvm
