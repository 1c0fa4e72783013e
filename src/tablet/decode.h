/*
 * decode.h: stored columns back into what they were made from. With build.h the
 * way in and out of a tablet: rows that are decoded and built again are the same
 * to the last bit.
 */
#ifndef GPUVM_TABLET_DECODE_H
#define GPUVM_TABLET_DECODE_H

#include "tablet/format.h"

namespace gpuvm {

/*
 * Rows [first, first + n) of a column of a checked tablet, as values of
 * type_natural_width bytes into values[to ..]. Under a null lies some value of
 * the column.
 */
void		decode_values(const TabletHeader *tablet, const ColumnChunk &chunk, uint32_t first, uint32_t n,
						  void *values, uint32_t to);

/*
 * The same rows' nulls (1 = null), or-ed into nulls[] from bit `to` on, which
 * must be 0 there. False if there was none.
 */
bool		decode_nulls(const TabletHeader *tablet, const ColumnChunk &chunk, uint32_t first, uint32_t n,
						 uint64_t *nulls, uint32_t to);

}  // namespace gpuvm

#endif
