/*
 * quarantine.cc: programs that have ended gpuvmd, in shared memory (quarantine_table.h). The supervisor counts a crash
 * against the program that gpuvmd's crashing thread named, and against nobody else; backends ask before they run one.
 */
#include "pg/quarantine.h"

#include <poll.h>

#include "pg/startup.h"

extern "C" {
#include "storage/lwlock.h"
#include "utils/timestamp.h"
}

namespace gpuvm {

/* Reaping gpuvmd takes the supervisor as long as its threads take to leave. */
constexpr int REAP_TIMEOUT_MS = 1000;

/* Written under AddinShmemInitLock, which nobody holds in normal running; read without. All zero at start-up. */
struct QuarantineShared
{
	QuarantineTable table;
};

Size
quarantine_shared_size(void)
{
	return MAXALIGN(sizeof(QuarantineShared));
}

bool
engine_quarantined(uint64 program, Device device)
{
	QuarantineShared *shared = quarantine_shared();

	return shared != NULL && !shared->table.empty() && shared->table.barred(program, device, GetCurrentTimestamp());
}

bool
engine_crash_bars(uint64 program, uint32 generation)
{
	for (int ms = 0; arena_header()->engine_reaped.load() < generation && ms < REAP_TIMEOUT_MS; ms += 10)
		(void) poll(NULL, 0, 10);
	return engine_quarantined(program, Device::Cpu);
}

void
quarantine_note_crash(const BlamedCrash &crash)
{
	QuarantineShared *shared = quarantine_shared();

	if (shared == NULL || crash.program == 0)
		return;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared->table.count_crash(crash, GetCurrentTimestamp());
	LWLockRelease(AddinShmemInitLock);
}

void
quarantine_note_run(uint64 program, Device device)
{
	QuarantineShared *shared = quarantine_shared();

	if (shared == NULL || shared->table.empty() || !shared->table.remembers_bar(program, device, GetCurrentTimestamp()))
		return;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared->table.count_run(program, device, GetCurrentTimestamp());
	LWLockRelease(AddinShmemInitLock);
}

int
quarantine_forgive(uint64 program)
{
	QuarantineShared *shared = quarantine_shared();
	int			count;

	if (shared == NULL)
		return 0;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	count = shared->table.forgive(program);
	LWLockRelease(AddinShmemInitLock);
	return count;
}

QuarantineRow *
quarantine_list(int *count)
{
	QuarantineShared *shared = quarantine_shared();
	QuarantineRow *rows = static_cast<QuarantineRow *>(palloc(sizeof(QuarantineRow) * QuarantineTable::ENTRIES));

	*count = 0;
	if (shared == NULL)
		return rows;
	LWLockAcquire(AddinShmemInitLock, LW_SHARED);
	for (const QuarantineEntry &entry : shared->table)
	{
		if (entry.in_use())
			rows[(*count)++] = {{entry.program(), entry.device, entry.cause}, entry.crashes, entry.last_crash, entry.barred_until.load()};
	}
	LWLockRelease(AddinShmemInitLock);
	return rows;
}

}  // namespace gpuvm
