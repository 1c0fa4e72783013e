/*
 * version.cc: a table version in the making.
 *
 * Memory: tablets are listed in a manifest in the arena from the moment they
 * exist. Until the version is handed to the registry, `building` is what an
 * abort has to free. Parallel workers have ended by then: PostgreSQL ends them
 * before it calls the abort callbacks.
 */
#include "store/internal.h"

#include "pg/shmem.h"
#include "store/checksum.h"
#include "store/dictionary.h"
#include "store/file.h"
#include "tablet/build.h"

namespace gpuvm {

/* What the import or refresh in progress owns in the arena; offsets, 0 when there is none. */
static struct
{
	uint64		manifest;
	uint32		max_tablets;
	uint64		builders;
	uint32		nbuilders;
	uint64		dictionaries;
	uint64		version;
} building;

uint64
manifest_begin(uint32 max_tablets, uint64 more)
{
	uint64		size = uint64{max_tablets} * sizeof(uint64) + more;

	Assert(building.manifest == 0 && building.version == 0);
	building.manifest = arena_alloc(size);
	if (building.manifest == 0)
		return 0;
	memset(arena_at<char>(building.manifest), 0, size);
	building.max_tablets = max_tablets;
	return building.manifest;
}

void
manifest_builders(uint64 builders, uint32 ncolumns)
{
	building.builders = builders;
	building.nbuilders = ncolumns;
}

bool
manifest_seal(VersionColumn *columns)
{
	uint64	   *dictionaries = static_cast<uint64 *>(palloc0(sizeof(uint64) * Max(building.nbuilders, 1)));
	bool		sealed = builders_seal(building.builders, building.nbuilders, dictionaries, &building.dictionaries);

	for (uint32 i = 0; i < building.nbuilders; i++)
		columns[i].dictionary = dictionaries[i];
	pfree(dictionaries);
	return sealed;
}

void
manifest_end(void)
{
	arena_free(building.manifest);
	builders_free(building.builders, building.nbuilders);
	memset(&building, 0, sizeof(building));
}

void
manifest_abandon(void)
{
	if (building.manifest != 0)
	{
		const uint64 *tablets = arena_at<uint64>(building.manifest);

		for (uint32 i = 0; i < building.max_tablets; i++)
			arena_free(tablets[i]);
	}
	/* not free_version: other tablets are not its own yet; but dictionaries that are not are held */
	if (building.version != 0)
	{
		const TableVersion *version = arena_at<TableVersion>(building.version);
		const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);

		for (uint32 i = 0; i < version->ncols; i++)
			if (columns[i].dictionary != 0 && arena_at<Dictionary>(columns[i].dictionary)->block != building.dictionaries)
				dictionary_drop(columns[i].dictionary);
	}
	arena_free(building.version);
	arena_free(building.dictionaries);
	manifest_end();
}

void
import_abandon(void)
{
	manifest_abandon();
	progress_end();
}

void
raise_memory_short(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory for imported tables"),
			 errdetail("%llu of %llu bytes are in use, and %llu are reserved for the results of queries.",
					   static_cast<unsigned long long>(arena_used()), static_cast<unsigned long long>(arena_size()),
					   static_cast<unsigned long long>(arena_reserve())),
			 errhint("Increase \"gpuvm.memory\" or release tables with gpuvm.release().")));
	pg_unreachable();
}

/* Summary of an imported column that no tablet describes: an empty table's. */
static void
summarize_nothing(ColumnSummary *summary, const VersionColumn &column)
{
	memset(summary, 0, sizeof(*summary));
	summary->type = column.type;
	summary->attnum = column.attnum;
	summary->scale = column.scale;
	summary->dictionary = column.dictionary;
	summary->exp_hi = INT16_MIN;
	summary->exp_lo = INT16_MAX;
}

/* Rows of blocks that are served: a tablet may have others, which are dead. */
static uint64
live_rows(const TabletHeader *tablet, const uint64 *served)
{
	const uint32_t *block_rows = tablet_at<uint32_t>(tablet, tablet->block_rows);
	uint64		rows = 0;

	for (uint32 b = 0; b < tablet->nblocks; b++)
		if (served[vm_word_of(tablet->first_block + b)] & vm_word_bit(tablet->first_block + b))
			rows += block_rows[b + 1] - block_rows[b];
	return rows;
}

uint64
make_version(const VersionParts *parts)
{
	uint32		nstamps = vm_pages(parts->nblocks);
	uint64		columns_at = MAXALIGN(sizeof(TableVersion));
	uint64		tablets_at = columns_at + uint64{parts->ncols} * sizeof(ColumnSummary);
	uint64		stamps_at = tablets_at + uint64{parts->ntablets} * sizeof(uint64_t);
	uint64		served_at = stamps_at + uint64{nstamps} * sizeof(uint64_t);
	uint64		page_served_at = served_at + served_size(parts->nblocks);
	uint64		map_buffers_at = page_served_at + uint64{nstamps} * sizeof(uint32_t);
	uint64		signature_at = map_buffers_at + uint64{nstamps} * sizeof(uint32_t);
	uint64		origin_at = MAXALIGN(signature_at + parts->signature.len);
	uint64		masked_at = MAXALIGN(origin_at + sizeof(FileOrigin));
	uint64		size = parts->origin == NULL ? signature_at + parts->signature.len : masked_at + uint64{parts->nmasked} * sizeof(MaskedRows);
	uint64		offset = arena_alloc(size);
	TableVersion *version;
	ColumnSummary *columns;

	if (offset == 0)
		return 0;
	building.version = offset;
	version = arena_at<TableVersion>(offset);
	memset(static_cast<void *>(version), 0, sizeof(*version));
	version->magic = VERSION_MAGIC;
	version->ncols = parts->ncols;
	version->ntablets = parts->ntablets;
	version->nblocks = parts->nblocks;
	version->nstamps = nstamps;
	version->bytes = size;
	version->columns = columns_at;
	version->tablets = tablets_at;
	version->stamps = stamps_at;
	version->served = served_at;
	version->page_served = page_served_at;
	version->map_buffers = map_buffers_at;
	version->signature = signature_at;
	version->signature_len = parts->signature.len;
	version->size = size;
	if (parts->origin != NULL)
	{
		version->origin = origin_at;
		memcpy(arena_at<char>(offset + origin_at), parts->origin, sizeof(FileOrigin));
		version->masked = masked_at;
		version->nmasked = parts->nmasked;
		if (parts->nmasked > 0)
			memcpy(arena_at<char>(offset + masked_at), parts->masked, parts->nmasked * sizeof(MaskedRows));
	}

	memcpy(arena_at<char>(offset + tablets_at), parts->tablets, parts->ntablets * sizeof(uint64));
	memcpy(arena_at<char>(offset + stamps_at), parts->stamps, nstamps * sizeof(uint64));
	memcpy(arena_at<char>(offset + served_at), parts->served, served_size(parts->nblocks));
	for (uint32 i = 0; i < nstamps; i++)
	{
		uint32		served = vm_count(parts->served + Size{i} * VM_WORDS_PER_PAGE, VM_BLOCKS_PER_PAGE);

		arena_at<uint32>(offset + page_served_at)[i] = served;
		version->served_blocks += served;
	}
	memset(arena_at<char>(offset + map_buffers_at), 0, nstamps * sizeof(uint32_t));
	memcpy(arena_at<char>(offset + signature_at), parts->signature.data, parts->signature.len);

	columns = arena_at<ColumnSummary>(offset + columns_at);
	for (uint32 i = 0; i < parts->ncols; i++)
	{
		summarize_nothing(&columns[i], parts->columns[i]);
		if (columns[i].dictionary != 0)
			version->bytes += arena_at<Dictionary>(columns[i].dictionary)->size;
	}
	for (uint32 t = 0; t < parts->ntablets; t++)
	{
		const TabletHeader *tablet = arena_at<TabletHeader>(parts->tablets[t]);

		version->bytes += tablet->size;
		version->nrows += live_rows(tablet, parts->served);
		for (uint32 i = 0; i < parts->ncols; i++)
			summarize_chunk(&columns[i], tablet_chunks(tablet)[i], t == 0);
	}
	for (uint32 m = 0; m < parts->nmasked; m++)
		version->nrows -= parts->masked[m].end - parts->masked[m].first;
	for (uint32 i = 0; i < parts->ncols; i++)
	{
		if (parts->columns[i].left_out)
			columns[i].flags |= COLUMN_LEFT_OUT;
		if (parts->columns[i].variable)
			columns[i].flags |= COLUMN_VARIABLE;
		if (parts->columns[i].wide)
			columns[i].flags |= COLUMN_WIDE;
	}
	seal_version(version);
	hold_tablets(version);
	return offset;
}

/* -- versions that there are ----------------------------------------------------- */

void
free_version(uint64 offset)
{
	const TableVersion *version = arena_at<TableVersion>(offset);
	const uint64_t *tablets = version_at<uint64_t>(version, version->tablets);
	const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);

	for (uint32 i = 0; i < version->ntablets; i++)
		if (__atomic_sub_fetch(&arena_at<TabletHeader>(tablets[i])->refs, 1, __ATOMIC_ACQ_REL) == 0)
			arena_free(tablets[i]);
	for (uint32 i = 0; i < version->ncols; i++)
		dictionary_drop(columns[i].dictionary);
	arena_free(offset);
}

void
hold_tablets(const TableVersion *version)
{
	const uint64_t *tablets = version_at<uint64_t>(version, version->tablets);
	const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);

	for (uint32 i = 0; i < version->ntablets; i++)
		__atomic_add_fetch(&arena_at<TabletHeader>(tablets[i])->refs, 1, __ATOMIC_ACQ_REL);
	for (uint32 i = 0; i < version->ncols; i++)
		dictionary_hold(columns[i].dictionary);
}

int
version_column(const TableVersion *version, AttrNumber attnum)
{
	const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);

	for (uint32 i = 0; i < version->ncols; i++)
		if (columns[i].attnum == attnum)
			return columns[i].flags & COLUMN_LEFT_OUT ? -1 : static_cast<int>(i);
	return -1;
}

bool
version_has_all_columns(const TableVersion *version, TupleDesc desc)
{
	for (int i = 0; i < desc->natts; i++)
		if (!TupleDescAttr(desc, i)->attisdropped && version_column(version, i + 1) < 0)
			return false;
	return true;
}

}  // namespace gpuvm
