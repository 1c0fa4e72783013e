/*
 * decode.cc: result buffers to slots.
 *
 * Rows are decoded a batch at a time, a column after the other, into row-major
 * arrays, and the scan slot is pointed at one row after the other: a row costs
 * three stores then. The batch stays within the first-level cache.
 */
#include "pg/pg.h"

#include <cstring>

#include "compiler/compile.h"
#include "executor/scan_state.h"
#include "pg/numeric_scaled.h"
#include "pg/shmem.h"

extern "C" {
#include "access/sysattr.h"
#include "utils/memutils.h"
}

namespace gpuvm {

constexpr uint32 BATCH_ROWS = 128;

/* One column of the batch; Wide converts the stored value to a Datum. */
template <typename T, typename Wide>
static void
decode_column(const ColumnView &v, uint32 first, uint32 n, Datum *values, int stride, Wide wide)
{
	const T    *from = reinterpret_cast<const T *>(v.values) + first;

	for (uint32 r = 0; r < n; r++)
		values[static_cast<Size>(r) * stride] = wide(from[r]);
}

static void
decode_values(const ColumnView &v, uint32 first, uint32 n, Datum *values, int stride)
{
	switch (v.type)
	{
		case Type::Bool:
			decode_column<uint8>(v, first, n, values, stride, [](uint8 x) { return BoolGetDatum(x != 0); });
			break;
		case Type::I16:
			decode_column<int32>(v, first, n, values, stride, [](int32 x) { return Int16GetDatum(static_cast<int16>(x)); });
			break;
		case Type::I32:
			decode_column<int32>(v, first, n, values, stride, [](int32 x) { return Int32GetDatum(x); });
			break;
		case Type::I64:
			decode_column<int64>(v, first, n, values, stride, [](int64 x) { return Int64GetDatum(x); });
			break;
		case Type::F32:
			decode_column<float>(v, first, n, values, stride, [](float x) { return Float4GetDatum(x); });
			break;
		default:
			decode_column<double>(v, first, n, values, stride, [](double x) { return Float8GetDatum(x); });
			break;
	}
}

/* What is wanted of rows by their positions; nulls are known. */
static void
decode_positions(const GpuvmScanState *state, int column, uint32 first, uint32 n, const bool *nulls, Datum *values, int stride)
{
	const OutputForm *form = &state->part->plan->outputs[column];
	const ScanSource *source = state->sources[form->cursor];
	const int64 *positions = reinterpret_cast<const int64 *>(state->views[column].values) + first;
	ItemPointerData *tids = form->attnum == SelfItemPointerAttributeNumber ? static_cast<ItemPointerData *>(palloc(sizeof(ItemPointerData) * n)) : nullptr;

	for (uint32 r = 0; r < n; r++)
	{
		Size		at = static_cast<Size>(r) * stride;

		if (nulls[at])
			values[at] = (Datum) 0;
		else if (is_fetched(form->attnum))
			values[at] = Int64GetDatum(positions[r]);	/* fetch_values() finds the row by it */
		else if (tids == nullptr)
			values[at] = ObjectIdGetDatum(source->leaves[source_row(source, positions[r], nullptr)->leaf].relid);
		else
		{
			source_row(source, positions[r], &tids[r]);
			values[at] = PointerGetDatum(&tids[r]);
		}
	}
}

/* Codes, references and scaled numerics; nulls are known. */
static void
decode_form(const GpuvmScanState *state, int column, uint32 first, uint32 n, const bool *nulls, Datum *values, int stride)
{
	const ColumnView &v = state->views[column];
	const OutputForm *form = &state->part->plan->outputs[column];

	for (uint32 r = 0; r < n; r++)
	{
		Size		at = static_cast<Size>(r) * stride;

		if (nulls[at])
			values[at] = (Datum) 0;
		else if (form->kind == OutputKind::Numeric)
			values[at] = scaled_to_numeric(reinterpret_cast<const int64 *>(v.values)[first + r], form->scale);
		else if (form->kind == OutputKind::Wide)
			values[at] = wide_datum(v, state->views[form->map], first + r, form->scale);
		else if (form->kind == OutputKind::Variable)
			values[at] = variable_datum(state, state->part, column,
										reinterpret_cast<const int64 *>(v.values)[first + r], nullptr);
		else
			values[at] = output_datum(state, state->part, column, reinterpret_cast<const int32 *>(v.values)[first + r]);
	}
}

static void
decode_nulls(const ColumnView &v, uint32 first, uint32 n, bool *nulls, int stride)
{
	for (uint32 r = 0; r < n; r++)
		nulls[static_cast<Size>(r) * stride] = view_is_null(v, first + r);
}

bool
decode_batch(GpuvmScanState *state)
{
	int			ncols = state->nvalues;
	bool		positions = gives_positions(state->plan) && state->plan->norder == 0;		/* in the last column */
	uint32		first = state->row;
	uint32		n = Min(BATCH_ROWS, state->nrows - first);
	MemoryContext old;

	if (n == 0)
	{
		/* somebody is waited for now: no pin is held meanwhile */
		fetch_release(state);
		return false;
	}
	if (state->batch_values == nullptr)
	{
		MemoryContext query = state->css.ss.ps.state->es_query_cxt;

		state->batch_values = static_cast<Datum *>(MemoryContextAlloc(query, sizeof(Datum) * BATCH_ROWS * Max(ncols, 1)));
		state->batch_nulls = static_cast<bool *>(MemoryContextAlloc(query, sizeof(bool) * BATCH_ROWS * Max(ncols, 1)));
		state->batch_context = AllocSetContextCreate(query, "gpuvm batch", ALLOCSET_DEFAULT_SIZES);
		state->batch_tids = static_cast<ItemPointerData *>(MemoryContextAlloc(query, sizeof(ItemPointerData) * BATCH_ROWS));
		for (uint32 r = 0; r < BATCH_ROWS; r++)
			ItemPointerSetInvalid(&state->batch_tids[r]);
	}

	/* The row of before is not looked at any more. */
	fetch_release(state);
	MemoryContextReset(state->batch_context);
	old = MemoryContextSwitchTo(state->batch_context);

	/* Any null in the batch? Batches start at whole words of the bitmaps. */
	static_assert(BATCH_ROWS % 64 == 0, "null bitmaps are read in words");
	for (int i = 0; i < ncols; i++)
	{
		int			column = state->order != nullptr ? state->order[i] : i;
		const ColumnView &v = state->views[column];
		bool		plain = state->part->plan->outputs[column].kind == OutputKind::Plain;
		uint64		any = 0;

		for (uint32 w = first / 64; w < (first + n + 63) / 64; w++)
			any |= v.nulls[w];
		if (plain)
			decode_values(v, first, n, state->batch_values + i, ncols);
		if (any != 0)
			decode_nulls(v, first, n, state->batch_nulls + i, ncols);
		else
		{
			for (uint32 r = 0; r < n; r++)
				state->batch_nulls[static_cast<Size>(r) * ncols + i] = false;
		}
		if (state->part->plan->outputs[column].kind == OutputKind::Position)
			decode_positions(state, column, first, n, state->batch_nulls + i, state->batch_values + i, ncols);
		else if (!plain)
			decode_form(state, column, first, n, state->batch_nulls + i, state->batch_values + i, ncols);
	}
	MemoryContextSwitchTo(old);
	if (positions)
	{
		const ColumnView &v = state->views[state->part->ncols - 1];
		uint32		rows[BATCH_ROWS];

		/* they are to stay what they are found to be */
		memcpy(rows, v.values + first * sizeof(uint32), n * sizeof(uint32));
		source_ctids(state->tablet, rows, n, &state->block_hint, state->batch_tids);
		state->row_relid = state->sources[0]->leaves[state->tablet->leaf].relid;
	}
	state->row = first + n;
	state->batch_row = 0;
	state->batch_rows = n;
	return true;
}

}  // namespace gpuvm
