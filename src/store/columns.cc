/*
 * columns.cc: the columns of an import: in which form they are copied, which of them
 * turn out not to be storable, and what becomes of those.
 */
#include "pg/numeric_scaled.h"
#include "pg/shmem.h"
#include "store/dictionary.h"
#include "store/internal.h"
#include "tablet/strip.h"

extern "C" {
#include "lib/stringinfo.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
}

namespace gpuvm {

bool
is_importable(Form_pg_attribute att)
{
	return value_type(att->atttypid).form != ValueForm::None;
}

void
init_copy_column(CopyColumn *column, Form_pg_attribute att)
{
	ValueType	type = value_type(att->atttypid);
	int32		typmod = att->atttypmod;
	int			scale = -1;

	if (type.form == ValueForm::Numeric)
	{
		(void) getBaseTypeAndTypmod(att->atttypid, &typmod);
		scale = numeric_typmod_scale(typmod);
	}
	column->attnum = att->attnum;
	column->type = type.type;
	column->form = type.form;
	pg_atomic_init_u32(&column->failure, COLUMN_FITS);
	pg_atomic_init_u32(&column->scale, scale < 0 ? NO_SCALE : static_cast<uint32>(scale));
}

void
fail_copy_column(CopyColumn *column, ColumnFailure failure)
{
	uint32		fits = COLUMN_FITS;

	pg_atomic_compare_exchange_u32(&column->failure, &fits, failure);
}

void
init_dictionaries(CopyJob *job, Relation rel)
{
	uint64		builders = builders_begin(job->ncols);

	if (builders == 0)
		raise_memory_short();
	for (uint32 i = 0; i < job->ncols; i++)
	{
		CopyColumn *column = &job->columns[i];
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), column->attnum - 1);
		DictionaryFailure outlook;
		double		rows;

		if (column->form != ValueForm::Dictionary)
			continue;
		column->builder = builder_offset(builders, i);
		outlook = dictionary_outlook(rel, column->attnum, &rows);
		builder_start(arena_at<DictionaryBuilder>(column->builder), att, 0, rows);
		if (outlook != DictionaryFailure::None)
		{
			builder_fail(arena_at<DictionaryBuilder>(column->builder), outlook);
			fail_copy_column(column, COLUMN_TOO_MANY_VALUES);
		}
		job->detoasts = job->detoasts || att->attlen == -1;
	}
	/* the types and statistics were read from the catalogs */
	InvalidateCatalogSnapshot();
}

VersionColumn
version_column_of(CopyColumn *column)
{
	VersionColumn of = {};
	uint32		scale = pg_atomic_read_u32(&column->scale);

	of.attnum = column->attnum;
	of.type = column->type;
	of.left_out = copy_column_failed(column);
	of.scale = -1;
	/* of nulls alone, any will do: refresh may choose another */
	if (column->form == ValueForm::Numeric)
		of.scale = scale == NO_SCALE ? 0 : static_cast<int16>(scale);
	return of;
}

static const char *
failure_text(const CopyColumn *column)
{
	switch (pg_atomic_read_u32(const_cast<pg_atomic_uint32 *>(&column->failure)))
	{
		case COLUMN_NOT_FINITE: return "has values that are not finite numbers";
		case COLUMN_OTHER_SCALE: return "has values of different display scales";
		case COLUMN_TOO_LONG: return "has values with too many digits";
		default: return dictionary_failure_text(builder_failure(arena_at<DictionaryBuilder>(column->builder)));
	}
}

void
report_failed_columns(Relation rel, const CopyJob *job)
{
	StringInfoData detail;
	int			count = 0;

	initStringInfo(&detail);
	for (uint32 i = 0; i < job->ncols; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), job->columns[i].attnum - 1);

		if (copy_column_failed(&job->columns[i]))
			appendStringInfo(&detail, "%s\"%s\" (%s)", count++ > 0 ? ", " : "", NameStr(att->attname),
							 failure_text(&job->columns[i]));
	}
	if (count > 0)
		ereport(NOTICE,
				(errmsg_plural("%d column of table \"%s\" is left out", "%d columns of table \"%s\" are left out",
							   count, count, RelationGetRelationName(rel)),
				 errdetail("Tablets cannot store the values of: %s.", detail.data),
				 errhint("Queries that need such a column run on PostgreSQL.")));
	pfree(detail.data);
}

void
strip_failed_columns(CopyJob *job)
{
	uint64	   *tablets = arena_at<uint64>(job->manifest);
	uint32		ntablets = pg_atomic_read_u32(&job->ntablets);
	bool	   *failed = static_cast<bool *>(palloc0(Max(job->ncols, 1)));
	bool		any = false;

	for (uint32 i = 0; i < job->ncols; i++)
	{
		failed[i] = copy_column_failed(&job->columns[i]);
		any = any || failed[i];
	}
	for (uint32 t = 0; t < ntablets && any; t++)
	{
		uint64		old = tablets[t];
		uint64		size = stripped_size(arena_at<TabletHeader>(old), failed);
		uint64		offset = size == 0 ? 0 : arena_alloc(size);

		if (offset == 0)
			continue;
		strip_tablet(arena_at<TabletHeader>(old), failed, arena_next_serial(), arena_at<char>(offset));
		tablets[t] = offset;
		arena_free(old);
	}
	pfree(failed);
}

}  // namespace gpuvm
