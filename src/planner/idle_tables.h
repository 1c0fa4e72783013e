/* idle_tables.h: see idle_tables.cc. */
#ifndef GPUVM_PLANNER_IDLE_TABLES_H
#define GPUVM_PLANNER_IDLE_TABLES_H

#include "pg/pg.h"

extern "C" {
#include "nodes/plannodes.h"
}

namespace gpuvm {

/* Of a statement that runs in stages: the tables of PostgreSQL's own plan beside them, and of its subqueries. */
void		shrink_idle_tables(PlannedStmt *stmt);

}  // namespace gpuvm

#endif
