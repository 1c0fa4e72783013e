/*
 * Result sets: what programs give, in rows and groups, kept and read again by any cursor of later jobs, against the
 * reference interpreter; orders, appended arms, texts; what errors, cancels, limits and ends of sessions leave of them; sets of
 * devices; requests that make no sense.
 */
#include "engine_tables.h"
#include "text_key_tables.h"
#include "vm_generator.h"

#include <functional>

namespace {

std::string
shown_value(Type type, const ref::Value &value)
{
	char		buf[64];

	if (value.null)
		return "null";
	if (type_is_float(type))
		snprintf(buf, sizeof(buf), std::isnan(value.d) ? "nan" : "%a", value.d);
	else if (type == Type::I128)
		snprintf(buf, sizeof(buf), "%lld:%llu", static_cast<long long>(value.x >> 64), static_cast<unsigned long long>(value.x));
	else
		snprintf(buf, sizeof(buf), "%lld", static_cast<long long>(value.i));
	return buf;
}

class SetTest : public TableJobTest
{
public:
	void SetUp() override
	{
		TableJobTest::SetUp();
		context_.arena.header()->result_limit.store(PLENTY);
	}

	void TearDown() override
	{
		/* sessions end after their backends have */
		EXPECT_TRUE(eventually([&] { return sets() == 0 && bytes() == 0; })) << sets() << " sets, " << bytes() << " bytes";
		TableJobTest::TearDown();
	}

	template <typename F>
	static bool eventually(F is_true)
	{
		for (int ms = 0; ms < WAIT_MS && !is_true(); ms++)
			std::this_thread::sleep_for(std::chrono::milliseconds(1));
		return is_true();
	}

	uint32_t	sets() { return context_.arena.header()->sets.load(); }
	uint64_t	bytes() { return context_.arena.header()->result_bytes.load(); }

	void begin(Job *job, const ref::SealedProgram &program)
	{
		job->kind = JobKind::Run;
		job->program = copy(program.words);
		job->program_size = program.get()->size;
		job->ncursors = 1;
		job->cursors[0] = JobCursor{};
		job->nstages = job->norder = job->count_groups = job->skip_bytes = 0;
		job->skip_units = job->row_limit = job->drop_sets = 0;
		job->unit_rows = UNIT_ROWS;
		job->sink = JobSink{};
		job->nparams = job->nmaps = 0;
		job->nbuffers = 0;
		job->result_capacity = UNIT_ROWS;
	}

	/* What the job gives becomes this set, its sums as one integer or as halves. */
	void sink(Job *job, const Program *program, uint32_t set, bool append = false, bool halves = false)
	{
		std::vector<Type> types(program->nresults);

		program_result_types(program, types.data());
		job->sink.set = set;
		job->sink.append = append;
		job->sink.ncolumns = 0;
		for (uint16_t c = 0; c < types.size(); c++)
		{
			if (types[c] == Type::RowId)
				continue;
			job->sink.columns[job->sink.ncolumns++] = SinkColumn{c, types[c] == Type::I128 && halves ? SinkForm::Low : SinkForm::Value};
			if (types[c] == Type::I128 && halves)
				job->sink.columns[job->sink.ncolumns++] = SinkColumn{c, SinkForm::High};
		}
		job->sink.known = allocate(sizeof(SetColumn) * PROGRAM_MAX_COLUMNS);
	}

	/* Runs the job; all rows that come, whatever their units. */
	ref::Outcome take(Backend *backend, const Program *program)
	{
		Job		   *job = backend->job;
		ref::Outcome all;

		backend->submit();
		for (bool last = false; !last;)
		{
			EXPECT_TRUE(backend->wait([=] { return backend->ended() || backend->full_buffer() >= 0; }));
			last = backend->ended();
			for (int b; (b = backend->full_buffer()) >= 0;)
			{
				ResultBuffer &buffer = job->buffers[b];

				ref::read_area(program, at<char>(buffer.offset), job->result_capacity, buffer.nrows, &all);
				all.errors |= buffer.errors;
				buffer.state.store(static_cast<uint32_t>(BufferState::Free));
				if (backend->state() == JobState::Suspended)
					backend->ring();
			}
		}
		all.errors |= job->errors;
		return all;
	}

	ref::Outcome read_set(Backend *backend, uint32_t set, const std::vector<Type> &types)
	{
		const ref::SealedProgram program = ref::copy_program(types);

		begin(backend->job, program);
		backend->job->cursors[0].set = set;
		give_buffers(program.get(), 2, backend->job);

		const ref::Outcome got = take(backend, program.get());

		EXPECT_EQ(backend->state(), JobState::Done) << backend->failure();
		return got;
	}

	void drop(Backend *backend, uint64_t numbers)
	{
		backend->job->kind = JobKind::Drop;
		backend->job->nbuffers = 0;
		backend->job->drop_sets = numbers;
		backend->run();
		EXPECT_EQ(backend->state(), JobState::Done);
		backend->job->drop_sets = 0;
	}

	/* The fixture's table of one column as a set. */
	void make_numbers(Backend *backend, uint32_t set, bool append = false)
	{
		const ref::SealedProgram program = ref::copy_program({Type::I64});

		begin(backend->job, program);
		backend->job->cursors[0] = version_cursor(at<TableVersion>(version_), version_);
		sink(backend->job, program.get(), set, append);
		backend->run();
	}

	/*
	 * The second makes, or adds to, set 1, for which the first's is in the way until it is seen to wait. A session that is
	 * idle for half a second is not waited for, as it may be on a slow machine: then once more.
	 */
	void make_room_late(Backend *keeps, Backend *backend, bool append)
	{
		for (int i = 0; i < 20; i++)
		{
			make_numbers(keeps, 1);
			ASSERT_EQ(keeps->state(), JobState::Done) << keeps->failure();

			std::atomic<bool> ended{false};
			std::thread waits([&]
			{
				make_numbers(backend, 1, append);
				ended = true;
			});

			(void) eventually([&] { return ended || backend->job->waits.load() == WAITS_FOR_MEMORY; });
			drop(keeps, 2);
			waits.join();
			if (backend->state() == JobState::Done)
				break;
		}
		EXPECT_EQ(backend->state(), JobState::Done) << backend->failure();
		EXPECT_GT(backend->job->restarts, 0u);
	}

	void		copy_table(Backend *backend, const ref::Table &table, ref::Rng &rng, uint32_t set);
	void		read_one(Backend *backend, uint64_t seed);
	void		make_one(Backend *backend, uint64_t seed);

	int			clean_ = 0, with_rows_ = 0, joined_ = 0, halved_ = 0, appended_ = 0;
};

/* At once, or tablet by tablet. */
void
SetTest::copy_table(Backend *backend, const ref::Table &table, ref::Rng &rng, uint32_t set)
{
	const ref::SealedProgram program = ref::copy_program(table.types);
	const JobCursor all = put(table, rng);
	const bool	split = table.masked.empty() && all.ntablets > 1 && ref::chance(rng, 50);
	uint64_t	rows = 0;

	for (uint32_t t = 0; t < (split ? all.ntablets : 1); t++)
	{
		Job		   *job = backend->job;

		begin(job, program);
		job->cursors[0] = all;
		if (split)
		{
			job->cursors[0].ntablets = 1;
			job->cursors[0].tablets += t * sizeof(uint64_t);
		}
		sink(job, program.get(), set, t > 0);
		job->threads = static_cast<uint32_t>(ref::pick_int(rng, 4));
		appended_ += t > 0;
		backend->run();
		ASSERT_EQ(backend->state(), JobState::Done) << backend->failure();
		ASSERT_EQ(backend->job->errors, 0u);
		rows += job->rows_out;
	}

	const std::vector<bool> masked = table.masked_bits();
	const SetColumn *known = at<SetColumn>(backend->job->sink.known);
	uint64_t	expected = 0;

	for (uint32_t row = 0; row < table.nrows(); row++)
		expected += !masked[row];
	EXPECT_EQ(rows, expected);
	for (size_t c = 0; c < table.columns.size(); c++)
	{
		uint64_t	nulls = 0;

		EXPECT_EQ(known[c].type, table.types[c]);
		for (uint32_t row = 0; row < table.nrows(); row++)
		{
			const ref::Value &value = table.columns[c].rows[row];

			if (masked[row])
				continue;
			nulls += value.null;
			if (!value.null && type_is_int(table.types[c]))
			{
				EXPECT_LE(known[c].min, value.i);
				EXPECT_GE(known[c].max, value.i);
			}
		}
		EXPECT_EQ(known[c].null_count, nulls);
		EXPECT_EQ((known[c].flags & CHUNK_HAS_NULLS) != 0, nulls > 0);
	}
}

/* Tables as sets: any program over them gives what it gives over the tables. */
void
SetTest::read_one(Backend *backend, uint64_t seed)
{
	ref::Rng	rng(seed);
	const uint64_t mark = next_;
	const bool	tame = ref::chance(rng, 80), grouped = ref::chance(rng, 50);
	const int	ncursors = ref::chance(rng, 50) ? 2 + ref::pick_int(rng, 2) : 1;
	const ref::MapSet maps = ref::random_maps(rng, tame);
	std::vector<ref::Table> tables;
	std::vector<const ref::Table *> pointers;
	JobCursor	cursors[PROGRAM_MAX_CURSORS] = {};
	Job		   *job = backend->job;
	const int	all = ref::pick_int(rng, ncursors);	/* is a set, whatever the others are */
	uint64_t	made = 0;

	if (ncursors == 1)
		tables.push_back(ref::random_table(rng, tame));
	else
		for (int k = 0; k < ncursors; k++)
			tables.push_back(ref::join_table(rng, tame, 1 + static_cast<uint32_t>(ref::pick_int(rng, k == 0 ? 400 : 12)), 150));

	ref::Generator generator(rng, tables[0], tame, &maps);

	generator.rowids = false;

	const ref::SealedProgram program = ncursors == 1 ? generator.make(grouped) : generator.make_join(grouped, ncursors);
	const std::string what = "seed " + std::to_string(seed) + "\n" + ref::program_text(program.get());

	for (int k = 0; k < ncursors; k++)
	{
		const uint32_t set = static_cast<uint32_t>(1 + ref::pick_int(rng, JOB_MAX_SETS));

		if (ref::chance(rng, 60))
			ref::mask_randomly(rng, &tables[static_cast<size_t>(k)]);
		pointers.push_back(&tables[static_cast<size_t>(k)]);
		if ((k != all && ref::chance(rng, 40)) || (made >> set & 1))
		{
			if (k == all)
				return;
			cursors[k] = put(*pointers.back(), rng);
			continue;
		}
		copy_table(backend, *pointers.back(), rng, set);
		ASSERT_FALSE(HasFatalFailure()) << what;
		made |= uint64_t{1} << set;
		cursors[k].set = set;
	}

	const ref::Outcome expected = ref::Interpreter(program.get(), pointers, generator.params.data(), false, maps.maps.data()).run();

	begin(job, program);
	put(maps, job);
	job->ncursors = static_cast<uint32_t>(ncursors);
	std::copy(cursors, cursors + ncursors, job->cursors);
	job->nparams = static_cast<uint32_t>(generator.params.size());
	std::copy(generator.params.begin(), generator.params.end(), job->params);
	job->drop_sets = made;
	give_buffers(program.get(), 1 + static_cast<uint32_t>(ref::pick_int(rng, 4)), job);

	const ref::Outcome got = take(backend, program.get());

	next_ = mark;
	ASSERT_EQ(sets(), 0u) << what;
	ASSERT_EQ(bytes(), 0u) << what;
	/* what a join has to look at is not one thing (vm_join_test.cc) */
	if (ncursors > 1 && (expected.errors != 0 || job->errors != 0))
		return;
	ASSERT_EQ(backend->state(), JobState::Done) << backend->failure() << what;
	ASSERT_EQ(got.errors != 0, expected.errors != 0) << what;
	ASSERT_EQ(got.errors, job->errors) << "a unit has errors of its own " << what;
	if (expected.errors != 0)
		return;
	clean_++;
	joined_ += ncursors > 1;

	std::vector<std::string> got_rows = ref::rows_text(program.get(), got), expected_rows = ref::rows_text(program.get(), expected);

	with_rows_ += !expected_rows.empty();
	std::sort(got_rows.begin(), got_rows.end());
	std::sort(expected_rows.begin(), expected_rows.end());
	ASSERT_EQ(got_rows, expected_rows) << what;
}

TEST_F(SetTest, ReadByRandomPrograms)
{
	const uint64_t n = ref::setting("GPUVM_TEST_PROGRAMS", 300);
	const uint64_t first = ref::setting("GPUVM_TEST_SEED", 1);
	Backend		backend(this);

	for (uint64_t seed = first; seed < first + n && !HasFailure(); seed++)
	{
		read_one(&backend, seed);
		drop(&backend, ~uint64_t{0});
	}
	if (n >= 300)
	{
		EXPECT_GT(clean_, static_cast<int>(n / 3));
		EXPECT_GT(with_rows_, static_cast<int>(n / 5));
		EXPECT_GT(joined_, static_cast<int>(n / 20));
		EXPECT_GT(appended_, static_cast<int>(n / 20));
	}
}

/* Sets of what any program gives: they hold that, and nothing else. */
void
SetTest::make_one(Backend *backend, uint64_t seed)
{
	ref::Rng	rng(seed);
	const uint64_t mark = next_;
	const bool	tame = ref::chance(rng, 80), grouped = ref::chance(rng, 60), halves = ref::chance(rng, 50);
	const int	ncursors = ref::chance(rng, 40) ? 2 + ref::pick_int(rng, 2) : 1;
	const ref::MapSet maps = ref::random_maps(rng, tame);
	std::vector<ref::Table> tables;
	std::vector<const ref::Table *> pointers;
	Job		   *job = backend->job;

	if (ncursors == 1)
		tables.push_back(ref::random_table(rng, tame));
	else
		for (int k = 0; k < ncursors; k++)
			tables.push_back(ref::join_table(rng, tame, 1 + static_cast<uint32_t>(ref::pick_int(rng, k == 0 ? 400 : 12)), 150));

	ref::Generator generator(rng, tables[0], tame, &maps);
	const ref::SealedProgram program = ncursors == 1 ? generator.make(grouped) : generator.make_join(grouped, ncursors);
	const std::string what = "seed " + std::to_string(seed) + "\n" + ref::program_text(program.get());

	begin(job, program);
	put(maps, job);
	job->ncursors = static_cast<uint32_t>(ncursors);
	for (int k = 0; k < ncursors; k++)
	{
		if (ref::chance(rng, 60))
			ref::mask_randomly(rng, &tables[static_cast<size_t>(k)]);
		pointers.push_back(&tables[static_cast<size_t>(k)]);
		job->cursors[k] = put(*pointers.back(), rng);
	}

	const ref::Outcome expected = ref::Interpreter(program.get(), pointers, generator.params.data(), false, maps.maps.data()).run();

	job->nparams = static_cast<uint32_t>(generator.params.size());
	std::copy(generator.params.begin(), generator.params.end(), job->params);
	job->threads = static_cast<uint32_t>(ref::pick_int(rng, 4));
	sink(job, program.get(), 5, false, halves);
	if (job->sink.ncolumns == 0)
		return;
	backend->run();
	if (ncursors > 1 && (expected.errors != 0 || job->errors != 0))
	{
		EXPECT_EQ(sets(), job->errors == 0 && backend->state() == JobState::Done ? 1u : 0u) << what;
		next_ = mark;
		return;
	}
	ASSERT_EQ(backend->state(), JobState::Done) << backend->failure() << what;

	std::vector<Type> results(program.get()->nresults), types;
	const std::vector<SinkColumn> columns(job->sink.columns, job->sink.columns + job->sink.ncolumns);
	bool		overflow = false;

	program_result_types(program.get(), results.data());
	for (const SinkColumn &column : columns)
		types.push_back(results[column.result] == Type::I128 ? Type::I64 : results[column.result]);
	for (const std::vector<ref::Value> &row : expected.rows)
		for (size_t c = 0; c < row.size(); c++)
			overflow = overflow || (results[c] == Type::I128 && !halves && !row[c].null && row[c].x != static_cast<int64_t>(row[c].x));
	ASSERT_EQ(job->errors != 0, expected.errors != 0 || overflow) << what;
	if (job->errors != 0)
	{
		EXPECT_EQ(sets(), 0u) << what;
		EXPECT_EQ(bytes(), 0u) << what;
		next_ = mark;
		return;
	}
	ASSERT_EQ(job->rows_out, expected.rows.size()) << what;

	const ref::Outcome got = read_set(backend, 5, types);
	std::vector<std::string> got_rows, expected_rows;

	for (const std::vector<ref::Value> &row : expected.rows)
	{
		std::string text;

		for (size_t c = 0; c < row.size(); c++)
			if (results[c] != Type::RowId)
				text += shown_value(results[c], row[c]) + " ";
		expected_rows.push_back(text);
	}
	for (const std::vector<ref::Value> &row : got.rows)
	{
		std::string text;

		for (size_t c = 0; c < row.size(); c++)
		{
			const Type	result = results[columns[c].result];
			ref::Value	value = row[c];

			if (columns[c].form == SinkForm::High)
				continue;
			if (result == Type::I128 && halves)
			{
				EXPECT_EQ(row[c].null, row[c + 1].null);
				value.x = wide_value(row[c + 1].i, row[c].i);
				halved_++;
			}
			else if (result == Type::I128)
				value.x = value.i;
			text += shown_value(result, value) + " ";
		}
		got_rows.push_back(text);
	}
	std::sort(got_rows.begin(), got_rows.end());
	std::sort(expected_rows.begin(), expected_rows.end());
	ASSERT_EQ(got_rows, expected_rows) << what;
	clean_++;
	joined_ += ncursors > 1;
	next_ = mark;
}

TEST_F(SetTest, MadeByRandomPrograms)
{
	const uint64_t n = ref::setting("GPUVM_TEST_PROGRAMS", 300);
	const uint64_t first = ref::setting("GPUVM_TEST_SEED", 1);
	Backend		backend(this);

	for (uint64_t seed = first; seed < first + n && !HasFailure(); seed++)
	{
		make_one(&backend, seed);
		drop(&backend, ~uint64_t{0});
	}
	if (n >= 300)
	{
		EXPECT_GT(clean_, static_cast<int>(n / 3));
		EXPECT_GT(joined_, static_cast<int>(n / 20));
		EXPECT_GT(halved_, 0);
	}
}

/* By all threads; the set serves while it is there, and then no more. */
TEST_F(SetTest, LargeOnes)
{
	Backend		backend(this);

	for (int round = 0; round < 3; round++)
	{
		make_numbers(&backend, 1, round > 0);
		ASSERT_EQ(backend.state(), JobState::Done) << backend.failure();
		EXPECT_EQ(backend.job->rows_out, NROWS);
		EXPECT_EQ(sets(), 1u);
		EXPECT_GE(bytes(), (round + 1) * uint64_t{NROWS} * 8);
		EXPECT_EQ(at<SetColumn>(backend.job->sink.known)->min, 0);
		EXPECT_EQ(at<SetColumn>(backend.job->sink.known)->max, NROWS - 1);
	}

	const ref::Outcome got = read_set(&backend, 1, {Type::I64});
	std::vector<uint32_t> seen(NROWS);

	ASSERT_EQ(got.rows.size(), 3 * NROWS);
	for (const std::vector<ref::Value> &row : got.rows)
		seen[static_cast<size_t>(row[0].i)]++;
	EXPECT_EQ(std::count(seen.begin(), seen.end(), 3u), NROWS);
	drop(&backend, 2);
	EXPECT_EQ(sets(), 0u);
	EXPECT_EQ(bytes(), 0u);
}

TEST_F(SetTest, Sorted)
{
	Backend		backend(this);
	const ref::SealedProgram program = ref::copy_program({Type::I64});

	for (uint64_t limit : {uint64_t{0}, uint64_t{1}, uint64_t{100}, uint64_t{NROWS} * 2})
	{
		begin(backend.job, program);
		backend.job->cursors[0] = version_cursor(at<TableVersion>(version_), version_);
		sink(backend.job, program.get(), 1);
		backend.job->norder = 1;
		backend.job->order[0] = JobOrderKey{0, ORDER_DESC, 0, 0};
		backend.job->row_limit = limit;
		backend.run();
		ASSERT_EQ(backend.state(), JobState::Done) << backend.failure();

		const uint64_t n = limit == 0 ? NROWS : std::min<uint64_t>(limit, NROWS);

		ASSERT_EQ(backend.job->rows_out, n);
		EXPECT_EQ(at<SetColumn>(backend.job->sink.known)->min, static_cast<int64_t>(NROWS - n));

		/* one thread meets the set's rows in their order */
		begin(backend.job, program);
		backend.job->cursors[0].set = 1;
		backend.job->threads = 1;
		give_buffers(program.get(), 1, backend.job);
		backend.run();
		ASSERT_EQ(backend.values.size(), n);
		EXPECT_EQ(backend.values.front(), NROWS - 1);
		EXPECT_TRUE(std::is_sorted(backend.values.rbegin(), backend.values.rend()));
		drop(&backend, 2);
	}
}

/* A sum of more than 64 bits has halves, but is no integer. */
TEST_F(SetTest, WideSums)
{
	constexpr int64_t HUGE_VALUE = INT64_MAX - 5;
	Backend		backend(this);
	auto		b = ref::new_builder();
	const int64_t source = RESULT_FROM_AGG;

	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::ResultColumn, Type::I128, 0, 0, 0, b->add_name("c"));
	b->emit(Opcode::AggOpen, Type::None, 0, 1, b->add_aux(&source, 1));

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	const int	v = b->new_reg(Type::I64);

	b->emit(Opcode::Int64, Type::I64, v, 0, 0, HUGE_VALUE);
	b->emit(Opcode::AggStep, Type::I64, 0, v, -1, 0, static_cast<uint8_t>(AggFn::Sum));
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);

	const ref::SealedProgram program = ref::seal(*b);

	for (bool halves : {false, true})
	{
		begin(backend.job, program);
		backend.job->cursors[0] = version_cursor(at<TableVersion>(version_), version_);
		sink(backend.job, program.get(), 1, false, halves);
		backend.run();
		ASSERT_EQ(backend.state(), JobState::Done) << backend.failure();
		EXPECT_EQ(backend.job->errors, halves ? 0u : uint32_t(ERR_INT_OVERFLOW));
		EXPECT_EQ(sets(), halves ? 1u : 0u);
	}

	const ref::Outcome got = read_set(&backend, 1, {Type::I64, Type::I64});

	ASSERT_EQ(got.rows.size(), 1u);
	EXPECT_TRUE(wide_value(got.rows[0][1].i, got.rows[0][0].i) == static_cast<int128>(HUGE_VALUE) * NROWS);
}

/* References stay what they are: keys can be made of them. */
TEST_F(SetTest, Texts)
{
	ref::Rng	rng(1);
	ref::Table	table;
	std::vector<std::string> texts;
	std::map<std::string, int64_t> expected, got;
	const ref::SealedProgram copied = ref::copy_program({Type::I64}), program = ref::group_program(-1);
	Backend		backend(this);

	for (int i = 0; i < 20000; i++)
		expected[texts.emplace_back(rng() % 10 == 0 ? ref::NULL_TEXT : "value " + std::to_string(rng() % 3000))]++;
	table.columns.push_back(ref::column_of(texts));
	table.tablet_rows = {5000, 15000};
	table.build();

	const JobCursor cursor = put(table, rng);

	for (uint32_t t = 0; t < cursor.ntablets; t++)
		place_tablet(at<TabletHeader>(at<uint64_t>(cursor.tablets)[t]), at<uint64_t>(cursor.tablets)[t]);
	begin(backend.job, copied);
	backend.job->cursors[0] = cursor;
	sink(backend.job, copied.get(), 7);
	backend.run();
	ASSERT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_TRUE(at<SetColumn>(backend.job->sink.known)->flags & COLUMN_VARIABLE);

	/* groups of them are references, too */
	begin(backend.job, program);
	backend.job->cursors[0].set = 7;
	sink(backend.job, program.get(), 8);
	backend.run();
	ASSERT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_TRUE(at<SetColumn>(backend.job->sink.known)[0].flags & COLUMN_VARIABLE);
	EXPECT_FALSE(at<SetColumn>(backend.job->sink.known)[1].flags & COLUMN_VARIABLE);

	const ref::Outcome out = read_set(&backend, 8, {Type::I64, Type::I64});

	ASSERT_EQ(out.rows.size(), expected.size());
	for (const std::vector<ref::Value> &row : out.rows)
	{
		TextValue	value = {};

		EXPECT_TRUE(row[0].null || text_value(at<unsigned char>(static_cast<uint64_t>(row[0].i)), 100, -1, &value));
		got[row[0].null ? ref::NULL_TEXT : std::string(reinterpret_cast<const char *>(value.bytes), value.len)] += row[1].i;
	}
	EXPECT_EQ(got, expected);

	/* what looks into them has to find them in a tablet */
	begin(backend.job, ref::group_program(-1, ref::GroupKey::Part));
	backend.job->cursors[0].set = 7;
	give_buffers(program.get(), 1, backend.job);
	backend.run();
	EXPECT_EQ(backend.failure(), "texts are read of a column that has none");

	/* numbers are no references */
	make_numbers(&backend, 9);
	begin(backend.job, program);
	backend.job->cursors[0].set = 9;
	give_buffers(program.get(), 1, backend.job);
	backend.run();
	EXPECT_EQ(backend.failure(), "keys are made of what is no column of texts");
}

/* ---- what is left of a set that does not come about -------------------------------- */

TEST_F(SetTest, MemoryIsBounded)
{
	Backend		backend(this);

	/* one thread: how much room its tablets have is known */
	backend.job->threads = 1;
	context_.arena.header()->result_limit.store(NROWS * 15);
	make_numbers(&backend, 1);
	ASSERT_EQ(backend.state(), JobState::Done) << backend.failure();

	const uint64_t before = bytes();

	make_numbers(&backend, 2);
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_EQ(backend.failure(), "out of memory for result sets");
	make_numbers(&backend, 1, true);
	EXPECT_EQ(backend.failure(), "out of memory for result sets");
	EXPECT_EQ(bytes(), before);
	EXPECT_EQ(sets(), 1u);
	EXPECT_EQ(read_set(&backend, 1, {Type::I64}).rows.size(), NROWS);

	/* sets of other sessions count */
	Backend		other(this);

	other.job->threads = 1;
	make_numbers(&other, 1);
	EXPECT_EQ(other.failure(), "out of memory for result sets");
	drop(&backend, 2);
	make_numbers(&other, 1);
	EXPECT_EQ(other.state(), JobState::Done) << other.failure();
	EXPECT_EQ(sets(), 1u);
}

TEST_F(SetTest, WhoFindsNoRoomWaitsForOtherSessions)
{
	Backend		backend(this), other(this);

	backend.job->threads = other.job->threads = 1;
	context_.arena.header()->result_limit.store(NROWS * 15);
	make_room_late(&backend, &other, false);
	EXPECT_EQ(read_set(&other, 1, {Type::I64}).rows.size(), NROWS);
	EXPECT_EQ(sets(), 1u);

	/* but not for an idle one for long */
	make_numbers(&backend, 1);
	EXPECT_EQ(backend.failure(), "out of memory for result sets");
	EXPECT_GT(backend.job->queue_ns, 0u);
}

TEST_F(SetTest, ErrorsLeaveNone)
{
	Backend		backend(this);

	context_.make_cpu_job = FakeJob::make;
	knobs.error_row = NROWS / 2;
	make_numbers(&backend, 1);
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_EQ(backend.job->errors, uint32_t(ERR_INT_OVERFLOW));
	EXPECT_EQ(bytes(), 0u);
	knobs.error_row = UINT64_MAX;
	make_numbers(&backend, 1);
	EXPECT_EQ(backend.job->errors, 0u);

	const uint64_t before = bytes();

	knobs.error_row = NROWS / 2;
	make_numbers(&backend, 1, true);
	EXPECT_NE(backend.job->errors, 0u);
	knobs.error_row = UINT64_MAX;
	knobs.no_memory = true;
	make_numbers(&backend, 1, true);
	EXPECT_EQ(backend.failure(), "out of memory");
	knobs.no_memory = false;
	EXPECT_EQ(bytes(), before);
	context_.make_cpu_job = CpuJob::create;
	EXPECT_EQ(read_set(&backend, 1, {Type::I64}).rows.size(), NROWS);

	/* a unit over a set cannot be evaluated elsewhere */
	context_.make_cpu_job = FakeJob::make;
	knobs.error_row = 0;

	const ref::SealedProgram program = ref::copy_program({Type::I64});

	begin(backend.job, program);
	backend.job->cursors[0].set = 1;
	give_buffers(program.get(), 1, backend.job);
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_EQ(backend.job->errors, uint32_t(ERR_INT_OVERFLOW));
	for (const auto &[unit, errors] : backend.units)
		EXPECT_EQ(errors, 0u);
}

TEST_F(SetTest, CancelsLeaveNone)
{
	Backend		backend(this);

	context_.make_cpu_job = FakeJob::make;
	for (int i = 0; i < 20; i++)
	{
		const ref::SealedProgram program = ref::copy_program({Type::I64});

		knobs.hold = true;
		knobs.units = 0;
		begin(backend.job, program);
		backend.job->cursors[0] = version_cursor(at<TableVersion>(version_), version_);
		sink(backend.job, program.get(), 1);
		backend.submit();
		ASSERT_TRUE(eventually([&] { return knobs.units > 0; }));
		backend.job->cancel.store(1);
		knobs.hold = false;
		backend.ring();
		ASSERT_TRUE(backend.wait([&] { return backend.ended(); }));
		EXPECT_EQ(backend.failure(), "canceled");
		EXPECT_EQ(sets(), 0u);
		EXPECT_EQ(bytes(), 0u);
	}
	/* too late, as well: Done means that it is there, Failed that it is not */
	for (int us = 0; us < 4000; us += 100)
	{
		const ref::SealedProgram program = ref::copy_program({Type::I64});

		begin(backend.job, program);
		backend.job->cursors[0] = version_cursor(at<TableVersion>(version_), version_);
		sink(backend.job, program.get(), 1);
		backend.submit();
		std::this_thread::sleep_for(std::chrono::microseconds(us));
		backend.job->cancel.store(1);
		backend.ring();
		ASSERT_TRUE(backend.wait([&] { return backend.ended(); }));
		EXPECT_EQ(sets(), backend.state() == JobState::Done ? 1u : 0u);
		drop(&backend, 2);
	}
}

TEST_F(SetTest, SessionsTakeTheirsWithThem)
{
	{
		Backend		one(this), two(this);

		make_numbers(&one, 1);
		make_numbers(&one, 63);
		make_numbers(&two, 1);
		EXPECT_EQ(sets(), 3u);
		begin(two.job, ref::copy_program({Type::I64}));
		two.job->cursors[0].set = 63;
		give_buffers(ref::copy_program({Type::I64}).get(), 1, two.job);
		two.run();
		EXPECT_EQ(two.failure(), "a result set does not exist") << "it is another session's";
		two.hang_up();
		ASSERT_TRUE(eventually([&] { return sets() == 2; }));
	}
	EXPECT_TRUE(eventually([&] { return sets() == 0 && bytes() == 0; }));
}

TEST_F(SetTest, RequestsWithoutSense)
{
	Backend		backend(this);
	const ref::SealedProgram program = ref::copy_program({Type::I64}), two = ref::copy_program({Type::I64, Type::I64});
	const std::vector<std::pair<const char *, std::function<void(Job *)>>> wrongs = {
		{"the job's result set has an unknown number", [](Job *job) { job->sink.set = JOB_MAX_SETS + 1; }},
		{"the job's result set exists already", [](Job *job) { job->sink.set = 1; }},
		{"a result set does not exist", [](Job *job) { job->sink.append = 1; }},
		{"a result set has too many columns", [](Job *job) { job->sink.ncolumns = PROGRAM_MAX_COLUMNS + 1; }},
		{"a result set cannot have such a column", [](Job *job) { job->sink.columns[0].result = 1; }},
		{"a result set cannot have such a column", [](Job *job) { job->sink.columns[0].form = static_cast<SinkForm>(3); }},
		{"a result set is all that the program gives", [](Job *job) { job->nbuffers = 1; }},
		{"a result set is all that the program gives", [](Job *job) { job->row_limit = 5; }},
		{"what is to be known of the result set lies outside the arena", [](Job *job) { job->sink.known = ARENA_SIZE - 8; }},
		{"a result set has other columns than what is added to it", [](Job *job) {
			job->sink.set = 1;
			job->sink.append = 1;
			job->sink.columns[job->sink.ncolumns++] = SinkColumn{0, SinkForm::High};
		}},
		{"the job has no units to skip", [&](Job *job) { job->skip_units = allocate(8); job->skip_bytes = 1; }},
		{"a result set does not exist", [](Job *job) { job->cursors[0] = JobCursor{}; job->cursors[0].set = 3; }},
		{"a result set does not exist", [](Job *job) { job->cursors[0] = JobCursor{}; job->cursors[0].set = JOB_MAX_SETS + 1; }},
		{"a result set does not exist", [](Job *job) { job->cursors[0] = JobCursor{}; job->cursors[0].set = UINT32_MAX; }},
		{"a result set has no other rows", [](Job *job) { job->cursors[0].set = 1; }},
		{"a result set needs no preparation", [](Job *job) { job->kind = JobKind::Prepare; job->cursors[0] = JobCursor{}; job->cursors[0].set = 1; }},
		{nullptr, [&](Job *job) {
			job->program = copy(two.words);
			job->program_size = two.get()->size;
			job->cursors[0] = JobCursor{};
			job->cursors[0].set = 1;
		}},
		{"the rows of a result set are nowhere", [&](Job *job) {
			auto		b = ref::new_builder();

			b->emit(Opcode::Table, Type::None, 0, 0, 0);
			b->emit(Opcode::ResultColumn, Type::RowId, 0, 0, 0, b->add_name("c"));

			const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
			const int	row = b->new_reg(Type::RowId);

			b->emit(Opcode::Rowid, Type::RowId, row, 0, 0);
			b->emit(Opcode::Result, Type::None, row, 1, 0);
			b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
			b->emit(Opcode::Finish, Type::None, 0, 0, 0);

			const ref::SealedProgram rows = ref::seal(*b);

			job->program = copy(rows.words);
			job->program_size = rows.get()->size;
			job->cursors[0] = JobCursor{};
			job->cursors[0].set = 1;
		}},
	};

	make_numbers(&backend, 1);
	for (const auto &[sentence, spoil] : wrongs)
	{
		const uint64_t mark = next_, before = bytes();

		begin(backend.job, program);
		backend.job->cursors[0] = version_cursor(at<TableVersion>(version_), version_);
		sink(backend.job, program.get(), 2);
		spoil(backend.job);
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Failed) << (sentence != nullptr ? sentence : "");
		if (sentence != nullptr)
		{
			EXPECT_EQ(backend.failure(), sentence);
		}
		EXPECT_EQ(sets(), 1u);
		EXPECT_EQ(bytes(), before);
		next_ = mark;
	}
	EXPECT_EQ(read_set(&backend, 1, {Type::I64}).rows.size(), NROWS);
}

/* ---- sets of devices ---------------------------------------------------------------- */

/* Numbers from `first` on, in a device's memory. */
class NumbersOnDevice : public DeviceSet
{
public:
	explicit NumbersOnDevice(std::atomic<int> *alive) : alive_(alive)
	{
		(*alive_)++;
		column.type = Type::I64;
		column.scale = -1;
		column.max = -1;
	}
	~NumbersOnDevice() override { (*alive_)--; }
	uint32_t	device() const override { return 0; }
	uint64_t	rows() const override { return n; }
	uint32_t	ncolumns() const override { return 1; }
	const ColumnSummary *columns() const override { return &column; }
	uint64_t	bytes() const override { return n * 8; }

	uint64_t	n = 0;
	ColumnSummary column = {};

private:
	std::atomic<int> *alive_;
};

/* Adds 1000 numbers to a set with each job, or refuses. */
class SetDevice : public DeviceLibrary
{
public:
	uint32_t ndevices() const override { return 1; }
	void start() override {}
	bool ready() const override { return true; }
	void housekeep() override {}
	void prepare(uint64_t, uint64_t) override {}
	/* what is copied first is learned by itself */
	DeviceEstimate estimate(const DeviceJobRequest &, char *) override { return DeviceEstimate{estimated, 0, copies}; }
	DeviceOutcome run_window(DeviceSet *, const WindowSpec &, DeviceJobIo *, DeviceJobFigures *, char *) override { return DeviceOutcome::Refused; }

	DeviceOutcome run(const DeviceJobRequest &request, DeviceJobIo *, DeviceJobFigures *figures, char *reason) override
	{
		NumbersOnDevice *set = static_cast<NumbersOnDevice *>(request.append_to);

		read = request.set != nullptr ? request.set->rows() : 0;
		if (refuses || !request.sink)
		{
			strcpy(reason, "it does not feel like it");
			return DeviceOutcome::Refused;
		}
		EXPECT_EQ(request.nsink_columns, 1u);
		if (request.sink_limit < 8000)
		{
			strcpy(reason, "its set has no room");
			figures->set_short = 8000;
			return DeviceOutcome::Refused;
		}
		figures->errors = errors;
		if (errors != 0)
			return DeviceOutcome::Done;
		if (set == nullptr)
			set = new NumbersOnDevice(&alive);
		set->n += 1000;
		set->column.max = static_cast<int64_t>(set->n) - 1;
		figures->set = set;
		return DeviceOutcome::Done;
	}

	bool copy_set(const DeviceSet *set, uint64_t first, uint64_t nrows, char *const *values, uint64_t *const *) override
	{
		for (uint64_t i = 0; i < nrows; i++)
			reinterpret_cast<uint64_t *>(values[0])[i] = first + i;
		EXPECT_LE(first + nrows, set->rows());
		return !broken;
	}

	std::atomic<uint64_t> estimated{1};
	std::atomic<bool> copies{false};
	std::atomic<bool> refuses{false}, broken{false};
	std::atomic<uint32_t> errors{0};
	std::atomic<uint64_t> read{0};
	std::atomic<int> alive{0};
};

TEST_F(SetTest, OfDevices)
{
	static SetDevice device;	/* it is never withdrawn */
	Backend		backend(this);

	context_.devices.publish(&device);
	make_numbers(&backend, 1);
	EXPECT_EQ(backend.job->ran_on, Device::Cuda);
	EXPECT_EQ(backend.job->rows_out, 1000u);
	EXPECT_EQ(bytes(), 8000u);
	make_numbers(&backend, 1, true);
	EXPECT_EQ(backend.job->rows_out, 1000u);
	EXPECT_EQ(bytes(), 16000u);
	EXPECT_EQ(at<SetColumn>(backend.job->sink.known)->max, 1999);
	device.errors = ERR_INT_OVERFLOW;
	make_numbers(&backend, 1, true);
	EXPECT_NE(backend.job->errors, 0u);
	device.errors = 0;
	EXPECT_EQ(device.alive, 1);

	/* the way home counts: what would take the device a little longer is its all the same */
	device.estimated = 6000;
	device.copies = true;
	begin(backend.job, ref::copy_program({Type::I64}));
	backend.job->cursors[0].set = 1;
	sink(backend.job, ref::copy_program({Type::I64}).get(), 2);
	backend.run();
	EXPECT_EQ(backend.job->ran_on, Device::Cuda);
	drop(&backend, 4);
	device.estimated = 1;

	/* the CPU reads it, which has it come home */
	EXPECT_EQ(read_set(&backend, 1, {Type::I64}).rows.size(), 2000u);
	EXPECT_EQ(device.read, 2000u) << "the device was asked first";
	EXPECT_EQ(device.alive, 0);
	EXPECT_EQ(sets(), 1u);

	/* what the device makes is added there */
	make_numbers(&backend, 1, true);
	EXPECT_EQ(backend.job->rows_out, 1000u);
	EXPECT_EQ(device.alive, 0);
	EXPECT_EQ(read_set(&backend, 1, {Type::I64}).rows.size(), 3000u);
	device.refuses = true;
	make_numbers(&backend, 1, true);
	EXPECT_EQ(backend.job->ran_on, Device::Cpu);
	EXPECT_EQ(read_set(&backend, 1, {Type::I64}).rows.size(), 3000u + NROWS);
	device.refuses = false;

	/* one that cannot come home */
	make_numbers(&backend, 2);
	device.broken = true;
	begin(backend.job, ref::copy_program({Type::I64}));
	backend.job->cursors[0].set = 2;
	give_buffers(ref::copy_program({Type::I64}).get(), 1, backend.job);
	backend.run();
	EXPECT_EQ(backend.failure(), "a result set could not be copied from the device");
	device.broken = false;

	/* nor be counted */
	drop(&backend, ~uint64_t{0});
	EXPECT_EQ(device.alive, 0);
	context_.arena.header()->result_limit.store(4000);
	make_numbers(&backend, 3);
	EXPECT_EQ(backend.failure(), "out of memory for result sets");
	EXPECT_EQ(backend.job->ran_on, Device::Cpu);
	EXPECT_EQ(device.alive, 0);

	/* what another session keeps is waited for, also by who adds to a set */
	for (bool append : {false, true})
	{
		Backend		other(this);

		context_.arena.header()->result_limit.store(append ? 20000 : 12000);
		if (append)
			make_numbers(&backend, 1);
		make_room_late(&other, &backend, append);
		EXPECT_EQ(backend.job->ran_on, Device::Cuda);
		drop(&backend, 2);
	}

	/* and what comes home counts once */
	make_numbers(&backend, 1);
	EXPECT_EQ(bytes(), 8000u);
	context_.arena.header()->result_limit.store(TABLET_PAD_ROWS * 9);
	device.refuses = true;
	EXPECT_EQ(read_set(&backend, 1, {Type::I64}).rows.size(), 1000u);
	EXPECT_EQ(device.alive, 0);
	EXPECT_GT(bytes(), TABLET_PAD_ROWS * 8u);
	EXPECT_LT(bytes(), TABLET_PAD_ROWS * 9u);
}

}  // namespace
