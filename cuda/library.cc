/*
 * library.cc: the DeviceLibrary of this machine's CUDA devices, and the symbol by
 * which gpuvmd finds it.
 *
 * Threads. gpuvmd calls run() and estimate() from session threads, prepare() and
 * housekeep() from others, at any time once start() has returned; before, they
 * refuse or do nothing. Locks are the residency's, the device's list of lanes and those
 * of the arena's pin chunks; none is taken while another is held, and none while
 * a thread waits for a device.
 *
 * Several devices: each has a residency of its own. A job runs on the one that
 * has most of its columns, or, where that is equal, fewest jobs.
 */
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "cost.h"
#include "device.h"
#include "failure.h"
#include "job_scan.h"
#include "job_window.h"
#include "join.h"
#include "join_index.h"
#include "pin.h"
#include "result_set.h"
#include "stage.h"
#include "top_rows.h"
#include "work.h"

namespace gpuvm {
namespace cuda {

namespace {

constexpr size_t REASON_BYTES = 128;
constexpr size_t WHY_BYTES = 256;
constexpr std::chrono::seconds REFUSALS_APART(1);	/* in the log */
/* A join for which memory is short: as it is, reduced and in as many passes as are thought to fit, in more if they do not. */
constexpr int JOIN_ATTEMPTS = 3;
/* estimate() looks up at most so many tablets, and takes the others to be alike. */
constexpr uint32_t ESTIMATE_TABLETS = 32;
/* Of a filter of which nothing is known. */
constexpr double GUESSED_SELECTIVITY = 0.1;
/* Bytes of the job's own that may be brought twice, once for a sample. */
constexpr uint64_t SAMPLED_DELTA = 4 << 20;

/* For tests of a server: joins are reduced, and made in so many passes, a power of two. */
uint32_t
forced_passes()
{
	static const char *const passes = getenv("GPUVM_FORCE_PASSES");

	return passes != nullptr ? static_cast<uint32_t>(strtoul(passes, nullptr, 10)) : 0;
}

class CudaLibrary final : public DeviceLibrary
{
public:
	CudaLibrary(const DeviceOptions &options, int ndevices);

	uint32_t ndevices() const override { return static_cast<uint32_t>(devices_.size()); }
	void		start() override;
	bool ready() const override { return ready_.load(std::memory_order_acquire); }
	DeviceEstimate estimate(const DeviceJobRequest &request, char *reason) override;
	DeviceOutcome run(const DeviceJobRequest &request, DeviceJobIo *io, DeviceJobFigures *figures, char *reason) override;
	DeviceOutcome run_window(DeviceSet *set, const WindowSpec &spec, DeviceJobIo *io, DeviceJobFigures *figures, char *reason) override;
	bool		copy_set(const DeviceSet *set, uint64_t first, uint64_t nrows, char *const *values, uint64_t *const *nulls) override;
	void		prepare(uint64_t offset, uint64_t bytes) override;
	void		housekeep() override;

private:
	struct Share
	{
		uint64_t	there;		/* bytes of the job's columns on the device */
		uint64_t	missing;
		uint64_t	delta;		/* of this job alone */
		uint32_t	indexes;	/* bit i: reading i's is there, and nothing else of it is read */
	};

	/* A cursor, and the program that reads it. */
	struct Reading
	{
		const DeviceCursor &cursor;
		const DeviceProgram &program;
		std::string index;		/* its key (join_index.h), or empty */
		bool		text_keys = false;	/* it is of images that TextKey makes keys of */
	};

	/* A job lowered; all are the thread's, until it lowers another. */
	struct Lowered
	{
		const DeviceProgram *stage = nullptr;
		const DeviceProgram *program = nullptr;	/* of one cursor */
		JoinPlan   *join = nullptr;
		std::vector<Reading> readings;
		std::vector<std::unique_ptr<DeviceProgram>> images;	/* text_keys.h */

		bool		done() const { return !readings.empty(); }
	};

	Lowered		lower_job(const SetRequest &bound, const char **reason) const;
	static void add_images(const DeviceJobRequest &request, Lowered *job);
	Share		share_of(CudaDevice *device, const Lowered &job) const;
	CudaDevice *choose_device(const SetRequest &request, const Lowered &job, Share *share) const;
	void		run_one(CudaDevice *device, const DeviceJobRequest &request, const DeviceProgram *program, JoinPlan *join, StoredSet *sink,
						DeviceJobIo *io, DeviceJobFigures *figures, bool *published);
	void		run_staged(CudaDevice *device, const DeviceJobRequest &request, const Lowered &lowered, StoredSet *sink, DeviceJobIo *io,
						   DeviceJobFigures *figures, bool *published);
	const DeviceProgram *bound_rows(CudaDevice *device, const DeviceProgram *program, TopRows *top, DeviceJobIo *io, DeviceJobFigures *figures);
	void		try_run(CudaDevice *device, const DeviceJobRequest &request, const Lowered &lowered, const Share &share, StoredSet *sink,
						DeviceJobIo *io, DeviceJobFigures *figures, bool *published);
	void		run_with_sink(CudaDevice *device, const DeviceJobRequest &request, const Lowered &lowered, const Share &share, DeviceJobIo *io,
							  DeviceJobFigures *figures, bool *published);
	void		fail(const CudaDevice *device, const CudaFailure &failure, char *reason) const;
	DeviceOutcome finish(CudaDevice *device, const std::function<void()> &job, const bool *published, const DeviceJobFigures &figures,
						 char *reason) const;

	const DeviceOptions options_;
	/* The arena outlives the devices' last use of it, so it is destroyed after them. */
	std::unique_ptr<PinnedArena> arena_;
	JoinWays	join_ways_;
	std::vector<std::unique_ptr<CudaDevice>> devices_;
	uint32_t	shared_bytes_ = 0;	/* of a multiprocessor, the least of the devices' */
	std::atomic<bool> ready_{false};
	mutable std::atomic<std::chrono::steady_clock::duration> refusal_logged_{};	/* when */
};

CudaLibrary::CudaLibrary(const DeviceOptions &options, int ndevices) : options_(options)
{
	for (int i = 0; i < std::min(ndevices, MAX_DEVICES); i++)
		devices_.push_back(std::make_unique<CudaDevice>(static_cast<uint32_t>(i), i, options));
	options.header->ndevices.store(static_cast<uint32_t>(devices_.size()));
}

void
CudaLibrary::start()
{
	std::vector<int> ordinals;
	bool		any = false;

	for (std::unique_ptr<CudaDevice> &device : devices_)
	{
		int			shared = 0;

		device->start();
		ordinals.push_back(device->ready() ? device->ordinal() : -1);
		if (!device->ready() ||
			cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device->ordinal()) != cudaSuccess)
			continue;
		any = true;
		shared_bytes_ = shared_bytes_ == 0 ? static_cast<uint32_t>(shared) : std::min(shared_bytes_, static_cast<uint32_t>(shared));
	}
	arena_ = std::make_unique<PinnedArena>(options_, ordinals);
	ready_.store(any, std::memory_order_release);
}

/* ---- choice -------------------------------------------------------------------- */

/* Is some unit not to be run? Bits behind the last unit say nothing. */
static bool
skips_units(const DeviceJobRequest &request)
{
	uint64_t	units = 0;

	if (request.program->grouped || request.skip_bytes == 0)
		return false;
	for (uint32_t t = 0; t < request.ntablets; t++)
		units += (request.tablets[t].tablet->nrows + request.unit_rows - 1) / request.unit_rows;
	for (uint64_t unit = 0; unit < units; unit++)
		if (request.skips(unit))
			return true;
	return false;
}

void
CudaLibrary::add_images(const DeviceJobRequest &request, Lowered *job)
{
	const std::vector<TextKeyColumn> columns = text_key_columns(request);

	if (columns.empty() || !job->done())
		return;
	for (uint32_t i = 0; i <= request.nothers; i++)
		if (std::unique_ptr<DeviceProgram> program = images_program(columns, i))
		{
			job->readings.push_back(Reading{cursor_of(request, i), *program, {}, true});
			job->images.push_back(std::move(program));
		}
}

/* Does the program compare texts as some locale has it? */
static bool
asks_collation(const DeviceJobRequest &request)
{
	const Op   *ops = request.program->ops();

	return std::any_of(request.patterns, request.patterns + request.program->npatterns, [](const TextPattern *pattern) { return pattern->collation != 0; }) ||
		std::any_of(ops, ops + request.program->nops, [&](const Op &op) { return op.opcode == Opcode::TextCompare && !request.text_orders[op.p4].by_bytes(); });
}

/* Does the program read the bytes of values that a set refers to? */
static bool
reads_texts_of_sets(const DeviceJobRequest &request)
{
	const Op   *ops = request.program->ops();
	const std::vector<TextKeyColumn> keys = text_key_columns(request);
	const auto	is_of_set = [&](uint32_t cursor) { return reads_set(cursor_of(request, cursor)); };

	return std::any_of(keys.begin(), keys.end(), [&](const TextKeyColumn &column) { return is_of_set(column.cursor); }) ||
		std::any_of(ops, ops + request.program->nops, [&](const Op &op) { return reads_text(op) && is_of_set(static_cast<uint32_t>(op.p3)); });
}

CudaLibrary::Lowered
CudaLibrary::lower_job(const SetRequest &bound, const char **reason) const
{
	const DeviceJobRequest &request = bound.get();
	Lowered		job;

	*reason = "no device is ready";
	if (!ready())
		return job;
	if (bound.device() == SetRequest::SEVERAL)
	{
		*reason = "the result sets are on several devices";
		return job;
	}
	if (reads_texts_of_sets(request))
	{
		*reason = "values of variable length that a result set refers to are read by the CPU";
		return job;
	}
	if (asks_collation(request))
	{
		*reason = "texts are compared by their collation on the CPU";
		return job;
	}
	for (uint32_t i = 0; i < request.norder; i++)
		if (request.order[i].flags & ORDER_TEXT)
		{
			*reason = "what is ordered by texts is sorted by the CPU";
			return job;
		}
	if (request.stage != nullptr)
	{
		job.stage = lower_request(Stage(request).second(), shared_bytes_, reason, LoweredAs::Stage);
		if (job.stage == nullptr)
			return job;
	}
	if (request.nothers == 0)
	{
		job.program = lower_request(request, shared_bytes_, reason);
		if (job.program != nullptr)
			job.readings.push_back(Reading{request, *job.program, {}});
		add_images(request, &job);
		return job;
	}
	if (skips_units(request))
	{
		*reason = "a part of the join was handed out already";
		return job;
	}
	job.join = JoinPlan::of(request, shared_bytes_, reason);
	if (job.join == nullptr)
		return job;
	job.readings.push_back(Reading{request, job.join->first(), {}});
	for (uint32_t i = 0; i < request.nothers; i++)
	{
		const PlannedLevel &level = job.join->levels()[i];

		job.readings.push_back(Reading{request.others[i], *level.build,
									   options_.header->index_limit.load() == 0 ? std::string()
									   : index_key(*level.split, *level.build, request.others[i], request.transfer)});
	}
	add_images(request, &job);
	return job;
}

CudaLibrary::Share
CudaLibrary::share_of(CudaDevice *device, const Lowered &job) const
{
	std::unique_lock<std::mutex> lock = device->residency()->lock();
	Share		share = {};

	for (size_t i = 0; i < job.readings.size(); i++)
	{
		const auto &[cursor, program, index, text_keys] = job.readings[i];
		const uint32_t step = cursor.ntablets / ESTIMATE_TABLETS + 1;
		const uint64_t index_bytes = index.empty() ? 0 : device->residency()->index_bytes(index);

		if (index_bytes != 0)
		{
			share.there += index_bytes;
			share.indexes |= 1u << i;
			continue;
		}
		for (uint32_t t = 0; t < cursor.ntablets; t += step)
		{
			const TabletHeader *tablet = cursor.tablets[t].tablet;

			if (cursor.tablets[t].skip)
				continue;
			for (int c = 0; c < program.ncolumns; c++)
			{
				const uint16_t column = program.columns[c].table_column;

				if (column == DEAD_COLUMN)
					continue;

				const uint64_t bytes = chunk_bytes(tablet, device_chunk(tablet, column)).total();

				if (cursor.set != nullptr)
					share.there += bytes * step;
				else if (tablet->serial == 0)
					share.delta += bytes * step;
				else if (bytes == 0 || device->residency()->has(ChunkKey{tablet->serial, kept_column(column)}, bytes))
					share.there += bytes * step;
				else
					share.missing += bytes * step;
			}
		}
	}
	return share;
}

CudaDevice *
CudaLibrary::choose_device(const SetRequest &request, const Lowered &job, Share *share) const
{
	const int	of_sets = request.device();
	CudaDevice *best = nullptr;

	if (!job.done())
		return nullptr;
	for (const std::unique_ptr<CudaDevice> &device : devices_)
	{
		if (!device->ready() || (of_sets >= 0 && static_cast<int>(device->index()) != of_sets))
			continue;

		const Share its = share_of(device.get(), job);

		if (best == nullptr || its.there > share->there ||
			(its.there == share->there && device->status()->jobs_running.load() < best->status()->jobs_running.load()))
		{
			best = device.get();
			*share = its;
		}
	}
	return best;
}

DeviceEstimate
CudaLibrary::estimate(const DeviceJobRequest &asked, char *reason)
{
	const SetRequest bound(asked);
	const DeviceJobRequest &request = bound.get();
	const char *refusal;
	const Lowered job = lower_job(bound, &refusal);
	const Program *source = request.program;
	Share		share = {};
	CudaDevice *device = choose_device(bound, job, &share);

	if (device == nullptr)
	{
		snprintf(reason, REASON_BYTES, "%s", refusal);
		return DeviceEstimate{UINT64_MAX, 0, false};
	}

	double		rows = 0, dead_rows = 0, ns = JOB_NS, work, copies;
	const bool	forgotten = request.transfer == Transfer::Mapped || request.transfer == Transfer::Serial || request.transfer == Transfer::Stream;
	const bool	keys = job.program != nullptr ? uses_group_table(*job.program) : source->nkeys > 0;

	if (forgotten)
		share = Share{0, share.there + share.missing, share.delta, 0};
	work = 0;
	for (size_t i = 0; i < job.readings.size(); i++)
	{
		const auto &[cursor, program, index, text_keys] = job.readings[i];
		double		its = 0;

		if (share.indexes >> i & 1)
			continue;
		for (uint32_t t = 0; t < cursor.ntablets; t++)
		{
			const DeviceTabletRef &ref = cursor.tablets[t];

			if (ref.skip)
				continue;
			its += ref.tablet->nrows;
			dead_rows += ref.nmasked != 0 && !text_keys ? ref.tablet->padded_rows : 0;
		}
		if (text_keys)
		{
			work += its * TEXT_KEY_ROW_NS * program.ncolumns;
			continue;
		}
		/* What is built to be kept will be used again: as with copies below. */
		if (!index.empty())
			its *= KEPT_SHARE;
		work += kernel_ns(program, its, 0, 0, job.program != nullptr && keys);
		rows += its;
	}
	work += bytes_ns(static_cast<double>(share.there) + dead_rows / 4, static_cast<double>(share.delta));
	if (job.join != nullptr)
	{
		/* What is not said is guessed: that each row meets one. */
		const double pairs = request.expected_pairs != 0 ? static_cast<double>(request.expected_pairs) : rows;

		ns += JOIN_JOB_NS * request.nothers;
		work += rows * JOIN_ROW_NS + pairs * (job.join->sought() ? PAIR_NS : CROSS_PAIR_NS) + (keys ? pairs * GROUP_ROW_NS : 0);
		rows = pairs;
	}
	copies = static_cast<double>(share.missing) / COPY_BYTES_NS;
	ns += forgotten || share.missing > device->residency()->available(share.missing) ? copies : copies * KEPT_SHARE;
	/* Dead bits are written, then read. */
	ns += work;
	ns += (dead_rows > 0 ? DEAD_JOB_NS : 0) + (share.delta > 0 ? DELTA_JOB_NS : 0);
	if (keys)
		ns += GROUP_JOB_NS;
	if (request.norder > 0)
		ns += SORT_JOB_NS + (source->grouped ? 0 : rows * (SORT_ROW_NS + (request.row_limit != 0 ? 0 : SORTED_ROW_NS)));
	if (!source->grouped)
	{
		std::vector<Type> types(source->nresults);
		double		width = 0, out = rows * GUESSED_SELECTIVITY;

		program_result_types(source, types.data());
		for (Type type : types)
			width += type_width(type);
		if (request.row_limit != 0)
			out = std::min(out, static_cast<double>(request.row_limit));
		ns += out * width / (request.sink ? LOCAL_BYTES_NS : RESULT_BYTES_NS);
	}
	return DeviceEstimate{static_cast<uint64_t>(ns), static_cast<uint64_t>(work), share.missing > 0};
}

/* ---- running ------------------------------------------------------------------- */

/* `sink`: what takes the results; nullptr: they leave. */
void
CudaLibrary::run_one(CudaDevice *device, const DeviceJobRequest &request, const DeviceProgram *program, JoinPlan *join, StoredSet *sink,
					 DeviceJobIo *io, DeviceJobFigures *figures, bool *published)
{
	Work		work;
	CudaDevice::RowJoin place;
	std::unique_ptr<DeviceJob> job;

	if (join != nullptr && !request.program->grouped && sink == nullptr)
	{
		const int64_t since = now_ns();

		if (!device->enter_row_join(io))
			throw Refusal{"other joins wait on the device for their rows to be taken"};
		place.device = device;
		figures->queue_ns += static_cast<uint64_t>(now_ns() - since);
	}

	const DeviceJobFigures before = *figures;
	std::chrono::nanoseconds patience = DeviceJob::MEMORY_PATIENCE;
	const uint32_t forced = request.force_passes != 0 ? request.force_passes : forced_passes();
	JoinWay		way = forced != 0 ? JoinWay{true, std::clamp(forced, 1u, KEY_PARTS)} : join != nullptr ? join_ways_.of(request.program->hash) : JoinWay();

	for (int attempt = 1;; attempt++)
	{
		JoinJob    *joins = nullptr;

		if (join != nullptr)
			job.reset(joins = new JoinJob(device, arena_.get(), request, join, io, figures, way));
		else
		{
			list_work(request, &work);
			job = std::make_unique<ScanJob>(device, arena_.get(), request, *program, work, io, figures);
		}
		job->keep_results(sink);
		job->set_row_join(place.device != nullptr);
		job->set_patience(patience);
		try
		{
			job->run();

			const std::string steps = job->steps();

			if (!steps.empty())
				options_.log(steps.c_str());
			if (attempt != 1)
				join_ways_.remember(request.program->hash, way);
			return;
		}
		catch (const Refusal &)
		{
			*published = job->published();
			/* neither have rows of it left, nor has a set some */
			if (*published || (sink != nullptr && sink->rows() != 0) || joins == nullptr || !joins->other_way() || attempt == JOIN_ATTEMPTS ||
				io->stopped())
			{
				join_ways_.forget(request.program->hash);
				throw;
			}
			way = *joins->other_way();
			patience = job->patience();
			job->give_up();
		}
		catch (...)
		{
			*published = job->published();
			throw;
		}
		job.reset();
		*figures = before;
	}
}

/* What is read is the first program's, what leaves the second's. */
void
CudaLibrary::run_staged(CudaDevice *device, const DeviceJobRequest &request, const Lowered &lowered, StoredSet *sink, DeviceJobIo *io,
						DeviceJobFigures *figures, bool *published)
{
	Stage		stage(request);
	StoredSet	groups(device, request.program, stage.first().sink_columns, stage.first().nsink_columns);
	DeviceJobFigures second = {};

	run_one(device, stage.first(), lowered.program, lowered.join, &groups, io, figures, published);
	/* of groups with a sum that does not fit, too: that is an error of the stage, and not of the groups */
	figures->stage_rows = figures->rows_out;
	figures->rows_out = 0;
	if (figures->errors != 0 || io->stopped())
		return;
	try
	{
		run_one(device, SetRequest(stage.second(&groups)).get(), lowered.stage, nullptr, sink, io, &second, published);
	}
	catch (...)
	{
		figures->set_short = second.set_short;
		throw;
	}
	figures->errors = second.errors;
	figures->rows_out = second.rows_out;
	figures->bytes_moved += second.bytes_moved;
	figures->device_ns += second.device_ns;
	figures->slices += second.slices;
}

/* The program that leaves out rows that cannot be among the first; nullptr: no sample says which. */
const DeviceProgram *
CudaLibrary::bound_rows(CudaDevice *device, const DeviceProgram *program, TopRows *top, DeviceJobIo *io, DeviceJobFigures *figures)
{
	const DeviceProgram *bounded = nullptr;
	const char *reason;
	DeviceJobFigures its = {};
	Work		all, sample;

	list_work(top->request(), &all);
	TopRows::list_sample(all, &sample);
	try
	{
		const TopBound bound = ScanJob(device, arena_.get(), top->request(), *program, sample, io, &its).run_sample();

		if (!bound.empty() && top->take(bound))
			bounded = lower_request(top->request(), shared_bytes_, &reason, LoweredAs::Bounded);
	}
	catch (const Refusal &)
	{
	}
	figures->device_ns += its.device_ns;
	figures->slices += its.slices;
	figures->bytes_moved += its.bytes_moved;
	return bounded;
}

void
CudaLibrary::try_run(CudaDevice *device, const DeviceJobRequest &request, const Lowered &lowered, const Share &share, StoredSet *sink,
					 DeviceJobIo *io, DeviceJobFigures *figures, bool *published)
{
	if (request.stage != nullptr)
	{
		run_staged(device, request, lowered, sink, io, figures, published);
		return;
	}

	TopRows		top(request);
	const DeviceProgram *bounded = nullptr;

	/* what is read over the bus is not read twice */
	if (top.pays() && share.missing == 0 && share.delta <= SAMPLED_DELTA && (request.transfer == Transfer::Auto || request.transfer == Transfer::Cached))
		bounded = bound_rows(device, lowered.program, &top, io, figures);
	if (bounded != nullptr)
		run_one(device, top.request(), bounded, nullptr, sink, io, figures, published);
	else
		run_one(device, request, lowered.program, lowered.join, sink, io, figures, published);
}

/* A CUDA call has failed: fatal, or a reason. */
void
CudaLibrary::fail(const CudaDevice *device, const CudaFailure &failure, char *reason) const
{
	char		line[300];

	snprintf(line, sizeof(line), "device %u: %s failed: %s", device->index(), failure.doing, cudaGetErrorString(failure.error));
	if (!survivable(failure.error))
		options_.fatal(line);
	options_.log(line);
	snprintf(reason, REASON_BYTES, "%.127s", line);
}

/* With the set that the job is to make, if it is to make one. */
void
CudaLibrary::run_with_sink(CudaDevice *device, const DeviceJobRequest &request, const Lowered &lowered, const Share &share, DeviceJobIo *io,
						   DeviceJobFigures *figures, bool *published)
{
	std::unique_ptr<StoredSet> sink;
	StoredSet  *to = static_cast<StoredSet *>(request.append_to);

	if (request.sink)
		sink = std::make_unique<StoredSet>(device, request.stage != nullptr ? request.stage : request.program, request.sink_columns,
										   request.nsink_columns);
	if (to != nullptr && !to->same_types(*sink))
		throw Refusal{"the result set has columns of other types"};
	try_run(device, request, lowered, share, sink.get(), io, figures, published);
	if (!sink || figures->errors != 0 || io->stopped())
		return;
	if (to != nullptr)
		to->append(sink.get());
	figures->set = to != nullptr ? to : sink.release();
}

/* Runs the job: what becomes of it. `published`: has it handed out anything by then? */
DeviceOutcome
CudaLibrary::finish(CudaDevice *device, const std::function<void()> &job, const bool *published, const DeviceJobFigures &figures,
					char *reason) const
{
	struct Running
	{
		DeviceStatus *status;
		explicit Running(DeviceStatus *s) : status(s) { status->jobs_running.fetch_add(1); }
		~Running() { status->jobs_running.fetch_sub(1); }
	};

	try
	{
		Running		running(device->status());

		job();
		device->status()->bytes_moved.fetch_add(figures.bytes_moved);
		device->status()->jobs_done.fetch_add(1);
		return DeviceOutcome::Done;
	}
	catch (const Stopped &)
	{
		return DeviceOutcome::Done;
	}
	catch (const Refusal &r)
	{
		snprintf(reason, REASON_BYTES, "%s", r.why.c_str());
		/* The server's log is where one looks why the CPU ran it; many are alike. */
		const auto	now = std::chrono::steady_clock::now().time_since_epoch();

		if (r.memory && now - refusal_logged_.load() >= REFUSALS_APART)
		{
			refusal_logged_.store(now);
			options_.log(("device " + std::to_string(device->index()) + ": a job was refused: " + r.why).c_str());
		}
	}
	catch (const CudaFailure &failure)
	{
		fail(device, failure, reason);
	}
	if (*published)
		return DeviceOutcome::Failed;
	device->status()->jobs_refused.fetch_add(1);
	return DeviceOutcome::Refused;
}

DeviceOutcome
CudaLibrary::run(const DeviceJobRequest &asked, DeviceJobIo *io, DeviceJobFigures *figures, char *reason)
{
	const SetRequest bound(asked);
	const DeviceJobRequest &request = bound.get();
	const char *refusal;
	const Lowered job = lower_job(bound, &refusal);
	Share		share;
	CudaDevice *device = choose_device(bound, job, &share);
	bool		published = false;

	*figures = DeviceJobFigures{};
	if (device == nullptr)
	{
		if (ready())
			devices_[0]->status()->jobs_refused.fetch_add(1);
		snprintf(reason, REASON_BYTES, "%s", refusal);
		return DeviceOutcome::Refused;
	}
	return finish(device, [&] { run_with_sink(device, request, job, share, io, figures, &published); }, &published, *figures, reason);
}

DeviceOutcome
CudaLibrary::run_window(DeviceSet *set, const WindowSpec &spec, DeviceJobIo *io, DeviceJobFigures *figures, char *reason)
{
	StoredSet  *stored = static_cast<StoredSet *>(set);
	CudaDevice *device = devices_[set->device()].get();
	const char *refusal = refuse_window(*stored, spec);
	const bool	published = false;

	*figures = DeviceJobFigures{};
	return finish(device, [&] {
		if (refusal != nullptr)
			throw Refusal{refusal};
		WindowJob(device, arena_.get(), stored, spec, io, figures).run();
	}, &published, *figures, reason);
}

bool
CudaLibrary::copy_set(const DeviceSet *set, uint64_t first, uint64_t nrows, char *const *values, uint64_t *const *nulls)
{
	char		reason[REASON_BYTES];

	try
	{
		static_cast<const StoredSet *>(set)->copy(first, nrows, values, nulls);
		return true;
	}
	catch (const CudaFailure &failure)
	{
		fail(devices_[set->device()].get(), failure, reason);
	}
	return false;
}

/* ---- the rest --------------------------------------------------------------------- */

void
CudaLibrary::prepare(uint64_t offset, uint64_t bytes)
{
	if (!ready() || bytes == 0)
		return;
	try
	{
		PinnedArena::Hold hold(arena_.get());

		for (std::unique_ptr<CudaDevice> &device : devices_)
			if (device->ready())
			{
				device->prepare(bytes);
				(void) hold.take(options_.arena + offset, bytes);
			}
	}
	catch (const CudaFailure &failure)
	{
		if (!survivable(failure.error))
			options_.fatal(cudaGetErrorString(failure.error));
	}
}

void
CudaLibrary::housekeep()
{
	if (!ready())
		return;

	const int64_t now = now_ns();

	for (std::unique_ptr<CudaDevice> &device : devices_)
		if (device->ready() && device->hangs(now))
		{
			char		line[100];

			snprintf(line, sizeof(line), "device %u has not answered for too long", device->index());
			options_.fatal(line);
		}
	arena_->unpin_wanted();
	try
	{
		for (std::unique_ptr<CudaDevice> &device : devices_)
			if (device->ready())
				device->tidy_indexes();
	}
	catch (const CudaFailure &failure)
	{
		if (!survivable(failure.error))
			options_.fatal(cudaGetErrorString(failure.error));
	}
}

}  // namespace

/* Why there are no devices, or nullptr. */
static const char *
find_devices(int *ndevices)
{
	int			driver = 0, runtime = 0;
	cudaError_t rc = cudaGetDeviceCount(ndevices);
	static char sentence[WHY_BYTES];

	if (rc == cudaSuccess && *ndevices > 0)
		return nullptr;
	(void) cudaGetLastError();
	(void) cudaDriverGetVersion(&driver);
	(void) cudaRuntimeGetVersion(&runtime);
	if (driver == 0)
		return "there is no CUDA driver on this machine";
	if (rc == cudaErrorInsufficientDriver)
		snprintf(sentence, sizeof(sentence), "the CUDA driver is for CUDA %d.%d; CUDA %d.%d is needed", driver / 1000, driver % 1000 / 10,
				 runtime / 1000, runtime % 1000 / 10);
	else if (rc == cudaSuccess || rc == cudaErrorNoDevice)
		return "there is no CUDA device on this machine";
	else
		snprintf(sentence, sizeof(sentence), "the CUDA driver failed: %s", cudaGetErrorString(rc));
	return sentence;
}

static DeviceLibrary *
open_library(const DeviceOptions *options, char *why)
{
	int			ndevices = 0;
	const char *wrong;

	if (options->abi_version != DEVICE_ABI_VERSION)
	{
		snprintf(why, WHY_BYTES, "gpuvm_cuda.so is of another version than gpuvmd");
		return nullptr;
	}
	/* All kernels are loaded when the device starts: none for the first query to wait for. */
	(void) setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	/*
	 * Each stream has a connection to the device for itself; of the usual 8, several would
	 * share one, and a small job or an abort word wait for what a large job has enqueued.
	 */
	static_assert((LANES + SMALL_LANES) * 3 + 1 <= 32, "a lane has three streams, and prepare() has one");
	(void) setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	wrong = find_devices(&ndevices);
	if (wrong != nullptr)
	{
		snprintf(why, WHY_BYTES, "%s", wrong);
		return nullptr;
	}
	for (int i = 0; i < std::min(ndevices, MAX_DEVICES); i++)
	{
		int			major = 0, minor = 0;

		(void) cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, i);
		(void) cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, i);
		if (major * 10 + minor >= 75)
			return new CudaLibrary(*options, ndevices);
	}
	snprintf(why, WHY_BYTES, "no CUDA device on this machine has compute capability 7.5 or higher");
	return nullptr;
}

}  // namespace cuda
}  // namespace gpuvm

extern "C" __attribute__((visibility("default"))) gpuvm::DeviceLibrary *
gpuvm_open_device_library(const gpuvm::DeviceOptions *options, char *why)
{
	return gpuvm::cuda::open_library(options, why);
}
