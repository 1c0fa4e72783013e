/*
 * sql.cc: the algebra as SQL, each node a subselect with columns of unique names.
 *
 * This is for tests: what a statement's algebra means is asked of PostgreSQL, and compared with the statement.
 */
#include "pg/pg.h"

extern "C" {
#include "lib/stringinfo.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
}

#include "plan/passes.h"
#include "plan/printing.h"

namespace gpuvm {

static const char *select_from(Printing *printing, const GpuvmRel *rel);

static const char *
own_name(const GpuvmRel *rel, const TargetEntry *column)
{
	return quote_identifier(get_attname(rel->rte->relid, ((const Var *) column->expr)->varattno, false));
}

/* Columns that the node makes, each behind the text. */
static void
put_made(StringInfo str, Printing *printing, const GpuvmRel *rel, const char *before)
{
	ListCell   *lc;

	foreach(lc, rel->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);
		const char *value;

		if (rel_hands_on(column))
			continue;
		value = rel->op == REL_SCAN ? own_name(rel, column)
			: rel->op == REL_VALUES ? psprintf("column%d", ((const Var *) column->expr)->varattno)
			: rel->op == REL_UNION || rel->op == REL_SETOP ? print_name(printing, column->resno)
			: print_expr(printing, (const Node *) column->expr);
		appendStringInfo(str, "%s%s", before, value);
		if (IsA(column->expr, WindowFunc))
		{
			const WindowFunc *function = (const WindowFunc *) column->expr;
			ListCell   *lc2;

			if (function->winstar)
			{
				str->len -= 2;
				appendStringInfoString(str, "(*)");
			}
			if (function->aggfilter != nullptr)
				appendStringInfo(str, " FILTER (WHERE %s)", print_expr(printing, (const Node *) function->aggfilter));
			foreach(lc2, rel->windows)
			{
				if (lfirst_node(WindowClause, lc2)->winref != function->winref)
					continue;
				appendStringInfoString(str, " OVER ");
				print_window(str, printing, lfirst_node(WindowClause, lc2));
			}
		}
		appendStringInfo(str, " AS %s", print_name(printing, column->resno));
		before = ", ";
	}
}

static void
put_where(StringInfo str, Printing *printing, const List *quals, const char *keyword)
{
	appendStringInfo(str, " %s ", keyword);
	if (quals == NIL)
		appendStringInfoString(str, "true");
	print_exprs(str, printing, quals, " AND ");
}

static void
put_join(StringInfo str, Printing *printing, const GpuvmRel *rel)
{
	const char *left = select_from(printing, rel_input(rel));
	const char *right = select_from(printing, rel_input(rel, 1));

	switch (static_cast<RelJoin>(rel->join))
	{
		case RELJOIN_INNER:
		case RELJOIN_LEFT:
		case RELJOIN_SINGLE:
			appendStringInfo(str, "SELECT * FROM (%s) l %s JOIN LATERAL (%s) r", left,
							 rel->join == RELJOIN_INNER ? "" : "LEFT", right);
			put_where(str, printing, rel->quals, "ON");
			break;
		case RELJOIN_FULL:
			appendStringInfo(str, "SELECT * FROM (%s) l FULL JOIN (%s) r", left, right);
			put_where(str, printing, rel->quals, "ON");
			break;
		case RELJOIN_SEMI:
		case RELJOIN_ANTI:
			appendStringInfo(str, "SELECT * FROM (%s) l WHERE %sEXISTS (SELECT FROM (%s) r", left,
							 rel->join == RELJOIN_ANTI ? "NOT " : "", right);
			put_where(str, printing, rel->quals, "WHERE");
			appendStringInfoChar(str, ')');
			break;
		case RELJOIN_MARK:
			appendStringInfo(str,
							 "SELECT *, (SELECT CASE WHEN bool_or(mark) THEN true WHEN bool_or(mark IS NULL) THEN NULL "
							 "ELSE false END "
							 "FROM (SELECT %s AS mark FROM (%s) r) m) AS %s FROM (%s) l",
							 print_expr(printing, (const Node *) rel_mark(rel)->expr), right,
							 print_name(printing, rel_mark(rel)->resno), left);
			break;
	}
}

static void
put_values(StringInfo str, Printing *printing, const GpuvmRel *rel)
{
	ListCell   *lc;

	appendStringInfoString(str, "SELECT ");
	if (linitial(rel->rows) == NIL)
		return;
	put_made(str, printing, rel, "");
	appendStringInfoString(str, " FROM (VALUES ");
	foreach(lc, rel->rows)
	{
		appendStringInfoString(str, foreach_current_index(lc) > 0 ? ", (" : "(");
		print_exprs(str, printing, lfirst_node(List, lc), ", ");
		appendStringInfoChar(str, ')');
	}
	appendStringInfoString(str, ") v");
}

static void
put_group(StringInfo str, Printing *printing, const GpuvmRel *rel)
{
	const char *separator = "";
	ListCell   *lc;

	appendStringInfoString(str, "SELECT ");
	foreach(lc, rel->columns)
	{
		if (!rel_hands_on(lfirst_node(TargetEntry, lc)))
			continue;
		appendStringInfo(str, "%s%s", separator, print_name(printing, lfirst_node(TargetEntry, lc)->resno));
		separator = ", ";
	}
	put_made(str, printing, rel, separator);
	appendStringInfo(str, " FROM (%s) t", select_from(printing, rel_input(rel)));
	if (rel->sets != NIL)
	{
		appendStringInfoString(str, " GROUP BY GROUPING SETS (");
		foreach(lc, rel->sets)
		{
			appendStringInfoString(str, foreach_current_index(lc) > 0 ? ", (" : "(");
			print_numbers(str, printing, lfirst_node(List, lc));
			appendStringInfoChar(str, ')');
		}
		appendStringInfoChar(str, ')');
	}
	else if (rel->keys != NIL)
	{
		appendStringInfoString(str, " GROUP BY ");
		print_keys(str, printing, rel->keys, false);
	}
	else
		appendStringInfoString(str, " HAVING true");
}

static void
put_sort(StringInfo str, Printing *printing, const GpuvmRel *rel)
{
	appendStringInfo(str, "SELECT * FROM (%s) t", select_from(printing, rel_input(rel)));
	if (rel->keys != NIL)
	{
		appendStringInfoString(str, " ORDER BY ");
		print_keys(str, printing, rel->keys, true);
	}
	if (rel->offset != nullptr)
		appendStringInfo(str, " OFFSET (%s)", print_expr(printing, rel->offset));
	if (rel->count != nullptr)
		appendStringInfo(str, " FETCH FIRST (%s) ROWS %s", print_expr(printing, rel->count),
						 rel->ties ? "WITH TIES" : "ONLY");
}

static void
put_arms(StringInfo str, Printing *printing, const GpuvmRel *rel)
{
	ListCell   *lc;

	for (int i = 0; i < list_length(rel->inputs); i++)
	{
		const char *separator = "";

		if (i > 0)
			appendStringInfoString(str, rel->op == REL_UNION			? " UNION ALL "
										: rel->setop == RELSETOP_EXCEPT ? " EXCEPT "
																		: " INTERSECT ");
		appendStringInfoString(str, "(SELECT ");
		foreach(lc, rel->columns)
		{
			const TargetEntry *column = lfirst_node(TargetEntry, lc);

			appendStringInfo(str, "%s%s AS %s", separator,
							 print_name(printing, rel_arm_column(rel, i, column)),
							 print_name(printing, column->resno));
			separator = ", ";
		}
		appendStringInfo(str, " FROM (%s) t)", select_from(printing, rel_input(rel, i)));
	}
}

static const char *
select_from(Printing *printing, const GpuvmRel *rel)
{
	StringInfoData str;

	check_stack_depth();
	initStringInfo(&str);
	switch (static_cast<RelOp>(rel->op))
	{
		case REL_SCAN:
			appendStringInfoString(&str, "SELECT ");
			put_made(&str, printing, rel, "");
			appendStringInfo(&str, " FROM %s",
							 quote_qualified_identifier(get_namespace_name(get_rel_namespace(rel->rte->relid)),
														get_rel_name(rel->rte->relid)));
			break;
		case REL_SET:
			appendStringInfoString(&str, "SELECT ");
			put_made(&str, printing, rel, "");
			appendStringInfo(&str, " FROM shared_%d", rel->id);
			break;
		case REL_VALUES:
			put_values(&str, printing, rel);
			break;
		case REL_FILTER:
			appendStringInfo(&str, "SELECT * FROM (%s) t", select_from(printing, rel_input(rel)));
			put_where(&str, printing, rel->quals, "WHERE");
			break;
		case REL_PROJECT:
		case REL_WINDOW:
			appendStringInfoString(&str, "SELECT *");
			put_made(&str, printing, rel, ", ");
			appendStringInfo(&str, " FROM (%s) t", select_from(printing, rel_input(rel)));
			break;
		case REL_JOIN:
			put_join(&str, printing, rel);
			break;
		case REL_GROUP:
			put_group(&str, printing, rel);
			break;
		case REL_SORT:
			put_sort(&str, printing, rel);
			break;
		case REL_UNION:
		case REL_SETOP:
			put_arms(&str, printing, rel);
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("the algebra has a part that only PostgreSQL computes")));
	}
	return str.data;
}

/* The values that are bound are read where they stand. */
static const char *
with_bound_values(const char *text)
{
	const char *name = "bound_value_";
	StringInfoData str;

	initStringInfo(&str);
	for (const char *at = text; *at != '\0';)
	{
		if (strncmp(at, name, strlen(name)) == 0)
		{
			const int	id = atoi(at + strlen(name));

			appendStringInfo(&str, "(SELECT * FROM bound_%d)", id);
			at += strlen(name) + strspn(at + strlen(name), "0123456789");
		}
		else
			appendStringInfoChar(&str, *at++);
	}
	return str.data;
}

const char *
rel_sql(const GpuvmRel *statement)
{
	Printing	printing = {};
	StringInfoData str;
	ListCell   *lc;

	begin_printing(&printing, statement);
	initStringInfo(&str);
	foreach(lc, statement->definitions)
	{
		const GpuvmRel *definition = static_cast<const GpuvmRel *>(lfirst(lc));

		appendStringInfoString(&str, foreach_current_index(lc) == 0 ? "WITH " : ", ");
		if (definition->op == REL_SHARED)
			appendStringInfo(&str, "shared_%d AS MATERIALIZED (%s)", definition->id,
							 select_from(&printing, rel_input(definition)));
		else
			appendStringInfo(&str, "bound_%d AS (SELECT %s FROM (%s) t)", definition->id,
							 print_name(&printing, linitial_node(TargetEntry, definition->columns)->resno),
							 select_from(&printing, rel_input(definition)));
	}
	appendStringInfoString(&str, " SELECT ");
	foreach(lc, statement->columns)
		appendStringInfo(&str, "%s%s AS %s", foreach_current_index(lc) > 0 ? ", " : "",
						 print_name(&printing, lfirst_node(TargetEntry, lc)->resno),
						 quote_identifier(lfirst_node(TargetEntry, lc)->resname));
	appendStringInfo(&str, " FROM (%s) t", select_from(&printing, rel_input(statement)));
	return with_bound_values(str.data);
}

}  // namespace gpuvm
