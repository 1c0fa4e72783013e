/*
 * loops.cc: what nested loops would cost if more rows came than PostgreSQL expects.
 *
 * Estimates of joins, groups and conditions on their rows are too low by orders of magnitude now and then. A hash join and a
 * program take little harm by that; a loop over an inner side without an index takes as many times as long.
 */
#include "pg/pg.h"

extern "C" {
#include "miscadmin.h"
#include "optimizer/optimizer.h"
}

#include "planner/loops.h"

namespace gpuvm {

/* So many times as many rows may come. */
constexpr double TOO_LOW = 1000;

/* Rows that nobody has counted: of joins, and of subqueries but those that have one row. */
static bool
is_estimate(const PlannerInfo *root, const RelOptInfo *rel)
{
	const RangeTblEntry *rte;

	if (rel->reloptkind == RELOPT_JOINREL)
		return true;
	if (rel->reloptkind != RELOPT_BASEREL || (rel->rtekind != RTE_SUBQUERY && rel->rtekind != RTE_CTE))
		return false;
	rte = root->simple_rte_array[rel->relid];
	return rte->rtekind == RTE_CTE || !rte->subquery->hasAggs || rte->subquery->groupClause != NIL || rte->subquery->groupingSets != NIL;
}

static double
most_rows(const PlannerInfo *root, const Path *path)
{
	const RelOptInfo *rel = path->parent;
	const double most = rel->reloptkind == RELOPT_BASEREL ? Max(rel->tuples, path->rows) : path->rows * TOO_LOW;

	return is_estimate(root, rel) ? Min(most, path->rows * TOO_LOW) : path->rows;
}

static double
cost_of_loop(const PlannerInfo *root, const NestPath *loop)
{
	const Path *outer = loop->jpath.outerjoinpath;
	const Path *inner = loop->jpath.innerjoinpath;

	/* looked up, or computed, for each outer row */
	if (inner->param_info != nullptr || !is_estimate(root, outer->parent))
		return 0;
	return most_rows(root, outer) * most_rows(root, inner) * cpu_operator_cost;
}

Cost
cost_of_loops(const PlannerInfo *root, const Path *path)
{
	Cost		cost = 0;

	check_stack_depth();
	switch (nodeTag(path))
	{
		case T_NestPath:
			cost = cost_of_loop(root, (const NestPath *) path);
			/* FALLTHROUGH */
		case T_MergePath:
		case T_HashPath:
			return cost + cost_of_loops(root, ((const JoinPath *) path)->outerjoinpath) + cost_of_loops(root, ((const JoinPath *) path)->innerjoinpath);
		case T_SubqueryScanPath:
			return cost_of_loops(path->parent->subroot, ((const SubqueryScanPath *) path)->subpath);
		case T_AppendPath:
			{
				ListCell   *lc;

				foreach(lc, ((const AppendPath *) path)->subpaths)
					cost += cost_of_loops(root, static_cast<const Path *>(lfirst(lc)));
				return cost;
			}
		case T_MaterialPath: return cost_of_loops(root, ((const MaterialPath *) path)->subpath);
		case T_MemoizePath: return cost_of_loops(root, ((const MemoizePath *) path)->subpath);
		case T_UniquePath: return cost_of_loops(root, ((const UniquePath *) path)->subpath);
		case T_GatherPath: return cost_of_loops(root, ((const GatherPath *) path)->subpath);
		case T_GatherMergePath: return cost_of_loops(root, ((const GatherMergePath *) path)->subpath);
		case T_ProjectionPath: return cost_of_loops(root, ((const ProjectionPath *) path)->subpath);
		case T_SortPath: return cost_of_loops(root, ((const SortPath *) path)->subpath);
		case T_IncrementalSortPath: return cost_of_loops(root, ((const IncrementalSortPath *) path)->spath.subpath);
		case T_GroupPath: return cost_of_loops(root, ((const GroupPath *) path)->subpath);
		case T_UpperUniquePath: return cost_of_loops(root, ((const UpperUniquePath *) path)->subpath);
		case T_AggPath: return cost_of_loops(root, ((const AggPath *) path)->subpath);
		case T_GroupingSetsPath: return cost_of_loops(root, ((const GroupingSetsPath *) path)->subpath);
		case T_WindowAggPath: return cost_of_loops(root, ((const WindowAggPath *) path)->subpath);
		case T_LimitPath: return cost_of_loops(root, ((const LimitPath *) path)->subpath);
		default: return 0;
	}
}

}  // namespace gpuvm
