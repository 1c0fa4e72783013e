/* groups.cc: GROUP BY, aggregates and window functions. */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parse_agg.h"
#include "parser/parse_oper.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
}

#include "pg/compat.h"
#include "plan/translation.h"

namespace gpuvm {

/* PostgreSQL's own limit. */
constexpr int MAX_GROUPING_SETS = 4096;

SortGroupClause *
key_of(const SortGroupClause *clause, const TargetEntry *column)
{
	SortGroupClause *key = static_cast<SortGroupClause *>(copyObjectImpl(clause));

	key->tleSortGroupRef = column->resno;
	return key;
}

static GpuvmRel **
input_site(GpuvmRel *rel)
{
	return reinterpret_cast<GpuvmRel **>(&linitial(rel->inputs));
}

/* -- keys --------------------------------------------------------------------------- */

static bool
has_key_column(const List *columns, const TargetEntry *column)
{
	ListCell   *lc;

	foreach(lc, columns)
	{
		if (lfirst_node(TargetEntry, lc)->resno == column->resno)
			return true;
	}
	return false;
}

static void
add_key(Level *level, const SortGroupClause *clause, const TargetEntry *target)
{
	Node	   *expr = compat_group_key(level->query, (Node *) target->expr);
	Node	   *value = translate_expr(level, expr);
	TargetEntry *column = column_of(level, expr, target->resname);
	bool		again = has_key_column(level->key_columns, column);

	/* the same value under two names may be in different sets */
	if (again && level->query->groupingSets != NIL)
	{
		column = column_of_value(level, level->site, value, target->resname, true);
		again = false;
	}
	level->key_exprs = lappend(level->key_exprs, expr);
	level->key_values = lappend(level->key_values, value);
	level->key_columns = lappend(level->key_columns, column);
	level->key_refs = lappend_int(level->key_refs, clause->tleSortGroupRef);
	if (!again)
		level->group->keys = lappend(level->group->keys, key_of(clause, column));
}

/* A column that the keys determine (those of a primary key) is one more key. */
static Node *
dependent_key(Level *level, Node *expr, Node *value)
{
	SortGroupClause *key;
	Oid			eqop;
	Oid			sortop;
	bool		hashable;
	ListCell   *lc;

	if (level->query->constraintDeps == NIL || rel_column_of(value) == 0)
	{
		refuse(level->t, REFUSED_CHECK);
		return nullptr;
	}
	get_sort_group_operators(exprType(value), false, false, false, &sortop, &eqop, nullptr, &hashable);
	if (!OidIsValid(eqop))
	{
		refuse(level->t, REFUSED_NO_EQUALITY);
		return nullptr;
	}
	key = makeNode(SortGroupClause);
	key->tleSortGroupRef = rel_column_of(value);
	key->eqop = eqop;
	key->sortop = sortop;
	key->hashable = hashable;
	level->group->keys = lappend(level->group->keys, key);
	foreach(lc, level->group->sets)
		lfirst(lc) = lappend_int(lfirst_node(List, lc), rel_column_of(value));
	level->key_exprs = lappend(level->key_exprs, copyObjectImpl(expr));
	level->key_values = lappend(level->key_values, value);
	level->key_columns = lappend(level->key_columns, column_by_number(level->t, rel_column_of(value)));
	level->key_refs = lappend_int(level->key_refs, 0);
	return value;
}

static Node *
key_with_value(const Level *level, Node *value)
{
	ListCell   *lc;
	ListCell   *lc2;

	forboth(lc, level->key_values, lc2, level->key_columns)
	{
		if (equal(lfirst(lc), value))
			return (Node *) rel_var(lfirst_node(TargetEntry, lc2));
	}
	return nullptr;
}

/* The value that it has below the groups. */
static Node *
row_value(Level *level, Node *expr)
{
	Node	   *value;

	level->phase = PHASE_ROWS;
	value = translate_expr(level, expr);
	level->phase = PHASE_GROUPS;
	return value;
}

/*
 * Keys may be written in another way above: with a join's columns for those of its inputs. Only of what computes
 * with columns, so that no join comes of the attempt.
 */
static bool
may_be_renamed_key(const Level *level, Node *expr)
{
	ListCell   *lc;

	foreach(lc, level->key_exprs)
	{
		if (nodeTag(lfirst(lc)) == nodeTag(expr))
			return contain_vars_of_level(expr, 0) && !checkExprHasSubLink(expr) && !contain_agg_clause(expr) &&
				   !contain_window_function(expr);
	}
	return false;
}

Node *
group_key(Level *level, Node *expr)
{
	ListCell   *lc;
	ListCell   *lc2;
	const RangeTblEntry *rte;
	Node	   *value;
	Node	   *key;

	expr = compat_group_key(level->query, expr);
	forboth(lc, level->key_exprs, lc2, level->key_columns)
	{
		if (equal(lfirst(lc), expr))
			return (Node *) rel_var(lfirst_node(TargetEntry, lc2));
	}
	if (!IsA(expr, Var))
		return may_be_renamed_key(level, expr) ? key_with_value(level, row_value(level, expr)) : nullptr;
	if (((const Var *) expr)->varlevelsup > 0)
		return nullptr;
	value = row_value(level, expr);
	if (refused(level))
		return nullptr;
	key = key_with_value(level, value);
	if (key != nullptr)
		return key;
	/* a join's column may be computed of its inputs' */
	rte = rt_fetch(((const Var *) expr)->varno, level->query->rtable);
	if (rte->rtekind == RTE_JOIN && ((const Var *) expr)->varattno > 0)
		return translate_argument(static_cast<Node *>(list_nth(rte->joinaliasvars, ((const Var *) expr)->varattno - 1)),
								  level);
	return dependent_key(level, expr, value);
}

/* The key's column, by its tleSortGroupRef; null: none has it. */
static TargetEntry *
key_column(const Level *level, int ref)
{
	ListCell   *lc;
	ListCell   *lc2;

	forboth(lc, level->key_refs, lc2, level->key_columns)
	{
		if (ref != 0 && lfirst_int(lc) == ref)
			return lfirst_node(TargetEntry, lc2);
	}
	return nullptr;
}

static int
key_number(const Level *level, int ref)
{
	const TargetEntry *column = key_column(level, ref);

	if (column == nullptr)
		elog(ERROR, "no key of groups has the number %d", ref);
	return column->resno;
}

TargetEntry *
column_of_target(Level *level, const TargetEntry *target)
{
	TargetEntry *column = nullptr;

	/* of two keys of grouping sets that are the same expression each is null in other sets */
	if (level->query->groupingSets != NIL)
		column = key_column(level, target->ressortgroupref);
	if (column != nullptr)
		return column;
	return column_of(level, compat_group_key(level->query, (Node *) target->expr), target->resname);
}

static void
add_sets(Level *level)
{
	List	   *sets = expand_grouping_sets(level->query->groupingSets, level->query->groupDistinct, MAX_GROUPING_SETS);
	ListCell   *lc;
	ListCell   *lc2;

	if (sets == NIL)
		refuse(level->t, REFUSED_GROUPING_SETS);
	if (list_length(sets) <= 1)
		return;
	foreach(lc, sets)
	{
		List	   *numbers = NIL;

		foreach(lc2, lfirst_node(List, lc))
			numbers = list_append_unique_int(numbers, key_number(level, lfirst_int(lc2)));
		level->group->sets = lappend(level->group->sets, numbers);
	}
}

void
add_groups(Level *level, GpuvmRel **rel)
{
	const Query *query = level->query;
	GpuvmRel   *group;
	ListCell   *lc;

	level->site = rel;
	if (query->groupClause == NIL && query->groupingSets == NIL && !query->hasAggs && query->havingQual == nullptr)
		return;
	group = level->group = rel_make(REL_GROUP);
	foreach(lc, query->groupClause)
		add_key(level, lfirst_node(SortGroupClause, lc),
				get_sortgroupclause_tle(lfirst_node(SortGroupClause, lc), query->targetList));
	if (refused(level))
		return;
	if (query->groupingSets != NIL)
		add_sets(level);
	group->inputs = list_make1(*rel);
	*rel = group;
	level->phase = PHASE_GROUPS;
	add_conditions(level, rel, query->havingQual);
	level->site = rel;
}

/* -- aggregates ------------------------------------------------------------------------ */

/* The level that an aggregate belongs to. */
static Level *
aggregate_level(Level *level, Index up)
{
	for (; up > 0; up--)
	{
		level->correlated = true;
		level = level->outer;
	}
	if (level->group == nullptr)
		refuse(level->t, REFUSED_CHECK);
	return level;
}

/* The column of the node that makes them with this expression, a new one if there is none. */
static Node *
made_column(Translation *t, GpuvmRel *rel, Node *expr, const char *name)
{
	TargetEntry *column;
	ListCell   *lc;

	if (contain_volatile_functions(expr))
		refuse(t, REFUSED_VOLATILE);
	foreach(lc, rel->columns)
	{
		column = lfirst_node(TargetEntry, lc);
		if (equal(column->expr, expr))
			return (Node *) rel_var(column);
	}
	column = make_column(t, expr, name);
	rel->columns = lappend(rel->columns, column);
	return (Node *) rel_var(column);
}

/* Arguments are translated where the rows are. */
static Node *
with_translated_arguments(Level *level, Level *at, Node *node, GpuvmRel **site)
{
	GpuvmRel  **outer = at->site;
	const bool	closed = level->closed;
	const Phase phase = at->phase;
	const bool	volatile_allowed = level->t->volatile_allowed;

	level->closed = closed || at != level;
	level->t->volatile_allowed = false;
	at->site = site;
	at->phase = PHASE_ROWS;
	node = expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(translate_argument), level);
	at->phase = phase;
	at->site = outer;
	level->closed = closed;
	level->t->volatile_allowed = volatile_allowed;
	return node;
}

Node *
translate_aggregate(Level *level, Aggref *aggregate)
{
	Level	   *at = aggregate_level(level, aggregate->agglevelsup);
	Aggref	   *translated;

	if (refused(level))
		return (Node *) aggregate;
	translated = (Aggref *) with_translated_arguments(level, at, (Node *) aggregate, input_site(at->group));
	if (refused(level))
		return (Node *) aggregate;
	translated->agglevelsup = 0;
	translated->location = -1;
	return made_column(level->t, at->group, eval_const_expressions(nullptr, (Node *) translated),
					   get_func_name(aggregate->aggfnoid));
}

Node *
translate_grouping(Level *level, GroupingFunc *grouping)
{
	Level	   *at = aggregate_level(level, grouping->agglevelsup);
	GroupingFunc *translated;
	ListCell   *lc;

	if (refused(level))
		return (Node *) grouping;
	if (at->group->sets == NIL)
		return (Node *) makeConst(INT4OID, -1, InvalidOid, sizeof(int32), Int32GetDatum(0), false, true);
	translated = makeNode(GroupingFunc);
	translated->location = -1;
	foreach(lc, grouping->refs)
	{
		const int	number = key_number(at, lfirst_int(lc));

		translated->refs = lappend_int(translated->refs, number);
		translated->args = lappend(translated->args, rel_var(column_by_number(at->t, number)));
	}
	return made_column(level->t, at->group, (Node *) translated, "grouping");
}

/* -- windows ---------------------------------------------------------------------------- */

static List *
window_keys(Level *level, const List *clauses)
{
	List	   *keys = NIL;
	ListCell   *lc;

	foreach(lc, clauses)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		const TargetEntry *target = get_sortgroupclause_tle(clause, level->query->targetList);

		keys = lappend(keys, key_of(clause, column_of_target(level, target)));
	}
	return keys;
}

void
add_windows(Level *level, GpuvmRel **rel)
{
	GpuvmRel   *window;
	ListCell   *lc;

	if (!level->query->hasWindowFuncs)
		return;
	window = rel_make(REL_WINDOW, list_make1(*rel));
	level->site = input_site(window);
	level->phase = level->group != nullptr ? PHASE_GROUPS : PHASE_ROWS;
	foreach(lc, level->query->windowClause)
	{
		const WindowClause *clause = lfirst_node(WindowClause, lc);
		WindowClause *translated = static_cast<WindowClause *>(copyObjectImpl(clause));

		if (clause->frameOptions & FRAMEOPTION_EXCLUSION)
			refuse(level->t, REFUSED_WINDOW_EXCLUDE);
		translated->partitionClause = window_keys(level, clause->partitionClause);
		translated->orderClause = window_keys(level, clause->orderClause);
		if (clause->startOffset != nullptr)
			translated->startOffset = translate_expr(level, clause->startOffset);
		if (clause->endOffset != nullptr)
			translated->endOffset = translate_expr(level, clause->endOffset);
		if (refused(level))
			return;
		window->windows = lappend(window->windows, translated);
	}
	level->window = window;
	*rel = window;
	level->site = rel;
}

Node *
translate_window(Level *level, WindowFunc *function)
{
	GpuvmRel  **outer = level->site;
	const bool	volatile_allowed = level->t->volatile_allowed;
	WindowFunc *translated;

	if (level->window == nullptr)
	{
		refuse(level->t, REFUSED_CHECK);
		return (Node *) function;
	}
	level->site = input_site(level->window);
	level->t->volatile_allowed = false;
	translated = (WindowFunc *) expression_tree_mutator((Node *) function,
														reinterpret_cast<Node *(*) ()>(translate_argument), level);
	level->t->volatile_allowed = volatile_allowed;
	level->site = outer;
	if (refused(level))
		return (Node *) function;
	translated->location = -1;
	return made_column(level->t, level->window, eval_const_expressions(nullptr, (Node *) translated),
					   get_func_name(function->winfnoid));
}

}  // namespace gpuvm
