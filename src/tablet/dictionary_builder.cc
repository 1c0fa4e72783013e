/* dictionary_builder.cc: look-ups without a lock, insertions under one. */
#include "tablet/dictionary_builder.h"

namespace gpuvm {

namespace {

/* The first segment: slots, and entries in what is left. */
constexpr uint32_t FIRST_SLOTS = 1024;
constexpr uint64_t FIRST_USED = FIRST_SLOTS * sizeof(uint64_t);

/* Before each entry's image, which it is aligned as. */
struct Entry
{
	uint32_t	code;
	uint32_t	padded;
};
static_assert(sizeof(Entry) == DICTIONARY_ALIGN, "the image is aligned");

/* A slot: the hash, and the entry's segment and where it is there; no entry is at the first one's beginning. */
constexpr int PLACE_BITS = 26;
static_assert(BUILDER_MAX_SEGMENTS <= 1 << (32 - PLACE_BITS), "a segment's number fits above");
static_assert(BUILDER_MAX_CHUNK / DICTIONARY_ALIGN <= 1u << PLACE_BITS, "a place in a segment fits below");

template <typename T>
inline T *
at(char *memory, uint64_t offset)
{
	return reinterpret_cast<T *>(memory + offset);
}

template <typename T>
inline const T *
at(const char *memory, uint64_t offset)
{
	return reinterpret_cast<const T *>(memory + offset);
}

/* Parts of the word `slots`. */
inline uint64_t
slots_at(uint64_t word)
{
	return word & ~(BUILDER_PAGE - 1);
}

inline uint32_t
slots_count(uint64_t word)
{
	return uint32_t{1} << (word % BUILDER_PAGE);
}

inline uint64_t
slot_of(uint32_t hash, int32_t segment, uint64_t at)
{
	return uint64_t{hash} << 32 | static_cast<uint64_t>(segment) << PLACE_BITS | at / DICTIONARY_ALIGN;
}

inline uint32_t
slot_hash(uint64_t slot)
{
	return static_cast<uint32_t>(slot >> 32);
}

inline const Entry *
slot_entry(const char *memory, const DictionaryBuilder *builder, uint64_t slot)
{
	uint32_t	place = static_cast<uint32_t>(slot);

	return at<Entry>(memory, builder->segments[place >> PLACE_BITS] +
					 uint64_t{place & ((1u << PLACE_BITS) - 1)} * DICTIONARY_ALIGN);
}

inline const char *
entry_image(const Entry *entry)
{
	return reinterpret_cast<const char *>(entry + 1);
}

uint64_t
take_segment(const BuilderMemory &memory, DictionaryBuilder *builder, uint64_t size)
{
	uint64_t	offset = builder->nsegments < BUILDER_MAX_SEGMENTS ? memory.alloc(size) : 0;

	if (offset != 0)
		builder->segments[builder->nsegments++] = offset;
	return offset;
}

bool
first_segment(const BuilderMemory &memory, DictionaryBuilder *builder)
{
	uint64_t	made = take_segment(memory, builder, BUILDER_PAGE);

	if (made == 0)
		return false;
	memset(memory.base + made, 0, FIRST_USED);
	builder->chunk = 0;
	builder->chunk_used = FIRST_USED;
	builder->chunk_size = BUILDER_PAGE;
	__atomic_store_n(&builder->slots, made | static_cast<uint64_t>(__builtin_ctz(FIRST_SLOTS)), __ATOMIC_RELEASE);
	return true;
}

bool
grow_slots(const BuilderMemory &memory, DictionaryBuilder *builder)
{
	uint64_t	word = builder->slots;
	const uint64_t *old = at<uint64_t>(memory.base, slots_at(word));
	uint32_t	nold = slots_count(word);
	uint64_t	made = take_segment(memory, builder, uint64_t{nold} * 2 * sizeof(uint64_t));

	if (made == 0)
		return false;
	memset(memory.base + made, 0, uint64_t{nold} * 2 * sizeof(uint64_t));
	for (uint32_t i = 0; i < nold; i++)
		if (old[i] != 0)
			dictionary_put(at<uint64_t>(memory.base, made), nold * 2, old[i]);
	__atomic_store_n(&builder->slots, made | (word % BUILDER_PAGE + 1), __ATOMIC_RELEASE);
	return true;
}

/* Room in slots and chunk for one more entry of so many bytes. */
bool
make_room(const BuilderMemory &memory, DictionaryBuilder *builder, uint64_t bytes)
{
	if (builder->slots == 0 && !first_segment(memory, builder))
		return false;
	if (builder->nadded >= slots_count(builder->slots) / 3 * 2 && !grow_slots(memory, builder))
		return false;
	if (builder->chunk_used + bytes > builder->chunk_size)
	{
		uint64_t	size = builder->chunk_size < BUILDER_MAX_CHUNK ? builder->chunk_size * 2 : BUILDER_MAX_CHUNK;

		if (take_segment(memory, builder, size) == 0)
			return false;
		builder->chunk = builder->nsegments - 1;
		builder->chunk_used = 0;
		builder->chunk_size = size;
	}
	return true;
}

}  // namespace

int32_t
builder_find(const char *memory, const DictionaryBuilder *builder, const char *image, uint32_t len, uint32_t hash)
{
	uint64_t	word = __atomic_load_n(&builder->slots, __ATOMIC_ACQUIRE);
	const uint64_t *slots = at<uint64_t>(memory, slots_at(word));
	uint32_t	mask = slots_count(word) - 1;

	if (word == 0)
		return NO_CODE;
	for (uint32_t i = hash & mask;; i = (i + 1) & mask)
	{
		uint64_t	slot = __atomic_load_n(&slots[i], __ATOMIC_ACQUIRE);
		const Entry *entry;

		if (slot == 0)
			return NO_CODE;
		if (slot_hash(slot) != hash)
			continue;
		entry = slot_entry(memory, builder, slot);
		if (entry->padded == dictionary_padded(len) && memcmp(entry_image(entry), image, len) == 0)
			return static_cast<int32_t>(entry->code);
	}
}

int32_t
builder_insert(const BuilderMemory &memory, DictionaryBuilder *builder, const char *image, uint32_t len, uint32_t hash)
{
	uint64_t	padded = dictionary_padded(len);
	Entry	   *entry;
	char	   *to;
	uint64_t   *slots;
	uint32_t	mask;
	uint32_t	i;

	if (!make_room(memory, builder, sizeof(Entry) + padded))
		return NO_CODE;

	/* the entry, then the slot by which it is found */
	entry = at<Entry>(memory.base, builder->segments[builder->chunk] + builder->chunk_used);
	entry->code = builder->nadded;
	entry->padded = static_cast<uint32_t>(padded);
	to = reinterpret_cast<char *>(entry + 1);
	memcpy(to, image, len);
	memset(to + len, 0, padded - len);
	slots = at<uint64_t>(memory.base, slots_at(builder->slots));
	mask = slots_count(builder->slots) - 1;
	for (i = hash & mask; slots[i] != 0;)
		i = (i + 1) & mask;
	__atomic_store_n(&slots[i], slot_of(hash, builder->chunk, builder->chunk_used), __ATOMIC_RELEASE);

	builder->chunk_used += sizeof(Entry) + padded;
	builder->bytes += padded;
	return static_cast<int32_t>(builder->nadded++);
}

uint64_t
builder_size(const DictionaryBuilder *builder)
{
	return dictionary_size(builder->base_entries + builder->nadded, builder->base_bytes + builder->bytes);
}

Dictionary *
builder_write(const char *memory, const DictionaryBuilder *builder, char *to)
{
	Dictionary *made = dictionary_begin(to, builder->base_entries + builder->nadded, builder->base_bytes + builder->bytes);
	const uint64_t *slots = at<uint64_t>(memory, slots_at(builder->slots));
	uint32_t	nslots = builder->nadded > 0 ? slots_count(builder->slots) : 0;
	uint64_t   *found = reinterpret_cast<uint64_t *>(to + made->offsets) + builder->base_entries + 1;

	if (builder->base != 0)
	{
		const Dictionary *base = at<Dictionary>(memory, builder->base);

		for (uint32_t i = 0; i < base->nentries; i++)
			dictionary_append(made, dictionary_entry(base, i), dictionary_entry(base, i + 1) - dictionary_entry(base, i));
		dictionary_index_all(made, dictionary_at<uint64_t>(base, base->slots), base->nslots);
	}
	/* by their codes, each where its end will be written when it is appended */
	for (uint32_t i = 0; i < nslots; i++)
	{
		const Entry *entry;

		if (slots[i] == 0)
			continue;
		entry = slot_entry(memory, builder, slots[i]);
		found[entry->code] = slots[i];
		dictionary_index(made, slot_hash(slots[i]), builder->base_entries + entry->code);
	}
	for (uint32_t i = 0; i < builder->nadded; i++)
	{
		const Entry *entry = slot_entry(memory, builder, found[i]);

		dictionary_append(made, entry_image(entry), entry->padded);
	}
	made->attlen = builder->attlen;
	made->byval = builder->byval;
	made->align = static_cast<uint8_t>(builder->align);
	return made;
}

}  // namespace gpuvm
