/* analyze.cc: ANALYZE: the whole file, or all that is stored, is read, and rows are drawn from it as from a heap. */
#include "fdw/wrapper.h"

#include "pg/compat.h"
#include "store/file.h"
#include "store/tablets.h"

extern "C" {
#include "access/htup_details.h"
#include "commands/vacuum.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/sampling.h"
}

namespace gpuvm {

static int
draw_rows(Relation rel, int elevel, HeapTuple *rows, int target, double *total, double *dead)
{
	TupleDesc	desc = RelationGetDescr(rel);
	Datum	   *values = static_cast<Datum *>(palloc(sizeof(Datum) * desc->natts));
	bool	   *nulls = static_cast<bool *>(palloc(sizeof(bool) * desc->natts));
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuvm analyze", ALLOCSET_DEFAULT_SIZES);
	FileReader *reader = file_open(rel);
	ReservoirStateData sampler;
	double		skip = -1;		/* -1: to be drawn */
	int			drawn = 0;

	reservoir_init_selection_state(&sampler, target);
	*total = 0;
	*dead = 0;
	for (;;)
	{
		MemoryContext old = MemoryContextSwitchTo(context);
		bool		found;

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(context);
		found = file_next(reader, values, nulls);
		MemoryContextSwitchTo(old);
		if (!found)
			break;
		if (drawn < target)
			rows[drawn++] = heap_form_tuple(desc, values, nulls);
		else
		{
			if (skip < 0)
				skip = reservoir_get_next_S(&sampler, *total, target);
			if (skip <= 0)
			{
				int			k = static_cast<int>(target * compat_sampler_fract(&sampler));

				heap_freetuple(rows[k]);
				rows[k] = heap_form_tuple(desc, values, nulls);
			}
			skip -= 1;
		}
		*total += 1;
	}
	file_close(reader);
	MemoryContextDelete(context);
	pfree(values);
	pfree(nulls);
	ereport(elevel,
			(errmsg(is_tablet_table(rel) ? "\"%s\": table contains %.0f rows; %d rows in sample" : "\"%s\": file contains %.0f rows; %d rows in sample", RelationGetRelationName(rel), *total, drawn)));
	return drawn;
}

bool
fdw_analyze(Relation rel, AcquireSampleRowsFunc *sample, BlockNumber *pages)
{
	FileOrigin	origin;

	if (!file_origin(rel, &origin))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FILE),
				 errmsg("could not find file \"%s\"", file_options(rel).filename)));
	*pages = static_cast<BlockNumber>(Max((origin.stamp.size + BLCKSZ - 1) / BLCKSZ, 1));
	*sample = draw_rows;
	return true;
}

}  // namespace gpuvm
