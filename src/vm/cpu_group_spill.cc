/*
 * cpu_group_spill.cc: groups and records that go into the job's file (spill.h), by the parts of cpu_group_parts.cc, and come back
 * when these are merged.
 */

#include <sys/uio.h>

#include <algorithm>

#include "vm/cpu_job.h"
#include "vm/spill.h"

namespace gpuvm {

/* That are read of a file at a time. */
constexpr size_t READ_BYTES = size_t(256) << 10;

SpilledRows
CpuProgram::spill_rows(Spill *to, const RowShape &shape, const RowList &list) const
{
	SpilledRows spilled = {0, shape.rows_of(list)};
	std::vector<iovec> pieces;
	uint64_t	left = spilled.rows;

	if (spilled.rows == 0)
		return spilled;
	for (char *block : list.blocks)
	{
		const uint64_t n = std::min<uint64_t>(left, shape.block_rows());

		pieces.push_back({block, n * static_cast<size_t>(shape.bytes)});
		left -= n;
	}
	spilled.at = to->take(spilled.rows * static_cast<uint64_t>(shape.bytes));
	to->write(spilled.at, pieces.data(), pieces.size());
	return spilled;
}

/* All that a worker has in parts goes into the file. */
void
CpuProgram::spill_parts(WorkerState &s) const
{
	const auto	put = [&](const RowShape &shape, RowList *list, std::vector<SpilledRows> *to)
	{
		const SpilledRows spilled = spill_rows(s.spill, shape, *list);

		if (spilled.rows > 0)
			to->push_back(spilled);
		shape.truncate(list, 0, &s.record_memory);
	};

	for (size_t p = 0; p < s.parts.size(); p++)
	{
		Part	   &part = s.parts[p];

		put(group_rows, &part.groups, &part.spilled_groups);
		for (RowList &more : part.more_groups)
			put(group_rows, &more, &part.spilled_groups);
		put(records.rows, &s.open[p], &part.spilled_records);
		for (RowList &more : part.more_records)
			put(records.rows, &more, &part.spilled_records);
		part.more_groups.clear();
		part.more_records.clear();
	}
	s.united_bytes = 0;
}

/* A part's rows that are in the file, a vector at a time. */
void
CpuProgram::take_spilled(WorkerState &s, const Part &part) const
{
	char	   *rows[CPU_VECTOR_ROWS];
	const auto	each = [&](const RowShape &shape, const std::vector<SpilledRows> &all, auto take)
	{
		const size_t bytes = static_cast<size_t>(shape.bytes);
		const uint64_t most = std::max<uint64_t>(READ_BYTES / bytes, 1);
		Pages		read;

		if (all.empty())
			return;
		read = Pages::of_heap(most * bytes);
		for (const SpilledRows &list : all)
			for (uint64_t first = 0; first < list.rows; first += most)
			{
				const uint64_t nread = std::min(most, list.rows - first);

				s.spill->read(list.at + first * bytes, read.as<char>(), nread * bytes);
				for (uint64_t at = 0; at < nread; at += CPU_VECTOR_ROWS)
				{
					const uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(CPU_VECTOR_ROWS, nread - at));

					for (uint32_t i = 0; i < n; i++)
						rows[i] = read.as<char>() + (at + i) * bytes;
					take(rows, n);
				}
			}
	};

	each(group_rows, part.spilled_groups, [&](char *const *from, uint32_t n) { take_groups(s, from, n); });
	each(records.rows, part.spilled_records, [&](char *const *from, uint32_t n) { take_records(s, from, n); });
}

}  // namespace gpuvm
