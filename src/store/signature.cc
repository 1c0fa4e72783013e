/*
 * signature.cc: the columns of a table as bytes. Two relations (or one at two
 * times) with equal bytes read any heap tuple alike. The missing values belong
 * to it: ADD COLUMN DEFAULT 5, rolled back, then DEFAULT 7 leaves file node, LSN
 * and bits as they were, and the data differs.
 */
#include "store/internal.h"

extern "C" {
#include "access/tupdesc.h"
#include "access/tupdesc_details.h"
#include "utils/datum.h"
}

namespace gpuvm {

struct SignatureColumn
{
	Oid			type;
	int32		typmod;
	Oid			collation;
	uint32		missing_len;	/* bytes that follow */
	int16		attnum;
	int16		attlen;
	char		attalign;
	bool		dropped;
	bool		has_missing;
	bool		missing_by_value;
};

static const AttrMissing *
missing_value(TupleDesc desc, int i)
{
	if (desc->constr == NULL || desc->constr->missing == NULL || !desc->constr->missing[i].am_present)
		return NULL;
	return &desc->constr->missing[i];
}

static uint32
missing_size(TupleDesc desc, int i)
{
	const AttrMissing *missing = missing_value(desc, i);
	Form_pg_attribute att = TupleDescAttr(desc, i);

	if (missing == NULL)
		return 0;
	return att->attbyval ? sizeof(Datum) : datumGetSize(missing->am_value, false, att->attlen);
}

bool
signature_has(const char *data, Size len, AttrNumber attnum, Form_pg_attribute att)
{
	SignatureColumn column;

	for (const char *at = data; at + sizeof(column) <= data + len; at += sizeof(column) + column.missing_len)
	{
		memcpy(&column, at, sizeof(column));
		if (column.attnum == attnum)
			return !column.dropped && column.type == att->atttypid && column.typmod == att->atttypmod && column.collation == att->attcollation;
	}
	return false;
}

Signature
make_signature(TupleDesc desc)
{
	Signature	signature = {NULL, 0};
	char	   *at;

	for (int i = 0; i < desc->natts; i++)
		signature.len += sizeof(SignatureColumn) + missing_size(desc, i);
	signature.data = at = static_cast<char *>(palloc(Max(signature.len, 1)));

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		const AttrMissing *missing = missing_value(desc, i);
		SignatureColumn column;

		memset(&column, 0, sizeof(column));
		column.type = att->atttypid;
		column.typmod = att->atttypmod;
		column.collation = att->attcollation;
		column.missing_len = missing_size(desc, i);
		column.attnum = att->attnum;
		column.attlen = att->attlen;
		column.attalign = att->attalign;
		column.dropped = att->attisdropped;
		column.has_missing = missing != NULL;
		column.missing_by_value = att->attbyval;
		memcpy(at, &column, sizeof(column));
		at += sizeof(column);
		if (missing != NULL)
		{
			if (att->attbyval)
				memcpy(at, &missing->am_value, sizeof(Datum));
			else
				memcpy(at, DatumGetPointer(missing->am_value), column.missing_len);
			at += column.missing_len;
		}
	}
	return signature;
}

}  // namespace gpuvm
