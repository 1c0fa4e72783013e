/* setops.cc: UNION, INTERSECT and EXCEPT. */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_coerce.h"
#include "parser/parsetree.h"
}

#include "pg/compat.h"
#include "plan/translation.h"

namespace gpuvm {

static GpuvmRel *setop(Level *level, Node *node, List **columns);

/* The arm's columns as the operation's types and collations. */
static List *
arm_columns(Level *level, GpuvmRel **arm, const List *columns, const SetOperationStmt *op)
{
	List	   *numbers = NIL;
	ListCell   *lc;
	int			n = 0;

	foreach(lc, columns)
	{
		TargetEntry *column = lfirst_node(TargetEntry, lc);
		Node	   *value = (Node *) rel_var(column);
		const Oid	type = list_nth_oid(op->colTypes, n);
		const Oid	collation = list_nth_oid(op->colCollations, n);

		n++;
		if (exprType(value) != type)
			value = coerce_to_target_type(nullptr, value, exprType(value), type, -1, COERCION_IMPLICIT,
										  COERCE_IMPLICIT_CAST, -1);
		if (value == nullptr)
			elog(ERROR, "no coercion to the type of a set operation's column");
		if (exprCollation(value) != collation)
			value = applyRelabelType(value, type, exprTypmod(value), collation, COERCE_IMPLICIT_CAST, -1, false);
		numbers = lappend_int(numbers, column_of_value(level, arm, value, column->resname)->resno);
	}
	return numbers;
}

static void
add_arm(Level *level, GpuvmRel *rel, Node *node, const SetOperationStmt *op, List **names)
{
	const SetOperationStmt *below = (const SetOperationStmt *) node;
	List	   *columns;
	GpuvmRel   *arm;

	check_stack_depth();
	/* arms of arms: of UNION ALL, or where duplicates do not matter */
	if (rel->op == REL_UNION && IsA(node, SetOperationStmt) && below->op == SETOP_UNION && (below->all || !op->all) &&
		equal(below->colTypes, op->colTypes) && equal(below->colCollations, op->colCollations))
	{
		add_arm(level, rel, below->larg, op, names);
		if (!refused(level))
			add_arm(level, rel, below->rarg, op, names);
		return;
	}
	arm = setop(level, node, &columns);
	if (refused(level))
		return;
	if (rel->inputs == NIL)
		*names = columns;
	rel->arms = lappend(rel->arms, arm_columns(level, &arm, columns, op));
	rel->inputs = lappend(rel->inputs, arm);
}

static List *
keys_of_all(const SetOperationStmt *op, const List *columns)
{
	List	   *keys = NIL;
	ListCell   *lc;
	ListCell   *lc2;

	forboth(lc, op->groupClauses, lc2, columns)
		keys = lappend(keys, key_of(lfirst_node(SortGroupClause, lc), lfirst_node(TargetEntry, lc2)));
	return keys;
}

static GpuvmRel *
setop(Level *level, Node *node, List **columns)
{
	const SetOperationStmt *op = (const SetOperationStmt *) node;
	GpuvmRel   *rel;
	List	   *names = NIL;
	ListCell   *lc;
	int			n = 0;

	if (IsA(node, RangeTblRef))
		return translate_subquery(level, rt_fetch(((RangeTblRef *) node)->rtindex, level->query->rtable)->subquery,
								  columns);
	if (op->op != SETOP_UNION && op->all)
	{
		refuse(level->t, REFUSED_SETOP_ALL);
		return nullptr;
	}
	rel = rel_make(op->op == SETOP_UNION ? REL_UNION : REL_SETOP);
	rel->setop = op->op == SETOP_EXCEPT ? RELSETOP_EXCEPT : RELSETOP_INTERSECT;
	add_arm(level, rel, op->larg, op, &names);
	if (!refused(level))
		add_arm(level, rel, op->rarg, op, &names);
	if (refused(level))
		return nullptr;
	foreach(lc, names)
	{
		Var *own = makeVar(IR_OWN, n + 1, list_nth_oid(op->colTypes, n), list_nth_int(op->colTypmods, n),
						   list_nth_oid(op->colCollations, n), 0);

		n++;
		rel->columns =
			lappend(rel->columns, make_column(level->t, (Node *) own, lfirst_node(TargetEntry, lc)->resname));
	}
	*columns = list_copy(rel->columns);
	if (op->op != SETOP_UNION)
		rel->keys = keys_of_all(op, rel->columns);
	else if (!op->all)
	{
		GpuvmRel   *group = rel_make(REL_GROUP, list_make1(rel));

		group->keys = keys_of_all(op, rel->columns);
		rel = group;
	}
	return rel;
}

GpuvmRel *
translate_setops(Level *level)
{
	Node	   *leftmost = level->query->setOperations;
	List	   *columns = NIL;
	GpuvmRel   *rel = setop(level, leftmost, &columns);

	while (IsA(leftmost, SetOperationStmt))
		leftmost = ((SetOperationStmt *) leftmost)->larg;
	/* so the output refers to the columns of the whole */
	level->columns[((RangeTblRef *) leftmost)->rtindex] = columns;
	return rel;
}

}  // namespace gpuvm
