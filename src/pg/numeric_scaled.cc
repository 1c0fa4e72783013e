/*
 * numeric_scaled.cc: the layout is numeric.c's, which keeps it to itself: base
 * 10000 digits, the weight of the first, the display scale and the sign, in one
 * word for all usual numbers and in two for others. It is the form on disk, so it
 * cannot change.
 */
#include "pg/numeric_scaled.h"

extern "C" {
#include "utils/numeric.h"
}

namespace gpuvm {

constexpr uint16 SIGN_MASK = 0xC000;
constexpr uint16 SIGN_NEGATIVE = 0x4000;
constexpr uint16 SIGN_SHORT = 0x8000;
constexpr uint16 SIGN_SPECIAL = 0xC000;
constexpr uint16 SPECIAL_MASK = 0xF000;
constexpr uint16 SPECIAL_NAN = 0xC000;
constexpr uint16 SPECIAL_INFINITY = 0xD000;
constexpr uint16 SPECIAL_MINUS_INFINITY = 0xF000;
constexpr uint16 LONG_SCALE_MASK = 0x3FFF;
constexpr uint16 SHORT_NEGATIVE = 0x2000;
constexpr uint16 SHORT_SCALE_MASK = 0x1F80;
constexpr int SHORT_SCALE_SHIFT = 7;
constexpr uint16 SHORT_WEIGHT_SIGN = 0x0040;
constexpr uint16 SHORT_WEIGHT_MASK = 0x003F;

constexpr int BASE = 10000;
constexpr int DIGIT_DECIMALS = 4;
/* Nineteen decimal digits touch no more digits of base 10000, wherever the point is. */
constexpr int MAX_DIGITS = 6;

const int64_t scaled_pow10[SCALED_MAX_SCALE + 1] = {
	1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000,
	10000000000, 100000000000, 1000000000000, 10000000000000, 100000000000000, 1000000000000000,
	10000000000000000, 100000000000000000, 1000000000000000000,
};

struct Unpacked
{
	bool		negative;
	int			scale;
	int			weight;			/* of the first digit, as a power of 10000 */
	int			ndigits;
	const char *digits;			/* int16 each, not aligned */
};

static inline uint16
word_at(const char *at)
{
	uint16		word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* The words, and how many bytes they are; NULL: they are not plainly there. */
static inline const char *
packed_words(const char *packed, int *len)
{
	if (VARATT_IS_1B_E(packed))
		return NULL;
	if (VARATT_IS_1B(packed))
	{
		*len = VARSIZE_1B(packed) - VARHDRSZ_SHORT;
		return VARDATA_1B(packed);
	}
	*len = VARSIZE_4B(packed) - VARHDRSZ;
	return VARATT_IS_4B_U(packed) ? VARDATA_4B(packed) : NULL;
}

/* False for what is no number, and for what is not plainly there. */
static inline bool
unpack(const char *packed, Unpacked *to)
{
	int			len = 0;
	const char *data = packed_words(packed, &len);
	uint16		header;

	if (data == NULL)
		return false;

	header = word_at(data);
	switch (header & SIGN_MASK)
	{
		case SIGN_SPECIAL:
			return false;
		case SIGN_SHORT:
			to->negative = (header & SHORT_NEGATIVE) != 0;
			to->scale = (header & SHORT_SCALE_MASK) >> SHORT_SCALE_SHIFT;
			to->weight = (header & SHORT_WEIGHT_MASK) | ((header & SHORT_WEIGHT_SIGN) ? ~static_cast<int>(SHORT_WEIGHT_MASK) : 0);
			to->digits = data + sizeof(uint16);
			to->ndigits = (len - static_cast<int>(sizeof(uint16))) / static_cast<int>(sizeof(int16));
			return true;
		default:
			to->negative = (header & SIGN_MASK) == SIGN_NEGATIVE;
			to->scale = header & LONG_SCALE_MASK;
			to->weight = static_cast<int16>(word_at(data + sizeof(uint16)));
			to->digits = data + 2 * sizeof(uint16);
			to->ndigits = (len - 2 * static_cast<int>(sizeof(uint16))) / static_cast<int>(sizeof(int16));
			return true;
	}
}

static inline uint32
digit_at(const Unpacked &from, int i)
{
	return word_at(from.digits + i * sizeof(uint16));
}

/* The number's magnitude times 10^scale, of at most four digits: what nearly all are. `exponent`: see scale_up. */
static inline bool
scale_up_short(const Unpacked &from, int exponent, int64 *magnitude)
{
	int64		value = 0;
	uint32		last = digit_at(from, from.ndigits - 1);

	for (int i = 0; i < from.ndigits - 1; i++)
		value = value * BASE + digit_at(from, i);
	if (exponent >= 0)
		return !__builtin_mul_overflow(value * BASE + last, scaled_pow10[exponent], magnitude);

	/* only the last digit has decimals to drop, and they are zeroes */
	uint32		divisor = static_cast<uint32>(scaled_pow10[-exponent]);

	*magnitude = value * scaled_pow10[DIGIT_DECIMALS + exponent] + last / divisor;
	return last % divisor == 0;
}

static bool
scale_up_long(const Unpacked &from, int exponent, int64 *magnitude)
{
	int128		value = 0;		/* below 10^24, then below 10^37 */

	for (int i = 0; i < from.ndigits; i++)
		value = value * BASE + digit_at(from, i);
	if (exponent < 0)
	{
		if (value % scaled_pow10[-exponent] != 0)
			return false;
		value /= scaled_pow10[-exponent];
	}
	else if (value > PG_INT64_MAX)
		return false;
	else
		value *= scaled_pow10[exponent];
	*magnitude = static_cast<int64>(value);
	return value <= PG_INT64_MAX;
}

/* NaN and infinities; false for numbers. */
static bool
unpack_special(const char *packed, WideSpecial *which)
{
	int			len = 0;
	const char *data = packed_words(packed, &len);

	if (data == NULL || (word_at(data) & SIGN_MASK) != SIGN_SPECIAL)
		return false;
	switch (word_at(data) & SPECIAL_MASK)
	{
		case SPECIAL_INFINITY:
			*which = WIDE_INFINITY;
			break;
		case SPECIAL_MINUS_INFINITY:
			*which = WIDE_MINUS_INFINITY;
			break;
		default:
			*which = WIDE_NAN;
			break;
	}
	return true;
}

/* The number times 10^scale; false if that is no integer or too large. */
static inline bool
scale_up(const Unpacked &from, int scale, int64 *out)
{
	int			exponent = DIGIT_DECIMALS * (from.weight - from.ndigits + 1) + scale;	/* of ten, at the last digit */
	int64		magnitude;

	if (from.ndigits == 0)
	{
		*out = 0;
		return true;
	}
	if (from.ndigits > MAX_DIGITS || exponent > SCALED_MAX_SCALE || exponent < -SCALED_MAX_SCALE)
		return false;
	if (from.ndigits <= 4 && exponent > -DIGIT_DECIMALS
		? !scale_up_short(from, exponent, &magnitude)
		: !scale_up_long(from, exponent, &magnitude))
		return false;
	*out = from.negative ? -magnitude : magnitude;
	return true;
}

/* The same in as many bits as halves have. */
static bool
scale_up_wide(const Unpacked &from, int scale, int128 *out)
{
	int			exponent = DIGIT_DECIMALS * (from.weight - from.ndigits + 1) + scale;
	uint128		magnitude = 0;

	/* the last digit has decimals to drop, which are zeroes */
	if (from.ndigits > 0 && exponent <= -DIGIT_DECIMALS)
		return false;
	for (int i = 0; i < from.ndigits; i++)
	{
		bool		shorter = i == from.ndigits - 1 && exponent < 0;
		uint32		divisor = shorter ? static_cast<uint32>(scaled_pow10[-exponent]) : 1;

		if (digit_at(from, i) % divisor != 0 || __builtin_mul_overflow(magnitude, uint128{BASE / divisor}, &magnitude) ||
			__builtin_add_overflow(magnitude, uint128{digit_at(from, i) / divisor}, &magnitude))
			return false;
	}
	for (; exponent > 0 && magnitude > 0; exponent--)
	{
		if (__builtin_mul_overflow(magnitude, uint128{10}, &magnitude))
			return false;
	}
	if (magnitude >> 127 != 0)
		return false;
	*out = from.negative ? -static_cast<int128>(magnitude) : static_cast<int128>(magnitude);
	return wide_fits(*out);
}

int
numeric_typmod_scale(int32 typmod)
{
	int			scale;

	if (typmod < static_cast<int32>(VARHDRSZ))
		return -1;
#if PG_VERSION_NUM >= 150000
	scale = (((typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024;
#else
	scale = (typmod - VARHDRSZ) & 0xffff;
#endif
	/* a negative one rounds before the point; what is shown has no decimals */
	return Max(scale, 0);
}

int
numeric_display_scale(const char *packed)
{
	Unpacked	number;

	return unpack(packed, &number) ? number.scale : -1;
}

bool
numeric_to_scaled(const char *packed, int scale, int64 *out)
{
	Unpacked	number;

	return unpack(packed, &number) && number.scale == scale && scale_up(number, scale, out);
}

bool
numeric_to_wide(const char *packed, int scale, int128 *out)
{
	Unpacked	number;
	WideSpecial which;

	if (unpack(packed, &number))
		return number.scale == scale && scale_up_wide(number, scale, out);
	if (!unpack_special(packed, &which))
		return false;
	*out = wide_value(wide_special(which), 0);
	return true;
}

bool
numeric_special(Datum value, WideSpecial *which)
{
	return unpack_special(reinterpret_cast<const char *>(DatumGetNumeric(value)), which);
}

bool
numeric_at_wide_scale(Datum value, int scale, int128 *out)
{
	Unpacked	number;

	return unpack(reinterpret_cast<const char *>(DatumGetNumeric(value)), &number) && scale_up_wide(number, scale, out);
}

bool
numeric_at_scale(Datum value, int scale, int64 *out)
{
	Unpacked	number;

	Assert(scale >= 0 && scale <= SCALED_MAX_SCALE);
	return unpack(reinterpret_cast<const char *>(DatumGetNumeric(value)), &number) && scale_up(number, scale, out);
}

Datum
scaled_to_numeric(int128 value, int scale)
{
	/* 39 digits, and zeroes up to a digit's border behind the point */
	constexpr int MAX_RESULT_DIGITS = 12;
	uint128		rest = value < 0 ? -static_cast<uint128>(value) : static_cast<uint128>(value);
	int			decimals = scale % DIGIT_DECIMALS;	/* in the last digit */
	int			weight = -(scale / DIGIT_DECIMALS) - (decimals > 0);	/* of the digit that comes next, from the right */
	uint16		digits[MAX_RESULT_DIGITS];
	int			first = MAX_RESULT_DIGITS;
	int			end = MAX_RESULT_DIGITS;
	Size		size;
	char	   *result;
	uint16		header;

	Assert(scale >= 0 && scale <= SCALED_MAX_RESULT_SCALE);
	if (decimals > 0 && rest > 0)
	{
		int			divisor = static_cast<int>(scaled_pow10[decimals]);

		digits[--first] = static_cast<uint16>(static_cast<int>(rest % divisor) * scaled_pow10[DIGIT_DECIMALS - decimals]);
		rest /= divisor;
		weight++;
	}
	while (rest > PG_UINT64_MAX)
	{
		digits[--first] = static_cast<uint16>(rest % BASE);
		rest /= BASE;
		weight++;
	}
	for (uint64 small = static_cast<uint64>(rest); small > 0; small /= BASE)
	{
		digits[--first] = static_cast<uint16>(small % BASE);
		weight++;
	}
	weight--;					/* of the first digit */
	while (end > first && digits[end - 1] == 0)
		end--;
	while (first < end && digits[first] == 0)
	{
		first++;
		weight--;
	}
	if (first == end)
		weight = 0;

	header = SIGN_SHORT | static_cast<uint16>(scale << SHORT_SCALE_SHIFT) | (value < 0 ? SHORT_NEGATIVE : 0) |
		(weight < 0 ? SHORT_WEIGHT_SIGN : 0) | (weight & SHORT_WEIGHT_MASK);
	size = VARHDRSZ + sizeof(uint16) * (1 + end - first);
	result = static_cast<char *>(palloc(size));
	SET_VARSIZE(result, size);
	memcpy(result + VARHDRSZ, &header, sizeof(header));
	memcpy(result + VARHDRSZ + sizeof(header), digits + first, sizeof(uint16) * (end - first));
	return PointerGetDatum(result);
}

Datum
special_to_numeric(WideSpecial which)
{
	const uint16 header = which == WIDE_INFINITY ? SPECIAL_INFINITY : which == WIDE_MINUS_INFINITY ? SPECIAL_MINUS_INFINITY : SPECIAL_NAN;
	char	   *result = static_cast<char *>(palloc(VARHDRSZ + sizeof(header)));

	SET_VARSIZE(result, VARHDRSZ + sizeof(header));
	memcpy(result + VARHDRSZ, &header, sizeof(header));
	return PointerGetDatum(result);
}

Datum
wide_to_numeric(int128 value, int scale)
{
	const int64 high = wide_high(value);

	return is_wide_special(high) ? special_to_numeric(static_cast<WideSpecial>(high & WIDE_SPECIAL_MASK)) : scaled_to_numeric(value, scale);
}

Datum
scaled_to_numeric(int64 value, int scale)
{
	return scaled_to_numeric(static_cast<int128>(value), scale);
}

}  // namespace gpuvm
