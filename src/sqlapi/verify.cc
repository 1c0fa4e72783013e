/*
 * verify.cc: gpuvm.verify().
 *
 * It costs what reading the whole table does, and tells nothing of its rows but which are wrong. So it is for who may
 * read them all, and for the owner.
 */
#include "sqlapi/tables.h"
#include "store/internal.h"

#include "pg/compat.h"
#include "pg/privileges.h"
#include "pg/shmem.h"
#include "pg/stats.h"
#include "store/catalog.h"
#include "store/refresher.h"
#include "store/verify.h"
#include "tablet/wide_halves.h"

extern "C" {
#include "access/relation.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace gpuvm {

constexpr int VERIFY_COLUMNS = 7;

struct VerifyOutput
{
	ReturnSetInfo *result;
	Relation	rel;
	uint64		problems;
};

static void
put_problem(void *to, const Problem &problem)
{
	VerifyOutput *output = static_cast<VerifyOutput *>(to);
	const int	attnum = attribute_of(problem.attnum);
	ItemPointerData tid;
	Datum		values[VERIFY_COLUMNS];
	bool		nulls[VERIFY_COLUMNS] = {};

	values[0] = ObjectIdGetDatum(RelationGetRelid(output->rel));
	values[1] = Int32GetDatum(problem.tablet);
	nulls[1] = problem.tablet < 0;
	values[2] = Int64GetDatum(problem.first_block);
	values[3] = Int64GetDatum(problem.nblocks);
	nulls[2] = nulls[3] = problem.nblocks == 0;
	nulls[4] = attnum <= 0 || attnum > RelationGetNumberOfAttributes(output->rel);
	if (!nulls[4])
		values[4] = NameGetDatum(&TupleDescAttr(RelationGetDescr(output->rel), attnum - 1)->attname);
	ItemPointerSet(&tid, problem.first_block, problem.row);
	values[5] = PointerGetDatum(&tid);
	nulls[5] = problem.row == InvalidOffsetNumber;
	values[6] = CStringGetTextDatum(problem.text);
	tuplestore_putvalues(output->result->setResult, output->result->setDesc, values, nulls);
	output->problems++;
}

constexpr const char WITHOUT_HEAP[] = "Its rows lie in a file or in side tables.";

static bool
is_foreign(Relation rel)
{
	return rel->rd_rel->relkind == RELKIND_FOREIGN_TABLE;
}

/* False if it is not imported. */
static bool
verify_table(VerifyOutput *output, Relation rel, bool heap)
{
	VersionPin *pin = registry_pin_any(RelationGetRelid(rel));
	int			reason;

	if (pin == NULL)
		return false;
	output->rel = rel;
	output->problems = 0;
	verify_version(rel, pin, put_problem, output);
	registry_unpin(pin);
	if (!heap)
		return true;
	if (is_foreign(rel))
		ereport(NOTICE,
				(errmsg("foreign table \"%s\" is not compared with a heap", RelationGetRelationName(rel)),
				 errdetail(WITHOUT_HEAP)));
	else if (output->problems > 0)
		ereport(NOTICE,
				(errmsg("table \"%s\" is not compared with its heap, as its tablets are not sound",
						RelationGetRelationName(rel))));
	else if (!verify_heap(rel, put_problem, output, &reason))
		ereport(NOTICE,
				(errmsg("table \"%s\" is not compared with its heap, as queries do not read its tablets now",
						RelationGetRelationName(rel)),
				 errdetail("The reason is \"%s\".", fallback_reason_name(static_cast<FallbackReason>(reason)))));
	return true;
}

/* Those leaves that are imported, also foreign ones by themselves, each under its own lock; false if there are none. */
static bool
verify_partitions(VerifyOutput *output, Relation parent, bool heap)
{
	bool		any = false;
	ListCell   *lc;

	foreach(lc, find_all_inheritors(RelationGetRelid(parent), NoLock, NULL))
	{
		Relation	leaf = registry_known(lfirst_oid(lc)) ? try_relation_open(lfirst_oid(lc), AccessShareLock) : NULL;

		if (leaf == NULL)
			continue;
		any = verify_table(output, leaf, heap) || any;
		relation_close(leaf, NoLock);
	}
	return any;
}

static void
check_may_verify(Oid relid, const char *name)
{
	if (!RelationOwnedBy(relid, GetUserId()) && !may_see_all_rows(relid))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for table %s", name),
				 errdetail("Only its owner, and who may select all of its rows and columns, may verify it.")));
}

}  // namespace gpuvm

using namespace gpuvm;

extern "C" {
PG_FUNCTION_INFO_V1(gpuvm_verify);

PGDLLEXPORT Datum
gpuvm_verify(PG_FUNCTION_ARGS)
{
	const bool	heap = !PG_ARGISNULL(1) && PG_GETARG_BOOL(1);
	VerifyOutput output = {};
	Relation	rel;

	require_preload();
	/* no row would say that all is well */
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("relation to verify must not be null")));
	InitMaterializedSRF(fcinfo, 0);
	output.result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
	rel = open_checked(PG_GETARG_OID(0), check_may_verify);
	if (heap && is_foreign(rel))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("cannot compare foreign table \"%s\" with a heap", RelationGetRelationName(rel)),
				 errdetail(WITHOUT_HEAP)));
	if (!(rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE ? verify_partitions : verify_table)(&output, rel, heap))
		raise_not_imported(rel);
	relation_close(rel, NoLock);
	return (Datum) 0;
}
}
