/* Joins in gpuvmd: building, units in parts, suspension, cancel, refusals. */
#include "engine_joins.h"

namespace {

/* Every value below `n` as often as `times` says. */
void
expect_values(const Backend &backend, uint64_t n, size_t times)
{
	std::map<uint64_t, size_t> counts;

	for (uint64_t v : backend.values)
		counts[v]++;
	EXPECT_EQ(counts.size(), n);
	for (const auto &[v, count] : counts)
	{
		ASSERT_LT(v, n);
		ASSERT_EQ(count, times) << v;
	}
}

TEST_F(EngineJobTest, JoinFindsEveryRow)
{
	Backend		backend(this);

	for (int round = 0; round < 3; round++)
	{
		prepare_join(&backend, this, true, 0, false, nullptr, round == 0 ? 2 : 8);
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
		backend.expect_whole_table();
		EXPECT_EQ(backend.units.size(), NUNITS);
		EXPECT_EQ(backend.parts[0].size(), 1u);
		EXPECT_EQ(backend.job->pairs, NROWS);
		EXPECT_EQ(backend.job->build_rows, NROWS);
		EXPECT_GT(backend.job->build_bytes, NROWS * 8ull);
		EXPECT_EQ(backend.job->rows_in, NROWS);
		EXPECT_EQ(backend.job->rows_out, NROWS);
		EXPECT_EQ(backend.job->ran_on, Device::Cpu);
	}
}

TEST_F(EngineJobTest, JoinSeesNoMaskedRows)
{
	Backend		backend(this);

	prepare_join(&backend, this, true, 0, false);
	mask(backend.job, {{0, 0, 100}, {3, 0, TABLET_ROWS}});
	backend.job->cursors[1] = backend.job->cursors[0];
	mask(backend.job, {{0, 50, 200}});
	backend.run();
	EXPECT_EQ(backend.values.size(), NROWS - TABLET_ROWS - 200);
	EXPECT_EQ(backend.job->build_rows, NROWS - TABLET_ROWS - 100);
	EXPECT_EQ(backend.job->rows_in, NROWS - 150);
}

TEST_F(EngineJobTest, UnitsLeaveInParts)
{
	Backend		backend(this);

	for (uint32_t nbuffers : {1u, 2u, 8u})
	{
		prepare_join(&backend, this, false, 5, false, nullptr, nbuffers);
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
		expect_values(backend, 5, NROWS);
		EXPECT_EQ(backend.units.size(), NUNITS);
		EXPECT_GE(backend.parts[0].size(), 5u);
		for (const auto &[unit, parts] : backend.parts)
		{
			EXPECT_EQ(parts.size(), backend.last_parts[unit] + 1);
			EXPECT_EQ(*parts.rbegin(), backend.last_parts[unit]);
		}
		EXPECT_EQ(backend.job->pairs, NROWS * 5ull);
		EXPECT_EQ(backend.job->build_rows, 5u);
	}
}

TEST_F(EngineJobTest, JoinSuspendsWithinAUnit)
{
	Backend		backend(this);

	prepare_join(&backend, this, false, 5, false);
	backend.submit();
	ASSERT_TRUE(eventually([&] { return backend.state() == JobState::Suspended && backend.job->engine_waiting == 1; }));
	EXPECT_EQ(backend.job->buffers[0].last, 0u);
	backend.drain();
	EXPECT_EQ(backend.state(), JobState::Done);
	expect_values(backend, 5, NROWS);
}

TEST_F(EngineJobTest, CrossJoinStopsAtItsRowLimit)
{
	Backend		backend(this);

	prepare_join(&backend, this, false, 0, false);
	backend.job->row_limit = 10;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_GE(backend.values.size(), 10u);
	EXPECT_LT(backend.values.size(), 20u * UNIT_ROWS);
}

TEST_F(EngineJobTest, NestedLoopIsCanceled)
{
	Backend		backend(this);

	for (uint32_t threads : {1u, 4u})
	{
		/* where only the number of rows is asked for, no loop is run */
		prepare_join(&backend, this, false, 0, true, [](ProgramBuilder *b, int v0) {
			const int	v1 = b->new_reg(Type::I64);

			b->emit(Opcode::Column, Type::I64, v1, 0, 1);
			b->emit(Opcode::Lt, Type::I64, v0, v1, b->nops + 1, VERDICT_DIES);
			return v1;
		});
		backend.job->threads = threads;
		backend.submit();
		EXPECT_TRUE(eventually([&] { return backend.state() == JobState::Running; }));
		std::this_thread::sleep_for(std::chrono::milliseconds(100));

		const auto	start = std::chrono::steady_clock::now();

		EXPECT_FALSE(backend.ended());
		backend.job->cancel.store(1);
		ASSERT_TRUE(eventually([&] { return backend.ended(); }));
		EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(200));
		EXPECT_EQ(backend.failure(), "canceled");
	}
}

TEST_F(EngineJobTest, JoinIsCounted)
{
	Backend		backend(this);

	/* behind Match, a look at the inner row, so that pairs have to be made */
	prepare_join(&backend, this, false, 1000, true, [](ProgramBuilder *b, int) {
		const int	v1 = b->new_reg(Type::I64), least = b->new_reg(Type::I64);

		b->emit(Opcode::Column, Type::I64, v1, 0, 1);
		b->emit(Opcode::Int64, Type::I64, least, 0, 0, 0);
		b->emit(Opcode::Lt, Type::I64, v1, least, b->nops + 1, VERDICT_DIES);
		return v1;
	}, 2);
	backend.run();
	ASSERT_EQ(backend.state(), JobState::Done) << backend.failure();
	ASSERT_EQ(backend.values.size(), 1u);
	EXPECT_EQ(backend.values[0], NROWS * 1000ull);
	EXPECT_EQ(backend.job->pairs, NROWS * 1000ull);
	EXPECT_GE(backend.job->threads_used, 2u);

	prepare_join(&backend, this, true, 1000, true, nullptr, 2);
	backend.run();
	ASSERT_EQ(backend.values.size(), 1u);
	EXPECT_EQ(backend.values[0], 1000u);
}

TEST_F(EngineJobTest, PairsThatAreOnlyCountedAreNotMade)
{
	Backend		backend(this);

	prepare_join(&backend, this, false, 0, true);
	backend.run();
	ASSERT_EQ(backend.state(), JobState::Done) << backend.failure();
	ASSERT_EQ(backend.values.size(), 1u);
	EXPECT_EQ(backend.values[0], uint64_t(NROWS) * NROWS);
	EXPECT_EQ(backend.job->pairs, uint64_t(NROWS) * NROWS);
}

TEST_F(EngineJobTest, TooLargeAnInnerSideIsRefused)
{
	Backend		backend(this);

	prepare_join(&backend, this, true, 0, false);
	backend.job->job_memory = 10000;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_EQ(backend.failure(), "out of memory");
	EXPECT_EQ(backend.job->errors, 0u);
	EXPECT_EQ(backend.job->rows_out, 0u);
	backend.job->job_memory = NROWS * 64;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_EQ(backend.job->passes, 1u);
	EXPECT_LE(backend.job->memory_peak, NROWS * 64u);

	/* what its filter leaves is what counts, not the tablet that it is in */
	prepare_join(&backend, this, true, 1000, false);
	backend.job->job_memory = 40000;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_EQ(backend.values.size(), 1000u);
	EXPECT_EQ(backend.job->passes, 1u);
	EXPECT_LE(backend.job->memory_peak, 40000u);
	static_assert(TABLET_ROWS * 8 > 40000);
}

TEST_F(EngineJobTest, ErrorsOfPairsFailTheJob)
{
	Backend		backend(this);
	const Body	divide = [](ProgramBuilder *b, int v0) {
		const int	ten = b->new_reg(Type::I64), less = b->new_reg(Type::I64), result = b->new_reg(Type::I64);

		b->emit(Opcode::Int64, Type::I64, ten, 0, 0, 100000);
		b->emit(Opcode::Sub, Type::I64, less, v0, ten);
		b->emit(Opcode::Div, Type::I64, result, ten, less);
		return result;
	};

	prepare_join(&backend, this, true, 0, false, divide);
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_EQ(backend.failure(), "an operation of the join raised an error");
	EXPECT_EQ(backend.job->errors, ERR_DIVISION_BY_ZERO);

	/* no pair has it */
	prepare_join(&backend, this, true, 100000, false, divide);
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_EQ(backend.values.size(), 100000u);
	EXPECT_EQ(backend.job->errors, 0u);

	prepare_join(&backend, this, true, 0, true, divide);
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_EQ(backend.job->errors, ERR_DIVISION_BY_ZERO);
	EXPECT_TRUE(backend.values.empty());
}

/* Hands out rows 0, 1, ... as parts of unit 0, two a part, or ends as it is told. */
class JoinDevice : public DeviceLibrary
{
public:
	uint32_t ndevices() const override { return 1; }
	void start() override {}
	bool ready() const override { return true; }
	void housekeep() override {}
	void prepare(uint64_t, uint64_t) override {}
	bool copy_set(const DeviceSet *, uint64_t, uint64_t, char *const *, uint64_t *const *) override { return false; }
	DeviceOutcome run_window(DeviceSet *, const WindowSpec &, DeviceJobIo *, DeviceJobFigures *, char *) override { return DeviceOutcome::Refused; }

	DeviceEstimate estimate(const DeviceJobRequest &request, char *) override
	{
		expected_pairs = request.expected_pairs;
		return DeviceEstimate{estimated, 0, false};
	}

	DeviceOutcome run(const DeviceJobRequest &request, DeviceJobIo *io, DeviceJobFigures *figures, char *reason) override
	{
		Type		type = Type::I64;
		ResultColumnLayout at;

		runs++;
		inner_rows = masked = skipped = 0;
		for (uint32_t i = 0; i < request.nothers; i++)
		{
			inner_rows += request.others[i].total_rows;
			for (uint32_t t = 0; t < request.others[i].ntablets; t++)
			{
				masked += request.others[i].tablets[t].nmasked;
				skipped += request.others[i].tablets[t].skip;
			}
		}
		if (outcome == DeviceOutcome::Refused)
		{
			strcpy(reason, "its memory is short");
			return outcome;
		}
		result_layout(&type, 1, request.capacity, &at);
		for (uint64_t row = 0, part = 0; errors == 0 && row <= nrows; row += 2, part++)
		{
			const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(2, nrows - row));
			int			buffer;

			while ((buffer = io->claim_buffer()) < 0)
				if (!io->wait_for_buffer())
					return DeviceOutcome::Done;
			for (uint64_t i = 0; i < n; i++)
			{
				const uint64_t value = row + i;

				memcpy(request.areas[buffer] + at.values + i * 8, &value, 8);
			}
			io->publish_part(buffer, 0, static_cast<uint32_t>(part), n < 2, n, 0);
		}
		figures->errors = errors;
		figures->pairs = 77;
		figures->build_rows = 7;
		figures->build_bytes = 700;
		return DeviceOutcome::Done;
	}

	DeviceOutcome outcome = DeviceOutcome::Done;
	uint64_t	estimated = 0, nrows = 9, expected_pairs = 0, inner_rows = 0;
	uint32_t	errors = 0, runs = 0, masked = 0, skipped = 0;
};

class EngineJoinDeviceTest : public EngineJobTest
{
public:
	JoinDevice	device;
};

TEST_F(EngineJoinDeviceTest, DeviceGetsAllCursors)
{
	Backend		backend(this);

	context_.devices.publish(&device);
	prepare_join(&backend, this, true, 0, false, nullptr, 2);
	mask(backend.job, {{0, 0, 100}, {3, 0, TABLET_ROWS}});
	backend.job->cursors[1] = backend.job->cursors[0];
	mask(backend.job, {});
	backend.job->device = Device::Cuda;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_EQ(backend.job->ran_on, Device::Cuda);
	EXPECT_STREQ(backend.job->device_refusal, "");
	expect_values(backend, 9, 1);
	EXPECT_EQ(backend.parts[0].size(), 5u);
	EXPECT_EQ(backend.last_parts[0], 4u);
	EXPECT_EQ(backend.job->rows_out, 9u);
	EXPECT_EQ(backend.job->pairs, 77u);
	EXPECT_EQ(backend.job->build_rows, 7u);
	EXPECT_EQ(backend.job->build_bytes, 700u);
	EXPECT_EQ(device.inner_rows, NROWS);
	EXPECT_EQ(device.masked, 2u);
	EXPECT_EQ(device.skipped, 1u);
}

TEST_F(EngineJoinDeviceTest, AutoTakesTheCheaper)
{
	Backend		backend(this);

	context_.devices.publish(&device);
	for (uint64_t pairs : {uint64_t{0}, uint64_t{1} << 40})
	{
		prepare_join(&backend, this, true, 0, false);
		backend.job->expected_pairs = pairs;
		device.estimated = 1'000'000'000;
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
		EXPECT_EQ(device.expected_pairs, pairs);
		EXPECT_EQ(backend.job->ran_on, pairs == 0 ? Device::Cpu : Device::Cuda);
		EXPECT_STREQ(backend.job->device_refusal, "");
	}
}

TEST_F(EngineJoinDeviceTest, RefusedJoinRunsOnTheProcessor)
{
	Backend		backend(this);

	context_.devices.publish(&device);
	device.outcome = DeviceOutcome::Refused;
	prepare_join(&backend, this, true, 0, false);
	backend.job->device = Device::Cuda;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_EQ(backend.job->ran_on, Device::Cpu);
	EXPECT_STREQ(backend.job->device_refusal, "its memory is short");
	backend.expect_whole_table();
	EXPECT_EQ(backend.job->pairs, NROWS);

	prepare_join(&backend, this, true, 0, false);
	backend.job->device = Device::Cuda;
	backend.job->device_required = 1;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_EQ(backend.failure(), "its memory is short");
	EXPECT_EQ(device.runs, 2u);
}

TEST_F(EngineJoinDeviceTest, ErrorsOfADeviceEndTheJob)
{
	Backend		backend(this);

	context_.devices.publish(&device);
	device.errors = ERR_DIVISION_BY_ZERO;
	for (bool grouped : {false, true})
	{
		prepare_join(&backend, this, true, 0, grouped);
		backend.job->device = Device::Cuda;
		backend.run();
		EXPECT_EQ(backend.state(), grouped ? JobState::Done : JobState::Failed);
		EXPECT_EQ(backend.job->errors, ERR_DIVISION_BY_ZERO);
		EXPECT_TRUE(backend.values.empty());
	}
}

TEST_F(EngineJobTest, FullJoinLeavesItsRestInAUnitMore)
{
	Backend		backend(this);

	for (uint32_t hidden : {TABLET_ROWS, 2 * UNIT_ROWS + 7})
		for (bool seek : {true, false})
			for (uint32_t nbuffers : {1u, 4u})
			{
				/* what cursor 0 has not comes from cursor 1 alone; the nested loop's condition leaves 5 of its 100 rows */
				prepare_join(&backend, this, seek, seek ? 0 : 5, false, nullptr, nbuffers, JoinKind::Full);
				if (!seek)
				{
					mask(backend.job, {{0, 100, TABLET_ROWS}});
					backend.job->cursors[1] = backend.job->cursors[0];
					backend.job->cursors[1].ntablets = 1;
				}
				mask(backend.job, {{0, 0, hidden}});
				backend.run();
				ASSERT_EQ(backend.state(), JobState::Done) << backend.failure();
				if (seek)
					backend.expect_whole_table();
				else
				{
					EXPECT_EQ(backend.values.size(), (NROWS - hidden) * 5ull + 95);
				}
				ASSERT_EQ(backend.parts.count(NUNITS), 1u);
				EXPECT_EQ(backend.parts[NUNITS].size(), backend.last_parts[NUNITS] + 1);
			}

	prepare_join(&backend, this, true, 0, true, nullptr, 2, JoinKind::Full);
	mask(backend.job, {{0, 0, 100}, {1, 0, TABLET_ROWS}});
	backend.run();
	ASSERT_EQ(backend.values.size(), 1u) << backend.failure();
	EXPECT_EQ(backend.values[0], NROWS);

	/* there is no unit more where nothing is left */
	prepare_join(&backend, this, true, 0, false, nullptr, 4, JoinKind::Full);
	backend.run();
	backend.expect_whole_table();
	EXPECT_EQ(backend.units.size(), NUNITS);
}

TEST_F(EngineJobTest, UnitsOfAFullJoinAreNotSkipped)
{
	Backend		backend(this);

	prepare_join(&backend, this, true, 0, false, nullptr, 4, JoinKind::Full);
	backend.job->skip_units = allocate(8);
	backend.job->skip_bytes = 1;
	*at<uint8_t>(backend.job->skip_units) = 0;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	*at<uint8_t>(backend.job->skip_units) = 2;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_EQ(backend.failure(), "the units of a full join are run by one job");
}

TEST_F(EngineJobTest, CursorsAreChecked)
{
	Backend		backend(this);

	prepare_join(&backend, this, true, 0, false);
	backend.job->cursors[1].tablets = UINT64_MAX - 7;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);

	prepare_join(&backend, this, true, 0, false);
	backend.job->cursors[1].ncolumns = 0;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);

	prepare_join(&backend, this, true, 0, false);
	backend.job->ncursors = 1;
	backend.run();
	EXPECT_EQ(backend.failure(), "the number of cursors is wrong");

	prepare_join(&backend, this, true, 0, false);
	backend.job->ncursors = PROGRAM_MAX_CURSORS;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);

	prepare_join(&backend, this, true, 0, false);
	backend.job->ncursors = PROGRAM_MAX_CURSORS + 1;
	backend.run();
	EXPECT_EQ(backend.failure(), "the job has too few or too many cursors");
}

TEST_F(EngineJobTest, BackendThatLeavesEndsItsJoin)
{
	for (int i = 0; i < 5; i++)
	{
		Backend		backend(this);

		prepare_join(&backend, this, false, 0, i % 2 == 0);
		backend.submit();
		std::this_thread::sleep_for(std::chrono::milliseconds(20));
		backend.hang_up();
		EXPECT_TRUE(eventually([&] { return backend.ended(); }));
	}
}

}  // namespace
