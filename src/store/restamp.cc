/*
 * restamp.cc: one bit that VACUUM sets moves the LSN of a map page, and with it
 * the stamp of 255 MB of heap. Which of those blocks are still as they were?
 *
 * Every change of a heap page that matters is logged and moves the page's LSN. So
 * a block whose bit is set and whose LSN is the one that was recorded with its
 * rows has not changed, whatever happened to its bit meanwhile. Both are read
 * under the page's share lock: who changes the page, or its bit, holds it
 * exclusively.
 *
 * The map page's LSN was read before any of this: a bit that is set after that
 * moves it once more, and whoever compares it with the new stamp looks again. A
 * bit that is set under the new stamp has been set since its page was looked at.
 *
 * A page whose LSN is 0 was never logged, so nothing is known of it.
 *
 * Where the log says which blocks may have changed, no others are looked at
 * (wal_blocks.cc).
 *
 * While a page is locked nothing else is taken: the map page is pinned before.
 * It is read only, so a standby does the same.
 */
#include "store/internal.h"

#include "pg/shmem.h"
#include "store/checksum.h"
#include "store/refresher.h"

extern "C" {
#include "access/visibilitymap.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lock.h"
}

namespace gpuvm {

constexpr int BLOCKS_PER_CHECK = 64;

/* How long another session's re-stamping is waited for, and how often it is looked for. */
constexpr int WAIT_STEP_US = 1000;
constexpr int WAIT_STEPS = 500;

/* -- looking at pages --------------------------------------------------------------- */

/* Pages ahead whose memory is asked for, and buffers where the blocks of a table follow each other. */
constexpr Buffer PREFETCH_PAGES = 8;

struct PageReader
{
	Relation	rel;
	BufferAccessStrategy strategy;
	Buffer		last;
	bool		in_row;			/* the last two blocks were in neighbouring buffers */
};

/*
 * Finding a block in shared buffers is most of the work here. A table that was
 * read or written in one go lies in consecutive buffers: then the next one is
 * asked whether it has the block.
 */
static Buffer
read_page(PageReader *reader, BlockNumber block)
{
	Buffer		next = reader->last + 1;
	Buffer		buffer;

	if (reader->in_row && next <= NBuffers)
	{
		if (next + PREFETCH_PAGES <= NBuffers)
			__builtin_prefetch(BufferBlocks + Size{BLCKSZ} * (next + PREFETCH_PAGES - 1));
		if (ReadRecentBuffer(RelationFileNode(reader->rel), MAIN_FORKNUM, block, next))
			return reader->last = next;
	}
	buffer = ReadBufferExtended(reader->rel, MAIN_FORKNUM, block, RBM_NORMAL, reader->strategy);
	reader->in_row = buffer == next;
	return reader->last = buffer;
}

BlockNumber
restamp_page(Relation rel, const TableVersion *version, BlockNumber map_block, BlockNumber nblocks,
			 const WalBlocks *logged, XLogRecPtr lsn, uint64 *words)
{
	const uint64_t *tablets = version_at<uint64_t>(version, version->tablets);
	BlockNumber first = map_block * VM_BLOCKS_PER_PAGE;
	BlockNumber end = Min(version->nblocks - first, VM_BLOCKS_PER_PAGE) + first;
	PageReader	reader = {rel, NULL, InvalidBuffer, false};
	bool		in_recovery = RecoveryInProgress();
	Buffer		vm_buffer = InvalidBuffer;
	uint64		wanted[VM_WORDS_PER_PAGE];
	uint64		unchanged[VM_WORDS_PER_PAGE];
	BlockNumber looked = 0;

	memcpy(wanted, words, sizeof(wanted));
	memset(words, 0, sizeof(wanted));
	memcpy(unchanged, version_at<uint64_t>(version, version->served) + Size{map_block} * VM_WORDS_PER_PAGE, sizeof(unchanged));
	if (!wal_blocks_unnamed(logged, version_at<uint64_t>(version, version->stamps)[map_block], lsn, first, unchanged))
		memset(unchanged, 0, sizeof(unchanged));
	end = Min(end, nblocks);
	/* as a scan would read it: the next VACUUM may ask for the same pages */
	if (nblocks > static_cast<BlockNumber>(NBuffers / 4))
		reader.strategy = GetAccessStrategy(BAS_BULKREAD);

	for (uint32 t = 0; t < version->ntablets; t++)
	{
		const TabletHeader *tablet = arena_at<TabletHeader>(tablets[t]);
		const uint64_t *lsns = tablet_at<uint64_t>(tablet, tablet->block_lsns);
		BlockNumber to = Min(end, tablet->first_block + tablet->nblocks);

		for (BlockNumber block = Max(first, tablet->first_block); block < to; block++)
		{
			XLogRecPtr	copied = lsns[block - tablet->first_block];
			uint32		word = (block - first) / VM_BLOCKS_PER_WORD;
			uint64		bit = vm_word_bit(block);
			Buffer		buffer;
			Page		page;

			if (copied == InvalidXLogRecPtr || !(wanted[word] & bit))
				continue;
			if (unchanged[word] & bit)
			{
				words[word] |= bit;
				continue;
			}
			if (looked++ % BLOCKS_PER_CHECK == 0)
			{
				if (BufferIsValid(vm_buffer))
					ReleaseBuffer(vm_buffer);
				vm_buffer = InvalidBuffer;
				CHECK_FOR_INTERRUPTS();
				refresh_pace();
				/* pins the map page */
				(void) visibilitymap_get_status(rel, block, &vm_buffer);
			}

			buffer = read_page(&reader, block);
			page = BufferGetPage(buffer);
			LockBuffer(buffer, BUFFER_LOCK_SHARE);
			if ((visibilitymap_get_status(rel, block, &vm_buffer) & VISIBILITYMAP_ALL_VISIBLE) &&
				(in_recovery || PageIsAllVisible(page)) &&
				BufferGetLSNAtomic(buffer) == copied)
				words[word] |= bit;
			UnlockReleaseBuffer(buffer);
		}
	}
	if (BufferIsValid(vm_buffer))
		ReleaseBuffer(vm_buffer);
	if (reader.strategy != NULL)
		FreeAccessStrategy(reader.strategy);
	return looked;
}

bool
restamp_publish(VersionPin *pin, const RestampedPage *pages)
{
	const TableVersion *version = pin_version(pin);
	uint64		offset = arena_alloc(version->size);
	TableVersion *blob;
	uint64	   *stamps;
	uint64	   *served;
	uint32	   *page_served;

	/* what is wrong is not to be sealed anew */
	if (offset != 0 && !pin_is_sealed(pin))
	{
		arena_free(offset);
		offset = 0;
	}
	if (offset == 0)
		return false;
	blob = arena_at<TableVersion>(offset);
	memcpy(static_cast<void *>(blob), version, version->size);
	stamps = arena_at<uint64>(offset + blob->stamps);
	served = arena_at<uint64>(offset + blob->served);
	page_served = arena_at<uint32>(offset + blob->page_served);
	for (const RestampedPage *page = pages; page != NULL; page = page->next)
	{
		uint64	   *words = served + Size{page->map_block} * VM_WORDS_PER_PAGE;

		blob->served_blocks -= page_served[page->map_block];
		page_served[page->map_block] = vm_count(page->words, VM_BLOCKS_PER_PAGE);
		blob->served_blocks += page_served[page->map_block];
		memcpy(words, page->words, sizeof(page->words));
		stamps[page->map_block] = page->lsn;
	}
	seal_version(blob);
	hold_tablets(blob);
	return registry_replace(pin, offset, true);
}

/* -- one session at a time ------------------------------------------------------------ */

/* Advisory: it ends with the transaction, or the subtransaction, whatever happens in between. */
static void
restamp_tag(Relation rel, LOCKTAG *tag)
{
	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, RelationGetRelid(rel), 0, STORE_LOCK);
}

/* Polls, for a wait would end by lock_timeout, with an error that the query would not have without gpuvm. */
bool
restamp_lock(Relation rel)
{
	LOCKTAG		tag;

	restamp_tag(rel, &tag);
	for (int i = 0; i < WAIT_STEPS; i++)
	{
		if (lock_if_free(&tag))
			return true;
		CHECK_FOR_INTERRUPTS();
		pg_usleep(WAIT_STEP_US);
	}
	return false;
}

void
restamp_unlock(Relation rel)
{
	LOCKTAG		tag;

	restamp_tag(rel, &tag);
	(void) LockRelease(&tag, ExclusiveLock, false);
}

}  // namespace gpuvm
