/* maps.cc: see maps.h. */
#include "maps.h"

#include <atomic>
#include <cstring>

#include "vm/result_layout.h"

namespace gpuvm {
namespace cuda {

namespace {

constexpr uint64_t KEY_BYTES = 256 << 10;

/* Behind the map's own. */
constexpr uint32_t NULL_ENTRY = 0, NO_ENTRY = 1, ENTRIES_MORE = 2;

uint64_t
bitmap_bytes(const CodeMap &map)
{
	return align_up((static_cast<uint64_t>(map.nentries) + ENTRIES_MORE + 31) / 32 * 4, 16);
}

uint64_t
value_bytes(const CodeMap &map)
{
	return map.type == Type::Bool ? bitmap_bytes(map)
		: align_up((static_cast<uint64_t>(map.nentries) + ENTRIES_MORE) * static_cast<uint64_t>(type_width(map.type)), 16);
}

bool
is_null(const CodeMap &map, uint32_t entry)
{
	return map.nulls != nullptr && map.nulls[entry / 64] >> (entry % 64) & 1;
}

void
set_bit(char *bitmap, uint32_t i)
{
	reinterpret_cast<uint32_t *>(bitmap)[i / 32] |= 1u << i % 32;
}

}  // namespace

uint64_t
map_bytes(const CodeMap *maps, uint32_t n)
{
	uint64_t	bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += value_bytes(maps[i]) + bitmap_bytes(maps[i]);
	return bytes;
}

void
pack_maps(const CodeMap *maps, uint32_t n, char *to, uint64_t device, DeviceMap *out)
{
	for (uint32_t i = 0; i < n; i++)
	{
		const CodeMap &map = maps[i];
		const uint32_t entries = map.nentries + (map.has_null_entry ? 1 : 0);
		char	   *nulls = to + value_bytes(map);

		out[i] = DeviceMap{device, device + value_bytes(map), map.nentries, 0};
		for (uint32_t e = 0; map.nulls != nullptr && e < entries; e++)
			if (is_null(map, e))
				set_bit(nulls, e);
		if (!map.has_null_entry)
			set_bit(nulls, map.nentries + NULL_ENTRY);
		set_bit(nulls, map.nentries + NO_ENTRY);
		if (map.type != Type::Bool)
			memcpy(to, map.values, static_cast<uint64_t>(entries) * static_cast<uint64_t>(type_width(map.type)));
		else
			for (uint32_t e = 0; e < entries; e++)
				/* a null is not true: so everywhere */
				if (static_cast<const uint8_t *>(map.values)[e] != 0 && !is_null(map, e))
					set_bit(to, e);
		to = nulls + bitmap_bytes(map);
		device += value_bytes(map) + bitmap_bytes(map);
	}
}

uint64_t
pattern_bytes(const TextPattern *const *patterns, uint32_t n)
{
	uint64_t	bytes = n * sizeof(uint64_t);

	for (uint32_t i = 0; i < n; i++)
		bytes += align_up(patterns[i]->size, 8);
	return bytes;
}

void
pack_patterns(const TextPattern *const *patterns, uint32_t n, char *to, uint64_t device)
{
	uint64_t	at = n * sizeof(uint64_t);

	for (uint32_t i = 0; i < n; i++)
	{
		const uint64_t address = device + at;

		memcpy(to + i * sizeof(uint64_t), &address, sizeof(address));
		memcpy(to + at, patterns[i], patterns[i]->size);
		at += align_up(patterns[i]->size, 8);
	}
}

void
append_map_key(const CodeMap *maps, uint32_t n, std::string *key)
{
	static std::atomic<uint64_t> times{0};
	const bool	large = map_bytes(maps, n) > KEY_BYTES;

	if (large)
	{
		const uint64_t number = ++times;

		key->append(reinterpret_cast<const char *>(&number), sizeof(number));
	}
	for (uint32_t i = 0; i < n && !large; i++)
	{
		const CodeMap &map = maps[i];
		const uint32_t entries = map.nentries + (map.has_null_entry ? 1 : 0);

		key->push_back(static_cast<char>(map.type));
		key->push_back(map.has_null_entry ? 1 : 0);
		key->append(reinterpret_cast<const char *>(&map.nentries), sizeof(map.nentries));
		key->append(static_cast<const char *>(map.values), static_cast<size_t>(entries) * static_cast<size_t>(type_width(map.type)));
		key->push_back(map.nulls != nullptr ? 1 : 0);
		if (map.nulls != nullptr)
			key->append(reinterpret_cast<const char *>(map.nulls), (entries + 63) / 64 * sizeof(uint64_t));
	}
}

}  // namespace cuda
}  // namespace gpuvm
