/*
 * worker_pool.h: the engine's threads beside the sessions' own.
 *
 * A session's thread always works on its own job, so a small job meets no other
 * thread. For a large one it invites helpers: idle pool threads call help(),
 * which returns when there is nothing left for it to do. A helper never waits
 * for a backend.
 */
#ifndef GPUVM_ENGINE_WORKER_POOL_H
#define GPUVM_ENGINE_WORKER_POOL_H

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/blame.h"
#include "engine/processor_time.h"
#include "vm/memory_budget.h"

namespace gpuvm {

class PoolTask
{
public:
	virtual ~PoolTask() = default;
	virtual void help() noexcept = 0;

private:
	friend class WorkerPool;
	int			invited_ = 0;		/* under the pool's mutex */
	int			helping_ = 0;
	WorksFor	whom_;
	ProcessorTime *time_ = nullptr;
	JobMemory  *memory_ = nullptr;
};

class WorkerPool
{
public:
	explicit WorkerPool(int nthreads);
	~WorkerPool();

	int size() const { return static_cast<int>(threads_.size()); }

	/* Asks for up to `helpers` more threads. */
	void invite(PoolTask *task, int helpers);

	/* Withdraws invitations and waits until nobody helps. */
	void dismiss(PoolTask *task);

private:
	void		run();

	std::mutex	mutex_;
	std::condition_variable work_;
	std::condition_variable left_;
	std::deque<PoolTask *> tasks_;	/* those with invitations, served in turn */
	bool		stop_ = false;
	std::vector<std::thread> threads_;
};

}  // namespace gpuvm

#endif
