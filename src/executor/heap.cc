/*
 * heap.cc: a unit of rows evaluated by PostgreSQL's own expressions.
 *
 * The unit's rows but the masked ones are fetched by ctid under the query's
 * snapshot, in tablet order. Every one is visible to it: that is what serving the
 * tablets rested on, and a delta has only such rows.
 */
#include "pg/pg.h"

extern "C" {
#include "access/tableam.h"
}

#include "executor/scan_state.h"
#include "pg/shmem.h"

namespace gpuvm {

const ScanTablet *
unit_range(GpuvmScanState *state, uint32 unit, uint32 *first, uint32 *last)
{
	const ScanTablet *tablets = state->source->tablets;
	uint32		lo = 0;
	uint32		hi = state->source->ntablets;

	/* The last tablet whose first unit is not past this one. */
	while (hi - lo > 1)
	{
		uint32		mid = (lo + hi) / 2;

		if (tablets[mid].first_unit <= unit)
			lo = mid;
		else
			hi = mid;
	}
	*first = (unit - tablets[lo].first_unit) * state->unit_rows;
	*last = Min(*first + state->unit_rows, tablets[lo].header->nrows);
	return &tablets[lo];
}

void
heap_start_unit(GpuvmScanState *state, uint32 unit)
{
	state->tablet = unit_range(state, unit, &state->heap_row, &state->heap_last);
	state->heap_masked = source_masked_from(state->source, state->tablet, state->heap_row);
	state->heap_unit = unit;
	state->block_hint = 0;
	state->by_heap = true;
	state->figures.units_by_heap++;
	if (state->heap_slot == nullptr)
	{
		EState	   *estate = state->css.ss.ps.state;
		MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);

		state->heap_slot = table_slot_create(state->source->leaves[0].rel, &estate->es_tupleTable);
		state->heap_qual = ExecInitQual(state->plan->quals, &state->css.ss.ps);
		MemoryContextSwitchTo(old);
	}
}

bool
heap_next_row(GpuvmScanState *state, TupleTableSlot *slot)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	Snapshot	snapshot = state->css.ss.ps.state->es_snapshot;
	const ScanLeaf *leaf = &state->source->leaves[state->tablet->leaf];

	while (state->heap_row < state->heap_last)
	{
		ItemPointerData tid;
		ListCell   *lc;

		CHECK_FOR_INTERRUPTS();
		if (source_skip_masked(state->source, state->tablet, &state->heap_masked, &state->heap_row))
			continue;
		ResetExprContext(econtext);
		source_ctids(state->tablet, &state->heap_row, 1, &state->block_hint, &tid);
		state->heap_row++;
		if (!table_tuple_fetch_row_version(leaf->rel, &tid, snapshot, state->heap_slot))
			elog(ERROR, "gpuvm: row (%u,%u) of \"%s\" is not visible although its block is",
				 ItemPointerGetBlockNumber(&tid), ItemPointerGetOffsetNumber(&tid),
				 RelationGetRelationName(leaf->rel));
		/* The qual was compiled for a custom scan's virtual slot, which needs no deforming; this one does. */
		slot_getallattrs(state->heap_slot);
		econtext->ecxt_scantuple = state->heap_slot;
		if (!ExecQual(state->heap_qual, econtext))
			continue;

		foreach(lc, state->plan->attnums)
		{
			int			i = foreach_current_index(lc);

			slot->tts_values[i] = slot_getattr(state->heap_slot, lfirst_int(lc), &slot->tts_isnull[i]);
		}
		slot->tts_tid = tid;
		state->row_relid = leaf->relid;
		return true;
	}
	state->by_heap = false;
	return false;
}

}  // namespace gpuvm
