/*
 * dictionary.cc: the values that an import meets become codes.
 *
 * Every process of an import meets every column's values, so they fill one
 * dictionary together, and a value has one code wherever it is met. Nearly all that
 * they do is look up, so a look-up takes no lock: it reads a table of slots, open
 * addressing, that is never shrunk, moved or freed while the import lasts. A slot
 * is written once, from 0 to (hash, code), when its entry is complete, with release
 * order; who reads it with acquire order sees the entry, the entry's place in the
 * directory and its bytes, which never change or move either. Entries lie in
 * segments of the arena, each as large as all before it.
 *
 * Who misses takes the builder's lock, looks again, and inserts. A full table is
 * replaced by one of twice the size: the new one is filled first (from the old one's
 * slots alone, which have the hashes), then published by one word that holds its
 * place and its size. Who still reads the old one may miss what came later, takes the
 * lock, and finds it then. So a miss costs a lock, a hit never does, and a wrong hit
 * cannot be.
 *
 * A builder lies in the arena, at an offset that the processes share. Its lock is
 * one of a few in PostgreSQL's own shared memory, where gpuvmd cannot damage it;
 * builders that have the same lock only wait for one another. Memory is allocated
 * under the lock (arena_alloc takes the arena's, a leaf, and never raises) and is
 * listed in the builder before the lock is released, so an abort finds it. Nothing
 * raises under the lock; what is to be raised is raised after it.
 *
 * A builder that goes on from a dictionary looks there first, and counts its own
 * codes from that one's end: sealed, it is a longer one of the same family. Codes are
 * in the order of insertion, which is another one each time that processes share
 * the work.
 */
#include "store/dictionary.h"

#include "pg/shmem.h"
#include "store/internal.h"

extern "C" {
#include "access/detoast.h"
#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
}

namespace gpuvm {

/* The first segment: slots, directory, and entries in what is left. */
constexpr uint32 FIRST_SLOTS = 1024;
constexpr uint32 FIRST_ENTRIES = 1024;
constexpr uint64 FIRST_SEGMENT = ARENA_PAGE;
constexpr uint64 MAX_CHUNK = 4 * 1024 * 1024;

/* A value of another type than these is in place, or is detoasted. */
constexpr Size IMAGE_MEMORY = VARHDRSZ + VARATT_SHORT_MAX;
static_assert(IMAGE_MEMORY >= sizeof(Datum), "by-value types are as long as a Datum");

/* Directory segment k has FIRST_ENTRIES << k entries. */
constexpr int DIRECTORY_SEGMENTS = 11;
static_assert((uint64{FIRST_ENTRIES} << DIRECTORY_SEGMENTS) - FIRST_ENTRIES >= DICTIONARY_MAX_ENTRIES, "room for all codes");

/* Slots and directory by doubling, chunks by doubling up to MAX_CHUNK. */
constexpr int MAX_SEGMENTS = 1 + 12 + DIRECTORY_SEGMENTS + 8 + 2 * DICTIONARY_MAX_BYTES / MAX_CHUNK;

/* When nine of ten values of the first so many entries were new, a table of more rows than this has too many. */
constexpr uint32 SAMPLE_ENTRIES = 256 * 1024;
constexpr double SAMPLE_ROWS = DICTIONARY_MAX_ENTRIES / 0.9;

struct alignas(64) DictionaryBuilder
{
	/* set when it is taken into use */
	bool		used;
	bool		byval;
	char		align;
	int16		attlen;
	uint16		lock;
	uint64		base;			/* arena offset of the Dictionary that it goes on from, 0: none */
	uint32		base_entries;
	uint64		base_bytes;
	double		rows;
	uint64		sealed;			/* arena offset, 0: not yet, or a version's */

	/* read by all */
	alignas(64) pg_atomic_uint32 failure;
	uint64		slots;			/* atomic: arena offset, a multiple of ARENA_PAGE, and log2 of how many */
	uint64		directory[DIRECTORY_SEGMENTS];	/* arena offsets of uint64[]: entry's place, and its padded size in DICTIONARY_ALIGN */

	/* under the lock */
	alignas(64) uint32 nadded;
	uint64		bytes;			/* of padded images */
	uint64		chunk;			/* arena offset of what is free of the last chunk */
	uint64		chunk_left;
	uint64		chunk_size;
	int			nsegments;
	uint64		segments[MAX_SEGMENTS];
};

const char *
dictionary_failure_text(DictionaryFailure failure)
{
	switch (failure)
	{
		case DictionaryFailure::Expected:
		case DictionaryFailure::TooMany: return "it has too many distinct values";
		case DictionaryFailure::TooLarge: return "its distinct values are too large together";
		case DictionaryFailure::TooLong: return "a value is too long";
		case DictionaryFailure::None: break;
	}
	return "";
}

DictionaryFailure
dictionary_outlook(Relation rel, AttrNumber attnum)
{
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(RelationGetRelid(rel)), Int16GetDatum(attnum),
										BoolGetDatum(false));
	Form_pg_statistic statistic;
	double		distinct;
	double		bytes;

	if (!HeapTupleIsValid(tuple))
		return DictionaryFailure::None;
	statistic = reinterpret_cast<Form_pg_statistic>(GETSTRUCT(tuple));
	distinct = statistic->stadistinct;
	if (distinct < 0)
		distinct *= -Max(rel->rd_rel->reltuples, 0);
	bytes = distinct * statistic->stawidth;
	ReleaseSysCache(tuple);
	return distinct > DICTIONARY_MAX_ENTRIES || bytes > DICTIONARY_MAX_BYTES ? DictionaryFailure::Expected : DictionaryFailure::None;
}

/* -- images ------------------------------------------------------------------------ */

static char *
image_memory(ImageBuffer *buffer)
{
	if (buffer->made == NULL)
		buffer->made = static_cast<char *>(palloc(IMAGE_MEMORY));
	return buffer->made;
}

bool
dictionary_image(ImageBuffer *buffer, Datum value, int16 attlen, bool byval, const char **image, uint32 *len)
{
	struct varlena *packed;
	Size		size;

	if (byval)
	{
		char	   *to = image_memory(buffer);

		memset(to, 0, sizeof(Datum));
		store_att_byval(to, value, attlen);
		*image = to;
		*len = sizeof(Datum);
		return true;
	}
	*image = DatumGetPointer(value);
	if (attlen > 0)
	{
		*len = attlen;
		return true;
	}

	packed = reinterpret_cast<struct varlena *>(DatumGetPointer(value));
	if (VARATT_IS_SHORT(packed))
	{
		char	   *to = image_memory(buffer);

		*len = VARSIZE_SHORT(packed) - VARHDRSZ_SHORT + VARHDRSZ;
		SET_VARSIZE(to, *len);
		memcpy(to + VARHDRSZ, VARDATA_SHORT(packed), *len - VARHDRSZ);
		*image = to;
		return true;
	}
	if (!VARATT_IS_EXTENDED(packed))
	{
		*len = VARSIZE(packed);
		return *len <= DICTIONARY_MAX_IMAGE;
	}
	/* by its header: what is too long is not read */
	size = toast_raw_datum_size(value);
	if (size > DICTIONARY_MAX_IMAGE)
		return false;
	if (buffer->detoasted != NULL)
		pfree(buffer->detoasted);
	buffer->detoasted = reinterpret_cast<char *>(detoast_attr(packed));
	*image = buffer->detoasted;
	*len = VARSIZE(buffer->detoasted);
	return true;
}

/* -- a builder ------------------------------------------------------------------------ */

uint64
builders_begin(uint32 ncolumns)
{
	uint64		size = sizeof(DictionaryBuilder) * Max(ncolumns, 1);
	uint64		builders = arena_alloc(size);

	if (builders == 0)
		return 0;
	memset(arena_at<char>(builders), 0, size);
	manifest_builders(builders, ncolumns);
	return builders;
}

DictionaryBuilder *
builder_at(uint64 builders, uint32 column)
{
	return arena_at<DictionaryBuilder>(builders) + column;
}

void
builder_start(DictionaryBuilder *builder, int16 attlen, bool byval, char align, uint64 base, double rows)
{
	static uint32 next_lock = 0;

	builder->used = true;
	builder->byval = byval;
	builder->align = align;
	builder->attlen = attlen;
	builder->lock = static_cast<uint16>(static_cast<uint32>(MyProcPid) + next_lock++) % DICTIONARY_LOCKS;
	builder->base = base;
	builder->rows = rows;
	if (base != 0)
	{
		builder->base_entries = arena_at<Dictionary>(base)->nentries;
		builder->base_bytes = arena_at<Dictionary>(base)->bytes;
	}
	pg_atomic_init_u32(&builder->failure, static_cast<uint32>(DictionaryFailure::None));
}

DictionaryFailure
builder_failure(const DictionaryBuilder *builder)
{
	return static_cast<DictionaryFailure>(pg_atomic_read_u32(const_cast<pg_atomic_uint32 *>(&builder->failure)));
}

void
builder_fail(DictionaryBuilder *builder, DictionaryFailure failure)
{
	pg_atomic_write_u32(&builder->failure, static_cast<uint32>(failure));
}

void
writer_init(DictionaryWriter *writer, DictionaryBuilder *builder)
{
	memset(writer, 0, sizeof(*writer));
	writer->builder = builder;
	writer->base = builder->base != 0 ? arena_at<Dictionary>(builder->base) : NULL;
}

/* The word `slots`: where they are, and how many. */
static inline uint64 *
slots_of(uint64 word)
{
	return arena_at<uint64>(word & ~uint64{ARENA_PAGE - 1});
}

static inline uint32
nslots_of(uint64 word)
{
	return uint32{1} << (word % ARENA_PAGE);
}

/* Where the directory has an entry. */
static inline uint64 *
directory_place(const DictionaryBuilder *builder, uint32 added)
{
	uint32		at = added + FIRST_ENTRIES;
	int			segment = 31 - __builtin_clz(at / FIRST_ENTRIES);

	return arena_at<uint64>(builder->directory[segment]) + (at - (FIRST_ENTRIES << segment));
}

static inline const char *
added_entry(uint64 place, uint64 *padded)
{
	*padded = (place >> 48) * DICTIONARY_ALIGN;
	return arena_at<char>(place & ((uint64{1} << 48) - 1));
}

/* The code among the additions, counted from 0; NO_CODE if the table that is read has none. */
static inline int32
find_added(const DictionaryBuilder *builder, const char *image, uint32 len, uint32 hash)
{
	uint64		word = __atomic_load_n(&builder->slots, __ATOMIC_ACQUIRE);
	const uint64 *slots = slots_of(word);
	uint32		mask = nslots_of(word) - 1;

	if (word == 0)
		return NO_CODE;
	for (uint32 at = hash & mask;; at = (at + 1) & mask)
	{
		uint64		slot = __atomic_load_n(&slots[at], __ATOMIC_ACQUIRE);
		uint64		padded;
		const char *entry;

		if (slot == 0)
			return NO_CODE;
		if (static_cast<uint32>(slot >> 32) != hash)
			continue;
		entry = added_entry(*directory_place(builder, static_cast<uint32>(slot) - 1), &padded);
		if (padded == dictionary_padded(len) && memcmp(entry, image, len) == 0)
			return static_cast<int32>(static_cast<uint32>(slot) - 1);
	}
}

/* -- inserting, under the builder's lock ------------------------------------------------ */

/* Memory that is the builder's until the import ends; 0 when it is short. */
static uint64
take_segment(DictionaryBuilder *builder, uint64 size)
{
	uint64		offset = arena_alloc(size);

	Assert(builder->nsegments < MAX_SEGMENTS);
	if (offset != 0)
		builder->segments[builder->nsegments++] = offset;
	return offset;
}

static bool
first_segment(DictionaryBuilder *builder)
{
	uint64		segment = take_segment(builder, FIRST_SEGMENT);
	uint64		used = (FIRST_SLOTS + FIRST_ENTRIES) * sizeof(uint64);

	if (segment == 0)
		return false;
	memset(arena_at<char>(segment), 0, FIRST_SLOTS * sizeof(uint64));
	builder->directory[0] = segment + FIRST_SLOTS * sizeof(uint64);
	builder->chunk = segment + used;
	builder->chunk_left = FIRST_SEGMENT - used;
	builder->chunk_size = FIRST_SEGMENT;
	__atomic_store_n(&builder->slots, segment | static_cast<uint64>(__builtin_ctz(FIRST_SLOTS)), __ATOMIC_RELEASE);
	return true;
}

static bool
grow_slots(DictionaryBuilder *builder)
{
	uint64		word = builder->slots;
	const uint64 *old = slots_of(word);
	uint32		nold = nslots_of(word);
	uint64		made = take_segment(builder, uint64{nold} * 2 * sizeof(uint64));

	if (made == 0)
		return false;
	memset(arena_at<char>(made), 0, uint64{nold} * 2 * sizeof(uint64));
	for (uint32 i = 0; i < nold; i++)
		if (old[i] != 0)
			dictionary_put(arena_at<uint64>(made), nold * 2, old[i]);
	__atomic_store_n(&builder->slots, made | (word % ARENA_PAGE + 1), __ATOMIC_RELEASE);
	return true;
}

/* Room in slots, directory and chunk for one more entry. */
static bool
make_room(DictionaryBuilder *builder, uint64 padded)
{
	int			segment;

	if (builder->slots == 0 && !first_segment(builder))
		return false;
	if (builder->nadded >= nslots_of(builder->slots) / 3 * 2 && !grow_slots(builder))
		return false;
	segment = 31 - __builtin_clz((builder->nadded + FIRST_ENTRIES) / FIRST_ENTRIES);
	if (builder->directory[segment] == 0)
	{
		uint64		made = take_segment(builder, (uint64{FIRST_ENTRIES} << segment) * sizeof(uint64));

		if (made == 0)
			return false;
		builder->directory[segment] = made;
	}
	if (padded > builder->chunk_left)
	{
		uint64		size = Min(builder->chunk_size * 2, MAX_CHUNK);
		uint64		made = take_segment(builder, size);

		if (made == 0)
			return false;
		builder->chunk = made;
		builder->chunk_left = builder->chunk_size = size;
	}
	return true;
}

/* Has the writer seen enough to know that the table has too many values? */
static bool
hopeless(const DictionaryWriter *writer)
{
	return writer->builder->nadded == SAMPLE_ENTRIES && writer->builder->rows > SAMPLE_ROWS &&
		writer->inserted > 0.9 * writer->calls;
}

/* Its code among the additions; NO_CODE with *failure, which None says that memory is short. */
static int32
insert_locked(DictionaryWriter *writer, const char *image, uint32 len, uint32 hash, DictionaryFailure *failure)
{
	DictionaryBuilder *builder = writer->builder;
	uint64		padded = dictionary_padded(len);
	int32		code;
	uint64		word;
	uint64	   *slots;
	uint32		mask;
	uint32		at;

	*failure = builder_failure(builder);
	if (*failure != DictionaryFailure::None)
		return NO_CODE;
	code = find_added(builder, image, len, hash);
	if (code != NO_CODE)
		return code;
	if (builder->base_entries + builder->nadded >= DICTIONARY_MAX_ENTRIES || hopeless(writer))
		*failure = DictionaryFailure::TooMany;
	else if (builder->base_bytes + builder->bytes + padded > DICTIONARY_MAX_BYTES)
		*failure = DictionaryFailure::TooLarge;
	if (*failure != DictionaryFailure::None || !make_room(builder, padded))
		return NO_CODE;

	/* the bytes, then the place, then the slot by which they are found */
	memset(arena_at<char>(builder->chunk + padded - DICTIONARY_ALIGN), 0, DICTIONARY_ALIGN);
	memcpy(arena_at<char>(builder->chunk), image, len);
	*directory_place(builder, builder->nadded) = builder->chunk | padded / DICTIONARY_ALIGN << 48;
	word = builder->slots;
	slots = slots_of(word);
	mask = nslots_of(word) - 1;
	for (at = hash & mask; slots[at] != 0;)
		at = (at + 1) & mask;
	__atomic_store_n(&slots[at], dictionary_slot(hash, builder->nadded), __ATOMIC_RELEASE);

	builder->chunk += padded;
	builder->chunk_left -= padded;
	builder->bytes += padded;
	writer->inserted++;
	return static_cast<int32>(builder->nadded++);
}

int32
builder_code(DictionaryWriter *writer, const char *image, uint32 len)
{
	DictionaryBuilder *builder = writer->builder;
	uint32		hash = dictionary_hash(image, len);
	DictionaryFailure failure;
	int32		code;

	if (writer->base != NULL)
	{
		code = dictionary_find_hashed(writer->base, image, len, hash);
		if (code != NO_CODE)
			return code;
	}
	writer->calls++;
	code = find_added(builder, image, len, hash);
	if (code == NO_CODE)
	{
		if (builder_failure(builder) != DictionaryFailure::None)
			return NO_CODE;
		LWLockAcquire(dictionary_lock(builder->lock), LW_EXCLUSIVE);
		code = insert_locked(writer, image, len, hash, &failure);
		LWLockRelease(dictionary_lock(builder->lock));
		if (code == NO_CODE)
		{
			if (writer->base == NULL && failure == DictionaryFailure::None)
				raise_memory_short();
			if (writer->base == NULL)
				builder_fail(builder, failure);
			return NO_CODE;
		}
	}
	return static_cast<int32>(builder->base_entries) + code;
}

/* -- the dictionary ------------------------------------------------------------------------ */

uint64
builder_seal(DictionaryBuilder *builder)
{
	const Dictionary *base = builder->base != 0 ? arena_at<Dictionary>(builder->base) : NULL;
	uint32		nentries = builder->base_entries + builder->nadded;
	uint64		bytes = builder->base_bytes + builder->bytes;
	Dictionary *made;
	uint64		offset;

	if (base != NULL && builder->nadded == 0)
		return builder->base;
	offset = arena_alloc(dictionary_size(nentries, bytes));
	if (offset == 0)
		return 0;
	builder->sealed = offset;
	made = dictionary_begin(arena_at<char>(offset), nentries, bytes);
	made->attlen = builder->attlen;
	made->byval = builder->byval;
	made->align = static_cast<uint8_t>(builder->align);
	made->serial = arena_next_serial();
	made->family = base != NULL ? base->family : made->serial;
	if (base != NULL)
	{
		for (uint32 i = 0; i < base->nentries; i++)
			dictionary_append(made, dictionary_entry(base, i), dictionary_entry(base, i + 1) - dictionary_entry(base, i));
		dictionary_index_all(made, dictionary_at<uint64_t>(base, base->slots), base->nslots, 0);
	}
	for (uint32 i = 0; i < builder->nadded; i++)
	{
		uint64		padded;
		const char *entry = added_entry(*directory_place(builder, i), &padded);

		dictionary_append(made, entry, padded);
	}
	if (builder->nadded > 0)
		dictionary_index_all(made, slots_of(builder->slots), nslots_of(builder->slots), builder->base_entries);
	return offset;
}

void
builders_free(uint64 builders, uint32 ncolumns, bool sealed_too)
{
	if (builders == 0)
		return;
	for (uint32 i = 0; i < ncolumns; i++)
	{
		DictionaryBuilder *builder = builder_at(builders, i);

		for (int s = 0; s < builder->nsegments; s++)
			arena_free(builder->segments[s]);
		if (sealed_too)
			arena_free(builder->sealed);
	}
	arena_free(builders);
}

/* -- references ------------------------------------------------------------------------ */

void
dictionary_hold(uint64 dictionary)
{
	if (dictionary != 0)
		__atomic_add_fetch(&arena_at<Dictionary>(dictionary)->refs, 1, __ATOMIC_ACQ_REL);
}

void
dictionary_drop(uint64 dictionary)
{
	if (dictionary != 0 && __atomic_sub_fetch(&arena_at<Dictionary>(dictionary)->refs, 1, __ATOMIC_ACQ_REL) == 0)
		arena_free(dictionary);
}

/* -- one query's ------------------------------------------------------------------------ */

constexpr uint32 LOCAL_SLOTS = 64;
constexpr uint32 LOCAL_ENTRIES = 32;
constexpr Size LOCAL_CHUNK = 8192;
constexpr Size LOCAL_MAX_CHUNK = 1024 * 1024;

static void *
take_local(LocalDictionary *local, Size size)
{
	local->bytes += size;
	return MemoryContextAllocExtended(local->context, size, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
}

LocalDictionary *
local_dictionary(const Dictionary *base)
{
	LocalDictionary *local = static_cast<LocalDictionary *>(palloc0(sizeof(LocalDictionary)));

	local->base = base;
	local->context = CurrentMemoryContext;
	return local;
}

static void
grow_local(LocalDictionary *local)
{
	uint32		nslots = Max(local->nslots * 2, LOCAL_SLOTS);
	uint32		capacity = Max(local->capacity * 2, LOCAL_ENTRIES);
	uint64	   *slots = static_cast<uint64 *>(take_local(local, nslots * sizeof(uint64)));
	const char **entries = static_cast<const char **>(take_local(local, capacity * sizeof(char *)));
	uint32	   *lengths = static_cast<uint32 *>(take_local(local, capacity * sizeof(uint32)));

	for (uint32 i = 0; i < local->nslots; i++)
		if (local->slots[i] != 0)
			dictionary_put(slots, nslots, local->slots[i]);
	if (local->nadded > 0)
	{
		memcpy(entries, local->entries, local->nadded * sizeof(char *));
		memcpy(lengths, local->lengths, local->nadded * sizeof(uint32));
	}
	if (local->slots != NULL)
	{
		pfree(local->slots);
		pfree(local->entries);
		pfree(local->lengths);
		local->bytes -= local->nslots * sizeof(uint64) + local->capacity * (sizeof(char *) + sizeof(uint32));
	}
	local->slots = slots;
	local->entries = entries;
	local->lengths = lengths;
	local->nslots = nslots;
	local->capacity = capacity;
}

int32
local_code(LocalDictionary *local, const char *image, uint32 len)
{
	uint32		hash = dictionary_hash(image, len);
	int32		code = dictionary_find_hashed(local->base, image, len, hash);
	uint64		padded = dictionary_padded(len);

	if (code != NO_CODE)
		return code;
	for (uint32 at = hash; local->nslots > 0; at++)
	{
		uint64		slot = local->slots[at & (local->nslots - 1)];

		if (slot == 0)
			break;
		code = static_cast<int32>(static_cast<uint32>(slot) - 1);
		if (static_cast<uint32>(slot >> 32) == hash && local->lengths[code] == len &&
			memcmp(local->entries[code], image, len) == 0)
			return static_cast<int32>(local->base->nentries) + code;
	}

	if (local->nadded >= DICTIONARY_MAX_ENTRIES || local->bytes + padded > DICTIONARY_MAX_BYTES)
		return NO_CODE;
	if (local->nadded == local->capacity)
		grow_local(local);
	if (padded > local->chunk_left)
	{
		/* as much again as all so far */
		local->chunk_left = Max(Min(local->bytes, LOCAL_MAX_CHUNK), LOCAL_CHUNK);
		local->chunk_left = Max(local->chunk_left, padded);
		local->chunk = static_cast<char *>(take_local(local, local->chunk_left));
	}
	memcpy(local->chunk, image, len);
	local->entries[local->nadded] = local->chunk;
	local->lengths[local->nadded] = len;
	dictionary_put(local->slots, local->nslots, dictionary_slot(hash, local->nadded));
	local->chunk += padded;
	local->chunk_left -= padded;
	return static_cast<int32>(local->base->nentries + local->nadded++);
}

}  // namespace gpuvm
