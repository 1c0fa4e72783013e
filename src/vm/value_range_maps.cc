/* value_range_maps.cc: ranges of what maps of codes hold, and what zone tables are. */
#include "vm/value_range_internal.h"

#include <type_traits>

#include "core/bits.h"

namespace gpuvm {
namespace ranges {

void
unite(ValueRange *r, const ValueRange &a, const ValueRange &b)
{
	const ValueRange *only = !a.may_value ? &b : !b.may_value ? &a : nullptr;

	if (only)
	{
		bool		may_null = r->may_null;

		*r = *only;
		r->may_null = may_null;
		return;
	}
	r->may_value = true;
	r->may_true = a.may_true || b.may_true;
	r->may_false = a.may_false || b.may_false;
	r->may_nan = a.may_nan || b.may_nan;
	r->may_inf = a.may_inf || b.may_inf;
	r->exp_lo = std::min(a.exp_lo, b.exp_lo);
	r->exp_hi = std::max(a.exp_hi, b.exp_hi);
	r->lo = std::min(a.lo, b.lo);
	r->hi = std::max(a.hi, b.hi);
	r->flo = std::min(a.flo, b.flo);
	r->fhi = std::max(a.fhi, b.fhi);
}

/* Of a map's values of type V. Integers without nulls in a loop that vectorises, for maps may be large. */
template <typename V>
static ValueRange
entries_range(const CodeMap &map, uint32_t first, uint32_t end)
{
	const V    *values = static_cast<const V *>(map.values);
	ValueRange	r = null_range(map.type);
	bool		may_null = false;

	if constexpr (std::is_integral_v<V>)
		if (!map.nulls && first < end)
		{
			V			lo = values[first], hi = lo;

			for (uint32_t i = first + 1; i < end; i++)
			{
				lo = values[i] < lo ? values[i] : lo;
				hi = values[i] > hi ? values[i] : hi;
			}
			unite(&r, int_constant(map.type, lo), int_constant(map.type, hi));
			r.may_null = false;
			return r;
		}
	for (uint32_t i = first; i < end; i++)
	{
		const V		v = values[i];
		const ValueRange before = r;

		if (map.nulls && bit_get(map.nulls, i))
			may_null = true;
		else if constexpr (!std::is_integral_v<V>)
			unite(&r, before, float_constant(map.type, static_cast<double>(v)));
		else if (!r.may_value || v < r.lo || v > r.hi)
			unite(&r, before, int_constant(map.type, v));
	}
	r.may_null = may_null;
	return r;
}

constexpr int64_t NARROW_LOOKUP = 4096;	/* so many entries are looked at again where a tablet has no others */

ValueRange
lookup_range(const Op &op, const CodeMap &map, const ValueRange &code)
{
	const int64_t first = std::max<int64_t>(code.lo, 0), last = std::min<int64_t>(code.hi, int64_t(map.nentries) - 1);
	ValueRange	r = null_range(op.type);
	ValueRange	null_entry = r;
	bool		may_null = code.may_value && (code.lo < first || code.hi > last);

	if (code.may_value && first <= last)
	{
		r = last - first + 1 < int64_t(map.nentries) && last - first < NARROW_LOOKUP
			? map_range(map, static_cast<uint32_t>(first), static_cast<uint32_t>(last) + 1) : map.range;
		may_null = may_null || r.may_null;
	}
	if (code.may_null && (op.p5 & LOOKUP_NULL))
	{
		const ValueRange entries = r;

		null_entry = map_range(map, map.nentries, map.nentries + 1);
		unite(&r, entries, null_entry);
		may_null = may_null || null_entry.may_null;
	}
	else
		may_null = may_null || code.may_null;
	r.may_null = may_null;
	return r;
}

}  // namespace ranges

using namespace ranges;

ValueRange
map_range(const CodeMap &map, uint32_t first, uint32_t end)
{
	switch (map.type)
	{
		case Type::Bool: return entries_range<uint8_t>(map, first, end);
		case Type::I64: return entries_range<int64_t>(map, first, end);
		case Type::F32: return entries_range<float>(map, first, end);
		case Type::F64: return entries_range<double>(map, first, end);
		default: return entries_range<int32_t>(map, first, end);
	}
}

bool
map_values_fit(const CodeMap &map)
{
	const uint32_t n = map.nentries + (map.has_null_entry ? 1 : 0);
	uint32_t	wrong = 0;

	if (map.type == Type::Bool)
		for (uint32_t i = 0; i < n; i++)
			wrong |= static_cast<const uint8_t *>(map.values)[i] & 0xfeu;
	else if (map.type == Type::I16)
		for (uint32_t i = 0; i < n; i++)
			wrong |= sem::out_of_i16(static_cast<const int32_t *>(map.values)[i]);
	return wrong == 0;
}

bool
is_zone_table(const CodeMap &map)
{
	const int64_t *from = static_cast<const int64_t *>(map.values);
	const uint32_t n = map.nentries / 2;

	if (map.type != Type::I64 || map.has_null_entry || map.nulls || map.nentries % 2 != 0 || n == 0 || n > ZONE_MAX_TIMES)
		return false;
	for (uint32_t i = 0; i < n; i++)
	{
		const int64_t shift = from[n + i];

		if ((i > 0 && from[i] <= from[i - 1]) || (shift != ZONE_UNKNOWN && (shift > ZONE_MAX_SHIFT || shift < -ZONE_MAX_SHIFT)))
			return false;
	}
	return true;
}

ZoneTable
zone_part(const CodeMap &map, int64_t lo, int64_t hi)
{
	const int64_t *from = static_cast<const int64_t *>(map.values);
	const ZoneTable all = {from, from + map.nentries / 2, map.nentries / 2};
	const uint32_t first = zone_entry(all, lo), last = zone_entry(all, hi);

	return ZoneTable{all.from + first, all.shift + first, last - first + 1};
}

}  // namespace gpuvm
