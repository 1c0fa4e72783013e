/*
 * family.cc: families of dictionaries, and how the leaves of a partitioned table come to
 * share them.
 *
 * The table of families is guarded by the registry lock. Its entry has the family's longest
 * dictionary, the end; while there are others, that one is kept even when no version has it any more:
 * otherwise no other could ever grow again. An entry goes with its end. Where the table is full, dictionaries have no entry,
 * and what grows from them is of a family of its own.
 */
#include "store/family.h"

#include "pg/compat.h"
#include "pg/shmem.h"
#include "store/checksum.h"
#include "store/dictionary.h"
#include "store/internal.h"
#include "store/refresher.h"

extern "C" {
#include "catalog/partition.h"
#include "catalog/pg_inherits.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/shmem.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"
}

namespace gpuvm {

constexpr int MAX_FAMILIES = 16384;
constexpr long LOCK_POLL_MS = 20;

struct FamilyEntry
{
	uint64		family;			/* key */
	uint64		end;			/* arena offset of the longest one */
	uint32		nlive;			/* dictionaries of the family that were published, and are there */
	bool		kept;			/* the entry has a reference to the end: no version has one */
};

static HTAB *families = NULL;

Size
families_shared_size(void)
{
	return hash_estimate_size(MAX_FAMILIES, sizeof(FamilyEntry));
}

void
families_startup(void)
{
	HASHCTL		control;

	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(uint64);
	control.entrysize = sizeof(FamilyEntry);
	families = ShmemInitHash("gpuvm dictionary families", MAX_FAMILIES, MAX_FAMILIES, &control, HASH_ELEM | HASH_BLOBS);
}

static FamilyEntry *
find_family(uint64 family)
{
	return static_cast<FamilyEntry *>(hash_search(families, &family, HASH_FIND, NULL));
}

static void
begin_family(uint64 dictionary)
{
	Dictionary *d = arena_at<Dictionary>(dictionary);
	FamilyEntry *entry;
	bool		found;

	d->family = d->serial;
	entry = static_cast<FamilyEntry *>(hash_search(families, &d->family, HASH_ENTER_NULL, &found));
	if (entry == NULL)
		return;
	entry->end = dictionary;
	entry->nlive = 1;
	entry->kept = false;
}

int
families_publish(const TableVersion *version, uint64 (&drop)[VERSION_MAX_COLS])
{
	const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);
	int			ndrop = 0;

	for (uint32 i = 0; i < version->ncols; i++)
	{
		Dictionary *d = columns[i].dictionary == 0 ? NULL : arena_at<Dictionary>(columns[i].dictionary);
		FamilyEntry *entry;

		if (d == NULL || d->grown_from == DICTIONARY_PUBLISHED)
			continue;
		entry = d->grown_from == DICTIONARY_FIRST ? NULL : find_family(d->family);
		if (entry == NULL || arena_at<Dictionary>(entry->end)->serial != d->grown_from)
			begin_family(columns[i].dictionary);
		else
		{
			if (entry->kept)
				drop[ndrop++] = entry->end;
			entry->end = columns[i].dictionary;
			entry->nlive++;
			entry->kept = false;
		}
		d->grown_from = DICTIONARY_PUBLISHED;
		seal_dictionary_header(d);
	}
	return ndrop;
}

bool
families_forget(uint64 block, uint64 (&drop)[VERSION_MAX_COLS], int *ndrop)
{
	uint32		n = arena_at<Dictionary>(block)->ndictionaries;
	uint32		kept = 0;

	*ndrop = 0;
	for (uint64 at = block, i = 0; i < n; at += TYPEALIGN(DICTIONARY_BLOCK_ALIGN, arena_at<Dictionary>(at)->size), i++)
	{
		FamilyEntry *entry = find_family(arena_at<Dictionary>(at)->family);

		if (entry == NULL || entry->end != at || entry->nlive == 1)
			continue;
		entry->kept = true;
		kept++;
	}
	arena_at<Dictionary>(block)->refs = kept;
	if (kept > 0)
		return false;
	for (uint64 at = block, i = 0; i < n; at += TYPEALIGN(DICTIONARY_BLOCK_ALIGN, arena_at<Dictionary>(at)->size), i++)
	{
		const Dictionary *d = arena_at<Dictionary>(at);
		FamilyEntry *entry = d->grown_from == DICTIONARY_PUBLISHED ? find_family(d->family) : NULL;

		if (entry == NULL)
			continue;
		if (--entry->nlive == 0)
			hash_search(families, &d->family, HASH_REMOVE, NULL);
		else if (entry->nlive == 1 && entry->kept)
		{
			entry->kept = false;
			drop[(*ndrop)++] = entry->end;
		}
	}
	return true;
}

uint64
family_longest(uint64 dictionary)
{
	FamilyEntry *entry;

	LWLockAcquire(registry_lock(), LW_SHARED);
	entry = find_family(arena_at<Dictionary>(dictionary)->family);
	if (entry != NULL && dictionary_header_is_sealed(entry->end))
		dictionary = entry->end;
	dictionary_hold(dictionary);
	LWLockRelease(registry_lock());
	return dictionary;
}

/* -- the leaves of a partitioned table ------------------------------------------------------- */

/* The topmost partitioned table; InvalidOid: the relation is no leaf. */
static Oid
root_of(Relation rel)
{
	List	   *ancestors;

	if (!rel->rd_rel->relispartition)
		return InvalidOid;
	ancestors = get_partition_ancestors(RelationGetRelid(rel));
	return ancestors == NIL ? InvalidOid : llast_oid(ancestors);
}

static bool
set_lock_tag(Relation rel, LOCKTAG *tag)
{
	Oid			root = root_of(rel);

	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, root, 2, STORE_LOCK);
	/* the catalogs have been read; what for is over */
	InvalidateCatalogSnapshotConditionally();
	return OidIsValid(root);
}

bool
family_lock(Relation rel)
{
	LOCKTAG		tag;

	if (!set_lock_tag(rel, &tag))
		return false;
	/* a worker makes way for who waits for the leaf */
	while (compat_is_background_worker() && !lock_if_free(&tag))
	{
		VacuumCostBalance = VacuumCostLimit;
		refresh_pace();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, LOCK_POLL_MS, compat_wait_event("GpuvmTable"));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	if (!compat_is_background_worker())
		(void) LockAcquire(&tag, ExclusiveLock, false, false);
	return true;
}

void
family_unlock(Relation rel)
{
	LOCKTAG		tag;

	if (set_lock_tag(rel, &tag))
		(void) LockRelease(&tag, ExclusiveLock, false);
}

/* Is the first one rather to be gone on from? What this transaction has not published yet is; then the longer one. */
static bool
is_better(uint64 a, uint64 b)
{
	const Dictionary *da = arena_at<Dictionary>(a);
	const Dictionary *db = arena_at<Dictionary>(b);
	bool		own_a = da->grown_from != DICTIONARY_PUBLISHED;
	bool		own_b = db->grown_from != DICTIONARY_PUBLISHED;

	return own_a != own_b ? own_a : da->nentries > db->nentries;
}

/* The longest of its family, in place of a published one: the reference goes over. */
static uint64
longest_of(uint64 dictionary)
{
	uint64		longest;

	if (arena_at<Dictionary>(dictionary)->grown_from != DICTIONARY_PUBLISHED)
		return dictionary;
	longest = family_longest(dictionary);
	dictionary_drop(dictionary);
	return longest;
}

/* The longest of the family that most leaves have; 0 if there is none, or it is so large that little would fit in beside it. */
static uint64
choose_base(const uint64 *found, int n)
{
	uint64		best = 0;
	int			most = 0;

	for (int i = 0; i < n; i++)
	{
		uint64		family = arena_at<Dictionary>(found[i])->family;
		int			count = 0;

		for (int j = 0; j < n; j++)
			count += arena_at<Dictionary>(found[j])->family == family;
		if (count > most || (count == most && is_better(found[i], best)))
		{
			most = count;
			best = found[i];
		}
	}
	if (best != 0 && (arena_at<Dictionary>(best)->nentries > DICTIONARY_MAX_ENTRIES / 2 || arena_at<Dictionary>(best)->bytes > DICTIONARY_MAX_BYTES / 2))
		return 0;
	return best;
}

uint64
family_base(Relation rel, AttrNumber attnum, bool *damaged)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), attnum - 1);
	Oid			root = root_of(rel);
	List	   *leaves = NIL;
	List	   *attnums = NIL;
	uint64	   *found;
	uint64		best;
	int			n = 0;
	ListCell   *lc;

	*damaged = false;
	if (!OidIsValid(root))
		return 0;
	/* what may raise comes before anything is held */
	foreach(lc, find_all_inheritors(root, NoLock, NULL))
	{
		/* what it has itself does not count: it begins anew, as any import, or joins the others */
		if (lfirst_oid(lc) == RelationGetRelid(rel) || (!registry_known(lfirst_oid(lc)) && !registry_pending(lfirst_oid(lc))))
			continue;
		leaves = lappend_oid(leaves, lfirst_oid(lc));
		attnums = lappend_int(attnums, get_attnum(lfirst_oid(lc), NameStr(att->attname)));
	}
	found = static_cast<uint64 *>(palloc(sizeof(uint64) * Max(list_length(leaves), 1)));
	foreach(lc, leaves)
	{
		uint64		dictionary = registry_hold_dictionary(lfirst_oid(lc), list_nth_int(attnums, foreach_current_index(lc)), att, damaged);

		if (dictionary != 0)
			found[n++] = longest_of(dictionary);
	}
	while ((best = choose_base(found, n)) != 0 && !dictionary_is_sealed(best))
	{
		int			nothers = 0;

		for (int i = 0; i < n; i++)
			if (found[i] == best)
				dictionary_drop(best);
			else
				found[nothers++] = found[i];
		n = nothers;
		*damaged = true;
	}
	for (int i = 0; i < n; i++)
		if (found[i] != best)
			dictionary_drop(found[i]);
	/* one reference is enough */
	for (int i = 0, of_best = 0; i < n; i++)
		if (found[i] == best && of_best++ > 0)
			dictionary_drop(best);
	pfree(found);
	return best;
}

}  // namespace gpuvm
