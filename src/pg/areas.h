/*
 * areas.h: memory that jobs use, between jobs.
 *
 * An area (buffers for results, a program, changed rows) belongs to a session as
 * long as the session is in use. Then it is spare: the next job of any session
 * takes it. Allocating an area each time would cost a small query as much as the
 * query itself; a session that kept it would hold it as long as its client is
 * connected. What is spare is bounded, more tightly where it has been so for a
 * second, and given up when an allocation finds no room, so it counts as free.
 *
 * A session that ends while gpuvmd does not (it is stopped, it hangs, its device may
 * not have stopped) cannot free its memory, to which gpuvmd may still write. It
 * leaves it here, and whoever comes by frees it once gpuvmd has left the session or
 * has been reaped: the supervisor, who is told of both, or who finds no room.
 */
#ifndef GPUVM_PG_AREAS_H
#define GPUVM_PG_AREAS_H

#include "pg/pg.h"

extern "C" {
#include "storage/latch.h"
#include "storage/lwlock.h"
}

namespace gpuvm {

/* A spare area that a session has had: it takes that one again if nobody else has. 0: none. */
using AreaTicket = uint64;

/*
 * An area of at least *size bytes, contents undefined, and in *size what it has; 0 when memory is short. Never raises.
 */
uint64		area_take(uint64 *size, AreaTicket ticket);
AreaTicket	area_give(uint64 offset, uint64 size);

/*
 * Frees a session's Job and area as soon as gpuvmd, of a start not later than `generation`, cannot write to them any
 * more. Never raises.
 */
void		area_abandon(uint64 job, uint64 area, uint32 generation);

/*
 * For the supervisor: frees what has been spare for a second and is more than may be for long. In how many ms it is to come
 * again; -1: when its latch is set, which it tells by areas_set_supervisor() (NULL: it has gone).
 */
long		areas_trim(void);
void		areas_set_supervisor(Latch *latch);

/* Frees what was abandoned, as far as that is possible now. */
void		areas_reclaim(void);

/* Bytes that are spare. */
uint64		areas_spare(void);

/* For arena_alloc, which found no room: gives back what was abandoned, and what is spare. */
void		areas_make_room(void);

/* The part of the shared structure, zeroed at start-up. */
struct AreasShared;
Size		areas_shared_size(void);
void		areas_shared_init(AreasShared *areas, LWLock *lock);

}  // namespace gpuvm

#endif
