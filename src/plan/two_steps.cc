/* two_steps.cc: aggregates of aggregates. */
#include "pg/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

#include "pg/value_form.h"
#include "plan/rel.h"
#include "plan/two_steps.h"

namespace gpuvm {

constexpr Oid NUMERIC_DIVIDE = 1761;

Oid
combining_aggregate(const Aggref *agg)
{
	if (agg->aggdistinct != NIL || agg->aggorder != NIL || agg->aggkind != AGGKIND_NORMAL)
		return InvalidOid;
	switch (agg->aggfnoid)
	{
		case F_SUM_INT8:
			return F_SUM_NUMERIC;
		case F_SUM_NUMERIC:
		case F_BIT_AND_INT2:
		case F_BIT_AND_INT4:
		case F_BIT_AND_INT8:
		case F_BIT_OR_INT2:
		case F_BIT_OR_INT4:
		case F_BIT_OR_INT8:
		case F_BOOL_AND:
		case F_BOOL_OR:
		case F_EVERY:
		case F_MIN_INT2:
		case F_MIN_INT4:
		case F_MIN_INT8:
		case F_MIN_DATE:
		case F_MIN_TIMESTAMP:
		case F_MIN_TIMESTAMPTZ:
		case F_MAX_INT2:
		case F_MAX_INT4:
		case F_MAX_INT8:
		case F_MAX_DATE:
		case F_MAX_TIMESTAMP:
		case F_MAX_TIMESTAMPTZ:
			return agg->aggfnoid;
		default:
			return InvalidOid;
	}
}

bool
is_exact(Node *value)
{
	switch (getBaseType(exprType(value)))
	{
		case BOOLOID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case UUIDOID:
		case BYTEAOID:
			return true;
		case NUMERICOID:
			/* 1.0 and 1.00 */
			return exprTypmod(value) >= 0;
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
			return dictionary_equality(exprType(value), exprTypmod(value), exprCollation(value));
		default:
			return type_is_enum(getBaseType(exprType(value)));
	}
}

/* min or max: of values of which equal ones are the same it does not matter which comes first. */
static bool
is_exact_extreme(const Aggref *agg)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(agg->aggfnoid));
	bool		sorted;

	if (!HeapTupleIsValid(tuple))
		return false;
	sorted = OidIsValid(((Form_pg_aggregate) GETSTRUCT(tuple))->aggsortop);
	ReleaseSysCache(tuple);
	return sorted && list_length(agg->args) == 1 && is_exact((Node *) linitial_node(TargetEntry, agg->args)->expr);
}

/* The function over this value of finer groups. */
static Aggref *
aggregate_over(const Aggref *like, Oid function, Oid type, Expr *finer)
{
	Aggref	   *made = static_cast<Aggref *>(copyObjectImpl(like));

	made->aggfnoid = function;
	made->aggtype = type;
	made->aggtranstype = InvalidOid;
	made->aggargtypes = list_make1_oid(exprType((Node *) finer));
	made->args = list_make1(makeTargetEntry(finer, 1, nullptr, false));
	made->inputcollid = exprCollation((Node *) finer);
	made->aggfilter = nullptr;
	made->aggstar = false;
	return made;
}

Expr *
combined_aggregate(const Aggref *agg, Expr *finer)
{
	const Oid	combining = combining_aggregate(agg);

	return (Expr *) aggregate_over(agg, OidIsValid(combining) ? combining : agg->aggfnoid, agg->aggtype, finer);
}

bool
has_two_steps(const Aggref *agg)
{
	if (agg->aggdistinct != NIL || agg->aggorder != NIL || agg->aggkind != AGGKIND_NORMAL)
		return false;
	switch (agg->aggfnoid)
	{
		case F_COUNT_:
		case F_COUNT_ANY:
		case F_SUM_INT2:
		case F_SUM_INT4:
		case F_AVG_INT2:
		case F_AVG_INT4:
		case F_AVG_INT8:
		case F_AVG_NUMERIC:
			return true;
		default:
			return OidIsValid(combining_aggregate(agg)) || is_exact_extreme(agg);
	}
}

/* Another aggregate of the same rows. */
static Aggref *
other_aggregate(const Aggref *agg, Oid function, Oid type)
{
	Aggref	   *made = static_cast<Aggref *>(copyObjectImpl(agg));

	made->aggfnoid = function;
	made->aggtype = type;
	made->aggtranstype = InvalidOid;
	return made;
}

static Expr *
combined(TwoSteps *steps, Aggref *agg)
{
	return steps->coarser((Aggref *) combined_aggregate(agg, steps->finer(agg)));
}

static Expr *
to_int8(Expr *number)
{
	return (Expr *) makeFuncExpr(F_INT8_NUMERIC, INT8OID, list_make1(number), InvalidOid, InvalidOid,
								 COERCE_EXPLICIT_CALL);
}

/* A sum of bigints, which is a numeric; null of no group. */
static Expr *
total(TwoSteps *steps, const Aggref *agg, Oid function)
{
	Aggref	   *part = other_aggregate(agg, function, INT8OID);

	return steps->coarser(aggregate_over(part, F_SUM_INT8, NUMERICOID, steps->finer(part)));
}

/* 0 of no group */
static Expr *
count_of(TwoSteps *steps, const Aggref *agg)
{
	CoalesceExpr *count = makeNode(CoalesceExpr);

	count->coalescetype = INT8OID;
	count->args = list_make2(to_int8(total(steps, agg, agg->aggfnoid)), rel_bigint(0));
	count->location = -1;
	return (Expr *) count;
}

/* As numeric_avg() and its kin end it. */
static Expr *
average(TwoSteps *steps, const Aggref *agg, Expr *sum)
{
	Expr	   *count = total(steps, agg, F_COUNT_ANY);
	Expr	   *quotient = make_opclause(NUMERIC_DIVIDE, NUMERICOID, false, sum, count, InvalidOid, InvalidOid);

	set_opfuncid((OpExpr *) quotient);
	return quotient;
}

Expr *
in_two_steps(TwoSteps *steps, const Aggref *agg)
{
	switch (agg->aggfnoid)
	{
		case F_COUNT_:
		case F_COUNT_ANY:
			return count_of(steps, agg);
		case F_SUM_INT2:
		case F_SUM_INT4:
			return to_int8(total(steps, agg, agg->aggfnoid));
		case F_AVG_INT2:
			return average(steps, agg, total(steps, agg, F_SUM_INT2));
		case F_AVG_INT4:
			return average(steps, agg, total(steps, agg, F_SUM_INT4));
		case F_AVG_INT8:
			return average(steps, agg, combined(steps, other_aggregate(agg, F_SUM_INT8, NUMERICOID)));
		case F_AVG_NUMERIC:
			return average(steps, agg, combined(steps, other_aggregate(agg, F_SUM_NUMERIC, NUMERICOID)));
		default:
			return combined(steps, static_cast<Aggref *>(copyObjectImpl(agg)));
	}
}

}  // namespace gpuvm
