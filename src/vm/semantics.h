/*
 * semantics.h: PostgreSQL's scalar semantics, once, for every engine.
 *
 * One inline function an elementwise opcode, for host and device. Operands are
 * in register form (I16 values in int32_t). Each returns the value and ORs
 * ErrorBits into *err; under an error the value is unspecified but the function
 * must not trap (no integer division by zero, no INT_MIN / -1). The functions
 * avoid branches where a vectoriser would mind them.
 *
 * Sources are named by PostgreSQL's file and function.
 */
#ifndef GPUVM_VM_SEMANTICS_H
#define GPUVM_VM_SEMANTICS_H

#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/types.h"
#include "vm/date_fields.h"
#include "vm/math_functions.h"
#include "vm/quotient.h"
#include "vm/zone_table.h"

namespace gpuvm {
namespace sem {

template <typename T> GPUVM_HD bool is_nan(T v) { return v != v; }
GPUVM_HD bool is_inf(float v) { return v - v != v - v && v == v; }
GPUVM_HD bool is_inf(double v) { return v - v != v - v && v == v; }

/* Range of a type narrower than its register. */
template <Type T> struct Reg;
template <> struct Reg<Type::Bool> { using type = uint8_t; };
template <> struct Reg<Type::I16> { using type = int32_t; };
template <> struct Reg<Type::I32> { using type = int32_t; };
template <> struct Reg<Type::I64> { using type = int64_t; };
template <> struct Reg<Type::F32> { using type = float; };
template <> struct Reg<Type::F64> { using type = double; };
template <Type T> using reg_t = typename Reg<T>::type;

GPUVM_HD uint32_t out_of_i16(int32_t v) { return v != static_cast<int16_t>(v) ? ERR_INT_OVERFLOW : 0u; }

/*
 * Integer arithmetic (int.c, int8.c). Wrapping in unsigned arithmetic, the
 * overflow found from the signs, so that loops over it vectorise.
 */
template <Type T>
GPUVM_HD reg_t<T> int_add(reg_t<T> a, reg_t<T> b, uint32_t *err)
{
	using V = reg_t<T>;
	using U = std::make_unsigned_t<V>;
	V r = static_cast<V>(static_cast<U>(a) + static_cast<U>(b));
	if constexpr (T == Type::I16)
		*err |= out_of_i16(r);
	else
		*err |= ((a ^ r) & (b ^ r)) < 0 ? ERR_INT_OVERFLOW : 0u;
	return r;
}

template <Type T>
GPUVM_HD reg_t<T> int_sub(reg_t<T> a, reg_t<T> b, uint32_t *err)
{
	using V = reg_t<T>;
	using U = std::make_unsigned_t<V>;
	V r = static_cast<V>(static_cast<U>(a) - static_cast<U>(b));
	if constexpr (T == Type::I16)
		*err |= out_of_i16(r);
	else
		*err |= ((a ^ b) & (a ^ r)) < 0 ? ERR_INT_OVERFLOW : 0u;
	return r;
}

template <Type T>
GPUVM_HD reg_t<T> int_mul(reg_t<T> a, reg_t<T> b, uint32_t *err)
{
	if constexpr (T == Type::I64)
	{
#if defined(__CUDA_ARCH__)
		int64_t hi = __mul64hi(a, b);
		int64_t r = static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
		*err |= hi != (r >> 63) ? ERR_INT_OVERFLOW : 0u;
		return r;
#else
		int64_t r;
		*err |= __builtin_mul_overflow(a, b, &r) ? ERR_INT_OVERFLOW : 0u;
		return r;
#endif
	}
	else
	{
		int64_t w = static_cast<int64_t>(a) * b;
		int32_t r = static_cast<int32_t>(w);
		if constexpr (T == Type::I16)
			*err |= w != static_cast<int16_t>(w) ? ERR_INT_OVERFLOW : 0u;
		else
			*err |= w != r ? ERR_INT_OVERFLOW : 0u;
		return r;
	}
}

template <Type T>
GPUVM_HD reg_t<T> int_min()
{
	return T == Type::I16 ? static_cast<reg_t<T>>(INT16_MIN)
		: T == Type::I32 ? static_cast<reg_t<T>>(INT32_MIN) : static_cast<reg_t<T>>(INT64_MIN);
}

/*
 * int4div and its kin: truncates; min / -1 overflows. Nothing is divided by -1, for a
 * lane that is not live may hold less than the type's least value.
 */
template <Type T>
GPUVM_HD reg_t<T> int_div(reg_t<T> a, reg_t<T> b, uint32_t *err)
{
	using V = reg_t<T>;
	using U = std::make_unsigned_t<V>;
	bool zero = b == 0;
	bool minus = b == -1;
	bool over = minus && a == int_min<T>();
	V q = a / (zero || minus ? static_cast<V>(1) : b);

	*err |= (zero ? ERR_DIVISION_BY_ZERO : 0u) | (over ? ERR_INT_OVERFLOW : 0u);
	return minus && !over ? static_cast<V>(static_cast<U>(0) - static_cast<U>(q)) : q;
}

/* int4mod and its kin: the sign of the dividend; anything % -1 is 0. */
template <Type T>
GPUVM_HD reg_t<T> int_rem(reg_t<T> a, reg_t<T> b, uint32_t *err)
{
	using V = reg_t<T>;
	*err |= b == 0 ? ERR_DIVISION_BY_ZERO : 0u;
	return b == 0 || b == -1 ? static_cast<V>(0) : static_cast<V>(a % b);
}

template <Type T>
GPUVM_HD reg_t<T> int_neg(reg_t<T> a, uint32_t *err)
{
	using V = reg_t<T>;
	using U = std::make_unsigned_t<V>;
	*err |= a == int_min<T>() ? ERR_INT_OVERFLOW : 0u;
	return static_cast<V>(static_cast<U>(0) - static_cast<U>(a));
}

template <Type T>
GPUVM_HD reg_t<T> int_abs(reg_t<T> a, uint32_t *err)
{
	return a < 0 ? int_neg<T>(a, err) : a;
}

/*
 * Floats (utils/float.h: float8_pl and its kin): overflow when the result is
 * infinite and no operand was, underflow when a product or quotient is zero and
 * no operand explains it.
 */
template <typename F>
GPUVM_HD F float_add(F a, F b, uint32_t *err)
{
	F r = a + b;
	*err |= is_inf(r) && !is_inf(a) && !is_inf(b) ? ERR_FLOAT_OVERFLOW : 0u;
	return r;
}

template <typename F>
GPUVM_HD F float_sub(F a, F b, uint32_t *err)
{
	F r = a - b;
	*err |= is_inf(r) && !is_inf(a) && !is_inf(b) ? ERR_FLOAT_OVERFLOW : 0u;
	return r;
}

template <typename F>
GPUVM_HD F float_mul(F a, F b, uint32_t *err)
{
	F r = a * b;
	*err |= (is_inf(r) && !is_inf(a) && !is_inf(b) ? ERR_FLOAT_OVERFLOW : 0u)
		| (r == 0 && a != 0 && b != 0 ? ERR_FLOAT_UNDERFLOW : 0u);
	return r;
}

template <typename F>
GPUVM_HD F float_div(F a, F b, uint32_t *err)
{
	F r = a / b;
	*err |= (b == 0 && !is_nan(a) ? ERR_DIVISION_BY_ZERO : 0u)
		| (is_inf(r) && !is_inf(a) ? ERR_FLOAT_OVERFLOW : 0u)
		| (r == 0 && a != 0 && !is_inf(b) ? ERR_FLOAT_UNDERFLOW : 0u);
	return r;
}

/* -- the opcodes ----------------------------------------------------------- */

template <Type T>
GPUVM_HD reg_t<T> Add(reg_t<T> a, reg_t<T> b, uint32_t *err)
{
	if constexpr (type_is_float(T)) return float_add(a, b, err); else return int_add<T>(a, b, err);
}

template <Type T>
GPUVM_HD reg_t<T> Sub(reg_t<T> a, reg_t<T> b, uint32_t *err)
{
	if constexpr (type_is_float(T)) return float_sub(a, b, err); else return int_sub<T>(a, b, err);
}

template <Type T>
GPUVM_HD reg_t<T> Mul(reg_t<T> a, reg_t<T> b, uint32_t *err)
{
	if constexpr (type_is_float(T)) return float_mul(a, b, err); else return int_mul<T>(a, b, err);
}

template <Type T>
GPUVM_HD reg_t<T> Div(reg_t<T> a, reg_t<T> b, uint32_t *err)
{
	if constexpr (type_is_float(T)) return float_div(a, b, err); else return int_div<T>(a, b, err);
}

template <Type T> GPUVM_HD reg_t<T> Remainder(reg_t<T> a, reg_t<T> b, uint32_t *err) { return int_rem<T>(a, b, err); }

template <Type T>
GPUVM_HD reg_t<T> Neg(reg_t<T> a, uint32_t *err)
{
	if constexpr (type_is_float(T)) return -a; else return int_neg<T>(a, err);
}

template <Type T>
GPUVM_HD reg_t<T> Abs(reg_t<T> a, uint32_t *err)
{
	if constexpr (T == Type::F32) return fabsf(a);
	else if constexpr (T == Type::F64) return fabs(a);
	else return int_abs<T>(a, err);
}

template <Type T> GPUVM_HD reg_t<T> BitAnd(reg_t<T> a, reg_t<T> b, uint32_t *) { return a & b; }
template <Type T> GPUVM_HD reg_t<T> BitOr(reg_t<T> a, reg_t<T> b, uint32_t *) { return a | b; }
template <Type T> GPUVM_HD reg_t<T> BitXor(reg_t<T> a, reg_t<T> b, uint32_t *) { return a ^ b; }
template <Type T> GPUVM_HD reg_t<T> BitNot(reg_t<T> a, uint32_t *) { return ~a; }

/* int2shl and its kin: C's shift on the machine's own terms, the count modulo the operand's width. */
template <Type T>
GPUVM_HD reg_t<T> ShiftLeft(reg_t<T> a, int32_t n, uint32_t *)
{
	using V = reg_t<T>;
	using U = std::make_unsigned_t<V>;
	V r = static_cast<V>(static_cast<U>(a) << (n & (sizeof(V) * 8 - 1)));
	return T == Type::I16 ? static_cast<V>(static_cast<int16_t>(r)) : r;
}

template <Type T>
GPUVM_HD reg_t<T> ShiftRight(reg_t<T> a, int32_t n, uint32_t *)
{
	return a >> (n & (sizeof(reg_t<T>) * 8 - 1));
}

/* -- floats: what IEEE rounds once, or not at all (dsqrt, dceil, dfloor, dtrunc, dround, dsign) -- */

template <Type T> GPUVM_HD double Sqrt(double a, uint32_t *err)
{
	*err |= a < 0 ? ERR_FLOAT_DOMAIN : 0u;
	return sqrt(a < 0 ? 0.0 : a);
}
template <Type T> GPUVM_HD double Ceil(double a, uint32_t *) { return ceil(a); }
template <Type T> GPUVM_HD double Floor(double a, uint32_t *) { return floor(a); }
template <Type T> GPUVM_HD double Trunc(double a, uint32_t *) { return trunc(a); }
template <Type T> GPUVM_HD double Round(double a, uint32_t *) { return rint(a); }
template <Type T> GPUVM_HD double Sign(double a, uint32_t *) { return a > 0 ? 1.0 : a < 0 ? -1.0 : 0.0; }
/* a * b - float_mul(a, b), exact where it is no denormal. */
template <Type T> GPUVM_HD double MulRest(double a, double b, uint32_t *) { return fma(a, b, -(a * b)); }

/* -- comparison: -1, 0, 1 with NaN equal to NaN and above all (float8_cmp_internal) -- */

template <Type T> GPUVM_HD bool Eq(reg_t<T> a, reg_t<T> b)
{
	if constexpr (type_is_float(T)) return (a == b) | (is_nan(a) & is_nan(b)); else return a == b;
}
template <Type T> GPUVM_HD bool Lt(reg_t<T> a, reg_t<T> b)
{
	if constexpr (type_is_float(T)) return (!is_nan(a)) & (is_nan(b) | (a < b)); else return a < b;
}
template <Type T> GPUVM_HD bool Ne(reg_t<T> a, reg_t<T> b) { return !Eq<T>(a, b); }
template <Type T> GPUVM_HD bool Gt(reg_t<T> a, reg_t<T> b) { return Lt<T>(b, a); }
template <Type T> GPUVM_HD bool Le(reg_t<T> a, reg_t<T> b) { return !Lt<T>(b, a); }
template <Type T> GPUVM_HD bool Ge(reg_t<T> a, reg_t<T> b) { return !Lt<T>(a, b); }

/* -- dates (date.c, timestamp.c) ------------------------------------------------- */

constexpr int32_t DATE_NOBEGIN = INT32_MIN;
constexpr int32_t DATE_NOEND = INT32_MAX;
constexpr int64_t TS_NOBEGIN = INT64_MIN;
constexpr int64_t TS_NOEND = INT64_MAX;
constexpr int64_t US_PER_DAY = 86400000000LL;
/* IS_VALID_DATE: Julian day 0 up to 5874898-01-01, relative to 2000-01-01. */
constexpr int32_t DATE_MIN = -2451545;
constexpr int32_t DATE_LIMIT = 2147483494 - 2451545;
/* TIMESTAMP_END_JULIAN - POSTGRES_EPOCH_JDATE: the first day that a timestamp cannot express. */
constexpr int32_t TS_LIMIT_DAYS = 109203528 - 2451545;
constexpr int64_t TS_MIN = -211813488000000000LL;	/* MIN_TIMESTAMP */
constexpr int64_t TS_LIMIT = 9223371331200000000LL;	/* END_TIMESTAMP */

GPUVM_HD bool date_infinite(int32_t d) { return d == DATE_NOBEGIN || d == DATE_NOEND; }

/* date_pli: infinities stay; the sum must be a valid date. */
template <Type T = Type::I32>
GPUVM_HD int32_t DateAdd(int32_t d, int32_t n, uint32_t *err)
{
	int32_t r = static_cast<int32_t>(static_cast<uint32_t>(d) + static_cast<uint32_t>(n));
	bool inf = date_infinite(d);
	bool bad = (n >= 0 ? r < d : r > d) || r < DATE_MIN || r >= DATE_LIMIT;
	*err |= bad && !inf ? ERR_DATETIME_RANGE : 0u;
	return inf ? d : r;
}

/* date_mii */
template <Type T = Type::I32>
GPUVM_HD int32_t DateSub(int32_t d, int32_t n, uint32_t *err)
{
	int32_t r = static_cast<int32_t>(static_cast<uint32_t>(d) - static_cast<uint32_t>(n));
	bool inf = date_infinite(d);
	bool bad = (n >= 0 ? r > d : r < d) || r < DATE_MIN || r >= DATE_LIMIT;
	*err |= bad && !inf ? ERR_DATETIME_RANGE : 0u;
	return inf ? d : r;
}

/* date_mi: infinite dates raise. */
template <Type T = Type::I32>
GPUVM_HD int32_t DateDiff(int32_t a, int32_t b, uint32_t *err)
{
	*err |= date_infinite(a) || date_infinite(b) ? ERR_DATETIME_RANGE : 0u;
	return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}

/* date2timestamp: a date past the timestamp range raises. */
GPUVM_HD int64_t DateToTimestamp(int32_t d, uint32_t *err)
{
	*err |= d >= TS_LIMIT_DAYS && d != DATE_NOEND ? ERR_DATETIME_RANGE : 0u;
	int64_t r = static_cast<int64_t>(static_cast<uint64_t>(static_cast<int64_t>(d)) * static_cast<uint64_t>(US_PER_DAY));
	return d == DATE_NOBEGIN ? TS_NOBEGIN : d == DATE_NOEND ? TS_NOEND : r;
}

/* date_cmp_timestamp_internal: such a date is above every finite timestamp and below infinity. */
GPUVM_HD int64_t DateToTimestampSat(int32_t d, uint32_t *)
{
	uint32_t	ignored = 0;

	return d >= TS_LIMIT_DAYS && d != DATE_NOEND ? TS_NOEND - 1 : DateToTimestamp(d, &ignored);
}

/* timestamp_date: the day that the timestamp falls in; infinities stay. */
GPUVM_HD int32_t TimestampToDate(int64_t ts, uint32_t *)
{
	int64_t q = ts / US_PER_DAY;
	q -= (ts % US_PER_DAY) < 0 ? 1 : 0;
	return ts == TS_NOBEGIN ? DATE_NOBEGIN : ts == TS_NOEND ? DATE_NOEND : static_cast<int32_t>(q);
}

/* -- timestamps' parts (timestamp.c, datetime.c) --------------------------------- */

constexpr int32_t EPOCH_JULIAN = 2451545;	/* POSTGRES_EPOCH_JDATE */
constexpr int64_t US_UNIX_TO_POSTGRES = 946684800000000LL;	/* - SetEpochTimestamp() */

GPUVM_HD bool ts_infinite(int64_t ts) { return ts == TS_NOBEGIN || ts == TS_NOEND; }
GPUVM_HD bool ts_valid(int64_t ts) { return ts >= TS_MIN && ts < TS_LIMIT; }

/* The day that a timestamp falls in, from 2000-01-01. */
GPUVM_HD int32_t ts_day(int64_t ts)
{
	int64_t q = ts / US_PER_DAY;
	return static_cast<int32_t>(q - (ts % US_PER_DAY < 0 ? 1 : 0));
}

/* A day of the proleptic Gregorian calendar; year 0 is 1 BC. */
struct Civil
{
	int32_t		year, month, day;
};

/* j2date; days without a timestamp give anything */
GPUVM_HD Civil civil_of_day(int32_t d)
{
	uint32_t j = static_cast<uint32_t>(d) + static_cast<uint32_t>(EPOCH_JULIAN + 32044);
	uint32_t cycle = j / 146097u;
	uint32_t centuries = ((j - cycle * 146097u) * 4u + 3u) / 146097u;

	j += 60u + cycle * 3u + centuries;

	uint32_t leap = j / 1461u;

	j -= leap * 1461u;

	uint32_t y = j * 4u / 1461u;
	/* from 1 March */
	uint32_t in_year = (y != 0 ? (j + 305u) % 365u : (j + 306u) % 366u) + 123u;
	uint32_t month = in_year * 2141u / 65536u;
	Civil	c;

	c.year = static_cast<int32_t>(y + leap * 4u) - 4800;
	c.month = static_cast<int32_t>((month + 10u) % 12u) + 1;
	c.day = static_cast<int32_t>(in_year - 7834u * month / 256u);
	return c;
}

/* date2j, from 2000-01-01; exact for years from -4799 on, and no day of any year before comes to be later than those */
GPUVM_HD int32_t day_of_civil(int32_t year, int32_t month, int32_t day)
{
	int32_t m = month > 2 ? month + 1 : month + 13;
	int32_t y = month > 2 ? year + 4800 : year + 4799;
	int32_t century = y / 100;

	return y * 365 - 32167 + y / 4 - century + century / 4 + 7834 * m / 256 + day - EPOCH_JULIAN;
}

/* isleap, day_tab */
GPUVM_HD int32_t days_in_month(int32_t year, int32_t month)
{
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	return month == 2 ? (leap ? 29 : 28) : 30 + ((month + (month >> 3)) & 1);
}

/* Days since Monday. */
GPUVM_HD int32_t day_of_week(int32_t d)
{
	return static_cast<int32_t>((static_cast<uint32_t>(d) + static_cast<uint32_t>(EPOCH_JULIAN)) % 7u);
}

/* extract_date: how years are counted by tens, hundreds and thousands; n - 1 of the first unit's years are counted back */
GPUVM_HD int32_t year_unit(int32_t year, int32_t n)
{
	return year > 0 ? (year + n - 1) / n : -((n - 1 - (year - 1)) / n);
}
GPUVM_HD int32_t decade_of(int32_t year) { return year >= 0 ? year / 10 : -((8 - (year - 1)) / 10); }

/* Is the field the time of day's? */
GPUVM_HD constexpr bool field_of_time(DateField field) { return field < DateField::Day; }

/* timestamp_part_common, of a day; Epoch and the parts of its time are not among them */
GPUVM_HD int32_t part_of_day(int32_t day, DateField field)
{
	switch (field)
	{
		case DateField::Dow: return (day_of_week(day) + 1) % 7;
		case DateField::IsoDow: return day_of_week(day) + 1;
		case DateField::Julian: return static_cast<int32_t>(static_cast<uint32_t>(day) + static_cast<uint32_t>(EPOCH_JULIAN));
		default: break;
	}

	/* date2isoweek, date2isoyear: a week belongs to the year of its Thursday */
	const bool	weeks = field == DateField::Week || field == DateField::IsoYear;
	const int32_t of = weeks ? day - day_of_week(day) + 3 : day;
	const Civil c = civil_of_day(of);

	switch (field)
	{
		case DateField::Day: return c.day;
		case DateField::Month: return c.month;
		case DateField::Quarter: return (c.month - 1) / 3 + 1;
		case DateField::Year:
		case DateField::IsoYear: return c.year > 0 ? c.year : c.year - 1;
		case DateField::Decade: return decade_of(c.year);
		case DateField::Century: return year_unit(c.year, 100);
		case DateField::Millennium: return year_unit(c.year, 1000);
		case DateField::Week: return (of - day_of_civil(c.year, 1, 1)) / 7 + 1;
		case DateField::Doy: return of - day_of_civil(c.year, 1, 1) + 1;
		default: return 0;
	}
}

/* timestamp_trunc: the first day of what the day is in */
GPUVM_HD int32_t trunc_day(int32_t day, DateField field)
{
	if (field == DateField::Day)
		return day;
	if (field == DateField::Week)
		return day - day_of_week(day);

	Civil		c = civil_of_day(day);

	if (field == DateField::Millennium)
		c.year = c.year > 0 ? year_unit(c.year, 1000) * 1000 - 999 : year_unit(c.year, 1000) * 1000 + 1;
	else if (field == DateField::Century)
		c.year = c.year > 0 ? year_unit(c.year, 100) * 100 - 99 : year_unit(c.year, 100) * 100 + 1;
	else if (field == DateField::Decade)
		c.year = decade_of(c.year) * 10;
	c.month = field == DateField::Month ? c.month : field == DateField::Quarter ? (c.month - 1) / 3 * 3 + 1 : 1;
	return day_of_civil(c.year, c.month, 1);
}

/* timestamp_part_common. Infinities give null or infinity there: an error here. */
GPUVM_HD int64_t DatePart(int64_t ts, DateField field, uint32_t *err)
{
	*err |= ts_valid(ts) ? 0u : ERR_DATETIME_RANGE;
	if (field == DateField::Epoch)
	{
		*err |= ts > INT64_MAX - US_UNIX_TO_POSTGRES ? ERR_DATETIME_RANGE : 0u;
		return static_cast<int64_t>(static_cast<uint64_t>(ts) + static_cast<uint64_t>(US_UNIX_TO_POSTGRES));
	}

	const int32_t day = ts_day(ts);

	if (!field_of_time(field))
		return part_of_day(day, field);

	const int64_t time = static_cast<int64_t>(static_cast<uint64_t>(ts) - static_cast<uint64_t>(day) * static_cast<uint64_t>(US_PER_DAY));

	switch (field)
	{
		case DateField::Microsecond: return time % 60000000;
		case DateField::Second: return time / 1000000 % 60;
		case DateField::Minute: return time / 60000000 % 60;
		default: return time / 3600000000LL;
	}
}

/* What DateTrunc leaves whole of the time of day. */
GPUVM_HD constexpr int64_t unit_of_time(DateField field)
{
	return field == DateField::Hour ? 3600000000LL : field == DateField::Minute ? 60000000 : field == DateField::Second ? 1000000
		: field == DateField::Millisecond ? 1000 : 1;
}

/* timestamp_trunc. Infinities stay; what begins before the first timestamp raises. */
GPUVM_HD int64_t DateTrunc(int64_t ts, DateField field, uint32_t *err)
{
	const int32_t day = ts_day(ts);
	int64_t		r;

	if (field_of_time(field))
	{
		const uint64_t midnight = static_cast<uint64_t>(day) * static_cast<uint64_t>(US_PER_DAY);

		r = ts - static_cast<int64_t>(static_cast<uint64_t>(ts) - midnight) % unit_of_time(field);
	}
	else
		r = static_cast<int64_t>(static_cast<uint64_t>(trunc_day(day, field)) * static_cast<uint64_t>(US_PER_DAY));
	*err |= (ts_valid(ts) && ts_valid(r)) || ts_infinite(ts) ? 0u : ERR_DATETIME_RANGE;
	return ts_infinite(ts) ? ts : r;
}

/*
 * timestamp_pl_interval, part by part: infinities stay; what the last of them
 * gives must be a timestamp, as what each gives must be.
 */
template <Type T = Type::I64>
GPUVM_HD int64_t TimestampAddMonths(int64_t ts, int32_t n, uint32_t *err)
{
	const int32_t day = ts_day(ts);
	const Civil c = civil_of_day(day);
	const int64_t months = static_cast<int64_t>(c.year) * 12 + c.month - 1 + n;
	const bool	far = months < -4713 * 12 || months >= 294277LL * 12;
	const int32_t sane = far ? 0 : static_cast<int32_t>(months) + 4800 * 12;
	const int32_t year = sane / 12 - 4800, month = sane % 12 + 1;
	const int32_t most = days_in_month(year, month);
	const int32_t to = day_of_civil(year, month, c.day < most ? c.day : most);
	const int64_t r = static_cast<int64_t>(static_cast<uint64_t>(ts)
										   + (static_cast<uint64_t>(to) - static_cast<uint64_t>(day)) * static_cast<uint64_t>(US_PER_DAY));

	*err |= ts_infinite(ts) || (!far && ts_valid(ts) && ts_valid(r)) ? 0u : ERR_DATETIME_RANGE;
	return ts_infinite(ts) ? ts : r;
}

template <Type T = Type::I64>
GPUVM_HD int64_t TimestampAddDays(int64_t ts, int32_t n, uint32_t *err)
{
	const int64_t day = static_cast<int64_t>(ts_day(ts)) + n;
	const bool	good = day >= DATE_MIN && day < TS_LIMIT_DAYS;
	const int64_t r = static_cast<int64_t>(static_cast<uint64_t>(ts) + static_cast<uint64_t>(n) * static_cast<uint64_t>(US_PER_DAY));

	*err |= ts_infinite(ts) || (good && ts_valid(ts) && ts_valid(r)) ? 0u : ERR_DATETIME_RANGE;
	return ts_infinite(ts) ? ts : r;
}

template <Type T = Type::I64>
GPUVM_HD int64_t TimestampAddMicros(int64_t ts, int64_t n, uint32_t *err)
{
	const int64_t r = static_cast<int64_t>(static_cast<uint64_t>(ts) + static_cast<uint64_t>(n));
	const bool	wrapped = ((ts ^ r) & (n ^ r)) < 0;

	*err |= ts_infinite(ts) || (!wrapped && ts_valid(r)) ? 0u : ERR_DATETIME_RANGE;
	return ts_infinite(ts) ? ts : r;
}

/* time_pl_interval */
template <Type T = Type::I64>
GPUVM_HD int64_t TimeAddMicros(int64_t time, int64_t n, uint32_t *)
{
	const int64_t r = static_cast<int64_t>(static_cast<uint64_t>(time) + static_cast<uint64_t>(n)) % US_PER_DAY;
	return r < 0 ? r + US_PER_DAY : r;
}

/*
 * timestamp2tm with a zone, and DetermineTimeZoneOffset: a timestamp and what is to be added to it, of
 * the table's times the last that is not after it. Infinities stay; where the table has nothing to say, PostgreSQL has.
 */
GPUVM_HD int64_t ZoneShift(int64_t ts, const ZoneTable &table, uint32_t *err)
{
	const int64_t shift = table.shift[zone_entry(table, ts)];
	const int64_t r = static_cast<int64_t>(static_cast<uint64_t>(ts) + static_cast<uint64_t>(shift));

	*err |= ts_infinite(ts) || (shift != ZONE_UNKNOWN && ts >= table.from[0] && ts_valid(ts) && ts_valid(r)) ? 0u : ERR_DATETIME_RANGE;
	return ts_infinite(ts) ? ts : r;
}

/* -- scaled numerics (numeric.c: round_var, floor_var, apply_typmod) --------------- */

/* round_var: halves away from zero */
template <Type T = Type::I64>
GPUVM_HD int64_t DivRound(int64_t a, int64_t b, uint32_t *err)
{
	const int64_t q = int_div<Type::I64>(a, b, err);
	const int64_t rest = int_rem<Type::I64>(a, b, err);
	const uint64_t magnitude = b < 0 ? static_cast<uint64_t>(0) - static_cast<uint64_t>(b) : static_cast<uint64_t>(b);
	const uint64_t half = rest < 0 ? static_cast<uint64_t>(0) - static_cast<uint64_t>(rest) : static_cast<uint64_t>(rest);
	const bool	up = half != 0 && half >= magnitude - half;

	return up ? ((a < 0) != (b < 0) ? q - 1 : q + 1) : q;
}

/* floor_var */
template <Type T = Type::I64>
GPUVM_HD int64_t DivFloor(int64_t a, int64_t b, uint32_t *err)
{
	const int64_t q = int_div<Type::I64>(a, b, err);
	const int64_t rest = int_rem<Type::I64>(a, b, err);

	return rest != 0 && (rest < 0) != (b < 0) ? q - 1 : q;
}

/* apply_typmod: the digits that numeric(p,s) has room for */
template <Type T = Type::I64>
GPUVM_HD int64_t Bound(int64_t a, int64_t bound, uint32_t *err)
{
	const uint64_t magnitude = a < 0 ? static_cast<uint64_t>(0) - static_cast<uint64_t>(a) : static_cast<uint64_t>(a);

	*err |= bound > 0 && magnitude < static_cast<uint64_t>(bound) ? 0u : ERR_CAST_RANGE;
	return a;
}

/* -- casts (int.c, int8.c, float.c) ------------------------------------------------ */

/*
 * Float to integer: dtoi4 and its kin round to nearest even first, then check
 * the range; NaN fails. Integer to float rounds to nearest even. float8 to
 * float4 (dtof) raises when a finite value becomes infinite or a non-zero zero.
 */
template <Type To, Type From>
GPUVM_HD reg_t<To> Cast(reg_t<From> v, uint32_t *err)
{
	if constexpr (To == From)
		return v;
	else if constexpr (To == Type::Bool)
		return v != 0;
	else if constexpr (type_is_float(To))
	{
		reg_t<To> r = static_cast<reg_t<To>>(v);
		if constexpr (To == Type::F32 && From == Type::F64)
			*err |= (is_inf(r) && !is_inf(v) ? ERR_FLOAT_OVERFLOW : 0u) | (r == 0 && v != 0 ? ERR_FLOAT_UNDERFLOW : 0u);
		return r;
	}
	else if constexpr (type_is_float(From))
	{
		reg_t<From> n;
		if constexpr (From == Type::F32) n = rintf(v); else n = rint(v);
		constexpr double lo = To == Type::I16 ? -32768.0 : To == Type::I32 ? -2147483648.0 : -9223372036854775808.0;
		bool ok = n >= static_cast<reg_t<From>>(lo) && n < static_cast<reg_t<From>>(-lo);
		*err |= ok ? 0u : ERR_CAST_RANGE;
		return static_cast<reg_t<To>>(ok ? n : 0);
	}
	else
	{
		int64_t w = static_cast<int64_t>(v);
		if constexpr (To == Type::I16) *err |= w != static_cast<int16_t>(w) ? ERR_CAST_RANGE : 0u;
		if constexpr (To == Type::I32) *err |= w != static_cast<int32_t>(w) ? ERR_CAST_RANGE : 0u;
		return static_cast<reg_t<To>>(w);
	}
}

}  // namespace sem
}  // namespace gpuvm

#endif
