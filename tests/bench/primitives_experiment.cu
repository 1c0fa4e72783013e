/*
 * primitives_experiment: the central claim of the papers on opcodes: a query as
 * one program in one kernel, against a kernel for each primitive, whose
 * intermediate results go through the GPU's memory (primitives.cuh).
 *
 * The papers' thirteen queries, the first ten as they are (rows, into the GPU's
 * memory) and counted. The distributions are the papers', stretched to +-46,000
 * so that tablets store integers in the four bytes that primitives read; floats
 * are multiples of 2^-8, so that double precision sums them exactly. The
 * program checks for overflow where ranges do not exclude it; primitives never.
 *
 * All answers are compared with a plain loop on the CPU: counts, sums, extremes,
 * and for rows their number and the sum of a hash of each. Prints a table, and
 * CSV with --csv: bytes are what the kernels must move to and from memory.
 *
 *   primitives_experiment [--rows N] [--reps N] [--csv FILE]
 */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kernel_launch.h"
#include "launch.h"
#include "lower.h"
#include "primitives.cuh"
#include "tablet/build.h"
#include "timing.cuh"

using namespace gpuvm;
using gpuvm::cuda::launch_kernel;
using primitives::Arith;
using primitives::Cmp;
using primitives::Logic;

namespace {

enum Column { ID, UI, N5I, N20I, UF, N5F, N20F, NCOLS };

const Type	column_types[NCOLS] = {Type::I32, Type::I32, Type::I32, Type::I32, Type::F32, Type::F32, Type::F32};
constexpr int DISTINCT = 4;		/* tablets generated; the table repeats them */

/* What integers of the papers' scale become. */
constexpr int32_t STRETCH_U = 464, STRETCH_5 = 1640, STRETCH_20 = 410;

enum class Filter { None, And, AndWide, Arithmetic, Product, Or, Positive };
enum class Sink { Rows, Count, SumFloat, SumInt, Extremes };

struct Query
{
	const char *name;
	Filter		filter;
	Sink		sink;
	Column		u, n5, n20;		/* integers or floats */
	std::vector<Column> outputs;
};

bool
is_float(const Query &q)
{
	return q.u == UF;
}

std::vector<Query>
queries()
{
	std::vector<Query> all;

	for (Sink sink : {Sink::Rows, Sink::Count})
	{
		static const char *const rows[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"};
		static const char *const counted[] = {"1 counted", "2 counted", "3 counted", "4 counted", "5 counted", "6 counted", "7 counted",
			"8 counted", "9 counted", "10 counted"};
		static const Filter filters[] = {Filter::And, Filter::AndWide, Filter::Arithmetic, Filter::Product, Filter::Or};

		for (int i = 0; i < 10; i++)
		{
			Column		u = i % 2 ? UF : UI, n5 = i % 2 ? N5F : N5I, n20 = i % 2 ? N20F : N20I;
			Filter		f = filters[i / 2];
			std::vector<Column> outputs = f == Filter::And || f == Filter::AndWide ? std::vector<Column>{ID, u, n5}
				: f == Filter::Or ? std::vector<Column>{ID, u, n5, n20} : std::vector<Column>{ID, n5, n20};

			all.push_back({(sink == Sink::Rows ? rows : counted)[i], f, sink, u, n5, n20, outputs});
		}
	}
	all.push_back({"11", Filter::None, Sink::SumFloat, UF, N5F, N20F, {N20F}});
	all.push_back({"12", Filter::Positive, Sink::SumInt, UI, N5I, N20I, {UI}});
	all.push_back({"13", Filter::None, Sink::Extremes, UI, N5I, N20I, {N5I}});
	return all;
}

/* The constants of a query, in its columns' scale. */
struct Constants
{
	int			u, n5, add, sub, product;
};

Constants
constants(const Query &q)
{
	int			u = q.filter == Filter::And ? 60 : -60, n5 = q.filter == Filter::And ? 0 : 5;

	if (is_float(q))
		return {u, n5, 40, 10, 5};
	return {u * STRETCH_U, n5 * STRETCH_5, 40 * STRETCH_20, 10 * STRETCH_U, 5 * STRETCH_5 * STRETCH_20};
}

/* -- data -------------------------------------------------------------------------------------- */

struct HostTablet
{
	uint32_t	nrows;
	std::vector<int32_t> values[NCOLS];	/* or the bits of a float */
	std::vector<char> bytes;	/* the tablet */
};

float
as_float(int32_t bits)
{
	float		f;

	memcpy(&f, &bits, 4);
	return f;
}

int32_t
as_bits(double v)
{
	float		f = static_cast<float>(v);
	int32_t		bits;

	memcpy(&bits, &f, 4);
	return bits;
}

void
make_tablet(HostTablet &t, uint32_t nrows, uint32_t seed)
{
	std::mt19937_64 random(seed);
	std::normal_distribution<double> normal;
	std::uniform_int_distribution<int> uniform(-99, 99), fine(-99 * 256, 99 * 256);
	auto		clip = [](double v, int most) { return static_cast<int>(std::lround(std::max<double>(-most, std::min<double>(most, v)))); };

	t.nrows = nrows;
	for (int c = 0; c < NCOLS; c++)
		t.values[c].resize(nrows);
	for (uint32_t row = 0; row < nrows; row++)
	{
		/* Both ends are there, so that every tablet has the full width. */
		bool		end = row < 2;
		int			sign = row == 0 ? 1 : -1;

		t.values[ID][row] = static_cast<int32_t>(row);
		t.values[UI][row] = (end ? sign * 99 : uniform(random)) * STRETCH_U;
		t.values[N5I][row] = (end ? sign * 28 : clip(5 * normal(random), 28)) * STRETCH_5;
		t.values[N20I][row] = (end ? sign * 112 : clip(20 * normal(random), 112)) * STRETCH_20;
		t.values[UF][row] = as_bits(fine(random) / 256.0);
		t.values[N5F][row] = as_bits(clip(5 * 256 * normal(random), 28 * 256) / 256.0);
		t.values[N20F][row] = as_bits(clip(20 * 256 * normal(random), 112 * 256) / 256.0);
	}

	std::vector<StagedColumn> staged(NCOLS);

	for (int c = 0; c < NCOLS; c++)
		staged[c] = StagedColumn{column_types[c], static_cast<int16_t>(c + 1), t.values[c].data(), nullptr};

	const uint32_t block_rows[2] = {0, nrows};
	const uint64_t lsn = 1;
	const uint32_t lps = LPS_DENSE;
	StagedTablet s = {nrows, NCOLS, staged.data(), 0, 1, block_rows, &lsn, &lps, nullptr, 0};
	TabletHeader header;
	ColumnChunk chunks[NCOLS];
	uint64_t	size = plan_tablet(s, &header, chunks);
	std::unique_ptr<char, void (*) (void *)> aligned(static_cast<char *>(aligned_alloc(TABLET_ALIGN, align_up(size, TABLET_ALIGN))), free);

	write_tablet(s, header, chunks, seed, aligned.get());

	const char *problem = check_tablet(reinterpret_cast<const TabletHeader *>(aligned.get()), size);

	for (int c = 0; c < NCOLS && !problem; c++)
		if (nrows > 70000 && tablet_chunks(reinterpret_cast<TabletHeader *>(aligned.get()))[c].width != 4)
			problem = "a column is not stored in four bytes";
	if (problem)
	{
		fprintf(stderr, "tablet: %s\n", problem);
		exit(1);
	}
	t.bytes.assign(aligned.get(), aligned.get() + size);
}


GPUVM_HD uint64_t
hash_step(uint64_t h, uint32_t v)
{
	h = (h ^ v) * 0xff51afd7ed558ccdull;
	return h ^ h >> 32;
}

struct Answer
{
	uint64_t	count;			/* rows taken */
	uint64_t	hash;			/* of rows; the bits of a sum or of two extremes */

	bool operator==(const Answer &o) const { return count == o.count && hash == o.hash; }
};

/* The plain loop. */
template <typename T, typename Get>
bool
passes(const Query &q, const Constants &k, const HostTablet &t, uint32_t row, Get get)
{
	T			u = get(t.values[q.u][row]), n5 = get(t.values[q.n5][row]), n20 = get(t.values[q.n20][row]);

	switch (q.filter)
	{
		case Filter::None: return true;
		case Filter::And:
		case Filter::AndWide: return u > T(k.u) && n5 < T(k.n5);
		case Filter::Arithmetic: return n20 + T(k.add) > u - T(k.sub);
		case Filter::Product: return n5 * n20 >= T(-k.product) && n5 * n20 <= T(k.product);
		case Filter::Or: return u == T(0) || n5 == T(0) || n20 == T(0);
		case Filter::Positive: return u > T(0);
	}
	return false;
}

struct Totals
{
	uint64_t	count = 0, hash = 0;
	int64_t		sum = 0;
	double		float_sum = 0;
	int32_t		greatest = INT32_MIN, least = INT32_MAX;
};

Totals
answer_tablet(const Query &q, const HostTablet &t)
{
	Constants	k = constants(q);
	Totals		a;

	for (uint32_t row = 0; row < t.nrows; row++)
	{
		if (is_float(q) ? !passes<float>(q, k, t, row, as_float) : !passes<int32_t>(q, k, t, row, [](int32_t v) { return v; }))
			continue;

		uint64_t	h = 0;

		for (Column c : q.outputs)
			h = hash_step(h, static_cast<uint32_t>(t.values[c][row]));
		a.hash += h;
		a.count++;
		a.sum += t.values[q.u][row];
		a.float_sum += as_float(t.values[q.n20][row]);
		a.greatest = std::max(a.greatest, t.values[q.n5][row]);
		a.least = std::min(a.least, t.values[q.n5][row]);
	}
	return a;
}

Answer
make_answer(const Query &q, const Totals &a)
{
	Answer		answer = {a.count, 0};

	switch (q.sink)
	{
		case Sink::Rows: answer.hash = a.hash; break;
		case Sink::Count: break;
		case Sink::SumFloat: memcpy(&answer.hash, &a.float_sum, 8); answer.count = 0; break;
		case Sink::SumInt: answer.hash = static_cast<uint64_t>(a.sum); break;
		case Sink::Extremes: answer.hash = static_cast<uint64_t>(static_cast<uint32_t>(a.greatest)) << 32 | static_cast<uint32_t>(a.least); answer.count = 0; break;
	}
	return answer;
}

/* -- the table on the device: as tablets, and as plain columns ------------------------------------ */

template <typename T>
T *
device_array(uint64_t n)
{
	void	   *p;

	CHECK(cudaMalloc(&p, n * sizeof(T) + 64));
	return static_cast<T *>(p);
}

template <typename T>
T *
upload(const std::vector<T> &v)
{
	T		   *p = device_array<T>(v.size());

	CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
	return p;
}

struct Table
{
	std::vector<HostTablet> distinct;
	std::vector<int> order;		/* which of the distinct ones each tablet is */
	std::vector<char *> at;		/* each tablet's address on the device */
	int32_t    *flat[NCOLS];
	uint32_t	rows = 0;
	cuda::ColumnBinding columns[NCOLS];
};

void
load_table(Table &table, uint64_t rows)
{
	std::vector<std::thread> threads;
	uint32_t	full = static_cast<uint32_t>(std::min<uint64_t>(TABLET_MAX_ROWS, std::max<uint64_t>(rows / DISTINCT, 2)));

	table.distinct.resize(DISTINCT);
	for (int i = 0; i < DISTINCT; i++)
		threads.emplace_back([&table, full, i] { make_tablet(table.distinct[i], full > 5000 ? full - 577u * i : full, 1000 + i); });
	for (std::thread &t : threads)
		t.join();
	for (int c = 0; c < NCOLS; c++)
		for (int i = 0; i < DISTINCT; i++)
		{
			const ColumnChunk &chunk = tablet_chunks(reinterpret_cast<TabletHeader *>(table.distinct[i].bytes.data()))[c];

			summarize_chunk(&table.columns[c].summary, chunk, i == 0);
			table.columns[c].min_width = i == 0 ? chunk.width : std::min(table.columns[c].min_width, chunk.width);
		}
	for (int i = 0; table.rows < rows; i++)
	{
		table.order.push_back(i % DISTINCT);
		table.rows += table.distinct[i % DISTINCT].nrows;
	}
	for (int c = 0; c < NCOLS; c++)
		table.flat[c] = device_array<int32_t>(table.rows);

	uint32_t	row = 0;
	std::vector<char *> first(DISTINCT);

	for (int d : table.order)
	{
		const HostTablet &t = table.distinct[d];
		char	   *to = device_array<char>(t.bytes.size());

		CHECK(cudaMemcpy(to, first[d] ? first[d] : t.bytes.data(), t.bytes.size(), cudaMemcpyDefault));
		first[d] = to;
		table.at.push_back(to);
		for (int c = 0; c < NCOLS; c++)
			CHECK(cudaMemcpy(table.flat[c] + row, t.values[c].data(), t.nrows * 4ull, cudaMemcpyHostToDevice));
		row += t.nrows;
	}
}

/* The launch's view of the columns that the program stages. */
cuda::DeviceTable
bind(const Table &table, const cuda::DeviceProgram &program)
{
	std::vector<cuda::DeviceTablet> tablets;
	std::vector<cuda::DeviceChunk> chunks;
	std::vector<cuda::DevicePad> pads;

	for (size_t i = 0; i < table.order.size(); i++)
	{
		const TabletHeader *h = reinterpret_cast<const TabletHeader *>(table.distinct[table.order[i]].bytes.data());

		tablets.push_back({h->nrows, 0});
		for (uint32_t row = 0; row < h->padded_rows; row += TABLET_PAD_ROWS)
			pads.push_back({static_cast<uint32_t>(i), row});
		for (int c = 0; c < program.ncolumns; c++)
		{
			const ColumnChunk &chunk = tablet_chunks(h)[program.columns[c].table_column];

			chunks.push_back({chunk.data ? reinterpret_cast<uint64_t>(table.at[i]) + chunk.data : 0, 0, chunk.base, chunk.width, 0});
		}
	}
	return cuda::DeviceTable{upload(tablets), upload(chunks), upload(pads), static_cast<uint32_t>(pads.size()), 0};
}

void
unbind(const cuda::DeviceTable &t)
{
	CHECK(cudaFree(const_cast<cuda::DeviceTablet *>(t.tablets)));
	CHECK(cudaFree(const_cast<cuda::DeviceChunk *>(t.chunks)));
	CHECK(cudaFree(const_cast<cuda::DevicePad *>(t.pads)));
}

/* -- a query as a program ---------------------------------------------------------------------------- */

class Compiler
{
public:
	explicit Compiler(const Query &q) : q(q), b(new ProgramBuilder) {}

	std::vector<char>
	compile()
	{
		Constants	k = constants(q);
		Type		type = is_float(q) ? Type::F32 : Type::I32;

		b->init();
		b->ncursors = 1;
		b->emit(Opcode::Table, Type::None, 0, 0, 0);
		results();
		b->parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);
		switch (q.filter)
		{
			case Filter::None: break;
			case Filter::And:
			case Filter::AndWide:
				dies(Opcode::Le, type, column(q.u), constant(type, k.u));
				dies(Opcode::Ge, type, column(q.n5), constant(type, k.n5));
				break;
			case Filter::Arithmetic:
			{
				int			left = binary(Opcode::Add, type, column(q.n20), constant(type, k.add));

				dies(Opcode::Le, type, left, binary(Opcode::Sub, type, column(q.u), constant(type, k.sub)));
				break;
			}
			case Filter::Product:
			{
				int			product = binary(Opcode::Mul, type, column(q.n5), column(q.n20));

				dies(Opcode::Lt, type, product, constant(type, -k.product));
				dies(Opcode::Gt, type, product, constant(type, k.product));
				break;
			}
			case Filter::Or:
			{
				int			first = jump(Opcode::Eq, type, column(q.u), constant(type, 0));
				int			second = jump(Opcode::Eq, type, column(q.n5), constant(type, 0));

				dies(Opcode::Ne, type, column(q.n20), constant(type, 0));
				/* Columns that results need are loaded for all lanes again. */
				b->ops[first].p3 = b->ops[second].p3 = b->emit(Opcode::Integer, Type::I32, b->new_reg(Type::I32), 0, 0);
				break;
			}
			case Filter::Positive:
				dies(Opcode::Le, type, column(q.u), constant(type, 0));
				break;
		}
		sink(type);
		b->converge = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
		b->emit(Opcode::Finish, Type::None, 0, 0, 0);
		b->ops[b->parallel].p3 = b->converge;
		for (int d : deaths)
			b->ops[d].p3 = b->converge;

		std::vector<char> sealed(b->sealed_size());

		b->seal(reinterpret_cast<Program *>(sealed.data()));

		CursorSchema schema = {NCOLS, column_types};
		const char *problem = verify_program(reinterpret_cast<Program *>(sealed.data()), sealed.size(), &schema, 1);

		if (b->failed || problem)
		{
			fprintf(stderr, "program of query %s: %s\n", q.name, problem ? problem : "does not fit");
			exit(1);
		}
		return sealed;
	}

private:
	void
	results()
	{
		if (q.sink == Sink::Rows)
		{
			b->nresults = static_cast<int>(q.outputs.size());
			for (size_t i = 0; i < q.outputs.size(); i++)
			{
				b->emit(Opcode::ResultColumn, column_types[q.outputs[i]], static_cast<int>(i), 0, 0, b->add_name("c"));
				outputs.push_back(b->new_reg(column_types[q.outputs[i]]));
			}
			return;
		}
		if (q.sink == Sink::Count)
			aggs = {{AggFn::CountStar, Type::None}};
		else if (q.sink == Sink::SumFloat)
			aggs = {{AggFn::Sum, Type::F32}};
		else if (q.sink == Sink::SumInt)
			aggs = {{AggFn::Sum, Type::I32}, {AggFn::CountStar, Type::None}};
		else
			aggs = {{AggFn::Max, Type::I32}, {AggFn::Min, Type::I32}};

		int64_t		sources[2] = {RESULT_FROM_AGG, RESULT_FROM_AGG | 1};

		b->grouped = true;
		b->naggs = b->nresults = static_cast<int>(aggs.size());
		for (size_t i = 0; i < aggs.size(); i++)
			b->emit(Opcode::ResultColumn, agg_result_type(aggs[i].first, aggs[i].second), static_cast<int>(i), 0, 0, b->add_name("a"));
		b->emit(Opcode::AggOpen, Type::None, 0, b->naggs, b->add_aux(sources, b->naggs));
	}

	void
	sink(Type)
	{
		if (q.sink == Sink::Rows)
		{
			for (size_t i = 0; i < outputs.size(); i++)
			{
				int			r = loaded[q.outputs[i]];

				if (r < 0)
					b->emit(Opcode::Column, column_types[q.outputs[i]], outputs[i], q.outputs[i], 0);
				else if (r != outputs[i])
					b->emit(Opcode::Copy, column_types[q.outputs[i]], outputs[i], r, 0);
			}
			b->emit(Opcode::Result, Type::None, outputs[0], static_cast<int>(outputs.size()), 0);
			return;
		}
		for (size_t i = 0; i < aggs.size(); i++)
			b->emit(Opcode::AggStep, aggs[i].second, static_cast<int>(i),
					aggs[i].first == AggFn::CountStar ? -1 : column(q.outputs[0]), -1, 0, static_cast<uint8_t>(aggs[i].first));
	}

	/* A column that is an output goes into the output's register, unless some lanes may jump over it. */
	int
	column(Column c)
	{
		if (loaded[c] >= 0)
			return loaded[c];

		auto		output = std::find(q.outputs.begin(), q.outputs.end(), c);
		bool		direct = q.sink == Sink::Rows && q.filter != Filter::Or && output != q.outputs.end();
		int			r = direct ? outputs[output - q.outputs.begin()] : b->new_reg(column_types[c]);

		b->emit(Opcode::Column, column_types[c], r, c, 0);
		if (q.filter != Filter::Or)
			loaded[c] = r;
		return r;
	}

	int
	constant(Type type, int value)
	{
		int			r = b->new_reg(type);
		double		d = value;
		int64_t		bits;

		memcpy(&bits, &d, 8);
		if (type_is_float(type))
			b->emit(Opcode::Float, type, r, 0, 0, bits);
		else
			b->emit(Opcode::Integer, type, r, value, 0);
		return r;
	}

	int
	binary(Opcode op, Type type, int x, int y)
	{
		int			r = b->new_reg(type);

		b->emit(op, type, r, x, y);
		return r;
	}

	void dies(Opcode op, Type type, int x, int y) { deaths.push_back(b->emit(op, type, x, y, 0, VERDICT_DIES, JUMP_IF_NULL)); }
	int jump(Opcode op, Type type, int x, int y) { return b->emit(op, type, x, y, 0, VERDICT_JUMPS); }

	const Query &q;
	std::unique_ptr<ProgramBuilder> b;
	std::vector<int> outputs, deaths;
	std::vector<std::pair<AggFn, Type>> aggs;
	int			loaded[NCOLS] = {-1, -1, -1, -1, -1, -1, -1};
};

/* -- measuring ------------------------------------------------------------------------------------------ */

constexpr int WARM_UPS = 2;

struct Measured
{
	double		ms;
	double		bytes;
	int			kernels;
	Answer		answer;
};

constexpr uint32_t MAX_OUTPUTS = 4;

struct OutputRows				/* of one area */
{
	const uint32_t *column[MAX_OUTPUTS];
	uint32_t	ncolumns;
	uint32_t	rows;
};

__global__ void
hash_rows(const OutputRows *areas, unsigned long long *sum)
{
	const OutputRows &area = areas[blockIdx.x];
	unsigned long long mine = 0;

	for (uint32_t row = threadIdx.x; row < area.rows; row += blockDim.x)
	{
		uint64_t	h = 0;

		for (uint32_t c = 0; c < area.ncolumns; c++)
			h = hash_step(h, area.column[c][row]);
		mine += h;
	}
	atomicAdd(sum, mine);
}

Answer
answer_of_rows(const std::vector<OutputRows> &areas)
{
	OutputRows *device = upload(areas);
	unsigned long long *sum = device_array<unsigned long long>(1), result;
	Answer		answer = {0, 0};

	CHECK(cudaMemset(sum, 0, 8));
	CHECK(launch_kernel(hash_rows, static_cast<uint32_t>(areas.size()), 256, 0, nullptr, device, sum));
	CHECK(cudaMemcpy(&result, sum, 8, cudaMemcpyDeviceToHost));
	CHECK(cudaFree(device));
	CHECK(cudaFree(sum));
	for (const OutputRows &a : areas)
		answer.count += a.rows;
	answer.hash = result;
	return answer;
}

/* -- as one program --------------------------------------------------------------------------------------- */

Measured
run_aggregates(const Query &q, const Program *program, const cuda::DeviceProgram &lowered, const cuda::DeviceTable &t,
			   const cuda::LaunchShape &shape, const cuda::LaunchScratch &scratch, uint64_t rows, int reps)
{
	Measured	m = {};

	m.ms = measure(reps, WARM_UPS, [&] {
		CHECK(cuda::reset_state(scratch, nullptr));
		CHECK(cuda::launch_slice(lowered, shape, scratch, {t, 0, t.npads, nullptr, nullptr, nullptr}, nullptr));
	}).median_ms;

	cuda::LaunchState state;
	Type		types[2];
	ResultColumnLayout layout[2];
	int			n = program->nresults;

	CHECK(cudaMemcpy(&state, scratch.state, sizeof(state), cudaMemcpyDeviceToHost));
	program_result_types(program, types);

	std::vector<char> area(result_layout(types, n, RESULT_PAD_ROWS, layout));
	uint32_t	errors = cuda::emit_aggregates(lowered, state, rows, area.data(), RESULT_PAD_ROWS);

	if (errors)
	{
		fprintf(stderr, "query %s: error bits %u\n", q.name, errors);
		exit(1);
	}

	auto		word = [&](int i) { uint64_t v; memcpy(&v, area.data() + layout[i].values, 8); return v; };

	if (q.sink == Sink::Count)
		m.answer.count = word(0);
	else if (q.sink == Sink::Extremes)
		m.answer.hash = word(0) << 32 | static_cast<uint32_t>(word(1));
	else
	{
		m.answer.hash = word(0);	/* the low half of an int128 sum, or a double */
		m.answer.count = q.sink == Sink::SumInt ? word(1) : 0;
	}
	m.bytes = 4.0 * static_cast<double>(rows) * lowered.ncolumns;
	m.kernels = 1;
	return m;
}

Measured
run_rows(const Query &q, const Program *program, const cuda::DeviceProgram &lowered, const Table &table, const cuda::DeviceTable &t,
		 const cuda::LaunchShape &shape, const cuda::LaunchScratch &scratch, int reps)
{
	Measured	m = {};
	uint32_t	n = static_cast<uint32_t>(q.outputs.size()), nunits = static_cast<uint32_t>(table.order.size());
	Type		types[MAX_OUTPUTS];
	ResultColumnLayout layout[MAX_OUTPUTS];
	uint32_t	capacity = reinterpret_cast<const TabletHeader *>(table.distinct[0].bytes.data())->padded_rows;

	program_result_types(program, types);

	uint64_t	area_bytes = align_up(result_layout(types, static_cast<int>(n), capacity, layout), 256);
	char	   *areas = device_array<char>(area_bytes * nunits);
	char	   *staging_memory = device_array<char>(cuda::row_staging_bytes(lowered, t.npads));
	cuda::RowStaging staging = cuda::row_staging(lowered, t.npads, staging_memory);
	cuda::UnitOutcome *outcomes = device_array<cuda::UnitOutcome>(nunits);
	std::vector<cuda::RowSliceUnit> units;
	uint32_t	pad = 0;

	for (uint32_t u = 0; u < nunits; u++)
	{
		uint32_t	npads = reinterpret_cast<const TabletHeader *>(table.distinct[table.order[u]].bytes.data())->padded_rows / TABLET_PAD_ROWS;

		units.push_back({areas + u * area_bytes, pad, npads});
		pad += npads;
	}
	CHECK(cudaMemset(staging_memory, 0, cuda::row_staging_bytes(lowered, t.npads)));
	m.ms = measure(reps, WARM_UPS, [&] {
		CHECK(cuda::reset_state(scratch, nullptr));
		CHECK(cuda::launch_slice(lowered, shape, scratch, {t, 0, t.npads, nullptr, &staging, nullptr}, nullptr));
		CHECK(cuda::compact_rows(lowered, staging, 0, units.data(), nunits, capacity, outcomes, nullptr));
	}).median_ms;

	std::vector<cuda::UnitOutcome> got(nunits);
	std::vector<OutputRows> rows;

	CHECK(cudaMemcpy(got.data(), outcomes, nunits * sizeof(got[0]), cudaMemcpyDeviceToHost));
	for (uint32_t u = 0; u < nunits; u++)
	{
		OutputRows	area = {{}, n, got[u].rows};

		if (got[u].errors)
		{
			fprintf(stderr, "query %s: error bits %u\n", q.name, got[u].errors);
			exit(1);
		}
		for (uint32_t c = 0; c < n; c++)
			area.column[c] = reinterpret_cast<const uint32_t *>(areas + u * area_bytes + layout[c].values);
		rows.push_back(area);
	}
	m.answer = answer_of_rows(rows);
	/* Rows are staged, read again, and written; columns that only they need are fetched for them alone. */
	m.bytes = 4.0 * table.rows * lowered.nstaged + (4.0 * (lowered.ncolumns - lowered.nstaged) + 12.0 * n) * static_cast<double>(m.answer.count);
	m.kernels = 2;
	CHECK(cudaFree(areas));
	CHECK(cudaFree(staging_memory));
	CHECK(cudaFree(outcomes));
	return m;
}

Measured
run_program(const Query &q, const Table &table, const cuda::LaunchScratch &scratch, int reps)
{
	std::vector<char> sealed = Compiler(q).compile();
	const Program *program = reinterpret_cast<const Program *>(sealed.data());
	std::unique_ptr<cuda::DeviceProgram> lowered(new cuda::DeviceProgram);
	cuda::LowerInput input = {program, nullptr, table.columns, NCOLS, table.rows, {0, true, 0}};
	const char *refused = cuda::lower(input, lowered.get());
	cuda::LaunchShape shape;

	if (refused)
	{
		fprintf(stderr, "query %s: %s\n", q.name, refused);
		exit(1);
	}

	cuda::DeviceTable t = bind(table, *lowered);

	CHECK(cuda::choose_shape(*lowered, t.npads, &shape));

	Measured	m = q.sink == Sink::Rows ? run_rows(q, program, *lowered, table, t, shape, scratch, reps)
		: run_aggregates(q, program, *lowered, t, shape, scratch, table.rows, reps);

	unbind(t);
	return m;
}

/* -- as a chain of primitives -------------------------------------------------------------------------------- */

class Chain
{
public:
	Chain(const Table &table) : table(table), n(table.rows), blocks((n + primitives::BLOCK_ROWS - 1) / primitives::BLOCK_ROWS)
	{
		int			device, sms;

		CHECK(cudaGetDevice(&device));
		CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
		grid = static_cast<uint32_t>(sms) * 8;
		for (uint32_t *&m : mask)
			m = device_array<uint32_t>(n / 4 + 1);
		for (int32_t *&v : temporary)
			v = device_array<int32_t>(n);
		for (int32_t *&v : out)
			v = device_array<int32_t>(n);
		before = device_array<uint32_t>(blocks + 1);
		result = device_array<unsigned long long>(2);
	}

	/* Runs the query once; counts kernels and bytes. */
	template <typename T>
	void
	run(const Query &q)
	{
		Constants	k = constants(q);

		bytes = 0;
		kernels = 0;
		CHECK(cudaMemsetAsync(result, 0, 16));
		switch (q.filter)
		{
			case Filter::None: break;
			case Filter::And:
			case Filter::AndWide:
				compare_constant<Cmp::Gt, T>(column<T>(q.u), T(k.u), mask[0]);
				compare_constant<Cmp::Lt, T>(column<T>(q.n5), T(k.n5), mask[1]);
				combine<Logic::And>(mask[0], mask[1], mask[0]);
				break;
			case Filter::Arithmetic:
				map_constant<Arith::Add, T>(column<T>(q.n20), T(k.add), as<T>(temporary[0]));
				map_constant<Arith::Sub, T>(column<T>(q.u), T(k.sub), as<T>(temporary[1]));
				launch(primitives::compare_columns<Cmp::Gt, T>, 9.0, const_cast<const T *>(as<T>(temporary[0])), const_cast<const T *>(as<T>(temporary[1])), mask[0], n);
				break;
			case Filter::Product:
				launch(primitives::map_columns<Arith::Mul, T>, 12.0, column<T>(q.n5), column<T>(q.n20), as<T>(temporary[0]), n);
				compare_constant<Cmp::Ge, T>(as<T>(temporary[0]), T(-k.product), mask[0]);
				compare_constant<Cmp::Le, T>(as<T>(temporary[0]), T(k.product), mask[1]);
				combine<Logic::And>(mask[0], mask[1], mask[0]);
				break;
			case Filter::Or:
				compare_constant<Cmp::Eq, T>(column<T>(q.u), T(0), mask[0]);
				compare_constant<Cmp::Eq, T>(column<T>(q.n5), T(0), mask[1]);
				combine<Logic::Or>(mask[0], mask[1], mask[0]);
				compare_constant<Cmp::Eq, T>(column<T>(q.n20), T(0), mask[1]);
				combine<Logic::Or>(mask[0], mask[1], mask[0]);
				break;
			case Filter::Positive:
				compare_constant<Cmp::Gt, T>(column<T>(q.u), T(0), mask[0]);
				break;
		}
		switch (q.sink)
		{
			case Sink::Rows:
				kernel(primitives::count_blocks, blocks, 1.0, const_cast<const uint32_t *>(mask[0]), n, before);
				kernel(primitives::prefix_blocks, 1, 0.0, before, blocks);
				for (size_t c = 0; c < q.outputs.size(); c++)
					kernel(primitives::compact<int32_t>, blocks, 5.0, const_cast<const int32_t *>(table.flat[q.outputs[c]]), const_cast<const uint32_t *>(mask[0]),
						   const_cast<const uint32_t *>(before), n, out[c]);
				break;
			case Sink::Count:
				launch(primitives::count, 1.0, const_cast<const uint32_t *>(mask[0]), n, result);
				break;
			case Sink::SumFloat:
				launch(primitives::sum<double, T>, 4.0, column<T>(q.outputs[0]), static_cast<const uint32_t *>(nullptr), n, reinterpret_cast<double *>(result));
				break;
			case Sink::SumInt:
				launch(primitives::sum<unsigned long long, T>, 5.0, column<T>(q.outputs[0]), const_cast<const uint32_t *>(mask[0]), n, result);
				launch(primitives::count, 1.0, const_cast<const uint32_t *>(mask[0]), n, result + 1);
				break;
			case Sink::Extremes:
			{
				int32_t    *extremes = reinterpret_cast<int32_t *>(result);

				CHECK(cudaMemsetAsync(extremes, 0x80, 4));	/* less than any value */
				CHECK(cudaMemsetAsync(extremes + 1, 0x7f, 4));
				launch(primitives::extreme<true>, 4.0, column<int32_t>(q.outputs[0]), n, extremes);
				launch(primitives::extreme<false>, 4.0, column<int32_t>(q.outputs[0]), n, extremes + 1);
				break;
			}
		}
	}

	Measured
	measured(const Query &q, int reps)
	{
		Measured	m = {};

		m.ms = measure(reps, WARM_UPS, [&] {
			if (is_float(q))
				run<float>(q);
			else
				run<int32_t>(q);
		}).median_ms;
		m.bytes = bytes;
		m.kernels = kernels;
		if (q.sink == Sink::Rows)
		{
			OutputRows	rows = {{}, static_cast<uint32_t>(q.outputs.size()), 0};

			CHECK(cudaMemcpy(&rows.rows, before + blocks, 4, cudaMemcpyDeviceToHost));
			for (size_t c = 0; c < q.outputs.size(); c++)
				rows.column[c] = reinterpret_cast<const uint32_t *>(out[c]);
			m.answer = answer_of_rows({rows});
			m.bytes += 4.0 * static_cast<double>(q.outputs.size()) * rows.rows;
			return m;
		}

		unsigned long long got[2];

		CHECK(cudaMemcpy(got, result, 16, cudaMemcpyDeviceToHost));
		if (q.sink == Sink::Count)
			m.answer = {got[0], 0};
		else if (q.sink == Sink::Extremes)
			m.answer = {0, got[0] << 32 | got[0] >> 32};
		else
			m.answer = {q.sink == Sink::SumInt ? got[1] : 0, got[0]};
		return m;
	}

private:
	template <typename T> const T *column(Column c) { return reinterpret_cast<const T *>(table.flat[c]); }
	template <typename T> T *as(int32_t *p) { return reinterpret_cast<T *>(p); }

	template <typename Kernel, typename... Args>
	void
	kernel(Kernel k, uint32_t nblocks, double bytes_per_row, Args... args)
	{
		CHECK(launch_kernel(k, nblocks, primitives::THREADS, 0, nullptr, args...));
		kernels++;
		bytes += bytes_per_row * n;
	}

	template <typename Kernel, typename... Args>
	void
	launch(Kernel k, double bytes_per_row, Args... args)
	{
		kernel(k, std::min(grid, blocks * primitives::COMPACT_ROWS / 4), bytes_per_row, args...);
	}

	template <Cmp C, typename T>
	void
	compare_constant(const T *a, T k, uint32_t *to)
	{
		launch(primitives::compare_constant<C, T>, 5.0, a, k, to, n);
	}

	template <Logic L>
	void
	combine(const uint32_t *a, const uint32_t *b, uint32_t *to)
	{
		launch(primitives::combine<L>, 3.0, a, b, to, n);
	}

	template <Arith A, typename T>
	void
	map_constant(const T *a, T k, T *to)
	{
		launch(primitives::map_constant<A, T>, 8.0, a, k, to, n);
	}

	const Table &table;
	uint32_t	n, blocks, grid;
	uint32_t   *mask[2];
	int32_t    *temporary[2];
	int32_t    *out[MAX_OUTPUTS];
	uint32_t   *before;
	unsigned long long *result;
	double		bytes = 0;
	int			kernels = 0;
};

}  // namespace

int
main(int argc, char **argv)
{
	uint64_t	rows = 128ull << 20;
	int			reps = 11;
	const char *csv_path = nullptr;

	for (int i = 1; i < argc; i++)
	{
		if (!strcmp(argv[i], "--rows") && i + 1 < argc)
			rows = strtoull(argv[++i], nullptr, 10);
		else if (!strcmp(argv[i], "--reps") && i + 1 < argc)
			reps = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--csv") && i + 1 < argc)
			csv_path = argv[++i];
		else
		{
			fprintf(stderr, "usage: %s [--rows N] [--reps N] [--csv FILE]\n", argv[0]);
			return 2;
		}
	}

	Table		table;
	cuda::LaunchScratch scratch;
	FILE	   *csv = csv_path ? fopen(csv_path, "w") : nullptr;
	bool		right = true;
	double		log_ratio = 0;
	int			n = 0;

	load_table(table, rows);
	CHECK(cuda::create_scratch(&scratch));

	Chain		chain(table);

	if (csv)
		fprintf(csv, "query,rows,rows_out,program_ms,program_gb,primitives_ms,primitives_gb,primitives_kernels,speedup\n");
	printf("%u rows; ms, GB to and from memory, kernels\n", table.rows);
	printf("%-11s %12s | %9s %7s | %9s %7s %3s | %6s\n", "query", "rows out", "program", "GB", "chain", "GB", "n", "ratio");
	for (const Query &q : queries())
	{
		Totals		per_tablet[DISTINCT], all;

		for (int d = 0; d < DISTINCT; d++)
			per_tablet[d] = answer_tablet(q, table.distinct[d]);
		for (int d : table.order)
		{
			all.count += per_tablet[d].count;
			all.hash += per_tablet[d].hash;
			all.sum += per_tablet[d].sum;
			all.float_sum += per_tablet[d].float_sum;
			all.greatest = std::max(all.greatest, per_tablet[d].greatest);
			all.least = std::min(all.least, per_tablet[d].least);
		}

		Answer		want = make_answer(q, all);
		Measured	program = run_program(q, table, scratch, reps), primitives = chain.measured(q, reps);

		for (const Measured *m : {&program, &primitives})
			if (!(m->answer == want))
			{
				right = false;
				printf("WRONG query %s, %s: %llu rows, %llx; expected %llu, %llx\n", q.name, m == &program ? "program" : "primitives",
					   static_cast<unsigned long long>(m->answer.count), static_cast<unsigned long long>(m->answer.hash),
					   static_cast<unsigned long long>(want.count), static_cast<unsigned long long>(want.hash));
			}
		printf("%-11s %12llu | %9.4f %7.2f | %9.4f %7.2f %3d | %5.2fx\n", q.name, static_cast<unsigned long long>(q.sink == Sink::Rows ? want.count : 1),
			   program.ms, program.bytes * 1e-9, primitives.ms, primitives.bytes * 1e-9, primitives.kernels, primitives.ms / program.ms);
		fflush(stdout);
		if (csv)
			fprintf(csv, "%s,%u,%llu,%.4f,%.3f,%.4f,%.3f,%d,%.3f\n", q.name, table.rows,
					static_cast<unsigned long long>(q.sink == Sink::Rows ? want.count : 1), program.ms, program.bytes * 1e-9, primitives.ms,
					primitives.bytes * 1e-9, primitives.kernels, primitives.ms / program.ms);
		log_ratio += std::log(primitives.ms / program.ms);
		n++;
	}
	printf("geometric mean: one program is %.2f times as fast as a kernel a primitive\n", std::exp(log_ratio / n));
	cuda::destroy_scratch(&scratch);
	if (csv)
		fclose(csv);
	printf("%s\n", right ? "all answers equal" : "SOME ANSWERS WRONG");
	return right ? 0 : 1;
}
