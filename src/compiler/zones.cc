/*
 * zones.cc: what depends on a time zone: timestamps with time zone as local time, and back.
 *
 * The zone is TimeZone, or one that a constant names. What it adds to a timestamp stands in a table
 * that is made when execution starts (executor/zone_tables.cc), so a plan that is kept is right when TimeZone
 * has changed.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/scansup.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"
}
/* of PostgreSQL's names of dates, and one of our opcodes */
#undef INVALID

#include "compiler/emit.h"
#include "pg/compat.h"
#include "vm/date_fields.h"

namespace gpuvm {

/* The number of the table; -1 and a reason. */
static int
zone_map(Compiler *c, MapKind kind, Expr *zone)
{
	for (int i = 0; i < c->nmaps; i++)
	{
		if (c->maps[i].kind == kind && equal(c->maps[i].expr, zone))
			return i;
	}
	if (c->nmaps == MAX_MAPS)
		return refuse(c, "the query has more than %d time zones and expressions over dictionaries", MAX_MAPS);
	c->maps[c->nmaps] = PlanMap{kind, -1, 0, zone, InvalidOid, false, NO_DICTIONARY, NO_DICTIONARY, InvalidOid};
	return c->nmaps++;
}

static int
shift(Compiler *c, MapKind kind, int reg, Expr *zone)
{
	int			map = reg < 0 ? -1 : zone_map(c, kind, zone);

	return map < 0 ? -1 : value(c, Opcode::ZoneShift, Type::I64, map, reg);
}

int
to_local(Compiler *c, int reg, Expr *zone)
{
	return shift(c, MapKind::ToLocal, reg, zone);
}

int
to_utc(Compiler *c, int reg, Expr *zone)
{
	return shift(c, MapKind::ToUtc, reg, zone);
}

bool
constant_zone(Compiler *c, const Expr *expr)
{
	const Const *con = (const Const *) expr;
	char		name[TZ_STRLEN_MAX + 1];
	char	   *low;
	int			offset;
	pg_tz	   *zone;

	if (!IsA(expr, Const) || con->constisnull || con->consttype != TEXTOID)
	{
		refuse(c, "a time zone is not a constant");
		return false;
	}
	text_to_cstring_buffer(DatumGetTextPP(con->constvalue), name, sizeof(name));
	low = downcase_truncate_identifier(name, static_cast<int>(strlen(name)), false);
	if (compat_decode_timezone_abbrev(low, &offset, &zone) == DYNTZ)
	{
		refuse(c, "the time zone abbreviation %s means different offsets at different times", name);
		return false;
	}
	return true;
}

/* timezone(interval, ...): whole seconds that are added or taken. */
static int
compile_offset(Compiler *c, const FnEntry *fn, List *args)
{
	const Const *con = static_cast<const Const *>(linitial(args));
	const Interval *span;
	int			reg;
	int			by;
	int64		micros;

	if (!IsA(con, Const) || con->constisnull)
		return refuse(c, "a time zone is not a constant");
	span = DatumGetIntervalP(con->constvalue);
	if (span->month != 0 || span->day != 0)
		return refuse(c, "an interval that is a time zone has days or months");
	micros = span->time / USECS_PER_SEC * USECS_PER_SEC;
	reg = compile_expr(c, static_cast<const Expr *>(lsecond(args)));
	by = reg < 0 ? -1 : int_value(c, Type::I64, fn->kind == FnKind::OffsetToLocal ? micros : -micros);
	return by < 0 ? -1 : value(c, Opcode::TimestampAddMicros, Type::I64, reg, by);
}

/* timestamp_time: null of an infinity. */
static int
time_of_day(Compiler *c, int reg)
{
	const int64_t infinities[] = {DT_NOBEGIN, DT_NOEND};
	int			day = reg < 0 ? -1 : value(c, Opcode::DateTrunc, Type::I64, reg, static_cast<int>(DateField::Day));
	int			time = day < 0 ? -1 : value(c, Opcode::Sub, Type::I64, reg, day);
	int			null = time < 0 ? -1 : null_value(c, Type::I64);
	int			infinite = null < 0 ? -1 : value(c, Opcode::In, Type::I64, reg, c->b->add_aux(infinities, 2), 2);

	return infinite < 0 ? -1 : value(c, Opcode::Select, Type::I64, null, time, infinite);
}

/*
 * An operand of a comparison as a timestamp with time zone. Where it depends on no row PostgreSQL makes it
 * one, so that the other side is compared as it is stored.
 */
static int
zoned_operand(Compiler *c, Expr *expr)
{
	Oid			type = exprType(reinterpret_cast<Node *>(expr));
	int			reg;

	if (type == TIMESTAMPTZOID)
		return compile_expr(c, expr);
	if (known_at_start(expr))
		return compile_param(c, reinterpret_cast<Expr *>(makeFuncExpr(type == DATEOID ? F_TIMESTAMPTZ_DATE : F_TIMESTAMPTZ_TIMESTAMP,
																	  TIMESTAMPTZOID, list_make1(expr), InvalidOid, InvalidOid, COERCE_EXPLICIT_CAST)));
	reg = compile_expr(c, expr);
	if (reg >= 0 && type == DATEOID)
		reg = value(c, Opcode::DateToTimestamp, Type::I64, reg);
	return to_utc(c, reg, nullptr);
}

static int
compile_zoned_comparison(Compiler *c, const FnEntry *fn, List *args)
{
	int			ra = zoned_operand(c, static_cast<Expr *>(linitial(args)));
	int			rb = ra < 0 ? -1 : zoned_operand(c, static_cast<Expr *>(lsecond(args)));

	return rb < 0 ? -1 : value(c, fn->opcode, Type::I64, ra, rb);
}

int
compile_zone_call(Compiler *c, const FnEntry *fn, List *args)
{
	Expr	   *first = static_cast<Expr *>(linitial(args));
	int			reg;

	switch (fn->kind)
	{
		case FnKind::CompareZoned:
			return compile_zoned_comparison(c, fn, args);
		case FnKind::OffsetToLocal:
		case FnKind::OffsetToUtc:
			return compile_offset(c, fn, args);
		case FnKind::ZoneToLocal:
		case FnKind::ZoneToUtc:
			if (!constant_zone(c, first))
				return -1;
			reg = compile_expr(c, static_cast<const Expr *>(lsecond(args)));
			return shift(c, fn->kind == FnKind::ZoneToLocal ? MapKind::ToLocal : MapKind::ToUtc, reg, first);
		default:
			break;
	}
	reg = compile_expr(c, first);
	if (reg < 0)
		return -1;
	switch (fn->kind)
	{
		case FnKind::Local:
			return to_local(c, reg, nullptr);
		case FnKind::LocalDate:
			reg = to_local(c, reg, nullptr);
			return reg < 0 ? -1 : value(c, Opcode::TimestampToDate, Type::I32, reg);
		case FnKind::LocalTime:
			return time_of_day(c, to_local(c, reg, nullptr));
		case FnKind::TimeOfTimestamp:
			return time_of_day(c, reg);
		case FnKind::DateToUtc:
			reg = value(c, Opcode::DateToTimestamp, Type::I64, reg);
			return to_utc(c, reg, nullptr);
		default:				/* Utc */
			return to_utc(c, reg, nullptr);
	}
}

}  // namespace gpuvm
