/*
 * join_keys.cuh: keys of a join as codes, and what of a table a code finds.
 *
 * A code is an unsigned integer of 32 or 64 bits: key - lo (Ranges), a hash (Hashed),
 * or what compares like the key (Sorted).
 */
#ifndef GPUVM_CUDA_JOIN_KEYS_CUH
#define GPUVM_CUDA_JOIN_KEYS_CUH

#include "join_table.h"
#include "machine.cuh"
#include "vm/join_keys.h"

namespace gpuvm {
namespace cuda {

/* ---- keys ------------------------------------------------------------------- */

GPUVM_D bool
key_null(const RowColumn &key, uint32_t row)
{
	return key.nulls != nullptr && (key.nulls[row / 32] >> (row % 32) & 1) != 0;
}

/* Whatever a null has for a value may be read, too. */
GPUVM_D uint64_t
key_word(const RowColumn &key, uint32_t row)
{
	switch (key.type)
	{
		case Type::Bool:
			return reinterpret_cast<const uint8_t *>(key.values)[row];
		case Type::I16:
			return static_cast<uint64_t>(static_cast<int64_t>(reinterpret_cast<const int16_t *>(key.values)[row]));
		case Type::I64:
			return reinterpret_cast<const uint64_t *>(key.values)[row];
		case Type::F32:
			return float_key(reinterpret_cast<const uint32_t *>(key.values)[row]);
		case Type::F64:
			return float_key(reinterpret_cast<const uint64_t *>(key.values)[row]);
		default:
			return static_cast<uint64_t>(static_cast<int64_t>(reinterpret_cast<const int32_t *>(key.values)[row]));
	}
}

GPUVM_D bool
any_key_null(const JoinKeys &keys, uint32_t row)
{
	bool		null = false;

	for (uint32_t k = 0; k < keys.nkeys; k++)
		null = null || key_null(keys.key[k], row);
	return null;
}

GPUVM_D bool
same_keys(const JoinKeys &a, uint32_t row_a, const JoinKeys &b, uint32_t row_b)
{
	for (uint32_t k = 0; k < a.nkeys; k++)
		if (key_word(a.key[k], row_a) != key_word(b.key[k], row_b))
			return false;
	return true;
}

/* ---- codes ------------------------------------------------------------------- */

template <typename Code>
GPUVM_D Code
hash_code(const JoinKeys &keys, bool exact, uint32_t row)
{
	uint64_t	word = key_word(keys.key[0], row);

	for (uint32_t k = 1; k < keys.nkeys; k++)
	{
		const uint64_t next = key_word(keys.key[k], row);
		const uint32_t bits = 8 * static_cast<uint32_t>(type_natural_width(keys.key[k].type));

		/* exact: all the keys' bits side by side, in at most 64, so that these have less */
		word = exact ? word << bits | (next & ((uint64_t{1} << bits) - 1)) : mix(word) ^ next;
	}
	return mix(static_cast<Code>(word));
}

/* In the order of PostgreSQL's btree: NaN is the largest. */
template <typename Code>
GPUVM_D Code
ordered_code(const RowColumn &key, uint32_t row)
{
	constexpr Code sign = Code{1} << (8 * sizeof(Code) - 1);
	const Code	word = static_cast<Code>(key_word(key, row));

	if (key.type == Type::F32 || key.type == Type::F64)
		return word & sign ? ~word : word | sign;
	return word ^ sign;
}

/* ---- finding ------------------------------------------------------------------ */

/* Partners: `count` of JoinTable.rows from `first` on. With at most one (unique tables): the row itself. */
struct Found
{
	uint32_t	first, count;
};

constexpr Found FOUND_NOTHING = {NO_ROW, 0};

template <typename Code>
GPUVM_D uint32_t
lower_bound(const Code *codes, uint32_t from, uint32_t end, Code code)
{
	while (from < end)
	{
		const uint32_t middle = from + (end - from) / 2;

		if (codes[middle] < code)
			from = middle + 1;
		else
			end = middle;
	}
	return from;
}

template <typename Code>
GPUVM_D uint32_t
upper_bound(const Code *codes, uint32_t from, uint32_t end, Code code)
{
	return code == static_cast<Code>(~Code{0}) ? end : lower_bound(codes, from, end, static_cast<Code>(code + 1));
}

/* One integer key that is not null. */
template <JoinForm FORM>
GPUVM_D Found
find_slot(const JoinTable &table, uint64_t key)
{
	const uint64_t slot = key - static_cast<uint64_t>(table.lo);

	if (slot >= table.nslots)
		return FOUND_NOTHING;
	if constexpr (FORM == JoinForm::Identity)
		return Found{static_cast<uint32_t>(slot), 1};
	else if constexpr (FORM == JoinForm::Slots)
	{
		const uint32_t row = table.slots[slot];

		return Found{row - 1, row != 0};
	}
	else
	{
		const uint2 range = table.ranges[slot];

		return Found{range.x, range.y - range.x};
	}
}

/* Keys none of which is null. */
template <typename Code>
GPUVM_D Found
find_hashed(const JoinTable &table, const JoinKeys &keys, uint32_t row)
{
	const Code *codes = static_cast<const Code *>(table.codes);
	const Code	code = hash_code<Code>(keys, table.exact, row);
	const uint2 range = table.ranges[code >> table.slot_shift];
	uint32_t	from = range.x;

	if (range.y - from > 8)
		from = lower_bound(codes, from, range.y, code);
	while (from < range.y && codes[from] < code)
		from++;
	if (from == range.y || codes[from] != code)
		return FOUND_NOTHING;

	const uint32_t inner = table.exact && !table.unique ? 0 : table.rows[from];

	if (!table.exact && !same_keys(table.keys, inner, keys, row))
		return FOUND_NOTHING;
	if (table.unique)
		return Found{inner, 1};
	return Found{from, (codes[range.y - 1] == code ? range.y : upper_bound(codes, from, range.y, code)) - from};
}

}  // namespace cuda
}  // namespace gpuvm

#endif
