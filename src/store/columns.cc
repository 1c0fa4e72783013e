/*
 * columns.cc: the columns of an import: in which form they are copied, which of them
 * turn out not to be storable, and what becomes of those.
 */
#include "pg/numeric_scaled.h"
#include "pg/shmem.h"
#include "store/checksum.h"
#include "store/dictionary.h"
#include "store/family.h"
#include "store/internal.h"
#include "tablet/build.h"
#include "tablet/strip.h"
#include "tablet/wide_halves.h"

extern "C" {
#include "lib/stringinfo.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
}

namespace gpuvm {

bool
is_importable(Form_pg_attribute att)
{
	return value_type(att->atttypid).form != ValueForm::None || variable_type(att->attlen, att->attbyval);
}

void
vary_column(CopyColumn *column)
{
	column->type = Type::I64;
	column->form = ValueForm::Variable;
	column->wide = false;
	pg_atomic_write_u32(&column->failure, COLUMN_FITS);
	pg_atomic_write_u32(&column->scale, NO_SCALE);
}

static void
widen_column(CopyColumn *column)
{
	column->wide = true;
	pg_atomic_write_u32(&column->failure, COLUMN_FITS);
}

int
add_high_halves(CopyColumn *columns, int ncols)
{
	int			n = ncols;

	for (int i = 0; i < ncols; i++)
	{
		CopyColumn *high = &columns[n];

		columns[i].half = -1;
		if (!columns[i].wide)
			continue;
		memset(static_cast<void *>(high), 0, sizeof(*high));
		high->attnum = high_half(columns[i].attnum);
		high->type = Type::I64;
		high->form = ValueForm::Plain;
		high->half = static_cast<int16>(i);
		pg_atomic_init_u32(&high->failure, COLUMN_FITS);
		pg_atomic_init_u32(&high->scale, NO_SCALE);
		pg_atomic_init_u64(&high->image_bytes, 0);
		columns[i].half = static_cast<int16>(n++);
	}
	return n;
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
	pg_atomic_init_u64(&column->image_bytes, 0);
	column->unfit = COLUMN_FITS;
	column->may_vary = variable_type(att->attlen, att->attbyval);
	column->alone = false;
	column->wide = false;
	column->half = -1;
	/* more decimals than scaled_to_numeric() shows */
	if (column->form == ValueForm::None || scale > SCALED_MAX_RESULT_SCALE)
		vary_column(column);
}

void
fail_copy_column(CopyColumn *column, ColumnFailure failure)
{
	uint32		fits = COLUMN_FITS;

	pg_atomic_compare_exchange_u32(&column->failure, &fits, failure);
}

/* -- variable columns ------------------------------------------------------------ */

/* What the column's values will take; not what they are in a TOAST table, which nothing tells. */
static double
expected_image_bytes(Relation rel, AttrNumber attnum)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), attnum - 1);
	int32		width = get_attavgwidth(RelationGetRelid(rel), attnum);

	if (width <= 0)
		width = get_typavgwidth(att->atttypid, att->atttypmod);
	return Max(rel->rd_rel->reltuples, 0) * width;
}

void
choose_forms(Relation rel, CopyColumn *columns, int ncols, uint64 limit)
{
	double	   *bytes = static_cast<double *>(palloc0(sizeof(double) * Max(ncols, 1)));
	double		total = 0;
	double		rows;

	for (int i = 0; i < ncols; i++)
	{
		if (columns[i].may_vary && columns[i].form == ValueForm::Dictionary &&
			dictionary_outlook(rel, columns[i].attnum, &rows) != DictionaryFailure::None)
			vary_column(&columns[i]);
		if (columns[i].form == ValueForm::Variable)
			bytes[i] = expected_image_bytes(rel, columns[i].attnum);
		total += bytes[i];
	}
	while (total > limit)
	{
		int			widest = 0;

		for (int i = 1; i < ncols; i++)
			if (bytes[i] > bytes[widest])
				widest = i;
		fail_copy_column(&columns[widest], COLUMN_NO_ROOM);
		total -= bytes[widest];
		bytes[widest] = 0;
	}
	pfree(bytes);
}

/* Is there another form for a column that has failed? */
static bool
can_vary(const CopyColumn *column)
{
	return column->may_vary && column->form != ValueForm::Variable;
}

void
fail_job_column(CopyJob *job, CopyColumn *column, ColumnFailure failure)
{
	fail_copy_column(column, failure);
	if (can_vary(column))
		pg_atomic_write_u32(&job->again, 1);
}

/* The column that has put most into a dictionary; NULL if there is none. */
static CopyColumn *
largest_dictionary(CopyJob *job)
{
	CopyColumn *largest = NULL;
	uint64		most = 0;

	for (uint32 i = 0; i < job->ncols; i++)
	{
		CopyColumn *column = &job->columns[i];
		const DictionaryBuilder *builder = column->builder == 0 ? NULL : arena_at<DictionaryBuilder>(column->builder);
		uint64		size = builder == NULL || copy_column_failed(column) || builder->nadded == 0 ? 0 : builder_size(builder);

		if (size > most)
		{
			largest = column;
			most = size;
		}
	}
	return largest;
}

bool
shed_column(CopyJob *job)
{
	CopyColumn *widest = NULL;
	uint32		first = 0;

	if (job->strict)
		return false;
	for (uint32 i = 0; i < job->ncols; i++)
	{
		CopyColumn *column = &job->columns[i];

		if (column->form == ValueForm::Variable && !copy_column_failed(column) &&
			(widest == NULL || pg_atomic_read_u64(&column->image_bytes) > pg_atomic_read_u64(&widest->image_bytes)))
			widest = column;
	}
	if (widest == NULL)
		widest = largest_dictionary(job);
	if (widest == NULL && !copy_again(job))
		return false;
	/* another process may have found the same, or something else */
	if (pg_atomic_compare_exchange_u32(&job->again, &first, 1))
		fail_copy_column(widest, COLUMN_NO_ROOM);
	return true;
}

/* Has the column had, so far, so many new values that its dictionary would overflow, too? */
static bool
will_overflow(Relation rel, const CopyJob *job, const CopyColumn *column)
{
	uint64		rows = pg_atomic_read_u64(const_cast<pg_atomic_uint64 *>(&job->nrows));

	uint32		nadded = column->builder != 0 ? arena_at<DictionaryBuilder>(column->builder)->nadded : 0;

	return column->form == ValueForm::Dictionary && rel->rd_rel->reltuples > 2.0 * DICTIONARY_MAX_ENTRIES &&
		nadded > DICTIONARY_MAX_ENTRIES / 4 && nadded > rows / 2;
}

/* Has its dictionary overflowed only because it went on from that of other leaves? By what it had got from how many rows. */
static bool
fits_alone(Relation rel, const CopyJob *job, const CopyColumn *column)
{
	const DictionaryBuilder *builder = column->builder == 0 ? NULL : arena_at<DictionaryBuilder>(column->builder);
	DictionaryFailure failure = builder == NULL || builder->base == 0 ? DictionaryFailure::None : builder_failure(builder);
	double		rows = static_cast<double>(pg_atomic_read_u64(const_cast<pg_atomic_uint64 *>(&job->nrows)));
	double		times = Max(rel->rd_rel->reltuples, rows) / Max(rows, 1);

	return (failure == DictionaryFailure::TooMany || failure == DictionaryFailure::TooLarge) &&
		builder->nadded * times < DICTIONARY_MAX_ENTRIES && builder->bytes * times < DICTIONARY_MAX_BYTES;
}

/*
 * May the column have halves in the next attempt, which hold larger numbers, NaN and infinities? Leaves of a partitioned table are to have their columns in
 * the same places, and so have none of high halves.
 */
static bool
can_widen(Relation rel, const CopyColumn *column, uint32 failure, int ncols)
{
	return column->form == ValueForm::Numeric && (failure == COLUMN_TOO_LONG || failure == COLUMN_NOT_FINITE) && !column->wide && !rel->rd_rel->relispartition &&
		ncols <= static_cast<int>(VERSION_MAX_COLS) / 2;
}

bool
wants_halves(Relation rel, const CopyJob *job)
{
	int			ncols = 0;
	bool		wants = false;

	for (uint32 i = 0; i < job->ncols; i++)
		ncols += is_high_half(job->columns[i].attnum) ? 0 : 1;
	for (uint32 i = 0; i < job->ncols; i++)
		wants = wants || can_widen(rel, &job->columns[i], job->columns[i].unfit, ncols);
	return wants;
}

int
revise_columns(Relation rel, const CopyJob *job, CopyColumn *columns, int ncols)
{
	for (int i = 0; i < ncols; i++)
	{
		const CopyColumn *found = &job->columns[i];
		uint32		failure = pg_atomic_read_u32(const_cast<pg_atomic_uint32 *>(&found->failure));

		if (fits_alone(rel, job, found))
			columns[i].alone = true;
		else if (can_widen(rel, found, failure, ncols))
			widen_column(&columns[i]);
		else if (can_vary(found) && (failure != COLUMN_FITS || will_overflow(rel, job, found)))
			vary_column(&columns[i]);
		else if (failure != COLUMN_FITS)
			fail_copy_column(&columns[i], static_cast<ColumnFailure>(failure));
	}
	return add_high_halves(columns, ncols);
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
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), attribute_of(column->attnum) - 1);
		DictionaryFailure outlook;
		double		rows;
		bool		damaged = false;

		if (column->form == ValueForm::Variable && !copy_column_failed(column))
			job->detoasts = job->detoasts || att->attlen == -1;
		if (column->form != ValueForm::Dictionary)
			continue;
		column->builder = builder_offset(builders, i);
		outlook = dictionary_outlook(rel, column->attnum, &rows);
		builder_start(arena_at<DictionaryBuilder>(column->builder), att, column->alone ? 0 : family_base(rel, column->attnum, &damaged), false, rows);
		/* which may raise: only now, as the base is the builder's */
		if (damaged)
			ereport(WARNING,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("dictionary of column \"%s\" of other partitions than \"%s\" does not match its checksum",
							NameStr(att->attname), RelationGetRelationName(rel)),
					 errhint("gpuvm.import() of the partitioned table copies all of them anew.")));
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

bool
shed_dictionary(CopyJob *job)
{
	CopyColumn *largest = largest_dictionary(job);

	if (largest == NULL)
		return false;
	builder_fail(arena_at<DictionaryBuilder>(largest->builder), DictionaryFailure::NoMemory);
	fail_job_column(job, largest, COLUMN_TOO_MANY_VALUES);
	return true;
}

VersionColumn
version_column_of(CopyColumn *column)
{
	VersionColumn of = {};
	uint32		scale = pg_atomic_read_u32(&column->scale);

	of.attnum = column->attnum;
	of.type = column->type;
	of.left_out = copy_column_failed(column);
	of.variable = column->form == ValueForm::Variable;
	of.wide = column->wide;
	of.scale = -1;
	/* of nulls alone, any will do: refresh may choose another */
	if (column->form == ValueForm::Numeric)
		of.scale = scale == NO_SCALE ? 0 : static_cast<int16>(scale);
	return of;
}

static const char *
failure_text(const CopyColumn *column, uint32 failure)
{
	switch (failure)
	{
		case COLUMN_NOT_FINITE: return "has values that are not finite numbers";
		case COLUMN_OTHER_SCALE: return "has values of different display scales";
		case COLUMN_TOO_LONG: return "has values with too many digits";
		case COLUMN_TOO_LARGE: return "has values of more than 1 MB";
		case COLUMN_NO_ROOM: return "has values that take too much of \"gpuvm.memory\"";
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
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), attribute_of(job->columns[i].attnum) - 1);

		if (copy_column_failed(&job->columns[i]))
			appendStringInfo(&detail, "%s\"%s\" (%s)", count++ > 0 ? ", " : "", NameStr(att->attname),
							 failure_text(&job->columns[i], pg_atomic_read_u32(const_cast<pg_atomic_uint32 *>(&job->columns[i].failure))));
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
report_unfit_columns(Relation rel, const CopyJob *job)
{
	for (uint32 i = 0; i < job->ncols; i++)
	{
		const CopyColumn *column = &job->columns[i];

		/* a dictionary for which memory is short takes the value another time */
		if (column->unfit == COLUMN_FITS || (column->builder != 0 && arena_at<DictionaryBuilder>(column->builder)->starved))
			continue;
		ereport(NOTICE,
				(errmsg("rows of table \"%s\" stay out of tablets", RelationGetRelationName(rel)),
				 errdetail("Column \"%s\" %s.", NameStr(TupleDescAttr(RelationGetDescr(rel), column->attnum - 1)->attname),
						   column->builder != 0 ? dictionary_failure_text(DictionaryFailure::TooLong) : failure_text(column, column->unfit)),
				 errhint("Queries that need the column run on PostgreSQL. gpuvm.import() chooses its form anew.")));
	}
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
		place_tablet(arena_at<TabletHeader>(offset), offset);
		for (uint32 i = 0; i < job->ncols; i++)
			seal_column(arena_at<TabletHeader>(offset), i);
		seal_tablet(arena_at<TabletHeader>(offset));
		tablets[t] = offset;
		arena_free(old);
	}
	pfree(failed);
}

}  // namespace gpuvm
