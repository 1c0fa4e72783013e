/*
 * job_dispatch.cc: which engine runs a job, and what becomes of a refusal.
 *
 * Device::Cpu and Device::Cuda name the engine; for Device::Auto the expected times
 * decide. A device may refuse a job before it has published anything: it does not
 * fit, or its memory is short. Then the CPU virtual machine runs the job from its
 * start, and device_refusal says why; so it does when the device was asked for, for
 * it is the backend that decides what to think of it (it may have said so before:
 * device_required). A device that fails after it has published fails the job.
 */
#include "engine/job_dispatch.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "engine/cost.h"
#include "engine/job_io.h"
#include "engine/job_join.h"
#include "engine/job_run.h"
#include "engine/job_stage.h"
#include "engine/pin_words.h"

namespace gpuvm {

/* Tablets begin at whole pages of the arena's allocator: so far apart they are still neighbours. */
constexpr uint64_t PREPARE_GAP = 64 * 1024;

static_assert(sizeof(Job::device_refusal) == 128 && sizeof(Job::failure) == 128, "as the device ABI has it");

static void
reset_outcome(Job *job)
{
	job->errors = 0;
	job->ran_on = Device::Cpu;
	job->tablets_scanned = job->tablets_skipped = 0;
	job->rows_in = job->rows_out = job->bytes_read = 0;
	job->engine_ns = 0;
	job->threads_used = 1;
	job->device_index = 0;
	job->bytes_moved = job->device_ns = 0;
	job->pairs = job->build_rows = job->build_bytes = 0;
	job->indexes_used = job->indexes_made = 0;
	job->index_bytes = 0;
	job->stage_rows = 0;
	job->slices = 0;
	job->transfer_used = Transfer::Auto;
	job->yielded = 0;
	job->device_refusal[0] = '\0';
	job->failure[0] = '\0';
}

static void
set_failure(Job *job, const char *why)
{
	snprintf(job->failure, sizeof(job->failure), "%s", why);
}

/* ---- preparing --------------------------------------------------------------- */

/* The tablets' bytes, neighbours together, in steps between which the backend may think better of it. */
static void
prepare_tablets(EngineContext *context, const Request &request, JobIo *io)
{
	DeviceLibrary *library = context->devices.library();
	const char *base = reinterpret_cast<const char *>(context->arena.header());
	const uint64_t step = pin_chunk_bytes(context->arena.header()->size);
	std::vector<std::pair<uint64_t, uint64_t>> ranges;	/* first byte, end */
	size_t		last = 0;

	if (library == nullptr || !library->ready() || request.tablets.empty())
		return;
	for (const RequestTablet &of : request.tablets)
	{
		const TabletHeader *tablet = of.tablet;
		uint64_t	offset = static_cast<uint64_t>(reinterpret_cast<const char *>(tablet) - base);

		ranges.emplace_back(offset, offset + tablet->size);
	}
	std::sort(ranges.begin(), ranges.end());
	for (size_t i = 1; i < ranges.size(); i++)
	{
		if (ranges[i].first <= ranges[last].second + PREPARE_GAP)
			ranges[last].second = std::max(ranges[last].second, ranges[i].second);
		else
			ranges[++last] = ranges[i];
	}
	ranges.resize(last + 1);
	for (const auto &[first, end] : ranges)
	{
		for (uint64_t at = first; at < end && !io->stopped(); at += step)
			library->prepare(at, std::min(step, end - at));
	}
}

/* ---- the device --------------------------------------------------------------- */

static DeviceJobRequest
device_request(const Request &request, const JobWork &work)
{
	DeviceJobRequest to = {};

	to.program = request.program;
	to.params = request.params;
	to.nparams = request.nparams;
	to.maps = request.maps.data();
	to.nmaps = static_cast<uint32_t>(request.maps.size());
	to.patterns = request.patterns.data();
	to.text_orders = request.text_orders.data();
	to.others = work.others.data();
	to.nothers = static_cast<uint32_t>(work.others.size());
	to.build_limit = request.build_limit;
	to.expected_pairs = request.expected_pairs;
	to.columns = request.columns.data();
	to.ncolumns = static_cast<uint32_t>(request.columns.size());
	to.tablets = work.tablets.data();
	to.ntablets = static_cast<uint32_t>(work.tablets.size());
	to.total_rows = request.total_rows;
	to.unit_rows = request.unit_rows;
	to.capacity = request.capacity;
	to.nbuffers = request.nbuffers;
	to.areas = request.areas;
	to.skip_units = request.skip_units.data();
	to.skip_bytes = request.skip_units.size();
	to.row_limit = request.row_limit;
	to.order = request.order.data();
	to.norder = static_cast<uint32_t>(request.order.size());
	to.count_groups = request.count_groups;
	to.stage = request.stage;
	to.transfer = request.transfer;
	return to;
}

/* What the CPU virtual machine is expected to take. */
static uint64_t
cpu_ns(const Request &request, const JobWork &work, uint32_t threads)
{
	const Op   *ops = request.program->ops();
	/* groups are few */
	const uint64_t sorting = request.order.empty() || request.program->grouped ? 0 : cpu_sort_estimate(work.rows, request.row_limit, threads);

	if (request.others.empty())
		return sorting + cpu_estimate(work.rows, work.bytes, request.program->nkeys > 0, threads);
	return sorting + cpu_join_estimate(work.rows, request.expected_pairs,
							 std::any_of(ops, ops + request.program->nops, [](const Op &op) { return op.opcode == Opcode::Cross; }), threads);
}

/* Is the device to run the job? Else the refusal is empty or says why it could not. */
static bool
choose_device(const EngineContext *context, const Request &request, const JobWork &work, char *refusal, size_t size)
{
	DeviceLibrary *library = context->devices.library();

	if (request.device == Device::Cpu)
		return false;
	if (library == nullptr)
	{
		/* Nobody asked for what is not there. */
		if (request.device == Device::Cuda)
			context->devices.reason(refusal, size);
		return false;
	}
	if ((request.others.empty() || request.stage != nullptr) && !request.last()->grouped && request.unit_rows % TABLET_PAD_ROWS != 0)
	{
		snprintf(refusal, size, "the job's units are not multiples of %u rows", TABLET_PAD_ROWS);
		return false;
	}
	if (request.device == Device::Cuda)
		return true;

	uint64_t	device_ns;

	try
	{
		device_ns = library->estimate(device_request(request, work), refusal);
	}
	catch (const std::bad_alloc &)
	{
		snprintf(refusal, size, "out of memory");
		return false;
	}
	refusal[size - 1] = '\0';
	if (device_ns == UINT64_MAX)
		return false;
	refusal[0] = '\0';
	return device_ns < cpu_ns(request, work, most_threads(request, context->pool));
}

/* False when the device refused the job, which is then as good as not begun. */
static bool
run_on_device(DeviceLibrary *library, std::chrono::milliseconds patience, const Request &request, const JobWork &work,
			  Job *job, JobIo *io)
{
	DeviceJobFigures figures = {};
	char		reason[sizeof(Job::device_refusal)] = "";
	DeviceOutcome outcome;

	job->ran_on = Device::Cuda;
	/* Groups are taken at once, and cannot be gone on with; nor can joins, and what is sorted. */
	io->set_patience(request.program->grouped || !request.others.empty() || !request.order.empty() ? std::chrono::milliseconds(0) : patience);
	try
	{
		outcome = library->run(device_request(request, work), io, &figures, reason);
	}
	catch (const std::bad_alloc &)
	{
		outcome = io->published() ? DeviceOutcome::Failed : DeviceOutcome::Refused;
		snprintf(reason, sizeof(reason), "out of memory");
	}
	reason[sizeof(reason) - 1] = '\0';

	if (outcome == DeviceOutcome::Refused && !io->published())
	{
		memcpy(job->device_refusal, reason, sizeof(reason));
		job->ran_on = Device::Cpu;
		io->set_patience(std::chrono::milliseconds(0));
		return false;
	}
	if (outcome != DeviceOutcome::Done)
		io->fail(reason[0] ? reason : "the device failed");
	job->yielded = io->yielded();
	job->errors = figures.errors;
	if (figures.errors != 0 && !request.program->grouped && request.order.empty())
		io->fail("an operation of the join raised an error");
	job->pairs = figures.pairs;
	job->stage_rows = figures.stage_rows;
	job->build_rows = figures.build_rows;
	job->build_bytes = figures.build_bytes;
	job->indexes_used = figures.indexes_used;
	job->indexes_made = figures.indexes_made;
	job->index_bytes = figures.index_bytes;
	job->device_index = figures.device;
	job->tablets_scanned = figures.tablets_scanned;
	job->rows_in = figures.rows_in;
	job->bytes_read = figures.bytes_read;
	job->bytes_moved = figures.bytes_moved;
	job->device_ns = figures.device_ns;
	job->slices = figures.slices;
	job->transfer_used = figures.transfer;
	return true;
}

/* ---- the job ------------------------------------------------------------------- */

static std::vector<DeviceTabletRef>
tablets_of(const RequestCursor &cursor, JobWork *work)
{
	std::vector<DeviceTabletRef> tablets;

	for (const RequestTablet &of : cursor.tablets)
	{
		const bool	skip = of.wholly_masked();

		tablets.push_back(DeviceTabletRef{of.tablet, skip, of.masked, of.nmasked});
		work->rows += skip ? 0 : of.tablet->nrows - of.masked_rows;
	}
	return tablets;
}

/* As a device takes it, which asks the zone maps itself. */
static JobWork
plan_join_work(const Request &request)
{
	JobWork		work;

	work.tablets = tablets_of(request, &work);
	for (const RequestCursor &other : request.others)
	{
		work.other_tablets.push_back(tablets_of(other, &work));
		work.others.push_back(DeviceCursor{other.columns.data(), static_cast<uint32_t>(other.columns.size()), work.other_tablets.back().data(),
										   static_cast<uint32_t>(work.other_tablets.back().size()), other.total_rows});
	}
	return work;
}

/* Has a device run the join? */
static bool
join_on_device(EngineContext *context, const Request &request, Job *job, JobIo *io)
{
	if (request.device == Device::Cpu)
		return false;

	const JobWork work = plan_join_work(request);

	return choose_device(context, request, work, job->device_refusal, sizeof(job->device_refusal)) &&
		run_on_device(context->devices.library(), context->client_patience, request, work, job, io);
}

static void
run_join(EngineContext *context, const Request &request, Job *job, JobIo *io)
{
	if (join_on_device(context, request, job, io) || io->stopped())
		return;
	if (request.device_required)
	{
		io->fail(job->device_refusal);
		return;
	}

	JoinBuild	build(request, job, io, context->pool, &context->indexes);

	if (!build.run() || io->stopped())
		return;

	JobWork		work = plan_work(*build.join(), request);

	JobRun		run(request, work, build.join(), job, io, context->pool);

	run.run();
	run_stage(context, request, build.join(), run.take_groups(), job, io);
	job->bytes_read += build.bytes_read();
	job->tablets_skipped = work.skipped;
}

static void
run_scan(EngineContext *context, const Request &request, Job *job, JobIo *io)
{
	std::unique_ptr<CpuJob> cpu = context->make_cpu_job(request.program, request.params, request.nparams,
														request.columns.data(),
														static_cast<uint32_t>(request.columns.size()), request.total_rows,
														request.maps.data(), request.patterns.data(), request.text_keys.get());
	JobWork		work = plan_work(*cpu, request);

	if (!choose_device(context, request, work, job->device_refusal, sizeof(job->device_refusal)) ||
		!run_on_device(context->devices.library(), context->client_patience, request, work, job, io))
	{
		if (request.device_required)
			io->fail(job->device_refusal);
		else if (!io->stopped())
		{
			JobRun		run(request, work, cpu.get(), job, io, context->pool);

			run.run();
			run_stage(context, request, cpu.get(), run.take_groups(), job, io);
		}
	}
	job->tablets_skipped = work.skipped;
}

static void
run_request(EngineContext *context, const Request &request, Job *job, JobIo *io)
{
	auto		start = std::chrono::steady_clock::now();

	if (request.kind == JobKind::Prepare)
	{
		prepare_tablets(context, request, io);
		return;
	}
	if (request.others.empty())
		run_scan(context, request, job, io);
	else
		run_join(context, request, job, io);
	job->rows_out = io->rows_out();
	job->engine_ns = static_cast<uint64_t>(
		std::chrono::nanoseconds(std::chrono::steady_clock::now() - start - io->waited()).count());
}

bool
run_job(EngineContext *context, Job *job, Doorbell *doorbell)
{
	const char *wrong;

	reset_outcome(job);
	try
	{
		Request		request;

		context->indexes.tidy();
		wrong = read_request(context->arena, job, &context->checked, &context->collators, &request);
		if (wrong != nullptr)
		{
			set_failure(job, wrong);
			return false;
		}

		JobIo		io(request, job, doorbell);

		run_request(context, request, job, &io);
		if (io.short_of_memory())
			context->indexes.drop_unused();
		if (io.failure() == nullptr && job->cancel.load() != 0)
			io.fail("canceled");
		if (io.failure() == nullptr)
			return true;
		set_failure(job, io.failure());
	}
	catch (const std::bad_alloc &)
	{
		context->indexes.drop_unused();
		set_failure(job, "out of memory");
	}
	catch (const std::exception &)
	{
		set_failure(job, "unexpected error in the virtual machine");
	}
	return false;
}

}  // namespace gpuvm
