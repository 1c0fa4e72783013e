/*
 * value_form.h: in which form a PostgreSQL type's values are stored and computed with.
 *
 * The one truth for the store, the compiler, the planner and the executor: what is
 * not in here, or does not fit, is stored for output and for text_match alone
 * (Variable), or, by-value types, left out of tablets; then a query that needs it runs on PostgreSQL.
 */
#ifndef GPUVM_PG_VALUE_FORM_H
#define GPUVM_PG_VALUE_FORM_H

#include "core/types.h"
#include "pg/pg.h"

namespace gpuvm {

enum class ValueForm : uint8_t
{
	None,
	Plain,						/* the value itself, or widened without loss: oid is an I64 */
	Numeric,					/* an I64 scaled by a power of ten, which is the column's (numeric_scaled.h) */
	Dictionary,					/* an I32 code into a dictionary of the table's column */
	Variable,					/* an I64 reference to the value as it is (tablet/format.h): of a column whose values do not fit their
								 * type's form, or whose type has none. Never of a type: value_type() does not say it */
};

struct ValueType
{
	Type		type;			/* of a register or staged value; None if the form is */
	ValueForm	form;
};

/* A domain is what it is over. May read the catalogs, for types other than the commonest. */
ValueType	value_type(Oid type);

/* May a column of such a type (pg_attribute's or pg_type's length and by-value) be variable? */
inline bool
variable_type(int16 attlen, bool byval)
{
	return !byval && (attlen > 0 || attlen == -1);
}

/*
 * Of a type in the form of a dictionary: have equal values always equal bytes, so that codes may be
 * compared, grouped and joined in their place? An ordering is never that of the codes.
 */
bool		dictionary_equality(Oid type, int32 typmod, Oid collation);

}  // namespace gpuvm

#endif
