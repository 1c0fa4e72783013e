/*
 * cuda_delta_test.cc: jobs with masked rows, and with tablets that were made for them
 * alone, in the device library's job runtime on the emulated device.
 */
#include "cuda_runtime_fixture.h"
#include "work.h"
#include "vm_generator.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

const std::vector<uint32_t> BASE = {9000, 4096, 8192, 5000};

/* The same tablets whatever `seed` is, and behind them one of `n` rows that depend on it, whose values are small. */
Table
with_delta_rows(uint32_t n, uint64_t seed)
{
	std::vector<uint32_t> tablet_rows = BASE;

	tablet_rows.push_back(n);

	Table		table = three_columns(tablet_rows, 1000000, 1);
	Rng			rng(seed);

	for (Column &column : table.columns)
		for (uint32_t i = 0; i < n; i++)
			column.rows[column.rows.size() - 1 - i] = from_register(static_cast<int64_t>(rng() % 200));
	table.build();
	return table;
}

bool
nothing_is_left(const Table &table)
{
	const std::vector<bool> bits = table.masked_bits();

	return std::count(bits.begin(), bits.end(), false) == 0;
}

DeviceJobRequest
request_of(const Program *program, const StoredTable &stored)
{
	DeviceJobRequest request = {};

	request.program = program;
	request.columns = stored.table->summaries.data();
	request.ncolumns = static_cast<uint32_t>(stored.table->summaries.size());
	request.tablets = stored.tablets.data();
	request.ntablets = static_cast<uint32_t>(stored.tablets.size());
	request.total_rows = stored.table->nrows();
	request.unit_rows = TABLET_PAD_ROWS;
	return request;
}

}  // namespace

/* ---- masked rows ------------------------------------------------------------------- */

TEST_F(CudaRuntime, MaskedRowsAreNotThere)
{
	Table		table = three_columns(SOME_TABLETS, 700, 1);
	const StoredTable whole = arena.store(table);
	Rng			rng(1);

	open();
	for (int round = 0; round < 3; round++)
	{
		StoredTable stored = whole;

		mask_randomly(rng, &table);
		arena.mask(&stored);
		for (Transfer transfer : ALL_TRANSFERS)
		{
			Ways		ways;

			ways.transfer = transfer;
			ways.unit_pads = 1 + static_cast<uint32_t>(pick_int(rng, 3));
			expect_rows(filter_program(pick_int(rng, 700)).get(), stored, {}, ways);
			ways.capacity = 64;
			for (bool key : {false, true})
				expect_groups(group_program(key).get(), stored, {}, ways);
			ASSERT_FALSE(HasFatalFailure()) << "round " << round << " transfer " << static_cast<int>(transfer);
			EXPECT_EQ(status().memory_working.load(), 0u);
		}
	}
}

/* Answers are those of a table that never had the rows. */
TEST_F(CudaRuntime, MaskedRowsAreAsRowsThatNeverWere)
{
	Table		table = three_columns(SOME_TABLETS, 700, 2);
	const StoredTable whole = arena.store(table);
	Rng			rng(2);

	open();
	for (int round = 0; round < 3; round++)
	{
		StoredTable stored = whole;

		mask_randomly(rng, &table);
		if (nothing_is_left(table))
			continue;
		arena.mask(&stored);

		const Table left = table.without_masked();
		const StoredTable other = arena.store(left);

		for (bool key : {false, true})
			EXPECT_EQ(run(group_program(key).get(), stored, {}, Ways()).sorted(), run(group_program(key).get(), other, {}, Ways()).sorted());
		EXPECT_EQ(run(filter_program(300).get(), stored, {}, Ways()).sorted(), run(filter_program(300).get(), other, {}, Ways()).sorted());
	}
}

TEST_F(CudaRuntime, ErrorsOfMaskedRowsAreNone)
{
	Table		table = three_columns({9000, 5000}, 10, 3);
	std::vector<bool> bits(table.nrows());

	table.columns[0].rows[4500] = from_register(int64_t{INT32_MAX});
	bits[4500] = true;
	table.build();
	open();

	StoredTable stored = arena.store(table);

	EXPECT_TRUE(run(filter_program(1000, 5).get(), stored, {}, Ways()).units.at(1).errors);
	table.mask(bits);
	arena.mask(&stored);
	EXPECT_FALSE(run(filter_program(1000, 5).get(), stored, {}, Ways()).units.at(1).errors);
	expect_rows(filter_program(1000, 5).get(), stored, {}, Ways());
}

/* Pads and tablets without a row that is left are not run; figures count what is left. */
TEST_F(CudaRuntime, WhatIsWhollyMaskedIsNotRun)
{
	Table		table = three_columns({3 * TABLET_PAD_ROWS, TABLET_PAD_ROWS, 100}, 1000, 4);
	std::vector<bool> bits(table.nrows());
	Ways		ways;

	/* the first tablet's second pad, the second tablet, and some of the third */
	std::fill_n(bits.begin() + TABLET_PAD_ROWS, TABLET_PAD_ROWS, true);
	std::fill_n(bits.begin() + 3 * TABLET_PAD_ROWS, TABLET_PAD_ROWS + 10, true);
	table.mask(bits);

	const StoredTable stored = arena.store(table);

	open();
	ways.transfer = Transfer::Cached;

	const Ran	ran = run(group_program(true).get(), stored, {}, ways);

	EXPECT_EQ(ran.figures.rows_in, 2 * TABLET_PAD_ROWS + 90);
	EXPECT_EQ(ran.figures.tablets_scanned, 2u);
	expect_groups(group_program(true).get(), stored, {}, ways);

	cuda::Work	work;

	cuda::list_work(request_of(group_program(true).get(), stored), &work);
	EXPECT_EQ(work.pads.size(), 3u);
	EXPECT_EQ(work.dead_pads, 1u) << "only a pad with rows of both kinds needs a bitmap";

	/* rows: a unit that is left with nothing is no unit, and one that lost a pad still has its number */
	const Ran	rows = run(filter_program(1000).get(), stored, {}, ways);

	EXPECT_EQ(rows.figures.rows_in, 2 * TABLET_PAD_ROWS + 90);
	EXPECT_EQ(rows.units.count(1), 0u);
	for (uint32_t unit_pads : {1, 2, 3})
	{
		ways.unit_pads = unit_pads;
		expect_rows(filter_program(1000).get(), stored, {}, ways);
	}

	/* part of a masked tablet, as the row limit leaves it */
	ways.unit_pads = 1;
	ways.skip_units = {0x04};
	EXPECT_EQ(run(filter_program(1000).get(), stored, {}, ways).figures.rows_in, TABLET_PAD_ROWS + 90);

	std::fill(bits.begin(), bits.end(), true);
	table.mask(bits);

	StoredTable nothing = stored;

	arena.mask(&nothing);
	EXPECT_EQ(run(group_program(true).get(), nothing, {}, Ways()).units.size(), 0u);
	EXPECT_EQ(run(group_program(false).get(), nothing, {}, Ways()).sorted().size(), 1u);
}

/* The bits are there for every attempt, and made once. */
TEST_F(CudaRuntime, ASecondAttemptFindsTheDeadRows)
{
	Table		table = three_columns({60000, 60000, 40000}, 10, 6);
	std::vector<bool> bits(table.nrows());
	const SealedProgram program = group_program(true);

	for (size_t i = 0; i < table.columns[0].rows.size(); i++)
	{
		table.columns[0].rows[i] = from_register(static_cast<int64_t>(i) * 13001);
		bits[i] = i % 10 == 3;
	}
	table.build();
	table.mask(bits);
	open();

	const StoredTable stored = arena.store(table);

	for (Transfer transfer : {Transfer::Stream, Transfer::Cached})
	{
		Ways		ways;

		ways.transfer = transfer;
		ways.count_groups = true;

		const Ran	ran = run(program.get(), stored, {}, ways);

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		EXPECT_EQ(ran.ngroups, 144000u);
		EXPECT_EQ(ran.figures.rows_in, 144000u);
		EXPECT_EQ(status().memory_working.load(), 0u);
		if (transfer == Transfer::Stream)
		{
			EXPECT_GE(ran.figures.bytes_moved, 2 * column_bytes(stored)) << "the first table was large enough";
		}
	}
}

/* ---- rows of one job --------------------------------------------------------------- */

/* What lies at an address is read anew by each job; what is kept beside it stays. */
TEST_F(CudaRuntime, DeltasAreNeverKept)
{
	const Table base = three_columns(BASE, 1000000, 1);
	const StoredTable stored = arena.store(base);
	char	   *at = arena.get(2 << 20);
	Rng			rng(3);

	open();
	for (uint32_t n : {1, 150, 5000, 30000})
		for (uint64_t seed = 0; seed < 2; seed++)
			for (Transfer transfer : ALL_TRANSFERS)
			{
				Table		table = with_delta_rows(n, seed);
				std::vector<bool> bits(table.nrows());
				Ways		ways;

				for (int i = 0; i < 20; i++)
					bits[rng() % base.nrows()] = true;
				table.mask(bits);

				const StoredTable with = arena.with_delta(stored, table, at);

				ways.transfer = transfer;
				ways.capacity = 4096;
				expect_rows(filter_program(1000).get(), with, {}, ways);
				expect_groups(group_program(false).get(), with, {}, ways);
				if (seed == 0)
					expect_groups(group_program(true).get(), with, {}, ways);
				ASSERT_FALSE(HasFatalFailure()) << n << " rows, seed " << seed << ", transfer " << static_cast<int>(transfer);
				EXPECT_LE(status().memory_cached.load(), column_bytes(stored));
				EXPECT_EQ(status().memory_working.load(), 0u);
			}

	/* The transfer is that of what can be kept, and of a small delta little is moved. */
	const Table table = with_delta_rows(150, 9);
	const StoredTable with = arena.with_delta(stored, table, at);
	const Ran	ran = run(group_program(false).get(), with, {}, Ways());

	EXPECT_EQ(ran.figures.transfer, Transfer::Cached);
	EXPECT_LT(ran.figures.bytes_moved, 40000u);
	EXPECT_GT(ran.figures.bytes_moved, 150u * 3);
	EXPECT_EQ(status().memory_cached.load(), column_bytes(stored));
}

/* A few narrow rows beside wide columns do not make the program another one; many are no such matter. */
TEST_F(CudaRuntime, SmallDeltasDoNotChangeTheProgram)
{
	const Table base = three_columns(BASE, 1000000, 1);
	const StoredTable stored = arena.store(base);
	const SealedProgram program = group_program(false);
	char	   *at = arena.get(4 << 20);
	const char *reason = nullptr;
	const cuda::DeviceProgram plain = *cuda::lower_request(request_of(program.get(), stored), 0, &reason);

	for (uint32_t n : {100, 60000})
	{
		const Table table = with_delta_rows(n, 1);
		const StoredTable with = arena.with_delta(stored, table, at);
		const DeviceJobRequest request = request_of(program.get(), with);
		const cuda::DeviceProgram *lowered = cuda::lower_request(request, 0, &reason);

		ASSERT_NE(lowered, nullptr) << reason;
		ASSERT_LT(tablet_chunks(with.tablets.back().tablet)[1].width, 8);
		EXPECT_EQ(cuda::carries_delta(request), n == 100);
		if (n == 100)
			EXPECT_EQ(lowered->nops, plain.nops);
		else
			EXPECT_GT(lowered->nops, plain.nops);
	}
}

/* All types and widths, carried and not, with masks; small memory. */
TEST_F(CudaRuntime, RandomProgramsWithDeltas)
{
	const uint64_t n = setting("GPUVM_TEST_PROGRAMS", 25);
	const uint64_t first = setting("GPUVM_TEST_SEED", 1);
	uint64_t	refused = 0;
	int			widened = 0;

	for (uint64_t seed = first; seed < first + n; seed++)
	{
		Rng			rng(seed);
		const bool	tame = chance(rng, 80), grouped = chance(rng, 50);
		Table		table = random_table(rng, tame);
		Generator	generator(rng, table, tame);
		const SealedProgram sealed = generator.make(grouped, 2);
		const uint32_t extra = 1 + static_cast<uint32_t>(pick_int(rng, chance(rng, 70) ? 200 : 30000));
		Ways		ways;

		/* columns of some tablets at full width, the delta's narrow or constant */
		for (Column &column : table.columns)
		{
			const Profile profile = {pick_int(rng, 3), chance(rng, 70) ? 0 : chance(rng, 10) ? 100 : 30, 3};

			if (tame && (column.type == Type::I32 || column.type == Type::I64) && chance(rng, 60))
				for (size_t i = 0; i < column.rows.size(); i += 50)
					column.rows[i] = from_register(column.type == Type::I32 ? int64_t{1} << 24 : int64_t{1} << 40);
			for (uint32_t i = 0; i < extra; i++)
				column.rows.push_back(random_value(column.type, profile, rng));
		}
		table.tablet_rows.push_back(extra);
		table.build();
		mask_randomly(rng, &table);
		/* nothing of a delta is masked */
		while (!table.masked.empty() && table.masked.back().tablet == table.tablets.size() - 1)
			table.masked.pop_back();

		arena.next = align_up(sizeof(ArenaHeader), 4096);
		library.reset();
		open(chance(rng, 30) ? 256 << 10 : 0);

		StoredTable stored = arena.store(table);
		const TabletHeader *delta = stored.tablets.back().tablet;

		const_cast<TabletHeader *>(delta)->serial = 0;
		for (size_t c = 0; c < table.columns.size(); c++)
			widened += tablet_chunks(delta)[c].width < table.summaries[c].max_width && table.summaries[c].max_width == type_width(table.types[c]);
		ways.unit_pads = 1 + static_cast<uint32_t>(pick_int(rng, 2));
		for (int i = 0; i < 3; i++)
		{
			ways.transfer = ALL_TRANSFERS[pick_int(rng, 5)];
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
			EXPECT_EQ(status().memory_working.load(), 0u);
		}
	}
	EXPECT_LT(refused, n * 2) << "most jobs were refused";
	EXPECT_TRUE(n < 20 || widened > 20) << widened;
}

/* A delta that cannot be mapped is copied. */
TEST_F(CudaRuntime, DeltasMayLieAcrossPinnedChunks)
{
	const Table base = three_columns(BASE, 1000000, 1);
	const StoredTable stored = arena.store(base);

	open();
	for (uint32_t n : {100, 30000})
		for (uint64_t before : {100, 30000, 90000})
			for (Transfer transfer : ALL_TRANSFERS)
			{
				const Table table = with_delta_rows(n, 5);
				Ways		ways;

				arena.next = MIN_PIN_CHUNK - before * 2 / 64 * 64;
				ways.transfer = transfer;
				expect_rows(filter_program(300).get(), arena.with_delta(stored, table, arena.get(4 << 20)), {}, ways);
				ASSERT_FALSE(HasFatalFailure()) << "transfer " << static_cast<int>(transfer) << " before " << before;
			}
}

/* ---- memory, stopping, failures ------------------------------------------------------ */

TEST_F(CudaRuntime, WithoutMemoryForDeadRowsAJobIsRefused)
{
	Table		table = three_columns({9000, 9000}, 5000, 21);
	std::vector<bool> bits(table.nrows());
	Ways		ways;

	bits[17] = true;
	table.mask(bits);

	const StoredTable stored = arena.store(table), other = arena.store(table);

	open();
	expect_groups(group_program(false).get(), other, {}, ways);
	expect_groups(group_program(false).get(), stored, {}, ways);

	/* what is kept of another table makes room, once what was given back is given out */
	ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
	gpuvm_emulated::limit_memory(gpuvm_emulated::allocated_bytes());
	expect_groups(group_program(false).get(), stored, {}, ways);
	EXPECT_GT(status().evictions.load(), 0u);

	gpuvm_emulated::limit_memory(0);
	for (Transfer transfer : ALL_TRANSFERS)
	{
		ways.transfer = transfer;

		const Ran	ran = run(group_program(false).get(), stored, {}, ways);

		EXPECT_EQ(ran.outcome, DeviceOutcome::Refused);
		EXPECT_NE(ran.reason.find("memory"), std::string::npos) << ran.reason;
		EXPECT_TRUE(ran.units.empty());
		EXPECT_EQ(status().memory_working.load(), 0u);
	}
	gpuvm_emulated::limit_memory(SIZE_MAX);
	expect_groups(group_program(false).get(), stored, {}, ways);
}

TEST_F(CudaRuntime, AJobWithADeltaStopsWhereverItIs)
{
	const Table base = three_columns(BASE, 1000000, 1);
	const StoredTable stored = arena.store(base);
	Table		table = with_delta_rows(5000, 1);
	Rng			rng(1);

	mask_randomly(rng, &table);
	open();

	const StoredTable with = arena.with_delta(stored, table, arena.get(2 << 20));

	/* of five moments and five transfers each kind meets each once */
	int			moment = 0;

	for (uint64_t asks : {0, 1, 3, 6, 10})
	{
		for (int kind = 0; kind < 3; kind++)
		{
			const SealedProgram program = kind == 0 ? filter_program(1000) : group_program(kind == 1);
			Ways		ways;

			ways.transfer = ALL_TRANSFERS[(moment + kind) % std::size(ALL_TRANSFERS)];
			ways.capacity = kind == 1 ? 64 : 0;
			ways.tell = [&](FakeIo *io) { io->stop_after_asking = asks; };
			EXPECT_EQ(run(program.get(), with, {}, ways).outcome, DeviceOutcome::Done);
			EXPECT_EQ(status().memory_working.load(), 0u);
			EXPECT_EQ(status().jobs_running.load(), 0u);
		}
		moment++;
	}
	expect_rows(filter_program(1000).get(), with, {}, Ways());
	expect_groups(group_program(true).get(), with, {}, Ways());
}

/* The launch that marks dead rows is the first, the interpreter's the second. */
TEST_F(CudaRuntime, AFailedLaunchOfAJobWithMaskedRowsEndsTheProcess)
{
	Table		table = three_columns({9000}, 10, 33);
	std::vector<bool> bits(table.nrows());

	bits[17] = true;
	table.mask(bits);

	const StoredTable stored = arena.store(table);

	open();
	for (uint64_t n : {1, 2})
	{
		gpuvm_emulated::fail_launch(n);
		EXPECT_THROW(run(group_program(false).get(), stored, {}, Ways()), Fatal);
		gpuvm_emulated::fail_launch(0);
	}
}

TEST_F(CudaRuntime, EstimatesKnowOfMasksAndDeltas)
{
	const Table base = three_columns(BASE, 1000000, 1);
	const StoredTable stored = arena.store(base);
	Table		table = with_delta_rows(100, 1);
	const SealedProgram program = group_program(false);
	char	   *at = arena.get(2 << 20);
	char		reason[128] = "";

	open();
	expect_groups(program.get(), stored, {}, Ways());

	const uint64_t plain = library->estimate(request_of(program.get(), stored), reason).ns;
	const StoredTable delta = arena.with_delta(stored, table, at);
	const uint64_t with_delta = library->estimate(request_of(program.get(), delta), reason).ns;
	std::vector<bool> bits(table.nrows());

	bits[0] = true;
	table.mask(bits);

	const StoredTable both = arena.with_delta(stored, table, at);
	const uint64_t with_both = library->estimate(request_of(program.get(), both), reason).ns;

	EXPECT_LT(plain, with_delta);
	EXPECT_LT(with_delta, with_both);
	EXPECT_LT(with_both, plain + 30'000) << "one row that has changed is no reason to leave the device";
}

TEST_F(CudaRuntime, SeveralSessionsWithDeltas)
{
	const Table base = three_columns(BASE, 1000000, 1);
	const StoredTable stored = arena.store(base);
	std::vector<std::thread> threads;

	open(column_bytes(stored) + (8 << 20));
	for (uint64_t i = 0; i < 6; i++)
		threads.emplace_back([&, i]
		{
			char	   *at = arena.get(1 << 20);
			Rng			rng(i);

			for (int n = 0; n < 4; n++)
			{
				Table		table = with_delta_rows(1 + static_cast<uint32_t>(pick_int(rng, 6000)), rng());
				Ways		ways;

				mask_randomly(rng, &table);
				if (nothing_is_left(table))
					continue;

				const StoredTable with = arena.with_delta(stored, table, at);

				ways.transfer = ALL_TRANSFERS[pick_int(rng, 5)];
				if (chance(rng, 50))
					expect_rows(filter_program(pick_int(rng, 500)).get(), with, {}, ways);
				else
					expect_groups(group_program(chance(rng, 50)).get(), with, {}, ways);
			}
		});
	for (std::thread &thread : threads)
		thread.join();
	EXPECT_EQ(status().jobs_running.load(), 0u);
	EXPECT_EQ(status().memory_working.load(), 0u);
}
