/* finalize.cc: from the VM's result values to PostgreSQL's. */
#include "pg/pg.h"

extern "C" {
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
}

#include <cstring>

#include "executor/finalize.h"

namespace gpuvm {

template <typename T>
static T
load(const ColumnView &view, uint32 row)
{
	T			v;

	memcpy(&v, view.values + static_cast<Size>(row) * sizeof(T), sizeof(T));
	return v;
}

Datum
view_datum(const ColumnView &view, uint32 row)
{
	switch (view.type)
	{
		case Type::Bool:
			return BoolGetDatum(load<uint8>(view, row) != 0);
		case Type::I16:
			return Int16GetDatum(static_cast<int16>(load<int32>(view, row)));
		case Type::I32:
			return Int32GetDatum(load<int32>(view, row));
		case Type::I64:
			return Int64GetDatum(load<int64>(view, row));
		case Type::F32:
			return Float4GetDatum(load<float>(view, row));
		default:
			return Float8GetDatum(load<double>(view, row));
	}
}

/* An int128 of at most 2^63 * 10^18 in magnitude, far above any sum of int8 columns. */
static Datum
int128_to_numeric(int128 v)
{
	constexpr int64 ten18 = INT64CONST(1000000000000000000);

	if (v == static_cast<int64>(v))
		return NumericGetDatum(int64_to_numeric(static_cast<int64>(v)));

	Datum		high = NumericGetDatum(int64_to_numeric(static_cast<int64>(v / ten18)));
	Datum		low = NumericGetDatum(int64_to_numeric(static_cast<int64>(v % ten18)));

	high = DirectFunctionCall2(numeric_mul, high, NumericGetDatum(int64_to_numeric(ten18)));
	return DirectFunctionCall2(numeric_add, high, low);
}

Datum
finalize_aggregate(const List *final, const ColumnView *views, const OutputForm *outputs, uint32 row, bool *isnull)
{
	constexpr int PARTS = 2;	/* in `final`, they begin */
	const ColumnView &value = views[list_nth_int(final, PARTS)];

	*isnull = view_is_null(value, row);
	if (*isnull)
		return (Datum) 0;
	switch (static_cast<FinalKind>(linitial_int(final)))
	{
		case FinalKind::Direct:
			return view_datum(value, row);
		case FinalKind::SumToInt8:
			return Int64GetDatum(static_cast<int64>(load<int128>(value, row)));
		case FinalKind::SumToNumeric:
			return int128_to_numeric(load<int128>(value, row));
		case FinalKind::SumToFloat4:
			return Float4GetDatum(static_cast<float>(load<double>(value, row)));
		case FinalKind::SumToFloat8:
			return Float8GetDatum(load<double>(value, row));
		case FinalKind::AvgToNumeric:
			/* int8_avg and numeric_poly_avg: sum and count as numeric, divided. */
			return DirectFunctionCall2(numeric_div, int128_to_numeric(load<int128>(value, row)),
									   NumericGetDatum(int64_to_numeric(load<int64>(views[list_nth_int(final, PARTS + 1)], row))));
		case FinalKind::AvgToFloat8:
			/* float8_avg; its sum starts at 0, so the mean of nothing but -0 is 0 */
			return Float8GetDatum((load<double>(value, row) + 0.0) /
								  static_cast<double>(load<int64>(views[list_nth_int(final, PARTS + 1)], row)));
		case FinalKind::Variance:
			break;
	}
	return (Datum) 0;			/* not reached: the switch is exhaustive */
}

}  // namespace gpuvm
