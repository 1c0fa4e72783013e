/*
 * partitions.cc: the leaves of a partitioned table as one table.
 *
 * A program runs over the tablets of all of them, if every leaf that the planner
 * did not prune is imported and their imported columns are the same ones, in the
 * same order. Leaves may number them differently; the planner's translation
 * between parent and child says which is which.
 *
 * When PostgreSQL applies the target list to a query over a single partitioned
 * table, it throws that table's paths away and builds them anew from those of the
 * partitions. A table with a path of ours is therefore taken for one that is not
 * partitioned from when it has got the path until its query level is done.
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_class.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
}

#include "pg/privileges.h"
#include "planner/hidden.h"
#include "planner/paths.h"
#include "planner/reasons.h"
#include "store/file.h"
#include "store/registry.h"

namespace gpuvm {

/* The number that a leaf's column has in the topmost parent; 0 if it has none. */
static AttrNumber
attnum_in_top(PlannerInfo *root, Index leaf, Index top, AttrNumber attnum)
{
	while (leaf != top)
	{
		AppendRelInfo *info = root->append_rel_array[leaf];

		if (attnum <= 0 || attnum > info->num_child_cols)
			return 0;
		attnum = info->parent_colnos[attnum - 1];
		leaf = info->parent_relid;
	}
	return attnum;
}

/* Reads one leaf's description, numbered as the parent's columns are. */
static bool
describe_leaf(PlannerInfo *root, Index leaf, Index top, ImportedTable *table)
{
	RangeTblEntry *rte = planner_rt_fetch(leaf, root);

	if ((rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_FOREIGN_TABLE) || rte->inh ||
		!describe_for_plan(rte->relid, named_table(root, top), table))
		return false;
	if (rte->relkind == RELKIND_FOREIGN_TABLE && file_not_ready(rte->relid) != nullptr)
		return false;
	if (!table->of_file)
		table->delta = registry_expect_delta(rte->relid, find_base_rel(root, leaf)->pages, find_base_rel(root, leaf)->tuples);
	for (uint32 i = 0; i < table->ncols; i++)
		table->attnums[i] = attnum_in_top(root, leaf, top, table->attnums[i]);
	return true;
}

/* Leaves that were not pruned, in the order of their bounds. */
static List *
live_leaves(PlannerInfo *root, RelOptInfo *rel, List *leaves)
{
	for (int i = 0; i < rel->nparts; i++)
	{
		RelOptInfo *child = rel->part_rels[i];

		if (child == nullptr || IS_DUMMY_REL(child))
			continue;
		if (planner_rt_fetch(child->relid, root)->relkind == RELKIND_PARTITIONED_TABLE)
			leaves = live_leaves(root, child, leaves);
		else
			leaves = lappend_int(leaves, child->relid);
	}
	return leaves;
}

static bool
has_wide_columns(const ImportedTable *table)
{
	for (uint32 i = 0; i < table->ncols; i++)
	{
		if (table->wide[i])
			return true;
	}
	return false;
}

bool
describe_leaves(PlannerInfo *root, RelOptInfo *rel, ScanTarget *target, const char **reason, const char **hint)
{
	List	   *leaves = live_leaves(root, rel, NIL);
	ImportedTable *all;
	ImportedTable *one;
	ListCell   *lc;

	if (leaves == NIL || (!reasons_wanted && !registry_known(planner_rt_fetch(linitial_int(leaves), root)->relid)))
		return false;
	all = static_cast<ImportedTable *>(palloc(sizeof(ImportedTable)));
	one = static_cast<ImportedTable *>(palloc(sizeof(ImportedTable)));
	foreach(lc, leaves)
	{
		Oid			relid = planner_rt_fetch(lfirst_int(lc), root)->relid;
		bool		first = target->leaves == NIL;

		if (!describe_leaf(root, lfirst_int(lc), rel->relid, first ? all : one))
		{
			*reason = psprintf("partition \"%s\" is not imported", get_rel_name(relid));
			*hint = psprintf("SELECT gpuvm.import('%s');", get_rel_name(relid));
			return false;
		}
		/* imported before it was attached: a partition's columns are in the places that the others' have */
		if (has_wide_columns(first ? all : one))
		{
			*reason = psprintf("partition \"%s\" has numbers of more than 64 bits in a form of its own", get_rel_name(relid));
			*hint = psprintf("SELECT gpuvm.import('%s');", get_rel_name(relid));
			return false;
		}
		target->leaves = lappend_oid(target->leaves, relid);
		/* all of a file is in the tablets, and its pages are none of a heap */
		target->pages += planner_rt_fetch(lfirst_int(lc), root)->relkind == RELKIND_FOREIGN_TABLE
			? (first ? all : one)->served_blocks : find_base_rel(root, lfirst_int(lc))->pages;
		target->tuples += find_base_rel(root, lfirst_int(lc))->tuples;
		if (first)
			continue;
		all->of_file = all->of_file || one->of_file;
		if (all->ncols != one->ncols || memcmp(all->attnums, one->attnums, sizeof(one->attnums[0]) * one->ncols) != 0)
		{
			*reason = psprintf("partition \"%s\" is not imported with the same columns in the same order as \"%s\"",
							   get_rel_name(relid), get_rel_name(linitial_oid(target->leaves)));
			return false;
		}
		/* left out of one, or numerics of another scale: of no use in the others */
		for (uint32 i = 0; i < all->ncols; i++)
		{
			if (all->types[i] != one->types[i] || all->scales[i] != one->scales[i] || all->variable[i] != one->variable[i])
				all->types[i] = static_cast<uint8>(Type::None);
			if (all->families[i] != one->families[i] && one->families[i] != 0)
				all->families[i] = all->families[i] == 0 ? one->families[i] : FAMILIES_DIFFER;
			all->entries[i] = Max(all->entries[i], one->entries[i]);
			all->widths[i] = Max(all->widths[i], one->widths[i]);
			all->greatest[i] = Max(all->greatest[i], one->greatest[i]);
		}
		all->delta.rows += one->delta.rows;
		all->delta.io += one->delta.io;
		all->delta.masked += one->delta.masked;
		all->nrows += one->nrows;
		all->nblocks += one->nblocks;
		all->served_blocks += one->served_blocks;
		all->bytes += one->bytes;
		all->ntablets += one->ntablets;
	}
	target->table = all;
	return true;
}

struct HiddenScheme
{
	HiddenScheme *next;
	RelOptInfo *rel;
	PartitionScheme scheme;
};

static HiddenScheme *hidden;

void
hide_partitions(PlannerInfo *root, RelOptInfo *rel)
{
	HiddenScheme *h;

	if (!bms_is_subset(root->all_baserels, rel->relids) || enable_partitionwise_aggregate)
		return;
	h = static_cast<HiddenScheme *>(palloc(sizeof(HiddenScheme)));
	*h = HiddenScheme{hidden, rel, rel->part_scheme};
	rel->part_scheme = nullptr;
	hidden = h;
}

void
show_partitions(void)
{
	for (; hidden != nullptr; hidden = hidden->next)
		hidden->rel->part_scheme = hidden->scheme;
}

PartitionScheme
partition_scheme(const RelOptInfo *rel)
{
	for (const HiddenScheme *h = hidden; h != nullptr; h = h->next)
	{
		if (h->rel == rel)
			return h->scheme;
	}
	return rel->part_scheme;
}

HiddenScheme *
begin_hiding(void)
{
	HiddenScheme *outer = hidden;

	hidden = nullptr;
	return outer;
}

void
end_hiding(HiddenScheme *outer)
{
	hidden = outer;
}

}  // namespace gpuvm
