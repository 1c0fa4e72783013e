/* run_submit.cc: the job that gpuvmd runs for a scan: what it is bound to, and what becomes of its results. */
#include "pg/pg.h"

extern "C" {
#include "executor/nodeSubplan.h"
#include "nodes/execnodes.h"
#include "utils/memutils.h"
}

#include <cstring>

#include "executor/run_internal.h"
#include "executor/set_arms.h"
#include "pg/settings.h"
#include "pg/shmem.h"

namespace gpuvm {

/* How long one that must run on a device waits for those of a gpuvmd that has just been started. */
constexpr int DEVICE_WAIT_MS = 10000;

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

/* How many keys the job at hand is sorted by. */
int
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

bool
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

uint64
buffer_offset(const GpuvmScanState *state, int number)
{
	return state->memory.buffers + state->memory.buffer_bytes * number;
}

/* Fills the session's job and submits it; NULL, or the reason why not. */
const char *
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
bool
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

}  // namespace gpuvm
