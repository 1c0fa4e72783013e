/*
 * cpu_stage.h: the groups of one program as a table that another one reads: stages
 * (engine/abi.h). Its tablets lie in memory of its own, values as wide as PostgreSQL
 * has them, with the zone maps that any tablet has.
 */
#ifndef GPUVM_VM_CPU_STAGE_H
#define GPUVM_VM_CPU_STAGE_H

#include <atomic>
#include <vector>

#include "vm/cpu_job.h"

namespace gpuvm {

class StageTable
{
public:
	/* Of the groups that `job`, which runs `program`, has in `state` after finish(). Throws std::bad_alloc. */
	StageTable(const Program *program, const CpuJob *job, const CpuState *state);

	uint64_t nrows() const { return nrows_; }
	uint32_t ntablets() const { return ntablets_; }
	const TabletHeader *tablet(uint32_t i) const { return at(i); }

	/* Each once, by any thread, in any order. */
	void		make(uint32_t i);

	/* All are made: has the column a sum that is no I64? */
	bool		overflows(int column) const { return overflows_[column].load(); }

	/* All are made: the columns' summaries. The groups are needed no more. */
	std::vector<ColumnSummary> summaries() const;

private:
	TabletHeader *at(uint32_t i) const { return reinterpret_cast<TabletHeader *>(memory_.as<char>() + i * stride_); }

	const CpuJob *job_;
	const CpuState *state_;
	std::vector<Type> results_;	/* what groups are emitted as, */
	std::vector<Type> types_;	/* and what that is as columns */
	std::atomic<bool> overflows_[PROGRAM_MAX_COLUMNS] = {};
	uint64_t	nrows_;
	uint32_t	ntablets_;
	uint64_t	stride_;		/* from one tablet to the next */
	Pages		memory_;
};

}  // namespace gpuvm

#endif
