/*
 * numeric_scaled.h: numerics as scaled integers, and back.
 *
 * A column's numerics are integers times 10^-scale if all of them have the display
 * scale `scale`: only then do the integers say everything, the digits that are
 * shown included. Read from the bytes in the heap, as numeric.c writes them.
 */
#ifndef GPUVM_PG_NUMERIC_SCALED_H
#define GPUVM_PG_NUMERIC_SCALED_H

#include "core/types.h"
#include "pg/pg.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

/* A column's scale is at most this, or SCALED_MAX_WIDE_SCALE of a wide one; results may have up to SCALED_MAX_RESULT_SCALE. */
constexpr int SCALED_MAX_SCALE = 18;
constexpr int SCALED_MAX_WIDE_SCALE = 36;
constexpr int SCALED_MAX_RESULT_SCALE = 63;

/* 10^n, n up to SCALED_MAX_SCALE. */
extern const int64_t scaled_pow10[SCALED_MAX_SCALE + 1];

/* The display scale that a type modifier prescribes, -1 if it prescribes none. */
int			numeric_typmod_scale(int32 typmod);

/*
 * `packed`: a varlena as it lies in a tuple, of any header. -1 for NaN, infinities
 * and what is compressed or out of line: those have more digits than fit.
 */
int			numeric_display_scale(const char *packed);

/* False if the value is not an int64 times 10^-scale of just this display scale. The least int64 is never given. */
bool		numeric_to_scaled(const char *packed, int scale, int64 *out);

/* The same of values that have halves (tablet/wide_halves.h), and of NaN and infinities, at any scale. */
bool		numeric_to_wide(const char *packed, int scale, int128 *out);

/* The same for a constant, whose display scale may be another as long as its value has no more than `scale` decimals. */
bool		numeric_at_scale(Datum value, int scale, int64 *out);
bool		numeric_at_wide_scale(Datum value, int scale, int128 *out);

/* Is a constant NaN, or an infinity? */
bool		numeric_special(Datum value, WideSpecial *which);
Datum		special_to_numeric(WideSpecial which);

/* What halves say: a number of that scale, or none. */
Datum		wide_to_numeric(int128 value, int scale);

/* Of display scale `scale` (0 .. SCALED_MAX_RESULT_SCALE) exactly; palloc'd. */
Datum		scaled_to_numeric(int64 value, int scale);
Datum		scaled_to_numeric(int128 value, int scale);

}  // namespace gpuvm

#endif
