/*
 * catalog.cc: table gpuvm.imports.
 *
 * Columns are remembered by name, because attribute numbers change in a dump and
 * restore. A column that is renamed is renamed here in the same transaction; the
 * name of one that was dropped stays, and counts again if there is a new column
 * of that name.
 *
 * The rows are read and written below SQL, without looking at privileges: users may only
 * read the table. Who imports, or removes a row, takes a lock on (gpuvm.imports, relation) until
 * the transaction ends, so that two imports of a table follow one another like two
 * updates of its row. Rows are sought by a fresh snapshot, whatever the isolation level.
 */
#include "store/catalog.h"

#include "store/internal.h"
#include "store/refresher_shared.h"

extern "C" {
#include "access/genam.h"
#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/skey.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace gpuvm {

constexpr int COL_RELATION = 1;
constexpr int COL_COLUMNS = 2;
constexpr int NCOLUMNS = 2;

static object_access_hook_type previous_object_access_hook = NULL;
static bool forgot = false;		/* in this transaction, by release */

/* -- the table ----------------------------------------------------------------- */

/* Not just any table of that name: the extension's. */
Oid
extension_table(const char *name)
{
	Oid			schema = get_namespace_oid("gpuvm", true);
	Oid			relid = OidIsValid(schema) ? get_relname_relid(name, schema) : InvalidOid;
	Oid			extension;

	if (!OidIsValid(relid))
		return InvalidOid;
	extension = get_extension_oid("gpuvm", true);
	return OidIsValid(extension) && getExtensionOfObject(RelationRelationId, relid) == extension ? relid : InvalidOid;
}

bool
catalog_exists(void)
{
	return OidIsValid(extension_table("imports"));
}

/* NULL where there is no extension. */
static Relation
open_imports(LOCKMODE lockmode)
{
	Oid			relid = extension_table("imports");
	Relation	imports = OidIsValid(relid) ? try_relation_open(relid, lockmode) : NULL;

	if (imports != NULL && RelationGetNumberOfAttributes(imports) != NCOLUMNS)
		elog(ERROR, "unexpected definition of table gpuvm.imports");
	return imports;
}

/* A copy of the relation's row, or NULL. Many columns' names may be out of line: those can be had during the scan. */
static HeapTuple
find_row(Relation imports, Oid relid)
{
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, COL_RELATION, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	list_free(RelationGetIndexList(imports));	/* finds the primary key, too */
	scan = systable_beginscan(imports, imports->rd_pkindex, OidIsValid(imports->rd_pkindex), NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (tuple != NULL)
		tuple = HeapTupleHasExternal(tuple) ? toast_flatten_tuple(tuple, RelationGetDescr(imports)) : heap_copytuple(tuple);
	systable_endscan(scan);
	return tuple;
}

/* A copy, or NULL for all columns. */
static ArrayType *
row_columns(Relation imports, HeapTuple tuple)
{
	bool		isnull;
	Datum		datum = heap_getattr(tuple, COL_COLUMNS, RelationGetDescr(imports), &isnull);

	return isnull ? NULL : DatumGetArrayTypePCopy(datum);
}

static bool
same_columns(const ArrayType *a, const ArrayType *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return VARSIZE(a) == VARSIZE(b) && memcmp(a, b, VARSIZE(a)) == 0;
}

/* Inserts the relation's row, or replaces `old`. */
static void
put_row(Relation imports, Oid relid, ArrayType *columns, HeapTuple old)
{
	Datum		values[NCOLUMNS] = {ObjectIdGetDatum(relid), PointerGetDatum(columns)};
	bool		nulls[NCOLUMNS] = {false, columns == NULL};
	HeapTuple	tuple = heap_form_tuple(RelationGetDescr(imports), values, nulls);

	if (old == NULL)
		CatalogTupleInsert(imports, tuple);
	else
		CatalogTupleUpdate(imports, &old->t_self, tuple);
	heap_freetuple(tuple);
	CommandCounterIncrement();
}

static const char *
why_unwritable(void)
{
	return RecoveryInProgress() ? "The server is a standby." : "The transaction is read-only.";
}

void
remember_table(Relation rel, ArrayType *columns)
{
	Oid			relid = RelationGetRelid(rel);
	Relation	imports = open_imports(XactReadOnly ? AccessShareLock : RowExclusiveLock);
	HeapTuple	row;

	if (imports == NULL)
		return;
	/* before the look: the row may be one that an open transaction has deleted */
	if (!XactReadOnly)
		LockDatabaseObject(RelationGetRelid(imports), relid, 0, ExclusiveLock);
	row = find_row(imports, relid);
	if (row != NULL && same_columns(row_columns(imports, row), columns))
	{
		table_close(imports, NoLock);
		return;
	}
	if (XactReadOnly)
	{
		table_close(imports, AccessShareLock);
		ereport(NOTICE,
				(errmsg("the import of table \"%s\" is not remembered", RelationGetRelationName(rel)),
				 errdetail("%s", why_unwritable()),
				 errhint("It lasts until the server is restarted.")));
		return;
	}

	put_row(imports, relid, columns, row);
	table_close(imports, NoLock);
}

bool
forget_table(Relation rel)
{
	Oid			relid = RelationGetRelid(rel);
	Relation	imports = open_imports(XactReadOnly ? AccessShareLock : RowExclusiveLock);
	bool		found;

	if (imports == NULL)
		return false;
	forgot = true;
	found = find_row(imports, relid) != NULL;
	if (found && XactReadOnly)
		ereport(NOTICE,
				(errmsg("table \"%s\" stays remembered as imported", RelationGetRelationName(rel)),
				 errdetail("%s", why_unwritable()),
				 errhint("It is imported again when the server is restarted.")));
	else if (found)
	{
		HeapTuple	row;

		LockDatabaseObject(RelationGetRelid(imports), relid, 0, ExclusiveLock);
		row = find_row(imports, relid);
		if (row != NULL)
			CatalogTupleDelete(imports, &row->t_self);
		CommandCounterIncrement();
	}
	table_close(imports, NoLock);
	return found;
}

List *
remembered_tables(void)
{
	Relation	imports = open_imports(AccessShareLock);
	List	   *tables = NIL;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (imports == NULL)
		return NIL;
	scan = systable_beginscan(imports, InvalidOid, false, NULL, 0, NULL);
	while ((tuple = systable_getnext(scan)) != NULL)
	{
		RememberedTable *table = static_cast<RememberedTable *>(palloc(sizeof(RememberedTable)));
		bool		isnull;

		table->relid = DatumGetObjectId(heap_getattr(tuple, COL_RELATION, RelationGetDescr(imports), &isnull));
		table->columns = row_columns(imports, tuple);
		table->uncommitted = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
		tables = lappend(tables, table);
	}
	systable_endscan(scan);
	table_close(imports, AccessShareLock);
	return tables;
}

static bool
find_columns(Relation imports, Oid relid, ArrayType **columns)
{
	HeapTuple	row = find_row(imports, relid);

	if (row == NULL)
		return false;
	*columns = row_columns(imports, row);
	return true;
}

bool
remembered_columns(Oid relid, ArrayType **columns)
{
	Relation	imports = open_imports(AccessShareLock);
	bool		found;

	if (imports == NULL)
		return false;
	found = find_columns(imports, relid, columns);
	if (!found && get_rel_relispartition(relid))
	{
		ListCell   *lc;

		foreach(lc, get_partition_ancestors(relid))
		{
			found = find_columns(imports, lfirst_oid(lc), columns);
			if (found)
				break;
		}
	}
	table_close(imports, AccessShareLock);
	return found;
}

bool
remembered_itself(Oid relid)
{
	Relation	imports = open_imports(AccessShareLock);
	bool		found;

	if (imports == NULL)
		return false;
	found = find_row(imports, relid) != NULL;
	table_close(imports, AccessShareLock);
	return found;
}

/* -- columns and leaves ----------------------------------------------------------- */

static bool
named(const char *name, const Datum *names, int nnames)
{
	for (int i = 0; i < nnames; i++)
		if (strcmp(name, NameStr(*DatumGetName(names[i]))) == 0)
			return true;
	return false;
}

int16 *
fitting_columns(Relation rel, ArrayType *columns, int *count)
{
	TupleDesc	desc = RelationGetDescr(rel);
	int16	   *attnums = static_cast<int16 *>(palloc(sizeof(int16) * Max(desc->natts, 1)));
	Datum	   *names = NULL;
	int			nnames = 0;

	*count = 0;
	if (columns != NULL && !array_contains_nulls(columns))
		deconstruct_array(columns, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR, &names, NULL, &nnames);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped && is_importable(att) &&
			(columns == NULL || named(NameStr(att->attname), names, nnames)))
			attnums[(*count)++] = att->attnum;
	}
	return attnums;
}

ArrayType *
column_name_array(Relation rel, const int16 *attnums, int count)
{
	Datum	   *names = static_cast<Datum *>(palloc(sizeof(Datum) * Max(count, 1)));

	for (int i = 0; i < count; i++)
		names[i] = PointerGetDatum(&TupleDescAttr(RelationGetDescr(rel), attnums[i] - 1)->attname);
	return construct_array(names, count, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR);
}

List *
importable_leaves(Oid parent, int *others)
{
	List	   *leaves = NIL;
	ListCell   *lc;

	*others = 0;
	foreach(lc, find_all_inheritors(parent, NoLock, NULL))
	{
		HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(lfirst_oid(lc)));
		Form_pg_class form;

		if (!HeapTupleIsValid(tuple))
			continue;
		form = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
		if (form->relkind == RELKIND_RELATION && form->relpersistence == RELPERSISTENCE_PERMANENT &&
			form->relam == HEAP_TABLE_AM_OID)
			leaves = lappend_oid(leaves, form->oid);
		else if (form->relkind != RELKIND_PARTITIONED_TABLE)
			(*others)++;
		ReleaseSysCache(tuple);
	}
	return leaves;
}

/* -- changes of definition ----------------------------------------------------------- */

static void
rename_in_row(Relation imports, Oid relid, const char *old_name, const char *new_name)
{
	HeapTuple	row = find_row(imports, relid);
	ArrayType  *columns = row ? row_columns(imports, row) : NULL;
	Datum	   *names;
	int			nnames;

	if (columns == NULL || array_contains_nulls(columns))
		return;
	deconstruct_array(columns, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR, &names, NULL, &nnames);
	for (int i = 0; i < nnames; i++)
		if (strcmp(NameStr(*DatumGetName(names[i])), old_name) == 0)
		{
			namestrcpy(DatumGetName(names[i]), new_name);	/* in our copy of the array */
			put_row(imports, relid, columns, row);
			return;
		}
}

void
catalog_column_renamed(Oid relid, const char *old_name, const char *new_name)
{
	Relation	imports = open_imports(RowExclusiveLock);
	ListCell   *lc;

	if (imports == NULL)
		return;
	/* the command has locked and renamed them all */
	foreach(lc, find_all_inheritors(relid, NoLock, NULL))
		rename_in_row(imports, lfirst_oid(lc), old_name, new_name);
	table_close(imports, NoLock);
}

/* Can the relation have a row? */
static bool
may_be_remembered(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Form_pg_class form;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
	result = form->relpersistence != RELPERSISTENCE_TEMP &&
		(form->relkind == RELKIND_RELATION || form->relkind == RELKIND_PARTITIONED_TABLE || form->relkind == RELKIND_MATVIEW ||
		 form->relkind == RELKIND_FOREIGN_TABLE);
	ReleaseSysCache(tuple);
	return result;
}

/* DROP, in whatever way it comes, takes the row along. DROP EXTENSION frees the tablets of the database. */
static void
catalog_object_access(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id, void *arg)
{
	if (previous_object_access_hook)
		previous_object_access_hook(access, class_id, object_id, sub_id, arg);
	if (access != OAT_DROP || sub_id != 0 || IsBinaryUpgrade)
		return;
	if (class_id == RelationRelationId && may_be_remembered(object_id))
	{
		Relation	imports = open_imports(RowExclusiveLock);
		HeapTuple	row = imports ? find_row(imports, object_id) : NULL;

		if (row != NULL)
		{
			CatalogTupleDelete(imports, &row->t_self);
			trouble_ended(object_id);
		}
		if (imports != NULL)
			table_close(imports, NoLock);
	}
	else if (class_id == ExtensionRelationId && registry_any() && object_id == get_extension_oid("gpuvm", true))
		registry_release(MyDatabaseId, InvalidOid);
}

/* What a release does at commit would be done neither by COMMIT PREPARED nor undone by ROLLBACK PREPARED. */
static void
catalog_xact_callback(XactEvent event, void *)
{
	if (event == XACT_EVENT_PRE_PREPARE && forgot)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot PREPARE a transaction that has released tables")));
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT)
		forgot = false;
}

void
catalog_install(void)
{
	RegisterXactCallback(catalog_xact_callback, NULL);
	previous_object_access_hook = object_access_hook;
	object_access_hook = catalog_object_access;
}

}  // namespace gpuvm
