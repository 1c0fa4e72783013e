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
#include <optional>
#include <system_error>

#include "engine/awake.h"
#include "engine/blame.h"
#include "engine/job_choice.h"
#include "engine/job_io.h"
#include "engine/job_join.h"
#include "engine/job_run.h"
#include "engine/job_stage.h"
#include "engine/job_window.h"
#include "engine/log.h"
#include "engine/pin_words.h"

namespace gpuvm {

/* Tablets begin at whole pages of the arena's allocator: so far apart they are still neighbours. */
constexpr uint64_t PREPARE_GAP = 64 * 1024;
/* A join with so little for its inner sides that it has more passes is as well PostgreSQL's. */
constexpr uint32_t MOST_SHORTAGES = 4;

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
	job->passes = 1;
	job->index_bytes = 0;
	job->stage_rows = 0;
	job->slices = 0;
	job->transfer_used = Transfer::Auto;
	job->yielded = 0;
	job->set_tablets = 0;
	job->waits.store(0);
	job->rows_done.store(0);
	job->rows_to_do.store(0);
	job->expected_cpu_ns = job->expected_device_ns = 0;
	job->queue_ns = job->memory_peak = job->spilled = 0;
	job->restarts = 0;
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

/* ---- the engines --------------------------------------------------------------- */

static double
ns_since(std::chrono::steady_clock::time_point start)
{
	return static_cast<double>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
}

/* One that is canceled or fails teaches nothing. */
static void
learn(EngineContext *context, const Choice &choice, Way way, double expected, double took, const JobIo &io)
{
	if (!io.stopping() && io.failure() == nullptr)
		context->estimates.observe(choice.job, way, expected, took);
}

/* Runs the job's part on the CPU virtual machine. */
template <typename Function> static void
run_on_cpu(EngineContext *context, const Choice &choice, JobIo *io, Function function)
{
	const auto	start = std::chrono::steady_clock::now();
	const RunsOnEngine running(&context->cpu_load);
	ProcessorTime time;

	io->compute();
	{
		CountsFor	counts(choice.cpu_ns > 0 ? &time : nullptr);

		function();
	}
	if (choice.cpu_ns > 0)
		learn(context, choice, Way::Cpu, choice.cpu_ns, running.alone() ? ns_since(start) - static_cast<double>(io->waited().count())
			  : static_cast<double>(time.ns.load()) / choice.threads, *io);
}

/* False when the device refused the job, which is then as good as not begun. */
static bool
run_on_device(EngineContext *context, const Request &request, const JobWork &work, const Choice &choice, Job *job, JobIo *io,
			  DeviceSet **made)
{
	DeviceJobFigures figures = {};
	char		reason[sizeof(Job::device_refusal)] = "";
	DeviceOutcome outcome;

	job->ran_on = Device::Cuda;
	/* Groups are taken at once, and cannot be gone on with; nor can joins, and what is sorted. */
	io->set_patience(request.program->grouped || !request.others.empty() || !request.order.empty() || request.of_set
					 ? std::chrono::milliseconds(0) : context->client_patience);
	try
	{
		const auto	start = std::chrono::steady_clock::now();
		RunsOnDevice at_work(context->arena.header());
		RunsOnEngine running(&context->device_load, static_cast<uint64_t>(choice.device_work_ns));

		outcome = context->devices.library()->run(device_request(context, request, work), io, &figures, reason);
		/* an index is made for later jobs, too */
		if (outcome == DeviceOutcome::Done && choice.device_ns > 0 && figures.indexes_made == 0)
			learn(context, choice, way_to_device(choice), choice.device_ns + running.added() / context->devices.library()->ndevices(),
				  ns_since(start) - static_cast<double>(io->waited().count()) - static_cast<double>(figures.queue_ns), *io);
	}
	catch (const std::bad_alloc &)
	{
		outcome = io->published() ? DeviceOutcome::Failed : DeviceOutcome::Refused;
		snprintf(reason, sizeof(reason), "out of memory");
	}
	reason[sizeof(reason) - 1] = '\0';

	if (outcome == DeviceOutcome::Refused && !io->published())
	{
		job->ran_on = Device::Cpu;
		/* for its set, of which the CPU would find no more: others may give some back */
		if (figures.set_short != 0 && request.account->can_wait_for(figures.set_short))
		{
			io->fail(SET_NO_MEMORY);
			return true;
		}
		memcpy(job->device_refusal, reason, sizeof(reason));
		io->set_patience(std::chrono::milliseconds(0));
		return false;
	}
	*made = figures.set;
	if (outcome != DeviceOutcome::Done)
		io->fail(reason[0] ? reason : "the device failed");
	job->yielded = io->yielded();
	job->errors = figures.errors;
	if (figures.errors != 0 && !request.others.empty() && !request.program->grouped && request.order.empty())
		io->fail("an operation of the join raised an error");
	job->pairs = figures.pairs;
	job->stage_rows = figures.stage_rows;
	job->build_rows = figures.build_rows;
	job->build_bytes = figures.build_bytes;
	job->indexes_used = figures.indexes_used;
	job->indexes_made = figures.indexes_made;
	job->passes = std::max(figures.passes, 1u);
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

/* Sets that a device has are made tablets, for the CPU to read or add to. False: that cannot be, and the job has failed. */
static bool
bring_sets_home(EngineContext *context, Request *request, JobIo *io)
{
	const auto	bring = [&](RequestCursor *cursor)
	{
		const char *wrong = cursor->set == nullptr || cursor->set->device() == nullptr ? nullptr
			: cursor->set->bring_home(context->devices.library(), request->account);

		if (cursor->set != nullptr)
			list_set(*cursor->set, cursor);
		if (wrong != nullptr)
			io->fail(wrong);
		return wrong == nullptr;
	};
	RequestCursor appended;

	appended.set = request->append_to;
	return bring(request) && bring(&appended) &&
		std::all_of(request->others.begin(), request->others.end(), [&](RequestCursor &other) { return bring(&other); });
}

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

/* Rows that are on a device only are work, too. */
static void
add_device_rows(const RequestCursor &cursor, JobWork *work)
{
	if (cursor.set != nullptr && cursor.set->device() != nullptr)
		work->rows += cursor.total_rows;
}

/* As a device takes it, which asks the zone maps itself. */
static JobWork
plan_join_work(const Request &request)
{
	JobWork		work;

	work.tablets = tablets_of(request, &work);
	add_device_rows(request, &work);
	for (const RequestCursor &other : request.others)
	{
		work.other_tablets.push_back(tablets_of(other, &work));
		work.others.push_back(device_cursor(other, work.other_tablets.back()));
		add_device_rows(other, &work);
	}
	return work;
}

/* Has a device run the join? */
static bool
join_on_device(EngineContext *context, const Request &request, Choice *choice, Job *job, JobIo *io, DeviceSet **made)
{
	if (request.device == Device::Cpu)
		return false;

	const JobWork work = plan_join_work(request);

	return choose_device(context, request, work, job, choice) && run_on_device(context, request, work, *choice, job, io, made);
}

static void
run_join(EngineContext *context, Request *request, Job *job, JobIo *io, SetBuild *set, DeviceSet **made)
{
	Choice		choice;

	if (join_on_device(context, *request, &choice, job, io, made) || io->stopped())
		return;
	if (request->device_required)
	{
		io->fail(job->device_refusal);
		return;
	}
	if (!bring_sets_home(context, request, io))
		return;
	run_on_cpu(context, choice, io, [&]
	{
		JoinBuild	build(*request, job, io, context->pool, &context->indexes);

		if (!build.run() || io->stopped())
			return;

		const JobWork work = plan_work(*build.join(), *request);
		JobRun		run(*request, work, &build, job, io, context->pool, set);

		run.run();
		run_stage(context, *request, build.join(), run.take_groups(), job, io, set);
		job->bytes_read += build.bytes_read();
		job->tablets_skipped = work.skipped;
	});
}

static std::unique_ptr<CpuJob>
make_scan(const EngineContext *context, const Request &request)
{
	return context->make_cpu_job(request.program, request.params, request.nparams, request.columns.data(),
								 static_cast<uint32_t>(request.columns.size()), request.total_rows, request.maps.data(),
								 request.patterns.data(), request.text_keys.get());
}

static void
run_scan(EngineContext *context, Request *request, Job *job, JobIo *io, SetBuild *set, DeviceSet **made)
{
	std::unique_ptr<CpuJob> cpu = make_scan(context, *request);
	JobWork		work = plan_work(*cpu, *request);

	add_device_rows(*request, &work);
	Choice		choice;

	if (!choose_device(context, *request, work, job, &choice) || !run_on_device(context, *request, work, choice, job, io, made))
	{
		if (request->device_required)
			io->fail(job->device_refusal);
		else if (!io->stopped() && bring_sets_home(context, request, io))
		{
			if (request->set != nullptr)
			{
				cpu = make_scan(context, *request);
				work = plan_work(*cpu, *request);
			}

			run_on_cpu(context, choice, io, [&]
			{
				JobRun		run(*request, work, cpu.get(), job, io, context->pool, set);

				run.run();
				run_stage(context, *request, cpu.get(), run.take_groups(), job, io, set);
			});
		}
	}
	job->tablets_skipped = work.skipped;
}

/* ---- the set that it makes ------------------------------------------------------ */

/* Of a device: nullptr where it was added to the one that is there; else it is the caller's to put. */
static std::unique_ptr<ResultSet>
take_device_set(EngineContext *context, const Request &request, DeviceSet *made, JobIo *io)
{
	ResultSet  *old = request.append_to.get();
	const bool	grown = old != nullptr && old->device() == made;
	const uint64_t before = grown ? old->device_bytes() : 0, now = made->bytes(), more = now > before ? now - before : 0;
	std::unique_ptr<DeviceSet> mine(grown ? nullptr : made);

	if (!request.account->take(more))
	{
		io->fail(SET_NO_MEMORY);
		return nullptr;
	}

	SetShare	share(request.account, more);

	if (grown)
	{
		old->grown(std::move(share));
		return nullptr;
	}
	return std::make_unique<ResultSet>(request.shape, mine.release(), std::move(share));
}

/* The job has come to its end without an error: the set is there from now on. False: the job has failed. */
static bool
keep_set(EngineContext *context, SetStore *sets, const Request &request, std::unique_ptr<ResultSet> made, JobIo *io)
{
	const uint32_t number = request.sink.set;
	ResultSet  *old = request.append_to.get();

	if (made != nullptr)
	{
		if (old == nullptr)
			sets->put(number, std::move(made));
		else
		{
			const char *wrong = made->bring_home(context->devices.library(), request.account);

			if (wrong == nullptr)
				wrong = old->bring_home(context->devices.library(), request.account);
			if (wrong != nullptr)
			{
				io->fail(wrong);
				return false;
			}
			old->append(made.get());
		}
	}
	put_columns(*sets->find(number), 0, request.known);
	return true;
}

/* ---- the job, once more --------------------------------------------------------- */

/* True: a set has come of it. */
static bool
run_request(EngineContext *context, SetStore *sets, Request *request, Job *job, JobIo *io)
{
	auto		start = std::chrono::steady_clock::now();

	if (request->kind == JobKind::Prepare)
	{
		prepare_tablets(context, *request, io);
		return false;
	}

	if (request->kind == JobKind::Window)
	{
		const bool	kept = run_window(context, *request, job, io);

		job->engine_ns = static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
		return kept;
	}

	const uint64_t before = request->append_to != nullptr ? request->append_to->nrows() : 0;
	bool		kept = false;
	std::unique_ptr<SetBuild> build;
	std::unique_ptr<ResultSet> made;
	DeviceSet  *of_device = nullptr;

	if (request->sink.set != 0)
		build = std::make_unique<SetBuild>(*request, request->shape, request->account, io, context->pool);
	if (request->others.empty())
		run_scan(context, request, job, io, build.get(), &of_device);
	else
		run_join(context, request, job, io, build.get(), &of_device);
	job->rows_out = io->rows_out();
	if (build != nullptr)
	{
		for (uint32_t c = 0; c < request->shape.ncolumns(); c++)
			job->errors |= build->overflows(c) ? uint32_t(ERR_INT_OVERFLOW) : 0;
		if (of_device != nullptr)
			made = take_device_set(context, *request, of_device, io);
		else
			made = build->finish();
		if (job->errors == 0 && !io->stopping())
			kept = keep_set(context, sets, *request, std::move(made), io);
		if (kept)
		{
			const ResultSet &set = *sets->find(request->sink.set);

			job->rows_out = set.nrows() - before;
			job->set_tablets = set.device() != nullptr ? 1 : static_cast<uint32_t>(set.tablets().size());
		}
	}
	job->engine_ns = static_cast<uint64_t>(
		std::chrono::nanoseconds(std::chrono::steady_clock::now() - start - io->waited()).count());
	return kept;
}

enum class Attempt
{
	Done,
	Failed,						/* as Job.failure says */
	ShortOfMemory,				/* likewise; nothing has left, so it may be begun again */
	ShortByPasses,				/* likewise, and an inner side may be made in more of them */
	ShortByThreads,				/* likewise, and each thread had a table of groups of its own */
	ShortOfSets					/* likewise: what other sessions keep is in the way */
};

static Attempt
try_job(EngineContext *context, SetStore *sets, SessionShare *share, Job *job, Doorbell *doorbell, uint32_t shortages, bool one_thread)
{
	const bool	has_program = job->kind == JobKind::Run || job->kind == JobKind::Window;
	RunsProgram	runs(context->arena.header(), has_program ? job->program_hash : 0);
	Request		request;
	std::optional<JobIo> io;
	Attempt		outcome = Attempt::ShortOfMemory;

	try
	{
		context->indexes.tidy();

		const char *wrong = read_request(context->arena, job, *sets, &context->checked, &context->collators, &request);

		if (wrong != nullptr)
		{
			set_failure(job, wrong);
			return Attempt::Failed;
		}
		if (one_thread)
			request.threads = 1;
		request.shortages = shortages;
		request.account = sets->account();
		io.emplace(request, job, doorbell, context->processors, share);

		const bool	kept = run_request(context, sets, &request, job, &*io);

		if (io->failure() == nullptr && job->cancel.load() != 0 && !kept)
			io->fail("canceled");
		if (io->failure() == nullptr)
			return Attempt::Done;
		set_failure(job, io->failure());
		if (job->errors == 0 && sets->account()->can_wait())
			outcome = Attempt::ShortOfSets;
		else if (!io->short_of_memory())
			return Attempt::Failed;
	}
	catch (const std::bad_alloc &)
	{
		const char *failure = io ? io->failure() : nullptr;

		set_failure(job, failure != nullptr ? failure : OUT_OF_MEMORY);
		if (failure != nullptr && !io->short_of_memory())
			return Attempt::Failed;
	}
	catch (const std::exception &)
	{
		set_failure(job, "unexpected error in the virtual machine");
		return Attempt::Failed;
	}
	/* a device may have added to a set */
	if ((io && io->published()) ||
		(job->ran_on != Device::Cpu && (outcome != Attempt::ShortOfSets || (request.append_to != nullptr && request.append_to->device() != nullptr))))
		return Attempt::Failed;
	if (io)
		io->unclaim_all();
	if (outcome == Attempt::ShortOfSets)
		return outcome;
	if (request.program != nullptr && !request.others.empty() && may_pass(request) && shortages < MOST_SHORTAGES)
		return Attempt::ShortByPasses;
	return request.program != nullptr && request.program->grouped && most_threads(request, context->pool) > 1
		? Attempt::ShortByThreads : Attempt::ShortOfMemory;
}

/*
 * Waits until it is worth while to begin again, in the queue of what it was short of. Who waits for memory keeps what he has of
 * sets, but not the other way round: so no two wait for each other.
 */
static bool
wait_for_more(Attempt outcome, Job *job, JobMemory *memory, SetAccount *account, const std::function<bool()> &ended)
{
	const Awake::Sleeps sleeps;

	if (outcome == Attempt::ShortOfSets)
	{
		memory->start_over();
		return account->wait_for_more([&]
		{
			job->looks.fetch_add(1, std::memory_order_relaxed);
			return ended();
		});
	}
	return memory->wait_for_more(ended);
}

/* The server's log is where one looks why PostgreSQL's own plan ran. */
static void
log_shortage(EngineContext *context, const Job *job, const JobMemory::Refusal &refusal)
{
	const auto	mb = [](uint64_t bytes) { return static_cast<unsigned long long>(bytes >> 20); };
	const auto	kb = [](uint64_t bytes) { return static_cast<unsigned long long>(bytes >> 10); };
	char		why[128] = "from the heap";

	if (refusal.error != 0)
		snprintf(why, sizeof(why), "%llu kB from the system: %s", kb(refusal.asked), std::generic_category().message(refusal.error).c_str());
	else if (refusal.asked != 0)
		snprintf(why, sizeof(why), "%llu kB beside %llu", kb(refusal.asked), kb(refusal.had));
	log_line("a job found no memory on %s%s, after %u restarts and %llu ms of waiting (it asked for %s): it had %llu MB at most, of %llu MB all have %llu MB, "
			 "%llu of them jobs that run, and result sets %llu MB%s%s",
			 job->ran_on == Device::Cpu ? "the CPU" : "a device", job->rows_out > 0 ? " with rows handed out" : "",
			 job->restarts, static_cast<unsigned long long>(job->queue_ns / 1000000), why, mb(job->memory_peak), mb(context->memory.limit()),
			 mb(context->memory.used()), mb(context->memory.held()), mb(context->arena.header()->result_bytes.load()),
			 job->device_refusal[0] ? "; the device: " : "", job->device_refusal);
}

/*
 * What finds no memory is begun again when there is some; where there is no more, a join with less for its inner sides, and at last by one
 * thread, which needs one table where many need one each.
 */
static bool
run_with_memory(EngineContext *context, SetStore *sets, SessionShare *share, Job *job, Doorbell *doorbell)
{
	JobMemory	memory(&context->memory, JobMemory::Of::Job, job->job_memory, job->priority);
	JobMemory::Use uses(&memory);
	const std::chrono::milliseconds patience(job->queue_timeout);
	std::chrono::nanoseconds waited{0};
	auto		since = std::chrono::steady_clock::now();
	bool		waited_long = false;
	const auto	left = [&] { return job->cancel.load() != 0 || doorbell->gone(); };
	const auto	ended = [&]
	{
		waited_long = patience.count() != 0 && waited + (std::chrono::steady_clock::now() - since) > patience;
		return waited_long || left();
	};
	uint32_t	restarts = 0, shortages = 0;
	Attempt		outcome = Attempt::Failed;

	for (bool one_thread = false;; restarts++)
	{
		reset_outcome(job);
		outcome = try_job(context, sets, share, job, doorbell, shortages, one_thread);
		if (outcome == Attempt::Done || outcome == Attempt::Failed)
			break;
		if (outcome != Attempt::ShortOfSets)
			context->indexes.drop_unused();

		since = std::chrono::steady_clock::now();
		job->waits.store(WAITS_FOR_MEMORY);

		const bool	goes_on = wait_for_more(outcome, job, &memory, sets->account(), ended);

		waited += std::chrono::steady_clock::now() - since;
		if (goes_on)
			continue;
		if (waited_long && !left())
			set_failure(job, "it waited for memory for longer than gpuvm.queue_timeout");
		/* what needs no more waiting is tried */
		if (waited_long || left() || (outcome != Attempt::ShortByPasses && outcome != Attempt::ShortByThreads))
			break;
		if (outcome == Attempt::ShortByPasses)
			shortages++;
		else
			one_thread = true;
	}
	job->waits.store(0);
	job->restarts = restarts;
	job->queue_ns = static_cast<uint64_t>(waited.count());
	job->memory_peak = memory.peak();
	if (outcome != Attempt::Done && job->cancel.load() == 0 && strcmp(job->failure, OUT_OF_MEMORY) == 0)
		log_shortage(context, job, memory.refusal());
	return outcome == Attempt::Done;
}

bool
run_job(EngineContext *context, SetStore *sets, SessionShare *share, Job *job, Doorbell *doorbell)
{
	/* the backend may change it meanwhile, to no avail */
	const uint64_t dropped = job->drop_sets;
	bool		done = job->kind == JobKind::Drop;

	sets->account()->begin_job();
	try
	{
		if (done)
			reset_outcome(job);
		else
			done = run_with_memory(context, sets, share, job, doorbell);
	}
	catch (const std::bad_alloc &)
	{
		set_failure(job, OUT_OF_MEMORY);
	}
	sets->drop(dropped);
	sets->account()->end_job();
	return done;
}

}  // namespace gpuvm
