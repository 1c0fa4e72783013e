/* value_range.cc: see value_range.h. */
#include "vm/value_range.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/bits.h"
#include "tablet/format.h"
#include "vm/code_map.h"
#include "vm/float_sum.h"
#include "vm/semantics.h"

namespace gpuvm {

namespace {

constexpr double INFINITE = std::numeric_limits<double>::infinity();

int64_t
type_min(Type t)
{
	return t == Type::I16 ? INT16_MIN : t == Type::I32 ? INT32_MIN : t == Type::Bool ? 0 : INT64_MIN;
}

int64_t
type_max(Type t)
{
	return t == Type::I16 ? INT16_MAX : t == Type::I32 ? INT32_MAX : t == Type::Bool ? 1 : INT64_MAX;
}

int
type_exp_lo(Type t)
{
	return t == Type::F32 ? -149 : -1074;
}

int
type_exp_hi(Type t)
{
	return t == Type::F32 ? 128 : 1024;
}

/* Any value of the type. */
ValueRange
full_range(Type t)
{
	ValueRange	r = {};

	r.type = t;
	r.may_null = r.may_value = true;
	r.may_true = r.may_false = true;
	r.may_nan = r.may_inf = type_is_float(t);
	r.exp_lo = type_exp_lo(t);
	r.exp_hi = type_exp_hi(t);
	r.lo = type_min(t);
	r.hi = type_max(t);
	r.flo = -INFINITE;
	r.fhi = INFINITE;
	return r;
}

ValueRange
null_range(Type t)
{
	ValueRange	r = full_range(t);

	r.may_value = r.may_true = r.may_false = r.may_nan = r.may_inf = false;
	r.lo = r.hi = 0;
	r.flo = r.fhi = 0;
	r.exp_lo = r.exp_hi = type_exp_lo(t);
	return r;
}

/* Brings exponents into what the type has. */
void
clamp_exps(ValueRange *r)
{
	r->exp_lo = std::clamp(r->exp_lo, type_exp_lo(r->type), type_exp_hi(r->type));
	r->exp_hi = std::clamp(r->exp_hi, r->exp_lo, type_exp_hi(r->type));
}

ValueRange
float_constant(Type t, double v)
{
	ValueRange	r = full_range(t);

	r.may_null = false;
	r.may_nan = v != v;
	r.may_inf = v == INFINITE || v == -INFINITE;
	r.flo = r.fhi = r.may_nan || r.may_inf ? 0 : v;
	r.exp_lo = r.exp_hi = type_exp_lo(t);
	if (r.flo != 0)
	{
		int			e;
		int64_t		m = float_sum_split(v, &e);

		r.exp_lo = e + __builtin_ctzll(static_cast<uint64_t>(m));
		r.exp_hi = float_sum_exp(v) - 2048;
		clamp_exps(&r);
	}
	return r;
}

ValueRange
int_constant(Type t, int64_t v)
{
	ValueRange	r = full_range(t);

	r.may_null = false;
	r.lo = r.hi = v;
	r.may_true = v != 0;
	r.may_false = v == 0;
	return r;
}

template <typename Stats>
ValueRange
stats_range(const Stats &c)
{
	ValueRange	r = full_range(c.type);

	if (c.flags & CHUNK_ALL_NULL)
		return null_range(c.type);
	r.may_null = c.null_count > 0 || (c.flags & CHUNK_HAS_NULLS);
	if (type_is_float(c.type))
	{
		r.may_nan = c.flags & CHUNK_HAS_NAN;
		r.may_inf = c.flags & CHUNK_HAS_INF;
		r.exp_lo = c.exp_lo;
		r.exp_hi = c.exp_hi;
		memcpy(&r.flo, &c.min, sizeof(double));
		memcpy(&r.fhi, &c.max, sizeof(double));
		if (!(r.flo <= r.fhi))
			r.flo = r.fhi = 0;
		if (c.exp_lo > c.exp_hi)
			r.exp_lo = r.exp_hi = type_exp_lo(c.type);
		clamp_exps(&r);
	}
	else if (c.min <= c.max)
	{
		r.lo = c.min;
		r.hi = c.max;
		r.may_true = c.max != 0;
		r.may_false = c.min == 0;
	}
	return r;
}

/* [lo, hi] computed exactly: clamped to the type, with the error if that cut something off. */
uint32_t
set_interval(ValueRange *r, int128 lo, int128 hi, uint32_t error)
{
	const int128 least = type_min(r->type), most = type_max(r->type);
	const bool	cut = lo < least || hi > most;

	r->lo = static_cast<int64_t>(std::clamp(lo, least, most));
	r->hi = static_cast<int64_t>(std::clamp(hi, least, most));
	return cut ? error : 0;
}

/* ---- dates and timestamps: infinities are the ends of a range, and not checked to be the only values out there ---- */

bool
may_be_no_timestamp(const ValueRange &a)
{
	return a.lo < sem::TS_MIN || a.hi >= sem::TS_LIMIT;
}

/* Of what may be a timestamp. */
int64_t
finite_timestamp(int64_t ts)
{
	return std::clamp(ts, sem::TS_MIN, sem::TS_LIMIT - 1);
}

/* What is not flagged: timestamps, and infinities where they stay. */
void
set_timestamps(ValueRange *r, const ValueRange &a, int64_t lo, int64_t hi)
{
	r->lo = a.lo == sem::TS_NOBEGIN ? a.lo : lo;
	r->hi = a.hi == sem::TS_NOEND ? a.hi : hi;
}

/* The sum follows both of its operands, but for the time of day where days are cut at a month's end. */
uint32_t
timestamp_sum(Opcode opcode, const ValueRange &a, const ValueRange &b, ValueRange *r)
{
	uint32_t	errors = 0;
	auto		add = [&](int64_t ts, int64_t n) {
		switch (opcode)
		{
			case Opcode::TimestampAddMonths: return sem::TimestampAddMonths(ts, static_cast<int32_t>(n), &errors);
			case Opcode::TimestampAddDays: return sem::TimestampAddDays(ts, static_cast<int32_t>(n), &errors);
			default: return sem::TimestampAddMicros(ts, n, &errors);
		}
	};
	int64_t		lo = add(finite_timestamp(a.lo), b.lo), hi = add(finite_timestamp(a.hi), b.hi);

	if (errors != 0)
	{
		set_timestamps(r, a, sem::TS_MIN, sem::TS_LIMIT - 1);
		return ERR_DATETIME_RANGE;
	}
	if (opcode == Opcode::TimestampAddMonths)
	{
		lo = sem::DateTrunc(lo, DateField::Day, &errors);
		hi = sem::DateTrunc(hi, DateField::Day, &errors) + (sem::US_PER_DAY - 1);
	}
	set_timestamps(r, a, lo, hi);
	return may_be_no_timestamp(a) ? uint32_t(ERR_DATETIME_RANGE) : 0;
}

uint32_t
date_part_range(DateField field, const ValueRange &a, ValueRange *r)
{
	const int64_t from = finite_timestamp(a.lo), to = finite_timestamp(a.hi);
	uint32_t	errors = 0;
	auto		set = [r](int64_t lo, int64_t hi) {
		r->lo = lo;
		r->hi = hi;
	};
	auto		part = [&](int64_t ts) { return sem::DatePart(ts, field, &errors); };

	switch (field)
	{
		case DateField::Microsecond: set(0, 59999999); break;
		case DateField::Second: case DateField::Minute: set(0, 59); break;
		case DateField::Hour: set(0, 23); break;
		case DateField::Day: set(1, 31); break;
		case DateField::Week: set(1, 53); break;
		case DateField::Dow: set(0, 6); break;
		case DateField::IsoDow: set(1, 7); break;
		case DateField::Doy: set(1, 366); break;
		case DateField::Month:
		case DateField::Quarter:
			if (sem::DatePart(from, DateField::Year, &errors) == sem::DatePart(to, DateField::Year, &errors))
				set(part(from), part(to));
			else
				set(1, field == DateField::Month ? 12 : 4);
			break;
		case DateField::Epoch:
			set(part(from), part(to));
			if (errors != 0)
				r->hi = INT64_MAX;
			break;
		default:
			set(part(from), part(to));
			break;
	}
	return errors | (may_be_no_timestamp(a) ? uint32_t(ERR_DATETIME_RANGE) : 0);
}

uint32_t
field_range(const Op &op, const ValueRange &a, ValueRange *r)
{
	const DateField field = static_cast<DateField>(op.p3);
	uint32_t	errors = 0;

	if (!a.may_value)
	{
		*r = null_range(op.type);
		return 0;
	}
	*r = full_range(op.type);
	r->may_null = a.may_null;
	if (op.opcode == Opcode::DatePart)
		return date_part_range(field, a, r);

	const int64_t lo = sem::DateTrunc(finite_timestamp(a.lo), field, &errors);

	set_timestamps(r, a, errors != 0 ? sem::TS_MIN : lo, sem::DateTrunc(finite_timestamp(a.hi), field, &errors));
	return errors | (may_be_no_timestamp(a) ? uint32_t(ERR_DATETIME_RANGE) : 0);
}

uint32_t
zone_range(const CodeMap *map, const ValueRange &a, ValueRange *r)
{
	*r = full_range(Type::I64);
	r->may_null = a.may_null;
	if (!a.may_value)
	{
		*r = null_range(Type::I64);
		return 0;
	}
	if (!map)
	{
		set_timestamps(r, a, sem::TS_MIN, sem::TS_LIMIT - 1);
		return ERR_DATETIME_RANGE;
	}

	const ZoneTable table = zone_part(*map, finite_timestamp(a.lo), finite_timestamp(a.hi));
	uint32_t	errors = finite_timestamp(a.lo) < table.from[0] || may_be_no_timestamp(a) ? uint32_t(ERR_DATETIME_RANGE) : 0;
	int64_t		least = ZONE_MAX_SHIFT, most = -ZONE_MAX_SHIFT;

	for (uint32_t i = 0; i < table.n; i++)
	{
		if (table.shift[i] == ZONE_UNKNOWN)
		{
			errors |= ERR_DATETIME_RANGE;
			continue;
		}
		least = std::min(least, table.shift[i]);
		most = std::max(most, table.shift[i]);
	}

	const int64_t lo = finite_timestamp(a.lo) + least, hi = finite_timestamp(a.hi) + most;

	set_timestamps(r, a, finite_timestamp(lo), std::max(finite_timestamp(lo), finite_timestamp(hi)));
	return errors | (lo < sem::TS_MIN || hi >= sem::TS_LIMIT ? uint32_t(ERR_DATETIME_RANGE) : 0);
}

/* Dates as timestamps and back. */
uint32_t
date_cast_range(Opcode opcode, const ValueRange &a, ValueRange *r)
{
	uint32_t	errors = 0;

	if (opcode == Opcode::TimestampToDate)
	{
		r->lo = sem::TimestampToDate(a.lo, &errors);
		r->hi = sem::TimestampToDate(a.hi, &errors);
		return 0;
	}
	/* what is no date wraps */
	if (a.lo >= sem::DATE_MIN)
	{
		r->lo = sem::DateToTimestampSat(static_cast<int32_t>(a.lo), &errors);
		r->hi = sem::DateToTimestampSat(static_cast<int32_t>(a.hi), &errors);
	}
	return opcode == Opcode::DateToTimestamp && a.hi >= sem::TS_LIMIT_DAYS ? uint32_t(ERR_DATETIME_RANGE) : 0;
}

/* ---- maps ---- */

void
unite(ValueRange *r, const ValueRange &a, const ValueRange &b)
{
	const ValueRange *only = !a.may_value ? &b : !b.may_value ? &a : nullptr;

	if (only)
	{
		bool		may_null = r->may_null;

		*r = *only;
		r->may_null = may_null;
		return;
	}
	r->may_value = true;
	r->may_true = a.may_true || b.may_true;
	r->may_false = a.may_false || b.may_false;
	r->may_nan = a.may_nan || b.may_nan;
	r->may_inf = a.may_inf || b.may_inf;
	r->exp_lo = std::min(a.exp_lo, b.exp_lo);
	r->exp_hi = std::max(a.exp_hi, b.exp_hi);
	r->lo = std::min(a.lo, b.lo);
	r->hi = std::max(a.hi, b.hi);
	r->flo = std::min(a.flo, b.flo);
	r->fhi = std::max(a.fhi, b.fhi);
}

/* Of a map's values of type V. Integers without nulls in a loop that vectorises, for maps may be large. */
template <typename V>
ValueRange
entries_range(const CodeMap &map, uint32_t first, uint32_t end)
{
	const V    *values = static_cast<const V *>(map.values);
	ValueRange	r = null_range(map.type);
	bool		may_null = false;

	if constexpr (std::is_integral_v<V>)
		if (!map.nulls && first < end)
		{
			V			lo = values[first], hi = lo;

			for (uint32_t i = first + 1; i < end; i++)
			{
				lo = values[i] < lo ? values[i] : lo;
				hi = values[i] > hi ? values[i] : hi;
			}
			unite(&r, int_constant(map.type, lo), int_constant(map.type, hi));
			r.may_null = false;
			return r;
		}
	for (uint32_t i = first; i < end; i++)
	{
		const V		v = values[i];
		const ValueRange before = r;

		if (map.nulls && bit_get(map.nulls, i))
			may_null = true;
		else if constexpr (!std::is_integral_v<V>)
			unite(&r, before, float_constant(map.type, static_cast<double>(v)));
		else if (!r.may_value || v < r.lo || v > r.hi)
			unite(&r, before, int_constant(map.type, v));
	}
	r.may_null = may_null;
	return r;
}

constexpr int64_t NARROW_LOOKUP = 4096;	/* so many entries are looked at again where a tablet has no others */

ValueRange
lookup_range(const Op &op, const CodeMap &map, const ValueRange &code)
{
	const int64_t first = std::max<int64_t>(code.lo, 0), last = std::min<int64_t>(code.hi, int64_t(map.nentries) - 1);
	ValueRange	r = null_range(op.type);
	ValueRange	null_entry = r;
	bool		may_null = code.may_value && (code.lo < first || code.hi > last);

	if (code.may_value && first <= last)
	{
		r = last - first + 1 < int64_t(map.nentries) && last - first < NARROW_LOOKUP
			? map_range(map, static_cast<uint32_t>(first), static_cast<uint32_t>(last) + 1) : map.range;
		may_null = may_null || r.may_null;
	}
	if (code.may_null && (op.p5 & LOOKUP_NULL))
	{
		const ValueRange entries = r;

		null_entry = map_range(map, map.nentries, map.nentries + 1);
		unite(&r, entries, null_entry);
		may_null = may_null || null_entry.may_null;
	}
	else
		may_null = may_null || code.may_null;
	r.may_null = may_null;
	return r;
}

uint32_t
int_arithmetic(const Op &op, const ValueRange &a, const ValueRange &b, ValueRange *r)
{
	const int128 al = a.lo, ah = a.hi, bl = b.lo, bh = b.hi;

	switch (op.opcode)
	{
		case Opcode::Add:
			return set_interval(r, al + bl, ah + bh, ERR_INT_OVERFLOW);
		case Opcode::Sub:
			return set_interval(r, al - bh, ah - bl, ERR_INT_OVERFLOW);
		case Opcode::Mul:
			{
				int128		p[4] = {al * bl, al * bh, ah * bl, ah * bh};

				return set_interval(r, *std::min_element(p, p + 4), *std::max_element(p, p + 4), ERR_INT_OVERFLOW);
			}
		case Opcode::Div:
			{
				int128		m = std::max(ah < 0 ? -ah : ah, al < 0 ? -al : al);
				uint32_t	zero = bl <= 0 && bh >= 0 ? uint32_t(ERR_DIVISION_BY_ZERO) : 0;
				uint32_t	over = set_interval(r, al >= 0 && bl >= 0 ? int128(0) : -m, m, ERR_INT_OVERFLOW);

				return zero | (bl <= -1 && bh >= -1 ? over : 0);
			}
		case Opcode::Remainder:
			{
				int128		m = std::max(bh < 0 ? -bh : bh, bl < 0 ? -bl : bl) - 1;

				m = std::max<int128>(m, 0);
				set_interval(r, al < 0 ? -m : int128(0), ah > 0 ? m : int128(0), 0);
				return bl <= 0 && bh >= 0 ? uint32_t(ERR_DIVISION_BY_ZERO) : 0;
			}
		case Opcode::BitAnd:
			if (al >= 0 || bl >= 0)
				set_interval(r, 0, al < 0 ? bh : bl < 0 ? ah : std::min(ah, bh), 0);
			return 0;
		case Opcode::ShiftRight:
			set_interval(r, std::min<int128>(al, 0), std::max<int128>(ah, 0), 0);
			return 0;
		case Opcode::DivRound:
		case Opcode::DivFloor:
			{
				const int128 m = std::max(ah < 0 ? -ah : ah, al < 0 ? -al : al);
				uint32_t	ignored = 0;

				if (bl == bh && bl > 0)
				{
					auto		divide = [&](int64_t v) {
						return op.opcode == Opcode::DivRound ? sem::DivRound(v, b.lo, &ignored) : sem::DivFloor(v, b.lo, &ignored);
					};

					return set_interval(r, divide(a.lo), divide(a.hi), 0);
				}
				set_interval(r, al >= 0 && bl >= 0 ? int128(0) : -m, m, 0);
				return (bl <= 0 && bh >= 0 ? uint32_t(ERR_DIVISION_BY_ZERO) : 0)
					| (a.lo == INT64_MIN && bl <= -1 && bh >= -1 ? uint32_t(ERR_INT_OVERFLOW) : 0);
			}
		case Opcode::Bound:
			{
				const int128 m = bh > 0 ? bh - 1 : 0;

				set_interval(r, std::clamp(al, -m, m), std::clamp(ah, -m, m), 0);
				return bl > 0 && al > -bl && ah < bl ? 0 : uint32_t(ERR_CAST_RANGE);
			}
		case Opcode::TimeAddMicros:
			return set_interval(r, 0, sem::US_PER_DAY - 1, 0);
		case Opcode::DateAdd:
		case Opcode::DateSub:
			{
				const int128 lo = op.opcode == Opcode::DateAdd ? al + bl : al - bh, hi = op.opcode == Opcode::DateAdd ? ah + bh : ah - bl;

				if (a.lo == sem::DATE_NOBEGIN || a.hi == sem::DATE_NOEND || lo < sem::DATE_MIN || hi >= sem::DATE_LIMIT)
					return ERR_DATETIME_RANGE;
				return set_interval(r, lo, hi, 0);
			}
		case Opcode::DateDiff:
			if (a.lo == sem::DATE_NOBEGIN || a.hi == sem::DATE_NOEND || b.lo == sem::DATE_NOBEGIN || b.hi == sem::DATE_NOEND
				|| al - bh < INT32_MIN || ah - bl > INT32_MAX)
				return ERR_DATETIME_RANGE;
			return set_interval(r, al - bh, ah - bl, 0);
		case Opcode::TimestampAddMonths:
		case Opcode::TimestampAddDays:
		case Opcode::TimestampAddMicros:
			return timestamp_sum(op.opcode, a, b, r);
		default:
			return opcode_info[static_cast<int>(op.opcode)].errors;
	}
}

uint32_t
float_arithmetic(const Op &op, const ValueRange &a, const ValueRange &b, ValueRange *r)
{
	uint32_t	errors = 0;

	r->may_nan = true;
	r->may_inf = a.may_inf || b.may_inf;
	if (op.opcode == Opcode::Div)
		return opcode_info[static_cast<int>(op.opcode)].errors & ~static_cast<uint32_t>(ERR_INT_OVERFLOW);
	if (!a.may_inf && !b.may_inf)
		r->may_nan = a.may_nan || b.may_nan;
	if (op.opcode == Opcode::MulRest)
	{
		r->exp_hi = std::max(a.exp_hi + b.exp_hi - 52, type_exp_lo(r->type));
		r->exp_lo = a.exp_lo + b.exp_lo;
		/* infinity times 0, or less infinity */
		r->may_nan = r->may_nan || r->may_inf || r->exp_hi + 52 >= type_exp_hi(r->type);
		r->may_inf = false;
		clamp_exps(r);
		return 0;
	}
	if (op.opcode == Opcode::Mul)
	{
		r->exp_hi = a.exp_hi + b.exp_hi;
		r->exp_lo = a.exp_lo + b.exp_lo;
		if (r->exp_lo < type_exp_lo(r->type))
			errors |= ERR_FLOAT_UNDERFLOW;
	}
	else
	{
		r->exp_hi = std::max(a.exp_hi, b.exp_hi) + 1;
		r->exp_lo = std::min(a.exp_lo, b.exp_lo);
	}
	/* at most 2^exp_hi, a power of two: rounding does not pass it */
	if (r->exp_hi >= type_exp_hi(r->type))
		errors |= ERR_FLOAT_OVERFLOW;
	clamp_exps(r);
	return errors;
}

/* Roots and whole numbers. */
uint32_t
float_function(Opcode opcode, const ValueRange &a, ValueRange *r)
{
	r->may_nan = a.may_nan && opcode != Opcode::Sign;
	r->may_inf = a.may_inf && opcode != Opcode::Sign;
	if (opcode == Opcode::Sqrt)
	{
		/* a multiple of no power that the operand's tells */
		r->exp_hi = std::max(a.exp_hi, 0) / 2 + 1;
		return ERR_FLOAT_DOMAIN;
	}
	r->exp_lo = std::max(a.exp_lo, 0);
	r->exp_hi = opcode == Opcode::Sign ? 0 : std::max(a.exp_hi, 0);
	r->exp_lo = std::min(r->exp_lo, r->exp_hi);
	return 0;
}

uint32_t
cast_range(Type from, const ValueRange &a, ValueRange *r)
{
	const Type	to = r->type;
	uint32_t	errors = 0;

	r->may_nan = r->may_inf = false;
	if (to == from)
	{
		*r = a;
		return 0;
	}
	if (to == Type::Bool)
	{
		r->may_true = r->may_false = true;
		return 0;
	}
	if (type_is_float(from) && type_is_float(to))
	{
		r->may_nan = a.may_nan;
		r->may_inf = a.may_inf;
		r->exp_lo = a.exp_lo;
		r->exp_hi = a.exp_hi;
		r->flo = a.flo;
		r->fhi = a.fhi;
		if (to == Type::F32)
		{
			if (a.exp_hi >= 128)
				errors |= ERR_FLOAT_OVERFLOW;
			if (a.exp_lo < -149)
				errors |= ERR_FLOAT_UNDERFLOW;
			r->flo = -INFINITE;
			r->fhi = INFINITE;
		}
		clamp_exps(r);
	}
	else if (type_is_float(to))
	{
		const int128 lo = from == Type::Bool ? 0 : a.lo, hi = from == Type::Bool ? 1 : a.hi;
		const uint128 m = static_cast<uint128>(std::max(lo < 0 ? -lo : lo, hi < 0 ? -hi : hi));

		r->exp_lo = 0;
		r->exp_hi = m >> 63 ? 64 : ceil_log2(static_cast<uint64_t>(m));
		clamp_exps(r);
	}
	else if (type_is_float(from))
		errors = ERR_CAST_RANGE;
	else if (from == Type::Bool)
		set_interval(r, 0, 1, 0);
	else
		errors = set_interval(r, a.lo, a.hi, ERR_CAST_RANGE);
	return errors;
}

/* May a < b, and may not? In PostgreSQL's order, NaN above infinity. */
struct Order
{
	bool		less, equal, greater;
};

Order
order_of(const ValueRange &a, const ValueRange &b)
{
	if (a.type == Type::Bool)
		return Order{a.may_false && b.may_true, (a.may_true && b.may_true) || (a.may_false && b.may_false),
			a.may_true && b.may_false};
	if (!type_is_float(a.type))
		return Order{a.lo < b.hi, a.lo <= b.hi && b.lo <= a.hi, a.hi > b.lo};

	const double al = a.may_inf ? -INFINITE : a.flo, ah = a.may_inf ? INFINITE : a.fhi;
	const double bl = b.may_inf ? -INFINITE : b.flo, bh = b.may_inf ? INFINITE : b.fhi;

	return Order{al < bh || b.may_nan, (al <= bh && bl <= ah) || (a.may_nan && b.may_nan), ah > bl || a.may_nan};
}

void
compare_ranges(Opcode opcode, const ValueRange &a, const ValueRange &b, bool *may_true, bool *may_false)
{
	Order		o = {};

	if (a.may_value && b.may_value)
		o = order_of(a, b);
	switch (opcode)
	{
		case Opcode::Eq: *may_true = o.equal; *may_false = o.less || o.greater; break;
		case Opcode::Ne: *may_true = o.less || o.greater; *may_false = o.equal; break;
		case Opcode::Lt: *may_true = o.less; *may_false = o.equal || o.greater; break;
		case Opcode::Le: *may_true = o.less || o.equal; *may_false = o.greater; break;
		case Opcode::Gt: *may_true = o.greater; *may_false = o.less || o.equal; break;
		default: *may_true = o.greater || o.equal; *may_false = o.less; break;
	}
}

void
set_bool(ValueRange *r, bool may_true, bool may_false, bool may_null)
{
	*r = full_range(Type::Bool);
	r->may_true = may_true;
	r->may_false = may_false;
	r->may_null = may_null;
	r->may_value = may_true || may_false;
	r->lo = may_false ? 0 : 1;
	r->hi = may_true ? 1 : 0;
	if (!r->may_value)
		r->lo = r->hi = 0;
}

void
logic_range(const Op &op, const ValueRange *regs, ValueRange *r)
{
	const ValueRange &a = regs[op.p2];

	switch (op.opcode)
	{
		case Opcode::And:
			{
				const ValueRange &b = regs[op.p3];

				set_bool(r, a.may_true && b.may_true, a.may_false || b.may_false,
						 (a.may_null && (b.may_null || b.may_true)) || (b.may_null && a.may_true));
				break;
			}
		case Opcode::Or:
			{
				const ValueRange &b = regs[op.p3];

				set_bool(r, a.may_true || b.may_true, a.may_false && b.may_false,
						 (a.may_null && (b.may_null || b.may_false)) || (b.may_null && a.may_false));
				break;
			}
		case Opcode::Not:
			set_bool(r, a.may_false, a.may_true, a.may_null);
			break;
		case Opcode::IsTrue:
			set_bool(r, a.may_true, a.may_false || a.may_null, false);
			break;
		default:
			set_bool(r, a.may_false, a.may_true || a.may_null, false);
			break;
	}
}

uint32_t
op_range(const Program *program, const Op &op, const ParamValue *params, const ValueRange *columns, ValueRange *regs,
		 const CodeMap *maps)
{
	const OpForm form = opcode_info[static_cast<int>(op.opcode)].form;

	switch (form)
	{
		case OpForm::COLUMN:
			regs[op.p1] = columns[op.p2];
			regs[op.p1].type = op.type;		/* a device may read it narrower, where that fits */
			return 0;
		case OpForm::ROWID:
			regs[op.p1] = full_range(op.type);
			regs[op.p1].may_null = false;
			return 0;
		case OpForm::IMM32:
			regs[op.p1] = int_constant(op.type, op.p2);
			return 0;
		case OpForm::IMM64:
			{
				double		d;

				memcpy(&d, &op.p4, sizeof(d));
				regs[op.p1] = op.opcode == Opcode::Int64 ? int_constant(op.type, op.p4)
					: float_constant(op.type, op.type == Type::F32 ? static_cast<double>(static_cast<float>(d)) : d);
				return 0;
			}
		case OpForm::IMMNULL:
			regs[op.p1] = null_range(op.type);
			return 0;
		case OpForm::VARIABLE:
			{
				const ParamValue &p = params[op.p2];
				double		d;

				memcpy(&d, &p.value, sizeof(d));
				regs[op.p1] = p.is_null ? null_range(op.type)
					: type_is_float(op.type) ? float_constant(op.type, op.type == Type::F32 ? static_cast<double>(static_cast<float>(d)) : d)
					: int_constant(op.type, p.value);
				return 0;
			}
		case OpForm::COPY:
			regs[op.p1] = regs[op.p2];
			return 0;
		case OpForm::LOOKUP:
			regs[op.p1] = maps ? lookup_range(op, maps[op.p2], regs[op.p3]) : full_range(op.type);
			return 0;
		case OpForm::ZONE:
			return zone_range(maps ? &maps[op.p2] : nullptr, regs[op.p3], &regs[op.p1]);
		case OpForm::FIELD:
			return field_range(op, regs[op.p2], &regs[op.p1]);
		case OpForm::LOGIC1:
		case OpForm::LOGIC2:
			logic_range(op, regs, &regs[op.p1]);
			return 0;
		case OpForm::NULLTEST:
			{
				const ValueRange &a = regs[op.p2];
				const bool	is_null = op.opcode == Opcode::IsNull;

				set_bool(&regs[op.p1], is_null ? a.may_null : a.may_value, is_null ? a.may_value : a.may_null, false);
				return 0;
			}
		case OpForm::DISTINCT:
			set_bool(&regs[op.p1], true, true, false);
			return 0;
		case OpForm::TEXTMATCH:
			set_bool(&regs[op.p1], columns[op.p2].may_value, columns[op.p2].may_value, true);
			return 0;
		case OpForm::TEXTKEY:
			/* another column's reference, maybe */
			regs[op.p1] = regs[op.p2];
			regs[op.p1].lo = 0;
			regs[op.p1].hi = VARIABLE_MAX_REFERENCE;
			return 0;
		case OpForm::IN:
			{
				const ValueRange &a = regs[op.p2];
				const int64_t *v = program->aux() + op.p3;
				const int64_t *from = std::lower_bound(v, v + op.p4, a.lo);
				const bool	found = a.may_value && from < v + op.p4 && *from <= a.hi;
				const bool	has_null = op.p5 & IN_HAS_NULL;

				set_bool(&regs[op.p1], found, a.may_value && !has_null, a.may_null || (a.may_value && has_null));
				return 0;
			}
		case OpForm::COMPARE:
			if (op.p5 & COMPARE_STORES)
			{
				bool		t, f;

				compare_ranges(op.opcode, regs[op.p1], regs[op.p2], &t, &f);
				set_bool(&regs[op.p3], t, f, regs[op.p1].may_null || regs[op.p2].may_null);
			}
			return 0;
		default:
			break;
	}

	/* The rest are strict, or pick one of their operands. */
	if (form != OpForm::CAST && form != OpForm::UNARY && form != OpForm::UNARY_IL && form != OpForm::UNARY_LI
		&& form != OpForm::BINARY && form != OpForm::SHIFT && form != OpForm::SELECT && form != OpForm::PICK)
		return 0;

	const bool	two = form == OpForm::BINARY || form == OpForm::SHIFT || form == OpForm::SELECT || form == OpForm::PICK;
	const ValueRange &a = regs[op.p2];
	const ValueRange &b = regs[two ? op.p3 : op.p2];
	ValueRange	r = full_range(op.type);
	uint32_t	errors = 0;

	r.may_null = a.may_null || b.may_null;
	switch (form)
	{
		case OpForm::SELECT:
			unite(&r, a, b);
			break;
		case OpForm::PICK:
			r.may_null = op.opcode == Opcode::NullIf || (a.may_null && b.may_null);
			if (op.opcode == Opcode::NullIf)
				unite(&r, a, a);
			else
				unite(&r, a, b);
			break;
		default:
			if (!a.may_value || !b.may_value)
			{
				r = null_range(op.type);
				break;
			}
			if (form == OpForm::CAST)
			{
				bool		may_null = r.may_null;

				errors = cast_range(static_cast<Type>(op.p5), a, &r);
				r.may_null = may_null;
			}
			else if (form == OpForm::UNARY_IL || form == OpForm::UNARY_LI)
				errors = date_cast_range(op.opcode, a, &r);
			else if (form == OpForm::UNARY && type_is_float(op.type) && op.opcode != Opcode::Neg && op.opcode != Opcode::Abs)
				errors = float_function(op.opcode, a, &r);
			else if (form == OpForm::UNARY && type_is_float(op.type))
			{
				r.may_nan = a.may_nan;
				r.may_inf = a.may_inf;
				r.exp_lo = a.exp_lo;
				r.exp_hi = a.exp_hi;
			}
			else if (op.opcode == Opcode::Neg)
				errors = set_interval(&r, -int128(a.hi), -int128(a.lo), ERR_INT_OVERFLOW);
			else if (op.opcode == Opcode::Abs)
				errors = set_interval(&r, a.lo > 0 ? int128(a.lo) : a.hi < 0 ? -int128(a.hi) : int128(0),
									  std::max(int128(a.hi), -int128(a.lo)), ERR_INT_OVERFLOW);
			else if (two && type_is_float(op.type))
				errors = float_arithmetic(op, a, b, &r);
			else if (two)
				errors = int_arithmetic(op, a, b, &r);
			break;
	}
	regs[op.p1] = r;
	return errors;
}

}  // namespace

ValueRange
column_range(const ColumnSummary &column)
{
	return stats_range(column);
}

ValueRange
column_range(const ColumnChunk &chunk)
{
	return stats_range(chunk);
}

ColumnSummary
range_summary(const ValueRange &range, Type type, bool nullable)
{
	ColumnSummary s = {};

	s.type = type;
	s.max_width = static_cast<uint8_t>(type_width(type));
	if (range.may_null || nullable)
	{
		s.flags |= CHUNK_HAS_NULLS;
		s.null_count = 1;
	}
	if (!range.may_value)
		s.flags |= CHUNK_ALL_NULL;
	if (type_is_float(type))
	{
		s.flags |= static_cast<uint16_t>((range.may_nan ? CHUNK_HAS_NAN : 0) | (range.may_inf ? CHUNK_HAS_INF : 0) | CHUNK_HAS_NEG_ZERO);
		s.exp_lo = static_cast<int16_t>(range.exp_lo);
		s.exp_hi = static_cast<int16_t>(range.exp_hi);
		memcpy(&s.min, &range.flo, sizeof(s.min));
		memcpy(&s.max, &range.fhi, sizeof(s.max));
	}
	else if (type == Type::Bool)
	{
		s.min = range.may_true && !range.may_false;
		s.max = range.may_true;
	}
	else
	{
		s.min = range.lo;
		s.max = range.hi;
	}
	return s;
}

ValueRange
map_range(const CodeMap &map, uint32_t first, uint32_t end)
{
	switch (map.type)
	{
		case Type::Bool: return entries_range<uint8_t>(map, first, end);
		case Type::I64: return entries_range<int64_t>(map, first, end);
		case Type::F32: return entries_range<float>(map, first, end);
		case Type::F64: return entries_range<double>(map, first, end);
		default: return entries_range<int32_t>(map, first, end);
	}
}

bool
map_values_fit(const CodeMap &map)
{
	const uint32_t n = map.nentries + (map.has_null_entry ? 1 : 0);
	uint32_t	wrong = 0;

	if (map.type == Type::Bool)
		for (uint32_t i = 0; i < n; i++)
			wrong |= static_cast<const uint8_t *>(map.values)[i] & 0xfeu;
	else if (map.type == Type::I16)
		for (uint32_t i = 0; i < n; i++)
			wrong |= sem::out_of_i16(static_cast<const int32_t *>(map.values)[i]);
	return wrong == 0;
}

bool
is_zone_table(const CodeMap &map)
{
	const int64_t *from = static_cast<const int64_t *>(map.values);
	const uint32_t n = map.nentries / 2;

	if (map.type != Type::I64 || map.has_null_entry || map.nulls || map.nentries % 2 != 0 || n == 0 || n > ZONE_MAX_TIMES)
		return false;
	for (uint32_t i = 0; i < n; i++)
	{
		const int64_t shift = from[n + i];

		if ((i > 0 && from[i] <= from[i - 1]) || (shift != ZONE_UNKNOWN && (shift > ZONE_MAX_SHIFT || shift < -ZONE_MAX_SHIFT)))
			return false;
	}
	return true;
}

ZoneTable
zone_part(const CodeMap &map, int64_t lo, int64_t hi)
{
	const int64_t *from = static_cast<const int64_t *>(map.values);
	const ZoneTable all = {from, from + map.nentries / 2, map.nentries / 2};
	const uint32_t first = zone_entry(all, lo), last = zone_entry(all, hi);

	return ZoneTable{all.from + first, all.shift + first, last - first + 1};
}

void
analyze_ranges(const Program *program, const ParamValue *params, const ValueRange *columns,
			   ValueRange *regs, uint32_t *errors, const CodeMap *maps)
{
	for (int i = 0; i < program->nops; i++)
		errors[i] = i > program->parallel && i < program->converge
			? op_range(program, program->ops()[i], params, columns, regs, maps) : 0;
}

void
group_ranges(const Program *program, const ValueRange *regs, uint64_t rows, ValueRange *results)
{
	ValueRange	aggs[PROGRAM_MAX_COLUMNS];
	const int64_t *keys = nullptr, *sources = nullptr;

	for (int i = 0; i < program->converge; i++)
	{
		const Op   &op = program->ops()[i];
		const OpForm form = opcode_info[static_cast<int>(op.opcode)].form;
		const AggFn fn = static_cast<AggFn>(op.p5);

		if (form == OpForm::AGGOPEN)
			sources = program->aux() + op.p3;
		else if (form == OpForm::GROUP)
			keys = program->aux() + op.p2;
		if (form != OpForm::AGGSTEP)
			continue;

		ValueRange &r = aggs[op.p1];

		/* sums as a stage has them (engine/abi.h) */
		r = full_range(fn == AggFn::Sum && type_is_int(op.type) ? Type::I64 : agg_result_type(fn, op.type));
		if (fn == AggFn::CountStar || fn == AggFn::Count)
		{
			r.may_null = false;
			r.lo = 0;
			r.hi = static_cast<int64_t>(std::min<uint64_t>(rows, INT64_MAX));
		}
		else if ((fn == AggFn::Min || fn == AggFn::Max || (fn == AggFn::AnyValue && !type_is_float(op.type))) && regs != nullptr)
		{
			r = regs[op.p2];
			r.may_null = true;
		}
	}
	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];

		if (op.opcode != Opcode::ResultColumn)
			continue;
		if (sources[op.p1] >= RESULT_FROM_AGG)
			results[op.p1] = aggs[sources[op.p1] - RESULT_FROM_AGG];
		else
			results[op.p1] = regs != nullptr ? regs[keys[sources[op.p1]]] : full_range(op.type);
	}
}

/*
 * Follows "a lane may be live here" through the pipeline: a target is reached
 * when a jump to it may be taken.
 */
bool
may_reach_sink(const Program *program, const ParamValue *params, const ValueRange *columns, ValueRange *regs, const CodeMap *maps)
{
	bool		reached[PROGRAM_MAX_OPS + 1] = {};
	bool		live = true;

	for (int i = program->parallel + 1; i < program->converge; i++)
	{
		const Op   &op = program->ops()[i];
		const OpForm form = opcode_info[static_cast<int>(op.opcode)].form;
		const uint32_t errors = op_range(program, op, params, columns, regs, maps);
		bool		leave = false, stay = true;

		live = live || reached[i];
		if (!live)
			continue;
		if (errors || form == OpForm::GROUP || form == OpForm::AGGSTEP || form == OpForm::RESULT)
			return true;
		if (form == OpForm::COMPARE && !(op.p5 & COMPARE_STORES))
		{
			const bool	may_null = regs[op.p1].may_null || regs[op.p2].may_null;

			compare_ranges(op.opcode, regs[op.p1], regs[op.p2], &leave, &stay);
			(op.p5 & JUMP_IF_NULL ? leave : stay) |= may_null;
		}
		else if (form == OpForm::BRANCH)
		{
			const ValueRange &a = regs[op.p1];

			leave = op.opcode == Opcode::If ? a.may_true : a.may_false;
			stay = op.opcode == Opcode::If ? a.may_false : a.may_true;
			(op.p5 & JUMP_IF_NULL ? leave : stay) |= a.may_null;
		}
		else if (form == OpForm::JUMP)
		{
			leave = true;
			stay = false;
		}
		else if (form == OpForm::INVALID)
			stay = false;
		if (leave && (form == OpForm::JUMP || op.p4 == VERDICT_JUMPS))
			reached[op.p3] = true;
		live = stay;
	}
	return false;
}

}  // namespace gpuvm
