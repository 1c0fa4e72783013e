/*
 * window_reference.h: window functions as PostgreSQL's manual defines them, row by row over whole partitions, and rows
 * to run them over. Nothing is shared with src/vm but the specification.
 */
#ifndef GPUVM_TESTS_WINDOW_REFERENCE_H
#define GPUVM_TESTS_WINDOW_REFERENCE_H

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "tablet/wide_halves.h"
#include "vm/window.h"

namespace window_reference {

using namespace gpuvm;

/* A value: an integer, or a float if its column is one. */
struct Value
{
	bool		null = true;
	int128		number = 0;
	double		real = 0;
};

inline Value none() { return Value{}; }
inline Value number(int128 v) { return Value{false, v, 0}; }
inline Value real(double v) { return Value{false, 0, v}; }

struct Column
{
	Type		type;
	std::vector<Value> values;
	bool is_float() const { return type_is_float(type); }
};

using Table = std::vector<Column>;

/* PostgreSQL's order of values that are not null. */
inline int
compare(bool is_float, const Value &a, const Value &b)
{
	if (!is_float)
		return (a.number > b.number) - (a.number < b.number);
	if (std::isnan(a.real) || std::isnan(b.real))
		return static_cast<int>(std::isnan(a.real)) - static_cast<int>(std::isnan(b.real));
	return (a.real > b.real) - (a.real < b.real);
}

/* In the order of a key: nulls first or last, whatever the direction. */
inline int
compare_ordered(bool is_float, bool desc, bool nulls_first, const Value &a, const Value &b)
{
	if (a.null || b.null)
		return a.null && b.null ? 0 : a.null == nulls_first ? -1 : 1;

	const int	c = compare(is_float, a, b);

	return desc ? -c : c;
}

/* What a key compares of a value: of a code its rank. */
inline Value
key_value(const CodeMap *ranks, const Value &v)
{
	if (ranks == nullptr || v.null)
		return v;

	const size_t code = static_cast<size_t>(v.number);

	if (v.number < 0 || code >= ranks->nentries || (ranks->nulls != nullptr && ((ranks->nulls[code / 64] >> (code % 64)) & 1)))
		return none();
	return number(ranks->type == Type::I32 ? static_cast<const int32_t *>(ranks->values)[code]
				  : static_cast<const int64_t *>(ranks->values)[code]);
}

inline int
compare_rows(const Table &table, const WindowKey *keys, uint32_t nkeys, size_t a, size_t b)
{
	for (uint32_t k = 0; k < nkeys; k++)
	{
		const Column &column = table[keys[k].column];
		const int	c = compare_ordered(column.is_float(), keys[k].desc, keys[k].nulls_first, key_value(keys[k].ranks, column.values[a]),
										key_value(keys[k].ranks, column.values[b]));

		if (c != 0)
			return c;
	}
	return 0;
}

/* The rows in the order of the keys. */
inline void
sort_table(Table *table, const std::vector<WindowKey> &keys)
{
	std::vector<size_t> order((*table)[0].values.size());
	Table		sorted = *table;

	std::iota(order.begin(), order.end(), 0);
	std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
		return compare_rows(*table, keys.data(), static_cast<uint32_t>(keys.size()), a, b) < 0;
	});
	for (size_t c = 0; c < sorted.size(); c++)
		for (size_t i = 0; i < order.size(); i++)
			sorted[c].values[i] = (*table)[c].values[order[i]];
	*table = sorted;
}

class Reference
{
public:
	Reference(const WindowSpec &spec, const Table &table) : spec_(spec), table_(table) {}

	/* Of the function, a value a row: sums and extremes of halves as numbers. */
	std::vector<Value> run(const WindowFunction &f)
	{
		const size_t n = table_[0].values.size();
		std::vector<Value> results(n);

		for (first_ = 0; first_ < n; first_ = end_)
		{
			for (end_ = first_ + 1; end_ < n && compare_rows(table_, spec_.keys, spec_.npartition, first_, end_) == 0;)
				end_++;
			group_.assign(end_ - first_, 0);
			for (size_t i = 1; i < group_.size(); i++)
				group_[i] = group_[i - 1] + !peers(first_ + i - 1, first_ + i);
			for (size_t row = first_; row < end_; row++)
				results[row] = of_row(f, row);
		}
		return results;
	}

	/* Is row j in the frame of row i, of the same partition? */
	bool in_frame(size_t i, size_t j)
	{
		const WindowFrame &frame = spec_.frame;

		return !before_start(frame, i, j) && !behind_end(frame, i, j);
	}

private:
	bool peers(size_t a, size_t b) const { return compare_rows(table_, spec_.keys + spec_.npartition, spec_.norder, a, b) == 0; }
	int128 group(size_t row) const { return static_cast<int128>(group_[row - first_]); }

	/* The order column's value that is so far before or behind the row's, in the order of the rows. */
	Value shifted(size_t row, FrameBound bound, int64_t offset) const
	{
		const WindowKey &key = spec_.keys[spec_.npartition];
		const Column &column = table_[key.column];
		Value		v = column.values[row];
		const bool	subtract = (bound == FrameBound::Preceding) != key.desc;
		const int64_t infinities[][2] = {{0, 0}, {INT32_MIN, INT32_MAX}, {INT64_MIN, INT64_MAX}};
		const int64_t *infinite = infinities[static_cast<int>(spec_.frame.unit)];
		double		distance;

		if (v.null)
			return v;
		memcpy(&distance, &offset, sizeof(distance));
		if (column.is_float())
			v.real = subtract ? v.real - distance : v.real + distance;
		else if (spec_.frame.unit == RangeUnit::Number || (v.number != infinite[0] && v.number != infinite[1]))
			v.number = subtract ? v.number - offset : v.number + offset;
		return v;
	}

	/* -1, 0, 1: where row j is to the bound of row i */
	int to_bound(FrameBound bound, int64_t offset, size_t i, size_t j, bool is_end) const
	{
		if (bound == FrameBound::CurrentRow)
			offset = 0;

		const int128 distance = bound == FrameBound::Preceding ? -static_cast<int128>(offset) : static_cast<int128>(offset);

		switch (spec_.frame.mode)
		{
			case FrameMode::Rows:
				return compare(false, number(static_cast<int128>(j) - static_cast<int128>(i)), number(distance));
			case FrameMode::Groups:
				return compare(false, number(group(j) - group(i)), number(distance));
			default:
				break;
		}
		if (bound == FrameBound::CurrentRow)
			return compare(false, number(group(j)), number(group(i)));

		const WindowKey &key = spec_.keys[spec_.npartition];
		const Column &column = table_[key.column];
		const Value &of = column.values[j];
		const Value shift = shifted(i, bound, offset);

		/* infinity less infinity: every number is within */
		if (column.is_float() && !of.null && !shift.null && std::isnan(shift.real) && !std::isnan(column.values[i].real))
			return !std::isnan(of.real) ? 0 : key.desc ? -1 : 1;
		(void) is_end;
		return compare_ordered(column.is_float(), key.desc, key.nulls_first, of, shift);
	}

	bool before_start(const WindowFrame &frame, size_t i, size_t j) const
	{
		return frame.start != FrameBound::Unbounded && to_bound(frame.start, frame.start_offset, i, j, false) < 0;
	}
	bool behind_end(const WindowFrame &frame, size_t i, size_t j) const
	{
		return frame.end != FrameBound::Unbounded && to_bound(frame.end, frame.end_offset, i, j, true) > 0;
	}

	Value of_row(const WindowFunction &f, size_t row)
	{
		const int128 rows = static_cast<int128>(end_ - first_), at = static_cast<int128>(row - first_);
		size_t		peer = row, behind = row;

		while (peer > first_ && peers(peer - 1, row))
			peer--;
		while (behind < end_ && peers(behind, row))
			behind++;
		switch (f.fn)
		{
			case WindowFn::RowNumber: return number(at + 1);
			case WindowFn::Rank: return number(static_cast<int128>(peer - first_) + 1);
			case WindowFn::DenseRank: return number(group(row) + 1);
			case WindowFn::PercentRank:
				return real(rows == 1 ? 0 : static_cast<double>(peer - first_) / static_cast<double>(rows - 1));
			case WindowFn::CumeDist: return real(static_cast<double>(behind - first_) / static_cast<double>(rows));
			case WindowFn::Ntile: return number(ntile(rows, at, f.number));
			case WindowFn::Lag: return relative(f, static_cast<int128>(row) - f.number);
			case WindowFn::Lead: return relative(f, static_cast<int128>(row) + f.number);
			default: return of_frame(f, row);
		}
	}

	/* Buckets as equal as possible, the larger ones first. */
	static int128 ntile(int128 rows, int128 at, int128 buckets)
	{
		for (int128 bucket = 1;; bucket++)
		{
			const int128 size = rows / buckets + (bucket <= rows % buckets);

			if (at < size)
				return bucket;
			at -= size;
		}
	}

	Value relative(const WindowFunction &f, int128 row) const
	{
		const Column &column = table_[f.column];
		double		d;

		if (row >= static_cast<int128>(first_) && row < static_cast<int128>(end_))
			return column.values[static_cast<size_t>(row)];
		memcpy(&d, &f.default_value, sizeof(d));
		return !f.has_default ? none() : column.is_float() ? real(d) : number(f.default_value);
	}

	bool passes(const WindowFunction &f, size_t row) const
	{
		if (f.filter == WINDOW_NONE)
			return true;
		return !table_[f.filter].values[row].null && table_[f.filter].values[row].number != 0;
	}

	Value of_frame(const WindowFunction &f, size_t row)
	{
		std::vector<size_t> frame;

		for (size_t j = first_; j < end_; j++)
			if (in_frame(row, j) && passes(f, j))
				frame.push_back(j);
		if (f.fn == WindowFn::FirstValue || f.fn == WindowFn::LastValue || f.fn == WindowFn::NthValue)
		{
			const size_t at = f.fn == WindowFn::FirstValue ? 0 : f.fn == WindowFn::LastValue ? frame.size() - 1
				: static_cast<size_t>(f.number) - 1;

			return at < frame.size() ? table_[f.column].values[frame[at]] : none();
		}

		std::vector<Value> values;
		int128		n = 0;

		for (size_t j : frame)
		{
			if (f.column != WINDOW_NONE && table_[f.column].values[j].null)
				continue;
			n++;
			if (f.column != WINDOW_NONE)
				values.push_back(argument(f, j));
		}
		return f.fn == WindowFn::Count ? number(n) : aggregate(f, values);
	}

	Value argument(const WindowFunction &f, size_t row) const
	{
		const Value &v = table_[f.column].values[row];

		return f.high == WINDOW_NONE ? v
			: number(wide_value(static_cast<int64_t>(table_[f.high].values[row].number), static_cast<int64_t>(v.number)));
	}

	Value aggregate(const WindowFunction &f, const std::vector<Value> &values) const
	{
		const bool	is_float = table_[f.column].is_float();
		Value		result = values.empty() ? none() : values[0];

		for (size_t i = 1; i < values.size(); i++)
		{
			const Value &v = values[i];

			if (f.fn == WindowFn::Sum)
			{
				result.number += v.number;
				result.real += v.real;
			}
			else if (f.fn == WindowFn::BoolAnd || f.fn == WindowFn::BoolOr)
				result.number = f.fn == WindowFn::BoolAnd ? result.number && v.number : result.number || v.number;
			else
			{
				const CodeMap *ranks = f.map == WINDOW_NONE ? nullptr : &spec_.maps[f.map];
				const int	c = compare(is_float, key_value(ranks, v), key_value(ranks, result));

				result = (f.fn == WindowFn::Min ? c < 0 : c > 0) ? v : result;
			}
		}
		return result;
	}

	const WindowSpec &spec_;
	const Table &table_;
	size_t		first_ = 0, end_ = 0;	/* the partition */
	std::vector<size_t> group_;	/* of its rows */
};

}  // namespace window_reference

#endif
