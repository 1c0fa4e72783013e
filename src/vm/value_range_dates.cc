/* value_range_dates.cc: ranges of dates and timestamps. Infinities are the ends of a range, and not checked to be the only values out there. */
#include "vm/value_range_internal.h"

namespace gpuvm {
namespace ranges {

static bool
may_be_no_timestamp(const ValueRange &a)
{
	return a.lo < sem::TS_MIN || a.hi >= sem::TS_LIMIT;
}

/* Of what may be a timestamp. */
static int64_t
finite_timestamp(int64_t ts)
{
	return std::clamp(ts, sem::TS_MIN, sem::TS_LIMIT - 1);
}

/* What is not flagged: timestamps, and infinities where they stay. */
static void
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

static uint32_t
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

}  // namespace ranges

}  // namespace gpuvm
