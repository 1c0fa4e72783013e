/*
 * levels.cc: query levels below the outermost one whose rows may be made in stages, as if each were a statement.
 *
 * PostgreSQL plans such a subquery by itself, or pulls it up into the level around it, and hands conditions down to it.
 * A level of ours stays as it is written: LIMIT and OFFSET 0 see to that. Its number tells its planner from others.
 */
#include "pg/pg.h"

extern "C" {
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
}

#include "plan/rel.h"
#include "plan/shadow.h"
#include "plan/translate.h"
#include "planner/whole.h"

namespace gpuvm {

/* -- INSERT -------------------------------------------------------------------------------------- */

/* The only query level below that of the INSERT; NULL: there is none, or there are others, too. */
static Query *
select_below(const Query *insert)
{
	const List *from = insert->jointree->fromlist;
	const RangeTblEntry *rte;

	if (insert->commandType != CMD_INSERT || insert->hasSubLinks || insert->hasModifyingCTE ||
		list_length(from) != 1 || insert->jointree->quals != nullptr || !IsA(linitial(from), RangeTblRef))
		return nullptr;
	rte = rt_fetch(linitial_node(RangeTblRef, from)->rtindex, insert->rtable);
	return rte->rtekind == RTE_SUBQUERY ? rte->subquery : nullptr;
}

static bool
has_cte(const Query *query, const char *name)
{
	ListCell   *lc;

	foreach(lc, query->cteList)
	{
		if (strcmp(lfirst_node(CommonTableExpr, lc)->ctename, name) == 0)
			return true;
	}
	return false;
}

/* CTEs before INSERT become the SELECT's, as nothing else reads them; false: it has one of the same name. */
static bool
hand_down_ctes(Query *insert, Query *select)
{
	ListCell   *lc;

	foreach(lc, insert->cteList)
	{
		if (has_cte(select, lfirst_node(CommonTableExpr, lc)->ctename))
			return false;
	}
	if (insert->cteList != NIL)
		IncrementVarSublevelsUp((Node *) select, -1, 1);
	select->cteList = list_concat(insert->cteList, select->cteList);
	select->hasRecursive |= insert->hasRecursive;
	insert->cteList = NIL;
	insert->hasRecursive = false;
	return true;
}

/* PostgreSQL pulls none of the level up, and hands no condition down. It uses no such number below the outermost one. */
static void
keep_level(Query *query, int number)
{
	if (query->limitCount == nullptr && query->limitOffset == nullptr)
		query->limitOffset = rel_bigint(0);
	query->queryId = number;
}

Query *
insert_with_level(const Query *parse, WholeStatement *whole)
{
	Query	   *insert = select_below(parse) == nullptr ? nullptr : static_cast<Query *>(copyObjectImpl(parse));
	Query	   *select = insert == nullptr ? nullptr : select_below(insert);

	if (select == nullptr || !hand_down_ctes(insert, select))
		return nullptr;
	whole->query = static_cast<const Query *>(copyObjectImpl(select));
	whole->level = 1;
	keep_level(select, whole->level);
	return insert;
}

/* -- any statement --------------------------------------------------------------------------------- */

/* Does PostgreSQL plan it by itself, as more than rows of scans or joins? */
static bool
is_worth_stages(const Query *query)
{
	const SetOperationStmt *set = (const SetOperationStmt *) query->setOperations;

	return query->hasAggs || query->groupClause != NIL || query->groupingSets != NIL || query->hasWindowFuncs ||
		query->distinctClause != NIL || (set != nullptr && (set->op != SETOP_UNION || !set->all));
}

/* Is there a condition for the rows of this relation alone, which PostgreSQL may hand down? */
static bool
has_condition(Node *jointree, int relid)
{
	Node	   *quals;
	ListCell   *lc;

	if (IsA(jointree, RangeTblRef))
		return false;
	if (IsA(jointree, JoinExpr))
	{
		const JoinExpr *join = (const JoinExpr *) jointree;

		quals = join->quals;
		if (has_condition(join->larg, relid) || has_condition(join->rarg, relid))
			return true;
	}
	else
	{
		quals = ((FromExpr *) jointree)->quals;
		foreach(lc, ((FromExpr *) jointree)->fromlist)
		{
			if (has_condition(static_cast<Node *>(lfirst(lc)), relid))
				return true;
		}
	}
	foreach(lc, make_ands_implicit((Expr *) quals))
	{
		int			only;

		if (bms_get_singleton_member(pull_varnos(nullptr, static_cast<Node *>(lfirst(lc))), &only) && only == relid)
			return true;
	}
	return false;
}

static void look_below(List **found, Query *query);

static void
look_at(List **found, Query *query)
{
	WholeStatement *whole;

	check_stack_depth();
	if (is_worth_stages(query) && !refers_outside((Node *) query, false) && tables_read(query).imported)
	{
		whole = static_cast<WholeStatement *>(palloc0(sizeof(WholeStatement)));
		whole->query = static_cast<const Query *>(copyObjectImpl(query));
		whole->level = list_length(*found) + 1;
		whole->algebra = translate_quietly(whole->query);
		if (whole->algebra != nullptr)
		{
			*found = lappend(*found, whole);
			keep_level(query, whole->level);
			return;
		}
	}
	look_below(found, query);
}

/* Subqueries in expressions: of EXISTS PostgreSQL makes a join or look-ups. */
static bool
look_at_sublinks(Node *node, List **found)
{
	const SubLink *sublink = (const SubLink *) node;

	if (node == nullptr || IsA(node, Query))
		return false;
	if (IsA(node, SubLink) && sublink->subLinkType != EXISTS_SUBLINK && IsA(sublink->subselect, Query))
		look_at(found, (Query *) sublink->subselect);
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(look_at_sublinks), found);
}

static void
look_below(List **found, Query *query)
{
	ListCell   *lc;

	foreach(lc, query->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind == RTE_SUBQUERY && !rte->lateral &&
			!has_condition((Node *) query->jointree, foreach_current_index(lc) + 1))
			look_at(found, rte->subquery);
	}
	foreach(lc, query->cteList)
	{
		const CommonTableExpr *cte = lfirst_node(CommonTableExpr, lc);

		if (!cte->cterecursive && cte->cterefcount > 0)
			look_at(found, (Query *) cte->ctequery);
	}
	if (query->hasSubLinks)
		query_tree_walker(query, reinterpret_cast<bool (*)()>(look_at_sublinks), found,
						  QTW_IGNORE_RT_SUBQUERIES | QTW_IGNORE_CTE_SUBQUERIES);
}

static bool
has_levels(const Query *query)
{
	ListCell   *lc;

	foreach(lc, query->rtable)
	{
		if (lfirst_node(RangeTblEntry, lc)->rtekind == RTE_SUBQUERY)
			return true;
	}
	return query->hasSubLinks || query->cteList != NIL;
}

Query *
with_levels(const Query *parse, List **levels)
{
	Query	   *copy;

	if (!has_levels(parse))
		return nullptr;
	copy = static_cast<Query *>(copyObjectImpl(parse));
	look_below(levels, copy);
	return *levels == NIL ? nullptr : copy;
}

WholeStatement *
whole_of_level(const List *levels, const PlannerInfo *root)
{
	const int	number = root->parent_root == nullptr ? 0 : static_cast<int>(root->parse->queryId);
	ListCell   *lc;

	if (root->parse->commandType != CMD_SELECT || (root->parent_root != nullptr && number == 0))
		return nullptr;
	foreach(lc, levels)
	{
		WholeStatement *whole = static_cast<WholeStatement *>(lfirst(lc));

		if (whole->level == number)
			return whole;
	}
	return nullptr;
}

}  // namespace gpuvm
