/*
 * build.h: makes a tablet from staged columns. No allocation and no server:
 * plan first (chooses encodings, returns the size), then write into memory that
 * the caller got.
 */
#ifndef GPUVM_TABLET_BUILD_H
#define GPUVM_TABLET_BUILD_H

#include "tablet/format.h"

namespace gpuvm {

/*
 * One column's rows in heap order: `values` in PostgreSQL's own width
 * (type_natural_width), unspecified under a null; `nulls` a bitmap (1 = null) of
 * at least nrows bits in whole uint64 words, bits past nrows zero, or nullptr.
 * Of a variable-length column (type I64) the values are the images' places in
 * `images`, which has nimages bytes up to the last one's end, as format.h says, and
 * is aligned to 8 bytes.
 */
struct StagedColumn
{
	Type		type;
	int16_t		attnum;
	const void *values;
	const uint64_t *nulls;
	Encoding	encoding = Encoding::Fixed;
	const char *images = nullptr;
	uint64_t	nimages = 0;
};

struct StagedTablet
{
	uint32_t	nrows;			/* 1 .. TABLET_MAX_ROWS */
	uint32_t	ncols;
	const StagedColumn *columns;
	uint32_t	first_block;
	uint32_t	nblocks;
	const uint32_t *block_rows;	/* nblocks + 1 */
	const uint64_t *block_lsns;	/* nblocks */
	const uint32_t *block_lps;	/* nblocks: index into lps or LPS_DENSE */
	const uint16_t *lps;
	uint32_t	nlps;
};

/* Fills chunks[ncols] (statistics, encoding, offsets) and *header; returns the tablet's size in bytes. */
uint64_t	plan_tablet(const StagedTablet &staged, TabletHeader *header, ColumnChunk *chunks);

/*
 * Writes the planned tablet to `to` (64-byte aligned, header->size bytes, contents undefined before). `serial`: see
 * TabletHeader. References count from its own first byte: place_tablet. `written` is called for each column while the
 * processor's cache has it.
 */
void		write_tablet(const StagedTablet &staged, const TabletHeader &header, const ColumnChunk *chunks,
						 uint64_t serial, char *to, void (*written) (TabletHeader *tablet, uint32_t column) = nullptr);

/* The tablet lies, or will lie as it is, at this arena offset: its references become offsets in the arena. */
void		place_tablet(TabletHeader *tablet, uint64_t offset);

/* Adds a tablet's chunk to the table-wide summary; `first` for the first tablet. */
void		summarize_chunk(ColumnSummary *summary, const ColumnChunk &chunk, bool first);

/*
 * Is this a well-formed tablet of at most `available` bytes at arena offset `place`?
 * Every offset and length is checked, but not each row's reference; gpuvmd calls it
 * once for each tablet it meets. Returns nullptr, or what is wrong.
 */
const char *check_tablet(const TabletHeader *tablet, uint64_t available, uint64_t place = 0);

}  // namespace gpuvm

#endif
