/*
 * copier.h: rows of heap blocks, staged column by column until they are a tablet.
 *
 * Blocks are appended in order, without gaps, from `first_block` on: what was
 * read from the heap, what an older tablet has of a block, or nothing for a block
 * that cannot be had. A tablet is made by copier_flush, and is listed in the job's
 * manifest from then on.
 */
#ifndef GPUVM_STORE_COPIER_H
#define GPUVM_STORE_COPIER_H

#include "store/internal.h"
#include "store/tuple_walk.h"
#include "tablet/build.h"

extern "C" {
#include "access/htup_details.h"
#include "storage/bufmgr.h"
}

namespace gpuvm {

constexpr uint32 MAX_TABLET_BLOCKS = 1u << 20;

struct Copier
{
	Relation	rel;
	CopyJob    *job;
	bool		in_recovery;
	int			ncols;
	WalkColumn *columns;
	ImageBuffer image;
	bool		settled;		/* no column can fail, or get its scale, any more */
	Size		max_images;		/* of a tablet's variable columns, of which there are nvariable */
	int			nvariable;
	WalkColumn **variable;
	Size	   *images_before;	/* of each of them, before the page that is staged */
	StagedColumn *staged;
	ColumnChunk *chunks;
	int			natts;			/* attributes up to the last wanted one */
	WalkAttribute *attributes;
	int			first_walked;	/* attribute where the row walk of a complete tuple begins; natts: no walk */
	uint32		first_walked_offset;

	/* the tablet being staged */
	uint32		row_capacity;
	uint32		nrows;
	uint32		nblocks;
	BlockNumber first_block;
	uint32		block_capacity;
	uint32	   *block_rows;
	uint64	   *block_lsns;
	uint32	   *block_lps;
	uint32		nlps;
	uint16	   *lps;

	/* the block being read */
	XLogRecPtr	lsn;
	bool		dense;			/* its line pointers are 1..n */
	PGAlignedBlock page;
	int			ntuples;
	HeapTupleHeader tuples[MaxHeapTuplesPerPage];
	OffsetNumber offsets[MaxHeapTuplesPerPage];
};

/* `rows`: how many a tablet may get, a multiple of TABLET_PAD_ROWS. */
Copier	   *make_copier(Relation rel, CopyJob *job, uint32 rows);
void		free_copier(Copier *c);

/* The image of a block, and its page's LSN, if it is all-visible; else false. */
bool		copy_visible_page(Relation rel, BlockNumber block, bool in_recovery, BufferAccessStrategy strategy, Buffer *vm_buffer, char *to,
							  XLogRecPtr *lsn);

/* Takes the image of a block and finds its rows; false when it is not all-visible. */
bool		copier_read(Copier *c, BlockNumber block, BufferAccessStrategy strategy, Buffer *vm_buffer);

/*
 * Appends the block that was read; after copier_skip, one without rows. False, and
 * nothing is appended, if the job is strict and a value does not fit its column.
 */
bool		copier_append(Copier *c);
void		copier_skip(Copier *c);

/*
 * For rows that lie in no block: a block that is made up begins, gets rows of values (by attribute number) as
 * input functions make them, MaxHeapTuplesPerPage at most, and ends. False as copier_append, but that what is staged is lost.
 */
void		copier_begin_block(Copier *c);
void		copier_add_row(Copier *c, const Datum *values, const bool *nulls);
bool		copier_end_block(Copier *c);

/* Appends blocks [first, first + n) of an older tablet with the same columns, counted from its own first one. */
void		copier_append_old(Copier *c, const TabletHeader *tablet, uint32 first, uint32 n);

/* Is there room for a block of so many rows? Of variable columns a tablet has more than it should by one block's at most. */
bool		copier_has_room(const Copier *c, uint32 rows, uint32 limit);

/*
 * Makes a tablet of the staged rows, if there are any, and goes on at
 * `next_block`. If its memory is not to be had, returns its size, and what is
 * staged stays.
 */
uint64		copier_flush(Copier *c, BlockNumber next_block);

/* The same for an import: raises where there is no memory. False: the import is to begin anew. */
bool		flush_or_raise(Copier *c, BlockNumber next_block);

/* Forgets what is staged and goes on at `next_block`. */
void		copier_restart(Copier *c, BlockNumber next_block);

}  // namespace gpuvm

#endif
