/* quarantine.cc: behind gpuvm.quarantine, and gpuvm.forgive(). */
#include "pg/pg.h"

#include "pg/compat.h"
#include "pg/quarantine.h"
#include "pg/shmem.h"

extern "C" {
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
}

namespace gpuvm {

static const char *
cause_name(uint32 cause)
{
	switch (cause)
	{
		case CAUSE_DEVICE: return "device";
		case CAUSE_OUT_OF_MEMORY: return "out of memory";
		case SIGSEGV: return "SIGSEGV";
		case SIGBUS: return "SIGBUS";
		case SIGFPE: return "SIGFPE";
		case SIGILL: return "SIGILL";
		case SIGABRT: return "SIGABRT";
	}
	return "unknown";
}

/* As gpuvm.quarantine shows it; raises. */
static uint64
parse_hash(const char *text)
{
	char	   *end;
	uint64		hash = strtou64(text, &end, 16);

	if (strlen(text) != 16 || *end != '\0' || hash == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" is not the hash of a program", text),
				 errhint("gpuvm.quarantine has those of the programs that are known there.")));
	return hash;
}

}  // namespace gpuvm

using namespace gpuvm;

extern "C" {
PG_FUNCTION_INFO_V1(gpuvm_list_quarantine);
PG_FUNCTION_INFO_V1(gpuvm_forgive);

PGDLLEXPORT Datum
gpuvm_list_quarantine(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
	QuarantineRow *rows;
	int			count;

	require_preload();
	InitMaterializedSRF(fcinfo, 0);
	rows = quarantine_list(&count);
	for (int i = 0; i < count; i++)
	{
		const QuarantineRow &row = rows[i];
		Datum		values[6];
		bool		nulls[6] = {};

		values[0] = CStringGetTextDatum(psprintf("%016llx", static_cast<unsigned long long>(row.last.program)));
		values[1] = CStringGetTextDatum(row.last.device == Device::Cuda ? "cuda" : "cpu");
		values[2] = Int32GetDatum(static_cast<int32>(row.crashes));
		values[3] = CStringGetTextDatum(cause_name(row.last.cause));
		values[4] = TimestampTzGetDatum(row.last_crash);
		values[5] = TimestampTzGetDatum(row.barred_until);
		nulls[5] = row.barred_until == 0;
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* How many entries of the quarantine are gone: of the program, or all. */
PGDLLEXPORT Datum
gpuvm_forgive(PG_FUNCTION_ARGS)
{
	require_preload();
	if (!superuser())
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("only superusers forgive crashes of gpuvmd")));
	PG_RETURN_INT32(quarantine_forgive(PG_ARGISNULL(0) ? 0 : parse_hash(text_to_cstring(PG_GETARG_TEXT_PP(0)))));
}

}
