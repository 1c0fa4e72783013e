/* shadow.h: translating statements for the counts alone (gpuvm.whole_query = shadow). */
#ifndef GPUVM_PLAN_SHADOW_H
#define GPUVM_PLAN_SHADOW_H

#include "pg/pg.h"

extern "C" {
#include "nodes/parsenodes.h"
}

namespace gpuvm {

/* Counts in gpuvm.translations what becomes of a statement on imported tables. Raises and changes nothing. */
void		shadow_statement(const Query *query);

}  // namespace gpuvm

#endif
