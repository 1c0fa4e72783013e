/*
 * dictionary_builder.h: values into codes while several processes meet them.
 *
 * Nearly all that they do is look up, so a look-up takes no lock: it reads a table
 * of slots, open addressing, that is never shrunk, moved or freed while the builder
 * is used. A slot is written once, from 0 to (hash, place), when its entry is complete,
 * with release order; who reads it with acquire order sees the entry: its code and its
 * bytes, which never change or move either. Memory comes in segments that stay where
 * they are, each about as large as all before it.
 *
 * Who misses takes the builder's lock, which is its user's, and inserts, which looks
 * again first. A full table is replaced by one of twice the size: the new one is
 * filled (from the old one's slots alone, which have the hashes), then published by
 * one word that holds its place and its size. Who still reads the old one may miss
 * what came later, takes the lock, and finds it then. So a miss costs a lock, a hit
 * never does, and a wrong hit cannot be.
 *
 * Everything is at offsets from an address that each process has for itself.
 */
#ifndef GPUVM_TABLET_DICTIONARY_BUILDER_H
#define GPUVM_TABLET_DICTIONARY_BUILDER_H

#include "tablet/dictionary.h"

namespace gpuvm {

/* What a dictionary may have at most, its base included. */
constexpr uint32_t DICTIONARY_MAX_ENTRIES = 1000000;
constexpr uint64_t DICTIONARY_MAX_BYTES = 64 * 1024 * 1024;	/* of padded images */
constexpr uint32_t DICTIONARY_MAX_IMAGE = 8192;

/* Every segment begins at a multiple of it, and has a multiple of it. */
constexpr uint64_t BUILDER_PAGE = 65536;

constexpr uint64_t BUILDER_MAX_CHUNK = 4 * 1024 * 1024;

/*
 * The first; slots and chunks by doubling; then chunks of the largest size, for images and what is before each, of which
 * each chunk may lose one's room.
 */
constexpr int BUILDER_MAX_SEGMENTS = 1 + 12 + 8 +
	(DICTIONARY_MAX_BYTES + uint64_t{DICTIONARY_MAX_ENTRIES} * 8) / (BUILDER_MAX_CHUNK - DICTIONARY_MAX_IMAGE - 8) + 1;

/* All zeroes: an empty one. */
struct alignas(64) DictionaryBuilder
{
	/* what it goes on from: its codes count from there */
	uint64_t	base;			/* offset of the Dictionary, 0: none; the user has a reference to it */
	uint64_t	base_bytes;
	uint32_t	base_entries;

	/* of the user */
	int16_t		attlen;
	bool		byval;
	char		align;
	bool		starved;		/* memory was short for a value */
	bool		refreshes;		/* what cannot be put in is the value's trouble, not the column's */
	uint32_t	lock;
	double		rows;

	/* read by all */
	alignas(64) uint32_t failure;	/* atomic; of the user */
	uint64_t	slots;			/* atomic: offset of uint64[], and log2 of how many below BUILDER_PAGE; 0: nothing was put in */
	uint64_t	segments[BUILDER_MAX_SEGMENTS];	/* offsets: to be freed with the builder */

	/* under the lock */
	alignas(64) uint32_t nadded;
	int32_t		nsegments;
	uint64_t	bytes;			/* of padded images */
	int32_t		chunk;			/* the last segment for entries, what is used of it, and its size */
	uint64_t	chunk_used;
	uint64_t	chunk_size;
};

struct BuilderMemory
{
	char	   *base;
	uint64_t	(*alloc) (uint64_t size);	/* offset of memory, a multiple of BUILDER_PAGE; 0: there is none */
};

/* The code among the additions, counted from 0. NO_CODE: another process may be putting it in. */
int32_t		builder_find(const char *memory, const DictionaryBuilder *builder, const char *image, uint32_t len, uint32_t hash);

/* Puts in what is not in it (builder_find under the lock, which the caller has). NO_CODE: there is no memory, and nothing has changed. */
int32_t		builder_insert(const BuilderMemory &memory, DictionaryBuilder *builder, const char *image, uint32_t len, uint32_t hash);

/* Bytes of the dictionary of all entries, and that dictionary; nobody else may use the builder. As by dictionary_begin. */
uint64_t	builder_size(const DictionaryBuilder *builder);
Dictionary *builder_write(const char *memory, const DictionaryBuilder *builder, char *to);

}  // namespace gpuvm

#endif
