/* join_filter.cc: see join_filter.h. */
#include "vm/join_filter.h"

#include <algorithm>

#include "vm/operands.h"

namespace gpuvm {

namespace {

/* Does a Cast make an integer a wider one? */
bool
widens(const Op &op)
{
	const Type	from = static_cast<Type>(op.p5);

	return type_is_int(op.type) && type_is_int(from) && type_natural_width(op.type) >= type_natural_width(from);
}

/* What a register of such a program is: a column, or a constant. */
struct PlainValue
{
	bool		known = false;
	int			column = -1;
	int64_t		value = 0;
};

/* The values that `column o value` leaves, for rows for which it holds die. False: they are no interval. */
bool
keep_others(Opcode o, int64_t value, ColumnInterval *kept)
{
	const bool	up = o == Opcode::Lt || o == Opcode::Le;	/* what is left is above */

	if (o == Opcode::Ne || o == Opcode::Lt || o == Opcode::Le)
		kept->lo = std::max(kept->lo, value);
	if (o == Opcode::Ne || o == Opcode::Gt || o == Opcode::Ge)
		kept->hi = std::min(kept->hi, value);
	/* the value itself goes, too */
	if ((o == Opcode::Le || o == Opcode::Ge) && (up ? kept->lo : kept->hi) == value)
	{
		if (value == (up ? INT64_MAX : INT64_MIN))
			kept->lo = INT64_MAX, kept->hi = INT64_MIN;
		else
			up ? kept->lo++ : kept->hi--;
	}
	return o != Opcode::Eq;
}

}  // namespace

/* Registers are written once. */
int
result_column(const Program *program, int c)
{
	int			reg = -1;

	for (int i = program->converge - 1; i > program->parallel; i--)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode == Opcode::Result)
			reg = c < op.p2 ? op.p1 + c : -1;
		else if (op.opcode == Opcode::Column && op.p1 == reg)
			return op.p2;
		else if (op.p1 == reg && (op.opcode == Opcode::Copy || (op.opcode == Opcode::Cast && widens(op))))
			reg = op.p2;
	}
	return -1;
}

bool
plain_rows(const Program *program, const ParamValue *params, const ValueRange *columns, PlainRows *rows)
{
	std::vector<PlainValue> regs(PROGRAM_MAX_REGS);
	bool		has_result = false;

	*rows = PlainRows();
	for (int i = program->parallel + 1; i < program->converge; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode == Opcode::Column)
			regs[op.p1] = PlainValue{true, op.p2, 0};
		else if (op.opcode == Opcode::Copy || (op.opcode == Opcode::Cast && widens(op)))
			regs[op.p1] = regs[op.p2];
		else if ((op.opcode == Opcode::Integer || op.opcode == Opcode::Int64) && type_is_int(op.type))
			regs[op.p1] = PlainValue{true, -1, op.opcode == Opcode::Integer ? op.p2 : op.p4};
		else if (op.opcode == Opcode::Variable && type_is_int(op.type) && !params[op.p2].is_null)
			regs[op.p1] = PlainValue{true, -1, params[op.p2].value};
		else if (form_of(op.opcode) == OpForm::COMPARE && (op.p5 & COMPARE_STORES) == 0 && op.p4 == VERDICT_DIES && type_is_int(op.type))
		{
			const bool	swap = regs[op.p1].column < 0;
			const PlainValue &a = regs[swap ? op.p2 : op.p1], &b = regs[swap ? op.p1 : op.p2];
			const Opcode o = !swap ? op.opcode : op.opcode == Opcode::Lt ? Opcode::Gt : op.opcode == Opcode::Le ? Opcode::Ge
				: op.opcode == Opcode::Gt ? Opcode::Lt : op.opcode == Opcode::Ge ? Opcode::Le : op.opcode;

			if (!a.known || !b.known || a.column < 0 || b.column >= 0 || ((op.p5 & JUMP_IF_NULL) == 0 && columns[a.column].may_null))
				return false;

			auto		at = std::find_if(rows->kept.begin(), rows->kept.end(), [&](const ColumnInterval &k) { return k.column == a.column; });

			if (at == rows->kept.end())
				at = rows->kept.insert(at, ColumnInterval{a.column, columns[a.column].lo, columns[a.column].hi});
			if (!keep_others(o, b.value, &*at))
				return false;
		}
		else if (op.opcode == Opcode::Result)
		{
			has_result = true;
			for (int c = 0; c < op.p2; c++)
			{
				if (!regs[op.p1 + c].known || regs[op.p1 + c].column < 0)
					return false;
				rows->results.push_back(regs[op.p1 + c].column);
			}
		}
		else
			return false;
	}
	return has_result;
}

int
key_column(const JoinSplit &split, size_t number)
{
	const JoinLevel &level = split.levels[number];
	const std::vector<int> &carried = split.levels[0].carried;
	const auto	at = std::find(carried.begin(), carried.end(), level.carried[static_cast<size_t>(level.probe[0])]);

	return at == carried.end() ? -1 : result_column(split.first.program(), static_cast<int>(at - carried.begin()));
}

KeySource
key_source(const JoinSplit &split, size_t number, size_t key)
{
	const JoinLevel &level = split.levels[number];
	const int	item = level.carried[static_cast<size_t>(level.probe[key])];
	const auto	place = [item](const std::vector<int> &items)
	{
		return static_cast<int>(std::find(items.begin(), items.end(), item) - items.begin());
	};

	if (const int at = place(split.levels[0].carried); at < static_cast<int>(split.levels[0].carried.size()))
		return KeySource{0, at};
	for (size_t i = 0; i < number; i++)
		if (const int at = place(split.levels[i].payload); at < static_cast<int>(split.levels[i].payload.size()))
			return KeySource{static_cast<int>(i) + 1, static_cast<int>(split.levels[i].key_types.size()) + at};
	return KeySource{-1, 0};
}

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
		columns[i] = key_column(split, i);
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
