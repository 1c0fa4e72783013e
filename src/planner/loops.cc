/*
 * loops.cc: what PostgreSQL's plans would cost if more rows came than it expects.
 *
 * Estimates of joins, of groups of their rows and of conditions on these are too low by orders of magnitude now and then: a condition
 * on a table of days, most of which nothing was sold on, leaves a thirtieth of the rows that it does leave. Stages take little
 * harm by that. What looks something up for each row, goes through an inner side for it, sorts or groups it takes as many times as
 * long. Conditions on one table are taken not to be independent of each other: no more rows are left than by the most selective one.
 */
#include "pg/pg.h"

extern "C" {
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
}

#include "pg/compat.h"
#include "planner/cost.h"
#include "planner/group_rows.h"
#include "planner/loops.h"
#include "planner/paths.h"

namespace gpuvm {

/* So many times as many rows may come. */
constexpr double TOO_LOW = 1000;

struct More
{
	Cost		cost;
	double		rows;
};

/* One evaluation. */
struct Evaluation
{
	double		most;			/* estimates are so many times too low */
	More	   *plans;			/* CTEs and subqueries that are computed once, by their numbers, as far as they were looked at */
	int			nplans;
};

static More more(PlannerInfo *root, const Path *path, const Evaluation *e);

static double
factor(const More &m, const Path *path)
{
	return Max(m.rows / Max(path->rows, 1), 1);
}

/* Of an estimate, where there are no more than these for another reason. */
static double
more_rows(double rows, double bound, const Evaluation *e)
{
	return Max(rows, Min(rows * e->most, bound));
}

/* -- relations ------------------------------------------------------------------------------------ */

/* Of one of the statement's plans that are computed once, however many nodes read it; NULL: it is none. */
static const More *
more_of_plan(const PlannerInfo *root, int plan_id, const Evaluation *e)
{
	PlannerInfo *level;
	const Path *path;

	if (plan_id <= 0 || plan_id > e->nplans)
		return nullptr;
	level = static_cast<PlannerInfo *>(list_nth(root->glob->subroots, plan_id - 1));
	path = fetch_upper_rel(level, UPPERREL_FINAL, nullptr)->cheapest_total_path;
	if (path != nullptr && e->plans[plan_id - 1].rows == 0)
		e->plans[plan_id - 1] = more(level, path, e);
	return path == nullptr ? nullptr : &e->plans[plan_id - 1];
}

static int
plan_of_cte(const PlannerInfo *root, const RangeTblEntry *rte)
{
	ListCell   *lc;

	for (Index up = rte->ctelevelsup; up > 0 && root != nullptr; up--)
		root = root->parent_root;
	foreach(lc, root == nullptr ? NIL : root->parse->cteList)
	{
		const int	at = foreach_current_index(lc);

		if (strcmp(lfirst_node(CommonTableExpr, lc)->ctename, rte->ctename) == 0 && at < list_length(root->cte_plan_ids))
			return list_nth_int(root->cte_plan_ids, at);
	}
	return 0;
}

/* Of conditions that may all be true of the same rows: the share that the most selective one leaves. PostgreSQL multiplies. */
static Selectivity
most_selected(PlannerInfo *root, Node *condition)
{
	RestrictInfo *rinfo = IsA(condition, RestrictInfo) ? (RestrictInfo *) condition : nullptr;
	Node	   *clause = rinfo == nullptr ? condition : rinfo->orclause != nullptr ? (Node *) rinfo->orclause : (Node *) rinfo->clause;
	const bool	any = is_orclause(clause);
	Selectivity share = any ? 0 : 1;
	ListCell   *lc;

	if (!any && !is_andclause(clause))
		return clause_selectivity(root, condition, 0, JOIN_INNER, nullptr);
	check_stack_depth();
	foreach(lc, ((const BoolExpr *) clause)->args)
	{
		const Selectivity one = most_selected(root, static_cast<Node *>(lfirst(lc)));

		share = any ? share + one : Min(share, one);
	}
	return Min(share, 1);
}

/* Of a table's rows, those that its conditions leave where they are not independent, as PostgreSQL takes them to be. */
static double
rows_of_conditions(PlannerInfo *root, const RelOptInfo *rel)
{
	Selectivity share = 1;
	ListCell   *lc;

	foreach(lc, rel->baserestrictinfo)
		share = Min(share, most_selected(root, static_cast<Node *>(lfirst(lc))));
	return share * rel->tuples;
}

/* Rows of a relation that is no join: nobody has counted those of CTEs. */
static double
base_rows(PlannerInfo *root, const RelOptInfo *rel, double rows, const Evaluation *e)
{
	const RangeTblEntry *rte = root->simple_rte_array[rel->relid];
	const More *cte = rel->rtekind == RTE_CTE && !rte->self_reference ? more_of_plan(root, plan_of_cte(root, rte), e) : nullptr;

	if (rel->rtekind == RTE_RELATION && rows == rel->rows && rel->baserestrictinfo != NIL)
		return more_rows(rows, rows_of_conditions(root, rel), e);
	return cte == nullptr ? rows : more_rows(rows, cte->rows, e);
}

/* The most rows that one of the relations has, so that no more come of joins by keys of the others. */
static double
largest(PlannerInfo *root, const Relids relids, const Evaluation *e)
{
	double		most = 1;
	int			relid = -1;

	while ((relid = bms_next_member(relids, relid)) >= 0)
	{
		const RelOptInfo *rel = relid < root->simple_rel_array_size ? root->simple_rel_array[relid] : nullptr;

		if (rel != nullptr && rel->reloptkind == RELOPT_BASEREL)
			most = Max(most, base_rows(root, rel, rel->rows, e));
	}
	return most;
}

static bool
has_one_group(const PlannerInfo *root)
{
	const Query *parse = root->parse;

	return parse->hasAggs && parse->groupClause == NIL && parse->groupingSets == NIL;
}

/* Rows of a path of which nothing is known but the relations. */
static double
rows_of_relations(PlannerInfo *root, const Path *path, const Evaluation *e)
{
	const RelOptInfo *rel = path->parent;

	if (rel->reloptkind == RELOPT_BASEREL)
		return base_rows(root, rel, path->rows, e);
	if (rel->reloptkind == RELOPT_JOINREL)
		return more_rows(path->rows, largest(root, rel->relids, e), e);
	if (rel->reloptkind != RELOPT_UPPER_REL || has_one_group(root) || bms_membership(root->all_baserels) != BMS_MULTIPLE)
		return path->rows;
	return more_rows(path->rows, largest(root, root->all_baserels, e), e);
}

/* -- joins ------------------------------------------------------------------------------------------ */

static double
joined_rows(const JoinPath *join, const More &outer, const More &inner, const Evaluation *e)
{
	double		bound = Max(outer.rows, inner.rows);

	if (join->inner_unique || join->jointype == JOIN_SEMI || join->jointype == JOIN_ANTI)
		bound = outer.rows;
	else if (join->innerjoinpath->param_info != nullptr)
		bound = outer.rows * Max(join->innerjoinpath->rows, 1);
	return more_rows(join->path.rows, bound, e);
}

static More
more_of_join(PlannerInfo *root, const JoinPath *join, const Evaluation *e)
{
	const Path *outer = join->outerjoinpath;
	const Path *inner = join->innerjoinpath;
	const More	o = more(root, outer, e);
	const More	i = more(root, inner, e);
	const bool	looked_up = inner->param_info != nullptr;
	const Cost	own = Max(join->path.total_cost - outer->total_cost - (looked_up ? 0 : inner->total_cost), 0);
	const double outer_factor = factor(o, outer);
	const double inner_factor = factor(i, inner);
	Cost		cost;

	if (!IsA(join, NestPath))
		cost = o.cost + i.cost + own * Max(outer_factor, inner_factor);
	else if (looked_up)
		cost = o.cost + own * outer_factor * Max(i.cost / Max(inner->total_cost, 1e-6), 1);
	else
		cost = o.cost + i.cost + own * outer_factor * inner_factor;
	return {cost, joined_rows(join, o, i, e)};
}

/* -- other nodes --------------------------------------------------------------------------------------- */

/* What one node does to each row of another, which is not always planned in the same level. */
static More
more_of_node(PlannerInfo *below_root, const Path *path, const Path *below, const Evaluation *e)
{
	const More	b = more(below_root, below, e);
	const double times = factor(b, below);

	return {b.cost + Max(path->total_cost - below->total_cost, 0) * times, Max(path->rows * times, 1)};
}

static More
more_of_groups(PlannerInfo *root, const Path *path, const Path *below, const Evaluation *e)
{
	More		m = more_of_node(root, path, below, e);
	const double times = m.rows / Max(path->rows, 1);

	m.cost += uncharged_of_distinct(path->pathtarget->exprs, below->rows * times, path->rows);
	if (has_one_group(root))
		m.rows = path->rows;
	return m;
}

static More
more_of_limit(PlannerInfo *root, const LimitPath *limit, const Evaluation *e)
{
	const Path *below = limit->subpath;

	if (ends_early(limit->path.total_cost, below->total_cost))
		return {limit->path.total_cost, limit->path.rows};
	return {more(root, below, e).cost, limit->path.rows};
}

static More
more_of_append(PlannerInfo *root, const Path *path, const List *subpaths, const Evaluation *e)
{
	More		sum = {path->total_cost, 0};
	ListCell   *lc;

	foreach(lc, subpaths)
	{
		const Path *subpath = static_cast<const Path *>(lfirst(lc));
		const More	m = more(root, subpath, e);

		sum.cost += m.cost - subpath->total_cost;
		sum.rows += m.rows;
	}
	return {sum.cost, Max(sum.rows, path->rows)};
}

/* A program takes no harm; what hands it rows may, and what is done with those that it hands out. */
static More
more_of_program(PlannerInfo *root, const CustomPath *path, const Evaluation *e)
{
	const double rows = rows_of_relations(root, &path->path, e);
	Cost		cost = path->path.total_cost + (rows - path->path.rows) * HAND_OUT_US * cost_of_us();
	ListCell   *lc;

	for_each_from(lc, path->custom_paths, 1)
	{
		const Path *child = static_cast<const Path *>(lfirst(lc));

		cost += more(root, child, e).cost - child->total_cost;
	}
	return {cost, rows};
}

static const Path *
set_operation_input(const Path *path)
{
#if PG_VERSION_NUM >= 180000
	return ((const SetOpPath *) path)->leftpath;
#else
	return ((const SetOpPath *) path)->subpath;
#endif
}

static More
more(PlannerInfo *root, const Path *path, const Evaluation *e)
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	switch (nodeTag(path))
	{
		case T_NestPath:
		case T_MergePath:
		case T_HashPath: return more_of_join(root, (const JoinPath *) path, e);
		case T_SubqueryScanPath: return more_of_node(path->parent->subroot, path, ((const SubqueryScanPath *) path)->subpath, e);
		case T_AppendPath: return more_of_append(root, path, ((const AppendPath *) path)->subpaths, e);
		case T_MergeAppendPath: return more_of_append(root, path, ((const MergeAppendPath *) path)->subpaths, e);
		case T_MaterialPath: return more_of_node(root, path, ((const MaterialPath *) path)->subpath, e);
		case T_MemoizePath: return more_of_node(root, path, ((const MemoizePath *) path)->subpath, e);
		case T_UniquePath: return more_of_node(root, path, ((const UniquePath *) path)->subpath, e);
		case T_GatherPath: return more_of_node(root, path, ((const GatherPath *) path)->subpath, e);
		case T_GatherMergePath: return more_of_node(root, path, ((const GatherMergePath *) path)->subpath, e);
		case T_ProjectionPath: return more_of_node(root, path, ((const ProjectionPath *) path)->subpath, e);
		case T_SortPath: return more_of_node(root, path, ((const SortPath *) path)->subpath, e);
		case T_IncrementalSortPath: return more_of_node(root, path, ((const IncrementalSortPath *) path)->spath.subpath, e);
		case T_GroupPath: return more_of_node(root, path, ((const GroupPath *) path)->subpath, e);
		case T_UpperUniquePath: return more_of_node(root, path, ((const UpperUniquePath *) path)->subpath, e);
		case T_WindowAggPath: return more_of_node(root, path, ((const WindowAggPath *) path)->subpath, e);
		case T_SetOpPath: return more_of_node(root, path, set_operation_input(path), e);
		case T_AggPath: return more_of_groups(root, path, ((const AggPath *) path)->subpath, e);
		case T_GroupingSetsPath: return more_of_groups(root, path, ((const GroupingSetsPath *) path)->subpath, e);
		case T_LimitPath: return more_of_limit(root, (const LimitPath *) path, e);
		default:
			if (is_gpuvm_path(path))
				return more_of_program(root, (const CustomPath *) path, e);
			return {path->total_cost, path->param_info != nullptr || path->parent->reloptkind != RELOPT_BASEREL ? path->rows
				: base_rows(root, path->parent, path->rows, e)};
	}
}

static Cost
evaluate(PlannerInfo *root, const Path *path, double most)
{
	const int	nplans = list_length(root->glob->subroots);
	const Evaluation e = {most, static_cast<More *>(palloc0(sizeof(More) * (nplans + 1))), nplans};
	Cost		cost = more(root, path, &e).cost;
	ListCell   *lc;

	foreach(lc, root->init_plans)
	{
		const More *plan = more_of_plan(root, lfirst_node(SubPlan, lc)->plan_id, &e);

		cost += plan == nullptr ? 0 : plan->cost;
	}
	return cost;
}

Expected
expected_of(PlannerInfo *root, const Path *path)
{
	return {evaluate(root, path, 1), evaluate(root, path, TOO_LOW)};
}

}  // namespace gpuvm
