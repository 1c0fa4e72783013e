/* key_filter.cu: see key_filter.h. */
#include "key_filter.h"

#include <algorithm>

#include "join_keys.cuh"
#include "kernel_launch.h"
#include "pairs.h"
#include "vm/code_range.h"

namespace gpuvm {
namespace cuda {

namespace {

constexpr uint32_t THREADS = 256;			/* a block: it takes a pad */
constexpr uint32_t WARPS = THREADS / 32;
constexpr uint32_t LANE_ROWS = 8;			/* on the way at a time, 32 apart */
constexpr uint32_t WARP_ROWS = 32 * LANE_ROWS;
constexpr uint32_t WARP_STEPS = TABLET_PAD_ROWS / (WARPS * WARP_ROWS);
constexpr uint32_t FILL_ROWS = 4;			/* of a thread, a block apart */

static_assert(WARP_ROWS == 256 && TABLET_PAD_ROWS % (WARPS * WARP_ROWS) == 0, "a warp's rows are two uint4 of bits");

__global__ void __launch_bounds__(THREADS)
set_bits(const RowColumn key, uint32_t nrows, int64_t lo, uint32_t *bits)
{
	const uint32_t first = blockIdx.x * THREADS * FILL_ROWS + threadIdx.x;

#pragma unroll
	for (uint32_t k = 0; k < FILL_ROWS; k++)
	{
		const uint32_t row = first + k * THREADS;

		if (row >= nrows || key_null(key, row))
			continue;

		const uint64_t at = key_word(key, row) - static_cast<uint64_t>(lo);

		atomicOr(&bits[at / 32], 1u << at % 32);
	}
}

/* ---- what a key's codes in a chunk have to be ------------------------------------------- */

enum class CodeForm : uint32_t
{
	None,						/* nothing passes */
	Any,						/* all but nulls */
	U8,
	U16,
	S16,
	W32,
	W64,
};

/*
 * A code passes if it is in the CodeRange (code_range.h) and the bit of value - lo is set. Of W64: if
 * v - wide_lo < wide_n, and that bit is set.
 */
struct CodeTest
{
	CodeForm	form;
	uint32_t	origin, last, slot;
	const char *data;			/* of the pad's first row, as is */
	const uint32_t *nulls;
	const uint32_t *bits;
	int64_t		wide_lo;
	uint64_t	wide_n;
};

GPUVM_D CodeTest
code_test(const FilterKey &key, const DeviceChunk &chunk, uint32_t row)
{
	const uint32_t width = chunk.width;
	const KeyBits &side = key.side;
	CodeTest	test = {};

	test.form = CodeForm::None;
	test.data = reinterpret_cast<const char *>(chunk.data) + static_cast<uint64_t>(row) * width;
	test.nulls = chunk.nulls != 0 ? reinterpret_cast<const uint32_t *>(chunk.nulls) + row / 32 : nullptr;
	test.bits = side.bits;
	test.wide_lo = side.lo;
	test.wide_n = side.n;
	if (width == 8)
	{
		test.form = side.n != 0 ? CodeForm::W64 : CodeForm::None;
		return test;
	}

	if (width == 0)
	{
		const uint64_t at = static_cast<uint64_t>(chunk.base) - static_cast<uint64_t>(side.lo);

		if (at < side.n && (side.bits == nullptr || (side.bits[at / 32] >> at % 32 & 1) != 0))
			test.form = CodeForm::Any;
		return test;
	}

	const CodeRange range = code_range(key.type, width, chunk.base, side.lo, side.n);

	if (range.some)
		test.form = width == 1 ? CodeForm::U8 : width == 4 ? CodeForm::W32 : codes_have_sign(key.type, width) ? CodeForm::S16 : CodeForm::U16;
	test.origin = range.origin;
	test.last = range.last;
	test.slot = range.slot;
	return test;
}

/* ---- rows ------------------------------------------------------------------------------- */

/* The lane's bits of LANE_ROWS words, which are whole uint4. */
GPUVM_D uint32_t
bits_of_lane(const uint32_t *words, uint32_t lane)
{
	const uint4 a = reinterpret_cast<const uint4 *>(words)[0], b = reinterpret_cast<const uint4 *>(words)[1];

	return (a.x >> lane & 1) | (a.y >> lane & 1) << 1 | (a.z >> lane & 1) << 2 | (a.w >> lane & 1) << 3 |
		(b.x >> lane & 1) << 4 | (b.y >> lane & 1) << 5 | (b.z >> lane & 1) << 6 | (b.w >> lane & 1) << 7;
}

/* Which of the lane's rows pass: row i at codes[32 * i], alive if bit i of `live` is set. All loads are on the way together: no branch is between them. */
template <typename V>
GPUVM_D uint32_t
pass_codes(const CodeTest &test, const V *codes, uint32_t live)
{
	V			v[LANE_ROWS];
	uint32_t	at[LANE_ROWS], word[LANE_ROWS], passed = 0;

	/* Once read: the caches are for the bits. */
#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
		v[k] = (live >> k & 1) != 0 ? __ldcs(codes + 32 * k) : V();
#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
	{
		bool		in;

		if constexpr (sizeof(V) == 8)
		{
			const uint64_t wide = static_cast<uint64_t>(v[k]) - static_cast<uint64_t>(test.wide_lo);

			in = wide < test.wide_n;
			at[k] = static_cast<uint32_t>(wide);
		}
		else
		{
			const uint32_t code = static_cast<uint32_t>(static_cast<int32_t>(v[k])) - test.origin;

			in = code <= test.last;
			at[k] = code + test.slot;
		}
		passed |= static_cast<uint32_t>(in) << k;
	}
	live &= passed;
	if (test.bits == nullptr)
		return live;
#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
		at[k] = (live >> k & 1) != 0 ? at[k] : 0;
#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
		word[k] = __ldg(test.bits + at[k] / 32);
	passed = 0;
#pragma unroll
	for (uint32_t k = 0; k < LANE_ROWS; k++)
		passed |= (word[k] >> at[k] % 32 & 1) << k;
	return live & passed;
}

/* `at`: the lane's first row in the pad. */
GPUVM_D uint32_t
pass_key(const CodeTest &test, uint32_t at, uint32_t lane, uint32_t live)
{
	if (test.nulls != nullptr)
		live &= ~bits_of_lane(test.nulls + at / 32, lane);
	switch (test.form)
	{
		case CodeForm::None: return 0;
		case CodeForm::Any: return live;
		case CodeForm::U8: return pass_codes(test, reinterpret_cast<const uint8_t *>(test.data) + at, live);
		case CodeForm::U16: return pass_codes(test, reinterpret_cast<const uint16_t *>(test.data) + at, live);
		case CodeForm::S16: return pass_codes(test, reinterpret_cast<const int16_t *>(test.data) + at, live);
		case CodeForm::W32: return pass_codes(test, reinterpret_cast<const uint32_t *>(test.data) + at, live);
		default: return pass_codes(test, reinterpret_cast<const uint64_t *>(test.data) + at, live);
	}
}

/* Step `step` of this warp begins at this row of the pad. */
GPUVM_D uint32_t
first_of_step(uint32_t step)
{
	return (step * WARPS + threadIdx.x / 32) * WARP_ROWS;
}

/* A block a pad. words[FILTER_PARTS]: rows that are listed. */
__global__ void __launch_bounds__(THREADS)
filter_pads(const __grid_constant__ KeyFilter filter, const DeviceTable table, const FilterPads pads, uint32_t *words)
{
	__shared__ CodeTest test[MAX_FILTER_KEYS];
	__shared__ uint32_t before[WARPS], listed;	/* rows of the warps before this one; of the blocks that were done before */
	const DevicePad pad = table.pads[pads.first_pad + blockIdx.x * pads.step];
	const DeviceChunk *chunks = table.chunks + static_cast<uint64_t>(pad.tablet) * filter.ncolumns;
	uint32_t   *dead = reinterpret_cast<uint32_t *>(chunks[filter.dead_column].nulls) + pad.row / 32;
	const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	uint32_t	left[WARP_STEPS], n = 0;	/* a lane's word of the step's rows, those behind LANE_ROWS have none */

	if (threadIdx.x < filter.nkeys)
		test[threadIdx.x] = code_test(filter.key[threadIdx.x], chunks[filter.key[threadIdx.x].column], pad.row);
	__syncthreads();
#pragma unroll
	for (uint32_t step = 0; step < WARP_STEPS; step++)
	{
		const uint32_t first = first_of_step(step);
		uint32_t	live = ~bits_of_lane(dead + first / 32, lane) & ((1u << LANE_ROWS) - 1);

		for (uint32_t k = 0; k < filter.nkeys && __any_sync(~0u, live != 0); k++)
			live = pass_key(test[k], first + lane, lane, live);
		left[step] = 0;
#pragma unroll
		for (uint32_t k = 0; k < LANE_ROWS; k++)
		{
			const uint32_t bits = __ballot_sync(~0u, live >> k & 1);

			if (lane == k)
				left[step] = bits;
		}
		n += static_cast<uint32_t>(__popc(left[step]));
		if (pads.kill && lane < LANE_ROWS)
			dead[first / 32 + lane] = ~left[step];
	}
	for (int step = LANE_ROWS / 2; step > 0; step /= 2)
		n += __shfl_down_sync(~0u, n, step);
	if (lane == 0)
		before[warp] = n;
	__syncthreads();
	if (threadIdx.x == 0)
	{
		uint32_t	all = 0;

		for (uint32_t &rows : before)
		{
			const uint32_t of_warp = rows;

			rows = all;
			all += of_warp;
		}
		if (all != 0)
			atomicAdd(&words[blockIdx.x / pads.part], all);
		if (all != 0 && pads.rows != nullptr)
			listed = atomicAdd(&words[FILTER_PARTS], all);
	}
	if (pads.rows == nullptr)
		return;
	__syncthreads();

	uint32_t	at = listed + before[warp];

#pragma unroll
	for (uint32_t step = 0; step < WARP_STEPS; step++)
		for (uint32_t k = 0; k < LANE_ROWS && __any_sync(~0u, left[step] != 0); k++)
		{
			const uint32_t bits = __shfl_sync(~0u, left[step], static_cast<int>(k));
			const uint32_t mine = at + static_cast<uint32_t>(__popc(bits & ((1u << lane) - 1)));

			if ((bits >> lane & 1) != 0 && mine < pads.most)
				pads.rows[mine] = blockIdx.x * TABLET_PAD_ROWS + first_of_step(step) + k * 32 + lane;
			at += static_cast<uint32_t>(__popc(bits));
		}
}

}  // namespace

cudaError_t
fill_key_bits(const RowColumn &key, uint32_t nrows, int64_t lo, uint64_t n, uint32_t *bits, cudaStream_t stream)
{
	constexpr uint32_t block_rows = THREADS * FILL_ROWS;
	cudaError_t rc = cudaMemsetAsync(bits, 0, bitmap_bytes(n), stream);

	if (rc == cudaSuccess && nrows > 0)
		rc = launch_kernel(&set_bits, (nrows + block_rows - 1) / block_rows, THREADS, 0, stream, key, nrows, lo, bits);
	return rc;
}

cudaError_t
filter_rows(const KeyFilter &filter, const DeviceTable &table, const FilterPads &pads, uint32_t *words, uint32_t *left, cudaStream_t stream)
{
	const uint32_t parts = (pads.npads + pads.part - 1) / pads.part;

	if (filter.nkeys > MAX_FILTER_KEYS || parts > FILTER_PARTS)
		return cudaErrorInvalidValue;

	cudaError_t rc = cudaMemsetAsync(words, 0, FILTER_WORDS * sizeof(uint32_t), stream);

	if (rc == cudaSuccess && pads.npads > 0)
		rc = launch_kernel(&filter_pads, pads.npads, THREADS, 0, stream, filter, table, pads, words);
	if (rc == cudaSuccess)
		rc = cudaMemcpyAsync(left, words, FILTER_PARTS * sizeof(uint32_t), cudaMemcpyDefault, stream);
	return rc;
}

}  // namespace cuda
}  // namespace gpuvm
