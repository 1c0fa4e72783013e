/*
 * vm_random_test.cc: the CPU virtual machine against the reference
 * interpreter, over random programs and random tables.
 *
 * GPUVM_TEST_PROGRAMS changes how many programs, GPUVM_TEST_SEED where to start.
 */
#include <gtest/gtest.h>

#include "vm/cpu_kernels.h"
#include "vm_random.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

struct Tally
{
	int			programs = 0, clean = 0;
	size_t		rows = 0;
};

void
run_one(uint64_t seed, bool grouped, Tally *tally)
{
	Rng			rng(seed);
	const bool	tame = chance(rng, 70);
	const Table table = random_table(rng, tame);
	Generator	generator(rng, table, tame);
	const SealedProgram sealed = generator.make(grouped);
	const Program *program = sealed.get();
	const CursorSchema schema = {static_cast<uint32_t>(table.types.size()), table.types.data()};
	const char *wrong = verify_program(program, program->size, &schema, 1);

	ASSERT_EQ(wrong, nullptr) << wrong << " seed " << seed << "\n" << program_text(program);
	ASSERT_EQ(verify_params(program, generator.params.data(), static_cast<uint32_t>(generator.params.size())), nullptr);

	const Outcome expected = Interpreter(program, table, generator.params.data()).run();
	std::vector<std::string> expected_rows = rows_text(program, expected);

	if (grouped)
		std::sort(expected_rows.begin(), expected_rows.end());
	for (int round = 0; round < 2; round++)
	{
		const uint32_t unit = CPU_VECTOR_ROWS << pick_int(rng, 3);

		limit_cpu_kernels(pick_int(rng, 3));

		const Outcome got = grouped ? run_cpu_groups(program, table, generator.params, unit, 1 + pick_int(rng, 4), rng)
			: run_cpu_rows(program, table, generator.params, unit);

		limit_cpu_kernels(2);
		/* behind an operation that failed values are unspecified, and may fail others */
		ASSERT_EQ(got.errors != 0, expected.errors != 0) << "seed " << seed << " grouped " << grouped << "\n" << program_text(program);
		ASSERT_EQ(got.errors & ~expected.errors, 0u) << "seed " << seed << " grouped " << grouped << "\n" << program_text(program);
		if (expected.errors)
			continue;

		std::vector<std::string> got_rows = rows_text(program, got);

		if (grouped)
			std::sort(got_rows.begin(), got_rows.end());
		ASSERT_EQ(got_rows.size(), expected_rows.size()) << "seed " << seed << " grouped " << grouped << "\n" << program_text(program);
		for (size_t i = 0; i < got_rows.size(); i++)
			ASSERT_EQ(got_rows[i], expected_rows[i]) << "row " << i << " seed " << seed << " grouped " << grouped << "\n" << program_text(program);
	}
	tally->programs++;
	tally->clean += expected.errors == 0;
	tally->rows += expected.errors == 0 ? expected.rows.size() : 0;
}

void
run_many(bool grouped)
{
	const uint64_t n = setting("GPUVM_TEST_PROGRAMS", 400);
	const uint64_t first = setting("GPUVM_TEST_SEED", 1);
	Tally		tally;

	for (uint64_t seed = first; seed < first + n; seed++)
	{
		run_one(seed, grouped, &tally);
		if (::testing::Test::HasFatalFailure())
			return;
	}
	/* a test of errors alone would prove little */
	if (n >= 100)
	{
		EXPECT_GT(tally.clean, tally.programs / 3);
		EXPECT_GT(tally.rows, static_cast<size_t>(tally.programs));
	}
}

}  // namespace

TEST(VmRandom, Rows)
{
	run_many(false);
}

TEST(VmRandom, Groups)
{
	run_many(true);
}
