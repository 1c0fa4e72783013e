/*
 * float_sum.h: exact sums of floats (rule 15), for host and device.
 *
 * A sum's bits must depend on nothing but the multiset of its inputs. So it is
 * kept exactly, as an integer on the grid 2^-1074 that holds every finite
 * double, and rounded once, to nearest even, when it is asked for. The integer
 * is an array of signed 64-bit limbs, 32 bits apart: limb i counts units of
 * 2^(32 i - 1074). A limb takes 2^31 additions before it could overflow, so
 * carries are propagated late ("adds" counts), and additions commute whatever
 * the order of rows, threads and devices.
 *
 * Not every sum needs all limbs: a window of them covers what the column's
 * exponents allow, with room above for the carries of 2^63 rows.
 *
 * NaN and infinities are flags: a NaN, or infinities of both signs, give NaN.
 * The sum of negative zeroes only is -0, of anything else that cancels 0, as in
 * float8pl.
 */
#ifndef GPUVM_VM_FLOAT_SUM_H
#define GPUVM_VM_FLOAT_SUM_H

#include <cstring>

#include "core/types.h"

namespace gpuvm {

constexpr int FLOAT_SUM_LIMBS = 69;		/* 2098 bits of doubles, 64 for carries, a signed top */
constexpr int FLOAT_SUM_GRID = -1074;
constexpr uint32_t FLOAT_SUM_MAX_ADDS = 1u << 30;

enum FloatSumFlag : uint8_t
{
	FLOAT_SUM_SEEN = 1,
	FLOAT_SUM_NAN = 2,
	FLOAT_SUM_POS_INF = 4,
	FLOAT_SUM_NEG_INF = 8,
	FLOAT_SUM_NOT_NEG_ZERO = 16,
};

/* What goes with the limbs. All bytes zero is the empty sum. */
struct FloatSumInfo
{
	int64_t		n;				/* inputs, non-finite ones included */
	uint32_t	adds;			/* additions since the last carry */
	int16_t		max_exp;		/* every finite input is below 2^(max_exp - 2048) in magnitude; 0 = none */
	uint8_t		flags;
	uint8_t		reserved;
};

struct FloatSumWindow
{
	int			first;			/* limb number of limbs[0] */
	int			count;
};

/* The window for inputs that are multiples of 2^exp_lo and at most 2^exp_hi. */
GPUVM_HD FloatSumWindow
float_sum_window(int exp_lo, int exp_hi)
{
	exp_lo = exp_lo < FLOAT_SUM_GRID ? FLOAT_SUM_GRID : exp_lo;
	exp_hi = exp_hi > 1024 ? 1024 : exp_hi < exp_lo ? exp_lo : exp_hi;

	int			first = (exp_lo - FLOAT_SUM_GRID) >> 5;
	int			last = ((exp_hi - FLOAT_SUM_GRID + 64) >> 5) + 1;

	return FloatSumWindow{first, last - first + 1};
}

GPUVM_HD uint64_t
double_bits(double v)
{
	uint64_t	b;

	memcpy(&b, &v, sizeof(b));
	return b;
}

GPUVM_HD double
bits_double(uint64_t b)
{
	double		v;

	memcpy(&v, &b, sizeof(v));
	return v;
}

/*
 * limbs += v * 2^exponent. False, and nothing added, when that lies outside of
 * the window. exponent >= FLOAT_SUM_GRID.
 */
GPUVM_HD bool
float_sum_add_int(int64_t *limbs, FloatSumWindow window, int64_t v, int exponent)
{
	int			at = exponent - FLOAT_SUM_GRID;
	int			limb = (at >> 5) - window.first;
	int			shift = at & 31;
	uint64_t	magnitude = v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
	uint64_t	low = magnitude << shift;
	uint64_t	high = shift ? magnitude >> (64 - shift) : 0;

	if (v == 0)
		return true;
	if (limb < 0 || limb + 2 >= window.count)
		return false;

	int64_t		p0 = static_cast<int64_t>(low & 0xffffffffu);
	int64_t		p1 = static_cast<int64_t>(low >> 32);
	int64_t		p2 = static_cast<int64_t>(high);

	limbs[limb] += v < 0 ? -p0 : p0;
	limbs[limb + 1] += v < 0 ? -p1 : p1;
	limbs[limb + 2] += v < 0 ? -p2 : p2;
	return true;
}

/* Brings all limbs but the top one into [0, 2^32). */
GPUVM_HD void
float_sum_carry(int64_t *limbs, FloatSumWindow window)
{
	int64_t		carry = 0;

	for (int i = 0; i + 1 < window.count; i++)
	{
		int64_t		v = limbs[i] + carry;

		limbs[i] = v & 0xffffffff;
		carry = v >> 32;
	}
	limbs[window.count - 1] += carry;
}

/* Counts `adds` more additions, carrying when there have been many. */
GPUVM_HD void
float_sum_count_adds(FloatSumInfo *info, int64_t *limbs, FloatSumWindow window, uint32_t adds)
{
	info->adds += adds;
	if (info->adds >= FLOAT_SUM_MAX_ADDS)
	{
		float_sum_carry(limbs, window);
		info->adds = 1;
	}
}

/* The finite double as significand * 2^exponent. */
GPUVM_HD int64_t
float_sum_split(double v, int *exponent)
{
	uint64_t	b = double_bits(v);
	int			biased = static_cast<int>(b >> 52) & 0x7ff;
	int64_t		m = static_cast<int64_t>(b & 0xfffffffffffffull) | (biased ? 1ll << 52 : 0);

	*exponent = (biased ? biased : 1) - 1075;
	return static_cast<int64_t>(b) < 0 ? -m : m;
}

/* max_exp of a finite input. */
GPUVM_HD int16_t
float_sum_exp(double v)
{
	int			biased = static_cast<int>(double_bits(v) >> 52) & 0x7ff;

	return static_cast<int16_t>(biased - 1022 + 2048);
}

/* Notes an input in *info; true if it is finite and its value is still to be added. */
GPUVM_HD bool
float_sum_note(FloatSumInfo *info, double v)
{
	uint64_t	b = double_bits(v);
	int			biased = static_cast<int>(b >> 52) & 0x7ff;

	info->n++;
	info->flags |= FLOAT_SUM_SEEN | (b != 0x8000000000000000ull ? FLOAT_SUM_NOT_NEG_ZERO : 0);
	if (biased == 0x7ff)
	{
		info->flags |= v != v ? FLOAT_SUM_NAN : v > 0 ? FLOAT_SUM_POS_INF : FLOAT_SUM_NEG_INF;
		return false;
	}
	if (float_sum_exp(v) > info->max_exp)
		info->max_exp = float_sum_exp(v);
	return true;
}

/* One input. False when it lies outside of the window. */
GPUVM_HD bool
float_sum_add(FloatSumInfo *info, int64_t *limbs, FloatSumWindow window, double v)
{
	int			exponent;

	if (!float_sum_note(info, v))
		return true;

	int64_t		m = float_sum_split(v, &exponent);

	/* Zero bits below the window's first limb do not count as outside. */
	int			below = window.first * 32 + FLOAT_SUM_GRID - exponent;

	if (m != 0 && below > 0)
	{
		if (below > 52 || (m & ((1ll << below) - 1)) != 0)
			return false;
		m >>= below;
		exponent += below;
	}
	if (!float_sum_add_int(limbs, window, m, exponent))
		return false;
	float_sum_count_adds(info, limbs, window, 1);
	return true;
}

GPUVM_HD void
float_sum_merge_info(FloatSumInfo *into, const FloatSumInfo &from)
{
	into->n += from.n;
	into->flags |= from.flags;
	if (from.max_exp > into->max_exp)
		into->max_exp = from.max_exp;
}

GPUVM_HD void
float_sum_merge(FloatSumInfo *into, int64_t *limbs, FloatSumWindow window, const FloatSumInfo &from,
				const int64_t *from_limbs)
{
	float_sum_merge_info(into, from);
	for (int i = 0; i < window.count; i++)
		limbs[i] += from_limbs[i];
	float_sum_carry(limbs, window);
	into->adds = 1;
}

/*
 * Might PostgreSQL's accumulator have overflowed in some order of the rows?
 * sum(float4) adds in float4: n * max|x| against half of the greatest value. A
 * float8 sum may end in avg, whose float8_accum also keeps the squares and forms
 * (n * x - sum)^2 on the way: (2 * n * max|x|)^2 (rule 15). Conservative, and
 * blind to order.
 */
GPUVM_HD bool
float_sum_may_overflow(const FloatSumInfo &info, Type arg)
{
	int			log2n = 0;

	if (info.max_exp == 0)
		return false;
	while (log2n < 63 && (1ll << log2n) < info.n)
		log2n++;
	if (arg == Type::F32)
		return info.max_exp - 2048 + log2n > 127;
	return 2 * (info.max_exp - 2048 + log2n + 1) > 1023;
}

/* The rounded sum. Carries the limbs. */
GPUVM_HD double
float_sum_round(const FloatSumInfo &info, int64_t *limbs, FloatSumWindow window)
{
	const uint8_t both = FLOAT_SUM_POS_INF | FLOAT_SUM_NEG_INF;

	if ((info.flags & FLOAT_SUM_NAN) || (info.flags & both) == both)
		return bits_double(0x7ff8000000000000ull);
	if (info.flags & both)
		return bits_double(info.flags & FLOAT_SUM_POS_INF ? 0x7ff0000000000000ull : 0xfff0000000000000ull);

	float_sum_carry(limbs, window);

	/* Magnitude: negate a negative number, 32 bits at a time. */
	const bool	negative = limbs[window.count - 1] < 0;

	if (negative)
	{
		for (int i = 0; i < window.count; i++)
			limbs[i] = -limbs[i];
		float_sum_carry(limbs, window);
	}

	int			top = window.count - 1;

	while (top >= 0 && limbs[top] == 0)
		top--;
	if (top < 0)
	{
		const bool	neg_zero = (info.flags & FLOAT_SUM_SEEN) && !(info.flags & FLOAT_SUM_NOT_NEG_ZERO);

		return neg_zero ? -0.0 : 0.0;
	}

	/* The 64 bits from the highest set bit down, and whether any lies below. */
	uint128		w = static_cast<uint128>(static_cast<uint64_t>(limbs[top])) << 64;
	uint64_t	sticky = 0;

	if (top >= 1)
		w |= static_cast<uint128>(static_cast<uint64_t>(limbs[top - 1])) << 32;
	if (top >= 2)
		w |= static_cast<uint64_t>(limbs[top - 2]);
	for (int i = top - 3; i >= 0; i--)
		sticky |= static_cast<uint64_t>(limbs[i]);

	int			exponent = (window.first + top - 2) * 32 + FLOAT_SUM_GRID;	/* of w's lowest bit */
	int			length = 0;

	for (uint128 t = w; t != 0; t >>= 1)
		length++;

	/* 53 bits, fewer when the lowest would fall below the grid */
	int			drop = length - 53;

	if (exponent + drop < FLOAT_SUM_GRID)
		drop = FLOAT_SUM_GRID - exponent;

	uint64_t	m;

	if (drop <= 0)
	{
		m = static_cast<uint64_t>(w << -drop);
		exponent += drop;
	}
	else
	{
		uint128		rest = w & ((static_cast<uint128>(1) << drop) - 1);
		uint128		half = static_cast<uint128>(1) << (drop - 1);

		m = static_cast<uint64_t>(w >> drop);
		exponent += drop;
		if (rest > half || (rest == half && (sticky != 0 || (m & 1))))
			m++;
	}

	/* m <= 2^53: a carry out of the significand moves into the exponent by itself. */
	uint64_t	biased = m >= (1ull << 52) ? static_cast<uint64_t>(exponent + 1075) : 0;
	uint64_t	bits = biased ? ((biased - 1) << 52) + m : m;

	if (bits > 0x7ff0000000000000ull)
		bits = 0x7ff0000000000000ull;
	return bits_double(bits | (negative ? 0x8000000000000000ull : 0));
}

/*
 * The rounded sum, or what is left of it when that is taken away, once or twice, rounded: all of them together have
 * the sum's first 159 bits, and more where there are zeroes. 0 of what is not finite.
 */
GPUVM_HD double
float_sum_rest(const FloatSumInfo &info, int64_t *limbs, FloatSumWindow window, int rest)
{
	const double sum = float_sum_round(info, limbs, window);
	double		left = sum;
	double		sign = 1;

	for (int i = 0; i < rest; i++)
	{
		FloatSumInfo taken = {};

		if (left - left != 0)
			return 0;
		/* limbs are the magnitude of what was rounded last */
		sign = left < 0 ? -sign : sign;
		float_sum_add(&taken, limbs, window, left < 0 ? left : -left);
		taken.flags |= FLOAT_SUM_NOT_NEG_ZERO;
		left = float_sum_round(taken, limbs, window);
	}
	return rest > 0 ? sign * left : sum;
}

/*
 * Fixed point: where the exponents allow, a group's sum is one int128 on the
 * grid 2^exp_lo. The input must be a multiple of it; |input| < 2^(exp_lo + 126).
 */
GPUVM_HD int128
float_fixed(double v, int exp_lo)
{
	int			exponent;
	int64_t		m = float_sum_split(v, &exponent);
	int			shift = exponent - exp_lo;

	if (shift >= 0)
		return static_cast<int128>(static_cast<uint128>(static_cast<int128>(m)) << (shift & 127));
	return shift > -64 ? m >> -shift : 0;
}

/* The limbs of a fixed-point sum (zeroed FLOAT_SUM_LIMBS of them, full window). */
GPUVM_HD void
float_fixed_limbs(int128 v, int exp_lo, int64_t *limbs)
{
	const FloatSumWindow full = {0, FLOAT_SUM_LIMBS};
	const bool	negative = v < 0;
	uint128		magnitude = negative ? 0 - static_cast<uint128>(v) : static_cast<uint128>(v);

	for (int i = 0; i < 4; i++)
	{
		int64_t		piece = static_cast<int64_t>(static_cast<uint64_t>(magnitude >> (32 * i)) & 0xffffffffu);

		/* Beyond the top limb there is nothing: the sum of finite rows fits. */
		float_sum_add_int(limbs, full, negative ? -piece : piece, exp_lo + 32 * i);
	}
}

}  // namespace gpuvm

#endif
