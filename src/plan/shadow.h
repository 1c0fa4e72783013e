/* shadow.h: translating statements without being heard, to run them or for the counts alone (gpuvm.whole_query). */
#ifndef GPUVM_PLAN_SHADOW_H
#define GPUVM_PLAN_SHADOW_H

#include "pg/pg.h"

extern "C" {
#include "nodes/parsenodes.h"
}

namespace gpuvm {

struct GpuvmRel;

/* The tables of a statement, wherever it reads them. */
struct TablesRead
{
	int			number;
	bool		imported;		/* is one of them (or a leaf of a partitioned one) imported? */
};

TablesRead	tables_read(const Query *query);

/*
 * The algebra of a statement that reads imported tables; null if it has none, is not consistent, or translating it raises an
 * error: PostgreSQL says what there is to say. Lives in the caller's context.
 */
GpuvmRel   *translate_quietly(const Query *query);

/* Counts in gpuvm.translations what becomes of a statement on imported tables. Raises and changes nothing. */
void		shadow_statement(const Query *query);

}  // namespace gpuvm

#endif
