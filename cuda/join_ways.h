/*
 * join_ways.h: how joins are run for which memory was short: reduced, and in several passes.
 *
 * A join is tried as it is first, which is the fastest if there is room, and tells by its refusal that there is none. That of the same program
 * soon after it is run as it was in the end. Later there may be room again.
 */
#ifndef GPUVM_CUDA_JOIN_WAYS_H
#define GPUVM_CUDA_JOIN_WAYS_H

#include <chrono>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace gpuvm {
namespace cuda {

struct JoinWay
{
	bool		reduces = false;	/* inner sides are reduced (join_reduce.cc) */
	uint32_t	passes = 1;		/* at least: a power of two up to KEY_PARTS */
};

class JoinWays
{
public:
	/* `program`: hash_program(). */
	JoinWay		of(uint64_t program)
	{
		const std::lock_guard<std::mutex> lock(mutex_);
		const auto	found = ways_.find(program);

		return found != ways_.end() && Clock::now() < found->second.until ? found->second.way : JoinWay();
	}

	void		remember(uint64_t program, JoinWay way)
	{
		const std::lock_guard<std::mutex> lock(mutex_);

		if (ways_.size() >= MOST)
			ways_.clear();
		ways_[program] = Known{way, Clock::now() + KNOWN_FOR};
	}

	void		forget(uint64_t program)
	{
		const std::lock_guard<std::mutex> lock(mutex_);

		ways_.erase(program);
	}

private:
	using Clock = std::chrono::steady_clock;
	struct Known
	{
		JoinWay		way;
		Clock::time_point until;
	};

	static constexpr std::chrono::seconds KNOWN_FOR{10};
	static constexpr size_t MOST = 1024;

	std::mutex	mutex_;
	std::unordered_map<uint64_t, Known> ways_;
};

}  // namespace cuda
}  // namespace gpuvm

#endif
