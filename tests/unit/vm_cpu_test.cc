/*
 * vm_cpu_test.cc: the CPU virtual machine where a named case says more than a
 * random one: control flow, errors on dead lanes, zone maps, many groups.
 */
#include <array>

#include <gtest/gtest.h>

#include "vm/cpu_kernels.h"
#include "vm/memory_budget.h"
#include "vm_reference.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

Table
int_table(const std::vector<std::vector<int64_t>> &columns, Type type, const std::vector<uint32_t> &tablet_rows)
{
	Table		table;

	for (const std::vector<int64_t> &values : columns)
	{
		Column		c{type, {}};

		for (int64_t v : values)
			c.rows.push_back(from_register(v));
		table.columns.push_back(c);
	}
	table.tablet_rows = tablet_rows;
	table.build();
	return table;
}

/* Begins a row program with the given result types. */
std::unique_ptr<ProgramBuilder>
row_program(const std::vector<Type> &results)
{
	auto		b = new_builder();

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (size_t c = 0; c < results.size(); c++)
		b->emit(Opcode::ResultColumn, results[c], static_cast<int>(c), 0, 0, b->add_name("c"));
	b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	return b;
}

SealedProgram
end_program(ProgramBuilder &b)
{
	const int	parallel = b.parallel;

	b.ops[parallel].p3 = b.emit(Opcode::Converge, Type::None, 0, 0, 0);
	b.emit(Opcode::Finish, Type::None, 0, 0, 0);
	return seal(b);
}

void
check(const SealedProgram &p, const Table &table)
{
	const CursorSchema schema = {static_cast<uint32_t>(table.types.size()), table.types.data()};
	const char *wrong = verify_program(p.get(), p.get()->size, &schema, 1);

	ASSERT_EQ(wrong, nullptr) << wrong;
}

int
reg(ProgramBuilder &b, Type type)
{
	return b.new_reg(type);
}

std::unique_ptr<CpuJob>
job_for(const SealedProgram &p, const Table &table)
{
	return CpuJob::create(p.get(), nullptr, 0, table.summaries.data(), static_cast<uint32_t>(table.summaries.size()), table.nrows());
}

/* WHERE b <> 0 AND a / b > 2, short-circuited: no division by zero on lanes that jumped over it. */
SealedProgram
guarded_division(bool guarded)
{
	auto		b = row_program({Type::I32});
	const int	ra = reg(*b, Type::I32), rb = reg(*b, Type::I32), zero = reg(*b, Type::I32), two = reg(*b, Type::I32);
	const int	left = reg(*b, Type::Bool), q = reg(*b, Type::I32), right = reg(*b, Type::Bool), both = reg(*b, Type::Bool);

	b->emit(Opcode::Column, Type::I32, ra, 0, 0);
	b->emit(Opcode::Column, Type::I32, rb, 1, 0);
	b->emit(Opcode::Integer, Type::I32, zero, 0, 0);
	b->emit(Opcode::Integer, Type::I32, two, 2, 0);
	b->emit(Opcode::Ne, Type::I32, rb, zero, left, 0, COMPARE_STORES);

	const int	jump = guarded ? b->emit(Opcode::IfNot, Type::Bool, left, 0, 0, VERDICT_JUMPS) : -1;

	b->emit(Opcode::Div, Type::I32, q, ra, rb);
	b->emit(Opcode::Gt, Type::I32, q, two, right, 0, COMPARE_STORES);
	if (guarded)
		b->ops[jump].p3 = b->nops;
	b->emit(Opcode::And, Type::Bool, both, left, right);
	b->emit(Opcode::IfNot, Type::Bool, both, 0, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
	b->emit(Opcode::Result, Type::None, ra, 1, 0);
	return end_program(*b);
}

}  // namespace

TEST(VmCpu, ErrorsOfLanesThatJumpedOverDoNotCount)
{
	std::vector<int64_t> a, b;

	for (int i = 0; i < 3000; i++)
	{
		a.push_back(i);
		b.push_back(i % 5);
	}

	const Table table = int_table({a, b}, Type::I32, {3000});
	const SealedProgram guarded = guarded_division(true), bare = guarded_division(false);

	check(guarded, table);

	const Outcome out = run_cpu_rows(guarded.get(), table, {}, 1024);
	size_t		expected = 0;

	for (int i = 0; i < 3000; i++)
		expected += i % 5 != 0 && i / (i % 5) > 2;
	EXPECT_EQ(out.errors, 0u);
	EXPECT_EQ(out.rows.size(), expected);
	EXPECT_EQ(run_cpu_rows(bare.get(), table, {}, 1024).errors, static_cast<uint32_t>(ERR_DIVISION_BY_ZERO));
}

TEST(VmCpu, ErrorsUnderNullsDoNotCount)
{
	Table		table;
	Column		c{Type::I32, {}};

	for (int i = 0; i < 2000; i++)
		c.rows.push_back(i % 3 == 0 ? Value{} : from_register(i % 2 ? INT32_MAX - 1 : 7));
	table.columns.push_back(c);
	table.tablet_rows = {2000};
	table.build();

	for (int delta : {1, 2})
	{
		auto		b = row_program({Type::I32});
		const int	x = reg(*b, Type::I32), k = reg(*b, Type::I32), r = reg(*b, Type::I32);

		b->emit(Opcode::Column, Type::I32, x, 0, 0);
		b->emit(Opcode::Integer, Type::I32, k, delta, 0);
		b->emit(Opcode::Add, Type::I32, r, x, k);
		b->emit(Opcode::Result, Type::None, r, 1, 0);

		const Outcome out = run_cpu_rows(end_program(*b).get(), table, {}, 2048);

		EXPECT_EQ(out.errors, delta == 1 ? 0u : static_cast<uint32_t>(ERR_INT_OVERFLOW));
	}
}

/* CASE WHEN x > 0 THEN 100 / x ELSE -x END, with one branch a jump over the other. */
TEST(VmCpu, CaseMergesItsBranches)
{
	std::vector<int64_t> x;

	for (int i = 0; i < 2100; i++)
		x.push_back(i % 7 - 3);

	const Table table = int_table({x}, Type::I64, {1100, 1000});
	auto		b = row_program({Type::I64});
	const int	rx = reg(*b, Type::I64), zero = reg(*b, Type::I64), hundred = reg(*b, Type::I64);
	const int	cond = reg(*b, Type::Bool), q = reg(*b, Type::I64), n = reg(*b, Type::I64), r = reg(*b, Type::I64);

	b->emit(Opcode::Column, Type::I64, rx, 0, 0);
	b->emit(Opcode::Int64, Type::I64, zero, 0, 0, 0);
	b->emit(Opcode::Int64, Type::I64, hundred, 0, 0, 100);
	b->emit(Opcode::Gt, Type::I64, rx, zero, cond, 0, COMPARE_STORES);

	const int	to_else = b->emit(Opcode::IfNot, Type::Bool, cond, 0, 0, VERDICT_JUMPS, JUMP_IF_NULL);

	b->emit(Opcode::Div, Type::I64, q, hundred, rx);

	const int	to_end = b->emit(Opcode::Goto, Type::None, 0, 0, 0);

	b->ops[to_else].p3 = b->nops;
	b->emit(Opcode::Neg, Type::I64, n, rx, 0);
	b->ops[to_end].p3 = b->nops;
	b->emit(Opcode::Select, Type::I64, r, q, n, cond);
	b->emit(Opcode::Result, Type::None, r, 1, 0);

	const SealedProgram p = end_program(*b);

	check(p, table);

	const Outcome out = run_cpu_rows(p.get(), table, {}, 1024);

	EXPECT_EQ(out.errors, 0u);
	ASSERT_EQ(out.rows.size(), x.size());
	for (size_t i = 0; i < x.size(); i++)
		EXPECT_EQ(out.rows[i][0].i, x[i] > 0 ? 100 / x[i] : -x[i]);
}

namespace {

/* SELECT x FROM t WHERE x > k, after an addition of `delta` that may overflow. */
SealedProgram
filtered(int64_t k, int64_t delta)
{
	auto		b = row_program({Type::I32});
	const int	x = reg(*b, Type::I32), d = reg(*b, Type::I32), s = reg(*b, Type::I32), c = reg(*b, Type::I32);

	b->emit(Opcode::Column, Type::I32, x, 0, 0);
	b->emit(Opcode::Integer, Type::I32, d, static_cast<int>(delta), 0);
	b->emit(Opcode::Add, Type::I32, s, x, d);
	b->emit(Opcode::Integer, Type::I32, c, static_cast<int>(k), 0);
	b->emit(Opcode::Le, Type::I32, x, c, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
	b->emit(Opcode::Result, Type::None, x, 1, 0);
	return end_program(*b);
}

}  // namespace

TEST(VmCpu, ZoneMapsSkipTablets)
{
	std::vector<int64_t> x;

	for (int i = 0; i < 3000; i++)
		x.push_back(i);

	const Table table = int_table({x}, Type::I32, {1000, 1000, 1000});
	const SealedProgram none = filtered(5000, 0), one = filtered(1999, 0), unsafe = filtered(5000, INT32_MAX - 1500);
	auto		skips = [&](const SealedProgram &p) {
		auto		job = job_for(p, table);
		std::string text;

		for (const auto &t : table.tablets)
			text += job->can_skip(t.get()) ? 's' : 'r';
		return text;
	};

	EXPECT_EQ(skips(none), "sss");
	EXPECT_EQ(skips(one), "ssr");
	/* the second tablet may overflow, and then PostgreSQL would say so */
	EXPECT_EQ(skips(unsafe), "srr");
	EXPECT_EQ(run_cpu_rows(unsafe.get(), table, {}, 1024).errors, static_cast<uint32_t>(ERR_INT_OVERFLOW));
	EXPECT_EQ(run_cpu_rows(one.get(), table, {}, 1024).rows.size(), 1000u);
}

TEST(VmCpu, CountsTheBytesThatItReads)
{
	std::vector<int64_t> narrow, wide;

	for (int i = 0; i < 100; i++)
	{
		narrow.push_back(i);
		wide.push_back(i * 1000000);
	}

	const Table two = int_table({narrow, wide}, Type::I32, {100});

	EXPECT_EQ(job_for(filtered(5, 0), two)->bytes_of(two.tablets[0].get()), TABLET_PAD_ROWS);
}

TEST(VmCpu, ATabletThatContradictsTheSummaryIsNotRead)
{
	const Table table = int_table({{1, 2, 3, 1000}}, Type::I32, {4});
	const SealedProgram p = filtered(0, 0);
	ColumnSummary lying = table.summaries[0];

	lying.max = 3;

	auto		job = CpuJob::create(p.get(), nullptr, 0, &lying, 1, 4);
	auto		state = job->new_state();
	Area		area(p.get(), 1024);

	EXPECT_NE(job->run_rows(state.get(), table.tablets[0].get(), 0, 4, area.memory.get(), area.capacity).errors, 0u);
}

namespace {

/* SELECT k, count(*), sum(v), min(v) GROUP BY k; the last first: an order of its own is nothing that aggregates must have */
SealedProgram
group_program(Type key)
{
	auto		b = new_builder();
	const int64_t sources[] = {0, RESULT_FROM_AGG | 0, RESULT_FROM_AGG | 1, RESULT_FROM_AGG | 2};
	const int64_t keys[] = {0};
	const Type	results[] = {key, Type::I64, Type::I128, key};

	reg(*b, key);
	reg(*b, key);
	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (int c = 0; c < 4; c++)
		b->emit(Opcode::ResultColumn, results[c], c, 0, 0, b->add_name("c"));
	b->emit(Opcode::AggOpen, Type::None, 1, 3, b->add_aux(sources, 4));
	b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	b->emit(Opcode::Column, key, 0, 0, 0);
	b->emit(Opcode::Column, key, 1, 1, 0);
	b->emit(Opcode::Group, Type::None, 1, b->add_aux(keys, 1), 0);
	b->emit(Opcode::AggStep, key, 2, 1, -1, 0, static_cast<uint8_t>(AggFn::Min));
	b->emit(Opcode::AggStep, key, 1, 1, -1, 0, static_cast<uint8_t>(AggFn::Sum));
	b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	return end_program(*b);
}

}  // namespace

TEST(VmCpu, ManyGroups)
{
	const uint64_t spilled = bytes_spilled;
	std::mt19937_64 rng(3);

	/* keys in any order, or together with their like; so few groups that states merge as they are, and so many that they do in parts */
	for (const auto &[distance, together] : std::vector<std::pair<int64_t, bool>>{{1000003, false}, {5, false}, {1000003, true}, {20, true}})
		for (int64_t distinct : {1, 50, 3000, 60000, 200000})
		{
			const uint32_t nrows = distinct > 100000 ? 200000 : distinct > 10000 ? 100000 : 50000;
			std::vector<int64_t> k, v;
			std::map<int64_t, std::array<int64_t, 3>> expected;

			for (uint32_t i = 0; i < nrows; i++)
			{
				k.push_back(static_cast<int64_t>((together ? i / 3 : rng()) % static_cast<uint64_t>(distinct)) * distance - 77);
				v.push_back(static_cast<int64_t>(rng() % 2001) - 1000);

				auto	   &e = expected[k.back()];

				e[2] = e[0] == 0 ? v.back() : std::min(e[2], v.back());
				e[0]++;
				e[1] += v.back();
			}

			const Table table = int_table({k, v}, Type::I64, {nrows / 4, nrows / 2, nrows / 4});
			const SealedProgram p = group_program(Type::I64);

			check(p, table);
			for (int nstates : {1, 2, 3})
			{
				const Outcome out = run_cpu_groups(p.get(), table, {}, 8192, nstates, rng);

				EXPECT_EQ(out.errors, 0u);
				ASSERT_EQ(out.rows.size(), expected.size());
				for (const auto &row : out.rows)
				{
					const auto &e = expected.at(row[0].i);

					ASSERT_EQ(row[1].i, e[0]);
					ASSERT_TRUE(row[2].x == e[1]);
					ASSERT_EQ(row[3].i, e[2]);
				}
			}
		}
	EXPECT_GT(bytes_spilled, spilled);
}

/* Null keys, keys of several columns, and aggregates with states of every kind. */
TEST(VmCpu, ManyGroupsOfTwoKeys)
{
	const uint64_t spilled = bytes_spilled;
	const Type	types[] = {Type::I16, Type::I64, Type::F64, Type::Bool};
	const std::vector<std::pair<AggFn, int>> aggs = {{AggFn::CountStar, -1}, {AggFn::Count, 2}, {AggFn::Sum, 2}, {AggFn::Max, 2},
		{AggFn::Sum, 1}, {AggFn::Min, 0}, {AggFn::BoolOr, 3}};
	std::mt19937_64 rng(5);

	/* keys near one another and far apart; with an infinity, which makes no sum fail; with a sum that may overflow */
	for (const auto &[distance, odd] : std::vector<std::pair<int64_t, double>>{{1, 0.5}, {1000003, 0.5}, {1, INFINITY}, {1, 1.7e308}})
	{
		Table		table;

		for (Type type : types)
			table.columns.push_back(Column{type, {}});
		for (int i = 0; i < 48000; i++)
		{
			const int64_t values[] = {static_cast<int64_t>(rng() % 300) - 100, static_cast<int64_t>(rng() % 400) * distance, 0,
				static_cast<int64_t>(rng() % 2)};

			for (int c = 0; c < 4; c++)
				table.columns[c].rows.push_back(rng() % 50 == 0 ? Value{}
												: c == 2 ? from_register(i % 10000 == 7 ? odd : static_cast<double>(rng() % 1000) / 8)
												: c == 3 ? truth(values[c]) : from_register(values[c]));
		}
		table.tablet_rows = {20000, 28000};
		table.build();

		auto		b = new_builder();
		std::vector<int64_t> sources = {0, 1};
		const int64_t keys[] = {0, 1};

		b->emit(Opcode::Table, Type::None, 0, 0, 0);
		b->emit(Opcode::ResultColumn, types[0], 0, 0, 0, b->add_name("k"));
		b->emit(Opcode::ResultColumn, types[1], 1, 0, 0, b->add_name("l"));
		for (size_t a = 0; a < aggs.size(); a++)
		{
			const Type	type = aggs[a].second < 0 ? Type::None : types[aggs[a].second];

			sources.push_back(RESULT_FROM_AGG | static_cast<int64_t>(a));
			b->emit(Opcode::ResultColumn, agg_result_type(aggs[a].first, type), static_cast<int>(a) + 2, 0, 0, b->add_name("c"));
		}
		b->emit(Opcode::AggOpen, Type::None, 2, static_cast<int>(aggs.size()), b->add_aux(sources.data(), static_cast<int>(sources.size())));
		b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
		for (int c = 0; c < 4; c++)
			b->emit(Opcode::Column, types[c], reg(*b, types[c]), c, 0);
		b->emit(Opcode::Group, Type::None, 2, b->add_aux(keys, 2), 0);
		for (size_t a = 0; a < aggs.size(); a++)
			b->emit(Opcode::AggStep, aggs[a].second < 0 ? Type::None : types[aggs[a].second], static_cast<int>(a), aggs[a].second, -1, 0,
					static_cast<uint8_t>(aggs[a].first));

		const SealedProgram p = end_program(*b);

		check(p, table);

		const Outcome expected = Interpreter(p.get(), table, nullptr).run();
		std::vector<std::string> expected_rows = rows_text(p.get(), expected);

		std::sort(expected_rows.begin(), expected_rows.end());
		for (int nstates : {1, 2, 3, 2, 3})
		{
			const Outcome got = run_cpu_groups(p.get(), table, {}, 4096, nstates, rng);
			std::vector<std::string> got_rows = rows_text(p.get(), got);

			ASSERT_EQ(got.errors, expected.errors);
			if (expected.errors)
				continue;
			std::sort(got_rows.begin(), got_rows.end());
			ASSERT_EQ(got_rows, expected_rows);
		}
	}
	EXPECT_GT(bytes_spilled, spilled);
}

/* Few groups after many: their rows are put aside, and become groups where memory is short or they are many. */
TEST(VmCpu, WhatIsPutAsideTakesNoMoreThanItsGroupsNeed)
{
	constexpr uint64_t LIMIT = uint64_t(14) << 20;
	const uint32_t nrows = 1000000;
	const int64_t many = 20000, few = 10;
	std::vector<int64_t> k, v(nrows, 1);
	std::mt19937_64 rng(7);

	for (uint32_t i = 0; i < nrows; i++)
		k.push_back(i < many ? i : many + i % few);

	const Table table = int_table({k, v}, Type::I64, {nrows});
	const SealedProgram p = group_program(Type::I64);

	check(p, table);
	for (int i = 0; i < 5; i++)
	{
		MemoryBudget budget(i < 4 ? LIMIT : UINT64_MAX);
		JobMemory	job(&budget);
		JobMemory::Use uses(&job);
		const Outcome out = run_cpu_groups(p.get(), table, {}, 65536, 1, rng);

		EXPECT_EQ(out.errors, 0u);
		ASSERT_EQ(out.rows.size(), static_cast<size_t>(many + few));
		for (const auto &row : out.rows)
			ASSERT_EQ(row[1].i, row[0].i < many ? 1 : (nrows - many) / few);
		if (i < 4)
		{
			EXPECT_LE(job.peak(), LIMIT);
		}
	}
}

TEST(VmCpu, NoRows)
{
	const Table table = int_table({{1, 2}, {3, 4}}, Type::I64, {2});
	const SealedProgram p = group_program(Type::I64);
	std::mt19937_64 rng(4);
	auto		job = job_for(p, table);
	auto		state = job->new_state();

	EXPECT_EQ(job->finish(state.get()), 0u);
	EXPECT_EQ(job->ngroups(state.get()), 0u);
}

TEST(VmCpu, EveryKernelLevelIsThere)
{
	limit_cpu_kernels(0);
	EXPECT_STREQ(cpu_kernels()->level, "base");
	limit_cpu_kernels(2);
#if defined(__x86_64__)
	if (__builtin_cpu_supports("x86-64-v4"))
	{
		EXPECT_STREQ(cpu_kernels()->level, "v4");
	}
#endif
}
