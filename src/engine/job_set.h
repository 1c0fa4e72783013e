/* job_set.h: makes a set of what a program gives on the CPU, with the pool's help. */
#ifndef GPUVM_ENGINE_JOB_SET_H
#define GPUVM_ENGINE_JOB_SET_H

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/job_io.h"
#include "engine/request.h"
#include "engine/set.h"
#include "engine/worker_pool.h"
#include "vm/cpu_sort.h"

namespace gpuvm {

class SetBuild;

/* Rows that one thread has, in tablets of its own. */
class SetRows
{
public:
	explicit SetRows(SetBuild *build);

	/* Where the next rows are to be written, laid out by result_layout for SetBuild::AREA_ROWS rows. */
	char	   *area() { return area_.as<char>(); }

private:
	friend class SetBuild;

	struct Part
	{
		ResultSet::Block block;
		std::unique_ptr<SetTablet> tablet;
	};

	Pages		area_;
	std::vector<Part> parts_;
};

class SetBuild final : public PoolTask
{
public:
	static constexpr uint32_t AREA_ROWS = 8192;

	/* `account`: what the set counts as; nullptr: a stage's, which nobody counts. */
	SetBuild(const Request &request, const SetShape &shape, SetAccount *account, JobIo *io, WorkerPool *pool);

	/* -- rows are collected by any threads, each with a SetRows of its own; what they throw is std::bad_alloc */
	std::unique_ptr<SetRows> new_rows() { return std::make_unique<SetRows>(this); }
	void		take(SetRows *rows, uint32_t n);
	void		add(std::unique_ptr<SetRows> rows);

	/* -- or groups, finished, or sorted rows: by the owner, who has helpers */
	void		take_groups(const CpuJob *cpu, const CpuState *groups);
	void		take_sorted(const CpuSort *sort);

	/* Owner, nobody being inside: all is there. */
	std::unique_ptr<ResultSet> finish();
	/* Had the column a value that it cannot hold? */
	bool		overflows(uint32_t column) const { return overflows_[column].load(std::memory_order_relaxed); }

	void help() noexcept override;

private:
	friend class SetRows;

	SetShare	charge(uint64_t bytes);
	void		take_known(uint64_t nrows);
	void		make(uint32_t i, char *area);
	void		work(bool owner);
	void		close(SetTablet *tablet);

	const Request &request_;
	const SetShape &shape_;
	SetAccount *account_;
	JobIo	   *io_;
	WorkerPool *pool_;
	const uint64_t area_bytes_;
	std::atomic<bool> overflows_[PROGRAM_MAX_COLUMNS] = {};
	std::mutex	mutex_;
	std::unique_ptr<ResultSet> set_;

	/* rows whose number is known, tablet i having those from i * SET_TABLET_ROWS on; written by the owner alone */
	const CpuJob *cpu_ = nullptr;
	const CpuState *groups_ = nullptr;
	const CpuSort *sort_ = nullptr;
	uint64_t	nrows_ = 0;
	uint64_t	stride_ = 0;
	ResultSet::Block block_;
	std::vector<const TabletHeader *> tablets_;
	std::atomic<uint32_t> next_{0};
};

}  // namespace gpuvm

#endif
