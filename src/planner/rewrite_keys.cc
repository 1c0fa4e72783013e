/*
 * rewrite_keys.cc: GROUP BY to_char(day, 'YYYY-MM'), of which programs know only the column, as groups of groups: a subquery groups by
 * day, which a program does, and PostgreSQL evaluates to_char once for each day that is left, and puts together the days of a month.
 * Conditions of WHERE that no program has are asked of such groups, too, and DISTINCT is the same without aggregates.
 *
 * What is aggregated has to be made of parts without a difference in any digit: counts, sums and averages of integers and numerics,
 * extremes, and what combines bits and booleans. Arguments of DISTINCT aggregates are keys of the subquery, too. Nothing is evaluated for a value that no row has which meets the other conditions.
 */
#include "pg/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/formatting.h"
#include "utils/syscache.h"
}

#include <initializer_list>

#include "compiler/compile.h"
#include "compiler/emit.h"
#include "compiler/functions.h"
#include "compiler/maps.h"
#include "planner/group_rows.h"
#include "pg/compat.h"
#include "plan/two_steps.h"
#include "planner/rewrite.h"
#include "store/registry.h"

namespace gpuvm {

/* -- which keys ------------------------------------------------------------------------------ */

/* Has a table of the query its column without a dictionary? Then programs have less of an expression over it. */
static bool
is_by_value(const Query *query, const Var *var)
{
	const RangeTblEntry *rte = var->varlevelsup > 0 || var->varattno <= 0 ? nullptr : rt_fetch(var->varno, query->rtable);
	ImportedTable table;
	int			column;

	if (rte == nullptr || rte->rtekind != RTE_RELATION || !registry_describe(rte->relid, &table))
		return false;
	column = imported_column(&table, var->varattno);
	return column >= 0 && table.variable[column];
}

/* Does a program look it up, by what PostgreSQL says of each entry of a dictionary? `of`: of which query; NULL: wherever the column lies. */
static bool
is_looked_up(const Node *node, const Query *of)
{
	const List *vars;

	if (!is_map_expr((const Expr *) node))
		return false;
	/* of other functions programs have some, and each row's value is soon computed */
	vars = of == nullptr || !IsA(node, FuncExpr) || !is_regexp(((const FuncExpr *) node)->funcid) ? NIL : pull_var_clause((Node *) node, 0);
	return vars == NIL || !is_by_value(of, linitial_node(Var, vars));
}

/* Is there anything in the expression that no program computes? */
static bool
unknown_walker(Node *node, void *context)
{
	const Query *of = static_cast<const Query *>(context);
	List	   *operands;

	if (node == nullptr)
		return false;
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	operands = span_operands((Expr *) node);
	if (operands != NIL)
		return unknown_walker((Node *) operands, context);
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
		case T_Param:
			return false;
		case T_FuncExpr:
			if (is_looked_up(node, of))
				return false;
			if (lookup_function(((FuncExpr *) node)->funcid) == nullptr)
				return true;
			break;
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
			if (is_looked_up(node, of))
				return false;
			set_opfuncid((OpExpr *) node);
			if (lookup_function(((OpExpr *) node)->opfuncid) == nullptr)
				return true;
			break;
		case T_ArrayExpr:
		case T_List:
		case T_CaseWhen:
		case T_CaseTestExpr:
			break;
		case T_BoolExpr:
		case T_CaseExpr:
		case T_CoalesceExpr:
		case T_CollateExpr:
		case T_BooleanTest:
		case T_MinMaxExpr:
		case T_NullTest:
		case T_RelabelType:
		case T_ScalarArrayOpExpr:
			if (is_looked_up(node, of))
				return false;
			break;
		default:
			return !is_looked_up(node, of);
	}
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(unknown_walker), context);
}

static bool
is_unknown(Node *expr, const Query *of)
{
	/* what was asked before may have been rewritten */
	facts_forget();
	return unknown_walker(expr, const_cast<Query *>(of)) && contain_var_clause(expr);
}

/* What the query's rows are made different by: GROUP BY, or DISTINCT. */
static List *
key_clause(const Query *query)
{
	return query->groupClause != NIL || query->hasAggs || query->hasWindowFuncs || query->hasDistinctOn ? query->groupClause : query->distinctClause;
}

/* A condition of WHERE that can be asked of groups. */
static bool
is_unknown_condition(Node *condition)
{
	return is_unknown(condition, nullptr) && !checkExprHasSubLink(condition) && !contain_volatile_functions(condition);
}

bool
has_unknown_keys(const Query *query)
{
	ListCell   *lc;

	if (query->groupingSets != NIL || (key_clause(query) == NIL && !query->hasAggs))
		return false;
	foreach(lc, key_clause(query))
	{
		if (is_unknown(compat_group_key(query, get_sortgroupclause_expr(lfirst_node(SortGroupClause, lc), query->targetList)), query))
			return true;
	}
	foreach(lc, conjuncts(query->jointree->quals))
	{
		if (is_unknown_condition(static_cast<Node *>(lfirst(lc))))
			return true;
	}
	return false;
}

/* -- to_char of a timestamp ------------------------------------------------------------------------ */

/* The unit that the format shows the time in; NULL if that is less than an hour, or the zone. */
static const char *
shown_unit(const Const *format)
{
	char	   *text;

	if (!IsA(format, Const) || format->constisnull)
		return nullptr;
	text = asc_toupper(VARDATA_ANY(DatumGetPointer(format->constvalue)), VARSIZE_ANY_EXHDR(DatumGetPointer(format->constvalue)));
	for (const char *field : {"MI", "SS", "MS", "US", "FF", "TZ", "OF"})
	{
		if (strstr(text, field) != nullptr)
			return nullptr;
	}
	for (const char *field : {"HH", "AM", "PM", "A.M", "P.M"})
	{
		if (strstr(text, field) != nullptr)
			return "hour";
	}
	return "day";
}

/*
 * to_char(x, 'YYYY-MM') as that of the day's beginning: the same text, of fewer values. Local midnight is always of that day, also
 * where clocks go past it; an hour's beginning need not be of that hour where clocks change by half an hour.
 */
static Node *
coarser(Node *node, void *context)
{
	const FuncExpr *call = (const FuncExpr *) node;
	const FuncExpr *time;
	const char *unit;
	bool		zoned;
	FuncExpr   *result;
	Const	   *name;

	if (node == nullptr)
		return nullptr;
	/* conditions of a CASE with an argument have its value in them, which no subquery that they come into knows */
	if (IsA(node, CaseExpr) && ((CaseExpr *) node)->arg != nullptr)
		node = (Node *) searched_case((CaseExpr *) node);
	if (!IsA(node, FuncExpr) || (call->funcid != F_TO_CHAR_TIMESTAMP_TEXT && call->funcid != F_TO_CHAR_TIMESTAMPTZ_TEXT))
		return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(coarser), context);
	time = static_cast<const FuncExpr *>(linitial(call->args));
	zoned = call->funcid == F_TO_CHAR_TIMESTAMPTZ_TEXT;
	unit = shown_unit(static_cast<const Const *>(lsecond(call->args)));
	if (unit == nullptr || (zoned && strcmp(unit, "hour") == 0) ||
		(IsA(time, FuncExpr) && (time->funcid == F_TIMESTAMPTZ_DATE || time->funcid == F_TIMESTAMP_DATE)))
		return node;
	name = makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1, CStringGetTextDatum(unit), false, false);
	result = static_cast<FuncExpr *>(copyObjectImpl(call));
	linitial(result->args) = makeFuncExpr(zoned ? F_DATE_TRUNC_TEXT_TIMESTAMPTZ : F_DATE_TRUNC_TEXT_TIMESTAMP, zoned ? TIMESTAMPTZOID : TIMESTAMPOID,
										  list_make2(name, linitial(result->args)), InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
	return (Node *) result;
}

Node *
with_coarser_times(Node *expr)
{
	return coarser(expr, nullptr);
}

/* One of the type's values, but for a zone's first day. */
bool
is_beginning(const Node *node)
{
	const FuncExpr *call = (const FuncExpr *) node;

	return IsA(node, FuncExpr) && (call->funcid == F_DATE_TRUNC_TEXT_TIMESTAMP || call->funcid == F_DATE_TRUNC_TEXT_TIMESTAMPTZ) &&
		IsA(linitial(call->args), Const) && !linitial_node(Const, call->args)->constisnull &&
		(strcmp(TextDatumGetCString(linitial_node(Const, call->args)->constvalue), "day") == 0 ||
		 strcmp(TextDatumGetCString(linitial_node(Const, call->args)->constvalue), "hour") == 0) && is_quiet(static_cast<Node *>(lsecond(call->args)));
}

/* -- aggregates in two steps --------------------------------------------------------------------- */

struct KeyGroups
{
	const Query *query;
	Query	   *inner;			/* its target list: keys, then aggregates */
	List	   *keys;			/* expressions */
	bool		always;			/* there is a row above where there is no group */
	bool		conditions;		/* some groups are dropped: for their rows PostgreSQL evaluates no aggregate */
	bool		failed;
};

static TargetEntry *
make_entry(Expr *expr, int number)
{
	return makeTargetEntry(expr, static_cast<AttrNumber>(number), psprintf("c%d", number), false);
}

/* A column of the subquery: the expression that is there already, or a new one. */
static Var *
inner_column(KeyGroups *groups, Expr *expr)
{
	TargetEntry *entry;
	ListCell   *lc;

	foreach(lc, groups->inner->targetList)
	{
		entry = lfirst_node(TargetEntry, lc);
		if (equal(entry->expr, expr))
			return makeVarFromTargetEntry(1, entry);
	}
	entry = make_entry(expr, list_length(groups->inner->targetList) + 1);
	groups->inner->targetList = lappend(groups->inner->targetList, entry);
	return makeVarFromTargetEntry(1, entry);
}

/* The aggregate function over one argument, like another one in all else. */
static Aggref *
aggregate_of(const Aggref *like, Oid function, Oid type, Expr *arg, Expr *filter)
{
	Aggref	   *agg = static_cast<Aggref *>(copyObjectImpl(like));

	agg->aggfnoid = function;
	agg->aggtype = type;
	agg->aggstar = false;
	agg->aggargtypes = list_make1_oid(exprType((Node *) arg));
	agg->args = list_make1(makeTargetEntry(arg, 1, nullptr, false));
	agg->aggfilter = filter;
	return agg;
}

/* The inner aggregate's values, summed: a numeric. */
static Expr *
sum_of(KeyGroups *groups, const Aggref *inner)
{
	return (Expr *) aggregate_of(inner, inner->aggtype == INT8OID ? F_SUM_INT8 : F_SUM_NUMERIC, NUMERICOID,
								 (Expr *) inner_column(groups, (Expr *) inner), nullptr);
}

static Const *
int8_const(int64 value)
{
	return makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(value), false, FLOAT8PASSBYVAL);
}

static Expr *
to_int8(Expr *number)
{
	return (Expr *) makeFuncExpr(F_INT8_NUMERIC, INT8OID, list_make1(number), InvalidOid, InvalidOid, COERCE_EXPLICIT_CAST);
}

/* The inner counts, summed: 0 where there are none. */
static Expr *
count_of(KeyGroups *groups, const Aggref *inner)
{
	CoalesceExpr *sum = makeNode(CoalesceExpr);

	if (!groups->always)
		return to_int8(sum_of(groups, inner));
	sum->coalescetype = INT8OID;
	sum->args = list_make2(to_int8(sum_of(groups, inner)), int8_const(0));
	sum->location = -1;
	return (Expr *) sum;
}

/* The average by its sum and its count, as PostgreSQL divides them. */
static Expr *
average_of(KeyGroups *groups, const Aggref *agg, Oid sum, Oid type)
{
	Expr	   *arg = linitial_node(TargetEntry, agg->args)->expr;
	Oid			divide = OpernameGetOprid(list_make2(makeString(pstrdup("pg_catalog")), makeString(pstrdup("/"))), NUMERICOID, NUMERICOID);
	Expr	   *total = sum_of(groups, aggregate_of(agg, sum, type, arg, agg->aggfilter));
	Expr	   *count = sum_of(groups, aggregate_of(agg, F_COUNT_ANY, INT8OID, arg, agg->aggfilter));

	return make_opclause(divide, NUMERICOID, false, total, count, InvalidOid, InvalidOid);
}

/* min, max, or the same of booleans: one of its values, by their order. */
static bool
is_extreme(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(function));
	bool		sorted;

	if (!HeapTupleIsValid(tuple))
		return false;
	sorted = OidIsValid(((Form_pg_aggregate) GETSTRUCT(tuple))->aggsortop);
	ReleaseSysCache(tuple);
	return sorted;
}

/* The aggregate out of those of the groups; NULL if there is no such way. */
static Expr *
combined(KeyGroups *groups, Aggref *agg)
{
	if ((groups->conditions && !is_quiet((Node *) agg)) || agg->agglevelsup != 0 || agg->aggdistinct != NIL || agg->aggorder != NIL || agg->aggkind != AGGKIND_NORMAL)
		return nullptr;
	switch (agg->aggfnoid)
	{
		case F_COUNT_:
		case F_COUNT_ANY:
			return count_of(groups, agg);
		case F_SUM_INT2:
		case F_SUM_INT4:
			return to_int8(sum_of(groups, agg));
		case F_SUM_INT8:
		case F_SUM_NUMERIC:
			return sum_of(groups, agg);
		case F_AVG_INT2:
			return average_of(groups, agg, F_SUM_INT2, INT8OID);
		case F_AVG_INT4:
			return average_of(groups, agg, F_SUM_INT4, INT8OID);
		case F_AVG_INT8:
			return average_of(groups, agg, F_SUM_INT8, NUMERICOID);
		case F_AVG_NUMERIC:
			return average_of(groups, agg, F_SUM_NUMERIC, NUMERICOID);
		case F_BIT_AND_INT2:
		case F_BIT_AND_INT4:
		case F_BIT_AND_INT8:
		case F_BIT_OR_INT2:
		case F_BIT_OR_INT4:
		case F_BIT_OR_INT8:
		case F_SUM_MONEY:
			break;
		default:
			/* which of several values that are equal comes out is a matter of the rows' order */
			if (list_length(agg->args) != 1 || !is_extreme(agg->aggfnoid) || !is_exact((Node *) linitial_node(TargetEntry, agg->args)->expr))
				return nullptr;
			/* a key is the group's only value */
			if (agg->aggfilter == nullptr && list_member(groups->keys, linitial_node(TargetEntry, agg->args)->expr))
				return (Expr *) aggregate_of(agg, agg->aggfnoid, agg->aggtype, (Expr *) inner_column(groups, linitial_node(TargetEntry, agg->args)->expr), nullptr);
			break;
	}
	return (Expr *) aggregate_of(agg, agg->aggfnoid, agg->aggtype, (Expr *) inner_column(groups, (Expr *) agg), nullptr);
}

/* What stands above the groups, in terms of the subquery's columns. */
static Node *
above_groups(Node *node, void *context)
{
	KeyGroups  *groups = static_cast<KeyGroups *>(context);
	int			i = 1;
	ListCell   *lc;

	if (node == nullptr || groups->failed)
		return node;
	foreach(lc, groups->keys)
	{
		if (equal(lfirst(lc), node))
			return (Node *) makeVarFromTargetEntry(1, list_nth_node(TargetEntry, groups->inner->targetList, i - 1));
		i++;
	}
	/* DISTINCT values are keys, and how often one is there does not matter */
	if (IsA(node, Aggref) && ((Aggref *) node)->aggdistinct != NIL && ((Aggref *) node)->agglevelsup == 0 && ((Aggref *) node)->aggkind == AGGKIND_NORMAL &&
		(!groups->conditions || is_quiet(node)))
		return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(above_groups), context);
	if (IsA(node, Aggref))
	{
		Expr	   *expr = combined(groups, (Aggref *) node);

		groups->failed |= expr == nullptr;
		return (Node *) expr;
	}
	/* a column that only depends on the keys */
	if (IsA(node, Var) || IsA(node, GroupingFunc) || IsA(node, SubLink))
	{
		groups->failed = true;
		return node;
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(above_groups), context);
}

/* -- the query ------------------------------------------------------------------------------------- */

static bool
add_key(KeyGroups *groups, Node *expr)
{
	/* values that are equal have to be the same */
	groups->failed |= (IsA(expr, Var) && ((Var *) expr)->varattno <= 0) || !is_exact(expr);
	groups->keys = list_append_unique(groups->keys, expr);
	return groups->failed;
}

/* The largest parts of the expression that programs compute become keys of the subquery; columns alone of what PostgreSQL may not come to, if it can raise an error. */
static bool
collect_walker(Node *node, void *context)
{
	if (node == nullptr)
		return false;
	if (IsA(node, Var) || (!IsA(node, List) && !unknown_walker(node, const_cast<Query *>(static_cast<KeyGroups *>(context)->query)) && (is_beginning(node) || is_quiet(node))))
		return contain_var_clause(node) && add_key(static_cast<KeyGroups *>(context), node);
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(collect_walker), context);
}

/* What DISTINCT aggregates read. */
static bool
distinct_walker(Node *node, void *context)
{
	const Aggref *agg = (const Aggref *) node;
	ListCell   *lc;

	if (node == nullptr)
		return false;
	if (!IsA(node, Aggref))
		return expression_tree_walker(node, reinterpret_cast<bool (*)()>(distinct_walker), context);
	if (agg->aggdistinct == NIL)
		return false;
	foreach(lc, agg->args)
	{
		if (collect_walker((Node *) lfirst_node(TargetEntry, lc)->expr, context))
			return true;
	}
	return collect_walker((Node *) agg->aggfilter, context);
}

static void
collect_keys(const Query *query, List *targets, List *conditions, KeyGroups *groups)
{
	ListCell   *lc;

	foreach(lc, key_clause(query))
	{
		Node	   *key = get_sortgroupclause_expr(lfirst_node(SortGroupClause, lc), targets);

		if (conditions == NIL && contain_var_clause(key) && !unknown_walker(key, const_cast<Query *>(query)))
			add_key(groups, key);
		else
			collect_walker(key, groups);
	}
	collect_walker((Node *) conditions, groups);
	distinct_walker((Node *) targets, groups);
	distinct_walker(coarser(query->havingQual, nullptr), groups);
}

static void
add_keys(KeyGroups *groups)
{
	Query	   *inner = groups->inner;
	ListCell   *lc;

	foreach(lc, groups->keys)
	{
		int			number = foreach_current_index(lc) + 1;
		TargetEntry *entry = make_entry(static_cast<Expr *>(lfirst(lc)), number);

		inner->targetList = lappend(inner->targetList, entry);
		inner->groupClause = lappend(inner->groupClause, group_by(entry, number));
	}
}

static bool
may_rewrite_keys(Query *query)
{
	LevelsRead	read = levels_read_by(query);

	return query->commandType == CMD_SELECT && query->setOperations == nullptr && query->jointree->fromlist != NIL && !query->hasTargetSRFs &&
		query->rowMarks == NIL && !query->hasModifyingCTE && has_unknown_keys(query) && !read.outer && !read.further &&
		!checkExprHasSubLink((Node *) query->targetList) && !checkExprHasSubLink(query->havingQual) &&
		!checkExprHasSubLink(query->limitCount) && !checkExprHasSubLink(query->limitOffset) && !checkExprHasSubLink((Node *) query->windowClause) &&
		!contain_volatile_functions((Node *) query->targetList) && !contain_volatile_functions(query->havingQual);
}

bool
rewrite_keys(Query *query)
{
	KeyGroups	groups = {};
	List	   *conditions = NIL;
	List	   *rest = NIL;
	List	   *targets;
	List	   *above;
	Node	   *having;
	Query	   *inner;
	ListCell   *lc;

	if (!may_rewrite_keys(query))
		return false;
	foreach(lc, conjuncts(query->jointree->quals))
	{
		Node	   *condition = static_cast<Node *>(lfirst(lc));

		if (is_unknown_condition(condition))
			conditions = lappend(conditions, coarser(condition, nullptr));
		else
			rest = lappend(rest, condition);
	}
	/* which of two comes first is PostgreSQL's to say */
	if (conditions != NIL && !is_quiet((Node *) rest))
		return false;
	targets = (List *) coarser((Node *) query->targetList, nullptr);
	groups.query = query;
	inner = groups.inner = makeNode(Query);
	groups.always = key_clause(query) == NIL;
	groups.conditions = conditions != NIL;
	collect_keys(query, targets, conditions, &groups);
	add_keys(&groups);
	above = (List *) above_groups((Node *) targets, &groups);
	having = above_groups(coarser(query->havingQual, nullptr), &groups);
	conditions = (List *) above_groups((Node *) conditions, &groups);
	if (groups.failed || groups.keys == NIL)
		return false;
	inner->hasAggs = query->hasAggs;
	inner->hasSubLinks = query->hasSubLinks;
	inner->hasRecursive = query->hasRecursive;
	inner->hasRowSecurity = query->hasRowSecurity;
	inner->cteList = query->cteList;
	inner->jointree = makeFromExpr(query->jointree->fromlist, rest == NIL ? nullptr : (Node *) make_ands_explicit(rest));
	read_subquery(query, inner, "key_groups");
	/* it stands a level deeper than before, as seen from CTEs of the levels around */
	IncrementVarSublevelsUp((Node *) inner, 1, 1);
	query->jointree->quals = conditions == NIL ? nullptr : (Node *) make_ands_explicit(conditions);
	/* OFFSET 0: PostgreSQL moves no condition into such a subquery */
	if (conditions != NIL)
		inner->limitOffset = (Node *) int8_const(0);
	query->cteList = NIL;
	query->hasRecursive = false;
	query->hasSubLinks = false;
	query->targetList = above;
	query->havingQual = having;
	return true;
}

}  // namespace gpuvm
