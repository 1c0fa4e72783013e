/* tablet_image.cc: rows to a bytea and back. */
#include "store/tablet_image.h"

#include "store/tablet_narrow.h"

extern "C" {
#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "port/pg_bitutils.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
}

namespace gpuvm {

constexpr uint32 IMAGE_MAGIC = 0x33545647;	/* its last byte is the format's number */
constexpr Size IMAGE_KEPT = 16 * 1024 * 1024;	/* memory for larger images is given back */

struct ImageHead
{
	int32		vl_len_;
	uint32		magic;
	uint32		nrows;
	uint32		ncols;
};

/* Offsets count from the head. */
struct ImageColumn
{
	Oid			type;
	int32		typmod;
	int16		attnum;
	int16		len;
	uint32		nulls;			/* a bitmap, bits of nulls set; 0: there are none */
	uint32		data;			/* of the other rows */
	char		align;
	bool		byval;
	uint8		width;			/* of a value that is passed by value: less than len where they are narrow */
};

/* -- making ---------------------------------------------------------------------- */

struct BuilderColumn
{
	StringInfoData data;
	bits8	   *nulls;			/* NULL until there is one */
	int			byval;			/* bytes of a value that is passed by value; 0: by reference, or dropped */
	NarrowForm	form;			/* of those, when the image is made */
	bool		dropped;
};

struct ImageBuilder
{
	TupleDesc	desc;
	MemoryContext context;
	uint32		nrows;
	Size		size;
	char	   *image;			/* the last one taken */
	Size		image_room;
	BuilderColumn columns[FLEXIBLE_ARRAY_MEMBER];
};

ImageBuilder *
image_builder(TupleDesc desc)
{
	ImageBuilder *b = static_cast<ImageBuilder *>(palloc0(offsetof(ImageBuilder, columns) + sizeof(BuilderColumn) * desc->natts));

	b->desc = desc;
	b->context = CurrentMemoryContext;
	for (int i = 0; i < desc->natts; i++)
	{
		BuilderColumn *column = &b->columns[i];
		Form_pg_attribute att = TupleDescAttr(desc, i);

		column->dropped = att->attisdropped;
		if (!column->dropped)
		{
			initStringInfo(&column->data);
			column->byval = att->attbyval ? att->attlen : 0;
		}
	}
	return b;
}

static inline char *
room_for(StringInfo s, Size n)
{
	char	   *at;

	if (static_cast<Size>(s->len) + n >= static_cast<Size>(s->maxlen))
	{
		if (n >= MaxAllocSize)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("a value is too large for a tablet")));
		enlargeStringInfo(s, static_cast<int>(n));
	}
	at = s->data + s->len;
	s->len += static_cast<int>(n);
	return at;
}

static inline void
pad_to(StringInfo s, char align)
{
	int			at = static_cast<int>(att_align_nominal(s->len, align));

	if (at > s->len)
	{
		int			n = at - s->len;

		memset(room_for(s, n), 0, n);
	}
}

/* As heap_form_tuple() stores it, but that nothing is compressed or elsewhere. */
static void
add_varlena(StringInfo s, Form_pg_attribute att, Datum value)
{
	struct varlena *given = reinterpret_cast<struct varlena *>(DatumGetPointer(value));
	struct varlena *v = VARATT_IS_EXTERNAL(given) || VARATT_IS_COMPRESSED(given) ? detoast_attr(given) : given;
	Size		n;

	if (VARATT_IS_SHORT(v))
	{
		n = VARSIZE_SHORT(v);
		memcpy(room_for(s, n), v, n);
	}
	else if (att->attstorage != TYPSTORAGE_PLAIN && VARATT_CAN_MAKE_SHORT(v))
	{
		char	   *at;

		n = VARATT_CONVERTED_SHORT_SIZE(v);
		at = room_for(s, n);
		SET_VARSIZE_SHORT(at, n);
		memcpy(at + 1, VARDATA(v), n - 1);
	}
	else
	{
		pad_to(s, att->attalign);
		n = VARSIZE(v);
		memcpy(room_for(s, n), v, n);
	}
	if (v != given)
		pfree(v);
}

static void
add_reference(StringInfo s, Form_pg_attribute att, Datum value)
{
	if (att->attlen == -1)
		add_varlena(s, att, value);
	else
	{
		Size		n = att->attlen > 0 ? att->attlen : strlen(DatumGetCString(value)) + 1;

		pad_to(s, att->attalign);
		memcpy(room_for(s, n), DatumGetPointer(value), n);
	}
}

static void
add_null(ImageBuilder *b, BuilderColumn *column)
{
	if (column->nulls == NULL)
		column->nulls = static_cast<bits8 *>(MemoryContextAllocZero(b->context, IMAGE_MAX_ROWS / 8 + 1));
	column->nulls[b->nrows / 8] |= 1 << b->nrows % 8;
}

void
image_add(ImageBuilder *b, const Datum *values, const bool *nulls)
{
	Size		size = b->size;

	for (int i = 0; i < b->desc->natts; i++)
	{
		BuilderColumn *column = &b->columns[i];

		if (nulls[i])
		{
			if (!column->dropped)
				add_null(b, column);
		}
		else if (column->byval > 0)
		{
			/* these lie one behind the other, aligned by their own lengths */
			store_att_byval(room_for(&column->data, column->byval), values[i], column->byval);
			size += column->byval;
		}
		else if (!column->dropped)
		{
			int			before = column->data.len;

			add_reference(&column->data, TupleDescAttr(b->desc, i), values[i]);
			size += column->data.len - before;
		}
	}
	b->nrows++;
	b->size = size;
}

uint32
image_rows(const ImageBuilder *b)
{
	return b->nrows;
}

Size
image_values_size(const ImageBuilder *b)
{
	return b->size;
}

bool
image_is_full(const ImageBuilder *b)
{
	return b->nrows == IMAGE_MAX_ROWS || b->size >= IMAGE_ENOUGH;
}

/*
 * Memory for an image: the last one's, where that is large enough. The system takes freed megabytes back, and the page
 * faults of getting them again were a tenth of the time that is not the parser's.
 */
static char *
room_for_image(ImageBuilder *b, Size size)
{
	if (size > b->image_room || b->image_room > IMAGE_KEPT)
	{
		Size		room = Max(size, Min(size + size / 4, IMAGE_KEPT));

		if (b->image != NULL)
			pfree(b->image);
		b->image = NULL;
		b->image_room = 0;
		b->image = static_cast<char *>(MemoryContextAlloc(b->context, room));
		b->image_room = room;
	}
	return b->image;
}

/* Copies to the end of the image, which is MAXALIGNed. */
static void
append(char *image, Size *end, const void *data, Size n)
{
	memcpy(image + *end, data, n);
	memset(image + *end + n, 0, MAXALIGN(n) - n);
	*end += MAXALIGN(n);
}

/* Values of the column that are passed by value. */
static Size
count_values(const BuilderColumn *column)
{
	return static_cast<Size>(column->data.len) / column->byval;
}

static bool
is_narrow(const BuilderColumn *column)
{
	return column->byval > 0 && column->form.width < column->byval;
}

/* Chooses the column's form; how many bytes it takes. */
static Size
choose_form(BuilderColumn *column)
{
	if (column->byval > 0)
		column->form = narrow_form(column->data.data, count_values(column), column->byval);
	return is_narrow(column) ? narrow_size(column->form, count_values(column)) : static_cast<Size>(column->data.len);
}

static void
append_column(char *image, Size *end, const BuilderColumn *column)
{
	Size		size;

	if (!is_narrow(column))
		return append(image, end, column->data.data, column->data.len);
	size = narrow_size(column->form, count_values(column));
	narrow_values(column->data.data, count_values(column), column->byval, column->form, image + *end);
	memset(image + *end + size, 0, MAXALIGN(size) - size);
	*end += MAXALIGN(size);
}

bytea *
image_take(ImageBuilder *b)
{
	Size		nbits = (b->nrows + 7) / 8;
	Size		size;
	uint32		ncols = 0;
	char	   *image;
	ImageHead  *head;
	ImageColumn *column;

	for (int i = 0; i < b->desc->natts; i++)
		ncols += !TupleDescAttr(b->desc, i)->attisdropped;
	size = MAXALIGN(sizeof(ImageHead) + sizeof(ImageColumn) * ncols);
	for (int i = 0; i < b->desc->natts; i++)
		size += (b->columns[i].nulls ? MAXALIGN(nbits) : 0) + MAXALIGN(choose_form(&b->columns[i]));
	if (size >= MaxAllocSize)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("a row is too large for a tablet")));
	image = room_for_image(b, size);
	memset(image, 0, MAXALIGN(sizeof(ImageHead) + sizeof(ImageColumn) * ncols));
	SET_VARSIZE(image, size);
	head = reinterpret_cast<ImageHead *>(image);
	head->magic = IMAGE_MAGIC;
	head->nrows = b->nrows;
	head->ncols = ncols;
	column = reinterpret_cast<ImageColumn *>(head + 1);
	size = MAXALIGN(sizeof(ImageHead) + sizeof(ImageColumn) * ncols);
	for (int i = 0; i < b->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(b->desc, i);
		BuilderColumn *from = &b->columns[i];

		if (att->attisdropped)
			continue;
		column->type = att->atttypid;
		column->typmod = att->atttypmod;
		column->attnum = att->attnum;
		column->len = att->attlen;
		column->align = att->attalign;
		column->byval = att->attbyval;
		column->width = static_cast<uint8>(from->form.width);
		if (from->nulls != NULL)
		{
			column->nulls = static_cast<uint32>(size);
			append(image, &size, from->nulls, nbits);
			pfree(from->nulls);
			from->nulls = NULL;
		}
		column->data = static_cast<uint32>(size);
		append_column(image, &size, from);
		resetStringInfo(&from->data);
		column++;
	}
	b->nrows = 0;
	b->size = 0;
	return reinterpret_cast<bytea *>(image);
}

/* -- reading ----------------------------------------------------------------------- */

struct ReaderColumn
{
	int			attribute;
	int16		len;
	char		align;
	bool		byval;
	const bits8 *nulls;
	const char *base;			/* of its values: alignment counts from here */
	Size		at;
};

struct ImageReader
{
	TupleDesc	desc;
	const Bitmapset *wanted;
	const char *table;
	uint32		nrows;
	uint32		row;
	int			ncolumns;
	ReaderColumn *columns;		/* those that are read and in this image, */
	int			nmissing;
	int		   *missing;		/* and attributes that it has not: null, or the default that the catalogs have for that */
	Datum	   *missing_values;
	bool	   *missing_nulls;
};

ImageReader *
image_reader(TupleDesc desc, const Bitmapset *wanted, const char *table)
{
	ImageReader *r = static_cast<ImageReader *>(palloc0(sizeof(ImageReader)));
	int			natts = Max(desc->natts, 1);

	r->desc = desc;
	r->wanted = wanted;
	r->table = table;
	r->columns = static_cast<ReaderColumn *>(palloc0(sizeof(ReaderColumn) * natts));
	r->missing = static_cast<int *>(palloc0(sizeof(int) * natts));
	r->missing_values = static_cast<Datum *>(palloc0(sizeof(Datum) * natts));
	r->missing_nulls = static_cast<bool *>(palloc0(sizeof(bool) * natts));
	return r;
}

static const ImageColumn *
column_of(const ImageHead *head, AttrNumber attnum)
{
	const ImageColumn *columns = reinterpret_cast<const ImageColumn *>(head + 1);

	for (uint32 i = 0; i < head->ncols; i++)
		if (columns[i].attnum == attnum)
			return &columns[i];
	return NULL;
}

/* Equal values of char(n) and numeric(p, s) are taken to be the same, as all have one length, or scale; without a limit they are not. */
static bool
is_other_form(const ImageColumn *column, Form_pg_attribute att)
{
	return att->atttypmod >= 0 && column->typmod != att->atttypmod && (column->type == BPCHAROID || column->type == NUMERICOID);
}

/* ALTER ... TYPE of a foreign table changes no rows. */
static void
check_type(const ImageReader *r, const ImageColumn *column, Form_pg_attribute att)
{
	if (column->type != att->atttypid || is_other_form(column, att))
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_DATA_TYPE),
				 errmsg("rows of table \"%s\" have column \"%s\" of type %s, not %s", r->table, NameStr(att->attname),
						format_type_with_typemod(column->type, column->typmod), format_type_with_typemod(att->atttypid, att->atttypmod)),
				 errhint("Set the column's type back, and convert the values in a column of the new type.")));
}

/* Where the column's values are, as they were. */
static const char *
values_of(const ImageHead *head, const ImageColumn *column)
{
	const char *base = reinterpret_cast<const char *>(head);
	const char *data = base + column->data;
	Size		n = head->nrows;
	char	   *values;

	if (!column->byval || column->width == column->len)
		return data;
	if (column->nulls != 0)
		n -= pg_popcount(base + column->nulls, (head->nrows + 7) / 8);
	values = static_cast<char *>(palloc(n * column->len));
	widen_values(data, n, column->width, column->len, values);
	return values;
}

void
image_start(ImageReader *r, const bytea *image)
{
	const ImageHead *head = reinterpret_cast<const ImageHead *>(image);
	const char *base = reinterpret_cast<const char *>(image);

	if (VARSIZE(image) < sizeof(ImageHead) || head->magic != IMAGE_MAGIC)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("a tablet of table \"%s\" is not in a known format", r->table)));
	r->nrows = head->nrows;
	r->row = 0;
	r->ncolumns = r->nmissing = 0;
	for (int i = 0; i < r->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(r->desc, i);
		const ImageColumn *from = att->attisdropped || (r->wanted != NULL && !bms_is_member(i + 1, r->wanted)) ? NULL
			: column_of(head, att->attnum);

		if (from == NULL)
		{
			int			m = r->nmissing++;

			r->missing[m] = i;
			r->missing_nulls[m] = true;
			if (!att->attisdropped && att->atthasmissing)
				r->missing_values[m] = getmissingattr(r->desc, i + 1, &r->missing_nulls[m]);
			continue;
		}
		check_type(r, from, att);
		r->columns[r->ncolumns++] = ReaderColumn{i, from->len, from->align, from->byval,
			from->nulls == 0 ? NULL : reinterpret_cast<const bits8 *>(base + from->nulls), values_of(head, from), 0};
	}
}

static inline Datum
next_value(ReaderColumn *c)
{
	const char *at;

	if (c->byval)
	{
		at = c->base + c->at;
		c->at += c->len;
		return fetch_att(at, true, c->len);
	}
	c->at = att_align_pointer(c->at, c->align, c->len, c->base + c->at);
	at = c->base + c->at;
	c->at = att_addlength_pointer(c->at, c->len, at);
	return PointerGetDatum(at);
}

bool
image_next(ImageReader *r, Datum *values, bool *nulls)
{
	uint32		row = r->row;

	if (row >= r->nrows)
		return false;
	r->row++;
	for (int i = 0; i < r->ncolumns; i++)
	{
		ReaderColumn *c = &r->columns[i];

		nulls[c->attribute] = c->nulls != NULL && (c->nulls[row / 8] >> row % 8 & 1);
		if (!nulls[c->attribute])
			values[c->attribute] = next_value(c);
	}
	for (int m = 0; m < r->nmissing; m++)
	{
		values[r->missing[m]] = r->missing_values[m];
		nulls[r->missing[m]] = r->missing_nulls[m];
	}
	return true;
}

}  // namespace gpuvm
