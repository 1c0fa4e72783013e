/* bit_scan.cuh: does something for each wanted bit of a scanned bitmap, in order. */
#ifndef GPUVM_CUDA_BIT_SCAN_CUH
#define GPUVM_CUDA_BIT_SCAN_CUH

#include "kernel_launch.h"
#include "machine.cuh"
#include "pairs.h"

namespace gpuvm {
namespace cuda {

GPUVM_HD constexpr uint32_t
words_of(uint32_t nbits)
{
	return nbits / 32 + (nbits % 32 != 0);
}

constexpr uint32_t EMIT_THREADS = 256;
constexpr uint32_t EMIT_WORDS = 8;		/* of a warp */

/* A warp takes EMIT_WORDS words, a lane a bit of each; emit(i, bit): the (first + i)th wanted bit. */
template <typename Emit>
__global__ void __launch_bounds__(EMIT_THREADS)
emit_kernel(const BitScan scan, uint32_t first, uint32_t n, const Emit emit)
{
	const uint32_t lane = threadIdx.x % 32, word = (blockIdx.x * (EMIT_THREADS / 32) + threadIdx.x / 32) * EMIT_WORDS;
	const uint32_t mine = word + lane;
	uint32_t	bits = 0, before = 0;

	if (lane < EMIT_WORDS && mine < words_of(scan.nbits))
	{
		const uint32_t left = scan.nbits - mine * 32;

		bits = (scan.bits[mine] ^ scan.flip) & (left < 32 ? (1u << left) - 1 : ~0u);
		before = scan.before[mine];
	}
#pragma unroll
	for (uint32_t w = 0; w < EMIT_WORDS; w++)
	{
		const uint32_t word_bits = __shfl_sync(~0u, bits, static_cast<int>(w));
		const uint32_t at = __shfl_sync(~0u, before, static_cast<int>(w)) + static_cast<uint32_t>(__popc(word_bits & ((1u << lane) - 1))) - first;

		if ((word_bits >> lane & 1) != 0 && at < n)	/* what is before `first` has wrapped around */
			emit(at, (word + w) * 32 + lane);
	}
}

template <typename Emit>
cudaError_t
emit_bits(const BitScan &scan, uint32_t first, uint32_t n, const Emit &emit, cudaStream_t stream)
{
	constexpr uint32_t block_bits = EMIT_THREADS * EMIT_WORDS;

	if (scan.nbits == 0 || n == 0)
		return cudaSuccess;
	return launch_kernel(&emit_kernel<Emit>, (scan.nbits + block_bits - 1) / block_bits, EMIT_THREADS, 0, stream, scan, first, n, emit);
}

}  // namespace cuda
}  // namespace gpuvm

#endif
