/* engine_watch.h: has gpuvmd stopped, or does it hang? Asked by who waits for it. */
#ifndef GPUVM_PG_ENGINE_WATCH_H
#define GPUVM_PG_ENGINE_WATCH_H

#include <chrono>

#include "engine/abi.h"
#include "pg/pg.h"

namespace gpuvm {

/* Between two looks, in ms. */
constexpr int ENGINE_LOOK_MS = 250;

struct EngineWatch
{
	pid_t		pid;			/* gpuvmd's, as the socket has it; 0: not known */
	uint32_t	beats;			/* at the last look */
	uint64		ticks;			/* of processor time */
	std::chrono::steady_clock::time_point looked;
	double		silent_ms;		/* since its heart was seen to beat */
	uint32		looks;			/* Job.looks */
	double		asleep_ms;		/* since a thread of it was seen that wants a processor, or waits for a disk */
	double		share_ms;		/* what a thread that wants one has had of a processor since the job was canceled */
};

void		engine_watch_begin(EngineWatch *watch, int fd);

/*
 * To be called while a job (or the answer to a hello: NULL) is waited for, as often as one likes. One that is stopped or hangs is killed,
 * and the session's socket then ends; true where that was done. Does not raise.
 */
bool		engine_watch(EngineWatch *watch, const Job *job);

}  // namespace gpuvm

#endif
