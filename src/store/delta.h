/*
 * delta.h: the rows of the blocks that tablets do not serve, read for one query.
 *
 * They are read as any scan reads them, under the query's snapshot, and become
 * tablets in the backend's memory, for the same program to run over. Nothing of
 * it outlives the query.
 */
#ifndef GPUVM_STORE_DELTA_H
#define GPUVM_STORE_DELTA_H

#include "store/registry.h"

extern "C" {
#include "storage/itemptr.h"
}

namespace gpuvm {

/* Without a place in the heap of its own: no blocks, serial 0. Its rows' ctids are here. */
struct DeltaTablet
{
	DeltaTablet *next;
	const TabletHeader *tablet;	/* 64-byte aligned */
	const ItemPointerData *ctids;	/* NULL if nobody asked for them */
};

struct LocalDictionary;

struct Delta
{
	DeltaTablet *first;
	uint32		ntablets;
	uint64		nrows;
	uint64		tablet_bytes;	/* of all tablets, each rounded up to TABLET_ALIGN */
};

struct DeltaRequest
{
	const BlockRun *runs;		/* ascending */
	uint32		nruns;
	BlockNumber nblocks;		/* in all runs */
	const ColumnSummary *columns;	/* of the version: what every tablet has; without one type, attribute number, scale, and whether it is variable or wide */
	uint32		ncols;
	const bool *wanted;			/* for each of them; the others are constant 0 */
	LocalDictionary **dictionaries;	/* for each of them: of a wanted column of codes, what new values are added to */
	bool		want_ctids;
	uint64		max_bytes;
};

/*
 * Reads the runs. The result lies in the current memory context. NULL when it
 * would take more than max_bytes, or (*unfit is its attribute number, else 0)
 * where a value of a wanted column cannot be had in the form of the version's.
 */
Delta	   *delta_read(Relation rel, Snapshot snapshot, const DeltaRequest &request, AttrNumber *unfit);

/*
 * The same of rows that are no table's, one by one: `desc` is theirs, and runs and ctids are not asked for. False where
 * delta_end(), which is to be told so, will give NULL.
 */
struct DeltaReader;
DeltaReader *delta_begin(TupleDesc desc, const DeltaRequest &request);
bool		delta_add(DeltaReader *reader, const Datum *values, const bool *nulls, AttrNumber *unfit);
Delta	   *delta_end(DeltaReader *reader, bool fits, AttrNumber *unfit);

/* Widens the summaries, one for each column, to cover the delta; `first`: they cover nothing yet. */
void		delta_summarize(const Delta *delta, ColumnSummary *columns, uint32 ncols, bool first);

/* What a query will read beside a version's tablets, of which so many blocks are served. PostgreSQL estimates the relation at so many blocks and rows. */
DeltaSize	delta_expect(Relation rel, BlockNumber pages, double tuples, const TableVersion *version, BlockNumber served);

/* What delta_read will take for rows, in microseconds, beyond what any scan takes for their blocks. */
double		delta_rows_us(double nrows, int nwanted);

/* What a query may take for the delta of one table (max_bytes): what a hash table may, or 64 MB if that is more. */
uint64		delta_limit(void);

/* Is it worth a try to read so many bytes, as was expected? */
bool		delta_may_fit(double bytes);

}  // namespace gpuvm

#endif
