/*
 * file.h: foreign tables of gpuvm_fdw, whose rows are a file's, or are stored (store/tablets.h).
 *
 * The file is the truth: PostgreSQL's COPY parser reads it, and tablets made of it
 * answer as long as its stamp is the one that it had then. Of a table without a file they answer
 * snapshots that see what they were made of; the active snapshot says that in all that follows.
 */
#ifndef GPUVM_STORE_FILE_H
#define GPUVM_STORE_FILE_H

#include "pg/pg.h"
#include "tablet/format.h"

extern "C" {
#include "foreign/fdwapi.h"
#include "nodes/pg_list.h"
#include "utils/rel.h"
}

namespace gpuvm {

/* The wrapper's handler says by which callback its tables are known, as every backend that opens one has called it. */
void		file_tables_known_by(BeginForeignScan_function callback);

/* Is it a foreign table of gpuvm_fdw, with a file or without? */
bool		is_file_table(Relation rel);
bool		is_file_relation(Oid relid);	/* which is locked */

/* What the table was defined with; palloc'd. */
struct FileOptions
{
	char	   *filename;
	List	   *copy;			/* what BeginCopyFrom takes: DefElem */
};
FileOptions file_options(Relation rel);

/* All options of the table and its columns, as text that is equal only where they are; palloc'd. */
char	   *file_options_text(Relation rel);

/*
 * Equal stamps mean equal content. Times count nanoseconds; that of the last change of
 * the inode cannot be set back as the other can. All is 0 where there is no file.
 */
struct FileStamp
{
	uint64		device;
	uint64		inode;
	uint64		size;
	int64		modified;
	int64		changed;
};

inline bool
stamps_equal(const FileStamp &a, const FileStamp &b)
{
	return a.device == b.device && a.inode == b.inode && a.size == b.size && a.modified == b.modified && a.changed == b.changed;
}

/* False where it is no regular file, or none that this server may look at. */
bool		file_stamp(const char *filename, FileStamp *stamp);

/* What tablets of a file are of, and as of when: part of their version. */
struct FileOrigin
{
	FileStamp	stamp;
	uint64		options;		/* a hash of all options */
	uint64		settings;		/* a hash of those settings of the session that values depend on as they are read; 0: none */
	bool		stored;			/* of no file: the stamp's device and inode are hashes of what the snapshot sees (list_tablets) */
};

inline bool
origins_equal(const FileOrigin &a, const FileOrigin &b)
{
	return stamps_equal(a.stamp, b.stamp) && a.options == b.options && a.settings == b.settings && a.stored == b.stored;
}

/* Raises unless the table can be imported: its rows then depend on the file, and settings, alone. */
void		check_file_importable(Relation rel);

/* The same as an answer, why not in *detail. */
bool		file_importable(Relation rel, const char **detail);

/* May several processes read it, as far as its columns' types are concerned? */
bool		file_parallel_safe(Relation rel);

/* False as file_stamp. */
bool		file_origin(Relation rel, FileOrigin *origin);

/* Is what the version was made of as it was then, and would this session read it alike? *detail (may be NULL) says why not. */
bool		file_is_current(Relation rel, const TableVersion *version, const char **detail);

/* Is there a version of the table that is current? */
bool		file_in_memory(Relation rel);

/* The same for queries: gpuvm.files may let tablets answer when the file has changed. */
bool		file_may_answer(Relation rel, const TableVersion *version, const char **detail);

/*
 * For a query that is planned or begins: loads the file, if its tablets cannot answer and gpuvm.files allows it. NULL: they
 * can; else why not, palloc'd or constant. Raises only what ends the statement.
 */
const char *file_ready(Relation rel);

/* Why the tablets of a file table, which is locked, cannot answer; NULL if they can, and for all other tables. */
const char *file_not_ready(Oid relid);

/*
 * Reads the file's rows in its order. file_next() evaluates input functions in the current
 * memory context, which the caller resets between rows; it gives false at the end. Errors are
 * COPY's, with line and file. An abort closes what is open.
 */
struct FileReader;
struct FileRange;
struct FileRanges;
FileReader *file_open(Relation rel);
bool		file_next(FileReader *reader, Datum *values, bool *nulls);
void		file_close(FileReader *reader);

/*
 * The next of the parts that the file is cut into (file_ranges.h), as a reader; NULL: there is none left. Its errors count no
 * lines, and it raises where the file says that it ends before the part does.
 */
FileReader *file_open_range(Relation rel, FileRanges *ranges, FileRange *range);

}  // namespace gpuvm

#endif
