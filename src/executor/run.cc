/*
 * run.cc: the life of a scan's job: decide, bind, submit, take results, and go
 * on when the engine cannot. What starts and ends is here; run_submit.cc fills the job, run_rows.cc and run_collect.cc take its results.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/execnodes.h"
#include "utils/memutils.h"
}

#include "executor/run_internal.h"
#include "pg/quarantine.h"
#include "pg/settings.h"
#include "planner/flagged.h"

namespace gpuvm {

void
require_violation(const char *reason, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("statement would not run as gpuvm.require demands"),
			 errdetail("%s%s%s.", reason, detail != nullptr && detail[0] != '\0' ? ": " : "",
					   detail != nullptr ? detail : "")));
}

void
require_fallback_violation(FallbackReason reason, const char *detail)
{
	const char *name = fallback_reason_name(reason);

	/* as EXPLAIN has it */
	require_violation("PostgreSQL's own plan would run",
					  detail != nullptr && detail[0] != '\0' ? psprintf("%s (%s)", name, detail) : name);
}

static ScanMode
give_way(GpuvmScanState *state, int reason, const char *detail)
{
	ScanFigures *f = &state->figures;

	f->fallback = reason;
	strlcpy(f->fallback_detail, detail != nullptr ? detail : "", sizeof(f->fallback_detail));
	run_stop(state);
	stats_count_fallback(static_cast<FallbackReason>(reason));
	if (state->feeds)
	{
		state->gave_way = true;
		return MODE_END;
	}
	/* A flagged error still runs PostgreSQL's plan: what it raises comes first (rule 19). */
	if (reason == FALLBACK_ERROR_FLAG)
		state->flagged = true;
	else if (require_holds())
		require_fallback_violation(static_cast<FallbackReason>(reason), detail);
	/* what nobody has asked for is looked for in the log */
	if (reason == FALLBACK_ENGINE_FAILED || reason == FALLBACK_MEMORY)
		ereport(LOG,
				(errmsg("PostgreSQL's own plan runs instead of gpuvm's: %s", fallback_reason_name(static_cast<FallbackReason>(reason))),
				 detail != nullptr && detail[0] != '\0' ? errdetail_log("%s.", detail) : 0));
	return MODE_ALTERNATIVE;
}

ScanMode
run_fall_back(GpuvmScanState *state, int reason, const char *detail)
{
	if (reason == FALLBACK_ERROR_FLAG)
		plan_flagged(state->plan);
	return give_way(state, reason, detail);
}

/* -- start ------------------------------------------------------------------------- */

/*
 * A unit is what is handed over at a time. A selective filter gets larger ones,
 * so that there are rows enough in each to be worth waking somebody up for, as
 * long as all buffers together stay small enough for the session to keep them.
 */
static uint32
choose_unit_rows(GpuvmScanState *state)
{
	double		share = state->css.ss.ps.plan->plan_rows / Max(static_cast<double>(state->sources[0]->nrows), 1.0);
	uint32		rows = MIN_UNIT_ROWS;

	while (rows < MAX_UNIT_ROWS && share * rows * 2 <= MIN_UNIT_ROWS &&
		   result_layout(state->part->types, state->part->ncols, rows * 2, nullptr) * ROW_BUFFERS <= MAX_BUFFER_BYTES)
		rows *= 2;
	return rows;
}

/* Of a group filter: as large as may be, since of most groups it leaves nothing. */
static uint32
choose_filter_unit_rows(const GpuvmScanState *state)
{
	uint32		rows = MIN_UNIT_ROWS;

	while (rows < MAX_UNIT_ROWS && result_layout(state->part->types, state->part->ncols, rows * 2, nullptr) * GROUP_BUFFERS <= MAX_BUFFER_BYTES)
		rows *= 2;
	return rows;
}

/* Do programs without keys give the one row that comes out? */
static bool
gives_one_row(const ScanPlan *plan)
{
	for (int i = 0; i < plan->nparts; i++)
	{
		if (plan->parts[i].key_columns != NIL || plan->parts[i].group_filter != nullptr)
			return false;
	}
	return plan->kind != SCAN_ROWS;
}

/* A row may meet any number of others: units small enough for every thread to get some. */
static uint32
choose_join_unit_rows(GpuvmScanState *state)
{
	uint32		rows = MIN_JOIN_UNIT_ROWS;

	while (rows < MIN_UNIT_ROWS && state->sources[0]->nrows / rows > JOIN_UNITS)
		rows *= 2;
	return rows;
}

static bool
joins_fully(const ScanPlan *plan)
{
	for (int i = 1; i < plan->ncursors; i++)
	{
		if (plan->cursors[i].kind == JoinKind::Full)
			return true;
	}
	return false;
}

static void
count_units(GpuvmScanState *state)
{
	state->full = joins_fully(state->plan);
	/* behind a join's come what no unit has met, or all rows of passes */
	state->nunits = source_count_units(state->sources[0], state->unit_rows) + (state->plan->ncursors > 1 ? 1 : 0);
	state->nopen = 0;
	state->again = false;
	state->units_done = static_cast<uint8 *>(MemoryContextAllocZero(state->group_context, (state->nunits + 7) / 8 + 1));
}

Device
wanted_device(const GpuvmScanState *state)
{
	if (setting_require == REQUIRE_CUDA)
		return Device::Cuda;
	if (setting_require == REQUIRE_CPU || setting_device == DEVICE_CPU || state->no_device != nullptr)
		return Device::Cpu;
	return setting_device == DEVICE_CUDA ? Device::Cuda : Device::Auto;
}

/* Is it known of all values that are shown which they are? False, with the reason, where PostgreSQL has to say. */
static bool
ties_fit(const GpuvmScanState *state, int *reason, const char **detail)
{
	const ScanPlan *plan = state->plan;
	const ScanPart *before = nullptr;

	*reason = FALLBACK_ERROR_FLAG;
	for (int i = 0; i < plan->nmaps; i++)
	{
		const PlanMap *map = &plan->maps[i];

		if (map->kind == MapKind::Rank && state->maps[i]->ties && shown_without_ties(plan, i))
		{
			*detail = psprintf("dictionary of column \"%s\": %s", plan_column_name(&plan->cursors[map->cursor], map->attnum), TIED_ENTRIES);
			return false;
		}
	}
	/* a group shows the keys of one row, and programs find those of each relation by themselves */
	for (int i = plan->nparts; i < program_count(plan); i++)
	{
		const ScanPart *part = &state->parts[i];

		if (part->plan->ties_columns != NIL || !ties_wanted(state, part))
			continue;
		if (before != nullptr && before->plan->set == part->plan->set)
		{
			*detail = "keys of several relations have entries that are equal without being the same";
			return false;
		}
		before = part;
	}
	return true;
}

/* Are the rows gone that it reads, with gpuvmd or with the stage that several read? */
static bool
is_lost(const ScanSource *source)
{
	return (source->set != 0 && !engine_has_set(source->set_session, source->set)) || (source->of != nullptr && !shared_is_open(source));
}

ScanMode
run_start(GpuvmScanState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	int			reason;
	const char *detail = nullptr;
	const char *failure;
	bool		one_row;

	state->emitted = false;
	state->gave_way = false;
	state->no_device = nullptr;
	if (state->unfiltered)
	{
		state->unfiltered = false;
		describe_parts(state);
	}
	/* A row that another transaction has changed, alone, with the rows that it was joined to (rule 20): nothing that a job is for. */
	if (estate->es_epq_active != nullptr)
		return MODE_ALTERNATIVE;
	if (state->plan->windows != NIL && state->sink == nullptr)
		return give_way(state, FALLBACK_ENGINE_FAILED, "window functions are computed of rows that stay in gpuvmd");
	if (!setting_enabled)
		return run_fall_back(state, FALLBACK_DISABLED, nullptr);
	/* Of a plan that is kept, or a rescan, the planner could not know. */
	if (!setting_force && setting_require == REQUIRE_ANY && plan_will_flag(state->plan))
		return give_way(state, FALLBACK_ERROR_FLAG, "as before in this session");
	for (int i = 0; i < program_count(state->plan); i++)
	{
		uint64		hash = state->plan->parts[i].program->hash;

		if (engine_quarantined(hash, Device::Cpu))
			return run_fall_back(state, FALLBACK_QUARANTINED, nullptr);
		if (wanted_device(state) == Device::Cpu || !engine_quarantined(hash, Device::Cuda))
			continue;
		if (setting_require == REQUIRE_CUDA)
			return run_fall_back(state, FALLBACK_QUARANTINED, nullptr);
		state->no_device = "quarantined";
	}
	state->part = state->parts;

	/* Between rescans the snapshot stays, and what was read under it; but for result sets that were lost. */
	for (int i = 0; i < state->plan->ncursors; i++)
	{
		ScanSource *source = state->sources[i];

		if (source == nullptr || !is_lost(source))
			continue;
		state->sources[i] = nullptr;
		source_close(source);
	}
	state->delta_cost = 0;
	for (bool derived : {false, true})
	{
		for (int i = 0; i < state->plan->ncursors; i++)
		{
			/* other plans are run when nothing else stands in the way */
			if (state->sources[i] != nullptr || (state->plan->cursors[i].child != 0) != derived)
				continue;
			state->sources[i] = source_open(state, i, &reason, &detail);
			if (state->sources[i] == nullptr)
				return run_fall_back(state, reason, detail);
		}
	}
	if (!source_differences_fit(state, &detail) || !source_specials_fit(state, &detail))
		return run_fall_back(state, FALLBACK_VALUE, detail);
	detail = subqueries_evaluate(state);
	if (detail != nullptr)
		return run_fall_back(state, FALLBACK_ERROR_FLAG, detail);
	if (!maps_build(state, &reason, &detail) || !patterns_build(state, &reason, &detail) || !ties_fit(state, &reason, &detail))
		return run_fall_back(state, reason, detail);
	one_row = gives_one_row(state->plan);
	state->unit_rows = one_row ? MIN_BUFFER_ROWS
		: state->part->plan->group_filter != nullptr ? choose_filter_unit_rows(state)
		: state->plan->kind != SCAN_ROWS ? MIN_UNIT_ROWS
		: state->plan->ncursors > 1 ? choose_join_unit_rows(state) : choose_unit_rows(state);
	/* the pages of large buffers are taken and given back for each job: 24 MB of 90 sums, for one row of them */
	state->buffer_rows = one_row ? MIN_BUFFER_ROWS : Max(state->unit_rows, MIN_UNIT_ROWS);
	if (state->plan->kind == SCAN_ROWS)
		count_units(state);
	if (state->part->plan->group_filter != nullptr && filter_has_failed(state))
	{
		state->unfiltered = state->figures.unfiltered = state->figures.unfiltered_before = true;
		describe_parts(state);
	}
	failure = submit(state, START_WAIT_MS, &reason);
	/* without its group filter a program's groups are no set: that is tried where they are handed out */
	if (failure != nullptr && state->sink != nullptr && reason == FALLBACK_ERROR_FLAG &&
		state->part->plan->group_filter != nullptr)
		state->sink->refused = true;
	if (failure != nullptr && state->sink != nullptr && state->sink->refused)
		return MODE_END;
	if (failure != nullptr && reason == FALLBACK_ERROR_FLAG)
		submit_unfiltered(state, &failure, &reason);
	if (failure != nullptr)
		return run_fall_back(state, reason, failure);
	return MODE_VM;
}

/* -- end --------------------------------------------------------------------------------- */

void
take_figures(GpuvmScanState *state)
{
	ScanFigures *f = &state->figures;
	const Job  *job = state->job;

	f->ran = true;
	/* Of several programs one on the CPU is worth telling. */
	if (state->part == state->parts || job->ran_on != Device::Cuda || f->device == Device::Cuda)
	{
		f->device = job->ran_on;
		f->device_index = job->device_index;
		f->transfer = job->transfer_used;
		if (state->no_device != nullptr)
			strlcpy(f->device_refusal, state->no_device, sizeof(f->device_refusal));
		else
		{
			char	   *why = engine_text(job->device_refusal);

			strlcpy(f->device_refusal, why, sizeof(f->device_refusal));
			pfree(why);
		}
	}
	/* One that goes on later counts all tablets up to its end. */
	if (job->yielded == 0)
	{
		f->tablets_scanned += job->tablets_scanned;
		f->tablets_skipped += job->tablets_skipped;
	}
	f->rows_in += job->rows_in;
	f->rows_out += job->rows_out;
	f->bytes_read += job->bytes_read;
	f->pairs += job->pairs;
	f->build_rows += job->build_rows;
	f->build_bytes += job->build_bytes;
	f->indexes_used |= job->indexes_used;
	f->indexes_made |= job->indexes_made;
	f->passes = Max(f->passes, job->passes);
	f->index_bytes += job->index_bytes;
	f->engine_ns += job->engine_ns;
	f->expected_cpu_ns += job->expected_cpu_ns;
	f->expected_device_ns += job->expected_device_ns;
	f->queue_ns += job->queue_ns;
	f->restarts += job->restarts;
	f->memory_peak = Max(f->memory_peak, job->memory_peak);
	f->spilled += job->spilled;
	f->threads = job->threads_used;
	if (job->ran_on == Device::Cuda)
	{
		f->slices += job->slices;
		f->bytes_moved += job->bytes_moved;
		f->device_ns += job->device_ns;
	}
	if (job->state.load(std::memory_order_acquire) == static_cast<uint32>(JobState::Done))
		quarantine_note_run(state->part->plan->program->hash, job->ran_on);
	stats_count_job(job, state->no_device != nullptr || job->device_refusal[0] != '\0');
}

void
end_job(GpuvmScanState *state, bool lost)
{
	if (state->session == nullptr)
		return;
	if (!lost && state->job != nullptr)
	{
		engine_abort(state->session);
		take_figures(state);
	}
	engine_release(state->session);
	state->session = nullptr;
	state->job = nullptr;
}

static void
close_sources(GpuvmScanState *state, bool plain_only)
{
	uint64		sets = 0;

	/* all at once */
	for (int i = 0; i < PROGRAM_MAX_CURSORS && !plain_only; i++)
	{
		ScanSource *source = state->sources[i];

		if (source == nullptr || source->set == 0 || source->of != nullptr || source->set_session != state->space->session)
			continue;
		sets |= uint64{1} << source->set;
		source->set = 0;
	}
	if (sets != 0)
		engine_drop_sets(state->space->session, sets);
	for (int i = 0; i < PROGRAM_MAX_CURSORS; i++)
	{
		ScanSource *source = state->sources[i];

		if (source == nullptr || (plain_only && !source->plain))
			continue;
		state->sources[i] = nullptr;
		source_close(source);
	}
}

/* The memory is given back with all that the run has. */
void
forget_groups(ScanPart *part)
{
	part->chunks = nullptr;
	part->nchunks = part->max_chunks = 0;
	part->nrows = 0;
	part->viewed = nullptr;
	part->ties = nullptr;
}

void
run_end(GpuvmScanState *state)
{
	end_job(state, false);
	fetch_release(state);
	close_sources(state, true);
	maps_release(state);
	if (state->held != nullptr)
	{
		ExecClearTuple(state->held_slot);
		tuplestore_end(state->held);
		state->held = nullptr;
	}
	state->units_done = nullptr;
	state->by_heap = false;
	state->rest_by_heap = false;
	state->buffer = -1;
	state->batch_row = state->batch_rows = 0;
	groups_start(state);
	for (int i = 0; i < program_count(state->plan); i++)
		forget_groups(&state->parts[i]);
	state->group_bytes = 0;
	MemoryContextReset(state->group_context);
}

void
run_stop(GpuvmScanState *state)
{
	run_end(state);
	close_sources(state, false);
	shared_close(state);
}

/*
 * The job that has just ended did not run where gpuvm.require wants it: raises.
 * gpuvmd refuses such a job before its first row, so none was handed out.
 */
void
check_device(GpuvmScanState *state)
{
	const Job  *job = state->job;

	if (setting_require != REQUIRE_CUDA || job->ran_on == Device::Cuda)
		return;
	stats_count_refusal();
	require_violation("No device runs the program",
					  job->device_refusal[0] != '\0' ? engine_text(job->device_refusal) : engine_text(job->failure));
}

}  // namespace gpuvm
