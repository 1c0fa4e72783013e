/* pairs.cu: from what was found to pairs. See pairs.h. */
#include "pairs.h"

#include "bit_scan.cuh"
#include "kernel_launch.h"

namespace gpuvm {
namespace cuda {

namespace {

constexpr uint32_t THREADS = 256;
constexpr uint32_t TILE_PAIRS = 1024;		/* that a block expands */

struct EmitSingle
{
	const uint32_t *first;
	uint32_t   *outer, *inner;

	GPUVM_D void operator()(uint32_t at, uint32_t row) const
	{
		if (outer != nullptr)
			outer[at] = row;
		inner[at] = first[row];
	}
};

/* Each row is a pair. */
__global__ void __launch_bounds__(THREADS)
list_rows(const uint32_t *partner, uint32_t first, uint32_t n, uint32_t *outer, uint32_t *inner)
{
	const uint32_t i = blockIdx.x * THREADS + threadIdx.x;

	if (i >= n)
		return;
	if (outer != nullptr)
		outer[i] = first + i;
	inner[i] = partner[first + i];
}

/* The last entry that begins at the pair or before it, looked for by a warp. */
GPUVM_D uint32_t
find_entry(const uint64_t *begin, uint32_t nentries, uint64_t pair)
{
	const uint32_t lane = threadIdx.x % 32;
	uint32_t	lo = 0, hi = nentries;

	while (hi - lo > 1)
	{
		const uint32_t step = (hi - lo + 31) / 32, at = lo + lane * step;
		const uint32_t before = __ballot_sync(~0u, at < hi && begin[at] <= pair);
		const uint32_t last = 31 - static_cast<uint32_t>(__clz(static_cast<int>(before)));

		hi = min(hi, lo + (last + 1) * step);
		lo += last * step;
	}
	return lo;
}

__global__ void __launch_bounds__(THREADS)
expand_entries(const uint32_t *table_rows, const __grid_constant__ Probe probe, uint64_t first_pair, uint32_t npairs, uint32_t *outer, uint32_t *inner)
{
	__shared__ uint64_t begin[TILE_PAIRS];
	__shared__ uint32_t shared_entry;
	const uint32_t nentries = probe.entry_row != nullptr ? probe.outcome->matched : probe.nrows, tile = blockIdx.x * TILE_PAIRS;

	if (threadIdx.x < 32)
	{
		const uint32_t entry = find_entry(probe.entry_begin, nentries, first_pair + tile);

		if (threadIdx.x == 0)
			shared_entry = entry;
	}
	__syncthreads();

	/* Each entry has a pair: no more entries than pairs. */
	const uint32_t first_entry = shared_entry;

	for (uint32_t i = threadIdx.x; i < TILE_PAIRS; i += THREADS)
		begin[i] = i <= nentries - first_entry ? probe.entry_begin[first_entry + i] : ~uint64_t{0};
	__syncthreads();
#pragma unroll
	for (uint32_t k = 0; k < TILE_PAIRS / THREADS; k++)
	{
		const uint32_t i = tile + k * THREADS + threadIdx.x;
		const uint64_t pair = first_pair + i;
		uint32_t	entry = 0;

		if (i >= npairs)
			break;
#pragma unroll
		for (uint32_t step = TILE_PAIRS / 2; step > 0; step /= 2)
			if (begin[entry + step] <= pair)
				entry += step;

		const uint32_t row = probe.entry_row != nullptr ? probe.entry_row[first_entry + entry] : first_entry + entry;
		const uint32_t first = probe.first[row];

		outer[i] = row;
		inner[i] = first == NO_ROW ? NO_ROW : table_rows[first + (pair - begin[entry])];
	}
}

}  // namespace

cudaError_t
expand_pairs(const JoinTable &table, const Probe &probe, uint64_t first_pair, uint32_t npairs, uint32_t *outer, uint32_t *inner, cudaStream_t stream)
{
	if (npairs == 0)
		return cudaSuccess;
	if (!lists_pairs(probe.mode))
		return cudaErrorInvalidValue;
	if (!probe.single)
		return launch_kernel(&expand_entries, (npairs + TILE_PAIRS - 1) / TILE_PAIRS, THREADS, 0, stream, table.rows, probe, first_pair, npairs,
							 outer, inner);

	const uint32_t first = static_cast<uint32_t>(first_pair);

	if (probe.mode == ProbeMode::Kept)
		return launch_kernel(&list_rows, (npairs + THREADS - 1) / THREADS, THREADS, 0, stream, probe.first, first, npairs, outer, inner);
	return emit_bits(BitScan{probe.matched_bits, 0, probe.nrows, probe.before}, first, npairs, EmitSingle{probe.first, outer, inner}, stream);
}

}  // namespace cuda
}  // namespace gpuvm
