/*
 * Jobs and a device: which engine runs them, what becomes of refusals, and the
 * conversation with the backend. The device is a fake that hands out row numbers,
 * as the fixture's virtual machine does, and does as it is told.
 */
#include "engine_fixture.h"

#include <dlfcn.h>

#include "engine/cost.h"

namespace {

class FakeDevice : public DeviceLibrary
{
public:
	uint32_t ndevices() const override { return 1; }
	void start() override {}
	bool ready() const override { return is_ready; }
	void housekeep() override {}

	bool copy_set(const DeviceSet *, uint64_t, uint64_t, char *const *, uint64_t *const *) override { return false; }
	DeviceOutcome run_window(DeviceSet *, const WindowSpec &, DeviceJobIo *, DeviceJobFigures *, char *) override { return DeviceOutcome::Refused; }

	void prepare(uint64_t offset, uint64_t bytes) override
	{
		prepared.emplace_back(offset, offset + bytes);
		while (hold)
			std::this_thread::sleep_for(std::chrono::milliseconds(1));
	}

	DeviceEstimate estimate(const DeviceJobRequest &request, char *reason) override
	{
		estimates++;
		if (estimated == UINT64_MAX)
			strcpy(reason, "too wide for it");
		return DeviceEstimate{estimated, busy, copies};
	}

	DeviceOutcome run(const DeviceJobRequest &request, DeviceJobIo *io, DeviceJobFigures *figures, char *reason) override
	{
		runs++;
		transfer = request.transfer;
		count_groups = request.count_groups;
		masked.clear();
		for (uint32_t t = 0; t < request.ntablets; t++)
		{
			const DeviceTabletRef &ref = request.tablets[t];

			masked.emplace_back(ref.masked, ref.masked + ref.nmasked);
			skipped += ref.skip;
		}
		while (hold && !io->stopped())
			std::this_thread::sleep_for(std::chrono::milliseconds(1));
		std::this_thread::sleep_for(takes.load());
		if (publish_first)
			publish_rows(request, io, 0, request.tablets[0].tablet, 0, figures);
		if (no_memory)
			throw std::bad_alloc();
		if (outcome != DeviceOutcome::Done)
		{
			strcpy(reason, "its memory is short");
			return outcome;
		}
		if (request.program->grouped || request.sink)
			figures->errors = errors;
		else
			run_rows(request, io, figures);
		figures->device = 1;
		figures->bytes_read = 11;
		figures->bytes_moved = 22;
		figures->device_ns = 33;
		figures->slices = 4;
		figures->transfer = Transfer::Mapped;
		return DeviceOutcome::Done;
	}

	std::atomic<bool> is_ready{true};
	std::atomic<uint64_t> estimated{UINT64_MAX}, busy{0};
	std::atomic<bool> copies{false};
	std::atomic<std::chrono::milliseconds> takes{std::chrono::milliseconds(0)};
	std::atomic<bool> hold{false};
	std::atomic<bool> publish_first{false};
	std::atomic<bool> no_memory{false};
	std::atomic<DeviceOutcome> outcome{DeviceOutcome::Done};
	std::atomic<uint32_t> errors{0};
	std::atomic<int> estimates{0};
	std::atomic<int> runs{0};
	Transfer	transfer = Transfer::Auto;
	bool		count_groups = false;
	std::vector<std::vector<MaskedRows>> masked;	/* per tablet */
	uint32_t	skipped = 0;
	std::vector<std::pair<uint64_t, uint64_t>> prepared;

private:
	static bool publish_rows(const DeviceJobRequest &request, DeviceJobIo *io, uint32_t unit,
							 const TabletHeader *tablet, uint32_t first, DeviceJobFigures *figures)
	{
		uint32_t	last = std::min(tablet->nrows, first + request.unit_rows);
		uint64_t	row = first_row(tablet) + first;
		Type		type = Type::I64;
		ResultColumnLayout at;
		int			buffer;

		while ((buffer = io->claim_buffer()) < 0)
		{
			if (!io->wait_for_buffer())
				return false;
		}
		result_layout(&type, 1, request.capacity, &at);
		for (uint32_t i = first; i < last; i++, row++)
			memcpy(request.areas[buffer] + at.values + (i - first) * 8, &row, 8);
		io->publish(buffer, unit, last - first, 0);
		figures->rows_in += last - first;
		figures->rows_out += last - first;
		return true;
	}

	static void run_rows(const DeviceJobRequest &request, DeviceJobIo *io, DeviceJobFigures *figures)
	{
		uint32_t	unit = 0;

		for (uint32_t t = 0; t < request.ntablets; t++)
		{
			const TabletHeader *tablet = request.tablets[t].tablet;

			figures->tablets_scanned += !request.tablets[t].skip;
			for (uint32_t first = 0; first < tablet->nrows; first += request.unit_rows, unit++)
			{
				if (request.tablets[t].skip || request.skips(unit))
					continue;
				if (io->stopped() || !publish_rows(request, io, unit, tablet, first, figures))
					return;
			}
		}
	}
};

class EngineDeviceTest : public EngineJobTest
{
public:
	/* The session has taken the library by then: it is never withdrawn. */
	void with_device() { context_.devices.publish(&device); }

	FakeDevice	device;
};

std::string
refusal(const Backend &backend)
{
	return backend.job->device_refusal;
}

/* ---- which engine --------------------------------------------------------------- */

TEST_F(EngineDeviceTest, WithoutADeviceNobodyMissesIt)
{
	Backend		backend(this);

	backend.prepare();
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	EXPECT_EQ(backend.job->ran_on, Device::Cpu);
	EXPECT_EQ(refusal(backend), "");
}

TEST_F(EngineDeviceTest, WithoutADeviceWhoAskedForItIsToldWhy)
{
	Backend		backend(this);

	context_.devices.set_reason("starting");
	backend.prepare();
	backend.job->device = Device::Cuda;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	EXPECT_EQ(backend.job->ran_on, Device::Cpu);
	EXPECT_EQ(refusal(backend), "starting");
	backend.expect_whole_table();
}

TEST_F(EngineDeviceTest, AutoTakesTheCheaper)
{
	with_device();
	for (bool grouped : {false, true})
	{
		Backend		backend(this);

		device.estimated = 1;
		backend.prepare(grouped);
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Done);
		EXPECT_EQ(backend.job->ran_on, Device::Cuda);
		EXPECT_EQ(refusal(backend), "");

		device.estimated = UINT64_MAX - 1;
		backend.prepare(grouped);
		backend.run();
		EXPECT_EQ(backend.state(), JobState::Done);
		EXPECT_EQ(backend.job->ran_on, Device::Cpu);
		EXPECT_EQ(refusal(backend), "") << "it was dearer, not unable";
	}
	EXPECT_EQ(device.runs, 2);
}

TEST_F(EngineDeviceTest, AutoComparesWithTheProcessorsTime)
{
	Backend		backend(this);

	with_device();
	backend.prepare();

	const Program *program = at<Program>(backend.job->program);
	const uint64_t cpu = cpu_estimate(NROWS, NROWS * 8, program->nops, false, 4);

	device.estimated = cpu / 2;
	backend.run();
	EXPECT_EQ(backend.job->ran_on, Device::Cuda);
	EXPECT_EQ(backend.job->expected_cpu_ns, cpu);
	EXPECT_EQ(backend.job->expected_device_ns, cpu / 2);
}

TEST_F(EngineDeviceTest, AutoWaitsForADeviceThatIsClearlyBetter)
{
	with_device();
	for (bool clearly : {false, true})
	{
		Backend		backend(this);

		/* other programs for the two, as the first one's run teaches */
		backend.prepare(clearly);
		device.estimated = clearly ? 10 : cpu_estimate(NROWS, NROWS * 8, at<Program>(backend.job->program)->nops, false, 4) * 2 / 3;
		device.busy = 1'000'000'000;

		const RunsOnEngine other(&context_.device_load, 1'000'000'000);

		backend.run();
		EXPECT_EQ(backend.state(), JobState::Done);
		EXPECT_EQ(backend.job->ran_on, clearly ? Device::Cuda : Device::Cpu);
	}
}

TEST_F(EngineDeviceTest, AutoLearnsWhatTheDeviceTakes)
{
	with_device();
	device.takes = std::chrono::milliseconds(50);
	device.estimated = 1;
	for (bool copies : {true, false})
	{
		device.copies = copies;
		for (int run = 0; run < 2; run++)
		{
			Backend		backend(this);

			backend.prepare();
			backend.run();
			EXPECT_EQ(backend.state(), JobState::Done);
			EXPECT_EQ(backend.job->ran_on, run == 0 ? Device::Cuda : Device::Cpu) << "what is copied first is learned by itself";
		}
	}
}

TEST_F(EngineDeviceTest, AutoTellsWhatTheDeviceCannotDo)
{
	Backend		backend(this);

	with_device();
	backend.prepare();
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	EXPECT_EQ(backend.job->ran_on, Device::Cpu);
	EXPECT_EQ(refusal(backend), "too wide for it");
	backend.expect_whole_table();
	EXPECT_EQ(device.runs, 0);

	/* the next job's outcome is its own */
	device.estimated = 1;
	backend.prepare();
	backend.run();
	EXPECT_EQ(refusal(backend), "");
}

TEST_F(EngineDeviceTest, TheDeviceKnowsEachTabletsMaskedRows)
{
	const std::vector<MaskedRows> ranges = {{0, 3, 5}, {2, 0, 7}, {2, 7, 9}, {NTABLETS - 1, 0, TABLET_ROWS}};
	Backend		backend(this);

	with_device();
	backend.prepare(true);
	mask(backend.job, ranges);
	backend.job->device = Device::Cuda;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	EXPECT_EQ(backend.job->ran_on, Device::Cuda);
	ASSERT_EQ(device.masked.size(), NTABLETS);
	for (uint32_t t = 0; t < NTABLETS; t++)
	{
		EXPECT_EQ(device.masked[t].size(), t == 0 || t == NTABLETS - 1 ? 1u : t == 2 ? 2u : 0u);
		for (const MaskedRows &range : device.masked[t])
			EXPECT_EQ(range.tablet, t);
	}
	EXPECT_EQ(device.masked[0][0].first, 3u);
	EXPECT_EQ(device.masked[2][1].end, 9u);
	/* it need not look at one that is all masked */
	EXPECT_EQ(device.skipped, 1u);
	EXPECT_EQ(backend.job->tablets_skipped, 1u);

	/* the next job's are its own */
	backend.prepare(true);
	backend.run();
	EXPECT_TRUE(device.masked[0].empty());
}

TEST_F(EngineDeviceTest, TheProcessorAskedForIsTaken)
{
	Backend		backend(this);

	with_device();
	device.estimated = 1;
	backend.prepare();
	backend.job->device = Device::Cpu;
	backend.run();
	EXPECT_EQ(backend.job->ran_on, Device::Cpu);
	EXPECT_EQ(device.estimates, 0);
	EXPECT_EQ(device.runs, 0);
}

TEST_F(EngineDeviceTest, UnitsThatAreNoTilesStayOnTheProcessor)
{
	Backend		backend(this);

	with_device();
	backend.prepare();
	backend.job->device = Device::Cuda;
	backend.job->unit_rows = 1024;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	EXPECT_EQ(backend.job->ran_on, Device::Cpu);
	EXPECT_NE(refusal(backend), "");
	EXPECT_EQ(device.runs, 0);
}

/* ---- refusals and failures ---------------------------------------------------------- */

TEST_F(EngineDeviceTest, WhatTheDeviceRefusesTheProcessorRuns)
{
	with_device();
	device.outcome = DeviceOutcome::Refused;
	device.estimated = 1;
	for (Device asked : {Device::Cuda, Device::Auto})
	{
		for (bool grouped : {false, true})
		{
			Backend		backend(this);

			backend.prepare(grouped);
			backend.job->device = asked;
			backend.run();
			EXPECT_EQ(backend.state(), JobState::Done);
			EXPECT_EQ(backend.job->ran_on, Device::Cpu);
			EXPECT_EQ(refusal(backend), "its memory is short");
			EXPECT_EQ(backend.job->rows_in, NROWS);
			if (!grouped)
				backend.expect_whole_table();
		}
	}
	EXPECT_EQ(device.runs, 4);
}

TEST_F(EngineDeviceTest, WhereTheDeviceIsRequiredARefusalFails)
{
	Backend		backend(this);

	backend.prepare();
	backend.job->device = Device::Cuda;
	backend.job->device_required = 1;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_NE(backend.failure(), "");
	EXPECT_EQ(backend.failure(), refusal(backend));

	with_device();
	device.outcome = DeviceOutcome::Refused;
	backend.prepare();
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_EQ(backend.failure(), "its memory is short");
	EXPECT_EQ(knobs.units, 0);

	/* only a device can be required */
	backend.prepare();
	backend.job->device = Device::Auto;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
}

TEST_F(EngineDeviceTest, AFailingDeviceFailsTheJob)
{
	Backend		backend(this);

	with_device();
	device.outcome = DeviceOutcome::Failed;
	device.publish_first = true;
	backend.prepare();
	backend.job->device = Device::Cuda;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_EQ(backend.failure(), "its memory is short");
	EXPECT_EQ(backend.job->ran_on, Device::Cuda);
	EXPECT_EQ(backend.values.size(), UNIT_ROWS) << "what was published stands";
	EXPECT_EQ(knobs.units, 0);
}

/* To run it again would hand rows out twice. */
TEST_F(EngineDeviceTest, ARefusalAfterRowsIsAFailure)
{
	Backend		backend(this);

	with_device();
	device.outcome = DeviceOutcome::Refused;
	device.publish_first = true;
	backend.prepare();
	backend.job->device = Device::Cuda;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_EQ(knobs.units, 0);
}

TEST_F(EngineDeviceTest, OutOfMemoryIsARefusalUntilRowsWereOut)
{
	with_device();
	device.no_memory = true;
	for (bool published : {false, true})
	{
		Backend		backend(this);

		device.publish_first = published;
		backend.prepare();
		backend.job->device = Device::Cuda;
		backend.run();
		if (published)
		{
			EXPECT_EQ(backend.state(), JobState::Failed);
			EXPECT_EQ(backend.failure(), "out of memory");
			continue;
		}
		EXPECT_EQ(backend.state(), JobState::Done);
		EXPECT_EQ(refusal(backend), "out of memory");
		backend.expect_whole_table();
	}
}

/* ---- the conversation ------------------------------------------------------------------ */

TEST_F(EngineDeviceTest, RowsComeOnceEachThroughOneBuffer)
{
	Backend		backend(this);

	with_device();
	backend.prepare(false, 1);
	backend.job->device = Device::Cuda;
	backend.job->transfer = Transfer::Stream;
	backend.submit();
	ASSERT_TRUE(eventually([&] { return backend.state() == JobState::Suspended && backend.job->engine_waiting == 1; }));
	backend.drain();
	EXPECT_EQ(backend.state(), JobState::Done);
	backend.expect_whole_table();
	EXPECT_EQ(backend.units.size(), NUNITS);
	EXPECT_EQ(device.transfer, Transfer::Stream);

	const Job  *job = backend.job;

	EXPECT_EQ(job->ran_on, Device::Cuda);
	EXPECT_EQ(job->device_index, 1u);
	EXPECT_EQ(job->rows_in, NROWS);
	EXPECT_EQ(job->rows_out, NROWS);
	EXPECT_EQ(job->bytes_read, 11u);
	EXPECT_EQ(job->bytes_moved, 22u);
	EXPECT_EQ(job->device_ns, 33u);
	EXPECT_EQ(job->slices, 4u);
	EXPECT_EQ(job->transfer_used, Transfer::Mapped);
	EXPECT_EQ(job->tablets_scanned, NTABLETS);
	EXPECT_EQ(knobs.units, 0);
}

TEST_F(EngineDeviceTest, SkippedUnitsAndTabletsReachTheDevice)
{
	Backend		backend(this);

	with_device();
	knobs.skip_odd = true;
	backend.prepare();
	backend.job->device = Device::Cuda;
	backend.job->skip_bytes = 1;
	backend.job->skip_units = allocate(1);
	*at<uint8_t>(backend.job->skip_units) = 0x01;
	backend.run();
	EXPECT_EQ(backend.units.size(), NUNITS / 2 - 1);
	EXPECT_EQ(backend.units.count(0), 0u);
	EXPECT_EQ(backend.units.count(1), 1u);
	EXPECT_EQ(backend.units.count(UNITS_PER_TABLET), 0u);
	EXPECT_EQ(backend.job->tablets_skipped, NTABLETS / 2);
	EXPECT_EQ(backend.job->tablets_scanned, NTABLETS / 2);
}

TEST_F(EngineDeviceTest, WhoTakesNoRowsGivesTheDeviceToOthers)
{
	Backend		backend(this);

	with_device();
	context_.client_patience = std::chrono::milliseconds(1);
	backend.prepare(false, 2);
	backend.job->device = Device::Cuda;
	backend.submit();
	ASSERT_TRUE(eventually([&] { return backend.ended(); }));
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_EQ(backend.job->yielded, 1u);
	EXPECT_EQ(backend.job->ran_on, Device::Cuda);
	EXPECT_EQ(knobs.units, 0) << "the processor does not go on with it";

	/* What was handed over is there, and no more. */
	backend.drain();
	EXPECT_EQ(backend.units.size(), 2u);
	EXPECT_EQ(backend.values.size(), 2 * UNIT_ROWS);

	/* The outcome is not the next job's. */
	context_.client_patience = std::chrono::milliseconds(WAIT_MS);
	backend.prepare(false, 2);
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	EXPECT_EQ(backend.job->yielded, 0u);
	backend.expect_whole_table();
}

TEST_F(EngineDeviceTest, RowLimitStopsTheDevice)
{
	Backend		backend(this);

	with_device();
	backend.prepare(false, 4);
	backend.job->device = Device::Cuda;
	backend.job->row_limit = UNIT_ROWS + 1;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	EXPECT_EQ(backend.units.size(), 2u);
	EXPECT_EQ(knobs.units, 0);
}

TEST_F(EngineDeviceTest, CancelStopsTheDevice)
{
	with_device();
	for (bool suspended : {false, true})
	{
		Backend		backend(this);

		device.hold = !suspended;
		backend.prepare();
		backend.job->device = Device::Cuda;
		backend.submit();
		ASSERT_TRUE(eventually([&] { return suspended ? backend.job->engine_waiting == 1 && backend.state() == JobState::Suspended : device.runs > 0; }));
		backend.job->cancel.store(1);
		backend.ring();
		ASSERT_TRUE(backend.wait([&] { return backend.ended(); }));
		EXPECT_EQ(backend.state(), JobState::Failed);
		EXPECT_EQ(backend.failure(), "canceled");
		EXPECT_EQ(knobs.units, 0);
	}
}

/* What is canceled is not begun again elsewhere. */
TEST_F(EngineDeviceTest, CancelAndRefusalEndTheJob)
{
	Backend		backend(this);

	with_device();
	device.hold = true;
	device.outcome = DeviceOutcome::Refused;
	backend.prepare();
	backend.job->device = Device::Cuda;
	backend.submit();
	ASSERT_TRUE(eventually([&] { return device.runs > 0; }));
	backend.job->cancel.store(1);
	ASSERT_TRUE(backend.wait([&] { return backend.ended(); }));
	EXPECT_EQ(backend.failure(), "canceled");
	EXPECT_EQ(knobs.units, 0);
}

TEST_F(EngineDeviceTest, BackendThatGoesStopsTheDevice)
{
	with_device();
	for (bool suspended : {false, true})
	{
		Backend		backend(this);

		device.hold = !suspended;
		device.runs = 0;
		backend.prepare();
		backend.job->device = Device::Cuda;
		backend.submit();
		ASSERT_TRUE(eventually([&] { return suspended ? backend.job->engine_waiting == 1 && backend.state() == JobState::Suspended : device.runs > 0; }));
		backend.hang_up();
		EXPECT_TRUE(eventually([&] { return backend.ended(); }));
		EXPECT_EQ(backend.failure(), "the backend has gone");
	}
}

TEST_F(EngineDeviceTest, GroupedErrorsComeFromTheDevice)
{
	Backend		backend(this);

	with_device();
	device.errors = ERR_SUM_OVERFLOW;
	backend.prepare(true);
	backend.job->device = Device::Cuda;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	EXPECT_EQ(backend.job->errors, ERR_SUM_OVERFLOW);

	/* and leave with it */
	backend.prepare(true);
	backend.job->device = Device::Cpu;
	backend.run();
	EXPECT_EQ(backend.job->errors, 0u);
	EXPECT_EQ(backend.job->slices, 0u);
	EXPECT_EQ(backend.job->device_ns, 0u);
}

/* So do those of rows that are to become a set: the job is no join, and has not failed. */
TEST_F(EngineDeviceTest, ErrorsOfRowsOfASetComeFromTheDevice)
{
	Backend		backend(this);

	with_device();
	device.errors = ERR_SUM_OVERFLOW;
	backend.prepare(false);
	backend.job->device = Device::Cuda;
	backend.job->nbuffers = 0;
	backend.job->sink.set = 1;
	backend.job->sink.ncolumns = 1;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << backend.failure();
	EXPECT_EQ(backend.job->errors, ERR_SUM_OVERFLOW);
}

/* ---- counting groups --------------------------------------------------------------------- */

TEST_F(EngineDeviceTest, GroupsAreCounted)
{
	Backend		backend(this);

	knobs.groups = 3 * UNIT_ROWS + 5;
	backend.prepare(true);
	backend.job->count_groups = 1;
	memset(at<char>(backend.job->buffers[0].offset), 0xff, UNIT_ROWS / 8);
	backend.run();
	ASSERT_EQ(backend.state(), JobState::Done);
	ASSERT_EQ(backend.values, std::vector<uint64_t>{knobs.groups});
	EXPECT_EQ(backend.job->rows_out, 1u);
	EXPECT_EQ(*at<uint8_t>(backend.job->buffers[0].offset), 0) << "it is not null";

	with_device();
	backend.prepare(true);
	backend.job->device = Device::Cuda;
	backend.run();
	EXPECT_TRUE(device.count_groups);
}

TEST_F(EngineDeviceTest, ErrorsAreNotCounted)
{
	Backend		backend(this);

	knobs.error_row = 0;
	backend.prepare(true);
	backend.job->count_groups = 1;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	EXPECT_EQ(backend.job->errors, ERR_SUM_OVERFLOW);
	EXPECT_EQ(backend.values.size(), 0u);
}

/* ---- preparing ------------------------------------------------------------------------------ */

TEST_F(EngineDeviceTest, PrepareCoversTheTablets)
{
	Backend		backend(this);

	backend.prepare();
	backend.job->kind = JobKind::Prepare;
	backend.job->program = 0;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done) << "without a device there is nothing to do";

	with_device();
	device.is_ready = false;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	EXPECT_TRUE(device.prepared.empty());

	device.is_ready = true;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Done);
	EXPECT_EQ(device.prepared.size(), 1u) << "the tablets are neighbours";

	TableVersion *version = at<TableVersion>(version_);
	const uint64_t *tablets = at<uint64_t>(version_ + version->tablets);

	for (uint32_t t = 0; t < NTABLETS; t++)
	{
		EXPECT_GE(tablets[t], device.prepared[0].first);
		EXPECT_LE(tablets[t] + at<TabletHeader>(tablets[t])->size, device.prepared[0].second);
	}
}

TEST_F(EngineDeviceTest, PrepareLeavesGapsAlone)
{
	Backend		backend(this);
	TableVersion *version = at<TableVersion>(version_);
	uint64_t   *tablets = at<uint64_t>(version_ + version->tablets);

	with_device();
	version->ntablets = 3;
	allocate(100 * 1024);

	uint64_t	copy = allocate(at<TabletHeader>(tablets[0])->size);

	/* in no order, and one apart */
	memcpy(at<char>(copy), at<char>(tablets[0]), at<TabletHeader>(tablets[0])->size);
	tablets[2] = tablets[0];
	tablets[0] = copy;
	backend.prepare();
	backend.job->kind = JobKind::Prepare;
	backend.run();
	ASSERT_EQ(backend.state(), JobState::Done);
	ASSERT_EQ(device.prepared.size(), 2u);
	EXPECT_EQ(device.prepared[0].first, tablets[2]);
	EXPECT_EQ(device.prepared[0].second, tablets[1] + at<TabletHeader>(tablets[1])->size);
	EXPECT_EQ(device.prepared[1].first, copy);
}

TEST_F(EngineDeviceTest, PrepareCanBeCanceled)
{
	Backend		backend(this);

	with_device();
	device.hold = true;
	backend.prepare();
	backend.job->kind = JobKind::Prepare;
	backend.submit();
	ASSERT_TRUE(eventually([&] { return backend.state() == JobState::Running; }));
	backend.job->cancel.store(1);
	device.hold = false;
	ASSERT_TRUE(backend.wait([&] { return backend.ended(); }));
	EXPECT_EQ(backend.failure(), "canceled");
}

TEST_F(EngineDeviceTest, PrepareChecksTheVersion)
{
	Backend		backend(this);

	with_device();
	at<TabletHeader>(first_tablet_)->magic = 1;
	backend.prepare();
	backend.job->kind = JobKind::Prepare;
	backend.run();
	EXPECT_EQ(backend.state(), JobState::Failed);
	EXPECT_TRUE(device.prepared.empty());
}

/* ---- loading ---------------------------------------------------------------------------------- */

std::string
loading(EngineContext *context, const char *library, const char *off = nullptr)
{
	DeviceLoaderOptions options;
	char		reason[256];

	options.library = library;
	options.off = off;
	EXPECT_FALSE(load_devices(context->arena, &context->devices, options));
	EXPECT_EQ(context->devices.library(), nullptr);
	context->devices.reason(reason, sizeof(reason));
	EXPECT_STREQ(context->arena.header()->cuda_status, reason);
	return reason;
}

TEST_F(EngineDeviceTest, EachReasonForNoLibraryHasItsSentence)
{
	Dl_info		libc;

	ASSERT_NE(dladdr(reinterpret_cast<void *>(&strerror), &libc), 0);
	EXPECT_EQ(loading(&context_, nullptr), "gpuvm was built without CUDA: gpuvm_cuda.so is not installed");
	EXPECT_EQ(static_cast<DeviceState>(context_.arena.header()->cuda_state.load()), DeviceState::None);
	EXPECT_EQ(loading(&context_, ""), "gpuvm.cuda_library is empty: no GPU is used");
	EXPECT_EQ(loading(&context_, "/no/where.so"), "gpuvm.cuda_library does not exist: \"/no/where.so\"");
	EXPECT_EQ(static_cast<DeviceState>(context_.arena.header()->cuda_state.load()), DeviceState::Unusable);
	EXPECT_NE(loading(&context_, "/proc/self/exe").find("/proc/self/exe"), std::string::npos);
	EXPECT_NE(loading(&context_, "/dev/null").find("/dev/null"), std::string::npos);
	EXPECT_EQ(loading(&context_, "/proc/self/maps", "it ended gpuvmd"), "it ended gpuvmd");
}

}  // namespace
