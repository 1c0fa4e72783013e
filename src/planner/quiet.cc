/*
 * quiet.cc: what never raises an error. Programs compute values of rows, and of subqueries, that
 * PostgreSQL's plan might never ask for.
 *
 * That a numeric may have more than 131072 digits is left out of account.
 */
#include "pg/pg.h"

extern "C" {
#include "access/xact.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_oper.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
}

#include "pg/subtransaction.h"
#include "planner/quiet.h"

namespace gpuvm {

/* Texts whose collations differ, and nobody said which one to use, are not compared. */
static bool
has_collation(List *args, Oid collation)
{
	ListCell   *lc;

	foreach(lc, args)
	{
		if (!OidIsValid(collation) && type_is_collatable(exprType(static_cast<Node *>(lfirst(lc)))))
			return false;
	}
	return true;
}

/* LIKE raises where a pattern ends with its escape, and on collations that know no equal bytes. */
static bool
is_quiet_pattern(List *args, Oid collation)
{
	const Const *pattern = list_length(args) == 2 ? static_cast<const Const *>(lsecond(args)) : nullptr;

	if (pattern == nullptr || !IsA(pattern, Const) || (OidIsValid(collation) && !get_collation_isdeterministic(collation)))
		return false;
	return pattern->constisnull || strchr(TextDatumGetCString(pattern->constvalue), '\\') == nullptr;
}

static bool
is_nonzero_numeric(Node *node)
{
	const Const *number = (const Const *) node;

	return IsA(node, Const) && !number->constisnull &&
		!DatumGetBool(DirectFunctionCall2(numeric_eq, number->constvalue, DirectFunctionCall1(int4_numeric, Int32GetDatum(0))));
}

/* An integer that an integer may be divided by: the smallest one by -1 is too large. */
static bool
is_divisor(const Node *node)
{
	const Const *number = (const Const *) node;

	if (!IsA(node, Const) || number->constisnull)
		return false;
	switch (number->consttype)
	{
		case INT2OID:
			return DatumGetInt16(number->constvalue) != 0 && DatumGetInt16(number->constvalue) != -1;
		case INT4OID:
			return DatumGetInt32(number->constvalue) != 0 && DatumGetInt32(number->constvalue) != -1;
		case INT8OID:
			return DatumGetInt64(number->constvalue) != 0 && DatumGetInt64(number->constvalue) != -1;
		default:
			return false;
	}
}

/* A field that every date and timestamp has. */
static bool
is_field(const Node *node)
{
	static const char *const fields[] = {"year", "quarter", "month", "week", "day", "dow", "doy"};
	const Const *name = (const Const *) node;

	if (!IsA(node, Const) || name->constisnull)
		return false;
	for (const char *field : fields)
	{
		if (strcmp(TextDatumGetCString(name->constvalue), field) == 0)
			return true;
	}
	return false;
}

static bool
is_quiet_function(Oid function, List *args, Oid collation)
{
	if (func_volatile(function) == PROVOLATILE_VOLATILE || !has_collation(args, collation))
		return false;
	/* what is leakproof tells nothing of its arguments, by no error either */
	if (get_func_leakproof(function))
		return true;
	switch (function)
	{
		case F_NUMERIC_EQ:
		case F_NUMERIC_NE:
		case F_NUMERIC_LT:
		case F_NUMERIC_LE:
		case F_NUMERIC_GT:
		case F_NUMERIC_GE:
		case F_NUMERIC_ADD:
		case F_NUMERIC_SUB:
		case F_NUMERIC_MUL:
		case F_NUMERIC_UMINUS:
		case F_NUMERIC_ABS:
		case F_DATE_EQ_TIMESTAMP:
		case F_DATE_NE_TIMESTAMP:
		case F_DATE_LT_TIMESTAMP:
		case F_DATE_LE_TIMESTAMP:
		case F_DATE_GT_TIMESTAMP:
		case F_DATE_GE_TIMESTAMP:
		case F_TIMESTAMP_EQ_DATE:
		case F_TIMESTAMP_NE_DATE:
		case F_TIMESTAMP_LT_DATE:
		case F_TIMESTAMP_LE_DATE:
		case F_TIMESTAMP_GT_DATE:
		case F_TIMESTAMP_GE_DATE:
		case F_INT2AND:
		case F_INT4AND:
		case F_INT8AND:
		case F_INT2OR:
		case F_INT4OR:
		case F_INT8OR:
		case F_INT2XOR:
		case F_INT4XOR:
		case F_INT8XOR:
		case F_INT2NOT:
		case F_INT4NOT:
		case F_INT8NOT:
		case F_INT2SHL:
		case F_INT4SHL:
		case F_INT8SHL:
		case F_INT2SHR:
		case F_INT4SHR:
		case F_INT8SHR:
			return true;
		case F_INT2DIV:
		case F_INT4DIV:
		case F_INT8DIV:
		case F_INT24DIV:
		case F_INT28DIV:
		case F_INT42DIV:
		case F_INT48DIV:
		case F_INT82DIV:
		case F_INT84DIV:
		case F_INT2MOD:
		case F_INT4MOD:
		case F_INT8MOD:
			return list_length(args) == 2 && is_divisor(static_cast<const Node *>(lsecond(args)));
		case F_EXTRACT_TEXT_DATE:
		case F_EXTRACT_TEXT_TIMESTAMP:
			return list_length(args) == 2 && is_field(static_cast<const Node *>(linitial(args)));
		case F_NUMERIC_DIV:
			return list_length(args) == 2 && is_nonzero_numeric(static_cast<Node *>(lsecond(args)));
		case F_TEXTLIKE:
		case F_TEXTNLIKE:
		case F_BPCHARLIKE:
		case F_BPCHARNLIKE:
			return is_quiet_pattern(args, collation);
		default:
			return false;
	}
}

/* Sums of floats may overflow, those of intervals and money may too. */
static bool
is_quiet_aggregate(const Aggref *agg)
{
	ListCell   *lc;

	if (agg->agglevelsup != 0 || agg->aggkind != AGGKIND_NORMAL || agg->aggorder != NIL)
		return false;
	foreach(lc, agg->args)
	{
		if (!has_collation(list_make1(lfirst_node(TargetEntry, lc)->expr), agg->inputcollid))
			return false;
	}
	foreach(lc, agg->aggdistinct)
	{
		if (!is_quiet_function(get_opcode(lfirst_node(SortGroupClause, lc)->eqop), NIL, agg->inputcollid))
			return false;
	}
	switch (agg->aggfnoid)
	{
		case F_COUNT_:
		case F_COUNT_ANY:
		case F_SUM_INT2:
		case F_SUM_INT4:
		case F_SUM_INT8:
		case F_SUM_NUMERIC:
		case F_AVG_INT2:
		case F_AVG_INT4:
		case F_AVG_INT8:
		case F_AVG_NUMERIC:
		case F_MIN_INT2:
		case F_MIN_INT4:
		case F_MIN_INT8:
		case F_MIN_FLOAT4:
		case F_MIN_FLOAT8:
		case F_MIN_NUMERIC:
		case F_MIN_OID:
		case F_MIN_MONEY:
		case F_MIN_DATE:
		case F_MIN_TIME:
		case F_MIN_TIMETZ:
		case F_MIN_TIMESTAMP:
		case F_MIN_TIMESTAMPTZ:
		case F_MIN_INTERVAL:
		case F_MIN_TEXT:
		case F_MIN_BPCHAR:
		case F_MAX_INT2:
		case F_MAX_INT4:
		case F_MAX_INT8:
		case F_MAX_FLOAT4:
		case F_MAX_FLOAT8:
		case F_MAX_NUMERIC:
		case F_MAX_OID:
		case F_MAX_MONEY:
		case F_MAX_DATE:
		case F_MAX_TIME:
		case F_MAX_TIMETZ:
		case F_MAX_TIMESTAMP:
		case F_MAX_TIMESTAMPTZ:
		case F_MAX_INTERVAL:
		case F_MAX_TEXT:
		case F_MAX_BPCHAR:
		case F_BOOL_AND:
		case F_BOOL_OR:
		case F_EVERY:
		case F_BIT_AND_INT2:
		case F_BIT_AND_INT4:
		case F_BIT_AND_INT8:
		case F_BIT_OR_INT2:
		case F_BIT_OR_INT4:
		case F_BIT_OR_INT8:
			return true;
		default:
			return false;
	}
}

/* The query has been through the planner: parameters stand for its subqueries, which are looked at by themselves. */
static bool planned;

/* What an expression computes itself; `context`: a list of its subqueries, which are to be looked at. */
static bool
loud_walker(Node *node, void *context)
{
	if (node == nullptr)
		return false;
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	switch (nodeTag(node))
	{
		case T_Const:
		case T_CaseTestExpr:
		case T_SQLValueFunction:
		case T_SortGroupClause:
		case T_RangeTblRef:
			return false;
		case T_Var:
			return ((Var *) node)->varattno <= 0;
		case T_Param:
			return ((Param *) node)->paramkind != PARAM_EXTERN && ((Param *) node)->paramkind != PARAM_SUBLINK &&
				!(planned && ((Param *) node)->paramkind == PARAM_EXEC);
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
			{
				const OpExpr *op = (const OpExpr *) node;

				if (op->opretset || !is_quiet_function(get_opcode(op->opno), op->args, op->inputcollid))
					return true;
				break;
			}
		case T_FuncExpr:
			{
				const FuncExpr *func = (const FuncExpr *) node;

				if (func->funcretset || !is_quiet_function(func->funcid, func->args, func->inputcollid))
					return true;
				break;
			}
		case T_ScalarArrayOpExpr:
			{
				const ScalarArrayOpExpr *op = (const ScalarArrayOpExpr *) node;

				if (!is_quiet_function(get_opcode(op->opno), NIL, op->inputcollid) || !has_collation(op->args, op->inputcollid))
					return true;
				break;
			}
		case T_MinMaxExpr:
			{
				const MinMaxExpr *choice = (const MinMaxExpr *) node;
				Oid			less;

				get_sort_group_operators(choice->minmaxtype, false, false, false, &less, nullptr, nullptr, nullptr);
				if (!OidIsValid(less) || !is_quiet_function(get_opcode(less), NIL, choice->inputcollid) || !has_collation(choice->args, choice->inputcollid))
					return true;
				break;
			}
		case T_Aggref:
			if (!is_quiet_aggregate((const Aggref *) node))
				return true;
			break;
		case T_SubLink:
			{
				const SubLink *sublink = (const SubLink *) node;
				const Query *query = (const Query *) sublink->subselect;
				List	  **subqueries = static_cast<List **>(context);

				/* a subquery of one value raises where there are two */
				if (sublink->subLinkType != ANY_SUBLINK && sublink->subLinkType != ALL_SUBLINK && sublink->subLinkType != EXISTS_SUBLINK &&
					(sublink->subLinkType != EXPR_SUBLINK || !query->hasAggs || query->groupClause != NIL || query->groupingSets != NIL))
					return true;
				*subqueries = lappend(*subqueries, sublink->subselect);
				return loud_walker(sublink->testexpr, context);
			}
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CoalesceExpr:
		case T_RelabelType:
		case T_CollateExpr:
		case T_ArrayExpr:
		case T_List:
		case T_TargetEntry:
		case T_FromExpr:
		case T_JoinExpr:
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(loud_walker), context);
}

static void
fold(void *context)
{
	Node	  **node = static_cast<Node **>(context);

	*node = eval_const_expressions(nullptr, *node);
}

/* A copy, constants evaluated; NULL where that raises an error: the statement may never come to it. */
static Node *
folded(Node *node)
{
	ErrorData  *error;

	if (IsInParallelMode())
		return nullptr;
	error = in_subtransaction(fold, &node);
	return error == nullptr ? node : nullptr;
}

static bool is_quiet_query(Query *query, bool with_target, const Query *outer);

/* The first of the subqueries that may raise an error, or NULL; those found quiet are noted. */
static const void *
loud_subquery(List *subqueries, List **quiet)
{
	ListCell   *lc;

	foreach(lc, subqueries)
	{
		if (list_member_ptr(*quiet, lfirst(lc)))
			continue;
		if (!is_quiet_query(static_cast<Query *>(lfirst(lc)), true, nullptr))
			return lfirst(lc);
		*quiet = lappend(*quiet, lfirst(lc));
	}
	return nullptr;
}

/* Folding may leave less of it. Each subquery is looked at once: twice would double with each level. */
bool
is_quiet(Node *node)
{
	List	   *subqueries = NIL;
	List	   *quiet = NIL;
	const void *loud = nullptr;

	if (!loud_walker(node, &subqueries))
	{
		loud = loud_subquery(subqueries, &quiet);
		if (loud == nullptr)
			return true;
	}
	subqueries = NIL;
	node = folded(node);
	return node != nullptr && !loud_walker(node, &subqueries) && !list_member_ptr(subqueries, loud) &&
		loud_subquery(subqueries, &quiet) == nullptr;
}

/* A CTE of the level around is as quiet as its query. */
static bool
is_quiet_cte(const RangeTblEntry *rte, const Query *outer)
{
	ListCell   *lc;

	if (outer == nullptr || rte->ctelevelsup != 1 || rte->self_reference)
		return false;
	foreach(lc, outer->cteList)
	{
		const CommonTableExpr *cte = lfirst_node(CommonTableExpr, lc);

		if (strcmp(cte->ctename, rte->ctename) == 0)
			return !cte->cterecursive && IsA(cte->ctequery, Query) && is_quiet_query((Query *) cte->ctequery, true, nullptr);
	}
	return false;
}

static bool
is_quiet_relation(RangeTblEntry *rte, const Query *outer)
{
	/* conditions of a policy, or below a security barrier, come before others: nothing is moved */
	if (rte->securityQuals != NIL || rte->security_barrier || rte->lateral || rte->tablesample != nullptr)
		return false;
	switch (rte->rtekind)
	{
		case RTE_RELATION:
			/* before version 16 an expanded view's query still names the view, which it does not read */
			return rte->relkind == RELKIND_RELATION || rte->relkind == RELKIND_MATVIEW || rte->relkind == RELKIND_PARTITIONED_TABLE ||
				rte->relkind == RELKIND_VIEW;
		case RTE_SUBQUERY:
			/* what the planner has pulled up stands in the query itself */
			return rte->subquery == nullptr || is_quiet_query(rte->subquery, true, nullptr);
		case RTE_JOIN:
			return is_quiet((Node *) rte->joinaliasvars);
		case RTE_CTE:
			return is_quiet_cte(rte, outer);
		case RTE_RESULT:
			return true;
#if PG_VERSION_NUM >= 180000
		case RTE_GROUP:
			return is_quiet((Node *) rte->groupexprs);
#endif
		default:
			return false;
	}
}

static bool
is_quiet_query(Query *query, bool with_target, const Query *outer)
{
	ListCell   *lc;

	if (query->commandType != CMD_SELECT || query->hasWindowFuncs || query->hasTargetSRFs || query->hasDistinctOn || query->hasModifyingCTE ||
		query->hasRowSecurity || query->cteList != NIL || query->rowMarks != NIL || query->setOperations != nullptr ||
		query->limitCount != nullptr || query->limitOffset != nullptr)
		return false;
	foreach(lc, query->groupClause)
	{
		if (!is_quiet_function(get_opcode(lfirst_node(SortGroupClause, lc)->eqop), NIL, InvalidOid))
			return false;
	}
	foreach(lc, query->distinctClause)
	{
		if (!is_quiet_function(get_opcode(lfirst_node(SortGroupClause, lc)->eqop), NIL, InvalidOid))
			return false;
	}
	foreach(lc, query->rtable)
	{
		if (!is_quiet_relation(lfirst_node(RangeTblEntry, lc), outer))
			return false;
	}
	return is_quiet((Node *) query->jointree) && (!with_target || is_quiet((Node *) query->targetList)) && is_quiet(query->havingQual);
}

bool
is_quiet_planned_query(Query *query, bool with_target, const Query *outer)
{
	volatile bool quiet = false;

	planned = true;
	PG_TRY();
	{
		quiet = is_quiet_query(query, with_target, outer);
	}
	PG_FINALLY();
	{
		planned = false;
	}
	PG_END_TRY();
	return quiet;
}

}  // namespace gpuvm
