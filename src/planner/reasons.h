/*
 * reasons.h: why parts of the last planned statement stay with PostgreSQL.
 *
 * Kept per backend in a small fixed array (the texts are copied, so no memory
 * context matters), for gpuvm.why_not() and for the detail of gpuvm.require's
 * error. Only relations known to gpuvm are noted in ordinary planning.
 */
#ifndef GPUVM_PLANNER_REASONS_H
#define GPUVM_PLANNER_REASONS_H

#include "pg/pg.h"

namespace gpuvm {

struct Reason
{
	Oid			relid;			/* InvalidOid when it concerns no single relation */
	char		node[NAMEDATALEN + 32];
	char		reason[256];
	char		hint[160];
};

constexpr int MAX_REASONS = 32;

void		reasons_reset(void);

/* Where a statement is planned in two ways, only the reasons of the one that is taken count. */
struct Reasons;
Reasons    *reasons_save(void);
void		reasons_restore(const Reasons *saved);
/* Behind those that there are. */
void		reasons_append(const Reasons *saved);

void		reasons_add(Oid relid, const char *node, const char *reason, const char *hint);
/* Is this reason there already, of whatever node? */
bool		reasons_have(const char *reason);
int			reasons_count(void);
const Reason *reasons_get(int i);

/* Also note relations that are not imported (gpuvm.why_not). */
extern bool reasons_wanted;

}  // namespace gpuvm

#endif
