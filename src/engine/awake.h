/*
 * awake.h: how many sessions have a job, or wait awake for one (EngineWords.awake). Where these are more than half of the
 * processors nobody waits awake for long.
 */
#ifndef GPUVM_ENGINE_AWAKE_H
#define GPUVM_ENGINE_AWAKE_H

#include "engine/abi.h"

namespace gpuvm {

/* Of one session: its thread alone comes here. */
class Awake
{
public:
	explicit Awake(EngineWords *words) : words_(words)
	{
		current_ = this;
		enter();
	}
	~Awake()
	{
		leave();
		current_ = nullptr;
	}
	Awake(const Awake &) = delete;
	Awake &operator=(const Awake &) = delete;

	void enter()
	{
		counted_ = true;
		words_->awake.fetch_add(1, std::memory_order_relaxed);
	}

	void leave()
	{
		if (counted_)
			words_->awake.fetch_sub(1, std::memory_order_relaxed);
		counted_ = false;
	}

	bool too_many() const
	{
		return words_->awake.load(std::memory_order_relaxed) > words_->most_awake.load(std::memory_order_relaxed);
	}

	/* The session of this thread sleeps within its job, as long as this lives: for its client, say. */
	class Sleeps
	{
	public:
		Sleeps()
		{
			if (current_ != nullptr)
				current_->leave();
		}
		~Sleeps()
		{
			if (current_ != nullptr)
				current_->enter();
		}
		Sleeps(const Sleeps &) = delete;
		Sleeps &operator=(const Sleeps &) = delete;
	};

private:
	static inline thread_local Awake *current_ = nullptr;

	EngineWords *words_;
	bool		counted_ = false;
};

}  // namespace gpuvm

#endif
