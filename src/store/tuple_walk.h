/*
 * tuple_walk.h: attributes of heap tuples into staged columns.
 *
 * A value that the column's form cannot hold becomes a null, and `unfit` says why:
 * what that means is for who walks to decide. No buffer may be locked, as a
 * value may have to be fetched from a TOAST table.
 */
#ifndef GPUVM_STORE_TUPLE_WALK_H
#define GPUVM_STORE_TUPLE_WALK_H

#include "pg/numeric_scaled.h"
#include "store/dictionary.h"
#include "store/internal.h"

extern "C" {
#include "access/htup_details.h"
#include "access/tupdesc_details.h"
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

/* How a value is staged. */
enum class Staging : uint8
{
	Copy1, Copy2, Copy4, Copy8,	/* as it is, so many bytes */
	Oid,						/* widened */
	Numeric,
	Dictionary,
	Variable,					/* its image, and where that is */
	High,						/* with the low halves' column */
	Lost,						/* not at all: the column was given up */
};

/*
 * A short value's code, found before: most columns with a dictionary have few, short
 * values. Three words, which may overlap, and the length are all of its bytes.
 */
struct ShortCode
{
	uint64		first;
	uint64		second;
	uint64		last;
	uint32		tag;			/* length + 1; 0: none */
	int32		code;
};

constexpr uint32 SHORT_CODES = 256;
constexpr uint32 SHORT_LENGTH = 24;

struct WalkColumn
{
	Staging		staging;
	uint8		width;			/* of a staged value */
	bool		byval;
	int16		len;			/* of the attribute */
	int16		scale;			/* numerics; -1: that of the first value */
	char	   *high;			/* wide numerics: the values of the column that has the high halves */
	ColumnFailure unfit;		/* the last value that did not fit, and why */
	int32		offset;			/* in a tuple without nulls; -1: must be walked to */
	bool		has_nulls;		/* among the staged rows */
	bool		missing;		/* older tuples lack it: they have missing_value, or null */
	Datum		missing_value;
	char	   *values;
	uint64	   *nulls;
	/* dictionaries: where codes come from, `local` for a query's own rows */
	ImageBuffer *image;
	DictionaryWriter writer;
	LocalDictionary *local;
	ShortCode  *codes;			/* SHORT_CODES of them, or NULL */
	/* variable ones: StagedColumn.images; align: 1 to 8 bytes */
	char	   *images;
	Size		nimages;
	Size		images_capacity;
	uint8		align;
	bool		packable;		/* short values get short headers */
};

/*
 * Everything but the memory, and what a dictionary's codes come from. `scale`: of a
 * numeric column, -1 if it is not known yet. Of high halves: join_halves.
 */
void		init_walk_column(WalkColumn *column, TupleDesc desc, AttrNumber attnum, const ValueType &type, int scale);

/* Both columns of a wide numeric, whose memory is there: from here on they have the nulls of the low halves. */
void		join_halves(WalkColumn *low, WalkColumn *high);

/* A value of a dictionary becomes its code. */
void		store_code(WalkColumn *column, uint32 row, Datum value);

/* An image as a heap tuple has it becomes the value of a row; the second for all that is not a varlena with a short header. */
void		grow_images(WalkColumn *column, Size more);
void		store_long_image(WalkColumn *column, uint32 row, const char *from);

/* The same for an image out of a tablet. */
void		store_stored_image(WalkColumn *column, uint32 row, const char *image);

static inline void
store_image(WalkColumn *column, uint32 row, const char *from)
{
	int64		place = static_cast<int64>(column->nimages);
	Size		len;

	if (column->len != -1 || !VARATT_IS_1B(from) || VARATT_IS_1B_E(from))
	{
		store_long_image(column, row, from);
		return;
	}
	len = VARSIZE_1B(from);
	if (column->images_capacity - column->nimages < len)
		grow_images(column, len);
	memcpy(column->images + place, from, len);
	column->nimages += len;
	memcpy(column->values + Size{row} * sizeof(place), &place, sizeof(place));
}

static inline void
set_null(WalkColumn *column, uint32 row)
{
	column->nulls[row / 64] |= uint64{1} << (row % 64);
	column->has_nulls = true;
}

/* A numeric of more than 64 bits, into both of its columns. */
void		store_wide(WalkColumn *column, uint32 row, const char *packed);

static inline void
store_numeric(WalkColumn *column, uint32 row, const char *packed)
{
	int64		value = 0;

	if (column->high != NULL)
	{
		store_wide(column, row, packed);
		return;
	}
	if (column->scale < 0)
	{
		int			scale = numeric_display_scale(packed);

		if (scale <= SCALED_MAX_SCALE)
			column->scale = static_cast<int16>(scale);
	}
	if (column->scale < 0 || !numeric_to_scaled(packed, column->scale, &value))
	{
		column->unfit = numeric_misfit(packed, column->scale, SCALED_MAX_SCALE);
		set_null(column, row);
	}
	memcpy(column->values + Size{row} * sizeof(int64), &value, sizeof(int64));
}

static inline void
store_value(WalkColumn *column, uint32 row, const char *from)
{
	switch (column->staging)
	{
		case Staging::Copy1:
			column->values[row] = *from;
			break;
		case Staging::Copy2:
			memcpy(column->values + Size{row} * 2, from, 2);
			break;
		case Staging::Copy4:
			memcpy(column->values + Size{row} * 4, from, 4);
			break;
		case Staging::Copy8:
			memcpy(column->values + Size{row} * 8, from, 8);
			break;
		case Staging::Oid:
		{
			Oid			oid;
			int64		value;

			memcpy(&oid, from, sizeof(oid));
			value = oid;
			memcpy(column->values + Size{row} * sizeof(int64), &value, sizeof(int64));
			break;
		}
		case Staging::Numeric:
			store_numeric(column, row, from);
			break;
		case Staging::Dictionary:
			store_code(column, row, fetch_att(from, column->byval, column->len));
			break;
		case Staging::Variable:
			store_image(column, row, from);
			break;
		case Staging::High:
		case Staging::Lost:
			break;
	}
}

static inline void
store_datum(WalkColumn *column, uint32 row, Datum value)
{
	char		bytes[sizeof(Datum)];

	if (!column->byval)
	{
		store_value(column, row, DatumGetPointer(value));
		return;
	}
	store_att_byval(bytes, value, column->len);
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
