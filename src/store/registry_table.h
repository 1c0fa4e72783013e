/*
 * registry_table.h: the shared table itself, for the files that make it up (registry.cc has its rules).
 */
#ifndef GPUVM_STORE_REGISTRY_TABLE_H
#define GPUVM_STORE_REGISTRY_TABLE_H

#include "store/internal.h"
#include "tablet/wide_halves.h"

extern "C" {
#include "utils/hsearch.h"
#include "utils/resowner.h"
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
	pg_atomic_uint64 uses;		/* programs that have read it, */
	pg_atomic_uint64 last_use;	/* and the TimestampTz of the last one's statement; 0: none */
};

struct VersionSlot
{
	pg_atomic_uint32 refs;
	int			next_free;
	RegistryKey key;			/* whose version it is */
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

extern HTAB *registry_entries;

inline VersionSlot *
version_slot(int slot)
{
	return &registry_shared()->slots[slot];
}

/* What follows is done under the registry lock: a change to the table exclusively, */
RegistryEntry *find_entry(Oid database, Oid relid);
void		remove_entry_if_unused(RegistryEntry *entry);

/* a slot for the version, with one reference; NO_SLOT if all are taken. */
int			take_slot(const RegistryKey &key, uint64 version, uint64 family, const FileNode &file_node, bool all_columns, uint64 refreshed);

/* Drops a reference to a slot; the registry lock must not be held. */
void		slot_unref(int slot);

/* Of dictionaries that a publication has replaced (families_publish); the registry lock must not be held. */
void		drop_dictionaries(const uint64 *drop, int ndrop);

/*
 * Plans depend on what is imported. Sent by hand, for invalidations of a
 * transaction are logged when it commits, which a standby cannot do.
 */
void		invalidate_plans(const RegistryKey &key);

/* Has a column of high halves NaN or infinities? */
inline bool
has_specials(const ColumnSummary &high)
{
	return has_wide_specials(high.min, high.max);
}

/* -- registry_pin.cc */

void		release_pins_of_owner(ResourceReleasePhase phase, bool is_commit, bool is_top_level, void *arg);

/* -- registry_commit.cc */

/* The slot that this transaction is going to publish; NO_SLOT if none. */
int			pending_slot(Oid relid);

}  // namespace gpuvm

#endif
