/* functions.cc: the whitelist of functions and types. */
#include "pg/pg.h"

extern "C" {
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

#include <algorithm>
#include <iterator>

#include "compiler/functions.h"

namespace gpuvm {

/* clang-format off */
#define ARITH(fn, op, t) {fn, FnKind::Binary, Opcode::op, Type::t}
#define SHIFT(fn, op, t) {fn, FnKind::Shift, Opcode::op, Type::t}
#define UNARY(fn, op, t) {fn, FnKind::Unary, Opcode::op, Type::t}
#define SAME(fn, t)      {fn, FnKind::Same, Opcode::Copy, Type::t}
#define CAST(fn, t)      {fn, FnKind::Cast, Opcode::Cast, Type::t}
#define CONVERT(fn, op, t) {fn, FnKind::Convert, Opcode::op, Type::t}
#define COMPARE1(kind, fn, op, t) {fn, FnKind::kind, Opcode::op, Type::t}
#define KIND(fn, kind, op, t) {fn, FnKind::kind, Opcode::op, Type::t}
#define NUMERIC(fn, kind, op) KIND(fn, kind, op, I64)
#define COMPARE_NUMERIC(fn, op) {fn, FnKind::Compare, Opcode::op, Type::I64, ValueForm::Numeric}
#define COMPARE6(prefix, t) \
	COMPARE1(Compare, prefix##EQ, Eq, t), COMPARE1(Compare, prefix##NE, Ne, t), \
	COMPARE1(Compare, prefix##LT, Lt, t), COMPARE1(Compare, prefix##LE, Le, t), \
	COMPARE1(Compare, prefix##GT, Gt, t), COMPARE1(Compare, prefix##GE, Ge, t)
#define COMPARE6_(prefix, t) \
	COMPARE1(Compare, prefix##_EQ, Eq, t), COMPARE1(Compare, prefix##_NE, Ne, t), \
	COMPARE1(Compare, prefix##_LT, Lt, t), COMPARE1(Compare, prefix##_LE, Le, t), \
	COMPARE1(Compare, prefix##_GT, Gt, t), COMPARE1(Compare, prefix##_GE, Ge, t)
#define ARITH4(prefix, t) \
	ARITH(prefix##PL, Add, t), ARITH(prefix##MI, Sub, t), \
	ARITH(prefix##MUL, Mul, t), ARITH(prefix##DIV, Div, t)
#define COMPARE_ZONED(a, b) \
	COMPARE1(CompareZoned, F_##a##_EQ_##b, Eq, I64), COMPARE1(CompareZoned, F_##a##_NE_##b, Ne, I64), \
	COMPARE1(CompareZoned, F_##a##_LT_##b, Lt, I64), COMPARE1(CompareZoned, F_##a##_LE_##b, Le, I64), \
	COMPARE1(CompareZoned, F_##a##_GT_##b, Gt, I64), COMPARE1(CompareZoned, F_##a##_GE_##b, Ge, I64)
#define BITS(prefix, t) \
	ARITH(prefix##AND, BitAnd, t), ARITH(prefix##OR, BitOr, t), ARITH(prefix##XOR, BitXor, t), \
	UNARY(prefix##NOT, BitNot, t), SHIFT(prefix##SHL, ShiftLeft, t), SHIFT(prefix##SHR, ShiftRight, t)

static FnEntry entries[] = {
	ARITH4(F_INT2, I16), ARITH4(F_INT4, I32), ARITH4(F_INT8, I64),
	ARITH4(F_INT24, I32), ARITH4(F_INT42, I32),
	ARITH4(F_INT28, I64), ARITH4(F_INT82, I64), ARITH4(F_INT48, I64), ARITH4(F_INT84, I64),
	ARITH4(F_FLOAT4, F32), ARITH4(F_FLOAT8, F64), ARITH4(F_FLOAT48, F64), ARITH4(F_FLOAT84, F64),
	ARITH(F_INT2MOD, Remainder, I16), ARITH(F_INT4MOD, Remainder, I32), ARITH(F_INT8MOD, Remainder, I64),
	ARITH(F_MOD_INT2_INT2, Remainder, I16), ARITH(F_MOD_INT4_INT4, Remainder, I32),
	ARITH(F_MOD_INT8_INT8, Remainder, I64),
	BITS(F_INT2, I16), BITS(F_INT4, I32), BITS(F_INT8, I64),
	UNARY(F_INT2UM, Neg, I16), UNARY(F_INT4UM, Neg, I32), UNARY(F_INT8UM, Neg, I64),
	UNARY(F_FLOAT4UM, Neg, F32), UNARY(F_FLOAT8UM, Neg, F64),
	UNARY(F_INT2ABS, Abs, I16), UNARY(F_INT4ABS, Abs, I32), UNARY(F_INT8ABS, Abs, I64),
	UNARY(F_FLOAT4ABS, Abs, F32), UNARY(F_FLOAT8ABS, Abs, F64),
	UNARY(F_ABS_INT2, Abs, I16), UNARY(F_ABS_INT4, Abs, I32), UNARY(F_ABS_INT8, Abs, I64),
	UNARY(F_ABS_FLOAT4, Abs, F32), UNARY(F_ABS_FLOAT8, Abs, F64),
	UNARY(F_SQRT_FLOAT8, Sqrt, F64), UNARY(F_DSQRT, Sqrt, F64), UNARY(F_CEIL_FLOAT8, Ceil, F64), UNARY(F_CEILING_FLOAT8, Ceil, F64),
	UNARY(F_FLOOR_FLOAT8, Floor, F64), UNARY(F_TRUNC_FLOAT8, Trunc, F64), UNARY(F_DTRUNC, Trunc, F64),
	UNARY(F_ROUND_FLOAT8, Round, F64), UNARY(F_DROUND, Round, F64), UNARY(F_SIGN_FLOAT8, Sign, F64),
	UNARY(F_EXP_FLOAT8, Exp, F64), UNARY(F_DEXP, Exp, F64), UNARY(F_LN_FLOAT8, Ln, F64), UNARY(F_DLOG1, Ln, F64),
	UNARY(F_LOG_FLOAT8, Log10, F64), UNARY(F_LOG10_FLOAT8, Log10, F64), UNARY(F_DLOG10, Log10, F64), UNARY(F_CBRT, Cbrt, F64), UNARY(F_DCBRT, Cbrt, F64),
	UNARY(F_SIN, Sin, F64), UNARY(F_COS, Cos, F64), UNARY(F_TAN, Tan, F64), UNARY(F_COT, Cot, F64),
	UNARY(F_ASIN, Asin, F64), UNARY(F_ACOS, Acos, F64), UNARY(F_ATAN, Atan, F64), ARITH(F_ATAN2, Atan2, F64),
	UNARY(F_SINH, Sinh, F64), UNARY(F_COSH, Cosh, F64), UNARY(F_TANH, Tanh, F64), UNARY(F_ASINH, Asinh, F64), UNARY(F_ACOSH, Acosh, F64), UNARY(F_ATANH, Atanh, F64),
	ARITH(F_POW_FLOAT8_FLOAT8, Power, F64), ARITH(F_POWER_FLOAT8_FLOAT8, Power, F64), ARITH(F_DPOW, Power, F64),
	KIND(F_DEGREES, Angle, Div, F64), KIND(F_RADIANS, Angle, Mul, F64),
	SAME(F_INT2UP, I16), SAME(F_INT4UP, I32), SAME(F_INT8UP, I64),
	SAME(F_FLOAT4UP, F32), SAME(F_FLOAT8UP, F64),

	COMPARE6(F_INT2, I16), COMPARE6(F_INT4, I32), COMPARE6(F_INT8, I64),
	COMPARE6(F_INT24, I32), COMPARE6(F_INT42, I32),
	COMPARE6(F_INT28, I64), COMPARE6(F_INT82, I64), COMPARE6(F_INT48, I64), COMPARE6(F_INT84, I64),
	COMPARE6(F_FLOAT4, F32), COMPARE6(F_FLOAT8, F64), COMPARE6(F_FLOAT48, F64), COMPARE6(F_FLOAT84, F64),
	COMPARE6(F_BOOL, Bool),
	COMPARE6_(F_DATE, I32), COMPARE6_(F_TIMESTAMP, I64), COMPARE6_(F_TIMESTAMPTZ, I64),
	COMPARE1(CompareDateLeft, F_DATE_EQ_TIMESTAMP, Eq, I64), COMPARE1(CompareDateLeft, F_DATE_NE_TIMESTAMP, Ne, I64),
	COMPARE1(CompareDateLeft, F_DATE_LT_TIMESTAMP, Lt, I64), COMPARE1(CompareDateLeft, F_DATE_LE_TIMESTAMP, Le, I64),
	COMPARE1(CompareDateLeft, F_DATE_GT_TIMESTAMP, Gt, I64), COMPARE1(CompareDateLeft, F_DATE_GE_TIMESTAMP, Ge, I64),
	COMPARE1(CompareDateRight, F_TIMESTAMP_EQ_DATE, Eq, I64), COMPARE1(CompareDateRight, F_TIMESTAMP_NE_DATE, Ne, I64),
	COMPARE1(CompareDateRight, F_TIMESTAMP_LT_DATE, Lt, I64), COMPARE1(CompareDateRight, F_TIMESTAMP_LE_DATE, Le, I64),
	COMPARE1(CompareDateRight, F_TIMESTAMP_GT_DATE, Gt, I64), COMPARE1(CompareDateRight, F_TIMESTAMP_GE_DATE, Ge, I64),

	ARITH(F_DATE_PLI, DateAdd, I32), ARITH(F_DATE_MII, DateSub, I32), ARITH(F_DATE_MI, DateDiff, I32),
	CONVERT(F_TIMESTAMP_DATE, DateToTimestamp, I64), CONVERT(F_DATE_TIMESTAMP, TimestampToDate, I32),

	CAST(F_INT2_INT4, I16), CAST(F_INT2_INT8, I16), CAST(F_INT2_FLOAT4, I16), CAST(F_INT2_FLOAT8, I16),
	CAST(F_INT4_INT2, I32), CAST(F_INT4_INT8, I32), CAST(F_INT4_FLOAT4, I32), CAST(F_INT4_FLOAT8, I32),
	CAST(F_INT4_BOOL, I32),
	CAST(F_INT8_INT2, I64), CAST(F_INT8_INT4, I64), CAST(F_INT8_FLOAT4, I64), CAST(F_INT8_FLOAT8, I64),
	CAST(F_FLOAT4_INT2, F32), CAST(F_FLOAT4_INT4, F32), CAST(F_FLOAT4_INT8, F32), CAST(F_FLOAT4_FLOAT8, F32),
	CAST(F_FLOAT8_INT2, F64), CAST(F_FLOAT8_INT4, F64), CAST(F_FLOAT8_INT8, F64), CAST(F_FLOAT8_FLOAT4, F64),
	CAST(F_BOOL_INT4, Bool),

	/* numeric */
	COMPARE_NUMERIC(F_NUMERIC_EQ, Eq), COMPARE_NUMERIC(F_NUMERIC_NE, Ne), COMPARE_NUMERIC(F_NUMERIC_LT, Lt),
	COMPARE_NUMERIC(F_NUMERIC_LE, Le), COMPARE_NUMERIC(F_NUMERIC_GT, Gt), COMPARE_NUMERIC(F_NUMERIC_GE, Ge),
	NUMERIC(F_NUMERIC_ADD, NumericBinary, Add), NUMERIC(F_NUMERIC_SUB, NumericBinary, Sub), NUMERIC(F_NUMERIC_MUL, NumericBinary, Mul),
	NUMERIC(F_NUMERIC_DIV, NumericBinary, Div),
	NUMERIC(F_NUMERIC_MOD, NumericBinary, Remainder), NUMERIC(F_MOD_NUMERIC_NUMERIC, NumericBinary, Remainder),
	NUMERIC(F_DIV, NumericDiv, Div), NUMERIC(F_NUMERIC_DIV_TRUNC, NumericDiv, Div), KIND(F_SCALE, NumericScale, Greatest, I32),
	NUMERIC(F_NUMERIC_UMINUS, NumericUnary, Neg), NUMERIC(F_NUMERIC_ABS, NumericUnary, Abs), NUMERIC(F_ABS_NUMERIC, NumericUnary, Abs),
	SAME(F_NUMERIC_UPLUS, I64),
	NUMERIC(F_ROUND_NUMERIC, NumericRound, DivRound), NUMERIC(F_ROUND_NUMERIC_INT4, NumericRound, DivRound),
	NUMERIC(F_TRUNC_NUMERIC, NumericRound, Div), NUMERIC(F_TRUNC_NUMERIC_INT4, NumericRound, Div),
	NUMERIC(F_FLOOR_NUMERIC, NumericRound, DivFloor),
	NUMERIC(F_CEIL_NUMERIC, NumericCeil, DivFloor), NUMERIC(F_CEILING_NUMERIC, NumericCeil, DivFloor),
	NUMERIC(F_SIGN_NUMERIC, NumericSign, Sub),
	NUMERIC(F_NUMERIC_INT2, NumericFromInt, Cast), NUMERIC(F_NUMERIC_INT4, NumericFromInt, Cast), NUMERIC(F_NUMERIC_INT8, NumericFromInt, Cast),
	KIND(F_INT2_NUMERIC, NumericToInt, DivRound, I16), KIND(F_INT4_NUMERIC, NumericToInt, DivRound, I32),
	KIND(F_INT8_NUMERIC, NumericToInt, DivRound, I64), KIND(F_FLOAT8_NUMERIC, NumericToFloat, Div, F64),
	NUMERIC(F_NUMERIC_NUMERIC_INT4, NumericTypmod, DivRound),
	KIND(F_WIDTH_BUCKET_FLOAT8_FLOAT8_FLOAT8_INT4, FloatBucket, Div, I32),
	KIND(F_WIDTH_BUCKET_NUMERIC_NUMERIC_NUMERIC_INT4, NumericBucket, DivFloor, I32),

	/* dates and times */
	COMPARE6_(F_TIME, I64),
	NUMERIC(F_EXTRACT_TEXT_TIMESTAMP, Extract, DatePart), NUMERIC(F_EXTRACT_TEXT_DATE, ExtractDate, DatePart),
	NUMERIC(F_EXTRACT_TEXT_TIME, ExtractTime, DatePart), NUMERIC(F_EXTRACT_TEXT_TIMESTAMPTZ, ExtractZoned, DatePart),
	KIND(F_DATE_PART_TEXT_TIMESTAMP, DatePart, DatePart, F64), KIND(F_DATE_PART_TEXT_TIME, DatePartTime, DatePart, F64),
	KIND(F_DATE_PART_TEXT_TIMESTAMPTZ, DatePartZoned, DatePart, F64),
	NUMERIC(F_EXTRACT_TEXT_INTERVAL, ExtractInterval, DatePart), KIND(F_DATE_PART_TEXT_INTERVAL, DatePartInterval, DatePart, F64),
	KIND(F_DATE_TRUNC_TEXT_TIMESTAMP, TruncTimestamp, DateTrunc, I64),
	KIND(F_DATE_TRUNC_TEXT_TIMESTAMPTZ, TruncZoned, DateTrunc, I64), KIND(F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT, TruncZoned, DateTrunc, I64),
	KIND(F_TIMESTAMP_PL_INTERVAL, AddInterval, TimestampAddMicros, I64), KIND(F_TIMESTAMP_MI_INTERVAL, SubInterval, TimestampAddMicros, I64),
	KIND(F_DATE_PL_INTERVAL, AddIntervalDate, TimestampAddMicros, I64), KIND(F_DATE_MI_INTERVAL, SubIntervalDate, TimestampAddMicros, I64),
	KIND(F_TIMESTAMPTZ_PL_INTERVAL, AddIntervalZone, TimestampAddMicros, I64),
	KIND(F_TIMESTAMPTZ_MI_INTERVAL, SubIntervalZone, TimestampAddMicros, I64),
	KIND(F_TIME_PL_INTERVAL, AddIntervalTime, TimeAddMicros, I64), KIND(F_TIME_MI_INTERVAL, SubIntervalTime, TimeAddMicros, I64),
	KIND(F_DATE_BIN_INTERVAL_TIMESTAMP_TIMESTAMP, DateBin, TimestampAddMicros, I64),
	KIND(F_DATE_BIN_INTERVAL_TIMESTAMPTZ_TIMESTAMPTZ, DateBin, TimestampAddMicros, I64),
	KIND(F_DATETIME_PL, DateTime, TimestampAddMicros, I64),
	KIND(F_ISFINITE_DATE, IsFinite, In, I32), KIND(F_ISFINITE_TIMESTAMP, IsFinite, In, I64), KIND(F_ISFINITE_TIMESTAMPTZ, IsFinite, In, I64),

	KIND(F_TO_TIMESTAMP_FLOAT8, ToTimestamp, TimestampAddMicros, I64), KIND(F_MAKE_DATE, MakeDate, TimestampAddMonths, I32),
	KIND(F_OVERLAPS_TIMESTAMP_TIMESTAMP_TIMESTAMP_TIMESTAMP, Overlaps, Or, Bool), KIND(F_OVERLAPS_TIME_TIME_TIME_TIME, Overlaps, Or, Bool),
	KIND(F_OVERLAPS_TIMESTAMPTZ_TIMESTAMPTZ_TIMESTAMPTZ_TIMESTAMPTZ, Overlaps, Or, Bool),

	/* time zones */
	KIND(F_TIME_TIMESTAMP, TimeOfTimestamp, DateTrunc, I64), KIND(F_TIME_TIMESTAMPTZ, LocalTime, ZoneShift, I64),
	KIND(F_TIMESTAMP_TIMESTAMPTZ, Local, ZoneShift, I64), KIND(F_DATE_TIMESTAMPTZ, LocalDate, ZoneShift, I32),
	KIND(F_TIMESTAMPTZ_TIMESTAMP, Utc, ZoneShift, I64), KIND(F_TIMESTAMPTZ_DATE, DateToUtc, ZoneShift, I64),
	KIND(F_TIMEZONE_TEXT_TIMESTAMPTZ, ZoneToLocal, ZoneShift, I64), KIND(F_TIMEZONE_TEXT_TIMESTAMP, ZoneToUtc, ZoneShift, I64),
	KIND(F_TIMEZONE_INTERVAL_TIMESTAMPTZ, OffsetToLocal, TimestampAddMicros, I64),
	KIND(F_TIMEZONE_INTERVAL_TIMESTAMP, OffsetToUtc, TimestampAddMicros, I64),
	COMPARE_ZONED(DATE, TIMESTAMPTZ), COMPARE_ZONED(TIMESTAMPTZ, DATE), COMPARE_ZONED(TIMESTAMP, TIMESTAMPTZ), COMPARE_ZONED(TIMESTAMPTZ, TIMESTAMP),

	/* oid, money */
	COMPARE6(F_OID, I64), SAME(F_INT8_OID, I64), COMPARE6_(F_CASH, I64),
	ARITH(F_CASH_PL, Add, I64), ARITH(F_CASH_MI, Sub, I64),
	ARITH(F_CASH_MUL_INT8, Mul, I64), ARITH(F_CASH_MUL_INT4, Mul, I64), ARITH(F_CASH_MUL_INT2, Mul, I64),
	ARITH(F_INT8_MUL_CASH, Mul, I64), ARITH(F_INT4_MUL_CASH, Mul, I64), ARITH(F_INT2_MUL_CASH, Mul, I64),
	ARITH(F_CASH_DIV_CASH, Div, F64), NUMERIC(F_NUMERIC_MONEY, NumericFromMoney, Cast),
	ARITH(F_CASH_DIV_INT8, Div, I64), ARITH(F_CASH_DIV_INT4, Div, I64), ARITH(F_CASH_DIV_INT2, Div, I64),
};
/* clang-format on */

const FnEntry *
lookup_function(Oid function)
{
	static bool sorted = false;
	const FnEntry *found;

	if (!sorted)
	{
		std::sort(std::begin(entries), std::end(entries), [](const FnEntry &a, const FnEntry &b) { return a.function < b.function; });
		sorted = true;
	}
	found = std::lower_bound(std::begin(entries), std::end(entries), function,
							 [](const FnEntry &a, Oid b) { return a.function < b; });
	return found != std::end(entries) && found->function == function ? found : nullptr;
}

Oid
called(const Expr *expr, List **args)
{
	*args = NIL;
	if (IsA(expr, FuncExpr))
	{
		*args = ((const FuncExpr *) expr)->args;
		return ((const FuncExpr *) expr)->funcid;
	}
	if (!IsA(expr, OpExpr))
		return InvalidOid;
	*args = ((const OpExpr *) expr)->args;
	return OidIsValid(((const OpExpr *) expr)->opfuncid) ? ((const OpExpr *) expr)->opfuncid : get_opcode(((const OpExpr *) expr)->opno);
}

const FnEntry *
called_function(const Expr *expr, List **args)
{
	return lookup_function(called(expr, args));
}

const char *
function_refusal(Oid function)
{
	switch (function)
	{
		case F_SIND:
		case F_COSD:
		case F_TAND:
		case F_COTD:
		case F_ASIND:
		case F_ACOSD:
		case F_ATAND:
		case F_ATAN2D:
			return "its last digits are PostgreSQL's own";
		case F_TIMESTAMP_MI:
		case F_TIMESTAMPTZ_MI:
			return "an interval that is computed has no form in the virtual machine";
		default:
			return nullptr;
	}
}

bool
function_wraps(const FnEntry *entry)
{
	switch (entry->function)
	{
		case F_CASH_PL:
		case F_CASH_MI:
		case F_CASH_MUL_INT8:
		case F_CASH_MUL_INT4:
		case F_CASH_MUL_INT2:
		case F_INT8_MUL_CASH:
		case F_INT4_MUL_CASH:
		case F_INT2_MUL_CASH:
			return true;
		default:
			return false;
	}
}

bool
function_can_raise(const FnEntry *entry, Type argument)
{
	if (entry->kind == FnKind::Cast)
	{
		/* From a narrower integer, to a float from an integer, from float4 to float8, to or from bool. */
		if (entry->operand == Type::Bool || argument == Type::Bool)
			return false;
		if (type_is_float(entry->operand))
			return entry->operand == Type::F32 && argument == Type::F64;
		return type_is_float(argument) || argument > entry->operand;
	}
	switch (entry->kind)
	{
		case FnKind::NumericRound:
		case FnKind::NumericCeil:
		case FnKind::NumericSign:
		case FnKind::NumericFromInt:
		case FnKind::NumericFromMoney:
		case FnKind::NumericScale:
			/* nothing is divided by zero, and what grows is flagged only */
			return false;
		case FnKind::NumericToInt:
		case FnKind::NumericToFloat:
		case FnKind::NumericTypmod:
			return true;
		case FnKind::ExtractTime:
		case FnKind::DatePartTime:
			return false;
		case FnKind::CompareZoned:
			return true;
		default:
			return opcode_info[static_cast<int>(entry->opcode)].errors != 0;
	}
}

}  // namespace gpuvm
