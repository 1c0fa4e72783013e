/* region.cc: regions of the arena, owned by this backend. */
#include "pg/pg.h"

extern "C" {
#include "access/xact.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
}

#include "executor/region.h"
#include "pg/shmem.h"

namespace gpuvm {

/* A region no larger than this is kept for the next scan. */
constexpr uint64 KEEP_BYTES = 8 << 20;

static Region *regions;
static bool exit_registered;

static void
drop(Region *region)
{
	for (Region **link = &regions; *link != nullptr; link = &(*link)->next)
	{
		if (*link == region)
		{
			*link = region->next;
			break;
		}
	}
	arena_free(region->offset);
	pfree(region);
}

static void
drop_all(int code, Datum arg)
{
	while (regions != nullptr)
		drop(regions);
}

static void
at_transaction_end(XactEvent event, void *arg)
{
	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
		return;
	for (Region *r = regions, *next; r != nullptr; r = next)
	{
		next = r->next;
		if (r->in_use)
			region_release(r);
	}
}

Region *
region_acquire(uint64 size)
{
	Region	   *region;
	uint64		offset;

	for (region = regions; region != nullptr; region = region->next)
	{
		if (!region->in_use && region->size >= size)
		{
			region->in_use = true;
			return region;
		}
	}
	if (!exit_registered)
	{
		/* Not before_shmem_exit: the transaction, and with it a job, is ended there. */
		on_shmem_exit(drop_all, 0);
		exit_registered = true;
	}
	region = static_cast<Region *>(MemoryContextAlloc(TopMemoryContext, sizeof(Region)));
	offset = arena_alloc(size);
	if (offset == 0)
	{
		pfree(region);
		return nullptr;
	}
	*region = Region{offset, TYPEALIGN(ARENA_PAGE, size), true, regions};
	regions = region;
	return region;
}

void
region_release(Region *region)
{
	Region	   *spare = nullptr;

	for (Region *r = regions; r != nullptr; r = r->next)
	{
		if (!r->in_use)
			spare = r;
	}
	region->in_use = false;
	if (region->size > KEEP_BYTES)
		drop(region);
	else if (spare != nullptr)
		drop(spare->size < region->size ? spare : region);
}

void
region_install(void)
{
	RegisterXactCallback(at_transaction_end, nullptr);
}

}  // namespace gpuvm
