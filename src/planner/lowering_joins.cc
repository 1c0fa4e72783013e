/*
 * lowering_joins.cc: joins, and the order of inner ones.
 *
 * The relation with most rows drives the program, and of those that have a condition with what was joined
 * before the one is next that leaves fewest rows.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_aggregate.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
}

#include "compiler/compile.h"
#include "plan/facts.h"
#include "planner/joins.h"
#include "planner/lowering.h"

namespace gpuvm {

/* bigint > bigint, which has no symbol. */
constexpr Oid INT8_GREATER = 413;

static Relids
relids_of(const Piece *piece)
{
	Relids		relids = nullptr;

	for (int i = 0; i < piece->shape.ncursors; i++)
		relids = bms_add_members(relids, piece->shape.cursors[i].relids);
	return relids;
}

/* -- two pieces --------------------------------------------------------------------------------- */

static SpecialJoinInfo *
join_info(const Piece *outer, const Piece *inner, JoinType type)
{
	SpecialJoinInfo *info = makeNode(SpecialJoinInfo);

	info->jointype = type;
	info->min_lefthand = info->syn_lefthand = relids_of(outer);
	info->min_righthand = info->syn_righthand = relids_of(inner);
	return info;
}

/* How many rows come of each pair that could be. */
static double
join_selectivity(Lowering *l, const Piece *outer, const Piece *inner, List *on)
{
	return clauselist_selectivity(l->root, for_estimates(l, on), 0, JOIN_INNER, join_info(outer, inner, JOIN_INNER));
}

static double
joined_rows(JoinKind kind, double outer, double pairs, double inner)
{
	const double met = Min(1.0, pairs / Max(outer, 1));

	switch (kind)
	{
		case JoinKind::Left:
			return Max(outer, pairs);
		case JoinKind::Semi:
			return Max(outer * met, 1);
		case JoinKind::Anti:
			return Max(outer * (1 - met), Max(outer * 0.01, 1));
		default:
			(void) inner;
			return Max(pairs, 1);
	}
}

/* Puts a relation behind what was joined before. */
static Piece *
append_cursor(Lowering *l, const Piece *outer, const Piece *inner, JoinKind kind, List *on)
{
	Piece	   *piece = static_cast<Piece *>(palloc(sizeof(Piece)));
	JoinPathExtraData extra = {};
	ShapeCursor *c = &piece->shape.cursors[outer->shape.ncursors];
	List	   *conditions = NIL;
	Cost		startup;
	Cost		total;
	ListCell   *lc;

	*piece = *outer;
	piece->shape.ncursors++;
	*c = inner->shape.cursors[0];
	c->kind = kind;
	/* what is said of the relation alone leaves out rows of it that meet nothing */
	foreach(lc, on)
	{
		Node	   *qual = static_cast<Node *>(lfirst(lc));
		Relids		relids = pull_varnos(l->root, qual);

		if (!bms_is_empty(relids) && bms_is_subset(relids, c->relids))
		{
			c->quals = lappend(c->quals, qual);
			c->rows = Max(c->rows * clauselist_selectivity(l->root, for_estimates(l, list_make1(qual)), 0, JOIN_INNER, nullptr), 1);
		}
		else
			conditions = lappend(conditions, qual);
	}
	split_seek_keys(conditions, c->relids, &c->keys, &c->conditions);
	c->pairs = outer->shape.rows * c->rows * (c->keys != NIL ? join_selectivity(l, outer, inner, c->keys) : 1);
	if (c->keys != NIL && c->conditions == NIL && (kind == JoinKind::Semi || kind == JoinKind::Anti))
		c->pairs = Min(c->pairs, outer->shape.rows);
	c->joined = piece->shape.rows = joined_rows(kind, outer->shape.rows, outer->shape.rows * c->rows * (conditions != NIL ? join_selectivity(l, outer, inner, conditions) : 1), c->rows);
	choose_means(l->root, &extra, &piece->shape, false, piece->shape.rows, &startup, &total);
	return piece;
}

/* -- blocks ---------------------------------------------------------------------------------- */

static bool flatten(Lowering *l, const GpuvmRel *rel);

static void
add_item(JoinBlock *block, Piece *piece)
{
	block->items = lappend(block->items, piece);
}

Piece *
lower_apart(Lowering *l, const GpuvmRel *rel)
{
	JoinBlock  *outer = l->block;
	Piece	   *piece;

	l->block = nullptr;
	piece = lower(l, rel);
	l->block = outer;
	return piece;
}

/* Whether there are rows, as their number. */
static Aggref *
count_of_rows(void)
{
	Aggref	   *count = makeNode(Aggref);

	count->aggfnoid = F_COUNT_;
	count->aggtype = count->aggtranstype = INT8OID;
	count->aggstar = true;
	count->aggkind = AGGKIND_NORMAL;
	count->aggsplit = AGGSPLIT_SIMPLE;
	count->aggno = count->aggtransno = -1;
	count->location = -1;
	return count;
}

/* The constant if there is a row, else null. */
static Node *
value_if_any(Node *count, const Const *constant)
{
	CaseExpr   *expr = makeNode(CaseExpr);
	CaseWhen   *when = makeNode(CaseWhen);

	when->expr = make_opclause(INT8_GREATER, BOOLOID, false, (Expr *) count,
							   (Expr *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(0), false, FLOAT8PASSBYVAL), InvalidOid, InvalidOid);
	set_opfuncid((OpExpr *) when->expr);
	when->result = static_cast<Expr *>(copyObjectImpl(constant));
	when->location = -1;
	expr->casetype = constant->consttype;
	expr->casecollid = constant->constcollid;
	expr->args = list_make1(when);
	expr->defresult = (Expr *) makeNullConst(constant->consttype, constant->consttypmod, constant->constcollid);
	expr->location = -1;
	return (Node *) expr;
}

/* EXISTS without outer columns is the constant that the first row has: the rows that are asked for one; NULL: it is something else. */
static const GpuvmRel *
rows_of_exists(const GpuvmRel *bound, const Const **constant)
{
	const GpuvmRel *project = rel_input(bound);
	const GpuvmRel *limit = project->op == REL_PROJECT ? rel_input(project) : nullptr;
	const TargetEntry *column = limit == nullptr ? nullptr : rel_find(project, linitial_node(TargetEntry, bound->columns)->resno);

	if (column == nullptr || !IsA(column->expr, Const) || ((const Const *) column->expr)->constisnull || limit->op != REL_SORT || limit->offset != nullptr ||
		limit->count == nullptr || !IsA(limit->count, Const) || ((const Const *) limit->count)->constisnull || DatumGetInt64(((const Const *) limit->count)->constvalue) != 1)
		return nullptr;
	*constant = (const Const *) column->expr;
	return rel_input(limit);
}

/* The row of an aggregation without keys, and its value. */
static Piece *
lower_bound(Lowering *l, const GpuvmRel *bound, Node **value)
{
	const int	number = linitial_node(TargetEntry, bound->columns)->resno;
	const GpuvmRel *group = rel_input(bound);
	const Const *constant = nullptr;
	const GpuvmRel *rows = rows_of_exists(bound, &constant);
	Piece	   *piece;

	if (rows != nullptr)
		group = rel_make(REL_GROUP, list_make1(const_cast<GpuvmRel *>(rows)), list_make1(makeTargetEntry((Expr *) count_of_rows(), number, pstrdup("count"), false)));
	/* no row would be a null, and several an error */
	else if (group->op != REL_GROUP || group->keys != NIL || group->sets != NIL)
		return lowering_refuse(l, "a subquery's value is not that of an aggregation without keys");
	piece = lower_apart(l, group);
	if (piece == nullptr)
		return nullptr;
	if (l->values[number] == nullptr)
		return lowering_refuse(l, "a subquery has no value");
	if (constant != nullptr)
		l->values[number] = value_if_any(l->values[number], constant);
	*value = l->values[number];
	return piece;
}

Node *
bound_value(Lowering *l, const Param *param)
{
	const GpuvmRel *bound = nullptr;
	JoinBlock  *block = l->block;
	Node	   *value = nullptr;
	Piece	   *piece;
	ListCell   *lc;

	if (block == nullptr)
		return (Node *) lowering_refuse(l, "a subquery's value is computed with where no relation can be joined");
	foreach(lc, block->bounds)
	{
		if (lfirst_int(lc) == param->paramid)
			return static_cast<Node *>(copyObjectImpl(list_nth(block->bound_values, foreach_current_index(lc))));
	}
	foreach(lc, l->statement->definitions)
	{
		const GpuvmRel *rel = static_cast<const GpuvmRel *>(lfirst(lc));

		if (rel->op == REL_BOUND && rel->id == param->paramid)
			bound = rel;
	}
	if (bound == nullptr)
		return (Node *) lowering_refuse(l, "a subquery's value is not defined");
	piece = lower_bound(l, bound, &value);
	if (piece == nullptr)
		return nullptr;
	add_item(block, piece);
	block->bounds = lappend_int(block->bounds, param->paramid);
	block->bound_values = lappend(block->bound_values, value);
	return static_cast<Node *>(copyObjectImpl(value));
}

static bool
add_conditions(Lowering *l, const List *quals)
{
	ListCell   *lc;

	foreach(lc, quals)
	{
		Node	   *qual = resolve(l, static_cast<const Node *>(lfirst(lc)));

		if (qual == nullptr)
			return false;
		l->block->conditions = lappend(l->block->conditions, qual);
	}
	return true;
}

static bool
set_values(Lowering *l, const GpuvmRel *project)
{
	ListCell   *lc;

	foreach(lc, project->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (rel_hands_on(column))
			continue;
		l->values[column->resno] = resolve(l, (const Node *) column->expr);
		if (l->reason != nullptr)
			return false;
	}
	return true;
}

static bool
flatten(Lowering *l, const GpuvmRel *rel)
{
	Piece	   *piece;

	check_stack_depth();
	if (rel->op == REL_JOIN && rel->join == RELJOIN_INNER)
	{
		if (rel_is_dependent(rel))
			return lowering_refuse(l, "a join depends on the other side's rows (LATERAL, or a correlated subquery)") != nullptr;
		return flatten(l, rel_input(rel, 0)) && flatten(l, rel_input(rel, 1)) && add_conditions(l, rel->quals);
	}
	if (rel->op == REL_FILTER)
	{
		if (rel->barrier)
			return lowering_refuse(l, "a policy or a security barrier hides rows") != nullptr;
		return flatten(l, rel_input(rel)) && add_conditions(l, rel->quals);
	}
	if (rel->op == REL_PROJECT)
		return flatten(l, rel_input(rel)) && set_values(l, rel);
	piece = lower_apart(l, rel);
	if (piece == nullptr)
		return false;
	add_item(l->block, piece);
	return true;
}

/* The conditions over these relations alone, in the order of the block, which are in it no more. */
static List *
take_conditions(Lowering *l, JoinBlock *block, Relids relids)
{
	List	   *taken = NIL;
	List	   *left = NIL;
	ListCell   *lc;

	foreach(lc, block->conditions)
	{
		if (bms_is_subset(pull_varnos(l->root, static_cast<Node *>(lfirst(lc))), relids))
			taken = lappend(taken, lfirst(lc));
		else
			left = lappend(left, lfirst(lc));
	}
	block->conditions = left;
	return taken;
}

/* Those that can be asked for once the item is joined. */
static List *
conditions_with(Lowering *l, const JoinBlock *block, Relids joined, const Piece *item)
{
	Relids		both = bms_union(joined, relids_of(item));
	List	   *found = NIL;
	ListCell   *lc;

	foreach(lc, block->conditions)
	{
		if (bms_is_subset(pull_varnos(l->root, static_cast<Node *>(lfirst(lc))), both))
			found = lappend(found, lfirst(lc));
	}
	return found;
}

/* What drives the program: relations that are joined already cannot be joined to others. */
static Piece *
choose_driver(const JoinBlock *block)
{
	Piece	   *best = nullptr;
	ListCell   *lc;

	foreach(lc, block->items)
	{
		Piece	   *item = static_cast<Piece *>(lfirst(lc));
		const bool	several = item->shape.ncursors > 1;

		if (best == nullptr || (several != (best->shape.ncursors > 1) ? several : item->shape.cursors[0].target.tuples > best->shape.cursors[0].target.tuples))
			best = item;
	}
	return best;
}

/* The next to be joined. */
static Piece *
choose_next(Lowering *l, const JoinBlock *block, const Piece *joined, List **on)
{
	Piece	   *best = nullptr;
	bool		best_connected = false;
	double		best_rows = 0;
	ListCell   *lc;

	foreach(lc, block->items)
	{
		Piece	   *item = static_cast<Piece *>(lfirst(lc));
		List	   *conditions = conditions_with(l, block, relids_of(joined), item);
		const bool	connected = conditions != NIL || item->shape.rows <= 1;
		const double rows = joined->shape.rows * item->shape.rows * (conditions != NIL ? join_selectivity(l, joined, item, conditions) : 1);

		if (best != nullptr && (connected != best_connected ? best_connected : rows >= best_rows))
			continue;
		best = item;
		best_connected = connected;
		best_rows = rows;
		*on = conditions;
	}
	return best;
}

/* The rows of a piece as those of one relation: of what is joined already, or has as many relations as a program can read. */
static Piece *
as_one_relation(Lowering *l, Piece *piece, const GpuvmRel *rel)
{
	List	   *needed = NIL;
	Relids		relids = relids_of(piece);
	ListCell   *lc;

	foreach(lc, list_concat(pull_var_clause((Node *) values_of(l, rel->columns), PVC_RECURSE_PLACEHOLDERS),
							pull_var_clause((Node *) l->block->conditions, PVC_RECURSE_PLACEHOLDERS)))
	{
		if (bms_is_member(((const Var *) lfirst(lc))->varno, relids))
			needed = list_append_unique(needed, lfirst(lc));
	}
	return materialise(l, piece, needed);
}

static Piece *
order_block(Lowering *l, JoinBlock *block, const GpuvmRel *rel)
{
	Piece	   *joined;
	ListCell   *lc;

	/* those of one item first: estimates and the order go by what they leave */
	foreach(lc, block->items)
		filter_piece(l, static_cast<Piece *>(lfirst(lc)), take_conditions(l, block, relids_of(static_cast<const Piece *>(lfirst(lc)))));
	joined = choose_driver(block);
	block->items = list_delete_ptr(block->items, joined);
	foreach(lc, block->items)
	{
		Piece	   *item = static_cast<Piece *>(lfirst(lc));

		if (item->shape.ncursors > 1)
			lfirst(lc) = item = as_one_relation(l, item, rel);
		if (item == nullptr)
			return nullptr;
	}
	while (block->items != NIL)
	{
		List	   *on = NIL;
		Piece	   *next;

		if (joined->shape.ncursors == PROGRAM_MAX_CURSORS && (joined = as_one_relation(l, joined, rel)) == nullptr)
			return nullptr;
		next = choose_next(l, block, joined, &on);
		joined = append_cursor(l, joined, next, JoinKind::Inner, on);
		block->items = list_delete_ptr(block->items, next);
		block->conditions = list_difference_ptr(block->conditions, on);
	}
	if (block->conditions != NIL)
		filter_piece(l, joined, block->conditions);
	return joined;
}

Piece *
lower_block(Lowering *l, const GpuvmRel *rel)
{
	JoinBlock  *outer = l->block;
	JoinBlock	block = {};
	Piece	   *piece = nullptr;

	/* a condition, or an expression, of a block that is being flattened belongs to it (flatten); this is one of its own */
	l->block = &block;
	if (flatten(l, rel))
		piece = order_block(l, &block, rel);
	l->block = outer;
	return piece;
}

/* -- outer joins, semijoins and antijoins ------------------------------------------------------- */

static bool
all_columns(const List *values)
{
	ListCell   *lc;

	foreach(lc, values)
	{
		if (!IsA(lfirst(lc), Var))
			return false;
	}
	return true;
}

Piece *
lower_join(Lowering *l, const GpuvmRel *rel)
{
	const bool	left = rel->join == RELJOIN_LEFT;
	JoinKind	kind = left ? JoinKind::Left : rel->join == RELJOIN_SEMI ? JoinKind::Semi : JoinKind::Anti;
	JoinBlock	block = {};
	Piece	   *outer;
	Piece	   *inner;
	List	   *on = NIL;
	ListCell   *lc;

	if (rel->join != RELJOIN_LEFT && rel->join != RELJOIN_SEMI && rel->join != RELJOIN_ANTI)
		return lowering_refuse(l, rel->join == RELJOIN_FULL ? "full joins are not run in stages yet" : "a subquery's value of each row is not computed in stages yet");
	if (rel_is_dependent(rel))
		return lowering_refuse(l, "a join depends on the other side's rows (LATERAL, or a correlated subquery)");
	outer = lower_apart(l, rel_input(rel, 0));
	inner = outer == nullptr ? nullptr : lower_apart(l, rel_input(rel, 1));
	if (inner == nullptr)
		return nullptr;
	/* above a left join what is computed of a row that is not there would not be null */
	if (inner->shape.ncursors > 1 || (left && !all_columns(values_of(l, rel_input(rel, 1)->columns))))
		inner = materialise_columns(l, inner, rel_input(rel, 1)->columns);
	if (inner == nullptr)
		return nullptr;
	if (outer->shape.ncursors == PROGRAM_MAX_CURSORS)
	{
		l->block = &block;
		outer = as_one_relation(l, outer, rel_input(rel, 0));
		l->block = nullptr;
	}
	foreach(lc, outer == nullptr ? NIL : rel->quals)
		on = lappend(on, resolve(l, static_cast<const Node *>(lfirst(lc))));
	return l->reason != nullptr ? nullptr : append_cursor(l, outer, inner, kind, on);
}

}  // namespace gpuvm
