/*
 * run.cc: the life of a scan's job: decide, bind, submit, take results, and go
 * on when the engine cannot.
 */
#include "pg/pg.h"

extern "C" {
#include "access/table.h"
#include "common/hashfn.h"
#include "executor/nodeSubplan.h"
#include "nodes/execnodes.h"
#include "utils/memutils.h"
}

#include <cstring>

#include "executor/scan_state.h"
#include "executor/set_arms.h"
#include "pg/quarantine.h"
#include "pg/settings.h"
#include "pg/shmem.h"
#include "pg/startup.h"
#include "planner/flagged.h"

namespace gpuvm {

/* How long a query waits for a gpuvmd that is being started again. */
constexpr int START_WAIT_MS = 0;
constexpr int RESTART_WAIT_MS = 5000;
/* How long one that must run on a device waits for those of a gpuvmd that has just been started. */
constexpr int DEVICE_WAIT_MS = 10000;

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

static void end_job(GpuvmScanState *state, bool lost);

/* -- start ------------------------------------------------------------------------- */

ParamValue
param_value(Datum value, bool isnull, Type type)
{
	ParamValue	p = {};
	double		d;

	p.type = static_cast<uint32_t>(type);
	p.is_null = isnull;
	if (isnull)
		return p;
	switch (type)
	{
		case Type::Bool:
			p.value = DatumGetBool(value);
			break;
		case Type::I16:
			p.value = DatumGetInt16(value);
			break;
		case Type::I32:
			p.value = DatumGetInt32(value);
			break;
		case Type::I64:
			p.value = DatumGetInt64(value);
			break;
		default:
			d = type == Type::F32 ? DatumGetFloat4(value) : DatumGetFloat8(value);
			memcpy(&p.value, &d, sizeof(d));
			break;
	}
	return p;
}

/* Those that the program reads. */
static void
param_types(const Program *program, Type *types)
{
	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode == Opcode::Variable)
			types[op.p2] = op.type;
	}
}

/* NULL, or why it cannot be done. */
static const char *
bind_params(GpuvmScanState *state, Job *job)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	Type		types[PROGRAM_MAX_PARAMS] = {};
	ListCell   *lc;

	param_types(state->part->plan->program, types);
	if (run_second_program(state, state->part->plan) != nullptr)
		param_types(run_second_program(state, state->part->plan), types);
	ResetExprContext(econtext);
	/* subqueries raise what they raise */
	if (state->param_execs != nullptr)
		ExecSetParamPlanMulti(state->param_execs, econtext);
	foreach(lc, state->param_states)
	{
		int			i = foreach_current_index(lc);
		Datum		value;
		bool		isnull;
		int			sqlstate = 0;

		/* the group filter's, which is left out */
		if (state->unfiltered && types[i] == Type::None)
		{
			job->params[i] = param_value((Datum) 0, true, Type::None);
			continue;
		}
		if (!evaluate_leaf(static_cast<Node *>(list_nth(state->plan->params, i)), static_cast<ExprState *>(lfirst(lc)), econtext, &value, &isnull, &sqlstate))
			return psprintf("an expression without columns raises SQLSTATE %s", unpack_sql_state(sqlstate));
		job->params[i] = param_value(value, isnull, types[i]);
	}
	job->nparams = list_length(state->param_states);
	return nullptr;
}

/* Copies the program into the region with its columns bound to the tablets'. False when they lack one. */
static bool
bind_program(GpuvmScanState *state, Program *to)
{
	memcpy(static_cast<void *>(to), state->part->plan->program, state->part->plan->program->size);
	for (int i = 0; i < to->nops; i++)
	{
		Op		   *op = const_cast<Op *>(&to->ops()[i]);

		if (!reads_column(*op))
			continue;
		op->p2 = source_column(state->sources[op->p3], static_cast<AttrNumber>(op->p2), column_type(*op));
		if (op->p2 < 0)
			return false;
	}
	to->hash = hash_program(to);
	return true;
}

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

/* How many keys the job at hand is sorted by. */
static int
wanted_order(const GpuvmScanState *state)
{
	return state->part->plan->is_ties ? 0 : state->plan->norder;
}

JobOrderKey
job_order_key(const PlanOrderKey &key)
{
	return JobOrderKey{static_cast<uint32>(key.column), static_cast<uint32>(key.flags), static_cast<uint32>(Max(key.map, 0)), 0};
}

/* What the rows come out sorted by. */
static void
put_order(const ScanPlan *plan, int norder, Job *job)
{
	job->norder = norder;
	for (int i = 0; i < norder; i++)
		job->order[i] = job_order_key(plan->order[i]);
}

/* By which values of variable length are compared; a sentence where that is not possible. */
const char *
put_text_orders(const ScanPlan *plan, Job *job)
{
	job->ntext_orders = plan->text_orders.n;
	for (int i = 0; i < plan->text_orders.n; i++)
	{
		const char *failure = describe_text_order(plan->text_orders.orders[i], &job->text_orders[i]);

		if (failure != nullptr)
			return failure;
	}
	return nullptr;
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

static Transfer
wanted_transfer(void)
{
	switch (setting_transfer)
	{
		case TRANSFER_SERIAL: return Transfer::Serial;
		case TRANSFER_STREAM: return Transfer::Stream;
		case TRANSFER_MAPPED: return Transfer::Mapped;
		case TRANSFER_CACHED: return Transfer::Cached;
		default: return Transfer::Auto;
	}
}

/* The program that reads the groups of the first, if there is one. */
static void
put_stage(Job *job, const Program *stage, uint64 at)
{
	const uint64 program = at + align_up(sizeof(JobStage), 64);

	job->stages = 0;
	job->nstages = 0;
	if (stage == nullptr)
		return;
	*arena_at<JobStage>(at) = JobStage{program, stage->size, 0};
	memcpy(arena_at<char>(program), stage, stage->size);
	job->stages = at;
	job->nstages = 1;
}

static bool
reads_sets(const GpuvmScanState *state)
{
	for (int i = 0; i < state->plan->ncursors; i++)
	{
		if (state->sources[i] != nullptr && state->sources[i]->set != 0)
			return true;
	}
	return false;
}

/*
 * References in a set lead into tablets, which the scan has pinned, not into what a job brings: changed rows, or those
 * of another plan.
 */
static bool
brings_rows(const GpuvmScanState *state)
{
	for (int i = 0; i < state->plan->ncursors; i++)
	{
		const ScanSource *source = state->sources[i];

		if (source->set == 0 && source->ntablets > source->nimported && !source->plain)
			return true;
	}
	return false;
}

/* Have codes of the results entries that only changed rows have? */
static bool
has_new_entries(const GpuvmScanState *state)
{
	const SetSink *sink = state->sink;

	for (uint32 i = 0; i < sink->ncolumns; i++)
	{
		const int	column = sink->columns[i].result;
		const EntrySource *entries = &state->part->entries[column];

		if (state->part->plan->outputs[column].kind == OutputKind::Dictionary &&
			entry_count(entries) != local_nentries(entries->base, nullptr))
			return true;
	}
	return false;
}

/* The results go into a set: NULL, or why they cannot. */
static const char *
put_sink(GpuvmScanState *state, Job *job, Program *program, uint64 known)
{
	SetSink    *sink = state->sink;

	job->sink.set = 0;
	if (sink == nullptr)
		return nullptr;
	job->sink.append = sink->set != 0;
	sink->refused = (sink->references && brings_rows(state)) || (sink->several && has_new_entries(state)) ||
		!put_constant_codes(state, sink, program);
	if (!sink->refused && sink->set == 0)
		sink->set = engine_new_set(state->session);
	if (sink->refused || sink->set == 0)
	{
		sink->refused = true;
		return "the rows cannot stay";
	}
	job->sink.set = sink->set;
	job->sink.known = known;
	job->sink.ncolumns = sink->ncolumns;
	memcpy(job->sink.columns, sink->columns, sizeof(SinkColumn) * sink->ncolumns);
	return nullptr;
}

static uint64
buffer_offset(const GpuvmScanState *state, int number)
{
	return state->memory.buffers + state->memory.buffer_bytes * number;
}

/* Fills the session's job and submits it; NULL, or the reason why not. */
static const char *
submit(GpuvmScanState *state, int wait_ms, int *fallback)
{
	const PlanPart *part = state->part->plan;
	const Program *program = part->program;
	bool		rows = state->plan->kind == SCAN_ROWS;
	uint64		buffer_bytes = result_layout(state->part->types, state->part->ncols, state->buffer_rows, state->layout);
	uint64		skip_bytes = rows ? align_up((state->nunits + 7) / 8 + 1, 64) : 0;
	const Program *second = run_second_program(state, part);
	const int	norder = wanted_order(state);
	const double limit = state->unfiltered || part->is_ties ? 0 : state->plan->limit;
	uint64		stage_bytes = second != nullptr ? align_up(sizeof(JobStage), 64) + align_up(second->size, 64) : 0;
	uint64		stages = align_up(program->size, 64);
	uint64		program_bytes = stages + stage_bytes;
	uint64		cursor_bytes = 0;
	uint64		map_bytes = patterns_bytes(state);
	uint64		at;
	int			nbuffers = !rows ? 1 : program->ncursors > 1 || norder > 0 ? ROW_BUFFERS : Min(ROW_BUFFERS, static_cast<int>(Max(state->nunits, 1u)));
	const char *reason = nullptr;
	uint64		area;
	uint64		sink_bytes;
	uint64		area_bytes;
	Program    *bound;			/* before gpuvmd can write to it */
	Job		   *job;

	*fallback = FALLBACK_ENGINE_AWAY;
	if (state->plan->nmaps > 0)
		map_bytes += maps_bytes(state);
	if (!rows && !part->count_groups && part->key_columns != NIL)
		nbuffers = GROUP_BUFFERS;
	if (norder > 0 && limit > 0 && limit <= state->buffer_rows)
		nbuffers = 1;
	if (state->sink != nullptr)
		nbuffers = 0;
	for (int i = 0; i < program->ncursors; i++)
		cursor_bytes += source_bytes(state->sources[i]);
	if (state->sink != nullptr || reads_sets(state))
		state->session = engine_acquire_sets(&state->space->session, wait_ms, &reason);
	else
		state->session = engine_acquire(wait_ms, &reason);
	if (state->session == nullptr)
	{
		/* It may have been given up for an interrupt. */
		CHECK_FOR_INTERRUPTS();
		return reason;
	}
	if (setting_require == REQUIRE_CUDA)
		engine_wait_for_devices(DEVICE_WAIT_MS);
	sink_bytes = state->sink == nullptr ? 0 : align_up(sizeof(state->sink->known), 64);
	area_bytes = program_bytes + skip_bytes + cursor_bytes + map_bytes + sink_bytes + buffer_bytes * nbuffers;
	area = engine_area(state->session, area_bytes);
	if (area == 0)
	{
		*fallback = FALLBACK_MEMORY;
		return cursor_bytes + map_bytes > 0 ? "no room in gpuvm.memory for changed rows, maps and result buffers" : "no room in gpuvm.memory for result buffers";
	}
	bound = static_cast<Program *>(palloc(program->size));
	if (!bind_program(state, bound))
	{
		*fallback = FALLBACK_NO_TABLETS;
		return "a column of the query is not in the tablets";
	}

	job = state->job = engine_job(state->session);
	state->memory = JobMemory{area, area + area_bytes, area + area_bytes - buffer_bytes * nbuffers, buffer_bytes, nbuffers,
		area + program_bytes + skip_bytes + cursor_bytes + map_bytes};
	job->kind = JobKind::Run;
	job->program = area;
	job->program_size = program->size;
	job->program_hash = program->hash;
	reason = bind_params(state, job);
	if (reason == nullptr)
		reason = put_text_orders(state->plan, job);
	if (reason == nullptr)
		reason = put_sink(state, job, bound, state->memory.known);
	if (reason != nullptr)
	{
		/* nothing was submitted: the figures are those of another */
		state->job = nullptr;
		*fallback = FALLBACK_ERROR_FLAG;
		return reason;
	}
	memcpy(arena_at<char>(area), bound, program->size);
	pfree(bound);
	at = area + program_bytes + skip_bytes;
	for (int i = 0; i < program->ncursors; i++)
	{
		job->cursors[i] = source_cursor(state->sources[i], at, source_has_positions(state->plan, i));
		at += source_bytes(state->sources[i]);
	}
	patterns_to_job(state, at, job);
	at += patterns_bytes(state);
	job->maps = 0;
	job->nmaps = 0;
	if (state->plan->nmaps > 0)
		maps_to_job(state, at, job);
	job->ncursors = program->ncursors;
	job->device = wanted_device(state);
	job->device_required = setting_require == REQUIRE_CUDA;
	job->transfer = wanted_transfer();
	job->ran_on = Device::Auto;
	job->device_refusal[0] = '\0';
	job->threads = setting_threads;
	job->unit_rows = state->unit_rows;
	job->result_capacity = state->buffer_rows;
	job->skip_units = 0;
	job->resumes = rows && state->emitted;
	job->skip_bytes = 0;
	job->row_limit = static_cast<uint64>(limit);
	job->expected_pairs = static_cast<uint64>(Min(Max(state->plan->pairs, 0.0), 1e18));
	job->count_groups = part->count_groups;
	put_stage(job, second, area + stages);
	put_order(state->plan, norder, job);
	if (rows && !state->full && norder == 0 && state->sink == nullptr && state->sources[0]->set == 0)
	{
		job->skip_units = area + program_bytes;
		memset(arena_at<char>(area + program_bytes), 0, skip_bytes);
		memcpy(arena_at<char>(area + program_bytes), state->units_done, (state->nunits + 7) / 8 + 1);
		job->skip_bytes = skip_bytes;
	}
	for (int i = 0; i < nbuffers; i++)
	{
		job->buffers[i].state.store(static_cast<uint32>(BufferState::Free), std::memory_order_relaxed);
		job->buffers[i].offset = buffer_offset(state, i);
	}
	state->buffer = -1;
	state->units_before = state->next_unit = 0;
	engine_submit(state->session, nbuffers);
	return nullptr;
}

/*
 * The group filter cannot be run, or has flagged an error: a parameter or a sum of more than 64 bits, or what HAVING itself raises. All groups are
 * asked for, once more, and PostgreSQL evaluates HAVING. False if there is none.
 */
static bool
submit_unfiltered(GpuvmScanState *state, const char **failure, int *fallback)
{
	if (state->unfiltered || state->part->plan->group_filter == nullptr)
		return false;
	end_job(state, false);
	state->unfiltered = state->figures.unfiltered = true;
	describe_parts(state);
	*failure = submit(state, START_WAIT_MS, fallback);
	return true;
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

static void
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

static void
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
static void
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
static void
check_device(GpuvmScanState *state)
{
	const Job  *job = state->job;

	if (setting_require != REQUIRE_CUDA || job->ran_on == Device::Cuda)
		return;
	stats_count_refusal();
	require_violation("No device runs the program",
					  job->device_refusal[0] != '\0' ? engine_text(job->device_refusal) : engine_text(job->failure));
}

/* -- rows ------------------------------------------------------------------------------------ */

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
static bool
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
static int64
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
static FullBuffer
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
static void
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

/* -- groups ------------------------------------------------------------------------------------ */

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
