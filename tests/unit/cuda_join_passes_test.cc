/*
 * cuda_join_passes_test.cc: joins whose inner sides find no room, and go over parts of the largest one's keys, on the emulated device: which do, in
 * how many passes, and what limits, refusals and figures are then.
 */
#include "cuda_runtime_fixture.h"

#include <chrono>

#include "join.h"
#include "join_star.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

enum class Leaves { Rows, Count, Groups };

/* a.v and, where there is one, b.v of three_columns() a and b where a.k = b.k; or count(*), of all or by a.v. `below` 1000: of rows with such an a.n. */
SealedProgram
join_by_key(JoinKind kind, Leaves leaves, int below = 1000)
{
	const bool	two = kind == JoinKind::Inner || kind == JoinKind::Left || kind == JoinKind::Full;
	const int64_t count[] = {RESULT_FROM_AGG | 0}, group[] = {0, RESULT_FROM_AGG | 0};
	auto		b = new_builder();

	for (int k = 0; k < 2; k++)
		b->emit(Opcode::Table, Type::None, k, 0, k);
	b->emit(Opcode::HashOpen, Type::None, 1, 1, 0);
	b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("x"));
	if (leaves != Leaves::Count)
		b->emit(Opcode::ResultColumn, Type::I64, 1, 0, 0, b->add_name("y"));
	if (leaves == Leaves::Count)
		b->emit(Opcode::AggOpen, Type::None, 0, 1, b->add_aux(count, 1));
	else if (leaves == Leaves::Groups)
		b->emit(Opcode::AggOpen, Type::None, 1, 1, b->add_aux(group, 2));

	int			parallel = b->emit(Opcode::Parallel, Type::None, 1, 1, 0);
	int64_t		key = b->new_reg(Type::I32);

	b->emit(Opcode::Column, Type::I32, static_cast<int>(key), 0, 1);
	b->emit(Opcode::HashInsert, Type::None, 1, 1, b->add_aux(&key, 1));
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	parallel = b->emit(Opcode::Parallel, Type::None, 2, 0, 0);
	if (below < 1000)
	{
		const int	n = b->new_reg(Type::I32), bound = b->new_reg(Type::I32);

		b->emit(Opcode::Column, Type::I32, n, 2, 0);
		b->emit(Opcode::Integer, Type::I32, bound, below, 0);
		b->emit(Opcode::Ge, Type::I32, n, bound, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
	}
	key = b->new_reg(Type::I32);
	b->emit(Opcode::Column, Type::I32, static_cast<int>(key), 0, 0);
	b->emit(Opcode::Seek, Type::None, 1, 1, b->add_aux(&key, 1));
	b->emit(Opcode::Match, Type::None, 1, static_cast<int>(kind), 0);

	const int	v = b->new_reg(Type::I64), w = b->new_reg(Type::I64);
	const int64_t by = v;

	b->emit(Opcode::Column, Type::I64, v, 1, 0);
	b->emit(Opcode::Column, Type::I64, w, 1, two ? 1 : 0);
	if (leaves == Leaves::Rows)
		b->emit(Opcode::Result, Type::None, v, 2, 0);
	else
	{
		if (leaves == Leaves::Groups)
			b->emit(Opcode::Group, Type::None, 1, b->add_aux(&by, 1), 0);
		b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	}
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return seal(*b);
}

/*
 * count(*) of a where a.n < `first`, b where a.k = b.k, and c where b.n = c.n, joined as they say, and c.k < `last`: a's rows are few if `first`
 * leaves few, c's if `last` does. `raises`: of each pair of a and b something overflows.
 */
SealedProgram
join_chain(JoinKind kinds[2], int first, int last, bool raises = false)
{
	const int64_t count[] = {RESULT_FROM_AGG | 0};
	auto		b = new_builder();
	const auto	less = [&](Type type, int column, int cursor, int than)
	{
		const int	value = b->new_reg(type), bound = b->new_reg(type);

		b->emit(Opcode::Column, type, value, column, cursor);
		b->emit(Opcode::Integer, type, bound, than, 0);
		b->emit(Opcode::Ge, type, value, bound, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
	};
	const auto	column = [&](Type type, int number, int cursor)
	{
		const int	reg = b->new_reg(type);

		b->emit(Opcode::Column, type, reg, number, cursor);
		return static_cast<int64_t>(reg);
	};
	int			parallel;

	for (int k = 0; k < 3; k++)
		b->emit(Opcode::Table, Type::None, k, 0, k);
	b->emit(Opcode::HashOpen, Type::None, 1, 1, 0);
	b->emit(Opcode::HashOpen, Type::None, 2, 1, 0);
	b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("n"));
	b->emit(Opcode::AggOpen, Type::None, 0, 1, b->add_aux(count, 1));
	for (int cursor : {1, 2})
	{
		parallel = b->emit(Opcode::Parallel, Type::None, cursor, cursor, 0);
		if (cursor == 2)
			less(Type::I32, 0, 2, last);

		const int64_t key = cursor == 1 ? column(Type::I32, 0, 1) : column(Type::I32, 2, 2);

		b->emit(Opcode::HashInsert, Type::None, cursor, 1, b->add_aux(&key, 1));
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	}
	parallel = b->emit(Opcode::Parallel, Type::None, 3, 0, 0);
	less(Type::I32, 2, 0, first);

	const int64_t k = column(Type::I32, 0, 0);

	b->emit(Opcode::Seek, Type::None, 1, 1, b->add_aux(&k, 1));
	b->emit(Opcode::Match, Type::None, 1, static_cast<int>(kinds[0]), 0);

	if (raises)
	{
		const int	most = b->new_reg(Type::I32), sum = b->new_reg(Type::I32);

		b->emit(Opcode::Integer, Type::I32, most, INT32_MAX, 0);
		b->emit(Opcode::Add, Type::I32, sum, static_cast<int>(k), most);
		b->emit(Opcode::Lt, Type::I32, sum, most, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
	}

	const int64_t n = column(Type::I32, 2, 1);

	b->emit(Opcode::Seek, Type::None, 2, 1, b->add_aux(&n, 1));
	b->emit(Opcode::Match, Type::None, 2, static_cast<int>(kinds[1]), 0);
	b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return seal(*b);
}

class CudaJoinPasses : public CudaRuntime
{
protected:
	void SetUp() override
	{
		sizes = cuda::join_sizes;
		cuda::join_sizes.least_batch = cuda::join_sizes.most_batch = TABLET_PAD_ROWS;
	}
	void TearDown() override
	{
		cuda::join_sizes = sizes;
		CudaRuntime::TearDown();
	}

	/* Columns are read where they lie. */
	Ran			run_short(uint64_t limit, const SealedProgram &program, const std::vector<StoredTable> &stored, Ways ways = Ways())
	{
		library.reset();
		open(limit);
		ways.transfer = Transfer::Mapped;

		const Ran	ran = run(program.get(), stored, {}, ways);

		EXPECT_EQ(status().memory_working.load(), 0u);
		return ran;
	}

	static std::vector<std::string> expected(const SealedProgram &program, const std::vector<StoredTable> &stored)
	{
		std::vector<const Table *> tables;

		for (const StoredTable &table : stored)
			tables.push_back(table.table);

		std::vector<std::string> rows = rows_text(program.get(), Interpreter(program.get(), tables, nullptr, false).run());

		std::sort(rows.begin(), rows.end());
		return rows;
	}

	cuda::JoinSizes sizes;
};

}  // namespace

/* What a later pass has no room for could not be run elsewhere: such a job is refused before it hands out any, or is done. */
TEST_F(CudaJoinPasses, RowsThatLeaveAtOnceMakeNone)
{
	const Table a = three_columns({3000}, 10000, 1), b = three_columns({20000}, 10000, 3);
	const SealedProgram program = join_by_key(JoinKind::Left, Leaves::Rows);
	const std::vector<StoredTable> stored = {arena.store(a), arena.store(b)};
	Ways		ways;

	ways.capacity = 256;
	for (uint64_t limit = 600 << 10; limit < 1200 << 10; limit += 50 << 10)
	{
		const Ran	ran = run_short(limit, program, stored, ways);

		EXPECT_NE(ran.outcome, DeviceOutcome::Failed) << limit << ": " << ran.rows << " rows, " << ran.reason;
		EXPECT_LE(ran.figures.passes, 1u);
	}
	ways.passes = 4;

	const Ran	ran = run_short(0, program, stored, ways);

	EXPECT_EQ(ran.figures.passes, 1u);
	EXPECT_EQ(ran.sorted(), expected(program, stored));
}

/* Groups, sorted rows and sets make them. */
TEST_F(CudaJoinPasses, WhatLeavesAtTheEndMakesThem)
{
	const Table a = three_columns({2000}, 300, 1), b = three_columns({900}, 300, 3);
	const SealedProgram groups = join_by_key(JoinKind::Left, Leaves::Groups), rows = join_by_key(JoinKind::Left, Leaves::Rows);
	const std::vector<StoredTable> stored = {arena.store(a), arena.store(b)};

	for (uint32_t passes : {2, 4, 16})
	{
		Ways		ways;

		ways.passes = passes;

		const Ran	grouped = run_short(0, groups, stored, ways);

		ways.order = {JobOrderKey{0, 0, 0, 0}};

		const Ran	sorted = run_short(0, rows, stored, ways);

		EXPECT_EQ(grouped.figures.passes, passes);
		EXPECT_EQ(grouped.sorted(), expected(groups, stored));
		EXPECT_EQ(sorted.figures.passes, passes);
		EXPECT_EQ(sorted.sorted(), expected(rows, stored));

		for (bool ordered : {false, true})
		{
			ways.sink = true;
			ways.nbuffers = 0;
			ways.order.resize(ordered);
			ways.sink_columns = {SinkColumn{0, SinkForm::Value}, SinkColumn{1, SinkForm::Value}};
			library.reset();
			open();

			const Ran	made = run(rows.get(), stored, {}, ways);
			const std::unique_ptr<DeviceSet> set(made.figures.set);

			EXPECT_EQ(made.outcome, DeviceOutcome::Done) << made.reason;
			EXPECT_EQ(made.figures.passes, passes);
			ASSERT_NE(set, nullptr);
			EXPECT_EQ(set->rows(), expected(rows, stored).size());
		}
	}
}

/* As many as fit, and what groups leave is enough for all of them. */
TEST_F(CudaJoinPasses, AsManyAsFit)
{
	Table		a = three_columns({50}, 60, 1), b = three_columns({60000}, 20000000, 3);

	spread_keys(&a, &b);

	const SealedProgram program = join_by_key(JoinKind::Inner, Leaves::Groups);
	const std::vector<StoredTable> stored = {arena.store(a), arena.store(b)};
	const std::pair<uint64_t, uint32_t> cases[] = {{700 << 10, 8}, {1000 << 10, 4}, {1300 << 10, 2}, {1600 << 10, 2}, {2600 << 10, 1}};

	for (const auto &[limit, passes] : cases)
	{
		const Ran	ran = run_short(limit, program, stored);

		EXPECT_EQ(ran.outcome, DeviceOutcome::Done) << limit << ": " << ran.reason;
		EXPECT_EQ(ran.sorted(), expected(program, stored));
		EXPECT_EQ(ran.figures.passes, passes) << limit;
	}
}

/* Groups, sorted rows and sets do not get smaller by them. */
TEST_F(CudaJoinPasses, WhatTheyCannotMend)
{
	const Table a = three_columns({60000}, 3000, 1), b = three_columns({3000}, 3000, 3);
	const std::vector<StoredTable> stored = {arena.store(a), arena.store(b)};
	Ways		ways;

	const Ran	groups = run_short(1000 << 10, join_by_key(JoinKind::Inner, Leaves::Groups), stored);

	EXPECT_EQ(groups.outcome, DeviceOutcome::Refused);
	EXPECT_NE(groups.reason.find("for the groups"), std::string::npos) << groups.reason;
	EXPECT_LE(groups.figures.passes, 1u);
	ways.order = {JobOrderKey{0, 0, 0, 0}};

	const Ran	sorted = run_short(1000 << 10, join_by_key(JoinKind::Inner, Leaves::Rows), stored, ways);

	EXPECT_EQ(sorted.outcome, DeviceOutcome::Refused);
	EXPECT_EQ(sorted.figures.passes, 1u) << sorted.reason;
}

/* A job waits once for what others have, however often it begins. */
TEST_F(CudaJoinPasses, OnePatience)
{
	Table		a = three_columns({50}, 60, 1), b = three_columns({60000}, 40000, 3);

	spread_keys(&a, &b);

	const std::vector<StoredTable> stored = {arena.store(a), arena.store(b)};

	library.reset();
	open(1000 << 10);
	status().jobs_running.fetch_add(1);

	const auto	since = std::chrono::steady_clock::now();
	Ways		ways;

	ways.transfer = Transfer::Mapped;

	const Ran	ran = run(join_by_key(JoinKind::Inner, Leaves::Count).get(), stored, {}, ways);

	EXPECT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
	EXPECT_EQ(ran.figures.passes, 4u);
	EXPECT_LT(std::chrono::steady_clock::now() - since, std::chrono::milliseconds(3900));
	status().jobs_running.fetch_sub(1);
}

/* Sums are for all pairs of any pass, whatever those of the first are. */
TEST_F(CudaJoinPasses, RowsOfAKey)
{
	const SealedProgram program = join_by_key(JoinKind::Inner, Leaves::Groups);

	for (int64_t key = 0; key < 4; key++)
		for (uint32_t twice : {3, 100})
		{
			Table		a = three_columns({1000}, 1, 1), b = three_columns({300}, 1, 3);

			for (uint32_t i = 0; i < 1000; i++)
				a.columns[0].rows[i] = from_register(key);
			for (uint32_t i = 0; i < 300; i++)
				b.columns[0].rows[i] = from_register(i < twice ? key : static_cast<int64_t>(1000 + i));
			a.build();
			b.build();

			const std::vector<StoredTable> stored = {arena.store(a), arena.store(b)};
			Ways		ways;

			ways.passes = 4;

			const Ran	ran = run_short(0, program, stored, ways);

			EXPECT_EQ(ran.outcome, DeviceOutcome::Done) << key << ": " << ran.reason;
			EXPECT_EQ(ran.figures.passes, 4u);
			EXPECT_EQ(ran.sorted(), expected(program, stored));
		}
}

/* They are those of one pass. */
TEST_F(CudaJoinPasses, Figures)
{
	Rng			rng(1);
	const Table f = facts(rng, {9000, 5000}, 1000), a = side(rng, 0, 30, false), b = side(rng, 1, 40, true), c = side(rng, 2, 100, false);
	const std::vector<StoredTable> stored = {arena.store(f), arena.store(a), arena.store(b), arena.store(c)};

	for (JoinKind last : {JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Anti})
	{
		StarShape	shape;
		Ways		ways;

		shape.kinds[2] = last;

		const SealedProgram program = star_program(shape);
		const Ran	once = run_short(0, program, stored, ways);

		ways.passes = 4;

		const Ran	ran = run_short(0, program, stored, ways);

		EXPECT_EQ(ran.figures.passes, 4u);
		EXPECT_EQ(ran.sorted(), once.sorted());
		EXPECT_EQ(ran.figures.pairs, once.figures.pairs);
		EXPECT_EQ(ran.figures.rows_in, once.figures.rows_in);
		EXPECT_EQ(ran.figures.build_rows, once.figures.build_rows);
		EXPECT_EQ(ran.figures.tablets_scanned, once.figures.tablets_scanned);
	}
}

/* Rows that nothing comes for, and rows that come to nothing behind them, are left out of the sides, where the kind of join lets them be. */
TEST_F(CudaJoinPasses, Reduced)
{
	const Table a = three_columns({900, 300}, 600, 1), b = three_columns({1500}, 600, 3), c = three_columns({1000, 77}, 1000, 5);
	const std::vector<StoredTable> stored = {arena.store(a), arena.store(b), arena.store(c)};

	library.reset();
	open();
	for (JoinKind one : {JoinKind::Inner, JoinKind::Left, JoinKind::Full})
		for (JoinKind two : {JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Anti, JoinKind::Full})
			for (const auto &[first, last] : {std::pair(20, 1000), std::pair(1000, 30), std::pair(20, 30), std::pair(0, 30)})
				for (uint32_t passes : {1, 4})
				{
					if (passes > 1 && last != 30)
						continue;

					JoinKind	kinds[] = {one, two};
					const SealedProgram program = join_chain(kinds, first, last);
					Ways		ways;

					ways.transfer = Transfer::Mapped;

					SCOPED_TRACE(std::to_string(static_cast<int>(one)) + " " + std::to_string(static_cast<int>(two)) + " " + std::to_string(first) + " " +
								 std::to_string(last) + " " + std::to_string(passes));

					const Ran	once = run(program.get(), stored, {}, ways);

					ways.passes = passes;

					const Ran	ran = run(program.get(), stored, {}, ways);

					ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
					EXPECT_EQ(ran.sorted(), expected(program, stored));
					EXPECT_EQ(ran.sorted(), once.sorted());
					if (one == JoinKind::Inner && two == JoinKind::Inner)
					{
						EXPECT_LT(ran.figures.build_rows, once.figures.build_rows / 2);
					}
					if (one == JoinKind::Full && two == JoinKind::Full)
					{
						EXPECT_EQ(ran.figures.build_rows, once.figures.build_rows);
					}
				}
}

/* So rows that leave at once, which make no passes, find room, too; and the next job of the program does not try in vain. */
TEST_F(CudaJoinPasses, ReducedSidesFindRoom)
{
	JoinKind	kinds[] = {JoinKind::Inner, JoinKind::Inner};
	const Table a = three_columns({3000}, 20000, 1), b = three_columns({60000}, 20000, 3), c = three_columns({3000}, 20000, 5);
	const std::vector<StoredTable> stored = {arena.store(a), arena.store(b), arena.store(c)};
	const SealedProgram program = join_chain(kinds, 20, 20000);
	Ways		ways;
	const Ran	ran = run_short(1000 << 10, program, stored, ways);

	EXPECT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
	EXPECT_EQ(ran.figures.passes, 1u);
	EXPECT_LT(ran.figures.build_rows, 20000u);
	EXPECT_EQ(ran.sorted(), expected(program, stored));
	ways.transfer = Transfer::Mapped;
	EXPECT_EQ(run(program.get(), stored, {}, ways).sorted(), expected(program, stored));
}

/* What an attempt has put into a set is not there once more. */
TEST_F(CudaJoinPasses, NoSetTwice)
{
	const Table a = three_columns({50}, 60, 1);
	Table		b = three_columns({60000}, 20000000, 3);
	const SealedProgram program = join_by_key(JoinKind::Inner, Leaves::Rows, 990);
	Rng			rng(7);
	int			done = 0;

	for (Value &key : b.columns[0].rows)
		if (rng() % 100 < 40)
			key = from_register(static_cast<int64_t>(rng() % 60));
	b.build();

	const std::vector<StoredTable> stored = {arena.store(a), arena.store(b)};
	const size_t rows = expected(program, stored).size();

	for (uint64_t limit = 1000 << 10; limit < 3000 << 10; limit += 50 << 10)
	{
		Ways		ways;

		ways.sink = true;
		ways.nbuffers = 0;
		ways.sink_columns = {SinkColumn{0, SinkForm::Value}, SinkColumn{1, SinkForm::Value}};
		ways.transfer = Transfer::Mapped;
		library.reset();
		open(limit);

		const Ran	made = run(program.get(), stored, {}, ways);
		const std::unique_ptr<DeviceSet> set(made.figures.set);

		if (made.outcome != DeviceOutcome::Done)
			continue;
		done++;
		EXPECT_EQ(set->rows(), rows) << limit;
	}
	EXPECT_GT(done, 5);
}

/* A side that is reduced to nothing is no reason not to run, and raise, what stands before it. */
TEST_F(CudaJoinPasses, WhatIsRaisedBefore)
{
	const Table a = three_columns({900}, 600, 1), b = three_columns({1500}, 600, 3);
	Table		c = three_columns({3}, 10, 5);
	JoinKind	kinds[] = {JoinKind::Inner, JoinKind::Inner};

	for (Value &n : c.columns[2].rows)
		n = from_register(1000000);
	c.build();

	const std::vector<StoredTable> stored = {arena.store(a), arena.store(b), arena.store(c)};

	for (bool raises : {false, true})
		for (uint32_t passes : {0, 1, 4})
		{
			Ways		ways;

			ways.passes = passes;

			const Ran	ran = run_short(0, join_chain(kinds, 20, 1000, raises), stored, ways);

			EXPECT_EQ(ran.figures.errors != 0, raises) << passes;
		}
}
