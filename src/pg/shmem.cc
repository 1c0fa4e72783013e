/*
 * shmem.cc: shared memory of the cluster, and the arena's pages.
 *
 * The arena is a memfd of gpuvm.memory bytes, mapped in the postmaster by
 * shmem_startup_hook, so every backend inherits mapping and descriptor, and
 * gpuvmd the descriptor alone. It is made anew for each life of the shared
 * memory: a gpuvmd that outlived a crash still has the old file and cannot write
 * into the new one, and the epoch in the header tells the two apart. The file's
 * size is sealed, for a file that shrinks means SIGBUS and thus a restart of the
 * cluster. It is sparse: pages are fallocated before they are handed out, again
 * because a page that cannot be had at first touch would be a SIGBUS, and
 * punched out when they come back.
 *
 * Its last part, as large as the reserve, is the jobs zone, which gpuvmd can write to; the rest it maps read-only
 * (engine/abi.h). Jobs take their memory there first, then below; imports never take it there.
 *
 * The allocator is first fit over bitmaps in PostgreSQL's shared memory, not
 * in the arena, where gpuvmd could damage it: `used`; `last`, which marks the
 * end of each allocation, so that a free needs no size; and `jobs`, which marks
 * the beginning of those that jobs have. The lock is held for
 * the bits alone. The system calls, which take long for large allocations, run
 * outside it: pages are marked used before they are fallocated and punched out
 * before they are marked free, so no page is ever in two hands.
 *
 * Chunks that gpuvmd has pinned for a device are not punched (engine/pin_words.h):
 * pages freed there keep their memory. When no page of a pinned chunk is in use,
 * whoever freed the last asks gpuvmd to unpin it; the supervisor then cleans the
 * chunk: it marks free pages used, punches them out and marks them free again.
 */
#include "pg/shmem.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "engine/pin_words.h"
#include "pg/activity.h"
#include "pg/areas.h"
#include "pg/settings.h"
#include "pg/startup.h"
#include "store/store.h"

extern "C" {
#include "executor/nodeHash.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"
}

namespace gpuvm {

#define ARENA_TRANCHE "gpuvm_arena"

/* A fallocate that a signal interrupts gives back what it got; small steps make progress all the same. */
constexpr uint64 FALLOCATE_STEP = 16 * 1024 * 1024;

/* Cleaning takes no more pages at once, so that who allocates meanwhile finds others. */
constexpr uint64 CLEAN_PAGES = 256;

/* How long an allocation waits for cleaning to give pages back. */
constexpr int CLEANING_WAIT_US = 1000;
constexpr int CLEANING_TRIES = 1000;

/* What imports leave to jobs: such a part of gpuvm.memory, within bounds, and never more than the second part. */
constexpr uint64 RESERVE_SHARE = 16;
constexpr uint64 MIN_RESERVE = 16 * 1024 * 1024;
constexpr uint64 MAX_RESERVE = 512 * 1024 * 1024;
constexpr uint64 MOST_RESERVE_SHARE = 4;

/* One execution may take such a part of gpuvm.memory, if work_mem is not more. */
constexpr uint64 RUN_SHARE = 4;

constexpr uint64 HEADER_PAGES = ARENA_HEADER_BYTES / ARENA_PAGE;
static_assert(MIN_PIN_CHUNK % ARENA_PAGE == 0, "a page lies in one pin chunk");

struct ArenaShared
{
	uint64		npages;
	uint64		first_free;		/* no page below is free */
	pg_atomic_uint64 used_pages;	/* changed under the lock, read without */
	uint64		job_pages;		/* those of jobs */
	pg_atomic_uint64 zone_pages;	/* of the used ones, those in the jobs zone; as used_pages */
	pg_atomic_uint32 cleaning;	/* processes that hold free pages for a moment: to punch them out, or spare areas */
	uint64		words[FLEXIBLE_ARRAY_MEMBER];	/* bitmaps `used`, `last` and `jobs` */
};

constexpr int BITMAPS = 3;

static ArenaShared *arena = NULL;
static LWLock *arena_lock = NULL;
static char *base = NULL;
static uint64 mapped_size = 0;
static int	memfd = -1;
static bool preloaded = false;
static char failure[256];

static char *shared = NULL;

#if PG_VERSION_NUM >= 150000
static shmem_request_hook_type prev_shmem_request_hook = NULL;
#endif
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static uint64
configured_size(void)
{
	return static_cast<uint64>(setting_memory_mb) * 1024 * 1024;
}

static uint64
bitmap_words(uint64 npages)
{
	return (npages + 63) / 64;
}

static Size
arena_shared_size(void)
{
	return MAXALIGN(offsetof(ArenaShared, words) +
					BITMAPS * bitmap_words(configured_size() / ARENA_PAGE) * sizeof(uint64));
}

static Size
shared_size(void)
{
	return stats_shared_size() + quarantine_shared_size() + areas_shared_size() + activity_shared_size() + arena_shared_size();
}

StatsShared *
stats_shared(void)
{
	return reinterpret_cast<StatsShared *>(shared);
}

QuarantineShared *
quarantine_shared(void)
{
	return shared ? reinterpret_cast<QuarantineShared *>(shared + stats_shared_size()) : NULL;
}

/* ---- the mapping ---------------------------------------------------------- */

static void
unmap_arena(void)
{
	if (base != NULL)
		munmap(base, mapped_size);
	if (memfd >= 0)
		close(memfd);
	base = NULL;
	mapped_size = 0;
	memfd = -1;
}

static bool
arena_failed(const char *what)
{
	int			save_errno = errno;

	snprintf(failure, sizeof(failure), "%s of %d MB of memory failed: %s",
			 what, setting_memory_mb, strerror(save_errno));
	ereport(LOG, (errmsg("gpuvm is off: %s", failure)));
	unmap_arena();
	return false;
}

static bool
map_arena(void)
{
	uint64		size = configured_size();
	void	   *at;

	memfd = memfd_create("gpuvm arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memfd < 0)
		return arena_failed("creation");
	if (ftruncate(memfd, static_cast<off_t>(size)) != 0 ||
		fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return arena_failed("reservation");
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memfd, 0);
	if (at == MAP_FAILED)
		return arena_failed("mapping");
	base = static_cast<char *>(at);
	mapped_size = size;
	if (fallocate(memfd, 0, 0, ARENA_HEADER_BYTES) != 0)
		return arena_failed("allocation");

	/* Both are wishes: a core file without the data, huge pages where the system offers them. */
	(void) madvise(base, size, MADV_DONTDUMP);
	(void) madvise(base, size, MADV_HUGEPAGE);
	return true;
}

static void
init_header(void)
{
	ArenaHeader *header = new (base) ArenaHeader();

	header->magic = ARENA_MAGIC;
	header->abi_version = ABI_VERSION;
	header->size = mapped_size;
	header->jobs_begin = arena_jobs_begin();
	header->epoch = static_cast<uint64>(GetCurrentTimestamp());
	strlcpy(header->cuda_status, "gpuvmd is not running", sizeof(header->cuda_status));
	strlcpy(header->engine_status,
			"its supervisor has not started; it does once recovery has reached a consistent state, "
			"unless max_worker_processes leaves it no slot",
			sizeof(header->engine_status));
}

/* ---- hooks ---------------------------------------------------------------- */

static void
request_shmem(void)
{
#if PG_VERSION_NUM >= 150000
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
#endif
	RequestAddinShmemSpace(shared_size());
	RequestNamedLWLockTranche(ARENA_TRANCHE, 2);
	store_shmem_request();
}

static void
startup_shmem(void)
{
	char	   *areas_at;
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	/* After a crash this runs again in the same postmaster. */
	unmap_arena();
	failure[0] = '\0';

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = static_cast<char *>(ShmemInitStruct("gpuvm", shared_size(), &found));
	if (!found)
		memset(shared, 0, shared_size());
	areas_at = shared + stats_shared_size() + quarantine_shared_size();
	areas_shared_init(reinterpret_cast<AreasShared *>(areas_at), &GetNamedLWLockTranche(ARENA_TRANCHE)[1].lock);
	activity_shared_init(reinterpret_cast<ActivityShared *>(areas_at + areas_shared_size()));
	arena = reinterpret_cast<ArenaShared *>(areas_at + areas_shared_size() + activity_shared_size());
	arena_lock = &GetNamedLWLockTranche(ARENA_TRANCHE)[0].lock;

	if (map_arena())
	{
		init_header();
		arena->npages = mapped_size / ARENA_PAGE;
		/* The header's pages are taken for ever, so offset 0 is never handed out. */
		arena->words[0] = (1 << HEADER_PAGES) - 1;
		arena->words[bitmap_words(arena->npages)] = 1 << (HEADER_PAGES - 1);
		arena->first_free = HEADER_PAGES;
		pg_atomic_write_u64(&arena->used_pages, HEADER_PAGES);
		arena->job_pages = 0;
		pg_atomic_write_u64(&arena->zone_pages, 0);
		pg_atomic_write_u32(&arena->cleaning, 0);
	}
	store_shmem_startup();
	LWLockRelease(AddinShmemInitLock);
}

void
shmem_install(void)
{
	preloaded = true;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;
#if PG_VERSION_NUM >= 150000
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
#else
	request_shmem();
#endif
}

/* ---- what there is -------------------------------------------------------- */

bool
shmem_available(void)
{
	return base != NULL;
}

void
require_preload(void)
{
	if (base != NULL)
		return;
	if (preloaded)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("gpuvm has no memory for imported tables"),
				 errdetail_internal("%s", failure),
				 errhint("Lower \"gpuvm.memory\" and restart the server.")));
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("gpuvm must be loaded via \"shared_preload_libraries\""),
			 errhint("Add gpuvm to \"shared_preload_libraries\" and restart the server.")));
}

const char *
arena_failure(void)
{
	if (base != NULL)
		return NULL;
	return preloaded ? failure : "gpuvm is not in shared_preload_libraries";
}

int
arena_fd(void)
{
	return memfd;
}

char *
arena_base(void)
{
	return base;
}

uint64
run_memory_limit(void)
{
	return Max(static_cast<uint64>(get_hash_memory_limit()), arena_size() / RUN_SHARE);
}

ArenaHeader *
arena_header(void)
{
	return reinterpret_cast<ArenaHeader *>(base);
}

uint64
arena_size(void)
{
	return mapped_size;
}

uint64
arena_used(void)
{
	uint64		used = base ? pg_atomic_read_u64(&arena->used_pages) * ARENA_PAGE : 0;

	return used - Min(areas_spare(), used);
}

uint64
arena_reserve(void)
{
	return Min(Min(Max(mapped_size / RESERVE_SHARE, MIN_RESERVE), MAX_RESERVE), mapped_size / MOST_RESERVE_SHARE);
}

uint64
arena_jobs_begin(void)
{
	return (mapped_size - arena_reserve()) / ARENA_PAGE * ARENA_PAGE;
}

/* Of spare areas those in the zone are no use to imports. They are taken to lie there as far as there is room. */
uint64
arena_left(void)
{
	uint64		used = base ? pg_atomic_read_u64(&arena->used_pages) * ARENA_PAGE : 0;
	uint64		in_zone = base ? pg_atomic_read_u64(&arena->zone_pages) * ARENA_PAGE : 0;
	uint64		spare = areas_spare();
	uint64		below = used - Min(in_zone, used);

	below -= Min(spare - Min(spare, in_zone), below);
	return arena_jobs_begin() - Min(below, arena_jobs_begin());
}

uint64
arena_next_serial(void)
{
	return arena_header()->next_serial.fetch_add(1) + 1;
}

/* ---- the allocator -------------------------------------------------------- */

static inline bool
get_bit(const uint64 *bitmap, uint64 i)
{
	return (bitmap[i / 64] >> (i % 64)) & 1;
}

static void
set_bits(uint64 *bitmap, uint64 from, uint64 n, bool value)
{
	for (uint64 i = from; i < from + n;)
	{
		uint64		shift = i % 64;
		uint64		len = Min(64 - shift, from + n - i);
		uint64		mask = (len == 64 ? ~UINT64CONST(0) : ((UINT64CONST(1) << len) - 1)) << shift;

		if (value)
			bitmap[i / 64] |= mask;
		else
			bitmap[i / 64] &= ~mask;
		i += len;
	}
}

/* First page of the first run of n free pages, or 0. */
static uint64
find_run(const uint64 *used, uint64 npages, uint64 from, uint64 n)
{
	uint64		run = 0;

	for (uint64 i = from; i < npages;)
	{
		uint64		word = used[i / 64];
		bool		whole = i % 64 == 0 && npages - i >= 64;

		if (whole && word == ~UINT64CONST(0))
		{
			run = 0;
			i += 64;
		}
		else if (whole && word == 0 && run + 64 < n)
		{
			run += 64;
			i += 64;
		}
		else
		{
			run = get_bit(used, i) ? 0 : run + 1;
			i++;
			if (run == n)
				return i - n;
		}
	}
	return 0;
}

/* Takes pages or gives them back. Those of cleaning count as free all the while. */
static void
mark_pages(uint64 first, uint64 n, bool used)
{
	uint64	   *bits = arena->words;
	uint64	   *last = arena->words + bitmap_words(arena->npages);

	set_bits(bits, first, n, used);
	set_bits(last, first + n - 1, 1, used);
	if (used && first == arena->first_free)
		arena->first_free = first + n;
	else if (!used && first < arena->first_free)
		arena->first_free = first;
}

/* Pages [first, first + n) are in use now, or no more. */
static void
count_pages(uint64 first, uint64 n, bool used)
{
	const uint64 zone = arena_jobs_begin() / ARENA_PAGE;
	const uint64 in_zone = first + n - Min(Max(first, zone), first + n);
	auto		count = [used](pg_atomic_uint64 *pages, uint64 by)
	{
		pg_atomic_write_u64(pages, pg_atomic_read_u64(pages) + (used ? by : -by));
	};

	count(&arena->used_pages, n);
	count(&arena->zone_pages, in_zone);
}

static void
punch_out(uint64 offset, uint64 size)
{
	while (fallocate(memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					 static_cast<off_t>(offset), static_cast<off_t>(size)) != 0 && errno == EINTR)
		;
}

static bool
populate(uint64 offset, uint64 size)
{
	for (uint64 done = 0; done < size;)
	{
		uint64		step = Min(size - done, FALLOCATE_STEP);

		if (fallocate(memfd, 0, static_cast<off_t>(offset + done), static_cast<off_t>(step)) == 0)
			done += step;
		else if (errno != EINTR)
			return false;
	}
	return true;
}

/* ---- pinned chunks -------------------------------------------------------- */

static inline uint64
chunk_pages(void)
{
	return pin_chunk_bytes(mapped_size) / ARENA_PAGE;
}

static inline PinWord *
pin_word_of(uint64 chunk)
{
	return &arena_header()->pins[chunk];
}

/* Calls visit(chunk, first page, number of pages) for the part of each chunk that the pages touch. */
template <typename Visit>
static void
for_each_chunk(uint64 first, uint64 n, Visit visit)
{
	uint64		pages = chunk_pages();

	for (uint64 at = first; at < first + n;)
	{
		uint64		end = Min((at / pages + 1) * pages, first + n);

		visit(at / pages, at, end - at);
		at = end;
	}
}

static bool
chunk_unused(uint64 chunk)
{
	uint64		first = chunk * chunk_pages();
	uint64		n = Min(chunk_pages(), arena->npages - first);

	/* The whole chunk as one run: find_run's pages begin at a multiple of 64. */
	return first != 0 && find_run(arena->words, first + n, first, n) == first;
}

/* Gives back the memory of free pages among [first, first + n), which lie in one chunk that was entered. */
static void
clean_pages(uint64 first, uint64 n)
{
	uint64		end = first + n;

	pg_atomic_fetch_add_u32(&arena->cleaning, 1);
	while (first < end)
	{
		uint64		run = 0;

		LWLockAcquire(arena_lock, LW_EXCLUSIVE);
		while (first < end && get_bit(arena->words, first))
			first++;
		while (run < CLEAN_PAGES && first + run < end && !get_bit(arena->words, first + run))
			run++;
		if (run > 0)
			mark_pages(first, run, true);
		LWLockRelease(arena_lock);
		if (run == 0)
			break;

		punch_out(first * ARENA_PAGE, run * ARENA_PAGE);

		LWLockAcquire(arena_lock, LW_EXCLUSIVE);
		mark_pages(first, run, false);
		LWLockRelease(arena_lock);
		first += run;
	}
	pg_atomic_fetch_sub_u32(&arena->cleaning, 1);
}

void
arena_forget_pins(void)
{
	for (uint64 chunk = 0; chunk < pin_chunks(mapped_size); chunk++)
		pin_ended(pin_word_of(chunk));
}

void
arena_clean_chunks(void)
{
	for (uint64 chunk = 0; chunk < pin_chunks(mapped_size); chunk++)
	{
		uint64		first = chunk * chunk_pages();

		if (!punch_enter_wanted(pin_word_of(chunk)))
			continue;
		clean_pages(first, Min(chunk_pages(), arena->npages - first));
		punch_leave(pin_word_of(chunk));
	}
}

/*
 * Punches pages out that are still marked used, chunk by chunk. False when some
 * lie in chunks that are pinned, so that release_skipped() must follow once they
 * are marked free.
 */
static bool
punch_unpinned(uint64 first, uint64 n)
{
	bool		all = true;

	for_each_chunk(first, n, [&](uint64 chunk, uint64 from, uint64 pages)
	{
		if (punch_enter(pin_word_of(chunk)))
		{
			punch_out(from * ARENA_PAGE, pages * ARENA_PAGE);
			punch_leave(pin_word_of(chunk));
		}
		else
			all = false;
	});
	return all;
}

/* Was any of the chunks pinned after its pages were punched out? They have memory again then. */
static bool
any_pinned(uint64 first, uint64 n)
{
	bool		any = false;

	for_each_chunk(first, n, [&](uint64 chunk, uint64, uint64)
	{
		any = any || pin_state(*pin_word_of(chunk)) == PinState::Pinned;
	});
	return any;
}

/*
 * The pages are free and were not all punched out. A pinned chunk without a page
 * in use is to be unpinned. One that was unpinned in between has perhaps been
 * cleaned before these pages were free: then they are cleaned here.
 */
static void
release_skipped(uint64 first, uint64 n)
{
	for_each_chunk(first, n, [&](uint64 chunk, uint64 from, uint64 pages)
	{
		bool		unused;

		LWLockAcquire(arena_lock, LW_SHARED);
		unused = chunk_unused(chunk);
		LWLockRelease(arena_lock);
		if (unused)
			unpin_wanted(pin_word_of(chunk));
		if (punch_enter(pin_word_of(chunk)))
		{
			clean_pages(from, pages);
			punch_leave(pin_word_of(chunk));
		}
	});
}

uint64
arena_pinned(void)
{
	uint64		pages = 0;

	if (base == NULL)
		return 0;
	for (uint64 chunk = 0; chunk < pin_chunks(mapped_size); chunk++)
	{
		PinState	state = pin_state(*pin_word_of(chunk));

		if (state == PinState::Pinned || state == PinState::UnpinWanted)
			pages += Min(chunk_pages(), mapped_size / ARENA_PAGE - chunk * chunk_pages());
	}
	return pages * ARENA_PAGE;
}

/* ---- the interface -------------------------------------------------------- */

static uint64 *
jobs_bitmap(void)
{
	return arena->words + 2 * bitmap_words(arena->npages);
}

/* First of n pages, now marked used, or 0. */
static uint64
take_pages(uint64 n, bool for_job)
{
	const uint64 zone = arena_jobs_begin() / ARENA_PAGE;
	uint64		first;

	LWLockAcquire(arena_lock, LW_EXCLUSIVE);
	first = for_job ? find_run(arena->words, arena->npages, Max(arena->first_free, zone), n) : 0;
	if (first == 0)
		first = find_run(arena->words, for_job ? arena->npages : zone, arena->first_free, n);
	if (first != 0)
	{
		mark_pages(first, n, true);
		count_pages(first, n, true);
		set_bits(jobs_bitmap(), first, 1, for_job);
		arena->job_pages += for_job ? n : 0;
	}
	LWLockRelease(arena_lock);
	return first;
}

/* No run of pages is free: what nobody needs is given back. */
static void
make_room(void)
{
	pg_atomic_fetch_add_u32(&arena->cleaning, 1);
	areas_make_room();
	pg_atomic_fetch_sub_u32(&arena->cleaning, 1);
}

static uint64
allocate(uint64 size, bool for_job)
{
	uint64		n = size / ARENA_PAGE + (size % ARENA_PAGE != 0);
	uint64		first;

	if (n == 0 || n >= arena->npages)
		return 0;

	first = take_pages(n, for_job);
	if (first == 0)
		make_room();
	for (int i = 0; first == 0 && i < CLEANING_TRIES; i++)
	{
		/* looked at before: what others held is there once they have done */
		bool		others = pg_atomic_read_u32(&arena->cleaning) != 0;

		first = take_pages(n, for_job);
		if (first == 0 && !others)
			return 0;
		if (first == 0)
			pg_usleep(CLEANING_WAIT_US);
	}
	if (first == 0)
		return 0;

	if (!populate(first * ARENA_PAGE, n * ARENA_PAGE))
	{
		arena_free(first * ARENA_PAGE);
		return 0;
	}
	return first * ARENA_PAGE;
}

uint64
arena_alloc(uint64 size)
{
	return base == NULL ? 0 : allocate(size, false);
}

uint64
arena_alloc_for_job(uint64 size)
{
	return base == NULL ? 0 : allocate(size, true);
}

/* Of the allocation that begins there; 0: none does. */
static uint64
allocated_pages(uint64 offset)
{
	const uint64 *last = arena->words + bitmap_words(arena->npages);
	uint64		first = offset / ARENA_PAGE;
	uint64		n = 0;

	LWLockAcquire(arena_lock, LW_SHARED);
	if (offset % ARENA_PAGE == 0 && first < arena->npages && get_bit(arena->words, first) &&
		(!get_bit(arena->words, first - 1) || get_bit(last, first - 1)))
	{
		for (n = 1; !get_bit(last, first + n - 1); n++)
			;
	}
	LWLockRelease(arena_lock);
	return n;
}

uint64
arena_allocated(uint64 offset)
{
	return allocated_pages(offset) * ARENA_PAGE;
}

void
arena_use(ArenaUse *use)
{
	uint64		used;
	uint64		jobs;
	uint64		zone;

	LWLockAcquire(arena_lock, LW_SHARED);
	used = pg_atomic_read_u64(&arena->used_pages);
	jobs = arena->job_pages * ARENA_PAGE;
	zone = pg_atomic_read_u64(&arena->zone_pages);
	LWLockRelease(arena_lock);

	use->header = ARENA_HEADER_BYTES;
	use->tables = used * ARENA_PAGE - use->header - jobs;
	use->spare = Min(areas_spare(), jobs);
	use->jobs = jobs - use->spare;
	use->free = mapped_size - used * ARENA_PAGE;
	use->reserve = mapped_size - arena_jobs_begin() - zone * ARENA_PAGE;
	use->free -= use->reserve;
}

void
arena_free(uint64 offset)
{
	uint64		first = offset / ARENA_PAGE;
	uint64		n;
	bool		punched;

	if (base == NULL || offset == 0)
		return;

	n = allocated_pages(offset);
	if (n == 0)
	{
		ereport(WARNING, (errmsg_internal("gpuvm arena offset " UINT64_FORMAT " is not allocated", offset)));
		return;
	}

	punched = punch_unpinned(first, n);

	LWLockAcquire(arena_lock, LW_EXCLUSIVE);
	mark_pages(first, n, false);
	count_pages(first, n, false);
	arena->job_pages -= get_bit(jobs_bitmap(), first) ? n : 0;
	LWLockRelease(arena_lock);

	if (!punched || any_pinned(first, n))
		release_skipped(first, n);
}

}  // namespace gpuvm
