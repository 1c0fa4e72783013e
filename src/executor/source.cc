/*
 * source.cc: what a program reads: tablets without the rows of blocks that they
 * do not serve, and those blocks as the query's snapshot has them (rule 7).
 */
#include "pg/pg.h"

extern "C" {
#include "access/table.h"
#include "access/tableam.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/memutils.h"
}

#include <cstring>

#include "executor/source_internal.h"
#include "pg/settings.h"
#include "pg/shmem.h"
#include "pg/startup.h"
#include "planner/cost.h"
#include "store/file.h"
#include "tablet/build.h"

namespace gpuvm {

/* -- the delta --------------------------------------------------------------------- */

/* As the planner expects it, of the blocks that are known now. */
static DeltaSize
expected_delta(const ScanLeaf *leaf)
{
	BlockNumber pages;
	double		tuples;
	double		visible;

	if (leaf->check.unserved == 0)
		return DeltaSize{};
	table_relation_estimate_size(leaf->rel, nullptr, &pages, &tuples, &visible);
	return delta_expect(leaf->rel, pages, tuples, leaf->version, leaf->check.nblocks - leaf->check.unserved);
}

/* What it costs to fetch so many of a plan's rows. */
static double
cost_of_fraction(const Plan *plan, double fraction)
{
	return plan->startup_cost + fraction * (plan->total_cost - plan->startup_cost);
}

/*
 * Is the machine worth it, with the delta to read first? It may be larger than when
 * the planner looked. Who fetches a few rows pays for all of it.
 */
static bool
delta_pays(GpuvmScanState *state, const ScanSource *source, int nwanted)
{
	double		fraction = state->plan->fraction;
	Cost		cost = 0;

	for (int i = 0; i < source->nleaves; i++)
		cost += cost_of_delta(expected_delta(&source->leaves[i]), nwanted);
	state->delta_cost += cost;
	/* a stage has no other plan to be compared with */
	if (setting_force || cost == 0 || state->alternative == nullptr)
		return true;
	return cost_of_fraction(state->css.ss.ps.plan, fraction) - state->plan->delta_cost + state->delta_cost <
		cost_of_fraction(state->alternative->plan, fraction);
}

bool
source_has_positions(const ScanPlan *plan, int cursor)
{
	const PlanPart *part = &plan->parts[0];

	for (int i = plan->nparts; i < program_count(plan); i++)
	{
		if (plan->parts[i].ties_cursor == cursor)
			return true;
	}

	for (int i = 0; plan->kind == SCAN_ROWS && i < part->noutputs; i++)
	{
		if (part->outputs[i].kind == OutputKind::Position && part->outputs[i].cursor == cursor)
			return true;
	}
	return false;
}

/* A scan's rows have them, those of a join only if they are asked for. */
static bool
wants_ctids(const GpuvmScanState *state, const ScanSource *source)
{
	return (state->plan->kind == SCAN_ROWS && state->plan->ncursors == 1) || source_has_positions(state->plan, source->cursor);
}

/* Rows that will hardly fit, as wide as those in the tablets are, need not be read to find out. */
static bool
deltas_may_fit(GpuvmScanState *state, const ScanSource *source, const bool *wanted)
{
	double		bytes = 0;

	for (int i = 0; i < source->nleaves; i++)
	{
		const TableVersion *version = source->leaves[i].version;
		const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);
		uint32		row = wants_ctids(state, source) ? sizeof(ItemPointerData) : 0;

		for (uint32 c = 0; c < version->ncols; c++)
		{
			if (!wanted[c])
				continue;
			row += version->ntablets > 0 ? columns[c].max_width : type_natural_width(columns[c].type);
			if (columns[c].flags & COLUMN_VARIABLE)
				row += get_attavgwidth(source->leaves[i].relid, columns[c].attnum);
		}
		bytes += expected_delta(&source->leaves[i]).rows * row;
	}
	return delta_may_fit(bytes);
}

static bool
read_deltas(GpuvmScanState *state, ScanSource *source, const bool *wanted, uint64 limit, int *reason, const char **detail)
{
	uint32		ncols = source->leaves[0].version->ncols;

	/* a value that two leaves add is one entry */
	source->locals = static_cast<LocalDictionary **>(palloc0(sizeof(LocalDictionary *) * Max(ncols, 1)));
	for (uint32 c = 0; c < ncols; c++)
	{
		const Dictionary *base = wanted[c] ? source_dictionary(source, static_cast<int>(c)) : nullptr;

		if (base != nullptr)
			source->locals[c] = local_dictionary(base);
	}
	for (int i = 0; i < source->nleaves; i++)
	{
		ScanLeaf   *leaf = &source->leaves[i];
		DeltaRequest request = {};
		AttrNumber	unfit = 0;

		if (leaf->check.unserved == 0)
			continue;
		request.runs = leaf->check.runs;
		request.nruns = leaf->check.nruns;
		request.nblocks = leaf->check.unserved;
		request.columns = version_at<ColumnSummary>(leaf->version, leaf->version->columns);
		request.ncols = leaf->version->ncols;
		request.wanted = wanted;
		request.dictionaries = source->locals;
		request.want_ctids = wants_ctids(state, source);
		request.max_bytes = limit - source->delta_bytes;
		leaf->delta = delta_read(leaf->rel, state->css.ss.ps.state->es_snapshot, request, &unfit);
		if (leaf->delta == nullptr)
		{
			if (unfit != 0)
			{
				*reason = FALLBACK_VALUE;
				*detail = psprintf("column \"%s\"", NameStr(TupleDescAttr(RelationGetDescr(leaf->rel), unfit - 1)->attname));
			}
			return false;
		}
		source->delta_bytes += leaf->delta->tablet_bytes;
		source->nrows += leaf->delta->nrows;
	}
	return true;
}

/* -- tablets, columns and masks ------------------------------------------------------ */

static void
list_tablets(ScanSource *source)
{
	ScanTablet *to;
	uint32		ndeltas = 0;

	for (int i = 0; i < source->nleaves; i++)
	{
		source->nimported += source->leaves[i].version->ntablets;
		ndeltas += source->leaves[i].delta != nullptr ? source->leaves[i].delta->ntablets : 0;
	}
	source->ntablets = source->nimported + ndeltas;
	to = source->tablets = static_cast<ScanTablet *>(palloc0(sizeof(ScanTablet) * Max(source->ntablets, 1)));
	for (int i = 0; i < source->nleaves; i++)
	{
		const TableVersion *version = source->leaves[i].version;

		for (uint32 t = 0; t < version->ntablets; t++, to++)
		{
			to->header = arena_at<TabletHeader>(version_at<uint64>(version, version->tablets)[t]);
			to->leaf = i;
			to->of_file = version->origin != 0;
			to->stored = to->of_file && version_at<FileOrigin>(version, version->origin)->stored;
		}
	}
	for (int i = 0; i < source->nleaves; i++)
	{
		if (source->leaves[i].delta == nullptr)
			continue;
		for (const DeltaTablet *t = source->leaves[i].delta->first; t != nullptr; t = t->next, to++)
		{
			to->header = t->tablet;
			to->ctids = t->ctids;
			to->leaf = i;
		}
	}
}

/* Adds what tablets of another table have to a column's summary. */
static void
merge_summary(ColumnSummary *to, const ColumnSummary &from, bool first)
{
	ColumnChunk chunk = {};

	if (first)
	{
		*to = from;
		return;
	}
	chunk.type = from.type;
	chunk.width = from.max_width;
	chunk.flags = from.flags;
	chunk.exp_hi = from.exp_hi;
	chunk.exp_lo = from.exp_lo;
	chunk.min = from.min;
	chunk.max = from.max;
	summarize_chunk(to, chunk, false);
	to->null_count += from.null_count;
}

/* Programs are lowered by the columns' ranges: they have to cover every tablet. */
static void
merge_columns(ScanSource *source)
{
	bool		first = true;

	source->ncolumns = source->leaves[0].version->ncols;
	source->columns = static_cast<ColumnSummary *>(palloc(sizeof(ColumnSummary) * Max(source->ncolumns, 1)));
	for (int i = 0; i < source->nleaves; i++)
	{
		const TableVersion *version = source->leaves[i].version;
		const Delta *delta = source->leaves[i].delta;

		/* summaries of no tablets say nothing, but have the types */
		if (i == 0 || version->ntablets > 0)
		{
			for (uint32 c = 0; c < source->ncolumns; c++)
				merge_summary(&source->columns[c], version_at<ColumnSummary>(version, version->columns)[c], first);
		}
		first = first && version->ntablets == 0;
		if (delta != nullptr && delta->ntablets > 0)
		{
			delta_summarize(delta, source->columns, source->ncolumns, first);
			first = false;
		}
	}
	/* no program reads these */
	for (uint32 c = 0; c < source->ncolumns; c++)
	{
		if (!is_one_type(source, c))
			source->columns[c] = ColumnSummary{};
	}
}

static void
mask_rows(ScanSource *source)
{
	uint32		first_tablet = 0;

	for (int i = 0; i < source->nleaves; i++)
	{
		const ScanLeaf *leaf = &source->leaves[i];

		if (leaf->check.masked > 0)
		{
			MaskedRows *masked;
			uint32		n = version_masked_rows(leaf->version, &leaf->check, &masked);

			for (uint32 m = 0; m < n; m++)
				masked[m].tablet += first_tablet;
			if (source->nleaves == 1)
				source->masked = masked;
			else if (n > 0)
			{
				Size		bytes = sizeof(MaskedRows) * (Size{source->nmasked} + n);

				source->masked = static_cast<MaskedRows *>(source->masked == nullptr ? palloc_extended(bytes, MCXT_ALLOC_HUGE)
														   : repalloc_huge(source->masked, bytes));
				memcpy(source->masked + source->nmasked, masked, sizeof(MaskedRows) * n);
				pfree(masked);
			}
			source->nmasked += n;
		}
		first_tablet += leaf->version->ntablets;
	}
}

/* -- the source ------------------------------------------------------------------------ */

static uint64
now_ns(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return static_cast<uint64>(INSTR_TIME_GET_DOUBLE(now) * 1e9);
}

/* Pins and checks every leaf. False, with reason and detail, where PostgreSQL must answer. */
static bool
check_leaves_now(GpuvmScanState *state, ScanSource *source, int *reason, const char **detail)
{
	for (int i = 0; i < source->nleaves; i++)
	{
		ScanLeaf   *leaf = &source->leaves[i];

		/* it is in the plan's range table, so the lock is held */
		leaf->rel = table_open(leaf->relid, AccessShareLock);
		if (leaf->rel->rd_rel->relkind == RELKIND_FOREIGN_TABLE && (*detail = file_ready(leaf->rel)) != nullptr)
		{
			*reason = FALLBACK_TABLE_CHANGED;
			return false;
		}
		leaf->pin = registry_pin(leaf->rel, reason);
		if (leaf->pin == nullptr ||
			!version_check(leaf->rel, state->css.ss.ps.state->es_snapshot, &leaf->pin, reason, &leaf->check))
		{
			if (source->parent != nullptr)
				*detail = psprintf("partition \"%s\"", RelationGetRelationName(leaf->rel));
			else if (state->plan->ncursors > 1)
				*detail = psprintf("table \"%s\"", RelationGetRelationName(leaf->rel));
			return false;
		}
		leaf->version = pin_version(leaf->pin);
		source->nrows += leaf->version->nrows;
		source->plain = source->plain && leaf->check.unserved == 0 && leaf->check.masked == 0;
	}
	return true;
}

static bool
check_leaves(GpuvmScanState *state, ScanSource *source, int *reason, const char **detail)
{
	Snapshot	snapshot = state->css.ss.ps.state->es_snapshot;
	bool		fits;

	/* by the active one it is decided which rows there are of a foreign table */
	if (snapshot != nullptr)
		PushActiveSnapshot(snapshot);
	fits = check_leaves_now(state, source, reason, detail);
	if (snapshot != nullptr)
		PopActiveSnapshot();
	return fits;
}

static void
count_source(ScanFigures *f, const ScanSource *source)
{
	uint64		rows = 0;
	uint64		unserved = 0;
	uint64		restamped = 0;

	for (int i = 0; i < source->nleaves; i++)
	{
		const ScanLeaf *leaf = &source->leaves[i];

		f->blocks_served += leaf->check.nblocks - leaf->check.unserved;
		f->check_ns += leaf->check.check_ns;
		unserved += leaf->check.unserved;
		restamped += leaf->check.restamped;
		rows += leaf->delta != nullptr ? leaf->delta->nrows : 0;
		registry_count_use(leaf->rel, leaf->version->nrows);
	}
	f->blocks_unserved += unserved;
	f->blocks_restamped += restamped;
	f->delta_rows += rows;
	if (unserved > 0 || restamped > 0)
		stats_count_delta(unserved, rows, restamped);
}

static const char *
unserved_detail(const ScanSource *source)
{
	uint64		unserved = 0;
	uint64		nblocks = 0;

	for (int i = 0; i < source->nleaves; i++)
	{
		unserved += source->leaves[i].check.unserved;
		nblocks += source->leaves[i].check.nblocks;
	}
	return psprintf("%llu of %llu %s", (unsigned long long) unserved, (unsigned long long) nblocks, nblocks == 1 ? "block" : "blocks");
}

static bool
open_in_context(GpuvmScanState *state, ScanSource *source, int *reason, const char **detail)
{
	const uint64 limit = delta_limit();
	uint64		start;
	int			mixed;
	bool	   *wanted;
	int			nwanted = 0;
	bool		fits;

	if (!check_leaves(state, source, reason, detail))
		return false;
	if (!same_scales(state->plan, source))
	{
		*reason = FALLBACK_SCHEMA_CHANGED;
		*detail = "a numeric column has another scale than when the statement was planned";
		return false;
	}
	if (!same_variables(state->plan, source))
	{
		*reason = FALLBACK_SCHEMA_CHANGED;
		*detail = "a column is stored in another form than when the statement was planned";
		return false;
	}
	if (!has_whole_rows(state->plan, source))
	{
		*reason = FALLBACK_NO_TABLETS;
		*detail = "a column of a row that is handed out as a whole is not in the tablets";
		return false;
	}
	if (source->plain)
	{
		if (state->plan->kind == SCAN_ROWS || source_has_positions(state->plan, source->cursor))
			list_tablets(source);
		return true;
	}

	wanted = static_cast<bool *>(palloc0(Max(source->leaves[0].version->ncols, 1)));
	if (!wanted_columns(state, source, wanted) || !same_types(source, wanted))
	{
		*reason = FALLBACK_NO_TABLETS;
		*detail = "a column of the query is not in the tablets";
		return false;
	}
	mixed = mixed_column(source, wanted);
	if (mixed >= 0)
	{
		const ScanLeaf *leaf = &source->leaves[0];

		*reason = FALLBACK_SCHEMA_CHANGED;
		*detail = psprintf("the dictionaries of column \"%s\" in the partitions are not of one family",
						   NameStr(TupleDescAttr(RelationGetDescr(leaf->rel), version_at<ColumnSummary>(leaf->version, leaf->version->columns)[mixed].attnum - 1)->attname));
		return false;
	}
	for (uint32 i = 0; i < source->leaves[0].version->ncols; i++)
		nwanted += wanted[i];
	*detail = unserved_detail(source);
	*reason = FALLBACK_TABLE_CHANGED;
	if (!delta_pays(state, source, nwanted))
		return false;
	/* what is read now would be for nothing */
	if (arena_header()->engine_pid.load() == 0)
	{
		*reason = FALLBACK_ENGINE_AWAY;
		*detail = "gpuvmd is not running";
		return false;
	}
	start = now_ns();
	fits = deltas_may_fit(state, source, wanted) && read_deltas(state, source, wanted, limit, reason, detail);
	state->figures.delta_ns += now_ns() - start;
	if (!fits && *reason == FALLBACK_VALUE)
		return false;
	if (!fits)
	{
		*reason = FALLBACK_MEMORY;
		*detail = psprintf("%s to be read", *detail);
		return false;
	}
	list_tablets(source);
	merge_columns(source);
	mask_rows(source);
	return true;
}

ScanSource *
source_open(GpuvmScanState *state, int cursor, int *reason, const char **detail)
{
	const PlanCursor *from = &state->plan->cursors[cursor];
	ScanSource *source;
	MemoryContext old;
	bool		opened;

	if (state->source_contexts[cursor] == nullptr)
		state->source_contexts[cursor] = AllocSetContextCreate(state->css.ss.ps.state->es_query_cxt, "gpuvm source", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(state->source_contexts[cursor]);
	source = static_cast<ScanSource *>(palloc0(sizeof(ScanSource)));
	source->context = state->source_contexts[cursor];
	source->cursor = cursor;
	source->nleaves = from->child != 0 ? 0 : Max(list_length(from->leaves), 1);
	source->leaves = static_cast<ScanLeaf *>(palloc0(sizeof(ScanLeaf) * Max(source->nleaves, 1)));
	if (from->leaves == NIL && from->child == 0)
		source->leaves[0].relid = from->relid;
	else if (from->child == 0)
	{
		source->parent = table_open(from->relid, AccessShareLock);
		for (int i = 0; i < source->nleaves; i++)
			source->leaves[i].relid = list_nth_oid(from->leaves, i);
	}
	source->plain = from->leaves == NIL && from->child == 0;
	opened = from->child != 0 ? derived_open(state, source, reason, detail) : open_in_context(state, source, reason, detail);
	MemoryContextSwitchTo(old);
	if (opened)
	{
		count_source(&state->figures, source);
		return source;
	}
	/* the detail outlives it */
	if (*detail != nullptr)
		*detail = pstrdup(*detail);
	source_close(source);
	return nullptr;
}

void
source_drop_set(ScanSource *source)
{
	if (source->of != nullptr)
	{
		shared_let_go(source);
		return;
	}
	if (source->set != 0)
		engine_drop_sets(source->set_session, uint64{1} << source->set);
	source->set = 0;
	source->nrows = 0;
}

void
source_close(ScanSource *source)
{
	source_drop_set(source);
	for (int i = 0; i < source->nleaves; i++)
	{
		if (source->leaves[i].pin != nullptr)
			registry_unpin(source->leaves[i].pin);
		if (source->leaves[i].rel != nullptr)
			table_close(source->leaves[i].rel, NoLock);
	}
	if (source->parent != nullptr)
		table_close(source->parent, NoLock);
	MemoryContextReset(source->context);
}

}  // namespace gpuvm
