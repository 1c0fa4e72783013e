/* bit_scan.cu: from bitmaps to numbers. See pairs.h. */
#include "pairs.h"

#include "bit_scan.cuh"
#include "kernel_launch.h"
#include "scan.cuh"

namespace gpuvm {
namespace cuda {

namespace {

/* Wanted bits of a word; of the one behind the last: none. */
struct WordCounts
{
	using Value = uint32_t;
	const uint32_t *bits;
	uint32_t	flip;
	uint32_t	nbits;

	GPUVM_HD Value operator()(uint32_t word) const
	{
		const uint32_t left = word * 32 < nbits ? nbits - word * 32 : 0;

		if (left == 0)
			return 0;

		const uint32_t v = (bits[word] ^ flip) & (left < 32 ? (1u << left) - 1 : ~0u);

#ifdef __CUDA_ARCH__
		return static_cast<uint32_t>(__popc(v));
#else
		return static_cast<uint32_t>(__builtin_popcount(v));
#endif
	}
};

struct EmitRows
{
	uint32_t   *rows;

	GPUVM_D void operator()(uint32_t at, uint32_t row) const { rows[at] = row; }
};

struct EmitPairs
{
	const uint32_t *outer, *inner;
	uint32_t   *outer_out, *inner_out;

	GPUVM_D void operator()(uint32_t at, uint32_t pair) const
	{
		if (outer_out != nullptr)
			outer_out[at] = outer[pair];
		if (inner_out != nullptr)
			inner_out[at] = inner[pair];
	}
};

struct EmitGridPairs
{
	uint32_t	outer_rows, first_outer, first_inner;
	uint32_t   *outer_out, *inner_out;

	GPUVM_D void operator()(uint32_t at, uint32_t bit) const
	{
		outer_out[at] = first_outer + bit % outer_rows;
		inner_out[at] = first_inner + bit / outer_rows;
	}
};

}  // namespace

uint64_t
bit_scan_bytes(uint32_t nbits)
{
	const uint32_t sums = words_of(nbits) + 1;

	return align_up(sums * sizeof(uint32_t), 256) + exclusive_sum_bytes<WordCounts>(sums);
}

cudaError_t
scan_bits(const uint32_t *bits, uint32_t nbits, bool want, char *memory, BitScan *scan, uint32_t *total, cudaStream_t stream)
{
	const uint32_t flip = want ? 0 : ~0u, sums = words_of(nbits) + 1;
	uint64_t	temp_bytes = exclusive_sum_bytes<WordCounts>(sums);

	*scan = BitScan{bits, flip, nbits, reinterpret_cast<uint32_t *>(memory)};

	cudaError_t rc = exclusive_sum(memory + align_up(sums * sizeof(uint32_t), 256), &temp_bytes, WordCounts{bits, flip, nbits}, scan->before, sums,
								   stream);

	if (rc == cudaSuccess && total != nullptr)
		rc = cudaMemcpyAsync(total, scan->before + sums - 1, sizeof(*total), cudaMemcpyDefault, stream);
	return rc;
}

cudaError_t
emit_rows(const BitScan &scan, uint32_t first, uint32_t n, uint32_t *rows, cudaStream_t stream)
{
	return emit_bits(scan, first, n, EmitRows{rows}, stream);
}

cudaError_t
emit_pairs(const BitScan &scan, uint32_t first, uint32_t n, const uint32_t *outer, const uint32_t *inner, uint32_t *outer_out, uint32_t *inner_out,
		   cudaStream_t stream)
{
	return emit_bits(scan, first, n, EmitPairs{outer, inner, outer != nullptr ? outer_out : nullptr, inner != nullptr ? inner_out : nullptr}, stream);
}

cudaError_t
emit_grid_pairs(const BitScan &scan, uint32_t first, uint32_t n, uint32_t outer_rows, uint32_t first_outer, uint32_t first_inner,
				uint32_t *outer_out, uint32_t *inner_out, cudaStream_t stream)
{
	return emit_bits(scan, first, n, EmitGridPairs{outer_rows, first_outer, first_inner, outer_out, inner_out}, stream);
}

}  // namespace cuda
}  // namespace gpuvm
