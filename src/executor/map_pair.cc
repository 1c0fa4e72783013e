/*
 * map_pair.cc: an expression over two dictionary columns, evaluated for the pairs of their entries (compiler/pairs.cc).
 *
 * What is made of two dictionaries that have no delta is kept by their serials, which say exactly what is in them; that an
 * expression raises, by their families, so that it is not planned again.
 */
#include "pg/pg.h"

extern "C" {
#include "common/hashfn.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/memutils.h"
}

#include "executor/map_internal.h"
#include "executor/scan_state.h"

namespace gpuvm {

/* -- the expression -------------------------------------------------------------------------- */

/* Numbered as pair_columns() has them, which says what the plan's `from` is. */
static Node *
number_columns(Node *node, void *context)
{
	const Var  *first = static_cast<const Var *>(context);	/* in the expression's own numbering */
	Var		   *var;

	if (node == nullptr)
		return nullptr;
	if (!IsA(node, Var))
		return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(number_columns), context);
	var = static_cast<Var *>(copyObjectImpl(node));
	var->varattno = var->varattnosyn = var->varno == first->varno && var->varattno == first->varattno ? 1 : 2;
	var->varno = var->varnosyn = 1;
	var->location = -1;
	return (Node *) var;
}

Expr *
pair_key(const Expr *expr)
{
	const Var  *first;
	const Var  *second;

	if (!pair_columns(expr, &first, &second))
		elog(ERROR, "gpuvm: an expression over two columns has no two");
	return (Expr *) number_columns(reinterpret_cast<Node *>(const_cast<Expr *>(expr)), const_cast<Var *>(first));
}

static bool
describe_columns(Node *node, void *context)
{
	const Var  *var = (const Var *) node;
	TupleDesc	desc = static_cast<TupleDesc>(context);

	if (node == nullptr)
		return false;
	if (!IsA(node, Var))
		return expression_tree_walker(node, reinterpret_cast<bool (*)()>(describe_columns), context);
	TupleDescInitEntry(desc, var->varattno, nullptr, var->vartype, var->vartypmod, 0);
	TupleDescInitEntryCollation(desc, var->varattno, var->varcollid);
	return false;
}

/* -- its values -------------------------------------------------------------------------------- */

struct PairMaking
{
	MapData    *map;
	bool		too_large;
};

static void
put_entry(TupleTableSlot *slot, int column, const EntrySet *set, uint32 code, uint32 n)
{
	slot->tts_isnull[column] = code == n;
	slot->tts_values[column] = code == n ? (Datum) 0 : set_datum(set, code);
}

static void
evaluate_pairs(void *argument)
{
	PairMaking *making = static_cast<PairMaking *>(argument);
	MapData    *map = making->map;
	const uint32 nfirst = set_count(&map->from);
	const uint32 nsecond = set_count(&map->to);
	const int	width = type_width(map->type);
	ExprContext *econtext = CreateStandaloneExprContext();
	TupleDesc	desc = CreateTemplateTupleDesc(2);
	TupleTableSlot *slot;
	ExprState  *expr;

	describe_columns(reinterpret_cast<Node *>(map->expr), desc);
	slot = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	expr = ExecInitExpr(expression_planner(static_cast<Expr *>(copyObjectImpl(map->expr))), nullptr);
	econtext->ecxt_scantuple = slot;
	for (uint32 number = 0; number < map->nentries && !making->too_large; number++)
	{
		MemoryContext old;
		bool		isnull;
		Datum		value;

		if (number % 256 == 0)
			CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		ExecClearTuple(slot);
		put_entry(slot, 0, &map->from, number / (nsecond + 1), nfirst);
		put_entry(slot, 1, &map->to, number % (nsecond + 1), nsecond);
		ExecStoreVirtualTuple(slot);
		value = ExecEvalExprSwitchContext(expr, econtext, &isnull);
		if (isnull)
		{
			map->nulls[number / 64] |= uint64{1} << (number % 64);
			map->any_null = true;
			continue;
		}
		old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
		store_value(map, value, map->values + Size{number} * width);
		MemoryContextSwitchTo(old);
		making->too_large = map->item_bytes > MAX_MAP_ITEM_BYTES;
	}
}

static void
reserve(MapData *map)
{
	MemoryContext old = MemoryContextSwitchTo(map->context);

	map->capacity = TYPEALIGN(64, Max(map->nentries, 1));
	map->values = larger<char>(nullptr, 0, static_cast<Size>(type_width(map->type)) * map->capacity);
	map->nulls = larger<uint64>(nullptr, 0, map->capacity / 64);
	MemoryContextSwitchTo(old);
}

static const char *
make_pairs(MapData *map)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "gpuvm map evaluation", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(scratch);
	PairMaking	making = {map, false};
	int			sqlstate = 0;
	bool		done = guarded(evaluate_pairs, &making, &sqlstate);

	MemoryContextSwitchTo(old);
	MemoryContextDelete(scratch);
	if (!done)
		map->failure = MemoryContextStrdup(map->context, psprintf("a pair of entries raises SQLSTATE %s", unpack_sql_state(sqlstate)));
	else if (making.too_large)
		map->failure = "its values take too much memory";
	return map->failure;
}

/* What codes of one of the columns add to a pair's number; the null's is behind them. */
static void
make_parts(MapData *map, uint32 times)
{
	const uint32 null = map->nentries * times;

	reserve(map);
	for (uint32 code = 0; code < map->nentries; code++)
		reinterpret_cast<uint32 *>(map->values)[code] = code * times;
	memcpy(map->null_value, &null, sizeof(null));
	map->has_null_value = true;
}

/* -- all of it ------------------------------------------------------------------------------------ */

static uint64
hash_serials(uint64 first, uint64 second)
{
	const uint64 both[] = {first, second};

	return hash_bytes_extended(reinterpret_cast<const unsigned char *>(both), sizeof(both), 0);
}

static bool
has_no_delta(const EntrySet *set)
{
	return set->column.base != nullptr && (set->column.local == nullptr || set->column.local->nadded == 0);
}

const char *
build_pair(GpuvmScanState *state, int number, Expr *expr)
{
	const PlanMap *plan = &state->plan->maps[number];
	MapData    *map = map_create(state->map_context, plan, expr == nullptr ? nullptr : pair_key(expr));
	CachedMap  *cached = nullptr;
	const char *failure = nullptr;
	uint64		serials = 0;
	uint64		family = 0;
	uint64		total;
	bool		settled;

	map->from = entry_set(state, plan->from);
	map->to = entry_set(state, plan->to);
	map->nentries = set_count(&map->from);
	state->maps[number] = map;
	if (!is_of_pairs(plan->kind))
	{
		make_parts(map, plan->kind == MapKind::PairFirst ? set_count(&map->to) + 1 : 1);
		return nullptr;
	}
	total = (uint64{map->nentries} + 1) * (uint64{set_count(&map->to)} + 1);
	if (total > MAX_PAIRS_MADE)
		return "there are too many pairs of values in two dictionaries";
	map->nentries = static_cast<uint32>(total);
	settled = map_is_settled(plan->expr) && has_no_delta(&map->from) && has_no_delta(&map->to);
	if (settled)
	{
		family = pair_family(map->from.column.base->family, map->to.column.base->family);
		serials = hash_serials(map->from.column.base->serial, map->to.column.base->serial);
		cached = map_cache_find(serials, map);
		failure = cached_failure(family, plan, false);
	}
	if (failure != nullptr)
		return failure;
	if (cached != nullptr)
	{
		state->cached_maps[number] = cached;
		state->maps[number] = cached->data;
		return nullptr;
	}
	reserve(map);
	state->figures.map_entries += map->nentries;
	(void) make_pairs(map);
	if (settled)
		state->cached_maps[number] = map_cache_add(map->failure == nullptr ? serials : family, InvalidOid, 0, map);
	return map->failure;
}

}  // namespace gpuvm
