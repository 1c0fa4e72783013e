/* check.cc: is a tree of the algebra consistent? */
#include "pg/pg.h"

extern "C" {
#include "nodes/nodeFuncs.h"
}

#include "plan/passes.h"

namespace gpuvm {

struct Check
{
	const char *problem;		/* the first one */
	const TargetEntry **made;	/* by number */
	Bitmapset  *bound;			/* ids of the Bounds so far */
	List	   *shared;			/* the Shareds so far */
};

/* What an expression may refer to. */
struct Place
{
	Check	   *check;
	const Bitmapset *visible;
	const GpuvmRel *rel;
};

static bool
fail(Check *check, const char *problem)
{
	if (check->problem == nullptr)
		check->problem = problem;
	return true;
}

static void
collect_made(Check *check, const GpuvmRel *rel)
{
	ListCell   *lc;

	check_stack_depth();
	foreach(lc, rel->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (column->resno < 1)
			fail(check, "a column has no number");
		else if (!rel_hands_on(column))
		{
			if (check->made[column->resno] != nullptr)
				fail(check, psprintf("column %d is made twice", column->resno));
			check->made[column->resno] = column;
		}
	}
	foreach(lc, rel->inputs)
		collect_made(check, static_cast<const GpuvmRel *>(lfirst(lc)));
	foreach(lc, rel->definitions)
		collect_made(check, static_cast<const GpuvmRel *>(lfirst(lc)));
}

static void
check_var(const Place *place, const Var *var)
{
	Check	   *check = place->check;
	const int	number = var->varattno;
	const Node *made;

	if (static_cast<int>(var->varno) == IR_OWN)
	{
		const RelOp op = static_cast<RelOp>(place->rel->op);

		if (op != REL_SCAN && op != REL_VALUES && op != REL_EXTERNAL && op != REL_UNION && op != REL_SETOP)
			fail(check, "a column of its own where there is none");
		return;
	}
	if (static_cast<int>(var->varno) != IR_VAR || var->varlevelsup != 0)
		fail(check, psprintf("a column of relation %d", static_cast<int>(var->varno)));
	else if (!bms_is_member(number, place->visible))
		fail(check, psprintf("column %d is not there for an expression", number));
	else if (check->made[number] == nullptr)
		fail(check, psprintf("column %d is not made", number));
	else
	{
		made = (const Node *) check->made[number]->expr;
		if (var->vartype != exprType(made) || var->varcollid != exprCollation(made))
			fail(check, psprintf("column %d has another type where it is read", number));
	}
}

static bool
check_walker(Node *node, Place *place)
{
	if (node == nullptr || place->check->problem != nullptr)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
			check_var(place, (const Var *) node);
			return false;
		case T_Param:
			if (((Param *) node)->paramkind != PARAM_EXTERN &&
				!bms_is_member(((Param *) node)->paramid, place->check->bound))
				return fail(place->check, "a parameter that is not bound");
			return false;
		case T_Aggref:
		case T_GroupingFunc:
			if (place->rel->op != REL_GROUP)
				return fail(place->check, "an aggregate outside of a Group");
			break;
		case T_WindowFunc:
			if (place->rel->op != REL_WINDOW)
				return fail(place->check, "a window function outside of a Window");
			break;
		case T_SubLink:
		case T_Query:
			return fail(place->check, "a subquery in an expression");
		default:
			break;
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(check_walker), place);
}

static void
check_expression(Node **expr, void *context)
{
	(void) check_walker(*expr, static_cast<Place *>(context));
}

static void
check_keys(Check *check, const List *keys, const Bitmapset *numbers)
{
	ListCell   *lc;

	foreach(lc, keys)
	{
		if (!bms_is_member(lfirst_node(SortGroupClause, lc)->tleSortGroupRef, numbers))
			fail(check, psprintf("key %u is not there", lfirst_node(SortGroupClause, lc)->tleSortGroupRef));
	}
}

static void
check_arms(Check *check, const GpuvmRel *rel)
{
	ListCell   *lc;
	ListCell   *lc2;
	int			n = 0;

	if (list_length(rel->arms) != list_length(rel->inputs))
	{
		fail(check, "arms and inputs differ in number");
		return;
	}
	foreach(lc, rel->arms)
	{
		const GpuvmRel *input = rel_input(rel, n++);

		foreach(lc2, rel->columns)
		{
			const Node *own = (const Node *) lfirst_node(TargetEntry, lc2)->expr;
			const int	at = ((const Var *) own)->varattno - 1;
			const TargetEntry *column = at < list_length(lfirst_node(List, lc))
				? rel_find(input, list_nth_int(lfirst_node(List, lc), at)) : nullptr;

			if (column == nullptr)
				fail(check, "an arm lacks a column");
			else if (exprType((Node *) column->expr) != exprType(own) ||
					 exprCollation((Node *) column->expr) != exprCollation(own))
				fail(check, psprintf("column %d of an arm has another type", column->resno));
		}
	}
}

/* A Set's columns are made of those of its Shared. */
static const Bitmapset *
shared_columns(Check *check, const GpuvmRel *rel)
{
	ListCell   *lc;

	foreach(lc, check->shared)
	{
		const GpuvmRel *shared = static_cast<const GpuvmRel *>(lfirst(lc));

		if (shared->id == rel->id)
			return rel_numbers(shared);
	}
	fail(check, psprintf("set %d is not defined", rel->id));
	return nullptr;
}

/* Outer: the columns of joins' left inputs, for what is below their right ones. */
static void
check_rel(Check *check, GpuvmRel *rel, const Bitmapset *outer)
{
	Place		place = {check, nullptr, rel};
	Bitmapset  *below = nullptr;
	Bitmapset  *hidden = nullptr;	/* of a semijoin's right input nothing comes out */
	ListCell   *lc;

	check_stack_depth();
	foreach(lc, rel->inputs)
	{
		GpuvmRel   *input = static_cast<GpuvmRel *>(lfirst(lc));
		Bitmapset  *numbers = rel_numbers(input);

		check_rel(check, input, rel->op == REL_JOIN && rel->join != RELJOIN_FULL ? bms_union(outer, below) : outer);
		if (bms_overlap(below, numbers) && rel->op == REL_JOIN)
			fail(check, "both inputs of a join have a column");
		if (rel->op == REL_JOIN &&
			(rel->join == RELJOIN_SEMI || rel->join == RELJOIN_ANTI || rel->join == RELJOIN_MARK) && below != nullptr)
			hidden = numbers;
		below = bms_union(below, numbers);
	}
	place.visible = rel->op == REL_SET ? shared_columns(check, rel) : bms_union(below, outer);
	rel_each_expression(rel, check_expression, &place);
	foreach(lc, rel->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (rel_hands_on(column) && (!bms_is_member(column->resno, below) || bms_is_member(column->resno, hidden)))
			fail(check, psprintf("column %d is handed on by a node whose inputs lack it", column->resno));
	}
	check_keys(check, rel->keys, rel->op == REL_SETOP ? rel_numbers(rel) : below);
	foreach(lc, rel->sets)
	{
		ListCell   *lc2;

		foreach(lc2, lfirst_node(List, lc))
		{
			if (!bms_is_member(lfirst_int(lc2), below))
				fail(check, "a grouping set's column is not there");
		}
	}
	foreach(lc, rel->windows)
	{
		check_keys(check, lfirst_node(WindowClause, lc)->partitionClause, below);
		check_keys(check, lfirst_node(WindowClause, lc)->orderClause, below);
	}
	if (rel->op == REL_UNION || rel->op == REL_SETOP)
		check_arms(check, rel);
}

static int
greatest_number(const GpuvmRel *rel)
{
	int			greatest = 0;
	ListCell   *lc;

	foreach(lc, rel->columns)
		greatest = Max(greatest, lfirst_node(TargetEntry, lc)->resno);
	foreach(lc, rel->inputs)
		greatest = Max(greatest, greatest_number(static_cast<const GpuvmRel *>(lfirst(lc))));
	foreach(lc, rel->definitions)
		greatest = Max(greatest, greatest_number(static_cast<const GpuvmRel *>(lfirst(lc))));
	return greatest;
}

const char *
rel_check(const GpuvmRel *statement)
{
	Check		check = {};
	ListCell   *lc;

	check.made = static_cast<const TargetEntry **>(palloc0((greatest_number(statement) + 1) * sizeof(TargetEntry *)));
	collect_made(&check, statement);
	foreach(lc, statement->definitions)
	{
		GpuvmRel   *definition = static_cast<GpuvmRel *>(lfirst(lc));

		check_rel(&check, definition, nullptr);
		if (definition->op == REL_SHARED)
			check.shared = lappend(check.shared, definition);
		else
			check.bound = bms_add_member(check.bound, definition->id);
	}
	check_rel(&check, const_cast<GpuvmRel *>(statement), nullptr);
	return check.problem;
}

}  // namespace gpuvm
