/*
 * join_shapes.cc: an order of relations as the source of a program, and what it
 * is going to cost.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
}

#include "compiler/compile.h"
#include "pg/settings.h"
#include "planner/band.h"
#include "planner/cost.h"
#include "planner/joins.h"
#include "planner/stage_paths.h"
#include "store/registry.h"

namespace gpuvm {

/* Of the rows of a relation, those that lie between two values of another, or on one side of one: statistics do not say, and PostgreSQL guesses so. */
constexpr double BETWEEN_SELECTIVITY = 0.005;
constexpr double ONE_BOUND_SELECTIVITY = 0.3333333333333333;

static JoinKind
join_kind(JoinType jointype)
{
	switch (jointype)
	{
		case JOIN_LEFT: return JoinKind::Left;
		case JOIN_FULL:
		case JOIN_RIGHT: return JoinKind::Full;
		case JOIN_SEMI: return JoinKind::Semi;
		case JOIN_ANTI: return JoinKind::Anti;
		default: return JoinKind::Inner;
	}
}

/*
 * A program looks up keys before it evaluates the other conditions, and each
 * relation's own conditions, a policy's among them, before both. So only a key
 * that may raise, of a higher security level than a condition, comes too early.
 */
static bool
keys_are_secure(List *restrictinfos, List *keys)
{
	Index		lowest = ~Index{0};
	Index		highest = 0;
	ListCell   *lc;

	foreach(lc, restrictinfos)
	{
		const RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (!list_member_ptr(keys, rinfo->clause))
			lowest = Min(lowest, rinfo->security_level);
		else if (can_raise(rinfo->clause))
			highest = Max(highest, rinfo->security_level);
	}
	return highest <= lowest;
}

/* The equalities that are the keys. */
static List *
key_equalities(List *restrictinfos, const ShapeCursor *cursor)
{
	List	   *sought = NIL;
	ListCell   *lc;

	foreach(lc, restrictinfos)
	{
		if (list_member_ptr(cursor->keys, lfirst_node(RestrictInfo, lc)->clause))
			sought = lappend(sought, lfirst(lc));
	}
	return sought;
}

/*
 * How many pairs there are with equal keys, and rows that come out. The planner remembers selectivities with its own
 * nodes, which are looked at again in every order.
 */
static void
count_rows(PlannerInfo *root, RelOptInfo *joinrel, const JoinNote *outer, const JoinNote *inner, JoinType jointype, List *on, SpecialJoinInfo *sjinfo,
		   ScanShape *shape)
{
	ShapeCursor *cursor = &shape->cursors[shape->ncursors - 1];
	List	   *equalities = key_equalities(on, cursor);
	double		more = Max(outer->shape.rows / Max(outer->rel->rows, 1), 1);
	double		product = outer->shape.rows * inner->rel->rows;
	double		missed;

	cursor->pairs = product;
	shape->rows = joinrel->rows * more;
	/* the table has one row for each key, if nothing else is asked of it; the selectivity would say how many rows find something */
	if (cursor->keys != NIL && cursor->conditions == NIL && (jointype == JOIN_SEMI || jointype == JOIN_ANTI))
		cursor->pairs = outer->shape.rows;
	else if (equalities != NIL)
	{
		missed = pairs_underestimate(root, outer->rel, inner->rel, equalities, sjinfo);
		cursor->pairs = product * missed * clauselist_selectivity(root, equalities, 0, JOIN_INNER, sjinfo);
		/* with a foreign key PostgreSQL does not miss it */
		if (missed > 1 && jointype == JOIN_INNER)
			shape->rows = Max(shape->rows, product * missed * clauselist_selectivity(root, on, 0, JOIN_INNER, sjinfo));
	}
	cursor->joined = shape->rows;
}

/*
 * A right join behind a join, x LEFT JOIN (y JOIN z), is a full join without the
 * rows of y and z that met none of x: those in which a column of x is null that
 * cannot be. NULL if there is no such column.
 */
static Expr *
is_there(PlannerInfo *root, const ShapeCursor *cursor)
{
	Oid			relid = entry_of(root, cursor)->relid;
	AttrNumber	attnum = not_null_column(relid, cursor->target.table);
	NullTest   *test;
	Oid			type;
	int32		typmod;
	Oid			collation;

	if (attnum == 0)
		return nullptr;
	get_atttypetypmodcoll(relid, attnum, &type, &typmod, &collation);
	test = makeNode(NullTest);
	test->arg = (Expr *) makeVar(bms_singleton_member(cursor->relids), attnum, type, typmod, collation, 0);
	test->nulltesttype = IS_NOT_NULL;
	test->location = -1;
	return (Expr *) test;
}

static bool
has_full_join(const ScanShape *shape)
{
	for (int i = 1; i < shape->ncursors; i++)
	{
		if (shape->cursors[i].kind == JoinKind::Full)
			return true;
	}
	return false;
}

const char *
join_shapes(PlannerInfo *root, RelOptInfo *joinrel, const JoinNote *outer, const JoinNote *inner, JoinType jointype,
			JoinPathExtraData *extra, ScanShape *shape)
{
	ShapeCursor *cursor = &shape->cursors[outer->shape.ncursors];
	List	   *on = NIL;
	List	   *above = NIL;
	ListCell   *lc;

	*shape = outer->shape;
	shape->ncursors++;
	*cursor = inner->shape.cursors[0];
	cursor->kind = join_kind(jointype);
	foreach(lc, extra->restrictlist)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (rinfo->pseudoconstant && jointype == JOIN_INNER && !has_full_join(&outer->shape))
			shape->cursors[0].quals = lcons(rinfo->clause, list_copy(shape->cursors[0].quals));
		else if (IS_OUTER_JOIN(jointype) && RINFO_IS_PUSHED_DOWN(rinfo, joinrel->relids))
			above = lappend(above, rinfo);
		else
			on = lappend(on, rinfo);
	}
	split_seek_keys(ordered_quals(root, on, true), inner->rel->relids, &cursor->keys, &cursor->conditions);
	if (root->qual_security_level > 0 && !keys_are_secure(on, cursor->keys))
		return "a condition must be evaluated before the join's keys (row-level security)";
	/* crossed, the relation's own conditions would be of the pair, and a row that fails them a row without a partner */
	if (cursor->kind == JoinKind::Full && cursor->keys == NIL && cursor->quals != NIL)
		return "a filtered side of a full join has no key to be looked up by";
	cursor->filters = ordered_quals(root, above, true);
	if (jointype == JOIN_RIGHT)
	{
		Expr	   *test = is_there(root, cursor);

		if (test == nullptr)
			return "the inner side of a join is a join itself";
		cursor->filters = lcons(test, cursor->filters);
	}
	count_rows(root, joinrel, outer, inner, jointype, on, extra->sjinfo, shape);
	return nullptr;
}

/* -- costs ------------------------------------------------------------------------------- */

/* A program that is costed and nothing else: as many operations, in the same places. */
struct Sketch
{
	Program		program;
	Op			ops[PROGRAM_MAX_OPS];
};
static_assert(offsetof(Sketch, ops) == sizeof(Program), "where Program::ops() looks for them");

static void
draw(Sketch *s, Opcode opcode, int p1, int p2, int p3)
{
	if (s->program.nops < PROGRAM_MAX_OPS)
		s->ops[s->program.nops++] = Op{opcode, Type::None, 0, p1, p2, p3, 0};
}

static bool
draw_expr(Node *node, void *context)
{
	Sketch	   *s = static_cast<Sketch *>(context);

	if (node == nullptr)
		return false;
	if (IsA(node, Var))
		draw(s, Opcode::Column, 0, ((Var *) node)->varattno, 0);
	else if (!IsA(node, List) && !IsA(node, RelabelType))
		draw(s, Opcode::Copy, 0, 0, 0);
	return expression_tree_walker(node, reinterpret_cast<bool (*)()>(draw_expr), context);
}

static void
draw_source(Sketch *s, const ScanShape *shape)
{
	for (int k = 1; k < shape->ncursors; k++)
	{
		const ShapeCursor *c = &shape->cursors[k];

		if (c->keys == NIL && c->range == NIL)
			continue;
		draw(s, Opcode::HashOpen, k, Max(list_length(c->keys), 1), c->range != NIL ? 1 : 0);
		draw(s, Opcode::Parallel, 1, k, 0);
		draw_expr((Node *) c->quals, s);
		draw(s, Opcode::HashInsert, k, Max(list_length(c->keys), 1), 0);
	}
	s->program.parallel = s->program.nops;
	draw(s, Opcode::Parallel, shape->ncursors, 0, 0);
	draw_expr((Node *) shape->cursors[0].quals, s);
	for (int k = 1; k < shape->ncursors; k++)
	{
		const ShapeCursor *c = &shape->cursors[k];

		draw(s, c->keys != NIL ? Opcode::Seek : c->range != NIL ? Opcode::SeekRange : Opcode::Cross, k, list_length(c->keys), 0);
		if (c->keys == NIL && c->range == NIL)
			draw_expr((Node *) c->quals, s);
		draw_expr((Node *) c->conditions, s);
		draw(s, Opcode::Match, k, static_cast<int>(c->kind), 0);
		draw_expr((Node *) c->filters, s);
	}
}

static void
cost_shape(PlannerInfo *root, const ScanShape *shape, double rows_out, Cost *startup, Cost *total)
{
	Sketch	   *s = static_cast<Sketch *>(palloc(sizeof(Sketch)));
	ProgramRows rows = expected_rows(shape);
	Path		path = {};

	s->program = Program{};
	s->program.ncursors = shape->ncursors;
	draw_source(s, shape);
	cost_program(root, &path, &s->program, rows, rows_out);
	pfree(s);
	*startup = path.startup_cost + children_cost(shape);
	*total = path.total_cost + children_cost(shape);
}

void
choose_means(PlannerInfo *root, JoinPathExtraData *extra, ScanShape *shape, bool counted, double rows_out, Cost *startup, Cost *total)
{
	ShapeCursor *cursor = &shape->cursors[shape->ncursors - 1];
	ScanShape	other = *shape;
	ShapeCursor *by_range = &other.cursors[other.ncursors - 1];
	double		outer_rows = shape->ncursors == 2 ? shape->cursors[0].rows : cursor[-1].joined;
	Cost		other_startup;
	Cost		other_total;

	counted = counted && cursor->kind == JoinKind::Inner && cursor->filters == NIL;
	cursor->counted = counted && cursor->conditions == NIL;
	cost_shape(root, shape, cursor->counted ? 0 : rows_out, startup, total);
	if (cursor->keys != NIL)
		return;
	split_range(cursor->conditions, cursor->relids, &by_range->range, &by_range->conditions);
	if (list_length(by_range->range) < 2 && root->qual_security_level == 0)
		split_difference_range(root, cursor->conditions, cursor->relids, &by_range->range, &by_range->conditions, &by_range->differences);
	if (by_range->range == NIL || setting_require == REQUIRE_CUDA ||
		(root->qual_security_level > 0 && !keys_are_secure(extra->restrictlist, by_range->range)))
		return;
	by_range->counted = counted && by_range->conditions == NIL;
	if ((cursor->kind == JoinKind::Semi || cursor->kind == JoinKind::Anti) && by_range->conditions == NIL)
		by_range->pairs = Min(cursor->pairs, outer_rows);
	else
		by_range->pairs *= list_length(by_range->range) == 2 ? BETWEEN_SELECTIVITY : ONE_BOUND_SELECTIVITY;
	by_range->joined = Min(by_range->joined, by_range->pairs + (cursor->kind == JoinKind::Inner ? 0 : outer_rows));
	cost_shape(root, &other, by_range->counted ? 0 : rows_out, &other_startup, &other_total);
	if (other_total >= *total)
		return;
	*shape = other;
	*startup = other_startup;
	*total = other_total;
}

}  // namespace gpuvm
