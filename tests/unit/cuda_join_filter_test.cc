/*
 * cuda_join_filter_test.cc: joins of a large table with filtered small ones, whose rows are held against the small ones' keys
 * first (cuda/join_filter.cc): the answers, when it is done, and that nothing is left out that must not be. On the emulated device.
 */
#include "cuda_runtime_fixture.h"

#include "join.h"
#include "join_star.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

class CudaJoinFilter : public CudaRuntime
{
protected:
	void SetUp() override
	{
		sizes = cuda::join_sizes;
		cuda::join_sizes.filter_rows = 0;
	}
	void TearDown() override
	{
		cuda::join_sizes = sizes;
		CudaRuntime::TearDown();
	}

	/* Batches of so many pads. */
	static void batches(uint32_t pads) { cuda::join_sizes.least_batch = cuda::join_sizes.most_batch = pads * TABLET_PAD_ROWS; }

	static std::vector<std::string> expected(const SealedProgram &program, const std::vector<const Table *> &tables)
	{
		std::vector<std::string> rows = rows_text(program.get(), Interpreter(program.get(), tables, nullptr, true).run());

		std::sort(rows.begin(), rows.end());
		return rows;
	}

	std::vector<StoredTable> store_all(const std::vector<const Table *> &tables, uint32_t unnamed = 0)
	{
		std::vector<StoredTable> stored;

		for (const Table *table : tables)
			stored.push_back(arena.store(*table, table == tables[0] ? unnamed : 0));
		return stored;
	}
	Ran			run_star(const SealedProgram &program, const std::vector<const Table *> &tables, const Ways &ways = Ways(), uint32_t unnamed = 0)
	{
		return run(program.get(), store_all(tables, unnamed), {}, ways);
	}

	cuda::JoinSizes sizes;
};

}  // namespace

/* Rows that are left of all slices go through the levels together, and nothing but these. */
TEST_F(CudaJoinFilter, OnlyWhatIsLeftIsRun)
{
	Rng			rng(1);
	const Table f = facts(rng, {9000, 12000, 4097, 30000}, 1000), a = side(rng, 0, 30, false), b = side(rng, 1, 20, false), c = side(rng, 2, 40, false);
	const std::vector<const Table *> tables = {&f, &a, &b, &c};
	const SealedProgram program = star_program(StarShape());
	uint32_t	slices[2];

	batches(4);
	for (bool filter : {false, true})
	{
		open();
		cuda::join_sizes.filter_rows = filter ? 0 : UINT64_MAX;

		const Ran	ran = run_star(program, tables);

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		EXPECT_EQ(ran.sorted(), expected(program, tables));
		EXPECT_EQ(ran.figures.rows_in, f.nrows());
		if (filter)
			EXPECT_EQ(ran.figures.pairs, 3 * met(tables, 3));
		else
			EXPECT_EQ(ran.figures.pairs, met(tables, 1) + met(tables, 2) + met(tables, 3));
		slices[filter] = ran.figures.slices;
		library.reset();
	}
	EXPECT_LT(slices[1], slices[0]);
}

/* With all columns on the device what is left is fetched, and nothing is run before the last level; two batches of it. */
TEST_F(CudaJoinFilter, RowsArePicked)
{
	Rng			rng(6);
	const Table f = facts(rng, {5000, 12000, 4097}, 1000), a = side(rng, 0, 60, false), b = side(rng, 1, 70, false), c = side(rng, 2, 80, false);
	const Table twice = side(rng, 1, 60, true);
	StarShape	shape;

	batches(1);
	for (const std::vector<const Table *> &tables : {std::vector<const Table *>{&f, &a, &b, &c}, {&f, &a, &twice, &c}})
		for (bool rows : {false, true})
		{
			Ways		ways;

			open();
			shape.first_filters = rows;
			shape.rows = rows;
			ways.transfer = Transfer::Cached;
			ways.capacity = 4096;

			const SealedProgram program = star_program(shape);
			const std::vector<StoredTable> stored = store_all(tables);
			const Ran	cold = run(program.get(), stored, {}, ways), warm = run(program.get(), stored, {}, ways);

			ASSERT_EQ(warm.outcome, DeviceOutcome::Done) << warm.reason;
			EXPECT_EQ(cold.sorted(), expected(program, tables));
			EXPECT_EQ(warm.sorted(), cold.sorted());
			EXPECT_EQ(warm.figures.rows_in, f.nrows());
			EXPECT_EQ(warm.figures.pairs, cold.figures.pairs);
			/* a batch is fetched once, and runs once */
			if (tables[2] == &b && !rows)
				EXPECT_EQ(warm.figures.slices, 2 * ((met(tables, 3) + TABLET_PAD_ROWS - 1) / TABLET_PAD_ROWS));
			EXPECT_LT(warm.figures.slices, cold.figures.slices);
			library.reset();
		}
}

/* What would have raised an error still does, or is looked at at least. */
TEST_F(CudaJoinFilter, ErrorsAreKept)
{
	Rng			rng(2);
	const Table a = side(rng, 0, 30, false), b = side(rng, 1, 20, false), c = side(rng, 2, 40, false);
	const Table tame = facts(rng, {9000, 5000}, 1000), wild = facts(rng, {9000, 5000}, int64_t{1} << 31);
	StarShape	shape;

	open();
	batches(2);
	for (bool first : {true, false})
	{
		shape.first_raises = first;
		shape.tail_raises = !first;

		const SealedProgram program = star_program(shape);
		Ran			ran = run_star(program, {&wild, &a, &b, &c});

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		EXPECT_NE(ran.figures.errors, 0u);

		/* ranges tell that nothing is raised */
		ran = run_star(program, {&tame, &a, &b, &c});
		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		EXPECT_EQ(ran.sorted(), expected(program, {&tame, &a, &b, &c}));
		EXPECT_EQ(ran.figures.pairs, 3 * met({&tame, &a, &b, &c}, 3));
	}

	/* The one row whose sum overflows has partners in the first side alone. */
	Table		one = facts(rng, {9000}, 1000);

	shape = StarShape();
	shape.tail_raises = true;
	for (uint32_t row = 0; row < 9000; row++)
	{
		int64_t		found = -1;

		for (int64_t key = 0; key < 300 && found < 0; key++)
			if (std::none_of(b.columns[0].rows.begin(), b.columns[0].rows.end(), [&](const Value &v) { return !v.null && v.i == key; }))
				found = key;
		one.columns[1].rows[row] = from_register(found);
	}
	one.columns[0].rows[77] = *std::find_if(a.columns[0].rows.begin(), a.columns[0].rows.end(), [](const Value &v) { return !v.null; });
	one.columns[3].rows[77] = from_register(int64_t{INT32_MAX});
	one.build();

	const Ran	ran = run_star(star_program(shape), {&one, &a, &b, &c});

	ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
	EXPECT_NE(ran.figures.errors, 0u);
}

/* Where most rows are left, they are not filtered, and level by level finds the same. */
TEST_F(CudaJoinFilter, NotWhereItLeavesMost)
{
	Rng			rng(3);
	const Table f = facts(rng, {5000, 3000, 9000}, 1000), a = side(rng, 0, 100, false), b = side(rng, 1, 100, true), c = side(rng, 2, 99, false);
	const std::vector<const Table *> tables = {&f, &a, &b, &c};
	const SealedProgram program = star_program(StarShape());

	open();
	batches(2);
	EXPECT_EQ(run_star(program, tables).sorted(), expected(program, tables));
}

/* Every kind of join, of table, of row, of way to the device. */
TEST_F(CudaJoinFilter, Everything)
{
	const uint64_t n = setting("GPUVM_TEST_PROGRAMS", 12);
	uint64_t	filtered = 0;

	for (uint64_t seed = 1; seed <= n && !HasFatalFailure(); seed++)
	{
		Rng			rng(seed);
		const RandomStar star(rng, 9000);
		Ways		ways;

		arena.next = align_up(sizeof(ArenaHeader), 4096);
		library.reset();
		open();
		batches(1 + static_cast<uint32_t>(rng() % 3));
		ways.transfer = ALL_TRANSFERS[rng() % 5];
		ways.capacity = 4096;
		gpuvm_emulated::set_seed(seed);

		const SealedProgram program = star_program(star.shape);
		const uint32_t unnamed = static_cast<uint32_t>(rng() % 3);
		const Ran	ran = run_star(program, star.tables, ways, unnamed);

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason << ", seed " << seed;

		const std::vector<std::string> rows = expected(program, star.tables);

		ASSERT_EQ(ran.sorted(), rows) << "seed " << seed;

		/* Now that columns are there, rows may be picked. */
		const std::vector<StoredTable> stored = store_all(star.tables, rng() % 4 == 0 ? unnamed : 0);

		ways.transfer = Transfer::Cached;
		for (bool warm : {false, true})
		{
			const Ran	again = run(program.get(), stored, {}, ways);

			ASSERT_EQ(again.outcome, DeviceOutcome::Done) << again.reason << ", seed " << seed;
			ASSERT_EQ(again.sorted(), rows) << "seed " << seed << (warm ? ", warm" : ", cold");
		}
		cuda::join_sizes.filter_rows = UINT64_MAX;
		library.reset();
		open();
		filtered += run_star(program, star.tables, ways, unnamed).figures.pairs != ran.figures.pairs;
		cuda::join_sizes.filter_rows = 0;
	}
	EXPECT_GT(filtered * 4, n);
}

/* A limit of rows ends it after the first slices that give them. */
TEST_F(CudaJoinFilter, RowLimit)
{
	Rng			rng(4);
	const Table f = facts(rng, {40000, 40000}, 1000), a = side(rng, 0, 50, false), b = side(rng, 1, 50, false), c = side(rng, 2, 50, false);
	StarShape	shape;
	Ways		ways;

	shape.rows = true;
	ways.row_limit = 5;
	ways.capacity = 64;
	open();
	batches(1);

	const Ran	ran = run_star(star_program(shape), {&f, &a, &b, &c}, ways);

	ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
	EXPECT_GE(ran.rows, 5u);
	EXPECT_LT(ran.figures.rows_in, 40000u);
}

TEST_F(CudaJoinFilter, StopsInTheMiddle)
{
	Rng			rng(5);
	const Table f = facts(rng, {20000, 9000}, 1000), a = side(rng, 0, 30, false), b = side(rng, 1, 30, false), c = side(rng, 2, 30, false);
	const SealedProgram program = star_program(StarShape());

	open();
	batches(1);
	for (uint64_t asked : {0, 3, 8, 15, 30})
	{
		Ways		ways;

		ways.tell = [&](FakeIo *io) { io->stop_after_asking = asked; };
		EXPECT_EQ(run_star(program, {&f, &a, &b, &c}, ways).outcome, DeviceOutcome::Done);
	}
	EXPECT_EQ(run_star(program, {&f, &a, &b, &c}).sorted(), expected(program, {&f, &a, &b, &c}));
}
