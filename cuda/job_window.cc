/* job_window.cc: see job_window.h. */
#include "job_window.h"

#include <algorithm>
#include <cstring>

#include "failure.h"
#include "vm/result_layout.h"

namespace gpuvm {
namespace cuda {

/* The request of a job that has none. */
static const DeviceJobRequest NO_REQUEST = {};

/* ---- what the device computes ------------------------------------------------------------ */

/* How far values of the column may be from 0. */
static uint64_t
magnitude(const ColumnSummary &column)
{
	const uint64_t low = column.min < 0 ? ~static_cast<uint64_t>(column.min) + 1 : static_cast<uint64_t>(column.min);
	const uint64_t high = column.max < 0 ? ~static_cast<uint64_t>(column.max) + 1 : static_cast<uint64_t>(column.max);

	/* least above greatest: there is none */
	return column.min > column.max ? 0 : std::max(low, high);
}

static const char *
refuse_function(const StoredSet &set, const WindowFunction &function)
{
	if (function.fn == WindowFn::Sum && type_is_float(set.columns()[function.column].type))
		return "sums of floats over frames are computed by the CPU";
	/* where the CPU would flag it, it is to do so: other rows than those that count are looked at here */
	if (function.fn == WindowFn::Sum && function.high != WINDOW_NONE &&
		!window_halves_fit(magnitude(set.columns()[function.high]) + 1, set.rows()))
		return "sums of such wide numbers are computed by the CPU";
	return nullptr;
}

const char *
refuse_window(const StoredSet &set, const WindowSpec &spec)
{
	const char *why = nullptr;

	if (set.nparts() > 1)
		return "a result set in parts is not sorted";
	for (uint32_t k = 0; k < spec.npartition + spec.norder; k++)
		if (spec.keys[k].text != nullptr)
			return "partitions and peers of texts are told apart by the CPU";
	for (uint32_t f = 0; f < spec.nfunctions && why == nullptr; f++)
		why = refuse_function(set, spec.functions[f]);
	return why;
}

WindowJob::WindowJob(CudaDevice *device, PinnedArena *arena, StoredSet *set, const WindowSpec &spec, DeviceJobIo *io, DeviceJobFigures *figures)
	: DeviceJob(device, arena, NO_REQUEST, io, figures), of_(set), spec_(spec), n_(static_cast<uint32_t>(set->rows()))
{
	for (uint32_t f = 0; f < spec.nfunctions; f++)
	{
		Type		types[2];

		types_.insert(types_.end(), types, types + window_result_types(spec.functions[f], types));
	}
}

/* Work for the device, behind what it has. False: the job is to stop. */
bool
WindowJob::enqueue(const std::function<void()> &work)
{
	while (flights_.size() >= IN_FLIGHT)
		(void) land();
	if (stopped())
		return false;
	begin_flight(*open_flight(0, 0));
	work();
	close_flight();
	figures_->slices++;
	return true;
}

/* ---- columns ------------------------------------------------------------------------------- */

RowColumn
WindowJob::column(uint32_t number) const
{
	return number == WINDOW_NONE ? RowColumn{nullptr, nullptr, Type::None} : of_->part(0)->column[number];
}

/* On the device. */
WindowRanks
WindowJob::send_ranks(const CodeMap &map)
{
	const uint64_t values = align_up(map.nentries * static_cast<uint64_t>(type_width(map.type)), 16);
	const uint64_t bits = map.nulls != nullptr ? (static_cast<uint64_t>(map.nentries) + 63) / 64 * sizeof(uint64_t) : 0;
	WindowRanks ranks = window_ranks(map);

	for (const auto &[known, sent] : ranks_sent_)
		if (known == &map)
			return sent;

	char	   *to = allocate(std::max<uint64_t>(values + bits, 16));

	ranks_from_.emplace_back(values + bits);
	if (values != 0)
		memcpy(ranks_from_.back().data(), map.values, map.nentries * static_cast<uint64_t>(type_width(map.type)));
	if (bits != 0)
		memcpy(ranks_from_.back().data() + values, map.nulls, bits);
	if (values + bits != 0)
		check(cudaMemcpyAsync(to, ranks_from_.back().data(), values + bits, cudaMemcpyHostToDevice, lane_->stream), "sending ranks");
	figures_->bytes_moved += values + bits;
	ranks.values = to;
	ranks.nulls = bits != 0 ? reinterpret_cast<const uint64_t *>(to + values) : nullptr;
	ranks_sent_.emplace_back(&map, ranks);
	return ranks;
}

WindowArgumentColumns
WindowJob::argument(const Input &input)
{
	WindowArgumentColumns argument = {column(input.column), column(input.high), column(input.filter), {}};

	if (input.map != WINDOW_NONE)
		argument.ranks = send_ranks(spec_.maps[input.map]);
	return argument;
}

/* Positions are never null. */
static bool
gives_nulls(WindowFn fn)
{
	return fn >= WindowFn::Lag && fn != WindowFn::Count;
}

void
WindowJob::make_columns()
{
	uint8_t		nullable[PROGRAM_MAX_COLUMNS / 8] = {};
	uint32_t	c = 0;

	for (uint32_t f = 0; f < spec_.nfunctions; f++)
	{
		Type		types[2];

		for (int i = window_result_types(spec_.functions[f], types); i > 0; i--, c++)
			if (gives_nulls(spec_.functions[f].fn))
				nullable[c / 8] |= static_cast<uint8_t>(1 << c % 8);
	}
	results_bytes_ = row_set_bytes(types_.data(), nullable, c, n_);
	results_memory_ = allocate(results_bytes_);
	results_ = row_set(types_.data(), nullable, c, n_, results_memory_);
	errors_ = reinterpret_cast<uint32_t *>(allocate(sizeof(uint32_t)));
	check(cudaMemsetAsync(errors_, 0, sizeof(uint32_t), lane_->stream), "starting the job");
}

/* ---- rows ---------------------------------------------------------------------------------- */

WindowBits
WindowJob::allocate_bits()
{
	return window_bits(n_, allocate(window_bits_bytes(n_)));
}

void
WindowJob::find_rows()
{
	WindowKeyColumns keys = {};

	keys.npartition = spec_.npartition;
	keys.n = spec_.npartition + spec_.norder;
	for (uint32_t k = 0; k < keys.n; k++)
	{
		keys.column[k] = column(spec_.keys[k].column);
		if (spec_.keys[k].ranks != nullptr)
			keys.ranks[k] = send_ranks(*spec_.keys[k].ranks);
	}
	rows_.n = n_;
	rows_.parts.bits = allocate_bits();
	rows_.parts.rows = reinterpret_cast<uint32_t *>(allocate(n_ * sizeof(uint32_t)));
	if (asks_peers(spec_))
	{
		rows_.peers.bits = allocate_bits();
		rows_.peers.rows = reinterpret_cast<uint32_t *>(allocate(n_ * sizeof(uint32_t)));
	}
	check(find_window_starts(keys, n_, rows_.parts, rows_.peers, lane_->stream), "looking for partitions");
}

void
WindowJob::find_frames()
{
	const WindowFrame &frame = spec_.frame;
	WindowBoundary start = {frame.mode, frame.start, frame.start_offset, {}, {}}, end = {frame.mode, frame.end, frame.end_offset, {}, {}};

	if (frame.mode == FrameMode::Range && (has_offset(frame.start) || has_offset(frame.end)))
	{
		start.column = end.column = column(spec_.keys[spec_.npartition].column);
		start.range = window_range(spec_, false);
		end.range = window_range(spec_, true);
	}
	rows_.heads = reinterpret_cast<uint32_t *>(allocate(n_ * sizeof(uint32_t)));
	rows_.tails = reinterpret_cast<uint32_t *>(allocate(n_ * sizeof(uint32_t)));
	check(find_window_frames(rows_, start, end, errors_, lane_->stream), "looking for frames");
}

/* ---- arguments ------------------------------------------------------------------------------- */

void
WindowJob::make_sums(Input *input)
{
	const ColumnSummary &of = of_->columns()[input->column];

	/* sums of all rows are in 64 bits where their greatest value's would be */
	input->wide = input->high != WINDOW_NONE || magnitude(of) > static_cast<uint64_t>(INT64_MAX) / n_;

	char	   *sums = allocate((n_ + uint64_t{1}) * (input->wide ? sizeof(int128) : sizeof(int64_t)));
	const uint64_t temp_bytes = window_sums_temp_bytes(input->wide, n_);

	if (temp_bytes == 0)
		throw Refusal{"the device does not add up so many rows"};

	char	   *temp = allocate(temp_bytes);

	check(sum_window_rows(argument(*input), input->wide, n_, sums, temp, lane_->stream), "adding up");
	release(temp);
	input->sums = sums;
}

void
WindowJob::make_keys(Input *input)
{
	const ColumnSummary &of = of_->columns()[input->column];
	const WindowArgumentColumns from = argument(*input);
	WindowKeys &keys = input->keys;

	keys = {};
	keys.wide = input->high != WINDOW_NONE || from.ranks.wide;
	keys.max = input->max;
	keys.ranked = from.ranks.values != nullptr;
	if (of.flags & CHUNK_HAS_NEG_ZERO)
	{
		keys.zeroes = reinterpret_cast<uint32_t *>(allocate(sizeof(uint32_t)));
		check(cudaMemsetAsync(keys.zeroes, 0, sizeof(uint32_t), lane_->stream), "looking for zeroes");
		check(find_window_zeroes(from, n_, keys.zeroes, lane_->stream), "looking for zeroes");
	}
	if (spec_.frame.start != FrameBound::Unbounded)
	{
		check(make_window_tree(from, n_, allocate(window_tree_bytes(keys.wide, n_)), &keys, lane_->stream), "looking for extremes");
		return;
	}

	const uint64_t temp_bytes = window_keys_temp_bytes(keys.wide, n_);

	if (temp_bytes == 0)
		throw Refusal{"the device does not scan so many rows"};

	char	   *memory = allocate(window_keys_bytes(keys.wide, n_)), *temp = allocate(temp_bytes);

	check(find_window_keys(from, rows_, memory, temp, &keys, lane_->stream), "looking for extremes");
	release(temp);
}

void
WindowJob::make(Input *input)
{
	switch (input->kind)
	{
		case InputKind::Sums: make_sums(input); return;
		case InputKind::Keys: make_keys(input); return;
		case InputKind::Counts:
			if (argument(*input).counts_all())
				return;
			break;
		case InputKind::Trues:
			break;
	}
	input->bits = allocate_bits();
	check(mark_window_rows(argument(*input), input->kind == InputKind::Trues, n_, input->bits, lane_->stream), "counting");
}

const WindowJob::Input &
WindowJob::input(InputKind kind, const WindowFunction &function)
{
	const bool	values = kind == InputKind::Sums || kind == InputKind::Keys;
	Input		wanted = {};

	wanted.kind = kind;
	wanted.column = function.column;
	wanted.high = values ? function.high : WINDOW_NONE;
	wanted.filter = function.filter;
	wanted.map = values ? function.map : WINDOW_NONE;
	wanted.max = kind == InputKind::Keys && function.fn == WindowFn::Max;
	for (const Input &known : inputs_)
		if (known.is_like(wanted))
			return known;
	make(&wanted);
	inputs_.push_back(wanted);
	return inputs_.back();
}

/* ---- functions --------------------------------------------------------------------------------- */

/* `result`: its first column. */
void
WindowJob::emit(const WindowFunction &function, uint32_t result)
{
	WindowCallColumns call = {};

	call.function = function;
	call.argument = column(function.column);
	call.to = results_.column[result];
	if (function.type == Type::I128)
		call.to_high = results_.column[result + 1];
	call.rows = rows_;
	if (takes_filter(function.fn))
		call.counted = input(InputKind::Counts, function).bits;
	if (function.fn == WindowFn::Sum)
	{
		const Input &sums = input(InputKind::Sums, function);

		call.sums = sums.sums;
		call.wide_sums = sums.wide;
	}
	else if (function.fn == WindowFn::Min || function.fn == WindowFn::Max)
		call.keys = input(InputKind::Keys, function).keys;
	else if (function.fn == WindowFn::BoolAnd || function.fn == WindowFn::BoolOr)
		call.trues = input(InputKind::Trues, function).bits;
	check(emit_window_function(call, errors_, lane_->stream), "computing a window function");
}

/* What is known of the columns, 0 under their nulls, and the errors. False: the job is to stop. */
bool
WindowJob::store()
{
	const uint64_t bytes = types_.size() * sizeof(SetColumnFacts);
	SetColumnFacts *facts = reinterpret_cast<SetColumnFacts *>(allocate(bytes));
	std::vector<SetColumnSource> sources;

	for (size_t c = 0; c < types_.size(); c++)
		sources.push_back(SetColumnSource{static_cast<uint8_t>(c), false, SetForm::Plain});

	const bool	goes_on = enqueue([&] {
		/* in place */
		check(store_set_columns(results_, sources.data(), nullptr, n_, results_, facts, lane_->stream), "storing a result set");
		check(cudaMemcpyAsync(lane_->outcomes->set_columns, facts, bytes, cudaMemcpyDeviceToHost, lane_->stream), "storing a result set");
		check(cudaMemcpyAsync(&lane_->outcomes->window_errors, errors_, sizeof(uint32_t), cudaMemcpyDeviceToHost, lane_->stream), "storing a result set");
	});

	while (!flights_.empty())
		(void) land();
	return goes_on && !stopped();
}

void
WindowJob::run()
{
	uint32_t	result = 0;

	figures_->rows_in = figures_->rows_out = n_;
	if (n_ == 0)
	{
		of_->add_columns(types_, results_, nullptr, 0, nullptr);
		return;
	}
	device_->use();
	begin(false);
	make_columns();
	if (!enqueue([&] { find_rows(); }))
		return;
	if (std::any_of(spec_.functions, spec_.functions + spec_.nfunctions, [](const WindowFunction &f) { return asks_frame(f.fn); }) &&
		!enqueue([&] { find_frames(); }))
		return;
	for (uint32_t f = 0; f < spec_.nfunctions; f++)
	{
		Type		types[2];

		if (!enqueue([&] { emit(spec_.functions[f], result); }))
			return;
		result += static_cast<uint32_t>(window_result_types(spec_.functions[f], types));
	}
	if (!store())
		return;
	figures_->errors = lane_->outcomes->window_errors;
	if (figures_->errors != 0)
		return;
	of_->add_columns(types_, results_, results_memory_, results_bytes_, lane_->outcomes->set_columns);
	/* the memory is the set's */
	working_.erase(std::find_if(working_.begin(), working_.end(), [&](const Working &of) { return of.memory == results_memory_; }));
}

}  // namespace cuda
}  // namespace gpuvm
