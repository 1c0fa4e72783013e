/* session.h: one backend's connection, served by a thread of its own. */
#ifndef GPUVM_ENGINE_SESSION_H
#define GPUVM_ENGINE_SESSION_H

#include "engine/arena_map.h"
#include "engine/device_loader.h"
#include "engine/job_run.h"
#include "engine/request.h"
#include "engine/worker_pool.h"

namespace gpuvm {

/* What all sessions share. */
struct EngineContext
{
	ArenaMap	arena;
	WorkerPool *pool;
	CheckedTablets checked;
	MakeCpuJob	make_cpu_job;
	DeviceSlot	devices;
	std::atomic<int> spinning{0};
	int			max_spinning = 1;	/* sessions that may wait awake at once */
};

/* Serves the session on `fd` until its end; does not close it. Never throws. */
void		serve_session(EngineContext *context, int fd);

}  // namespace gpuvm

#endif
