/* job_window.h: window functions over a result set (JobKind::Window), with the pool's help. */
#ifndef GPUVM_ENGINE_JOB_WINDOW_H
#define GPUVM_ENGINE_JOB_WINDOW_H

#include "engine/context.h"
#include "engine/job_io.h"

namespace gpuvm {

/* True: the set has the columns now. Else it is as it was; the Job says of errors, the io of a failure. Throws std::bad_alloc. */
bool		run_window(EngineContext *context, const Request &request, Job *job, JobIo *io);

}  // namespace gpuvm

#endif
