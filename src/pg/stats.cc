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
	pg_atomic_uint64 queries;
	pg_atomic_uint64 queries_cuda;
	pg_atomic_uint64 device_refusals;
	pg_atomic_uint64 rows_in;
	pg_atomic_uint64 rows_out;
	pg_atomic_uint64 bytes_read;
	pg_atomic_uint64 bytes_moved;
	pg_atomic_uint64 delta_blocks;
	pg_atomic_uint64 delta_rows;
	pg_atomic_uint64 restamped_blocks;
	pg_atomic_uint64 fallbacks[FALLBACK_COUNT_];
	pg_atomic_uint64 translations[TRANSLATION_OUTCOMES];
	pg_atomic_uint64 translation_ns[TRANSLATION_OUTCOMES];
};

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

void
stats_count_job(const Job *job, bool refused)
{
	StatsShared *stats = stats_shared();

	if (stats == NULL)
		return;
	/* One that yielded its device is submitted again. */
	pg_atomic_fetch_add_u64(&stats->queries, job->yielded ? 0 : 1);
	pg_atomic_fetch_add_u64(&stats->rows_in, job->rows_in);
	pg_atomic_fetch_add_u64(&stats->rows_out, job->rows_out);
	pg_atomic_fetch_add_u64(&stats->bytes_read, job->bytes_read);
	if (job->ran_on == Device::Cuda)
	{
		pg_atomic_fetch_add_u64(&stats->queries_cuda, job->yielded ? 0 : 1);
		pg_atomic_fetch_add_u64(&stats->bytes_moved, job->bytes_moved);
	}
	else if (refused)
		stats_count_refusal();
}

void
stats_count_refusal(void)
{
	StatsShared *stats = stats_shared();

	if (stats != NULL)
		pg_atomic_fetch_add_u64(&stats->device_refusals, 1);
}

void
stats_count_fallback(FallbackReason reason)
{
	StatsShared *stats = stats_shared();

	if (stats != NULL && reason >= 0 && reason < FALLBACK_COUNT_)
		pg_atomic_fetch_add_u64(&stats->fallbacks[reason], 1);
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
stats_count_delta(uint64 blocks, uint64 rows, uint64 restamped)
{
	StatsShared *stats = stats_shared();

	if (stats == NULL)
		return;
	pg_atomic_fetch_add_u64(&stats->delta_blocks, blocks);
	pg_atomic_fetch_add_u64(&stats->delta_rows, rows);
	pg_atomic_fetch_add_u64(&stats->restamped_blocks, restamped);
}

void
stats_read(StatsSnapshot *snapshot)
{
	StatsShared *stats = stats_shared();

	*snapshot = StatsSnapshot();
	if (stats == NULL)
		return;
	snapshot->queries = pg_atomic_read_u64(&stats->queries);
	snapshot->queries_cuda = pg_atomic_read_u64(&stats->queries_cuda);
	snapshot->device_refusals = pg_atomic_read_u64(&stats->device_refusals);
	snapshot->rows_in = pg_atomic_read_u64(&stats->rows_in);
	snapshot->rows_out = pg_atomic_read_u64(&stats->rows_out);
	snapshot->bytes_read = pg_atomic_read_u64(&stats->bytes_read);
	snapshot->bytes_moved = pg_atomic_read_u64(&stats->bytes_moved);
	snapshot->delta_blocks = pg_atomic_read_u64(&stats->delta_blocks);
	snapshot->delta_rows = pg_atomic_read_u64(&stats->delta_rows);
	snapshot->restamped_blocks = pg_atomic_read_u64(&stats->restamped_blocks);
	for (int i = 0; i < FALLBACK_COUNT_; i++)
		snapshot->fallbacks[i] = pg_atomic_read_u64(&stats->fallbacks[i]);
	for (int i = 0; i < TRANSLATION_OUTCOMES; i++)
	{
		snapshot->translations[i] = pg_atomic_read_u64(&stats->translations[i]);
		snapshot->translation_ns[i] = pg_atomic_read_u64(&stats->translation_ns[i]);
	}
}

}  // namespace gpuvm
