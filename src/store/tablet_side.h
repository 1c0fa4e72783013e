/* tablet_side.h: the side tables of tablet tables, one by one (tablets.h). Read and written below SQL. */
#ifndef GPUVM_STORE_TABLET_SIDE_H
#define GPUVM_STORE_TABLET_SIDE_H

#include "pg/pg.h"

extern "C" {
#include "access/genam.h"
#include "access/heapam.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
}

namespace gpuvm {

enum class Side
{
	Rows,						/* a row for each stored tablet */
	Dead,						/* one for each set of deleted rows */
	Chunks,						/* images of tablets, but for small ones, in parts */
};

constexpr Side SIDES[] = {Side::Rows, Side::Dead, Side::Chunks};

/* Of each there are two: logged, unlogged. */
constexpr bool BOTH[] = {true, false};

/* Columns. Indexes have the first two. */
enum SideColumn
{
	SIDE_RELATION = 1,
	SIDE_TABLET,
	SIDE_NROWS,
	SIDE_BYTES,					/* image, null where it is in chunks; or which rows are dead */
	ROWS_IMAGE_SIZE,
	ROWS_SIZE,					/* of the values in it */
	DEAD_ID = SIDE_BYTES + 1,
};

enum ChunkColumn
{
	CHUNK_TABLET = 1,
	CHUNK_NUMBER,
	CHUNK_BYTES,
};

const char *side_name(Side side, bool logged);
Oid			side_oid(const char *name);	/* InvalidOid: DROP EXTENSION has taken it, say */
Relation	open_side(Side side, bool logged, LOCKMODE lockmode);

struct SideScan
{
	Relation	side;
	Relation	index;
	SysScanDesc scan;
};

/* Rows of the relation, or of one tablet of it, in the order of tablets. */
SideScan	begin_side(Side side, bool logged, Oid relid, const int64 *tablet, Snapshot snapshot);

/* The tablet's chunks, by number. */
SideScan	begin_chunks(bool logged, int64 tablet, Snapshot snapshot);
HeapTuple	next_of_side(SideScan *s);
Datum		side_value(SideScan *s, HeapTuple tuple, int column);
bool		side_is_null(SideScan *s, HeapTuple tuple, int column);

/* The lock is kept: the table must not go while the transaction knows where its rows are. */
void		end_side(SideScan *s);

/* The first relation with a number above this one that has rows, InvalidOid: none. */
Oid			next_relation_of_side(bool logged, Oid relid, Snapshot snapshot);

/* A side table that gets rows, and its indexes. */
struct SideInsert
{
	Relation	side;
	List	   *indexes;
	List	   *infos;
};

SideInsert	begin_insert(Side side, bool logged);
void		insert_side_row(SideInsert *s, Datum *values, bool *nulls, CommandId cid, BulkInsertState bulk);
void		end_insert(SideInsert *s);

/* All of it, for one row. */
void		insert_into_side(Side side, bool logged, Datum *values, bool *nulls, CommandId cid);

/* A tablet's, or dead set's, that nobody has had. */
int64		next_id(void);

/* Bytes of the row at a tid, palloc'd. */
bytea	   *side_bytes(Side side, bool logged, const ItemPointerData *tid, Snapshot snapshot);

/* -- tablet_chunks.cc -------------------------------------------------------------------- */

/* Is this one so small that it lies in the row of its tablet? */
bool		image_is_inline(const bytea *image);

/* As for store_tablet(). */
void		store_chunks(int64 tablet, bool logged, const bytea *image, CommandId cid, BulkInsertState *bulk);

/* An image of this size, palloc'd. A snapshot that sees its tablet is registered, or active. */
bytea	   *read_chunks(int64 tablet, bool logged, Size size);
void		delete_chunks(int64 tablet, bool logged);

}  // namespace gpuvm

#endif
