/*
 * lowering_above.cc: what no program computes, PostgreSQL computes of a stage's rows.
 *
 * Conditions and columns are evaluated over the rows, or the groups, that the stage gives, before any is handed out, or
 * read by another stage, for which they are loaded again (executor/derived.cc). An error leads to the alternative, as one
 * that a program flags does, so only what computes and holds nothing can be evaluated here.
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
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

#include "pg/value_form.h"
#include "planner/float_filter.h"
#include "planner/lowering.h"

namespace gpuvm {

/* Rows of which PostgreSQL computes something between stages. */
constexpr double MOST_COMPUTED = 1e7;
/* Of an expression: programs are tried for parts of it. */
constexpr int MOST_NODES = 1000;

/* -- what may be computed ---------------------------------------------------------------------- */

/* Stable only for what a setting, a catalog or the clock says, which stays as long as the statement runs. */
static bool
is_stable_enough(Oid function)
{
	switch (function)
	{
		case F_NOW:
		case F_STATEMENT_TIMESTAMP:
		case F_TRANSACTION_TIMESTAMP:
		case F_CURRENT_SETTING_TEXT:
		case F_CURRENT_SETTING_TEXT_BOOL:
		case F_CONCAT:
		case F_CONCAT_WS:
		case F_FORMAT_TEXT:
		case F_FORMAT_TEXT_ANY:
		case F_ARRAY_OUT:
		case F_ARRAY_TO_STRING_ANYARRAY_TEXT:
		case F_ARRAY_TO_STRING_ANYARRAY_TEXT_TEXT:
		case F_ENUM_OUT:
		case F_CASH_OUT:
		case F_DATE_OUT:
		case F_TIMESTAMP_OUT:
		case F_TIMESTAMPTZ_OUT:
		case F_INTERVAL_OUT:
		case F_DATE_IN:
		case F_TIMESTAMP_IN:
		case F_TIMESTAMPTZ_IN:
		case F_INTERVAL_IN:
		case F_TO_CHAR_TIMESTAMP_TEXT:
		case F_TO_CHAR_TIMESTAMPTZ_TEXT:
		case F_TO_CHAR_INTERVAL_TEXT:
		case F_TO_CHAR_NUMERIC_TEXT:
		case F_TO_CHAR_INT4_TEXT:
		case F_TO_CHAR_INT8_TEXT:
		case F_TO_CHAR_FLOAT4_TEXT:
		case F_TO_CHAR_FLOAT8_TEXT:
		case F_TO_NUMBER:
		case F_TO_DATE:
		case F_TO_TIMESTAMP_TEXT_TEXT:
		case F_TIMESTAMPTZ_DATE:
		case F_TIMESTAMPTZ_TIMESTAMP:
		case F_DATE_TIMESTAMPTZ:
		case F_TIMESTAMP_TIMESTAMPTZ:
		case F_TIMESTAMPTZ_PL_INTERVAL:
		case F_TIMESTAMPTZ_MI_INTERVAL:
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ:
		case F_DATE_PART_TEXT_TIMESTAMPTZ:
		case F_EXTRACT_TEXT_TIMESTAMPTZ:
			return true;
		default:
			return false;
	}
}

/* Is it anything but built in, in C, and the same wherever it is evaluated in the statement? */
static bool
does_more(Oid function, void *)
{
	HeapTuple	tuple;
	Form_pg_proc proc;
	bool		computes;

	if (function >= FirstNormalObjectId)
		return true;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return true;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	computes = proc->prolang == INTERNALlanguageId && !proc->proretset && proc->prokind == PROKIND_FUNCTION &&
		(proc->provolatile == PROVOLATILE_IMMUTABLE || is_stable_enough(function));
	ReleaseSysCache(tuple);
	return !computes;
}

/* Functions of any type, and those of arrays, call the type's own, which may be anybody's. */
static bool
is_others_type(const Node *value)
{
	const Oid	type = getBaseType(exprType(value));

	return type >= FirstNormalObjectId && !type_is_enum(type);
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
			return ((Param *) node)->paramkind != PARAM_EXTERN || is_others_type(node);
		case T_MinMaxExpr:
			if (((MinMaxExpr *) node)->minmaxtype >= FirstNormalObjectId)
				return true;
			break;
		case T_Var:
		case T_Const:
			return is_others_type(node);
		case T_CoerceViaIO:
			if (is_others_type(node))
				return true;
			break;
		case T_List:
		case T_FuncExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
		case T_CollateExpr:
		case T_SQLValueFunction:
		case T_RelabelType:
		case T_ArrayExpr:
		case T_ArrayCoerceExpr:
		case T_SubscriptingRef:
			break;
		default:
			return true;
	}
	return check_functions_in_node(node, does_more, context) ||
		expression_tree_walker(node, reinterpret_cast<bool (*)()>(does_more_walker), context);
}

bool
only_computes(Node *expr)
{
	return !is_larger_than(expr, MOST_NODES) && !does_more_walker(expr, nullptr);
}

bool
is_computed(Lowering *l, const Piece *piece, Node *expr)
{
	const char *before = l->reason;
	ScanPlan   *plan;
	bool		computed;

	if (IsA(expr, Var) || !contain_var_clause(expr))
		return true;
	l->reason = nullptr;
	plan = static_cast<ScanPlan *>(palloc0(sizeof(ScanPlan)));
	computed = plan_of_rows(l, piece, list_make1(expr), NIL, plan);
	if (!computed)
		l->held_reason = l->reason;
	l->reason = before;
	return computed;
}

/* Is it PostgreSQL's to compute? Numerics are handed on as what they are computed of (lowering_values.cc). */
static bool
is_for_postgres(Lowering *l, const Piece *piece, Node *expr)
{
	const ValueForm form = value_type(exprType(expr)).form;

	if (form != ValueForm::Plain && form != ValueForm::Dictionary)
		return false;
	return only_computes(expr) && !is_computed(l, piece, expr);
}

/* -- the rows that pass, with what is computed of them ------------------------------------------- */

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

List *
over_raw(List *exprs, List *raw)
{
	List	   *over = (List *) raw_mutator((Node *) exprs, raw);

	fix_opfuncids((Node *) over);
	return over;
}

void
compute_above(ScanPlan *plan, const Piece *piece, List *raw, List *exprs, List *held)
{
	ListCell   *lc;

	plan->exprs = over_raw(exprs, raw);
	plan->having = over_raw(held, raw);
	plan->filter_quals = detached(without_filters(held), &piece->shape);
	foreach(lc, raw)
	{
		const Node *node = static_cast<const Node *>(lfirst(lc));

		plan->raw_types = lappend_oid(plan->raw_types, exprType(node));
		plan->raw_typmods = lappend_int(plan->raw_typmods, exprTypmod(node));
		plan->raw_collations = lappend_oid(plan->raw_collations, exprCollation(node));
	}
}

List *
raw_columns(List *exprs, List *held)
{
	return list_concat_unique(pull_var_clause((Node *) exprs, 0), pull_var_clause((Node *) held, PVC_INCLUDE_PLACEHOLDERS));
}

/* The columns that are read of rows. */
static List *
columns_in(List *exprs)
{
	return list_concat_unique(NIL, pull_var_clause((Node *) exprs, PVC_RECURSE_AGGREGATES | PVC_RECURSE_PLACEHOLDERS));
}

Piece *
compute_rows(Lowering *l, const Piece *piece, List *kept, List *computed, List *held, List **also)
{
	List	   *exprs = columns_in(kept);
	List	   *raw = list_concat_unique(list_copy(exprs), raw_columns(computed, held));
	List	   *columns = NIL;
	Stage		stage = {};
	Piece	   *rows;
	int			relid;
	ListCell   *lc;

	if (piece->shape.rows > MOST_COMPUTED)
		return lowering_refuse(l, "PostgreSQL would have to evaluate an expression for too many rows");
	/* only how many there are */
	if (exprs == NIL && computed == NIL)
		exprs = list_make1(linitial(raw));
	exprs = list_concat(exprs, computed);
	stage.ncomputed = list_length(computed);
	if (!stage_of_computed(l, piece, raw, exprs, held, &stage))
		return nullptr;
	rows = piece_of_stage(l, &stage);
	relid = bms_singleton_member(rows->shape.cursors[0].relids);
	foreach(lc, exprs)
	{
		const Node *expr = static_cast<const Node *>(lfirst(lc));

		columns = lappend(columns, makeVar(relid, foreach_current_index(lc) + 1, exprType(expr), exprTypmod(expr),
										   exprCollation(expr), 0));
	}
	replace_values(l, exprs, columns);
	if (also != nullptr)
		*also = (List *) replace_exprs((Node *) *also, exprs, columns);
	return rows;
}

Piece *
compute_columns(Lowering *l, Piece *piece, const GpuvmRel *rel, List *held)
{
	List	   *values = values_of(l, rel->columns);
	List	   *computed = NIL;
	ListCell   *lc;

	foreach(lc, l->hold >= HoldLevel::Columns ? values : NIL)
	{
		Node	   *value = static_cast<Node *>(lfirst(lc));

		if (!is_for_postgres(l, piece, value))
			continue;
		computed = lappend(computed, value);
		l->held_node = "Project";
	}
	if (computed == NIL && held == NIL)
		return piece;
	return compute_rows(l, piece, list_difference(values, computed), computed, held);
}

/* -- sides of comparisons ------------------------------------------------------------------------ */

/* What no program computes of the piece's rows and is compared with others. */
List *
unknown_sides(Lowering *l, const Piece *piece, const List *conditions)
{
	const Relids relids = relids_of(piece);
	List	   *sides = NIL;
	ListCell   *lc;
	ListCell   *arg;

	foreach(lc, conditions)
	{
		const OpExpr *condition = static_cast<const OpExpr *>(lfirst(lc));

		if (!IsA(condition, OpExpr) || bms_is_subset(pull_varnos(l->root, (Node *) condition), relids))
			continue;
		foreach(arg, condition->args)
		{
			Node	   *side = static_cast<Node *>(lfirst(arg));

			if (bms_is_subset(pull_varnos(l->root, side), relids) && is_for_postgres(l, piece, side))
				sides = list_append_unique(sides, side);
		}
	}
	return sides;
}

/* The piece's columns in these, but for those that only the sides read. */
static List *
columns_beside(const Piece *piece, List *exprs, const List *sides)
{
	const Relids relids = relids_of(piece);
	List	   *nulls = NIL;
	List	   *columns = NIL;
	ListCell   *lc;

	foreach(lc, sides)
	{
		const Node *side = static_cast<const Node *>(lfirst(lc));

		nulls = lappend(nulls, makeNullConst(exprType(side), exprTypmod(side), exprCollation(side)));
	}
	foreach(lc, columns_in((List *) replace_exprs((Node *) exprs, sides, nulls)))
	{
		if (bms_is_member(lfirst_node(Var, lc)->varno, relids))
			columns = lappend(columns, lfirst(lc));
	}
	return columns;
}

Piece *
compute_sides(Lowering *l, const Piece *piece, const GpuvmRel *rel, const List *sides, List *held, List **conditions)
{
	List	   *read = list_concat(values_of(l, rel->columns), *conditions);

	l->held_node = "Join";
	return compute_rows(l, piece, columns_beside(piece, read, sides), list_copy(sides), held, conditions);
}

}  // namespace gpuvm
