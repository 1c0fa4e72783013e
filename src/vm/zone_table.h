/*
 * zone_table.h: what a time zone adds to a timestamp, as ZoneShift reads it.
 *
 * A table for one way of a zone: from UTC to local time, or back. Its times are of what is
 * shifted, so a table of the way back has what PostgreSQL says of local times that a
 * clock shows twice, or never. It is a job's map (CodeMap, vm/code_map.h) of I64: first all times,
 * ascending, then as many shifts. Both in microseconds.
 */
#ifndef GPUVM_VM_ZONE_TABLE_H
#define GPUVM_VM_ZONE_TABLE_H

#include <cstdint>

#include "core/types.h"

namespace gpuvm {

constexpr uint32_t ZONE_MAX_TIMES = 8192;
constexpr int64_t ZONE_UNKNOWN = INT64_MIN;			/* a shift that the table does not have */
constexpr int64_t ZONE_MAX_SHIFT = 8 * 86400000000LL;	/* no less than a zone's name in POSIX's form may say */

struct ZoneTable
{
	const int64_t *from;
	const int64_t *shift;
	uint32_t	n;				/* > 0 */
};

/* The last entry whose time is not after ts; the first, if all are. */
GPUVM_HD uint32_t
zone_entry(const ZoneTable &table, int64_t ts)
{
	uint32_t	at = 0;

	for (uint32_t n = table.n; n > 1;)
	{
		const uint32_t half = n / 2;

		at += table.from[at + half] <= ts ? half : 0;
		n -= half;
	}
	return at;
}

}  // namespace gpuvm

#endif
