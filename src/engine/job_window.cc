/* job_window.cc: see job_window.h. The algorithm is vm/cpu_window.h's; here are threads, memory and tablets. */
#include "engine/job_window.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "engine/blame.h"
#include "engine/job_run.h"
#include "vm/cpu_window.h"

namespace gpuvm {

namespace {

static_assert(SET_TABLET_ROWS == WINDOW_BLOCK_ROWS, "a tablet is a block");

constexpr uint64_t HUGE_BYTES = 4 << 20;	/* from so many on */

class WindowRun final : public PoolTask
{
public:
	WindowRun(const Request &request, SetAccount *account, JobIo *io, WorkerPool *pool)
		: request_(request), set_(request.window.set.get()), shape_(request.window.shape), account_(account), io_(io),
		  pool_(pool) {}

	/* ErrorBits; none, and nothing stopped it: the set has the columns. */
	uint32_t	run();
	uint32_t	threads_used() const { return threads_used_.load(); }

	void help() noexcept override
	{
		try
		{
			threads_used_.fetch_add(1, std::memory_order_relaxed);
			work(false);
		}
		catch (const std::bad_alloc &)
		{
			io_->fail_memory();
		}
	}

private:
	bool		list_columns();
	bool		charge(uint64_t bytes, SetShare *to);
	bool		make_room();
	void		share(bool finish, uint32_t n);
	void		work(bool owner);

	const Request &request_;
	ResultSet  *set_;
	const SetShape &shape_;		/* of the columns that are appended */
	SetAccount *account_;
	JobIo	   *io_;
	WorkerPool *pool_;

	std::vector<WindowColumn> columns_;	/* of the set */
	std::unique_ptr<CpuWindow> window_;
	SetShare	work_share_;	/* what it takes while it works */
	ResultSet::Block block_;	/* tablets of the new columns, then all tablets' headers */
	char	   *headers_ = nullptr;
	std::vector<SetTablet> made_;
	std::vector<const TabletHeader *> tablets_;
	std::atomic<uint32_t> threads_used_{1};

	/* written by the owner while nobody helps */
	bool		finish_ = false;	/* tablets are finished; else a phase's tasks are run */
	uint32_t	n_ = 0;
	std::atomic<uint32_t> next_{0};
};

/* Beyond the limit the job has failed. */
bool
WindowRun::charge(uint64_t bytes, SetShare *to)
{
	if (!account_->take(bytes))
	{
		io_->fail(SET_NO_MEMORY);
		return false;
	}
	*to = SetShare(account_, bytes);
	return true;
}

/* False: the set was not sorted, which makes its tablets of full size. */
bool
WindowRun::list_columns()
{
	const std::vector<const TabletHeader *> &tablets = set_->tablets();

	for (size_t i = 0; i < tablets.size(); i++)
		if (tablets[i]->nrows != SET_TABLET_ROWS && i + 1 < tablets.size())
			return false;
	columns_.resize(set_->columns().size());
	for (size_t c = 0; c < columns_.size(); c++)
	{
		columns_[c].summary = set_->columns()[c];
		for (const TabletHeader *tablet : tablets)
		{
			const ColumnChunk &chunk = tablet_chunks(tablet)[c];

			columns_[c].values.push_back(tablet_at<char>(tablet, chunk.data));
			columns_[c].nulls.push_back(chunk.nulls != 0 ? tablet_at<uint64_t>(tablet, chunk.nulls) : nullptr);
		}
	}
	return true;
}

bool
WindowRun::make_room()
{
	const size_t n = set_->tablets().size();
	const uint64_t stride = shape_.layout(SET_TABLET_ROWS, nullptr);
	uint64_t	bytes = 0;
	std::vector<uint32_t> room;

	for (const TabletHeader *tablet : set_->tablets())
	{
		room.push_back(static_cast<uint32_t>(align_up(tablet->nrows, TABLET_PAD_ROWS)));
		bytes += shape_.layout(room.back(), nullptr);
	}

	const uint64_t all = bytes + set_->headers_bytes(shape_);

	if (n == 0)
		return true;
	if (!charge(all, &block_.share))
		return false;
	block_.pages = Pages(all, all >= HUGE_BYTES);
	headers_ = block_.pages.as<char>() + bytes;
	for (size_t i = 0; i < n; i++)
	{
		made_.emplace_back(&shape_, block_.pages.as<char>() + i * stride, room[i]);
		made_.back().fill(set_->tablets()[i]->nrows);
	}
	tablets_.resize(n);
	return true;
}

void
WindowRun::work(bool owner)
{
	while (owner ? !io_->stopped() : !io_->stopping())
	{
		const uint32_t i = next_.fetch_add(1, std::memory_order_relaxed);

		if (i >= n_)
			break;
		if (finish_)
			tablets_[i] = made_[i].finish();
		else
			window_->run_task(i);
	}
}

/* By all threads. */
void
WindowRun::share(bool finish, uint32_t n)
{
	/* Whatever leaves this function, no helper may be inside. */
	struct Dismiss
	{
		WindowRun  *run;
		~Dismiss() { run->pool_->dismiss(run); }
	};
	Dismiss		dismiss = {this};

	finish_ = finish;
	n_ = n;
	next_.store(0);

	const uint32_t threads = std::min(n, most_threads(request_, pool_));

	if (threads > 1)
		pool_->invite(this, static_cast<int>(threads) - 1);
	try
	{
		work(true);
	}
	catch (const std::bad_alloc &)
	{
		/* helpers are to stop, and the job has failed */
		io_->fail_memory();
	}
}

uint32_t
WindowRun::run()
{
	uint32_t	n;

	if (!list_columns())
	{
		io_->fail("the result set of a window is not sorted");
		return 0;
	}
	window_ = std::make_unique<CpuWindow>(request_.window.spec, columns_.data(), set_->nrows());
	if (!charge(window_->bytes(), &work_share_) || !make_room())
		return 0;

	std::vector<WindowTarget> targets;

	for (const SetTablet &tablet : made_)
		for (uint32_t c = 0; c < shape_.ncolumns(); c++)
			targets.push_back(WindowTarget{tablet.values(c), tablet.nulls(c)});
	window_->set_targets(targets.data());
	while (!io_->stopping() && (n = window_->begin_phase()) > 0)
		share(false, n);
	if (io_->stopping() || window_->errors() != 0)
		return io_->stopping() ? 0 : window_->errors();
	share(true, static_cast<uint32_t>(tablets_.size()));
	if (!io_->stopping())
		set_->add_columns(shape_, tablets_, headers_, std::move(block_));
	return 0;
}

/* ---- on a device -------------------------------------------------------------------- */

constexpr uint64_t TINY_ROWS = 1024;	/* so few are brought home sooner than a device has computed anything */
constexpr uint64_t DEVICE_COLUMN_SLACK = 1024;	/* a column's alignment there */

/* Is the device that has the set asked? Elsewhere it is not brought there. */
bool
asks_device(const EngineContext *context, const Request &request, Job *job)
{
	const DeviceSet *set = request.window.set->device();

	if (request.device == Device::Cpu || (set == nullptr && request.device == Device::Auto))
		return false;
	if (set == nullptr || context->devices.library() == nullptr)
	{
		snprintf(job->device_refusal, sizeof(job->device_refusal), "the result set of the window functions is not on a device");
		return false;
	}
	return request.device == Device::Cuda || set->rows() >= TINY_ROWS;
}

/* False when the device refused the job, which is then as good as not begun. */
bool
run_on_device(EngineContext *context, const Request &request, Job *job, JobIo *io)
{
	ResultSet  *set = request.window.set.get();
	const SetShape &shape = request.window.shape;
	const uint32_t rows = static_cast<uint32_t>(align_up(set->nrows(), TABLET_PAD_ROWS));
	const uint64_t bytes = set->nrows() == 0 ? 0 : shape.layout(rows, nullptr) + shape.ncolumns() * DEVICE_COLUMN_SLACK;
	DeviceJobFigures figures = {};
	char		reason[sizeof(Job::device_refusal)] = "";
	DeviceOutcome outcome;

	if (!request.account->take(bytes))
	{
		io->fail(SET_NO_MEMORY);
		return true;
	}

	SetShare	share(request.account, bytes);
	const uint32_t before = set->device()->ncolumns();

	try
	{
		RunsOnDevice at_work(context->arena.header());
		RunsOnEngine running(&context->device_load);

		outcome = context->devices.library()->run_window(set->device(), request.window.spec, io, &figures, reason);
	}
	catch (const std::bad_alloc &)
	{
		outcome = DeviceOutcome::Refused;
		snprintf(reason, sizeof(reason), "out of memory");
	}
	if (outcome != DeviceOutcome::Done)
	{
		memcpy(job->device_refusal, reason, sizeof(reason));
		job->device_refusal[sizeof(reason) - 1] = '\0';
		return false;
	}
	job->ran_on = Device::Cuda;
	job->errors = figures.errors;
	job->device_index = figures.device;
	job->bytes_moved = figures.bytes_moved;
	job->device_ns = figures.device_ns;
	job->slices = figures.slices;
	if (set->device()->ncolumns() != before)
		set->grown(shape, std::move(share));
	return true;
}

/* With the pool's help, in tablets. */
void
run_on_cpu(EngineContext *context, const Request &request, Job *job, JobIo *io)
{
	const char *wrong = request.window.set->bring_home(context->devices.library(), request.account);

	if (wrong != nullptr)
	{
		io->fail(wrong);
		return;
	}

	io->compute();

	WindowRun	run(request, request.account, io, context->pool);

	job->errors = run.run();
	job->threads_used = run.threads_used();
}

}  // namespace

bool
run_window(EngineContext *context, const Request &request, Job *job, JobIo *io)
{
	ResultSet  *set = request.window.set.get();
	const size_t columns = set->columns().size();

	if (!asks_device(context, request, job) || !run_on_device(context, request, job, io))
	{
		if (request.device_required)
			io->fail(job->device_refusal);
		else if (!io->stopped())
			run_on_cpu(context, request, job, io);
	}
	job->rows_in = set->nrows();
	if (job->errors != 0 || set->columns().size() == columns)
		return false;
	job->rows_out = set->nrows();
	put_columns(*set, columns, request.window.known);
	return true;
}

}  // namespace gpuvm
