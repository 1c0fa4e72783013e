/*
 * cpu_group_slots.cc: groups whose keys have slots, numbers made of their values, as their ranges are known.
 *
 * An index has four bytes a slot: the group's number. A part of what is put aside has one of its own slots. A worker whose
 * keys lie together, or are few, has one of all, in pieces, so that their groups are found in the caches where they are.
 */

#include <algorithm>
#include <new>
#include <utility>

#include "vm/cpu_job.h"

namespace gpuvm {

namespace {

/* Of its index a worker has so much freely, and so many times what its groups take: slots may be many, and groups few and far apart. */
constexpr size_t FREE_INDEX_BYTES = size_t(16) << 20;
constexpr size_t INDEX_BYTES_A_GROUPS = 4;

}  // namespace

uint32_t
CpuProgram::slot_of_row(const char *row) const
{
	const uint64_t *words = reinterpret_cast<const uint64_t *>(row);
	uint32_t	slot = 0;

	for (size_t k = 0; k < keys.size(); k++)
	{
		const KeyInfo &key = keys[k];
		const bool	null = key.may_null && (words[k / 64] >> (k % 64) & 1) != 0;
		const uint64_t value = words[static_cast<size_t>(null_words) + k] - static_cast<uint64_t>(key.lo);

		slot += (null ? key.values : static_cast<uint32_t>(std::min<uint64_t>(value, key.values - 1))) * key.stride;
	}
	return slot;
}

/* Where the table is an index of a part's slots. */
void
CpuProgram::find_slots(WorkerState &s, uint32_t n) const
{
	const RowShape shape = group_rows;
	const uint32_t mask = static_cast<uint32_t>(low_bits(slot_bits - part_bits));

	s.table_memory->reserve((n >> shape.block_bits) + 1);
	for (uint32_t j = 0; j < n; j++)
	{
		const uint32_t lane = s.rows[j];
		uint32_t   &group = s.index[s.dense_index[lane] & mask];

		if (group == 0)
		{
			s.group_row[lane] = new_group(s, lane, &s.groups, s.table_memory);
			group = s.nfirst + static_cast<uint32_t>(++s.ngroups);
		}
		else if (group <= s.nfirst)
			s.group_row[lane] = shape.at(s.first_groups->blocks, group - 1);
		else
			s.group_row[lane] = shape.at(s.groups.blocks, group - s.nfirst - 1);
	}
}

/* A piece of the index of all slots. False: there is no memory for it. */
bool
CpuProgram::add_index(WorkerState &s, size_t piece) const
{
	const size_t bytes = sizeof(uint32_t) << index_bits();
	const size_t most = FREE_INDEX_BYTES + INDEX_BYTES_A_GROUPS * s.direct.blocks.size() * s.direct_memory.block_bytes();

	if (s.indexes_full || (s.index_memory.size() + 1) * bytes > most)
		return false;
	try
	{
		s.index_memory.push_back(Pages::zeroed(bytes));
	}
	catch (const std::bad_alloc &)
	{
		return false;
	}
	s.indexes[piece] = s.index_memory.back().as<uint32_t>();
	return true;
}

/*
 * The same for the groups of all slots, which keys that lie together find in the caches. Where memory is short rows are put
 * aside from now on: false, none has been yet.
 */
bool
CpuProgram::find_direct(WorkerState &s, uint32_t n) const
{
	const RowShape shape = group_rows;
	const int	shift = index_bits();
	const uint32_t mask = static_cast<uint32_t>(low_bits(shift));
	const uint32_t *const slots = s.dense_index;
	uint16_t	missing[CPU_VECTOR_ROWS];
	uint32_t	nmissing = 0, ndirect = s.ndirect;

	s.indexes.resize(((size_t(1) << slot_bits) >> shift) + 1);
	try
	{
		/* in huge pages from the beginning */
		s.direct_memory.reserve(std::max<size_t>((n >> shape.block_bits) + 1, s.ndirect == 0 ? HUGE_PAGE / s.direct_memory.block_bytes() : 0));
	}
	catch (const std::bad_alloc &)
	{
		s.direct_rows = 0;
		s.blind_rows = cpu_group_limits.blind_rows;
		return false;
	}

	uint32_t   *const *const indexes = s.indexes.data();
	const uint16_t *const rows = s.rows;
	char	  **const group_row = s.group_row;

	for (uint32_t j = 0; j < n; j++)
	{
		const uint32_t lane = rows[j], slot = slots[lane];

		if (j % PROBE_LANES == 0)
			for (uint32_t next = j; next < std::min(n, j + PROBE_LANES); next++)
				if (const uint32_t *piece = indexes[slots[rows[next]] >> shift])
					__builtin_prefetch(piece + (slots[rows[next]] & mask), 1);
		if (indexes[slot >> shift] == nullptr && !add_index(s, slot >> shift))
		{
			s.indexes_full = true;
			missing[nmissing++] = static_cast<uint16_t>(lane);
			continue;
		}

		uint32_t   &group = indexes[slot >> shift][slot & mask];

		if (group == 0)
		{
			group_row[lane] = new_group(s, lane, &s.direct, &s.direct_memory);
			group = ++ndirect;
			continue;
		}

		char	   *row = shape.at(s.direct.blocks, group - 1);

		group_row[lane] = row;
		__builtin_prefetch(row, 1);
		__builtin_prefetch(row + shape.bytes - 1, 1);
	}
	s.direct_groups += ndirect - s.ndirect;
	s.ndirect = ndirect;
	if (s.indexes_full)
		s.direct_rows = 0;
	else if (s.direct_rows > n)
		s.direct_rows -= n;
	else
	{
		/* still few groups to their rows? */
		s.direct_rows = s.direct_groups * WORTH_A_TABLE <= cpu_group_limits.blind_rows ? cpu_group_limits.blind_rows : 0;
		s.direct_groups = 0;
	}
	put_aside(s, missing, nmissing);
	return true;
}

/* The table that takes a part of so many rows is an index of its slots where these are not too many, nor memory short. */
void
CpuProgram::index_slots(WorkerState &s, uint64_t rows) const
{
	const int	bits = slot_bits - part_bits;

	s.hash_shift = 0;
	if (rows < uint64_t(1) << bits >> INDEX_SLOTS_A_ROW)
		return;
	try
	{
		s.buckets = Pages::zeroed(sizeof(uint32_t) << bits);
	}
	catch (const std::bad_alloc &)
	{
		return;
	}
	s.index = s.buckets.as<uint32_t>();
}

/* What a worker made of slots is the merge's. */
void
CpuProgram::keep_direct(WorkerState &to, WorkerState &from) const
{
	to.directs.push_back(std::exchange(from.direct, RowList()));
	to.directs_memory.push_back(std::exchange(from.direct_memory, RowBlocks()));
}

/* A worker's index of a part's slots; nullptr: it has none. */
uint32_t *
CpuProgram::index_of_part(const WorkerState &s, uint32_t part) const
{
	if (s.indexes.empty())
		return nullptr;

	const size_t slot = static_cast<size_t>(part) << (slot_bits - part_bits);
	uint32_t   *piece = s.indexes[slot >> index_bits()];

	return piece == nullptr ? nullptr : piece + (slot & low_bits(index_bits()));
}

/* The groups of an index. */
std::vector<uint32_t>
numbers_of_groups(const uint32_t *index, uint64_t nslots)
{
	std::vector<uint32_t> numbers;

	for (uint64_t i = 0; i < nslots; i++)
		if (index[i] != 0)
			numbers.push_back(index[i] - 1);
	return numbers;
}

/* Of workers' groups that are none of the results. */
void
CpuProgram::free_directs(WorkerState &s) const
{
	for (size_t i = 0; i < s.directs.size(); i++)
	{
		const RowList *groups = &s.directs[i];

		if (std::none_of(s.results.begin(), s.results.end(), [=](const PartGroups &part) { return part.of == groups; }))
			s.directs_memory[i] = RowBlocks();
	}
}

}  // namespace gpuvm
