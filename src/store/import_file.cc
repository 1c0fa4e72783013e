/*
 * import_file.cc: a file's rows into tablets.
 *
 * Rows become heap tuples, so many as a page may hold are a block that is made up, and
 * from there all goes as with a heap: forms, dictionaries, tablets, another attempt where a
 * value does not fit. The version is seen by all at once, as the file is.
 */
#include "store/copier.h"

#include "pg/engine_client.h"
#include "pg/shmem.h"
#include "store/family.h"
#include "store/file.h"
#include "store/refresher.h"

extern "C" {
#include "access/htup_details.h"
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

void
copy_file_rows(Relation rel, CopyJob *job)
{
	TupleDesc	desc = RelationGetDescr(rel);
	Copier	   *c = make_copier(rel, job, job->tablet_rows);
	MemoryContext rows = AllocSetContextCreate(CurrentMemoryContext, "gpuvm rows of a file", ALLOCSET_DEFAULT_SIZES);
	Datum	   *values = static_cast<Datum *>(palloc(sizeof(Datum) * Max(desc->natts, 1)));
	bool	   *nulls = static_cast<bool *>(palloc(sizeof(bool) * Max(desc->natts, 1)));
	FileReader *reader = file_open(rel);
	uint64	   *served = arena_at<uint64>(job->served);
	BlockNumber block = 0;
	bool		going = true;
	bool		more = true;

	c->first_block = 0;
	c->lsn = 0;
	c->dense = true;
	while (going && more)
	{
		MemoryContext old = MemoryContextSwitchTo(rows);

		CHECK_FOR_INTERRUPTS();
		refresh_pace();
		MemoryContextReset(rows);
		c->ntuples = 0;
		while (c->ntuples < MaxHeapTuplesPerPage && (more = file_next(reader, values, nulls)))
			c->tuples[c->ntuples++] = heap_form_tuple(desc, values, nulls)->t_data;
		MemoryContextSwitchTo(old);
		/* it has grown since its size was looked at: the caller finds that it has changed */
		if (c->ntuples == 0 || block == job->nblocks)
			break;
		if (!copier_has_room(c, c->ntuples, c->row_capacity))
			going = flush_or_raise(c, block);
		if (going)
			(void) copier_append(c);
		served[vm_word_of(block)] |= vm_word_bit(block);
		block++;
		pg_atomic_fetch_add_u64(&job->nrows, c->ntuples);
		progress_add(job->progress_slot, 1, c->ntuples);
		going = going && !copy_again(job);
	}
	(void) (going && flush_or_raise(c, block));
	job->nblocks = block;
	pg_atomic_write_u64(&job->served_blocks, block);
	file_close(reader);
	pfree(values);
	pfree(nulls);
	MemoryContextDelete(rows);
	free_copier(c);
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
	VersionColumn *sealed;
	FileOrigin	origin = {};
	FileOrigin	after;
	uint64	   *stamps;
	uint64		nrows;
	uint64		version;
	int			slot;
	/* a partition's dictionaries grow with those of the others */
	bool		unlock = family_lock(rel);

	for (int attempt = 0;; attempt++)
	{
		BlockNumber most;

		look_at_file(rel, &origin);
		memset(static_cast<void *>(columns), 0, sizeof(CopyColumn) * ncols);
		for (int i = 0; i < ncols; i++)
			init_copy_column(&columns[i], TupleDescAttr(RelationGetDescr(rel), attnums[i] - 1));
		most = blocks_at_most(origin.stamp.size);
		slot = progress_begin(RelationGetRelid(rel), most);
		job = copy_blocks(rel, columns, ncols, most, slot);
		if (file_origin(rel, &after) && stamps_equal(origin.stamp, after.stamp))
			break;
		manifest_abandon();
		progress_end();
		pfree(job);
		if (attempt + 1 == ATTEMPTS)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("file \"%s\" changed while it was read", file_options(rel).filename)));
	}

	progress_phase(slot, IMPORT_PUBLISHING);
	registry_sweep();
	nrows = pg_atomic_read_u64(&job->nrows);
	sealed = seal_columns(job);
	if (!quiet)
		report_failed_columns(rel, job);
	strip_failed_columns(job);
	stamps = static_cast<uint64 *>(palloc0(sizeof(uint64) * Max(vm_pages(job->nblocks), 1)));
	version = version_of(job, sealed, stamps, signature, &origin);
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
