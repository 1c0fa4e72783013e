/*
 * datetime.cc: fields of dates and times, and their sums with intervals.
 *
 * Fields are constants here. An interval has months, days and
 * microseconds, which are added one after the other.
 */
#include "pg/pg.h"

extern "C" {
#include "parser/scansup.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/timestamp.h"
}
/* of PostgreSQL's names of dates, and one of our opcodes */
#undef INVALID

#include "compiler/emit.h"
#include "vm/date_fields.h"

namespace gpuvm {

/* -- fields ------------------------------------------------------------------------- */

struct FieldName
{
	int			token;			/* DTK_ of PostgreSQL */
	DateField	field;
};

static const FieldName field_names[] = {
	{DTK_MICROSEC, DateField::Microsecond}, {DTK_MILLISEC, DateField::Millisecond}, {DTK_SECOND, DateField::Second},
	{DTK_MINUTE, DateField::Minute}, {DTK_HOUR, DateField::Hour}, {DTK_DAY, DateField::Day}, {DTK_MONTH, DateField::Month},
	{DTK_QUARTER, DateField::Quarter}, {DTK_YEAR, DateField::Year}, {DTK_DECADE, DateField::Decade},
	{DTK_CENTURY, DateField::Century}, {DTK_MILLENNIUM, DateField::Millennium}, {DTK_WEEK, DateField::Week},
	{DTK_ISOYEAR, DateField::IsoYear}, {DTK_DOW, DateField::Dow}, {DTK_ISODOW, DateField::IsoDow}, {DTK_DOY, DateField::Doy},
	{DTK_EPOCH, DateField::Epoch}, {DTK_JULIAN, DateField::Julian},
};

/* The field that a constant names; false if it is none, or no constant. */
static bool
constant_field(const Expr *expr, DateField *field)
{
	const Const *con = (const Const *) expr;
	text	   *name;
	char	   *low;
	int			token;
	int			type;

	if (!IsA(expr, Const) || con->constisnull)
		return false;
	name = DatumGetTextPP(con->constvalue);
	low = downcase_truncate_identifier(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name), false);
	type = DecodeUnits(0, low, &token);
	if (type == UNKNOWN_FIELD)
		type = DecodeSpecial(0, low, &token);
	if (type != UNITS && (type != RESERV || token != DTK_EPOCH))
		return false;
	for (const FieldName &f : field_names)
	{
		if (f.token == token)
		{
			*field = f.field;
			return true;
		}
	}
	return false;
}

static bool
is_below_day(DateField field)
{
	return field <= DateField::Hour;
}

/* Has a value of the function's argument type this field, in a form that a program can compute? */
static bool
has_field(const FnEntry *fn, DateField field)
{
	switch (fn->kind)
	{
		case FnKind::Extract:
		case FnKind::ExtractZoned:
		case FnKind::DatePart:
		case FnKind::DatePartZoned:
			return field != DateField::Julian;	/* with a fraction, of a quotient's digits */
		case FnKind::ExtractDate:
			return !is_below_day(field);
		case FnKind::ExtractTime:
		case FnKind::DatePartTime:
			return is_below_day(field) || field == DateField::Epoch;
		case FnKind::ExtractInterval:
		case FnKind::DatePartInterval:
			return field <= DateField::Millennium || field == DateField::Epoch;
		default:				/* TruncTimestamp, TruncZoned */
			return date_trunc_takes(static_cast<int32_t>(field));
	}
}

/* The display scale of a field that extract() makes a numeric of. */
static int
field_scale(const FnEntry *fn, DateField field)
{
	switch (field)
	{
		case DateField::Millisecond:
			return 3;
		case DateField::Second:
			return 6;
		case DateField::Epoch:
			return fn->kind == FnKind::ExtractDate ? 0 : 6;
		default:
			return 0;
	}
}

int
extract_scale(const FnEntry *fn, List *args)
{
	DateField	field;

	return constant_field(static_cast<const Expr *>(linitial(args)), &field) && has_field(fn, field) ? field_scale(fn, field) : -1;
}

/* reg op constant, of integers. */
static int
with_constant(Compiler *c, Opcode op, int reg, int64_t v, const RegisterInfo &info = NO_INFO)
{
	int			constant = reg < 0 ? -1 : int_value(c, Type::I64, v);

	return constant < 0 ? -1 : value(c, op, Type::I64, reg, constant, 0, 0, info);
}

/* Of a time of day, where 24:00 is one. What has a fraction comes in microseconds. */
static int
field_of_time(Compiler *c, int time, DateField field, const RegisterInfo &info)
{
	switch (field)
	{
		case DateField::Hour:
			return with_constant(c, Opcode::Div, time, USECS_PER_HOUR, info);
		case DateField::Minute:
			return with_constant(c, Opcode::Remainder, with_constant(c, Opcode::Div, time, USECS_PER_MINUTE), MINS_PER_HOUR, info);
		case DateField::Epoch:
			return value(c, Opcode::Copy, Type::I64, time, 0, 0, 0, info);
		default:
			return with_constant(c, Opcode::Remainder, time, USECS_PER_MINUTE, info);
	}
}

static int
field_of_timestamp(Compiler *c, int timestamp, DateField field, const RegisterInfo &info)
{
	if (field == DateField::Second || field == DateField::Millisecond)
		field = DateField::Microsecond;
	return value(c, Opcode::DatePart, Type::I64, timestamp, static_cast<int>(field), 0, 0, info);
}

/* whole * factor + rest / divisor, of the microseconds of a minute, as timestamp_part has it. */
static int
seconds_as_float(Compiler *c, int micros, double factor, double divisor)
{
	int			whole = convert(c, with_constant(c, Opcode::Div, micros, USECS_PER_SEC), Type::F64);
	int			rest = convert(c, with_constant(c, Opcode::Remainder, micros, USECS_PER_SEC), Type::F64);
	int			by = float_value(c, Type::F64, divisor);
	int			times = float_value(c, Type::F64, factor);

	if (whole < 0 || rest < 0 || by < 0 || times < 0)
		return -1;
	rest = value(c, Opcode::Div, Type::F64, rest, by);
	if (factor != 1)
		whole = value(c, Opcode::Mul, Type::F64, whole, times);
	return whole < 0 || rest < 0 ? -1 : value(c, Opcode::Add, Type::F64, whole, rest);
}

/* The field as date_part() gives it, or, not as float, as it is. */
static int
float_of_field(Compiler *c, int reg, DateField field, bool is_float)
{
	int			million;

	if (!is_float || reg < 0)
		return reg;
	switch (field)
	{
		case DateField::Second:
			return seconds_as_float(c, reg, 1, 1000000.0);
		case DateField::Millisecond:
			return seconds_as_float(c, reg, 1000.0, 1000.0);
		case DateField::Epoch:
			million = float_value(c, Type::F64, 1000000.0);
			reg = convert(c, reg, Type::F64);
			return reg < 0 || million < 0 ? -1 : value(c, Opcode::Div, Type::F64, reg, million);
		default:
			return convert(c, reg, Type::F64);
	}
}

static int
compile_part(Compiler *c, const FnEntry *fn, List *args)
{
	bool		is_float = fn->operand == Type::F64;
	bool		of_time = fn->kind == FnKind::ExtractTime || fn->kind == FnKind::DatePartTime;
	const Expr *of = static_cast<const Expr *>(lsecond(args));
	RegisterInfo info = NO_INFO;
	DateField	field;
	int			reg;

	if (!constant_field(static_cast<const Expr *>(linitial(args)), &field))
		return refuse(c, "the field of extract is not a constant, or not known");
	if (!has_field(fn, field))
		return refuse(c, "the field %s of a value of this type is not supported", date_field_name(static_cast<int32_t>(field)));
	if (!is_float)
		info = numeric_info(field_scale(fn, field));
	if (is_age(of))
		return float_of_field(c, compile_age_field(c, of, field, info), field, is_float);
	if (fn->kind == FnKind::ExtractInterval && field == DateField::Epoch && !is_span(of) && is_computed_interval(of))
		return compile_computed_epoch(c, of, info);
	if (fn->kind == FnKind::DatePartInterval && !is_span(of))
		return refuse(c, "an interval that is computed has no form in the virtual machine");
	if (fn->kind == FnKind::DatePartInterval && field == DateField::Epoch)
		return compile_span_epoch(c, of);
	if (fn->kind == FnKind::ExtractInterval || fn->kind == FnKind::DatePartInterval)
		return float_of_field(c, compile_interval_field(c, of, field, info), field, is_float);
	reg = compile_expr(c, of);
	if ((fn->kind == FnKind::ExtractZoned || fn->kind == FnKind::DatePartZoned) && field != DateField::Epoch)
		reg = to_local(c, reg, nullptr);
	if (reg >= 0 && fn->kind == FnKind::ExtractDate)
		reg = value(c, Opcode::DateToTimestamp, Type::I64, reg);
	if (reg < 0)
		return -1;
	if (fn->kind == FnKind::ExtractDate && field == DateField::Epoch)
		return with_constant(c, Opcode::Div, field_of_timestamp(c, reg, field, NO_INFO), USECS_PER_SEC, info);
	return float_of_field(c, of_time ? field_of_time(c, reg, field, info) : field_of_timestamp(c, reg, field, info), field, is_float);
}

static int
compile_trunc(Compiler *c, const FnEntry *fn, List *args)
{
	Expr	   *zone = list_length(args) > 2 ? static_cast<Expr *>(lthird(args)) : nullptr;
	DateField	field;
	int			reg;
	int			local;
	int			cut;

	if (!constant_field(static_cast<const Expr *>(linitial(args)), &field) || !has_field(fn, field))
		return refuse(c, "the field of date_trunc is not a constant, or not known");
	if (zone != nullptr && !constant_zone(c, zone))
		return -1;
	reg = compile_expr(c, static_cast<const Expr *>(lsecond(args)));
	if (reg < 0)
		return -1;
	if (fn->kind == FnKind::TruncTimestamp)
		return value(c, Opcode::DateTrunc, Type::I64, reg, static_cast<int>(field));
	local = to_local(c, reg, zone);
	cut = local < 0 ? -1 : value(c, Opcode::DateTrunc, Type::I64, local, static_cast<int>(field));
	if (cut < 0 || !is_below_day(field))
		return to_utc(c, cut, zone);
	/* timestamptz_trunc: hours and less keep the offset that the time had */
	cut = value(c, Opcode::Sub, Type::I64, cut, local);
	return cut < 0 ? -1 : value(c, Opcode::TimestampAddMicros, Type::I64, reg, cut);
}

/* timestamp + months or days; with a time zone, by its calendar. */
static int
add_calendar(Compiler *c, Opcode op, int reg, const IntervalPart &n, bool zoned)
{
	const int	from = reg;
	int			by;

	if (is_zero_part(n) || reg < 0)
		return reg;
	by = n.reg < 0 ? int_value(c, Type::I32, n.constant) : convert(c, n.reg, Type::I32);
	if (zoned)
		reg = to_local(c, reg, nullptr);
	reg = reg < 0 || by < 0 ? -1 : value(c, op, Type::I64, reg, by);
	if (!zoned)
		return reg;
	reg = to_utc(c, reg, nullptr);
	/* a time that a clock shows twice stays the one that it is where there is nothing to add */
	return n.reg < 0 ? reg : select64(c, with_constant64(c, Opcode::Eq, n.reg, 0), from, reg);
}

/* -- sums with intervals ------------------------------------------------------------------ */

static int
compile_interval(Compiler *c, const FnEntry *fn, List *args)
{
	const bool	minus = fn->kind == FnKind::SubInterval || fn->kind == FnKind::SubIntervalDate ||
		fn->kind == FnKind::SubIntervalZone || fn->kind == FnKind::SubIntervalTime;
	const bool	of_time = fn->kind == FnKind::AddIntervalTime || fn->kind == FnKind::SubIntervalTime;
	const bool	zoned = fn->kind == FnKind::AddIntervalZone || fn->kind == FnKind::SubIntervalZone;
	IntervalParts span;
	int			reg;
	int			time;

	if (!compile_interval_parts(c, static_cast<const Expr *>(lsecond(args)), &span) || (minus && !negate_interval(c, &span)))
		return -1;
	reg = compile_expr(c, static_cast<const Expr *>(linitial(args)));
	if (reg >= 0 && (fn->kind == FnKind::AddIntervalDate || fn->kind == FnKind::SubIntervalDate))
		reg = value(c, Opcode::DateToTimestamp, Type::I64, reg);
	if (!of_time)
	{
		reg = add_calendar(c, Opcode::TimestampAddMonths, reg, span.months, zoned);
		reg = add_calendar(c, Opcode::TimestampAddDays, reg, span.days, zoned);
		if (is_zero_part(span.micros))
			return reg;
	}
	time = of_time ? compile_interval_time(c, span) : span.micros.reg >= 0 ? span.micros.reg : int_value(c, Type::I64, span.micros.constant);
	return binary64(c, fn->opcode, reg, time);
}

static int
compile_date_time(Compiler *c, const FnEntry *fn, List *args)
{
	int			date = compile_expr(c, static_cast<const Expr *>(linitial(args)));
	int			time = date < 0 ? -1 : compile_expr(c, static_cast<const Expr *>(lsecond(args)));

	date = time < 0 ? -1 : value(c, Opcode::DateToTimestamp, Type::I64, date);
	return date < 0 ? -1 : value(c, fn->opcode, Type::I64, date, time);
}

static int
compile_is_finite(Compiler *c, const FnEntry *fn, List *args)
{
	const int64_t dates[] = {PG_INT32_MIN, PG_INT32_MAX};
	const int64_t timestamps[] = {DT_NOBEGIN, DT_NOEND};
	int			reg = compile_expr(c, static_cast<const Expr *>(linitial(args)));

	if (reg < 0)
		return -1;
	reg = value(c, Opcode::In, fn->operand, reg, c->b->add_aux(fn->operand == Type::I32 ? dates : timestamps, 2), 2);
	return compile_not(c, reg);
}

int
compile_datetime_call(Compiler *c, const FnEntry *fn, List *args)
{
	switch (fn->kind)
	{
		case FnKind::TruncTimestamp:
		case FnKind::TruncZoned:
			return compile_trunc(c, fn, args);
		case FnKind::DateTime:
			return compile_date_time(c, fn, args);
		case FnKind::DateBin:
			return compile_date_bin(c, args);
		case FnKind::IsFinite:
			return compile_is_finite(c, fn, args);
		case FnKind::ToTimestamp:
			return compile_to_timestamp(c, static_cast<const Expr *>(linitial(args)));
		case FnKind::MakeDate:
			return compile_make_date(c, args);
		case FnKind::Overlaps:
			return compile_overlaps(c, args);
		case FnKind::Extract:
		case FnKind::ExtractDate:
		case FnKind::ExtractTime:
		case FnKind::ExtractZoned:
		case FnKind::DatePart:
		case FnKind::DatePartTime:
		case FnKind::DatePartZoned:
		case FnKind::ExtractInterval:
		case FnKind::DatePartInterval:
			return compile_part(c, fn, args);
		default:
			return compile_interval(c, fn, args);
	}
}

}  // namespace gpuvm
