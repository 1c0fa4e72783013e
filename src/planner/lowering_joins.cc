/* lowering_joins.cc: joins, and blocks of inner ones, of which lowering_order.cc finds the order. */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_aggregate.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
}

#include "compiler/compile.h"
#include "plan/expand.h"
#include "plan/facts.h"
#include "planner/joins.h"
#include "planner/lowering.h"
#include "planner/lowering_values.h"
#include "planner/quiet.h"

namespace gpuvm {

/* bigint > bigint, and numeric = numeric, which have no symbols. */
constexpr Oid INT8_GREATER = 413;
constexpr Oid NUMERIC_EQUAL = 1752;
/* Of a table's rows, in semijoins that need not be made: those of the groups of 6 M rows by 200,000 keys pay with 0.16, by 1.5 M keys with 0.7. */
constexpr double MOST_LEFT = 0.1;

Relids
relids_of(const Piece *piece)
{
	Relids		relids = nullptr;

	for (int i = 0; i < piece->shape.ncursors; i++)
		relids = bms_add_members(relids, piece->shape.cursors[i].relids);
	return relids;
}

/* -- two pieces --------------------------------------------------------------------------------- */

/* met: the part of the outer rows that find others. */
static double
joined_rows(JoinKind kind, double outer, double pairs, double met, double inner)
{
	switch (kind)
	{
		case JoinKind::Left:
			return Max(outer, pairs);
		case JoinKind::Semi:
			return Max(outer * met, 1);
		case JoinKind::Anti:
			return Max(outer * (1 - met), Max(outer * 0.01, 1));
		case JoinKind::Full:
			return Max(outer, pairs) + inner;
		default:
			return Max(pairs, 1);
	}
}

/* What is said of the relation alone leaves out rows of it that meet nothing; the rest is left. */
static List *
take_own_conditions(Lowering *l, ShapeCursor *c, List *on)
{
	List	   *own = NIL;
	List	   *rest = NIL;
	ListCell   *lc;

	foreach(lc, on)
	{
		Node	   *qual = static_cast<Node *>(lfirst(lc));
		Relids		relids = pull_varnos(l->root, qual);

		/* of a full join they come, too */
		if (c->kind == JoinKind::Full || bms_is_empty(relids) || !bms_is_subset(relids, c->relids))
			rest = lappend(rest, qual);
		else
			own = lappend(own, qual);
	}
	if (own != NIL)
	{
		filter_cursor(l, c, own);
		c->rows = Max(c->rows, 1);
	}
	return rest;
}

Piece *
append_cursor(Lowering *l, const Piece *outer, const Piece *inner, JoinKind kind, List *on)
{
	Piece	   *piece = static_cast<Piece *>(palloc(sizeof(Piece)));
	JoinPathExtraData extra = {};
	const double rows = outer->shape.rows;
	ShapeCursor *c = &piece->shape.cursors[outer->shape.ncursors];
	const bool	once = kind == JoinKind::Semi || kind == JoinKind::Anti;
	double		passing;
	double		met;
	Cost		startup;
	Cost		total;

	*piece = *outer;
	piece->shape.ncursors++;
	*c = inner->shape.cursors[0];
	c->kind = kind;
	split_seek_keys(take_own_conditions(l, c, on), c->relids, &c->keys, &c->conditions);
	c->pairs = rows * c->rows * (c->keys != NIL ? key_selectivity(l, c->keys, c->relids) : 1);
	passing = c->pairs * condition_selectivity(l, c->conditions);
	met = once && c->keys != NIL ? met_share(l, c->keys, c->relids, c->rows) : 1;
	if (c->keys == NIL || c->conditions != NIL)
		met = Min(met, passing / Max(rows, 1));
	else if (once)
		c->pairs = Min(c->pairs, rows);
	c->joined = piece->shape.rows = joined_rows(kind, rows, passing, met, c->rows);
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

Aggref *
count_of_rows()
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
	Node	   *check;

	if (rows != nullptr)
		group = rel_make(REL_GROUP, list_make1(const_cast<GpuvmRel *>(rows)), list_make1(makeTargetEntry((Expr *) count_of_rows(), number, pstrdup("count"), false)));
	/* no row would be a null, and several an error (rel_expand()) */
	else if (!rel_is_one_group(l->statement->definitions, group))
		return lowering_refuse(l, "a subquery's value is not that of an aggregation without keys");
	piece = lower_apart(l, group);
	if (piece == nullptr)
		return nullptr;
	check = rel_check_of_bound(bound);
	if (check != nullptr && (check = resolve(l, check)) == nullptr)
		return nullptr;
	if (check != nullptr)
		filter_piece(l, piece, list_make1(check));
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
		set_value(l, column->resno, resolve(l, (const Node *) column->expr));
		if (l->reason != nullptr)
			return false;
		if (!IsA(column->expr, Var) && !IsA(column->expr, Const))
			note_held(l, HoldLevel::Columns);
	}
	return true;
}

/* Has the quotient a divisor of zero, and a dividend? */
static Node *
divides_by_zero(const List *args)
{
	Node	   *divisor = static_cast<Node *>(lsecond(args));
	const Datum zero = DirectFunctionCall1(int4_numeric, Int32GetDatum(0));
	OpExpr	   *equal = (OpExpr *) make_opclause(NUMERIC_EQUAL, BOOLOID, false, (Expr *) divisor,
												 (Expr *) makeConst(NUMERICOID, -1, InvalidOid, -1, zero, false, false),
												 InvalidOid, InvalidOid);

	set_opfuncid(equal);
	return (Node *) makeBoolExpr(AND_EXPR,
								 list_make2(rel_null_test(static_cast<Node *>(linitial(args)), IS_NOT_NULL), equal), -1);
}

/*
 * Always true, but what is raised for the value is flagged. A quotient, which takes a large program, is not computed
 * for that.
 */
static Node *
computed(Node *expr)
{
	const OpExpr *op = (const OpExpr *) expr;

	if (IsA(expr, OpExpr) && get_opcode(op->opno) == F_NUMERIC_DIV && is_quiet((Node *) op->args))
		return rel_raise_if(divides_by_zero(op->args));
	return (Node *) makeBoolExpr(OR_EXPR, list_make2(rel_null_test(expr, IS_NULL), rel_null_test(expr, IS_NOT_NULL)), -1);
}

/*
 * What PostgreSQL computes of each group (it takes no such subquery apart) must raise its errors though the values are computed where they
 * are read, if the group is still there.
 */
static void
add_checks(Lowering *l, const GpuvmRel *project)
{
	const GpuvmRel *input = rel_input(project);
	ListCell   *lc;

	while (input->op == REL_FILTER || input->op == REL_PROJECT)
		input = rel_input(input);
	if (input->op != REL_GROUP && input->op != REL_WINDOW && input->op != REL_SORT)
		return;
	foreach(lc, project->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (!rel_hands_on(column) && !is_quiet((Node *) column->expr))
			l->block->conditions = lappend(l->block->conditions, computed(l->values[column->resno]));
	}
}

/* Groups and conditions on them. */
static bool
flatten_groups(Lowering *l, const GpuvmRel *filter)
{
	JoinBlock  *block = l->block;
	List	   *conditions = list_copy(filter->quals);
	Piece	   *piece;

	l->block = nullptr;
	piece = lower_group(l, rel_input(filter), &conditions);
	l->block = block;
	if (piece == nullptr)
		return false;
	add_item(block, piece);
	return add_conditions(l, conditions);
}

/* The same of the projections above the last stage: its first rows alone may be wanted, when they are in order. */
static bool
check_output(Lowering *l, const GpuvmRel *rel, List **checks)
{
	ListCell   *lc;

	if (rel == l->last)
		return true;
	if (!check_output(l, rel_input(rel), checks))
		return false;
	if (rel->op != REL_PROJECT)
		return true;
	if (!set_values(l, rel))
		return false;
	foreach(lc, rel->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);

		if (!rel_hands_on(column) && !contain_volatile_functions((Node *) column->expr) && !is_quiet((Node *) column->expr))
			*checks = lappend(*checks, computed(l->values[column->resno]));
	}
	return true;
}

/* PostgreSQL evaluates those that it can, where it evaluates what does not compile. */
static bool
add_output_checks(Lowering *l, JoinBlock *block)
{
	List	   *checks = NIL;
	ListCell   *lc;

	if (l->first_rows && !check_output(l, rel_input(l->statement), &checks))
		return false;
	if (checks != NIL)
		note_held(l, HoldLevel::Conditions);
	foreach(lc, checks)
	{
		Node	   *check = static_cast<Node *>(lfirst(lc));

		if (l->hold != HoldLevel::Nothing && only_computes(check))
			block->held = lappend(block->held, check);
		else
			block->checks = lappend(block->checks, check);
	}
	return true;
}

/* Behind all other conditions: what the joins leave out raises nothing. */
static void
check_rows(Lowering *l, Piece *piece, List *checks)
{
	ShapeCursor *c = &piece->shape.cursors[piece->shape.ncursors - 1];

	if (piece->shape.ncursors == 1)
		filter_piece(l, piece, checks);
	else
		c->filters = list_concat_copy(c->filters, checks);
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
		if (rel_input(rel)->op == REL_GROUP)
			return flatten_groups(l, rel);
		return flatten(l, rel_input(rel)) && add_conditions(l, rel->quals);
	}
	if (rel->op == REL_PROJECT)
	{
		if (!flatten(l, rel_input(rel)) || !set_values(l, rel))
			return false;
		add_checks(l, rel);
		return true;
	}
	piece = lower_apart(l, rel);
	if (piece == nullptr)
		return false;
	add_item(l->block, piece);
	return true;
}

Piece *
lower_block(Lowering *l, const GpuvmRel *rel)
{
	JoinBlock  *outer = l->block;
	JoinBlock	block = {};
	const bool	grouped = rel == l->grouped;
	Piece	   *piece = nullptr;

	/* a condition, or an expression, of a block that is being flattened belongs to it (flatten); this is one of its own */
	l->block = &block;
	if (flatten(l, rel))
	{
		if (block.conditions != NIL)
			note_held(l, HoldLevel::Conditions);
		if ((l->hold == HoldLevel::Nothing || hold_conditions(l, &block, rel)) && (rel != l->last || add_output_checks(l, &block)))
			piece = order_block(l, &block, rel);
		if (piece != nullptr && block.checks != NIL)
			check_rows(l, piece, block.checks);
		if (piece != nullptr && rel != l->last && !grouped)
			piece = compute_columns(l, piece, rel, block.held);
	}
	if (rel == l->last)
		l->held = block.held;
	if (grouped)
		l->grouped_held = block.held;
	l->block = outer;
	return piece;
}

/* -- outer joins, semijoins and antijoins ------------------------------------------------------- */

static bool
all_null_without_row(const List *values)
{
	ListCell   *lc;

	foreach(lc, values)
	{
		if (!null_without_row(static_cast<Node *>(lfirst(lc))))
			return false;
	}
	return true;
}

static const char *
refused_join(const GpuvmRel *rel)
{
	if (rel->join == RELJOIN_MARK || rel->join == RELJOIN_SINGLE)
		return "a subquery's value of each row is not computed in stages yet";
	return rel_is_dependent(rel) ? "a join depends on the other side's rows (LATERAL, or a correlated subquery)" : nullptr;
}

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

/* A side of a full join: what is computed of a row that is not there would not be null. */
static Piece *
lower_nullable(Lowering *l, const GpuvmRel *rel)
{
	Piece	   *piece = lower_apart(l, rel);

	if (piece == nullptr || (piece->shape.ncursors == 1 && all_columns(values_of(l, rel->columns))))
		return piece;
	piece = materialise_columns(l, piece, rel->columns);
	if (piece != nullptr && !all_null_without_row(values_of(l, rel->columns)))
		return lowering_refuse(l, "a full join's side has a value that is not null without a row");
	return piece;
}

/* One of the join's pieces, with what its conditions compare and no program computes. */
static Piece *
with_sides(Lowering *l, const GpuvmRel *rel, Piece *piece, List **on)
{
	const List *sides = unknown_sides(l, piece, *on);

	return sides == NIL ? piece : compute_sides(l, piece, rel, sides, NIL, on);
}

/* So few of a table's rows that a join with them costs less than it saves. */
static bool
leaves_few(const Lowering *l, const Piece *piece)
{
	const ShapeCursor *c = &piece->shape.cursors[0];
	int			relid;

	return bms_get_singleton_member(c->relids, &relid) && c->rows <= MOST_LEFT * tuples_of(l, relid);
}

Piece *
lower_join(Lowering *l, const GpuvmRel *rel)
{
	const bool	full = rel->join == RELJOIN_FULL;
	const bool	left = rel->join == RELJOIN_LEFT;
	const JoinKind kind = full ? JoinKind::Full : left ? JoinKind::Left : rel->join == RELJOIN_SEMI ? JoinKind::Semi : JoinKind::Anti;
	const char *reason = refused_join(rel);
	JoinBlock	block = {};
	Piece	   *outer;
	Piece	   *inner;
	List	   *on = NIL;
	List	   *values;
	ListCell   *lc;

	if (reason != nullptr)
		return lowering_refuse(l, reason);
	outer = full ? lower_nullable(l, rel_input(rel, 0)) : lower_apart(l, rel_input(rel, 0));
	if (outer == nullptr)
		return nullptr;
	inner = full ? lower_nullable(l, rel_input(rel, 1)) : lower_apart(l, rel_input(rel, 1));
	if (inner == nullptr)
		return nullptr;
	if (rel->reduces && !leaves_few(l, inner))
		return outer;
	/* above a left join what is computed of a row that is not there would not be null */
	values = values_of(l, rel_input(rel, 1)->columns);
	if (left && !all_null_without_row(values))
		inner = materialise_columns(l, inner, rel_input(rel, 1)->columns);
	else if (inner->shape.ncursors > 1)
		inner = materialise(l, inner, list_concat_unique(NIL, pull_var_clause((Node *) values, PVC_RECURSE_PLACEHOLDERS)));
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
	if (l->reason != nullptr)
		return nullptr;
	if (on != NIL)
		note_held(l, HoldLevel::Conditions);
	if (l->hold >= HoldLevel::Conditions)
		outer = with_sides(l, rel, outer, &on);
	if (outer != nullptr && l->hold >= HoldLevel::Conditions)
		inner = with_sides(l, rel, inner, &on);
	if (outer == nullptr || inner == nullptr)
		return nullptr;
	outer = append_cursor(l, outer, inner, kind, on);
	/* crossed, the relation's own conditions would be of the pair, and a row that fails them a row without a partner */
	if (full && outer->shape.cursors[outer->shape.ncursors - 1].keys == NIL && inner->shape.cursors[0].quals != NIL)
		return lowering_refuse(l, "a filtered side of a full join has no key to be looked up by");
	return outer;
}

}  // namespace gpuvm
