/* startup.h: what the files of src/pg call in each other at start-up. */
#ifndef GPUVM_PG_STARTUP_H
#define GPUVM_PG_STARTUP_H

#include "engine/abi.h"
#include "pg/pg.h"

namespace gpuvm {

/* Where gpuvmd listens, relative to the data directory, every process's working directory. */
#define GPUVM_SOCKET_PATH "pg_stat_tmp/gpuvm.sock"

/* Requests shared memory and installs the hooks; only while the postmaster preloads libraries. */
void		shmem_install(void);

/* Registers the static background worker; only while the postmaster preloads libraries. */
void		supervisor_register(void);

/*
 * Something else that the supervisor does beside watching gpuvmd, quickly and without raising.
 * Returns the milliseconds until it is to be called again (-1: not by time); called earlier, too.
 */
typedef long (*SupervisorTask) (void);
void		supervisor_set_task(SupervisorTask task);

/* Registers the callbacks that end sessions; must come after every other part's, to be called before them. */
void		engine_client_install(void);

/* The arena's memfd, inherited by every process; -1 without an arena. */
int			arena_fd(void);

/* The header at the arena's first byte; NULL without an arena. */
ArenaHeader *arena_header(void);

/* For the supervisor. There is no gpuvmd, so nothing is pinned. */
void		arena_forget_pins(void);

/* For the supervisor. Gives back the memory of free pages in chunks that are pinned no more. */
void		arena_clean_chunks(void);

/* Why there is no arena although the library is preloaded; NULL when there is one. */
const char *arena_failure(void);

/* What gpuvm.memory = 0 and gpuvm.engine_memory = 0 stand for. */
int			default_memory_mb(void);
int			default_engine_memory_mb(void);

/* A part of the shared structure of shmem.cc, zeroed at start-up. */
struct StatsShared;
struct QuarantineShared;
StatsShared *stats_shared(void);
QuarantineShared *quarantine_shared(void);
Size		stats_shared_size(void);
Size		quarantine_shared_size(void);

}  // namespace gpuvm

#endif
