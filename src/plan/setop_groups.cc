/*
 * setop_groups.cc: INTERSECT and EXCEPT as groups.
 *
 * The rows of all arms, each with a bit that says which arm it is from, are grouped by all columns: values that are null
 * are equal there, as they are in set operations. A group belongs to the result if it has rows of the right arms.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_aggregate.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
}

#include "plan/normalise.h"

namespace gpuvm {

/* Bits of an integer that is not negative. */
constexpr int MOST_ARMS = 31;

struct Arms
{
	List	   *inputs;
	List	   *numbers;		/* as GpuvmRel.arms */
};

/* A set operation in an arm is part of this one, if it is the same: (a INTERSECT b) INTERSECT c; of EXCEPT in the first arm. */
static void
add_arms(Arms *arms, GpuvmRel *rel, int arm, const List *numbers, RelSetOp setop)
{
	GpuvmRel   *below = rel_input(rel, arm);
	const bool	may_join = setop == RELSETOP_INTERSECT || arms->inputs == NIL;

	check_stack_depth();
	if (below->op != REL_SETOP || below->setop != setop || !may_join || list_length(arms->inputs) + list_length(below->inputs) > MOST_ARMS)
	{
		arms->inputs = lappend(arms->inputs, below);
		arms->numbers = lappend(arms->numbers, list_copy(numbers));
		return;
	}
	for (int i = 0; i < list_length(below->inputs); i++)
	{
		List	   *own = NIL;
		ListCell   *lc;

		foreach(lc, numbers)
			own = lappend_int(own, rel_arm_column(below, i, rel_find(below, lfirst_int(lc))));
		add_arms(arms, below, i, own, setop);
	}
}

static Const *
make_int4(int value)
{
	return makeConst(INT4OID, -1, InvalidOid, sizeof(int32), Int32GetDatum(value), false, true);
}

/* bit_or() of the column. */
static Expr *
or_of(const TargetEntry *column)
{
	Aggref	   *aggref = makeNode(Aggref);

	aggref->aggfnoid = F_BIT_OR_INT4;
	aggref->aggtype = aggref->aggtranstype = INT4OID;
	aggref->aggargtypes = list_make1_oid(INT4OID);
	aggref->args = list_make1(makeTargetEntry((Expr *) rel_var(column), 1, nullptr, false));
	aggref->aggkind = AGGKIND_NORMAL;
	aggref->aggsplit = AGGSPLIT_SIMPLE;
	aggref->aggno = aggref->aggtransno = -1;
	aggref->location = -1;
	return (Expr *) aggref;
}

static TargetEntry *
new_column(GpuvmRel *statement, Expr *expr, const char *name)
{
	return makeTargetEntry(expr, rel_next_number(statement), pstrdup(name), false);
}

/* UNION ALL of the arms, with the columns of the operation and one more, the arm's bit. */
static GpuvmRel *
union_of_arms(const GpuvmRel *rel, const Arms *arms, GpuvmRel *statement, TargetEntry **bit)
{
	GpuvmRel   *all = rel_make(REL_UNION, NIL, rel->columns);
	ListCell   *lc;
	ListCell   *lc2;

	*bit = new_column(statement, (Expr *) makeVar(IR_OWN, list_length(rel->columns) + 1, INT4OID, -1, InvalidOid, 0), "arm");
	all->columns = lappend(list_copy(rel->columns), *bit);
	forboth(lc, arms->inputs, lc2, arms->numbers)
	{
		TargetEntry *own = new_column(statement, (Expr *) make_int4(1 << foreach_current_index(lc)), "arm");

		all->inputs = lappend(all->inputs, rel_make(REL_PROJECT, list_make1(lfirst(lc)), list_make1(own)));
		all->arms = lappend(all->arms, lappend_int(list_copy(lfirst_node(List, lc2)), own->resno));
	}
	return all;
}

/* Of which arms a group of the result has rows: of all, or of the first alone. */
static Node *
condition_of(const GpuvmRel *rel, int narms, const TargetEntry *arms)
{
	const int	wanted = rel->setop == RELSETOP_INTERSECT ? static_cast<int>((uint32_t{1} << narms) - 1) : 1;
	Expr	   *equal = make_opclause(Int4EqualOperator, BOOLOID, false, (Expr *) rel_var(arms), (Expr *) make_int4(wanted), InvalidOid, InvalidOid);

	set_opfuncid((OpExpr *) equal);
	return (Node *) equal;
}

/* The columns that are not the operation's own, in their order. */
static bool
has_own_columns(const GpuvmRel *rel)
{
	ListCell   *lc;

	foreach(lc, rel->columns)
	{
		const Var  *own = (const Var *) lfirst_node(TargetEntry, lc)->expr;

		if (own->varattno != foreach_current_index(lc) + 1)
			return false;
	}
	return list_length(rel->keys) == list_length(rel->columns);
}

void
group_setops(GpuvmRel **cell, GpuvmRel *statement)
{
	GpuvmRel   *rel = *cell;
	GpuvmRel   *group;
	Arms		arms = {};
	TargetEntry *bit;
	TargetEntry *bits;

	check_stack_depth();
	if (rel->op == REL_SETOP && has_own_columns(rel))
	{
		for (int i = 0; i < list_length(rel->inputs); i++)
			add_arms(&arms, rel, i, static_cast<const List *>(list_nth(rel->arms, i)), static_cast<RelSetOp>(rel->setop));
		group = rel_make(REL_GROUP, list_make1(union_of_arms(rel, &arms, statement, &bit)));
		group->keys = rel->keys;
		bits = new_column(statement, or_of(bit), "arms");
		group->columns = list_make1(bits);
		*cell = rel_make(REL_FILTER, list_make1(group));
		(*cell)->quals = list_make1(condition_of(rel, list_length(arms.inputs), bits));
		rel = rel_input(group);
	}
	for (int i = 0; i < list_length(rel->inputs); i++)
		group_setops(rel_input_cell(rel, i), statement);
}

}  // namespace gpuvm
