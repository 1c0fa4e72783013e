/* compat.h: what differs between PostgreSQL 14 and 18, in one place. */
#ifndef GPUVM_PG_COMPAT_H
#define GPUVM_PG_COMPAT_H

#include "pg/pg.h"

extern "C" {
#include "storage/latch.h"
#if PG_VERSION_NUM >= 180000
#include "storage/waiteventset.h"
#endif
#include "utils/guc.h"
#include "utils/memutils.h"
}

namespace gpuvm {

/* A set that lives as long as the process: PostgreSQL 17 ties sets to a ResourceOwner unless given none. */
inline WaitEventSet *
compat_create_wait_event_set(int nevents)
{
#if PG_VERSION_NUM >= 170000
	return CreateWaitEventSet(NULL, nevents);
#else
	return CreateWaitEventSet(TopMemoryContext, nevents);
#endif
}

/* From here on "gpuvm.x = y" for an unknown x is refused. */
inline void
compat_reserve_setting_prefix(const char *prefix)
{
#if PG_VERSION_NUM >= 150000
	MarkGUCPrefixReserved(prefix);
#else
	EmitWarningsOnPlaceholders(prefix);
#endif
}

}  // namespace gpuvm

#endif
