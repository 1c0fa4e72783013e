/* run_internal.h: between run.cc and the files that it is parted into. */
#ifndef GPUVM_EXECUTOR_RUN_INTERNAL_H
#define GPUVM_EXECUTOR_RUN_INTERNAL_H

#include "executor/scan_state.h"

namespace gpuvm {

/* How long a query waits for a gpuvmd that is being started again, before and after its first row; milliseconds. */
constexpr int START_WAIT_MS = 0;
constexpr int RESTART_WAIT_MS = 5000;

/* -- run.cc ------------------------------------------------------------------------- */

/* The job that runs, or has run, is no more the session's; `lost`: gpuvmd has gone with it. */
void		end_job(GpuvmScanState *state, bool lost);
void		take_figures(GpuvmScanState *state);
/* The job that has just ended did not run where gpuvm.require wants it: raises. */
void		check_device(GpuvmScanState *state);
void		forget_groups(ScanPart *part);

/* -- run_submit.cc ------------------------------------------------------------------ */

/* Fills the session's job and submits it; NULL, or the reason why not. */
const char *submit(GpuvmScanState *state, int wait_ms, int *fallback);
/* The same once more without the group filter. False if there is none. */
bool		submit_unfiltered(GpuvmScanState *state, const char **failure, int *fallback);
/* How many keys the job at hand is sorted by. */
int			wanted_order(const GpuvmScanState *state);
bool		reads_sets(const GpuvmScanState *state);
/* Of a result buffer, in the arena. */
uint64		buffer_offset(const GpuvmScanState *state, int number);

/* -- run_rows.cc -------------------------------------------------------------------- */

/* A device failed in the middle of the job: the CPU goes on with what is left. False if that was no device's failure, or cannot be done. */
bool		resubmit_to_cpu(GpuvmScanState *state);
/* The unit that has to come next; -1: any may. */
int64		wanted_unit(const GpuvmScanState *state);
/* A Full buffer, with the unit that is wanted or else the lowest. */
FullBuffer	full_buffer(const GpuvmScanState *state);
/* What came back cannot be: gpuvmd has written what it should not have. */
void		give_up_results(GpuvmScanState *state, const char *detail);

}  // namespace gpuvm

#endif
