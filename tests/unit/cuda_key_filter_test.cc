/*
 * cuda_key_filter_test.cc: rows held against the keys of inner rows, on the emulated device, against plain loops: every
 * width that tablets store, keys at the ends of their types, nulls, rows that are dead before; and what is fetched of those that are left. Also compiles for a real device
 * (make cuda-test).
 *
 * GPUVM_TEST_SEED changes where random cases start.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "key_filter.h"
#include "pairs.h"
#include "table_rows.h"

using namespace gpuvm;
using namespace gpuvm::cuda;

namespace {

using Rng = std::mt19937_64;

uint64_t
pick(Rng &rng, uint64_t n)
{
	return rng() % n;
}

bool
chance(Rng &rng, uint64_t percent)
{
	return pick(rng, 100) < percent;
}

class KeyFilterTest : public testing::Test
{
protected:
	void SetUp() override { ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess); }
	void TearDown() override
	{
		cudaStreamDestroy(stream);
		for (void *p : all)
			cudaFree(p);
	}

	/* Memory that both sides see while the device does nothing. */
	template <typename T>
	T		   *get(size_t n)
	{
		T		   *p = nullptr;

#ifdef GPUVM_EMULATED
		EXPECT_EQ(cudaMalloc(&p, n * sizeof(T)), cudaSuccess);
#else
		EXPECT_EQ(cudaMallocManaged(&p, std::max<size_t>(n * sizeof(T), 1)), cudaSuccess);
#endif
		all.push_back(p);
		return p;
	}
	template <typename T>
	T		   *copy(const std::vector<T> &from)
	{
		T		   *p = get<T>(from.size());

		if (!from.empty())
			memcpy(p, from.data(), from.size() * sizeof(T));
		return p;
	}

	static uint64_t first_seed()
	{
		const char *seed = getenv("GPUVM_TEST_SEED");

		return seed != nullptr ? strtoull(seed, nullptr, 10) : 1;
	}

	void		run_one(uint64_t seed);

	cudaStream_t stream = nullptr;
	std::vector<void *> all;
};

int64_t
least_of(Type type)
{
	return type == Type::Bool ? 0 : type == Type::I16 ? INT16_MIN : type == Type::I32 ? INT32_MIN : INT64_MIN;
}

int64_t
most_of(Type type)
{
	return type == Type::Bool ? 1 : type == Type::I16 ? INT16_MAX : type == Type::I32 ? INT32_MAX : INT64_MAX;
}

bool
bit(const uint32_t *words, uint64_t i)
{
	return words != nullptr && (words[i / 32] >> i % 32 & 1) != 0;
}

/* A chunk, and what its rows are. */
struct Stored
{
	DeviceChunk chunk;
	std::vector<int64_t> values;
};

struct Side
{
	FilterKey	key;
	bool has(int64_t value) const
	{
		const __int128 at = static_cast<__int128>(value) - key.side.lo;

		return at >= 0 && at < static_cast<__int128>(key.side.n) && (key.side.bits == nullptr || bit(key.side.bits, static_cast<uint64_t>(at)));
	}
};

}  // namespace

void
KeyFilterTest::run_one(uint64_t seed)
{
	static const Type types[] = {Type::Bool, Type::I16, Type::I32, Type::I64};
	Rng			rng(seed);
	const uint32_t nkeys = static_cast<uint32_t>(pick(rng, 5)), ncolumns = nkeys + 1 + static_cast<uint32_t>(pick(rng, 2));
	const uint32_t ntablets = 1 + static_cast<uint32_t>(pick(rng, 3));
	std::vector<Side> sides(nkeys);
	std::vector<DeviceTablet> tablets;
	std::vector<DeviceChunk> chunks;
	std::vector<DevicePad> pads;
	std::vector<std::vector<Stored>> stored(ntablets);
	KeyFilter	filter = {};

	filter.nkeys = nkeys;
	filter.ncolumns = ncolumns;
	filter.dead_column = ncolumns - 1;
	for (uint32_t k = 0; k < nkeys; k++)
	{
		FilterKey  &key = sides[k].key;
		const Type	type = types[pick(rng, 4)];
		const __int128 most = most_of(type), least = least_of(type);

		key.type = type;
		key.column = k;
		/* the side's type may be wider */
		key.side.n = chance(rng, 5) ? 0 : 1 + (chance(rng, 50) ? pick(rng, 300) : chance(rng, 80) ? pick(rng, 100000) : pick(rng, 1 << 20));
		if (chance(rng, 20))
			key.side.lo = static_cast<int64_t>(std::max<__int128>(least, most - static_cast<__int128>(key.side.n) + 1));
		else if (chance(rng, 25))
			key.side.lo = static_cast<int64_t>(least);
		else
			key.side.lo = static_cast<int64_t>(least + static_cast<__int128>(static_cast<uint64_t>(rng()) % static_cast<uint64_t>(most - least + 1 - (type == Type::I64))));
		if (type != Type::I64 && chance(rng, 20))
			key.side.lo = static_cast<int64_t>(static_cast<uint64_t>(key.side.lo) - pick(rng, 5));
		if (key.side.n != 0 && key.side.lo > INT64_MAX - static_cast<int64_t>(key.side.n) + 1)
			key.side.lo = INT64_MAX - static_cast<int64_t>(key.side.n) + 1;
		if (chance(rng, 75) && key.side.n != 0)
		{
			std::vector<uint32_t> bits(bitmap_bytes(key.side.n) / 4);
			const uint64_t percent = pick(rng, 101);

			for (uint64_t i = 0; i < bits.size() * 32; i++)
				bits[i / 32] |= static_cast<uint32_t>(chance(rng, percent)) << i % 32;
			key.side.bits = copy(bits);
		}
		filter.key[k] = key;
	}
	for (uint32_t t = 0; t < ntablets; t++)
	{
		const uint32_t npads = 1 + static_cast<uint32_t>(pick(rng, 3)), padded = npads * TABLET_PAD_ROWS;
		const uint32_t nrows = padded - static_cast<uint32_t>(pick(rng, TABLET_PAD_ROWS));
		const bool	carried = chance(rng, 30);	/* no more than whole stages */
		const uint32_t there = carried ? (nrows + 127) / 128 * 128 : padded;
		std::vector<uint32_t> dead(padded / 32);
		const uint64_t percent = chance(rng, 50) ? 0 : pick(rng, 101);

		for (uint32_t i = 0; i < padded; i++)
			dead[i / 32] |= static_cast<uint32_t>(i >= nrows || chance(rng, percent)) << i % 32;
		tablets.push_back(DeviceTablet{nrows, 1, 0});
		for (uint32_t p = 0; p < npads; p++)
			if (chance(rng, 90))
				pads.push_back(DevicePad{t, p * TABLET_PAD_ROWS});
		for (uint32_t k = 0; k + 1 < ncolumns; k++)
		{
			const Type	type = k < nkeys ? sides[k].key.type : Type::I32;
			const uint32_t natural = static_cast<uint32_t>(type_natural_width(type));
			const uint32_t widths[] = {0, 1, 2, 4, 8};
			Stored		s = {};
			std::vector<char> data;

			do
				s.chunk.width = widths[pick(rng, 5)];
			while (s.chunk.width > natural);
			if (s.chunk.width < natural)
			{
				/* from somewhere below the side's keys on, as far as the type goes */
				const __int128 codes = s.chunk.width == 0 ? 1 : __int128(1) << 8 * s.chunk.width;
				__int128	base = k < nkeys ? sides[k].key.side.lo : 0;

				base += static_cast<__int128>(pick(rng, 400)) - 200 - static_cast<__int128>(pick(rng, 2) ? pick(rng, static_cast<uint64_t>(codes)) : 0);
				base = std::min<__int128>(std::max<__int128>(base, least_of(type)), most_of(type) - codes + 1);
				s.chunk.base = static_cast<int64_t>(base);
			}
			data.resize(static_cast<size_t>(there) * s.chunk.width);
			for (uint32_t i = 0; i < there; i++)
			{
				uint64_t	code = rng();

				if (s.chunk.width == natural)
				{
					if (k < nkeys && sides[k].key.side.n != 0 && chance(rng, 70))
						code = static_cast<uint64_t>(sides[k].key.side.lo) + pick(rng, sides[k].key.side.n + 4) - 2;
					if (type == Type::Bool)
						code &= 1;
				}
				else if (chance(rng, 50) && k < nkeys)
					code = pick(rng, sides[k].key.side.n + 300);
				code &= s.chunk.width == 0 ? 0 : ~uint64_t{0} >> (64 - 8 * s.chunk.width);
				if (s.chunk.width != 0)
					memcpy(data.data() + static_cast<size_t>(i) * s.chunk.width, &code, s.chunk.width);
				s.values.push_back(s.chunk.width < natural || type == Type::Bool ? static_cast<int64_t>(static_cast<uint64_t>(s.chunk.base) + code)
								   : type == Type::I16 ? static_cast<int16_t>(code) : type == Type::I32 ? static_cast<int32_t>(code)
								   : static_cast<int64_t>(code));
			}
			s.chunk.data = s.chunk.width != 0 ? reinterpret_cast<uint64_t>(copy(data)) : 0;
			if (chance(rng, 40))
			{
				std::vector<uint32_t> nulls(carried ? (there / 8 + 127) / 128 * 32 : there / 32);

				for (uint32_t i = 0; i < there; i++)
					nulls[i / 32] |= static_cast<uint32_t>(chance(rng, 20)) << i % 32;
				s.chunk.nulls = reinterpret_cast<uint64_t>(copy(nulls));
			}
			chunks.push_back(s.chunk);
			stored[t].push_back(std::move(s));
		}
		chunks.push_back(DeviceChunk{0, reinterpret_cast<uint64_t>(copy(dead)), 0, 0, 0});
	}
	if (pads.empty())
		pads.push_back(DevicePad{0, 0});

	const DeviceTable table = {copy(tablets), copy(chunks), copy(pads), static_cast<uint32_t>(pads.size()), 0};
	FilterPads	some = {};
	uint32_t	expected[FILTER_PARTS] = {}, *words = get<uint32_t>(FILTER_WORDS), *left = get<uint32_t>(FILTER_PARTS);
	std::vector<uint32_t> lives;	/* as they are listed */
	std::vector<std::vector<uint32_t>> dead_after;

	some.first_pad = static_cast<uint32_t>(pick(rng, pads.size()));
	some.step = 1 + static_cast<uint32_t>(pick(rng, 2));
	some.npads = (static_cast<uint32_t>(pads.size()) - some.first_pad + some.step - 1) / some.step;
	some.part = std::max(1u + static_cast<uint32_t>(pick(rng, 3)), (some.npads + FILTER_PARTS - 1) / FILTER_PARTS);
	some.kill = chance(rng, 75);
	for (uint32_t t = 0; t < ntablets; t++)
	{
		const uint32_t *dead = reinterpret_cast<const uint32_t *>(chunks[t * ncolumns + filter.dead_column].nulls);

		dead_after.emplace_back(dead, dead + (tablets[t].nrows + TABLET_PAD_ROWS - 1) / TABLET_PAD_ROWS * TABLET_PAD_ROWS / 32);
	}
	for (uint32_t p = 0; p < some.npads; p++)
	{
		const DevicePad &pad = pads[some.first_pad + p * some.step];

		for (uint32_t row = pad.row; row < pad.row + TABLET_PAD_ROWS; row++)
		{
			bool		alive = !bit(dead_after[pad.tablet].data(), row);

			for (uint32_t k = 0; k < nkeys && alive; k++)
			{
				const Stored &s = stored[pad.tablet][k];

				alive = !bit(reinterpret_cast<const uint32_t *>(s.chunk.nulls), row) && sides[k].has(s.values[row]);
			}
			expected[p / some.part] += alive;
			if (alive)
				lives.push_back(p * TABLET_PAD_ROWS + row - pad.row);
			else if (some.kill)
				dead_after[pad.tablet][row / 32] |= 1u << row % 32;
		}
	}
#ifdef GPUVM_EMULATED
	gpuvm_emulated::set_seed(seed);
#endif
	some.most = static_cast<uint32_t>(chance(rng, 20) ? pick(rng, 300) : pads.size() * TABLET_PAD_ROWS);
	some.rows = chance(rng, 80) ? get<uint32_t>(some.most + 1) : nullptr;
	if (some.rows != nullptr)
		memset(some.rows, 0xff, (some.most + 1) * sizeof(uint32_t));
	ASSERT_EQ(filter_rows(filter, table, some, words, left, stream), cudaSuccess);
	ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
	if (some.rows != nullptr)
	{
		std::vector<uint32_t> listed(some.rows, some.rows + std::min<uint64_t>(some.most, lives.size()));

		EXPECT_EQ(some.rows[listed.size()], ~0u) << "seed " << seed;
		std::sort(listed.begin(), listed.end());
		ASSERT_TRUE(std::includes(lives.begin(), lives.end(), listed.begin(), listed.end())) << "seed " << seed;
		ASSERT_EQ(std::adjacent_find(listed.begin(), listed.end()), listed.end()) << "seed " << seed;
	}
	for (uint32_t i = 0; i < FILTER_PARTS; i++)
		ASSERT_EQ(left[i], expected[i]) << "part " << i << ", seed " << seed;
	for (uint32_t t = 0; t < ntablets; t++)
		ASSERT_EQ(memcmp(reinterpret_cast<const char *>(chunks[t * ncolumns + filter.dead_column].nulls), dead_after[t].data(),
						 dead_after[t].size() * 4), 0) << "dead bits of tablet " << t << ", seed " << seed;
}

/* Columns of every width, with and without nulls, as they are and, integers, wider, of rows in any order and of every number. */
TEST_F(KeyFilterTest, Fetched)
{
	static const Type types[] = {Type::Bool, Type::I16, Type::I32, Type::I64, Type::F32, Type::F64};
	Rng			rng(first_seed());

	for (int round = 0; round < 40; round++)
	{
		const uint32_t ncolumns = 1 + static_cast<uint32_t>(pick(rng, 5)), ntablets = 1 + static_cast<uint32_t>(pick(rng, 3)), npads = 2;
		const uint32_t nrows = static_cast<uint32_t>(pick(rng, 3) == 0 ? pick(rng, 40) : pick(rng, 6000)), first_pad = static_cast<uint32_t>(pick(rng, 2));
		std::vector<DeviceChunk> chunks;
		std::vector<DevicePad> pads;
		std::vector<TableColumn> columns;
		std::vector<Type> to_types;
		std::vector<uint8_t> nullable(1, static_cast<uint8_t>(rng()));
		std::vector<std::vector<uint64_t>> values;	/* of a chunk */
		std::vector<std::vector<uint32_t>> nulls;
		std::vector<uint32_t> rows;

		for (uint32_t c = 0; c < ncolumns; c++)
		{
			columns.push_back(TableColumn{static_cast<uint32_t>(pick(rng, ncolumns)), Type::None});
			to_types.push_back(Type::None);
		}

		std::vector<Type> column_types;

		for (uint32_t c = 0; c < ncolumns; c++)
			column_types.push_back(types[pick(rng, 6)]);
		for (uint32_t c = 0; c < ncolumns; c++)
		{
			const Type	type = column_types[columns[c].column];

			columns[c].type = to_types[c] = type;
			if ((type == Type::I16 || type == Type::I32) && chance(rng, 50))
				to_types[c] = type == Type::I16 && chance(rng, 50) ? Type::I32 : Type::I64;
		}
		for (uint32_t t = 0; t < ntablets; t++)
		{
			for (uint32_t p = 0; p < npads; p++)
				pads.push_back(DevicePad{t, p * TABLET_PAD_ROWS});
			for (uint32_t c = 0; c < ncolumns; c++)
			{
				const uint32_t widths[] = {0, 1, 2, 4, 8}, natural = static_cast<uint32_t>(type_natural_width(column_types[c]));
				const bool	whole = type_is_float(column_types[c]);
				DeviceChunk chunk = {};
				std::vector<char> data;

				do
					chunk.width = widths[pick(rng, 5)];
				while (whole ? chunk.width != natural : chunk.width > natural);
				chunk.base = chunk.width == natural ? 0 : static_cast<int64_t>(pick(rng, 100)) - (column_types[c] == Type::Bool ? 0 : 50);
				values.emplace_back();
				nulls.emplace_back(npads * TABLET_PAD_ROWS / 32);
				for (uint32_t i = 0; i < npads * TABLET_PAD_ROWS; i++)
				{
					const uint64_t code = chunk.width == 0 ? 0 : rng() >> (64 - 8 * chunk.width);
					const int64_t it = chunk.width == natural && column_types[c] == Type::I16 ? static_cast<int16_t>(code)
						: chunk.width == natural && column_types[c] == Type::I32 ? static_cast<int32_t>(code) : static_cast<int64_t>(code);

					data.insert(data.end(), reinterpret_cast<const char *>(&code), reinterpret_cast<const char *>(&code) + chunk.width);
					values.back().push_back(static_cast<uint64_t>(it + chunk.base));
					nulls.back()[i / 32] |= static_cast<uint32_t>(chance(rng, 30)) << i % 32;
				}
				chunk.data = reinterpret_cast<uint64_t>(copy(data));
				if (chance(rng, 50))
					chunk.nulls = reinterpret_cast<uint64_t>(copy(nulls.back()));
				else
					nulls.back().assign(nulls.back().size(), 0);
				chunks.push_back(chunk);
			}
		}
		for (uint32_t i = 0; i < nrows; i++)
			rows.push_back(static_cast<uint32_t>(pick(rng, (pads.size() - first_pad) * TABLET_PAD_ROWS)));

		const RowSet to = row_set(to_types.data(), nullable.data(), ncolumns, TABLET_PAD_ROWS * 2,
								  get<char>(row_set_bytes(to_types.data(), nullable.data(), ncolumns, TABLET_PAD_ROWS * 2)));
		const DeviceTable table = {nullptr, copy(chunks), copy(pads), static_cast<uint32_t>(pads.size()), 0};

		ASSERT_EQ(fetch_rows(table, ncolumns, first_pad, columns.data(), copy(rows), nrows, to, stream), cudaSuccess);
		ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
		for (uint32_t i = 0; i < nrows; i++)
			for (uint32_t c = 0; c < ncolumns; c++)
			{
				const DevicePad pad = pads[first_pad + rows[i] / TABLET_PAD_ROWS];
				const size_t chunk = pad.tablet * ncolumns + columns[c].column;
				const uint32_t row = pad.row + rows[i] % TABLET_PAD_ROWS, width = static_cast<uint32_t>(type_natural_width(to_types[c]));

				ASSERT_EQ(memcmp(to.column[c].values + static_cast<size_t>(i) * width, &values[chunk][row], width), 0) << "round " << round;
				ASSERT_EQ(bit(to.column[c].nulls, i), to.column[c].nulls != nullptr && bit(nulls[chunk].data(), row)) << "round " << round;
			}
	}
}

TEST_F(KeyFilterTest, Rows)
{
	for (uint64_t seed = first_seed(); seed < first_seed() + 100 && !HasFatalFailure(); seed++)
		run_one(seed);
}

TEST_F(KeyFilterTest, Bits)
{
	Rng			rng(first_seed());

	for (Type type : {Type::Bool, Type::I16, Type::I32, Type::I64})
		for (uint32_t nrows : {0u, 1u, 1000u, 5000u})
		{
			const uint32_t width = static_cast<uint32_t>(type_natural_width(type));
			const uint64_t n = type == Type::Bool ? 2 : 1 + pick(rng, 20000);
			const int64_t lo = chance(rng, 50) ? least_of(type) : most_of(type) - static_cast<int64_t>(n) + 1;
			std::vector<char> values(nrows * width);
			std::vector<uint32_t> nulls((nrows + 31) / 32), expected(bitmap_bytes(n) / 4);
			const bool	has_nulls = chance(rng, 50);

			for (uint32_t i = 0; i < nrows; i++)
			{
				const uint64_t at = pick(rng, n), value = static_cast<uint64_t>(lo) + at;
				const bool	null = has_nulls && chance(rng, 50);

				memcpy(values.data() + i * width, &value, width);
				nulls[i / 32] |= static_cast<uint32_t>(null) << i % 32;
				if (!null)
					expected[at / 32] |= 1u << at % 32;
			}

			uint32_t   *bits = get<uint32_t>(expected.size());

			ASSERT_EQ(fill_key_bits(RowColumn{copy(values), has_nulls ? copy(nulls) : nullptr, type}, nrows, lo, n, bits, stream), cudaSuccess);
			ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
			ASSERT_EQ(memcmp(bits, expected.data(), expected.size() * 4), 0);
		}
}
