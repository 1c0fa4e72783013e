/*
 * lowering_order.cc: a block of inner joins, in the order that the search found (join_search.h).
 *
 * Equalities of columns of one type form classes. Of a class one equality joins two sets of relations, whether the statement has
 * that one or others from which it follows; what else it has follows, too.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "port/pg_bitutils.h"
#include "utils/lsyscache.h"
}

#include "compiler/compile.h"
#include "pg/settings.h"
#include "pg/value_form.h"
#include "planner/join_search.h"
#include "planner/lowering.h"

namespace gpuvm {

struct BlockOrder
{
	Lowering   *l;
	JoinBlock  *block;			/* conditions that are taken are null, members that are not there any more, too */
	const GpuvmRel *rel;
	Piece	  **items;
	List	   *operators;		/* by class */
	List	   *places;			/* by class an IntList: whose members they are */
	int			kept;			/* how often rows became those of one relation */
	JoinSearch	search;
};

static Items
items_of(const BlockOrder *o, Node *expr)
{
	const Relids relids = pull_varnos(o->l->root, expr);
	Items		items = 0;

	for (int i = 0; i < o->search.nitems; i++)
	{
		const ScanShape *shape = &o->items[i]->shape;

		for (int k = 0; k < shape->ncursors; k++)
		{
			if (bms_overlap(relids, shape->cursors[k].relids))
				items |= Items{1} << i;
		}
	}
	return items;
}

/* -- classes -------------------------------------------------------------------------------- */

static Node *
equality(Oid opno, const Node *a, const Node *b)
{
	OpExpr	   *op = (OpExpr *) make_opclause(opno, BOOLOID, false, static_cast<Expr *>(copyObjectImpl(a)), static_cast<Expr *>(copyObjectImpl(b)),
											  InvalidOid, InvalidOid);

	set_opfuncid(op);
	return (Node *) op;
}

/* An equality of one item's values with another's, of a type of which programs compare any two. */
static bool
is_of_class(const BlockOrder *o, const Node *condition)
{
	const OpExpr *op = (const OpExpr *) condition;
	Node	   *a;
	Node	   *b;

	if (!IsA(op, OpExpr) || list_length(op->args) != 2)
		return false;
	a = static_cast<Node *>(linitial(op->args));
	b = static_cast<Node *>(lsecond(op->args));
	return exprType(a) == exprType(b) && value_type(exprType(a)).form == ValueForm::Plain && get_typbyval(exprType(a)) &&
		op_mergejoinable(op->opno, exprType(a)) && pg_popcount64(items_of(o, a)) == 1 && pg_popcount64(items_of(o, b)) == 1 &&
		items_of(o, a) != items_of(o, b) && !contain_volatile_functions(const_cast<Node *>(condition));
}

static int
class_with(const BlockOrder *o, const Node *expr, Oid opno)
{
	for (int i = 0; i < list_length(o->block->classes); i++)
	{
		if (list_nth_oid(o->operators, i) == opno && list_member(static_cast<const List *>(list_nth(o->block->classes, i)), expr))
			return i;
	}
	return -1;
}

static void
add_member(BlockOrder *o, int number, Node *expr)
{
	ListCell   *cell = list_nth_cell(o->block->classes, number);

	lfirst(cell) = list_append_unique(static_cast<List *>(lfirst(cell)), expr);
}

static void
add_equality(BlockOrder *o, const OpExpr *op)
{
	Node	   *a = static_cast<Node *>(linitial(op->args));
	Node	   *b = static_cast<Node *>(lsecond(op->args));
	const int	left = class_with(o, a, op->opno);
	const int	right = class_with(o, b, op->opno);

	if (left < 0 && right < 0)
	{
		o->block->classes = lappend(o->block->classes, list_make2(a, b));
		o->operators = lappend_oid(o->operators, op->opno);
	}
	else if (left < 0 || right < 0)
		add_member(o, Max(left, right), left < 0 ? a : b);
	else if (left != right)
	{
		ListCell   *cell = list_nth_cell(o->block->classes, left);

		lfirst(cell) = list_union(static_cast<List *>(lfirst(cell)), static_cast<const List *>(list_nth(o->block->classes, right)));
		o->block->classes = list_delete_nth_cell(o->block->classes, right);
		o->operators = list_delete_nth_cell(o->operators, right);
	}
}

/* Members by items, one each: what else an item has of the class equals that in each row of it. */
static void
place_members(BlockOrder *o, int number)
{
	ListCell   *cell = list_nth_cell(o->block->classes, number);
	const Oid	opno = list_nth_oid(o->operators, number);
	JoinClass  *c = &o->search.classes[number];
	const Node *first[MAX_ITEMS] = {};
	List	   *members = NIL;
	List	   *places = NIL;
	ListCell   *lc;

	foreach(lc, static_cast<const List *>(lfirst(cell)))
	{
		Node	   *member = static_cast<Node *>(lfirst(lc));
		const int	item = pg_rightmost_one_pos64(items_of(o, member));

		if (first[item] != nullptr)
		{
			filter_piece(o->l, o->items[item], list_make1(equality(opno, first[item], member)));
			continue;
		}
		first[item] = member;
		members = lappend(members, member);
		places = lappend_int(places, item);
		c->items |= Items{1} << item;
		c->distinct[item] = distinct_values(o->l, member);
	}
	lfirst(cell) = members;
	o->places = lappend(o->places, places);
}

/* The class's member among these items; NULL: they have none. */
static Node *
member_among(const BlockOrder *o, int number, Items items)
{
	const List *members = static_cast<const List *>(list_nth(o->block->classes, number));
	ListCell   *lc;
	ListCell   *lc2;

	forboth(lc, members, lc2, static_cast<const List *>(list_nth(o->places, number)))
	{
		if (lfirst(lc) != nullptr && (items >> lfirst_int(lc2) & 1) != 0)
			return static_cast<Node *>(lfirst(lc));
	}
	return nullptr;
}

/* -- what is said of one item ----------------------------------------------------------------- */

/* The conditions over these relations alone, in the order of the block, which are in it no more. */
static List *
take_conditions(Lowering *l, JoinBlock *block, const Relids relids)
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

/* -- what the search is to know --------------------------------------------------------------- */

static void
describe_condition(BlockOrder *o, Node *condition)
{
	JoinCondition *c = &o->search.conditions[o->search.nconditions++];
	const OpExpr *op = (const OpExpr *) condition;

	c->all = items_of(o, condition);
	if (IsA(op, OpExpr) && list_length(op->args) == 2 && op_hashjoinable(op->opno, exprType(static_cast<Node *>(linitial(op->args)))))
	{
		c->left = items_of(o, static_cast<Node *>(linitial(op->args)));
		c->right = items_of(o, static_cast<Node *>(lsecond(op->args)));
		if ((c->left & c->right) != 0)
			c->left = c->right = 0;
	}
	if (c->left != 0 && c->right != 0)
		c->selectivity = 1 / Max(distinct_values(o->l, static_cast<Node *>(linitial(op->args))), distinct_values(o->l, static_cast<Node *>(lsecond(op->args))));
	else
		c->selectivity = condition_selectivity(o->l, list_make1(condition));
}

/* Equalities leave the conditions and become classes. */
static void
describe_conditions(BlockOrder *o)
{
	List	   *conditions = NIL;
	ListCell   *lc;

	foreach(lc, o->block->conditions)
	{
		if (is_of_class(o, static_cast<const Node *>(lfirst(lc))))
			add_equality(o, static_cast<const OpExpr *>(lfirst(lc)));
		else
			conditions = lappend(conditions, lfirst(lc));
	}
	o->block->conditions = conditions;
	o->search.nclasses = list_length(o->block->classes);
	o->search.classes = static_cast<JoinClass *>(palloc0(sizeof(JoinClass) * Max(o->search.nclasses, 1)));
	for (int i = 0; i < o->search.nclasses; i++)
		place_members(o, i);
	o->search.conditions = static_cast<JoinCondition *>(palloc0(sizeof(JoinCondition) * Max(list_length(conditions), 1)));
	foreach(lc, conditions)
		describe_condition(o, static_cast<Node *>(lfirst(lc)));
}

static void
describe_items(BlockOrder *o)
{
	for (int i = 0; i < o->search.nitems; i++)
	{
		const ScanShape *shape = &o->items[i]->shape;
		JoinItem   *item = &o->search.items[i];

		item->scanned = shape->ncursors > 1 ? shape->rows : shape->cursors[0].target.tuples;
		item->rows = shape->rows;
		item->cursors = shape->ncursors;
	}
}

/* -- the order found ------------------------------------------------------------------------------ */

static void
add_needed(List **needed, Node *expr, const Relids relids)
{
	ListCell   *lc;

	foreach(lc, pull_var_clause(expr, PVC_RECURSE_PLACEHOLDERS))
	{
		if (bms_is_member(((const Var *) lfirst(lc))->varno, relids))
			*needed = list_append_unique(*needed, lfirst(lc));
	}
}

Piece *
as_one_relation(Lowering *l, Piece *piece, const GpuvmRel *rel)
{
	List	   *needed = NIL;

	add_needed(&needed, (Node *) values_of(l, rel->columns), relids_of(piece));
	if (l->block != nullptr)
	{
		add_needed(&needed, (Node *) l->block->conditions, relids_of(piece));
		add_needed(&needed, (Node *) l->block->classes, relids_of(piece));
		add_needed(&needed, (Node *) l->block->held, relids_of(piece));
		add_needed(&needed, (Node *) l->block->checks, relids_of(piece));
	}
	return materialise(l, piece, needed);
}

/* The same for some of the block's items: of each class that goes on beyond them one member is enough. NULL: it was refused. */
static Piece *
keep_rows(BlockOrder *o, Piece *piece, Items items)
{
	List	   *classes = o->block->classes;
	List	   *fewer = NIL;
	Piece	   *rows;
	ListCell   *lc;

	foreach(lc, classes)
	{
		const int	number = foreach_current_index(lc);
		const bool	goes_on = (o->search.classes[number].items & ~items) != 0;
		Node	   *member = goes_on ? member_among(o, number, items) : nullptr;
		List	   *members = NIL;
		ListCell   *lc2;
		ListCell   *lc3;

		forboth(lc2, static_cast<List *>(lfirst(lc)), lc3, static_cast<List *>(list_nth(o->places, number)))
			members = lappend(members, (items >> lfirst_int(lc3) & 1) != 0 && lfirst(lc2) != member ? nullptr : lfirst(lc2));
		fewer = lappend(fewer, members);
	}
	o->block->classes = fewer;
	rows = as_one_relation(o->l, piece, o->rel);
	if (rows == nullptr)
		o->block->classes = classes;
	else
		o->kept++;
	return rows;
}

/* What joins two sets of items: these conditions are taken from the block. */
static List *
take_between(BlockOrder *o, Items a, Items b)
{
	List	   *on = NIL;

	for (int i = 0; i < o->search.nclasses; i++)
	{
		const Node *left = member_among(o, i, a);
		const Node *right = member_among(o, i, b);

		if (left != nullptr && right != nullptr)
			on = lappend(on, equality(list_nth_oid(o->operators, i), left, right));
	}
	for (int i = 0; i < o->search.nconditions; i++)
	{
		ListCell   *cell = list_nth_cell(o->block->conditions, i);

		if (lfirst(cell) == nullptr || (o->search.conditions[i].all & ~(a | b)) != 0)
			continue;
		on = lappend(on, lfirst(cell));
		lfirst(cell) = nullptr;
	}
	return on;
}

static Piece *join_tree(BlockOrder *o, const JoinTree *t);

/* A relation behind what is joined; as many as a program can read become one before. */
static Piece *
join_item(BlockOrder *o, Piece *outer, Items before, Piece *inner, Items items)
{
	if (outer->shape.ncursors == PROGRAM_MAX_CURSORS && (outer = keep_rows(o, outer, before)) == nullptr)
		return nullptr;
	return append_cursor(o->l, outer, inner, JoinKind::Inner, take_between(o, before, items));
}

static void
add_leaves(const JoinTree *t, List **leaves)
{
	if (t->outer == nullptr)
	{
		*leaves = lappend_int(*leaves, t->item);
		return;
	}
	add_leaves(t->outer, leaves);
	add_leaves(t->inner, leaves);
}

/* The relations of an inner side that cannot be a program of its own, one after the other. */
static Piece *
join_leaves(BlockOrder *o, Piece *outer, Items before, const JoinTree *inner)
{
	List	   *leaves = NIL;

	add_leaves(inner, &leaves);
	while (leaves != NIL)
	{
		int			next = linitial_int(leaves);
		ListCell   *lc;

		foreach(lc, leaves)
		{
			if ((o->search.neighbours[lfirst_int(lc)] & before) == 0)
				continue;
			next = lfirst_int(lc);
			break;
		}
		outer = join_item(o, outer, before, o->items[next], Items{1} << next);
		if (outer == nullptr)
			return nullptr;
		before |= Items{1} << next;
		leaves = list_delete_int(leaves, next);
	}
	return outer;
}

static Piece *
join_tree(BlockOrder *o, const JoinTree *t)
{
	Piece	   *outer;
	Piece	   *inner;

	check_stack_depth();
	if (t->outer == nullptr)
		return o->items[t->item];
	outer = join_tree(o, t->outer);
	if (outer == nullptr || t->inner->outer == nullptr)
		return outer == nullptr ? nullptr : join_item(o, outer, t->outer->items, o->items[t->inner->item], t->inner->items);

	/* its conditions are the block's again if it cannot be kept */
	List	   *conditions = list_copy(o->block->conditions);
	const int	kept = o->kept;

	inner = join_tree(o, t->inner);
	if (inner != nullptr)
		inner = keep_rows(o, inner, t->inner->items);
	if (inner != nullptr)
		return join_item(o, outer, t->outer->items, inner, t->inner->items);
	if (o->kept > kept)
		return nullptr;
	o->block->conditions = conditions;
	o->l->reason = nullptr;
	return join_leaves(o, outer, t->outer->items, t->inner);
}

/* Items that are joins, and are to be inner sides, become relations; false: one cannot be, and is to drive. */
static bool
keep_inner_joins(BlockOrder *o, const JoinTree *t, bool drives)
{
	Piece	   *kept;

	if (t->outer != nullptr)
		return keep_inner_joins(o, t->outer, drives) && keep_inner_joins(o, t->inner, false);
	if (drives || o->items[t->item]->shape.ncursors == 1)
		return true;
	kept = keep_rows(o, o->items[t->item], t->items);
	if (kept != nullptr)
	{
		o->items[t->item] = kept;
		o->search.items[t->item].cursors = 1;
	}
	else
		o->search.items[t->item].drives = true;
	return kept != nullptr;
}

static const JoinTree *
find_tree(BlockOrder *o)
{
	if (setting_join_order_seed != 0)
		return random_joins(&o->search, static_cast<uint64>(setting_join_order_seed) + list_length(o->l->root->parse->rtable));
	return search_joins(&o->search);
}

Piece *
order_block(Lowering *l, JoinBlock *block, const GpuvmRel *rel)
{
	BlockOrder *o = static_cast<BlockOrder *>(palloc0(sizeof(BlockOrder)));
	const JoinTree *tree;
	const char *reason;
	ListCell   *lc;

	o->l = l;
	o->block = block;
	o->rel = rel;
	o->search.nitems = list_length(block->items);
	if (o->search.nitems > MAX_ITEMS)
		return lowering_refuse(l, "too many relations are joined");
	o->items = static_cast<Piece **>(palloc(sizeof(Piece *) * o->search.nitems));
	foreach(lc, block->items)
	{
		Piece	   *item = static_cast<Piece *>(lfirst(lc));

		o->items[foreach_current_index(lc)] = item;
		/* estimates and the order go by what they leave */
		filter_piece(l, item, take_conditions(l, block, relids_of(item)));
	}
	if (o->search.nitems == 1)
		return o->items[0];
	describe_conditions(o);
	describe_items(o);
	do
	{
		reason = l->reason;
		l->reason = nullptr;
		tree = find_tree(o);
	} while (tree != nullptr && !keep_inner_joins(o, tree, true));
	if (tree == nullptr)
		return lowering_refuse(l, reason != nullptr ? reason : "a join has no order");
	return join_tree(o, tree);
}

}  // namespace gpuvm
