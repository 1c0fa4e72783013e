/*
 * checksum.cc: checksums of tablets, dictionaries and versions.
 *
 * A long array counts as the CRCs of its three thirds: a processor that has an instruction for CRC-32C begins one each
 * cycle, but has the result of each only after three. So it takes half of the time, and an import less than 1% of its.
 */
#include "store/checksum.h"

#ifdef __x86_64__
#include <nmmintrin.h>
#endif

#include "pg/shmem.h"
#include "tablet/build.h"

extern "C" {
#include "port/pg_crc32c.h"
}

namespace gpuvm {

static pg_crc32c
add(pg_crc32c crc, const void *data, uint64 bytes)
{
	COMP_CRC32C(crc, data, bytes);
	return crc;
}

constexpr int STREAMS = 3;
constexpr uint64 LONG_ARRAY = 4096;

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static void
add_side_by_side(pg_crc32c *crcs, const uint64 *data, uint64 words)
{
	uint64		a = crcs[0];
	uint64		b = crcs[1];
	uint64		c = crcs[2];

	for (uint64 i = 0; i < words; i++)
	{
		a = _mm_crc32_u64(a, data[i]);
		b = _mm_crc32_u64(b, data[words + i]);
		c = _mm_crc32_u64(c, data[2 * words + i]);
	}
	crcs[0] = static_cast<pg_crc32c>(a);
	crcs[1] = static_cast<pg_crc32c>(b);
	crcs[2] = static_cast<pg_crc32c>(c);
}
#endif

/* Of an array that is aligned to 8 bytes. */
static pg_crc32c
add_array(pg_crc32c crc, const void *data, uint64 bytes)
{
	const char *at = static_cast<const char *>(data);
	const uint64 words = bytes < LONG_ARRAY ? 0 : bytes / STREAMS / sizeof(uint64);
	const uint64 part = words * sizeof(uint64);
	pg_crc32c	crcs[STREAMS];

	if (words > 0)
	{
		for (int i = 0; i < STREAMS; i++)
			INIT_CRC32C(crcs[i]);
#ifdef __x86_64__
		if (__builtin_cpu_supports("sse4.2"))
			add_side_by_side(crcs, reinterpret_cast<const uint64 *>(at), words);
		else
#endif
			for (int i = 0; i < STREAMS; i++)
				crcs[i] = add(crcs[i], at + i * part, part);
		crc = add(crc, crcs, sizeof(crcs));
	}
	return add(crc, at + STREAMS * part, bytes - STREAMS * part);
}

static pg_crc32c
begin(const void *data, uint64 bytes)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	return add(crc, data, bytes);
}

static uint32
end(pg_crc32c crc)
{
	FIN_CRC32C(crc);
	return crc;
}

static uint32
tablet_checksum(const TabletHeader *tablet)
{
	TabletHeader header = *tablet;
	const uint64 keys = sizeof(TabletHeader) + uint64{header.ncols} * sizeof(ColumnChunk);

	header.refs = 0;
	header.checksum = 0;
	return end(add(begin(&header, sizeof(header)), tablet_at<char>(tablet, keys), tablet_keys_end(tablet) - keys));
}

static uint32
column_checksum(const TabletHeader *tablet, uint32 column)
{
	const ColumnChunk &chunk = tablet_chunks(tablet)[column];
	ColumnChunk meta = chunk;
	pg_crc32c	crc;

	/* as if the tablet lay nowhere yet */
	if (chunk.encoding == Encoding::Variable && variable_bytes(chunk) > 0)
	{
		meta.base -= tablet->place;
		meta.min -= tablet->place;
		meta.max -= tablet->place;
	}
	crc = begin(&meta, sizeof(meta));
	if (chunk.nulls != 0)
		crc = add_array(crc, tablet_at<char>(tablet, chunk.nulls), tablet->padded_rows / 8);
	if (chunk.data != 0)
		crc = add_array(crc, tablet_at<char>(tablet, chunk.data), chunk.data_bytes);
	if (chunk.encoding == Encoding::Variable && variable_bytes(chunk) > 0)
		crc = add_array(crc, tablet_at<char>(tablet, variable_at(tablet, chunk)), variable_bytes(chunk) + VARIABLE_SLACK);
	return end(crc);
}

static uint32
entries_checksum(const Dictionary *dictionary)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	return end(add_array(crc, dictionary + 1, dictionary->size - sizeof(Dictionary)));
}

static uint32
header_checksum(const Dictionary *dictionary)
{
	Dictionary	header = *dictionary;

	header.refs = 0;
	header.header_checksum = 0;
	return end(begin(&header, sizeof(header)));
}

static uint32
version_checksum(const TableVersion *version)
{
	TableVersion header = *version;
	const uint64 hints_end = header.map_buffers + uint64{header.nstamps} * sizeof(uint32);
	pg_crc32c	crc;

	header.checksum = 0;
	crc = begin(&header, sizeof(header));
	crc = add(crc, version + 1, header.map_buffers - sizeof(header));
	return end(add(crc, version_at<char>(version, hints_end), header.size - hints_end));
}

static uint32 *
tablet_checksums(TabletHeader *tablet)
{
	return reinterpret_cast<uint32 *>(reinterpret_cast<char *>(tablet) + tablet->checksums);
}

void
seal_column(TabletHeader *tablet, uint32 column)
{
	tablet_checksums(tablet)[column] = column_checksum(tablet, column);
}

void
seal_tablet(TabletHeader *tablet)
{
	tablet->checksum = tablet_checksum(tablet);
}

void
seal_dictionary(Dictionary *dictionary)
{
	dictionary->checksum = entries_checksum(dictionary);
	seal_dictionary_header(dictionary);
}

void
seal_dictionary_header(Dictionary *dictionary)
{
	dictionary->header_checksum = header_checksum(dictionary);
}

void
seal_version(TableVersion *version)
{
	version->checksum = version_checksum(version);
}

bool
column_is_sealed(const TabletHeader *tablet, uint32 column)
{
	return tablet_at<uint32>(tablet, tablet->checksums)[column] == column_checksum(tablet, column);
}

bool
tablet_is_sealed(const TabletHeader *tablet)
{
	return tablet->checksum == tablet_checksum(tablet);
}

bool
columns_are_sealed(const TabletHeader *tablet)
{
	for (uint32 i = 0; i < tablet->ncols; i++)
		if (!column_is_sealed(tablet, i))
			return false;
	return true;
}

bool
tablets_are_sealed(const TableVersion *version)
{
	const uint64_t *tablets = version_at<uint64_t>(version, version->tablets);

	for (uint32 t = 0; t < version->ntablets; t++)
	{
		const TabletHeader *tablet = arena_at<TabletHeader>(tablets[t]);

		if (check_tablet(tablet, arena_allocated(tablets[t]), tablets[t]) != NULL || !tablet_is_sealed(tablet))
			return false;
	}
	return true;
}

bool
dictionary_header_is_sealed(uint64 offset)
{
	const Dictionary *dictionary = arena_at<Dictionary>(offset);

	return dictionary->magic == DICTIONARY_MAGIC && dictionary->header_checksum == header_checksum(dictionary);
}

bool
dictionary_is_sealed(uint64 offset)
{
	return dictionary_header_is_sealed(offset) && arena_at<Dictionary>(offset)->checksum == entries_checksum(arena_at<Dictionary>(offset));
}

/* It can be read as far as its checksum goes, or is not what it was. */
bool
version_is_sealed(uint64 offset)
{
	const TableVersion *version = arena_at<TableVersion>(offset);
	const uint64 hints = uint64{version->nstamps} * sizeof(uint32);

	return version->magic == VERSION_MAGIC && version->size <= arena_allocated(offset) &&
		version->map_buffers >= sizeof(TableVersion) && version->map_buffers <= version->size &&
		hints <= version->size - version->map_buffers &&
		version->checksum == version_checksum(version);
}

void
report_damage(Relation rel)
{
	ereport(WARNING,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("tablets of table \"%s\" do not match their checksums", RelationGetRelationName(rel)),
			 errdetail("The table is imported anew.")));
}

}  // namespace gpuvm
