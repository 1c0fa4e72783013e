/*
 * delta.cc: unserved blocks into tablets.
 *
 * One heap scan goes over all runs, limited to one after the other: visibility,
 * pruning, conflicts of serializable transactions and the reading itself are
 * PostgreSQL's own. The scan is of the kind that a range of ctids gets, so that
 * a thousand runs are not counted as a thousand sequential scans. In page mode
 * it holds a pin, not a lock, while rows are taken.
 *
 * A query that meets one changed block must not notice: what is allocated here
 * is in proportion to the blocks, and a tuple is walked no further than to the
 * last attribute that the program reads.
 */
#include "store/delta.h"

#include "pg/shmem.h"
#include "store/internal.h"
#include "store/tuple_walk.h"
#include "tablet/build.h"
#include "tablet/wide_halves.h"

extern "C" {
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "utils/memutils.h"
#include "utils/spccache.h"
}

namespace gpuvm {

/* A tablet of a delta ends at so many bytes of staged values, within these rows. */
constexpr uint32 STAGED_BYTES = 4 * 1024 * 1024;
constexpr uint32 MIN_STAGED_ROWS = TABLET_PAD_ROWS;
constexpr uint32 MAX_STAGED_ROWS = 65536;

/* At least what a delta may take. */
constexpr uint64 MIN_LIMIT = 64 * 1024 * 1024;

/* What is expected is rough, and to find out costs no more than reading what fits: only what is so many times as much is not begun with. */
constexpr double MOST_EXPECTED = 2;

/* Measured (docs/benchmarks.md): a row, a value, in microseconds. */
constexpr double ROW_US = 0.02;
constexpr double VALUE_US = 0.004;

struct DeltaReader
{
	DeltaRequest request;
	uint32		capacity;		/* rows */
	uint32		nrows;
	WalkColumn *columns;
	uint32		nvariable;		/* of those that are wanted */
	ImageBuffer image;
	StagedColumn *staged;
	char	   *zeroes;			/* the values of columns that are not wanted */
	ColumnChunk *chunks;
	ItemPointerData *ctids;
	int			natts;			/* attributes up to the last wanted one */
	WalkAttribute *attributes;
	int			first_walked;	/* where the walk of a complete tuple begins; natts: no walk */
	uint32		first_walked_offset;
	Delta	   *delta;
	DeltaTablet **tail;
	uint64		bytes;			/* in use */
};

static void *
take(DeltaReader *r, Size size, int flags)
{
	r->bytes += size;
	return MemoryContextAllocExtended(CurrentMemoryContext, Max(size, 1), flags | MCXT_ALLOC_HUGE);
}

static ValueForm
form_of(const ColumnSummary &summary, bool codes)
{
	if (codes)
		return ValueForm::Dictionary;
	if (summary.flags & COLUMN_VARIABLE)
		return ValueForm::Variable;
	return summary.scale >= 0 ? ValueForm::Numeric : ValueForm::Plain;
}

/* The other half of a wide column; -1: the column has none. */
static int
other_half(const DeltaRequest *request, int column)
{
	const ColumnSummary *columns = request->columns;
	const bool	high = is_high_half(columns[column].attnum);

	if (!high && !(columns[column].flags & COLUMN_WIDE))
		return -1;
	for (uint32 i = 0; i < request->ncols; i++)
		if (columns[i].attnum == (high ? attribute_of(columns[column].attnum) : high_half(columns[column].attnum)))
			return static_cast<int>(i);
	return -1;
}

/* Who reads one half has both. */
static bool
is_wanted(const DeltaRequest *request, int column)
{
	const int	other = other_half(request, column);

	return request->wanted[column] || (other >= 0 && request->wanted[other]);
}

static void
prepare_columns(DeltaReader *r, TupleDesc desc)
{
	const DeltaRequest *request = &r->request;
	uint32		ncols = request->ncols;
	uint32		width = 0;
	int32		offset = 0;

	r->columns = static_cast<WalkColumn *>(palloc0(sizeof(WalkColumn) * Max(ncols, 1)));
	r->staged = static_cast<StagedColumn *>(palloc0(sizeof(StagedColumn) * Max(ncols, 1)));
	r->chunks = static_cast<ColumnChunk *>(palloc(sizeof(ColumnChunk) * Max(ncols, 1)));
	for (uint32 i = 0; i < ncols; i++)
	{
		if (!is_wanted(request, i))
			continue;
		r->natts = Max(r->natts, attribute_of(request->columns[i].attnum));
		width += type_natural_width(request->columns[i].type);
	}
	r->capacity = Min(Max(STAGED_BYTES / Max(width, 1), MIN_STAGED_ROWS), MAX_STAGED_ROWS);
	if (request->nblocks < r->capacity / MaxHeapTuplesPerPage)
		r->capacity = request->nblocks * MaxHeapTuplesPerPage;
	r->capacity = TYPEALIGN(64, r->capacity);

	r->attributes = static_cast<WalkAttribute *>(palloc(sizeof(WalkAttribute) * Max(r->natts, 1)));
	for (int a = 0; a < r->natts; a++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, a);

		r->attributes[a] = WalkAttribute{att->attlen, -1, att->attalign};
	}
	r->zeroes = static_cast<char *>(take(r, Size{r->capacity} * sizeof(int64), MCXT_ALLOC_ZERO));
	for (uint32 i = 0; i < ncols; i++)
	{
		const ColumnSummary *summary = &request->columns[i];
		WalkColumn *column = &r->columns[i];

		r->staged[i].type = summary->type;
		r->staged[i].attnum = summary->attnum;
		r->staged[i].values = r->zeroes;
		if (!is_wanted(request, i))
			continue;
		if (summary->attnum == attribute_of(summary->attnum))
			r->attributes[summary->attnum - 1].column = static_cast<int16>(i);
		init_walk_column(column, desc, summary->attnum, ValueType{summary->type, form_of(*summary, request->dictionaries[i] != NULL)}, summary->scale);
		if (request->dictionaries[i] != NULL)
		{
			column->image = &r->image;
			column->local = request->dictionaries[i];
		}
		if (column->staging == Staging::Variable)
		{
			r->staged[i].encoding = Encoding::Variable;
			r->nvariable++;
		}
		column->values = static_cast<char *>(take(r, Size{r->capacity} * column->width, 0));
		r->staged[i].values = column->values;
		/* the low halves are before it */
		if (column->staging == Staging::High)
			join_halves(&r->columns[other_half(request, i)], column);
		else
			column->nulls = static_cast<uint64 *>(take(r, r->capacity / 8, MCXT_ALLOC_ZERO));
	}
	if (request->want_ctids)
		r->ctids = static_cast<ItemPointerData *>(take(r, Size{r->capacity} * sizeof(ItemPointerData), 0));

	/* Offsets up to the first attribute of variable length. */
	for (r->first_walked = 0; r->first_walked < r->natts; r->first_walked++)
	{
		const WalkAttribute *att = &r->attributes[r->first_walked];

		if (att->len <= 0)
			break;
		offset = att_align_nominal(offset, att->align);
		if (att->column >= 0)
			r->columns[att->column].offset = offset;
		offset += att->len;
	}
	r->first_walked_offset = offset;
}

static void
free_staging(DeltaReader *r)
{
	for (uint32 i = 0; i < r->request.ncols; i++)
	{
		if (r->columns[i].values == NULL)
			continue;
		if (r->columns[i].images != NULL)
			pfree(r->columns[i].images);
		pfree(r->columns[i].values);
		if (r->columns[i].staging != Staging::High)
			pfree(r->columns[i].nulls);
	}
	if (r->ctids != NULL)
		pfree(r->ctids);
	pfree(r->zeroes);
}

static uint64
dictionary_bytes(const DeltaReader *r)
{
	uint64		bytes = 0;

	for (uint32 i = 0; i < r->request.ncols; i++)
		if (r->columns[i].local != NULL)
			bytes += r->columns[i].local->bytes;
	return bytes;
}

/* Makes a tablet of the staged rows; false when memory is used up. */
static bool
flush_tablet(DeltaReader *r)
{
	StagedTablet staged = {};
	TabletHeader header;
	DeltaTablet *made;
	char	   *to;
	uint64		size;
	uint32		nrows = r->nrows;

	if (nrows == 0)
		return true;
	for (uint32 i = 0; i < r->request.ncols; i++)
	{
		r->staged[i].nulls = (r->columns[i].staging == Staging::High ? &r->columns[other_half(&r->request, i)] : &r->columns[i])->has_nulls ? r->columns[i].nulls : NULL;
		r->staged[i].images = r->columns[i].images;
		r->staged[i].nimages = r->columns[i].nimages;
	}
	staged.nrows = nrows;
	staged.ncols = r->request.ncols;
	staged.columns = r->staged;
	staged.block_rows = &nrows;
	size = plan_tablet(staged, &header, r->chunks);
	if (r->bytes + dictionary_bytes(r) + size > r->request.max_bytes)
		return false;

	made = static_cast<DeltaTablet *>(palloc0(sizeof(DeltaTablet)));
	to = static_cast<char *>(take(r, size + TABLET_ALIGN, 0));
	to = reinterpret_cast<char *>(TYPEALIGN(TABLET_ALIGN, reinterpret_cast<uintptr_t>(to)));
	write_tablet(staged, header, r->chunks, 0, to);
	made->tablet = reinterpret_cast<const TabletHeader *>(to);
	if (r->ctids != NULL)
	{
		ItemPointerData *ctids = static_cast<ItemPointerData *>(take(r, Size{nrows} * sizeof(ItemPointerData), 0));

		memcpy(ctids, r->ctids, Size{nrows} * sizeof(ItemPointerData));
		made->ctids = ctids;
	}
	*r->tail = made;
	r->tail = &made->next;
	r->delta->ntablets++;
	r->delta->nrows += nrows;
	r->delta->tablet_bytes += TYPEALIGN(TABLET_ALIGN, size);

	for (uint32 i = 0; i < r->request.ncols; i++)
	{
		r->columns[i].nimages = 0;
		if (!r->columns[i].has_nulls)
			continue;
		memset(r->columns[i].nulls, 0, (nrows + 63) / 64 * sizeof(uint64));
		r->columns[i].has_nulls = false;
	}
	r->nrows = 0;
	return true;
}

/* Is the tablet that is staged full? */
static inline bool
is_full(const DeltaReader *r)
{
	Size		images = 0;

	if (r->nrows >= r->capacity)
		return true;
	for (uint32 i = 0; i < r->request.ncols && r->nvariable > 0; i++)
		images += r->columns[i].nimages;
	return images > STAGED_BYTES;
}

static inline void
append_tuple(DeltaReader *r, HeapTuple tuple)
{
	HeapTupleHeader header = tuple->t_data;

	if ((header->t_infomask & HEAP_HASNULL) != 0 || static_cast<int>(HeapTupleHeaderGetNatts(header)) < r->natts)
		walk_tuple(r->columns, r->attributes, r->natts, header, 0, 0, r->nrows);
	else
	{
		const char *data = reinterpret_cast<const char *>(header) + header->t_hoff;

		for (int a = 0; a < r->first_walked; a++)
		{
			int			column = r->attributes[a].column;

			if (column >= 0)
				store_value(&r->columns[column], r->nrows, data + r->columns[column].offset);
		}
		if (r->first_walked < r->natts)
			walk_tuple(r->columns, r->attributes, r->natts, header, r->first_walked, r->first_walked_offset, r->nrows);
	}
	if (r->ctids != NULL)
		r->ctids[r->nrows] = tuple->t_self;
	r->nrows++;
}

/* The attribute number of a column that a value did not fit, or 0. */
static AttrNumber
unfit_column(const DeltaReader *r)
{
	for (uint32 i = 0; i < r->request.ncols; i++)
		if (r->columns[i].unfit != COLUMN_FITS)
			return r->request.columns[i].attnum;
	return 0;
}

static DeltaReader *
begin(TupleDesc desc, const DeltaRequest &request)
{
	DeltaReader *r = static_cast<DeltaReader *>(palloc0(sizeof(DeltaReader)));

	r->request = request;
	r->delta = static_cast<Delta *>(palloc0(sizeof(Delta)));
	r->tail = &r->delta->first;
	prepare_columns(r, desc);
	return r;
}

/* A row was staged: is there a tablet of them? False as delta_add() says. */
static inline bool
row_added(DeltaReader *r, AttrNumber *unfit)
{
	if (!is_full(r))
		return true;
	*unfit = unfit_column(r);
	return *unfit == 0 && flush_tablet(r);
}

static Delta *
end(DeltaReader *r, bool fits, AttrNumber *unfit)
{
	if (fits)
		*unfit = unfit_column(r);
	fits = fits && *unfit == 0 && flush_tablet(r);
	free_staging(r);
	return fits ? r->delta : NULL;
}

Delta *
delta_read(Relation rel, Snapshot snapshot, const DeltaRequest &request, AttrNumber *unfit)
{
	DeltaReader *r = begin(RelationGetDescr(rel), request);
	TableScanDesc scan;
	bool		fits = true;

	scan = rel->rd_tableam->scan_begin(rel, snapshot, 0, NULL, NULL,
									   SO_TYPE_TIDRANGESCAN | SO_ALLOW_STRAT | SO_ALLOW_PAGEMODE);
	for (uint32 i = 0; i < request.nruns && fits; i++)
	{
		HeapTuple	tuple;

		/* also between blocks, by the scan */
		CHECK_FOR_INTERRUPTS();
		if (i > 0)
			heap_rescan(scan, NULL, false, false, false, false);
		heap_setscanlimits(scan, request.runs[i].first, request.runs[i].count);
		while (fits && (tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
		{
			append_tuple(r, tuple);
			fits = row_added(r, unfit);
		}
	}
	table_endscan(scan);
	return end(r, fits, unfit);
}

DeltaReader *
delta_begin(TupleDesc desc, const DeltaRequest &request)
{
	DeltaReader *r = begin(desc, request);

	for (uint32 i = 0; i < request.ncols; i++)
	{
		if (r->columns[i].staging == Staging::Dictionary)
			r->columns[i].codes = static_cast<ShortCode *>(palloc0(sizeof(ShortCode) * SHORT_CODES));
	}
	return r;
}

bool
delta_add(DeltaReader *r, const Datum *values, const bool *nulls, AttrNumber *unfit)
{
	for (uint32 i = 0; i < r->request.ncols; i++)
	{
		int			from = attribute_of(r->request.columns[i].attnum) - 1;

		if (!r->request.wanted[i] || r->columns[i].staging == Staging::High)
			continue;
		if (nulls[from])
			set_null(&r->columns[i], r->nrows);
		else
			store_datum(&r->columns[i], r->nrows, values[from]);
	}
	r->nrows++;
	return row_added(r, unfit);
}

Delta *
delta_end(DeltaReader *r, bool fits, AttrNumber *unfit)
{
	return end(r, fits, unfit);
}

void
delta_summarize(const Delta *delta, ColumnSummary *columns, uint32 ncols, bool first)
{
	for (const DeltaTablet *t = delta->first; t != NULL; t = t->next, first = false)
		for (uint32 i = 0; i < ncols; i++)
			summarize_chunk(&columns[i], tablet_chunks(t->tablet)[i], first);
}

double
delta_rows_us(double nrows, int nwanted)
{
	return nrows * (ROW_US + nwanted * VALUE_US);
}

uint64
delta_limit(void)
{
	return Max(static_cast<uint64>(get_hash_memory_limit()), MIN_LIMIT);
}

bool
delta_may_fit(double bytes)
{
	return bytes <= MOST_EXPECTED * delta_limit();
}

/*
 * PostgreSQL takes blocks that were added since VACUUM or ANALYZE counted rows to be as full as the others. What UPDATE has put there
 * is dead where it was, so as many blocks as were both changed and added count once. Where all changed in place, and others were
 * added, that is half of the rows at worst, until they are counted.
 */
DeltaSize
delta_expect(Relation rel, BlockNumber pages, double tuples, const TableVersion *version, BlockNumber served)
{
	const BlockNumber changed = version->nblocks - Min(served, version->nblocks);
	DeltaSize	size = {};
	BlockNumber counted;
	BlockNumber moved;
	double		page_cost;

	if (changed == 0 && pages <= served)
		return size;
	counted = Max(static_cast<BlockNumber>(rel->rd_rel->relpages), version->nblocks);
	moved = pages > counted ? Min(changed, pages - counted) : 0;
	get_tablespace_page_costs(rel->rd_rel->reltablespace, nullptr, &page_cost);
	if (pages > served)
	{
		size.rows = tuples / pages * (pages - served - moved);
		size.io = page_cost * (pages - served);
	}
	size.masked = static_cast<double>(version->nrows) * changed / Max(version->nblocks, 1);
	return size;
}

}  // namespace gpuvm
