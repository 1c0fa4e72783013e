/*
 * maps.h: what PostgreSQL says of the entries of a dictionary, as Lookup reads it.
 *
 * When execution starts and the sources are open, each of the plan's maps is there
 * already, from an execution before (map_cache.cc), or is made or made longer
 * (map_build.cc): its expression is evaluated for every entry. Entries that only this
 * query's delta has are behind the others, in a copy of the map.
 */
#ifndef GPUVM_EXECUTOR_MAPS_H
#define GPUVM_EXECUTOR_MAPS_H

#include "compiler/maps.h"
#include "core/types.h"
#include "pg/pg.h"
#include "store/dictionary.h"

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/pg_list.h"
}

namespace gpuvm {

struct GpuvmScanState;
struct ScanPart;
struct Job;

/* A column's entries, in the order of their codes. */
struct EntrySource
{
	const Dictionary *base;		/* NULL: it has none */
	const LocalDictionary *local;	/* NULL: nothing behind it */
	int16		attlen;
	bool		byval;
};

inline uint32
entry_count(const EntrySource *source)
{
	return local_nentries(source->base, source->local);
}

inline Datum
entry_datum(const EntrySource *source, uint32 code)
{
	return image_datum(local_entry(source->base, source->local, code), source->attlen, source->byval);
}

struct MapData;

/* The entries that codes are of: a column's, or, with `map`, that one's values. */
struct EntrySet
{
	EntrySource column;
	const MapData *map;
	int16		typlen;
	bool		byval;
};

/*
 * A map for codes below nentries. Those of a longer dictionary of the family begin in the same way,
 * so that this one may be used for a shorter one.
 *
 * The items are what result values stand for: of Derived and Rank the different
 * values of the expression; of a Rank of the bare column they are the entries, and are not kept here.
 */
struct MapData
{
	MemoryContext context;
	MapKind		kind;
	Expr	   *expr;			/* its only Var is number 1 of relation 1 */
	Oid			collation;
	bool		null_entry;
	bool		bare;			/* Rank: of the column itself */
	Type		type;
	uint64		settings;		/* a hash of those that functions read which are said to be immutable */
	int16		typlen;			/* of the expression's PostgreSQL type */
	bool		typbyval;

	uint32		nentries;
	uint32		capacity;
	char	   *values;			/* type_width() each; zeroes for nulls */
	uint64	   *nulls;			/* bitmap */
	bool		any_null;
	bool		has_null_value; /* what it makes of a null is known, */
	bool		null_isnull;
	char		null_value[8];
	uint32		null_item;		/* Rank: the item that it is */

	const char *failure;		/* why it cannot be made for so many entries and more; NULL: that is not known */
	uint32		failed_at;

	uint32		nitems;
	uint32		item_capacity;
	Size		item_bytes;		/* of items that are no values themselves */
	Datum	   *items;
	uint32		nslots;			/* a hash table of them, as a dictionary's */
	uint64	   *slots;
	uint32	   *entry_items;	/* Rank: the item of each entry; null: ~0 */
	uint32		nranked;		/* of the items */
	uint32	   *order;			/* Rank: the items in their order: a rank is the place of the first of equal ones */
	bool	   *same;			/* Rank: of each place, whether its item is equal to the one before */
	bool		ties;			/* Rank: some are */

	/* between two dictionaries (map_meet.cc) */
	EntrySet	from;
	EntrySet	to;
	uint32		nbefore;		/* entries of `to` */
	uint32	   *other;			/* Order: the places of the values of `to`; NULL if they are not known here */
};

/* A copy of the expression whose column is number 1 of relation 1, so that equal ones are equal. */
Expr	   *map_key(const Expr *expr);

/* -- map_build.cc ---------------------------------------------------------------------- */

MapData    *map_create(MemoryContext context, const PlanMap *plan, Expr *expr);

/* In the context, for codes below nentries, with a copy of everything but items' values. */
MapData    *map_copy(MemoryContext context, const MapData *from, uint32 nentries);

/*
 * Evaluates up to entry `upto`. NULL, or why that is not possible: an entry's
 * error, which is not raised. The map stays what it was then.
 */
const char *map_extend(MapData *map, const EntrySource *source, uint32 upto);

/* The item with the value's bytes, one that is new if need be, in the map's context; find_item: NO_CODE if there is none. */
uint32		map_item(MapData *map, Datum value);
int32		find_item(const MapData *map, Datum value);

/* -- map_rank.cc ------------------------------------------------------------------------ */

/* Is the rank that of several items? */
inline bool
is_tied(const MapData *ranks, int32 rank)
{
	return static_cast<uint32>(rank) + 1 < ranks->nranked && ranks->same[rank + 1];
}

constexpr const char *TIED_ENTRIES = "entries are equal without being the same";

/* A Tied map, of the ranks. */
void		map_ties(MapData *map, const MapData *ranks, uint32 upto);

/* -- map_meet.cc: maps that are of no column: NULL, or why it cannot be made ------------------ */

const char *build_meeting(GpuvmScanState *state, int number, Expr *expr);

/* map_pair.cc: those of two columns together, in the same way. */
const char *build_pair(GpuvmScanState *state, int number, Expr *expr);

/* A copy of the expression whose columns are numbers 1 and 2 of relation 1. */
Expr	   *pair_key(const Expr *expr);

/* Codes that the map has values for. */
uint32		map_count(const GpuvmScanState *state, int number);

/* What a code of a Constant or Translate stands for; false: there is none such. */
bool		meeting_datum(const MapData *map, uint32 code, Datum *value);

/* -- guard.cc ------------------------------------------------------------------------------- */

/* Runs what computes, and holds nothing but memory, so that errors of data are no errors: false and the SQLSTATE. */
bool		guarded(void (*work) (void *), void *argument, int *sqlstate);

/*
 * An expression without columns, in the context's memory per tuple, before PostgreSQL would evaluate
 * it, or where it perhaps never would: false and the SQLSTATE if it raises.
 */
bool		evaluate_leaf(const Node *expr, ExprState *state, ExprContext *econtext, Datum *value, bool *isnull, int *sqlstate);

/* -- zone_tables.cc --------------------------------------------------------------------------- */

/* The table, and its memory is not the caller's. NULL, or why there is none. */
const char *zone_table(const PlanMap *plan, MapData **table);

/* -- map_cache.cc: a session's, least recently used ones go ------------------------------- */

struct CachedMap
{
	MapData    *data;
	uint64		family;
	Oid			relid;			/* for the planner */
	AttrNumber	attnum;
	int			users;
};

CachedMap  *map_cache_find(uint64 family, const MapData *like);
/* Takes the map's context over. */
CachedMap  *map_cache_add(uint64 family, Oid relid, AttrNumber attnum, MapData *data);
void		map_cache_release(CachedMap *map);
bool		map_is_cached(Oid relid, const PlanMap *map);
const char *cached_failure(uint64 family, const PlanMap *map, bool untied);

/* -- maps.cc: a scan's ---------------------------------------------------------------------- */

/* What the maps' expressions have that is known when execution starts. */
void		maps_begin(GpuvmScanState *state);

/* Makes what is not there. False with a FallbackReason and a detail. */
bool		maps_build(GpuvmScanState *state, int *reason, const char **detail);
void		maps_release(GpuvmScanState *state);

/* Bytes in the arena, and putting them there. */
uint64		maps_bytes(const GpuvmScanState *state);
void		maps_to_job(const GpuvmScanState *state, uint64 at, Job *job);

/* The ranks of which the Tied map is. */
const MapData *ranks_of_ties(const GpuvmScanState *state, int number);

/* What a value of a result column of codes, or of a map, stands for: nothing is copied. */
Datum		output_datum(const GpuvmScanState *state, const ScanPart *part, int column, int32 value);

}  // namespace gpuvm

#endif
