/* map_rank.cc: the places of values in the order of their type, for keys, min and max. */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "port/pg_bswap.h"
#include "utils/lsyscache.h"
#include "utils/sortsupport.h"
#include "utils/typcache.h"
}

#include "executor/map_internal.h"
#include "pg/text_order.h"

namespace gpuvm {

struct Ranking
{
	const MapData *map;
	const EntrySource *source;
	SortSupportData ssup;
};

/* An item and its abbreviated key, or its value where the type has no such keys. */
struct RankedItem
{
	Datum		key;
	uint32		item;
};

static inline Datum
item_datum(const Ranking *r, uint32 item)
{
	return r->map->bare ? entry_datum(r->source, item) : r->map->items[item];
}

static RankedItem
ranked_item(Ranking *r, uint32 item)
{
	Datum		value = item_datum(r, item);

	return RankedItem{r->ssup.abbrev_converter != nullptr ? r->ssup.abbrev_converter(value, &r->ssup) : value, item};
}

static int
compare_items(const void *a, const void *b, void *context)
{
	Ranking    *r = static_cast<Ranking *>(context);
	const RankedItem *left = static_cast<const RankedItem *>(a);
	const RankedItem *right = static_cast<const RankedItem *>(b);
	int			order = ApplySortComparator(left->key, false, right->key, false, &r->ssup);

	CHECK_FOR_INTERRUPTS();
	if (order == 0 && r->ssup.abbrev_converter != nullptr)
		order = ApplySortAbbrevFullComparator(item_datum(r, left->item), false, item_datum(r, right->item), false, &r->ssup);
	return order;
}

#define ST_SORT sort_by_key
#define ST_ELEMENT_TYPE RankedItem
#define ST_COMPARE(a, b) ((a)->key < (b)->key ? -1 : (a)->key > (b)->key)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

/* Eight bytes of a text from `at` on, zeroes behind its end: texts have none. */
static Datum
text_word(const Ranking *r, uint32 item, Size at)
{
	const void *text = DatumGetPointer(item_datum(r, item));
	const Size	len = VARSIZE_ANY_EXHDR(text);
	uint64		word = 0;

	if (at < len)
		memcpy(&word, VARDATA_ANY(text) + at, Min(len - at, sizeof(word)));
	return pg_ntoh64(word);
}

/*
 * Texts whose first `at` bytes are equal, by their bytes: eight at a time, side by side, and then those that are equal by the next eight. Comparing them
 * one with another misses the caches for both each time, and entries of a dictionary mostly begin alike. What is alike for long is left to qsort.
 */
static void
sort_by_bytes(Ranking *r, RankedItem *items, uint32 n, Size at)
{
	constexpr Size MOST_ALIKE = 512;

	if (at >= MOST_ALIKE)
	{
		for (uint32 k = 0; k < n; k++)
			items[k] = ranked_item(r, items[k].item);
		qsort_arg(items, n, sizeof(RankedItem), compare_items, r);
		return;
	}
	for (uint32 k = 0; k < n; k++)
		items[k].key = text_word(r, items[k].item, at);
	sort_by_key(items, n);
	for (uint32 first = 0, end; first < n; first = end)
	{
		for (end = first + 1; end < n && items[end].key == items[first].key;)
			end++;
		if (end - first > 1 && (items[first].key & 0xff) != 0)
			sort_by_bytes(r, items + first, end - first, at + sizeof(uint64));
	}
}

/* Are its values texts that are not stored in other ways, and compared by nothing but their bytes? */
static bool
are_bytes(const MapData *map, Oid type)
{
	return map->bare && (getBaseType(type) == TEXTOID || getBaseType(type) == VARCHAROID) && orders_as_bytes(map->collation);
}

void
map_rank(MapData *map, const EntrySource *source, uint32 upto)
{
	uint32		n = map->bare ? upto : map->nitems;
	uint32		nnew = n - map->nranked;
	RankedItem *added = static_cast<RankedItem *>(palloc_extended(sizeof(RankedItem) * Max(nnew, 1), MCXT_ALLOC_HUGE));
	uint32	   *order = static_cast<uint32 *>(palloc_extended(sizeof(uint32) * Max(n, 1), MCXT_ALLOC_HUGE));
	uint32	   *ranks = static_cast<uint32 *>(palloc_extended(sizeof(uint32) * Max(n, 1), MCXT_ALLOC_HUGE));
	bool	   *same = static_cast<bool *>(palloc_extended(Max(n, 1), MCXT_ALLOC_HUGE));
	uint32		rank = 0;
	uint32		i = 0;
	uint32		j = 0;
	RankedItem	before = {};
	RankedItem	next = {};
	Ranking		r = {map, source, {}};
	Oid			type = exprType(reinterpret_cast<Node *>(map->expr));
	const bool	bytes = are_bytes(map, type);

	r.ssup.ssup_cxt = CurrentMemoryContext;
	r.ssup.ssup_collation = cheapest_collation(map->collation);
	r.ssup.abbreviate = !bytes;
	PrepareSortSupportFromOrderingOp(lookup_type_cache(type, TYPECACHE_LT_OPR)->lt_opr, &r.ssup);
	for (uint32 k = 0; k < nnew; k++)
		added[k] = ranked_item(&r, map->nranked + k);
	if (bytes)
	{
		sort_by_bytes(&r, added, nnew, 0);
		for (uint32 k = 0; k < nnew; k++)
			added[k] = ranked_item(&r, added[k].item);
	}
	else
		qsort_arg(added, nnew, sizeof(RankedItem), compare_items, &r);
	if (nnew > 0 && map->nranked > 0)
		next = ranked_item(&r, map->order[0]);
	for (uint32 k = 0; k < n; k++)
	{
		RankedItem	taken;

		if (nnew == 0)
		{
			rank = map->same[k] ? rank : k;
			ranks[map->order[k]] = rank;
			continue;
		}
		if (j == nnew || (i < map->nranked && compare_items(&next, &added[j], &r) <= 0))
		{
			taken = next;
			if (++i < map->nranked)
				next = ranked_item(&r, map->order[i]);
		}
		else
			taken = added[j++];
		same[k] = k > 0 && compare_items(&before, &taken, &r) == 0;
		map->ties = map->ties || same[k];
		rank = same[k] ? rank : k;
		before = taken;
		order[k] = taken.item;
		ranks[taken.item] = rank;
	}

	if (n > map->nranked)
	{
		MemoryContext old = MemoryContextSwitchTo(map->context);

		map->order = larger(map->order, map->nranked, n);
		map->same = larger(map->same, map->nranked, n);
		MemoryContextSwitchTo(old);
		memcpy(map->order, order, sizeof(uint32) * n);
		memcpy(map->same, same, n);
		map->nranked = n;
	}
	for (uint32 code = 0; code < upto; code++)
	{
		uint32		item = map->bare ? code : map->entry_items[code];

		rank = item == NO_ITEM ? 0 : ranks[item];
		memcpy(map->values + Size{code} * sizeof(uint32), &rank, sizeof(rank));
	}
	if (map->has_null_value && !map->null_isnull)
		memcpy(map->null_value, &ranks[map->null_item], sizeof(uint32));
}

void
map_ties(MapData *map, const MapData *ranks, uint32 upto)
{
	const int32 *places = reinterpret_cast<const int32 *>(ranks->values);
	MemoryContext old = MemoryContextSwitchTo(map->context);
	int32		of_null;

	map->nentries = upto;
	map->capacity = TYPEALIGN(64, Max(upto, 1));
	map->values = larger<char>(nullptr, 0, map->capacity);
	map->nulls = larger<uint64>(nullptr, 0, map->capacity / 64);
	MemoryContextSwitchTo(old);
	/* ranks of no entries have none */
	if (upto > 0)
		memcpy(map->nulls, ranks->nulls, map->capacity / 64 * sizeof(uint64));
	map->any_null = ranks->any_null;
	map->ties = ranks->ties;
	for (uint32 code = 0; code < upto && ranks->ties; code++)
		map->values[code] = is_tied(ranks, places[code]);
	memcpy(&of_null, ranks->null_value, sizeof(of_null));
	map->has_null_value = ranks->has_null_value;
	map->null_isnull = ranks->null_isnull;
	map->null_value[0] = ranks->has_null_value && !ranks->null_isnull && is_tied(ranks, of_null);
}

}  // namespace gpuvm
