/* imported.cc: which queries may read an imported table (paths.h)? */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_class.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
}

#include "planner/paths.h"
#include "store/registry.h"

namespace gpuvm {

/* Is it a table that is imported? Partitions are looked at with the whole. */
static bool
may_be_imported(const RangeTblEntry *rte)
{
	return rte->rtekind == RTE_RELATION && (rte->relkind == RELKIND_PARTITIONED_TABLE || registry_known(rte->relid));
}

static bool
may_read_imported(const RangeTblEntry *rte, bool ctes)
{
	return may_be_imported(rte) || (ctes && rte->rtekind == RTE_CTE) ||
		(rte->rtekind == RTE_SUBQUERY && may_read_imported(rte->subquery->rtable, ctes));
}

bool
may_read_imported(const List *rtable, bool ctes)
{
	ListCell   *lc;

	foreach(lc, rtable)
	{
		if (may_read_imported(lfirst_node(RangeTblEntry, lc), ctes))
			return true;
	}
	return false;
}

bool
reads_imported(PlannerInfo *root)
{
	int			relid = -1;

	while ((relid = bms_next_member(root->all_baserels, relid)) >= 0)
	{
		if (may_read_imported(planner_rt_fetch(relid, root), true))
			return true;
	}
	return false;
}

}  // namespace gpuvm
