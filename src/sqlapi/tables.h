/* tables.h: tables that callers of the functions here name, or may see. */
#ifndef GPUVM_SQLAPI_TABLES_H
#define GPUVM_SQLAPI_TABLES_H

#include "pg/pg.h"

extern "C" {
#include "utils/rel.h"
}

namespace gpuvm {

/*
 * import_functions.cc: locked against changes of its definition until the transaction ends; raises, as `check` does if the caller may not.
 * That is asked before, so that nobody waits for a lock, or has others wait, who may do nothing; and again when the lock is there.
 */
Relation	open_checked(Oid relid, void (*check) (Oid relid, const char *name));
/* The caller's own. */
Relation	open_owned(Oid relid);

/* views.cc: locked, if it exists, may be read by the caller and is not locked by a change of its definition; else NULL. */
Relation	open_readable(Oid relid);

}  // namespace gpuvm

#endif
