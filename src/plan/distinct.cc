/*
 * distinct.cc: count(DISTINCT x) as groups of groups: those by x, too, are counted. The aggregates beside it are made of
 * theirs, as those of coarser grouping sets are (grouping_sets.cc); averages of sums and counts.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "utils/fmgroids.h"
}

#include "plan/normalise.h"

namespace gpuvm {

constexpr Oid NUMERIC_DIVIDE = 1761;

struct Distinct
{
	GpuvmRel   *statement;
	const GpuvmRel *group;
	SortGroupClause *key;		/* of what is counted, its column's number */
	GpuvmRel   *finer;			/* groups by it, too, */
	GpuvmRel   *coarser;		/* and of these */
	GpuvmRel   *values;			/* made of what those have */
};

/* -- what can be done ------------------------------------------------------------------------------- */

/* The column that is counted; 0: it is more than that. */
static int
counted_column(const Aggref *agg)
{
	if (agg->aggfnoid != F_COUNT_ANY || agg->aggfilter != nullptr || agg->aggorder != NIL || list_length(agg->aggdistinct) != 1)
		return 0;
	return rel_column_of((const Node *) linitial_node(TargetEntry, agg->args)->expr);
}

static bool
is_summed(const Aggref *agg)
{
	if (agg->aggdistinct != NIL || agg->aggorder != NIL)
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
			return OidIsValid(combining_aggregate(agg));
	}
}

/* Are all that are counted one column, by one equality, and the other aggregates made of those of finer groups? */
static bool
find_counted(Distinct *d)
{
	int			counted = 0;
	ListCell   *lc;

	foreach(lc, d->group->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);
		const Aggref *agg = (const Aggref *) column->expr;

		if (rel_hands_on(column))
			continue;
		if (!IsA(agg, Aggref))
			return false;
		if (agg->aggdistinct == NIL)
		{
			if (!is_summed(agg))
				return false;
			continue;
		}
		if (counted_column(agg) == 0 || (counted != 0 && counted_column(agg) != counted))
			return false;
		counted = counted_column(agg);
		d->key = static_cast<SortGroupClause *>(copyObjectImpl(linitial(agg->aggdistinct)));
		d->key->tleSortGroupRef = counted;
	}
	return counted != 0;
}

/* -- columns ----------------------------------------------------------------------------------------- */

/* A column of the node; what reads it. */
static Var *
add_column(Distinct *d, GpuvmRel *rel, Expr *expr)
{
	TargetEntry *column = makeTargetEntry(expr, rel_next_number(d->statement), nullptr, false);

	rel->columns = lappend(rel->columns, column);
	return rel_var(column);
}

static Aggref *
other_aggregate(const Aggref *agg, Oid function, Oid type)
{
	Aggref	   *made = static_cast<Aggref *>(copyObjectImpl(agg));

	made->aggfnoid = function;
	made->aggtype = type;
	made->aggtranstype = InvalidOid;
	return made;
}

/* The aggregate of the rows, by way of the finer groups. */
static Expr *
in_two_steps(Distinct *d, Aggref *agg)
{
	return (Expr *) add_column(d, d->coarser, combined_aggregate(agg, add_column(d, d->finer, (Expr *) agg)->varattno));
}

static Expr *
call(Oid function, Oid type, Expr *arg)
{
	return (Expr *) makeFuncExpr(function, type, list_make1(arg), InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

/* A sum of bigints, which is a numeric; null of no group. */
static Expr *
total(Distinct *d, Aggref *agg)
{
	Var		   *part = add_column(d, d->finer, (Expr *) agg);
	Aggref	   *sum = (Aggref *) combined_aggregate(other_aggregate(agg, F_SUM_INT8, INT8OID), part->varattno);

	sum->aggstar = false;
	sum->aggtype = NUMERICOID;
	sum->aggfnoid = F_SUM_INT8;
	return (Expr *) add_column(d, d->coarser, (Expr *) sum);
}

/* 0 of no group */
static Expr *
count_of(Distinct *d, const Aggref *agg)
{
	CoalesceExpr *count = makeNode(CoalesceExpr);

	count->coalescetype = INT8OID;
	count->args = list_make2(call(F_INT8_NUMERIC, INT8OID, total(d, other_aggregate(agg, agg->aggfnoid, INT8OID))),
							 makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(0), false, FLOAT8PASSBYVAL));
	count->location = -1;
	return (Expr *) count;
}

/* As numeric_avg() and its kin end it. */
static Expr *
average(Distinct *d, const Aggref *agg, Expr *sum)
{
	Expr	   *count = total(d, other_aggregate(agg, F_COUNT_ANY, INT8OID));
	OpExpr	   *quotient = (OpExpr *) make_opclause(NUMERIC_DIVIDE, NUMERICOID, false, sum, count, InvalidOid, InvalidOid);

	set_opfuncid(quotient);
	return (Expr *) quotient;
}

static Expr *
value_of(Distinct *d, const Aggref *agg)
{
	Aggref	   *counted;

	if (agg->aggdistinct != NIL)
	{
		counted = static_cast<Aggref *>(copyObjectImpl(agg));
		counted->aggdistinct = NIL;
		return (Expr *) add_column(d, d->coarser, (Expr *) counted);
	}
	switch (agg->aggfnoid)
	{
		case F_COUNT_:
		case F_COUNT_ANY:
			return count_of(d, agg);
		case F_SUM_INT2:
		case F_SUM_INT4:
			return call(F_INT8_NUMERIC, INT8OID, total(d, other_aggregate(agg, agg->aggfnoid, INT8OID)));
		case F_AVG_INT2:
			return average(d, agg, total(d, other_aggregate(agg, F_SUM_INT2, INT8OID)));
		case F_AVG_INT4:
			return average(d, agg, total(d, other_aggregate(agg, F_SUM_INT4, INT8OID)));
		case F_AVG_INT8:
			return average(d, agg, in_two_steps(d, other_aggregate(agg, F_SUM_INT8, NUMERICOID)));
		case F_AVG_NUMERIC:
			return average(d, agg, in_two_steps(d, other_aggregate(agg, F_SUM_NUMERIC, NUMERICOID)));
		default:
			return in_two_steps(d, static_cast<Aggref *>(copyObjectImpl(agg)));
	}
}

static void
add_key(GpuvmRel *rel, SortGroupClause *key)
{
	rel->keys = lappend(rel->keys, copyObjectImpl(key));
	if (rel_find(rel, key->tleSortGroupRef) == nullptr)
		rel->columns = lappend(rel->columns, rel_hand_on(rel_find(rel_input(rel), key->tleSortGroupRef)));
}

GpuvmRel *
split_distinct(GpuvmRel *statement, const GpuvmRel *group)
{
	Distinct	d = {statement, group, nullptr, nullptr, nullptr, nullptr};
	ListCell   *lc;

	if (group->op != REL_GROUP || group->sets != NIL || !find_counted(&d))
		return nullptr;
	d.finer = rel_make(REL_GROUP, list_make1(rel_input(group)));
	d.coarser = rel_make(REL_GROUP, list_make1(d.finer));
	d.values = rel_make(REL_PROJECT, list_make1(d.coarser));
	foreach(lc, group->keys)
		add_key(d.finer, lfirst_node(SortGroupClause, lc));
	if (rel_find(d.finer, d.key->tleSortGroupRef) == nullptr)
		add_key(d.finer, d.key);
	foreach(lc, group->keys)
		add_key(d.coarser, lfirst_node(SortGroupClause, lc));
	foreach(lc, group->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);
		Expr	   *expr = column->expr;

		if (!rel_hands_on(column))
			expr = value_of(&d, (const Aggref *) expr);
		d.values->columns = lappend(d.values->columns, makeTargetEntry(expr, column->resno, column->resname, false));
	}
	return d.values;
}

}  // namespace gpuvm
