/*
 * vm_float_sum_test.cc: float sums are exact, rounded once, and the same for
 * every order and split.
 */
#include <gtest/gtest.h>

#include "vm/float_sum.h"
#include "vm/value_range.h"
#include "vm_reference.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

constexpr FloatSumWindow FULL = {0, FLOAT_SUM_LIMBS};

struct Sum
{
	FloatSumInfo info = {};
	int64_t		limbs[FLOAT_SUM_LIMBS] = {};

	void		add(double v) { EXPECT_TRUE(float_sum_add(&info, limbs, FULL, v)); }
	double		round() { Sum copy = *this; return float_sum_round(copy.info, copy.limbs, FULL); }
};

double
sum_of(const std::vector<double> &v)
{
	Sum			s;

	for (double x : v)
		s.add(x);
	return s.round();
}

uint64_t
bits(double v)
{
	return double_bits(v);
}

/* SELECT sum(column 0) FROM table, by one of several paths. */
double
vm_sum(const Table &table, Type type, bool by_key, int nstates, std::mt19937_64 &rng, uint32_t *errors)
{
	auto		b = new_builder();
	const int64_t sources[] = {RESULT_FROM_AGG | 0};
	const int64_t keys[] = {1};

	b->new_reg(type);
	b->new_reg(Type::I32);
	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::ResultColumn, Type::F64, 0, 0, 0, b->add_name("sum"));
	b->emit(Opcode::AggOpen, Type::None, by_key, 1, b->add_aux(sources, 1));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

	b->emit(Opcode::Column, type, 0, 0, 0);
	b->emit(Opcode::Integer, Type::I32, 1, 5, 0);
	if (by_key)
		b->emit(Opcode::Group, Type::None, 1, b->add_aux(keys, 1), 0);
	b->emit(Opcode::AggStep, type, 0, 0, -1, 0, static_cast<uint8_t>(AggFn::Sum));
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);

	const SealedProgram p = seal(*b);
	const CursorSchema schema = {1, &type};

	EXPECT_EQ(verify_program(p.get(), p.get()->size, &schema, 1), nullptr);

	const Outcome out = run_cpu_groups(p.get(), table, {}, 1024, nstates, rng);

	*errors = out.errors;
	EXPECT_EQ(out.rows.size(), 1u);
	return out.rows[0][0].d;
}

Table
one_column(Type type, const std::vector<double> &values)
{
	Table		table;
	Column		column{type, {}};

	for (double v : values)
		column.rows.push_back(from_register(v));
	table.columns.push_back(column);
	for (size_t left = values.size(); left > 0;)
	{
		const uint32_t n = static_cast<uint32_t>(std::min<size_t>(left, 5000));

		table.tablet_rows.push_back(n);
		left -= n;
	}
	table.build();
	return table;
}

void
expect_all_paths(Type type, std::vector<double> values, double expected, std::mt19937_64 &rng)
{
	for (int round = 0; round < 3; round++)
	{
		const Table table = one_column(type, values);

		for (bool by_key : {false, true})
		{
			uint32_t	errors;
			const double got = vm_sum(table, type, by_key, 1 + round, rng, &errors);

			EXPECT_EQ(errors, 0u);
			EXPECT_EQ(bits(got), bits(expected)) << got << " " << expected << " by_key " << by_key;
		}
		std::shuffle(values.begin(), values.end(), rng);
	}
}

}  // namespace

TEST(FloatSum, KnownSums)
{
	EXPECT_EQ(bits(sum_of({})), bits(0.0));
	EXPECT_EQ(bits(sum_of({-0.0, -0.0})), bits(-0.0));
	EXPECT_EQ(bits(sum_of({-0.0, 0.0})), bits(0.0));
	EXPECT_EQ(bits(sum_of({1.5, -1.5})), bits(0.0));
	EXPECT_EQ(sum_of({1e308, 1.0, -1e308}), 1.0);
	EXPECT_EQ(sum_of({1e100, 1.0, -1e100, 5e-324, -1.0}), 5e-324);
	EXPECT_EQ(sum_of({0.1, 0.2, 0.3, -0.6}), std::ldexp(1.0, -55) + std::ldexp(-1.0, -54) + std::ldexp(1.0, -54));
	EXPECT_EQ(sum_of({0x1p53, 1.0}), 0x1p53);			/* half, to even */
	EXPECT_EQ(sum_of({0x1p53, 1.0, 5e-324}), 0x1p53 + 2);
	EXPECT_EQ(sum_of({0x1p53 + 2, 1.0}), 0x1p53 + 4);
	EXPECT_EQ(sum_of({-0x1p53, -1.0, -5e-324}), -0x1p53 - 2);
	EXPECT_EQ(sum_of({0x1p-1022, -5e-324}), 0x1p-1022 - 5e-324);
	EXPECT_EQ(sum_of({5e-324, 5e-324}), 1e-323);
	EXPECT_EQ(sum_of({0x1.fffffffffffffp1023, 0x1.fffffffffffffp1023}), INFINITY);
	EXPECT_EQ(sum_of({INFINITY, 1.0}), INFINITY);
	EXPECT_EQ(sum_of({-INFINITY, 1.0}), -INFINITY);
	EXPECT_TRUE(std::isnan(sum_of({-INFINITY, INFINITY})));
	EXPECT_TRUE(std::isnan(sum_of({NAN, 1.0})));
}

TEST(FloatSum, AgreesWithIntegers)
{
	std::mt19937_64 rng(11);

	for (int round = 0; round < 200; round++)
	{
		/* multiples of 2^-20 below 2^40: their sum is an int128, its rounding a cast */
		Sum			s;
		int128		exact = 0;

		for (int i = 0; i < 1000; i++)
		{
			const int64_t k = static_cast<int64_t>(rng()) >> (4 + rng() % 40);
			const double v = static_cast<double>(k);

			exact += static_cast<int128>(v);
			s.add(std::ldexp(v, -20));
		}
		EXPECT_EQ(bits(s.round()), bits(std::ldexp(static_cast<double>(exact), -20)));
	}
}

TEST(FloatSum, WindowsAndFixedPointAgreeWithTheFullSum)
{
	std::mt19937_64 rng(12);

	for (int round = 0; round < 200; round++)
	{
		const int	lo = static_cast<int>(rng() % 1900) - 1074;
		const int	hi = lo + 20 + static_cast<int>(rng() % 80);
		const FloatSumWindow window = float_sum_window(lo, hi);
		FloatSumInfo info = {};
		std::vector<int64_t> limbs(window.count);
		int128		fixed = 0;
		Sum			full;

		if (hi > 1000)
			continue;
		for (int i = 0; i < 500; i++)
		{
			const int	width = static_cast<int>(rng() % 53);
			const int64_t m = static_cast<int64_t>(rng() >> 11 >> width);
			const int	e = lo + static_cast<int>(rng() % static_cast<unsigned>(hi - lo));
			double		v = std::ldexp(static_cast<double>(m), e - 53);

			/* to a multiple of 2^lo, within 2^hi */
			v = std::ldexp(std::trunc(std::ldexp(v, -lo)), lo);
			v = rng() & 1 ? v : -v;
			full.add(v);
			EXPECT_TRUE(float_sum_add(&info, limbs.data(), window, v));
			fixed += float_fixed(v, lo);
		}

		Sum			of_fixed;

		float_fixed_limbs(fixed, lo, of_fixed.limbs);
		of_fixed.info = full.info;
		EXPECT_EQ(bits(float_sum_round(info, limbs.data(), window)), bits(full.round()));
		EXPECT_EQ(bits(of_fixed.round()), bits(full.round()));
	}
}

TEST(FloatSum, RefusesWhatTheWindowDoesNotHold)
{
	const FloatSumWindow window = float_sum_window(0, 10);
	FloatSumInfo info = {};
	std::vector<int64_t> limbs(window.count);

	EXPECT_TRUE(float_sum_add(&info, limbs.data(), window, 1023.0));
	EXPECT_FALSE(float_sum_add(&info, limbs.data(), window, 0x1p-40));
	EXPECT_FALSE(float_sum_add(&info, limbs.data(), window, 0x1p300));
	EXPECT_EQ(float_sum_round(info, limbs.data(), window), 1023.0);
}

TEST(FloatSum, CarriesManyAdditions)
{
	Sum			s;

	s.info.adds = FLOAT_SUM_MAX_ADDS - 3;
	for (int i = 0; i < 10; i++)
		s.add(0x1.fffffffffffffp40);
	EXPECT_LT(s.info.adds, 20u);
	EXPECT_EQ(s.round(), std::round(std::ldexp(static_cast<double>(int128(0x1fffffffffffff) * 10), -12) * 4096) / 4096);
}

TEST(FloatSum, RestsAreWhatRoundingLoses)
{
	std::mt19937_64 rng(16);

	for (int round = 0; round < 200; round++)
	{
		Sum			whole;
		const int	spread = 1 + static_cast<int>(rng() % 300);

		for (int i = 0; i < 100; i++)
			whole.add(std::ldexp(static_cast<double>(static_cast<int64_t>(rng() >> 10) - (1ll << 53)), static_cast<int>(rng() % static_cast<unsigned>(spread))));

		double		parts[3];
		Sum			left = whole;

		for (int rest = 0; rest < 3; rest++)
		{
			Sum			copy = whole;

			parts[rest] = float_sum_rest(copy.info, copy.limbs, FULL, rest);
			/* each is what the ones before leave, rounded */
			EXPECT_EQ(parts[rest], left.round()) << round;
			left.add(-parts[rest]);
		}
		EXPECT_LE(std::fabs(left.round()), std::fabs(parts[0]) * 0x1p-158);
	}

	Sum			one;

	for (double v : {1.0, -0x1p-60, 0x1p-130})
		one.add(v);
	for (int rest = 0; rest < 3; rest++)
	{
		Sum			copy = one;

		EXPECT_EQ(float_sum_rest(copy.info, copy.limbs, FULL, rest), rest == 0 ? 1.0 : rest == 1 ? -0x1p-60 : 0x1p-130);
	}

	Sum			infinite;

	infinite.add(INFINITY);
	EXPECT_EQ(float_sum_rest(infinite.info, infinite.limbs, FULL, 1), 0.0);
}

/* Result columns of one sum have one range: what a stage over the groups reads is known by it. */
TEST(VmFloatSum, RestsHaveTheRangeOfASum)
{
	auto		b = new_builder();
	const int64_t sources[] = {0, RESULT_FROM_AGG | 0, RESULT_FROM_AGG | RESULT_REST | 0, RESULT_FROM_AGG | 2 * RESULT_REST | 0, RESULT_FROM_AGG | 1};
	const int64_t keys[] = {0};
	const Type	types[] = {Type::I32, Type::F64}, results[] = {Type::I32, Type::F64, Type::F64, Type::F64, Type::I64};
	ValueRange	ranges[5];

	b->new_reg(Type::I32);
	b->new_reg(Type::F64);
	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (int i = 0; i < 5; i++)
		b->emit(Opcode::ResultColumn, results[i], i, 0, 0, b->add_name("x"));
	b->emit(Opcode::AggOpen, Type::None, 1, 2, b->add_aux(sources, 5));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

	b->emit(Opcode::Column, Type::I32, 0, 0, 0);
	b->emit(Opcode::Column, Type::F64, 1, 1, 0);
	b->emit(Opcode::Group, Type::None, 1, b->add_aux(keys, 1), 0);
	b->emit(Opcode::AggStep, Type::F64, 0, 1, -1, 0, static_cast<uint8_t>(AggFn::Sum));
	b->emit(Opcode::AggStep, Type::None, 1, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);

	const SealedProgram p = seal(*b);
	const CursorSchema schema = {2, types};

	ASSERT_EQ(verify_program(p.get(), p.get()->size, &schema, 1), nullptr);
	group_ranges(p.get(), nullptr, 1000, ranges);
	for (int i = 1; i < 4; i++)
	{
		EXPECT_EQ(ranges[i].type, Type::F64);
		EXPECT_TRUE(ranges[i].may_null && ranges[i].may_nan && ranges[i].may_inf);
	}
	EXPECT_EQ(ranges[4].type, Type::I64);
	EXPECT_EQ(ranges[4].hi, 1000);
}

TEST(VmFloatSum, EveryPathGivesTheExactSum)
{
	std::mt19937_64 rng(13);
	const double spreads[] = {0, 20, 100, 600};

	for (double spread : spreads)
	{
		std::vector<double> values;

		for (int i = 0; i < 7000; i++)
			values.push_back(std::ldexp(static_cast<double>(static_cast<int64_t>(rng())), static_cast<int>(rng() % 1000 * spread / 1000) - 400)
							 * (rng() % 3 == 0 ? 0 : 1));
		expect_all_paths(Type::F64, values, exact_sum(values), rng);
	}
	for (double spread : {1.0, 30.0})
	{
		std::vector<double> values;

		for (int i = 0; i < 7000; i++)
			values.push_back(static_cast<double>(static_cast<float>(static_cast<double>(static_cast<int64_t>(rng() >> 20) - (1ll << 43)))
												 * std::ldexp(1.0f, -60 + static_cast<int>(rng() % 1000 * spread / 1000))));
		expect_all_paths(Type::F32, values, exact_sum(values), rng);
	}
}

TEST(VmFloatSum, NegativeZeroesAndSpecials)
{
	std::mt19937_64 rng(14);

	expect_all_paths(Type::F64, std::vector<double>(3000, -0.0), -0.0, rng);
	expect_all_paths(Type::F32, {-0.0, 0.0, -0.0}, 0.0, rng);
	expect_all_paths(Type::F64, {1.0, INFINITY, 2.0}, INFINITY, rng);
	expect_all_paths(Type::F64, {1.0, INFINITY, -INFINITY}, bits_double(0x7ff8000000000000ull), rng);
	expect_all_paths(Type::F32, {1.0, NAN, -INFINITY}, bits_double(0x7ff8000000000000ull), rng);
	expect_all_paths(Type::F64, {5e-324, -0x1p-1022, 1.0}, 1.0, rng);
}

TEST(VmFloatSum, FlagsWhatMayOverflow)
{
	std::mt19937_64 rng(15);
	uint32_t	errors;

	for (bool by_key : {false, true})
	{
		vm_sum(one_column(Type::F32, std::vector<double>(3000, 0x1p120)), Type::F32, by_key, 2, rng, &errors);
		EXPECT_EQ(errors, static_cast<uint32_t>(ERR_SUM_OVERFLOW));
		vm_sum(one_column(Type::F32, std::vector<double>(3000, 0x1p100)), Type::F32, by_key, 2, rng, &errors);
		EXPECT_EQ(errors, 0u);
		vm_sum(one_column(Type::F64, {1e308, 1e308, -1e308}), Type::F64, by_key, 2, rng, &errors);
		EXPECT_EQ(errors, static_cast<uint32_t>(ERR_SUM_OVERFLOW));
		/* avg raises there: its squares overflow */
		vm_sum(one_column(Type::F64, {1e200, -1e200}), Type::F64, by_key, 2, rng, &errors);
		EXPECT_EQ(errors, static_cast<uint32_t>(ERR_SUM_OVERFLOW));
		vm_sum(one_column(Type::F64, {1e150, -1e150}), Type::F64, by_key, 2, rng, &errors);
		EXPECT_EQ(errors, 0u);
	}
}
