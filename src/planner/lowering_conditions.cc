/*
 * lowering_conditions.cc: conditions of the last stage that no program can evaluate.
 *
 * PostgreSQL evaluates them over the rows that the stage gives, before any is handed out. An error that one raises leads
 * to the alternative, as one that a program flags does, so only what computes and holds nothing can be evaluated here.
 */
#include "pg/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/syscache.h"
}

#include "planner/lowering.h"

namespace gpuvm {

/* Is it anything but built in, in C, and immutable? */
static bool
does_more(Oid function, void *)
{
	HeapTuple	tuple = function < FirstNormalObjectId ? SearchSysCache1(PROCOID, ObjectIdGetDatum(function)) : nullptr;
	Form_pg_proc proc;
	bool		computes;

	if (!HeapTupleIsValid(tuple))
		return true;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	computes = proc->prolang == INTERNALlanguageId && !proc->proretset && proc->prokind == PROKIND_FUNCTION &&
		proc->provolatile == PROVOLATILE_IMMUTABLE;
	ReleaseSysCache(tuple);
	return !computes;
}

/* Is it, or something in it, more than a computation whose errors can be caught (executor/guard.cc)? */
static bool
does_more_walker(Node *node, void *context)
{
	if (node == nullptr)
		return false;
	switch (nodeTag(node))
	{
		case T_Param:
			return ((Param *) node)->paramkind != PARAM_EXTERN;
		case T_MinMaxExpr:
			if (((MinMaxExpr *) node)->minmaxtype >= FirstNormalObjectId)
				return true;
			break;
		case T_List:
		case T_Var:
		case T_Const:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_FuncExpr:
		case T_ScalarArrayOpExpr:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
		case T_RelabelType:
		case T_CoerceViaIO:
			break;
		default:
			return true;
	}
	return check_functions_in_node(node, does_more, context) ||
		expression_tree_walker(node, reinterpret_cast<bool (*)()>(does_more_walker), context);
}

/* The items that have the condition's columns, joined by it; NULL: they are joins themselves, or have none. */
static Piece *
piece_with(Lowering *l, const JoinBlock *block, Node *condition)
{
	const Relids relids = pull_varnos(l->root, condition);
	Piece	   *piece = nullptr;
	int			left = 0;
	ListCell   *lc;

	foreach(lc, block->items)
		left += bms_overlap(relids_of(static_cast<const Piece *>(lfirst(lc))), relids);
	foreach(lc, block->items)
	{
		const Piece *item = static_cast<const Piece *>(lfirst(lc));

		if (!bms_overlap(relids_of(item), relids))
			continue;
		left--;
		if (piece != nullptr && (item->shape.ncursors > 1 || piece->shape.ncursors == PROGRAM_MAX_CURSORS))
			return nullptr;
		if (piece != nullptr)
		{
			piece = append_cursor(l, piece, item, JoinKind::Inner, left == 0 ? list_make1(condition) : NIL);
			continue;
		}
		piece = static_cast<Piece *>(palloc(sizeof(Piece)));
		*piece = *item;
		if (left == 0)
		{
			ShapeCursor *c = &piece->shape.cursors[item->shape.ncursors - 1];
			List	  **where = item->shape.ncursors > 1 ? &c->filters : &c->quals;

			*where = lappend(list_copy(*where), condition);
		}
	}
	return piece;
}

/* NULL, or why no program evaluates it. */
static const char *
refusal(Lowering *l, const JoinBlock *block, Node *condition)
{
	const char *before = l->reason;
	const char *reason = nullptr;
	List	   *columns = pull_var_clause(condition, 0);
	Piece	   *piece = columns == NIL ? nullptr : piece_with(l, block, condition);
	ScanPlan   *plan = static_cast<ScanPlan *>(palloc0(sizeof(ScanPlan)));

	l->reason = nullptr;
	if (piece != nullptr && !plan_of_rows(l, piece, list_make1(linitial(columns)), plan))
		reason = l->reason;
	l->reason = before;
	return reason;
}

void
hold_conditions(Lowering *l, JoinBlock *block)
{
	List	   *rest = NIL;
	ListCell   *lc;

	foreach(lc, block->conditions)
	{
		Node	   *condition = static_cast<Node *>(lfirst(lc));
		const char *reason = does_more_walker(condition, nullptr) ? nullptr : refusal(l, block, condition);

		if (reason == nullptr)
		{
			rest = lappend(rest, condition);
			continue;
		}
		block->held = lappend(block->held, condition);
		l->held_reason = reason;
	}
	block->conditions = rest;
}

}  // namespace gpuvm
