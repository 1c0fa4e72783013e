/*
 * vacuum.cc: a fresh table has no all-visible bits, so import would copy nothing.
 * VACUUM sets them, but cannot run within a transaction: a background worker
 * runs it, as autovacuum would, while the import waits.
 *
 * Options: SKIP_LOCKED, so that it cannot wait for a lock that the importing
 * session holds; no truncation, which would try for seconds to get past that
 * session's lock; indexes always cleaned, because VACUUM otherwise leaves pages
 * with a few dead line pointers, which are not all-visible.
 */
#include "store/internal.h"

#include "pg/shmem.h"

extern "C" {
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/pg_control.h"
#include "commands/vacuum.h"
#include "nodes/makefuncs.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
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
	return progress_vacuumed(progress_slot) ? NULL : "its VACUUM failed or the table was locked; see the server log";
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
	gpuvm::progress_set_vacuumed(request.progress_slot);
}
