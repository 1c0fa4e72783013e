/* import_functions.cc: gpuvm.import(), gpuvm.refresh() and gpuvm.release(). */
#include "sqlapi/tables.h"
#include "store/internal.h"

#include "pg/shmem.h"
#include "store/catalog.h"
#include "store/refresher.h"

extern "C" {
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
}

namespace gpuvm {

static int
compare_attnums(const void *a, const void *b)
{
	return *static_cast<const int16 *>(a) - *static_cast<const int16 *>(b);
}

/* The attribute numbers of the named columns, ascending; palloc'd. Raises for those that cannot be imported. */
static int16 *
named_columns(Relation rel, ArrayType *names, int *count)
{
	Datum	   *datums;
	bool	   *nulls;
	int16	   *attnums;

	deconstruct_array(names, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR, &datums, &nulls, count);
	attnums = static_cast<int16 *>(palloc(sizeof(int16) * Max(*count, 1)));
	for (int i = 0; i < *count; i++)
	{
		const char *name = nulls[i] ? "" : NameStr(*DatumGetName(datums[i]));
		AttrNumber	attnum = nulls[i] ? InvalidAttrNumber : get_attnum(RelationGetRelid(rel), name);
		Oid			type;

		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("column name must not be null")));
		if (attnum == InvalidAttrNumber)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of relation \"%s\" does not exist", name, RelationGetRelationName(rel))));
		if (attnum < 0)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot import system column \"%s\"", name)));
		type = TupleDescAttr(RelationGetDescr(rel), attnum - 1)->atttypid;
		if (!is_importable(TupleDescAttr(RelationGetDescr(rel), attnum - 1)))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot import column \"%s\" of type %s", name, format_type_be(type)),
					 errhint("Of types that are passed by value, tablets store the built-in scalar ones, enums, and domains over these.")));
		for (int j = 0; j < i; j++)
			if (attnums[j] == attnum)
				ereport(ERROR,
						(errcode(ERRCODE_DUPLICATE_COLUMN),
						 errmsg("column \"%s\" specified more than once", name)));
		attnums[i] = attnum;
	}
	qsort(attnums, *count, sizeof(int16), compare_attnums);
	return attnums;
}

/* Imports a table, or those leaves of a partitioned table that can be. */
static uint64
import_table(Relation rel, ArrayType *columns, bool vacuum)
{
	int			ncols;
	int16	   *attnums = columns == NULL ? importable_columns(rel, &ncols) : named_columns(rel, columns, &ncols);

	return import_relation(rel, attnums, ncols, columns == NULL, vacuum);
}

/*
 * The leaves in their order, each under its own lock, of whoever they are: a partition is its parent's
 * owner's to read. What each can import is decided by name, as numbers differ among them.
 */
static uint64
import_partitions(Relation parent, ArrayType *columns, bool vacuum)
{
	int			ncols;
	int			others;
	uint64		rows = 0;
	ListCell   *lc;

	/* what the columns' names and types have to say is said once */
	if (columns == NULL)
		importable_columns(parent, &ncols);
	else
		named_columns(parent, columns, &ncols);
	foreach(lc, importable_leaves(RelationGetRelid(parent), &others))
	{
		Relation	leaf = try_relation_open(lfirst_oid(lc), AccessShareLock);
		int16	   *attnums;

		if (leaf == NULL)
			continue;
		check_importable(leaf);
		attnums = fitting_columns(leaf, columns, &ncols);
		rows += import_relation(leaf, attnums, ncols, columns == NULL, vacuum);
		/* from here on it goes with the parent, whatever was remembered of it alone */
		if (!XactReadOnly && remembered_itself(RelationGetRelid(leaf)))
			(void) forget_table(leaf);
		table_imported(leaf);
		relation_close(leaf, NoLock);
	}
	if (others > 0)
		ereport(NOTICE,
				(errmsg_plural("%d partition of table \"%s\" is left out", "%d partitions of table \"%s\" are left out",
							   others, others, RelationGetRelationName(parent)),
				 errdetail("Only permanent partitions of access method heap can be imported.")));
	return rows;
}

[[noreturn]] static void
raise_undefined(Oid relid)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_TABLE),
			 errmsg("relation with OID %u does not exist", relid)));
	pg_unreachable();
}

Relation
open_checked(Oid relid, void (*check) (Oid relid, const char *name))
{
	const char *name = get_rel_name(relid);
	Relation	rel;

	if (name == NULL)
		raise_undefined(relid);
	check(relid, name);
	rel = try_relation_open(relid, AccessShareLock);
	if (rel == NULL)
		raise_undefined(relid);
	check(relid, RelationGetRelationName(rel));
	return rel;
}

static void
check_owned(Oid relid, const char *name)
{
	if (!RelationOwnedBy(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(relid)), name);
}

Relation
open_owned(Oid relid)
{
	return open_checked(relid, check_owned);
}

static bool
is_partitioned(Relation rel)
{
	return rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
}

/* The columns as they are to be remembered: their names, in the table's order. */
static ArrayType *
names_in_order(Relation rel, ArrayType *columns)
{
	int			ncols;
	int16	   *attnums;

	if (columns == NULL)
		return NULL;
	attnums = fitting_columns(rel, columns, &ncols);
	return column_name_array(rel, attnums, ncols);
}

/* Those leaves that are imported, or all where the parent is remembered. */
static uint64
refresh_partitions(Relation parent)
{
	ArrayType  *columns;
	bool		remembered = remembered_columns(RelationGetRelid(parent), &columns);
	bool		any = remembered;
	int			others;
	uint64		rows = 0;
	ListCell   *lc;

	foreach(lc, importable_leaves(RelationGetRelid(parent), &others))
	{
		Relation	leaf = remembered || registry_known(lfirst_oid(lc)) ? try_relation_open(lfirst_oid(lc), AccessShareLock) : NULL;

		if (leaf == NULL)
			continue;
		any = true;
		check_importable(leaf);
		rows += refresh_table(leaf);
		relation_close(leaf, NoLock);
	}
	if (!any)
		raise_not_imported(parent);
	return rows;
}

/* Gives the tablets up at commit, also those that somebody publishes until then; false when there are none now. */
static bool
release_tablets(Oid relid)
{
	registry_release(MyDatabaseId, relid);
	return registry_known(relid);
}

/* With the rows of its partitions, which were imported by themselves before or after. */
static bool
release_partitions(Relation parent)
{
	bool		any = false;
	ListCell   *lc;

	foreach(lc, find_all_inheritors(RelationGetRelid(parent), AccessShareLock, NULL))
	{
		Relation	child = lfirst_oid(lc) == RelationGetRelid(parent) ? NULL : try_relation_open(lfirst_oid(lc), NoLock);

		if (child == NULL)
			continue;
		any = forget_table(child) || any;
		any = release_tablets(RelationGetRelid(child)) || any;
		table_released(child);
		relation_close(child, NoLock);
	}
	return any;
}

/* A partition of a remembered table is imported again by the refresher: releasing it alone would not last. */
static void
check_not_by_parent(Relation rel)
{
	ArrayType  *columns;

	if (!remembered_itself(RelationGetRelid(rel)) && remembered_columns(RelationGetRelid(rel), &columns))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot release partition \"%s\" alone", RelationGetRelationName(rel)),
				 errdetail("It is imported with the partitioned table that it belongs to."),
				 errhint("Release that table, or detach the partition first.")));
}

}  // namespace gpuvm

using namespace gpuvm;

extern "C" {
PG_FUNCTION_INFO_V1(gpuvm_import);
PG_FUNCTION_INFO_V1(gpuvm_refresh);
PG_FUNCTION_INFO_V1(gpuvm_release);

PGDLLEXPORT Datum
gpuvm_import(PG_FUNCTION_ARGS)
{
	ArrayType  *columns = PG_ARGISNULL(1) ? NULL : PG_GETARG_ARRAYTYPE_P(1);
	Relation	rel;
	uint64		rows;

	require_preload();
	if (PG_ARGISNULL(0) || PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", PG_ARGISNULL(0) ? "relation" : "vacuum")));
	rel = open_owned(PG_GETARG_OID(0));
	if (is_partitioned(rel))
		rows = import_partitions(rel, columns, PG_GETARG_BOOL(2));
	else
	{
		check_importable(rel);
		rows = import_table(rel, columns, PG_GETARG_BOOL(2));
	}
	remember_table(rel, names_in_order(rel, columns));
	table_imported(rel);
	relation_close(rel, NoLock);
	PG_RETURN_INT64(static_cast<int64>(rows));
}

PGDLLEXPORT Datum
gpuvm_refresh(PG_FUNCTION_ARGS)
{
	Relation	rel;
	uint64		rows;

	require_preload();
	rel = open_owned(PG_GETARG_OID(0));
	if (!is_partitioned(rel))
	{
		check_importable(rel);
		rows = refresh_table(rel);
	}
	else
		rows = refresh_partitions(rel);
	relation_close(rel, NoLock);
	PG_RETURN_INT64(static_cast<int64>(rows));
}

PGDLLEXPORT Datum
gpuvm_release(PG_FUNCTION_ARGS)
{
	Relation	rel;
	bool		any;

	require_preload();
	rel = open_owned(PG_GETARG_OID(0));
	if (rel->rd_rel->relispartition)
		check_not_by_parent(rel);
	any = forget_table(rel);
	any = (is_partitioned(rel) ? release_partitions(rel) : release_tablets(RelationGetRelid(rel))) || any;
	table_released(rel);
	if (!any)
		ereport(NOTICE,
				(errmsg("table \"%s\" is not imported", RelationGetRelationName(rel))));
	relation_close(rel, NoLock);
	PG_RETURN_VOID();
}
}
