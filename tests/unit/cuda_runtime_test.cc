/*
 * cuda_runtime_test.cc: the device library's job runtime on the emulated device:
 * transfers, residency, slices, buffers, stopping, failures and several sessions,
 * each result against the CPU virtual machine's.
 */
#include "cuda_runtime_fixture.h"
#include "vm_generator.h"

using namespace gpuvm;
using namespace gpuvm::reference;

/* ---- results ----------------------------------------------------------------------------- */

TEST_F(CudaRuntime, EveryTransferGivesTheRows)
{
	const Table table = three_columns(SOME_TABLETS, 1000, 1);

	open();
	for (uint32_t unnamed : {0, 2})
	{
		const StoredTable stored = arena.store(table, unnamed);

		for (Transfer transfer : ALL_TRANSFERS)
			for (int limit : {0, 50, 1000})
				for (uint32_t unit_pads : {1, 3})
				{
					Ways		ways;

					ways.transfer = transfer;
					ways.unit_pads = unit_pads;
					expect_rows(filter_program(limit).get(), stored, {}, ways);
					ASSERT_FALSE(HasFatalFailure()) << "transfer " << static_cast<int>(transfer) << " limit " << limit;
				}
	}
}

TEST_F(CudaRuntime, EveryTransferGivesTheAggregatesAndGroups)
{
	const Table table = three_columns(SOME_TABLETS, 700, 2);
	const StoredTable stored = arena.store(table, 3);

	open();
	for (Transfer transfer : ALL_TRANSFERS)
		for (bool key : {false, true})
			for (bool count : {false, true})
			{
				Ways		ways;

				ways.transfer = transfer;
				ways.count_groups = count;
				ways.capacity = 64;		/* many buffers of groups */
				expect_groups(group_program(key).get(), stored, {}, ways);
				ASSERT_FALSE(HasFatalFailure()) << "transfer " << static_cast<int>(transfer) << " key " << key;
			}
}

TEST_F(CudaRuntime, RandomPrograms)
{
	const uint64_t n = setting("GPUVM_TEST_PROGRAMS", 30);
	const uint64_t first = setting("GPUVM_TEST_SEED", 1);
	uint64_t	refused = 0;

	for (uint64_t seed = first; seed < first + n; seed++)
	{
		Rng			rng(seed);
		const bool	tame = chance(rng, 80), grouped = chance(rng, 50);
		Table		table = random_table(rng, tame);
		MapSet		maps = random_maps(rng, tame);
		Generator	generator(rng, table, tame, &maps);

		maps.patterns = random_patterns(rng);
		generator.patterns = &maps.patterns;
		add_texts(rng, &table);

		const SealedProgram sealed = generator.make(grouped, 2);
		Ways		ways;

		ways.maps = &maps.maps;
		ways.patterns = &maps.patterns;
		if (chance(rng, 50))
			mask_randomly(rng, &table);
		arena.next = align_up(sizeof(ArenaHeader), 4096);
		library.reset();
		open(chance(rng, 30) ? 256 << 10 : 0);

		const StoredTable stored = arena.store(table, static_cast<uint32_t>(pick_int(rng, 4)));

		ways.unit_pads = 1 + static_cast<uint32_t>(pick_int(rng, 2));
		ways.nbuffers = 1 + static_cast<uint32_t>(pick_int(rng, 5));
		if (!grouped && chance(rng, 30))
			ways.skip_units = {static_cast<uint8_t>(rng())};
		for (int i = 0; i < 4; i++)
		{
			const bool	slow = chance(rng, 50);

			ways.transfer = ALL_TRANSFERS[pick_int(rng, 5)];
			ways.count_groups = grouped && chance(rng, 20);
			ways.tell = [&](FakeIo *io) { io->slow = slow; };
			/* by lowering, or because memory is so short */
			if (run(sealed.get(), stored, generator.params, ways).outcome == DeviceOutcome::Refused)
			{
				refused++;
				continue;
			}
			if (grouped)
				expect_groups(sealed.get(), stored, generator.params, ways);
			else
				expect_rows(sealed.get(), stored, generator.params, ways);
			ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << " run " << i << "\n" << program_text(sealed.get());
		}
	}
	EXPECT_LT(refused, n * 2) << "most jobs were refused";
}

/* Lists that operations have no room for: sent once a job, for all of its slices. */
TEST_F(CudaRuntime, LongListsAreEachJobsOwn)
{
	const Table table = three_columns({30000, 30000}, 5000, 12);
	const StoredTable stored = arena.store(table);

	open();
	for (int64_t step : {2, 3, 7})
	{
		auto		b = new_builder();
		std::vector<int64_t> list;

		for (int64_t v = 0; v < 600; v++)
			list.push_back(v * step);
		b->emit(Opcode::Table, Type::None, 0, 0, 0);
		b->emit(Opcode::ResultColumn, Type::I32, 0, 0, 0, b->add_name("k"));

		const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
		const int	k = b->new_reg(Type::I32), in = b->new_reg(Type::Bool), out = b->new_reg(Type::I32);

		b->emit(Opcode::Column, Type::I32, k, 0, 0);
		b->emit(Opcode::In, Type::I32, in, k, b->add_aux(list.data(), static_cast<int>(list.size())), static_cast<int64_t>(list.size()));
		b->emit(Opcode::IfNot, Type::Bool, in, 0, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
		b->emit(Opcode::Column, Type::I32, out, 0, 0);
		b->emit(Opcode::Result, Type::None, out, 1, 0);
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
		b->emit(Opcode::Finish, Type::None, 0, 0, 0);
		ASSERT_FALSE(b->failed);

		const SealedProgram sealed = seal(*b);
		Ways		ways;

		ways.nbuffers = 2;		/* a unit a slice */
		expect_rows(sealed.get(), stored, {}, ways);

		const Ran	ran = run(sealed.get(), stored, {}, ways);

		EXPECT_GT(ran.figures.slices, 10u);
		EXPECT_GT(ran.rows, 1000u);
	}
}

TEST_F(CudaRuntime, ErrorsStayWithTheirUnits)
{
	Table		table = three_columns({9000, 5000}, 10, 3);

	table.columns[0].rows[4500] = from_register(int64_t{INT32_MAX});
	table.build();
	open();

	const StoredTable stored = arena.store(table);
	const Ran	ran = run(filter_program(1000, 5).get(), stored, {}, Ways());

	ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
	EXPECT_FALSE(ran.units.at(0).errors);
	EXPECT_TRUE(ran.units.at(1).errors);
	EXPECT_FALSE(ran.units.at(2).errors);
	expect_rows(filter_program(1000, 5).get(), stored, {}, Ways());
}

TEST_F(CudaRuntime, SkippedTabletsAndUnitsAreNotRun)
{
	const Table table = three_columns(SOME_TABLETS, 100, 4);
	StoredTable stored = arena.store(table);
	Ways		ways;

	open();
	stored.tablets[1].skip = stored.tablets[3].skip = true;
	ways.skip_units = {0x11};
	expect_rows(filter_program(50).get(), stored, {}, ways);

	const Ran	ran = run(filter_program(50).get(), stored, {}, ways);

	/* unit 0 is the first tablet's first; unit 4 is all of the third tablet */
	EXPECT_EQ(ran.figures.tablets_scanned, 2u);
	EXPECT_EQ(ran.units.count(0), 0u);
	EXPECT_EQ(ran.units.count(1), 1u);
	EXPECT_EQ(ran.units.count(4), 0u);

	for (DeviceTabletRef &ref : stored.tablets)
		ref.skip = true;
	expect_rows(filter_program(50).get(), stored, {}, Ways());
	EXPECT_EQ(run(group_program(true).get(), stored, {}, Ways()).units.size(), 0u);

	const Ran	empty = run(group_program(false).get(), stored, {}, Ways());

	ASSERT_EQ(empty.sorted().size(), 1u) << empty.reason;
	EXPECT_NE(empty.sorted()[0].find("null"), std::string::npos);
}

TEST_F(CudaRuntime, FiguresSayWhatWasDone)
{
	const Table table = three_columns({8192, 4096}, 1000, 5);
	const StoredTable stored = arena.store(table);
	const uint64_t bytes = column_bytes(stored);
	Ways		ways;

	open();
	ways.transfer = Transfer::Mapped;

	const SealedProgram program = group_program(false);
	Ran			ran = run(program.get(), stored, {}, ways);

	EXPECT_EQ(ran.figures.transfer, Transfer::Mapped);
	EXPECT_EQ(ran.figures.bytes_read, bytes);
	EXPECT_GE(ran.figures.bytes_moved, bytes);
	EXPECT_EQ(ran.figures.rows_in, 12288u);
	EXPECT_EQ(ran.figures.rows_out, 1u);
	EXPECT_EQ(ran.figures.tablets_scanned, 2u);
	EXPECT_GE(ran.figures.slices, 1u);
	EXPECT_EQ(status().memory_cached.load(), 0u);

	ways.transfer = Transfer::Auto;
	ran = run(program.get(), stored, {}, ways);
	EXPECT_EQ(ran.figures.transfer, Transfer::Cached);
	EXPECT_GE(ran.figures.bytes_moved, bytes);
	EXPECT_EQ(status().memory_cached.load(), bytes);
	EXPECT_EQ(status().memory_working.load(), 0u);

	/* now they are there */
	ran = run(program.get(), stored, {}, ways);
	EXPECT_EQ(ran.figures.bytes_read, bytes);
	EXPECT_LT(ran.figures.bytes_moved, 1000u);
	EXPECT_EQ(status().jobs_done.load(), 3u);
	EXPECT_EQ(status().jobs_running.load(), 0u);
}

/* More groups than the first table has room for: the job starts again, with its columns. */
TEST_F(CudaRuntime, GroupsMayTakeASecondAttempt)
{
	Table		table = three_columns({60000, 60000, 40000}, 10, 6);
	const SealedProgram program = group_program(true);

	for (size_t i = 0; i < table.columns[0].rows.size(); i++)
		table.columns[0].rows[i] = from_register(static_cast<int64_t>(i) * 13001);
	table.build();
	open();

	const StoredTable stored = arena.store(table);

	for (Transfer transfer : {Transfer::Stream, Transfer::Serial, Transfer::Cached})
	{
		const Ran	ran = run(program.get(), stored, {}, [&] {
			Ways		ways;

			ways.transfer = transfer;
			ways.count_groups = true;
			return ways;
		}());

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		EXPECT_EQ(ran.ngroups, 160000u);
		EXPECT_EQ(ran.figures.rows_in, 160000u);
		EXPECT_EQ(ran.figures.tablets_scanned, 3u);
		if (transfer != Transfer::Cached)
		{
			EXPECT_GE(ran.figures.bytes_moved, 2 * column_bytes(stored)) << "the first table was large enough";
		}
	}
}

/* ---- where things lie ------------------------------------------------------------------------ */

TEST_F(CudaRuntime, TabletsMayLieAcrossPinnedChunks)
{
	const Table table = three_columns({12000, 12000, 12000}, 1000, 6);

	open();
	for (uint64_t before : {100, 30000, 90000})
		for (Transfer transfer : ALL_TRANSFERS)
		{
			Ways		ways;

			arena.next = MIN_PIN_CHUNK - before * 2 / 64 * 64;
			ways.transfer = transfer;
			expect_rows(filter_program(50).get(), arena.store(table), {}, ways);
			ASSERT_FALSE(HasFatalFailure()) << "transfer " << static_cast<int>(transfer) << " before " << before;
		}
}

TEST_F(CudaRuntime, ChunksAreUnpinnedWhenAskedForAndPinnedAgain)
{
	const Table table = three_columns({9000}, 1000, 7);
	const StoredTable stored = arena.store(table);
	Ways		ways;

	open();
	ways.transfer = Transfer::Mapped;
	expect_rows(filter_program(50).get(), stored, {}, ways);
	EXPECT_EQ(pin_state(arena.header->pins[0]), PinState::Pinned);
	library->housekeep();
	EXPECT_EQ(pin_state(arena.header->pins[0]), PinState::Pinned);
	unpin_wanted(&arena.header->pins[0]);
	library->housekeep();
	EXPECT_EQ(pin_state(arena.header->pins[0]), PinState::PunchWanted);
	expect_rows(filter_program(50).get(), stored, {}, ways);
	EXPECT_EQ(pin_state(arena.header->pins[0]), PinState::Pinned);

	/* wanted back, but wanted again before that came to pass */
	unpin_wanted(&arena.header->pins[0]);
	expect_rows(filter_program(50).get(), stored, {}, ways);
	EXPECT_EQ(pin_state(arena.header->pins[0]), PinState::Pinned);
}

TEST_F(CudaRuntime, ChunksThatAJobUsesStayPinned)
{
	const Table table = three_columns({9000}, 1000, 7);
	const StoredTable stored = arena.store(table);
	Ways		ways;
	int			asked = 0;

	open();
	ways.transfer = Transfer::Mapped;
	ways.tell = [&](FakeIo *io)
	{
		io->when_asked = [&]
		{
			unpin_wanted(&arena.header->pins[0]);
			library->housekeep();
			EXPECT_EQ(pin_state(arena.header->pins[0]), PinState::UnpinWanted);
			asked++;
		};
	};
	expect_rows(filter_program(50).get(), stored, {}, ways);
	EXPECT_GT(asked, 0);
	library->housekeep();
	EXPECT_EQ(pin_state(arena.header->pins[0]), PinState::PunchWanted);
}

TEST_F(CudaRuntime, AJobIsRefusedWhileItsResultsCannotBePinned)
{
	const Table table = three_columns({9000}, 1000, 8);
	const StoredTable stored = arena.store(table);

	open();
	ASSERT_TRUE(punch_enter(&arena.header->pins[0]));

	const Ran	ran = run(filter_program(50).get(), stored, {}, Ways());

	EXPECT_EQ(ran.outcome, DeviceOutcome::Refused);
	EXPECT_NE(ran.reason.find("pinned"), std::string::npos) << ran.reason;
	/* a single result row is written by the host */
	expect_groups(group_program(false).get(), stored, {}, Ways());
	punch_leave(&arena.header->pins[0]);
	expect_rows(filter_program(50).get(), stored, {}, Ways());
}

TEST_F(CudaRuntime, PreparePinsAhead)
{
	const Table table = three_columns({9000}, 1000, 9);
	const StoredTable stored = arena.store(table);
	const uint64_t offset = static_cast<uint64_t>(reinterpret_cast<const char *>(stored.tablets[0].tablet) - arena.base);

	open();
	library->prepare(offset, stored.tablets[0].tablet->size);
	EXPECT_EQ(pin_state(arena.header->pins[0]), PinState::Pinned);
}

/* ---- memory --------------------------------------------------------------------------------------- */

TEST_F(CudaRuntime, WhatDoesNotFitIsEvictedOrMapped)
{
	std::vector<Table> tables;
	std::vector<StoredTable> stored;
	uint64_t	bytes;

	for (uint64_t i = 0; i < 4; i++)
		tables.push_back(three_columns({9000, 9000}, 1000, 10 + i));
	for (const Table &table : tables)
		stored.push_back(arena.store(table));
	bytes = column_bytes(stored[0]);

	/* one table and a bit; half a table */
	for (uint64_t limit : {bytes * 3 / 2, bytes / 2})
	{
		library.reset();
		open(limit);

		const uint64_t before = status().evictions.load();

		for (int round = 0; round < 3; round++)
			for (const StoredTable &t : stored)
				for (Transfer transfer : {Transfer::Auto, Transfer::Cached})
				{
					Ways		ways;

					ways.transfer = transfer;
					expect_groups(group_program(false).get(), t, {}, ways);
					ASSERT_FALSE(HasFatalFailure());
					EXPECT_LE(status().memory_cached.load() + status().memory_working.load(), limit);
				}
		EXPECT_GT(status().evictions.load(), before);
		EXPECT_GT(status().memory_cached.load(), 0u);
		EXPECT_EQ(status().memory_working.load(), 0u);
	}
}

/* Found one by one, then as a set, with a delta behind, by other programs, and after others took the room. */
TEST_F(CudaRuntime, ManyTabletsAreFoundAtOnce)
{
	const std::vector<uint32_t> rows(24, 900);
	const Table table = three_columns(rows, 1000, 50), other = three_columns(rows, 1000, 51);
	const StoredTable stored = arena.store(table), second = arena.store(other);
	Ways		ways;

	open(column_bytes(stored) * 3 / 2);
	for (int round = 0; round < 3; round++)
		for (const StoredTable *t : {&stored, &second})
		{
			const uint64_t before = status().evictions.load();

			for (int i = 0; i < 4; i++)
			{
				expect_groups(group_program(i % 2 != 0).get(), *t, {}, ways);
				expect_rows(filter_program(300).get(), *t, {}, ways);
			}
			EXPECT_EQ(status().evictions.load() > before, round > 0 || t == &second);
			EXPECT_EQ(status().memory_working.load(), 0u);
		}
}

/* A set that nobody uses does not keep a table that would find room without it from being kept. */
TEST_F(CudaRuntime, IdleSetsMakeRoom)
{
	const Table small = three_columns(std::vector<uint32_t>(8, 900), 1000, 52), large = three_columns(std::vector<uint32_t>(12, 900), 1000, 53);
	const StoredTable first = arena.store(small), second = arena.store(large);

	open(column_bytes(first) * 11 / 5);
	for (int i = 0; i < 4; i++)
		expect_groups(group_program(false).get(), first, {}, Ways());

	const Ran	ran = run(group_program(false).get(), second, {}, Ways());

	ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
	EXPECT_EQ(ran.figures.transfer, Transfer::Cached);
}

TEST_F(CudaRuntime, ATableBeyondTheLimitIsStreamed)
{
	const Table table = three_columns({9000, 9000, 9000, 9000}, 1000, 20);
	const StoredTable stored = arena.store(table);

	open(column_bytes(stored) / 2);

	const Ran	ran = run(group_program(false).get(), stored, {}, Ways());

	EXPECT_EQ(ran.figures.transfer, Transfer::Stream);
	expect_groups(group_program(false).get(), stored, {}, Ways());
	for (Transfer transfer : ALL_TRANSFERS)
	{
		Ways		ways;

		ways.transfer = transfer;
		expect_groups(group_program(false).get(), stored, {}, ways);
	}
}

TEST_F(CudaRuntime, AnotherUserOfTheDeviceMayHaveItsMemory)
{
	const Table table = three_columns({9000, 9000}, 5000, 21);
	const StoredTable stored = arena.store(table), other = arena.store(table);
	Ways		ways;

	open();
	expect_groups(group_program(false).get(), stored, {}, ways);
	EXPECT_EQ(status().memory_cached.load(), column_bytes(stored));

	/* no byte more than what is in use: what is kept must go for the others */
	gpuvm_emulated::limit_memory(gpuvm_emulated::allocated_bytes());
	expect_groups(group_program(false).get(), other, {}, ways);
	EXPECT_GT(status().evictions.load(), 0u);
	expect_rows(filter_program(300).get(), stored, {}, ways);

	/* nothing at all: columns are mapped, and what needs memory of its own is refused */
	gpuvm_emulated::limit_memory(0);
	for (Transfer transfer : ALL_TRANSFERS)
	{
		ways.transfer = transfer;
		expect_groups(group_program(false).get(), other, {}, ways);
	}

	const Ran	rows = run(filter_program(300).get(), stored, {}, ways), groups = run(group_program(true).get(), stored, {}, ways);

	EXPECT_EQ(rows.outcome, DeviceOutcome::Refused);
	EXPECT_EQ(groups.outcome, DeviceOutcome::Refused);
	EXPECT_NE(rows.reason.find("memory"), std::string::npos) << rows.reason;
	EXPECT_NE(groups.reason.find("memory"), std::string::npos) << groups.reason;
	EXPECT_TRUE(rows.units.empty() && groups.units.empty());
	EXPECT_EQ(status().jobs_refused.load(), 2u);

	gpuvm_emulated::limit_memory(SIZE_MAX);
	expect_rows(filter_program(300).get(), stored, {}, ways);
	expect_groups(group_program(true).get(), stored, {}, ways);
	EXPECT_EQ(status().memory_working.load(), 0u);
}

/* ---- buffers and stopping ---------------------------------------------------------------------------- */

TEST_F(CudaRuntime, FewBuffersAreEnough)
{
	const Table table = three_columns(SOME_TABLETS, 1000, 30);
	const StoredTable stored = arena.store(table);

	open();
	for (uint32_t nbuffers : {1, 2, 3, 16})
		for (int limit : {3, 1000})
		{
			Ways		ways;

			ways.nbuffers = nbuffers;
			ways.tell = [](FakeIo *io) { io->slow = true; };
			expect_rows(filter_program(limit).get(), stored, {}, ways);
			ways.capacity = 128;
			expect_groups(group_program(true).get(), stored, {}, ways);
			ASSERT_FALSE(HasFatalFailure()) << nbuffers << " buffers";
		}
}

TEST_F(CudaRuntime, AJobStopsWhereverItIs)
{
	const Table table = three_columns(SOME_TABLETS, 1000, 31);
	const StoredTable stored = arena.store(table, 2);

	open();
	for (Transfer transfer : ALL_TRANSFERS)
		for (uint64_t asks : {0, 1, 3, 6, 10})
			for (int kind = 0; kind < 3; kind++)
			{
				const SealedProgram program = kind == 0 ? filter_program(1000) : group_program(kind == 1);
				Ways		ways;

				ways.transfer = transfer;
				ways.capacity = kind == 1 ? 64 : 0;
				ways.tell = [&](FakeIo *io) { io->stop_after_asking = asks; };
				EXPECT_EQ(run(program.get(), stored, {}, ways).outcome, DeviceOutcome::Done);
				EXPECT_EQ(status().memory_working.load(), 0u);
				EXPECT_EQ(status().jobs_running.load(), 0u);
			}
	/* and leaves nothing behind that would stop the next */
	expect_rows(filter_program(1000).get(), stored, {}, Ways());
	expect_groups(group_program(true).get(), stored, {}, Ways());
}

TEST_F(CudaRuntime, TheRowLimitEndsAJobEarly)
{
	const Table table = three_columns({40000, 40000}, 10, 32);
	const StoredTable stored = arena.store(table);
	Ways		ways;

	open();
	ways.row_limit = 5000;
	ways.nbuffers = 2;

	const Ran	ran = run(filter_program(1000).get(), stored, {}, ways);

	EXPECT_EQ(ran.outcome, DeviceOutcome::Done);
	EXPECT_GE(ran.rows, 5000u);
	EXPECT_LE(ran.rows, 3 * TABLET_PAD_ROWS);
}

/* ---- failures ------------------------------------------------------------------------------------------ */

TEST_F(CudaRuntime, AFailedLaunchEndsTheProcess)
{
	const Table table = three_columns({9000}, 10, 33);
	const StoredTable stored = arena.store(table);

	open();
	gpuvm_emulated::fail_launch(1);
	EXPECT_THROW(run(group_program(false).get(), stored, {}, Ways()), Fatal);
	gpuvm_emulated::fail_launch(0);
}

/* gpuvmd was killed beside a device that was at work: the next one begins with an idle device. */
TEST_F(CudaRuntime, AKilledProcessLeavesNoFigures)
{
	status().memory_cached.store(1 << 20);
	status().memory_working.store(1 << 20);
	status().jobs_running.store(3);
	open();
	EXPECT_EQ(status().memory_cached.load(), 0u);
	EXPECT_EQ(status().memory_working.load(), 0u);
	EXPECT_EQ(status().jobs_running.load(), 0u);
}

TEST_F(CudaRuntime, AnotherVersionIsRefused)
{
	DeviceOptions options = {};
	char		why[256] = "";

	options.abi_version = DEVICE_ABI_VERSION + 1;
	EXPECT_EQ(gpuvm_open_device_library(&options, why), nullptr);
	EXPECT_NE(std::string(why).find("version"), std::string::npos);
}

/* ---- choice --------------------------------------------------------------------------------------------- */

TEST_F(CudaRuntime, EstimatesKnowWhatIsOnTheDevice)
{
	const Table table = three_columns({40000, 40000}, 1000, 34);
	const StoredTable stored = arena.store(table);
	const SealedProgram program = group_program(false);
	DeviceJobRequest request = {};
	char		reason[128] = "";

	open();
	request.program = program.get();
	request.columns = table.summaries.data();
	request.ncolumns = 3;
	request.tablets = stored.tablets.data();
	request.ntablets = 2;
	request.total_rows = table.nrows();

	const uint64_t cold = library->estimate(request, reason).ns;

	expect_groups(program.get(), stored, {}, Ways());

	const uint64_t warm = library->estimate(request, reason).ns;

	EXPECT_LT(warm, cold);
	EXPECT_GT(warm, 1000u);
	request.transfer = Transfer::Mapped;
	EXPECT_GT(library->estimate(request, reason).ns, cold);
}

/* ---- several sessions ------------------------------------------------------------------------------------- */

TEST_F(CudaRuntime, SeveralSessionsAtOnce)
{
	std::vector<Table> tables;
	std::vector<StoredTable> stored;
	std::vector<std::thread> threads;
	uint64_t	bytes;

	for (uint64_t i = 0; i < 3; i++)
		tables.push_back(three_columns({9000, 5000}, 500, 40 + i));
	for (const Table &table : tables)
		stored.push_back(arena.store(table));
	bytes = column_bytes(stored[0]);
	/* room for two tables and some work: they evict each other's */
	open(bytes * 2 + (8 << 20));
	for (uint64_t i = 0; i < 12; i++)
		threads.emplace_back([&, i]
		{
			Rng			rng(i);

			for (int n = 0; n < 6; n++)
			{
				const StoredTable &t = stored[static_cast<size_t>(pick_int(rng, 3))];
				const uint64_t stop = chance(rng, 20) ? static_cast<uint64_t>(pick_int(rng, 10)) : UINT64_MAX;
				Ways		ways;

				ways.transfer = ALL_TRANSFERS[pick_int(rng, 5)];
				ways.nbuffers = 1 + static_cast<uint32_t>(pick_int(rng, 4));
				ways.tell = [&](FakeIo *io) { io->stop_after_asking = stop; };
				if (stop != UINT64_MAX)
					(void) run(group_program(true).get(), t, {}, ways);
				else if (chance(rng, 50))
					expect_rows(filter_program(pick_int(rng, 500)).get(), t, {}, ways);
				else
					expect_groups(group_program(chance(rng, 50)).get(), t, {}, ways);
			}
		});
	threads.emplace_back([&]
	{
		for (int i = 0; i < 20; i++)
		{
			unpin_wanted(&arena.header->pins[0]);
			library->housekeep();
			std::this_thread::sleep_for(std::chrono::milliseconds(2));
		}
	});
	for (std::thread &thread : threads)
		thread.join();
	EXPECT_EQ(status().jobs_running.load(), 0u);
	EXPECT_EQ(status().memory_working.load(), 0u);
	EXPECT_LE(status().memory_cached.load(), bytes * 2 + (8 << 20));
}
