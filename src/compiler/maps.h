/*
 * maps.h: what PostgreSQL says of the entries of a dictionary.
 *
 * A column of text, of an enum, of whatever has no form of its own in the virtual
 * machine, is I32 codes into a dictionary of the table's column (tablet/dictionary.h).
 * An expression over one such column alone is evaluated by PostgreSQL, once for each
 * entry, when execution starts (executor/maps.h), and is a Lookup in the program.
 */
#ifndef GPUVM_COMPILER_MAPS_H
#define GPUVM_COMPILER_MAPS_H

#include "pg/pg.h"

extern "C" {
#include "access/attnum.h"
#include "nodes/primnodes.h"
}

namespace gpuvm {

struct Compiler;

/* Of one program; the machine's limit (vm/program.h). */
constexpr int MAX_MAPS = 32;

enum class MapKind : int
{
	Values,						/* code to the expression's value, of a plain type */
	Derived,					/* code to a code of the expression's values: equal bytes, equal code */
	Rank,						/* code to the place of the expression's value in the order of its type; equal ones share the first one's */
	Tied,						/* code to whether another value is equal to the expression's without being the same: of a Rank before it */
	ToLocal,					/* no column's, but a zone table (vm/zone_table.h): UTC to local time. The expression names the zone; NULL: TimeZone */
	ToUtc,						/* the way back */
	Constant,					/* code 0 to itself: one value, known when execution starts (or null) */
	/* between two dictionaries (compiler/dictionaries.cc): */
	Translate,					/* code of `from` to that of `to` for the same bytes, else to its own behind all of those */
	Order,						/* code of `from` to the place of its value among the values of both, where equal ones share one */
	/* of two columns' dictionaries, for an expression over both (compiler/pairs.cc): the number of a pair is what the first two give, together */
	PairFirst,
	PairSecond,
	PairValues,					/* number of a pair to the expression's value, of a plain type, */
	PairDerived,				/* or to a code of the expression's values */
};

/* What codes are of: a column's dictionary, or the values of a map: Derived, Constant, Translate, PairDerived. */
struct DictionaryRef
{
	int16		map;			/* -1: the column's */
	int16		cursor;
	AttrNumber	attnum;
};

constexpr DictionaryRef NO_DICTIONARY = {-1, -1, 0};

constexpr bool
same_dictionary(const DictionaryRef &a, const DictionaryRef &b)
{
	return a.map == b.map && a.cursor == b.cursor && a.attnum == b.attnum;
}

/* A time zone's table, rather than a map of a column's entries? */
constexpr bool
is_zone(MapKind kind)
{
	return kind == MapKind::ToLocal || kind == MapKind::ToUtc;
}

/* Does it stand for values of a plain type, as they are? */
constexpr bool
is_of_values(MapKind kind)
{
	return kind == MapKind::Values || kind == MapKind::PairValues;
}

/* Is its expression evaluated for each pair of two columns' entries? */
constexpr bool
is_of_pairs(MapKind kind)
{
	return kind == MapKind::PairValues || kind == MapKind::PairDerived;
}

/* Of which, with nulls, there may be so many when a statement is planned, and when it is executed. */
constexpr double MAX_PAIRS = 65536;
constexpr double MAX_PAIRS_MADE = 4 * MAX_PAIRS;

struct PlanMap
{
	MapKind		kind;
	int			cursor;			/* whose column; of kinds behind Tied -1, */
	AttrNumber	attnum;			/* and 0 */
	Expr	   *expr;			/* its only Vars are that column, or those of `from` and `to`; parameters are known when execution starts. NULL: there is none */
	Oid			collation;		/* of Rank, Tied and Order: the order's */
	bool		null_entry;		/* what it makes of a null may not be null: there is an entry for it (LOOKUP_NULL) */
	DictionaryRef from;			/* of kinds behind Constant: dictionaries of a column or of a map before this one; of pairs, of columns */
	DictionaryRef to;
	Oid			type;			/* of Order: what is in order */
};

/* Is the map made for each entry of a column's dictionary? */
inline bool
is_of_column(const PlanMap *map)
{
	return map->attnum != 0;
}

/* How the value of a result column becomes a Datum. */
enum class OutputKind : int
{
	Plain,						/* the value itself, */
	Numeric,					/* scaled by 10^scale, */
	Dictionary,					/* a code of a column's dictionary, */
	Map,						/* or of a map: Derived or Rank; */
	Variable,					/* a reference to a value of the column, */
	Packed,						/* a text that the integer says (vm/text_part.h), */
	Span,						/* a difference of times in microseconds (is_span), of which whole days are the interval's days if `scale` is not 0, */
	Wide,						/* a numeric of more than 64 bits: low halves, the high ones are in result column `map`; */
	High,						/* such a column of high halves, which nothing shows by itself; */
	Position,					/* or the row's position: `attnum` says what is wanted of the row: ctid, tableoid, or what is fetched from the heap */
};

struct OutputForm
{
	OutputKind	kind;
	int			scale;
	int			cursor;
	AttrNumber	attnum;
	int			map;
	/*
	 * Of a group's key whose values are shown with different numbers of decimals: the result column of the least of these, behind which is that of
	 * the greatest; -1: all are shown with `scale` decimals. PostgreSQL shows a group as the row that it met first: one has to know that they are the same.
	 */
	int			shown = -1;
};

/* The column itself, under what changes neither bytes nor nulls; NULL if the expression is more than that. */
const Var  *bare_column(const Expr *expr);

/*
 * Is it an expression (no bare column) over one dictionary column alone, that PostgreSQL
 * can evaluate for each entry beforehand? It raises nothing: an error leads to PostgreSQL's own plan.
 */
bool		is_map_expr(const Expr *expr);

/* Is it one over two dictionary columns, in the same way? */
bool		is_pair_expr(const Expr *expr);
bool		pair_columns(const Expr *expr, const Var **a, const Var **b);

/* What a map that cannot be made is remembered by, of the families of both columns' dictionaries. */
inline uint64
pair_family(uint64 first, uint64 second)
{
	return first * UINT64CONST(0x9e3779b97f4a7c15) ^ (second + 1);
}

/* Might its raising an error, or not, tell of values that the user may not see? */
bool		map_is_leaky(const Expr *expr);

/* Does it depend on nothing but the entry and its parameters, so that it may be kept from one execution to the next? */
bool		map_is_settled(const Expr *expr);

/* The register with its value, or with a code of its value (info[].map); -1 and a reason. */
int			compile_map(Compiler *c, const Expr *expr);

/*
 * The register with the places of a dictionary type's expression, a bare column
 * too, in the order of its type under the collation: for min and max. -1 and a reason.
 */
int			compile_rank(Compiler *c, const Expr *expr, Oid collation);

/* The register that says of each row whether the value's rank is that of other values, too. -1 and a reason. */
int			compile_tied(Compiler *c, const Expr *expr, Oid collation);

/* The numbers of a map of a dictionary type's expression, and of one of a value that is known when execution starts; -1 and a reason. */
int			derived_map(Compiler *c, const Expr *expr);
int			constant_map(Compiler *c, const Expr *expr);

/* The number of the map; -1 and a reason. */
int			add_map(Compiler *c, const PlanMap &map);

/* What is known of the register's values, as a result column. */
OutputForm	output_form(const Compiler *c, int reg);

}  // namespace gpuvm

#endif
