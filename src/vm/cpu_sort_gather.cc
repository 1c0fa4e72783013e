/* cpu_sort_gather.cc: sorted rows on their way out (cpu_sort.h). */
#include <algorithm>
#include <cstring>

#include "core/bits.h"
#include "vm/cpu_sort.h"

namespace gpuvm {

/* Integers that the first word has whole need not be fetched from where their rows lie, which is far. Floats are not what they were. */
void
CpuSort::find_readable_keys()
{
	key_of_.assign(types_.size(), nullptr);
	for (uint32_t k = 0; k < keys_.n; k++)
	{
		const SortKey &key = keys_.keys[k];

		if (!key.ranked && !type_is_float(key.type) && key.bits <= 64 && key.end <= 64)
			key_of_[key.column] = &key;
	}
}

/* The values of the key in the words, as sort_bits() has them, undone by `value`. */
template <typename T, typename F>
static void
read_key(const SortKey &key, const uint64_t *words, uint32_t n, char *to, F value)
{
	const unsigned shift = 64 - key.end;
	const uint64_t mask = low_bits(key.bits);
	const uint128 base = static_cast<uint128>(key.base_hi) << 64 | key.base;

	for (uint32_t i = 0; i < n && key.bits > 0; i++)
	{
		const uint64_t distance = words[i] >> shift & mask;

		reinterpret_cast<T *>(to)[i] = value(key.desc ? base - distance : base + distance);
	}
	for (uint32_t i = 0; i < n && key.bits == 0; i++)
		reinterpret_cast<T *>(to)[i] = value(base);
}

static void
read_keys(const SortKey &key, const uint64_t *words, uint32_t n, char *to)
{
	switch (key.type)
	{
		case Type::Bool:
			read_key<uint8_t>(key, words, n, to, [](uint128 v) { return static_cast<uint8_t>(v); });
			break;
		case Type::I16: case Type::I32:
			read_key<uint32_t>(key, words, n, to, [](uint128 v) { return static_cast<uint32_t>(v) ^ 0x80000000u; });
			break;
		case Type::I64:
			read_key<uint64_t>(key, words, n, to, [](uint128 v) { return static_cast<uint64_t>(v) ^ 0x8000000000000000u; });
			break;
		default:
			read_key<uint128>(key, words, n, to, [](uint128 v) { return v ^ static_cast<uint128>(1) << 127; });
			break;
	}
}

template <typename T, typename Chunks>
static void
gather_values(const Chunks &chunks, uint64_t offset, const uint64_t *rows, uint32_t n, char *to)
{
	for (uint32_t i = 0; i < n; i++)
		reinterpret_cast<T *>(to)[i] = reinterpret_cast<const T *>(chunks[rows[i] >> SORT_CHUNK_BITS].base + offset)[rows[i] & (SORT_CHUNK_ROWS - 1)];
}

/* A column of the rows, of which at most CPU_VECTOR_ROWS are gathered at a time; null bits from `at` on are 0. */
void
CpuSort::gather_column(size_t column, const uint64_t *words, const uint64_t *rows, uint32_t n, char *to, uint64_t *nulls, uint32_t at) const
{
	const SortKey *key = key_of_[column];
	const uint64_t offset = layout_[column].values;

	if (key != nullptr)
	{
		const unsigned null_end = key->end - key->bits;

		read_keys(*key, words, n, to);
		for (uint32_t i = 0; key->may_null && i < n; i++)
			if ((words[i] >> (64 - null_end) & 1) != key->nulls_first)
				bit_set(nulls, at + i);
		return;
	}
	switch (type_width(types_[column]))
	{
		case 1: gather_values<uint8_t>(chunks_, offset, rows, n, to); break;
		case 4: gather_values<uint32_t>(chunks_, offset, rows, n, to); break;
		case 8: gather_values<uint64_t>(chunks_, offset, rows, n, to); break;
		default: gather_values<uint128>(chunks_, offset, rows, n, to); break;
	}
	for (uint32_t i = 0; has_nulls_[column] && i < n; i++)
		if (bit_get(reinterpret_cast<const uint64_t *>(chunks_[rows[i] >> SORT_CHUNK_BITS].base + layout_[column].nulls), rows[i] & (SORT_CHUNK_ROWS - 1)))
			bit_set(nulls, at + i);
}

void
CpuSort::gather(uint64_t first, uint32_t n, char *area, uint32_t capacity) const
{
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];
	uint64_t	rows[CPU_VECTOR_ROWS], words[CPU_VECTOR_ROWS];

	result_layout(types_.data(), static_cast<int>(types_.size()), capacity, layout);
	for (size_t c = 0; c < types_.size(); c++)
		memset(area + layout[c].nulls, 0, capacity / 8);
	for (uint32_t at = 0; at < n; at += CPU_VECTOR_ROWS)
	{
		const uint32_t count = std::min(n - at, CPU_VECTOR_ROWS);

		for (uint32_t i = 0; i < count; i++)
		{
			words[i] = packed_ ? order_.as<Packed>()[first + at + i].word : order_.as<Pair>()[first + at + i].word;
			rows[i] = packed_ ? words[i] & low_bits(static_cast<unsigned>(row_bits_)) : order_.as<Pair>()[first + at + i].row;
		}
		for (size_t c = 0; c < types_.size(); c++)
			gather_column(c, words, rows, count, area + layout[c].values + at * static_cast<size_t>(type_width(types_[c])),
						  reinterpret_cast<uint64_t *>(area + layout[c].nulls), at);
	}
}

}  // namespace gpuvm
