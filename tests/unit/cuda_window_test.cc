/*
 * cuda_window_test.cc: window functions over sets of the emulated device against the CPU's (vm/cpu_window.h), of random
 * specifications and rows; what is refused, stopped, or finds no memory leaves the set as it was.
 */
#include "cuda_runtime_fixture.h"
#include "job_scan.h"
#include "window_random.h"
#include "window_runner.h"

using namespace gpuvm;
namespace win = window_reference;

namespace {

/* SELECT all columns FROM t */
reference::SealedProgram
whole_rows(const win::Table &table)
{
	auto		b = reference::new_builder();
	std::vector<int> regs;

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	for (size_t c = 0; c < table.size(); c++)
		b->emit(Opcode::ResultColumn, table[c].type, static_cast<int>(c), 0, 0, b->add_name("c"));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

	for (const win::Column &column : table)
		regs.push_back(b->new_reg(column.type));
	for (size_t c = 0; c < table.size(); c++)
		b->emit(Opcode::Column, table[c].type, regs[c], static_cast<int>(c), 0);
	b->emit(Opcode::Result, Type::None, regs[0], static_cast<int>(table.size()), 0);
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	return reference::seal(*b);
}

reference::Table
stored_rows(const win::Table &table)
{
	reference::Table to;

	for (const win::Column &from : table)
	{
		reference::Column column{from.type, {}};

		for (const win::Value &v : from.values)
		{
			reference::Value value;

			value.null = v.null;
			value.i = static_cast<int64_t>(v.number);
			value.d = v.real;
			column.rows.push_back(value);
		}
		to.columns.push_back(std::move(column));
	}
	if (!table[0].values.empty())
		to.tablet_rows = {static_cast<uint32_t>(table[0].values.size())};
	to.build();
	return to;
}

uint64_t
exact_bits(const win::Value &v, bool is_float)
{
	return v.null ? 0 : is_float ? double_bits(v.real) : static_cast<uint64_t>(static_cast<int64_t>(v.number));
}

struct Windowed
{
	DeviceOutcome outcome;
	DeviceJobFigures figures;
	std::string reason;
};

class CudaWindow : public reference::CudaRuntime
{
protected:
	void SetUp() override { sizes_ = cuda::scan_sizes; }

	void TearDown() override
	{
		set.reset();
		cuda::scan_sizes = sizes_;
		CudaRuntime::TearDown();
	}

	/* A set of the rows, which are sorted, in their order. */
	void make_set(const win::Table &table)
	{
		const reference::Table rows = stored_rows(table);
		const reference::SealedProgram program = whole_rows(table);
		const uint64_t before = arena.next;
		reference::Ways ways;

		ways.sink = true;
		ways.nbuffers = 0;
		ways.transfer = Transfer::Serial;	/* nothing is kept */
		for (uint16_t c = 0; c < table.size(); c++)
			ways.sink_columns.push_back(SinkColumn{c, SinkForm::Value});

		const reference::Ran ran = run(program.get(), arena.store(rows), {}, ways);

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		set.reset(ran.figures.set);
		arena.next = before;
	}

	Windowed window(const WindowSpec &spec, uint64_t stop_after_asking = UINT64_MAX)
	{
		reference::FakeIo io(nullptr, false, nullptr, 0, 0);
		Windowed	windowed = {};
		char		reason[128] = "";

		io.stop_after_asking = stop_after_asking;
		windowed.outcome = library->run_window(set.get(), spec, &io, &windowed.figures, reason);
		windowed.reason = reason;
		return windowed;
	}

	/* The set's columns from `first` on. */
	std::vector<std::vector<win::Value>> columns_from(uint32_t first)
	{
		const uint64_t n = set->rows();
		std::vector<std::vector<char>> values;
		std::vector<std::vector<uint64_t>> nulls;
		std::vector<char *> values_at;
		std::vector<uint64_t *> nulls_at;
		std::vector<std::vector<win::Value>> columns;

		for (uint32_t c = 0; c < set->ncolumns(); c++)
		{
			values.emplace_back(n * static_cast<size_t>(type_natural_width(set->columns()[c].type)));
			nulls.emplace_back((n + 63) / 64);
		}
		for (uint32_t c = 0; c < set->ncolumns(); c++)
		{
			values_at.push_back(values[c].data());
			nulls_at.push_back(nulls[c].data());
		}
		EXPECT_TRUE(library->copy_set(set.get(), 0, n, values_at.data(), nulls_at.data()));
		for (uint32_t c = first; c < set->ncolumns(); c++)
		{
			const Type	type = set->columns()[c].type;
			const size_t width = static_cast<size_t>(type_natural_width(type));
			std::vector<win::Value> column(n);
			uint32_t	null_count = 0;

			for (uint64_t i = 0; i < n; i++)
				if (!bit_get(nulls[c].data(), i))
					column[i] = win::stored_value(type, values[c].data() + i * width);
				else
				{
					null_count++;
					EXPECT_EQ(std::count(values[c].data() + i * width, values[c].data() + (i + 1) * width, 0), static_cast<long>(width)) << "under a null";
				}
			check_summary(set->columns()[c], column, null_count);
			columns.push_back(column);
		}
		return columns;
	}

	static void check_summary(const ColumnSummary &summary, const std::vector<win::Value> &column, uint32_t null_count)
	{
		int64_t		least = INT64_MAX, most = INT64_MIN;

		EXPECT_EQ(summary.null_count, null_count);
		if (type_is_float(summary.type) || null_count == column.size())
			return;
		for (const win::Value &v : column)
			if (!v.null)
			{
				least = std::min(least, static_cast<int64_t>(v.number));
				most = std::max(most, static_cast<int64_t>(v.number));
			}
		EXPECT_EQ(summary.min, least);
		EXPECT_EQ(summary.max, most);
	}

	/* As the CPU, bit by bit; both may flag an error, the same one. */
	void check(const win::Random &random, const win::Table &table)
	{
		const win::Outcome expected = win::run_window(random.spec, table);
		const uint32_t before = set->ncolumns();
		const Windowed windowed = window(random.spec);

		ASSERT_EQ(windowed.outcome, DeviceOutcome::Done) << windowed.reason << " " << random.show();
		ASSERT_EQ(windowed.figures.errors, expected.errors) << random.show();
		if (expected.errors != 0)
		{
			ASSERT_EQ(set->ncolumns(), before);
			return;
		}
		EXPECT_EQ(status().memory_working.load(), set->bytes());

		const std::vector<std::vector<win::Value>> columns = columns_from(before);
		size_t		c = 0;

		for (uint32_t f = 0; f < random.spec.nfunctions; f++)
		{
			const WindowFunction &function = random.functions[f];
			Type		types[2];
			const int	n = window_result_types(function, types);

			for (size_t i = 0; i < expected.results[f].size(); i++)
			{
				const win::Value &should = expected.results[f][i];
				win::Value	is = columns[c][i];

				if (n == 2 && !is.null)
					is = win::number(wide_value(static_cast<int64_t>(columns[c + 1][i].number), static_cast<int64_t>(is.number)));
				ASSERT_TRUE(is.null == should.null && is.number == should.number &&
							exact_bits(is, type_is_float(function.type)) == exact_bits(should, type_is_float(function.type)))
					<< random.show() << ": function " << static_cast<int>(function.fn) << " of column " << static_cast<int>(function.column)
					<< (function.filter == WINDOW_NONE ? "" : " filtered") << ", row " << i << " of " << expected.results[f].size() << ": "
					<< (is.null ? "null" : "") << static_cast<int64_t>(is.number) << " " << is.real << ", not " << (should.null ? "null" : "")
					<< static_cast<int64_t>(should.number) << " " << should.real;
			}
			c += static_cast<size_t>(n);
		}
	}

	/* Functions that the device has, and, but for sums of floats, extremes of floats with zeroes of both signs. */
	static void add_functions(win::Rng &rng, const win::Table &table, win::Random *random)
	{
		random->add_all(rng, table);
		random->functions.erase(std::remove_if(random->functions.begin(), random->functions.end(), [&](const WindowFunction &f) {
			return f.fn == WindowFn::Sum && type_is_float(f.type);
		}), random->functions.end());
		if (win::pick(rng, 0, 9) == 0 && random->functions.size() < WINDOW_MAX_FUNCTIONS)
			random->add(win::pick(rng, 0, 1) ? WindowFn::Min : WindowFn::Max, Type::F32, win::C_F32);
		random->spec.functions = random->functions.data();
		random->spec.nfunctions = static_cast<uint32_t>(random->functions.size());
	}

	std::unique_ptr<DeviceSet> set;

private:
	cuda::ScanSizes sizes_;
};

TEST_F(CudaWindow, RandomSpecifications)
{
	const win::TableShape shapes[] = {{1, 1, 10, 0}, {2, 2, 3, 50}, {40, 3, 6, 20}, {64, 1, 20, 0}, {60, 60, 5, 10}, {150, 4, 12, 100}, {200, 5, 10, 10},
		{0, 1, 1, 0}, {256, 7, 30, 5}, {700, 2, 300, 30}};
	win::Rng	rng(20261124);

	open();
	for (int i = 0; i < 150; i++)
	{
		win::Random random(rng);
		win::Table	table = win::random_table(rng, shapes[i % 10]);

		add_functions(rng, table, &random);
		win::sort_table(&table, random.keys);
		make_set(table);
		check(random, table);
		ASSERT_FALSE(HasFatalFailure() || HasNonfatalFailure()) << i;
	}
}

/* Trees of several levels, partitions across blocks, and a second window over the first one's columns. */
TEST_F(CudaWindow, ManyRows)
{
	win::Rng	rng(7);

	open();
	for (int i = 0; i < 6; i++)
	{
		win::Random random(rng);
		win::Table	table = win::random_table(rng, win::TableShape{9001, i % 2 == 0 ? 3 : 2000, 500, 10});

		add_functions(rng, table, &random);
		win::sort_table(&table, random.keys);
		make_set(table);
		check(random, table);
		ASSERT_FALSE(HasFatalFailure() || HasNonfatalFailure()) << i;
		if (set->ncolumns() == table.size())
			continue;
		random.functions.resize(3);
		random.spec.nfunctions = 3;
		check(random, table);
		ASSERT_FALSE(HasFatalFailure() || HasNonfatalFailure()) << i;
	}
}

/* A program reads what was appended, as it reads any column. */
TEST_F(CudaWindow, ReadByPrograms)
{
	win::Rng	rng(9);
	win::Table	table = win::random_table(rng, win::TableShape{5000, 11, 50, 20});
	win::Random random(rng);

	random.spec.npartition = 1;
	random.spec.norder = 0;
	random.keys.assign(1, WindowKey{win::C_PART, false, false, nullptr, nullptr});
	random.spec.keys = random.keys.data();
	random.spec.frame = {};
	random.add(WindowFn::RowNumber, Type::I64);
	random.add(WindowFn::Lag, Type::I32, win::C_I32, 1);
	random.spec.functions = random.functions.data();
	random.spec.nfunctions = 2;
	win::sort_table(&table, random.keys);
	open();
	make_set(table);
	check(random, table);
	ASSERT_FALSE(HasFailure());

	const std::vector<std::vector<win::Value>> columns = columns_from(0);
	win::Table	all;
	std::vector<std::string> expected(5000);
	const reference::Ways ways;

	for (uint32_t c = 0; c < set->ncolumns(); c++)
		all.push_back(win::Column{set->columns()[c].type, columns[c]});

	const reference::SealedProgram program = whole_rows(all);
	const reference::Table rows = stored_rows(all);
	reference::StoredTable stored = {nullptr, {}, set.get()};
	const reference::Ran ran = run(program.get(), stored, {}, ways);

	ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
	for (size_t i = 0; i < expected.size(); i++)
		for (const reference::Column &column : rows.columns)
			expected[i] += reference::value_text(column.type, column.rows[i]) + ",";
	std::sort(expected.begin(), expected.end());
	ASSERT_EQ(ran.sorted(), expected);
}

TEST_F(CudaWindow, LeavesTheSetAsItWas)
{
	win::Rng	rng(11);
	win::Random random(rng);
	win::Table	table = win::random_table(rng, win::TableShape{3000, 5, 20, 10});

	add_functions(rng, table, &random);
	win::sort_table(&table, random.keys);
	open();
	make_set(table);

	uint64_t	bytes = set->bytes();
	const auto	is_as_it_was = [&] {
		EXPECT_EQ(set->ncolumns(), table.size());
		EXPECT_EQ(set->bytes(), bytes);
		EXPECT_EQ(status().memory_working.load(), bytes);
	};

	/* stopped */
	for (uint64_t asked : {0, 1, 2, 3, 5, 10, 20})
	{
		const Windowed stopped = window(random.spec, asked);

		ASSERT_EQ(stopped.outcome, DeviceOutcome::Done) << stopped.reason;
		if (set->ncolumns() != table.size())
			break;
		is_as_it_was();
	}
	make_set(table);

	/* sums of floats */
	random.functions.resize(1);
	random.add(WindowFn::Sum, Type::F64, win::C_F64);
	random.spec.functions = random.functions.data();
	random.spec.nfunctions = 2;
	EXPECT_EQ(window(random.spec).outcome, DeviceOutcome::Refused);
	EXPECT_EQ(window(random.spec).reason, "sums of floats over frames are computed by the CPU");
	is_as_it_was();

	/* a sum that does not fit */
	for (win::Value &v : table[win::C_I64].values)
		v = win::number(INT64_MAX / 2);
	make_set(table);
	bytes = set->bytes();
	random.functions.clear();
	random.add(WindowFn::Sum, Type::I64, win::C_I64);
	random.spec.functions = random.functions.data();
	random.spec.nfunctions = 1;
	random.spec.frame = WindowFrame{FrameMode::Rows, FrameBound::Unbounded, FrameBound::Unbounded, RangeUnit::Number, 0, 0, 0};
	EXPECT_EQ(window(random.spec).figures.errors, static_cast<uint32_t>(ERR_INT_OVERFLOW));
	is_as_it_was();
}

/* Several parts are in no order. */
TEST_F(CudaWindow, OfSeveralParts)
{
	win::Rng	rng(12);
	win::Random random(rng);
	win::Table	table = win::random_table(rng, win::TableShape{30000, 5, 20, 10});

	cuda::scan_sizes.most_part_pads = 1;
	random.add(WindowFn::RowNumber, Type::I64);
	random.spec.functions = random.functions.data();
	random.spec.nfunctions = 1;
	open();
	make_set(table);
	EXPECT_EQ(window(random.spec).outcome, DeviceOutcome::Refused);
	EXPECT_EQ(set->ncolumns(), table.size());
}

}  // namespace
