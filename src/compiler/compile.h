/*
 * compile.h: from the planner's expressions to a program.
 *
 * Everything that a program cannot express is refused here, at plan time, with
 * a reason in words that gpuvm.why_not() repeats. Columns are named by
 * attribute number in p2 of Column; the executor binds them to the table
 * version that it pins (rule 21).
 */
#ifndef GPUVM_COMPILER_COMPILE_H
#define GPUVM_COMPILER_COMPILE_H

#include "compiler/maps.h"
#include "compiler/text_match.h"
#include "pg/pg.h"
#include "vm/program.h"

extern "C" {
#include "access/sysattr.h"
#include "nodes/pathnodes.h"
#include "nodes/pg_list.h"
#include "nodes/primnodes.h"
}

namespace gpuvm {

struct ImportedTable;

/* A relation, and how its rows meet those of the cursors before it. */
struct CompileCursor
{
	const Bitmapset *relids;	/* the relation's range table index */
	Oid			relid;
	const ImportedTable *table;
	List	   *quals;			/* bare clauses, here as in the following in the order to evaluate: the relation's own */
	/* not of the first cursor: */
	JoinKind	kind;
	List	   *keys;			/* what it is sought by (split_seek_keys), */
	List	   *range;			/* or between what (split_range); both NIL: crossed */
	List	   *conditions;		/* the rest of the join condition */
	List	   *filters;		/* on what comes out of the join, rows that met none included */
	List	   *names;			/* of columns, where the relation is no imported table */
	const List *shown;			/* numerics whose display scales are in other columns: int lists of both attribute numbers */
};

/* Is the column of the relation? Its number there. */
bool		is_column_of(const Bitmapset *relids, const Var *var, AttrNumber *attnum);
bool		is_column_of(const CompileCursor *cursor, const Var *var, AttrNumber *attnum);

/* Is the column null in no row that the active snapshot sees, of the table alone or (inherited) with its partitions? */
bool		declared_not_null(Oid relid, AttrNumber attnum, bool inherited);

/* A column of the table that is in tablets and is null in no row: its number; 0: there is none. */
AttrNumber	not_null_column(Oid relid, const ImportedTable *table);

/* The column's name. */
char	   *cursor_column_name(const CompileCursor *cursor, AttrNumber attnum);

/* What a compilation works on, and why it failed. */
struct CompileInput
{
	CompileCursor cursors[PROGRAM_MAX_CURSORS];
	int			ncursors;
	bool		no_positions;	/* rows of a single relation have none */
	bool		no_fetches;		/* no columns that have to be fetched from the heap for the rows that come out */
	const char *reason;			/* out: set on failure */
	const char *hint;			/* out: NULL or set on failure */
	const struct CompiledProgram *before;	/* another of the same plan, whose parameters, maps, patterns and text orders this one shares by number; or NULL */
};

struct CompiledProgram
{
	Program    *program;		/* sealed, palloc'd */
	List	   *params;			/* expressions for Variable, in order; no Vars in them */
	int			nmaps;
	PlanMap		maps[MAX_MAPS];	/* of Lookup, in order */
	int			npatterns;
	PlanPattern patterns[PROGRAM_MAX_PATTERNS];	/* of TextMatch, in order */
	PlanTextOrders text_orders;	/* of MinText and MaxText */
	int			noutputs;
	OutputForm	outputs[PROGRAM_MAX_COLUMNS];	/* of the program's result columns */
	bool		soft_errors;	/* something may be flagged that PostgreSQL does not raise: a numeric of more than 64 bits, a field of an infinite date, a zone in the year 3000 */
};

/* Which clauses of a join condition are equalities that the relation can be sought by, in a hash table. */
void		split_seek_keys(List *clauses, const Bitmapset *relids, List **keys, List **conditions);

/*
 * One or two clauses that say between what an expression over the relation is to
 * lie, a bound of other relations each. NIL: there are none.
 */
void		split_range(List *clauses, const Bitmapset *relids, List **range, List **conditions);

/* Can all of these be evaluated over all cursors? No program is made. */
bool		compiles(CompileInput *input, List *exprs);

/*
 * Does a result column of rows have the row's position in place of the value, which is looked up by it? Its ctid and table, and what is
 * not in the tablets: that is fetched from the heap, for rows that come out (is_fetched).
 */
bool		is_by_position(const CompileInput *input, const Var *var);

inline bool
is_fetched(AttrNumber attnum)
{
	return attnum != SelfItemPointerAttributeNumber && attnum != TableOidAttributeNumber;
}

/* May the expression raise an error? */
bool		can_raise(const Expr *expr);

/* And where PostgreSQL evaluates it for each row or group, rather than a program with its maps? */
bool		can_raise_by_rows(const Expr *expr);

/* Is it a difference of times, or a time as interval: a number of microseconds in programs? */
bool		is_span(const Expr *expr);

/* Does PostgreSQL count its whole days as days? */
bool		span_has_days(const Expr *expr);

/* Of a CASE, COALESCE, GREATEST, LEAST or NULLIF what its value may be; NIL: it is none. */
List	   *arms_of(const Expr *expr);

/*
 * Rows: those that pass every condition, with the columns of `vars`, the values of `hidden`, by which they are sorted
 * (those of dictionary types are ranks under their `collations`), and, for a single relation, last, the row's position (but for no_positions).
 */
bool		compile_rows(CompileInput *input, List *vars, List *hidden, List *collations, CompiledProgram *out);

/* What an aggregate takes of its argument. */
enum class AggInput : int
{
	Value,
	Square,						/* its product with itself */
	Scale,						/* a numeric's display scale, where that differs from row to row */
	Low,						/* of a numeric of more than 64 bits the low half, */
	High,						/* and the high one, 0 of what is no number; */
	Special,					/* what that is (bits of WideSpecial); */
	Narrow,						/* the number in 64 bits, or the code of what is none; */
	ShownUp,					/* the halves of the number times 2^6 plus its display scale, by which of equal numbers the one is the greatest that shows most, */
	ShownDown,					/* or plus 63 less it */
	QuotientLimb,				/* of a quotient of numerics its parts (QuotientLimbs), */
	LastQuotientLimb = QuotientLimb + 2,
	QuotientScale,				/* its display scale, */
	QuotientSpecial,			/* and what it is if it is no number */
	LimbProduct,				/* and of one of more than 64 bits the products of its four parts of 31 bits, of which the square is (limb_pair) */
	LastLimbProduct = LimbProduct + 9,
	Span,						/* of an interval that is a difference of times (is_span): its microseconds; */
	IntervalMicros,				/* and an interval's microseconds, days and months */
	IntervalDays,
	IntervalMonths,
	Bits,						/* a bit string of up to 64 bits as integer */
	SmallLimbProduct,			/* of an integer of 64 bits the products of its two parts, the lower of 31 bits: of the lower one, of both, of the upper one */
	LastSmallLimbProduct = SmallLimbProduct + 2,
	Rank,						/* the place of a dictionary type's value in the order of its type (compile_rank) */
	Position,					/* the row's position (Rowid): the aggregate has no argument. Of ties only */
	/* of statistics of floats, of rows where `other` is not null (if there is one): */
	Double,						/* as float8 */
	DoubleSquare,				/* the square of that, rounded, */
	DoubleSquareRest,			/* and what it lost */
	DoubleProduct,				/* the same of the product with `other` */
	DoubleProductRest,
};

constexpr bool
is_double(AggInput input)
{
	return input >= AggInput::Double;
}

constexpr bool
is_of_interval(AggInput input)
{
	return input >= AggInput::Span && input <= AggInput::IntervalMonths;
}

constexpr bool
is_small_limb(AggInput input)
{
	return input >= AggInput::SmallLimbProduct && input <= AggInput::LastSmallLimbProduct;
}

constexpr bool
is_of_quotient(AggInput input)
{
	return input >= AggInput::QuotientLimb && input <= AggInput::QuotientSpecial;
}

/* Of numerics of more than 64 bits. */
constexpr bool
is_of_halves(AggInput input)
{
	return (input >= AggInput::Low && input <= AggInput::ShownDown) ||
		(input >= AggInput::LimbProduct && input <= AggInput::LastLimbProduct);
}

/* AggInput::ShownUp and ShownDown */
constexpr int SHOWN_BITS = 6;
constexpr int SHOWN_MASK = (1 << SHOWN_BITS) - 1;

constexpr int WIDE_LIMBS = 4;
constexpr int WIDE_LIMB_BITS = 31;
constexpr int LIMB_PRODUCTS = 10;
constexpr int SMALL_LIMB_PRODUCTS = 3;

/* Which parts, the lowest being 0, the i-th product is of. */
constexpr void
limb_pair(int i, int *a, int *b)
{
	for (*a = 0; i >= WIDE_LIMBS - *a; (*a)++)
		i -= WIDE_LIMBS - *a;
	*b = *a + i;
}

/* One aggregate of the program. */
struct VmAggregate
{
	AggFn		fn;
	Expr	   *arg;			/* NULL for CountStar, a Var for AnyValue, a column of variable length for MinText and MaxText */
	Expr	   *filter;			/* NULL without FILTER */
	AggInput	input;
	Oid			collation;		/* of Rank */
	Expr	   *other;			/* of Double and what follows: the second argument, or NULL */
	int			rest;			/* of a sum of floats: which part of it (result_rest()); those of one sum are one aggregate of the program */
};

bool		same_vm_aggregate(const VmAggregate &a, const VmAggregate &b);

/* Numerics that are shown with different numbers of decimals, as keys: */
enum class KeyUse : uint8_t
{
	One,						/* there are none, */
	Value,						/* nobody shows them, */
	Shown,						/* or they are shown (OutputForm.shown) */
};

/* Groups: result columns are the keys (expressions) in order, then the aggregates. */
bool		compile_groups(CompileInput *input, List *keys, KeyUse use, const VmAggregate *aggs, int naggs, CompiledProgram *out);

/* Is it a numeric whose values are shown with different numbers of decimals, as quotients are? */
bool		differs_in_scale(const CompileInput *input, const Expr *expr);

/*
 * Of values that are equal without being the same a group's key shows that of its first row, and an extreme that of the first or the last
 * row that has it (rule 16). These rows are found by a program of ties: groups as those of `keys` (and `value`), and tablets,
 * of which each has its first or last row's position. Result columns are the keys, the value's rank, the tablet, the position.
 */
struct Ties
{
	Expr	   *value;			/* of an extreme; NULL: of the cursor's keys */
	Oid			collation;		/* the extreme's */
	bool		last;			/* the last row's */
	bool		all;			/* all rows are looked at, else those whose values are equal to others */
	int			cursor;			/* whose rows they are; out, of an extreme */
};

bool		compile_ties(CompileInput *input, List *keys, Ties *ties, CompiledProgram *out);

/* Is the key a rank, which several values may share? */
bool		is_ranked_key(const CompileInput *input, const Expr *key);

/*
 * A program over the groups of `first` (engine/abi.h): it groups by all of its keys but the last, and aggregates that
 * one. An aggregate's own argument and filter are not looked at. Fills program and outputs.
 */
bool		compile_stage(CompileInput *input, const CompiledProgram *first, const VmAggregate *aggs, int naggs, CompiledProgram *out);

/*
 * A program of rows over those groups, that hands on all their columns of those that pass the conditions. Cursor 0 is the groups as a table, of
 * which `columns` says which result column each is (by attribute number, from 1). Fills program, and no outputs.
 */
bool		compile_group_filter(CompileInput *input, const Program *groups, const int *columns, List *quals, CompiledProgram *out);

/*
 * The aggregate functions of PostgreSQL that programs can compute: each is a few
 * VM aggregates, its parts, and a way to end them (executor/finalize.cc).
 */
enum class FinalKind : int
{
	Direct,						/* the one part's value, in the form of its result column: count, min, max, bool_and, bit_or ... */
	SumToInt8,					/* sum(int2), sum(int4), sum(money) */
	SumToNumeric,				/* sum(int8), sum(numeric): the sum, and, where it differs, the greatest display scale */
	WideSum,					/* of numerics of more than 64 bits: sum of low halves, sum of high ones, what of them is no number (and greatest display scale) */
	WideAvg,					/* the same, and count before what is no number */
	WideExtreme,				/* min, max */
	ShownExtreme,				/* of numerics that show different numbers of decimals: the number and that (AggInput::ShownUp and ShownDown), which have to agree */
	SpecialExtreme,				/* the same where all numbers have 64 bits: codes of what is no number (wide_special) are beyond them */
	QuotientSum,				/* of quotients of numerics: the sums of extra parts, the greatest display scale (and what of them is no number) */
	QuotientAvg,				/* the same, and count behind the sums */
	WideVariance,				/* the sums of both halves, count, sums of the products of limbs (and what is no number); extra: PostgreSQL's final function */
	SumToFloat4,
	SumToFloat8,
	AvgToNumeric,				/* of integers and numeric: sum, count (and greatest display scale) */
	AvgToFloat8,				/* of floats: sum and count */
	Variance,					/* of integers and numeric: sum, sum of squares, count (and greatest display scale); extra: PostgreSQL's final function */
	IntervalSum,				/* the sums of microseconds, days and months; the latter two may be missing: there are none */
	IntervalAvg,				/* the same, and the count behind microseconds */
	SpanExtreme,				/* min, max of differences of times; extra: whether whole days are days (span_has_days) */
	BitString,					/* bit_and() and its kin of bit strings of one length, which is extra */
	LargeVariance,				/* of int8, and numerics of one scale: sum, count, sums of the products of limbs; extra: PostgreSQL's final function */
	FloatStatistic,				/* var_pop() and its kin of floats, corr(), regr_*: count and exact sums; extra: PostgreSQL's final function */
};

constexpr int MAX_AGG_PARTS = 24;

struct AggregatePlan
{
	FinalKind	kind;
	Oid			extra;
	int			nparts;
	VmAggregate parts[MAX_AGG_PARTS];
};

/* False, with reason, when the aggregate stays with PostgreSQL. DISTINCT is the caller's. */
bool		plan_aggregate(const Aggref *agg, CompileInput *input, AggregatePlan *plan);

}  // namespace gpuvm

#endif
