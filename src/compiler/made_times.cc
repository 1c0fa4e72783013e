/* made_times.cc: times that are made of numbers, and periods that overlap. */
#include "pg/pg.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"
}
/* of PostgreSQL's names of dates, and one of our opcodes */
#undef INVALID

#include "compiler/emit.h"
#include "vm/date_fields.h"

namespace gpuvm {

/* -- numbers -------------------------------------------------------------------------------- */

constexpr int64_t EPOCH_SECONDS = static_cast<int64_t>(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY;

/* float8_timestamptz(): of integers the floats are these. */
int
compile_to_timestamp(Compiler *c, const Expr *seconds)
{
	List	   *args;
	const Oid	cast = called(seconds, &args);
	int			reg;
	int			by;

	/* infinities are timestamps, too */
	c->soft_errors = true;
	if (cast == F_FLOAT8_INT4 || cast == F_FLOAT8_INT2)
	{
		reg = convert(c, compile_expr(c, static_cast<const Expr *>(linitial(args))), Type::I64);
		reg = with_constant64(c, Opcode::Mul, with_constant64(c, Opcode::Sub, reg, EPOCH_SECONDS), USECS_PER_SEC);
	}
	else
	{
		reg = compile_expr(c, seconds);
		by = reg < 0 ? -1 : float_value(c, Type::F64, EPOCH_SECONDS);
		reg = by < 0 ? -1 : value(c, Opcode::Sub, Type::F64, reg, by);
		by = reg < 0 ? -1 : float_value(c, Type::F64, USECS_PER_SEC);
		reg = by < 0 ? -1 : value(c, Opcode::Mul, Type::F64, reg, by);
		reg = reg < 0 ? -1 : convert(c, value(c, Opcode::Round, Type::F64, reg), Type::I64);
	}
	/* so many behind 2000: as the timestamp itself the least of numbers would be -infinity */
	by = reg < 0 ? -1 : int_value(c, Type::I64, 0);
	return binary64(c, Opcode::TimestampAddMicros, by, reg);
}

/* Is the field of the timestamp what it was made of? */
static int
same_field(Compiler *c, int timestamp, DateField field, int wanted)
{
	const int	is = timestamp < 0 ? -1 : value(c, Opcode::DatePart, Type::I64, timestamp, static_cast<int>(field));
	const int	off = binary64(c, Opcode::Sub, is, wanted);

	return with_constant64(c, Opcode::Bound, off, 1);
}

/* make_date(): so many months and days behind a date, flagged where that has another month or day, or is before Christ. */
int
compile_make_date(Compiler *c, List *args)
{
	const DateField fields[] = {DateField::Year, DateField::Month, DateField::Day};
	int			regs[3];
	int			months;
	int			days;
	int			off;
	int			made;

	for (int i = 0; i < 3; i++)
	{
		regs[i] = convert(c, compile_expr(c, static_cast<const Expr *>(list_nth(args, i))), Type::I64);
		if (regs[i] < 0)
			return -1;
	}
	c->soft_errors = true;
	months = binary64(c, Opcode::Add, with_constant64(c, Opcode::Mul, with_constant64(c, Opcode::Sub, regs[0], 2000), MONTHS_PER_YEAR), regs[1]);
	months = convert(c, with_constant64(c, Opcode::Sub, months, 1), Type::I32);
	days = convert(c, with_constant64(c, Opcode::Sub, regs[2], 1), Type::I32);
	made = months < 0 || days < 0 ? -1 : value(c, Opcode::TimestampAddMonths, Type::I64, int_value(c, Type::I64, 0), months);
	made = made < 0 ? -1 : value(c, Opcode::TimestampAddDays, Type::I64, made, days);
	for (int i = 0; i < 3; i++)
	{
		off = same_field(c, made, fields[i], regs[i]);
		made = binary64(c, Opcode::Add, made, off);
	}
	return made < 0 ? -1 : value(c, Opcode::TimestampToDate, Type::I32, made);
}

/* -- periods ---------------------------------------------------------------------------------- */

struct Period
{
	int			start;
	int			end;			/* null if one of the two is */
};

static bool
compile_period(Compiler *c, const Expr *one, const Expr *other, Period *out)
{
	const int	a = compile_expr(c, one);
	const int	b = a < 0 ? -1 : compile_expr(c, other);
	const int	null = b < 0 ? -1 : null_value(c, Type::I64);
	const int	forward = binary64(c, Opcode::Le, a, b);
	const int	back = binary64(c, Opcode::Gt, a, b);

	out->start = null < 0 ? -1 : value(c, Opcode::Least, Type::I64, a, b);
	out->end = select64(c, forward, b, select64(c, back, a, null));
	return out->start >= 0 && out->end >= 0;
}

static int
logic(Compiler *c, Opcode op, int a, int b)
{
	return a < 0 || b < 0 ? -1 : value(c, op, Type::Bool, a, b);
}

static int
pick(Compiler *c, int cond, int then, int otherwise)
{
	return cond < 0 || then < 0 || otherwise < 0 ? -1 : value(c, Opcode::Select, Type::Bool, then, otherwise, cond);
}

/* overlaps_timestamp(): which is not strict. Where a start is null, all of it is; an end that is null may not matter. */
int
compile_overlaps(Compiler *c, List *args)
{
	Period		a;
	Period		b;
	int			behind;
	int			before;
	int			together;

	if (!compile_period(c, static_cast<const Expr *>(linitial(args)), static_cast<const Expr *>(lsecond(args)), &a) ||
		!compile_period(c, static_cast<const Expr *>(lthird(args)), static_cast<const Expr *>(lfourth(args)), &b))
		return -1;
	/* what stands behind the Or is false, or null as the end is */
	behind = logic(c, Opcode::Or, binary64(c, Opcode::Lt, a.start, b.end), binary64(c, Opcode::Lt, a.end, a.start));
	before = logic(c, Opcode::Or, binary64(c, Opcode::Lt, b.start, a.end), binary64(c, Opcode::Lt, b.end, b.start));
	together = logic(c, Opcode::And, binary64(c, Opcode::Le, a.start, a.end), binary64(c, Opcode::Le, b.start, b.end));
	return pick(c, binary64(c, Opcode::Gt, a.start, b.start), behind, pick(c, binary64(c, Opcode::Lt, a.start, b.start), before, together));
}

}  // namespace gpuvm
