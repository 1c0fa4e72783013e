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
#include "engine/processors.h"
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
	SessionShare *share_ = nullptr;
};

class WorkerPool
{
public:
	/* With processors, helpers go to the role that has had least. */
	explicit WorkerPool(int nthreads, Processors *processors = nullptr);
	~WorkerPool();

	int size() const { return static_cast<int>(threads_.size()); }

	/* Whose jobs this thread runs from now on. */
	static void works_for_session(SessionShare *share) { current_share = share; }

	/* Asks for up to `helpers` more threads. */
	void invite(PoolTask *task, int helpers);

	/* Withdraws invitations and waits until nobody helps. */
	void dismiss(PoolTask *task);

private:
	void		run();
	std::deque<PoolTask *>::iterator next_task();

	static inline thread_local SessionShare *current_share = nullptr;

	Processors *processors_;
	std::mutex	mutex_;
	std::condition_variable work_;
	std::condition_variable left_;
	std::deque<PoolTask *> tasks_;	/* those with invitations; a role's are served in turn */
	bool		stop_ = false;
	std::vector<std::thread> threads_;
};

}  // namespace gpuvm

#endif
