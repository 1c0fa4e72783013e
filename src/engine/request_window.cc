/* request_window.cc: what a window job asks for, copied and checked. */
#include <atomic>

#include "engine/request.h"

namespace gpuvm {

static const char *
read_keys(const JobWindow &from, Request *request)
{
	RequestWindow &window = request->window;

	for (uint32_t k = 0; k < from.npartition + from.norder; k++)
	{
		const JobOrderKey &key = from.keys[k];
		const bool	ranks = (key.flags & ORDER_RANKS) != 0, text = (key.flags & ORDER_TEXT) != 0;
		WindowKey	to = {key.column, (key.flags & ORDER_DESC) != 0, (key.flags & ORDER_NULLS_FIRST) != 0};

		if (key.flags & ~(ORDER_DESC | ORDER_NULLS_FIRST | ORDER_RANKS | ORDER_TEXT))
			return "a window is sorted in an unknown way";
		if ((ranks && key.map >= request->maps.size()) || (text && key.map >= request->text_orders.size()))
			return "a map or a text order is missing";
		if (ranks)
			to.ranks = &request->maps[key.map];
		if (text)
			to.text = &request->text_orders[key.map];
		window.keys.push_back(to);
	}
	window.spec.keys = window.keys.data();
	window.spec.npartition = from.npartition;
	window.spec.norder = from.norder;
	return nullptr;
}

/* References are not numbers. A column that is null everywhere may be both. */
static const char *
check_references(const RequestWindow &window)
{
	const WindowSpec &spec = window.spec;
	const std::vector<ColumnSummary> &columns = window.set->columns();
	auto		has_values = [&](uint32_t column) { return columns[column].null_count < window.set->nrows(); };
	auto		is_variable = [&](uint32_t column) { return (columns[column].flags & COLUMN_VARIABLE) != 0; };
	auto		is_reference = [&](uint32_t column) {
		return column != WINDOW_NONE && is_variable(column) && has_values(column);
	};

	for (const WindowKey &key : window.keys)
		if (key.text != nullptr && has_values(key.column) && !is_variable(key.column))
			return "a window's key is texts that are none";
	if (spec.frame.mode == FrameMode::Range && (has_offset(spec.frame.start) || has_offset(spec.frame.end)) &&
		is_reference(spec.keys[spec.npartition].column))
		return "a range is over a column that has none";
	for (const WindowFunction &f : window.functions)
		if (is_reference(f.column) && f.fn != WindowFn::Count && (!picks_value(f.fn) || f.has_default != 0))
			return "a window function is of references";
	return nullptr;
}

/* The set's columns behind those that it has. */
static const char *
make_shape(RequestWindow *window)
{
	std::vector<Type> types;
	std::vector<bool> references;

	for (const WindowFunction &f : window->functions)
	{
		Type		of[2];
		const int	n = window_result_types(f, of);

		for (int i = 0; i < n; i++)
		{
			types.push_back(of[i]);
			references.push_back(picks_value(f.fn) && (window->set->columns()[f.column].flags & COLUMN_VARIABLE) != 0);
		}
	}
	if (window->set->columns().size() + types.size() > PROGRAM_MAX_COLUMNS)
		return "a result set has too many columns";
	window->shape = SetShape(std::move(types), std::move(references));
	return window->shape.check();
}

const char *
read_window(const ArenaMap &arena, uint64_t offset, const SetStore &sets, Request *request)
{
	const JobWindow *at = arena.at<JobWindow>(offset);
	RequestWindow &window = request->window;
	std::vector<Type> types;
	const char *wrong;

	if (at == nullptr)
		return "the job's window lies outside the arena";

	const JobWindow from = *at;

	/* what is checked is what was read */
	std::atomic_signal_fence(std::memory_order_seq_cst);
	if (from.set == 0 || from.set > JOB_MAX_SETS || sets.find(from.set) == nullptr)
		return "a result set does not exist";
	if (from.npartition > JOB_MAX_ORDER || from.norder > JOB_MAX_ORDER - from.npartition ||
		from.nfunctions > WINDOW_MAX_FUNCTIONS)
		return "a window has too many keys or functions";
	window.set = sets.find(from.set);
	for (const ColumnSummary &column : window.set->columns())
		types.push_back(column.type);
	window.functions.assign(from.functions, from.functions + from.nfunctions);
	window.spec.functions = window.functions.data();
	window.spec.nfunctions = from.nfunctions;
	window.spec.frame = from.frame;
	window.spec.maps = request->maps.data();
	window.spec.nmaps = static_cast<uint32_t>(request->maps.size());
	if ((wrong = read_keys(from, request)) != nullptr ||
		(wrong = check_window(window.spec, types.data(), static_cast<uint32_t>(types.size()))) != nullptr ||
		(wrong = check_references(window)) != nullptr ||
		(wrong = make_shape(&window)) != nullptr)
		return wrong;
	if (from.known != 0)
	{
		window.known = arena.open<SetColumn>(from.known, window.shape.ncolumns() * sizeof(SetColumn), alignof(SetColumn),
											 &request->uses);
		if (window.known == nullptr)
			return "what is to be known of the result set lies outside the arena";
	}
	return nullptr;
}

}  // namespace gpuvm
