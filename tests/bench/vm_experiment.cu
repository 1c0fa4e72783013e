/*
 * vm_experiment: what the CUDA interpreter reaches of hand-written kernels, and
 * whether it counts right. No server: it generates tablets in the real format,
 * compiles programs with ProgramBuilder, and lowers and launches them as
 * gpuvmd will.
 *
 *   filter       count(*) where c0 > 60 and c1 < 0
 *   arithmetic   sum(c0 * c2) where c0 + 40 > c1 - 10
 *
 * for stored widths u8, u16, i32, i64, f32, f64, without and with nulls, with
 * checks left out where ranges prove them needless ("proved") and with all
 * checks ("checked"). Every timed run's result is compared with a scalar loop
 * over the generated values on the CPU. Before that, rows at the edge of an
 * overflow are planted in small tables: errors count exactly where they should.
 *
 * Times are held against what memory needs for the bytes at 4.5 TB/s (--tbs), and
 * with nulls and all checks against the bars that are listed at the end.
 *
 * With --masked, a share of the rows' blocks of 100 (0: one block of the whole table) is masked:
 * the time with them is held against that without, for the forms that lowering chooses.
 *
 *   vm_experiment [--rows N] [--reps N] [--csv FILE] [--auto] [--only NAME] [--tbs N] [--masked SHARE]
 *
 * With --theta ROWS, nothing but nested loops: two sets of so many rows (theta_joins.cuh).
 *
 *   vm_experiment --theta 100000 [--reps N]
 */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "dead_rows.h"
#include "launch.h"
#include "lower.h"
#include "tablet/build.h"
#include "theta_joins.cuh"
#include "timing.cuh"
#include "vm_hand.cuh"

using namespace gpuvm;
using gpuvm::cuda::ColumnBinding;
using gpuvm::cuda::DeviceProgram;
using gpuvm::cuda::DeviceTable;

namespace {

constexpr int DISTINCT = 8;		/* tablets generated; the table repeats them */
constexpr int NCOLS = 3;
constexpr int WARM_UPS = 2;

struct Width
{
	const char *name;
	Type		type;
	int			stored;			/* bytes */
	int64_t		limit;			/* values are uniform in [-limit, limit] * unit */
	double		unit;
	int			scale;			/* float products are multiples of 2^-scale */
};

/*
 * The limits keep c0 * c2 within the type. Floats are multiples of a power of
 * two, so that the fixed-point sum has a bound; the products are rounded.
 */
const Width widths[] = {
	{"u8", Type::I32, 1, 127, 0, 0},
	{"u16", Type::I32, 2, 30000, 0, 0},
	{"i32", Type::I32, 4, 46000, 0, 0},
	{"i64", Type::I64, 8, 3000000000LL, 0, 0},
	{"f32", Type::F32, 4, 25600, 0x1p-8, 16},
	{"f64", Type::F64, 8, 1000LL << 30, 0x1p-30, 60},
};

struct HostTablet
{
	uint32_t	nrows;
	std::vector<char> values[NCOLS];
	std::vector<uint64_t> nulls[NCOLS];
	std::vector<char> bytes;	/* the tablet */
	std::vector<cuda::DeadRange> masked;
	/* the CPU's answers, and those without the masked rows */
	uint64_t	filter_count, filter_left;
	int128		sum, sum_left;
};

constexpr uint32_t MASKED_ROWS = 100;	/* side by side: a heap block's */

double		masked_share = -1;	/* less than 0: no masks */

template <typename V>
V
value_at(const HostTablet &t, int col, uint32_t row)
{
	V			v;

	memcpy(&v, t.values[col].data() + row * sizeof(V), sizeof(V));
	return v;
}

bool
null_at(const HostTablet &t, int col, uint32_t row)
{
	return !t.nulls[col].empty() && (t.nulls[col][row / 64] >> (row % 64) & 1);
}

/* The answers by the plainest loop, PostgreSQL's rules spelt out once more. */
template <typename V>
void
answer(HostTablet &t, const Width &w)
{
	size_t		range = 0;

	t.filter_count = t.filter_left = 0;
	t.sum = t.sum_left = 0;
	for (uint32_t row = 0; row < t.nrows; row++)
	{
		while (range < t.masked.size() && t.masked[range].end <= row)
			range++;

		const bool	left = range == t.masked.size() || row < t.masked[range].first;
		V			c0 = value_at<V>(t, 0, row), c1 = value_at<V>(t, 1, row), c2 = value_at<V>(t, 2, row);

		if (null_at(t, 0, row) || null_at(t, 1, row))
			continue;
		if (c0 > V(60) && c1 < V(0))
		{
			t.filter_count++;
			t.filter_left += left;
		}
		if (c0 + V(40) > c1 - V(10) && !null_at(t, 2, row))
		{
			V			product = c0 * c2;
			int128		value = 0;

			if constexpr (std::is_floating_point<V>::value)
				value = static_cast<int128>(std::ldexp(static_cast<long double>(product), w.scale));
			else
				value = product;
			t.sum += value;
			t.sum_left += left ? value : 0;
		}
	}
}

/* The tablet of t's values and nulls, and the CPU's answers. */
void
pack_tablet(HostTablet &t, const Width &w)
{
	std::vector<StagedColumn> staged(NCOLS);

	for (int c = 0; c < NCOLS; c++)
		staged[c] = StagedColumn{w.type, static_cast<int16_t>(c + 1), t.values[c].data(), t.nulls[c].empty() ? nullptr : t.nulls[c].data()};

	const uint32_t block_rows[2] = {0, t.nrows};
	const uint64_t lsn = 1;
	const uint32_t lps = LPS_DENSE;
	StagedTablet s = {t.nrows, NCOLS, staged.data(), 0, 1, block_rows, &lsn, &lps, nullptr, 0};
	TabletHeader header;
	ColumnChunk chunks[NCOLS];
	uint64_t	size = plan_tablet(s, &header, chunks);
	void	   *aligned = aligned_alloc(TABLET_ALIGN, (size + TABLET_ALIGN - 1) / TABLET_ALIGN * TABLET_ALIGN);

	write_tablet(s, header, chunks, 0, static_cast<char *>(aligned));

	const char *problem = check_tablet(static_cast<const TabletHeader *>(aligned), size);

	if (problem)
	{
		fprintf(stderr, "tablet: %s\n", problem);
		exit(1);
	}
	t.bytes.assign(static_cast<char *>(aligned), static_cast<char *>(aligned) + size);
	free(aligned);
	switch (w.type)
	{
		case Type::I32: answer<int32_t>(t, w); break;
		case Type::I64: answer<int64_t>(t, w); break;
		case Type::F32: answer<float>(t, w); break;
		default: answer<double>(t, w); break;
	}
}

void
make_tablet(HostTablet &t, const Width &w, bool with_nulls, uint32_t nrows, uint32_t seed)
{
	std::mt19937_64 random(seed);
	int			natural = type_natural_width(w.type);

	t.nrows = nrows;
	for (uint32_t row = 0; row < nrows && masked_share >= 0; row += MASKED_ROWS)
		if (masked_share > 0 ? static_cast<double>(random() >> 11) * 0x1p-53 < masked_share : row == nrows / 2 / MASKED_ROWS * MASKED_ROWS)
			t.masked.push_back({row, std::min(row + MASKED_ROWS, nrows)});
	for (int c = 0; c < NCOLS; c++)
	{
		t.values[c].resize(static_cast<size_t>(nrows) * natural);
		t.nulls[c].clear();
		if (with_nulls)
			t.nulls[c].assign((nrows + 63) / 64, 0);
		for (uint32_t row = 0; row < nrows; row++)
		{
			uint64_t	r = random();
			int64_t		v = static_cast<int64_t>((r >> 8) % static_cast<uint64_t>(2 * w.limit + 1)) - w.limit;
			char	   *at = t.values[c].data() + static_cast<size_t>(row) * natural;

			/* Both ends are there, so that every tablet has the width's full range. */
			if (row < 2)
				v = row == 0 ? -w.limit : w.limit;
			else if (with_nulls && (r & 255) < 26)
				t.nulls[c][row / 64] |= 1ull << (row % 64);
			if (w.type == Type::I32)
			{
				int32_t		x = static_cast<int32_t>(v);

				memcpy(at, &x, 4);
			}
			else if (w.type == Type::I64)
				memcpy(at, &v, 8);
			else if (w.type == Type::F32)
			{
				float		x = static_cast<float>(static_cast<double>(v) * w.unit);

				memcpy(at, &x, 4);
			}
			else
			{
				double		x = static_cast<double>(v) * w.unit;

				memcpy(at, &x, 8);
			}
		}
	}
	pack_tablet(t, w);
	for (int c = 0; c < NCOLS; c++)
	{
		int			width = tablet_chunks(reinterpret_cast<TabletHeader *>(t.bytes.data()))[c].width;

		if (width != w.stored)
		{
			fprintf(stderr, "%s: column %d is stored in %d bytes\n", w.name, c, width);
			exit(1);
		}
	}
}

/* -- the table on the device ------------------------------------------------------------- */

struct Table
{
	std::vector<HostTablet> distinct;
	std::vector<uint64_t> where;	/* device address of every tablet */
	char	   *memory = nullptr;
	uint64_t	rows = 0;
	uint64_t	filter_count = 0, filter_left = 0;
	int128		sum = 0, sum_left = 0;
	ColumnBinding columns[NCOLS];
	std::vector<void *> allocated;

	~Table()
	{
		cudaFree(memory);
		for (void *p : allocated)
			cudaFree(p);
	}
};

/* Does tablet i of the table have masked rows? */
bool
is_masked(const Table &table, uint64_t i)
{
	return masked_share > 0 ? !table.distinct[i % table.distinct.size()].masked.empty() : masked_share == 0 && i == 0;
}

/* The distinct tablets, again and again until there are `rows`, on the device. */
void
load_table(Table &table, uint64_t rows)
{
	int			ndistinct = static_cast<int>(table.distinct.size());

	for (int c = 0; c < NCOLS; c++)
		for (int i = 0; i < ndistinct; i++)
		{
			const ColumnChunk &chunk = tablet_chunks(reinterpret_cast<TabletHeader *>(table.distinct[i].bytes.data()))[c];

			summarize_chunk(&table.columns[c].summary, chunk, i == 0);
			table.columns[c].min_width = i == 0 ? chunk.width : std::min(table.columns[c].min_width, chunk.width);
		}

	uint64_t	total = 0;
	std::vector<uint64_t> offset;

	for (uint64_t i = 0; table.rows < rows; i++)
	{
		const HostTablet &t = table.distinct[i % ndistinct];

		offset.push_back(total);
		total += (t.bytes.size() + 255) / 256 * 256;
		table.rows += t.nrows;
		table.filter_count += t.filter_count;
		table.sum += t.sum;
		table.filter_left += is_masked(table, i) ? t.filter_left : t.filter_count;
		table.sum_left += is_masked(table, i) ? t.sum_left : t.sum;
	}
	CHECK(cudaMalloc(&table.memory, total));
	for (size_t i = 0; i < offset.size(); i++)
	{
		const std::vector<char> &bytes = table.distinct[i % ndistinct].bytes;

		if (i < static_cast<size_t>(ndistinct))
			CHECK(cudaMemcpy(table.memory + offset[i], bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
		else
			CHECK(cudaMemcpy(table.memory + offset[i], table.memory + offset[i % ndistinct], bytes.size(), cudaMemcpyDeviceToDevice));
		table.where.push_back(reinterpret_cast<uint64_t>(table.memory + offset[i]));
	}
}

void
make_table(Table &table, const Width &w, bool with_nulls, uint64_t rows)
{
	uint32_t	full = static_cast<uint32_t>(std::min<uint64_t>(TABLET_MAX_ROWS, std::max<uint64_t>(rows / DISTINCT, 2)));
	std::vector<std::thread> threads;

	table.distinct.resize(DISTINCT);
	for (int i = 0; i < DISTINCT; i++)
	{
		/* Ragged, each in another place of the last tile. */
		uint32_t	nrows = full > 5000u ? full - 577u * i - (i ? 3 : 0) : full;

		threads.emplace_back([&table, &w, with_nulls, nrows, i] { make_tablet(table.distinct[i], w, with_nulls, nrows, 1000 + i); });
	}
	for (std::thread &t : threads)
		t.join();
	load_table(table, rows);
}

template <typename T>
const T *
upload(Table &table, const std::vector<T> &v)
{
	T		   *p;

	CHECK(cudaMalloc(&p, v.size() * sizeof(T)));
	table.allocated.push_back(p);
	CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
	return p;
}

/* The table's dead rows, for fill_dead_rows(). */
struct DeadRows
{
	char	   *bits = nullptr;
	uint32_t	npads = 0;
	const cuda::DeadRange *ranges = nullptr;
	uint32_t	nranges = 0;
	std::vector<uint64_t> at;	/* by tablet, 0: none */

	explicit DeadRows(Table &table)
	{
		std::vector<cuda::DeadRange> all;

		for (size_t i = 0; i < table.where.size(); i++)
		{
			const HostTablet &t = table.distinct[i % table.distinct.size()];
			const uint64_t first = static_cast<uint64_t>(npads) * TABLET_PAD_ROWS;
			const uint32_t pads = (t.nrows + TABLET_PAD_ROWS - 1) / TABLET_PAD_ROWS;

			at.push_back(is_masked(table, i) ? npads * cuda::DEAD_PAD_BYTES + 1 : 0);
			if (!is_masked(table, i))
				continue;
			for (const cuda::DeadRange &range : t.masked)
				all.push_back({first + range.first, first + range.end});
			if (t.nrows % TABLET_PAD_ROWS != 0)
				all.push_back({first + t.nrows, first + static_cast<uint64_t>(pads) * TABLET_PAD_ROWS});
			npads += pads;
		}
		CHECK(cudaMalloc(&bits, npads * cuda::DEAD_PAD_BYTES));
		table.allocated.push_back(bits);
		ranges = upload(table, all);
		nranges = static_cast<uint32_t>(all.size());
		for (uint64_t &address : at)
			address = address != 0 ? reinterpret_cast<uint64_t>(bits) + address - 1 : 0;
	}
	void		fill() const { CHECK(cuda::fill_dead_rows(bits, npads, ranges, nranges, 0)); }
};

/* The launch's view of the first `ncols` columns. */
DeviceTable
bind(Table &table, int ncols, const DeadRows *dead = nullptr)
{
	std::vector<cuda::DeviceTablet> tablets;
	std::vector<cuda::DeviceChunk> chunks;
	std::vector<cuda::DevicePad> pads;

	for (size_t i = 0; i < table.where.size(); i++)
	{
		const TabletHeader *h = reinterpret_cast<const TabletHeader *>(table.distinct[i % table.distinct.size()].bytes.data());

		tablets.push_back({h->nrows, dead && dead->at[i] != 0});
		for (uint32_t row = 0; row < h->padded_rows; row += TABLET_PAD_ROWS)
			pads.push_back({static_cast<uint32_t>(i), row});
		for (int c = 0; c < ncols; c++)
		{
			const ColumnChunk &chunk = tablet_chunks(h)[c];

			chunks.push_back({chunk.data ? table.where[i] + chunk.data : 0, chunk.nulls ? table.where[i] + chunk.nulls : 0,
							 chunk.base, chunk.width, 0});
		}
		if (dead)
			chunks.push_back({0, dead->at[i], 0, 0, 0});
	}

	uint32_t	npads = static_cast<uint32_t>(pads.size());

	return DeviceTable{upload(table, tablets), upload(table, chunks), upload(table, pads), npads, 0};
}

/* -- programs ------------------------------------------------------------------------------- */

void
constant(ProgramBuilder &b, Type type, int r, int value)
{
	if (type_is_float(type))
	{
		double		d = value;
		int64_t		bits;

		memcpy(&bits, &d, 8);
		b.emit(Opcode::Float, type, r, 0, 0, bits);
	}
	else
		b.emit(Opcode::Integer, type, r, value, 0);
}

std::vector<char>
compile(bool arithmetic, Type type)
{
	std::unique_ptr<ProgramBuilder> b(new ProgramBuilder);
	int64_t		source = RESULT_FROM_AGG;

	b->init();
	b->grouped = true;
	b->ncursors = 1;
	b->naggs = 1;
	b->nresults = 1;
	b->emit(Opcode::Table, Type::None, 0, 0, 0);
	b->emit(Opcode::ResultColumn, agg_result_type(arithmetic ? AggFn::Sum : AggFn::CountStar, type), 0, 0, 0,
			b->add_name(arithmetic ? "sum" : "count"));
	b->emit(Opcode::AggOpen, Type::None, 0, 1, b->add_aux(&source, 1));
	b->parallel = b->emit(Opcode::Parallel, Type::None, 1, 0, 0);

	int			c0 = b->new_reg(type), c1 = b->new_reg(type), k0 = b->new_reg(type), k1 = b->new_reg(type);
	std::vector<int> jumps;

	b->emit(Opcode::Column, type, c0, 0, 0);
	if (!arithmetic)
	{
		constant(*b, type, k0, 60);
		jumps.push_back(b->emit(Opcode::Le, type, c0, k0, 0, VERDICT_DIES, JUMP_IF_NULL));
		b->emit(Opcode::Column, type, c1, 1, 0);
		constant(*b, type, k1, 0);
		jumps.push_back(b->emit(Opcode::Ge, type, c1, k1, 0, VERDICT_DIES, JUMP_IF_NULL));
		b->emit(Opcode::AggStep, Type::None, 0, -1, -1, 0, static_cast<uint8_t>(AggFn::CountStar));
	}
	else
	{
		int			left = b->new_reg(type), right = b->new_reg(type), c2 = b->new_reg(type), product = b->new_reg(type);

		constant(*b, type, k0, 40);
		b->emit(Opcode::Add, type, left, c0, k0);
		b->emit(Opcode::Column, type, c1, 1, 0);
		constant(*b, type, k1, 10);
		b->emit(Opcode::Sub, type, right, c1, k1);
		jumps.push_back(b->emit(Opcode::Le, type, left, right, 0, VERDICT_DIES, JUMP_IF_NULL));
		b->emit(Opcode::Column, type, c2, 2, 0);
		b->emit(Opcode::Mul, type, product, c0, c2);
		b->emit(Opcode::AggStep, type, 0, product, -1, 0, static_cast<uint8_t>(AggFn::Sum));
	}
	b->converge = b->emit(Opcode::Converge, Type::None, 0, 0, 0);
	b->emit(Opcode::Finish, Type::None, 0, 0, 0);
	b->ops[b->parallel].p3 = b->converge;
	for (int j : jumps)
		b->ops[j].p3 = b->converge;

	std::vector<char> sealed(b->sealed_size());

	b->seal(reinterpret_cast<Program *>(sealed.data()));

	const Type	types[NCOLS] = {type, type, type};
	CursorSchema schema = {NCOLS, types};
	const char *problem = verify_program(reinterpret_cast<Program *>(sealed.data()), sealed.size(), &schema, 1);

	if (b->failed || problem)
	{
		fprintf(stderr, "program: %s\n", problem ? problem : "does not fit");
		exit(1);
	}
	return sealed;
}

/* -- measuring -------------------------------------------------------------------------------- */

/* A job of one slice. */
void
launch(const DeviceProgram &program, const DeviceTable &table, const cuda::LaunchShape &shape, const cuda::LaunchScratch &scratch)
{
	CHECK(cuda::reset_state(scratch, 0));
	CHECK(cuda::launch_slice(program, shape, scratch, {table, 0, table.npads, nullptr, nullptr, nullptr}, 0));
}

template <typename C, typename V, int H>
void
launch_hand(bool arithmetic, bool nulls, bool checked, const Width &w, const DeviceTable &t, hand::Result *result)
{
	double		scale = std::ldexp(1.0, w.scale);
	const void *kernel = !arithmetic
		? (nulls ? (const void *) &hand::filter<C, V, H, true> : (const void *) &hand::filter<C, V, H, false>)
		: nulls ? (checked ? (const void *) &hand::arithmetic<C, V, H, true, true> : (const void *) &hand::arithmetic<C, V, H, true, false>)
		: (checked ? (const void *) &hand::arithmetic<C, V, H, false, true> : (const void *) &hand::arithmetic<C, V, H, false, false>);
	V			k0 = arithmetic ? 40 : 60, k1 = arithmetic ? 10 : 0;
	DeviceTable table = t;
	void	   *filter_args[] = {&table, &k0, &k1, &result};
	void	   *arithmetic_args[] = {&table, &k0, &k1, &scale, &result};
	int			device, sms, blocks;

	CHECK(cudaGetDevice(&device));
	CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, hand::THREADS, 0));
	CHECK(cudaMemsetAsync(result, 0, sizeof(*result)));
	CHECK(cudaLaunchKernel(kernel, dim3(sms * blocks), dim3(hand::THREADS), arithmetic ? arithmetic_args : filter_args, 0, 0));
}

void
run_hand(bool arithmetic, bool nulls, bool checked, const Width &w, const DeviceTable &t, hand::Result *result)
{
	if (!strcmp(w.name, "u8"))
		launch_hand<uint8_t, int32_t, 16>(arithmetic, nulls, checked, w, t, result);
	else if (!strcmp(w.name, "u16"))
		launch_hand<uint16_t, int32_t, 16>(arithmetic, nulls, checked, w, t, result);
	else if (!strcmp(w.name, "i32"))
		launch_hand<int32_t, int32_t, 8>(arithmetic, nulls, checked, w, t, result);
	else if (!strcmp(w.name, "i64"))
		launch_hand<int64_t, int64_t, 8>(arithmetic, nulls, checked, w, t, result);
	else if (!strcmp(w.name, "f32"))
		launch_hand<float, float, 8>(arithmetic, nulls, checked, w, t, result);
	else
		launch_hand<double, double, 8>(arithmetic, nulls, checked, w, t, result);
}

struct Settings
{
	uint64_t	rows = 512ull << 20;
	int			reps = 15;
	const char *csv = nullptr;
	const char *only = nullptr;
	bool		automatic = false;	/* only the form that lowering chooses */
	double		tbs = 4.5;		/* memory's TB/s */
	uint32_t	theta = 0;		/* rows of each side; 0: no joins */
};

/* With nulls and all checks: a time over the bytes' at full bandwidth, or 1e12 rows a second. */
struct Bar
{
	const char *query;
	const char *width;
	double		most_ratio;		/* 0: none */
	double		least_trows;	/* 0: none */
	double		ratio, trows;	/* measured; 0: not */
};
Bar			bars[] = {
	{"filter", "i32", 1.15, 0, 0, 0},
	{"arithmetic", "i32", 1.4, 0, 0, 0},
	{"filter", "i64", 1.3, 0, 0, 0},
	{"arithmetic", "i64", 1.3, 0, 0, 0},
	{"filter", "u8", 0, 0.9, 0, 0},
};

void
print_bars()
{
	for (const Bar &b : bars)
	{
		bool		ok = b.most_ratio != 0 ? b.ratio <= b.most_ratio : b.trows >= b.least_trows;

		if (b.ratio == 0)
			continue;
		if (b.most_ratio != 0)
			printf("bar: %s %s, nulls, all checks: %.3f of bytes / bandwidth, at most %.2f: %s\n", b.query, b.width, b.ratio, b.most_ratio,
				   ok ? "met" : "MISSED");
		else
			printf("bar: %s %s, nulls, all checks: %.3f T rows/s, at least %.2f: %s\n", b.query, b.width, b.trows, b.least_trows,
				   ok ? "met" : "MISSED");
	}
}

bool		all_right = true;

void
expect(const char *what, const Width &w, int128 got, int128 want, uint32_t errors)
{
	if (got == want && errors == 0)
		return;
	all_right = false;
	printf("WRONG %s %s: got %.17g, expected %.17g, errors %u\n", what, w.name, static_cast<double>(got),
		   static_cast<double>(want), errors);
}

void
run_workload(const Settings &settings, bool arithmetic, bool checked, bool nulls, const Width &w, Table &table,
			 const cuda::LaunchScratch &scratch, FILE *csv)
{
	std::vector<char> program = compile(arithmetic, w.type);
	DeviceTable t = bind(table, arithmetic ? 3 : 2);
	int128		want = arithmetic ? table.sum : static_cast<int128>(table.filter_count);
	double		bytes = static_cast<double>(table.rows) * (arithmetic ? 3 : 2) * (w.stored + (nulls ? 0.125 : 0));
	double		floor_ms = bytes / settings.tbs * 1e-9;
	const char *name = arithmetic ? "arithmetic" : "filter";
	hand::Result *result;
	hand::Result got;

	CHECK(cudaMalloc(&result, sizeof(*result)));

	Timing		by_hand = measure(settings.reps, WARM_UPS, [&] { run_hand(arithmetic, nulls, checked, w, t, result); });

	CHECK(cudaMemcpy(&got, result, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK(cudaFree(result));
	expect("hand", w, arithmetic ? static_cast<int128>((static_cast<uint128>(got.hi) << 64) | got.lo) : static_cast<int128>(got.lo),
		   want, got.errors);

	std::vector<uint16_t> forms = {0};	/* rows a lane; 0: as lowering chooses */

	if (!settings.automatic)
		forms.insert(forms.end(), {4, 8, 16});

	double		best = 1e30, automatic = 0;
	std::string best_form = "-", automatic_form = "-";

	for (uint16_t rows_per_lane : forms)
	{
		std::unique_ptr<DeviceProgram> lowered(new DeviceProgram);
		cuda::LowerInput input = {reinterpret_cast<const Program *>(program.data()), nullptr, table.columns, NCOLS, table.rows,
			{rows_per_lane, !checked}};
		const char *refused = cuda::lower(input, lowered.get());
		cuda::LaunchShape shape;

		if (refused || cuda::choose_shape(*lowered, t.npads, &shape) != cudaSuccess)
		{
			cudaGetLastError();
			if (rows_per_lane == 0)
			{
				all_right = false;
				printf("REFUSED %s %s: %s\n", name, w.name, refused ? refused : "shape");
			}
			continue;
		}

		Timing		timing = measure(settings.reps, WARM_UPS, [&] { launch(*lowered, t, shape, scratch); });
		cuda::LaunchState state;

		CHECK(cudaMemcpy(&state, scratch.state, sizeof(state), cudaMemcpyDeviceToHost));
		expect("interpreter", w, arithmetic ? static_cast<int128>((static_cast<uint128>(static_cast<uint64_t>(state.result[0].hi)) << 64) |
																 state.result[0].lo)
			   : static_cast<int128>(state.result[0].count), want, state.errors);

		char		form[64];

		snprintf(form, sizeof(form), "R%d t%d b%u", lowered->rows_per_lane, lowered->stage_tiles, shape.blocks_per_sm);
		if (csv)
			fprintf(csv, "%s,%s,%d,%d,%s,%s,%llu,%d,%u,%.4f,%.4f,%.4f,%.4f,%.3f,%.4f,%.4f,%.3f\n", name, w.name, nulls, checked,
					rows_per_lane ? "forced" : "auto", form, static_cast<unsigned long long>(table.rows), lowered->nops,
					shape.shared_bytes, by_hand.median_ms, by_hand.best_ms, timing.median_ms, timing.best_ms,
					by_hand.median_ms / timing.median_ms, static_cast<double>(table.rows) / timing.median_ms * 1e-9, floor_ms,
					timing.median_ms / floor_ms);
		if (rows_per_lane == 0)
		{
			automatic = timing.median_ms;
			automatic_form = form;
		}
		if (timing.median_ms < best)
		{
			best = timing.median_ms;
			best_form = form;
		}
	}
	for (Bar &b : bars)
		if (nulls && (checked || !arithmetic) && !strcmp(b.query, name) && !strcmp(b.width, w.name))
		{
			b.ratio = automatic / floor_ms;
			b.trows = static_cast<double>(table.rows) / automatic * 1e-9;
		}
	printf("%-10s %-4s %-5s %-7s | %7.3f %5.2f %6.3f | %-9s %7.3f %5.2f %6.3f %6.3f | %-9s %7.3f %5.2f\n", name, w.name,
		   nulls ? "nulls" : "-", checked ? "checked" : "proved", by_hand.median_ms, bytes / by_hand.median_ms * 1e-9,
		   static_cast<double>(table.rows) / by_hand.median_ms * 1e-9, automatic_form.c_str(), automatic,
		   by_hand.median_ms / automatic, static_cast<double>(table.rows) / automatic * 1e-9, automatic / floor_ms, best_form.c_str(), best,
		   by_hand.median_ms / best);
	fflush(stdout);
}

/* The form that lowering chooses, without masks and with them. */
void
run_masked(const Settings &settings, bool arithmetic, bool checked, bool nulls, const Width &w, Table &table, const cuda::LaunchScratch &scratch)
{
	std::vector<char> program = compile(arithmetic, w.type);
	const int	ncols = arithmetic ? 3 : 2;
	const DeadRows dead(table);
	Timing		timing[2];
	char		form[2][64];
	const Timing fill = measure(settings.reps, WARM_UPS, [&] { dead.fill(); });

	for (bool masked : {false, true})
	{
		const DeviceTable t = bind(table, ncols, masked ? &dead : nullptr);
		std::unique_ptr<DeviceProgram> lowered(new DeviceProgram);
		cuda::LowerInput input = {reinterpret_cast<const Program *>(program.data()), nullptr, table.columns, NCOLS, table.rows,
			{0, !checked, 0, masked}};
		const char *refused = cuda::lower(input, lowered.get());
		cuda::LaunchShape shape;
		cuda::LaunchState state;

		CHECK(refused || (masked && lowered->columns[ncols].table_column != cuda::DEAD_COLUMN) ? cudaErrorInvalidValue
			  : cuda::choose_shape(*lowered, t.npads, &shape));
		snprintf(form[masked], sizeof(form[masked]), "R%d t%d b%u %u", lowered->rows_per_lane, lowered->stage_tiles, shape.blocks_per_sm, shape.shared_bytes);
		timing[masked] = measure(settings.reps, WARM_UPS, [&] { launch(*lowered, t, shape, scratch); });
		CHECK(cudaMemcpy(&state, scratch.state, sizeof(state), cudaMemcpyDeviceToHost));
		expect(masked ? "with masked rows" : "without masked rows", w,
			   arithmetic ? static_cast<int128>((static_cast<uint128>(static_cast<uint64_t>(state.result[0].hi)) << 64) | state.result[0].lo)
			   : static_cast<int128>(state.result[0].count),
			   arithmetic ? (masked ? table.sum_left : table.sum) : static_cast<int128>(masked ? table.filter_left : table.filter_count),
			   state.errors);
	}

	const double row_bytes = ncols * (w.stored + (nulls ? 0.125 : 0));
	const double bits = static_cast<double>(dead.npads) * TABLET_PAD_ROWS / 8 / static_cast<double>(table.rows);

	printf("%-10s %-4s %-5s %-7s | %s %8.4f ms, masked %s %8.4f ms: x %.3f, by their bytes x %.3f; marking %8.4f ms (%u ranges, %u pads)\n",
		   arithmetic ? "arithmetic" : "filter", w.name, nulls ? "nulls" : "-", checked ? "checked" : "proved", form[0], timing[0].median_ms,
		   form[1], timing[1].median_ms, timing[1].median_ms / timing[0].median_ms, (row_bytes + bits) / row_bytes, fill.median_ms, dead.nranges, dead.npads);
	fflush(stdout);
}

/* What the program raises for a row of values, by the compiler's own overflow checks. */
template <typename V>
uint32_t
row_errors(const HostTablet &t, uint32_t row)
{
	V			c0 = value_at<V>(t, 0, row), c1 = value_at<V>(t, 1, row), c2 = value_at<V>(t, 2, row), left, right, product;
	bool		over = false, null0 = null_at(t, 0, row), null1 = null_at(t, 1, row);

	over |= !null0 && __builtin_add_overflow(c0, V(40), &left);
	over |= !null1 && __builtin_sub_overflow(c1, V(10), &right);
	if (!over && !null0 && !null1 && left > right && !null_at(t, 2, row))
		over = __builtin_mul_overflow(c0, c2, &product);
	return over ? ERR_INT_OVERFLOW : 0;
}

/* A row at the edge of an overflow, among small ones, in every form. */
template <typename V>
void
check_errors(const Width &w, const cuda::LaunchScratch &scratch)
{
	const V		max = std::numeric_limits<V>::max(), min = std::numeric_limits<V>::min();
	const V		root = static_cast<V>(std::sqrt(static_cast<long double>(max)));	/* root * root fits, (root + 1)^2 does not */
	const V		edges[][NCOLS] = {
		{max - 40, 0, 1}, {max - 39, 0, 1}, {0, min + 10, 1}, {0, min + 9, 1}, {root, 0, root}, {root + 1, 0, root + 1},
		{root, 0, -root}, {root + 1, 0, -root - 1}, {max / 2, 0, 2}, {max / 2 + 1, 0, 2}, {max / 2 + 1, 0, -2}, {max / 2 + 2, 0, -2},
		{1, 0, min}, {-1, -100, min}, {-1, -100, max}, {min, 0, -1}, {0, 0, min}, {max / 3, 0, 4}, {1, 0, max}
	};
	std::vector<char> program = compile(true, w.type);
	uint32_t	number = 0;
	int			raised = 0, checked = 0;

	for (const V (&edge)[NCOLS] : edges)
		for (int null_column = -1; null_column < NCOLS; null_column++)
		{
			Table		table;
			uint32_t	want = 0, planted = number++ * 37 % 3000;

			table.distinct.resize(1);

			HostTablet &t = table.distinct[0];

			t.nrows = 3001;
			for (int c = 0; c < NCOLS; c++)
			{
				t.values[c].resize(t.nrows * sizeof(V));
				if (null_column >= 0)
					t.nulls[c].assign((t.nrows + 63) / 64, 0);
				for (uint32_t row = 0; row < t.nrows; row++)
				{
					V			v = row == planted ? edge[c] : static_cast<V>(row * (c + 3) % 101) - 50;

					/* Of full width, without being able to raise anything. */
					if (row == t.nrows - 1)
						v = c == 0 ? min / 2 : c == 1 ? max / 2 : 1;
					memcpy(t.values[c].data() + row * sizeof(V), &v, sizeof(V));
				}
			}
			if (null_column >= 0)
				t.nulls[null_column][planted / 64] |= 1ull << (planted % 64);
			pack_tablet(t, w);
			load_table(table, t.nrows);
			for (uint32_t row = 0; row < t.nrows; row++)
				want |= row_errors<V>(t, row);
			raised += want != 0;

			DeviceTable bound = bind(table, NCOLS);

			for (uint16_t rows_per_lane : {4, 8, 16})
			{
				std::unique_ptr<DeviceProgram> lowered(new DeviceProgram);
				cuda::LowerInput input = {reinterpret_cast<const Program *>(program.data()), nullptr, table.columns, NCOLS, table.rows,
					{rows_per_lane, false}};
				const char *refused = cuda::lower(input, lowered.get());
				cuda::LaunchShape shape;
				cuda::LaunchState state;

				CHECK(refused ? cudaErrorInvalidValue : cuda::choose_shape(*lowered, bound.npads, &shape));
				launch(*lowered, bound, shape, scratch);
				CHECK(cudaMemcpy(&state, scratch.state, sizeof(state), cudaMemcpyDeviceToHost));

				int128		sum = static_cast<int128>((static_cast<uint128>(static_cast<uint64_t>(state.result[0].hi)) << 64) |
													  state.result[0].lo);

				checked++;
				if (state.errors != want || (want == 0 && sum != table.sum))
				{
					all_right = false;
					printf("WRONG errors %s, R%d, row %u, null column %d: got %u, expected %u\n", w.name, rows_per_lane, planted,
						   null_column, state.errors, want);
				}
			}
		}
	printf("%s: %d tables with a planted row, %d of them with an error, %d launches\n", w.name, static_cast<int>(number), raised, checked);
}

}  // namespace

int
main(int argc, char **argv)
{
	Settings	settings;

	for (int i = 1; i < argc; i++)
	{
		if (!strcmp(argv[i], "--rows") && i + 1 < argc)
			settings.rows = strtoull(argv[++i], nullptr, 10);
		else if (!strcmp(argv[i], "--reps") && i + 1 < argc)
			settings.reps = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--csv") && i + 1 < argc)
			settings.csv = argv[++i];
		else if (!strcmp(argv[i], "--only") && i + 1 < argc)
			settings.only = argv[++i];
		else if (!strcmp(argv[i], "--tbs") && i + 1 < argc)
			settings.tbs = atof(argv[++i]);
		else if (!strcmp(argv[i], "--masked") && i + 1 < argc)
			masked_share = atof(argv[++i]);
		else if (!strcmp(argv[i], "--auto"))
			settings.automatic = true;
		else if (!strcmp(argv[i], "--theta") && i + 1 < argc)
			settings.theta = static_cast<uint32_t>(strtoul(argv[++i], nullptr, 10));
		else
		{
			fprintf(stderr, "usage: %s [--rows N] [--reps N] [--csv FILE] [--only WIDTH] [--tbs N] [--auto] [--masked SHARE] [--theta ROWS]\n", argv[0]);
			return 2;
		}
	}

	cuda::LaunchScratch scratch;
	FILE	   *csv = settings.csv ? fopen(settings.csv, "w") : nullptr;

	CHECK(cuda::create_scratch(&scratch));
	if (settings.theta != 0)
	{
		for (const theta::Case &c : theta::cases)
			all_right &= theta::run_case(c, settings.theta, settings.reps, scratch);
		printf("%s\n", all_right ? "all results right" : "SOME RESULTS WRONG");
		return all_right ? 0 : 1;
	}
	if (csv)
		fprintf(csv, "query,width,nulls,checked,choice,form,rows,ops,shared_bytes,hand_ms,hand_best_ms,vm_ms,vm_best_ms,ratio,trows,floor_ms,over_floor\n");
	check_errors<int32_t>(widths[2], scratch);
	check_errors<int64_t>(widths[3], scratch);
	if (masked_share < 0)
		printf("%-10s %-4s %-5s %-7s | %7s %5s %6s | %-9s %7s %5s %6s %6s | %-9s %7s %5s\n", "query", "", "", "checks", "hand ms", "TB/s",
		   "Trow/s", "VM chosen", "ms", "ratio", "Trow/s", "/floor", "VM best", "ms", "ratio");
	for (const Width &w : widths)
	{
		if (settings.only && strcmp(settings.only, w.name))
			continue;
		for (bool nulls : {false, true})
		{
			Table		table;

			make_table(table, w, nulls, w.stored == 8 ? settings.rows / 2 : settings.rows);
			if (masked_share >= 0)
			{
				run_masked(settings, false, false, nulls, w, table, scratch);
				run_masked(settings, true, true, nulls, w, table, scratch);
				continue;
			}
			run_workload(settings, false, false, nulls, w, table, scratch, csv);
			run_workload(settings, true, false, nulls, w, table, scratch, csv);
			run_workload(settings, true, true, nulls, w, table, scratch, csv);
		}
	}
	cuda::destroy_scratch(&scratch);
	if (csv)
		fclose(csv);
	print_bars();
	printf("%s\n", all_right ? "all results right" : "SOME RESULTS WRONG");
	return all_right ? 0 : 1;
}
