/*
 * join_index.h: which inner sides of joins are indexes: all rows of a table's tablets, with their keys and columns as the tablets have them.
 * Such a side is the same for every query that reads the same tablets the same way, whatever it asks for besides, so an engine may keep
 * it. A side with a condition is none: kept, it would be a part of an answer.
 */
#ifndef GPUVM_VM_JOIN_INDEX_H
#define GPUVM_VM_JOIN_INDEX_H

#include <string>

#include "tablet/format.h"
#include "vm/join_split.h"

namespace gpuvm {

/* A tablet of an index. */
struct IndexTablet
{
	const TabletHeader *tablet;
	uint64_t	serial;

	/*
	 * No version of a table has it: it will not be asked for again. Backends count its versions; where it lay may be
	 * anything by now, but not a tablet of the same serial.
	 */
	bool gone() const
	{
		return __atomic_load_n(&tablet->serial, __ATOMIC_RELAXED) != serial || __atomic_load_n(&tablet->refs, __ATOMIC_RELAXED) == 0;
	}
};

/*
 * Is the level's inner side an index, as far as its build program tells? Every row must come out, whatever parameters, maps and patterns
 * a query brings, and none may raise an error. If so, what tells it from others over the same tablets is appended to `key`: a side that has
 * the same key and the same tablets, in the same order, none of whose rows are masked, has the same rows. Tablets are
 * known by their serials (TabletHeader.serial); one that has none was made for one job.
 */
bool		index_key(const JoinLevel &level, std::string *key);

/* Appends the value's bytes: of types without padding. */
template <typename T>
void
append_key(std::string *to, T value)
{
	to->append(reinterpret_cast<const char *>(&value), sizeof(value));
}

}  // namespace gpuvm

#endif
