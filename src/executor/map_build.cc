/*
 * map_build.cc: an expression evaluated for the entries of a dictionary.
 *
 * PostgreSQL might never evaluate it for some of them, so an error is nothing that a
 * user should see: it is caught (guard.cc), and PostgreSQL's own plan runs.
 */
#include "pg/pg.h"

extern "C" {
#include "common/hashfn.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parser.h"
#include "pgtime.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/bytea.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"
#include "utils/xml.h"
}

#include <cstring>

#include "executor/map_internal.h"
#include "pg/value_form.h"

namespace gpuvm {

/* -- maps -------------------------------------------------------------------------------- */

static uint64
hash_settings(void)
{
	const int	numbers[] = {bytea_output, DateStyle, DateOrder, IntervalStyle, extra_float_digits, quote_all_identifiers, Array_nulls,
		xmlbinary, xmloption, backslash_quote};
	const char *const names[] = {pg_get_timezone_name(session_timezone), locale_monetary, locale_numeric, locale_time};
	uint64		hash = hash_bytes_extended(reinterpret_cast<const unsigned char *>(numbers), sizeof(numbers), 0);

	for (const char *name : names)
	{
		if (name != nullptr)
			hash = hash_bytes_extended(reinterpret_cast<const unsigned char *>(name), static_cast<int>(strlen(name)), hash);
	}
	return hash;
}

MapData *
map_create(MemoryContext parent, const PlanMap *plan, Expr *expr)
{
	MemoryContext context = AllocSetContextCreate(parent, "gpuvm map", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	MapData    *map = static_cast<MapData *>(palloc0(sizeof(MapData)));
	Expr	   *inner = expr;
	Oid			type = expr == nullptr ? InvalidOid : exprType(reinterpret_cast<Node *>(expr));

	while (inner != nullptr && (IsA(inner, RelabelType) || IsA(inner, CollateExpr)))
		inner = IsA(inner, RelabelType) ? ((RelabelType *) inner)->arg : ((CollateExpr *) inner)->arg;
	map->context = context;
	map->kind = plan->kind;
	map->expr = static_cast<Expr *>(copyObjectImpl(expr));
	map->collation = plan->collation;
	map->null_entry = plan->null_entry;
	map->settings = hash_settings();
	map->bare = plan->kind == MapKind::Rank && IsA(inner, Var);
	map->type = is_of_values(plan->kind) ? value_type(type).type : plan->kind == MapKind::Tied ? Type::Bool : Type::I32;
	if (OidIsValid(type))
		get_typlenbyval(type, &map->typlen, &map->typbyval);
	MemoryContextSwitchTo(old);
	return map;
}

template <typename T>
static T *
copied(const T *from, Size n, Size capacity)
{
	T		   *to;

	if (from == nullptr)
		return nullptr;
	to = static_cast<T *>(palloc_extended(sizeof(T) * Max(capacity, 1), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
	memcpy(to, from, sizeof(T) * n);
	return to;
}

MapData *
map_copy(MemoryContext parent, const MapData *from, uint32 nentries)
{
	MemoryContext context = AllocSetContextCreate(parent, "gpuvm map", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	MapData    *map = copied(from, 1, 1);
	int			width = type_width(from->type);

	map->context = context;
	map->values = copied(from->values, Size{from->nentries} * width, Size{from->capacity} * width);
	map->nulls = copied(from->nulls, from->capacity / 64, from->capacity / 64);
	map->entry_items = copied(from->entry_items, from->nentries, from->capacity);
	map->items = copied(from->items, from->nitems, from->item_capacity);
	map->slots = copied(from->slots, from->nslots, from->nslots);
	map->order = copied(from->order, from->nranked, from->nranked);
	map->same = copied(from->same, from->nranked, from->nranked);
	map->nentries = nentries;
	if (map->bare)
	{
		bool		begun = false;	/* one of the equal ones stays */

		/* entries of a longer dictionary go, and so do places: the ranks are made anew */
		map->nranked = 0;
		map->nentries = 0;
		map->ties = false;
		for (uint32 i = 0; i < from->nranked; i++)
		{
			begun = begun && from->same[i];
			if (from->order[i] >= nentries)
				continue;
			map->same[map->nranked] = begun;
			map->ties = map->ties || begun;
			map->order[map->nranked++] = from->order[i];
			begun = true;
		}
	}
	MemoryContextSwitchTo(old);
	return map;
}

static void
reserve_entries(MapData *map, uint32 upto)
{
	MemoryContext old = MemoryContextSwitchTo(map->context);
	uint32		capacity = TYPEALIGN(64, Max(upto, 1));
	int			width = type_width(map->type);

	if (capacity > map->capacity)
	{
		map->values = larger(map->values, Size{map->capacity} * width, Size{capacity} * width);
		map->nulls = larger(map->nulls, map->capacity / 64, capacity / 64);
		if (map->kind == MapKind::Rank && !map->bare)
			map->entry_items = larger(map->entry_items, map->capacity, capacity);
		map->capacity = capacity;
	}
	MemoryContextSwitchTo(old);
}

/* -- items ---------------------------------------------------------------------------------- */

static const char *
item_image(const MapData *map, const Datum *item, uint32 *len)
{
	if (map->typbyval)
	{
		*len = sizeof(Datum);
		return reinterpret_cast<const char *>(item);
	}
	*len = map->typlen == -1 ? VARSIZE(DatumGetPointer(*item)) : map->typlen;
	return DatumGetPointer(*item);
}

static uint32
add_item(MapData *map, const char *image, uint32 len, uint32 hash)
{
	MemoryContext old = MemoryContextSwitchTo(map->context);
	Datum		item;

	if (map->nitems == map->item_capacity)
	{
		uint32		capacity = Max(map->item_capacity * 2, 64);

		map->items = larger(map->items, map->item_capacity, capacity);
		map->item_capacity = capacity;
	}
	if (map->nitems >= map->nslots / 3 * 2)
	{
		uint32		nslots = dictionary_nslots(Max(map->nitems * 2, 64));
		uint64	   *slots = static_cast<uint64 *>(palloc_extended(sizeof(uint64) * nslots, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));

		for (uint32 i = 0; i < map->nslots; i++)
		{
			if (map->slots[i] != 0)
				dictionary_put(slots, nslots, map->slots[i]);
		}
		if (map->slots != nullptr)
			pfree(map->slots);
		map->slots = slots;
		map->nslots = nslots;
	}
	if (map->typbyval)
		memcpy(&item, image, sizeof(item));
	else
	{
		char	   *copy = static_cast<char *>(palloc(len));

		memcpy(copy, image, len);
		item = PointerGetDatum(copy);
		map->item_bytes += len;
	}
	map->items[map->nitems] = item;
	dictionary_put(map->slots, map->nslots, dictionary_slot(hash, map->nitems));
	MemoryContextSwitchTo(old);
	return map->nitems++;
}

static Datum
plain_datum(const MapData *map, Datum value)
{
	char		bytes[sizeof(Datum)];

	if (map->typlen == -1)
		return PointerGetDatum(PG_DETOAST_DATUM(value));
	if (!map->typbyval)
		return value;
	/* an enum's, say, is sign-extended where a tuple or an entry has it, and is not where a function or a constant gives it */
	store_att_byval(bytes, value, map->typlen);
	return fetch_att(bytes, true, map->typlen);
}

static int32
find_image(const MapData *map, const char *image, uint32 len, uint32 hash)
{
	for (uint32 at = map->nslots == 0 ? 0 : hash & (map->nslots - 1); map->nslots != 0 && map->slots[at] != 0; at = (at + 1) & (map->nslots - 1))
	{
		uint32		item = static_cast<uint32>(map->slots[at]) - 1;
		uint32		other_len;
		const char *other = item_image(map, &map->items[item], &other_len);

		if (static_cast<uint32>(map->slots[at] >> 32) == hash && other_len == len && memcmp(other, image, len) == 0)
			return static_cast<int32>(item);
	}
	return NO_CODE;
}

int32
find_item(const MapData *map, Datum value)
{
	Datum		plain = plain_datum(map, value);
	uint32		len;
	const char *image = item_image(map, &plain, &len);

	return find_image(map, image, len, dictionary_hash(image, len));
}

uint32
map_item(MapData *map, Datum value)
{
	Datum		plain = plain_datum(map, value);
	uint32		len;
	const char *image = item_image(map, &plain, &len);
	uint32		hash = dictionary_hash(image, len);
	int32		item = find_image(map, image, len, hash);

	return item == NO_CODE ? add_item(map, image, len, hash) : static_cast<uint32>(item);
}

/* -- values ----------------------------------------------------------------------------------- */

static void
store_plain(Type type, Datum value, char *to)
{
	int32		i;
	int64		l;
	float		f;
	double		d;

	switch (type)
	{
		case Type::Bool:
			*to = DatumGetBool(value) ? 1 : 0;
			break;
		case Type::I16:
			i = DatumGetInt16(value);
			memcpy(to, &i, sizeof(i));
			break;
		case Type::I32:
			i = DatumGetInt32(value);
			memcpy(to, &i, sizeof(i));
			break;
		case Type::F32:
			f = DatumGetFloat4(value);
			memcpy(to, &f, sizeof(f));
			break;
		case Type::F64:
			d = DatumGetFloat8(value);
			memcpy(to, &d, sizeof(d));
			break;
		default:
			l = DatumGetInt64(value);
			memcpy(to, &l, sizeof(l));
			break;
	}
}

void
store_value(MapData *map, Datum value, char *to)
{
	/* an oid's Datum may be sign-extended */
	if (is_of_values(map->kind) && map->type == Type::I64 && map->typlen == sizeof(Oid))
		store_plain(map->type, Int64GetDatum(DatumGetObjectId(value)), to);
	else if (is_of_values(map->kind))
		store_plain(map->type, value, to);
	else
	{
		uint32		item = map_item(map, value);

		memcpy(to, &item, sizeof(item));
	}
}

struct Extension
{
	MapData    *map;
	const EntrySource *source;
	uint32		upto;
	bool		too_large;
};

static bool
find_var(Node *node, void *found)
{
	if (node == nullptr)
		return false;
	if (IsA(node, Var))
	{
		*static_cast<Var **>(found) = (Var *) node;
		return true;
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(find_var), found);
}

/* The expression over a slot of one column. */
static ExprState *
init_expr(const MapData *map, TupleTableSlot **slot)
{
	TupleDesc	desc = CreateTemplateTupleDesc(1);
	Var		   *var = nullptr;

	find_var(reinterpret_cast<Node *>(map->expr), &var);
	TupleDescInitEntry(desc, 1, nullptr, var->vartype, var->vartypmod, 0);
	TupleDescInitEntryCollation(desc, 1, var->varcollid);
	*slot = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	return ExecInitExpr(expression_planner(static_cast<Expr *>(copyObjectImpl(map->expr))), nullptr);
}

/* A text column that is compared with a constant for equality: the constant, else NULL. */
static const Const *
equal_to(const MapData *map)
{
	const OpExpr *op = (const OpExpr *) map->expr;
	const Expr *left;
	const Expr *right;

	if (map->kind != MapKind::Values || !IsA(op, OpExpr) || op->opfuncid != F_TEXTEQ || !get_collation_isdeterministic(op->inputcollid))
		return nullptr;
	left = static_cast<const Expr *>(linitial(op->args));
	right = static_cast<const Expr *>(lsecond(op->args));
	if (IsA(left, RelabelType))
		left = ((const RelabelType *) left)->arg;
	return IsA(left, Var) && IsA(right, Const) && !((const Const *) right)->constisnull ? (const Const *) right : nullptr;
}

/* The constant is looked up, and the one entry that it is, if any, is equal. */
static void
find_equal(Extension *ext, const Const *constant)
{
	MapData    *map = ext->map;
	const EntrySource *source = ext->source;
	struct varlena *image = PG_DETOAST_DATUM(constant->constvalue);
	int32		code = source->base != nullptr ? dictionary_find(source->base, reinterpret_cast<char *>(image), VARSIZE(image)) : NO_CODE;

	memset(map->values + map->nentries, 0, ext->upto - map->nentries);
	for (uint32 i = local_nentries(source->base, nullptr); code == NO_CODE && i < ext->upto; i++)
	{
		const char *entry = local_entry(source->base, source->local, i);

		if (VARSIZE(entry) == VARSIZE(image) && memcmp(entry, image, VARSIZE(image)) == 0)
			code = static_cast<int32>(i);
	}
	if (code >= static_cast<int32>(map->nentries) && code < static_cast<int32>(ext->upto))
		map->values[code] = 1;
}

static void
evaluate(Extension *ext)
{
	MapData    *map = ext->map;
	int			width = type_width(map->type);
	ExprContext *econtext = CreateStandaloneExprContext();
	TupleTableSlot *slot;
	ExprState  *expr = init_expr(map, &slot);
	bool		isnull;
	Datum		value;

	econtext->ecxt_scantuple = slot;
	if (map->null_entry && !map->has_null_value)
	{
		ExecClearTuple(slot);
		slot->tts_isnull[0] = true;
		ExecStoreVirtualTuple(slot);
		value = ExecEvalExprSwitchContext(expr, econtext, &isnull);
		if (!isnull)
			store_value(map, value, map->null_value);
		memcpy(&map->null_item, map->null_value, sizeof(map->null_item));
		map->null_isnull = isnull;
		map->has_null_value = true;
	}
	for (uint32 code = map->nentries; code < ext->upto; code++)
	{
		char	   *to = map->values + Size{code} * width;

		if (code % 256 == 0)
			CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		ExecClearTuple(slot);
		slot->tts_values[0] = entry_datum(ext->source, code);
		slot->tts_isnull[0] = false;
		ExecStoreVirtualTuple(slot);
		value = ExecEvalExprSwitchContext(expr, econtext, &isnull);
		if (isnull)
		{
			memset(to, 0, width);
			map->nulls[code / 64] |= uint64{1} << (code % 64);
			map->any_null = true;
		}
		else
		{
			MemoryContext old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);

			store_value(map, value, to);
			if (map->kind == MapKind::Rank)
				memcpy(&map->entry_items[code], to, sizeof(uint32));
			map->nulls[code / 64] &= ~(uint64{1} << (code % 64));
			MemoryContextSwitchTo(old);
		}
		if (isnull && map->kind == MapKind::Rank)
			map->entry_items[code] = NO_ITEM;
		if (map->item_bytes > MAX_MAP_ITEM_BYTES)
		{
			ext->too_large = true;
			return;
		}
	}
}

/* -- all of it ------------------------------------------------------------------------------------ */

static void
extend(void *argument)
{
	Extension  *ext = static_cast<Extension *>(argument);

	const Const *constant = equal_to(ext->map);

	if (constant != nullptr)
		find_equal(ext, constant);
	else if (!ext->map->bare)
		evaluate(ext);
	if (ext->map->kind == MapKind::Rank && !ext->too_large)
		map_rank(ext->map, ext->source, ext->upto);
}

const char *
map_extend(MapData *map, const EntrySource *source, uint32 upto)
{
	Extension	ext = {map, source, upto, false};
	MemoryContext scratch;
	MemoryContext old;
	int			sqlstate = 0;
	bool		done;

	const char *failure = nullptr;

	if (map->failure != nullptr && upto >= map->failed_at)
		return map->failure;
	if (upto <= map->nentries && (map->has_null_value || !map->null_entry))
		return nullptr;
	scratch = AllocSetContextCreate(CurrentMemoryContext, "gpuvm map evaluation", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(scratch);
	upto = ext.upto = Max(upto, map->nentries);
	reserve_entries(map, upto);
	done = guarded(extend, &ext, &sqlstate);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(scratch);
	if (!done)
		failure = MemoryContextStrdup(map->context, psprintf("an entry raises SQLSTATE %s", unpack_sql_state(sqlstate)));
	else if (ext.too_large)
		failure = "its values take too much memory";
	else
		map->nentries = upto;
	if (failure != nullptr)
	{
		map->failure = failure;
		map->failed_at = upto;
	}
	return failure;
}

}  // namespace gpuvm
