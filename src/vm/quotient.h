/*
 * quotient.h: quotients of numerics (numeric.c: div_var, select_div_scale, round_var).
 *
 * PostgreSQL shows as many decimals of a quotient as the weights and first digits, of base 10000, of both operands say, at least 16
 * significant digits, and rounds halves away from zero there. Programs divide as on paper: an integer part by Div and Remainder, then 18
 * decimals, of which those behind the last that is shown are rounded away: at least one. Every function takes any operands.
 */
#ifndef GPUVM_VM_QUOTIENT_H
#define GPUVM_VM_QUOTIENT_H

#include "core/types.h"
#include "tablet/wide_halves.h"

namespace gpuvm {
namespace sem {

constexpr int QUOTIENT_DECIMALS = 18;	/* at a time */
constexpr int64_t QUOTIENT_UNIT = 1000000000000000000;	/* 10^18 */
constexpr int ROUNDED_DECIMALS = QUOTIENT_DECIMALS - 1;
constexpr int64_t ROUNDED_UNIT = QUOTIENT_UNIT / 10;
constexpr int LEAD_BITS = 14;	/* a digit of base 10000 is less than 2^14 */

/* 10^n, n from 0 to 19 */
GPUVM_HD uint64_t power_of_ten(int n)
{
	return (n & 1 ? 10u : 1u) * (n & 2 ? 100u : 1u) * static_cast<uint64_t>(n & 4 ? 10000 : 1) * (n & 8 ? 100000000u : 1u) *
		(n & 16 ? 10000000000000000u : 1u);
}

GPUVM_HD uint64_t magnitude_of(int64_t v)
{
	return v < 0 ? static_cast<uint64_t>(0) - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
}

GPUVM_HD int decimal_digits(uint64_t v)
{
	int			n = 1;

	if (v >= 10000000000000000u) { v /= 10000000000000000u; n += 16; }
	if (v >= 100000000u) { v /= 100000000u; n += 8; }
	if (v >= 10000u) { v /= 10000u; n += 4; }
	if (v >= 100u) { v /= 100u; n += 2; }
	return v >= 10u ? n + 1 : n;
}

/*
 * Of a number of `scale` decimals (0 to 18): its weight, which is the power of 10000 of its first digit, times 2^14, and that digit; 0 of 0.
 * So what PostgreSQL takes for the weight of a quotient is (lead of a - lead of b - 1) >> 14.
 */
template <Type T = Type::I64>
GPUVM_HD int64_t NumericLead(int64_t v, int64_t scale, uint32_t *)
{
	const uint64_t m = magnitude_of(v);
	const int	decimals = scale < 0 ? 0 : scale > QUOTIENT_DECIMALS ? QUOTIENT_DECIMALS : static_cast<int>(scale);
	const int	fraction = (decimals + 3) / 4;	/* digits of base 10000 behind the point, the last one filled up with zeroes */
	const int	digits = decimal_digits(m);
	const int	before = (digits + 4 * fraction - decimals + 3) / 4 - 1;	/* behind the first one */
	const int	drop = 4 * before - (4 * fraction - decimals);
	const uint64_t first = drop >= 0 ? m / power_of_ten(drop) : m * power_of_ten(-drop);

	return m == 0 ? 0 : static_cast<int64_t>(before - fraction) * (1 << LEAD_BITS) + static_cast<int64_t>(first);
}

/* The next decimals of a quotient of which `rest` is left; 0 of what is no rest of `by`. */
template <Type T = Type::I64>
GPUVM_HD int64_t NextDecimals(int64_t rest, int64_t by, uint32_t *)
{
	return magnitude_of(rest) < magnitude_of(by) ? static_cast<int64_t>(static_cast<int128>(rest) * QUOTIENT_UNIT / by) : 0;
}

/* And what is left then. */
template <Type T = Type::I64>
GPUVM_HD int64_t NextRest(int64_t rest, int64_t by, uint32_t *)
{
	return magnitude_of(rest) < magnitude_of(by) ? static_cast<int64_t>(static_cast<int128>(rest) * QUOTIENT_UNIT % by) : 0;
}

/* Of 18 decimals the first n (0 to 17), rounded as the next one says, as 17 decimals: 10^17 where that carries. 0 of other operands. */
template <Type T = Type::I64>
GPUVM_HD int64_t RoundDecimals(int64_t decimals, int64_t n, uint32_t *)
{
	const uint64_t m = magnitude_of(decimals);
	const bool	fits = n >= 0 && n <= ROUNDED_DECIMALS && m < static_cast<uint64_t>(QUOTIENT_UNIT);
	const uint64_t unit = power_of_ten(fits ? QUOTIENT_DECIMALS - static_cast<int>(n) : 1);
	const int64_t rounded = static_cast<int64_t>((m + unit / 2) / unit * (unit / 10));

	return !fits ? 0 : decimals < 0 ? -rounded : rounded;
}

/* An integer part and 17 decimals as one number (tablet/wide_halves.h): its halves. */
template <Type T = Type::I64>
GPUVM_HD int64_t DecimalsHigh(int64_t whole, int64_t decimals, uint32_t *)
{
	return static_cast<int64_t>((static_cast<int128>(whole) * ROUNDED_UNIT + decimals) >> WIDE_LOW_BITS);
}

template <Type T = Type::I64>
GPUVM_HD int64_t DecimalsLow(int64_t whole, int64_t decimals, uint32_t *)
{
	return static_cast<int64_t>(static_cast<uint64_t>(whole) * static_cast<uint64_t>(ROUNDED_UNIT) + static_cast<uint64_t>(decimals)) & WIDE_LOW_MASK;
}

}  // namespace sem
}  // namespace gpuvm

#endif
