/*
 * refresher.h: imported tables are kept in memory and up to date in the background.
 *
 * The supervisor starts short-lived workers, one for a database at a time: each
 * imports what is remembered and not in memory (after a start, mainly), refreshes what
 * changed, and leaves. refresher.cc has the worker, refresher_shared.cc what it shares with
 * the supervisor and with backends.
 */
#ifndef GPUVM_STORE_REFRESHER_H
#define GPUVM_STORE_REFRESHER_H

#include "pg/pg.h"

extern "C" {
#include "utils/rel.h"
#include "utils/timestamp.h"
}

namespace gpuvm {

void		refresher_install(void);

/* A query or a command found something to do in this database; costs a load when that is known. */
void		refresher_mark(void);
void		refresher_mark_at_commit(void);

/* Are the remembered tables of this database still to be imported after the start? */
bool		refresher_loading(void);

/*
 * Between blocks, without a buffer lock: sleeps as gpuvm.refresh_cost_delay has it, and makes
 * way for who waits for a lock on the table. Nothing but a load in other processes.
 */
void		refresh_pace(void);

/* For a worker that holds this lock: ends its visit, by an error that is not reported, if somebody waits for the table. */
void		worker_gives_way(Relation rel, LOCKMODE held);

/* For gpuvm.status(): one sentence; false when the refresher cannot do what it is meant to. */
bool		refresher_sentence(char *text, size_t size);

/* Why a remembered table is not in memory, as far as the refresher knows: palloc'd, or NULL. */
char	   *refresher_trouble(Oid relid);

/* For gpuvm.why_not(): why a table that is not in the registry is not; may be palloc'd. */
const char *why_not_in_memory(Oid relid);

/* What an import or a release by hand means for the refresher. */
void		table_imported(Relation rel);
void		table_released(Relation rel);

/*
 * Brings an imported table, locked by the caller, up to date: re-reads what changed, or imports
 * it anew where its tablets are no longer its own. Returns the rows read; raises if it is not imported.
 */
uint64		refresh_table(Relation rel);
[[noreturn]] void raise_not_imported(Relation rel);

}  // namespace gpuvm

#endif
