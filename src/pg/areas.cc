/* areas.cc: see areas.h. The lock is held for the tables alone, and no other is taken inside. */
#include "pg/areas.h"

#include "engine/abi.h"
#include "pg/shmem.h"
#include "pg/startup.h"

extern "C" {
#include "port/atomics.h"
#include "utils/timestamp.h"
}

namespace gpuvm {

constexpr int MAX_SPARE = 64;

/* What may be spare for long, and until the supervisor has come by: making an area costs as much as many a query that fills it. */
constexpr uint64 MOST_SPARE = 24 * 1024 * 1024;
constexpr uint64 SPARE_SHARE = 4;
constexpr int FRESH_MS = 1000;

/* A job takes a larger area than it needs, but not one that another job will miss. */
constexpr uint64 SPARE_WASTE = 4;
constexpr uint64 SMALL_AREA = 16 * ARENA_PAGE;

/*
 * gpuvmd has no more sessions than that, and those of one that was reaped are freed before the next one starts: so there
 * is room for all.
 */
constexpr int MAX_ABANDONED = MAX_SESSIONS + SESSION_BACKLOG;
constexpr int RECLAIM_BATCH = 64;

struct AbandonedSession
{
	uint64		job;
	uint64		area;			/* 0: it had none */
	uint32		generation;
};

struct SpareArea
{
	uint64		offset;			/* 0: nothing here */
	uint64		size;
	uint64		given;			/* number of the area_give, later ones are greater */
	TimestampTz since;
};

struct AreasShared
{
	uint64		given;
	Latch	   *supervisor;		/* NULL: there is none, and nothing is spare beyond MOST_SPARE */
	pg_atomic_uint64 bytes;		/* changed under the lock, read without */
	SpareArea	spare[MAX_SPARE];
	pg_atomic_uint32 nabandoned;	/* as bytes */
	AbandonedSession abandoned[MAX_ABANDONED];
};

static AreasShared *areas = NULL;
static LWLock *areas_lock = NULL;

Size
areas_shared_size(void)
{
	return MAXALIGN(sizeof(AreasShared));
}

void
areas_shared_init(AreasShared *shared, LWLock *lock)
{
	areas = shared;
	areas_lock = lock;
}

uint64
areas_spare(void)
{
	return areas == NULL ? 0 : pg_atomic_read_u64(&areas->bytes);
}

static uint64
most_fresh(void)
{
	return arena_size() / SPARE_SHARE;
}

static uint64
most_spare(void)
{
	return Min(MOST_SPARE, most_fresh());
}

/* ---- under the lock -------------------------------------------------------- */

static SpareArea
take_out(SpareArea *area)
{
	SpareArea	out = *area;

	pg_atomic_write_u64(&areas->bytes, pg_atomic_read_u64(&areas->bytes) - out.size);
	area->offset = 0;
	return out;
}

/* The session's own, or of the smallest that will do the one that was used last; NULL: none. */
static SpareArea *
find_spare(uint64 size, AreaTicket ticket)
{
	SpareArea  *best = NULL;

	for (SpareArea &area : areas->spare)
	{
		if (area.offset == 0 || area.size < size || area.size > Max(size * SPARE_WASTE, SMALL_AREA))
			continue;
		if (area.given == ticket)
			return &area;
		if (best == NULL || area.size < best->size || (area.size == best->size && area.given > best->given))
			best = &area;
	}
	return best;
}

/* The one that nobody has wanted for longest, and a place for another. */
static SpareArea *
find_oldest(SpareArea **room)
{
	SpareArea  *oldest = NULL;

	*room = NULL;
	for (SpareArea &area : areas->spare)
	{
		if (area.offset == 0)
			*room = &area;
		else if (oldest == NULL || area.given < oldest->given)
			oldest = &area;
	}
	return oldest;
}

static bool
add_abandoned(const AbandonedSession &session)
{
	uint32		n = pg_atomic_read_u32(&areas->nabandoned);

	if (n == MAX_ABANDONED)
		return false;
	areas->abandoned[n] = session;
	pg_atomic_write_u32(&areas->nabandoned, n + 1);
	return true;
}

static bool
engine_has_left(const AbandonedSession &session)
{
	return arena_header()->engine_reaped.load() >= session.generation ||
		arena_at<Job>(session.job)->parting.load() == static_cast<uint32_t>(Parting::Engine);
}

/* Some of those that gpuvmd has left; how many. */
static int
take_abandoned(AbandonedSession *taken)
{
	uint32		left = pg_atomic_read_u32(&areas->nabandoned);
	int			n = 0;

	for (uint32 i = 0; i < left && n < RECLAIM_BATCH;)
	{
		if (engine_has_left(areas->abandoned[i]))
		{
			taken[n++] = areas->abandoned[i];
			areas->abandoned[i] = areas->abandoned[--left];
		}
		else
			i++;
	}
	pg_atomic_write_u32(&areas->nabandoned, left);
	return n;
}

/* ---- the interface --------------------------------------------------------- */

uint64
area_take(uint64 *size, AreaTicket ticket)
{
	SpareArea	taken = {};
	SpareArea  *found;
	uint64		offset;

	*size = TYPEALIGN(ARENA_PAGE, *size);
	LWLockAcquire(areas_lock, LW_EXCLUSIVE);
	found = find_spare(*size, ticket);
	if (found != NULL)
		taken = take_out(found);
	LWLockRelease(areas_lock);
	if (taken.offset != 0)
	{
		*size = taken.size;
		return taken.offset;
	}
	offset = arena_alloc_for_job(*size);
	if (offset == 0)
		*size = 0;
	return offset;
}

AreaTicket
area_give(uint64 offset, uint64 size)
{
	uint64		surplus[MAX_SPARE];
	int			n = 0;
	AreaTicket	ticket = 0;

	if (offset == 0)
		return 0;
	if (size > most_spare())
	{
		arena_free(offset);
		return 0;
	}
	LWLockAcquire(areas_lock, LW_EXCLUSIVE);
	for (;;)
	{
		SpareArea  *room;
		SpareArea  *oldest = find_oldest(&room);
		const uint64 bytes = pg_atomic_read_u64(&areas->bytes);

		if (room != NULL && bytes + size <= (areas->supervisor == NULL ? most_spare() : most_fresh()))
		{
			ticket = ++areas->given;
			*room = {offset, size, ticket, GetCurrentTimestamp()};
			pg_atomic_write_u64(&areas->bytes, bytes + size);
			if (bytes <= most_spare() && bytes + size > most_spare())
				SetLatch(areas->supervisor);
			break;
		}
		surplus[n++] = take_out(oldest).offset;
	}
	LWLockRelease(areas_lock);
	while (n > 0)
		arena_free(surplus[--n]);
	return ticket;
}

long
areas_trim(void)
{
	const TimestampTz before = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), -FRESH_MS);

	while (pg_atomic_read_u64(&areas->bytes) > most_spare())
	{
		SpareArea	taken = {};
		SpareArea  *room;
		SpareArea  *oldest;

		LWLockAcquire(areas_lock, LW_EXCLUSIVE);
		oldest = find_oldest(&room);
		if (oldest != NULL && oldest->since <= before)
			taken = take_out(oldest);
		LWLockRelease(areas_lock);
		if (taken.offset == 0)
			return FRESH_MS;
		arena_free(taken.offset);
	}
	return -1;
}

void
areas_set_supervisor(Latch *latch)
{
	LWLockAcquire(areas_lock, LW_EXCLUSIVE);
	areas->supervisor = latch;
	LWLockRelease(areas_lock);
}

void
areas_reclaim(void)
{
	AbandonedSession taken[RECLAIM_BATCH];
	int			n = RECLAIM_BATCH;

	while (n == RECLAIM_BATCH && pg_atomic_read_u32(&areas->nabandoned) > 0)
	{
		LWLockAcquire(areas_lock, LW_EXCLUSIVE);
		n = take_abandoned(taken);
		LWLockRelease(areas_lock);
		for (int i = 0; i < n; i++)
		{
			arena_free(taken[i].area);
			arena_free(taken[i].job);
		}
	}
}

void
area_abandon(uint64 job, uint64 area, uint32 generation)
{
	uint32_t	none = static_cast<uint32_t>(Parting::None);
	bool		added;

	/* if gpuvmd has left meanwhile, it does not tell the supervisor: this process frees it then */
	(void) arena_at<Job>(job)->parting.compare_exchange_strong(none, static_cast<uint32_t>(Parting::Backend));
	LWLockAcquire(areas_lock, LW_EXCLUSIVE);
	added = add_abandoned({job, area, generation});
	LWLockRelease(areas_lock);
	if (!added)
		ereport(LOG, (errmsg("gpuvmd does not end a session, whose memory stays taken until the server restarts")));
	areas_reclaim();
}

void
areas_make_room(void)
{
	areas_reclaim();
	for (;;)
	{
		SpareArea	taken = {};
		SpareArea  *room;
		SpareArea  *oldest;

		LWLockAcquire(areas_lock, LW_EXCLUSIVE);
		oldest = find_oldest(&room);
		if (oldest != NULL)
			taken = take_out(oldest);
		LWLockRelease(areas_lock);
		if (taken.offset == 0)
			return;
		arena_free(taken.offset);
	}
}

}  // namespace gpuvm
