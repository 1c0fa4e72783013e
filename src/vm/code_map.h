/*
 * code_map.h: a map from codes of a dictionary to values, as Lookup reads it.
 *
 * A job brings it (JobMap, engine/abi.h), and it is immutable while the job
 * lives. gpuvmd checks its bounds and its values, and says how they range.
 */
#ifndef GPUVM_VM_CODE_MAP_H
#define GPUVM_VM_CODE_MAP_H

#include "vm/value_range.h"
#include "vm/zone_table.h"

namespace gpuvm {

struct CodeMap
{
	Type		type;			/* any that Lookup takes */
	bool		has_null_entry;	/* what LOOKUP_NULL reads, behind the others */
	uint32_t	nentries;		/* that one not counted */
	const void *values;			/* type_width() bytes each, as in registers; Bool: 0 or 1 */
	const uint64_t *nulls;		/* bitmap, a bit an entry (1 = null); nullptr: none is null */
	ValueRange	range;			/* of the nentries: map_range() of all */
};

/* Of the entries from `first` up to `end`. */
ValueRange	map_range(const CodeMap &map, uint32_t first, uint32_t end);

/* Can registers hold all of the map's values? */
bool		map_values_fit(const CodeMap &map);

/* Is the map a zone table (vm/zone_table.h)? Shifts that are not ZONE_UNKNOWN are within ZONE_MAX_SHIFT then. */
bool		is_zone_table(const CodeMap &map);

/* The entries that timestamps from lo to hi may have; at least one. */
ZoneTable	zone_part(const CodeMap &map, int64_t lo, int64_t hi);

/* Do these maps fit a verified program? Returns nullptr, or what is wrong. */
const char *verify_maps(const Program *program, const CodeMap *maps, uint32_t nmaps);

}  // namespace gpuvm

#endif
