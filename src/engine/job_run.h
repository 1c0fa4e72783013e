/* job_run.h: runs one job on the CPU virtual machine. */
#ifndef GPUVM_ENGINE_JOB_RUN_H
#define GPUVM_ENGINE_JOB_RUN_H

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/job_io.h"
#include "engine/job_join.h"
#include "engine/job_set.h"
#include "engine/job_sort.h"
#include "engine/job_spill.h"
#include "engine/request.h"
#include "engine/worker_pool.h"
#include "vm/cpu_join.h"

namespace gpuvm {

/* A job's tablets as its zone maps leave them, for every engine. */
struct JobWork
{
	std::vector<DeviceTabletRef> tablets;
	std::vector<uint64_t> bytes_of;	/* column data and null bits to read, per tablet; 0 if it is skipped */
	uint64_t	bytes = 0;
	uint64_t	rows = 0;
	uint32_t	skipped = 0;
	/* Joins on devices: the cursors behind the first. */
	std::vector<std::vector<DeviceTabletRef>> other_tablets;
	std::vector<DeviceCursor> others;
};

/* The tablets that can matter, and what it takes to read them. */
JobWork		plan_work(const CpuJob &cpu, const Request &request);

/* The session's thread and as many of the pool's as the request admits. */
uint32_t	most_threads(const Request &request, const WorkerPool *pool);

class JobRun final : public PoolTask
{
public:
	/* `set`: what the request's last program gives becomes one; or nullptr. */
	JobRun(const Request &request, const JobWork &work, const CpuJob *cpu, Job *job, JobIo *io, WorkerPool *pool, SetBuild *set)
		: request_(request), work_(work), cpu_(cpu), job_(job), io_(io), pool_(pool), set_(request.stage == nullptr ? set : nullptr),
		  spill_(job, io, most_threads(request, pool)) {}
	/* A join, built. */
	JobRun(const Request &request, const JobWork &work, JoinBuild *build, Job *job, JobIo *io, WorkerPool *pool, SetBuild *set)
		: JobRun(request, work, static_cast<const CpuJob *>(build->join()), job, io, pool, set) { build_ = build; join_ = build->join(); }

	/* Runs the job to its end and fills the Job's outcome, as far as the scheduling knows it. Throws std::bad_alloc. */
	void		run();

	/* Of a program whose groups a stage reads: these, finished; nullptr if the job ended before. */
	std::unique_ptr<CpuState> take_groups() { return finished_ ? std::move(owner_state_) : nullptr; }

	void help() noexcept override;

private:
	/* Rows [first, last) of a tablet: a unit of a row program, a morsel of a grouped one. */
	struct Range
	{
		uint32_t	tablet;
		uint32_t	first;
		uint32_t	last;
		uint32_t	rows;		/* those not masked: at least one */
		uint32_t	unit;
	};

	enum class Leave { NoWork, NoBuffer };

	/* A join's unit that is being run, with the state that it is in. */
	struct JoinUnit
	{
		std::unique_ptr<CpuState> state;
		const Range *range = nullptr;
		uint32_t	part = 0;	/* the next */
	};

	/* What a join asks within a range. */
	struct Stop final : JoinStop
	{
		Stop(JobRun *run, bool owner) : run(run), owner(owner) {}
		bool stopped() override { return run->stopped(owner); }

		JobRun	   *run;
		bool		owner;
	};

	void		split(uint32_t step);
	int			helpers_wanted() const;
	bool		stopped(bool owner) { return owner ? io_->stopped() : io_->stopping(); }
	const Range *next_range();
	void		count_range(const Range &range);

	bool		next_pass();
	void		run_rows();
	Leave		work_rows(CpuState *state, bool owner);
	Leave		work_join_rows(bool owner);
	bool		next_join_unit(JoinUnit *unit);
	void		end_join_unit(JoinUnit *unit);
	void		run_rest();
	template <typename Collector> void run_collected(Collector *to);
	template <typename Collector> void collect_rows(Collector *to, bool owner);
	template <typename Collector, typename Rows> void collect_unit(Collector *to, CpuState *state, Rows *rows, bool owner);
	bool		collects() const { return (sort_ || set_ != nullptr) && !request_.program->grouped; }
	uint32_t	group_step() const;
	uint32_t	last_unit() const;
	std::unique_ptr<CpuState> new_groups();
	std::unique_ptr<CpuState> helper_groups();
	void		run_groups();
	void		work_groups(CpuState *state, bool owner);
	void		work_parts(bool owner);
	void		emit_groups(const CpuState *state);
	void		emit_group_count(const CpuState *state);

	const Request &request_;
	const JobWork &work_;
	const CpuJob *cpu_;
	JoinBuild  *build_ = nullptr;	/* of a join */
	const CpuJoin *join_ = nullptr;	/* the same as cpu_, if it is a join */
	bool		first_pass_ = true;
	Job		   *job_;
	JobIo	   *io_;
	WorkerPool *pool_;
	SetBuild   *set_;			/* what the program gives goes there, if not nullptr */
	JobSpill	spill_;			/* of groups, and of what is sorted */
	bool		holds_ = false;	/* rows of passes do not leave before all are made: until then they can be made by other means */
	std::atomic<uint64_t> held_{0};	/* so many of them, */
	std::atomic<bool> enough_{false};	/* which is all that are wanted */
	std::unique_ptr<JobSort> sort_;	/* or none: what the program gives leaves as it comes */
	std::vector<Range> ranges_;
	std::unique_ptr<std::atomic<bool>[]> touched_;	/* per tablet */
	std::atomic<size_t> next_{0};
	std::atomic<uint64_t> rows_in_{0};
	std::atomic<uint64_t> bytes_read_{0};
	std::atomic<uint32_t> scanned_{0};
	std::atomic<uint32_t> threads_used_{1};
	uint64_t	rows_to_run_ = 0;

	/* grouped full joins: what is left when all ranges are done; written by the owner while nobody helps */
	uint32_t	rest_parts_ = 0;
	std::atomic<uint32_t> next_rest_{0};

	std::mutex	states_mutex_;
	std::vector<std::unique_ptr<CpuState>> helper_states_;
	std::vector<JoinUnit> parked_;	/* joins: units whose thread found no free buffer */
	std::atomic<uint64_t> pairs_{0};
	std::atomic<uint32_t> errors_{0};	/* joins that end in rows */

	/*
	 * The merge, written by the owner while nobody helps. Helpers use every state,
	 * so that the owner's, too, has to outlive what run_groups() may throw.
	 */
	std::unique_ptr<CpuState> owner_state_;
	std::vector<CpuState *> states_;
	uint32_t	nparts_ = 0;
	std::atomic<uint32_t> next_part_{0};
	bool		finished_ = false;
};

}  // namespace gpuvm

#endif
