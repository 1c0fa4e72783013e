/* privileges.h: of which tables and statements the current user may see figures. */
#ifndef GPUVM_PG_PRIVILEGES_H
#define GPUVM_PG_PRIVILEGES_H

#include "pg/pg.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpuvm {

/* Sizes, counts and ranges of a table tell of all of its values: they are for who may SELECT every row and column. */
bool		may_see_all_rows(Oid relid);

/* Likewise of all tables that a planned statement names; a partition or child is its parent's affair. */
bool		may_see_all_rows(const List *rtable);

/* To the current user: how many rows there are is then hidden, too. */
bool		row_security_applies(Oid relid);

/* The table that the statement names, of which this relation is, or is a partition or child: its privileges count. */
Oid			named_table(const PlannerInfo *root, Index rti);

/* What other sessions do: pg_read_all_stats. */
bool		may_see_all_stats(void);

}  // namespace gpuvm

#endif
