/*
 * engine_client.h: a backend's sessions with gpuvmd (engine/abi.h).
 *
 * A session is a connection, a Job in the arena and, while it is in use, an area
 * for results (areas.h). It is kept for the next use when it is released. A Job in flight is ended by
 * engine_abort, which transaction-abort and process-exit callbacks call too, so
 * the Job and the area are never reused while gpuvmd may still write to them.
 *
 * Nothing here raises except through CHECK_FOR_INTERRUPTS in engine_wait; the
 * caller decides between fallback and error. When the ResourceOwner that was
 * current at engine_acquire ends, the session is released: at an abort that is
 * before any other part of gpuvm gives up what the Job may refer to, provided
 * that it does so in RESOURCE_RELEASE_AFTER_LOCKS or by the transaction
 * callbacks of _PG_init's time.
 */
#ifndef GPUVM_PG_ENGINE_CLIENT_H
#define GPUVM_PG_ENGINE_CLIENT_H

#include "engine/abi.h"
#include "pg/pg.h"

namespace gpuvm {

struct EngineSession;

/*
 * A session whose Job is Idle, for the caller to fill, connecting if need be
 * (and waiting up to `wait_ms` for a gpuvmd that is starting); NULL with *reason
 * (static text) when there is no engine. A second job in flight in this backend
 * (nested query, several cursors) needs a second session: the caller owns the
 * handle until engine_release.
 */
EngineSession *engine_acquire(int wait_ms, const char **reason);
Job		   *engine_job(EngineSession *session);

/*
 * Result sets (engine/abi.h). A session that has some is nobody else's until the last is dropped: whoever made them knows
 * it by a number, 0 before there is one. They end with the ResourceOwner that was current when the first was made.
 */

/* The session with this number, or one that gets it; NULL with *reason also when the session has gone, and its sets with it. */
EngineSession *engine_acquire_sets(uint64 *number, int wait_ms, const char **reason);
/* A set's number that is not used; 0: there is none left. */
uint32		engine_new_set(EngineSession *session);
/* Has the session the set still, as far as is known? */
bool		engine_has_set(uint64 number, uint32 set);
/* Those that have a bit; at once, or when the session is released. Does not raise, nor wait for it. */
void		engine_drop_sets(uint64 number, uint64 sets);
/* What this backend has dropped is gone. */
void		engine_settle(void);

/*
 * Arena offset of `size` bytes that belong to the session, contents undefined;
 * 0 when memory is short. A later call replaces them, and only while no job is
 * in flight. For result buffers, program and bitmap of units. They end with
 * engine_release, and are mostly the next query's (areas.h), which need not allocate.
 */
uint64		engine_area(EngineSession *session, uint64 size);

/* Stores Submitted and rings. The caller has set so many buffers Free; the Job is not asked how many they are. */
void		engine_submit(EngineSession *session, int nbuffers);

enum EngineWait
{
	ENGINE_BUFFER_FULL,			/* at least one result buffer is Full */
	ENGINE_ENDED,				/* Done or Failed, and no buffer is Full */
	ENGINE_LOST,				/* gpuvmd has gone, and no buffer is Full; those Filling are void */
};

/*
 * Spins briefly, then sleeps on the socket and the latch; serves interrupts.
 * After ENGINE_LOST the session is good for nothing but engine_release. Of a sorted job only
 * the buffer counts that has the unit which comes next.
 */
EngineWait	engine_wait(EngineSession *session, int64 unit = -1);

/* To be called after setting a buffer Free: rings if gpuvmd is suspended. */
void		engine_buffer_freed(EngineSession *session);

/* Asks a job in flight to stop and waits until it has, or until gpuvmd has gone. No interrupts. */
void		engine_abort(EngineSession *session);

/* Ends the use of a session (aborting a job in flight) and keeps the connection for the next. */
void		engine_release(EngineSession *session);

/* Round trip of the empty program in nanoseconds; -1 with *reason when there is no engine. */
int64		engine_ping(const char **reason);

/* Waits, up to timeout_ms, while gpuvmd brings its devices up. Serves interrupts. */
void		engine_wait_for_devices(int timeout_ms);

/*
 * Tells gpuvmd of a TableVersion that queries will soon ask for, so that its
 * memory is pinned for the devices before. Without devices, or when gpuvmd is
 * away, nothing happens.
 */
void		engine_prepare(uint64 version);

/* Which start of gpuvmd the session is with. */
uint32		engine_generation(const EngineSession *session);

/* Has a device ended the session's gpuvmd since the last engine_submit? */
bool		engine_ended_by_device(const EngineSession *session);

/* Threads of gpuvmd, as it says; 0: it has not said so. */
uint32		engine_threads(void);

/* A text that gpuvmd wrote, which need not be terminated, nor be one: palloc'd, in printable ASCII. */
char	   *engine_text(const char *text, size_t size);

template <size_t N>
inline char *
engine_text(const char (&text)[N])
{
	return engine_text(text, N);
}

/* A sentence on gpuvmd for gpuvm.status(); true when it is running. */
bool		engine_status_sentence(char *buf, size_t size);

}  // namespace gpuvm

#endif
