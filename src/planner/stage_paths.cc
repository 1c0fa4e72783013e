/* stage_paths.cc: programs whose rows other programs read, from path to plan. */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/tlist.h"
}

#include "planner/cost.h"
#include "planner/stage_paths.h"
#include "store/registry.h"

namespace gpuvm {

static Plan *plan_stage(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist, List *clauses, List *custom_plans);

static const CustomPathMethods stage_methods = {
	"GpuVM",
	plan_stage,
	nullptr,
};

static PathTarget *
target_of(List *exprs)
{
	PathTarget *target = create_empty_pathtarget();

	target->exprs = exprs;
	return target;
}

Path *
make_stage_path(PlannerInfo *root, const ScanShape *shape, ScanPlan *plan, List *exprs, double rows)
{
	Path		nothing = {};
	ProgramRows read = {};
	CustomPath *path;
	double		map_cost;

	plan->stage = true;
	plan_delta(plan, shape, &read);
	map_cost = detach_maps(root, shape, plan);
	path = make_path(root, makeNode(RelOptInfo), target_of(exprs), shape, &nothing, plan, read, rows, map_cost);
	path->custom_paths = child_paths(shape);
	path->methods = &stage_methods;
	/* its rows are not handed out; all of them are there before the first is read */
	path->path.total_cost += cost_of_us() * (kept_rows_us(rows, list_length(exprs)) - rows * HAND_OUT_US);
	path->path.startup_cost = path->path.total_cost;
	return &path->path;
}

Path *
append_stages(List *paths, double rows)
{
	AppendPath *append = makeNode(AppendPath);
	const Path *first = static_cast<const Path *>(linitial(paths));
	ListCell   *lc;

	append->path.pathtype = T_Append;
	append->path.parent = makeNode(RelOptInfo);
	append->path.pathtarget = first->pathtarget;
	append->path.rows = rows;
	append->subpaths = paths;
	append->first_partial_path = list_length(paths);
	append->limit_tuples = -1;
	foreach(lc, paths)
		append->path.total_cost += static_cast<const Path *>(lfirst(lc))->total_cost;
	append->path.startup_cost = append->path.total_cost;
	return &append->path;
}

bool
is_stage_path(const Path *path)
{
	if (IsA(path, AppendPath) && ((const AppendPath *) path)->subpaths != NIL)
		return is_stage_path(static_cast<const Path *>(linitial(((const AppendPath *) path)->subpaths)));
	return IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &stage_methods;
}

/* An entry in the query's range table, for EXPLAIN to name the columns by. */
static Index
add_stage_relation(PlannerInfo *root, List *names)
{
	RangeTblEntry *rte = makeNode(RangeTblEntry);

	rte->rtekind = RTE_VALUES;
	rte->eref = makeAlias("stage", names);
	rte->inFromCl = true;
	expand_planner_arrays(root, 1);
	root->parse->rtable = lappend(root->parse->rtable, rte);
	root->simple_rte_array[root->simple_rel_array_size - 1] = rte;
	Assert(list_length(root->parse->rtable) == root->simple_rel_array_size - 1);
	return list_length(root->parse->rtable);
}

void
name_columns(PlannerInfo *root, CustomScan *scan)
{
	List	   *names = NIL;
	Index		relid;
	ListCell   *lc;

	foreach(lc, scan->custom_scan_tlist)
	{
		const char *name = list_nth_node(TargetEntry, root->processed_tlist, foreach_current_index(lc))->resname;

		names = lappend(names, makeString(name != nullptr ? pstrdup(name) : psprintf("c%d", foreach_current_index(lc) + 1)));
	}
	relid = add_stage_relation(root, names);
	foreach(lc, scan->custom_scan_tlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);
		const Node *expr = (const Node *) entry->expr;

		entry->expr = (Expr *) makeVar(relid, entry->resno, exprType(expr), exprTypmod(expr), exprCollation(expr), 0);
	}
	scan->scan.plan.targetlist = static_cast<List *>(copyObjectImpl(scan->custom_scan_tlist));
}

/* A scan whose columns are those of the path, under these names. */
static CustomScan *
scan_of_columns(PlannerInfo *root, const CustomPath *path, List *names)
{
	CustomScan *scan = makeNode(CustomScan);
	const Index relid = add_stage_relation(root, names);
	ListCell   *lc;

	foreach(lc, path->path.pathtarget->exprs)
	{
		const Node *expr = static_cast<const Node *>(lfirst(lc));
		const int	number = foreach_current_index(lc) + 1;
		Var		   *var = makeVar(relid, number, exprType(expr), exprTypmod(expr), exprCollation(expr), 0);

		scan->custom_scan_tlist =
			lappend(scan->custom_scan_tlist,
					makeTargetEntry((Expr *) var, number, strVal(list_nth(names, number - 1)), false));
	}
	scan->scan.plan.targetlist = static_cast<List *>(copyObjectImpl(scan->custom_scan_tlist));
	return scan;
}

static Plan *
plan_stage(PlannerInfo *root, RelOptInfo *, CustomPath *best_path, List *, List *, List *custom_plans)
{
	CustomScan *scan = scan_of_columns(root, best_path, scan_plan_from_list(best_path->custom_private)->names);

	/* where others have their alternative */
	scan->custom_plans = lcons(nullptr, custom_plans);
	scan->custom_private = best_path->custom_private;
	scan->methods = gpuvm_scan_methods;
	return &scan->scan.plan;
}

/* -- rows that PostgreSQL gives ------------------------------------------------------------------ */

static Plan *
plan_external(PlannerInfo *root, RelOptInfo *, CustomPath *best_path, List *, List *, List *)
{
	CustomScan *scan = scan_of_columns(root, best_path, lsecond_node(List, best_path->custom_private));

	scan->custom_private = list_make1(linitial(best_path->custom_private));
	scan->methods = gpuvm_external_methods;
	return &scan->scan.plan;
}

static const CustomPathMethods external_methods = {
	"PostgreSQL",
	plan_external,
	nullptr,
};

Path *
make_external_path(PlannedStmt *stmt, List *exprs, List *names)
{
	CustomPath *path = makeNode(CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = makeNode(RelOptInfo);
	path->path.pathtarget = target_of(exprs);
	path->path.rows = stmt->planTree->plan_rows;
	path->path.startup_cost = stmt->planTree->startup_cost;
	path->path.total_cost = stmt->planTree->total_cost;
	path->custom_private = list_make2(stmt, names);
	path->methods = &external_methods;
	return &path->path;
}

/* -- what reads them --------------------------------------------------------------------------------- */

/*
 * A row that becomes one of a tablet, and a value of it by its form, in operators as PostgreSQL charges for them when
 * it hashes such rows: two for one that it adds to a group, which takes it 0.35 us (measured; the row with an integer
 * here: 0.08 us).
 */
constexpr double ROW_OPERATORS = 0.2;
constexpr double PLAIN_OPERATORS = 0.1;
constexpr double NUMERIC_OPERATORS = 0.4;
constexpr double CODE_OPERATORS = 0.8;
constexpr double VARIABLE_OPERATORS = 0.2;

/* What the tablets of a child cost that has no rows, in microseconds. */
constexpr double CHILD_US = 100;

uint32
describe_child_column(ImportedTable *table, const ChildColumn &column)
{
	uint32		i = table->ncols++;

	table->attnums[i] = column.attnum;
	table->types[i] = static_cast<uint8>(column.type);
	table->scales[i] = static_cast<int16>(column.scale);
	table->variable[i] = column.form == ValueForm::Variable;
	table->wide[i] = column.wide;
	table->special[i] = false;
	table->greatest[i] = PG_INT64_MAX;
	table->entries[i] = 0;
	return i;
}

static double
row_operators(const ScanTarget *target)
{
	double		operators = ROW_OPERATORS;
	ListCell   *lc;

	foreach(lc, target->columns)
	{
		const ChildColumn column = child_column(lfirst_node(List, lc));

		switch (column.form)
		{
			case ValueForm::Numeric: operators += NUMERIC_OPERATORS; break;
			case ValueForm::Dictionary: operators += CODE_OPERATORS; break;
			case ValueForm::Variable: operators += VARIABLE_OPERATORS; break;
			default: operators += PLAIN_OPERATORS; break;
		}
	}
	return operators;
}

double
children_cost(const ScanShape *shape)
{
	double		cost = 0;

	for (int i = 0; i < shape->ncursors; i++)
	{
		const ScanTarget *target = &shape->cursors[i].target;

		if (target->child == nullptr)
			continue;
		/* its rows stay where they are; what making those costs that several read is no reader's */
		if (is_stage_path(target->child))
			cost += target->shared > 0 ? 0 : target->child->total_cost;
		else
			cost += target->child->total_cost + CHILD_US * cost_of_us() +
				target->child->rows * row_operators(target) * cpu_operator_cost;
	}
	return cost;
}

List *
child_paths(const ScanShape *shape)
{
	List	   *children = NIL;

	for (int i = 0; i < shape->ncursors; i++)
	{
		if (shape->cursors[i].target.child != nullptr && shape->cursors[i].target.shared == 0)
			children = lappend(children, shape->cursors[i].target.child);
	}
	return children;
}

}  // namespace gpuvm
