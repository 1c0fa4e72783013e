/*
 * row_blocks.h: how kernels share rows out: a block of THREADS threads takes
 * BLOCK_ROWS rows, each thread LANE_ROWS of them, THREADS apart, so that a
 * warp's accesses lie together and a thread has several loads on the way.
 */
#ifndef GPUVM_CUDA_ROW_BLOCKS_H
#define GPUVM_CUDA_ROW_BLOCKS_H

#include <cstdint>

namespace gpuvm {
namespace cuda {

constexpr uint32_t THREADS = 256;
constexpr uint32_t LANE_ROWS = 4;
constexpr uint32_t BLOCK_ROWS = THREADS * LANE_ROWS;

/* Blocks for n rows. */
inline uint32_t
blocks_of(uint32_t n)
{
	return (n + BLOCK_ROWS - 1) / BLOCK_ROWS;
}

}  // namespace cuda
}  // namespace gpuvm

#endif
