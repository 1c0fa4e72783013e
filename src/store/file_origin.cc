/*
 * file_origin.cc: when do tablets of a file say what the COPY parser would say now, and those of a table without a file what
 * the snapshot sees?
 *
 * When the file has not changed, and no more than the file decides on a value. Input functions that are immutable are
 * fine; built-in ones that are not, and the encoding, depend on settings, which are compared. What else may have a
 * say (a domain's conditions, an input function that somebody wrote) keeps a table from being imported.
 */
#include "store/file.h"
#include "store/internal.h"
#include "store/tablets.h"

extern "C" {
#include "access/transam.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"
}

namespace gpuvm {

/* Of all that built-in input functions look at. */
static const char *const value_settings[] = {
	"DateStyle", "IntervalStyle", "TimeZone", "timezone_abbreviations", "lc_monetary", "xmloption", "array_nulls",
};

enum class Reads { FileAlone, Settings, More };

/* Names of what is in the catalogs, which may go or be another tomorrow. */
static bool
reads_catalogs(Oid type)
{
	switch (type)
	{
		case REGPROCOID:
		case REGPROCEDUREOID:
		case REGOPEROID:
		case REGOPERATOROID:
		case REGCLASSOID:
		case REGCOLLATIONOID:
		case REGTYPEOID:
		case REGROLEOID:
		case REGNAMESPACEOID:
		case REGCONFIGOID:
		case REGDICTIONARYOID:
		case ACLITEMOID:
			return true;
		default:
			return false;
	}
}

static Reads
what_input_reads(Oid type)
{
	Oid			input;
	Oid			param;
	Oid			element;

	if (get_typtype(type) == TYPTYPE_DOMAIN)
	{
		if (DomainHasConstraints(type))
			return Reads::More;
		return what_input_reads(getBaseType(type));
	}
	/* labels may get other names, but not other values */
	if (get_typtype(type) == TYPTYPE_ENUM)
		return Reads::FileAlone;
	element = get_element_type(type);
	if (OidIsValid(element))
		return what_input_reads(element) == Reads::More ? Reads::More : Reads::Settings;
	getTypeInputInfo(type, &input, &param);
	if (func_volatile(input) == PROVOLATILE_IMMUTABLE)
		return Reads::FileAlone;
	return type < FirstNormalObjectId && get_typtype(type) == TYPTYPE_BASE && !reads_catalogs(type) ? Reads::Settings : Reads::More;
}

bool
file_importable(Relation rel, const char **detail)
{
	TupleDesc	desc = RelationGetDescr(rel);

	if (is_tablet_table(rel))
		return true;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped || what_input_reads(att->atttypid) != Reads::More)
			continue;
		*detail = psprintf("values of column \"%s\" may depend on more than the file: %s", NameStr(att->attname),
						   get_typtype(att->atttypid) == TYPTYPE_DOMAIN ? "its domain has constraints"
						   : "its type's input function is not immutable");
		return false;
	}
	return true;
}

static bool
input_parallel_safe(Oid type)
{
	Oid			input;
	Oid			param;
	Oid			base = getBaseType(type);
	Oid			element = get_element_type(base);

	getTypeInputInfo(base, &input, &param);
	return func_parallel(input) == PROPARALLEL_SAFE && (!OidIsValid(element) || input_parallel_safe(element));
}

bool
file_parallel_safe(Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);

	for (int i = 0; i < desc->natts; i++)
		if (!TupleDescAttr(desc, i)->attisdropped && !input_parallel_safe(TupleDescAttr(desc, i)->atttypid))
			return false;
	return true;
}

void
check_file_importable(Relation rel)
{
	const char *detail;

	if (RelationInThisTransaction(rel))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot import table \"%s\" because it was created in this transaction", RelationGetRelationName(rel)),
				 errhint("Commit first.")));
	if (!file_importable(rel, &detail))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot import \"%s\"", RelationGetRelationName(rel)),
				 errdetail("The %s.", detail)));
}

static bool
has_encoding(const FileOptions &options)
{
	ListCell   *lc;

	foreach(lc, options.copy)
	{
		if (strcmp(lfirst_node(DefElem, lc)->defname, "encoding") == 0)
			return true;
	}
	return false;
}

static uint64
hash_of_settings(Relation rel, const FileOptions &options)
{
	TupleDesc	desc = RelationGetDescr(rel);
	StringInfoData text;
	bool		reads = false;
	uint64		hash;

	for (int i = 0; i < desc->natts && !reads; i++)
		reads = !TupleDescAttr(desc, i)->attisdropped && what_input_reads(TupleDescAttr(desc, i)->atttypid) != Reads::FileAlone;
	initStringInfo(&text);
	if (!has_encoding(options))
		appendStringInfo(&text, "%s\n", pg_encoding_to_char(pg_get_client_encoding()));
	if (reads)
	{
		for (const char *name : value_settings)
			appendStringInfo(&text, "%s\n", GetConfigOption(name, false, false));
	}
	hash = text.len == 0 ? 0 : hash_bytes_extended(reinterpret_cast<const unsigned char *>(text.data), text.len, 0);
	pfree(text.data);
	return hash;
}

/* Numbers are never used again, and stand for what does not change: these hashes are of all rows, for one life of the server. */
static void
stored_origin(Relation rel, FileOrigin *origin)
{
	TabletList	list = list_tablets(rel, GetActiveSnapshot());
	Size		count = list.ntablets + list.ndead;
	uint64	   *ids = static_cast<uint64 *>(palloc_extended(sizeof(uint64) * Max(count, 1), MCXT_ALLOC_HUGE));
	const unsigned char *bytes = reinterpret_cast<const unsigned char *>(ids);
	uint64		hashes[] = {0, ~uint64{0}};
	uint64		rows = 0;

	for (int i = 0; i < list.ntablets; i++)
	{
		ids[i] = list.tablets[i].id;
		rows += list.tablets[i].nrows;
	}
	for (int i = 0; i < list.ndead; i++)
		ids[list.ntablets + i] = list.dead[i].id;
	/* a hash takes an int's length at most */
	for (Size at = 0; at < count; at += PG_INT16_MAX)
	{
		int			n = static_cast<int>(Min(count - at, Size{PG_INT16_MAX}) * sizeof(uint64));

		for (uint64 &hash : hashes)
			hash = hash_bytes_extended(bytes + at * sizeof(uint64), n, hash);
	}
	origin->stored = true;
	origin->stamp.device = hashes[0];
	origin->stamp.inode = hashes[1];
	/*
	 * As of files, no less than a byte a row, though nulls take a bit. An import reckons with so many rows: with the deleted ones,
	 * among which those that are left may lie far apart, each in a block of its own.
	 */
	origin->stamp.size = Max(list.size, rows);
	origin->stamp.modified = list.ntablets;
	origin->stamp.changed = list.ndead;
	pfree(ids);
	if (list.tablets != NULL)
		pfree(list.tablets);
	if (list.dead != NULL)
		pfree(list.dead);
}

bool
file_origin(Relation rel, FileOrigin *origin)
{
	FileOptions options;
	const char *detail;
	char	   *text;

	memset(static_cast<void *>(origin), 0, sizeof(*origin));
	if (is_tablet_table(rel))
	{
		stored_origin(rel, origin);
		return true;
	}
	options = file_options(rel);
	text = file_options_text(rel);
	/* a domain may have got a constraint since: what was loaded before has other options then */
	origin->options = hash_bytes_extended(reinterpret_cast<const unsigned char *>(text), strlen(text), file_importable(rel, &detail) ? 0 : 1);
	pfree(text);
	origin->settings = hash_of_settings(rel, options);
	return file_stamp(options.filename, &origin->stamp);
}

bool
file_is_current(Relation rel, const TableVersion *version, const char **detail)
{
	const FileOrigin *then = version_at<FileOrigin>(version, version->origin);
	const char *why = NULL;
	FileOrigin	now;

	if (!file_origin(rel, &now))
		why = "the file cannot be found";
	else if (now.stored || then->stored)
		why = origins_equal(now, *then) ? NULL : "the snapshot sees other rows than were loaded";
	else if (now.options != then->options)
		why = "the table's options have changed";
	else if (!stamps_equal(now.stamp, then->stamp))
		why = "the file has changed";
	else if (now.settings != then->settings)
		why = "the file was read under other settings (DateStyle, TimeZone, client_encoding and the like)";
	if (detail != NULL)
		*detail = why;
	return why == NULL;
}

bool
file_in_memory(Relation rel)
{
	VersionPin *pin = registry_pin_any(RelationGetRelid(rel));
	bool		current = pin != NULL && pin_matches(pin, rel) && file_is_current(rel, pin_version(pin), NULL);

	if (pin != NULL)
		registry_unpin(pin);
	return current;
}

}  // namespace gpuvm
