/*
 * vm_hand.cuh: the yardstick of vm_experiment: kernels written by hand for one
 * query, one stored width and one null form each, over the same tablets.
 */
#ifndef GPUVM_BENCH_VM_HAND_CUH
#define GPUVM_BENCH_VM_HAND_CUH

#include <cstring>
#include <type_traits>

#include "device_program.h"

namespace hand {

using gpuvm::cuda::DeviceChunk;
using gpuvm::cuda::DevicePad;
using gpuvm::cuda::DeviceTable;
using gpuvm::cuda::DeviceTablet;

constexpr int THREADS = 256;

struct Result
{
	unsigned long long lo;		/* count, or the low half of a sum */
	unsigned long long hi;
	uint32_t	errors;
};

/* H rows of stored type C in 16-byte loads, and their null bits. */
template <typename C, int H, bool NULLS>
struct Rows
{
	C			v[H];
	uint32_t	nulls;

	__device__ __forceinline__ void load(const DeviceChunk &chunk, uint32_t row)
	{
		const int4 *from = reinterpret_cast<const int4 *>(chunk.data + static_cast<uint64_t>(row) * sizeof(C));

#pragma unroll
		for (int i = 0; i < H * static_cast<int>(sizeof(C)) / 16; i++)
		{
			int4		x = __ldg(from + i);

			memcpy(reinterpret_cast<char *>(v) + i * 16, &x, 16);
		}
		nulls = 0;
		if (NULLS && chunk.nulls != 0)
		{
			if (H == 16)
				nulls = __ldg(reinterpret_cast<const uint16_t *>(chunk.nulls) + row / 16);
			else
				nulls = __ldg(reinterpret_cast<const uint8_t *>(chunk.nulls) + row / 8);
		}
	}
};

struct Place
{
	uint32_t	tablet;
	uint32_t	row;			/* the thread's first */
	uint32_t	valid;			/* mask of rows that exist */
};

template <int H>
__device__ __forceinline__ Place
place(const DeviceTable &t, uint32_t tile)
{
	constexpr uint32_t per_pad = gpuvm::TABLET_PAD_ROWS / (THREADS * H);
	DevicePad	pad = t.pads[tile / per_pad];
	DeviceTablet d = t.tablets[pad.tablet];
	uint32_t	row = pad.row + tile % per_pad * (THREADS * H) + threadIdx.x * H;

	return Place{pad.tablet, row, row + H <= d.nrows ? (1u << H) - 1 : row < d.nrows ? (1u << (d.nrows - row)) - 1 : 0};
}

/* c0 > k0 and c1 < k1, counted. V is the value's type, C the stored code's. */
template <typename C, typename V, int H, bool NULLS>
__global__ void __launch_bounds__(THREADS)
filter(DeviceTable t, V k0, V k1, Result *result)
{
	uint32_t	tiles = t.npads * (gpuvm::TABLET_PAD_ROWS / (THREADS * H));
	uint32_t	count = 0;

	for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
	{
		Place		p = place<H>(t, tile);
		const DeviceChunk &c0 = t.chunks[p.tablet * 2], &c1 = t.chunks[p.tablet * 2 + 1];
		Rows<C, H, NULLS> a, b;
		uint32_t	bits = 0;

		a.load(c0, p.row);
		b.load(c1, p.row);

		/* Narrow codes compare as codes; the constants lie well within the codes' range. */
		V			x0 = k0, x1 = k1;

		if (std::is_unsigned<C>::value)
		{
			x0 = k0 - static_cast<V>(c0.base);
			x1 = k1 - static_cast<V>(c1.base);
		}
#pragma unroll
		for (int i = 0; i < H; i++)
			if (static_cast<V>(a.v[i]) > x0 && static_cast<V>(b.v[i]) < x1)
				bits |= 1u << i;
		count += __popc(bits & p.valid & ~(a.nulls | b.nulls));
	}
	count = __reduce_add_sync(~0u, count);
	if (threadIdx.x % 32 == 0)
		atomicAdd(&result->lo, static_cast<unsigned long long>(count));
}

/* sum(c0 * c2) where c0 + 40 > c1 - 10. Floats add up in units of 2^-scale. */
template <typename C, typename V, int H, bool NULLS, bool CHECKED>
__global__ void __launch_bounds__(THREADS)
arithmetic(DeviceTable t, V k0, V k1, double scale, Result *result)
{
	constexpr bool wide = sizeof(V) == 8;
	uint32_t	tiles = t.npads * (gpuvm::TABLET_PAD_ROWS / (THREADS * H));
	unsigned long long lo = 0;
	long long	hi = 0;
	bool		bad = false;

	for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
	{
		Place		p = place<H>(t, tile);
		const DeviceChunk *c = t.chunks + p.tablet * 3;
		Rows<C, H, NULLS> a, b, d;

		a.load(c[0], p.row);
		b.load(c[1], p.row);
		d.load(c[2], p.row);

		uint32_t	ab = p.valid & ~(a.nulls | b.nulls), all = ab & ~d.nulls;
		V			base0 = 0, base1 = 0, base2 = 0;

		if (std::is_unsigned<C>::value)
		{
			base0 = static_cast<V>(c[0].base);
			base1 = static_cast<V>(c[1].base);
			base2 = static_cast<V>(c[2].base);
		}
#pragma unroll
		for (int i = 0; i < H; i++)
		{
			V			x = static_cast<V>(a.v[i]) + base0, y = static_cast<V>(b.v[i]) + base1, z = static_cast<V>(d.v[i]) + base2;
			V			left = x + k0, right = y - k1, product = x * z;

			if constexpr (CHECKED && std::is_integral<V>::value)
			{
				bool		over = ((x ^ left) & (k0 ^ left)) < 0 || ((y ^ k1) & (y ^ right)) < 0;

				bad |= over && (ab >> i & 1);
			}
			if constexpr (CHECKED && std::is_floating_point<V>::value)
				bad |= (ab >> i & 1) && (left - left != 0 || right - right != 0);
			if (left > right && (all >> i & 1))
			{
				if constexpr (std::is_floating_point<V>::value)
				{
					double		v = static_cast<double>(product) * scale;

					if (CHECKED)
						bad |= product - product != 0 || (product == 0 && x != 0 && z != 0);
					if constexpr (wide)
					{
						double		m = fabs(v);
						long long	h = __double2ll_rd(m * 0x1p-64);
						unsigned long long l = __double2ull_rz(m - static_cast<double>(h) * 0x1p64);

						if (v < 0)
						{
							l = 0 - l;
							h = ~h + (l == 0);
						}
						lo += l;
						hi += h + (lo < l);
					}
					else
						lo += static_cast<unsigned long long>(__double2ll_rn(v));
				}
				else if constexpr (wide)
				{
					if (CHECKED)
						bad |= __mul64hi(x, z) != (product >> 63);
					lo += static_cast<unsigned long long>(product);
					hi += (product >> 63) + (lo < static_cast<unsigned long long>(product));
				}
				else
				{
					long long	full = static_cast<long long>(x) * z;

					if (CHECKED)
						bad |= full != product;
					lo += static_cast<unsigned long long>(full);
				}
			}
		}
	}
	if (!wide)
		hi = static_cast<long long>(lo) >> 63;
	for (int step = 16; step > 0; step /= 2)
	{
		unsigned long long other = __shfl_xor_sync(~0u, lo, step);
		long long	other_hi = __shfl_xor_sync(~0u, hi, step);

		lo += other;
		hi += other_hi + (lo < other);
	}
	bad = __any_sync(~0u, bad);
	if (threadIdx.x % 32 == 0)
	{
		unsigned long long before = atomicAdd(&result->lo, lo);

		atomicAdd(&result->hi, static_cast<unsigned long long>(hi) + (before + lo < before));
		if (bad)
			atomicOr(&result->errors, 1u);
	}
}

}  // namespace hand

#endif
