/* worker_pool.cc: the engine's pool threads. */
#include "engine/worker_pool.h"

#include <algorithm>

namespace gpuvm {

WorkerPool::WorkerPool(int nthreads, Processors *processors) : processors_(processors)
{
	for (int i = 0; i < nthreads; i++)
		threads_.emplace_back(&WorkerPool::run, this);
}

WorkerPool::~WorkerPool()
{
	{
		std::lock_guard<std::mutex> lock(mutex_);

		stop_ = true;
	}
	work_.notify_all();
	for (std::thread &thread : threads_)
		thread.join();
}

void
WorkerPool::invite(PoolTask *task, int helpers)
{
	helpers = std::min(helpers, size());
	if (helpers <= 0)
		return;
	{
		std::lock_guard<std::mutex> lock(mutex_);

		if (task->invited_ == 0)
			tasks_.push_back(task);
		task->invited_ = helpers;
		task->whom_ = works_for();
		task->time_ = CountsFor::current();
		task->memory_ = JobMemory::current();
		task->share_ = current_share;
	}
	if (helpers == 1)
		work_.notify_one();
	else
		work_.notify_all();
}

void
WorkerPool::dismiss(PoolTask *task)
{
	std::unique_lock<std::mutex> lock(mutex_);

	if (task->invited_ > 0)
	{
		task->invited_ = 0;
		tasks_.erase(std::find(tasks_.begin(), tasks_.end(), task));
	}
	left_.wait(lock, [task] { return task->helping_ == 0; });
}

/* Under the lock, of tasks that there are. */
std::deque<PoolTask *>::iterator
WorkerPool::next_task()
{
	auto		next = tasks_.begin();

	for (auto task = next; processors_ != nullptr && task != tasks_.end(); ++task)
		if ((*task)->share_ != nullptr && (*next)->share_ != nullptr && processors_->behind((*task)->share_, (*next)->share_))
			next = task;
	return next;
}

void
WorkerPool::run()
{
	CrashStack	stack;
	std::unique_lock<std::mutex> lock(mutex_);

	for (;;)
	{
		work_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
		if (stop_)
			return;

		const auto	next = next_task();
		PoolTask   *task = *next;

		tasks_.erase(next);
		if (--task->invited_ > 0)
			tasks_.push_back(task);
		task->helping_++;

		const WorksFor whom = task->whom_;
		ProcessorTime *const time = task->time_;
		JobMemory *const memory = task->memory_;
		SessionShare *const share = task->share_;
		const auto	began = std::chrono::steady_clock::now();

		lock.unlock();
		{
			HelpsProgram helps(whom);
			CountsFor	counts(time);
			JobMemory::Use uses(memory);

			task->help();
		}
		if (processors_ != nullptr && share != nullptr)
			processors_->helped(share, std::chrono::steady_clock::now() - began);
		lock.lock();
		if (--task->helping_ == 0)
			left_.notify_all();
	}
}

}  // namespace gpuvm
