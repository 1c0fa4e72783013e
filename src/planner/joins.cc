/*
 * joins.cc: joins as one program.
 *
 * The planner offers the pairs of relations that it may join, in both orders; an
 * order that puts one relation behind what was joined before becomes a shape: the
 * first relation drives, the others are sought in hash tables or crossed. The
 * cheapest shape of each join is kept, for the joins above it and for
 * aggregations; only shapes that a path may come of are compiled. Outer joins, EXISTS and NOT EXISTS come in the orders that
 * PostgreSQL allows, so they need no rules here.
 */
#include "pg/pg.h"

extern "C" {
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "parser/parsetree.h"
#include "utils/hsearch.h"
}

#include "pg/settings.h"
#include "planner/hidden.h"
#include "planner/joins.h"
#include "planner/reasons.h"
#include "store/registry.h"

namespace gpuvm {

/* Of larger joins only that of all relations is named in gpuvm.why_not. */
constexpr int NAMED_RELATIONS = 3;

/* Compiling another order is not worth it if PostgreSQL's plan costs less than this part of it. */
constexpr double HOPELESS = 0.5;

/* Nor is it, for a join below others, if an order that was compiled costs little more. */
constexpr double WORTHWHILE = 0.8;

/* What is known of the joins of one planner. */
static JoinNotes *current;

JoinNotes *
begin_joins(JoinNotes *mine)
{
	JoinNotes  *outer = current;

	*mine = JoinNotes{};
	mine->context = mine->subqueries.context = CurrentMemoryContext;
	current = mine;
	return outer;
}

void
end_joins(JoinNotes *outer)
{
	current = outer;
}

SubqueryNotes *
subquery_notes()
{
	return current == nullptr ? nullptr : &current->subqueries;
}

ImportedTable *
described_table(Oid relid, Oid named, const RelOptInfo *rel)
{
	MemoryContext before;
	ImportedTable *table;
	ListCell   *lc;

	foreach(lc, current == nullptr ? NIL : current->relids)
	{
		if (lfirst_oid(lc) == relid)
			return static_cast<ImportedTable *>(list_nth(current->tables, foreach_current_index(lc)));
	}
	before = MemoryContextSwitchTo(current == nullptr ? CurrentMemoryContext : current->context);
	table = static_cast<ImportedTable *>(palloc(sizeof(ImportedTable)));
	if (!describe_for_plan(relid, named, table))
	{
		pfree(table);
		table = nullptr;
	}
	else if (!table->of_file)
		table->delta = registry_expect_delta(relid, rel->pages, rel->tuples);
	if (table != nullptr && current != nullptr)
	{
		current->tables = lappend(current->tables, table);
		current->relids = lappend_oid(current->relids, relid);
	}
	MemoryContextSwitchTo(before);
	return table;
}

static JoinNote *
find_note(RelOptInfo *rel)
{
	return current == nullptr || current->table == nullptr ? nullptr :
		static_cast<JoinNote *>(hash_search(current->table, &rel, HASH_FIND, nullptr));
}

static JoinNote *
add_note(PlannerInfo *root, RelOptInfo *rel)
{
	JoinNote   *n;

	if (current->table == nullptr)
	{
		HASHCTL		ctl = {};

		ctl.keysize = sizeof(RelOptInfo *);
		ctl.entrysize = sizeof(JoinNote);
		ctl.hcxt = current->context;
		current->table = hash_create("gpuvm joins", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	n = static_cast<JoinNote *>(hash_search(current->table, &rel, HASH_ENTER, nullptr));
	*n = JoinNote{};
	n->rel = rel;
	n->root = root;
	n->older = current->newest;
	current->newest = n;
	return n;
}

JoinNote *
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

double
rows_missed(const RelOptInfo *rel)
{
	const JoinNote *n = rel->reloptkind == RELOPT_JOINREL ? find_note(const_cast<RelOptInfo *>(rel)) : nullptr;

	return n != nullptr && n->usable ? Max(n->shape.rows / Max(rel->rows, 1), 1) : 1;
}

void
note_missed_share(double share)
{
	if (current != nullptr)
		current->missed_share = share;
}

static WantedJoins
wanted(PlannerInfo *root)
{
	if (current->wanted_root != root)
	{
		current->wanted_root = root;
		current->wanted = wanted_joins(root);
	}
	return current->wanted;
}

/* Is the join one that a program may be made for? The others are only noted, for those above them. */
static bool
is_wanted(PlannerInfo *root, RelOptInfo *joinrel)
{
	return bms_is_subset(root->all_baserels, joinrel->relids) || wanted(root) == WantedJoins::All ||
		(wanted(root) == WantedJoins::Largest && is_largest(root, joinrel));
}

const ScanShape *
shape_of_join(RelOptInfo *joinrel)
{
	const JoinNote *n = find_note(joinrel);

	return n == nullptr || !n->usable ? nullptr : n->aggregated ? &n->grouped : &n->shape;
}

/* -- what cannot be joined ------------------------------------------------------------ */

/* How many relations a join has, outer joins themselves (PostgreSQL 16 on) not counted. */
int
count_relations(PlannerInfo *root, RelOptInfo *joinrel)
{
	return bms_num_members(bms_intersect(joinrel->relids, root->all_baserels));
}

static const char *
refusal(RelOptInfo *joinrel, const JoinNote *outer)
{
	if (outer->shape.ncursors == PROGRAM_MAX_CURSORS)
		return psprintf("more than %d relations are joined", PROGRAM_MAX_CURSORS);
	if (!bms_is_empty(joinrel->lateral_relids))
		return "the join depends on another relation (LATERAL)";
	return nullptr;
}

void
note_joins(PlannerInfo *root)
{
	for (const JoinNote *n = current == nullptr ? nullptr : current->newest; n != nullptr; n = n->older)
	{
		if (n->root != root || n->usable || n->reason == nullptr)
			continue;
		/* with many relations there are too many joins to name */
		if (count_relations(root, n->rel) <= NAMED_RELATIONS || bms_is_subset(root->all_baserels, n->rel->relids))
			note_reason(root, n->rel, "Join", n->reason, nullptr);
	}
}

/* -- orders ------------------------------------------------------------------------------ */

/* What is known of a side of a join; NULL: nothing. */
static const JoinNote *
note_of_side(PlannerInfo *root, RelOptInfo *rel)
{
	return rel->reloptkind == RELOPT_BASEREL ? note_of_relation(root, rel) : find_note(rel);
}

/* Says, once for each join of two relations, which one no program reads; or that the inner side is a join. */
static const char *
unread_side(PlannerInfo *root, const JoinNote *to, RelOptInfo *outer, RelOptInfo *inner, JoinType jointype)
{
	RelOptInfo *rel = to != nullptr && to->usable ? outer : inner;

	if (inner->reloptkind != RELOPT_BASEREL && (jointype == JOIN_LEFT || jointype == JOIN_SEMI || jointype == JOIN_ANTI))
		return "the inner side of a join is a join";
	if (outer->reloptkind != RELOPT_BASEREL || inner->reloptkind != RELOPT_BASEREL)
		return nullptr;
	return psprintf("no program reads \"%s\"", planner_rt_fetch(rel->relid, root)->eref->aliasname);
}

/* Is anything of the relation needed above the join? */
static bool
is_read(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *rel)
{
	return bms_overlap(rel->relids, pull_varnos(root, (Node *) joinrel->reltarget->exprs));
}

/* Keeps this order, if it is possible and cheaper than those before. */
static void
try_order(PlannerInfo *root, JoinNote *n, const JoinNote *outer, const JoinNote *inner, JoinType jointype, JoinPathExtraData *extra)
{
	const char *reason = refusal(n->rel, outer);
	bool		all = bms_is_subset(root->all_baserels, n->rel->relids);
	ScanShape	shape = {};
	ScanShape	grouped;
	Cost		startup;
	Cost		total;

	if (reason == nullptr)
		reason = join_shapes(root, n->rel, outer, inner, jointype, extra, &shape);
	if (reason != nullptr)
	{
		/* a right join is a left one in the other order: what that says is to the point */
		if (jointype != JOIN_RIGHT || n->reason == nullptr)
			n->reason = reason;
		return;
	}
	if (all && (root->parse->hasAggs || root->parse->groupClause != NIL))
	{
		grouped = shape;
		choose_means(root, extra, &grouped, !is_read(root, n->rel, inner->rel), 0, &startup, &total);
		if (!n->aggregated || total < n->grouped_total)
		{
			n->aggregated = true;
			n->grouped = grouped;
			n->grouped_total = total;
		}
	}
	choose_means(root, extra, &shape, false, shape.rows, &startup, &total);
	if (n->usable && !n->refused && total >= n->total * (n->path == nullptr || all ? 1 : WORTHWHILE))
		return;
	n->usable = true;
	n->refused = false;
	n->shape = shape;
	n->startup = startup;
	n->total = total;
	n->path = nullptr;
}

/* The join's path that is kept, once more: the planner may free what it is given. */
static CustomPath *
copy_path(const CustomPath *path)
{
	CustomPath *copy = makeNode(CustomPath);

	*copy = *path;
	return copy;
}

/* PostgreSQL's cheapest way to join, looked for only when there is a cheaper one than there was. */
static void
look_for_alternative(JoinNote *n)
{
	Cost		cheapest = 0;
	bool		any = false;
	Path	   *alternative;
	ListCell   *lc;

	foreach(lc, n->rel->pathlist)
	{
		const Path *path = static_cast<const Path *>(lfirst(lc));

		if (path->param_info != nullptr || is_gpuvm_path(path) || (any && path->total_cost >= cheapest))
			continue;
		any = true;
		cheapest = path->total_cost;
	}
	if (!any || (n->alternative != nullptr && cheapest >= n->cheapest))
		return;
	alternative = alternative_path(n->rel);
	if (alternative == nullptr)
		return;
	n->cheapest = cheapest;
	if (n->alternative == nullptr || alternative->total_cost < n->alternative->total_cost)
		n->alternative = alternative;
}

/* Is a path of ours so much dearer that it need not be compiled? */
static bool
is_hopeless(const JoinNote *n)
{
	return !setting_force && setting_require == REQUIRE_ANY && !reasons_wanted && n->cheapest < n->total * HOPELESS &&
		n->alternative->startup_cost < n->startup;
}

/* Is there a path of ours, with what is the best alternative by now? */
static bool
make_join(PlannerInfo *root, JoinNote *n)
{
	look_for_alternative(n);
	if (n->alternative == nullptr || n->refused || (n->path == nullptr && is_hopeless(n)))
		return false;
	if (n->path == nullptr)
		n->path = make_rows_path(root, n->rel, &n->shape, n->alternative);
	if (n->path == nullptr)
	{
		n->refused = true;
		return false;
	}
	n->path->custom_paths = list_make1(n->alternative);
	return true;
}

bool
offer_whole_join(PlannerInfo *root, RelOptInfo *joinrel)
{
	JoinNote   *n = find_note(joinrel);

	if (n == nullptr || !n->usable || !make_join(root, n))
		return false;
	offer_path(joinrel, copy_path(n->path));
	return true;
}

void
add_join_path(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outer, RelOptInfo *inner, JoinType jointype,
			  JoinPathExtraData *extra)
{
	bool		all = bms_is_subset(root->all_baserels, joinrel->relids);
	const JoinNote *from;
	const JoinNote *to;
	JoinNote   *n;

	if (joinrel->reloptkind != RELOPT_JOINREL || (count_relations(root, joinrel) > PROGRAM_MAX_CURSORS && !all))
		return;
	/* The genetic search forgets what it tries: programs are made for the order that it ends with, which it makes where it was called. */
	if (root->join_search_private != nullptr && CurrentMemoryContext != current->context)
		return;

	from = note_of_side(root, outer);
	to = inner->reloptkind == RELOPT_BASEREL ? note_of_relation(root, inner) : nullptr;
	n = find_note(joinrel);
	if (n == nullptr)
	{
		/* nothing here is imported: not our business */
		if (!reasons_wanted && (from == nullptr || !from->usable) && (to == nullptr || !to->usable))
			return;
		n = add_note(root, joinrel);
	}
	/* JOIN_RIGHT is JOIN_LEFT in the other order, but behind a join; JOIN_UNIQUE_* is another way for JOIN_SEMI. */
	if (from == nullptr || to == nullptr || !from->usable || !to->usable)
	{
		if (n->reason == nullptr)
			n->reason = unread_side(root, to, outer, inner, jointype);
	}
	else if (jointype == JOIN_INNER || jointype == JOIN_LEFT || jointype == JOIN_FULL || jointype == JOIN_SEMI || jointype == JOIN_ANTI ||
			 (jointype == JOIN_RIGHT && outer->reloptkind == RELOPT_JOINREL))
		try_order(root, n, from, to, jointype, extra);
	/* the join of all is offered when PostgreSQL's paths are all there: those that cost more would not stay beside it */
	if (n->usable && is_wanted(root, joinrel) && make_join(root, n) && !all)
		offer_path(joinrel, copy_path(n->path));
}

/* One way in which PostgreSQL makes the join, and for a program the same with the sides exchanged. */
static void
add_gated_order(PlannerInfo *root, RelOptInfo *joinrel, const JoinPath *path)
{
	RelOptInfo *outer = path->outerjoinpath->parent;
	RelOptInfo *inner = path->innerjoinpath->parent;
	SpecialJoinInfo sjinfo = {};
	JoinPathExtraData extra = {};

	sjinfo.type = T_SpecialJoinInfo;
	sjinfo.jointype = JOIN_INNER;
	sjinfo.min_lefthand = sjinfo.syn_lefthand = outer->relids;
	sjinfo.min_righthand = sjinfo.syn_righthand = inner->relids;
	extra.restrictlist = path->joinrestrictinfo;
	extra.sjinfo = &sjinfo;
	if (path->jointype != JOIN_RIGHT || outer->reloptkind == RELOPT_JOINREL)
		add_join_path(root, joinrel, outer, inner, path->jointype, &extra);
	if (path->jointype == JOIN_INNER || path->jointype == JOIN_FULL)
		add_join_path(root, joinrel, inner, outer, path->jointype, &extra);
	else if (path->jointype == JOIN_RIGHT)
		add_join_path(root, joinrel, inner, outer, JOIN_LEFT, &extra);
}

void
add_gated_join(PlannerInfo *root, RelOptInfo *joinrel)
{
	List	   *paths = NIL;
	ListCell   *lc;

	if (!root->hasPseudoConstantQuals || joinrel->reloptkind != RELOPT_JOINREL || IS_DUMMY_REL(joinrel) ||
		root->join_search_private != nullptr || find_note(joinrel) != nullptr)
		return;
	foreach(lc, joinrel->pathlist)
	{
		const JoinPath *path = static_cast<const JoinPath *>(lfirst(lc));
		JoinPath   *copy;

		if (!IsA(path, NestPath) && !IsA(path, MergePath) && !IsA(path, HashPath))
			continue;
		/* these have other conditions, or other rows, than the join */
		if (path->path.param_info != nullptr || path->innerjoinpath->param_info != nullptr ||
			IsA(path->outerjoinpath, UniquePath) || IsA(path->innerjoinpath, UniquePath))
			continue;
		copy = static_cast<JoinPath *>(palloc(sizeof(JoinPath)));
		*copy = *path;
		paths = lappend(paths, copy);
	}
	/* add_path may free the originals */
	foreach(lc, paths)
		add_gated_order(root, joinrel, static_cast<const JoinPath *>(lfirst(lc)));
}

}  // namespace gpuvm
