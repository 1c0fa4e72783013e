/* tablet_rows.h: rows of tablets as PostgreSQL's own expressions take them. */
#ifndef GPUVM_STORE_TABLET_ROWS_H
#define GPUVM_STORE_TABLET_ROWS_H

#include "store/registry.h"

extern "C" {
#include "executor/tuptable.h"
}

namespace gpuvm {

/*
 * Stores a row of one of the version's tablets in a virtual slot of the relation's columns: those of `wanted` (attribute numbers;
 * NULL: all) that are in tablets, the others are null. Values point into the arena, and are good while the version is
 * pinned, or lie in the current memory context.
 */
void		tablet_row(const TableVersion *version, const TabletHeader *tablet, uint32 row, const Bitmapset *wanted, TupleTableSlot *slot);

}  // namespace gpuvm

#endif
