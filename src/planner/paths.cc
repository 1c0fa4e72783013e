/*
 * paths.cc: Custom Scan paths, each with PostgreSQL's own path as its
 * alternative (design, section 4; rule 20).
 */
#include "pg/pg.h"

extern "C" {
#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/prep.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

#include <algorithm>

#include "compiler/compile.h"
#include "compiler/functions.h"
#include "pg/settings.h"
#include "planner/cost.h"
#include "planner/paths.h"
#include "planner/reasons.h"
#include "planner/scan_plan.h"
#include "store/delta.h"
#include "store/refresher.h"

namespace gpuvm {

static Plan *plan_custom_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist,
							  List *clauses, List *custom_plans);

static const CustomPathMethods path_methods = {
	"GpuVM",
	plan_custom_path,
	nullptr,					/* not for partitionwise use */
};

static void
note(PlannerInfo *root, RelOptInfo *rel, const char *what, const char *reason, const char *hint)
{
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);
	char		node[NAMEDATALEN + 32];

	snprintf(node, sizeof(node), "%s on %s", what, rte->eref->aliasname);
	reasons_add(rte->relid, node, reason, hint);
}

bool
usable_relation(PlannerInfo *root, RelOptInfo *rel, ScanTarget *target)
{
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);
	const char *reason = nullptr;
	const char *hint = nullptr;

	if (rel->rtekind != RTE_RELATION)
		return false;
	if (rte->relkind == RELKIND_PARTITIONED_TABLE)
	{
		/* a partitioned leaf is read with the whole */
		if (rel->reloptkind != RELOPT_BASEREL || !rte->inh)
			return false;
		if (!describe_leaves(root, rel, target, &reason, &hint))
		{
			if (reason != nullptr)
				note(root, rel, "Scan", reason, hint);
			return false;
		}
	}
	else
	{
		if ((rel->reloptkind != RELOPT_BASEREL && rel->reloptkind != RELOPT_OTHER_MEMBER_REL) ||
			(rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW) || rte->inh)
			return false;
		if (!reasons_wanted && !registry_known(rte->relid))
			return false;
		target->table = static_cast<ImportedTable *>(palloc(sizeof(ImportedTable)));
		if (!registry_describe(rte->relid, target->table))
		{
			if (reasons_wanted)
				note(root, rel, "Scan", why_not_in_memory(rte->relid), psprintf("SELECT gpuvm.import('%s');", get_rel_name(rte->relid)));
			return false;
		}
		target->pages = rel->pages;
		target->tuples = rel->tuples;
	}

	if (rte->tablesample != nullptr)
		reason = "TABLESAMPLE is not supported";
	else if (static_cast<int>(rel->relid) == root->parse->resultRelation ||
			 bms_is_member(rel->relid, root->all_result_relids))
		reason = "the statement changes the table";
	else if (get_plan_rowmark(root->rowMarks, rel->relid) != nullptr)
		reason = "the statement locks rows or may recheck them";
	else if (!bms_is_empty(rel->lateral_relids))
		reason = "the scan depends on another relation (LATERAL)";
	else if (rel->reloptkind == RELOPT_OTHER_MEMBER_REL && root->append_rel_array != nullptr &&
			 root->append_rel_array[rel->relid] != nullptr &&
			 planner_rt_fetch(root->append_rel_array[rel->relid]->parent_relid, root)->relid == rte->relid)
		reason = "an inheritance parent's own rows are read by PostgreSQL";
	if (reason != nullptr)
	{
		note(root, rel, "Scan", reason, nullptr);
		return false;
	}
	return true;
}

static Size
path_size(const Path *path)
{
	switch (nodeTag(path))
	{
		case T_Path: return sizeof(Path);
		case T_IndexPath: return sizeof(IndexPath);
		case T_BitmapHeapPath: return sizeof(BitmapHeapPath);
		case T_TidPath: return sizeof(TidPath);
		case T_TidRangePath: return sizeof(TidRangePath);
		case T_AggPath: return sizeof(AggPath);
		case T_GroupPath: return sizeof(GroupPath);
		case T_AppendPath: return sizeof(AppendPath);
		case T_MergeAppendPath: return sizeof(MergeAppendPath);
		case T_ProjectionPath: return sizeof(ProjectionPath);
		case T_SortPath: return sizeof(SortPath);
		case T_GatherPath: return sizeof(GatherPath);
		case T_GatherMergePath: return sizeof(GatherMergePath);
		case T_SubqueryScanPath: return sizeof(SubqueryScanPath);
		default: return 0;
	}
}

/* Another path stands below this one: what that costs more, or less, this one does too. */
static void
adopt_costs(Path *path, const Path *before, const Path *now)
{
	Cost		total = now->total_cost - before->total_cost;
	bool		blocks = IsA(path, SortPath) || (IsA(path, AggPath) && ((AggPath *) path)->aggstrategy != AGG_SORTED);

	path->startup_cost += blocks ? total : now->startup_cost - before->startup_cost;
	path->total_cost += total;
}

static Path *ordinary_path(const Path *path);

/* The same for the paths below an Append: NIL when one of them has none. */
static List *
ordinary_subpaths(Path *append, List *subpaths)
{
	List	   *copies = NIL;
	ListCell   *lc;

	foreach(lc, subpaths)
	{
		Path	   *before = static_cast<Path *>(lfirst(lc));
		Path	   *now = ordinary_path(before);

		if (now == nullptr)
			return NIL;
		adopt_costs(append, before, now);
		copies = lappend(copies, now);
	}
	/* An Append starts with the first of them, the other kind with all. */
	if (IsA(append, AppendPath))
		append->startup_cost = static_cast<Path *>(linitial(copies))->startup_cost;
	return copies;
}

/*
 * A copy of a path, because add_path may free the original (rule 20), without
 * gpuvm's own scans below: each gives way to its alternative. NULL when it is of
 * a kind that cannot stand below a custom scan.
 */
static Path *
ordinary_path(const Path *path)
{
	Size		size = path_size(path);
	Path	   *copy;
	Path	  **subpath = nullptr;
	List	  **subpaths = nullptr;

	if (IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &path_methods)
	{
		copy = ordinary_path(static_cast<Path *>(linitial(((const CustomPath *) path)->custom_paths)));
		if (copy != nullptr)
			copy->pathtarget = path->pathtarget;
		return copy;
	}
	if (size == 0)
		return nullptr;
	copy = static_cast<Path *>(palloc(size));
	memcpy(static_cast<void *>(copy), path, size);
	switch (nodeTag(copy))
	{
		case T_AggPath: subpath = &((AggPath *) copy)->subpath; break;
		case T_GroupPath: subpath = &((GroupPath *) copy)->subpath; break;
		case T_ProjectionPath: subpath = &((ProjectionPath *) copy)->subpath; break;
		case T_SortPath: subpath = &((SortPath *) copy)->subpath; break;
		case T_SubqueryScanPath: subpath = &((SubqueryScanPath *) copy)->subpath; break;
		case T_AppendPath: subpaths = &((AppendPath *) copy)->subpaths; break;
		case T_MergeAppendPath: subpaths = &((MergeAppendPath *) copy)->subpaths; break;
		default: break;			/* parallel paths have none of ours below */
	}
	if (subpath != nullptr)
	{
		const Path *before = *subpath;

		*subpath = ordinary_path(before);
		if (*subpath == nullptr)
			return nullptr;
		adopt_costs(copy, before, *subpath);
	}
	if (subpaths != nullptr && *subpaths != NIL)
	{
		*subpaths = ordinary_subpaths(copy, *subpaths);
		if (*subpaths == NIL)
			return nullptr;
	}
	return copy;
}

/* PostgreSQL's cheapest path for the relation, of those that can stand below a custom scan. */
static Path *
alternative_path(RelOptInfo *rel)
{
	Path	   *best = nullptr;
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		Path	   *path = static_cast<Path *>(lfirst(lc));

		/* MinMaxAggPath rewrites the aggregates of the whole plan in setrefs: not below ours. */
		if (path->param_info != nullptr || IsA(path, CustomPath) || IsA(path, MinMaxAggPath))
			continue;
		path = ordinary_path(path);
		if (path != nullptr && (best == nullptr || path->total_cost < best->total_cost))
			best = path;
	}
	return best;
}

/*
 * The relation's own conditions as bare clauses, in the order in which
 * PostgreSQL would evaluate them (order_qual_clauses): by security level (rule
 * 22), then the cheap ones first, so that a cheap condition guards a dear one
 * that may raise in both. Conditions without a column gate a scan from a node of
 * their own above it; an aggregation has no such node, and takes them first.
 */
static List *
ordered_quals(PlannerInfo *root, RelOptInfo *rel, bool with_pseudoconstant)
{
	struct Item
	{
		Expr	   *clause;
		int			level;
		Cost		cost;
	};
	Item	   *items = static_cast<Item *>(palloc(sizeof(Item) * Max(list_length(rel->baserestrictinfo), 1)));
	int			n = 0;
	List	   *quals = NIL;
	ListCell   *lc;

	foreach(lc, rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		QualCost	cost;

		if (rinfo->pseudoconstant && !with_pseudoconstant)
			continue;
		cost_qual_eval_node(&cost, reinterpret_cast<Node *>(rinfo), root);
		items[n++] = Item{rinfo->clause, rinfo->pseudoconstant ? -1 : static_cast<int>(rinfo->security_level), cost.per_tuple};
	}
	std::stable_sort(items, items + n, [](const Item &a, const Item &b) {
		return a.level != b.level ? a.level < b.level : a.cost < b.cost;
	});
	for (int i = 0; i < n; i++)
		quals = lappend(quals, items[i].clause);
	pfree(items);
	return quals;
}

/* A copy of an expression tree in which the relation has varno 1 and operators know their functions. */
static List *
detached(List *exprs, Index varno)
{
	List	   *copy = static_cast<List *>(copyObjectImpl(exprs));

	if (varno != 1)
		ChangeVarNodes(reinterpret_cast<Node *>(copy), varno, 1, 0);
	fix_opfuncids(reinterpret_cast<Node *>(copy));
	return copy;
}

/* How many columns a program reads. */
static int
count_columns(const Program *program)
{
	Bitmapset  *columns = nullptr;

	for (int i = 0; i < program->nops; i++)
	{
		if (program->ops()[i].opcode == Opcode::Column)
			columns = bms_add_member(columns, program->ops()[i].p2);
	}
	return bms_num_members(columns);
}

/*
 * Blocks that are in no tablet are read from the heap: what has changed since is
 * known when the plan runs. Sets the plan's delta_cost; returns the rows that the
 * program reads.
 */
static double
plan_delta(ScanPlan *plan, const ScanTarget *scan)
{
	double		blocks = Max(scan->pages - scan->table->served_blocks, 0.0);
	double		rows = blocks > 0 ? scan->tuples * blocks / scan->pages : 0;

	plan->delta_cost = cost_of_us() * delta_expected_us(blocks, rows, count_columns(plan->program));
	return scan->table->nrows + rows;
}

/*
 * How much of the relation's rows the query is expected to fetch, where nothing
 * above the scan has to see them all.
 */
static double
fetched_fraction(PlannerInfo *root, RelOptInfo *rel)
{
	const Query *parse = root->parse;

	if (root->tuple_fraction <= 0 || root->query_pathkeys != NIL || bms_membership(root->all_baserels) != BMS_SINGLETON ||
		parse->hasAggs || parse->hasWindowFuncs || parse->hasTargetSRFs || root->hasHavingQual ||
		parse->groupClause != NIL || parse->groupingSets != NIL || parse->distinctClause != NIL)
		return 1;
	return root->tuple_fraction < 1 ? root->tuple_fraction : Min(1, root->tuple_fraction / Max(rel->rows, 1));
}

static CustomPath *
make_path(RelOptInfo *rel, PathTarget *target, Path *alternative, ScanPlan *plan, double rows_in, double rows_out)
{
	CustomPath *path = makeNode(CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = target;
	path->path.rows = rows_out;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->custom_paths = list_make1(alternative);
	path->custom_private = scan_plan_to_list(plan);
	path->methods = &path_methods;
	cost_program(&path->path, plan->program, rows_in, rows_out);
	path->path.startup_cost += plan->delta_cost;
	path->path.total_cost += plan->delta_cost;
	/* PostgreSQL charges for evaluating the target wherever it is evaluated: so do we. */
	path->path.startup_cost += target->cost.startup;
	path->path.total_cost += target->cost.startup + target->cost.per_tuple * rows_out;
	return path;
}

/* gpuvm.force leaves no other path to choose; PostgreSQL's is still there as the alternative. */
static void
offer(RelOptInfo *rel, CustomPath *path)
{
	if (setting_force)
	{
		rel->pathlist = list_make1(path);
		rel->partial_pathlist = NIL;
	}
	else
		add_path(rel, &path->path);
}

bool
add_rows_path(PlannerInfo *root, RelOptInfo *rel, const ScanTarget *target)
{
	CompileInput input = {};
	CompiledProgram compiled;
	ScanPlan	plan = {};
	List	   *quals = ordered_quals(root, rel, false);
	List	   *vars;
	Path	   *alternative = alternative_path(rel);
	ListCell   *lc;

	if (alternative == nullptr)
		return false;

	input.varno = rel->relid;
	input.relid = planner_rt_fetch(rel->relid, root)->relid;
	input.table = target->table;

	/* What the custom scan's tuple holds is what the alternative's target list holds. */
	vars = rel->reltarget->exprs;
	foreach(lc, vars)
	{
		Node	   *node = static_cast<Node *>(lfirst(lc));

		if (!IsA(node, Var))
		{
			note(root, rel, "Scan", "an expression must be evaluated at the scan", nullptr);
			return false;
		}
		if (((Var *) node)->varattno <= 0)
		{
			note(root, rel, "Scan", "system columns and whole rows are not in tablets", nullptr);
			return false;
		}
		plan.attnums = lappend_int(plan.attnums, ((Var *) node)->varattno);
	}

	if (!compile_rows(&input, quals, plan.attnums, &compiled))
	{
		note(root, rel, "Scan", input.reason, input.hint);
		return false;
	}
	plan.kind = SCAN_ROWS;
	plan.fraction = fetched_fraction(root, rel);
	plan.relid = input.relid;
	plan.leaves = target->leaves;
	plan.program = compiled.program;
	plan.params = compiled.params;
	plan.quals = detached(quals, rel->relid);
	offer(rel, make_path(rel, rel->reltarget, alternative, &plan, plan_delta(&plan, target), rel->rows));
	return true;
}

/* -- aggregation ------------------------------------------------------------------ */

/* Replaces keys and aggregates by Vars over the raw columns. */
struct RawContext
{
	List	   *keys;
	List	   *aggs;
	bool		failed;			/* a column is left that is neither */
};

static Node *
to_raw(Node *node, void *context)
{
	RawContext *rc = static_cast<RawContext *>(context);
	ListCell   *lc;

	if (node == nullptr)
		return nullptr;
	foreach(lc, rc->keys)
	{
		if (equal(lfirst(lc), node))
			return (Node *) makeVar(1, foreach_current_index(lc) + 1, exprType(node), exprTypmod(node),
									exprCollation(node), 0);
	}
	if (IsA(node, Aggref))
	{
		foreach(lc, rc->aggs)
		{
			if (equal(lfirst(lc), node))
				return (Node *) makeVar(1, list_length(rc->keys) + foreach_current_index(lc) + 1, exprType(node),
										exprTypmod(node), exprCollation(node), 0);
		}
		rc->failed = true;
		return node;
	}
	if (IsA(node, Var) || IsA(node, PlaceHolderVar) || IsA(node, SubPlan) || IsA(node, AlternativeSubPlan) ||
		IsA(node, GroupingFunc))
	{
		rc->failed = true;
		return node;
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(to_raw), context);
}

static List *
distinct_aggrefs(List *exprs)
{
	List	   *found = pull_var_clause(reinterpret_cast<Node *>(exprs),
										PVC_INCLUDE_AGGREGATES | PVC_INCLUDE_WINDOWFUNCS | PVC_INCLUDE_PLACEHOLDERS);
	List	   *aggs = NIL;
	ListCell   *lc;

	foreach(lc, found)
	{
		Node	   *node = static_cast<Node *>(lfirst(lc));

		if (IsA(node, Aggref))
			aggs = list_append_unique(aggs, node);
	}
	return aggs;
}

static int
add_vm_aggregate(VmAggregate *list, int *n, const VmAggregate &agg)
{
	for (int i = 0; i < *n; i++)
	{
		if (list[i].fn == agg.fn && equal(list[i].arg, agg.arg) && equal(list[i].filter, agg.filter))
			return i;
	}
	if (*n < PROGRAM_MAX_COLUMNS)
		list[*n] = agg;
	return (*n)++;
}

void
add_groups_path(PlannerInfo *root, RelOptInfo *rel, const ScanTarget *scan, RelOptInfo *grouped_rel,
				GroupPathExtraData *extra)
{
	Query	   *parse = root->parse;
	PathTarget *target = grouped_rel->reltarget;
	CompileInput input = {};
	CompiledProgram compiled;
	ScanPlan	plan = {};
	VmAggregate *aggs = static_cast<VmAggregate *>(palloc(sizeof(VmAggregate) * PROGRAM_MAX_COLUMNS));
	int			naggs = 0;
	List	   *keys = NIL;
	List	   *having = (List *) extra->havingQual;
	List	   *outputs = list_concat_copy(target->exprs, having);
	List	   *quals = ordered_quals(root, rel, true);
	RawContext	raw = {};
	Path	   *alternative = alternative_path(grouped_rel);
	double		groups;
	ListCell   *lc;

	if (parse->groupingSets != NIL)
	{
		note(root, rel, "Aggregate", "grouping sets are not supported", nullptr);
		return;
	}
	if (alternative == nullptr)
		return;

	input.varno = rel->relid;
	input.relid = planner_rt_fetch(rel->relid, root)->relid;
	input.table = scan->table;

	foreach(lc, parse->groupClause)
	{
		SortGroupClause *sgc = lfirst_node(SortGroupClause, lc);
		Node	   *key = get_sortgroupclause_expr(sgc, root->processed_tlist);
		const FnEntry *fn = lookup_function(get_opcode(sgc->eqop));

		if (fn == nullptr || fn->kind != FnKind::Compare || fn->opcode != Opcode::Eq || fn->operand != vm_type(exprType(key)))
		{
			note(root, rel, "Aggregate", "the type of a group key is not supported", nullptr);
			return;
		}
		keys = lappend(keys, key);
	}

	raw.keys = keys;
	raw.aggs = distinct_aggrefs(outputs);
	foreach(lc, raw.aggs)
	{
		Aggref	   *agg = lfirst_node(Aggref, lc);
		AggregatePlan ap;
		VmAggregate vm;
		int			first;
		int			count = -1;

		if (!plan_aggregate(agg, &input, &ap))
		{
			note(root, rel, "Aggregate", input.reason, input.hint);
			return;
		}
		vm.fn = ap.first;
		vm.arg = agg->args == NIL ? nullptr : static_cast<TargetEntry *>(linitial(agg->args))->expr;
		vm.filter = agg->aggfilter;
		first = add_vm_aggregate(aggs, &naggs, vm);
		if (ap.needs_count)
		{
			vm.fn = AggFn::Count;
			count = add_vm_aggregate(aggs, &naggs, vm);
		}
		plan.finals = lappend(plan.finals, list_make3_int(static_cast<int>(ap.kind), first, count));
	}
	if (naggs + list_length(keys) > PROGRAM_MAX_COLUMNS)
	{
		note(root, rel, "Aggregate", "the query has too many group keys and aggregates", nullptr);
		return;
	}

	plan.exprs = (List *) to_raw((Node *) target->exprs, &raw);
	plan.having = (List *) to_raw((Node *) having, &raw);
	if (raw.failed)
	{
		note(root, rel, "Aggregate", "the output needs a column that is neither grouped nor aggregated", nullptr);
		return;
	}
	if (!compile_groups(&input, quals, keys, aggs, naggs, &compiled))
	{
		note(root, rel, "Aggregate", input.reason, input.hint);
		return;
	}

	foreach(lc, list_concat_copy(raw.keys, raw.aggs))
	{
		Node	   *node = static_cast<Node *>(lfirst(lc));

		plan.raw_types = lappend_oid(plan.raw_types, exprType(node));
		plan.raw_typmods = lappend_int(plan.raw_typmods, exprTypmod(node));
		plan.raw_collations = lappend_oid(plan.raw_collations, exprCollation(node));
	}
	plan.kind = SCAN_GROUPS;
	plan.fraction = 1;
	plan.relid = input.relid;
	plan.leaves = scan->leaves;
	plan.program = compiled.program;
	plan.params = compiled.params;
	plan.quals = detached(quals, rel->relid);
	plan.keys = detached(keys, rel->relid);
	plan.exprs = detached(plan.exprs, 1);
	plan.having = detached(plan.having, 1);
	groups = alternative->rows;
	offer(grouped_rel, make_path(grouped_rel, target, alternative, &plan, plan_delta(&plan, scan), groups));
}

/* -- the number of groups ---------------------------------------------------------------- */

/* Our path among those of a subquery, if it aggregates and hands out every group. */
static CustomPath *
groups_path_of(RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, fetch_upper_rel(rel->subroot, UPPERREL_FINAL, nullptr)->pathlist)
	{
		CustomPath *path = static_cast<CustomPath *>(lfirst(lc));

		if (!IsA(path, CustomPath) || path->methods != &path_methods)
			continue;

		ScanPlan   *plan = scan_plan_from_list(path->custom_private);

		if (plan->kind == SCAN_GROUPS && plan->keys != NIL && plan->having == NIL &&
			!contain_volatile_functions(reinterpret_cast<Node *>(path->path.pathtarget->exprs)))
			return path;
	}
	return nullptr;
}

static double
imported_rows(const ScanPlan *plan)
{
	ImportedTable *table = static_cast<ImportedTable *>(palloc(sizeof(ImportedTable)));
	double		rows = 0;
	ListCell   *lc;

	foreach(lc, plan->leaves != NIL ? plan->leaves : list_make1_oid(plan->relid))
	{
		if (registry_describe(lfirst_oid(lc), table))
			rows += table->nrows;
	}
	pfree(table);
	return rows;
}

static bool
is_count_star(const Aggref *agg)
{
	return agg->aggfnoid == F_COUNT_ && agg->agglevelsup == 0 && agg->aggfilter == nullptr && agg->aggdistinct == NIL &&
		agg->aggsplit == AGGSPLIT_SIMPLE;
}

void
add_group_count_path(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *grouped_rel, GroupPathExtraData *extra)
{
	Query	   *parse = root->parse;
	PathTarget *target = grouped_rel->reltarget;
	List	   *having = (List *) extra->havingQual;
	RawContext	raw = {};
	CustomPath *counted;
	Path	   *alternative;
	ScanPlan   *plan;

	if (parse->groupClause != NIL || parse->groupingSets != NIL || rel->baserestrictinfo != NIL ||
		!bms_is_empty(rel->lateral_relids) || rel->subroot == nullptr || rel->subroot->init_plans != NIL)
		return;
	raw.aggs = distinct_aggrefs(list_concat_copy(target->exprs, having));
	if (list_length(raw.aggs) != 1 || !is_count_star(linitial_node(Aggref, raw.aggs)))
		return;
	counted = groups_path_of(rel);
	alternative = alternative_path(grouped_rel);
	if (counted == nullptr || alternative == nullptr)
		return;

	plan = scan_plan_from_list(counted->custom_private);
	plan->kind = SCAN_GROUP_COUNT;
	plan->finals = NIL;
	plan->exprs = (List *) to_raw((Node *) target->exprs, &raw);
	plan->having = (List *) to_raw((Node *) having, &raw);
	if (raw.failed)
		return;
	plan->exprs = detached(plan->exprs, 1);
	plan->having = detached(plan->having, 1);
	plan->raw_types = list_make1_oid(INT8OID);
	plan->raw_typmods = list_make1_int(-1);
	plan->raw_collations = list_make1_oid(InvalidOid);

	offer(grouped_rel, make_path(grouped_rel, target, alternative, plan, imported_rows(plan), 1));
}

/* -- from path to plan ----------------------------------------------------------------- */

static Plan *
plan_custom_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist, List *clauses, List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);
	ScanPlan   *plan = scan_plan_from_list(best_path->custom_private);
	Plan	   *alternative = static_cast<Plan *>(linitial(custom_plans));

	scan->scan.plan.targetlist = tlist;
	/* The program has evaluated every clause, and so has the alternative. */
	scan->scan.plan.qual = NIL;
	scan->scan.scanrelid = plan->kind == SCAN_ROWS ? rel->relid : 0;
	scan->flags = best_path->flags;
	scan->custom_plans = custom_plans;
	scan->custom_private = best_path->custom_private;
	scan->custom_scan_tlist = static_cast<List *>(copyObjectImpl(alternative->targetlist));
	scan->methods = gpuvm_scan_methods;
	return &scan->scan.plan;
}

}  // namespace gpuvm
