/* group_table.cc: see group_table.h. */
#include "pg/pg.h"

extern "C" {
#include "nodes/value.h"
}

#include "planner/group_table.h"
#include "vm/result_layout.h"

namespace gpuvm {

/* A raw column is a result column as it is; a sum of integers may be a numeric of no decimals. */
static void
add_column(GroupTable *groups, int raw, int column, Type type, bool sum)
{
	const OutputForm &form = groups->plan->parts[0].outputs[column];
	const ValueType wanted = value_type(list_nth_oid(groups->plan->raw_types, raw));
	const bool	numeric = wanted.form == ValueForm::Numeric;

	if (form.shown >= 0 || type != wanted.type || (form.kind == OutputKind::Numeric) != (numeric && !(sum && form.kind == OutputKind::Plain)) ||
		(form.kind == OutputKind::Dictionary) != (wanted.form == ValueForm::Dictionary) ||
		(form.kind != OutputKind::Plain && form.kind != OutputKind::Numeric && form.kind != OutputKind::Dictionary))
		return;
	groups->columns[raw] = column;
	groups->table.types[raw] = static_cast<uint8>(type);
	groups->table.scales[raw] = static_cast<int16>(!numeric ? -1 : form.kind == OutputKind::Numeric ? form.scale : 0);
	groups->table.entries[raw] = form.kind == OutputKind::Dictionary ? 1 : 0;
}

void
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
		if (list_length(final) == FINAL_PARTS + 1 && (sum || kind == FinalKind::Direct || kind == FinalKind::SumToFloat8))
			add_column(groups, lfirst_int(raw), column, types[column], sum);
	}
}

void
group_cursor(const GroupTable *groups, CompileCursor *cursor)
{
	const Program *program = groups->plan->parts[0].program;
	const Op   *results = program->ops();

	*cursor = CompileCursor{};
	cursor->relids = bms_make_singleton(static_cast<int>(groups->varno));
	cursor->table = &groups->table;
	while (results->opcode != Opcode::ResultColumn)
		results++;
	for (uint32 i = 0; i < groups->table.ncols; i++)
		cursor->names = lappend(cursor->names, makeString(const_cast<char *>(groups->columns[i] < 0 ? "?column?" : program->names() + results[groups->columns[i]].p4)));
}

static bool
is_of_dictionary(const PlanMap &map)
{
	return map.kind != MapKind::Constant && !is_zone(map.kind);
}

bool
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

}  // namespace gpuvm
