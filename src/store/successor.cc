/* successor.cc: tablets for a version that goes on from another one, with its columns, forms and dictionaries. */
#include "store/internal.h"

#include "pg/shmem.h"
#include "store/checksum.h"
#include "store/dictionary.h"
#include "store/family.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

CopyJob *
successor_job(Relation rel, const TableVersion *version)
{
	const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);
	CopyJob    *job = static_cast<CopyJob *>(palloc0(copy_job_size(version->ncols)));
	int			natts = 0;

	for (uint32 i = 0; i < version->ncols && !is_high_half(columns[i].attnum); i++, natts++)
	{
		init_copy_column(&job->columns[i], TupleDescAttr(RelationGetDescr(rel), columns[i].attnum - 1));
		if (columns[i].flags & COLUMN_VARIABLE)
			vary_column(&job->columns[i]);
		job->columns[i].wide = (columns[i].flags & COLUMN_WIDE) != 0;
		if (columns[i].flags & COLUMN_LEFT_OUT)
			fail_copy_column(&job->columns[i], COLUMN_LEFT_OUT_BEFORE);
		/* the scale that is none of a type modifier and of no value may still become another */
		if (version->ntablets > 0 && !(columns[i].flags & CHUNK_ALL_NULL) && columns[i].scale >= 0)
			pg_atomic_write_u32(&job->columns[i].scale, columns[i].scale);
	}
	(void) add_high_halves(job->columns, natts);
	job->relid = RelationGetRelid(rel);
	job->progress_slot = -1;
	job->ncols = version->ncols;
	job->strict = true;
	pg_atomic_init_u32(&job->ntablets, 0);
	return job;
}

bool
successor_dictionaries(Relation rel, const TableVersion *version, CopyJob *job)
{
	const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);
	uint64		builders = builders_begin(job->ncols);

	if (builders == 0)
		return false;
	for (uint32 i = 0; i < job->ncols; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), attribute_of(columns[i].attnum) - 1);

		if (job->columns[i].form == ValueForm::Variable && !copy_column_failed(&job->columns[i]))
			job->detoasts = job->detoasts || att->attlen == -1;
		if (columns[i].dictionary == 0)
			continue;
		job->columns[i].builder = builder_offset(builders, i);
		builder_start(arena_at<DictionaryBuilder>(job->columns[i].builder), att, family_longest(columns[i].dictionary), true, 0);
		job->detoasts = job->detoasts || att->attlen == -1;
	}
	return true;
}

bool
bases_are_sealed(const CopyJob *job)
{
	for (uint32 i = 0; i < job->ncols; i++)
		if (job->columns[i].builder != 0 && !dictionary_is_sealed(arena_at<DictionaryBuilder>(job->columns[i].builder)->base))
			return false;
	return true;
}

bool
has_dictionaries(const TableVersion *version)
{
	const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);

	for (uint32 i = 0; i < version->ncols; i++)
		if (columns[i].dictionary != 0)
			return true;
	return false;
}

bool
has_outgrown(const CopyJob *job)
{
	for (uint32 i = 0; i < job->ncols; i++)
		if (job->columns[i].builder != 0 &&
			builder_failure(arena_at<DictionaryBuilder>(job->columns[i].builder)) != DictionaryFailure::None)
			return true;
	return false;
}

}  // namespace gpuvm
