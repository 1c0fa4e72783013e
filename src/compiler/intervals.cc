/*
 * intervals.cc: what is asked of intervals. No register holds one.
 *
 * The difference of two times is a number of microseconds, a span, whose whole days PostgreSQL makes the interval's days: so
 * it has no months, and compares as the number does. What is asked of the intervals of a dictionary column are maps: each part
 * of one is a number that PostgreSQL's date_part() gives without rounding.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
}
/* of PostgreSQL's names of dates, and one of our opcodes */
#undef INVALID

#include "compiler/emit.h"
#include "vm/date_fields.h"

namespace gpuvm {

/* -- spans --------------------------------------------------------------------------------- */

bool
is_span(const Expr *expr)
{
	List	   *args;

	switch (called(expr, &args))
	{
		case F_TIMESTAMP_MI:
		case F_TIMESTAMPTZ_MI:
		case F_TIME_MI_TIME:
		case F_INTERVAL_TIME:
			return true;
		default:
			return false;
	}
}

bool
span_has_days(const Expr *expr)
{
	List	   *args;
	Oid			function = called(expr, &args);

	return function == F_TIMESTAMP_MI || function == F_TIMESTAMPTZ_MI;
}

/* A timestamp that must not be infinite: PostgreSQL is to say what its difference is. */
static int
compile_finite(Compiler *c, const Expr *expr)
{
	int			reg = compile_expr(c, expr);
	int64_t		known;

	if (reg < 0 || (is_int_value(c, reg, &known) && !TIMESTAMP_NOT_FINITE(known)))
		return reg;
	return with_constant64(c, Opcode::Bound, reg, PG_INT64_MAX);
}

int
compile_span(Compiler *c, const Expr *expr)
{
	List	   *args;
	Oid			function = called(expr, &args);
	const bool	days = span_has_days(expr);
	const Expr *from = static_cast<const Expr *>(linitial(args));
	int			a = days ? compile_finite(c, from) : compile_expr(c, from);
	int			b;

	if (a < 0 || function == F_INTERVAL_TIME)
		return a;
	b = days ? compile_finite(c, static_cast<const Expr *>(lsecond(args))) : compile_expr(c, static_cast<const Expr *>(lsecond(args)));
	return b < 0 ? -1 : value(c, Opcode::Sub, Type::I64, a, b);
}

/* -- fields as expressions ----------------------------------------------------------------- */

static Expr *
int8_const(int64_t v)
{
	return (Expr *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(v), false, FLOAT8PASSBYVAL);
}

static Expr *
int8_call(Oid function, Expr *a, Expr *b)
{
	return (Expr *) makeFuncExpr(function, INT8OID, list_make2(a, b), InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

/* The field of a dictionary's intervals as an integer, which it is. */
static Expr *
field_of(const Expr *interval, const char *field)
{
	Const	   *name = makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1, CStringGetTextDatum(field), false, false);
	FuncExpr   *part = makeFuncExpr(F_DATE_PART_TEXT_INTERVAL, FLOAT8OID, list_make2(name, const_cast<Expr *>(interval)), InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);

	return (Expr *) makeFuncExpr(F_INT8_FLOAT8, INT8OID, list_make1(part), InvalidOid, InvalidOid, COERCE_EXPLICIT_CAST);
}

/* The sum of fields, each so many times. */
static Expr *
fields_of(const Expr *interval, const char *const (&names)[3], const int64_t (&times)[3])
{
	Expr	   *sum = nullptr;

	for (int i = 0; i < 3 && names[i] != nullptr; i++)
	{
		Expr	   *one = int8_call(F_INT8MUL, field_of(interval, names[i]), int8_const(times[i]));

		sum = sum == nullptr ? one : int8_call(F_INT8PL, sum, one);
	}
	return sum;
}

static Expr *
months_of(const Expr *interval)
{
	return fields_of(interval, {"year", "month", nullptr}, {MONTHS_PER_YEAR, 1, 0});
}

static Expr *
micros_of(const Expr *interval)
{
	return fields_of(interval, {"hour", "minute", "microsecond"}, {USECS_PER_HOUR, USECS_PER_MINUTE, 1});
}

/* What an interval compares as, in microseconds, where a month has 30 days. */
static Expr *
compared_as(const Expr *interval)
{
	const int64_t month = DAYS_PER_MONTH * USECS_PER_DAY;

	return int8_call(F_INT8PL, fields_of(interval, {"year", "month", "day"}, {MONTHS_PER_YEAR * month, month, USECS_PER_DAY}), micros_of(interval));
}

/* -- comparisons ------------------------------------------------------------------------------ */

static bool
is_interval_comparison(Oid function, Opcode *op)
{
	switch (function)
	{
		case F_INTERVAL_EQ: *op = Opcode::Eq; return true;
		case F_INTERVAL_NE: *op = Opcode::Ne; return true;
		case F_INTERVAL_LT: *op = Opcode::Lt; return true;
		case F_INTERVAL_LE: *op = Opcode::Le; return true;
		case F_INTERVAL_GT: *op = Opcode::Gt; return true;
		case F_INTERVAL_GE: *op = Opcode::Ge; return true;
		default: return false;
	}
}

/* A constant as interval_cmp_value() has it. */
static bool
constant_span(const Expr *expr, int64_t *micros)
{
	const Const *con = (const Const *) expr;
	const Interval *interval;
	int64		days;
	int64		of_days;

	if (!IsA(expr, Const) || con->constisnull)
		return false;
	interval = DatumGetIntervalP(con->constvalue);
	days = static_cast<int64>(interval->month) * DAYS_PER_MONTH + interval->day;
	return !pg_mul_s64_overflow(days, USECS_PER_DAY, &of_days) && !pg_add_s64_overflow(of_days, interval->time, micros);
}

/* Is it computed of each row's values? */
static bool
is_made(const Expr *expr)
{
	return is_span(expr) || (is_computed_interval(expr) && !known_at_start(expr) && !is_map_expr(expr));
}

/* One of these, of a dictionary, or an interval that is known before the first row. */
static bool
is_comparable(const Expr *expr)
{
	int64_t		micros;

	return is_made(expr) || (IsA(expr, Const) ? constant_span(expr, &micros) : known_at_start(expr) || is_map_expr(expr) || bare_column(expr) != nullptr);
}

bool
is_span_comparison(Oid function, List *args)
{
	Opcode		op;

	return is_interval_comparison(function, &op) && (is_made(static_cast<Expr *>(linitial(args))) || is_made(static_cast<Expr *>(lsecond(args)))) &&
		is_comparable(static_cast<Expr *>(linitial(args))) && is_comparable(static_cast<Expr *>(lsecond(args)));
}

int
compile_span_comparison(Compiler *c, Oid function, List *args)
{
	Opcode		op = Opcode::Eq;
	int			regs[2];
	int64_t		micros;

	(void) is_interval_comparison(function, &op);
	for (int i = 0; i < 2; i++)
	{
		const Expr *side = static_cast<const Expr *>(list_nth(args, i));

		regs[i] = constant_span(side, &micros) ? int_value(c, Type::I64, micros)
			: is_span(side) ? compile_span(c, side) : is_made(side) ? compile_computed_span(c, side) : compile_expr(c, compared_as(side));
		if (regs[i] < 0)
			return -1;
	}
	return value(c, op, Type::I64, regs[0], regs[1]);
}

/* -- parts ----------------------------------------------------------------------------------- */

/* All of it, in microseconds, as extract() makes an epoch of it: a year is a quarter of a day more than 365. */
static Expr *
epoch_of(const Expr *interval)
{
	Expr	   *quarters = fields_of(interval, {"year", "month", "day"}, {static_cast<int64_t>(4 * DAYS_PER_YEAR), 4 * DAYS_PER_MONTH, 4});

	return int8_call(F_INT8PL, int8_call(F_INT8MUL, quarters, int8_const(USECS_PER_DAY / 4)), micros_of(interval));
}

int
compile_interval_part(Compiler *c, const Expr *interval, AggInput part)
{
	int			span;

	if (!is_span(interval))
		return compile_expr(c, part == AggInput::IntervalMonths ? months_of(interval) : part == AggInput::IntervalDays ? field_of(interval, "day") : micros_of(interval));
	span = compile_span(c, interval);
	if (span < 0 || part == AggInput::Span || !span_has_days(interval))
		return span;
	return with_constant64(c, part == AggInput::IntervalDays ? Opcode::Div : Opcode::Remainder, span, USECS_PER_DAY);
}

/* -- fields ------------------------------------------------------------------------------------- */

static int
compile_field(Compiler *c, const Expr *interval, DateField field)
{
	int			span;

	if (!is_span(interval))
		return compile_expr(c, field == DateField::Epoch ? epoch_of(interval)
							: field_of(interval, field == DateField::Second || field == DateField::Millisecond ? "microsecond" : date_field_name(static_cast<int32_t>(field))));
	if (field > DateField::Day && field != DateField::Epoch)
		return refuse(c, "the field %s of a difference of times is not supported", date_field_name(static_cast<int32_t>(field)));
	if (field == DateField::Day && !span_has_days(interval))
		return refuse(c, "the field day of a difference of times of day is not supported");
	span = compile_span(c, interval);
	if (span < 0)
		return -1;
	switch (field)
	{
		case DateField::Epoch:
			return span;
		case DateField::Day:
			return with_constant64(c, Opcode::Div, span, USECS_PER_DAY);
		case DateField::Hour:
			if (span_has_days(interval))
				span = with_constant64(c, Opcode::Remainder, span, USECS_PER_DAY);
			return span < 0 ? -1 : with_constant64(c, Opcode::Div, span, USECS_PER_HOUR);
		case DateField::Minute:
			span = with_constant64(c, Opcode::Remainder, span, USECS_PER_HOUR);
			return span < 0 ? -1 : with_constant64(c, Opcode::Div, span, USECS_PER_MINUTE);
		default:
			return with_constant64(c, Opcode::Remainder, span, USECS_PER_MINUTE);
	}
}

int
compile_interval_field(Compiler *c, const Expr *interval, DateField field, const RegisterInfo &info)
{
	int			reg = compile_field(c, interval, field);

	return reg < 0 ? -1 : value(c, Opcode::Copy, Type::I64, reg, 0, 0, 0, info);
}

/* As interval_part() has it: the time, then the days' seconds. */
int
compile_span_epoch(Compiler *c, const Expr *interval)
{
	int			time = compile_interval_part(c, interval, AggInput::IntervalMicros);
	int			million = float_value(c, Type::F64, 1000000.0);
	int			days;

	time = convert(c, time, Type::F64);
	if (time < 0 || million < 0)
		return -1;
	time = value(c, Opcode::Div, Type::F64, time, million);
	if (!span_has_days(interval))
		return time;
	days = compile_interval_part(c, interval, AggInput::IntervalDays);
	days = days < 0 ? -1 : convert(c, with_constant64(c, Opcode::Mul, days, SECS_PER_DAY), Type::F64);
	return days < 0 || time < 0 ? -1 : value(c, Opcode::Add, Type::F64, time, days);
}

}  // namespace gpuvm
