/*
 * window_kernels.h: window functions (vm/window.h) over the rows of a sorted set, step by step; job_window.h takes them.
 *
 * Rows that begin a partition, or a group of peers, are bits that are numbered, and listed: so whatever a row's
 * partition is, where it begins and ends is looked up. Frames are columns of row numbers. An argument becomes what
 * answers for any frame: bits that are numbered (counts), sums before each row, least keys since the partition's first row, or, for frames
 * whose heads move, a tree of them. Every function is then a launch of its own, a thread a row.
 *
 * All functions are asynchronous on the stream, and none allocates device memory.
 */
#ifndef GPUVM_CUDA_WINDOW_KERNELS_H
#define GPUVM_CUDA_WINDOW_KERNELS_H

#include "engine/abi.h"
#include "pairs.h"
#include "row_set.h"
#include "vm/window_rules.h"

namespace gpuvm {
namespace cuda {

/* ---- bits of rows --------------------------------------------------------------------- */

struct WindowBits
{
	uint32_t   *bits;			/* nullptr: there are none */
	uint32_t   *before;			/* how many are set before each word */
};

/* Memory of the bits of so many rows, numbered; they are there at once, but written by one of the next functions. */
uint64_t	window_bits_bytes(uint32_t n);
WindowBits	window_bits(uint32_t n, char *memory);
cudaError_t number_window_bits(const WindowBits &bits, uint32_t n, cudaStream_t stream);

/* ---- partitions, peers and frames ------------------------------------------------------- */

struct WindowStarts
{
	WindowBits	bits;			/* of rows that begin one */
	uint32_t   *rows;			/* these; nullptr: nothing asks */
};

struct WindowKeyColumns
{
	RowColumn	column[JOB_MAX_ORDER];
	WindowRanks ranks[JOB_MAX_ORDER];	/* no values: there are none */
	uint32_t	npartition;
	uint32_t	n;
};

/* peers without rows: they are not looked for. */
cudaError_t find_window_starts(const WindowKeyColumns &keys, uint32_t n, const WindowStarts &parts, const WindowStarts &peers, cudaStream_t stream);

struct WindowRows
{
	uint32_t	n;
	WindowStarts parts, peers;
	uint32_t   *heads, *tails;	/* frames; nullptr: nothing asks */
};

/* An end of the frames. */
struct WindowBoundary
{
	FrameMode	mode;
	FrameBound	bound;
	int64_t		offset;
	WindowRange range;			/* RANGE with an offset: of this column */
	RowColumn	column;
};

/* ErrorBits are added to *errors. */
cudaError_t find_window_frames(const WindowRows &rows, const WindowBoundary &start, const WindowBoundary &end, uint32_t *errors, cudaStream_t stream);

/* ---- arguments ---------------------------------------------------------------------------- */

/* Whose rows count: the column is not null, and the filter true; without values there is none. */
struct WindowArgumentColumns
{
	RowColumn	column, high, filter;
	WindowRanks ranks;

	bool		counts_all() const { return filter.values == nullptr && (column.values == nullptr || column.nulls == nullptr); }
};

/* Rows that count, and, if it says so, are true. */
cudaError_t mark_window_rows(const WindowArgumentColumns &argument, bool truth, uint32_t n, const WindowBits &bits, cudaStream_t stream);

/* sums[i]: of rows before i, i <= n; of int128, if it says so, else int64_t. `temp`: window_sums_temp_bytes() of a fresh memory. */
uint64_t	window_sums_temp_bytes(bool wide, uint32_t n);
cudaError_t sum_window_rows(const WindowArgumentColumns &argument, bool wide, uint32_t n, char *sums, char *temp, cudaStream_t stream);

constexpr int WINDOW_TREE_LEVELS = 8;
static_assert((uint64_t{1} << (WINDOW_TREE_LEVELS * WINDOW_TREE_BITS)) > ROW_SET_MAX_ROWS, "the top is one key");

/* Keys: as vm/window_rules.h has them, of max() their complements; wide ones are of 128 bits. */
struct WindowKeys
{
	bool		wide, max, ranked;
	char	   *since;			/* the least since the partition's first row, for frames that begin there; or */
	char	   *level[WINDOW_TREE_LEVELS];	/* a tree */
	uint32_t   *zeroes;			/* floats: 1, there is one, 2, a negative one; nullptr: there is no negative one */
};

/* Bytes of the tree, or of keys since the partition's first row, and of these memory to find them. */
uint64_t	window_tree_bytes(bool wide, uint32_t n);
uint64_t	window_keys_bytes(bool wide, uint32_t n);
uint64_t	window_keys_temp_bytes(bool wide, uint32_t n);
/* Of keys that say what they are, but not where. */
cudaError_t make_window_tree(const WindowArgumentColumns &argument, uint32_t n, char *memory, WindowKeys *keys, cudaStream_t stream);
cudaError_t find_window_keys(const WindowArgumentColumns &argument, const WindowRows &rows, char *memory, char *temp, WindowKeys *keys,
							 cudaStream_t stream);
/* Which zeroes are there among floats that count? *zeroes: 0 before. */
cudaError_t find_window_zeroes(const WindowArgumentColumns &argument, uint32_t n, uint32_t *zeroes, cudaStream_t stream);

/* ---- functions ----------------------------------------------------------------------------- */

struct WindowCallColumns
{
	WindowFunction function;
	RowColumn	argument;
	RowColumn	to, to_high;	/* to_high: of halves */
	WindowRows	rows;
	WindowBits	counted, trues;	/* no bits of `counted`: all rows count */
	const char *sums;
	bool		wide_sums;
	WindowKeys	keys;
};

/* Values of rows that are null are left as they are. ErrorBits are added to *errors. */
cudaError_t emit_window_function(const WindowCallColumns &call, uint32_t *errors, cudaStream_t stream);

}  // namespace cuda
}  // namespace gpuvm

#endif
