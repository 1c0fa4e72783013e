/* hidden.h: tables of which a statement may see some rows only: its plan must not depend on what all of them are. */
#ifndef GPUVM_PLANNER_HIDDEN_H
#define GPUVM_PLANNER_HIDDEN_H

#include "pg/pg.h"
#include "store/registry.h"

extern "C" {
#include "nodes/parsenodes.h"
}

namespace gpuvm {

/* What hidden_end() is to bring back. */
struct HiddenTables
{
	List	   *seen;
	List	   *hidden;
};
HiddenTables hidden_tables(void);

/*
 * Planning of a statement begins: tables under row security, or below a view with security_barrier, are hidden until
 * hidden_end(). So are tables that the statement does not name, which come of functions that PostgreSQL inlines. Planning
 * within planning hides more. May raise.
 */
void		hidden_begin(const Query *query);
void		hidden_end(HiddenTables before);

/*
 * registry_describe() for planning, of a table that is named, or of a leaf of it. Of a hidden one it is not told how large
 * values are, or how many: EXPLAIN would tell who may not see them. PostgreSQL does not look at its statistics there,
 * either. In which form a column is stored shows: numerics of more than 64 bits, say, and texts without a dictionary.
 */
bool		describe_for_plan(Oid relid, Oid named, ImportedTable *table);

}  // namespace gpuvm

#endif
