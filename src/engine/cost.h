/*
 * cost.h: what a job will take on the CPU virtual machine, to be held against a
 * device's own estimate.
 *
 * The figures are those of docs/benchmarks.md, of two machines that agree well
 * enough: counted filters over 8 M rows read 8 to 22 GB/s a thread (2 and 16
 * threads), small group-bys add 1.5 ns a row and thread (52 groups on 2 threads,
 * 6.8 ms), and inviting the pool costs what is left of the shortest queries on
 * 16 threads.
 */
#ifndef GPUVM_ENGINE_COST_H
#define GPUVM_ENGINE_COST_H

#include <cstdint>

namespace gpuvm {

/* Larger jobs are helped with by the pool's threads. */
constexpr uint64_t HELP_ROWS = 64 * 1024;

constexpr uint64_t CPU_START_NS = 5000;
constexpr uint64_t CPU_HELP_NS = 60000;
constexpr double CPU_BYTES_PER_NS = 10;
constexpr double CPU_OP_NS_PER_ROW = 0.1;	/* TPC-H Q6 and Q1 at scale 10 */
constexpr double CPU_GROUP_NS_PER_ROW = 1.5;

inline bool
is_helped(uint64_t rows, uint64_t pairs, uint32_t threads)
{
	return (rows > HELP_ROWS || pairs > HELP_ROWS) && threads > 1;
}

/* Expected ns of a job that reads so many rows and bytes, in a program of so many operations, with at most so many threads. */
inline uint64_t
cpu_estimate(uint64_t rows, uint64_t bytes, int nops, bool grouped_by_keys, uint32_t threads)
{
	bool		helped = is_helped(rows, 0, threads);
	double		work = static_cast<double>(bytes) / CPU_BYTES_PER_NS + static_cast<double>(rows) * nops * CPU_OP_NS_PER_ROW;

	if (grouped_by_keys)
		work += static_cast<double>(rows) * CPU_GROUP_NS_PER_ROW;
	return CPU_START_NS + (helped ? CPU_HELP_NS : 0) + static_cast<uint64_t>(work / (helped ? threads : 1));
}

/* A thread's: a row into a hash table or looked up there, a pair that is found; a pair of a nested loop. */
constexpr double CPU_JOIN_NS_PER_ROW = 8;
constexpr double CPU_JOIN_NS_PER_PAIR = 1.5;
constexpr double CPU_CROSS_NS_PER_PAIR = 0.1;

/* The same of a join of so many rows, of all cursors; `crosses`: it has a nested loop. */
inline uint64_t
cpu_join_estimate(uint64_t rows, uint64_t pairs, bool crosses, uint32_t threads)
{
	double		work = static_cast<double>(rows) * CPU_JOIN_NS_PER_ROW +
		static_cast<double>(pairs) * (crosses ? CPU_CROSS_NS_PER_PAIR : CPU_JOIN_NS_PER_PAIR);
	bool		helped = is_helped(rows, pairs, threads);

	return CPU_START_NS + (helped ? CPU_HELP_NS : 0) + static_cast<uint64_t>(work / (helped ? threads : 1));
}

/* A thread's: a row that is sorted, its way into a result buffer included; one that is held against the last of a few that are wanted. */
constexpr double CPU_SORT_NS_PER_ROW = 35;
constexpr double CPU_TOP_NS_PER_ROW = 2;
constexpr uint64_t CPU_TOP_ROWS = 64 * 1024;	/* greater limits sort all */

/* A result set that a device has comes over the bus, into memory that is not pinned. */
constexpr double SET_BYTES_PER_NS = 6;

/* What is to be added for an order. */
inline uint64_t
cpu_sort_estimate(uint64_t rows, uint64_t limit, uint32_t threads)
{
	const double each = limit > 0 && limit <= CPU_TOP_ROWS ? CPU_TOP_NS_PER_ROW : CPU_SORT_NS_PER_ROW;

	return static_cast<uint64_t>(static_cast<double>(rows) * each / (rows > HELP_ROWS ? threads : 1));
}

}  // namespace gpuvm

#endif
