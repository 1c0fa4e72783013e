/*
 * map_cache.cc: a session keeps its maps from one execution to the next.
 *
 * A map is of a family of dictionaries (tablet/dictionary.h), so it outlives the
 * dictionary that it was made for: what a refresh adds is evaluated then. Maps in use are
 * neither changed nor freed.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/nodes.h"
#include "utils/memutils.h"
}

#include "executor/maps.h"

namespace gpuvm {

/* All maps of a session together. A single one that is larger than half of it is not kept. */
constexpr Size CACHE_BYTES = 64 * 1024 * 1024;
constexpr int CACHE_MAPS = 256;	/* they are looked through */

static List *maps;				/* of CachedMap, most recently used first */

static void
list_change(List *(*change) (List *, void *), CachedMap *map)
{
	MemoryContext old = MemoryContextSwitchTo(CacheMemoryContext);

	maps = change(maps, map);
	MemoryContextSwitchTo(old);
}

static List *
to_front(List *list, void *map)
{
	return lcons(map, list_delete_ptr(list, map));
}

/* The least recently used ones that nobody uses go. */
static void
make_room(void)
{
	Size		bytes = 0;
	ListCell   *lc;

	foreach(lc, maps)
		bytes += MemoryContextMemAllocated(static_cast<CachedMap *>(lfirst(lc))->data->context, true);
	for (int i = list_length(maps) - 1; i >= 0 && (bytes > CACHE_BYTES || list_length(maps) > CACHE_MAPS); i--)
	{
		CachedMap  *map = static_cast<CachedMap *>(list_nth(maps, i));

		if (map->users > 0)
			continue;
		bytes -= MemoryContextMemAllocated(map->data->context, true);
		list_change(list_delete_ptr, map);
		/* it lies in there itself */
		MemoryContextDelete(map->data->context);
	}
}

CachedMap *
map_cache_find(uint64 family, const MapData *like)
{
	ListCell   *lc;

	foreach(lc, maps)
	{
		CachedMap  *map = static_cast<CachedMap *>(lfirst(lc));
		const MapData *data = map->data;

		if (map->family == family && data->kind == like->kind && data->collation == like->collation &&
			data->null_entry == like->null_entry && data->settings == like->settings && equal(data->expr, like->expr))
		{
			list_change(to_front, map);
			map->users++;
			return map;
		}
	}
	return nullptr;
}

CachedMap *
map_cache_add(uint64 family, Oid relid, AttrNumber attnum, MapData *data)
{
	CachedMap  *map;

	if (MemoryContextMemAllocated(data->context, true) > CACHE_BYTES / 2)
		return nullptr;
	map = static_cast<CachedMap *>(MemoryContextAllocZero(data->context, sizeof(CachedMap)));
	map->data = data;
	map->family = family;
	map->relid = relid;
	map->attnum = attnum;
	map->users = 1;
	MemoryContextSetParent(data->context, CacheMemoryContext);
	list_change(to_front, map);
	make_room();
	return map;
}

void
map_cache_release(CachedMap *map)
{
	map->users--;
}

const char *
cached_failure(uint64 family, const PlanMap *plan, bool untied)
{
	Expr	   *expr = nullptr;
	ListCell   *lc;

	foreach(lc, maps)
	{
		CachedMap  *map = static_cast<CachedMap *>(lfirst(lc));

		if ((map->data->failure == nullptr && !(untied && map->data->ties)) || map->family != family || map->data->kind != plan->kind || map->data->collation != plan->collation)
			continue;
		if (expr == nullptr)
			expr = is_of_pairs(plan->kind) ? pair_key(plan->expr) : map_key(plan->expr);
		if (equal(map->data->expr, expr))
			return map->data->failure != nullptr ? map->data->failure : TIED_ENTRIES;
	}
	return nullptr;
}

bool
map_is_cached(Oid relid, const PlanMap *plan)
{
	Expr	   *expr = nullptr;
	bool		found = false;
	ListCell   *lc;

	foreach(lc, maps)
	{
		CachedMap  *map = static_cast<CachedMap *>(lfirst(lc));

		if (map->relid != relid || map->attnum != plan->attnum || map->data->kind != plan->kind || map->data->collation != plan->collation)
			continue;
		if (expr == nullptr)
			expr = map_key(plan->expr);
		found = found || equal(map->data->expr, expr);
	}
	return found;
}

}  // namespace gpuvm
