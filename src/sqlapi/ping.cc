/* ping.cc: gpuvm.ping(), the way to the engine and back. */
#include "pg/pg.h"

#include "pg/engine_client.h"
#include "pg/shmem.h"

using namespace gpuvm;

extern "C" {

PG_FUNCTION_INFO_V1(gpuvm_ping);

/* Microseconds that the empty program takes to gpuvmd and back; raises 55000 when there is no engine. */
PGDLLEXPORT Datum
gpuvm_ping(PG_FUNCTION_ARGS)
{
	const char *reason = NULL;
	int64		ns;

	require_preload();
	ns = engine_ping(&reason);
	if (ns < 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("gpuvm's engine does not answer"),
				 errdetail_internal("%s", reason),
				 errhint("See gpuvm.status().")));
	PG_RETURN_FLOAT8(ns / 1000.0);
}

}
