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
#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
}

#include <cmath>

#include "compiler/compile.h"
#include "pg/settings.h"
#include "pg/startup.h"
#include "pg/value_form.h"
#include "planner/order.h"
#include "planner/paths.h"
#include "planner/scan_plan.h"
#include "store/registry.h"

namespace gpuvm {

/* As the executor has it: what a job may take in gpuvmd beside its tablets. */
constexpr int MEMORY_SHARE = 4;

/* add_path's. */
constexpr double FUZZ = 1.01;

/* A sorted path in the making. */
struct Sorting
{
	PlannerInfo *root;
	RelOptInfo *rel;			/* whose path it is */
	const CustomPath *from;		/* the same path, not sorted */
	ScanPlan   *plan;
	List	   *pathkeys;
	List	   *hidden;			/* what rows are sorted by and is no column of them, */
	List	   *collations;		/* under these */
	const char *reason;
};

static bool
refuse(Sorting *s, const char *reason)
{
	s->reason = reason;
	return false;
}

/* -- which column a key is ------------------------------------------------------------ */

static const Expr *
without_relabels(const Expr *expr)
{
	while (IsA(expr, RelabelType))
		expr = ((const RelabelType *) expr)->arg;
	return expr;
}

/* The first of the expressions that is equal to the key's values; -1 if there is none. */
static int
find_key(const Sorting *s, const PathKey *key, List *exprs)
{
	ListCell   *lc;
	ListCell   *lc2;

	if (key->pk_eclass->ec_has_volatile)
		return -1;
	foreach(lc, key->pk_eclass->ec_members)
	{
		const EquivalenceMember *em = lfirst_node(EquivalenceMember, lc);

		if (em->em_is_const || (em->em_is_child && !bms_equal(em->em_relids, s->rel->relids)))
			continue;
		foreach(lc2, exprs)
		{
			if (equal(without_relabels(em->em_expr), without_relabels(static_cast<const Expr *>(lfirst(lc2)))))
				return foreach_current_index(lc2);
		}
	}
	return -1;
}

/* An expression over the relation, or join, that has the key's values; NULL if there is none. */
static Expr *
expression_of_key(const Sorting *s, const PathKey *key)
{
	ListCell   *lc;

	if (key->pk_eclass->ec_has_volatile)
		return nullptr;
	foreach(lc, key->pk_eclass->ec_members)
	{
		const EquivalenceMember *em = lfirst_node(EquivalenceMember, lc);

		if (!em->em_is_const && !em->em_is_child && !bms_is_empty(em->em_relids) && bms_is_subset(em->em_relids, s->rel->relids))
			return em->em_expr;
	}
	return nullptr;
}

/* Keys that are no columns of the rows: the path anew, with these as columns that are not shown. False, and a reason noted, if that is not possible. */
static bool
add_hidden(Sorting *s)
{
	ScanShape	single = {};
	const ScanShape *shape = &single;
	ScanTarget	target = {};
	ListCell   *lc;

	foreach(lc, s->pathkeys)
	{
		const PathKey *key = lfirst_node(PathKey, lc);
		Expr	   *expr;

		if (find_key(s, key, s->from->path.pathtarget->exprs) >= 0)
			continue;
		expr = expression_of_key(s, key);
		if (expr == nullptr)
		{
			note_reason(s->root, s->rel, "Sort", "a sort key is evaluated above", nullptr);
			return false;
		}
		expr = static_cast<Expr *>(copyObjectImpl(expr));
		fix_opfuncids((Node *) expr);
		s->hidden = lappend(s->hidden, expr);
		s->collations = lappend_oid(s->collations, key->pk_eclass->ec_collation);
	}
	if (s->hidden == NIL)
		return true;
	if (s->rel->reloptkind == RELOPT_JOINREL)
		shape = shape_of_join(s->rel);
	else if (usable_relation(s->root, s->rel, &target))
		shape_of_relation(s->root, s->rel, &target, false, &single);
	else
		return false;
	if (shape != nullptr)
		s->from = make_rows_path(s->root, s->rel, shape, static_cast<Path *>(linitial(s->from->custom_paths)), s->hidden, s->collations);
	return shape != nullptr && s->from != nullptr;
}

/* The result column that a raw column of groups is in; of an average, none is in its order. */
static bool
column_of_group(Sorting *s, const Node *raw, bool last, int *column)
{
	const PlanPart *part = &s->plan->parts[0];
	int			number = IsA(raw, Var) ? ((const Var *) raw)->varattno - 1 : -1;
	ListCell   *lc;
	ListCell   *to;

	foreach(lc, part->key_columns)
	{
		if (lfirst_int(lc) == number)
		{
			*column = foreach_current_index(lc);
			return true;
		}
	}
	forboth(lc, part->finals, to, part->final_columns)
	{
		const List *final = lfirst_node(List, lc);

		if (lfirst_int(to) != number)
			continue;
		*column = list_nth_int(final, FINAL_PARTS);
		switch (static_cast<FinalKind>(linitial_int(final)))
		{
			case FinalKind::Direct:
			case FinalKind::SumToInt8:
			case FinalKind::SumToNumeric:
			case FinalKind::SumToFloat8:
				return true;
			case FinalKind::SumToFloat4:
				/* sums that differ may be rounded to one value: then the following keys decide */
				if (last)
					return true;
				break;
			default:
				break;
		}
		return refuse(s, "groups are sorted by keys, counts, sums and extremes, not by what is computed from several of them");
	}
	return refuse(s, "groups are sorted by their keys and aggregates, not by expressions over them");
}

/* -- what it is sorted by ---------------------------------------------------------------- */

/* The number of the map, which may be there already; -1 and a reason. */
static int
add_order_map(Sorting *s, const PlanMap &map)
{
	ScanPlan   *plan = s->plan;

	for (int i = 0; i < plan->nmaps; i++)
	{
		const PlanMap *m = &plan->maps[i];

		if (m->kind == map.kind && m->cursor == map.cursor && m->attnum == map.attnum && m->collation == map.collation &&
			m->from.map == map.from.map && m->from.cursor == map.from.cursor && m->from.attnum == map.from.attnum &&
			m->to.map == map.to.map && m->to.cursor == map.to.cursor && m->to.attnum == map.to.attnum && equal(m->expr, map.expr))
			return i;
	}
	if (plan->nmaps == MAX_MAPS)
	{
		refuse(s, psprintf("the query has more than %d expressions over dictionaries", MAX_MAPS));
		return -1;
	}
	plan->maps[plan->nmaps] = map;
	return plan->nmaps++;
}

/* Ranks for the codes of a dictionary, of a column or of a map's values. Values that are equal and not the same share one: that is a map from a dictionary to itself. */
static int
ranks_of(Sorting *s, const DictionaryRef &ref, Oid type, Oid collation)
{
	Oid			cmp = lookup_type_cache(type, TYPECACHE_CMP_PROC)->cmp_proc;

	if (s->root->qual_security_level > 0 && !get_func_leakproof(cmp))
	{
		refuse(s, "values would be compared that a policy may hide");
		return -1;
	}
	return add_order_map(s, PlanMap{MapKind::Order, -1, 0, nullptr, collation, false, ref, ref, type});
}

/* The map for a result column of codes; -1 and a reason. */
static int
rank_map(Sorting *s, const OutputForm *form, Oid collation)
{
	const PlanCursor *cursor;
	Oid			type;
	int32		typmod;
	Oid			own;

	if (form->kind == OutputKind::Map)
	{
		const PlanMap *map = &s->plan->maps[form->map];

		if (map->kind == MapKind::Derived)
			return ranks_of(s, DictionaryRef{static_cast<int16>(form->map), -1, 0}, exprType((Node *) map->expr), collation);
		refuse(s, "values of several dictionaries are not sorted");
		return -1;
	}
	cursor = &s->plan->cursors[form->cursor];
	if (!OidIsValid(cursor->relid))
	{
		refuse(s, "values of a derived relation's dictionary are not sorted");
		return -1;
	}
	get_atttypetypmodcoll(cursor->relid, form->attnum, &type, &typmod, &own);
	if (!dictionary_equality(type, typmod, collation))
		return ranks_of(s, DictionaryRef{-1, static_cast<int16>(form->cursor), form->attnum}, type, collation);
	return add_order_map(s, PlanMap{MapKind::Rank, form->cursor, form->attnum,
									(Expr *) makeVar(form->cursor + 1, form->attnum, type, typmod, own, 0), collation, false, NO_DICTIONARY, NO_DICTIONARY, InvalidOid});
}

/* What has to be known of the column to sort by it; false with a reason. */
static bool
add_key(Sorting *s, const PathKey *key, int target, int column)
{
	ScanPlan   *plan = s->plan;
	const PlanPart *part = &plan->parts[0];
	const OutputForm *form = &part->outputs[column];
	const Expr *expr = without_relabels(static_cast<const Expr *>(target < 0 ? list_nth(s->hidden, -1 - target) : list_nth(s->from->path.pathtarget->exprs, target)));
	Oid			type = exprType((const Node *) expr);
	Oid			collation = key->pk_eclass->ec_collation;
	int			flags = static_cast<int>((key->pk_strategy == BTGreaterStrategyNumber ? ORDER_DESC : 0) | (key->pk_nulls_first ? ORDER_NULLS_FIRST : 0));
	PlanOrderKey *to = &plan->order[plan->norder];

	if (lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf != key->pk_opfamily)
		return refuse(s, "the order is not the default one of its type");
	*to = PlanOrderKey{column, flags, -1, target};
	switch (form->kind)
	{
		case OutputKind::Plain:
		case OutputKind::Numeric:
			break;
		case OutputKind::Variable:
			return refuse(s, "values of variable length are not sorted");
		case OutputKind::Map:
			/* an extreme of a dictionary type is its rank already */
			if (plan->maps[form->map].kind == MapKind::Rank)
			{
				if (plan->maps[form->map].collation != collation)
					return refuse(s, "the extreme is of another collation than the order");
				break;
			}
			/* FALLTHROUGH */
		case OutputKind::Dictionary:
			to->flags |= ORDER_RANKS;
			to->map = rank_map(s, form, collation);
			if (to->map < 0)
				return false;
			break;
	}
	plan->norder++;
	return true;
}

static bool
add_keys(Sorting *s)
{
	ListCell   *lc;

	if (s->plan->nparts != 1 || s->plan->parts[0].count_groups)
		return refuse(s, "the groups of several programs are not sorted");
	if (list_length(s->pathkeys) > static_cast<int>(JOB_MAX_ORDER))
		return refuse(s, psprintf("there are more than %u sort keys", JOB_MAX_ORDER));
	foreach(lc, s->pathkeys)
	{
		const PathKey *key = lfirst_node(PathKey, lc);
		int			target = find_key(s, key, s->from->path.pathtarget->exprs);
		int			hidden = target < 0 ? find_key(s, key, s->hidden) : -1;
		int			column = target;

		if (hidden >= 0)
		{
			target = -1 - hidden;
			column = list_length(s->from->path.pathtarget->exprs) + hidden;
		}
		else if (target < 0)
			return refuse(s, "a sort key is an expression that is evaluated above");
		if (s->plan->kind == SCAN_GROUPS &&
			!column_of_group(s, static_cast<Node *>(list_nth(s->plan->exprs, target)), lnext(s->pathkeys, lc) == nullptr, &column))
			return false;
		if (!add_key(s, key, target, column))
			return false;
	}
	return true;
}

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

		if (!registry_describe(lfirst_oid(lc), &table))
			continue;
		for (uint32 i = 0; i < table.ncols; i++)
		{
			if (table.attnums[i] == attnum)
				most = Max(most, table.entries[i]);
		}
	}
	return most;
}

/* The maps that the order alone needs: a sort of their entries, if the session does not have it. */
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
			cost += cost_ranks(map->kind == MapKind::Order ? 2 * entries : entries);
	}
	return cost;
}

static int
row_bytes(const ScanPlan *plan)
{
	const PlanPart *part = &plan->parts[0];
	Type		types[PROGRAM_MAX_COLUMNS];
	int			bytes = 0;

	program_result_types(part->stage != nullptr ? part->stage : part->program, types);
	for (int i = 0; i < part->noutputs; i++)
		bytes += type_width(types[i]);
	return bytes;
}

/* Can gpuvmd hold what is sorted? */
static bool
fits(const ScanPlan *plan, double rows)
{
	double		limit = Max(static_cast<double>(get_hash_memory_limit()), static_cast<double>(arena_header()->size) / MEMORY_SHARE);

	return plan->limit > 0 || rows * (row_bytes(plan) + 16) <= limit;
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

/* Offers the path with the order; `limit`: of LIMIT directly above, or 0. False and a reason where that is not possible. */
static bool
add_sorted(Sorting *s, double limit, bool whole)
{
	ScanPlan   *plan = s->plan = scan_plan_from_list(s->from->custom_private);
	int			nmaps = plan->nmaps;
	const Path *from = &s->from->path;
	double		rows = from->rows;
	double		handing = HAND_OUT_US * cost_of_us() + from->pathtarget->cost.per_tuple;
	CustomPath *path;

	if (!add_keys(s))
		return false;
	plan->limit = limit;
	plan->fraction = 1;
	if (!fits(plan, rows))
		return refuse(s, "there is too much to sort in memory (gpuvm.memory, work_mem)");
	path = makeNode(CustomPath);
	*path = *s->from;
	path->path.pathkeys = s->pathkeys;
	path->custom_paths = list_copy(s->from->custom_paths);
	linitial(path->custom_paths) = sorted_alternative(s);
	path->custom_private = scan_plan_to_list(plan);
	path->path.rows = limit > 0 ? Min(rows, limit) : rows;
	path->path.startup_cost = Max(from->total_cost - rows * handing, from->startup_cost) +
		cost_of_us() * sort_us(rows, limit) + cost_order_maps(plan, nmaps);
	path->path.total_cost = path->path.startup_cost + path->path.rows * handing;
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

bool
add_sorted_rows(PlannerInfo *root, RelOptInfo *rel)
{
	Sorting		s = {};
	bool		all = is_all_of_query(root, rel);
	bool		rows = all && only_rows(root) && root->query_pathkeys == root->sort_pathkeys;

	s.root = root;
	s.rel = rel;
	s.pathkeys = root->query_pathkeys;
	s.from = s.pathkeys == NIL || !may_sort(rel->reloptkind == RELOPT_JOINREL) || is_for_extreme(root) ? nullptr : unsorted_path(rel);
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
	if (plan->kind == SCAN_GROUPS && !add_sorted(&s, last && plan->having == NIL ? limit_of_query(root) : 0, last))
		note_reason(root, rel, "Sort", s.reason, nullptr);
}

}  // namespace gpuvm
