/* source_job.cc: a source as a job has it in the arena, and the rows behind the numbers that come back. */
#include "pg/pg.h"

#include <cstring>

#include "executor/scan_state.h"
#include "pg/shmem.h"
#include "store/tablets.h"
#include "tablet/build.h"

namespace gpuvm {

uint32
source_count_units(ScanSource *source, uint32 unit_rows)
{
	uint32		nunits = 0;

	/* gpuvmd's tablets, each of which may end within a unit: so many at most */
	if (source->set != 0)
		return static_cast<uint32>(source->nrows / Min(unit_rows, MIN_UNIT_ROWS)) + source->set_tablets + 1;
	for (uint32 i = 0; i < source->ntablets; i++)
	{
		source->tablets[i].first_unit = nunits;
		nunits += (source->tablets[i].header->nrows + unit_rows - 1) / unit_rows;
	}
	return nunits;
}

/* -- into the arena ---------------------------------------------------------------------- */

static uint64
aligned(uint64 bytes)
{
	return align_up(bytes, TABLET_ALIGN);
}

uint64
source_bytes(const ScanSource *source)
{
	if (source->plain || source->set != 0)
		return 0;
	return aligned(sizeof(ColumnSummary) * source->ncolumns) + aligned(sizeof(uint64) * source->ntablets) +
		aligned(sizeof(MaskedRows) * source->nmasked) + source->delta_bytes;
}

/* So that rows can be found by their positions. */
static void
note_places(ScanSource *source, const uint64 *tablets)
{
	if (source->by_place == nullptr)
		source->by_place = static_cast<uint32 *>(MemoryContextAlloc(source->context, sizeof(uint32) * Max(source->ntablets, 1)));
	for (uint32 i = 0; i < source->ntablets; i++)
	{
		source->tablets[i].place = tablets[i];
		source->by_place[i] = i;
	}
	std::sort(source->by_place, source->by_place + source->ntablets,
			  [=](uint32 a, uint32 b) { return tablets[a] < tablets[b]; });
}

const ScanTablet *
source_row(const ScanSource *source, int64 position, ItemPointer ctid)
{
	uint64		place = position_place(position);
	uint32		row = position_row(position);
	const uint32 *end = source->by_place + source->ntablets;
	const uint32 *at = std::lower_bound<const uint32 *>(source->by_place, end, place, [=](uint32 i, uint64 x) { return source->tablets[i].place < x; });
	const ScanTablet *tablet = at == end ? nullptr : &source->tablets[*at];
	uint32		hint = 0;

	if (tablet == nullptr || tablet->place != place || row >= tablet->header->nrows)
		elog(ERROR, "gpuvm: gpuvmd returned position " INT64_FORMAT ", where no row is", position);
	if (ctid != nullptr)
		source_ctids(tablet, &row, 1, &hint, ctid);
	return tablet;
}

/* A delta's tablet; what it says of itself is said here, and copied. */
static void
put_tablet(const TabletHeader *tablet, uint64 at)
{
	const Size	head = sizeof(TabletHeader) + tablet->ncols * sizeof(ColumnChunk);
	TabletHeader *placed = static_cast<TabletHeader *>(palloc(head));

	memcpy(static_cast<void *>(placed), tablet, head);
	place_tablet(placed, at);
	memcpy(arena_at<char>(at), placed, head);
	memcpy(arena_at<char>(at) + head, reinterpret_cast<const char *>(tablet) + head, tablet->size - head);
	pfree(placed);
}

JobCursor
source_cursor(ScanSource *source, uint64 at, bool positions)
{
	JobCursor	cursor = {};
	uint64	   *tablets;		/* a copy: gpuvmd can write to the job's memory */
	uint32		n = 0;

	if (source->plain && positions)
		note_places(source, version_at<uint64>(source->leaves[0].version, source->leaves[0].version->tablets));
	if (source->plain)
		return version_cursor(source->leaves[0].version, pin_offset(source->leaves[0].pin));

	if (source->set != 0)
	{
		cursor.set = source->set;
		return cursor;
	}

	cursor.ncolumns = source->ncolumns;
	cursor.columns = at;
	memcpy(arena_at<char>(at), source->columns, sizeof(ColumnSummary) * source->ncolumns);
	at += aligned(sizeof(ColumnSummary) * source->ncolumns);

	cursor.nmasked = source->nmasked;
	cursor.masked = at;
	if (source->nmasked > 0)
		memcpy(arena_at<char>(at), source->masked, sizeof(MaskedRows) * source->nmasked);
	at += aligned(sizeof(MaskedRows) * source->nmasked);

	cursor.ntablets = source->ntablets;
	cursor.tablets = at;
	tablets = static_cast<uint64 *>(palloc_extended(sizeof(uint64) * Max(source->ntablets, 1), MCXT_ALLOC_HUGE));
	at += aligned(sizeof(uint64) * source->ntablets);
	for (int i = 0; i < source->nleaves; i++)
	{
		const TableVersion *version = source->leaves[i].version;

		memcpy(tablets + n, version_at<uint64>(version, version->tablets), sizeof(uint64) * version->ntablets);
		n += version->ntablets;
	}
	for (; n < source->ntablets; n++)
	{
		const TabletHeader *tablet = source->tablets[n].header;

		put_tablet(tablet, at);
		tablets[n] = source->tablets[n].place = at;
		at += aligned(tablet->size);
	}
	memcpy(arena_at<char>(cursor.tablets), tablets, sizeof(uint64) * source->ntablets);
	if (positions)
		note_places(source, tablets);
	pfree(tablets);
	return cursor;
}

/* -- rows ----------------------------------------------------------------------------------- */

const MaskedRows *
source_masked_from(const ScanSource *source, const ScanTablet *tablet, uint32 row)
{
	uint32		number = tablet - source->tablets;
	const MaskedRows *end = source->masked + source->nmasked;

	return std::partition_point<const MaskedRows *>(source->masked, end, [=](const MaskedRows &m)
	{
		return m.tablet < number || (m.tablet == number && m.end <= row);
	});
}

bool
source_skip_masked(const ScanSource *source, const ScanTablet *tablet, const MaskedRows **at, uint32 *row)
{
	const MaskedRows *end = source->masked + source->nmasked;
	uint32		number = tablet - source->tablets;

	while (*at < end && (*at)->tablet == number && (*at)->end <= *row)
		(*at)++;
	if (*at == end || (*at)->tablet != number || (*at)->first > *row)
		return false;
	*row = (*at)->end;
	return true;
}

/* Blocks of a tablet in memory are parts of stored ones: from places in the former to those in the latter. */
static void
stored_ctids(const TabletHeader *tablet, uint32 n, ItemPointerData *ctids)
{
	const uint64_t *keys = tablet_at<uint64_t>(tablet, tablet->block_lsns);

	for (uint32 i = 0; i < n; i++)
	{
		uint64		key = keys[ItemPointerGetBlockNumberNoCheck(&ctids[i]) - tablet->first_block];

		ctids[i] = stored_ctid(key_tablet(key), key_first_row(key) + ItemPointerGetOffsetNumberNoCheck(&ctids[i]) - 1);
	}
}

void
source_ctids(const ScanTablet *tablet, const uint32 *rows, uint32 n, uint32 *block_hint, ItemPointerData *ctids)
{
	for (uint32 i = 0; i < n; i++)
	{
		if (rows[i] >= tablet->header->nrows)
			elog(ERROR, "gpuvm: gpuvmd returned row %u of %u", rows[i], tablet->header->nrows);
	}
	if (tablet->of_file && !tablet->stored)
	{
		for (uint32 i = 0; i < n; i++)
			ItemPointerSetInvalid(&ctids[i]);
		return;
	}
	if (tablet->ctids == nullptr)
	{
		tablet_row_ctids(tablet->header, rows, n, block_hint, ctids);
		if (tablet->stored)
			stored_ctids(tablet->header, n, ctids);
		return;
	}
	for (uint32 i = 0; i < n; i++)
		ctids[i] = tablet->ctids[rows[i]];
}

}  // namespace gpuvm
