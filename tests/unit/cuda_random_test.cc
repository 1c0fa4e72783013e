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
	int			programs = 0, refused = 0, runs = 0, clean = 0, unfit = 0, overflows = 0;
	size_t		rows = 0;
	std::map<std::string, int> reasons;
	std::map<std::string, int> seen;

	void		print() const
	{
		printf("%d programs, %d refused; %d runs, %d without an error, %d with so many rows a lane did not fit\n", programs, refused, runs,
			   clean, unfit);
		for (const auto &[reason, n] : reasons)
			printf("  refused %d times: %s\n", n, reason.c_str());
		for (const auto &[what, n] : seen)
			printf("  %s: %d times\n", what.c_str(), n);
	}

	/* A test of refusals, of errors or of one way alone would prove little. */
	void		expect(std::initializer_list<const char *> wanted) const
	{
		print();
		if (programs < 100)
			return;
		EXPECT_LE(refused * 100, programs * 5);
		EXPECT_GT(clean, runs / 3);
		EXPECT_GT(rows, static_cast<size_t>(programs));
		for (const char *what : wanted)
			EXPECT_GT(seen.count(what), 0u) << what;
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
	{
		cuda::DeviceProgram lowered;
		const char *reason = lower_for(program, table, generator.params, DeviceRun{0, true, 0}, &lowered);

		if (reason)
		{
			tally->refused++;
			tally->reasons[reason]++;
		}
	}
	for (uint16_t rows_per_lane : {4, 8, 16})
	{
		const DeviceRun run = {rows_per_lane, chance(rng, 50), rng() % 8};
		const DeviceResult got = run_device(program, table, generator.params, run);
		const std::string where = "seed " + std::to_string(seed) + " rows a lane " + std::to_string(rows_per_lane) + " trust " +
			std::to_string(run.trust_ranges) + " order " + std::to_string(run.seed) + "\n" + program_text(program);

		tally->runs++;
		if (got.refused)
		{
			tally->unfit++;
			continue;
		}
		tally->seen[std::to_string(got.stage_tiles) + " tiles a stage"]++;
		if (got.table)
			tally->seen[got.table]++;
		if (got.overflows)
			tally->seen["overflow"]++;
		/* behind an operation that failed values are unspecified, and may fail others */
		ASSERT_EQ(got.outcome.errors != 0, expected.errors != 0) << got.outcome.errors << " " << expected.errors << " " << where;
		ASSERT_EQ(got.outcome.errors & ~expected.errors, 0u) << where;
		if (expected.errors)
			continue;
		tally->clean++;
		tally->rows += expected.rows.size();

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
	return tally;
}

}  // namespace

TEST(CudaRandom, Aggregates)
{
	run_many(true, 0).expect({"1 tiles a stage", "2 tiles a stage", "4 tiles a stage"});
}

TEST(CudaRandom, Rows)
{
	run_many(false, 0).expect({"1 tiles a stage", "2 tiles a stage", "4 tiles a stage"});
}

TEST(CudaRandom, Groups)
{
	run_many(true, 3).expect({"1 tiles a stage", "4 tiles a stage", "dense, shared", "hashed", "hashed, some shared", "overflow"});
}
