/* hidden.h: tables of which a statement may see some rows only, so that its plan must not depend on what all of them are. */
#ifndef GPUVM_PLANNER_HIDDEN_H
#define GPUVM_PLANNER_HIDDEN_H

#include "pg/pg.h"
#include "store/registry.h"

extern "C" {
#include "nodes/parsenodes.h"
}

namespace gpuvm {

/*
 * Planning of a statement begins: tables under row security, or below a view with security_barrier, are hidden until
 * hidden_end(), which is given what this returns. Planning within planning hides more.
 */
List	   *hidden_begin(const Query *query);
void		hidden_end(List *before);

/*
 * registry_describe() for planning. Of a hidden table nothing is told of its values' size or number: EXPLAIN would tell who
 * may not see them. PostgreSQL does not look at its statistics there, either.
 */
bool		describe_for_plan(Oid relid, ImportedTable *table);

}  // namespace gpuvm

#endif
