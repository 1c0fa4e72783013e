/*
 * quarantine.cc: programs that were running when gpuvmd went away, by hash, in
 * shared memory. A program that was there twice is not run again until the
 * server restarts. Programs that merely ran beside the guilty one are counted
 * too: better a few queries in PostgreSQL's hands than an engine that crashes
 * all day. Where a device ended gpuvmd, only the programs that ran on it are
 * counted, and barred from devices alone: they still have the CPU.
 */
#include "pg/engine_client.h"
#include "pg/startup.h"

extern "C" {
#include "port/atomics.h"
#include "storage/lwlock.h"
}

namespace gpuvm {

constexpr int QUARANTINE_ENTRIES = 128;
constexpr uint32 QUARANTINE_CRASHES = 2;

struct QuarantineEntry
{
	pg_atomic_uint64 hash;
	pg_atomic_uint32 crashes;
	uint32		generation;		/* of the gpuvmd whose end was counted last */
};

/* Written under AddinShmemInitLock, which nobody holds in normal running; read without. */
struct QuarantineShared
{
	pg_atomic_uint32 used;		/* entries in use; the first ones */
	uint32		victim;			/* the next to be replaced when all are in use */
	QuarantineEntry entries[QUARANTINE_ENTRIES];
};

Size
quarantine_shared_size(void)
{
	return MAXALIGN(sizeof(QuarantineShared));
}

static QuarantineEntry *
find_entry(QuarantineShared *table, uint64 hash)
{
	uint32		used = pg_atomic_read_u32(&table->used);

	for (uint32 i = 0; i < used; i++)
	{
		if (pg_atomic_read_u64(&table->entries[i].hash) == hash)
			return &table->entries[i];
	}
	return NULL;
}

static uint64
quarantine_key(uint64 program_hash, Device device)
{
	return device == Device::Cuda ? ~program_hash : program_hash;
}

bool
engine_quarantined(uint64 program_hash, Device device)
{
	QuarantineShared *table = quarantine_shared();
	QuarantineEntry *entry = table ? find_entry(table, quarantine_key(program_hash, device)) : NULL;

	return entry != NULL && pg_atomic_read_u32(&entry->crashes) >= QUARANTINE_CRASHES;
}

/* Under the lock. */
static void
count_crash(QuarantineShared *table, uint64 key, uint32 generation)
{
	QuarantineEntry *entry = find_entry(table, key);

	if (entry == NULL)
	{
		uint32		used = pg_atomic_read_u32(&table->used);

		if (used < QUARANTINE_ENTRIES)
			entry = &table->entries[used];
		else
			entry = &table->entries[table->victim++ % QUARANTINE_ENTRIES];
		pg_atomic_write_u32(&entry->crashes, 0);
		pg_atomic_write_u64(&entry->hash, key);
		pg_write_barrier();
		if (used < QUARANTINE_ENTRIES)
			pg_atomic_write_u32(&table->used, used + 1);
	}
	/* Several backends may have run it when it ended: that is one crash. */
	if (pg_atomic_read_u32(&entry->crashes) == 0 || entry->generation != generation)
	{
		entry->generation = generation;
		pg_atomic_fetch_add_u32(&entry->crashes, 1);
	}
}

void
engine_note_crash(EngineSession *session, uint64 program_hash)
{
	uint32		generation = engine_generation(session);
	QuarantineShared *table = quarantine_shared();

	if (table == NULL)
		return;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	if (engine_job(session)->ran_on == Device::Cuda)
		count_crash(table, quarantine_key(program_hash, Device::Cuda), generation);
	if (!engine_ended_by_device(session))
		count_crash(table, quarantine_key(program_hash, Device::Cpu), generation);
	LWLockRelease(AddinShmemInitLock);
}

}  // namespace gpuvm
