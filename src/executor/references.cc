/*
 * references.cc: values of variable length, by the references that come back for them.
 *
 * A reference may be garbage. Nothing is read by it where gpuvmd can write: a delta's values are in this process,
 * too. In the rest of the arena a text's reference may lead anywhere, for any bytes are a text, at worst a wrong one.
 * A value of a type whose functions trust its bytes has to be one of a column's: of any of this type, for equal
 * values of all columns that a job reads have one reference, whichever of them was met first (TextKey).
 */
#include "pg/pg.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
}

#include <algorithm>

#include "executor/scan_state.h"
#include "pg/shmem.h"
#include "tablet/decode.h"

namespace gpuvm {

[[noreturn]] static void
bad_reference(int64 reference)
{
	elog(ERROR, "gpuvm: gpuvmd returned reference " INT64_FORMAT ", where no value is", reference);
}

static bool
trusts_its_bytes(Oid type, int16 attlen)
{
	switch (getBaseType(type))
	{
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case BYTEAOID:
		case JSONOID:
		case NUMERICOID:
			return false;
		default:
			return attlen == -1;
	}
}

void
references_begin(GpuvmScanState *state, const OutputForm *form, ScanPart *part, int column)
{
	Oid			type;

	part->lens[column] = source_attlen(state->sources[form->cursor], form->attnum, &type);
	list_free_deep(part->checked[column]);
	part->checked[column] = NIL;
	if (!trusts_its_bytes(type, part->lens[column]))
		return;
	for (int i = 0; i < state->plan->ncursors; i++)
	{
		/* where the tables are that a set's references lead to, the reader does not know */
		if (state->sources[i]->set != 0)
			return;
	}

	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);

	/* its own relation's first: mostly it is there */
	type = getBaseType(type);
	part->checked[column] = source_values_of(state->sources[form->cursor], type, NIL);
	for (int i = 0; i < state->plan->ncursors; i++)
	{
		if (i != form->cursor)
			part->checked[column] = source_values_of(state->sources[i], type, part->checked[column]);
	}
	MemoryContextSwitchTo(old);
}

/* -- where a reference leads ------------------------------------------------------------- */

/* The row, or the first behind it that is not null; `end` if there is none before. */
static uint32
not_null_from(const uint64 *nulls, uint32 row, uint32 end)
{
	while (nulls != nullptr && row < end && (nulls[row / 64] >> row % 64 & 1) != 0)
		row += nulls[row / 64] == ~uint64{0} ? 64 - row % 64 : 1;
	return Min(row, end);
}

/* Is one of the column's values at the place, from the tablet's first byte on? They are in the order of the rows. */
static bool
is_value(const TabletHeader *tablet, int column, uint64 at)
{
	const ColumnChunk *chunk = column < tablet->ncols ? &tablet_chunks(tablet)[column] : nullptr;
	const uint64 *nulls;
	uint32		first = 0;
	uint32		end = tablet->nrows;

	if (chunk == nullptr || chunk->encoding != Encoding::Variable ||
		at - variable_at(tablet, *chunk) >= variable_bytes(*chunk))
		return false;
	nulls = chunk->nulls == 0 ? nullptr : tablet_at<uint64>(tablet, chunk->nulls);
	while (first < end)
	{
		const uint32 middle = first + (end - first) / 2;
		const uint32 row = not_null_from(nulls, middle, end);
		int64		value;

		if (row < end)
			decode_values(tablet, *chunk, row, 1, &value, 0);
		if (row == end || static_cast<uint64>(value) > at + tablet->place)
			end = middle;
		else if (static_cast<uint64>(value) < at + tablet->place)
			first = row + 1;
		else
			return true;
	}
	return false;
}

static void
list_offsets(ScanSource *source)
{
	uint64	   *to;

	for (int i = 0; i < source->nleaves; i++)
		source->noffsets += source->leaves[i].version->ntablets;
	to = source->offsets = static_cast<uint64 *>(
		MemoryContextAllocHuge(source->context, sizeof(uint64) * Max(source->noffsets, 1)));
	for (int i = 0; i < source->nleaves; i++)
	{
		const TableVersion *version = source->leaves[i].version;

		to = std::copy_n(version_at<uint64>(version, version->tablets), version->ntablets, to);
	}
	std::sort(source->offsets, to);
}

static bool
is_imported_value(ScanSource *source, int column, uint64 reference)
{
	const uint64 *behind;

	if (source->offsets == nullptr)
		list_offsets(source);
	behind = std::upper_bound(source->offsets, source->offsets + source->noffsets, reference);
	return behind != source->offsets && is_value(arena_at<TabletHeader>(behind[-1]), column, reference - behind[-1]);
}

/* The delta's tablet that it leads into, or NULL. */
static const ScanTablet *
delta_tablet(const ScanSource *source, uint64 reference)
{
	const ScanTablet *first = source->tablets + source->nimported;
	const ScanTablet *end = source->tablets + source->ntablets;
	const ScanTablet *tablet;

	if (source->plain || source->set != 0 || first == end)
		return nullptr;
	/* they lie one behind the other */
	tablet = std::partition_point<const ScanTablet *>(first, end,
													  [=](const ScanTablet &t) { return t.place <= reference; });
	return tablet == first || reference - tablet[-1].place >= tablet[-1].header->size ? nullptr : tablet - 1;
}

/* The value's image in this process, where it is of a delta, and how much lies there; or NULL. */
static const char *
delta_value(const GpuvmScanState *state, const List *columns, uint64 reference, uint64 *left)
{
	const ScanSource *source = nullptr;
	const ScanTablet *tablet = nullptr;
	bool		is_there = columns == NIL;
	uint64		at;
	ListCell   *lc;

	for (int i = 0; i < state->plan->ncursors && tablet == nullptr; i++)
	{
		source = state->sources[i];
		tablet = delta_tablet(source, reference);
	}
	if (tablet == nullptr)
		return nullptr;
	at = reference - tablet->place;
	foreach(lc, columns)
	{
		const ValueColumn *of = static_cast<ValueColumn *>(lfirst(lc));

		is_there = is_there || (of->source == source && is_value(tablet->header, of->column, at));
	}
	*left = tablet->header->size - at;
	return is_there ? reinterpret_cast<const char *>(tablet->header) + at : nullptr;
}

/* What lies there, and how much of it may be looked at; NULL: nothing that a reference leads to. */
static const char *
referenced(const GpuvmScanState *state, const ScanPart *part, int column, uint64 reference, uint64 *left)
{
	const List *columns = part->checked[column];
	const uint64 limit = arena_jobs_begin();
	bool		is_there = columns == NIL;
	ListCell   *lc;

	if (reference >= state->memory.begin && reference < state->memory.end)
		return delta_value(state, columns, reference, left);
	if (reference < ARENA_HEADER_BYTES || reference >= limit)
		return nullptr;
	foreach(lc, columns)
	{
		const ValueColumn *of = static_cast<ValueColumn *>(lfirst(lc));

		is_there = is_there || is_imported_value(of->source, of->column, reference);
	}
	*left = limit - reference;
	return is_there ? arena_at<char>(reference) : nullptr;
}

Datum
variable_datum(const GpuvmScanState *state, const ScanPart *part, int column, int64 reference, uint32 *bytes)
{
	int			attlen = part->lens[column];
	uint64		left = 0;
	const char *image = referenced(state, part, column, static_cast<uint64>(reference), &left);
	uint32		length;

	/* the longest header, and more, lies behind every value (tablet/format.h) */
	if (image == nullptr || left < VARIABLE_SLACK)
		bad_reference(reference);
	if (attlen == -1 && !VARATT_IS_SHORT(image) && !VARATT_IS_4B_U(image))
		bad_reference(reference);
	length = image_length(image, attlen);
	if (length > Min(left, uint64{VARIABLE_MAX_IMAGE}) || (attlen == -1 && length < image_header(image)))
		bad_reference(reference);
	if (bytes != nullptr)
		*bytes = length;
	return PointerGetDatum(image);
}

}  // namespace gpuvm
