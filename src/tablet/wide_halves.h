/*
 * wide_halves.h: integers of up to 125 bits as two of 64, and what is no number.
 *
 * A wide value is high * 2^62 + low, where low is not negative: so values are ordered as their halves are, the
 * high one first, sums are the sums of both, and two low halves added are an int64 still. In a table such a
 * column is two: one with the attribute's number has the low halves, another, behind all attributes, the high ones. Where
 * one is null, both are.
 *
 * The high half of a number is less than 2^62 in magnitude. NaN and the infinities are codes beyond that, in PostgreSQL's order, with no low
 * half; their last three bits say which they are, so that those of several values are OR-ed for what their sum is.
 */
#ifndef GPUVM_TABLET_WIDE_HALVES_H
#define GPUVM_TABLET_WIDE_HALVES_H

#include "core/types.h"

namespace gpuvm {

constexpr int WIDE_LOW_BITS = 62;
constexpr int64_t WIDE_LOW_MASK = (int64_t{1} << WIDE_LOW_BITS) - 1;

GPUVM_HD constexpr int64_t
wide_low(int128 value)
{
	return static_cast<int64_t>(value) & WIDE_LOW_MASK;
}

GPUVM_HD constexpr int64_t
wide_high(int128 value)
{
	return static_cast<int64_t>(value >> WIDE_LOW_BITS);
}

constexpr int64_t WIDE_HIGH_LIMIT = int64_t{1} << WIDE_LOW_BITS;

GPUVM_HD constexpr bool
wide_fits(int128 value)
{
	return value >> WIDE_LOW_BITS < WIDE_HIGH_LIMIT && value >> WIDE_LOW_BITS > -WIDE_HIGH_LIMIT;
}

/* What is no number, and the high half that stands for it. */
enum WideSpecial : int64_t
{
	WIDE_INFINITY = 1,
	WIDE_MINUS_INFINITY = 2,
	WIDE_NAN = 4,
};

constexpr int64_t WIDE_SPECIAL_MASK = 7;

constexpr int64_t
wide_special(WideSpecial which)
{
	return which == WIDE_MINUS_INFINITY ? which - WIDE_HIGH_LIMIT - WIDE_SPECIAL_MASK - 1 : WIDE_HIGH_LIMIT + which;
}

constexpr bool
is_wide_special(int64_t high)
{
	return high >= WIDE_HIGH_LIMIT || high <= -WIDE_HIGH_LIMIT;
}

GPUVM_HD constexpr int128
wide_value(int64_t high, int64_t low)
{
	return static_cast<int128>(high) * (int128{1} << WIDE_LOW_BITS) + low;
}

/* Of the least and the greatest high half of a column: is any value no number? */
constexpr bool
has_wide_specials(int64_t least, int64_t greatest)
{
	return is_wide_special(least) || is_wide_special(greatest);
}

/* The number of a column of high halves: above those of all attributes (MaxHeapAttributeNumber). */
constexpr int16_t HIGH_HALVES = 4096;

constexpr int16_t
high_half(int16_t attnum)
{
	return static_cast<int16_t>(attnum + HIGH_HALVES);
}

constexpr bool
is_high_half(int16_t attnum)
{
	return attnum > HIGH_HALVES && attnum < 2 * HIGH_HALVES;
}

/* The number of a column of references to what numbers look like, above those, where one that says their values says no more (a child's rows). */
constexpr int16_t
shown_image(int16_t attnum)
{
	return static_cast<int16_t>(attnum + 2 * HIGH_HALVES);
}

/* The attribute that the column is of. */
constexpr int16_t
attribute_of(int16_t attnum)
{
	return static_cast<int16_t>(attnum % HIGH_HALVES);
}

}  // namespace gpuvm

#endif
