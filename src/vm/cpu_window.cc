/* cpu_window.cc: the phases of window functions (cpu_window.h). */
#include "vm/cpu_window_job.h"

namespace gpuvm {

class WindowJob
{
public:
	WindowJob(const WindowSpec &spec, const WindowColumn *columns, uint64_t nrows);

	uint64_t	bytes() const;
	uint32_t	begin_phase();
	void		run_task(uint32_t block);
	uint32_t errors() const { return errors_.load(); }

	const WindowTarget *targets = nullptr;

private:
	enum class Phase { Begin, Prepare, Emit, Done };

	template <typename Input, typename... More> Input *input(const WindowArgument &argument, More... more);
	void		add_call(const WindowFunction &function);
	void		prepare(uint32_t block);
	void		emit(uint32_t block);

	WindowSpec	spec_;
	const WindowColumn *columns_;
	uint64_t	nrows_;
	uint32_t	nblocks_;
	int			ncolumns_ = 0;	/* of the results */
	WindowRows	rows_;
	std::vector<std::unique_ptr<WindowInput>> inputs_;
	std::vector<WindowCall> calls_;
	bool		frames_ = false;	/* does any function ask for them? */
	Phase		phase_ = Phase::Begin;
	std::atomic<uint32_t> errors_{0};
};

WindowJob::WindowJob(const WindowSpec &spec, const WindowColumn *columns, uint64_t nrows)
	: spec_(spec), columns_(columns), nrows_(nrows), nblocks_(window_blocks(nrows)),
	  rows_(spec_, columns, nrows, asks_peers(spec))
{
	for (uint32_t f = 0; f < spec.nfunctions; f++)
		add_call(spec.functions[f]);
}

/* What functions share is made once. */
template <typename Input, typename... More>
Input *
WindowJob::input(const WindowArgument &argument, More... more)
{
	std::unique_ptr<Input> made(new Input(argument, nrows_, more...));

	for (const std::unique_ptr<WindowInput> &of : inputs_)
	{
		Input	   *same = dynamic_cast<Input *>(of.get());

		if (same != nullptr && same->argument() == argument && same->is_like(*made))
			return same;
	}
	inputs_.push_back(std::move(made));
	return static_cast<Input *>(inputs_.back().get());
}

void
WindowJob::add_call(const WindowFunction &function)
{
	auto		column = [this](uint32_t c) { return c == WINDOW_NONE ? nullptr : &columns_[c]; };
	const WindowArgument of = {column(function.column), nullptr, column(function.filter), nullptr};
	const WindowArgument values = {of.column, column(function.high), of.filter,
								   function.map == WINDOW_NONE ? nullptr : &spec_.maps[function.map]};
	WindowCall	call = {function, ncolumns_, of.column};
	Type		types[2];

	if (takes_filter(function.fn))
		call.counts = input<WindowCounts>(of);
	switch (function.fn)
	{
		case WindowFn::Sum:
			if (type_is_float(of.column->summary.type))
				call.floats = input<WindowFloats>(of, &rows_);
			else
				call.sums = input<WindowSums>(values);
			break;
		case WindowFn::Min:
		case WindowFn::Max:
			if (values.high != nullptr || (values.ranks != nullptr && values.ranks->type == Type::I64))
				call.wide_extremes = input<WindowExtremes<int128>>(values, function.fn == WindowFn::Max);
			else
				call.extremes = input<WindowExtremes<int64_t>>(values, function.fn == WindowFn::Max);
			break;
		case WindowFn::BoolAnd:
		case WindowFn::BoolOr:
			call.trues = input<WindowTrues>(of);
			break;
		default:
			break;
	}
	frames_ = frames_ || asks_frame(function.fn);
	ncolumns_ += window_result_types(function, types);
	calls_.push_back(call);
}

uint64_t
WindowJob::bytes() const
{
	uint64_t	bytes = WindowRows::bytes(nrows_);

	for (const std::unique_ptr<WindowInput> &of : inputs_)
		bytes += of->bytes();
	return bytes;
}

uint32_t
WindowJob::begin_phase()
{
	switch (phase_)
	{
		case Phase::Begin:
			if (nrows_ == 0)
				break;
			rows_.allocate();
			for (const std::unique_ptr<WindowInput> &of : inputs_)
				of->allocate();
			phase_ = Phase::Prepare;
			return nblocks_;
		case Phase::Prepare:
			rows_.carry();
			for (const std::unique_ptr<WindowInput> &of : inputs_)
				of->carry();
			phase_ = Phase::Emit;
			return nblocks_;
		default:
			for (const std::unique_ptr<WindowInput> &of : inputs_)
				errors_.fetch_or(of->errors());
			break;
	}
	phase_ = Phase::Done;
	return 0;
}

void
WindowJob::run_task(uint32_t block)
{
	if (phase_ == Phase::Emit)
		emit(block);
	else
		prepare(block);
}

void
WindowJob::prepare(uint32_t block)
{
	rows_.prepare(block);
	for (const std::unique_ptr<WindowInput> &of : inputs_)
		of->prepare(block);
}

void
WindowJob::emit(uint32_t block)
{
	const uint32_t nrows = window_block_rows(nrows_, block);
	const WindowTarget *to = targets + size_t{block} * static_cast<size_t>(ncolumns_);
	std::unique_ptr<WindowVector> vector(new WindowVector);
	std::vector<std::unique_ptr<WindowEmitter>> emitters;
	WindowBound head(spec_, columns_, &rows_, false), tail(spec_, columns_, &rows_, true);
	WindowPosition at = rows_.begin(block);
	uint32_t	errors = 0;

	for (const WindowCall &call : calls_)
		emitters.push_back(make_window_emitter(call, to + call.result));
	for (uint32_t first = 0; first < nrows; first += WINDOW_VECTOR_ROWS)
	{
		vector->first = window_first(block) + first;
		vector->n = std::min(nrows - first, WINDOW_VECTOR_ROWS);
		rows_.fill(&at, vector.get());
		if (frames_)
		{
			errors |= head.fill(*vector, vector->head) | tail.fill(*vector, vector->tail);
			for (uint32_t i = 0; i < vector->n; i++)
				vector->tail[i] = std::max(vector->tail[i], vector->head[i]);
		}
		for (const std::unique_ptr<WindowEmitter> &emitter : emitters)
			errors |= emitter->emit(*vector, first);
	}
	errors_.fetch_or(errors);
}

/* ---- the interface -------------------------------------------------------------------- */

CpuWindow::CpuWindow(const WindowSpec &spec, const WindowColumn *columns, uint64_t nrows)
	: job_(new WindowJob(spec, columns, nrows))
{
}

CpuWindow::~CpuWindow() = default;

uint64_t
CpuWindow::bytes() const
{
	return job_->bytes();
}

void
CpuWindow::set_targets(const WindowTarget *targets)
{
	job_->targets = targets;
}

uint32_t
CpuWindow::begin_phase()
{
	return job_->begin_phase();
}

void
CpuWindow::run_task(uint32_t task)
{
	job_->run_task(task);
}

uint32_t
CpuWindow::errors() const
{
	return job_->errors();
}

}  // namespace gpuvm
