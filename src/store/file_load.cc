/*
 * file_load.cc: tablets of a file are made when a query wants them, and anew when the file has changed; those of a table without
 * a file when a query's snapshot sees other rows than they were made of.
 *
 * Whatever goes wrong then is not the query's: it reads row by row, and meets the error that COPY has for it,
 * if it comes to that line. What went wrong is remembered for a while, so that not every query tries again.
 */
#include "store/file.h"
#include "store/internal.h"

#include "pg/settings.h"
#include "pg/shmem.h"
#include "pg/subtransaction.h"
#include "store/catalog.h"

extern "C" {
#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "storage/lock.h"
#include "utils/memutils.h"
}

namespace gpuvm {

/* -- what went wrong --------------------------------------------------------------- */

constexpr int TROUBLES = 16;
constexpr long RETRY_MS = 60 * 1000;
/* Text takes a few times the memory of tablets at most. */
constexpr uint64 FILE_PER_MEMORY = 8;

struct Trouble
{
	Oid			relid;
	FileOrigin	origin;
	TimestampTz at;
	char		text[256];
};

static Trouble troubles[TROUBLES];
static int	next_trouble = 0;

static const char *
recent_trouble(Relation rel, const FileOrigin &origin)
{
	for (const Trouble &t : troubles)
	{
		if (t.relid == RelationGetRelid(rel) && origins_equal(t.origin, origin) &&
			!TimestampDifferenceExceeds(t.at, GetCurrentTimestamp(), RETRY_MS))
			return pstrdup(t.text);
	}
	return NULL;
}

static void
note_trouble(Relation rel, const FileOrigin &origin, const char *text)
{
	Trouble    *t = &troubles[next_trouble];

	for (Trouble &other : troubles)
	{
		if (other.relid == RelationGetRelid(rel))
			t = &other;
	}
	if (t == &troubles[next_trouble])
		next_trouble = (next_trouble + 1) % TROUBLES;
	t->relid = RelationGetRelid(rel);
	t->origin = origin;
	t->at = GetCurrentTimestamp();
	strlcpy(t->text, text, sizeof(t->text));
}

/* -- loading ----------------------------------------------------------------------- */

/* Others may be at it: then what they made is as good. */
static void
load_alone(void *relation)
{
	Relation	rel = static_cast<Relation>(relation);
	LOCKTAG		tag;
	ArrayType  *names = NULL;
	int			ncols;
	int16	   *attnums;
	uint64		nrows;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, RelationGetRelid(rel), 1, STORE_LOCK);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	registry_check(rel);
	if (!file_in_memory(rel) && !load_changes(rel, &nrows))
	{
		(void) remembered_columns(RelationGetRelid(rel), &names);
		attnums = fitting_columns(rel, names, &ncols);
		(void) import_file(rel, attnums, ncols, names == NULL, true);
	}
	LockRelease(&tag, ExclusiveLock, false);
}

/* NULL, or why not. */
static const char *
load(Relation rel, const FileOrigin &origin)
{
	MemoryContext work = AllocSetContextCreate(CurrentMemoryContext, "gpuvm file load", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(work);
	ErrorData  *error = in_subtransaction(load_alone, rel);
	const char *trouble = NULL;

	MemoryContextSwitchTo(old);
	if (error != NULL)
	{
		trouble = psprintf("the table could not be loaded: %s", error->message);
		note_trouble(rel, origin, trouble);
	}
	MemoryContextDelete(work);
	return trouble;
}

/* -- what queries ask ---------------------------------------------------------------- */

bool
file_may_answer(Relation rel, const TableVersion *version, const char **detail)
{
	const FileOrigin *then = version_at<FileOrigin>(version, version->origin);
	FileOrigin	now;

	if (file_is_current(rel, version, detail))
		return true;
	if (setting_files != FILES_KEEP)
		return false;
	/* who wants what was loaded, wants it without the file, too */
	(void) file_origin(rel, &now);
	return !now.stored && !then->stored && now.options == then->options && now.settings == then->settings;
}

/* NULL: the tablets there are may answer. *loads: whether loading might help. */
static const char *
why_not(Relation rel, bool *loads)
{
	VersionPin *pin = registry_pin_any(RelationGetRelid(rel));
	const char *detail = "the table is not loaded";
	FileOrigin	now;

	*loads = true;
	if (pin == NULL)
		return detail;
	if (!pin_matches(pin, rel))
		detail = "the table's columns have changed since it was loaded";
	else if (file_may_answer(rel, pin_version(pin), &detail))
		detail = NULL;
	else
	{
		const FileOrigin *then = version_at<FileOrigin>(pin_version(pin), pin_version(pin)->origin);

		/* sessions of different settings would load it in turn: not too often */
		*loads = !file_origin(rel, &now) || !stamps_equal(now.stamp, then->stamp) || now.options != then->options ||
			TimestampDifferenceExceeds(pin_refreshed(pin), GetCurrentTimestamp(), RETRY_MS);
	}
	registry_unpin(pin);
	return detail;
}

/* Why loading the file is not even tried; NULL: it may be. */
static const char *
why_not_load(Relation rel, FileOrigin *origin)
{
	const char *detail;

	if (setting_files == FILES_READ)
		return "the table is not loaded, or has changed since, and gpuvm.files is \"read\"";
	if (RelationInThisTransaction(rel))
		return "the table was created in this transaction";
	if (!file_importable(rel, &detail))
		return psprintf("the %s", detail);
	if (!file_origin(rel, origin))
		return "the file cannot be found";
	if (origin->stamp.size / FILE_PER_MEMORY > arena_size())
		return "the table is much larger than gpuvm.memory";
	return recent_trouble(rel, *origin);
}

const char *
file_ready(Relation rel)
{
	bool		loads;
	const char *detail;
	FileOrigin	origin;

	if (registry_shared() == NULL)
		return "gpuvm is not in shared_preload_libraries";
	detail = why_not(rel, &loads);
	/* a subtransaction is not allowed in parallel mode */
	if (detail == NULL || !loads || IsInParallelMode())
		return detail;
	detail = why_not_load(rel, &origin);
	return detail != NULL ? detail : load(rel, origin);
}

const char *
file_not_ready(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	const char *detail = NULL;
	const char *more = NULL;
	bool		loads;
	FileOrigin	origin;

	if (is_file_table(rel))
	{
		detail = registry_shared() == NULL ? "gpuvm is not in shared_preload_libraries" : why_not(rel, &loads);
		if (detail != NULL && registry_shared() != NULL && loads)
			more = why_not_load(rel, &origin);
	}
	table_close(rel, NoLock);
	return more != NULL ? more : detail;
}

bool
is_file_relation(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	bool		result = is_file_table(rel);

	table_close(rel, NoLock);
	return result;
}

}  // namespace gpuvm
