/*
 * map_meet.cc: maps between two dictionaries: a value's code in the other one, or its
 * place among the values of both (compiler/dictionaries.cc).
 *
 * Made anew for each execution, when the maps before them are there: either dictionary
 * may have grown since, and a delta adds to it. What is made of two columns' dictionaries alone is kept
 * by their serials, which say exactly what is in them. What is made of pairs of their entries is in map_pair.cc.
 */
#include "pg/pg.h"

extern "C" {
#include "access/tupmacs.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"
#include "utils/typcache.h"
}

#include "executor/map_internal.h"
#include "pg/text_order.h"
#include "executor/scan_state.h"
#include "vm/program.h"

namespace gpuvm {

/* -- sets of entries ---------------------------------------------------------------------- */

EntrySet
entry_set(GpuvmScanState *state, const DictionaryRef &ref)
{
	EntrySet	set = {};

	if (ref.map >= 0)
	{
		set.map = state->maps[ref.map];
		set.typlen = set.map->typlen;
		set.byval = set.map->typbyval;
		return set;
	}
	source_entries(state->sources[ref.cursor], ref.attnum, &set.column);
	set.typlen = set.column.attlen;
	set.byval = set.column.byval;
	return set;
}

uint32
set_count(const EntrySet *set)
{
	if (set->map == nullptr)
		return entry_count(&set->column);
	if (set->map->kind == MapKind::Translate)
		return set->map->nbefore + set->map->nentries;
	return set->map->nitems;
}

Datum
set_datum(const EntrySet *set, uint32 code)
{
	const MapData *map = set->map;

	if (map == nullptr)
		return entry_datum(&set->column, code);
	if (map->kind != MapKind::Translate)
		return map->items[code];
	return code < map->nbefore ? set_datum(&map->to, code) : set_datum(&map->from, code - map->nbefore);
}

/* The code of an image (store/dictionary.h), which `value` is the datum of. */
static int32
set_find(const EntrySet *set, Datum value, const char *image, uint32 len)
{
	const MapData *map = set->map;
	int32		code;

	if (map == nullptr)
		return entries_find(set->column.base, set->column.local, image, len);
	if (map->kind != MapKind::Translate)
		return find_item(map, value);
	code = set_find(&map->to, value, image, len);
	if (code != NO_CODE)
		return code;
	code = set_find(&map->from, value, image, len);
	return code == NO_CODE ? NO_CODE : code + static_cast<int32>(map->nbefore);
}

/* How many codes from 0 on are the same values in both. */
static uint32
shared_entries(const EntrySet *a, const EntrySet *b)
{
	if (a->map != nullptr || b->map != nullptr || a->column.base == nullptr || b->column.base == nullptr ||
		a->column.base->family != b->column.base->family)
		return 0;
	return Min(a->column.base->nentries, b->column.base->nentries);
}

/* -- what was made before ------------------------------------------------------------------- */

struct KeptMeeting
{
	MapKind		kind;
	uint64		from;			/* serials */
	uint64		to;
	Oid			collation;
	Oid			type;
	uint32		n;
	uint32		values[FLEXIBLE_ARRAY_MEMBER];
};

constexpr int KEPT_MEETINGS = 64;
constexpr Size KEPT_BYTES = 16 * 1024 * 1024;

static KeptMeeting *kept[KEPT_MEETINGS];	/* most recently used first */

static bool
is_lasting(const EntrySet *set)
{
	return set->map == nullptr && set->column.base != nullptr && (set->column.local == nullptr || set->column.local->nadded == 0);
}

static void
kept_to_front(int i, KeptMeeting *meeting)
{
	memmove(static_cast<void *>(kept + 1), kept, sizeof(kept[0]) * i);
	kept[0] = meeting;
}

static bool
take_kept(const PlanMap *plan, MapData *map)
{
	if (!is_lasting(&map->from) || !is_lasting(&map->to))
		return false;
	for (int i = 0; i < KEPT_MEETINGS && kept[i] != nullptr; i++)
	{
		KeptMeeting *meeting = kept[i];

		if (meeting->kind == plan->kind && meeting->from == map->from.column.base->serial && meeting->to == map->to.column.base->serial &&
			meeting->collation == plan->collation && meeting->type == plan->type && meeting->n == map->nentries)
		{
			memcpy(map->values, meeting->values, sizeof(uint32) * meeting->n);
			kept_to_front(i, meeting);
			return true;
		}
	}
	return false;
}

static void
keep(const PlanMap *plan, const MapData *map)
{
	Size		size = offsetof(KeptMeeting, values) + sizeof(uint32) * Size{map->nentries};
	Size		total = size;
	KeptMeeting *meeting;

	if (!is_lasting(&map->from) || !is_lasting(&map->to) || size > KEPT_BYTES / 2)
		return;
	meeting = static_cast<KeptMeeting *>(MemoryContextAllocHuge(CacheMemoryContext, size));
	meeting->kind = plan->kind;
	meeting->from = map->from.column.base->serial;
	meeting->to = map->to.column.base->serial;
	meeting->collation = plan->collation;
	meeting->type = plan->type;
	meeting->n = map->nentries;
	memcpy(meeting->values, map->values, sizeof(uint32) * map->nentries);
	for (int i = 0; i < KEPT_MEETINGS && kept[i] != nullptr; i++)
	{
		total += offsetof(KeptMeeting, values) + sizeof(uint32) * Size{kept[i]->n};
		if (total <= KEPT_BYTES && i < KEPT_MEETINGS - 1)
			continue;
		pfree(kept[i]);
		kept[i] = nullptr;
		for (int j = i + 1; j < KEPT_MEETINGS && kept[j] != nullptr; j++)
		{
			pfree(kept[j]);
			kept[j] = nullptr;
		}
	}
	kept_to_front(KEPT_MEETINGS - 1, meeting);
}

/* -- making them ---------------------------------------------------------------------------- */

struct Making
{
	const PlanMap *plan;
	MapData    *map;
};

static void
make_constant(Making *m)
{
	MapData    *map = m->map;
	ExprContext *econtext = CreateStandaloneExprContext();
	ExprState  *expr = ExecInitExpr(expression_planner(static_cast<Expr *>(copyObjectImpl(map->expr))), nullptr);
	bool		isnull;
	Datum		value = ExecEvalExprSwitchContext(expr, econtext, &isnull);
	uint32		item = 0;

	if (isnull)
	{
		map->nulls[0] = 1;
		map->any_null = true;
	}
	else
		item = map_item(map, value);
	memcpy(map->values, &item, sizeof(item));
}

static void
make_translation(Making *m)
{
	MapData    *map = m->map;
	uint32	   *values = reinterpret_cast<uint32 *>(map->values);
	uint32		shared = shared_entries(&map->from, &map->to);

	for (uint32 code = 0; code < map->nentries; code++)
	{
		Datum		value;
		char		bytes[sizeof(Datum)] = {};
		const char *image = bytes;
		uint32		len = sizeof(Datum);
		int32		found;

		if (code % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
		if (code < shared)
		{
			values[code] = code;
			continue;
		}
		value = set_datum(&map->from, code);
		if (map->from.byval)
			store_att_byval(bytes, value, map->from.typlen);
		else
		{
			image = DatumGetPointer(value);
			len = map->from.typlen > 0 ? map->from.typlen : VARSIZE(image);
		}
		found = set_find(&map->to, value, image, len);
		values[code] = found == NO_CODE ? map->nbefore + code : static_cast<uint32>(found);
	}
}

struct Ordering
{
	SortSupportData ssup;
	const EntrySet *sets[2];
	uint32		n[2];
};

struct OrderedValue
{
	Datum		key;			/* abbreviated, if the type has such keys */
	uint32		number;			/* among the values of both */
};

static Datum
ordered_datum(const Ordering *o, uint32 number)
{
	return number < o->n[0] ? set_datum(o->sets[0], number) : set_datum(o->sets[1], number - o->n[0]);
}

static int
compare_values(const void *a, const void *b, void *context)
{
	Ordering   *o = static_cast<Ordering *>(context);
	const OrderedValue *left = static_cast<const OrderedValue *>(a);
	const OrderedValue *right = static_cast<const OrderedValue *>(b);
	int			order = ApplySortComparator(left->key, false, right->key, false, &o->ssup);

	CHECK_FOR_INTERRUPTS();
	if (order == 0 && o->ssup.abbrev_converter != nullptr)
		order = ApplySortAbbrevFullComparator(ordered_datum(o, left->number), false, ordered_datum(o, right->number), false, &o->ssup);
	return order;
}

static void
make_order(Making *m)
{
	MapData    *map = m->map;
	Ordering	o = {};
	OrderedValue *all;
	uint32		total;
	uint32		rank = 0;

	o.sets[0] = &map->from;
	o.sets[1] = &map->to;
	o.n[0] = map->nentries;
	o.n[1] = map->nbefore;
	total = o.n[0] + o.n[1];
	o.ssup.ssup_cxt = CurrentMemoryContext;
	o.ssup.ssup_collation = cheapest_collation(map->collation);
	o.ssup.abbreviate = true;
	PrepareSortSupportFromOrderingOp(lookup_type_cache(m->plan->type, TYPECACHE_LT_OPR)->lt_opr, &o.ssup);
	all = static_cast<OrderedValue *>(palloc_extended(sizeof(OrderedValue) * Max(total, 1), MCXT_ALLOC_HUGE));
	for (uint32 i = 0; i < total; i++)
	{
		Datum		value = ordered_datum(&o, i);

		all[i] = OrderedValue{o.ssup.abbrev_converter != nullptr ? o.ssup.abbrev_converter(value, &o.ssup) : value, i};
	}
	qsort_arg(all, total, sizeof(OrderedValue), compare_values, &o);
	for (uint32 i = 0; i < total; i++)
	{
		if (i > 0 && compare_values(&all[i - 1], &all[i], &o) != 0)
			rank++;
		if (all[i].number < o.n[0])
			reinterpret_cast<uint32 *>(map->values)[all[i].number] = rank;
		else
			map->other[all[i].number - o.n[0]] = rank;
	}
}

static void
make(void *argument)
{
	Making	   *m = static_cast<Making *>(argument);

	switch (m->plan->kind)
	{
		case MapKind::Constant: make_constant(m); break;
		case MapKind::Translate: make_translation(m); break;
		default: make_order(m); break;
	}
}

/* The order of the other side, which was made with this one's. */
static bool
take_other(const GpuvmScanState *state, int number, MapData *map)
{
	const PlanMap *plan = &state->plan->maps[number];

	for (int i = 0; i < number; i++)
	{
		const PlanMap *other = &state->plan->maps[i];

		if (other->kind != MapKind::Order || !same_dictionary(other->from, plan->to) || !same_dictionary(other->to, plan->from) ||
			other->collation != plan->collation || other->type != plan->type || state->maps[i]->other == nullptr)
			continue;
		memcpy(map->values, state->maps[i]->other, sizeof(uint32) * map->nentries);
		return true;
	}
	return false;
}

const char *
build_meeting(GpuvmScanState *state, int number, Expr *expr)
{
	const PlanMap *plan = &state->plan->maps[number];
	MapData    *map = map_create(state->map_context, plan, expr);
	MemoryContext old = MemoryContextSwitchTo(map->context);
	Making		making = {plan, map};
	bool		alone = plan->kind == MapKind::Order && same_dictionary(plan->from, plan->to);
	uint64		total = 1;
	int			sqlstate = 0;
	bool		done;

	map->nentries = 1;
	if (plan->kind != MapKind::Constant)
	{
		map->from = entry_set(state, plan->from);
		map->to = entry_set(state, plan->to);
		map->nentries = set_count(&map->from);
		/* an order of one dictionary's values alone, of which equal ones share a place */
		map->nbefore = alone ? 0 : set_count(&map->to);
		map->typlen = map->from.typlen;
		map->typbyval = map->from.byval;
		total = uint64{map->nentries} + map->nbefore;
	}
	if (total > MAP_MAX_ENTRIES || (plan->kind != MapKind::Constant && (map->from.typlen != map->to.typlen || map->from.byval != map->to.byval)))
	{
		MemoryContextSwitchTo(old);
		return total > MAP_MAX_ENTRIES ? "there are too many values in the dictionaries that meet" : "the dictionaries that meet are of other types";
	}
	map->values = larger<char>(nullptr, 0, sizeof(uint32) * Max(Size{map->nentries}, 1));
	map->nulls = larger<uint64>(nullptr, 0, (Size{map->nentries} + 63) / 64 + 1);
	state->maps[number] = map;
	if (plan->kind != MapKind::Constant && take_kept(plan, map))
	{
		MemoryContextSwitchTo(old);
		return nullptr;
	}
	if (plan->kind == MapKind::Order && take_other(state, number, map))
	{
		keep(plan, map);
		MemoryContextSwitchTo(old);
		return nullptr;
	}
	if (plan->kind == MapKind::Order && !alone)
		map->other = larger<uint32>(nullptr, 0, Max(Size{map->nbefore}, 1));
	state->figures.map_entries += map->nentries;
	done = guarded(make, &making, &sqlstate);
	MemoryContextSwitchTo(old);
	if (!done)
		return psprintf("a value raises SQLSTATE %s", unpack_sql_state(sqlstate));
	if (plan->kind != MapKind::Constant)
		keep(plan, map);
	return nullptr;
}

uint32
map_count(const GpuvmScanState *state, int number)
{
	return is_of_column(&state->plan->maps[number]) ? entry_count(&state->map_entries[number]) : state->maps[number]->nentries;
}

bool
meeting_datum(const MapData *map, uint32 code, Datum *value)
{
	EntrySet	whole = {};

	whole.map = map;
	if (code >= set_count(&whole))
		return false;
	*value = set_datum(&whole, code);
	return true;
}

}  // namespace gpuvm
