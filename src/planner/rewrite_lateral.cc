/*
 * rewrite_lateral.cc: FROM t, LATERAL (SELECT agg(e) FROM u WHERE u.k = t.k) is computed for every row of t. Its one row
 * for each is that of t LEFT JOIN (SELECT k, agg(e) FROM u GROUP BY k), whose missing counts are 0.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
}

#include "pg/compat.h"
#include "planner/rewrite.h"

namespace gpuvm {

/* What the columns of a subquery become that is none any more. */
struct Replacement
{
	int			varno;
	RangeTblEntry *rte;
	List	   *targets;		/* TargetEntry */
};

struct Laterals
{
	RewriteLevel *level;
	Replacement found[8];
	int			nfound;
};

/* Are these relations all in the join tree? */
static bool
are_in(Node *jointree, const Bitmapset *relids)
{
	bool		nulled;
	int			varno = -1;

	while ((varno = bms_next_member(relids, varno)) >= 0)
	{
		if (!finds_relation(jointree, varno, &nulled))
			return false;
	}
	return true;
}

/* Can the item be such a subquery of what is to its left? */
static bool
is_grouped_lateral(const Laterals *l, Node *item, Node *left, Scalar *s)
{
	const RangeTblEntry *rte = IsA(item, RangeTblRef) ? rt_fetch(((RangeTblRef *) item)->rtindex, l->level->query->rtable) : nullptr;
	List	   *values = NIL;
	ListCell   *lc;

	if (rte == nullptr || rte->rtekind != RTE_SUBQUERY || !rte->lateral || l->nfound == static_cast<int>(lengthof(l->found)))
		return false;
	foreach(lc, rte->subquery->targetList)
		values = lappend(values, lfirst_node(TargetEntry, lc)->expr);
	return analyse_scalar(l->level, rte->subquery, (Node *) values, s) && are_in(left, pull_varnos(nullptr, (Node *) s->by.outer)) &&
		is_quiet(outer_value(s, GroupedAs::Joined, 0, 0));
}

/* The groups, joined to what is to the left of the item; what its columns become is noted. */
static JoinExpr *
join_groups(Laterals *l, Node *item, Node *left, const Scalar *s)
{
	const int	varno = ((RangeTblRef *) item)->rtindex;
	RangeTblEntry *rte = rt_fetch(varno, l->level->query->rtable);
	Replacement *replacement = &l->found[l->nfound++];
	RangeTblEntry *before = static_cast<RangeTblEntry *>(copyObjectImpl(rte));
	List	   *entries = static_cast<List *>(copyObjectImpl(s->body->targetList));
	int			rtindex = add_grouped(l->level, s);
	JoinExpr   *join = left_join(l->level, s, rtindex);
	const List *values = (const List *) outer_value(s, GroupedAs::LeftJoined, rtindex, rtindex + 1);
	ListCell   *lc;

	join->larg = left;
	foreach(lc, entries)
		lfirst_node(TargetEntry, lc)->expr = static_cast<Expr *>(list_nth(values, foreach_current_index(lc)));
	*replacement = Replacement{varno, before, entries};
	/* nobody reads it any more */
	rte->rtekind = RTE_RESULT;
	rte->subquery = nullptr;
	rte->lateral = false;
	return join;
}

static bool
is_always_true(const Node *quals)
{
	return quals == nullptr || (IsA(quals, Const) && !((const Const *) quals)->constisnull && DatumGetBool(((const Const *) quals)->constvalue));
}

/* The join tree without them. Below the inner side of an outer join their rows would be missing, and not their values null. */
static Node *
without_laterals(Laterals *l, Node *jointree)
{
	List	   *items = NIL;
	Scalar		s;
	ListCell   *lc;

	if (IsA(jointree, JoinExpr))
	{
		JoinExpr   *join = (JoinExpr *) jointree;
		JoinExpr   *grouped;

		if (join->jointype != JOIN_INNER && join->jointype != JOIN_LEFT)
			return jointree;
		join->larg = without_laterals(l, join->larg);
		if (join->jointype == JOIN_INNER)
			join->rarg = without_laterals(l, join->rarg);
		if ((join->jointype != JOIN_INNER && !is_always_true(join->quals)) || !is_grouped_lateral(l, join->rarg, join->larg, &s))
			return jointree;
		grouped = join_groups(l, join->rarg, join->larg, &s);
		return is_always_true(join->quals) ? (Node *) grouped : (Node *) makeFromExpr(list_make1(grouped), join->quals);
	}
	if (!IsA(jointree, FromExpr))
		return jointree;
	foreach(lc, ((FromExpr *) jointree)->fromlist)
	{
		Node	   *item = static_cast<Node *>(lfirst(lc));
		Node	   *left = list_length(items) == 1 ? static_cast<Node *>(linitial(items)) : (Node *) makeFromExpr(items, nullptr);

		if (is_grouped_lateral(l, item, left, &s))
			items = list_make1(join_groups(l, item, left, &s));
		else
			items = lappend(items, without_laterals(l, item));
	}
	((FromExpr *) jointree)->fromlist = items;
	return jointree;
}

bool
rewrite_laterals(RewriteLevel *level)
{
	Laterals	laterals = {level};
	Query	   *query = level->query;

	without_laterals(&laterals, (Node *) query->jointree);
	/* the last one first: its values may be made of those of the others, which stand to its left */
	for (int i = laterals.nfound - 1; i >= 0; i--)
		*query = *(Query *) compat_replace_vars((Node *) query, laterals.found[i].varno, laterals.found[i].rte, laterals.found[i].targets);
	return laterals.nfound > 0;
}

}  // namespace gpuvm
