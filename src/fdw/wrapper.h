/* wrapper.h: the callbacks of gpuvm_fdw. */
#ifndef GPUVM_FDW_WRAPPER_H
#define GPUVM_FDW_WRAPPER_H

#include "pg/pg.h"

extern "C" {
#include "foreign/fdwapi.h"
}

namespace gpuvm {

/* scan.cc: the plan that reads row by row, and how it runs. */
void		fdw_add_scan(FdwRoutine *routine);

/* modify.cc: what changes tables without a file. */
void		fdw_add_changes(FdwRoutine *routine);

/* analyze.cc */
bool		fdw_analyze(Relation rel, AcquireSampleRowsFunc *sample, BlockNumber *pages);

/* schema.cc */
List	   *fdw_import_schema(ImportForeignSchemaStmt *stmt, Oid server);

/* Raises unless the user may say which file is read. */
void		check_may_name_files(void);

/* Option names of foreign tables that COPY knows, too; NULL at the end. */
extern const char *const FILE_COPY_OPTIONS[];

}  // namespace gpuvm

#endif
