/* run_rows.cc: rows as their units come, and what is left of them when the engine has failed or gone. */
#include "pg/pg.h"

extern "C" {
#include "common/hashfn.h"
#include "nodes/execnodes.h"
#include "utils/memutils.h"
}

#include <cstring>

#include "executor/run_internal.h"
#include "pg/quarantine.h"
#include "pg/settings.h"
#include "pg/shmem.h"

namespace gpuvm {

static void
view_area(GpuvmScanState *state, const char *area)
{
	for (int i = 0; i < state->part->ncols; i++)
	{
		state->views[i].type = state->part->types[i];
		state->views[i].nulls = reinterpret_cast<const uint64 *>(area + state->layout[i].nulls);
		state->views[i].values = area + state->layout[i].values;
	}
}

static bool
unit_is_done(GpuvmScanState *state, uint32 unit)
{
	return (state->units_done[unit / 8] >> (unit % 8)) & 1;
}

static void
set_unit_done(GpuvmScanState *state, uint32 unit)
{
	state->units_done[unit / 8] |= 1 << (unit % 8);
}

/*
 * A device failed in the middle of the job: the CPU goes on with what is left.
 * False if that was no device's failure, or cannot be done.
 */
bool
resubmit_to_cpu(GpuvmScanState *state)
{
	int			reason;

	if (state->job->ran_on != Device::Cuda || setting_require == REQUIRE_CUDA || ((state->plan->ncursors > 1 || state->plan->norder > 0) && state->emitted))
		return false;
	state->nopen = 0;
	state->no_device = MemoryContextStrdup(state->css.ss.ps.state->es_query_cxt, engine_text(state->job->failure));
	end_job(state, false);
	return submit(state, START_WAIT_MS, &reason) == nullptr;
}

/* A device takes units in order: those before the last one that this job handed over had no rows, or were handed over. */
static void
set_units_done(GpuvmScanState *state)
{
	for (uint32 u = 0; u < state->units_before; u++)
		set_unit_done(state, u);
}

/*
 * A program over several relations, or a sort, has handed out rows, and nothing can tell
 * which are left: PostgreSQL's plan has another order.
 */
static void
give_up(const GpuvmScanState *state, int code, const char *detail)
{
	ereport(ERROR,
			(errcode(code),
			 state->plan->norder > 0 ? errmsg("a sort cannot go on after its first rows") : errmsg("a join cannot go on after its first rows"),
			 errdetail("%s.", detail),
			 errhint("Run the statement again, or SET gpuvm.enabled = off.")));
}

/*
 * Units of which parts were handed out are to come once more, up to these parts
 * for nothing. False if their order may be another one: a device has its own.
 */
static bool
go_on_with_join(GpuvmScanState *state, bool lost)
{
	if (!lost || state->job->ran_on == Device::Cuda || setting_require == REQUIRE_CUDA)
		return false;
	state->no_device = "the CPU goes on with what it began";
	state->again = true;
	for (uint32 i = 0; i < state->nopen; i++)
		state->open[i].seen = 0;
	return true;
}

static uint64
hash_row(const GpuvmScanState *state, uint32 row)
{
	uint64		hash = 0;

	for (int i = 0; i < state->part->ncols; i++)
	{
		const ColumnView &v = state->views[i];
		uint64		value = 0;

		if (view_is_null(v, row))
			value = ~uint64{0};
		else if (state->part->plan->outputs[i].kind == OutputKind::Position)
		{
			/* the same row of a delta is elsewhere in each job */
			const ScanSource *source = state->sources[state->part->plan->outputs[i].cursor];
			ItemPointerData tid;

			value = source_row(source, reinterpret_cast<const int64 *>(v.values)[row], &tid)->leaf;
			value = value << 48 | static_cast<uint64>(ItemPointerGetBlockNumber(&tid)) << 16 | ItemPointerGetOffsetNumber(&tid);
		}
		else if (state->part->plan->outputs[i].kind == OutputKind::Variable)
		{
			/* the value: rows of a delta lie elsewhere in each job */
			uint32		bytes;
			Datum		datum = variable_datum(state, state->part, i, reinterpret_cast<const int64 *>(v.values)[row], &bytes);

			value = hash_bytes_extended(reinterpret_cast<const unsigned char *>(DatumGetPointer(datum)), bytes, 0);
		}
		else
			memcpy(&value, static_cast<const char *>(v.values) + static_cast<Size>(row) * type_width(v.type), type_width(v.type));
		hash = hash_bytes_extended(reinterpret_cast<const unsigned char *>(&value), sizeof(value), hash);
	}
	return hash;
}

static OpenUnit *
open_unit(GpuvmScanState *state, uint32 unit)
{
	for (uint32 i = 0; i < state->nopen; i++)
	{
		if (state->open[i].unit == unit)
			return &state->open[i];
	}
	if (state->nopen == state->max_open)
	{
		uint32		more = Max(state->max_open * 2, 16u);
		OpenUnit   *larger = static_cast<OpenUnit *>(MemoryContextAlloc(state->css.ss.ps.state->es_query_cxt, sizeof(OpenUnit) * more));

		if (state->nopen > 0)
			memcpy(larger, state->open, sizeof(OpenUnit) * state->nopen);
		state->open = larger;
		state->max_open = more;
	}
	state->open[state->nopen] = OpenUnit{unit, 0, 0, 0};
	return &state->open[state->nopen++];
}

/* The next part of a join's unit is in the views: which of its rows are new? */
static void
take_part(GpuvmScanState *state, const FullBuffer &b)
{
	OpenUnit   *u;
	uint64		dropped;

	if (unit_is_done(state, b.unit))
	{
		/* of a full join that runs again */
		state->row = state->nrows;
		return;
	}
	u = open_unit(state, b.unit);
	dropped = Min(u->handed - Min(u->handed, u->seen), static_cast<uint64>(state->nrows));
	state->row = static_cast<uint32>(dropped);
	u->seen += state->nrows;
	if ((b.last && u->seen < u->handed) ||
		(dropped > 0 && u->seen >= u->handed && hash_row(state, state->row - 1) != u->last_row))
		give_up(state, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "gpuvmd gave its rows in another order after it was started again");
	if (u->seen > u->handed)
	{
		u->handed = u->seen;
		u->last_row = hash_row(state, state->nrows - 1);
	}
	if (b.last)
	{
		set_unit_done(state, b.unit);
		*u = state->open[--state->nopen];
	}
}

/* A row of a join's source, or a pair, or a row that was to be sorted, has raised an error: PostgreSQL says which, if nothing was handed out yet. */
static void
join_raised(GpuvmScanState *state)
{
	uint32		errors = state->job->errors;
	bool		emitted = state->emitted && !state->feeds;

	if (emitted && (errors & ERR_DIVISION_BY_ZERO) != 0)
		give_up(state, ERRCODE_DIVISION_BY_ZERO, "The virtual machine met a division by zero");
	else if (emitted && (errors & ERR_DATETIME_RANGE) != 0)
		give_up(state, ERRCODE_DATETIME_VALUE_OUT_OF_RANGE, "The virtual machine met a date or timestamp out of range");
	else if (emitted)
		give_up(state, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, "The virtual machine met a value out of range");
	end_job(state, false);
	state->mode = run_fall_back(state, FALLBACK_ERROR_FLAG, nullptr);
}

/* Has the job of a join ended with an error that a row raised? */
static bool
join_failed(const GpuvmScanState *state)
{
	return state->plan->ncursors > 1 && state->job->state.load(std::memory_order_acquire) == static_cast<uint32>(JobState::Failed) &&
		state->job->errors != 0;
}

/* Nothing is handed over then, or, of the rows of a set, nothing that counts. Of a join in passes: join_failed(). */
static bool
sort_failed(const GpuvmScanState *state)
{
	return (state->plan->norder > 0 || state->sources[0]->set != 0) && state->job->errors != 0;
}

/*
 * gpuvmd has gone, failed, or given the device to others, in the middle. Before
 * the first row the alternative takes over; after it the units that are left are
 * submitted again, or evaluated from the heap if there is no engine to submit
 * them to.
 */
static void
resume_rows(GpuvmScanState *state, bool lost, const char *detail)
{
	bool		yielded = !lost && state->job->ran_on == Device::Cuda && state->job->yielded != 0;
	int			reason;
	const char *failure;
	uint32		generation = 0;

	if (yielded)
		set_units_done(state);
	else if (lost)
	{
		generation = engine_generation(state->session);
		if (engine_ended_by_device(state->session))
			state->no_device = "a device ended gpuvmd";
	}
	else if (resubmit_to_cpu(state))
		return;
	if (!state->emitted)
	{
		end_job(state, lost);
		state->mode = run_fall_back(state, lost ? FALLBACK_ENGINE_AWAY : FALLBACK_ENGINE_FAILED, detail);
		return;
	}
	if (state->plan->norder > 0 || state->job->passes > 1 || reads_sets(state) || ((state->nopen > 0 || state->full) && !go_on_with_join(state, lost)))
		give_up(state, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, detail);
	end_job(state, lost);
	if (yielded || (lost && !engine_crash_bars(state->part->plan->program->hash, generation)))
	{
		failure = submit(state, RESTART_WAIT_MS, &reason);
		if (failure == nullptr)
			return;
		detail = failure;
	}
	state->figures.fallback = lost ? FALLBACK_ENGINE_AWAY : FALLBACK_ENGINE_FAILED;
	strlcpy(state->figures.fallback_detail, detail, sizeof(state->figures.fallback_detail));
	stats_count_fallback(static_cast<FallbackReason>(state->figures.fallback));
	if (require_holds())
		require_violation("The engine was lost in the middle of the statement", detail);
	if (state->plan->ncursors > 1)
		give_up(state, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, detail);
	state->rest_by_heap = true;
	state->heap_unit = 0;
}

/* The next unit that nobody has handed out yet, from the heap; false when there is none. */
static bool
next_heap_unit(GpuvmScanState *state)
{
	for (uint32 u = state->heap_unit; u < state->nunits; u++)
	{
		if (!unit_is_done(state, u))
		{
			set_unit_done(state, u);
			heap_start_unit(state, u);
			return true;
		}
	}
	return false;
}

/* Sorted rows, or groups, come unit by unit. */
int64
wanted_unit(const GpuvmScanState *state)
{
	return wanted_order(state) > 0 ? static_cast<int64>(state->next_unit) : -1;
}

/* A copy of the buffer's head, if it is Full. */
static bool
read_buffer(const GpuvmScanState *state, int number, FullBuffer *to)
{
	const ResultBuffer *b = &state->job->buffers[number];

	if (b->state.load(std::memory_order_acquire) != static_cast<uint32>(BufferState::Full))
		return false;
	*to = FullBuffer{number, b->unit, b->nrows, b->errors, b->part, b->last != 0};
	/* what is checked is what was read */
	pg_compiler_barrier();
	return true;
}

/* The Full buffer with the lowest unit, so that rows come out as nearly in order as they can, or with the one wanted. */
FullBuffer
full_buffer(const GpuvmScanState *state)
{
	const int64 wanted = wanted_unit(state);
	FullBuffer	found = {-1, 0, 0, 0, 0, false};
	FullBuffer	b;

	for (int i = 0; i < state->memory.nbuffers; i++)
	{
		if (read_buffer(state, i, &b) && (wanted < 0 || b.unit == wanted) && (found.number < 0 || b.unit < found.unit))
			found = b;
	}
	/* Parts come in order, but the one before may have come where the loop had passed. */
	for (int i = 0; found.number >= 0 && state->plan->ncursors > 1 && i < state->memory.nbuffers; i++)
	{
		if (read_buffer(state, i, &b) && b.unit == found.unit && b.part < found.part)
			found = b;
	}
	return found;
}

/* What came back cannot be: gpuvmd has written what it should not have. */
void
give_up_results(GpuvmScanState *state, const char *detail)
{
	if (state->emitted)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("gpuvmd returned what cannot be"),
				 errdetail("%s.", detail)));
	end_job(state, false);
	state->mode = run_fall_back(state, FALLBACK_ENGINE_FAILED, detail);
}

/* The buffer has the next rows of what is sorted. */
static void
take_sorted(GpuvmScanState *state, const FullBuffer &b)
{
	state->next_unit++;
	view_area(state, arena_at<char>(buffer_offset(state, b.number)));
}

/* Takes a Full buffer if there is one. */
static bool
take_buffer(GpuvmScanState *state)
{
	const FullBuffer b = full_buffer(state);
	uint32		first;
	uint32		last;

	if (b.number < 0)
		return false;
	if (b.nrows > state->buffer_rows)
	{
		give_up_results(state, psprintf("%u rows in a buffer for %u", b.nrows, state->buffer_rows));
		return true;
	}
	state->buffer = b.number;
	state->row = 0;
	state->nrows = b.nrows;
	state->batch_row = state->batch_rows = 0;
	if (state->plan->norder > 0)
	{
		take_sorted(state, b);
		return true;
	}
	if (b.unit >= state->nunits || (unit_is_done(state, b.unit) && !(state->full && state->again)))
	{
		give_up_results(state, psprintf("unit %u of %u, twice or out of range", b.unit, state->nunits));
		return true;
	}
	if (state->plan->ncursors == 1)
		set_unit_done(state, b.unit);
	state->units_before = Max(state->units_before, b.unit);
	if (b.errors != 0 && state->plan->ncursors == 1)
	{
		/* Somebody must raise, or not, in PostgreSQL's words. */
		state->flagged = true;
		state->nrows = 0;
		if (state->emitted)
			heap_start_unit(state, b.unit);
		else
			state->mode = run_fall_back(state, FALLBACK_ERROR_FLAG, nullptr);
		return true;
	}
	view_area(state, arena_at<char>(buffer_offset(state, b.number)));
	if (state->plan->ncursors > 1)
		take_part(state, b);
	else if (gives_positions(state->plan))
		state->tablet = unit_range(state, b.unit, &first, &last);
	state->block_hint = 0;
	return true;
}

static void
give_buffer_back(GpuvmScanState *state)
{
	ResultBuffer *b = &state->job->buffers[state->buffer];

	/* Sequentially consistent: gpuvmd looks for Free buffers after it has said that it waits, we the other way round. */
	b->state.store(static_cast<uint32>(BufferState::Free));
	state->buffer = -1;
	engine_buffer_freed(state->session);
}

static bool
next_row(GpuvmScanState *state, TupleTableSlot *slot)
{
	for (;;)
	{
		if (state->by_heap)
		{
			if (heap_next_row(state, slot))
				return true;
			continue;
		}
		if (state->rest_by_heap)
		{
			if (!next_heap_unit(state))
				return false;
			continue;
		}
		if (state->buffer >= 0)
		{
			if (state->batch_row < state->batch_rows || decode_batch(state))
			{
				decode_next(state, slot);
				return true;
			}
			give_buffer_back(state);
		}
		if (!state->emitted && join_failed(state))
		{
			/* what it handed over before is worth less than an answer */
			join_raised(state);
			return false;
		}
		if (take_buffer(state))
		{
			if (state->mode != MODE_VM)
				return false;
			continue;
		}
		switch (engine_wait(state->session, wanted_unit(state)))
		{
			case ENGINE_BUFFER_FULL:
				break;
			case ENGINE_ENDED:
				if (take_buffer(state))
				{
					if (state->mode != MODE_VM)
						return false;
					continue;
				}
				check_device(state);
				if (state->job->state.load(std::memory_order_acquire) == static_cast<uint32>(JobState::Done) && !sort_failed(state))
					return false;
				if (join_failed(state) || sort_failed(state))
					join_raised(state);
				else
					resume_rows(state, false, engine_text(state->job->failure));
				if (state->mode != MODE_VM)
					return false;
				break;
			case ENGINE_LOST:
				if (take_buffer(state))
				{
					if (state->mode != MODE_VM)
						return false;
					continue;
				}
				resume_rows(state, true, "gpuvmd has gone");
				if (state->mode != MODE_VM)
					return false;
				break;
		}
	}
}

/* Rows that are held back, and those of them that pass. */
struct HeldFilter
{
	GpuvmScanState *state;
	Tuplestorestate *passing;
};

static void
copy_passing_rows(void *argument)
{
	HeldFilter *filter = static_cast<HeldFilter *>(argument);
	GpuvmScanState *state = filter->state;
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	TupleTableSlot *slot = state->held_slot;

	econtext->ecxt_scantuple = slot;
	while (tuplestore_gettupleslot(state->held, true, false, slot))
	{
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		slot_getallattrs(slot);
		if (ExecQual(state->having, econtext))
			tuplestore_puttupleslot(filter->passing, slot);
	}
}

/* An error of a condition may be one that PostgreSQL does not meet. */
static void
filter_held_rows(GpuvmScanState *state)
{
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	HeldFilter	filter = {state, tuplestore_begin_heap(false, false, work_mem)};
	int			sqlstate = 0;
	const bool	done = guarded(copy_passing_rows, &filter, &sqlstate);

	MemoryContextSwitchTo(old);
	ExecClearTuple(state->held_slot);
	tuplestore_end(done ? state->held : filter.passing);
	if (done)
		state->held = filter.passing;
	else
		state->mode = run_fall_back(state, FALLBACK_ERROR_FLAG,
									psprintf("a condition raises SQLSTATE %s", unpack_sql_state(sqlstate)));
}

/* Takes all rows; false when the alternative must run. */
static bool
hold_rows(GpuvmScanState *state)
{
	TupleTableSlot *slot = state->row_slot;
	Datum	   *values = slot->tts_values;
	bool	   *nulls = slot->tts_isnull;
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);

	if (state->held_slot == nullptr)
		state->held_slot = ExecInitExtraTupleSlot(state->css.ss.ps.state, slot->tts_tupleDescriptor, &TTSOpsMinimalTuple);
	state->held = tuplestore_begin_heap(false, false, work_mem);
	MemoryContextSwitchTo(old);
	while (next_row(state, slot))
	{
		CHECK_FOR_INTERRUPTS();
		tuplestore_puttupleslot(state->held, ExecStoreVirtualTuple(slot));
		ExecClearTuple(slot);
	}
	slot->tts_values = values;
	slot->tts_isnull = nulls;
	if (state->mode == MODE_VM && state->having != nullptr && !state->computes)
		filter_held_rows(state);
	return state->mode == MODE_VM;
}

static bool
next_held_row(GpuvmScanState *state, TupleTableSlot *slot)
{
	TupleTableSlot *from = state->held_slot;

	if (!tuplestore_gettupleslot(state->held, true, false, from))
		return false;
	slot_getallattrs(from);
	memcpy(slot->tts_values, from->tts_values, from->tts_tupleDescriptor->natts * sizeof(Datum));
	memcpy(slot->tts_isnull, from->tts_isnull, from->tts_tupleDescriptor->natts * sizeof(bool));
	return true;
}

bool
run_next_row(GpuvmScanState *state, TupleTableSlot *slot)
{
	bool		found;

	if (!holds_rows_back(state->plan))
		found = next_row(state, slot);
	else if (state->held == nullptr && !hold_rows(state))
		return false;
	else
		found = next_held_row(state, slot);
	/* a stage's rows are handed out when its reader has them all */
	state->emitted = state->emitted || (found && !state->plan->stage);
	return found;
}

}  // namespace gpuvm
