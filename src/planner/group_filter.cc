/*
 * group_filter.cc: HAVING within the engine. What of it a program can ask of the groups' result columns becomes a stage that
 * hands on the groups that pass; averages, texts, and what is DISTINCT stay with the executor, as do groups of several programs.
 */
#include "pg/pg.h"

#include "compiler/compile.h"
#include "planner/aggregation.h"
#include "planner/group_table.h"
#include "planner/paths.h"
#include "pg/settings.h"

namespace gpuvm {

/* Fewer are handed out as fast as another program is started. */
constexpr double MANY_GROUPS = 1000;

static bool
compile_filter(const GroupTable *groups, List *quals, CompiledProgram *out)
{
	const ScanPlan *plan = groups->plan;
	CompiledProgram *before = static_cast<CompiledProgram *>(palloc0(sizeof(CompiledProgram)));
	CompileInput *input = static_cast<CompileInput *>(palloc0(sizeof(CompileInput)));

	before->params = plan->params;
	before->nmaps = plan->nmaps;
	memcpy(before->maps, plan->maps, sizeof(PlanMap) * plan->nmaps);
	before->npatterns = plan->npatterns;
	memcpy(before->patterns, plan->patterns, sizeof(PlanPattern) * plan->npatterns);
	before->text_orders = plan->text_orders;
	input->ncursors = 1;
	input->before = before;
	group_cursor(groups, &input->cursors[0]);
	return compile_group_filter(input, plan->parts[0].program, groups->columns, quals, out) && out->npatterns == before->npatterns &&
		asks_no_dictionary(before, out);
}

/* Codes say nothing without their dictionary, which is a relation's. */
static void
hide_codes(GroupTable *groups)
{
	for (uint32 i = 0; i < groups->table.ncols; i++)
	{
		if (groups->table.entries[i] == 0)
			continue;
		groups->columns[i] = -1;
		groups->table.types[i] = static_cast<uint8>(Type::None);
	}
}

void
plan_group_filter(const ScanShape *shape, List *having, double ngroups, ScanPlan *plan)
{
	PlanPart   *part = &plan->parts[0];
	GroupTable *groups;
	CompiledProgram *filter = static_cast<CompiledProgram *>(palloc0(sizeof(CompiledProgram)));
	List	   *chosen = NIL;
	ListCell   *lc;

	if (plan->nparts != 1)
		return;
	part->stage_rows = ngroups;
	foreach(lc, part->finals)
	{
		const FinalKind kind = static_cast<FinalKind>(linitial_int(lfirst_node(List, lc)));

		/* which 64 bits do not hold */
		if (kind == FinalKind::WideSum || kind == FinalKind::WideAvg || kind == FinalKind::WideExtreme || kind == FinalKind::ShownExtreme || kind == FinalKind::SpecialExtreme || kind == FinalKind::WideVariance ||
			kind == FinalKind::QuotientSum || kind == FinalKind::QuotientAvg)
			return;
	}
	if (part->stage != nullptr || part->count_groups || part->key_columns == NIL || list_length(plan->raw_types) > PROGRAM_MAX_COLUMNS ||
		(ngroups < MANY_GROUPS && !setting_force))
		return;
	groups = static_cast<GroupTable *>(palloc0(sizeof(GroupTable)));
	groups->plan = plan;
	groups->varno = 1;
	describe_groups(groups);
	hide_codes(groups);
	foreach(lc, plan->having)
	{
		if (compile_filter(groups, list_make1(lfirst(lc)), filter))
		{
			chosen = lappend(chosen, lfirst(lc));
			plan->filtered = lappend_int(plan->filtered, foreach_current_index(lc));
			plan->filter_quals = lappend(plan->filter_quals, list_nth(having, foreach_current_index(lc)));
		}
		else if (can_raise_by_rows(static_cast<const Expr *>(lfirst(lc))))
			break;				/* it may raise for a group that a later one would drop */
	}
	/* what is too large together is asked in part */
	while (chosen != NIL && !compile_filter(groups, chosen, filter))
	{
		const int	half = list_length(chosen) / 2;

		chosen = list_truncate(chosen, half);
		plan->filtered = list_truncate(plan->filtered, half);
		plan->filter_quals = list_truncate(plan->filter_quals, half);
	}
	if (chosen == NIL)
		return;
	part->group_filter = filter->program;
	plan->filter_quals = detached(plan->filter_quals, shape);
	plan->params = filter->params;
	plan->nmaps = filter->nmaps;
	memcpy(plan->maps, filter->maps, sizeof(PlanMap) * filter->nmaps);
}

}  // namespace gpuvm
