/* planner.cc: the planner hooks. */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_class.h"
#include "nodes/parsenodes.h"
#include "nodes/pathnodes.h"
#include "optimizer/geqo.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
}

#include <cmath>

#include "compiler/facts.h"
#include "pg/compat.h"
#include "pg/settings.h"
#include "plan/rel.h"
#include "plan/shadow.h"
#include "planner/cost.h"
#include "planner/hidden.h"
#include "planner/idle_tables.h"
#include "planner/lowering.h"
#include "planner/order.h"
#include "planner/paths.h"
#include "planner/planner.h"
#include "planner/reasons.h"
#include "planner/warm.h"
#include "planner/whole.h"
#include "store/registry.h"

namespace gpuvm {

static planner_hook_type next_planner;
static set_rel_pathlist_hook_type next_set_rel_pathlist;
static join_search_hook_type next_join_search;
static set_join_pathlist_hook_type next_set_join_pathlist;
static create_upper_paths_hook_type next_create_upper_paths;

/* Planning a query once more takes up to 0.3 ms: nothing is gained of one that takes not much longer. In starts of a program. */
constexpr double LONG_PLAN = 12;

/* Rows of a cursor that somebody looks at first. */
constexpr double SCREENFUL = 50;
/* How soon they are there matters no more below this; in starts of a program, half a millisecond. */
constexpr double AT_ONCE = 8;

/* Depth of nested planning (functions inlined or evaluated while planning): reasons belong to the outermost. */
static int	planning_depth;

/* What is asked of the plan that is being made, by a cursor. */
struct CursorPlanning
{
	bool		alone;			/* no programs for parts of it */
	List	   *levels;			/* that may be run in stages, the statement itself among them (WholeStatement) */
	bool		cursor;			/* is it one at all? WHERE CURRENT OF looks for the scan of a leaf, so leaves are scanned one by one */
	bool		for_back;		/* one that says nothing of SCROLL can go back where its plan can, as a Sort can */
	bool		current_of;		/* one with SCROLL whose rows are a table's: what can go back is put above a scan of ours, and WHERE CURRENT OF does not look below that */
};
static CursorPlanning planning;

/* Of the last statement planned (JoinNotes.missed_share). */
static double missed_share = 1;

/* What a query pays that reads no imported table: this, once for each relation. */
static bool
active(void)
{
	return setting_enabled && !planning.alone && (registry_any() || reasons_wanted);
}

/*
 * Does a path cost less than the start of any program? Then nothing else is to be
 * looked at: transactions of a row or two pay for no plan of ours.
 */
static bool
hopeless(const PlannerInfo *root, const RelOptInfo *rel)
{
	ListCell   *lc;

	if (setting_force || setting_require != REQUIRE_ANY || reasons_wanted)
		return false;
	foreach(lc, rel->pathlist)
	{
		const Path *path = static_cast<const Path *>(lfirst(lc));

		if (path->param_info == nullptr && warm_cost(path) < least_cost(root))
			return true;
	}
	return false;
}

/* How many tables are in the join tree? */
static int
count_relations(const Query *query, const Node *jointree)
{
	int			n = 0;
	ListCell   *lc;

	if (IsA(jointree, RangeTblRef))
		return rt_fetch(((const RangeTblRef *) jointree)->rtindex, query->rtable)->rtekind == RTE_RELATION;
	if (IsA(jointree, JoinExpr))
		return 2;
	foreach(lc, ((const FromExpr *) jointree)->fromlist)
		n += count_relations(query, static_cast<const Node *>(lfirst(lc)));
	return n;
}

/*
 * A cursor whose rows are those of one table's scan, of one of several tables below UNION ALL? WHERE CURRENT OF looks for
 * that scan.
 */
static bool
has_current_row(const Query *parse, int cursor_options)
{
	const SetOperationStmt *set = (const SetOperationStmt *) parse->setOperations;

	return (cursor_options & CURSOR_OPT_FAST_PLAN) != 0 && !parse->hasAggs && parse->groupClause == NIL &&
		parse->distinctClause == NIL && parse->sortClause == NIL &&
		(set == nullptr || (set->op == SETOP_UNION && set->all)) &&
		count_relations(parse, (const Node *) parse->jointree) < 2;
}

static PlannedStmt *
plan_query(Query *parse, const char *query_string, int cursor_options, ParamListInfo params,
		   List *levels = NIL, bool alone = false)
{
	PlannedStmt *volatile result = nullptr;
	HiddenScheme *outer = begin_hiding();
	JoinNotes	joins;
	JoinNotes  *outer_joins = begin_joins(&joins);
	CursorPlanning outer_planning = planning;

	facts_forget();
	planning_depth++;
	planning.alone = alone;
	planning.levels = levels;
	planning.cursor = (cursor_options & CURSOR_OPT_FAST_PLAN) != 0;
	planning.for_back = planning.cursor && (cursor_options & (CURSOR_OPT_SCROLL | CURSOR_OPT_NO_SCROLL)) == 0;
	planning.current_of = (cursor_options & CURSOR_OPT_SCROLL) != 0 && has_current_row(parse, cursor_options);
	PG_TRY();
	{
		result = next_planner != nullptr ? next_planner(parse, query_string, cursor_options, params)
			: standard_planner(parse, query_string, cursor_options, params);
	}
	PG_FINALLY();
	{
		planning_depth--;
		planning = outer_planning;
		missed_share = Max(joins.missed_share, 1);
		end_hiding(outer);
		end_joins(outer_joins);
		facts_forget();
		remember_path(nullptr, nullptr);
	}
	PG_END_TRY();
	return result;
}

/* Where a query is planned more than once: what is made of it but the plan is not kept. */
static PlannedStmt *
plan_apart(const Query *parse, const char *query_string, int cursor_options, ParamListInfo params,
		   List *levels = NIL, bool alone = false)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuvm planning", ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(context);
	PlannedStmt *stmt = plan_query(static_cast<Query *>(copyObjectImpl(parse)), query_string, cursor_options, params,
								   levels, alone);

	MemoryContextSwitchTo(outer);
	stmt = static_cast<PlannedStmt *>(copyObjectImpl(stmt));
	MemoryContextDelete(context);
	return stmt;
}

PlannedStmt *
plan_alone(Query *query)
{
	return plan_query(query, "", 0, nullptr, NIL, true);
}

static bool
is_fast_cursor(int cursor_options)
{
	return (cursor_options & CURSOR_OPT_FAST_PLAN) != 0 && cursor_tuple_fraction < 1;
}

static double
fraction_cost(const Plan *plan, double fraction)
{
	return plan->startup_cost + fraction * (plan->total_cost - plan->startup_cost);
}

/*
 * What is expected to be spent on what is fetched of it, with its pages in memory. Whoever declares a cursor may want a screenful as well as cursor_tuple_fraction
 * of the rows, and a program that joins or sorts has done nearly all of its work before the first: what both cost counts the same, so the middle of their magnitudes.
 */
static double
expected_cost(const PlannedStmt *stmt, int cursor_options)
{
	const Plan *plan = stmt->planTree;
	double		share = warm_share(stmt);

	if (!is_fast_cursor(cursor_options))
		return share * plan->total_cost;
	return sqrt(share * fraction_cost(plan, cursor_tuple_fraction) *
				Max(share * fraction_cost(plan, Min(cursor_tuple_fraction, SCREENFUL / Max(plan->plan_rows, 1))), AT_ONCE * least_cost(nullptr)));
}

/*
 * Is a plan of PostgreSQL's alone worth a look, should one of ours be taken? Where first rows are wanted: of two plans for a relation below a join PostgreSQL keeps the one that
 * costs less for all of its rows, which is ours, where a nested loop of its own would have come to its first rows before a program has begun; of a cursor it knows nothing but
 * cursor_tuple_fraction. Where there are subqueries: of EXISTS by look-ups and by a hash table, which we make cheaper, it takes the latter by what look-ups in pages on a disk cost.
 * And where relations are joined: of look-ups for a few rows and a join of whole relations, likewise, and what is above the join is offered only the one that it took.
 */
static bool
may_be_better_alone(const Query *parse, int cursor_options)
{
	return parse->commandType == CMD_SELECT && !setting_force && setting_require == REQUIRE_ANY &&
		(parse->hasSubLinks || is_fast_cursor(cursor_options) || list_length(parse->rtable) > 1);
}

/* Does a plan take long enough for another to be looked for? Not with first rows: what they cost is not what PostgreSQL has compared. */
static bool
is_long(const PlannedStmt *stmt, const Query *parse, int cursor_options)
{
	return parse->hasSubLinks || parse->limitCount != nullptr || is_fast_cursor(cursor_options) ||
		stmt->planTree->total_cost > LONG_PLAN * least_cost(nullptr);
}

/* Does the plan of PostgreSQL's alone suffer from rows that it does not expect, and ours not? A LIMIT may end it early; what has joins of PostgreSQL's, too, suffers likewise. */
static bool
suffers_alone(const PlannedStmt *alone, const PlannedStmt *ours)
{
	const Plan *plan = alone->planTree;

	if (IsA(plan, Limit) && ends_early(plan->total_cost, plan->lefttree->total_cost))
		return false;
	for (plan = ours->planTree; plan->lefttree != nullptr; plan = plan->lefttree)
	{
		if (plan->righttree != nullptr)
			return false;
	}
	return IsA(plan, CustomScan);
}

/*
 * The one of these that costs less: programs for parts of the statement, or PostgreSQL's plan without any of ours.
 * missed: of the former's planning (missed_share).
 */
static PlannedStmt *
with_parts_or_alone(PlannedStmt *parts, PlannedStmt *alone, int cursor_options, double missed)
{
	const Cost	cost = expected_cost(alone, cursor_options) * (suffers_alone(alone, parts) ? missed : 1);

	return cost < expected_cost(parts, cursor_options) ? alone : parts;
}

/* The one that is better, where one program could do it all: without stages, if that is what it does. */
static PlannedStmt *
with_parts_or_stages(PlannedStmt *parts, PlannedStmt *stages, int cursor_options)
{
	if (is_one_program(parts))
		return parts;
	return setting_force || expected_cost(stages, cursor_options) < expected_cost(parts, cursor_options) ? stages : parts;
}

/*
 * Paths are compared by what PostgreSQL charges for pages on a disk. With its pages in memory, may the alternative of
 * stages cost less than they do?
 */
static bool
alternative_may_be_better(const PlannedStmt *stages, int cursor_options)
{
	PlannedStmt alone = *stages;

	if (IsA(stages->planTree, Limit) || is_fast_cursor(cursor_options))
		return true;
	alone.planTree = alternative_of_stages(stages);
	return expected_cost(&alone, cursor_options) < expected_cost(stages, cursor_options);
}

/* Statements of more tables are not planned twice: the search for the order of their joins takes most of the time. */
constexpr int MOST_FOR_TWO_PLANNINGS = 6;

/* A query level without subqueries, of which one program may be all. */
static bool
is_simple(const Query *parse)
{
	ListCell   *lc;

	foreach(lc, parse->rtable)
	{
		if (lfirst_node(RangeTblEntry, lc)->rtekind == RTE_SUBQUERY)
			return false;
	}
	return !parse->hasSubLinks && !parse->hasWindowFuncs && parse->cteList == NIL && parse->setOperations == nullptr;
}

/* Is such a level more than scans and joins? */
static bool
groups_or_sorts(const Query *parse)
{
	return parse->hasAggs || parse->groupClause != NIL || parse->groupingSets != NIL || parse->distinctClause != NIL ||
		parse->sortClause != NIL || parse->limitCount != nullptr || parse->limitOffset != nullptr;
}

/*
 * In stages or without any program, whatever costs less, in one planning without paths for parts of the statement.
 * final: nothing is to be gained of those paths.
 * Where the statement has no stages, and where they are one program, which those paths may be, too, it is planned once more.
 */
static PlannedStmt *
plan_in_stages(const Query *parse, WholeStatement *whole, const char *query_string, int cursor_options,
			   ParamListInfo params, int ntables, bool *final)
{
	PlannedStmt *stmt = plan_apart(parse, query_string, cursor_options, params, list_make1(whole), true);
	PlannedStmt *alone;

	/* of a table that is not imported stages read all rows, where PostgreSQL may look up a few */
	*final = whole->cheap || (whole->made && ((whole->several && !whole->external) || ntables > MOST_FOR_TWO_PLANNINGS));
	if (!*final || ntables > MOST_FOR_TWO_PLANNINGS || !is_whole_plan(stmt) ||
		!may_be_better_alone(parse, cursor_options) || !is_long(stmt, parse, cursor_options) ||
		!alternative_may_be_better(stmt, cursor_options))
		return stmt;
	alone = plan_apart(parse, query_string, cursor_options, params, NIL, true);
	return with_parts_or_alone(stmt, alone, cursor_options, 1);
}

/*
 * With programs for parts of the statement. alone: PostgreSQL's plan without them, if it is known; levels: those that
 * may be run in stages as well, which a copy of the statement has (`with`).
 */
static PlannedStmt *
plan_in_parts(Query *parse, const char *query_string, int cursor_options, ParamListInfo params, PlannedStmt *alone,
			  List *levels = NIL, Query *with = nullptr)
{
	const bool	better_alone = may_be_better_alone(parse, cursor_options);
	PlannedStmt *result;
	double		missed;

	if (!better_alone && levels == NIL)
		return plan_query(parse, query_string, cursor_options, params);
	result = plan_apart(with != nullptr ? with : parse, query_string, cursor_options, params, levels);
	missed = missed_share;
	if (better_alone && has_gpuvm_scan(result) && is_long(result, parse, cursor_options))
	{
		if (alone == nullptr)
			alone = plan_apart(parse, query_string, cursor_options, params, NIL, true);
		result = with_parts_or_alone(result, alone, cursor_options, missed);
	}
	return result;
}

/* The same of a statement that has no stages: levels of it may. */
static PlannedStmt *
plan_levels(Query *parse, const char *query_string, int cursor_options, ParamListInfo params, PlannedStmt *alone)
{
	List	   *levels = NIL;
	Query	   *with = nullptr;

	if (setting_whole_query == WHOLE_QUERY_ON && planning_depth == 0)
		with = with_levels(parse, &levels);
	return plan_in_parts(parse, query_string, cursor_options, params, alone, levels, with);
}

/* The statement as it is planned with stages, and what these are for; NULL: it is never run so. */
static Query *
with_stages(Query *parse, int cursor_options, WholeStatement *whole)
{
	if (setting_whole_query != WHOLE_QUERY_ON || planning_depth > 0 || has_current_row(parse, cursor_options))
		return nullptr;
	if (parse->commandType == CMD_INSERT)
		return insert_with_level(parse, whole);
	whole->query = parse;
	return parse->commandType == CMD_SELECT ? parse : nullptr;
}

static PlannedStmt *
plan_in_all_ways(Query *parse, const char *query_string, int cursor_options, ParamListInfo params)
{
	const TablesRead tables = active() ? tables_read(parse) : TablesRead{};
	WholeStatement whole = {};
	Query	   *staged;
	PlannedStmt *first;
	PlannedStmt *result;
	Reasons    *reasons;
	bool		final;

	if (!tables.imported)
		return plan_query(parse, query_string, cursor_options, params);
	if (setting_whole_query == WHOLE_QUERY_SHADOW)
		shadow_statement(parse);
	staged = with_stages(parse, cursor_options, &whole);
	if (staged == nullptr)
		return plan_levels(parse, query_string, cursor_options, params, nullptr);
	if (is_simple(whole.query) && tables.number <= MOST_FOR_TWO_PLANNINGS)
	{
		/* scans and joins, which PostgreSQL pulls up, are planned below INSERT as they stand */
		if (staged != parse && !groups_or_sorts(whole.query))
			return plan_in_parts(parse, query_string, cursor_options, params, nullptr);
		return plan_in_parts(staged, query_string, cursor_options, params, nullptr, list_make1(&whole));
	}
	first = plan_in_stages(staged, &whole, query_string, cursor_options, params, tables.number, &final);
	if (final)
		return first;
	reasons = reasons_save();
	reasons_reset();
	if (is_whole_plan(first))
		result = with_parts_or_stages(plan_apart(parse, query_string, cursor_options, params), first, cursor_options);
	else if (whole.made)
		result = plan_in_parts(parse, query_string, cursor_options, params, first);
	else
		result = plan_levels(parse, query_string, cursor_options, params, first);
	/* what stands in the way of paths that are not taken is of no interest */
	if (result == first)
		reasons_restore(reasons);
	else
		reasons_append(reasons);
	return result;
}

static PlannedStmt *
gpuvm_planner(Query *parse, const char *query_string, int cursor_options, ParamListInfo params)
{
	PlannedStmt *volatile result = nullptr;
	const bool	outer_facts = facts_begin();
	const HiddenTables outer_hidden = hidden_tables();

	if (planning_depth == 0)
		reasons_reset();
	PG_TRY();
	{
		if (setting_enabled)
			hidden_begin(parse);
		result = plan_in_all_ways(parse, query_string, cursor_options, params);
		if (is_whole_plan(result))
			shrink_idle_tables(result);
	}
	PG_FINALLY();
	{
		hidden_end(outer_hidden);
		facts_end(outer_facts);
	}
	PG_END_TRY();
	return result;
}

static void
gpuvm_set_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	ScanTarget	target = {};

	if (next_set_rel_pathlist != nullptr)
		next_set_rel_pathlist(root, rel, rti, rte);
	if (!active() || rte->rtekind != RTE_RELATION || hopeless(root, rel) || (planning.cursor && rte->relkind == RELKIND_PARTITIONED_TABLE))
		return;
	/* an arm of UNION ALL without rows: a path of ours would be taken for it, and read all */
	if (rel->reloptkind == RELOPT_OTHER_MEMBER_REL && IS_DUMMY_REL(rel))
		return;
	if (!usable_relation(root, rel, &target))
		return;
	if (planning.current_of && root->query_level == 1)
	{
		note_reason(root, rel, "Scan", "UPDATE and DELETE find the current row of a SCROLL cursor in PostgreSQL's scans only", "Declare the cursor with NO SCROLL.");
		return;
	}
	if (!add_rows_path(root, rel, &target))
		return;
	if (!planning.for_back)
		add_sorted_rows(root, rel);
	if (target.leaves != NIL && planning_depth > 0)
		hide_partitions(root, rel);
}

/* A join whose partitions are joined one by one, too, keeps a path of ours like a table (partitions.cc). */
static RelOptInfo *
gpuvm_join_search(PlannerInfo *root, int levels_needed, List *initial_rels)
{
	RelOptInfo *rel;

	if (next_join_search != nullptr)
		rel = next_join_search(root, levels_needed, initial_rels);
	else if (enable_geqo && levels_needed >= geqo_threshold)
	{
		rel = geqo(root, levels_needed, initial_rels);
		/* it may be of a join that geqo has tried and freed, where this one is now */
		remember_path(nullptr, nullptr);
	}
	else
		rel = standard_join_search(root, levels_needed, initial_rels);
	if (active() && planning_depth > 0 && !hopeless(root, rel))
	{
		bool		added;

		add_gated_join(root, rel);
		added = offer_whole_join(root, rel);
		if (!planning.for_back && bms_is_subset(root->all_baserels, rel->relids))
			added |= add_sorted_rows(root, rel);
		if (added)
			set_cheapest(rel);
	}
	if (rel->part_scheme != nullptr && planning_depth > 0 && rel->cheapest_total_path != nullptr && is_gpuvm_path(rel->cheapest_total_path))
		hide_partitions(root, rel);
	return rel;
}

static void
gpuvm_set_join_pathlist(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outer, RelOptInfo *inner, JoinType jointype,
						JoinPathExtraData *extra)
{
	if (next_set_join_pathlist != nullptr)
		next_set_join_pathlist(root, joinrel, outer, inner, jointype, extra);
	/* what it notes lives as long as one planner */
	if (active() && planning_depth > 0 && !(bms_is_subset(root->all_baserels, joinrel->relids) && hopeless(root, joinrel)))
		add_join_path(root, joinrel, outer, inner, jointype, extra);
}

/* DISTINCT straight above scans and joins is a GROUP BY of everything. */
static bool
is_plain_distinct(const Query *parse)
{
	return !parse->hasDistinctOn && !parse->hasAggs && !parse->hasWindowFuncs && !parse->hasTargetSRFs && parse->groupClause == NIL &&
		parse->groupingSets == NIL && parse->havingQual == nullptr;
}

/*
 * With enable_partitionwise_aggregate: the groups of one partition, by keys that partitions do not share. Where all partitions are
 * imported they are one table, too, and this costs more.
 */
static void
add_partition_groups(PlannerInfo *root, RelOptInfo *partition, RelOptInfo *grouped_rel, const GroupPathExtraData *grouping)
{
	ScanTarget	scan = {};
	ScanShape	shape = {};

	if (partition->reloptkind != RELOPT_OTHER_MEMBER_REL || partition->rtekind != RTE_RELATION || !usable_relation(root, partition, &scan))
		return;
	shape_of_relation(root, partition, &scan, true, &shape);
	add_groups_path(root, partition, &shape, grouped_rel, grouped_rel->reltarget, grouping->targetList, compat_group_clause(root),
					(List *) grouping->havingQual);
}

static void
add_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra)
{
	GroupPathExtraData *grouping = static_cast<GroupPathExtraData *>(extra);
	bool		distinct = stage == UPPERREL_DISTINCT;
	List	   *clause = compat_group_clause(root, distinct);
	PathTarget *target = distinct ? root->upper_targets[UPPERREL_DISTINCT] : output_rel->reltarget;
	List	   *having;

	if ((stage != UPPERREL_GROUP_AGG && !(distinct && is_plain_distinct(root->parse))) || !active() || hopeless(root, output_rel))
		return;
	if (output_rel->reloptkind != RELOPT_UPPER_REL)
	{
		if (stage == UPPERREL_GROUP_AGG)
			add_partition_groups(root, input_rel, output_rel, grouping);
		return;
	}
	having = distinct ? NIL : (List *) grouping->havingQual;
	if (input_rel->reloptkind == RELOPT_JOINREL)
	{
		const ScanShape *shape = shape_of_join(input_rel);

		if (shape != nullptr)
			add_groups_path(root, input_rel, shape, output_rel, target, root->processed_tlist, clause, having);
	}
	else if (input_rel->reloptkind != RELOPT_BASEREL)
		return;
	else if (input_rel->rtekind == RTE_RELATION)
	{
		ScanTarget	scan = {};
		ScanShape	shape = {};

		if (usable_relation(root, input_rel, &scan))
		{
			shape_of_relation(root, input_rel, &scan, true, &shape);
			add_groups_path(root, input_rel, &shape, output_rel, target, root->processed_tlist, clause, having);
		}
	}
	if (!planning.for_back)
		add_sorted_groups(root, input_rel, output_rel, distinct);
}

static void
gpuvm_create_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra)
{
	if (next_create_upper_paths != nullptr)
		next_create_upper_paths(root, stage, input_rel, output_rel, extra);
	if (stage == UPPERREL_FINAL)
	{
		WholeStatement *whole = whole_of_level(planning.levels, root);

		show_partitions();
		note_joins(root);
		if (whole != nullptr)
			add_whole_path(root, whole, input_rel, output_rel, static_cast<const FinalPathExtraData *>(extra),
						   !planning.for_back);
	}
	add_upper_paths(root, stage, input_rel, output_rel, extra);
}

void
planner_install(void)
{
	rel_register();
	next_planner = planner_hook;
	planner_hook = gpuvm_planner;
	next_set_rel_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = gpuvm_set_rel_pathlist;
	next_join_search = join_search_hook;
	join_search_hook = gpuvm_join_search;
	next_set_join_pathlist = set_join_pathlist_hook;
	set_join_pathlist_hook = gpuvm_set_join_pathlist;
	next_create_upper_paths = create_upper_paths_hook;
	create_upper_paths_hook = gpuvm_create_upper_paths;
}

}  // namespace gpuvm
