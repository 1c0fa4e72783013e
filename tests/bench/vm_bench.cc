/*
 * vm_bench.cc: the CPU virtual machine: the thirteen queries of the Sphyraena
 * paper (appendix A) on one thread, and group by on one and two, over 8 million
 * rows.
 *
 * GPUVM_BENCH_ROWS changes the number of rows. Items per second are rows.
 */
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tablet/build.h"
#include "vm/cpu_vm.h"
#include "vm/program.h"
#include "vm/result_layout.h"

using namespace gpuvm;

namespace {

constexpr uint32_t TABLET_ROWS = 1u << 18;
constexpr uint32_t UNIT_ROWS = 1u << 16;
constexpr uint32_t BLOCK_ROWS = 120;	/* of a heap block */

struct FreeDeleter
{
	void		operator()(void *p) const { free(p); }
};

enum : int
{
	ID, UNIFORMI, NORMALI5, NORMALI20, UNIFORMF, NORMALF5, NORMALF20, KEY52, VALUE, KEY10K, KEY100K, KEY1M, KEY2M, KEY5M,
	WIDE10K, WIDE100K, WIDE1M, WIDE2M, NCOLUMNS
};

constexpr uint32_t KEY_VALUES[] = {10000, 100000, 1000000, 2000000, 5000000};

struct Data
{
	uint32_t	nrows;
	std::vector<std::unique_ptr<TabletHeader, FreeDeleter>> tablets;
	ColumnSummary summaries[NCOLUMNS];
	Type		types[NCOLUMNS];

	Data()
	{
		const char *rows = getenv("GPUVM_BENCH_ROWS");
		std::mt19937_64 rng(42);
		std::normal_distribution<float> n5(0, 5), n20(0, 20);
		std::uniform_real_distribution<float> uniform(-99, 99);

		nrows = rows ? static_cast<uint32_t>(atoi(rows)) : 8000000;
		for (uint32_t first = 0; first < nrows; first += TABLET_ROWS)
		{
			const uint32_t n = std::min(TABLET_ROWS, nrows - first);
			std::vector<std::vector<int32_t>> values(NCOLUMNS, std::vector<int32_t>(n));

			for (uint32_t i = 0; i < n; i++)
			{
				const float f[3] = {uniform(rng), n5(rng), n20(rng)};

				values[ID][i] = static_cast<int32_t>(first + i);
				values[UNIFORMI][i] = static_cast<int32_t>(rng() % 199) - 99;
				values[NORMALI5][i] = static_cast<int32_t>(std::lround(n5(rng)));
				values[NORMALI20][i] = static_cast<int32_t>(std::lround(n20(rng)));
				for (int k = 0; k < 3; k++)
					memcpy(&values[UNIFORMF + k][i], &f[k], 4);
				values[KEY52][i] = static_cast<int32_t>(rng() % 52);
				values[VALUE][i] = static_cast<int32_t>(rng() % 100000);
				for (int k = KEY10K; k <= KEY5M; k++)
					values[k][i] = static_cast<int32_t>(rng() % KEY_VALUES[k - KEY10K]);
				/* the same numbers of groups, spread over all of int4 */
				for (int k = WIDE10K; k <= WIDE2M; k++)
					values[k][i] = static_cast<int32_t>(static_cast<uint32_t>(rng() % KEY_VALUES[k - WIDE10K]) * 2147u - (1u << 31));
			}

			std::vector<StagedColumn> staged;

			for (int c = 0; c < NCOLUMNS; c++)
			{
				types[c] = c >= UNIFORMF && c <= NORMALF20 ? Type::F32 : Type::I32;
				staged.push_back(StagedColumn{types[c], static_cast<int16_t>(c + 1), values[c].data(), nullptr});
			}

			const uint32_t block_rows[2] = {0, n};
			const uint64_t lsn = 1;
			const uint32_t lps = LPS_DENSE;
			StagedTablet st = {n, NCOLUMNS, staged.data(), first / TABLET_ROWS, 1, block_rows, &lsn, &lps, nullptr, 0};
			TabletHeader header;
			ColumnChunk chunks[NCOLUMNS];
			const uint64_t size = plan_tablet(st, &header, chunks);
			void	   *memory = aligned_alloc(64, (size + 63) & ~63ull);

			write_tablet(st, header, chunks, 0, static_cast<char *>(memory));
			for (int c = 0; c < NCOLUMNS; c++)
				summarize_chunk(&summaries[c], chunks[c], first == 0);
			tablets.emplace_back(static_cast<TabletHeader *>(memory));
		}
	}
};

const Data &
data()
{
	static const Data d;

	return d;
}

/* A small assembler: expressions in postfix calls. */
struct Assembler
{
	std::unique_ptr<ProgramBuilder> b = std::make_unique<ProgramBuilder>();

	Assembler()
	{
		b->init();
		b->emit(Opcode::Table, Type::None, 0, 0, 0);
	}
	void		begin(const std::vector<Type> &results, int nkeys, const std::vector<int64_t> &sources, int naggs)
	{
		for (size_t c = 0; c < results.size(); c++)
			b->emit(Opcode::ResultColumn, results[c], static_cast<int>(c), 0, 0, b->add_name("c"));
		if (naggs > 0)
			b->emit(Opcode::AggOpen, Type::None, nkeys, naggs, b->add_aux(sources.data(), static_cast<int>(sources.size())));
		b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
	}
	int			column(int c)
	{
		const Type	t = c >= UNIFORMF && c <= NORMALF20 ? Type::F32 : Type::I32;
		const int	r = b->new_reg(t);

		b->emit(Opcode::Column, t, r, c, 0);
		return r;
	}
	int			number(Type t, double v)
	{
		const int	r = b->new_reg(t);
		int64_t		bits;

		memcpy(&bits, &v, sizeof(bits));
		if (t == Type::F32)
			b->emit(Opcode::Float, t, r, 0, 0, bits);
		else
			b->emit(Opcode::Integer, t, r, static_cast<int>(v), 0);
		return r;
	}
	int			binary(Opcode op, int x, int y)
	{
		const Type	t = b->reg_type[x];
		const int	r = b->new_reg(t);

		b->emit(op, t, r, x, y);
		return r;
	}
	/* the row dies where the comparison holds (or is null) */
	void		dies(Opcode op, int x, int y)
	{
		b->emit(op, b->reg_type[x], x, y, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
	}
	int			jumps(Opcode op, int x, int y)
	{
		return b->emit(op, b->reg_type[x], x, y, 0, VERDICT_JUMPS);
	}
	void		agg(int n, AggFn fn, int x)
	{
		b->emit(Opcode::AggStep, x < 0 ? Type::None : b->reg_type[x], n, x, -1, 0, static_cast<uint8_t>(fn));
	}
	/* consecutive registers for Result */
	void		result(const std::vector<int> &columns)
	{
		std::vector<int> from;
		int			first = 0;

		for (int c : columns)
			from.push_back(column(c));
		for (size_t i = 0; i < from.size(); i++)
		{
			const Type	t = b->reg_type[from[i]];
			const int	r = b->new_reg(t);

			first = i == 0 ? r : first;
			b->emit(Opcode::Copy, t, r, from[i], 0);
		}
		b->emit(Opcode::Result, Type::None, first, static_cast<int>(from.size()), 0);
	}
	std::vector<uint64_t> end()
	{
		b->ops[b->parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
		b->emit(Opcode::Finish, Type::None, 0, 0, 0);

		std::vector<uint64_t> words(b->sealed_size() / 8);

		b->seal(reinterpret_cast<Program *>(words.data()));
		return words;
	}
};

/* The filter of query 1 to 10. */
void
filter(Assembler &a, int query)
{
	const bool	floats = query % 2 == 0;
	const Type	t = floats ? Type::F32 : Type::I32;
	const int	uniform = a.column(floats ? UNIFORMF : UNIFORMI);

	switch ((query + 1) / 2)
	{
		case 1:
			a.dies(Opcode::Le, uniform, a.number(t, 60));
			a.dies(Opcode::Ge, a.column(floats ? NORMALF5 : NORMALI5), a.number(t, 0));
			break;
		case 2:
			a.dies(Opcode::Le, uniform, a.number(t, -60));
			a.dies(Opcode::Ge, a.column(floats ? NORMALF5 : NORMALI5), a.number(t, 5));
			break;
		case 3:
			{
				const int	left = a.binary(Opcode::Add, a.column(floats ? NORMALF20 : NORMALI20), a.number(t, 40));

				a.dies(Opcode::Le, left, a.binary(Opcode::Sub, uniform, a.number(t, 10)));
				break;
			}
		case 4:
			{
				const int	n5 = a.column(floats ? NORMALF5 : NORMALI5);
				const int	product = a.binary(Opcode::Mul, n5, a.column(floats ? NORMALF20 : NORMALI20));

				a.dies(Opcode::Lt, product, a.number(t, -5));
				a.dies(Opcode::Gt, product, a.number(t, 5));
				break;
			}
		default:
			{
				const int	zero = a.number(t, 0);
				const int	j1 = a.jumps(Opcode::Eq, uniform, zero);
				const int	j2 = a.jumps(Opcode::Eq, a.column(floats ? NORMALF5 : NORMALI5), zero);

				a.dies(Opcode::Ne, a.column(floats ? NORMALF20 : NORMALI20), zero);
				a.b->ops[j1].p3 = a.b->ops[j2].p3 = a.b->nops;
				break;
			}
	}
}

std::vector<uint64_t>
rows_query(int query)
{
	Assembler	a;
	const bool	f = query % 2 == 0;
	std::vector<int> columns = {ID};
	std::vector<Type> types;

	switch ((query + 1) / 2)
	{
		case 1: case 2: columns.insert(columns.end(), {f ? UNIFORMF : UNIFORMI, f ? NORMALF5 : NORMALI5}); break;
		case 3: case 4: columns.insert(columns.end(), {f ? NORMALF5 : NORMALI5, f ? NORMALF20 : NORMALI20}); break;
		default: columns.insert(columns.end(), {f ? UNIFORMF : UNIFORMI, f ? NORMALF5 : NORMALI5, f ? NORMALF20 : NORMALI20}); break;
	}
	for (int c : columns)
		types.push_back(c == ID || !f ? Type::I32 : Type::F32);
	a.begin(types, 0, {}, 0);
	filter(a, query);
	a.result(columns);
	return a.end();
}

std::vector<uint64_t>
count_query(int query)
{
	Assembler	a;

	a.begin({Type::I64}, 0, {RESULT_FROM_AGG}, 1);
	filter(a, query);
	a.agg(0, AggFn::CountStar, -1);
	return a.end();
}

std::vector<uint64_t>
aggregate_query(int query)
{
	Assembler	a;

	if (query == 11)
	{
		a.begin({Type::F64}, 0, {RESULT_FROM_AGG}, 1);
		a.agg(0, AggFn::Sum, a.column(NORMALF20));
	}
	else if (query == 12)
	{
		a.begin({Type::I128, Type::I64}, 0, {RESULT_FROM_AGG, RESULT_FROM_AGG | 1}, 2);

		const int	u = a.column(UNIFORMI);

		a.dies(Opcode::Le, u, a.number(Type::I32, 0));
		a.agg(0, AggFn::Sum, u);
		a.agg(1, AggFn::Count, u);
	}
	else
	{
		a.begin({Type::I32, Type::I32}, 0, {RESULT_FROM_AGG, RESULT_FROM_AGG | 1}, 2);

		const int	n = a.column(NORMALI5);

		a.agg(0, AggFn::Max, n);
		a.agg(1, AggFn::Min, n);
	}
	return a.end();
}

/* count, sum, and max by a key; `floats`: the sum of a float4 */
std::vector<uint64_t>
group_query(int key, bool floats)
{
	Assembler	a;

	a.begin({Type::I32, Type::I64, floats ? Type::F64 : Type::I128, Type::I32}, 1,
			{0, RESULT_FROM_AGG, RESULT_FROM_AGG | 1, RESULT_FROM_AGG | 2}, 3);

	const int64_t k = a.column(key);
	const int	v = a.column(VALUE);
	const int	s = floats ? a.column(NORMALF20) : v;

	a.b->emit(Opcode::Group, Type::None, 1, a.b->add_aux(&k, 1), 0);
	a.agg(0, AggFn::CountStar, -1);
	a.agg(1, AggFn::Sum, s);
	a.agg(2, AggFn::Max, v);
	return a.end();
}

/* count(*), sum and avg of an int4, whose state is a count and a sum */
std::vector<uint64_t>
many_groups_query(int key)
{
	Assembler	a;

	a.begin({Type::I32, Type::I64, Type::I128, Type::I64}, 1,
			{0, RESULT_FROM_AGG, RESULT_FROM_AGG | 1, RESULT_FROM_AGG | 2}, 3);

	const int64_t k = a.column(key);
	const int	v = a.column(VALUE);

	a.b->emit(Opcode::Group, Type::None, 1, a.b->add_aux(&k, 1), 0);
	a.agg(0, AggFn::CountStar, -1);
	a.agg(1, AggFn::Sum, v);
	a.agg(2, AggFn::Count, v);
	return a.end();
}

/* Runs f(0) to f(n - 1), each on a thread of its own. */
template <typename F>
void
on_threads(uint32_t n, F f)
{
	std::vector<std::thread> others;

	for (uint32_t i = 1; i < n; i++)
		others.emplace_back(f, i);
	f(0);
	for (std::thread &t : others)
		t.join();
}

/* As the engine runs a grouped job; milliseconds of its phases as counters. */
void
run_threads(benchmark::State &state, const std::vector<uint64_t> &words, uint32_t threads)
{
	using Clock = std::chrono::steady_clock;

	const Data &d = data();
	const Program *program = reinterpret_cast<const Program *>(words.data());
	const CursorSchema schema = {NCOLUMNS, d.types};
	std::vector<Type> types(program->nresults);
	double		phases[3] = {};

	if (const char *wrong = verify_program(program, program->size, &schema, 1))
	{
		state.SkipWithError(wrong);
		return;
	}
	program_result_types(program, types.data());

	std::vector<char> area(result_layout(types.data(), program->nresults, UNIT_ROWS, nullptr));

	for (auto _ : state)
	{
		auto		job = CpuJob::create(program, nullptr, 0, d.summaries, NCOLUMNS, d.nrows);
		std::vector<std::unique_ptr<CpuState>> states(threads);
		std::atomic<uint32_t> next{0};
		const uint32_t per_tablet = TABLET_ROWS / UNIT_ROWS;
		auto		start = Clock::now();
		auto		phase = [&](int p) {
			phases[p] += std::chrono::duration<double, std::milli>(Clock::now() - start).count();
			start = Clock::now();
		};

		on_threads(threads, [&](uint32_t i) {
			states[i] = job->new_state();
			for (uint32_t unit; (unit = next++) < d.tablets.size() * per_tablet;)
				job->run_groups(states[i].get(), d.tablets[unit / per_tablet].get(), unit % per_tablet * UNIT_ROWS,
								(unit % per_tablet + 1) * UNIT_ROWS);
		});
		phase(0);

		std::vector<CpuState *> all;

		for (auto &s : states)
			all.push_back(s.get());

		const uint32_t parts = job->begin_merge(all.data(), threads);

		next = 0;
		if (parts > 0)
			on_threads(threads, [&](uint32_t) {
				for (uint32_t part; (part = next++) < parts;)
					job->merge_part(all.data(), threads, part);
			});
		if (job->finish(states[0].get()) != 0)
			state.SkipWithError("the program raised an error");
		states.resize(1);
		phase(1);
		for (uint64_t at = 0; at < job->ngroups(states[0].get());)
			at += job->emit_groups(states[0].get(), at, area.data(), UNIT_ROWS);
		phase(2);
		benchmark::ClobberMemory();
	}
	state.counters["run"] = benchmark::Counter(phases[0], benchmark::Counter::kAvgIterations);
	state.counters["merge"] = benchmark::Counter(phases[1], benchmark::Counter::kAvgIterations);
	state.counters["emit"] = benchmark::Counter(phases[2], benchmark::Counter::kAvgIterations);
}

/* One heap block in `every` masked, as after updates all over the table; 0: none. */
std::vector<MaskedRows>
masked_blocks(uint32_t every)
{
	std::vector<MaskedRows> masked;

	for (uint32_t first = 0; every > 0 && first + BLOCK_ROWS <= TABLET_ROWS; first += every * BLOCK_ROWS)
		masked.push_back(MaskedRows{0, first, first + BLOCK_ROWS});
	return masked;
}

void
run(benchmark::State &state, const std::vector<uint64_t> &words, uint32_t masked_every = 0)
{
	const std::vector<MaskedRows> masked = masked_blocks(masked_every);
	const uint32_t nmasked = static_cast<uint32_t>(masked.size());
	const Data &d = data();
	const Program *program = reinterpret_cast<const Program *>(words.data());
	const CursorSchema schema = {NCOLUMNS, d.types};
	std::vector<Type> types(program->nresults);
	uint64_t	rows_out = 0;

	if (const char *wrong = verify_program(program, program->size, &schema, 1))
	{
		state.SkipWithError(wrong);
		return;
	}
	program_result_types(program, types.data());

	std::vector<char> area(result_layout(types.data(), program->nresults, UNIT_ROWS, nullptr));

	for (auto _ : state)
	{
		auto		job = CpuJob::create(program, nullptr, 0, d.summaries, NCOLUMNS, d.nrows);
		auto		worker = job->new_state();
		uint32_t	errors = 0;

		rows_out = 0;
		for (const auto &tablet : d.tablets)
		{
			if (job->can_skip(tablet.get()))
				continue;
			for (uint32_t first = 0; first < tablet->nrows; first += UNIT_ROWS)
			{
				const uint32_t last = std::min(first + UNIT_ROWS, tablet->nrows);

				if (program->grouped)
					job->run_groups(worker.get(), tablet.get(), first, last, masked.data(), nmasked);
				else
				{
					const CpuUnitOutcome unit = job->run_rows(worker.get(), tablet.get(), first, last, area.data(), UNIT_ROWS,
															  masked.data(), nmasked);

					rows_out += unit.rows;
					errors |= unit.errors;
				}
			}
		}
		if (program->grouped)
		{
			errors |= job->finish(worker.get());
			for (uint64_t at = 0; at < job->ngroups(worker.get());)
				at += job->emit_groups(worker.get(), at, area.data(), UNIT_ROWS);
			rows_out = job->ngroups(worker.get());
		}
		if (errors)
			state.SkipWithError("the program raised an error");
		benchmark::ClobberMemory();
	}
	state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * d.nrows);
	state.counters["rows_out"] = static_cast<double>(rows_out);
	state.counters["ns_per_row"] = benchmark::Counter(static_cast<double>(d.nrows) * static_cast<double>(state.iterations()) * 1e-9,
													  benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

}  // namespace

int
main(int argc, char **argv)
{
	benchmark::Initialize(&argc, argv);
	for (int q = 1; q <= 10; q++)
		benchmark::RegisterBenchmark(("count/" + std::to_string(q)).c_str(), [q](benchmark::State &s) { run(s, count_query(q)); })
			->Unit(benchmark::kMillisecond);
	for (int q = 11; q <= 13; q++)
		benchmark::RegisterBenchmark(("aggregate/" + std::to_string(q)).c_str(), [q](benchmark::State &s) { run(s, aggregate_query(q)); })
			->Unit(benchmark::kMillisecond);
	for (int q = 1; q <= 10; q++)
		benchmark::RegisterBenchmark(("rows/" + std::to_string(q)).c_str(), [q](benchmark::State &s) { run(s, rows_query(q)); })
			->Unit(benchmark::kMillisecond);

	const struct
	{
		const char *name;
		int			key;
		bool		floats;
	}			groups[] = {{"group/52", KEY52, false}, {"group/52_float", KEY52, true}, {"group/10k", KEY10K, false}};

	for (const auto &g : groups)
		benchmark::RegisterBenchmark(g.name, [g](benchmark::State &s) { run(s, group_query(g.key, g.floats)); })
			->Unit(benchmark::kMillisecond);

	/* none, 1%, a half */
	for (uint32_t every : {0u, 100u, 2u})
	{
		const struct
		{
			const char *name;
			std::vector<uint64_t> program;
		}			queries[] = {{"count/1", count_query(1)}, {"aggregate/12", aggregate_query(12)}, {"rows/1", rows_query(1)},
			{"group/52", group_query(KEY52, false)}};

		for (const auto &q : queries)
			benchmark::RegisterBenchmark((std::string("masked/") + q.name + "/every:" + std::to_string(every)).c_str(),
										 [program = q.program, every](benchmark::State &s) { run(s, program, every); })
				->Unit(benchmark::kMillisecond);
	}

	const struct
	{
		const char *name;
		int			key;
	}			many[] = {{"10k", KEY10K}, {"100k", KEY100K}, {"1M", KEY1M}, {"2M", KEY2M}, {"5M", KEY5M},
		{"wide/10k", WIDE10K}, {"wide/100k", WIDE100K}, {"wide/1M", WIDE1M}, {"wide/2M", WIDE2M}};

	for (const auto &m : many)
		for (uint32_t threads = 1; threads <= 2; threads++)
			benchmark::RegisterBenchmark((std::string("groups/") + m.name + "/threads:" + std::to_string(threads)).c_str(),
										 [m, threads](benchmark::State &s) { run_threads(s, many_groups_query(m.key), threads); })->MeasureProcessCPUTime()
				->Unit(benchmark::kMillisecond)->UseRealTime();
	benchmark::RunSpecifiedBenchmarks();
	return 0;
}
