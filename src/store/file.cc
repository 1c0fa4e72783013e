/* file.cc: what a file table is defined with, and its rows by PostgreSQL's COPY parser. */
#include "store/file.h"
#include "store/file_ranges.h"
#include "store/tablets.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

extern "C" {
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "commands/copy.h"
#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "mb/pg_wchar.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "nodes/value.h"
#include "storage/fd.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/wait_event.h"
}

namespace gpuvm {

/*
 * COPY would open the file itself, but lose it when the subtransaction aborts in which it was opened, and a cursor that
 * is older than that goes on. So the file is open as long as the reader's memory context lives.
 */
struct FileReader
{
	TabletReader *tablets;		/* of a table without a file, else NULL */
	CopyFromState copy;
	char	   *filename;
	int			fd;
	const FileRange *range;		/* NULL: the whole file */
	uint64		at;				/* in the range: what is read next */
	int			newline;		/* of the line before it, bytes not handed out yet */
	bool		ended;			/* all of it was */
	MemoryContext context;
	MemoryContextCallback at_end;
};

static BeginForeignScan_function known_by = NULL;

void
file_tables_known_by(BeginForeignScan_function callback)
{
	known_by = callback;
}

/* A wrapper need not have a handler. */
static bool
has_handler(Relation rel)
{
	ForeignServer *server = GetForeignServer(GetForeignTable(RelationGetRelid(rel))->serverid);

	return OidIsValid(GetForeignDataWrapper(server->fdwid)->fdwhandler);
}

bool
is_file_table(Relation rel)
{
	if (rel->rd_rel->relkind != RELKIND_FOREIGN_TABLE || (rel->rd_fdwroutine == NULL && !has_handler(rel)))
		return false;
	return GetFdwRoutineForRelation(rel, false)->BeginForeignScan == known_by;
}

/* -- options ------------------------------------------------------------------- */

/* COPY wants the names of all columns that have an option. */
static List *
with_columns(List *copy, Relation rel, const char *option)
{
	TupleDesc	desc = RelationGetDescr(rel);
	List	   *names = NIL;

	for (int i = 0; i < desc->natts; i++)
	{
		ListCell   *lc;

		if (TupleDescAttr(desc, i)->attisdropped)
			continue;
		foreach(lc, GetForeignColumnOptions(RelationGetRelid(rel), i + 1))
		{
			DefElem    *def = lfirst_node(DefElem, lc);

			if (strcmp(def->defname, option) == 0 && defGetBoolean(def))
				names = lappend(names, makeString(pstrdup(NameStr(TupleDescAttr(desc, i)->attname))));
		}
	}
	return names == NIL ? copy : lappend(copy, makeDefElem(pstrdup(option), reinterpret_cast<Node *>(names), -1));
}

FileOptions
file_options(Relation rel)
{
	FileOptions options = {NULL, NIL};
	ListCell   *lc;

	foreach(lc, GetForeignTable(RelationGetRelid(rel))->options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		if (strcmp(def->defname, "filename") == 0)
			options.filename = defGetString(def);
		else
			options.copy = lappend(options.copy, def);
	}
	/* the validator has seen to that; a table may be older */
	if (options.filename == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("foreign table \"%s\" has no option \"filename\"", RelationGetRelationName(rel))));
	options.copy = with_columns(options.copy, rel, "force_not_null");
	options.copy = with_columns(options.copy, rel, "force_null");
	return options;
}

static void
append_options(StringInfo text, int column, List *options)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);
		const char *value = defGetString(def);

		appendStringInfo(text, "%d %s %zu %s\n", column, def->defname, strlen(value), value);
	}
}

/* What a label in the file stands for; a label may be given to another value. */
static void
append_labels(StringInfo text, Oid type)
{
	Oid			element = get_base_element_type(type);
	Oid			base = getBaseType(OidIsValid(element) ? element : type);
	CatCList   *labels;

	if (get_typtype(base) != TYPTYPE_ENUM)
		return;
	labels = SearchSysCacheList1(ENUMTYPOIDNAME, ObjectIdGetDatum(base));
	for (int i = 0; i < labels->n_members; i++)
	{
		Form_pg_enum label = reinterpret_cast<Form_pg_enum>(GETSTRUCT(&labels->members[i]->tuple));

		appendStringInfo(text, "%u %s\n", label->oid, NameStr(label->enumlabel));
	}
	ReleaseCatCacheList(labels);
}

char *
file_options_text(Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);
	StringInfoData text;

	initStringInfo(&text);
	append_options(&text, 0, GetForeignTable(RelationGetRelid(rel))->options);
	for (int i = 0; i < desc->natts; i++)
	{
		if (TupleDescAttr(desc, i)->attisdropped)
			continue;
		append_options(&text, i + 1, GetForeignColumnOptions(RelationGetRelid(rel), i + 1));
		/* header 'match' compares names; generated columns are not in the file */
		appendStringInfo(&text, "%d %s%s\n", i + 1, TupleDescAttr(desc, i)->attgenerated != '\0' ? "generated " : "", NameStr(TupleDescAttr(desc, i)->attname));
		append_labels(&text, TupleDescAttr(desc, i)->atttypid);
	}
	return text.data;
}

/* -- the file ------------------------------------------------------------------ */

bool
file_stamp(const char *filename, FileStamp *stamp)
{
	struct stat st;

	memset(stamp, 0, sizeof(*stamp));
	if (stat(filename, &st) != 0 || !S_ISREG(st.st_mode))
		return false;
	stamp->device = st.st_dev;
	stamp->inode = st.st_ino;
	stamp->size = static_cast<uint64>(st.st_size);
	stamp->modified = st.st_mtim.tv_sec * INT64CONST(1000000000) + st.st_mtim.tv_nsec;
	stamp->changed = st.st_ctim.tv_sec * INT64CONST(1000000000) + st.st_ctim.tv_nsec;
	return true;
}

static void
add_file_to_error(void *arg)
{
	FileReader *reader = static_cast<FileReader *>(arg);

	/* lines are not counted from the beginning there */
	if (reader->range == NULL)
		CopyFromErrorCallback(reader->copy);
	else
		errcontext("bytes %llu to %llu", static_cast<unsigned long long>(reader->range->from), static_cast<unsigned long long>(reader->range->to));
	errcontext("file \"%s\"", reader->filename);
}

/* COPY's parser hands nothing to its source of bytes: the reader that it works for. */
static FileReader *reading = NULL;

static int
read_bytes(void *bytes, int least, int most)
{
	int			done = 0;

	if (reading->newline > 0)
	{
		done = reading->newline;
		memcpy(bytes, done == 2 ? "\r\n" : "\n", done);
		reading->newline = 0;
		return done;
	}
	if (reading->range != NULL)
		most = static_cast<int>(Min(static_cast<uint64>(most), reading->range->to - reading->at));
	while (done < least && done < most)
	{
		ssize_t		n;

		CHECK_FOR_INTERRUPTS();
		pgstat_report_wait_start(WAIT_EVENT_COPY_FILE_READ);
		n = read(reading->fd, static_cast<char *>(bytes) + done, most - done);
		pgstat_report_wait_end();
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read from COPY file: %m")));
		if (n == 0)
			break;
		done += static_cast<int>(n);
	}
	reading->at += done;
	reading->ended = done == 0;
	return done;
}

static void
close_file(void *arg)
{
	FileReader *reader = static_cast<FileReader *>(arg);

	(void) close(reader->fd);
	ReleaseExternalFD();
}

/* With COPY's errors. */
static void
open_file(FileReader *reader)
{
	struct stat st;
	bool		acquired = AcquireExternalFD();

	reader->fd = acquired ? BasicOpenFile(reader->filename, O_RDONLY | PG_BINARY) : -1;
	if (reader->fd < 0)
	{
		int			save_errno = errno;

		if (acquired)
			ReleaseExternalFD();
		errno = save_errno;
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\" for reading: %m", reader->filename)));
	}
	reader->at_end.func = close_file;
	reader->at_end.arg = reader;
	MemoryContextRegisterResetCallback(reader->context, &reader->at_end);
	if (fstat(reader->fd, &st) == 0 && S_ISDIR(st.st_mode))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a directory", reader->filename)));
}

/* In a memory context of its own, which is current when it returns. */
static FileReader *
new_reader(const FileOptions &options)
{
	FileReader *reader = static_cast<FileReader *>(palloc0(sizeof(FileReader)));

	reader->filename = options.filename;
	reader->context = CurrentMemoryContext;
	open_file(reader);
	return reader;
}

static void
begin_copy(FileReader *reader, Relation rel, List *options)
{
	FileReader *outer = reading;

	reading = reader;
	reader->copy = BeginCopyFrom(NULL, rel, NULL, NULL, false, read_bytes, NIL, options);
	reading = outer;
}

static MemoryContext
reader_context(void)
{
	return AllocSetContextCreate(CurrentMemoryContext, "gpuvm file reader", ALLOCSET_SMALL_SIZES);
}

FileReader *
file_open(Relation rel)
{
	MemoryContext old = MemoryContextSwitchTo(reader_context());
	FileReader *reader;

	if (is_tablet_table(rel))
	{
		reader = static_cast<FileReader *>(palloc0(sizeof(FileReader)));
		reader->context = CurrentMemoryContext;
		reader->tablets = tablets_open(rel, GetActiveSnapshot(), NULL);
	}
	else
	{
		FileOptions options = file_options(rel);

		reader = new_reader(options);
		begin_copy(reader, rel, options.copy);
	}
	MemoryContextSwitchTo(old);
	return reader;
}

/* -- a part of the file -------------------------------------------------------- */

static List *
with_option(List *copy, const char *option, char *value)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, copy)
	{
		if (strcmp(lfirst_node(DefElem, lc)->defname, option) != 0)
			result = lappend(result, lfirst(lc));
	}
	return lappend(result, makeDefElem(pstrdup(option), reinterpret_cast<Node *>(makeString(value)), -1));
}

/*
 * The parser is to know how lines end, as it would by then: but for the first part it gets an empty line to begin with, which it
 * takes for the header. A worker's client_encoding is not the leader's.
 */
static void
begin_range(FileReader *reader, Relation rel, const FileRange *range, List *options)
{
	options = with_option(options, "encoding", pstrdup(pg_encoding_to_char(range->encoding)));
	if (range->from > 0)
	{
		options = with_option(options, "header", pstrdup("true"));
		reader->newline = range->crlf ? 2 : 1;
		if (lseek(reader->fd, static_cast<off_t>(range->from), SEEK_SET) < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not seek in file \"%s\": %m", reader->filename)));
	}
	reader->range = range;
	reader->at = range->from;
	begin_copy(reader, rel, options);
}

FileReader *
file_open_range(Relation rel, FileRanges *ranges, FileRange *range)
{
	MemoryContext old = MemoryContextSwitchTo(reader_context());
	FileOptions options = file_options(rel);
	FileReader *reader = new_reader(options);

	if (file_ranges_next(ranges, reader->fd, range))
		begin_range(reader, rel, range, options.copy);
	MemoryContextSwitchTo(old);
	if (reader->range != NULL)
		return reader;
	MemoryContextDelete(reader->context);
	return NULL;
}

/* -- rows ---------------------------------------------------------------------- */

bool
file_next(FileReader *reader, Datum *values, bool *nulls)
{
	ErrorContextCallback callback;
	FileReader *outer = reading;	/* a value's input function may read another */
	bool		found;

	if (reader->tablets != NULL)
		return tablets_next(reader->tablets, values, nulls);
	callback.callback = add_file_to_error;
	callback.arg = reader;
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	reading = reader;
	/* columns that are not in the file have no defaults here (file_fdw): so no expression context */
	found = NextCopyFrom(reader->copy, NULL, values, nulls);
	reading = outer;
	error_context_stack = callback.previous;
	/* an end marker: the parts behind it are none of the file's rows */
	if (!found && reader->range != NULL && !reader->range->last && !reader->ended)
		ereport(ERROR,
				(errcode(ERRCODE_BAD_COPY_FILE_FORMAT),
				 errmsg("file \"%s\" has an end marker before its end", reader->filename)));
	return found;
}

void
file_close(FileReader *reader)
{
	if (reader->copy != NULL)
		EndCopyFrom(reader->copy);
	MemoryContextDelete(reader->context);
}

}  // namespace gpuvm
