/* Variable-length columns: images and references to them, in the order of rows, wherever the tablet is put. */
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tablet/build.h"
#include "tablet/decode.h"
#include "tablet/strip.h"

using namespace gpuvm;

namespace {

/* A varlena's image: a short header where that is enough. */
std::string
image(const std::string &bytes)
{
	uint32_t	header = static_cast<uint32_t>(bytes.size() + 4) << 2;

	if (bytes.size() + 1 <= 127)
		return std::string(1, static_cast<char>((bytes.size() + 1) << 1 | 1)) + bytes;
	return std::string(reinterpret_cast<const char *>(&header), 4) + bytes;
}

/* Columns of values, "\xff" for null, between two of integers. */
struct Table
{
	uint32_t	nrows;
	uint32_t	ncols;
	std::vector<std::vector<int64_t>> values;
	std::vector<std::vector<uint64_t>> nulls;
	std::vector<std::string> images;
	std::vector<std::vector<std::string>> texts;

	Table(uint32_t n, const std::vector<std::vector<std::string>> &columns)
		: nrows(n), ncols(static_cast<uint32_t>(columns.size()) + 2), values(ncols), nulls(ncols), images(ncols), texts(columns)
	{
		for (uint32_t c = 0; c < ncols; c++)
		{
			values[c].assign(nrows, 7 + c);
			nulls[c].assign((nrows + 63) / 64, 0);
		}
		for (uint32_t c = 1; c + 1 < ncols; c++)
			for (uint32_t row = 0; row < nrows; row++)
			{
				std::string one = image(columns[c - 1][row]);

				if (is_null(c, row))
				{
					nulls[c][row / 64] |= uint64_t{1} << (row % 64);
					values[c][row] = -1;
					continue;
				}
				if (one.size() > 127)
					images[c].resize((images[c].size() + 3) / 4 * 4, '\0');
				values[c][row] = static_cast<int64_t>(images[c].size());
				images[c] += one;
			}
		values[0][nrows - 1] = 100000;
	}

	bool is_null(uint32_t c, uint32_t row) const { return c > 0 && c + 1 < ncols && texts[c - 1][row] == "\xff"; }

	std::vector<uint64_t> build(uint64_t *size, const bool *lost = nullptr) const
	{
		std::vector<StagedColumn> columns(ncols);
		std::vector<std::vector<uint64_t>> now = nulls;
		std::vector<ColumnChunk> chunks(ncols);
		uint32_t	block_rows[] = {0, nrows};
		uint64_t	lsn = 5;
		uint32_t	lps = LPS_DENSE;
		StagedTablet staged = {};
		TabletHeader header;

		for (uint32_t c = 0; c < ncols; c++)
		{
			columns[c] = StagedColumn{Type::I64, static_cast<int16_t>(c + 1), values[c].data(), now[c].data()};
			if (c > 0 && c + 1 < ncols)
			{
				columns[c].encoding = Encoding::Variable;
				columns[c].images = images[c].data();
				columns[c].nimages = images[c].size();
			}
			for (uint32_t row = 0; lost != nullptr && lost[c] && row < nrows; row++)
				now[c][row / 64] |= uint64_t{1} << (row % 64);
		}
		staged.nrows = nrows;
		staged.ncols = ncols;
		staged.columns = columns.data();
		staged.nblocks = 1;
		staged.block_rows = block_rows;
		staged.block_lsns = &lsn;
		staged.block_lps = &lps;
		*size = plan_tablet(staged, &header, chunks.data());

		std::vector<uint64_t> memory(*size / 8 + 8, 0xa5a5a5a5a5a5a5a5u);

		write_tablet(staged, header, chunks.data(), 1, reinterpret_cast<char *>(memory.data()));
		return memory;
	}
};

TabletHeader *
tablet_of(std::vector<uint64_t> *memory)
{
	return reinterpret_cast<TabletHeader *>(memory->data());
}

/* Every value is where its reference, taken as an arena offset with the tablet at `place`, says. */
void
expect_values(const Table &table, TabletHeader *tablet, uint64_t size, uint64_t place, const bool *lost = nullptr)
{
	const char *arena = reinterpret_cast<const char *>(tablet) - place;

	ASSERT_EQ(check_tablet(tablet, size, place), nullptr);
	for (uint32_t c = 0; c < table.ncols; c++)
	{
		const ColumnChunk &chunk = tablet_chunks(tablet)[c];
		std::vector<int64_t> references(table.nrows);
		std::vector<uint64_t> nulls((table.nrows + 63) / 64, 0);
		int64_t		before = chunk.min - 1;

		decode_values(tablet, chunk, 0, table.nrows, references.data(), 0);
		decode_nulls(tablet, chunk, 0, table.nrows, nulls.data(), 0);
		for (uint32_t row = 0; row < table.nrows; row++)
		{
			int64_t		reference = references[row];

			ASSERT_EQ(nulls[row / 64] >> (row % 64) & 1, table.is_null(c, row) || (lost != nullptr && lost[c])) << c << " " << row;
			ASSERT_GE(reference, chunk.min);
			ASSERT_LE(reference, chunk.max);
			if (nulls[row / 64] >> (row % 64) & 1)
				continue;
			if (c == 0 || c + 1 == table.ncols)
			{
				ASSERT_EQ(reference, table.values[c][row]);
				continue;
			}

			const char *at = arena + reference;
			std::string expected = image(table.texts[c - 1][row]);

			ASSERT_EQ(chunk.encoding, Encoding::Variable);
			ASSERT_GT(reference, before);	/* in the order of rows */
			before = reference;
			ASSERT_EQ(image_length(at, -1), expected.size());
			ASSERT_EQ(image_header(at), expected.size() > 127 ? 4u : 1u);
			ASSERT_TRUE(image_header(at) == 1 || reference % 4 == 0);
			ASSERT_EQ(std::string(at, expected.size()), expected) << "column " << c << " row " << row;
			ASSERT_LE(static_cast<uint64_t>(reference - chunk.min) + expected.size(), variable_bytes(chunk));
		}
		if (chunk.encoding == Encoding::Variable && variable_bytes(chunk) > 0)
		{
			ASSERT_EQ(variable_at(tablet, chunk), static_cast<uint64_t>(chunk.base) - place);
			for (uint32_t i = 0; i < VARIABLE_SLACK; i++)
				ASSERT_EQ(arena[chunk.max + 1 + i], 0);
		}
	}
}

std::vector<std::string>
random_texts(uint32_t n, uint32_t longest, uint32_t null_share, uint64_t seed)
{
	std::mt19937_64 random(seed);
	std::vector<std::string> texts(n);

	for (std::string &t : texts)
	{
		if (null_share > 0 && random() % null_share == 0)
			t = "\xff";
		else
			for (uint64_t len = random() % (longest + 1); t.size() < len;)
				t += static_cast<char>('a' + random() % 26);
	}
	return texts;
}

void
expect_table(const Table &table)
{
	uint64_t	size;
	std::vector<uint64_t> memory = table.build(&size);
	TabletHeader *tablet = tablet_of(&memory);

	expect_values(table, tablet, size, 0);
	for (uint64_t place : {uint64_t{65536}, uint64_t{3} << 40, uint64_t{65536}, uint64_t{0}})
	{
		place_tablet(tablet, place);
		expect_values(table, tablet, size, place);
	}
}

TEST(TabletVariable, HoldsValues)
{
	for (uint32_t nrows : {1u, 2u, 63u, 64u, 1000u, 4096u, 5000u})
		for (uint32_t longest : {0u, 5u, 126u, 127u, 300u})
			for (uint32_t nulls : {0u, 1u, 3u})
				expect_table(Table(nrows, {random_texts(nrows, longest, nulls, nrows), random_texts(nrows, 40, 2, longest)}));
}

TEST(TabletVariable, WidthsByBytes)
{
	const std::pair<std::vector<std::string>, int> cases[] = {
		{{""}, 0}, {{"", "\xff"}, 0}, {{"\xff", "\xff"}, 0}, {{"", ""}, 1}, {{std::string(252, 'x')}, 1},
		{{std::string(253, 'x')}, 2}, {{std::string(65532, 'x')}, 2}, {{std::string(65533, 'x')}, 4}, {{std::string(1 << 20, 'x'), "y"}, 4}};

	for (const auto &c : cases)
	{
		Table		table(static_cast<uint32_t>(c.first.size()), {c.first});
		uint64_t	size;
		std::vector<uint64_t> memory = table.build(&size);

		ASSERT_EQ(tablet_chunks(tablet_of(&memory))[1].width, c.second) << c.first[0].size();
		expect_table(table);
	}
}

TEST(TabletVariable, StripsToWhatWouldHaveBeenBuilt)
{
	Table		table(900, {random_texts(900, 200, 5, 1), random_texts(900, 30, 0, 2), random_texts(900, 60, 2, 3)});
	uint64_t	whole_size;
	std::vector<uint64_t> whole = table.build(&whole_size);

	place_tablet(tablet_of(&whole), 1 << 20);
	for (uint32_t subset = 1; subset < 8; subset++)
	{
		bool		lost[] = {false, (subset & 1) != 0, (subset & 2) != 0, (subset & 4) != 0, false};
		uint64_t	expected_size;
		std::vector<uint64_t> expected = table.build(&expected_size, lost);
		uint64_t	size = stripped_size(tablet_of(&whole), lost);
		std::vector<uint64_t> got(size / 8 + 8, 0x5a5a5a5a5a5a5a5au);

		ASSERT_EQ(size, expected_size);
		strip_tablet(tablet_of(&whole), lost, 1, reinterpret_cast<char *>(got.data()));
		ASSERT_EQ(memcmp(got.data(), expected.data(), size), 0) << subset;
		place_tablet(tablet_of(&got), 77 * 65536);
		expect_values(table, tablet_of(&got), size, 77 * 65536, lost);
	}
}

/* What programs are lowered with holds wherever the tablets, and a query's own rows, are. */
TEST(TabletVariable, SummaryHoldsEverywhere)
{
	Table		table(100, {random_texts(100, 50, 3, 1)});
	Table		nulls(70, {std::vector<std::string>(70, "\xff")});
	uint64_t	size;
	std::vector<uint64_t> memory = table.build(&size);
	std::vector<uint64_t> none = nulls.build(&size);
	ColumnSummary summary = {};
	ColumnSummary again;

	summarize_chunk(&summary, tablet_chunks(tablet_of(&memory))[1], true);
	EXPECT_EQ(summary.type, Type::I64);
	EXPECT_EQ(summary.flags, CHUNK_HAS_NULLS | COLUMN_VARIABLE);
	EXPECT_EQ(summary.min, 0);
	EXPECT_EQ(summary.max, VARIABLE_MAX_REFERENCE);
	again = summary;
	place_tablet(tablet_of(&memory), uint64_t{9} << 40);
	summarize_chunk(&again, tablet_chunks(tablet_of(&memory))[1], false);
	summarize_chunk(&again, tablet_chunks(tablet_of(&none))[1], false);
	/* one that nobody wants of a delta is of zeroes, not of references */
	summarize_chunk(&again, ColumnChunk{Type::I64, Encoding::Fixed, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0}, false);
	again.null_count = summary.null_count;
	EXPECT_EQ(memcmp(&again, &summary, sizeof(summary)), 0);
	summarize_chunk(&summary, tablet_chunks(tablet_of(&none))[1], true);
	EXPECT_EQ(summary.flags, CHUNK_HAS_NULLS | CHUNK_ALL_NULL | COLUMN_VARIABLE);
}

TEST(TabletVariable, CheckNamesEachLie)
{
	Table		table(300, {random_texts(300, 200, 4, 1), random_texts(300, 20, 0, 2)});
	constexpr uint64_t place = 5 * 65536;
	uint64_t	size;
	std::vector<uint64_t> memory = table.build(&size);
	TabletHeader *tablet = tablet_of(&memory);
	ColumnChunk &chunk = tablet_chunks(tablet)[1];
	ColumnChunk &next = tablet_chunks(tablet)[2];

	place_tablet(tablet, place);

	const std::vector<uint64_t> right = memory;
	auto		refused = [&](uint64_t at)
	{
		bool		result = check_tablet(tablet, size, at) != nullptr;

		memory = right;
		return result;
	};
	auto		shift = [](ColumnChunk &c, int64_t by)
	{
		c.base += by;
		c.min += by;
		c.max += by;
	};

	ASSERT_FALSE(refused(place));
	EXPECT_TRUE(refused(place + 65536));
#define LIE(change) do { change; EXPECT_TRUE(refused(place)) << #change; } while (0)
	LIE(tablet->place = 0);
	LIE(tablet->var = 0);
	LIE(tablet->var += 64);
	LIE(tablet->var = 64);
	LIE(tablet->var_bytes += 64);
	LIE(tablet->var_bytes = 64);
	LIE(tablet->var_bytes = ~0ull);
	LIE(chunk.type = Type::I32);
	LIE(shift(chunk, -64));
	LIE(shift(chunk, 1));
	LIE(shift(next, 4096));
	LIE(shift(chunk, static_cast<int64_t>(place)));
	LIE(next.max += 64);
	LIE(chunk.max += 1 << 30);
	LIE(chunk.flags |= CHUNK_ALL_NULL);
	LIE((chunk.encoding = static_cast<Encoding>(1)));
#undef LIE

	Table		none(64, {std::vector<std::string>(64, "\xff")});

	memory = none.build(&size);
	place_tablet(tablet_of(&memory), place);
	ASSERT_EQ(check_tablet(tablet_of(&memory), size, place), nullptr);
	tablet_chunks(tablet_of(&memory))[1].max = 1;
	EXPECT_NE(check_tablet(tablet_of(&memory), size, place), nullptr);
}

}  // namespace
