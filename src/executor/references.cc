/*
 * references.cc: values of variable length, by the references that come back for them.
 *
 * A reference may be garbage. Nothing is read by it where gpuvmd can write: a delta's values are in this process,
 * too. In the rest of the arena a text's reference may lead anywhere, for any bytes are a text, at worst a wrong one.
 * A value of a type whose functions trust its bytes has to be one of the column's.
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
references_begin(const ScanSource *source, AttrNumber attnum, ScanPart *part, int column)
{
	Oid			type;

	part->lens[column] = source_attlen(source, attnum, &type);
	/* where the tables are that a set's references lead to, the reader does not know */
	part->checked[column] = source->set == 0 && trusts_its_bytes(type, part->lens[column])
		? source_column(source, attnum, Type::I64) : -1;
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

/* The value's image in this process, where it is of a delta's tablet, which has *left bytes from there on; or NULL. */
static const char *
delta_value(const ScanSource *source, int column, uint64 reference, uint64 *left)
{
	const ScanTablet *first = source->tablets + source->nimported;
	const ScanTablet *end = source->tablets + source->ntablets;
	const ScanTablet *tablet;
	uint64		at;

	if (source->plain || source->set != 0 || first == end)
		return nullptr;
	/* they lie one behind the other */
	tablet = std::partition_point<const ScanTablet *>(first, end,
													  [=](const ScanTablet &t) { return t.place <= reference; });
	if (tablet == first)
		return nullptr;
	tablet--;
	at = reference - tablet->place;
	if (at >= tablet->header->size || (column >= 0 && !is_value(tablet->header, column, at)))
		return nullptr;
	*left = tablet->header->size - at;
	return reinterpret_cast<const char *>(tablet->header) + at;
}

/* What lies there, and how much of it may be looked at; NULL: nothing that a reference leads to. */
static const char *
referenced(const GpuvmScanState *state, const ScanPart *part, int column, uint64 reference, uint64 *left)
{
	ScanSource *source = state->sources[part->plan->outputs[column].cursor];
	const int	checked = part->checked[column];
	const uint64 limit = arena_jobs_begin();

	if (reference >= state->memory.begin && reference < state->memory.end)
		return delta_value(source, checked, reference, left);
	if (reference < ARENA_HEADER_BYTES || reference >= limit ||
		(checked >= 0 && !is_imported_value(source, checked, reference)))
		return nullptr;
	*left = limit - reference;
	return arena_at<char>(reference);
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
