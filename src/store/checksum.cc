/* checksum.cc: checksums of tablets, dictionaries and versions. */
#include "store/checksum.h"

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

uint32
tablet_checksum(const TabletHeader *tablet)
{
	TabletHeader header = *tablet;
	const uint64 keys = sizeof(TabletHeader) + uint64{header.ncols} * sizeof(ColumnChunk);
	const uint64 keys_end = header.lps + uint64{header.nlps} * sizeof(uint16);

	header.refs = 0;
	header.checksum = 0;
	return end(add(begin(&header, sizeof(header)), tablet_at<char>(tablet, keys), keys_end - keys));
}

uint32
column_checksum(const TabletHeader *tablet, const ColumnChunk &chunk)
{
	ColumnChunk meta = chunk;
	pg_crc32c	crc;

	meta.checksum = 0;
	crc = begin(&meta, sizeof(meta));
	if (chunk.nulls != 0)
		crc = add(crc, tablet_at<char>(tablet, chunk.nulls), tablet->padded_rows / 8);
	if (chunk.data != 0)
		crc = add(crc, tablet_at<char>(tablet, chunk.data), chunk.data_bytes);
	if (chunk.encoding == Encoding::Variable && variable_bytes(chunk) > 0)
		crc = add(crc, tablet_at<char>(tablet, variable_at(tablet, chunk)), variable_bytes(chunk) + VARIABLE_SLACK);
	return end(crc);
}

uint32
dictionary_checksum(const Dictionary *dictionary)
{
	Dictionary	header = *dictionary;

	header.refs = 0;
	header.ndictionaries = 0;
	header.family = 0;
	header.grown_from = 0;
	header.checksum = 0;
	return end(add(begin(&header, sizeof(header)), dictionary + 1, header.size - sizeof(header)));
}

uint32
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

void
seal_tablet(TabletHeader *tablet)
{
	for (uint32 i = 0; i < tablet->ncols; i++)
		tablet_chunks(tablet)[i].checksum = column_checksum(tablet, tablet_chunks(tablet)[i]);
	tablet->checksum = tablet_checksum(tablet);
}

void
seal_dictionary(Dictionary *dictionary)
{
	dictionary->checksum = dictionary_checksum(dictionary);
}

void
seal_version(TableVersion *version)
{
	version->checksum = version_checksum(version);
}

void
check_seal(Relation rel, uint64 offset)
{
	const TabletHeader *tablet = arena_at<TabletHeader>(offset);
	bool		sealed = check_tablet(tablet, arena_allocated(offset), offset) == NULL &&
		tablet->checksum == tablet_checksum(tablet);

	for (uint32 i = 0; sealed && i < tablet->ncols; i++)
		sealed = tablet_chunks(tablet)[i].checksum == column_checksum(tablet, tablet_chunks(tablet)[i]);
	if (!sealed)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("a tablet of table \"%s\" does not match its checksums", RelationGetRelationName(rel)),
				 errhint("gpuvm.verify() names what is wrong; gpuvm.import() copies the table anew.")));
}

}  // namespace gpuvm
