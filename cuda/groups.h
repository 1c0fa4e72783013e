/*
 * groups.h: aggregation with and without keys, host side: which table a program
 * gets, its memory, and the way from what it holds to result rows.
 *
 * Every aggregate is one or more cells: words that additions, minima, maxima or
 * ORs go into, in any order with the same bits. A group table is an array for
 * each cell, indexed by group number:
 *
 *   Dense     the packed key is the group number. Small tables are gathered in
 *             shared memory, replicated against conflicts, and added to the
 *             global one when a block ends
 *   Hashed    open addressing over packed keys; full means `overflow`, and the
 *             job starts again with a larger table
 *
 * A packed key is one or more 64-bit words of mixed radix digits of the keys'
 * values less their minimum, nulls being a digit's last value.
 */
#ifndef GPUVM_CUDA_GROUPS_H
#define GPUVM_CUDA_GROUPS_H

#include <cuda_runtime.h>

#include "device_program.h"
#include "vm/result_layout.h"

namespace gpuvm {
namespace cuda {

struct GroupPlan
{
	GroupTableKind kind;
	uint64_t	entries;		/* of the table */
	uint64_t	table_bytes;	/* device memory, scratch for group_count() and emit_groups() included */
	uint32_t	shared_bytes;	/* of a block, beside what the LaunchShape says; 0: no table there */
	uint32_t	replicas;
};

/*
 * Chooses the table within `limit` bytes for at most `total_rows` rows. `attempt`
 * counts overflows so far: each gets a larger table. nullptr, or why not.
 */
const char *plan_groups(const DeviceProgram &program, uint64_t total_rows, uint64_t limit, int attempt, GroupPlan *plan);

/* Points into `memory`, device memory of plan.table_bytes; host code only. */
GroupTable	group_table(const DeviceProgram &program, const GroupPlan &plan, char *memory);

/* Empties the table: before a job's first slice. */
cudaError_t reset_groups(const DeviceProgram &program, const GroupTable &table, cudaStream_t stream);

/*
 * After the last slice: lists the groups that there are. *outcome is mapped host
 * memory, valid when the stream gets there.
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
 * Without keys, on the host, from a copy of the state: the one result row.
 * Returns the ErrorBits; if not 0 the area is unspecified.
 */
uint32_t	emit_aggregates(const DeviceProgram &program, const LaunchState &state, uint64_t rows_taken, char *area, uint32_t capacity);

}  // namespace cuda
}  // namespace gpuvm

#endif
