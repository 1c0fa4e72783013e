/* aggregates.cc: which of PostgreSQL's aggregates a program can compute. */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
}

#include "compiler/emit.h"
#include "pg/numeric_scaled.h"
#include "pg/settings.h"

namespace gpuvm {

struct AggEntry
{
	Oid			aggregate;
	FinalKind	kind;
	AggFn		fn;				/* of the first part */
	Oid			final;			/* of Variance: PostgreSQL's final function */
};

/* clang-format off */
#define DIRECT(agg, fn) {agg, FinalKind::Direct, AggFn::fn}
#define MINMAX(type) DIRECT(F_MIN_##type, Min), DIRECT(F_MAX_##type, Max)
#define BITS(type) DIRECT(F_BIT_AND_##type, BitAnd), DIRECT(F_BIT_OR_##type, BitOr), DIRECT(F_BIT_XOR_##type, BitXor)
#define SUM(agg, kind) {agg, FinalKind::kind, AggFn::Sum}
#define VARIANCE(type, prefix) \
	{F_VAR_POP_##type, FinalKind::Variance, AggFn::Sum, prefix##_VAR_POP}, \
	{F_VAR_SAMP_##type, FinalKind::Variance, AggFn::Sum, prefix##_VAR_SAMP}, \
	{F_VARIANCE_##type, FinalKind::Variance, AggFn::Sum, prefix##_VAR_SAMP}, \
	{F_STDDEV_POP_##type, FinalKind::Variance, AggFn::Sum, prefix##_STDDEV_POP}, \
	{F_STDDEV_SAMP_##type, FinalKind::Variance, AggFn::Sum, prefix##_STDDEV_SAMP}, \
	{F_STDDEV_##type, FinalKind::Variance, AggFn::Sum, prefix##_STDDEV_SAMP}

#define STATISTIC(agg, final) {agg, FinalKind::FloatStatistic, AggFn::Sum, final}
#define FLOAT_VARIANCE(type) \
	STATISTIC(F_VAR_POP_##type, F_FLOAT8_VAR_POP), STATISTIC(F_VAR_SAMP_##type, F_FLOAT8_VAR_SAMP), STATISTIC(F_VARIANCE_##type, F_FLOAT8_VAR_SAMP), \
	STATISTIC(F_STDDEV_POP_##type, F_FLOAT8_STDDEV_POP), STATISTIC(F_STDDEV_SAMP_##type, F_FLOAT8_STDDEV_SAMP), STATISTIC(F_STDDEV_##type, F_FLOAT8_STDDEV_SAMP)

static const AggEntry entries[] = {
	DIRECT(F_COUNT_, CountStar), DIRECT(F_COUNT_ANY, Count),
	SUM(F_SUM_INT2, SumToInt8), SUM(F_SUM_INT4, SumToInt8), SUM(F_SUM_MONEY, SumToInt8),
	SUM(F_SUM_INT8, SumToNumeric), SUM(F_SUM_NUMERIC, SumToNumeric),
	SUM(F_SUM_FLOAT4, SumToFloat4), SUM(F_SUM_FLOAT8, SumToFloat8),
	SUM(F_AVG_INT2, AvgToNumeric), SUM(F_AVG_INT4, AvgToNumeric), SUM(F_AVG_INT8, AvgToNumeric), SUM(F_AVG_NUMERIC, AvgToNumeric),
	SUM(F_AVG_FLOAT4, AvgToFloat8), SUM(F_AVG_FLOAT8, AvgToFloat8),
	VARIANCE(INT2, F_NUMERIC_POLY), VARIANCE(INT4, F_NUMERIC_POLY), VARIANCE(INT8, F_NUMERIC), VARIANCE(NUMERIC, F_NUMERIC),
	FLOAT_VARIANCE(FLOAT4), FLOAT_VARIANCE(FLOAT8),
	STATISTIC(F_CORR, F_FLOAT8_CORR), STATISTIC(F_COVAR_POP, F_FLOAT8_COVAR_POP), STATISTIC(F_COVAR_SAMP, F_FLOAT8_COVAR_SAMP),
	STATISTIC(F_REGR_AVGX, F_FLOAT8_REGR_AVGX), STATISTIC(F_REGR_AVGY, F_FLOAT8_REGR_AVGY), STATISTIC(F_REGR_INTERCEPT, F_FLOAT8_REGR_INTERCEPT),
	STATISTIC(F_REGR_R2, F_FLOAT8_REGR_R2), STATISTIC(F_REGR_SLOPE, F_FLOAT8_REGR_SLOPE), STATISTIC(F_REGR_SXX, F_FLOAT8_REGR_SXX),
	STATISTIC(F_REGR_SXY, F_FLOAT8_REGR_SXY), STATISTIC(F_REGR_SYY, F_FLOAT8_REGR_SYY), STATISTIC(F_REGR_COUNT, F_INT8INC_FLOAT8_FLOAT8),
	{F_BIT_AND_BIT, FinalKind::BitString, AggFn::BitAnd}, {F_BIT_OR_BIT, FinalKind::BitString, AggFn::BitOr}, {F_BIT_XOR_BIT, FinalKind::BitString, AggFn::BitXor},
	SUM(F_SUM_INTERVAL, IntervalSum), SUM(F_AVG_INTERVAL, IntervalAvg),
	MINMAX(INT2), MINMAX(INT4), MINMAX(INT8), MINMAX(FLOAT4), MINMAX(FLOAT8), MINMAX(NUMERIC), MINMAX(OID), MINMAX(MONEY),
	MINMAX(DATE), MINMAX(TIME), MINMAX(TIMESTAMP), MINMAX(TIMESTAMPTZ),
	/* of a dictionary's entries */
	MINMAX(TEXT), MINMAX(BPCHAR), MINMAX(INTERVAL), MINMAX(TIMETZ), MINMAX(INET), MINMAX(ANYENUM), MINMAX(ANYARRAY),
	DIRECT(F_BOOL_AND, BoolAnd), DIRECT(F_EVERY, BoolAnd), DIRECT(F_BOOL_OR, BoolOr),
	BITS(INT2), BITS(INT4), BITS(INT8),
};
/* clang-format on */

static const AggEntry *
lookup_aggregate(Oid aggregate)
{
	for (const AggEntry &entry : entries)
	{
		if (entry.aggregate == aggregate)
			return &entry;
	}
	return nullptr;
}

static bool
refuse(CompileInput *input, const char *reason)
{
	input->reason = reason;
	return false;
}

bool
same_vm_aggregate(const VmAggregate &a, const VmAggregate &b)
{
	return a.fn == b.fn && a.input == b.input && a.rest == b.rest && equal(a.other, b.other) && a.collation == b.collation && equal(a.arg, b.arg) && equal(a.filter, b.filter);
}

static void
add_part(AggregatePlan *plan, const Aggref *agg, AggFn fn, AggInput input = AggInput::Value)
{
	VmAggregate *part = &plan->parts[plan->nparts++];

	part->fn = fn;
	part->arg = fn == AggFn::CountStar ? nullptr : linitial_node(TargetEntry, agg->args)->expr;
	part->filter = agg->aggfilter;
	part->input = input;
	part->collation = input == AggInput::Rank || agg_is_text(fn) ? agg->inputcollid : InvalidOid;
	part->other = nullptr;
	part->rest = 0;
}

static void
add_double(AggregatePlan *plan, const Aggref *agg, AggFn fn, Expr *arg, Expr *other, AggInput input, int rest)
{
	plan->parts[plan->nparts++] = VmAggregate{fn, arg, agg->aggfilter, input, InvalidOid, other, rest};
}

/* A sum as it rounds, and what that leaves, `n` times in all. */
static void
add_exact(AggregatePlan *plan, const Aggref *agg, Expr *arg, Expr *other, AggInput input, int n)
{
	for (int i = 0; i < n; i++)
		add_double(plan, agg, AggFn::Sum, arg, other, input, i);
}

/* In the order of executor/float_statistics.cc. */
static void
add_statistic(AggregatePlan *plan, const Aggref *agg)
{
	Expr	   *y = linitial_node(TargetEntry, agg->args)->expr;
	Expr	   *x = list_length(agg->args) > 1 ? lsecond_node(TargetEntry, agg->args)->expr : nullptr;

	add_double(plan, agg, AggFn::Count, y, x, x != nullptr ? AggInput::DoubleProduct : AggInput::Double, 0);
	if (plan->extra == F_INT8INC_FLOAT8_FLOAT8)
		return;
	for (int i = 0; i < (x != nullptr ? 2 : 1); i++)
	{
		Expr	   *one = i == 0 && x != nullptr ? x : y;
		Expr	   *two = x == nullptr ? nullptr : i == 0 ? y : x;

		add_exact(plan, agg, one, two, AggInput::Double, 3);
		add_exact(plan, agg, one, two, AggInput::DoubleSquare, 3);
		add_exact(plan, agg, one, two, AggInput::DoubleSquareRest, 2);
	}
	if (x == nullptr)
		return;
	add_exact(plan, agg, y, x, AggInput::DoubleProduct, 3);
	add_exact(plan, agg, y, x, AggInput::DoubleProductRest, 2);
}

/* Is it a column that has halves for the sake of NaN alone, as its type says? */
static bool
is_narrow_column(const Expr *expr)
{
	const int32	typmod = IsA(expr, Var) ? ((const Var *) expr)->vartypmod : -1;

	return typmod >= static_cast<int32>(VARHDRSZ) && ((typmod - VARHDRSZ) >> 16 & 0xffff) <= SCALED_MAX_SCALE;
}

/* sum() and avg() of a quotient as it is. */
static void
add_quotient(const CompileInput *input, const Aggref *agg, AggregatePlan *plan)
{
	const Expr *arg = linitial_node(TargetEntry, agg->args)->expr;
	List	   *args;

	(void) called_function(arg, &args);
	plan->extra = static_cast<Oid>(quotient_limbs(input, args));
	for (Oid i = 0; i < plan->extra; i++)
		add_part(plan, agg, AggFn::Sum, static_cast<AggInput>(static_cast<int>(AggInput::QuotientLimb) + i));
	if (plan->kind == FinalKind::AvgToNumeric)
		add_part(plan, agg, AggFn::Count, AggInput::QuotientLimb);
	add_part(plan, agg, AggFn::Max, AggInput::QuotientScale);
	if (may_be_special(input, arg))
		add_part(plan, agg, AggFn::BitOr, AggInput::QuotientSpecial);
	plan->kind = plan->kind == FinalKind::AvgToNumeric ? FinalKind::QuotientAvg : FinalKind::QuotientSum;
}

/* Of numerics of more than 64 bits. */
static bool
plan_wide(const Aggref *agg, AggFn entry, CompileInput *input, AggregatePlan *plan)
{
	const Expr *arg = linitial_node(TargetEntry, agg->args)->expr;
	const NumericScale scale = numeric_scale(input, arg);

	if (entry == AggFn::Min || entry == AggFn::Max)
	{
		if (is_narrow_column(arg))
		{
			plan->kind = FinalKind::SpecialExtreme;
			add_part(plan, agg, entry, AggInput::Narrow);
			return true;
		}
		plan->kind = FinalKind::WideExtreme;
		add_part(plan, agg, entry == AggFn::Min ? AggFn::MinWide : AggFn::MaxWide, AggInput::High);
		return true;
	}
	if (plan->kind != FinalKind::Variance && is_quotient(arg))
	{
		add_quotient(input, agg, plan);
		return true;
	}
	add_part(plan, agg, AggFn::Sum, AggInput::Low);
	add_part(plan, agg, AggFn::Sum, AggInput::High);
	if (plan->kind != FinalKind::SumToNumeric)
		add_part(plan, agg, AggFn::Count);
	for (int i = 0; plan->kind == FinalKind::Variance && i < LIMB_PRODUCTS; i++)
		add_part(plan, agg, AggFn::Sum, static_cast<AggInput>(static_cast<int>(AggInput::LimbProduct) + i));
	if (may_be_special(input, arg) || scale.mixed)
		add_part(plan, agg, AggFn::BitOr, AggInput::Special);
	if (scale.mixed)
		add_part(plan, agg, AggFn::Max, AggInput::Scale);
	plan->kind = plan->kind == FinalKind::AvgToNumeric ? FinalKind::WideAvg : plan->kind == FinalKind::Variance ? FinalKind::WideVariance : FinalKind::WideSum;
	return true;
}

/* sum() and avg() of intervals, whose parts PostgreSQL adds up one by one. */
static void
add_interval(AggregatePlan *plan, const Aggref *agg)
{
	const Expr *arg = linitial_node(TargetEntry, agg->args)->expr;

	add_part(plan, agg, AggFn::Sum, AggInput::IntervalMicros);
	if (plan->kind == FinalKind::IntervalAvg)
		add_part(plan, agg, AggFn::Count);
	if (is_span(arg) && !span_has_days(arg))
		return;
	add_part(plan, agg, AggFn::Sum, AggInput::IntervalDays);
	if (!is_span(arg))
		add_part(plan, agg, AggFn::Sum, AggInput::IntervalMonths);
}

/* Of bit strings: of one length, as integers. */
static bool
plan_bits(const Aggref *agg, AggFn fn, CompileInput *input, AggregatePlan *plan)
{
	const Node *arg = reinterpret_cast<const Node *>(linitial_node(TargetEntry, agg->args)->expr);
	const int32	length = exprTypmod(arg);

	if (exprType(arg) != BITOID || length < 1 || length > 64)
		return refuse(input, "bit strings are not of one length of at most 64 bits");
	plan->extra = static_cast<Oid>(length);
	add_part(plan, agg, fn, AggInput::Bits);
	return true;
}

/* Squares of 64 bits have up to 128. */
static void
add_large_variance(AggregatePlan *plan, const Aggref *agg)
{
	plan->kind = FinalKind::LargeVariance;
	add_part(plan, agg, AggFn::Sum);
	add_part(plan, agg, AggFn::Count);
	for (int i = 0; i < SMALL_LIMB_PRODUCTS; i++)
		add_part(plan, agg, AggFn::Sum, static_cast<AggInput>(static_cast<int>(AggInput::SmallLimbProduct) + i));
}

bool
plan_aggregate(const Aggref *agg, CompileInput *input, AggregatePlan *plan)
{
	const AggEntry *entry = lookup_aggregate(agg->aggfnoid);
	const Expr *arg = agg->args == NIL ? nullptr : linitial_node(TargetEntry, agg->args)->expr;
	ValueForm	form = arg == nullptr ? ValueForm::None : value_type(exprType(reinterpret_cast<const Node *>(arg))).form;

	if (agg->agglevelsup != 0)
		return refuse(input, "an aggregate belongs to an outer query");
	if (agg->aggorder != NIL || agg->aggdirectargs != NIL || agg->aggvariadic)
		return refuse(input, "ordered and variadic aggregates are not supported");
	if (agg->aggsplit != AGGSPLIT_SIMPLE)
		return refuse(input, "the aggregate is computed in parts");
	if (entry == nullptr)
		return refuse(input, psprintf("aggregate %s is not supported", format_procedure(agg->aggfnoid)));

	plan->kind = entry->kind;
	plan->extra = entry->final;
	plan->nparts = 0;
	if (entry->kind == FinalKind::FloatStatistic && setting_float_sums)
	{
		add_statistic(plan, agg);
		return true;
	}
	if ((entry->kind == FinalKind::FloatStatistic || entry->kind == FinalKind::SumToFloat4 || entry->kind == FinalKind::SumToFloat8 || entry->kind == FinalKind::AvgToFloat8) &&
		!setting_float_sums)
		return refuse(input, "gpuvm.float_sums is off");
	if (arg != nullptr && (entry->fn == AggFn::Min || entry->fn == AggFn::Max) && differs_in_scale(input, arg))
	{
		const AggFn fn = entry->fn == AggFn::Min ? AggFn::MinWide : AggFn::MaxWide;

		plan->kind = FinalKind::ShownExtreme;
		add_part(plan, agg, fn, AggInput::ShownUp);
		add_part(plan, agg, fn, AggInput::ShownDown);
		return true;
	}
	/* squares have twice the decimals */
	if (entry->kind == FinalKind::Variance && form == ValueForm::Numeric &&
		2 * numeric_scale(input, arg).scale > SCALED_MAX_RESULT_SCALE)
		return refuse(input, psprintf("a numeric has more than %d decimals", SCALED_MAX_RESULT_SCALE));
	if (arg != nullptr && entry->fn != AggFn::Count && is_wide(input, arg))
		return plan_wide(agg, entry->fn, input, plan);
	if (entry->kind == FinalKind::BitString)
		return plan_bits(agg, entry->fn, input, plan);
	if (entry->kind == FinalKind::Variance && (exprType(reinterpret_cast<const Node *>(arg)) == INT8OID || (form == ValueForm::Numeric && has_wide_squares(input, arg))))
	{
		add_large_variance(plan, agg);
		return true;
	}
	if (entry->kind == FinalKind::IntervalSum || entry->kind == FinalKind::IntervalAvg)
	{
		add_interval(plan, agg);
		return true;
	}
	if (arg != nullptr && (entry->fn == AggFn::Min || entry->fn == AggFn::Max) && is_span(arg))
	{
		plan->kind = FinalKind::SpanExtreme;
		plan->extra = span_has_days(arg);
		add_part(plan, agg, entry->fn, AggInput::Span);
		return true;
	}
	if (form == ValueForm::Dictionary && (entry->fn == AggFn::Min || entry->fn == AggFn::Max) && variable_var(input, arg) != nullptr)
		add_part(plan, agg, entry->fn == AggFn::Min ? AggFn::MinText : AggFn::MaxText);
	else if (form == ValueForm::Dictionary && (entry->fn == AggFn::Min || entry->fn == AggFn::Max))
		add_part(plan, agg, entry->fn, AggInput::Rank);
	else
		add_part(plan, agg, entry->fn);
	if (entry->kind == FinalKind::Variance)
		add_part(plan, agg, AggFn::Sum, AggInput::Square);
	if (entry->kind == FinalKind::Variance || entry->kind == FinalKind::AvgToNumeric || entry->kind == FinalKind::AvgToFloat8)
		add_part(plan, agg, AggFn::Count);
	if (entry->fn == AggFn::Sum && form == ValueForm::Numeric && numeric_scale(input, arg).mixed)
		add_part(plan, agg, AggFn::Max, AggInput::Scale);
	return true;
}

}  // namespace gpuvm
