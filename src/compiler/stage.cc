/* stage.cc: programs over the groups of another: for what aggregates DISTINCT values, and for HAVING. */
#include "pg/pg.h"

#include "compiler/emit.h"
#include "vm/result_layout.h"

namespace gpuvm {

/* What an aggregate takes of the values, which are in `reg`; -1 and a reason. */
static int
stage_argument(Compiler *c, const VmAggregate &agg, int reg)
{
	if (agg.input == AggInput::Value)
		return reg;
	if (is_small_limb(agg.input))
		return small_limb_product(c, reg, static_cast<int>(agg.input) - static_cast<int>(AggInput::SmallLimbProduct));
	if (agg.input != AggInput::Square)
		return refuse(c, "the aggregate cannot be computed from DISTINCT values");
	reg = convert(c, reg, Type::I64);
	return reg < 0 ? -1 : value(c, Opcode::Mul, Type::I64, reg, reg);
}

bool
compile_stage(CompileInput *input, const CompiledProgram *first, const VmAggregate *aggs, int naggs, CompiledProgram *out)
{
	CompileInput one = {};
	Compiler   *c;
	ProgramBuilder *b;
	const int	nkeys = first->noutputs - 1;
	const Op   *from = first->program->ops();
	Type		types[PROGRAM_MAX_COLUMNS];
	int64_t		sources[PROGRAM_MAX_COLUMNS];
	int64_t		regs[PROGRAM_MAX_COLUMNS];
	int			parallel;
	bool		done = true;

	for (int i = 0; i < first->noutputs; i++)
	{
		if (first->outputs[i].kind != OutputKind::Wide)
			continue;
		input->reason = "DISTINCT aggregates take, or are grouped by, numbers of more than 64 bits";
		return false;
	}
	if (nkeys + naggs > PROGRAM_MAX_COLUMNS)
	{
		input->reason = psprintf("the query needs more than %d group keys and aggregates", PROGRAM_MAX_COLUMNS);
		return false;
	}
	one.ncursors = 1;
	one.before = first;
	c = start_program(&one);
	b = c->b;
	program_result_types(first->program, types);
	while (from->opcode != Opcode::ResultColumn)
		from++;
	for (int i = 0; i < nkeys + naggs; i++)
	{
		const VmAggregate *agg = i < nkeys ? nullptr : &aggs[i - nkeys];
		Type		arg = agg != nullptr && agg->input == AggInput::Square ? Type::I64 : types[nkeys];

		emit(c, Opcode::ResultColumn, agg == nullptr ? types[i] : agg_result_type(agg->fn, arg), i, 0, 0,
			 b->add_name(agg == nullptr ? first->program->names() + from[i].p4 : aggregate_name(agg->fn)));
		sources[i] = agg == nullptr ? i : RESULT_FROM_AGG | (i - nkeys);
		out->outputs[i] = agg == nullptr ? first->outputs[i] : PLAIN_OUTPUT;
	}
	emit(c, Opcode::AggOpen, Type::None, nkeys, naggs, b->add_aux(sources, nkeys + naggs));
	parallel = open_pipeline(c, 1, 0);
	for (int i = 0; i <= nkeys; i++)
	{
		regs[i] = new_reg(c, types[i]);
		emit(c, Opcode::Column, types[i], static_cast<int>(regs[i]), i, 0);
	}
	if (nkeys > 0)
		emit(c, Opcode::Group, Type::None, nkeys, b->add_aux(regs, nkeys), 0);
	for (int i = 0; done && i < naggs; i++)
	{
		int			reg = stage_argument(c, aggs[i], static_cast<int>(regs[nkeys]));

		done = reg >= 0;
		if (!done)
			break;
		if (aggs[i].fn != AggFn::Count)
		{
			out->outputs[nkeys + i] = first->outputs[nkeys];
			out->outputs[nkeys + i].scale *= aggs[i].input == AggInput::Square ? 2 : 1;
		}
		emit(c, Opcode::AggStep, b->reg_type[reg], i, reg, -1, 0, static_cast<uint8_t>(aggs[i].fn));
	}
	out->noutputs = nkeys + naggs;
	close_pipeline(c, parallel);
	done = done && finish_program(c, out);
	input->reason = done ? nullptr : one.reason != nullptr ? one.reason : "the query needs a larger program than the virtual machine takes";
	return done;
}

bool
compile_group_filter(CompileInput *input, const Program *groups, const int *columns, List *quals, CompiledProgram *out)
{
	Compiler   *c = start_program(input);
	ProgramBuilder *b = c->b;
	const int	n = groups->nresults;
	const Op   *from = groups->ops();
	Type		types[PROGRAM_MAX_COLUMNS];
	int64_t		regs[PROGRAM_MAX_COLUMNS];
	int			parallel;

	stage_column_types(groups, types);
	while (from->opcode != Opcode::ResultColumn)
		from++;
	for (int i = 0; i < n; i++)
	{
		emit(c, Opcode::ResultColumn, types[i], i, 0, 0, b->add_name(groups->names() + from[i].p4));
		regs[i] = new_reg(c, types[i]);
	}
	parallel = open_pipeline(c, 1, 0);
	if (!compile_quals(c, quals) || b->failed)
		return false;
	for (int i = parallel; i < b->nops; i++)
	{
		if (reads_column(b->ops[i]))
			b->ops[i].p2 = columns[b->ops[i].p2 - 1];
	}
	for (int i = 0; i < n; i++)
		emit(c, Opcode::Column, types[i], static_cast<int>(regs[i]), i, 0);
	emit(c, Opcode::Result, Type::None, static_cast<int>(regs[0]), n, 0);
	close_pipeline(c, parallel);
	return finish_program(c, out);
}

}  // namespace gpuvm
