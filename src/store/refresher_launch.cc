/*
 * refresher_launch.cc: when the refresher's workers are started, and who keeps them away.
 *
 * refresher_tick runs in the supervisor, which has no database: it goes by shared
 * memory. A database is visited when its time has come or, once a naptime has
 * passed since the last look, when it is marked. A worker that ends without having set the
 * next time leaves the one that is set here, so that nothing is tried again at once.
 *
 * The ProcessUtility hook marks databases after commands that change tables, keeps
 * columns' remembered names right, and makes the refresher leave a database that a command
 * needs without other sessions (DROP, ALTER, CREATE ... TEMPLATE).
 */
#include "store/internal.h"

#include "pg/settings.h"
#include "pg/startup.h"
#include "store/catalog.h"
#include "store/refresher_shared.h"

extern "C" {
#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "postmaster/bgworker.h"
#include "tcop/utility.h"
#include "utils/syscache.h"
}

namespace gpuvm {

constexpr long RETRY_MS = 10000;	/* at the latest, where no worker was free */
constexpr int MAX_WORKERS = 2;	/* at a time; the scout is one of them */

static struct
{
	BackgroundWorkerHandle *handle;	/* NULL: none */
	Oid			database;		/* InvalidOid: the scout */
} workers[MAX_WORKERS];
static TimestampTz next_scout = 0;

static ProcessUtility_hook_type previous_process_utility = NULL;
static bool mark_at_commit = false;

/* -- in the supervisor ---------------------------------------------------------------- */

static bool
is_running(Oid database)
{
	for (const auto &worker : workers)
		if (worker.handle != NULL && worker.database == database)
			return true;
	return false;
}

static void
forget_ended_workers(void)
{
	for (auto &worker : workers)
	{
		pid_t		pid;

		if (worker.handle == NULL || GetBackgroundWorkerPid(worker.handle, &pid) != BGWH_STOPPED)
			continue;
		pfree(worker.handle);
		worker.handle = NULL;
	}
}

/* False when there is no room for another one. */
static bool
start_worker(Oid database)
{
	BackgroundWorker worker;
	int			i = 0;
	bool		started;

	while (i < MAX_WORKERS && workers[i].handle != NULL)
		i++;
	if (i == MAX_WORKERS)
		return false;
	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_notify_pid = MyProcPid;
	strlcpy(worker.bgw_name, OidIsValid(database) ? "gpuvm refresher" : "gpuvm refresher scout", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "gpuvm refresher", BGW_MAXLEN);
	strlcpy(worker.bgw_library_name, "gpuvm", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "gpuvm_refresher_main", BGW_MAXLEN);
	memcpy(worker.bgw_extra, &database, sizeof(database));
	started = RegisterDynamicBackgroundWorker(&worker, &workers[i].handle);
	if (!started)
		workers[i].handle = NULL;
	workers[i].database = database;
	refresher_shared()->no_worker_free = !started;
	return started;
}

/* Until the next tick. */
static long
tick_ms(void)
{
	long		naptime = setting_refresh_naptime_s * 1000L;

	return refresher_shared()->no_worker_free ? Min(naptime, RETRY_MS) : naptime;
}

static TimestampTz
naptimes_from(TimestampTz now, int n)
{
	return TimestampTzPlusMilliseconds(now, setting_refresh_naptime_s * 1000L * n);
}

static TimestampTz
due_at(DatabaseState *state)
{
	if (!state->visited || state->pid != 0 || state->holds > 0 || is_running(state->database) ||
		!(setting_refresh || (setting_load_at_start && !state->loaded)))
		return DT_NOEND;
	if (pg_atomic_read_u32(&state->marked) != 0)
		return Min(state->next_look, naptimes_from(state->last_look, 1));
	return state->next_look;
}

/* The database that is due first; *due when. */
static Oid
next_database(TimestampTz *due)
{
	Oid			database = InvalidOid;

	*due = DT_NOEND;
	LWLockAcquire(refresher_lock(), LW_SHARED);
	for (DatabaseState &state : refresher_shared()->databases)
	{
		TimestampTz at = OidIsValid(state.database) ? due_at(&state) : DT_NOEND;

		if (at < *due)
		{
			*due = at;
			database = state.database;
		}
	}
	LWLockRelease(refresher_lock());
	return database;
}

static void
set_next_look(Oid database, TimestampTz now)
{
	DatabaseState *state;

	LWLockAcquire(refresher_lock(), LW_EXCLUSIVE);
	state = find_database(database);
	if (state != NULL)
	{
		state->last_look = now;
		state->next_look = naptimes_from(now, QUIET_NAPTIMES);
	}
	LWLockRelease(refresher_lock());
}

/* Milliseconds until it is to be called again; earlier does no harm. */
static long
refresher_tick(void)
{
	RefresherShared *shared = refresher_shared();
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz due;
	Oid			database;

	if (shared == NULL)
		return -1;
	forget_ended_workers();
	if (!setting_refresh && !setting_load_at_start)
		return tick_ms();
	if ((now >= next_scout || pg_atomic_read_u32(&shared->scout_wanted) != 0) && !is_running(InvalidOid) &&
		(setting_refresh || !shared->scouted || pg_atomic_read_u32(&shared->scout_wanted) != 0))
	{
		bool		started = start_worker(InvalidOid);

		next_scout = started ? naptimes_from(now, QUIET_NAPTIMES) : now;
	}
	/* its news first: a database may be gone */
	while (!is_running(InvalidOid) && OidIsValid(database = next_database(&due)) && due <= now)
	{
		if (!start_worker(database))
			break;
		set_next_look(database, now);
	}
	return tick_ms();
}

/* -- in backends ------------------------------------------------------------------------- */

static void
end_xact_callback(XactEvent event, void *)
{
	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
		return;
	if (event != XACT_EVENT_ABORT && mark_at_commit)
		refresher_mark();
	mark_at_commit = false;
	unhold_databases();
}

void
refresher_mark_at_commit(void)
{
	mark_at_commit = true;
}

static bool
is_moved(List *options)
{
	ListCell   *lc;

	foreach(lc, options)
		if (strcmp(lfirst_node(DefElem, lc)->defname, "tablespace") == 0)
			return true;
	return false;
}

/* The database that the command needs for itself, or NULL. */
static const char *
database_for_itself(Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_DropdbStmt:
			return castNode(DropdbStmt, statement)->dbname;
		case T_AlterDatabaseStmt:
			return is_moved(castNode(AlterDatabaseStmt, statement)->options) ? castNode(AlterDatabaseStmt, statement)->dbname : NULL;
		case T_RenameStmt:
			return castNode(RenameStmt, statement)->renameType == OBJECT_DATABASE ? castNode(RenameStmt, statement)->subname : NULL;
		case T_CreatedbStmt:
		{
			ListCell   *lc;

			foreach(lc, castNode(CreatedbStmt, statement)->options)
			{
				DefElem    *option = lfirst_node(DefElem, lc);

				if (strcmp(option->defname, "template") == 0 && option->arg != NULL)
					return defGetString(option);
			}
			return "template1";
		}
		default:
			return NULL;
	}
}

/* Is it worth making the refresher leave? Not for one who will only get an error. */
static bool
may_have_database(Node *statement, Oid database)
{
	HeapTuple	role;
	bool		may;

	if (!OidIsValid(database))
		return false;
	if (superuser())
		return true;
	if (!IsA(statement, CreatedbStmt))
		return DatabaseOwnedBy(database, GetUserId());
	role = SearchSysCache1(AUTHOID, ObjectIdGetDatum(GetUserId()));
	if (!HeapTupleIsValid(role))
		return false;
	may = reinterpret_cast<Form_pg_authid>(GETSTRUCT(role))->rolcreatedb;
	ReleaseSysCache(role);
	return may;
}

/* May it leave something for the refresher? Rather too often: a look costs little. */
static bool
may_want_refresh(Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_TruncateStmt:
		case T_AlterTableStmt:
		case T_ClusterStmt:
		case T_VacuumStmt:
		case T_RefreshMatViewStmt:
		case T_DropStmt:
			return registry_any();
		case T_CreateStmt:
			return registry_any() && castNode(CreateStmt, statement)->partbound != NULL;
		case T_CopyStmt:
		{
			/* a restore of what is remembered */
			RangeVar   *table = castNode(CopyStmt, statement)->relation;

			return castNode(CopyStmt, statement)->is_from && table != NULL && table->schemaname != NULL &&
				strcmp(table->schemaname, "gpuvm") == 0;
		}
		default:
			return false;
	}
}

static void
after_rename(RenameStmt *statement)
{
	Oid			relid;

	if (statement->renameType != OBJECT_COLUMN || statement->relation == NULL)
		return;
	relid = RangeVarGetRelid(statement->relation, NoLock, true);
	if (OidIsValid(relid))
		catalog_column_renamed(relid, statement->subname, statement->newname);
}

static void
run_utility(PlannedStmt *pstmt, const char *query, bool read_only_tree, ProcessUtilityContext context, ParamListInfo params,
			QueryEnvironment *environment, DestReceiver *receiver, QueryCompletion *completion)
{
	if (previous_process_utility)
		previous_process_utility(pstmt, query, read_only_tree, context, params, environment, receiver, completion);
	else
		standard_ProcessUtility(pstmt, query, read_only_tree, context, params, environment, receiver, completion);
}

static void
refresher_process_utility(PlannedStmt *pstmt, const char *query, bool read_only_tree, ProcessUtilityContext context,
						  ParamListInfo params, QueryEnvironment *environment, DestReceiver *receiver,
						  QueryCompletion *completion)
{
	Node	   *statement = pstmt->utilityStmt;
	const char *name = refresher_shared() != NULL ? database_for_itself(statement) : NULL;
	Oid			database;
	/* looked at now: the command may free its statement */
	bool		wanted = may_want_refresh(statement);
	RenameStmt *rename = IsA(statement, RenameStmt) ? castNode(RenameStmt, copyObjectImpl(statement)) : NULL;

	/* until the transaction ends: only then is it renamed or gone */
	if (name != NULL && may_have_database(statement, database = get_database_oid(name, true)))
		hold_database(database);
	run_utility(pstmt, query, read_only_tree, context, params, environment, receiver, completion);
	if (rename != NULL)
		after_rename(rename);
	/* VACUUM and others end their own transactions: what is marked here waits for the last one */
	mark_at_commit = mark_at_commit || wanted;
}

void
refresher_install(void)
{
	if (process_shared_preload_libraries_in_progress && IsPostmasterEnvironment && !IsBinaryUpgrade)
	{
		refresher_shared_install();
		supervisor_set_task(refresher_tick);
	}
	if (IsBinaryUpgrade)
		return;
	RegisterXactCallback(end_xact_callback, NULL);
	previous_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = refresher_process_utility;
}

}  // namespace gpuvm
