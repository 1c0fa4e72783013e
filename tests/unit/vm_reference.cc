/* vm_reference.cc: a program, lane by lane. See vm_reference.h. */
#include "vm_reference_machine.h"

namespace gpuvm {
namespace reference {

Outcome
Interpreter::Machine::run()
{
	const std::vector<bool> masked = table.masked_bits();
	uint32_t	row = 0;

	for (size_t k = 1; k < tables.size(); k++)
		inner_rows(k);

	for (uint32_t n : table.tablet_rows)
		for (uint32_t position = 0; position < n; position++, row++)
			if (!masked[row])
				run_row(row, position);
	for (int i = program->parallel; i < program->converge; i++)
		if (program->ops()[i].opcode == Opcode::Match && static_cast<JoinKind>(program->ops()[i].p2) == JoinKind::Full)
			unmatched_rows(i, program->ops()[i].p1);
	if (program->grouped)
		finish_groups();
	return std::move(outcome);
}

std::vector<bool>
Interpreter::Machine::failing_rows()
{
	std::vector<bool> failing;
	uint32_t	row = 0;

	for (uint32_t n : table.tablet_rows)
		for (uint32_t position = 0; position < n; position++)
		{
			outcome = Outcome{};
			run_row(row++, position);
			failing.push_back(outcome.errors != 0);
		}
	return failing;
}

void
Interpreter::Machine::run_row(uint32_t row, uint32_t position)
{
	std::vector<Value> r(program->nregs);

	row_of[0] = row;
	lane(program->parallel + 1, program->converge, r, program->nkeys == 0 && program->grouped ? &group_of({}) : nullptr, position);
}

bool
Interpreter::Machine::lane(int pc, int stop, std::vector<Value> &r, Group *group, uint32_t position)
{
	while (pc < stop)
	{
		const Op   &op = program->ops()[pc++];
		uint32_t	err = 0;
		bool		leaves = false;

		switch (opcode_info[static_cast<int>(op.opcode)].form)
		{
			case OpForm::SEEK: case OpForm::SEEKRANGE: case OpForm::CROSS:
				join(pc - 1, stop, r, group, position);
				return false;
			case OpForm::COMPARE:
				{
					const Value a = r[op.p1], b = r[op.p2];
					const bool	null = a.null || b.null;
					const bool	holds = !null && compare_values(op.opcode, op.type, a, b);

					if (op.p5 & COMPARE_STORES)
						r[op.p3] = null ? Value{} : truth(holds);
					else
						leaves = null ? (op.p5 & JUMP_IF_NULL) != 0 : holds;
					break;
				}
			case OpForm::BRANCH:
				leaves = r[op.p1].null ? (op.p5 & JUMP_IF_NULL) != 0 : (r[op.p1].i != 0) == (op.opcode == Opcode::If);
				break;
			case OpForm::JUMP:
				pc = op.p3;
				break;
			case OpForm::INVALID:
				return false;
			case OpForm::GROUP:
				{
					std::vector<Value> keys;

					for (int k = 0; k < op.p1; k++)
						keys.push_back(r[program->aux()[op.p2 + k]]);
					group = &group_of(keys);
					break;
				}
			case OpForm::AGGSTEP:
				step(op, r, group);
				break;
			case OpForm::RESULT:
				outcome.rows.emplace_back(r.begin() + op.p1, r.begin() + op.p1 + op.p2);
				break;
			default:
				r[op.p1] = computed(op, r, position, &err);
				break;
		}
		outcome.errors |= err;
		if (leaves && op.p4 == VERDICT_DIES)
			return false;
		if (leaves)
			pc = op.p3;
	}
	return true;
}

Type
Interpreter::Machine::reg_type(int64_t reg, int end) const
{
	for (int j = 0; j < end; j++)
	{
		const Op   &w = program->ops()[j];
		const OpForm form = opcode_info[static_cast<int>(w.opcode)].form;

		switch (form)
		{
			case OpForm::COMPARE: case OpForm::BRANCH: case OpForm::JUMP: case OpForm::INVALID: case OpForm::TABLE: case OpForm::RESCOL:
			case OpForm::AGGOPEN: case OpForm::PARALLEL: case OpForm::CONVERGE: case OpForm::GROUP: case OpForm::AGGSTEP: case OpForm::RESULT:
			case OpForm::HASHOPEN: case OpForm::HASHINSERT: case OpForm::SEEK: case OpForm::SEEKRANGE: case OpForm::CROSS: case OpForm::MATCH:
				break;
			default:
				if (w.p1 == reg)
					return form == OpForm::NULLTEST || form == OpForm::DISTINCT || form == OpForm::IN ? Type::Bool : w.type;
				break;
		}
	}
	return Type::Bool;		/* stored by a comparison */
}

Interpreter::Interpreter(const Program *program, const Table &table, const ParamValue *params, const CodeMap *maps, const PatternSet *patterns)
	: machine(std::make_unique<Machine>(program, table, params, maps, patterns))
{
}

Interpreter::Interpreter(const Program *program, const std::vector<const Table *> &tables, const ParamValue *params, bool lazy,
						 const CodeMap *maps, const PatternSet *patterns)
	: machine(std::make_unique<Machine>(program, tables, params, lazy, maps, patterns))
{
}

Interpreter::~Interpreter() = default;

Outcome
Interpreter::run()
{
	return machine->run();
}

std::vector<bool>
Interpreter::failing_rows()
{
	return machine->failing_rows();
}

}  // namespace reference
}  // namespace gpuvm
