/*
 * interval_parts.cc: intervals that are computed of others, and of numbers. No register holds one: it is its months, days and
 * microseconds, each a constant or a register, of which PostgreSQL computes each by itself, too.
 *
 * Where one of what an interval is computed of is null, so is at least one of its registers.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"
}
/* of PostgreSQL's names of dates, and one of our opcodes */
#undef INVALID

#include <cmath>
#include <initializer_list>

#include "compiler/emit.h"

namespace gpuvm {

/* Beyond it a float8 is not every integer. */
constexpr int64_t EXACT_FLOAT = INT64CONST(1) << 53;

/* Of months and days, which PostgreSQL has as int4. */
constexpr int64_t EXACT_PART = INT64CONST(1) << 31;

/* -- parts ------------------------------------------------------------------------------------ */

static int
part_register(Compiler *c, const IntervalPart &part)
{
	return part.reg >= 0 ? part.reg : int_value(c, Type::I64, part.constant);
}

/* Flagged from the bound on: PostgreSQL is to say what comes of it. */
static bool
set_part(Compiler *c, int reg, int64_t bound, IntervalPart *out)
{
	c->soft_errors = true;
	out->constant = 0;
	out->reg = reg < 0 ? -1 : bound == 0 ? reg : with_constant64(c, Opcode::Bound, reg, bound);
	return out->reg >= 0;
}

static bool
negate_part(Compiler *c, int64_t bound, IntervalPart *part)
{
	if (part->reg >= 0)
		return set_part(c, value(c, Opcode::Neg, Type::I64, part->reg), bound, part);
	if (part->constant == (bound == 0 ? PG_INT64_MIN : -bound))
		return refuse(c, "an interval is out of range") >= 0;
	part->constant = -part->constant;
	return true;
}

static bool
add_part(Compiler *c, const IntervalPart &a, const IntervalPart &b, int64_t bound, IntervalPart *out)
{
	if (is_zero_part(b))
	{
		*out = a;
		return true;
	}
	if (is_zero_part(a))
	{
		*out = b;
		return true;
	}
	return set_part(c, binary64(c, Opcode::Add, part_register(c, a), part_register(c, b)), bound, out);
}

/* Times an integer. */
static bool
multiply_part(Compiler *c, int factor, int64_t bound, IntervalPart *part)
{
	if (is_zero_part(*part))
		return true;
	return set_part(c, part->reg >= 0 ? binary64(c, Opcode::Mul, part->reg, factor) : with_constant64(c, Opcode::Mul, factor, part->constant), bound, part);
}

/* -- what computes them --------------------------------------------------------------------------- */

/* One of these, as PostgreSQL reads it behind a number. */
static bool
unit_of(const Expr *expr, IntervalParts *out)
{
	static const struct
	{
		const char *name;
		int64_t		months;
		int64_t		days;
		int64_t		micros;
	} units[] = {
		{"year", MONTHS_PER_YEAR, 0, 0}, {"month", 1, 0, 0}, {"week", 0, 7, 0}, {"day", 0, 1, 0},
		{"hour", 0, 0, USECS_PER_HOUR}, {"minute", 0, 0, USECS_PER_MINUTE}, {"second", 0, 0, USECS_PER_SEC},
	};
	const Const *con = (const Const *) expr;
	char	   *name;
	size_t		len;

	if (!IsA(expr, Const) || con->constisnull || con->consttype != TEXTOID)
		return false;
	name = TextDatumGetCString(con->constvalue);
	while (*name == ' ')
		name++;
	len = strlen(name);
	while (len > 0 && name[len - 1] == ' ')
		len--;
	if (len > 0 && name[len - 1] == 's')
		len--;
	for (const auto &unit : units)
	{
		if (strlen(unit.name) == len && strncmp(unit.name, name, len) == 0)
		{
			*out = IntervalParts{{-1, unit.months}, {-1, unit.days}, {-1, unit.micros}};
			return true;
		}
	}
	return false;
}

/* (k || ' days')::interval: k; NULL: it is none. */
static const Expr *
number_of_units(const Expr *expr, IntervalParts *unit)
{
	const Expr *text = IsA(expr, CoerceViaIO) ? ((const CoerceViaIO *) expr)->arg : nullptr;
	const CoerceViaIO *number;
	Oid			type;
	List	   *args;

	if (text == nullptr || ((const CoerceViaIO *) expr)->resulttype != INTERVALOID || called(text, &args) != F_TEXTCAT)
		return nullptr;
	number = static_cast<const CoerceViaIO *>(linitial(args));
	if (!IsA(number, CoerceViaIO) || !unit_of(static_cast<const Expr *>(lsecond(args)), unit))
		return nullptr;
	/* what has more digits PostgreSQL does not take */
	type = exprType(reinterpret_cast<const Node *>(number->arg));
	return type == INT4OID || type == INT2OID ? number->arg : nullptr;
}

bool
is_computed_interval(const Expr *expr)
{
	IntervalParts unit;
	List	   *args;

	switch (called(expr, &args))
	{
		case F_INTERVAL_UM:
		case F_INTERVAL_PL:
		case F_INTERVAL_MI:
		case F_INTERVAL_MUL:
		case F_MUL_D_INTERVAL:
		case F_MAKE_INTERVAL:
			return true;
		default:
			return number_of_units(expr, &unit) != nullptr;
	}
}

/* The integer that a float8 is made of; NULL: of none. */
static const Expr *
integer_of(const Expr *expr)
{
	List	   *args;

	switch (called(expr, &args))
	{
		case F_FLOAT8_INT2:
		case F_FLOAT8_INT4:
		case F_FLOAT8_INT8:
			return static_cast<const Expr *>(linitial(args));
		default:
			return nullptr;
	}
}

static bool
multiply_by_integer(Compiler *c, int factor, IntervalParts *parts)
{
	if (is_zero_part(parts->months) && is_zero_part(parts->days) && is_zero_part(parts->micros))
		return set_part(c, with_constant64(c, Opcode::Mul, factor, 0), 0, &parts->micros);
	return multiply_part(c, factor, EXACT_PART, &parts->months) && multiply_part(c, factor, EXACT_PART, &parts->days) &&
		multiply_part(c, factor, EXACT_FLOAT, &parts->micros);
}

static int
float_op(Compiler *c, Opcode op, int reg, double constant)
{
	int			by = reg < 0 ? -1 : float_value(c, Type::F64, constant);

	return by < 0 ? -1 : value(c, op, Type::F64, reg, by);
}

static int
float_ops(Compiler *c, Opcode op, int a, int b)
{
	return a < 0 || b < 0 ? -1 : value(c, op, Type::F64, a, b);
}

/* interval_mul(), of a constant without months: the fraction of a day is time. */
static bool
multiply_by_float(Compiler *c, const Expr *factor, IntervalParts *parts)
{
	const double days = static_cast<double>(parts->days.constant);
	int			reg;
	int			time;
	int			whole;
	int			rest;
	int			more;

	if (!is_zero_part(parts->months) || parts->days.reg >= 0 || parts->micros.reg >= 0)
		return refuse(c, "an interval that has months, or is not a constant, is multiplied by what is no integer") >= 0;
	reg = compile_expr(c, factor);
	if (reg < 0)
		return false;
	time = float_op(c, Opcode::Mul, reg, static_cast<double>(parts->micros.constant));
	if (days != 0)
	{
		reg = float_op(c, Opcode::Mul, reg, days);
		whole = reg < 0 ? -1 : value(c, Opcode::Trunc, Type::F64, reg);
		rest = float_op(c, Opcode::Mul, float_ops(c, Opcode::Sub, reg, whole), SECS_PER_DAY);
		rest = float_op(c, Opcode::Mul, rest, TS_PREC_INV);
		rest = rest < 0 ? -1 : float_op(c, Opcode::Div, value(c, Opcode::Round, Type::F64, rest), TS_PREC_INV);
		/* rounding may have made a day of it */
		more = float_op(c, Opcode::Div, rest, SECS_PER_DAY);
		more = more < 0 ? -1 : value(c, Opcode::Trunc, Type::F64, more);
		rest = float_ops(c, Opcode::Sub, rest, float_op(c, Opcode::Mul, more, SECS_PER_DAY));
		time = float_ops(c, Opcode::Add, time, float_op(c, Opcode::Mul, rest, USECS_PER_SEC));
		whole = convert(c, float_ops(c, Opcode::Add, whole, more), Type::I64);
		if (!set_part(c, whole, EXACT_PART, &parts->days))
			return false;
	}
	time = time < 0 ? -1 : value(c, Opcode::Round, Type::F64, time);
	return set_part(c, convert(c, time, Type::I64), 0, &parts->micros);
}

static bool
compile_multiplied(Compiler *c, const Expr *interval, const Expr *factor, IntervalParts *out)
{
	const Expr *integer = integer_of(factor);
	const Const *con = (const Const *) factor;
	int			reg;

	if (!compile_interval_parts(c, interval, out))
		return false;
	if (IsA(factor, Const) && !con->constisnull && std::fabs(DatumGetFloat8(con->constvalue)) < static_cast<double>(EXACT_PART) &&
		std::rint(DatumGetFloat8(con->constvalue)) == DatumGetFloat8(con->constvalue))
	{
		reg = int_value(c, Type::I64, static_cast<int64_t>(DatumGetFloat8(con->constvalue)));
		return reg >= 0 && multiply_by_integer(c, reg, out);
	}
	if (integer == nullptr)
		return multiply_by_float(c, factor, out);
	reg = convert(c, compile_expr(c, integer), Type::I64);
	if (reg >= 0 && exprType(reinterpret_cast<const Node *>(integer)) == INT8OID)
		reg = with_constant64(c, Opcode::Bound, reg, EXACT_FLOAT);
	return reg >= 0 && multiply_by_integer(c, reg, out);
}

/* An argument of make_interval(), so many times. */
static bool
add_argument(Compiler *c, const Expr *arg, int64_t times, int64_t bound, IntervalPart *to)
{
	IntervalPart part = {-1, 0};
	const Const *con = (const Const *) arg;

	if (IsA(arg, Const) && !con->constisnull && DatumGetInt32(con->constvalue) == 0)
		return true;
	if (!set_part(c, convert(c, compile_expr(c, arg), Type::I64), 0, &part))
		return false;
	part.reg = times == 1 ? part.reg : with_constant64(c, Opcode::Mul, part.reg, times);
	return part.reg >= 0 && add_part(c, part, *to, 0, to) && (bound == 0 || set_part(c, to->reg, bound, to));
}

static bool
compile_made(Compiler *c, List *args, IntervalParts *out)
{
	const int64_t times[] = {MONTHS_PER_YEAR, 1, 7, 1, USECS_PER_HOUR, USECS_PER_MINUTE};
	IntervalPart *parts[] = {&out->months, &out->months, &out->days, &out->days, &out->micros, &out->micros};
	const Const *con = (const Const *) llast(args);
	IntervalPart seconds = {-1, 0};
	int			reg;

	*out = IntervalParts{{-1, 0}, {-1, 0}, {-1, 0}};
	for (int i = 0; i < 6; i++)
	{
		if (!add_argument(c, static_cast<const Expr *>(list_nth(args, i)), times[i], parts[i] == &out->micros ? 0 : EXACT_PART, parts[i]))
			return false;
	}
	if (IsA(con, Const) && !con->constisnull && DatumGetFloat8(con->constvalue) == 0)
		return true;
	reg = float_op(c, Opcode::Mul, compile_expr(c, (const Expr *) con), USECS_PER_SEC);
	reg = reg < 0 ? -1 : convert(c, value(c, Opcode::Round, Type::F64, reg), Type::I64);
	return set_part(c, reg, 0, &seconds) && add_part(c, seconds, out->micros, 0, &out->micros);
}

/* interval_um(), interval_mi() */
bool
negate_interval(Compiler *c, IntervalParts *parts)
{
	return negate_part(c, EXACT_PART, &parts->months) && negate_part(c, EXACT_PART, &parts->days) && negate_part(c, 0, &parts->micros);
}

static bool
compile_added(Compiler *c, List *args, bool minus, IntervalParts *out)
{
	IntervalParts other;

	return compile_interval_parts(c, static_cast<const Expr *>(linitial(args)), out) &&
		compile_interval_parts(c, static_cast<const Expr *>(lsecond(args)), &other) && (!minus || negate_interval(c, &other)) &&
		add_part(c, out->months, other.months, EXACT_PART, &out->months) && add_part(c, out->days, other.days, EXACT_PART, &out->days) &&
		add_part(c, out->micros, other.micros, 0, &out->micros);
}

bool
compile_interval_parts(Compiler *c, const Expr *expr, IntervalParts *out)
{
	const Const *con = (const Const *) expr;
	IntervalParts unit;
	List	   *args;
	const Oid	function = called(expr, &args);
	const Expr *number;

	*out = IntervalParts{{-1, 0}, {-1, 0}, {-1, 0}};
	if (IsA(expr, Const) && !con->constisnull)
	{
		const Interval *interval = DatumGetIntervalP(con->constvalue);

		*out = IntervalParts{{-1, interval->month}, {-1, interval->day}, {-1, interval->time}};
		return true;
	}
	if (is_map(c, expr) || known_at_start(expr) || bare_column(expr) != nullptr)
		return set_part(c, compile_interval_part(c, expr, AggInput::IntervalMonths), 0, &out->months) &&
			set_part(c, compile_interval_part(c, expr, AggInput::IntervalDays), 0, &out->days) &&
			set_part(c, compile_interval_part(c, expr, AggInput::IntervalMicros), 0, &out->micros);
	if (is_span(expr))
		return (!span_has_days(expr) || set_part(c, compile_interval_part(c, expr, AggInput::IntervalDays), 0, &out->days)) &&
			set_part(c, compile_interval_part(c, expr, AggInput::IntervalMicros), 0, &out->micros);
	switch (function)
	{
		case F_INTERVAL_UM:
			return compile_interval_parts(c, static_cast<const Expr *>(linitial(args)), out) && negate_interval(c, out);
		case F_INTERVAL_PL:
		case F_INTERVAL_MI:
			return compile_added(c, args, function == F_INTERVAL_MI, out);
		case F_INTERVAL_MUL:
			return compile_multiplied(c, static_cast<const Expr *>(linitial(args)), static_cast<const Expr *>(lsecond(args)), out);
		case F_MUL_D_INTERVAL:
			return compile_multiplied(c, static_cast<const Expr *>(lsecond(args)), static_cast<const Expr *>(linitial(args)), out);
		case F_MAKE_INTERVAL:
			return compile_made(c, args, out);
		default:
			break;
	}
	number = number_of_units(expr, &unit);
	if (number == nullptr)
		return refuse(c, "an interval that is computed in this way has no form in the virtual machine") >= 0;
	*out = unit;
	return multiply_by_integer(c, convert(c, compile_expr(c, number), Type::I64), out);
}

/* -- as one number ----------------------------------------------------------------------------------- */

/* The sum of the parts, each so many times; of a year's months by themselves. */
static int
sum_parts(Compiler *c, const IntervalParts &parts, int64_t year, int64_t month, int64_t day, int64_t unit)
{
	int			sum = part_register(c, parts.micros);
	int			reg;

	if (!is_zero_part(parts.days))
	{
		reg = with_constant64(c, Opcode::Mul, part_register(c, parts.days), day * unit);
		sum = sum < 0 || reg < 0 ? -1 : binary64(c, Opcode::Add, reg, sum);
	}
	if (!is_zero_part(parts.months))
	{
		const int	months = part_register(c, parts.months);
		const int	years = with_constant64(c, Opcode::Div, months, MONTHS_PER_YEAR);
		const int	rest = with_constant64(c, Opcode::Remainder, months, MONTHS_PER_YEAR);

		reg = years < 0 || rest < 0 ? -1 : binary64(c, Opcode::Add, with_constant64(c, Opcode::Mul, years, year * unit), with_constant64(c, Opcode::Mul, rest, month * unit));
		sum = sum < 0 || reg < 0 ? -1 : binary64(c, Opcode::Add, reg, sum);
	}
	c->soft_errors = true;
	return sum;
}

int
compile_computed_span(Compiler *c, const Expr *expr)
{
	IntervalParts parts;

	return compile_interval_parts(c, expr, &parts) ? sum_parts(c, parts, MONTHS_PER_YEAR * DAYS_PER_MONTH, DAYS_PER_MONTH, 1, USECS_PER_DAY) : -1;
}

int
compile_computed_epoch(Compiler *c, const Expr *expr, const RegisterInfo &info)
{
	IntervalParts parts;
	int			reg;

	if (!compile_interval_parts(c, expr, &parts))
		return -1;
	reg = sum_parts(c, parts, static_cast<int64_t>(4 * DAYS_PER_YEAR), 4 * DAYS_PER_MONTH, 4, USECS_PER_DAY / 4);
	return reg < 0 ? -1 : value(c, Opcode::Copy, Type::I64, reg, 0, 0, 0, info);
}

int
compile_interval_time(Compiler *c, const IntervalParts &parts)
{
	int			time = part_register(c, parts.micros);

	/* for their nulls */
	for (const IntervalPart *part : {&parts.months, &parts.days})
	{
		if (part->reg >= 0 && time >= 0)
			time = binary64(c, Opcode::Add, time, with_constant64(c, Opcode::Mul, part->reg, 0));
	}
	return time;
}

}  // namespace gpuvm
