/*
 * group_rows.cc: our path of groups beside PostgreSQL's that look at each row.
 *
 * Two things PostgreSQL charges too little for decide between them: an aggregate's DISTINCT sorts for nothing (before version 16 always),
 * and a regular expression costs as much as an addition. Programs count groups, and evaluate such functions once for each entry of a dictionary.
 */
#include "pg/pg.h"

extern "C" {
#include "access/transam.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

#include <cmath>

#include "planner/cost.h"
#include "planner/group_rows.h"
#include "planner/paths.h"

namespace gpuvm {

/* A regular expression that is looked for in a text of some 70 characters: 0.2 to 6 microseconds were measured. */
constexpr double REGEXP_US = 2;

bool
is_regexp(Oid function)
{
	const char *name = function < FirstNormalObjectId ? get_func_name(function) : nullptr;

	return function == F_SUBSTRING_TEXT_TEXT || (name != nullptr && strncmp(name, "regexp_", 7) == 0);
}

static bool
count_regexps(Node *node, void *context)
{
	if (node == nullptr)
		return false;
	*static_cast<int *>(context) += IsA(node, FuncExpr) && is_regexp(((const FuncExpr *) node)->funcid);
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(count_regexps), context);
}

Cost
uncharged_of_functions(Node *expr)
{
	int			n = 0;

	count_regexps(expr, &n);
	return n * REGEXP_US * cost_of_us();
}

Cost
uncharged_of_distinct(const List *exprs, double rows, double groups)
{
	const double sorted = rows * 2 * cpu_operator_cost * std::log2(Max(rows / Max(groups, 1), 2));
	Cost		cost = 0;
	ListCell   *lc;

	foreach(lc, exprs)
	{
		const Node *expr = static_cast<const Node *>(lfirst(lc));

		if (IsA(expr, Aggref) && ((const Aggref *) expr)->aggdistinct != NIL)
			cost += sorted;
	}
	return cost;
}

/* What PostgreSQL does not charge for the keys and aggregates of so many rows in so many groups. */
static Cost
uncharged_of_rows(List *exprs, double rows, double groups)
{
	return rows * uncharged_of_functions(reinterpret_cast<Node *>(exprs)) + uncharged_of_distinct(exprs, rows, groups);
}

/* Does the path group, by a sort or a hash table of its own, what our path for the input gives? A sort below Unique is DISTINCT's. */
static bool
groups_our_rows(const Path *path, const RelOptInfo *input)
{
	bool		groups = false;

	for (;;)
	{
		switch (path->pathtype)
		{
			case T_Agg:
				groups = groups || ((const AggPath *) path)->aggstrategy != AGG_SORTED;
				path = ((const AggPath *) path)->subpath;
				break;
			case T_Group:
				path = ((const GroupPath *) path)->subpath;
				break;
			case T_Sort:
				groups = true;
				path = ((const SortPath *) path)->subpath;
				break;
			case T_Unique:
				if (!IsA(path, UpperUniquePath))
					return false;
				path = ((const UpperUniquePath *) path)->subpath;
				break;
			case T_Result:
				if (!IsA(path, ProjectionPath))
					return false;
				path = ((const ProjectionPath *) path)->subpath;
				break;
			default:
				return groups && path->parent == input && is_gpuvm_path(path);
		}
	}
}

/*
 * Groups that PostgreSQL makes of rows that a program hands out take what the program takes, and more, by how many rows
 * there are: that is an estimate, and where it says a few, the planner takes the sort's order for worth what is left.
 */
void
settle_groups(RelOptInfo *grouped_rel, const RelOptInfo *input, List *exprs, Path *ours)
{
	const Cost	uncharged = uncharged_of_rows(exprs, input->rows, ours->rows);
	const int	processes = input->partial_pathlist == NIL ? 1 : 1 + max_parallel_workers_per_gather;
	Cost		least = ours->total_cost;
	bool		best = true;
	ListCell   *lc;

	foreach(lc, grouped_rel->pathlist)
	{
		const Path *path = static_cast<const Path *>(lfirst(lc));

		if (groups_our_rows(path, input) && path->total_cost * AS_GOOD + uncharged >= ours->total_cost)
			grouped_rel->pathlist = foreach_delete_current(grouped_rel->pathlist, lc);
		else if (path->total_cost + uncharged / processes < ours->total_cost)
			best = false;
		else
			least = Min(least, path->total_cost);
	}
	if (best)
	{
		ours->total_cost = least;
		ours->startup_cost = Min(ours->startup_cost, least);
	}
}

}  // namespace gpuvm
