/*
 * joins.cc: joins of two and three relations as one program.
 *
 * The planner offers the pairs of relations that it may join, in both orders; an
 * order that puts one relation behind what was joined before becomes a shape: the
 * first relation drives, the others are sought in hash tables or crossed. The
 * cheapest shape of each join is kept, for the joins above it and for
 * aggregations. Outer joins, EXISTS and NOT EXISTS come in the orders that
 * PostgreSQL allows, so they need no rules here.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
}

#include "compiler/compile.h"
#include "pg/settings.h"
#include "planner/paths.h"
#include "planner/reasons.h"
#include "store/registry.h"

namespace gpuvm {

/* What is known of a relation or a join while a statement is planned. */
struct JoinNote
{
	JoinNote   *next;
	RelOptInfo *rel;
	bool		usable;			/* there is a shape */
	ScanShape	shape;
	PlannerInfo *root;
	CustomPath *path;			/* joins: for the shape */
	Path	   *alternative;	/* joins: the cheapest so far */
	const char *reason;			/* joins: why an order was not possible */
};

static JoinNote *notes;

JoinNote *
begin_joins(void)
{
	JoinNote   *outer = notes;

	notes = nullptr;
	return outer;
}

void
end_joins(JoinNote *outer)
{
	notes = outer;
}

static JoinNote *
find_note(RelOptInfo *rel)
{
	for (JoinNote *n = notes; n != nullptr; n = n->next)
	{
		if (n->rel == rel)
			return n;
	}
	return nullptr;
}

static JoinNote *
add_note(PlannerInfo *root, RelOptInfo *rel)
{
	JoinNote   *n = static_cast<JoinNote *>(palloc0(sizeof(JoinNote)));

	n->root = root;
	n->rel = rel;
	n->next = notes;
	notes = n;
	return n;
}

static const JoinNote *
note_of_relation(PlannerInfo *root, RelOptInfo *rel)
{
	JoinNote   *n = find_note(rel);
	ScanTarget	target = {};

	if (n != nullptr)
		return n;
	n = add_note(root, rel);
	n->usable = usable_relation(root, rel, &target);
	if (n->usable)
		shape_of_relation(root, rel, &target, true, &n->shape);
	return n;
}

const ScanShape *
shape_of_join(RelOptInfo *joinrel)
{
	const JoinNote *n = find_note(joinrel);

	return n != nullptr && n->usable ? &n->shape : nullptr;
}

/* -- what cannot be joined ------------------------------------------------------------ */

static void
note_levels(List *restrictinfos, Index *lowest, Index *highest)
{
	ListCell   *lc;

	foreach(lc, restrictinfos)
	{
		Index		level = lfirst_node(RestrictInfo, lc)->security_level;

		*lowest = Min(*lowest, level);
		*highest = Max(*highest, level);
	}
}

/* A program has one order for the conditions of all relations: it keeps that of one security level only. */
static bool
one_security_level(PlannerInfo *root, Relids relids, List *restrictlist)
{
	Index		lowest = ~Index{0};
	Index		highest = 0;
	int			relid = -1;

	if (root->qual_security_level == 0)
		return true;
	note_levels(restrictlist, &lowest, &highest);
	while ((relid = bms_next_member(relids, relid)) >= 0)
	{
		note_levels(find_base_rel(root, relid)->baserestrictinfo, &lowest, &highest);
		note_levels(find_base_rel(root, relid)->joininfo, &lowest, &highest);
	}
	return lowest >= highest;
}

/* How many relations a join has, outer joins themselves (PostgreSQL 16 on) not counted. */
static int
count_relations(PlannerInfo *root, RelOptInfo *joinrel)
{
	return bms_num_members(bms_intersect(joinrel->relids, root->all_baserels));
}

static const char *
refusal(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *inner, JoinType jointype, List *restrictlist)
{
	if (setting_require == REQUIRE_CUDA)
		return "joins run on the CPU virtual machine";
	if (count_relations(root, joinrel) > PROGRAM_MAX_CURSORS)
		return "more than three relations are joined";
	if (jointype == JOIN_FULL)
		return "full joins are run by PostgreSQL";
	if (inner->reloptkind != RELOPT_BASEREL)
		return "the inner side of a join is a join itself";
	if (!bms_is_empty(joinrel->lateral_relids))
		return "the join depends on another relation (LATERAL)";
	if (joinrel->part_scheme != nullptr)
		return "partitions are joined one by one";
	if (!one_security_level(root, bms_intersect(joinrel->relids, root->all_baserels), restrictlist))
		return "conditions of different security levels are joined by PostgreSQL";
	return nullptr;
}

void
note_joins(PlannerInfo *root)
{
	for (JoinNote *n = notes; n != nullptr; n = n->next)
	{
		if (n->root != root || n->usable || n->reason == nullptr)
			continue;
		/* with more relations there are too many joins to name */
		if (count_relations(root, n->rel) <= PROGRAM_MAX_CURSORS || bms_is_subset(root->all_baserels, n->rel->relids))
			note_reason(root, n->rel, "Join", n->reason, nullptr);
	}
}

/* -- shapes ------------------------------------------------------------------------------ */

static JoinKind
join_kind(JoinType jointype)
{
	switch (jointype)
	{
		case JOIN_LEFT: return JoinKind::Left;
		case JOIN_SEMI: return JoinKind::Semi;
		case JOIN_ANTI: return JoinKind::Anti;
		default: return JoinKind::Inner;
	}
}

/* Puts the inner relation behind what the outer shape has joined. */
static void
join_shapes(PlannerInfo *root, RelOptInfo *joinrel, const JoinNote *outer, const JoinNote *inner, JoinType jointype,
			JoinPathExtraData *extra, ScanShape *shape)
{
	ShapeCursor *cursor = &shape->cursors[outer->shape.ncursors];
	List	   *on = NIL;
	List	   *above = NIL;
	double		product = outer->rel->rows * inner->rel->rows;
	ListCell   *lc;

	*shape = outer->shape;
	shape->ncursors++;
	*cursor = inner->shape.cursors[0];
	cursor->kind = join_kind(jointype);
	foreach(lc, extra->restrictlist)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (IS_OUTER_JOIN(jointype) && RINFO_IS_PUSHED_DOWN(rinfo, joinrel->relids))
			above = lappend(above, rinfo);
		else
			on = lappend(on, rinfo);
	}
	split_seek_keys(ordered_quals(root, on, true), inner->rel->relid, &cursor->keys, &cursor->conditions);
	cursor->filters = ordered_quals(root, above, true);
	cursor->joined = joinrel->rows;
	cursor->pairs = product;
	if (cursor->keys != NIL)
	{
		/* of a semijoin it says how many rows find something */
		cursor->pairs *= clauselist_selectivity(root, cursor->keys, 0, JOIN_INNER, extra->sjinfo);
		if (jointype == JOIN_SEMI || jointype == JOIN_ANTI)
			cursor->pairs = outer->rel->rows;
	}
}

/* The join's path that is kept, once more: the planner may free what it is given. */
static CustomPath *
copy_path(const CustomPath *path)
{
	CustomPath *copy = makeNode(CustomPath);

	*copy = *path;
	return copy;
}

/* What is known of one side; NULL: nothing, it is a join that was not looked at. */
static const JoinNote *
side_note(PlannerInfo *root, RelOptInfo *rel)
{
	return rel->reloptkind == RELOPT_BASEREL ? note_of_relation(root, rel) : find_note(rel);
}

/* The path for this order, if it is possible and cheaper than those before. */
static void
try_order(PlannerInfo *root, JoinNote *n, const JoinNote *outer, const JoinNote *inner, JoinType jointype, JoinPathExtraData *extra)
{
	const char *reason = refusal(root, n->rel, inner->rel, jointype, extra->restrictlist);
	ScanShape	shape = {};
	CustomPath *path;

	if (reason != nullptr)
	{
		n->reason = reason;
		return;
	}
	join_shapes(root, n->rel, outer, inner, jointype, extra, &shape);
	path = make_rows_path(root, n->rel, &shape, n->alternative);
	if (path != nullptr && (!n->usable || path->path.total_cost < n->path->path.total_cost))
	{
		n->usable = true;
		n->shape = shape;
		n->path = path;
	}
}

void
add_join_path(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outer, RelOptInfo *inner, JoinType jointype,
			  JoinPathExtraData *extra)
{
	const JoinNote *from;
	const JoinNote *to;
	JoinNote   *n;
	Path	   *alternative;

	if (joinrel->reloptkind != RELOPT_JOINREL ||
		(count_relations(root, joinrel) > PROGRAM_MAX_CURSORS && !bms_is_subset(root->all_baserels, joinrel->relids)))
		return;
	/* The genetic search forgets relations, and their memory is used again. */
	if (root->join_search_private != nullptr)
	{
		if (reasons_wanted)
			reasons_add(InvalidOid, "Join", "the order of so many joins is searched for at random (geqo)", "SET geqo = off;");
		return;
	}

	from = side_note(root, outer);
	to = side_note(root, inner);
	n = find_note(joinrel);
	if (n == nullptr)
	{
		/* nothing here is imported: not our business */
		if (!reasons_wanted && (from == nullptr || !from->usable) && (to == nullptr || !to->usable))
			return;
		n = add_note(root, joinrel);
	}
	if (from == nullptr || to == nullptr || !from->usable || !to->usable)
	{
		if (n->reason == nullptr)
			n->reason = "one of its sides is not read by a program";
		from = to = nullptr;
	}
	if (from == nullptr && !n->usable)
		return;

	alternative = alternative_path(joinrel);
	if (alternative != nullptr && (n->alternative == nullptr || alternative->total_cost < n->alternative->total_cost))
		n->alternative = alternative;
	/* JOIN_RIGHT is JOIN_LEFT in the other order, JOIN_UNIQUE_* another way for JOIN_SEMI. */
	if (from != nullptr && n->alternative != nullptr &&
		(jointype == JOIN_INNER || jointype == JOIN_LEFT || jointype == JOIN_FULL || jointype == JOIN_SEMI || jointype == JOIN_ANTI))
		try_order(root, n, from, to, jointype, extra);
	if (n->usable)
	{
		n->path->custom_paths = list_make1(n->alternative);
		offer_path(joinrel, copy_path(n->path));
	}
}

}  // namespace gpuvm
