/*
 * mark_visible.cc: the blocks that VACUUM leaves because of the importing session itself.
 *
 * gpuvm.import() runs within a statement, which has a snapshot. Its xmin is the oldest
 * transaction that was running in the whole server, and VACUUM takes no row of that
 * transaction or a later one for visible to all: a transaction that is open in another
 * database, which nobody's rows here depend on, would keep a table that was loaded since
 * from being imported. So after VACUUM the session looks at the blocks that are left, and
 * goes by VACUUM's rules with one exception: its own snapshots are not judged by their
 * xmin, but asked. Nothing is removed, and no other session notices.
 *
 * Why a row's inserter, once it has been found committed, is then visible to every
 * snapshot of this database, in use or to come:
 *
 * - It precedes the horizon, so it had ended, for the process array, when that was read.
 *   Snapshots taken since see it, in this session, too.
 * - The horizon is no later than the xmin of any other session's snapshot, so those see it.
 * - The oldest snapshot of this session sees it, and later ones see what earlier ones do.
 *
 * All snapshots of a session cannot be listed. oldest_own_snapshot() knows the oldest one
 * where it is the transaction's or that of the client's statement; where a function or an
 * open cursor may hold another, no block is marked.
 */
#include "store/internal.h"

extern "C" {
#include "access/heapam.h"
#include "access/transam.h"
#include "access/twophase.h"
#include "access/visibilitymap.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "storage/bufmgr.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/standby.h"
#include "tcop/pquery.h"
#include "utils/portal.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
}

#include "pg/compat.h"

namespace gpuvm {

/* Is the process looked at by VACUUM of a table of this database? */
static bool
holds_back(const PGPROC *proc)
{
	const uint8 flags = proc->statusFlags;

	return proc != MyProc && (flags & (PROC_IN_VACUUM | PROC_IN_LOGICAL_DECODING)) == 0 &&
		(proc->databaseId == MyDatabaseId || proc->databaseId == InvalidOid || (flags & PROC_AFFECTS_ALL_HORIZONS) != 0);
}

static void
take_older(Horizon *horizon, TransactionId xid, HorizonHolder holder, int pid)
{
	if (!TransactionIdIsValid(xid) || !TransactionIdPrecedes(xid, horizon->xid))
		return;
	horizon->xid = xid;
	horizon->holder = holder;
	horizon->pid = pid;
}

static bool
is_running(const RunningTransactionsData *running, TransactionId xid)
{
	for (int i = 0; i < running->xcnt; i++)
		if (TransactionIdEquals(running->xids[i], xid))
			return true;
	return false;
}

/* GetOldestNonRemovableTransactionId() but for this process: the same processes, prepared transactions and slots. */
Horizon
horizon_of_others(void)
{
	/* With the process array locked, and xids from being assigned. */
	const RunningTransactionsData *running = GetRunningTransactionData();
	Horizon		horizon = {running->nextXid, HorizonHolder::Nobody, 0};
	/* the entries of prepared transactions come last, and are not counted */
	const uint32 nprocs = ProcGlobal->allProcCount + static_cast<uint32>(max_prepared_xacts);
	TransactionId slots;

	for (uint32 i = 0; i < nprocs; i++)
	{
		const PGPROC *proc = &ProcGlobal->allProcs[i];
		const TransactionId xid = proc->xid;

		if (!holds_back(proc))
			continue;
		/* others set their xmin meanwhile: read once */
		take_older(&horizon, *const_cast<const volatile TransactionId *>(&proc->xmin), HorizonHolder::Process, proc->pid);
		if (proc->pid != 0)
			take_older(&horizon, xid, HorizonHolder::Process, proc->pid);
		else if (is_running(running, xid))
			/* that of one that has ended stays in its entry */
			take_older(&horizon, xid, HorizonHolder::Prepared, 0);
	}
	LWLockRelease(XidGenLock);
	LWLockRelease(ProcArrayLock);

	ProcArrayGetReplicationSlotXmin(&slots, nullptr);
	take_older(&horizon, slots, HorizonHolder::Slot, 0);
	return horizon;
}

Snapshot
oldest_own_snapshot(void)
{
	Portal		portal;
	Snapshot	outermost;

	InvalidateCatalogSnapshot();
	if (!ActiveSnapshotSet())
		return nullptr;
	if (IsolationUsesXactSnapshot())
		return GetTransactionSnapshot();

	/*
	 * The client's unnamed portal runs with nothing below it on the stack of active snapshots. A cursor that is
	 * open, and a query of a function's beside the one that calls it, have a registered snapshot more.
	 */
	portal = GetPortalByName("");
	if (!PortalIsValid(portal) || portal != ActivePortal || !ThereAreNoPriorRegisteredSnapshots())
		return nullptr;
	outermost = portal->queryDesc != nullptr ? portal->queryDesc->snapshot : portal->portalSnapshot;
	/* the one that is registered must be the statement's, or that of the query within it that imports */
	if (outermost == nullptr || (outermost->regd_count == 0 && GetActiveSnapshot()->regd_count == 0))
		return nullptr;
	return outermost;
}

struct Marking
{
	Relation	rel;
	TransactionId horizon;
	Snapshot	own;
	TransactionId seen;			/* the last one that `own` was asked about, and sees */
};

static bool
is_seen(Marking *m, TransactionId xid)
{
	if (TransactionIdEquals(xid, m->seen))
		return true;
	if (!TransactionIdPrecedes(xid, m->horizon) || XidInMVCCSnapshot(xid, m->own))
		return false;
	m->seen = xid;
	return true;
}

/* As VACUUM decides. The page is locked exclusively; `newest` is the last inserter, which standbys have to know. */
static bool
is_visible_to_all(Marking *m, BlockNumber block, Buffer buffer, TransactionId *newest)
{
	const Page	page = BufferGetPage(buffer);
	const OffsetNumber last = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);

	*newest = InvalidTransactionId;
	for (OffsetNumber i = FirstOffsetNumber; i <= last; i++)
	{
		const ItemId item = PageGetItemId(page, i);
		HeapTupleData tuple;
		TransactionId xmin;

		if (ItemIdIsDead(item))
			return false;
		if (!ItemIdIsNormal(item))
			continue;
		tuple.t_data = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
		tuple.t_len = ItemIdGetLength(item);
		tuple.t_tableOid = RelationGetRelid(m->rel);
		ItemPointerSet(&tuple.t_self, block, i);
		/* the hint says that the commit is on disk */
		if (HeapTupleSatisfiesVacuum(&tuple, m->horizon, buffer) != HEAPTUPLE_LIVE ||
			!HeapTupleHeaderXminCommitted(tuple.t_data))
			return false;
		xmin = HeapTupleHeaderGetXmin(tuple.t_data);
		if (!is_seen(m, xmin))
			return false;
		if (TransactionIdIsNormal(xmin) && (!TransactionIdIsValid(*newest) || TransactionIdPrecedes(*newest, xmin)))
			*newest = xmin;
	}
	return last > 0;
}

static void
mark_block(Marking *m, BlockNumber block, Buffer buffer, Buffer map)
{
	TransactionId newest;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (is_visible_to_all(m, block, buffer, &newest))
	{
		PageSetAllVisible(BufferGetPage(buffer));
		MarkBufferDirty(buffer);
		(void) visibilitymap_set(m->rel, block, buffer, InvalidXLogRecPtr, map, newest, VISIBILITYMAP_ALL_VISIBLE);
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
}

void
mark_visible(Relation rel)
{
	Marking		m = {rel, InvalidTransactionId, oldest_own_snapshot(), InvalidTransactionId};
	BufferAccessStrategy strategy;
	Buffer		map = InvalidBuffer;
	BlockNumber nblocks;

	/* Logical decoding looks at a user catalog table by snapshots that no process shows. */
	if (m.own == nullptr || RelationIsAccessibleInLogicalDecoding(rel) || compat_defers_cleanup())
		return;
	m.horizon = horizon_of_others().xid;
	/* Then VACUUM went by this horizon, too. */
	if (!TransactionIdPrecedes(MyProc->xmin, m.horizon))
		return;

	strategy = GetAccessStrategy(BAS_VACUUM);
	nblocks = RelationGetNumberOfBlocks(rel);
	for (BlockNumber block = 0; block < nblocks; block++)
	{
		Buffer		buffer;

		CHECK_FOR_INTERRUPTS();
		if (visibilitymap_get_status(rel, block, &map) != 0)
			continue;
		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
		visibilitymap_pin(rel, block, &map);
		mark_block(&m, block, buffer, map);
		ReleaseBuffer(buffer);
	}
	if (BufferIsValid(map))
		ReleaseBuffer(map);
	FreeAccessStrategy(strategy);
}

}  // namespace gpuvm
