/* store.h: the store's part of start-up. */
#ifndef GPUVM_STORE_STORE_H
#define GPUVM_STORE_STORE_H

#include "pg/pg.h"

namespace gpuvm {

/* Bytes of shared memory and LWLock tranches that the store needs; from shmem_request_hook. */
void		store_shmem_request(void);

/* Makes or attaches the store's shared structures; from shmem_startup_hook, AddinShmemInitLock held. */
void		store_shmem_startup(void);

/* Transaction callbacks and the like; once from _PG_init. */
void		store_install(void);

}  // namespace gpuvm

#endif
