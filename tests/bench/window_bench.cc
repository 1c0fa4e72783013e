/*
 * window_bench.cc: window functions on the CPU, one thread, per row of a sorted set: a partition of few rows and one
 * of all. GPUVM_BENCH_ROWS changes the 8 million rows.
 */
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <random>

#include "tablet/build.h"
#include "vm/cpu_window.h"

using namespace gpuvm;

namespace {

/* partition I32, order I32 with ties, value I32; sorted */
struct Rows
{
	std::vector<int32_t> part, order, value;
	std::vector<WindowColumn> columns;
	uint64_t	n;

	Rows(uint64_t nrows, uint64_t partition_rows) : part(nrows), order(nrows), value(nrows), columns(3), n(nrows)
	{
		std::mt19937_64 rng(1);
		int32_t		at = 0;

		for (uint64_t i = 0; i < nrows; i++)
		{
			part[i] = static_cast<int32_t>(i / partition_rows);
			at = i % partition_rows == 0 ? 0 : at + static_cast<int32_t>(rng() % 3);
			order[i] = at;
			value[i] = static_cast<int32_t>(rng() % 2000000) - 1000000;
		}

		const std::vector<int32_t> *all[] = {&part, &order, &value};

		for (size_t c = 0; c < 3; c++)
			for (uint64_t first = 0; first < n; first += WINDOW_BLOCK_ROWS)
			{
				const uint32_t rows = static_cast<uint32_t>(std::min<uint64_t>(n - first, WINDOW_BLOCK_ROWS));
				const StagedColumn staged = {Type::I32, 1, all[c]->data() + first, nullptr};
				const StagedTablet tablet = {rows, 1, &staged, 0, 0, nullptr, nullptr, nullptr, nullptr, 0};
				TabletHeader header;
				ColumnChunk chunk;

				plan_tablet(tablet, &header, &chunk);
				summarize_chunk(&columns[c].summary, chunk, first == 0);
				columns[c].summary.type = Type::I32;
				columns[c].values.push_back(reinterpret_cast<const char *>(all[c]->data() + first));
				columns[c].nulls.push_back(nullptr);
			}
	}
};

const Rows &
rows_of(bool single)
{
	const char *asked = getenv("GPUVM_BENCH_ROWS");
	static const uint64_t n = asked != nullptr ? strtoull(asked, nullptr, 10) : 8000000;
	static const Rows few(n, 100), all(n, n);

	return single ? all : few;
}

void
run(benchmark::State &state, WindowFn fn, Type type, WindowFrame frame)
{
	const Rows &rows = rows_of(state.range(0) != 0);
	const WindowKey keys[] = {{0, false, false, nullptr, nullptr}, {1, false, false, nullptr, nullptr}};
	WindowFunction function = {};
	std::vector<WindowTarget> targets;
	std::vector<char> values(rows.n * 8 + 512);
	std::vector<uint64_t> nulls(rows.n / 64 + 1024);

	function.fn = fn;
	function.type = type;
	function.column = fn < WindowFn::Lag ? WINDOW_NONE : 2;
	function.high = function.filter = function.map = WINDOW_NONE;
	function.number = 1;
	for (uint64_t first = 0; first < rows.n; first += WINDOW_BLOCK_ROWS)
		targets.push_back(WindowTarget{values.data() + first * 8, nulls.data() + first / 64});
	for (auto _ : state)
	{
		const WindowSpec spec = {keys, 1, 1, frame, &function, 1, nullptr, 0};
		CpuWindow	window(spec, rows.columns.data(), rows.n);
		uint32_t	n;

		window.set_targets(targets.data());
		while ((n = window.begin_phase()) > 0)
			for (uint32_t i = 0; i < n; i++)
				window.run_task(i);
		if (window.errors() != 0)
			state.SkipWithError("flagged");
	}
	state.counters["row"] = benchmark::Counter(static_cast<double>(rows.n) * static_cast<double>(state.iterations()),
											   benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

WindowFrame
frame_of(FrameMode mode, FrameBound start, int64_t start_offset, FrameBound end = FrameBound::CurrentRow, int64_t end_offset = 0)
{
	return WindowFrame{mode, start, end, RangeUnit::Number, 0, start_offset, end_offset};
}

const WindowFrame RUNNING = frame_of(FrameMode::Range, FrameBound::Unbounded, 0);
const WindowFrame ROWS_10 = frame_of(FrameMode::Rows, FrameBound::Preceding, 10);
const WindowFrame ROWS_1000 = frame_of(FrameMode::Rows, FrameBound::Preceding, 1000);
const WindowFrame RANGE_10 = frame_of(FrameMode::Range, FrameBound::Preceding, 10);
const WindowFrame WHOLE = frame_of(FrameMode::Range, FrameBound::Unbounded, 0, FrameBound::Unbounded);

BENCHMARK_CAPTURE(run, row_number, WindowFn::RowNumber, Type::I64, RUNNING)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, rank, WindowFn::Rank, Type::I64, RUNNING)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, lag, WindowFn::Lag, Type::I32, RUNNING)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, sum_running, WindowFn::Sum, Type::I64, RUNNING)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, sum_whole, WindowFn::Sum, Type::I64, WHOLE)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, sum_rows_10, WindowFn::Sum, Type::I64, ROWS_10)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, sum_range_10, WindowFn::Sum, Type::I64, RANGE_10)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, min_running, WindowFn::Min, Type::I32, RUNNING)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, min_rows_10, WindowFn::Min, Type::I32, ROWS_10)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, min_rows_1000, WindowFn::Min, Type::I32, ROWS_1000)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
