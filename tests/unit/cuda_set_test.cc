/*
 * cuda_set_test.cc: result sets in the device library's job runtime on the emulated device: programs that make them, programs that
 * read them. What is expected is what the reference interpreter gives, one program after the other.
 */
#include "cuda_order.h"
#include "cuda_runtime_fixture.h"
#include "job_scan.h"
#include "join.h"
#include "vm_generator.h"

using namespace gpuvm;
using namespace gpuvm::reference;

namespace {

std::vector<SinkColumn>
all_results(const Program *program)
{
	std::vector<SinkColumn> columns;

	for (uint16_t c = 0; c < program->nresults; c++)
		columns.push_back(SinkColumn{c, SinkForm::Value});
	return columns;
}

/* What a set of these columns has; `overflows`: a value does not fit. Rows in tablets of at most so many. */
Table
set_table(const Program *program, const Outcome &outcome, const std::vector<SinkColumn> &columns, bool *overflows, uint32_t tablet_rows = 1 << 20)
{
	std::vector<Type> results(program->nresults);
	Table		table;

	*overflows = false;
	program_result_types(program, results.data());
	for (const SinkColumn &from : columns)
	{
		const bool	sum = results[from.result] == Type::I128;
		Column		column{sum ? Type::I64 : results[from.result], {}};

		for (const std::vector<Value> &row : outcome.rows)
		{
			Value		v = row[from.result];
			const int128 whole = sum ? v.x : v.i;

			if (sum || from.form != SinkForm::Value)
				v.i = from.form == SinkForm::Low ? wide_low(whole) : from.form == SinkForm::High ? wide_high(whole) : static_cast<int64_t>(whole);
			*overflows = *overflows || (!v.null && from.form == SinkForm::Value && sum && v.i != whole);
			column.rows.push_back(v);
		}
		table.columns.push_back(std::move(column));
	}
	for (size_t left = columns.empty() ? 0 : outcome.rows.size(); left > 0; left -= table.tablet_rows.back())
		table.tablet_rows.push_back(static_cast<uint32_t>(std::min<size_t>(left, tablet_rows)));
	table.build();
	return table;
}

/* Rows as text, in their order. */
std::vector<std::string>
table_rows(const Table &table)
{
	std::vector<std::string> rows(table.nrows());

	for (const Column &column : table.columns)
		for (size_t i = 0; i < rows.size(); i++)
			rows[i] += value_text(column.type, column.rows[i]) + "|";
	return rows;
}

std::vector<std::string>
sorted(std::vector<std::string> rows)
{
	std::sort(rows.begin(), rows.end());
	return rows;
}

/* A set that is there as long as this. */
using Set = std::unique_ptr<DeviceSet>;

class CudaSet : public CudaRuntime
{
protected:
	void SetUp() override
	{
		sizes = cuda::scan_sizes;
		joins = cuda::join_sizes;
	}

	void TearDown() override
	{
		cuda::scan_sizes = sizes;
		cuda::join_sizes = joins;
		CudaRuntime::TearDown();
	}

	static StoredTable of_set(const Set &set) { return StoredTable{nullptr, {}, set.get()}; }

	Ran make(const Program *program, const std::vector<StoredTable> &stored, const std::vector<ParamValue> &params, Ways ways, Set *set)
	{
		ways.sink = true;
		ways.nbuffers = 0;
		if (ways.sink_columns.empty())
			ways.sink_columns = all_results(ways.stage != nullptr ? ways.stage : program);

		const Ran	ran = run(program, stored, params, ways);

		EXPECT_TRUE(ran.units.empty()) << "rows of a set have left";
		if (ways.append_to != nullptr)
			return ran;
		set->reset(ran.figures.set);
		if (*set != nullptr)
		{
			EXPECT_EQ(ran.figures.rows_out, (*set)->rows());
		}
		return ran;
	}

	/* Rows [first, first + n), or those up to the last, as they come to the host; the memory has just the size that it has to. */
	Table copied(const DeviceSet *set, uint64_t first = 0, uint64_t n = UINT64_MAX)
	{
		Table		table;
		std::vector<std::vector<char>> values;
		std::vector<std::vector<uint64_t>> nulls;
		std::vector<char *> values_at;
		std::vector<uint64_t *> nulls_at;

		n = std::min(n, set->rows() - first);
		for (uint32_t c = 0; c < set->ncolumns(); c++)
		{
			values.emplace_back(n * static_cast<size_t>(type_natural_width(set->columns()[c].type)), char(0x5a));
			nulls.emplace_back((n + 63) / 64, ~uint64_t{0});
		}
		for (uint32_t c = 0; c < set->ncolumns(); c++)
		{
			values_at.push_back(values[c].data());
			nulls_at.push_back(nulls[c].data());
		}
		EXPECT_TRUE(library->copy_set(set, first, n, values_at.data(), nulls_at.data()));
		for (uint32_t c = 0; c < set->ncolumns(); c++)
		{
			const Type	type = set->columns()[c].type;
			const size_t width = static_cast<size_t>(type_natural_width(type));
			Column		column{type, {}};

			for (size_t i = 0; i < n; i++)
			{
				Value		v;
				uint64_t	bits = 0;
				float		single;

				memcpy(&bits, values[c].data() + i * width, width);
				v.null = bit_get(nulls[c].data(), i);
				if (v.null)
				{
					EXPECT_EQ(bits, 0u) << "under a null";
				}
				memcpy(&single, &bits, sizeof(single));
				if (type == Type::F64)
					memcpy(&v.d, &bits, sizeof(v.d));
				else if (type == Type::F32)
					v.d = single;
				else
					v.i = type == Type::I16 ? static_cast<int16_t>(bits) : type == Type::I32 ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits);
				column.rows.push_back(v);
			}
			for (size_t i = n; i < (n + 63) / 64 * 64; i++)
				EXPECT_FALSE(bit_get(nulls[c].data(), i)) << "behind the last row";
			table.columns.push_back(std::move(column));
		}
		return table;
	}

	/* Rows in any order, and what is known of them. `parts`: are there several? Then an all-null one counts as 0. */
	void expect_set(const DeviceSet *set, const Table &expected, bool parts = false)
	{
		ASSERT_NE(set, nullptr);
		if (expected.columns.empty())
			return;
		ASSERT_EQ(set->rows(), expected.nrows());
		ASSERT_EQ(set->ncolumns(), expected.columns.size());
		ASSERT_EQ(sorted(table_rows(copied(set))), sorted(table_rows(expected)));
		for (uint32_t c = 0; c < set->ncolumns(); c++)
		{
			const ColumnSummary &has = set->columns()[c], &should = expected.summaries[c];
			double		least, most, low, high;

			ASSERT_EQ(has.type, expected.columns[c].type);
			if (expected.nrows() == 0)
				continue;
			ASSERT_EQ(has.null_count, should.null_count) << "column " << c;
			ASSERT_EQ(has.flags, should.flags) << "column " << c;
			if (parts)
				continue;
			memcpy(&least, &has.min, sizeof(least));
			memcpy(&most, &has.max, sizeof(most));
			memcpy(&low, &should.min, sizeof(low));
			memcpy(&high, &should.max, sizeof(high));
			if (type_is_float(has.type))
			{
				ASSERT_EQ(least, low) << "column " << c;
				ASSERT_EQ(most, high) << "column " << c;
				ASSERT_EQ(has.exp_lo, should.exp_lo) << "column " << c;
				ASSERT_EQ(has.exp_hi, should.exp_hi) << "column " << c;
			}
			else
			{
				ASSERT_EQ(has.min, should.min) << "column " << c;
				ASSERT_EQ(has.max, should.max) << "column " << c;
			}
		}
	}

	cuda::ScanSizes sizes;
	cuda::JoinSizes joins;
};

/* k, v, n of filter_program(): a table as three_columns() has it. */
const std::vector<SinkColumn> AS_TABLE = {{0, SinkForm::Value}, {2, SinkForm::Value}, {1, SinkForm::Value}};

Table
filtered(const Table &table, int limit)
{
	const SealedProgram program = filter_program(limit);
	bool		overflows;

	return set_table(program.get(), run_cpu_rows(program.get(), table, {}, 1024), AS_TABLE, &overflows);
}

}  // namespace

TEST_F(CudaSet, RowsOfAScan)
{
	const SealedProgram filter = filter_program(500), groups = group_program(true), plain = group_program(false);

	open();
	for (uint32_t n : {0u, 1u, 32u, 33u, 4095u, 4096u, 4097u, 14000u})
		for (int keys : {400, 1000, 100000000})
			for (uint32_t part_pads : {1u, 1000u})
			{
				const Table table = three_columns(n == 0 ? std::vector<uint32_t>{} : n > 8000 ? std::vector<uint32_t>{n - 5000, 5000} : std::vector<uint32_t>{n},
												  static_cast<uint32_t>(keys), n);
				const Table expected = filtered(table, 500);
				const StoredTable stored = arena.store(table);
				Ways		ways;
				Set			set, second;

				cuda::scan_sizes.most_part_pads = part_pads;
				ways.sink_columns = AS_TABLE;

				const Ran	ran = make(filter.get(), {stored}, {}, ways, &set);

				ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
				expect_set(set.get(), expected, n > 4096 && part_pads == 1);
				EXPECT_EQ(status().memory_working.load(), set->bytes());

				/* read: as rows, as groups, into another set */
				for (const SealedProgram *reader : {&filter, &groups, &plain})
				{
					Rng			rng(1);
					const Outcome outcome = reader == &filter ? run_cpu_rows(filter.get(), expected, {}, 1024)
						: run_cpu_groups(reader->get(), expected, {}, 1024, 1, rng);
					const Ran	read = run(reader->get(), of_set(set), {}, Ways());
					bool		overflows;

					ASSERT_EQ(read.outcome, DeviceOutcome::Done) << read.reason;
					ASSERT_EQ(read.sorted(), sorted(rows_text(reader->get(), outcome)));
					ASSERT_EQ(make(reader->get(), {of_set(set)}, {}, Ways(), &second).outcome, DeviceOutcome::Done);
					expect_set(second.get(), set_table(reader->get(), outcome, all_results(reader->get()), &overflows), part_pads == 1);
				}
				set.reset();
				second.reset();
				EXPECT_EQ(status().memory_working.load(), 0u);
				ASSERT_FALSE(HasFatalFailure()) << n << " rows, keys " << keys;
			}
}

TEST_F(CudaSet, AMillionRows)
{
	const Table table = three_columns(std::vector<uint32_t>(16, 1 << 16), 1000, 7);
	const StoredTable stored = arena.store(table);
	Ways		ways;
	Set			set;

	open();
	ways.sink_columns = AS_TABLE;
	cuda::scan_sizes.most_part_pads = 32;

	const Ran	ran = make(filter_program(900).get(), {stored}, {}, ways, &set);

	ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
	expect_set(set.get(), filtered(table, 900), true);
	/* as much as its rows take, and no more */
	EXPECT_LT(set->bytes(), set->rows() * 17 + (uint64_t{4} << 20));
}

/* SELECT count(*) FROM (SELECT FROM t): rows without columns are counted. */
TEST_F(CudaSet, NoColumns)
{
	const Table table = three_columns({9000, 5000}, 1000, 17);
	Set			set;

	open();
	for (bool grouped : {false, true})
	{
		auto		b = new_builder();
		const int64_t source = RESULT_FROM_AGG;

		b->emit(Opcode::Table, Type::None, 0, 0, 0);
		if (grouped)
		{
			b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("n"));
			b->emit(Opcode::AggOpen, Type::None, 0, 1, b->add_aux(&source, 1));
		}

		const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

		if (grouped)
			b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
		else
			b->emit(Opcode::Result, Type::None, 0, 0, 0);
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
		b->emit(Opcode::Finish, Type::None, 0, 0, 0);

		const SealedProgram program = seal(*b);

		if (!grouped)
		{
			const Ran	ran = make(program.get(), {arena.store(table)}, {}, Ways(), &set);

			ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
			ASSERT_NE(set, nullptr);
			ASSERT_EQ(set->rows(), 14000u);
			continue;
		}

		const Ran	ran = run(program.get(), of_set(set), {}, Ways());

		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		ASSERT_EQ(ran.sorted(), std::vector<std::string>{"14000,"});
	}
}

TEST_F(CudaSet, CopiesOfSomeRows)
{
	const Table table = three_columns({9000, 5000}, 1000, 8);
	Ways		ways;
	Set			set;

	open();
	ways.sink_columns = AS_TABLE;
	cuda::scan_sizes.most_part_pads = 1;
	ASSERT_EQ(make(filter_program(700).get(), {arena.store(table)}, {}, ways, &set).outcome, DeviceOutcome::Done);

	const std::vector<std::string> all = table_rows(copied(set.get()));

	for (uint64_t first : {0ul, 1ul, 31ul, 32ul, 65ul, 4000ul, all.size() - 1, all.size()})
		for (uint64_t n : {0ul, 1ul, 33ul, 64ul, 6001ul})
		{
			const std::vector<std::string> some = table_rows(copied(set.get(), first, n));

			ASSERT_EQ(some, std::vector<std::string>(all.begin() + static_cast<long>(first), all.begin() + static_cast<long>(std::min(first + n, all.size()))));
		}
}

/* Sums as values, or as halves; one that does not fit is an error, and then there is no set. */
TEST_F(CudaSet, SumsOfGroups)
{
	Table		table = three_columns({9000, 7000}, 300, 9);

	open();
	for (int pass = 0; pass < 2; pass++)
	{
		for (size_t i = 0; pass == 1 && i < 3; i++)
			table.columns[1].rows[1000 * i] = from_register(int64_t{i == 2 ? INT64_MIN : INT64_MAX});
		for (size_t i = 0; pass == 1 && i < 3; i++)
			table.columns[0].rows[1000 * i] = from_register(int64_t{5});
		table.columns[1].rows[3000] = from_register(int64_t{-1});
		if (pass == 1)
		{
			table.columns[1].rows[2000] = from_register(int64_t{INT64_MAX});
			table.build();
		}

		const StoredTable stored = arena.store(table);

		for (bool key : {false, true})
		{
			const SealedProgram program = group_program(key);
			const uint16_t sum = key ? 2 : 1;
			Rng			rng(1);
			const Outcome outcome = run_cpu_groups(program.get(), table, {}, 1024, 1, rng);
			std::vector<SinkColumn> halves = all_results(program.get());

			halves[sum].form = SinkForm::Low;
			halves.push_back(SinkColumn{sum, SinkForm::High});
			/* those of an integer, too */
			halves.push_back(SinkColumn{static_cast<uint16_t>(sum - 1), SinkForm::High});
			halves.push_back(SinkColumn{static_cast<uint16_t>(sum - 1), SinkForm::Low});
			for (bool whole : {true, false})
			{
				Ways		ways;
				Set			set;
				bool		overflows;

				ways.sink_columns = whole ? all_results(program.get()) : halves;

				const Table expected = set_table(program.get(), outcome, ways.sink_columns, &overflows);
				const Ran	ran = make(program.get(), {stored}, {}, ways, &set);

				ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
				EXPECT_EQ(overflows, whole && pass == 1);
				if (overflows)
				{
					EXPECT_EQ(ran.figures.errors, uint32_t(ERR_INT_OVERFLOW));
					EXPECT_EQ(set, nullptr);
					EXPECT_EQ(status().memory_working.load(), 0u);
					continue;
				}
				expect_set(set.get(), expected);
			}
		}
	}
}

TEST_F(CudaSet, Sorted)
{
	const Table table = three_columns({5000, 7000}, 100000, 10);
	const StoredTable stored = arena.store(table);
	const SealedProgram filter = filter_program(60000), groups = group_program(true);

	open();
	for (const SealedProgram *program : {&filter, &groups})
		for (uint64_t limit : {0ul, 1ul, 100ul, 1000000ul})
			for (uint32_t flags : {0u, ORDER_NULLS_FIRST | ORDER_DESC})
			{
				Rng			rng(1);
				const Outcome outcome = program == &filter ? run_cpu_rows(filter.get(), table, {}, 1024)
					: run_cpu_groups(groups.get(), table, {}, 1024, 1, rng);
				Ways		ways;
				Set			set;
				bool		overflows;

				/* n, then k, then v or the count: no ties but equal rows */
				for (uint32_t c = program->get()->nresults; c-- > 0;)
					ways.order.push_back(JobOrderKey{c, flags, 0, 0});
				ways.row_limit = limit;

				const Ran	ran = make(program->get(), {stored}, {}, ways, &set);

				ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;

				Outcome		in_order = outcome;

				std::stable_sort(in_order.rows.begin(), in_order.rows.end(), [&](const std::vector<Value> &a, const std::vector<Value> &b)
				{
					return compare_rows(program->get(), ways, a, b) < 0;
				});
				if (limit != 0 && limit < in_order.rows.size())
					in_order.rows.resize(limit);

				const Table expected = set_table(program->get(), in_order, all_results(program->get()), &overflows);

				expect_set(set.get(), expected);
				ASSERT_EQ(table_rows(copied(set.get())), table_rows(expected));
			}
}

TEST_F(CudaSet, Append)
{
	const Table first = three_columns({9000}, 1000, 11), second = three_columns({100, 5000}, 1000, 12);
	const StoredTable stored[] = {arena.store(first), arena.store(second)};
	const SealedProgram filter = filter_program(500), none = filter_program(-1), raises = filter_program(500, INT32_MAX);
	const Table tables[] = {filtered(first, 500), filtered(second, 500)};
	Outcome		all;
	Ways		ways;
	Set			set;

	open();
	ways.sink_columns = AS_TABLE;
	ASSERT_EQ(make(none.get(), {stored[0]}, {}, ways, &set).outcome, DeviceOutcome::Done);
	ASSERT_EQ(set->rows(), 0u);
	ways.append_to = set.get();
	for (int i = 0; i < 5; i++)
	{
		const uint64_t rows = set->rows(), bytes = set->bytes();
		const Outcome more = run_cpu_rows(filter.get(), i % 2 == 0 ? first : second, {}, 1024);
		Ran			ran;
		bool		overflows;

		/* what fails, or is refused, or stopped, or has no rows, leaves it as it is */
		ASSERT_EQ(make(none.get(), {stored[0]}, {}, ways, &set).outcome, DeviceOutcome::Done);
		ran = make(raises.get(), {stored[0]}, {}, ways, &set);
		ASSERT_EQ(ran.outcome, DeviceOutcome::Done);
		ASSERT_NE(ran.figures.errors, 0u);
		ASSERT_EQ(ran.figures.set, nullptr);

		Ways		limited = ways;

		limited.sink_limit = 1000;
		ran = run(filter.get(), {stored[0]}, {}, [&] { limited.sink = true; return limited; }());
		ASSERT_EQ(ran.outcome, DeviceOutcome::Refused);
		EXPECT_EQ(ran.reason.rfind("a result set has 0 kB and needs ", 0), 0u) << ran.reason;

		Ways		others = ways;

		others.sink = true;
		others.sink_columns = {{0, SinkForm::Value}};
		ASSERT_EQ(run(filter.get(), {stored[0]}, {}, others).outcome, DeviceOutcome::Refused);
		others = ways;
		others.sink = true;
		others.tell = [](FakeIo *io) { io->stop_after_asking = 3; };
		ASSERT_EQ(run(filter.get(), {stored[0]}, {}, others).figures.set, nullptr);
		ASSERT_EQ(set->rows(), rows);
		ASSERT_EQ(set->bytes(), bytes);
		ASSERT_EQ(status().memory_working.load(), bytes);

		ran = make(filter.get(), {stored[i % 2]}, {}, ways, &set);
		ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
		ASSERT_EQ(ran.figures.set, set.get());
		ASSERT_EQ(ran.figures.rows_out, more.rows.size());
		all.rows.insert(all.rows.end(), more.rows.begin(), more.rows.end());
		expect_set(set.get(), set_table(filter.get(), all, AS_TABLE, &overflows), true);
	}

	/* a set may be read and added to by one job */
	bool		overflows;
	const Table expected = set_table(filter.get(), all, AS_TABLE, &overflows);
	const Outcome more = run_cpu_rows(filter_program(100).get(), expected, {}, 1024);

	ASSERT_EQ(make(filter_program(100).get(), {of_set(set)}, {}, ways, &set).outcome, DeviceOutcome::Done);
	all.rows.insert(all.rows.end(), more.rows.begin(), more.rows.end());
	expect_set(set.get(), set_table(filter.get(), all, AS_TABLE, &overflows), true);
}

/* Sets of gpuvmd's own are tablets that lie outside of the arena. */
TEST_F(CudaSet, SetsOfTheHost)
{
	const SealedProgram filter = filter_program(500), groups = group_program(true);

	open();
	for (uint32_t n : {1u, 4000u, 70000u})
	{
		const Table table = three_columns(std::vector<uint32_t>(3, n), 1000, n);
		StoredTable stored = {&table, {}};

		stored.of_host_set = true;
		for (const auto &tablet : table.tablets)
			stored.tablets.push_back(DeviceTabletRef{tablet.get(), false});
		for (Transfer transfer : ALL_TRANSFERS)
		{
			Ways		ways;

			ways.transfer = transfer;

			const Ran	ran = run(filter.get(), stored, {}, ways);

			ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
			ASSERT_EQ(ran.sorted(), sorted(rows_text(filter.get(), run_cpu_rows(filter.get(), table, {}, 1024))));
			ways.capacity = 64;
			expect_groups(groups.get(), stored, {}, ways);
			EXPECT_EQ(status().memory_working.load(), 0u);
		}
	}
}

/* References go on as they are; their values are read by the CPU. */
TEST_F(CudaSet, References)
{
	Rng			rng(3);
	Table		table = three_columns({5000, 3000}, 1000, 13);

	add_texts(rng, &table);
	table.build();

	const StoredTable stored = arena.store(table);

	for (bool key : {false, true})
	{
		auto		b = new_builder();
		const int	column = static_cast<int>(table.columns.size()) - 1;

		b->emit(Opcode::Table, Type::None, 0, 0, 0);
		b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("t"));

		const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
		const int	t = b->new_reg(Type::I64), hash = b->new_reg(Type::I64);

		b->emit(Opcode::Column, Type::I64, t, key ? 0 : column, 0);
		if (key)
			b->emit(Opcode::TextKey, Type::I64, hash, t, -1);
		b->emit(Opcode::Result, Type::None, key ? hash : t, 1, 0);
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
		b->emit(Opcode::Finish, Type::None, 0, 0, 0);

		const SealedProgram program = seal(*b);
		static Set	set;

		if (!key)
		{
			open();

			const Ran	direct = run(program.get(), stored, {}, Ways());

			ASSERT_EQ(make(program.get(), {stored}, {}, Ways(), &set).outcome, DeviceOutcome::Done);

			std::vector<std::string> rows;

			for (const std::string &row : table_rows(copied(set.get())))
				rows.push_back(row);
			ASSERT_EQ(direct.outcome, DeviceOutcome::Done);
			ASSERT_EQ(set->rows(), table.nrows());

			std::vector<std::string> expected;

			for (const auto &[unit, of] : direct.units)
				for (const std::string &row : of.rows)
					expected.push_back(row);
			std::sort(rows.begin(), rows.end());
			std::sort(expected.begin(), expected.end());
			for (size_t i = 0; i < rows.size(); i++)
				ASSERT_EQ(rows[i].substr(0, rows[i].size() - 1), expected[i].substr(0, rows[i].size() - 1));
			continue;
		}

		const Ran	ran = run(program.get(), of_set(set), {}, Ways());

		EXPECT_EQ(ran.outcome, DeviceOutcome::Refused);
		EXPECT_EQ(ran.reason, "values of variable length that a result set refers to are read by the CPU");
		set.reset();
	}
}

TEST_F(CudaSet, AJobStopsWhereverItIs)
{
	const Table table = three_columns(SOME_TABLETS, 5000, 14);
	const StoredTable stored = arena.store(table, 2);
	const SealedProgram programs[] = {filter_program(3000), group_program(true), group_program(false)};

	open();
	cuda::scan_sizes.most_part_pads = 1;
	for (uint64_t asks = 0; asks < 40; asks += asks < 10 ? 1 : 3)
		for (const SealedProgram &program : programs)
			for (bool order : {false, true})
			{
				Ways		ways;
				Set			set;

				if (order)
					ways.order = {JobOrderKey{1, 0, 0, 0}};
				ways.tell = [&](FakeIo *io) { io->stop_after_asking = asks; };
				EXPECT_EQ(make(program.get(), {stored}, {}, ways, &set).outcome, DeviceOutcome::Done);
				EXPECT_EQ(status().memory_working.load(), set ? set->bytes() : 0u);
				EXPECT_EQ(status().jobs_running.load(), 0u);
			}
}

/* Whatever there is room for, there is a set, or none. */
TEST_F(CudaSet, MemoryRunsOut)
{
	const Table table = three_columns({12000, 12000}, 20000, 15);
	const StoredTable stored = arena.store(table);
	const SealedProgram program = filter_program(15000);
	int			refused = 0, done = 0;

	for (uint64_t kb = 64; kb <= 32 << 10; kb *= 2)
		for (bool device : {false, true})
		{
			Ways		ways;
			Set			set;

			open(device ? kb << 10 : 0);
			ways.sink_columns = AS_TABLE;
			ways.sink_limit = device ? UINT64_MAX : kb << 10;

			const Ran	ran = make(program.get(), {stored}, {}, ways, &set);

			if (ran.outcome == DeviceOutcome::Refused)
			{
				EXPECT_EQ(set, nullptr);
				EXPECT_EQ(status().memory_working.load(), 0u);
				EXPECT_NE(ran.reason.find(device ? "bytes, of" : "are left for it"), std::string::npos) << ran.reason;
				refused++;
			}
			else
			{
				ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
				expect_set(set.get(), filtered(table, 15000), true);
				done++;
			}
			set.reset();
			EXPECT_EQ(status().memory_working.load(), 0u);
			library.reset();
		}
	EXPECT_GT(refused, 2);
	EXPECT_GT(done, 2);
}

/* Chains of programs: one or two sets are made, of tables or of joins, and read by one program or by a join of both. */
TEST_F(CudaSet, RandomPrograms)
{
	const uint64_t n = setting("GPUVM_TEST_PROGRAMS", 60);
	const uint64_t first_seed = setting("GPUVM_TEST_SEED", 1);
	uint64_t	refused = 0, clean = 0, with_rows = 0, joined = 0;

	open();
	for (uint64_t seed = first_seed; seed < first_seed + n; seed++)
	{
		Rng			rng(seed);
		const bool	tame = chance(rng, 80), joins = chance(rng, 50);
		const MapSet maps = random_maps(rng, tame);
		const int	nsets = joins ? 2 : 1;
		std::vector<Table> tables, contents;
		std::vector<Set> sets(static_cast<size_t>(nsets));
		std::vector<StoredTable> cursors;
		bool		failed = false;

		arena.next = align_up(sizeof(ArenaHeader), 4096);
		cuda::scan_sizes.most_part_pads = chance(rng, 50) ? 1 : 1000;
		cuda::join_sizes.least_batch = cuda::join_sizes.most_batch = chance(rng, 50) ? TABLET_PAD_ROWS : 64 << 10;
		for (int i = 0; i < nsets; i++)
			tables.push_back(joins ? join_table(rng, tame, 1 + static_cast<uint32_t>(pick_int(rng, i == 0 ? 300 : 12)), 150) : random_table(rng, tame));
		for (Table &table : tables)
		{
			/* every column, so that there is something to read, in a set, or a host's */
			if (chance(rng, 50))
				mask_randomly(rng, &table);

			auto		b = new_builder();
			const int	ncolumns = static_cast<int>(table.columns.size());

			b->emit(Opcode::Table, Type::None, 0, 0, 0);
			for (int c = 0; c < ncolumns; c++)
				b->emit(Opcode::ResultColumn, table.types[static_cast<size_t>(c)], c, 0, 0, b->add_name("c"));

			const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
			int			first = 0;

			for (int c = 0; c < ncolumns; c++)
			{
				const Type	type = table.types[static_cast<size_t>(c)];
				const int	reg = b->new_reg(type);

				first = c == 0 ? reg : first;
				b->emit(Opcode::Column, type, reg, c, 0);
			}
			b->emit(Opcode::Result, Type::None, first, ncolumns, 0);
			b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
			b->emit(Opcode::Finish, Type::None, 0, 0, 0);

			/* or a random program of one table's columns, rows or groups */
			Generator	generator(rng, table, tame, &maps);

			generator.rowids = false;

			const bool	random = !joins && chance(rng, 70);
			const SealedProgram program = random ? generator.make(chance(rng, 50), 2) : seal(*b);
			const Outcome outcome = Interpreter(program.get(), table, generator.params.data(), maps.maps.data()).run();
			std::vector<SinkColumn> columns = all_results(program.get());
			const size_t number = cursors.size();
			Ways		ways;
			bool		overflows;

			for (SinkColumn &column : columns)
				if (random && chance(rng, 30))
				{
					std::vector<Type> types(program.get()->nresults);

					program_result_types(program.get(), types.data());
					if (types[column.result] == Type::I128 || types[column.result] == Type::I64)
						column.form = chance(rng, 50) ? SinkForm::Low : SinkForm::High;
				}
			ways.maps = &maps.maps;
			ways.sink_columns = columns;
			ways.transfer = ALL_TRANSFERS[pick_int(rng, 5)];

			const Table expected = set_table(program.get(), outcome.errors != 0 ? Outcome{} : outcome, columns, &overflows, 1 + static_cast<uint32_t>(rng() % 5000));
			const Ran	ran = make(program.get(), {arena.store(table, static_cast<uint32_t>(pick_int(rng, 4)))}, generator.params, ways, &sets[number]);
			const std::string what = "seed " + std::to_string(seed) + "\n" + program_text(program.get());

			if (ran.outcome == DeviceOutcome::Refused)
			{
				refused++;
				failed = true;
				break;
			}
			ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason << what;
			ASSERT_EQ(ran.figures.errors != 0, outcome.errors != 0 || overflows) << what;
			if (ran.figures.errors != 0)
			{
				ASSERT_EQ(sets[number], nullptr);
				failed = true;
				break;
			}
			expect_set(sets[number].get(), expected, true);
			ASSERT_FALSE(HasFatalFailure()) << what;
			if (columns.empty())
			{
				failed = true;
				break;
			}
			contents.push_back(set_table(program.get(), outcome, columns, &overflows, 5000));
			cursors.push_back(of_set(sets[number]));
		}
		if (failed)
			continue;

		std::vector<const Table *> pointers;

		for (const Table &table : contents)
			pointers.push_back(&table);
		/* some of the sets lie with the host */
		for (size_t i = 0; i < cursors.size(); i++)
			if (chance(rng, 30))
			{
				cursors[i] = StoredTable{&contents[i], {}};
				cursors[i].of_host_set = true;
				for (const auto &tablet : contents[i].tablets)
					cursors[i].tablets.push_back(DeviceTabletRef{tablet.get(), false});
			}

		Generator	generator(rng, contents[0], tame, &maps);

		generator.rowids = false;

		const bool	grouped = chance(rng, 50);
		const SealedProgram program = joins ? generator.make_join(grouped, nsets) : generator.make(grouped, 2);
		const Outcome outcome = Interpreter(program.get(), pointers, generator.params.data(), false, maps.maps.data()).run();
		const std::string what = "seed " + std::to_string(seed) + "\n" + program_text(program.get());
		Ways		ways;

		ways.maps = &maps.maps;
		ways.transfer = ALL_TRANSFERS[pick_int(rng, 5)];
		ways.nbuffers = 1 + static_cast<uint32_t>(pick_int(rng, 5));
		ways.capacity = 4096;
		for (bool sink : {false, true})
		{
			Set			set;

			if (sink && chance(rng, 40))
			{
				ways.order = random_order(rng, program.get(), maps);
				ways.row_limit = ways.order.empty() || chance(rng, 50) ? 0 : 1 + rng() % 100;
				if (ways.row_limit != 0)
					ways.row_limit = outcome.rows.size() + 1;
			}

			const Ran	ran = sink ? make(program.get(), cursors, generator.params, ways, &set) : run(program.get(), cursors, generator.params, ways);
			bool		overflows;

			if (ran.outcome == DeviceOutcome::Refused)
			{
				refused++;
				continue;
			}
			ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason << what;
			/* what a join has to look at is not one thing */
			if (joins && (outcome.errors != 0 || ran.figures.errors != 0))
				continue;

			const Table expected = set_table(program.get(), outcome, all_results(program.get()), &overflows);

			ASSERT_EQ(ran.figures.errors != 0, outcome.errors != 0 || (sink && overflows)) << what;
			if (ran.figures.errors != 0)
				continue;
			clean++;
			joined += joins;
			with_rows += !outcome.rows.empty();
			if (sink)
				expect_set(set.get(), expected, true);
			else
				ASSERT_EQ(ran.sorted(), sorted(rows_text(program.get(), outcome))) << what;
			ASSERT_FALSE(HasFatalFailure()) << what;
		}
		sets.clear();
		EXPECT_EQ(status().memory_working.load(), 0u);
	}
	if (n >= 60)
	{
		EXPECT_LT(refused, n / 2) << "most jobs were refused";
		EXPECT_GT(clean, n / 2);
		EXPECT_GT(with_rows, n / 3);
		EXPECT_GT(joined, n / 10);
	}
}

TEST_F(CudaSet, SeveralSessionsAtOnce)
{
	const Table table = three_columns({9000, 5000}, 1000, 16);
	const StoredTable stored = arena.store(table);
	const SealedProgram filter = filter_program(500), groups = group_program(true);
	const Table expected = filtered(table, 500);
	Rng			rng(1);
	const std::vector<std::string> rows = sorted(rows_text(groups.get(), run_cpu_groups(groups.get(), expected, {}, 1024, 1, rng)));
	std::vector<std::thread> threads;

	open();
	for (uint64_t i = 0; i < 8; i++)
		threads.emplace_back([&, i]
		{
			Rng			own(i);

			for (int n = 0; n < 4; n++)
			{
				const uint64_t stop = chance(own, 25) ? static_cast<uint64_t>(pick_int(own, 10)) : UINT64_MAX;
				Ways		ways;
				Set			set;

				ways.sink_columns = AS_TABLE;
				ways.tell = [&](FakeIo *io) { io->stop_after_asking = stop; };
				EXPECT_EQ(make(filter.get(), {stored}, {}, ways, &set).outcome, DeviceOutcome::Done);
				if (set == nullptr)
					continue;

				const Ran	ran = run(groups.get(), of_set(set), {}, Ways());

				EXPECT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
				EXPECT_EQ(ran.sorted(), rows);
			}
		});
	for (std::thread &thread : threads)
		thread.join();
	EXPECT_EQ(status().memory_working.load(), 0u);
}
