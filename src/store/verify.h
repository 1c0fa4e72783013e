/* verify.h: is what an imported table has in memory still what was copied? */
#ifndef GPUVM_STORE_VERIFY_H
#define GPUVM_STORE_VERIFY_H

#include "store/registry.h"

namespace gpuvm {

struct Problem
{
	int			tablet;			/* as in gpuvm.tablets; -1: of the whole table */
	AttrNumber	attnum;			/* InvalidAttrNumber: of no column alone */
	BlockNumber first_block;	/* of the tablet, or of the problem, */
	BlockNumber nblocks;		/* 0: of no blocks alone */
	OffsetNumber row;			/* of the only block; InvalidOffsetNumber: of no row alone */
	const char *text;
};

typedef void (*ReportProblem) (void *to, const Problem &problem);

/*
 * The version's blob, dictionaries and tablets against their checksums; statistics, codes and references against the
 * values.
 */
void		verify_version(Relation rel, VersionPin *pin, ReportProblem report, void *to);

/*
 * Every row of the blocks that the tablets would answer for now, under the active snapshot, against the heap's. To be
 * asked of what verify_version has found nothing against. False, with a FallbackReason, if tablets would answer for none.
 */
bool		verify_heap(Relation rel, ReportProblem report, void *to, int *reason);

}  // namespace gpuvm

#endif
