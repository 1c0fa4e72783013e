/* modify.cc: INSERT, COPY, UPDATE, DELETE and TRUNCATE of tables without a file (store/tablets.h). */
#include "fdw/wrapper.h"

#include "store/tablets.h"

extern "C" {
#include "access/sysattr.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "optimizer/appendinfo.h"
}

namespace gpuvm {

struct TabletChange
{
	TabletWriter *writer;
	int			users;			/* an UPDATE of a partition may also get rows from others */
	AttrNumber	ctid;			/* where subplan rows have it; 0: rows are only added */
	AttrNumber	whole;			/* the row as it was; 0: nobody asks */
};

static int
updatable(Relation rel)
{
	return is_tablet_table(rel) ? (1 << CMD_INSERT) | (1 << CMD_UPDATE) | (1 << CMD_DELETE) : 0;
}

/* RETURNING of a DELETE gives the row as it was. */
static void
add_targets(PlannerInfo *root, Index rtindex, RangeTblEntry *, Relation rel)
{
	Var		   *ctid = makeVar(rtindex, SelfItemPointerAttributeNumber, TIDOID, -1, InvalidOid, 0);

	add_row_identity_var(root, ctid, rtindex, "ctid");
	if (root->parse->commandType == CMD_DELETE && root->parse->returningList != NIL)
		add_row_identity_var(root, makeVar(rtindex, InvalidAttrNumber, RECORDOID, -1, InvalidOid, 0), rtindex, "wholerow");
}

static TabletChange *
begin_change(ModifyTableState *node, ResultRelInfo *result, EState *estate)
{
	TabletChange *change = static_cast<TabletChange *>(result->ri_FdwState);
	/* COPY has no plan, and a command of its own */
	bool		copies = node->ps.plan == NULL;

	if (change == NULL)
	{
		change = static_cast<TabletChange *>(palloc0(sizeof(TabletChange)));
		change->writer = writer_open(result->ri_RelationDesc, estate, estate->es_snapshot,
									 copies ? GetCurrentCommandId(true) : estate->es_output_cid);
		result->ri_FdwState = change;
	}
	change->users++;
	return change;
}

static void
begin_modify(ModifyTableState *node, ResultRelInfo *result, List *, int, int flags)
{
	TabletChange *change;
	List	   *targets;

	if (flags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	change = begin_change(node, result, node->ps.state);
	if (node->operation == CMD_INSERT)
		return;
	targets = outerPlanState(node)->plan->targetlist;
	change->ctid = ExecFindJunkAttributeInTlist(targets, "ctid");
	change->whole = ExecFindJunkAttributeInTlist(targets, "wholerow");
	if (!AttributeNumberIsValid(change->ctid))
		elog(ERROR, "could not find junk ctid column");
}

static void
begin_insert(ModifyTableState *node, ResultRelInfo *result)
{
	/* COPY and routed rows come here without an answer of updatable() */
	if (!is_tablet_table(result->ri_RelationDesc))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot insert into foreign table \"%s\"", RelationGetRelationName(result->ri_RelationDesc))));
	(void) begin_change(node, result, node->ps.state);
}

/* A row beyond its partition's bounds would be one that queries on the whole do not find. */
static void
check_bounds(EState *estate, ResultRelInfo *result, TupleTableSlot *slot)
{
	if (result->ri_RelationDesc->rd_rel->relispartition)
		(void) ExecPartitionCheck(result, slot, estate, true);
}

static TupleTableSlot *
insert_row(EState *estate, ResultRelInfo *result, TupleTableSlot *slot, TupleTableSlot *)
{
	/* a routed one fits, if no trigger has changed it */
	if (result->ri_RootResultRelInfo == NULL || (result->ri_TrigDesc != NULL && result->ri_TrigDesc->trig_insert_before_row))
		check_bounds(estate, result, slot);
	writer_add(static_cast<TabletChange *>(result->ri_FdwState)->writer, slot);
	return slot;
}

/* False: this statement has changed it already. */
static bool
delete_old(TabletChange *change, TupleTableSlot *plan_slot)
{
	bool		isnull;
	Datum		ctid = ExecGetJunkAttribute(plan_slot, change->ctid, &isnull);

	if (isnull)
		elog(ERROR, "ctid is null");
	return writer_delete(change->writer, reinterpret_cast<ItemPointer>(DatumGetPointer(ctid)));
}

static TupleTableSlot *
update_row(EState *estate, ResultRelInfo *result, TupleTableSlot *slot, TupleTableSlot *plan_slot)
{
	TabletChange *change = static_cast<TabletChange *>(result->ri_FdwState);

	if (!delete_old(change, plan_slot))
		return NULL;
	check_bounds(estate, result, slot);
	writer_add(change->writer, slot);
	return slot;
}

static TupleTableSlot *
delete_row(EState *, ResultRelInfo *result, TupleTableSlot *slot, TupleTableSlot *plan_slot)
{
	TabletChange *change = static_cast<TabletChange *>(result->ri_FdwState);
	bool		isnull;
	Datum		whole;
	HeapTupleData tuple = {};

	if (!delete_old(change, plan_slot))
		return NULL;
	if (!AttributeNumberIsValid(change->whole))
		return slot;
	whole = ExecGetJunkAttribute(plan_slot, change->whole, &isnull);
	if (isnull)
		return slot;
	tuple.t_data = DatumGetHeapTupleHeader(whole);
	tuple.t_len = HeapTupleHeaderGetDatumLength(tuple.t_data);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = RelationGetRelid(result->ri_RelationDesc);
	ExecForceStoreHeapTuple(&tuple, slot, false);
	ExecMaterializeSlot(slot);
	return slot;
}

static void
end_change(EState *, ResultRelInfo *result)
{
	TabletChange *change = static_cast<TabletChange *>(result->ri_FdwState);

	if (change == NULL || --change->users > 0)
		return;
	writer_close(change->writer);
	result->ri_FdwState = NULL;
}

static void
truncate(List *rels, DropBehavior, bool)
{
	ListCell   *lc;

	foreach(lc, rels)
	{
		Relation	rel = static_cast<Relation>(lfirst(lc));

		if (!is_tablet_table(rel))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot truncate foreign table \"%s\"", RelationGetRelationName(rel))));
		remove_tablets(RelationGetRelid(rel));
	}
}

void
fdw_add_changes(FdwRoutine *routine)
{
	routine->IsForeignRelUpdatable = updatable;
	routine->AddForeignUpdateTargets = add_targets;
	routine->BeginForeignModify = begin_modify;
	routine->ExecForeignInsert = insert_row;
	routine->ExecForeignUpdate = update_row;
	routine->ExecForeignDelete = delete_row;
	routine->EndForeignModify = end_change;
	routine->BeginForeignInsert = begin_insert;
	routine->EndForeignInsert = end_change;
	routine->ExecForeignTruncate = truncate;
}

}  // namespace gpuvm
