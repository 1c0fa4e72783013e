/*
 * strip.h: a tablet again, with nulls in place of the values of some columns: what
 * it would have been built as. For columns that turn out not to be storable when
 * others of their values are in tablets already.
 */
#ifndef GPUVM_TABLET_STRIP_H
#define GPUVM_TABLET_STRIP_H

#include "tablet/format.h"

namespace gpuvm {

/* Bytes without the values of the columns that `lost` marks (all of integer types); 0 if it has none of them. */
uint64_t	stripped_size(const TabletHeader *tablet, const bool *lost);

/* Writes it to `to` (64-byte aligned, of that size); references count from its own first byte (place_tablet). */
void		strip_tablet(const TabletHeader *tablet, const bool *lost, uint64_t serial, char *to);

}  // namespace gpuvm

#endif
