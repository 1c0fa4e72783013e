/* whole.cc: the path for a whole statement. */
#include "pg/pg.h"

extern "C" {
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"
}

#include <cmath>

#include "compiler/compile.h"
#include "pg/settings.h"
#include "pg/subtransaction.h"
#include "plan/facts.h"
#include "plan/shadow.h"
#include "planner/aggregation.h"
#include "planner/cost.h"
#include "planner/loops.h"
#include "planner/float_filter.h"
#include "planner/lowering.h"
#include "planner/order.h"
#include "planner/reasons.h"
#include "planner/stage_paths.h"
#include "planner/warm.h"
#include "planner/whole.h"
#include "store/refresher.h"

namespace gpuvm {

/* As much as this another plan may take, where its estimates are not to be trusted; */
constexpr double MOST_RISK = 20;
/* but one that has done in so many starts of a program is left alone: it reads a few rows by indexes. */
constexpr double AT_ONCE = 8;
/* Stages are taken where they cost less than this part of what the cheapest other plan does: they know less of what they read. */
constexpr double WORTHWHILE = 0.8;
/* Of two paths that differ by less add_path() keeps the first. */
constexpr double CHEAPER = 0.98;

static Lowering *
begin_lowering(PlannerInfo *statement_root, const GpuvmRel *statement)
{
	Lowering   *l = static_cast<Lowering *>(palloc0(sizeof(Lowering)));
	PlannerInfo *root = makeNode(PlannerInfo);

	root->parse = makeNode(Query);
	root->parse->commandType = CMD_SELECT;
	root->glob = statement_root->glob;
	root->query_level = 1;
	root->planner_cxt = CurrentMemoryContext;
	root->wt_param_id = -1;
	setup_simple_rel_arrays(root);
	l->root = root;
	l->statement_root = statement_root;
	l->statement = statement;
	l->ncolumns = statement->last_number;
	l->values = static_cast<Node **>(palloc0(sizeof(Node *) * (l->ncolumns + 1)));
	return l;
}

/* -- the output -------------------------------------------------------------------------------- */

/* The column of the statement's algebra that an entry of the query's target list is: a key of its order where nobody sees it; 0: neither. */
static int
column_of_target(const PlannerInfo *root, const GpuvmRel *statement, const GpuvmRel *sort, const TargetEntry *target, int *visible)
{
	ListCell   *lc;

	if (!target->resjunk)
		return (*visible)++ < list_length(statement->columns) ? list_nth_node(TargetEntry, statement->columns, *visible - 1)->resno : -1;
	if (target->ressortgroupref == 0)
		return 0;
	foreach(lc, root->parse->sortClause)
	{
		const int	i = foreach_current_index(lc);

		if (lfirst_node(SortGroupClause, lc)->tleSortGroupRef == target->ressortgroupref)
			return sort != nullptr && i < list_length(sort->keys) ? static_cast<int>(list_nth_node(SortGroupClause, sort->keys, i)->tleSortGroupRef) : -1;
	}
	return 0;
}

/*
 * PostgreSQL finds a column of the output by its expression: are there keys of grouping sets that have the same one? Each
 * is null in other sets.
 */
static bool
has_twins(const PathTarget *target, const List *values)
{
	const int	n = list_length(values);

	for (int i = 0; i < n; i++)
	{
		for (int j = 0; j < i; j++)
		{
			if (equal(list_nth(target->exprs, i), list_nth(target->exprs, j)) &&
				!equal(list_nth(values, i), list_nth(values, j)))
				return true;
		}
	}
	return false;
}

/* What the path gives, over the leaves. */
static bool
resolve_output(Lowering *l, const GpuvmRel *sort, const PathTarget *target, List **exprs)
{
	const PlannerInfo *root = l->statement_root;
	int			visible = 0;
	ListCell   *lc;
	ListCell   *lc2;

	if (list_length(root->processed_tlist) != list_length(target->exprs))
		return lowering_refuse(l, "the output is computed in several steps") != nullptr;
	forboth(lc, root->processed_tlist, lc2, target->exprs)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, lc);
		const Node *wanted = static_cast<const Node *>(lfirst(lc2));
		const int	number = column_of_target(root, l->statement, sort, entry, &visible);
		Node	   *value;

		if (number > 0)
			value = l->values[number];
		else if (number == 0)
			value = (Node *) makeNullConst(exprType(wanted), exprTypmod(wanted), exprCollation(wanted));
		else
			value = nullptr;
		if (value == nullptr || exprType(value) != exprType(wanted))
			return lowering_refuse(l, "the output is not that of the algebra") != nullptr;
		/* PostgreSQL takes the constant itself, not the scan's column, which is null in sets without that key */
		if (IsA(wanted, Const) && root->parse->groupingSets != NIL && !equal(value, wanted))
			return lowering_refuse(l, "a constant is a key of some grouping sets") != nullptr;
		*exprs = lappend(*exprs, value);
	}
	if (root->parse->groupingSets != NIL && has_twins(target, *exprs))
		return lowering_refuse(l, "two keys of the grouping sets are the same expression") != nullptr;
	return true;
}

/* -- the last stage ------------------------------------------------------------------------------- */

/* ORDER BY and LIMIT of the statement, above which there is only what is computed of their rows; NULL: it has none. */
static const GpuvmRel *
sort_of(const GpuvmRel *rel)
{
	while (rel->op == REL_PROJECT)
		rel = rel_input(rel);
	return rel->op == REL_SORT ? rel : nullptr;
}

/* Its LIMIT is what PostgreSQL puts above the path: a subquery's is not. */
static bool
is_limit_elsewhere(const PlannerInfo *root, const GpuvmRel *sort)
{
	if (sort == nullptr || root->parse->sortClause != NIL || limit_needed(root->parse))
		return false;
	return sort->count != nullptr || sort->offset != nullptr;
}

bool
has_bound_value(Node *node, void *)
{
	if (node == nullptr)
		return false;
	if (IsA(node, Param) && ((const Param *) node)->paramkind == PARAM_EXEC)
		return true;
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(has_bound_value), nullptr);
}

/* The groups that the output is of, with nothing but HAVING and what is computed of them above; NULL: there are none. */
static const GpuvmRel *
groups_of(const GpuvmRel *rel, const GpuvmRel *sort)
{
	while (rel->op == REL_PROJECT || rel == sort || (rel->op == REL_FILTER && !rel->barrier))
	{
		/* values of subqueries are joined to the groups */
		if (rel != sort && (has_bound_value((Node *) rel->quals, nullptr) || has_bound_value((Node *) rel->columns, nullptr)))
			return nullptr;
		rel = rel_input(rel);
	}
	return rel->op == REL_GROUP ? rel : nullptr;
}

/* Values and conditions of the nodes above this one, from below. */
static bool
resolve_above(Lowering *l, const GpuvmRel *rel, const GpuvmRel *body, List **having)
{
	ListCell   *lc;

	if (rel == body)
		return true;
	if (!resolve_above(l, rel_input(rel), body, having))
		return false;
	foreach(lc, rel->quals)
		*having = lappend(*having, resolve(l, static_cast<const Node *>(lfirst(lc))));
	foreach(lc, rel->op == REL_PROJECT ? rel->columns : NIL)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (!rel_hands_on(column))
			set_value(l, column->resno, resolve(l, (const Node *) column->expr));
	}
	return l->reason == nullptr;
}

struct Last
{
	const Piece *piece;
	ScanPlan   *plan;
	double		rows;
};

static bool
last_groups(Lowering *l, const GpuvmRel *top, const GpuvmRel *sort, const PathTarget *target, Last *last)
{
	const GpuvmRel *groups = groups_of(top, sort);
	Aggregation *a = static_cast<Aggregation *>(palloc0(sizeof(Aggregation)));
	Piece	   *piece;
	List	   *exprs = NIL;
	List	   *having = NIL;

	l->last = groups;
	if (!begin_groups(l, groups, &piece))
		return false;
	/* as a path of its own it reads only the partitions that its conditions leave */
	if (piece->shape.ncursors == 1 && piece->shape.cursors[0].target.leaves != NIL)
		return false;
	if (!resolve_above(l, top, groups, &having) || !resolve_output(l, sort, target, &exprs) ||
		!plan_of_groups(l, groups, piece, exprs, having, a, &last->rows))
		return false;
	last->piece = piece;
	last->plan = &a->plan;
	return true;
}

/* What the statement is sorted by and is computed of columns: the program has to compute it, or PostgreSQL sorts. */
static List *
computed_keys(const PlannerInfo *root, const List *exprs)
{
	List	   *keys = NIL;
	ListCell   *lc;
	ListCell   *lc2;

	forboth(lc, root->processed_tlist, lc2, exprs)
	{
		const Index ref = lfirst_node(TargetEntry, lc)->ressortgroupref;
		ListCell   *key;

		if (ref == 0 || IsA(lfirst(lc2), Var) || contain_volatile_functions(static_cast<Node *>(lfirst(lc2))))
			continue;
		foreach(key, root->parse->sortClause)
		{
			if (lfirst_node(SortGroupClause, key)->tleSortGroupRef == ref)
				keys = list_append_unique(keys, lfirst(lc2));
		}
	}
	return keys;
}

/*
 * Rows with these columns and, where it can be, the keys: as columns, too, or as what the rows are only sorted by,
 * which may be a quotient.
 */
static bool
plan_with_keys(Lowering *l, const Piece *piece, List **raw, List *keys, ScanPlan *plan)
{
	List	   *all = list_concat_copy(*raw, keys);

	if (keys != NIL && plan_of_rows(l, piece, all, NIL, plan))
	{
		*raw = all;
		return true;
	}
	l->reason = nullptr;
	*plan = ScanPlan{};
	if (keys != NIL && plan_of_rows(l, piece, *raw, keys, plan))
	{
		plan->hidden = over_raw(keys, *raw);
		return true;
	}
	l->reason = nullptr;
	*plan = ScanPlan{};
	return plan_of_rows(l, piece, *raw, NIL, plan);
}

/* The program gives columns, of which PostgreSQL computes the output. */
static bool
last_rows(Lowering *l, const GpuvmRel *top, const GpuvmRel *sort, const PathTarget *target, Last *last)
{
	const GpuvmRel *body = sort != nullptr ? rel_input(sort) : top;
	ScanPlan   *plan = static_cast<ScanPlan *>(palloc0(sizeof(ScanPlan)));
	List	   *exprs = NIL;
	List	   *raw = NIL;
	List	   *none = NIL;
	Piece	   *piece;

	for (const GpuvmRel *rel = body; rel->op == REL_PROJECT || rel->op == REL_FILTER || rel->op == REL_SORT; rel = rel_input(rel))
	{
		if (rel->op == REL_SORT)
			return lowering_refuse(l, "a subquery's order is the statement's") != nullptr;
	}
	l->last = body;
	piece = lower(l, body);
	if (piece == nullptr || !resolve_above(l, top, body, &none) || !resolve_output(l, sort, target, &exprs))
		return false;
	if (piece->shape.ncursors == 1 && piece->shape.cursors[0].target.child == nullptr)
		return false;
	raw = list_concat_unique(NIL, raw_columns(exprs, l->held));
	if (!plan_with_keys(l, piece, &raw, computed_keys(l->statement_root, exprs), plan))
		return false;
	compute_above(plan, piece, raw, exprs, l->held);
	last->piece = piece;
	last->plan = plan;
	last->rows = Max(piece->shape.rows * condition_selectivity(l, without_filters(l->held)), 1);
	return true;
}

/* -- the path -------------------------------------------------------------------------------------- */

/* Stages that several programs read are the last one's, which they outlive. */
static void
add_shared_stages(CustomPath *path, List *shared)
{
	ListCell   *lc;

	foreach(lc, shared)
	{
		path->path.startup_cost += static_cast<const Path *>(lfirst(lc))->total_cost;
		path->path.total_cost += static_cast<const Path *>(lfirst(lc))->total_cost;
	}
	path->custom_paths = list_concat(path->custom_paths, shared);
}

/* The output, without what PostgreSQL would spend on subqueries for each row: stages have these as columns. */
static PathTarget *
output_of_stages(PlannerInfo *root, PathTarget *target)
{
	PathTarget *own = copy_pathtarget(target);
	ListCell   *lc;

	foreach(lc, own->exprs)
	{
		QualCost	cost;

		if (!contain_subplans(static_cast<Node *>(lfirst(lc))))
			continue;
		cost_qual_eval_node(&cost, static_cast<Node *>(lfirst(lc)), root);
		own->cost.startup = Max(own->cost.startup - cost.startup, 0);
		own->cost.per_tuple = Max(own->cost.per_tuple - cost.per_tuple, 0);
	}
	return own;
}

static CustomPath *
make_whole_path(Lowering *l, RelOptInfo *final_rel, Path *alternative)
{
	const GpuvmRel *top = rel_input(l->statement);
	const GpuvmRel *sort = sort_of(top);
	Last		last = {};
	ProgramRows rows = {};
	const char *failure;
	CustomPath *path;
	double		map_cost;

	if (rel_facts(top)->hides_rows)
	{
		lowering_refuse(l, "a policy or a security barrier hides rows");
		return nullptr;
	}
	if (is_limit_elsewhere(l->statement_root, sort))
	{
		lowering_refuse(l, "LIMIT below the top is not run in stages yet");
		return nullptr;
	}
	if (!(!l->rows_last && groups_of(top, sort) != nullptr ? last_groups : last_rows)(l, top, sort, alternative->pathtarget, &last))
		return nullptr;
	failure = known_failure(l->root, &last.piece->shape, last.plan);
	if (failure != nullptr)
	{
		lowering_refuse(l, failure);
		return nullptr;
	}
	last.plan->fraction = 1;
	last.plan->whole = true;
	last.plan->nshared = list_length(l->shared);
	plan_delta(last.plan, &last.piece->shape, &rows);
	map_cost = detach_maps(l->root, &last.piece->shape, last.plan);
	path = make_path(l->statement_root, final_rel, output_of_stages(l->statement_root, alternative->pathtarget),
					 &last.piece->shape, alternative, last.plan, rows, last.rows, map_cost);
	add_shared_stages(path, l->shared);
	return path;
}

struct WholeWork
{
	Lowering   *l;
	RelOptInfo *final_rel;
	Path	   *alternative;
	CustomPath *path;
};

static void
make_in_subtransaction(void *argument)
{
	WholeWork  *work = static_cast<WholeWork *>(argument);

	work->path = make_whole_path(work->l, work->final_rel, work->alternative);
}

/* What raises an error here may be what PostgreSQL does not look at: constants are folded, and conditions estimated, in other places. */
static CustomPath *
make_quietly(Lowering *l, RelOptInfo *final_rel, Path *alternative)
{
	WholeWork	work = {l, final_rel, alternative, nullptr};
	const ErrorData *error = in_subtransaction(make_in_subtransaction, &work);

	if (error == nullptr)
		return work.path;
	lowering_refuse(l, psprintf("an error was raised: %s", error->message));
	return nullptr;
}

/* Why PostgreSQL reads some of the tables. */
static void
note_externals(const Lowering *l)
{
	ListCell   *lc;

	foreach(lc, reasons_wanted ? l->externals : NIL)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		reasons_add(rte->relid, psprintf("Scan on %s", rte->eref->aliasname), why_not_in_memory(rte->relid),
					psprintf("SELECT gpuvm.import('%s');", get_rel_name(rte->relid)));
	}
}

/* The same statement, where PostgreSQL evaluates more. */
static Lowering *
hold_statement(const Lowering *l, const GpuvmRel *statement, HoldLevel level, bool may_filter, RelOptInfo *final_rel, Path *alternative,
			   CustomPath **path)
{
	Lowering   *again = begin_lowering(l->statement_root, statement);

	again->rows_last = l->rows_last;
	again->first_rows = l->first_rows;
	again->hold = level;
	again->may_filter = may_filter;
	*path = make_quietly(again, final_rel, alternative);
	return again;
}

/* What stands in the way may be what PostgreSQL can evaluate between stages. `explain`: reasons are noted. */
static CustomPath *
lower_statement(PlannerInfo *root, const GpuvmRel *statement, RelOptInfo *final_rel, Path *alternative, bool rows_last, bool explain)
{
	Lowering   *l = begin_lowering(root, statement);
	CustomPath *path;
	Lowering   *again = nullptr;

	l->rows_last = rows_last;
	l->first_rows = gives_first_rows(root);
	path = make_quietly(l, final_rel, alternative);
	for (HoldLevel level : {HoldLevel::Conditions, HoldLevel::Columns})
	{
		if (path != nullptr || l->could_hold < level)
			continue;
		again = hold_statement(l, statement, level, true, final_rel, alternative, &path);
		/* what they compute may be too large for a program */
		if (path == nullptr && again->filters)
			again = hold_statement(l, statement, level, false, final_rel, alternative, &path);
		if (path != nullptr && explain && again->held_node != nullptr && !reasons_have(again->held_reason))
			reasons_add(InvalidOid, again->held_node, again->held_reason, nullptr);
	}
	if (path != nullptr && explain)
		note_externals(again != nullptr ? again : l);
	/* a single scan is planned without stages, and a reason that a node has given is not given again */
	if (path == nullptr && explain && l->reason != nullptr && !reasons_have(l->reason))
		reasons_add(InvalidOid, "Whole statement", l->reason, nullptr);
	return path;
}

/* Does a program read nothing, behind its alternative, but tables that are not imported? */
static bool
reads_tables_alone(const List *paths)
{
	ListCell   *lc;

	for_each_from(lc, paths, 1)
	{
		const RelOptInfo *rel = static_cast<const Path *>(lfirst(lc))->parent;

		if (rel->reloptkind != RELOPT_BASEREL || rel->rtekind != RTE_RELATION)
			return false;
	}
	return true;
}

/* Is one program all that the statement has now, but for Sort, Limit and the output? Not where that has subqueries. */
static bool
is_one_program(const Path *path)
{
	if (contain_subplans((Node *) path->pathtarget->exprs))
		return false;
	switch (nodeTag(path))
	{
		case T_LimitPath: return is_one_program(((const LimitPath *) path)->subpath);
		case T_SortPath: return is_one_program(((const SortPath *) path)->subpath);
		case T_IncrementalSortPath: return is_one_program(((const IncrementalSortPath *) path)->spath.subpath);
		case T_ProjectionPath: return is_one_program(((const ProjectionPath *) path)->subpath);
		default: return is_gpuvm_path(path) && reads_tables_alone(((const CustomPath *) path)->custom_paths);
	}
}

/* Does PostgreSQL sort what comes of it? */
static bool
is_sorted_above(const Path *path)
{
	switch (nodeTag(path))
	{
		case T_LimitPath: return is_sorted_above(((const LimitPath *) path)->subpath);
		case T_ProjectionPath: return is_sorted_above(((const ProjectionPath *) path)->subpath);
		default: return IsA(path, SortPath) || IsA(path, IncrementalSortPath);
	}
}

static const Path *
cheapest(const RelOptInfo *rel)
{
	const Path *best = nullptr;
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		const Path *path = static_cast<const Path *>(lfirst(lc));

		if (path->param_info == nullptr && (best == nullptr || path->total_cost < best->total_cost))
			best = path;
	}
	return best;
}

static Cost
cost_of_init_plans(const PlannerInfo *root)
{
	Cost		cost = 0;
	ListCell   *lc;

	foreach(lc, root->init_plans)
		cost += lfirst_node(SubPlan, lc)->startup_cost + lfirst_node(SubPlan, lc)->per_call_cost;
	return cost;
}

/* Does it cost less than the start of any program? Then stages are not looked at. */
static bool
is_left_alone(const PlannerInfo *root, const Path *best)
{
	return !setting_force && setting_require == REQUIRE_ANY && !reasons_wanted &&
		warm_cost(best) + cost_of_init_plans(root) < least_cost(root);
}

/* What its programs pay for rows that tablets do not serve. */
static Cost
cost_of_deltas(const Path *path)
{
	const List *below = NIL;
	Cost		cost = 0;
	ListCell   *lc;

	switch (nodeTag(path))
	{
		case T_LimitPath: return cost_of_deltas(((const LimitPath *) path)->subpath);
		case T_SortPath: return cost_of_deltas(((const SortPath *) path)->subpath);
		case T_AppendPath:
			below = ((const AppendPath *) path)->subpaths;
			break;
		default:
			/* behind the alternative, or in its place, are the stages that it reads */
			if (!is_gpuvm_path(path) && !is_stage_path(path))
				return 0;
			cost = scan_plan_delta_cost(((const CustomPath *) path)->custom_private);
			below = ((const CustomPath *) path)->custom_paths;
	}
	for_each_from(lc, below, is_gpuvm_path(path) ? 1 : 0)
		cost += cost_of_deltas(static_cast<const Path *>(lfirst(lc)));
	return cost;
}

/*
 * Is the path taken, and for which cost? The other one counts as what it takes with its pages in memory, and as much
 * more as lies between that and what it took if its estimates were too low by orders of magnitude: in the middle of
 * both magnitudes.
 */
static bool
offer_cost(PlannerInfo *root, const Path *best, Path *path)
{
	const Cost	before = cost_of_init_plans(root);
	const Expected expected = expected_of(root, best);
	const Cost	rival = Max(expected.cost - (best->total_cost - warm_cost(best)), 1);
	const double more = Max(expected.most / Max(expected.cost, 1), 1);
	const double risk = rival < AT_ONCE * least_cost(root) ? 1 : Min(std::sqrt(more), MOST_RISK);
	/* reading the heap is no estimate of ours, and the other one pays for it, too */
	const Cost	delta = cost_of_deltas(path);
	const Cost	cost = (path->total_cost - delta) / WORTHWHILE + delta;

	if (cost >= rival * risk)
		return false;
	/* what PostgreSQL computes before and adds to all paths, CTEs and subqueries without outer columns, stages do not need */
	path->total_cost = Min(Max(cost / risk, least_cost(root)) - before, best->total_cost * CHEAPER);
	path->startup_cost = Min(Max(path->startup_cost - delta, 0) / WORTHWHILE + delta, path->total_cost);
	return true;
}

/* Where groups are not sorted by their program, one more sorts them as rows; few of them PostgreSQL sorts in less time. */
static CustomPath *
sorted_whole(PlannerInfo *root, const GpuvmRel *statement, RelOptInfo *input, RelOptInfo *final_rel, Path *alternative,
			 CustomPath *whole, bool explain)
{
	const char *reason = nullptr;
	CustomPath *sorted = root->sort_pathkeys == NIL ? nullptr : sorted_statement(root, input, whole, &reason);
	const CustomPath *rows;

	if (sorted == nullptr && root->sort_pathkeys != NIL && scan_plan_from_list(whole->custom_private)->kind == SCAN_GROUPS)
	{
		rows = lower_statement(root, statement, final_rel, alternative, true, false);
		sorted = rows == nullptr ? nullptr : sorted_statement(root, input, rows, &reason);
		if (sorted != nullptr && !setting_force &&
			sorted->path.total_cost >=
			create_sort_path(root, final_rel, &whole->path, root->sort_pathkeys, -1)->path.total_cost)
			return nullptr;
	}
	if (sorted == nullptr && reason != nullptr && explain)
		reasons_add(InvalidOid, "Sort", reason, nullptr);
	return sorted;
}

/* -- the algebra -------------------------------------------------------------------------------------- */

static GpuvmRel *
algebra_of(const Query *query)
{
	if (query->commandType != CMD_SELECT || query->rowMarks != NIL || query->hasModifyingCTE || query->hasTargetSRFs)
		return nullptr;
	return translate_quietly(query);
}

/* Does it read tables that are not imported? */
static bool
reads_external(const GpuvmRel *rel)
{
	ListCell   *lc;

	check_stack_depth();
	foreach(lc, rel->inputs)
	{
		if (reads_external(static_cast<const GpuvmRel *>(lfirst(lc))))
			return true;
	}
	return rel->op == REL_EXTERNAL;
}

/* With ORDER BY, which is PostgreSQL's where the path has no order, and LIMIT. */
static Path *
finished(PlannerInfo *root, RelOptInfo *final_rel, CustomPath *whole, const FinalPathExtraData *extra)
{
	const Query *parse = root->parse;
	Path	   *path = &whole->path;

	if (!pathkeys_contained_in(root->sort_pathkeys, path->pathkeys))
		path = &create_sort_path(root, final_rel, path, root->sort_pathkeys, extra->limit_needed ? extra->limit_tuples : -1)->path;
	if (extra->limit_needed)
		path = &create_limit_path(root, final_rel, path, parse->limitOffset, parse->limitCount, parse->limitOption, extra->offset_est, extra->count_est)->path;
	return path;
}

void
add_whole_path(PlannerInfo *root, WholeStatement *statement, RelOptInfo *input, RelOptInfo *final_rel,
			   const FinalPathExtraData *extra, bool sorts)
{
	const Query *parse = root->parse;
	const Path *best = cheapest(final_rel);
	const GpuvmRel *algebra;
	Path	   *alternative;
	CustomPath *whole;
	CustomPath *sorted;
	Path	   *path;
	bool		taken;
	/* whose rows PostgreSQL sorts, as they are groups of several programs, or the keys are computed of them */
	const bool	one = best != nullptr && is_one_program(best);

	if (best == nullptr || (one && !is_sorted_above(best)))
		return;
	statement->cheap = is_left_alone(root, best);
	if (statement->cheap)
		return;
	algebra = statement->algebra != nullptr ? statement->algebra : algebra_of(statement->query);
	if (algebra == nullptr)
		return;
	alternative = alternative_path(input, NIL, true);
	if (alternative == nullptr)
	{
		reasons_add(InvalidOid, "Whole statement", "PostgreSQL's own plan cannot stand below a custom scan", nullptr);
		return;
	}
	whole = lower_statement(root, algebra, final_rel, alternative, false, !one);
	if (whole == nullptr)
		return;
	sorted = sorts ? sorted_whole(root, algebra, input, final_rel, alternative, whole, !one) : nullptr;
	if (one && sorted == nullptr)
		return;
	/* the columns of a set operation are of no relation, so nothing above can sort by them */
	if (sorted == nullptr && root->sort_pathkeys != NIL && parse->setOperations != nullptr)
		return;
	statement->made = true;
	statement->several = list_length((sorted != nullptr ? sorted : whole)->custom_paths) > 1;
	statement->external = reads_external(algebra);
	path = finished(root, final_rel, sorted != nullptr ? sorted : whole, extra);
	if (setting_force)
	{
		final_rel->pathlist = list_make1(path);
		final_rel->partial_pathlist = NIL;
		return;
	}
	taken = offer_cost(root, best, path);
	/* the order of a dictionary may cost more than all else, and sorting a few rows does not */
	if (!taken && sorted != nullptr && !one && parse->setOperations == nullptr)
	{
		path = finished(root, final_rel, whole, extra);
		taken = offer_cost(root, best, path);
	}
	if (taken)
		add_path(final_rel, path);
}

}  // namespace gpuvm
