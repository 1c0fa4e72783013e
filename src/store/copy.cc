/*
 * copy.cc: heap blocks into tablets.
 *
 * The blocks of a table are cut into slices; a process takes the next slice,
 * copies its blocks one by one (page image under the share lock, everything else
 * from the image) and stages their rows, one array a column, until the next
 * block would not fit a tablet. A tablet is registered in the job's manifest, in
 * the arena, in the same breath as its memory is allocated: whatever happens to
 * the processes, the importing transaction frees what the manifest lists.
 *
 * A block is copied when its all-visible bit and PD_ALL_VISIBLE are set, both
 * read under the page's share lock: who clears them holds it exclusively. On a
 * standby replay does not keep PD_ALL_VISIBLE exact, and the bit alone decides. On
 * an all-visible page every line pointer in normal use is a row that everybody
 * sees, so no snapshot is needed.
 *
 * Deforming goes column by column over a page: where all its tuples are complete
 * and without nulls, a column before the first variable-length one is at one
 * offset in every tuple. Other columns, and other pages, are walked row by row.
 */
#include "store/copier.h"

#include "pg/settings.h"
#include "pg/shmem.h"
#include "store/checksum.h"
#include "store/refresher.h"
#include "tablet/decode.h"
#include "tablet/wide_halves.h"

extern "C" {
#include "access/heapam.h"
#include "access/visibilitymap.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpuvm {

constexpr int BLOCKS_PER_CHECK = 64;

/*
 * A tablet with so many bytes of images ends, or with a part of the memory; a block adds at most MaxHeapTuplesPerPage times
 * VARIABLE_MAX_IMAGE to one column's.
 */
constexpr uint64 ARENA_PART = 16;
constexpr Size TABLET_IMAGES = 64 * 1024 * 1024;
static_assert(TABLET_IMAGES * 2 + uint64{MaxHeapTuplesPerPage} * (VARIABLE_MAX_IMAGE + 8) < VARIABLE_MAX_BYTES, "a column's images always fit");

uint32
tablet_rows_for(const CopyColumn *columns, int ncols)
{
	uint64		width = 0;
	uint64		rows;

	for (int i = 0; i < ncols; i++)
		width += type_natural_width(columns[i].type);
	rows = uint64{1024} * setting_tablet_kb / Max(width, 1);
	rows = rows / TABLET_PAD_ROWS * TABLET_PAD_ROWS;
	return static_cast<uint32>(Min(Max(rows, TABLET_PAD_ROWS), TABLET_MAX_ROWS));
}

uint64
max_tablets_of_slice(BlockNumber blocks, uint32 tablet_rows)
{
	/* A tablet is full when a block of at most MaxHeapTuplesPerPage rows does not fit, or by its blocks. */
	return uint64{blocks} * MaxHeapTuplesPerPage / (tablet_rows - MaxHeapTuplesPerPage) + blocks / MAX_TABLET_BLOCKS + 2;
}

static Size
tablet_images(void)
{
	return Min(TABLET_IMAGES, arena_size() / ARENA_PART);
}

uint64
max_image_tablets(const CopyColumn *columns, int ncols)
{
	for (int i = 0; i < ncols; i++)
		if (columns[i].form == ValueForm::Variable)
			return arena_size() / tablet_images() + 1;
	return 0;
}

Copier *
make_copier(Relation rel, CopyJob *job, uint32 rows)
{
	TupleDesc	desc = RelationGetDescr(rel);
	Copier	   *c = static_cast<Copier *>(palloc0(sizeof(Copier)));
	int32		offset = 0;

	c->rel = rel;
	c->job = job;
	c->row_capacity = rows;
	c->max_images = tablet_images();
	c->in_recovery = RecoveryInProgress();
	c->ncols = static_cast<int>(job->ncols);
	c->settled = true;
	c->columns = static_cast<WalkColumn *>(palloc0(sizeof(WalkColumn) * Max(c->ncols, 1)));
	c->staged = static_cast<StagedColumn *>(palloc0(sizeof(StagedColumn) * Max(c->ncols, 1)));
	c->chunks = static_cast<ColumnChunk *>(palloc0(sizeof(ColumnChunk) * Max(c->ncols, 1)));
	c->variable = static_cast<WalkColumn **>(palloc0(sizeof(WalkColumn *) * Max(c->ncols, 1)));
	c->images_before = static_cast<Size *>(palloc0(sizeof(Size) * Max(c->ncols, 1)));
	for (int i = 0; i < c->ncols; i++)
		c->natts = Max(c->natts, attribute_of(job->columns[i].attnum));
	c->attributes = static_cast<WalkAttribute *>(palloc0(sizeof(WalkAttribute) * Max(c->natts, 1)));

	for (int a = 0; a < c->natts; a++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, a);

		c->attributes[a].len = att->attlen;
		c->attributes[a].align = att->attalign;
		c->attributes[a].column = -1;
	}
	for (int i = 0; i < c->ncols; i++)
	{
		WalkColumn *column = &c->columns[i];
		CopyColumn *from = &job->columns[i];
		uint32		scale = pg_atomic_read_u32(&from->scale);

		init_walk_column(column, desc, from->attnum, ValueType{from->type, from->form}, scale == NO_SCALE ? -1 : static_cast<int>(scale));
		if (copy_column_failed(from))
			column->staging = Staging::Lost;
		else if (from->form == ValueForm::Dictionary)
		{
			column->image = &c->image;
			column->codes = static_cast<ShortCode *>(palloc0(sizeof(ShortCode) * SHORT_CODES));
			writer_init(&column->writer, arena_at<DictionaryBuilder>(from->builder));
		}
		else if (from->form == ValueForm::Variable)
			c->variable[c->nvariable++] = column;
		if (from->form == ValueForm::Variable)
			c->staged[i].encoding = Encoding::Variable;
		c->settled = c->settled && from->form == ValueForm::Plain;
		if (!is_high_half(from->attnum))
			c->attributes[from->attnum - 1].column = static_cast<int16>(i);
		c->staged[i].type = from->type;
		c->staged[i].attnum = from->attnum;
		column->values = static_cast<char *>(palloc_extended(Size{rows} * column->width, MCXT_ALLOC_HUGE));
		column->nulls = static_cast<uint64 *>(palloc0(rows / 8));
	}
	for (int i = 0; i < c->ncols; i++)
	{
		if (!is_high_half(job->columns[i].attnum))
			continue;
		pfree(c->columns[i].nulls);
		join_halves(&c->columns[job->columns[i].half], &c->columns[i]);
	}

	/* Offsets up to the first attribute of variable length. */
	for (c->first_walked = 0; c->first_walked < c->natts; c->first_walked++)
	{
		const WalkAttribute *att = &c->attributes[c->first_walked];

		if (att->len <= 0)
			break;
		offset = att_align_nominal(offset, att->align);
		if (att->column >= 0)
			c->columns[att->column].offset = offset;
		offset += att->len;
	}
	c->first_walked_offset = offset;

	c->block_capacity = 1024;
	c->block_rows = static_cast<uint32 *>(palloc(sizeof(uint32) * (c->block_capacity + 1)));
	c->block_lsns = static_cast<uint64 *>(palloc(sizeof(uint64) * c->block_capacity));
	c->block_lps = static_cast<uint32 *>(palloc(sizeof(uint32) * c->block_capacity));
	c->lps = static_cast<uint16 *>(palloc(sizeof(uint16) * rows));
	return c;
}

void
free_copier(Copier *c)
{
	for (int i = 0; i < c->ncols; i++)
	{
		if (c->columns[i].codes != NULL)
			pfree(c->columns[i].codes);
		if (c->columns[i].images != NULL)
			pfree(c->columns[i].images);
		pfree(c->columns[i].values);
		if (c->columns[i].staging != Staging::High)
			pfree(c->columns[i].nulls);
	}
	pfree(c->lps);
	pfree(c->block_lps);
	pfree(c->block_lsns);
	pfree(c->block_rows);
	pfree(c->attributes);
	pfree(c->chunks);
	pfree(c->staged);
	pfree(c->images_before);
	pfree(c->variable);
	pfree(c->columns);
	pfree(c);
}

void
copier_restart(Copier *c, BlockNumber next_block)
{
	for (int i = 0; i < c->ncols; i++)
		if (c->columns[i].has_nulls)
		{
			memset(c->columns[i].nulls, 0, (c->nrows + 63) / 64 * sizeof(uint64));
			c->columns[i].has_nulls = false;
		}
	for (int i = 0; i < c->nvariable; i++)
		c->variable[i]->nimages = 0;
	c->nrows = 0;
	c->nblocks = 0;
	c->nlps = 0;
	c->first_block = next_block;
}

/* What another process found is not to be staged here either. */
static void
lose_failed_columns(Copier *c)
{
	for (int i = 0; i < c->ncols && !c->settled; i++)
		if (copy_column_failed(&c->job->columns[i]))
			c->columns[i].staging = Staging::Lost;
}

static void
fill_with_nulls(WalkColumn *column, uint32 nrows)
{
	memset(column->nulls, 0xff, nrows / 64 * sizeof(uint64));
	if (nrows % 64 > 0)
		column->nulls[nrows / 64] = (uint64{1} << (nrows % 64)) - 1;
	column->has_nulls = true;
}

/* When so large a part of the rows was copied, it is known what all of them will take. */
constexpr double KNOWN_PART = 1.0 / 32;

/* Have the images become too many, or will they certainly? */
static bool
too_many_images(const Copier *c, uint64 bytes)
{
	double		done = static_cast<double>(pg_atomic_read_u64(&c->job->nrows));
	double		all = c->rel->rd_rel->reltuples;

	return bytes > c->job->image_limit ||
		(done > all * KNOWN_PART && done < all && bytes / done * all > 2.0 * c->job->image_limit);
}

/* The import's columns must not take more than what is meant for them: others could not be imported. */
static void
count_images(const Copier *c)
{
	CopyJob    *job = c->job;
	uint64		bytes = 0;

	if (c->nvariable == 0 || job->strict)
		return;
	for (int i = 0; i < c->ncols; i++)
	{
		uint64		size = c->columns[i].staging == Staging::Variable ? c->columns[i].nimages : 0;

		(void) pg_atomic_fetch_add_u64(&job->columns[i].image_bytes, size);
		bytes += size;
	}
	if (too_many_images(c, pg_atomic_add_fetch_u64(&job->image_bytes, bytes)))
		(void) shed_column(job);
}

/* An import that exceeds a quota ends as soon as its tablets do: all of them would take memory that others may have. */
static void
count_for_quota(const Copier *c, uint64 size)
{
	CopyJob    *job = c->job;
	uint64		bytes;

	if (!job->quota.holds)
		return;
	bytes = pg_atomic_add_fetch_u64(&job->tablet_bytes, TYPEALIGN(ARENA_PAGE, size));
	if (bytes > quota_left(&job->quota))
		raise_quota_exceeded(c->rel, &job->quota, bytes, true);
}

uint64
copier_flush(Copier *c, BlockNumber next_block)
{
	CopyJob    *job = c->job;

	lose_failed_columns(c);
	count_images(c);
	if (c->nrows > 0)
	{
		StagedTablet staged;
		TabletHeader header;
		uint64		size;
		uint64		offset;
		uint32		index;

		for (int i = 0; i < c->ncols; i++)
		{
			WalkColumn *column = &c->columns[i];

			if (column->staging == Staging::Lost)
				fill_with_nulls(column, c->nrows);
			c->staged[i].values = column->values;
			c->staged[i].nulls = (column->staging == Staging::High ? &c->columns[job->columns[i].half] : column)->has_nulls ? column->nulls : NULL;
			c->staged[i].images = column->images;
			c->staged[i].nimages = column->nimages;
		}
		staged.nrows = c->nrows;
		staged.ncols = static_cast<uint32>(c->ncols);
		staged.columns = c->staged;
		staged.first_block = c->first_block;
		staged.nblocks = c->nblocks;
		c->block_rows[c->nblocks] = c->nrows;
		staged.block_rows = c->block_rows;
		staged.block_lsns = c->block_lsns;
		staged.block_lps = c->block_lps;
		staged.lps = c->lps;
		staged.nlps = c->nlps;

		size = plan_tablet(staged, &header, c->chunks);
		count_for_quota(c, size);
		offset = arena_alloc(size);
		if (offset == 0)
			return size;
		index = pg_atomic_fetch_add_u32(&job->ntablets, 1);
		Assert(index < job->max_tablets);
		arena_at<uint64>(job->manifest)[index] = offset;
		write_tablet(staged, header, c->chunks, arena_next_serial(), arena_at<char>(offset), seal_column);
		place_tablet(arena_at<TabletHeader>(offset), offset);
		seal_tablet(arena_at<TabletHeader>(offset));
	}
	copier_restart(c, next_block);
	return 0;
}

bool
flush_or_raise(Copier *c, BlockNumber next_block)
{
	uint64		size = copier_flush(c, next_block);

	if (size != 0 && !shed_column(c->job))
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory for imported tables"),
				 errdetail("A tablet of %llu bytes does not fit: %llu of %llu bytes are in use, "
						   "and %llu are reserved for the results of queries.",
						   static_cast<unsigned long long>(size),
						   static_cast<unsigned long long>(arena_used()),
						   static_cast<unsigned long long>(arena_size()),
						   static_cast<unsigned long long>(arena_reserve())),
				 errhint("Increase \"gpuvm.memory\", release tables with gpuvm.release(), or import fewer columns.")));
	return size == 0;
}

template <typename T>
static void
gather(const Copier *c, const WalkColumn *column)
{
	T		   *to = reinterpret_cast<T *>(column->values) + c->nrows;

	for (int i = 0; i < c->ntuples; i++)
	{
		const char *tuple = reinterpret_cast<const char *>(c->tuples[i]);

		memcpy(&to[i], tuple + c->tuples[i]->t_hoff + column->offset, sizeof(T));
	}
}

/* Stages the page's rows. */
static void
deform_page(Copier *c)
{
	uint16		infomask = 0;
	int			natts = INT16_MAX;

	for (int i = 0; i < c->ntuples; i++)
	{
		infomask |= c->tuples[i]->t_infomask;
		natts = Min(natts, static_cast<int>(HeapTupleHeaderGetNatts(c->tuples[i])));
	}
	if ((infomask & HEAP_HASNULL) || natts < c->natts)
	{
		for (int i = 0; i < c->ntuples; i++)
			walk_tuple(c->columns, c->attributes, c->natts, c->tuples[i], 0, 0, c->nrows + i);
		return;
	}

	for (int i = 0; i < c->ncols; i++)
	{
		WalkColumn *column = &c->columns[i];

		if (column->offset < 0)
			continue;
		switch (column->staging)
		{
			case Staging::Copy1:
				gather<uint8>(c, column);
				break;
			case Staging::Copy2:
				gather<uint16>(c, column);
				break;
			case Staging::Copy4:
				gather<uint32>(c, column);
				break;
			case Staging::Copy8:
				gather<uint64>(c, column);
				break;
			default:
				for (int t = 0; t < c->ntuples; t++)
					store_value(column, c->nrows + t,
								reinterpret_cast<const char *>(c->tuples[t]) + c->tuples[t]->t_hoff + column->offset);
				break;
		}
	}
	if (c->first_walked < c->natts)
		for (int i = 0; i < c->ntuples; i++)
			walk_tuple(c->columns, c->attributes, c->natts, c->tuples[i], c->first_walked, c->first_walked_offset, c->nrows + i);
}

static bool
agree_on_scale(CopyColumn *shared, uint32 scale)
{
	uint32		agreed = pg_atomic_read_u32(&shared->scale);

	return agreed == scale ||
		(agreed == NO_SCALE && (pg_atomic_compare_exchange_u32(&shared->scale, &agreed, scale) || agreed == scale));
}

/*
 * After a page: a column's scale is that of the first value that any process met,
 * and a column with a value that does not fit is given up. False: the page is (strict).
 */
static bool
settle_columns(Copier *c)
{
	bool		taken = true;
	bool		fits = true;

	/* no column has its scale from a page that is not taken */
	for (int i = 0; i < c->ncols && c->job->strict; i++)
		taken = taken && c->columns[i].unfit == COLUMN_FITS;
	for (int i = 0; i < c->ncols; i++)
	{
		WalkColumn *column = &c->columns[i];
		CopyColumn *shared = &c->job->columns[i];

		if (taken && column->staging == Staging::Numeric && column->unfit == COLUMN_FITS && column->scale >= 0 && !agree_on_scale(shared, column->scale))
			column->unfit = COLUMN_OTHER_SCALE;
		if (column->unfit == COLUMN_FITS)
			continue;
		fits = false;
		if (c->job->strict)
			shared->unfit = column->unfit;
		else
		{
			fail_job_column(c->job, shared, column->unfit);
			column->staging = Staging::Lost;
		}
		column->unfit = COLUMN_FITS;
	}
	return fits || !c->job->strict;
}

/* The rows of the page, which were staged, are not to be, nor what was learned from them. */
static void
unstage_page(Copier *c)
{
	for (int i = 0; i < c->ncols; i++)
	{
		if (c->columns[i].staging == Staging::Numeric)
			c->columns[i].scale = static_cast<int16>(pg_atomic_read_u32(&c->job->columns[i].scale));
		for (int t = 0; t < c->ntuples && c->columns[i].has_nulls; t++)
			c->columns[i].nulls[(c->nrows + t) / 64] &= ~(uint64{1} << ((c->nrows + t) % 64));
	}
	for (int i = 0; i < c->nvariable; i++)
		c->variable[i]->nimages = c->images_before[i];
}

static void
find_tuples(Copier *c)
{
	Page		page = c->page.data;
	OffsetNumber last = PageGetMaxOffsetNumber(page);

	c->ntuples = 0;
	c->dense = true;
	for (OffsetNumber offset = FirstOffsetNumber; offset <= last; offset++)
	{
		ItemId		item = PageGetItemId(page, offset);

		if (!ItemIdIsNormal(item))
			continue;
		c->tuples[c->ntuples] = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
		c->offsets[c->ntuples] = offset;
		c->dense = c->dense && offset == c->ntuples + 1;
		c->ntuples++;
	}
}

void
copier_skip(Copier *c)
{
	c->lsn = InvalidXLogRecPtr;
	c->dense = true;
	c->ntuples = 0;
}

bool
copy_visible_page(Relation rel, BlockNumber block, bool in_recovery, BufferAccessStrategy strategy, Buffer *vm_buffer, char *to, XLogRecPtr *lsn)
{
	Buffer		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
	Page		page = BufferGetPage(buffer);
	bool		visible;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	visible = (visibilitymap_get_status(rel, block, vm_buffer) & VISIBILITYMAP_ALL_VISIBLE) != 0 &&
		!PageIsNew(page) && (in_recovery || PageIsAllVisible(page));
	if (visible)
	{
		const PageHeaderData *header = reinterpret_cast<const PageHeaderData *>(page);

		*lsn = BufferGetLSNAtomic(buffer);
		memcpy(to, page, header->pd_lower);
		memcpy(to + header->pd_upper, page + header->pd_upper, BLCKSZ - header->pd_upper);
	}
	UnlockReleaseBuffer(buffer);
	return visible;
}

bool
copier_read(Copier *c, BlockNumber block, BufferAccessStrategy strategy, Buffer *vm_buffer)
{
	const bool	visible = copy_visible_page(c->rel, block, c->in_recovery, strategy, vm_buffer, c->page.data, &c->lsn);

	if (visible)
		find_tuples(c);
	else
		copier_skip(c);
	return visible;
}

bool
copier_has_room(const Copier *c, uint32 rows, uint32 limit)
{
	Size		images = 0;

	for (int i = 0; i < c->nvariable; i++)
		images += c->variable[i]->nimages;
	return c->nrows + rows <= limit && c->nblocks < MAX_TABLET_BLOCKS && images < c->max_images;
}

static void
append_key(Copier *c, XLogRecPtr lsn, const uint16 *lps, uint32 nlps)
{
	if (c->nblocks == c->block_capacity)
	{
		c->block_capacity *= 2;
		c->block_rows = static_cast<uint32 *>(repalloc(c->block_rows, sizeof(uint32) * (c->block_capacity + 1)));
		c->block_lsns = static_cast<uint64 *>(repalloc(c->block_lsns, sizeof(uint64) * c->block_capacity));
		c->block_lps = static_cast<uint32 *>(repalloc(c->block_lps, sizeof(uint32) * c->block_capacity));
	}
	c->block_rows[c->nblocks] = c->nrows;
	c->block_lsns[c->nblocks] = lsn;
	c->block_lps[c->nblocks] = lps == NULL ? LPS_DENSE : c->nlps;
	if (lps != NULL)
	{
		memcpy(c->lps + c->nlps, lps, sizeof(uint16) * nlps);
		c->nlps += nlps;
	}
	c->nblocks++;
}

bool
copier_append(Copier *c)
{
	for (int i = 0; i < c->nvariable; i++)
		c->images_before[i] = c->variable[i]->nimages;
	if (c->ntuples > 0)
		deform_page(c);
	if (!c->settled && c->ntuples > 0 && !settle_columns(c))
	{
		unstage_page(c);
		return false;
	}
	append_key(c, c->lsn, c->dense ? NULL : c->offsets, c->ntuples);
	c->nrows += c->ntuples;
	return true;
}

void
copier_begin_block(Copier *c)
{
	copier_skip(c);
}

void
copier_add_row(Copier *c, const Datum *values, const bool *nulls)
{
	uint32		row = c->nrows + c->ntuples++;

	for (int i = 0; i < c->ncols; i++)
	{
		int			attribute = c->job->columns[i].attnum - 1;

		if (c->columns[i].staging == Staging::High)
			continue;
		if (nulls[attribute])
			set_null(&c->columns[i], row);
		else
			store_datum(&c->columns[i], row, values[attribute]);
	}
}

bool
copier_end_block(Copier *c)
{
	if (!c->settled && c->ntuples > 0 && !settle_columns(c))
		return false;
	append_key(c, c->lsn, c->dense ? NULL : c->offsets, c->ntuples);
	c->nrows += c->ntuples;
	return true;
}

/* Rows have references to images of an older tablet: they get images of their own. */
static void
take_old_images(WalkColumn *column, uint32 first, uint32 nrows)
{
	for (uint32 row = first; row < first + nrows; row++)
	{
		int64		reference;

		if (column->nulls[row / 64] >> (row % 64) & 1)
			continue;
		memcpy(&reference, column->values + Size{row} * sizeof(reference), sizeof(reference));
		store_stored_image(column, row, arena_at<char>(static_cast<uint64>(reference)));
	}
}

void
copier_append_old(Copier *c, const TabletHeader *tablet, uint32 first, uint32 n)
{
	const uint32_t *block_rows = tablet_at<uint32_t>(tablet, tablet->block_rows);
	const uint64_t *block_lsns = tablet_at<uint64_t>(tablet, tablet->block_lsns);
	const uint32_t *block_lps = tablet_at<uint32_t>(tablet, tablet->block_lps);
	const uint16_t *lps = tablet_at<uint16_t>(tablet, tablet->lps);
	uint32		row = block_rows[first];
	uint32		nrows = block_rows[first + n] - row;

	for (int i = 0; i < c->ncols; i++)
	{
		WalkColumn *column = &c->columns[i];
		const ColumnChunk &chunk = tablet_chunks(tablet)[i];

		if (column->staging == Staging::Lost)
			continue;
		decode_values(tablet, chunk, row, nrows, column->values, c->nrows);
		if (column->staging == Staging::High)
			continue;
		if (decode_nulls(tablet, chunk, row, nrows, column->nulls, c->nrows))
			column->has_nulls = true;
		if (column->staging == Staging::Variable)
			take_old_images(column, c->nrows, nrows);
	}
	for (uint32 b = first; b < first + n; b++)
	{
		uint32		rows = block_rows[b + 1] - block_rows[b];

		append_key(c, block_lsns[b], block_lps[b] == LPS_DENSE ? NULL : lps + block_lps[b], rows);
		c->nrows += rows;
	}
}

/* False: the import is to begin anew. */
static bool
copy_slice(Copier *c, BlockNumber from, BlockNumber to)
{
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	CopyJob    *job = c->job;
	uint64	   *served_words = arena_at<uint64>(job->served);
	Buffer		vm_buffer = InvalidBuffer;
	uint64		rows = 0;
	uint64		rows_shown = 0;
	uint64		rows_counted = 0;
	uint64		served = 0;
	BlockNumber blocks_shown = from;
	Snapshot	snapshot = job->detoasts ? detoast_begin() : NULL;
	bool		going = true;

	c->first_block = from;
	for (BlockNumber block = from; block < to && going; block++)
	{
		if (block % BLOCKS_PER_CHECK == 0)
		{
			if (BufferIsValid(vm_buffer))
				ReleaseBuffer(vm_buffer);
			vm_buffer = InvalidBuffer;
			detoast_end(snapshot);
			CHECK_FOR_INTERRUPTS();
			refresh_pace();
			snapshot = job->detoasts ? detoast_begin() : NULL;
			progress_add(job->progress_slot, block - blocks_shown, rows - rows_shown);
			blocks_shown = block;
			rows_shown = rows;
			pg_atomic_fetch_add_u64(&job->nrows, rows - rows_counted);
			rows_counted = rows;
			going = !copy_again(job);
		}

		if (copier_read(c, block, strategy, &vm_buffer))
		{
			/* another slice may begin within the word */
			__atomic_fetch_or(&served_words[vm_word_of(block)], vm_word_bit(block), __ATOMIC_RELAXED);
			served++;
		}
		if (!copier_has_room(c, c->ntuples, c->row_capacity))
		{
			/* what the images' number is compared with */
			pg_atomic_fetch_add_u64(&job->nrows, rows - rows_counted);
			rows_counted = rows;
			going = flush_or_raise(c, block) && going;
		}
		if (going)
			(void) copier_append(c);
		rows += c->ntuples;
	}
	pg_atomic_fetch_add_u64(&job->nrows, rows - rows_counted);
	going = going && flush_or_raise(c, to) && !copy_again(job);
	detoast_end(snapshot);
	if (BufferIsValid(vm_buffer))
		ReleaseBuffer(vm_buffer);
	FreeAccessStrategy(strategy);

	progress_add(job->progress_slot, to - blocks_shown, rows - rows_shown);
	pg_atomic_fetch_add_u64(&job->served_blocks, served);
	return going;
}

void
copy_slices(Relation rel, CopyJob *job)
{
	Copier	   *c = make_copier(rel, job, job->tablet_rows);
	uint32		slice;

	while ((slice = pg_atomic_fetch_add_u32(&job->next_slice, 1)) < job->nslices)
	{
		BlockNumber from = slice * job->slice_blocks;

		if (!copy_slice(c, from, Min(job->nblocks - from, job->slice_blocks) + from))
			break;
	}
	free_copier(c);
}

}  // namespace gpuvm
