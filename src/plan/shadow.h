/* shadow.h: translating statements for the counts alone (gpuvm.whole_query = shadow). */
#ifndef GPUVM_PLAN_SHADOW_H
#define GPUVM_PLAN_SHADOW_H

#include "pg/pg.h"

extern "C" {
#include "nodes/parsenodes.h"
}

namespace gpuvm {

struct GpuvmRel;

/*
 * The algebra of a statement that reads imported tables; null if it has none, is not consistent, or translating it raises an
 * error: PostgreSQL says what there is to say. Lives in the caller's context.
 */
GpuvmRel   *translate_quietly(const Query *query);

/* Counts what becomes of a statement that reads imported tables, in gpuvm.translations. Raises nothing and changes nothing. */
void		shadow_statement(const Query *query);

}  // namespace gpuvm

#endif
