/* memory_budget.cc: see memory_budget.h. */
#include "vm/memory_budget.h"

namespace gpuvm {

/* ---- the budget, under its mutex --------------------------------------------------- */

/* Is that more than the job may have? */
bool
MemoryBudget::is_beyond(const JobMemory *job, uint64_t bytes) const
{
	return job != nullptr && bytes > job->most_allowed_ - std::min(job->most_allowed_, job->held_);
}

bool
MemoryBudget::fits(const JobMemory *job, uint64_t bytes) const
{
	const bool	small = job == nullptr || job->held_ + bytes <= SMALL;
	const uint64_t taken = used_ + (small ? 0 : reserved_ - job->reserve()), limit = limit_.load(std::memory_order_relaxed);

	return taken <= limit && bytes <= limit - taken && !is_beyond(job, bytes);
}

/* What there is for the job when no other runs. */
uint64_t
MemoryBudget::ever(const JobMemory *job) const
{
	const uint64_t stays = used_ - held_ + job->kept_, limit = limit_.load(std::memory_order_relaxed);

	return std::min(limit - std::min(limit, stays), job->most_allowed_);
}

bool
MemoryBudget::others_hold(const JobMemory *job) const
{
	return std::any_of(jobs_.begin(), jobs_.end(), [job](const JobMemory *other) { return other != job && other->holds(); });
}

/* What those have, but for clients' that have been waited for. */
uint64_t
MemoryBudget::others_compute(const JobMemory *job) const
{
	const Clock::time_point now = Clock::now();
	uint64_t	bytes = 0;

	for (const JobMemory *other : jobs_)
	{
		if (other != job && other->holds() && !other->waiting_ && (!other->waits_for_client_ || other->client_until_ > now))
			bytes += std::max(other->held_, other->granted_);
	}
	return bytes;
}

/* What those will give back, and those that wait when they can begin by it. */
uint64_t
MemoryBudget::to_come(const JobMemory *job, uint64_t left)
{
	uint64_t	bytes = others_compute(job);
	bool		more = true;

	for (JobMemory *other : waiting_)
		other->counted_ = other == job || other->held_ == 0;
	while (more)
	{
		more = false;
		for (JobMemory *other : waiting_)
		{
			if (other->counted_ || other->needs() > left + bytes)
				continue;
			bytes += other->held_;
			other->counted_ = more = true;
		}
	}
	return bytes;
}

void
MemoryBudget::change(JobMemory *job, uint64_t held, uint64_t granted)
{
	reserved_ -= job->reserve();
	held_ += held - job->held_;
	job->held_ = held;
	job->peak_ = std::max(job->peak_, held);
	job->most_ = std::max(job->most_, held);
	job->granted_ = granted;
	reserved_ += job->reserve();
}

void
MemoryBudget::refuse(JobMemory *job, uint64_t bytes, bool its_turn)
{
	if (job == nullptr)
		return;
	job->refusal_ = {bytes, job->held_, 0};
	job->wanted_ = std::min(std::max(job->held_ + bytes, job->least_), MOST);
	/* there may be room by now */
	job->had_all_ = is_beyond(job, bytes) || (its_turn && !others_hold(job) && !fits(job, bytes));
}

void
MemoryBudget::call_first()
{
	if (!waiting_.empty())
		waiting_.front()->called_.notify_one();
}

/* ---- Pages ------------------------------------------------------------------------- */

uint64_t
MemoryBudget::used()
{
	std::lock_guard<std::mutex> lock(mutex_);

	return used_;
}

uint64_t
MemoryBudget::held()
{
	std::lock_guard<std::mutex> lock(mutex_);

	return held_;
}

uint64_t
MemoryBudget::left(const JobMemory *job)
{
	std::lock_guard<std::mutex> lock(mutex_);
	const uint64_t taken = used_ + reserved_ - job->reserve(), limit = limit_.load(std::memory_order_relaxed);
	const uint64_t small = std::min(SMALL - std::min(SMALL, job->held_), limit - std::min(limit, used_));
	const uint64_t bytes = waiting_.empty() || job->large() ? std::max(limit - std::min(limit, taken), small) : small;

	return std::min(bytes, job->most_allowed_ - std::min(job->most_allowed_, job->held_));
}

uint64_t
MemoryBudget::most(const JobMemory *job, uint64_t wanted)
{
	for (bool yielded = false;; yielded = true)
	{
		{
			std::lock_guard<std::mutex> lock(mutex_);
			const uint64_t bytes = ever(job);

			if (bytes >= wanted || yielded || !yield_)
				return bytes;
		}
		yield_();
	}
}

bool
MemoryBudget::take(JobMemory *job, uint64_t bytes)
{
	for (bool yielded = false;; yielded = true)
	{
		{
			std::lock_guard<std::mutex> lock(mutex_);
			/* who has begun may end: that is what those who wait are waiting for */
			const bool	its_turn = waiting_.empty() || job == nullptr || job->large() || job->held_ + bytes <= SMALL;

			if (its_turn && bytes <= MOST && fits(job, bytes))
			{
				used_ += bytes;
				if (job != nullptr)
					change(job, job->held_ + bytes, job->granted_);
				return true;
			}
			if (!its_turn || yielded || !yield_ || is_beyond(job, bytes))
			{
				refuse(job, bytes, its_turn);
				return false;
			}
		}
		yield_();
	}
}

void
MemoryBudget::give_back(uint64_t number, uint64_t bytes)
{
	std::lock_guard<std::mutex> lock(mutex_);
	const auto	owner = number == 0 ? jobs_.end() : std::find_if(jobs_.begin(), jobs_.end(), [number](const JobMemory *job)
	{
		return job->number_ == number;
	});

	used_ -= bytes;
	if (owner != jobs_.end())
		change(*owner, (*owner)->held_ - bytes, (*owner)->granted_);
	call_first();
}

void
MemoryBudget::give_back(JobMemory &session, uint64_t bytes)
{
	std::lock_guard<std::mutex> lock(mutex_);

	used_ -= bytes;
	change(&session, session.held_ - bytes, session.granted_);
	call_first();
}

void
MemoryBudget::fail(JobMemory *job, uint64_t bytes, int error)
{
	give_back(job->number(), bytes);

	std::lock_guard<std::mutex> lock(mutex_);

	refuse(job, bytes, true);
	job->refusal_.error = error;
	job->had_all_ = true;
}

/* ---- jobs -------------------------------------------------------------------------- */

JobMemory::JobMemory(MemoryBudget *budget, Of of, uint64_t most, int priority)
	: budget_(budget), of_(of), most_allowed_(most == 0 ? MemoryBudget::MOST : most), priority_(priority)
{
	std::lock_guard<std::mutex> lock(budget_->mutex_);

	number_ = ++budget_->last_number_;
	/* the last to come is asked for first */
	budget_->jobs_.push_front(this);
}

JobMemory::~JobMemory()
{
	std::lock_guard<std::mutex> lock(budget_->mutex_);

	/* what it leaves stays */
	budget_->change(this, 0, 0);
	budget_->jobs_.remove(this);
	budget_->waiting_.remove(this);
	budget_->call_first();
}

uint64_t
JobMemory::peak()
{
	std::lock_guard<std::mutex> lock(budget_->mutex_);

	return peak_;
}

JobMemory::Refusal
JobMemory::refusal()
{
	std::lock_guard<std::mutex> lock(budget_->mutex_);

	return refusal_;
}

void
JobMemory::wait_for_client(bool waits)
{
	std::lock_guard<std::mutex> lock(budget_->mutex_);

	if (of_ == Of::Session && (!waits || waits_for_client_))
		return;
	waits_for_client_ = waits;
	client_until_ = MemoryBudget::Clock::now() + MemoryBudget::CLIENT_PATIENCE;
	if (waits && reserve() > 0)
	{
		budget_->change(this, held_, std::max<uint64_t>(held_, 1));
		budget_->call_first();
	}
}

/* What is held stays: nobody's, or the session's. */
void
JobMemory::reset()
{
	if (of_ == Of::Session)
	{
		kept_ = held_;
		budget_->change(this, held_, 0);
		return;
	}
	/* an index or a set that stays is nobody's */
	budget_->change(this, 0, 0);
	number_ = ++budget_->last_number_;
}

void
JobMemory::start_over()
{
	std::lock_guard<std::mutex> lock(budget_->mutex_);

	least_ = std::max({least_, most_, granted_ / 2});
	reset();
	wanted_ = 0;
	budget_->call_first();
}

void
JobMemory::begin_job()
{
	std::lock_guard<std::mutex> lock(budget_->mutex_);

	kept_ = held_;
	wanted_ = 0;
	tries_ = 0;
	waits_for_client_ = false;
	waited_ = {};
}

void
JobMemory::end_job()
{
	std::lock_guard<std::mutex> lock(budget_->mutex_);

	reset();
	waits_for_client_ = true;
	client_until_ = MemoryBudget::Clock::now() + MemoryBudget::SESSION_PATIENCE;
	budget_->call_first();
}

bool
JobMemory::can_wait()
{
	std::lock_guard<std::mutex> lock(budget_->mutex_);

	return may_wait();
}

bool
JobMemory::can_wait_for(uint64_t bytes)
{
	std::lock_guard<std::mutex> lock(budget_->mutex_);

	budget_->refuse(this, bytes, true);
	return may_wait();
}

/* Of one that waits since then; `first` of all. */
JobMemory::Turn
JobMemory::turn(MemoryBudget::Clock::time_point since, bool first)
{
	/* tables grow by doubling */
	const uint64_t ever = budget_->ever(this), limit = budget_->limit_.load(std::memory_order_relaxed);
	const uint64_t taken = budget_->used_ + budget_->reserved_, left = limit - std::min(limit, taken), ample = std::min(2 * needs(), ever);

	if (!first && (kept_ == 0 || left < needs()))
		return Turn::Waits;
	if (needs() > ever)
		return Turn::HasNone;
	if (left < needs())
		return left + budget_->to_come(this, left) < needs() ? Turn::HasNone : Turn::Waits;
	/* what small sets of others are in the way of is not worth long */
	const std::chrono::milliseconds patience = of_ == Of::Session ? MemoryBudget::CLIENT_PATIENCE : MemoryBudget::AMPLE_PATIENCE;

	if (first && left < ample && left + budget_->others_compute(this) >= ample && MemoryBudget::Clock::now() - since < patience)
		return Turn::Waits;
	budget_->change(this, held_, kept_ + std::min(left, ample));
	return Turn::Begins;
}

/* Of one that begins to wait: is its turn before that of one that waits? Who keeps something is before who does not. */
bool
JobMemory::is_before(const JobMemory *other) const
{
	if ((kept_ == 0) != (other->kept_ == 0))
		return kept_ != 0;
	return priority_ > other->priority_ && since_ - other->since_ < (priority_ - other->priority_) * MemoryBudget::AGING;
}

/* Among those that wait: behind the last one that it is not before. */
std::list<JobMemory *>::iterator
JobMemory::place()
{
	std::list<JobMemory *> &waiting = budget_->waiting_;
	auto		at = waiting.end();

	while (at != waiting.begin() && is_before(*std::prev(at)))
		at--;
	return at;
}

bool
JobMemory::wait_for_more(const std::function<bool()> &ended)
{
	const MemoryBudget::Clock::time_point since = MemoryBudget::Clock::now();
	std::unique_lock<std::mutex> lock(budget_->mutex_);
	std::list<JobMemory *> &waiting = budget_->waiting_;
	bool		yielded = false;
	Turn		turn = Turn::Waits;

	if (!may_wait())
		return false;
	tries_++;
	reset();
	most_ = 0;
	since_ = since;
	waiting.insert(place(), this);
	waiting_ = true;
	for (;;)
	{
		const bool	first = waiting.front() == this;
		const bool	over = of_ == Of::Session && waited_ + (MemoryBudget::Clock::now() - since) > MemoryBudget::MOST_WAIT;

		if ((yielded || over || !first) && (turn = this->turn(since, first)) != Turn::Waits)
			break;
		lock.unlock();
		if (first && budget_->yield_)
			budget_->yield_();

		const bool	end = ended() || over;

		lock.lock();
		if (end)
			break;
		if (yielded || !first)
			called_.wait_for(lock, MemoryBudget::ASK);
		yielded = first;
	}
	waiting.remove(this);
	waiting_ = false;
	waited_ += MemoryBudget::Clock::now() - since;
	wanted_ = 0;
	budget_->call_first();
	if (turn != Turn::Begins)
		least_ = 0;
	return turn == Turn::Begins;
}

}  // namespace gpuvm
