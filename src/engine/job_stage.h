/* job_stage.h: the second of a job's programs on the CPU, over the groups of the first. */
#ifndef GPUVM_ENGINE_JOB_STAGE_H
#define GPUVM_ENGINE_JOB_STAGE_H

#include <memory>

#include "engine/context.h"
#include "engine/job_io.h"
#include "engine/job_set.h"

namespace gpuvm {

/*
 * Runs the request's stage over the groups that `first`, the request's program, has left; nothing
 * to do without a stage or groups. `set`: what it gives becomes one; or nullptr. What the Job says of tables, rows and pairs stays the first
 * program's. Throws std::bad_alloc.
 */
void		run_stage(EngineContext *context, const Request &request, const CpuJob *first, std::unique_ptr<CpuState> groups,
					  Job *job, JobIo *io, SetBuild *set);

}  // namespace gpuvm

#endif
