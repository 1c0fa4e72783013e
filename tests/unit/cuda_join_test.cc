/*
 * cuda_join_test.cc: joins by the device library on the emulated device, against the
 * reference interpreter's nested loops: random programs over random tables, with
 * batches so small that each step is made of several; and what surrounds them: memory,
 * stopping, limits, buffers, figures.
 *
 * GPUVM_TEST_PROGRAMS changes how many programs, GPUVM_TEST_SEED where to start.
 */
#include "cuda_order.h"
#include "join.h"
#include "vm_generator.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

class CudaJoin : public CudaRuntime
{
protected:
	void SetUp() override { sizes = cuda::join_sizes; }
	void TearDown() override
	{
		cuda::join_sizes = sizes;
		cuda::join_grids = true;
		CudaRuntime::TearDown();
	}

	static void small_batches(uint32_t pads)
	{
		cuda::join_sizes.least_batch = cuda::join_sizes.most_batch = pads * TABLET_PAD_ROWS;
		cuda::join_sizes.grid_pairs = 8 * TABLET_PAD_ROWS;
		cuda::join_sizes.marks = 2;
	}

	/* Forgets the tables and the device of the program before. */
	void		begin_anew(uint64_t memory_limit)
	{
		arena.next = align_up(sizeof(ArenaHeader), 4096);
		library.reset();
		open(memory_limit);
	}

	std::vector<StoredTable> store_all(const std::vector<Table> &tables, uint32_t unnamed = 0)
	{
		std::vector<StoredTable> stored;

		for (const Table &table : tables)
			stored.push_back(arena.store(table, unnamed));
		return stored;
	}

	cuda::JoinSizes sizes;
};

/* GPUVM_TEST_PASSES: of all programs. */
const uint32_t passes_setting = static_cast<uint32_t>(setting("GPUVM_TEST_PASSES", 0));

struct Tally
{
	uint64_t	programs = 0, refused = 0, clean = 0, with_rows = 0, kept = 0, ordered = 0, dropped = 0;
	std::map<std::string, int> reasons;
};

std::vector<std::string>
sorted_text(const Program *program, const Outcome &outcome)
{
	std::vector<std::string> rows = rows_text(program, outcome);

	std::sort(rows.begin(), rows.end());
	return rows;
}

class CudaJoinRandom : public CudaJoin
{
protected:
	void		run_one(uint64_t seed, bool grouped, bool masks, bool ordered, Tally *tally)
	{
		static const uint32_t outer[] = {1, 5, 64, 200, 1023, 1025, 4097, 5000};
		static const uint32_t inner[] = {1, 2, 7, 30, 64, 130};
		Rng			rng(seed * 2 + grouped);
		const bool	tame = chance(rng, 80);
		const int	ncursors = 2 + pick_int(rng, 2);
		uint64_t	points = outer[pick_int(rng, 8)];
		std::vector<Table> tables;
		std::vector<const Table *> pointers;

		tables.push_back(join_table(rng, tame, static_cast<uint32_t>(points), 3000));
		for (int k = 1; k < ncursors; k++)
		{
			uint32_t	n = inner[pick_int(rng, 6)];

			while (points * n > 40000 && n > 1)
				n = n / 3 + 1;
			points *= n;
			tables.push_back(join_table(rng, tame, n, 40));
		}

		MapSet		maps = random_maps(rng, tame);
		Generator	generator(rng, tables[0], tame, &maps);

		maps.patterns = random_patterns(rng);
		generator.patterns = &maps.patterns;
		for (Table &table : tables)
			add_texts(rng, &table);

		const SealedProgram sealed = generator.make_join(grouped, ncursors);
		const Program *program = sealed.get();
		const std::string what = "seed " + std::to_string(seed) + " grouped " + std::to_string(grouped) + "\n" + program_text(program);
		Ways		ways;

		for (Table &table : tables)
		{
			if (masks && chance(rng, 70))
				mask_randomly(rng, &table);
			pointers.push_back(&table);
		}
		begin_anew(0);
		cuda::join_grids = chance(rng, 75);
		small_batches(1 + static_cast<uint32_t>(pick_int(rng, 3)));
		cuda::join_sizes.filter_rows = chance(rng, 70) ? 0 : sizes.filter_rows;
		cuda::join_sizes.count_bytes = seed % 2 != 0 ? 0 : sizes.count_bytes;
		cuda::join_sizes.count_share = UINT64_MAX;

		const std::vector<StoredTable> stored = store_all(tables, static_cast<uint32_t>(pick_int(rng, 4)));
		const bool	slow = chance(rng, 50);

		ways.maps = &maps.maps;
		ways.patterns = &maps.patterns;
		ways.transfer = ALL_TRANSFERS[pick_int(rng, 5)];
		ways.nbuffers = 1 + static_cast<uint32_t>(pick_int(rng, 4));
		ways.capacity = chance(rng, 50) ? 64u << pick_int(rng, 5) : 4096;
		ways.count_groups = grouped && chance(rng, 15);
		if (ordered)
		{
			ways.order = random_order(rng, program, maps);
			ways.row_limit = chance(rng, 70) ? 1 + rng() % 300 : 0;
		}
		ways.tell = [&](FakeIo *io) { io->slow = slow; };
		ways.passes = passes_setting != 0 ? passes_setting : seed % 3 == 0 ? 1u << seed % 5 : 0;
		gpuvm_emulated::set_seed(seed);

		Ran			ran = run(program, stored, generator.params, ways);

		tally->programs++;
		if (ran.outcome == DeviceOutcome::Refused)
		{
			tally->refused++;
			tally->reasons[ran.reason]++;
			return;
		}
		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason << what;
		if (ran.figures.indexes_made != 0)
		{
			/* once more, with the inner sides that were kept */
			const Ran	again = run(program, stored, generator.params, ways);

			ASSERT_EQ(again.outcome, DeviceOutcome::Done) << again.reason << what;
			ASSERT_EQ(again.figures.indexes_used, ran.figures.indexes_made) << what;
			ASSERT_EQ(again.figures.errors != 0, ran.figures.errors != 0) << what;
			ASSERT_TRUE(ran.figures.errors != 0 || ways.row_limit != 0 || again.sorted() == ran.sorted()) << what;
			tally->kept++;
			ran = again;
		}

		/* errors of pairs that need not be looked at may or may not be met */
		const Outcome least = Interpreter(program, pointers, generator.params.data(), true, maps.maps.data(), &maps.patterns).run();
		const Outcome most = Interpreter(program, pointers, generator.params.data(), false, maps.maps.data(), &maps.patterns).run();

		if (ran.figures.errors != 0)
		{
			ASSERT_TRUE(grouped || !ways.order.empty() ? ran.units.empty() : true) << what;
			if (!has_op(program, Opcode::Cross))
				ASSERT_NE(most.errors, 0u) << what;
			return;
		}
		if (least.errors)
		{
			/* where some side has no rows, the others are not looked at */
			ASSERT_EQ(least.rows.size(), grouped && program->nkeys == 0 ? 1u : 0u) << what;
			return;
		}
		tally->clean++;

		const std::vector<std::string> expected = sorted_text(program, least);

		tally->with_rows += !expected.empty();
		if (ways.count_groups)
		{
			ASSERT_EQ(ran.ngroups, expected.size()) << what;
			return;
		}
		if (!ways.order.empty())
		{
			expect_sorted(program, least, ran, ways);
			tally->ordered += expected.size() > 1;
			tally->dropped += ways.row_limit != 0 && expected.size() > cuda::join_sizes.most_batch;
			return;
		}
		if (ways.row_limit != 0)
			return;
		ASSERT_EQ(ran.sorted(), expected) << what;
		if (!grouped && !expected.empty())
			ASSERT_TRUE(ran.units.size() == 1 && ran.units.count(0) == 1 && ran.units.at(0).whole) << what;
	}

	static bool has_op(const Program *program, Opcode opcode)
	{
		for (int i = 0; i < program->nops; i++)
			if (program->ops()[i].opcode == opcode)
				return true;
		return false;
	}

	void		run_many(bool grouped, bool masks, bool ordered = false)
	{
		const uint64_t n = setting("GPUVM_TEST_PROGRAMS", ordered ? 80 : 60);	/* of sorted rows few are more than are wanted */
		const uint64_t first = setting("GPUVM_TEST_SEED", 1);
		Tally		tally;

		for (uint64_t seed = first; seed < first + n && !HasFatalFailure(); seed++)
			run_one(seed, grouped, masks, ordered, &tally);
		if (n > 1)
			for (const auto &[reason, times] : tally.reasons)
				printf("refused %d of %d: %s\n", times, static_cast<int>(n), reason.c_str());
		if (tally.programs < 50)
			return;
		EXPECT_LT(tally.refused, tally.programs / 3);
		EXPECT_GT(tally.clean, tally.programs / 4);
		EXPECT_TRUE(masks || tally.kept > 0);
		EXPECT_GT(ordered ? tally.ordered : tally.with_rows, tally.programs / 10);
		EXPECT_TRUE(!ordered || tally.dropped > 0);
	}
};

}  // namespace

TEST_F(CudaJoinRandom, Rows)
{
	run_many(false, false);
}

TEST_F(CudaJoinRandom, SortedRows)
{
	run_many(false, true, true);
}

TEST_F(CudaJoinRandom, Groups)
{
	run_many(true, false);
}

TEST_F(CudaJoinRandom, RowsOfMaskedTables)
{
	run_many(false, true);
}

TEST_F(CudaJoinRandom, GroupsOfMaskedTables)
{
	run_many(true, true);
}

/* ---- what surrounds them ------------------------------------------------------------------ */

namespace {

/* SELECT a.v, b.v FROM a [, b | JOIN b ON a.k = b.k] of three_columns(); grouped: count(*), sum(a.v). */
SealedProgram
pair_program(bool seek, bool grouped)
{
	auto		b = new_builder();
	const int64_t sources[] = {RESULT_FROM_AGG | 0, RESULT_FROM_AGG | 1};

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::Table, Type::None, 1, 0, 1);
	if (seek)
		b->emit(Opcode::HashOpen, Type::None, 1, 1, 0);
	b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("a"));
	b->emit(Opcode::ResultColumn, grouped ? Type::I128 : Type::I64, 1, 0, 0, b->add_name("b"));
	if (grouped)
		b->emit(Opcode::AggOpen, Type::None, 0, 2, b->add_aux(sources, 2));
	if (seek)
	{
		const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 1, 0);
		const int64_t key = b->new_reg(Type::I32);

		b->emit(Opcode::Column, Type::I32, static_cast<int>(key), 0, 1);
		b->emit(Opcode::HashInsert, Type::None, 1, 1, b->add_aux(&key, 1));
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	}

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 2, 0, 0);
	const int64_t key = b->new_reg(Type::I32);

	if (seek)
	{
		b->emit(Opcode::Column, Type::I32, static_cast<int>(key), 0, 0);
		b->emit(Opcode::Seek, Type::None, 1, 1, b->add_aux(&key, 1));
	}
	else
		b->emit(Opcode::Cross, Type::None, 1, 0, 0);
	b->emit(Opcode::Match, Type::None, 1, static_cast<int>(JoinKind::Inner), 0);

	const int	v = b->new_reg(Type::I64), w = b->new_reg(Type::I64);

	b->emit(Opcode::Column, Type::I64, v, 1, 0);
	b->emit(Opcode::Column, Type::I64, w, 1, 1);
	if (grouped)
	{
		b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
		b->emit(Opcode::AggStep, Type::I64, 1, v, -1, 0, static_cast<uint8_t>(AggFn::Sum));
	}
	else
		b->emit(Opcode::Result, Type::None, v, 2, 0);
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return seal(*b);
}

}  // namespace

TEST_F(CudaJoin, FiguresAndParts)
{
	const Table outer = three_columns({5000, 3000}, 50, 1), inner = three_columns({100, 77}, 50, 2);
	const SealedProgram program = pair_program(true, false);
	const Outcome expected = Interpreter(program.get(), {&outer, &inner}, nullptr, true).run();
	Ways		ways;

	open();
	small_batches(1);
	ways.nbuffers = 2;
	ways.capacity = 1024;
	for (int round = 0; round < 2; round++)
	{
		const Ran	ran = run(program.get(), {arena.store(outer), arena.store(inner)}, {}, ways);

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		EXPECT_EQ(ran.sorted(), sorted_text(program.get(), expected));
		EXPECT_TRUE(ran.units.at(0).whole);
		EXPECT_GE(ran.units.at(0).parts, expected.rows.size() / 1024);
		EXPECT_EQ(ran.figures.pairs, expected.rows.size());
		EXPECT_EQ(ran.figures.rows_out, expected.rows.size());
		EXPECT_EQ(ran.figures.rows_in, 8000u);
		EXPECT_EQ(ran.figures.build_rows, 177u);
		EXPECT_GT(ran.figures.build_bytes, 177u * 12);
		EXPECT_GT(ran.figures.slices, 4u);
	}
}

TEST_F(CudaJoin, StopsInTheMiddle)
{
	const Table outer = three_columns({9000}, 20, 3), inner = three_columns({400}, 20, 4);

	open();
	small_batches(1);
	for (bool seek : {true, false})
		for (bool grouped : {false, true})
			for (uint64_t asked : {0, 3, 10, 25})
			{
				const SealedProgram program = pair_program(seek, grouped);
				Ways		ways;

				ways.tell = [&](FakeIo *io) { io->stop_after_asking = asked; };
				EXPECT_EQ(run(program.get(), {arena.store(outer), arena.store(inner)}, {}, ways).outcome, DeviceOutcome::Done);
			}

	/* the lanes are as they were: abort words, too */
	const SealedProgram program = pair_program(true, true);
	const Ran	ran = run(program.get(), {arena.store(outer), arena.store(inner)}, {}, Ways());

	ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
	EXPECT_EQ(ran.sorted(), sorted_text(program.get(), Interpreter(program.get(), {&outer, &inner}, nullptr, true).run()));
}

TEST_F(CudaJoin, RowLimitEndsIt)
{
	const Table outer = three_columns({9000, 9000}, 20, 5), inner = three_columns({900}, 20, 6);
	Ways		ways;

	open();
	small_batches(1);
	ways.row_limit = 10;
	for (bool seek : {true, false})
	{
		const Ran	ran = run(pair_program(seek, false).get(), {arena.store(outer), arena.store(inner)}, {}, ways);

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		EXPECT_GE(ran.rows, 10u);
		EXPECT_LE(ran.rows, TABLET_PAD_ROWS * 4u) << "it goes on behind the limit";
	}
}

/* Many more rows than there is room for at first: with a small limit most are dropped on the way, else the row set grows. */
TEST_F(CudaJoin, SortedRowsOfEveryLimit)
{
	const Table outer = three_columns({7000, 2000}, 20, 5), inner = three_columns({90}, 20, 6);
	const SealedProgram program = pair_program(true, false);
	const Outcome expected = Interpreter(program.get(), {&outer, &inner}, nullptr, true).run();

	ASSERT_GT(expected.rows.size(), 6 * TABLET_PAD_ROWS);
	open();
	small_batches(1);
	for (uint64_t limit : {0, 1, 700, 2048, 2049, 9000, 1000000})
		for (bool slow : {false, true})
		{
			Ways		ways;

			ways.row_limit = limit;
			ways.capacity = 1024;
			ways.nbuffers = 2;
			ways.order = {JobOrderKey{1, ORDER_DESC, 0, 0}, JobOrderKey{0, 0, 0, 0}};
			ways.tell = [slow](FakeIo *io) { io->slow = slow; };
			expect_sorted(program.get(), expected, run(program.get(), {arena.store(outer), arena.store(inner)}, {}, ways), ways);
			ASSERT_FALSE(HasFatalFailure()) << "limit " << limit;
			EXPECT_EQ(status().memory_working.load(), 0u);
		}
}

TEST_F(CudaJoin, SortedRowsStopInTheMiddle)
{
	const Table outer = three_columns({9000}, 20, 3), inner = three_columns({90}, 20, 4);
	const SealedProgram program = pair_program(true, false);

	open();
	small_batches(1);
	for (uint64_t limit : {0, 100})
		for (uint64_t asked = 0; asked < 120; asked += 7)
		{
			Ways		ways;

			ways.row_limit = limit;
			ways.order = {JobOrderKey{0, 0, 0, 0}};
			ways.tell = [asked](FakeIo *io) { io->stop_after_asking = asked; };
			EXPECT_EQ(run(program.get(), {arena.store(outer), arena.store(inner)}, {}, ways).outcome, DeviceOutcome::Done);
			EXPECT_EQ(status().memory_working.load(), 0u);
		}
}

TEST_F(CudaJoin, ShortMemoryIsARefusal)
{
	const Table outer = three_columns({20000}, 2000, 7), inner = three_columns({200000}, 2000, 8);
	Ways		ways;

	open(1 << 20);

	/* it says what was asked for and what there is, to the log, too */
	const Ran	little = run(pair_program(true, true).get(), {arena.store(outer), arena.store(inner)}, {}, ways);

	EXPECT_EQ(little.outcome, DeviceOutcome::Refused);
	EXPECT_EQ(little.reason.rfind("the device has not enough memory for the job: ", 0), 0u) << little.reason;
	EXPECT_NE(little.reason.find(" bytes, of 1048576; "), std::string::npos) << little.reason;
	EXPECT_EQ(last_logged, "device 0: a job was refused: " + little.reason);
	EXPECT_EQ(status().memory_working.load(), 0u);
}

/* Units of which some were handed out are another engine's; bits behind the last unit say nothing. */
TEST_F(CudaJoin, UnitsAreNotSkipped)
{
	const Table outer = three_columns({5000}, 20, 9), inner = three_columns({20}, 20, 10);
	Ways		ways;

	open();
	ways.skip_units = {0xfc};
	EXPECT_EQ(run(pair_program(true, false).get(), {arena.store(outer), arena.store(inner)}, {}, ways).outcome, DeviceOutcome::Done);
	ways.skip_units = {0x02};
	EXPECT_EQ(run(pair_program(true, false).get(), {arena.store(outer), arena.store(inner)}, {}, ways).outcome, DeviceOutcome::Refused);
}

/* ---- nested loops one behind the other ------------------------------------------------------ */

namespace {

/* One column, x: i * 7 modulo `most`, from `least` on. */
Table
sevens(uint32_t n, uint32_t most, uint32_t least = 0)
{
	Table		table;
	Column		column{Type::I32, {}};

	for (uint32_t left = n; left > 0; left -= table.tablet_rows.back())
		table.tablet_rows.push_back(std::min(left, 3000u));
	for (uint32_t i = 0; i < n; i++)
		column.rows.push_back(from_register(static_cast<int64_t>(least + i * 7 % most)));
	table.columns.push_back(std::move(column));
	table.build();
	return table;
}

/* SELECT count(*), count(x of the last that is there) FROM t0, each further one joined ON (its x is not less than the one before's). */
SealedProgram
chain_program(int ncursors, JoinKind kind)
{
	auto		b = new_builder();
	const int64_t sources[] = {RESULT_FROM_AGG | 0, RESULT_FROM_AGG | 1};

	for (int k = 0; k < ncursors; k++)
		b->emit(Opcode::Table, Type::None, k, 0, k);
	b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("n"));
	b->emit(Opcode::ResultColumn, Type::I64, 1, 0, 0, b->add_name("m"));
	b->emit(Opcode::AggOpen, Type::None, 0, 2, b->add_aux(sources, 2));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 2, 0, 0);
	int			x = b->new_reg(Type::I32);

	b->emit(Opcode::Column, Type::I32, x, 0, 0);
	for (int k = 1; k < ncursors; k++)
	{
		int			y = b->new_reg(Type::I32);

		b->emit(Opcode::Cross, Type::None, k, 0, 0);
		b->emit(Opcode::Column, Type::I32, y, 0, k);
		b->emit(Opcode::Gt, Type::I32, x, y, b->nops + 1, VERDICT_DIES);
		b->emit(Opcode::Match, Type::None, k, static_cast<int>(kind), 0);
		if (kind == JoinKind::Semi)
			continue;
		x = b->new_reg(Type::I32);
		b->emit(Opcode::Column, Type::I32, x, 0, k);
	}
	b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	b->emit(Opcode::AggStep, Type::I32, 1, x, -1, 0, static_cast<uint8_t>(AggFn::Count));
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return seal(*b);
}

}  // namespace

/* Each level has marks of its own: the levels behind run between two rounds of one that makes pairs of its marks. */
TEST_F(CudaJoin, OuterNestedLoopsBehindEachOther)
{
	const SealedProgram program = chain_program(3, JoinKind::Left);
	const Table a = sevens(4000, 50), b = sevens(16, 50), c = sevens(9, 60);
	const Outcome expected = Interpreter(program.get(), {&a, &b, &c}, nullptr, false).run();

	cuda::join_sizes.least_batch = cuda::join_sizes.most_batch = TABLET_PAD_ROWS;
	open();

	const Ran	ran = run(program.get(), {arena.store(a), arena.store(b), arena.store(c)}, {}, Ways());

	ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
	EXPECT_EQ(ran.sorted(), rows_text(program.get(), expected));
}

/* A launch's size goes by the rows that tiles are padded to: one outer row is not a launch for each inner one. */
TEST_F(CudaJoin, FewOuterRowsAreFewLaunches)
{
	const SealedProgram program = chain_program(2, JoinKind::Semi);
	const Table a = sevens(1, 50, 1000), b = sevens(20000, 60);
	const Outcome expected = Interpreter(program.get(), {&a, &b}, nullptr, false).run();

	cuda::join_sizes.grid_pairs = 64 * TABLET_PAD_ROWS;
	cuda::join_sizes.step_ns = 1e15;	/* however slow the machine is */
	open();

	const Ran	ran = run(program.get(), {arena.store(a), arena.store(b)}, {}, Ways());

	ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
	EXPECT_EQ(ran.sorted(), rows_text(program.get(), expected));
	EXPECT_LT(ran.figures.slices, 1000u);
}
