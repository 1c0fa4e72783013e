/* memory_budget.cc: see memory_budget.h. */
#include "vm/memory_budget.h"

namespace gpuvm {

/* ---- the budget, under its mutex --------------------------------------------------- */

bool
MemoryBudget::fits(const JobMemory *job, uint64_t bytes) const
{
	const uint64_t taken = used_ + reserved_ - (job != nullptr ? job->reserve() : 0), limit = this->limit();

	return taken <= limit && bytes <= limit - taken;
}

bool
MemoryBudget::others_hold(const JobMemory *job) const
{
	return std::any_of(jobs_.begin(), jobs_.end(), [job](const JobMemory *other) { return other != job && other->large(); });
}

bool
MemoryBudget::others_compute(const JobMemory *job) const
{
	return std::any_of(jobs_.begin(), jobs_.end(),
					   [job](const JobMemory *other) { return other != job && other->large() && !other->waits_for_client_; });
}

void
MemoryBudget::change(JobMemory *job, int64_t held, uint64_t granted)
{
	reserved_ -= job->reserve();
	job->held_ = held;
	job->peak_ = std::max(job->peak_, held);
	job->granted_ = granted;
	reserved_ += job->reserve();
}

void
MemoryBudget::refuse(JobMemory *job, uint64_t bytes, bool its_turn)
{
	if (job == nullptr)
		return;
	job->wanted_ = static_cast<uint64_t>(std::max<int64_t>(job->held_, 0)) + bytes;
	job->had_all_ = its_turn && !others_hold(job);
}

/* ---- Pages ------------------------------------------------------------------------- */

uint64_t
MemoryBudget::used()
{
	std::lock_guard<std::mutex> lock(mutex_);

	return used_;
}

bool
MemoryBudget::take(JobMemory *job, uint64_t bytes)
{
	for (bool yielded = false;; yielded = true)
	{
		{
			std::lock_guard<std::mutex> lock(mutex_);
			/* who has begun may end: that is what those who wait are waiting for */
			const bool	its_turn = waiting_.empty() || job == nullptr || job->large() ||
				job->held_ + static_cast<int64_t>(bytes) <= static_cast<int64_t>(SMALL);

			if (its_turn && fits(job, bytes))
			{
				used_ += bytes;
				if (job != nullptr)
					change(job, job->held_ + static_cast<int64_t>(bytes), job->granted_);
				return true;
			}
			if (!its_turn || yielded || !yield_)
			{
				refuse(job, bytes, its_turn);
				return false;
			}
		}
		yield_();
	}
}

void
MemoryBudget::give_back(JobMemory *job, uint64_t bytes)
{
	std::lock_guard<std::mutex> lock(mutex_);

	used_ -= bytes;
	if (job != nullptr)
		change(job, job->held_ - static_cast<int64_t>(bytes), job->granted_);
	if (!waiting_.empty())
		changed_.notify_all();
}

void
MemoryBudget::fail(JobMemory *job, uint64_t bytes)
{
	give_back(job, bytes);

	std::lock_guard<std::mutex> lock(mutex_);

	refuse(job, bytes, true);
}

/* ---- jobs -------------------------------------------------------------------------- */

JobMemory::JobMemory(MemoryBudget *budget) : budget_(budget)
{
	std::lock_guard<std::mutex> lock(budget_->mutex_);

	budget_->jobs_.push_back(this);
}

JobMemory::~JobMemory()
{
	std::lock_guard<std::mutex> lock(budget_->mutex_);

	budget_->reserved_ -= reserve();
	budget_->jobs_.remove(this);
	if (!budget_->waiting_.empty())
		budget_->changed_.notify_all();
}

uint64_t
JobMemory::peak()
{
	std::lock_guard<std::mutex> lock(budget_->mutex_);

	return static_cast<uint64_t>(peak_);
}

void
JobMemory::wait_for_client(bool waits)
{
	std::lock_guard<std::mutex> lock(budget_->mutex_);

	waits_for_client_ = waits;
	budget_->moved_ = std::chrono::steady_clock::now();
}

bool
JobMemory::wait_for_more(const std::function<bool()> &ended)
{
	std::unique_lock<std::mutex> lock(budget_->mutex_);
	std::list<JobMemory *> &waiting = budget_->waiting_;

	if (wanted_ == 0 || had_all_ || last_try_)
		return false;
	budget_->change(this, held_, 0);
	waiting.push_back(this);
	budget_->moved_ = std::chrono::steady_clock::now();

	bool		goes_on = false;

	while (!goes_on)
	{
		if (waiting.front() == this)
		{
			/* what tables take grows by doubling */
			const uint64_t limit = budget_->limit(), need = std::min(limit, 2 * wanted_), taken = budget_->used_ + budget_->reserved_;

			if (budget_->fits(this, need))
			{
				budget_->change(this, held_, static_cast<uint64_t>(std::max<int64_t>(held_, 0)) + need);
				goes_on = true;
				continue;
			}
			if (!budget_->others_hold(this) ||
				(!budget_->others_compute(this) && std::chrono::steady_clock::now() - budget_->moved_ > MemoryBudget::CLIENT_PATIENCE))
			{
				/* nobody will give back any: it is what is left, or nothing */
				last_try_ = goes_on = true;
				budget_->change(this, held_, static_cast<uint64_t>(std::max<int64_t>(held_, 0)) + limit - std::min(limit, taken));
				continue;
			}
		}
		lock.unlock();

		const bool	end = ended();

		lock.lock();
		if (end)
			break;
		budget_->changed_.wait_for(lock, MemoryBudget::ASK);
	}
	waiting.remove(this);
	wanted_ = 0;
	budget_->changed_.notify_all();
	return goes_on;
}

}  // namespace gpuvm
