/* translate_expr.cc: expressions: columns by number, subqueries as joins, folded constants. */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
}

#include "pg/compat.h"
#include "plan/translation.h"

namespace gpuvm {

/* A column of the level, where rows are not grouped yet. */
static Node *
row_column(Level *level, const Var *var)
{
	const RangeTblEntry *rte = rt_fetch(var->varno, level->query->rtable);

	if (rte->rtekind == RTE_JOIN && var->varattno > 0)
		return translate_argument(static_cast<Node *>(list_nth(rte->joinaliasvars, var->varattno - 1)), level);
	if (var->varattno == 0)
	{
		refuse(level->t, REFUSED_WHOLE_ROW);
		return nullptr;
	}
	if (level->leaves[var->varno] != nullptr)
		return (Node *) rel_var(leaf_column(level, var->varno, var));
	if (var->varattno < 1 || var->varattno > list_length(level->columns[var->varno]))
	{
		refuse(level->t, REFUSED_RELATION_KIND);
		return nullptr;
	}
	return (Node *) rel_var(list_nth_node(TargetEntry, level->columns[var->varno], var->varattno - 1));
}

/* A column of this level or of one further out. */
static Node *
column(Level *level, const Var *var)
{
	Level	   *at = level;
	Node	   *key;

	for (Index up = var->varlevelsup; up > 0; up--)
	{
		at->correlated = true;
		at = at->outer;
	}
	if (at->phase == PHASE_GROUPS && at->group != nullptr)
	{
		Var		   *own = static_cast<Var *>(copyObjectImpl(var));

		own->varlevelsup = 0;
		key = group_key(at, (Node *) own);
		if (key == nullptr)
			refuse(level->t, REFUSED_CHECK);
		return key;
	}
	return row_column(at, var);
}

Node *
translate_argument(Node *node, Level *level)
{
	if (node == nullptr || refused(level))
		return node;
	if (IsA(node, Var))
		return column(level, (const Var *) node);
	if (level->phase == PHASE_GROUPS && level->group != nullptr)
	{
		Node	   *key = group_key(level, node);

		if (key != nullptr)
			return key;
	}
	switch (nodeTag(node))
	{
		case T_Aggref:
			return translate_aggregate(level, (Aggref *) node);
		case T_GroupingFunc:
			return translate_grouping(level, (GroupingFunc *) node);
		case T_WindowFunc:
			return translate_window(level, (WindowFunc *) node);
		case T_SubLink:
			return translate_sublink(level, (SubLink *) node);
		case T_Param:
			if (((Param *) node)->paramkind == PARAM_SUBLINK)
				return (Node *) rel_var(
					list_nth_node(TargetEntry, level->sublink_columns, ((Param *) node)->paramid - 1));
			break;
		case T_CurrentOfExpr:
			refuse(level->t, REFUSED_COMMAND);
			return node;
		default:
			break;
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(translate_argument), level);
}

Node *
translate_expr(Level *level, Node *expr)
{
	const Oid	type = exprType(expr);

	expr = translate_argument(expr, level);
	if (refused(level))
		return (Node *) makeNullConst(type, -1, InvalidOid);
	expr = eval_const_expressions(nullptr, expr);
	if (!level->t->volatile_allowed && contain_volatile_functions(expr))
		refuse(level->t, REFUSED_VOLATILE);
	return expr;
}

Node *
translate_expr_at(Level *level, GpuvmRel **site, Node *expr)
{
	GpuvmRel  **outer = level->site;

	level->site = site;
	expr = translate_expr(level, expr);
	level->site = outer;
	return expr;
}

}  // namespace gpuvm
