/*
 * buckets.cc: date_bin() and width_bucket(), whose bins are constants: integers divided, and rounded down.
 *
 * Minor versions of PostgreSQL differ in what they make of the edges, so the one that is running is asked.
 */
#include "pg/pg.h"

extern "C" {
#include "common/int.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"
}
/* of PostgreSQL's names of dates, and one of our opcodes */
#undef INVALID

#include <cmath>

#include "compiler/emit.h"
#include "pg/numeric_scaled.h"

namespace gpuvm {

static bool
is_value(const void *expr)
{
	return IsA(expr, Const) && !static_cast<const Const *>(expr)->constisnull;
}

/* -- date_bin ------------------------------------------------------------------------------- */

/* Is a time before the origin that is a bin's beginning in that bin? Once it was in the one before. */
static bool
begins_its_bin(void)
{
	Interval	two = {2, 0, 0};

	return DatumGetTimestamp(DirectFunctionCall3(timestamp_bin, IntervalPGetDatum(&two), TimestampGetDatum(-2), TimestampGetDatum(0))) == -2;
}

int
compile_date_bin(Compiler *c, List *args)
{
	const int64_t infinities[] = {DT_NOBEGIN, DT_NOEND};
	const Interval *stride;
	int64		micros;
	int64		origin;
	int			time;
	int			finite;
	int			from;
	int			rest;

	if (!is_value(linitial(args)) || !is_value(lthird(args)))
		return refuse(c, "the stride or the origin of date_bin is not a constant");
	stride = DatumGetIntervalP(static_cast<const Const *>(linitial(args))->constvalue);
	origin = DatumGetTimestamp(static_cast<const Const *>(lthird(args))->constvalue);
	if (stride->month != 0 || pg_mul_s64_overflow(stride->day, USECS_PER_DAY, &micros) || pg_add_s64_overflow(micros, stride->time, &micros) ||
		micros < 2 || TIMESTAMP_NOT_FINITE(origin))
		return refuse(c, "the stride or the origin of date_bin is out of range");
	time = compile_expr(c, static_cast<const Expr *>(lsecond(args)));
	/* what is infinite stays so: its place is taken for the division */
	finite = time < 0 ? -1 : select64(c, value(c, Opcode::In, Type::I64, time, c->b->add_aux(infinities, 2), 2), int_value(c, Type::I64, origin), time);
	from = finite < 0 ? -1 : with_constant64(c, Opcode::Sub, finite, origin);
	rest = from < 0 ? -1 : with_constant64(c, Opcode::Remainder, from, micros);
	if (rest < 0)
		return -1;
	rest = select64(c, with_constant64(c, Opcode::Lt, begins_its_bin() ? rest : from, 0), with_constant64(c, Opcode::Add, rest, micros), rest);
	rest = rest < 0 ? -1 : value(c, Opcode::Neg, Type::I64, rest);
	return rest < 0 ? -1 : value(c, Opcode::TimestampAddMicros, Type::I64, time, rest);
}

/* -- width_bucket -------------------------------------------------------------------------------- */

/* PostgreSQL multiplies before it divides, so that a bucket's lower bound is in it? */
static bool
buckets_are_exact(void)
{
	return DatumGetInt32(DirectFunctionCall4(width_bucket_numeric, scaled_to_numeric(int64{1}, 0), scaled_to_numeric(int64{0}, 0), scaled_to_numeric(int64{3}, 0),
											 Int32GetDatum(3))) == 2;
}

/* A quotient is rounded to 16 digits or more: where the divisor has no more than 15, and there are as few buckets, not beyond the next integer. */
constexpr int64 MAX_BUCKETS_WIDTH = INT64CONST(1000000000000000);
constexpr int MAX_BUCKETS = 9999;

int
compile_numeric_bucket(Compiler *c, List *args)
{
	const Const *const bounds[] = {static_cast<const Const *>(lsecond(args)), static_cast<const Const *>(lthird(args))};
	const Const *count = static_cast<const Const *>(lfourth(args));
	int			scale = 0;
	int64		at[2];
	int64		width;
	int			n;
	int			reg;

	if (!is_value(bounds[0]) || !is_value(bounds[1]) || !is_value(count))
		return refuse(c, "the bounds or the number of width_bucket are no constants");
	n = DatumGetInt32(count->constvalue);
	reg = compile_value(c, static_cast<const Expr *>(linitial(args)));
	if (reg < 0)
		return -1;
	scale = Max(c->info[reg].scale, 0);
	while (scale < SCALED_MAX_SCALE && (!numeric_at_scale(bounds[0]->constvalue, scale, &at[0]) || !numeric_at_scale(bounds[1]->constvalue, scale, &at[1])))
		scale++;
	if (n < 1 || n > MAX_BUCKETS || !buckets_are_exact() || !numeric_at_scale(bounds[0]->constvalue, scale, &at[0]) ||
		!numeric_at_scale(bounds[1]->constvalue, scale, &at[1]) || pg_sub_s64_overflow(Max(at[0], at[1]), Min(at[0], at[1]), &width) ||
		width == 0 || width > MAX_BUCKETS_WIDTH)
		return refuse(c, "the bounds or the number of width_bucket are out of range");
	reg = rescale(c, reg, scale);
	/* buckets are counted from the first bound, which may be the upper one */
	reg = reg < 0 ? -1 : at[0] < at[1] ? with_constant64(c, Opcode::Sub, reg, at[0]) : binary64(c, Opcode::Sub, int_value(c, Type::I64, at[0]), reg);
	reg = with_constant64(c, Opcode::Add, with_constant64(c, Opcode::DivFloor, with_constant64(c, Opcode::Mul, reg, n), width), 1);
	reg = reg < 0 ? -1 : select64(c, with_constant64(c, Opcode::Lt, reg, 0), int_value(c, Type::I64, 0), reg);
	reg = reg < 0 ? -1 : select64(c, with_constant64(c, Opcode::Gt, reg, n + 1), int_value(c, Type::I64, n + 1), reg);
	c->soft_errors = true;
	return convert(c, reg, Type::I32);
}

static int
width_of_float(double operand, double low, double high, int n)
{
	return DatumGetInt32(DirectFunctionCall4(width_bucket_float8, Float8GetDatum(operand), Float8GetDatum(low), Float8GetDatum(high), Int32GetDatum(n)));
}

/* n * (x - low) / (high - low) + 1, rounded after each step, and cut: that is known of these, which another order of steps makes others. */
static bool
floats_are_multiplied_first(void)
{
	return width_of_float(7, 0, 10, 90) == 64 && width_of_float(3, 0, 11, 55) == 16 && width_of_float(1.9999999999999998, 0, 3, 3) == 3;
}

static int
of_floats(Compiler *c, Opcode op, int a, int b)
{
	return a < 0 || b < 0 ? -1 : value(c, op, Type::F64, a, b);
}

/* 0 below the first bound, n + 1 from the second one on; NaN, which is above all, is PostgreSQL's to refuse (Cast). */
int
compile_float_bucket(Compiler *c, List *args)
{
	const Const *const bounds[] = {static_cast<const Const *>(lsecond(args)), static_cast<const Const *>(lthird(args))};
	const Const *count = static_cast<const Const *>(lfourth(args));
	double		first;
	double		second;
	int			n;
	int			x;
	int			low;
	int			before;
	int			behind;
	int			number;
	int			bucket;
	bool		upwards;

	if (!is_value(bounds[0]) || !is_value(bounds[1]) || !is_value(count))
		return refuse(c, "the bounds or the number of width_bucket are no constants");
	first = DatumGetFloat8(bounds[0]->constvalue);
	second = DatumGetFloat8(bounds[1]->constvalue);
	n = DatumGetInt32(count->constvalue);
	upwards = first < second;
	if (n < 1 || n > MAX_BUCKETS || !std::isfinite(first - second) || first == second || !floats_are_multiplied_first())
		return refuse(c, "the bounds or the number of width_bucket are out of range");
	x = convert(c, compile_expr(c, static_cast<const Expr *>(linitial(args))), Type::F64);
	low = float_value(c, Type::F64, first);
	before = of_floats(c, upwards ? Opcode::Lt : Opcode::Gt, x, low);
	behind = of_floats(c, upwards ? Opcode::Ge : Opcode::Le, x, float_value(c, Type::F64, second));
	/* what is outside takes the first bound's place, but for NaN */
	number = of_floats(c, Opcode::Le, x, float_value(c, Type::F64, INFINITY));
	if (before < 0 || behind < 0 || number < 0)
		return -1;
	number = value(c, Opcode::And, Type::Bool, number, value(c, Opcode::Or, Type::Bool, before, behind));
	x = number < 0 ? -1 : value(c, Opcode::Select, Type::F64, low, x, number);
	bucket = upwards ? of_floats(c, Opcode::Sub, x, low) : of_floats(c, Opcode::Sub, low, x);
	bucket = of_floats(c, Opcode::Mul, float_value(c, Type::F64, n), bucket);
	bucket = of_floats(c, Opcode::Div, bucket, float_value(c, Type::F64, upwards ? second - first : first - second));
	bucket = of_floats(c, Opcode::Add, bucket, float_value(c, Type::F64, 1));
	bucket = convert(c, bucket < 0 ? -1 : value(c, Opcode::Trunc, Type::F64, bucket), Type::I64);
	bucket = bucket < 0 ? -1 : select64(c, before, int_value(c, Type::I64, 0), bucket);
	return convert(c, bucket < 0 ? -1 : select64(c, behind, int_value(c, Type::I64, n + 1), bucket), Type::I32);
}

}  // namespace gpuvm
