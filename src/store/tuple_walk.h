/* tuple_walk.h: attributes of heap tuples into staged columns. */
#ifndef GPUVM_STORE_TUPLE_WALK_H
#define GPUVM_STORE_TUPLE_WALK_H

#include "pg/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "access/tupmacs.h"
}

namespace gpuvm {

/* What walking a tuple needs to know of one attribute. */
struct WalkAttribute
{
	int16		len;
	int16		column;			/* staged column, -1 when not wanted */
	char		align;
};

struct WalkColumn
{
	uint8		width;
	int32		offset;			/* in a tuple without nulls; -1: must be walked to */
	bool		has_nulls;		/* among the staged rows */
	bool		missing;		/* older tuples lack it: they have missing_value, or null */
	Datum		missing_value;
	char	   *values;
	uint64	   *nulls;
};

static inline void
set_null(WalkColumn *column, uint32 row)
{
	column->nulls[row / 64] |= uint64{1} << (row % 64);
	column->has_nulls = true;
}

static inline void
store_value(WalkColumn *column, uint32 row, const char *from)
{
	switch (column->width)
	{
		case 1:
			column->values[row] = *from;
			break;
		case 2:
			memcpy(column->values + Size{row} * 2, from, 2);
			break;
		case 4:
			memcpy(column->values + Size{row} * 4, from, 4);
			break;
		default:
			memcpy(column->values + Size{row} * 8, from, 8);
			break;
	}
}

static inline void
store_datum(WalkColumn *column, uint32 row, Datum value)
{
	char		bytes[sizeof(Datum)];

	store_att_byval(bytes, value, column->width);
	store_value(column, row, bytes);
}

/* Attributes from `first` (at `offset`) of one tuple into row `row` of the staged columns. */
static inline void
walk_tuple(WalkColumn *columns, const WalkAttribute *attributes, int nattributes, HeapTupleHeader tuple, int first, uint32 offset,
		   uint32 row)
{
	const char *data = reinterpret_cast<const char *>(tuple) + tuple->t_hoff;
	bool		has_nulls = (tuple->t_infomask & HEAP_HASNULL) != 0;
	int			natts = Min(static_cast<int>(HeapTupleHeaderGetNatts(tuple)), nattributes);
	int			a;

	for (a = first; a < natts; a++)
	{
		const WalkAttribute *att = &attributes[a];

		if (has_nulls && att_isnull(a, tuple->t_bits))
		{
			if (att->column >= 0)
				set_null(&columns[att->column], row);
			continue;
		}
		offset = att_align_pointer(offset, att->align, att->len, data + offset);
		if (att->column >= 0)
			store_value(&columns[att->column], row, data + offset);
		offset = att_addlength_pointer(offset, att->len, data + offset);
	}
	for (; a < nattributes; a++)
	{
		WalkColumn *column;

		if (attributes[a].column < 0)
			continue;
		column = &columns[attributes[a].column];
		if (column->missing)
			store_datum(column, row, column->missing_value);
		else
			set_null(column, row);
	}
}

}  // namespace gpuvm

#endif
