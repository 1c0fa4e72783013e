/* normalise.cc: the rules in their order, and what they share. */
#include "pg/pg.h"

extern "C" {
#include "nodes/nodeFuncs.h"
}

#include "plan/facts.h"
#include "plan/normalise.h"
#include "plan/passes.h"

namespace gpuvm {

static Node *
substitute(Node *node, List *columns)
{
	const int	number = node != nullptr ? rel_column_of(node) : 0;
	ListCell   *lc;

	if (node == nullptr)
		return nullptr;
	foreach(lc, number != 0 ? columns : NIL)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (column->resno == number && !rel_hands_on(column))
			return static_cast<Node *>(copyObjectImpl(column->expr));
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(substitute), columns);
}

Node *
rel_substitute(Node *expr, const List *columns)
{
	return substitute(expr, const_cast<List *>(columns));
}

static bool
bound_walker(Node *node, void *context)
{
	if (node == nullptr)
		return false;
	return (IsA(node, Param) && ((const Param *) node)->paramkind == PARAM_EXEC) ||
		expression_tree_walker(node, reinterpret_cast<bool (*)()>(bound_walker), context);
}

bool
rel_reads_bound(const Node *expr)
{
	return bound_walker(const_cast<Node *>(expr), nullptr);
}

bool
rel_hides_right(const GpuvmRel *join)
{
	return join->join == RELJOIN_SEMI || join->join == RELJOIN_ANTI || join->join == RELJOIN_MARK;
}

Bitmapset *
rel_visible(const GpuvmRel *rel)
{
	Bitmapset  *visible = rel_numbers(rel);

	check_stack_depth();
	switch (static_cast<RelOp>(rel->op))
	{
		case REL_FILTER:
		case REL_PROJECT:
		case REL_WINDOW:
		case REL_SORT:
			return bms_join(visible, rel_visible(rel_input(rel)));
		case REL_JOIN:
			visible = bms_join(visible, rel_visible(rel_input(rel)));
			return rel_hides_right(rel) ? visible : bms_join(visible, rel_visible(rel_input(rel, 1)));
		case REL_GROUP:
			{
				ListCell   *lc;

				foreach(lc, rel->keys)
					visible = bms_add_member(visible, lfirst_node(SortGroupClause, lc)->tleSortGroupRef);
				return visible;
			}
		default:
			return visible;
	}
}

void
relax_single_joins(GpuvmRel **cell, GpuvmRel *statement)
{
	GpuvmRel   *rel = *cell;

	check_stack_depth();
	for (int i = 0; i < list_length(rel->inputs); i++)
		relax_single_joins(rel_input_cell(rel, i), statement);
	if (rel->op == REL_JOIN && rel->join == RELJOIN_SINGLE && rel_meets_at_most_one(rel))
		rel->join = RELJOIN_LEFT;
}

using Rule = void (*) (GpuvmRel **cell, GpuvmRel *statement);

static void
apply(Rule rule, GpuvmRel *statement)
{
	ListCell   *lc;

	foreach(lc, statement->definitions)
		rule(rel_input_cell(static_cast<GpuvmRel *>(lfirst(lc))), statement);
	rule(rel_input_cell(statement), statement);
}

void
rel_normalise(GpuvmRel *statement)
{
	apply(unnest, statement);
	/* for the facts */
	prune_columns(statement);
	rel_forget_facts(statement);
	apply(relax_single_joins, statement);
	apply(reduce_outer_joins, statement);
	apply(push_down, statement);
	narrow_shared(statement);
	apply(reduce_by_semijoins, statement);
	rel_forget_facts(statement);
	prune_columns(statement);
	split_grouping_sets(statement);
	apply(group_setops, statement);
	rel_forget_facts(statement);
	prune_columns(statement);
}

}  // namespace gpuvm
