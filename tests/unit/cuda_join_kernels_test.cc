/*
 * cuda_join_kernels_test.cc: row sets, join tables, probes and pairs, each against
 * plain loops, on the emulated device; all memory is given to the byte. Also compiles for a
 * real one (make cuda-test), with memory that both sides see.
 *
 * GPUVM_TEST_SEED changes where random cases start.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "launch.h"
#include "pairs.h"
#include "vm/join_keys.h"

using namespace gpuvm;
using namespace gpuvm::cuda;

namespace {

using Rng = std::mt19937_64;

int
pick_int(Rng &rng, int n)
{
	return static_cast<int>(rng() % static_cast<uint64_t>(n));
}

bool
chance(Rng &rng, int percent)
{
	return pick_int(rng, 100) < percent;
}

/* The order of lanes, warps and blocks. */
void
set_order(uint64_t seed)
{
#ifdef GPUVM_EMULATED
	gpuvm_emulated::set_seed(seed);
#endif
}

/* Device memory that the host may look into while the device does nothing, freed at the end. */
class DeviceMemory
{
public:
	~DeviceMemory()
	{
		for (void *p : all_)
			cudaFree(p);
	}
	char	   *get(size_t bytes)
	{
		char	   *p = nullptr;

#ifdef GPUVM_EMULATED
		EXPECT_EQ(cudaMalloc(&p, bytes), cudaSuccess);
#else
		EXPECT_EQ(cudaMallocManaged(&p, std::max<size_t>(bytes, 1)), cudaSuccess);
		memset(p, 0xb6, bytes);
#endif
		all_.push_back(p);
		return p;
	}
	template <typename T>
	T		   *copy(const T *from, size_t n)
	{
		char	   *to = get(n * sizeof(T));

		if (n != 0)
			memcpy(to, from, n * sizeof(T));
		return reinterpret_cast<T *>(to);
	}

private:
	std::vector<void *> all_;
};

constexpr Type KEY_TYPES[] = {Type::Bool, Type::I16, Type::I32, Type::I64, Type::F32, Type::F64};

uint64_t
first_seed()
{
	const char *seed = getenv("GPUVM_TEST_SEED");

	return seed != nullptr ? strtoull(seed, nullptr, 10) : 1;
}

void
ok(cudaError_t rc)
{
	ASSERT_EQ(rc, cudaSuccess) << cudaGetErrorString(rc);
}

class Stream
{
public:
	Stream() { ok(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
	~Stream() { cudaStreamDestroy(stream_); }
	operator cudaStream_t() const { return stream_; }
	void wait() const { ok(cudaStreamSynchronize(stream_)); }

private:
	cudaStream_t stream_ = nullptr;
};

/* A column in host memory: values as they lie on the device. */
struct Column
{
	Type		type;
	std::vector<uint64_t> raw;
	std::vector<bool> null;

	size_t		n() const { return raw.size(); }
	void add(uint64_t v, bool is_null = false)
	{
		raw.push_back(v);
		null.push_back(is_null);
	}
	void add_int(int64_t v) { add(static_cast<uint64_t>(v)); }
	void add_double(double v)
	{
		float		f = static_cast<float>(v);
		uint64_t	bits = 0;

		if (type == Type::F32)
			memcpy(&bits, &f, sizeof(f));
		else
			memcpy(&bits, &v, sizeof(v));
		add(bits);
	}
	double as_double(size_t row) const
	{
		float		f;
		double		d;

		memcpy(&f, &raw[row], sizeof(f));
		memcpy(&d, &raw[row], sizeof(d));
		return type == Type::F32 ? f : d;
	}
	int64_t as_int(size_t row) const
	{
		return type == Type::I16 ? static_cast<int16_t>(raw[row]) : type == Type::I32 ? static_cast<int32_t>(raw[row]) : static_cast<int64_t>(raw[row]);
	}
};

bool
is_float(Type t)
{
	return t == Type::F32 || t == Type::F64;
}

/* PostgreSQL's order of values that are not null: -1, 0, 1. */
int
compare(const Column &a, size_t row_a, const Column &b, size_t row_b)
{
	if (!is_float(a.type))
	{
		const int64_t x = a.as_int(row_a), y = b.as_int(row_b);

		return x < y ? -1 : x > y;
	}

	const double x = a.as_double(row_a), y = b.as_double(row_b);

	if (std::isnan(x) || std::isnan(y))
		return static_cast<int>(std::isnan(x)) - static_cast<int>(std::isnan(y));
	return x < y ? -1 : x > y;
}

/* On the device; nulls only if `nullable`. */
RowColumn
copy_column(const Column &column, bool nullable, DeviceMemory *memory)
{
	const size_t width = static_cast<size_t>(type_natural_width(column.type));
	std::vector<char> values(column.n() * width);
	std::vector<uint32_t> nulls((column.n() + 31) / 32);

	for (size_t i = 0; i < column.n(); i++)
	{
		memcpy(&values[i * width], &column.raw[i], width);
		nulls[i / 32] |= static_cast<uint32_t>(column.null[i]) << (i % 32);
	}
	return RowColumn{column.n() == 0 ? nullptr : memory->copy(values.data(), values.size()),
		nullable && column.n() != 0 ? memory->copy(nulls.data(), nulls.size()) : nullptr, column.type};
}

/* Room for n rows. */
RowColumn
empty_column(Type type, bool nullable, size_t n, DeviceMemory *memory)
{
	return RowColumn{memory->get(n * static_cast<size_t>(type_natural_width(type))),
		nullable ? reinterpret_cast<uint32_t *>(memory->get((n + 31) / 32 * 4)) : nullptr, type};
}

uint64_t
raw_at(const RowColumn &column, size_t row)
{
	const size_t width = static_cast<size_t>(type_natural_width(column.type));
	uint64_t	v = 0;

	memcpy(&v, column.values + row * width, width);
	return v;
}

bool
null_at(const RowColumn &column, size_t row)
{
	return column.nulls != nullptr && (column.nulls[row / 32] >> (row % 32) & 1) != 0;
}

uint64_t
mask_of(Type type)
{
	const int	bits = 8 * type_natural_width(type);

	return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

/* A value out of about `distinct`, from `base` on; floats have both zeroes and NaNs of several kinds, too. */
void
add_random(Column *column, Rng &rng, uint64_t distinct, int64_t base, int null_percent)
{
	static const uint64_t nans[] = {0x7ff8000000000000, 0xfff8000000000000, 0x7ff0000000000001, 0xffffffffffffffff};
	static const uint32_t float_nans[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff};
	const int64_t v = base + static_cast<int64_t>(rng() % distinct);

	switch (column->type)
	{
		case Type::Bool:
			column->add(static_cast<uint64_t>(v & 1));
			break;
		case Type::F32:
		case Type::F64:
			switch (pick_int(rng, 20))
			{
				case 0: column->add_double(0.0); break;
				case 1: column->add_double(-0.0); break;
				case 2: column->add(column->type == Type::F32 ? float_nans[rng() % 4] : nans[rng() % 4]); break;
				case 3: column->add_double(chance(rng, 50) ? INFINITY : -INFINITY); break;
				default: column->add_double(static_cast<double>(v) / 4); break;
			}
			break;
		default:
			column->add_int(v);
			break;
	}
	column->raw.back() &= mask_of(column->type);
	column->null.back() = chance(rng, null_percent);
}

std::vector<uint32_t>
random_bits(Rng &rng, uint32_t n, int percent)
{
	std::vector<uint32_t> bits((n + 31) / 32);

	for (uint32_t i = 0; i < bits.size() * 32; i++)	/* behind the last, too */
		bits[i / 32] |= static_cast<uint32_t>(chance(rng, percent)) << (i % 32);
	return bits;
}

bool
bit_of(const std::vector<uint32_t> &bits, uint32_t i)
{
	return (bits[i / 32] >> (i % 32) & 1) != 0;
}

template <typename T>
T *
room(size_t n, DeviceMemory *memory)
{
	return reinterpret_cast<T *>(memory->get(std::max<size_t>(n, 1) * sizeof(T)));
}

/* ---- row sets ----------------------------------------------------------------- */

/* A row program's results, and slices of them, made up. */
struct Rows
{
	DeviceProgram program = {};
	std::vector<Column> columns;
	uint32_t	errors = 0;

	void		add_column(Type type, bool nullable)
	{
		const int	i = program.nresults++;

		program.result_type[i] = type;
		program.result_nullable[i / 8] = static_cast<uint8_t>(program.result_nullable[i / 8] | nullable << i % 8);
		columns.push_back(Column{type, {}, {}});
	}

	/* A slice of npads out of a staging area of more: what append_rows() is to find. `keep`: and what it is to do. */
	RowStaging	stage(Rng &rng, uint32_t npads, uint32_t spare_pads, int fill, bool keep, DeviceMemory *memory)
	{
		const uint32_t all = npads + spare_pads;
		const RowStaging staging = row_staging(program, all, memory->get(row_staging_bytes(program, all)));
		const uint64_t rows_staged = uint64_t{staging.nsegments} * staging.segment_rows;

		ok(reset_row_staging(staging, nullptr));
		ok(cudaStreamSynchronize(nullptr));
		for (uint32_t s = 0; s < staging.nsegments; s++)
		{
			const uint32_t n = fill == 100 ? staging.segment_rows : chance(rng, fill) ? static_cast<uint32_t>(rng() % (staging.segment_rows + 1))
				: chance(rng, 10) ? 1 : 0;
			uint64_t	before = 0, nullable_before = 0;
			const bool	counts = keep && s < npads * (TABLET_PAD_ROWS / staging.segment_rows);

			staging.counts[s] = n;
			for (int c = 0; c < program.nresults; c++)
			{
				const Type	type = program.result_type[c];
				const size_t width = static_cast<size_t>(type_width(type));
				const bool	nullable = program.result_nullable[c / 8] >> c % 8 & 1;

				for (uint32_t i = 0; i < n; i++)
				{
					const uint64_t at = uint64_t{s} * staging.segment_rows + i, v = rng() & mask_of(type);
					const uint64_t staged = type == Type::I16 ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int16_t>(v))) : v;
					const bool	null = nullable && chance(rng, 30);

					memcpy(staging.values + before * rows_staged + at * width, &staged, width);
					if (nullable)
					{
						uint32_t   *word = reinterpret_cast<uint32_t *>(staging.nulls + nullable_before * (rows_staged / 8)) + at / 32;

						*word = (*word & ~(1u << at % 32)) | static_cast<uint32_t>(null) << at % 32;
					}
					if (counts)
						columns[static_cast<size_t>(c)].add(v, null);
				}
				before += width;
				nullable_before += nullable;
			}
			if (counts && program.nresults == 0)
				nrows += n;
		}
		if (keep && chance(rng, 30))
		{
			staging.errors[rng() % npads] = ERR_INT_OVERFLOW;
			errors |= ERR_INT_OVERFLOW;
		}
		return staging;
	}

	uint64_t	nrows = 0;		/* without columns */

	uint64_t n() const { return columns.empty() ? nrows : columns[0].n(); }

	void		expect(const RowSet &rows, const RowSetState &state)
	{
		EXPECT_EQ(state.nrows, n());
		EXPECT_EQ(state.errors, errors);
		EXPECT_EQ(state.blocks_done, 0u);
		for (size_t c = 0; c < columns.size(); c++)
			for (size_t i = 0; i < n(); i++)
			{
				ASSERT_EQ(null_at(rows.column[c], i), columns[c].null[i]) << "column " << c << " row " << i;
				ASSERT_EQ(raw_at(rows.column[c], i), columns[c].raw[i]) << "column " << c << " row " << i;
			}
	}
};

void
append(const Rows &rows, const RowStaging &staging, uint32_t npads, const RowSet &set, RowSetState *outcome, const Stream &stream)
{
	DeviceMemory temp;

	ok(append_rows(rows.program, staging, npads, set, temp.get(append_temp_bytes(rows.program, npads)), outcome, stream));
	stream.wait();
}

TEST(RowSets, SlicesInOrder)
{
	for (uint64_t seed = first_seed(); seed < first_seed() + 12; seed++)
	{
		SCOPED_TRACE(seed);

		Rng			rng(seed);
		Stream		stream;
		DeviceMemory memory;
		Rows		rows;
		RowSetState state = {};

		set_order(seed % 3);
		rows.program.rows_per_lane = static_cast<uint16_t>(4 << pick_int(rng, 3));
		for (int i = pick_int(rng, 9); i > 0; i--)
			rows.add_column(chance(rng, 10) ? Type::RowId : KEY_TYPES[pick_int(rng, 6)], chance(rng, 50));

		const RowSet set = row_set(rows.program, 5 * TABLET_PAD_ROWS * 2 - 77, memory.get(row_set_bytes(rows.program, 5 * TABLET_PAD_ROWS * 2 - 77)));

		EXPECT_EQ(set.capacity, 10 * TABLET_PAD_ROWS);
		ok(reset_rows(set, stream));
		stream.wait();
		for (int slice = 0; slice < 5; slice++)
		{
			const uint32_t npads = 1 + static_cast<uint32_t>(pick_int(rng, 2));
			const int	fills[] = {0, 2, 50, 100};

			append(rows, rows.stage(rng, npads, static_cast<uint32_t>(pick_int(rng, 2)), fills[pick_int(rng, 4)], true, &memory), npads, set, &state,
				   stream);
			EXPECT_EQ(state.full, 0u);
			EXPECT_EQ(state.wanted, rows.n());
		}
		rows.expect(set, state);

		/* No pads: the state as it is. */
		state = RowSetState{};
		ok(append_rows(rows.program, RowStaging{}, 0, set, nullptr, &state, stream));
		stream.wait();
		EXPECT_EQ(state.nrows, rows.n());
	}
	set_order(0);
}

TEST(RowSets, FullAndMoved)
{
	Rng			rng(first_seed());
	Stream		stream;
	DeviceMemory memory;
	Rows		rows;
	RowSetState state = {};

	rows.program.rows_per_lane = 8;
	rows.add_column(Type::I64, true);
	rows.add_column(Type::I16, false);
	rows.add_column(Type::Bool, true);

	const RowSet small = row_set(rows.program, 2 * TABLET_PAD_ROWS, memory.get(row_set_bytes(rows.program, 2 * TABLET_PAD_ROWS)));
	const RowSet large = row_set(rows.program, 6 * TABLET_PAD_ROWS, memory.get(row_set_bytes(rows.program, 6 * TABLET_PAD_ROWS)));

	ok(reset_rows(small, stream));
	ok(reset_rows(large, stream));
	stream.wait();
	append(rows, rows.stage(rng, 1, 0, 100, true, &memory), 1, small, &state, stream);
	EXPECT_EQ(state.nrows, TABLET_PAD_ROWS);

	Rows		later = rows;
	const RowStaging wide = later.stage(rng, 2, 0, 100, true, &memory);

	append(rows, wide, 2, small, &state, stream);
	EXPECT_NE(state.full, 0u);
	EXPECT_EQ(state.nrows, TABLET_PAD_ROWS);
	EXPECT_EQ(state.wanted, 3 * TABLET_PAD_ROWS);

	/* One that would fit, behind one that did not. */
	const RowStaging fits = later.stage(rng, 1, 0, 100, true, &memory);

	append(rows, fits, 1, small, &state, stream);
	EXPECT_NE(state.full, 0u);
	EXPECT_EQ(state.nrows, TABLET_PAD_ROWS);
	EXPECT_EQ(state.wanted, 4 * TABLET_PAD_ROWS);
	rows.errors = later.errors;
	rows.expect(small, state);

	ok(move_rows(small, state.nrows, large, stream));
	append(later, wide, 2, large, &state, stream);
	EXPECT_EQ(state.full, 0u);
	EXPECT_EQ(state.wanted, 3 * TABLET_PAD_ROWS);
	append(later, fits, 1, large, &state, stream);
	later.expect(large, state);
	EXPECT_NE(move_rows(large, 3 * TABLET_PAD_ROWS, small, stream), cudaSuccess);
}

/* Several launches; and so many segments that a warp has several. */
TEST(RowSets, ManyColumnsManySegments)
{
	for (int which = 0; which < 2; which++)
	{
		Rng			rng(first_seed() + static_cast<uint64_t>(which));
		Stream		stream;
		DeviceMemory memory;
		Rows		rows;
		RowSetState state = {};
		const uint32_t npads = which == 0 ? 1 : 1100;

		rows.program.rows_per_lane = 4;
		for (int i = 0; i < (which == 0 ? PROGRAM_MAX_COLUMNS : 2); i++)
			rows.add_column(which == 1 ? Type::I16 : KEY_TYPES[i % 6], i % 3 != 0 || which == 1);

		const RowSet set = row_set(rows.program, TABLET_PAD_ROWS * 6, memory.get(row_set_bytes(rows.program, TABLET_PAD_ROWS * 6)));

		ok(reset_rows(set, stream));
		stream.wait();
		for (int slice = 0; slice < 2; slice++)
			append(rows, rows.stage(rng, npads, 0, 0, true, &memory), npads, set, &state, stream);
		EXPECT_EQ(state.full, 0u);
		rows.expect(set, state);
	}
}

/* ---- join tables and probes ------------------------------------------------------- */

/* Keys of one side of a join. */
struct Side
{
	std::vector<Column> keys;
	std::vector<bool> nullable;	/* has a bitmap */
	uint32_t	n = 0;

	explicit Side(const std::vector<Type> &types)
	{
		for (Type type : types)
			keys.push_back(Column{type, {}, {}});
		nullable.assign(types.size(), true);
	}
	bool null(uint32_t row) const
	{
		bool		any = false;

		for (size_t k = 0; k < keys.size(); k++)
			any = any || keys[k].null[row];
		return any;
	}
	JoinKeys	copy(DeviceMemory *memory) const
	{
		JoinKeys	to = {};

		to.nkeys = static_cast<uint32_t>(keys.size());
		for (size_t k = 0; k < keys.size(); k++)
			to.key[k] = copy_column(keys[k], nullable[k], memory);
		return to;
	}
	void		add_random_rows(Rng &rng, uint32_t rows, uint64_t distinct, int64_t base, int null_percent)
	{
		for (size_t k = 0; k < keys.size(); k++)
		{
			nullable[k] = null_percent != 0 || chance(rng, 50);
			for (uint32_t i = 0; i < rows; i++)
				add_random(&keys[k], rng, distinct, base, null_percent);
		}
		n += rows;
	}
	void		add_ints(std::initializer_list<int64_t> values)
	{
		for (int64_t v : values)
			keys[0].add(static_cast<uint64_t>(v) & mask_of(keys[0].type));
		n = static_cast<uint32_t>(keys[0].n());
	}
};

using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;

bool
equal(const Side &a, uint32_t row_a, const Side &b, uint32_t row_b)
{
	for (size_t k = 0; k < a.keys.size(); k++)
		if (a.keys[k].null[row_a] || b.keys[k].null[row_b] || compare(a.keys[k], row_a, b.keys[k], row_b) != 0)
			return false;
	return true;
}

Pairs
equal_pairs(const Side &inner, const Side &outer)
{
	Pairs		pairs;

	for (uint32_t o = 0; o < outer.n; o++)
		for (uint32_t i = 0; i < inner.n; i++)
			if (equal(outer, o, inner, i))
				pairs.emplace_back(o, i);
	return pairs;
}

struct Built
{
	bool		collision = false;
	JoinTable	table = {};
};

Built
build(const Side &inner, bool sorted, DeviceMemory *memory, const Stream &stream)
{
	const JoinKeys keys = inner.copy(memory);
	KeyFacts	facts;
	JoinTablePlan plan;
	JoinTableOutcome outcome;
	Built		built;

	ok(measure_keys(keys, inner.n, room<KeyFacts>(1, memory), &facts, stream));
	stream.wait();

	uint64_t	live = 0;

	for (uint32_t i = 0; i < inner.n; i++)
		live += !inner.null(i);
	EXPECT_EQ(facts.live, live);
	plan_join_table(keys, inner.n, facts, sorted, &plan);
	for (int attempt = 0;; attempt++)
	{
		DeviceMemory temp;
		char	   *table_memory = plan.table_bytes != 0 ? memory->get(plan.table_bytes) : nullptr;

		ok(build_join_table(plan, keys, table_memory, plan.temp_bytes != 0 ? temp.get(plan.temp_bytes) : nullptr, &built.table,
							room<JoinTableOutcome>(1, memory), &outcome, stream));
		stream.wait();

		const JoinTableEnd end = finish_join_table(outcome, &plan, &built.table);

		built.collision = end == JoinTableEnd::Collision;
		if (end != JoinTableEnd::Again)
			return built;
		EXPECT_EQ(attempt, 0);
	}
}

/* All that a probe gives, in all modes, against the pairs that there are. */
void
expect_probe(const Built &built, uint32_t nouter, const Pairs &expected, Rng &rng, const Stream &stream,
			 const std::function<cudaError_t(ProbeMode, char *, Probe *, ProbeOutcome *)> &run)
{
	std::vector<uint32_t> matches(nouter);
	Pairs		kept;
	uint32_t	matched = 0;
	size_t		at = 0;

	for (const auto &pair : expected)
		matched += matches[pair.first]++ == 0;
	for (uint32_t o = 0; o < nouter; o++)
	{
		if (matches[o] == 0)
			kept.emplace_back(o, NO_ROW);
		for (; at < expected.size() && expected[at].first == o; at++)
			kept.push_back(expected[at]);
	}
	for (ProbeMode mode : {ProbeMode::Pairs, ProbeMode::Kept, ProbeMode::Bits, ProbeMode::Count})
	{
		SCOPED_TRACE(static_cast<int>(mode));

		DeviceMemory memory;
		Probe		probe;
		ProbeOutcome outcome;
		const Pairs &want = mode == ProbeMode::Kept ? kept : expected;

		ok(run(mode, memory.get(probe_bytes(built.table, mode, nouter)), &probe, &outcome));
		stream.wait();
		ASSERT_EQ(outcome.matched, matched);
		for (uint32_t o = 0; o < nouter; o++)
			ASSERT_EQ(probe.matched_bits[o / 32] >> (o % 32) & 1, matches[o] != 0) << o;
		ASSERT_EQ(outcome.npairs, mode == ProbeMode::Bits ? 0 : want.size());
		if (mode == ProbeMode::Bits || mode == ProbeMode::Count)
			continue;

		/* In parts. */
		Pairs		got;
		uint64_t	done = 0;

		while (done < want.size())
		{
			const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(want.size() - done, chance(rng, 50) ? want.size() : 1 + rng() % 3000));
			uint32_t   *outer = room<uint32_t>(n, &memory), *inner = room<uint32_t>(n, &memory);

			ok(expand_pairs(built.table, probe, done, n, outer, inner, stream));
			stream.wait();
			for (uint32_t i = 0; i < n; i++)
				got.emplace_back(outer[i], inner[i]);
			done += n;
		}
		ASSERT_EQ(got, want);
		if (built.table.unique && outcome.npairs == nouter && nouter > 0)
		{
			uint32_t   *inner = room<uint32_t>(nouter, &memory);

			ok(expand_pairs(built.table, probe, 0, nouter, nullptr, inner, stream));
			stream.wait();
			for (uint32_t o = 0; o < nouter; o++)
			{
				ASSERT_EQ(got[o].first, o);
				ASSERT_EQ(got[o].second, inner[o]);
			}
		}
	}
}

JoinForm
expect_equality(const Side &inner, const Side &outer, Rng &rng)
{
	Stream		stream;
	DeviceMemory memory;
	const Pairs expected = equal_pairs(inner, outer);
	const Built built = build(inner, false, &memory, stream);
	const JoinKeys keys = outer.copy(&memory);
	bool		duplicates = false;

	EXPECT_FALSE(built.collision);
	for (uint32_t i = 0; i < inner.n && !duplicates && inner.n <= 2000; i++)
		for (uint32_t j = 0; j < i && !duplicates; j++)
			duplicates = equal(inner, i, inner, j);
	EXPECT_TRUE(inner.n > 2000 || built.table.form == JoinForm::Empty || built.table.unique == !duplicates);
	expect_probe(built, outer.n, expected, rng, stream, [&](ProbeMode mode, char *at, Probe *probe, ProbeOutcome *outcome)
	{
		return cuda::probe(built.table, mode, keys, outer.n, at, probe, outcome, stream);
	});
	return built.table.form;
}

/* One key of each type, from few values to many, from no null to all. */
TEST(JoinTables, OneKey)
{
	std::map<JoinForm, int> forms;

	for (Type type : KEY_TYPES)
		for (uint64_t seed = first_seed(); seed < first_seed() + 8; seed++)
		{
			SCOPED_TRACE(static_cast<int>(type) * 1000 + static_cast<int>(seed));

			Rng			rng(seed * 7 + static_cast<uint64_t>(type));
			Side		inner({type}), outer({type});
			const uint64_t distinct[] = {1, 3, 400, 20000, uint64_t{1} << 31, uint64_t{1} << 62};
			const int	nulls[] = {0, 0, 20, 100};
			const uint64_t d = distinct[pick_int(rng, 6)];
			const int64_t base = chance(rng, 50) ? 0 : static_cast<int64_t>(rng()) >> (type == Type::I16 ? 49 : type == Type::I32 ? 33 : 2);

			set_order(seed % 3);
			inner.add_random_rows(rng, static_cast<uint32_t>(rng() % 1500), d, base, nulls[pick_int(rng, 4)]);
			outer.add_random_rows(rng, static_cast<uint32_t>(rng() % 300), d, base, nulls[pick_int(rng, 4)]);
			if (inner.n > 0)	/* keys that do match */
				for (uint32_t i = 0; i < 300; i++, outer.n++)
				{
					const size_t from = rng() % inner.n;

					outer.keys[0].add(inner.keys[0].raw[from], chance(rng, 5));
					outer.nullable[0] = true;
				}
			forms[expect_equality(inner, outer, rng)]++;
		}
	EXPECT_GT(forms[JoinForm::Empty], 0);
	EXPECT_GT(forms[JoinForm::Slots], 0);
	EXPECT_GT(forms[JoinForm::Ranges], 0);
	EXPECT_GT(forms[JoinForm::Hashed], 0);
	set_order(0);
}

TEST(JoinTables, SeveralKeys)
{
	for (uint64_t seed = first_seed(); seed < first_seed() + 24; seed++)
	{
		SCOPED_TRACE(seed);

		Rng			rng(seed);
		std::vector<Type> types;
		const uint64_t distinct[] = {2, 5, 1000, uint64_t{1} << 62};
		const uint64_t d = distinct[pick_int(rng, 4)];
		const int	nulls = chance(rng, 50) ? 0 : 10;

		/* Now and then as many as there may be. */
		for (int i = chance(rng, 10) ? JOIN_MAX_KEYS : 2 + pick_int(rng, 3); i > 0; i--)
			types.push_back(KEY_TYPES[pick_int(rng, 6)]);

		Side		inner(types), outer(types);

		set_order(seed % 3);
		inner.add_random_rows(rng, static_cast<uint32_t>(rng() % 800), d, -1, nulls);
		outer.add_random_rows(rng, static_cast<uint32_t>(rng() % 200), d, -1, nulls);
		if (inner.n > 0)
			for (uint32_t i = 0; i < 300; i++, outer.n++)
			{
				const size_t from = rng() % inner.n, other = chance(rng, 80) ? from : rng() % inner.n;

				/* all keys of one row, or the last of another */
				for (size_t k = 0; k < types.size(); k++)
				{
					const size_t row = k + 1 == types.size() ? other : from;

					outer.keys[k].add(inner.keys[k].raw[row], inner.keys[k].null[row]);
					outer.nullable[k] = true;
				}
			}
		EXPECT_TRUE(expect_equality(inner, outer, rng) == JoinForm::Hashed || nulls != 0 || inner.n == 0);
	}
	set_order(0);
}

TEST(JoinTables, IdentityIsFound)
{
	Rng			rng(1);

	for (Type type : {Type::I16, Type::I32, Type::I64})
		for (int64_t base : {int64_t{-700}, int64_t{0}, type == Type::I64 ? INT64_MAX - 4999 : int64_t{5000}, type == Type::I64 ? INT64_MIN : int64_t{-5000}})
		{
			Side		inner({type}), outer({type});

			inner.nullable = outer.nullable = {false};
			for (int64_t i = 0; i < 5000; i++)
				inner.keys[0].add(static_cast<uint64_t>(base + i) & mask_of(type));
			inner.n = 5000;
			for (int i = 0; i < 500; i++)
				outer.keys[0].add((static_cast<uint64_t>(base) + rng() % 5010 - 5) & mask_of(type));
			outer.n = 500;
			EXPECT_EQ(expect_equality(inner, outer, rng), JoinForm::Identity);
			std::swap(inner.keys[0].raw[10], inner.keys[0].raw[11]);
			EXPECT_EQ(expect_equality(inner, outer, rng), JoinForm::Slots);
			inner.keys[0].raw[11] = inner.keys[0].raw[10];
			EXPECT_EQ(expect_equality(inner, outer, rng), JoinForm::Ranges);
		}
}

TEST(JoinTables, Extremes)
{
	Rng			rng(1);
	Side		whole({Type::I64}), top({Type::I64}), bottom({Type::I64}), probes({Type::I64});

	whole.add_ints({INT64_MIN, INT64_MAX, 0, -1, INT64_MIN});
	top.add_ints({INT64_MAX, INT64_MAX - 3, INT64_MAX - 1});
	bottom.add_ints({INT64_MIN + 7, INT64_MIN, INT64_MIN + 7});
	probes.add_ints({INT64_MIN, INT64_MAX, 0, -1, 1, INT64_MAX - 1, INT64_MAX - 2, INT64_MAX - 3, INT64_MIN + 7, INT64_MIN + 1, INT64_MAX - 70000});
	EXPECT_EQ(expect_equality(whole, probes, rng), JoinForm::Hashed);
	EXPECT_EQ(expect_equality(top, probes, rng), JoinForm::Slots);
	EXPECT_EQ(expect_equality(bottom, probes, rng), JoinForm::Ranges);

	/* All 32 bits: hashes are the keys' own, mixed; one of them is all ones. */
	Side		ints({Type::I32}), int_probes({Type::I32});

	for (uint32_t i = 0; i < 1000; i++)
		ints.keys[0].add(i * 4294967u);
	ints.keys[0].add(static_cast<uint32_t>(INT32_MAX));
	ints.n = 1001;
	for (uint32_t i = 0; i < 1500; i++)
		int_probes.keys[0].add(i * 4294967u);
	int_probes.n = 1500;
	EXPECT_EQ(expect_equality(ints, int_probes, rng), JoinForm::Hashed);
}

TEST(JoinTables, EmptySides)
{
	Rng			rng(1);

	for (const auto &types : {std::vector<Type>{Type::I32}, std::vector<Type>{Type::F64}, std::vector<Type>{Type::I64, Type::I64}})
	{
		Side		none(types), nulls(types), some(types);

		nulls.add_random_rows(rng, 70, 10, 0, 100);
		some.add_random_rows(rng, 70, 10, 0, 0);
		EXPECT_EQ(expect_equality(none, none, rng), JoinForm::Empty);
		EXPECT_EQ(expect_equality(none, some, rng), JoinForm::Empty);
		EXPECT_EQ(expect_equality(nulls, some, rng), JoinForm::Empty);
		EXPECT_NE(expect_equality(some, none, rng), JoinForm::Empty);
		EXPECT_NE(expect_equality(some, nulls, rng), JoinForm::Empty);
	}
}

/* One key has most rows, on either side, and the tiles of pairs do not end where keys do. */
TEST(JoinTables, Skew)
{
	for (Type type : {Type::I32, Type::F64})
	{
		Rng			rng(5);
		Side		inner({type}), outer({type});

		for (uint32_t i = 0; i < 2500; i++)
			inner.keys[0].add_double(type == Type::F64 ? i % 10 != 0 ? 7 : i : 0);
		for (uint32_t i = 0; i < 400; i++)
			outer.keys[0].add_double(type == Type::F64 ? i % 10 == 0 ? 7 : i : 0);
		if (type == Type::I32)
		{
			for (uint32_t i = 0; i < 2500; i++)
				inner.keys[0].raw[i] = i % 10 != 0 ? 7 : i;
			for (uint32_t i = 0; i < 400; i++)
				outer.keys[0].raw[i] = i % 10 == 0 ? 7 : i;
		}
		inner.n = 2500;
		outer.n = 400;
		EXPECT_EQ(expect_equality(inner, outer, rng), type == Type::I32 ? JoinForm::Ranges : JoinForm::Hashed);
	}
}

/* Many outer rows without a partner around few with one; more rows than a block, a scan's tile and a chunk have. */
TEST(JoinTables, ManyRows)
{
	Rng			rng(9);
	Side		inner({Type::I32}), outer({Type::I32});

	for (uint32_t i = 0; i < 20; i++)
		inner.keys[0].add(i / 2 * 1000);
	inner.n = 20;
	for (uint32_t i = 0; i < 150000; i++)
		outer.keys[0].add(i);
	outer.n = 150000;
	EXPECT_EQ(expect_equality(inner, outer, rng), JoinForm::Ranges);
	for (uint32_t i = 0; i < 20; i++)
		inner.keys[0].raw[i] = i < 19 ? i * 5000 : 2000000;
	EXPECT_EQ(expect_equality(inner, outer, rng), JoinForm::Hashed);
}

/* What makes two pairs of keys collide follows from how they are mixed. */
TEST(JoinTables, CollisionIsFound)
{
	Rng			rng(1);
	Stream		stream;
	DeviceMemory memory;
	Side		inner({Type::I64, Type::I64}), outer({Type::I64, Type::I64});

	inner.add_random_rows(rng, 500, uint64_t{1} << 62, 0, 0);
	for (uint64_t a : {uint64_t{12}, uint64_t{77}})
	{
		inner.keys[0].add(a);
		inner.keys[1].add(mix(a) ^ 0x123456789abcdef);
		inner.n++;
	}
	EXPECT_TRUE(build(inner, false, &memory, stream).collision);

	/* A probe's key that collides with one of the table's is another key. */
	for (size_t k = 0; k < 2; k++)
	{
		outer.keys[k].add(inner.keys[k].raw.back());
		outer.keys[k].add(inner.keys[k].raw[3]);
		inner.keys[k].raw.pop_back();
		inner.keys[k].null.pop_back();
	}
	inner.n--;
	outer.n = 2;
	EXPECT_EQ(equal_pairs(inner, outer), (Pairs{{1, 3}}));
	EXPECT_EQ(expect_equality(inner, outer, rng), JoinForm::Hashed);
}

/* ---- ranges of keys ----------------------------------------------------------------- */

TEST(JoinTables, RangesOfKeys)
{
	for (Type type : KEY_TYPES)
		for (uint64_t seed = first_seed(); seed < first_seed() + 5; seed++)
		{
			SCOPED_TRACE(static_cast<int>(type) * 1000 + static_cast<int>(seed));

			Rng			rng(seed * 11 + static_cast<uint64_t>(type));
			Stream		stream;
			DeviceMemory memory;
			Side		inner({type}), lo({type}), hi({type});
			const uint64_t distinct = chance(rng, 50) ? 50 : 1 << 14;
			const int	bounds = 1 + pick_int(rng, 3);	/* bits: lo, hi */
			KeyRange	range = {};

			inner.add_random_rows(rng, static_cast<uint32_t>(rng() % 400), distinct, -20, chance(rng, 50) ? 10 : 0);
			if (inner.n > 3 && !is_float(type) && type != Type::Bool)
			{
				const uint64_t least = type == Type::I16 ? 0x8000 : type == Type::I32 ? 0x80000000 : uint64_t{1} << 63;

				inner.keys[0].raw[1] = least;
				inner.keys[0].raw[2] = least - 1;
			}
			lo.add_random_rows(rng, 200, distinct, -20, 10);
			hi.add_random_rows(rng, 200, distinct, -20, 10);
			for (uint32_t i = 0; i < 100 && inner.n > 0; i++)
			{
				lo.keys[0].raw[i] = inner.keys[0].raw[rng() % inner.n];
				hi.keys[0].raw[i] = inner.keys[0].raw[rng() % inner.n];
			}
			if (bounds & 1)
				range.lo = copy_column(lo.keys[0], true, &memory);
			if (bounds & 2)
				range.hi = copy_column(hi.keys[0], true, &memory);
			range.lo_strict = chance(rng, 50);
			range.hi_strict = chance(rng, 50);

			/* Partners are in the order of keys, then rows. */
			std::vector<uint32_t> order;
			Pairs		expected;

			for (uint32_t i = 0; i < inner.n; i++)
				if (!inner.null(i))
					order.push_back(i);
			std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return compare(inner.keys[0], a, inner.keys[0], b) < 0; });
			for (uint32_t o = 0; o < 200; o++)
				for (uint32_t i : order)
				{
					const int	above = compare(inner.keys[0], i, lo.keys[0], o), below = compare(hi.keys[0], o, inner.keys[0], i);

					if ((bounds & 1) && (lo.null(o) || (range.lo_strict ? above <= 0 : above < 0)))
						continue;
					if ((bounds & 2) && (hi.null(o) || (range.hi_strict ? below <= 0 : below < 0)))
						continue;
					expected.emplace_back(o, i);
				}

			const Built built = build(inner, true, &memory, stream);

			EXPECT_TRUE(built.table.form == JoinForm::Sorted || order.empty());
			expect_probe(built, 200, expected, rng, stream, [&](ProbeMode mode, char *at, Probe *probe, ProbeOutcome *outcome)
			{
				return probe_range(built.table, mode, range, 200, at, probe, outcome, stream);
			});
		}
}

/* ---- columns of pairs, bitmaps ---------------------------------------------------------- */

TEST(Pairs, Gather)
{
	for (uint64_t seed = first_seed(); seed < first_seed() + 6; seed++)
	{
		SCOPED_TRACE(seed);

		Rng			rng(seed);
		Stream		stream;
		DeviceMemory memory;
		const uint32_t nouter = 1 + static_cast<uint32_t>(rng() % 3000), ninner = 1 + static_cast<uint32_t>(rng() % 3000);
		const bool	outer_listed = chance(rng, 70), inner_listed = chance(rng, 70), unmatched = inner_listed && chance(rng, 70);
		uint32_t	n = 1 + static_cast<uint32_t>(rng() % 5000);
		std::vector<uint32_t> outer, inner;
		std::vector<Column> from;
		std::vector<GatherColumn> columns;

		if (!outer_listed)
			n = std::min(n, nouter);
		if (!inner_listed)
			n = std::min(n, ninner);
		for (uint32_t i = 0; i < n; i++)
		{
			outer.push_back(outer_listed ? static_cast<uint32_t>(rng() % nouter) : i);
			inner.push_back(!inner_listed ? i : unmatched && chance(rng, 30) ? NO_ROW : static_cast<uint32_t>(rng() % ninner));
		}
		for (int c = seed % 3 == 0 ? 70 : 8; c > 0; c--)
		{
			const GatherBy by = static_cast<GatherBy>(pick_int(rng, 3));
			const bool	nullable = chance(rng, 50);
			Column		column{KEY_TYPES[pick_int(rng, 6)], {}, {}};

			for (uint32_t i = 0; i < (by == GatherBy::Outer ? nouter : ninner); i++)
				column.add(rng() & mask_of(column.type), nullable && chance(rng, 40));
			columns.push_back(GatherColumn{by == GatherBy::Nothing ? RowColumn{nullptr, nullptr, column.type} : copy_column(column, nullable, &memory),
										   empty_column(column.type, nullable || by == GatherBy::Nothing || (by == GatherBy::Inner && unmatched), n, &memory), by});
			from.push_back(column);
		}
		ok(gather_rows(columns.data(), static_cast<uint32_t>(columns.size()), outer_listed ? memory.copy(outer.data(), n) : nullptr,
					   inner_listed ? memory.copy(inner.data(), n) : nullptr, n, stream));
		stream.wait();
		for (size_t c = 0; c < columns.size(); c++)
			for (uint32_t i = 0; i < n; i++)
			{
				const GatherBy by = columns[c].by;
				const uint32_t row = by == GatherBy::Outer ? outer[i] : by == GatherBy::Inner ? inner[i] : NO_ROW;

				ASSERT_EQ(null_at(columns[c].to, i), row == NO_ROW || from[c].null[row]);
				ASSERT_EQ(raw_at(columns[c].to, i), row == NO_ROW ? 0 : from[c].raw[row]);
			}
		/* rows that are appended set bits of their own behind these */
		for (size_t c = 0; c < columns.size(); c++)
			for (uint32_t i = n; i % 32 != 0; i++)
				ASSERT_FALSE(null_at(columns[c].to, i));
	}
}

TEST(Pairs, Mark)
{
	Rng			rng(first_seed());
	Stream		stream;

	for (int percent : {0, 3, 60, 100})
	{
		DeviceMemory memory;
		const uint32_t n = 5000, nrows = 3001;
		const std::vector<uint32_t> live = random_bits(rng, n, percent);
		std::vector<uint32_t> rows, marked = random_bits(rng, nrows, 5), expected = marked;

		for (uint32_t i = 0; i < n; i++)
		{
			rows.push_back(chance(rng, 10) ? NO_ROW : i % 3 == 0 ? static_cast<uint32_t>(rng() % nrows) : i / 2);
			if (rows[i] != NO_ROW && (percent == 100 || bit_of(live, i)))
				expected[rows[i] / 32] |= 1u << rows[i] % 32;
		}

		uint32_t   *to = memory.copy(marked.data(), marked.size());

		ok(mark_rows(percent == 100 ? nullptr : memory.copy(live.data(), live.size()), memory.copy(rows.data(), n), n, to, stream));
		stream.wait();
		EXPECT_EQ(std::vector<uint32_t>(to, to + marked.size()), expected);
	}
}

TEST(Pairs, Bits)
{
	Rng			rng(first_seed());
	Stream		stream;

	for (uint32_t nbits : {1u, 31u, 32u, 33u, 2048u, 2049u, 40007u})
		for (int percent : {0, 1, 50, 100})
			for (bool want : {false, true})
			{
				DeviceMemory memory;
				const std::vector<uint32_t> bits = random_bits(rng, nbits, percent);
				std::vector<uint32_t> expected, outer, inner;
				BitScan		scan;
				uint32_t	total = ~0u;

				for (uint32_t i = 0; i < nbits; i++)
				{
					if (bit_of(bits, i) == want)
						expected.push_back(i);
					outer.push_back(static_cast<uint32_t>(rng()));
					inner.push_back(static_cast<uint32_t>(rng()));
				}
				ok(scan_bits(memory.copy(bits.data(), bits.size()), nbits, want, memory.get(bit_scan_bytes(nbits)), &scan, &total, stream));
				stream.wait();
				ASSERT_EQ(total, expected.size());

				uint32_t   *device_outer = memory.copy(outer.data(), nbits), *device_inner = memory.copy(inner.data(), nbits);
				const uint32_t first = total > 1 ? static_cast<uint32_t>(rng() % total) : 0;

				/* All of them, a part, and what is beyond the last. */
				for (const auto &part : {std::make_pair(0u, total), std::make_pair(0u, nbits), std::make_pair(first, (total - first) / 2),
										 std::make_pair(first, nbits)})
				{
					const uint32_t n = part.first >= total ? 0 : std::min(part.second, total - part.first);
					uint32_t   *rows = room<uint32_t>(n, &memory), *o = room<uint32_t>(n, &memory), *i = room<uint32_t>(n, &memory);
					uint32_t   *one = room<uint32_t>(n, &memory), *go = room<uint32_t>(n, &memory), *gi = room<uint32_t>(n, &memory);

					ok(emit_rows(scan, part.first, part.second, rows, stream));
					ok(emit_pairs(scan, part.first, part.second, device_outer, device_inner, o, i, stream));
					ok(emit_pairs(scan, part.first, part.second, nullptr, device_inner, nullptr, one, stream));
					ok(emit_grid_pairs(scan, part.first, part.second, 1000, 5, 70, go, gi, stream));
					stream.wait();
					for (uint32_t k = 0; k < n; k++)
					{
						const uint32_t bit = expected[part.first + k];

						ASSERT_EQ(rows[k], bit);
						ASSERT_EQ(o[k], outer[bit]);
						ASSERT_EQ(i[k], inner[bit]);
						ASSERT_EQ(one[k], inner[bit]);
						ASSERT_EQ(go[k], 5 + bit % 1000);
						ASSERT_EQ(gi[k], 70 + bit / 1000);
					}
				}
			}
}

}  // namespace
