/* maps.cc: the maps of one execution, and what its results' codes stand for. */
#include "pg/pg.h"

extern "C" {
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "portability/instr_time.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
}

#include <cstring>

#include "executor/maps.h"
#include "executor/scan_state.h"
#include "pg/shmem.h"

namespace gpuvm {

/* -- expressions ---------------------------------------------------------------------- */

static Node *
to_key(Node *node, void *context)
{
	if (node == nullptr)
		return nullptr;
	if (IsA(node, Var))
	{
		Var		   *var = static_cast<Var *>(copyObjectImpl(node));

		var->varno = var->varnosyn = 1;
		var->varattno = var->varattnosyn = 1;
		var->location = -1;
		return (Node *) var;
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(to_key), context);
}

Expr *
map_key(const Expr *expr)
{
	return (Expr *) to_key(reinterpret_cast<Node *>(const_cast<Expr *>(expr)), nullptr);
}

/* What is the same for all entries, and known when execution starts. */
static bool
is_known(const Node *node)
{
	return IsA(node, Param) || IsA(node, SQLValueFunction);
}

static bool
collect_known(Node *node, void *list)
{
	if (node == nullptr)
		return false;
	if (is_known(node))
	{
		*static_cast<List **>(list) = list_append_unique(*static_cast<List **>(list), node);
		return false;
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(collect_known), list);
}

struct KnownValues
{
	List	   *exprs;
	List	   *consts;
};

static Node *
put_known(Node *node, void *context)
{
	KnownValues *known = static_cast<KnownValues *>(context);
	ListCell   *lc;

	if (node == nullptr)
		return nullptr;
	if (is_known(node))
	{
		foreach(lc, known->exprs)
		{
			if (equal(lfirst(lc), node))
				return static_cast<Node *>(list_nth(known->consts, foreach_current_index(lc)));
		}
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(put_known), context);
}

void
maps_begin(GpuvmScanState *state)
{
	const ScanPlan *plan = state->plan;

	for (int i = 0; i < plan->nmaps; i++)
		collect_known(reinterpret_cast<Node *>(plan->maps[i].expr), &state->known);
	state->known_states = ExecInitExprList(state->known, &state->css.ss.ps);
}

/* Their values, for this execution. A subquery is run for it, which may raise its own errors. NULL, or why not. */
static const char *
evaluate_known(GpuvmScanState *state, KnownValues *known)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	int			sqlstate = 0;
	ListCell   *lc;

	*known = {state->known, NIL};

	foreach(lc, state->known_states)
	{
		Node	   *expr = static_cast<Node *>(list_nth(state->known, foreach_current_index(lc)));
		Oid			type = exprType(expr);
		int16		len;
		bool		byval;
		bool		isnull;
		Datum		value;

		if (!evaluate_leaf(expr, static_cast<ExprState *>(lfirst(lc)), econtext, &value, &isnull, &sqlstate))
			return psprintf("a parameter raises SQLSTATE %s", unpack_sql_state(sqlstate));
		get_typlenbyval(type, &len, &byval);
		if (!isnull)
			value = len == -1 ? PointerGetDatum(PG_DETOAST_DATUM_COPY(value)) : datumCopy(value, byval, len);
		known->consts = lappend(known->consts, makeConst(type, exprTypmod(expr), exprCollation(expr), len, isnull ? (Datum) 0 : value, isnull, byval));
	}
	ResetExprContext(econtext);
	return nullptr;
}

/* -- maps ---------------------------------------------------------------------------------- */

void
maps_release(GpuvmScanState *state)
{
	for (int i = 0; i < state->plan->nmaps; i++)
	{
		CachedMap  *cached = state->cached_maps[i];

		state->cached_maps[i] = nullptr;
		state->maps[i] = nullptr;
		if (cached != nullptr)
			map_cache_release(cached);
	}
	if (state->map_context != nullptr)
		MemoryContextReset(state->map_context);
}

/* However the execution ends, its maps are free again. */
static void
release_at_end(void *argument)
{
	GpuvmScanState *state = static_cast<GpuvmScanState *>(argument);

	state->map_context = nullptr;
	maps_release(state);
}

static void
make_context(GpuvmScanState *state)
{
	MemoryContext query = state->css.ss.ps.state->es_query_cxt;
	MemoryContextCallback *callback = static_cast<MemoryContextCallback *>(MemoryContextAllocZero(query, sizeof(MemoryContextCallback)));

	state->map_context = AllocSetContextCreate(query, "gpuvm maps", ALLOCSET_DEFAULT_SIZES);
	callback->func = release_at_end;
	callback->arg = state;
	MemoryContextRegisterResetCallback(query, callback);
}

/* NULL, or why the map cannot be made. */
static const char *
build_map(GpuvmScanState *state, int number, Expr *expr)
{
	const PlanMap *plan = &state->plan->maps[number];
	const EntrySource *source = &state->map_entries[number];
	bool		settled = source->base != nullptr && map_is_settled(plan->expr);
	EntrySource base = {source->base, nullptr, source->attlen, source->byval};
	MapData    *map = map_create(state->map_context, plan, expr);
	CachedMap  *cached = settled ? map_cache_find(source->base->family, map) : nullptr;
	uint32		before = cached != nullptr ? cached->data->nentries : 0;
	const char *failure = nullptr;

	if (cached != nullptr)
	{
		state->cached_maps[number] = cached;
		map = cached->data;
		/* the ranks that another cursor has would not be these any more */
		if (cached->users > 1 && plan->kind == MapKind::Rank && map->nentries < entry_count(&base))
			map = map_copy(state->map_context, map, map->nentries);
	}
	if (settled)
		failure = map_extend(map, &base, entry_count(&base));
	/* one that cannot be made, too: nobody is to try it again */
	if (settled && cached == nullptr)
		state->cached_maps[number] = map_cache_add(source->base->family, state->plan->cursors[plan->cursor].relid, plan->attnum, map);
	if (failure == nullptr && (!settled || source->local != nullptr))
	{
		if (settled)
			map = map_copy(state->map_context, map, entry_count(&base));
		failure = map_extend(map, source, entry_count(source));
	}
	if (failure != nullptr)
		return failure;
	state->figures.map_entries += entry_count(source) - Min(before, entry_count(&base));
	state->maps[number] = map;
	return nullptr;
}

const MapData *
ranks_of_ties(const GpuvmScanState *state, int number)
{
	const PlanMap *plan = state->plan->maps;

	for (int i = 0; i < number; i++)
	{
		if (plan[i].kind == MapKind::Rank && plan[i].cursor == plan[number].cursor && plan[i].attnum == plan[number].attnum &&
			plan[i].collation == plan[number].collation && equal(plan[i].expr, plan[number].expr))
			return state->maps[i];
	}
	elog(ERROR, "gpuvm: there are ties of no ranks");
}

bool
maps_build(GpuvmScanState *state, int *reason, const char **detail)
{
	const ScanPlan *plan = state->plan;
	instr_time	start;
	instr_time	end;
	MemoryContext old;
	KnownValues known;
	const char *failure;

	for (int p = 0; p < program_count(plan); p++)
	{
		ScanPart   *part = &state->parts[p];

		for (int i = 0; i < part->plan->noutputs; i++)
		{
			const OutputForm *form = &part->plan->outputs[i];

			if (form->kind == OutputKind::Dictionary)
				source_entries(state->sources[form->cursor], form->attnum, &part->entries[i]);
			else if (form->kind == OutputKind::Variable)
				references_begin(state, form, part, i);
		}
	}
	if (plan->nmaps == 0)
		return true;
	if (state->map_context == nullptr)
		make_context(state);
	maps_release(state);
	INSTR_TIME_SET_CURRENT(start);
	old = MemoryContextSwitchTo(state->map_context);
	failure = evaluate_known(state, &known);
	if (failure != nullptr)
	{
		*reason = FALLBACK_ERROR_FLAG;
		*detail = MemoryContextStrdup(state->css.ss.ps.state->es_query_cxt, failure);
	}
	for (int i = 0; i < plan->nmaps && failure == nullptr; i++)
	{
		const PlanMap *map = &plan->maps[i];

		if (is_of_column(map))
		{
			source_entries(state->sources[map->cursor], map->attnum, &state->map_entries[i]);
			if (map->kind == MapKind::Tied)
			{
				state->maps[i] = map_create(state->map_context, map, map->expr);
				map_ties(state->maps[i], ranks_of_ties(state, i), entry_count(&state->map_entries[i]));
				continue;
			}
			failure = build_map(state, i, map_key((Expr *) put_known((Node *) map->expr, &known)));
		}
		else if (is_zone(map->kind))
			failure = zone_table(map, &state->maps[i]);
		else if (map->kind >= MapKind::PairFirst)
			failure = build_pair(state, i, (Expr *) put_known((Node *) map->expr, &known));
		else
			failure = build_meeting(state, i, (Expr *) put_known((Node *) map->expr, &known));
		if (failure != nullptr)
		{
			*reason = FALLBACK_ERROR_FLAG;
			if (is_of_column(map))
				failure = psprintf("dictionary of column \"%s\": %s", plan_column_name(&plan->cursors[map->cursor], map->attnum), failure);
			*detail = MemoryContextStrdup(state->css.ss.ps.state->es_query_cxt, failure);
		}
	}
	MemoryContextSwitchTo(old);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	state->figures.map_ns += static_cast<uint64>(INSTR_TIME_GET_DOUBLE(end) * 1e9);
	return failure == nullptr;
}

/* -- into the arena ---------------------------------------------------------------------------- */

/* An entry for nulls is behind the others. */
static uint64
map_nvalues(const GpuvmScanState *state, int number)
{
	return uint64{map_count(state, number)} + (state->maps[number]->null_entry ? 1 : 0);
}

static uint64
values_bytes(const GpuvmScanState *state, int number)
{
	return align_up(map_nvalues(state, number) * type_width(state->maps[number]->type), 64);
}

static uint64
nulls_bytes(const GpuvmScanState *state, int number)
{
	return align_up((map_nvalues(state, number) + 63) / 64 * sizeof(uint64), 64);
}

uint64
maps_bytes(const GpuvmScanState *state)
{
	uint64		bytes = align_up(sizeof(JobMap) * state->plan->nmaps, 64);

	for (int i = 0; i < state->plan->nmaps; i++)
		bytes += values_bytes(state, i) + nulls_bytes(state, i);
	return bytes;
}

void
maps_to_job(const GpuvmScanState *state, uint64 at, Job *job)
{
	JobMap	   *list = arena_at<JobMap>(at);

	job->maps = at;
	job->nmaps = state->plan->nmaps;
	at += align_up(sizeof(JobMap) * state->plan->nmaps, 64);
	for (int i = 0; i < state->plan->nmaps; i++)
	{
		const MapData *map = state->maps[i];
		uint32		n = map_count(state, i);
		int			width = type_width(map->type);
		bool		null_is_null = map->null_entry && map->null_isnull;
		uint64	   *nulls;

		list[i] = JobMap{};
		list[i].type = map->type;
		list[i].nentries = n;
		list[i].has_null_entry = map->null_entry;
		list[i].values = at;
		memcpy(arena_at<char>(at), map->values, Size{n} * width);
		if (map->null_entry)
			memcpy(arena_at<char>(at) + Size{n} * width, map->null_value, width);
		at += values_bytes(state, i);
		if (map->any_null || null_is_null)
		{
			nulls = arena_at<uint64>(at);
			list[i].nulls = at;
			memset(nulls, 0, nulls_bytes(state, i));
			memcpy(nulls, map->nulls, (Size{n} + 63) / 64 * sizeof(uint64));
			/* the map may be one of more entries */
			if (n % 64 != 0)
				nulls[n / 64] &= (uint64{1} << (n % 64)) - 1;
			if (null_is_null)
				nulls[n / 64] |= uint64{1} << (n % 64);
		}
		at += nulls_bytes(state, i);
	}
}

/* -- out of results -------------------------------------------------------------------------------- */

static void
out_of_range(int32 value, uint32 n)
{
	elog(ERROR, "gpuvm: gpuvmd returned code %d of %u", value, n);
}

Datum
output_datum(const GpuvmScanState *state, const ScanPart *part, int column, int32 value)
{
	const OutputForm *form = &part->plan->outputs[column];
	const EntrySource *entries = &part->entries[column];
	uint32		item = static_cast<uint32>(value);

	if (form->kind == OutputKind::Map)
	{
		const MapData *map = state->maps[form->map];

		if (map->kind == MapKind::Constant || map->kind == MapKind::Translate)
		{
			Datum		datum;

			if (!meeting_datum(map, item, &datum))
				out_of_range(value, map->nbefore + map->nentries);
			return datum;
		}
		entries = &state->map_entries[form->map];
		if (map->kind == MapKind::Rank)
		{
			if (item >= map->nranked)
				out_of_range(value, map->nranked);
			item = map->order[item];
		}
		if (!map->bare)
		{
			if (item >= map->nitems)
				out_of_range(value, map->nitems);
			return map->items[item];
		}
	}
	if (item >= entry_count(entries))
		out_of_range(value, entry_count(entries));
	return entry_datum(entries, item);
}

}  // namespace gpuvm
