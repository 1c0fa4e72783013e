/*
 * dml.cc: relations that a statement changes, locks, or may have to look at again.
 *
 * A program finds the rows and hands on their ctids; ModifyTable and LockRows, which change and lock them, are PostgreSQL's. When
 * another transaction has changed a row in the meantime (READ COMMITTED), these run the plan below once more for its
 * newest version and the rows that it was joined to (EvalPlanQual): what our nodes do then is to run their alternatives.
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/pathnodes.h"
#include "catalog/pg_class.h"
#include "optimizer/prep.h"
#include "parser/parsetree.h"
}

#include "pg/settings.h"
#include "planner/paths.h"
#include "store/tablets.h"

namespace gpuvm {

/* Is this a table that a statement changes, and then reads row by row? */
static bool
is_small_target(PlannerInfo *root, RelOptInfo *rel)
{
	return planner_rt_fetch(rel->relid, root)->relkind == RELKIND_FOREIGN_TABLE && bms_is_member(rel->relid, root->all_result_relids) &&
		rel->tuples < ROWS_TO_LOAD && !setting_force;
}

const char *
identity_refusal(PlannerInfo *root, RelOptInfo *rel)
{
	const PlanRowMark *mark = get_plan_rowmark(root->rowMarks, rel->relid);

	/* Which columns tell what row it is depends on the partition; each of those that were not pruned has a program. */
	if (planner_rt_fetch(rel->relid, root)->inh && bms_is_member(rel->relid, root->all_result_relids))
		return "partitions of a table that the statement changes are scanned one by one";
	if (is_small_target(root, rel))
		return "a table of few rows is read row by row by a statement that changes it";
	/* Only what has a ctid can be found again; all else is carried along as a whole row, which tablets of a foreign table can give. */
	if (mark != nullptr && mark->markType == ROW_MARK_COPY && planner_rt_fetch(rel->relid, root)->relkind != RELKIND_FOREIGN_TABLE)
		return "the statement may recheck rows that have no ctid";
	return nullptr;
}

}  // namespace gpuvm
