/*
 * floor.cc: a custom scan that does nothing but hand out constant rows, the
 * floor that row-returning queries are measured against.
 *
 *   LOAD 'build/floor.so';  SET floor.rows = 6000000;
 *   SELECT a, b, c FROM gpuvm_floor;
 *
 * Every scan of a table named gpuvm_floor becomes this scan; its columns must be
 * of types that fit a Datum.
 */
#include "pg/pg.h"

extern "C" {
#include "commands/explain.h"
#include "executor/execdesc.h"
#include "executor/executor.h"
#include "nodes/extensible.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

PG_MODULE_MAGIC;
PGDLLEXPORT void _PG_init(void);
}

static set_rel_pathlist_hook_type next_hook;
static int	floor_rows;

struct FloorState
{
	CustomScanState css;
	int			row;
};

static TupleTableSlot *
next_row(CustomScanState *node)
{
	FloorState *state = reinterpret_cast<FloorState *>(node);
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;

	ExecClearTuple(slot);
	if (state->row >= floor_rows)
		return slot;
	for (int i = 0; i < slot->tts_tupleDescriptor->natts; i++)
	{
		slot->tts_values[i] = Int32GetDatum(state->row);
		slot->tts_isnull[i] = false;
	}
	state->row++;
	return ExecStoreVirtualTuple(slot);
}

static bool
recheck(CustomScanState *node, TupleTableSlot *slot)
{
	return true;
}

static TupleTableSlot *
exec_floor(CustomScanState *node)
{
	return ExecScan(&node->ss, reinterpret_cast<ExecScanAccessMtd>(next_row), reinterpret_cast<ExecScanRecheckMtd>(recheck));
}

static void
begin_floor(CustomScanState *node, EState *estate, int eflags)
{
}

static void
end_floor(CustomScanState *node)
{
}

static void
rescan_floor(CustomScanState *node)
{
	reinterpret_cast<FloorState *>(node)->row = 0;
}

static const CustomExecMethods exec_methods = {"Floor", begin_floor, exec_floor, end_floor, rescan_floor};

static Node *
create_state(CustomScan *cscan)
{
	FloorState *state = static_cast<FloorState *>(palloc0(sizeof(FloorState)));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	return reinterpret_cast<Node *>(state);
}

static const CustomScanMethods scan_methods = {"Floor", create_state};

static Plan *
plan_floor(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);

	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = extract_actual_clauses(clauses, false);
	scan->scan.scanrelid = rel->relid;
	/* The scan tuple is the target list itself, so that there is nothing to project. */
	scan->custom_scan_tlist = static_cast<List *>(copyObjectImpl(tlist));
	scan->methods = &scan_methods;
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {"Floor", plan_floor};

static void
add_floor_path(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	CustomPath *path;
	char	   *name;

	if (next_hook != nullptr)
		next_hook(root, rel, rti, rte);
	if (rte->rtekind != RTE_RELATION || (name = get_rel_name(rte->relid)) == nullptr || strcmp(name, "gpuvm_floor") != 0)
		return;
	path = makeNode(CustomPath);
	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = rel->reltarget;
	path->path.rows = floor_rows;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->methods = &path_methods;
	rel->pathlist = list_make1(path);
	rel->partial_pathlist = NIL;
}

void
_PG_init(void)
{
	DefineCustomIntVariable("floor.rows", "Rows that a scan of gpuvm_floor hands out.", nullptr, &floor_rows, 1000000, 0,
							INT_MAX, PGC_USERSET, 0, nullptr, nullptr, nullptr);
	RegisterCustomScanMethods(&scan_methods);
	next_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = add_floor_path;
}
