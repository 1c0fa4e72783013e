/* finalize.cc: from the VM's result values to PostgreSQL's. */
#include "pg/pg.h"

extern "C" {
#include "libpq/pqformat.h"
#include "nodes/execnodes.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
}

#include <cstring>

#include "executor/finalize.h"
#include "pg/numeric_scaled.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

template <typename T>
static T
load(const ColumnView &view, uint32 row)
{
	T			v;

	memcpy(&v, view.values + static_cast<Size>(row) * sizeof(T), sizeof(T));
	return v;
}

/* Sums that another program has handed on are narrower (PlanPart.group_filter). */
static int128
load_sum(const ColumnView &view, uint32 row)
{
	return view.type == Type::I64 ? load<int64>(view, row) : load<int128>(view, row);
}

Datum
view_datum(const ColumnView &view, uint32 row)
{
	switch (view.type)
	{
		case Type::Bool:
			return BoolGetDatum(load<uint8>(view, row) != 0);
		case Type::I16:
			return Int16GetDatum(static_cast<int16>(load<int32>(view, row)));
		case Type::I32:
			return Int32GetDatum(load<int32>(view, row));
		case Type::I64:
			return Int64GetDatum(load<int64>(view, row));
		case Type::F32:
			return Float4GetDatum(load<float>(view, row));
		default:
			return Float8GetDatum(load<double>(view, row));
	}
}

Datum
wide_datum(const ColumnView &low, const ColumnView &high, uint32 row, int scale)
{
	return wide_to_numeric(wide_value(load<int64>(high, row), load<int64>(low, row)), scale);
}

/* -- numeric aggregates -------------------------------------------------------------- */

/* The parts of an aggregate, whose result columns are listed in `final` from here on. */
constexpr int PARTS = 2;

struct Parts
{
	const List *final;
	const ColumnView *views;
	const OutputForm *outputs;
	uint32		row;

	int			count() const { return list_length(final) - PARTS; }
	int			column(int i) const { return list_nth_int(final, PARTS + i); }
	template <typename T>
	T			value(int i) const { return load<T>(views[column(i)], row); }
};

/*
 * A sum as numeric. Of numerics it shows as many decimals as the value that shows most:
 * all of them, or, where values differ, what part `shown` says. `power` is that of the values in it.
 */
static Datum
sum_to_numeric(const Parts &parts, int sum, int shown, int power)
{
	const OutputForm &form = parts.outputs[parts.column(sum)];
	int128		value = load_sum(parts.views[parts.column(sum)], parts.row);
	int			scale = form.kind == OutputKind::Numeric ? form.scale : 0;

	if (shown < parts.count())
	{
		/* what is shown, gpuvmd says: within what a numeric can have */
		int			wanted = Max(Min(parts.value<int32>(shown), SCALED_MAX_RESULT_SCALE), 0) * power;

		/* no value has more decimals, so what goes, or comes, is zeros */
		for (; scale > wanted; scale--)
			value /= 10;
		if (scale < wanted)
			return shown_datum(scaled_to_numeric(value, scale), wanted);
	}
	return scaled_to_numeric(value, scale);
}

static Datum
add(Datum a, Datum b)
{
	return DirectFunctionCall2(numeric_add, a, b);
}

static Datum
times(Datum a, int64 b)
{
	return DirectFunctionCall2(numeric_mul, a, scaled_to_numeric(b, 0));
}

Datum
shown_datum(Datum numeric, int scale)
{
	return DirectFunctionCall2(numeric_round, numeric, Int32GetDatum(scale));
}

/* The part's number, and what of it is shown (AggInput::ShownUp, or ShownDown); 0 of what is no number. */
static int
shown_of(const Parts &parts, int part, bool up)
{
	const int128 value = load_sum(parts.views[parts.column(part)], parts.row);

	return is_wide_special(wide_high(value)) ? 0 : up ? static_cast<int>(value & SHOWN_MASK) : static_cast<int>(SHOWN_MASK - (value & SHOWN_MASK));
}

bool
shows_one_scale(const List *final, const ColumnView *views, uint32 row)
{
	const Parts parts = {final, views, nullptr, row};

	return static_cast<FinalKind>(linitial_int(final)) != FinalKind::ShownExtreme || view_is_null(views[parts.column(0)], row) ||
		shown_of(parts, 0, true) == shown_of(parts, 1, false);
}

static Datum
shown_extreme(const Parts &parts)
{
	const int128 value = load_sum(parts.views[parts.column(0)], parts.row);

	if (is_wide_special(wide_high(value)))
		return wide_to_numeric(value, 0);
	return shown_datum(scaled_to_numeric(value >> SHOWN_BITS, parts.outputs[parts.column(0)].scale), shown_of(parts, 0, true));
}

/* The sum of numbers in halves, which need not fit 128 bits any more; with the display scale that part `shown` says. */
static Datum
wide_sum(const Parts &parts, int shown)
{
	const int	scale = parts.outputs[parts.column(0)].scale;
	Datum		low = scaled_to_numeric(load_sum(parts.views[parts.column(0)], parts.row), scale);
	Datum		high = scaled_to_numeric(load_sum(parts.views[parts.column(1)], parts.row), scale);
	Datum		sum = add(low, times(high, WIDE_LOW_MASK + 1));

	/* no value has more decimals, so what goes is zeros */
	return shown < parts.count() && !view_is_null(parts.views[parts.column(shown)], parts.row)
		? shown_datum(sum, parts.value<int32>(shown)) : sum;
}

/* What of the values is no number (bits of WideSpecial), by the part that says so, if it is there. */
static int64
special_of(const Parts &parts, int part)
{
	return part < parts.count() ? parts.value<int64>(part) : 0;
}

static Datum
special_result(int64 which)
{
	return special_to_numeric(which == WIDE_INFINITY || which == WIDE_MINUS_INFINITY ? static_cast<WideSpecial>(which) : WIDE_NAN);
}

/* A sum, or an average where `count` is a part, of which the one behind that says what is no number. */
static Datum
wide_mean(const Parts &parts, int count, int special)
{
	const int64	which = special_of(parts, special);

	if (which != 0)
		return special_result(which);
	if (count < 0)
		return wide_sum(parts, special + 1);
	return DirectFunctionCall2(numeric_div, wide_sum(parts, special + 1), NumericGetDatum(int64_to_numeric(parts.value<int64>(count))));
}

/* A sum of quotients, of so many parts, each with a scale of its own; an average where the count is behind them. */
static Datum
quotient_mean(const Parts &parts, int limbs, bool average)
{
	const int	shown = average ? limbs + 1 : limbs;
	const int64 which = special_of(parts, shown + 1);
	Datum		sum = scaled_to_numeric(int64{0}, 0);

	if (which != 0)
		return special_result(which);
	for (int i = 0; i < limbs; i++)
		sum = add(sum, scaled_to_numeric(load_sum(parts.views[parts.column(i)], parts.row), parts.outputs[parts.column(i)].scale));
	/* no value has more decimals, so what goes is zeros */
	sum = shown_datum(sum, static_cast<int>(parts.value<int64>(shown)));
	return average ? DirectFunctionCall2(numeric_div, sum, NumericGetDatum(int64_to_numeric(parts.value<int64>(limbs)))) : sum;
}

/* The sum of squares, of those of the products of limbs, from part `first` on. */
static Datum
wide_squares(const Parts &parts, int first, int shown)
{
	const int	scale = parts.outputs[parts.column(0)].scale;
	Datum		sum = scaled_to_numeric(int64{0}, 2 * scale);

	for (int place = 2 * (WIDE_LIMBS - 1); place >= 0; place--)
	{
		sum = times(sum, int64{1} << WIDE_LIMB_BITS);
		for (int i = 0; i < LIMB_PRODUCTS; i++)
		{
			int			a;
			int			b;

			limb_pair(i, &a, &b);
			if (a + b == place)
				sum = add(sum, times(scaled_to_numeric(load_sum(parts.views[parts.column(first + i)], parts.row), 2 * scale), a == b ? 1 : 2));
		}
	}
	return shown < parts.count() ? DirectFunctionCall2(numeric_round, sum, Int32GetDatum(2 * parts.value<int32>(shown))) : sum;
}

/* As numeric.c's numericvar_serialize() has it; numeric_send(), which states of PostgreSQL 14 have, has the same in shorter words. */
static void
send_numeric(StringInfo to, Datum numeric)
{
	bytea	   *sent = DatumGetByteaP(DirectFunctionCall1(numeric_send, numeric));

#if PG_VERSION_NUM < 150000
	appendBinaryStringInfo(to, VARDATA(sent), VARSIZE(sent) - VARHDRSZ);
#else
	StringInfoData from;
	int			ndigits;

	initStringInfo(&from);
	appendBinaryStringInfo(&from, VARDATA(sent), VARSIZE(sent) - VARHDRSZ);
	ndigits = static_cast<int16>(pq_getmsgint(&from, sizeof(int16)));
	pq_sendint32(to, ndigits);
	for (int i = 0; i < 3; i++)		/* weight, sign, display scale */
	{
		uint32		word = pq_getmsgint(&from, sizeof(int16));

		pq_sendint32(to, i == 0 ? static_cast<uint32>(static_cast<int16>(word)) : word);
	}
	for (int i = 0; i < ndigits; i++)
		pq_sendint16(to, pq_getmsgint(&from, sizeof(int16)));
#endif
}

/* Calls an aggregate's support function as nodeAgg does: what is made lives in the current context. */
static Datum
call_support(Oid function, Datum arg, bool *isnull)
{
	LOCAL_FCINFO(fcinfo, 2);
	FmgrInfo	flinfo;
	AggState   *agg = makeNode(AggState);
	ExprContext *econtext = makeNode(ExprContext);
	Datum		result;

	econtext->ecxt_per_tuple_memory = CurrentMemoryContext;
	agg->curaggcontext = econtext;
	fmgr_info(function, &flinfo);
	InitFunctionCallInfoData(*fcinfo, &flinfo, 2, InvalidOid, reinterpret_cast<Node *>(agg), nullptr);
	fcinfo->args[0].value = arg;
	fcinfo->args[0].isnull = false;
	fcinfo->args[1].value = (Datum) 0;
	fcinfo->args[1].isnull = true;
	result = FunctionCallInvoke(fcinfo);
	*isnull = fcinfo->isnull;
	return result;
}

/* Is it the state of int2 and int4 (numeric_poly_*), which is another than that of int8 and numeric? */
static bool
is_poly(Oid final)
{
	return final == F_NUMERIC_POLY_VAR_POP || final == F_NUMERIC_POLY_VAR_SAMP || final == F_NUMERIC_POLY_STDDEV_POP ||
		final == F_NUMERIC_POLY_STDDEV_SAMP;
}

/* var_*, stddev_*: PostgreSQL's transition state, as parallel workers send it, and its own final function. `nan`: some values are no numbers. */
static Datum
variance(Oid final, int64 count, Datum sum, Datum squares, bool nan, bool *isnull)
{
	const bool	poly = is_poly(final);
	StringInfoData buf;
	Datum		state;

	pq_begintypsend(&buf);
	pq_sendint64(&buf, count - nan);
	send_numeric(&buf, sum);
	send_numeric(&buf, squares);
	if (!poly)
	{
		pq_sendint32(&buf, 0);	/* the greatest display scale, and how many have it: for moving aggregates */
		pq_sendint64(&buf, 0);
		for (int i = 0; i < 3; i++)		/* NaN, which infinities count as, too; infinities */
			pq_sendint64(&buf, i == 0 && nan);
	}
	state = call_support(poly ? F_NUMERIC_POLY_DESERIALIZE : F_NUMERIC_DESERIALIZE, PointerGetDatum(pq_endtypsend(&buf)), isnull);
	return call_support(final, state, isnull);
}

/* The sum of squares of integers of 64 bits, of those of the products of their limbs, from part `first` on. */
static Datum
large_squares(const Parts &parts, int first)
{
	const int64 limb = int64{1} << WIDE_LIMB_BITS;
	const int	scale = Max(parts.outputs[parts.column(0)].scale, 0);
	Datum		sums[SMALL_LIMB_PRODUCTS];

	for (int i = 0; i < SMALL_LIMB_PRODUCTS; i++)
		sums[i] = scaled_to_numeric(load_sum(parts.views[parts.column(first + i)], parts.row), 2 * scale);
	return add(sums[0], times(add(times(sums[1], 2), times(sums[2], limb)), limb));
}

static Datum
statistic_of(const Parts &parts, bool *isnull)
{
	double		sums[MAX_AGG_PARTS] = {};

	for (int i = 1; i < parts.count(); i++)
		sums[i - 1] = view_is_null(parts.views[parts.column(i)], parts.row) ? 0 : parts.value<double>(i);
	return float_statistic(static_cast<Oid>(lsecond_int(parts.final)), parts.value<int64>(0), sums, isnull);
}

/* -- intervals -------------------------------------------------------------------------- */

/* A part of an interval's sum, which PostgreSQL, too, has no room for if it is too large. */
static int64
interval_part(const Parts &parts, int part, int64 limit)
{
	const int128 sum = part < parts.count() ? load_sum(parts.views[parts.column(part)], parts.row) : 0;

	if (sum > limit || sum < -static_cast<int128>(limit) - 1)
		ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE), errmsg("interval out of range")));
	return static_cast<int64>(sum);
}

/* The sum, whose days and months are in part `days` and behind it, or its average, by the count in part 1. */
static Datum
interval_sum(const Parts &parts, int days)
{
	Interval   *sum = static_cast<Interval *>(palloc(sizeof(Interval)));

	sum->time = interval_part(parts, 0, PG_INT64_MAX);
	sum->day = static_cast<int32>(interval_part(parts, days, PG_INT32_MAX));
	sum->month = static_cast<int32>(interval_part(parts, days + 1, PG_INT32_MAX));
	if (days == 1)
		return IntervalPGetDatum(sum);
	return DirectFunctionCall2(interval_div, IntervalPGetDatum(sum), Float8GetDatum(static_cast<double>(parts.value<int64>(1))));
}

Datum
span_datum(int64 micros, bool days)
{
	Interval   *span = static_cast<Interval *>(palloc(sizeof(Interval)));

	span->month = 0;
	span->day = days ? static_cast<int32>(micros / USECS_PER_DAY) : 0;
	span->time = days ? micros % USECS_PER_DAY : micros;
	return IntervalPGetDatum(span);
}

Datum
finalize_aggregate(const List *final, const ColumnView *views, const OutputForm *outputs, uint32 row, bool *isnull)
{
	const Parts parts = {final, views, outputs, row};
	const ColumnView &value = views[parts.column(0)];
	const OutputForm &form = outputs[parts.column(0)];
	const Oid	extra = static_cast<Oid>(lsecond_int(final));

	*isnull = view_is_null(value, row);
	if (*isnull)
		return (Datum) 0;
	switch (static_cast<FinalKind>(linitial_int(final)))
	{
		case FinalKind::Direct:
			return form.kind == OutputKind::Numeric ? scaled_to_numeric(load<int64>(value, row), form.scale) : view_datum(value, row);
		case FinalKind::SumToInt8:
			return Int64GetDatum(static_cast<int64>(load_sum(value, row)));
		case FinalKind::SumToNumeric:
			return sum_to_numeric(parts, 0, 1, 1);
		case FinalKind::WideSum:
			return wide_mean(parts, -1, 2);
		case FinalKind::WideExtreme:
			return wide_to_numeric(load_sum(value, row), form.scale);
		case FinalKind::ShownExtreme:
			return shown_extreme(parts);
		case FinalKind::SpecialExtreme:
			return is_wide_special(load<int64>(value, row)) ? special_to_numeric(static_cast<WideSpecial>(load<int64>(value, row) & WIDE_SPECIAL_MASK))
				: scaled_to_numeric(load<int64>(value, row), form.scale);
		case FinalKind::WideAvg:
			return wide_mean(parts, 2, 3);
		case FinalKind::QuotientSum:
			return quotient_mean(parts, static_cast<int>(extra), false);
		case FinalKind::QuotientAvg:
			return quotient_mean(parts, static_cast<int>(extra), true);
		case FinalKind::WideVariance:
			return variance(extra, parts.value<int64>(2), wide_sum(parts, 4 + LIMB_PRODUCTS), wide_squares(parts, 3, 4 + LIMB_PRODUCTS),
							special_of(parts, 3 + LIMB_PRODUCTS) != 0, isnull);
		case FinalKind::SumToFloat4:
			return Float4GetDatum(static_cast<float>(load<double>(value, row)));
		case FinalKind::SumToFloat8:
			return Float8GetDatum(load<double>(value, row));
		case FinalKind::AvgToNumeric:
			/* int8_avg, numeric_poly_avg and numeric_avg: sum and count as numeric, divided. */
			return DirectFunctionCall2(numeric_div, sum_to_numeric(parts, 0, 2, 1),
									   NumericGetDatum(int64_to_numeric(parts.value<int64>(1))));
		case FinalKind::AvgToFloat8:
			/* float8_avg; its sum starts at 0, so the mean of nothing but -0 is 0 */
			return Float8GetDatum((load<double>(value, row) + 0.0) / static_cast<double>(parts.value<int64>(1)));
		case FinalKind::Variance:
			return variance(extra, parts.value<int64>(2), sum_to_numeric(parts, 0, 3, 1), sum_to_numeric(parts, 1, 3, 2), false, isnull);
		case FinalKind::BitString:
			return DirectFunctionCall2(bitfromint8, Int64GetDatum(load<int64>(value, row)), Int32GetDatum(static_cast<int32>(extra)));
		case FinalKind::LargeVariance:
			return variance(extra, parts.value<int64>(1), sum_to_numeric(parts, 0, parts.count(), 1), large_squares(parts, 2), false, isnull);
		case FinalKind::IntervalSum:
			return interval_sum(parts, 1);
		case FinalKind::IntervalAvg:
			return interval_sum(parts, 2);
		case FinalKind::SpanExtreme:
			return span_datum(load<int64>(value, row), extra != 0);
		case FinalKind::FloatStatistic:
			return statistic_of(parts, isnull);
	}
	return (Datum) 0;			/* not reached: the switch is exhaustive */
}

}  // namespace gpuvm
