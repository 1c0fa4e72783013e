/*
 * order.cc: paths whose rows come out sorted (engine/abi.h, JobOrderKey).
 *
 * Each is a path that there is already, of rows or of groups, with an order: where every sort key is a
 * result column of the path's last program. It reports the keys, so that PostgreSQL puts no Sort above
 * it; its alternative is PostgreSQL's cheapest path with the same keys. Where LIMIT stands directly above, only
 * so many rows come out.
 */
#include "pg/pg.h"

extern "C" {
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
}

#include "compiler/compile.h"
#include "pg/settings.h"
#include "pg/shmem.h"
#include "pg/engine_client.h"
#include "pg/startup.h"
#include "planner/hidden.h"
#include "planner/order.h"
#include "planner/order_keys.h"
#include "planner/reasons.h"
#include "planner/scan_plan.h"
#include "store/registry.h"
#include "vm/sort_key.h"

namespace gpuvm {

/* add_path's. */
constexpr double FUZZ = 1.01;

/* -- what it costs -------------------------------------------------------------------------- */

/* How many values the longest dictionary of the column has. */
static double
count_entries(const PlanCursor *cursor, AttrNumber attnum)
{
	List	   *relids = cursor->leaves != NIL ? cursor->leaves : list_make1_oid(cursor->relid);
	uint32		most = 0;
	ListCell   *lc;

	foreach(lc, relids)
	{
		ImportedTable table;
		const int	column = describe_for_plan(lfirst_oid(lc), cursor->relid, &table) ? imported_column(&table, attnum) : -1;

		if (column >= 0)
			most = Max(most, table.entries[column]);
	}
	return most;
}

/* The maps that the order alone needs: a sort of their entries, if the session does not have it. Each is of one dictionary. */
static double
cost_order_maps(const ScanPlan *plan, int before)
{
	double		cost = 0;

	for (int i = before; i < plan->nmaps; i++)
	{
		const PlanMap *map = &plan->maps[i];
		const PlanMap *of = map->kind == MapKind::Order && map->from.map >= 0 ? &plan->maps[map->from.map] : nullptr;
		int			cursor = of != nullptr ? of->cursor : map->kind == MapKind::Order ? map->from.cursor : map->cursor;
		AttrNumber	attnum = of != nullptr ? of->attnum : map->kind == MapKind::Order ? map->from.attnum : map->attnum;
		double		entries = count_entries(&plan->cursors[cursor], attnum);

		if (map->kind == MapKind::Rank && map_cached != nullptr && map_cached(plan->cursors[cursor].relid, map))
			cost += cost_of_us() * entries * MAP_ENTRY_US;
		else
			cost += cost_of_entries(entries) + cost_of_order(entries, map->collation, map->kind == MapKind::Rank);
	}
	return cost;
}

static bool
sorts_texts(const ScanPlan *plan)
{
	for (int i = 0; i < plan->norder; i++)
	{
		if (plan->order[i].flags & ORDER_TEXT)
			return true;
	}
	return false;
}

/* -- the path ------------------------------------------------------------------------------- */

/* PostgreSQL's cheapest path with these keys, of those that can stand below a custom scan. */
static Path *
sorted_alternative(const Sorting *s)
{
	Path	   *any = static_cast<Path *>(linitial(s->from->custom_paths));
	Path	   *sorted = alternative_path(s->rel, s->pathkeys);

	if (!pathkeys_contained_in(s->pathkeys, any->pathkeys))
		any = &create_sort_path(s->root, s->rel, any, s->pathkeys, s->plan->limit > 0 ? s->plan->limit : -1)->path;
	return sorted != nullptr && sorted->total_cost <= any->total_cost ? sorted : any;
}

/* The last path that was offered: the planner may have found one that it likes better, and freed it, that is not sorted. */
static const RelOptInfo *offered_rel;
static CustomPath offered;

void
remember_path(const RelOptInfo *rel, const CustomPath *path)
{
	offered_rel = rel;
	if (path != nullptr)
		offered = *path;
}

/* Our path of the relation that is not sorted. */
static const CustomPath *
unsorted_path(const RelOptInfo *rel)
{
	ListCell   *lc;

	if (offered_rel == rel)
		return &offered;
	foreach(lc, rel->pathlist)
	{
		const Path *path = static_cast<const Path *>(lfirst(lc));

		if (is_gpuvm_path(path) && path->param_info == nullptr && path->pathkeys == NIL)
			return (const CustomPath *) path;
	}
	return nullptr;
}

/* Of two paths of one order that differ by little, add_path keeps the one that it had. Where both cost about as much at first, the whole cost is to decide. */
static void
prefer(const RelOptInfo *rel, Path *path)
{
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		const Path *other = static_cast<const Path *>(lfirst(lc));

		if (other->param_info == nullptr && path->startup_cost <= other->startup_cost * FUZZ && path->total_cost < other->total_cost &&
			compare_pathkeys(path->pathkeys, other->pathkeys) == PATHKEYS_EQUAL)
			path->startup_cost = Min(path->startup_cost, other->startup_cost);
	}
}

/* Groups without keys are one row, or none: in any order. */
static bool
has_one_row(const ScanPlan *plan)
{
	if (plan->kind != SCAN_GROUPS)
		return false;
	for (int i = 0; i < plan->nparts; i++)
	{
		if (plan->parts[i].key_columns != NIL || plan->parts[i].set != plan->parts[0].set)
			return false;
	}
	return true;
}

/* The path with the order; `limit`: of LIMIT directly above, or 0. NULL and a reason where that is not possible. */
static CustomPath *
sort_path(Sorting *s, double limit)
{
	ScanPlan   *plan = s->plan = scan_plan_from_list(s->from->custom_private);
	int			nmaps = plan->nmaps;
	const Path *from = &s->from->path;
	double		rows = from->rows;
	double		handing = HAND_OUT_US * cost_of_us() + from->pathtarget->cost.per_tuple;
	CustomPath *path;

	if (has_one_row(plan))
	{
		path = makeNode(CustomPath);
		*path = *s->from;
		path->path.pathkeys = s->pathkeys;
		return path;
	}
	if (!add_keys(s))
		return nullptr;
	plan->limit = limit;
	plan->fraction = 1;
	path = makeNode(CustomPath);
	*path = *s->from;
	path->path.pathkeys = s->pathkeys;
	path->custom_paths = list_copy(s->from->custom_paths);
	linitial(path->custom_paths) = sorted_alternative(s);
	find_loud_subqueries(s->root, plan);
	path->custom_private = scan_plan_to_list(plan);
	path->path.rows = limit > 0 ? Min(rows, limit) : rows;
	path->path.startup_cost = Max(from->total_cost - rows * handing - fetch_cost(s->root, plan, rows, plan->ncursors == 1), from->startup_cost) +
		cost_of_us() * sort_us(rows, limit, sorts_texts(plan)) + cost_order_maps(plan, nmaps);
	path->path.total_cost = path->path.startup_cost + path->path.rows * handing + fetch_cost(s->root, plan, path->path.rows, false);
	if (path->path.total_cost <= from->total_cost * AS_GOOD)
	{
		path->path.startup_cost = Min(path->path.startup_cost, from->total_cost);
		path->path.total_cost = Min(path->path.total_cost, from->total_cost);
	}
	return path;
}

/* Offers it. */
static bool
add_sorted(Sorting *s, double limit, bool whole)
{
	CustomPath *path = sort_path(s, limit);

	if (path == nullptr)
		return false;
	prefer(s->rel, &path->path);
	if (!setting_force)
		add_path(s->rel, &path->path);
	else if (whole)
		s->rel->pathlist = list_make1(path);
	else
		s->rel->pathlist = lappend(s->rel->pathlist, path);
	return true;
}

/* LIMIT and OFFSET where both are constants: so many rows are enough for a node directly below. 0: that is not known. */
static double
limit_of_query(PlannerInfo *root)
{
	const Query *parse = root->parse;
	const Const *count = (const Const *) parse->limitCount;
	const Const *offset = (const Const *) parse->limitOffset;
	double		limit;

	if (count == nullptr || !IsA(count, Const) || count->constisnull || (offset != nullptr && !IsA(offset, Const)) ||
		parse->limitOption != LIMIT_OPTION_COUNT || parse->rowMarks != NIL || parse->hasTargetSRFs)
		return 0;
	limit = Max(static_cast<double>(DatumGetInt64(count->constvalue)), 1);
	if (offset != nullptr && !offset->constisnull)
		limit += Max(static_cast<double>(DatumGetInt64(offset->constvalue)), 0);
	return limit < 1e15 ? limit : 0;
}

static bool
only_rows(PlannerInfo *root)
{
	const Query *parse = root->parse;

	return !parse->hasAggs && !parse->hasWindowFuncs && parse->groupClause == NIL && parse->groupingSets == NIL &&
		parse->distinctClause == NIL && !root->hasHavingQual;
}

/* Is it the ordered scan in which PostgreSQL looks for a min or max? It is asked for where an index has the order. */
static bool
is_for_extreme(PlannerInfo *root)
{
	const TargetEntry *entry = list_length(root->parse->targetList) == 1 ? linitial_node(TargetEntry, root->parse->targetList) : nullptr;

	return root->parent_root != nullptr && root->parent_root->parse->hasAggs && entry != nullptr && entry->resname != nullptr &&
		strcmp(entry->resname, "agg_target") == 0;
}

/*
 * Are rows wanted in order only to be grouped? Hashing does it, too, and by a sort that costs PostgreSQL nothing it would lose its best plan, which
 * is the alternative of ours that group.
 */
static bool
is_for_groups(PlannerInfo *root)
{
	const Query *parse = root->parse;

	return parse->groupClause != NIL || parse->groupingSets != NIL || (parse->distinctClause != NIL && !parse->hasDistinctOn && !parse->hasWindowFuncs);
}

bool
add_sorted_rows(PlannerInfo *root, RelOptInfo *rel)
{
	Sorting		s = {};
	bool		all = is_all_of_query(root, rel);
	bool		rows = all && only_rows(root) && root->query_pathkeys == root->sort_pathkeys;

	s.root = root;
	s.rel = rel;
	s.pathkeys = root->query_pathkeys;
	s.from = s.pathkeys == NIL || is_for_extreme(root) || is_for_groups(root) ? nullptr : unsorted_path(rel);
	if (s.from == nullptr)
		return false;
	if ((rows || (all && root->parse->hasWindowFuncs && !root->parse->hasAggs && root->parse->groupClause == NIL && root->parse->groupingSets == NIL)) && !add_hidden(&s))
		return false;
	if (add_sorted(&s, rows ? limit_of_query(root) : 0, rows))
		return true;
	if (rows)
		note_reason(root, rel, "Sort", s.reason, nullptr);
	return false;
}

/* What is wanted of groups, or of what follows them, first. */
static List *
wanted_of_groups(PlannerInfo *root, bool distinct)
{
	if (!distinct && root->parse->hasWindowFuncs)
		return root->window_pathkeys;
	if (!distinct && list_length(root->distinct_pathkeys) > list_length(root->sort_pathkeys))
		return root->distinct_pathkeys;
	return root->sort_pathkeys;
}

static bool
any_can_raise(const List *exprs)
{
	ListCell   *lc;

	foreach(lc, exprs)
	{
		if (can_raise_by_rows(static_cast<const Expr *>(lfirst(lc))))
			return true;
	}
	return false;
}

/* PostgreSQL asks HAVING of all groups before it sorts them, and meets its errors; where a LIMIT stands above sorted groups of ours, not all come out. */
static bool
may_skip_errors(const PlannerInfo *root, const ScanPlan *plan)
{
	return root->parse->limitCount != nullptr && any_can_raise(plan->having);
}

void
add_sorted_groups(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *grouped_rel, bool distinct)
{
	Sorting		s = {};
	bool		last = distinct || (!root->parse->hasWindowFuncs && root->parse->distinctClause == NIL);
	ScanPlan   *plan;

	s.root = root;
	s.rel = grouped_rel;
	s.pathkeys = wanted_of_groups(root, distinct);
	s.from = s.pathkeys == NIL ? nullptr : unsorted_path(grouped_rel);
	if (s.from == nullptr)
		return;
	plan = scan_plan_from_list(s.from->custom_private);
	if (plan->kind == SCAN_GROUPS && !may_skip_errors(root, plan) && !add_sorted(&s, last && list_length(plan->having) == list_length(plan->filtered) ? limit_of_query(root) : 0, last))
		note_reason(root, rel, "Sort", s.reason, nullptr);
}

bool
gives_first_rows(const PlannerInfo *root)
{
	return root->sort_pathkeys != NIL && (root->parse->limitCount != nullptr || root->tuple_fraction > 0);
}

CustomPath *
sorted_statement(PlannerInfo *root, RelOptInfo *input, const CustomPath *from, const char **reason)
{
	const ScanPlan *plan = scan_plan_from_list(from->custom_private);
	Sorting		s = {};
	CustomPath *path;

	s.root = root;
	s.rel = input;
	s.from = from;
	s.pathkeys = root->sort_pathkeys;
	/* conditions of rows are evaluated before the first one is handed out */
	if (plan->kind == SCAN_GROUPS && may_skip_errors(root, plan))
	{
		*reason = "HAVING may raise an error";
		return nullptr;
	}
	if (plan->kind == SCAN_GROUPS && gives_first_rows(root) && any_can_raise(plan->exprs))
	{
		*reason = "the output of a group that is not wanted may raise an error";
		return nullptr;
	}
	path = sort_path(&s, list_length(plan->having) == list_length(plan->filtered) ? limit_of_query(root) : 0);
	*reason = s.reason;
	return path;
}

}  // namespace gpuvm
