/*
 * sort_key.h: what results are sorted by (Order in engine/abi.h), as words for every engine.
 *
 * A row's keys are packed into as few 64-bit words as what is known of the columns allows, the first key
 * in the highest bits of the first word, so that comparing the words, unsigned and one after
 * the other, is comparing the rows. A key is a bit for nulls, if there may be any, then the
 * distance of its value from the least one, or, descending, of the greatest from it. Texts have two words of their own (cpu_sort_texts.cc).
 */
#ifndef GPUVM_VM_SORT_KEY_H
#define GPUVM_VM_SORT_KEY_H

#include <cstring>

#include "core/types.h"

namespace gpuvm {

constexpr int SORT_MAX_KEYS = 16;
/* Of a greater limit the CPU keeps all rows, and cuts what was sorted. */
constexpr uint64_t SORT_MOST_KEPT = 64 * 1024;
constexpr int SORT_MAX_WORDS = SORT_MAX_KEYS * 3;

/* ---- values as unsigned integers whose order is PostgreSQL's ---------------------- */

GPUVM_HD uint64_t
sort_bits(uint8_t v)
{
	return v != 0;
}

GPUVM_HD uint64_t
sort_bits(int32_t v)
{
	return static_cast<uint32_t>(v) ^ 0x80000000u;
}

GPUVM_HD uint64_t
sort_bits(int64_t v)
{
	return static_cast<uint64_t>(v) ^ 0x8000000000000000u;
}

/* -0 is 0; NaN is one value, above all others. Of the bits, as the compiler may know too much of floats. */
GPUVM_HD uint64_t
sort_float_bits(uint32_t bits)
{
	const uint32_t magnitude = bits & 0x7fffffffu;

	bits = magnitude > 0x7f800000u ? 0x7fffffffu : magnitude == 0 ? 0 : bits;
	return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

GPUVM_HD uint64_t
sort_float_bits(uint64_t bits)
{
	const uint64_t magnitude = bits & 0x7fffffffffffffffu;

	bits = magnitude > 0x7ff0000000000000u ? 0x7fffffffffffffffu : magnitude == 0 ? 0 : bits;
	return bits & 0x8000000000000000u ? ~bits : bits | 0x8000000000000000u;
}

GPUVM_HD uint128
sort_bits(int128 v)
{
	return static_cast<uint128>(v) ^ (static_cast<uint128>(1) << 127);
}

/* Of a value as it lies in a result column. */
GPUVM_HD uint128
sort_bits_at(Type type, const void *at)
{
	switch (type)
	{
		case Type::Bool: return sort_bits(*static_cast<const uint8_t *>(at));
		case Type::I16: case Type::I32: return sort_bits(*static_cast<const int32_t *>(at));
		case Type::I64: return sort_bits(*static_cast<const int64_t *>(at));
		case Type::F32: return sort_float_bits(*static_cast<const uint32_t *>(at));
		case Type::F64: return sort_float_bits(*static_cast<const uint64_t *>(at));
		default: return sort_bits(*static_cast<const int128 *>(at));
	}
}

/* ---- keys --------------------------------------------------------------------------- */

/* What sort_bits() of a column may be. */
struct SortRange
{
	bool		may_null;
	uint128		lo, hi;			/* lo > hi: there is no value */
};

/* One that has the type's values, and nulls. */
inline SortRange
sort_range_of_type(Type type)
{
	const int	bits = type == Type::Bool ? 1 : 8 * type_width(type);

	return SortRange{true, 0, bits == 128 ? ~static_cast<uint128>(0) : (static_cast<uint128>(1) << bits) - 1};
}

struct SortKey
{
	uint32_t	column;			/* of the results */
	Type		type;			/* of what is compared: the column's or, with ranks, theirs */
	bool		desc;
	bool		nulls_first;
	bool		text;			/* references to values of variable length */
	bool		ranked;			/* the column's values are codes, and have ranks */
	bool		may_null;		/* has a bit for it */
	uint8_t		bits;			/* of the distance, up to 128 */
	uint16_t	end;			/* bits of the words up to the last one of this key */
	uint32_t	nranks;
	const void *ranks;			/* of the codes below nranks */
	const uint64_t *no_rank;	/* 1: the code has none and is taken for null; nullptr: all have */
	uint64_t	base;			/* the least value's or, descending, the greatest one's sort_bits() */
	uint64_t	base_hi;
};

struct SortKeys
{
	uint32_t	n;
	uint32_t	bits;			/* of all keys */
	uint32_t	nwords;			/* at least 1 */
	SortKey		keys[SORT_MAX_KEYS];
};

/* Packs the keys, which say of themselves everything but may_null, bits, end and base. */
inline void
pack_sort_keys(SortKeys *keys, const SortRange *ranges)
{
	keys->bits = 0;
	for (uint32_t k = 0; k < keys->n; k++)
	{
		SortKey    &key = keys->keys[k];
		const bool	values = ranges[k].lo <= ranges[k].hi;
		const uint128 base = !values ? 0 : key.desc ? ranges[k].hi : ranges[k].lo;

		key.may_null = ranges[k].may_null;
		key.bits = 0;
		if (key.text)
		{
			key.bits = key.may_null ? 127 : 128;
			keys->bits = (keys->bits + 63) / 64 * 64 + 128;
			key.end = static_cast<uint16_t>(keys->bits);
			continue;
		}
		for (uint128 span = values ? ranges[k].hi - ranges[k].lo : 0; span != 0; span >>= 1)
			key.bits++;
		key.base = static_cast<uint64_t>(base);
		key.base_hi = static_cast<uint64_t>(base >> 64);
		keys->bits += key.bits + (key.may_null ? 1 : 0);
		key.end = static_cast<uint16_t>(keys->bits);
	}
	keys->nwords = keys->bits == 0 ? 1 : (keys->bits + 63) / 64;
}

/* ---- words -------------------------------------------------------------------------- */

/* What the lowest `bits` bits, at most 64 and none but these are set, are of word w, when they end there. */
GPUVM_HD uint64_t
sort_bits_in_word(uint32_t end, uint32_t bits, uint64_t value, uint32_t w)
{
	if (bits == 0)
		return 0;

	const uint32_t last = (end - 1) / 64, shift = 64 * (last + 1) - end;

	return w == last ? value << shift : w + 1 == last && shift + bits > 64 ? value >> (64 - shift) : 0;
}

/* Where what is compared lies, of the column's value at `at`: a code's rank, or, noted as null, nowhere. */
GPUVM_HD const void *
sort_value_at(const SortKey &key, const void *at, bool *null)
{
	if (!key.ranked || *null)
		return at;

	const uint32_t code = *static_cast<const uint32_t *>(at);

	*null = code >= key.nranks || (key.no_rank != nullptr && (key.no_rank[code / 64] >> (code % 64) & 1));
	return static_cast<const char *>(key.ranks) + static_cast<size_t>(*null ? 0 : code) * type_width(key.type);
}

/* What a row's key is of its word w; the words are all keys' or-ed. */
GPUVM_HD uint64_t
sort_key_word(const SortKey &key, const void *at, bool null, uint32_t w)
{
	at = sort_value_at(key, at, &null);

	uint64_t	word = key.may_null ? sort_bits_in_word(key.end - key.bits, 1, null != key.nulls_first, w) : 0;

	if (null || key.bits == 0)
		return word;

	const uint128 v = sort_bits_at(key.type, at), base = static_cast<uint128>(key.base_hi) << 64 | key.base;
	const uint128 distance = key.desc ? base - v : v - base;

	if (key.bits > 64)
		word |= sort_bits_in_word(key.end - 64, key.bits - 64, static_cast<uint64_t>(distance >> 64), w);
	return word | sort_bits_in_word(key.end, key.bits > 64 ? 64 : key.bits, static_cast<uint64_t>(distance), w);
}

/* Is the first row before the second? */
GPUVM_HD bool
sort_words_less(const uint64_t *a, const uint64_t *b, uint32_t nwords)
{
	for (uint32_t w = 0; w + 1 < nwords; w++)
		if (a[w] != b[w])
			return a[w] < b[w];
	return a[nwords - 1] < b[nwords - 1];
}

}  // namespace gpuvm

#endif
