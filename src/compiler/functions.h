/*
 * functions.h: the whitelist. What gets pushed down is decided by function OID
 * (operators are functions underneath); everything else stays with PostgreSQL.
 */
#ifndef GPUVM_COMPILER_FUNCTIONS_H
#define GPUVM_COMPILER_FUNCTIONS_H

#include "pg/pg.h"
#include "pg/value_form.h"
#include "vm/program.h"

extern "C" {
#include "nodes/primnodes.h"
}

namespace gpuvm {

/* How a function's arguments become an opcode's operands. */
enum class FnKind : uint8_t
{
	Binary,						/* both arguments converted to `operand`; the result is `operand` */
	Shift,						/* first argument of `operand`, second I32 */
	Unary,						/* argument and result of `operand` */
	Same,						/* the argument itself (unary plus) */
	Angle,						/* degrees in radians, or back */
	Compare,					/* both arguments converted to `operand`; Bool */
	CompareDateLeft,			/* date with timestamp */
	CompareDateRight,			/* timestamp with date */
	Cast,						/* argument of any supported type to `operand` */
	Convert,					/* an opcode whose result (`operand`) and argument types differ */

	/* numeric.cc; the opcode is what remains once scales are aligned */
	NumericBinary,
	NumericUnary,
	NumericRound,				/* round, trunc, floor; a second argument is a constant */
	NumericCeil,
	NumericSign,
	NumericFromInt,
	NumericFromMoney,
	NumericDiv,					/* div(): a quotient without decimals */
	NumericScale,				/* scale() */
	NumericToInt,				/* `operand` */
	NumericToFloat,
	NumericTypmod,				/* numeric(x, p, s) */
	NumericBucket,				/* width_bucket with constants (buckets.cc) */
	FloatBucket,

	/* datetime.cc; fields are constants */
	Extract,					/* of a timestamp, as numeric */
	ExtractDate,
	ExtractTime,
	ExtractZoned,				/* of a timestamp with time zone */
	DatePart,					/* the same as float8 */
	DatePartTime,
	DatePartZoned,
	ExtractInterval,
	DatePartInterval,			/* of a difference of times */
	TruncTimestamp,
	TruncZoned,					/* a third argument is a zone */
	AddInterval,				/* timestamp with interval */
	SubInterval,
	AddIntervalDate,
	SubIntervalDate,
	AddIntervalZone,			/* timestamp with time zone: hours and less alone do not depend on the zone */
	SubIntervalZone,
	AddIntervalTime,
	SubIntervalTime,
	DateTime,					/* date + time */
	DateBin,					/* by constants (buckets.cc) */
	IsFinite,
	ToTimestamp,				/* of seconds (made_times.cc) */
	MakeDate,
	Overlaps,					/* two periods of one type */

	/* zones.cc */
	TimeOfTimestamp,
	Local,						/* a timestamp with time zone as timestamp, */
	LocalDate,
	LocalTime,
	Utc,						/* and back */
	DateToUtc,
	ZoneToLocal,				/* the same for a constant zone, which is the first argument, */
	ZoneToUtc,
	OffsetToLocal,				/* or an interval */
	OffsetToUtc,
	CompareZoned,				/* timestamp with time zone and date or timestamp */
};

struct FnEntry
{
	Oid			function;
	FnKind		kind;
	Opcode		opcode;
	Type		operand;
	ValueForm	form = ValueForm::Plain;	/* Numeric: of a Compare's operands */
};

/* The function's entry, or NULL when it stays with PostgreSQL. */
const FnEntry *lookup_function(Oid function);

/* The function that the expression calls, and with what; InvalidOid and NIL: it is no call. */
Oid			called(const Expr *expr, List **args);

/* Its entry; NULL: it is no call, or there is none. */
const FnEntry *called_function(const Expr *expr, List **args);

/* Why a function that might be expected in the whitelist is not there; NULL: for no special reason. */
const char *function_refusal(Oid function);

/* The VM type of a PostgreSQL type, or Type::None. */
inline Type
vm_type(Oid type)
{
	return value_type(type).type;
}

/* Does the opcode of this entry flag overflows that PostgreSQL lets pass? */
bool		function_wraps(const FnEntry *entry);

/* Can the opcode of this entry set an error bit? (A widening cast cannot.) */
bool		function_can_raise(const FnEntry *entry, Type argument);

}  // namespace gpuvm

#endif
