/*
 * engine_client.h: a backend's end of its session with gpuvmd (engine/abi.h).
 *
 * One Job a backend, allocated in the arena at the first use and kept. Nothing
 * here raises except through CHECK_FOR_INTERRUPTS in engine_wait; the caller
 * decides between fallback and error. A Job in flight is ended by
 * engine_abort, which transaction-abort and process-exit callbacks call too, so
 * result buffers are never reused while gpuvmd may still write to them.
 */
#ifndef GPUVM_PG_ENGINE_CLIENT_H
#define GPUVM_PG_ENGINE_CLIENT_H

#include "engine/abi.h"
#include "pg/pg.h"

namespace gpuvm {

/*
 * Connects if need be (waiting up to `wait_ms` for a gpuvmd that is starting).
 * Returns the session's Job, state Idle, for the caller to fill; NULL with
 * *reason (static or palloc'd text) when there is no engine. A second job while
 * one is in flight in this backend (nested query, several cursors) gets its own
 * session: the caller owns the handle until engine_release.
 */
struct EngineSession;

EngineSession *engine_acquire(int wait_ms, const char **reason);
Job		   *engine_job(EngineSession *session);

/* Stores Submitted and rings. */
void		engine_submit(EngineSession *session);

enum EngineWait
{
	ENGINE_BUFFER_FULL,			/* at least one result buffer is Full */
	ENGINE_ENDED,				/* Done or Failed (a Full buffer is reported first) */
	ENGINE_LOST,				/* gpuvmd has gone; buffers that are Full are valid */
};

/* Spins briefly, then sleeps on the socket and the latch; serves interrupts. */
EngineWait	engine_wait(EngineSession *session);

/* To be called after setting a buffer Free: rings if gpuvmd is suspended. */
void		engine_buffer_freed(EngineSession *session);

/* Asks a job in flight to stop and waits until it has, or until gpuvmd has gone. No interrupts. */
void		engine_abort(EngineSession *session);

/* Ends the use of a session (aborting a job in flight) and keeps the connection for the next. */
void		engine_release(EngineSession *session);

/* Round trip of the empty program in nanoseconds; -1 with *reason when there is no engine. */
int64		engine_ping(const char **reason);

/* Was this program running at two crashes of gpuvmd? And: it was running when gpuvmd was lost. */
bool		engine_quarantined(uint64 program_hash);
void		engine_note_crash(uint64 program_hash);

}  // namespace gpuvm

#endif
