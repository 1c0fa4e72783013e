/*
 * dictionary.cc: the values that an import meets become codes.
 *
 * Every process of an import meets every column's values, so they fill one builder
 * together, and a value has one code wherever it is met. A look-up takes no lock, an
 * insertion takes the builder's (tablet/dictionary_builder.h says why that is right).
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
#include "store/checksum.h"
#include "store/family.h"
#include "store/internal.h"

extern "C" {
#include "access/detoast.h"
#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
}

namespace gpuvm {

static_assert(BUILDER_PAGE == ARENA_PAGE, "segments begin where the arena's allocations do");

/* A value of another type than these is in place, or is detoasted. */
constexpr Size IMAGE_MEMORY = VARHDRSZ + VARATT_SHORT_MAX;
static_assert(IMAGE_MEMORY >= sizeof(Datum), "by-value types are as long as a Datum");

/* When nine of ten of the first so many values were new ones, a table of so many rows has too many. */
constexpr uint32 SAMPLE_ENTRIES = 256 * 1024;
constexpr double SAMPLE_ROWS = 4.0 * DICTIONARY_MAX_ENTRIES;

const char *
dictionary_failure_text(DictionaryFailure failure)
{
	switch (failure)
	{
		case DictionaryFailure::Expected: return "has more than 1000000 different values, or 64 MB of them, by its statistics";
		case DictionaryFailure::TooMany: return "has more than 1000000 different values";
		case DictionaryFailure::TooLarge: return "has more than 64 MB of different values";
		case DictionaryFailure::TooLong: return "has values of more than 8 kB";
		case DictionaryFailure::NoMemory: return "has different values that take too much of \"gpuvm.memory\"";
		case DictionaryFailure::None: break;
	}
	return "";
}
static_assert(DICTIONARY_MAX_ENTRIES == 1000000 && DICTIONARY_MAX_BYTES == 64 << 20 && DICTIONARY_MAX_IMAGE == 8192, "the texts say so");

DictionaryFailure
dictionary_outlook(Relation rel, AttrNumber attnum, double *rows)
{
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(RelationGetRelid(rel)), Int16GetDatum(attnum),
										BoolGetDatum(false));
	Form_pg_statistic statistic;
	double		distinct;
	double		bytes;

	*rows = 0;
	if (!HeapTupleIsValid(tuple))
	{
		*rows = rel->rd_rel->reltuples;
		return DictionaryFailure::None;
	}
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
	if (VARATT_IS_SHORT(packed) && !VARATT_IS_EXTERNAL(packed))
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

Snapshot
detoast_begin(void)
{
	return ActiveSnapshotSet() ? NULL : RegisterSnapshot(GetLatestSnapshot());
}

void
detoast_end(Snapshot snapshot)
{
	if (snapshot == NULL)
		return;
	UnregisterSnapshot(snapshot);
	/* opening the TOAST table may have taken one */
	InvalidateCatalogSnapshotConditionally();
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

void
builder_start(DictionaryBuilder *builder, Form_pg_attribute att, uint64 base, bool refreshes, double rows)
{
	static uint32 next_lock = 0;

	builder->attlen = att->attlen;
	builder->byval = att->attbyval;
	builder->align = att->attalign;
	builder->lock = (static_cast<uint32>(MyProcPid) + next_lock++) % DICTIONARY_LOCKS;
	builder->base = base;
	builder->refreshes = refreshes;
	builder->rows = rows;
	if (base != 0)
	{
		builder->base_entries = arena_at<Dictionary>(base)->nentries;
		builder->base_bytes = arena_at<Dictionary>(base)->bytes;
	}
	builder_fail(builder, DictionaryFailure::None);
}

DictionaryFailure
builder_failure(const DictionaryBuilder *builder)
{
	return static_cast<DictionaryFailure>(__atomic_load_n(&builder->failure, __ATOMIC_RELAXED));
}

void
builder_fail(DictionaryBuilder *builder, DictionaryFailure failure)
{
	__atomic_store_n(&builder->failure, static_cast<uint32>(failure), __ATOMIC_RELAXED);
}

void
writer_init(DictionaryWriter *writer, DictionaryBuilder *builder)
{
	memset(writer, 0, sizeof(*writer));
	writer->builder = builder;
	writer->base = builder->base != 0 ? arena_at<Dictionary>(builder->base) : NULL;
}

/* Has the writer seen enough to know that the table has too many values? */
static bool
hopeless(const DictionaryWriter *writer)
{
	return writer->builder->nadded == SAMPLE_ENTRIES && writer->builder->rows > SAMPLE_ROWS &&
		writer->inserted > 0.9 * writer->calls;
}

/* Under the lock. NO_CODE with *failure, of which None says that memory is short. */
static int32
insert_locked(DictionaryWriter *writer, const char *image, uint32 len, uint32 hash, DictionaryFailure *failure)
{
	DictionaryBuilder *builder = writer->builder;
	int32		code;

	*failure = builder_failure(builder);
	if (*failure != DictionaryFailure::None)
		return NO_CODE;
	code = builder_find(arena_base(), builder, image, len, hash);
	if (code != NO_CODE)
		return code;
	if (builder->base_entries + builder->nadded >= DICTIONARY_MAX_ENTRIES || hopeless(writer))
		*failure = DictionaryFailure::TooMany;
	else if (builder->base_bytes + builder->bytes + dictionary_padded(len) > DICTIONARY_MAX_BYTES)
		*failure = DictionaryFailure::TooLarge;
	if (*failure != DictionaryFailure::None)
		return NO_CODE;
	code = builder_insert({arena_base(), arena_alloc}, builder, image, len, hash);
	writer->inserted += code != NO_CODE;
	return code;
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
	code = builder_find(arena_base(), builder, image, len, hash);
	if (code == NO_CODE)
	{
		if (builder_failure(builder) != DictionaryFailure::None)
			return NO_CODE;
		LWLockAcquire(dictionary_lock(builder->lock), LW_EXCLUSIVE);
		code = insert_locked(writer, image, len, hash, &failure);
		LWLockRelease(dictionary_lock(builder->lock));
		if (code == NO_CODE)
		{
			if (failure != DictionaryFailure::None)
				builder_fail(builder, failure);
			else if (builder->refreshes)
				builder->starved = true;
			else
				builder_fail(builder, DictionaryFailure::NoMemory);
			return NO_CODE;
		}
	}
	return static_cast<int32>(builder->base_entries) + code;
}

/* -- the dictionary ------------------------------------------------------------------------ */

/* Is it used, and has it a value that its base has not, or no base? */
static bool
makes_dictionary(const DictionaryBuilder *builder)
{
	return builder->attlen != 0 && builder_failure(builder) == DictionaryFailure::None &&
		(builder->base == 0 || builder->nadded > 0);
}

bool
builders_seal(uint64 builders, uint32 ncolumns, uint64 *dictionaries, uint64 *block)
{
	uint64		size = 0;
	uint32		nmade = 0;

	/* where each will be in the block, until it is there */
	for (uint32 i = 0; i < ncolumns; i++)
	{
		const DictionaryBuilder *builder = arena_at<DictionaryBuilder>(builder_offset(builders, i));

		dictionaries[i] = builder_failure(builder) == DictionaryFailure::None ? builder->base : 0;
		if (!makes_dictionary(builder))
			continue;
		dictionaries[i] = size;
		size += TYPEALIGN(DICTIONARY_BLOCK_ALIGN, builder_size(builder));
	}
	*block = size > 0 ? arena_alloc(size) : 0;
	if (*block == 0)
		return size == 0;
	for (uint32 i = 0; i < ncolumns; i++)
	{
		const DictionaryBuilder *builder = arena_at<DictionaryBuilder>(builder_offset(builders, i));
		Dictionary *made;

		if (!makes_dictionary(builder))
			continue;
		dictionaries[i] += *block;
		made = builder_write(arena_base(), builder, arena_at<char>(dictionaries[i]));
		made->block = *block;
		made->serial = arena_next_serial();
		made->family = builder->base != 0 ? arena_at<Dictionary>(builder->base)->family : made->serial;
		made->grown_from = builder->base != 0 ? arena_at<Dictionary>(builder->base)->serial : DICTIONARY_FIRST;
		seal_dictionary(made);
		nmade++;
	}
	arena_at<Dictionary>(*block)->ndictionaries = nmade;
	seal_dictionary_header(arena_at<Dictionary>(*block));
	return true;
}

void
builders_free(uint64 builders, uint32 ncolumns)
{
	if (builders == 0)
		return;
	for (uint32 i = 0; i < ncolumns; i++)
	{
		const DictionaryBuilder *builder = arena_at<DictionaryBuilder>(builder_offset(builders, i));

		for (int32 s = 0; s < builder->nsegments; s++)
			arena_free(builder->segments[s]);
		dictionary_drop(builder->base);
	}
	arena_free(builders);
}

/* -- references ------------------------------------------------------------------------ */

static uint32 *
block_refs(uint64 dictionary)
{
	return &arena_at<Dictionary>(arena_at<Dictionary>(dictionary)->block)->refs;
}

void
dictionary_hold(uint64 dictionary)
{
	if (dictionary != 0)
		__atomic_add_fetch(block_refs(dictionary), 1, __ATOMIC_ACQ_REL);
}

void
dictionary_drop(uint64 dictionary)
{
	uint64		drop[VERSION_MAX_COLS];
	int			ndrop = 0;
	uint64		block;
	uint32	   *refs;
	uint32		n;
	bool		unused = false;

	if (dictionary == 0)
		return;
	block = arena_at<Dictionary>(dictionary)->block;
	refs = block_refs(dictionary);
	n = __atomic_load_n(refs, __ATOMIC_ACQUIRE);
	while (n > 1)
		if (__atomic_compare_exchange_n(refs, &n, n - 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return;
	/* the last reference goes under the lock that others find dictionaries under */
	LWLockAcquire(registry_lock(), LW_EXCLUSIVE);
	if (__atomic_sub_fetch(refs, 1, __ATOMIC_ACQ_REL) == 0)
		unused = families_forget(block, drop, &ndrop);
	LWLockRelease(registry_lock());
	if (unused)
		arena_free(block);
	for (int i = 0; i < ndrop; i++)
		dictionary_drop(drop[i]);
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

static int32
find_hashed(const Dictionary *base, const LocalDictionary *local, const char *image, uint32 len, uint32 hash)
{
	int32		code = base == NULL ? NO_CODE : dictionary_find_hashed(base, image, len, hash);

	if (code != NO_CODE || local == NULL)
		return code;
	for (uint32 at = hash; local->nslots > 0; at++)
	{
		uint64		slot = local->slots[at & (local->nslots - 1)];

		if (slot == 0)
			break;
		code = static_cast<int32>(static_cast<uint32>(slot) - 1);
		if (static_cast<uint32>(slot >> 32) == hash && local->lengths[code] == len &&
			memcmp(local->entries[code], image, len) == 0)
			return static_cast<int32>(local_nentries(base, NULL)) + code;
	}
	return NO_CODE;
}

int32
entries_find(const Dictionary *base, const LocalDictionary *local, const char *image, uint32 len)
{
	return find_hashed(base, local, image, len, dictionary_hash(image, len));
}

int32
local_code(LocalDictionary *local, const char *image, uint32 len)
{
	uint32		hash = dictionary_hash(image, len);
	int32		code = find_hashed(local->base, local, image, len, hash);
	uint64		padded = dictionary_padded(len);

	if (code != NO_CODE)
		return code;
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
