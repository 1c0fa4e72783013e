/*
 * cpu_vm.h: the CPU virtual machine. No threads, no I/O: the engine's scheduler
 * owns both and calls this with tablets and areas.
 *
 * CpuJob is a program bound to its parameters and to the summaries of the job's
 * columns, and lowered (fused, widths and overflow checks chosen). It is
 * immutable after construction and shared by all workers. CpuState is what one
 * worker accumulates: scratch vectors and, for grouped programs, a partial
 * aggregation. Merging states in any order gives the same bits.
 */
#ifndef GPUVM_VM_CPU_VM_H
#define GPUVM_VM_CPU_VM_H

#include <cstdint>
#include <memory>

#include "tablet/format.h"
#include "vm/code_map.h"
#include "vm/masked_rows.h"
#include "vm/program.h"
#include "vm/text_match.h"

namespace gpuvm {

constexpr uint32_t CPU_VECTOR_ROWS = 1024;

class Spill;
class TextKeys;
struct JoinStop;

/* What many groups are; tests make it less. */
struct CpuGroupLimits
{
	uint64_t	dense_slots = 65536;	/* of tables with a row for every slot of the keys */
	int			table_bits = 18;	/* buckets of a worker's table at most, as a power of two; 11 is the least */
	uint64_t	parts_from = 32768;	/* fewer of all workers are merged as they are */
	size_t		united_from = size_t(128) << 20;	/* bytes of a worker's records that become groups before the end */
	uint64_t	blind_rows = uint64_t(1) << 18;	/* after a full table whose groups had few, so many have none */
	size_t		spilled_from = size_t(4) << 20;	/* bytes of a worker's records and groups in parts, for which a file is worth while */
};

extern CpuGroupLimits cpu_group_limits;

class CpuState
{
public:
	virtual ~CpuState() = default;
};

struct CpuUnitOutcome
{
	uint32_t	rows;			/* emitted into the area */
	uint32_t	errors;			/* ErrorBits; the area is then unspecified */
};

class CpuJob
{
public:
	/*
	 * `program` has passed verify_program against `columns` and outlives the job.
	 * `total_rows` sizes group tables and accumulators: no less than all runs take,
	 * masked rows included. `maps` and `patterns`, those of the program, and
	 * `text_keys` (make_text_keys) outlive the job, too. Throws std::bad_alloc.
	 */
	static std::unique_ptr<CpuJob> create(const Program *program, const ParamValue *params, uint32_t nparams,
										  const ColumnSummary *columns, uint32_t ncols, uint64_t total_rows,
										  const CodeMap *maps = nullptr, const TextPattern *const *patterns = nullptr,
										  TextKeys *text_keys = nullptr);
	virtual ~CpuJob() = default;

	/* Do the tablet's zone maps prove that no row of it can reach a sink, and that none can raise before? */
	virtual bool can_skip(const TabletHeader *tablet) const = 0;

	/* Bytes of column data and null bitmaps that the program reads from the tablet. */
	virtual uint64_t bytes_of(const TabletHeader *tablet) const = 0;

	virtual std::unique_ptr<CpuState> new_state() const = 0;

	/*
	 * Row programs: runs rows [first, last) (first a multiple of
	 * CPU_VECTOR_ROWS) but for the masked ones and writes the result rows, in row
	 * order, to `area`, laid out by result_layout for `capacity` >= last - first
	 * rows. The ranges are the tablet's own.
	 */
	virtual CpuUnitOutcome run_rows(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
									char *area, uint32_t capacity,
									const MaskedRows *masked = nullptr, uint32_t nmasked = 0) const = 0;

	/* Grouped programs: takes rows [first, last) but for the masked ones into the state. */
	virtual void run_groups(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
							const MaskedRows *masked = nullptr, uint32_t nmasked = 0) const = 0;

	/* Where a new state's groups go for which there is no memory; it outlives the state. nullptr: nowhere. */
	virtual void set_spill(CpuState *, Spill *) const {}

	/* Who may think better of it while run_groups() is long; nullptr: nobody. Joins ask him for rows, too. */
	virtual void set_stop(CpuState *, JoinStop *) const {}

	/* into += from; `from` is spent. */
	virtual void merge(CpuState *into, CpuState *from) const = 0;

	/*
	 * The same for many groups: states[0] += the others, which are spent. Returns
	 * how many parts are left to merge, 0 if none. Each number below that has to
	 * go through merge_part() once, in any order and by any thread; the others
	 * live until finish(). These, merge() and finish() may throw std::bad_alloc.
	 */
	virtual uint32_t begin_merge(CpuState *const *states, uint32_t n) const
	{
		for (uint32_t i = 1; i < n; i++)
			merge(states[0], states[i]);
		return 0;
	}
	virtual void merge_part(CpuState *const *, uint32_t, uint32_t) const {}

	/* Ends the accumulation; returns the ErrorBits of all rows taken. */
	virtual uint32_t finish(CpuState *state) const = 0;

	/* After finish: how many groups there are, and rows [from, from + n) of them into an area; returns n <= capacity. */
	virtual uint64_t ngroups(const CpuState *state) const = 0;
	virtual uint32_t emit_groups(const CpuState *state, uint64_t from, char *area, uint32_t capacity) const = 0;
};

}  // namespace gpuvm

#endif
