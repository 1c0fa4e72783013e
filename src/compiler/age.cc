/*
 * age.cc: years and months of age(a, b), an interval that no register holds.
 *
 * timestamp_age() takes the fields of one time from those of the other, and borrows a month where the day and the time in it
 * are less. So the earlier one's month is taken away from the later one's, and one more if its rest of a month is greater.
 */
#include "pg/pg.h"

extern "C" {
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"
}
/* of PostgreSQL's names of dates, and one of our opcodes */
#undef INVALID

#include "compiler/emit.h"

namespace gpuvm {

static Oid
age_function(const Expr *expr)
{
	const Oid	function = IsA(expr, FuncExpr) ? ((const FuncExpr *) expr)->funcid : InvalidOid;

	return function == F_AGE_TIMESTAMP_TIMESTAMP || function == F_AGE_TIMESTAMPTZ_TIMESTAMPTZ ? function : InvalidOid;
}

bool
is_age(const Expr *expr)
{
	return OidIsValid(age_function(expr));
}

/* Months since a year 0, and what of a timestamp its month has not. */
struct MonthParts
{
	int			months;
	int			rest;
};

static bool
month_parts(Compiler *c, int reg, MonthParts *out)
{
	const int	year = value(c, Opcode::DatePart, Type::I64, reg, static_cast<int>(DateField::Year));
	const int	month = value(c, Opcode::DatePart, Type::I64, reg, static_cast<int>(DateField::Month));
	const int	start = value(c, Opcode::DateTrunc, Type::I64, reg, static_cast<int>(DateField::Month));
	/* there is no year 0: 1 BC is -1 */
	const int	bc = year < 0 ? -1 : with_constant64(c, Opcode::Lt, year, 0);
	const int	next = year < 0 ? -1 : with_constant64(c, Opcode::Add, year, 1);
	int			years;

	if (month < 0 || start < 0 || bc < 0 || next < 0)
		return false;
	years = select64(c, bc, next, year);
	years = years < 0 ? -1 : with_constant64(c, Opcode::Mul, years, MONTHS_PER_YEAR);
	out->months = years < 0 ? -1 : binary64(c, Opcode::Add, years, month);
	out->rest = binary64(c, Opcode::Sub, reg, start);
	return out->months >= 0 && out->rest >= 0;
}

/* Flagged where a clock that was set back shows the later of two times as the earlier one: fields are borrowed in another way then. */
static int
same_order(Compiler *c, int months, int by_time, int by_clock)
{
	const int	one = int_value(c, Type::I64, 1);
	const int	none = int_value(c, Type::I64, 0);
	const int	differ = by_time < 0 || by_clock < 0 ? -1 : value(c, Opcode::IsDistinct, Type::Bool, by_time, by_clock);
	int			wrong;

	if (differ < 0 || one < 0 || none < 0)
		return -1;
	wrong = select64(c, differ, one, none);
	wrong = wrong < 0 ? -1 : with_constant64(c, Opcode::Bound, wrong, 1);
	c->soft_errors = true;
	return wrong < 0 ? -1 : binary64(c, Opcode::Add, months, wrong);
}

int
compile_age_field(Compiler *c, const Expr *age, DateField field, const RegisterInfo &info)
{
	List	   *args = ((const FuncExpr *) age)->args;
	const bool	zoned = age_function(age) == F_AGE_TIMESTAMPTZ_TIMESTAMPTZ;
	const int	a = compile_expr(c, static_cast<const Expr *>(linitial(args)));
	const int	b = a < 0 ? -1 : compile_expr(c, static_cast<const Expr *>(lsecond(args)));
	const int	from = b < 0 || !zoned ? a : to_local(c, a, nullptr);
	const int	to = b < 0 || !zoned ? b : to_local(c, b, nullptr);
	MonthParts	of_a;
	MonthParts	of_b;
	int			earlier;
	int			less;
	int			greater;
	int			difference;
	int			months;

	if (field != DateField::Year && field != DateField::Month)
		return refuse(c, "the field %s of an age is not supported", date_field_name(static_cast<int32_t>(field)));
	if (from < 0 || to < 0 || !month_parts(c, from, &of_a) || !month_parts(c, to, &of_b))
		return -1;
	difference = binary64(c, Opcode::Sub, of_a.months, of_b.months);
	earlier = binary64(c, Opcode::Lt, from, to);
	less = binary64(c, Opcode::Lt, of_a.rest, of_b.rest);
	greater = binary64(c, Opcode::Lt, of_b.rest, of_a.rest);
	if (difference < 0 || earlier < 0 || less < 0 || greater < 0)
		return -1;
	less = select64(c, less, with_constant64(c, Opcode::Sub, difference, 1), difference);
	greater = less < 0 ? -1 : select64(c, greater, with_constant64(c, Opcode::Add, difference, 1), difference);
	months = greater < 0 ? -1 : select64(c, earlier, greater, less);
	if (zoned && months >= 0)
		months = same_order(c, months, binary64(c, Opcode::Lt, a, b), earlier);
	months = months < 0 ? -1 : with_constant64(c, field == DateField::Year ? Opcode::Div : Opcode::Remainder, months, MONTHS_PER_YEAR);
	return months < 0 ? -1 : value(c, Opcode::Copy, Type::I64, months, 0, 0, 0, info);
}

}  // namespace gpuvm
