/*
 * job_file.h: the temporary file that a job of gpuvmd's asks for (Job.spill_wanted): created, made longer and removed by PostgreSQL's
 * own means, so that its settings, limits and statistics hold. gpuvmd opens it by its name.
 */
#ifndef GPUVM_PG_JOB_FILE_H
#define GPUVM_PG_JOB_FILE_H

#include "pg/pg.h"

extern "C" {
#include "storage/fd.h"
#include "utils/resowner.h"
}

#include "engine/abi.h"

namespace gpuvm {

/* Is it to be longer than it is, or to be created? */
bool		job_file_wanted(const Job *job);

/* Makes it so long; -1: creates it, as the owner's. temp_file_limit is the most that it may be: raises. */
void		job_file_grow(File *file, Job *job, ResourceOwner owner);

/* The job has ended: nothing if there is none. Not while its owner is being released. */
void		job_file_end(File *file, const Job *job);

}  // namespace gpuvm

#endif
