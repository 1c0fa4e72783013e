/* windows.cc: window functions of a stage, whose rows are in a sorted set: a job for each window (engine/abi.h). */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "common/int.h"
#include "datatype/timestamp.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
}

#include <cstring>

#include "executor/scan_state.h"
#include "pg/numeric_scaled.h"
#include "pg/settings.h"
#include "pg/shmem.h"
#include "planner/plan_windows.h"

namespace gpuvm {

/* What PostgreSQL has to say something about: an offset that is null, negative, or not to be had as an integer. */
constexpr const char *BAD_VALUE = "an offset or a default of a window function is left to PostgreSQL";

void
windows_begin(GpuvmScanState *state)
{
	state->window_states = ExecInitExprList(state->plan->window_values, &state->css.ss.ps);
}

/* -- values ---------------------------------------------------------------------------------- */

/* False: it is null, or raises an error. */
static bool
window_value(GpuvmScanState *state, int number, Oid *type, Datum *value)
{
	const Node *expr = static_cast<const Node *>(list_nth(state->plan->window_values, number));
	ExprState  *expr_state = static_cast<ExprState *>(list_nth(state->window_states, number));
	bool		isnull;
	int			sqlstate;

	*type = exprType(expr);
	return evaluate_leaf(expr, expr_state, state->css.ss.ps.ps_ExprContext, value, &isnull, &sqlstate) && !isnull;
}

static bool
integer_value(GpuvmScanState *state, int number, int64 *value)
{
	Oid			type;
	Datum		datum;

	if (!window_value(state, number, &type, &datum))
		return false;
	switch (type)
	{
		case INT2OID: *value = DatumGetInt16(datum); return true;
		case INT4OID: *value = DatumGetInt32(datum); return true;
		case INT8OID: *value = DatumGetInt64(datum); return true;
		default: return false;
	}
}

/* Times that are no whole days are no distance between dates; days are not of one length where zones are. */
static bool
interval_distance(const PlanWindow &window, const Interval *interval, int64 *value)
{
	if (interval->month != 0 || interval->day < 0 || interval->time < 0)
		return false;
	if (window.unit == RangeUnit::Date)
	{
		*value = interval->day;
		return interval->time == 0;
	}
	if (interval->day != 0 && window.zone)
		return false;
	return !pg_mul_s64_overflow(interval->day, USECS_PER_DAY, value) &&
		!pg_add_s64_overflow(interval->time, *value, value);
}

/*
 * Between the integers that numerics of this scale are, a distance of no whole one is as far as the one below, or, where it is what a row is
 * at least away, as the one above.
 */
static bool
numeric_distance(Datum datum, int scale, bool at_least, int64 *value)
{
	const Datum least = NumericGetDatum(int64_to_numeric(0));
	const Datum most = NumericGetDatum(int64_to_numeric(PG_INT64_MAX));

	if (numeric_is_nan(DatumGetNumeric(datum)) || numeric_is_inf(DatumGetNumeric(datum)) || scale > SCALED_MAX_SCALE)
		return false;
	datum = DirectFunctionCall2(numeric_mul, datum, NumericGetDatum(int64_to_numeric(scaled_pow10[scale])));
	datum = DirectFunctionCall1(at_least ? numeric_ceil : numeric_floor, datum);
	if (!DatumGetBool(DirectFunctionCall2(numeric_lt, datum, most)) ||
		DatumGetBool(DirectFunctionCall2(numeric_lt, datum, least)))
		return false;
	*value = DatumGetInt64(DirectFunctionCall1(numeric_int8, datum));
	return true;
}

static bool
frame_offset(GpuvmScanState *state, const PlanWindow &window, Type key, bool is_end, int64 *value)
{
	const int	number = is_end ? window.end_value : window.start_value;
	const bool	at_least = is_end ? window.end == FrameBound::Preceding : window.start == FrameBound::Following;
	Oid			type;
	Datum		datum;
	float8		distance;

	*value = 0;
	if (number < 0)
		return true;
	if (!window_value(state, number, &type, &datum))
		return false;
	switch (type)
	{
		case FLOAT8OID:
			distance = DatumGetFloat8(datum);
			memcpy(value, &distance, sizeof(distance));
			return key == Type::F64 && distance >= 0;
		case NUMERICOID:
			return window.scale >= 0 && numeric_distance(datum, window.scale, at_least, value);
		case INTERVALOID:
			return window.unit != RangeUnit::Number && interval_distance(window, DatumGetIntervalP(datum), value);
		default:
			if (window.mode == FrameMode::Range && (type_is_float(key) || window.scale >= 0))
				return false;
			return integer_value(state, number, value) && *value >= 0;
	}
}

/* -- functions --------------------------------------------------------------------------------- */

/* What lag and lead give where there is no row. */
static bool
put_instead(GpuvmScanState *state, const PlanWindowFunction &from, WindowFunction *to)
{
	Oid			type;
	Datum		datum;

	if (!window_value(state, from.instead, &type, &datum))
		return false;
	to->has_default = 1;
	if (from.scale < 0)
		to->default_value = param_value(datum, false, from.type).value;
	return from.scale < 0 || numeric_to_scaled(DatumGetPointer(datum), from.scale, &to->default_value);
}

static bool
put_function(GpuvmScanState *state, const PlanWindowFunction &from, WindowFunction *to)
{
	auto		or_none = [](int n) { return n < 0 ? WINDOW_NONE : static_cast<uint32>(n); };

	*to = WindowFunction{};
	to->fn = from.fn;
	to->type = from.type;
	to->column = or_none(from.column);
	to->high = WINDOW_NONE;
	to->filter = or_none(from.filter);
	to->map = or_none(from.map);
	to->number = 1;
	if (from.number >= 0 && !integer_value(state, from.number, &to->number))
		return false;
	if ((from.fn == WindowFn::Ntile || from.fn == WindowFn::NthValue) && to->number < 1)
		return false;
	return from.instead < 0 || put_instead(state, from, to);
}

static bool
put_window(GpuvmScanState *state, const PlanWindow &window, JobWindow *to)
{
	const ScanPlan *plan = state->plan;
	const Type	key = window.norder > 0 ? state->part->types[plan->order[window.npartition].column] : Type::None;
	ListCell   *lc;

	to->npartition = window.npartition;
	to->norder = window.norder;
	to->nfunctions = list_length(window.functions);
	for (int i = 0; i < window.npartition + window.norder; i++)
		to->keys[i] = job_order_key(plan->order[i]);
	to->frame = WindowFrame{window.mode, window.start, window.end, window.unit, 0, 0, 0};
	if (!frame_offset(state, window, key, false, &to->frame.start_offset) ||
		!frame_offset(state, window, key, true, &to->frame.end_offset))
		return false;
	foreach(lc, window.functions)
	{
		const PlanWindowFunction function = plan_window_function(lfirst_node(List, lc));

		if (!put_function(state, function, &to->functions[foreach_current_index(lc)]))
			return false;
	}
	return true;
}

/* -- jobs ---------------------------------------------------------------------------------------- */

/* NULL, or why the window was not computed. */
static const char *
run_window(GpuvmScanState *state, SetSink *sink, const PlanWindow &window, uint32 first, int *fallback)
{
	const uint32 ncolumns = list_length(window.functions);
	const uint64 window_bytes = align_up(sizeof(JobWindow), 64);
	const uint64 known_bytes = align_up(sizeof(SetColumn) * ncolumns, 64);
	const uint64 map_bytes = state->plan->nmaps > 0 ? maps_bytes(state) : 0;
	const uint64 area = engine_area(state->session, window_bytes + known_bytes + map_bytes);
	JobWindow  *to;				/* before gpuvmd can write to it */
	Job		   *job;
	const char *failure;

	*fallback = FALLBACK_MEMORY;
	if (area == 0)
		return "no room in gpuvm.memory for a window's maps";
	*fallback = FALLBACK_ERROR_FLAG;
	to = static_cast<JobWindow *>(palloc0(sizeof(JobWindow)));
	to->set = sink->set;
	to->known = area + window_bytes;
	if (!put_window(state, window, to))
		return BAD_VALUE;
	memcpy(arena_at<char>(area), to, sizeof(JobWindow));
	pfree(to);
	job = engine_job(state->session);
	job->kind = JobKind::Window;
	job->window = area;
	job->program_hash = state->part->plan->program->hash;
	job->maps = 0;
	job->nmaps = 0;
	if (state->plan->nmaps > 0)
		maps_to_job(state, area + window_bytes + known_bytes, job);
	failure = put_text_orders(state->plan, job);
	if (failure != nullptr)
		return failure;
	job->ncursors = job->norder = job->npatterns = job->nstages = job->nparams = 0;
	job->sink.set = 0;
	job->threads = setting_threads;
	job->device = wanted_device(state);
	job->device_required = setting_require == REQUIRE_CUDA;
	job->device_refusal[0] = '\0';
	engine_submit(state->session, 0);
	*fallback = FALLBACK_ENGINE_AWAY;
	if (engine_wait(state->session) == ENGINE_LOST)
		return "gpuvmd has gone";
	*fallback = FALLBACK_ENGINE_FAILED;
	if (job->state.load(std::memory_order_acquire) != static_cast<uint32>(JobState::Done))
		return engine_text(job->failure);
	*fallback = FALLBACK_ERROR_FLAG;
	if (job->errors != 0)
		return "a window function is out of range";
	memcpy(&sink->known[first], arena_at<char>(area + window_bytes), sizeof(SetColumn) * ncolumns);
	*fallback = FALLBACK_ENGINE_FAILED;
	if (!sink_can_be(sink, first, ncolumns))
		return "a result set that cannot be";
	state->figures.engine_ns += job->engine_ns;
	return nullptr;
}

const char *
windows_run(GpuvmScanState *state, SetSink *sink, int *fallback)
{
	uint32		first = sink->ncolumns;
	const char *failure = nullptr;
	ListCell   *lc;

	foreach(lc, state->plan->windows)
	{
		const PlanWindow window = plan_window(lfirst_node(List, lc));

		failure = run_window(state, sink, window, first, fallback);
		if (failure != nullptr)
			break;
		first += list_length(window.functions);
	}
	return failure;
}

}  // namespace gpuvm
