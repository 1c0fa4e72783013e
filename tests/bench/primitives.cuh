/*
 * primitives.cuh: database primitives, a kernel each, over plain columns, as the
 * papers on GPU databases have them: map, compare, combine masks, reduce, and
 * compact by prefix sums. Masks take a byte a row. A thread takes four rows at a
 * time in loads of 4 to 16 bytes; columns and masks are padded to whole fours.
 */
#ifndef GPUVM_BENCH_PRIMITIVES_CUH
#define GPUVM_BENCH_PRIMITIVES_CUH

#include <cstdint>

#include <cuda_runtime.h>

namespace primitives {

constexpr uint32_t THREADS = 256;
constexpr uint32_t COMPACT_ROWS = 16;	/* a thread */
constexpr uint32_t BLOCK_ROWS = THREADS * COMPACT_ROWS;

enum class Cmp { Gt, Ge, Lt, Le, Eq };
enum class Arith { Add, Sub, Mul };
enum class Logic { And, Or };

template <typename T>
struct alignas(16) Four
{
	T			v[4];
};

template <Cmp C, typename T>
__device__ bool
compare(T a, T b)
{
	return C == Cmp::Gt ? a > b : C == Cmp::Ge ? a >= b : C == Cmp::Lt ? a < b : C == Cmp::Le ? a <= b : a == b;
}

template <Arith A, typename T>
__device__ T
apply(T a, T b)
{
	return A == Arith::Add ? a + b : A == Arith::Sub ? a - b : a * b;
}

template <typename T>
__device__ Four<T>
load(const T *column, uint32_t i)
{
	return reinterpret_cast<const Four<T> *>(column)[i];
}

/* The kernels' loop over fours of rows. */
#define FOR_FOURS(i, n) \
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < ((n) + 3) / 4; i += gridDim.x * blockDim.x)

template <Cmp C, typename T>
__global__ void
compare_constant(const T *a, T k, uint32_t *mask, uint32_t n)
{
	FOR_FOURS(i, n)
	{
		Four<T>		x = load(a, i);
		uint32_t	bits = 0;

		for (int j = 0; j < 4; j++)
			bits |= (compare<C>(x.v[j], k) && i * 4 + j < n ? 1u : 0u) << (j * 8);
		mask[i] = bits;
	}
}

template <Cmp C, typename T>
__global__ void
compare_columns(const T *a, const T *b, uint32_t *mask, uint32_t n)
{
	FOR_FOURS(i, n)
	{
		Four<T>		x = load(a, i), y = load(b, i);
		uint32_t	bits = 0;

		for (int j = 0; j < 4; j++)
			bits |= (compare<C>(x.v[j], y.v[j]) && i * 4 + j < n ? 1u : 0u) << (j * 8);
		mask[i] = bits;
	}
}

template <Logic L>
__global__ void
combine(const uint32_t *a, const uint32_t *b, uint32_t *mask, uint32_t n)
{
	FOR_FOURS(i, n)
		mask[i] = L == Logic::And ? a[i] & b[i] : a[i] | b[i];
}

template <Arith A, typename T>
__global__ void
map_constant(const T *a, T k, T *out, uint32_t n)
{
	FOR_FOURS(i, n)
	{
		Four<T>		x = load(a, i);

		for (int j = 0; j < 4; j++)
			x.v[j] = apply<A>(x.v[j], k);
		reinterpret_cast<Four<T> *>(out)[i] = x;
	}
}

template <Arith A, typename T>
__global__ void
map_columns(const T *a, const T *b, T *out, uint32_t n)
{
	FOR_FOURS(i, n)
	{
		Four<T>		x = load(a, i), y = load(b, i);

		for (int j = 0; j < 4; j++)
			x.v[j] = apply<A>(x.v[j], y.v[j]);
		reinterpret_cast<Four<T> *>(out)[i] = x;
	}
}

template <typename V>
__device__ V
warp_sum(V v)
{
	for (int step = 16; step > 0; step /= 2)
		v += __shfl_xor_sync(~0u, v, step);
	return v;
}

__global__ void
count(const uint32_t *mask, uint32_t n, unsigned long long *result)
{
	uint32_t	sum = 0;

	FOR_FOURS(i, n)
		sum += static_cast<uint32_t>(__popc(mask[i]));
	sum = warp_sum(sum);
	if (threadIdx.x % 32 == 0)
		atomicAdd(result, static_cast<unsigned long long>(sum));
}

/* Sums into 64 bits or double precision; all rows if there is no mask. */
template <typename V, typename T>
__global__ void
sum(const T *a, const uint32_t *mask, uint32_t n, V *result)
{
	V			total = 0;

	FOR_FOURS(i, n)
	{
		Four<T>		x = load(a, i);
		uint32_t	bits = mask != nullptr ? mask[i] : 0x01010101u;

		for (int j = 0; j < 4; j++)
			if ((bits >> (j * 8) & 1) != 0 && i * 4 + j < n)
				total += static_cast<V>(x.v[j]);
	}
	total = warp_sum(total);
	if (threadIdx.x % 32 == 0)
		atomicAdd(result, total);
}

template <bool GREATEST>
__global__ void
extreme(const int32_t *a, uint32_t n, int32_t *result)
{
	int32_t		best = GREATEST ? INT32_MIN : INT32_MAX;

	FOR_FOURS(i, n)
	{
		Four<int32_t> x = load(a, i);

		for (int j = 0; j < 4; j++)
			if (i * 4 + j < n)
				best = GREATEST ? max(best, x.v[j]) : min(best, x.v[j]);
	}
	best = GREATEST ? __reduce_max_sync(~0u, best) : __reduce_min_sync(~0u, best);
	if (threadIdx.x % 32 == 0)
	{
		if (GREATEST)
			atomicMax(result, best);
		else
			atomicMin(result, best);
	}
}

/* -- compaction: rows before each block, then each column moved ------------------------- */

/* A thread's 16 rows of the mask, a bit each. */
__device__ inline uint32_t
thread_rows(const uint32_t *mask, uint32_t first, uint32_t n)
{
	uint32_t	rows = 0;

	for (uint32_t j = 0; j < COMPACT_ROWS / 4; j++)
		if (first + j * 4 < n)
		{
			uint32_t	m = mask[first / 4 + j];

			rows |= ((m & 1) | (m >> 7 & 2) | (m >> 14 & 4) | (m >> 21 & 8)) << (j * 4);
		}
	return rows;
}

/* Exclusive prefix sum over the block, and the total. */
__device__ inline uint32_t
block_prefix(uint32_t v, uint32_t *total)
{
	__shared__ uint32_t warps[THREADS / 32];
	uint32_t	lane = threadIdx.x % 32, end = v, before = 0;

	for (int step = 1; step < 32; step *= 2)
	{
		uint32_t	other = __shfl_up_sync(~0u, end, step);

		end += lane >= static_cast<uint32_t>(step) ? other : 0;
	}
	if (lane == 31)
		warps[threadIdx.x / 32] = end;
	__syncthreads();
	*total = 0;
	for (uint32_t w = 0; w < THREADS / 32; w++)
	{
		before += w < threadIdx.x / 32 ? warps[w] : 0;
		*total += warps[w];
	}
	__syncthreads();
	return before + end - v;
}

__global__ void
count_blocks(const uint32_t *mask, uint32_t n, uint32_t *counts)
{
	uint32_t	total;

	block_prefix(static_cast<uint32_t>(__popc(thread_rows(mask, blockIdx.x * BLOCK_ROWS + threadIdx.x * COMPACT_ROWS, n))), &total);
	if (threadIdx.x == 0)
		counts[blockIdx.x] = total;
}

/* One block: counts become the rows before each block; counts[nblocks] all of them. */
__global__ void
prefix_blocks(uint32_t *counts, uint32_t nblocks)
{
	uint32_t	before = 0;

	for (uint32_t first = 0; first < nblocks; first += THREADS)
	{
		uint32_t	i = first + threadIdx.x, total;
		uint32_t	v = i < nblocks ? counts[i] : 0, at = block_prefix(v, &total);

		if (i < nblocks)
			counts[i] = before + at;
		before += total;
	}
	if (threadIdx.x == 0)
		counts[nblocks] = before;
}

template <typename T>
__global__ void
compact(const T *a, const uint32_t *mask, const uint32_t *before, uint32_t n, T *out)
{
	__shared__ T staged[BLOCK_ROWS];
	uint32_t	first = blockIdx.x * BLOCK_ROWS + threadIdx.x * COMPACT_ROWS, total;
	uint32_t	rows = thread_rows(mask, first, n);
	uint32_t	at = block_prefix(static_cast<uint32_t>(__popc(rows)), &total);

	for (uint32_t j = 0; j < COMPACT_ROWS / 4; j++)
		if ((rows >> (j * 4) & 15) != 0)
		{
			Four<T>		x = load(a, first / 4 + j);

			for (uint32_t r = 0; r < 4; r++)
				if ((rows >> (j * 4 + r) & 1) != 0)
					staged[at++] = x.v[r];
		}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < total; i += THREADS)
		out[before[blockIdx.x] + i] = staged[i];
}

}  // namespace primitives

#endif
