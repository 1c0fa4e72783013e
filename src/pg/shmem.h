/*
 * shmem.h: gpuvm's part of PostgreSQL's shared memory, and the arena.
 *
 * The arena is a memfd mapping made in shmem_startup_hook (rule 24). Its
 * allocator works in pages of ARENA_PAGE bytes; its state is in PostgreSQL's
 * shared memory under one LWLock. Pages are fallocated before use and their
 * memory is given back (FALLOC_FL_PUNCH_HOLE) when freed.
 *
 * Lock order: registry lock, then arena lock. Neither is held while waiting for
 * gpuvmd, while reading a buffer, or across ereport.
 */
#ifndef GPUVM_PG_SHMEM_H
#define GPUVM_PG_SHMEM_H

#include "core/arena_page.h"
#include "pg/pg.h"

namespace gpuvm {

/* Was the library preloaded, so that shared memory, arena and supervisor exist? */
bool		shmem_available(void);

/*
 * Raises ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE with a hint about
 * shared_preload_libraries unless shmem_available().
 */
void		require_preload(void);

/* The arena's first byte in this process, and its size; NULL and 0 without one. */
char	   *arena_base(void);
uint64		arena_size(void);
uint64		arena_used(void);
uint64		arena_pinned(void);	/* bytes in chunks that gpuvmd has pinned */

/*
 * Offset of `size` bytes (rounded up to whole pages, contents undefined), or 0 when memory is short. Never raises. What
 * imports and refreshes take leaves the jobs zone to jobs: their memory for results and programs, which they have there
 * as long as there is room, for gpuvmd can write to it there without more ado (engine/abi.h).
 */
uint64		arena_alloc(uint64 size);
uint64		arena_alloc_for_job(uint64 size);
uint64		arena_reserve(void);
uint64		arena_left(void);	/* free for imports */
uint64		arena_jobs_begin(void);	/* the jobs zone, as large as the reserve, is the arena's end; where is it? */

/* What that allocation takes: whole pages. */
uint64		arena_allocated(uint64 offset);

/* What the arena's bytes are used for; together they are arena_size(). */
struct ArenaUse
{
	uint64		header;
	uint64		tables;			/* and what belongs to them, also in the making */
	uint64		jobs;
	uint64		spare;			/* areas.h */
	uint64		reserve;		/* free, for jobs alone */
	uint64		free;			/* the rest */
};

void		arena_use(ArenaUse *use);

/* What one execution may take of memory: its groups, a join's smaller sides, what is sorted, a subquery's rows. */
uint64		run_memory_limit(void);

/* A number that no other tablet of this life of the arena has: TabletHeader.serial. */
uint64		arena_next_serial(void);

/* Gives back what arena_alloc returned. 0 is ignored. */
void		arena_free(uint64 offset);

template <typename T>
inline T *
arena_at(uint64 offset)
{
	return reinterpret_cast<T *>(arena_base() + offset);
}

}  // namespace gpuvm

#endif
