/* stats.cc: counters in shared memory, each an atomic of its own: a reader may see a query half counted. */
#include "pg/stats.h"

#include "engine/abi.h"
#include "pg/startup.h"

extern "C" {
#include "port/atomics.h"
}

namespace gpuvm {

struct StatsShared
{
	pg_atomic_uint64 counters[STATS_COUNT_];
	pg_atomic_uint64 translations[TRANSLATION_OUTCOMES];
	pg_atomic_uint64 translation_ns[TRANSLATION_OUTCOMES];
};

static uint64 mine[STATS_COUNT_];

Size
stats_shared_size(void)
{
	return MAXALIGN(sizeof(StatsShared));
}

const char *
fallback_reason_name(FallbackReason reason)
{
	switch (reason)
	{
		case FALLBACK_DISABLED: return "disabled";
		case FALLBACK_ENGINE_AWAY: return "engine away";
		case FALLBACK_NO_TABLETS: return "no tablets";
		case FALLBACK_TABLE_CHANGED: return "table changed";
		case FALLBACK_SCHEMA_CHANGED: return "schema changed";
		case FALLBACK_SNAPSHOT: return "snapshot";
		case FALLBACK_MEMORY: return "memory short";
		case FALLBACK_ERROR_FLAG: return "error flag";
		case FALLBACK_QUARANTINED: return "quarantined";
		case FALLBACK_ENGINE_FAILED: return "engine failed";
		case FALLBACK_VALUE: return "value out of form";
		case FALLBACK_COUNT_: break;
	}
	return "unknown";
}

static void
count(int counter, uint64 n)
{
	StatsShared *stats = stats_shared();

	mine[counter] += n;
	if (stats != NULL && n != 0)
		pg_atomic_fetch_add_u64(&stats->counters[counter], n);
}

void
stats_count_job(const Job *job, bool refused)
{
	/* One that yielded its device is submitted again. */
	const uint64 queries = job->yielded ? 0 : 1;

	count(STATS_QUERIES, queries);
	count(STATS_ROWS_IN, job->rows_in);
	count(STATS_ROWS_OUT, job->rows_out);
	count(STATS_BYTES_READ, job->bytes_read);
	count(STATS_RESTARTS, job->restarts);
	count(STATS_SPILLED, job->spilled);
	if (job->ran_on == Device::Cuda)
	{
		count(STATS_QUERIES_CUDA, queries);
		count(STATS_BYTES_MOVED, job->bytes_moved);
	}
	else if (refused)
		stats_count_refusal();
}

void
stats_count_refusal(void)
{
	count(STATS_DEVICE_REFUSALS, 1);
}

void
stats_count_not_stayed(void)
{
	count(STATS_NOT_STAYED, 1);
}

void
stats_count_fallback(FallbackReason reason)
{
	if (reason >= 0 && reason < FALLBACK_COUNT_)
		count(STATS_FALLBACKS + reason, 1);
}

void
stats_count_delta(uint64 blocks, uint64 rows, uint64 restamped)
{
	count(STATS_DELTA_BLOCKS, blocks);
	count(STATS_DELTA_ROWS, rows);
	count(STATS_RESTAMPED_BLOCKS, restamped);
}

uint64
stats_of_all(StatsCounter counter)
{
	StatsShared *stats = stats_shared();

	return stats == NULL ? 0 : pg_atomic_read_u64(&stats->counters[counter]);
}

uint64
stats_of_mine(StatsCounter counter)
{
	return mine[counter];
}

void
stats_count_translation(int outcome, uint64 ns)
{
	StatsShared *stats = stats_shared();

	if (stats == NULL)
		return;
	pg_atomic_fetch_add_u64(&stats->translations[outcome], 1);
	pg_atomic_fetch_add_u64(&stats->translation_ns[outcome], ns);
}

void
stats_translations(int outcome, uint64 *statements, uint64 *ns)
{
	StatsShared *stats = stats_shared();

	*statements = stats == NULL ? 0 : pg_atomic_read_u64(&stats->translations[outcome]);
	*ns = stats == NULL ? 0 : pg_atomic_read_u64(&stats->translation_ns[outcome]);
}

}  // namespace gpuvm
