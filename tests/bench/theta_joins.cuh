/*
 * theta_joins.cuh: nested loops on the GPU (grids, cuda/grid.cuh): two sets of
 * so many rows, their pairs counted and added up, with eight and with sixteen rows
 * a lane. Loops of comparisons alone take eight inner rows at a time where a lane has sixteen
 * (cuda/pair_tile.cuh), so both ways are measured. Answers come from sorted values.
 */
#ifndef GPUVM_BENCH_THETA_JOINS_CUH
#define GPUVM_BENCH_THETA_JOINS_CUH

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include "launch.h"
#include "lower.h"
#include "timing.cuh"

namespace theta {

using namespace gpuvm;

/* Columns 0 and 1 are the outer rows', 2 and 3 the inner rows'. */
constexpr int NCOLUMNS = 4, OUTER = 2;
constexpr int64_t LIMIT = 1000000, SUM_BELOW = 1000;

enum class Query
{
	Less,						/* count(*) where a.x < b.y */
	LessSum,					/* count(*), sum(a.x) where a.x < b.y */
	LessSumInner,				/* count(*), sum(b.y) where a.x < b.y */
	Two,						/* count(*) where a.x < b.y and a.z > b.w */
	Equal,						/* count(*) where a.x = b.y */
	Arithmetic,					/* count(*) where a.x + b.y < 1000 */
	Across,						/* count(*), sum(a.x) where a.x + b.y < a.z - b.w */
};

struct Case
{
	const char *name;
	Query		query;
	Type		type;
};

inline const Case cases[] = {
	{"a.x < b.y, count, int4", Query::Less, Type::I32},
	{"a.x < b.y, count and sum(a.x), int4", Query::LessSum, Type::I32},
	{"a.x < b.y, count and sum(b.y), int4", Query::LessSumInner, Type::I32},
	{"a.x < b.y and a.z > b.w, count, int4", Query::Two, Type::I32},
	{"a.x = b.y, count, int4", Query::Equal, Type::I32},
	{"a.x + b.y < 1000, count, int4", Query::Arithmetic, Type::I32},
	{"a.x + b.y < a.z - b.w, count and sum(a.x)", Query::Across, Type::I32},
	{"a.x < b.y, count, int8", Query::Less, Type::I64},
	{"a.x < b.y, count and sum(a.x), int8", Query::LessSum, Type::I64},
	{"a.x < b.y, count, float4", Query::Less, Type::F32},
	{"a.x < b.y, count, float8", Query::Less, Type::F64},
};

inline std::vector<char>
compile(const Case &c)
{
	std::unique_ptr<ProgramBuilder> builder(new ProgramBuilder);
	ProgramBuilder &b = *builder;
	const Type	t = c.type;
	const bool	sums = c.query == Query::LessSum || c.query == Query::LessSumInner || c.query == Query::Across;
	const int64_t sources[] = {RESULT_FROM_AGG, RESULT_FROM_AGG | 1};
	int			reg[NCOLUMNS];

	b.init();
	b.emit(Opcode::Table, Type::None, 0, 0, 0);
	b.emit(Opcode::ResultColumn, Type::I64, 0, 0, 0, b.add_name("count"));
	if (sums)
		b.emit(Opcode::ResultColumn, agg_result_type(AggFn::Sum, t), 1, 0, 0, b.add_name("sum"));
	b.emit(Opcode::AggOpen, Type::None, 0, sums ? 2 : 1, b.add_aux(sources, sums ? 2 : 1));

	const int	parallel = b.emit(Opcode::Parallel, Type::None, 1, 0, 0);
	auto		dies = [&](Opcode o, int x, int y) { b.emit(o, t, x, y, b.nops + 1, VERDICT_DIES, JUMP_IF_NULL); };

	for (int i = 0; i < NCOLUMNS; i++)
	{
		reg[i] = b.new_reg(t);
		if (i % 2 == 0 || c.query == Query::Two || c.query == Query::Across)
			b.emit(Opcode::Column, t, reg[i], i, 0);
	}
	if (c.query == Query::Arithmetic)
	{
		const int	sum = b.new_reg(t), bound = b.new_reg(t);

		b.emit(Opcode::Integer, t, bound, static_cast<int>(SUM_BELOW), 0);
		b.emit(Opcode::Add, t, sum, reg[0], reg[2]);
		dies(Opcode::Ge, sum, bound);
	}
	else if (c.query == Query::Across)
	{
		const int	sum = b.new_reg(t), difference = b.new_reg(t);

		b.emit(Opcode::Add, t, sum, reg[0], reg[2]);
		b.emit(Opcode::Sub, t, difference, reg[1], reg[3]);
		dies(Opcode::Ge, sum, difference);
	}
	else
		dies(c.query == Query::Equal ? Opcode::Ne : Opcode::Ge, reg[0], reg[2]);
	if (c.query == Query::Two)
		dies(Opcode::Le, reg[1], reg[3]);
	b.emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	if (sums)
		b.emit(Opcode::AggStep, t, 1, c.query == Query::LessSumInner ? reg[2] : reg[0], -1, 0, static_cast<uint8_t>(AggFn::Sum));
	b.ops[parallel].p3 = b.emit(Opcode::Converge, Type::None, 0, 0, 0);
	b.emit(Opcode::Finish, Type::None, 0, 0, 0);

	std::vector<char> sealed(b.sealed_size());

	b.seal(reinterpret_cast<Program *>(sealed.data()));
	return sealed;
}

struct Answer
{
	uint64_t	count = 0;
	int64_t		sum = 0;
};

/* Of a comparison of x with y, from sorted values. */
inline Answer
answer(Query query, const std::vector<int64_t> &x, std::vector<int64_t> y)
{
	Answer		r;
	std::vector<int64_t> from_end(y.size() + 1, 0);

	std::sort(y.begin(), y.end());
	for (size_t i = y.size(); i > 0; i--)
		from_end[i - 1] = from_end[i] + y[i - 1];
	for (int64_t v : x)
	{
		const auto	above = std::upper_bound(y.begin(), y.end(), v), at = std::lower_bound(y.begin(), y.end(), v);

		if (query == Query::Equal)
			r.count += static_cast<uint64_t>(above - at);
		else if (query == Query::Arithmetic)
			r.count += static_cast<uint64_t>(std::lower_bound(y.begin(), y.end(), SUM_BELOW - v) - y.begin());
		else
		{
			const uint64_t n = static_cast<uint64_t>(y.end() - above);

			r.count += n;
			r.sum += query == Query::LessSumInner ? from_end[static_cast<size_t>(above - y.begin())] : v * static_cast<int64_t>(n);
		}
	}
	return r;
}

template <typename V>
uint64_t
copy_column(const std::vector<int64_t> &values, size_t capacity)
{
	std::vector<V> as(capacity, V(0));
	void	   *to;

	for (size_t i = 0; i < values.size(); i++)
		as[i] = static_cast<V>(values[i]);
	CHECK(cudaMalloc(&to, capacity * sizeof(V)));
	CHECK(cudaMemcpy(to, as.data(), capacity * sizeof(V), cudaMemcpyHostToDevice));
	return reinterpret_cast<uint64_t>(to);
}

template <typename T>
T *
to_device(const std::vector<T> &from)
{
	T		   *to;

	CHECK(cudaMalloc(&to, from.size() * sizeof(T)));
	CHECK(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
	return to;
}

/* Returns false if a result was wrong. Device memory goes with the process. */
inline bool
run_case(const Case &c, uint32_t nrows, int reps, const cuda::LaunchScratch &scratch)
{
	const uint32_t npads = (nrows + TABLET_PAD_ROWS - 1) / TABLET_PAD_ROWS;
	const std::vector<char> program = compile(c);
	std::mt19937_64 rng(4711);
	std::vector<int64_t> values[NCOLUMNS];
	cuda::DeviceChunk chunks[NCOLUMNS];
	std::vector<cuda::ColumnBinding> bindings;
	std::vector<cuda::DevicePad> pads;
	bool		right = true;
	uint64_t	first_count = 0;
	int64_t		first_sum = 0;

	for (int i = 0; i < NCOLUMNS; i++)
	{
		const size_t capacity = npads * TABLET_PAD_ROWS;
		const int	width = type_width(c.type);

		for (uint32_t r = 0; r < nrows; r++)
			values[i].push_back(static_cast<int64_t>(rng() % (2 * LIMIT + 1)) - LIMIT);

		ColumnSummary summary = {};

		summary.type = c.type;
		summary.max_width = static_cast<uint8_t>(width);
		summary.min = type_is_float(c.type) ? 0 : -LIMIT;
		summary.max = type_is_float(c.type) ? 0 : LIMIT;
		summary.exp_lo = -60;
		summary.exp_hi = 30;
		bindings.push_back(cuda::ColumnBinding{summary, static_cast<uint8_t>(width)});
		chunks[i] = cuda::DeviceChunk{c.type == Type::I32 ? copy_column<int32_t>(values[i], capacity) : c.type == Type::I64 ? copy_column<int64_t>(values[i], capacity)
			: c.type == Type::F32 ? copy_column<float>(values[i], capacity) : copy_column<double>(values[i], capacity), 0, 0, static_cast<uint32_t>(width), 0};
	}
	for (uint32_t p = 0; p < npads; p++)
		pads.push_back(cuda::DevicePad{0, p * TABLET_PAD_ROWS});

	std::vector<int64_t> x = values[0], y = values[2];

	/* a.x - a.z < -b.w - b.y */
	for (uint32_t r = 0; c.query == Query::Across && r < nrows; r++)
	{
		x[r] -= values[1][r];
		y[r] = -values[3][r] - values[2][r];
	}

	/* What has no such answer is to be the same in both forms. */
	const Answer want = answer(c.query, x, y);

	for (uint16_t rows_per_lane : {8, 16})
	{
		std::unique_ptr<cuda::DeviceProgram> lowered(new cuda::DeviceProgram);
		cuda::LowerOptions options = {rows_per_lane, true};

		options.grid = true;
		options.uniform_from = OUTER;

		const char *refused = cuda::lower(cuda::LowerInput{reinterpret_cast<const Program *>(program.data()), nullptr, bindings.data(), NCOLUMNS,
										  static_cast<uint64_t>(nrows) * nrows, options}, lowered.get());
		cuda::LaunchShape shape;

		CHECK(refused ? cudaErrorInvalidValue : cuda::choose_shape(*lowered, npads, &shape, 0, nrows));

		std::vector<cuda::DeviceChunk> outer, inner;

		for (int i = 0; i < lowered->ncolumns; i++)
			outer.push_back(chunks[lowered->columns[i].table_column]);
		for (int i = 0; i < lowered->grid.nuniforms; i++)
			inner.push_back(chunks[lowered->grid.uniforms[i].table_column]);

		cuda::SliceArgs args = {{to_device(std::vector<cuda::DeviceTablet>{{nrows, 0}}), to_device(outer), to_device(pads), npads, 0}, 0, npads,
			nullptr, nullptr, nullptr};

		args.inner_columns = to_device(inner);
		args.inner_rows = nrows;

		const Timing timing = measure(reps, 1, [&]
		{
			CHECK(cuda::reset_state(scratch, 0));
			CHECK(cuda::launch_slice(*lowered, shape, scratch, args, 0));
		});
		cuda::LaunchState state;

		CHECK(cudaMemcpy(&state, scratch.state, sizeof(state), cudaMemcpyDeviceToHost));

		bool		ok = state.errors == 0;

		first_count = rows_per_lane == 8 ? state.result[0].count : first_count;
		ok &= c.query == Query::Two ? state.result[0].count == first_count : state.result[0].count == want.count;
		first_sum = rows_per_lane == 8 ? static_cast<int64_t>(state.result[1].lo) : first_sum;
		if (c.query == Query::Across)
			ok &= static_cast<int64_t>(state.result[1].lo) == first_sum;
		if (c.query == Query::LessSum || c.query == Query::LessSumInner)
			ok &= static_cast<int64_t>(state.result[1].lo) == want.sum;
		right &= ok;
		printf("%-40s R%-2d %-22s b%u x %u threads, %4u inner rows a unit | %8.3f ms %7.3f T pairs/s %s\n", c.name, rows_per_lane,
			   lowered->grid.pairs ? "eight inner rows" : "one inner row", shape.blocks_per_sm, shape.threads, shape.unit_inner, timing.median_ms,
			   static_cast<double>(nrows) * nrows / timing.median_ms * 1e-9, ok ? "" : "WRONG");
		fflush(stdout);
	}
	return right;
}

}  // namespace theta

#endif
