/*
 * insert.cc: the SELECT below INSERT, as a query level whose rows may be made in stages.
 *
 * PostgreSQL plans it as a subquery, or pulls it up into the level of the INSERT, where its paths are not to be told
 * from those that change the table. Here it stays a level, with all CTEs of the statement: a statement of its own.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/pathnodes.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
}

#include "plan/rel.h"
#include "planner/whole.h"

namespace gpuvm {

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

Query *
insert_with_level(const Query *parse, const Query **rows)
{
	Query	   *insert = select_below(parse) == nullptr ? nullptr : static_cast<Query *>(copyObjectImpl(parse));
	Query	   *select = insert == nullptr ? nullptr : select_below(insert);

	if (select == nullptr || !hand_down_ctes(insert, select))
		return nullptr;
	*rows = static_cast<const Query *>(copyObjectImpl(select));
	/* OFFSET 0 keeps PostgreSQL from pulling it up */
	if (select->limitCount == nullptr && select->limitOffset == nullptr)
		select->limitOffset = rel_bigint(0);
	return insert;
}

bool
is_statement_level(const PlannerInfo *root)
{
	const PlannerInfo *parent = root->parent_root;

	return root->parse->commandType == CMD_SELECT &&
		(parent == nullptr || (parent->parent_root == nullptr && parent->parse->commandType == CMD_INSERT));
}

}  // namespace gpuvm
