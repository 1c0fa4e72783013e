/* privileges.cc: of which tables and statements the current user may see figures. */
#include "pg/privileges.h"

extern "C" {
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "parser/parsetree.h"
#include "utils/acl.h"
#include "utils/rls.h"
}

#include "pg/compat.h"

namespace gpuvm {

bool
row_security_applies(Oid relid)
{
	return check_enable_rls(relid, InvalidOid, true) == RLS_ENABLED;
}

bool
may_see_all_rows(Oid relid)
{
	return pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK && !row_security_applies(relid);
}

bool
may_see_all_rows(const List *rtable)
{
	ListCell   *lc;

	foreach(lc, rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind == RTE_RELATION && compat_has_permissions(rte) && !may_see_all_rows(rte->relid))
			return false;
	}
	return true;
}

Oid
named_table(const PlannerInfo *root, Index rti)
{
	/* above a partitioned table there may be UNION ALL */
	while (root->append_rel_array != nullptr && root->append_rel_array[rti] != nullptr &&
		   planner_rt_fetch(root->append_rel_array[rti]->parent_relid, root)->rtekind == RTE_RELATION)
		rti = root->append_rel_array[rti]->parent_relid;
	return planner_rt_fetch(rti, root)->relid;
}

bool
may_see_all_stats(void)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
}

}  // namespace gpuvm
