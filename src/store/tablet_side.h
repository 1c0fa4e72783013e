/* tablet_side.h: the side tables of tablet tables, one by one (tablets.h). Read and written below SQL. */
#ifndef GPUVM_STORE_TABLET_SIDE_H
#define GPUVM_STORE_TABLET_SIDE_H

#include "pg/pg.h"

extern "C" {
#include "access/genam.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
}

namespace gpuvm {

/* Columns of both kinds of side tables, and of their indexes the first two. */
enum SideColumn
{
	SIDE_RELATION = 1,
	SIDE_TABLET,
	SIDE_NROWS,
	SIDE_BYTES,					/* image, or which rows are dead */
	DEAD_ID,
};

/* The kinds of a pair of side tables: logged, unlogged. */
constexpr bool BOTH[] = {true, false};

const char *side_name(bool dead, bool logged);
Oid			side_oid(const char *name);	/* InvalidOid: DROP EXTENSION has taken it, say */
Relation	open_side(bool dead, bool logged, LOCKMODE lockmode);

struct SideScan
{
	Relation	side;
	Relation	index;
	SysScanDesc scan;
};

/* Rows of the relation, or of one tablet of it, in the order of tablets. */
SideScan	begin_side(bool dead, bool logged, Oid relid, const int64 *tablet, Snapshot snapshot);
HeapTuple	next_of_side(SideScan *s);
Datum		side_value(SideScan *s, HeapTuple tuple, int column);

/* The lock is kept: the table must not go while the transaction knows where its rows are. */
void		end_side(SideScan *s);

/* The first relation with a number above this one that has rows, InvalidOid: none. */
Oid			next_relation_of_side(bool logged, Oid relid, Snapshot snapshot);

void		insert_into_side(bool dead, bool logged, Datum *values, CommandId cid);

/* A tablet's, or dead set's, that nobody has had. */
int64		next_id(void);

/* Bytes of the row at a tid, palloc'd. */
bytea	   *side_bytes(bool dead, bool logged, const ItemPointerData *tid, Snapshot snapshot);

}  // namespace gpuvm

#endif
