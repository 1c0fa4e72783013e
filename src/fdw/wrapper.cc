/* wrapper.cc: gpuvm_fdw's handler and validator; option names and privileges are file_fdw's. */
#include "fdw/wrapper.h"

#include "store/file.h"

extern "C" {
#include "access/reloptions.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_foreign_table.h"
#include "commands/copy.h"
#include "commands/defrem.h"
#include "lib/stringinfo.h"
#include "utils/acl.h"
}

namespace gpuvm {

const char *const FILE_COPY_OPTIONS[] = {"format", "header", "delimiter", "quote", "escape", "null", "encoding", NULL};
static const char *const column_options[] = {"force_not_null", "force_null", NULL};

static bool
is_listed(const char *name, const char *const *list)
{
	for (; *list != NULL; list++)
		if (strcmp(name, *list) == 0)
			return true;
	return false;
}

static void
append_names(StringInfo buf, const char *const *list)
{
	for (; *list != NULL; list++)
		appendStringInfo(buf, "%s%s", buf->len > 0 ? ", " : "", *list);
}

[[noreturn]] static void
refuse_option(const char *name, Oid catalog)
{
	StringInfoData valid;

	initStringInfo(&valid);
	if (catalog == ForeignTableRelationId)
	{
		appendStringInfoString(&valid, "filename, persist");
		append_names(&valid, FILE_COPY_OPTIONS);
	}
	else if (catalog == AttributeRelationId)
		append_names(&valid, column_options);
	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
			 errmsg("invalid option \"%s\"", name),
			 valid.len > 0 ? errhint("Valid options in this context are: %s", valid.data)
			 : errhint("There are no valid options in this context.")));
	pg_unreachable();
}

/* Who may say which file is read may read any that the server can. */
void
check_may_name_files(void)
{
#if PG_VERSION_NUM >= 160000
	bool		may = has_privs_of_role(GetUserId(), ROLE_PG_READ_SERVER_FILES);
#else
	bool		may = has_privs_of_role(GetUserId(), ROLE_PG_READ_SERVER_FILES) || superuser();
#endif

	if (!may)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to say which file a gpuvm_fdw foreign table reads"),
				 errdetail("Only superusers and roles with privileges of the \"%s\" role may do that.", "pg_read_server_files")));
}

static void
validate(List *options, Oid catalog)
{
	bool		filename = false;
	bool		persist = false;
	List	   *copy = NIL;
	List	   *seen = NIL;
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);
		ListCell   *other;

		foreach(other, seen)
		{
			if (strcmp(strVal(lfirst(other)), def->defname) == 0)
				ereport(ERROR,
						(errcode(ERRCODE_SYNTAX_ERROR),
						 errmsg("conflicting or redundant options")));
		}
		seen = lappend(seen, makeString(def->defname));
		if (catalog == ForeignTableRelationId && strcmp(def->defname, "filename") == 0)
		{
			check_may_name_files();
			filename = true;
		}
		else if (catalog == ForeignTableRelationId && strcmp(def->defname, "persist") == 0)
		{
			(void) defGetBoolean(def);
			persist = true;
		}
		else if (catalog == ForeignTableRelationId && is_listed(def->defname, FILE_COPY_OPTIONS))
			copy = lappend(copy, def);
		else if (catalog == AttributeRelationId && is_listed(def->defname, column_options))
			(void) defGetBoolean(def);
		else
			refuse_option(def->defname, catalog);
	}
	if (catalog != ForeignTableRelationId)
		return;
	ProcessCopyOptions(NULL, NULL, true, copy);
	if (filename && persist)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
				 errmsg("option \"persist\" is of tables without a file")));
	if (!filename && copy != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("option \"%s\" is of tables with a file", linitial_node(DefElem, copy)->defname),
				 errhint("Give the option \"filename\".")));
}

}  // namespace gpuvm

using namespace gpuvm;

extern "C" {
PG_FUNCTION_INFO_V1(gpuvm_fdw_handler);
PG_FUNCTION_INFO_V1(gpuvm_fdw_validator);

PGDLLEXPORT Datum
gpuvm_fdw_handler(PG_FUNCTION_ARGS)
{
	FdwRoutine *routine = makeNode(FdwRoutine);

	fdw_add_scan(routine);
	fdw_add_changes(routine);
	routine->AnalyzeForeignTable = fdw_analyze;
	routine->ImportForeignSchema = fdw_import_schema;
	file_tables_known_by(routine->BeginForeignScan);
	PG_RETURN_POINTER(routine);
}

PGDLLEXPORT Datum
gpuvm_fdw_validator(PG_FUNCTION_ARGS)
{
	validate(untransformRelOptions(PG_GETARG_DATUM(0)), PG_GETARG_OID(1));
	PG_RETURN_VOID();
}
}
