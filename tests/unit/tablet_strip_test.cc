/* A tablet that loses columns is, to the last byte, what it would have been with nulls there from the beginning. */
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tablet/build.h"
#include "tablet/strip.h"

using namespace gpuvm;

namespace {

constexpr uint32_t COLUMNS = 6;

struct Table
{
	uint32_t	nrows;
	std::vector<std::vector<int64_t>> values;
	std::vector<std::vector<uint64_t>> nulls;
	std::vector<StagedColumn> columns;

	Table(uint32_t n, uint64_t seed) : nrows(n), values(COLUMNS), nulls(COLUMNS), columns(COLUMNS)
	{
		static const Type types[COLUMNS] = {Type::I64, Type::I32, Type::F64, Type::I64, Type::Bool, Type::I32};
		std::mt19937_64 random(seed);

		for (uint32_t c = 0; c < COLUMNS; c++)
		{
			uint64_t	range = random() % 3 == 0 ? 1 : random() % 2 == 0 ? 200 : 1ull << 40;

			values[c].resize(n);
			for (uint32_t i = 0; i < n; i++)
				values[c][i] = types[c] == Type::Bool ? 0 : static_cast<int64_t>(random() % range);
			nulls[c].assign((n + 63) / 64, 0);
			if (random() % 2 == 0)
				for (uint32_t i = 0; i < n; i++)
					nulls[c][i / 64] |= uint64_t{random() % 3 == 0} << (i % 64);
			columns[c] = StagedColumn{types[c], static_cast<int16_t>(c + 1), values[c].data(), nulls[c].data()};
		}
	}

	void lose(uint32_t c)
	{
		for (uint32_t i = 0; i < nrows; i++)
			nulls[c][i / 64] |= uint64_t{1} << (i % 64);
	}

	std::string build(uint64_t serial) const
	{
		uint32_t	block_rows[] = {0, nrows / 2, nrows};
		uint64_t	lsns[] = {7, 8};
		std::vector<uint16_t> line_pointers(nrows / 2, 3);
		uint32_t	lps[] = {0, LPS_DENSE};
		StagedTablet staged = {};
		TabletHeader header;
		ColumnChunk chunks[COLUMNS];

		staged.nrows = nrows;
		staged.ncols = COLUMNS;
		staged.columns = columns.data();
		staged.first_block = 5;
		staged.nblocks = 2;
		staged.block_rows = block_rows;
		staged.block_lsns = lsns;
		staged.block_lps = lps;
		staged.lps = line_pointers.data();
		staged.nlps = nrows / 2;

		std::string to(plan_tablet(staged, &header, chunks), '\0');

		write_tablet(staged, header, chunks, serial, to.data());
		return to;
	}
};

TEST(TabletStrip, IsWhatWouldHaveBeenBuilt)
{
	for (uint32_t nrows : {1u, 7u, 8u, 64u, 1000u, 4096u, 4097u, 9999u})
		for (uint32_t subset = 0; subset < 32; subset++)
		{
			Table		table(nrows, nrows * 100 + subset);
			std::string whole = table.build(1);
			bool		lost[COLUMNS] = {};
			bool		any = false;

			for (uint32_t c = 0, bit = 0; c < COLUMNS; c++)
			{
				if (type_is_float(table.columns[c].type))
					continue;
				lost[c] = (subset >> bit++ & 1) != 0;
			}

			const TabletHeader *header = reinterpret_cast<const TabletHeader *>(whole.data());

			for (uint32_t c = 0; c < COLUMNS; c++)
			{
				any = any || (lost[c] && !(tablet_chunks(header)[c].flags & CHUNK_ALL_NULL));
				if (lost[c])
					table.lose(c);
			}

			uint64_t	size = stripped_size(header, lost);

			ASSERT_EQ(size != 0, any) << nrows << " " << subset;
			if (size == 0)
				continue;

			std::string expected = table.build(2);
			std::string got(size, '\x5a');

			strip_tablet(header, lost, 2, got.data());
			ASSERT_EQ(got.size(), expected.size());
			ASSERT_TRUE(got == expected) << nrows << " rows, columns " << subset;
			ASSERT_EQ(check_tablet(reinterpret_cast<const TabletHeader *>(got.data()), size), nullptr);
		}
}

}  // namespace
