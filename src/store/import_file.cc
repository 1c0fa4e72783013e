/*
 * import_file.cc: a file's rows into tablets, or those that a snapshot sees of a table without a file.
 *
 * So many rows as a page may hold are a block that is made up, and from there all goes as with a
 * heap: forms, dictionaries, tablets, another attempt where a value does not fit, several processes. Those
 * read parts of the file; what one of them raises is not what is said, as it does not know the
 * number of its line: the file is read again by one. The version is seen by all at once, as the file is.
 */
#include "store/copier.h"

#include "pg/engine_client.h"
#include "pg/shmem.h"
#include "pg/subtransaction.h"
#include "store/family.h"
#include "store/file.h"
#include "store/refresher.h"
#include "store/tablets.h"

extern "C" {
#include "access/htup_details.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
}

namespace gpuvm {

constexpr int ATTEMPTS = 3;
/* Two ticks of the system's clock: what is written within one has one time. */
constexpr int64 TICK_NS = 20 * 1000 * 1000;

/* A row takes a byte at least. */
static BlockNumber
blocks_at_most(uint64 size)
{
	return static_cast<BlockNumber>(Min(size / MaxHeapTuplesPerPage + 2, uint64{MaxBlockNumber}));
}

static bool
next_row(FileReader *reader, MemoryContext row, Datum *values, bool *nulls)
{
	MemoryContext old = MemoryContextSwitchTo(row);
	bool		found;

	MemoryContextReset(row);
	found = file_next(reader, values, nulls);
	MemoryContextSwitchTo(old);
	return found;
}

/* All rows of the reader, in blocks from `block` to below `end`. False: the import is to begin anew. */
static bool
copy_rows(Copier *c, FileReader *reader, BlockNumber block, BlockNumber end)
{
	int			natts = RelationGetDescr(c->rel)->natts;
	MemoryContext row = AllocSetContextCreate(CurrentMemoryContext, "gpuvm row of a file", ALLOCSET_DEFAULT_SIZES);
	Datum	   *values = static_cast<Datum *>(palloc(sizeof(Datum) * Max(natts, 1)));
	bool	   *nulls = static_cast<bool *>(palloc(sizeof(bool) * Max(natts, 1)));
	bool		going = true;
	bool		more = true;

	c->first_block = block;
	/* there are more where the file has grown since its size was looked at: the caller finds that it has changed */
	while (going && more && block < end)
	{
		CHECK_FOR_INTERRUPTS();
		refresh_pace();
		if (!copier_has_room(c, MaxHeapTuplesPerPage, c->row_capacity) && !(going = flush_or_raise(c, block)))
			break;
		copier_begin_block(c);
		while (c->ntuples < MaxHeapTuplesPerPage && (more = next_row(reader, row, values, nulls)))
			copier_add_row(c, values, nulls);
		if (c->ntuples == 0)
			break;
		(void) copier_end_block(c);
		block++;
		pg_atomic_fetch_add_u64(&c->job->nrows, c->ntuples);
		progress_add(c->job->progress_slot, 1, c->ntuples);
		going = !copy_again(c->job);
	}
	going = going && flush_or_raise(c, block);
	pfree(values);
	pfree(nulls);
	MemoryContextDelete(row);
	return going;
}

/* Its tablets are in the file's order, whoever makes them: a range's blocks come after all that earlier ones can have. */
static BlockNumber
first_block_of(const FileRange &range)
{
	return static_cast<BlockNumber>(range.from / MaxHeapTuplesPerPage + 2 * range.number);
}

void
copy_file_rows(Relation rel, CopyJob *job)
{
	Copier	   *c;
	FileReader *reader;
	FileRange	range;

	if (is_tablet_table(rel))
	{
		copy_stored_table(rel, job);
		return;
	}
	c = make_copier(rel, job, job->tablet_rows);
	if (job->ranges.size == 0)
	{
		reader = file_open(rel);
		(void) copy_rows(c, reader, 0, job->nblocks);
		file_close(reader);
	}
	while (job->ranges.size > 0 && !copy_again(job) && (reader = file_open_range(rel, &job->ranges, &range)) != NULL)
	{
		BlockNumber first = first_block_of(range);

		(void) copy_rows(c, reader, first, first + blocks_at_most(range.to - range.from));
		file_close(reader);
	}
	free_copier(c);
}

static void
number_blocks(CopyJob *job)
{
	const uint64 *tablets = arena_at<uint64>(job->manifest);
	uint64	   *served = arena_at<uint64>(job->served);
	BlockNumber next = 0;

	sort_tablets(job);
	for (uint32 i = 0; i < pg_atomic_read_u32(&job->ntablets); i++)
	{
		TabletHeader *tablet = arena_at<TabletHeader>(tablets[i]);

		tablet->first_block = next;
		next += tablet->nblocks;
	}
	for (BlockNumber block = 0; block < next; block++)
		served[vm_word_of(block)] |= vm_word_bit(block);
	job->nblocks = next;
	pg_atomic_write_u64(&job->served_blocks, next);
}

/* What several processes are to copy; `job`: what became of it. */
struct RangesCopy
{
	Relation	rel;
	CopyColumn *columns;
	int			ncols;
	BlockNumber most;
	int			workers;
	const FileRanges *ranges;
	int			slot;
	CopyJob    *job;
};

static void
copy_ranges(void *argument)
{
	RangesCopy *copy = static_cast<RangesCopy *>(argument);

	copy->job = copy_blocks(copy->rel, copy->columns, copy->ncols, copy->most, copy->workers, copy->ranges, copy->slot);
}

/*
 * The rows by several processes. NULL: something went wrong, which one process is to find again, as only that counts
 * lines. So it is a subtransaction, and what is left of it (a copier's rows, an open file) goes before the file is read again.
 */
static CopyJob *
copy_in_ranges(RangesCopy copy)
{
	MemoryContext work = AllocSetContextCreate(CurrentMemoryContext, "gpuvm parts of a file", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(work);
	const ErrorData *error = in_subtransaction(copy_ranges, &copy);

	MemoryContextSwitchTo(old);
	if (error == NULL)
		return copy.job;
	ereport(DEBUG1,
			(errmsg_internal("one process loads the file again: %s", error->message)));
	MemoryContextDelete(work);
	return NULL;
}

static void
find_file(Relation rel, FileOrigin *origin)
{
	if (!file_origin(rel, origin))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FILE),
				 errmsg("could not find file \"%s\"", file_options(rel).filename),
				 errdetail("The server cannot read it, or it is no regular file.")));
}

/*
 * What the file is before it is read: as it was for a tick, so that whatever is written from here on has a later time. That
 * must not rest on clocks being equal where the file is of another machine.
 */
static void
look_at_file(Relation rel, FileOrigin *origin)
{
	for (;;)
	{
		FileOrigin	before;
		struct timespec now;
		int64		age;

		find_file(rel, &before);
		if (before.stored)
		{
			/* nothing changes under a snapshot */
			*origin = before;
			return;
		}
		(void) clock_gettime(CLOCK_REALTIME, &now);
		age = now.tv_sec * INT64CONST(1000000000) + now.tv_nsec - Max(before.stamp.modified, before.stamp.changed);
		if (age < TICK_NS)
			pg_usleep(TICK_NS / 1000);
		CHECK_FOR_INTERRUPTS();
		find_file(rel, origin);
		if (stamps_equal(before.stamp, origin->stamp))
			return;
	}
}

uint64
import_file(Relation rel, const int16 *attnums, int ncols, bool all_columns, bool quiet)
{
	CopyColumn *columns = static_cast<CopyColumn *>(palloc0(sizeof(CopyColumn) * Max(ncols, 1)));
	Signature	signature = make_signature(RelationGetDescr(rel));
	CopyJob    *job = NULL;
	FileOrigin	origin = {};
	FileOrigin	after;
	uint64	   *stamps;
	uint64		nrows;
	uint64		version;
	int			slot;
	/* a partition's dictionaries grow with those of the others */
	bool		unlock = family_lock(rel);
	bool		several = true;

	for (int attempt = 1;;)
	{
		BlockNumber most;
		FileRanges	ranges;
		int			workers;

		look_at_file(rel, &origin);
		memset(static_cast<void *>(columns), 0, sizeof(CopyColumn) * ncols);
		for (int i = 0; i < ncols; i++)
			init_copy_column(&columns[i], TupleDescAttr(RelationGetDescr(rel), attnums[i] - 1));
		most = blocks_at_most(origin.stamp.size);
		/* what is stored is read by one; each stored tablet begins a block, and may end a tablet that is half full */
		if (origin.stored)
			most = static_cast<BlockNumber>(Min(2 * uint64{most} + origin.stamp.modified, uint64{MaxBlockNumber}));
		several = several && !origin.stored;
		workers = several ? copy_workers(file_processes(origin.stamp.size) - 1) : 0;
		several = workers > 0 && file_ranges_init(&ranges, rel, origin.stamp.size, workers + 1);
		if (several)
			most += 2 * file_max_ranges(origin.stamp.size);
		slot = progress_begin(RelationGetRelid(rel), most);
		job = several ? copy_in_ranges(RangesCopy{rel, columns, ncols, most, workers, &ranges, slot, NULL})
			: copy_blocks(rel, columns, ncols, most, 0, NULL, slot);
		if (job == NULL)
		{
			several = false;
			continue;
		}
		number_blocks(job);
		if (file_origin(rel, &after) && stamps_equal(origin.stamp, after.stamp))
			break;
		manifest_abandon();
		progress_end();
		pfree(job);
		if (attempt++ == ATTEMPTS)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("file \"%s\" changed while it was read", file_options(rel).filename)));
	}

	progress_phase(slot, IMPORT_PUBLISHING);
	registry_sweep();
	nrows = pg_atomic_read_u64(&job->nrows);
	if (!quiet)
		report_failed_columns(rel, job);
	strip_failed_columns(job);
	stamps = static_cast<uint64 *>(palloc0(sizeof(uint64) * Max(vm_pages(job->nblocks), 1)));
	version = version_of(job, stamps, signature, &origin);
	quota_check(rel, version);
	registry_publish(rel, version, all_columns, true);
	/* from here the registry owns version and tablets */
	manifest_end();
	engine_prepare(version);
	progress_end();
	if (unlock)
		family_unlock(rel);

	pfree(stamps);
	pfree(signature.data);
	pfree(job);
	pfree(columns);
	return nrows;
}

}  // namespace gpuvm
