/*
 * vm_join_filter_test.cc: rows of a large table that small ones have no key for are left out first (cpu_join_filter.h): the answers on the
 * CPU virtual machine against the reference interpreter's nested loops, and when it is done.
 */
#include <gtest/gtest.h>

#include "join_star.h"
#include "vm/code_range.h"
#include "vm/cpu_join.h"
#include "vm/cpu_join_filter.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

class JoinFilter : public testing::Test
{
protected:
	void SetUp() override { rows = cpu_join::filter_rows; cpu_join::filter_rows = 0; }
	void TearDown() override { cpu_join::filter_rows = rows; }

	struct Ran
	{
		Outcome		out;
		uint64_t	pairs = 0;
	};

	static Ran	run(const SealedProgram &program, const std::vector<const Table *> &tables, uint32_t unit_rows, int nstates)
	{
		std::vector<JoinCursor> cursors;
		std::vector<std::unique_ptr<CpuState>> states;
		std::vector<CpuState *> all;
		Ran			ran;

		for (const Table *table : tables)
		{
			JoinCursor	cursor = {table->summaries.data(), static_cast<uint32_t>(table->summaries.size()), {}, table->nrows()};

			for (size_t t = 0; t < table->tablets.size(); t++)
			{
				uint32_t	nmasked;
				const MaskedRows *masked = table->masked_of(t, &nmasked);

				cursor.tablets.push_back(JoinTablet{table->tablets[t].get(), masked, nmasked});
			}
			cursors.push_back(cursor);
		}

		auto		join = CpuJoin::create(program.get(), nullptr, 0, cursors.data(), nullptr);

		while (const uint32_t n = join->begin_phase())
			for (uint32_t task = 0; task < n; task++)
				join->run_task(task);
		EXPECT_EQ(join->refusal(), nullptr);
		for (int i = 0; i < nstates; i++)
		{
			states.push_back(join->new_state());
			all.push_back(states.back().get());
		}
		for (const JoinTablet &tablet : cursors[0].tablets)
			for (uint32_t first = 0; first < tablet.tablet->nrows && !join->can_skip(tablet.tablet); first += unit_rows)
				if (program.get()->grouped)
					join->run_groups(all[first / unit_rows % all.size()], tablet.tablet, first, std::min(first + unit_rows, tablet.tablet->nrows),
									 tablet.masked, tablet.nmasked);
				else
					run_unit(program.get(), join.get(), all[first / unit_rows % all.size()], tablet, first,
							 std::min(first + unit_rows, tablet.tablet->nrows), &ran.out);
		for (CpuState *state : all)
			ran.pairs += join->pairs(state);
		if (!program.get()->grouped)
			return ran;
		for (uint32_t part = 0, n = join->rest_parts(); part < n; part++)
			join->run_rest_groups(all[0], part);
		for (uint32_t parts = join->begin_merge(all.data(), static_cast<uint32_t>(all.size())), i = 0; i < parts; i++)
			join->merge_part(all.data(), static_cast<uint32_t>(all.size()), i);
		ran.out.errors = join->finish(all[0]);
		if (ran.out.errors == 0)
		{
			Area		area(program.get(), 192);

			read_area(program.get(), area.memory.get(), area.capacity, join->emit_groups(all[0], 0, area.memory.get(), area.capacity), &ran.out);
		}
		return ran;
	}

	static void run_unit(const Program *program, const CpuJoin *join, CpuState *state, const JoinTablet &tablet, uint32_t first, uint32_t end,
						 Outcome *out)
	{
		JoinPart	part;

		join->begin_unit(state, tablet.tablet, first, end, tablet.masked, tablet.nmasked);
		do
		{
			Area		area(program, 2 * CPU_VECTOR_ROWS);

			part = join->run_part(state, area.memory.get(), area.capacity);
			out->errors |= part.errors;
			read_area(program, area.memory.get(), area.capacity, part.errors ? 0 : part.rows, out);
		} while (!part.done);
	}

	static std::vector<std::string> sorted(const SealedProgram &program, const Outcome &out)
	{
		std::vector<std::string> rows = rows_text(program.get(), out);

		std::sort(rows.begin(), rows.end());
		return rows;
	}

	static Outcome expected(const SealedProgram &program, const std::vector<const Table *> &tables)
	{
		return Interpreter(program.get(), tables, nullptr, true).run();
	}

	uint64_t	rows;
};

}  // namespace

TEST_F(JoinFilter, OnlyWhatIsLeftIsRun)
{
	Rng			rng(1);
	const Table f = facts(rng, {9000, 12000, 4097, 30000}, 1000), a = side(rng, 0, 30, false), b = side(rng, 1, 20, false), c = side(rng, 2, 40, false);
	const std::vector<const Table *> tables = {&f, &a, &b, &c};
	const SealedProgram program = star_program(StarShape());

	for (bool filter : {false, true})
	{
		cpu_join::filter_rows = filter ? 0 : UINT64_MAX;

		const Ran	ran = run(program, tables, 4096, 1);

		EXPECT_EQ(sorted(program, ran.out), sorted(program, expected(program, tables)));
		EXPECT_EQ(ran.pairs, filter ? 3 * met(tables, 3) : met(tables, 1) + met(tables, 2) + met(tables, 3));
	}
}

TEST_F(JoinFilter, ErrorsAreKept)
{
	Rng			rng(2);
	const Table a = side(rng, 0, 30, false), b = side(rng, 1, 20, false), c = side(rng, 2, 40, false);
	const Table tame = facts(rng, {9000, 5000}, 1000), wild = facts(rng, {9000, 5000}, int64_t{1} << 31);
	StarShape	shape;

	for (bool first : {true, false})
	{
		shape.first_raises = first;
		shape.tail_raises = !first;

		const SealedProgram program = star_program(shape);
		const std::vector<const Table *> tables = {&tame, &a, &b, &c}, raising = {&wild, &a, &b, &c};

		EXPECT_NE(run(program, raising, 4096, 1).out.errors, 0u);

		/* ranges tell that nothing is raised */
		const Ran	ran = run(program, tables, 4096, 1);

		EXPECT_EQ(sorted(program, ran.out), sorted(program, expected(program, tables)));
		EXPECT_EQ(ran.pairs, 3 * met(tables, 3));
	}
}

TEST_F(JoinFilter, Everything)
{
	int			filtered = 0;

	for (uint64_t seed = 1; seed <= 24 && !HasFatalFailure(); seed++)
	{
		Rng			rng(seed);
		const RandomStar star(rng, 10000);
		const SealedProgram program = star_program(star.shape);
		const uint32_t unit_rows = CPU_VECTOR_ROWS << rng() % 5;
		const int	nstates = 1 + static_cast<int>(rng() % 3);

		cpu_join::filter_rows = 0;

		const Ran	ran = run(program, star.tables, unit_rows, nstates);

		ASSERT_EQ(ran.out.errors, 0u) << "seed " << seed;
		ASSERT_EQ(sorted(program, ran.out), sorted(program, expected(program, star.tables))) << "seed " << seed;
		cpu_join::filter_rows = UINT64_MAX;
		filtered += run(program, star.tables, unit_rows, nstates).pairs != ran.pairs;
	}
	EXPECT_GT(filtered, 6);
}

/* Whoever runs a unit, and whatever ran before it: its rows come in one order. */
TEST_F(JoinFilter, OrderIsTheUnits)
{
	for (uint64_t seed = 1; seed <= 8; seed++)
	{
		Rng			rng(seed);
		const Table f = facts(rng, {20000, 12000, 30000}, 1000), a = side(rng, 0, 40, true), b = side(rng, 1, 100, false), c = side(rng, 2, 50, true);
		const std::vector<const Table *> tables = {&f, &a, &b, &c};
		StarShape	shape;

		/* lanes without a partner follow the pairs of their batch */
		shape.kinds[2] = JoinKind::Left;
		shape.rows = true;

		const SealedProgram program = star_program(shape);
		const std::vector<std::string> one = rows_text(program.get(), run(program, tables, 4 * CPU_VECTOR_ROWS, 1).out);

		EXPECT_GT(one.size(), 1000u);
		for (int nstates : {2, 3})
			EXPECT_TRUE(rows_text(program.get(), run(program, tables, 4 * CPU_VECTOR_ROWS, nstates).out) == one) << "seed " << seed;
	}
}

/* Codes of every width, over all of their values where these are few. */
TEST(CodeRangeTest, Codes)
{
	Rng			rng(3);

	for (int i = 0; i < 4000; i++)
	{
		static const Type types[] = {Type::Bool, Type::I16, Type::I32, Type::I64};
		const Type	type = types[rng() % 4];
		const uint32_t natural = static_cast<uint32_t>(type_natural_width(type)), widths[] = {1, 2, 4};
		const uint32_t width = std::min(widths[rng() % 3], natural);
		const bool	as_it_is = width == natural;
		const int64_t least = type == Type::Bool ? 0 : type == Type::I16 ? INT16_MIN : type == Type::I32 ? INT32_MIN : INT64_MIN;
		const int64_t most = type == Type::Bool ? 1 : type == Type::I16 ? INT16_MAX : type == Type::I32 ? INT32_MAX : INT64_MAX;
		const __int128 ncodes = __int128(1) << 8 * width;
		const int64_t top = static_cast<int64_t>(most - ncodes + 1);
		const int64_t base = as_it_is ? 0 : rng() % 3 == 0 ? least : rng() % 2 == 0 ? top : least / 2 + static_cast<int64_t>(rng() % 1000);
		const uint64_t n = rng() % 10 == 0 ? rng() % 3 : 1 + rng() % (uint64_t{1} << rng() % 33);
		/* somewhere about the codes' values, or at the ends */
		__int128	lo = rng() % 8 == 0 ? INT64_MIN : rng() % 8 == 0 ? INT64_MAX : static_cast<__int128>(base) + static_cast<int64_t>(rng() % 70000) - 35000;

		lo = std::max<__int128>(std::min<__int128>(lo, static_cast<__int128>(INT64_MAX) - n + 1), INT64_MIN);

		const CodeRange range = code_range(type, width, base, static_cast<int64_t>(lo), n);

		for (int k = 0; k < 300; k++)
		{
			uint64_t	code = k < 100 ? rng() : k < 200 ? static_cast<uint64_t>(k) : 0 - static_cast<uint64_t>(k - 199);

			if (rng() % 2)
				code = static_cast<uint64_t>(lo) - static_cast<uint64_t>(base) + rng() % (n + 2) - 1;
			code &= ~uint64_t{0} >> (64 - 8 * width);
			if (type == Type::Bool)
				code &= 1;

			const bool	sign = codes_have_sign(type, width);
			const int64_t as_signed = width == 2 ? static_cast<int16_t>(code) : static_cast<int32_t>(code);
			const __int128 value = sign ? __int128(as_signed) : __int128(base) + code;
			const uint32_t at = static_cast<uint32_t>(sign ? static_cast<uint64_t>(as_signed) : code) - range.origin;
			const bool	in = range.some && at <= range.last;

			ASSERT_EQ(in, value >= lo && value < lo + static_cast<__int128>(n)) << "width " << width << ", base " << base << ", n " << n;
			if (in)
			{
				ASSERT_EQ(static_cast<__int128>(at + range.slot), value - lo);
			}
		}
	}
}
