/*
 * visibility.cc: which blocks of the table are still what the tablets have?
 *
 * Setting a bit of the visibility map always moves its page's LSN; clearing one
 * does so, too, of newer minor releases (17.11, 18.6). Import reads each map page's LSN (the stamp) before the blocks
 * that the page covers, and copies only blocks whose bit is set. So a bit that
 * is set under an LSN equal to the stamp has been set ever since: the block has
 * not changed, and it is visible to every snapshot.
 *
 * Who clears a bit does it before committing, holding the map page exclusively:
 * a query that reads the bits after it has taken its snapshot sees every change
 * that the snapshot sees.
 *
 * A version's `served` bits are laid out as the map's, so a page is compared
 * word by word: a block is served if its bit is set in both.
 */
#include "store/delta.h"
#include "store/file.h"
#include "store/internal.h"

#include "pg/shmem.h"
#include "pg/stats.h"
#include "store/refresher.h"

extern "C" {
#include "access/table.h"
#include "access/visibilitymap.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "storage/lock.h"
#include "storage/predicate.h"
#include "storage/smgr.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

namespace gpuvm {

static_assert(VISIBILITYMAP_ALL_VISIBLE == 1 && BITS_PER_HEAPBLOCK == 2, "VM_WORD_VISIBLE");

/* -- the map ------------------------------------------------------------------ */

/* Does the map have this page? Asks the file only when the cached size says no. */
static bool
vm_page_exists(Relation rel, BlockNumber map_block)
{
	SMgrRelation smgr = RelationGetSmgr(rel);
	BlockNumber cached = smgr->smgr_cached_nblocks[VISIBILITYMAP_FORKNUM];

	if (cached != InvalidBlockNumber && map_block < cached)
		return true;
	return smgrexists(smgr, VISIBILITYMAP_FORKNUM) && map_block < smgrnblocks(smgr, VISIBILITYMAP_FORKNUM);
}

/*
 * The page's buffer, share-locked, or InvalidBuffer if the map has no such page.
 * *hint, if given, is where it may still be: most of a clean check would be
 * finding the pages.
 */
static Buffer
lock_vm_page(Relation rel, BlockNumber map_block, uint32 *hint)
{
	Buffer		buffer = hint != NULL ? static_cast<Buffer>(__atomic_load_n(hint, __ATOMIC_RELAXED)) : InvalidBuffer;

	if (buffer <= 0 || buffer > NBuffers ||
		!ReadRecentBuffer(RelationFileNode(rel), VISIBILITYMAP_FORKNUM, map_block, buffer))
	{
		if (!vm_page_exists(rel, map_block))
			return InvalidBuffer;
		buffer = ReadBufferExtended(rel, VISIBILITYMAP_FORKNUM, map_block, RBM_ZERO_ON_ERROR, NULL);
		if (hint != NULL)
			__atomic_store_n(hint, static_cast<uint32>(buffer), __ATOMIC_RELAXED);
	}
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (PageIsNew(BufferGetPage(buffer)))
	{
		UnlockReleaseBuffer(buffer);
		return InvalidBuffer;
	}
	return buffer;
}

static const uint64 *
vm_words(Buffer buffer)
{
	return reinterpret_cast<const uint64 *>(PageGetContents(BufferGetPage(buffer)));
}

static void
copy_visible(const uint64 *map, uint64 *words)
{
	for (uint32 i = 0; i < VM_WORDS_PER_PAGE; i++)
		words[i] = map[i] & VM_WORD_VISIBLE;
}

XLogRecPtr
read_vm_page(Relation rel, BlockNumber map_block, uint64 *words)
{
	Buffer		buffer = lock_vm_page(rel, map_block, NULL);
	XLogRecPtr	lsn;

	if (!BufferIsValid(buffer))
	{
		if (words != NULL)
			memset(words, 0, VM_WORDS_PER_PAGE * sizeof(uint64));
		return InvalidXLogRecPtr;
	}
	lsn = PageGetLSN(BufferGetPage(buffer));
	if (words != NULL)
		copy_visible(vm_words(buffer), words);
	UnlockReleaseBuffer(buffer);
	return lsn;
}

/* Are the first `nblocks` blocks' bits set? */
static bool
all_set(const uint64 *map, uint32 nblocks)
{
	uint32		whole = nblocks / VM_BLOCKS_PER_WORD;
	uint64		all = VM_WORD_VISIBLE;
	uint64		mask = vm_word_mask(nblocks % VM_BLOCKS_PER_WORD);

	for (uint32 i = 0; i < whole; i++)
		all &= map[i];
	if (mask != 0)
		all &= map[whole] | ~mask;
	return all == VM_WORD_VISIBLE;
}

enum PageState
{
	PAGE_CLEAN,					/* all blocks are served */
	PAGE_CHANGED,				/* those are whose bit is set in both */
	PAGE_MOVED,					/* the LSN is not the stamp */
};

/*
 * Compares a map page with what the version knows of its first `nblocks` blocks.
 * words[VM_WORDS_PER_PAGE] gets the page's all-visible bits unless it is clean,
 * and *lsn its LSN.
 */
static PageState
compare_vm_page(Relation rel, const TableVersion *version, BlockNumber map_block, uint32 nblocks, uint64 *words,
				XLogRecPtr *lsn)
{
	XLogRecPtr	stamp = version_at<uint64_t>(version, version->stamps)[map_block];
	/* of a version that has all of the page's blocks, `served` need not be read */
	bool		full = version_at<uint32_t>(version, version->page_served)[map_block] ==
		Min(version->nblocks - map_block * VM_BLOCKS_PER_PAGE, VM_BLOCKS_PER_PAGE);
	uint32	   *hints = const_cast<uint32 *>(version_at<uint32>(version, version->map_buffers));
	Buffer		buffer = lock_vm_page(rel, map_block, &hints[map_block]);
	PageState	state;

	if (!BufferIsValid(buffer))
	{
		memset(words, 0, VM_WORDS_PER_PAGE * sizeof(uint64));
		*lsn = InvalidXLogRecPtr;
		return stamp == InvalidXLogRecPtr ? PAGE_CHANGED : PAGE_MOVED;
	}
	*lsn = PageGetLSN(BufferGetPage(buffer));
	if (*lsn != stamp)
		state = PAGE_MOVED;
	else
		state = full && all_set(vm_words(buffer), nblocks) ? PAGE_CLEAN : PAGE_CHANGED;
	if (state != PAGE_CLEAN)
		copy_visible(vm_words(buffer), words);
	UnlockReleaseBuffer(buffer);
	return state;
}

/* -- runs of blocks ------------------------------------------------------------ */

struct RunList
{
	BlockRun   *runs;
	Size		nruns;
	Size		capacity;
	BlockNumber blocks;
};

static void
add_run(RunList *list, BlockNumber first, BlockNumber count)
{
	BlockRun   *last = list->nruns > 0 ? &list->runs[list->nruns - 1] : NULL;

	list->blocks += count;
	if (last != NULL && last->first + last->count == first)
	{
		last->count += count;
		return;
	}
	if (list->nruns == list->capacity)
	{
		list->capacity = list->capacity == 0 ? 64 : list->capacity * 2;
		list->runs = static_cast<BlockRun *>(list->runs == NULL
											 ? palloc(list->capacity * sizeof(BlockRun))
											 : repalloc_huge(list->runs, list->capacity * sizeof(BlockRun)));
	}
	list->runs[list->nruns].first = first;
	list->runs[list->nruns].count = count;
	list->nruns++;
}

/* The blocks of a map page, `first` and the next nblocks - 1, whose bit is not set in both. */
static void
add_unserved(RunList *list, BlockNumber first, uint32 nblocks, const uint64 *map, const uint64 *served)
{
	for (uint32 i = 0; i * VM_BLOCKS_PER_WORD < nblocks; i++)
	{
		uint64		unserved = ~(map[i] & served[i]) & vm_word_mask(nblocks - i * VM_BLOCKS_PER_WORD);

		while (unserved != 0)
		{
			uint32		from = __builtin_ctzll(unserved) / 2;
			uint64		rest = (unserved | unserved << 1) >> (from * 2);	/* both bits of each block */
			uint32		count = (~rest == 0 ? 64 : __builtin_ctzll(~rest)) / 2;

			add_run(list, first + i * VM_BLOCKS_PER_WORD + from, count);
			unserved &= ~(vm_word_mask(count) << (from * 2));
		}
	}
}

/* Cuts off blocks at or past the relation's end. */
static void
clip_runs(RunList *list, BlockNumber nblocks)
{
	while (list->nruns > 0)
	{
		BlockRun   *last = &list->runs[list->nruns - 1];

		if (last->first + last->count <= nblocks)
			return;
		if (last->first < nblocks)
		{
			list->blocks -= last->first + last->count - nblocks;
			last->count = nblocks - last->first;
			return;
		}
		list->blocks -= last->count;
		list->nruns--;
	}
}

/* -- the check ------------------------------------------------------------------- */

/*
 * Compares every map page of the version and lists the blocks that are not
 * served. A page whose LSN has moved is re-stamped, and returned; if `logged` is
 * NULL, the first such page ends the check with *moved.
 */
static RestampedPage *
check_pages(Relation rel, const TableVersion *version, const WalBlocks *logged, RunList *list, bool *moved, BlockNumber *looked)
{
	const uint64 *served = reinterpret_cast<const uint64 *>(version_at<uint64_t>(version, version->served));
	uint64		words[VM_WORDS_PER_PAGE];
	RestampedPage *pages = NULL;

	for (uint32 i = 0; i < version->nstamps; i++)
	{
		BlockNumber first = i * VM_BLOCKS_PER_PAGE;
		uint32		covered = Min(version->nblocks - first, VM_BLOCKS_PER_PAGE);
		XLogRecPtr	lsn;

		switch (compare_vm_page(rel, version, i, covered, words, &lsn))
		{
			case PAGE_CLEAN:
				break;
			case PAGE_CHANGED:
				add_unserved(list, first, covered, words, served + Size{i} * VM_WORDS_PER_PAGE);
				break;
			case PAGE_MOVED:
				*moved = true;
				if (logged == NULL)
					return NULL;
				{
					RestampedPage *page = static_cast<RestampedPage *>(palloc(sizeof(RestampedPage)));

					page->map_block = i;
					page->lsn = lsn;
					memcpy(page->words, words, sizeof(words));
					*looked += restamp_page(rel, version, i, RelationGetNumberOfBlocks(rel), logged, lsn, page->words);
					add_unserved(list, first, covered, page->words, page->words);
					page->next = pages;
					pages = page;
				}
				break;
		}
	}
	return pages;
}

static void
check_blocks(Relation rel, VersionPin *pin, ServedCheck *check)
{
	RunList		list = {NULL, 0, 0, 0};
	bool		moved = false;
	const TableVersion *version;

	check_pages(rel, pin_version(pin), NULL, &list, &moved, &check->restamped);
	if (moved)
	{
		bool		locked = restamp_lock(rel);
		RestampedPage *pages;
		WalBlocks	logged;

		registry_newer(pin);
		list.nruns = 0;
		list.blocks = 0;
		wal_blocks_read(rel, pin_version(pin), &logged);
		pages = check_pages(rel, pin_version(pin), &logged, &list, &moved, &check->restamped);
		if (pages != NULL)
			restamp_publish(pin, pages);
		if (locked)
			restamp_unlock(rel);
		if (logged.blocks != NULL)
			pfree(logged.blocks);
		while (pages != NULL)
		{
			RestampedPage *next = pages->next;

			pfree(pages);
			pages = next;
		}
	}

	/* last of all: the blocks that a snapshot can see are there by now */
	version = pin_version(pin);
	check->nblocks = RelationGetNumberOfBlocks(rel);
	clip_runs(&list, check->nblocks);
	check->masked = list.blocks;
	if (check->nblocks < version->nblocks)
		check->masked += version->nblocks - check->nblocks;
	if (check->nblocks > version->nblocks)
		add_run(&list, version->nblocks, check->nblocks - version->nblocks);
	check->unserved = list.blocks;
	check->nruns = static_cast<uint32>(list.nruns);
	check->runs = list.runs;
}

/*
 * Who changes a row looks for predicate locks first and clears the bit a moment
 * later, the page locked all the while. A scan of the heap would wait for that
 * page; one that looks at the map in between would see neither the change, nor
 * the writer our predicate lock. So under SERIALIZABLE nobody else may hold a
 * lock to write with: who takes one later looks later.
 */
static bool
others_may_write(Relation rel)
{
	LOCKTAG		tag;
	VirtualTransactionId *holders;
	int			count;

	SET_LOCKTAG_RELATION(tag, rel->rd_lockInfo.lockRelId.dbId, rel->rd_lockInfo.lockRelId.relId);
	holders = GetLockConflicts(&tag, ShareLock, &count);
	/* its result is not palloc'd in recovery, but there is no SERIALIZABLE then */
	pfree(holders);
	return count > 0;
}

bool
version_check(Relation rel, Snapshot snapshot, VersionPin **pin, int *reason, ServedCheck *check)
{
	instr_time	start;
	instr_time	end;

	INSTR_TIME_SET_CURRENT(start);
	memset(check, 0, sizeof(*check));
	if (pin_version(*pin)->origin != 0)
	{
		/* what a file holds is no snapshot's */
		check->nblocks = pin_version(*pin)->nblocks;
		check->masked = pin_version(*pin)->nmasked > 0 ? 1 : 0;
		if (file_may_answer(rel, pin_version(*pin), NULL))
			return true;
		*reason = FALLBACK_TABLE_CHANGED;
		return false;
	}
#if PG_VERSION_NUM < 170000
	/* VACUUM then sets bits that living snapshots may not see */
	if (old_snapshot_threshold >= 0)
	{
		*reason = FALLBACK_SNAPSHOT;
		return false;
	}
#endif
	if (snapshot == NULL || snapshot->snapshot_type != SNAPSHOT_MVCC)
	{
		*reason = FALLBACK_SNAPSHOT;
		return false;
	}

	/* before the check: taken after it, it would miss a conflict in between */
	PredicateLockRelation(rel, snapshot);
	if (IsolationIsSerializable() && others_may_write(rel))
	{
		*reason = FALLBACK_SNAPSHOT;
		return false;
	}
	check_blocks(rel, *pin, check);
	if (check->unserved > 0)
		refresher_mark();
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	check->check_ns = static_cast<uint64>(INSTR_TIME_GET_DOUBLE(end) * 1e9);
	return true;
}

uint32
version_masked_rows(const TableVersion *version, const ServedCheck *check, MaskedRows **ranges)
{
	const uint64_t *tablets = version_at<uint64_t>(version, version->tablets);
	BlockRun	past_end = {check->nblocks, 0};
	uint32		nranges = 0;
	uint32		capacity = 0;
	uint32		t = 0;

	*ranges = NULL;
	if (check->masked == 0)
		return 0;
	if (version->nmasked > 0)
	{
		Size		bytes = sizeof(MaskedRows) * version->nmasked;

		*ranges = static_cast<MaskedRows *>(palloc_extended(bytes, MCXT_ALLOC_HUGE));
		memcpy(*ranges, version_at<MaskedRows>(version, version->masked), bytes);
		return static_cast<uint32>(version->nmasked);
	}
	if (check->nblocks < version->nblocks)
		past_end.count = version->nblocks - check->nblocks;

	for (uint32 r = 0; r <= check->nruns && t < version->ntablets; r++)
	{
		BlockRun	run = r < check->nruns ? check->runs[r] : past_end;
		uint64		run_end = uint64{run.first} + run.count;

		for (; t < version->ntablets; t++)
		{
			const TabletHeader *tablet = arena_at<TabletHeader>(tablets[t]);
			const uint32_t *block_rows = tablet_at<uint32_t>(tablet, tablet->block_rows);
			uint64		tablet_end = uint64{tablet->first_block} + tablet->nblocks;
			uint64		from = Max(run.first, tablet->first_block);
			uint64		to = Min(run_end, tablet_end);

			if (from < to)
			{
				uint32		first = block_rows[from - tablet->first_block];
				uint32		end = block_rows[to - tablet->first_block];
				MaskedRows *last = nranges > 0 ? &(*ranges)[nranges - 1] : NULL;

				if (last != NULL && last->tablet == t && last->end == first)
					last->end = end;
				else if (first < end)
				{
					if (nranges == capacity)
					{
						capacity = capacity == 0 ? 64 : capacity * 2;
						*ranges = static_cast<MaskedRows *>(*ranges == NULL
															? palloc(capacity * sizeof(MaskedRows))
															: repalloc_huge(*ranges, Size{capacity} * sizeof(MaskedRows)));
					}
					(*ranges)[nranges].tablet = t;
					(*ranges)[nranges].first = first;
					(*ranges)[nranges].end = end;
					nranges++;
				}
			}
			/* the next run may begin in this tablet */
			if (run_end < tablet_end)
				break;
		}
	}
	return nranges;
}

/* -- for the views and the refresher ------------------------------------------------ */

BlockNumber
vm_count(const uint64 *words, uint32 nblocks)
{
	BlockNumber count = 0;

	for (uint32 i = 0; i * VM_BLOCKS_PER_WORD < nblocks; i++)
		count += __builtin_popcountll(words[i] & vm_word_mask(nblocks - i * VM_BLOCKS_PER_WORD));
	return count;
}

/* How many of a map page's first `nblocks` blocks have their bit set in the map and in the version. */
static BlockNumber
count_both(const uint64 *map, const uint64 *served, uint32 nblocks)
{
	BlockNumber count = 0;

	for (uint32 i = 0; i * VM_BLOCKS_PER_WORD < nblocks; i++)
		count += __builtin_popcountll(map[i] & served[i] & vm_word_mask(nblocks - i * VM_BLOCKS_PER_WORD));
	return count;
}

DeltaSize
registry_expect_delta(Oid relid, BlockNumber pages, double tuples)
{
	VersionPin *pin = registry_pin_any(relid);
	DeltaSize	size = {};
	const TableVersion *version;
	const uint64 *served;
	uint32	   *hints;
	Relation	rel;
	BlockNumber blocks = 0;

	if (pin == NULL)
		return size;
	version = pin_version(pin);
	served = reinterpret_cast<const uint64 *>(version_at<uint64_t>(version, version->served));
	hints = const_cast<uint32 *>(version_at<uint32>(version, version->map_buffers));
	rel = table_open(relid, NoLock);
	for (uint32 i = 0; i < version->nstamps && pin_is_of_file(pin, rel); i++)
	{
		const Buffer buffer = lock_vm_page(rel, i, &hints[i]);

		if (!BufferIsValid(buffer))
			continue;
		/* whether blocks of a page whose LSN has moved are still the same only a look at them tells: they are taken to be */
		blocks += count_both(vm_words(buffer), served + Size{i} * VM_WORDS_PER_PAGE, Min(version->nblocks - i * VM_BLOCKS_PER_PAGE, VM_BLOCKS_PER_PAGE));
		UnlockReleaseBuffer(buffer);
	}
	size = delta_expect(rel, pages, tuples, version, blocks);
	table_close(rel, NoLock);
	registry_unpin(pin);
	return size;
}

void
version_state(Relation rel, const TableVersion *version, VersionState *state)
{
	const uint64 *served = reinterpret_cast<const uint64 *>(version_at<uint64_t>(version, version->served));
	uint64		words[VM_WORDS_PER_PAGE];

	memset(state, 0, sizeof(*state));
	state->nblocks = RelationGetNumberOfBlocks(rel);
	for (uint32 i = 0; i < vm_pages(state->nblocks); i++)
	{
		uint32		nblocks = Min(state->nblocks - i * VM_BLOCKS_PER_PAGE, VM_BLOCKS_PER_PAGE);
		uint32		covered = 0;	/* of those: blocks that the version knows */
		PageState	page = PAGE_CHANGED;
		BlockNumber visible;
		XLogRecPtr	lsn;

		if (i < version->nstamps)
		{
			covered = Min(Min(version->nblocks, state->nblocks) - i * VM_BLOCKS_PER_PAGE, VM_BLOCKS_PER_PAGE);
			page = compare_vm_page(rel, version, i, covered, words, &lsn);
		}
		if (i >= version->nstamps || page == PAGE_CLEAN)
			read_vm_page(rel, i, words);

		visible = vm_count(words, nblocks);
		if (page == PAGE_MOVED)
			state->moved += covered;
		else if (i < version->nstamps)
		{
			const uint64 *page_served = served + Size{i} * VM_WORDS_PER_PAGE;
			const BlockNumber both = count_both(words, page_served, covered);
			BlockNumber in_vain = 0;

			for (uint32 w = 0; w * VM_BLOCKS_PER_WORD < covered; w++)
				in_vain += __builtin_popcountll(words[w] & vm_word_mask(covered - w * VM_BLOCKS_PER_WORD) & vm_word_unfit(page_served[w]));
			state->served += both;
			visible -= both + in_vain;
		}
		state->refreshable += visible;
	}
}

bool
version_unchanged(Relation rel, const TableVersion *version, BlockNumber *blocks)
{
	VersionState state;

	version_state(rel, version, &state);
	*blocks = state.nblocks - state.served;
	return *blocks == 0 && state.nblocks == version->nblocks;
}

}  // namespace gpuvm
