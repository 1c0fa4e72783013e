/* The tablet builder: what it writes reads back as what was staged, and check_tablet believes nothing else. */
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tablet/build.h"

using namespace gpuvm;

namespace {

/* Rows of one column, with whatever the test wants under its nulls. */
struct Column
{
	Type		type;
	std::vector<char> values;
	std::vector<uint64_t> nulls;
};

template <typename T>
Column
make_column(Type type, const std::vector<T> &values, const std::vector<int> &nulls = {})
{
	Column		c{type, std::vector<char>(values.size() * sizeof(T)), {}};

	memcpy(c.values.data(), values.data(), c.values.size());
	if (!nulls.empty())
	{
		c.nulls.assign((values.size() + 63) / 64, 0);
		for (int row : nulls)
			c.nulls[row / 64] |= 1ull << (row % 64);
	}
	return c;
}

/* A built tablet in memory of exactly its size, so that sanitizers see every overrun. */
struct Built
{
	uint64_t	size;
	char	   *memory;

	Built(uint32_t nrows, const std::vector<Column> &columns, uint32_t nblocks = 1,
		  std::vector<uint32_t> lps_start = {}, std::vector<uint16_t> lps = {})
	{
		std::vector<StagedColumn> staged;
		std::vector<uint32_t> rows;
		std::vector<uint64_t> lsns;
		std::vector<ColumnChunk> chunks(columns.size());
		TabletHeader header;
		StagedTablet tablet = {};

		for (size_t i = 0; i < columns.size(); i++)
			staged.push_back({columns[i].type, static_cast<int16_t>(i + 1), columns[i].values.data(),
							  columns[i].nulls.empty() ? nullptr : columns[i].nulls.data()});
		for (uint32_t b = 0; b <= nblocks; b++)
			rows.push_back(static_cast<uint32_t>(uint64_t{nrows} * b / nblocks));
		for (uint32_t b = 0; b < nblocks; b++)
			lsns.push_back(1000 + b);
		if (lps_start.empty())
			lps_start.assign(nblocks, LPS_DENSE);
		tablet.nrows = nrows;
		tablet.ncols = static_cast<uint32_t>(columns.size());
		tablet.columns = staged.data();
		tablet.first_block = 7;
		tablet.nblocks = nblocks;
		tablet.block_rows = rows.data();
		tablet.block_lsns = lsns.data();
		tablet.block_lps = lps_start.data();
		tablet.lps = lps.data();
		tablet.nlps = static_cast<uint32_t>(lps.size());

		size = plan_tablet(tablet, &header, chunks.data());
		memory = static_cast<char *>(aligned_alloc(64, size));
		memset(memory, 0xa5, size);
		write_tablet(tablet, header, chunks.data(), 7, memory);
	}
	~Built() { free(memory); }
	Built(const Built &) = delete;

	TabletHeader *header() const { return reinterpret_cast<TabletHeader *>(memory); }
	ColumnChunk &chunk(int i = 0) const { return tablet_chunks(header())[i]; }
	bool is_null(int col, uint32_t row) const
	{
		return chunk(col).nulls != 0 &&
			(tablet_at<uint64_t>(header(), chunk(col).nulls)[row / 64] >> (row % 64) & 1);
	}
	/* The integer that a reader sees, nulls and padding included. */
	int64_t integer(int col, uint32_t row) const
	{
		const ColumnChunk &c = chunk(col);
		bool		code = c.type == Type::Bool || c.width < type_natural_width(c.type);

		switch (c.width)
		{
			case 0:
				return c.base;
			case 1:
				return c.base + tablet_at<uint8_t>(header(), c.data)[row];
			case 2:
				return code ? c.base + tablet_at<uint16_t>(header(), c.data)[row] : tablet_at<int16_t>(header(), c.data)[row];
			case 4:
				return code ? c.base + tablet_at<uint32_t>(header(), c.data)[row] : tablet_at<int32_t>(header(), c.data)[row];
			default:
				return tablet_at<int64_t>(header(), c.data)[row];
		}
	}
	uint64_t bits(int col, uint32_t row) const
	{
		const ColumnChunk &c = chunk(col);

		return c.width == 0 ? static_cast<uint64_t>(c.base)
			: c.width == 4 ? tablet_at<uint32_t>(header(), c.data)[row]
			: tablet_at<uint64_t>(header(), c.data)[row];
	}
};

double
as_double(int64_t bits)
{
	double		d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}

template <typename T>
void
expect_integers(Type type, const std::vector<T> &values, int width, const std::vector<int> &nulls = {})
{
	Built		t(values.size(), {make_column(type, values, nulls)});
	int64_t		lo = INT64_MAX,
				hi = INT64_MIN;

	ASSERT_EQ(check_tablet(t.header(), t.size), nullptr);
	EXPECT_EQ(t.chunk().width, width);
	for (uint32_t row = 0; row < values.size(); row++)
	{
		bool		null = std::find(nulls.begin(), nulls.end(), static_cast<int>(row)) != nulls.end();

		ASSERT_EQ(t.is_null(0, row), null) << row;
		if (null)
			continue;
		ASSERT_EQ(t.integer(0, row), static_cast<int64_t>(values[row])) << row;
		lo = std::min<int64_t>(lo, values[row]);
		hi = std::max<int64_t>(hi, values[row]);
	}
	EXPECT_EQ(t.chunk().min, lo);
	EXPECT_EQ(t.chunk().max, hi);
	EXPECT_EQ(t.chunk().null_count, nulls.size());
	for (int row : nulls)
	{
		EXPECT_GE(t.integer(0, row), lo);
		EXPECT_LE(t.integer(0, row), hi);
	}
	if (t.chunk().width > 0)
	{
		const char *data = tablet_at<char>(t.header(), t.chunk().data);

		for (uint64_t i = values.size() * t.chunk().width; i < t.chunk().data_bytes; i++)
			ASSERT_EQ(data[i], 0) << "padding byte " << i;
	}
}

template <typename T>
std::vector<T>
spread(size_t n, int64_t lo, int64_t hi)
{
	std::vector<T> v(n);
	std::mt19937_64 random(n);
	uint64_t	range = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo);

	for (T &x : v)
		x = static_cast<T>(static_cast<uint64_t>(lo) + (range == UINT64_MAX ? random() : random() % (range + 1)));
	v[n / 2] = static_cast<T>(lo);
	v[n / 3] = static_cast<T>(hi);
	return v;
}

}  // namespace

TEST(TabletBuild, TabletHasItsSerial)
{
	Built		t(3, {make_column(Type::I64, std::vector<int64_t>{1, 2, 3})});

	EXPECT_EQ(t.header()->serial, 7u);
	EXPECT_EQ(check_tablet(t.header(), t.size), nullptr);
}

TEST(TabletBuild, NarrowsIntegersByTheirRange)
{
	const std::vector<int> nulls = {0, 1, 63, 64, 130, 4097, 4999};

	for (const std::vector<int> &null_rows : {std::vector<int>(), nulls})
	{
		expect_integers<int16_t>(Type::I16, spread<int16_t>(5000, -32768, -32768 + 255), 1, null_rows);
		expect_integers<int16_t>(Type::I16, spread<int16_t>(5000, 1000, 1256), 2, null_rows);
		expect_integers<int16_t>(Type::I16, spread<int16_t>(5000, -32768, 32767), 2, null_rows);
		expect_integers<int32_t>(Type::I32, spread<int32_t>(5000, INT32_MAX - 255, INT32_MAX), 1, null_rows);
		expect_integers<int32_t>(Type::I32, spread<int32_t>(5000, -40000, -40000 + 256), 2, null_rows);
		expect_integers<int32_t>(Type::I32, spread<int32_t>(5000, -40000, -40000 + 65535), 2, null_rows);
		expect_integers<int32_t>(Type::I32, spread<int32_t>(5000, 5, 5 + 65536), 4, null_rows);
		expect_integers<int32_t>(Type::I32, spread<int32_t>(5000, INT32_MIN, INT32_MAX), 4, null_rows);
		expect_integers<int64_t>(Type::I64, spread<int64_t>(5000, INT64_MIN, INT64_MIN + 255), 1, null_rows);
		expect_integers<int64_t>(Type::I64, spread<int64_t>(5000, INT64_MAX - 65535, INT64_MAX), 2, null_rows);
		expect_integers<int64_t>(Type::I64, spread<int64_t>(5000, -7, 0xffffffffLL - 7), 4, null_rows);
		expect_integers<int64_t>(Type::I64, spread<int64_t>(5000, 0, 0x100000000LL), 8, null_rows);
		expect_integers<int64_t>(Type::I64, spread<int64_t>(5000, INT64_MIN, INT64_MAX), 8, null_rows);
		expect_integers<uint8_t>(Type::Bool, spread<uint8_t>(5000, 0, 1), 1, null_rows);
	}
}

TEST(TabletBuild, IgnoresWhatLiesUnderNulls)
{
	std::vector<int32_t> values(200, 17);

	values[3] = INT32_MIN;
	values[199] = INT32_MAX;
	expect_integers<int32_t>(Type::I32, values, 0, {3, 199});
	values[100] = 18;
	expect_integers<int32_t>(Type::I32, values, 1, {3, 199});
}

TEST(TabletBuild, ConstantsNeedNoArray)
{
	expect_integers<int16_t>(Type::I16, std::vector<int16_t>(1, -5), 0);
	expect_integers<int64_t>(Type::I64, std::vector<int64_t>(4096, INT64_MIN), 0);
	expect_integers<uint8_t>(Type::Bool, std::vector<uint8_t>(100, 1), 0);

	for (double value : {0.0, -0.0, 1.5, std::numeric_limits<double>::quiet_NaN(), -HUGE_VAL})
	{
		Built		t(100, {make_column(Type::F64, std::vector<double>(100, value)),
							make_column(Type::F32, std::vector<float>(100, static_cast<float>(value)))});
		float		single = static_cast<float>(value);

		ASSERT_EQ(check_tablet(t.header(), t.size), nullptr);
		EXPECT_EQ(t.chunk(0).width, 0);
		EXPECT_EQ(memcmp(&t.chunk(0).base, &value, 8), 0);
		EXPECT_EQ(t.chunk(1).width, 0);
		EXPECT_EQ(memcmp(&t.chunk(1).base, &single, 4), 0);
		EXPECT_EQ(t.chunk(1).base >> 32, 0);
	}
	Built		zeros(2, {make_column(Type::F64, std::vector<double>{0.0, -0.0})});

	EXPECT_EQ(zeros.chunk().width, 8) << "0 and -0 differ in their bits";
}

TEST(TabletBuild, AllNull)
{
	std::vector<int> all;

	for (int i = 0; i < 130; i++)
		all.push_back(i);
	Built		t(130, {make_column(Type::I32, std::vector<int32_t>(130, 99), all),
						make_column(Type::F64, std::vector<double>(130, 99), all)});

	ASSERT_EQ(check_tablet(t.header(), t.size), nullptr);
	for (int col = 0; col < 2; col++)
	{
		EXPECT_EQ(t.chunk(col).flags, CHUNK_HAS_NULLS | CHUNK_ALL_NULL);
		EXPECT_EQ(t.chunk(col).width, 0);
		EXPECT_EQ(t.chunk(col).base, 0);
		EXPECT_EQ(t.chunk(col).null_count, 130u);
		EXPECT_TRUE(t.is_null(col, 0));
		EXPECT_TRUE(t.is_null(col, 129));
		EXPECT_FALSE(t.is_null(col, 130)) << "padding is not null";
	}
	EXPECT_EQ(t.chunk(0).min, 0);
	EXPECT_EQ(t.chunk(0).max, 0);
	EXPECT_GT(as_double(t.chunk(1).min), as_double(t.chunk(1).max));
	EXPECT_GT(t.chunk(1).exp_lo, t.chunk(1).exp_hi);
}

TEST(TabletBuild, NullBitmapOnlyWhereNeeded)
{
	Column		no_nulls = make_column(Type::I32, spread<int32_t>(100, 0, 9));

	no_nulls.nulls.assign(2, 0);
	Built		t(100, {no_nulls});

	ASSERT_EQ(check_tablet(t.header(), t.size), nullptr);
	EXPECT_EQ(t.chunk().nulls, 0u);
	EXPECT_EQ(t.chunk().flags, 0);
}

template <typename F>
static void
expect_floats(Type type, const std::vector<F> &values, int flags, double min, double max, int exp_hi, int exp_lo)
{
	Built		t(values.size(), {make_column(type, values)});
	const ColumnChunk &c = t.chunk();

	ASSERT_EQ(check_tablet(t.header(), t.size), nullptr);
	EXPECT_EQ(c.flags, flags);
	EXPECT_EQ(as_double(c.min), min);
	EXPECT_EQ(as_double(c.max), max);
	EXPECT_EQ(c.exp_hi, exp_hi);
	EXPECT_EQ(c.exp_lo, exp_lo);
	for (uint32_t row = 0; row < values.size(); row++)
	{
		uint64_t	bits = t.bits(0, row);

		ASSERT_EQ(memcmp(&bits, &values[row], sizeof(F)), 0) << row;
	}
}

TEST(TabletBuild, FloatStatistics)
{
	const double nan = std::numeric_limits<double>::quiet_NaN();
	const double huge = std::numeric_limits<double>::max();
	const double tiny = std::numeric_limits<double>::denorm_min();
	const float hugef = std::numeric_limits<float>::max();
	const float tinyf = std::numeric_limits<float>::denorm_min();

	expect_floats<double>(Type::F64, {1, 2, 3}, 0, 1, 3, 2, 0);
	expect_floats<double>(Type::F64, {-6, 0.25, 4}, 0, -6, 4, 3, -2);
	expect_floats<double>(Type::F64, {8, 12, 16}, 0, 8, 16, 5, 2);
	expect_floats<double>(Type::F64, {0.0, -0.0, 5}, CHUNK_HAS_NEG_ZERO, 0, 5, 3, 0);
	expect_floats<double>(Type::F64, {nan, 1, -INFINITY}, CHUNK_HAS_NAN | CHUNK_HAS_INF, 1, 1, 1, 0);
	expect_floats<double>(Type::F64, {nan, INFINITY}, CHUNK_HAS_NAN | CHUNK_HAS_INF, INFINITY, -INFINITY, INT16_MIN, INT16_MAX);
	expect_floats<double>(Type::F64, {huge, tiny, -huge}, 0, -huge, huge, 1024, -1074);
	expect_floats<double>(Type::F64, {tiny * 6, tiny * 4}, 0, tiny * 4, tiny * 6, -1071, -1073);
	expect_floats<float>(Type::F32, {hugef, tinyf, -1}, 0, -1, hugef, 128, -149);
	expect_floats<float>(Type::F32, {-0.0f, 1.75f, -INFINITY, static_cast<float>(nan)},
						 CHUNK_HAS_NEG_ZERO | CHUNK_HAS_INF | CHUNK_HAS_NAN, 0, 1.75, 1, -2);
}

/* Exponent bounds against the definition, on random bits of every magnitude. */
TEST(TabletBuild, FloatExponentsAreTight)
{
	std::mt19937_64 random(42);

	for (int round = 0; round < 200; round++)
	{
		std::vector<double> values(1 + random() % 300);
		int			hi = INT16_MIN,
					lo = INT16_MAX;

		for (double &v : values)
		{
			int			exponent;
			double		fraction;

			v = std::ldexp(static_cast<double>(static_cast<int64_t>(random()) >> (random() % 64)), static_cast<int>(random() % 200) - 100);
			if (v == 0)
				continue;
			fraction = std::frexp(std::fabs(v), &exponent);
			hi = std::max(hi, exponent);
			lo = std::min(lo, exponent - 53 + __builtin_ctzll(static_cast<uint64_t>(std::ldexp(fraction, 53))));
		}
		Built		t(values.size(), {make_column(Type::F64, values)});

		ASSERT_EQ(t.chunk().exp_hi, hi);
		ASSERT_EQ(t.chunk().exp_lo, lo);
	}
}

TEST(TabletBuild, BlockMapAndLinePointers)
{
	Built		t(10, {make_column(Type::I32, spread<int32_t>(10, 0, 500))}, 2, {LPS_DENSE, 0}, {2, 3, 5, 8, 13});
	const TabletHeader *h = t.header();

	ASSERT_EQ(check_tablet(h, t.size), nullptr);
	EXPECT_EQ(h->first_block, 7u);
	EXPECT_EQ(h->nblocks, 2u);
	EXPECT_EQ(tablet_at<uint32_t>(h, h->block_rows)[1], 5u);
	EXPECT_EQ(tablet_at<uint32_t>(h, h->block_rows)[2], 10u);
	EXPECT_EQ(tablet_at<uint64_t>(h, h->block_lsns)[1], 1001u);
	EXPECT_EQ(tablet_at<uint32_t>(h, h->block_lps)[0], LPS_DENSE);
	EXPECT_EQ(tablet_at<uint16_t>(h, h->lps)[4], 13);
}

TEST(TabletBuild, EveryArrayIsAligned)
{
	for (uint32_t nrows : {1u, 63u, 64u, 4095u, 4096u, 4097u, 9999u})
	{
		Built		t(nrows, {make_column(Type::I32, spread<int32_t>(nrows, 0, 70000), {0}),
							  make_column(Type::I16, spread<int16_t>(nrows, 0, 9)),
							  make_column(Type::F32, std::vector<float>(nrows, 2), {0})}, 3);

		ASSERT_EQ(check_tablet(t.header(), t.size), nullptr) << nrows;
		EXPECT_EQ(t.header()->padded_rows % TABLET_PAD_ROWS, 0u);
		for (int col = 0; col < 3; col++)
		{
			EXPECT_EQ(t.chunk(col).data % 64, 0u);
			EXPECT_EQ(t.chunk(col).nulls % 64, 0u);
		}
	}
}

TEST(TabletBuild, Summary)
{
	std::vector<int> all = {0, 1};
	Built		a(2, {make_column(Type::I32, std::vector<int32_t>{5, 900}), make_column(Type::F64, std::vector<double>{-1, NAN})});
	Built		b(2, {make_column(Type::I32, std::vector<int32_t>{0, 0}, all), make_column(Type::F64, std::vector<double>{0, 0}, all)});
	Built		c(2, {make_column(Type::I32, std::vector<int32_t>{-70000, 4}, {1}), make_column(Type::F64, std::vector<double>{0.5, -0.0})});
	ColumnSummary s[2];

	for (int col = 0; col < 2; col++)
	{
		summarize_chunk(&s[col], a.chunk(col), true);
		summarize_chunk(&s[col], b.chunk(col), false);
		summarize_chunk(&s[col], c.chunk(col), false);
	}
	EXPECT_EQ(s[0].type, Type::I32);
	EXPECT_EQ(s[0].attnum, 1);
	EXPECT_EQ(s[0].min, -70000);
	EXPECT_EQ(s[0].max, 900);
	EXPECT_EQ(s[0].max_width, 2);
	EXPECT_EQ(s[0].null_count, 3u);
	EXPECT_EQ(s[0].flags, CHUNK_HAS_NULLS) << "not ALL_NULL: only one tablet is";
	EXPECT_EQ(as_double(s[1].min), -1);
	EXPECT_EQ(as_double(s[1].max), 0.5);
	EXPECT_EQ(s[1].flags, CHUNK_HAS_NULLS | CHUNK_HAS_NAN | CHUNK_HAS_NEG_ZERO);
	EXPECT_EQ(s[1].exp_hi, 1);
	EXPECT_EQ(s[1].exp_lo, -1);

	summarize_chunk(&s[0], b.chunk(0), true);
	EXPECT_EQ(s[0].flags, CHUNK_HAS_NULLS | CHUNK_ALL_NULL);
}

/*
 * check_tablet reads a copy of exactly the tablet's size (run under a sanitizer,
 * an overrun ends the test) with one meta-data bit flipped, or cut short.
 */
TEST(TabletCheck, RefusesOrSurvivesCorruption)
{
	Built		t(5000, {make_column(Type::I32, spread<int32_t>(5000, 0, 70000), {17, 4000}),
						 make_column(Type::I16, spread<int16_t>(5000, -9, 9)),
						 make_column(Type::F64, std::vector<double>(5000, 1.5))},
				  2, {0, LPS_DENSE}, std::vector<uint16_t>(2500, 1));
	uint64_t	meta = sizeof(TabletHeader) + 3 * sizeof(ColumnChunk);
	int			refused = 0;

	for (uint64_t bit = 0; bit < meta * 8; bit++)
	{
		char	   *copy = static_cast<char *>(aligned_alloc(64, t.size));

		memcpy(copy, t.memory, t.size);
		copy[bit / 8] ^= static_cast<char>(1 << (bit % 8));
		refused += check_tablet(reinterpret_cast<TabletHeader *>(copy), t.size) != nullptr;
		free(copy);
	}
	EXPECT_GT(refused, static_cast<int>(meta * 8 / 3));

	for (uint64_t size = 0; size < t.size; size += size < 1024 ? 1 : 997)
	{
		char	   *copy = static_cast<char *>(aligned_alloc(64, size / 64 * 64 + 64));

		memcpy(copy, t.memory, size);
		EXPECT_NE(check_tablet(reinterpret_cast<TabletHeader *>(copy), size), nullptr) << size;
		free(copy);
	}
}

TEST(TabletCheck, NamesEachLie)
{
	Built		t(100, {make_column(Type::I32, spread<int32_t>(100, 0, 70000), {17})}, 2, {LPS_DENSE, 0},
				  std::vector<uint16_t>(50, 1));
	TabletHeader header = *t.header();
	ColumnChunk chunk = t.chunk();
	auto		refused = [&]
	{
		bool		result = check_tablet(t.header(), t.size) != nullptr;

		*t.header() = header;
		t.chunk() = chunk;
		return result;
	};

	ASSERT_FALSE(refused());
#define LIE(change) do { change; EXPECT_TRUE(refused()) << #change; } while (0)
	LIE(t.header()->magic = 0);
	LIE(t.header()->version = 2);
	LIE(t.header()->ncols = 65535);
	LIE(t.header()->size = t.size + 1);
	LIE(t.header()->nrows = 0);
	LIE(t.header()->nrows = TABLET_MAX_ROWS + 1);
	LIE(t.header()->padded_rows = 8192);
	LIE(t.header()->nblocks = 0);
	LIE(t.header()->nblocks = 0x7fffffff);
	LIE(t.header()->first_block = 0xffffffff);
	LIE(t.header()->block_rows = 0);
	LIE(t.header()->block_rows += 1);
	LIE(t.header()->block_lsns = ~0ull - 7);
	LIE(t.header()->block_lps = t.size);
	LIE(t.header()->lps = t.size - 2);
	LIE(t.header()->nlps = 49);
	LIE(t.header()->checksums = t.size - 2);
	LIE(t.header()->var_bytes = 1);
	LIE(t.chunk().type = Type::I128);
	LIE(t.chunk().type = Type::RowId);
	LIE(t.chunk().encoding = Encoding::Variable);
	LIE(t.chunk().width = 3);
	LIE(t.chunk().width = 8);
	LIE(t.chunk().data = t.size - 64);
	LIE(t.chunk().data += 1);
	LIE(t.chunk().data = 0);
	LIE(t.chunk().data_bytes -= 64);
	LIE(t.chunk().nulls = 0);
	LIE(t.chunk().nulls = ~0ull - 63);
	LIE(t.chunk().flags = 0);
	LIE(t.chunk().null_count = 101);
	LIE(t.chunk().null_count = 0);
	LIE(t.chunk().min = t.chunk().max + 1);
	LIE(t.chunk().max = 1LL << 40);
	LIE(t.chunk().base = 1);
#undef LIE

	uint32_t   *rows = const_cast<uint32_t *>(tablet_at<uint32_t>(t.header(), header.block_rows));

	rows[1] = 101;
	EXPECT_NE(check_tablet(t.header(), t.size), nullptr);
	rows[1] = 50;
	rows[2] = 99;
	EXPECT_NE(check_tablet(t.header(), t.size), nullptr);
}
