/* rewrite_reads.cc: what expressions of a query tree read. */
#include "pg/pg.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
}

#include "planner/rewrite.h"

namespace gpuvm {

static bool
read_walker(Node *node, void *context)
{
	LevelsRead *read = static_cast<LevelsRead *>(context);

	if (node == nullptr)
		return false;
	if (IsA(node, Var))
	{
		int			level = static_cast<int>(((Var *) node)->varlevelsup) - read->depth;

		read->own |= level == 0;
		read->outer |= level == 1;
		read->further |= level > 1;
		return false;
	}
	/* an aggregate of another level is that one's to compute */
	if (IsA(node, Aggref) && static_cast<int>(((Aggref *) node)->agglevelsup) > read->depth)
		read->further = true;
	if (IsA(node, GroupingFunc) && static_cast<int>(((GroupingFunc *) node)->agglevelsup) > read->depth)
		read->further = true;
	if (IsA(node, Query))
	{
		read->depth++;
		query_tree_walker((Query *) node, reinterpret_cast<bool (*)()>(read_walker), context, 0);
		read->depth--;
		return false;
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(read_walker), context);
}

LevelsRead
levels_read(Node *node)
{
	LevelsRead	read = {};

	read_walker(node, &read);
	return read;
}

LevelsRead
levels_read_by(Query *query)
{
	LevelsRead	read = {};

	query_tree_walker(query, reinterpret_cast<bool (*)()>(read_walker), &read, 0);
	return read;
}

List *
conjuncts(Node *quals)
{
	List	   *parts = NIL;
	ListCell   *lc;

	if (quals == nullptr)
		return NIL;
	if (!IsA(quals, List) && !is_andclause(quals))
		return list_make1(quals);
	foreach(lc, IsA(quals, List) ? (List *) quals : ((BoolExpr *) quals)->args)
		parts = list_concat(parts, conjuncts(static_cast<Node *>(lfirst(lc))));
	return parts;
}

static List *
conditions_below(Node *jointree)
{
	List	   *found = NIL;
	ListCell   *lc;

	if (IsA(jointree, FromExpr))
	{
		FromExpr   *from = (FromExpr *) jointree;

		foreach(lc, from->fromlist)
			found = list_concat(found, conditions_below(static_cast<Node *>(lfirst(lc))));
		return list_concat(found, conjuncts(from->quals));
	}
	if (IsA(jointree, JoinExpr))
	{
		JoinExpr   *join = (JoinExpr *) jointree;

		if (join->jointype == JOIN_INNER || join->jointype == JOIN_LEFT)
			found = conditions_below(join->larg);
		if (join->jointype == JOIN_INNER || join->jointype == JOIN_RIGHT)
			found = list_concat(found, conditions_below(join->rarg));
		if (join->jointype == JOIN_INNER)
			found = list_concat(found, conjuncts(join->quals));
	}
	return found;
}

List *
conditions_of(Query *query)
{
	return conditions_below((Node *) query->jointree);
}

bool
finds_relation(Node *jointree, int varno, bool *nulled)
{
	ListCell   *lc;

	if (IsA(jointree, RangeTblRef))
		return ((RangeTblRef *) jointree)->rtindex == varno;
	if (IsA(jointree, FromExpr))
	{
		foreach(lc, ((FromExpr *) jointree)->fromlist)
		{
			if (finds_relation(static_cast<Node *>(lfirst(lc)), varno, nulled))
				return true;
		}
		return false;
	}
	if (IsA(jointree, JoinExpr))
	{
		JoinExpr   *join = (JoinExpr *) jointree;

		if (finds_relation(join->larg, varno, nulled))
		{
			*nulled |= join->jointype == JOIN_RIGHT || join->jointype == JOIN_FULL;
			return true;
		}
		if (finds_relation(join->rarg, varno, nulled))
		{
			*nulled |= join->jointype == JOIN_LEFT || join->jointype == JOIN_FULL;
			return true;
		}
	}
	return false;
}

/* May the subquery's column raise where it is read? It may be computed there, if nothing holds the subquery together. */
static bool
is_loud_column(const Query *query, AttrNumber attnum)
{
	const TargetEntry *entry;
	ListCell   *lc;

	if (query->setOperations != nullptr)
	{
		foreach(lc, query->rtable)
		{
			const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

			if (rte->rtekind == RTE_SUBQUERY && is_loud_column(rte->subquery, attnum))
				return true;
		}
		return false;
	}
	if (query->hasAggs || query->groupClause != NIL || query->groupingSets != NIL || query->havingQual != nullptr || query->distinctClause != NIL ||
		query->hasWindowFuncs || query->hasTargetSRFs || query->limitCount != nullptr || query->limitOffset != nullptr)
		return false;
	entry = get_tle_by_resno(query->targetList, attnum);
	return entry != nullptr && (!is_quiet((Node *) entry->expr) || reads_loud(query, (Node *) entry->expr));
}

bool
reads_loud(const Query *query, Node *node)
{
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, pull_vars_of_level(node, 0))
	{
		const Var  *var = static_cast<const Var *>(lfirst(lc));
		const RangeTblEntry *rte = !IsA(var, Var) || var->varno <= 0 || var->varattno <= 0 ? nullptr : rt_fetch(var->varno, query->rtable);

		if (rte == nullptr)
			continue;
		if (rte->rtekind == RTE_SUBQUERY && is_loud_column(rte->subquery, var->varattno))
			return true;
		if (rte->rtekind == RTE_JOIN && var->varattno <= list_length(rte->joinaliasvars))
		{
			Node	   *alias = static_cast<Node *>(list_nth(rte->joinaliasvars, var->varattno - 1));

			if (alias != nullptr && reads_loud(query, alias))
				return true;
		}
		if (rte->rtekind != RTE_CTE || rte->ctelevelsup != 0)
			continue;
		foreach(lc2, query->cteList)
		{
			const CommonTableExpr *cte = lfirst_node(CommonTableExpr, lc2);

			if (strcmp(cte->ctename, rte->ctename) == 0 && !cte->cterecursive && IsA(cte->ctequery, Query) &&
				is_loud_column((Query *) cte->ctequery, var->varattno))
				return true;
		}
	}
	return false;
}

static bool is_loud_condition(Node *condition);

/* A subquery's value is one like any other; its own conditions are looked at as those of a query level. */
static Node *
without_sublinks(Node *node, void *loud)
{
	Param	   *value;

	if (node == nullptr)
		return nullptr;
	if (!IsA(node, SubLink))
		return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(without_sublinks), loud);
	*static_cast<bool *>(loud) |= is_loud_condition(((SubLink *) node)->testexpr);
	value = makeNode(Param);
	value->paramkind = PARAM_EXTERN;
	value->paramid = 1;
	value->paramtype = exprType(node);
	value->paramtypmod = exprTypmod(node);
	value->paramcollid = exprCollation(node);
	value->location = -1;
	return (Node *) value;
}

static bool
is_loud_condition(Node *condition)
{
	bool		loud = false;

	condition = without_sublinks(condition, &loud);
	return loud || (condition != nullptr && !is_quiet(condition));
}

static bool
loud_condition_walker(Node *node, void *context)
{
	List	   *conditions = NIL;
	ListCell   *lc;

	if (node == nullptr)
		return false;
	if (IsA(node, FromExpr))
		conditions = conjuncts(((FromExpr *) node)->quals);
	else if (IsA(node, JoinExpr))
		conditions = conjuncts(((JoinExpr *) node)->quals);
	else if (IsA(node, Query))
	{
		const Query *query = (const Query *) node;

		conditions = conjuncts(query->havingQual);
		foreach(lc, query == context ? NIL : query->targetList)
		{
			if (is_loud_column(query, lfirst_node(TargetEntry, lc)->resno))
				return true;
		}
	}
	foreach(lc, conditions)
	{
		if (is_loud_condition(static_cast<Node *>(lfirst(lc))))
			return true;
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, reinterpret_cast<bool (*)()>(loud_condition_walker), context, 0);
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(loud_condition_walker), context);
}

bool
has_loud_conditions(const Query *topmost)
{
	return loud_condition_walker((Node *) const_cast<Query *>(topmost), const_cast<Query *>(topmost));
}

}  // namespace gpuvm
