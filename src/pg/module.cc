/*
 * module.cc: loading the library. Settings, planner and executor hooks are
 * installed in whatever process loads it; shared memory, the arena and the
 * supervisor exist only when the postmaster preloads it. "postgres -C" runs
 * _PG_init beside a living server, so nothing here touches a file or a process:
 * that waits for shmem_startup_hook.
 */
#include "pg/pg.h"

#include "executor/custom_scan.h"
#include "pg/settings.h"
#include "pg/startup.h"
#include "planner/planner.h"
#include "store/store.h"

extern "C" {
PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);
}

void
_PG_init(void)
{
	gpuvm::define_settings();

#ifndef EXEC_BACKEND
	/* IsPostmasterEnvironment is false in single-user mode, which also preloads. */
	if (process_shared_preload_libraries_in_progress && IsPostmasterEnvironment && !IsBinaryUpgrade)
	{
		gpuvm::shmem_install();
		gpuvm::supervisor_register();
	}
#endif

	gpuvm::store_install();
	gpuvm::planner_install();
	gpuvm::executor_install();
	gpuvm::engine_client_install();
}
