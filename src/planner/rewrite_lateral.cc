/*
 * rewrite_lateral.cc: FROM t, LATERAL (SELECT agg(e) FROM u WHERE u.k = t.k) is computed for every row of t. Its one row
 * for each is that of t LEFT JOIN (SELECT k, agg(e) FROM u GROUP BY k), whose missing counts are 0. Where it groups its rows, or takes
 * the first ones, they are those of t JOIN (SELECT ... GROUP BY k, ...), or of row_number() OVER (PARTITION BY k ...) below the limit.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"
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
	bool		keyed;			/* were there those of groups or first rows? */
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

/* -- groups and first rows of each key ----------------------------------------------------------- */

struct WholeRow
{
	int			varno;
	int			depth;
};

/* Is the relation's whole row read, which is about to have more columns? */
static bool
reads_whole_row(Node *node, void *context)
{
	WholeRow   *row = static_cast<WholeRow *>(context);
	bool		found;

	if (node == nullptr)
		return false;
	if (IsA(node, Var))
		return static_cast<int>(((Var *) node)->varno) == row->varno && static_cast<int>(((Var *) node)->varlevelsup) == row->depth && ((Var *) node)->varattno == 0;
	if (!IsA(node, Query))
		return expression_tree_walker(node, reinterpret_cast<bool (*)()>(reads_whole_row), context);
	row->depth++;
	found = query_tree_walker((Query *) node, reinterpret_cast<bool (*)()>(reads_whole_row), context, 0);
	row->depth--;
	return found;
}

/* How many rows LIMIT lets through, if it is a constant; 0. */
static int64
rows_of_limit(const Query *body)
{
	const Const *limit = body->limitCount == nullptr ? nullptr : (const Const *) folded(body->limitCount);

	return limit == nullptr || !IsA(limit, Const) || limit->constisnull || body->limitOffset != nullptr || body->limitOption != LIMIT_OPTION_COUNT ? 0
		: DatumGetInt64(limit->constvalue);
}

/* Is the item a subquery of what is to its left, by equal keys, that groups its rows or takes the first ones? */
static bool
is_keyed_lateral(const Laterals *l, Node *item, Node *left, Correlation *by)
{
	const int	varno = IsA(item, RangeTblRef) ? ((RangeTblRef *) item)->rtindex : 0;
	const RangeTblEntry *rte = varno == 0 ? nullptr : rt_fetch(varno, l->level->query->rtable);
	WholeRow	row = {varno, 0};
	Query		body;
	LevelsRead	read;

	if (rte == nullptr || rte->rtekind != RTE_SUBQUERY || !rte->lateral)
		return false;
	body = *rte->subquery;
	if (body.groupingSets != NIL || body.distinctClause != NIL || body.hasSubLinks || (body.hasAggs && body.groupClause == NIL) ||
		(body.limitCount != nullptr ? rows_of_limit(&body) <= 0 || rows_of_limit(&body) > PG_INT32_MAX : body.groupClause == NIL))
		return false;
	body.limitCount = nullptr;
	read = levels_read((Node *) list_make2(body.targetList, body.havingQual));
	return !read.outer && !read.further && is_quiet_query(&body, true, l->level->query) && split_correlation(l->level, rte->subquery, by) &&
		are_in(left, pull_varnos(nullptr, (Node *) by->outer)) &&
		!query_tree_walker(l->level->query, reinterpret_cast<bool (*)()>(reads_whole_row), &row, 0);
}

static Index
next_reference(const List *entries)
{
	Index		ref = 0;
	ListCell   *lc;

	foreach(lc, entries)
		ref = Max(ref, lfirst_node(TargetEntry, lc)->ressortgroupref);
	return ref + 1;
}

/* Numbers the rows of each partition in the order of the subquery. */
static Expr *
row_number_by(Query *body, List *partition)
{
	WindowClause *window = makeNode(WindowClause);
	WindowFunc *number = makeNode(WindowFunc);

	window->partitionClause = static_cast<List *>(copyObjectImpl(partition));
	window->orderClause = body->sortClause;
	window->frameOptions = FRAMEOPTION_DEFAULTS;
	window->winref = 1;
	number->winfnoid = F_ROW_NUMBER;
	number->wintype = INT8OID;
	number->winref = 1;
	number->location = -1;
	body->windowClause = list_make1(window);
	body->hasWindowFuncs = true;
	return (Expr *) number;
}

/* The subquery for all keys, which are columns behind those that it has; the conditions by which it is joined. */
static List *
join_keyed(Laterals *l, Node *item, const Correlation *by)
{
	const int	varno = ((RangeTblRef *) item)->rtindex;
	RangeTblEntry *rte = rt_fetch(varno, l->level->query->rtable);
	Query	   *body = rte->subquery;
	const int64 limit = rows_of_limit(body);
	List	   *shown = NIL;
	List	   *junk = NIL;
	List	   *keys = NIL;
	List	   *conditions = NIL;
	ListCell   *lc;

	foreach(lc, body->targetList)
	{
		if (lfirst_node(TargetEntry, lc)->resjunk)
			junk = lappend(junk, lfirst(lc));
		else
			shown = lappend(shown, lfirst(lc));
	}
	foreach(lc, by->inner)
	{
		Node	   *key = static_cast<Node *>(lfirst(lc));
		OpExpr	   *op = static_cast<OpExpr *>(copyObjectImpl(list_nth(by->equal, foreach_current_index(lc))));
		Node	   *outer = static_cast<Node *>(copyObjectImpl(list_nth(by->outer, foreach_current_index(lc))));
		Var		   *var = makeVar(varno, list_length(shown) + 1, exprType(key), exprTypmod(key), exprCollation(key), 0);
		TargetEntry *entry = makeTargetEntry((Expr *) copyObjectImpl(key), var->varattno, psprintf("key%d", foreach_current_index(lc) + 1), false);

		op->args = equal(linitial(op->args), key) ? list_make2(var, outer) : list_make2(outer, var);
		conditions = lappend(conditions, op);
		keys = lappend(keys, group_by(entry, next_reference(list_concat_copy(shown, junk))));
		shown = lappend(shown, entry);
		rte->eref->colnames = lappend(rte->eref->colnames, makeString(entry->resname));
	}
	if (limit > 0)
	{
		Var		   *var = makeVar(varno, list_length(shown) + 1, INT8OID, -1, InvalidOid, 0);
		Const	   *end = makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(limit + 1), false, FLOAT8PASSBYVAL);

		shown = lappend(shown, makeTargetEntry(row_number_by(body, keys), var->varattno, pstrdup("number"), false));
		conditions = lappend(conditions, make_opclause(Int8LessOperator, BOOLOID, false, (Expr *) var, (Expr *) end, InvalidOid, InvalidOid));
		rte->eref->colnames = lappend(rte->eref->colnames, makeString(pstrdup("number")));
	}
	foreach(lc, junk)
		lfirst_node(TargetEntry, lc)->resno = list_length(shown) + foreach_current_index(lc) + 1;
	body->targetList = list_concat(shown, junk);
	if (body->groupClause != NIL)
		body->groupClause = list_concat(body->groupClause, keys);
	body->jointree->quals = by->stays == NIL ? nullptr : (Node *) make_ands_explicit(by->stays);
	body->limitCount = nullptr;
	body->sortClause = NIL;
	rte->lateral = false;
	l->keyed = true;
	return conditions;
}

/* -- the join tree ------------------------------------------------------------------------------------ */

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
	Correlation by;
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
		if (is_keyed_lateral(l, join->rarg, join->larg, &by))
		{
			join->quals = make_and_qual(join->quals, (Node *) make_ands_explicit(join_keyed(l, join->rarg, &by)));
			return jointree;
		}
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
		else if (is_keyed_lateral(l, item, left, &by))
		{
			((FromExpr *) jointree)->quals = make_and_qual(((FromExpr *) jointree)->quals, (Node *) make_ands_explicit(join_keyed(l, item, &by)));
			items = lappend(items, item);
		}
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
	return laterals.nfound > 0 || laterals.keyed;
}

}  // namespace gpuvm
