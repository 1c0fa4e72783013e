/*
 * row_set.h: row sets: what goes from one stage of a join to the next. Whole columns
 * in device memory, values as wide as PostgreSQL has them (int2: 2 bytes), so that a
 * row set is to the interpreter a table of one tablet whose columns have base 0.
 *
 * Rows come from row programs: launch_slice() leaves them in a RowStaging (launch.h),
 * append_rows() puts them behind those that the row set has, in order. How many it has
 * stands in a device word, so slices may be enqueued one behind the other and the host
 * need look only once.
 *
 * All functions are asynchronous on the stream, and none allocates device memory. Where they
 * leave something for the host, it is copied to `outcome` with cudaMemcpyDefault when the stream gets
 * there: pinned host memory, or any device memory.
 */
#ifndef GPUVM_CUDA_ROW_SET_H
#define GPUVM_CUDA_ROW_SET_H

#include <cuda_runtime.h>

#include "device_program.h"

namespace gpuvm {
namespace cuda {

/* No row: what a row without a partner is paired with. */
constexpr uint32_t NO_ROW = 0xffffffff;

/* Rows that a row set, or a list of pairs, may have: CUB counts in int. */
constexpr uint32_t ROW_SET_MAX_ROWS = (1u << 31) - 2 * TABLET_PAD_ROWS;

/* Values begin at a multiple of 256 bytes, bitmaps too; the memory is there for `capacity` rows. */
struct RowColumn
{
	char	   *values;			/* type_natural_width(type) bytes each */
	uint32_t   *nulls;			/* bitmap, bit i of word i / 32; nullptr: none is null */
	Type		type;
};

/* Written by the device, zeroed by reset_rows(). */
struct RowSetState
{
	uint32_t	nrows;			/* that the row set has */
	uint32_t	errors;			/* ErrorBits of all slices appended so far */
	uint32_t	full;			/* not 0: a slice found no room. It and all behind it were not appended, wholly */
	uint32_t	blocks_done;	/* 0 between launches */
	uint64_t	wanted;			/* nrows, and the rows of slices that found no room */
};

struct RowSet
{
	RowColumn	column[PROGRAM_MAX_COLUMNS];
	uint32_t	ncolumns;
	uint32_t	capacity;		/* a multiple of TABLET_PAD_ROWS, at most ROW_SET_MAX_ROWS */
	RowSetState *state;			/* device */
};

/*
 * Bytes of a row set's memory, its state included. `nullable`: bit i is column i's. The
 * capacity is rounded up to whole pads.
 */
uint64_t	row_set_bytes(const Type *types, const uint8_t *nullable, uint32_t ncolumns, uint64_t capacity);
/* Points into `memory`, device memory of row_set_bytes(), 256-byte aligned; host code only. */
RowSet		row_set(const Type *types, const uint8_t *nullable, uint32_t ncolumns, uint64_t capacity, char *memory);

/* The same for the results of a lowered row program (result_type, result_nullable). */
uint64_t	row_set_bytes(const DeviceProgram &program, uint64_t capacity);
RowSet		row_set(const DeviceProgram &program, uint64_t capacity, char *memory);

/* No rows: before the first append. */
cudaError_t reset_rows(const RowSet &rows, cudaStream_t stream);

/*
 * Appends what launch_slice() left of `npads` pads (from the staging area's begin; of a
 * grid launch: virtual pads) of the row program whose results the row set's columns
 * are. `temp`: device memory of append_temp_bytes() for as many pads, free again when the stream has got
 * there. `outcome`, unless nullptr: the state behind it.
 */
uint64_t	append_temp_bytes(const DeviceProgram &program, uint64_t npads);
cudaError_t append_rows(const DeviceProgram &program, const RowStaging &staging, uint64_t npads, const RowSet &rows, char *temp,
						RowSetState *outcome, cudaStream_t stream);

/*
 * Instead of both: a launch's rows go straight behind those that the row set has, in any order. There has to be room for all; else `full` is set. Errors
 * are LaunchState's. Not for every program: results may be wider than a row set's columns. `memory`: straight_bytes().
 */
bool		takes_rows_straight(const DeviceProgram &program);
uint64_t	straight_bytes(const DeviceProgram &program, uint64_t npads);
RowStaging	straight_to(const DeviceProgram &program, uint64_t npads, const RowSet &rows, char *memory);

/*
 * Copies the first `nrows` rows and the state, less `full` and what `full` counted, to an
 * empty (reset_rows()) larger row set of the same columns, so that slices that found no room can be appended there.
 */
cudaError_t move_rows(const RowSet &from, uint32_t nrows, const RowSet &to, cudaStream_t stream);

/* The columns as a tablet's chunks, as many as there are: host code, to be copied to where DeviceTable.chunks points. */
inline DeviceChunk
row_set_chunk(const RowColumn &column)
{
	return DeviceChunk{reinterpret_cast<uint64_t>(column.values), reinterpret_cast<uint64_t>(column.nulls), 0,
		static_cast<uint32_t>(type_natural_width(column.type)), 0};
}

}  // namespace cuda
}  // namespace gpuvm

#endif
