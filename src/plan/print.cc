/* print.cc: the algebra as text, for people and tests. */
#include "pg/pg.h"

extern "C" {
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/typcache.h"
}

#include "plan/facts.h"
#include "plan/passes.h"

namespace gpuvm {

/*
 * Expressions are shown by PostgreSQL's own deparser, as ones over a relation whose columns are all of the
 * statement's, by number, and behind them the bound values, by id.
 */
struct Printing
{
	List	   *lines;
	List	   *context;
	int			columns;		/* numbers there are */
	const char **names;			/* of columns, by number; of bound values behind */
};

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
deparse_context(const Printing *printing, int bounds)
{
	PlannedStmt *stmt = makeNode(PlannedStmt);
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	List	   *names = NIL;

	for (int i = 1; i <= printing->columns + bounds; i++)
		names = lappend(names, makeString(const_cast<char *>(printing->names[i] != nullptr ? printing->names[i] : psprintf("_%d", i))));
	rte->rtekind = RTE_VALUES;
	rte->eref = makeAlias("columns", names);
	rte->inFromCl = true;
	stmt->rtable = list_make1(rte);
	return deparse_context_for_plan_tree(stmt, list_make1(pstrdup("columns")));
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

		return (Node *) makeVar(1, printing->columns + param->paramid, param->paramtype, param->paramtypmod, param->paramcollid, 0);
	}
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

static const char *
deparsed(Printing *printing, Node *expr)
{
	return deparse_expression(readable(expr, printing), printing->context, false, false);
}

static const char *
name_of(const Printing *printing, int number)
{
	return quote_identifier(printing->names[number] != nullptr ? printing->names[number] : psprintf("_%d", number));
}

static void
put_expressions(StringInfo str, Printing *printing, const List *exprs, const char *between)
{
	ListCell   *lc;

	foreach(lc, exprs)
	{
		if (foreach_current_index(lc) > 0)
			appendStringInfoString(str, between);
		appendStringInfoString(str, deparsed(printing, static_cast<Node *>(lfirst(lc))));
	}
}

static void
put_numbers(StringInfo str, const Printing *printing, const List *numbers)
{
	ListCell   *lc;

	foreach(lc, numbers)
		appendStringInfo(str, "%s%s", foreach_current_index(lc) > 0 ? ", " : "", name_of(printing, lfirst_int(lc)));
}

/* Columns that the node makes. */
static void
put_columns(StringInfo str, Printing *printing, const GpuvmRel *rel, bool expressions)
{
	const char *separator = ": ";
	ListCell   *lc;

	foreach(lc, rel->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (rel_hands_on(column) && rel->op != REL_STATEMENT)
			continue;
		appendStringInfo(str, "%s%s", separator, name_of(printing, column->resno));
		if (expressions)
			appendStringInfo(str, " = %s", deparsed(printing, (Node *) column->expr));
		separator = ", ";
	}
}

static void
put_keys(StringInfo str, const Printing *printing, const List *keys, bool order)
{
	ListCell   *lc;

	foreach(lc, keys)
	{
		const SortGroupClause *key = lfirst_node(SortGroupClause, lc);

		appendStringInfo(str, "%s%s", foreach_current_index(lc) > 0 ? ", " : "", name_of(printing, key->tleSortGroupRef));
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

static void
put_window(StringInfo str, Printing *printing, const WindowClause *window)
{
	appendStringInfoString(str, " (");
	if (window->partitionClause != NIL)
	{
		appendStringInfoString(str, "PARTITION BY ");
		put_keys(str, printing, window->partitionClause, false);
	}
	if (window->orderClause != NIL)
	{
		appendStringInfo(str, "%sORDER BY ", window->partitionClause != NIL ? " " : "");
		put_keys(str, printing, window->orderClause, true);
	}
	if (window->frameOptions & FRAMEOPTION_NONDEFAULT)
		appendStringInfo(str, " frame %x", static_cast<unsigned>(window->frameOptions & ~FRAMEOPTION_NONDEFAULT));
	if (window->startOffset != nullptr)
		appendStringInfo(str, " from %s", deparsed(printing, window->startOffset));
	if (window->endOffset != nullptr)
		appendStringInfo(str, " to %s", deparsed(printing, window->endOffset));
	appendStringInfoChar(str, ')');
}

static const char *
join_name(RelJoin join)
{
	switch (join)
	{
		case RELJOIN_INNER: return "Join";
		case RELJOIN_LEFT: return "Left Join";
		case RELJOIN_FULL: return "Full Join";
		case RELJOIN_SEMI: return "Semi Join";
		case RELJOIN_ANTI: return "Anti Join";
		case RELJOIN_MARK: return "Mark Join";
		case RELJOIN_SINGLE: return "Single Join";
	}
	return "unknown";
}

static void
put_rows(StringInfo str, Printing *printing, const GpuvmRel *rel)
{
	ListCell   *lc;

	appendStringInfoString(str, "Values");
	put_columns(str, printing, rel, false);
	foreach(lc, rel->rows)
	{
		appendStringInfoString(str, " (");
		put_expressions(str, printing, lfirst_node(List, lc), ", ");
		appendStringInfoChar(str, ')');
	}
}

static void
put_arms(StringInfo str, Printing *printing, const GpuvmRel *rel)
{
	ListCell   *lc;

	put_columns(str, printing, rel, false);
	foreach(lc, rel->arms)
	{
		appendStringInfoString(str, " (");
		put_numbers(str, printing, lfirst_node(List, lc));
		appendStringInfoChar(str, ')');
	}
}

static void
put_group(StringInfo str, Printing *printing, const GpuvmRel *rel)
{
	ListCell   *lc;

	appendStringInfoString(str, "Group");
	if (rel->keys != NIL)
		appendStringInfoString(str, " by ");
	put_keys(str, printing, rel->keys, false);
	if (rel->sets != NIL)
		appendStringInfoString(str, " sets");
	foreach(lc, rel->sets)
	{
		appendStringInfoString(str, " (");
		put_numbers(str, printing, lfirst_node(List, lc));
		appendStringInfoChar(str, ')');
	}
	put_columns(str, printing, rel, true);
}

static void
put_sort(StringInfo str, Printing *printing, const GpuvmRel *rel)
{
	appendStringInfoString(str, rel->keys != NIL ? "Sort by " : "Limit");
	put_keys(str, printing, rel->keys, true);
	if (rel->offset != nullptr)
		appendStringInfo(str, " offset %s", deparsed(printing, rel->offset));
	if (rel->count != nullptr)
		appendStringInfo(str, " %s%s%s", rel->keys != NIL ? "limit " : "", deparsed(printing, rel->count), rel->ties ? " with ties" : "");
}

static void
put_node(StringInfo str, Printing *printing, const GpuvmRel *rel)
{
	ListCell   *lc;

	switch (static_cast<RelOp>(rel->op))
	{
		case REL_STATEMENT:
			appendStringInfoString(str, "Statement");
			put_columns(str, printing, rel, false);
			break;
		case REL_SHARED:
			appendStringInfo(str, "Shared %d", rel->id);
			break;
		case REL_BOUND:
			appendStringInfo(str, "Bound %s: %s", name_of(printing, printing->columns + rel->id),
							 name_of(printing, linitial_node(TargetEntry, rel->columns)->resno));
			break;
		case REL_SCAN:
			appendStringInfo(str, "Scan on %s", get_rel_name(rel->rte->relid));
			if (rel->rte->eref != nullptr && strcmp(rel->rte->eref->aliasname, get_rel_name(rel->rte->relid)) != 0)
				appendStringInfo(str, " %s", rel->rte->eref->aliasname);
			if (rel->leaves != NIL)
				appendStringInfo(str, " (%d leaves)", list_length(rel->leaves));
			put_columns(str, printing, rel, false);
			break;
		case REL_SET:
			appendStringInfo(str, "Set %d", rel->id);
			put_columns(str, printing, rel, true);
			break;
		case REL_VALUES:
			put_rows(str, printing, rel);
			break;
		case REL_EXTERNAL:
			appendStringInfo(str, "External %s", linitial_node(RangeTblEntry, ((const Query *) rel->query)->rtable)->eref->aliasname);
			put_columns(str, printing, rel, false);
			break;
		case REL_FILTER:
			appendStringInfo(str, "Filter%s%s", rel->barrier ? " (barrier)" : "", rel->quals != NIL ? ": " : "");
			put_expressions(str, printing, rel->quals, " AND ");
			break;
		case REL_PROJECT:
			appendStringInfoString(str, "Project");
			put_columns(str, printing, rel, true);
			break;
		case REL_JOIN:
			appendStringInfo(str, "%s%s", rel_is_dependent(rel) ? "Dependent " : "", join_name(static_cast<RelJoin>(rel->join)));
			appendStringInfoString(str, rel->quals != NIL ? " on " : "");
			put_expressions(str, printing, rel->quals, " AND ");
			put_columns(str, printing, rel, true);
			break;
		case REL_GROUP:
			put_group(str, printing, rel);
			break;
		case REL_WINDOW:
			appendStringInfoString(str, "Window");
			foreach(lc, rel->windows)
				put_window(str, printing, lfirst_node(WindowClause, lc));
			put_columns(str, printing, rel, true);
			break;
		case REL_SORT:
			put_sort(str, printing, rel);
			break;
		case REL_UNION:
			appendStringInfoString(str, "Union All");
			put_arms(str, printing, rel);
			break;
		case REL_SETOP:
			appendStringInfoString(str, rel->setop == RELSETOP_EXCEPT ? "Except" : "Intersect");
			put_arms(str, printing, rel);
			break;
	}
}

static void
put_tree(Printing *printing, const GpuvmRel *rel, int depth)
{
	StringInfoData str;
	ListCell   *lc;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	initStringInfo(&str);
	appendStringInfoSpaces(&str, 2 * depth);
	put_node(&str, printing, rel);
	printing->lines = lappend(printing->lines, str.data);
	foreach(lc, rel->definitions)
		put_tree(printing, static_cast<const GpuvmRel *>(lfirst(lc)), depth + 1);
	foreach(lc, rel->inputs)
		put_tree(printing, static_cast<const GpuvmRel *>(lfirst(lc)), depth + 1);
}

List *
rel_print(const GpuvmRel *statement)
{
	Printing	printing = {};
	int			bounds = 0;
	ListCell   *lc;

	collect_names(&printing, statement, false);
	foreach(lc, statement->definitions)
		bounds = Max(bounds, static_cast<const GpuvmRel *>(lfirst(lc))->id);
	printing.names = static_cast<const char **>(palloc0((printing.columns + bounds + 1) * sizeof(char *)));
	collect_names(&printing, statement, true);
	for (int i = 1; i <= bounds; i++)
		printing.names[printing.columns + i] = psprintf("value_%d", i);
	printing.context = deparse_context(&printing, bounds);
	put_tree(&printing, statement, 0);
	return printing.lines;
}

}  // namespace gpuvm
