/* activity.cc: behind gpuvm.activity: what gpuvmd does for whom, and what it waits for. */
#include "pg/pg.h"

#include "engine/abi.h"
#include "pg/activity.h"
#include "pg/compat.h"
#include "pg/privileges.h"
#include "pg/shmem.h"

extern "C" {
#include "commands/dbcommands.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"
}

namespace gpuvm {

static const char *
state_name(const Job *job)
{
	switch (static_cast<JobState>(job->state.load()))
	{
		case JobState::Submitted: return "queued";
		case JobState::Running:
			switch (job->waits.load())
			{
				case WAITS_FOR_PROCESSOR: return "waiting for a processor";
				case WAITS_FOR_MEMORY: return "waiting for memory";
				default: return "running";
			}
		case JobState::Suspended: return "waiting for the client";
		case JobState::Done:
		case JobState::Failed: return "ended";
		case JobState::Idle: break;
	}
	return "preparing";
}

/* Where a job runs and what it has done so far tells of hidden rows, so it is for pg_read_all_stats alone. */
static void
put_activity(FunctionCallInfo fcinfo, const ActivityRow *row)
{
	ReturnSetInfo *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
	const Job  *job = arena_at<Job>(row->job);
	const bool	all = may_see_all_stats();
	const char *database = OidIsValid(row->database) ? get_database_name(row->database) : NULL;
	const char *role = GetUserNameFromId(row->role, true);
	const uint64 program = job->program_hash;
	const uint64 to_do = job->rows_to_do.load();
	Datum		values[10] = {};
	bool		nulls[10] = {};

	if (!all && !has_privs_of_role(GetUserId(), row->role))
		return;
	values[0] = Int32GetDatum(row->pid);
	nulls[1] = database == NULL;
	values[1] = nulls[1] ? (Datum) 0 : DirectFunctionCall1(namein, CStringGetDatum(database));
	nulls[2] = role == NULL;
	values[2] = nulls[2] ? (Datum) 0 : DirectFunctionCall1(namein, CStringGetDatum(role));
	nulls[3] = program == 0;
	values[3] = CStringGetTextDatum(psprintf("%016llx", static_cast<unsigned long long>(program)));
	values[4] = CStringGetTextDatum(state_name(job));
	nulls[5] = !all;
	values[5] = CStringGetTextDatum(job->ran_on == Device::Cuda ? "cuda" : "cpu");
	nulls[6] = row->submitted == 0;
	values[6] = TimestampTzGetDatum(row->submitted);
	nulls[7] = nulls[8] = !all || to_do == 0;
	values[7] = Int64GetDatum(static_cast<int64>(Min(job->rows_done.load(), to_do)));
	values[8] = Int64GetDatum(static_cast<int64>(to_do));
	nulls[9] = !all;
	values[9] = Int64GetDatum(static_cast<int64>(row->memory));
	/* the session may have ended meanwhile, and its Job be somebody else's memory */
	if (activity_is(row))
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

}  // namespace gpuvm

using namespace gpuvm;

extern "C" {
PG_FUNCTION_INFO_V1(gpuvm_list_activity);

PGDLLEXPORT Datum
gpuvm_list_activity(PG_FUNCTION_ARGS)
{
	ActivityRow *rows;
	int			count;

	require_preload();
	InitMaterializedSRF(fcinfo, 0);
	rows = activity_list(&count);
	for (int i = 0; i < count; i++)
		put_activity(fcinfo, &rows[i]);
	return (Datum) 0;
}
}
