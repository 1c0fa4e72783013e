#include "tablet/strip.h"

#include <cstring>

namespace gpuvm {

/* The chunk of column i in its new place, which `at` moves behind. */
static ColumnChunk
stripped_chunk(const TabletHeader *tablet, uint32_t i, const bool *lost, uint64_t *at)
{
	ColumnChunk chunk = tablet_chunks(tablet)[i];

	if (lost[i])
	{
		ColumnChunk empty = {};

		empty.type = chunk.type;
		empty.encoding = chunk.encoding;
		empty.attnum = chunk.attnum;
		empty.null_count = tablet->nrows;
		empty.flags = CHUNK_HAS_NULLS | CHUNK_ALL_NULL;
		chunk = empty;
	}
	if (chunk.flags & CHUNK_HAS_NULLS)
	{
		chunk.nulls = *at;
		*at += tablet->padded_rows / 8;
	}
	if (chunk.width > 0)
	{
		chunk.data = *at;
		*at += chunk.data_bytes;
	}
	return chunk;
}

/* Its images' new place, as an offset from the tablet's first byte, where it has images. */
static void
move_images(ColumnChunk *chunk, uint64_t *at)
{
	uint64_t	bytes = variable_bytes(*chunk);

	if (chunk->encoding != Encoding::Variable || bytes == 0)
		return;
	chunk->base = chunk->min = static_cast<int64_t>(*at);
	chunk->max = static_cast<int64_t>(*at + bytes - 1);
	*at = (*at + bytes + VARIABLE_SLACK + TABLET_ALIGN - 1) / TABLET_ALIGN * TABLET_ALIGN;
}

/* Where the columns begin: the areas before them do not change. */
static uint64_t
columns_at(const TabletHeader *tablet)
{
	return (tablet_keys_end(tablet) + TABLET_ALIGN - 1) / TABLET_ALIGN * TABLET_ALIGN;
}

uint64_t
stripped_size(const TabletHeader *tablet, const bool *lost)
{
	uint64_t	at = columns_at(tablet);
	bool		any = false;

	for (uint32_t i = 0; i < tablet->ncols; i++)
	{
		any = any || (lost[i] && !(tablet_chunks(tablet)[i].flags & CHUNK_ALL_NULL));
		(void) stripped_chunk(tablet, i, lost, &at);
	}
	for (uint32_t i = 0; i < tablet->ncols; i++)
	{
		ColumnChunk chunk = tablet_chunks(tablet)[i];

		if (!lost[i])
			move_images(&chunk, &at);
	}
	return any ? at : 0;
}

void
strip_tablet(const TabletHeader *tablet, const bool *lost, uint64_t serial, char *to)
{
	TabletHeader *header = reinterpret_cast<TabletHeader *>(to);
	uint64_t	at = columns_at(tablet);

	memcpy(to, tablet, at);
	header->serial = serial;
	for (uint32_t i = 0; i < tablet->ncols; i++)
	{
		const ColumnChunk &old = tablet_chunks(tablet)[i];
		ColumnChunk chunk = stripped_chunk(tablet, i, lost, &at);

		tablet_chunks(header)[i] = chunk;
		if (lost[i])
		{
			uint32_t	whole = tablet->nrows / 8;

			memset(to + chunk.nulls, 0, tablet->padded_rows / 8);
			memset(to + chunk.nulls, 0xff, whole);
			if (tablet->nrows % 8 > 0)
				to[chunk.nulls + whole] = static_cast<char>((1u << tablet->nrows % 8) - 1);
			continue;
		}
		if (chunk.flags & CHUNK_HAS_NULLS)
			memcpy(to + chunk.nulls, tablet_at<char>(tablet, old.nulls), tablet->padded_rows / 8);
		if (chunk.width > 0)
			memcpy(to + chunk.data, tablet_at<char>(tablet, old.data), chunk.data_bytes);
	}
	header->place = 0;
	header->var = header->var_bytes = 0;
	for (uint32_t i = 0; i < tablet->ncols; i++)
	{
		const ColumnChunk &old = tablet_chunks(tablet)[i];
		ColumnChunk *chunk = &tablet_chunks(header)[i];
		uint64_t	from = at;

		move_images(chunk, &at);
		if (at == from)
			continue;
		memcpy(to + from, tablet_at<char>(tablet, variable_at(tablet, old)), at - from);
		if (header->var == 0)
			header->var = from;
		header->var_bytes = at - header->var;
	}
	header->size = at;
}

}  // namespace gpuvm
