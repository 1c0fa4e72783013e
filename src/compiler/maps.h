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
	Rank,						/* code to the place of the expression's value in the order of its type */
};

struct PlanMap
{
	MapKind		kind;
	int			cursor;			/* whose column */
	AttrNumber	attnum;
	Expr	   *expr;			/* its only Var is that column; parameters are known when execution starts */
	Oid			collation;		/* of Rank: the order's */
	bool		null_entry;		/* what it makes of a null may not be null: there is an entry for it (LOOKUP_NULL) */
};

/* How the value of a result column becomes a Datum. */
enum class OutputKind : int
{
	Plain,						/* the value itself, */
	Numeric,					/* scaled by 10^scale, */
	Dictionary,					/* a code of a column's dictionary, */
	Map,						/* or of a map: Derived or Rank */
};

struct OutputForm
{
	OutputKind	kind;
	int			scale;
	int			cursor;
	AttrNumber	attnum;
	int			map;
};

/*
 * Is it an expression (no bare column) over one dictionary column alone, that PostgreSQL
 * can evaluate for each entry beforehand? It raises nothing: an error leads to PostgreSQL's own plan.
 */
bool		is_map_expr(const Expr *expr);

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

/* What is known of the register's values, as a result column. */
OutputForm	output_form(const Compiler *c, int reg);

}  // namespace gpuvm

#endif
