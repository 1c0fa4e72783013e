/* renumber.cc: other numbers for columns. */
#include "pg/pg.h"

extern "C" {
#include "nodes/nodeFuncs.h"
}

#include "plan/renumber.h"

namespace gpuvm {

static Node *
renumber_mutator(Node *node, void *context)
{
	const int  *numbers = static_cast<const int *>(context);
	const int	number = node != nullptr ? rel_column_of(node) : 0;

	if (node == nullptr)
		return nullptr;
	if (number != 0 && numbers[number] != 0)
	{
		Var		   *var = static_cast<Var *>(copyObjectImpl(node));

		var->varattno = numbers[number];
		return (Node *) var;
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(renumber_mutator), context);
}

Node *
renumber_expr(const Node *expr, const int *numbers)
{
	return renumber_mutator(const_cast<Node *>(expr), const_cast<int *>(numbers));
}

static void
visit_expression(Node **expr, void *context)
{
	*expr = renumber_mutator(*expr, context);
}

static void
renumber_keys(List *keys, const int *numbers)
{
	ListCell   *lc;

	foreach(lc, keys)
	{
		SortGroupClause *key = lfirst_node(SortGroupClause, lc);

		key->tleSortGroupRef = renumbered(numbers, static_cast<int>(key->tleSortGroupRef));
	}
}

/* Lists of numbers. */
static void
renumber_lists(List *lists, const int *numbers)
{
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, lists)
	{
		foreach(lc2, lfirst_node(List, lc))
			lfirst_int(lc2) = renumbered(numbers, lfirst_int(lc2));
	}
}

void
renumber_rel(GpuvmRel *rel, const int *numbers, const List *except)
{
	ListCell   *lc;

	check_stack_depth();
	if (list_member_ptr(except, rel))
		return;
	foreach(lc, rel->columns)
	{
		TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (rel_hands_on(column))
			column->resno = renumbered(numbers, column->resno);
	}
	rel_each_expression(rel, visit_expression, const_cast<int *>(numbers));
	renumber_keys(rel->keys, numbers);
	renumber_lists(rel->sets, numbers);
	renumber_lists(rel->arms, numbers);
	foreach(lc, rel->windows)
	{
		renumber_keys(lfirst_node(WindowClause, lc)->partitionClause, numbers);
		renumber_keys(lfirst_node(WindowClause, lc)->orderClause, numbers);
	}
	foreach(lc, rel->inputs)
		renumber_rel(static_cast<GpuvmRel *>(lfirst(lc)), numbers, except);
	foreach(lc, rel->definitions)
		renumber_rel(static_cast<GpuvmRel *>(lfirst(lc)), numbers, except);
}

}  // namespace gpuvm
