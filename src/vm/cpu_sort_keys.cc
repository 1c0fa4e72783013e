/* cpu_sort_keys.cc: see cpu_sort_keys.h. */
#include "vm/cpu_sort_keys.h"

#include <algorithm>

#include "core/bits.h"

#define GPUVM_LOOP __attribute__((optimize("O3"), target_clones("avx2", "default"), noinline))

namespace gpuvm::cpu_sort {

namespace {

/* ---- ranges ----------------------------------------------------------------------------- */

GPUVM_LOOP void
widen_i32(const int32_t *v, uint32_t n, int32_t *lo, int32_t *hi)
{
	int32_t		l = *lo, h = *hi;

	for (uint32_t i = 0; i < n; i++)
	{
		l = std::min(l, v[i]);
		h = std::max(h, v[i]);
	}
	*lo = l;
	*hi = h;
}

GPUVM_LOOP void
widen_i64(const int64_t *v, uint32_t n, int64_t *lo, int64_t *hi)
{
	int64_t		l = *lo, h = *hi;

	for (uint32_t i = 0; i < n; i++)
	{
		l = std::min(l, v[i]);
		h = std::max(h, v[i]);
	}
	*lo = l;
	*hi = h;
}

GPUVM_LOOP void
widen_f32(const uint32_t *v, uint32_t n, uint64_t *lo, uint64_t *hi)
{
	uint32_t	l = static_cast<uint32_t>(*lo), h = static_cast<uint32_t>(*hi);

	for (uint32_t i = 0; i < n; i++)
	{
		const uint32_t bits = static_cast<uint32_t>(sort_float_bits(v[i]));

		l = std::min(l, bits);
		h = std::max(h, bits);
	}
	*lo = l;
	*hi = h;
}

GPUVM_LOOP void
widen_f64(const uint64_t *v, uint32_t n, uint64_t *lo, uint64_t *hi)
{
	uint64_t	l = *lo, h = *hi;

	for (uint32_t i = 0; i < n; i++)
	{
		const uint64_t bits = sort_float_bits(v[i]);

		l = std::min(l, bits);
		h = std::max(h, bits);
	}
	*lo = l;
	*hi = h;
}

GPUVM_LOOP uint32_t
greatest_code(const uint32_t *v, uint32_t n)
{
	uint32_t	most = 0;

	for (uint32_t i = 0; i < n; i++)
		most = std::max(most, v[i]);
	return most;
}

void
unite(SortRange *range, uint128 lo, uint128 hi)
{
	range->lo = std::min(range->lo, lo);
	range->hi = std::max(range->hi, hi);
}

/* Of at least one value, none of them null. */
void
widen(const SortKey &key, const char *values, uint32_t n, SortRange *range)
{
	if (key.ranked)
	{
		range->may_null = range->may_null || key.no_rank != nullptr || greatest_code(reinterpret_cast<const uint32_t *>(values), n) >= key.nranks;
		return;
	}
	switch (key.type)
	{
		case Type::I16: case Type::I32:
			{
				int32_t		lo = INT32_MAX, hi = INT32_MIN;

				widen_i32(reinterpret_cast<const int32_t *>(values), n, &lo, &hi);
				unite(range, sort_bits(lo), sort_bits(hi));
				return;
			}
		case Type::I64:
			{
				int64_t		lo = INT64_MAX, hi = INT64_MIN;

				widen_i64(reinterpret_cast<const int64_t *>(values), n, &lo, &hi);
				unite(range, sort_bits(lo), sort_bits(hi));
				return;
			}
		case Type::F32: case Type::F64:
			{
				uint64_t	lo = key.type == Type::F32 ? UINT32_MAX : UINT64_MAX, hi = 0;

				if (key.type == Type::F32)
					widen_f32(reinterpret_cast<const uint32_t *>(values), n, &lo, &hi);
				else
					widen_f64(reinterpret_cast<const uint64_t *>(values), n, &lo, &hi);
				unite(range, lo, hi);
				return;
			}
		default:
			for (uint32_t i = 0; i < n; i++)
			{
				const uint128 v = sort_bits_at(key.type, values + i * static_cast<size_t>(type_width(key.type)));

				unite(range, v, v);
			}
			return;
	}
}

/* ---- distances from the base ------------------------------------------------------------------ */

/* v - base, or, with a sign of all ones, base - v. */
inline uint64_t
distance(uint64_t v, uint64_t base, uint64_t sign)
{
	return ((v - base) ^ sign) - sign;
}

GPUVM_LOOP void
distances_i32(const int32_t *v, uint32_t n, uint64_t base, uint64_t sign, uint64_t *out)
{
	for (uint32_t i = 0; i < n; i++)
		out[i] = distance(sort_bits(v[i]), base, sign);
}

GPUVM_LOOP void
distances_i64(const int64_t *v, uint32_t n, uint64_t base, uint64_t sign, uint64_t *out)
{
	for (uint32_t i = 0; i < n; i++)
		out[i] = distance(sort_bits(v[i]), base, sign);
}

GPUVM_LOOP void
distances_f32(const uint32_t *v, uint32_t n, uint64_t base, uint64_t sign, uint64_t *out)
{
	for (uint32_t i = 0; i < n; i++)
		out[i] = distance(sort_float_bits(v[i]), base, sign);
}

GPUVM_LOOP void
distances_f64(const uint64_t *v, uint32_t n, uint64_t base, uint64_t sign, uint64_t *out)
{
	for (uint32_t i = 0; i < n; i++)
		out[i] = distance(sort_float_bits(v[i]), base, sign);
}

/* Modulo 2^64, which the lower halves are enough for. */
GPUVM_LOOP void
distances_i128(const uint64_t *v, uint32_t n, uint64_t base, uint64_t sign, uint64_t *out)
{
	for (uint32_t i = 0; i < n; i++)
		out[i] = distance(v[2 * i], base, sign);
}

/* The upper halves. */
void
distances_above(const int128 *v, uint32_t n, const SortKey &key, uint64_t *out)
{
	const uint128 base = static_cast<uint128>(key.base_hi) << 64 | key.base;

	for (uint32_t i = 0; i < n; i++)
		out[i] = static_cast<uint64_t>((key.desc ? base - sort_bits(v[i]) : sort_bits(v[i]) - base) >> 64);
}

/* Codes that have no rank are noted as null. */
template <typename Rank>
void
distances_ranks(const SortKey &key, const uint32_t *codes, uint32_t n, uint64_t sign, uint64_t *null_words, uint64_t *out)
{
	const Rank *ranks = static_cast<const Rank *>(key.ranks);

	if (key.nranks == 0)
	{
		std::fill_n(out, n, 0);
		for (uint32_t i = 0; i < n; i++)
			bit_set(null_words, i);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		out[i] = distance(sort_bits(ranks[codes[i] < key.nranks ? codes[i] : 0]), key.base, sign);
	for (uint32_t i = 0; key.may_null && i < n; i++)
		if (codes[i] >= key.nranks || (key.no_rank != nullptr && bit_get(key.no_rank, codes[i])))
			bit_set(null_words, i);
}

template <typename T>
const T *
at(const char *values, uint32_t row)
{
	return reinterpret_cast<const T *>(values) + row;
}

GPUVM_LOOP void
put_shifted(const uint64_t *v, uint32_t n, uint32_t shift, uint64_t *words)
{
	for (uint32_t i = 0; i < n; i++)
		words[i] |= v[i] << shift;
}

/* As sort_bits_in_word() has them, of many rows. */
void
put_bits(const uint64_t *v, uint32_t n, uint32_t end, uint32_t bits, uint64_t *words, uint32_t nwords)
{
	if (bits == 0)
		return;

	const uint32_t last = (end - 1) / 64, shift = 64 * (last + 1) - end;

	if (last == 0 && nwords == 1)
		put_shifted(v, n, shift, words);
	else if (last < nwords)
		for (uint32_t i = 0; i < n; i++)
			words[i * nwords + last] |= v[i] << shift;
	if (shift + bits > 64 && last - 1 < nwords)
		for (uint32_t i = 0; i < n; i++)
			words[i * nwords + last - 1] |= v[i] >> (64 - shift);
}

}  // namespace

void
widen_range(const SortKey &key, const char *values, const uint64_t *nulls, uint32_t n, SortRange *range)
{
	const size_t width = static_cast<size_t>(type_width(key.ranked ? Type::I32 : key.type));
	bool		any = false;

	for (uint32_t w = 0; w < (n + 63) / 64; w++)
		any = any || nulls[w] != 0;
	if (!any)
	{
		if (n > 0)
			widen(key, values, n, range);
		return;
	}
	range->may_null = true;
	for (uint32_t first = 0; first < n; first += 64)
	{
		const uint32_t count = std::min(n - first, 64u);
		uint64_t	there = ~nulls[first / 64] & low_bits(count);

		if (there == low_bits(count))
			widen(key, values + first * width, count, range);
		else
			for (; there != 0; there &= there - 1)
				widen(key, values + (first + static_cast<uint32_t>(__builtin_ctzll(there))) * width, 1, range);
	}
}

void
put_keys(const SortKey &key, const char *values, const uint64_t *nulls, uint32_t first, uint32_t n,
		 uint64_t *words, uint32_t nwords, uint64_t *scratch)
{
	const uint64_t sign = key.desc ? ~uint64_t(0) : 0;
	const uint32_t null_end = key.end - key.bits;
	uint64_t	null_words[16];	/* of the n rows, at most CPU_VECTOR_ROWS */
	uint64_t	some = 0;

	if (null_end - key.may_null >= 64 * nwords)
		return;
	memcpy(null_words, nulls + first / 64, (n + 63) / 64 * sizeof(uint64_t));
	if (key.ranked)
	{
		if (key.type == Type::I64)
			distances_ranks<int64_t>(key, at<uint32_t>(values, first), n, sign, null_words, scratch);
		else
			distances_ranks<int32_t>(key, at<uint32_t>(values, first), n, sign, null_words, scratch);
	}
	else
		switch (key.type)
		{
			case Type::Bool:
				for (uint32_t i = 0; i < n; i++)
					scratch[i] = distance(sort_bits(at<uint8_t>(values, first)[i]), key.base, sign);
				break;
			case Type::I16: case Type::I32:
				distances_i32(at<int32_t>(values, first), n, key.base, sign, scratch);
				break;
			case Type::I64:
				distances_i64(at<int64_t>(values, first), n, key.base, sign, scratch);
				break;
			case Type::F32:
				distances_f32(at<uint32_t>(values, first), n, key.base, sign, scratch);
				break;
			case Type::F64:
				distances_f64(at<uint64_t>(values, first), n, key.base, sign, scratch);
				break;
			default:
				distances_i128(reinterpret_cast<const uint64_t *>(at<int128>(values, first)), n, key.base, sign, scratch);
				break;
		}

	/* what lies under a null has no distance */
	for (uint32_t w = 0; key.may_null && w < (n + 63) / 64; w++)
		for (uint64_t left = null_words[w] & low_bits(std::min(n - 64 * w, 64u)); left != 0; left &= left - 1)
			scratch[64 * w + static_cast<uint32_t>(__builtin_ctzll(left))] = 0;
	put_bits(scratch, n, key.end, std::min<uint32_t>(key.bits, 64), words, nwords);
	if (key.bits > 64)
	{
		distances_above(at<int128>(values, first), n, key, scratch);
		for (uint32_t i = 0; i < n; i++)
			scratch[i] = bit_get(null_words, i) ? 0 : scratch[i];
		put_bits(scratch, n, key.end - 64, key.bits - 64, words, nwords);
	}
	for (uint32_t w = 0; w < (n + 63) / 64; w++)
		some |= null_words[w];
	if (!key.may_null || (some == 0 && !key.nulls_first))
		return;
	for (uint32_t i = 0; i < n; i++)
		scratch[i] = bit_get(null_words, i) != key.nulls_first;
	put_bits(scratch, n, null_end, 1, words, nwords);
}

}  // namespace gpuvm::cpu_sort
