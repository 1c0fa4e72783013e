/* job_join.h: builds the inner sides of a join, with the pool's help. */
#ifndef GPUVM_ENGINE_JOB_JOIN_H
#define GPUVM_ENGINE_JOB_JOIN_H

#include <atomic>
#include <memory>
#include <vector>

#include "engine/job_io.h"
#include "engine/request.h"
#include "engine/worker_pool.h"
#include "vm/cpu_join.h"

namespace gpuvm {

/* May its inner sides be built and met in passes? */
bool		may_pass(const Request &request);

class JoinBuild final : public PoolTask
{
public:
	JoinBuild(const Request &request, Job *job, JobIo *io, WorkerPool *pool, JoinIndexes *indexes);

	/* False: the job has its end, as the Job and `io` say. Throws std::bad_alloc. */
	bool		run();

	/* Builds the next pass's; false: there is none, or the job has its end. Throws std::bad_alloc. */
	bool		next_pass();

	const CpuJoin *join() const { return join_.get(); }
	/* Of tablets. */
	uint64_t	bytes_read() const { return join_->figures().build_bytes_read; }

	void help() noexcept override;

private:
	void		work(bool owner);
	bool		build();

	const Request &request_;
	Job		   *job_;
	JobIo	   *io_;
	WorkerPool *pool_;
	std::vector<JoinCursor> cursors_;
	std::unique_ptr<CpuJoin> join_;
	std::atomic<uint32_t> next_{0};
	uint32_t	ntasks_ = 0;	/* of the phase, written by the owner while nobody helps */
};

}  // namespace gpuvm

#endif
