/*
 * vm_dates_test.cc: calendar arithmetic and rounded quotients against other ways
 * to compute the same, and against what PostgreSQL 15 says.
 */
#include <gtest/gtest.h>

#include "vm/cpu_kernels.h"
#include "vm_reference.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

constexpr int32_t FIRST_DAY = sem::DATE_MIN;
constexpr int32_t LAST_DAY = sem::TS_LIMIT_DAYS - 1;

int64_t
floor_div(int64_t a, int64_t b)
{
	const int64_t q = a / b;

	return q * b > a ? q - 1 : q;
}

/* The calendar counted out: the days of 400 years from 2000-01-01 on, after which it repeats itself. */
struct Calendar
{
	std::vector<sem::Civil> days;
	std::map<std::pair<int, int>, int> first_of;	/* year and month to its first day */

	Calendar()
	{
		for (int year = 2000; year < 2400; year++)
			for (int month = 1; month <= 12; month++)
			{
				first_of[{year, month}] = static_cast<int>(days.size());
				for (int day = 1; day <= length(year, month); day++)
					days.push_back(sem::Civil{year, month, day});
			}
	}

	static int	length(int year, int month)
	{
		static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
		const bool	leap = floor_div(year, 4) * 4 == year && (floor_div(year, 100) * 100 != year || floor_div(year, 400) * 400 == year);

		return month == 2 && leap ? 29 : lengths[month - 1];
	}

	sem::Civil	of(int64_t day) const
	{
		const int64_t cycle = floor_div(day, static_cast<int64_t>(days.size()));
		sem::Civil	c = days[static_cast<size_t>(day - cycle * static_cast<int64_t>(days.size()))];

		c.year += static_cast<int32_t>(400 * cycle);
		return c;
	}

	int64_t		first(int64_t year, int month) const
	{
		const int64_t cycle = floor_div(year - 2000, 400);

		return cycle * static_cast<int64_t>(days.size()) + first_of.at({static_cast<int>(year - 400 * cycle), month});
	}

	/* Monday is 0; 2000-01-01 was a Saturday. */
	static int	weekday(int64_t day) { return static_cast<int>(day + 5 - 7 * floor_div(day + 5, 7)); }

	/* The Monday of the week that has 4 January. */
	int64_t		first_week(int64_t year) const
	{
		const int64_t day = first(year, 1) + 3;

		return day - weekday(day);
	}
};

const Calendar &
calendar()
{
	static const Calendar c;

	return c;
}

/* Years by hundreds or thousands: the n-th after Christ ends with year n * size, the n-th before with -n * size. */
int64_t
age_of(int64_t year, int64_t size)
{
	return year > 0 ? floor_div(year - 1, size) + 1 : -(floor_div(-year, size) + 1);
}

int64_t
first_year_of_age(int64_t age, int64_t size)
{
	return age > 0 ? (age - 1) * size + 1 : age * size + 1;
}

int64_t
expected_part(int64_t ts, DateField field)
{
	const int64_t day = floor_div(ts, sem::US_PER_DAY), time = ts - day * sem::US_PER_DAY;
	const sem::Civil c = calendar().of(day);
	int64_t		iso = c.year + 1;

	while (calendar().first_week(iso) > day)
		iso--;
	switch (field)
	{
		case DateField::Microsecond: return time % 60000000;
		case DateField::Second: return time % 60000000 / 1000000;
		case DateField::Minute: return time % 3600000000 / 60000000;
		case DateField::Hour: return time / 3600000000;
		case DateField::Day: return c.day;
		case DateField::Month: return c.month;
		case DateField::Quarter: return (c.month + 2) / 3;
		case DateField::Year: return c.year > 0 ? c.year : c.year - 1;
		case DateField::Decade: return floor_div(c.year, 10);
		case DateField::Century: return age_of(c.year, 100);
		case DateField::Millennium: return age_of(c.year, 1000);
		case DateField::Week: return (day - calendar().first_week(iso)) / 7 + 1;
		case DateField::IsoYear: return iso > 0 ? iso : iso - 1;
		case DateField::Dow: return (Calendar::weekday(day) + 1) % 7;
		case DateField::IsoDow: return Calendar::weekday(day) + 1;
		case DateField::Doy: return day - calendar().first(c.year, 1) + 1;
		case DateField::Epoch: return ts + (calendar().first(2000, 1) - calendar().first(1970, 1)) * sem::US_PER_DAY;
		default: return day - FIRST_DAY;
	}
}

/* int128, for some lie before the first timestamp. */
int128
expected_trunc(int64_t ts, DateField field)
{
	const int64_t day = floor_div(ts, sem::US_PER_DAY), time = ts - day * sem::US_PER_DAY;
	const sem::Civil c = calendar().of(day);
	auto		down_to = [&](int64_t unit) { return ts - time % unit; };
	auto		month = [&](int64_t year, int m) { return static_cast<int128>(calendar().first(year, m)) * sem::US_PER_DAY; };

	switch (field)
	{
		case DateField::Microsecond: return ts;
		case DateField::Millisecond: return down_to(1000);
		case DateField::Second: return down_to(1000000);
		case DateField::Minute: return down_to(60000000);
		case DateField::Hour: return down_to(3600000000);
		case DateField::Day: return down_to(sem::US_PER_DAY);
		case DateField::Week: return static_cast<int128>(day - Calendar::weekday(day)) * sem::US_PER_DAY;
		case DateField::Month: return month(c.year, c.month);
		case DateField::Quarter: return month(c.year, (c.month - 1) / 3 * 3 + 1);
		case DateField::Year: return month(c.year, 1);
		case DateField::Decade: return month(floor_div(c.year, 10) * 10, 1);
		case DateField::Century: return month(first_year_of_age(age_of(c.year, 100), 100), 1);
		default: return month(first_year_of_age(age_of(c.year, 1000), 1000), 1);
	}
}

int128
expected_months(int64_t ts, int32_t n)
{
	const int64_t day = floor_div(ts, sem::US_PER_DAY);
	const sem::Civil c = calendar().of(day);
	const int64_t months = c.year * 12ll + c.month - 1 + n, year = floor_div(months, 12);
	const int	month = static_cast<int>(months - year * 12) + 1;
	const int64_t to = calendar().first(year, month) + std::min(c.day, Calendar::length(static_cast<int>(year), month)) - 1;

	return static_cast<int128>(to) * sem::US_PER_DAY + (ts - day * sem::US_PER_DAY);
}

bool
is_timestamp(int128 ts)
{
	return ts >= sem::TS_MIN && ts < sem::TS_LIMIT;
}

/* Timestamps where something begins or ends, and any. */
int64_t
some_timestamp(std::mt19937_64 &rng)
{
	static const int64_t ends[] = {sem::TS_MIN, sem::TS_LIMIT - 1, 0, -1, INT64_MAX - sem::US_UNIX_TO_POSTGRES};
	const int64_t years = rng() % 4 == 0 ? 298980 : 12000;
	int64_t		day = calendar().first(static_cast<int64_t>(rng() % static_cast<uint64_t>(years)) - 4712, 1 + static_cast<int>(rng() % 12));
	int64_t		time = static_cast<int64_t>(rng() % static_cast<uint64_t>(sem::US_PER_DAY));

	switch (rng() % 8)
	{
		case 0: return ends[rng() % 5];
		case 1: time = 0; break;
		case 2: time = sem::US_PER_DAY - 1; break;
		default: break;
	}
	day += rng() % 4 == 0 ? -static_cast<int64_t>(rng() % 2) : static_cast<int64_t>(rng() % 31);
	return std::min(std::max(day * sem::US_PER_DAY + time, sem::TS_MIN), sem::TS_LIMIT - 1);
}

/* An error where the true value is none; else that. */
void
expect_same(int64_t got, uint32_t err, int128 expected, const std::string &what)
{
	ASSERT_EQ(err, is_timestamp(expected) ? 0u : uint32_t(ERR_DATETIME_RANGE)) << what;
	if (!err)
	{
		ASSERT_EQ(got, static_cast<int64_t>(expected)) << what;
	}
}

}  // namespace

/* Every day that a timestamp can have. */
TEST(VmDates, EveryDay)
{
	sem::Civil	c = calendar().of(FIRST_DAY);
	int64_t		wrong = 0;

	EXPECT_EQ(c.year, -4713);
	for (int32_t day = FIRST_DAY; day <= LAST_DAY; day++)
	{
		const sem::Civil got = sem::civil_of_day(day);

		wrong += got.year != c.year || got.month != c.month || got.day != c.day || sem::day_of_civil(c.year, c.month, c.day) != day;
		if (++c.day > Calendar::length(c.year, c.month))
		{
			wrong += sem::days_in_month(c.year, c.month) != c.day - 1;
			c.day = 1;
			c.year += c.month == 12;
			c.month = c.month % 12 + 1;
		}
	}
	EXPECT_EQ(wrong, 0);
	EXPECT_EQ(c.year, 294277);
}

TEST(VmDates, Fields)
{
	std::mt19937_64 rng(1);

	for (int i = 0; i < 60000; i++)
	{
		const int64_t ts = some_timestamp(rng);

		for (int f = 0; f < DATE_FIELDS; f++)
		{
			const DateField field = static_cast<DateField>(f);
			const std::string what = std::string(date_field_name(f)) + " of " + std::to_string(ts);
			uint32_t	err = 0;

			if (date_trunc_takes(f))
			{
				const int64_t got = sem::DateTrunc(ts, field, &err);

				expect_same(got, err, expected_trunc(ts, field), what);
			}
			err = 0;
			if (!date_part_takes(f))
				continue;

			const int64_t got = sem::DatePart(ts, field, &err);
			const bool	past = field == DateField::Epoch && ts > INT64_MAX - sem::US_UNIX_TO_POSTGRES;

			ASSERT_EQ(err, past ? uint32_t(ERR_DATETIME_RANGE) : 0u) << what;
			if (!past)
			{
				ASSERT_EQ(got, expected_part(ts, field)) << what;
			}
		}
		if (HasFatalFailure())
			return;
	}
}

TEST(VmDates, Sums)
{
	std::mt19937_64 rng(2);
	int			far = 0;

	for (int i = 0; i < 300000; i++)
	{
		const int64_t ts = some_timestamp(rng);
		const int32_t n = rng() % 4 == 0 ? static_cast<int32_t>(rng()) : static_cast<int32_t>(rng() % 200001) - 100000;
		const int32_t few = rng() % 2 ? n : n % 1000;
		const int64_t micros = rng() % 2 ? static_cast<int64_t>(rng()) : n * 1000003ll;
		const std::string what = std::to_string(ts) + " and " + std::to_string(few) + ", " + std::to_string(micros);
		uint32_t	err = 0;
		int64_t		got = sem::TimestampAddMonths(ts, few, &err);

		expect_same(got, err, expected_months(ts, few), "months: " + what);
		err = 0;
		got = sem::TimestampAddDays(ts, few, &err);
		far += err != 0;
		expect_same(got, err, static_cast<int128>(ts) + static_cast<int128>(few) * sem::US_PER_DAY, "days: " + what);
		err = 0;
		got = sem::TimestampAddMicros(ts, micros, &err);
		expect_same(got, err, static_cast<int128>(ts) + micros, "microseconds: " + what);
		err = 0;

		const int64_t time = ts - floor_div(ts, sem::US_PER_DAY) * sem::US_PER_DAY;
		const int128 sum = static_cast<int128>(time) + n * 1000003ll;

		ASSERT_EQ(sem::TimeAddMicros(time, n * 1000003ll, &err), static_cast<int64_t>((sum % sem::US_PER_DAY + sem::US_PER_DAY) % sem::US_PER_DAY));
		if (HasFatalFailure())
			return;
	}
	EXPECT_GT(far, 1000);

	uint32_t	err = 0;

	EXPECT_EQ(sem::TimeAddMicros(sem::US_PER_DAY, 0, &err), 0) << "24:00:00";
	EXPECT_EQ(err, 0u);
}

/* The loops over vectors compute in another way; what does not live may be anything. */
TEST(VmDates, Kernels)
{
	std::mt19937_64 rng(5);
	alignas(64) int64_t ts[CPU_VECTOR_ROWS], got[CPU_VECTOR_ROWS];

	for (int round = 0; round < 60; round++)
		for (int f = 0; f < DATE_FIELDS; f++)
			for (Opcode opcode : {Opcode::DatePart, Opcode::DateTrunc})
			{
				const DateField field = static_cast<DateField>(f);
				uint32_t	all = 0;

				if (opcode == Opcode::DatePart ? !date_part_takes(f) : !date_trunc_takes(f))
					continue;
				for (int64_t &t : ts)
					t = round % 4 == 3 && rng() % 4 == 0 ? (rng() % 3 ? static_cast<int64_t>(rng()) : rng() % 2 ? INT64_MIN : INT64_MAX) : some_timestamp(rng);
				for (int64_t t : ts)
					opcode == Opcode::DatePart ? sem::DatePart(t, field, &all) : sem::DateTrunc(t, field, &all);
				for (int level = 0; level < 3; level++)
				{
					limit_cpu_kernels(level);

					const uint32_t err = cpu_kernels()->field(opcode, field, round % 2)(ts, got);

					limit_cpu_kernels(2);
					ASSERT_EQ(err & ~all, 0u);
					ASSERT_TRUE(round % 2 == 0 || err == all) << date_field_name(f);
					for (uint32_t i = 0; i < CPU_VECTOR_ROWS; i++)
					{
						uint32_t	ignored = 0;

						if (!sem::ts_valid(ts[i]) && !(opcode == Opcode::DateTrunc && sem::ts_infinite(ts[i])))
							continue;
						ASSERT_EQ(got[i], opcode == Opcode::DatePart ? sem::DatePart(ts[i], field, &ignored) : sem::DateTrunc(ts[i], field, &ignored))
							<< date_field_name(f) << " of " << ts[i] << " level " << level;
					}
				}
			}
}

/* Infinities, and what is neither. */
TEST(VmDates, NoTimestamps)
{
	for (int64_t ts : {sem::TS_NOBEGIN, sem::TS_NOEND, sem::TS_NOBEGIN + 1, sem::TS_NOEND - 1, sem::TS_MIN - 1, sem::TS_LIMIT})
	{
		const bool	infinite = ts == sem::TS_NOBEGIN || ts == sem::TS_NOEND;
		auto		expect = [&](int64_t got, uint32_t err) {
			EXPECT_EQ(err, infinite ? 0u : uint32_t(ERR_DATETIME_RANGE)) << ts;
			if (infinite)
			{
				EXPECT_EQ(got, ts);
			}
		};
		int64_t		got;
		uint32_t	err;

		for (int f = 0; f < DATE_FIELDS; f++)
		{
			err = 0;
			if (date_part_takes(f))
			{
				sem::DatePart(ts, static_cast<DateField>(f), &err);
				EXPECT_EQ(err, uint32_t(ERR_DATETIME_RANGE)) << f;
			}
			if (!date_trunc_takes(f))
				continue;
			err = 0;
			got = sem::DateTrunc(ts, static_cast<DateField>(f), &err);
			expect(got, err);
		}
		err = 0;
		got = sem::TimestampAddMonths(ts, 3, &err);
		expect(got, err);
		err = 0;
		got = sem::TimestampAddDays(ts, 3, &err);
		expect(got, err);
		/* what is no timestamp may become one by microseconds: it is not met */
		err = 0;
		got = sem::TimestampAddMicros(ts, 0, &err);
		expect(got, err);
	}
}

/*
 * What PostgreSQL 15 says: microseconds since 2000; the fields that DatePart takes, in
 * their order; where DateTrunc's cut it to ("x" is an error); months, days and
 * microseconds, each with the sum.
 */
TEST(VmDates, AsPostgreSQL)
{
	static const char *const rows[] = {
		"-204699312000000000,0,0,0,0,4,5,2,-4488,-449,-45,-5,18,-4488,0,7,124,-203752627200000000,82340,"
		"-204699312000000000,-204699312000000000,-204699312000000000,-204699312000000000,-204699312000000000,-204699312000000000,-204699571200000000,-204702163200000000,-204709939200000000,-204804633600000000,-205088630400000000,x,-204699830400000000,"
		"-13935,x,-92934704,x,-7603748477823524864,x",
		"-191150755200000000,0,0,0,0,4,9,3,-4059,-406,-41,-5,36,-4059,5,5,247,-190204070400000000,239152,"
		"-191150755200000000,-191150755200000000,-191150755200000000,-191150755200000000,-191150755200000000,-191150755200000000,-191151014400000000,-191156371200000000,-191172009600000000,-191235168000000000,-192465849600000000,x,-191151100800000000,"
		"7773,-170709724800000000,-19514,-192836764800000000,-487847127814358,-191638602327814358",
		"-189242179200000000,0,0,0,0,26,2,1,-3998,-400,-40,-4,9,-3998,3,3,57,-188295494400000000,261242,"
		"-189242179200000000,-189242179200000000,-189242179200000000,-189242179200000000,-189242179200000000,-189242179200000000,-189244339200000000,-189247017600000000,-189247017600000000,-189341712000000000,-189310089600000000,-189310089600000000,-189242352000000000,"
		"-25223,x,26705205,2118087532800000000,2184971292908162048,1995729113708162048",
		"-80063251200000000,0,0,0,0,24,11,4,-539,-54,-6,-1,48,-539,1,1,328,-79116566400000000,1524887,"
		"-80063251200000000,-80063251200000000,-80063251200000000,-80063251200000000,-80063251200000000,-80063251200000000,-80065238400000000,-80067916800000000,-80091504000000000,-80154662400000000,-82016496000000000,-94639276800000000,-80063251200000000,"
		"-7,-80081740800000000,33384822,2804385369600000000,2731485428492316672,2651422177292316672",
		"-164417126400000000,0,0,0,0,30,10,4,-3212,-322,-33,-4,44,-3212,1,1,303,-163470441600000000,548569,"
		"-164417126400000000,-164417126400000000,-164417126400000000,-164417126400000000,-164417126400000000,-164417126400000000,-164419632000000000,-164419632000000000,-164443219200000000,-164727302400000000,-167220288000000000,-189310089600000000,-164417126400000000,"
		"25175,-98213212800000000,14324783,1073244124800000000,1172027669040718848,1007610542640718848",
		"-100742031391298295,28701705,28,23,6,12,8,3,-1194,-120,-12,-2,32,-1194,0,7,224,-99795346591298295,1285549,"
		"-100742031391298295,-100742031391299000,-100742031392000000,-100742031420000000,-100742032800000000,-100742054400000000,-100743004800000000,-100745683200000000,-100761321600000000,-100982246400000000,-100950624000000000,-126196185600000000,-100742572800000000,"
		"34971,-8777093791298295,-16341,-102153893791298295,-408513107042973,-101150544498341268",
		"-460898183391981,36608019,36,43,12,24,5,2,1985,198,20,2,21,1985,5,5,144,485786616608019,2446210,"
		"-460898183391981,-460898183392000,-460898184000000,-460898220000000,-460900800000000,-460944000000000,-462931200000000,-465523200000000,-473299200000000,-631152000000000,-3124137600000000,-31525372800000000,-461289600000000,"
		"25283,66027098616608019,-33480,-3353570183391981,-837010980424711,-1297909163816692",
		"836090903413617,23413617,23,28,23,29,6,2,2026,202,21,3,27,2026,1,1,180,1782775703413617,2461221,"
		"836090903413617,836090903413000,836090903000000,836090880000000,836089200000000,836006400000000,833587200000000,828316800000000,820540800000000,631152000000000,31622400000000,31622400000000,836006400000000,"
		"-9471,-24070264296586383,-770,769562903413617,-19249322202857,816841581210760",
		"497931620740656,20740656,20,20,2,12,10,4,2015,201,21,3,42,2015,1,1,285,1444616420740656,2457308,"
		"497931620740656,497931620740000,497931620000000,497931600000000,497930400000000,497923200000000,496972800000000,496972800000000,473385600000000,315619200000000,31622400000000,31622400000000,497923200000000,"
		"938482,2468467189220740656,28815,2987547620740656,720370317220932,1218301937961588",
		"-539763261214517,38785483,38,45,17,23,11,4,1982,198,20,2,47,1982,2,2,327,406921538785483,2445297,"
		"-539763261214517,-539763261215000,-539763262000000,-539763300000000,-539766000000000,-539827200000000,-541728000000000,-544406400000000,-567993600000000,-631152000000000,-3124137600000000,-31525372800000000,-539913600000000,"
		"10905,28137606338785483,-36822,-3721184061214517,-920545310784194,-1460308571998711",
		"1183979411810461,11810461,11,10,11,8,7,3,2037,203,21,3,28,2037,3,3,189,2130664211810461,2465248,"
		"1183979411810461,1183979411810000,1183979411000000,1183979400000000,1183978800000000,1183939200000000,1183334400000000,1183334400000000,1167696000000000,946771200000000,31622400000000,31622400000000,1183766400000000,"
		"-12701,-32216273388189539,-986,1098789011810461,-24638894755174,1159340517055287",
		"505043180185769,20185769,20,46,9,2,1,1,2016,201,21,3,53,2015,6,6,2,1451727980185769,2457390,"
		"505043180185769,505043180185000,505043180000000,505043160000000,505040400000000,505008000000000,504921600000000,504921600000000,504921600000000,315619200000000,31622400000000,31622400000000,504576000000000,"
		"11810,31562214380185769,9244,1303724780185769,231111948994656,736155129180425",
		"-194359213674813810,5186190,5,32,1,1,1,1,-4160,-416,-42,-5,53,-4161,5,5,1,-193412528874813810,202017,"
		"-194359213674813810,-194359213674814000,-194359213675000000,-194359213680000000,-194359215600000000,-194359219200000000,-194359219200000000,-194359219200000000,-194359219200000000,-194390841600000000,-195621523200000000,x,-194359564800000000,"
		"3511,-185126250474813810,6055,-193836061674813810,151372654249692,-194207841020564118",
		"1172593139120851874,20851874,20,25,20,30,12,4,39157,3915,392,40,1,39158,1,1,364,1173539823920851874,16023224,"
		"1172593139120851874,1172593139120851000,1172593139120000000,1172593139100000000,1172593137600000000,1172593065600000000,1172590560000000000,1172585289600000000,1172561702400000000,1172340777600000000,1170794476800000000,1167638803200000000,1172593065600000000,"
		"-708,1170731305520851874,-106237776,x,-8692181668905938944,x",
		"7268630395251080998,51080998,51,40,14,23,9,3,232333,23233,2324,233,38,232333,6,6,266,7269577080051080998,86579211,"
		"7268630395251080998,7268630395251080000,7268630395251000000,7268630395200000000,7268630392800000000,7268630342400000000,7268628441600000000,7268623084800000000,7268607446400000000,7268512752000000000,7267597603200000000,7258130582400000000,7268629910400000000,"
		"-1946667,2149390564851080998,32926050,x,2693949584862914048,x",
		"7081524504288751059,48751059,48,4,4,30,7,3,226404,22640,2265,227,31,226404,5,5,212,7082471189088751059,84413634,"
		"7081524504288751059,7081524504288751000,7081524504288000000,7081524504240000000,7081524504000000000,7081524489600000000,7081521984000000000,7081521984000000000,7081506259200000000,7081380028800000000,7081411651200000000,7068788870400000000,7081524144000000000,"
		"-22187,7023178325088751059,66122984,x,5410062311029666816,x",
		"662735330070813,50070813,50,8,13,31,12,4,2020,202,21,3,53,2020,4,4,366,1609420130070813,2459215,"
		"662735330070813,662735330070000,662735330000000,662735280000000,662734800000000,662688000000000,660096000000000,654825600000000,631152000000000,631152000000000,31622400000000,31622400000000,662428800000000,"
		"4,673103330070813,-11536,-333975069929187,-288396276072580,374339053998233",
		"7176811704062529831,2529831,2,41,6,10,2,1,229424,22942,2295,230,7,229424,2,2,41,7177758388862529831,85516495,"
		"7176811704062529831,7176811704062529000,7176811704062000000,7176811704060000000,7176811701600000000,7176811680000000000,7176810902400000000,7176808224000000000,7176808224000000000,7176681993600000000,7176082464000000000,7163459683200000000,7176811593600000000,"
		"-14671,7138230561662529831,-36820,7173630456062529831,-920506675452434,7175891197387077397",
		"2288597010010842972,10842972,10,40,7,2,10,4,74522,7452,746,75,40,74522,5,5,275,2289543694810842972,28939936,"
		"2288597010010842972,2288597010010842000,2288597010010000000,2288597010000000000,2288597007600000000,2288596982400000000,2288596896000000000,2288596896000000000,2288573308800000000,2288510150400000000,2287910620800000000,2272132166400000000,2288596636800000000,"
		"34124,2378334469210842972,-20734,2286805592410842972,-518355526962936,2288078654483880036",
		"3627968342730461361,30461361,30,5,8,27,9,3,116965,11696,1170,117,39,116965,5,5,270,3628915027530461361,44441919,"
		"3627968342730461361,3627968342730461000,3627968342730000000,3627968342700000000,3627968342400000000,3627968313600000000,3627966067200000000,3627960710400000000,3627945072000000000,3627787219200000000,3625925385600000000,3597524150400000000,3627967968000000000,"
		"37497,3726575885130461361,31649,3630702816330461361,791236870541018,3628759579601002379",
	};

	for (const char *row : rows)
	{
		std::vector<std::string> said;
		const char *end = row;

		while (true)
		{
			const char *comma = strchr(end, ',');

			said.emplace_back(end, comma ? static_cast<size_t>(comma - end) : strlen(end));
			if (!comma)
				break;
			end = comma + 1;
		}

		const int64_t ts = std::stoll(said[0]);
		size_t		at = 1;
		auto		expect = [&](int64_t got, uint32_t err) {
			EXPECT_EQ(err ? "x" : std::to_string(got), said[at]) << "of " << ts << ", number " << at;
			at++;
		};
		int64_t		got;
		uint32_t	err;

		ASSERT_EQ(said.size(), 38u);
		for (int f = 0; f < DATE_FIELDS; f++)
			if (date_part_takes(f))
			{
				err = 0;
				got = sem::DatePart(ts, static_cast<DateField>(f), &err);
				expect(got, err);
			}
		for (int f = 0; f < DATE_FIELDS; f++)
			if (date_trunc_takes(f))
			{
				err = 0;
				got = sem::DateTrunc(ts, static_cast<DateField>(f), &err);
				expect(got, err);
			}
		err = 0;
		got = sem::TimestampAddMonths(ts, std::stoi(said[at]), &err);
		at++;
		expect(got, err);
		err = 0;
		got = sem::TimestampAddDays(ts, std::stoi(said[at]), &err);
		at++;
		expect(got, err);
		err = 0;
		got = sem::TimestampAddMicros(ts, std::stoll(said[at]), &err);
		at++;
		expect(got, err);
	}
}

TEST(VmDates, Quotients)
{
	static const int64_t edges[] = {0, 1, -1, 2, -2, 3, 5, 10, -10, 1000000, INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_MIN + 1, INT64_MAX / 2, INT64_MIN / 2};
	std::mt19937_64 rng(3);

	for (int i = 0; i < 300000; i++)
	{
		const int64_t a = i < 256 ? edges[i / 16] : static_cast<int64_t>(rng()) >> (rng() % 63);
		const int64_t b = i < 256 ? edges[i % 16] : static_cast<int64_t>(rng()) >> (rng() % 63);
		const std::string what = std::to_string(a) + " by " + std::to_string(b);
		const int128 am = a < 0 ? -static_cast<int128>(a) : a, bm = b < 0 ? -static_cast<int128>(b) : b;
		uint32_t	err = 0;
		int64_t		got = sem::DivRound(a, b, &err);

		if (b != 0)
		{
			const int128 rounded = (2 * am + bm) / (2 * bm) * ((a < 0) != (b < 0) ? -1 : 1);

			ASSERT_EQ(err, rounded > INT64_MAX ? uint32_t(ERR_INT_OVERFLOW) : 0u) << what;
			if (!err)
			{
				ASSERT_EQ(got, static_cast<int64_t>(rounded)) << what;
			}

			const int128 down = (a < 0) != (b < 0) ? -((am + bm - 1) / bm) : am / bm;

			err = 0;
			got = sem::DivFloor(a, b, &err);
			ASSERT_EQ(err, down > INT64_MAX ? uint32_t(ERR_INT_OVERFLOW) : 0u) << what;
			if (!err)
			{
				ASSERT_EQ(got, static_cast<int64_t>(down)) << what;
			}
		}
		else
		{
			ASSERT_EQ(err, uint32_t(ERR_DIVISION_BY_ZERO)) << what;
			err = 0;
			sem::DivFloor(a, b, &err);
			ASSERT_EQ(err, uint32_t(ERR_DIVISION_BY_ZERO)) << what;
		}
		err = 0;
		ASSERT_EQ(sem::Bound(a, b, &err), a);
		ASSERT_EQ(err, b > 0 && am < bm ? 0u : uint32_t(ERR_CAST_RANGE)) << what;
	}
}

namespace {

/* An interval of what the operand may be: some of its values, its ends among them. */
struct Operand
{
	ValueRange	range = {};
	std::vector<int64_t> values;

	Operand(int64_t lo, int64_t hi, std::mt19937_64 &rng)
	{
		ColumnSummary s = {};

		s.type = Type::I64;
		s.min = lo;
		s.max = hi;
		range = column_range(s);
		values = {lo, hi};
		for (int i = 0; i < 30; i++)
			values.push_back(static_cast<int64_t>(static_cast<uint64_t>(lo)
												  + static_cast<uint64_t>(static_cast<uint128>(rng()) * (static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo)) >> 64)));
	}
};

}  // namespace

/* What is said of results before a row is read holds for every row, and where no error is expected there is none. */
TEST(VmDates, Ranges)
{
	struct Case
	{
		Opcode		opcode;
		int			field;
	};
	std::vector<Case> cases;
	std::mt19937_64 rng(4);
	int			proved = 0;

	for (int f = 0; f < DATE_FIELDS; f++)
	{
		if (date_part_takes(f))
			cases.push_back({Opcode::DatePart, f});
		if (date_trunc_takes(f))
			cases.push_back({Opcode::DateTrunc, f});
	}
	for (Opcode o : {Opcode::DivRound, Opcode::DivFloor, Opcode::Bound, Opcode::TimestampAddMonths, Opcode::TimestampAddDays,
			Opcode::TimestampAddMicros, Opcode::TimeAddMicros, Opcode::DateAdd, Opcode::DateSub, Opcode::DateDiff, Opcode::DateToTimestamp,
			Opcode::DateToTimestampSat, Opcode::TimestampToDate})
		cases.push_back({o, 0});

	for (int round = 0; round < 120; round++)
		for (const Case &c : cases)
		{
			const OpForm form = opcode_info[static_cast<int>(c.opcode)].form;
			const bool	dates = strchr(opcode_info[static_cast<int>(c.opcode)].types, 'I') || form == OpForm::UNARY_IL;
			const bool	to_date = c.opcode == Opcode::TimestampToDate;
			const bool	quotient = c.opcode == Opcode::DivRound || c.opcode == Opcode::DivFloor || c.opcode == Opcode::Bound;
			auto		end = [&]() -> int64_t {
				switch (rng() % 8)
				{
					case 0: return dates && !to_date ? (rng() % 2 ? INT32_MIN : INT32_MAX) : rng() % 2 ? INT64_MIN : INT64_MAX;
					case 1: return dates && !to_date ? (rng() % 2 ? sem::DATE_MIN : sem::TS_LIMIT_DAYS - 1) : rng() % 2 ? sem::TS_MIN : sem::TS_LIMIT - 1;
					default: return quotient ? static_cast<int64_t>(rng()) >> (rng() % 63) : dates && !to_date ? some_timestamp(rng) / sem::US_PER_DAY : some_timestamp(rng);
				}
			};
			const bool	small = form == OpForm::SHIFT || c.opcode == Opcode::DateAdd || c.opcode == Opcode::DateSub;
			auto		other = [&]() -> int64_t {
				return quotient || c.opcode == Opcode::DateDiff ? end() : small ? static_cast<int32_t>(rng()) >> (rng() % 31) : static_cast<int64_t>(rng()) >> (rng() % 63);
			};
			int64_t		a0 = end(), a1 = rng() % 4 ? std::min<int64_t>(std::max(a0, end()), dates && !to_date ? INT32_MAX : INT64_MAX) : a0;
			int64_t		b0 = other(), b1 = rng() % 2 ? std::max(b0, other()) : b0;
			Operand		a(a0, a1, rng), b(b0, b1, rng);
			auto		builder = new_builder();
			ValueRange	columns[2] = {a.range, b.range}, regs[3] = {};
			uint32_t	errors[16];
			Op			op = {c.opcode, dates && form != OpForm::UNARY_IL ? Type::I32 : Type::I64, 0, 2, 0, form == OpForm::FIELD ? c.field : 1, 0};

			if (dates && !to_date)
				columns[0].type = columns[1].type = Type::I32;
			builder->emit(Opcode::Table, Type::None, 0, 0, 0);
			builder->emit(Opcode::Parallel, Type::None, 1, 0, 6);
			builder->emit(Opcode::Column, columns[0].type, 0, 0, 0);
			builder->emit(Opcode::Column, columns[1].type, 1, 1, 0);
			builder->emit(op.opcode, op.type, op.p1, op.p2, op.p3);
			builder->emit(Opcode::Result, Type::None, 0, 0, 0);
			builder->emit(Opcode::Converge, Type::None, 0, 0, 0);
			builder->emit(Opcode::Finish, Type::None, 0, 0, 0);
			builder->nregs = 3;

			const SealedProgram p = seal(*builder);

			analyze_ranges(p.get(), nullptr, columns, regs, errors);
			proved += errors[4] == 0;
			for (int64_t x : a.values)
				for (int64_t y : b.values)
				{
					uint32_t	err = 0;
					const Value v = form == OpForm::FIELD ? field_value(op, from_register(x), &err)
						: form == OpForm::UNARY_IL || form == OpForm::UNARY_LI ? unary_value(op, from_register(x), &err)
						: binary_value(op, from_register(x), from_register(y), &err);

					if ((err & ~errors[4]) == 0 && (err != 0 || (regs[2].lo <= v.i && v.i <= regs[2].hi)))
						continue;
					FAIL() << opcode_info[static_cast<int>(c.opcode)].name << " " << date_field_name(c.field) << " of " << x << " and " << y << ": "
						<< v.i << " error " << err << "; of " << a0 << ".." << a1 << " and " << b0 << ".." << b1 << ": " << regs[2].lo << ".."
						<< regs[2].hi << " error " << errors[4];
				}
		}
	EXPECT_GT(proved, 120 * static_cast<int>(cases.size()) / 4);
}
