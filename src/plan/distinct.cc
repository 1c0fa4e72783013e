/*
 * distinct.cc: count(DISTINCT x) as groups of groups: those by x, too, are counted. The aggregates beside it are made of
 * theirs, as those of coarser grouping sets are (grouping_sets.cc); averages of sums and counts.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
}

#include "plan/normalise.h"
#include "plan/two_steps.h"

namespace gpuvm {

struct Distinct : TwoSteps
{
	GpuvmRel   *statement;
	const GpuvmRel *group;
	SortGroupClause *key;		/* of what is counted, its column's number */
	GpuvmRel   *finer_groups;	/* groups by it, too, */
	GpuvmRel   *coarser_groups; /* and of these */
	GpuvmRel   *values;			/* made of what those have */

	Expr	   *finer(Aggref *agg) override;
	Expr	   *coarser(Aggref *agg) override;
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
			if (!has_two_steps(agg))
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

Expr *
Distinct::finer(Aggref *agg)
{
	return (Expr *) add_column(this, finer_groups, (Expr *) agg);
}

Expr *
Distinct::coarser(Aggref *agg)
{
	return (Expr *) add_column(this, coarser_groups, (Expr *) agg);
}

static Expr *
value_of(Distinct *d, const Aggref *agg)
{
	Aggref	   *counted;

	if (agg->aggdistinct == NIL)
		return in_two_steps(d, agg);
	counted = static_cast<Aggref *>(copyObjectImpl(agg));
	counted->aggdistinct = NIL;
	return d->coarser(counted);
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
	Distinct	d = {};
	ListCell   *lc;

	d.statement = statement;
	d.group = group;
	if (group->op != REL_GROUP || group->sets != NIL || !find_counted(&d))
		return nullptr;
	d.finer_groups = rel_make(REL_GROUP, list_make1(rel_input(group)));
	d.coarser_groups = rel_make(REL_GROUP, list_make1(d.finer_groups));
	d.values = rel_make(REL_PROJECT, list_make1(d.coarser_groups));
	foreach(lc, group->keys)
		add_key(d.finer_groups, lfirst_node(SortGroupClause, lc));
	if (rel_find(d.finer_groups, d.key->tleSortGroupRef) == nullptr)
		add_key(d.finer_groups, d.key);
	foreach(lc, group->keys)
		add_key(d.coarser_groups, lfirst_node(SortGroupClause, lc));
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
