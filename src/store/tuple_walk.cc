/* tuple_walk.cc: what of staging need not be inline. */
#include "store/tuple_walk.h"

namespace gpuvm {

void
init_walk_column(WalkColumn *column, TupleDesc desc, AttrNumber attnum, const ValueType &type, int scale)
{
	Form_pg_attribute att = TupleDescAttr(desc, attnum - 1);

	column->width = static_cast<uint8>(type_natural_width(type.type));
	column->byval = att->attbyval;
	column->len = att->attlen;
	column->scale = static_cast<int16>(scale);
	column->offset = -1;
	if (type.form == ValueForm::Numeric)
		column->staging = Staging::Numeric;
	else if (type.form == ValueForm::Dictionary)
		column->staging = Staging::Dictionary;
	else if (att->attlen != column->width)
		column->staging = Staging::Oid;
	else
		column->staging = column->width == 1 ? Staging::Copy1 : column->width == 2 ? Staging::Copy2
			: column->width == 4 ? Staging::Copy4 : Staging::Copy8;
	if (desc->constr && desc->constr->missing && desc->constr->missing[attnum - 1].am_present)
	{
		column->missing = true;
		column->missing_value = desc->constr->missing[attnum - 1].am_value;
	}
}

ColumnFailure
numeric_misfit(const char *packed, int scale)
{
	int			own = numeric_display_scale(packed);

	if (own < 0)
		return VARATT_IS_EXTERNAL(packed) || VARATT_IS_COMPRESSED(packed) ? COLUMN_TOO_LONG : COLUMN_NOT_FINITE;
	return own != scale && own <= SCALED_MAX_SCALE ? COLUMN_OTHER_SCALE : COLUMN_TOO_LONG;
}

void
store_code(WalkColumn *column, uint32 row, Datum value)
{
	const char *image;
	uint32		len;
	int32		code = NO_CODE;

	if (dictionary_image(column->image, value, column->len, column->byval, &image, &len))
		code = column->local != NULL ? local_code(column->local, image, len) : builder_code(&column->writer, image, len);
	else if (column->local == NULL && column->writer.base == NULL)
		builder_fail(column->writer.builder, DictionaryFailure::TooLong);
	if (code == NO_CODE)
	{
		column->unfit = COLUMN_TOO_MANY_VALUES;
		set_null(column, row);
		code = 0;
	}
	memcpy(column->values + Size{row} * sizeof(code), &code, sizeof(code));
}

}  // namespace gpuvm
