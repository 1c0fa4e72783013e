/*
 * cuda_stage_test.cc: jobs of two programs, the second over the groups of the first, in
 * the device library's job runtime on the emulated device. What is expected is what the
 * reference interpreter gives, one program after the other.
 */
#include "cuda_runtime_fixture.h"
#include "vm_generator.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

/* SELECT [k,] count(*), min(n), v's extremes FROM t [GROUP BY k]: no column is wider than a table's */
SealedProgram
first_program(bool key, bool filter_all = false)
{
	auto		b = new_builder();
	std::vector<int64_t> sources = {RESULT_FROM_AGG | 0, RESULT_FROM_AGG | 1, RESULT_FROM_AGG | 2};
	std::vector<Type> types = {Type::I64, Type::I32, Type::I64};
	const int64_t keys[] = {0};

	if (key)
	{
		sources.push_back(0);
		types.push_back(Type::I32);
	}
	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (size_t c = 0; c < types.size(); c++)
		b->emit(Opcode::ResultColumn, types[c], static_cast<int>(c), 0, 0, b->add_name("c"));
	b->emit(Opcode::AggOpen, Type::None, key, 3, b->add_aux(sources.data(), static_cast<int>(sources.size())));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	const int	k = b->new_reg(Type::I32), v = b->new_reg(Type::I64), n = b->new_reg(Type::I32);

	b->emit(Opcode::Column, Type::I32, k, 0, 0);
	b->emit(Opcode::Column, Type::I64, v, 1, 0);
	b->emit(Opcode::Column, Type::I32, n, 2, 0);
	if (filter_all)
		b->emit(Opcode::Ge, Type::I32, k, k, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
	if (key)
		b->emit(Opcode::Group, Type::None, 1, b->add_aux(keys, 1), 0);
	b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	b->emit(Opcode::AggStep, Type::I32, 1, n, -1, 0, static_cast<uint8_t>(AggFn::Min));
	b->emit(Opcode::AggStep, Type::I64, 2, v, -1, 0, static_cast<uint8_t>(AggFn::Max));
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return seal(*b);
}

/* Of these: the second column (nulls in it) and the third, or how many groups have which second column. */
SealedProgram
second_program(bool grouped, int64_t least = INT64_MIN)
{
	auto		b = new_builder();
	const int64_t sources[] = {0, RESULT_FROM_AGG};

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::ResultColumn, Type::I32, 0, 0, 0, b->add_name("n"));
	b->emit(Opcode::ResultColumn, Type::I64, 1, 0, 0, b->add_name("v"));
	if (grouped)
		b->emit(Opcode::AggOpen, Type::None, 1, 1, b->add_aux(sources, 2));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	const int	bound = b->new_reg(Type::I64), n = b->new_reg(Type::I32), v = b->new_reg(Type::I64);
	const int64_t keys[] = {n};

	b->emit(Opcode::Int64, Type::I64, bound, 0, 0, least);
	b->emit(Opcode::Column, Type::I32, n, 1, 0);
	b->emit(Opcode::Column, Type::I64, v, 2, 0);
	b->emit(Opcode::Lt, Type::I64, v, bound, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
	if (grouped)
	{
		b->emit(Opcode::Group, Type::None, 1, b->add_aux(keys, 1), 0);
		b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	}
	else
		b->emit(Opcode::Result, Type::None, n, 2, 0);
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return seal(*b);
}

/* Every row is a group, with a key far from the others'. */
Table
sparse_table(const std::vector<uint32_t> &tablet_rows)
{
	Table		table = three_columns(tablet_rows, 10, 6);

	for (size_t i = 0; i < table.columns[0].rows.size(); i++)
		table.columns[0].rows[i] = i == 77 ? Value{} : from_register(static_cast<int64_t>(i) * 13001);
	table.build();
	return table;
}

class CudaStage : public CudaRuntime
{
protected:
	void expect_staged(const SealedProgram &first, const SealedProgram &second, const StoredTable &stored, Ways ways)
	{
		const Outcome between = Interpreter(first.get(), *stored.table, nullptr).run();
		const Outcome expected = Interpreter(second.get(), table_of(first.get(), between), nullptr).run();
		std::vector<std::string> rows = rows_text(second.get(), expected);

		ways.stage = second.get();

		const Ran	ran = run(first.get(), stored, {}, ways);

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		ASSERT_EQ(ran.figures.errors, 0u);
		EXPECT_EQ(ran.figures.stage_rows, between.rows.size());
		EXPECT_EQ(status().memory_working.load(), 0u);
		if (ways.count_groups)
		{
			ASSERT_EQ(ran.ngroups, rows.size());
			return;
		}
		std::sort(rows.begin(), rows.end());
		ASSERT_EQ(ran.sorted(), rows);
	}
};

}  // namespace

TEST_F(CudaStage, EveryTransferGivesTheAnswer)
{
	const Table table = three_columns(SOME_TABLETS, 700, 50);
	const StoredTable stored = arena.store(table, 3);

	open();
	for (Transfer transfer : ALL_TRANSFERS)
		for (bool key : {false, true})
			for (bool grouped : {false, true})
				for (bool none : {false, true})
				{
					Ways		ways;

					ways.transfer = transfer;
					ways.capacity = grouped ? 64 : 0;
					expect_staged(first_program(key, none), second_program(grouped, none ? INT64_MIN : 500000000000), stored, ways);
					ASSERT_FALSE(HasFatalFailure()) << "transfer " << static_cast<int>(transfer) << " key " << key << " grouped " << grouped;
				}
	/* programs alone go on as they were */
	expect_groups(group_program(true).get(), stored, {}, Ways());
}

TEST_F(CudaStage, ManyGroups)
{
	const Table table = sparse_table({20000, 12000});
	const StoredTable stored = arena.store(table);
	Ways		ways;

	open();
	for (uint32_t nbuffers : {2, 16})
	{
		ways.nbuffers = nbuffers;
		ways.unit_pads = nbuffers == 2 ? 3 : 1;
		ways.capacity = 0;
		ways.tell = [](FakeIo *io) { io->slow = true; };
		expect_staged(first_program(true), second_program(false, 300000000000), stored, ways);
		ways.capacity = 128;
		expect_staged(first_program(true), second_program(true), stored, ways);
	}
	ways.count_groups = true;
	expect_staged(first_program(true), second_program(true), stored, ways);
}

/* More groups than the first program's table has room for at first. */
TEST_F(CudaStage, GroupsMayTakeASecondAttempt)
{
	const Table table = sparse_table({60000, 60000, 40000});
	Ways		ways;

	open();
	ways.count_groups = true;
	expect_staged(first_program(true), second_program(true), arena.store(table), ways);
}

TEST_F(CudaStage, FiguresSayWhatWasDone)
{
	Table		table = three_columns(SOME_TABLETS, 700, 51);
	std::vector<bool> bits(table.nrows());

	std::fill_n(bits.begin() + 100, 5000, true);
	table.mask(bits);

	const StoredTable stored = arena.store(table);
	const SealedProgram first = first_program(true), second = second_program(false);
	Ways		ways;

	open();
	ways.stage = second.get();

	const Ran	ran = run(first.get(), stored, {}, ways);

	ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
	EXPECT_EQ(ran.figures.rows_in, table.nrows() - 5000);
	EXPECT_EQ(ran.figures.tablets_scanned, SOME_TABLETS.size());
	EXPECT_EQ(ran.figures.stage_rows, 700u);
	EXPECT_EQ(ran.figures.rows_out, 700u);
	EXPECT_EQ(ran.figures.slices, 2u);
}

/* They end the job; nobody could evaluate a unit by other means. */
TEST_F(CudaStage, Errors)
{
	Table		table = sparse_table({20000, 20000});

	table.columns[1].rows[30000] = from_register(int64_t{INT64_MAX});
	table.build();
	open();

	const StoredTable stored = arena.store(table);
	const SealedProgram first = first_program(true);

	for (bool grouped : {false, true})
	{
		auto		b = new_builder();
		const int64_t source = 0;

		b->emit(Opcode::Table, Type::None, 0, 0, 0);
		b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("v"));
		if (grouped)
			b->emit(Opcode::AggOpen, Type::None, 1, 0, b->add_aux(&source, 1));

		const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
		const int	v = b->new_reg(Type::I64), one = b->new_reg(Type::I64), sum = b->new_reg(Type::I64);
		const int64_t keys[] = {sum};

		b->emit(Opcode::Column, Type::I64, v, 2, 0);
		b->emit(Opcode::Int64, Type::I64, one, 0, 0, 1);
		b->emit(Opcode::Add, Type::I64, sum, v, one);
		if (grouped)
			b->emit(Opcode::Group, Type::None, 1, b->add_aux(keys, 1), 0);
		else
			b->emit(Opcode::Result, Type::None, sum, 1, 0);
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
		b->emit(Opcode::Finish, Type::None, 0, 0, 0);

		const SealedProgram second = seal(*b);
		Ways		ways;

		ways.stage = second.get();

		const Ran	ran = run(first.get(), stored, {}, ways);

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		EXPECT_EQ(ran.figures.errors, uint32_t(ERR_INT_OVERFLOW));
		EXPECT_EQ(status().memory_working.load(), 0u);
		for (const auto &[unit, rows] : ran.units)
			EXPECT_FALSE(rows.errors);
	}
}

TEST_F(CudaStage, AJobStopsWhereverItIs)
{
	const Table table = three_columns(SOME_TABLETS, 5000, 52);
	const StoredTable stored = arena.store(table, 2);
	const SealedProgram first[] = {first_program(false), first_program(true)}, second[] = {second_program(false), second_program(true)};

	open();
	for (uint64_t asks = 0; asks < 30; asks++)
		for (int kind = 0; kind < 4; kind++)
		{
			Ways		ways;

			ways.stage = second[kind % 2].get();
			ways.capacity = kind % 2 == 1 ? 64 : 0;
			ways.tell = [&](FakeIo *io) { io->stop_after_asking = asks; };
			EXPECT_EQ(run(first[kind / 2].get(), stored, {}, ways).outcome, DeviceOutcome::Done);
			EXPECT_EQ(status().memory_working.load(), 0u);
			EXPECT_EQ(status().jobs_running.load(), 0u);
		}
	expect_staged(first[1], second[0], stored, Ways());
}

TEST_F(CudaStage, TheRowLimitEndsAJobEarly)
{
	const Table table = three_columns({60000}, 30000, 53);
	const StoredTable stored = arena.store(table);
	const SealedProgram second = second_program(false);
	Ways		ways;

	open();
	ways.stage = second.get();
	ways.row_limit = 5000;
	ways.nbuffers = 2;

	const Ran	ran = run(first_program(true).get(), stored, {}, ways);

	EXPECT_EQ(ran.outcome, DeviceOutcome::Done);
	EXPECT_GE(ran.rows, 5000u);
	EXPECT_LE(ran.rows, 4 * TABLET_PAD_ROWS);
}

/* Whatever there is room for, the job is done or refused with nothing handed out. */
TEST_F(CudaStage, MemoryRunsOut)
{
	const Table table = three_columns({12000, 12000}, 20000, 54);
	const StoredTable stored = arena.store(table);
	const SealedProgram first = first_program(true), second = second_program(true);
	int			refused = 0, done = 0;

	for (uint64_t kb = 256; kb <= 32 << 10; kb *= 2)
	{
		Ways		ways;

		ways.stage = second.get();
		open(kb << 10);

		const Ran	ran = run(first.get(), stored, {}, ways);

		if (ran.outcome == DeviceOutcome::Refused)
		{
			EXPECT_TRUE(ran.units.empty());
			refused++;
		}
		else
		{
			ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
			expect_staged(first, second, stored, Ways());
			done++;
		}
		EXPECT_EQ(status().memory_working.load(), 0u);
		library.reset();
	}
	EXPECT_GT(refused, 0);
	EXPECT_GT(done, 0);
}

TEST_F(CudaStage, AFailedLaunchEndsTheProcess)
{
	const Table table = three_columns({9000}, 10, 33);
	const StoredTable stored = arena.store(table);
	const SealedProgram second = second_program(true);
	Ways		ways;

	ways.stage = second.get();
	open();
	for (int launch : {1, 3, 5})
	{
		gpuvm_emulated::fail_launch(launch);
		EXPECT_THROW(run(first_program(true).get(), stored, {}, ways), Fatal) << launch;
	}
	gpuvm_emulated::fail_launch(0);
}

TEST_F(CudaStage, RandomPrograms)
{
	const uint64_t n = setting("GPUVM_TEST_PROGRAMS", 40);
	const uint64_t first_seed = setting("GPUVM_TEST_SEED", 1);
	uint64_t	refused = 0, clean = 0, with_rows = 0, joined = 0, summed = 0;

	open();
	for (uint64_t seed = first_seed; seed < first_seed + n; seed++)
	{
		Rng			rng(seed);
		const bool	tame = chance(rng, 80), grouped = chance(rng, 60);
		const int	ncursors = chance(rng, 25) ? 2 : 1;
		const MapSet maps = random_maps(rng, tame);
		std::vector<Table> tables;
		std::vector<const Table *> pointers;
		std::vector<StoredTable> stored;

		arena.next = align_up(sizeof(ArenaHeader), 4096);
		for (int k = 0; k < ncursors; k++)
			tables.push_back(ncursors == 1 ? random_table(rng, tame) : join_table(rng, tame, 1 + static_cast<uint32_t>(pick_int(rng, k == 0 ? 300 : 12)), 150));
		for (Table &table : tables)
		{
			if (chance(rng, 50))
				mask_randomly(rng, &table);
			pointers.push_back(&table);
			stored.push_back(arena.store(table, static_cast<uint32_t>(pick_int(rng, 4))));
		}

		Generator	generator(rng, tables[0], tame, &maps);

		const SealedProgram first = ncursors == 1 ? generator.make(true, 2) : generator.make_join(true, ncursors);
		const Outcome between = Interpreter(first.get(), pointers, generator.params.data(), false, maps.maps.data()).run();
		std::vector<bool> overflows;
		const Table table = table_of(first.get(), between.errors != 0 ? Outcome{} : between, &overflows);
		Generator	stage(rng, table, tame, &maps);

		stage.params = generator.params;
		stage.rowids = false;

		const SealedProgram second = stage.make(grouped, 2);
		Outcome		expected = Interpreter(second.get(), table, stage.params.data(), maps.maps.data()).run();
		Type		types[PROGRAM_MAX_COLUMNS];

		program_result_types(first.get(), types);
		for (int i = 0; i < second.get()->nops; i++)
		{
			const Op   &op = second.get()->ops()[i];

			if (!reads_column(op))
				continue;
			summed += types[op.p2] == Type::I128;
			if (overflows[static_cast<size_t>(op.p2)])
				expected.errors |= ERR_INT_OVERFLOW;
		}

		const std::string what = "seed " + std::to_string(seed) + "\n" + program_text(first.get()) + "\n" + program_text(second.get());
		std::vector<std::string> rows = rows_text(second.get(), expected);

		std::sort(rows.begin(), rows.end());
		for (int i = 0; i < 2; i++)
		{
			const bool	slow = chance(rng, 50);
			Ways		ways;

			ways.maps = &maps.maps;
			ways.stage = second.get();
			ways.unit_pads = 1 + static_cast<uint32_t>(pick_int(rng, 2));
			ways.nbuffers = 1 + static_cast<uint32_t>(pick_int(rng, 5));
			ways.transfer = ALL_TRANSFERS[pick_int(rng, 5)];
			ways.count_groups = grouped && chance(rng, 20);
			ways.tell = [&](FakeIo *io) { io->slow = slow; };

			const Ran	ran = run(first.get(), stored, stage.params, ways);

			EXPECT_EQ(status().memory_working.load(), 0u);
			if (ran.outcome == DeviceOutcome::Refused)
			{
				refused++;
				continue;
			}
			ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason << what;
			/* what a join has to look at is not one thing */
			if (ncursors > 1 && (between.errors != 0 || ran.figures.errors != 0))
				continue;
			ASSERT_EQ(ran.figures.errors != 0, between.errors != 0 || expected.errors != 0) << what;
			if (ran.figures.errors != 0)
				continue;
			ASSERT_EQ(ran.figures.stage_rows, between.rows.size()) << what;
			clean++;
			joined += ncursors > 1;
			with_rows += !rows.empty();
			if (ways.count_groups)
				ASSERT_EQ(ran.ngroups, rows.size()) << what;
			else
				ASSERT_EQ(ran.sorted(), rows) << what;
		}
	}
	if (n >= 40)
	{
		EXPECT_LT(refused, n) << "most jobs were refused";
		EXPECT_GT(clean, n / 2);
		EXPECT_GT(with_rows, n / 3);
		EXPECT_GT(joined, 0u);
		EXPECT_GT(summed, 0u);
	}
}

TEST_F(CudaStage, SeveralSessionsAtOnce)
{
	const Table table = three_columns({9000, 5000}, 500, 55);
	const StoredTable stored = arena.store(table);
	std::vector<std::thread> threads;

	open();
	for (uint64_t i = 0; i < 10; i++)
		threads.emplace_back([&, i]
		{
			Rng			rng(i);
			const SealedProgram first = first_program(chance(rng, 70)), second = second_program(chance(rng, 50));
			const Outcome between = Interpreter(first.get(), table, nullptr).run();
			const Outcome expected = Interpreter(second.get(), table_of(first.get(), between), nullptr).run();
			std::vector<std::string> rows = rows_text(second.get(), expected);

			std::sort(rows.begin(), rows.end());
			for (int n = 0; n < 5; n++)
			{
				const uint64_t stop = chance(rng, 20) ? static_cast<uint64_t>(pick_int(rng, 15)) : UINT64_MAX;
				Ways		ways;

				ways.stage = second.get();
				ways.nbuffers = 1 + static_cast<uint32_t>(pick_int(rng, 4));
				ways.tell = [&](FakeIo *io) { io->stop_after_asking = stop; };

				const Ran	ran = run(first.get(), stored, {}, ways);

				EXPECT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
				if (stop == UINT64_MAX)
				{
					EXPECT_EQ(ran.sorted(), rows);
				}
			}
		});
	for (std::thread &thread : threads)
		thread.join();
	EXPECT_EQ(status().jobs_running.load(), 0u);
	EXPECT_EQ(status().memory_working.load(), 0u);
}
