/* join_filter.cc: see join_filter.h. */
#include "vm/join_filter.h"

#include <algorithm>

namespace gpuvm {

namespace {

/* The column that result `c` of a row program is; -1 if it is computed, but for integers that were widened. Registers are written once. */
int
result_column(const Program *program, int c)
{
	int			reg = -1;

	for (int i = program->converge - 1; i > program->parallel; i--)
	{
		const Op   &op = program->ops()[i];
		const Type	from = static_cast<Type>(op.p5);

		if (op.opcode == Opcode::Result)
			reg = c < op.p2 ? op.p1 + c : -1;
		else if (op.opcode == Opcode::Column && op.p1 == reg)
			return op.p2;
		else if ((op.opcode == Opcode::Copy && op.p1 == reg) ||
				 (op.opcode == Opcode::Cast && op.p1 == reg && type_is_int(op.type) && type_is_int(from) &&
				  type_natural_width(op.type) >= type_natural_width(from)))
			reg = op.p2;
	}
	return -1;
}

}  // namespace

std::vector<int>
filter_columns(const JoinSplit &split)
{
	std::vector<int> columns(split.levels.size(), -1);

	for (size_t i = 0; i < split.levels.size(); i++)
	{
		const JoinLevel &level = split.levels[i];

		/* An inner row that one of these rows would have met must not come out alone. */
		if (level.kind == JoinKind::Full)
			break;
		if ((level.kind != JoinKind::Inner && level.kind != JoinKind::Semi) || !level.sought || level.range != 0 || level.key_types.size() != 1 ||
			(level.key_types[0] != Type::Bool && !type_is_int(level.key_types[0])))
			continue;

		const std::vector<int> &carried = split.levels[0].carried;
		const auto	at = std::find(carried.begin(), carried.end(), level.carried[static_cast<size_t>(level.probe[0])]);

		if (at != carried.end())
			columns[i] = result_column(split.first.program(), static_cast<int>(at - carried.begin()));
	}
	return columns;
}

bool
may_raise(const Program *program, const ParamValue *params, const ValueRange *columns, const CodeMap *maps)
{
	std::vector<ValueRange> regs(PROGRAM_MAX_REGS);
	std::vector<uint32_t> errors(PROGRAM_MAX_OPS);

	analyze_ranges(program, params, columns, regs.data(), errors.data(), maps);
	return std::any_of(errors.begin() + program->parallel, errors.begin() + program->converge, [](uint32_t e) { return e != 0; });
}

}  // namespace gpuvm
