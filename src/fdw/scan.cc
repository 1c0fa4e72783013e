/*
 * scan.cc: the ordinary plan, row by row: of a file table out of its tablets, where they have the columns and may answer, else
 * the file itself; of a table without a file out of what is stored. It is what a Custom Scan has as its alternative.
 */
#include "fdw/wrapper.h"

#include "pg/compat.h"
#include "pg/privileges.h"
#include "pg/settings.h"
#include "pg/shmem.h"
#include "store/file.h"
#include "store/registry.h"
#include "store/tablet_rows.h"
#include "store/tablets.h"

extern "C" {
#include "access/sysattr.h"
#include "access/table.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "utils/acl.h"
#include "utils/snapmgr.h"
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

/* Privileges are checked when the query begins: who may not read the table shall not have it loaded before that. */
static bool
may_read(PlannerInfo *root, RelOptInfo *rel)
{
	/* a partition's are those of the table that is named */
	Oid			relid = named_table(root, rel->relid);
	Oid			user = OidIsValid(rel->userid) ? rel->userid : GetUserId();

	return pg_class_aclcheck(relid, user, ACL_SELECT) == ACLCHECK_OK ||
		pg_attribute_aclcheck_all(relid, user, ACL_SELECT, ACLMASK_ANY) == ACLCHECK_OK;
}

/* How many rows there are, is known. For a statement that changes them a table is brought up to date that has been loaded for others. */
static void
size_of_tablets(PlannerInfo *root, RelOptInfo *rel, Relation table)
{
	TabletList	list = list_tablets(table, GetActiveSnapshot());
	bool		loads = !bms_is_member(rel->relid, root->all_result_relids) ||
		(registry_known(RelationGetRelid(table)) && (setting_force || list.rows >= ROWS_TO_LOAD));

	if (setting_enabled && loads && may_read(root, rel))
		(void) file_ready(table);
	rel->tuples = clamp_row_est(static_cast<double>(list.rows));
	rel->pages = static_cast<BlockNumber>(Max((list.size + BLCKSZ - 1) / BLCKSZ, 1));
	set_baserel_size_estimates(root, rel);
}

static void
size_of_file(PlannerInfo *root, RelOptInfo *rel, Relation table)
{
	Oid			relid = RelationGetRelid(table);
	bool		ready = setting_enabled && may_read(root, rel) && file_ready(table) == NULL;
	uint64		size = file_size(file_options(table).filename);
	BlockNumber pages = static_cast<BlockNumber>(Max((size + BLCKSZ - 1) / BLCKSZ, 1));
	ImportedTable imported;
	double		rows;

	if (ready && registry_describe(relid, &imported))
		rows = imported.nrows;
	/* as ANALYZE has seen it, grown with the file */
	else if (rel->tuples >= 0 && rel->pages > 0)
		rows = rel->tuples / rel->pages * pages;
	else
		rows = static_cast<double>(size) / (MAXALIGN(rel->reltarget->width) + TUPLE_OVERHEAD);
	rel->tuples = clamp_row_est(rows);
	rel->pages = pages;
	set_baserel_size_estimates(root, rel);
}

static void
size_of_table(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	Relation	table = table_open(relid, NoLock);

	if (is_tablet_table(table))
		size_of_tablets(root, rel, table);
	else
		size_of_file(root, rel, table);
	table_close(table, NoLock);
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

/* The plan carries the columns that are read; 0 stands for the whole row. */
static ForeignScan *
plan_scan(PlannerInfo *, RelOptInfo *rel, Oid, ForeignPath *, List *tlist, List *clauses, Plan *outer_plan)
{
	List	   *quals = extract_actual_clauses(clauses, false);
	Bitmapset  *read = NULL;
	List	   *columns = NIL;
	int			i = -1;

	pull_varattnos(reinterpret_cast<Node *>(tlist), rel->relid, &read);
	pull_varattnos(reinterpret_cast<Node *>(rel->reltarget->exprs), rel->relid, &read);
	pull_varattnos(reinterpret_cast<Node *>(quals), rel->relid, &read);
	while ((i = bms_next_member(read, i)) >= 0)
	{
		if (i + FirstLowInvalidHeapAttributeNumber >= 0)
			columns = lappend_int(columns, i + FirstLowInvalidHeapAttributeNumber);
	}
	return make_foreignscan(tlist, quals, rel->relid, NIL, columns, NIL, NIL, outer_plan);
}

/* -- running ------------------------------------------------------------------- */

struct FileScan
{
	bool		begun;			/* the first row was asked for */
	FileReader *reader;			/* NULL: rows come out of tablets, */
	TabletReader *stored;		/* or if not NULL, from here */
	MemoryContext context;		/* of the reader */
	VersionPin *pin;
	Bitmapset  *wanted;			/* columns */
	uint32		tablet;			/* of the version, */
	uint32		row;			/* and of the tablet: the next one */
	const char *why_file;		/* why the file is read, for EXPLAIN */
};

static void
begin_scan(ForeignScanState *node, int flags)
{
	EState	   *estate = node->ss.ps.state;
	FileScan   *scan;

	/*
	 * What a statement further out has collected cannot be written once the plan is in parallel mode, and its workers know of
	 * nothing. Programs begin their alternative as if it were to be explained only.
	 */
	if (estate->es_snapshot != NULL && is_tablet_table(node->ss.ss_currentRelation))
		store_pending(RelationGetRelid(node->ss.ss_currentRelation), estate->es_snapshot);
	if (flags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	scan = static_cast<FileScan *>(palloc0(sizeof(FileScan)));
	scan->context = AllocSetContextCreate(estate->es_query_cxt, "gpuvm file scan", ALLOCSET_DEFAULT_SIZES);
	node->fdw_state = scan;
}

/* Have the tablets all columns that the plan reads? */
static bool
has_columns(const TableVersion *version, Relation rel, List *columns, Bitmapset **wanted)
{
	TupleDesc	desc = RelationGetDescr(rel);

	for (int i = 0; i < desc->natts; i++)
	{
		if (TupleDescAttr(desc, i)->attisdropped || !(list_member_int(columns, i + 1) || list_member_int(columns, 0)))
			continue;
		if (version_column(version, i + 1) < 0)
			return false;
		*wanted = bms_add_member(*wanted, i + 1);
	}
	/* nothing is wanted: not the same as all */
	if (*wanted == NULL)
		*wanted = bms_make_singleton(0);
	return true;
}

/* Pins the tablets, if they can give the rows. */
static bool
take_tablets(ForeignScanState *node, FileScan *scan)
{
	Relation	rel = node->ss.ss_currentRelation;
	int			reason;

	scan->wanted = NULL;
	scan->why_file = !setting_enabled ? "gpuvm.enabled is off" : file_ready(rel);
	if (scan->why_file != NULL)
		return false;
	scan->pin = registry_pin(rel, &reason);
	/* it may have changed since file_ready() looked */
	if (scan->pin != NULL && file_may_answer(rel, pin_version(scan->pin), &scan->why_file) &&
		has_columns(pin_version(scan->pin), rel, reinterpret_cast<ForeignScan *>(node->ss.ps.plan)->fdw_private, &scan->wanted))
		return true;
	if (scan->why_file == NULL)
		scan->why_file = "a column is not in the tablets";
	if (scan->pin != NULL)
		registry_unpin(scan->pin);
	scan->pin = NULL;
	return false;
}

static bool
next_of_tablets(FileScan *scan, TupleTableSlot *slot)
{
	const TableVersion *version = pin_version(scan->pin);

	while (scan->tablet < version->ntablets)
	{
		const TabletHeader *tablet = arena_at<TabletHeader>(version_at<uint64_t>(version, version->tablets)[scan->tablet]);

		if (scan->row < tablet->nrows)
		{
			tablet_row(version, tablet, scan->row++, scan->wanted, slot);
			return true;
		}
		scan->tablet++;
		scan->row = 0;
	}
	return false;
}

/* Of the columns that the plan reads; NULL: all. */
static Bitmapset *
columns_of_plan(ForeignScanState *node)
{
	List	   *columns = reinterpret_cast<ForeignScan *>(node->ss.ps.plan)->fdw_private;
	Bitmapset  *wanted = bms_make_singleton(0);
	ListCell   *lc;

	foreach(lc, columns)
	{
		if (lfirst_int(lc) == 0)
			return NULL;
		wanted = bms_add_member(wanted, lfirst_int(lc));
	}
	return wanted;
}

static void
start_scan(ForeignScanState *node, FileScan *scan)
{
	Relation	rel = node->ss.ss_currentRelation;

	if (is_tablet_table(rel))
		scan->stored = tablets_open(rel, node->ss.ps.state->es_snapshot, columns_of_plan(node));
	else if (!take_tablets(node, scan))
		scan->reader = file_open(rel);
	scan->begun = true;
}

static void
next_of_stored(FileScan *scan, TupleTableSlot *slot)
{
	if (!tablets_next(scan->stored, slot->tts_values, slot->tts_isnull))
		return;
	ExecStoreVirtualTuple(slot);
	slot->tts_tid = tablets_ctid(scan->stored);
}

static TupleTableSlot *
next_of_scan(ForeignScanState *node)
{
	FileScan   *scan = static_cast<FileScan *>(node->fdw_state);
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	MemoryContext old;

	ExecClearTuple(slot);
	if (!scan->begun)
	{
		old = MemoryContextSwitchTo(scan->context);
		start_scan(node, scan);
		MemoryContextSwitchTo(old);
	}
	/* ExecScan has reset it since the last row */
	old = MemoryContextSwitchTo(node->ss.ps.ps_ExprContext->ecxt_per_tuple_memory);
	if (scan->stored != NULL)
		next_of_stored(scan, slot);
	else if (scan->reader == NULL)
		(void) next_of_tablets(scan, slot);
	else if (file_next(scan->reader, slot->tts_values, slot->tts_isnull))
		ExecStoreVirtualTuple(slot);
	MemoryContextSwitchTo(old);
	return slot;
}

static void
rescan(ForeignScanState *node)
{
	FileScan   *scan = static_cast<FileScan *>(node->fdw_state);

	if (scan == NULL)
		return;
	if (scan->stored != NULL)
	{
		/* the snapshot is the same */
		tablets_rewind(scan->stored);
		return;
	}
	if (scan->reader != NULL)
		file_close(scan->reader);
	if (scan->pin != NULL)
		registry_unpin(scan->pin);
	scan->reader = NULL;
	scan->pin = NULL;
	scan->tablet = scan->row = 0;
	scan->begun = false;
	MemoryContextReset(scan->context);
}

static void
end_scan(ForeignScanState *node)
{
	FileScan   *scan = static_cast<FileScan *>(node->fdw_state);

	if (scan != NULL && scan->stored != NULL)
		tablets_close(scan->stored);
	else
		rescan(node);
}

static void
explain_scan(ForeignScanState *node, ExplainState *es)
{
	FileOptions options;
	FileScan   *scan = static_cast<FileScan *>(node->fdw_state);	/* NULL, also of EXPLAIN ANALYZE, below a program that was all that ran */
	FileStamp	stamp;

	if (is_tablet_table(node->ss.ss_currentRelation))
	{
		if (es->analyze && scan != NULL && scan->begun)
			ExplainPropertyText("Rows From", "stored tablets", es);
		return;
	}
	options = file_options(node->ss.ss_currentRelation);
	ExplainPropertyText("Foreign File", options.filename, es);
	if (es->analyze && scan != NULL && scan->begun)
		ExplainPropertyText("Rows From", scan->reader == NULL ? "tablets" : psprintf("file (%s)", scan->why_file), es);
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
