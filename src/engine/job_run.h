/* job_run.h: runs one job on the CPU virtual machine. */
#ifndef GPUVM_ENGINE_JOB_RUN_H
#define GPUVM_ENGINE_JOB_RUN_H

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/doorbell.h"
#include "engine/request.h"
#include "engine/worker_pool.h"
#include "vm/cpu_vm.h"

namespace gpuvm {

using MakeCpuJob = std::unique_ptr<CpuJob> (*)(const Program *program, const ParamValue *params, uint32_t nparams,
											   const ColumnSummary *columns, uint32_t ncols, uint64_t total_rows);

class JobRun final : public PoolTask
{
public:
	JobRun(const Request &request, Job *job, Doorbell *doorbell, WorkerPool *pool)
		: request_(request), job_(job), doorbell_(doorbell), pool_(pool) {}

	/*
	 * Runs the job to its end and fills the Job's outcome; the caller stores Done
	 * or Failed. nullptr, or why it failed. Throws std::bad_alloc.
	 */
	const char *run(MakeCpuJob make_cpu_job);

	void help() noexcept override;

private:
	/* Rows [first, last) of a tablet: a unit of a row program, a morsel of a grouped one. */
	struct Range
	{
		uint32_t	tablet;
		uint32_t	first;
		uint32_t	last;
		uint32_t	unit;
	};

	enum class Leave { NoWork, NoBuffer };

	void		split(uint32_t step);
	uint32_t	most_threads() const;
	int			helpers_wanted() const;
	bool		stopped() const;
	bool		backend_gone();
	void		fail(const char *why);
	const Range *next_range();
	void		count_range(const Range &range);
	int			claim_buffer();
	void		publish(int buffer, uint32_t unit, uint32_t nrows, uint32_t errors);
	bool		wait_for_buffer();
	int			free_buffers() const;

	void		run_rows();
	Leave		work_rows(CpuState *state, bool owner);
	void		run_groups();
	void		work_groups(CpuState *state, bool owner);
	void		work_parts(bool owner);
	void		emit_groups(const CpuState *state);

	const Request &request_;
	Job		   *job_;
	Doorbell   *doorbell_;
	WorkerPool *pool_;
	std::unique_ptr<CpuJob> cpu_;
	std::vector<Range> ranges_;
	std::vector<uint64_t> bytes_of_;	/* per tablet */
	std::unique_ptr<std::atomic<bool>[]> touched_;	/* per tablet */
	std::atomic<size_t> next_{0};
	std::atomic<bool> stop_{false};
	std::atomic<const char *> failure_{nullptr};
	std::atomic<uint64_t> rows_in_{0};
	std::atomic<uint64_t> rows_out_{0};
	std::atomic<uint64_t> bytes_read_{0};
	std::atomic<uint32_t> scanned_{0};
	std::atomic<uint32_t> threads_used_{1};
	uint32_t	skipped_ = 0;
	uint64_t	rows_to_run_ = 0;
	std::chrono::steady_clock::time_point next_look_;	/* owner only */
	std::chrono::nanoseconds waited_{0};

	std::mutex	states_mutex_;
	std::vector<std::unique_ptr<CpuState>> helper_states_;

	/*
	 * The merge, written by the owner while nobody helps. Helpers use every state,
	 * so that the owner's, too, has to outlive what run_groups() may throw.
	 */
	std::unique_ptr<CpuState> owner_state_;
	std::vector<CpuState *> states_;
	uint32_t	nparts_ = 0;
	std::atomic<uint32_t> next_part_{0};
};

}  // namespace gpuvm

#endif
