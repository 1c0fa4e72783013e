/*
 * window_rules.h: what window functions are of a row, once it is known where its partition, its peers and its frame
 * lie: the rules that the engines share (window.h). Rows are numbered through the whole set.
 */
#ifndef GPUVM_VM_WINDOW_RULES_H
#define GPUVM_VM_WINDOW_RULES_H

#include <cstring>
#include <type_traits>

#include "core/bits.h"
#include "tablet/wide_halves.h"
#include "vm/float_sum.h"
#include "vm/semantics.h"
#include "vm/window.h"

namespace gpuvm {

constexpr uint64_t WINDOW_NO_ROW = UINT64_MAX;

/* ---- values ----------------------------------------------------------------------------- */

/* Calls f with a value of the C type that values of the type have. */
template <typename F>
GPUVM_HD void
with_window_type(Type type, F f)
{
	switch (type)
	{
		case Type::Bool: f(uint8_t{}); break;
		case Type::I16: f(int16_t{}); break;
		case Type::I32: f(int32_t{}); break;
		case Type::I64: f(int64_t{}); break;
		case Type::F32: f(float{}); break;
		default: f(double{}); break;
	}
}

/* A value as an integer that is ordered as it: -0 is 0, NaN is one value above all. */
template <typename T>
GPUVM_HD int64_t
window_order(T value)
{
	if constexpr (std::is_floating_point_v<T>)
	{
		const int64_t bits = static_cast<int64_t>(double_bits(value == 0 ? 0.0 : static_cast<double>(value)));

		return value != value ? INT64_MAX : bits < 0 ? bits ^ INT64_MAX : bits;
	}
	else
		return value;
}

/* Back to the float; a zero is negative if it says so. */
GPUVM_HD double
window_unordered(int64_t value, bool negative_zero)
{
	if (value == INT64_MAX)
		return bits_double(0x7ff8000000000000u);
	if (value == 0 && negative_zero)
		return bits_double(0x8000000000000000u);
	return bits_double(static_cast<uint64_t>(value < 0 ? value ^ INT64_MAX : value));
}

/* Values of neighbours that are not null: are they of different partitions or groups of peers? */
template <typename T>
GPUVM_HD bool
window_differ(T a, T b)
{
	if constexpr (std::is_floating_point_v<T>)
		return !(a == b || (a != a && b != b));
	else
		return a != b;
}

/* Ranks of codes, as a CodeMap has them. */
struct WindowRanks
{
	const void *values;
	const uint64_t *nulls;		/* nullptr: all codes have a rank */
	uint32_t	nentries;
	bool		wide;			/* int64_t; else int32_t */

	GPUVM_HD int64_t of(uint32_t code) const
	{
		return wide ? static_cast<const int64_t *>(values)[code] : static_cast<const int32_t *>(values)[code];
	}
	/* False: the code has none, and is as good as a null. */
	GPUVM_HD bool find(uint32_t code, int64_t *rank) const
	{
		*rank = 0;
		if (code >= nentries || (nulls != nullptr && (nulls[code / 64] >> (code % 64) & 1) != 0))
			return false;
		*rank = of(code);
		return true;
	}
};

inline WindowRanks
window_ranks(const CodeMap &map)
{
	return WindowRanks{map.values, map.nulls, map.nentries, map.type == Type::I64};
}

/* What extremes of codes compare: the rank, and below it the code, which is the result. */
template <typename Key>
GPUVM_HD Key
window_ranked_key(const WindowRanks &ranks, uint32_t code)
{
	const uint32_t known = code < ranks.nentries ? code : 0;

	return static_cast<Key>(ranks.nentries == 0 ? 0 : ranks.of(known)) * (Key{1} << 32) + known;
}

/* The greatest key, of rows that do not count. */
template <typename Key>
GPUVM_HD constexpr Key
window_no_key()
{
	return ((Key{1} << (8 * sizeof(Key) - 2)) - 1) * 2 + 1;
}

/*
 * The least key of any rows: level k of a tree has the least of each 16^k rows. Frames whose heads move ask it.
 */
constexpr int WINDOW_TREE_BITS = 4;
constexpr uint64_t WINDOW_TREE_NODES = 1 << WINDOW_TREE_BITS;

template <typename Key>
GPUVM_HD Key
window_least(const Key *from, const Key *to, Key least)
{
	for (; from < to; from++)
		least = *from < least ? *from : least;
	return least;
}

/* Of rows [head, tail); `level`: from k to where that level is. */
template <typename Key, typename Level>
GPUVM_HD Key
window_tree_least(Level level, uint64_t head, uint64_t tail)
{
	Key			found = window_no_key<Key>();

	for (int k = 0; head < tail; k++)
	{
		const Key  *keys = level(k);
		const uint64_t up = (head + WINDOW_TREE_NODES - 1) / WINDOW_TREE_NODES, down = tail / WINDOW_TREE_NODES;

		if (up >= down)
			return window_least(keys + head, keys + tail, found);
		found = window_least(keys + head, keys + up * WINDOW_TREE_NODES, found);
		found = window_least(keys + down * WINDOW_TREE_NODES, keys + tail, found);
		head = up;
		tail = down;
	}
	return found;
}

/* May halves, of which the high ones are at most so far from 0, be added up in 128 bits for so many rows? */
inline bool
window_halves_fit(uint64_t most, uint64_t nrows)
{
	return most < static_cast<uint64_t>(WIDE_HIGH_LIMIT) && ceil_log2(most) + WIDE_LOW_BITS + ceil_log2(nrows) < 127;
}

/* ---- frames ----------------------------------------------------------------------------- */

/* ROWS: the bound of a row of partition [start, end); not Unbounded. `behind`: 1 for the end of a frame, else 0. */
GPUVM_HD uint64_t
window_rows_bound(FrameBound bound, uint64_t offset, uint64_t behind, uint64_t row, uint64_t start, uint64_t end)
{
	if (bound == FrameBound::CurrentRow)
		return row + behind;
	if (bound == FrameBound::Preceding)
		return offset > row - start ? start : row - offset + behind;
	return offset > end - row - behind ? end : row + offset + behind;
}

/* GROUPS with an offset: the group that begins at the bound, which may lie behind the partition. `first`: its first group. */
GPUVM_HD uint64_t
window_groups_bound(FrameBound bound, uint64_t offset, uint64_t behind, uint64_t group, uint64_t first)
{
	if (bound == FrameBound::Preceding)
		return offset > group - first ? first : group - offset + behind;
	return group + offset + behind;
}

/* RANGE with an offset. */
struct WindowRange
{
	int64_t		offset;
	RangeUnit	unit;
	bool		is_end;
	bool		less;			/* rows that are not beyond the bound have values of at most the limit */
	bool		subtract;
	bool		nulls_first;
};

inline WindowRange
window_range(const WindowSpec &spec, bool is_end)
{
	const WindowKey &key = spec.keys[spec.npartition];
	const FrameBound bound = is_end ? spec.frame.end : spec.frame.start;

	return WindowRange{is_end ? spec.frame.end_offset : spec.frame.start_offset, spec.frame.unit, is_end, is_end != key.desc,
		(bound == FrameBound::Preceding) != key.desc, key.nulls_first};
}

/*
 * What values are compared with: in_range_int4_int8() and others, where an overflow is as good as the true sum;
 * in_range_float8_float8(), in_range_date_interval() and in_range_timestamp_interval().
 */
template <typename T>
GPUVM_HD int128
window_range_limit(const WindowRange &range, T base, uint32_t *errors)
{
	if constexpr (std::is_floating_point_v<T>)
	{
		const double infinity = bits_double(0x7ff0000000000000u);
		const double from = static_cast<double>(base), offset = bits_double(static_cast<uint64_t>(range.offset));

		/* infinitely far from infinity: of numbers, all are within */
		if (offset == infinity && from == (range.subtract ? infinity : -infinity))
			return window_order(range.less ? infinity : -infinity);
		return window_order(range.subtract ? from - offset : from + offset);
	}
	else
	{
		const int64_t from = base;
		const int128 sum = range.subtract ? static_cast<int128>(from) - range.offset : static_cast<int128>(from) + range.offset;

		if (range.unit == RangeUnit::Date)
		{
			if (from == sem::DATE_NOBEGIN || from == sem::DATE_NOEND)
				return from;
			if (from >= sem::TS_LIMIT_DAYS || sum < sem::DATE_MIN || sum >= sem::TS_LIMIT_DAYS)
				*errors |= ERR_DATETIME_RANGE;
		}
		else if (range.unit == RangeUnit::Timestamp)
		{
			if (from == sem::TS_NOBEGIN || from == sem::TS_NOEND)
				return from;
			if (sum < sem::TS_MIN || sum >= sem::TS_LIMIT)
				*errors |= ERR_DATETIME_RANGE;
		}
		return sum;
	}
}

/* Is a row the bound, if none before it is? `order`: window_order() of its value; `limit`: of the current row's. */
GPUVM_HD bool
window_range_stops(const WindowRange &range, bool null, bool current_null, int64_t order, int128 limit)
{
	if (null || current_null)
	{
		if (range.is_end)
			return range.nulls_first ? !null : !current_null;
		return range.nulls_first ? !null || current_null : null || !current_null;
	}
	return (range.less ? order <= limit : order >= limit) != range.is_end;
}

/* ---- functions of positions --------------------------------------------------------------- */

GPUVM_HD int64_t
window_row_number(uint64_t row, uint64_t part_start)
{
	return static_cast<int64_t>(row - part_start) + 1;
}

/* Of dense ranks with groups instead of rows. */
GPUVM_HD int64_t
window_rank(uint64_t peer_start, uint64_t part_start)
{
	return static_cast<int64_t>(peer_start - part_start) + 1;
}

GPUVM_HD double
window_percent_rank(uint64_t peer_start, uint64_t part_start, uint64_t part_end)
{
	const uint64_t rows = part_end - part_start;

	return rows <= 1 ? 0.0 : static_cast<double>(peer_start - part_start) / static_cast<double>(rows - 1);
}

GPUVM_HD double
window_cume_dist(uint64_t peer_end, uint64_t part_start, uint64_t part_end)
{
	return static_cast<double>(peer_end - part_start) / static_cast<double>(part_end - part_start);
}

/* window_ntile(): the first `rest` buckets have a row more. */
GPUVM_HD int32_t
window_ntile(uint64_t row, uint64_t part_start, uint64_t part_end, uint64_t buckets)
{
	const uint64_t rows = part_end - part_start, at = row - part_start;
	const uint64_t size = rows / buckets, rest = rows % buckets, larger = rest * (size + 1);

	return static_cast<int32_t>(at < larger ? at / (size + 1) + 1 : rest + (at - larger) / size + 1);
}

/* ---- functions that hand on the value of another row --------------------------------------- */

/* Lag and Lead: the row so far behind, if it is in the partition, else WINDOW_NO_ROW. */
GPUVM_HD uint64_t
window_row_at(uint64_t row, int64_t distance, uint64_t part_start, uint64_t part_end)
{
	const uint64_t at = row + static_cast<uint64_t>(distance);

	/* one below 0 is above all */
	return at >= part_start && at < part_end ? at : WINDOW_NO_ROW;
}

/* FirstValue, LastValue and NthValue of a frame. */
GPUVM_HD uint64_t
window_row_of_frame(WindowFn fn, uint64_t nth, uint64_t head, uint64_t tail)
{
	if (fn == WindowFn::LastValue)
		return head < tail ? tail - 1 : WINDOW_NO_ROW;

	const uint64_t wanted = fn == WindowFn::FirstValue ? 1 : nth;

	return wanted <= tail - head ? head + wanted - 1 : WINDOW_NO_ROW;
}

/* A default as the column's values have it: it is the bits of a double, whatever float they are. */
GPUVM_HD uint64_t
window_default_bits(Type type, int64_t value)
{
	if (type != Type::F32)
		return static_cast<uint64_t>(value);

	const float narrow = static_cast<float>(bits_double(static_cast<uint64_t>(value)));
	uint32_t	bits;

	memcpy(&bits, &narrow, sizeof(bits));
	return bits;
}

}  // namespace gpuvm

#endif
