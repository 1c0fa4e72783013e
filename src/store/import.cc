/*
 * import.cc: one import from its checks to its publication.
 *
 * Order (design, section 4): the relation is locked against changes of its file
 * and columns until the transaction ends; VACUUM sets the bits; the number of
 * blocks and the stamp of every visibility map page are read; then the blocks
 * are copied, by parallel workers too; the version's blob is made; it becomes
 * visible to others when the transaction commits.
 *
 * No block is read under a snapshot of the import's own. A session that calls
 * gpuvm.import() has one all the same, that of its statement.
 */
#include "store/family.h"
#include "store/internal.h"

#include "pg/engine_client.h"
#include "pg/settings.h"
#include "pg/shmem.h"
#include "store/catalog.h"
#include "store/file.h"

extern "C" {
#include "access/heapam.h"
#include "access/parallel.h"
#include "access/relation.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "lib/stringinfo.h"
#include "optimizer/optimizer.h"
#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "storage/shm_toc.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

PGDLLEXPORT void gpuvm_copy_main(dsm_segment *segment, shm_toc *toc);
}

namespace gpuvm {

constexpr BlockNumber BLOCKS_PER_WORKER = 8192;	/* a worker takes a millisecond to start */
constexpr BlockNumber MIN_SLICE_BLOCKS = 1024;
constexpr uint64 COPY_JOB_KEY = 1;

/* -- what may be imported ------------------------------------------------------ */

static void
refuse_kind(Relation rel, int code, const char *what, const char *hint)
{
	ereport(ERROR,
			(errcode(code),
			 errmsg("cannot import \"%s\"", RelationGetRelationName(rel)),
			 errdetail("%s cannot be imported.", what),
			 hint ? errhint("%s", hint) : 0));
}

void
check_importable(Relation rel)
{
	switch (rel->rd_rel->relkind)
	{
		case RELKIND_RELATION:
		case RELKIND_MATVIEW:
			break;
		case RELKIND_PARTITIONED_TABLE:
			refuse_kind(rel, ERRCODE_WRONG_OBJECT_TYPE, "Partitioned tables hold no rows of their own and",
						"Import the leaf partitions, which pg_partition_tree() lists.");
			break;
		case RELKIND_VIEW:
			refuse_kind(rel, ERRCODE_WRONG_OBJECT_TYPE, "Views",
						"Import the tables that the view reads, or make it a materialized view.");
			break;
		case RELKIND_FOREIGN_TABLE:
			if (!is_file_table(rel))
				refuse_kind(rel, ERRCODE_WRONG_OBJECT_TYPE, "Foreign tables", "Copy the rows into a table and import that.");
			check_file_importable(rel);
			return;
		case RELKIND_TOASTVALUE:
			refuse_kind(rel, ERRCODE_WRONG_OBJECT_TYPE, "TOAST tables", NULL);
			break;
		default:
			refuse_kind(rel, ERRCODE_WRONG_OBJECT_TYPE, "Relations of this kind",
						"Only tables, leaf partitions and materialized views can be imported.");
	}
	if (rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		refuse_kind(rel, ERRCODE_FEATURE_NOT_SUPPORTED, "Temporary tables", "Use a permanent table.");
	if (rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED)
		refuse_kind(rel, ERRCODE_FEATURE_NOT_SUPPORTED, "Unlogged tables",
					"Make the table permanent with ALTER TABLE ... SET LOGGED.");
	if (IsCatalogRelation(rel))
		refuse_kind(rel, ERRCODE_FEATURE_NOT_SUPPORTED, "System catalogs", NULL);
	if (RelationGetNamespace(rel) == get_namespace_oid("information_schema", true))
		refuse_kind(rel, ERRCODE_FEATURE_NOT_SUPPORTED, "Tables of information_schema", NULL);
	if (rel->rd_tableam != GetHeapamTableAmRoutine())
		refuse_kind(rel, ERRCODE_FEATURE_NOT_SUPPORTED, "Tables of an access method other than heap", NULL);
	if (!RelationIsPopulated(rel))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("materialized view \"%s\" has not been populated", RelationGetRelationName(rel)),
				 errhint("Use the REFRESH MATERIALIZED VIEW command.")));
	if (RelationInThisTransaction(rel))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot import table \"%s\" because it was created, truncated or rewritten in this transaction",
						RelationGetRelationName(rel)),
				 errhint("Commit first.")));
}

int16 *
importable_columns(Relation rel, int *count)
{
	TupleDesc	desc = RelationGetDescr(rel);
	int16	   *attnums = static_cast<int16 *>(palloc(sizeof(int16) * Max(desc->natts, 1)));
	StringInfoData left_out;
	int			nleft_out = 0;

	*count = 0;
	initStringInfo(&left_out);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped)
			continue;
		if (is_importable(att))
		{
			attnums[(*count)++] = att->attnum;
			continue;
		}
		appendStringInfo(&left_out, "%s\"%s\" (%s%s)", nleft_out++ > 0 ? ", " : "", NameStr(att->attname),
						 get_typtype(att->atttypid) == TYPTYPE_DOMAIN ? "domain " : "type ",
						 format_type_be(att->atttypid));
	}
	if (nleft_out > 0)
		ereport(NOTICE,
				(errmsg_plural("%d column of table \"%s\" is left out", "%d columns of table \"%s\" are left out",
							   nleft_out, nleft_out, RelationGetRelationName(rel)),
				 errdetail("Tablets cannot store the type of: %s.", left_out.data),
				 errhint("Queries that need such a column run on PostgreSQL.")));
	pfree(left_out.data);
	return attnums;
}

/* -- steps ------------------------------------------------------------------------ */

static BlockNumber
count_not_visible(Relation rel, BlockNumber nblocks)
{
	BlockNumber count = 0;

	for (BlockNumber i = 0; i < vm_pages(nblocks); i++)
	{
		uint64		words[VM_WORDS_PER_PAGE];
		uint32		covered = Min(nblocks - i * VM_BLOCKS_PER_PAGE, VM_BLOCKS_PER_PAGE);

		read_vm_page(rel, i, words);
		count += covered - vm_count(words, covered);
	}
	return count;
}

int
copy_workers(uint32 most)
{
	int			workers = static_cast<int>(Min(most, static_cast<uint32>(max_parallel_maintenance_workers)));

	if (setting_threads > 0)
		workers = Min(workers, setting_threads - 1);
	/* Workers would need the leader's snapshot; who has none keeps it so, for VACUUM's sake. */
	return IsInParallelMode() || !ActiveSnapshotSet() ? 0 : Max(workers, 0);
}

/*
 * Slices for several processes: as many blocks as will fill a tablet, a little
 * less rather than more, going by the statistics that VACUUM has just written;
 * several tablets where they are small. Wrong statistics only make the tablets'
 * sizes uneven.
 */
static BlockNumber
slice_for(Relation rel, uint32 tablet_rows)
{
	double		rows = rel->rd_rel->reltuples;
	double		blocks = rel->rd_rel->relpages;
	BlockNumber slice = MIN_SLICE_BLOCKS;

	if (rows > 0 && blocks > 0)
		slice = static_cast<BlockNumber>(Max(0.97 * tablet_rows * blocks / rows, 1));
	slice = Min(slice, BLOCKS_PER_WORKER);
	return slice * ((MIN_SLICE_BLOCKS - 1) / slice + 1);
}

static void
init_job(CopyJob *job, Relation rel, const CopyColumn *columns, int ncols, uint64 image_limit, BlockNumber nblocks, int workers,
		 const FileRanges *ranges, int slot)
{
	uint64		max_tablets;

	memset(static_cast<void *>(job), 0, offsetof(CopyJob, columns));
	job->relid = RelationGetRelid(rel);
	job->progress_slot = slot;
	job->nblocks = nblocks;
	job->tablet_rows = tablet_rows_for(columns, ncols);
	job->slice_blocks = workers == 0 || ranges != NULL ? nblocks : slice_for(rel, job->tablet_rows);
	job->nslices = nblocks == 0 ? 0 : (nblocks - 1) / job->slice_blocks + 1;
	job->ncols = static_cast<uint32>(ncols);
	memcpy(static_cast<void *>(job->columns), columns, sizeof(CopyColumn) * ncols);
	pg_atomic_init_u32(&job->next_slice, 0);
	pg_atomic_init_u32(&job->ntablets, 0);
	pg_atomic_init_u64(&job->nrows, 0);
	pg_atomic_init_u64(&job->served_blocks, 0);
	pg_atomic_init_u32(&job->again, 0);
	pg_atomic_init_u64(&job->image_bytes, 0);
	job->image_limit = image_limit;
	job->quota = tightest_quota(rel);
	pg_atomic_init_u64(&job->tablet_bytes, 0);

	max_tablets = max_tablets_of_slice(job->slice_blocks, job->tablet_rows) * Max(job->nslices, 1) + max_image_tablets(columns, ncols);
	if (ranges != NULL)
	{
		job->ranges = *ranges;
		LWLockInitialize(&job->ranges.lock, registry_lock()->tranche);
		/* each ends a tablet */
		max_tablets += file_max_ranges(ranges->size);
	}
	job->max_tablets = static_cast<uint32>(Min(max_tablets, PG_UINT32_MAX));

	job->manifest = manifest_begin(job->max_tablets, served_size(nblocks));
	if (job->manifest == 0)
		raise_memory_short();
	job->served = job->manifest + uint64{job->max_tablets} * sizeof(uint64);
	init_dictionaries(job, rel);
}

/* Copies until nothing is left that no other process has taken. */
static void
copy_share(Relation rel, CopyJob *job)
{
	if (rel->rd_rel->relkind == RELKIND_FOREIGN_TABLE)
		copy_file_rows(rel, job);
	else
		copy_slices(rel, job);
}

/* Runs the job with parallel workers. The outcome is copied to `result`. */
static void
copy_in_parallel(Relation rel, const CopyColumn *columns, int ncols, uint64 image_limit, BlockNumber nblocks, int workers,
				 const FileRanges *ranges, int slot, CopyJob *result)
{
	Size		size = copy_job_size(ncols);
	ParallelContext *context;
	CopyJob    *job;

	EnterParallelMode();
	context = CreateParallelContext("gpuvm", "gpuvm_copy_main", workers);
	shm_toc_estimate_chunk(&context->estimator, size);
	shm_toc_estimate_keys(&context->estimator, 1);
	InitializeParallelDSM(context);
	job = static_cast<CopyJob *>(shm_toc_allocate(context->toc, size));
	init_job(job, rel, columns, ncols, image_limit, nblocks, workers, ranges, slot);
	shm_toc_insert(context->toc, COPY_JOB_KEY, job);

	LaunchParallelWorkers(context);
	copy_share(rel, job);
	WaitForParallelWorkersToFinish(context);

	memcpy(static_cast<void *>(result), job, size);
	DestroyParallelContext(context);
	ExitParallelMode();
}

/* What variable columns may take: half of what is left for this table, so that others can be imported beside it. */
static uint64
image_limit_for(Relation rel)
{
	ImportedTable *old = static_cast<ImportedTable *>(palloc(sizeof(ImportedTable)));
	uint64		left = arena_left();
	uint64		own = registry_describe(RelationGetRelid(rel), old) ? old->bytes : 0;

	pfree(old);
	return Min((left + own) / 2, left);
}

/*
 * The dictionaries of what was copied, in the version's columns. Where memory is short for them the largest gives way: to be
 * copied in another form (NULL), or left out if there is none.
 */
static VersionColumn *
seal_columns(CopyJob *job)
{
	VersionColumn *columns = static_cast<VersionColumn *>(palloc0(sizeof(VersionColumn) * Max(job->ncols, 1)));

	while (!manifest_seal(columns))
	{
		if (!shed_dictionary(job))
			raise_memory_short();
		if (copy_again(job))
			return NULL;
	}
	for (uint32 i = 0; i < job->ncols; i++)
	{
		uint64		dictionary = columns[i].dictionary;

		columns[i] = version_column_of(&job->columns[i]);
		columns[i].dictionary = dictionary;
	}
	return columns;
}

/*
 * Copies the blocks, as often as it takes for each column to be in a form that its values
 * fit, or to be given up. The last attempt's job, palloc'd, with its dictionaries.
 */
CopyJob *
copy_blocks(Relation rel, const CopyColumn *attributes, int ncols, BlockNumber nblocks, int workers, const FileRanges *ranges, int slot)
{
	uint64		image_limit = image_limit_for(rel);
	/* each may become two */
	CopyColumn *columns = static_cast<CopyColumn *>(palloc0(sizeof(CopyColumn) * Max(2 * ncols, 1)));
	CopyJob    *job = static_cast<CopyJob *>(palloc0(copy_job_size(2 * ncols)));
	int			n = ncols;

	memcpy(static_cast<void *>(columns), attributes, sizeof(CopyColumn) * ncols);
	choose_forms(rel, columns, ncols, image_limit);
	/* A worker's import holds no snapshot then, however long it takes. */
	InvalidateCatalogSnapshot();
	for (;;)
	{
		progress_copying(slot, nblocks);
		if (workers > 0)
			copy_in_parallel(rel, columns, n, image_limit, nblocks, workers, ranges, slot, job);
		else
		{
			init_job(job, rel, columns, n, image_limit, nblocks, 0, NULL, slot);
			copy_share(rel, job);
		}
		if (!copy_again(job) && (job->sealed = seal_columns(job)) != NULL)
		{
			pfree(columns);
			return job;
		}
		/* each time a column goes to its next form, or is given up */
		n = revise_columns(rel, job, columns, ncols);
		manifest_abandon();
	}
}

static int
compare_tablets(const void *a, const void *b)
{
	uint32		first_a = arena_at<TabletHeader>(*static_cast<const uint64 *>(a))->first_block;
	uint32		first_b = arena_at<TabletHeader>(*static_cast<const uint64 *>(b))->first_block;

	return first_a < first_b ? -1 : first_a > first_b;
}

void
sort_tablets(CopyJob *job)
{
	qsort(arena_at<uint64>(job->manifest), pg_atomic_read_u32(&job->ntablets), sizeof(uint64), compare_tablets);
}

/* Makes the version of what was copied; its offset. */
uint64
version_of(CopyJob *job, const uint64 *stamps, const Signature &signature, const FileOrigin *origin)
{
	VersionParts parts = {};
	uint64		version;

	parts.ncols = job->ncols;
	parts.columns = job->sealed;
	parts.nblocks = job->nblocks;
	parts.stamps = stamps;
	parts.served = arena_at<uint64>(job->served);
	parts.tablets = arena_at<uint64>(job->manifest);
	parts.ntablets = pg_atomic_read_u32(&job->ntablets);
	parts.signature = signature;
	parts.origin = origin;
	sort_tablets(job);
	version = make_version(&parts);
	if (version == 0)
		raise_memory_short();
	return version;
}

/* Who keeps rows from being visible to every transaction, after a VACUUM and mark_visible(). */
static const char *
who_holds_back(const char **hint)
{
	const TransactionId own = GetTopTransactionIdIfAny();
	const TransactionId xmin = MyProc->xmin;
	const Horizon others = horizon_of_others();
	const char *holder;

	if (TransactionIdIsValid(xmin) && TransactionIdPrecedes(xmin, others.xid))
	{
		if (TransactionIdEquals(xmin, own))
			return "The oldest transaction is this one.";
		*hint = "VACUUM the table and refresh it, by a statement each. Until then each query reads the others from it.";
		return psprintf("The oldest snapshot in use is this session's: VACUUM keeps what transaction %u or later ones changed.",
						xmin);
	}
	switch (others.holder)
	{
		case HorizonHolder::Process:
			holder = psprintf("process %d", others.pid);
			break;
		case HorizonHolder::Prepared:
			holder = "a prepared transaction";
			break;
		case HorizonHolder::Slot:
			holder = "a replication slot";
			break;
		default:
			return "They have been changed since the VACUUM.";
	}
	return psprintf("The oldest transaction or snapshot in use is %u, of %s; the next transaction is %u.",
					others.xid, holder, ReadNextTransactionId());
}

/* Why blocks were left out, as far as it is cheap to know. */
static void
report_left_out(Relation rel, BlockNumber copied, BlockNumber total, bool vacuum, const char *no_vacuum)
{
	const char *detail;
	const char *hint = "Each query reads the others from the table, until they have been vacuumed and refreshed.";

	if (!vacuum || no_vacuum != NULL)
		detail = psprintf("The others have rows that are not known to be visible to every transaction, and the table was not vacuumed: %s.",
						  vacuum ? no_vacuum : "the argument \"vacuum\" is false");
	else
		detail = psprintf("The others have rows that are not visible to every transaction. %s", who_holds_back(&hint));
	ereport(NOTICE,
			(errmsg("copied %u of %u blocks of table \"%s\"", copied, total, RelationGetRelationName(rel)),
			 errdetail("%s", detail),
			 errhint("%s", hint)));
}

uint64
import_relation(Relation rel, const int16 *attnums, int ncols, bool all_columns, bool vacuum)
{
	int			slot;
	const char *no_vacuum = NULL;
	BlockNumber nblocks;
	uint64	   *stamps;
	CopyColumn *columns = static_cast<CopyColumn *>(palloc0(sizeof(CopyColumn) * Max(ncols, 1)));
	CopyJob    *job;
	Signature	signature;
	uint64		nrows;
	uint64		version;
	BlockNumber copied;
	bool		codes = false;

	registry_check(rel);
	if (is_file_table(rel))
		return import_file(rel, attnums, ncols, all_columns, false);
	nblocks = RelationGetNumberOfBlocks(rel);
	slot = progress_begin(RelationGetRelid(rel), nblocks);
	if (vacuum && count_not_visible(rel, nblocks) > 0)
		no_vacuum = vacuum_relation(rel, slot);

	for (int i = 0; i < ncols && !codes; i++)
		codes = value_type(TupleDescAttr(RelationGetDescr(rel), attnums[i] - 1)->atttypid).form == ValueForm::Dictionary;
	if (codes)
		(void) family_lock(rel);

	/* Stamps before blocks: a bit set from here on moves the LSN that a query will find. */
	nblocks = RelationGetNumberOfBlocks(rel);
	stamps = static_cast<uint64 *>(palloc_extended(sizeof(uint64) * Max(vm_pages(nblocks), 1), MCXT_ALLOC_HUGE));
	for (BlockNumber i = 0; i < vm_pages(nblocks); i++)
		stamps[i] = read_vm_page(rel, i, NULL);
	signature = make_signature(RelationGetDescr(rel));
	for (int i = 0; i < ncols; i++)
		init_copy_column(&columns[i], TupleDescAttr(RelationGetDescr(rel), attnums[i] - 1));
	job = copy_blocks(rel, columns, ncols, nblocks, copy_workers(nblocks / BLOCKS_PER_WORKER), NULL, slot);

	progress_phase(slot, IMPORT_PUBLISHING);
	registry_sweep();
	nrows = pg_atomic_read_u64(&job->nrows);
	copied = static_cast<BlockNumber>(pg_atomic_read_u64(&job->served_blocks));
	if (copied < nblocks)
		report_left_out(rel, copied, nblocks, vacuum, no_vacuum);
	report_failed_columns(rel, job);
	strip_failed_columns(job);

	version = version_of(job, stamps, signature, NULL);
	registry_publish(rel, version, all_columns, false);
	/* from here the registry owns version and tablets */
	manifest_end();
	quota_check(rel, version);
	engine_prepare(version);
	progress_end();

	pfree(signature.data);
	pfree(job);
	pfree(columns);
	pfree(stamps);
	return nrows;
}

}  // namespace gpuvm

void
gpuvm_copy_main(dsm_segment *, shm_toc *toc)
{
	gpuvm::CopyJob *job = static_cast<gpuvm::CopyJob *>(shm_toc_lookup(toc, gpuvm::COPY_JOB_KEY, false));
	Relation	rel = relation_open(job->relid, AccessShareLock);

	gpuvm::copy_share(rel, job);
	relation_close(rel, AccessShareLock);
}
