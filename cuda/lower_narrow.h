/*
 * lower_narrow.h: a program in 64-bit integers that computes in 32 bits where the ranges
 * allow. Numerics, counts and bigints are I64, but their values are often small: in 32 bits
 * a value takes half the shared memory, so a lane has twice the rows, and narrow columns
 * are operands as they are stored.
 */
#ifndef GPUVM_CUDA_LOWER_NARROW_H
#define GPUVM_CUDA_LOWER_NARROW_H

#include <vector>

#include "lower.h"
#include "vm/value_range.h"

namespace gpuvm {
namespace cuda {

/* p5 of a Mul of I64 whose operands are I32; the AggStep Sum with keys behind it is all that reads it. */
constexpr uint8_t MUL_OF_NARROW = 1;

/*
 * `range` and `errors`: what analyze_ranges() found. Returns the program itself if there is nothing
 * to gain, else one that lies in `memory`: with the same results, in the same types, and parameters.
 * A Column of it may be I32 where the table's is I64: of at most four bytes, and values that fit.
 */
const Program *narrow_program(const LowerInput &input, const ValueRange *range, const uint32_t *errors, std::vector<uint64_t> *memory);

}  // namespace cuda
}  // namespace gpuvm

#endif
