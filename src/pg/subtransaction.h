/* subtransaction.h: work whose errors are not the statement's. */
#ifndef GPUVM_PG_SUBTRANSACTION_H
#define GPUVM_PG_SUBTRANSACTION_H

#include "pg/pg.h"

namespace gpuvm {

/*
 * Does it in a subtransaction, which gives up all that was begun where an error is raised: that error, or NULL. Errors that say that
 * somebody wants the statement to end are raised again. Memory is of the caller's context, whatever becomes of it.
 */
ErrorData  *in_subtransaction(void (*work) (void *), void *argument);

}  // namespace gpuvm

#endif
