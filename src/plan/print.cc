/* print.cc: the algebra as text, for people and tests. */
#include "pg/pg.h"

extern "C" {
#include "lib/stringinfo.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
}

#include "plan/facts.h"
#include "plan/passes.h"
#include "plan/printing.h"

namespace gpuvm {

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
		appendStringInfo(str, "%s%s", separator, print_name(printing, column->resno));
		if (expressions)
			appendStringInfo(str, " = %s", print_expr(printing, (Node *) column->expr));
		separator = ", ";
	}
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
		print_exprs(str, printing, lfirst_node(List, lc), ", ");
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
		print_numbers(str, printing, lfirst_node(List, lc));
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
	print_keys(str, printing, rel->keys, false);
	if (rel->sets != NIL)
		appendStringInfoString(str, " sets");
	foreach(lc, rel->sets)
	{
		appendStringInfoString(str, " (");
		print_numbers(str, printing, lfirst_node(List, lc));
		appendStringInfoChar(str, ')');
	}
	put_columns(str, printing, rel, true);
}

static void
put_sort(StringInfo str, Printing *printing, const GpuvmRel *rel)
{
	appendStringInfoString(str, rel->keys != NIL ? "Sort by " : "Limit");
	print_keys(str, printing, rel->keys, true);
	if (rel->offset != nullptr)
		appendStringInfo(str, " offset %s", print_expr(printing, rel->offset));
	if (rel->count != nullptr)
		appendStringInfo(str, " %s%s%s", rel->keys != NIL ? "limit " : "", print_expr(printing, rel->count),
						 rel->ties ? " with ties" : "");
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
			appendStringInfo(str, "Bound %s: %s", print_name(printing, printing->columns + rel->id),
							 print_name(printing, linitial_node(TargetEntry, rel->columns)->resno));
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
			appendStringInfo(str, "External %s",
							 linitial_node(RangeTblEntry, ((const Query *) rel->query)->rtable)->eref->aliasname);
			put_columns(str, printing, rel, false);
			break;
		case REL_FILTER:
			appendStringInfo(str, "Filter%s%s", rel->barrier ? " (barrier)" : "", rel->quals != NIL ? ": " : "");
			print_exprs(str, printing, rel->quals, " AND ");
			break;
		case REL_PROJECT:
			appendStringInfoString(str, "Project");
			put_columns(str, printing, rel, true);
			break;
		case REL_JOIN:
			appendStringInfo(str, "%s%s", rel_is_dependent(rel) ? "Dependent " : "",
							 join_name(static_cast<RelJoin>(rel->join)));
			appendStringInfoString(str, rel->quals != NIL ? " on " : "");
			print_exprs(str, printing, rel->quals, " AND ");
			put_columns(str, printing, rel, true);
			break;
		case REL_GROUP:
			put_group(str, printing, rel);
			break;
		case REL_WINDOW:
			appendStringInfoString(str, "Window");
			foreach(lc, rel->windows)
					{
				appendStringInfoChar(str, ' ');
				print_window(str, printing, lfirst_node(WindowClause, lc));
			}
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
put_tree(Printing *printing, const GpuvmRel *rel, int depth, List **lines)
{
	StringInfoData str;
	ListCell   *lc;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	initStringInfo(&str);
	appendStringInfoSpaces(&str, 2 * depth);
	put_node(&str, printing, rel);
	*lines = lappend(*lines, str.data);
	foreach(lc, rel->definitions)
		put_tree(printing, static_cast<const GpuvmRel *>(lfirst(lc)), depth + 1, lines);
	foreach(lc, rel->inputs)
		put_tree(printing, static_cast<const GpuvmRel *>(lfirst(lc)), depth + 1, lines);
}

List *
rel_print(const GpuvmRel *statement)
{
	Printing	printing = {};
	List	   *lines = NIL;

	begin_printing(&printing, statement);
	put_tree(&printing, statement, 0, &lines);
	return lines;
}

}  // namespace gpuvm
