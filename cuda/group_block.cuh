/*
 * group_block.cuh: what a block has of a group table in shared memory: from its begin
 * to its end; and the records of rows that reach their groups by partitions (groups.h).
 *
 * A row that is to be a record has a slot of its own in the block's shared table,
 * behind the tagged ones (RECORD_GROUP): its warp's, lane's and place in the tile's. So AggStep adds
 * to it as to any slot, and what it then holds is what the row gives to each cell. The slot's
 * tag is the record's place in the buffers, or TAG_FREE. A slot is only ever touched by
 * its lane; it is written out when the lane comes to the next tile's keys, or when the
 * block ends: whatever became of the row in between, it was in its group.
 *
 * Places are given out without atomics to global memory: each block has a region of its
 * own in each partition, and counts in shared memory. A row that finds its region full
 * adds to its group at once, by a tagged slot if that is its group's: then a group that has
 * most of the rows is as cheap as without partitions.
 */
#ifndef GPUVM_CUDA_GROUP_BLOCK_CUH
#define GPUVM_CUDA_GROUP_BLOCK_CUH

#include "group_table.cuh"

namespace gpuvm {
namespace cuda {

/* -- records of rows ------------------------------------------------------------------- */

/* The partition of a packed key, whose rows one block gathers: all have parts of every range of keys. */
GPUVM_D uint32_t
partition_of(const GroupTable &table, uint32_t key)
{
	return key & ((1u << table.partition_bits) - 1);
}

/* All threads of a block that writes records; its thread 0 has filled the area. */
GPUVM_D void
begin_records(const DeviceProgram &p, GroupArea *area, uint32_t planes_at, uint32_t partition_bits)
{
	const GroupLayout &g = p.groups;
	const uint32_t plane = RECORD_GROUP * 4, planes = record_group_planes(g);
	const uint32_t groups_at = planes_at + (g.planes + 1) * plane, slots = record_slots(p.rows_per_lane);
	const uint32_t counters_at = groups_at + slots * planes * 4;
	uint32_t	n = 1;

	for (uint32_t i = threadIdx.x; i < slots; i += blockDim.x)
	{
		uint32_t   *words = shared_at<uint32_t>(groups_at) + i / RECORD_GROUP * planes * RECORD_GROUP + i % RECORD_GROUP;

		for (uint32_t k = 0; k < planes; k++)
			words[k * RECORD_GROUP] = k < planes - 1 ? 0 : TAG_FREE;
	}
	for (uint32_t i = threadIdx.x; i < 1u << partition_bits; i += blockDim.x)
		shared_at<uint32_t>(counters_at)[i] = 0;
	if (threadIdx.x != 0)
		return;
	area->counters_at = counters_at;
	area->record_tags_at = planes_at + (planes - 1) * plane;
	area->record_group = planes * RECORD_GROUP;
	area->record_from[0] = planes_at + record_planes(g) * plane;
	for (int i = 0; i < g.ncells; i++)
	{
		const GroupCell cell = g.cells[i];

		/* Low words of 64-bit sums lie two planes apart. */
		for (uint32_t w = 0; w < record_words_of(cell); w++)
			area->record_from[n++] = planes_at + (cell.place.plane + (cell.kind == CellKind::Wide ? 2 * w : w)) * plane;
	}
	if (n % 2 != 0)
		area->record_from[n] = area->record_from[0];
}

/* A word of what the slot has; 0 from then on. */
GPUVM_D uint32_t
take_record_word(const GroupArea *area, uint32_t word, uint32_t slot)
{
	uint32_t   *at = shared_at<uint32_t>(area->record_from[word]) + slot;
	const uint32_t v = *at;

	*at = 0;
	return v;
}

/*
 * Four slots of the lane, 32 apart: their records go to the places that the tags say.
 * Slots without a record hold zeroes, so what is conditional are the stores only.
 */
GPUVM_D void
write_records(const GroupArea *area, uint32_t slot)
{
	uint32_t   *tags = shared_at<uint32_t>(area->record_tags_at) + slot;
	char	   *records = global_memory(reinterpret_cast<char *>(area->table.records));
	const uint32_t words = area->table.record_words;
	uint32_t	place[4];

#pragma unroll
	for (int i = 0; i < 4; i++)
	{
		place[i] = tags[32 * i];
		tags[32 * i] = TAG_FREE;
	}
	if (words % 4 == 0)
#pragma unroll 1
		for (uint32_t w = 0; w < words; w += 4)
#pragma unroll
			for (uint32_t i = 0; i < 4; i++)
			{
				const uint32_t at = slot + 32 * i;
				const uint4 v = {take_record_word(area, w, at), take_record_word(area, w + 1, at), take_record_word(area, w + 2, at),
					take_record_word(area, w + 3, at)};

				if (place[i] != TAG_FREE)
					*reinterpret_cast<uint4 *>(records + (static_cast<uint64_t>(place[i]) * words + w) * 4) = v;
			}
	else
#pragma unroll 1
		for (uint32_t w = 0; w < words; w += 2)
#pragma unroll
			for (uint32_t i = 0; i < 4; i++)
			{
				const uint32_t at = slot + 32 * i;
				const uint2 v = {take_record_word(area, w, at), take_record_word(area, w + 1, at)};

				if (place[i] != TAG_FREE)
					*reinterpret_cast<uint2 *>(records + (static_cast<uint64_t>(place[i]) * words + w) * 4) = v;
			}
}

/* The slot of the lane's row `i` (in whatever order) of the tile at hand: the next row's is 32 on, which is the lane's bank. */
GPUVM_D uint32_t
record_slot(const GroupArea *area, uint32_t rows_per_lane, uint32_t i)
{
	const uint32_t n = (threadIdx.x / 32 * rows_per_lane + i) * 32 + threadIdx.x % 32;

	/* The first group lies behind the tags. */
	return (area->tags_at - area->planes_at) / 4 + RECORD_GROUP + n / RECORD_GROUP * area->record_group + n % RECORD_GROUP;
}

/* All threads of the block: the last tiles' records, and how many there are. */
GPUVM_D void
end_records(const GroupArea *area, uint32_t rows_per_lane)
{
	const GroupTable &table = area->table;
	const uint32_t *counters = shared_at<uint32_t>(area->counters_at);

	for (uint32_t i = 0; i < rows_per_lane; i += 4)
		write_records(area, record_slot(area, rows_per_lane, i));
	for (uint32_t i = threadIdx.x; i < 1u << table.partition_bits; i += blockDim.x)
		table.counts[i * table.writers + blockIdx.x] = min(counters[i], table.region_records);
}

/* -- the block's begin and end ------------------------------------------------------------------ */

GPUVM_D GroupArea *
group_area(const DeviceProgram &p)
{
	return shared_at<GroupArea>(program_bytes(p.nops, p.naux));
}

GPUVM_D uint32_t
hash_shift(uint32_t entries)
{
	return 64 - (31 - __clz(static_cast<int>(entries)));
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
		area->hash_shift = hash_shift(table.entries);
		area->overflow = table.header->overflow;
		area->key_zeroes = 0;
	}
	if (table.partition_bits)
		begin_records(p, area, planes_at, table.partition_bits);
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
			case CellKind::Xor32:
				v ^= low[i];
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
		case CellKind::Xor32:
			atomicXor(reinterpret_cast<uint32_t *>(to), static_cast<uint32_t>(v));
			break;
		default:
			*reinterpret_cast<uint32_t *>(to) = 1;
			break;
	}
}

/* The same for all cells. */
GPUVM_D void
take_slot(const GroupLayout &g, const GroupArea *area, uint32_t slot, uint32_t replicas, char *row)
{
	for (int i = 0; i < g.ncells; i++)
	{
		const GroupCell cell = g.cells[i];
		bool		words = cell.kind == CellKind::Wide || cell.kind == CellKind::Limbs;
		int			n = cell.kind == CellKind::Wide ? 2 : cell.kind == CellKind::Limbs ? cell.limbs : 1;

		for (int w = 0; w < n; w++)
			take_cell(area, words ? CellKind::Add64 : cell.kind, static_cast<uint32_t>(cell.place.plane + 2 * w), slot, replicas,
					  row + cell.place.at + 8 * w);
	}
}

/* All threads of the block, behind a block barrier. */
GPUVM_D void
end_groups(const DeviceProgram &p, const GroupTable &table)
{
	const GroupArea *area = group_area(p);
	uint32_t	replicas = table.shared_all ? 1u << table.replica_bits : 1;

	if (table.partition_bits)
		end_records(area, p.rows_per_lane);
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

		take_slot(p.groups, area, slot, replicas, table.rows + static_cast<uint64_t>(row) * table.row_bytes);
	}
}

}  // namespace cuda
}  // namespace gpuvm

#endif
