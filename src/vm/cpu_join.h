/*
 * cpu_join.h: join programs on the CPU virtual machine. As in cpu_vm.h, no
 * threads and no I/O: the scheduler brings both.
 *
 * A join is first built, then it is a CpuJob over the rows of cursor 0 like any
 * other. Building is a sequence of phases, each of a number of tasks that any
 * thread may run in any order; between two phases nobody may be inside.
 */
#ifndef GPUVM_VM_CPU_JOIN_H
#define GPUVM_VM_CPU_JOIN_H

#include <string>
#include <vector>

#include "vm/cpu_vm.h"

namespace gpuvm {

struct JoinTablet
{
	const TabletHeader *tablet;
	const MaskedRows *masked;	/* its own */
	uint32_t	nmasked;
};

/* The rows of a cursor. */
struct JoinCursor
{
	const ColumnSummary *columns;
	uint32_t	ncols;
	std::vector<JoinTablet> tablets;
	uint64_t	total_rows;		/* masked ones included */
};

/* Is the work to end? Asked every few microseconds. */
struct JoinStop
{
	virtual ~JoinStop() = default;
	virtual bool stopped() = 0;
};

/*
 * An inner side that later joins may use: the rows of whole tablets, with the table of their keys (join_index.h). It does
 * not change, and joins that use it share it.
 */
struct JoinIndex
{
	virtual ~JoinIndex() = default;
	virtual uint64_t memory() const = 0;	/* bytes that it holds */
};

/* Where indexes are kept. Called by many joins at once. */
class JoinIndexes
{
public:
	virtual ~JoinIndexes() = default;

	/* nullptr: there is none. Whatever has the key is what was kept with it. */
	virtual std::shared_ptr<const JoinIndex> find(const std::string &key) = 0;
	/* False: there is no room for it, or it is known. Throws std::bad_alloc. */
	virtual bool keep(const std::string &key, const std::shared_ptr<const JoinIndex> &index, const std::vector<JoinTablet> &tablets) = 0;
};

struct JoinFigures
{
	uint64_t	build_rows;
	uint64_t	build_bytes;
	uint64_t	build_bytes_read;	/* of tablets */
	uint32_t	indexes_used;	/* as in Job */
	uint32_t	indexes_made;
	uint64_t	index_bytes;
	uint32_t	passes;			/* 1: all inner sides were there at once */
};

/* What a stretch of a unit gave. */
struct JoinPart
{
	uint32_t	rows;
	uint32_t	errors;			/* the unit's end, and none of its rows counts */
	bool		done;			/* the unit's end */
};

class CpuJoin : public CpuJob
{
public:
	/*
	 * `program` has passed verify_program, has several cursors and outlives the join, as do
	 * the cursors, the maps and the patterns. `indexes` and `text_keys`, or nullptr, outlive it, too. `may_pass`: whoever runs it asks next_pass().
	 * Throws std::bad_alloc.
	 */
	static std::unique_ptr<CpuJoin> create(const Program *program, const ParamValue *params, uint32_t nparams,
										   const JoinCursor *cursors, const CodeMap *maps = nullptr,
										   const TextPattern *const *patterns = nullptr, JoinIndexes *indexes = nullptr,
										   TextKeys *text_keys = nullptr, bool may_pass = false, uint32_t shortages = 0);

	/* -- building ---------------------------------------------------------- */

	/* Begins the next phase: how many tasks it has; 0 when all is built, or cannot be. Throws std::bad_alloc. */
	virtual uint32_t begin_phase() = 0;
	/* Sorting asks the stop. */
	virtual void run_task(uint32_t task, JoinStop *stop = nullptr) = 0;

	/*
	 * When all units of cursor 0, and what full joins leave, were run: is there another pass, with other inner rows? Then it is to
	 * be built by phases as before, and all units are to be run again, with the same states. Throws std::bad_alloc.
	 */
	virtual bool next_pass() = 0;

	/* After the last phase: why the join cannot be run here, or nullptr. */
	virtual const char *refusal() const = 0;
	/* After the last phase: ErrorBits of the rows that were built from. Then there is nothing to run. */
	virtual uint32_t build_errors() const = 0;
	virtual JoinFigures figures() const = 0;

	/* -- running: besides what CpuJob has ------------------------------------ */

	/* Pairs that a row of cursor 0 may give, as a guess for the schedule. */
	virtual double pairs_a_row() const = 0;

	/* Who tells a state that it is to stop; until the next call. Not necessarily the same for all of a state's life. */
	virtual uint64_t pairs(const CpuState *state) const = 0;

	/* Row programs: a unit, in as many parts as it takes. An area has room for at least CPU_VECTOR_ROWS rows. */
	virtual void begin_unit(CpuState *state, const TabletHeader *tablet, uint32_t first, uint32_t last,
							const MaskedRows *masked, uint32_t nmasked) const = 0;
	virtual JoinPart run_part(CpuState *state, char *area, uint32_t capacity) const = 0;

	/*
	 * Full joins: when every unit was run to its end, by whatever states, inner rows that nothing
	 * matched are left to go on. They are one more unit of row programs; of grouped ones so many
	 * parts (none where nothing can be left), for any states in any order.
	 */
	virtual uint32_t rest_parts() const = 0;
	virtual void begin_rest(CpuState *state) const = 0;
	virtual void run_rest_groups(CpuState *state, uint32_t part) const = 0;
};

}  // namespace gpuvm

#endif
