/*
 * vacuum.cc: a fresh table has no all-visible bits, so import would copy nothing.
 * VACUUM sets them, but cannot run within a transaction: a background worker
 * runs it, as autovacuum would, while the import waits.
 *
 * Options: SKIP_LOCKED, so that it cannot wait for a lock that the importing
 * session holds; no truncation, which would try for seconds to get past that
 * session's lock; indexes always cleaned, because VACUUM otherwise leaves pages
 * with a few dead line pointers, which are not all-visible.
 *
 * A relation that many extend at once, and from PostgreSQL 16 on every one that
 * is loaded, ends in pages that nobody has initialized. VACUUM leaves these as
 * they are, so that each query would look into them: here they become what an
 * empty page is to VACUUM, initialized and all-visible. Who fills them has the
 * page's lock, and expects any state, as they are in the free space map.
 */
#include "store/internal.h"

#include "pg/shmem.h"

extern "C" {
#include "access/relation.h"
#include "access/visibilitymap.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/pg_control.h"
#include "commands/vacuum.h"
#include "nodes/makefuncs.h"
#include "postmaster/bgworker.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

PGDLLEXPORT void gpuvm_vacuum_main(Datum arg);
}

namespace gpuvm {

struct VacuumRequest			/* in bgw_extra */
{
	Oid			database;
	Oid			relid;
	int			progress_slot;
};
static_assert(sizeof(VacuumRequest) <= BGW_EXTRALEN, "must fit bgw_extra");

static void
stop_vacuum(int, Datum handle)
{
	TerminateBackgroundWorker(reinterpret_cast<BackgroundWorkerHandle *>(DatumGetPointer(handle)));
}

const char *
vacuum_relation(Relation rel, int progress_slot)
{
	BackgroundWorker worker;
	BackgroundWorkerHandle *handle;
	VacuumRequest request;

	if (RecoveryInProgress())
		return "the server is a standby";
	if (progress_slot < 0)
		return "too many imports are running";

	/* A cursor of this session may hold a page that VACUUM would wait for. */
	if (rel->rd_refcnt > 1)
		return "the table is in use by an active query in this session";

	request.database = MyDatabaseId;
	request.relid = RelationGetRelid(rel);
	request.progress_slot = progress_slot;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_notify_pid = MyProcPid;
	strlcpy(worker.bgw_name, "gpuvm vacuum before import", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "gpuvm vacuum", BGW_MAXLEN);
	strlcpy(worker.bgw_library_name, "gpuvm", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "gpuvm_vacuum_main", BGW_MAXLEN);
	memcpy(worker.bgw_extra, &request, sizeof(request));

	/* Where a statement of the user's runs, its snapshot stays; a worker of ours has no other. */
	InvalidateCatalogSnapshot();
	if (!RegisterDynamicBackgroundWorker(&worker, &handle))
		return "no background worker is free (see max_worker_processes)";

	/* also when this process is told to leave */
	PG_ENSURE_ERROR_CLEANUP(stop_vacuum, PointerGetDatum(handle));
	{
		WaitForBackgroundWorkerShutdown(handle);
	}
	PG_END_ENSURE_ERROR_CLEANUP(stop_vacuum, PointerGetDatum(handle));
	pfree(handle);

	/* The map may have been made, or have grown: forget its size. */
	AcceptInvalidationMessages();
	if (!progress_vacuumed(progress_slot))
		return "its VACUUM failed or the table was locked; see the server log";
	mark_visible(rel);
	return NULL;
}

/*
 * VACUUM takes a row for all-visible only when its commit is on disk, which
 * that of a load with synchronous_commit = off is not for a moment yet: whatever
 * is in the log up to here is brought there.
 */
static void
flush_asynchronous_commits(void)
{
	char		nothing = 0;

	XLogBeginInsert();
	XLogRegisterData(&nothing, sizeof(nothing));
	XLogFlush(XLogInsert(RM_XLOG_ID, XLOG_NOOP));
}

/* In a worker: VACUUM as its own transactions. */
static void
run_vacuum(Oid relid)
{
	VacuumParams params;

	memset(&params, 0, sizeof(params));
	params.options = VACOPT_VACUUM | VACOPT_SKIP_LOCKED;
#if PG_VERSION_NUM >= 160000
	params.options |= VACOPT_PROCESS_MAIN;
#endif
	params.freeze_min_age = -1;
	params.freeze_table_age = -1;
	params.multixact_freeze_min_age = -1;
	params.multixact_freeze_table_age = -1;
	params.log_min_duration = -1;
	params.index_cleanup = VACOPTVALUE_ENABLED;
	params.truncate = VACOPTVALUE_DISABLED;

	StartTransactionCommand();
	PortalContext = AllocSetContextCreate(TopMemoryContext, "gpuvm vacuum", ALLOCSET_DEFAULT_SIZES);
	{
		MemoryContext old = MemoryContextSwitchTo(PortalContext);
		List	   *relations = list_make1(makeVacuumRelation(NULL, relid, NIL));

#if PG_VERSION_NUM >= 160000
		vacuum(relations, &params, GetAccessStrategy(BAS_VACUUM), PortalContext, true);
#else
		vacuum(relations, &params, NULL, true);
#endif
		MemoryContextSwitchTo(old);
	}
	CommitTransactionCommand();
}

static bool
is_new_page(Buffer buffer)
{
	bool		is_new;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	is_new = PageIsNew(BufferGetPage(buffer));
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return is_new;
}

/* The map's page is pinned: that may take reading it, which a locked page does not wait for. */
static void
init_new_page(Relation rel, BlockNumber block, Buffer buffer, Buffer map)
{
	Page		page = BufferGetPage(buffer);

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (PageIsNew(page))
	{
		START_CRIT_SECTION();
		PageInit(page, BufferGetPageSize(buffer), 0);
		MarkBufferDirty(buffer);
		if (RelationNeedsWAL(rel))
			log_newpage_buffer(buffer, true);
		PageSetAllVisible(page);
		(void) visibilitymap_set(rel, block, buffer, InvalidXLogRecPtr, map, InvalidTransactionId, VISIBILITYMAP_ALL_VISIBLE | VISIBILITYMAP_ALL_FROZEN);
		END_CRIT_SECTION();
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
}

/* In a worker. Who holds a lock that VACUUM would wait for is not waited for either. */
static void
init_new_pages(Oid relid)
{
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	Buffer		map = InvalidBuffer;
	Relation	rel;

	StartTransactionCommand();
	rel = ConditionalLockRelationOid(relid, ShareUpdateExclusiveLock) ? try_relation_open(relid, NoLock) : nullptr;
	if (rel != nullptr && RELKIND_HAS_STORAGE(rel->rd_rel->relkind))
	{
		const BlockNumber nblocks = RelationGetNumberOfBlocks(rel);

		for (BlockNumber block = 0; block < nblocks; block++)
		{
			Buffer		buffer;

			CHECK_FOR_INTERRUPTS();
			if (visibilitymap_get_status(rel, block, &map) != 0)
				continue;
			buffer = ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
			if (is_new_page(buffer))
			{
				visibilitymap_pin(rel, block, &map);
				init_new_page(rel, block, buffer, map);
			}
			ReleaseBuffer(buffer);
		}
		if (BufferIsValid(map))
			ReleaseBuffer(map);
	}
	if (rel != nullptr)
		relation_close(rel, NoLock);
	CommitTransactionCommand();
}

}  // namespace gpuvm

void
gpuvm_vacuum_main(Datum)
{
	gpuvm::VacuumRequest request;

	memcpy(&request, MyBgworkerEntry->bgw_extra, sizeof(request));
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	/* As the bootstrap superuser, like autovacuum; VACUUM itself switches to the table's owner. */
	BackgroundWorkerInitializeConnectionByOid(request.database, InvalidOid, 0);
	gpuvm::flush_asynchronous_commits();
	gpuvm::run_vacuum(request.relid);
	gpuvm::init_new_pages(request.relid);
	gpuvm::progress_set_vacuumed(request.progress_slot);
}
