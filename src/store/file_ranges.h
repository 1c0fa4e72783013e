/*
 * file_ranges.h: parts of a file for several processes that load it, cut at ends of lines.
 *
 * Cuts are made as processes ask for parts, under a lock: what a line is to COPY's parser, quotes and
 * escapes included, is known from the beginning of the file on.
 */
#ifndef GPUVM_STORE_FILE_RANGES_H
#define GPUVM_STORE_FILE_RANGES_H

#include "pg/pg.h"

extern "C" {
#include "storage/lwlock.h"
#include "utils/rel.h"
}

namespace gpuvm {

/* Part of a file: whole lines. */
struct FileRange
{
	uint32		number;
	uint64		from;
	uint64		to;
	bool		last;			/* of the file */
	bool		crlf;			/* how lines end */
	int			encoding;		/* in which the file is read */
};

/* Shared by the processes; all zeroes: the file is read by one, as a whole. */
struct FileRanges
{
	uint64		size;
	uint32		processes;
	bool		csv;
	bool		crlf;
	char		quote;			/* csv */
	char		escape;			/* csv: 0 where it is the quote */
	int			encoding;
	/* what follows is under the lock */
	LWLock		lock;
	uint64		next;			/* where the next range begins */
	uint32		nranges;
};

/* How many processes a file of that size is worth. */
uint32		file_processes(uint64 size);

/* How many ranges it is cut into, at most. */
uint32		file_max_ranges(uint64 size);

/* For so many processes. False: the file must be read as a whole. */
bool		file_ranges_init(FileRanges *ranges, Relation rel, uint64 size, uint32 processes);

/* The next range of the file, which is open as `fd`. False: there is none left. */
bool		file_ranges_next(FileRanges *ranges, int fd, FileRange *range);

}  // namespace gpuvm

#endif
