/*
 * memory_budget.h: how much memory jobs may have, and whose turn it is where there is not enough for all.
 *
 * Pages (cpu_pages.h) are counted, for the process and for the job that their thread works for. An allocation that finds
 * no room is refused, which is std::bad_alloc. The job then gives back all that it has, waits until about as much as it
 * needs is free, which is kept for it from then on, and begins again: of several large jobs that do not fit side by side
 * each runs in its turn. A job that waits holds no memory but sets that its session made before, so jobs do not wait for
 * each other in a circle. Those that wait for their clients may do so for ever, so they are not waited for.
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
	/* Who has no more than this takes it at once, also where others wait. */
	static constexpr uint64_t SMALL = uint64_t(8) << 20;
	/* How often who waits asks whether he is still to. */
	static constexpr std::chrono::milliseconds ASK{20};
	/* A client that goes on does so sooner. */
	static constexpr std::chrono::milliseconds CLIENT_PATIENCE{100};

	explicit MemoryBudget(uint64_t limit = UINT64_MAX) : limit_(limit) {}
	MemoryBudget(const MemoryBudget &) = delete;
	MemoryBudget &operator=(const MemoryBudget &) = delete;

	void		set_limit(uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
	uint64_t	limit() const { return limit_.load(std::memory_order_relaxed); }
	uint64_t	used();

	/* What gives back that which is only kept for later jobs; called where memory is short, by whom it is short for. */
	void		set_yield(std::function<void()> yield) { yield_ = std::move(yield); }

	/* For `job`, or for nobody if it is nullptr. */
	bool		take(JobMemory *job, uint64_t bytes);
	void		give_back(JobMemory *job, uint64_t bytes);
	/* They were taken, but the system has none. */
	void		fail(JobMemory *job, uint64_t bytes);

private:
	friend class JobMemory;

	bool		fits(const JobMemory *job, uint64_t bytes) const;
	bool		others_compute(const JobMemory *job) const;
	bool		others_hold(const JobMemory *job) const;
	void		refuse(JobMemory *job, uint64_t bytes, bool its_turn);
	void		change(JobMemory *job, int64_t held, uint64_t granted);

	std::atomic<uint64_t> limit_;
	std::function<void()> yield_;
	std::mutex	mutex_;
	uint64_t	used_ = 0;
	uint64_t	reserved_ = 0;	/* granted, and not held yet */
	std::list<JobMemory *> jobs_;
	std::list<JobMemory *> waiting_;	/* in the order in which it is their turn */
	std::condition_variable changed_;
	std::chrono::steady_clock::time_point moved_;	/* when a client last went on, or a job last began to wait for one */
};

/* What one job has; its members are the budget's, under its mutex. */
class JobMemory
{
public:
	explicit JobMemory(MemoryBudget *budget);
	~JobMemory();
	JobMemory(const JobMemory &) = delete;
	JobMemory &operator=(const JobMemory &) = delete;

	/* Of the job that this thread works for; nullptr: nobody's is counted. */
	static JobMemory *current() { return current_; }

	MemoryBudget *budget() const { return budget_; }

	/* Most that it ever had at a time. */
	uint64_t	peak();

	/* It begins or ends to wait for its client. */
	void		wait_for_client(bool waits);

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

	uint64_t reserve() const { return held_ < 0 ? granted_ : granted_ - std::min(granted_, static_cast<uint64_t>(held_)); }
	bool large() const { return granted_ > 0 || held_ > static_cast<int64_t>(MemoryBudget::SMALL); }

	static inline thread_local JobMemory *current_ = nullptr;

	MemoryBudget *budget_;
	int64_t		held_ = 0;		/* less than 0: it gave back what earlier jobs had taken */
	int64_t		peak_ = 0;
	uint64_t	granted_ = 0;
	uint64_t	wanted_ = 0;	/* when it was refused */
	bool		had_all_ = false;	/* when it was refused: nobody else had any, or would have given it back */
	bool		last_try_ = false;
	bool		waits_for_client_ = false;
};

}  // namespace gpuvm

#endif
