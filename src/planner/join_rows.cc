/*
 * join_rows.cc: how many rows a join has, where PostgreSQL's estimate is known to be too small.
 *
 * PostgreSQL takes conditions on several columns for independent. Where the columns of one side have a unique index of
 * several columns (a primary key such as TPC-H's of partsupp), pairs are underestimated by orders of magnitude: it is the same
 * mistake that a declared foreign key would mend. Here each row of the other side meets one row of the index's relation, as far as
 * that one's own conditions have left it. A program that is costed with a handful of rows would give millions to a node above.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
}

#include "pg/compat.h"
#include "planner/joins.h"

namespace gpuvm {

/* The condition that has the column on one side; NULL if there is none. */
static RestrictInfo *
condition_on(List *restrictinfos, Index varno, AttrNumber attnum)
{
	ListCell   *lc;
	ListCell   *arg;

	foreach(lc, restrictinfos)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (!is_opclause(rinfo->clause))
			continue;
		foreach(arg, ((OpExpr *) rinfo->clause)->args)
		{
			Node	   *node = static_cast<Node *>(lfirst(arg));

			while (IsA(node, RelabelType))
				node = (Node *) ((RelabelType *) node)->arg;
			if (IsA(node, Var) && static_cast<int>(((Var *) node)->varno) == static_cast<int>(varno) && ((Var *) node)->varattno == attnum)
				return rinfo;
		}
	}
	return nullptr;
}

/* Conditions on all columns of the index, one each; NIL: they are not. */
static List *
conditions_on(const IndexOptInfo *index, List *restrictinfos)
{
	List	   *found = NIL;

	for (int i = 0; i < index->nkeycolumns; i++)
	{
		RestrictInfo *rinfo = index->indexkeys[i] == 0 ? nullptr : condition_on(restrictinfos, index->rel->relid, index->indexkeys[i]);

		if (rinfo == nullptr || list_member_ptr(found, rinfo))
			return NIL;
		found = lappend(found, rinfo);
	}
	return found;
}

/* How many times as many pairs the equalities have as their selectivities say, by the relation's unique indexes of several columns. */
static double
underestimate(PlannerInfo *root, const RelOptInfo *rel, List *equalities, SpecialJoinInfo *sjinfo)
{
	double		most = 1;
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, rel->indexlist)
	{
		const IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);
		double		selectivity = 1;
		List	   *on;

		if (!index->unique || !index->immediate || index->indpred != NIL || index->nkeycolumns < 2)
			continue;
		on = conditions_on(index, equalities);
		foreach(lc2, on)
			selectivity *= clause_selectivity(root, static_cast<Node *>(lfirst(lc2)), 0, JOIN_INNER, sjinfo);
		if (on != NIL && rel->tuples > 0)
			most = Max(most, 1 / (rel->tuples * Max(selectivity, 1e-30)));
	}
	return most;
}

double
pairs_underestimate(PlannerInfo *root, RelOptInfo *outer, RelOptInfo *inner, List *equalities, SpecialJoinInfo *sjinfo)
{
	Relids		both = compat_relations(root, bms_union(outer->relids, inner->relids));
	double		most = 1;
	int			relid = -1;

	if (list_length(equalities) < 2)
		return 1;
	while ((relid = bms_next_member(both, relid)) >= 0)
		most = Max(most, underestimate(root, find_base_rel(root, relid), equalities, sjinfo));
	return most;
}

}  // namespace gpuvm
