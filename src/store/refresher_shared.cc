/*
 * refresher_shared.cc: the refresher's part of shared memory.
 */
#include "store/refresher_shared.h"

#include <signal.h>

#include "pg/settings.h"

extern "C" {
#include "mb/pg_wchar.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
}

namespace gpuvm {

constexpr int LEAVE_MS = 5000;	/* as long as PostgreSQL waits for other sessions of a database */
constexpr int LEAVE_STEP_MS = 10;
constexpr int FIRST_RETRY_S = 10;
constexpr int MAX_RETRY_S = 3600;
constexpr int MAX_HELD = 4;

static RefresherShared *shared = NULL;
static LWLock *lock = NULL;		/* a leaf: nothing is called or raised under it */
#if PG_VERSION_NUM >= 150000
static shmem_request_hook_type prev_shmem_request_hook = NULL;
#endif
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

/* Databases that this backend holds. */
static Oid	held[MAX_HELD];
static int	nheld = 0;
static bool exit_registered = false;

/* -- shared memory ------------------------------------------------------------------- */

static void
request_shmem(void)
{
#if PG_VERSION_NUM >= 150000
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
#endif
	RequestAddinShmemSpace(MAXALIGN(sizeof(RefresherShared)));
	RequestNamedLWLockTranche("gpuvm_refresher", 1);
}

static void
startup_shmem(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = static_cast<RefresherShared *>(ShmemInitStruct("gpuvm refresher", sizeof(RefresherShared), &found));
	if (!found)
	{
		memset(static_cast<void *>(shared), 0, sizeof(*shared));
		pg_atomic_init_u32(&shared->scout_wanted, 0);
		for (DatabaseState &state : shared->databases)
			pg_atomic_init_u32(&state.marked, 0);
	}
	lock = &GetNamedLWLockTranche("gpuvm_refresher")->lock;
	LWLockRelease(AddinShmemInitLock);
}

void
refresher_shared_install(void)
{
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;
#if PG_VERSION_NUM >= 150000
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
#else
	request_shmem();
#endif
}

RefresherShared *
refresher_shared(void)
{
	return shared;
}

LWLock *
refresher_lock(void)
{
	return lock;
}

/* -- databases -------------------------------------------------------------------------- */

DatabaseState *
find_database(Oid database)
{
	for (DatabaseState &state : shared->databases)
		if (state.database == database)
			return &state;
	return NULL;
}

DatabaseState *
add_database(Oid database)
{
	DatabaseState *state = find_database(database);

	if (state != NULL)
		return state;
	state = find_database(InvalidOid);
	if (state == NULL)
		return NULL;
	state->database = database;
	state->pid = 0;
	state->holds = 0;
	state->visited = false;
	state->loaded = false;
	state->ntables = 0;
	state->pending = 0;
	state->last_look = 0;
	state->next_look = 0;
	pg_atomic_write_u32(&state->marked, 0);
	return state;
}

void
refresher_mark(void)
{
	static DatabaseState *own = NULL;

	if (shared == NULL || !OidIsValid(MyDatabaseId))
		return;
	if (own == NULL || own->database != MyDatabaseId)
	{
		LWLockAcquire(lock, LW_EXCLUSIVE);
		own = add_database(MyDatabaseId);
		LWLockRelease(lock);
	}
	if (own != NULL && pg_atomic_read_u32(&own->marked) == 0)
		pg_atomic_write_u32(&own->marked, 1);
}

void
scout_wanted(void)
{
	if (shared != NULL)
		pg_atomic_write_u32(&shared->scout_wanted, 1);
}

bool
refresher_loading(void)
{
	bool		loading;
	DatabaseState *state;

	if (shared == NULL || !setting_load_at_start)
		return false;
	LWLockAcquire(lock, LW_SHARED);
	state = find_database(MyDatabaseId);
	loading = state == NULL ? !shared->scouted : !state->loaded;
	LWLockRelease(lock);
	return loading;
}

bool
refresher_sentence(char *text, size_t size)
{
	int			loading = 0;
	int			with_tables = 0;
	int			failed = 0;
	bool		known;
	bool		no_worker;
	int			left_out;

	if (shared == NULL)
	{
		strlcpy(text, "there is no shared memory", size);
		return false;
	}
	LWLockAcquire(lock, LW_SHARED);
	known = shared->scouted;
	no_worker = shared->no_worker_free;
	left_out = shared->left_out;
	for (const DatabaseState &state : shared->databases)
	{
		if (!OidIsValid(state.database) || !state.visited)
			continue;
		loading += !state.loaded;
		with_tables += state.ntables > 0;
	}
	for (const TableTrouble &trouble : shared->troubles)
		failed += OidIsValid(trouble.database) && trouble.failures > 0;
	LWLockRelease(lock);

	if (no_worker)
		strlcpy(text, "no background worker is free for it (see max_worker_processes)", size);
	else if (setting_load_at_start && (!known || loading > 0))
		strlcpy(text, "it imports the tables that were imported before the server started", size);
	else if (!setting_refresh)
		strlcpy(text, "gpuvm.refresh is off", size);
	else
		snprintf(text, size, "it looks after imported tables of %d database%s", with_tables, with_tables == 1 ? "" : "s");
	if (failed > 0 && strlen(text) < size)
		snprintf(text + strlen(text), size - strlen(text), "; it could not import or refresh %d table%s: see gpuvm.tables and the server log", failed, failed == 1 ? "" : "s");
	if (left_out > 0 && strlen(text) < size)
		snprintf(text + strlen(text), size - strlen(text), "; %d databases are not visited, as there are more than %d", left_out, MAX_DATABASES);
	return !no_worker && failed == 0 && left_out == 0 && setting_refresh;
}

/* -- tables in trouble ------------------------------------------------------------------- */

static TableTrouble *
find_trouble(Oid database, Oid relid)
{
	for (TableTrouble &trouble : shared->troubles)
		if (trouble.database == database && trouble.relid == relid)
			return &trouble;
	return NULL;
}

/* When all are taken nobody remembers the failure, and the next look tries again. */
static TableTrouble *
add_trouble(Oid relid)
{
	TableTrouble *trouble = find_trouble(MyDatabaseId, relid);

	if (trouble == NULL)
		trouble = find_trouble(InvalidOid, InvalidOid);
	if (trouble != NULL && !OidIsValid(trouble->database))
	{
		memset(static_cast<void *>(trouble), 0, sizeof(*trouble));
		trouble->database = MyDatabaseId;
		trouble->relid = relid;
	}
	return trouble;
}

void
trouble_failed(Oid relid, const char *text)
{
	TableTrouble *trouble;
	int			clipped = pg_mbcliplen(text, static_cast<int>(strlen(text)), sizeof(trouble->text) - 1);

	LWLockAcquire(lock, LW_EXCLUSIVE);
	trouble = add_trouble(relid);
	/* released meanwhile: that holds */
	if (trouble != NULL && trouble->retry_at != DT_NOEND)
	{
		int			seconds = FIRST_RETRY_S << Min(trouble->failures, 10);

		trouble->failures++;
		trouble->retry_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), Min(seconds, MAX_RETRY_S) * 1000L);
		/* it is shown as text: no part of a character */
		strlcpy(trouble->text, text, clipped + 1);
	}
	LWLockRelease(lock);
}

void
trouble_released(Oid relid)
{
	TableTrouble *trouble;

	if (shared == NULL)
		return;
	LWLockAcquire(lock, LW_EXCLUSIVE);
	trouble = add_trouble(relid);
	if (trouble != NULL)
	{
		trouble->failures = 0;
		trouble->retry_at = DT_NOEND;
		strlcpy(trouble->text, "released", sizeof(trouble->text));
	}
	LWLockRelease(lock);
}

void
trouble_ended(Oid relid)
{
	TableTrouble *trouble;

	if (shared == NULL)
		return;
	LWLockAcquire(lock, LW_EXCLUSIVE);
	trouble = find_trouble(MyDatabaseId, relid);
	if (trouble != NULL)
	{
		trouble->database = InvalidOid;
		trouble->relid = InvalidOid;
		trouble->failures = 0;
	}
	LWLockRelease(lock);
}

void
trouble_passed(Oid relid)
{
	if (!trouble_is_release(relid))
		trouble_ended(relid);
}

bool
trouble_is_release(Oid relid)
{
	TableTrouble *trouble;
	bool		released;

	LWLockAcquire(lock, LW_SHARED);
	trouble = find_trouble(MyDatabaseId, relid);
	released = trouble != NULL && trouble->failures == 0;
	LWLockRelease(lock);
	return released;
}

void
troubles_keep(const List *relids)
{
	LWLockAcquire(lock, LW_EXCLUSIVE);
	for (TableTrouble &trouble : shared->troubles)
		if (trouble.database == MyDatabaseId && !list_member_oid(relids, trouble.relid))
			trouble.database = trouble.relid = InvalidOid;
	LWLockRelease(lock);
}

bool
trouble_waits(Oid relid, TimestampTz now)
{
	TableTrouble *trouble;
	bool		waits;

	LWLockAcquire(lock, LW_SHARED);
	trouble = find_trouble(MyDatabaseId, relid);
	waits = trouble != NULL && trouble->retry_at > now;
	LWLockRelease(lock);
	return waits;
}

TimestampTz
trouble_next(void)
{
	TimestampTz next = DT_NOEND;

	LWLockAcquire(lock, LW_SHARED);
	for (const TableTrouble &trouble : shared->troubles)
		if (trouble.database == MyDatabaseId)
			next = Min(next, trouble.retry_at);
	LWLockRelease(lock);
	return next;
}

char *
refresher_trouble(Oid relid)
{
	TableTrouble *trouble;
	char		text[sizeof(trouble->text)];

	if (shared == NULL)
		return NULL;
	LWLockAcquire(lock, LW_SHARED);
	trouble = find_trouble(MyDatabaseId, relid);
	if (trouble != NULL)
		strlcpy(text, trouble->text, sizeof(text));
	LWLockRelease(lock);
	return trouble != NULL ? pstrdup(text) : NULL;
}

/* -- databases that a command wants for itself ---------------------------------------------- */

void
unhold_databases(void)
{
	if (nheld == 0)
		return;
	/* before any of them can be visited: it may be gone, or a new one be there */
	scout_wanted();
	LWLockAcquire(lock, LW_EXCLUSIVE);
	for (int i = 0; i < nheld; i++)
	{
		DatabaseState *state = find_database(held[i]);

		if (state == NULL || state->holds == 0)
			continue;
		state->holds--;
		/* the worker that had to leave may not have been done */
		pg_atomic_write_u32(&state->marked, 1);
	}
	nheld = 0;
	LWLockRelease(lock);
}

static void
unhold_at_exit(int, Datum)
{
	unhold_databases();
}

/* The worker's process id, having been told to leave if `tell`; 0 when it has left. */
static int
worker_in(Oid database, bool tell)
{
	DatabaseState *state;
	int			pid;

	LWLockAcquire(lock, LW_SHARED);
	state = find_database(database);
	pid = state ? state->pid : 0;
	if (pid != 0 && tell)
		(void) kill(pid, SIGTERM);
	LWLockRelease(lock);
	return pid;
}

void
hold_database(Oid database)
{
	DatabaseState *state;

	if (shared == NULL || !OidIsValid(database) || nheld == MAX_HELD)
		return;
	if (!exit_registered)
	{
		before_shmem_exit(unhold_at_exit, 0);
		exit_registered = true;
	}
	LWLockAcquire(lock, LW_EXCLUSIVE);
	state = add_database(database);
	if (state != NULL)
	{
		state->holds++;
		held[nheld++] = database;
	}
	LWLockRelease(lock);
	for (int ms = 0; worker_in(database, ms % 500 == 0) != 0 && ms < LEAVE_MS; ms += LEAVE_STEP_MS)
	{
		pg_usleep(LEAVE_STEP_MS * 1000L);
		CHECK_FOR_INTERRUPTS();
	}
}

}  // namespace gpuvm
