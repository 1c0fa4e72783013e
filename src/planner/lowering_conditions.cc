/*
 * lowering_conditions.cc: conditions that no program can evaluate.
 *
 * PostgreSQL evaluates them over the rows that the stage gives, before any is handed out, or read by another stage, for
 * which they are loaded again (executor/derived.cc). An error that one raises leads to the alternative, as one that a
 * program flags does, so only what computes and holds nothing can be evaluated here.
 */
#include "pg/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/syscache.h"
}

#include "planner/lowering.h"

namespace gpuvm {

/* Rows for which PostgreSQL evaluates conditions between stages. */
constexpr double MOST_HELD = 1e7;

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

/* -- the rows that pass ---------------------------------------------------------------------- */

/* The output's columns as numbers of what the program gives. */
static Node *
raw_mutator(Node *node, void *context)
{
	const List *raw = static_cast<const List *>(context);
	int			number = 1;
	ListCell   *lc;

	if (node == nullptr)
		return nullptr;
	foreach(lc, raw)
	{
		if (equal(lfirst(lc), node))
			break;
		number++;
	}
	if (number > list_length(raw))
		return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(raw_mutator), context);
	return (Node *) makeVar(1, number, exprType(node), exprTypmod(node), exprCollation(node), 0);
}

void
compute_above(ScanPlan *plan, const Piece *piece, List *raw, List *exprs, List *held)
{
	ListCell   *lc;

	plan->exprs = (List *) raw_mutator((Node *) exprs, raw);
	plan->having = (List *) raw_mutator((Node *) held, raw);
	fix_opfuncids((Node *) plan->exprs);
	fix_opfuncids((Node *) plan->having);
	plan->filter_quals = detached(held, &piece->shape);
	foreach(lc, raw)
	{
		const Node *node = static_cast<const Node *>(lfirst(lc));

		plan->raw_types = lappend_oid(plan->raw_types, exprType(node));
		plan->raw_typmods = lappend_int(plan->raw_typmods, exprTypmod(node));
		plan->raw_collations = lappend_oid(plan->raw_collations, exprCollation(node));
	}
}

Piece *
pass_held(Lowering *l, const Piece *piece, const GpuvmRel *rel, List *held)
{
	List	   *vars = NIL;
	List	   *columns = NIL;
	Stage		stage = {};
	Piece	   *rows;
	int			relid;
	ListCell   *lc;

	if (piece->shape.rows > MOST_HELD)
		return lowering_refuse(l, "PostgreSQL would have to evaluate a condition for too many rows");
	foreach(lc, pull_var_clause((Node *) list_concat_copy(values_of(l, rel->columns), held), PVC_RECURSE_PLACEHOLDERS))
		vars = list_append_unique(vars, lfirst(lc));
	if (!stage_of_passing(l, piece, vars, held, &stage))
		return nullptr;
	rows = piece_of_stage(l, &stage);
	relid = bms_singleton_member(rows->shape.cursors[0].relids);
	foreach(lc, vars)
	{
		const Node *var = static_cast<const Node *>(lfirst(lc));

		columns = lappend(columns, makeVar(relid, foreach_current_index(lc) + 1, exprType(var), exprTypmod(var), exprCollation(var), 0));
	}
	replace_values(l, vars, columns);
	return rows;
}

}  // namespace gpuvm
