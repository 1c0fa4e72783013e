/*
 * folding.cc: expressions without columns whose value is known when execution
 * starts, such as now() - interval '1 day' or $1 + 1.
 *
 * PostgreSQL evaluates them then, once, as it does for an index scan, although it
 * might not come to it otherwise: an error leads to its own plan. So only functions
 * take part that do nothing but compute: built in, immutable, or one of those that are
 * stable for the time, its zone, the style of dates or the locale of money.
 */
#include "pg/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/syscache.h"
}

#include "compiler/emit.h"

namespace gpuvm {

static bool
is_stable_in_settings(Oid function)
{
	switch (function)
	{
		case F_NOW:
		case F_TRANSACTION_TIMESTAMP:
		case F_STATEMENT_TIMESTAMP:
		case F_DATE_IN:
		case F_TIME_IN:
		case F_TIMESTAMP_IN:
		case F_TIMESTAMPTZ_IN:
		case F_DATE_TIMESTAMPTZ:
		case F_TIME_TIMESTAMPTZ:
		case F_TIMESTAMP_TIMESTAMPTZ:
		case F_TIMESTAMPTZ_TIMESTAMP:
		case F_TIMESTAMPTZ_DATE:
		case F_TIMESTAMPTZ_DATE_TIME:
		case F_TIMESTAMPTZ_PL_INTERVAL:
		case F_TIMESTAMPTZ_MI_INTERVAL:
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ:
		case F_DATE_PART_TEXT_TIMESTAMPTZ:
		case F_EXTRACT_TEXT_TIMESTAMPTZ:
		case F_TO_DATE:
		case F_TO_TIMESTAMP_TEXT_TEXT:
		case F_TO_CHAR_TIMESTAMPTZ_TEXT:
		case F_TO_CHAR_TIMESTAMP_TEXT:
		case F_DATE_LT_TIMESTAMPTZ:
		case F_DATE_LE_TIMESTAMPTZ:
		case F_DATE_EQ_TIMESTAMPTZ:
		case F_DATE_GT_TIMESTAMPTZ:
		case F_DATE_GE_TIMESTAMPTZ:
		case F_DATE_NE_TIMESTAMPTZ:
		case F_TIMESTAMPTZ_LT_DATE:
		case F_TIMESTAMPTZ_LE_DATE:
		case F_TIMESTAMPTZ_EQ_DATE:
		case F_TIMESTAMPTZ_GT_DATE:
		case F_TIMESTAMPTZ_GE_DATE:
		case F_TIMESTAMPTZ_NE_DATE:
		case F_MONEY_INT4:
		case F_MONEY_INT8:
		case F_MONEY_NUMERIC:
			return true;
		default:
			return false;
	}
}

/* Is the function one that might do more than compute? */
static bool
does_more(Oid function, void *context)
{
	HeapTuple	tuple;
	Form_pg_proc proc;
	bool		more;

	if (is_stable_in_settings(function) || lookup_function(function) != nullptr)
		return false;
	if (!OidIsValid(function) || function >= FirstNormalObjectId)
		return true;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return true;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	more = proc->prolang != INTERNALlanguageId || proc->proretset || proc->prokind != PROKIND_FUNCTION ||
		proc->provolatile != PROVOLATILE_IMMUTABLE;
	ReleaseSysCache(tuple);
	return more;
}

static bool unknown_at_start(Node *node, void *context);

/* The argument is evaluated first: what it has of a CASE is of one around this. */
static bool
unknown_case(const CaseExpr *expr, int *cases)
{
	const int	more = expr->arg != nullptr;
	bool		unknown = unknown_at_start((Node *) expr->arg, cases);
	ListCell   *lc;

	*cases += more;
	foreach(lc, expr->args)
	{
		const CaseWhen *when = lfirst_node(CaseWhen, lc);

		unknown = unknown || unknown_at_start((Node *) when->expr, cases) || unknown_at_start((Node *) when->result, cases);
	}
	unknown = unknown || unknown_at_start((Node *) expr->defresult, cases);
	*cases -= more;
	return unknown;
}

static bool
node_unknown_at_start(Node *node, void *context)
{
	int		   *cases = static_cast<int *>(context);	/* with an argument, around the node */

	switch (nodeTag(node))
	{
		case T_Param:
			/* that of a subquery runs the subquery, before anything else is evaluated (executor/run.cc) */
			return ((Param *) node)->paramkind != PARAM_EXTERN && ((Param *) node)->paramkind != PARAM_EXEC;
		case T_CaseTestExpr:
			return *cases == 0;
		case T_BoolExpr:
		case T_CoalesceExpr:
			/* not one that PostgreSQL runs only where a condition calls for it */
			if (has_exec_param(node))
				return true;
			break;
		case T_CaseExpr:
			if (has_exec_param(node))
				return true;
			return unknown_case((const CaseExpr *) node, cases);
		case T_Const:
		case T_SQLValueFunction:
		case T_FuncExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_RelabelType:
		case T_CollateExpr:
		case T_CoerceViaIO:
		case T_ArrayExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_List:
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(unknown_at_start), context) ||
		check_functions_in_node(node, does_more, nullptr);
}

/* Is there something in it that is known of rows only, or does more than compute? */
static bool
unknown_at_start(Node *node, void *context)
{
	if (node == nullptr)
		return false;
	/* below a CASE with an argument that of the CASE is known */
	if (IsA(node, List) || *static_cast<int *>(context) > 0)
	{
		check_stack_depth();
		return node_unknown_at_start(node, context);
	}
	return !find_fact<bool>(Fact::KnownAtStart, nullptr, node, [&]() { return !node_unknown_at_start(node, context); });
}

bool
known_at_start(const Expr *expr)
{
	int			cases = 0;

	return !unknown_at_start(reinterpret_cast<Node *>(const_cast<Expr *>(expr)), &cases);
}

bool
evaluated_at_start(const Expr *expr)
{
	switch (nodeTag(expr))
	{
		case T_Const:
		case T_List:
			return false;
		case T_Param:
		case T_SQLValueFunction:
			return true;
		default:
			return value_type(exprType(reinterpret_cast<const Node *>(expr))).form == ValueForm::Plain && known_at_start(expr);
	}
}

}  // namespace gpuvm
