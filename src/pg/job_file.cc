/* job_file.cc: see job_file.h. */
#include "pg/job_file.h"

extern "C" {
#include "commands/tablespace.h"
#include "pgstat.h"
}

namespace gpuvm {

bool
job_file_wanted(const Job *job)
{
	return job->spill_wanted.load() > job->spill_room.load();
}

void
job_file_grow(File *file, Job *job, ResourceOwner owner)
{
	const uint64 bytes = job->spill_wanted.load();
	const ResourceOwner current = CurrentResourceOwner;
	char		zero[1] = {0};

	if (*file < 0)
	{
		PrepareTempTablespaces();
		CurrentResourceOwner = owner;
		*file = OpenTemporaryFile(false);
		CurrentResourceOwner = current;
		strlcpy(job->spill_path, FilePathName(*file), sizeof(job->spill_path));
	}
	errno = ENOSPC;
	if (bytes > PG_INT64_MAX || FileWrite(*file, zero, 1, static_cast<off_t>(bytes - 1), WAIT_EVENT_BUFFILE_WRITE) != 1)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not write to file \"%s\": %m", FilePathName(*file))));
	job->spill_room.store(bytes);
}

/* What it was not filled with is not counted as used. */
void
job_file_end(File *file, const Job *job)
{
	const File	ended = *file;

	if (ended < 0)
		return;
	*file = -1;
	if (job->spilled < job->spill_room.load())
		(void) FileTruncate(ended, static_cast<off_t>(job->spilled), WAIT_EVENT_BUFFILE_TRUNCATE);
	FileClose(ended);
}

}  // namespace gpuvm
