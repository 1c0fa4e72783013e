/* window.cc: see window.h. */
#include "vm/window.h"

#include <algorithm>
#include <cstring>

namespace gpuvm {

static bool
ranks_codes(Type column, const CodeMap &map)
{
	return column == Type::I32 && (map.type == Type::I32 || map.type == Type::I64);
}

static bool
is_value(Type type)
{
	return type >= Type::Bool && type <= Type::F64;
}

/* An offset that PostgreSQL would not take. */
static bool
is_bad_offset(int64_t offset, bool is_float)
{
	double		value;

	if (!is_float)
		return offset < 0;
	memcpy(&value, &offset, sizeof(value));
	return !(value >= 0);
}

static const char *
check_frame(const WindowSpec &spec, const Type *types)
{
	const WindowFrame &frame = spec.frame;
	const bool	offsets = has_offset(frame.start) || has_offset(frame.end);
	bool		is_float = false;

	if (frame.mode > FrameMode::Groups || frame.start > FrameBound::Following || frame.end > FrameBound::Following ||
		frame.unit > RangeUnit::Timestamp)
		return "a frame is malformed";
	if (frame.mode == FrameMode::Range && offsets)
	{
		if (spec.norder != 1)
			return "a range is not over one column";

		const WindowKey &key = spec.keys[spec.npartition];
		const Type	type = types[key.column];

		is_float = type_is_float(type);
		if ((!is_float && !type_is_int(type)) || key.ranks != nullptr || key.text != nullptr ||
			(frame.unit == RangeUnit::Date && type != Type::I32) ||
			(frame.unit == RangeUnit::Timestamp && type != Type::I64))
			return "a range is over a column that has none";
	}
	if ((has_offset(frame.start) && is_bad_offset(frame.start_offset, is_float)) ||
		(has_offset(frame.end) && is_bad_offset(frame.end_offset, is_float)))
		return "a frame's offset is negative or no number";
	return nullptr;
}

/* The result's type, where it is not the argument's. */
static Type
fixed_type(WindowFn fn)
{
	switch (fn)
	{
		case WindowFn::RowNumber: case WindowFn::Rank: case WindowFn::DenseRank: case WindowFn::Count: return Type::I64;
		case WindowFn::PercentRank: case WindowFn::CumeDist: return Type::F64;
		case WindowFn::Ntile: return Type::I32;
		case WindowFn::BoolAnd: case WindowFn::BoolOr: return Type::Bool;
		default: return Type::None;
	}
}

static bool
gives_type(const WindowFunction &function, Type argument)
{
	const Type	fixed = fixed_type(function.fn);

	if (fixed != Type::None)
		return function.type == fixed;
	if (function.fn == WindowFn::Sum && type_is_float(argument))
		return function.type == Type::F64;
	if (function.fn == WindowFn::Sum)
		return function.type == Type::I64 || function.type == Type::I128;
	return function.type == (function.high != WINDOW_NONE ? Type::I128 : argument);
}

static const char *
check_function(const WindowSpec &spec, const WindowFunction &function, const Type *types, uint32_t ncols)
{
	const WindowFn fn = function.fn;
	const bool	aggregate = takes_filter(fn), value = picks_value(fn);
	const bool	needs = value || (aggregate && fn != WindowFn::Count);

	if (fn > WindowFn::BoolOr || function.has_default > 1 || function.reserved != 0)
		return "a window function is unknown";
	if (function.column == WINDOW_NONE ? needs
		: function.column >= ncols || !is_value(types[function.column]) || !(needs || aggregate))
		return "a window function's argument is missing, or too much";

	const Type	type = function.column != WINDOW_NONE ? types[function.column] : Type::None;
	const bool	extreme = fn == WindowFn::Min || fn == WindowFn::Max;

	if (function.high != WINDOW_NONE &&
		(function.high >= ncols || types[function.high] != Type::I64 || type != Type::I64 ||
		 !(extreme || fn == WindowFn::Sum)))
		return "a window function's halves are none";
	if (function.filter != WINDOW_NONE &&
		(function.filter >= ncols || types[function.filter] != Type::Bool || !aggregate))
		return "a window function's filter is no condition";
	if (function.map != WINDOW_NONE &&
		(!extreme || function.map >= spec.nmaps || function.high != WINDOW_NONE ||
		 !ranks_codes(type, spec.maps[function.map])))
		return "a window function's ranks are of what has none";
	if (((extreme || fn == WindowFn::Sum) && type == Type::Bool) ||
		((fn == WindowFn::BoolAnd || fn == WindowFn::BoolOr) && type != Type::Bool) || !gives_type(function, type))
		return "a window function is of types that it does not have";
	if (fn == WindowFn::Ntile && (function.number < 1 || function.number > INT32_MAX))
		return "ntile has no buckets";
	if (fn == WindowFn::NthValue && function.number < 1)
		return "nth_value is of no row";
	if ((fn == WindowFn::Lag || fn == WindowFn::Lead) && (function.number < INT32_MIN || function.number > INT32_MAX))
		return "lag or lead reaches too far";
	return nullptr;
}

const char *
check_window(const WindowSpec &spec, const Type *types, uint32_t ncols)
{
	for (uint32_t k = 0; k < spec.npartition + spec.norder; k++)
	{
		const WindowKey &key = spec.keys[k];

		if (key.column >= ncols || !is_value(types[key.column]))
			return "a window's key is a column that the set does not have";
		if (key.ranks != nullptr && !ranks_codes(types[key.column], *key.ranks))
			return "a window's ranks are of what has none";
		if (key.text != nullptr && (key.ranks != nullptr || types[key.column] != Type::I64))
			return "a window's key is texts that are none";
	}
	if (spec.nfunctions == 0 || spec.nfunctions > WINDOW_MAX_FUNCTIONS)
		return "a window has no functions, or too many";

	const char *wrong = check_frame(spec, types);

	for (uint32_t f = 0; f < spec.nfunctions && wrong == nullptr; f++)
		wrong = check_function(spec, spec.functions[f], types, ncols);
	return wrong;
}

int
window_result_types(const WindowFunction &function, Type *types)
{
	if (function.type != Type::I128)
	{
		types[0] = function.type;
		return 1;
	}
	types[0] = types[1] = Type::I64;
	return 2;
}

bool
asks_peers(const WindowSpec &spec)
{
	const bool	frames = asks_peers(spec.frame.mode, spec.frame.start) || asks_peers(spec.frame.mode, spec.frame.end);

	return std::any_of(spec.functions, spec.functions + spec.nfunctions, [=](const WindowFunction &f) {
		return asks_frame(f.fn) ? frames : f.fn >= WindowFn::Rank && f.fn <= WindowFn::CumeDist;
	});
}

}  // namespace gpuvm
