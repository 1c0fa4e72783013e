/* job_dispatch.h: one job, from its request to its outcome. */
#ifndef GPUVM_ENGINE_JOB_DISPATCH_H
#define GPUVM_ENGINE_JOB_DISPATCH_H

#include "engine/context.h"
#include "engine/doorbell.h"

namespace gpuvm {

/*
 * Runs the job and fills the Job's outcome but for its state; false when it
 * failed, with Job.failure set. Never throws.
 */
bool		run_job(EngineContext *context, SetStore *sets, SessionShare *share, Job *job, Doorbell *doorbell);

}  // namespace gpuvm

#endif
