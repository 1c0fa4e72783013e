/*
 * groups.h: aggregation with and without keys, host side: which table a program
 * gets, its memory, and the way from what it holds to result rows.
 *
 * Every aggregate is one or more cells: words that additions, maxima or ORs go
 * into, in any order with the same bits, and 0 is neutral for all. A group table
 * is an array of rows of cells:
 *
 *   Dense     the packed key is the row's number
 *   Hashed    open addressing over packed keys, which lie in the rows; full means
 *             `overflow`, and the job starts again with a larger table
 *   Bits      without aggregates: the packed key is the number of a bit, which says that
 *             the group is there; a table has no rows
 *
 * A block has a table of its own in shared memory for all groups or for those that
 * it meets first, added to the global one when it ends: see group_table.cuh.
 *
 * Partitions. Where a dense table is larger than the L2 cache nearby a row costs what an
 * atomic to memory costs. With many rows they then
 * take a way round that is all streams: the interpreter writes what each row gives
 * the cells as a record to its key's partition (group_block.cuh); when the launch has
 * ended, a second kernel (partitions.cu) lets a block gather each partition in shared
 * memory, which has room for its groups, and add them to the table once. The table is the
 * same, as is everything that comes behind. Partitions are low bits of the
 * rows' numbers, so that no range of keys has more rows than others. The buffers have room for
 * `max_slice_rows` rows that are spread evenly; rows beyond that, as those of a group that
 * has most of the rows, go to the table at once, so no launch is too large.
 *
 * A packed key is one or more 64-bit words of mixed radix digits of the keys'
 * values less their minimum, nulls being a digit's last value.
 *
 * Without keys there is a table, of one row, only if the lanes' accumulators
 * cannot hold the aggregates (float sums of a wide range).
 */
#ifndef GPUVM_CUDA_GROUPS_H
#define GPUVM_CUDA_GROUPS_H

#include <cuda_runtime.h>

#include "device_program.h"
#include "row_set.h"
#include "vm/result_layout.h"

namespace gpuvm {
namespace cuda {

inline bool
uses_group_table(const DeviceProgram &program)
{
	return program.groups.row_bytes != 0;
}

/* Of GroupTableKind::Bits. */
GPUVM_HD constexpr uint64_t
bitmap_words(uint32_t entries)
{
	return (entries + 31ull) / 32;
}

struct GroupPlan
{
	GroupTableKind kind;
	bool		shared_all;		/* these as in GroupTable */
	uint8_t		replica_bits;
	uint32_t	entries;
	uint32_t	row_bytes;
	uint32_t	key_at;
	uint32_t	probe_limit;
	uint32_t	shared_slots;
	uint32_t	shared_bytes;	/* of a block, beside what the LaunchShape says */
	uint32_t	listed;			/* groups that there is a list for */
	uint64_t	table_bytes;	/* device memory, the list and the partitions' buffers included */

	uint8_t		partition_bits;	/* 2^partition_bits partitions; 0: none */
	uint32_t	gather_slots;	/* these as in GroupTable */
	uint32_t	gather_bytes;
	uint32_t	most_writers;
	uint64_t	buffer_records;
	uint64_t	max_slice_rows;	/* that a launch should have; 0: any number */
};

/*
 * Chooses the table within `limit` bytes for at most `total_rows` rows, on the
 * current device. `attempt` counts overflows so far: each gets a larger table.
 * `partition_bits` is for experiments and tests: as many where it is possible at all.
 * nullptr, or why not.
 */
constexpr int PARTITIONS_THAT_PAY = -1;
extern const char *const GROUPS_NO_MEMORY;	/* what it returns where the limit is too small */
const char *plan_groups(const DeviceProgram &program, uint64_t total_rows, uint64_t limit, int attempt, GroupPlan *plan,
						int partition_bits = PARTITIONS_THAT_PAY);

/*
 * Adds partitions to a plan of a dense table, with buffers for slices of so many rows.
 * False: the program or the device is not fit for it, and the plan is as it was.
 */
bool		partition_groups(const DeviceProgram &program, int bits, uint64_t slice_rows, GroupPlan *plan);

/* Points into `memory`, device memory of plan.table_bytes; host code only. */
GroupTable	group_table(const DeviceProgram &program, const GroupPlan &plan, char *memory);

/* Empties the table: before a job's first slice. */
cudaError_t reset_groups(const DeviceProgram &program, const GroupTable &table, cudaStream_t stream);

/* Behind a launch of the interpreter, of launch_slice() only: adds the records that it left to the table. */
cudaError_t gather_partitions(const DeviceProgram &program, const GroupTable &table, const LaunchState *state, const uint32_t *abort,
							  cudaStream_t stream);

/*
 * After the last slice: lists the groups that there are; without a list (nullptr) counts them only. *outcome is
 * mapped host memory, valid when the stream gets there.
 */
struct GroupOutcome
{
	uint64_t	ngroups;
	uint32_t	errors;			/* ErrorBits of the rows and of ending the aggregates */
	uint32_t	overflow;		/* the table was too small: nothing else is valid */
};
cudaError_t finish_groups(const DeviceProgram &program, const GroupTable &table, const LaunchState *state,
						  GroupOutcome *outcome, cudaStream_t stream);

/* Result rows of groups [from, from + n) to a mapped result area. */
cudaError_t emit_groups(const DeviceProgram &program, const GroupTable &table, uint64_t from, uint32_t n, char *area,
						uint32_t capacity, cudaStream_t stream);

/*
 * All n groups to the row set, whose columns are as the results, and which has room for them; its state is left as it is.
 */
cudaError_t store_groups(const DeviceProgram &program, const GroupTable &table, uint32_t n, const RowSet &rows, cudaStream_t stream);

/*
 * Without keys, on the host, from a copy of the state: the one result row.
 * Returns the ErrorBits; if not 0 the area is unspecified.
 */
uint32_t	emit_aggregates(const DeviceProgram &program, const LaunchState &state, uint64_t rows_taken, char *area, uint32_t capacity);

}  // namespace cuda
}  // namespace gpuvm

#endif
