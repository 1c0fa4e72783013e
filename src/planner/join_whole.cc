/*
 * join_whole.cc: which joins of a query level are to become programs?
 *
 * The planner tries every set of relations, hundreds for a star of eight. Where
 * one program is going to join them all, or as many as go, programs for parts of them are not worth
 * the time to compile and to cost them: it is asked here, once, whether anything
 * is known to stand in the way. The answer is a guess: where it is wrong, PostgreSQL
 * joins what our scans read.
 */
#include "pg/pg.h"

extern "C" {
#include "access/sysattr.h"
#include "optimizer/joininfo.h"
#include "optimizer/pathnode.h"
}

#include "compiler/compile.h"
#include "compiler/functions.h"
#include "planner/joins.h"
#include "store/registry.h"

namespace gpuvm {

/* The joins of so many are all looked at. */
constexpr int FEW_RELATIONS = 4;

static bool
is_single(PlannerInfo *root, Relids relids)
{
	return bms_membership(bms_intersect(relids, root->all_baserels)) == BMS_SINGLETON;
}

/* Outer joins and semijoins whose inner side is a join have orders of which none is a program. A full join's sides may change places. */
static bool
inner_sides_are_single(PlannerInfo *root)
{
	ListCell   *lc;

	foreach(lc, root->join_info_list)
	{
		const SpecialJoinInfo *sjinfo = lfirst_node(SpecialJoinInfo, lc);

		if (!is_single(root, sjinfo->syn_righthand) && !(sjinfo->jointype == JOIN_FULL && is_single(root, sjinfo->syn_lefthand)))
			return false;
	}
	return true;
}

/* Columns that are needed above the scan must be in tablets. */
static bool
columns_are_there(const RelOptInfo *rel, const ImportedTable *table)
{
	for (int attnum = rel->min_attr; attnum <= rel->max_attr; attnum++)
	{
		if (!bms_is_empty(rel->attr_needed[attnum - rel->min_attr]) && imported_column(table, attnum) < 0)
			return false;
	}
	return true;
}

static List *
join_clauses(PlannerInfo *root)
{
	List	   *clauses = NIL;
	int			relid = -1;
	ListCell   *lc;
	ListCell   *lc2;

	while ((relid = bms_next_member(root->all_baserels, relid)) >= 0)
	{
		foreach(lc, find_base_rel(root, relid)->joininfo)
			clauses = list_append_unique_ptr(clauses, lfirst_node(RestrictInfo, lc)->clause);
	}
	foreach(lc, root->eq_classes)
	{
		const EquivalenceClass *ec = lfirst_node(EquivalenceClass, lc);

		if (bms_membership(ec->ec_relids) != BMS_MULTIPLE)
			continue;
		foreach(lc2, ec->ec_members)
		{
			const EquivalenceMember *em = lfirst_node(EquivalenceMember, lc2);

			if (!em->em_is_child && !em->em_is_const)
				clauses = lappend(clauses, em->em_expr);
		}
	}
	return clauses;
}

WantedJoins
wanted_joins(PlannerInfo *root)
{
	CompileInput input = {};
	bool		all_fit = bms_num_members(root->all_baserels) <= PROGRAM_MAX_CURSORS;
	int			relid = -1;

	/* for the join of all nobody is asked where PostgreSQL has a one-time condition above it */
	if (root->hasPseudoConstantQuals || root->hasLateralRTEs || root->placeholder_list != NIL || !inner_sides_are_single(root))
		return WantedJoins::All;
	while ((relid = bms_next_member(root->all_baserels, relid)) >= 0)
	{
		RelOptInfo *rel = find_base_rel(root, relid);
		JoinNote   *n = note_of_relation(root, rel);

		n->fits = n->usable && columns_are_there(rel, n->shape.cursors[0].target.table);
		all_fit = all_fit && n->fits;
		if (all_fit)
			input.cursors[input.ncursors++] = compile_cursor(root, &n->shape.cursors[0]);
	}
	if (!all_fit)
		return root->join_info_list == NIL && bms_num_members(root->all_baserels) > FEW_RELATIONS ? WantedJoins::Largest : WantedJoins::All;
	return compiles(&input, join_clauses(root)) ? WantedJoins::Whole : WantedJoins::All;
}

bool
is_largest(PlannerInfo *root, RelOptInfo *joinrel)
{
	Relids		others = bms_difference(root->all_baserels, joinrel->relids);
	int			relid = -1;

	if (count_relations(root, joinrel) == PROGRAM_MAX_CURSORS)
		return true;
	while ((relid = bms_next_member(others, relid)) >= 0)
	{
		RelOptInfo *rel = find_base_rel(root, relid);

		if (note_of_relation(root, rel)->fits && have_relevant_joinclause(root, joinrel, rel))
			return false;
	}
	return true;
}

}  // namespace gpuvm
