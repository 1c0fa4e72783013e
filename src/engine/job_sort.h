/* job_sort.h: sorts what a job's last program gives on the CPU, with the pool's help, and hands it over. */
#ifndef GPUVM_ENGINE_JOB_SORT_H
#define GPUVM_ENGINE_JOB_SORT_H

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "engine/job_io.h"
#include "engine/request.h"
#include "engine/worker_pool.h"
#include "vm/cpu_join.h"
#include "vm/cpu_sort.h"

namespace gpuvm {

class SetBuild;

/* A column to sort rows by whose order is nobody's concern, or -1. */
int			any_key(const Request &request);

class JobSort final : public PoolTask
{
public:
	static constexpr uint32_t AREA_ROWS = SORT_CHUNK_ROWS;	/* of SortRows::area() */

	static constexpr uint32_t NO_UNIT = UINT32_MAX;

	/*
	 * `set`: where the rows go instead of leaving, or nullptr. Without an order they are the rows of a join's `unit` (engine/abi.h), and
	 * come as they may. Throws std::bad_alloc.
	 */
	JobSort(const Request &request, JobIo *io, WorkerPool *pool, SetBuild *set, uint32_t unit = NO_UNIT);

	/* What finds no memory goes there; not what becomes a set, as that has to fit. */
	void		set_spill(Spill *spill);

	/* -- rows are collected by any threads, each with a SortRows of its own; what they throw is std::bad_alloc */
	std::unique_ptr<SortRows> new_rows() { return std::make_unique<SortRows>(&sort_); }
	void		take(SortRows *rows, uint32_t n);
	void		add(std::unique_ptr<SortRows> rows) { sort_.add(std::move(rows)); }

	/* -- or groups, finished, by the owner, who has helpers */
	void		take_groups(const CpuJob *cpu, const CpuState *groups);

	/* Owner: all was collected, and leaves sorted. */
	void		run();

	void help() noexcept override;

private:
	enum class Work { Groups, Task, Emit };

	void		share(Work work, uint32_t n);
	void		work(bool owner);
	void		emit();
	void		emit_merged();
	uint32_t	units() const;
	uint32_t	rows_of(uint32_t unit) const;
	void		publish(uint32_t unit, int buffer);

	const Request &request_;
	JobIo	   *io_;
	WorkerPool *pool_;
	SetBuild   *set_;
	const uint32_t unit_;
	/* What any thread may ask. */
	struct Stop final : JoinStop
	{
		explicit Stop(const JobIo *of) : io(of) {}
		bool		stopped() override { return io->stopping(); }
		const JobIo *io;
	};
	Stop		stop_;
	CpuSort		sort_;

	/* what is shared, written by the owner while nobody helps */
	Work		work_ = Work::Task;
	uint32_t	n_ = 0;
	std::atomic<uint32_t> next_{0};
	const CpuJob *cpu_ = nullptr;
	const CpuState *groups_ = nullptr;

	/* units that are filled, but not the first that is not published: their buffers */
	std::mutex	filled_mutex_;
	std::map<uint32_t, int> filled_;
	uint32_t	next_unit_ = 0;
};

}  // namespace gpuvm

#endif
