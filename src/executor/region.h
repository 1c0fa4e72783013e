/*
 * region.h: arena memory of one running scan: its program and result buffers.
 *
 * A backend keeps one small region for its next scan, so that a query pays
 * neither the allocator nor fresh pages. Regions still in use at the end of a
 * transaction (an error got in the way) are taken back then: by that time no
 * job runs any more (pg/engine_client.h).
 */
#ifndef GPUVM_EXECUTOR_REGION_H
#define GPUVM_EXECUTOR_REGION_H

#include "pg/pg.h"

namespace gpuvm {

struct Region
{
	uint64		offset;			/* in the arena */
	uint64		size;
	bool		in_use;
	Region	   *next;
};

/* A region of at least `size` bytes, or NULL when memory is short. */
Region	   *region_acquire(uint64 size);
void		region_release(Region *region);

/* Registers the transaction callback; once from _PG_init. */
void		region_install(void);

}  // namespace gpuvm

#endif
