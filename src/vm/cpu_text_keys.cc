/* cpu_text_keys.cc: see cpu_text_keys.h. */
#include "vm/cpu_text_keys.h"

#include <algorithm>
#include <cstring>

namespace gpuvm {

namespace {

constexpr int TAG_SHIFT = 48;	/* references are below (VARIABLE_MAX_REFERENCE) */
constexpr uint64_t REFERENCE = VARIABLE_MAX_REFERENCE;
constexpr uint32_t FEW = 64;	/* lanes whose memory is asked for at a time */
constexpr uint64_t FIRST_SLOTS = 1 << 16, GROWTH = 8, LINE_SLOTS = 8;

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
	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];
		const auto	like = [&](const Op &other) { return other.opcode == Opcode::TextKey && other.p3 == op.p3; };
		uint64_t	most = 64;

		if (op.opcode != Opcode::TextKey ||
			std::any_of(tables_.begin(), tables_.end(), [&](const Table &table) { return table.attlen == op.p3; }))
			continue;
		/* a third is empty, whatever comes: several columns' values are in one table */
		while (most / 3 * 2 < values * static_cast<uint64_t>(std::count_if(program->ops() + i, program->ops() + program->nops, like)))
			most *= 2;
		tables_.emplace_back();
		tables_.back().attlen = op.p3;
		for (uint64_t slots = std::min(FIRST_SLOTS, most);; slots = std::min(slots * GROWTH, most))
		{
			tables_.back().levels.emplace_back(slots);
			if (slots == most)
				break;
		}
	}
}

TextKeys::Slot *
TextKeys::slots_of(Level &level)
{
	Slot	   *slots = level.slots.load(std::memory_order_acquire);

	if (slots != nullptr)
		return slots;

	std::lock_guard<std::mutex> lock(mutex_);

	if (level.memory.bytes() == 0)
	{
		const uint64_t bytes = (level.mask + 1) * sizeof(Slot);

		level.memory = Pages(bytes, bytes >= HUGE_PAGE);
		level.slots.store(level.memory.as<Slot>(), std::memory_order_release);
	}
	return level.memory.as<Slot>();
}

/* What was found first, in so many slots of a level; 0 where others have them all. */
uint64_t
TextKeys::find_in(Slot *slots, uint64_t mask, int attlen, const Wanted &wanted, uint64_t nslots) const
{
	const uint64_t mine = (wanted.hash >> TAG_SHIFT << TAG_SHIFT) | wanted.reference, line = wanted.hash & mask & ~(LINE_SLOTS - 1);

	for (uint64_t i = 0; i < nslots; i++)
	{
		/* a line is begun anywhere */
		const uint64_t at = i < LINE_SLOTS ? line + (wanted.hash + i) % LINE_SLOTS : (line + i) & mask;
		Slot	   &slot = slots[at];
		uint64_t	taken = slot.load(std::memory_order_relaxed);
		TextValue	other;

		/* the values themselves were there before the job, so a slot's content is all that there is to be seen */
		if (taken == 0 && slot.compare_exchange_strong(taken, mine, std::memory_order_relaxed))
			return wanted.reference;
		if (taken == mine)
			return wanted.reference;
		if ((taken ^ mine) >> TAG_SHIFT == 0 && text_value_at(arena_, bytes_, taken & REFERENCE, attlen, &other) &&
			other.len == wanted.value.len && memcmp(other.bytes, wanted.value.bytes, other.len) == 0)
			return taken & REFERENCE;
	}
	return 0;
}

/* Memory is asked for a step before it is read: the images', then in each level the slots', and that of what the first of them refers to. */
bool
TextKeys::find_few(Table &table, const int64_t *references, const uint16_t *lanes, uint32_t n, int64_t *keys)
{
	Wanted		wanted[FEW];
	uint8_t		left[FEW];
	uint32_t	nleft = n;

	for (uint32_t k = 0; k < n; k++)
		if (static_cast<uint64_t>(references[lanes[k]]) < bytes_)
			__builtin_prefetch(arena_ + references[lanes[k]]);
	for (uint32_t k = 0; k < n; k++)
	{
		wanted[k].reference = static_cast<uint64_t>(references[lanes[k]]);
		left[k] = static_cast<uint8_t>(k);
		if (!text_value_at(arena_, bytes_, wanted[k].reference, table.attlen, &wanted[k].value))
			return false;
		wanted[k].hash = hash_value(wanted[k].value) & hash_mask_;
	}
	for (Level &level : table.levels)
	{
		const bool	last = &level == &table.levels.back();
		const uint64_t mask = level.mask;
		Slot	   *const slots = slots_of(level);
		uint32_t	to = 0;

		for (uint32_t i = 0; i < nleft; i++)
			__builtin_prefetch(&slots[wanted[left[i]].hash & mask]);
		for (uint32_t i = 0; i < nleft; i++)
		{
			const uint64_t hash = wanted[left[i]].hash, taken = slots[hash & mask].load(std::memory_order_relaxed);

			if ((taken ^ hash) >> TAG_SHIFT == 0)
				__builtin_prefetch(arena_ + (taken & REFERENCE));
		}
		for (uint32_t i = 0; i < nleft; i++)
		{
			const uint8_t k = left[i];
			const uint64_t found = find_in(slots, mask, table.attlen, wanted[k], last ? mask + 1 : LINE_SLOTS);

			keys[lanes[k]] = static_cast<int64_t>(found);
			if (found == 0)
				left[to++] = k;
		}
		nleft = to;
		if (nleft == 0)
			return true;
	}
	return false;				/* all slots are taken, which only references that are none can lead to */
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
make_text_keys(const Program *program, const TextPattern *const *patterns, const char *arena, uint64_t bytes, uint64_t values)
{
	const auto	needs = [](const Op &op) { return op.opcode == Opcode::TextKey || orders_texts(op); };
	const auto	collates = [](const TextPattern *pattern) { return pattern->collation != 0; };

	if (std::any_of(program->ops(), program->ops() + program->nops, needs) || std::any_of(patterns, patterns + program->npatterns, collates))
		return std::make_unique<TextKeys>(program, arena, bytes, values);
	return nullptr;
}

}  // namespace gpuvm
