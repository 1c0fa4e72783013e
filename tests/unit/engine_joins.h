/* engine_joins.h: joins of the fixture's table with itself, as jobs. */
#ifndef GPUVM_TESTS_ENGINE_JOINS_H
#define GPUVM_TESTS_ENGINE_JOINS_H

#include "engine_fixture.h"

#include <functional>

namespace {

/* What a join of the table with itself looks like behind Seek or Cross. */
using Body = std::function<int(ProgramBuilder *b, int v0)>;

/* Cursor 1's rows below `below` (all if it is 0), sought by their value or crossed; Result of what `body` gives, or a count. */
void
prepare_join(Backend *backend, EngineJobTest *test, bool seek, int64_t below, bool grouped, Body body = nullptr, uint32_t nbuffers = 2,
			 JoinKind kind = JoinKind::Inner)
{
	auto		b = std::make_unique<ProgramBuilder>();

	backend->prepare(grouped, nbuffers);
	b->init();
	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::Table, Type::None, 1, 0, 1);
	if (seek)
		b->emit(Opcode::HashOpen, Type::None, 1, 1, 0);
	b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("v"));
	if (grouped)
	{
		const int64_t source = RESULT_FROM_AGG;

		b->emit(Opcode::AggOpen, Type::None, 0, 1, b->add_aux(&source, 1));
	}

	auto		column = [&](int cursor) {
		const int	r = b->new_reg(Type::I64);

		b->emit(Opcode::Column, Type::I64, r, 0, cursor);
		return r;
	};
	auto		filter = [&](int r) {
		const int	bound = b->new_reg(Type::I64);

		if (below == 0)
			return;
		b->emit(Opcode::Int64, Type::I64, bound, 0, 0, below);
		b->emit(Opcode::Ge, Type::I64, r, bound, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
	};

	if (seek)
	{
		const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 1, 0);
		const int64_t key = column(1);

		filter(static_cast<int>(key));
		b->emit(Opcode::HashInsert, Type::None, 1, 1, b->add_aux(&key, 1));
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	}

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 2, 0, 0);
	const int64_t v0 = column(0);

	if (seek)
		b->emit(Opcode::Seek, Type::None, 1, 1, b->add_aux(&v0, 1));
	else
	{
		b->emit(Opcode::Cross, Type::None, 1, 0, 0);
		filter(column(1));
	}
	b->emit(Opcode::Match, Type::None, 1, static_cast<int>(kind), 0);

	const int	result = body ? body(b.get(), static_cast<int>(v0)) : column(1);

	if (grouped)
		b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	else
		b->emit(Opcode::Result, Type::None, result, 1, 0);
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);

	Job		   *job = backend->job;

	job->program = test->allocate(b->sealed_size());
	job->program_size = b->sealed_size();
	b->seal(test->at<Program>(job->program));
	job->ncursors = 2;
	job->cursors[1] = job->cursors[0];
}

}  // namespace

#endif
