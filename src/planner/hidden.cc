/* hidden.cc: see hidden.h. */
#include "planner/hidden.h"

extern "C" {
#include "nodes/nodeFuncs.h"
}

namespace gpuvm {

/* What the dictionary of a hidden table's column is taken to have. */
constexpr uint32 HIDDEN_ENTRIES = 100;

static HiddenTables tables;

/* `barrier`: in a security_barrier view. */
static bool
look_at(Node *node, void *barrier)
{
	const Query *query = reinterpret_cast<const Query *>(node);
	ListCell   *lc;

	if (node == nullptr)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, reinterpret_cast<bool (*)()>(look_at), barrier);
	foreach(lc, query->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);
		const bool	below = barrier != nullptr || rte->security_barrier;

		if (rte->rtekind == RTE_RELATION)
		{
			tables.seen = list_append_unique_oid(tables.seen, rte->relid);
			if (barrier != nullptr || rte->securityQuals != NIL)
				tables.hidden = list_append_unique_oid(tables.hidden, rte->relid);
		}
		else if (rte->rtekind == RTE_SUBQUERY)
			(void) look_at(reinterpret_cast<Node *>(rte->subquery), below ? &tables : nullptr);
	}
	return query_tree_walker(const_cast<Query *>(query), reinterpret_cast<bool (*)()>(look_at), barrier,
							 QTW_IGNORE_RT_SUBQUERIES);
}

HiddenTables
hidden_tables(void)
{
	return tables;
}

void
hidden_begin(const Query *query)
{
	if (!registry_any())
		return;
	tables = HiddenTables{list_copy(tables.seen), list_copy(tables.hidden)};
	(void) look_at(reinterpret_cast<Node *>(const_cast<Query *>(query)), nullptr);
}

void
hidden_end(HiddenTables before)
{
	tables = before;
}

bool
describe_for_plan(Oid relid, Oid named, ImportedTable *table)
{
	if (!registry_describe(relid, table))
		return false;
	if (list_member_oid(tables.seen, named) && !list_member_oid(tables.hidden, named))
		return true;
	for (uint32 i = 0; i < table->ncols; i++)
	{
		table->greatest[i] = PG_INT64_MAX;
		table->widths[i] = type_natural_width(static_cast<Type>(table->types[i])) * (table->wide[i] ? 2 : 1);
		table->entries[i] = Min(table->entries[i], 1) * HIDDEN_ENTRIES;
	}
	return true;
}

}  // namespace gpuvm
