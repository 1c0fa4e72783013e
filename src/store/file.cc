/* file.cc: what a file table is defined with, and its rows by PostgreSQL's COPY parser. */
#include "store/file.h"

#include <sys/stat.h>

extern "C" {
#include "access/table.h"
#include "catalog/pg_class.h"
#include "commands/copy.h"
#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "nodes/value.h"
}

namespace gpuvm {

struct FileReader
{
	CopyFromState copy;
	char	   *filename;
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
		/* header 'match' compares them */
		appendStringInfo(&text, "%d %s\n", i + 1, NameStr(TupleDescAttr(desc, i)->attname));
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

	CopyFromErrorCallback(reader->copy);
	errcontext("file \"%s\"", reader->filename);
}

FileReader *
file_open(Relation rel)
{
	FileOptions options = file_options(rel);
	FileReader *reader = static_cast<FileReader *>(palloc0(sizeof(FileReader)));

	reader->filename = options.filename;
	reader->copy = BeginCopyFrom(NULL, rel, NULL, options.filename, false, NULL, NIL, options.copy);
	return reader;
}

bool
file_next(FileReader *reader, Datum *values, bool *nulls)
{
	ErrorContextCallback callback;
	bool		found;

	callback.callback = add_file_to_error;
	callback.arg = reader;
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	/* columns that are not in the file have no defaults here (file_fdw): so no expression context */
	found = NextCopyFrom(reader->copy, NULL, values, nulls);
	error_context_stack = callback.previous;
	return found;
}

void
file_close(FileReader *reader)
{
	EndCopyFrom(reader->copy);
	pfree(reader);
}

}  // namespace gpuvm
