/*
 * scan_state.h: the state of a Custom Scan (GpuVM) while it runs.
 *
 * A scan decides at its first row, and again after each rescan, whether the
 * virtual machine or the alternative plan answers. Before the first row is
 * handed out any obstacle leads to the alternative. After it (row programs
 * only; groups are taken whole before the first is handed out) the scan goes on
 * by units: a unit that gpuvmd could not finish is evaluated here, from the
 * heap, by PostgreSQL's own expressions (rule 13), so no answer is ever cut
 * short.
 */
#ifndef GPUVM_EXECUTOR_SCAN_STATE_H
#define GPUVM_EXECUTOR_SCAN_STATE_H

#include "engine/abi.h"
#include "executor/finalize.h"
#include "pg/engine_client.h"
#include "pg/stats.h"
#include "planner/scan_plan.h"
#include "store/registry.h"

extern "C" {
#include "executor/executor.h"
#include "nodes/execnodes.h"
}

namespace gpuvm {

enum ScanMode
{
	MODE_START,					/* nothing decided */
	MODE_VM,
	MODE_ALTERNATIVE,
	MODE_END,
};

/* A result buffer's rows, copied out of the arena (groups only). */
struct GroupChunk
{
	char	   *area;
	uint32		nrows;
	GroupChunk *next;
};

/* What EXPLAIN ANALYZE shows, summed over rescans. */
struct ScanFigures
{
	bool		ran;			/* on a virtual machine, at least once */
	Device		device;			/* of the last run, as what follows up to device_refusal */
	uint32		device_index;
	uint32		threads;
	Transfer	transfer;
	char		device_refusal[sizeof(Job::device_refusal)];	/* why not on a device; empty: nothing was refused */
	uint64		slices;
	uint64		bytes_moved;
	uint64		device_ns;
	uint64		tablets_scanned;
	uint64		tablets_skipped;
	uint64		rows_in;
	uint64		rows_out;
	uint64		bytes_read;
	uint64		engine_ns;
	uint64		units_by_heap;	/* units evaluated by PostgreSQL's expressions */
	int			fallback;		/* FallbackReason of the last fallback, or -1 */
	char		fallback_detail[160];
};

struct GpuvmScanState
{
	CustomScanState css;		/* must be first */
	ScanPlan   *plan;
	PlanState  *alternative;
	int			eflags;
	bool		sketched;		/* the alternative was made for EXPLAIN only: finish_alternative() before it runs */
	List	   *param_states;
	ScanMode	mode;
	bool		emitted;		/* a row was handed out since the last (re)start */
	bool		flagged;		/* an error bit made PostgreSQL evaluate something */
	const char *no_device;		/* why what is left goes to the CPU although a device was asked for, or NULL */

	/* the relation and its version, while MODE_VM */
	Relation	rel;
	VersionPin *pin;
	const TableVersion *version;

	/* the job, while one is in flight */
	EngineSession *session;
	Job		   *job;
	int			ncols;			/* result columns */
	Type		types[PROGRAM_MAX_COLUMNS];
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];
	ColumnView	views[PROGRAM_MAX_COLUMNS];
	int			buffer;			/* rows: the one being read, or -1 */
	uint32		row;			/* next row of the buffer that is not decoded */
	uint32		nrows;

	/* rows: decoded ahead, row by row, for the scan slot to point into (decode.cc) */
	Datum	   *batch_values;
	bool	   *batch_nulls;
	ItemPointerData *batch_tids;
	uint32		batch_row;
	uint32		batch_rows;

	/* rows: units */
	uint32		unit_rows;		/* also the rows that a result buffer has room for */
	uint32		nunits;
	uint32	   *first_unit;		/* of each tablet, and nunits at the end */
	uint8	   *units_done;		/* bitmap: handed out, or being so */
	uint32		units_before;	/* the highest unit that the job handed over */
	const TabletHeader *tablet;	/* of the current unit */
	uint32		block_hint;

	/* rows: a unit, or all that remain, by the heap */
	bool		by_heap;
	bool		rest_by_heap;
	uint32		heap_unit;
	uint32		heap_row;
	uint32		heap_last;
	ExprState  *heap_qual;
	TupleTableSlot *heap_slot;
	Datum	   *own_values;		/* the scan slot's own arrays */
	bool	   *own_nulls;

	/* groups */
	GroupChunk *chunks;
	GroupChunk *chunk;
	uint32		chunk_row;
	TupleTableSlot *raw_slot;
	ProjectionInfo *raw_project;
	ExprState  *having;
	MemoryContext group_context;

	ScanFigures figures;
};

constexpr uint32 MIN_UNIT_ROWS = 16384;
constexpr uint32 MAX_UNIT_ROWS = 131072;
constexpr uint64 MAX_BUFFER_BYTES = 12 * 1024 * 1024;
constexpr int ROW_BUFFERS = 8;

/* -- run.cc: the life of a job ------------------------------------------------- */

/* Decides and, for the VM, submits. Returns the mode to go on in. */
ScanMode	run_start(GpuvmScanState *state);

/* Rows: fills the scan slot; false at the end. May change to MODE_ALTERNATIVE (then false, nothing emitted). */
bool		run_next_row(GpuvmScanState *state, TupleTableSlot *slot);

/* Groups: waits for the job and takes its chunks; false when the alternative must run. */
bool		run_collect_groups(GpuvmScanState *state);

/* Ends the job, if any, takes its figures, and gives back what the run holds. */
void		run_stop(GpuvmScanState *state);

/* Leaves the VM for the alternative; raises 55000 when gpuvm.require forbids it. */
ScanMode	run_fall_back(GpuvmScanState *state, int reason, const char *detail);

/* -- decode.cc: result buffers to slots ------------------------------------------- */

/* Decodes the next rows of the current buffer; false when it is exhausted. */
bool		decode_batch(GpuvmScanState *state);

/* Points the slot at the next decoded row. */
inline void
decode_next(GpuvmScanState *state, TupleTableSlot *slot)
{
	uint32		row = state->batch_row++;

	slot->tts_values = state->batch_values + static_cast<Size>(row) * (state->ncols - 1);
	slot->tts_isnull = state->batch_nulls + static_cast<Size>(row) * (state->ncols - 1);
	slot->tts_tid = state->batch_tids[row];
}

/* -- heap.cc: a unit by PostgreSQL's own means ------------------------------------ */

void		heap_start_unit(GpuvmScanState *state, uint32 unit);
/* False when the unit is exhausted. */
bool		heap_next_row(GpuvmScanState *state, TupleTableSlot *slot);

/* The tablet of a unit and its first and last (exclusive) row. */
const TabletHeader *unit_range(GpuvmScanState *state, uint32 unit, uint32 *first, uint32 *last);

/* -- explain.cc -------------------------------------------------------------------- */

void		explain_scan(CustomScanState *node, List *ancestors, ExplainState *es);

/* -- require.cc -------------------------------------------------------------------- */

/* Registers the ExecutorStart hook that serves gpuvm.require. */
void		require_install(void);

/* Raises 55000: the statement would not, or did not, run as gpuvm.require demands. */
void		require_violation(const char *reason, const char *detail) pg_attribute_noreturn();
/* The same where a scan leaves the VM. */
void		require_fallback_violation(FallbackReason reason, const char *detail) pg_attribute_noreturn();

}  // namespace gpuvm

#endif
