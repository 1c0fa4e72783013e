/* vm_reference_join.cc: joins as nested loops. See vm_reference_machine.h. */
#include "vm_reference_machine.h"

namespace gpuvm {
namespace reference {

void
Interpreter::Machine::unmatched_rows(int match, int cursor)
{
	for (const InnerRow &row : inner[cursor])
	{
		std::vector<Value> r(program->nregs);

		if (row.matched)
			continue;
		std::fill(no_row, no_row + cursor, true);
		row_of[cursor] = row.row;
		lane(match + 1, program->converge, r, program->nkeys == 0 && program->grouped ? &group_of({}) : nullptr, 0);
		std::fill(no_row, no_row + cursor, false);
	}
}

void
Interpreter::Machine::inner_rows(size_t cursor)
{
	const std::vector<bool> masked = tables[cursor]->masked_bits();
	int			begin = -1;

	for (int i = 0; i < program->parallel; i++)
		if (program->ops()[i].opcode == Opcode::Parallel && program->ops()[i].p2 == static_cast<int>(cursor))
			begin = i;
	for (uint32_t row = 0; row < tables[cursor]->nrows(); row++)
	{
		if (masked[row])
			continue;
		if (begin < 0)
		{
			inner[cursor].push_back(InnerRow{row, {}, false});
			continue;
		}

		std::vector<Value> r(program->nregs);
		const int	insert = program->ops()[begin].p3 - 1;
		InnerRow	to = {row, {}, false};

		row_of[cursor] = row;
		if (!lane(begin + 1, insert, r, nullptr, 0))
			continue;
		for (int k = 0; k < program->ops()[insert].p2; k++)
			to.keys.push_back(r[program->aux()[program->ops()[insert].p3 + k]]);
		inner[cursor].push_back(to);	/* a null key equals nothing */
	}
}

static bool
same_key(const Value &a, const Value &b)
{
	return !a.null && !b.null && a.i == b.i && (a.d == b.d || (a.d != a.d && b.d != b.d));
}

static bool
within(const Op &op, int bound, Type type, const Value &key, const Value &limit)
{
	const bool	strict = op.p2 & (bound == 0 ? RANGE_LO_STRICT : RANGE_HI_STRICT);

	return !key.null && !limit.null
		&& compare_values(bound == 0 ? (strict ? Opcode::Gt : Opcode::Ge) : strict ? Opcode::Lt : Opcode::Le, type, key, limit);
}

Type
Interpreter::Machine::key_reg_type(int cursor) const
{
	int64_t		reg = -1;

	for (int i = 0; i < program->parallel; i++)
		if (program->ops()[i].opcode == Opcode::HashInsert && program->ops()[i].p1 == cursor)
			reg = program->aux()[program->ops()[i].p3];
	return reg_type(reg, program->parallel);
}

void
Interpreter::Machine::join(int address, int stop, const std::vector<Value> &r, Group *group, uint32_t position)
{
	const Op   &op = program->ops()[address];
	const int	cursor = op.p1;
	int			match = address;
	bool		any = false;

	while (program->ops()[match].opcode != Opcode::Match)
		match++;

	const JoinKind kind = static_cast<JoinKind>(program->ops()[match].p2);

	for (InnerRow &row : inner[cursor])
	{
		bool		same = true;

		for (int i = 0; op.opcode == Opcode::SeekRange && i < 2; i++)
			if (op.p2 & (i == 0 ? RANGE_LO : RANGE_HI))
				same = same && within(op, i, key_reg_type(cursor), row.keys[0], r[program->aux()[op.p3 + i]]);
		for (size_t k = 0; op.opcode == Opcode::Seek && k < row.keys.size(); k++)
			same = same && same_key(row.keys[k], r[program->aux()[op.p3 + k]]);
		row_of[cursor] = row.row;
		no_row[cursor] = false;
		if (!same)
			continue;

		std::vector<Value> pair = r;

		if (!lane(address + 1, match, pair, group, position))
			continue;
		any = row.matched = true;
		if (kind == JoinKind::Inner || kind == JoinKind::Left || kind == JoinKind::Full)
			lane(match + 1, stop, pair, group, position);
		else if (lazy)
			break;
	}
	if (any ? kind == JoinKind::Semi : kind == JoinKind::Left || kind == JoinKind::Anti || kind == JoinKind::Full)
	{
		std::vector<Value> alone = r;

		no_row[cursor] = true;
		lane(match + 1, stop, alone, group, position);
	}
	no_row[cursor] = false;
}

}  // namespace reference
}  // namespace gpuvm
