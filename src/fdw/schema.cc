/*
 * schema.cc: IMPORT FOREIGN SCHEMA "folder" FROM SERVER gpuvm INTO ...: a foreign table for each file of the folder.
 *
 * A table has its file's name without the ending, and a column of type text for each field of the first line: named after
 * it with the option header, else c1, c2, ... Types are for who knows the data to change.
 */
#include "fdw/wrapper.h"

#include <sys/stat.h>

extern "C" {
#include "catalog/heap.h"
#include "catalog/pg_authid.h"
#include "commands/copy.h"
#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "parser/scansup.h"
#include "storage/fd.h"
#include "utils/acl.h"
#include "utils/builtins.h"
}

namespace gpuvm {

struct FolderOptions
{
	const char *ending;			/* ".csv": of the files that are meant */
	bool		header;
	char		delimiter;
	char		quote;
	char		escape;			/* of a quote within quotes */
	int			encoding;
	List	   *copy;			/* as foreign tables get them */
};

static bool
is_option(const DefElem *def, const char *name)
{
	return strcmp(def->defname, name) == 0;
}

static bool
is_table_option(const DefElem *def)
{
	for (const char *const *name = FILE_COPY_OPTIONS; *name != NULL; name++)
		if (is_option(def, *name))
			return true;
	return false;
}

static FolderOptions
folder_options(List *options)
{
	FolderOptions result = {".csv", true, ',', '"', '\0', pg_get_client_encoding(), NIL};
	bool		format = false;
	bool		header = false;
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		if (is_option(def, "ending"))
		{
			result.ending = defGetString(def);
			continue;
		}
		if (!is_table_option(def))
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
					 errmsg("invalid option \"%s\"", def->defname)));
		result.copy = lappend(result.copy, def);
		format = format || is_option(def, "format");
		header = header || is_option(def, "header");
		if (is_option(def, "format") && strcmp(defGetString(def), "csv") != 0)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("IMPORT FOREIGN SCHEMA reads the columns of files of format \"csv\" only")));
		if (is_option(def, "header"))
			result.header = pg_strcasecmp(defGetString(def), "match") == 0 || defGetBoolean(def);
		else if (is_option(def, "delimiter"))
			result.delimiter = defGetString(def)[0];
		else if (is_option(def, "quote"))
			result.quote = defGetString(def)[0];
		else if (is_option(def, "escape"))
			result.escape = defGetString(def)[0];
		else if (is_option(def, "encoding"))
			result.encoding = pg_char_to_encoding(defGetString(def));
	}
	if (!format)
		result.copy = lappend(result.copy, makeDefElem(pstrdup("format"), reinterpret_cast<Node *>(makeString(pstrdup("csv"))), -1));
	if (!header)
		result.copy = lappend(result.copy, makeDefElem(pstrdup("header"), reinterpret_cast<Node *>(makeString(pstrdup("true"))), -1));
	ProcessCopyOptions(NULL, NULL, true, result.copy);
	if (result.escape == '\0')
		result.escape = result.quote;
	return result;
}

/* The fields of the first line, which may be quoted; NIL: there is none. */
static List *
first_fields(const char *path, const FolderOptions &options)
{
	FILE	   *file = AllocateFile(path, PG_BINARY_R);
	List	   *fields = NIL;
	StringInfoData field;
	bool		quoted = false;
	bool		any = false;
	int			c;

	if (file == NULL)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\" for reading: %m", path)));
	initStringInfo(&field);
	while ((c = getc(file)) != EOF && (quoted || (c != '\n' && c != '\r')))
	{
		any = true;
		if (quoted && c == options.escape)
		{
			int			next = getc(file);

			if (next == options.quote || next == options.escape)
			{
				appendStringInfoChar(&field, static_cast<char>(next));
				continue;
			}
			(void) ungetc(next, file);
		}
		if (c == options.quote)
			quoted = !quoted;
		else if (c == options.delimiter && !quoted)
		{
			fields = lappend(fields, pstrdup(field.data));
			resetStringInfo(&field);
		}
		else
			appendStringInfoChar(&field, static_cast<char>(c));
	}
	(void) FreeFile(file);
	return any ? lappend(fields, pstrdup(field.data)) : NIL;
}

static bool
is_taken(List *names, const char *name)
{
	ListCell   *lc;

	foreach(lc, names)
	{
		if (strcmp(static_cast<const char *>(lfirst(lc)), name) == 0)
			return true;
	}
	return false;
}

/* Names that can be columns': not empty, not too long, no system column's, each once. */
static List *
column_names(List *fields, const FolderOptions &options)
{
	List	   *names = NIL;
	ListCell   *lc;

	foreach(lc, fields)
	{
		int			number = foreach_current_index(lc) + 1;
		char	   *name = psprintf("c%d", number);

		if (options.header)
			name = pstrdup(pg_any_to_server(static_cast<char *>(lfirst(lc)), strlen(static_cast<char *>(lfirst(lc))), options.encoding));
		truncate_identifier(name, strlen(name), false);
		for (; name[0] == '\0' || SystemAttributeByName(name) != NULL || is_taken(names, name); number += list_length(fields))
			name = psprintf("c%d", number);
		names = lappend(names, name);
	}
	return names;
}

static char *
create_statement(const ImportForeignSchemaStmt *stmt, const char *table, const char *path, const FolderOptions &options)
{
	List	   *names = column_names(first_fields(path, options), options);
	StringInfoData sql;
	ListCell   *lc;

	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE FOREIGN TABLE %s (", quote_identifier(table));
	foreach(lc, names)
		appendStringInfo(&sql, "%s%s text", foreach_current_index(lc) > 0 ? ", " : "", quote_identifier(static_cast<char *>(lfirst(lc))));
	appendStringInfo(&sql, ") SERVER %s OPTIONS (filename %s", quote_identifier(stmt->server_name), quote_literal_cstr(path));
	foreach(lc, options.copy)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		appendStringInfo(&sql, ", %s %s", quote_identifier(def->defname), quote_literal_cstr(defGetString(def)));
	}
	appendStringInfoChar(&sql, ')');
	return sql.data;
}

/* The table of a file of the folder; NULL: none. */
static char *
table_of(const char *name, const FolderOptions &options)
{
	int			len = static_cast<int>(strlen(name)) - static_cast<int>(strlen(options.ending));
	char	   *table;

	if (len <= 0 || strcmp(name + len, options.ending) != 0 || name[0] == '.')
		return NULL;
	if (!pg_verifymbstr(name, static_cast<int>(strlen(name)), true))
	{
		ereport(WARNING,
				(errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE),
				 errmsg("a file is left out because its name is not valid in encoding \"%s\"", GetDatabaseEncodingName())));
		return NULL;
	}
	table = pnstrdup(name, len);
	truncate_identifier(table, len, false);
	return table;
}

static int
compare_names(const ListCell *a, const ListCell *b)
{
	return strcmp(static_cast<const char *>(lfirst(a)), static_cast<const char *>(lfirst(b)));
}

List *
fdw_import_schema(ImportForeignSchemaStmt *stmt, Oid)
{
	FolderOptions options = folder_options(stmt->options);
	List	   *files = NIL;
	List	   *statements = NIL;
	DIR		   *dir;
	struct dirent *entry;
	ListCell   *lc;

	/* what the files say of themselves, and which there are, is only for who may read them */
	check_may_name_files();
	dir = AllocateDir(stmt->remote_schema);
	while ((entry = ReadDir(dir, stmt->remote_schema)) != NULL)
	{
		if (table_of(entry->d_name, options) != NULL)
			files = lappend(files, pstrdup(entry->d_name));
	}
	FreeDir(dir);
	list_sort(files, compare_names);
	foreach(lc, files)
	{
		const char *file = static_cast<const char *>(lfirst(lc));
		char	   *table = table_of(file, options);
		char	   *path = psprintf("%s/%s", stmt->remote_schema, file);
		struct stat st;

		if (IsImportableForeignTable(table, stmt) && stat(path, &st) == 0 && S_ISREG(st.st_mode))
			statements = lappend(statements, create_statement(stmt, table, path, options));
	}
	return statements;
}

}  // namespace gpuvm
