/*
 * cuda_join_count_test.cc: count(*) over joins on the emulated device: pairs that are sought are
 * counted, not made, so that there are many more than launches.
 */
#include "cuda_runtime_fixture.h"

#include "join.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

/* One column of small numbers. */
Table
numbers(Rng &rng, uint32_t n, int most, int null_percent)
{
	Table		table;
	Column		column{Type::I32, {}};

	for (uint32_t left = n; left > 0; left -= table.tablet_rows.back())
		table.tablet_rows.push_back(std::min(left, 3000u));
	for (uint32_t i = 0; i < n; i++)
		column.rows.push_back(chance(rng, null_percent) ? Value{} : from_register(static_cast<int64_t>(pick_int(rng, most))));
	table.columns.push_back(std::move(column));
	table.build();
	return table;
}

struct Shape
{
	int32_t		range;			/* RangeFlag bits: the outer value is both bounds; 0: Seek */
	JoinKind	kind;
	bool		outer_filter;	/* count(*) FILTER (WHERE the outer value is even), too */
	bool		never;			/* behind a condition that no pair meets */
};

SealedProgram
counting(const Shape &shape)
{
	auto		b = std::make_unique<ProgramBuilder>();
	const int64_t sources[] = {RESULT_FROM_AGG, RESULT_FROM_AGG + 1};
	const int	naggs = shape.outer_filter ? 2 : 1;

	b->init();
	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::Table, Type::None, 1, 0, 1);
	b->emit(Opcode::HashOpen, Type::None, 1, 1, shape.range != 0 ? HASH_SORTED : 0);
	for (int i = 0; i < naggs; i++)
		b->emit(Opcode::ResultColumn, Type::I64, i, 0, 0, b->add_name("n"));
	b->emit(Opcode::AggOpen, Type::None, 0, naggs, b->add_aux(sources, naggs));

	const int	build = b->emit(Opcode::Parallel, Type::None, 1, 1, 0);
	const int64_t key = b->new_reg(Type::I32);

	b->emit(Opcode::Column, Type::I32, static_cast<int>(key), 0, 1);
	b->emit(Opcode::HashInsert, Type::None, 1, 1, b->add_aux(&key, 1));
	b->ops[build].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 2, 0, 0);
	const int64_t v = b->new_reg(Type::I32);
	const int64_t bounds[] = {shape.range & RANGE_LO ? v : -1, shape.range & RANGE_HI ? v : -1};
	int			even = -1;

	b->emit(Opcode::Column, Type::I32, static_cast<int>(v), 0, 0);
	if (shape.range != 0)
		b->emit(Opcode::SeekRange, Type::None, 1, shape.range, b->add_aux(bounds, 2));
	else
		b->emit(Opcode::Seek, Type::None, 1, 1, b->add_aux(&v, 1));
	b->emit(Opcode::Match, Type::None, 1, static_cast<int>(shape.kind), 0);
	if (shape.never)
	{
		const int	one = b->new_reg(Type::I32), two = b->new_reg(Type::I32);

		b->emit(Opcode::Integer, Type::I32, one, 0, 0, 1);
		b->emit(Opcode::Integer, Type::I32, two, 0, 0, 2);
		b->emit(Opcode::Lt, Type::I32, one, two, b->nops + 1, VERDICT_DIES);
	}
	b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	if (shape.outer_filter)
	{
		even = b->new_reg(Type::Bool);
		b->emit(Opcode::IsNull, Type::I32, even, static_cast<int>(v), 0);
		b->emit(Opcode::AggStep, Type::None, 1, -1, even, 0, static_cast<uint8_t>(AggFn::CountStar));
	}
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	EXPECT_FALSE(b->failed);
	return seal(*b);
}

using CudaJoinCount = CudaRuntime;

TEST_F(CudaJoinCount, PairsAreCounted)
{
	const cuda::JoinSizes sizes = cuda::join_sizes;
	static const Shape shapes[] = {
		{0, JoinKind::Inner, false, false},
		{RANGE_LO, JoinKind::Inner, false, false},
		{RANGE_HI | RANGE_HI_STRICT, JoinKind::Inner, false, false},
		{RANGE_LO | RANGE_LO_STRICT, JoinKind::Inner, false, true},
		/* these have to be made */
		{0, JoinKind::Inner, true, false},
		{0, JoinKind::Left, false, false},
		{RANGE_LO, JoinKind::Left, false, false},
	};

	cuda::join_sizes.least_batch = cuda::join_sizes.most_batch = TABLET_PAD_ROWS;
	for (const Shape &shape : shapes)
		for (uint32_t ninner : {0u, 700u})
		{
			SCOPED_TRACE(&shape - shapes);

			Rng			rng(7 + ninner);
			const SealedProgram sealed = counting(shape);
			const Table outer = numbers(rng, 6000, 40, 5), inner = numbers(rng, ninner, 40, 5);
			const Outcome expected = Interpreter(sealed.get(), {&outer, &inner}, nullptr, false).run();
			const uint64_t pairs = 6000ull * ninner / 45;

			library.reset();
			arena.next = align_up(sizeof(ArenaHeader), 4096);
			open();

			const Ran	ran = run(sealed.get(), {arena.store(outer, 0), arena.store(inner, 0)}, {}, Ways());
			const bool	counts = shape.kind == JoinKind::Inner && !shape.outer_filter;

			ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
			EXPECT_EQ(ran.sorted(), rows_text(sealed.get(), expected));
			if (ninner == 0)
				continue;
			EXPECT_GT(ran.figures.pairs, pairs);
			/* Two batches of outer rows, an inner side, and the pair that stands for all; or a launch a batch of pairs. */
			if (counts)
				EXPECT_LE(ran.figures.slices, 6u);
			else
				EXPECT_GE(ran.figures.slices, pairs / TABLET_PAD_ROWS);
		}
	cuda::join_sizes = sizes;
}

}  // namespace
