/*
 * visibility.cc: is the table still what was imported?
 *
 * Setting a bit of the visibility map always moves its page's LSN, clearing one
 * never does. Import reads each map page's LSN (the stamp) before the blocks
 * that the page covers, and copies only blocks whose bit is set. So a bit that
 * is set under an LSN equal to the stamp has been set ever since: the block has
 * not changed, and it is visible to every snapshot.
 *
 * Who clears a bit does it before committing, holding the map page exclusively:
 * a query that reads the bits after it has taken its snapshot sees every change
 * that the snapshot sees.
 */
#include "store/internal.h"

#include "pg/stats.h"

extern "C" {
#include "access/visibilitymap.h"
#include "access/xact.h"
#include "storage/bufmgr.h"
#include "storage/lock.h"
#include "storage/predicate.h"
#include "storage/smgr.h"
#include "utils/snapmgr.h"
}

namespace gpuvm {

/* The all-visible bits of eight bytes of the map: four heap blocks a byte, two bits a block. */
constexpr uint64 ALL_VISIBLE_BITS = 0x5555555555555555ull;
static_assert(VISIBILITYMAP_ALL_VISIBLE == 1 && BITS_PER_HEAPBLOCK == 2, "ALL_VISIBLE_BITS");

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

XLogRecPtr
read_vm_page(Relation rel, BlockNumber map_block, uint32 nblocks, uint32 *not_visible)
{
	Buffer		buffer;
	Page		page;
	XLogRecPtr	lsn = InvalidXLogRecPtr;

	*not_visible = nblocks;
	if (!vm_page_exists(rel, map_block))
		return lsn;

	buffer = ReadBufferExtended(rel, VISIBILITYMAP_FORKNUM, map_block, RBM_ZERO_ON_ERROR, NULL);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	if (!PageIsNew(page))
	{
		const char *map = PageGetContents(page);
		uint32		visible = 0;

		lsn = PageGetLSN(page);
		for (uint32 block = 0; block < nblocks; block += 32)
		{
			uint64		word = 0;
			uint32		n = Min(nblocks - block, 32);

			/* the map's length is a multiple of eight bytes */
			memcpy(&word, map + block / 4, sizeof(word));
			word &= ALL_VISIBLE_BITS;
			if (n < 32)
				word &= (uint64{1} << (n * 2)) - 1;
			visible += __builtin_popcountll(word);
		}
		*not_visible = nblocks - visible;
	}
	UnlockReleaseBuffer(buffer);
	return lsn;
}
static_assert(VM_BLOCKS_PER_PAGE % 32 == 0, "read_vm_page reads whole words");

bool
version_unchanged(Relation rel, const TableVersion *version, BlockNumber *blocks)
{
	const uint64_t *stamps = version_at<uint64_t>(version, version->stamps);
	BlockNumber not_served = 0;
	BlockNumber nblocks;

	for (uint32 i = 0; i < version->nstamps; i++)
	{
		uint32		covered = Min(version->nblocks - i * VM_BLOCKS_PER_PAGE, VM_BLOCKS_PER_PAGE);
		uint32		not_visible;
		XLogRecPtr	lsn = read_vm_page(rel, i, covered, &not_visible);

		not_served += lsn == stamps[i] ? not_visible : covered;
	}
	/* blocks that were left out at import, some of them perhaps counted already */
	not_served = Max(not_served, version->nblocks - version->served_blocks);

	nblocks = RelationGetNumberOfBlocks(rel);
	if (nblocks > version->nblocks)
		not_served += nblocks - version->nblocks;
	*blocks = not_served;
	return not_served == 0 && nblocks == version->nblocks;
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
version_serves(Relation rel, Snapshot snapshot, const TableVersion *version, int *reason, BlockNumber *blocks)
{
	*blocks = 0;
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
	if (!version_unchanged(rel, version, blocks))
	{
		*reason = FALLBACK_TABLE_CHANGED;
		return false;
	}
	return true;
}

}  // namespace gpuvm
