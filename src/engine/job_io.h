/*
 * job_io.h: a running job's conversation with its backend, whichever engine runs
 * it: result buffers, reasons to stop, waits.
 *
 * What only the owner, the session's thread, may call is said so; the rest is
 * for helpers, too. A device's job has the owner alone.
 */
#ifndef GPUVM_ENGINE_JOB_IO_H
#define GPUVM_ENGINE_JOB_IO_H

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "engine/device_abi.h"
#include "engine/doorbell.h"
#include "engine/processors.h"
#include "engine/request.h"

namespace gpuvm {

/* Why a job fails that finds no memory. */
constexpr char OUT_OF_MEMORY[] = "out of memory";

class JobIo final : public DeviceJobIo
{
public:
	JobIo(const Request &request, Job *job, Doorbell *doorbell, Processors *processors, SessionShare *share)
		: request_(request), job_(job), doorbell_(doorbell), processors_(processors), share_(share), owner_(std::this_thread::get_id()) {}

	int			claim_buffer() override;
	void		publish_part(int buffer, uint32_t unit, uint32_t part, bool last, uint32_t nrows, uint32_t errors) override;
	void		unclaim(int buffer) override;
	/* Of a job that is begun again, with nobody inside: buffers that an exception left claimed. */
	void		unclaim_all();

	/* Owner only. From now on processors compute the job, and stopped() waits where others are to go first. */
	void		compute() { turn_.emplace(processors_, share_); }

	/* Owner only. Meets the end of the socket, by a system call at most once a millisecond. */
	bool		stopped() override;

	/* Owner only. Suspends the job until the backend has taken rows; false when it is to end. */
	bool		wait_for_buffer() override;
	/* Owner only. A buffer, however long it takes; -1 when the job is to end. */
	int			claim_or_wait();

	/* Once rows were handed over, wait_for_buffer() waits so long and then ends the work: yielded(). 0: for ever. */
	void		set_patience(std::chrono::milliseconds patience) { patience_ = patience; }
	bool		yielded() const { return yielded_; }

	/* A reason to stop that is known already. */
	bool stopping() const
	{
		return stop_.load(std::memory_order_relaxed) || job_->cancel.load(std::memory_order_relaxed) != 0;
	}

	/* Has the backend make the job's temporary file so long; false when the job is to end. One thread at a time. */
	bool		grow_spill(uint64_t bytes);

	/* Ends the work. The first failure counts; `why` is copied. */
	void		fail(const char *why);
	/* So, where an allocation failed: what is kept for other jobs is to make room. */
	void		fail_memory();
	bool		short_of_memory() const { return short_of_memory_.load(); }
	/* Ends the work without saying more: nobody is to begin anything. */
	void		stop() { stop_.store(true); }

	int			free_buffers() const;
	bool		published() const { return published_.load(); }
	uint64_t	rows_out() const { return rows_out_.load(); }

	/* Owner only, with no helper inside: why the job failed, or nullptr. */
	const char *failure() const { return failed_.load() ? failure_ : nullptr; }
	std::chrono::nanoseconds waited() const { return waited_; }

private:
	void		wait_for_client(bool waits);

	const Request &request_;
	Job		   *job_;
	Doorbell   *doorbell_;
	Processors *processors_;
	SessionShare *share_;
	const std::thread::id owner_;
	std::atomic<bool> stop_{false};
	std::atomic<bool> failed_{false};
	std::atomic<bool> short_of_memory_{false};
	char		failure_[sizeof(Job::failure)];
	std::atomic<bool> published_{false};
	std::atomic<uint64_t> rows_out_{0};
	std::chrono::steady_clock::time_point next_look_;
	std::chrono::nanoseconds waited_{0};
	std::chrono::milliseconds patience_{0};
	bool		yielded_ = false;
	std::optional<Turn> turn_;
};

}  // namespace gpuvm

#endif
