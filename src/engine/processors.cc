/* processors.cc: whose turn it is to compute. */
#include "engine/processors.h"

#include <time.h>

#include <algorithm>
#include <iterator>

namespace gpuvm {

/* What follows is done under the lock. Of what a role has not used in the past only CREDIT is left, of what it had while nobody waited only DEBT. */
Processors::Role &
Processors::role_of(const SessionShare *share)
{
	if (roles_.size() > ROLES && roles_.count(share->role) == 0)
	{
		/* who has had no more than others is as if he were new */
		for (auto role = roles_.begin(); role != roles_.end();)
			role = role->second.jobs == 0 && role->second.used <= least_ ? roles_.erase(role) : std::next(role);
	}

	Role	   &role = roles_[share->role];

	role.used = std::clamp(role.used, least_ - std::chrono::nanoseconds(CREDIT),
						   least_ + std::chrono::nanoseconds(DEBT) * DEFAULT_SHARE / share->weight);
	return role;
}

void
Processors::count_for_role(const SessionShare *share, std::chrono::nanoseconds time)
{
	role_of(share).used += time * DEFAULT_SHARE / share->weight;
}

void
Processors::count(SessionShare *share, std::chrono::nanoseconds time)
{
	share->used += time;
	count_for_role(share, time);
}

bool
Processors::before(const SessionShare *a, const SessionShare *b) const
{
	if (a->role != b->role)
		return roles_.at(a->role).used < roles_.at(b->role).used;
	if (a->interrupted != b->interrupted)
		return a->interrupted;
	return a->used < b->used;
}

void
Processors::call_next()
{
	while (free_ > 0 && !waiting_.empty())
	{
		auto		next = std::min_element(waiting_.begin(), waiting_.end(),
										[this](const Waiter *a, const Waiter *b) { return before(a->share, b->share); });
		Waiter	   *waiter = *next;
		Role	   &role = role_of(waiter->share);

		waiting_.erase(next);
		free_--;
		least_ = std::max(least_, role.used);
		role.least = std::max(role.least, waiter->share->used);
		waiter->has_place = true;
		waiter->called.notify_one();
	}
}

bool
Processors::take(SessionShare *share, const std::function<bool()> &ended)
{
	std::unique_lock<std::mutex> lock(mutex_);
	Role	   &role = role_of(share);
	Waiter		waiter;

	role.jobs++;
	share->used = std::max(share->used, role.least);
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
		role.jobs--;
		break;
	}
	share->interrupted = false;
	return waiter.has_place;
}

bool
Processors::had(SessionShare *share, std::chrono::nanoseconds time)
{
	std::lock_guard<std::mutex> lock(mutex_);

	count(share, time);
	share->interrupted = std::any_of(waiting_.begin(), waiting_.end(), [this, share](const Waiter *waiter)
	{
		return waiter->share->role != share->role && role_of(waiter->share).used + AHEAD < role_of(share).used;
	});
	return share->interrupted;
}

void
Processors::leave(SessionShare *share, std::chrono::nanoseconds time)
{
	std::lock_guard<std::mutex> lock(mutex_);

	count(share, time);
	role_of(share).jobs--;
	free_++;
	call_next();
}

bool
Processors::wanted()
{
	std::lock_guard<std::mutex> lock(mutex_);

	return !waiting_.empty();
}

bool
Processors::behind(const SessionShare *one, const SessionShare *other)
{
	if (one->role == other->role)
		return false;

	std::lock_guard<std::mutex> lock(mutex_);
	/* the other one's look-up may forget it */
	const std::chrono::nanoseconds mine = role_of(one).used;

	return mine < role_of(other).used;
}

void
Processors::helped(SessionShare *share, std::chrono::nanoseconds time)
{
	std::lock_guard<std::mutex> lock(mutex_);

	count_for_role(share, time);
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

	if (!has_place_)
	{
		if (used() - began_ < Processors::FREE)
			return std::chrono::nanoseconds(0);
	}
	else
	{
		if (now - counted_ < Processors::SLICE)
			return std::chrono::nanoseconds(0);

		const bool	interrupted = processors_->had(share_, now - counted_);

		turn_ += now - counted_;
		counted_ = now;
		if (!interrupted && (turn_ < Processors::TURN || !processors_->wanted()))
			return std::chrono::nanoseconds(0);
		if (turn_ >= Processors::TURN)
		{
			share_->interrupted = false;
			turn_ = std::chrono::nanoseconds(0);
		}
		leave();
	}
	has_place_ = processors_->take(share_, ended);
	counted_ = std::chrono::steady_clock::now();
	return counted_ - now;
}

void
Turn::leave()
{
	if (has_place_)
		processors_->leave(share_, std::chrono::steady_clock::now() - counted_);
	has_place_ = false;
}

}  // namespace gpuvm
