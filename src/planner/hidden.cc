/* hidden.cc: see hidden.h. */
#include "planner/hidden.h"

extern "C" {
#include "catalog/pg_inherits.h"
#include "nodes/nodeFuncs.h"
#include "storage/lockdefs.h"
}

namespace gpuvm {

/* What the dictionary of a hidden table's column is taken to have. */
constexpr uint32 HIDDEN_ENTRIES = 100;

static List *hidden_relids = NIL;

/* `barrier`: in a security_barrier view. */
static bool
hide_in(Node *node, void *barrier)
{
	const Query *query = (const Query *) node;
	ListCell   *lc;

	if (node == nullptr)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, reinterpret_cast<bool (*)()>(hide_in), barrier);
	foreach(lc, query->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);
		bool		below = barrier != nullptr || rte->security_barrier;

		if (rte->rtekind == RTE_RELATION && (barrier != nullptr || rte->securityQuals != NIL))
			hidden_relids = list_concat_unique_oid(hidden_relids, rte->inh ? find_all_inheritors(rte->relid, NoLock, nullptr)
												   : list_make1_oid(rte->relid));
		else if (rte->rtekind == RTE_SUBQUERY)
			(void) hide_in(reinterpret_cast<Node *>(rte->subquery), below ? &hidden_relids : nullptr);
	}
	return query_tree_walker(const_cast<Query *>(query), reinterpret_cast<bool (*)()>(hide_in), barrier, QTW_IGNORE_RT_SUBQUERIES);
}

List *
hidden_begin(const Query *query)
{
	List	   *before = hidden_relids;

	if (registry_any())
	{
		hidden_relids = list_copy(before);
		(void) hide_in(reinterpret_cast<Node *>(const_cast<Query *>(query)), nullptr);
	}
	return before;
}

void
hidden_end(List *before)
{
	hidden_relids = before;
}

bool
describe_for_plan(Oid relid, ImportedTable *table)
{
	if (!registry_describe(relid, table))
		return false;
	if (!list_member_oid(hidden_relids, relid))
		return true;
	for (uint32 i = 0; i < table->ncols; i++)
	{
		table->greatest[i] = PG_INT64_MAX;
		table->entries[i] = Min(table->entries[i], 1) * HIDDEN_ENTRIES;
	}
	return true;
}

}  // namespace gpuvm
