/* tablet_rows.cc: one row of a tablet, column by column; where rows are in the heap. */
#include "store/tablet_rows.h"

#include <algorithm>

#include "pg/numeric_scaled.h"
#include "pg/shmem.h"
#include "store/dictionary.h"
#include "store/registry.h"
#include "tablet/decode.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

/* A stored value of the column: as it is staged for a tablet (tuple_walk.h), the other way round. */
static Datum
stored_datum(const ColumnSummary &column, int64 bits, Form_pg_attribute att)
{
	if (column.scale >= 0)
		return scaled_to_numeric(bits, column.scale);
	if (column.dictionary != 0)
		return image_datum(dictionary_entry(arena_at<Dictionary>(column.dictionary), static_cast<uint32>(bits)), att->attlen, att->attbyval);
	if (column.flags & COLUMN_VARIABLE)
		return PointerGetDatum(arena_at<char>(static_cast<uint64>(bits)));
	/* the first bytes of it: of an oid, which was widened, too */
	return fetch_att(&bits, true, att->attlen);
}

void
tablet_row(const TableVersion *version, const TabletHeader *tablet, uint32 row, const Bitmapset *wanted, TupleTableSlot *slot)
{
	TupleDesc	desc = slot->tts_tupleDescriptor;
	const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);

	ExecClearTuple(slot);
	memset(slot->tts_isnull, true, desc->natts);
	for (uint32 i = 0; i < version->ncols; i++)
	{
		const ColumnChunk &chunk = tablet_chunks(tablet)[i];
		int			attribute = columns[i].attnum - 1;
		uint64		null = 0;
		int64		bits = 0;
		int64		high = 0;

		if (is_high_half(columns[i].attnum))
			break;				/* behind all others */
		if ((columns[i].flags & COLUMN_LEFT_OUT) || (wanted != NULL && !bms_is_member(columns[i].attnum, wanted)))
			continue;
		if (decode_nulls(tablet, chunk, row, 1, &null, 0))
			continue;
		decode_values(tablet, chunk, row, 1, &bits, 0);
		if (columns[i].flags & COLUMN_WIDE)
		{
			decode_values(tablet, tablet_chunks(tablet)[version_column(version, high_half(columns[i].attnum))], row, 1, &high, 0);
			slot->tts_values[attribute] = wide_to_numeric(wide_value(high, bits), columns[i].scale);
		}
		else
			slot->tts_values[attribute] = stored_datum(columns[i], bits, TupleDescAttr(desc, attribute));
		slot->tts_isnull[attribute] = false;
	}
	ExecStoreVirtualTuple(slot);
}

void
tablet_row_ctids(const TabletHeader *tablet, const uint32 *rows, uint32 n, uint32 *block_hint, ItemPointerData *ctids)
{
	const uint32_t *block_rows = tablet_at<uint32_t>(tablet, tablet->block_rows);
	const uint32_t *block_lps = tablet_at<uint32_t>(tablet, tablet->block_lps);
	const uint16_t *lps = tablet_at<uint16_t>(tablet, tablet->lps);
	uint32		block = *block_hint;

	for (uint32 i = 0; i < n; i++)
	{
		uint32		row = rows[i];

		if (row < block_rows[block] || row >= block_rows[block + 1])
			block = std::upper_bound(block_rows, block_rows + tablet->nblocks, row) - block_rows - 1;

		uint32		in_block = row - block_rows[block];

		ItemPointerSet(&ctids[i], tablet->first_block + block,
					   block_lps[block] == LPS_DENSE ? in_block + 1 : lps[block_lps[block] + in_block]);
	}
	*block_hint = block;
}

}  // namespace gpuvm
