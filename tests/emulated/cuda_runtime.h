/*
 * cuda_runtime.h: stands in for the CUDA toolkit's, so that g++ compiles the
 * kernels and the host code around them (-DGPUVM_EMULATED -Itests/emulated), and
 * tests run them where there is neither nvcc nor a GPU.
 *
 * What it is for: finding wrong results, races between lanes and accesses out of
 * bounds, not speed. A thread of a block is a fiber; a kernel runs at its launch,
 * on the launching host thread, block after block (emulated_block.cc). Lanes run
 * one at a time, each until its next collective operation:
 *
 * - a collective (__shfl_sync, __syncwarp, ...) waits for the lanes of its mask.
 *   Lanes that meet in different operations or with different masks, and blocks
 *   in which nobody can go on, abort the process with a report.
 * - GPUVM_EMULATED_SEED orders lanes, warps and blocks, anew at each turn, and
 *   lets atomics lose their turn; 0, the default, is the natural order, but that every
 *   other launch takes its blocks from the last one on. A missing __syncwarp shows as results that depend on it.
 * - Shared and device memory are allocated to the byte and filled with a pattern,
 *   so that an address sanitizer sees what leaves them, and reading what was
 *   never written does not find zeroes.
 *
 * A loop that waits for another lane must contain an atomic, a fence or
 * __nanosleep; only these and collectives give others a turn. A block cannot wait
 * for another one. Inline PTX has no meaning here.
 */
#ifndef GPUVM_EMULATED_CUDA_RUNTIME_H
#define GPUVM_EMULATED_CUDA_RUNTIME_H

#include "emulated_language.h"
#include "emulated_intrinsics.h"
#include "emulated_runtime.h"

#endif
