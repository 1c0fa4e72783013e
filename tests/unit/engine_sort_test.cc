/*
 * Sorted jobs, from the request to the last buffer: random programs of rows and groups, joins and stages with random
 * orders against the reference interpreter; what limits, buffers, errors and memory do to them.
 */
#include "engine_tables.h"
#include "vm_generator.h"

#include <cmath>

namespace {

struct Key
{
	Type		type;
	JobOrderKey order;
	const CodeMap *map;			/* ranks, or nullptr */
};

/* PostgreSQL's comparison of two values that are not null. */
int
compare_values(Type type, const ref::Value &a, const ref::Value &b)
{
	if (type_is_float(type))
	{
		if (std::isnan(a.d) || std::isnan(b.d))
			return static_cast<int>(std::isnan(a.d)) - static_cast<int>(std::isnan(b.d));
		return (a.d > b.d) - (a.d < b.d);
	}
	if (type == Type::I128)
		return (a.x > b.x) - (a.x < b.x);
	return (a.i > b.i) - (a.i < b.i);
}

ref::Value
ranked(const CodeMap &map, const ref::Value &code)
{
	ref::Value	rank;
	const uint32_t i = static_cast<uint32_t>(code.i);

	rank.null = code.null || i >= map.nentries || (map.nulls != nullptr && bit_get(map.nulls, i));
	if (!rank.null)
		rank.i = map.type == Type::I64 ? static_cast<const int64_t *>(map.values)[i] : static_cast<const int32_t *>(map.values)[i];
	return rank;
}

int
compare_rows(const std::vector<Key> &keys, const std::vector<ref::Value> &a, const std::vector<ref::Value> &b)
{
	for (const Key &key : keys)
	{
		const ref::Value av = key.map != nullptr ? ranked(*key.map, a[key.order.column]) : a[key.order.column];
		const ref::Value bv = key.map != nullptr ? ranked(*key.map, b[key.order.column]) : b[key.order.column];

		if (av.null && bv.null)
			continue;
		if (av.null || bv.null)
			return av.null == ((key.order.flags & ORDER_NULLS_FIRST) != 0) ? -1 : 1;

		const int	cmp = compare_values(key.map != nullptr ? Type::I64 : key.type, av, bv);

		if (cmp != 0)
			return key.order.flags & ORDER_DESC ? -cmp : cmp;
	}
	return 0;
}

class SortTest : public TableJobTest
{
public:
	void		run_one(Backend *backend, uint64_t seed);

	/* The program's results, sorted somehow; empty: it has none. */
	std::vector<Key> random_order(ref::Rng &rng, const Program *program, const ref::MapSet &maps, Job *job)
	{
		std::vector<Type> types(program->nresults);
		std::vector<Key> keys;

		program_result_types(program, types.data());
		job->norder = 0;
		for (int n = 1 + ref::pick_int(rng, ref::chance(rng, 20) ? 8 : 2); n > 0 && !types.empty(); n--)
		{
			Key			key = {};

			key.order.column = static_cast<uint32_t>(ref::pick_int(rng, program->nresults));
			key.type = types[key.order.column];
			if (key.type == Type::RowId)
				continue;
			key.order.flags = static_cast<uint32_t>(rng()) & (ORDER_DESC | ORDER_NULLS_FIRST);
			key.order.map = static_cast<uint32_t>(rng());
			for (size_t m = 0; key.type == Type::I32 && m < maps.maps.size(); m++)
				if ((maps.maps[m].type == Type::I32 || maps.maps[m].type == Type::I64) && ref::chance(rng, 30))
				{
					key.order.flags |= ORDER_RANKS;
					key.order.map = static_cast<uint32_t>(m);
					key.map = &maps.maps[m];
					break;
				}
			keys.push_back(key);
			job->order[job->norder++] = key.order;
		}
		return keys;
	}

	/* The buffer that has the unit, which is Full if that of any later unit was before; -1: none is. */
	int buffer_of(const Backend &backend, uint32_t unit)
	{
		const bool	later = backend.full_buffer() >= 0;

		for (uint32_t i = 0; i < backend.job->nbuffers; i++)
			if (backend.job->buffers[i].state.load() == static_cast<uint32_t>(BufferState::Full) && backend.job->buffers[i].unit == unit)
				return static_cast<int>(i);
		EXPECT_FALSE(later) << "unit " << unit << " comes behind a later one";
		return -1;
	}

	/* Rows of the fixture's table, in descending order. */
	void prepare(Backend *backend, bool grouped, uint32_t nbuffers, uint64_t limit)
	{
		backend->prepare(grouped, nbuffers);
		backend->job->norder = 1;
		backend->job->order[0] = JobOrderKey{0, ORDER_DESC, 0, 0};
		backend->job->row_limit = limit;
	}

	int			clean_ = 0, joined_ = 0, staged_ = 0, grouped_ = 0, limited_ = 0, by_ranks_ = 0, failed_ = 0;
};

void
SortTest::run_one(Backend *backend, uint64_t seed)
{
	ref::Rng	rng(seed);
	const uint64_t mark = next_;
	const bool	tame = ref::chance(rng, 80), staged = ref::chance(rng, 25), grouped = staged || ref::chance(rng, 40);
	const bool	stage_grouped = ref::chance(rng, 50);
	const int	ncursors = ref::chance(rng, 35) ? 2 + ref::pick_int(rng, 2) : 1;
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

	generator.wide_sums = !staged;

	const ref::SealedProgram first = ncursors == 1 ? generator.make(grouped) : generator.make_join(grouped, ncursors);

	job->ncursors = static_cast<uint32_t>(ncursors);
	for (int k = 0; k < ncursors; k++)
	{
		if (ref::chance(rng, 60))
			ref::mask_randomly(rng, &tables[static_cast<size_t>(k)]);
		pointers.push_back(&tables[static_cast<size_t>(k)]);
		job->cursors[k] = put(tables[static_cast<size_t>(k)], rng);
	}

	ref::Outcome expected = ref::Interpreter(first.get(), pointers, generator.params.data(), false, maps.maps.data()).run();
	const bool	errors_between = staged && expected.errors != 0;
	std::vector<ParamValue> params = generator.params;
	ref::SealedProgram last = first;

	job->stages = 0;
	job->nstages = 0;
	if (staged)
	{
		const ref::Table table = ref::table_of(first.get(), errors_between ? ref::Outcome{} : expected);
		ref::Generator stage(rng, table, tame, &maps);

		stage.params = params;
		stage.rowids = false;
		last = stage.make(stage_grouped);
		params = stage.params;
		if (!errors_between)
			expected = ref::Interpreter(last.get(), table, params.data(), maps.maps.data()).run();
		job->stages = copy(std::vector<JobStage>{JobStage{copy(last.words), last.get()->size, 0}});
		job->nstages = 1;
	}

	const std::vector<Key> keys = random_order(rng, last.get(), maps, job);
	const std::string what = "seed " + std::to_string(seed) + "\n" + ref::program_text(first.get()) + (staged ? "\n" + ref::program_text(last.get()) : "");

	if (keys.empty())
	{
		next_ = mark;
		return;
	}
	put(maps, job);
	job->kind = JobKind::Run;
	job->program = copy(first.words);
	job->program_size = first.get()->size;
	job->nparams = static_cast<uint32_t>(params.size());
	std::copy(params.begin(), params.end(), job->params);
	job->unit_rows = CPU_VECTOR_ROWS << ref::pick_int(rng, 3);
	give_buffers(last.get(), 1 + static_cast<uint32_t>(ref::pick_int(rng, 4)), job);
	job->count_groups = 0;
	job->skip_units = job->skip_bytes = 0;
	job->row_limit = ref::chance(rng, 40) ? 1 + rng() % (ref::chance(rng, 50) ? 10 : 3000) : 0;
	job->job_memory = 0;

	const uint64_t limit = job->row_limit;
	const ref::Outcome got = run(backend, last.get());

	next_ = mark;
	ASSERT_EQ(backend->state(), JobState::Done) << what;
	EXPECT_EQ(job->ran_on, Device::Cpu);
	EXPECT_EQ(got.errors, job->errors) << "a unit has errors of its own " << what;
	if (job->errors != 0)
	{
		EXPECT_TRUE(got.rows.empty()) << what;
		failed_++;
	}
	/* what a join has to look at is not one thing (vm_join_test.cc) */
	if (ncursors > 1 && (expected.errors != 0 || job->errors != 0))
		return;
	ASSERT_EQ(job->errors != 0, expected.errors != 0) << what;
	if (job->errors != 0)
		return;

	const auto	less = [&](const std::vector<ref::Value> &a, const std::vector<ref::Value> &b) { return compare_rows(keys, a, b) < 0; };
	std::vector<std::string> got_rows = ref::rows_text(last.get(), got), expected_rows = ref::rows_text(last.get(), expected);
	const size_t n = limit > 0 ? std::min<size_t>(limit, expected.rows.size()) : expected.rows.size();

	ASSERT_EQ(got.rows.size(), n) << what;
	EXPECT_EQ(job->rows_out, n) << what;
	std::stable_sort(expected.rows.begin(), expected.rows.end(), less);
	for (size_t i = 0; i < n; i++)
		ASSERT_EQ(compare_rows(keys, got.rows[i], expected.rows[i]), 0) << "row " << i << " " << what;
	std::sort(got_rows.begin(), got_rows.end());
	std::sort(expected_rows.begin(), expected_rows.end());
	EXPECT_TRUE(std::includes(expected_rows.begin(), expected_rows.end(), got_rows.begin(), got_rows.end())) << what;
	clean_ += n > 1;
	joined_ += n > 1 && ncursors > 1;
	staged_ += n > 1 && staged;
	grouped_ += n > 1 && last.get()->grouped;
	limited_ += n < expected.rows.size();
	for (const Key &key : keys)
		by_ranks_ += key.map != nullptr && n > 1;
}

TEST_F(SortTest, RandomPrograms)
{
	const uint64_t n = ref::setting("GPUVM_TEST_PROGRAMS", 400);
	const uint64_t first = ref::setting("GPUVM_TEST_SEED", 1);
	Backend		backend(this);

	for (uint64_t seed = first; seed < first + n && !HasFailure(); seed++)
		run_one(&backend, seed);
	if (n >= 400 && !HasFailure())
	{
		EXPECT_GT(clean_, static_cast<int>(n / 6));
		EXPECT_GT(joined_, static_cast<int>(n / 40));
		EXPECT_GT(staged_, static_cast<int>(n / 160));
		EXPECT_GT(grouped_, static_cast<int>(n / 20));
		EXPECT_GT(limited_, static_cast<int>(n / 40));
		EXPECT_GT(by_ranks_, static_cast<int>(n / 80));
		EXPECT_GT(failed_, static_cast<int>(n / 80));
	}
}

/* Helpers collect, sort and fill buffers; units say the order. */
TEST_F(SortTest, ManyRows)
{
	Backend		backend(this);

	context_.make_cpu_job = FakeJob::make;
	for (uint32_t nbuffers : {1u, 8u})
	{
		std::map<uint32_t, std::vector<uint64_t>> units;

		prepare(&backend, false, nbuffers, 0);
		backend.submit();
		for (bool ended = false; !ended;)
		{
			ASSERT_TRUE(backend.wait([&] { return backend.ended() || backend.full_buffer() >= 0; }));
			ended = backend.ended();
			/* a unit is there when all before it are */
			for (int b; (b = buffer_of(backend, static_cast<uint32_t>(units.size()))) >= 0;)
			{
				const size_t unit = units.size();

				backend.values.clear();
				backend.take(b);
				units[static_cast<uint32_t>(unit)] = backend.values;
				if (backend.state() == JobState::Suspended)
					backend.ring();
			}
			ASSERT_EQ(ended ? backend.full_buffer() : -1, -1);
		}
		EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
		ASSERT_EQ(units.size(), (NROWS + UNIT_ROWS - 1) / UNIT_ROWS);

		uint64_t	next = NROWS;

		for (const auto &[unit, values] : units)
			for (uint64_t value : values)
				ASSERT_EQ(value, --next) << "unit " << unit;
		EXPECT_EQ(next, 0u);
		EXPECT_EQ(backend.job->rows_in, NROWS);
		EXPECT_EQ(backend.job->rows_out, NROWS);
	}
}

TEST_F(SortTest, LimitsAreExact)
{
	Backend		backend(this);

	context_.make_cpu_job = FakeJob::make;
	for (uint64_t limit : {uint64_t(1), uint64_t(100), uint64_t(UNIT_ROWS + 1), uint64_t(NROWS - 1), uint64_t(NROWS), uint64_t(NROWS + 1), uint64_t(UINT64_MAX)})
	{
		prepare(&backend, false, 4, limit);
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
		ASSERT_EQ(backend.values.size(), std::min<uint64_t>(limit, NROWS));
		EXPECT_EQ(*std::min_element(backend.values.begin(), backend.values.end()), NROWS - backend.values.size());
	}

	/* groups */
	knobs.groups = 50000;
	for (uint64_t limit : {0, 1, 49999})
	{
		prepare(&backend, true, 4, limit);
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();

		const uint64_t sum = uint64_t(NROWS) * (NROWS - 1) / 2, n = limit > 0 ? limit : 50000;

		ASSERT_EQ(backend.values.size(), n);
		EXPECT_EQ(*std::min_element(backend.values.begin(), backend.values.end()), sum + 50000 - n);
		EXPECT_EQ(*std::max_element(backend.values.begin(), backend.values.end()), sum + 49999);
	}
}

/* Nothing is handed over before the last row was looked at. */
TEST_F(SortTest, ErrorsComeBeforeRows)
{
	Backend		backend(this);

	context_.make_cpu_job = FakeJob::make;
	for (uint64_t limit : {0, 10})
	{
		prepare(&backend, false, 4, limit);
		knobs.error_row = NROWS - 1;
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
		EXPECT_EQ(backend.job->errors, uint32_t(ERR_INT_OVERFLOW));
		EXPECT_TRUE(backend.units.empty());
		knobs.error_row = UINT64_MAX;
	}
}

TEST_F(SortTest, SuspendsWhenNobodyTakesRows)
{
	Backend		backend(this);

	prepare(&backend, false, 2, 0);
	backend.submit();
	ASSERT_TRUE(eventually([&] { return backend.state() == JobState::Suspended && backend.job->engine_waiting == 1; }));
	EXPECT_LE(backend.job->rows_out, 2 * UNIT_ROWS);
	backend.drain();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	backend.expect_whole_table();
	EXPECT_EQ(backend.job->yielded, 0u);
}

TEST_F(SortTest, IsCanceled)
{
	Backend		backend(this);

	/* while it collects, sorts or waits */
	for (int us = 0; us < 10000; us += 250)
	{
		prepare(&backend, us % 500 == 0, 2, 0);
		backend.submit();
		std::this_thread::sleep_for(std::chrono::microseconds(us));
		backend.job->cancel.store(1);
		backend.ring();
		ASSERT_TRUE(backend.wait([&] { return backend.ended(); }));
		EXPECT_TRUE(backend.state() == JobState::Done || backend.failure() == "canceled") << backend.failure();
	}
}

TEST_F(SortTest, MemoryRunsOut)
{
	Backend		backend(this);

	context_.make_cpu_job = FakeJob::make;
	for (bool grouped : {false, true})
	{
		knobs.groups = NROWS;
		prepare(&backend, grouped, 1, 0);	/* one buffer: rows are taken in their order */
		backend.job->job_memory = 1 << 20;
		/* a backend whose file has room */
		{
			char		name[] = "/tmp/sort-XXXXXX";
			const int	fd = mkstemp(name);

			ASSERT_GE(fd, 0);
			close(fd);
			snprintf(backend.job->spill_path, sizeof(backend.job->spill_path), "%s", name);
			backend.job->spill_room.store(uint64_t(1) << 30);
			backend.run();
			unlink(name);
		}
		EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
		EXPECT_GT(backend.job->spilled, 0u);
		EXPECT_EQ(backend.values.size(), size_t(NROWS));
		EXPECT_TRUE(std::is_sorted(backend.values.rbegin(), backend.values.rend()));

		/* few are kept */
		prepare(&backend, grouped, 2, 10);
		backend.job->job_memory = 4 << 20;
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
		EXPECT_EQ(backend.values.size(), 10u);
	}

	/* what is kept for other jobs makes room, whichever part of a job had none */
	struct Kept final : JoinIndex
	{
		uint64_t	memory() const override { return 100; }
	};

	at<ArenaHeader>(0)->index_limit = 1 << 20;
	ASSERT_TRUE(context_.indexes.keep("kept", std::make_shared<Kept>(), {}));
	prepare(&backend, false, 2, 0);
	knobs.no_memory = true;
	backend.run();
	EXPECT_EQ(backend.failure(), "out of memory");
	EXPECT_EQ(context_.indexes.find("kept"), nullptr);
}

}  // namespace
