/*
 * groups.cc: from the groups that programs gave to rows.
 *
 * Keys, aggregates and GROUPING()s are put into a slot of raw columns, from which HAVING and the output
 * are evaluated. A key that a grouping set does not have is null there.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
}

#include "executor/scan_state.h"
#include "pg/numeric_scaled.h"
#include "vm/text_part.h"

namespace gpuvm {

/* The slot of raw columns, and the projection from it to the scan tuple. */
static void
raw_begin(GpuvmScanState *state)
{
	const ScanPlan *plan = state->plan;
	TupleDesc	desc = CreateTemplateTupleDesc(list_length(plan->raw_types));
	List	   *tlist = NIL;
	ListCell   *lc;

	foreach(lc, plan->raw_types)
	{
		int			i = foreach_current_index(lc);

		TupleDescInitEntry(desc, i + 1, nullptr, lfirst_oid(lc), list_nth_int(plan->raw_typmods, i), 0);
		TupleDescInitEntryCollation(desc, i + 1, list_nth_oid(plan->raw_collations, i));
	}
	state->computes = plan->stage && plan->having != NIL;
	foreach(lc, plan->exprs)
		state->computes = state->computes || (plan->stage && !IsA(lfirst(lc), Var));
	foreach(lc, plan->exprs)
		tlist = lappend(tlist, makeTargetEntry(static_cast<Expr *>(lfirst(lc)), foreach_current_index(lc) + 1, nullptr, false));
	state->raw_slot = ExecInitExtraTupleSlot(state->css.ss.ps.state, desc, &TTSOpsVirtual);
	state->raw_project = ExecBuildProjectionInfo(tlist, state->css.ss.ps.ps_ExprContext, state->css.ss.ss_ScanTupleSlot,
												 &state->css.ss.ps, desc);
}

/* -- rows and groups of raw columns ------------------------------------------------------------- */

struct RawRow
{
	GpuvmScanState *state;
	ExprState  *having;
	TupleTableSlot *output;
};

static void
compute_output(void *argument)
{
	RawRow	   *row = static_cast<RawRow *>(argument);

	if (ExecQual(row->having, row->state->css.ss.ps.ps_ExprContext))
		row->output = ExecProject(row->state->raw_project);
}

/* What PostgreSQL computes between stages it may not come to in its own plan. */
bool
raw_output(GpuvmScanState *state, TupleTableSlot *raw, ExprState *having, TupleTableSlot **output)
{
	RawRow		row = {state, having, nullptr};
	int			sqlstate = 0;

	state->css.ss.ps.ps_ExprContext->ecxt_scantuple = raw;
	if (!state->computes)
		compute_output(&row);
	else if (!guarded(compute_output, &row, &sqlstate))
	{
		state->mode = run_fall_back(state, FALLBACK_ERROR_FLAG,
									psprintf("an expression raises SQLSTATE %s", unpack_sql_state(sqlstate)));
		return false;
	}
	*output = row.output;
	return true;
}

void
output_begin(GpuvmScanState *state)
{
	raw_begin(state);
	state->nvalues = list_length(state->plan->raw_types);
	state->row_slot = state->raw_slot;
	state->having = ExecInitQual(state->plan->having, &state->css.ss.ps);
}

/* Keys and aggregates are raw columns. */
void
groups_begin(GpuvmScanState *state)
{
	ScanPlan   *plan = state->plan;
	int			nraw = list_length(plan->raw_types);
	List	   *rest = NIL;
	ListCell   *lc;

	raw_begin(state);
	state->is_count = static_cast<bool *>(palloc0(sizeof(bool) * Max(nraw, 1)));
	foreach(lc, plan->counts)
		state->is_count[lfirst_int(lc)] = true;
	state->having = ExecInitQual(plan->having, &state->css.ss.ps);
	foreach(lc, plan->having)
	{
		if (!list_member_int(plan->filtered, foreach_current_index(lc)))
			rest = lappend(rest, lfirst(lc));
	}
	state->having_rest = ExecInitQual(rest, &state->css.ss.ps);
}

/* -- which rows of the parts are the next group ------------------------------------------ */

void
groups_start(GpuvmScanState *state)
{
	state->set_first = state->set_parts = 0;
	state->merge = nullptr;
}

/* Goes to the next grouping set; false when that was the last. */
static bool
next_set(GpuvmScanState *state)
{
	const ScanPlan *plan = state->plan;
	int			first = state->set_first + state->set_parts;
	int			next = first + 1;

	if (first >= plan->nparts)
		return false;
	while (next < plan->nparts && plan->parts[next].set == plan->parts[first].set)
		next++;
	if (state->merge != nullptr)
		pfree(state->merge->rows);
	state->set_first = first;
	state->set_parts = next - first;
	state->merge = next > first + 1 ? merge_groups(state->group_context, &state->parts[first], next - first) : nullptr;
	state->group = 0;
	state->next_row = GroupRow{0, 0};
	return true;
}

/* The rows of the set's next group, one for each of its parts; NULL at the end. */
static const GroupRow *
next_group(GpuvmScanState *state, GroupRow *only)
{
	const ScanPart *part;

	for (;;)
	{
		if (state->merge != nullptr && state->group < state->merge->ngroups)
			return &state->merge->rows[state->group++ * state->set_parts];
		part = &state->parts[state->set_first];
		while (state->merge == nullptr && state->set_parts == 1 && state->next_row.chunk < part->nchunks)
		{
			if (state->next_row.row < part->chunks[state->next_row.chunk]->nrows)
			{
				*only = state->next_row;
				state->next_row.row++;
				return only;
			}
			state->next_row = GroupRow{state->next_row.chunk + 1, 0};
		}
		if (!next_set(state))
			return nullptr;
	}
}

/* -- values ------------------------------------------------------------------------------- */

static Datum
packed_datum(int64 packed)
{
	char		bytes[TEXT_PART_BYTES];
	int			len = unpack_text(packed, bytes);

	return PointerGetDatum(cstring_to_text_with_len(bytes, len));
}

/* A key with the decimals that all of the group's rows show (groups_show_alike). */
static Datum
as_shown(const ScanPart *part, const OutputForm &form, uint32 row, Datum numeric)
{
	return form.shown < 0 ? numeric : shown_datum(numeric, reinterpret_cast<const int32 *>(part->views[form.shown].values)[row]);
}

/* Of a result column that is a group's key, or an aggregate as it is. */
static Datum
group_datum(const GpuvmScanState *state, const ScanPart *part, int column, uint32 row, bool *isnull)
{
	const ColumnView &view = part->views[column];
	const OutputForm *form = &part->plan->outputs[column];

	*isnull = view_is_null(view, row);
	if (*isnull)
		return (Datum) 0;
	switch (form->kind)
	{
		case OutputKind::Plain:
			break;
		case OutputKind::Numeric:
			return as_shown(part, *form, row, scaled_to_numeric(reinterpret_cast<const int64 *>(view.values)[row], form->scale));
		case OutputKind::Span:
			return span_datum(reinterpret_cast<const int64 *>(view.values)[row], form->scale != 0);
		case OutputKind::Wide:
			return as_shown(part, *form, row, wide_datum(view, part->views[form->map], row, form->scale));
		case OutputKind::Variable:
			return reinterpret_cast<const Datum *>(view.values)[row];	/* run.cc made it one */
		case OutputKind::Packed:
			return packed_datum(reinterpret_cast<const int64 *>(view.values)[row]);
		case OutputKind::Map:
			{
				const int32 code = reinterpret_cast<const int32 *>(view.values)[row];
				const MapData *map = state->maps[form->map];

				if (map->kind == MapKind::Rank && is_tied(map, code))
					return tied_datum(state, ties_of_column(state->plan, part->plan, column), part, column, row, code);
				return output_datum(state, part, column, code);
			}
		default:
			return output_datum(state, part, column, reinterpret_cast<const int32 *>(view.values)[row]);
	}
	return view_datum(view, row);
}

/* The result column of an aggregate that is a code or a reference; -1 if it is none. */
static int
code_column(const PlanPart *plan, const List *final)
{
	int			column = list_nth_int(final, FINAL_PARTS);

	if (static_cast<FinalKind>(linitial_int(final)) != FinalKind::Direct ||
		plan->outputs[column].kind == OutputKind::Plain || plan->outputs[column].kind == OutputKind::Numeric)
		return -1;
	return column;
}

static bool
shows_alike(const ScanPart *part, uint32 row)
{
	const PlanPart *plan = part->plan;
	ListCell   *lc;

	for (int i = 0; i < plan->noutputs; i++)
	{
		const int	shown = plan->outputs[i].shown;

		if (shown >= 0 && !view_is_null(part->views[shown], row) &&
			reinterpret_cast<const int32 *>(part->views[shown].values)[row] != reinterpret_cast<const int32 *>(part->views[shown + 1].values)[row])
			return false;
	}
	foreach(lc, plan->finals)
	{
		if (!shows_one_scale(lfirst_node(List, lc), part->views, row))
			return false;
	}
	return true;
}

bool
groups_show_alike(ScanPart *part)
{
	const PlanPart *plan = part->plan;
	bool		differs = false;
	ListCell   *lc;

	for (int i = 0; i < plan->noutputs; i++)
		differs = differs || plan->outputs[i].shown >= 0;
	foreach(lc, plan->finals)
		differs = differs || static_cast<FinalKind>(linitial_int(lfirst_node(List, lc))) == FinalKind::ShownExtreme;
	if (!differs)
		return true;
	for (uint32 i = 0; i < part->nchunks; i++)
	{
		view_chunk(part, part->chunks[i]);
		for (uint32 row = 0; row < part->chunks[i]->nrows; row++)
		{
			if (!shows_alike(part, row))
				return false;
		}
	}
	return true;
}

static void
put_keys(const GpuvmScanState *state, const ScanPart *part, uint32 row, TupleTableSlot *raw)
{
	ListCell   *lc;

	foreach(lc, part->plan->key_columns)
		raw->tts_values[lfirst_int(lc)] = group_datum(state, part, foreach_current_index(lc), row, &raw->tts_isnull[lfirst_int(lc)]);
}

static void
put_aggregates(const GpuvmScanState *state, const ScanPart *part, uint32 row, TupleTableSlot *raw)
{
	ListCell   *lc;
	ListCell   *to;

	forboth(lc, part->plan->finals, to, part->plan->final_columns)
	{
		const List *final = lfirst_node(List, lc);
		int			i = lfirst_int(to);
		int			code = code_column(part->plan, final);

		raw->tts_values[i] = code >= 0 ? group_datum(state, part, code, row, &raw->tts_isnull[i])
			: finalize_aggregate(final, part->views, part->plan->outputs, row, &raw->tts_isnull[i]);
	}
}

/* Those of a part that does not have the group: no row of it passed its filter. */
static void
put_empty(const GpuvmScanState *state, const ScanPart *part, TupleTableSlot *raw)
{
	ListCell   *to;

	foreach(to, part->plan->final_columns)
	{
		raw->tts_values[lfirst_int(to)] = Int64GetDatum(0);
		raw->tts_isnull[lfirst_int(to)] = !state->is_count[lfirst_int(to)];
	}
}

/* Fills the raw columns from the rows of the set's parts. */
static void
put_group(GpuvmScanState *state, const GroupRow *rows, TupleTableSlot *raw)
{
	int			nraw = raw->tts_tupleDescriptor->natts;
	List	   *groupings = state->parts[state->set_first].plan->groupings;
	bool		keyed = false;
	ListCell   *lc;

	/* keys that the set does not have stay so */
	memset(raw->tts_isnull, true, sizeof(bool) * nraw);
	memset(raw->tts_values, 0, sizeof(Datum) * nraw);
	for (int i = 0; i < state->set_parts; i++)
	{
		ScanPart   *part = &state->parts[state->set_first + i];

		if (rows[i].chunk == NO_GROUP)
		{
			put_empty(state, part, raw);
			continue;
		}
		view_chunk(part, part->chunks[rows[i].chunk]);
		if (!keyed)
			put_keys(state, part, rows[i].row, raw);
		keyed = true;
		put_aggregates(state, part, rows[i].row, raw);
	}
	foreach(lc, groupings)
	{
		int			i = nraw - list_length(groupings) + foreach_current_index(lc);

		raw->tts_values[i] = Int32GetDatum(lfirst_int(lc));
		raw->tts_isnull[i] = false;
	}
}

TupleTableSlot *
groups_next(GpuvmScanState *state)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	TupleTableSlot *raw = state->raw_slot;

	for (;;)
	{
		MemoryContext old;
		GroupRow	only;
		const GroupRow *rows = next_group(state, &only);
		TupleTableSlot *output = nullptr;

		if (rows == nullptr)
		{
			run_end(state);
			state->mode = MODE_END;
			return ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
		}
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		ExecClearTuple(raw);
		old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
		put_group(state, rows, raw);
		MemoryContextSwitchTo(old);
		ExecStoreVirtualTuple(raw);
		if (!raw_output(state, raw, state->unfiltered ? state->having : state->having_rest, &output))
			return ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
		if (output != nullptr)
			return output;
	}
}

}  // namespace gpuvm
