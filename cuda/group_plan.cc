/*
 * group_plan.cc: which table a grouped program gets.
 *
 * Dense if the packed keys are few for the rows that there are: then no key is
 * compared, and emptying and listing the table costs little. The same as bits if there are no aggregates and not
 * room for all groups in shared memory; of bits there may be many more. Otherwise hashed:
 * nothing says how many groups there are, so the first table is small, and one that
 * overflows is replaced by a larger one. Overflows come early: the sixteenth part
 * of the groups of the last table is met in a small part of the rows.
 *
 * By partitions (groups.h) where a dense table is larger than half the L2 cache, which is
 * what a multiprocessor has nearby, and rows so many that they pay for the way round. Measured
 * on an H200, 64 M rows, count and sum: some 2.5 ms to 2 M groups, 3.1 with 5 M; without
 * partitions 2.0 ms with 1 M groups, 3.0 with 2 M, 4.6 with 3 M, 6.3 with 5 M. Hashed
 * tables, where each record has to find its row anyway, gained nothing at any size.
 */
#include <algorithm>

#include "groups.h"

namespace gpuvm {
namespace cuda {

namespace {

constexpr uint64_t DENSE_ALWAYS = 65536;
constexpr uint64_t DENSE_PER_ROW = 4;
/* Emptied and counted at the memory's speed, so many bits take a tenth of what a row of a hashed table takes. */
constexpr uint64_t BITS_PER_ROW = 512;
/*
 * The part of the limit that bits may take where rows would be hashed, in a table that begins small: as many jobs as there
 * are lanes may have some, columns are to stay, and what orders or stores the groups needs memory, too.
 */
constexpr uint64_t BITS_SHARE = 16;
constexpr uint64_t MAX_ENTRIES = (1ull << 31) - 64;	/* the bit above is TARGET_SHARED */

constexpr int FIRST_BITS = 17, BITS_AN_ATTEMPT = 4, MIN_BITS = 10, MAX_BITS = 30;
constexpr uint32_t PROBES = 64;		/* of a table that may be made larger */
constexpr uint32_t PROBES_AT_LAST = 1024;

/* Of a block's shared memory, beside its dynamic part. */
constexpr uint32_t BLOCK_OVERHEAD = 2048;
constexpr uint32_t MAX_RESIDENT = 5;	/* blocks an SM of the kernel that has these operations */

/* Lanes of a warp that add to one address wait for each other. */
constexpr uint32_t REPLICATE_TO = 256;
constexpr uint32_t MAX_REPLICA_BITS = 5;
constexpr uint32_t ENOUGH_BLOCKS = 3;

/* Slots for the first groups that come along, when there are too many for all. */
constexpr uint32_t HOT_SLOTS = 1024;	/* of use only for groups that have many more rows than others */
constexpr uint32_t UNKNOWN_SLOTS = 2048, UNKNOWN_REPLICA_BITS = 2;
constexpr uint32_t LEAST_SLOTS = 256;
/* Rows of a group that a block should meet: what it gathered is then worth adding to the global table. */
constexpr uint64_t WORTH_A_SLOT = 2;

/* Partitions: rows from which on they pay, and how many: enough blocks to gather them, in little memory. */
constexpr uint64_t PARTITION_ROWS = 16'000'000;
constexpr int MIN_PARTITION_BITS = 8, MAX_PARTITION_BITS = 10;
constexpr uint32_t GATHER_BYTES = 64 << 10;
constexpr uint64_t MAX_SLICE_ROWS = 64 << 20, MIN_SLICE_ROWS = 8 << 20;
/* Room in a region beside its share of the rows: a fourth, for blocks that have more units, and for chance. */
constexpr uint64_t REGION_SLACK = 16;
constexpr uint32_t MAX_WRITERS_AN_SM = 8;

struct SharedMemory
{
	uint32_t	sm;				/* bytes a multiprocessor, and at most a block */
	uint32_t	block;
	uint32_t	taken;			/* of a block: operations and regions */
	uint32_t	blocks;			/* resident without a group table */
	uint32_t	sms;
	uint64_t	l2;				/* bytes */
};

bool
shared_memory(const DeviceProgram &program, SharedMemory *shared)
{
	int			device, sm, block, sms, l2;

	if (cudaGetDevice(&device) != cudaSuccess ||
		cudaDeviceGetAttribute(&sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device) != cudaSuccess ||
		cudaDeviceGetAttribute(&block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess ||
		cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device) != cudaSuccess ||
		cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device) != cudaSuccess)
		return false;
	shared->l2 = static_cast<uint64_t>(l2);
	shared->sms = static_cast<uint32_t>(sms);
	shared->sm = static_cast<uint32_t>(sm);
	shared->block = static_cast<uint32_t>(block);
	shared->taken = program_bytes(program.nops, program.naux) + program.region_bytes * BLOCK_WARPS + BLOCK_OVERHEAD;
	shared->blocks = std::min({shared->sm / shared->taken, static_cast<uint32_t>(program.max_blocks), MAX_RESIDENT});
	return true;
}

/* What a group table may have when so many blocks are to be resident; 0: nothing. */
uint32_t
room(const SharedMemory &shared, uint32_t blocks)
{
	uint32_t	block = std::min(shared.sm / blocks, shared.block);

	return block > shared.taken ? block - shared.taken : 0;
}

uint32_t
even(uint64_t slots)
{
	return static_cast<uint32_t>((slots + 3) / 4 * 4);
}

/*
 * All groups in shared memory, as replicated as is of use; false: they do not fit. Lanes that meet in one slot cost
 * more than a block fewer on a multiprocessor, down to ENOUGH_BLOCKS.
 */
bool
share_all(const DeviceProgram &program, const SharedMemory &shared, GroupPlan *plan)
{
	const uint64_t groups = plan->entries;
	const uint32_t planes = program.groups.planes;
	uint32_t	wanted = 0;

	while (wanted < MAX_REPLICA_BITS && groups << wanted < REPLICATE_TO)
		wanted++;
	for (uint32_t blocks = shared.blocks; blocks > 0; blocks--)
	{
		uint32_t	bytes = room(shared, blocks), bits = 0;

		if (groups * planes * 4 > bytes || group_area_bytes(planes, even(groups), false) > bytes)
			continue;
		while (bits < wanted && group_area_bytes(planes, even(groups << (bits + 1)), false) <= bytes)
			bits++;
		if (bits < wanted && blocks > ENOUGH_BLOCKS)
			continue;
		plan->shared_all = true;
		plan->replica_bits = static_cast<uint8_t>(bits);
		plan->shared_slots = even(groups << bits);
		plan->shared_bytes = group_area_bytes(planes, plan->shared_slots, false);
		return true;
	}
	return false;
}

/* Slots for some of them, at most `most`, in what is left of a block's memory when so many are resident. */
void
share_some(const DeviceProgram &program, const SharedMemory &shared, uint32_t blocks, uint64_t most, uint32_t replica_bits, GroupPlan *plan)
{
	const uint32_t planes = program.groups.planes, empty = group_area_bytes(planes, 0, true), unit = 4u << replica_bits;
	uint64_t	slots = 0;

	for (; blocks > 0 && slots < LEAST_SLOTS; blocks--)
	{
		uint32_t	bytes = room(shared, blocks);

		slots = bytes > empty + 128 ? std::min<uint64_t>(most, (bytes - empty - 128) / ((planes + 1) * 4)) / unit * unit : 0;
	}
	if (slots < LEAST_SLOTS)
		slots = 0;
	plan->shared_slots = static_cast<uint32_t>(slots);
	plan->replica_bits = static_cast<uint8_t>(slots > 0 ? replica_bits : 0);
	plan->shared_bytes = group_area_bytes(planes, plan->shared_slots, true);
}

/* Of a dense table that is too large to be shared: as many slots as there is room for, if groups have rows enough. */
void
share_dense(const DeviceProgram &program, const SharedMemory &shared, uint64_t total_rows, GroupPlan *plan)
{
	if (total_rows / plan->entries >= WORTH_A_SLOT * shared.sms)
		share_some(program, shared, 1, plan->entries, 0, plan);
	else
		share_some(program, shared, std::max(1u, shared.blocks), HOT_SLOTS, 0, plan);
}

/* The row's own sector of memory, if it is small enough for one. */
uint32_t
padded_row(uint32_t bytes)
{
	return bytes <= 8 ? 8 : bytes <= 16 ? 16 : bytes <= 32 ? 32 : (bytes + 7) / 8 * 8;
}

uint64_t
list_at(const GroupPlan &plan)
{
	if (plan.kind == GroupTableKind::Bits)
		return align_up(align_up(sizeof(GroupHeader), 256) + bitmap_words(plan.entries) * sizeof(uint32_t), 256);

	uint64_t	rows = plan.entries + (plan.kind == GroupTableKind::Hashed ? 1ull : 0);

	return align_up(align_up(sizeof(GroupHeader), 256) + rows * plan.row_bytes, 256);
}

uint64_t
unpartitioned_bytes(const GroupPlan &plan)
{
	return list_at(plan) + plan.listed * sizeof(uint32_t);
}

/* False: it does not fit `limit`. */
bool
size_table(GroupPlan *plan, uint64_t entries, uint64_t total_rows, uint64_t limit)
{
	uint64_t	rows = entries + (plan->kind == GroupTableKind::Hashed ? 1 : 0);
	uint64_t	listed = std::max<uint64_t>(1, std::min(rows, total_rows));

	plan->entries = static_cast<uint32_t>(entries);
	plan->listed = static_cast<uint32_t>(listed);
	plan->table_bytes = unpartitioned_bytes(*plan);
	return plan->table_bytes <= limit;
}

/* The largest table for that many overflows; false: there is none. */
bool
size_hashed(const DeviceProgram &program, uint64_t total_rows, uint64_t limit, int attempt, GroupPlan *plan)
{
	const GroupLayout &g = program.groups;
	uint64_t	most = g.radix != 0 ? std::min(g.radix, total_rows) : total_rows;
	int			last = MIN_BITS, bits;

	while (last < MAX_BITS && 1ull << last < 2 * most)
		last++;
	bits = std::min(last, FIRST_BITS + BITS_AN_ATTEMPT * attempt);
	while (bits >= MIN_BITS && !size_table(plan, 1ull << bits, total_rows, limit))
		bits--;
	/* At most half full: then there is a place for every key. */
	plan->probe_limit = 1ull << bits >= 2 * most ? 1u << bits : bits < std::min(last, FIRST_BITS + BITS_AN_ATTEMPT * attempt) ? PROBES_AT_LAST : PROBES;
	return bits >= MIN_BITS;
}

/* A partition's rows of the table. */
uint64_t
partition_rows(const GroupPlan &plan, int bits)
{
	return (plan.entries + (1ull << bits) - 1) >> bits;
}

/* Partitions where they pay, or as they are wanted. */
void
choose_partitions(const DeviceProgram &program, const SharedMemory &shared, uint64_t total_rows, uint64_t limit, int bits, GroupPlan *plan)
{
	uint64_t	rows = std::min(total_rows, MAX_SLICE_ROWS);
	GroupPlan	partitioned;

	if (bits == PARTITIONS_THAT_PAY)
	{
		if (total_rows < PARTITION_ROWS || static_cast<uint64_t>(plan->entries) * plan->row_bytes <= shared.l2 / 2)
			return;
		for (bits = MIN_PARTITION_BITS; bits < MAX_PARTITION_BITS && partition_rows(*plan, bits) * program.groups.planes * 4 > GATHER_BYTES;)
			bits++;
	}
	for (;; rows /= 2)
	{
		partitioned = *plan;
		if (!partition_groups(program, bits, rows, &partitioned))
			return;
		if (partitioned.table_bytes <= limit)
			break;
		if (rows / 2 < MIN_SLICE_ROWS)
			return;
	}
	*plan = partitioned;
}

/* Is all that the program asks of a group whether it is there? */
bool
only_marks(const GroupLayout &g)
{
	return g.nkeys > 0 && g.ncells == 1 && g.cells[0].kind == CellKind::Mark;
}

/* A bit for every packed key instead; false, and the plan as it was: they do not fit `limit`. */
bool
size_bits(const GroupLayout &g, uint64_t total_rows, uint64_t limit, GroupPlan *plan)
{
	GroupPlan	bits = {};

	bits.kind = GroupTableKind::Bits;
	bits.shared_bytes = group_area_bytes(g.planes, 0, true);
	if (!size_table(&bits, g.radix, total_rows, limit))
		return false;
	*plan = bits;
	return true;
}

}  // namespace

bool
partition_groups(const DeviceProgram &program, int bits, uint64_t slice_rows, GroupPlan *plan)
{
	const GroupLayout &g = program.groups;
	GroupPlan	p = *plan;
	SharedMemory shared;

	if (g.nkeys == 0 || plan->kind != GroupTableKind::Dense || record_words(g) > MAX_RECORD_WORDS || !shared_memory(program, &shared))
		return false;
	while (bits > 0 && p.entries >> bits == 0)
		bits--;
	if (bits == 0)
		return false;
	p.partition_bits = static_cast<uint8_t>(bits);
	p.shared_all = false;
	p.replica_bits = 0;
	p.shared_slots = RECORD_GROUP;	/* for groups with so many rows that their partitions are full */
	p.shared_bytes = record_area_bytes(g, program.rows_per_lane, p.partition_bits);
	p.gather_slots = even(partition_rows(p, bits));
	p.gather_bytes = group_area_bytes(g.planes, p.gather_slots, false);
	p.most_writers = shared.sms * std::min<uint32_t>(program.max_blocks, MAX_WRITERS_AN_SM);
	p.max_slice_rows = slice_rows;
	p.buffer_records = slice_rows + slice_rows / 4 + (static_cast<uint64_t>(p.most_writers) << bits) * REGION_SLACK;
	if (p.shared_bytes > room(shared, 1) || p.gather_bytes + BLOCK_OVERHEAD > shared.block || p.buffer_records >= UINT32_MAX)
		return false;
	p.table_bytes = align_up(unpartitioned_bytes(p), 256) + align_up((static_cast<uint64_t>(p.most_writers) << bits) * sizeof(uint32_t), 256) +
		p.buffer_records * record_words(g) * sizeof(uint32_t);
	*plan = p;
	return true;
}

const char *const GROUPS_NO_MEMORY = "the device has not enough memory for the groups";

const char *
plan_groups(const DeviceProgram &program, uint64_t total_rows, uint64_t limit, int attempt, GroupPlan *plan, int partition_bits)
{
	const GroupLayout &g = program.groups;
	const bool	dense = g.nkeys == 0 || (g.radix != 0 && g.radix <= std::max(DENSE_ALWAYS, DENSE_PER_ROW * total_rows) && g.radix <= MAX_ENTRIES);
	SharedMemory shared;

	if (!shared_memory(program, &shared))
		return "the device does not say how much shared memory it has";
	*plan = GroupPlan{};
	plan->row_bytes = padded_row(g.row_bytes);
	if (dense && size_table(plan, g.nkeys == 0 ? 1 : g.radix, total_rows, limit))
	{
		if (plan->entries <= 1 && !share_all(program, shared, plan))
			plan->shared_bytes = group_area_bytes(g.planes, 0, true);
		else if (plan->entries > 1 && (partition_bits > 0 || !share_all(program, shared, plan)))
		{
			if (only_marks(g) && size_bits(g, total_rows, limit, plan))
				return nullptr;
			share_dense(program, shared, total_rows, plan);
			if (partition_bits != 0)
				choose_partitions(program, shared, total_rows, limit, partition_bits, plan);
		}
		return nullptr;
	}
	/* A join's bound of its rows may be 2^62: it is not to be multiplied. */
	if (only_marks(g) && g.radix != 0 && g.radix <= MAX_ENTRIES && (g.radix <= DENSE_ALWAYS || g.radix / BITS_PER_ROW <= total_rows) &&
		size_bits(g, total_rows, limit / BITS_SHARE, plan))
		return nullptr;

	plan->kind = GroupTableKind::Hashed;
	plan->key_at = g.row_bytes;
	plan->row_bytes = padded_row(g.row_bytes + 8u * g.nwords + (g.nwords > 1 ? 8 : 0));

	GroupPlan	before = *plan;

	if (!size_hashed(program, total_rows, limit, attempt, plan))
		return GROUPS_NO_MEMORY;
	if (attempt > 0 && size_hashed(program, total_rows, limit, attempt - 1, &before) && before.entries == plan->entries)
		return GROUPS_NO_MEMORY;
	if (attempt == 0)
		share_some(program, shared, std::max(1u, shared.blocks), UNKNOWN_SLOTS, UNKNOWN_REPLICA_BITS, plan);
	else
		share_some(program, shared, std::max(1u, shared.blocks), HOT_SLOTS, 0, plan);
	return nullptr;
}

GroupTable
group_table(const DeviceProgram &program, const GroupPlan &plan, char *memory)
{
	GroupTable	t = {};

	t.kind = plan.kind;
	t.shared_all = plan.shared_all;
	t.replica_bits = plan.replica_bits;
	t.entries = plan.entries;
	t.row_bytes = plan.row_bytes;
	t.key_at = plan.key_at;
	t.probe_limit = plan.probe_limit;
	t.shared_slots = plan.shared_slots;
	t.slot_scale = static_cast<uint32_t>(std::min<uint64_t>((static_cast<uint64_t>(plan.shared_slots >> plan.replica_bits) << 32) / (plan.entries + 1ull),
															UINT32_MAX));
	t.shared_bytes = plan.shared_bytes;
	t.header = reinterpret_cast<GroupHeader *>(memory);
	t.rows = memory + align_up(sizeof(GroupHeader), 256);
	t.list = reinterpret_cast<uint32_t *>(memory + list_at(plan));
	t.partition_bits = plan.partition_bits;
	if (plan.partition_bits == 0)
		return t;
	t.record_words = record_words(program.groups);
	t.gather_slots = plan.gather_slots;
	t.gather_bytes = plan.gather_bytes;
	t.most_writers = plan.most_writers;
	t.buffer_records = plan.buffer_records;
	t.counts = reinterpret_cast<uint32_t *>(memory + align_up(unpartitioned_bytes(plan), 256));
	t.records = t.counts + align_up((static_cast<uint64_t>(plan.most_writers) << plan.partition_bits) * sizeof(uint32_t), 256) / sizeof(uint32_t);
	return t;
}

cudaError_t
reset_groups(const DeviceProgram &, const GroupTable &table, cudaStream_t stream)
{
	char	   *memory = reinterpret_cast<char *>(table.header);

	return cudaMemsetAsync(memory, 0, static_cast<size_t>(reinterpret_cast<char *>(table.list) - memory), stream);
}

}  // namespace cuda
}  // namespace gpuvm
