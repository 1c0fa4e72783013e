/* cpu_text_keys.cc: see cpu_text_keys.h. */
#include "vm/cpu_text_keys.h"

#include <algorithm>
#include <cstring>

namespace gpuvm {

namespace {

constexpr int TAG_SHIFT = 48;	/* references are below (VARIABLE_MAX_REFERENCE) */
constexpr uint64_t REFERENCE = VARIABLE_MAX_REFERENCE;
constexpr uint32_t FEW = 64;	/* lanes whose memory is asked for at a time */

uint64_t
load64(const unsigned char *at)
{
	uint64_t	x;

	memcpy(&x, at, 8);
	return x;
}

uint64_t
fold(uint64_t a, uint64_t b)
{
	const uint128 product = static_cast<uint128>(a) * b;

	return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

/* Reads up to 15 bytes behind the value. */
uint64_t
hash_value(const TextValue &value)
{
	constexpr uint64_t a = 0x9e3779b97f4a7c15, b = 0xd6e8feb86659fd93;
	const unsigned char *at = value.bytes;
	uint64_t	hash = value.len ^ a;
	uint32_t	left = value.len;

	for (; left > 16; left -= 16, at += 16)
		hash = fold(load64(at) ^ a, load64(at + 8) ^ hash);

	const uint64_t first = load64(at), second = load64(at + 8);
	const uint64_t lo = left >= 8 ? first : first & ((uint64_t{1} << 8 * left) - 1);
	const uint64_t hi = left >= 16 ? second : left <= 8 ? 0 : second & ((uint64_t{1} << 8 * (left - 8)) - 1);

	hash = fold(lo ^ a, hi ^ hash);
	return fold(hash ^ a, b);
}

}  // namespace

TextKeys::TextKeys(const Program *program, const char *arena, uint64_t bytes, uint64_t values, uint64_t hash_mask)
	: arena_(reinterpret_cast<const unsigned char *>(arena)), bytes_(bytes), hash_mask_(hash_mask)
{
	uint64_t	slots = 64;

	/* a third is empty, whatever comes */
	while (slots / 3 * 2 < values)
		slots *= 2;
	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode == Opcode::TextKey &&
			std::none_of(tables_.begin(), tables_.end(), [&](const Table &table) { return table.attlen == op.p3; }))
			tables_.push_back(Table{op.p3, slots - 1, Pages(slots * sizeof(uint64_t), true)});
	}
}

/* No value is nearer to the arena's end than what may be read behind it. */
bool
TextKeys::value_at(int64_t reference, int attlen, TextValue *value) const
{
	const uint64_t at = static_cast<uint64_t>(reference);

	return at != 0 && at <= REFERENCE && at < bytes_ && bytes_ - at > VARIABLE_SLACK &&
		text_value(arena_ + at, bytes_ - at - VARIABLE_SLACK, attlen, value);
}

/* What was found first; 0 where all slots are taken, which only references that are none can lead to. */
int64_t
TextKeys::find_one(const Table &table, uint64_t reference, const TextValue &value, uint64_t hash) const
{
	const uint64_t mine = (hash >> TAG_SHIFT << TAG_SHIFT) | reference;

	for (uint64_t i = 0; i <= table.mask; i++)
	{
		std::atomic<uint64_t> &slot = table.slots()[(hash + i) & table.mask];
		uint64_t	taken = slot.load(std::memory_order_relaxed);
		TextValue	other;

		/* the values themselves were there before the job, so a slot's content is all that there is to be seen */
		if (taken == 0 && slot.compare_exchange_strong(taken, mine, std::memory_order_relaxed))
			return static_cast<int64_t>(reference);
		if (taken == mine)
			return static_cast<int64_t>(reference);
		if ((taken ^ mine) >> TAG_SHIFT == 0 && value_at(static_cast<int64_t>(taken & REFERENCE), table.attlen, &other) &&
			other.len == value.len && memcmp(other.bytes, value.bytes, value.len) == 0)
			return static_cast<int64_t>(taken & REFERENCE);
	}
	return 0;
}

/* Each step's memory is asked for a step before it is read: the images', then the slots', then that of what the slots refer to. */
bool
TextKeys::find_few(const Table &table, const int64_t *references, const uint16_t *lanes, uint32_t n, int64_t *keys) const
{
	TextValue	values[FEW];
	uint64_t	hashes[FEW];

	for (uint32_t k = 0; k < n; k++)
		if (static_cast<uint64_t>(references[lanes[k]]) < bytes_)
			__builtin_prefetch(arena_ + references[lanes[k]]);
	for (uint32_t k = 0; k < n; k++)
	{
		if (!value_at(references[lanes[k]], table.attlen, &values[k]))
			return false;
		hashes[k] = hash_value(values[k]) & hash_mask_;
		__builtin_prefetch(&table.slots()[hashes[k] & table.mask]);
	}
	for (uint32_t k = 0; k < n; k++)
	{
		const uint64_t taken = table.slots()[hashes[k] & table.mask].load(std::memory_order_relaxed);

		if ((taken ^ hashes[k]) >> TAG_SHIFT == 0)
			__builtin_prefetch(arena_ + (taken & REFERENCE));
	}
	for (uint32_t k = 0; k < n; k++)
	{
		keys[lanes[k]] = find_one(table, static_cast<uint64_t>(references[lanes[k]]), values[k], hashes[k]);
		if (keys[lanes[k]] == 0)
			return false;
	}
	return true;
}

bool
TextKeys::find(int attlen, const int64_t *references, const uint16_t *lanes, uint32_t n, int64_t *keys)
{
	const auto	table = std::find_if(tables_.begin(), tables_.end(), [=](const Table &t) { return t.attlen == attlen; });

	if (table == tables_.end())
		return n == 0;
	for (uint32_t from = 0; from < n; from += FEW)
		if (!find_few(*table, references, lanes + from, std::min(n - from, FEW), keys))
			return false;
	return true;
}

std::unique_ptr<TextKeys>
make_text_keys(const Program *program, const char *arena, uint64_t bytes, uint64_t values)
{
	for (int i = 0; i < program->nops; i++)
		if (program->ops()[i].opcode == Opcode::TextKey)
			return std::make_unique<TextKeys>(program, arena, bytes, values);
	return nullptr;
}

}  // namespace gpuvm
