/*
 * memory_budget.h: how much memory jobs may have, and whose turn it is where there is not enough for all.
 *
 * Pages (cpu_pages.h) are counted, for the process and for the job that their thread worked for. An allocation that finds
 * no room is refused, which is std::bad_alloc. The job then gives back all that it has, waits until about as much as it
 * needs is free, which is kept for it from then on, and begins again: of several large jobs that do not fit side by side
 * each runs in its turn. What is small is taken at once, also where others wait or something is kept for them.
 *
 * A job that waits holds nothing that others wait for: sets and indexes that stay when a job has gone are nobody's.
 * Jobs that wait for their clients may do so for ever, so they are not waited for, nor is anything kept for them.
 *
 * Whoever has the higher priority waits before others, but not before one that has waited for AGING longer for each step between them.
 *
 * A job may have a bound of its own below the budget's limit. It then finds no more than that, however much is free.
 *
 * Of a budget that sessions have parts of (result sets, engine/set.h) what a session keeps between its jobs is its own, and
 * others wait for it. Who keeps something begins whenever there is room, for that may end his query, which gives all back.
 * When a query ends is up to its client, so nobody waits for more than MOST_WAIT in all. Where all that is left to wait for
 * is kept by those that wait themselves, and none of them could begin, the first is refused.
 */
#ifndef GPUVM_VM_MEMORY_BUDGET_H
#define GPUVM_VM_MEMORY_BUDGET_H

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>

namespace gpuvm {

class JobMemory;

class MemoryBudget
{
public:
	using Clock = std::chrono::steady_clock;

	/* Who has no more than this takes it at once. */
	static constexpr uint64_t SMALL = uint64_t(8) << 20;
	/* How often who waits asks whether he is still to. */
	static constexpr std::chrono::milliseconds ASK{20};
	/* A client that goes on does so sooner. */
	static constexpr std::chrono::milliseconds CLIENT_PATIENCE{100};
	/* A session's next job, or the end of its query, may be that long in coming. */
	static constexpr std::chrono::milliseconds SESSION_PATIENCE{500};
	/* So long a session's job waits at most, where it may wait for nothing. */
	static constexpr std::chrono::milliseconds MOST_WAIT{10000};
	/* How often a job begins again at most: small ones may take what is kept for it. */
	static constexpr int MOST_TRIES = 8;
	/* A step of priority is worth so much waiting. */
	static constexpr std::chrono::milliseconds AGING{1000};
	/* So long the first of those that wait holds out for more than it wanted when it was refused. */
	static constexpr std::chrono::milliseconds AMPLE_PATIENCE{2000};

	explicit MemoryBudget(uint64_t limit = UINT64_MAX) { set_limit(limit); }
	MemoryBudget(const MemoryBudget &) = delete;
	MemoryBudget &operator=(const MemoryBudget &) = delete;

	/* 0: there is none. */
	void		set_limit(uint64_t bytes) { limit_.store(bytes == 0 ? MOST : std::min(bytes, MOST), std::memory_order_relaxed); }
	uint64_t	limit() const { return limit_.load(std::memory_order_relaxed); }
	uint64_t	used();
	/* Of it, by jobs that run. */
	uint64_t	held();

	/* What gives back that which is only kept for later jobs; called where memory is short, with no lock held. */
	void		set_yield(std::function<void()> yield) { yield_ = std::move(yield); }

	/* The most that take() would give it, if nothing is given up for it. */
	uint64_t	left(const JobMemory *job);
	/* The most that it can ever have; less than `wanted` only if nothing more can be given up for it. */
	uint64_t	most(const JobMemory *job, uint64_t wanted);

	/* For `job`, or for nobody if it is nullptr. */
	bool		take(JobMemory *job, uint64_t bytes);
	/* What was taken under that number (JobMemory::number(); 0: nobody's), whoever gives it back. */
	void		give_back(uint64_t number, uint64_t bytes);
	/* What a session has taken. */
	void		give_back(JobMemory &session, uint64_t bytes);
	/* Taken, but the system has none, as that errno says: nobody is to wait for more. */
	void		fail(JobMemory *job, uint64_t bytes, int error);

private:
	friend class JobMemory;

	static constexpr uint64_t MOST = UINT64_MAX / 4;	/* sums do not overflow */

	bool		fits(const JobMemory *job, uint64_t bytes) const;
	bool		is_beyond(const JobMemory *job, uint64_t bytes) const;
	uint64_t	ever(const JobMemory *job) const;
	bool		others_hold(const JobMemory *job) const;
	uint64_t	others_compute(const JobMemory *job) const;
	uint64_t	to_come(const JobMemory *job, uint64_t left);
	void		refuse(JobMemory *job, uint64_t bytes, bool its_turn);
	void		change(JobMemory *job, uint64_t held, uint64_t granted);
	void		call_first();

	std::atomic<uint64_t> limit_;
	std::function<void()> yield_;
	std::mutex	mutex_;
	uint64_t	used_ = 0;
	uint64_t	held_ = 0;		/* of it, by jobs that run: the rest stays */
	uint64_t	reserved_ = 0;	/* granted, and not held yet */
	uint64_t	last_number_ = 0;
	std::list<JobMemory *> jobs_;
	std::list<JobMemory *> waiting_;	/* in the order in which it is their turn */
};

/* What one job has, or a session; its members are the budget's, under its mutex. */
class JobMemory
{
public:
	enum class Of { Job, Session };

	/* `most`: that it may have, if not 0. */
	explicit JobMemory(MemoryBudget *budget, Of of = Of::Job, uint64_t most = 0, int priority = 0);
	~JobMemory();
	JobMemory(const JobMemory &) = delete;
	JobMemory &operator=(const JobMemory &) = delete;

	/* Of the job that this thread works for; nullptr: nobody's is counted. */
	static JobMemory *current() { return current_; }

	MemoryBudget *budget() const { return budget_; }
	/* What it takes is known by. Another one once a job has waited: what stayed of the attempt before is nobody's. */
	uint64_t	number() const { return number_; }

	/* A session's next job, and its end: from then on it is the client that may give back what is kept. */
	void		begin_job();
	void		end_job();

	/* Most that it ever had at a time. */
	uint64_t	peak();

	/* What was last refused, to be told: of what it asked for beside what it had, by the system if there is an errno. */
	struct Refusal
	{
		uint64_t	asked = 0;
		uint64_t	had = 0;
		int			error = 0;
	};
	Refusal		refusal();

	/*
	 * It begins or ends to wait for its client. A session that has done so is not waited for until its job ends: when its
	 * query does is up to the client.
	 */
	void		wait_for_client(bool waits);

	/* All is given back, to begin again: nothing is kept for it. When it is refused it will want as much as it had. */
	void		start_over();

	/* Has it been refused, and may wait_for_more() help? */
	bool		can_wait();
	/* Somebody else (a device) has refused it so much. */
	bool		can_wait_for(uint64_t bytes);

	/*
	 * When an allocation has been refused, and all is given back: waits until it is worth while to begin again. False: it had
	 * all that there is, or ended() says that it is to end.
	 */
	bool		wait_for_more(const std::function<bool()> &ended);

	/* This thread works for the job, as long as this lives. */
	class Use
	{
	public:
		explicit Use(JobMemory *job) : before_(current_) { current_ = job; }
		~Use() { current_ = before_; }
		Use(const Use &) = delete;
		Use &operator=(const Use &) = delete;

	private:
		JobMemory  *before_;
	};

private:
	friend class MemoryBudget;

	void		reset();
	bool		may_wait() const { return wanted_ != 0 && !had_all_ && tries_ < MemoryBudget::MOST_TRIES; }
	bool		is_before(const JobMemory *other) const;
	std::list<JobMemory *>::iterator place();
	uint64_t	needs() const { return wanted_ - std::min(wanted_, kept_); }
	uint64_t	reserve() const { return granted_ - std::min(granted_, held_); }
	bool		holds() const { return held_ > 0 || granted_ > 0; }
	bool		large() const { return granted_ > 0 || held_ > MemoryBudget::SMALL; }

	enum class Turn { Waits, Begins, HasNone };

	Turn		turn(MemoryBudget::Clock::time_point since, bool first);

	static inline thread_local JobMemory *current_ = nullptr;

	MemoryBudget *budget_;
	const Of	of_;
	const uint64_t most_allowed_;
	const int	priority_;
	MemoryBudget::Clock::time_point since_;	/* it waits */
	uint64_t	number_;
	uint64_t	held_ = 0;
	uint64_t	kept_ = 0;		/* of it, from earlier jobs of the session */
	uint64_t	peak_ = 0;
	uint64_t	granted_ = 0;
	uint64_t	most_ = 0;		/* that it had since it began again */
	uint64_t	least_ = 0;		/* that it will want, as it had so much before it started over */
	uint64_t	wanted_ = 0;	/* when it was refused */
	Refusal		refusal_;
	bool		had_all_ = false;	/* when it was refused: nobody else would have given back any */
	int			tries_ = 0;
	bool		waiting_ = false;
	bool		waits_for_client_ = false;
	std::chrono::nanoseconds waited_{0};	/* a session's job, in all */
	bool		counted_ = false;	/* by to_come() */
	MemoryBudget::Clock::time_point client_until_;	/* that is not waited for any more */
	std::condition_variable called_;
};

}  // namespace gpuvm

#endif
