/*
 * cost.h: what things cost on a device, to size slices and to choose between
 * engines. Measured on an H200 behind PCIe 5 (docs/benchmarks.md, the engine
 * experiments); others are of the same order. Slices correct themselves by what they take;
 * the choice of the engine only needs to be right where it matters much.
 */
#ifndef GPUVM_CUDA_COST_H
#define GPUVM_CUDA_COST_H

#include "device_program.h"

namespace gpuvm {
namespace cuda {

/* Bytes a ns, which is GB/s. HBM reads at 4,560 if nothing else is done. */
constexpr double LOCAL_BYTES_NS = 2500;
constexpr double MAPPED_BYTES_NS = 45;	/* reads over the bus: 51 measured */
constexpr double COPY_BYTES_NS = 45;	/* copies to the device: 55.6 measured */
constexpr double RESULT_BYTES_NS = 40;	/* result rows over the bus: 53 measured */

/*
 * What is copied to be kept will be read again: the job that comes first pays a part
 * only, or it would go to the CPU, like the next one, and the columns never come.
 */
constexpr double KEPT_SHARE = 0.25;

constexpr double JOB_NS = 30'000;	/* a job without data: launch, wait, and the way through gpuvmd */
constexpr double OP_ROW_NS = 0.001;	/* an operation for one row: 60 opcodes took 4.5 T rows/s by 1.3 */
constexpr double GROUP_ROW_NS = 0.03;	/* finding a group in a table in device memory: 34 to 49 G rows/s */
constexpr double TEXT_KEY_ROW_NS = 0.1;	/* a value of variable length is found in the job's table: its bytes are read, and those of one like it */
constexpr double GROUP_JOB_NS = 40'000;	/* emptying the table, listing its groups */
constexpr double DEAD_JOB_NS = 8'000;	/* marking dead rows: memory for the bits, a description of its own, a kernel */
constexpr double DELTA_JOB_NS = 5'000;	/* rows that come with the job: a kernel's wait for the bus */

/* An order: steps that are waited for; a row that is collected, and, with no limit, sorted and gathered. */
constexpr double SORT_JOB_NS = 100'000;
constexpr double SORT_ROW_NS = 0.04;
constexpr double SORTED_ROW_NS = 0.4;

/* Joins: steps that are waited for, a level; a row that is collected or put into a table; pairs of Seek and Cross, their operations included. */
constexpr double JOIN_JOB_NS = 120'000;
constexpr double JOIN_ROW_NS = 0.03;
constexpr double PAIR_NS = 0.03;
constexpr double CROSS_PAIR_NS = 0.002;

/* A slice: short enough for a canceled job to end soon, long enough for launching it not to matter. */
constexpr double SLICE_NS = 4e6;

/* Of so many bytes that are read, here and over the bus. */
inline double
bytes_ns(double local, double mapped)
{
	return local / LOCAL_BYTES_NS + mapped / MAPPED_BYTES_NS;
}

/* Of kernels that read so many bytes in so many rows. */
inline double
kernel_ns(const DeviceProgram &program, double rows, double local, double mapped, bool keys)
{
	return bytes_ns(local, mapped) + rows * (program.nops * OP_ROW_NS + (keys ? GROUP_ROW_NS : 0));
}

}  // namespace cuda
}  // namespace gpuvm

#endif
