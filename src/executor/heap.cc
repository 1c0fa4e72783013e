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
	const ScanTablet *tablets = state->sources[0]->tablets;
	uint32		lo = 0;
	uint32		hi = state->sources[0]->ntablets;

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

/* For each leaf a slot, and where it numbers the columns otherwise, the way to the partitioned table's. */
static void
make_slots(GpuvmScanState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	const ScanSource *source = state->sources[0];

	state->heap_slots = static_cast<TupleTableSlot **>(palloc0(sizeof(TupleTableSlot *) * source->nleaves));
	state->heap_maps = static_cast<TupleConversionMap **>(palloc0(sizeof(TupleConversionMap *) * source->nleaves));
	for (int i = 0; i < source->nleaves; i++)
	{
		Relation	rel = source->leaves[i].rel;

		state->heap_slots[i] = fetch_slot(&source->leaves[i], estate);
		if (source->parent != nullptr)
			state->heap_maps[i] = convert_tuples_by_name(RelationGetDescr(rel), RelationGetDescr(source->parent));
	}
	if (source->parent != nullptr)
		state->heap_slot = ExecInitExtraTupleSlot(estate, RelationGetDescr(source->parent), &TTSOpsVirtual);
	state->heap_qual = ExecInitQual(state->plan->cursors[0].quals, &state->css.ss.ps);
	MemoryContextSwitchTo(old);
}

/* The row at a ctid, with the columns as the program numbers them. */
static TupleTableSlot *
row_at(GpuvmScanState *state, uint32 leaf_number, uint32 number, ItemPointer tid)
{
	const ScanLeaf *leaf = &state->sources[0]->leaves[leaf_number];
	TupleTableSlot *slot = state->heap_slots[leaf_number];

	fetch_row(leaf, state->tablet, number, tid, state->css.ss.ps.state->es_snapshot, slot);
	if (state->heap_maps[leaf_number] != nullptr)
		return execute_attr_map_slot(state->heap_maps[leaf_number]->attrMap, slot, state->heap_slot);
	/* The qual was compiled for a custom scan's virtual slot, which needs no deforming; this one does. */
	slot_getallattrs(slot);
	return slot;
}

void
heap_start_unit(GpuvmScanState *state, uint32 unit)
{
	state->tablet = unit_range(state, unit, &state->heap_row, &state->heap_last);
	state->heap_masked = source_masked_from(state->sources[0], state->tablet, state->heap_row);
	state->heap_unit = unit;
	state->block_hint = 0;
	state->by_heap = true;
	state->figures.units_by_heap++;
	if (state->heap_slots == nullptr)
		make_slots(state);
}

bool
heap_next_row(GpuvmScanState *state, TupleTableSlot *slot)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	uint32		leaf = state->tablet->leaf;

	while (state->heap_row < state->heap_last)
	{
		ItemPointerData tid;
		TupleTableSlot *row;
		MemoryContext old;
		ListCell   *lc;

		CHECK_FOR_INTERRUPTS();
		if (source_skip_masked(state->sources[0], state->tablet, &state->heap_masked, &state->heap_row))
			continue;
		ResetExprContext(econtext);
		source_ctids(state->tablet, &state->heap_row, 1, &state->block_hint, &tid);
		state->heap_row++;
		old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
		row = row_at(state, leaf, state->heap_row - 1, &tid);
		MemoryContextSwitchTo(old);
		econtext->ecxt_scantuple = row;
		if (!ExecQual(state->heap_qual, econtext))
			continue;

		old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
		foreach(lc, state->plan->attnums)
		{
			int			i = foreach_current_index(lc);
			AttrNumber	attnum = lfirst_int(lc);

			if (attnum > 0)
				slot->tts_values[i] = slot_getattr(row, attnum, &slot->tts_isnull[i]);
			else
				slot->tts_values[i] = fetched_value(state->sources[0]->leaves[leaf].rel, state->heap_slots[leaf], attnum, &slot->tts_isnull[i]);
		}
		MemoryContextSwitchTo(old);
		slot->tts_tid = tid;
		state->row_relid = state->sources[0]->leaves[leaf].relid;
		return true;
	}
	state->by_heap = false;
	return false;
}

}  // namespace gpuvm
