/*
 * registry_commit.cc: what a transaction does to the registry, when it commits: publishes versions, and releases them.
 */
#include "store/registry_table.h"

#include "pg/shmem.h"
#include "store/family.h"

extern "C" {
#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
}

namespace gpuvm {

/* What this transaction does to the registry at commit, in order. */
struct PendingOp
{
	PendingOp  *next;
	SubTransactionId subid;
	RegistryKey key;
	int			slot;			/* to publish; NO_SLOT: release */
};

static PendingOp *pending_first = NULL;
static PendingOp **pending_last = &pending_first;
static object_access_hook_type previous_object_access_hook = NULL;

int
pending_slot(Oid relid)
{
	int			slot = NO_SLOT;

	for (const PendingOp *op = pending_first; op != NULL; op = op->next)
		if (op->key.database == MyDatabaseId && op->key.relid == relid)
			slot = op->slot;
	return slot;
}

bool
registry_pending(Oid relid)
{
	return pending_slot(relid) != NO_SLOT;
}

static PendingOp *
make_pending(Oid database, Oid relid)
{
	PendingOp  *op = static_cast<PendingOp *>(MemoryContextAllocZero(TopMemoryContext, sizeof(PendingOp)));

	op->subid = GetCurrentSubTransactionId();
	op->key.database = database;
	op->key.relid = relid;
	op->slot = NO_SLOT;
	return op;
}

static void
append_pending(PendingOp *op)
{
	*pending_last = op;
	pending_last = &op->next;
}

static void
publish_now(const PendingOp *op)
{
	RegistryEntry *entry;
	int			replaced;
	uint64		drop[VERSION_MAX_COLS];
	int			ndrop;

	LWLockAcquire(registry_lock(), LW_EXCLUSIVE);
	ndrop = families_publish(arena_at<TableVersion>(version_slot(op->slot)->version), drop);
	entry = find_entry(op->key.database, op->key.relid);
	replaced = entry->slot;
	entry->slot = op->slot;		/* with the transaction's reference */
	entry->promises--;
	if (replaced == NO_SLOT)
		pg_atomic_fetch_add_u32(&registry_shared()->published, 1);
	LWLockRelease(registry_lock());
	drop_dictionaries(drop, ndrop);
	if (replaced != NO_SLOT)
		slot_unref(replaced);
	invalidate_plans(op->key);
}

void
registry_publish(Relation rel, uint64 version, bool all_columns, bool at_once)
{
	PendingOp  *op = make_pending(MyDatabaseId, RelationGetRelid(rel));
	uint64		now = static_cast<uint64>(GetCurrentTimestamp());
	RegistryEntry *entry;
	bool		found;

	LWLockAcquire(registry_lock(), LW_EXCLUSIVE);
	entry = static_cast<RegistryEntry *>(hash_search(registry_entries, &op->key, HASH_ENTER_NULL, &found));
	if (entry != NULL && !found)
	{
		entry->slot = NO_SLOT;
		entry->promises = 0;
		pg_atomic_init_u64(&entry->uses, 0);
		pg_atomic_init_u64(&entry->last_use, 0);
	}
	if (entry != NULL)
		op->slot = take_slot(op->key, version, arena_next_serial(), RelationFileNode(rel), all_columns, now);
	if (op->slot != NO_SLOT)
		entry->promises++;
	else if (entry != NULL)
		remove_entry_if_unused(entry);
	LWLockRelease(registry_lock());

	if (op->slot == NO_SLOT)
	{
		pfree(op);
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many tables are imported"),
				 errdetail("At most %d tables can be imported at a time.", REGISTRY_MAX_TABLES),
				 errhint("Release tables with gpuvm.release().")));
	}
	if (!at_once)
	{
		append_pending(op);
		return;
	}
	publish_now(op);
	pfree(op);
}

void
registry_release(Oid database, Oid relid)
{
	append_pending(make_pending(database, relid));
}

void
registry_sweep(void)
{
	int			count;
	RegistryRow *rows = registry_list(&count);

	/* only now, or a table made and imported a moment ago may look gone */
	AcceptInvalidationMessages();
	for (int i = 0; i < count; i++)
		if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(rows[i].relid)))
			registry_release(MyDatabaseId, rows[i].relid);
	pfree(rows);
}

/* Drops the entry's reference; false when there was none. */
static bool
release_now(Oid database, Oid relid)
{
	RegistryEntry *entry;
	int			released = NO_SLOT;

	LWLockAcquire(registry_lock(), LW_EXCLUSIVE);
	entry = find_entry(database, relid);
	if (entry != NULL && entry->slot != NO_SLOT)
	{
		released = entry->slot;
		entry->slot = NO_SLOT;
		pg_atomic_fetch_sub_u32(&registry_shared()->published, 1);
		remove_entry_if_unused(entry);
	}
	LWLockRelease(registry_lock());
	if (released == NO_SLOT)
		return false;
	slot_unref(released);
	invalidate_plans({database, relid});
	return true;
}

static void
release_database_now(Oid database)
{
	for (;;)
	{
		HASH_SEQ_STATUS scan;
		RegistryEntry *entry;
		Oid			relid = InvalidOid;

		LWLockAcquire(registry_lock(), LW_SHARED);
		hash_seq_init(&scan, registry_entries);
		while ((entry = static_cast<RegistryEntry *>(hash_seq_search(&scan))) != NULL)
			if (entry->key.database == database && entry->slot != NO_SLOT)
			{
				relid = entry->key.relid;
				hash_seq_term(&scan);
				break;
			}
		LWLockRelease(registry_lock());
		if (!OidIsValid(relid))
			return;
		release_now(database, relid);
	}
}

static void
discard(const PendingOp *op)
{
	RegistryEntry *entry;

	if (op->slot == NO_SLOT)
		return;
	LWLockAcquire(registry_lock(), LW_EXCLUSIVE);
	entry = find_entry(op->key.database, op->key.relid);
	entry->promises--;
	remove_entry_if_unused(entry);
	LWLockRelease(registry_lock());
	slot_unref(op->slot);
}

static void
end_pending(bool commit)
{
	while (pending_first != NULL)
	{
		PendingOp  *op = pending_first;

		pending_first = op->next;
		if (!commit)
			discard(op);
		else if (op->slot != NO_SLOT)
			publish_now(op);
		else if (OidIsValid(op->key.relid))
			release_now(op->key.database, op->key.relid);
		else
			release_database_now(op->key.database);
		pfree(op);
	}
	pending_last = &pending_first;
}

static void
registry_xact_callback(XactEvent event, void *)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
			end_pending(true);
			break;
		case XACT_EVENT_ABORT:
			import_abandon();
			end_pending(false);
			break;
		case XACT_EVENT_PRE_PREPARE:
			for (PendingOp *op = pending_first; op != NULL; op = op->next)
			{
				if (op->slot != NO_SLOT)
					ereport(ERROR,
							(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							 errmsg("cannot PREPARE a transaction that has imported tables")));
			}
			/* To release early (a dropped table's tablets, say) costs a fallback at worst. */
			end_pending(true);
			break;
		default:
			break;
	}
}

static void
registry_subxact_callback(SubXactEvent event, SubTransactionId subid, SubTransactionId parent, void *)
{
	PendingOp **link = &pending_first;

	if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
		return;
	if (event == SUBXACT_EVENT_ABORT_SUB)
		import_abandon();
	while (*link != NULL)
	{
		PendingOp  *op = *link;

		if (op->subid == subid && event == SUBXACT_EVENT_ABORT_SUB)
		{
			*link = op->next;
			discard(op);
			pfree(op);
			continue;
		}
		if (op->subid == subid)
			op->subid = parent;
		link = &op->next;
	}
	pending_last = link;
}

/* DROP TABLE and DROP DATABASE free the tablets at commit; that they are not used is up to the file node. */
static void
registry_object_access(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id, void *arg)
{
	if (previous_object_access_hook)
		previous_object_access_hook(access, class_id, object_id, sub_id, arg);
	if (access != OAT_DROP || sub_id != 0 || !registry_any())
		return;
	if (class_id == RelationRelationId && registry_known(object_id))
		registry_release(MyDatabaseId, object_id);
	else if (class_id == DatabaseRelationId)
		registry_release(object_id, InvalidOid);
}

void
registry_install(void)
{
	RegisterXactCallback(registry_xact_callback, NULL);
	RegisterSubXactCallback(registry_subxact_callback, NULL);
	RegisterResourceReleaseCallback(release_pins_of_owner, NULL);
	previous_object_access_hook = object_access_hook;
	object_access_hook = registry_object_access;
}

}  // namespace gpuvm
