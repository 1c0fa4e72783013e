/* The engine's half of the job protocol: rows, groups, suspension, cancel, backends that go. */
#include "engine_fixture.h"

#include <numeric>

namespace {

TEST_F(EngineJobTest, PingAnswers)
{
	Backend		backend(this);

	for (int i = 0; i < 100; i++)
	{
		backend.job->kind = JobKind::Ping;
		backend.submit();
		ASSERT_TRUE(backend.wait([&] { return backend.ended(); }));
		EXPECT_EQ(backend.state(), JobState::Done);
	}
}

TEST_F(EngineJobTest, HelloOfAnotherLifeIsRefused)
{
	Backend		backend(this, false);

	EXPECT_FALSE(backend.say_hello(41, ARENA_HEADER_BYTES));
}

TEST_F(EngineJobTest, HelloWithJobOutsideArenaIsRefused)
{
	for (uint64_t offset : {uint64_t(0), ARENA_SIZE, ARENA_SIZE - 64, UINT64_MAX - 63, uint64_t(65537)})
	{
		Backend		backend(this, false);

		EXPECT_FALSE(backend.say_hello(42, offset)) << offset;
	}
}

TEST_F(EngineJobTest, RowsComeOnceEach)
{
	Backend		backend(this);

	backend.prepare();
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	backend.expect_whole_table();
	EXPECT_EQ(backend.units.size(), NUNITS);
	EXPECT_EQ(backend.job->rows_in, NROWS);
	EXPECT_EQ(backend.job->rows_out, NROWS);
	EXPECT_EQ(backend.job->tablets_scanned, NTABLETS);
	EXPECT_EQ(backend.job->ran_on, Device::Cpu);
	EXPECT_EQ(backend.job->bytes_read, NROWS * 8ull);
}

TEST_F(EngineJobTest, HelpersShareTheWork)
{
	Backend		backend(this);

	backend.prepare(false, 8);
	knobs.hold = true;
	backend.submit();
	EXPECT_TRUE(eventually([] { return knobs.inside == 4; }));
	knobs.hold = false;
	backend.drain();
	backend.expect_whole_table();
	EXPECT_GE(backend.job->threads_used, 4u);
}

TEST_F(EngineJobTest, ThreadsAreCapped)
{
	Backend		backend(this);

	backend.prepare(true);
	backend.job->threads = 1;
	backend.run();
	EXPECT_EQ(backend.job->threads_used, 1u);
}

TEST_F(EngineJobTest, SuspendsWhenNobodyTakesRows)
{
	Backend		backend(this);

	backend.prepare();
	backend.submit();
	ASSERT_TRUE(eventually([&] { return backend.state() == JobState::Suspended && backend.job->engine_waiting == 1; }));

	int			units = knobs.units;

	EXPECT_EQ(units, 2);
	std::this_thread::sleep_for(std::chrono::milliseconds(50));
	EXPECT_EQ(knobs.units, units);
	backend.drain();
	EXPECT_EQ(backend.state(), JobState::Done);
	backend.expect_whole_table();
}

TEST_F(EngineJobTest, SkipsUnitsThatTheBackendHas)
{
	Backend		backend(this);

	backend.prepare();
	backend.job->skip_bytes = 1;
	backend.job->skip_units = allocate(1);
	*at<uint8_t>(backend.job->skip_units) = 0x81;
	backend.run();
	EXPECT_EQ(backend.units.size(), NUNITS - 2);
	EXPECT_EQ(backend.units.count(0), 0u);
	EXPECT_EQ(backend.units.count(7), 0u);
}

TEST_F(EngineJobTest, SkipsTabletsByTheirZoneMaps)
{
	Backend		backend(this);

	backend.prepare();
	knobs.skip_odd = true;
	backend.run();
	EXPECT_EQ(backend.job->tablets_skipped, NTABLETS / 2);
	EXPECT_EQ(backend.job->tablets_scanned, NTABLETS / 2);
	EXPECT_EQ(backend.values.size(), NROWS / 2);
	/* Units are numbered over all tablets, the skipped ones too. */
	EXPECT_EQ(backend.units.count(UNITS_PER_TABLET), 0u);
	EXPECT_EQ(backend.units.count(2 * UNITS_PER_TABLET), 1u);
}

bool
is_masked(const std::vector<MaskedRows> &ranges, uint32_t row)
{
	for (const MaskedRows &range : ranges)
	{
		if (row >= range.tablet * TABLET_ROWS + range.first && row < range.tablet * TABLET_ROWS + range.end)
			return true;
	}
	return false;
}

TEST_F(EngineJobTest, MaskedRowsAreNotThere)
{
	/* a part of tablet 0; a unit of 1; all of 2, in two ranges; of the last unit of 3 all but a row */
	const std::vector<MaskedRows> ranges = {{0, 1000, 5000}, {1, UNIT_ROWS, 2 * UNIT_ROWS}, {2, 0, 17}, {2, 17, TABLET_ROWS},
		{3, 2 * UNIT_ROWS, TABLET_ROWS - 1}};
	const uint32_t masked = 4000 + UNIT_ROWS + TABLET_ROWS + TABLET_ROWS - 1 - 2 * UNIT_ROWS;

	for (bool grouped : {false, true})
	{
		Backend		backend(this);
		uint64_t	sum = 0;

		reset_knobs();
		backend.prepare(grouped);
		mask(backend.job, ranges);
		backend.run();
		ASSERT_EQ(backend.state(), JobState::Done) << backend.failure();
		EXPECT_EQ(backend.job->rows_in, NROWS - masked);
		EXPECT_EQ(backend.job->tablets_scanned, NTABLETS - 1);
		EXPECT_EQ(backend.job->tablets_skipped, 1u);
		for (uint32_t row = 0; row < NROWS; row++)
			sum += is_masked(ranges, row) ? 0 : row;
		if (grouped)
		{
			EXPECT_EQ(backend.values, std::vector<uint64_t>{sum});
			continue;
		}
		EXPECT_EQ(backend.values.size(), NROWS - masked);
		EXPECT_EQ(std::accumulate(backend.values.begin(), backend.values.end(), uint64_t(0)), sum);
		/* a unit without rows is not begun; the numbers of the others stay */
		EXPECT_EQ(backend.units.size(), NUNITS - 1 - UNITS_PER_TABLET);
		EXPECT_EQ(knobs.units, static_cast<int>(NUNITS - 1 - UNITS_PER_TABLET));
		EXPECT_EQ(backend.units.count(UNITS_PER_TABLET + 1), 0u);
		EXPECT_EQ(backend.units.count(3 * UNITS_PER_TABLET + 2), 1u);
	}
}

TEST_F(EngineJobTest, WhereAllIsMaskedNothingRuns)
{
	std::vector<MaskedRows> all;

	for (uint32_t t = 0; t < NTABLETS; t++)
		all.push_back(MaskedRows{t, 0, TABLET_ROWS});
	for (bool grouped : {false, true})
	{
		Backend		backend(this);

		backend.prepare(grouped);
		mask(backend.job, all);
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Done);
		EXPECT_EQ(backend.job->tablets_skipped, NTABLETS);
		EXPECT_EQ(backend.job->rows_in, 0u);
		EXPECT_EQ(backend.values, std::vector<uint64_t>(grouped ? 1 : 0, 0));
		EXPECT_EQ(knobs.units, 0);
	}
}

TEST_F(EngineJobTest, EmptyUnitsNeedNoBuffer)
{
	Backend		backend(this);

	backend.prepare(false, 1);
	knobs.empty = true;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	EXPECT_EQ(backend.units.size(), 0u);
	EXPECT_EQ(backend.job->rows_in, NROWS);
}

TEST_F(EngineJobTest, ErrorsAreReportedWithTheirUnit)
{
	Backend		backend(this);

	backend.prepare();
	knobs.error_row = TABLET_ROWS + UNIT_ROWS;	/* second tablet, second unit */
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	EXPECT_EQ(backend.units.size(), NUNITS);
	EXPECT_EQ(backend.units[UNITS_PER_TABLET + 1], ERR_INT_OVERFLOW);
	EXPECT_EQ(backend.values.size(), NROWS - UNIT_ROWS);
}

TEST_F(EngineJobTest, RowLimitStopsEarly)
{
	Backend		backend(this);

	backend.prepare(false, 4);
	backend.job->row_limit = 10;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	EXPECT_GE(backend.values.size(), 10u);
	EXPECT_LE(knobs.units, 4);
}

TEST_F(EngineJobTest, GroupsAreMergedOverThreads)
{
	Backend		backend(this);

	backend.prepare(true);
	knobs.groups = 3 * UNIT_ROWS + 5;	/* more than the buffers hold */
	backend.run();
	ASSERT_EQ(backend.state(), JobState::Done);

	uint64_t	sum = static_cast<uint64_t>(NROWS) * (NROWS - 1) / 2;

	std::sort(backend.values.begin(), backend.values.end());
	ASSERT_EQ(backend.values.size(), knobs.groups);
	EXPECT_EQ(backend.values.front(), sum);
	EXPECT_EQ(backend.values.back(), sum + knobs.groups - 1);
	EXPECT_EQ(backend.units.size(), 4u);
}

TEST_F(EngineJobTest, GroupedErrorsGiveNoRows)
{
	Backend		backend(this);

	backend.prepare(true);
	knobs.error_row = 0;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	EXPECT_EQ(backend.job->errors, ERR_SUM_OVERFLOW);
	EXPECT_EQ(backend.values.size(), 0u);
}

TEST_F(EngineJobTest, CancelStopsARunningJob)
{
	Backend		backend(this);

	backend.prepare(true);
	knobs.hold = true;
	backend.submit();
	ASSERT_TRUE(eventually([] { return knobs.inside > 0; }));
	backend.job->cancel.store(1);
	knobs.hold = false;
	ASSERT_TRUE(backend.wait([&] { return backend.ended(); }));
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_EQ(backend.failure(), "canceled");
	EXPECT_LE(knobs.units, 4);
}

TEST_F(EngineJobTest, CancelStopsASuspendedJob)
{
	Backend		backend(this);

	backend.prepare();
	backend.submit();
	ASSERT_TRUE(eventually([&] { return backend.job->engine_waiting == 1; }));
	backend.job->cancel.store(1);
	backend.ring();
	ASSERT_TRUE(backend.wait([&] { return backend.ended(); }));
	EXPECT_EQ(backend.state(), JobState::Failed);

	/* The session is as good as new. */
	backend.prepare();
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	backend.expect_whole_table();
}

TEST_F(EngineJobTest, BackendThatGoesEndsARunningJob)
{
	Backend		backend(this);
	Backend		other(this);

	backend.prepare(true);
	knobs.hold = true;
	backend.submit();
	ASSERT_TRUE(eventually([] { return knobs.inside > 0; }));
	backend.hang_up();
	std::this_thread::sleep_for(std::chrono::milliseconds(10));
	knobs.hold = false;
	EXPECT_TRUE(eventually([&] { return backend.ended(); }));
	EXPECT_EQ(backend.failure(), "the backend has gone");

	other.prepare();
	other.run();
	other.expect_whole_table();
}

TEST_F(EngineJobTest, BackendThatGoesEndsASuspendedJob)
{
	Backend		backend(this);

	backend.prepare();
	backend.submit();
	ASSERT_TRUE(eventually([&] { return backend.job->engine_waiting == 1; }));
	backend.hang_up();
	EXPECT_TRUE(eventually([&] { return backend.ended(); }));
	EXPECT_EQ(backend.failure(), "the backend has gone");
}

TEST_F(EngineJobTest, OutOfMemoryIsAFailure)
{
	for (bool grouped : {false, true})
	{
		Backend		backend(this);

		backend.prepare(grouped, 8);
		knobs.no_memory = true;
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Failed);
		EXPECT_EQ(backend.failure(), "out of memory");
	}
}

TEST_F(EngineJobTest, GroupsThatDoNotFitByAllThreadsAreMadeByOne)
{
	Backend		backend(this);

	context_.memory.set_limit(50 << 20);
	backend.prepare(true);
	knobs.state_bytes = 30 << 20;
	/* the first thread waits for a second one to find no memory */
	knobs.hold = true;
	backend.submit();
	ASSERT_TRUE(eventually([&] { return knobs.inside == 1; }));
	std::this_thread::sleep_for(std::chrono::milliseconds(20));
	knobs.hold = false;
	backend.drain();
	ASSERT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_EQ(backend.values, std::vector<uint64_t>(1, static_cast<uint64_t>(NROWS) * (NROWS - 1) / 2));
	EXPECT_EQ(backend.job->restarts, 1u);
	EXPECT_EQ(backend.job->threads_used, 1u);
	EXPECT_EQ(backend.job->memory_peak, 30u << 20);

	/* what one does not fit has its end */
	backend.prepare(true);
	knobs.state_bytes = 60 << 20;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_EQ(backend.failure(), "out of memory");
	EXPECT_EQ(context_.memory.used(), 0u);
}

TEST_F(EngineJobTest, AJobWaitsForTheMemoryOfAnother)
{
	Backend		backend(this);

	context_.memory.set_limit(100 << 20);
	for (bool canceled : {false, true})
	{
		JobMemory	other(&context_.memory);

		ASSERT_TRUE(context_.memory.take(&other, 80 << 20));
		knobs.state_bytes = 30 << 20;
		backend.prepare(true);
		backend.job->threads = 1;
		backend.submit();
		ASSERT_TRUE(eventually([&] { return backend.job->waits == WAITS_FOR_MEMORY; }));
		EXPECT_EQ(knobs.states, 0) << "who waits has given back what he had";
		if (canceled)
		{
			backend.job->cancel.store(1);
			ASSERT_TRUE(backend.wait([&] { return backend.ended(); }));
			EXPECT_EQ(backend.state(), JobState::Failed);
		}
		context_.memory.give_back(other.number(), 80 << 20);
		if (canceled)
			continue;
		backend.drain();
		ASSERT_EQ(backend.state(), JobState::Done) << backend.failure();
		EXPECT_EQ(backend.values.size(), 1u);
		EXPECT_EQ(backend.job->restarts, 1u);
		EXPECT_GT(backend.job->queue_ns, 0u);
	}
	EXPECT_EQ(context_.memory.used(), 0u);
}

TEST_F(EngineJobTest, AJobWaitsForSoLong)
{
	Backend		backend(this);
	JobMemory	other(&context_.memory);

	context_.memory.set_limit(100 << 20);
	ASSERT_TRUE(context_.memory.take(&other, 80 << 20));
	knobs.state_bytes = 30 << 20;
	backend.prepare(true);
	backend.job->threads = 1;
	backend.job->queue_timeout = 50;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_EQ(backend.failure(), "it waited for memory for longer than gpuvm.queue_timeout");
	EXPECT_GE(backend.job->queue_ns, 50000000u);
	EXPECT_EQ(context_.memory.used(), 80u << 20);
	context_.memory.give_back(other.number(), 80 << 20);
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
}

TEST_F(EngineJobTest, AJobHasABoundOfItsOwn)
{
	Backend		backend(this);

	context_.memory.set_limit(100 << 20);
	knobs.state_bytes = 30 << 20;
	backend.prepare(true);
	backend.job->threads = 1;
	backend.job->job_memory = 20 << 20;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_EQ(backend.failure(), "out of memory");
	EXPECT_EQ(backend.job->queue_ns / 1000000000, 0u) << "waiting does not help";
	backend.job->job_memory = 40 << 20;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_EQ(context_.memory.used(), 0u);
}

TEST_F(EngineJobTest, SessionsRunSideBySide)
{
	std::vector<std::thread> threads;

	std::vector<std::unique_ptr<Backend>> backends;

	for (int i = 0; i < 8; i++)
		backends.emplace_back(new Backend(this));
	for (auto &backend : backends)
	{
		backend->prepare();
		threads.emplace_back([&backend] { backend->run(); });
	}
	for (std::thread &thread : threads)
		thread.join();
	for (auto &backend : backends)
	{
		EXPECT_EQ(backend->state(), JobState::Done);
		backend->expect_whole_table();
	}
}

}  // namespace
