/* window_random.h: random rows, and random specifications of window functions over them. */
#ifndef GPUVM_TESTS_WINDOW_RANDOM_H
#define GPUVM_TESTS_WINDOW_RANDOM_H

#include <random>
#include <string>

#include "vm/float_sum.h"
#include "window_reference.h"

namespace window_reference {

using Rng = std::mt19937_64;

constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();

/* Columns of the random tables. */
enum : uint32_t
{
	C_PART, C_PART2, C_CODE, C_I16, C_I32, C_I64, C_F32, C_F64, C_BOOL, C_LOW, C_HIGH, C_DATE, C_TIME, C_CLEAN, NCOLS
};

inline int64_t
pick(Rng &rng, int64_t lo, int64_t hi)
{
	return std::uniform_int_distribution<int64_t>(lo, hi)(rng);
}

inline int64_t
bits_of(double v)
{
	return static_cast<int64_t>(double_bits(v));
}

/* Sums of these are exact. */
inline double
random_float(Rng &rng, int64_t span)
{
	const int64_t what = pick(rng, 0, 60);

	return what == 0 ? NOT_A_NUMBER : what == 1 ? INFINITE : what == 2 ? -INFINITE : what == 3 ? -0.0 : static_cast<double>(pick(rng, -span, span)) / 4;
}

struct TableShape
{
	size_t		nrows;
	int64_t		partitions;
	int64_t		span;			/* of values */
	int			null_percent;
};

inline Table
random_table(Rng &rng, const TableShape &shape)
{
	const Type	types[NCOLS] = {Type::I32, Type::F64, Type::I32, Type::I16, Type::I32, Type::I64, Type::F32, Type::F64, Type::Bool,
		Type::I64, Type::I64, Type::I32, Type::I64, Type::F64};
	Table		table;

	for (uint32_t c = 0; c < NCOLS; c++)
	{
		Column		column = {types[c], std::vector<Value>(shape.nrows)};
		const bool	large = pick(rng, 0, 3) == 0;

		for (Value &v : column.values)
		{
			if (c != C_HIGH && pick(rng, 1, 100) <= shape.null_percent)
				continue;
			switch (c)
			{
				case C_PART: v = number(pick(rng, 1, shape.partitions)); break;
				case C_PART2: v = real(pick(rng, 0, 5) == 0 ? NOT_A_NUMBER : pick(rng, 0, 1) ? 0.0 : -0.0); break;
				case C_CODE: v = number(pick(rng, 0, 9)); break;
				case C_I64: v = number(large ? static_cast<int64_t>(rng()) : pick(rng, -shape.span, shape.span)); break;
				case C_F32: case C_F64: v = real(random_float(rng, shape.span)); break;
				case C_CLEAN: v = real(static_cast<double>(pick(rng, 1, shape.span)) / 4); break;
				case C_BOOL: v = number(pick(rng, 0, 1)); break;
				case C_LOW: v = number(pick(rng, 0, WIDE_LOW_MASK)); break;
				case C_DATE: v = number(pick(rng, 0, 20) == 0 ? (pick(rng, 0, 1) ? INT32_MAX : INT32_MIN) : pick(rng, -shape.span, shape.span)); break;
				case C_TIME: v = number(pick(rng, 0, 20) == 0 ? (pick(rng, 0, 1) ? INT64_MAX : INT64_MIN) : pick(rng, -shape.span, shape.span) * 1000000); break;
				default: v = number(pick(rng, -std::min<int64_t>(shape.span, 30000), std::min<int64_t>(shape.span, 30000))); break;
			}
		}
		table.push_back(column);
	}
	for (size_t i = 0; i < shape.nrows; i++)
		table[C_HIGH].values[i] = table[C_LOW].values[i].null ? none() : number(pick(rng, -100000, 100000));
	return table;
}

/* A specification and all that it points to. */
struct Random
{
	std::vector<WindowKey> keys;
	std::vector<WindowFunction> functions;
	std::vector<int32_t> ranks;
	std::vector<int64_t> wide_ranks;
	uint64_t	no_rank = uint64_t{1} << 9;
	CodeMap		maps[2];
	WindowSpec	spec = {};

	explicit Random(Rng &rng)
	{
		for (int i = 0; i < 10; i++)
		{
			ranks.push_back(static_cast<int32_t>((i * 7 + 3) % 10));
			wide_ranks.push_back(int64_t{(i * 3 + 1) % 10} << 40);
		}
		maps[0] = CodeMap{Type::I32, false, 10, ranks.data(), &no_rank, {}};
		maps[1] = CodeMap{Type::I64, false, 10, wide_ranks.data(), nullptr, {}};
		spec.maps = maps;
		spec.nmaps = 2;
		make_keys(rng);
		make_frame(rng);
	}

	void make_keys(Rng &rng)
	{
		const uint32_t partition[] = {C_PART, C_PART2, C_CODE}, order[] = {C_CODE, C_I16, C_I32, C_I64, C_F32, C_F64, C_BOOL, C_DATE, C_TIME};

		spec.npartition = static_cast<uint32_t>(pick(rng, 0, 2));
		spec.norder = static_cast<uint32_t>(pick(rng, 0, 6) < 4 ? 1 : pick(rng, 0, 3));
		for (uint32_t k = 0; k < spec.npartition + spec.norder; k++)
		{
			const uint32_t column = k < spec.npartition ? partition[pick(rng, 0, 2)] : order[pick(rng, 0, 8)];

			keys.push_back(WindowKey{column, pick(rng, 0, 1) != 0, pick(rng, 0, 1) != 0,
									 column == C_CODE && pick(rng, 0, 1) ? &maps[pick(rng, 0, 1)] : nullptr, nullptr});
		}
		spec.keys = keys.data();
	}

	int64_t random_offset(Rng &rng)
	{
		const int64_t what = pick(rng, 0, 12);
		const bool	of_float = spec.frame.mode == FrameMode::Range && (order_column() == C_F32 || order_column() == C_F64);

		if (of_float)
			return bits_of(what == 0 ? INFINITE : what == 1 ? 0.0 : static_cast<double>(pick(rng, 0, 40)) / 4);
		if (spec.frame.mode == FrameMode::Range && order_column() == C_TIME)
			return pick(rng, 0, 20) * 1000000;
		if (spec.frame.unit == RangeUnit::Date)
			return pick(rng, 0, 10);
		return what == 0 ? INT64_MAX : what == 1 ? 0 : pick(rng, 0, 10);
	}

	uint32_t order_column() const { return spec.norder > 0 ? keys[spec.npartition].column : WINDOW_NONE; }

	void make_frame(Rng &rng)
	{
		WindowFrame &frame = spec.frame;
		const uint32_t column = order_column();
		const bool	ranges = spec.norder == 1 && column != C_CODE && column != C_BOOL;

		frame.mode = static_cast<FrameMode>(pick(rng, 0, 2));
		frame.start = static_cast<FrameBound>(pick(rng, 0, 3));
		frame.end = static_cast<FrameBound>(pick(rng, 0, 3));
		if (frame.mode == FrameMode::Range && !ranges && (has_offset(frame.start) || has_offset(frame.end)))
			frame.start = frame.end = FrameBound::CurrentRow;
		if (frame.mode == FrameMode::Range && (has_offset(frame.start) || has_offset(frame.end)))
			frame.unit = column == C_DATE ? RangeUnit::Date : column == C_TIME ? RangeUnit::Timestamp : RangeUnit::Number;
		frame.start_offset = random_offset(rng);
		frame.end_offset = random_offset(rng);
	}

	void add(WindowFn fn, Type type, uint32_t column = WINDOW_NONE, int64_t n = 0)
	{
		WindowFunction f = {};

		f.fn = fn;
		f.type = type;
		f.column = column;
		f.high = f.filter = f.map = WINDOW_NONE;
		f.number = n;
		functions.push_back(f);
	}

	WindowFunction &last() { return functions.back(); }

	void add_all(Rng &rng, const Table &table)
	{
		const uint32_t integers[] = {C_I16, C_I32, C_I64}, floats[] = {C_F32, C_F64};

		add(WindowFn::RowNumber, Type::I64);
		add(WindowFn::Rank, Type::I64);
		add(WindowFn::DenseRank, Type::I64);
		add(WindowFn::PercentRank, Type::F64);
		add(WindowFn::CumeDist, Type::F64);
		add(WindowFn::Ntile, Type::I32, WINDOW_NONE, pick(rng, 1, 7));
		for (WindowFn fn : {WindowFn::Lag, WindowFn::Lead, WindowFn::FirstValue, WindowFn::LastValue, WindowFn::NthValue})
		{
			const uint32_t column = static_cast<uint32_t>(pick(rng, 0, NCOLS - 1));

			add(fn, table[column].type, column, fn == WindowFn::NthValue ? pick(rng, 1, 4) : pick(rng, -3, 5));
			last().has_default = fn <= WindowFn::Lead && pick(rng, 0, 1);
			last().default_value = table[column].is_float() ? bits_of(0.5) : 1;
		}
		add(WindowFn::Count, Type::I64);
		add(WindowFn::Count, Type::I64, static_cast<uint32_t>(pick(rng, 0, NCOLS - 1)));
		for (uint32_t column : integers)
		{
			add(WindowFn::Sum, Type::I128, column);
			add(WindowFn::Min, table[column].type, column);
			add(WindowFn::Max, table[column].type, column);
		}
		add(WindowFn::Sum, Type::I64, C_I32);
		for (uint32_t column : floats)
			add(WindowFn::Sum, Type::F64, column);
		add(WindowFn::Min, Type::F64, C_CLEAN);
		add(WindowFn::Max, Type::F64, C_CLEAN);
		for (WindowFn fn : {WindowFn::Sum, WindowFn::Min, WindowFn::Max})
		{
			add(fn, Type::I128, C_LOW);
			last().high = C_HIGH;
		}
		add(WindowFn::Min, Type::I32, C_CODE);
		last().map = 1;
		add(WindowFn::Max, Type::I32, C_CODE);
		last().map = 1;
		add(WindowFn::BoolAnd, Type::Bool, C_BOOL);
		add(WindowFn::BoolOr, Type::Bool, C_BOOL);
		while (functions.size() > WINDOW_MAX_FUNCTIONS)
			functions.erase(functions.begin() + pick(rng, 0, static_cast<int64_t>(functions.size()) - 1));
		for (WindowFunction &f : functions)
			if (takes_filter(f.fn) && pick(rng, 0, 3) == 0)
				f.filter = C_BOOL;
		spec.functions = functions.data();
		spec.nfunctions = static_cast<uint32_t>(functions.size());
	}

	std::string show() const
	{
		std::string s = "mode " + std::to_string(static_cast<int>(spec.frame.mode)) + " start " + std::to_string(static_cast<int>(spec.frame.start)) +
			" " + std::to_string(spec.frame.start_offset) + " end " + std::to_string(static_cast<int>(spec.frame.end)) + " " +
			std::to_string(spec.frame.end_offset) + " npartition " + std::to_string(spec.npartition) + " keys";

		for (const WindowKey &key : keys)
			s += " " + std::to_string(key.column) + (key.desc ? " desc" : "") + (key.nulls_first ? " nulls first" : "") + (key.ranks ? " ranked" : "");
		return s;
	}
};

}  // namespace window_reference

#endif
