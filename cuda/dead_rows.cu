/* dead_rows.cu: see dead_rows.h. */
#include "dead_rows.h"

#include "kernel_launch.h"
#include "machine.cuh"

namespace gpuvm {
namespace cuda {

namespace {

constexpr uint32_t THREADS = 256;
constexpr uint32_t WARPS = THREADS / 32;
constexpr uint32_t LANE_WORDS = TABLET_PAD_ROWS / 32 / 32;
static_assert(LANE_WORDS == 4, "a lane writes its words at once");

/* The bits of [first, end) in the word whose first row is `row`. */
GPUVM_D uint32_t
word_of(const DeadRange &range, uint64_t row)
{
	const uint32_t from = range.first <= row ? 0 : static_cast<uint32_t>(min(range.first - row, uint64_t{32}));
	const uint32_t to = range.end <= row ? 0 : static_cast<uint32_t>(min(range.end - row, uint64_t{32}));
	const uint32_t below_from = static_cast<uint32_t>((uint64_t{1} << from) - 1), below_to = static_cast<uint32_t>((uint64_t{1} << to) - 1);

	return below_to & ~below_from;
}

/* A warp a pad: it looks for the first of the pad's ranges, and each lane makes four words. */
__global__ void __launch_bounds__(THREADS)
fill(char *bits, uint32_t npads, const DeadRange *ranges, uint32_t nranges)
{
	const uint32_t pad = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
	const uint64_t first = static_cast<uint64_t>(pad) * TABLET_PAD_ROWS, row = first + lane * 32 * LANE_WORDS;
	uint32_t	from = 0, to = nranges;
	uint4		words = {0, 0, 0, 0};

	if (pad >= npads)
		return;
	while (from < to)
	{
		const uint32_t middle = from + (to - from) / 2;

		if (ranges[middle].end <= first)
			from = middle + 1;
		else
			to = middle;
	}
	for (; from < nranges && ranges[from].first < first + TABLET_PAD_ROWS; from++)
	{
		const DeadRange range = ranges[from];

		words.x |= word_of(range, row);
		words.y |= word_of(range, row + 32);
		words.z |= word_of(range, row + 64);
		words.w |= word_of(range, row + 96);
	}
	reinterpret_cast<uint4 *>(bits + pad * DEAD_PAD_BYTES)[lane] = words;
}

}  // namespace

cudaError_t
fill_dead_rows(char *bits, uint32_t npads, const DeadRange *ranges, uint32_t nranges, cudaStream_t stream)
{
	if (npads == 0)
		return cudaSuccess;
	return launch_kernel(fill, (npads + WARPS - 1) / WARPS, THREADS, 0, stream, bits, npads, ranges, nranges);
}

}  // namespace cuda
}  // namespace gpuvm
