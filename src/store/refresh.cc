/*
 * refresh.cc: brings an imported table's version up to date.
 *
 * As for an import, the stamps of all map pages are read first. Then each block is
 * one of three: unchanged (its bit is set, and it has not changed since it was
 * copied: by the stamp, or, where that has moved, by its page's LSN), wanted (its
 * bit is set, but the tablets do not have it as it is now), or left (its bit is
 * not set: some transaction may not see all of its rows; or it was read already,
 * and has a value that no tablet can have).
 *
 * A tablet with wanted blocks is built anew: what is unchanged is decoded from the
 * old one, what is wanted is copied from the heap, and what is left has no rows,
 * so no dead ones stay behind. All other tablets are shared with the old version.
 * The new version replaces the old one at once, for it says the same of the table.
 * Whoever reads the old one keeps it, until they let go of it.
 *
 * Nothing here needs a snapshot, so none is held: VACUUM goes on meanwhile, and
 * writers never wait.
 *
 * A dictionary that has become too large may be so by values that no row has any
 * more. Then nothing is refreshed, and the table has to be imported anew, which makes
 * a dictionary of its present values, or leaves the column out. So it has where what
 * is there does not match its checksums: what went on from it would get right ones.
 *
 * Old and new tablets are there together for a while. When memory is short, what
 * was built so far is published, and the rest stays as it is.
 */
#include "store/family.h"
#include "store/copier.h"

#include "pg/engine_client.h"
#include "pg/shmem.h"
#include "store/checksum.h"
#include "store/dictionary.h"
#include "store/refresher.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

namespace gpuvm {

constexpr BlockNumber BLOCKS_PER_CHECK = 64;

/*
 * What brings so large a part of the table back into tablets may make programs worth what they were not: unless it is so little
 * (8 MB) that reading it took each execution but 2 to 4 ms, which is less than making all plans anew that read the table, or all
 * of a partitioned one.
 */
constexpr BlockNumber OUTDATING_PART = 10;
constexpr BlockNumber OUTDATING_BLOCKS = 1024;

/* A tablet that is built anew may grow by an eighth: changed blocks seldom have as many rows as before. */
constexpr uint32 ROOM_TO_GROW = 8;

/* Blocks of no interest that a tablet passes over to go on behind them. */
constexpr BlockNumber MAX_GAP = 4096;

struct Refresh
{
	Relation	rel;
	VersionPin *pin;
	const TableVersion *version;
	const uint64_t *tablets;
	BlockNumber nblocks;		/* of the relation */
	BlockNumber extent;			/* or of the version, if the relation had more then */
	uint64	   *stamps;
	uint64	   *served;			/* as TableVersion.served: unchanged, then also what was copied, or read in vain */
	uint64	   *wanted;
	RefreshOutcome *outcome;

	/* building tablets */
	CopyJob    *job;
	Copier	   *copier;
	BufferAccessStrategy strategy;
	Buffer		vm_buffer;
	Snapshot	snapshot;		/* of detoast_begin */
	uint32		tablet_rows;
	bool		short_of_memory;
	bool		damaged;		/* something is not what it was */
	bool		outgrown;		/* a dictionary is too large, or a numeric that is no integer of 64 bits */
	BlockNumber since_check;
	uint64	   *result;			/* the new version's tablets, in order */
	uint32		nresult;
	uint32		next_tablet;	/* the first old one that nothing is staged of */

	/* as far as what is done does not depend on what is staged: what a lack of memory goes back to */
	BlockNumber anchor_block;
	uint32		anchor_tablet;
	uint32		anchor_result;
	uint32		anchor_made;
	uint64		anchor_rows;	/* copied before */
	uint64		rows;			/* copied */
};

static inline bool
has_bit(const uint64 *words, BlockNumber block)
{
	return (words[vm_word_of(block)] & vm_word_bit(block)) != 0;
}

/* The first block from `from` on, below `to`, whose bit is set; `to` if there is none. */
static BlockNumber
next_bit(const uint64 *words, BlockNumber from, BlockNumber to)
{
	while (from < to)
	{
		uint64		word = words[vm_word_of(from)] >> (from % VM_BLOCKS_PER_WORD * 2);

		if (word != 0)
			return Min(from + __builtin_ctzll(word) / 2, to);
		from += VM_BLOCKS_PER_WORD - from % VM_BLOCKS_PER_WORD;
	}
	return to;
}

static BlockNumber
tablet_end(const TabletHeader *tablet)
{
	return tablet->first_block + tablet->nblocks;
}

/* -- what is to be done ----------------------------------------------------------- */

static void *
alloc_words(Size bytes)
{
	return MemoryContextAllocExtended(CurrentMemoryContext, Max(bytes, 1), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
}

/* Stamps, then blocks. True if a stamp has moved. */
static bool
classify(Refresh *r)
{
	const TableVersion *version = r->version;
	uint32		npages = vm_pages(r->extent);
	WalBlocks	logged;
	bool		moved = false;

	/* A worker's refresh holds no snapshot from here on. */
	InvalidateCatalogSnapshot();
	r->stamps = static_cast<uint64 *>(alloc_words(npages * sizeof(uint64)));
	r->served = static_cast<uint64 *>(alloc_words(served_size(r->extent)));
	r->wanted = static_cast<uint64 *>(alloc_words(served_size(r->extent)));
	for (uint32 i = 0; i < npages; i++)
	{
		uint64	   *visible = r->wanted + Size{i} * VM_WORDS_PER_PAGE;
		BlockNumber first = i * VM_BLOCKS_PER_PAGE;
		uint32		covered = first < r->nblocks ? Min(r->nblocks - first, VM_BLOCKS_PER_PAGE) : 0;

		r->stamps[i] = read_vm_page(r->rel, i, visible);
		for (uint32 w = 0; w < VM_WORDS_PER_PAGE; w++)
			visible[w] &= w * VM_BLOCKS_PER_WORD < covered ? vm_word_mask(covered - w * VM_BLOCKS_PER_WORD) : 0;
	}
	wal_blocks_read(r->rel, version, &logged);
	for (uint32 i = 0; i < npages; i++)
	{
		uint64	   *visible = r->wanted + Size{i} * VM_WORDS_PER_PAGE;
		uint64	   *unchanged = r->served + Size{i} * VM_WORDS_PER_PAGE;

		if (i >= version->nstamps)
			continue;
		memcpy(unchanged, visible, VM_WORDS_PER_PAGE * sizeof(uint64));
		if (r->stamps[i] != version_at<uint64_t>(version, version->stamps)[i])
		{
			moved = true;
			r->outcome->restamped += restamp_page(r->rel, version, i, r->nblocks, &logged, r->stamps[i], unchanged);
		}
		else
		{
			const uint64_t *served = version_at<uint64_t>(version, version->served) + Size{i} * VM_WORDS_PER_PAGE;

			for (uint32 w = 0; w < VM_WORDS_PER_PAGE; w++)
			{
				uint64		unfit = vm_word_unfit(served[w]);

				visible[w] &= ~unfit;
				unchanged[w] = (unchanged[w] & served[w]) | unfit << 1;
			}
		}
		for (uint32 w = 0; w < VM_WORDS_PER_PAGE; w++)
			visible[w] &= ~unchanged[w];
	}
	return moved;
}

/* Rows of a tablet that no query takes from it any more. */
static uint32
dead_rows(const Refresh *r, const TabletHeader *tablet)
{
	const uint32_t *block_rows = tablet_at<uint32_t>(tablet, tablet->block_rows);
	uint32		rows = 0;

	for (uint32 b = 0; b < tablet->nblocks; b++)
		if (tablet->first_block + b >= r->nblocks || !has_bit(r->served, tablet->first_block + b))
			rows += block_rows[b + 1] - block_rows[b];
	return rows;
}

/* Is the tablet to be built anew for its own sake? */
static bool
is_stale(const Refresh *r, const TabletHeader *tablet)
{
	BlockNumber end = Min(tablet_end(tablet), r->nblocks);

	return next_bit(r->wanted, tablet->first_block, end) < end || tablet_end(tablet) > r->nblocks ||
		dead_rows(r, tablet) > tablet->nrows / 2;
}

static bool
anything_to_build(const Refresh *r)
{
	if (next_bit(r->wanted, 0, r->nblocks) < r->nblocks)
		return true;
	for (uint32 t = 0; t < r->version->ntablets; t++)
		if (is_stale(r, arena_at<TabletHeader>(r->tablets[t])))
			return true;
	return false;
}

/* -- building ---------------------------------------------------------------------- */

/* Tablets that the copier has made go to the result. */
static void
take_made(Refresh *r)
{
	const uint64 *made = arena_at<uint64>(r->job->manifest);
	uint32		nmade = pg_atomic_read_u32(&r->job->ntablets);

	while (r->anchor_made < nmade)
		r->result[r->nresult++] = made[r->anchor_made++];
}

/* No rows are staged, and every old tablet is done with or untouched: from `block` on a lack of memory leaves all as it is. */
static void
set_anchor(Refresh *r, BlockNumber block)
{
	take_made(r);
	r->anchor_block = block;
	r->anchor_tablet = r->next_tablet;
	r->anchor_result = r->nresult;
	r->anchor_rows = r->rows;
}

/* Gives up what was built since the anchor, and all that would follow. */
static void
give_up(Refresh *r)
{
	uint64	   *made = arena_at<uint64>(r->job->manifest);

	r->short_of_memory = true;
	r->rows = r->anchor_rows;
	for (uint32 i = r->anchor_made; i < pg_atomic_read_u32(&r->job->ntablets); i++)
	{
		arena_free(made[i]);
		made[i] = 0;
	}
	pg_atomic_write_u32(&r->job->ntablets, r->anchor_made);
	copier_restart(r->copier, r->anchor_block);

	/* what was wanted and copied from there on is not served after all */
	for (BlockNumber block = next_bit(r->wanted, r->anchor_block, r->nblocks); block < r->nblocks;
		 block = next_bit(r->wanted, block + 1, r->nblocks))
		r->served[vm_word_of(block)] &= ~vm_word_bit(block);
	r->nresult = r->anchor_result;
	for (uint32 t = r->anchor_tablet; t < r->version->ntablets; t++)
		r->result[r->nresult++] = r->tablets[t];
}

/* Ends the tablet that is staged, between old tablets or (`within`) in the middle of one. False when memory is short. */
static bool
flush(Refresh *r, BlockNumber next_block, bool within)
{
	if (copier_flush(r->copier, next_block) != 0)
	{
		give_up(r);
		return false;
	}
	if (!within)
		set_anchor(r, next_block);
	return true;
}

static void
pause_for_others(Refresh *r)
{
	if (++r->since_check < BLOCKS_PER_CHECK)
		return;
	r->since_check = 0;
	if (BufferIsValid(r->vm_buffer))
		ReleaseBuffer(r->vm_buffer);
	r->vm_buffer = InvalidBuffer;
	detoast_end(r->snapshot);
	CHECK_FOR_INTERRUPTS();
	refresh_pace();
	r->snapshot = r->job->detoasts ? detoast_begin() : NULL;
}

/* Was a value refused only because memory was short? */
static bool
is_starved(const CopyJob *job)
{
	for (uint32 i = 0; i < job->ncols; i++)
		if (job->columns[i].builder != 0 && arena_at<DictionaryBuilder>(job->columns[i].builder)->starved)
			return true;
	return false;
}

/*
 * Stages blocks [from, to), of which `tablet` (or NULL) has the unchanged ones.
 * Blocks that follow what is staged already; `limit`: rows of a tablet.
 */
static bool
stage_blocks(Refresh *r, const TabletHeader *tablet, BlockNumber from, BlockNumber to, uint32 limit)
{
	Copier	   *c = r->copier;

	for (BlockNumber block = from; block < to;)
	{
		pause_for_others(r);
		if (has_bit(r->wanted, block))
		{
			if (copier_read(c, block, r->strategy, &r->vm_buffer))
				r->served[vm_word_of(block)] |= vm_word_bit(block);
		}
		else if (tablet != NULL && has_bit(r->served, block))
		{
			const uint32_t *rows = tablet_at<uint32_t>(tablet, tablet->block_rows) + (block - tablet->first_block);
			BlockNumber n = 1;

			if (!copier_has_room(c, rows[1] - rows[0], limit) && !flush(r, block, tablet != NULL))
				return false;
			while (block + n < to && n < BLOCKS_PER_CHECK && !has_bit(r->wanted, block + n) && has_bit(r->served, block + n) &&
				   c->nrows + (rows[n + 1] - rows[0]) <= limit)
				n++;
			copier_append_old(c, tablet, block - tablet->first_block, n);
			block += n;
			continue;
		}
		else
			copier_skip(c);
		if (!copier_has_room(c, c->ntuples, limit) && !flush(r, block, tablet != NULL))
			return false;
		if (!copier_append(c))
		{
			r->served[vm_word_of(block)] &= ~vm_word_bit(block);
			if (!is_starved(r->job))
				r->served[vm_word_of(block)] |= vm_word_bit(block) << 1;
			copier_skip(c);
			(void) copier_append(c);
		}
		r->rows += c->ntuples;
		block++;
	}
	return true;
}

/* The first block to read between `from` and tablet t, or the relation's end; InvalidBlockNumber if there is none. */
static BlockNumber
wanted_in_gap(const Refresh *r, BlockNumber from, uint32 t)
{
	BlockNumber to = r->nblocks;
	BlockNumber block;

	if (t < r->version->ntablets)
		to = Min(to, arena_at<TabletHeader>(r->tablets[t])->first_block);
	block = next_bit(r->wanted, from, to);
	return block < to ? block : InvalidBlockNumber;
}

/*
 * Makes `block` the next one to stage: over the blocks of no interest from `at`
 * on, or in a tablet of its own.
 */
static bool
go_to(Refresh *r, BlockNumber at, BlockNumber block)
{
	if (r->copier->nblocks > 0 && block - at <= MAX_GAP)
		return stage_blocks(r, NULL, at, block, r->copier->row_capacity);
	return flush(r, block, false);
}

/* Stages what is wanted between `at`, which moves on, and the next tablet. */
static bool
stage_gap(Refresh *r, BlockNumber *at)
{
	BlockNumber block;

	while ((block = wanted_in_gap(r, *at, r->next_tablet)) != InvalidBlockNumber)
	{
		if (!go_to(r, *at, block) || !stage_blocks(r, NULL, block, block + 1, r->tablet_rows))
			return false;
		*at = block + 1;
	}
	return true;
}

/*
 * All tablets, and what lies between them, in order. What is staged goes on over
 * tablets that need it, and over a small one that still fits, so that what a
 * tablet could not hold does not stay a tablet of a few rows for ever.
 */
static void
build_tablets(Refresh *r)
{
	Copier	   *c = r->copier;
	uint32		enough = r->tablet_rows / 4 * 3;
	BlockNumber at = 0;			/* all blocks below are staged, or done with */

	for (uint32 t = 0; t < r->version->ntablets; t++)
	{
		const TabletHeader *tablet = arena_at<TabletHeader>(r->tablets[t]);
		BlockNumber end = Min(tablet_end(tablet), r->nblocks);

		/* it and the following ones were cut off */
		if (tablet->first_block >= r->nblocks)
			break;
		r->next_tablet = t;
		if (!stage_gap(r, &at))
			return;

		if (is_stale(r, tablet) ||
			(tablet->nrows < enough && wanted_in_gap(r, end, t + 1) != InvalidBlockNumber) ||
			(c->nblocks > 0 && c->nrows + tablet->nrows <= r->tablet_rows))
		{
			if (!go_to(r, at, tablet->first_block))
				return;
			r->next_tablet = t + 1;
			/* what is copied would be sealed anew */
			r->damaged = !columns_are_sealed(tablet);
			if (r->damaged || !stage_blocks(r, tablet, tablet->first_block, end, c->row_capacity))
				return;
			/* full enough to be a tablet; blocks without rows go with those that follow */
			if (c->nrows >= enough && !flush(r, end, false))
				return;
			if (c->nrows == 0)
				set_anchor(r, end);
		}
		else
		{
			if (!flush(r, tablet->first_block, false))
				return;
			r->result[r->nresult++] = r->tablets[t];
			r->next_tablet = t + 1;
			set_anchor(r, end);
		}
		at = end;
	}
	r->next_tablet = r->version->ntablets;
	if (stage_gap(r, &at))
		(void) flush(r, r->nblocks, false);
}

static void
end_building(Refresh *r)
{
	if (BufferIsValid(r->vm_buffer))
		ReleaseBuffer(r->vm_buffer);
	detoast_end(r->snapshot);
	free_copier(r->copier);
	FreeAccessStrategy(r->strategy);
}

/* False when memory is short. */
static bool
begin_building(Refresh *r)
{
	const TableVersion *version = r->version;
	CopyJob    *job = successor_job(r->rel, version);
	uint32		rows;
	uint64		max_tablets;

	/* the types may have been read from the catalogs */
	InvalidateCatalogSnapshot();
	r->tablet_rows = tablet_rows_for(job->columns, static_cast<int>(version->ncols));
	rows = Min(TYPEALIGN(TABLET_PAD_ROWS, r->tablet_rows + r->tablet_rows / ROOM_TO_GROW), TABLET_MAX_ROWS);

	/* every old tablet, and every gap, may end one that is not full */
	max_tablets = max_tablets_of_slice(r->nblocks, r->tablet_rows) + 2 * (uint64{version->ntablets} + 1) +
		max_image_tablets(job->columns, static_cast<int>(version->ncols));
	job->nblocks = r->nblocks;
	job->tablet_rows = r->tablet_rows;
	job->max_tablets = static_cast<uint32>(Min(max_tablets, PG_UINT32_MAX));
	r->job = job;
	job->manifest = manifest_begin(job->max_tablets, 0);
	if (job->manifest == 0 || !successor_dictionaries(r->rel, version, job))
	{
		manifest_end();
		return false;
	}
	r->result = static_cast<uint64 *>(alloc_words((max_tablets + version->ntablets) * sizeof(uint64)));
	r->copier = make_copier(r->rel, job, rows);
	r->strategy = GetAccessStrategy(BAS_BULKREAD);
	r->vm_buffer = InvalidBuffer;
	r->snapshot = job->detoasts ? detoast_begin() : NULL;
	return true;
}

/* Was memory too short for a single tablet? */
static bool
nothing_built(const Refresh *r)
{
	return r->short_of_memory && r->nresult == r->version->ntablets &&
		memcmp(r->result, r->tablets, r->nresult * sizeof(uint64)) == 0;
}

/* Builds what has to be, and publishes it. False if that was not possible. */
static bool
rebuild(Refresh *r)
{
	VersionColumn *columns = static_cast<VersionColumn *>(palloc0(sizeof(VersionColumn) * Max(r->version->ncols, 1)));
	VersionParts parts = {};
	TableQuotas quotas;
	uint64		version;

	if (!begin_building(r))
		return false;
	/* before values are looked up there */
	r->damaged = !bases_are_sealed(r->job);
	if (!r->damaged)
		build_tablets(r);
	end_building(r);
	r->outgrown = has_outgrown(r->job) || wants_halves(r->rel, r->job);
	if (r->damaged || r->outgrown)
	{
		import_abandon();
		return false;
	}
	if (nothing_built(r))
	{
		manifest_end();
		return false;
	}

	report_unfit_columns(r->rel, r->job);
	for (uint32 i = 0; i < r->version->ncols; i++)
		columns[i] = version_column_of(&r->job->columns[i]);
	if (!manifest_seal(columns))
	{
		import_abandon();
		return false;
	}
	parts.ncols = r->version->ncols;
	parts.columns = columns;
	/* tablets that were left as they are may reach past the relation's end */
	parts.nblocks = r->short_of_memory ? r->extent : r->nblocks;
	parts.stamps = r->stamps;
	parts.served = r->served;
	parts.tablets = r->result;
	parts.ntablets = r->nresult;
	parts.signature.data = const_cast<char *>(version_at<char>(r->version, r->version->signature));
	parts.signature.len = r->version->signature_len;
	quotas_of(r->rel, &quotas);
	version = make_version(&parts);
	if (version == 0)
	{
		import_abandon();
		return false;
	}
	/* from here the version owns its tablets */
	manifest_end();
	quota_check_growth(r->rel, &quotas, r->version, version);
	if (!registry_replace(r->pin, version, false))
		return false;
	engine_prepare(version);
	return true;
}

/* Leaves of a partitioned table grow their dictionaries one after the other. */
static bool
rebuild_alone(Refresh *r)
{
	bool		locked = has_dictionaries(r->version) && family_lock(r->rel);
	bool		rebuilt = rebuild(r);

	if (locked)
		family_unlock(r->rel);
	return rebuilt;
}

/* Publishes the new stamps of the old tablets. */
static bool
restamp(const Refresh *r)
{
	const uint64_t *stamps = version_at<uint64_t>(r->version, r->version->stamps);
	RestampedPage *pages = NULL;

	for (uint32 i = 0; i < r->version->nstamps; i++)
	{
		RestampedPage *page;

		if (stamps[i] == r->stamps[i])
			continue;
		page = static_cast<RestampedPage *>(palloc(sizeof(RestampedPage)));
		page->map_block = i;
		page->lsn = r->stamps[i];
		/* blocks that were read in vain are not the version's */
		for (uint32 w = 0; w < VM_WORDS_PER_PAGE; w++)
			page->words[w] = r->served[Size{i} * VM_WORDS_PER_PAGE + w] & ~r->wanted[Size{i} * VM_WORDS_PER_PAGE + w];
		page->next = pages;
		pages = page;
	}
	return restamp_publish(r->pin, pages);
}

static BlockNumber
count_blocks(const uint64 *words, BlockNumber nblocks)
{
	BlockNumber count = 0;

	for (uint32 i = 0; i < vm_pages(nblocks); i++)
		count += vm_count(words + Size{i} * VM_WORDS_PER_PAGE, VM_BLOCKS_PER_PAGE);
	return count;
}

/* True if memory was short, but not for all: what the old version held may be free now. */
static bool
refresh_pinned(Refresh *r)
{
	RefreshOutcome *outcome = r->outcome;
	BlockNumber unchanged;
	BlockNumber served;
	bool		moved;

	r->version = pin_version(r->pin);
	r->damaged = !tablets_are_sealed(r->version);
	if (r->damaged)
		return false;
	r->tablets = version_at<uint64_t>(r->version, r->version->tablets);
	r->nblocks = RelationGetNumberOfBlocks(r->rel);
	r->extent = Max(r->nblocks, r->version->nblocks);
	moved = classify(r);
	unchanged = count_blocks(r->served, r->extent);
	outcome->blocks = r->nblocks;
	outcome->left = r->nblocks - unchanged;

	if (anything_to_build(r) && rebuild_alone(r))
	{
		served = count_blocks(r->served, r->extent);
		outcome->reread += served - unchanged;
		outcome->left = r->nblocks - served;
		outcome->nrows += r->rows;
		outcome->changed = true;
		return r->short_of_memory;
	}
	if (!r->damaged && !r->outgrown && moved && restamp(r))
		outcome->changed = true;
	return false;
}

bool
refresh_relation(Relation rel, RefreshOutcome *outcome)
{
	MemoryContext context;
	MemoryContext old;
	Refresh    *r;
	VersionPin *pin;
	LOCKTAG		tag;
	int			reason;
	bool		more;
	bool		outgrown;
	bool		damaged;

	memset(outcome, 0, sizeof(*outcome));

	/* One at a time: the second would find what the first has done. */
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, RelationGetRelid(rel), 1, STORE_LOCK);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	pin = registry_pin(rel, &reason);
	if (pin == NULL)
	{
		(void) LockRelease(&tag, ExclusiveLock, false);
		return false;
	}

	/* catalogs have been read; what for is over */
	InvalidateCatalogSnapshotConditionally();
	context = AllocSetContextCreate(CurrentMemoryContext, "gpuvm refresh", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	do
	{
		r = static_cast<Refresh *>(palloc0(sizeof(Refresh)));
		r->rel = rel;
		r->pin = pin;
		r->outcome = outcome;
		more = refresh_pinned(r);
		outgrown = r->outgrown;
		damaged = r->damaged;
		MemoryContextReset(context);
	} while (more);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);

	if (damaged)
		report_damage(rel);
	else if (!outgrown)
		pin_mark_refreshed(pin);
	/* VACUUM has outdated plans before: PostgreSQL's would stay, which were better as long as so much was to be read from the heap */
	if (outcome->reread > Max(outcome->blocks / OUTDATING_PART, OUTDATING_BLOCKS))
		registry_outdate_plans(rel);
	registry_unpin(pin);
	(void) LockRelease(&tag, ExclusiveLock, false);
	return !damaged && !outgrown;
}

}  // namespace gpuvm
