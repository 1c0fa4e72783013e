/* activity.h: which sessions with gpuvmd there are, and what they run: what is behind gpuvm.activity. */
#ifndef GPUVM_PG_ACTIVITY_H
#define GPUVM_PG_ACTIVITY_H

#include "pg/pg.h"

extern "C" {
#include "datatype/timestamp.h"
}

namespace gpuvm {

/* Of a session's own, from its beginning to its end; where all are taken NULL, and the session is not shown. Never raises. */
struct ActivitySlot;
ActivitySlot *activity_begin(uint64 job);
void		activity_end(ActivitySlot *slot);

/* The session is used by this user from now on, with so much memory for results; and is not used any more. */
void		activity_use(ActivitySlot *slot);
void		activity_memory(ActivitySlot *slot, uint64 bytes);
void		activity_submit(ActivitySlot *slot);
void		activity_release(ActivitySlot *slot);

struct ActivityRow
{
	int			pid;
	Oid			database;		/* InvalidOid: of none */
	Oid			role;
	uint64		job;			/* arena offset: it may end, and be another's, while it is looked at */
	int			slot;
	uint64		memory;
	TimestampTz submitted;		/* 0: nothing yet */
};

/* A palloc'd array of sessions that are used now. */
ActivityRow *activity_list(int *count);

/* Is the session used by the same user still? */
bool		activity_is(const ActivityRow *row);

/* The part of the shared structure, zeroed at start-up. */
struct ActivityShared;
Size		activity_shared_size(void);
void		activity_shared_init(ActivityShared *shared);

}  // namespace gpuvm

#endif
