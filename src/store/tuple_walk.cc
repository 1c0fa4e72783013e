/* tuple_walk.cc: what of staging need not be inline. */
#include "store/tuple_walk.h"

#include "tablet/wide_halves.h"

extern "C" {
#include "access/detoast.h"
#include "catalog/pg_type.h"
}

namespace gpuvm {

void
init_walk_column(WalkColumn *column, TupleDesc desc, AttrNumber attnum, const ValueType &type, int scale)
{
	Form_pg_attribute att = TupleDescAttr(desc, attribute_of(attnum) - 1);

	column->width = static_cast<uint8>(type_natural_width(type.type));
	column->byval = att->attbyval;
	column->len = att->attlen;
	column->scale = static_cast<int16>(scale);
	column->offset = -1;
	if (is_high_half(attnum))
	{
		column->staging = Staging::High;
		return;
	}
	if (type.form == ValueForm::Numeric)
		column->staging = Staging::Numeric;
	else if (type.form == ValueForm::Dictionary)
		column->staging = Staging::Dictionary;
	else if (type.form == ValueForm::Variable)
	{
		column->staging = Staging::Variable;
		column->align = static_cast<uint8>(att_align_nominal(1, att->attalign));
		column->packable = att->attstorage != TYPSTORAGE_PLAIN;
	}
	else if (att->attlen != column->width)
		column->staging = Staging::Oid;
	else
		column->staging = column->width == 1 ? Staging::Copy1 : column->width == 2 ? Staging::Copy2
			: column->width == 4 ? Staging::Copy4 : Staging::Copy8;
	if (desc->constr && desc->constr->missing && desc->constr->missing[attribute_of(attnum) - 1].am_present)
	{
		column->missing = true;
		column->missing_value = desc->constr->missing[attribute_of(attnum) - 1].am_value;
	}
}

void
join_halves(WalkColumn *low, WalkColumn *high)
{
	low->high = high->values;
	high->nulls = low->nulls;
}

void
store_wide(WalkColumn *column, uint32 row, const char *packed)
{
	int128		value = 0;
	int64		halves[2];

	if (column->scale < 0)
	{
		int			scale = numeric_display_scale(packed);

		if (scale <= SCALED_MAX_WIDE_SCALE)
			column->scale = static_cast<int16>(scale);
	}
	if (!numeric_to_wide(packed, column->scale, &value))
	{
		column->unfit = numeric_misfit(packed, column->scale, SCALED_MAX_WIDE_SCALE);
		set_null(column, row);
		value = 0;
	}
	halves[0] = wide_low(value);
	halves[1] = wide_high(value);
	memcpy(column->values + Size{row} * sizeof(int64), &halves[0], sizeof(int64));
	memcpy(column->high + Size{row} * sizeof(int64), &halves[1], sizeof(int64));
}

ColumnFailure
numeric_misfit(const char *packed, int scale, int most)
{
	int			own = numeric_display_scale(packed);

	if (own < 0)
		return VARATT_IS_EXTERNAL(packed) || VARATT_IS_COMPRESSED(packed) ? COLUMN_TOO_LONG : COLUMN_NOT_FINITE;
	return own != scale && own <= most ? COLUMN_OTHER_SCALE : COLUMN_TOO_LONG;
}

/* The value as a key of `codes`; false if it is not short. */
static inline bool
short_value(const WalkColumn *column, Datum value, ShortCode *key)
{
	const char *bytes = DatumGetPointer(value);
	uint32		len = static_cast<uint32>(column->len);

	key->first = key->second = key->last = 0;
	if (column->byval)
	{
		key->first = value;
		key->tag = 1;
		return true;
	}
	if (column->len < 0)
	{
		if (VARATT_IS_EXTERNAL(bytes) || VARATT_IS_COMPRESSED(bytes))
			return false;
		len = VARSIZE_ANY_EXHDR(bytes);
		bytes = VARDATA_ANY(bytes);
	}
	key->tag = len + 1;
	if (len > SHORT_LENGTH)
		return false;
	if (len > 16)
		memcpy(&key->second, bytes + 8, 8);
	if (len >= 8)
	{
		memcpy(&key->first, bytes, 8);
		memcpy(&key->last, bytes + len - 8, 8);
	}
	else if (len >= 4)
	{
		memcpy(&key->first, bytes, 4);
		memcpy(&key->last, bytes + len - 4, 4);
	}
	else
		for (uint32 i = 0; i < len; i++)
			key->first = key->first << 8 | static_cast<unsigned char>(bytes[i]);
	return true;
}

static inline ShortCode *
short_slot(const WalkColumn *column, const ShortCode &key)
{
	uint64		mixed = (key.first ^ (key.second << 2) ^ (key.last << 1) ^ key.tag) * UINT64CONST(0x9e3779b97f4a7c15);

	return &column->codes[mixed >> 32 & (SHORT_CODES - 1)];
}

/* NO_CODE: it has none. */
static int32
find_code(WalkColumn *column, Datum value)
{
	const char *image;
	uint32		len;

	if (dictionary_image(column->image, value, column->len, column->byval, &image, &len))
		return column->local != NULL ? local_code(column->local, image, len) : builder_code(&column->writer, image, len);
	if (column->local == NULL && !column->writer.builder->refreshes)
		builder_fail(column->writer.builder, DictionaryFailure::TooLong);
	return NO_CODE;
}

void
store_code(WalkColumn *column, uint32 row, Datum value)
{
	ShortCode	key;
	ShortCode  *slot = NULL;
	int32		code;

	if (column->codes != NULL && short_value(column, value, &key))
	{
		slot = short_slot(column, key);
		if (slot->tag == key.tag && slot->first == key.first && slot->second == key.second && slot->last == key.last)
		{
			column->writer.calls++;
			memcpy(column->values + Size{row} * sizeof(slot->code), &slot->code, sizeof(slot->code));
			return;
		}
	}
	code = find_code(column, value);
	if (slot != NULL && code != NO_CODE)
	{
		key.code = code;
		*slot = key;
	}
	if (code == NO_CODE)
	{
		column->unfit = COLUMN_TOO_MANY_VALUES;
		set_null(column, row);
		code = 0;
	}
	memcpy(column->values + Size{row} * sizeof(code), &code, sizeof(code));
}

/* -- images --------------------------------------------------------------------------- */

constexpr Size FIRST_IMAGES = 64 * 1024;

void
grow_images(WalkColumn *column, Size more)
{
	Size		capacity = Max(column->images_capacity * 2, FIRST_IMAGES);

	while (capacity - column->nimages < more)
		capacity *= 2;
	column->images = static_cast<char *>(column->images == NULL ? palloc_extended(capacity, MCXT_ALLOC_HUGE)
										 : repalloc_huge(column->images, capacity));
	column->images_capacity = capacity;
}

/* So many bytes for the image of a row, aligned. */
static char *
image_place(WalkColumn *column, uint32 row, Size len, uint8 align)
{
	Size		place = TYPEALIGN(align, column->nimages);
	int64		value = static_cast<int64>(place);

	if (column->images_capacity - column->nimages < len + align)
		grow_images(column, len + align);
	memset(column->images + column->nimages, 0, place - column->nimages);
	column->nimages = place + len;
	memcpy(column->values + Size{row} * sizeof(value), &value, sizeof(value));
	return column->images + place;
}

/* A varlena that is in place and not compressed, its header of four bytes. */
static void
store_plain_varlena(WalkColumn *column, uint32 row, const char *from)
{
	Size		len = VARSIZE_4B(from);
	char	   *to;

	if (!column->packable || !VARATT_CAN_MAKE_SHORT(from))
	{
		memcpy(image_place(column, row, len, column->align), from, len);
		return;
	}
	len = VARATT_CONVERTED_SHORT_SIZE(from);
	to = image_place(column, row, len, 1);
	SET_VARSIZE_SHORT(to, len);
	memcpy(VARDATA_1B(to), VARDATA_4B(from), len - VARHDRSZ_SHORT);
}

void
store_long_image(WalkColumn *column, uint32 row, const char *from)
{
	struct varlena *detoasted;

	if (column->len > 0)
	{
		memcpy(image_place(column, row, column->len, column->align), from, column->len);
		return;
	}
	/* by its header: what is too long is not read */
	if (toast_raw_datum_size(PointerGetDatum(from)) > VARIABLE_MAX_IMAGE)
	{
		column->unfit = COLUMN_TOO_LARGE;
		set_null(column, row);
		return;
	}
	if (!VARATT_IS_EXTENDED(from))
	{
		store_plain_varlena(column, row, from);
		return;
	}
	detoasted = detoast_attr(reinterpret_cast<struct varlena *>(const_cast<char *>(from)));
	store_plain_varlena(column, row, reinterpret_cast<const char *>(detoasted));
	pfree(detoasted);
}

void
store_stored_image(WalkColumn *column, uint32 row, const char *image)
{
	uint32		len = image_length(image, column->len);
	bool		is_short = column->len == -1 && image_header(image) == 1;

	memcpy(image_place(column, row, len, is_short ? 1 : column->align), image, len);
}

}  // namespace gpuvm
