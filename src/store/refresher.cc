/*
 * refresher.cc: the workers that keep imported tables in memory and up to date.
 *
 * A worker of a database lists the tables that are remembered and those that are
 * in memory, sees to each in a transaction of its own, and leaves. It takes a
 * table's lock only if it is free, sleeps as VACUUM does (refresh_pace), and gives
 * up when somebody waits for the table. It holds a snapshot only as long as an
 * import needs one for the blocks at hand. Then it compacts tablet tables that nobody uses. One table's error is logged and the next one's turn comes.
 *
 * Another kind of worker, the scout, is connected to no database. It reads
 * pg_database: new databases are to be visited, and tablets of those that are gone freed.
 */
#include "store/internal.h"

#include "pg/compat.h"
#include "pg/settings.h"
#include "store/catalog.h"
#include "store/file.h"
#include "store/refresher_shared.h"
#include "store/tablets.h"

extern "C" {
#include "access/heapam.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

PGDLLEXPORT void gpuvm_refresher_main(Datum arg);
}

namespace gpuvm {

/* How often a worker asks whether somebody waits for the table that it reads. */
constexpr int WAITERS_MS = 500;

static bool in_worker = false;
static Relation paced = NULL;		/* what the worker reads now */
static bool gave_way = false;
static TimestampTz waiters_looked = 0;
static Oid	own_database = InvalidOid;	/* of the worker; MyDatabaseId comes later and goes sooner */

/* -- one table, in a backend or a worker ------------------------------------------------ */

void
raise_not_imported(Relation rel)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("table \"%s\" is not imported", RelationGetRelationName(rel)),
			 errhint("Import it with gpuvm.import().")));
	pg_unreachable();
}

const char *
why_not_in_memory(Oid relid)
{
	ArrayType  *columns;
	const char *trouble;

	if (!remembered_columns(relid, &columns))
		return "the table is not imported";
	trouble = refresher_trouble(relid);
	if (trouble != NULL)
		return psprintf("the table is remembered as imported, but not in memory: %s", trouble);
	if (refresher_loading())
		return "the table is being imported in the background, as after every start of the server";
	return "the table is remembered as imported, but not in memory";
}

/* The columns that an import anew takes: as remembered, or those of the tablets there are. False: not imported. */
static bool
columns_to_import(Relation rel, int16 **attnums, int *ncols, bool *all_columns)
{
	VersionPin *pin = registry_pin_any(RelationGetRelid(rel));
	ArrayType  *names = NULL;
	bool		found = remembered_columns(RelationGetRelid(rel), &names);

	*all_columns = names == NULL;
	if (!found && pin == NULL)
		return false;
	if (!found && !pin_all_columns(pin))
	{
		const TableVersion *version = pin_version(pin);
		const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);
		int			nattnums = 0;
		int16	   *numbers = static_cast<int16 *>(palloc(sizeof(int16) * Max(version->ncols, 1)));

		for (uint32 i = 0; i < version->ncols; i++)
			if (columns[i].attnum <= RelationGetNumberOfAttributes(rel) &&
				!TupleDescAttr(RelationGetDescr(rel), columns[i].attnum - 1)->attisdropped)
				numbers[nattnums++] = columns[i].attnum;
		names = column_name_array(rel, numbers, nattnums);
		*all_columns = false;
	}
	if (pin != NULL)
		registry_unpin(pin);
	*attnums = fitting_columns(rel, names, ncols);
	return true;
}

static BlockNumber
not_all_visible(Relation rel)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	BlockNumber visible;

	visibilitymap_count(rel, &visible, NULL);
	return nblocks - Min(visible, nblocks);
}

uint64
refresh_table(Relation rel)
{
	RefreshOutcome outcome;
	int16	   *attnums;
	int			ncols;
	bool		all_columns;
	uint64		rows;

	registry_check(rel);
	if (!columns_to_import(rel, &attnums, &ncols, &all_columns))
		raise_not_imported(rel);
	if (is_file_table(rel))
	{
		rows = 0;
		if (!file_in_memory(rel) && !load_changes(rel, &rows))
			rows = import_file(rel, attnums, ncols, all_columns, false);
		table_imported(rel);
		return rows;
	}
	if (registry_known(RelationGetRelid(rel)))
	{
		/* only what is known to be visible to everybody can be read again */
		if (not_all_visible(rel) > 0)
		{
			int			slot = progress_begin(RelationGetRelid(rel), RelationGetNumberOfBlocks(rel));

			(void) vacuum_relation(rel, slot);
			progress_end();
		}
		if (refresh_relation(rel, &outcome))
		{
			table_imported(rel);
			return outcome.nrows;
		}
	}
	rows = import_relation(rel, attnums, ncols, all_columns, true);
	table_imported(rel);
	return rows;
}

void
table_imported(Relation rel)
{
	trouble_ended(RelationGetRelid(rel));
	refresher_mark();
}

/* Where the catalog cannot be written the row stays, and must not bring the table back. */
void
table_released(Relation rel)
{
	if (XactReadOnly)
		trouble_released(RelationGetRelid(rel));
	else
		trouble_ended(RelationGetRelid(rel));
}

/* -- pace ------------------------------------------------------------------------------- */

/* Does anybody wait for the worker: for the table itself, or to refresh it at once? */
static bool
others_wait_for(Oid relid)
{
	LockData   *locks = GetLockStatusData();
	bool		found = false;

	for (int i = 0; i < locks->nelements && !found; i++)
	{
		const LOCKTAG *tag = &locks->locks[i].locktag;
		LOCKMODE	wanted = locks->locks[i].waitLockMode;

		if (wanted == NoLock || tag->locktag_field1 != MyDatabaseId || tag->locktag_field2 != relid)
			continue;
		found = (tag->locktag_type == LOCKTAG_RELATION && wanted == AccessExclusiveLock) ||
			(tag->locktag_type == LOCKTAG_ADVISORY && tag->locktag_field4 == STORE_LOCK);
	}
	/* a large table is asked about many times in one context */
	pfree(locks->locks);
	pfree(locks);
	return found;
}

/* Ends a visit of the worker, who comes again soon. */
[[noreturn]] static void
raise_gives_way(Relation rel)
{
	gave_way = true;
	ereport(ERROR,
			(errcode(ERRCODE_QUERY_CANCELED),
			 errmsg("refresh of table \"%s\" gives way to a command that waits for it", RelationGetRelationName(rel))));
	pg_unreachable();
}

void
refresh_pace(void)
{
	if (!in_worker)
		return;
	CHECK_FOR_INTERRUPTS();
	if (VacuumCostBalance < VacuumCostLimit)
		return;
	VacuumCostBalance = 0;
	/* what catalogs were read with would hold VACUUM back */
	InvalidateCatalogSnapshotConditionally();
	if (setting_refresh_cost_delay > 0)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 setting_refresh_cost_delay, compat_wait_event("GpuvmRefreshDelay"));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	if (paced != NULL && TimestampDifferenceExceeds(waiters_looked, GetCurrentTimestamp(), WAITERS_MS))
	{
		waiters_looked = GetCurrentTimestamp();
		if (others_wait_for(RelationGetRelid(paced)))
			raise_gives_way(paced);
	}
}

void
worker_gives_way(Relation rel, LOCKMODE held)
{
	if (LockHasWaitersRelation(rel, held))
		raise_gives_way(rel);
}

/* -- the worker's visit to a table ------------------------------------------------------------ */

/* The relation, locked; NULL if it is gone, or (*busy) others have it locked. */
static Relation
open_if_free(Oid relid, bool *busy)
{
	Relation	rel;

	*busy = !ConditionalLockRelationOid(relid, AccessShareLock);
	if (*busy)
		return NULL;
	rel = try_relation_open(relid, NoLock);
	if (rel == NULL)
		UnlockRelationOid(relid, AccessShareLock);
	return rel;
}

/* Is somebody importing it at this moment? */
static bool
import_is_running(Oid relid)
{
	int			count;
	ProgressRow *rows = progress_list(&count);
	bool		running = false;

	for (int i = 0; i < count; i++)
		running = running || rows[i].relid == relid;
	pfree(rows);
	return running;
}

/*
 * Imports anew. A table that was rewritten has no bits of the visibility map set, and autovacuum
 * may not come to it: so it is vacuumed where that is true of a good part.
 */
static void
import_again(Relation rel, const int16 *attnums, int ncols, bool all_columns)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);

	check_importable(rel);
	import_relation(rel, attnums, ncols, all_columns, !RecoveryInProgress() && not_all_visible(rel) > nblocks / 10);
}

static bool
is_remembered(Oid relid)
{
	ArrayType  *columns;

	return remembered_columns(relid, &columns) && !trouble_is_release(relid);
}

/*
 * Was a table that was remembered released before its import was published? What release()
 * does at its commit came too early then. One that commits from here on finds the tablets.
 */
static void
release_forgotten(Oid relid)
{
	StartTransactionCommand();
	if (!is_remembered(relid))
		registry_release(MyDatabaseId, relid);
	CommitTransactionCommand();
}

/* Ends the transaction. What is in memory is looked after by the queries, in their sessions' settings. */
static void
visit_file(Relation rel)
{
	Oid			relid = RelationGetRelid(rel);
	bool		remembered = is_remembered(relid);
	int16	   *attnums;
	int			ncols;
	bool		all_columns;

	/* by which rows of a table without a file are seen */
	PushActiveSnapshot(GetTransactionSnapshot());
	if (!import_is_running(relid) && !registry_known(relid) && columns_to_import(rel, &attnums, &ncols, &all_columns))
	{
		check_importable(rel);
		import_file(rel, attnums, ncols, all_columns, true);
	}
	PopActiveSnapshot();
	relation_close(rel, NoLock);
	paced = NULL;
	CommitTransactionCommand();
	if (remembered)
		release_forgotten(relid);
}

/* False: it is locked, and to be visited again soon. */
static bool
visit_table(Oid relid)
{
	Relation	rel;
	bool		busy;
	RefreshOutcome outcome;
	int16	   *attnums = NULL;
	int			ncols = 0;
	bool		all_columns = false;
	bool		wanted;
	bool		remembered;

	StartTransactionCommand();
	rel = open_if_free(relid, &busy);
	if (rel == NULL)
	{
		if (!busy && registry_known(relid))
			registry_release(MyDatabaseId, relid);
		CommitTransactionCommand();
		return !busy;
	}
	paced = rel;
	if (is_file_table(rel))
	{
		visit_file(rel);
		return true;
	}
	registry_check(rel);
	if (import_is_running(relid) || (registry_known(relid) && refresh_relation(rel, &outcome)))
	{
		relation_close(rel, AccessShareLock);
		CommitTransactionCommand();
		return true;
	}

	/* Not there, or no longer its own: what is there is given up first, so that there is room. */
	wanted = columns_to_import(rel, &attnums, &ncols, &all_columns);
	remembered = is_remembered(relid);
	if (registry_known(relid))
	{
		MemoryContext context = MemoryContextSwitchTo(TopMemoryContext);
		int16	   *copy = static_cast<int16 *>(palloc(sizeof(int16) * Max(ncols, 1)));

		if (ncols > 0)
			memcpy(copy, attnums, sizeof(int16) * ncols);
		MemoryContextSwitchTo(context);
		attnums = copy;
		registry_release(MyDatabaseId, relid);
		/* the lock outlives the commit: the columns stay as they are */
		LockRelationIdForSession(&rel->rd_lockInfo.lockRelId, AccessShareLock);
		relation_close(rel, AccessShareLock);
		paced = NULL;
		CommitTransactionCommand();

		StartTransactionCommand();
		rel = relation_open(relid, AccessShareLock);
		paced = rel;
		UnlockRelationIdForSession(&rel->rd_lockInfo.lockRelId, AccessShareLock);
	}
	if (wanted)
		import_again(rel, attnums, ncols, all_columns);
	relation_close(rel, NoLock);
	paced = NULL;
	CommitTransactionCommand();
	if (remembered)
		release_forgotten(relid);
	return true;
}

static void
visit_error_context(void *arg)
{
	errcontext("while gpuvm looked after the table with OID %u", *static_cast<Oid *>(arg));
}

/* A visit, its errors caught. False: again soon. */
static bool
visit_safely(Oid relid, bool (*visit) (Oid))
{
	MemoryContext context = CurrentMemoryContext;
	ErrorContextCallback callback;
	volatile bool done = false;

	callback.callback = visit_error_context;
	callback.arg = &relid;
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	gave_way = false;
	VacuumCostBalance = 0;
	PG_TRY();
	{
		done = visit(relid);
		if (done)
			trouble_passed(relid);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		HOLD_INTERRUPTS();
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (!gave_way)
			EmitErrorReport();
		FlushErrorState();
		AbortCurrentTransaction();
		LockReleaseSession(DEFAULT_LOCKMETHOD);
		if (!gave_way)
		{
			/* gpuvm.tables shows it to all who may read the table: not what others have */
			const bool	tells = error->detail != NULL && error->sqlerrcode != ERRCODE_CONFIGURATION_LIMIT_EXCEEDED &&
				error->sqlerrcode != ERRCODE_OUT_OF_MEMORY;

			trouble_failed(relid, tells ? psprintf("%s: %s", error->message, error->detail) : error->message);
		}
		done = !gave_way;
		FreeErrorData(error);
		RESUME_INTERRUPTS();
	}
	PG_END_TRY();
	paced = NULL;
	error_context_stack = callback.previous;
	return done;
}

/* -- the worker's look at a database ------------------------------------------------------------ */

/* What is to be visited: OIDs in `context`, sorted, each once. Without gpuvm.refresh only what is missing. */
static List *
list_tables(MemoryContext context, int *ntables, bool *extension)
{
	List	   *tables = NIL;
	ListCell   *lc;
	int			count;
	RegistryRow *rows;
	MemoryContext old;

	StartTransactionCommand();
	old = MemoryContextSwitchTo(context);
	*extension = catalog_exists();
	rows = registry_list(&count);
	*ntables = count;
	for (int i = 0; i < count && setting_refresh; i++)
		tables = lappend_oid(tables, rows[i].relid);
	pfree(rows);
	foreach(lc, remembered_tables())
	{
		Oid			relid = static_cast<RememberedTable *>(lfirst(lc))->relid;
		bool		parent = get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE;
		int			others;
		List	   *leaves = parent ? importable_leaves(relid, &others) : list_make1_oid(relid);
		bool		wanted = setting_load_at_start;
		ListCell   *leaf;

		(*ntables)++;
		/* a new partition follows those that are there */
		foreach(leaf, leaves)
			wanted = wanted || (parent && registry_known(lfirst_oid(leaf)));
		foreach(leaf, leaves)
			if (wanted && !registry_known(lfirst_oid(leaf)) && get_rel_relkind(lfirst_oid(leaf)) != '\0')
				tables = lappend_oid(tables, lfirst_oid(leaf));
	}
	list_sort(tables, list_oid_cmp);
	list_deduplicate_oid(tables);
	MemoryContextSwitchTo(old);
	CommitTransactionCommand();
	return tables;
}

static void
set_pending(int ntables, int pending)
{
	DatabaseState *state;

	LWLockAcquire(refresher_lock(), LW_EXCLUSIVE);
	state = find_database(own_database);
	if (state != NULL)
	{
		state->ntables = ntables;
		state->pending = pending;
	}
	LWLockRelease(refresher_lock());
}

static void
end_look(int ntables, bool extension, bool again)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz next = trouble_next();
	DatabaseState *state;

	LWLockAcquire(refresher_lock(), LW_EXCLUSIVE);
	state = find_database(own_database);
	if (state != NULL)
	{
		/* tables that others had locked are still to come */
		state->loaded = state->loaded || !again;
		state->ntables = ntables;
		state->pending = 0;
		state->last_look = now;
		/* rows may come by ways that nobody sees */
		if (ntables > 0 || extension)
			next = Min(next, TimestampTzPlusMilliseconds(now, setting_refresh_naptime_s * 1000L * QUIET_NAPTIMES));
		state->next_look = next;
		if (again)
			pg_atomic_write_u32(&state->marked, 1);
	}
	LWLockRelease(refresher_lock());
}

/* False: again soon. */
static bool
visit_in_turn(Oid relid, TimestampTz now, bool (*visit) (Oid))
{
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
	return trouble_waits(relid, now) || visit_safely(relid, visit);
}

static void
look_at_database(void)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "gpuvm refresher", ALLOCSET_DEFAULT_SIZES);
	DatabaseState *state;
	TimestampTz now = GetCurrentTimestamp();
	List	   *tables;
	List	   *stored;
	ListCell   *lc;
	int			ntables;
	int			pending;
	bool		extension;
	bool		again = false;

	/* what is marked from here on is the next look's */
	LWLockAcquire(refresher_lock(), LW_SHARED);
	state = find_database(own_database);
	if (state != NULL)
		pg_atomic_write_u32(&state->marked, 0);
	LWLockRelease(refresher_lock());

	MemoryContextSwitchTo(context);
	tables = list_tables(context, &ntables, &extension);
	stored = tables_to_compact(context);
	MemoryContextSwitchTo(context);
	troubles_keep(list_concat_unique_oid(list_copy(tables), stored));
	pending = list_length(tables);
	foreach(lc, tables)
	{
		set_pending(ntables, pending--);
		again = !visit_in_turn(lfirst_oid(lc), now, visit_table) || again;
		MemoryContextSwitchTo(context);
	}
	foreach(lc, stored)
	{
		again = !visit_in_turn(lfirst_oid(lc), now, compact_in_background) || again;
		MemoryContextSwitchTo(context);
	}
	end_look(ntables, extension, again);
}

/* -- the scout -------------------------------------------------------------------------------------- */

/* All databases, and of those the ones that can be visited: templates are left alone. */
static void
read_databases(List **all, List **visitable)
{
	Relation	rel = table_open(DatabaseRelationId, AccessShareLock);
	TableScanDesc scan = table_beginscan_catalog(rel, 0, NULL);
	HeapTuple	tuple;

	*all = NIL;
	*visitable = NIL;
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database form = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple));

		*all = lappend_oid(*all, form->oid);
		/* a connection limit below -1 marks a database that was being dropped */
		if (form->datallowconn && !form->datistemplate && form->datconnlimit >= -1)
			*visitable = lappend_oid(*visitable, form->oid);
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
}

static void
scout(void)
{
	RefresherShared *shared = refresher_shared();
	List	   *all;
	List	   *visitable;
	ListCell   *lc;
	Oid		   *imported;
	int			nimported;

	pg_atomic_write_u32(&shared->scout_wanted, 0);
	StartTransactionCommand();
	/* before pg_database is read: a database that is made meanwhile must not look gone */
	imported = static_cast<Oid *>(palloc(sizeof(Oid) * MAX_DATABASES));
	nimported = registry_databases(imported, MAX_DATABASES);
	(void) GetTransactionSnapshot();
	read_databases(&all, &visitable);
	for (int i = 0; i < nimported; i++)
		if (!list_member_oid(all, imported[i]))
			registry_release(imported[i], InvalidOid);

	LWLockAcquire(refresher_lock(), LW_EXCLUSIVE);
	for (DatabaseState &state : shared->databases)
		if (OidIsValid(state.database) && state.pid == 0 && state.holds == 0 && !list_member_oid(all, state.database))
			state.database = InvalidOid;
	for (TableTrouble &trouble : shared->troubles)
		if (OidIsValid(trouble.database) && !list_member_oid(all, trouble.database))
			trouble.database = trouble.relid = InvalidOid;
	shared->left_out = 0;
	foreach(lc, visitable)
		if (add_database(lfirst_oid(lc)) == NULL)
			shared->left_out++;
	for (DatabaseState &state : shared->databases)
		state.visited = OidIsValid(state.database) && list_member_oid(visitable, state.database);
	shared->scouted = true;
	LWLockRelease(refresher_lock());
	CommitTransactionCommand();
}

/* -- the worker ---------------------------------------------------------------------------------------- */

static void
leave_database(int, Datum)
{
	DatabaseState *state;

	LWLockAcquire(refresher_lock(), LW_EXCLUSIVE);
	state = find_database(own_database);
	if (state != NULL && state->pid == MyProcPid)
	{
		state->pid = 0;
		state->pending = 0;
	}
	LWLockRelease(refresher_lock());
}

/* False: another worker is there, or a command wants it without us. */
static bool
enter_database(void)
{
	DatabaseState *state;
	bool		entered = false;

	LWLockAcquire(refresher_lock(), LW_EXCLUSIVE);
	state = find_database(own_database);
	if (state != NULL && state->pid == 0 && state->holds == 0)
	{
		state->pid = MyProcPid;
		entered = true;
	}
	LWLockRelease(refresher_lock());
	return entered;
}

/*
 * As autovacuum: compaction sees what was committed, and waits for nobody for long. So a standby that does not answer must not keep it
 * from its end, with the table locked. It writes where sessions begin by only reading.
 */
static const char *const own_settings[][2] = {
	{"default_transaction_isolation", "read committed"},
	{"default_transaction_read_only", "off"},
	{"synchronous_commit", "local"},
	{"statement_timeout", "0"},
#if PG_VERSION_NUM >= 170000
	{"transaction_timeout", "0"},
#endif
};

static void
work(Oid database)
{
	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	if (!OidIsValid(database))
	{
		BackgroundWorkerUnblockSignals();
		BackgroundWorkerInitializeConnection(NULL, NULL, 0);
		scout();
		return;
	}

	/* Called after the process has left the list of those that are connected. */
	own_database = database;
	on_shmem_exit(leave_database, 0);
	if (!enter_database())
		return;
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
	for (const char *const *setting : own_settings)
		SetConfigOption(setting[0], setting[1], PGC_SUSET, PGC_S_OVERRIDE);
	in_worker = true;
	VacuumCostActive = true;
	look_at_database();
}

}  // namespace gpuvm

void
gpuvm_refresher_main(Datum)
{
	Oid			database;

	memcpy(&database, MyBgworkerEntry->bgw_extra, sizeof(database));
	gpuvm::work(database);
}
