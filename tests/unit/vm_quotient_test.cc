/*
 * vm_quotient_test.cc: quotients of numerics (vm/quotient.h), divided as programs do it, against what PostgreSQL gave,
 * and against long division of one decimal at a time.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "vm/semantics.h"

using namespace gpuvm;

namespace {

constexpr int MIN_DIGITS = 16;

uint32_t	ignored;

/* As many decimals of `m`, in base 10000, as select_div_scale looks at: the weight, and the first digit. */
void
weight_of(std::string m, int scale, int *weight, int *first)
{
	m.insert(0, static_cast<size_t>(std::max(0, scale + 1 - static_cast<int>(m.size()))), '0');

	const size_t point = m.size() - static_cast<size_t>(scale);

	m.append(static_cast<size_t>((4 - scale % 4) % 4), '0');
	m.insert(0, (4 - point % 4) % 4, '0');
	*weight = static_cast<int>((point + 3) / 4) - 1;
	for (size_t i = 0; i < m.size(); i += 4, (*weight)--)
	{
		*first = std::stoi(m.substr(i, 4));
		if (*first != 0)
			return;
	}
	*weight = *first = 0;
}

/* numeric_div: digit by digit, and rounded at the end. */
std::string
by_hand(int64_t a, int scale_a, int64_t b, int scale_b)
{
	uint128		am = sem::magnitude_of(a), bm = sem::magnitude_of(b);
	std::string digits, sign = (a < 0) != (b < 0) ? "-" : "";
	int			wa, wb, fa, fb;

	weight_of(std::to_string(sem::magnitude_of(a)), scale_a, &wa, &fa);
	weight_of(std::to_string(sem::magnitude_of(b)), scale_b, &wb, &fb);

	const int	scale = std::max({MIN_DIGITS - 4 * (wa - wb - (fa <= fb ? 1 : 0)), scale_a, scale_b});

	for (; scale_a < scale_b; scale_a++)
		am *= 10;
	for (; scale_b < scale_a; scale_b++)
		bm *= 10;

	uint128		whole = am / bm, rest = am % bm;

	for (; whole != 0; whole /= 10)
		digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(whole % 10)));
	if (digits.empty())
		digits = "0";
	for (int i = 0; i < scale; i++, rest = rest * 10 % bm)
		digits += static_cast<char>('0' + static_cast<int>(rest * 10 / bm));
	if (rest * 10 / bm >= 5)
	{
		size_t		i = digits.size();

		while (i > 0 && digits[i - 1] == '9')
			digits[--i] = '0';
		if (i == 0)
			digits.insert(digits.begin(), '1');
		else
			digits[i - 1]++;
	}
	if (digits.find_first_not_of('0') == std::string::npos)
		sign.clear();
	digits.insert(digits.size() - static_cast<size_t>(scale), ".");
	return sign + digits;
}

/* As compiler/wide_divide.cc has it, at this scale; "": it would be flagged. */
std::string
by_program(int64_t a, int scale_a, int64_t b, int scale_b, int computed)
{
	const int	below = computed - sem::ROUNDED_DECIMALS, common = std::max(scale_a, scale_b);
	const int64_t weight = (sem::NumericLead(a, scale_a, &ignored) - sem::NumericLead(b, scale_b, &ignored) - 1) >> sem::LEAD_BITS;
	const int	scale = std::max({static_cast<int>(MIN_DIGITS - 4 * weight), scale_a, scale_b});
	uint32_t	err = 0;
	int64_t		x = sem::int_mul<Type::I64>(a, static_cast<int64_t>(sem::power_of_ten(common - scale_a)), &err);
	const int64_t y = sem::int_mul<Type::I64>(b, static_cast<int64_t>(sem::power_of_ten(common - scale_b)), &err);

	x = sem::int_mul<Type::I64>(x, static_cast<int64_t>(sem::power_of_ten(below)), &err);
	if (err != 0 || scale > computed)
		return "";

	const int64_t whole = sem::int_div<Type::I64>(x, y, &err), rest = sem::int_rem<Type::I64>(x, y, &err);
	const int64_t decimals = sem::RoundDecimals(sem::NextDecimals(rest, y, &ignored), a == 0 ? 0 : scale - below, &ignored);
	const int128 value = wide_value(sem::DecimalsHigh(whole, decimals, &ignored), sem::DecimalsLow(whole, decimals, &ignored));
	uint128		m = value < 0 ? static_cast<uint128>(-value) : static_cast<uint128>(value);
	std::string digits;

	for (int i = computed; i > scale; i--, m /= 10)
		if (m % 10 != 0)
			return "decimals behind those shown";
	for (int i = 0; i <= scale || m != 0; i++, m /= 10)
	{
		if (i == scale)
			digits.insert(digits.begin(), '.');
		digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(m % 10)));
	}
	return (value < 0 ? "-" : "") + digits;
}

/* The same by any scale that takes it. */
void
compare(int64_t a, int scale_a, int64_t b, int scale_b, const std::string &expected, int *computed)
{
	for (int scale = 20; scale <= 32; scale += 4)
	{
		const std::string got = by_program(a, scale_a, b, scale_b, scale);

		if (got.empty())
			continue;
		ASSERT_EQ(got, expected) << a << "e-" << scale_a << " / " << b << "e-" << scale_b << " at " << scale;
		(*computed)++;
	}
}

}  // namespace

TEST(VmQuotient, PostgreSQLsQuotients)
{
	/* SELECT (a * 10^-scale_a) / (b * 10^-scale_b) */
	static const struct
	{
		int64_t		a;
		int			scale_a;
		int64_t		b;
		int			scale_b;
		const char *quotient;
	} said[] = {
		{10, 1, 95804, 1, "0.00010437977537472339"},
		{99, 2, 8400851, 2, "0.000011784520401564079639"},
		{-6457513, 3, 99, 3, "-65227.404040404040"},
		{95804, 4, 100000, 0, "0.000095804000000000000000"},
		{100000, 5, -69583216, 1, "-0.000000143712817182810291"},
		{-999999, 6, 4230846, 2, "-0.000023635911115649210583"},
		{8400851, 0, 999999, 3, "8400.8594008594008594"},
		{634791608, 1, 10, 0, "6347916.080000000000"},
		{-10, 2, 28, 1, "-0.03571428571428571429"},
		{99, 3, -60841, 2, "-0.00016271921894774905"},
		{344170, 4, 99, 3, "347.6464646464646465"},
		{-7412, 5, 100000, 0, "-0.000000741200000000000000"},
		{100000, 6, 58040, 1, "0.000017229496898690558236"},
		{999999, 0, 5890855, 2, "16.9754475369025379"},
		{-2287508, 1, -999999, 3, "228.7510287510287510"},
		{69583216, 2, 10, 0, "69583.216000000000"},
		{10, 3, 26145452, 1, "0.0000000038247569787663261664"},
		{-99, 4, 1720850, 2, "-0.000000575297091553592701"},
		{4230846, 5, 99, 3, "427.3581818181818182"},
		{20, 6, -100000, 0, "-0.0000000002000000000000000000"},
		{-100000, 0, 64, 1, "-15625.000000000000"},
		{999999, 1, 7550864, 2, "1.3243504319505688"},
		{6174184, 2, 999999, 3, "61.7419017419017419"},
		{-4374824, 3, 10, 0, "-437.4824000000000000"},
		{10, 4, -20276, 1, "-0.000000493193923850858157"},
		{99, 5, 3380859, 2, "0.000000029282498915216517"},
		{-8117522, 6, 99, 3, "-81.9951717171717172"},
		{28, 0, 100000, 0, "0.00028000000000000000"},
		{100000, 1, 82707688, 1, "0.00120907744392516449"},
		{-999999, 2, -9210873, 2, "0.10856723352932995602"},
		{60841, 3, 999999, 3, "0.06084106084106084106"},
		{166432, 4, 10, 0, "1.6643200000000000"},
		{-10, 5, 1, 1, "-0.00100000000000000000"},
		{99, 6, 5040868, 2, "0.0000000019639474788865727093"},
		{2004179, 0, -99, 3, "-20244232.323232323232"},
		{-6, 1, 100000, 0, "-0.000006000000000000000000"},
		{100000, 2, 82512, 1, "0.12119449292224161334"},
		{999999, 3, 870863, 2, "0.11482850919145720969"},
		{-3947517, 4, 999999, 3, "-0.39475209475209475209"},
		{58040, 5, -10, 0, "-0.05804000000000000000"},
		{10, 6, 39269924, 1, "0.0000000000025464780629572902"},
		{-99, 0, 6700877, 2, "-0.00147741855282524959"},
		{5890855, 1, 99, 3, "5950358.585858585859"},
		{491353844, 2, 100000, 0, "49.1353844000000000"},
		{-100000, 3, -36, 1, "27.7777777777777778"},
		{999999, 4, 2530872, 2, "0.00395120337970470257"},
		{7834193, 5, 999999, 3, "0.07834200834200834201"},
		{-9648, 6, 10, 0, "-0.00096480000000000000"},
		{10, 0, 44748, 1, "0.00223473674801108429"},
		{99, 1, -8360886, 2, "-0.00011840850359638919"},
		{-9777531, 2, 99, 3, "-987629.393939393939"},
		{26145452, 3, 100000, 0, "0.26145452000000000000"},
		{100000, 4, 95832160, 1, "0.000001043491036829390050"},
		{-999999, 5, 4190881, 2, "-0.00023861307443470717"},
		{1720850, 6, -999999, 3, "-0.00172085172085172085"},
		{256, 0, 10, 0, "25.6000000000000000"},
		{-10, 1, 72, 1, "-0.13888888888888888889"},
		{99, 2, 20876, 2, "0.00474228779459666603"},
		{3664188, 3, 99, 3, "37012.000000000000"},
		{-937060, 4, -100000, 0, "0.00093706000000000000"},
	};
	int			computed = 0;

	for (const auto &s : said)
	{
		ASSERT_EQ(by_hand(s.a, s.scale_a, s.b, s.scale_b), s.quotient) << s.a << "e-" << s.scale_a << " / " << s.b << "e-" << s.scale_b;
		compare(s.a, s.scale_a, s.b, s.scale_b, s.quotient, &computed);
	}
	EXPECT_GT(computed, static_cast<int>(std::size(said)));
}

TEST(VmQuotient, LongDivision)
{
	std::mt19937_64 rng(11);
	int			computed = 0;
	auto		some = [&]() {
		const uint64_t unit = sem::power_of_ten(static_cast<int>(rng() % 10));
		const int64_t v = rng() % 3 ? static_cast<int64_t>(rng() % 4000000000u >> (rng() % 31)) : static_cast<int64_t>(unit * (1 + rng() % 9) + rng() % 3) - 1;

		return rng() % 2 ? -v : v;
	};

	for (int i = 0; i < 200000; i++)
	{
		const int	scale_a = static_cast<int>(rng() % 9), scale_b = static_cast<int>(rng() % 9);
		const int64_t a = some(), b = some();

		if (b != 0)
			compare(a, scale_a, b, scale_b, by_hand(a, scale_a, b, scale_b), &computed);
	}
	EXPECT_GT(computed, 200000);
}

/* No operand traps, whatever it is. */
TEST(VmQuotient, AnyOperands)
{
	static const int64_t edges[] = {0, 1, -1, 17, 18, 19, -5, 10000, INT64_MAX, INT64_MIN, sem::QUOTIENT_UNIT, sem::QUOTIENT_UNIT - 1, -sem::QUOTIENT_UNIT, INT64_MAX / 2};

	for (int64_t a : edges)
		for (int64_t b : edges)
		{
			EXPECT_LE(sem::magnitude_of(sem::RoundDecimals(a, b, &ignored)), static_cast<uint64_t>(sem::ROUNDED_UNIT));
			EXPECT_LT(sem::magnitude_of(sem::NextDecimals(a, b, &ignored)), static_cast<uint64_t>(sem::QUOTIENT_UNIT));
			EXPECT_TRUE(sem::magnitude_of(sem::NextRest(a, b, &ignored)) < std::max<uint64_t>(sem::magnitude_of(b), 1));
			EXPECT_EQ(wide_value(sem::DecimalsHigh(a, b, &ignored), sem::DecimalsLow(a, b, &ignored)), static_cast<int128>(a) * sem::ROUNDED_UNIT + b);
			EXPECT_LT(sem::magnitude_of(sem::NumericLead(a, b, &ignored)), uint64_t{6} << sem::LEAD_BITS);
		}
	/* the first digit of 19 decimals, and of the least of each scale */
	EXPECT_EQ(sem::NumericLead(INT64_MAX, 0, &ignored), (4 << sem::LEAD_BITS) + 922);
	EXPECT_EQ(sem::NumericLead(INT64_MIN, 18, &ignored), 9);
	EXPECT_EQ(sem::NumericLead(1, 18, &ignored), (-5 * (1 << sem::LEAD_BITS)) + 100);
	EXPECT_EQ(sem::NumericLead(-12345, 4, &ignored), 1);
	EXPECT_EQ(sem::NumericLead(2345, 4, &ignored), -(1 << sem::LEAD_BITS) + 2345);
}
