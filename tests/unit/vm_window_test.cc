/* Window functions on the CPU: random specifications over random rows against the manual's definitions (window_reference.h), and what is refused or flagged. */
#include <gtest/gtest.h>

#include "window_random.h"
#include "window_runner.h"

using namespace gpuvm;
using namespace window_reference;

namespace {

bool
is_float_result(const WindowFunction &f)
{
	return type_is_float(f.type);
}

void
check(const Random &random, const Table &table, int threads)
{
	const Outcome outcome = run_window(random.spec, table, threads);
	Reference	reference(random.spec, table);

	ASSERT_EQ(outcome.errors, 0u) << random.show();
	for (uint32_t f = 0; f < random.spec.nfunctions; f++)
	{
		const WindowFunction &function = random.functions[f];
		const std::vector<Value> expected = reference.run(function);

		for (size_t i = 0; i < expected.size(); i++)
			ASSERT_TRUE(same(outcome.results[f][i], expected[i], is_float_result(function)))
				<< random.show() << ": function " << static_cast<int>(function.fn) << " of column " << static_cast<int>(function.column)
				<< (function.filter == WINDOW_NONE ? "" : " filtered") << ", row " << i << " of " << expected.size() << ": "
				<< (outcome.results[f][i].null ? "null" : "") << static_cast<int64_t>(outcome.results[f][i].number) << " "
				<< outcome.results[f][i].real << ", not " << (expected[i].null ? "null" : "") << static_cast<int64_t>(expected[i].number) << " "
				<< expected[i].real;
	}
}

TEST(VmWindow, RandomSpecifications)
{
	const TableShape shapes[] = {{1, 1, 10, 0}, {2, 2, 3, 50}, {40, 3, 6, 20}, {60, 1, 20, 0}, {60, 60, 5, 10}, {150, 4, 12, 100}, {200, 5, 10, 10}};
	Rng			rng(20261124);

	for (int i = 0; i < 700; i++)
	{
		const TableShape &shape = shapes[i % 7];
		Random		random(rng);
		Table		table = random_table(rng, shape);

		random.add_all(rng, table);

		std::vector<Type> types;

		for (const Column &column : table)
			types.push_back(column.type);
		sort_table(&table, random.keys);
		ASSERT_EQ(check_window(random.spec, types.data(), NCOLS), nullptr) << random.show();
		check(random, table, 1);
		if (HasFatalFailure())
			return;
	}
}

TEST(VmWindow, NoRows)
{
	Rng			rng(1);
	Random		random(rng);
	const Table table = random_table(rng, TableShape{0, 1, 1, 0});

	random.add_all(rng, table);
	EXPECT_EQ(run_window(random.spec, table).errors, 0u);
}

/*
 * Many blocks: whole partitions, running and moving frames by several threads against one, and each against what is
 * known of the rows by counting.
 */
struct Large
{
	std::vector<WindowKey> keys;
	std::vector<WindowFunction> functions;
	WindowSpec	spec = {};
	Table		table;

	Large(size_t nrows, size_t partition_rows)
	{
		table = {Column{Type::I32, {}}, Column{Type::I64, {}}, Column{Type::F64, {}}, Column{Type::I16, {}}};
		for (size_t i = 0; i < nrows; i++)
		{
			const size_t in = i % partition_rows;

			table[0].values.push_back(number(static_cast<int64_t>(i / partition_rows)));
			table[1].values.push_back(number(static_cast<int64_t>(in / 3)));	/* three peers */
			table[2].values.push_back(in % 5 == 0 ? none() : real(static_cast<double>(in)));
			table[3].values.push_back(number(static_cast<int64_t>((in * 7919) % 1000)));
		}
		keys = {WindowKey{0, false, false, nullptr, nullptr}, WindowKey{1, false, false, nullptr, nullptr}};
		spec.keys = keys.data();
		spec.npartition = spec.norder = 1;
		for (WindowFn fn : {WindowFn::RowNumber, WindowFn::Rank, WindowFn::DenseRank, WindowFn::Lag, WindowFn::FirstValue, WindowFn::LastValue,
							WindowFn::Count, WindowFn::Sum, WindowFn::Sum, WindowFn::Min, WindowFn::Max})
		{
			WindowFunction f = {};

			f.fn = fn;
			f.type = Type::I64;
			f.column = fn <= WindowFn::DenseRank || fn == WindowFn::Count ? WINDOW_NONE : 1;
			f.high = f.filter = f.map = WINDOW_NONE;
			f.number = 2;
			if (fn == WindowFn::Min || fn == WindowFn::Max)
			{
				f.column = 3;
				f.type = Type::I16;
			}
			functions.push_back(f);
		}
		functions[8].column = 2;
		functions[8].type = Type::F64;
		spec.functions = functions.data();
		spec.nfunctions = static_cast<uint32_t>(functions.size());
	}

	void frame(FrameMode mode, FrameBound start, int64_t start_offset, FrameBound end, int64_t end_offset)
	{
		spec.frame = WindowFrame{mode, start, end, RangeUnit::Number, 0, start_offset, end_offset};
	}
};

void
expect_same(const Outcome &a, const Outcome &b)
{
	ASSERT_EQ(a.errors, 0u);
	ASSERT_EQ(b.errors, 0u);
	for (size_t f = 0; f < a.results.size(); f++)
		for (size_t i = 0; i < a.results[f].size(); i++)
			ASSERT_TRUE(same(a.results[f][i], b.results[f][i], f == 8)) << "function " << f << ", row " << i;
}

/* By hand, for a row of a partition whose rows are numbered from 0; frame rows [head, tail) of it. */
void
check_row(const Outcome &o, size_t row, int64_t in, int64_t head, int64_t tail)
{
	auto		sum = [](int64_t from, int64_t to, int64_t step) {
		int64_t		s = 0;

		for (int64_t i = from; i < to; i++)
			s += step == 3 ? i / 3 : i % 5 == 0 ? 0 : i;
		return s;
	};
	const int64_t ranks[] = {in + 1, in / 3 * 3 + 1, in / 3 + 1};

	for (size_t f = 0; f < 3; f++)
		EXPECT_EQ(static_cast<int64_t>(o.results[f][row].number), ranks[f]) << row;
	EXPECT_EQ(o.results[3][row].null, in < 2);
	EXPECT_EQ(static_cast<int64_t>(o.results[4][row].number), head / 3) << row;
	EXPECT_EQ(static_cast<int64_t>(o.results[5][row].number), (tail - 1) / 3) << row;
	EXPECT_EQ(static_cast<int64_t>(o.results[6][row].number), tail - head) << row;
	EXPECT_EQ(static_cast<int64_t>(o.results[7][row].number), sum(head, tail, 3)) << row;
	EXPECT_EQ(o.results[8][row].real, static_cast<double>(sum(head, tail, 5))) << row;

	int64_t		least = 1000, most = -1;

	for (int64_t i = head; i < tail; i++)
	{
		least = std::min(least, i * 7919 % 1000);
		most = std::max(most, i * 7919 % 1000);
	}
	EXPECT_EQ(static_cast<int64_t>(o.results[9][row].number), least) << row;
	EXPECT_EQ(static_cast<int64_t>(o.results[10][row].number), most) << row;
}

TEST(VmWindow, ManyBlocks)
{
	constexpr size_t NROWS = 300000;

	for (size_t rows : {NROWS, size_t{200001}, size_t{65536}})
	{
		Large		large(NROWS, rows);
		auto		run = [&](auto head_of, auto tail_of) {
			const Outcome outcome = run_window(large.spec, large.table, 4);

			if (rows == 65536)
				expect_same(outcome, run_window(large.spec, large.table, 1));
			for (size_t row : {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, size_t{65537}, size_t{131071}, size_t{200000}, size_t{262144}, NROWS - 1})
			{
				const int64_t in = static_cast<int64_t>(row % rows), n = static_cast<int64_t>(std::min(rows, NROWS - (row - row % rows)));
				const int64_t head = std::clamp<int64_t>(head_of(in), 0, n), tail = std::clamp<int64_t>(tail_of(in), 0, n);

				check_row(outcome, row, in, head, tail);
			}
		};

		large.frame(FrameMode::Range, FrameBound::Unbounded, 0, FrameBound::CurrentRow, 0);
		run([](int64_t) { return 0; }, [](int64_t i) { return i / 3 * 3 + 3; });
		large.frame(FrameMode::Rows, FrameBound::Preceding, 10, FrameBound::CurrentRow, 0);
		run([](int64_t i) { return i - 10; }, [](int64_t i) { return i + 1; });
		large.frame(FrameMode::Rows, FrameBound::Preceding, 100000, FrameBound::Following, 70000);
		run([](int64_t i) { return i - 100000; }, [](int64_t i) { return i + 70001; });
		if (rows != 200001)
			continue;
		large.frame(FrameMode::Rows, FrameBound::CurrentRow, 0, FrameBound::Unbounded, 0);
		run([](int64_t i) { return i; }, [](int64_t) { return INT32_MAX; });
		large.frame(FrameMode::Groups, FrameBound::Preceding, 30000, FrameBound::Following, 1);
		run([](int64_t i) { return (i / 3 - 30000) * 3; }, [](int64_t i) { return (i / 3 + 2) * 3; });
		large.frame(FrameMode::Range, FrameBound::Preceding, 25000, FrameBound::Following, 25000);
		run([](int64_t i) { return (i / 3 - 25000) * 3; }, [](int64_t i) { return (i / 3 + 25001) * 3; });
		large.frame(FrameMode::Range, FrameBound::Unbounded, 0, FrameBound::Unbounded, 0);
		run([](int64_t) { return 0; }, [](int64_t) { return INT32_MAX; });
	}
}

/* ---- what is flagged ------------------------------------------------------------------ */

/* One column of values, not partitioned, in their order, and one function of it. */
struct Single
{
	Table		table;
	WindowFunction f = {};
	WindowKey	key = {0, false, false, nullptr, nullptr};
	WindowSpec	spec = {};

	Single(WindowFn fn, Type type, Type column, const std::vector<Value> &values)
	{
		table = {Column{column, values}};
		f.fn = fn;
		f.type = type;
		f.column = 0;
		f.high = f.filter = f.map = WINDOW_NONE;
		spec.keys = &key;
		spec.norder = 1;
		spec.frame = WindowFrame{FrameMode::Rows, FrameBound::Unbounded, FrameBound::CurrentRow, RangeUnit::Number, 0, 0, 0};
		spec.functions = &f;
		spec.nfunctions = 1;
	}

	Outcome run() { return run_window(spec, table); }
	const char *check()
	{
		std::vector<Type> types;

		for (const Column &column : table)
			types.push_back(column.type);
		return check_window(spec, types.data(), static_cast<uint32_t>(types.size()));
	}
};

TEST(VmWindow, SumsOverflow)
{
	const std::vector<Value> values = {number(INT64_MAX), number(-1), number(1), number(1)};
	Single		narrow(WindowFn::Sum, Type::I64, Type::I64, values);

	EXPECT_EQ(narrow.run().errors, static_cast<uint32_t>(ERR_INT_OVERFLOW));
	narrow.table[0].values.pop_back();
	EXPECT_EQ(narrow.run().errors, 0u);

	/* the sum of a frame matters, not of what is before it */
	narrow.table[0].values = values;
	narrow.spec.frame = WindowFrame{FrameMode::Rows, FrameBound::Preceding, FrameBound::CurrentRow, RangeUnit::Number, 0, 1, 0};
	EXPECT_EQ(narrow.run().errors, 0u);

	Single		halves(WindowFn::Sum, Type::I128, Type::I64, values);
	const Outcome outcome = halves.run();

	EXPECT_EQ(outcome.errors, 0u);
	EXPECT_TRUE(same(outcome.results[0][3], number(static_cast<int128>(INT64_MAX) + 1), false));
}

TEST(VmWindow, HalvesOverflow)
{
	for (const auto &[high, errors] : std::vector<std::pair<int64_t, uint32_t>>{{WIDE_HIGH_LIMIT / 4, 0}, {-WIDE_HIGH_LIMIT / 4, 0},
				{WIDE_HIGH_LIMIT / 2, ERR_INT_OVERFLOW}, {wide_special(WIDE_NAN), ERR_INT_OVERFLOW}, {wide_special(WIDE_MINUS_INFINITY), ERR_INT_OVERFLOW}})
	{
		Single		single(WindowFn::Sum, Type::I128, Type::I64, {number(5), number(6)});

		single.table.push_back(Column{Type::I64, {number(high), number(high)}});
		single.f.high = 1;
		EXPECT_EQ(single.check(), nullptr);
		EXPECT_EQ(single.run().errors, errors) << high;
		single.f.fn = WindowFn::Max;
		EXPECT_EQ(single.run().errors, 0u);
		EXPECT_TRUE(same(single.run().results[0][1], number(wide_value(high, 6)), false));
	}
}

TEST(VmWindow, Zeroes)
{
	Single		single(WindowFn::Min, Type::F64, Type::F64, {real(-0.0), real(-0.0), real(1)});
	Outcome		outcome = single.run();

	EXPECT_EQ(outcome.errors, 0u);
	EXPECT_TRUE(std::signbit(outcome.results[0][2].real));
	single.table[0].values[1] = real(0.0);
	EXPECT_EQ(single.run().errors, static_cast<uint32_t>(ERR_AMBIGUOUS_ZERO));
	single.f.fn = WindowFn::Max;
	EXPECT_EQ(single.run().errors, static_cast<uint32_t>(ERR_AMBIGUOUS_ZERO));
	single.table[0].values[0] = real(2);
	single.table[0].values[1] = real(-0.0);
	EXPECT_EQ(single.run().errors, 0u);
	single.f.fn = WindowFn::Sum;
	single.table[0].values = {real(-0.0), real(-0.0), real(0.0)};
	outcome = single.run();
	EXPECT_TRUE(std::signbit(outcome.results[0][1].real));
	EXPECT_FALSE(std::signbit(outcome.results[0][2].real));
}

TEST(VmWindow, FloatSums)
{
	/* what a naive sum forgets, and what PostgreSQL might not be able to form */
	Single		single(WindowFn::Sum, Type::F64, Type::F64, {real(1e16), real(1), real(1), real(-1e16)});

	EXPECT_EQ(single.run().results[0][3].real, 2.0);
	single.spec.frame = WindowFrame{FrameMode::Rows, FrameBound::Preceding, FrameBound::CurrentRow, RangeUnit::Number, 0, 1, 0};
	EXPECT_EQ(single.run().results[0][2].real, 2.0);
	single.table[0].values = {real(1e308), real(1e308)};
	EXPECT_EQ(single.run().errors, static_cast<uint32_t>(ERR_SUM_OVERFLOW));
	single.table[0].values = {real(INFINITE), real(3), real(4), real(-INFINITE), real(NOT_A_NUMBER), real(5), real(6)};

	const double expected[] = {INFINITE, INFINITE, 7, -INFINITE, NOT_A_NUMBER, NOT_A_NUMBER, 11};
	const Outcome outcome = single.run();

	for (size_t i = 0; i < 7; i++)
		EXPECT_TRUE(same(outcome.results[0][i], real(expected[i]), true)) << i;
}

TEST(VmWindow, DatesOutOfRange)
{
	Single		single(WindowFn::Count, Type::I64, Type::I32, {number(INT32_MIN), number(5), number(INT32_MAX)});

	single.spec.frame = WindowFrame{FrameMode::Range, FrameBound::Preceding, FrameBound::CurrentRow, RangeUnit::Date, 0, 10, 0};
	EXPECT_EQ(single.check(), nullptr);
	EXPECT_EQ(single.run().errors, 0u);
	for (int64_t offset : {2451545 + 6, 3000000})
	{
		single.spec.frame.start_offset = offset;
		EXPECT_EQ(single.run().errors, static_cast<uint32_t>(ERR_DATETIME_RANGE));
	}
	single.table[0].values[1] = number(109203528 - 2451545);
	single.spec.frame.start_offset = 1;
	EXPECT_EQ(single.run().errors, static_cast<uint32_t>(ERR_DATETIME_RANGE));

	Single		time(WindowFn::Count, Type::I64, Type::I64, {number(INT64_MIN), number(9223371331199999999LL), number(INT64_MAX)});

	time.spec.frame = WindowFrame{FrameMode::Range, FrameBound::CurrentRow, FrameBound::Following, RangeUnit::Timestamp, 0, 0, 0};
	EXPECT_EQ(time.check(), nullptr);
	EXPECT_EQ(time.run().errors, 0u);
	time.spec.frame.end_offset = 1;
	EXPECT_EQ(time.run().errors, static_cast<uint32_t>(ERR_DATETIME_RANGE));
}

/* Equal texts have several references. */
TEST(VmWindow, Texts)
{
	std::vector<char> arena(64);
	std::vector<Value> references;

	for (const char *text : {"ab", "ab", "ab", "abc", "", "", "b"})
	{
		references.push_back(number(static_cast<int64_t>(arena.size())));
		arena.push_back(static_cast<char>((strlen(text) + 1) * 2 + 1));
		arena.insert(arena.end(), text, text + strlen(text));
	}
	arena.resize(arena.size() + 64);
	references.insert(references.begin() + 4, 2, none());

	TextOrderSpec by_bytes = {};

	by_bytes.attlen = -1;

	const TextOrder order(by_bytes, nullptr, arena.data(), arena.size());
	Single		single(WindowFn::Rank, Type::I64, Type::I64, references);

	single.f.column = WINDOW_NONE;
	single.key.text = &order;
	ASSERT_EQ(single.check(), nullptr);

	const int64_t expected[] = {1, 1, 1, 4, 5, 5, 7, 7, 9};
	const Outcome outcome = single.run();

	for (size_t i = 0; i < 9; i++)
		EXPECT_EQ(static_cast<int64_t>(outcome.results[0][i].number), expected[i]) << i;
	single.spec.npartition = 1;
	single.spec.norder = 0;
	single.f.fn = WindowFn::RowNumber;
	EXPECT_EQ(static_cast<int64_t>(single.run().results[0][2].number), 3);
	EXPECT_EQ(static_cast<int64_t>(single.run().results[0][3].number), 1);
	single.table[0].type = Type::I32;
	EXPECT_NE(single.check(), nullptr);
}

/* ---- what is refused ------------------------------------------------------------------- */

TEST(VmWindow, Refused)
{
	const Single good(WindowFn::Sum, Type::I64, Type::I64, {number(1)});

#define REFUSED(change) \
	do \
	{ \
		Single		s(WindowFn::Sum, Type::I64, Type::I64, {number(1)}); \
		ASSERT_EQ(s.check(), nullptr); \
		change; \
		EXPECT_NE(s.check(), nullptr) << #change; \
	} while (0)

	REFUSED(s.key.column = 1);
	REFUSED(s.table[0].type = Type::I128);
	REFUSED(s.spec.nfunctions = 0);
	REFUSED(s.spec.nfunctions = WINDOW_MAX_FUNCTIONS + 1);
	REFUSED(s.f.fn = static_cast<WindowFn>(17));
	REFUSED(s.f.column = 1);
	REFUSED(s.f.column = WINDOW_NONE);
	REFUSED(s.f.type = Type::I32);
	REFUSED(s.f.type = Type::F64);
	REFUSED(s.f.high = 1);
	REFUSED(s.f.filter = 0);
	REFUSED(s.f.filter = 7);
	REFUSED(s.f.map = 0);
	REFUSED(s.f.has_default = 2);
	REFUSED(s.f.fn = WindowFn::RowNumber);	/* has an argument */
	REFUSED(s.f.fn = WindowFn::BoolAnd; s.f.type = Type::Bool);
	REFUSED(s.table[0].type = Type::Bool);
	REFUSED(s.f.fn = WindowFn::Min; s.f.type = Type::I32);
	REFUSED(s.f.fn = WindowFn::Lag; s.f.number = int64_t{INT32_MAX} + 1);
	REFUSED(s.f.fn = WindowFn::NthValue; s.f.number = 0);
	REFUSED(s.f.fn = WindowFn::Ntile; s.f.column = WINDOW_NONE; s.f.type = Type::I32; s.f.number = 0);
	REFUSED(s.spec.frame.mode = static_cast<FrameMode>(3));
	REFUSED(s.spec.frame.start = static_cast<FrameBound>(4));
	REFUSED(s.spec.frame.end = static_cast<FrameBound>(4));
	REFUSED(s.spec.frame.unit = static_cast<RangeUnit>(3));
	REFUSED(s.spec.frame.start = FrameBound::Preceding; s.spec.frame.start_offset = -1);
	REFUSED(s.spec.frame.end = FrameBound::Following; s.spec.frame.end_offset = -1);

	/* RANGE with an offset */
	REFUSED(s.spec.frame.mode = FrameMode::Range; s.spec.frame.end = FrameBound::Following; s.spec.norder = 0);
	REFUSED(s.spec.frame.mode = FrameMode::Range; s.spec.frame.end = FrameBound::Following; s.spec.frame.unit = RangeUnit::Date);

	Single		floats(WindowFn::Sum, Type::F64, Type::F64, {real(1)});

	floats.spec.frame = WindowFrame{FrameMode::Range, FrameBound::Preceding, FrameBound::CurrentRow, RangeUnit::Number, 0, bits_of(1), 0};
	EXPECT_EQ(floats.check(), nullptr);
	for (double bad : {-1.0, NOT_A_NUMBER, -INFINITE})
	{
		floats.spec.frame.start_offset = bits_of(bad);
		EXPECT_NE(floats.check(), nullptr) << bad;
	}
	floats.spec.frame.start_offset = bits_of(-0.0);
	EXPECT_EQ(floats.check(), nullptr);
}

}  // namespace
