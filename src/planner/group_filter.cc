/*
 * group_filter.cc: HAVING within the engine. What of it a program can ask of the groups' result columns becomes a stage that
 * hands on the groups that pass; averages, texts, and what is DISTINCT stay with the executor, as do groups of several programs.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/value.h"
}

#include "compiler/compile.h"
#include "pg/settings.h"
#include "planner/aggregation.h"
#include "planner/paths.h"
#include "store/registry.h"
#include "vm/result_layout.h"

namespace gpuvm {

/* Fewer are handed out as fast as another program is started. */
constexpr double MANY_GROUPS = 1000;

/* A program's groups as the filter's table: its columns are the raw columns of the plan, by their numbers from 1. */
struct GroupTable
{
	ScanPlan   *plan;			/* of one part */
	ImportedTable table;
	int			columns[PROGRAM_MAX_COLUMNS];	/* the result column of each raw column; -1: the filter cannot read it */
};

/* Codes say nothing without their relation's dictionary. A sum of integers may be a numeric of no decimals. */
static void
add_column(GroupTable *groups, int raw, int column, Type type, bool sum)
{
	const OutputForm &form = groups->plan->parts[0].outputs[column];
	const ValueType wanted = value_type(list_nth_oid(groups->plan->raw_types, raw));
	const bool	numeric = wanted.form == ValueForm::Numeric;

	if (form.shown >= 0 || type != wanted.type ||
		(form.kind == OutputKind::Numeric) != (numeric && !(sum && form.kind == OutputKind::Plain)) ||
		wanted.form == ValueForm::Dictionary || (form.kind != OutputKind::Plain && form.kind != OutputKind::Numeric))
		return;
	groups->columns[raw] = column;
	groups->table.types[raw] = static_cast<uint8>(type);
	groups->table.scales[raw] = static_cast<int16>(!numeric ? -1 : form.kind == OutputKind::Numeric ? form.scale : 0);
}

/* Fills table and columns from the plan. */
static void
describe_groups(GroupTable *groups)
{
	const PlanPart *part = &groups->plan->parts[0];
	Type		types[PROGRAM_MAX_COLUMNS];
	ListCell   *lc;
	ListCell   *raw;

	stage_column_types(part->program, types);
	groups->table.ncols = list_length(groups->plan->raw_types);
	for (uint32 i = 0; i < groups->table.ncols; i++)
	{
		groups->columns[i] = -1;
		groups->table.attnums[i] = static_cast<int16>(i + 1);
		groups->table.types[i] = static_cast<uint8>(Type::None);
	}
	foreach(raw, part->key_columns)
		add_column(groups, lfirst_int(raw), foreach_current_index(raw), types[foreach_current_index(raw)], false);
	forboth(lc, part->finals, raw, part->final_columns)
	{
		const List *final = lfirst_node(List, lc);
		int			column = list_nth_int(final, FINAL_PARTS);
		FinalKind	kind = static_cast<FinalKind>(linitial_int(final));

		const bool	sum = kind == FinalKind::SumToInt8 || kind == FinalKind::SumToNumeric;

		/* one value that is shown as it is: not what is divided, or shown with fewer decimals here and there */
		if (list_length(final) == FINAL_PARTS + 1 &&
			(sum || kind == FinalKind::Direct || kind == FinalKind::SumToFloat8))
			add_column(groups, lfirst_int(raw), column, types[column], sum);
	}
}

/* As a cursor of the filter. */
static void
group_cursor(const GroupTable *groups, CompileCursor *cursor)
{
	const Program *program = groups->plan->parts[0].program;
	const Op   *results = program->ops();

	*cursor = CompileCursor{};
	cursor->relids = bms_make_singleton(1);
	cursor->table = &groups->table;
	while (results->opcode != Opcode::ResultColumn)
		results++;
	for (uint32 i = 0; i < groups->table.ncols; i++)
	{
		const int	column = groups->columns[i];
		const char *name = column < 0 ? "?column?" : program->names() + results[column].p4;

		cursor->names = lappend(cursor->names, makeString(const_cast<char *>(name)));
	}
}

static bool
is_of_dictionary(const PlanMap &map)
{
	return map.kind != MapKind::Constant && !is_zone(map.kind);
}

/* A dictionary's entries are a relation's: what is made of them belongs into the program of the groups, `before`. */
static bool
asks_no_dictionary(const CompiledProgram *before, const CompiledProgram *program)
{
	for (int i = before->nmaps; i < program->nmaps; i++)
	{
		if (is_of_dictionary(program->maps[i]))
			return false;
	}
	/* nor one of the first program's, whose column may have the number that a column of the groups has here */
	for (int i = 0; i < program->program->nops; i++)
	{
		const Op   &op = program->program->ops()[i];

		if (op.opcode == Opcode::Lookup && is_of_dictionary(program->maps[op.p2]))
			return false;
	}
	return true;
}

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
	describe_groups(groups);
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
