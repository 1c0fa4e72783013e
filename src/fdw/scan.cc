/*
 * scan.cc: the ordinary plan of a file table, which reads the file row by row. It is what a
 * Custom Scan over the table's tablets has as its alternative.
 */
#include "fdw/wrapper.h"

#include "store/file.h"

extern "C" {
#include "access/table.h"
#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#endif
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
}

namespace gpuvm {

/* -- planning ------------------------------------------------------------------ */

constexpr int PARSE_OPERATORS = 10;	/* a row costs so many times cpu_tuple_cost: file_fdw's guess */
constexpr int TUPLE_OVERHEAD = 24;	/* of a row in a heap, which widths are known of */

static uint64
file_size(const char *filename)
{
	FileStamp	stamp;

	return file_stamp(filename, &stamp) ? stamp.size : 10 * BLCKSZ;
}

static void
size_of_table(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	Relation	table = table_open(relid, NoLock);
	uint64		size = file_size(file_options(table).filename);
	BlockNumber pages = static_cast<BlockNumber>(Max((size + BLCKSZ - 1) / BLCKSZ, 1));
	double		rows;

	table_close(table, NoLock);
	/* as ANALYZE has seen it, grown with the file */
	if (rel->tuples >= 0 && rel->pages > 0)
		rows = rel->tuples / rel->pages * pages;
	else
		rows = static_cast<double>(size) / (MAXALIGN(rel->reltarget->width) + TUPLE_OVERHEAD);
	rel->tuples = clamp_row_est(rows);
	rel->pages = pages;
	set_baserel_size_estimates(root, rel);
}

static void
add_path_of_scan(PlannerInfo *root, RelOptInfo *rel, Oid)
{
	Cost		startup = rel->baserestrictcost.startup;
	Cost		row = cpu_tuple_cost * PARSE_OPERATORS + rel->baserestrictcost.per_tuple;
	Cost		total = startup + seq_page_cost * rel->pages + row * rel->tuples;

	add_path(rel, reinterpret_cast<Path *>(
		create_foreignscan_path(root, rel, NULL, rel->rows,
#if PG_VERSION_NUM >= 180000
								0,
#endif
								startup, total, NIL, rel->lateral_relids, NULL,
#if PG_VERSION_NUM >= 170000
								NIL,
#endif
								NIL)));
}

static ForeignScan *
plan_scan(PlannerInfo *, RelOptInfo *rel, Oid, ForeignPath *, List *tlist, List *clauses, Plan *outer_plan)
{
	return make_foreignscan(tlist, extract_actual_clauses(clauses, false), rel->relid, NIL, NIL, NIL, NIL, outer_plan);
}

/* -- running ------------------------------------------------------------------- */

struct FileScan
{
	FileReader *reader;			/* NULL until the first row is asked for */
	MemoryContext context;		/* of the reader */
};

static void
begin_scan(ForeignScanState *node, int flags)
{
	FileScan   *scan;

	if (flags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	scan = static_cast<FileScan *>(palloc0(sizeof(FileScan)));
	scan->context = AllocSetContextCreate(node->ss.ps.state->es_query_cxt, "gpuvm file scan", ALLOCSET_DEFAULT_SIZES);
	node->fdw_state = scan;
}

static TupleTableSlot *
next_of_scan(ForeignScanState *node)
{
	FileScan   *scan = static_cast<FileScan *>(node->fdw_state);
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	MemoryContext old;

	ExecClearTuple(slot);
	if (scan->reader == NULL)
	{
		old = MemoryContextSwitchTo(scan->context);
		scan->reader = file_open(node->ss.ss_currentRelation);
		MemoryContextSwitchTo(old);
	}
	/* ExecScan has reset it since the last row */
	old = MemoryContextSwitchTo(node->ss.ps.ps_ExprContext->ecxt_per_tuple_memory);
	if (file_next(scan->reader, slot->tts_values, slot->tts_isnull))
		ExecStoreVirtualTuple(slot);
	MemoryContextSwitchTo(old);
	return slot;
}

static void
rescan(ForeignScanState *node)
{
	FileScan   *scan = static_cast<FileScan *>(node->fdw_state);

	if (scan->reader != NULL)
		file_close(scan->reader);
	scan->reader = NULL;
	MemoryContextReset(scan->context);
}

static void
end_scan(ForeignScanState *node)
{
	if (node->fdw_state != NULL)
		rescan(node);
}

static void
explain_scan(ForeignScanState *node, ExplainState *es)
{
	FileOptions options = file_options(node->ss.ss_currentRelation);
	FileStamp	stamp;

	ExplainPropertyText("Foreign File", options.filename, es);
	if (es->costs && file_stamp(options.filename, &stamp))
		ExplainPropertyInteger("Foreign File Size", "b", static_cast<int64>(stamp.size), es);
}

void
fdw_add_scan(FdwRoutine *routine)
{
	routine->GetForeignRelSize = size_of_table;
	routine->GetForeignPaths = add_path_of_scan;
	routine->GetForeignPlan = plan_scan;
	routine->BeginForeignScan = begin_scan;
	routine->IterateForeignScan = next_of_scan;
	routine->ReScanForeignScan = rescan;
	routine->EndForeignScan = end_scan;
	routine->ExplainForeignScan = explain_scan;
}

}  // namespace gpuvm
