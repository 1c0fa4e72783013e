/*
 * dictionary.h: the values of a column as codes: an immutable, relocatable blob.
 *
 * An entry is a value's image, which a Datum can point at as it lies there: a
 * varlena uncompressed and with a 4-byte header, another by-reference type as it
 * is, a by-value type as attlen bytes and zeroes up to 8. It begins at a multiple
 * of DICTIONARY_ALIGN and is padded with zeroes to one. Equal images have one
 * code; whether equal values have equal images is up to the type.
 *
 * Dictionaries of one family are prefixes of one another: a code never changes
 * its value, so tablets are shared by versions with dictionaries of any length.
 *
 * Three areas behind the header, in this order: offsets, slots, entries. Every
 * offset is in bytes from the blob's first, which is 64-byte aligned.
 */
#ifndef GPUVM_TABLET_DICTIONARY_H
#define GPUVM_TABLET_DICTIONARY_H

#include <cstdint>
#include <cstring>

namespace gpuvm {

constexpr uint32_t DICTIONARY_MAGIC = 0x44565047;	/* "GPVD" */
constexpr uint32_t DICTIONARY_ALIGN = 8;
constexpr uint32_t DICTIONARY_BLOCK_ALIGN = 64;	/* of the blob */
constexpr int32_t NO_CODE = -1;

struct Dictionary
{
	uint32_t	magic;
	uint32_t	nentries;
	uint32_t	nslots;			/* a power of two, more than nentries */
	int16_t		attlen;			/* the type's, and its by-value and alignment, as in pg_attribute */
	uint8_t		byval;
	uint8_t		align;
	uint32_t	refs;			/* versions that hold this one or another of its block: counted by backends, atomically, in the block's
								 * first; no part of its content */
	uint32_t	ndictionaries;	/* of the block, one after the other at multiples of DICTIONARY_BLOCK_ALIGN: in the first */
	uint64_t	block;			/* arena offset of the memory that it shares with others, and of the first of them */
	uint64_t	size;			/* bytes of the whole blob */
	uint64_t	family;
	uint64_t	serial;			/* unique in the arena's life, as TabletHeader.serial is */
	uint64_t	offsets;		/* offset of uint64[nentries + 1]: where each entry begins, then the end of the last */
	uint64_t	slots;			/* offset of uint64[nslots]: DictionarySlot, open addressing */
	uint64_t	bytes;			/* of all entries */
	uint64_t	grown_from;		/* until its version is seen by all: serial of the dictionary that this is a longer one of, or DICTIONARY_FIRST */
	uint32_t	checksum;		/* of what follows the header (store/checksum.h) */
	uint32_t	header_checksum;	/* of the header but for refs: again when its version is seen by all, as family and grown_from change then */
};
static_assert(sizeof(Dictionary) == 96, "part of the format");

constexpr uint64_t DICTIONARY_PUBLISHED = 0;
constexpr uint64_t DICTIONARY_FIRST = ~uint64_t{0};

template <typename T>
inline const T *
dictionary_at(const Dictionary *d, uint64_t offset)
{
	return reinterpret_cast<const T *>(reinterpret_cast<const char *>(d) + offset);
}

inline const char *
dictionary_entry(const Dictionary *d, uint32_t code)
{
	return reinterpret_cast<const char *>(d) + dictionary_at<uint64_t>(d, d->offsets)[code];
}

inline uint64_t
dictionary_padded(uint64_t len)
{
	return (len + DICTIONARY_ALIGN - 1) & ~uint64_t{DICTIONARY_ALIGN - 1};
}

/* -- hashing ------------------------------------------------------------------------ */

inline uint64_t
dictionary_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = static_cast<unsigned __int128>(a) * b;

	return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

/* Of an image: 16 bytes a step; the rest, as two words that may overlap, and the length end it. */
inline uint32_t
dictionary_hash(const char *image, uint32_t len)
{
	uint64_t	h = 0x9e3779b97f4a7c15ull;
	uint64_t	a = 0;
	uint64_t	b = 0;
	uint32_t	left = len;

	for (; left > 16; image += 16, left -= 16)
	{
		memcpy(&a, image, 8);
		memcpy(&b, image + 8, 8);
		h = dictionary_mix(a ^ 0xa0761d6478bd642full, b ^ h);
	}
	a = b = 0;
	if (left >= 8)
	{
		memcpy(&a, image, 8);
		memcpy(&b, image + left - 8, 8);
	}
	else if (left >= 4)
	{
		uint32_t	low;
		uint32_t	high;

		memcpy(&low, image, 4);
		memcpy(&high, image + left - 4, 4);
		a = low;
		b = high;
	}
	else
		for (uint32_t i = 0; i < left; i++)
			a = a << 8 | static_cast<unsigned char>(image[i]);
	h = dictionary_mix(a ^ 0xe7037ed1a0b428dbull, b ^ h);
	return static_cast<uint32_t>(dictionary_mix(h ^ len, 0x8ebc6af09c88c6e3ull));
}

/*
 * A slot: the hash above, code + 1 below; 0 is free. The hash finds its place in a
 * table of any size, so that tables grow without a look at the entries.
 */
inline uint64_t
dictionary_slot(uint32_t hash, uint32_t code)
{
	return uint64_t{hash} << 32 | (code + 1);
}

inline void
dictionary_put(uint64_t *slots, uint32_t nslots, uint64_t slot)
{
	uint32_t	at = static_cast<uint32_t>(slot >> 32) & (nslots - 1);

	while (slots[at] != 0)
		at = (at + 1) & (nslots - 1);
	slots[at] = slot;
}

/* How many slots for so many entries: a power of two, at most two thirds of them taken. */
inline uint32_t
dictionary_nslots(uint32_t nentries)
{
	uint32_t	nslots = 16;

	while (nslots / 3 * 2 < nentries)
		nslots *= 2;
	return nslots;
}

inline int32_t
dictionary_find_hashed(const Dictionary *d, const char *image, uint32_t len, uint32_t hash)
{
	const uint64_t *slots = dictionary_at<uint64_t>(d, d->slots);
	const uint64_t *offsets = dictionary_at<uint64_t>(d, d->offsets);

	for (uint32_t at = hash & (d->nslots - 1); slots[at] != 0; at = (at + 1) & (d->nslots - 1))
	{
		uint32_t	code = static_cast<uint32_t>(slots[at]) - 1;

		if (static_cast<uint32_t>(slots[at] >> 32) == hash &&
			offsets[code + 1] - offsets[code] == dictionary_padded(len) &&
			memcmp(reinterpret_cast<const char *>(d) + offsets[code], image, len) == 0)
			return static_cast<int32_t>(code);
	}
	return NO_CODE;
}

/* The code of an image, NO_CODE if it is none of the entries. */
inline int32_t
dictionary_find(const Dictionary *d, const char *image, uint32_t len)
{
	return dictionary_find_hashed(d, image, len, dictionary_hash(image, len));
}

/* -- making one --------------------------------------------------------------------- */

/* Bytes of a dictionary of so many entries whose padded images take so much. */
inline uint64_t
dictionary_size(uint32_t nentries, uint64_t bytes)
{
	return sizeof(Dictionary) + (uint64_t{nentries} + 1) * sizeof(uint64_t) + uint64_t{dictionary_nslots(nentries)} * sizeof(uint64_t) +
		bytes;
}

/*
 * Lays out an empty dictionary in dictionary_size() bytes; then exactly nentries
 * calls of dictionary_append fill it, whose padded images take exactly `bytes`, and
 * dictionary_index says how each is found. Type, family and serial are the
 * caller's to set, and the block.
 */
inline Dictionary *
dictionary_begin(char *to, uint32_t nentries, uint64_t bytes)
{
	Dictionary *d = reinterpret_cast<Dictionary *>(to);
	uint32_t	nslots = dictionary_nslots(nentries);

	memset(static_cast<void *>(d), 0, sizeof(*d));
	d->magic = DICTIONARY_MAGIC;
	d->nslots = nslots;
	d->size = dictionary_size(nentries, bytes);
	d->offsets = sizeof(Dictionary);
	d->slots = d->offsets + (uint64_t{nentries} + 1) * sizeof(uint64_t);
	d->bytes = bytes;
	memset(to + d->slots, 0, uint64_t{nslots} * sizeof(uint64_t));
	*reinterpret_cast<uint64_t *>(to + d->offsets) = d->slots + uint64_t{nslots} * sizeof(uint64_t);
	return d;
}

/* The next entry, which none so far equals: its image with the padding. */
inline void
dictionary_append(Dictionary *d, const char *image, uint64_t padded)
{
	char	   *base = reinterpret_cast<char *>(d);
	uint64_t   *offsets = reinterpret_cast<uint64_t *>(base + d->offsets);

	memcpy(base + offsets[d->nentries], image, padded);
	offsets[d->nentries + 1] = offsets[d->nentries] + padded;
	d->nentries++;
}

inline void
dictionary_index(Dictionary *d, uint32_t hash, uint32_t code)
{
	dictionary_put(reinterpret_cast<uint64_t *>(reinterpret_cast<char *>(d) + d->slots), d->nslots, dictionary_slot(hash, code));
}

/* The same for all slots of another dictionary. */
inline void
dictionary_index_all(Dictionary *d, const uint64_t *slots, uint32_t nslots)
{
	for (uint32_t i = 0; i < nslots; i++)
		if (slots[i] != 0)
			dictionary_put(reinterpret_cast<uint64_t *>(reinterpret_cast<char *>(d) + d->slots), d->nslots, slots[i]);
}

}  // namespace gpuvm

#endif
