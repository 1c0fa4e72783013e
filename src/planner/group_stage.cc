/*
 * group_stage.cc: an aggregation over a subquery that aggregates is one path: the subquery's program, and a stage
 * (engine/abi.h) that reads its groups. The stage is compiled as if the groups were a table, whose columns are the raw
 * columns of the subquery's plan (scan_plan.h), by their numbers from 1.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
}

#include "compiler/compile.h"
#include "planner/aggregation.h"
#include "planner/cost.h"
#include "planner/group_table.h"
#include "planner/paths.h"
#include "planner/scan_plan.h"

namespace gpuvm {

/* -- expressions -------------------------------------------------------------------------------- */

/* An expression over raw columns, as the plan has it, as one over the table. */
static Node *
to_table(Node *node, void *context)
{
	GroupTable *groups = static_cast<GroupTable *>(context);

	if (node == nullptr)
		return nullptr;
	if (IsA(node, Var))
	{
		Var		   *var = static_cast<Var *>(copyObjectImpl(node));

		groups->missing = groups->missing || groups->columns[var->varattno - 1] < 0;
		var->varno = var->varnosyn = groups->varno;
		return (Node *) var;
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(to_table), context);
}

/* An expression of the subquery's output as one over the table. */
static Node *
of_output(Node *node, void *context)
{
	GroupTable *groups = static_cast<GroupTable *>(context);
	ListCell   *lc;

	if (node == nullptr)
		return nullptr;
	foreach(lc, groups->target)
	{
		if (equal(lfirst(lc), node))
			return to_table(static_cast<Node *>(list_nth(groups->plan->exprs, foreach_current_index(lc))), groups);
	}
	if (IsA(node, Var) || IsA(node, Aggref) || IsA(node, PlaceHolderVar) || IsA(node, SubPlan) || IsA(node, AlternativeSubPlan) ||
		IsA(node, GroupingFunc) || IsA(node, WindowFunc))
	{
		groups->missing = true;
		return node;
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(of_output), context);
}

/* An expression of the query above, over the subquery's output, as one over the table. */
static Node *
of_query(Node *node, void *context)
{
	GroupTable *groups = static_cast<GroupTable *>(context);

	if (node == nullptr)
		return nullptr;
	if (IsA(node, Var))
	{
		const Var  *var = (const Var *) node;
		TargetEntry *te = get_tle_by_resno(groups->tlist, var->varattno);

		if (static_cast<int>(var->varno) == static_cast<int>(groups->varno) && var->varlevelsup == 0 && te != nullptr)
			return of_output((Node *) te->expr, groups);
		groups->missing = true;
		return node;
	}
	if (IsA(node, PlaceHolderVar))
	{
		groups->missing = true;
		return node;
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(of_query), context);
}

static List *
over_table(GroupTable *groups, List *exprs)
{
	List	   *list = (List *) of_query((Node *) exprs, groups);

	fix_opfuncids((Node *) list);
	return list;
}

/* -- the program ---------------------------------------------------------------------------------- */

/* Columns of the table are result columns of the first program, and what is known of those is known of the stage's. */
static bool
bind_stage(const GroupTable *groups, const CompiledProgram *before, CompiledProgram *stage)
{
	if (!asks_no_dictionary(before, stage))
		return false;
	for (int i = 0; i < stage->program->nops; i++)
	{
		Op		   *op = const_cast<Op *>(&stage->program->ops()[i]);

		if (reads_column(*op))
			op->p2 = groups->columns[op->p2 - 1];
	}
	stage->program->hash = hash_program(stage->program);
	for (int i = 0; i < stage->noutputs; i++)
	{
		if (stage->outputs[i].kind == OutputKind::Dictionary)
			stage->outputs[i] = groups->plan->parts[0].outputs[groups->columns[stage->outputs[i].attnum - 1]];
	}
	return true;
}

/* Compiles the stage and makes the plan one of both. */
static bool
plan_stage(Aggregation *a, GroupTable *groups, List *keys, List *quals)
{
	ScanPlan   *plan = groups->plan;
	PlanPart   *part = &plan->parts[0];
	CompiledProgram *before = static_cast<CompiledProgram *>(palloc0(sizeof(CompiledProgram)));
	CompiledProgram *stage = static_cast<CompiledProgram *>(palloc0(sizeof(CompiledProgram)));
	VmAggregate *aggs = static_cast<VmAggregate *>(palloc(sizeof(VmAggregate) * PROGRAM_MAX_COLUMNS));
	PlanPart	planned = {};
	CompileCursor *cursor = &a->input.cursors[0];
	int			naggs = 0;

	before->params = plan->params;
	before->nmaps = plan->nmaps;
	memcpy(before->maps, plan->maps, sizeof(PlanMap) * plan->nmaps);
	before->npatterns = plan->npatterns;
	memcpy(before->patterns, plan->patterns, sizeof(PlanPattern) * plan->npatterns);
	before->text_orders = plan->text_orders;
	a->input.ncursors = 1;
	a->input.before = before;
	group_cursor(groups, cursor);
	cursor->quals = quals;

	if (!sort_aggregates(a))
		return false;
	if (a->ndistinct > 0)
		return aggregation_refuse(a, "DISTINCT aggregates over a subquery that aggregates are not supported");
	if (!plan_finals(a, a->plain, false, list_length(keys), aggs, &naggs, &planned))
		return false;
	if (!compile_groups(&a->input, keys, KeyUse::One, aggs, naggs, stage))
		return aggregation_refuse(a, a->input.reason, a->input.hint);
	if (stage->npatterns > before->npatterns || !bind_stage(groups, before, stage))
		return aggregation_refuse(a, "an expression over a dictionary's values stands above a subquery that aggregates");

	part->stage = stage->program;
	part->noutputs = stage->noutputs;
	memcpy(part->outputs, stage->outputs, sizeof(OutputForm) * stage->noutputs);
	part->key_columns = NIL;
	for (int i = 0; i < list_length(keys); i++)
		part->key_columns = lappend_int(part->key_columns, i);
	part->finals = planned.finals;
	part->final_columns = planned.final_columns;
	part->groupings = NIL;
	plan->params = stage->params;
	plan->nmaps = stage->nmaps;
	memcpy(plan->maps, stage->maps, sizeof(PlanMap) * stage->nmaps);
	plan->soft_errors = plan->soft_errors || stage->soft_errors;
	return true;
}

/* -- the path --------------------------------------------------------------------------------------- */

/* The subquery's groups, if a path of ours makes them. */
static bool
open_groups(RelOptInfo *rel, const CustomPath *path, GroupTable *groups)
{
	const Path *alternative = static_cast<const Path *>(linitial(path->custom_paths));

	groups->plan = scan_plan_from_list(path->custom_private);
	groups->target = alternative->pathtarget->exprs;
	groups->tlist = rel->subroot->parse->targetList;
	groups->varno = rel->relid;
	if (groups->plan->parts[0].stage != nullptr || groups->plan->parts[0].count_groups || list_length(groups->plan->raw_types) > PROGRAM_MAX_COLUMNS)
		return false;
	/* its HAVING becomes conditions of the stage */
	groups->plan->parts[0].group_filter = nullptr;
	groups->plan->filtered = groups->plan->filter_quals = NIL;
	/* ties are of the groups, not of what is made of them */
	groups->plan->nties = 0;
	describe_groups(groups);
	return true;
}

void
add_group_stage_path(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *grouped_rel, PathTarget *target, List *clause, List *having)
{
	CustomPath *below;
	GroupTable *groups = static_cast<GroupTable *>(palloc0(sizeof(GroupTable)));
	Aggregation *a = static_cast<Aggregation *>(palloc0(sizeof(Aggregation)));
	Path	   *alternative;
	List	   *exprs;
	List	   *keys = NIL;
	List	   *quals;
	ProgramRows rows = {};
	Path		stage = {};
	CustomPath *path;
	ListCell   *lc;

	if (rel->subroot == nullptr || !bms_is_empty(rel->lateral_relids) || rel->subroot->init_plans != NIL)
		return;
	below = groups_path_of(rel);
	alternative = alternative_path(grouped_rel);
	if (below == nullptr || alternative == nullptr || root->parse->groupingSets != NIL || !open_groups(rel, below, groups))
		return;
	foreach(lc, clause)
	{
		SortGroupClause *sgc = lfirst_node(SortGroupClause, lc);
		Node	   *key = get_sortgroupclause_expr(sgc, root->processed_tlist);
		const char *reason = nullptr;

		if (!can_be_key(key, sgc->eqop, &reason))
		{
			note_reason(root, rel, "Aggregate", reason, nullptr);
			return;
		}
		keys = lappend(keys, key);
	}
	a->root = root;
	a->rel = rel;
	keys = over_table(groups, keys);
	exprs = over_table(groups, target->exprs);
	having = over_table(groups, having);
	/* of the groups that the subquery hands out those that pass the query's own conditions */
	quals = list_concat((List *) to_table((Node *) groups->plan->having, groups), over_table(groups, ordered_quals(root, rel->baserestrictinfo, true)));
	if (groups->missing)
	{
		note_reason(root, rel, "Aggregate", "the subquery's groups have a value that no second program reads: an average, an extreme of texts, or one of variable length", nullptr);
		return;
	}
	a->raw.keys = keys;
	collect_aggregates(a, list_concat_copy(exprs, having));
	if (a->raw.groupings != NIL)
	{
		note_reason(root, rel, "Aggregate", "GROUPING() of groups that are grouped again", nullptr);
		return;
	}
	if (!plan_output(a, exprs, having) || !plan_stage(a, groups, keys, quals))
	{
		note_reason(root, rel, "Aggregate", a->reason, a->hint);
		return;
	}
	if (groups->plan->hides_rows && shows_without_ties(groups->plan))
	{
		note_reason(root, rel, "Aggregate", "an expression would be evaluated for values that a policy may hide", nullptr);
		return;
	}
	plan_raw_types(a);
	groups->plan->exprs = a->plan.exprs;
	groups->plan->having = a->plan.having;
	groups->plan->counts = a->plan.counts;
	groups->plan->raw_types = a->plan.raw_types;
	groups->plan->raw_typmods = a->plan.raw_typmods;
	groups->plan->raw_collations = a->plan.raw_collations;
	groups->plan->norder = 0;
	groups->plan->limit = 0;

	/* what the subquery's path does before its first group, and the stage */
	rows.scanned[0] = rows.filtered[0] = below->path.rows;
	cost_program(root, &stage, groups->plan->parts[0].stage, rows, alternative->rows);
	groups->plan->parts[0].stage_rows = below->path.rows;
	path = make_path(root, grouped_rel, target, nullptr, alternative, groups->plan, ProgramRows{}, alternative->rows, 0);
	path->path.startup_cost = below->path.startup_cost + stage.startup_cost + target->cost.startup;
	path->path.total_cost = below->path.startup_cost + stage.total_cost + target->cost.startup + target->cost.per_tuple * alternative->rows;
	offer_path(grouped_rel, path);
}

}  // namespace gpuvm
