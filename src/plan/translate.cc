/*
 * translate.cc: a query level, from FROM to LIMIT.
 *
 * Only columns that a node makes are noted here; those that nodes hand on are
 * filled in at the end (prune.cc). Columns of relations are made when they are
 * asked for.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
}

#include "pg/compat.h"
#include "plan/passes.h"
#include "plan/translate.h"
#include "plan/translation.h"

namespace gpuvm {

/* bigint = bigint, which has no symbol. */
constexpr Oid INT8_EQUAL = 410;

void
refuse(Translation *t, Refusal refusal)
{
	if (t->refusal == REFUSED_NOT)
		t->refusal = refusal;
}

Level *
make_level(Translation *t, Level *outer, const Query *query)
{
	Level	   *level = static_cast<Level *>(palloc0(sizeof(Level)));
	const int	nrels = list_length(query->rtable) + 1;

	level->t = t;
	level->outer = outer;
	level->query = query;
	level->leaves = static_cast<GpuvmRel **>(palloc0(nrels * sizeof(GpuvmRel *)));
	level->columns = static_cast<List **>(palloc0(nrels * sizeof(List *)));
	level->ctes = static_cast<TranslatedCte *>(palloc0((list_length(query->cteList) + 1) * sizeof(TranslatedCte)));
	return level;
}

TargetEntry *
make_column(Translation *t, Node *expr, const char *name)
{
	TargetEntry *column;

	if (t->columns == MAX_COLUMNS)
	{
		refuse(t, REFUSED_COLUMNS);
		t->columns--;			/* one that has been there: nobody looks at it any more */
		t->made = list_truncate(t->made, t->columns);
	}
	column = makeTargetEntry((Expr *) expr, ++t->columns, pstrdup(name != nullptr ? name : "expr"), false);
	t->made = lappend(t->made, column);
	return column;
}

TargetEntry *
column_by_number(const Translation *t, int number)
{
	return list_nth_node(TargetEntry, t->made, number - 1);
}

TargetEntry *
column_of_value(Level *level, GpuvmRel **site, Node *value, const char *name, bool fresh)
{
	const int	number = rel_column_of(value);
	GpuvmRel   *top = *site;
	TargetEntry *column;
	ListCell   *lc;

	if (number != 0 && !fresh)
		return column_by_number(level->t, number);
	if (top->op != REL_PROJECT || bms_overlap(rel_numbers(top), rel_columns_in(value)))
		top = *site = rel_make(REL_PROJECT, list_make1(top));
	foreach(lc, top->columns)
	{
		column = lfirst_node(TargetEntry, lc);
		if (!fresh && equal(column->expr, value) && !contain_volatile_functions(value))
			return column;
	}
	column = make_column(level->t, value, name);
	top->columns = lappend(top->columns, column);
	return column;
}

/* Is the expression, where it is a column, one of this level's own rows? */
static bool
is_own(Level *level, Node *expr)
{
	switch (nodeTag(expr))
	{
		case T_Var:
			return ((const Var *) expr)->varlevelsup == 0;
		case T_Aggref:
			return ((const Aggref *) expr)->agglevelsup == 0;
		case T_GroupingFunc:
			return ((const GroupingFunc *) expr)->agglevelsup == 0;
		case T_WindowFunc:
		case T_SubLink:
			return true;
		default:
			return level->phase == PHASE_GROUPS && level->group != nullptr && group_key(level, expr) != nullptr;
	}
}

/* A column from outside becomes one of this level: an outer join above may make it null. */
TargetEntry *
column_of(Level *level, Node *expr, const char *name)
{
	Node	   *value = translate_expr(level, expr);

	return column_of_value(level, level->site, value, name, rel_column_of(value) != 0 && !is_own(level, expr));
}

static bool
is_refused_query(Level *level)
{
	const Query *query = level->query;

	if (query->commandType != CMD_SELECT || query->utilityStmt != nullptr)
		refuse(level->t, REFUSED_COMMAND);
	else if (query->rowMarks != NIL)
		refuse(level->t, REFUSED_ROW_MARKS);
	else if (query->hasModifyingCTE)
		refuse(level->t, REFUSED_MODIFYING_CTE);
	else if (query->hasTargetSRFs)
		refuse(level->t, REFUSED_TARGET_SRF);
	return refused(level);
}

/* The columns of targets, by their places in the target list; null where there is none yet. */
struct Targets
{
	TargetEntry **columns;
};

static TargetEntry *
target_column(Level *level, Targets *targets, const TargetEntry *target)
{
	TargetEntry **column = &targets->columns[target->resno];

	if (*column == nullptr)
		*column = column_of_target(level, target);
	return *column;
}

static List *
target_keys(Level *level, Targets *targets, const List *clauses)
{
	List	   *keys = NIL;
	ListCell   *lc;

	foreach(lc, clauses)
	{
		const SortGroupClause *clause = lfirst_node(SortGroupClause, lc);

		keys = lappend(keys, key_of(clause, target_column(level, targets,
														  get_sortgroupclause_tle(const_cast<SortGroupClause *>(clause),
																				  level->query->targetList))));
	}
	return keys;
}

static List *
target_columns(Level *level, Targets *targets)
{
	List	   *columns = NIL;
	ListCell   *lc;

	foreach(lc, level->query->targetList)
	{
		const TargetEntry *target = lfirst_node(TargetEntry, lc);

		if (!target->resjunk)
			columns = lappend(columns, target_column(level, targets, target));
	}
	return columns;
}

/* DISTINCT ON: the first row of each key in the order that is asked for. */
static void
add_first_rows(Level *level, GpuvmRel **rel, List *keys, List *order)
{
	WindowFunc *row_number;
	TargetEntry *number;
	Expr	   *first;

	*rel = rel_number_rows(*rel, keys, order, &row_number);
	number = make_column(level->t, (Node *) row_number, "row_number");
	(*rel)->columns = list_make1(number);
	first = make_opclause(INT8_EQUAL, BOOLOID, false, (Expr *) rel_var(number),
						  (Expr *) rel_bigint(1),
						  InvalidOid, InvalidOid);
	set_opfuncid((OpExpr *) first);
	add_filter(level, rel, (Node *) first);
}

static Node *
limit_expr(Level *level, Node *expr)
{
	if (expr == nullptr)
		return nullptr;
	expr = translate_expr(level, expr);
	if (!bms_is_empty(rel_columns_in(expr)))
		refuse(level->t, REFUSED_LATERAL_LIMIT);
	return IsA(expr, Const) && ((Const *) expr)->constisnull ? nullptr : expr;
}

/* ORDER BY, LIMIT. */
static void
add_sort(Level *level, GpuvmRel **rel, List *keys)
{
	const Query *query = level->query;
	Node	   *offset = limit_expr(level, query->limitOffset);
	Node	   *count = limit_expr(level, query->limitCount);

	if (keys == NIL && offset == nullptr && count == nullptr)
		return;
	*rel = rel_make(REL_SORT, list_make1(*rel));
	(*rel)->keys = keys;
	(*rel)->offset = offset;
	(*rel)->count = count;
	(*rel)->ties = count != nullptr && query->limitOption == LIMIT_OPTION_WITH_TIES;
}

/* The target list, DISTINCT, ORDER BY and LIMIT. What is no key of these is computed above them. */
static void
add_output(Level *level, GpuvmRel **rel)
{
	const Query *query = level->query;
	Targets		targets;
	List	   *order;

	targets.columns =
		static_cast<TargetEntry **>(palloc0((list_length(query->targetList) + 1) * sizeof(TargetEntry *)));
	level->site = rel;
	if (query->distinctClause != NIL && !query->hasDistinctOn)
	{
		(void) target_columns(level, &targets);
		*rel = rel_make(REL_GROUP, list_make1(*rel));
		(*rel)->keys = target_keys(level, &targets, query->distinctClause);
		add_sort(level, rel, target_keys(level, &targets, query->sortClause));
		level->outputs = target_columns(level, &targets);
		return;
	}
	order = target_keys(level, &targets, query->sortClause);
	if (query->hasDistinctOn)
		add_first_rows(level, rel, target_keys(level, &targets, query->distinctClause), order);
	add_sort(level, rel, order);
	level->t->volatile_allowed = level->outer == nullptr;
	level->outputs = target_columns(level, &targets);
	level->t->volatile_allowed = false;
}

/* Does LIMIT leave EXISTS as it is? */
static bool
is_positive(const Node *limit)
{
	return limit == nullptr || (IsA(limit, Const) && (((const Const *) limit)->constisnull ||
													  DatumGetInt64(((const Const *) limit)->constvalue) > 0));
}

GpuvmRel *
translate_level(Level *level, bool exists)
{
	const Query *query = level->query;
	GpuvmRel   *rel;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (is_refused_query(level))
		return nullptr;
	rel = query->setOperations != nullptr ? translate_setops(level) : translate_from(level);
	if (refused(level))
		return nullptr;
	add_groups(level, &rel);
	if (refused(level))
		return nullptr;
	if (exists && query->limitOffset == nullptr && is_positive(eval_const_expressions(nullptr, query->limitCount)))
		return rel;
	add_windows(level, &rel);
	if (!refused(level))
		add_output(level, &rel);
	return refused(level) ? nullptr : rel;
}

/* The output's columns, with the names that it has. */
static List *
output_columns(const Level *level)
{
	List	   *columns = NIL;
	ListCell   *lc;
	ListCell   *lc2 = list_head(level->outputs);

	foreach(lc, level->query->targetList)
	{
		const TargetEntry *target = lfirst_node(TargetEntry, lc);

		if (target->resjunk)
			continue;
		columns = lappend(columns, rel_hand_on(lfirst_node(TargetEntry, lc2)));
		if (target->resname != nullptr)
			llast_node(TargetEntry, columns)->resname = pstrdup(target->resname);
		lc2 = lnext(level->outputs, lc2);
	}
	return columns;
}

GpuvmRel *
translate_statement(const Query *query, Refusal *refusal)
{
	Translation t = {};
	Level	   *level = make_level(&t, nullptr, query);
	GpuvmRel   *rel = translate_level(level, false);
	GpuvmRel   *statement = nullptr;

	if (t.refusal == REFUSED_NOT)
	{
		statement = rel_make(REL_STATEMENT, list_make1(rel), output_columns(level));
		statement->definitions = t.definitions;
		statement->last_number = t.columns;
		prune_columns(statement);
	}
	*refusal = t.refusal;
	return statement;
}

}  // namespace gpuvm
