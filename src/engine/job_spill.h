/*
 * job_spill.h: the temporary file of a job (vm/spill.h). It is PostgreSQL's: the backend creates it when the job first asks, and
 * makes it longer (Job.spill_wanted), so that temp_tablespaces, temp_file_limit and the statistics hold, and removes it.
 */
#ifndef GPUVM_ENGINE_JOB_SPILL_H
#define GPUVM_ENGINE_JOB_SPILL_H

#include <atomic>
#include <mutex>

#include "engine/job_io.h"
#include "vm/spill.h"

namespace gpuvm {

class JobSpill final : public Spill
{
public:
	/* Of a job that so many threads work for. */
	JobSpill(Job *job, JobIo *io, uint32_t threads) : job_(job), io_(io), threads_(threads), bytes_(job->spilled) {}
	~JobSpill();
	JobSpill(const JobSpill &) = delete;
	JobSpill &operator=(const JobSpill &) = delete;

	bool		wanted(uint64_t bytes) override;
	uint64_t	take(uint64_t bytes) override;
	void		write(uint64_t at, iovec *pieces, size_t npieces) override;
	void		read(uint64_t at, char *to, size_t bytes) override;

private:
	[[noreturn]] void fail(const char *what, int error);
	void		open_file();

	Job		   *job_;
	JobIo	   *io_;
	const uint32_t threads_;
	std::atomic<uint64_t> bytes_;	/* that have been taken, by the job's programs before, too */
	std::mutex	mutex_;			/* whoever asks for more: */
	uint64_t	room_ = 0;		/* what there is */
	std::atomic<int> fd_{-1};	/* open once take() has returned, so nobody else asks for a lock */
};

}  // namespace gpuvm

#endif
