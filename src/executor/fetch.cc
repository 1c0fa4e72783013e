/*
 * fetch.cc: late materialisation: values that tablets do not have, from the heap by the ctid of a row that is handed out.
 *
 * The row version at that ctid is the one that the snapshot sees: serving the tablets rested on that, and a delta has only
 * such rows. A cursor's row is fetched once for all of its values, which point into it until the next row is handed out.
 */
#include "pg/pg.h"

extern "C" {
#include "access/heaptoast.h"
#include "access/sysattr.h"
#include "access/tableam.h"
#include "utils/memutils.h"
}

#include "compiler/compile.h"
#include "executor/scan_state.h"
#include "executor/source_internal.h"
#include "store/tablet_rows.h"

namespace gpuvm {

/* A value of the output. */
struct FetchColumn
{
	int			value;			/* its place in the row */
	AttrNumber	attnum;			/* as the plan numbers columns */
};

/* What is fetched for a cursor. */
struct CursorFetch
{
	int			cursor;
	int			ncolumns;
	FetchColumn *columns;
	TupleTableSlot **slots;		/* of each leaf; made when first needed */
	AttrNumber **attnums;		/* of each leaf: its own numbers of the columns */
	int			nleaves;
	TupleTableSlot *filled;		/* by the current row, or NULL */
};

struct Fetches
{
	int			n;
	CursorFetch cursors[PROGRAM_MAX_CURSORS];
};

void
fetch_begin(GpuvmScanState *state)
{
	const PlanPart *part = &state->plan->parts[0];
	ListCell   *lc;

	if (state->plan->fetches == NIL)
		return;
	state->fetches = static_cast<Fetches *>(palloc0(sizeof(Fetches)));
	foreach(lc, state->plan->fetches)
	{
		CursorFetch *to = &state->fetches->cursors[state->fetches->n];

		to->cursor = linitial_int(lfirst_node(List, lc));
		to->columns = static_cast<FetchColumn *>(palloc(sizeof(FetchColumn) * Max(state->nvalues, 1)));
		for (int i = 0; i < state->nvalues; i++)
		{
			const OutputForm *form = &part->outputs[state->order != nullptr ? state->order[i] : i];

			if (form->kind == OutputKind::Position && form->cursor == to->cursor && is_fetched(form->attnum))
				to->columns[to->ncolumns++] = FetchColumn{i, form->attnum};
		}
		/* the target list may have none of them */
		if (to->ncolumns > 0)
			state->fetches->n++;
	}
	if (state->fetches->n == 0)
		state->fetches = nullptr;
}

TupleTableSlot *
fetch_slot(const ScanLeaf *leaf, EState *estate)
{
	TupleTableSlot *slot = leaf->version->origin != 0
		? ExecInitExtraTupleSlot(estate, RelationGetDescr(leaf->rel), &TTSOpsVirtual)
		: table_slot_create(leaf->rel, &estate->es_tupleTable);

	slot->tts_tableOid = RelationGetRelid(leaf->rel);
	return slot;
}

static void
make_slots(GpuvmScanState *state, CursorFetch *fetch)
{
	EState	   *estate = state->css.ss.ps.state;
	const ScanSource *source = state->sources[fetch->cursor];
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);

	fetch->nleaves = source->nleaves;
	fetch->slots = static_cast<TupleTableSlot **>(palloc(sizeof(TupleTableSlot *) * source->nleaves));
	fetch->attnums = static_cast<AttrNumber **>(palloc(sizeof(AttrNumber *) * source->nleaves));
	for (int i = 0; i < source->nleaves; i++)
	{
		fetch->slots[i] = fetch_slot(&source->leaves[i], estate);
		fetch->attnums[i] = static_cast<AttrNumber *>(palloc(sizeof(AttrNumber) * fetch->ncolumns));
		for (int c = 0; c < fetch->ncolumns; c++)
		{
			AttrNumber	attnum = fetch->columns[c].attnum;

			fetch->attnums[i][c] = attnum > 0 ? leaf_attnum(source, &source->leaves[i], attnum) : attnum;
		}
	}
	MemoryContextSwitchTo(old);
}

/* The whole row, as PostgreSQL makes one of a slot. */
static Datum
whole_row(Relation rel, TupleTableSlot *slot)
{
	slot_getallattrs(slot);
	return PointerGetDatum(toast_build_flattened_tuple(RelationGetDescr(rel), slot->tts_values, slot->tts_isnull)->t_data);
}

Datum
fetched_value(Relation rel, TupleTableSlot *slot, AttrNumber attnum, bool *isnull)
{
	if (attnum > 0)
		return slot_getattr(slot, attnum, isnull);
	if (attnum < 0)
		return slot_getsysattr(slot, attnum, isnull);
	*isnull = false;
	return whole_row(rel, slot);
}

void
fetch_row(const ScanLeaf *leaf, const ScanTablet *tablet, uint32 row, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot)
{
	if (tablet->of_file)
	{
		tablet_row(leaf->version, tablet->header, row, nullptr, slot);
		slot->tts_tid = *tid;
	}
	else if (!table_tuple_fetch_row_version(leaf->rel, tid, snapshot, slot))
		elog(ERROR, "gpuvm: row (%u,%u) of \"%s\" is not visible although its block is",
			 ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid), RelationGetRelationName(leaf->rel));
}

void
fetch_values(GpuvmScanState *state, Datum *values, bool *nulls)
{
	MemoryContext old = MemoryContextSwitchTo(state->batch_context);

	for (int i = 0; i < state->fetches->n; i++)
	{
		CursorFetch *fetch = &state->fetches->cursors[i];
		const ScanSource *source = state->sources[fetch->cursor];
		int			first = fetch->columns[0].value;
		const ScanTablet *tablet;
		ItemPointerData tid;
		uint32		leaf;

		/* an outer join has met no row here: all of them are null */
		if (nulls[first])
			continue;
		if (fetch->slots == nullptr)
			make_slots(state, fetch);
		tablet = source_row(source, DatumGetInt64(values[first]), &tid);
		leaf = tablet->leaf;
		if (fetch->filled != nullptr && fetch->filled != fetch->slots[leaf])
			ExecClearTuple(fetch->filled);
		fetch->filled = fetch->slots[leaf];
		fetch_row(&source->leaves[leaf], tablet, position_row(DatumGetInt64(values[first])), &tid, state->css.ss.ps.state->es_snapshot, fetch->filled);
		state->figures.heap_fetches += !tablet->of_file;
		for (int c = 0; c < fetch->ncolumns; c++)
		{
			int			to = fetch->columns[c].value;

			values[to] = fetched_value(source->leaves[leaf].rel, fetch->filled, fetch->attnums[leaf][c], &nulls[to]);
		}
	}
	MemoryContextSwitchTo(old);
}

void
fetch_release(GpuvmScanState *state)
{
	for (int i = 0; state->fetches != nullptr && i < state->fetches->n; i++)
	{
		CursorFetch *fetch = &state->fetches->cursors[i];

		if (fetch->filled != nullptr)
			ExecClearTuple(fetch->filled);
		fetch->filled = nullptr;
	}
}

}  // namespace gpuvm
