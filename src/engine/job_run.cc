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
 * A join's unit may fill many buffers. Whoever is left without one parks the unit,
 * with its state, for the next that has a buffer: no unit is tied to a thread.
 *
 * A grouped program has one CpuState a thread. They are merged at the end, by
 * the owner if there are few groups, else in parts that all threads take by
 * another counter. The groups leave through the same buffers, numbered in
 * sequence.
 *
 * What is to be sorted, or kept as a set, is collected without buffers (job_sort.cc, job_set.cc).
 *
 * To stop (cancel, row limit, failure, backend gone) means to take no further
 * range and no further part: they are small enough for that to be within
 * milliseconds.
 */
#include "engine/job_run.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "engine/cost.h"

namespace gpuvm {

constexpr uint32_t MORSEL_ROWS = 64 * 1024;
constexpr uint32_t MORSEL_PAIRS = 1 << 24;

/* ---- what every thread does -------------------------------------------------- */

const JobRun::Range *
JobRun::next_range()
{
	size_t		i = next_.fetch_add(1, std::memory_order_relaxed);

	return i < ranges_.size() ? &ranges_[i] : nullptr;
}

void
JobRun::count_range(const Range &range)
{
	uint32_t	of = work_.tablets[range.tablet].tablet->nrows;

	if (first_pass_)
		job_->rows_done.store(rows_in_.fetch_add(range.rows, std::memory_order_relaxed) + range.rows, std::memory_order_relaxed);
	bytes_read_.fetch_add(static_cast<uint64_t>(static_cast<uint128>(work_.bytes_of[range.tablet]) * range.rows / of),
						  std::memory_order_relaxed);
	if (!touched_[range.tablet].exchange(true, std::memory_order_relaxed))
		scanned_.fetch_add(1, std::memory_order_relaxed);
}

JobRun::Leave
JobRun::work_rows(CpuState *state, bool owner)
{
	int			buffer = -1;
	Leave		leave = Leave::NoWork;

	while (!stopped(owner))
	{
		if (buffer < 0 && (buffer = io_->claim_buffer()) < 0)
		{
			leave = Leave::NoBuffer;
			break;
		}

		const Range *range = next_range();

		if (range == nullptr)
			break;

		const DeviceTabletRef &tablet = work_.tablets[range->tablet];
		CpuUnitOutcome outcome = cpu_->run_rows(state, tablet.tablet, range->first, range->last, request_.areas[buffer],
												request_.capacity, tablet.masked, tablet.nmasked);

		count_range(*range);
		if (outcome.rows == 0 && outcome.errors == 0)
			continue;
		if (outcome.errors != 0 && request_.of_set)
		{
			/* nobody could evaluate the unit by other means */
			errors_.fetch_or(outcome.errors);
			io_->stop();
			break;
		}
		io_->publish(buffer, range->unit, outcome.errors ? 0 : outcome.rows, outcome.errors);
		buffer = -1;
	}
	if (buffer >= 0)
		io_->unclaim(buffer);
	return leave;
}

/* A parked unit, or a new one; false: there is none. */
bool
JobRun::next_join_unit(JoinUnit *unit)
{
	{
		std::lock_guard<std::mutex> lock(states_mutex_);

		if (!parked_.empty())
		{
			if (unit->state)
				pairs_.fetch_add(join_->pairs(unit->state.get()), std::memory_order_relaxed);
			*unit = std::move(parked_.back());
			parked_.pop_back();
			return true;
		}
	}

	const Range *range = next_range();

	if (range == nullptr)
		return false;

	const DeviceTabletRef &tablet = work_.tablets[range->tablet];

	if (!unit->state)
		unit->state = join_->new_state();
	unit->range = range;
	unit->part = 0;
	join_->begin_unit(unit->state.get(), tablet.tablet, range->first, range->last, tablet.masked, tablet.nmasked);
	return true;
}

/* Leaves it to others, if it is not at its end. */
void
JobRun::end_join_unit(JoinUnit *unit)
{
	if (!unit->state)
		return;
	join_->set_stop(unit->state.get(), nullptr);
	if (unit->range == nullptr)
	{
		pairs_.fetch_add(join_->pairs(unit->state.get()), std::memory_order_relaxed);
		return;
	}

	std::lock_guard<std::mutex> lock(states_mutex_);

	parked_.push_back(std::move(*unit));
}

JobRun::Leave
JobRun::work_join_rows(bool owner)
{
	Stop		stop(this, owner);
	JoinUnit	unit;
	int			buffer = -1;
	Leave		leave = Leave::NoWork;

	while (!stopped(owner))
	{
		if (buffer < 0 && (buffer = io_->claim_buffer()) < 0)
		{
			leave = Leave::NoBuffer;
			break;
		}
		if (unit.range == nullptr && !next_join_unit(&unit))
			break;
		join_->set_stop(unit.state.get(), &stop);

		const JoinPart part = join_->run_part(unit.state.get(), request_.areas[buffer], request_.capacity);

		if (part.errors != 0)
		{
			errors_.fetch_or(part.errors);
			io_->fail("an operation of the join raised an error");
		}
		/* a unit that was stopped has an end, too */
		if (stopped(owner))
			break;
		if (!part.done)
		{
			io_->publish_part(buffer, unit.range->unit, unit.part++, false, part.rows, 0);
			buffer = -1;
			continue;
		}
		count_range(*unit.range);
		if (part.rows > 0 || unit.part > 0)
		{
			io_->publish_part(buffer, unit.range->unit, unit.part, true, part.rows, 0);
			buffer = -1;
		}
		unit.range = nullptr;
	}
	if (buffer >= 0)
		io_->unclaim(buffer);
	end_join_unit(&unit);
	return leave;
}

/* A join's unit, to be sorted or kept. */
template <typename Collector, typename Rows>
void
JobRun::collect_unit(Collector *to, CpuState *state, Rows *rows, bool owner)
{
	for (bool done = false; !done && !stopped(owner);)
	{
		const JoinPart part = join_->run_part(state, rows->area(), Collector::AREA_ROWS);

		done = part.done;
		if (part.errors != 0)
		{
			errors_.fetch_or(part.errors);
			if (holds_)
				io_->fail("an operation of the join raised an error");
			else
				io_->stop();
			return;
		}
		to->take(rows, part.rows);
		if (holds_ && request_.row_limit > 0 && held_.fetch_add(part.rows) + part.rows >= request_.row_limit)
		{
			enough_.store(true);
			return;
		}
	}
}

/* Rows that are to be sorted or kept. An error of any ends the job. */
template <typename Collector>
void
JobRun::collect_rows(Collector *to, bool owner)
{
	Stop		stop(this, owner);
	std::unique_ptr<CpuState> state = cpu_->new_state();
	auto		rows = to->new_rows();
	const Range *range;

	if (join_)
		join_->set_stop(state.get(), &stop);
	while (!stopped(owner) && !enough_.load() && (range = next_range()) != nullptr)
	{
		const DeviceTabletRef &tablet = work_.tablets[range->tablet];

		if (join_)
		{
			join_->begin_unit(state.get(), tablet.tablet, range->first, range->last, tablet.masked, tablet.nmasked);
			collect_unit(to, state.get(), rows.get(), owner);
		}
		else
		{
			const CpuUnitOutcome outcome = cpu_->run_rows(state.get(), tablet.tablet, range->first, range->last, rows->area(),
														  Collector::AREA_ROWS, tablet.masked, tablet.nmasked);

			if (outcome.errors != 0)
			{
				errors_.fetch_or(outcome.errors);
				io_->stop();
				break;
			}
			to->take(rows.get(), outcome.rows);
		}
		count_range(*range);
	}
	if (join_)
		pairs_.fetch_add(join_->pairs(state.get()), std::memory_order_relaxed);
	to->add(std::move(rows));
}

void
JobRun::work_groups(CpuState *state, bool owner)
{
	Stop		stop(this, owner);
	const Range *range;
	const uint64_t before = join_ ? join_->pairs(state) : 0;

	cpu_->set_stop(state, &stop);
	while (rest_parts_ > 0 && !stopped(owner))
	{
		const uint32_t part = next_rest_.fetch_add(1, std::memory_order_relaxed);

		if (part >= rest_parts_)
			break;
		join_->run_rest_groups(state, part);
	}
	while (rest_parts_ == 0 && !stopped(owner) && (range = next_range()) != nullptr)
	{
		const DeviceTabletRef &tablet = work_.tablets[range->tablet];

		cpu_->run_groups(state, tablet.tablet, range->first, range->last, tablet.masked, tablet.nmasked);
		count_range(*range);
	}
	cpu_->set_stop(state, nullptr);
	if (join_)
		pairs_.fetch_add(join_->pairs(state) - before, std::memory_order_relaxed);
}

void
JobRun::work_parts(bool owner)
{
	while (!stopped(owner))
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

		if (collects())
		{
			if (sort_)
				collect_rows(sort_.get(), false);
			else
				collect_rows(set_, false);
			return;
		}
		if (join_ && !request_.program->grouped)
		{
			work_join_rows(false);
			return;
		}

		if (request_.program->grouped)
		{
			std::unique_ptr<CpuState> state = helper_groups();

			work_groups(state.get(), false);

			std::lock_guard<std::mutex> lock(states_mutex_);

			helper_states_.push_back(std::move(state));
			return;
		}

		const std::unique_ptr<CpuState> state = cpu_->new_state();

		work_rows(state.get(), false);
	}
	catch (const std::bad_alloc &)
	{
		io_->fail_memory();
	}
}

/* ---- what the owner does -------------------------------------------------------- */

/* Cuts the tablets that can matter into ranges of at most `step` rows; units are numbered over all tablets. */
void
JobRun::split(uint32_t step)
{
	uint64_t	unit = 0;

	touched_.reset(new std::atomic<bool>[work_.tablets.size()]());
	for (uint32_t t = 0; t < work_.tablets.size(); t++)
	{
		const DeviceTabletRef &tablet = work_.tablets[t];
		uint32_t	nrows = tablet.tablet->nrows;

		for (uint32_t first = 0; first < nrows; first += step, unit++)
		{
			uint32_t	last = std::min(nrows, first + step);

			uint32_t	rows = last - first - masked_count(tablet.masked, tablet.nmasked, first, last);

			if (tablet.skip || rows == 0 || request_.skips(unit))
				continue;
			ranges_.push_back(Range{t, first, last, rows, static_cast<uint32_t>(unit)});
			rows_to_run_ += rows;
		}
	}
	job_->rows_done.store(0, std::memory_order_relaxed);
	job_->rows_to_do.store(rows_to_run_, std::memory_order_relaxed);
}

/* The unit of a join behind all of cursor 0's rows, as the backend numbers them. */
uint32_t
JobRun::last_unit() const
{
	uint32_t	n = 0;

	for (const DeviceTabletRef &tablet : work_.tablets)
		n += (tablet.tablet->nrows + request_.unit_rows - 1) / request_.unit_rows;
	return n;
}

/* A nested loop's ranges are short: they are what can be shared. */
uint32_t
JobRun::group_step() const
{
	if (!join_ || join_->pairs_a_row() <= 1)
		return MORSEL_ROWS;

	/* as many as threads can have some each, in whole vectors */
	const double rows = std::min(static_cast<double>(MORSEL_PAIRS) / join_->pairs_a_row(),
								 static_cast<double>(request_.total_rows) / (2 * most_threads(request_, pool_)));
	const uint32_t vectors = static_cast<uint32_t>(std::min<double>(rows, MORSEL_ROWS)) / CPU_VECTOR_ROWS;

	return std::max(1u, vectors) * CPU_VECTOR_ROWS;
}

JobWork
plan_work(const CpuJob &cpu, const Request &request)
{
	JobWork		work;

	work.tablets.reserve(request.tablets.size());
	work.bytes_of.reserve(request.tablets.size());
	for (const RequestTablet &of : request.tablets)
	{
		bool		skip = of.wholly_masked() || cpu.can_skip(of.tablet);

		work.tablets.push_back(DeviceTabletRef{of.tablet, skip, of.masked, of.nmasked});
		work.bytes_of.push_back(skip ? 0 : cpu.bytes_of(of.tablet));
		work.bytes += work.bytes_of.back();
		work.rows += skip ? 0 : of.tablet->nrows - of.masked_rows;
		work.skipped += skip;
	}
	return work;
}

uint32_t
most_threads(const Request &request, const WorkerPool *pool)
{
	uint32_t	all = static_cast<uint32_t>(pool->size()) + 1;

	return request.threads != 0 ? std::min(request.threads, all) : all;
}

int
JobRun::helpers_wanted() const
{
	size_t		done = std::min(next_.load(std::memory_order_relaxed), ranges_.size());
	size_t		left = ranges_.size() - done + parked_.size();
	size_t		threads = most_threads(request_, pool_);
	double		work = static_cast<double>(rows_to_run_) * (join_ ? join_->pairs_a_row() : 1);

	if (work <= HELP_ROWS || left < 2)
		return 0;
	return static_cast<int>(std::min(left, threads)) - 1;
}

void
JobRun::run_rows()
{
	std::unique_ptr<CpuState> state = join_ ? nullptr : cpu_->new_state();

	for (;;)
	{
		/* The owner takes one buffer itself. */
		pool_->invite(this, std::min(helpers_wanted(), io_->free_buffers() - 1));

		Leave		leave = join_ ? work_join_rows(true) : work_rows(state.get(), true);

		pool_->dismiss(this);
		if (io_->stopping() || (next_.load() >= ranges_.size() && parked_.empty())
			|| (leave != Leave::NoBuffer && parked_.empty()) || !io_->wait_for_buffer())
			break;
	}
	if (join_ && join_->rest_parts() > 0 && !io_->stopping())
		run_rest();
}

/* All units are done. Are they to be run once more, with other inner rows? */
bool
JobRun::next_pass()
{
	if (!join_ || io_->stopping() || enough_.load() || !build_->next_pass())
		return false;
	first_pass_ = false;
	next_.store(0);
	rest_parts_ = 0;
	next_rest_.store(0);
	return true;
}

/* All rows are collected. */
template <typename Collector>
void
JobRun::run_collected(Collector *to)
{
	do
	{
		pool_->invite(this, helpers_wanted());
		collect_rows(to, true);
		pool_->dismiss(this);
		if (join_ && join_->rest_parts() > 0 && !io_->stopping() && !enough_.load())
		{
			Stop		stop(this, true);
			std::unique_ptr<CpuState> state = join_->new_state();
			auto		rows = to->new_rows();

			join_->begin_rest(state.get());
			join_->set_stop(state.get(), &stop);
			collect_unit(to, state.get(), rows.get(), true);
			pairs_.fetch_add(join_->pairs(state.get()), std::memory_order_relaxed);
			to->add(std::move(rows));
		}
	} while (next_pass());
}

/* What is left of full joins when all units are done: one unit more, behind the others. */
void
JobRun::run_rest()
{
	Stop		stop(this, true);
	std::unique_ptr<CpuState> state = join_->new_state();
	uint32_t	number = 0;
	int			buffer;

	join_->begin_rest(state.get());
	join_->set_stop(state.get(), &stop);
	while ((buffer = io_->claim_or_wait()) >= 0)
	{
		const JoinPart part = join_->run_part(state.get(), request_.areas[buffer], request_.capacity);

		if (part.errors != 0)
		{
			errors_.fetch_or(part.errors);
			io_->fail("an operation of the join raised an error");
		}
		if (stopped(true) || (part.done && part.rows == 0 && number == 0))
		{
			io_->unclaim(buffer);
			break;
		}
		io_->publish_part(buffer, last_unit(), number++, part.done, part.rows, 0);
		if (part.done)
			break;
	}
	pairs_.fetch_add(join_->pairs(state.get()), std::memory_order_relaxed);
}

void
JobRun::emit_groups(const CpuState *state)
{
	uint64_t	ngroups = cpu_->ngroups(state);
	uint32_t	sequence = 0;

	for (uint64_t from = 0; from < ngroups;)
	{
		int			buffer = io_->claim_or_wait();

		if (buffer < 0)
			return;

		uint32_t	n = cpu_->emit_groups(state, from, request_.areas[buffer], request_.capacity);

		if (n == 0)
		{
			io_->fail("the engine lost a group");
			return;
		}
		io_->publish(buffer, sequence++, n, 0);
		from += n;
	}
}

/* Instead of the groups: how many there are. */
void
JobRun::emit_group_count(const CpuState *state)
{
	uint64_t	ngroups = cpu_->ngroups(state);
	Type		type = Type::I64;
	ResultColumnLayout at;
	int			buffer = io_->claim_or_wait();

	if (buffer < 0)
		return;
	result_layout(&type, 1, request_.capacity, &at);
	memset(request_.areas[buffer] + at.nulls, 0, request_.capacity / 8);
	memcpy(request_.areas[buffer] + at.values, &ngroups, sizeof(ngroups));
	io_->publish(buffer, 0, 1, 0);
}

std::unique_ptr<CpuState>
JobRun::new_groups()
{
	std::unique_ptr<CpuState> state = cpu_->new_state();

	cpu_->set_spill(state.get(), &spill_);
	return state;
}

/* Those of a helper that has left, as far as there are some: it was invited to another pass. */
std::unique_ptr<CpuState>
JobRun::helper_groups()
{
	{
		std::lock_guard<std::mutex> lock(states_mutex_);

		if (!helper_states_.empty())
		{
			std::unique_ptr<CpuState> state = std::move(helper_states_.back());

			helper_states_.pop_back();
			return state;
		}
	}
	return new_groups();
}

void
JobRun::run_groups()
{
	owner_state_ = new_groups();
	do
	{
		pool_->invite(this, helpers_wanted());
		work_groups(owner_state_.get(), true);
		pool_->dismiss(this);

		if (join_ && !io_->stopping() && (rest_parts_ = join_->rest_parts()) > 0)
		{
			pool_->invite(this, static_cast<int>(std::min(rest_parts_, most_threads(request_, pool_))) - 1);
			work_groups(owner_state_.get(), true);
			pool_->dismiss(this);
		}
	} while (next_pass());
	if (io_->stopping())
		return;

	states_.push_back(owner_state_.get());
	for (const std::unique_ptr<CpuState> &from : helper_states_)
		states_.push_back(from.get());
	nparts_ = cpu_->begin_merge(states_.data(), static_cast<uint32_t>(states_.size()));
	if (nparts_ > 0)
	{
		pool_->invite(this, static_cast<int>(std::min(nparts_, most_threads(request_, pool_))) - 1);
		work_parts(true);
		pool_->dismiss(this);
		if (io_->stopping())
			return;
	}
	job_->errors = cpu_->finish(owner_state_.get());
	helper_states_.clear();
	if (job_->errors != 0)
		return;
	finished_ = true;
	if (request_.stage != nullptr)
		return;
	if (sort_)
	{
		sort_->take_groups(cpu_, owner_state_.get());
		owner_state_.reset();
		sort_->run();
	}
	else if (set_ != nullptr)
		set_->take_groups(cpu_, owner_state_.get());
	else if (request_.count_groups)
		emit_group_count(owner_state_.get());
	else
		emit_groups(owner_state_.get());
}

void
JobRun::run()
{
	/* Whatever leaves this function, no helper may be inside: they use its members. */
	struct Dismiss
	{
		JobRun	   *run;
		bool		failed = true;
		~Dismiss()
		{
			if (failed)
				run->io_->stop();
			run->pool_->dismiss(run);
		}
	};

	holds_ = request_.order.empty() && set_ == nullptr && !request_.program->grouped && job_->passes > 1;
	if ((!request_.order.empty() && request_.stage == nullptr) || holds_)
	{
		sort_ = std::make_unique<JobSort>(request_, io_, pool_, set_, holds_ ? last_unit() : JobSort::NO_UNIT);
		sort_->set_spill(&spill_);
	}
	split(request_.program->grouped || (collects() && join_) ? group_step() : sort_ ? JobSort::AREA_ROWS
		  : set_ != nullptr ? SetBuild::AREA_ROWS : request_.unit_rows);
	{
		Dismiss		dismiss = {this};

		if (request_.program->grouped)
			run_groups();
		else if (sort_)
		{
			run_collected(sort_.get());
			sort_->run();
		}
		else if (set_ != nullptr)
			run_collected(set_);
		else
			run_rows();
		dismiss.failed = false;
	}

	job_->ran_on = Device::Cpu;
	job_->tablets_scanned = scanned_.load();
	if (errors_.load() != 0)
		job_->errors = errors_.load();
	for (const JoinUnit &unit : parked_)
		pairs_.fetch_add(join_->pairs(unit.state.get()));
	job_->pairs = pairs_.load();
	job_->rows_in = rows_in_.load();
	job_->bytes_read = bytes_read_.load();
	/* Invitations are counted, and the pool may serve several one after the other. */
	job_->threads_used = std::min<uint32_t>(threads_used_.load(), most_threads(request_, pool_));
}

}  // namespace gpuvm
