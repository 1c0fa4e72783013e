#include "pg/value_form.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
}

namespace gpuvm {

/* Built-in types alone; arrays, enums and domains are none of these. */
static ValueType
builtin_type(Oid type)
{
	switch (type)
	{
		case BOOLOID: return {Type::Bool, ValueForm::Plain};
		case INT2OID: return {Type::I16, ValueForm::Plain};
		case INT4OID: return {Type::I32, ValueForm::Plain};
		case INT8OID: return {Type::I64, ValueForm::Plain};
		case FLOAT4OID: return {Type::F32, ValueForm::Plain};
		case FLOAT8OID: return {Type::F64, ValueForm::Plain};
		case DATEOID: return {Type::I32, ValueForm::Plain};
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case CASHOID:			/* money */
		case OIDOID: return {Type::I64, ValueForm::Plain};
		case NUMERICOID: return {Type::I64, ValueForm::Numeric};
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case NAMEOID:
		case CHAROID:			/* "char": its order is not that of its conversion to integer */
		case UUIDOID:
		case BYTEAOID:
		case INETOID:
		case CIDROID:
		case MACADDROID:
		case MACADDR8OID:
		case INTERVALOID:
		case TIMETZOID:
		case BITOID:
		case VARBITOID:
		case JSONOID:
		case JSONBOID: return {Type::I32, ValueForm::Dictionary};
		default: return {Type::None, ValueForm::None};
	}
}

ValueType
value_type(Oid type)
{
	ValueType	found = builtin_type(type);
	Oid			base;
	Oid			element;

	if (found.form != ValueForm::None)
		return found;
	base = getBaseType(type);
	if (base != type)
		return value_type(base);
	if (type_is_enum(type))
		return {Type::I32, ValueForm::Dictionary};
	element = get_element_type(type);
	if (OidIsValid(element) && builtin_type(element).form != ValueForm::None)
		return {Type::I32, ValueForm::Dictionary};
	return found;
}

bool
dictionary_equality(Oid type, int32 typmod, Oid collation)
{
	type = getBaseTypeAndTypmod(type, &typmod);
	switch (type)
	{
		case INTERVALOID:		/* '1 mon' = '30 days' */
		case JSONOID:			/* has no equality */
		case JSONBOID:			/* 1 = 1.0 */
			return false;
		case BPCHAROID:			/* blanks at the end do not count: all have as many only with a length */
			if (typmod < 0)
				return false;
			break;
		default:
			if (OidIsValid(get_element_type(type)))
				return false;
	}
	return !OidIsValid(collation) || get_collation_isdeterministic(collation);
}

}  // namespace gpuvm
