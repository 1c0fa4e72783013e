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
#include "optimizer/prep.h"
#include "parser/parsetree.h"
}

#include "planner/paths.h"

namespace gpuvm {

const char *
identity_refusal(PlannerInfo *root, RelOptInfo *rel)
{
	const PlanRowMark *mark = get_plan_rowmark(root->rowMarks, rel->relid);

	/* Which columns tell what row it is depends on the partition; each of those that were not pruned has a program. */
	if (planner_rt_fetch(rel->relid, root)->inh && bms_is_member(rel->relid, root->all_result_relids))
		return "partitions of a table that the statement changes are scanned one by one";
	/* Only what has a ctid can be found again; PostgreSQL carries all else along as a whole row. */
	if (mark != nullptr && mark->markType == ROW_MARK_COPY)
		return "the statement may recheck rows that have no ctid";
	return nullptr;
}

}  // namespace gpuvm
