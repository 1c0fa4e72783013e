/*
 * vm_random_test.cc: the CPU virtual machine against the reference
 * interpreter, over random programs and random tables.
 *
 * GPUVM_TEST_PROGRAMS changes how many programs, GPUVM_TEST_SEED where to start.
 */
#include <set>

#include <gtest/gtest.h>

#include "vm/cpu_kernels.h"
#include "vm_generator.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

struct Tally
{
	int			programs = 0, clean = 0;
	int			rescued = 0;	/* clean because the rows that fail are masked */
	size_t		rows = 0;
	std::set<Opcode> opcodes;	/* of clean programs that have rows */
	std::set<int> aggregates;
};

enum class Masks { None, Random, FailingRows };

std::vector<std::string>
sorted_text(const Program *program, bool grouped, const Outcome &outcome)
{
	std::vector<std::string> rows = rows_text(program, outcome);

	if (grouped)
		std::sort(rows.begin(), rows.end());
	return rows;
}

bool
has_rowid(const Program *program)
{
	for (int i = 0; i < program->nops; i++)
	{
		if (program->ops()[i].opcode == Opcode::Rowid)
			return true;
	}
	return false;
}

void
run_one(uint64_t seed, bool grouped, Masks masks, Tally *tally)
{
	Rng			rng(seed);
	const bool	tame = chance(rng, 70);
	Table		table = random_table(rng, tame);
	const MapSet maps = random_maps(rng, tame);
	const PatternSet patterns = random_patterns(rng);
	Generator	generator(rng, table, tame, &maps);

	add_texts(rng, &table);
	generator.patterns = &patterns;
	generator.library = true;

	const SealedProgram sealed = generator.make(grouped);
	const Program *program = sealed.get();
	const CursorSchema schema = {static_cast<uint32_t>(table.types.size()), table.types.data()};
	const char *wrong = verify_program(program, program->size, &schema, 1);
	const std::string what = "seed " + std::to_string(seed) + " grouped " + std::to_string(grouped) + " masks " +
		std::to_string(static_cast<int>(masks)) + "\n" + program_text(program);

	ASSERT_EQ(wrong, nullptr) << wrong << " " << what;
	ASSERT_EQ(verify_params(program, generator.params.data(), static_cast<uint32_t>(generator.params.size())), nullptr);
	ASSERT_EQ(verify_maps(program, maps.maps.data(), static_cast<uint32_t>(maps.maps.size())), nullptr);

	if (masks == Masks::Random)
		mask_randomly(rng, &table);
	else if (masks == Masks::FailingRows)
	{
		table.mask(Interpreter(program, table, generator.params.data(), maps.maps.data(), &patterns).failing_rows());
		if (table.masked.empty())
			return;
	}

	const Outcome expected = Interpreter(program, table, generator.params.data(), maps.maps.data(), &patterns).run();
	const std::vector<std::string> expected_rows = sorted_text(program, grouped, expected);

	for (int round = 0; round < 3; round++)
	{
		const uint32_t unit = CPU_VECTOR_ROWS << pick_int(rng, 3);
		Table		left;

		/* the third time: rows that are not there instead of masked ones */
		if (round == 2)
		{
			if (table.masked.empty() || has_rowid(program))
				continue;
			left = table.without_masked();
			if (left.nrows() == 0)
				continue;
		}
		limit_cpu_kernels(pick_int(rng, 3));

		const Table &of = round == 2 ? left : table;
		const Outcome got = grouped ? run_cpu_groups(program, of, generator.params, unit, 1 + pick_int(rng, 4), rng, maps.maps.data(), &patterns)
			: run_cpu_rows(program, of, generator.params, unit, maps.maps.data(), &patterns);

		limit_cpu_kernels(2);
		/* behind an operation that failed values are unspecified, and may fail others */
		ASSERT_EQ(got.errors != 0, expected.errors != 0) << "round " << round << " " << what;
		ASSERT_EQ(got.errors & ~expected.errors, 0u) << "round " << round << " " << what;
		if (expected.errors)
			continue;

		const std::vector<std::string> got_rows = sorted_text(program, grouped, got);

		ASSERT_EQ(got_rows.size(), expected_rows.size()) << "round " << round << " " << what;
		for (size_t i = 0; i < got_rows.size(); i++)
			ASSERT_EQ(got_rows[i], expected_rows[i]) << "row " << i << " round " << round << " " << what;
	}
	tally->programs++;
	tally->clean += expected.errors == 0;
	tally->rescued += expected.errors == 0 && masks == Masks::FailingRows;
	tally->rows += expected.errors == 0 ? expected.rows.size() : 0;
	for (int i = 0; expected.errors == 0 && !expected.rows.empty() && i < program->nops; i++)
	{
		tally->opcodes.insert(program->ops()[i].opcode);
		if (program->ops()[i].opcode == Opcode::AggStep)
			tally->aggregates.insert(program->ops()[i].p5);
	}
}

Tally
run_many(bool grouped, Masks masks)
{
	const uint64_t n = setting("GPUVM_TEST_PROGRAMS", 400);
	const uint64_t first = setting("GPUVM_TEST_SEED", 1);
	Tally		tally;

	for (uint64_t seed = first; seed < first + n && !::testing::Test::HasFatalFailure(); seed++)
		run_one(seed, grouped, masks, &tally);
	return tally;
}

/* A test of errors alone would prove little. */
void
expect_much(bool grouped, Masks masks)
{
	const Tally tally = run_many(grouped, masks);

	if (tally.programs < 100)
		return;
	EXPECT_GT(tally.clean, tally.programs / 3);
	EXPECT_GT(tally.rows, static_cast<size_t>(tally.programs));
	if (tally.programs < 400)
		return;
	/* what this generator makes seldom or never has tests of its own: vm_map_test, vm_text_key_test, vm_dates_test, regression test text_order */
	const std::set<Opcode> elsewhere = {Opcode::Rowid, Opcode::Invalid, Opcode::TextKey, Opcode::TextCompare, Opcode::ZoneShift, Opcode::Bound, Opcode::DateDiff};

	for (int i = static_cast<int>(Opcode::Column); i < static_cast<int>(Opcode::Group); i++)
		/* of the library's functions there are some */
		EXPECT_TRUE(elsewhere.count(static_cast<Opcode>(i)) || is_library_function(static_cast<Opcode>(i)) || tally.opcodes.count(static_cast<Opcode>(i))) << opcode_info[i].name;
	EXPECT_EQ(tally.aggregates.size(), grouped ? 11u : 0u);
}

/* What masked rows would raise is not raised. */
void
expect_rescued(bool grouped)
{
	const Tally tally = run_many(grouped, Masks::FailingRows);

	EXPECT_TRUE(tally.programs < 10 || tally.rescued > tally.programs / 2) << tally.rescued << " of " << tally.programs;
}

}  // namespace

TEST(VmRandom, Rows)
{
	expect_much(false, Masks::None);
}

TEST(VmRandom, Groups)
{
	expect_much(true, Masks::None);
}

TEST(VmRandom, RowsMasked)
{
	expect_much(false, Masks::Random);
}

TEST(VmRandom, GroupsMasked)
{
	expect_much(true, Masks::Random);
}

TEST(VmRandom, RowsThatFailMasked)
{
	expect_rescued(false);
}

TEST(VmRandom, GroupsOfRowsThatFailMasked)
{
	expect_rescued(true);
}
