/* vm_reference_tables.cc: tables in memory with their tablets. See vm_reference.h. */
#include "vm_reference.h"

namespace gpuvm {
namespace reference {

std::vector<bool>
Table::masked_bits() const
{
	std::vector<bool> bits(nrows());

	for (const MaskedRows &r : masked)
	{
		const auto	first = std::accumulate(tablet_rows.begin(), tablet_rows.begin() + r.tablet, bits.begin());

		std::fill(first + r.first, first + r.end, true);
	}
	return bits;
}

void
Table::mask(const std::vector<bool> &bits)
{
	uint32_t	row = 0;

	masked.clear();
	for (uint32_t t = 0; t < tablet_rows.size(); t++)
		for (uint32_t i = 0; i < tablet_rows[t]; i++)
		{
			if (!bits[row++])
				continue;
			if (masked.empty() || masked.back().tablet != t || masked.back().end != i)
				masked.push_back(MaskedRows{t, i, i});
			masked.back().end++;
		}
}

Table
Table::without_masked() const
{
	const std::vector<bool> bits = masked_bits();
	Table		to;
	uint32_t	row = 0;

	for (uint32_t n : tablet_rows)
	{
		const auto	from = bits.begin() + row;

		if (const uint32_t left = static_cast<uint32_t>(std::count(from, from + n, false)))
			to.tablet_rows.push_back(left);
		row += n;
	}
	for (const Column &c : columns)
	{
		to.columns.push_back(Column{c.type, {}});
		to.columns.back().attlen = c.attlen;
		for (uint32_t i = 0; i < row; i++)
			if (!bits[i])
			{
				to.columns.back().rows.push_back(c.rows[i]);
				if (c.is_text())
					to.columns.back().texts.push_back(c.texts[i]);
			}
	}
	to.build();
	return to;
}

void
Table::build()
{
	uint32_t	first = 0;

	types.clear();
	tablets.clear();
	for (const Column &c : columns)
		types.push_back(c.type);
	summaries.assign(columns.size(), ColumnSummary{});
	for (size_t t = 0; t < tablet_rows.size(); t++)
	{
		const uint32_t n = tablet_rows[t];
		std::vector<std::vector<char>> values(columns.size());
		std::vector<std::vector<uint64_t>> nulls(columns.size());
		std::vector<std::string> images(columns.size());
		std::vector<StagedColumn> staged(columns.size());
		const uint32_t block_rows[2] = {0, n};
		const uint64_t lsn = 1;
		const uint32_t lps = LPS_DENSE;

		for (size_t c = 0; c < columns.size(); c++)
		{
			const Type	type = columns[c].type;
			const int	width = type_natural_width(type);
			bool		any = false;

			values[c].resize(static_cast<size_t>(n) * width + 64);
			nulls[c].resize((n + 63) / 64);
			for (uint32_t r = 0; r < n; r++)
			{
				Value	   &v = columns[c].rows[first + r];

				if (columns[c].is_text() && !v.null)
					v.i = static_cast<int64_t>(append_image(&images[c], columns[c].texts[first + r], columns[c].attlen));

				char	   *to = values[c].data() + static_cast<size_t>(r) * width;
				const float f = static_cast<float>(v.d);

				if (v.null)
				{
					nulls[c][r / 64] |= 1ull << (r % 64);
					any = true;
					memset(to, 0x5a, width);
					if (type == Type::Bool)
						*to = 1;
				}
				else if (type == Type::F32)
					memcpy(to, &f, 4);
				else if (type == Type::F64)
					memcpy(to, &v.d, 8);
				else
					memcpy(to, &v.i, width);
			}
			staged[c] = StagedColumn{type, static_cast<int16_t>(c + 1), values[c].data(), any ? nulls[c].data() : nullptr};
			if (columns[c].is_text())
			{
				staged[c].encoding = Encoding::Variable;
				staged[c].images = images[c].data();
				staged[c].nimages = images[c].size();
			}
		}

		StagedTablet st = {n, static_cast<uint32_t>(columns.size()), staged.data(), static_cast<uint32_t>(t), 1,
			block_rows, &lsn, &lps, nullptr, 0};
		TabletHeader header;
		std::vector<ColumnChunk> chunks(columns.size());
		const uint64_t size = plan_tablet(st, &header, chunks.data());
		void	   *memory = aligned_alloc(64, (size + 63) & ~63ull);

		write_tablet(st, header, chunks.data(), 0, static_cast<char *>(memory));
		tablets.emplace_back(static_cast<TabletHeader *>(memory));
		for (size_t c = 0; c < columns.size(); c++)
		{
			summarize_chunk(&summaries[c], chunks[c], t == 0);
			for (uint32_t r = 0; columns[c].is_text() && r < n; r++)
				columns[c].rows[first + r].i += columns[c].rows[first + r].null ? 0 : chunks[c].base;
		}
		first += n;
	}
}

}  // namespace reference
}  // namespace gpuvm
