/*
 * cuda_random_test.cc: the CUDA virtual machine, emulated, against the reference
 * interpreter, over random programs and random tables.
 *
 * GPUVM_TEST_PROGRAMS changes how many programs, GPUVM_TEST_SEED where to start.
 */
#include "cuda_fixture.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

struct Tally
{
	int			programs = 0, runs = 0, refused = 0, clean = 0;
	std::map<std::string, int> reasons;
	std::map<int, int> stage_tiles;
	std::map<std::string, int> tables;
	int			overflows = 0;

	void		print() const
	{
		printf("%d programs, %d runs, %d without an error, %d refused\n", programs, runs, clean, refused);
		for (const auto &[reason, n] : reasons)
			printf("  refused %d times: %s\n", n, reason.c_str());
		for (const auto &[tiles, n] : stage_tiles)
			printf("  %d tiles a stage: %d times\n", tiles, n);
		for (const auto &[table, n] : tables)
			printf("  %s: %d times\n", table.c_str(), n);
		if (!tables.empty())
			printf("  %d tables overflowed\n", overflows);
	}
};

void
run_one(uint64_t seed, bool grouped, int max_keys, Tally *tally)
{
	Rng			rng(seed);
	const bool	tame = chance(rng, 70);
	const Table table = random_table(rng, tame);
	Generator	generator(rng, table, tame);
	const SealedProgram sealed = generator.make(grouped, max_keys);
	const Program *program = sealed.get();
	const CursorSchema schema = {static_cast<uint32_t>(table.types.size()), table.types.data()};
	const char *wrong = verify_program(program, program->size, &schema, 1);

	ASSERT_EQ(wrong, nullptr) << wrong << " seed " << seed << "\n" << program_text(program);

	const Outcome expected = Interpreter(program, table, generator.params.data()).run();
	std::vector<std::string> expected_rows = rows_text(program, expected);

	if (grouped)
		std::sort(expected_rows.begin(), expected_rows.end());
	tally->programs++;
	for (uint16_t rows_per_lane : {4, 8, 16})
		for (bool trust : {false, true})
		{
			const DeviceRun run = {rows_per_lane, trust, rng() % 4};
			const DeviceResult got = run_device(program, table, generator.params, run);
			const std::string where = "seed " + std::to_string(seed) + " rows a lane " + std::to_string(rows_per_lane) + " trust " +
				std::to_string(trust) + " order " + std::to_string(run.seed) + "\n" + program_text(program);

			tally->runs++;
			if (got.refused)
			{
				tally->refused++;
				tally->reasons[got.refused]++;
				continue;
			}
			tally->stage_tiles[got.stage_tiles]++;
			if (got.table)
				tally->tables[got.table]++;
			tally->overflows += got.overflows;
			/* behind an operation that failed values are unspecified, and may fail others */
			ASSERT_EQ(got.outcome.errors != 0, expected.errors != 0) << got.outcome.errors << " " << expected.errors << " " << where;
			ASSERT_EQ(got.outcome.errors & ~expected.errors, 0u) << where;
			if (expected.errors)
				continue;
			tally->clean++;

			std::vector<std::string> got_rows = rows_text(program, got.outcome);

			if (grouped)
				std::sort(got_rows.begin(), got_rows.end());
			ASSERT_EQ(got_rows.size(), expected_rows.size()) << where;
			for (size_t i = 0; i < got_rows.size(); i++)
				ASSERT_EQ(got_rows[i], expected_rows[i]) << "row " << i << " " << where;
		}
}

Tally
run_many(bool grouped, int max_keys)
{
	const uint64_t n = setting("GPUVM_TEST_PROGRAMS", 100);
	const uint64_t first = setting("GPUVM_TEST_SEED", 1);
	Tally		tally;

	for (uint64_t seed = first; seed < first + n; seed++)
	{
		run_one(seed, grouped, max_keys, &tally);
		if (::testing::Test::HasFatalFailure())
			break;
	}
	tally.print();
	return tally;
}

}  // namespace

TEST(CudaRandom, Aggregates)
{
	run_many(true, 0);
}

TEST(CudaRandom, Rows)
{
	run_many(false, 0);
}

TEST(CudaRandom, Groups)
{
	run_many(true, 3);
}
