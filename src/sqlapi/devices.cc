/*
 * devices.cc: gpuvm.devices and gpuvm.status(): what programs can run on, and why
 * not. Engine 0 is the CPU, engine i + 1 is CUDA device i.
 *
 * gpuvmd writes the figures into the arena's header and may be a tenth of a
 * second late. Those of a gpuvmd that has gone are not shown. What is counted or
 * used is for pg_read_all_stats: it tells of the values that queries read.
 */
#include "pg/pg.h"

#include "engine/abi.h"
#include "pg/compat.h"
#include "pg/engine_client.h"
#include "pg/privileges.h"
#include "pg/shmem.h"
#include "pg/startup.h"
#include "pg/stats.h"
#include "store/refresher.h"

extern "C" {
#include "funcapi.h"
#include "utils/builtins.h"
}

namespace gpuvm {

/* A row that is filled from left to right. */
class Row
{
public:
	void text(const char *s) { add(s == NULL ? (Datum) 0 : CStringGetTextDatum(s), s == NULL); }
	void boolean(bool b) { add(BoolGetDatum(b), false); }
	void integer(uint32 i) { add(Int32GetDatum(static_cast<int32>(i)), false); }
	void bigint(uint64 i, bool shown = true) { add(Int64GetDatum(static_cast<int64>(i)), !shown); }
	void null() { add((Datum) 0, true); }
	void put(FunctionCallInfo fcinfo)
	{
		ReturnSetInfo *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);

		Assert(n == result->setDesc->natts);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}

private:
	void add(Datum value, bool isnull)
	{
		values[n] = value;
		nulls[n++] = isnull;
	}

	Datum		values[24];
	bool		nulls[24];
	int			n = 0;
};

static const char *
state_name(DeviceState state)
{
	switch (state)
	{
		case DeviceState::Starting: return "starting";
		case DeviceState::Ready: return "ready";
		case DeviceState::Unusable: return "unusable";
		case DeviceState::None: break;
	}
	return "none";
}

/* CUDA devices of the gpuvmd that runs now. */
static uint32
live_devices(const ArenaHeader *header)
{
	return header->engine_pid.load() == 0 ? 0 : Min(header->ndevices.load(), static_cast<uint32>(MAX_DEVICES));
}

static void
put_cpu(FunctionCallInfo fcinfo)
{
	char		sentence[512];
	bool		running = engine_status_sentence(sentence, sizeof(sentence));
	bool		all = may_see_all_stats();
	uint64		queries = stats_of_all(STATS_QUERIES);
	Row			row;

	row.integer(0);
	row.text("cpu");
	row.text(NULL);
	row.text(running ? "ready" : "unusable");
	row.text(sentence);
	row.integer(running ? engine_threads() : 0);
	row.null();
	row.null();
	/* its memory is the arena, where every table is */
	row.bigint(arena_size());
	row.bigint(arena_size());
	row.bigint(arena_used(), all);
	row.null();
	row.bigint(running ? arena_pinned() : 0, all);
	row.null();
	row.bigint(queries - Min(queries, stats_of_all(STATS_QUERIES_CUDA)), all);
	row.null();
	row.null();
	row.null();
	row.put(fcinfo);
}

static void
put_device(FunctionCallInfo fcinfo, uint32 i)
{
	const DeviceStatus *d = &arena_header()->devices[i];
	DeviceState state = static_cast<DeviceState>(d->state.load(std::memory_order_acquire));
	bool		all = may_see_all_stats();
	Row			row;

	row.integer(i + 1);
	row.text(psprintf("cuda:%u", i));
	row.text(engine_text(d->name));
	row.text(state_name(state));
	row.text(engine_text(d->sentence));
	row.null();
	row.text(psprintf("%u.%u", d->compute_major, d->compute_minor));
	row.integer(d->multiprocessors);
	row.bigint(d->memory_total.load());
	row.bigint(d->memory_limit.load());
	row.bigint(d->memory_cached.load(), all);
	row.bigint(d->memory_working.load(), all);
	row.null();
	row.bigint(d->jobs_running.load(), all);
	row.bigint(d->jobs_done.load(), all);
	row.bigint(d->jobs_refused.load(), all);
	row.bigint(d->bytes_moved.load(), all);
	row.bigint(d->evictions.load(), all);
	row.put(fcinfo);
}

static uint64
megabytes(uint64 bytes)
{
	return (bytes + (1024 * 1024 - 1)) / (1024 * 1024);
}

/* Of joins, in gpuvmd's memory and on its devices. */
static char *
index_sentence(const ArenaHeader *header, bool kept)
{
	StringInfoData buf;

	if (!may_see_all_stats())
		return psprintf("indexes of joins take at most " UINT64_FORMAT " MB", megabytes(header->index_limit.load()));
	initStringInfo(&buf);
	appendStringInfo(&buf, "%u indexes of joins take " UINT64_FORMAT " of " UINT64_FORMAT " MB", kept ? header->indexes.load() : 0,
					 megabytes(kept ? header->index_bytes.load() : 0), megabytes(header->index_limit.load()));
	for (uint32 i = 0; i < live_devices(header); i++)
		appendStringInfo(&buf, ", " UINT64_FORMAT " MB on cuda:%u", megabytes(header->devices[i].memory_indexes.load()), i);
	return buf.data;
}

static void
put_status(FunctionCallInfo fcinfo, const char *backend, bool loaded, const char *detail)
{
	Row			row;

	row.text(backend);
	row.boolean(loaded);
	row.text(detail);
	row.put(fcinfo);
}

}  // namespace gpuvm

using namespace gpuvm;

extern "C" {
PG_FUNCTION_INFO_V1(gpuvm_list_devices);
PG_FUNCTION_INFO_V1(gpuvm_status);

PGDLLEXPORT Datum
gpuvm_list_devices(PG_FUNCTION_ARGS)
{
	uint32		ndevices;

	require_preload();
	InitMaterializedSRF(fcinfo, 0);
	put_cpu(fcinfo);
	ndevices = arena_header() == NULL ? 0 : live_devices(arena_header());
	for (uint32 i = 0; i < ndevices; i++)
		put_device(fcinfo, i);
	return (Datum) 0;
}

/* Works without preloading too: it says so then. */
PGDLLEXPORT Datum
gpuvm_status(PG_FUNCTION_ARGS)
{
	const ArenaHeader *header = arena_header();
	char		sentence[512];
	uint32		ndevices;
	bool		ready;

	InitMaterializedSRF(fcinfo, 0);
	if (header == NULL)
	{
		put_status(fcinfo, "server", false, psprintf("gpuvm has no shared memory: %s", arena_failure()));
		return (Datum) 0;
	}
	put_status(fcinfo, "server", true,
			   psprintf("gpuvm is preloaded: " UINT64_FORMAT " MB of shared memory are reserved", arena_size() / (1024 * 1024)));
	put_status(fcinfo, "cpu", engine_status_sentence(sentence, sizeof(sentence)), sentence);

	ready = header->index_limit.load() > 0 && header->engine_pid.load() != 0;
	put_status(fcinfo, "indexes", ready, index_sentence(header, ready));

	ready = refresher_sentence(sentence, sizeof(sentence));
	put_status(fcinfo, "refresher", ready, sentence);

	ndevices = live_devices(header);
	ready = header->cuda_state.load(std::memory_order_acquire) == static_cast<uint32>(DeviceState::Ready);
	put_status(fcinfo, "cuda", ready && header->engine_pid.load() != 0,
			   engine_text(header->cuda_status));
	for (uint32 i = 0; i < ndevices; i++)
	{
		const DeviceStatus *d = &header->devices[i];

		ready = d->state.load(std::memory_order_acquire) == static_cast<uint32>(DeviceState::Ready);
		put_status(fcinfo, psprintf("cuda:%u", i), ready,
				   psprintf("%s: %s", engine_text(d->name), engine_text(d->sentence)));
	}
	return (Datum) 0;
}
}
