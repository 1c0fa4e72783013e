/*
 * derived_set.cc: a child's rows that stay in gpuvmd. Where the child is a program of ours, or several below
 * UNION ALL, its rows or groups become a result set (engine/abi.h) that the reader's cursor names, and PostgreSQL
 * never sees them. Where that cannot be done they go as any child's do
 * (derived.cc).
 */
#include "pg/pg.h"

extern "C" {
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
}

#include "executor/scan_state.h"
#include "executor/set_arms.h"
#include "pg/shmem.h"
#include "pg/startup.h"
#include "planner/plan_windows.h"
#include "tablet/dictionary.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

/* -- which programs the child's rows come from --------------------------------------------- */

bool
list_arms(PlanState *ps, List **arms)
{
	AppendState *append = reinterpret_cast<AppendState *>(ps);

	check_stack_depth();
	if (is_gpuvm_scan(ps->plan))
	{
		*arms = lappend(*arms, ps);
		return true;
	}
	if (!IsA(ps, AppendState))
		return false;
	for (int i = 0; i < append->as_nplans; i++)
	{
		if (!list_arms(append->appendplans[i], arms))
			return false;
	}
	return true;
}

/* Parameters that have changed reach the programs, as they would with the first row. */
static void
pass_parameters(PlanState *ps)
{
	if (ps->chgParam != nullptr)
		ExecReScan(ps);
	if (IsA(ps, AppendState))
	{
		for (int i = 0; i < reinterpret_cast<AppendState *>(ps)->as_nplans; i++)
			pass_parameters(reinterpret_cast<AppendState *>(ps)->appendplans[i]);
	}
}

/* -- what they give ------------------------------------------------------------------------ */

/* That of a text in the statement, of which a program of rows gives code 0 (set_codes.cc). */
static bool
is_constant(const ScanPlan *plan, const PlanMap *map)
{
	return plan->kind == SCAN_ROWS && map->kind == MapKind::Constant && IsA(map->expr, Const);
}

static ArmValue
value_of_column(const ScanPlan *plan, int column)
{
	const OutputForm &form = plan->parts[0].outputs[column];

	switch (form.kind)
	{
		case OutputKind::Map:
			return is_constant(plan, &plan->maps[form.map]) ? ArmValue{column, -1, OutputKind::Map, 0} : NO_VALUE;
		case OutputKind::Plain:
		case OutputKind::Dictionary:
		case OutputKind::Variable:
			return ArmValue{column, -1, form.kind, 0};
		case OutputKind::Numeric:
			return form.shown >= 0 ? NO_VALUE : ArmValue{column, -1, OutputKind::Numeric, form.scale};
		case OutputKind::Wide:
			return form.shown >= 0 ? NO_VALUE : ArmValue{column, form.map, OutputKind::Numeric, form.scale};
		default:
			return NO_VALUE;
	}
}

/* As finalize_aggregate() ends it, where that is nothing more than the one part's value. */
static ArmValue
value_of_aggregate(const ScanPlan *plan, const List *final)
{
	const PlanPart *part = &plan->parts[0];
	const int	column = list_nth_int(final, FINAL_PARTS);
	const OutputForm &form = part->outputs[column];

	if (list_length(final) != FINAL_PARTS + 1)
		return NO_VALUE;
	switch (static_cast<FinalKind>(linitial_int(final)))
	{
		case FinalKind::Direct:
			return value_of_column(plan, column);
		case FinalKind::SumToInt8:
		case FinalKind::SumToFloat8:
			return ArmValue{column, -1, OutputKind::Plain, 0};
		case FinalKind::SumToNumeric:
			return ArmValue{column, -1, OutputKind::Numeric, form.kind == OutputKind::Numeric ? form.scale : 0};
		default:
			return NO_VALUE;
	}
}

ArmValue
scan_value(const GpuvmScanState *scan, AttrNumber attnum)
{
	const PlanPart *part = scan->part->plan;
	const Var  *raw;
	ListCell   *lc;

	if (scan->plan->kind == SCAN_ROWS)
		return attnum > part->noutputs ? NO_VALUE : value_of_column(scan->plan, attnum - 1);
	if (attnum > list_length(scan->plan->exprs))
		return NO_VALUE;
	raw = static_cast<const Var *>(list_nth(scan->plan->exprs, attnum - 1));
	if (!IsA(raw, Var))
		return NO_VALUE;
	foreach(lc, part->key_columns)
	{
		if (lfirst_int(lc) == raw->varattno - 1)
			return value_of_column(scan->plan, foreach_current_index(lc));
	}
	foreach(lc, part->final_columns)
	{
		if (lfirst_int(lc) == raw->varattno - 1)
			return value_of_aggregate(scan->plan, list_nth_node(List, part->finals, foreach_current_index(lc)));
	}
	return NO_VALUE;
}

ChildColumn
column_form(const ScanSource *source, uint32 i)
{
	return child_column(list_nth_node(List, source->derived->columns, attribute_of(source->columns[i].attnum) - 1));
}

/* Of a column of the reader's cursor, of this form: what of the arm's results the set has there. */
static bool
sink_column(const GpuvmScanState *arm, const ArmValue &value, const ChildColumn &form, AttrNumber attnum,
			SinkColumn *to)
{
	const Type	type = value.column < 0 ? Type::None : arm->part->types[value.column];
	const Type	stored = type == Type::I128 ? Type::I64 : type;
	SinkForm	part = SinkForm::Value;
	int			column = value.column;

	if (column < 0 || stored != form.type)
		return false;
	switch (form.form)
	{
		case ValueForm::Plain:
			if (value.kind != OutputKind::Plain)
				return false;
			break;
		case ValueForm::Dictionary:
			/* plain: a null */
			if (value.kind != OutputKind::Dictionary && value.kind != OutputKind::Map && value.kind != OutputKind::Plain)
				return false;
			break;
		case ValueForm::Variable:
			if (value.kind != OutputKind::Variable)
				return false;
			break;
		case ValueForm::Numeric:
			if (value.kind != OutputKind::Numeric || value.scale != form.scale || (value.high >= 0 && !form.wide))
				return false;
			if (value.high >= 0)
				column = is_high_half(attnum) ? value.high : column;
			else if (form.wide)
				part = is_high_half(attnum) ? SinkForm::High : SinkForm::Low;
			break;
		default:
			return false;
	}
	*to = SinkColumn{static_cast<uint16_t>(column), part};
	return true;
}

/* Does the scan hand on what its only program gives, all of it, and nothing else? */
static bool
gives_results(const GpuvmScanState *scan)
{
	const ScanPlan *plan = scan->plan;

	if (program_count(plan) != 1 || scan->css.ss.ps.qual != nullptr || plan->parts[0].count_groups ||
		plan->fetches != NIL || (plan->limit > 0 && plan->norder == 0))
		return false;
	/* what PostgreSQL evaluates takes rows of its own */
	if (scan->computes || (plan->kind != SCAN_ROWS && scan->having_rest != nullptr))
		return false;
	return plan->parts[0].group_filter == nullptr || !filter_has_failed(scan);
}

/* The result column whose codes or references a window function's column has; its number, from 0, among these columns. */
static int
argument_of_window(const ScanPlan *plan, int column)
{
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, plan->windows)
	{
		foreach(lc2, plan_window(lfirst_node(List, lc)).functions)
		{
			if (column-- == 0)
				return Max(plan_window_function(lfirst_node(List, lc2)).column, 0);
		}
	}
	return 0;
}

/* The columns of a set that window functions are appended to: all that the program hands on, in its order. */
static bool
fill_window_sink(const GpuvmScanState *arm, const ScanSource *source, SetSink *sink)
{
	const ScanPlan *plan = arm->plan;
	const uint32 nprogram = plan_program_columns(plan);

	if (sink->several || source->ncolumns != nprogram + plan_window_columns(plan))
		return false;
	sink->ncolumns = nprogram;
	for (uint32 i = 0; i < source->ncolumns; i++)
	{
		const AttrNumber attnum = source->columns[i].attnum;
		const ChildColumn form = column_form(source, i);

		if (attnum != static_cast<int>(i) + 1)
			return false;
		if (i >= nprogram)
			sink->columns[i].result = static_cast<uint16_t>(argument_of_window(plan, i - nprogram));
		else if (!sink_column(arm, scan_value(arm, attnum), form, attnum, &sink->columns[i]))
			return false;
		sink->references = sink->references || form.form == ValueForm::Variable;
	}
	return true;
}

/* The columns of the set, of the arm's results. */
static bool
fill_sink(const GpuvmScanState *arm, bool several, const ScanSource *source, SetSink *sink)
{
	if (!gives_results(arm) || arm->css.ss.ps.ps_ProjInfo != nullptr || source->ncolumns > PROGRAM_MAX_COLUMNS)
		return false;
	sink->several = several;
	if (arm->plan->windows != NIL)
		return fill_window_sink(arm, source, sink);
	sink->ncolumns = source->ncolumns;
	for (uint32 i = 0; i < source->ncolumns; i++)
	{
		const AttrNumber attnum = source->columns[i].attnum;
		const ChildColumn form = column_form(source, i);

		if (!sink_column(arm, scan_value(arm, attribute_of(attnum)), form, attnum, &sink->columns[i]))
			return false;
		sink->references = sink->references || form.form == ValueForm::Variable;
	}
	return true;
}

/* -- the reader ---------------------------------------------------------------------------- */

bool
can_read_set(const GpuvmScanState *state, int cursor)
{
	for (int i = 0; i < program_count(state->plan); i++)
	{
		const Program *program = state->plan->parts[i].program;

		for (int k = 0; k < program->nops; k++)
		{
			const Op   &op = program->ops()[k];

			if (op.p3 == cursor && (op.opcode == Opcode::Rowid || reads_text(op)))
				return false;
		}
	}
	return true;
}

/* What is known of the set is what is known of the source's columns. */
static void
take_known(ScanSource *source, const SetSink *sink)
{
	for (uint32 i = 0; i < source->ncolumns; i++)
	{
		const uint16_t form = source->columns[i].flags & (COLUMN_VARIABLE | COLUMN_WIDE);

		source->columns[i].min = sink->known[i].min;
		source->columns[i].max = sink->known[i].max;
		source->columns[i].null_count = sink->known[i].null_count;
		source->columns[i].flags = sink->known[i].flags | form;
		source->columns[i].exp_hi = sink->known[i].exp_hi;
		source->columns[i].exp_lo = sink->known[i].exp_lo;
	}
	source->set_tablets = sink->tablets;
}

/* For EXPLAIN ANALYZE: UNION ALL has passed the rows on. True: the scan is below it. */
static bool
count_rows(PlanState *ps, const GpuvmScanState *scan, uint64 nrows)
{
	bool		below = false;

	if (is_gpuvm_scan(ps->plan))
		return ps == &scan->css.ss.ps;
	for (int i = 0; i < reinterpret_cast<AppendState *>(ps)->as_nplans; i++)
		below = count_rows(reinterpret_cast<AppendState *>(ps)->appendplans[i], scan, nrows) || below;
	if (below && ps->instrument != nullptr)
	{
		InstrStartNode(ps->instrument);
		InstrStopNode(ps->instrument, static_cast<double>(nrows));
	}
	return below;
}

/* Runs the arm's program; its rows are in the set then. */
static bool
run_arm(GpuvmScanState *state, PlanState *child, GpuvmScanState *scan, SetSink *sink)
{
	Instrumentation *instrument = scan->css.ss.ps.instrument;
	bool		ran;

	scan->space = state->space;
	if (instrument != nullptr)
		InstrStartNode(instrument);
	ran = run_into_set(scan, sink);
	if (instrument != nullptr)
		InstrStopNode(instrument, ran ? static_cast<double>(sink->nrows) : 0.0);
	if (!ran)
		return false;
	count_rows(child, scan, sink->nrows);
	return true;
}

SetOutcome
derived_set(GpuvmScanState *state, ScanSource *source, PlanState *child)
{
	const int	natts = list_length(source->derived->columns);
	SetSink    *sinks;
	List	   *arms = NIL;
	ListCell   *lc;
	MemoryContext mine;
	uint32		set = 0;

	if (natts == 0 || arena_header()->result_limit.load() == 0 || !list_arms(child, &arms))
		return SET_NOT_TRIED;
	sinks = static_cast<SetSink *>(palloc0(sizeof(SetSink) * list_length(arms)));
	foreach(lc, arms)
	{
		GpuvmScanState *arm = static_cast<GpuvmScanState *>(lfirst(lc));

		if (!fill_sink(arm, list_length(arms) > 1, source, &sinks[foreach_current_index(lc)]))
			return SET_NOT_TRIED;
	}
	if (!agree_on_codes(source, arms, sinks))
		return SET_NOT_TRIED;

	mine = MemoryContextSwitchTo(child->state->es_query_cxt);
	pass_parameters(child);
	MemoryContextSwitchTo(mine);
	begin_codes(source);
	foreach(lc, arms)
	{
		GpuvmScanState *arm = static_cast<GpuvmScanState *>(lfirst(lc));
		SetSink    *sink = &sinks[foreach_current_index(lc)];
		bool		done;

		sink->set = set;
		begin_arm_codes(source, arm, sink);
		done = run_arm(state, child, arm, sink) && take_codes(source, arm, sink);
		if (set == 0 && sink->set != 0)
		{
			/* from now on whoever closes the source drops it */
			set = source->set = sink->set;
			source->set_session = state->space->session;
		}
		if (!done)
		{
			source_drop_set(source);
			return sink->gave_way ? SET_GAVE_WAY : SET_FAILED;
		}
		source->nrows += sink->nrows;
	}
	/* of all arms' rows; the columns stay what they were where one of them fails */
	take_known(source, &sinks[list_length(arms) - 1]);
	foreach(lc, arms)
	{
		ScanFigures *figures = &static_cast<GpuvmScanState *>(lfirst(lc))->figures;

		figures->stayed = true;
		figures->rows_stayed += sinks[foreach_current_index(lc)].nrows;
	}
	return SET_DONE;
}

}  // namespace gpuvm
