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
same_vm_aggregate(const VmAggregate &a, const VmAggregate &b)
{
	return a.fn == b.fn && a.input == b.input && a.collation == b.collation && equal(a.arg, b.arg) && equal(a.filter, b.filter);
}

/* Always true, for the caller's return. */
static bool
add_part(AggregatePlan *plan, const Aggref *agg, AggFn fn, AggInput input = AggInput::Value)
{
	VmAggregate *part = &plan->parts[plan->nparts++];

	part->fn = fn;
	part->arg = fn == AggFn::CountStar ? nullptr : linitial_node(TargetEntry, agg->args)->expr;
	part->filter = agg->aggfilter;
	part->input = input;
	part->collation = input == AggInput::Rank ? agg->inputcollid : InvalidOid;
	return true;
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

	plan->kind = FinalKind::Direct;
	plan->extra = InvalidOid;
	plan->nparts = 0;
	switch (agg->aggfnoid)
	{
		case F_COUNT_:
			return add_part(plan, agg, AggFn::CountStar);
		case F_COUNT_ANY:
			return add_part(plan, agg, AggFn::Count);
		case F_SUM_INT2:
		case F_SUM_INT4:
			plan->kind = FinalKind::SumToInt8;
			return add_part(plan, agg, AggFn::Sum);
		case F_SUM_INT8:
			plan->kind = FinalKind::SumToNumeric;
			return add_part(plan, agg, AggFn::Sum);
		case F_AVG_INT2:
		case F_AVG_INT4:
		case F_AVG_INT8:
			plan->kind = FinalKind::AvgToNumeric;
			add_part(plan, agg, AggFn::Sum);
			return add_part(plan, agg, AggFn::Count);
		case F_SUM_FLOAT4:
		case F_SUM_FLOAT8:
		case F_AVG_FLOAT4:
		case F_AVG_FLOAT8:
			if (!setting_float_sums)
				return refuse(input, "gpuvm.float_sums is off");
			plan->kind = agg->aggfnoid == F_SUM_FLOAT4 ? FinalKind::SumToFloat4
				: agg->aggfnoid == F_SUM_FLOAT8 ? FinalKind::SumToFloat8 : FinalKind::AvgToFloat8;
			add_part(plan, agg, AggFn::Sum);
			if (plan->kind == FinalKind::AvgToFloat8)
				add_part(plan, agg, AggFn::Count);
			return true;
		case F_MIN_INT2:
		case F_MIN_INT4:
		case F_MIN_INT8:
		case F_MIN_FLOAT4:
		case F_MIN_FLOAT8:
		case F_MIN_DATE:
		case F_MIN_TIMESTAMP:
		case F_MIN_TIMESTAMPTZ:
			return add_part(plan, agg, AggFn::Min);
		case F_MAX_INT2:
		case F_MAX_INT4:
		case F_MAX_INT8:
		case F_MAX_FLOAT4:
		case F_MAX_FLOAT8:
		case F_MAX_DATE:
		case F_MAX_TIMESTAMP:
		case F_MAX_TIMESTAMPTZ:
			return add_part(plan, agg, AggFn::Max);
		case F_BOOL_AND:
		case F_EVERY:
			return add_part(plan, agg, AggFn::BoolAnd);
		case F_BOOL_OR:
			return add_part(plan, agg, AggFn::BoolOr);
		default:
			return refuse(input, psprintf("aggregate %s is not supported", format_procedure(agg->aggfnoid)));
	}
}

}  // namespace gpuvm
