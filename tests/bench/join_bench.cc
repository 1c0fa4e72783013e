/*
 * join_bench.cc: joins on the CPU virtual machine, on one thread and two.
 *
 * GPUVM_BENCH_ROWS changes the equality joins' 8 million rows, GPUVM_BENCH_THETA the
 * nested loop's 100,000 rows a side, GPUVM_BENCH_RANGE the ranges' million, GPUVM_BENCH_STAR
 * the star's 20 million.
 */
#include <benchmark/benchmark.h>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "tablet/build.h"
#include "vm/cpu_join.h"
#include "vm/cpu_join_filter.h"
#include "vm/result_layout.h"

using namespace gpuvm;

namespace {

constexpr uint32_t TABLET_ROWS = (1u << 18) - 77;
constexpr uint32_t BATCH = 1u << 16;

struct FreeDeleter
{
	void		operator()(void *p) const { free(p); }
};

struct Table
{
	std::vector<std::unique_ptr<TabletHeader, FreeDeleter>> tablets;
	ColumnSummary summaries[8];
	Type		types[8];
	uint32_t	ncols;
	uint32_t	nrows;

	/* `wide`: instead of the first of the columns, if it has rows. */
	explicit Table(const std::vector<std::vector<int32_t>> &columns, const std::vector<int64_t> &wide = {})
		: ncols(static_cast<uint32_t>(columns.size())), nrows(static_cast<uint32_t>(columns.back().size()))
	{
		for (uint32_t first = 0; first < nrows; first += TABLET_ROWS)
		{
			const uint32_t n = std::min(nrows - first, TABLET_ROWS);
			std::vector<StagedColumn> staged;
			const uint32_t block_rows[2] = {0, n};
			const uint64_t lsn = 1;
			const uint32_t lps = LPS_DENSE;
			TabletHeader header;
			ColumnChunk chunks[8];

			for (uint32_t c = 0; c < ncols; c++)
			{
				const bool	is_wide = c == 0 && !wide.empty();

				types[c] = is_wide ? Type::I64 : Type::I32;
				staged.push_back(StagedColumn{types[c], static_cast<int16_t>(c + 1),
											  is_wide ? static_cast<const void *>(wide.data() + first) : columns[c].data() + first, nullptr});
			}

			StagedTablet st = {n, ncols, staged.data(), first / TABLET_ROWS, 1, block_rows, &lsn, &lps, nullptr, 0};
			const uint64_t size = plan_tablet(st, &header, chunks);
			void	   *memory = aligned_alloc(64, (size + 63) & ~63ull);

			write_tablet(st, header, chunks, 0, static_cast<char *>(memory));
			for (uint32_t c = 0; c < ncols; c++)
				summarize_chunk(&summaries[c], chunks[c], first == 0);
			tablets.emplace_back(static_cast<TabletHeader *>(memory));
		}
	}

	JoinCursor	cursor() const
	{
		JoinCursor	to = {summaries, ncols, {}, nrows};

		for (const auto &tablet : tablets)
			to.tablets.push_back(JoinTablet{tablet.get(), nullptr, 0});
		return to;
	}
};

uint32_t
setting(const char *name, uint32_t otherwise)
{
	const char *v = getenv(name);

	return v ? static_cast<uint32_t>(atoll(v)) : otherwise;
}

/* Runs f(thread) on so many threads. */
template <typename F>
void
on_threads(int n, F f)
{
	std::vector<std::thread> threads;

	for (int i = 1; i < n; i++)
		threads.emplace_back(f, i);
	f(0);
	for (std::thread &t : threads)
		t.join();
}

/* Seconds of all threads outside the system, which clears pages in whatever time it has: what to compare on a busy machine. */
double
user_time()
{
	rusage		used;

	getrusage(RUSAGE_SELF, &used);
	return static_cast<double>(used.ru_utime.tv_sec) + static_cast<double>(used.ru_utime.tv_usec) * 1e-6;
}

/* The join's only result: a count, or a count and a sum. */
void
run(benchmark::State &state, const ProgramBuilder &b, const std::vector<const Table *> &tables, int nthreads, uint32_t step)
{
	std::vector<uint64_t> sealed((b.sealed_size() + 7) / 8);
	const Program *program = reinterpret_cast<const Program *>(sealed.data());

	b.seal(reinterpret_cast<Program *>(sealed.data()));

	const Table &outer = *tables[0];
	std::vector<CursorSchema> schemas;
	std::vector<JoinCursor> cursors;
	int64_t		count = 0;
	uint64_t	pairs = 0;
	double		build_s = 0, build_user_s = 0, user_s = 0;

	for (const Table *table : tables)
	{
		schemas.push_back(CursorSchema{table->ncols, table->types});
		cursors.push_back(table->cursor());
	}
	if (const char *wrong = verify_program(program, program->size, schemas.data(), static_cast<uint32_t>(schemas.size())))
	{
		state.SkipWithError(wrong);
		return;
	}
	for (auto _ : state)
	{
		const auto	start = std::chrono::steady_clock::now();
		const double user_start = user_time();
		auto		join = CpuJoin::create(program, nullptr, 0, cursors.data());
		std::vector<std::unique_ptr<CpuState>> states(nthreads);
		std::vector<CpuState *> all;
		std::vector<std::pair<const TabletHeader *, uint32_t>> ranges;
		std::atomic<size_t> next{0};

		while (const uint32_t n = join->begin_phase())
		{
			next = 0;
			on_threads(nthreads, [&](int) {
				for (size_t i; (i = next++) < n;)
					join->run_task(static_cast<uint32_t>(i));
			});
		}
		build_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
		build_user_s += user_time() - user_start;
		for (const auto &tablet : outer.tablets)
			for (uint32_t first = 0; first < tablet->nrows; first += step)
				ranges.emplace_back(tablet.get(), first);
		next = 0;
		on_threads(nthreads, [&](int t) {
			states[t] = join->new_state();
			for (size_t i; (i = next++) < ranges.size();)
				join->run_groups(states[t].get(), ranges[i].first, ranges[i].second,
								 std::min(ranges[i].first->nrows, ranges[i].second + step), nullptr, 0);
		});
		for (const auto &s : states)
		{
			all.push_back(s.get());
			pairs += join->pairs(s.get());
		}
		join->begin_merge(all.data(), static_cast<uint32_t>(all.size()));
		if (join->finish(all[0]) != 0)
			state.SkipWithError("the join flagged an error");

		alignas(64) char area[4096];

		join->emit_groups(all[0], 0, area, 64);
		memcpy(&count, area + 64, sizeof(count));
		user_s += user_time() - user_start;
	}
	state.counters["count"] = static_cast<double>(count);
	state.counters["pairs/s"] = benchmark::Counter(static_cast<double>(pairs), benchmark::Counter::kIsRate);
	state.counters["build_ms"] = build_s * 1e3 / static_cast<double>(state.iterations());
	state.counters["build_user_ms"] = build_user_s * 1e3 / static_cast<double>(state.iterations());
	state.counters["user_ms"] = user_s * 1e3 / static_cast<double>(state.iterations());
}

/* Host operations for a count and, from r, a sum. */
void
host(ProgramBuilder *b, bool hash, bool sum)
{
	const int64_t sources[] = {RESULT_FROM_AGG, RESULT_FROM_AGG | 1};

	b->init();
	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::Table, Type::None, 1, 0, 1);
	if (hash)
		b->emit(Opcode::HashOpen, Type::None, 1, 1, 0);
	b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("count"));
	if (sum)
		b->emit(Opcode::ResultColumn, Type::I128, 1, 0, 0, b->add_name("sum"));
	b->emit(Opcode::AggOpen, Type::None, 0, sum ? 2 : 1, b->add_aux(sources, sum ? 2 : 1));
}

int
column(ProgramBuilder *b, int number, int cursor, Type type = Type::I32)
{
	const int	r = b->new_reg(type);

	b->emit(Opcode::Column, type, r, number, cursor);
	return r;
}

void
sinks(ProgramBuilder *b, int parallel, int sum_reg)
{
	b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	if (sum_reg >= 0)
		b->emit(Opcode::AggStep, Type::I32, 1, sum_reg, -1, 0, static_cast<uint8_t>(AggFn::Sum));
	b->ops[parallel].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
}

/* count(*) of a JOIN b ON a.x < b.x AND a.y > b.y */
void
theta(benchmark::State &state)
{
	const uint32_t n = setting("GPUVM_BENCH_THETA", 100000);
	std::mt19937_64 rng(1);
	auto		b = std::make_unique<ProgramBuilder>();
	std::vector<std::vector<int32_t>> columns[2];

	for (auto &side : columns)
		for (int c = 0; c < 2; c++)
		{
			side.emplace_back(n);
			for (int32_t &v : side[c])
				v = static_cast<int32_t>(rng() % 1000000);
		}

	const Table	outer(columns[0]), inner(columns[1]);

	host(b.get(), false, false);

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 2, 0, 0);

	b->emit(Opcode::Cross, Type::None, 1, 0, 0);

	const int	ax = column(b.get(), 0, 0), bx = column(b.get(), 0, 1);

	b->emit(Opcode::Ge, Type::I32, ax, bx, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);

	const int	ay = column(b.get(), 1, 0), by = column(b.get(), 1, 1);

	b->emit(Opcode::Le, Type::I32, ay, by, b->nops + 1, VERDICT_DIES, JUMP_IF_NULL);
	b->emit(Opcode::Match, Type::None, 1, static_cast<int>(JoinKind::Inner), 0);
	sinks(b.get(), parallel, -1);
	run(state, *b, {&outer, &inner}, static_cast<int>(state.range(0)), CPU_VECTOR_ROWS);
}

/*
 * BELOW: count(*) of a JOIN b ON a.x < b.x, which makes no pairs. BAND: count(*), sum(b.y) of a
 * JOIN b ON b.x BETWEEN a.x AND a.y, about ten pairs a row.
 */
enum : int64_t { BELOW, BAND };

void
range(benchmark::State &state)
{
	const uint32_t n = setting("GPUVM_BENCH_RANGE", 1000000);
	const bool	band = state.range(1) == BAND;
	std::mt19937_64 rng(1);
	auto		b = std::make_unique<ProgramBuilder>();
	std::vector<std::vector<int32_t>> columns[2];

	for (int side = 0; side < 2; side++)
	{
		std::vector<int32_t> x(n), y(n);

		for (uint32_t i = 0; i < n; i++)
		{
			x[i] = static_cast<int32_t>(rng() % (16ull * n));
			y[i] = side == 0 ? x[i] + 160 : static_cast<int32_t>(rng() % 1000);
		}
		columns[side] = {std::move(x), std::move(y)};
	}

	const Table	outer(columns[0]), inner(columns[1]);

	host(b.get(), true, band);
	b->ops[2].p3 = HASH_SORTED;

	const int	build = b->emit(Opcode::Parallel, Type::None, 1, 1, 0);
	const int64_t key = column(b.get(), 0, 1);

	b->emit(Opcode::HashInsert, Type::None, 1, 1, b->add_aux(&key, 1));
	b->ops[build].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 2, 0, 0);
	int64_t		bounds[] = {column(b.get(), 0, 0), -1};

	if (band)
		bounds[1] = column(b.get(), 1, 0);
	b->emit(Opcode::SeekRange, Type::None, 1, band ? RANGE_LO | RANGE_HI : RANGE_LO | RANGE_LO_STRICT, b->add_aux(bounds, 2));
	b->emit(Opcode::Match, Type::None, 1, static_cast<int>(JoinKind::Inner), 0);
	sinks(b.get(), parallel, band ? column(b.get(), 1, 1) : -1);
	run(state, *b, {&outer, &inner}, static_cast<int>(state.range(0)), BATCH);
}

/*
 * count(*), sum(of the inner side) of an equality join; keys by `kind`. Those from WIDE on are int8 all over the range:
 * each once a side, inner ones four times, one lane in 500 finding a row, and as WIDE with a column of cursor 0 in the sum.
 */
enum : int64_t { SORTED_INNER, RANDOM_INNER, DUPLICATES, SPARSE, MISSING, WIDE, WIDE_DUPLICATES, WIDE_MISSING, WIDE_BOTH };

void
equality(benchmark::State &state)
{
	const uint32_t n = setting("GPUVM_BENCH_ROWS", 8000000);
	const int64_t kind = state.range(1);
	const Type	type = kind >= WIDE ? Type::I64 : Type::I32;
	std::mt19937_64 rng(1);
	auto		b = std::make_unique<ProgramBuilder>();
	std::vector<std::unique_ptr<Table>> sides;

	for (int side = 0; side < 2; side++)
	{
		std::vector<int32_t> keys(n), values(n);
		std::vector<int64_t> wide;

		std::iota(keys.begin(), keys.end(), 1);
		if ((side == 1) == (kind == RANDOM_INNER) || kind >= WIDE)
			std::shuffle(keys.begin(), keys.end(), rng);
		if (kind == DUPLICATES || kind == WIDE_DUPLICATES)
			for (int32_t &k : keys)
				k = static_cast<int32_t>(rng() % (side == 1 ? n / 4 : n));
		if (kind == SPARSE)
			for (int32_t &k : keys)
				k = static_cast<int32_t>(static_cast<uint32_t>(k) * 0x9e3779b1u);
		for (int32_t &v : values)
			v = static_cast<int32_t>(rng() % 1000);
		/* one lane in 500 finds a row */
		if (kind == MISSING)
			for (int32_t &k : keys)
				k = static_cast<int32_t>(rng());
		if (kind == WIDE_MISSING && side == 0)
			for (int32_t &k : keys)
				k += rng() % 500 > 0 ? 1 << 30 : 0;
		if (kind >= WIDE)
			for (int32_t k : keys)
				wide.push_back(static_cast<int64_t>(static_cast<uint64_t>(k) * 0x9e3779b97f4a7c15u));
		sides.push_back(std::make_unique<Table>(std::vector<std::vector<int32_t>>{std::move(keys), std::move(values)}, wide));
	}

	host(b.get(), true, true);

	const int	build = b->emit(Opcode::Parallel, Type::None, 1, 1, 0);
	const int64_t key = column(b.get(), 0, 1, type);

	b->emit(Opcode::HashInsert, Type::None, 1, 1, b->add_aux(&key, 1));
	b->ops[build].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 2, 0, 0);
	const int64_t probe = column(b.get(), 0, 0, type);
	const int	outer_value = kind == WIDE_BOTH ? column(b.get(), 1, 0) : -1;

	b->emit(Opcode::Seek, Type::None, 1, 1, b->add_aux(&probe, 1));
	b->emit(Opcode::Match, Type::None, 1, static_cast<int>(JoinKind::Inner), 0);

	int			sum = column(b.get(), 1, 1);

	if (kind == WIDE_BOTH)
	{
		const int	both = b->new_reg(Type::I32);

		b->emit(Opcode::Add, Type::I32, both, sum, outer_value);
		sum = both;
	}
	sinks(b.get(), parallel, sum);
	run(state, *b, {sides[0].get(), sides[1].get()}, static_cast<int>(state.range(0)), BATCH);
}

/*
 * count(*), sum of a column of a large table, joined with three small ones of whose rows a fifth, a fifth and three sevenths are left. `filter`:
 * rows of the large one are held against the small ones' keys first.
 */
void
star(benchmark::State &state)
{
	struct Small
	{
		uint32_t	n, percent;
	};
	constexpr Small smalls[] = {{300000, 20}, {20000, 20}, {2555, 43}};
	const uint32_t n = setting("GPUVM_BENCH_STAR", 20000000);
	const uint64_t least = cpu_join::filter_rows;
	const int64_t sources[] = {RESULT_FROM_AGG, RESULT_FROM_AGG | 1};
	std::mt19937_64 rng(1);
	auto		b = std::make_unique<ProgramBuilder>();
	std::vector<std::unique_ptr<Table>> sides;
	std::vector<std::vector<int32_t>> facts(4);

	for (uint32_t i = 0; i < n; i++)
	{
		for (int k = 0; k < 3; k++)
			facts[k].push_back(static_cast<int32_t>(rng() % smalls[k].n) + 1);
		facts[3].push_back(static_cast<int32_t>(rng() % 10000));
	}

	const Table	outer(facts);
	std::vector<const Table *> tables = {&outer};

	facts.clear();
	for (const Small &small : smalls)
	{
		std::vector<std::vector<int32_t>> columns(1);

		for (uint32_t key = 1; key <= small.n; key++)
			if (rng() % 100 < small.percent)
				columns[0].push_back(static_cast<int32_t>(key));
		sides.push_back(std::make_unique<Table>(columns));
		tables.push_back(sides.back().get());
	}
	b->init();
	for (int k = 0; k <= 3; k++)
		b->emit(Opcode::Table, Type::None, k, 0, k);
	for (int k = 1; k <= 3; k++)
		b->emit(Opcode::HashOpen, Type::None, k, 1, 0);
	b->emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b->add_name("count"));
	b->emit(Opcode::ResultColumn, Type::I128, 1, 0, 0, b->add_name("sum"));
	b->emit(Opcode::AggOpen, Type::None, 0, 2, b->add_aux(sources, 2));
	for (int k = 1; k <= 3; k++)
	{
		const int	build = b->emit(Opcode::Parallel, Type::None, 1, k, 0);
		const int64_t key = column(b.get(), 0, k);

		b->emit(Opcode::HashInsert, Type::None, k, 1, b->add_aux(&key, 1));
		b->ops[build].p3 = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	}

	const int	parallel = b->emit(Opcode::Parallel, Type::None, 4, 0, 0);
	const int	sum = column(b.get(), 3, 0);

	for (int k = 1; k <= 3; k++)
	{
		const int64_t key = column(b.get(), k - 1, 0);

		b->emit(Opcode::Seek, Type::None, k, 1, b->add_aux(&key, 1));
		b->emit(Opcode::Match, Type::None, k, static_cast<int>(JoinKind::Inner), 0);
	}
	sinks(b.get(), parallel, sum);
	cpu_join::filter_rows = state.range(1) != 0 ? 0 : UINT64_MAX;
	run(state, *b, tables, static_cast<int>(state.range(0)), BATCH);
	cpu_join::filter_rows = least;
}

}  // namespace

BENCHMARK(theta)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK(range)->ArgNames({"threads", "bounds"})->ArgsProduct({{1, 2}, {BELOW, BAND}})
	->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK(equality)->ArgNames({"threads", "keys"})->ArgsProduct({{1, 2}, {SORTED_INNER, RANDOM_INNER, DUPLICATES, SPARSE, MISSING,
																			WIDE, WIDE_DUPLICATES, WIDE_MISSING, WIDE_BOTH}})
	->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK(star)->ArgNames({"threads", "filter"})->ArgsProduct({{1, 2}, {0, 1}})->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();

BENCHMARK_MAIN();
