/* import_functions.cc: gpuvm.import(), gpuvm.refresh() and gpuvm.release(). */
#include "store/internal.h"

#include "pg/shmem.h"

extern "C" {
#include "access/relation.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/inval.h"
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
		if (importable_type(type) == Type::None)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot import column \"%s\" of type %s", name, format_type_be(type)),
					 errhint("Types that can be imported are smallint, integer, bigint, real, double precision, boolean, date, timestamp and timestamp with time zone.")));
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

/* The columns of the current version that can still be imported, for an import that named them. */
static int16 *
same_columns(Relation rel, const TableVersion *version, int *count)
{
	TupleDesc	desc = RelationGetDescr(rel);
	const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);
	int16	   *attnums = static_cast<int16 *>(palloc(sizeof(int16) * Max(version->ncols, 1)));

	*count = 0;
	for (uint32 i = 0; i < version->ncols; i++)
	{
		int			attnum = columns[i].attnum;
		Form_pg_attribute att;

		if (attnum > desc->natts)
			continue;
		att = TupleDescAttr(desc, attnum - 1);
		if (!att->attisdropped && importable_type(att->atttypid) != Type::None)
			attnums[(*count)++] = att->attnum;
	}
	return attnums;
}

static uint64
refresh_relation(Relation rel)
{
	VersionPin *pin = registry_pin_any(RelationGetRelid(rel));
	int16	   *attnums;
	int			ncols;
	bool		all_columns;
	BlockNumber blocks;

	if (pin == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" is not imported", RelationGetRelationName(rel)),
				 errhint("Import it with gpuvm.import().")));
	if (pin_matches(pin, rel) && version_unchanged(rel, pin_version(pin), &blocks))
	{
		registry_unpin(pin);
		return 0;
	}
	all_columns = pin_all_columns(pin);
	attnums = all_columns ? importable_columns(rel, &ncols) : same_columns(rel, pin_version(pin), &ncols);
	registry_unpin(pin);
	return import_relation(rel, attnums, ncols, all_columns, true);
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
	Relation	rel;
	int16	   *attnums;
	int			ncols;
	uint64		rows;

	require_preload();
	if (PG_ARGISNULL(0) || PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", PG_ARGISNULL(0) ? "relation" : "vacuum")));
	rel = open_importable(PG_GETARG_OID(0), AccessShareLock);
	attnums = PG_ARGISNULL(1) ? importable_columns(rel, &ncols) : named_columns(rel, PG_GETARG_ARRAYTYPE_P(1), &ncols);
	rows = import_relation(rel, attnums, ncols, PG_ARGISNULL(1), PG_GETARG_BOOL(2));
	relation_close(rel, NoLock);
	PG_RETURN_INT64(static_cast<int64>(rows));
}

PGDLLEXPORT Datum
gpuvm_refresh(PG_FUNCTION_ARGS)
{
	Relation	rel;
	uint64		rows;

	require_preload();
	rel = open_importable(PG_GETARG_OID(0), AccessShareLock);
	rows = refresh_relation(rel);
	relation_close(rel, NoLock);
	PG_RETURN_INT64(static_cast<int64>(rows));
}

PGDLLEXPORT Datum
gpuvm_release(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	Relation	rel;

	require_preload();
	rel = relation_open(relid, AccessShareLock);
	if (!RelationOwnedBy(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(rel->rd_rel->relkind), RelationGetRelationName(rel));
	if (registry_known(relid))
	{
		registry_release(MyDatabaseId, relid);
		CacheInvalidateRelcache(rel);
	}
	else
		ereport(NOTICE,
				(errmsg("table \"%s\" is not imported", RelationGetRelationName(rel))));
	relation_close(rel, NoLock);
	PG_RETURN_VOID();
}
}
