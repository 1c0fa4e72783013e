/*
 * rewrite_scalar.cc: a correlated aggregate becomes a join with a grouped subquery.
 *
 *	x < (SELECT f(agg(e)) FROM t WHERE t.k = o.k AND ...)
 *
 * asks for one group of SELECT k, agg(e) FROM t WHERE ... GROUP BY k, at most one, as the equality is that of the
 * groups. Where the condition fails for what the subquery gives of no rows, that is a join; else, and in the target
 * list, a left join, whose missing counts are 0. f stands outside: the target list computes it of groups asked for.
 * EXISTS, and IN, that are part of a condition are counts that are more than 0 (rewrite_counts.cc).
 */
#include "pg/pg.h"

extern "C" {
#include "access/stratnum.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_node.h"
#include "parser/parse_oper.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

#include "pg/compat.h"
#include "planner/rewrite.h"

namespace gpuvm {

SortGroupClause *
group_by(TargetEntry *entry, Index ref)
{
	SortGroupClause *group = makeNode(SortGroupClause);

	entry->ressortgroupref = group->tleSortGroupRef = ref;
	get_sort_group_operators(exprType((Node *) entry->expr), false, false, false, &group->sortop, &group->eqop, nullptr, &group->hashable);
	return group;
}

/* Collects the aggregates of the value; true if it reads anything else of the subquery. */
static bool
value_walker(Node *node, void *context)
{
	Scalar	   *s = static_cast<Scalar *>(context);

	if (node == nullptr)
		return false;
	switch (nodeTag(node))
	{
		case T_Aggref:
			{
				LevelsRead	read = levels_read(node);

				s->aggs = list_append_unique(s->aggs, node);
				return read.outer || read.further || checkExprHasSubLink(node) || !is_quiet(node);
			}
		case T_Var:
			return ((Var *) node)->varlevelsup != 1;
		case T_SubLink:
		case T_GroupingFunc:
		case T_WindowFunc:
			return true;
		default:
			return expression_tree_walker(node, reinterpret_cast<bool (*)()>(value_walker), context);
	}
}

bool
analyse_scalar(const RewriteLevel *level, Query *body, Node *value, Scalar *s)
{
	if (!body->hasAggs || body->groupClause != NIL || body->groupingSets != NIL || body->havingQual != nullptr ||
		body->distinctClause != NIL || body->sortClause != NIL || !is_quiet_query(body, false, level->query))
		return false;
	*s = Scalar{body, value};
	if (value_walker(value, s) || s->aggs == NIL)
		return false;
	return split_correlation(level, body, &s->by);
}

static bool
analyse(const RewriteLevel *level, const SubLink *sublink, Scalar *s)
{
	Query	   *body = (Query *) sublink->subselect;

	return sublink->subLinkType == EXPR_SUBLINK && list_length(body->targetList) == 1 &&
		analyse_scalar(level, body, (Node *) linitial_node(TargetEntry, body->targetList)->expr, s);
}

struct ReplaceAggregates
{
	const Scalar *s;
	GroupedAs	by;
	int			rtindex;
	int			join_rtindex;
};

static bool
is_count(const Aggref *agg)
{
	return agg->aggfnoid == F_COUNT_ || agg->aggfnoid == F_COUNT_ANY;
}

static Node *
replace_aggregates(Node *node, void *context)
{
	const ReplaceAggregates *r = static_cast<const ReplaceAggregates *>(context);

	if (node == nullptr)
		return nullptr;
	if (IsA(node, Aggref))
	{
		const Aggref *agg = (const Aggref *) node;
		Const	   *none = is_count(agg) ? makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(0), false, FLOAT8PASSBYVAL)
			: makeNullConst(agg->aggtype, -1, agg->aggcollid);
		int			i = 0;
		Var		   *var;
		CoalesceExpr *coalesce;

		if (r->by == GroupedAs::Empty)
			return (Node *) none;
		while (!equal(list_nth(r->s->aggs, i), agg))
			i++;
		var = makeVar(r->rtindex, i + 1, agg->aggtype, -1, agg->aggcollid, 0);
		if (r->by == GroupedAs::Joined)
			return (Node *) var;
		compat_set_nulled(var, r->join_rtindex);
		if (!is_count(agg))
			return (Node *) var;
		coalesce = makeNode(CoalesceExpr);
		coalesce->coalescetype = agg->aggtype;
		coalesce->args = list_make2(var, none);
		coalesce->location = -1;
		return (Node *) coalesce;
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(replace_aggregates), context);
}

Node *
outer_value(const Scalar *s, GroupedAs by, int rtindex, int join_rtindex)
{
	ReplaceAggregates r = {s, by, rtindex, join_rtindex};
	Node	   *value = static_cast<Node *>(copyObjectImpl(s->value));

	IncrementVarSublevelsUp(value, -1, 1);
	return replace_aggregates(value, &r);
}

struct ReplaceSubLink
{
	const SubLink *sublink;
	Node	   *by;
};

/* Subqueries are not copied: they are found by their address again. */
static Node *
replace_sublink(Node *node, void *context)
{
	const ReplaceSubLink *r = static_cast<const ReplaceSubLink *>(context);

	if (node == nullptr)
		return nullptr;
	if (IsA(node, SubLink))
		return (const SubLink *) node == r->sublink ? r->by : node;
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(replace_sublink), context);
}

static Node *
replaced(Node *expr, const SubLink *sublink, Node *by)
{
	ReplaceSubLink r = {sublink, by};

	return replace_sublink(expr, &r);
}

static bool
sublink_walker(Node *node, void *context)
{
	List	  **sublinks = static_cast<List **>(context);

	if (node == nullptr)
		return false;
	if (IsA(node, SubLink))
	{
		if (((SubLink *) node)->subLinkType == EXPR_SUBLINK || ((SubLink *) node)->subLinkType == EXISTS_SUBLINK)
			*sublinks = lappend(*sublinks, node);
		return false;
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(sublink_walker), context);
}

int
add_grouped(RewriteLevel *level, const Scalar *s)
{
	Query	   *body = s->body;
	ParseState *pstate = make_parsestate(nullptr);
	List	   *quals = s->by.stays;
	int			n = 0;
	ListCell   *lc;

	if (level->reduce)
	{
		List	   *reducing = reducing_conditions(level, s->by.equal, s->by.inner, s->by.outer);

		body->hasSubLinks |= reducing != NIL;
		level->reduced |= reducing != NIL;
		quals = list_concat_copy(quals, reducing);
	}
	body->jointree->quals = quals == NIL ? nullptr : (Node *) make_ands_explicit(quals);
	body->targetList = NIL;
	foreach(lc, s->aggs)
	{
		body->targetList = lappend(body->targetList, makeTargetEntry(static_cast<Expr *>(lfirst(lc)), n + 1, psprintf("value%d", n + 1), false));
		n++;
	}
	foreach(lc, s->by.inner)
	{
		Node	   *key = static_cast<Node *>(lfirst(lc));
		TargetEntry *entry = makeTargetEntry((Expr *) key, n + 1, psprintf("key%d", foreach_current_index(lc) + 1), false);

		body->targetList = lappend(body->targetList, entry);
		body->groupClause = lappend(body->groupClause, group_by(entry, foreach_current_index(lc) + 1));
		n++;
	}
	addRangeTableEntryForSubquery(pstate, body, makeAlias("scalar_subquery", NIL), false, false);
	level->query->rtable = lappend(level->query->rtable, linitial(pstate->p_rtable));
	return list_length(level->query->rtable);
}

List *
join_conditions(const Scalar *s, int rtindex)
{
	List	   *conditions = NIL;

	for (int i = 0; i < list_length(s->by.equal); i++)
	{
		OpExpr	   *op = static_cast<OpExpr *>(copyObjectImpl(list_nth(s->by.equal, i)));
		Node	   *key = static_cast<Node *>(list_nth(s->by.inner, i));
		Node	   *var = (Node *) makeVar(rtindex, list_length(s->aggs) + i + 1, exprType(key), exprTypmod(key), exprCollation(key), 0);
		Node	   *outer = static_cast<Node *>(copyObjectImpl(list_nth(s->by.outer, i)));
		bool		inner_first = equal(linitial(op->args), key);

		op->args = inner_first ? list_make2(var, outer) : list_make2(outer, var);
		conditions = lappend(conditions, op);
	}
	return conditions;
}

struct Shelter
{
	const SubLink *sublink;
	const Bitmapset *relations;
};

static bool
contains_walker(Node *node, void *context)
{
	return node != nullptr && (node == context || expression_tree_walker(node, reinterpret_cast<bool (*)()>(contains_walker), context));
}

/* What reads these relations, and not the subquery, is one column (of no relation that there is). What reads none could move to any place. */
static Node *
shelter(Node *node, void *context)
{
	const Shelter *s = static_cast<const Shelter *>(context);

	if (node == nullptr || IsA(node, Const) || node == (const Node *) s->sublink)
		return node;
	if (!IsA(node, List) && !IsA(node, CaseWhen) && !IsA(node, CaseTestExpr) && !contains_walker(node, const_cast<SubLink *>(s->sublink)))
	{
		const Bitmapset *read = pull_varnos(nullptr, node);

		if (!bms_is_empty(read) && bms_is_subset(read, s->relations))
			return (Node *) makeVar(0, 1, exprType(node), exprTypmod(node), exprCollation(node), 0);
	}
	return IsA(node, SubLink) ? node : expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(shelter), context);
}

/* The relations of the outer level that the subquery's keys are compared with. */
static Bitmapset *
asking_relations(const RewriteLevel *level, const Scalar *s)
{
	Bitmapset  *relations = pull_varnos(nullptr, (Node *) s->by.outer);
	int			varno = -1;

	while ((varno = bms_next_member(relations, varno)) >= 0)
	{
		/* one column of a join does not say where the others come from */
		if (rt_fetch(varno, level->query->rtable)->rtekind == RTE_JOIN)
			relations = bms_del_member(relations, varno);
	}
	return relations;
}

/*
 * Can the expression be evaluated for any row of the outer level, and any group? For PostgreSQL may put the condition
 * (or one of another level that a target list goes into) below the join, or before its equality. But what reads only
 * the relations that ask would have been evaluated for as many of their rows.
 */
static bool
is_movable(const RewriteLevel *level, Node *expr, const SubLink *sublink, const Scalar *s, bool condition)
{
	Shelter		relations = {sublink, asking_relations(level, s)};

	if (condition && contain_volatile_functions(expr))
		return false;
	/* a value that a statement only gives is computed of groups asked for; but before rows are sorted, and LIMIT may leave some out */
	if (!condition && level->topmost && level->query->sortClause == NIL)
		return true;
	expr = replaced(shelter(expr, &relations), sublink, outer_value(s, GroupedAs::Joined, 0, 0));
	return is_quiet(expr) && !reads_loud(level->query, expr);
}

/* Does the condition, over the value of no rows, keep no row? */
static bool
fails_for_none(Node *condition, const SubLink *sublink, const Scalar *s)
{
	const Const *known = (const Const *) folded(replaced(condition, sublink, outer_value(s, GroupedAs::Empty, 0, 0)));

	return known != nullptr && IsA(known, Const) && (known->constisnull || !DatumGetBool(known->constvalue));
}

JoinExpr *
left_join(RewriteLevel *level, const Scalar *s, int rtindex)
{
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	JoinExpr   *join = makeNode(JoinExpr);
	RangeTblRef *ref = makeNode(RangeTblRef);

	/* as that of MERGE: nothing names its columns */
	rte->rtekind = RTE_JOIN;
	rte->jointype = JOIN_LEFT;
	rte->eref = makeAlias("scalar_subquery_join", NIL);
	level->query->rtable = lappend(level->query->rtable, rte);
	ref->rtindex = rtindex;
	join->jointype = JOIN_LEFT;
	join->rarg = (Node *) ref;
	join->quals = (Node *) make_ands_explicit(join_conditions(s, rtindex));
	join->rtindex = rtindex + 1;
	return join;
}

/*
 * The expression with what can be rewritten in it: a condition, which then goes above the outer joins if `*above`, or
 * of the target list (`above` NULL).
 */
static Node *
rewrite_expression(RewriteLevel *level, Node *expr, bool *above)
{
	List	   *sublinks = NIL;
	List	   *planned = NIL;
	List	   *members;
	ListCell   *lc;

	if (above != nullptr && is_joined_by_planner(expr))
		return expr;
	/* as counts they are looked at with the others */
	members = above != nullptr ? members_in(expr) : NIL;
	foreach(lc, members)
	{
		SubLink    *count = member_count(lfirst_node(SubLink, lc));
		Scalar		s;

		if (count != nullptr && analyse(level, count, &s))
			expr = replaced(expr, lfirst_node(SubLink, lc), (Node *) count);
	}
	sublink_walker(expr, &sublinks);
	if (sublinks == NIL)
		return expr;
	/* what the planner never gets to see must not raise an error */
	sublink_walker(folded(expr), &planned);
	if (list_length(planned) != list_length(sublinks))
		return expr;
	foreach(lc, sublinks)
	{
		const SubLink *sublink = lfirst_node(SubLink, lc);
		const SubLink *value = sublink->subLinkType == EXISTS_SUBLINK ? exists_count(sublink) : sublink;
		Scalar		s;
		bool		left;
		int			rtindex;

		if (value == nullptr || !analyse(level, value, &s) || !is_movable(level, expr, sublink, &s, above != nullptr))
			continue;
		left = above == nullptr || !fails_for_none(expr, sublink, &s);
		rtindex = list_length(level->query->rtable) + 1;
		expr = replaced(expr, sublink, outer_value(&s, left ? GroupedAs::LeftJoined : GroupedAs::Joined, rtindex, rtindex + 1));
		add_grouped(level, &s);
		if (left)
		{
			level->outer_joins = lappend(level->outer_joins, left_join(level, &s, rtindex));
			if (above != nullptr)
				*above = true;
		}
		else
		{
			RangeTblRef *ref = makeNode(RangeTblRef);

			ref->rtindex = rtindex;
			level->from = lappend(level->from, ref);
			level->quals = list_concat(level->quals, join_conditions(&s, rtindex));
		}
	}
	return expr;
}

bool
rewrite_scalars(RewriteLevel *level)
{
	Query	   *query = level->query;
	int			before = list_length(query->rtable);
	ListCell   *lc;

	foreach(lc, conjuncts(query->jointree->quals))
	{
		bool		above = false;
		Node	   *condition = rewrite_expression(level, static_cast<Node *>(lfirst(lc)), &above);

		if (above)
			level->outer_quals = lappend(level->outer_quals, condition);
		else
			level->quals = lappend(level->quals, condition);
	}
	/* a level's groups come behind its joins, its target list behind them */
	if (!query->hasAggs && query->groupClause == NIL && query->groupingSets == NIL && query->havingQual == nullptr)
	{
		foreach(lc, query->targetList)
		{
			TargetEntry *entry = lfirst_node(TargetEntry, lc);

			entry->expr = (Expr *) rewrite_expression(level, (Node *) entry->expr, nullptr);
		}
	}
	return list_length(query->rtable) > before;
}

}  // namespace gpuvm
