/*
 * lowering_windows.cc: window functions. The rows become a sorted stage, to which gpuvmd appends the functions' columns
 * (plan_windows.h). Functions whose keys a sort has first share it; for others the stage is sorted anew, by one more.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
}

#include "compiler/emit.h"
#include "compiler/made_exprs.h"
#include "pg/value_form.h"
#include "planner/cost.h"
#include "planner/lowering.h"
#include "planner/lowering_values.h"
#include "planner/order_keys.h"
#include "planner/plan_windows.h"
#include "planner/window_functions.h"

namespace gpuvm {

/* A function of a row, microseconds. */
constexpr double WINDOW_US = 0.02;

/* -- keys ------------------------------------------------------------------------------------- */

/* What a clause is sorted by, over the leaves, under its collations; constants do not count. */
struct WindowKeys
{
	List	   *partition;
	List	   *order;
	List	   *clauses;		/* SortGroupClauses of the order */
};

/* A column of the node that is to be made. */
struct AskedFunction
{
	const TargetEntry *column;
	WindowClause *clause;
	WindowKeys	keys;			/* over the rows that are there now */
	bool		made;
};

/* The key, without what changes neither values nor collation; numbers without their display scales, which no order hangs on. */
static Node *
window_key(const CompileInput *input, Node *key)
{
	while (IsA(key, RelabelType) && exprCollation(key) == exprCollation((Node *) ((RelabelType *) key)->arg))
		key = (Node *) ((RelabelType *) key)->arg;
	return without_display_scale(input, key);
}

/* What is sorted by a number that has two halves. NIL: the key is none. */
static List *
halves_of(const CompileInput *input, Node *key)
{
	if (exprType(key) != NUMERICOID || !is_wide(input, (Expr *) key))
		return NIL;
	return list_make2(half_of((Expr *) key, true), half_of((Expr *) key, false));
}

/* The clause of halves. One that is not numeric's own is not integers', either. */
static SortGroupClause *
as_integers(const SortGroupClause *clause)
{
	SortGroupClause *made = static_cast<SortGroupClause *>(copyObjectImpl(clause));
	const TypeCacheEntry *numeric = lookup_type_cache(NUMERICOID, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
	const TypeCacheEntry *integer = lookup_type_cache(INT8OID, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);

	if (clause->sortop == numeric->lt_opr)
		made->sortop = integer->lt_opr;
	else if (clause->sortop == numeric->gt_opr)
		made->sortop = integer->gt_opr;
	return made;
}

static WindowKeys
keys_of(const Lowering *l, const CompileInput *input, const WindowClause *clause)
{
	WindowKeys	keys = {};
	ListCell   *lc;

	foreach(lc, clause->partitionClause)
	{
		Node	   *key = window_key(input, l->values[lfirst_node(SortGroupClause, lc)->tleSortGroupRef]);

		List	   *halves = halves_of(input, key);

		if (halves != NIL)
			keys.partition = list_concat_unique(keys.partition, halves);
		else if (!IsA(without_relabel(key), Const))
			keys.partition = list_append_unique(keys.partition, key);
	}
	foreach(lc, clause->orderClause)
	{
		SortGroupClause *order = lfirst_node(SortGroupClause, lc);
		Node	   *key = window_key(input, l->values[order->tleSortGroupRef]);
		List	   *halves = halves_of(input, key);
		ListCell   *half;

		if (halves == NIL)
			halves = list_make1(key);
		else
			order = as_integers(order);
		foreach(half, IsA(without_relabel(key), Const) ? NIL : halves)
		{
			if (list_member(keys.partition, lfirst(half)) || list_member(keys.order, lfirst(half)))
				continue;
			keys.order = lappend(keys.order, lfirst(half));
			keys.clauses = lappend(keys.clauses, order);
		}
	}
	return keys;
}

static int
count_keys(const WindowKeys &keys)
{
	return list_length(keys.partition) + list_length(keys.order);
}

static bool
same_direction(const SortGroupClause *a, const SortGroupClause *b)
{
	return a->sortop == b->sortop && a->nulls_first == b->nulls_first;
}

/* Is what is sorted by these keys sorted for the others, too? Of a partition's keys any order will do. */
static bool
is_sorted_for(const WindowKeys &sort, const WindowKeys &other)
{
	const int	npartition = list_length(other.partition);
	List	   *keys = list_concat_copy(sort.partition, sort.order);
	const int	first = list_length(sort.partition);

	if (count_keys(other) > list_length(keys) || (other.order != NIL && npartition < first))
		return false;
	for (int i = 0; i < npartition; i++)
	{
		if (!list_member(other.partition, list_nth(keys, i)))
			return false;
	}
	for (int i = 0; i < list_length(other.order); i++)
	{
		if (!equal(list_nth(keys, npartition + i), list_nth(other.order, i)) ||
			!same_direction(list_nth_node(SortGroupClause, sort.clauses, npartition + i - first),
							list_nth_node(SortGroupClause, other.clauses, i)))
			return false;
	}
	return true;
}

/* How many of the clauses that are left have the key in their partition? */
static int
count_partitions(List *asked, const Node *key)
{
	int			n = 0;
	ListCell   *lc;

	foreach(lc, asked)
	{
		const AskedFunction *a = static_cast<const AskedFunction *>(lfirst(lc));

		n += !a->made && list_member(a->keys.partition, key);
	}
	return n;
}

/* Those with most keys lead; keys of partitions that others have, too, come first. */
static WindowKeys
leading_keys(List *asked)
{
	WindowKeys	best = {};
	List	   *partition = NIL;
	bool		found = false;
	ListCell   *lc;

	foreach(lc, asked)
	{
		const AskedFunction *a = static_cast<const AskedFunction *>(lfirst(lc));
		const WindowKeys &keys = a->keys;

		if (a->made)
			continue;
		if (found && (count_keys(keys) < count_keys(best) ||
					  (count_keys(keys) == count_keys(best) && list_length(keys.order) <= list_length(best.order))))
			continue;
		best = keys;
		best.partition = list_copy(keys.partition);
		found = true;
	}
	while (best.partition != NIL)
	{
		void	   *next = nullptr;
		int			most = -1;

		foreach(lc, best.partition)
		{
			const int	n = count_partitions(asked, static_cast<const Node *>(lfirst(lc)));

			if (n > most)
				next = lfirst(lc);
			most = Max(n, most);
		}
		partition = lappend(partition, next);
		best.partition = list_delete_ptr(best.partition, next);
	}
	best.partition = partition;
	return best;
}

/* -- the stage ----------------------------------------------------------------------------------- */

static void
add_vars(List **exprs, Node *node)
{
	ListCell   *lc;

	foreach(lc, pull_var_clause(node, PVC_RECURSE_WINDOWFUNCS | PVC_RECURSE_PLACEHOLDERS))
		*exprs = list_append_unique(*exprs, lfirst(lc));
}

/* Columns of the rows: keys, arguments, and what those read that are handed on, or computed later. */
static List *
columns_of_rows(Lowering *l, const GpuvmRel *rel, const WindowKeys &sort, List *asked)
{
	List	   *exprs = NIL;
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, list_concat_copy(sort.partition, sort.order))
		exprs = list_append_unique(exprs, without_relabel(static_cast<Node *>(lfirst(lc))));
	foreach(lc, asked)
	{
		const AskedFunction *a = static_cast<const AskedFunction *>(lfirst(lc));
		const WindowKeys &keys = a->keys;
		WindowFunc *f = a->made ? nullptr : (WindowFunc *) resolve(l, (const Node *) a->column->expr);

		if (f == nullptr)
			continue;
		if (is_sorted_for(sort, keys))
		{
			foreach(lc2, window_columns(f))
				exprs = list_append_unique(exprs, lfirst(lc2));
			continue;
		}
		add_vars(&exprs, (Node *) f);
		add_vars(&exprs, (Node *) keys.partition);
		add_vars(&exprs, (Node *) keys.order);
	}
	foreach(lc, rel->columns)
	{
		if (l->values[lfirst_node(TargetEntry, lc)->resno] != nullptr)
			add_vars(&exprs, l->values[lfirst_node(TargetEntry, lc)->resno]);
	}
	/* rows of which nothing is asked are counted */
	return exprs != NIL ? exprs : list_make1(makeBoolConst(true, false));
}

static bool
add_key_of_partition(WindowStage *w, Node *key)
{
	const Node *expr = without_relabel(key);
	const int	column = list_position(w->exprs, expr);
	const OutputForm *form = &w->plan->parts[0].outputs[column];

	if (form->kind != OutputKind::Dictionary ||
		!dictionary_equality(exprType(expr), exprTypmod(expr), exprCollation(key)))
		return add_column_key(&w->sorting, column, exprType(key), exprCollation(key), 0, column);
	/* equal values have equal codes */
	if (w->plan->norder == static_cast<int>(JOB_MAX_ORDER))
		return refuse_order(&w->sorting, "a window has too many keys");
	w->plan->order[w->plan->norder++] = PlanOrderKey{column, 0, -1, column};
	return true;
}

static bool
add_key_of_order(WindowStage *w, Node *key, const SortGroupClause *clause)
{
	const int	column = list_position(w->exprs, without_relabel(key));
	int			flags = clause->nulls_first ? ORDER_NULLS_FIRST : 0;
	Oid			family;
	Oid			type;
	int16		strategy;

	if (!get_ordering_op_properties(clause->sortop, &family, &type, &strategy) ||
		lookup_type_cache(exprType(key), TYPECACHE_BTREE_OPFAMILY)->btree_opf != family)
		return refuse_order(&w->sorting, "the order of a window is not the default one of its type");
	if (strategy == BTGreaterStrategyNumber)
		flags |= ORDER_DESC;
	return add_column_key(&w->sorting, column, exprType(key), exprCollation(key), flags, column);
}

static bool
add_window_keys(WindowStage *w, const WindowKeys &sort)
{
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, sort.partition)
	{
		if (!add_key_of_partition(w, static_cast<Node *>(lfirst(lc))))
			return false;
	}
	forboth(lc, sort.order, lc2, sort.clauses)
	{
		if (!add_key_of_order(w, static_cast<Node *>(lfirst(lc)), lfirst_node(SortGroupClause, lc2)))
			return false;
	}
	/* only of sorted rows are all tablets full, which is what gpuvmd's windows take */
	return w->plan->norder > 0 || add_key_of_partition(w, static_cast<Node *>(linitial(w->exprs)));
}

/* Only values that a result set has as they are. */
static bool
all_stay(const Stage *stage, const ScanPlan *plan)
{
	ListCell   *lc;

	foreach(lc, stage->columns)
	{
		const ChildColumn column = child_column(lfirst_node(List, lc));
		const OutputKind kind = plan->parts[0].outputs[foreach_current_index(lc)].kind;

		if (column.wide || kind == OutputKind::Map)
			return false;
	}
	return true;
}

/* The functions of the clause that the sort is for, those of one frame in one window. */
static bool
add_windows(Lowering *l, WindowStage *w, const WindowKeys &sort, List *asked)
{
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, asked)
	{
		const AskedFunction *first = static_cast<const AskedFunction *>(lfirst(lc));
		const WindowKeys &keys = first->keys;
		PlanWindow	window = {};

		if (first->made || list_member_ptr(w->clauses, first->clause) || !is_sorted_for(sort, keys))
			continue;
		w->clauses = lappend(w->clauses, first->clause);
		window.npartition = list_length(keys.partition);
		window.norder = list_length(keys.order);
		if (!window_frame(w, first->clause, keys.order, &window))
			return false;
		for_each_cell(lc2, asked, lc)
		{
			const AskedFunction *a = static_cast<const AskedFunction *>(lfirst(lc2));

			if (a->clause == first->clause && !window_function(w, &window, a->column))
				return false;
		}
		if (list_length(window.functions) > static_cast<int>(WINDOW_MAX_FUNCTIONS))
			return refuse_order(&w->sorting, "a window has too many functions");
		w->plan->windows = lappend(w->plan->windows, plan_window_to_list(window));
	}
	return true;
}

/* The path has the plan, with the columns that it gives. */
static void
finish_path(WindowStage *w)
{
	Path	   *path = w->stage.path;
	const int	ncolumns = list_length(w->stage.columns);
	const double us = sort_us(w->stage.rows, 0, w->plan->text_orders.n > 0) +
		w->stage.rows * WINDOW_US * list_length(w->results);

	for (int i = list_length(w->exprs) + 1; i <= ncolumns; i++)
		w->stage.names = lappend(w->stage.names, makeString(psprintf("c%d", i)));
	w->stage.exprs = list_concat_copy(w->exprs, w->results);
	w->plan->names = w->stage.names;
	path->pathtarget->exprs = const_cast<List *>(w->stage.exprs);
	path->startup_cost += us * cost_of_us();
	path->total_cost += us * cost_of_us();
	((CustomPath *) path)->custom_private = scan_plan_to_list(w->plan);
}

/* From now on they are columns of the relation; what depends on no row stays as it is, for others have it, too. */
static void
take_columns(Lowering *l, const List *exprs, int relid)
{
	List	   *of_rows = NIL;
	List	   *columns = NIL;
	ListCell   *lc;

	foreach(lc, exprs)
	{
		Node	   *expr = static_cast<Node *>(lfirst(lc));

		if (!contain_var_clause(expr))
			continue;
		of_rows = lappend(of_rows, expr);
		columns = lappend(columns, makeVar(relid, foreach_current_index(lc) + 1, exprType(expr), exprTypmod(expr), exprCollation(expr), 0));
	}
	replace_values(l, of_rows, columns);
}

/* Has a subquery an order of its own? */
static bool
is_ordered(const GpuvmRel *rel)
{
	while (rel->op == REL_PROJECT || rel->op == REL_FILTER || rel->op == REL_WINDOW)
		rel = rel_input(rel);
	return rel->op == REL_SORT;
}

/* Makes what can be made of one sort. */
static Piece *
lower_sort(Lowering *l, const GpuvmRel *rel, const Piece *input, List *asked)
{
	CompileInput rows = {};
	WindowKeys	sort;
	WindowStage w = {};
	Piece	   *piece;
	int			relid;
	ListCell   *lc;

	fill_input(l->root, &input->shape, &rows);
	foreach(lc, asked)
	{
		AskedFunction *a = static_cast<AskedFunction *>(lfirst(lc));

		if (!a->made)
			a->keys = keys_of(l, &rows, a->clause);
	}
	sort = leading_keys(asked);
	w.l = l;
	w.exprs = columns_of_rows(l, rel, sort, asked);
	if (l->reason != nullptr || !stage_of_columns(l, input, w.exprs, &w.stage))
		return nullptr;
	w.plan = scan_plan_from_list(((CustomPath *) w.stage.path)->custom_private);
	w.ordered = is_ordered(rel_input(rel));
	w.sorting.root = l->root;
	w.sorting.plan = w.plan;
	if (!all_stay(&w.stage, w.plan))
		return lowering_refuse(l, "rows of a window have a value in a form that does not stay in gpuvmd");
	if (!add_window_keys(&w, sort) || !add_windows(l, &w, sort, asked))
		return lowering_refuse(l, w.sorting.reason);
	finish_path(&w);
	if (3 * list_length(w.stage.columns) > PROGRAM_MAX_COLUMNS)
		return lowering_refuse(l, "a stage has too many columns");
	piece = piece_of_stage(l, &w.stage);
	relid = bms_singleton_member(piece->shape.cursors[0].relids);
	take_columns(l, w.exprs, relid);
	foreach(lc, asked)
	{
		AskedFunction *a = static_cast<AskedFunction *>(lfirst(lc));

		if (!list_member_ptr(w.clauses, a->clause))
			continue;
		set_value(l, a->column->resno, window_value(&w, a->column, relid));
		a->made = true;
	}
	return piece;
}

static WindowClause *
find_clause(const GpuvmRel *rel, const WindowFunc *function)
{
	ListCell   *lc;

	foreach(lc, rel->windows)
	{
		if (lfirst_node(WindowClause, lc)->winref == function->winref)
			return lfirst_node(WindowClause, lc);
	}
	return nullptr;
}

/* Has each key a value? */
static bool
has_keys(Lowering *l, const WindowClause *clause)
{
	ListCell   *lc;

	foreach(lc, list_concat_copy(clause->partitionClause, clause->orderClause))
	{
		if (l->values[lfirst_node(SortGroupClause, lc)->tleSortGroupRef] == nullptr)
			return lowering_refuse(l, "a window's key has no value") != nullptr;
	}
	return true;
}

/* The rows that windows are made of. A full join's come in no order: they are a stage before they are sorted. */
static Piece *
rows_of_window(Lowering *l, const GpuvmRel *rel)
{
	Piece	   *piece = lower_apart(l, rel_input(rel));

	for (int i = 1; piece != nullptr && i < piece->shape.ncursors; i++)
	{
		if (piece->shape.cursors[i].kind == JoinKind::Full)
			return materialise_columns(l, piece, rel_input(rel)->columns);
	}
	return piece;
}

Piece *
lower_window(Lowering *l, const GpuvmRel *rel)
{
	Piece	   *piece = rows_of_window(l, rel);
	List	   *asked = NIL;
	int			left;
	ListCell   *lc;

	foreach(lc, piece == nullptr ? NIL : rel->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);
		AskedFunction *a = static_cast<AskedFunction *>(palloc0(sizeof(AskedFunction)));

		if (rel_hands_on(column))
			continue;
		a->column = column;
		a->clause = IsA(column->expr, WindowFunc) ? find_clause(rel, (const WindowFunc *) column->expr) : nullptr;
		if (a->clause == nullptr)
			return lowering_refuse(l, "a column of a window is no window function");
		if (!has_keys(l, a->clause))
			return nullptr;
		/* of a CTE's rows there may be one from the reader before */
		l->values[column->resno] = nullptr;
		asked = lappend(asked, a);
	}
	do
	{
		left = 0;
		foreach(lc, asked)
			left += !static_cast<const AskedFunction *>(lfirst(lc))->made;
		if (left > 0 && piece != nullptr)
			piece = lower_sort(l, rel, piece, asked);
	} while (left > 0 && piece != nullptr);
	return piece;
}

}  // namespace gpuvm
