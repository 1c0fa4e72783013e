/* refresher_shared.h: what the refresher's workers, the supervisor and backends share. */
#ifndef GPUVM_STORE_REFRESHER_SHARED_H
#define GPUVM_STORE_REFRESHER_SHARED_H

#include "store/refresher.h"

extern "C" {
#include "nodes/pg_list.h"
#include "port/atomics.h"
#include "storage/lwlock.h"
}

namespace gpuvm {

constexpr int MAX_DATABASES = 512;
constexpr int MAX_TROUBLES = 1024;

/* Looks at a database that nobody has marked are so many naptimes apart. */
constexpr int QUIET_NAPTIMES = 30;

struct DatabaseState
{
	Oid			database;		/* InvalidOid: free */
	int			pid;			/* of the worker that is there, or 0 */
	int			holds;			/* commands that need the database without the refresher */
	bool		visited;		/* the scout found it to be a database that workers go to */
	bool		loaded;			/* a whole look has been taken since the start */
	int			ntables;		/* remembered or in memory, at the last look */
	int			pending;		/* of those, not yet seen to by the look that is running */
	pg_atomic_uint32 marked;
	TimestampTz last_look;
	TimestampTz next_look;		/* at the latest; DT_NOEND where the extension is not */
};

/* A table that could not be imported or refreshed, or that is not to be (released where the catalog cannot be written). */
struct TableTrouble
{
	Oid			database;		/* InvalidOid: free */
	Oid			relid;
	int			failures;		/* in a row; 0: released */
	TimestampTz retry_at;
	char		text[160];
};

struct RefresherShared
{
	pg_atomic_uint32 scout_wanted;	/* databases may have come or gone */
	bool		scouted;
	bool		no_worker_free;
	int			left_out;		/* databases that found no room below */
	DatabaseState databases[MAX_DATABASES];
	TableTrouble troubles[MAX_TROUBLES];
};

RefresherShared *refresher_shared(void);	/* NULL without preloading */
LWLock	   *refresher_lock(void);
void		refresher_shared_install(void);

/* With the lock held. */
DatabaseState *find_database(Oid database);
DatabaseState *add_database(Oid database);	/* NULL when there are too many */

/* Without. */
void		scout_wanted(void);
void		trouble_failed(Oid relid, const char *text);
void		trouble_released(Oid relid);
void		trouble_ended(Oid relid);
void		trouble_passed(Oid relid);	/* a visit did what was to be done; that it was released holds */
bool		trouble_is_release(Oid relid);
void		troubles_keep(const List *relids);	/* in this database no others can be in trouble */
bool		trouble_waits(Oid relid, TimestampTz now);
TimestampTz trouble_next(void);	/* when the first table of this database is to be tried again; DT_NOEND: none */

/* Makes the refresher leave the database and keeps it out until the transaction ends; InvalidOid is ignored. */
void		hold_database(Oid database);
void		unhold_databases(void);

}  // namespace gpuvm

#endif
