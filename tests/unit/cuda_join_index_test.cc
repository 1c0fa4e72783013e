/*
 * cuda_join_index_test.cc: inner sides that are kept for later joins (cuda/join_index.h), on the emulated device: which are, that
 * answers stay right whatever was kept, and what becomes of them when memory is short, jobs end early, or several want the same.
 */
#include "cuda_runtime_fixture.h"

#include "join.h"
#include "join_star.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

/* Before the first join: all of them log where their time went. */
const int	logs_joins = setenv("GPUVM_LOG_JOINS", "0", 1);

enum class Way { Seek, Range, Cross };

/* count(*), sum(the inner row's v, or the outer's) over a and b of three_columns(): a.k = b.k, b.k >= a.k, or all pairs. */
struct Shape
{
	Way			way = Way::Seek;
	JoinKind	kind = JoinKind::Inner;
	int			payload = 1;	/* the inner column that is summed; -1: none is read */
	int			condition = 0;	/* inner rows: 1: k < 25; 2: k < a parameter; 3: v + v, which may raise an error, is the key */
	bool		widened = false;	/* the keys are int8 */
};

SealedProgram
make_program(const Shape &shape)
{
	auto		b = new_builder();
	const int64_t sources[] = {RESULT_FROM_AGG | 0, RESULT_FROM_AGG | 1};
	const Type	key_type = shape.widened || shape.condition == 3 ? Type::I64 : Type::I32;
	const bool	inner = shape.payload >= 0 && shape.kind != JoinKind::Semi && shape.kind != JoinKind::Anti;
	const Type	sum_type = inner && shape.payload == 2 ? Type::I32 : Type::I64;
	auto		key_of = [&](int cursor) {
		const int	k = b->new_reg(Type::I32);

		b->emit(Opcode::Column, Type::I32, k, 0, cursor);
		if (cursor == 1 && (shape.condition == 1 || shape.condition == 2))
		{
			const int	bound = b->new_reg(Type::I32);

			if (shape.condition == 1)
				b->emit(Opcode::Integer, Type::I32, bound, 25, 0);
			else
				b->emit(Opcode::Variable, Type::I32, bound, 0, 0);
			b->emit(Opcode::Ge, Type::I32, k, bound, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
		}
		if (key_type == Type::I32)
			return k;

		const int	wide = b->new_reg(Type::I64);

		b->emit(Opcode::Cast, Type::I64, wide, k, 0, 0, static_cast<uint8_t>(Type::I32));
		if (cursor == 0 || shape.condition != 3)
			return wide;

		const int	sum = b->new_reg(Type::I64);

		b->emit(Opcode::Add, Type::I64, sum, wide, wide);
		return sum;
	};

	for (int k = 0; k < 2; k++)
		b->emit(Opcode::Table, Type::None, k, 0, k);
	if (shape.way != Way::Cross)
		b->emit(Opcode::HashOpen, Type::None, 1, 1, shape.way == Way::Range ? HASH_SORTED : 0);
	b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("n"));
	b->emit(Opcode::ResultColumn, Type::I128, 1, 0, 0, b->add_name("s"));
	b->emit(Opcode::AggOpen, Type::None, 0, 2, b->add_aux(sources, 2));
	if (shape.way != Way::Cross)
	{
		const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 1, 0);
		const int64_t key = key_of(1);

		b->emit(Opcode::HashInsert, Type::None, 1, 1, b->add_aux(&key, 1));
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	}

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 2, 0, 0);
	const int64_t bounds[] = {shape.way != Way::Cross ? key_of(0) : -1, -1};

	if (shape.way == Way::Seek)
		b->emit(Opcode::Seek, Type::None, 1, 1, b->add_aux(bounds, 1));
	else if (shape.way == Way::Range)
		b->emit(Opcode::SeekRange, Type::None, 1, RANGE_LO, b->add_aux(bounds, 2));
	else
		b->emit(Opcode::Cross, Type::None, 1, 0, 0);
	b->emit(Opcode::Match, Type::None, 1, static_cast<int>(shape.kind), 0);

	const int	v = b->new_reg(sum_type);

	if (inner)
		b->emit(Opcode::Column, sum_type, v, shape.payload, 1);
	else if (shape.kind == JoinKind::Full)
		b->emit(Opcode::Null, sum_type, v, 0, 0);
	else
		b->emit(Opcode::Column, sum_type, v, 1, 0);
	b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	b->emit(Opcode::AggStep, sum_type, 1, v, -1, 0, static_cast<uint8_t>(AggFn::Sum));
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return seal(*b);
}

constexpr uint32_t INNER = 1 << 1;	/* the only inner cursor's bit */

class CudaJoinIndex : public CudaRuntime
{
protected:
	void SetUp() override
	{
		sizes = cuda::join_sizes;
		most = cuda::most_indexes;
	}
	void TearDown() override
	{
		cuda::join_sizes = sizes;
		cuda::most_indexes = most;
		CudaRuntime::TearDown();
	}

	/* The job is done and right. */
	Ran			expect_join(const SealedProgram &program, const std::vector<StoredTable> &stored, const Ways &ways = Ways(),
							const std::vector<ParamValue> &params = {})
	{
		std::vector<const Table *> tables;

		for (const StoredTable &table : stored)
			tables.push_back(table.table);

		const Ran	ran = run(program.get(), stored, params, ways);
		std::vector<std::string> rows = rows_text(program.get(), Interpreter(program.get(), tables, params.data(), false).run());

		std::sort(rows.begin(), rows.end());
		EXPECT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		EXPECT_EQ(ran.figures.errors, 0u);
		EXPECT_EQ(ran.sorted(), rows);
		return ran;
	}

	void		expect_made(const Ran &ran)
	{
		EXPECT_EQ(ran.figures.indexes_made, INNER);
		EXPECT_EQ(ran.figures.indexes_used, 0u);
		EXPECT_GT(ran.figures.index_bytes, 0u);
	}
	void		expect_used(const Ran &ran)
	{
		EXPECT_EQ(ran.figures.indexes_made, 0u);
		EXPECT_EQ(ran.figures.indexes_used, INNER);
		EXPECT_GT(ran.figures.index_bytes, 0u);
	}
	void		expect_none(const Ran &ran)
	{
		EXPECT_EQ(ran.figures.indexes_made, 0u);
		EXPECT_EQ(ran.figures.indexes_used, 0u);
		EXPECT_EQ(ran.figures.index_bytes, 0u);
	}

	cuda::JoinSizes sizes;
	size_t		most;
};

}  // namespace

/* The second query of each has no rows to read but cursor 0's, whatever these are, and the same figures. */
TEST_F(CudaJoinIndex, EveryJoin)
{
	const Table a = three_columns({500, 250}, 60, 1), other = three_columns({300}, 80, 2), b = three_columns({300, 77}, 50, 3);

	open();
	for (Way way : {Way::Seek, Way::Range, Way::Cross})
		for (JoinKind kind : {JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Anti, JoinKind::Full})
		{
			Shape		shape;

			shape.way = way;
			shape.kind = kind;

			const SealedProgram program = make_program(shape);
			const StoredTable outer = arena.store(a), others = arena.store(other), inner = arena.store(b);
			const Ran	first = expect_join(program, {outer, inner}), second = expect_join(program, {outer, inner});

			SCOPED_TRACE(std::to_string(static_cast<int>(way)) + " " + std::to_string(static_cast<int>(kind)));
			expect_made(first);
			expect_used(second);
			EXPECT_EQ(second.figures.build_rows, 377u);
			EXPECT_EQ(second.figures.build_rows, first.figures.build_rows);
			EXPECT_EQ(second.figures.build_bytes, first.figures.build_bytes);
			EXPECT_EQ(second.figures.build_bytes, second.figures.index_bytes);
			EXPECT_EQ(second.figures.pairs, first.figures.pairs);
			/* a nested loop that only looks whether there are rows reads none of their columns */
			EXPECT_TRUE(second.figures.bytes_read < first.figures.bytes_read ||
						(way == Way::Cross && (kind == JoinKind::Semi || kind == JoinKind::Anti)));
			EXPECT_LT(second.figures.slices, first.figures.slices);
			/* partners are another query's own */
			expect_used(expect_join(program, {others, inner}));
			expect_used(expect_join(program, {outer, inner}));
			EXPECT_GE(status().memory_indexes.load(), first.figures.index_bytes);
			EXPECT_GE(status().memory_cached.load(), status().memory_indexes.load());
			EXPECT_EQ(status().memory_working.load(), 0u);
		}
}

/* Programs that read the same of the same rows share; others do not. */
TEST_F(CudaJoinIndex, WhatIsShared)
{
	const Table a = three_columns({1500}, 60, 1), b = three_columns({300}, 50, 3);
	Shape		shape;

	open();

	const StoredTable outer = arena.store(a), inner = arena.store(b);

	expect_made(expect_join(make_program(shape), {outer, inner}));
	shape.kind = JoinKind::Left;
	expect_used(expect_join(make_program(shape), {outer, inner}));
	shape.payload = 2;
	expect_made(expect_join(make_program(shape), {outer, inner}));
	shape.payload = -1;
	expect_made(expect_join(make_program(shape), {outer, inner}));
	shape.kind = JoinKind::Semi;
	expect_used(expect_join(make_program(shape), {outer, inner}));
	shape.widened = true;
	expect_made(expect_join(make_program(shape), {outer, inner}));
	expect_used(expect_join(make_program(shape), {outer, inner}));
	shape.widened = false;
	shape.way = Way::Range;
	expect_made(expect_join(make_program(shape), {outer, inner}));
	/* a table with itself */
	expect_made(expect_join(make_program(shape), {inner, outer}));
	expect_used(expect_join(make_program(shape), {outer, outer}));
}

TEST_F(CudaJoinIndex, OtherTabletsAreAnother)
{
	const Table a = three_columns({1500}, 60, 1), b = three_columns({300, 200}, 50, 3), changed = three_columns({300, 200}, 50, 4);
	const SealedProgram program = make_program(Shape());
	Table		fewer = three_columns({300}, 50, 3);

	open();

	const StoredTable outer = arena.store(a), inner = arena.store(b);
	StoredTable	turned = inner, less = inner;

	expect_made(expect_join(program, {outer, inner}));
	expect_made(expect_join(program, {outer, arena.store(changed)}));
	std::swap(turned.tablets[0], turned.tablets[1]);
	expect_made(expect_join(program, {outer, turned}));
	less.tablets.pop_back();
	less.table = &fewer;
	expect_made(expect_join(program, {outer, less}));
	expect_used(expect_join(program, {outer, less}));
	expect_used(expect_join(program, {outer, inner}));
	expect_used(expect_join(program, {outer, turned}));
}

/* What is not all rows of tablets that stay is not kept, and does not find what is. */
TEST_F(CudaJoinIndex, WhatIsNone)
{
	const Table a = three_columns({1500}, 60, 1), b = three_columns({300, 200}, 50, 3);
	const SealedProgram program = make_program(Shape());
	ParamValue	param = {};

	open();
	param.type = static_cast<uint32_t>(Type::I32);
	param.value = 30;

	const StoredTable outer = arena.store(a), inner = arena.store(b);

	for (bool there : {false, true})
	{
		SCOPED_TRACE(there);
		for (int condition : {1, 2, 3})
		{
			Shape		shape;

			shape.condition = condition;
			expect_none(expect_join(make_program(shape), {outer, inner}, Ways(), {param}));
		}
		for (Transfer transfer : {Transfer::Serial, Transfer::Stream, Transfer::Mapped})
		{
			Ways		ways;

			ways.transfer = transfer;
			expect_none(expect_join(program, {outer, inner}, ways));
		}
		arena.header->index_limit.store(0);
		expect_none(expect_join(program, {outer, inner}));
		arena.header->index_limit.store(1);

		/* rows that are masked, one tablet that was made for this job */
		Table		masked = three_columns({300, 200}, 50, 3);
		StoredTable hidden = inner;

		masked.masked.push_back(MaskedRows{0, 10, 20});
		hidden.table = &masked;
		Arena::mask(&hidden);
		expect_none(expect_join(program, {outer, hidden}));
		expect_none(expect_join(program, {outer, arena.store(b, 2)}));
		if (!there)
		{
			EXPECT_EQ(status().memory_indexes.load(), 0u);
			expect_made(expect_join(program, {outer, inner}));
		}
	}
	expect_used(expect_join(program, {outer, inner}));
}

/* Indexes and columns go for what is needed now; what is in use stays. */
TEST_F(CudaJoinIndex, ShortMemory)
{
	const Table a = three_columns({300}, 60, 1), b = three_columns({20000}, 20000, 3), large = three_columns({40000, 40000, 40000}, 500, 5);
	const SealedProgram program = make_program(Shape());
	uint64_t	bytes;

	cuda::join_sizes.least_batch = cuda::join_sizes.most_batch = 2 * TABLET_PAD_ROWS;

	const StoredTable outer = arena.store(a), inner = arena.store(b), columns = arena.store(large);

	bytes = column_bytes(columns);
	open(bytes + (256 << 10));
	expect_made(expect_join(program, {outer, inner}));
	expect_used(expect_join(program, {outer, inner}));
	for (int i = 0; i < 3; i++)
		expect_groups(group_program(false).get(), columns, {}, Ways());
	EXPECT_EQ(status().memory_indexes.load(), 0u);
	EXPECT_GT(status().evictions.load(), 0u);
	expect_made(expect_join(program, {outer, inner}));

	/* another job wants its place while it is in use */
	Ways		ways;
	uint64_t	kept = 0;
	bool		asked = false;

	ways.tell = [&](FakeIo *io) {
		io->when_asked = [&] {
			if (asked)
				return;
			asked = true;

			std::thread other([&] { expect_groups(group_program(false).get(), columns, {}, Ways()); });

			other.join();
			kept = status().memory_indexes.load();
		};
	};
	expect_used(expect_join(program, {outer, inner}, ways));
	ASSERT_TRUE(asked);
	EXPECT_GT(kept, 0u);
	EXPECT_EQ(status().memory_working.load(), 0u);
}

/* With gpuvm.index_memory at 0 all go. */
TEST_F(CudaJoinIndex, SwitchedOff)
{
	const Table a = three_columns({1500}, 60, 1), b = three_columns({300}, 50, 3);
	const SealedProgram program = make_program(Shape());

	open();

	const StoredTable outer = arena.store(a), inner = arena.store(b);

	expect_made(expect_join(program, {outer, inner}));
	library->housekeep();
	expect_used(expect_join(program, {outer, inner}));
	arena.header->index_limit.store(0);
	library->housekeep();
	EXPECT_EQ(status().memory_indexes.load(), 0u);
	arena.header->index_limit.store(1);
	expect_made(expect_join(program, {outer, inner}));
}

/* A refresh has made one of its tablets anew. */
TEST_F(CudaJoinIndex, TabletsThatAreGone)
{
	const Table a = three_columns({1500}, 60, 1), b = three_columns({300, 200}, 50, 3);
	const SealedProgram program = make_program(Shape());
	std::vector<StoredTable> inner;

	open();

	const StoredTable outer = arena.store(a);

	for (int i = 0; i < 3; i++)
	{
		inner.push_back(arena.store(b));
		expect_made(expect_join(program, {outer, inner.back()}));
	}

	const uint64_t all = status().memory_indexes.load();

	library->housekeep();
	EXPECT_EQ(status().memory_indexes.load(), all);
	/* no version has it; another tablet lies there */
	const_cast<TabletHeader *>(inner[0].tablets[1].tablet)->refs = 0;
	const_cast<TabletHeader *>(inner[1].tablets[0].tablet)->serial = arena.serial++;
	library->housekeep();
	EXPECT_EQ(status().memory_indexes.load(), all / 3);
	expect_used(expect_join(program, {outer, inner[2]}));
	expect_made(expect_join(program, {outer, inner[1]}));

	/* in use it stays, however it is asked for now */
	Ways		ways;
	uint64_t	while_used = 0;

	ways.tell = [&](FakeIo *io) {
		io->when_asked = [&] {
			const_cast<TabletHeader *>(inner[2].tablets[0].tablet)->refs = 0;
			library->housekeep();
			while_used = std::max(while_used, status().memory_indexes.load());
		};
	};
	expect_used(expect_join(program, {outer, inner[2]}, ways));
	EXPECT_EQ(while_used, all / 3 * 2);
	library->housekeep();
	EXPECT_EQ(status().memory_indexes.load(), all / 3);
}

/* However small they are. */
TEST_F(CudaJoinIndex, TooMany)
{
	const Table a = three_columns({1500}, 60, 1), b = three_columns({300}, 50, 3);
	const SealedProgram program = make_program(Shape());
	std::vector<StoredTable> inner;
	uint64_t	one = 0;

	open();
	cuda::most_indexes = 3;

	const StoredTable outer = arena.store(a);

	for (int i = 0; i < 7; i++)
	{
		inner.push_back(arena.store(b));

		const Ran	ran = expect_join(program, {outer, inner.back()});

		expect_made(ran);
		one = ran.figures.index_bytes;
		expect_used(expect_join(program, {outer, inner.back()}));
	}
	EXPECT_EQ(status().memory_indexes.load(), 3 * one);
	EXPECT_EQ(status().evictions.load(), 4u);
	EXPECT_EQ(status().memory_working.load(), 0u);
}

/* Of two cursors of one table the second finds what the first has built. */
TEST_F(CudaJoinIndex, OneTableTwice)
{
	Rng			rng(2);
	const Table f = facts(rng, {5000}, 1000), a = side(rng, 0, 30, false), c = side(rng, 2, 40, false);
	StarShape	shape;

	shape.kinds[0] = shape.kinds[1] = JoinKind::Semi;

	const SealedProgram program = star_program(shape);

	open();

	const StoredTable sides[] = {arena.store(a), arena.store(c)};
	const Ran	ran = expect_join(program, {arena.store(f), sides[0], sides[0], sides[1]});

	EXPECT_EQ(ran.figures.indexes_made, 0xau);
	EXPECT_EQ(ran.figures.indexes_used, 0x4u);
}

/* A job that ends early has built its index, or leaves nothing of it. */
TEST_F(CudaJoinIndex, StoppedJobs)
{
	const Table a = three_columns({200}, 60, 1), b = three_columns({900, 400, 200}, 500, 3);
	bool		made = false, not_made = false;

	open();

	const StoredTable outer = arena.store(a);

	for (Way way : {Way::Seek, Way::Range, Way::Cross})
		for (uint64_t stop = 0; stop < 12; stop++)
		{
			const StoredTable inner = arena.store(b);
			Shape		shape;
			Ways		ways;

			shape.way = way;
			ways.tell = [&](FakeIo *io) { io->stop_after_asking = stop; };

			const SealedProgram program = make_program(shape);
			const Ran	stopped = run(program.get(), {outer, inner}, {}, ways);

			EXPECT_EQ(status().memory_working.load(), 0u);
			(stopped.figures.indexes_made != 0 ? made : not_made) = true;

			const Ran	next = expect_join(program, {outer, inner});

			EXPECT_EQ(next.figures.indexes_used, stopped.figures.indexes_made);
			EXPECT_EQ(next.figures.indexes_made, INNER & ~stopped.figures.indexes_made);
		}
	EXPECT_TRUE(made && not_made);
}

TEST_F(CudaJoinIndex, RefusedJobsKeepNothing)
{
	const Table a = three_columns({1500}, 60, 1), large = three_columns({200000}, 2000, 8);
	const SealedProgram program = make_program(Shape());
	const StoredTable outer = arena.store(a);

	open(2 << 20);
	EXPECT_EQ(run(program.get(), {outer, arena.store(large)}, {}, Ways()).outcome, DeviceOutcome::Refused);
	EXPECT_EQ(status().memory_indexes.load() + status().memory_working.load(), 0u);
}

/* Inner rows that a condition leaves are counted before there is memory for them, if that may be much: for these alone. */
TEST_F(CudaJoinIndex, CountedRows)
{
	const Table a = three_columns({40, 20}, 60, 1), b = three_columns({9000, 777}, 500, 3);
	ParamValue	bound = {};

	bound.value = 30;
	open();
	for (Way way : {Way::Seek, Way::Range, Way::Cross})
		for (JoinKind kind : {JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Anti, JoinKind::Full})
			for (int condition : {0, 1, 2, 3})
			{
				Shape		shape;

				shape.way = way;
				shape.kind = kind;
				shape.condition = way == Way::Cross ? 0 : condition;
				SCOPED_TRACE(std::to_string(static_cast<int>(way)) + " " + std::to_string(static_cast<int>(kind)) + " " + std::to_string(condition));

				const SealedProgram program = make_program(shape);
				const StoredTable outer = arena.store(a), inner = arena.store(b);
				Ways		ways;

				ways.transfer = Transfer::Stream;	/* no index */
				cuda::join_sizes.count_bytes = UINT64_MAX;

				const Ran	bounded = expect_join(program, {outer, inner}, ways, {bound});

				EXPECT_EQ(last_logged.find("counted first"), std::string::npos);
				cuda::join_sizes.count_bytes = 0;
				cuda::join_sizes.count_share = UINT64_MAX;

				const Ran	counted = expect_join(program, {outer, inner}, ways, {bound});

				/* what has no condition needs no counting, or might have one */
				EXPECT_EQ(last_logged.find("; 1 counted first") != std::string::npos, shape.condition != 0) << last_logged;
				EXPECT_EQ(counted.figures.build_rows, bounded.figures.build_rows);
				EXPECT_EQ(counted.figures.pairs, bounded.figures.pairs);
				if (shape.condition == 1 || shape.condition == 2)
					EXPECT_LT(counted.figures.build_bytes, bounded.figures.build_bytes / 2);
				else
					EXPECT_EQ(counted.figures.build_bytes, bounded.figures.build_bytes);
			}
}

/* So a job finds room, in one pass, that it would not have for all rows; and a limit for inner sides counts those that are there. */
TEST_F(CudaJoinIndex, CountedRowsFindRoom)
{
	const Table a = three_columns({50}, 60, 1), b = three_columns({60000}, 4000, 3);
	Shape		shape;

	shape.condition = 1;

	const SealedProgram program = make_program(shape);

	for (Transfer transfer : {Transfer::Auto, Transfer::Mapped, Transfer::Stream})
	{
		Ways		ways;

		ways.transfer = transfer;
		library.reset();
		open(700 << 10);
		cuda::join_sizes.least_batch = cuda::join_sizes.most_batch = TABLET_PAD_ROWS;
		cuda::join_sizes.count_bytes = UINT64_MAX;

		const Ran	bounded = run(program.get(), {arena.store(a), arena.store(b)}, {}, ways);

		EXPECT_TRUE(bounded.outcome == DeviceOutcome::Refused || bounded.figures.indexes_made == 0) << bounded.reason;
		library.reset();
		open(700 << 10);
		cuda::join_sizes.count_bytes = 0;
		EXPECT_EQ(expect_join(program, {arena.store(a), arena.store(b)}, ways).figures.passes, 1u);
		EXPECT_EQ(status().memory_working.load(), 0u);
		library.reset();
		open();
		cuda::join_sizes.count_share = 1;	/* of the device's there is enough */
		expect_join(program, {arena.store(a), arena.store(b)}, ways);
	}
	EXPECT_EQ(status().memory_working.load(), 0u);
}

/* Joins in passes are what they are in one, with keys that are null, too heavy, or nowhere. */
TEST_F(CudaJoinIndex, Passes)
{
	const Table a = three_columns({400, 250}, 60, 1), b = three_columns({300, 77}, 50, 3), same = three_columns({200}, 1, 4);

	open();
	for (const Table *inner : {&b, &same})
		for (Way way : {Way::Seek, Way::Range})
			for (JoinKind kind : {JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Anti, JoinKind::Full})
				for (uint32_t passes : {1, 2, 16, 256})
				{
					Shape		shape;
					Ways		ways;

					shape.way = way;
					shape.kind = kind;
					ways.passes = passes;
					SCOPED_TRACE(std::to_string(static_cast<int>(kind)) + " " + std::to_string(passes));

					const Ran	ran = expect_join(make_program(shape), {arena.store(a), arena.store(*inner)}, ways);

					EXPECT_EQ(ran.figures.passes, way == Way::Seek ? passes : 1u);
					EXPECT_EQ(ran.figures.build_rows, inner->nrows());
					EXPECT_EQ(ran.figures.rows_in, a.nrows());
					EXPECT_EQ(ran.figures.indexes_made, way == Way::Seek && passes > 1 ? 0u : INNER);
					EXPECT_EQ(status().memory_working.load(), 0u);
				}
}

/* A join for which memory is short makes as many as it needs, if its keys are of too wide a range to be left out by bits. */
TEST_F(CudaJoinIndex, PassesForWantOfMemory)
{
	Table		a = three_columns({50}, 60, 1), b = three_columns({60000}, 40000, 3);
	Ways		ways;

	spread_keys(&a, &b);
	open(1 << 20);
	cuda::join_sizes.least_batch = cuda::join_sizes.most_batch = TABLET_PAD_ROWS;
	ways.transfer = Transfer::Mapped;

	const Ran	ran = expect_join(make_program(Shape()), {arena.store(a), arena.store(b)}, ways);

	EXPECT_GT(ran.figures.passes, 1u);
	EXPECT_LE(ran.figures.passes, 16u);
	EXPECT_EQ(status().memory_working.load(), 0u);
}

/* What filters take of a side they take of its index. */
TEST_F(CudaJoinIndex, Filters)
{
	Rng			rng(1);
	const Table f = facts(rng, {9000, 12000}, 1000), a = side(rng, 0, 30, false), b = side(rng, 1, 20, true), c = side(rng, 2, 40, false);
	const std::vector<const Table *> tables = {&f, &a, &b, &c};
	const SealedProgram program = star_program(StarShape());
	std::vector<StoredTable> stored;

	cuda::join_sizes.filter_rows = 0;
	for (const Table *table : tables)
		stored.push_back(arena.store(*table));
	open();

	const Ran	first = expect_join(program, stored);
	const std::string steps = last_logged;
	const Ran	second = expect_join(program, stored);

	/* rows and keys; tables; the one of the side that has keys twice once more */
	EXPECT_NE(steps.find(", 3 waits); plan"), std::string::npos) << steps << logs_joins;
	EXPECT_EQ(first.figures.indexes_made, 0xeu);
	EXPECT_EQ(second.figures.indexes_used, 0xeu);
	EXPECT_EQ(second.figures.indexes_made, 0u);
	EXPECT_EQ(second.figures.pairs, first.figures.pairs);
	EXPECT_LT(first.figures.pairs, met(tables, 1) + met(tables, 2) + met(tables, 3)) << "nothing was left out first";
}

/* Some build it at the same time; one of these is kept, however many wait for memory, are stopped, or push each other's out. */
TEST_F(CudaJoinIndex, SeveralSessionsWithTheSame)
{
	const Table a = three_columns({200}, 60, 1);
	std::vector<Table> sides;
	std::vector<std::string> expected[3];
	std::vector<SealedProgram> programs;

	for (uint64_t i = 0; i < 2; i++)
		sides.push_back(three_columns({900, 500}, 300, 40 + i));
	for (Way way : {Way::Seek, Way::Range})
	{
		Shape		shape;

		shape.way = way;
		programs.push_back(make_program(shape));
		for (const Table &table : sides)
			expected[static_cast<int>(way)].push_back(rows_text(programs.back().get(), Interpreter(programs.back().get(), {&a, &table}, nullptr,
																								   false).run())[0]);
	}

	const auto	all_done = [&](const std::vector<StoredTable> &stored, const StoredTable &outer)
	{
		for (const SealedProgram &program : programs)
			for (const StoredTable &inner : stored)
				if (run(program.get(), {outer, inner}, {}, Ways()).outcome != DeviceOutcome::Done)
					return false;
		return true;
	};

	for (bool tight : {false, true})
	{
		std::vector<StoredTable> stored;
		std::vector<std::thread> threads;
		std::atomic<int> used{0}, wrong{0};

		cuda::join_sizes.least_batch = cuda::join_sizes.most_batch = 2 * TABLET_PAD_ROWS;
		for (const Table &table : sides)
			stored.push_back(arena.store(table));

		const StoredTable outer = arena.store(a);

		/* tight: a little more than each join needs alone, which all four indexes do not fit beside */
		uint64_t	limit = 0;

		if (tight)
			for (bool enough = false; !enough; limit += 64 << 10)
			{
				open(limit + (64 << 10));
				enough = all_done(stored, outer);
				library.reset();
			}
		open(tight ? limit + (64 << 10) : 0);
		for (uint64_t i = 0; i < 8; i++)
			threads.emplace_back([&, i]
			{
				Rng			rng(i);

				for (int n = 0; n < 6; n++)
				{
					const size_t t = rng() % 2, way = rng() % 2;
					Ways		ways;

					if (n > 0 && chance(rng, 25))
						ways.tell = [&](FakeIo *io) { io->stop_after_asking = rng() % 6; };

					const Ran	ran = run(programs[way].get(), {outer, stored[t]}, {}, ways);

					used += ran.figures.indexes_used == INNER;
					if (!ways.tell && ran.outcome == DeviceOutcome::Done && ran.sorted() != std::vector<std::string>{expected[way][t]})
						wrong++;
					if (!tight && ran.outcome != DeviceOutcome::Done)
						wrong++;
				}
			});
		threads.emplace_back([&]
		{
			for (int i = 0; i < 20; i++)
			{
				library->housekeep();
				std::this_thread::sleep_for(std::chrono::milliseconds(2));
			}
		});
		for (std::thread &thread : threads)
			thread.join();
		EXPECT_EQ(wrong, 0);
		EXPECT_EQ(status().memory_working.load(), 0u);
		if (!tight)
		{
			const uint64_t indexed = status().memory_indexes.load();

			EXPECT_GT(used, 0);
			for (size_t way = 0; way < 2; way++)
				for (const StoredTable &inner : stored)
					expect_used(expect_join(programs[way], {outer, inner}));
			EXPECT_EQ(status().memory_indexes.load(), indexed);
		}
		else
		{
			EXPECT_TRUE(all_done(stored, outer));
			EXPECT_GT(status().evictions.load(), 0u);
		}
		library.reset();
	}
}
