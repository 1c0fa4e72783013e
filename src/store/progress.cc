/*
 * progress.cc: what imports are doing, for gpuvm.import_progress. A slot belongs
 * to the backend whose pid it holds; the processes of one import add to its
 * counters without a lock.
 */
#include "store/internal.h"

namespace gpuvm {

constexpr int PROGRESS_SLOTS = 64;

struct ProgressSlot
{
	int			pid;			/* 0: free */
	Oid			database;
	Oid			relid;
	pg_atomic_uint32 phase;
	pg_atomic_uint32 vacuumed;	/* set by the worker when its VACUUM ended */
	pg_atomic_uint64 blocks_total;
	pg_atomic_uint64 blocks_done;
	pg_atomic_uint64 rows;
};

struct ProgressShared
{
	ProgressSlot slots[PROGRESS_SLOTS];
};

static int	own_slot = -1;

Size
progress_shared_size(void)
{
	return MAXALIGN(sizeof(ProgressShared));
}

void
progress_init(ProgressShared *shared)
{
	for (ProgressSlot &slot : shared->slots)
	{
		slot.pid = 0;
		pg_atomic_init_u32(&slot.phase, 0);
		pg_atomic_init_u32(&slot.vacuumed, 0);
		pg_atomic_init_u64(&slot.blocks_total, 0);
		pg_atomic_init_u64(&slot.blocks_done, 0);
		pg_atomic_init_u64(&slot.rows, 0);
	}
}

static ProgressSlot *
progress_slot(int slot)
{
	return &progress_shared()->slots[slot];
}

int
progress_begin(Oid relid, BlockNumber blocks_total)
{
	progress_end();
	LWLockAcquire(progress_lock(), LW_EXCLUSIVE);
	for (int i = 0; i < PROGRESS_SLOTS && own_slot < 0; i++)
	{
		ProgressSlot *slot = progress_slot(i);

		if (slot->pid != 0)
			continue;
		slot->pid = MyProcPid;
		slot->database = MyDatabaseId;
		slot->relid = relid;
		pg_atomic_write_u32(&slot->phase, IMPORT_VACUUMING);
		pg_atomic_write_u32(&slot->vacuumed, 0);
		pg_atomic_write_u64(&slot->blocks_total, blocks_total);
		pg_atomic_write_u64(&slot->blocks_done, 0);
		pg_atomic_write_u64(&slot->rows, 0);
		own_slot = i;
	}
	LWLockRelease(progress_lock());
	return own_slot;
}

void
progress_phase(int slot, ImportPhase phase)
{
	if (slot >= 0)
		pg_atomic_write_u32(&progress_slot(slot)->phase, phase);
}

/* From the beginning, of so many blocks. */
void
progress_copying(int slot, BlockNumber blocks_total)
{
	progress_phase(slot, IMPORT_COPYING);
	if (slot < 0)
		return;
	pg_atomic_write_u64(&progress_slot(slot)->blocks_total, blocks_total);
	pg_atomic_write_u64(&progress_slot(slot)->blocks_done, 0);
	pg_atomic_write_u64(&progress_slot(slot)->rows, 0);
}

void
progress_add(int slot, uint64 blocks, uint64 rows)
{
	if (slot < 0)
		return;
	pg_atomic_fetch_add_u64(&progress_slot(slot)->blocks_done, blocks);
	pg_atomic_fetch_add_u64(&progress_slot(slot)->rows, rows);
}

void
progress_end(void)
{
	if (own_slot < 0)
		return;
	LWLockAcquire(progress_lock(), LW_EXCLUSIVE);
	progress_slot(own_slot)->pid = 0;
	LWLockRelease(progress_lock());
	own_slot = -1;
}

bool
progress_vacuumed(int slot)
{
	return slot >= 0 && pg_atomic_read_u32(&progress_slot(slot)->vacuumed) != 0;
}

void
progress_set_vacuumed(int slot)
{
	if (slot >= 0)
		pg_atomic_write_u32(&progress_slot(slot)->vacuumed, 1);
}

ProgressRow *
progress_list(int *count)
{
	ProgressRow *rows = static_cast<ProgressRow *>(palloc(PROGRESS_SLOTS * sizeof(ProgressRow)));

	*count = 0;
	if (progress_shared() == NULL)
		return rows;
	LWLockAcquire(progress_lock(), LW_SHARED);
	for (int i = 0; i < PROGRESS_SLOTS; i++)
	{
		ProgressSlot *slot = progress_slot(i);
		ProgressRow *row = &rows[*count];

		if (slot->pid == 0 || slot->database != MyDatabaseId)
			continue;
		row->pid = slot->pid;
		row->relid = slot->relid;
		row->phase = static_cast<ImportPhase>(pg_atomic_read_u32(&slot->phase));
		row->blocks_total = pg_atomic_read_u64(&slot->blocks_total);
		row->blocks_done = pg_atomic_read_u64(&slot->blocks_done);
		row->rows = pg_atomic_read_u64(&slot->rows);
		(*count)++;
	}
	LWLockRelease(progress_lock());
	return rows;
}

}  // namespace gpuvm
