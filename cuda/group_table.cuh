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

/* What `p` points to lies in global memory, which makes an atomic one instruction. */
template <typename T>
GPUVM_D T *
global_memory(T *p)
{
#ifndef GPUVM_EMULATED
	__builtin_assume(__isGlobal(p));
#endif
	return p;
}

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

/* The row of a packed key of one word, made if there is none; TARGET_NONE if there is no room. */
GPUVM_D uint32_t
find_row(const GroupArea *area, uint64_t word)
{
	const GroupTable &table = area->table;
	unsigned long long stored = ~word;
	char	   *first = global_memory(table.rows + table.key_at);
	uint32_t	at = static_cast<uint32_t>(hash_step(0, word) >> area->hash_shift);

	if (stored == 0)
	{
		*reinterpret_cast<unsigned long long *>(first + static_cast<uint64_t>(table.entries) * table.row_bytes) = 1;
		return table.entries;
	}
	for (uint32_t probes = 0; probes < table.probe_limit; probes++)
	{
		unsigned long long *key = reinterpret_cast<unsigned long long *>(first + static_cast<uint64_t>(at) * table.row_bytes);
		unsigned long long seen = *key;

		if (seen == 0)
			seen = atomicCAS(key, 0ull, stored);
		if (seen == 0 || seen == stored)
			return at;
		at = (at + 1) & (table.entries - 1);
	}
	return TARGET_NONE;
}

/* The state of a row whose key has several words; ready states have bit 1 set. */
constexpr uint32_t ROW_BUSY = 1;

GPUVM_HD uint32_t
row_state_at(const GroupTable &table, uint32_t nwords)
{
	return table.key_at + 8 * nwords;
}

/* The same for `nwords` words that lie `stride` bytes apart. */
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

/* The slot of the block's table that belongs to the row, or the row itself. */
GPUVM_D uint32_t
target_of(const GroupArea *area, uint32_t row, uint32_t lane)
{
	const GroupTable &table = area->table;
	uint32_t	replica = lane & ((1u << table.replica_bits) - 1);

	if (table.shared_all)
		return TARGET_SHARED | row << table.replica_bits | replica;
	if (table.shared_slots == 0)
		return row;

	uint32_t	slot = __umulhi(row, table.slot_scale) << table.replica_bits | replica;
	uint32_t   *tag = shared_at<uint32_t>(area->tags_at) + slot;
	uint32_t	owner = *static_cast<volatile uint32_t *>(tag);

	if (owner == TAG_FREE)
	{
		owner = atomicCAS(tag, TAG_FREE, row);
		if (owner == TAG_FREE)
			owner = row;
	}
	return owner == row ? TARGET_SHARED | slot : row;
}

/* -- the block's begin and end ------------------------------------------------------------------ */

GPUVM_D GroupArea *
group_area(const DeviceProgram &p)
{
	return shared_at<GroupArea>(program_bytes(p.nops, p.naux));
}

/* All threads of the block; a block barrier comes behind it. */
GPUVM_D void
begin_groups(const DeviceProgram &p, const GroupTable &table)
{
	GroupArea  *area = group_area(p);
	uint32_t	planes_at = program_bytes(p.nops, p.naux) + static_cast<uint32_t>(sizeof(GroupArea));
	uint32_t	words = p.groups.planes * table.shared_slots;

	if (threadIdx.x == 0)
	{
		area->table = table;
		area->planes_at = planes_at;
		area->plane_bytes = table.shared_slots * 4;
		area->tags_at = planes_at + words * 4;
		area->hash_shift = 64 - (31 - __clz(static_cast<int>(table.entries)));
		area->overflow = table.header->overflow;
		area->key_zeroes = 0;
	}
	for (uint32_t k = threadIdx.x; k < p.groups.nkeys; k += blockDim.x)
		area->keys[k] = p.groups.keys[k];
	/* Slots come in fours. */
	for (uint32_t i = threadIdx.x; i < words / 4; i += blockDim.x)
		shared_at<uint4>(planes_at)[i] = uint4{0, 0, 0, 0};
	if (!table.shared_all)
		for (uint32_t i = threadIdx.x; i < table.shared_slots / 4; i += blockDim.x)
			shared_at<uint4>(planes_at)[words / 4 + i] = uint4{TAG_FREE, TAG_FREE, TAG_FREE, TAG_FREE};
}

/* Adds what slot `slot` and its replicas have of a cell's planes to the global row. */
GPUVM_D void
take_cell(const GroupArea *area, CellKind kind, uint32_t plane, uint32_t slot, uint32_t replicas, char *to)
{
	const uint32_t *low = shared_at<uint32_t>(area->planes_at + plane * area->plane_bytes) + slot;
	const uint32_t *high = low + area->plane_bytes / 4;
	const unsigned long long *whole = shared_at<unsigned long long>(area->planes_at + plane * area->plane_bytes) + slot;
	unsigned long long v = 0;

	for (uint32_t i = 0; i < replicas; i++)
		switch (kind)
		{
			case CellKind::Add32:
				v += low[i];
				break;
			case CellKind::Add64:
				v += low[i] | static_cast<unsigned long long>(high[i]) << 32;
				break;
			case CellKind::Max32:
				v = v > low[i] ? v : low[i];
				break;
			case CellKind::Max64:
				v = v > whole[i] ? v : whole[i];
				break;
			default:
				v |= low[i];
				break;
		}
	if (v == 0)
		return;
	to = global_memory(to);
	switch (kind)
	{
		case CellKind::Add32:
			atomicAdd(reinterpret_cast<uint32_t *>(to), static_cast<uint32_t>(v));
			break;
		case CellKind::Add64:
			atomicAdd(reinterpret_cast<unsigned long long *>(to), v);
			break;
		case CellKind::Max32:
			atomicMax(reinterpret_cast<uint32_t *>(to), static_cast<uint32_t>(v));
			break;
		case CellKind::Max64:
			atomicMax(reinterpret_cast<unsigned long long *>(to), v);
			break;
		case CellKind::Or32:
			atomicOr(reinterpret_cast<uint32_t *>(to), static_cast<uint32_t>(v));
			break;
		default:
			*reinterpret_cast<uint32_t *>(to) = 1;
			break;
	}
}

/* All threads of the block, behind a block barrier. */
GPUVM_D void
end_groups(const DeviceProgram &p, const GroupTable &table)
{
	const GroupArea *area = group_area(p);
	uint32_t	replicas = table.shared_all ? 1u << table.replica_bits : 1;

	if (threadIdx.x == 0)
	{
		if (area->overflow)
			table.header->overflow = 1;
		if (area->key_zeroes)
			atomicOr(&table.header->key_zeroes, area->key_zeroes);
	}

	/* Blocks end at about the same time: each begins elsewhere. */
	uint32_t	n = table.shared_slots / replicas;
	uint32_t	begin = n > 0 ? static_cast<uint32_t>(static_cast<uint64_t>(n) * blockIdx.x / gridDim.x) : 0;

	for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
	{
		uint32_t	slot = (i + begin < n ? i + begin : i + begin - n) * replicas;
		uint32_t	row = table.shared_all ? slot >> table.replica_bits : shared_at<uint32_t>(area->tags_at)[slot];

		if (row == TAG_FREE)
			continue;

		char	   *to = table.rows + static_cast<uint64_t>(row) * table.row_bytes;

		for (int i = 0; i < p.groups.ncells; i++)
		{
			const GroupCell cell = p.groups.cells[i];
			bool		words = cell.kind == CellKind::Wide || cell.kind == CellKind::Limbs;
			int			n = cell.kind == CellKind::Wide ? 2 : cell.kind == CellKind::Limbs ? cell.limbs : 1;

			for (int w = 0; w < n; w++)
				take_cell(area, words ? CellKind::Add64 : cell.kind, cell.place.plane + 2 * w, slot, replicas,
						  to + cell.place.at + 8 * w);
		}
	}
}

}  // namespace cuda
}  // namespace gpuvm

#endif
