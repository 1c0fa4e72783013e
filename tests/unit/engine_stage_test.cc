/*
 * Jobs of two programs, the second over the groups of the first: random programs
 * against the reference interpreter, which runs one after the other; what buffers, limits
 * and errors do to them; requests that make no sense.
 */
#include "engine_tables.h"
#include "vm_generator.h"

#include <functional>

namespace {

class StageTest : public TableJobTest
{
public:
	void		run_one(Backend *backend, uint64_t seed);

	void put_stage(Job *job, const ref::SealedProgram &stage)
	{
		job->stages = copy(std::vector<JobStage>{JobStage{copy(stage.words), stage.get()->size, 0}});
		job->nstages = 1;
	}

	/* Of the whole table: its groups by v / divisor, with how many rows and which is the least. */
	ref::SealedProgram groups(int64_t divisor, bool none = false)
	{
		auto		b = ref::new_builder();
		const int64_t sources[] = {0, RESULT_FROM_AGG, RESULT_FROM_AGG | 1};

		b->emit(Opcode::Table, Type::None, 0, 0, 0);
		for (int c = 0; c < 3; c++)
			b->emit(Opcode::ResultColumn, Type::I64, c, 0, 0, b->add_name("c"));
		b->emit(Opcode::AggOpen, Type::None, 1, 2, b->add_aux(sources, 3));

		const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
		const int	v = b->new_reg(Type::I64), by = b->new_reg(Type::I64), key = b->new_reg(Type::I64);
		const int64_t keys[] = {key};

		b->emit(Opcode::Column, Type::I64, v, 0, 0);
		b->emit(Opcode::Int64, Type::I64, by, 0, 0, divisor);
		b->emit(Opcode::Div, Type::I64, key, v, by);
		b->emit(Opcode::Int64, Type::I64, b->new_reg(Type::I64), 0, 0, INT64_MAX / 2);
		if (none)
			b->emit(Opcode::Ge, Type::I64, v, v, b->nops + 1, VERDICT_DIES);
		b->emit(Opcode::Group, Type::None, 1, b->add_aux(keys, 1), 0);
		b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
		b->emit(Opcode::AggStep, Type::I64, 1, v, -1, 0, static_cast<uint8_t>(AggFn::Min));
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
		b->emit(Opcode::Finish, Type::None, 0, 0, 0);
		return ref::seal(*b);
	}

	/* Of these groups: their number (without keys), that of each row count, or one of their columns where it is at least `least`. */
	enum class Then { Count, ByCount, Rows };
	ref::SealedProgram then(Then kind, int column = 0, int64_t least = 0)
	{
		auto		b = ref::new_builder();
		const int64_t sources[] = {kind == Then::ByCount ? int64_t{0} : int64_t{RESULT_FROM_AGG}, RESULT_FROM_AGG};
		const int	nkeys = kind == Then::ByCount ? 1 : 0;

		b->emit(Opcode::Table, Type::None, 0, 0, 0);
		for (int c = 0; c <= nkeys; c++)
			b->emit(Opcode::ResultColumn, Type::I64, c, 0, 0, b->add_name("c"));
		if (kind != Then::Rows)
			b->emit(Opcode::AggOpen, Type::None, nkeys, 1, b->add_aux(sources, 1 + nkeys));

		const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

		if (kind == Then::Rows)
		{
			const int	bound = b->new_reg(Type::I64), v = b->new_reg(Type::I64);

			b->emit(Opcode::Int64, Type::I64, bound, 0, 0, least);
			b->emit(Opcode::Column, Type::I64, v, column, 0);
			b->emit(Opcode::Lt, Type::I64, v, bound, b->nops + 1, VERDICT_DIES);
			b->emit(Opcode::Result, Type::None, v, 1, 0);
		}
		else
		{
			if (nkeys > 0)
			{
				const int64_t key = b->new_reg(Type::I64);

				b->emit(Opcode::Column, Type::I64, static_cast<int>(key), 1, 0);
				b->emit(Opcode::Group, Type::None, 1, b->add_aux(&key, 1), 0);
			}
			b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
		}
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
		b->emit(Opcode::Finish, Type::None, 0, 0, 0);
		return ref::seal(*b);
	}

	void prepare(Backend *backend, const ref::SealedProgram &first, const ref::SealedProgram &second, uint32_t nbuffers = 2)
	{
		Job		   *job = backend->job;

		backend->prepare(true, nbuffers);
		job->count_groups = 0;
		job->skip_units = job->skip_bytes = 0;
		job->row_limit = 0;
		job->program = copy(first.words);
		job->program_size = first.get()->size;
		put_stage(job, second);
		give_buffers(second.get(), nbuffers, job);
	}

	int			clean_ = 0, with_rows_ = 0, with_groups_ = 0, limited_ = 0, joined_ = 0, summed_ = 0;
};

void
StageTest::run_one(Backend *backend, uint64_t seed)
{
	ref::Rng	rng(seed);
	const uint64_t mark = next_;
	const bool	tame = ref::chance(rng, 80), grouped = ref::chance(rng, 60);
	const int	ncursors = ref::chance(rng, 25) ? 2 + ref::pick_int(rng, 2) : 1;
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

	const ref::SealedProgram first = ncursors == 1 ? generator.make(true) : generator.make_join(true, ncursors);

	job->ncursors = static_cast<uint32_t>(ncursors);
	for (int k = 0; k < ncursors; k++)
	{
		if (ref::chance(rng, 60))
			ref::mask_randomly(rng, &tables[static_cast<size_t>(k)]);
		pointers.push_back(&tables[static_cast<size_t>(k)]);
		job->cursors[k] = put(tables[static_cast<size_t>(k)], rng);
	}

	/* Params go on where the first program's end. */
	const ref::Outcome between = ref::Interpreter(first.get(), pointers, generator.params.data(), false, maps.maps.data()).run();
	std::vector<bool> overflows;
	const ref::Table table = ref::table_of(first.get(), between.errors != 0 ? ref::Outcome{} : between, &overflows);
	ref::Generator stage(rng, table, tame, &maps);

	stage.params = generator.params;
	stage.rowids = false;

	const ref::SealedProgram second = stage.make(grouped);
	const std::string what = "seed " + std::to_string(seed) + "\n" + ref::program_text(first.get()) + "\n" + ref::program_text(second.get());

	put(maps, job);
	job->kind = JobKind::Run;
	job->program = copy(first.words);
	job->program_size = first.get()->size;
	put_stage(job, second);
	job->nparams = static_cast<uint32_t>(stage.params.size());
	std::copy(stage.params.begin(), stage.params.end(), job->params);
	job->unit_rows = CPU_VECTOR_ROWS << ref::pick_int(rng, 3);
	give_buffers(second.get(), 1 + static_cast<uint32_t>(ref::pick_int(rng, 4)), job);
	job->count_groups = grouped && ref::chance(rng, 25);
	job->row_limit = !grouped && ref::chance(rng, 25) ? 1 + rng() % 500 : 0;

	const ref::Outcome got = run(backend, second.get());

	next_ = mark;
	ASSERT_EQ(backend->state(), JobState::Done) << what;
	EXPECT_EQ(job->ran_on, Device::Cpu);
	/* what a join has to look at is not one thing (vm_join_test.cc) */
	if (ncursors > 1 && (between.errors != 0 || job->errors != 0))
		return;
	if (between.errors != 0)
	{
		EXPECT_NE(job->errors, 0u) << what;
		return;
	}

	for (int i = 0; i < second.get()->nops; i++)
	{
		const Op   &op = second.get()->ops()[i];

		if (!reads_column(op) || !overflows[static_cast<size_t>(op.p2)])
			continue;
		EXPECT_NE(job->errors, 0u) << what;
		EXPECT_TRUE(got.rows.empty()) << what;
		return;
	}

	const ref::Outcome expected = ref::Interpreter(second.get(), table, stage.params.data(), maps.maps.data()).run();

	/* a limit may be reached before the row that fails */
	if (job->row_limit == 0)
	{
		ASSERT_EQ(got.errors != 0, expected.errors != 0) << what;
	}
	ASSERT_EQ(got.errors, job->errors) << "a unit has errors of its own " << what;
	if (expected.errors != 0)
		return;
	EXPECT_EQ(job->stage_rows, between.rows.size()) << what;
	clean_++;
	joined_ += ncursors > 1;
	with_groups_ += between.rows.size() > 20;

	Type		types[PROGRAM_MAX_COLUMNS];

	program_result_types(first.get(), types);
	for (int i = 0; i < second.get()->nops; i++)
	{
		const Op   &op = second.get()->ops()[i];

		summed_ += reads_column(op) && types[op.p2] == Type::I128;
	}

	std::vector<std::string> got_rows = ref::rows_text(second.get(), got), expected_rows = ref::rows_text(second.get(), expected);

	if (job->count_groups)
	{
		EXPECT_EQ(groups_counted_, expected_rows.size()) << what;
		return;
	}
	with_rows_ += !expected_rows.empty();
	std::sort(got_rows.begin(), got_rows.end());
	std::sort(expected_rows.begin(), expected_rows.end());
	if (job->row_limit > 0 && got_rows.size() < expected_rows.size())
	{
		limited_++;
		EXPECT_GE(got_rows.size(), job->row_limit) << what;
		EXPECT_TRUE(std::includes(expected_rows.begin(), expected_rows.end(), got_rows.begin(), got_rows.end())) << what;
		return;
	}
	ASSERT_EQ(got_rows.size(), expected_rows.size()) << what;
	for (size_t i = 0; i < got_rows.size(); i++)
		ASSERT_EQ(got_rows[i], expected_rows[i]) << "row " << i << " " << what;
}

TEST_F(StageTest, RandomPrograms)
{
	const uint64_t n = ref::setting("GPUVM_TEST_PROGRAMS", 300);
	const uint64_t first = ref::setting("GPUVM_TEST_SEED", 1);
	Backend		backend(this);

	for (uint64_t seed = first; seed < first + n && !HasFailure(); seed++)
		run_one(&backend, seed);
	if (n >= 300)
	{
		EXPECT_GT(clean_, static_cast<int>(n / 3));
		EXPECT_GT(with_rows_, static_cast<int>(n / 5));
		EXPECT_GT(with_groups_, static_cast<int>(n / 20));
		EXPECT_GT(joined_, static_cast<int>(n / 20));
		EXPECT_GT(summed_, 0);
	}
}

/* Every row is a group: helpers make the table, and run over it. */
TEST_F(StageTest, ManyGroups)
{
	Backend		backend(this);

	prepare(&backend, groups(1), then(Then::Rows, 2), 8);
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	backend.expect_whole_table();
	EXPECT_EQ(backend.job->rows_in, NROWS);
	EXPECT_EQ(backend.job->stage_rows, NROWS);
	EXPECT_EQ(backend.job->rows_out, NROWS);
	EXPECT_EQ(backend.job->bytes_read, NTABLETS * 3 * TABLET_PAD_ROWS * 2ull) << "the table's, which are narrowed";
	EXPECT_EQ(backend.job->tablets_scanned, NTABLETS);

	prepare(&backend, groups(1), then(Then::Count));
	backend.run();
	EXPECT_EQ(backend.values, std::vector<uint64_t>{NROWS});

	/* the last group has the rest of the rows */
	prepare(&backend, groups(3), then(Then::ByCount));
	backend.job->count_groups = 1;
	backend.run();
	EXPECT_EQ(backend.values, std::vector<uint64_t>{2});
}

TEST_F(StageTest, NoGroups)
{
	Backend		backend(this);

	for (Then kind : {Then::Count, Then::ByCount, Then::Rows})
	{
		prepare(&backend, groups(10, true), then(kind));
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
		EXPECT_EQ(backend.job->stage_rows, 0u);
		EXPECT_EQ(backend.values, kind == Then::Count ? std::vector<uint64_t>{0} : std::vector<uint64_t>{});
	}
}

TEST_F(StageTest, SuspendsWhenNobodyTakesRows)
{
	Backend		backend(this);

	prepare(&backend, groups(1), then(Then::Rows));
	backend.submit();
	ASSERT_TRUE(eventually([&] { return backend.state() == JobState::Suspended && backend.job->engine_waiting == 1; }));
	EXPECT_LE(backend.job->rows_out, 2 * UNIT_ROWS);
	backend.drain();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	backend.expect_whole_table();
}

TEST_F(StageTest, StopsAtTheLimit)
{
	Backend		backend(this);

	prepare(&backend, groups(1), then(Then::Rows));
	backend.job->row_limit = 10;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_GE(backend.values.size(), 10u);
	EXPECT_LT(backend.values.size(), NROWS);
}

TEST_F(StageTest, IsCanceled)
{
	Backend		backend(this);

	prepare(&backend, groups(1), then(Then::Rows));
	backend.submit();
	ASSERT_TRUE(eventually([&] { return backend.state() == JobState::Suspended && backend.job->engine_waiting == 1; }));
	backend.job->cancel.store(1);
	backend.ring();
	ASSERT_TRUE(backend.wait([&] { return backend.ended(); }));
	EXPECT_EQ(backend.failure(), "canceled");

	/* before the second program as well as in it */
	for (int us = 0; us < 20000; us += 500)
	{
		prepare(&backend, groups(1), then(Then::Rows), 8);
		backend.submit();
		std::this_thread::sleep_for(std::chrono::microseconds(us));
		backend.job->cancel.store(1);
		backend.ring();
		ASSERT_TRUE(backend.wait([&] { return backend.ended(); }));
		EXPECT_TRUE(backend.state() == JobState::Done || backend.failure() == "canceled") << backend.failure();
	}
}

/* Of either program; nobody can evaluate a unit by other means. */
TEST_F(StageTest, ErrorsEndTheJob)
{
	Backend		backend(this);

	prepare(&backend, groups(0), then(Then::Rows));
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_EQ(backend.job->errors, uint32_t(ERR_DIVISION_BY_ZERO));
	EXPECT_TRUE(backend.values.empty());
	EXPECT_EQ(backend.job->stage_rows, 0u);

	for (uint32_t nbuffers : {2u, 8u})
	{
		auto		b = ref::new_builder();

		b->emit(Opcode::Table, Type::None, 0, 0, 0);
		b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("c"));

		const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
		const int	v = b->new_reg(Type::I64), quotient = b->new_reg(Type::I64);

		b->emit(Opcode::Column, Type::I64, v, 2, 0);
		b->emit(Opcode::Div, Type::I64, quotient, v, v);
		b->emit(Opcode::Result, Type::None, quotient, 1, 0);
		b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
		b->emit(Opcode::Finish, Type::None, 0, 0, 0);
		prepare(&backend, groups(1), ref::seal(*b), nbuffers);
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
		EXPECT_EQ(backend.job->errors, uint32_t(ERR_DIVISION_BY_ZERO));
		for (const auto &[unit, errors] : backend.units)
			EXPECT_EQ(errors, 0u);
	}
}

/* A sum is 64 bits wide for the stage, if it reads it. */
TEST_F(StageTest, SumsThatAreNoInt8)
{
	constexpr int64_t HALF = INT64_MAX / 2;
	Backend		backend(this);

	for (int64_t divisor : {2, 3})
		for (bool read : {true, false})
		{
			ref::SealedProgram sums = groups(divisor);
			Program    *program = reinterpret_cast<Program *>(sums.words.data());

			/* each row counts as half of what fits; the last group may have fewer rows */
			for (int i = 0; i < program->nops; i++)
			{
				Op		   &op = const_cast<Op &>(program->ops()[i]);

				if (op.opcode == Opcode::ResultColumn && op.p1 == 2)
					op.type = Type::I128;
				if (op.opcode == Opcode::AggStep && op.p1 == 1)
				{
					op.p2 = program->nregs - 1;
					op.p5 = static_cast<uint8_t>(AggFn::Sum);
				}
			}
			program->hash = hash_program(program);
			prepare(&backend, sums, then(Then::Rows, read ? 2 : 1, read ? HALF : 2));
			backend.run();
			EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
			if (read && divisor == 3)
			{
				EXPECT_EQ(backend.job->errors, uint32_t(ERR_INT_OVERFLOW));
				EXPECT_TRUE(backend.values.empty());
				continue;
			}
			EXPECT_EQ(backend.job->errors, 0u);
			ASSERT_FALSE(backend.values.empty());
			EXPECT_EQ(*std::max_element(backend.values.begin(), backend.values.end()), read ? 2 * HALF : divisor);
		}
}

/* The fake virtual machine has as many groups as it is told. */
TEST_F(StageTest, MemoryRunsOut)
{
	context_.make_cpu_job = FakeJob::make;

	Backend		backend(this);

	knobs.groups = uint64_t(1) << 46;
	prepare(&backend, groups(1), then(Then::Rows));
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_EQ(backend.failure(), "out of memory");

	knobs.groups = 1;
	knobs.no_memory = true;
	prepare(&backend, groups(1), then(Then::Rows));
	backend.run();
	EXPECT_EQ(backend.failure(), "out of memory");
}

TEST_F(StageTest, RequestsWithoutSense)
{
	Backend		backend(this);
	const std::vector<std::pair<const char *, std::function<void(Job *)>>> wrongs = {
		{"the job has too many stages", [](Job *job) { job->nstages = JOB_MAX_STAGES + 1; }},
		{"the job has too many stages", [](Job *job) { job->nstages = UINT32_MAX; }},
		{"the job's stages lie outside the arena", [](Job *job) { job->stages = ARENA_SIZE - 8; }},
		{"the job's stages lie outside the arena", [](Job *job) { job->stages = UINT64_MAX - 7; }},
		{"a stage's program lies outside the arena", [&](Job *job) { at<JobStage>(job->stages)->program = ARENA_SIZE - 64; }},
		{"a stage's program lies outside the arena", [&](Job *job) { at<JobStage>(job->stages)->program += 1; }},
		{"a stage's program lies outside the arena", [&](Job *job) { at<JobStage>(job->stages)->program_size = 16; }},
		{"a stage's program lies outside the arena", [&](Job *job) { at<JobStage>(job->stages)->program_size = UINT32_MAX; }},
		{"a stage reads a program that has no groups", [&](Job *job) {
			const ref::SealedProgram rows = then(Then::Rows);

			job->program = copy(rows.words);
			job->program_size = rows.get()->size;
		}},
		{nullptr, [&](Job *job) { put_stage(job, then(Then::Rows, 3)); }},
		{nullptr, [&](Job *job) { put_stage(job, then(Then::Rows, -1)); }},
		{nullptr, [&](Job *job) {
			ref::SealedProgram stage = then(Then::Rows);
			Program    *program = reinterpret_cast<Program *>(stage.words.data());

			for (int i = 0; i < program->nops; i++)
				if (program->ops()[i].opcode == Opcode::Column)
					const_cast<Op &>(program->ops()[i]).type = Type::I32;
			program->hash = hash_program(program);
			put_stage(job, stage);
		}},
		{nullptr, [&](Job *job) {
			ref::SealedProgram stage = then(Then::Rows);
			Program    *program = reinterpret_cast<Program *>(stage.words.data());

			program->hash++;
			put_stage(job, stage);
		}},
		{"the rows of a stage are nowhere", [&](Job *job) {
			auto		b = ref::new_builder();

			b->emit(Opcode::Table, Type::None, 0, 0, 0);
			b->emit(Opcode::ResultColumn, Type::RowId, 0, 0, 0, b->add_name("c"));

			const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
			const int	row = b->new_reg(Type::RowId);

			b->emit(Opcode::Rowid, Type::RowId, row, 0, 0);
			b->emit(Opcode::Result, Type::None, row, 1, 0);
			b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
			b->emit(Opcode::Finish, Type::None, 0, 0, 0);
			put_stage(job, ref::seal(*b));
		}},
		{"a parameter is missing", [&](Job *job) {
			auto		b = ref::new_builder();

			b->emit(Opcode::Table, Type::None, 0, 0, 0);
			b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("c"));

			const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
			const int	v = b->new_reg(Type::I64);

			b->emit(Opcode::Variable, Type::I64, v, 0, 0);
			b->emit(Opcode::Result, Type::None, v, 1, 0);
			b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
			b->emit(Opcode::Finish, Type::None, 0, 0, 0);
			put_stage(job, ref::seal(*b));
		}},
		{"a map is missing", [&](Job *job) {
			auto		b = ref::new_builder();

			b->emit(Opcode::Table, Type::None, 0, 0, 0);
			b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("c"));

			const int	parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
			const int	code = b->new_reg(Type::I32), v = b->new_reg(Type::I64);

			b->emit(Opcode::Integer, Type::I32, code, 0, 0);
			b->emit(Opcode::Lookup, Type::I64, v, 0, code);
			b->emit(Opcode::Result, Type::None, v, 1, 0);
			b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
			b->emit(Opcode::Finish, Type::None, 0, 0, 0);
			put_stage(job, ref::seal(*b));
		}},
		{"a program of rows has no groups to count", [](Job *job) { job->count_groups = 1; }},
		{"a grouped program has no units to skip", [&](Job *job) { job->skip_units = allocate(8); job->skip_bytes = 1; }},
		{"the job's unit does not fit a result buffer", [](Job *job) { job->unit_rows = 2 * UNIT_ROWS; }},
		{"a result buffer lies outside the arena", [](Job *job) { job->buffers[1].offset = ARENA_SIZE - 4096; }},
	};

	for (const auto &[sentence, spoil] : wrongs)
	{
		const uint64_t mark = next_;

		prepare(&backend, groups(100), then(Then::Rows));
		spoil(backend.job);
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Failed) << (sentence != nullptr ? sentence : "");
		if (sentence != nullptr)
		{
			EXPECT_EQ(backend.failure(), sentence);
		}
		EXPECT_TRUE(backend.values.empty());
		next_ = mark;
	}
	prepare(&backend, groups(100), then(Then::Rows));
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_EQ(backend.values.size(), NROWS / 100);
}

/* Whatever a damaged second program is, it is refused or runs. */
TEST_F(StageTest, DamagedPrograms)
{
	Backend		backend(this);
	int			ran = 0;

	for (uint64_t seed = 0; seed < 300; seed++)
	{
		ref::Rng	rng(seed);
		const uint64_t mark = next_;
		ref::SealedProgram stage = then(static_cast<Then>(ref::pick_int(rng, 3)));
		Program    *program = reinterpret_cast<Program *>(stage.words.data());
		Op		   *ops = const_cast<Op *>(program->ops());
		Op		   &op = ops[ref::pick_int(rng, program->nops)];

		prepare(&backend, groups(1000), stage);
		switch (ref::pick_int(rng, 6))
		{
			case 0: op.opcode = static_cast<Opcode>(ref::pick_int(rng, static_cast<int>(Opcode::Count_))); break;
			case 1: op.type = ref::VALUE_TYPES[ref::pick_int(rng, 6)]; break;
			case 2: op.p1 += ref::pick_int(rng, 5) - 2; break;
			case 3: op.p2 += ref::pick_int(rng, 5) - 2; break;
			case 4: op.p3 += ref::pick_int(rng, 5) - 2; break;
			default: stage.words[rng() % (program->size / 8)] ^= uint64_t(1) << rng() % 64; break;
		}
		program->hash = hash_program(program);
		put_stage(backend.job, stage);
		backend.run();
		ran += backend.state() == JobState::Done;
		next_ = mark;
	}
	EXPECT_GT(ran, 10);
}

}  // namespace
