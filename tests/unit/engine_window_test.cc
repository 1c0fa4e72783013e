/*
 * Window jobs: a table sorted into a set, columns appended to it, and the set read by a program, against the manual's
 * definitions (window_reference.h); what errors, limits, cancels and requests that make no sense leave of the set.
 */
#include "engine_tables.h"
#include "window_reference.h"

#include <random>

namespace {

namespace win = window_reference;

constexpr uint32_t SET = 3;

enum : uint32_t { ID, PART, ORDER, VALUE, FLOAT, CODE, BOOL, NCOLUMNS };
const Type	TYPES[NCOLUMNS] = {Type::I64, Type::I32, Type::I16, Type::I64, Type::F64, Type::I32, Type::Bool};

class WindowTest : public TableJobTest
{
public:
	void SetUp() override
	{
		TableJobTest::SetUp();
		context_.arena.header()->result_limit.store(PLENTY);
	}

	void TearDown() override
	{
		for (int ms = 0; ms < WAIT_MS && bytes() != 0; ms++)
			std::this_thread::sleep_for(std::chrono::milliseconds(1));
		EXPECT_EQ(bytes(), 0u);
		TableJobTest::TearDown();
	}

	uint64_t	bytes() { return context_.arena.header()->result_bytes.load(); }

	win::Table random_rows(uint64_t seed, size_t nrows, int64_t partitions)
	{
		std::mt19937_64 rng(seed);
		win::Table	table;

		for (Type type : TYPES)
			table.push_back(win::Column{type, std::vector<win::Value>(nrows)});
		for (size_t i = 0; i < nrows; i++)
		{
			const int64_t values[] = {static_cast<int64_t>(i), static_cast<int64_t>(rng() % static_cast<uint64_t>(partitions)), static_cast<int64_t>(rng() % 40),
				static_cast<int64_t>(rng() % 2000) - 1000, static_cast<int64_t>(rng() % 100) + 1, static_cast<int64_t>(rng() % 5), static_cast<int64_t>(rng() % 2)};

			for (uint32_t c = 0; c < NCOLUMNS; c++)
				if (c == ID || rng() % 10 != 0)
					table[c].values[i] = c == FLOAT ? win::real(static_cast<double>(values[c]) / 4) : win::number(values[c]);
		}
		return table;
	}

	JobCursor put_rows(const win::Table &table)
	{
		constexpr size_t ROWS = 30000;
		const size_t n = table[0].values.size();
		std::vector<ColumnSummary> summaries(table.size());
		std::vector<uint64_t> tablets;
		JobCursor	cursor = {};

		for (size_t first = 0; first < n; first += ROWS)
		{
			const uint32_t nrows = static_cast<uint32_t>(std::min(ROWS, n - first));
			std::vector<std::vector<char>> values(table.size());
			std::vector<std::vector<uint64_t>> nulls(table.size(), std::vector<uint64_t>(nrows / 64 + 1));
			std::vector<StagedColumn> staged;
			std::vector<ColumnChunk> chunks(table.size());
			const uint32_t block_rows[2] = {0, nrows};
			const uint64_t lsn = 1;
			const uint32_t lps = LPS_DENSE;
			TabletHeader header;

			for (size_t c = 0; c < table.size(); c++)
			{
				const size_t width = static_cast<size_t>(type_natural_width(table[c].type));

				values[c].resize(nrows * width);
				for (uint32_t i = 0; i < nrows; i++)
				{
					const win::Value &v = table[c].values[first + i];
					const int64_t bits = static_cast<int64_t>(v.number);

					if (v.null)
						nulls[c][i / 64] |= uint64_t{1} << i % 64;
					else
						memcpy(values[c].data() + i * width, table[c].is_float() ? static_cast<const void *>(&v.real) : &bits, width);
				}
				staged.push_back(StagedColumn{table[c].type, static_cast<int16_t>(c + 1), values[c].data(), nulls[c].data()});
			}

			const StagedTablet tablet = {nrows, static_cast<uint32_t>(table.size()), staged.data(), 0, 1, block_rows, &lsn, &lps, nullptr, 0};

			tablets.push_back(allocate(plan_tablet(tablet, &header, chunks.data())));
			write_tablet(tablet, header, chunks.data(), ++serial_, at<char>(tablets.back()));
			for (size_t c = 0; c < table.size(); c++)
				summarize_chunk(&summaries[c], chunks[c], first == 0);
		}
		for (size_t c = 0; c < table.size(); c++)
			summaries[c].type = table[c].type;
		cursor.ncolumns = static_cast<uint32_t>(table.size());
		cursor.columns = copy(summaries);
		cursor.ntablets = static_cast<uint32_t>(tablets.size());
		cursor.tablets = copy(tablets);
		return cursor;
	}

	void prepare(Job *job, const ref::SealedProgram &program)
	{
		job->kind = JobKind::Run;
		job->program = copy(program.words);
		job->program_size = program.get()->size;
		job->ncursors = 1;
		job->unit_rows = CPU_VECTOR_ROWS;
		job->nbuffers = job->norder = 0;
		job->sink = JobSink{};
		job->drop_sets = 0;
	}

	/* The table's rows become SET, in the order of the keys, ties in that of ID. */
	void make_set(Backend *backend, const win::Table &table, const std::vector<JobOrderKey> &keys)
	{
		Job		   *job = backend->job;
		const ref::SealedProgram program = ref::copy_program(std::vector<Type>(TYPES, TYPES + NCOLUMNS));

		prepare(job, program);
		job->cursors[0] = put_rows(table);
		job->sink.set = SET;
		job->sink.ncolumns = NCOLUMNS;
		for (uint16_t c = 0; c < NCOLUMNS; c++)
			job->sink.columns[c] = SinkColumn{c, SinkForm::Value};
		std::copy(keys.begin(), keys.end(), job->order);
		job->norder = static_cast<uint32_t>(keys.size());
		if (!keys.empty())
			job->order[job->norder++] = JobOrderKey{ID, 0, 0, 0};
		backend->run();
		ASSERT_EQ(backend->state(), JobState::Done) << backend->failure();
		job->sink = JobSink{};
		job->norder = 0;
	}

	/* The set's columns of these types. */
	win::Table read_set(Backend *backend, const std::vector<Type> &types)
	{
		Job		   *job = backend->job;
		const ref::SealedProgram program = ref::copy_program(types);
		win::Table	table;

		prepare(job, program);
		job->cursors[0] = JobCursor{};
		job->cursors[0].set = SET;
		give_buffers(program.get(), 4, job);

		const ref::Outcome outcome = run(backend, program.get());

		EXPECT_EQ(outcome.errors, 0u);
		for (size_t c = 0; c < types.size(); c++)
		{
			win::Column	column = {types[c], {}};

			for (const std::vector<ref::Value> &row : outcome.rows)
				column.values.push_back(row[c].null ? win::none() : type_is_float(types[c]) ? win::real(row[c].d) : win::number(row[c].i));
			table.push_back(column);
		}
		return table;
	}

	void submit_window(Backend *backend, const JobWindow &window)
	{
		Job		   *job = backend->job;

		job->kind = JobKind::Window;
		job->device = Device::Auto;
		job->device_required = job->nmaps = job->nbuffers = 0;
		job->drop_sets = 0;
		job->window = copy(std::vector<JobWindow>{window});
	}

	void run_window(Backend *backend, const JobWindow &window)
	{
		submit_window(backend, window);
		backend->run();
	}

	static WindowFunction call(WindowFn fn, Type type, uint32_t column = WINDOW_NONE, int64_t n = 1)
	{
		WindowFunction f = {};

		f.fn = fn;
		f.type = type;
		f.column = column;
		f.high = f.filter = f.map = WINDOW_NONE;
		f.number = n;
		return f;
	}

	static JobWindow window_of(const std::vector<JobOrderKey> &keys, uint32_t npartition, const std::vector<WindowFunction> &functions)
	{
		JobWindow	window = {};

		window.set = SET;
		window.npartition = npartition;
		window.norder = static_cast<uint32_t>(keys.size()) - npartition;
		std::copy(keys.begin(), keys.end(), window.keys);
		window.frame = WindowFrame{FrameMode::Range, FrameBound::Unbounded, FrameBound::CurrentRow, RangeUnit::Number, 0, 0, 0};
		window.nfunctions = static_cast<uint32_t>(functions.size());
		std::copy(functions.begin(), functions.end(), window.functions);
		return window;
	}

	static std::vector<WindowKey> keys_of(const JobWindow &window, const CodeMap *maps)
	{
		std::vector<WindowKey> keys;

		for (uint32_t k = 0; k < window.npartition + window.norder; k++)
			keys.push_back(WindowKey{window.keys[k].column, (window.keys[k].flags & ORDER_DESC) != 0, (window.keys[k].flags & ORDER_NULLS_FIRST) != 0,
									 window.keys[k].flags & ORDER_RANKS ? &maps[window.keys[k].map] : nullptr, nullptr});
		return keys;
	}

	/* Columns that the window has appended behind `first`, of a set as it is read, against the reference. */
	void check(const JobWindow &window, const win::Table &set, size_t first, const CodeMap *maps)
	{
		const std::vector<WindowKey> keys = keys_of(window, maps);
		const WindowSpec spec = {keys.data(), window.npartition, window.norder, window.frame, window.functions, window.nfunctions, maps, 1};
		win::Reference reference(spec, set);
		size_t		c = first;

		for (uint32_t f = 0; f < window.nfunctions; f++)
		{
			const WindowFunction &function = window.functions[f];
			const bool	halves = function.type == Type::I128;
			const std::vector<win::Value> expected = reference.run(function);

			for (size_t i = 0; i < expected.size(); i++)
			{
				win::Value	got = set[c].values[i];

				if (halves && !got.null)
					got = win::number(wide_value(static_cast<int64_t>(set[c + 1].values[i].number), static_cast<int64_t>(got.number)));
				ASSERT_TRUE((got.null && expected[i].null) || (!got.null && !expected[i].null && got.number == expected[i].number && got.real == expected[i].real))
					<< "function " << f << ", row " << i;
			}
			c += halves ? 2 : 1;
		}
	}
};

const std::vector<JobOrderKey> BY_PART_ORDER = {{PART, 0, 0, 0}, {ORDER, ORDER_DESC, 0, 0}};

const std::vector<Type> SET_TYPES(TYPES, TYPES + NCOLUMNS);

TEST_F(WindowTest, Appends)
{
	Backend		backend(this);
	const int32_t ranks[] = {3, 1, 4, 0, 2};
	const CodeMap map = {Type::I32, false, 5, ranks, nullptr, {}};
	JobMap		job_map = {Type::I32, {}, 5, 0, 0, copy(std::vector<int32_t>(ranks, ranks + 5)), 0};

	for (size_t nrows : {size_t{700}, size_t{1}, size_t{0}})
	{
		const win::Table table = random_rows(nrows, nrows, 5);
		const uint64_t mark = next_, maps = copy(std::vector<JobMap>{job_map}), known = allocate(7 * sizeof(SetColumn));

		make_set(&backend, table, BY_PART_ORDER);

		JobWindow	window = window_of(BY_PART_ORDER, 1, {call(WindowFn::RowNumber, Type::I64), call(WindowFn::Sum, Type::I128, VALUE),
									   call(WindowFn::Sum, Type::F64, FLOAT), call(WindowFn::Min, Type::I32, CODE), call(WindowFn::Lag, Type::I16, ORDER, 2),
									   call(WindowFn::BoolOr, Type::Bool, BOOL)});

		window.functions[3].map = 0;
		window.functions[1].filter = BOOL;
		window.known = known;
		submit_window(&backend, window);
		backend.job->maps = maps;
		backend.job->nmaps = 1;
		backend.run();
		ASSERT_EQ(backend.state(), JobState::Done) << backend.failure();
		EXPECT_EQ(backend.job->errors, 0u);
		EXPECT_EQ(backend.job->rows_out, nrows);
		EXPECT_EQ(backend.job->ran_on, Device::Cpu);

		/* another window, of a column of the first, in another frame */
		JobWindow	second = window_of(BY_PART_ORDER, 1, {call(WindowFn::Max, Type::I64, NCOLUMNS), call(WindowFn::Count, Type::I64)});

		second.frame = WindowFrame{FrameMode::Range, FrameBound::Preceding, FrameBound::Following, RangeUnit::Number, 0, 3, 1};
		run_window(&backend, second);
		ASSERT_EQ(backend.state(), JobState::Done) << backend.failure();

		std::vector<Type> types = SET_TYPES;

		for (Type type : {Type::I64, Type::I64, Type::I64, Type::F64, Type::I32, Type::I16, Type::Bool, Type::I64, Type::I64})
			types.push_back(type);

		const win::Table set = read_set(&backend, types);

		ASSERT_EQ(set[0].values.size(), nrows);
		check(window, set, NCOLUMNS, &map);
		check(second, set, NCOLUMNS + 7, &map);

		/* what is said of the columns */
		const SetColumn *columns = at<SetColumn>(known);
		uint64_t	nulls = 0;
		int64_t		most = 0;

		for (size_t i = 0; i < nrows; i++)
		{
			nulls += set[NCOLUMNS + 5].values[i].null;
			most = std::max(most, static_cast<int64_t>(set[NCOLUMNS].values[i].number));
		}
		EXPECT_EQ(columns[0].type, Type::I64);
		EXPECT_EQ(columns[0].min, nrows > 0 ? 1 : 0);
		EXPECT_EQ(columns[0].max, most);
		EXPECT_EQ(columns[5].type, Type::I16);
		EXPECT_EQ(columns[5].null_count, nulls);
		backend.job->kind = JobKind::Drop;
		backend.job->drop_sets = uint64_t{1} << SET;
		backend.run();
		EXPECT_EQ(bytes(), 0u);
		next_ = mark;
	}
}

/* Several tablets, all threads. */
TEST_F(WindowTest, Large)
{
	constexpr size_t NROWS = 200000;
	Backend		backend(this);
	const win::Table table = random_rows(7, NROWS, 3);
	std::vector<Type> types = SET_TYPES;

	make_set(&backend, table, BY_PART_ORDER);
	run_window(&backend, window_of(BY_PART_ORDER, 1, {call(WindowFn::RowNumber, Type::I64), call(WindowFn::Rank, Type::I64), call(WindowFn::Sum, Type::I64, VALUE)}));
	ASSERT_EQ(backend.state(), JobState::Done) << backend.failure();
	types.insert(types.end(), 3, Type::I64);

	const win::Table set = read_set(&backend, types);
	int64_t		row = 0, rank = 0, sum = 0;

	ASSERT_EQ(set[0].values.size(), NROWS);
	for (size_t i = 0; i < NROWS; i++)
	{
		auto		differs = [&](uint32_t c) { return i == 0 || !(set[c].values[i].null ? set[c].values[i - 1].null
										  : !set[c].values[i - 1].null && set[c].values[i].number == set[c].values[i - 1].number); };
		auto		get = [&](uint32_t c) { return static_cast<int64_t>(set[c].values[i].number); };

		row = differs(PART) ? 1 : row + 1;
		sum = differs(PART) ? 0 : sum;
		rank = differs(PART) || differs(ORDER) ? row : rank;
		if (rank == row)
			for (size_t j = i; j < NROWS && (j == i || (get(ORDER) == static_cast<int64_t>(set[ORDER].values[j].number) &&
															set[ORDER].values[j].null == set[ORDER].values[i].null &&
															set[PART].values[j].null == set[PART].values[i].null &&
															set[PART].values[j].number == set[PART].values[i].number)); j++)
				sum += static_cast<int64_t>(set[VALUE].values[j].number);
		ASSERT_EQ(get(NCOLUMNS), row) << i;
		ASSERT_EQ(get(NCOLUMNS + 1), rank) << i;
		ASSERT_EQ(get(NCOLUMNS + 2), sum) << i;
	}
}

/* The set is as it was, and can be used. */
TEST_F(WindowTest, Fails)
{
	Backend		backend(this);
	win::Table	table = random_rows(1, 1000, 2);
	const std::vector<WindowFunction> rows = {call(WindowFn::RowNumber, Type::I64)};

	table[VALUE].values[500] = table[VALUE].values[501] = win::number(INT64_MAX);
	make_set(&backend, table, BY_PART_ORDER);

	const uint64_t before = bytes();
	auto		is_as_it_was = [&] {
		EXPECT_EQ(bytes(), before);

		const win::Table set = read_set(&backend, SET_TYPES);

		EXPECT_EQ(set[0].values.size(), 1000u);
	};

	/* a sum that is no int8 */
	run_window(&backend, window_of({}, 0, {call(WindowFn::Sum, Type::I64, VALUE)}));
	EXPECT_EQ(backend.state(), JobState::Done);
	EXPECT_EQ(backend.job->errors, static_cast<uint32_t>(ERR_INT_OVERFLOW));
	is_as_it_was();

	/* memory, of which working needs some beside the columns */
	for (uint64_t more : {uint64_t{0}, uint64_t{33000}})
	{
		context_.arena.header()->result_limit.store(before + more);
		run_window(&backend, window_of(BY_PART_ORDER, 1, rows));
		EXPECT_EQ(backend.state(), JobState::Failed);
		EXPECT_EQ(backend.failure(), "out of memory for result sets");
		is_as_it_was();
	}
	context_.arena.header()->result_limit.store(PLENTY);

	/* a device that must be */
	submit_window(&backend, window_of(BY_PART_ORDER, 1, rows));
	backend.job->device = Device::Cuda;
	backend.job->device_required = 1;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_EQ(backend.failure(), "the result set of the window functions is not on a device");
	submit_window(&backend, window_of(BY_PART_ORDER, 1, rows));
	backend.job->device = Device::Cuda;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	EXPECT_STREQ(backend.job->device_refusal, "the result set of the window functions is not on a device");
	EXPECT_GT(bytes(), before);
}

TEST_F(WindowTest, Canceled)
{
	Backend		backend(this);

	make_set(&backend, random_rows(3, 150000, 2), BY_PART_ORDER);

	const uint64_t before = bytes();

	for (int i = 0; i < 20 && bytes() == before; i++)
	{
		submit_window(&backend, window_of(BY_PART_ORDER, 1, {call(WindowFn::RowNumber, Type::I64), call(WindowFn::Min, Type::I64, VALUE)}));
		backend.submit();
		std::this_thread::sleep_for(std::chrono::microseconds(i * 200));
		backend.job->cancel.store(1);
		backend.ring();
		backend.drain();
		if (backend.state() == JobState::Failed)
		{
			EXPECT_EQ(backend.failure(), "canceled");
			EXPECT_EQ(bytes(), before);
		}
		else
			EXPECT_GT(bytes(), before);
	}
}

TEST_F(WindowTest, NotSorted)
{
	Backend		backend(this);

	make_set(&backend, random_rows(5, 100000, 2), {});
	run_window(&backend, window_of(BY_PART_ORDER, 1, {call(WindowFn::RowNumber, Type::I64)}));
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_EQ(backend.failure(), "the result set of a window is not sorted");
}

TEST_F(WindowTest, Hostile)
{
	Backend		backend(this);

	make_set(&backend, random_rows(9, 100, 2), BY_PART_ORDER);

	const JobWindow good = window_of(BY_PART_ORDER, 1, {call(WindowFn::Sum, Type::I64, VALUE)});
	const uint64_t before = bytes();

#define REFUSED(change) \
	do \
	{ \
		JobWindow	w = good; \
		change; \
		run_window(&backend, w); \
		EXPECT_EQ(backend.state(), JobState::Failed) << #change; \
		EXPECT_EQ(bytes(), before) << #change; \
	} while (0)

	REFUSED(w.set = 0);
	REFUSED(w.set = SET + 1);
	REFUSED(w.set = 64);
	REFUSED(w.set = UINT32_MAX);
	REFUSED(w.npartition = 17);
	REFUSED(w.npartition = UINT32_MAX; w.norder = 2);
	REFUSED(w.norder = 16);
	REFUSED(w.norder = UINT32_MAX);
	REFUSED(w.nfunctions = 0);
	REFUSED(w.nfunctions = 33);
	REFUSED(w.nfunctions = UINT32_MAX);
	REFUSED(w.keys[0].column = NCOLUMNS);
	REFUSED(w.keys[0].flags = 16);
	REFUSED(w.keys[0].flags = ORDER_RANKS);
	REFUSED(w.keys[0].flags = ORDER_TEXT);
	REFUSED(w.functions[0].column = NCOLUMNS);
	REFUSED(w.functions[0].map = 0);
	REFUSED(w.functions[0].filter = ID);
	REFUSED(w.functions[0].fn = static_cast<WindowFn>(200));
	REFUSED(w.functions[0].type = static_cast<Type>(77));
	REFUSED(w.frame.mode = FrameMode::Rows; w.frame.start = FrameBound::Preceding; w.frame.start_offset = -1);
	REFUSED(w.known = ARENA_SIZE - 8);
	REFUSED(w.known = 65537);

	for (uint64_t offset : {uint64_t{0}, uint64_t{65537}, uint64_t{ARENA_SIZE - 8}, UINT64_MAX - 7})
	{
		submit_window(&backend, good);
		backend.job->window = offset;
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Failed) << offset;
	}

	/* more columns than sets have */
	JobWindow	many = window_of(BY_PART_ORDER, 1, std::vector<WindowFunction>(32, call(WindowFn::Sum, Type::I128, VALUE)));

	run_window(&backend, many);
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	run_window(&backend, many);
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_EQ(backend.failure(), "a result set has too many columns");
	run_window(&backend, good);
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
}

}  // namespace
