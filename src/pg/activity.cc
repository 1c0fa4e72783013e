/*
 * activity.cc: which sessions with gpuvmd there are.
 *
 * Each slot is written by the process that has taken it, and read by anybody
 * without a lock: a reader may see a row that is half of one statement and half
 * of the next of the same user.
 */
#include "pg/activity.h"

extern "C" {
#include "miscadmin.h"
#include "port/atomics.h"
#include "postmaster/bgworker_internals.h"
#include "utils/timestamp.h"
}

namespace gpuvm {

struct ActivitySlot
{
	pg_atomic_uint32 pid;		/* 0: free */
	pg_atomic_uint32 used;
	Oid			database;
	Oid			role;
	uint64		job;
	uint64		memory;
	TimestampTz submitted;
};

struct ActivityShared
{
	int			nslots;
	ActivitySlot slots[FLEXIBLE_ARRAY_MEMBER];
};

static ActivityShared *shared = NULL;

/* Cursors have sessions of their own: two a process, one with another. */
static int
slots_wanted(void)
{
	return 2 * (MaxConnections + max_worker_processes);
}

Size
activity_shared_size(void)
{
	return MAXALIGN(offsetof(ActivityShared, slots) + slots_wanted() * sizeof(ActivitySlot));
}

void
activity_shared_init(ActivityShared *at)
{
	shared = at;
	shared->nslots = slots_wanted();
}

ActivitySlot *
activity_begin(uint64 job)
{
	for (int i = 0; i < shared->nslots; i++)
	{
		ActivitySlot *slot = &shared->slots[i];
		uint32		expected = 0;

		if (pg_atomic_read_u32(&slot->pid) != 0 || !pg_atomic_compare_exchange_u32(&slot->pid, &expected, static_cast<uint32>(MyProcPid)))
			continue;
		pg_atomic_write_u32(&slot->used, 0);
		slot->database = MyDatabaseId;
		slot->job = job;
		return slot;
	}
	return NULL;
}

void
activity_end(ActivitySlot *slot)
{
	if (slot == NULL)
		return;
	pg_atomic_write_u32(&slot->used, 0);
	pg_atomic_write_u32(&slot->pid, 0);
}

void
activity_use(ActivitySlot *slot)
{
	if (slot == NULL)
		return;
	slot->role = GetUserId();
	slot->memory = 0;
	slot->submitted = 0;
	pg_write_barrier();
	pg_atomic_write_u32(&slot->used, 1);
}

void
activity_memory(ActivitySlot *slot, uint64 bytes)
{
	if (slot != NULL)
		slot->memory = bytes;
}

void
activity_submit(ActivitySlot *slot)
{
	if (slot != NULL)
		slot->submitted = GetCurrentTimestamp();
}

void
activity_release(ActivitySlot *slot)
{
	if (slot != NULL)
		pg_atomic_write_u32(&slot->used, 0);
}

static bool
read_slot(int number, ActivityRow *row)
{
	ActivitySlot *slot = &shared->slots[number];
	const uint32 pid = pg_atomic_read_u32(&slot->pid);

	if (pid == 0 || pg_atomic_read_u32(&slot->used) == 0)
		return false;
	pg_read_barrier();
	*row = ActivityRow{static_cast<int>(pid), slot->database, slot->role, slot->job, number, slot->memory, slot->submitted};
	return true;
}

ActivityRow *
activity_list(int *count)
{
	ActivityRow *rows = static_cast<ActivityRow *>(palloc(sizeof(ActivityRow) * shared->nslots));

	*count = 0;
	for (int i = 0; i < shared->nslots; i++)
		*count += read_slot(i, &rows[*count]) ? 1 : 0;
	return rows;
}

bool
activity_is(const ActivityRow *row)
{
	ActivityRow now;

	pg_read_barrier();
	return read_slot(row->slot, &now) && now.pid == row->pid && now.role == row->role && now.job == row->job;
}

}  // namespace gpuvm
