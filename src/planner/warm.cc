/*
 * warm.cc: what PostgreSQL's plans cost where the pages that they read are in memory. It charges random_page_cost for each page that a look-up by an
 * index comes to, the price of a disk: ten rows of ten pages cost as much as 170 us of a program, and take 8. Against a program's price, which is of
 * memory alone, such look-ups count as what they take there; where they would have to be read, PostgreSQL is as slow as without us.
 */
#include "pg/pg.h"

extern "C" {
#include "access/stratnum.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
}

#include "pg/compat.h"
#include "planner/paths.h"
#include "planner/scan_plan.h"
#include "planner/warm.h"

namespace gpuvm {

/* What a page that an index leads to takes in memory, in units of seq_page_cost's default, whatever random_page_cost charges for it: a look-up of ten rows takes 8 us. */
constexpr double PAGE_IN_MEMORY = 0.16;

/* No plan costs less than this part of what PostgreSQL says. */
constexpr double LEAST_SHARE = 0.001;

/* What each row takes at least, since its page is looked up again: of a long scan PostgreSQL charges a page once, however many of its rows are come to one by one. */
constexpr double ROW_IN_MEMORY = 0.04;

/* Of a scan by an index that costs so much and comes to so many rows: what is charged for pages, but for what they take. */
static Cost
saved_by_index(Cost total, double rows)
{
	const double warm = random_page_cost > PAGE_IN_MEMORY ? PAGE_IN_MEMORY / random_page_cost : 1;
	const Cost	pages = total - rows * (cpu_tuple_cost + cpu_index_tuple_cost + 2 * cpu_operator_cost);

	return Max(pages - Max(pages * warm, rows * ROW_IN_MEMORY), 0);
}

/* What a block of a sequential scan takes in memory (0.5 us), of what is charged for it. Against PostgreSQL's own scans a program was compared before. */
constexpr double BLOCK_IN_MEMORY = 0.125;

Cost
saved_by_delta(const List *plan)
{
	return scan_plan_delta_io(plan) * (1 - BLOCK_IN_MEMORY);
}

/* Pages on the way to the first row. */
constexpr double DESCENT_PAGES = 2;

/*
 * The inner side of a nested loop, executed for each row of the outer side, or each different one, unless once is enough. Where it need not be read to its
 * end (EXISTS), the join costs less than that: then as much of it is saved as of the inner side.
 */
static Cost
saved_by_inner(Cost saved, Cost inner, Cost join, double outer_rows, bool once, double different)
{
	const double executions = once ? 1 : different > 0 ? Min(outer_rows, different) : outer_rows;

	return inner <= 0 ? 0 : Min(saved * executions, Max(join, 0) * saved / inner);
}

/* -- paths --------------------------------------------------------------------------------------- */

static Cost saved(const Path *path);

/* Of the partitions, those that one bound leaves when a plan runs. */
constexpr double BEYOND_ONE_BOUND = 0.3333333333333333;

/* What is known of a partition key when a plan runs, and was not when it was made. */
struct RunTimeKeys
{
	Bitmapset  *equal;			/* keys with an equality */
	int			bounds;			/* other comparisons of the first key */
};

static void
add_keys(const RelOptInfo *rel, PartitionScheme scheme, const List *clauses, RunTimeKeys *known)
{
	ListCell   *lc;

	foreach(lc, clauses)
	{
		const RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		const OpExpr *op = (const OpExpr *) rinfo->clause;

		if (!IsA(op, OpExpr) || list_length(op->args) != 2)
			continue;
		for (int i = 0; i < 2 * scheme->partnatts; i++)
		{
			const int	k = i / 2;
			Node	   *key = static_cast<Node *>(list_nth(op->args, i % 2));
			Node	   *value = static_cast<Node *>(list_nth(op->args, 1 - i % 2));
			const int	strategy = get_op_opfamily_strategy(op->opno, scheme->partopfamily[k]);

			if (strategy == 0 || !list_member(rel->partexprs[k], IsA(key, RelabelType) ? (Node *) ((RelabelType *) key)->arg : key) ||
				IsA(value, Const) || contain_volatile_functions(value) || bms_overlap(i % 2 == 0 ? rinfo->right_relids : rinfo->left_relids, rel->relids))
				continue;
			if (scheme->strategy == PARTITION_STRATEGY_HASH || strategy == BTEqualStrategyNumber)
				known->equal = bms_add_member(known->equal, k);
			else if (k == 0)
				known->bounds++;
		}
	}
}

/*
 * Which part of its partitions an Append reads, of those that were left when it was planned: PostgreSQL charges for all of them, and leaves out what a parameter's
 * value, known when it runs, rules out. A program opens them all.
 */
static double
partitions_read(const Path *path, int nsubpaths)
{
	const RelOptInfo *rel = path->parent;
	PartitionScheme scheme = partition_scheme(rel);
	RunTimeKeys known = {};

	if (!enable_partition_pruning || rel->reloptkind != RELOPT_BASEREL || scheme == nullptr || rel->partexprs == nullptr || nsubpaths < 2)
		return 1;
	add_keys(rel, scheme, rel->baserestrictinfo, &known);
	if (path->param_info != nullptr)
		add_keys(rel, scheme, path->param_info->ppi_clauses, &known);
	if (known.bounds >= 2 || (scheme->strategy == PARTITION_STRATEGY_HASH ? bms_num_members(known.equal) == scheme->partnatts : bms_is_member(0, known.equal)))
		return 1.0 / nsubpaths;
	return known.bounds == 1 ? BEYOND_ONE_BOUND : 1;
}

/* Of an Append's partitions, or the arms of a set operation: what is saved in each that is read, and all of those that are not. */
static Cost
saved_by_append(const Path *path, const List *subpaths)
{
	const double read = partitions_read(path, list_length(subpaths));
	Cost		sum = 0;
	ListCell   *lc;

	foreach(lc, subpaths)
	{
		const Path *subpath = static_cast<const Path *>(lfirst(lc));

		sum += subpath->total_cost - read * (subpath->total_cost - saved(subpath));
	}
	return sum;
}

static Cost
saved_by_nest(const NestPath *path)
{
	const JoinPath *join = compat_join_path(path);
	const Path *outer = join->outerjoinpath;
	const Path *inner = join->innerjoinpath;
	const double different = IsA(inner, MemoizePath) ? ((const MemoizePath *) inner)->est_entries : 0;

	return saved(outer) + saved_by_inner(saved(inner), inner->total_cost, join->path.total_cost - outer->total_cost, outer->rows, IsA(inner, MaterialPath), different);
}

/* A merge join does not read a side to its end whose keys go on beyond those of the other. */
static Cost
saved_by_join(const JoinPath *join)
{
	const Cost	below = join->outerjoinpath->total_cost + join->innerjoinpath->total_cost;
	const double read = below > join->path.total_cost ? join->path.total_cost / below : 1;

	return read * (saved(join->outerjoinpath) + saved(join->innerjoinpath));
}

/* It may not ask for all rows. */
static Cost
saved_by_limit(const LimitPath *limit)
{
	const Path *below = limit->subpath;

	return below->total_cost <= 0 ? 0 : saved(below) * Min(limit->path.total_cost / below->total_cost, 1);
}

/* What a path of one child is above; NULL: it is none, or nothing is known of it. */
static const Path *
path_below(const Path *path)
{
	switch (nodeTag(path))
	{
		case T_AggPath: return ((const AggPath *) path)->subpath;
		case T_GroupPath: return ((const GroupPath *) path)->subpath;
		case T_GroupingSetsPath: return ((const GroupingSetsPath *) path)->subpath;
		case T_ProjectionPath: return ((const ProjectionPath *) path)->subpath;
		case T_SortPath: return ((const SortPath *) path)->subpath;
		case T_IncrementalSortPath: return ((const IncrementalSortPath *) path)->spath.subpath;
		case T_SubqueryScanPath: return ((const SubqueryScanPath *) path)->subpath;
		case T_MaterialPath: return ((const MaterialPath *) path)->subpath;
		case T_MemoizePath: return ((const MemoizePath *) path)->subpath;
		case T_UniquePath: return ((const UniquePath *) path)->subpath;
		case T_UpperUniquePath: return ((const UpperUniquePath *) path)->subpath;
		case T_WindowAggPath: return ((const WindowAggPath *) path)->subpath;
		default: return nullptr;
	}
}

static Cost
saved(const Path *path)
{
	Cost		sum = 0;

	if (path == nullptr)
		return 0;
	check_stack_depth();
	switch (nodeTag(path))
	{
		case T_IndexPath:
			sum = saved_by_index(path->total_cost, Max(path->rows, ((const IndexPath *) path)->indexselectivity * path->parent->tuples));
			break;
		case T_BitmapHeapPath: sum = saved_by_index(path->total_cost, path->rows); break;
		case T_NestPath: sum = saved_by_nest((const NestPath *) path); break;
		case T_MergePath:
		case T_HashPath: sum = saved_by_join((const JoinPath *) path); break;
		case T_AppendPath: sum = saved_by_append(path, ((const AppendPath *) path)->subpaths); break;
		case T_MergeAppendPath: sum = saved_by_append(path, ((const MergeAppendPath *) path)->subpaths); break;
		case T_LimitPath: sum = saved_by_limit((const LimitPath *) path); break;
		default: sum = saved(path_below(path)); break;
	}
	return Min(sum, path->total_cost * (1 - LEAST_SHARE));
}

Cost
warm_cost(const Path *path)
{
	return path->total_cost - saved(path);
}

/* Rows that come out of a join, and look-ups of the inner side of a nested loop, for those of the outer side. */
static Cost
missed_by_join(const JoinPath *join)
{
	const Path *outer = join->outerjoinpath;
	const Path *inner = join->innerjoinpath;
	const double more = rows_missed(outer->parent) - 1;
	Cost		sum = missed_cost(outer) + missed_cost(inner) + (rows_missed(join->path.parent) - 1) * join->path.rows * (cpu_tuple_cost + ROW_IN_MEMORY);

	if (IsA(join, NestPath) && !IsA(inner, MaterialPath))
		sum += more * outer->rows * warm_cost(inner);
	return sum;
}

Cost
missed_cost(const Path *path)
{
	if (path == nullptr)
		return 0;
	check_stack_depth();
	switch (nodeTag(path))
	{
		case T_NestPath:
		case T_MergePath:
		case T_HashPath: return missed_by_join((const JoinPath *) path);
		default: return missed_cost(path_below(path));
	}
}

/* -- plans --------------------------------------------------------------------------------------- */

static Cost saved(const Plan *plan, const PlannedStmt *stmt);

/*
 * What is charged too much for a comparison with ANY value of a subquery, where first rows are wanted: it stops at the first row that meets it. PostgreSQL
 * takes that for the one in the middle, though half of the rows are expected to. Of equalities nothing is known.
 */
static Cost
saved_by_any(const PlannedStmt *stmt, const SubPlan *subplan, const Plan *plan)
{
	const OpExpr *test = (const OpExpr *) subplan->testexpr;

	if (!IsA(stmt->planTree, Limit) || subplan->subLinkType != ANY_SUBLINK || subplan->useHashTable || !IsA(test, OpExpr) || op_hashjoinable(test->opno, exprType(static_cast<Node *>(linitial(test->args)))))
		return 0;
	return (plan->total_cost - plan->startup_cost) * Max(0.5 - 1 / (1 + 0.5 * plan->plan_rows), 0);
}

struct Subplans
{
	const PlannedStmt *stmt;
	Cost		total;			/* of one execution of each */
	Cost		saved;
};

static bool
add_subplans(Node *node, void *context)
{
	Subplans   *s = static_cast<Subplans *>(context);

	if (node == nullptr)
		return false;
	if (IsA(node, SubPlan) && ((SubPlan *) node)->parParam != NIL)
	{
		const Plan *plan = static_cast<const Plan *>(list_nth(s->stmt->subplans, ((SubPlan *) node)->plan_id - 1));
		const Cost	run = plan->total_cost - plan->startup_cost;
		const Cost	any = saved_by_any(s->stmt, (SubPlan *) node, plan);

		s->total += any > 0 ? plan->startup_cost + run / 2 : plan->total_cost;
		s->saved += any > 0 ? any : saved(plan, s->stmt);
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(add_subplans), context);
}

static Cost
saved_by_nest(const NestLoop *plan, const PlannedStmt *stmt)
{
	const Plan *outer = plan->join.plan.lefttree;
	const Plan *inner = plan->join.plan.righttree;
	const double different = IsA(inner, Memoize) ? ((const Memoize *) inner)->est_entries : 0;

	return saved(outer, stmt) + saved_by_inner(saved(inner, stmt), inner->total_cost, plan->join.plan.total_cost - outer->total_cost, outer->plan_rows, IsA(inner, Material), different);
}

/* Then not all that a scan costs is for what it reads. */
static bool
has_subplans(const Plan *plan)
{
	return contain_subplans((Node *) plan->qual) || contain_subplans((Node *) plan->targetlist);
}

/* How often a node executes its subplans nobody has written down: what it costs beyond the nodes below is taken for theirs. */
static Cost
saved(const Plan *plan, const PlannedStmt *stmt)
{
	Subplans	subplans = {stmt, 0, 0};
	List	   *below = NIL;
	Cost		own = plan != nullptr ? plan->total_cost : 0;
	Cost		sum = 0;
	ListCell   *lc;

	if (plan == nullptr)
		return 0;
	check_stack_depth();
	switch (nodeTag(plan))
	{
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
			own = has_subplans(plan) ? Min(own, (plan->plan_rows + DESCENT_PAGES) * random_page_cost) : own;
			sum = saved_by_index(own, plan->plan_rows);
			own = plan->total_cost - own;
			break;
		case T_CustomScan:
			if (is_gpuvm_scan(plan))
			{
				sum = saved_by_delta(((const CustomScan *) plan)->custom_private);
				/* behind the alternative, or in its place, are stages */
				below = list_copy_tail(((const CustomScan *) plan)->custom_plans, 1);
			}
			break;
		case T_NestLoop: sum = saved_by_nest((const NestLoop *) plan, stmt); break;
		case T_Append: below = ((const Append *) plan)->appendplans; break;
		case T_MergeAppend: below = ((const MergeAppend *) plan)->mergeplans; break;
		case T_SubqueryScan: below = list_make1(((const SubqueryScan *) plan)->subplan); break;
		default: below = list_make2(plan->lefttree, plan->righttree); break;
	}
	foreach(lc, below)
	{
		const Plan *child = static_cast<const Plan *>(lfirst(lc));

		sum += saved(child, stmt);
		own -= child == nullptr ? 0 : child->total_cost;
	}
	/* LIMIT, or a merge join, does not ask for all rows */
	if (own < 0)
		sum *= plan->total_cost / (plan->total_cost - own);
	add_subplans((Node *) plan->qual, &subplans);
	add_subplans((Node *) plan->targetlist, &subplans);
	if (subplans.total > 0 && own > 0)
		sum += own * subplans.saved / subplans.total;
	return Min(sum, plan->total_cost * (1 - LEAST_SHARE));
}

double
warm_share(const PlannedStmt *stmt)
{
	const Plan *plan = stmt->planTree;

	return plan->total_cost > 0 ? 1 - saved(plan, stmt) / plan->total_cost : 1;
}

}  // namespace gpuvm
