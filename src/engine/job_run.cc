/*
 * job_run.cc: the scheduling of one job.
 *
 * The work is a list of ranges of rows, taken in order by an atomic counter.
 * The owner, the session's thread, takes ranges like everybody; for more than
 * HELP_ROWS it invites pool threads. Helpers only ever compute: whoever finds no
 * range, no Free buffer or a reason to stop leaves, and the owner alone waits
 * for the backend, after all helpers have left. So the job cannot stop moving
 * unnoticed: while a helper is inside, it moves; once none is, the owner looks
 * at everything again before it sleeps.
 *
 * A row program's buffer is claimed before the unit, so that no unit is ever
 * held by a thread that must wait. A unit without rows and errors is not
 * published: its buffer serves the next one.
 *
 * A grouped program has one CpuState a thread. They are merged at the end, by
 * the owner if there are few groups, else in parts that all threads take by
 * another counter. The groups leave through the same buffers, numbered in
 * sequence.
 *
 * To stop (cancel, row limit, failure, backend gone) means to take no further
 * range and no further part: they are small enough for that to be within
 * milliseconds.
 */
#include "engine/job_run.h"

#include <algorithm>
#include <new>

namespace gpuvm {

constexpr uint32_t MORSEL_ROWS = 64 * 1024;
constexpr uint64_t HELP_ROWS = 64 * 1024;
constexpr std::chrono::milliseconds LOOK_INTERVAL(1);

/* ---- what every thread does -------------------------------------------------- */

bool
JobRun::stopped() const
{
	return stop_.load(std::memory_order_relaxed) || job_->cancel.load(std::memory_order_relaxed) != 0;
}

void
JobRun::fail(const char *why)
{
	const char *none = nullptr;

	failure_.compare_exchange_strong(none, why);
	stop_.store(true);
}

const JobRun::Range *
JobRun::next_range()
{
	size_t		i = next_.fetch_add(1, std::memory_order_relaxed);

	return i < ranges_.size() ? &ranges_[i] : nullptr;
}

void
JobRun::count_range(const Range &range)
{
	uint32_t	rows = range.last - range.first;
	uint32_t	of = request_.tablets[range.tablet]->nrows;

	rows_in_.fetch_add(rows, std::memory_order_relaxed);
	bytes_read_.fetch_add(static_cast<uint64_t>(static_cast<uint128>(bytes_of_[range.tablet]) * rows / of),
						  std::memory_order_relaxed);
	if (!touched_[range.tablet].exchange(true, std::memory_order_relaxed))
		scanned_.fetch_add(1, std::memory_order_relaxed);
}

int
JobRun::claim_buffer()
{
	for (uint32_t i = 0; i < request_.nbuffers; i++)
	{
		uint32_t	expected = static_cast<uint32_t>(BufferState::Free);

		if (job_->buffers[i].state.load(std::memory_order_relaxed) == expected &&
			job_->buffers[i].state.compare_exchange_strong(expected, static_cast<uint32_t>(BufferState::Filling)))
			return static_cast<int>(i);
	}
	return -1;
}

void
JobRun::publish(int buffer, uint32_t unit, uint32_t nrows, uint32_t errors)
{
	ResultBuffer &to = job_->buffers[buffer];

	to.unit = unit;
	to.nrows = nrows;
	to.errors = errors;
	to.state.store(static_cast<uint32_t>(BufferState::Full));
	doorbell_->ring();
	if (rows_out_.fetch_add(nrows) + nrows >= request_.row_limit && request_.row_limit > 0)
		stop_.store(true);
}

JobRun::Leave
JobRun::work_rows(CpuState *state, bool owner)
{
	int			buffer = -1;
	Leave		leave = Leave::NoWork;

	while (!stopped() && !(owner && backend_gone()))
	{
		if (buffer < 0 && (buffer = claim_buffer()) < 0)
		{
			leave = Leave::NoBuffer;
			break;
		}

		const Range *range = next_range();

		if (range == nullptr)
			break;

		CpuUnitOutcome outcome = cpu_->run_rows(state, request_.tablets[range->tablet], range->first, range->last,
												request_.areas[buffer], request_.capacity);

		count_range(*range);
		if (outcome.rows == 0 && outcome.errors == 0)
			continue;
		publish(buffer, range->unit, outcome.errors ? 0 : outcome.rows, outcome.errors);
		buffer = -1;
	}
	if (buffer >= 0)
		job_->buffers[buffer].state.store(static_cast<uint32_t>(BufferState::Free));
	return leave;
}

void
JobRun::work_groups(CpuState *state, bool owner)
{
	const Range *range;

	while (!stopped() && !(owner && backend_gone()) && (range = next_range()) != nullptr)
	{
		cpu_->run_groups(state, request_.tablets[range->tablet], range->first, range->last);
		count_range(*range);
	}
}

void
JobRun::work_parts(bool owner)
{
	while (!stopped() && !(owner && backend_gone()))
	{
		const uint32_t part = next_part_.fetch_add(1, std::memory_order_relaxed);

		if (part >= nparts_)
			break;
		cpu_->merge_part(states_.data(), static_cast<uint32_t>(states_.size()), part);
	}
}

void
JobRun::help() noexcept
{
	threads_used_.fetch_add(1, std::memory_order_relaxed);
	try
	{
		/* set before the invitations to merge and after the end of all others */
		if (nparts_ > 0)
		{
			work_parts(false);
			return;
		}

		std::unique_ptr<CpuState> state = cpu_->new_state();

		if (request_.program->grouped)
		{
			work_groups(state.get(), false);

			std::lock_guard<std::mutex> lock(states_mutex_);

			helper_states_.push_back(std::move(state));
		}
		else
			work_rows(state.get(), false);
	}
	catch (const std::bad_alloc &)
	{
		fail("out of memory");
	}
}

/* ---- what the owner does -------------------------------------------------------- */

/* A running job meets the end of its socket only here. One system call a millisecond. */
bool
JobRun::backend_gone()
{
	auto		now = std::chrono::steady_clock::now();

	if (now < next_look_)
		return false;
	next_look_ = now + LOOK_INTERVAL;
	if (!doorbell_->gone())
		return false;
	fail("the backend has gone");
	return true;
}

/* Cuts the tablets that can matter into ranges of at most `step` rows; units are numbered over all tablets. */
void
JobRun::split(uint32_t step)
{
	uint64_t	unit = 0;
	size_t		ntablets = request_.tablets.size();

	bytes_of_.resize(ntablets);
	touched_.reset(new std::atomic<bool>[ntablets]());
	for (uint32_t t = 0; t < ntablets; t++)
	{
		const TabletHeader *tablet = request_.tablets[t];
		bool		skip = cpu_->can_skip(tablet);

		skipped_ += skip;
		if (!skip)
			bytes_of_[t] = cpu_->bytes_of(tablet);
		for (uint32_t first = 0; first < tablet->nrows; first += step, unit++)
		{
			uint32_t	last = std::min(tablet->nrows, first + step);

			if (skip || request_.skips(unit))
				continue;
			ranges_.push_back(Range{t, first, last, static_cast<uint32_t>(unit)});
			rows_to_run_ += last - first;
		}
	}
}

/* The owner and as many of the pool's threads as the request admits. */
uint32_t
JobRun::most_threads() const
{
	uint32_t	all = static_cast<uint32_t>(pool_->size()) + 1;

	return request_.threads != 0 ? std::min(request_.threads, all) : all;
}

int
JobRun::helpers_wanted() const
{
	size_t		done = std::min(next_.load(std::memory_order_relaxed), ranges_.size());
	size_t		left = ranges_.size() - done;
	size_t		threads = most_threads();

	if (rows_to_run_ <= HELP_ROWS || left < 2)
		return 0;
	return static_cast<int>(std::min(left, threads)) - 1;
}

int
JobRun::free_buffers() const
{
	int			n = 0;

	for (uint32_t i = 0; i < request_.nbuffers; i++)
		n += job_->buffers[i].state.load() == static_cast<uint32_t>(BufferState::Free);
	return n;
}

/* Suspends the job until the backend has taken rows. False when it is to end. */
bool
JobRun::wait_for_buffer()
{
	auto		since = std::chrono::steady_clock::now();
	bool		alive;

	job_->state.store(static_cast<uint32_t>(JobState::Suspended));
	alive = doorbell_->sleep([this] { return free_buffers() > 0 || job_->cancel.load() != 0; });
	job_->state.store(static_cast<uint32_t>(JobState::Running));
	waited_ += std::chrono::steady_clock::now() - since;
	if (!alive)
		fail("the backend has gone");
	return alive;
}

void
JobRun::run_rows()
{
	std::unique_ptr<CpuState> state = cpu_->new_state();

	for (;;)
	{
		/* The owner takes one buffer itself. */
		pool_->invite(this, std::min(helpers_wanted(), free_buffers() - 1));

		Leave		leave = work_rows(state.get(), true);

		pool_->dismiss(this);
		if (leave != Leave::NoBuffer || stopped() || next_.load() >= ranges_.size() || !wait_for_buffer())
			return;
	}
}

void
JobRun::emit_groups(const CpuState *state)
{
	uint64_t	ngroups = cpu_->ngroups(state);
	uint32_t	sequence = 0;

	for (uint64_t from = 0; from < ngroups && !stopped();)
	{
		int			buffer = claim_buffer();

		if (buffer < 0)
		{
			if (!wait_for_buffer())
				return;
			continue;
		}

		uint32_t	n = cpu_->emit_groups(state, from, request_.areas[buffer], request_.capacity);

		if (n == 0)
		{
			fail("the engine lost a group");
			return;
		}
		publish(buffer, sequence++, n, 0);
		from += n;
	}
}

void
JobRun::run_groups()
{
	owner_state_ = cpu_->new_state();
	pool_->invite(this, helpers_wanted());
	work_groups(owner_state_.get(), true);
	pool_->dismiss(this);

	if (stopped())
		return;

	states_.push_back(owner_state_.get());
	for (const std::unique_ptr<CpuState> &from : helper_states_)
		states_.push_back(from.get());
	nparts_ = cpu_->begin_merge(states_.data(), static_cast<uint32_t>(states_.size()));
	if (nparts_ > 0)
	{
		pool_->invite(this, static_cast<int>(std::min(nparts_, most_threads())) - 1);
		work_parts(true);
		pool_->dismiss(this);
		if (stopped())
			return;
	}
	job_->errors = cpu_->finish(owner_state_.get());
	helper_states_.clear();
	if (job_->errors == 0)
		emit_groups(owner_state_.get());
}

const char *
JobRun::run(MakeCpuJob make_cpu_job)
{
	/* Whatever leaves this function, no helper may be inside: they use its members. */
	struct Dismiss
	{
		JobRun	   *run;
		~Dismiss()
		{
			run->stop_.store(true);
			run->pool_->dismiss(run);
		}
	};

	auto		start = std::chrono::steady_clock::now();
	bool		grouped = request_.program->grouped;

	cpu_ = make_cpu_job(request_.program, request_.params, request_.nparams, request_.columns.data(),
						static_cast<uint32_t>(request_.columns.size()), request_.total_rows);
	split(grouped ? MORSEL_ROWS : request_.unit_rows);
	{
		Dismiss		dismiss = {this};

		if (grouped)
			run_groups();
		else
			run_rows();
	}

	if (failure_.load() == nullptr && job_->cancel.load() != 0)
		fail("canceled");
	job_->ran_on = Device::Cpu;
	job_->tablets_scanned = scanned_.load();
	job_->tablets_skipped = skipped_;
	job_->rows_in = rows_in_.load();
	job_->rows_out = rows_out_.load();
	job_->bytes_read = bytes_read_.load();
	job_->engine_ns = static_cast<uint64_t>(
		std::chrono::nanoseconds(std::chrono::steady_clock::now() - start - waited_).count());
	/* Invitations are counted, and the pool may serve several one after the other. */
	job_->threads_used = std::min<uint32_t>(threads_used_.load(), most_threads());
	return failure_.load();
}

}  // namespace gpuvm
