/*
 * cuda_join_test.cc: joins by the device library on the emulated device, against the
 * reference interpreter's nested loops: random programs over random tables, with
 * batches so small that each step is made of several; and what surrounds them: memory,
 * stopping, limits, buffers, figures.
 *
 * GPUVM_TEST_PROGRAMS changes how many programs, GPUVM_TEST_SEED where to start.
 */
#include "cuda_runtime_fixture.h"

#include "join.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

/* Two columns a type; keys that meet. */
Table
side_table(Rng &rng, bool tame, uint32_t n, uint32_t most)
{
	Table		table;

	for (uint32_t left = n; left > 0; left -= table.tablet_rows.back())
		table.tablet_rows.push_back(std::min(left, 1 + static_cast<uint32_t>(rng() % most)));
	for (Type type : VALUE_TYPES)
		for (int i = 0; i < 2; i++)
		{
			Column		column{type, {}};
			Profile		profile = {chance(rng, 60) ? 1 : pick_int(rng, tame ? 4 : 5), chance(rng, 50) ? 0 : pick_int(rng, 30),
				chance(rng, 80) ? 3 : static_cast<int64_t>(rng() % 2000000) - 1000000};

			for (uint32_t r = 0; r < n; r++)
				column.rows.push_back(random_value(type, profile, rng));
			table.columns.push_back(std::move(column));
		}
	table.build();
	return table;
}

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

struct Tally
{
	uint64_t	programs = 0, refused = 0, clean = 0, with_rows = 0;
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
	void		run_one(uint64_t seed, bool grouped, bool masks, Tally *tally)
	{
		static const uint32_t outer[] = {1, 5, 64, 200, 1023, 1025, 4097, 5000};
		static const uint32_t inner[] = {1, 2, 7, 30, 64, 130};
		Rng			rng(seed * 2 + grouped);
		const bool	tame = chance(rng, 80);
		const int	ncursors = 2 + pick_int(rng, 2);
		uint64_t	points = outer[pick_int(rng, 8)];
		std::vector<Table> tables;
		std::vector<const Table *> pointers;

		tables.push_back(side_table(rng, tame, static_cast<uint32_t>(points), 3000));
		for (int k = 1; k < ncursors; k++)
		{
			uint32_t	n = inner[pick_int(rng, 6)];

			while (points * n > 40000 && n > 1)
				n = n / 3 + 1;
			points *= n;
			tables.push_back(side_table(rng, tame, n, 40));
		}

		Generator	generator(rng, tables[0], tame);
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

		const std::vector<StoredTable> stored = store_all(tables, static_cast<uint32_t>(pick_int(rng, 4)));
		const bool	slow = chance(rng, 50);

		ways.transfer = ALL_TRANSFERS[pick_int(rng, 5)];
		ways.nbuffers = 1 + static_cast<uint32_t>(pick_int(rng, 4));
		ways.capacity = chance(rng, 50) ? 64u << pick_int(rng, 5) : 4096;
		ways.count_groups = grouped && chance(rng, 15);
		ways.tell = [&](FakeIo *io) { io->slow = slow; };
		gpuvm_emulated::set_seed(seed);

		const Ran	ran = run(program, stored, generator.params, ways);

		tally->programs++;
		if (ran.outcome == DeviceOutcome::Refused)
		{
			tally->refused++;
			tally->reasons[ran.reason]++;
			return;
		}
		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason << what;

		/* errors of pairs that need not be looked at may or may not be met */
		const Outcome least = Interpreter(program, pointers, generator.params.data(), true).run();
		const Outcome most = Interpreter(program, pointers, generator.params.data(), false).run();

		if (ran.figures.errors != 0)
		{
			ASSERT_TRUE(grouped ? ran.units.empty() : true) << what;
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

	void		run_many(bool grouped, bool masks)
	{
		const uint64_t n = setting("GPUVM_TEST_PROGRAMS", 60);
		const uint64_t first = setting("GPUVM_TEST_SEED", 1);
		Tally		tally;

		for (uint64_t seed = first; seed < first + n && !HasFatalFailure(); seed++)
			run_one(seed, grouped, masks, &tally);
		if (n > 1)
			for (const auto &[reason, times] : tally.reasons)
				printf("refused %d of %d: %s\n", times, static_cast<int>(n), reason.c_str());
		if (tally.programs < 50)
			return;
		EXPECT_LT(tally.refused, tally.programs / 3);
		EXPECT_GT(tally.clean, tally.programs / 4);
		EXPECT_GT(tally.with_rows, tally.programs / 10);
	}
};

}  // namespace

TEST_F(CudaJoinRandom, Rows)
{
	run_many(false, false);
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
