/* processors.cc: whose turn it is to compute. */
#include "engine/processors.h"

#include <time.h>

#include <algorithm>

namespace gpuvm {

/* Under the lock. */
void
Processors::call_next()
{
	while (free_ > 0 && !waiting_.empty())
	{
		auto		next = std::min_element(waiting_.begin(), waiting_.end(), [](const Waiter *a, const Waiter *b) { return a->share->used < b->share->used; });
		Waiter	   *waiter = *next;

		waiting_.erase(next);
		free_--;
		least_ = std::max(least_, waiter->share->used);
		waiter->has_place = true;
		waiter->called.notify_one();
	}
}

bool
Processors::take(SessionShare *share, const std::function<bool()> &ended)
{
	std::unique_lock<std::mutex> lock(mutex_);
	Waiter		waiter;

	share->used = std::max(share->used, least_);
	waiter.share = share;
	waiting_.push_front(&waiter);
	call_next();
	while (!waiter.called.wait_for(lock, ASK, [&waiter] { return waiter.has_place; }))
	{
		lock.unlock();

		const bool	over = ended();

		lock.lock();
		if (waiter.has_place || !over)
			continue;
		waiting_.remove(&waiter);
		return false;
	}
	return true;
}

void
Processors::leave(SessionShare *share, std::chrono::nanoseconds had)
{
	std::lock_guard<std::mutex> lock(mutex_);

	share->used += had;
	free_++;
	call_next();
}

bool
Processors::wanted()
{
	std::lock_guard<std::mutex> lock(mutex_);

	return !waiting_.empty();
}

std::chrono::nanoseconds
Turn::used()
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

std::chrono::nanoseconds
Turn::look(const std::function<bool()> &ended)
{
	const auto	now = std::chrono::steady_clock::now();

	if (has_place_ ? now - since_ < Processors::TURN || !processors_->wanted() : used() - began_ < Processors::FREE)
		return std::chrono::nanoseconds(0);
	leave();
	has_place_ = processors_->take(share_, ended);
	since_ = std::chrono::steady_clock::now();
	return since_ - now;
}

void
Turn::leave()
{
	if (has_place_)
		processors_->leave(share_, std::chrono::steady_clock::now() - since_);
	has_place_ = false;
}

}  // namespace gpuvm
