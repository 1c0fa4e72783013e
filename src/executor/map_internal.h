/* map_internal.h: between what makes maps. */
#ifndef GPUVM_EXECUTOR_MAP_INTERNAL_H
#define GPUVM_EXECUTOR_MAP_INTERNAL_H

#include <cstring>

#include "executor/maps.h"

namespace gpuvm {

/* MapData.entry_items of an entry of which the expression makes a null. */
constexpr uint32 NO_ITEM = 0xffffffffu;

/* In the current context, or where the array is. */
template <typename T>
inline T *
larger(T *array, Size n, Size more)
{
	if (array == nullptr)
		return static_cast<T *>(palloc_extended(sizeof(T) * more, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
	array = static_cast<T *>(repalloc_huge(array, sizeof(T) * more));
	memset(array + n, 0, sizeof(T) * (more - n));
	return array;
}

/* Different values of one expression together. PostgreSQL holds those of one row. */
constexpr Size MAX_MAP_ITEM_BYTES = 256 * 1024 * 1024;

/* Puts there what the map has for a value that is not null. */
void		store_value(MapData *map, Datum value, char *to);

/* map_meet.cc: the set that a reference is to, how many entries it has, and one of them. */
EntrySet	entry_set(GpuvmScanState *state, const DictionaryRef &ref);
uint32		set_count(const EntrySet *set);
Datum		set_datum(const EntrySet *set, uint32 code);

/* Sorts what is new into the order, and gives every entry up to `upto` its rank. */
void		map_rank(MapData *map, const EntrySource *source, uint32 upto);

}  // namespace gpuvm

#endif
