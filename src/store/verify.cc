/*
 * verify.cc: tablets against their checksums and their values.
 *
 * Nothing is trusted before it was checked: first the version's blob, which names all else, then each dictionary and
 * each tablet as a whole, then its columns. A checksum tells that memory has changed since; statistics that are not
 * those of the values tell of an error in what made them, which the checksum would cover.
 */
#include "store/verify.h"

#include "pg/shmem.h"
#include "store/checksum.h"
#include "store/copier.h"
#include "store/tablet_rows.h"
#include "tablet/build.h"
#include "tablet/decode.h"
#include "tablet/wide_halves.h"

extern "C" {
#include "access/htup_details.h"
#include "access/xlog.h"
#if PG_VERSION_NUM >= 150000
#include "access/xlogrecovery.h"
#endif
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

namespace gpuvm {

struct Verification
{
	const TableVersion *version;
	const ColumnSummary *columns;
	TupleDesc	desc;
	bool		matches;		/* are the columns of this definition? */
	ReportProblem report;
	void	   *to;

	/* the tablet at hand */
	const TabletHeader *tablet;
	int			number;

	/* a column's values, decoded: room for so many rows */
	uint32		capacity;
	int64	   *values;
	uint64	   *nulls;
};

static void
report_table(const Verification *v, AttrNumber attnum, const char *text)
{
	v->report(v->to, Problem{-1, attnum, 0, 0, InvalidOffsetNumber, text});
}

static void
report_tablet(const Verification *v, AttrNumber attnum, const char *text)
{
	/* a header that cannot be trusted says nothing of blocks */
	const bool	known = attnum != InvalidAttrNumber;
	const BlockNumber first = known ? v->tablet->first_block : 0;

	v->report(v->to, Problem{v->number, attnum, first, known ? v->tablet->nblocks : 0, InvalidOffsetNumber, text});
}

/* The rows' references lead to images one after the other, within those that the column has. */
static bool
references_lead_to_images(const Verification *v, const ColumnChunk &chunk)
{
	const int	attlen = TupleDescAttr(v->desc, chunk.attnum - 1)->attlen;
	uint64		next = static_cast<uint64>(chunk.min);
	const uint64 end = next + variable_bytes(chunk);

	for (uint32 row = 0; row < v->tablet->nrows; row++)
	{
		const uint64 at = static_cast<uint64>(v->values[row]);

		if (v->nulls[row / 64] >> (row % 64) & 1)
			continue;
		if (at < next || at >= end)
			return false;
		next = at + image_length(arena_at<char>(at), attlen);
		if (next > end)
			return false;
	}
	return true;
}

/* Are the column's statistics, and its form, what a tablet of its values would get? */
static bool
statistics_fit(Verification *v, const ColumnChunk &chunk)
{
	const uint32 nrows = v->tablet->nrows;
	StagedColumn column = {chunk.type, chunk.attnum, v->values, NULL, chunk.encoding};
	StagedTablet staged = {};
	TabletHeader header;
	ColumnChunk made;

	memset(v->nulls, 0, v->capacity / 8);
	if (decode_nulls(v->tablet, chunk, 0, nrows, v->nulls, 0))
		column.nulls = v->nulls;
	decode_values(v->tablet, chunk, 0, nrows, v->values, 0);
	column.nimages = chunk.encoding == Encoding::Variable ? variable_bytes(chunk) : 0;
	staged.nrows = nrows;
	staged.ncols = 1;
	staged.columns = &column;
	(void) plan_tablet(staged, &header, &made);
	if (made.null_count != chunk.null_count || made.flags != chunk.flags || made.width != chunk.width)
		return false;
	return chunk.encoding == Encoding::Variable ||
		(made.min == chunk.min && made.max == chunk.max && made.base == chunk.base &&
		 made.exp_hi == chunk.exp_hi && made.exp_lo == chunk.exp_lo);
}

/* False: what is wrong was reported. */
static bool
verify_column(Verification *v, uint32 column)
{
	const ColumnSummary &summary = v->columns[column];
	const ColumnChunk &chunk = tablet_chunks(v->tablet)[column];
	const bool	all_null = (chunk.flags & CHUNK_ALL_NULL) != 0;
	const char *wrong = NULL;

	if (!column_is_sealed(v->tablet, column))
		wrong = "values do not match their checksum";
	else if (!statistics_fit(v, chunk))
		wrong = "statistics are not those of the values";
	else if (chunk.encoding == Encoding::Variable && !all_null && v->matches && !references_lead_to_images(v, chunk))
		wrong = "references do not lead to values";
	else if (summary.dictionary != 0 && !all_null &&
			 (chunk.min < 0 || chunk.max >= static_cast<int64>(arena_at<Dictionary>(summary.dictionary)->nentries)))
		wrong = "codes are not those of the dictionary";
	if (wrong != NULL)
		report_tablet(v, summary.attnum, wrong);
	return wrong == NULL;
}

static void
make_room(Verification *v)
{
	if (v->tablet->padded_rows <= v->capacity)
		return;
	if (v->capacity > 0)
	{
		pfree(v->values);
		pfree(v->nulls);
	}
	v->capacity = v->tablet->padded_rows;
	v->values = static_cast<int64 *>(palloc_extended(Size{v->capacity} * sizeof(int64), MCXT_ALLOC_HUGE));
	v->nulls = static_cast<uint64 *>(palloc(v->capacity / 8));
}

static bool
verify_tablet(Verification *v, uint64 offset)
{
	const char *wrong = check_tablet(v->tablet, arena_allocated(offset), offset);
	bool		good = true;

	if (wrong == NULL && !tablet_is_sealed(v->tablet))
		wrong = "header or block map do not match their checksum";
	else if (wrong == NULL && v->tablet->ncols != v->version->ncols)
		wrong = "the tablet has other columns than the table";
	if (wrong != NULL)
	{
		report_tablet(v, InvalidAttrNumber, wrong);
		return false;
	}
	make_room(v);
	for (uint32 i = 0; i < v->version->ncols; i++)
	{
		CHECK_FOR_INTERRUPTS();
		good = verify_column(v, i) && good;
	}
	return good;
}

/* Of tablets without a problem: what programs are lowered for is what they have. */
static void
verify_summaries(const Verification *v)
{
	const uint64_t *tablets = version_at<uint64_t>(v->version, v->version->tablets);
	constexpr uint16 of_tablets = CHUNK_HAS_NULLS | CHUNK_ALL_NULL | CHUNK_HAS_NAN | CHUNK_HAS_INF | CHUNK_HAS_NEG_ZERO;

	for (uint32 i = 0; i < v->version->ncols && v->version->ntablets > 0; i++)
	{
		const ColumnSummary &has = v->columns[i];
		ColumnSummary made;

		for (uint32 t = 0; t < v->version->ntablets; t++)
			summarize_chunk(&made, tablet_chunks(arena_at<TabletHeader>(tablets[t]))[i], t == 0);
		if (has.type != made.type || has.attnum != made.attnum || has.max_width != made.max_width ||
			has.min != made.min || has.max != made.max || has.null_count != made.null_count ||
			has.exp_hi != made.exp_hi || has.exp_lo != made.exp_lo || ((has.flags ^ made.flags) & of_tablets) != 0)
			report_table(v, has.attnum, "the table's statistics are not those of its tablets");
	}
}

void
verify_version(Relation rel, VersionPin *pin, ReportProblem report, void *to)
{
	const uint64 offset = pin_offset(pin);
	Verification v = {};
	const uint64_t *tablets;
	bool		good = true;

	v.version = pin_version(pin);
	v.desc = RelationGetDescr(rel);
	v.report = report;
	v.to = to;
	if (!version_is_sealed(offset))
	{
		report_table(&v, InvalidAttrNumber, "the list of tablets and blocks does not match its checksum");
		return;
	}
	v.matches = pin_matches(pin, rel);
	v.columns = version_at<ColumnSummary>(v.version, v.version->columns);
	for (uint32 i = 0; i < v.version->ncols; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (v.columns[i].dictionary == 0 || dictionary_is_sealed(v.columns[i].dictionary))
			continue;
		report_table(&v, v.columns[i].attnum, "the dictionary does not match its checksum");
		good = false;
	}

	tablets = version_at<uint64_t>(v.version, v.version->tablets);
	for (uint32 t = 0; t < v.version->ntablets; t++)
	{
		v.tablet = arena_at<TabletHeader>(tablets[t]);
		v.number = static_cast<int>(t);
		good = verify_tablet(&v, tablets[t]) && good;
	}
	if (good)
		verify_summaries(&v);
	if (v.capacity > 0)
	{
		pfree(v.values);
		pfree(v.nulls);
	}
}

/* -- against the heap --------------------------------------------------------------- */

struct HeapComparison
{
	Relation	rel;
	TupleDesc	desc;
	const TableVersion *version;
	const ColumnSummary *columns;
	ReportProblem report;
	void	   *to;
	FmgrInfo   *output;			/* of each attribute's type */
	TupleTableSlot *slot;		/* a tablet's row */
	Datum	   *values;			/* and the heap's */
	bool	   *nulls;
	PGAlignedBlock page;

	/* the block at hand */
	int			number;			/* of its tablet */
	BlockNumber block;
};

static void
report_row(const HeapComparison *h, AttrNumber attnum, OffsetNumber row, const char *text)
{
	h->report(h->to, Problem{h->number, attnum, h->block, 1, row, text});
}

/* Numerics of equal value and scale may have different images: then what is shown counts. */
static bool
same_value(HeapComparison *h, int attribute)
{
	Form_pg_attribute att = TupleDescAttr(h->desc, attribute);
	const Datum tablets = h->slot->tts_values[attribute];

	if (h->nulls[attribute] != h->slot->tts_isnull[attribute])
		return false;
	return h->nulls[attribute] || datum_image_eq(h->values[attribute], tablets, att->attbyval, att->attlen) ||
		strcmp(OutputFunctionCall(&h->output[attribute], h->values[attribute]),
			   OutputFunctionCall(&h->output[attribute], tablets)) == 0;
}

static void
compare_row(HeapComparison *h, OffsetNumber offset)
{
	ItemId		item = PageGetItemId(h->page.data, offset);
	HeapTupleData tuple;

	tuple.t_len = ItemIdGetLength(item);
	ItemPointerSet(&tuple.t_self, h->block, offset);
	tuple.t_tableOid = RelationGetRelid(h->rel);
	tuple.t_data = reinterpret_cast<HeapTupleHeader>(PageGetItem(h->page.data, item));
	heap_deform_tuple(&tuple, h->desc, h->values, h->nulls);
	for (uint32 i = 0; i < h->version->ncols && !is_high_half(h->columns[i].attnum); i++)
		if (!(h->columns[i].flags & COLUMN_LEFT_OUT) && !same_value(h, h->columns[i].attnum - 1))
			report_row(h, h->columns[i].attnum, offset, "the tablet has another value than the heap");
}

/* The block's rows in the tablet, from `row` on, against those of its page. */
static void
compare_block(HeapComparison *h, const TabletHeader *tablet, uint32 row, uint32 end)
{
	uint32		hint = h->block - tablet->first_block;
	const OffsetNumber last = PageGetMaxOffsetNumber(h->page.data);

	for (OffsetNumber offset = FirstOffsetNumber; offset <= last; offset++)
	{
		ItemPointerData ctid;

		if (!ItemIdIsNormal(PageGetItemId(h->page.data, offset)))
			continue;
		ItemPointerSetInvalid(&ctid);
		if (row < end)
			tablet_row_ctids(tablet, &row, 1, &hint, &ctid);
		if (row == end || ItemPointerGetOffsetNumberNoCheck(&ctid) != offset)
		{
			report_row(h, InvalidAttrNumber, offset, "the tablet has other rows than the heap");
			return;
		}
		tablet_row(h->version, tablet, row, NULL, h->slot);
		compare_row(h, offset);
		row++;
	}
	if (row < end)
		report_row(h, InvalidAttrNumber, InvalidOffsetNumber, "the tablet has rows that the heap has not");
}

static HeapComparison *
begin_comparison(Relation rel, const TableVersion *version, ReportProblem report, void *to)
{
	HeapComparison *h = static_cast<HeapComparison *>(palloc0(sizeof(HeapComparison)));

	h->rel = rel;
	h->desc = RelationGetDescr(rel);
	h->version = version;
	h->columns = version_at<ColumnSummary>(version, version->columns);
	h->report = report;
	h->to = to;
	h->slot = MakeSingleTupleTableSlot(h->desc, &TTSOpsVirtual);
	h->values = static_cast<Datum *>(palloc(sizeof(Datum) * h->desc->natts));
	h->nulls = static_cast<bool *>(palloc(sizeof(bool) * h->desc->natts));
	h->output = static_cast<FmgrInfo *>(palloc0(sizeof(FmgrInfo) * h->desc->natts));
	for (int i = 0; i < h->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(h->desc, i);
		Oid			output;
		bool		is_varlena;

		if (att->attisdropped)
			continue;
		getTypeOutputInfo(att->atttypid, &output, &is_varlena);
		fmgr_info(output, &h->output[i]);
	}
	return h;
}

bool
verify_heap(Relation rel, ReportProblem report, void *to, int *reason)
{
	const bool	in_recovery = RecoveryInProgress();
	const XLogRecPtr begin = in_recovery ? GetXLogReplayRecPtr(NULL) : GetXLogInsertRecPtr();
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	Buffer		vm_buffer = InvalidBuffer;
	VersionPin *pin = registry_pin(rel, reason);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuvm rows to compare", ALLOCSET_DEFAULT_SIZES);
	ServedCheck check;
	HeapComparison *h;
	const uint64_t *tablets;
	uint32		run = 0;

	if (pin == NULL)
		return false;
	if (!version_check(rel, GetActiveSnapshot(), &pin, reason, &check))
	{
		registry_unpin(pin);
		return false;
	}
	h = begin_comparison(rel, pin_version(pin), report, to);
	tablets = version_at<uint64_t>(h->version, h->version->tablets);
	for (uint32 t = 0; t < h->version->ntablets; t++)
	{
		const TabletHeader *tablet = arena_at<TabletHeader>(tablets[t]);
		const uint32_t *block_rows = tablet_at<uint32_t>(tablet, tablet->block_rows);

		h->number = static_cast<int>(t);
		for (uint32 b = 0; b < tablet->nblocks; b++)
		{
			XLogRecPtr	lsn;
			MemoryContext old;

			CHECK_FOR_INTERRUPTS();
			h->block = tablet->first_block + b;
			while (run < check.nruns && check.runs[run].first + check.runs[run].count <= h->block)
				run++;
			if (h->block >= check.nblocks || (run < check.nruns && check.runs[run].first <= h->block))
				continue;
			/* what has changed since it was checked is nobody's fault */
			if (!copy_visible_page(rel, h->block, in_recovery, strategy, &vm_buffer, h->page.data, &lsn) || lsn > begin)
				continue;
			old = MemoryContextSwitchTo(context);
			compare_block(h, tablet, block_rows[b], block_rows[b + 1]);
			MemoryContextSwitchTo(old);
			MemoryContextReset(context);
		}
	}
	if (BufferIsValid(vm_buffer))
		ReleaseBuffer(vm_buffer);
	FreeAccessStrategy(strategy);
	ExecDropSingleTupleTableSlot(h->slot);
	MemoryContextDelete(context);
	registry_unpin(pin);
	return true;
}

}  // namespace gpuvm
