/*
 * cpu_window.h: window functions on the CPU (window.h). As in cpu_sort.h, no threads and no I/O: work is phases of
 * tasks, which any threads may run in any order, nobody being inside between two.
 *
 * A task is a block of rows, whatever the partitions are. The first phase finds where partitions and peers begin, and
 * makes of each aggregate's argument what answers for any range of rows: counts and sums before each row, relative to
 * the block, and a tree of extremes. Then carries go from block to block. The second phase goes through a block's rows:
 * their frames, which only move forward, and of these the functions. So all is O(n) but for extremes, which
 * take O(log n) for a frame whose head moves.
 */
#ifndef GPUVM_VM_CPU_WINDOW_H
#define GPUVM_VM_CPU_WINDOW_H

#include <atomic>
#include <memory>
#include <vector>

#include "tablet/format.h"
#include "vm/window.h"

namespace gpuvm {

constexpr int WINDOW_BLOCK_BITS = 16;
constexpr uint32_t WINDOW_BLOCK_ROWS = 1u << WINDOW_BLOCK_BITS;

/* A column's rows in blocks of WINDOW_BLOCK_ROWS, of which the last may have fewer: values of type_natural_width(). */
struct WindowColumn
{
	ColumnSummary summary;		/* of all rows */
	std::vector<const char *> values;
	std::vector<const uint64_t *> nulls;	/* bitmaps (1 = null); nullptr: none is null */
};

/* Where a block's rows of a column that is appended go; the bitmap is zero. Both have room for whole 64 rows. */
struct WindowTarget
{
	char	   *values;
	uint64_t   *nulls;
};

class WindowJob;

class CpuWindow
{
public:
	/* A specification that was checked, and columns that outlive it. Throws std::bad_alloc. */
	CpuWindow(const WindowSpec &spec, const WindowColumn *columns, uint64_t nrows);
	~CpuWindow();

	/* What it takes while it works, beside the targets. */
	uint64_t	bytes() const;

	/* Of all results: that of column c of block b at [b * ncolumns + c]. To be set before the first phase. */
	void		set_targets(const WindowTarget *targets);

	/* Begins the next phase: how many tasks it has; 0 when all is done. Throws std::bad_alloc. */
	uint32_t	begin_phase();
	void		run_task(uint32_t task);	/* throws std::bad_alloc */

	/* ErrorBits, when all is done: if not 0, the results are worth nothing. */
	uint32_t	errors() const;

private:
	std::unique_ptr<WindowJob> job_;
};

}  // namespace gpuvm

#endif
