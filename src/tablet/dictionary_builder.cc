/* dictionary_builder.cc: look-ups without a lock, insertions under one. */
#include "tablet/dictionary_builder.h"

namespace gpuvm {

namespace {

/* The first segment: slots, directory, and entries in what is left. */
constexpr uint32_t FIRST_SLOTS = 1024;
constexpr uint64_t FIRST_USED = (FIRST_SLOTS + BUILDER_FIRST_ENTRIES) * sizeof(uint64_t);

constexpr int PLACE_BITS = 48;
static_assert(DICTIONARY_MAX_IMAGE / DICTIONARY_ALIGN < 1u << (64 - PLACE_BITS), "a padded size fits above an offset");
static_assert((uint64_t{BUILDER_FIRST_ENTRIES} << BUILDER_DIRECTORIES) - BUILDER_FIRST_ENTRIES >= DICTIONARY_MAX_ENTRIES, "room for all codes");

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

inline int
directory_of(uint32_t added)
{
	return 31 - __builtin_clz((added + BUILDER_FIRST_ENTRIES) / BUILDER_FIRST_ENTRIES);
}

/* Offset of the directory's word for an entry. */
inline uint64_t
directory_word(const DictionaryBuilder *builder, uint32_t added)
{
	int			k = directory_of(added);

	return builder->directory[k] + (added + BUILDER_FIRST_ENTRIES - (BUILDER_FIRST_ENTRIES << k)) * sizeof(uint64_t);
}

inline const char *
added_entry(const char *memory, const DictionaryBuilder *builder, uint32_t added, uint64_t *padded)
{
	uint64_t	place = *at<uint64_t>(memory, directory_word(builder, added));

	*padded = (place >> PLACE_BITS) * DICTIONARY_ALIGN;
	return memory + (place & ((uint64_t{1} << PLACE_BITS) - 1));
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
	memset(memory.base + made, 0, FIRST_SLOTS * sizeof(uint64_t));
	builder->directory[0] = made + FIRST_SLOTS * sizeof(uint64_t);
	builder->chunk = made + FIRST_USED;
	builder->chunk_left = BUILDER_PAGE - FIRST_USED;
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

/* Room in slots, directory and chunk for one more entry. */
bool
make_room(const BuilderMemory &memory, DictionaryBuilder *builder, uint64_t padded)
{
	int			k = directory_of(builder->nadded);

	if (builder->slots == 0 && !first_segment(memory, builder))
		return false;
	if (builder->nadded >= slots_count(builder->slots) / 3 * 2 && !grow_slots(memory, builder))
		return false;
	if (builder->directory[k] == 0)
	{
		uint64_t	made = take_segment(memory, builder, (uint64_t{BUILDER_FIRST_ENTRIES} << k) * sizeof(uint64_t));

		if (made == 0)
			return false;
		builder->directory[k] = made;
	}
	if (padded > builder->chunk_left)
	{
		uint64_t	size = builder->chunk_size < BUILDER_MAX_CHUNK ? builder->chunk_size * 2 : BUILDER_MAX_CHUNK;
		uint64_t	made = take_segment(memory, builder, size);

		if (made == 0)
			return false;
		builder->chunk = made;
		builder->chunk_left = builder->chunk_size = size;
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
		uint64_t	padded;
		const char *entry;

		if (slot == 0)
			return NO_CODE;
		if (static_cast<uint32_t>(slot >> 32) != hash)
			continue;
		entry = added_entry(memory, builder, static_cast<uint32_t>(slot) - 1, &padded);
		if (padded == dictionary_padded(len) && memcmp(entry, image, len) == 0)
			return static_cast<int32_t>(static_cast<uint32_t>(slot) - 1);
	}
}

int32_t
builder_insert(const BuilderMemory &memory, DictionaryBuilder *builder, const char *image, uint32_t len, uint32_t hash)
{
	uint64_t	padded = dictionary_padded(len);
	uint64_t   *slots;
	uint32_t	mask;
	uint32_t	i;

	if (!make_room(memory, builder, padded))
		return NO_CODE;

	/* the bytes, then the place, then the slot by which they are found */
	memcpy(memory.base + builder->chunk, image, len);
	memset(memory.base + builder->chunk + len, 0, padded - len);
	*at<uint64_t>(memory.base, directory_word(builder, builder->nadded)) = builder->chunk | padded / DICTIONARY_ALIGN << PLACE_BITS;
	slots = at<uint64_t>(memory.base, slots_at(builder->slots));
	mask = slots_count(builder->slots) - 1;
	for (i = hash & mask; slots[i] != 0;)
		i = (i + 1) & mask;
	__atomic_store_n(&slots[i], dictionary_slot(hash, builder->nadded), __ATOMIC_RELEASE);

	builder->chunk += padded;
	builder->chunk_left -= padded;
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

	if (builder->base != 0)
	{
		const Dictionary *base = at<Dictionary>(memory, builder->base);

		for (uint32_t i = 0; i < base->nentries; i++)
			dictionary_append(made, dictionary_entry(base, i), dictionary_entry(base, i + 1) - dictionary_entry(base, i));
		dictionary_index_all(made, dictionary_at<uint64_t>(base, base->slots), base->nslots, 0);
	}
	for (uint32_t i = 0; i < builder->nadded; i++)
	{
		uint64_t	padded;
		const char *entry = added_entry(memory, builder, i, &padded);

		dictionary_append(made, entry, padded);
	}
	if (builder->nadded > 0)
		dictionary_index_all(made, at<uint64_t>(memory, slots_at(builder->slots)), slots_count(builder->slots), builder->base_entries);
	made->attlen = builder->attlen;
	made->byval = builder->byval;
	made->align = static_cast<uint8_t>(builder->align);
	return made;
}

}  // namespace gpuvm
