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

void
note_reason(PlannerInfo *root, RelOptInfo *rel, const char *what, const char *reason, const char *hint)
{
	char		node[NAMEDATALEN + 32];
	int			len = snprintf(node, sizeof(node), "%s on", what);
	const char *separator = " ";
	Relids		relids = rel->relid > 0 ? rel->relids : bms_intersect(rel->relids, root->all_baserels);
	int			relid = -1;

	while ((relid = bms_next_member(relids, relid)) >= 0 && len < static_cast<int>(sizeof(node)))
	{
		len += snprintf(node + len, sizeof(node) - len, "%s%s", separator, planner_rt_fetch(relid, root)->eref->aliasname);
		separator = ", ";
	}
	reasons_add(rel->relid > 0 ? planner_rt_fetch(rel->relid, root)->relid : InvalidOid, node, reason, hint);
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
				note_reason(root, rel, "Scan", reason, hint);
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
				note_reason(root, rel, "Scan", why_not_in_memory(rte->relid), psprintf("SELECT gpuvm.import('%s');", get_rel_name(rte->relid)));
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
		note_reason(root, rel, "Scan", reason, nullptr);
		return false;
	}
	return true;
}

/*
 * Conditions as bare clauses, in the order in which
 * PostgreSQL would evaluate them (order_qual_clauses): by security level (rule
 * 22), then the cheap ones first, so that a cheap condition guards a dear one
 * that may raise in both. Conditions without a column gate a scan from a node of
 * their own above it; joins and aggregations have no such node, and take them first.
 */
List *
ordered_quals(PlannerInfo *root, List *restrictinfos, bool with_pseudoconstant)
{
	struct Item
	{
		Expr	   *clause;
		int			level;
		Cost		cost;
	};
	Item	   *items = static_cast<Item *>(palloc(sizeof(Item) * Max(list_length(restrictinfos), 1)));
	int			n = 0;
	List	   *quals = NIL;
	ListCell   *lc;

	foreach(lc, restrictinfos)
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
	{
		Expr	   *clause = items[i].clause;

		/* over one dictionary column they are one, so that the second is evaluated only for entries that pass the first */
		while (i + 1 < n && items[i + 1].level == items[i].level && is_map_expr(clause) && is_map_expr(items[i + 1].clause))
		{
			Expr	   *both = make_andclause(list_make2(clause, items[i + 1].clause));

			if (!is_map_expr(both))
				break;
			clause = both;
			i++;
		}
		quals = lappend(quals, clause);
	}
	pfree(items);
	return quals;
}

static Node *
renumber(Node *node, void *context)
{
	const ScanShape *shape = static_cast<const ScanShape *>(context);

	if (node == nullptr)
		return nullptr;
	if (IsA(node, Var))
	{
		Var		   *var = static_cast<Var *>(copyObjectImpl(node));

		for (int i = 0; i < shape->ncursors; i++)
		{
			/* EXPLAIN goes by the names of the query's own text */
			if (static_cast<int>(shape->cursors[i].relid) == ((Var *) node)->varno)
				var->varno = var->varnosyn = i + 1;
		}
		var->varattnosyn = var->varattno;
		return (Node *) var;
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(renumber), context);
}

/* A copy of expression trees in which relations have their cursors' numbers, from 1, and operators know their functions. */
static List *
detached(List *exprs, const ScanShape *shape)
{
	List	   *copy = (List *) renumber((Node *) exprs, const_cast<ScanShape *>(shape));

	fix_opfuncids(reinterpret_cast<Node *>(copy));
	return copy;
}

/* How many columns a program reads of a cursor. */
static int
count_columns(const Program *program, int cursor)
{
	Bitmapset  *columns = nullptr;

	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		if (reads_column(op) && op.p3 == cursor)
			columns = bms_add_member(columns, op.p2);
	}
	return bms_num_members(columns);
}

ProgramRows
expected_rows(const ScanShape *shape)
{
	ProgramRows rows = {};

	for (int i = 0; i < shape->ncursors; i++)
	{
		const ShapeCursor *c = &shape->cursors[i];

		rows.scanned[i] = Max(c->target.tuples, static_cast<double>(c->target.table->nrows));
		rows.filtered[i] = c->rows;
		rows.pairs[i] = c->counted ? 0 : c->pairs;
		rows.joined[i] = !c->counted ? c->joined : i == 1 ? rows.filtered[0] : rows.joined[i - 1];
	}
	return rows;
}

/*
 * Blocks that are in no tablet are read from the heap: what has changed since is
 * known when the plan runs. Sets the plan's delta_cost and pairs, and the rows that the
 * program reads.
 */
static void
plan_delta(ScanPlan *plan, const ScanShape *shape, ProgramRows *rows)
{
	*rows = expected_rows(shape);
	for (int i = 0; i < shape->ncursors; i++)
	{
		const ScanTarget *scan = &shape->cursors[i].target;
		double		blocks = Max(scan->pages - scan->table->served_blocks, 0.0);
		double		more = blocks > 0 ? scan->tuples * blocks / scan->pages : 0;

		plan->delta_cost += cost_of_us() * delta_expected_us(blocks, more, count_columns(plan->program, i));
		rows->scanned[i] = scan->table->nrows + more;
		plan->pairs += shape->cursors[i].pairs;
	}
}

CompileCursor
compile_cursor(PlannerInfo *root, const ShapeCursor *from)
{
	return CompileCursor{from->relid, planner_rt_fetch(from->relid, root)->relid, from->target.table,
		from->quals, from->kind, from->keys, from->range, from->conditions, from->filters};
}

static void
fill_input(PlannerInfo *root, const ScanShape *shape, CompileInput *input)
{
	input->ncursors = shape->ncursors;
	for (int i = 0; i < shape->ncursors; i++)
		input->cursors[i] = compile_cursor(root, &shape->cursors[i]);
}

/* What the plan says of its cursors. */
static void
fill_cursors(PlannerInfo *root, const ScanShape *shape, ScanPlan *plan)
{
	plan->ncursors = shape->ncursors;
	for (int i = 0; i < shape->ncursors; i++)
	{
		const ShapeCursor *from = &shape->cursors[i];
		RangeTblEntry *rte = planner_rt_fetch(from->relid, root);

		plan->cursors[i] = PlanCursor{rte->relid, from->target.leaves, detached(from->quals, shape), rte->eref->aliasname,
			from->kind, detached(from->keys, shape), detached(from->range, shape), detached(from->conditions, shape), detached(from->filters, shape)};
	}
}

/* Is the relation, or join, all that the query reads? Children of a table that is, too. */
static bool
is_all_of_query(PlannerInfo *root, RelOptInfo *rel)
{
	return bms_membership(root->all_baserels) == BMS_SINGLETON || bms_is_subset(root->all_baserels, rel->relids);
}

/*
 * LIMIT, where it stands directly above the rows and is a constant: what the
 * planner has in limit_tuples may be an estimate.
 */
static double
known_limit(PlannerInfo *root, RelOptInfo *rel)
{
	const Query *parse = root->parse;

	if (root->limit_tuples <= 0 || root->query_pathkeys != NIL || !is_all_of_query(root, rel) || parse->rowMarks != NIL ||
		parse->limitOption != LIMIT_OPTION_COUNT || !IsA(parse->limitCount, Const) ||
		(parse->limitOffset != nullptr && !IsA(parse->limitOffset, Const)))
		return 0;
	return Min(root->limit_tuples, 1e18);
}

/*
 * How much of the relation's rows the query is expected to fetch, where nothing
 * above the scan has to see them all.
 */
static double
fetched_fraction(PlannerInfo *root, RelOptInfo *rel)
{
	const Query *parse = root->parse;

	if (root->tuple_fraction <= 0 || root->query_pathkeys != NIL || !is_all_of_query(root, rel) ||
		parse->hasAggs || parse->hasWindowFuncs || parse->hasTargetSRFs || root->hasHavingQual ||
		parse->groupClause != NIL || parse->groupingSets != NIL || parse->distinctClause != NIL)
		return 1;
	return root->tuple_fraction < 1 ? root->tuple_fraction : Min(1, root->tuple_fraction / Max(rel->rows, 1));
}

/* Costs the plan's maps, and lets them forget the query's numbers for relations. */
static double
detach_maps(PlannerInfo *root, const ScanShape *shape, ScanPlan *plan)
{
	double		cost = cost_maps(root, shape, plan);

	for (int i = 0; i < plan->nmaps; i++)
		plan->maps[i].expr = static_cast<Expr *>(linitial(detached(list_make1(plan->maps[i].expr), shape)));
	return cost;
}

/* map_cost: of what is made before the program starts. */
static CustomPath *
make_path(RelOptInfo *rel, PathTarget *target, Path *alternative, ScanPlan *plan, const ProgramRows &rows, double rows_out, double map_cost)
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
	cost_program(&path->path, plan->program, rows, rows_out);
	path->path.startup_cost += plan->delta_cost + map_cost;
	path->path.total_cost += plan->delta_cost + map_cost;
	/* PostgreSQL charges for evaluating the target wherever it is evaluated: so do we. */
	path->path.startup_cost += target->cost.startup;
	path->path.total_cost += target->cost.startup + target->cost.per_tuple * rows_out;
	return path;
}

bool
is_gpuvm_path(const Path *path)
{
	return IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &path_methods;
}

/* gpuvm.force leaves no other path to choose; PostgreSQL's is still there as the alternative. */
void
offer_path(RelOptInfo *rel, CustomPath *path)
{
	if (setting_force)
	{
		rel->pathlist = list_make1(path);
		rel->partial_pathlist = NIL;
	}
	else
		add_path(rel, &path->path);
}

CustomPath *
make_rows_path(PlannerInfo *root, RelOptInfo *rel, const ScanShape *shape, Path *alternative)
{
	CompileInput input = {};
	CompiledProgram compiled;
	ScanPlan	plan = {};
	ProgramRows rows = {};
	const char *what = shape->ncursors == 1 ? "Scan" : "Join";
	const char *reason = nullptr;
	double		map_cost;
	ListCell   *lc;

	/* What the custom scan's tuple holds is what the alternative's target list holds. */
	foreach(lc, rel->reltarget->exprs)
	{
		Node	   *node = static_cast<Node *>(lfirst(lc));

		if (!IsA(node, Var))
		{
			note_reason(root, rel, what, shape->ncursors == 1 ? "an expression must be evaluated at the scan"
						: "an expression must be evaluated below the join", nullptr);
			return nullptr;
		}
		if (((Var *) node)->varattno <= 0)
		{
			note_reason(root, rel, what, "system columns and whole rows are not in tablets", nullptr);
			return nullptr;
		}
		if (shape->ncursors == 1)
			plan.attnums = lappend_int(plan.attnums, ((Var *) node)->varattno);
	}

	fill_input(root, shape, &input);
	if (!compile_rows(&input, rel->reltarget->exprs, &compiled))
	{
		note_reason(root, rel, what, input.reason, input.hint);
		return nullptr;
	}
	plan.kind = SCAN_ROWS;
	plan.limit = known_limit(root, rel);
	plan.fraction = fetched_fraction(root, rel);
	if (!plan_compiled(root, shape, compiled, &plan, &reason))
	{
		note_reason(root, rel, what, reason, nullptr);
		return nullptr;
	}
	fill_cursors(root, shape, &plan);
	plan_delta(&plan, shape, &rows);
	map_cost = detach_maps(root, shape, &plan);
	return make_path(rel, rel->reltarget, alternative, &plan, rows, rel->rows, map_cost);
}

void
shape_of_relation(PlannerInfo *root, RelOptInfo *rel, const ScanTarget *target, bool with_pseudoconstant, ScanShape *shape)
{
	shape->ncursors = 1;
	shape->cursors[0] = ShapeCursor{rel->relid, *target, ordered_quals(root, rel->baserestrictinfo, with_pseudoconstant),
		rel->rows, JoinKind::Inner, NIL, NIL, NIL, NIL, 0, 0, false};
}

bool
add_rows_path(PlannerInfo *root, RelOptInfo *rel, const ScanTarget *target)
{
	Path	   *alternative = alternative_path(rel);
	ScanShape	shape = {};
	CustomPath *path;

	if (alternative == nullptr)
		return false;
	shape_of_relation(root, rel, target, false, &shape);
	path = make_rows_path(root, rel, &shape, alternative);
	if (path != nullptr)
		offer_path(rel, path);
	return path != nullptr;
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
		if (same_vm_aggregate(list[i], agg))
			return i;
	}
	if (*n < PROGRAM_MAX_COLUMNS)
		list[*n] = agg;
	return (*n)++;
}

void
add_groups_path(PlannerInfo *root, RelOptInfo *rel, const ScanShape *shape, RelOptInfo *grouped_rel, PathTarget *target, List *clause, List *having)
{
	Query	   *parse = root->parse;
	CompileInput input = {};
	CompiledProgram compiled;
	ScanPlan	plan = {};
	VmAggregate *aggs = static_cast<VmAggregate *>(palloc(sizeof(VmAggregate) * PROGRAM_MAX_COLUMNS));
	int			naggs = 0;
	List	   *keys = NIL;
	List	   *outputs = list_concat_copy(target->exprs, having);
	RawContext	raw = {};
	Path	   *alternative = alternative_path(grouped_rel);
	ProgramRows rows = {};
	const char *reason = nullptr;
	double		map_cost;
	ListCell   *lc;

	if (parse->groupingSets != NIL)
	{
		note_reason(root, rel, "Aggregate", "grouping sets are not supported", nullptr);
		return;
	}
	if (alternative == nullptr)
		return;

	fill_input(root, shape, &input);
	foreach(lc, clause)
	{
		SortGroupClause *sgc = lfirst_node(SortGroupClause, lc);
		Node	   *key = get_sortgroupclause_expr(sgc, root->processed_tlist);
		const FnEntry *fn = lookup_function(get_opcode(sgc->eqop));

		if ((fn == nullptr || fn->kind != FnKind::Compare || fn->opcode != Opcode::Eq || fn->operand != vm_type(exprType(key))) &&
			!is_dictionary_key(key, sgc->eqop, &reason))
		{
			note_reason(root, rel, "Aggregate", reason, nullptr);
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
		List	   *final;

		if (!plan_aggregate(agg, &input, &ap))
		{
			note_reason(root, rel, "Aggregate", input.reason, input.hint);
			return;
		}
		final = list_make2_int(static_cast<int>(ap.kind), static_cast<int>(ap.extra));
		for (int i = 0; i < ap.nparts; i++)
			final = lappend_int(final, list_length(keys) + add_vm_aggregate(aggs, &naggs, ap.parts[i]));
		plan.finals = lappend(plan.finals, final);
	}
	if (naggs + list_length(keys) > PROGRAM_MAX_COLUMNS)
	{
		note_reason(root, rel, "Aggregate", "the query has too many group keys and aggregates", nullptr);
		return;
	}

	plan.exprs = (List *) to_raw((Node *) target->exprs, &raw);
	plan.having = (List *) to_raw((Node *) having, &raw);
	if (raw.failed)
	{
		note_reason(root, rel, "Aggregate", "the output needs a column that is neither grouped nor aggregated", nullptr);
		return;
	}
	if (!compile_groups(&input, keys, aggs, naggs, &compiled))
	{
		note_reason(root, rel, "Aggregate", input.reason, input.hint);
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
	if (!plan_compiled(root, shape, compiled, &plan, &reason))
	{
		note_reason(root, rel, "Aggregate", reason, nullptr);
		return;
	}
	fill_cursors(root, shape, &plan);
	plan.keys = detached(keys, shape);
	fix_opfuncids((Node *) plan.exprs);
	fix_opfuncids((Node *) plan.having);
	plan_delta(&plan, shape, &rows);
	map_cost = detach_maps(root, shape, &plan);
	offer_path(grouped_rel, make_path(grouped_rel, target, alternative, &plan, rows, alternative->rows, map_cost));
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

		if (!is_gpuvm_path(&path->path))
			continue;

		ScanPlan   *plan = scan_plan_from_list(path->custom_private);

		if (plan->kind == SCAN_GROUPS && plan->keys != NIL && plan->having == NIL &&
			!contain_volatile_functions(reinterpret_cast<Node *>(path->path.pathtarget->exprs)))
			return path;
	}
	return nullptr;
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
	CustomPath *path;
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
	plan->noutputs = 1;
	plan->outputs[0] = OutputForm{OutputKind::Plain, -1, -1, 0, -1};
	plan->exprs = (List *) to_raw((Node *) target->exprs, &raw);
	plan->having = (List *) to_raw((Node *) having, &raw);
	if (raw.failed)
		return;
	fix_opfuncids((Node *) plan->exprs);
	fix_opfuncids((Node *) plan->having);
	plan->raw_types = list_make1_oid(INT8OID);
	plan->raw_typmods = list_make1_int(-1);
	plan->raw_collations = list_make1_oid(InvalidOid);

	path = make_path(grouped_rel, target, alternative, plan, ProgramRows{}, 1, 0);
	/* it does what that one does, and hands out nothing */
	path->path.startup_cost = path->path.total_cost = counted->path.startup_cost;
	offer_path(grouped_rel, path);
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
	/* 0 for a join: its rows are of no relation */
	scan->scan.scanrelid = plan->kind == SCAN_ROWS ? rel->relid : 0;
	scan->flags = best_path->flags;
	scan->custom_plans = custom_plans;
	scan->custom_private = best_path->custom_private;
	scan->custom_scan_tlist = static_cast<List *>(copyObjectImpl(alternative->targetlist));
	scan->methods = gpuvm_scan_methods;
	return &scan->scan.plan;
}

}  // namespace gpuvm
