/* aggregates.cc: which of PostgreSQL's aggregates a program can compute. */
#include "pg/pg.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
}

#include "compiler/compile.h"
#include "compiler/functions.h"
#include "pg/settings.h"

namespace gpuvm {

static bool
refuse(CompileInput *input, const char *reason)
{
	input->reason = reason;
	return false;
}

bool
plan_aggregate(const Aggref *agg, CompileInput *input, AggregatePlan *plan)
{
	if (agg->agglevelsup != 0)
		return refuse(input, "an aggregate belongs to an outer query");
	if (agg->aggdistinct != NIL)
		return refuse(input, psprintf("%s(DISTINCT) is not supported", get_func_name(agg->aggfnoid)));
	if (agg->aggorder != NIL || agg->aggdirectargs != NIL || agg->aggvariadic)
		return refuse(input, "ordered and variadic aggregates are not supported");
	if (agg->aggsplit != AGGSPLIT_SIMPLE)
		return refuse(input, "the aggregate is computed in parts");

	plan->needs_count = false;
	plan->kind = FinalKind::Direct;
	switch (agg->aggfnoid)
	{
		case F_COUNT_:
			plan->first = AggFn::CountStar;
			return true;
		case F_COUNT_ANY:
			plan->first = AggFn::Count;
			return true;
		case F_SUM_INT2:
		case F_SUM_INT4:
			plan->first = AggFn::Sum;
			plan->kind = FinalKind::SumToInt8;
			return true;
		case F_SUM_INT8:
			plan->first = AggFn::Sum;
			plan->kind = FinalKind::SumToNumeric;
			return true;
		case F_AVG_INT2:
		case F_AVG_INT4:
		case F_AVG_INT8:
			plan->first = AggFn::Sum;
			plan->kind = FinalKind::AvgToNumeric;
			plan->needs_count = true;
			return true;
		case F_SUM_FLOAT4:
		case F_SUM_FLOAT8:
		case F_AVG_FLOAT4:
		case F_AVG_FLOAT8:
			if (!setting_float_sums)
				return refuse(input, "gpuvm.float_sums is off");
			plan->first = AggFn::Sum;
			plan->kind = agg->aggfnoid == F_SUM_FLOAT4 ? FinalKind::SumToFloat4
				: agg->aggfnoid == F_SUM_FLOAT8 ? FinalKind::SumToFloat8 : FinalKind::AvgToFloat8;
			plan->needs_count = plan->kind == FinalKind::AvgToFloat8;
			return true;
		case F_MIN_INT2:
		case F_MIN_INT4:
		case F_MIN_INT8:
		case F_MIN_FLOAT4:
		case F_MIN_FLOAT8:
		case F_MIN_DATE:
		case F_MIN_TIMESTAMP:
		case F_MIN_TIMESTAMPTZ:
			plan->first = AggFn::Min;
			return true;
		case F_MAX_INT2:
		case F_MAX_INT4:
		case F_MAX_INT8:
		case F_MAX_FLOAT4:
		case F_MAX_FLOAT8:
		case F_MAX_DATE:
		case F_MAX_TIMESTAMP:
		case F_MAX_TIMESTAMPTZ:
			plan->first = AggFn::Max;
			return true;
		case F_BOOL_AND:
		case F_EVERY:
			plan->first = AggFn::BoolAnd;
			return true;
		case F_BOOL_OR:
			plan->first = AggFn::BoolOr;
			return true;
		default:
			return refuse(input, psprintf("aggregate %s is not supported", format_procedure(agg->aggfnoid)));
	}
}

}  // namespace gpuvm
