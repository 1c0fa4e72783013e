/* run_collect.cc: groups, taken whole before the first row leaves, and rows and groups that stay in gpuvmd as a set. */
#include "pg/pg.h"

extern "C" {
#include "nodes/execnodes.h"
#include "utils/memutils.h"
}

#include <cstring>

#include "executor/run_internal.h"
#include "executor/set_arms.h"
#include "pg/shmem.h"

namespace gpuvm {

/*
 * Makes Datums of references. Values of a table are there as long as its version is pinned; those of a delta, or of what
 * PostgreSQL has run, as long as the source.
 */
static void
keep_values(GpuvmScanState *state, int column, const uint64 *nulls, uint32 nrows, int64 *values)
{
	for (uint32 row = 0; row < nrows; row++)
	{
		if ((nulls[row / 64] >> row % 64 & 1) == 0)
			values[row] = static_cast<int64>(variable_datum(state, state->part, column, values[row], nullptr));
	}
}

static void
take_chunk(GpuvmScanState *state, const FullBuffer &b)
{
	ScanPart   *part = state->part;
	GroupChunk *chunk = static_cast<GroupChunk *>(MemoryContextAlloc(state->group_context, sizeof(GroupChunk)));
	const char *area = arena_at<char>(buffer_offset(state, b.number));
	ResultColumnLayout layout[PROGRAM_MAX_COLUMNS];
	Size		bytes;

	chunk->nrows = b.nrows;
	chunk->capacity = align_up(Max(chunk->nrows, 1u), RESULT_PAD_ROWS);
	bytes = result_layout(part->types, part->ncols, chunk->capacity, layout);
	chunk->area = static_cast<char *>(MemoryContextAllocHuge(state->group_context, bytes));
	for (int i = 0; i < part->ncols; i++)
	{
		memcpy(chunk->area + layout[i].nulls, area + state->layout[i].nulls, chunk->capacity / 8);
		memcpy(chunk->area + layout[i].values, area + state->layout[i].values, Size{chunk->nrows} * type_width(part->types[i]));
		if (part->plan->outputs[i].kind == OutputKind::Variable)
			keep_values(state, i, reinterpret_cast<const uint64 *>(chunk->area + layout[i].nulls), chunk->nrows,
						reinterpret_cast<int64 *>(chunk->area + layout[i].values));
	}
	if (part->nchunks == part->max_chunks)
	{
		uint32		more = Max(part->max_chunks * 2, 16u);
		GroupChunk **larger = static_cast<GroupChunk **>(MemoryContextAlloc(state->group_context, sizeof(GroupChunk *) * more));

		if (part->nchunks > 0)
			memcpy(larger, part->chunks, sizeof(GroupChunk *) * part->nchunks);
		part->chunks = larger;
		part->max_chunks = more;
	}
	part->chunks[part->nchunks++] = chunk;
	part->nrows += chunk->nrows;
	state->group_bytes += bytes;
}

/* Waits for the job and takes what it gives; false when the alternative must run. */
static bool
collect_part(GpuvmScanState *state)
{
	EngineWait	w;

	for (;;)
	{
		bool		any = false;
		FullBuffer	b;

		w = engine_wait(state->session, wanted_unit(state));
		if (w == ENGINE_LOST)
		{
			end_job(state, true);
			state->mode = run_fall_back(state, FALLBACK_ENGINE_AWAY, "gpuvmd has gone");
			return false;
		}
		while ((b = full_buffer(state)).number >= 0)
		{
			if (b.nrows > state->buffer_rows)
			{
				give_up_results(state, psprintf("%u groups in a buffer for %u", b.nrows, state->buffer_rows));
				return false;
			}
			any = true;
			state->next_unit++;
			take_chunk(state, b);
			state->job->buffers[b.number].state.store(static_cast<uint32>(BufferState::Free));
		}
		if (any)
			engine_buffer_freed(state->session);
		else if (w == ENGINE_ENDED)
			break;
	}
	check_device(state);
	if (state->job->state.load(std::memory_order_acquire) == static_cast<uint32>(JobState::Failed))
	{
		const char *detail = engine_text(state->job->failure);

		/* The chunks taken so far are the device's: a program's groups come from one run. */
		if (resubmit_to_cpu(state))
		{
			forget_groups(state->part);
			return collect_part(state);
		}
		state->mode = run_fall_back(state, FALLBACK_ENGINE_FAILED, detail);
		return false;
	}
	if (state->job->errors != 0)
	{
		const char *failure = nullptr;
		int			reason = FALLBACK_ERROR_FLAG;

		/* the first program's errors are others */
		if (state->job->stage_rows > 0 && submit_unfiltered(state, &failure, &reason) && failure == nullptr)
		{
			filter_failed(state);
			forget_groups(state->part);
			return collect_part(state);
		}
		state->mode = run_fall_back(state, reason, failure);
		return false;
	}
	end_job(state, false);
	return true;
}

/* The set is there: window functions, if there are any, become columns of it. */
static void
append_windows(GpuvmScanState *state)
{
	const char *failure = nullptr;
	int			reason = FALLBACK_ERROR_FLAG;

	take_figures(state);
	/* the figures are those of the program */
	state->job = nullptr;
	if (state->plan->windows != NIL)
		failure = windows_run(state, state->sink, &reason);
	end_job(state, failure != nullptr && reason == FALLBACK_ENGINE_AWAY);
	state->mode = failure != nullptr ? run_fall_back(state, reason, failure) : MODE_END;
}

/* More rows, or tablets, no set of gpuvmd's has. */
constexpr uint64 MOST_SET_ROWS = uint64{1} << 36;
constexpr uint32 MOST_SET_TABLETS = 1 << 24;

bool
sink_can_be(const SetSink *sink, uint32 first, uint32 ncolumns)
{
	constexpr uint16 FLAGS = CHUNK_HAS_NULLS | CHUNK_ALL_NULL | CHUNK_HAS_NAN | CHUNK_HAS_INF | CHUNK_HAS_NEG_ZERO |
		COLUMN_VARIABLE;

	for (uint32 i = first; i < first + ncolumns; i++)
	{
		if ((sink->known[i].flags & ~FLAGS) != 0)
			return false;
	}
	return sink->nrows <= MOST_SET_ROWS && sink->tablets <= MOST_SET_TABLETS;
}

/* The rows will be read as PostgreSQL reads any, which is slower. */
static void
note_not_stayed(GpuvmScanState *state)
{
	char	   *why = engine_text(state->job->failure);

	strlcpy(state->figures.not_stayed, why, sizeof(state->figures.not_stayed));
	pfree(why);
	stats_count_not_stayed();
}

/* Waits for the job, and says what became of the set. */
static void
collect_set(GpuvmScanState *state)
{
	SetSink    *sink = state->sink;
	const Job  *job;
	bool		done;
	uint32		errors;

	if (engine_wait(state->session) == ENGINE_LOST)
	{
		end_job(state, true);
		state->mode = run_fall_back(state, FALLBACK_ENGINE_AWAY, "gpuvmd has gone");
		return;
	}
	job = state->job;
	done = job->state.load(std::memory_order_acquire) == static_cast<uint32>(JobState::Done);
	errors = job->errors;
	if (done && errors == 0)
	{
		sink->nrows = job->rows_out;
		sink->tablets = job->set_tablets;
		memcpy(sink->known, arena_at<char>(state->memory.known), sizeof(SetColumn) * sink->ncolumns);
		if (sink_can_be(sink, 0, sink->ncolumns))
			append_windows(state);
		else
			give_up_results(state, "a result set that cannot be");
		return;
	}
	/* a filter that flags an error is left out when the program runs again */
	if (errors != 0 && state->part->plan->group_filter == nullptr)
		state->mode = run_fall_back(state, FALLBACK_ERROR_FLAG, nullptr);
	else
	{
		if (!done)
			note_not_stayed(state);
		end_job(state, false);
	}
}

/* What a stage has read is needed no more when its rows are there. Its tables stay open: references lead there. */
static void
close_sets(GpuvmScanState *state)
{
	for (int i = 0; i < state->plan->ncursors; i++)
	{
		ScanSource *source = state->sources[i];

		if (source == nullptr || source->set == 0)
			continue;
		state->sources[i] = nullptr;
		source_close(source);
	}
}

bool
run_into_set(GpuvmScanState *state, SetSink *sink)
{
	state->sink = sink;
	state->mode = run_start(state);
	if (state->mode == MODE_VM)
		collect_set(state);
	sink->gave_way = state->gave_way;
	state->sink = nullptr;
	if (state->mode != MODE_END || state->gave_way || sink->refused)
		return false;
	if (state->plan->stage)
		close_sets(state);
	return true;
}

/* Do the groups of several programs, and what puts them together, take too much? Those of a single one may. */
static bool
groups_fit(const GpuvmScanState *state, uint64 of_single)
{
	const ScanPlan *plan = state->plan;
	uint64		bytes = state->group_bytes - of_single;
	int			next;

	if (plan->nparts == 1 && !state->part->plan->is_ties)
		return true;
	for (int first = 0; first < plan->nparts; first = next)
	{
		for (next = first + 1; next < plan->nparts && plan->parts[next].set == plan->parts[first].set;)
			next++;
		if (next > first + 1)
			bytes += merge_bytes(&state->parts[first], next - first);
	}
	return bytes <= run_memory_limit();
}

bool
run_collect_groups(GpuvmScanState *state)
{
	uint64		of_single = 0;
	int			reason;

	for (int i = 0; i < program_count(state->plan); i++)
	{
		const char *failure = nullptr;

		if (i >= state->plan->nparts && !ties_wanted(state, &state->parts[i]))
			continue;
		state->part = &state->parts[i];
		/* run_start() has submitted the first */
		if (i > 0)
			failure = submit(state, START_WAIT_MS, &reason);
		if (failure != nullptr)
		{
			state->mode = run_fall_back(state, reason, failure);
			return false;
		}
		if (!collect_part(state))
			return false;
		/* PostgreSQL shows the row that it met first, or last */
		if (!groups_show_alike(state->part))
		{
			state->mode = run_fall_back(state, FALLBACK_ERROR_FLAG, "equal values show different numbers of decimals");
			return false;
		}
		if (state->plan->nparts == 1 && i == 0)
			of_single = state->group_bytes;
		if (i >= state->plan->nparts)
			ties_take(state, state->part);
		if (!groups_fit(state, of_single))
		{
			state->mode = run_fall_back(state, FALLBACK_MEMORY, "the groups of several programs take more than work_mem, and a quarter of gpuvm.memory");
			return false;
		}
	}
	groups_start(state);
	return true;
}

}  // namespace gpuvm
