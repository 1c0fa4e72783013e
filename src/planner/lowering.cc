/* lowering.cc: leaves, conditions, and the values of columns. */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/inherit.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "partitioning/partdesc.h"
}

#include "pg/compat.h"
#include "plan/facts.h"
#include "planner/lowering.h"
#include "planner/lowering_values.h"
#include "planner/stage_paths.h"
#include "store/registry.h"

namespace gpuvm {

Piece *
lowering_refuse(Lowering *l, const char *reason)
{
	if (l->reason == nullptr)
		l->reason = reason;
	return nullptr;
}

/* -- values ------------------------------------------------------------------------------- */

static Node *
resolve_mutator(Node *node, void *context)
{
	Lowering   *l = static_cast<Lowering *>(context);
	int			number;

	if (node == nullptr)
		return nullptr;
	number = rel_column_of(node);
	if (number != 0)
	{
		if (l->values[number] != nullptr)
			return static_cast<Node *>(copyObjectImpl(l->values[number]));
		lowering_refuse(l, "a column has no value where it is read");
		return node;
	}
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
	{
		Node	   *value = bound_value(l, (const Param *) node);

		return value != nullptr ? value : node;
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(resolve_mutator), context);
}

/* More nodes than `context`, an int, which is counted down? */
static bool
is_larger(Node *node, void *context)
{
	if (node == nullptr)
		return false;
	return --*static_cast<int *>(context) < 0 || expression_tree_walker(node, reinterpret_cast<bool (*)()>(is_larger), context);
}

bool
is_larger_than(Node *expr, int most)
{
	return is_larger(expr, &most);
}

/* A value that is computed with several times stands there as often: level by level that would double it. */
Node *
resolve(Lowering *l, const Node *expr)
{
	Node	   *resolved = resolve_mutator(const_cast<Node *>(expr), l);
	int			most = 10000;

	if (l->reason == nullptr && is_larger(resolved, &most))
		lowering_refuse(l, "an expression is too large");
	return l->reason == nullptr ? resolved : nullptr;
}

List *
values_of(const Lowering *l, const List *columns)
{
	List	   *values = NIL;
	ListCell   *lc;

	foreach(lc, columns)
	{
		Node	   *value = l->values[lfirst_node(TargetEntry, lc)->resno];

		if (value != nullptr)
			values = list_append_unique(values, value);
	}
	return values;
}

/* -- leaves ------------------------------------------------------------------------------- */

RelOptInfo *
add_relation(Lowering *l, RangeTblEntry *rte)
{
	PlannerInfo *root = l->root;
	RelOptInfo *rel;
	int			rti;

	root->parse->rtable = lappend(root->parse->rtable, rte);
	expand_planner_arrays(root, 1);
	rti = list_length(root->parse->rtable);
	root->simple_rte_array[rti] = rte;
	root->all_baserels = bms_add_member(root->all_baserels, rti);
	rel = build_simple_rel(root, rti, nullptr);
	rel->rows = rel->tuples;
	return rel;
}

/* With all of its leaves. What the directory holds open belongs to this subtransaction: it is not the statement's. */
static RelOptInfo *
add_partitioned(Lowering *l, RangeTblEntry *rte)
{
	PlannerGlobal *glob = l->root->glob;
	PartitionDirectory outer = glob->partition_directory;
	RelOptInfo *volatile rel = nullptr;

	glob->partition_directory = nullptr;
	PG_TRY();
	{
		rel = add_relation(l, rte);
		expand_inherited_rtentry(l->root, rel, rte, rel->relid);
		DestroyPartitionDirectory(glob->partition_directory);
	}
	PG_FINALLY();
	{
		glob->partition_directory = outer;
	}
	PG_END_TRY();
	return rel;
}

static Piece *
piece_of(RelOptInfo *rel, const ScanTarget &target)
{
	Piece	   *piece = static_cast<Piece *>(palloc0(sizeof(Piece)));

	piece->shape.ncursors = 1;
	piece->shape.rows = rel->rows;
	piece->shape.cursors[0] = ShapeCursor{rel->relids, target, NIL, rel->rows, JoinKind::Inner, NIL, NIL, NIL, NIL, 0, 0, false, NIL};
	return piece;
}

static Piece *
lower_scan(Lowering *l, const GpuvmRel *scan)
{
	RangeTblEntry *rte;
	RelOptInfo *rel;
	ScanTarget	target = {};
	ListCell   *lc;

	rte = compat_own_relation(scan->rte, l->root->parse);
	rte->inh = scan->leaves != NIL;
	rel = rte->inh ? add_partitioned(l, rte) : add_relation(l, rte);
	/* which partition stands in the way is told there */
	if (!usable_relation(l->root, rel, &target))
		return rte->inh ? nullptr : lowering_refuse(l, "a table cannot be scanned");
	if (rte->inh)
	{
		rel->pages = target.pages;
		rel->rows = rel->tuples = target.tuples;
	}
	foreach(lc, scan->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);
		Var		   *own = static_cast<Var *>(copyObjectImpl(column->expr));

		if (own->varattno <= 0)
			return lowering_refuse(l, "system columns and whole rows are not in tablets");
		own->varno = own->varnosyn = rel->relid;
		own->varattnosyn = own->varattno;
		l->values[column->resno] = (Node *) own;
	}
	return piece_of(rel, target);
}

/* Its columns as a table's. */
static ImportedTable *
table_of_stage(const Stage *stage)
{
	ImportedTable *table = static_cast<ImportedTable *>(palloc0(sizeof(ImportedTable)));
	ListCell   *lc;

	table->nrows = static_cast<uint64>(Min(Max(stage->rows, 1.0), 1e15));
	foreach(lc, stage->columns)
	{
		const ChildColumn column = child_column(lfirst_node(List, lc));
		const uint32 i = describe_child_column(table, column);

		if (column.form == ValueForm::Dictionary)
			table->entries[i] = static_cast<uint32>(Min(Max(stage->rows, 1.0), 1e6));
	}
	return table;
}

/* What stages' columns are made of, down to the tables. */
static Node *
estimate_mutator(Node *node, void *context)
{
	const Lowering *l = static_cast<const Lowering *>(context);
	ListCell   *lc;

	if (node == nullptr)
		return nullptr;
	if (!IsA(node, Var))
		return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(estimate_mutator), context);
	foreach(lc, l->stages)
	{
		const StageColumns *stage = static_cast<const StageColumns *>(lfirst(lc));
		Node	   *expr;

		if (stage->relid != static_cast<int>(((Var *) node)->varno) || stage->exprs == NIL)
			continue;
		expr = static_cast<Node *>(list_nth(stage->exprs, ((Var *) node)->varattno - 1));
		return expr == nullptr ? node : expr;
	}
	return node;
}

List *
for_estimates(const Lowering *l, const List *exprs)
{
	return (List *) estimate_mutator((Node *) const_cast<List *>(exprs), const_cast<Lowering *>(l));
}

/* For estimates of what reads the stage. NULL: nothing is known of the column; statistics say little of a large expression anyway. */
static List *
exprs_for_estimates(const Lowering *l, const Stage *stage)
{
	List	   *exprs = NIL;
	ListCell   *lc;

	foreach(lc, stage->exprs)
	{
		Node	   *expr = estimate_mutator(static_cast<Node *>(lfirst(lc)), const_cast<Lowering *>(l));
		int			most = 100;

		exprs = lappend(exprs, contain_agg_clause(expr) || contain_window_function(expr) || is_larger(expr, &most) ? nullptr : expr);
	}
	return exprs;
}

Piece *
piece_of_stage(Lowering *l, const Stage *stage)
{
	StageColumns *columns = static_cast<StageColumns *>(palloc(sizeof(StageColumns)));
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	ScanTarget	target = {};
	RelOptInfo *rel;

	/* of VALUES PostgreSQL would take all to be different */
	rte->rtekind = RTE_FUNCTION;
	rte->eref = makeAlias(psprintf("stage_%d", list_length(l->root->parse->rtable) + 1), stage->names);
	rte->inFromCl = true;
	rel = add_relation(l, rte);
	rel->rows = rel->tuples = Max(stage->rows, 1);
	*columns = StageColumns{static_cast<int>(rel->relid), exprs_for_estimates(l, stage), stage->shown};
	l->stages = lappend(l->stages, columns);
	target.table = table_of_stage(stage);
	target.tuples = rel->rows;
	target.child = stage->path;
	target.shared = stage->shared;
	target.columns = stage->columns;
	target.names = stage->names;
	target.shown = stage->shown;
	return piece_of(rel, target);
}

/* The columns that have the display scales of this one. */
static List *
scales_of(const Lowering *l, const Var *var)
{
	List	   *scales = NIL;
	ListCell   *lc;
	ListCell   *pair;

	foreach(lc, l->stages)
	{
		const StageColumns *stage = static_cast<const StageColumns *>(lfirst(lc));

		foreach(pair, stage->relid == static_cast<int>(var->varno) ? stage->shown : NIL)
		{
			if (linitial_int(lfirst_node(List, pair)) == var->varattno)
				scales = lappend_int(scales, lsecond_int(lfirst_node(List, pair)));
		}
	}
	return scales;
}

List *
shown_of_exprs(const Lowering *l, const List *exprs)
{
	List	   *shown = NIL;
	ListCell   *lc;
	ListCell   *other;

	foreach(lc, exprs)
	{
		const Var  *var = static_cast<const Var *>(lfirst(lc));
		const List *scales = IsA(var, Var) ? scales_of(l, var) : NIL;

		foreach(other, scales == NIL ? NIL : exprs)
		{
			const Var  *scale = static_cast<const Var *>(lfirst(other));

			if (IsA(scale, Var) && scale->varno == var->varno && list_member_int(scales, scale->varattno))
				shown = lappend(shown, list_make2_int(foreach_current_index(lc) + 1, foreach_current_index(other) + 1));
		}
	}
	return shown;
}

/* -- materialised rows ---------------------------------------------------------------------- */

struct Replacement
{
	const List *exprs;
	const List *by;
};

static Node *
replace_mutator(Node *node, void *context)
{
	const Replacement *r = static_cast<const Replacement *>(context);
	ListCell   *lc;

	if (node == nullptr)
		return nullptr;
	foreach(lc, r->exprs)
	{
		if (equal(lfirst(lc), node))
			return static_cast<Node *>(copyObjectImpl(list_nth(r->by, foreach_current_index(lc))));
	}
	return expression_tree_mutator(node, reinterpret_cast<Node *(*)()>(replace_mutator), context);
}

Node *
replace_exprs(Node *expr, const List *exprs, const List *by)
{
	Replacement r = {exprs, by};

	return replace_mutator(expr, &r);
}

void
replace_values(Lowering *l, const List *exprs, const List *by)
{
	Replacement r = {exprs, by};

	for (int i = 1; i <= l->ncolumns; i++)
		l->values[i] = replace_mutator(l->values[i], &r);
	if (l->block != nullptr)
	{
		l->block->conditions = (List *) replace_mutator((Node *) l->block->conditions, &r);
		l->block->classes = (List *) replace_mutator((Node *) l->block->classes, &r);
		l->block->held = (List *) replace_mutator((Node *) l->block->held, &r);
		l->block->checks = (List *) replace_mutator((Node *) l->block->checks, &r);
	}
}

/* The relation of the piece's rows, and the expressions as values of it. */
static Piece *
piece_of_rows(Lowering *l, const Piece *piece, const List *exprs, bool apart, List **values)
{
	Stage		stage = {};
	Piece	   *rows;

	if (!stage_of_rows(l, piece, exprs, apart, &stage))
		return nullptr;
	rows = piece_of_stage(l, &stage);
	*values = values_of_relation(stage.values, bms_singleton_member(rows->shape.cursors[0].relids));
	return rows;
}

Piece *
materialise(Lowering *l, Piece *piece, const List *vars)
{
	List	   *values;
	Piece	   *rows = piece_of_rows(l, piece, vars, true, &values);

	if (rows != nullptr)
		replace_values(l, vars, values);
	return rows;
}

Piece *
materialise_columns(Lowering *l, Piece *piece, const List *columns)
{
	const List *exprs = values_of(l, columns);
	List	   *values;
	Piece	   *rows = piece_of_rows(l, piece, exprs, false, &values);
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, rows == nullptr ? NIL : columns)
	{
		Node	  **value = &l->values[lfirst_node(TargetEntry, lc)->resno];

		foreach(lc2, *value == nullptr ? NIL : exprs)
		{
			if (!equal(*value, lfirst(lc2)))
				continue;
			*value = static_cast<Node *>(list_nth(values, foreach_current_index(lc2)));
			break;
		}
	}
	return rows;
}

/* -- conditions ------------------------------------------------------------------------------ */

/* The cursor whose own condition it may be: rows that it leaves out meet nothing further on. Behind a full join those that meet none come, too. */
static int
cursor_of_condition(const Piece *piece, const Bitmapset *relids)
{
	for (int i = 1; i < piece->shape.ncursors; i++)
	{
		if (piece->shape.cursors[i].kind == JoinKind::Full)
			return -1;
	}
	for (int i = 0; i < piece->shape.ncursors; i++)
	{
		const ShapeCursor *c = &piece->shape.cursors[i];

		if (bms_is_subset(relids, c->relids) && (i == 0 || c->kind == JoinKind::Inner))
			return i;
	}
	return -1;
}

void
note_rows(Lowering *l, const ShapeCursor *c)
{
	int			relid;

	if (bms_get_singleton_member(c->relids, &relid))
		l->root->simple_rel_array[relid]->rows = Max(c->rows, 1);
}

/* Conditions that leave so much of what others have left: both bounds of a range say more than each of them. */
static double
further_selectivity(Lowering *l, const List *before, List *quals)
{
	const double all = clauselist_selectivity(l->root, for_estimates(l, list_concat_copy(before, quals)), 0, JOIN_INNER, nullptr);
	const double had = before == NIL ? 1 : clauselist_selectivity(l->root, for_estimates(l, before), 0, JOIN_INNER, nullptr);

	return had > 0 ? Min(all / had, 1) : 1;
}

/* Those that are the cursor's own, or, -1, of the whole rows. */
static List *
conditions_of_cursor(Lowering *l, const Piece *piece, const List *quals, int at)
{
	List	   *own = NIL;
	ListCell   *lc;

	foreach(lc, quals)
	{
		if (cursor_of_condition(piece, pull_varnos(l->root, static_cast<Node *>(lfirst(lc)))) == at)
			own = lappend(own, lfirst(lc));
	}
	return own;
}

void
filter_cursor(Lowering *l, ShapeCursor *c, List *quals)
{
	c->rows *= further_selectivity(l, c->quals, quals);
	c->quals = list_concat_copy(c->quals, quals);
	note_rows(l, c);
}

void
filter_piece(Lowering *l, Piece *piece, List *quals)
{
	ScanShape  *shape = &piece->shape;

	for (int at = -1; at < shape->ncursors; at++)
	{
		List	   *own = conditions_of_cursor(l, piece, quals, at);
		ShapeCursor *c = &shape->cursors[at < 0 ? shape->ncursors - 1 : at];
		double		selectivity;

		if (own == NIL)
			continue;
		selectivity = further_selectivity(l, at < 0 ? c->filters : c->quals, own);
		if (at < 0)
			c->filters = list_concat_copy(c->filters, own);
		else
			filter_cursor(l, c, own);
		for (int i = Max(at, 1); i < shape->ncursors; i++)
			shape->cursors[i].joined *= selectivity;
		shape->rows = Max(shape->rows * selectivity, 1);
	}
}

/* -- nodes -------------------------------------------------------------------------------------- */

static const GpuvmRel *
definition(const Lowering *l, RelOp op, int id)
{
	ListCell   *lc;

	foreach(lc, l->statement->definitions)
	{
		const GpuvmRel *rel = static_cast<const GpuvmRel *>(lfirst(lc));

		if (rel->op == op && rel->id == id)
			return rel;
	}
	return nullptr;
}

static Piece *
lower_set(Lowering *l, const GpuvmRel *set)
{
	const GpuvmRel *shared = definition(l, REL_SHARED, set->id);
	Piece	   *piece = shared == nullptr ? lowering_refuse(l, "a CTE is not there") : lower_shared(l, shared);
	ListCell   *lc;

	if (piece == nullptr)
		return nullptr;
	foreach(lc, set->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);

		set_value(l, column->resno, resolve(l, (const Node *) column->expr));
	}
	return piece;
}

/* OFFSET 0, which keeps PostgreSQL from looking into a subquery. */
static bool
is_zero(const Node *offset)
{
	return offset == nullptr || (IsA(offset, Const) && !((const Const *) offset)->constisnull && DatumGetInt64(((const Const *) offset)->constvalue) == 0);
}

Piece *
lower(Lowering *l, const GpuvmRel *rel)
{
	List	   *none = NIL;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	switch (static_cast<RelOp>(rel->op))
	{
		case REL_SCAN:
			return lower_scan(l, rel);
		case REL_SET:
			return lower_set(l, rel);
		case REL_FILTER:
		case REL_PROJECT:
			return lower_block(l, rel);
		case REL_JOIN:
			return rel->join == RELJOIN_INNER ? lower_block(l, rel) : lower_join(l, rel);
		case REL_GROUP:
			return lower_group(l, rel, &none);
		case REL_UNION:
			return lower_union(l, rel);
		case REL_SORT:
			if (rel->count != nullptr || !is_zero(rel->offset))
				return lowering_refuse(l, "LIMIT below the top is not run in stages yet");
			/* what reads its rows gives them in an order of its own */
			return lower(l, rel_input(rel));
		case REL_VALUES:
			return lower_values(l, rel);
		case REL_EXTERNAL:
			return lower_external(l, rel);
		case REL_WINDOW:
			return lower_window(l, rel);
		case REL_SETOP:
			return lowering_refuse(l, "INTERSECT and EXCEPT are not run in stages yet");
		case REL_STATEMENT:
		case REL_SHARED:
		case REL_BOUND:
			break;
	}
	return lowering_refuse(l, "a definition is read as rows");
}

}  // namespace gpuvm
