/* stats.h: the cluster's counters behind gpuvm.stats. */
#ifndef GPUVM_PG_STATS_H
#define GPUVM_PG_STATS_H

#include "pg/pg.h"

namespace gpuvm {

struct Job;

/* Why a statement that had a gpuvm plan ran PostgreSQL's own instead. */
enum FallbackReason
{
	FALLBACK_DISABLED,			/* gpuvm.enabled turned off after planning */
	FALLBACK_ENGINE_AWAY,
	FALLBACK_NO_TABLETS,		/* released, or never published */
	FALLBACK_TABLE_CHANGED,		/* blocks changed since import */
	FALLBACK_SCHEMA_CHANGED,	/* file node or column signature differ */
	FALLBACK_SNAPSHOT,			/* not an MVCC snapshot, old_snapshot_threshold, row rechecks */
	FALLBACK_MEMORY,
	FALLBACK_ERROR_FLAG,		/* a live row set an error bit: PostgreSQL decides */
	FALLBACK_QUARANTINED,
	FALLBACK_ENGINE_FAILED,
	FALLBACK_VALUE,				/* a changed block has a value that tablets cannot hold in the column's form */
	FALLBACK_COUNT_
};

/* Rows of gpuvm.stats; after them come those of the reasons above. */
enum StatsCounter
{
	STATS_QUERIES,				/* programs that ran to their end */
	STATS_QUERIES_CUDA,			/* of those, on a CUDA device */
	STATS_ROWS_IN,
	STATS_ROWS_OUT,
	STATS_BYTES_READ,
	STATS_BYTES_MOVED,			/* over the bus, to and from CUDA devices */
	STATS_DELTA_BLOCKS,			/* read from the heap, because tablets did not serve them */
	STATS_DELTA_ROWS,
	STATS_RESTAMPED_BLOCKS,		/* looked at by queries, because VACUUM had been there */
	STATS_DEVICE_REFUSALS,
	STATS_RESTARTS,
	STATS_SPILLED,				/* bytes of temporary files */
	STATS_NOT_STAYED,			/* results that were to stay in gpuvmd, and passed through PostgreSQL for want of memory or a failure */
	STATS_FALLBACKS,
	STATS_COUNT_ = STATS_FALLBACKS + FALLBACK_COUNT_
};

/* The name in gpuvm.stats and in EXPLAIN, e.g. "table changed". */
const char *fallback_reason_name(FallbackReason reason);

/* A job that has ended; `refused` tells that it was meant for a device, if it did not run there. */
void		stats_count_job(const Job *job, bool refused);
/* A device refused, or failed, a job that was meant for it. */
void		stats_count_refusal(void);
void		stats_count_fallback(FallbackReason reason);
void		stats_count_not_stayed(void);
/* A run over tables with blocks that its tablets do not serve, or did not until it looked at them. */
void		stats_count_delta(uint64 blocks, uint64 rows, uint64 restamped);

/* Since the server started; 0 without shared memory. */
uint64		stats_of_all(StatsCounter counter);
/* Of this process. */
uint64		stats_of_mine(StatsCounter counter);

/* Outcomes of translating statements to the algebra (plan/refusals.h). */
constexpr int TRANSLATION_OUTCOMES = 32;

void		stats_count_translation(int outcome, uint64 ns);
/* How many there were since the server started, and how long they took. */
void		stats_translations(int outcome, uint64 *count, uint64 *ns);

}  // namespace gpuvm

#endif
