/*
 * tablet_chunks.cc: images of stored tablets, a page for each part.
 *
 * A TOAST table would have four times as many rows, and be written by way of all of PostgreSQL's buffers. Who writes many
 * images goes through a small ring of them, as COPY does.
 */
#include "store/tablet_side.h"

#include "pg/compat.h"

extern "C" {
#include "access/htup_details.h"
#include "access/table.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/snapmgr.h"
}

namespace gpuvm {

/* With its row's other columns it fills a page, also one that keeps some line pointers of rows that have gone. */
constexpr Size CHUNK_SIZE = 8064;

/* Up to so many bytes an image lies in its tablet's row: lists of tablets read those. */
constexpr Size INLINE_SIZE = 2000;

static_assert(MAXALIGN(SizeofHeapTupleHeader) + sizeof(int64) + sizeof(int32) + VARHDRSZ + CHUNK_SIZE <= MaxHeapTupleSize);

bool
image_is_inline(const bytea *image)
{
	return VARSIZE(image) <= INLINE_SIZE;
}

void
store_chunks(int64 tablet, bool logged, const bytea *image, CommandId cid, BulkInsertState *bulk)
{
	const Size	size = VARSIZE(image) - VARHDRSZ;
	bytea	   *chunk = static_cast<bytea *>(palloc(VARHDRSZ + CHUNK_SIZE));
	SideInsert	s = begin_insert(Side::Chunks, logged);

	if (*bulk == NULL)
		*bulk = GetBulkInsertState();
	for (Size at = 0; at < size; at += CHUNK_SIZE)
	{
		const Size	n = Min(size - at, CHUNK_SIZE);
		Datum		values[] = {Int64GetDatum(tablet), Int32GetDatum(static_cast<int32>(at / CHUNK_SIZE)), PointerGetDatum(chunk)};
		bool		nulls[CHUNK_BYTES] = {};

		CHECK_FOR_INTERRUPTS();
		SET_VARSIZE(chunk, VARHDRSZ + n);
		memcpy(VARDATA(chunk), VARDATA(image) + at, n);
		insert_side_row(&s, values, nulls, cid, *bulk);
	}
	/* the pin is this ResourceOwner's, and the next image may come under another one */
	ReleaseBulkInsertStatePin(*bulk);
	end_insert(&s);
	pfree(chunk);
}

bytea *
read_chunks(int64 tablet, bool logged, Size size)
{
	bytea	   *image = static_cast<bytea *>(palloc(size));
	SnapshotData snapshot;
	SideScan	s;
	Size		at = VARHDRSZ;
	HeapTuple	tuple;

	SET_VARSIZE(image, size);
	compat_init_toast_snapshot(&snapshot);
	s = begin_chunks(logged, tablet, &snapshot);
	for (int32 number = 0; (tuple = next_of_side(&s)) != NULL; number++)
	{
		const bytea *chunk = DatumGetByteaPP(side_value(&s, tuple, CHUNK_BYTES));
		const Size	n = VARSIZE_ANY_EXHDR(chunk);

		if (DatumGetInt32(side_value(&s, tuple, CHUNK_NUMBER)) != number || n > size - at)
			break;
		memcpy(reinterpret_cast<char *>(image) + at, VARDATA_ANY(chunk), n);
		at += n;
	}
	if (tuple != NULL || at != size)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("the image of tablet %lld in table gpuvm.%s is not whole", static_cast<long long>(tablet),
						RelationGetRelationName(s.side))));
	end_side(&s);
	return image;
}

void
delete_chunks(int64 tablet, bool logged)
{
	SnapshotData snapshot;
	SideScan	s;
	HeapTuple	tuple;

	/* DROP EXTENSION may have taken them already */
	if (!OidIsValid(side_oid(side_name(Side::Chunks, logged))))
		return;
	compat_init_toast_snapshot(&snapshot);
	s = begin_chunks(logged, tablet, &snapshot);
	LockRelationOid(RelationGetRelid(s.side), RowExclusiveLock);
	while ((tuple = next_of_side(&s)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		simple_heap_delete(s.side, &tuple->t_self);
	}
	end_side(&s);
}

}  // namespace gpuvm
