/*
 * push_down.cc: conditions to where their columns are.
 *
 * What a security barrier is above of may only be looked at by conditions that are leakproof.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
}

#include "plan/normalise.h"

namespace gpuvm {

/* What is computed below a condition is computed once more in it: not if that is much. */
constexpr int MOST_NODES = 100;

static void push(GpuvmRel **cell, List *conditions);

static bool
count_walker(Node *node, int *count)
{
	if (node == nullptr)
		return false;
	return ++*count > MOST_NODES || expression_tree_walker(node, reinterpret_cast<bool (*)()>(count_walker), count);
}

bool
rel_is_small(Node *node)
{
	int			count = 0;

	return !count_walker(node, &count);
}

/* Without alternatives of which the others say more: what readers of a Shared want may be what it has. */
static List *
without_implied(List *conditions)
{
	List	   *left = list_copy(conditions);
	/* the proof takes each alternative with each of another one */
	const bool	small = rel_is_small((Node *) conditions);
	ListCell   *lc;

	foreach(lc, conditions)
	{
		List	   *others = small && is_orclause(lfirst(lc)) ? list_delete_ptr(list_copy(left), lfirst(lc)) : NIL;

		if (others != NIL && predicate_implied_by(list_make1(lfirst(lc)), others, false))
			left = others;
	}
	return left;
}

static void
put_filter(GpuvmRel **cell, List *conditions)
{
	if (conditions == NIL)
		return;
	*cell = rel_make(REL_FILTER, list_make1(*cell));
	(*cell)->quals = without_implied(conditions);
}

/* Conditions on columns that all are among these are taken out of the list. */
static List *
take_over(List **conditions, const Bitmapset *columns)
{
	List	   *taken = NIL;
	List	   *left = NIL;
	ListCell   *lc;

	foreach(lc, *conditions)
	{
		Node	   *condition = static_cast<Node *>(lfirst(lc));
		const Bitmapset *read = rel_columns_in(condition);

		if (!bms_is_empty(read) && bms_is_subset(read, columns))
			taken = lappend(taken, condition);
		else
			left = lappend(left, condition);
	}
	*conditions = left;
	return taken;
}

/* Those that read none of these: what else they read comes from outside. */
static List *
take_without(List **conditions, const Bitmapset *columns)
{
	List	   *taken = NIL;
	List	   *left = NIL;
	ListCell   *lc;

	foreach(lc, *conditions)
	{
		Node	   *condition = static_cast<Node *>(lfirst(lc));

		if (bms_overlap(rel_columns_in(condition), columns))
			left = lappend(left, condition);
		else
			taken = lappend(taken, condition);
	}
	*conditions = left;
	return taken;
}

/* -- what follows from equalities ------------------------------------------------------ */

/* column = column of one type, by an operator that equal values are the same for. */
static bool
is_column_equality(Node *condition, Node **left, Node **right)
{
	const OpExpr *op = (const OpExpr *) condition;

	if (!IsA(condition, OpExpr) || list_length(op->args) != 2)
		return false;
	*left = static_cast<Node *>(linitial(op->args));
	*right = static_cast<Node *>(lsecond(op->args));
	return rel_column_of(*left) != 0 && rel_column_of(*right) != 0 && exprType(*left) == exprType(*right) &&
		exprCollation(*left) == exprCollation(*right) && op_mergejoinable(op->opno, exprType(*left)) &&
		(!OidIsValid(op->inputcollid) || get_collation_isdeterministic(op->inputcollid));
}

/* column <, =, > constant, by an operator of the family that the equality is of. */
static bool
is_bound(Node *condition, const OpExpr *equality, const Node *column)
{
	const OpExpr *op = (const OpExpr *) condition;
	const List *families;
	ListCell   *lc;
	int			strategy;
	Oid			lefttype;
	Oid			righttype;

	if (!IsA(condition, OpExpr) || list_length(op->args) != 2 || !equal(linitial(op->args), column) ||
		!is_pseudo_constant_clause(static_cast<Node *>(lsecond(op->args))) || op->inputcollid != equality->inputcollid)
		return false;
	families = get_mergejoin_opfamilies(equality->opno);
	foreach(lc, families)
	{
		if (!op_in_opfamily(op->opno, lfirst_oid(lc)))
			continue;
		get_op_opfamily_properties(op->opno, lfirst_oid(lc), false, &strategy, &lefttype, &righttype);
		return lefttype == exprType(column);
	}
	return false;
}

/* Adds what is known of one side of an equality for the other. */
static List *
with_implied(List *conditions)
{
	for (int i = 0; i < list_length(conditions); i++)
	{
		Node	   *sides[2];

		if (!is_column_equality(static_cast<Node *>(list_nth(conditions, i)), &sides[0], &sides[1]))
			continue;
		for (int j = 0; j < list_length(conditions); j++)
		{
			for (int side = 0; side < 2; side++)
			{
				OpExpr	   *implied;
				const int	n = list_length(conditions);

				if (!is_bound(static_cast<Node *>(list_nth(conditions, j)),
							  static_cast<const OpExpr *>(list_nth(conditions, i)), sides[side]))
					continue;
				implied = static_cast<OpExpr *>(copyObjectImpl(list_nth(conditions, j)));
				linitial(implied->args) = copyObjectImpl(sides[1 - side]);
				conditions = list_append_unique(conditions, implied);
				/* it may say something of columns that were looked at before */
				if (list_length(conditions) > n)
					i = -1;
			}
			if (i < 0)
				break;
		}
	}
	return conditions;
}

/* Of a row that has a partner what is known of the left side is known of the right one: what that says of the right side alone. */
static List *
implied_for_right(const List *quals, const List *for_left, const Bitmapset *left)
{
	List	   *known = list_concat_copy(quals, for_left);
	List	   *implied = with_implied(list_copy(known));
	List	   *for_right = NIL;
	ListCell   *lc;

	for_each_from(lc, implied, list_length(known))
	{
		if (!bms_overlap(rel_columns_in(static_cast<Node *>(lfirst(lc))), left))
			for_right = lappend(for_right, lfirst(lc));
	}
	return for_right;
}

/* -- nodes --------------------------------------------------------------------------------- */

static void
push_filter(GpuvmRel **cell, List *conditions)
{
	GpuvmRel   *rel = *cell;
	List	   *passing = NIL;
	List	   *staying = NIL;
	ListCell   *lc;

	if (!rel->barrier)
	{
		*cell = rel_input(rel);
		push(cell, list_concat(list_copy(rel->quals), conditions));
		return;
	}
	foreach(lc, conditions)
	{
		Node	   *condition = static_cast<Node *>(lfirst(lc));

		if (contain_leaked_vars(condition))
			staying = lappend(staying, condition);
		else
			passing = lappend(passing, condition);
	}
	push(rel_input_cell(rel), passing);
	put_filter(cell, staying);
}

static void
push_project(GpuvmRel **cell, List *conditions)
{
	GpuvmRel   *rel = *cell;
	List	   *passing = NIL;
	List	   *staying = NIL;
	ListCell   *lc;

	foreach(lc, conditions)
	{
		Node	   *condition = static_cast<Node *>(lfirst(lc));
		Node	   *below = rel_substitute(condition, rel->columns);

		if (equal(condition, below) || (rel_is_small(below) && !contain_volatile_functions(below)))
			passing = lappend(passing, below);
		else
			staying = lappend(staying, condition);
	}
	push(rel_input_cell(rel), passing);
	put_filter(cell, staying);
}

static void
push_join(GpuvmRel **cell, List *conditions)
{
	GpuvmRel   *rel = *cell;
	const Bitmapset *left = rel_visible(rel_input(rel));
	const Bitmapset *right = rel_visible(rel_input(rel, 1));
	List	   *for_left = NIL;
	List	   *for_right = NIL;

	switch (static_cast<RelJoin>(rel->join))
	{
		case RELJOIN_INNER:
			rel->quals = with_implied(list_concat_copy(rel->quals, conditions));
			conditions = NIL;
			for_left = take_without(&rel->quals, right);
			for_right = take_without(&rel->quals, left);
			break;
		case RELJOIN_SEMI:
			rel->quals = with_implied(list_concat_copy(rel->quals, conditions));
			conditions = NIL;
			for_left = take_without(&rel->quals, right);
			for_right = take_without(&rel->quals, left);
			break;
		case RELJOIN_LEFT:
		case RELJOIN_SINGLE:
			for_left = take_without(&conditions, right);
			for_right = implied_for_right(rel->quals, for_left, left);
			for_right = list_concat(for_right, rel->join == RELJOIN_LEFT ? take_without(&rel->quals, left) : take_over(&rel->quals, right));
			break;
		case RELJOIN_ANTI:
			for_left = conditions;
			conditions = NIL;
			for_right = list_concat(implied_for_right(rel->quals, for_left, left), take_over(&rel->quals, right));
			break;
		case RELJOIN_MARK:
			for_left = take_without(&conditions, bms_make_singleton(rel_mark(rel)->resno));
			break;
		case RELJOIN_FULL:
			break;
	}
	push(rel_input_cell(rel), for_left);
	push(rel_input_cell(rel, 1), for_right);
	put_filter(cell, conditions);
}

/* Columns whose values are one for each group, or partition: all rows of it pass a condition on them, or none. */
static Bitmapset *
common_keys(const GpuvmRel *rel)
{
	Bitmapset  *common = nullptr;
	ListCell   *lc;
	ListCell   *lc2;

	if (rel->op == REL_GROUP)
	{
		foreach(lc, rel->keys)
			common = bms_add_member(common, lfirst_node(SortGroupClause, lc)->tleSortGroupRef);
		foreach(lc, rel->sets)
		{
			Bitmapset  *set = nullptr;

			foreach(lc2, lfirst_node(List, lc))
				set = bms_add_member(set, lfirst_int(lc2));
			common = bms_int_members(common, set);
		}
		return common;
	}
	foreach(lc, rel->windows)
	{
		Bitmapset  *partition = nullptr;

		foreach(lc2, lfirst_node(WindowClause, lc)->partitionClause)
			partition = bms_add_member(partition, lfirst_node(SortGroupClause, lc2)->tleSortGroupRef);
		common = foreach_current_index(lc) == 0 ? partition : bms_int_members(common, partition);
	}
	return common;
}

/* -- arms --------------------------------------------------------------------------------- */

/* The arm's columns in the place of a Union's. */
static List *
for_arm(const GpuvmRel *rel, int arm, const List *conditions)
{
	List	   *columns = NIL;
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, rel->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);
		TargetEntry *made = static_cast<TargetEntry *>(copyObjectImpl(column));
		Var		   *own = (Var *) made->expr;

		own->varno = IR_VAR;
		own->varattno = rel_arm_column(rel, arm, column);
		columns = lappend(columns, made);
	}
	foreach(lc, conditions)
		result = lappend(result, rel_substitute(static_cast<Node *>(lfirst(lc)), columns));
	return result;
}

RelVerdict
rel_arm_verdict(const GpuvmRel *rel, int arm, Node *condition)
{
	const GpuvmRel *below = rel_input(rel, arm);
	const Const *value;

	condition = static_cast<Node *>(linitial(for_arm(rel, arm, list_make1(condition))));
	while (below->op == REL_PROJECT || below->op == REL_FILTER || below->op == REL_SORT)
	{
		if (below->op == REL_PROJECT)
			condition = rel_substitute(condition, below->columns);
		below = rel_input(below);
	}
	if (!bms_is_empty(rel_columns_in(condition)) || rel_reads_bound(condition))
		return VERDICT_UNKNOWN;
	value = (const Const *) eval_const_expressions(nullptr, condition);
	if (!IsA(value, Const))
		return VERDICT_UNKNOWN;
	return value->constisnull || !DatumGetBool(value->constvalue) ? VERDICT_NONE : VERDICT_ALL;
}

bool
rel_arm_is_empty(const GpuvmRel *rel, int arm, const List *conditions)
{
	ListCell   *lc;

	foreach(lc, conditions)
	{
		if (rel_arm_verdict(rel, arm, static_cast<Node *>(lfirst(lc))) == VERDICT_NONE)
			return true;
	}
	return false;
}

/* The rows of the only arm that is left, under the Union's numbers. */
static GpuvmRel *
only_arm(const GpuvmRel *rel)
{
	GpuvmRel   *project = rel_make(REL_PROJECT, rel->inputs);
	ListCell   *lc;

	foreach(lc, rel->columns)
	{
		TargetEntry *column = static_cast<TargetEntry *>(copyObjectImpl(lfirst(lc)));
		Var		   *own = (Var *) column->expr;

		own->varno = IR_VAR;
		own->varattno = rel_arm_column(rel, 0, lfirst_node(TargetEntry, lc));
		project->columns = lappend(project->columns, column);
	}
	return project;
}

/* Arms that the conditions leave without rows go, but for one. */
static void
push_union(GpuvmRel **cell, List *conditions)
{
	GpuvmRel   *rel = *cell;
	const int	arms = list_length(rel->inputs);

	for (int i = arms - 1; i >= 0 && list_length(rel->inputs) > 1; i--)
	{
		if (!rel_arm_is_empty(rel, i, conditions))
			continue;
		rel->inputs = list_delete_nth_cell(rel->inputs, i);
		rel->arms = list_delete_nth_cell(rel->arms, i);
	}
	if (arms > 1 && list_length(rel->inputs) == 1)
	{
		*cell = only_arm(rel);
		push(cell, conditions);
		return;
	}
	for (int i = 0; i < list_length(rel->inputs); i++)
		push(rel_input_cell(rel, i), for_arm(rel, i, conditions));
}

/* -- all nodes -------------------------------------------------------------------------------- */

Bitmapset *
rel_early_columns(const GpuvmRel *rel)
{
	Bitmapset  *early = nullptr;
	ListCell   *lc;

	check_stack_depth();
	switch (static_cast<RelOp>(rel->op))
	{
		case REL_GROUP:
		case REL_WINDOW:
			return common_keys(rel);
		case REL_FILTER:
			return rel_early_columns(rel_input(rel));
		case REL_SORT:
			return rel->count == nullptr && rel->offset == nullptr ? rel_early_columns(rel_input(rel)) : nullptr;
		case REL_PROJECT:
			early = rel_early_columns(rel_input(rel));
			foreach(lc, rel->columns)
			{
				const TargetEntry *column = lfirst_node(TargetEntry, lc);

				if (!rel_hands_on(column) && bms_is_subset(rel_columns_in((const Node *) column->expr), early))
					early = bms_add_member(early, column->resno);
			}
			return early;
		case REL_JOIN:
			if (rel->join == RELJOIN_FULL)
				return nullptr;
			early = rel_early_columns(rel_input(rel));
			return rel->join == RELJOIN_INNER ? bms_join(early, rel_early_columns(rel_input(rel, 1))) : early;
		case REL_UNION:
		case REL_SETOP:
			early = rel_numbers(rel);
			for (int i = 0; i < list_length(rel->inputs); i++)
			{
				const Bitmapset *of_arm = rel_early_columns(rel_input(rel, i));

				foreach(lc, rel->columns)
				{
					const TargetEntry *column = lfirst_node(TargetEntry, lc);

					if (!bms_is_member(rel_arm_column(rel, i, column), of_arm))
						early = bms_del_member(early, column->resno);
				}
			}
			return early;
		default:
			return rel_numbers(rel);
	}
}

static void
push(GpuvmRel **cell, List *conditions)
{
	GpuvmRel   *rel = *cell;
	List	   *passing;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	switch (static_cast<RelOp>(rel->op))
	{
		case REL_FILTER:
			push_filter(cell, conditions);
			break;
		case REL_PROJECT:
			push_project(cell, conditions);
			break;
		case REL_JOIN:
			push_join(cell, conditions);
			break;
		case REL_GROUP:
		case REL_WINDOW:
			passing = take_over(&conditions, common_keys(rel));
			push(rel_input_cell(rel), passing);
			put_filter(cell, conditions);
			break;
		case REL_SORT:
			if (rel->count == nullptr && rel->offset == nullptr)
				push(rel_input_cell(rel), conditions);
			else
			{
				push(rel_input_cell(rel), NIL);
				put_filter(cell, conditions);
			}
			break;
		case REL_UNION:
			push_union(cell, conditions);
			break;
		case REL_SETOP:
			for (int i = 0; i < list_length(rel->inputs); i++)
				push(rel_input_cell(rel, i), for_arm(rel, i, conditions));
			break;
		default:
			put_filter(cell, conditions);
			break;
	}
}

void
push_conditions(GpuvmRel **cell, List *conditions)
{
	push(cell, conditions);
}

void
push_down(GpuvmRel **cell, GpuvmRel *)
{
	push(cell, NIL);
}

}  // namespace gpuvm
