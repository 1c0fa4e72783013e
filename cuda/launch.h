/*
 * launch.h: binds a lowered program to the device: picks the kernel, sizes its
 * grid, starts it, and reads its outcome back. All functions are asynchronous on
 * the stream unless they say otherwise, and none allocates device memory.
 *
 * A job is a list of pads (TABLET_PAD_ROWS rows of one tablet each), run in one
 * or more slices: launches over a part of the list. What the slices leave on the
 * device is merged from launch to launch:
 *
 *   aggregates without keys   LaunchState.result
 *   groups                    the group table (groups.h)
 *   rows                      nothing: a slice's rows leave by compact_rows()
 */
#ifndef GPUVM_CUDA_LAUNCH_H
#define GPUVM_CUDA_LAUNCH_H

#include <cuda_runtime.h>

#include "device_program.h"
#include "groups.h"
#include "vm/result_layout.h"

namespace gpuvm {
namespace cuda {

/* Scratch of one stream, allocated once. */
struct LaunchScratch
{
	LaunchState *state;			/* device */
	Partial    *partials;		/* device: max_blocks * MAX_AGGS */
	int64_t    *long_aux;		/* device: PROGRAM_MAX_AUX */
	uint32_t	max_blocks;
	DeviceMap	maps[PROGRAM_MAX_MAPS];	/* of the job that has the stream */
	const uint64_t *patterns;	/* device: the same */
	TextKeyTable text_keys;		/* the same */
};

struct LaunchShape
{
	InterpretFn kernel;
	uint32_t	blocks;			/* at most, of the grid */
	uint32_t	blocks_per_sm;
	uint32_t	threads;		/* a block */
	uint32_t	shared_bytes;	/* a block */
	uint32_t	unit_rows;		/* what a warp takes at a time, */
	uint32_t	unit_inner;		/* of a grid: with so many inner rows */
};

cudaError_t create_scratch(LaunchScratch *scratch);
void		destroy_scratch(LaunchScratch *scratch);

/*
 * Block, grid and shared memory for the program on the current device, with
 * `group_bytes` of a block's shared memory for a group table before the
 * warps' regions; cudaErrorInvalidConfiguration if a block does not fit. Cheap:
 * asks the driver only once for each kernel and size. `inner_rows`: of a grid, how
 * many a slice has; a shape is good for slices of other sizes, too.
 */
cudaError_t choose_shape(const DeviceProgram &program, uint64_t npads, LaunchShape *shape, uint32_t group_bytes = 0,
						 uint64_t inner_rows = 0);

/* The kernel's instances, by rows a lane. Those of grids have 64-bit values in any case; `pairs`: for GridPlan.pairs. */
InterpretFn interpreter_4(OpSet set);
InterpretFn interpreter_8(OpSet set);
InterpretFn interpreter_16(OpSet set);
InterpretFn grid_interpreter_8(OpSet set);
InterpretFn grid_interpreter_16(OpSet set);
InterpretFn pairs_interpreter(OpSet set);

/* Makes LaunchState empty: before a job's first slice. */
cudaError_t reset_state(const LaunchScratch &scratch, cudaStream_t stream);

/* The IN lists that operations have no room for: before a job's first slice. */
cudaError_t send_long_lists(const DeviceProgram &program, const LaunchScratch &scratch, cudaStream_t stream);

/*
 * Runs the program over pads [first, first + count) of the table. `abort` is a
 * device word, or nullptr: once it is not 0, warps take no further unit. `rows` is
 * for row programs, `groups` for programs with keys; else nullptr.
 */
struct SliceArgs
{
	DeviceTable table;
	uint32_t	first_pad;
	uint32_t	npads;
	const uint32_t *abort;
	const RowStaging *rows;
	const GroupTable *groups;
	/* grids */
	const DeviceChunk *inner_columns = nullptr;	/* device memory: GridArgs.columns */
	uint32_t	inner_first = 0;
	uint32_t	inner_rows = 0;
	uint32_t   *marks = nullptr;	/* programs that mark */
	PairList	list = {};		/* MarkKind::Listed */
};
constexpr uint64_t MAX_VIRTUAL_PADS = 1 << 19;
constexpr uint64_t MAX_SLICE_PAIRS = uint64_t{1} << 37;
cudaError_t launch_slice(const DeviceProgram &program, const LaunchShape &shape, const LaunchScratch &scratch,
						 const SliceArgs &args, cudaStream_t stream);

/*
 * Rows, in two steps as in the Virginian paper. launch_slice leaves each tile's
 * rows side by side in the staging area, in device memory, one segment a tile, with
 * their number; compact_rows then closes the gaps, and writes whole columns of
 * result rows, coalesced and in row order, to the units' result areas, which are
 * mapped host memory. `outcomes` (mapped too) gets each unit's rows and errors.
 */
struct RowSliceUnit
{
	char	   *area;			/* device address of the result area; result_layout(types, nresults, capacity) */
	uint32_t	first_pad;		/* of the table's list */
	uint32_t	npads;
};

struct UnitOutcome
{
	uint32_t	rows;
	uint32_t	errors;			/* if not 0, the area is unspecified */
};

/* Bytes of staging for a slice of that many pads. */
uint64_t	row_staging_bytes(const DeviceProgram &program, uint64_t npads);
/* Points into `memory`, device memory of row_staging_bytes(), 256-byte aligned; host code only. */
RowStaging	row_staging(const DeviceProgram &program, uint64_t npads, char *memory);
/* No row anywhere: launch_slice() begins with it. */
cudaError_t reset_row_staging(const RowStaging &staging, cudaStream_t stream);
/* `units` is host memory, read before the return; a unit is at most a tablet. Once for a slice's rows. */
cudaError_t compact_rows(const DeviceProgram &program, const RowStaging &staging, uint32_t slice_first_pad,
						 const RowSliceUnit *units, uint32_t nunits, uint32_t capacity, UnitOutcome *outcomes,
						 cudaStream_t stream);

}  // namespace cuda
}  // namespace gpuvm

#endif
