/*
 * set_columns.h: the columns of a row set as those of a result set (result_set.h): in memory of just their size, sums as
 * integers of 64 bits, and what a table's summary would say of them.
 *
 * Asynchronous, no allocation: as row_set.h says.
 */
#ifndef GPUVM_CUDA_SET_COLUMNS_H
#define GPUVM_CUDA_SET_COLUMNS_H

#include "row_set.h"

namespace gpuvm {
namespace cuda {

enum class SetForm : uint8_t
{
	Plain,						/* as it is */
	Low,						/* of an integer: the half (tablet/wide_halves.h) */
	High,
	Narrow,						/* of a sum (I128): its value, which must be an I64 */
};

struct SetColumnSource
{
	uint8_t		column;			/* of the row set */
	bool		sum;			/* which is of I128; else I64 where it is not Plain */
	SetForm		form;
};

/* Zeroes say that there is no value. */
struct SetColumnFacts
{
	uint64_t	not_least;		/* the least value's order bits, each inverted */
	uint64_t	most;			/* of integers, and of finite floats as doubles: in the order of unsigned integers */
	uint32_t	nulls;
	uint32_t	flags;			/* ChunkFlag bits of floats, and these: */
	uint32_t	exp_lo;			/* SET_EXP_ORIGIN - exp_lo, as in ColumnChunk; 0: no finite float but zeroes */
	uint32_t	exp_hi;			/* exp_hi + SET_EXP_ORIGIN */
};
constexpr uint32_t SET_HAS_VALUE = 1u << 16;	/* `not_least` and `most` are known */
constexpr uint32_t SET_MISFIT = 1u << 17;	/* a sum is too large for its form */
constexpr int SET_EXP_ORIGIN = 4096;

/* Order bits of an integer, and back. */
GPUVM_HD constexpr uint64_t
set_order_bits(int64_t value)
{
	return static_cast<uint64_t>(value) ^ 0x8000000000000000u;
}

/*
 * Row i of the set's columns is row order[i] (nullptr: i) of `rows`, for i < n, n > 0; 0 lies under nulls, and behind the last row, up to
 * the end of its pad. `to` has a bitmap for each column whose source has one. `facts`: device, one for each column.
 */
cudaError_t store_set_columns(const RowSet &rows, const SetColumnSource *sources, const uint32_t *order, uint32_t n, const RowSet &to,
							  SetColumnFacts *facts, cudaStream_t stream);

}  // namespace cuda
}  // namespace gpuvm

#endif
