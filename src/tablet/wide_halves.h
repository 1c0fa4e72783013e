/*
 * wide_halves.h: integers of up to 126 bits as two of 64.
 *
 * A wide value is high * 2^62 + low, where low is not negative: so values are ordered as their halves are, the
 * high one first, sums are the sums of both, and two low halves added are an int64 still. In a table such a
 * column is two: one with the attribute's number has the low halves, another, behind all attributes, the high ones. Where
 * one is null, both are.
 */
#ifndef GPUVM_TABLET_WIDE_HALVES_H
#define GPUVM_TABLET_WIDE_HALVES_H

#include "core/types.h"

namespace gpuvm {

constexpr int WIDE_LOW_BITS = 62;
constexpr int64_t WIDE_LOW_MASK = (int64_t{1} << WIDE_LOW_BITS) - 1;

constexpr int64_t
wide_low(int128 value)
{
	return static_cast<int64_t>(value) & WIDE_LOW_MASK;
}

constexpr int64_t
wide_high(int128 value)
{
	return static_cast<int64_t>(value >> WIDE_LOW_BITS);
}

constexpr bool
wide_fits(int128 value)
{
	return value >> WIDE_LOW_BITS == static_cast<int64_t>(value >> WIDE_LOW_BITS);
}

constexpr int128
wide_value(int64_t high, int64_t low)
{
	return static_cast<int128>(high) * (int128{1} << WIDE_LOW_BITS) + low;
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
	return attnum > HIGH_HALVES;
}

/* The attribute that the column is of. */
constexpr int16_t
attribute_of(int16_t attnum)
{
	return is_high_half(attnum) ? static_cast<int16_t>(attnum - HIGH_HALVES) : attnum;
}

}  // namespace gpuvm

#endif
