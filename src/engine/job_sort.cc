/* job_sort.cc: see job_sort.h. */
#include "engine/job_sort.h"

#include <algorithm>
#include <new>

#include "engine/job_run.h"
#include "engine/job_set.h"
#include "vm/memory_budget.h"

namespace gpuvm {

int
any_key(const Request &request)
{
	Type		types[PROGRAM_MAX_COLUMNS] = {};

	program_result_types(request.last(), types);
	for (int c = 0; c < request.last()->nresults; c++)
		if (types[c] >= Type::Bool && types[c] <= Type::I128)
			return c;
	return -1;
}

static CpuSort
make_sort(const Request &request)
{
	Type		types[PROGRAM_MAX_COLUMNS] = {};
	std::vector<SortColumn> keys;

	program_result_types(request.last(), types);
	for (const JobOrderKey &key : request.order)
		keys.push_back(SortColumn{key.column, (key.flags & ORDER_DESC) != 0, (key.flags & ORDER_NULLS_FIRST) != 0,
								  key.flags & ORDER_RANKS ? &request.maps[key.map] : nullptr,
								  key.flags & ORDER_TEXT ? &request.text_orders[key.map] : nullptr});
	if (keys.empty())
		keys.push_back(SortColumn{static_cast<uint32_t>(any_key(request)), false, false, nullptr});
	return CpuSort(types, request.last()->nresults, keys.data(), static_cast<uint32_t>(keys.size()), request.row_limit);
}

JobSort::JobSort(const Request &request, JobIo *io, WorkerPool *pool, SetBuild *set, uint32_t unit)
	: request_(request), io_(io), pool_(pool), set_(set), unit_(unit), stop_(io), sort_(make_sort(request))
{
	sort_.set_stop(&stop_);
}

void
JobSort::set_spill(Spill *spill)
{
	JobMemory  *const job = JobMemory::current();

	/* rows in no order are as many as are wanted, or somewhat more */
	if (request_.order.empty() || (set_ == nullptr && job != nullptr && job->budget()->left(job) / most_threads(request_, pool_) < sort_.kept_bytes()))
		sort_.keep_all();
	if (set_ == nullptr)
		sort_.set_spill(spill);
}

void
JobSort::take(SortRows *rows, uint32_t n)
{
	rows->take(n);
	if (sort_.refusal() != nullptr)
		io_->fail(sort_.refusal());
}

/* Of a buffer each. */
uint32_t
JobSort::units() const
{
	return static_cast<uint32_t>((sort_.nrows() + request_.capacity - 1) / request_.capacity);
}

uint32_t
JobSort::rows_of(uint32_t unit) const
{
	return static_cast<uint32_t>(std::min<uint64_t>(sort_.nrows() - uint64_t(unit) * request_.capacity, request_.capacity));
}

/* Units are filled by several threads, and leave in order. */
void
JobSort::publish(uint32_t unit, int buffer)
{
	std::lock_guard<std::mutex> lock(filled_mutex_);

	filled_[unit] = buffer;
	for (auto at = filled_.begin(); at != filled_.end() && at->first == next_unit_; at = filled_.erase(at))
	{
		if (unit_ == NO_UNIT)
			io_->publish(at->second, at->first, rows_of(at->first), 0);
		else
			io_->publish_part(at->second, unit_, at->first, at->first + 1 == units(), rows_of(at->first), 0);
		next_unit_++;
	}
}

/* Numbers below n_, each once. */
void
JobSort::work(bool owner)
{
	std::unique_ptr<SortRows> rows = work_ == Work::Groups ? new_rows() : nullptr;
	int			buffer = -1;

	while (owner ? !io_->stopped() : !io_->stopping())
	{
		/* before a unit is taken, so that none waits for it */
		if (work_ == Work::Emit && (buffer = io_->claim_buffer()) < 0)
			break;

		const uint32_t i = next_.fetch_add(1, std::memory_order_relaxed);

		if (i >= n_)
		{
			if (buffer >= 0)
				io_->unclaim(buffer);
			break;
		}
		switch (work_)
		{
			case Work::Groups:
				{
					char	   *area = rows->area();

					take(rows.get(), cpu_->emit_groups(groups_, uint64_t(i) * SORT_CHUNK_ROWS, area, SORT_CHUNK_ROWS));
					break;
				}
			case Work::Task:
				sort_.run_task(i);
				break;
			case Work::Emit:
				sort_.gather(uint64_t(i) * request_.capacity, rows_of(i), request_.areas[buffer], request_.capacity);
				publish(i, buffer);
				buffer = -1;
				break;
		}
	}
	if (rows)
		add(std::move(rows));
}

void
JobSort::help() noexcept
{
	try
	{
		work(false);
	}
	catch (const std::bad_alloc &)
	{
		io_->fail_memory();
	}
}

/* By all threads, as far as it goes without waiting for the backend. */
void
JobSort::share(Work work, uint32_t n)
{
	/* Whatever leaves this function, no helper may be inside. */
	struct Dismiss
	{
		JobSort    *sort;
		~Dismiss() { sort->pool_->dismiss(sort); }
	};
	Dismiss		dismiss = {this};

	work_ = work;
	n_ = n;

	const uint32_t left = n - std::min(n, next_.load()), buffers = work == Work::Emit ? static_cast<uint32_t>(io_->free_buffers()) : n;
	const uint32_t threads = std::min({left, buffers, most_threads(request_, pool_)});

	if (threads > 1)
		pool_->invite(this, static_cast<int>(threads) - 1);
	try
	{
		this->work(true);
	}
	catch (const std::bad_alloc &)
	{
		/* helpers are to stop, and the job has failed */
		io_->fail_memory();
	}
}

void
JobSort::take_groups(const CpuJob *cpu, const CpuState *groups)
{
	cpu_ = cpu;
	groups_ = groups;
	next_.store(0);
	share(Work::Groups, static_cast<uint32_t>((cpu->ngroups(groups) + SORT_CHUNK_ROWS - 1) / SORT_CHUNK_ROWS));
}

void
JobSort::emit()
{
	const uint32_t nunits = units();

	next_.store(0);
	while (!io_->stopping())
	{
		share(Work::Emit, nunits);
		if (next_.load() >= nunits || !io_->wait_for_buffer())
			break;
	}
}

/* By the owner alone: merging has one place. */
void
JobSort::emit_merged()
{
	const uint32_t nunits = units();

	for (uint32_t unit = 0; unit < nunits && !io_->stopped(); unit++)
	{
		const int	buffer = io_->claim_or_wait();

		if (buffer < 0)
			break;
		sort_.take_merged(rows_of(unit), request_.areas[buffer], request_.capacity);
		/* texts are not compared any more once the job stops */
		if (io_->stopping())
		{
			io_->unclaim(buffer);
			break;
		}
		publish(unit, buffer);
	}
}

void
JobSort::run()
{
	uint32_t	n;

	while (!io_->stopping() && (n = sort_.begin_phase()) > 0)
	{
		next_.store(0);
		share(Work::Task, n);
	}
	if (sort_.refusal() != nullptr)
		io_->fail(sort_.refusal());
	if (io_->stopping())
		return;
	if (set_ != nullptr)
		set_->take_sorted(&sort_);
	else if (sort_.merges())
		emit_merged();
	else
		emit();
}

}  // namespace gpuvm
