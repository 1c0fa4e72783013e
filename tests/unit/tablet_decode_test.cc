/* Stored columns decode to what they were built from, and build to the same bytes again. */
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tablet/build.h"
#include "tablet/decode.h"

using namespace gpuvm;

namespace {

constexpr uint32_t ROWS = 5000;		/* more than one padding unit, no whole number of words */

struct Column
{
	Type		type;
	std::vector<char> values;		/* ROWS values of the natural width */
	std::vector<uint64_t> nulls;	/* empty: none */

	int			width() const { return type_natural_width(type); }
	bool is_null(uint32_t row) const { return !nulls.empty() && (nulls[row / 64] >> (row % 64) & 1); }
};

/* A tablet of one column, in memory of exactly its size. */
class Built
{
public:
	explicit Built(const Column &column, const std::vector<uint64_t> *nulls = nullptr)
	{
		StagedColumn staged = {column.type, 1, column.values.data(),
			nulls != nullptr ? nulls->data() : column.nulls.empty() ? nullptr : column.nulls.data()};
		uint32_t	block_rows[] = {0, ROWS};
		uint64_t	lsn = 1;
		uint32_t	lps = LPS_DENSE;
		StagedTablet tablet = {};
		TabletHeader header;
		ColumnChunk chunk;

		tablet.nrows = ROWS;
		tablet.ncols = 1;
		tablet.columns = &staged;
		tablet.nblocks = 1;
		tablet.block_rows = block_rows;
		tablet.block_lsns = &lsn;
		tablet.block_lps = &lps;
		size_ = plan_tablet(tablet, &header, &chunk);
		memory_ = static_cast<char *>(aligned_alloc(64, size_));
		write_tablet(tablet, header, &chunk, 1, memory_);
	}
	~Built() { free(memory_); }
	Built(const Built &) = delete;

	const TabletHeader *header() const { return reinterpret_cast<const TabletHeader *>(memory_); }
	const ColumnChunk &chunk() const { return *tablet_chunks(header()); }
	uint64_t size() const { return size_; }
	std::string bytes() const { return std::string(memory_, size_); }

private:
	uint64_t	size_;
	char	   *memory_;
};

/* Rows [first, first + n) decoded to row `to` are the column's, and nothing else is written. */
void
expect_range(const Built &t, const Column &column, uint32_t first, uint32_t n, uint32_t to)
{
	const size_t width = column.width();
	std::vector<char> values((to + n + 1) * width, '\x5a');
	std::vector<uint64_t> nulls((to + n) / 64 + 1, 0);
	bool		any = false;

	decode_values(t.header(), t.chunk(), first, n, values.data(), to);
	for (uint32_t i = 0; i < n; i++)
	{
		any = any || column.is_null(first + i);
		ASSERT_TRUE(column.is_null(first + i) ||
					memcmp(&values[(to + i) * width], &column.values[(first + i) * width], width) == 0)
			<< "row " << first + i << " of width " << int{t.chunk().width};
	}
	for (size_t i = 0; i < to * width; i++)
		ASSERT_EQ(values[i], '\x5a');
	for (size_t i = (to + n) * width; i < values.size(); i++)
		ASSERT_EQ(values[i], '\x5a');

	ASSERT_EQ(decode_nulls(t.header(), t.chunk(), first, n, nulls.data(), to), any);
	for (uint32_t i = 0; i < nulls.size() * 64; i++)
	{
		bool		expected = i >= to && i < to + n && column.is_null(first + i - to);

		ASSERT_EQ(nulls[i / 64] >> (i % 64) & 1, expected ? 1u : 0u) << "bit " << i;
	}
}

/* `width`: the stored width that the values are meant to have. */
void
expect_column(const Column &column, int width)
{
	Built		t(column);
	std::mt19937 random(7);
	Column		again = {column.type, std::vector<char>(column.values.size()), {}};
	std::vector<uint64_t> nulls((ROWS + 63) / 64, 0);

	ASSERT_EQ(check_tablet(t.header(), t.size()), nullptr);
	ASSERT_EQ(t.chunk().width, width);
	expect_range(t, column, 0, ROWS, 0);
	expect_range(t, column, 0, 0, 3);
	expect_range(t, column, 63, 2, 64);
	expect_range(t, column, 64, 64, 64);
	expect_range(t, column, 1, 64, 0);
	expect_range(t, column, ROWS - 1, 1, 63);
	for (int i = 0; i < 30; i++)
	{
		uint32_t	first = random() % ROWS;

		expect_range(t, column, first, random() % (ROWS - first + 1), random() % 200);
	}

	/* in pieces, and built again: the same tablet */
	for (uint32_t row = 0; row < ROWS;)
	{
		uint32_t	n = std::min<uint32_t>(random() % 300, ROWS - row);

		decode_values(t.header(), t.chunk(), row, n, again.values.data(), row);
		decode_nulls(t.header(), t.chunk(), row, n, nulls.data(), row);
		row += n;
	}
	Built		rebuilt(again, column.nulls.empty() ? nullptr : &nulls);

	ASSERT_TRUE(rebuilt.bytes() == t.bytes());
}

template <typename T, typename Fn>
Column
make_column(Type type, const Fn &value)
{
	Column		c = {type, std::vector<char>(ROWS * sizeof(T)), {}};

	for (uint32_t i = 0; i < ROWS; i++)
	{
		T			v = value(i);

		memcpy(&c.values[i * sizeof(T)], &v, sizeof(T));
	}
	return c;
}

enum class Nulls
{
	None,
	Some,
	Runs,						/* whole words, and parts of their neighbours */
};

Column
with_nulls(Column c, Nulls nulls)
{
	std::mt19937 random(11);

	if (nulls == Nulls::None)
		return c;
	c.nulls.assign((ROWS + 63) / 64, 0);
	for (uint32_t i = 2; i < ROWS; i++)	/* rows 0 and 1 have the extremes */
		if (nulls == Nulls::Some ? random() % 5 == 0 : i % 400 > 150)
			c.nulls[i / 64] |= uint64_t{1} << (i % 64);
	return c;
}

/* Values from lo to lo + range, both of which occur. */
template <typename T>
void
expect_integers(Type type, int64_t lo, uint64_t range, int width)
{
	for (Nulls nulls : {Nulls::None, Nulls::Some, Nulls::Runs})
	{
		std::mt19937_64 random(range);

		expect_column(with_nulls(make_column<T>(type, [&](uint32_t i)
		{
			uint64_t	code = i == 0 ? 0 : i == 1 ? range : range == UINT64_MAX ? random() : random() % (range + 1);

			return static_cast<T>(static_cast<uint64_t>(lo) + code);
		}), nulls), width);
	}
}

TEST(TabletDecode, Bool)
{
	expect_integers<uint8_t>(Type::Bool, 0, 0, 0);
	expect_integers<uint8_t>(Type::Bool, 1, 0, 0);
	expect_integers<uint8_t>(Type::Bool, 0, 1, 1);
}

TEST(TabletDecode, I16)
{
	expect_integers<int16_t>(Type::I16, -5, 0, 0);
	expect_integers<int16_t>(Type::I16, INT16_MIN, 255, 1);
	expect_integers<int16_t>(Type::I16, INT16_MAX - 255, 255, 1);
	expect_integers<int16_t>(Type::I16, -128, 256, 2);
	expect_integers<int16_t>(Type::I16, INT16_MIN, 65535, 2);
}

TEST(TabletDecode, I32)
{
	expect_integers<int32_t>(Type::I32, INT32_MIN, 0, 0);
	expect_integers<int32_t>(Type::I32, INT32_MIN, 255, 1);
	expect_integers<int32_t>(Type::I32, INT32_MAX - 255, 255, 1);
	expect_integers<int32_t>(Type::I32, -100, 65535, 2);
	expect_integers<int32_t>(Type::I32, INT32_MAX - 65535, 65535, 2);
	expect_integers<int32_t>(Type::I32, 0, 65536, 4);
	expect_integers<int32_t>(Type::I32, INT32_MIN, UINT32_MAX, 4);
}

TEST(TabletDecode, I64)
{
	expect_integers<int64_t>(Type::I64, INT64_MIN, 0, 0);
	expect_integers<int64_t>(Type::I64, INT64_MAX, 0, 0);
	expect_integers<int64_t>(Type::I64, INT64_MIN, 255, 1);
	expect_integers<int64_t>(Type::I64, INT64_MAX - 255, 255, 1);
	expect_integers<int64_t>(Type::I64, -1, 65535, 2);
	expect_integers<int64_t>(Type::I64, INT64_MAX - UINT32_MAX, UINT32_MAX, 4);
	expect_integers<int64_t>(Type::I64, INT64_MIN, UINT32_MAX, 4);
	expect_integers<int64_t>(Type::I64, -7, uint64_t{UINT32_MAX} + 1, 8);
	expect_integers<int64_t>(Type::I64, INT64_MIN, UINT64_MAX, 8);
}

/* Floats are their bits: signs of zeros, payloads and signalling bits of NaN, denormals. */
template <typename F, typename Bits>
void
expect_floats(Type type)
{
	constexpr Bits sign = Bits{1} << (sizeof(F) * 8 - 1);
	constexpr Bits inf = sizeof(F) == 4 ? Bits{0x7f800000u} : static_cast<Bits>(0x7ff0000000000000u);
	const std::vector<Bits> special = {0, sign, inf, sign | inf, inf | 1, sign | inf | 0x12345, ~Bits{0}, 1, sign | 1, inf - 1};

	for (Nulls nulls : {Nulls::None, Nulls::Some, Nulls::Runs})
	{
		std::mt19937_64 random(5);

		expect_column(with_nulls(make_column<Bits>(type, [&](uint32_t i)
		{
			return i % 3 == 0 ? special[i / 3 % special.size()] : static_cast<Bits>(random());
		}), nulls), sizeof(F));
		for (Bits bits : special)
			expect_column(with_nulls(make_column<Bits>(type, [&](uint32_t) { return bits; }), nulls), 0);
	}
}

TEST(TabletDecode, F32)
{
	expect_floats<float, uint32_t>(Type::F32);
}

TEST(TabletDecode, F64)
{
	expect_floats<double, uint64_t>(Type::F64);
}

TEST(TabletDecode, AllNull)
{
	for (Type type : {Type::Bool, Type::I16, Type::I32, Type::I64, Type::F32, Type::F64})
	{
		Column		c = {type, std::vector<char>(size_t{ROWS} * type_natural_width(type), '\x7f'), {}};

		c.nulls.assign((ROWS + 63) / 64, ~uint64_t{0});
		c.nulls.back() = (uint64_t{1} << (ROWS % 64)) - 1;
		expect_column(c, 0);
	}
}

}  // namespace
