/* printing.cc: names and expressions of the algebra as text. */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
}

#include "plan/printing.h"

namespace gpuvm {

static void
collect_names(Printing *printing, const GpuvmRel *rel, bool names)
{
	ListCell   *lc;

	check_stack_depth();
	foreach(lc, rel->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (!names)
			printing->columns = Max(printing->columns, column->resno);
		else if (!rel_hands_on(column))
			printing->names[column->resno] = psprintf("%s_%d", column->resname, column->resno);
	}
	foreach(lc, rel->inputs)
		collect_names(printing, static_cast<const GpuvmRel *>(lfirst(lc)), names);
	foreach(lc, rel->definitions)
		collect_names(printing, static_cast<const GpuvmRel *>(lfirst(lc)), names);
}

static List *
deparse_context(const Printing *printing)
{
	PlannedStmt *stmt = makeNode(PlannedStmt);
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	List	   *names = NIL;

	for (int i = 1; i <= printing->columns + printing->bounds; i++)
		names = lappend(names, makeString(const_cast<char *>(printing->names[i] != nullptr ? printing->names[i]
																						   : psprintf("_%d", i))));
	rte->rtekind = RTE_VALUES;
	rte->eref = makeAlias("columns", names);
	rte->inFromCl = true;
	stmt->rtable = list_make1(rte);
	return deparse_context_for_plan_tree(stmt, list_make1(pstrdup("columns")));
}

/* A CASE's tests as conditions of their own: folded ones have no form that is SQL. */
static Node *
with_test_value(Node *node, Node *value)
{
	if (node == nullptr)
		return nullptr;
	if (IsA(node, CaseTestExpr))
		return value;
	/* it has its own */
	if (IsA(node, CaseExpr) || IsA(node, ArrayCoerceExpr))
		return node;
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(with_test_value), value);
}

static Node *
searched_case(const CaseExpr *expr)
{
	CaseExpr   *searched = static_cast<CaseExpr *>(copyObjectImpl(expr));
	ListCell   *lc;

	searched->arg = nullptr;
	foreach(lc, searched->args)
		lfirst_node(CaseWhen, lc)->expr =
			(Expr *) with_test_value((Node *) lfirst_node(CaseWhen, lc)->expr, (Node *) expr->arg);
	return (Node *) searched;
}

static Node *readable(Node *node, Printing *printing);

/* COLLATE, of which folding leaves a relabelling. */
static Node *
collated(const RelabelType *relabel, Printing *printing)
{
	CollateExpr *collate = makeNode(CollateExpr);
	RelabelType *arg = static_cast<RelabelType *>(copyObjectImpl(relabel));

	arg->arg = (Expr *) readable((Node *) relabel->arg, printing);
	collate->arg = (Expr *) arg;
	collate->collOid = relabel->resultcollid;
	collate->location = -1;
	return (Node *) collate;
}

/* Folding leaves a cast of what a constant's output function gives: of a cstring, which has no casts in SQL. */
static Node *
from_text(CoerceViaIO *cast)
{
	const Const *string = (const Const *) cast->arg;
	CoerceViaIO *result;

	if (!IsA(string, Const) || string->consttype != CSTRINGOID || string->constisnull)
		return (Node *) cast;
	result = static_cast<CoerceViaIO *>(copyObjectImpl(cast));
	result->arg = (Expr *) makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1,
									 CStringGetTextDatum(DatumGetCString(string->constvalue)), false, false);
	return (Node *) result;
}

static Node *
readable(Node *node, Printing *printing)
{
	if (node == nullptr)
		return nullptr;
	if (rel_column_of(node) != 0)
	{
		Var		   *var = static_cast<Var *>(copyObjectImpl(node));

		var->varno = var->varnosyn = 1;
		var->varattnosyn = var->varattno;
		return (Node *) var;
	}
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
	{
		const Param *param = (const Param *) node;

		return (Node *) makeVar(1, printing->columns + param->paramid, param->paramtype, param->paramtypmod,
								param->paramcollid, 0);
	}
	if (IsA(node, CaseExpr) && ((CaseExpr *) node)->arg != nullptr)
		return readable(searched_case((CaseExpr *) node), printing);
	if (IsA(node, RelabelType) && OidIsValid(((RelabelType *) node)->resultcollid) &&
		((RelabelType *) node)->resultcollid != exprCollation((Node *) ((RelabelType *) node)->arg))
		return collated((RelabelType *) node, printing);
	if (IsA(node, CoerceViaIO))
		node = from_text((CoerceViaIO *) node);
	/* PostgreSQL looks for the window in a query */
	if (IsA(node, WindowFunc))
	{
		const WindowFunc *function = (const WindowFunc *) node;
		FuncExpr   *call = makeFuncExpr(function->winfnoid, function->wintype, function->args, function->wincollid,
										function->inputcollid, COERCE_EXPLICIT_CALL);

		return expression_tree_mutator((Node *) call, reinterpret_cast<Node *(*)()>(readable), printing);
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(readable), printing);
}

const char *
print_expr(Printing *printing, const Node *expr)
{
	return deparse_expression(readable(const_cast<Node *>(expr), printing), printing->context, false, false);
}

const char *
print_name(const Printing *printing, int number)
{
	return quote_identifier(printing->names[number] != nullptr ? printing->names[number] : psprintf("_%d", number));
}

void
print_exprs(StringInfo str, Printing *printing, const List *exprs, const char *between)
{
	ListCell   *lc;

	foreach(lc, exprs)
	{
		if (foreach_current_index(lc) > 0)
			appendStringInfoString(str, between);
		appendStringInfoString(str, print_expr(printing, static_cast<Node *>(lfirst(lc))));
	}
}

void
print_numbers(StringInfo str, const Printing *printing, const List *numbers)
{
	ListCell   *lc;

	foreach(lc, numbers)
		appendStringInfo(str, "%s%s", foreach_current_index(lc) > 0 ? ", " : "", print_name(printing, lfirst_int(lc)));
}

void
print_keys(StringInfo str, const Printing *printing, const List *keys, bool order)
{
	ListCell   *lc;

	foreach(lc, keys)
	{
		const SortGroupClause *key = lfirst_node(SortGroupClause, lc);

		appendStringInfo(str, "%s%s", foreach_current_index(lc) > 0 ? ", " : "",
						 print_name(printing, key->tleSortGroupRef));
		if (order)
		{
			bool		reverse = false;

			(void) get_equality_op_for_ordering_op(key->sortop, &reverse);
			appendStringInfoString(str, reverse ? " DESC" : "");
			if (key->nulls_first != reverse)
				appendStringInfoString(str, key->nulls_first ? " NULLS FIRST" : " NULLS LAST");
		}
	}
}

static const char *
frame_bound(Printing *printing, int options, const Node *offset, bool end)
{
	if (options & (end ? FRAMEOPTION_END_UNBOUNDED_PRECEDING : FRAMEOPTION_START_UNBOUNDED_PRECEDING))
		return "UNBOUNDED PRECEDING";
	if (options & (end ? FRAMEOPTION_END_UNBOUNDED_FOLLOWING : FRAMEOPTION_START_UNBOUNDED_FOLLOWING))
		return "UNBOUNDED FOLLOWING";
	if (options & (end ? FRAMEOPTION_END_CURRENT_ROW : FRAMEOPTION_START_CURRENT_ROW))
		return "CURRENT ROW";
	return psprintf("%s %s", print_expr(printing, offset),
					options & (end ? FRAMEOPTION_END_OFFSET_PRECEDING : FRAMEOPTION_START_OFFSET_PRECEDING)
						? "PRECEDING"
						: "FOLLOWING");
}

void
print_window(StringInfo str, Printing *printing, const WindowClause *window)
{
	const int	options = window->frameOptions;

	appendStringInfoChar(str, '(');
	if (window->partitionClause != NIL)
	{
		appendStringInfoString(str, "PARTITION BY ");
		print_keys(str, printing, window->partitionClause, false);
	}
	if (window->orderClause != NIL)
	{
		appendStringInfo(str, "%sORDER BY ", window->partitionClause != NIL ? " " : "");
		print_keys(str, printing, window->orderClause, true);
	}
	if (options & FRAMEOPTION_NONDEFAULT)
		appendStringInfo(str, " %s BETWEEN %s AND %s",
						 options & FRAMEOPTION_RANGE  ? "RANGE"
						 : options & FRAMEOPTION_ROWS ? "ROWS"
													  : "GROUPS",
						 frame_bound(printing, options, window->startOffset, false),
						 frame_bound(printing, options, window->endOffset, true));
	appendStringInfoChar(str, ')');
}

void
begin_printing(Printing *printing, const GpuvmRel *statement)
{
	ListCell   *lc;

	collect_names(printing, statement, false);
	foreach(lc, statement->definitions)
		printing->bounds = Max(printing->bounds, static_cast<const GpuvmRel *>(lfirst(lc))->id);
	printing->names = static_cast<const char **>(palloc0((printing->columns + printing->bounds + 1) * sizeof(char *)));
	collect_names(printing, statement, true);
	for (int i = 1; i <= printing->bounds; i++)
		printing->names[printing->columns + i] = psprintf("bound_value_%d", i);
	printing->context = deparse_context(printing);
}

}  // namespace gpuvm
