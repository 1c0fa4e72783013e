/*
 * group_table.cuh: a block's view of the group table, and the way from packed
 * keys to targets: where a row's cells are.
 *
 * A target is a row of the global table or, with TARGET_SHARED, a slot of the
 * block's own table in shared memory, which is added to the global one when the
 * block ends. That table is of use in two ways:
 *
 *   shared_all  every group has slots of its own: nothing else is touched while
 *               rows come in. With few groups it is replicated by lane, for
 *               lanes that add to one address wait for each other
 *   tagged      a slot belongs to the first group that comes along. Groups that
 *               have many rows come along early: so it takes the hot groups off
 *               the global table, whatever their number, and as the number of
 *               groups grows rows move to the global table little by little
 *
 * Concurrency. Hashed rows are found by open addressing. A key of one word is its
 * own state: 0 while free (words are stored inverted), claimed by compare-and-swap.
 * A plain read may come from a stale line of the L1 cache, but then shows free,
 * never another key, and the compare-and-swap tells the truth. The one key that is
 * 0 when inverted has a row of its own behind all others. A key of several words
 * has a state word: free, busy while its owner writes the words, then part of
 * the hash. The owner's lane goes from busy to ready without waiting for anybody,
 * so others may spin, be they of the same warp.
 *
 * Full means that a row found no place within probe_limit steps: the row dies, and
 * so does the job's table, to be made larger.
 */
#ifndef GPUVM_CUDA_GROUP_TABLE_CUH
#define GPUVM_CUDA_GROUP_TABLE_CUH

#include "machine.cuh"

namespace gpuvm {
namespace cuda {

constexpr uint32_t TARGET_SHARED = 0x80000000;
constexpr uint32_t TARGET_NONE = 0xffffffff;
constexpr uint32_t TAG_FREE = 0xffffffff;

template <typename T>
GPUVM_D T *
shared_at(uint32_t address)
{
	return reinterpret_cast<T *>(shared_memory + address);
}

GPUVM_D uint64_t
hash_step(uint64_t hash, uint64_t word)
{
	uint64_t	h = (hash ^ word) * 0x9e3779b97f4a7c15ull;

	h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93ull;
	return h ^ (h >> 29);
}

/* -- rows of the global table ---------------------------------------------------------- */

/*
 * The rows of four packed keys of one word, of those in `bits`, made where there are none; TARGET_NONE if there is no
 * room. All four are looked for at once: each step is a read of memory, which the next one waits for.
 */
GPUVM_D void
find_rows(const GroupArea *area, const uint64_t (&word)[4], uint32_t bits, uint32_t (&row)[4])
{
	const GroupTable &table = area->table;
	char	   *first = global_memory(table.rows + table.key_at);
	const uint32_t row_bytes = table.row_bytes, last = table.entries - 1, shift = area->hash_shift;
	auto		key = [=](uint32_t at) { return reinterpret_cast<unsigned long long *>(first + static_cast<uint64_t>(at) * row_bytes); };

#pragma unroll
	for (int i = 0; i < 4; i++)
	{
		row[i] = static_cast<uint32_t>(hash_step(0, word[i]) >> shift);
		if (~word[i] == 0 && (bits >> i & 1))
		{
			row[i] = last + 1;
			*key(last + 1) = 1;
			bits &= ~(1u << i);
		}
	}
#pragma unroll 1
	for (uint32_t probes = 0; bits != 0 && probes < table.probe_limit; probes++)
	{
		unsigned long long seen[4];

#pragma unroll
		for (int i = 0; i < 4; i++)
			seen[i] = bits >> i & 1 ? *key(row[i]) : 0;
#pragma unroll
		for (int i = 0; i < 4; i++)
		{
			if (!(bits >> i & 1))
				continue;
			if (seen[i] == 0)
				seen[i] = atomicCAS(key(row[i]), 0ull, ~word[i]);
			if (seen[i] == 0 || seen[i] == ~word[i])
				bits &= ~(1u << i);
			else
				row[i] = (row[i] + 1) & last;
		}
	}
#pragma unroll
	for (int i = 0; i < 4; i++)
		row[i] = bits >> i & 1 ? TARGET_NONE : row[i];
}

/* The state of a row whose key has several words; ready states have bit 1 set. */
constexpr uint32_t ROW_BUSY = 1;

GPUVM_HD uint32_t
row_state_at(const GroupTable &table, uint32_t nwords)
{
	return table.key_at + 8 * nwords;
}

/* The row of a key of `nwords` words that lie `stride` bytes apart. */
GPUVM_D uint32_t
find_row(const GroupArea *area, const char *words, uint32_t nwords, uint32_t stride)
{
	const GroupTable &table = area->table;
	char	   *rows = global_memory(table.rows);
	uint64_t	hash = 0;

	for (uint32_t w = 0; w < nwords; w++)
		hash = hash_step(hash, *reinterpret_cast<const uint64_t *>(words + w * stride));

	uint32_t	ready = static_cast<uint32_t>(hash) | 2;
	uint32_t	at = static_cast<uint32_t>(hash >> area->hash_shift);

	for (uint32_t probes = 0; probes < table.probe_limit;)
	{
		char	   *row = rows + static_cast<uint64_t>(at) * table.row_bytes;
		uint32_t   *state = reinterpret_cast<uint32_t *>(row + row_state_at(table, nwords));
		volatile uint64_t *key = reinterpret_cast<volatile uint64_t *>(row + table.key_at);
		uint32_t	seen = *static_cast<volatile uint32_t *>(state);

		if (seen == 0)
		{
			seen = atomicCAS(state, 0u, ROW_BUSY);
			if (seen == 0)
			{
				for (uint32_t w = 0; w < nwords; w++)
					key[w] = *reinterpret_cast<const uint64_t *>(words + w * stride);
				__threadfence();
				atomicExch(state, ready);
				return at;
			}
		}
		if (seen == ROW_BUSY)
		{
			__nanosleep(32);
			continue;
		}
		if (seen == ready)
		{
			bool		same = true;

			__threadfence();
			for (uint32_t w = 0; w < nwords; w++)
				same &= key[w] == *reinterpret_cast<const uint64_t *>(words + w * stride);
			if (same)
				return at;
		}
		at = (at + 1) & (table.entries - 1);
		probes++;
	}
	return TARGET_NONE;
}

/* -- targets ------------------------------------------------------------------------------ */

/* Where a row has its slot, if it is not another's. */
GPUVM_D uint32_t
slot_of(const GroupTable &table, uint32_t row, uint32_t lane)
{
	return __umulhi(row, table.slot_scale) << table.replica_bits | (lane & ((1u << table.replica_bits) - 1));
}

/* The slot, if it belongs to the row, from now on at the latest; or the row itself. `owner`: what its tag said. */
GPUVM_D uint32_t
claim_slot(const GroupArea *area, uint32_t slot, uint32_t owner, uint32_t row)
{
	if (owner == TAG_FREE)
	{
		owner = atomicCAS(shared_at<uint32_t>(area->tags_at) + slot, TAG_FREE, row);
		if (owner == TAG_FREE)
			owner = row;
	}
	return owner == row ? TARGET_SHARED | slot : row;
}

GPUVM_D uint32_t
tag_of(const GroupArea *area, uint32_t slot)
{
	return *static_cast<volatile uint32_t *>(shared_at<uint32_t>(area->tags_at) + slot);
}

/* The slot of the block's table that belongs to the row, or the row itself. Not for tables that are all shared. */
GPUVM_D uint32_t
target_of(const GroupArea *area, uint32_t row, uint32_t lane)
{
	if (area->table.shared_slots == 0)
		return row;

	const uint32_t slot = slot_of(area->table, row, lane);

	return claim_slot(area, slot, tag_of(area, slot), row);
}

/* The same for four rows, of those in `bits`: their tags are read together. */
GPUVM_D void
targets_of(const GroupArea *area, uint32_t bits, uint32_t lane, uint32_t (&t)[4])
{
	uint32_t	slot[4] = {0, 0, 0, 0}, owner[4] = {0, 0, 0, 0};

	if (area->table.shared_slots == 0)
		return;
#pragma unroll
	for (int i = 0; i < 4; i++)
		if (bits >> i & 1)
		{
			slot[i] = slot_of(area->table, t[i], lane);
			owner[i] = tag_of(area, slot[i]);
		}
#pragma unroll
	for (int i = 0; i < 4; i++)
		if (bits >> i & 1)
			t[i] = claim_slot(area, slot[i], owner[i], t[i]);
}

}  // namespace cuda
}  // namespace gpuvm

#endif
