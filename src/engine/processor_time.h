/* processor_time.h: what a job takes of all processors, by its session's thread and by those that help. */
#ifndef GPUVM_ENGINE_PROCESSOR_TIME_H
#define GPUVM_ENGINE_PROCESSOR_TIME_H

#include <time.h>

#include <atomic>
#include <cstdint>

namespace gpuvm {

struct ProcessorTime
{
	std::atomic<uint64_t> ns{0};
};

/* This thread's time counts there as long as this lives; nullptr: nowhere, and the clock is not read. */
class CountsFor
{
public:
	explicit CountsFor(ProcessorTime *to) : to_(to), before_(current_), since_(to != nullptr ? used() : 0) { current_ = to; }
	~CountsFor()
	{
		if (to_ != nullptr)
			to_->ns.fetch_add(used() - since_);
		current_ = before_;
	}
	CountsFor(const CountsFor &) = delete;
	CountsFor &operator=(const CountsFor &) = delete;

	/* Where this thread's time counts, for those that are to help it. */
	static ProcessorTime *current() { return current_; }

private:
	static uint64_t used()
	{
		struct timespec now;

		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
		return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
	}

	static inline thread_local ProcessorTime *current_ = nullptr;

	ProcessorTime *to_;
	ProcessorTime *before_;
	uint64_t	since_;
};

}  // namespace gpuvm

#endif
