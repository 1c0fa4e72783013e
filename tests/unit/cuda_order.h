/*
 * cuda_order.h: rows and groups that leave in an order, held against those of the CPU.
 */
#ifndef GPUVM_TESTS_CUDA_ORDER_H
#define GPUVM_TESTS_CUDA_ORDER_H

#include "cuda_runtime_fixture.h"

#include "engine/abi.h"

namespace gpuvm {
namespace reference {

inline int
compare(Type type, const Value &a, const Value &b)
{
	if (type_is_float(type))
		return a.d != a.d || b.d != b.d ? int(a.d != a.d) - int(b.d != b.d) : (a.d > b.d) - (a.d < b.d);
	return type == Type::I128 ? (a.x > b.x) - (a.x < b.x) : (a.i > b.i) - (a.i < b.i);
}

/* The keys of a row, so that rows can be compared: what does not differ by them is a tie. */
inline int
compare_rows(const Program *program, const Ways &ways, const std::vector<Value> &a, const std::vector<Value> &b)
{
	std::vector<Type> types(program->nresults);

	program_result_types(program, types.data());
	for (const JobOrderKey &key : ways.order)
	{
		Value		av = a[key.column], bv = b[key.column];

		for (Value *v : {&av, &bv})
			if (key.flags & ORDER_RANKS)
			{
				const CodeMap &map = (*ways.maps)[key.map];
				const uint32_t code = static_cast<uint32_t>(v->i);

				v->null = v->null || code >= map.nentries || (map.nulls != nullptr && bit_get(map.nulls, code));
				v->i = v->null ? 0 : map.type == Type::I64 ? static_cast<const int64_t *>(map.values)[code] : static_cast<const int32_t *>(map.values)[code];
			}
		if (av.null && bv.null)
			continue;
		if (av.null || bv.null)
			return av.null == ((key.flags & ORDER_NULLS_FIRST) != 0) ? -1 : 1;
		if (const int cmp = compare(key.flags & ORDER_RANKS ? Type::I64 : types[key.column], av, bv))
			return key.flags & ORDER_DESC ? -cmp : cmp;
	}
	return 0;
}

/* Rows leave in units in order; ties are compared as sets. */
inline void
expect_sorted(const Program *program, const Outcome &expected, const Ran &ran, const Ways &ways)
{
	const size_t n = ways.row_limit != 0 ? std::min<size_t>(ways.row_limit, expected.rows.size()) : expected.rows.size();
	std::vector<size_t> order(expected.rows.size());
	const std::vector<std::string> texts = rows_text(program, expected);
	std::vector<std::string> got;

	ASSERT_EQ(ran.outcome, DeviceOutcome::Done) << ran.reason;
	ASSERT_EQ(ran.figures.errors != 0, expected.errors != 0);
	if (expected.errors != 0)
	{
		ASSERT_TRUE(ran.units.empty());
		return;
	}
	for (const auto &[unit, rows] : ran.units)
	{
		ASSERT_EQ(unit, got.size() / ways.capacity);
		got.insert(got.end(), rows.rows.begin(), rows.rows.end());
	}
	ASSERT_EQ(got.size(), n);
	std::iota(order.begin(), order.end(), 0);
	std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return compare_rows(program, ways, expected.rows[a], expected.rows[b]) < 0; });
	for (size_t first = 0, end; first < n; first = end)
	{
		std::vector<std::string> ties, got_ties;

		for (end = first; end < order.size() && compare_rows(program, ways, expected.rows[order[first]], expected.rows[order[end]]) == 0; end++)
			ties.push_back(texts[order[end]]);
		got_ties.assign(got.begin() + static_cast<long>(first), got.begin() + static_cast<long>(std::min(end, n)));
		std::sort(ties.begin(), ties.end());
		std::sort(got_ties.begin(), got_ties.end());
		ASSERT_TRUE(std::includes(ties.begin(), ties.end(), got_ties.begin(), got_ties.end())) << "rows from " << first;
	}
}

/* By some of the program's results, of codes by a map's ranks. */
inline std::vector<JobOrderKey>
random_order(Rng &rng, const Program *program, const MapSet &maps)
{
	std::vector<Type> types(program->nresults);
	std::vector<JobOrderKey> order;

	program_result_types(program, types.data());
	for (int n = program->nresults == 0 ? 0 : 1 + pick_int(rng, chance(rng, 20) ? 8 : 2); n > 0; n--)
	{
		JobOrderKey key = {static_cast<uint32_t>(pick_int(rng, program->nresults)), static_cast<uint32_t>(rng()) & (ORDER_DESC | ORDER_NULLS_FIRST), 0, 0};

		if (types[key.column] == Type::RowId)
			continue;
		for (uint32_t m = 0; m < maps.maps.size(); m++)
			if (types[key.column] == Type::I32 && (maps.maps[m].type == Type::I32 || maps.maps[m].type == Type::I64) && chance(rng, 50))
			{
				key.flags |= ORDER_RANKS;
				key.map = m;
				break;
			}
		order.push_back(key);
	}
	return order;
}

}  // namespace reference
}  // namespace gpuvm

#endif
